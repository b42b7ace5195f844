//! From an agent's name to its command line.
//!
//! An attempt that continues the session of the one before it takes the agent's `continue` command,
//! with every placeholder filled again: flags do not travel with a session. A built-in function is
//! this program itself, told by name and by a file what to do.
//!
//! Invariant: nothing is written here. The files that a launch needs are handed back, and the
//! caller writes them before it spawns.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::PathBuf,
};

use onward_core::{
    digest::Digest,
    graph::{Defs, Word},
    launch::{AgentCall, Launch, Program, out_name},
    workflow::model::{Kind, Step, Workflow},
};

use super::{
    Adapters, Order, Sessions, Spoken, adapter_of, known_program,
    transcripts::{Continuation, Continuations},
};

/// The commands by agent name, as configured.
pub type Commands = BTreeMap<String, Vec<String>>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("agent `{0}` has no command")]
    NoCommand(String),
    #[error("agent `{agent}`: the program `{program}` is not on the PATH")]
    NotInstalled { agent: String, program: &'static str, install: Option<&'static str> },
    #[error("the command of agent `{0}` is empty")]
    EmptyCommand(String),
    #[error("nothing says how agent `{0}` continues a session")]
    NoContinuation(String),
    #[error("there is no built-in function `{0}`")]
    NoCall(String),
    /// More than one, each of another kind or about another agent.
    #[error("{}", together(.0, ToString::to_string))]
    Several(Vec<AgentError>),
}

fn together(errors: &[AgentError], said: impl Fn(&AgentError) -> String) -> String {
    errors.iter().map(said).collect::<Vec<_>>().join("; ")
}

impl AgentError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoCommand(name) | Self::EmptyCommand(name) => own_agent(name),
            Self::NotInstalled { agent, program, install } => {
                let known = install.map(str::to_owned);
                let install = known.unwrap_or_else(|| format!("install {program}"));
                format!("{install}; or {}", own_agent(agent))
            }
            Self::NoContinuation(name) => {
                format!("put `continue` and `transcript` under [agents.{name}] again")
            }
            Self::NoCall(_) => "use a `run` step instead, or another version of onward".to_owned(),
            Self::Several(errors) => together(errors, Self::hint),
        }
    }
}

/// How an agent gets a command of its own. The line is TOML wherever no table is open yet.
pub fn own_agent(name: &str) -> String {
    format!(
        "put `agents.{name}.command = [\"PROGRAM\", \"{{prompt}}\"]` at the top of \
         .onward/config.toml"
    )
}

/// Every agent or call of a workflow that could not be started, before anything is. An agent
/// without a configured command is one of the programs that onward knows, and must be installed.
pub fn missing(
    workflow: &Workflow,
    commands: &Commands,
    is_installed: &dyn Fn(&str) -> bool,
) -> Option<AgentError> {
    let mut found = Vec::new();
    missing_in(&workflow.steps, workflow, commands, is_installed, &mut found);
    all_of(found)
}

/// Each once, in the order of the steps.
fn all_of(found: Vec<AgentError>) -> Option<AgentError> {
    let mut all: Vec<AgentError> = Vec::new();
    for error in found {
        if !all.contains(&error) {
            all.push(error);
        }
    }
    if all.len() > 1 { Some(AgentError::Several(all)) } else { all.pop() }
}

fn missing_in(
    steps: &[Step],
    workflow: &Workflow,
    commands: &Commands,
    is_installed: &dyn Fn(&str) -> bool,
    found: &mut Vec<AgentError>,
) {
    for step in steps {
        match &step.kind {
            Kind::Run { .. } | Kind::Gate(_) => {}
            Kind::Call { name, .. } => found.extend(no_call(name)),
            Kind::Agent { agent, .. } => {
                found.extend(missing_agent(agent, workflow, commands, is_installed));
            }
            Kind::Group { steps } => missing_in(steps, workflow, commands, is_installed, found),
            Kind::Sub { workflow, .. } => {
                missing_in(&workflow.steps, workflow, commands, is_installed, found);
            }
        }
    }
}

/// The same of a workflow whose steps are in a list, in the same order.
pub fn missing_of(
    defs: &Defs,
    commands: &Commands,
    is_installed: &dyn Fn(&str) -> bool,
) -> Option<AgentError> {
    let mut asked = BTreeSet::new();
    let found = defs.ids().filter_map(|id| match defs.brief(id).word() {
        Word::Run | Word::Gate | Word::Group | Word::Sub => None,
        Word::Call | Word::Agent => match defs.step_once(id).kind {
            Kind::Call { name, .. } => no_call(&name),
            Kind::Agent { agent, .. } => {
                let workflow = defs.workflow_of(id);
                let is_new = asked.insert((std::ptr::from_ref(workflow), agent.clone()));
                is_new.then(|| missing_agent(&agent, workflow, commands, is_installed)).flatten()
            }
            Kind::Run { .. } | Kind::Gate(_) | Kind::Group { .. } | Kind::Sub { .. } => None,
        },
    });
    all_of(found.collect())
}

/// Why an agent could not be started, by its name in a workflow.
pub fn missing_agent(
    agent: &str,
    workflow: &Workflow,
    commands: &Commands,
    is_installed: &dyn Fn(&str) -> bool,
) -> Option<AgentError> {
    let declared = workflow.agents.get(agent);
    let adapter = declared.map_or(agent, |agent| &agent.adapter);
    match command_of(agent, adapter, commands) {
        Ok([]) => not_installed(adapter, is_installed),
        Ok(_) => None,
        Err(error) => Some(error),
    }
}

/// A program that onward knows, and that is not there.
fn not_installed(adapter: &str, is_installed: &dyn Fn(&str) -> bool) -> Option<AgentError> {
    let card = known_program(adapter)?.card().clone();
    let (agent, install) = (adapter.to_owned(), card.install);
    let program = card.program.filter(|program| !is_installed(program))?;
    Some(AgentError::NotInstalled { agent, program, install })
}

fn no_call(name: &str) -> Option<AgentError> {
    (!onward_dialects::builtin::CALLS.contains(&name)).then(|| AgentError::NoCall(name.to_owned()))
}

/// The configured command; none for a program that onward knows, and starts as it knows.
fn command_of<'c>(
    name: &str,
    adapter: &str,
    commands: &'c Commands,
) -> Result<&'c [String], AgentError> {
    let found = commands.get(name).or_else(|| commands.get(adapter));
    match found {
        None if known_program(adapter).is_some() => Ok(&[]),
        None => Err(AgentError::NoCommand(adapter.to_owned())),
        Some(command) if command.is_empty() => Err(AgentError::EmptyCommand(adapter.to_owned())),
        Some(command) => Ok(command),
    }
}

/// How an agent continues a session.
#[derive(Clone, Debug)]
pub(crate) struct GoesOn {
    /// The configured command; empty where the adapter knows.
    command: Vec<String>,
    /// As configured, or where the adapter's program keeps it.
    transcript: String,
    is_own: bool,
}

impl GoesOn {
    /// Where the transcript lies, when the user may have moved what the program keeps.
    pub(crate) fn transcript(
        &self,
        adapter: &Spoken,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> String {
        let usual = self.transcript.strip_prefix("~/").filter(|_| self.is_own);
        let moved = usual.and_then(|path| adapter.card().moved(path, variable));
        moved.map_or_else(|| self.transcript.clone(), |it| it.to_string_lossy().into_owned())
    }
}

/// What stands for a name.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub commands: &'a Commands,
    pub continuations: &'a Continuations,
    pub adapters: &'a Adapters,
    /// The command that runs a built-in function; its name is added to it.
    pub call: &'a [OsString],
}

/// A file that a launch needs, by its name in the run's directory.
pub type NeededFile = (String, Vec<u8>);

impl Known<'_> {
    fn call(&self, name: &str) -> Result<Vec<String>, AgentError> {
        let words = self.call.iter().map(|word| word.to_str().map(str::to_owned));
        let words: Option<Vec<String>> = words.chain([Some(name.to_owned())]).collect();
        let known = words.filter(|_| !self.call.is_empty() && no_call(name).is_none());
        known.ok_or_else(|| AgentError::NoCall(name.to_owned()))
    }

    pub(crate) fn adapter(&self, name: &str, program: &str) -> Spoken {
        adapter_of(name, program, self.adapters, self.commands)
    }

    /// How the agent continues a session, if it keeps any: as configured, or as its adapter knows.
    pub(crate) fn goes_on(&self, name: &str, program: &str) -> Option<GoesOn> {
        let configured = self.continuations.get(name).or_else(|| self.continuations.get(program));
        if let Some(Continuation { command, transcript }) = configured.cloned() {
            return Some(GoesOn { command, transcript, is_own: false });
        }
        let adapter = self.adapter(name, program);
        let own = command_of(name, program, self.commands).is_ok_and(<[String]>::is_empty);
        let transcript = adapter.card().transcript.filter(|_| own)?.to_owned();
        Some(GoesOn { command: Vec::new(), transcript, is_own: true })
    }

    /// The session that an attempt will have, where its agent takes an id that we choose.
    pub(crate) fn session_of(&self, launch: &Launch, run: &str) -> Option<String> {
        let Program::Agent(call) = &launch.program else { return None };
        self.goes_on(&call.name, &call.adapter)?;
        if let Some(session) = &call.goes_on_in {
            return Some(session.clone());
        }
        let command = command_of(&call.name, &call.adapter, self.commands).ok()?;
        let takes_one = if command.is_empty() {
            self.adapter(&call.name, &call.adapter).card().sessions == Sessions::Chosen
        } else {
            command.iter().any(|word| word.contains("{session}"))
        };
        takes_one.then(|| session_id(run, launch))
    }

    /// Makes the program of `launch` one that can be spawned. `path` says how a child names a file
    /// in the run's directory.
    pub(crate) fn resolve(
        &self,
        launch: &mut Launch,
        run: &str,
        path: &dyn Fn(&str) -> String,
    ) -> Result<Vec<NeededFile>, AgentError> {
        match &launch.program {
            Program::Argv(_) | Program::Shell(_) => Ok(Vec::new()),
            Program::Call { name, with } => {
                let argv = self.call(name)?;
                let file = out_name(&launch.step, launch.attempt, "with");
                let needed = (file.clone(), with.to_string().into_bytes());
                launch.env.insert("ONWARD_WITH".to_owned(), path(&file));
                launch.program = Program::Argv(argv);
                Ok(vec![needed])
            }
            Program::Agent(call) => self.resolve_agent(call.clone(), launch, run, path),
        }
    }

    fn resolve_agent(
        &self,
        mut call: AgentCall,
        launch: &mut Launch,
        run: &str,
        path: &dyn Fn(&str) -> String,
    ) -> Result<Vec<NeededFile>, AgentError> {
        let how = self.goes_on(&call.name, &call.adapter);
        let (command, go_on_command) = match (&call.goes_on_in, &how) {
            (None, _) => (command_of(&call.name, &call.adapter, self.commands)?, &[][..]),
            (Some(_), Some(how)) => (&[][..], how.command.as_slice()),
            (Some(_), None) => return Err(AgentError::NoContinuation(call.adapter)),
        };
        let adapter = self.adapter(&call.name, &call.adapter);
        let is_own = command.is_empty() && go_on_command.is_empty();
        if call.goes_on_in.is_some() {
            call.prompt = match &call.repairs {
                Some(why) => repair(&call.prompt, why),
                None => go_on(&call.prompt),
            };
        }
        if let Some(brief) = call.brief.take().filter(|_| call.goes_on_in.is_none()) {
            call.prompt = with_brief(&call.prompt, &brief);
        }
        if let Some(schema) =
            call.schema.as_ref().filter(|_| is_own && !adapter.card().takes_schema)
        {
            call.prompt = with_schema(&call.prompt, schema);
        }
        let file = |ending: &str| out_name(&launch.step, launch.attempt, ending);
        let mut needed = vec![(file("prompt"), call.prompt.clone().into_bytes())];
        let mut need = |ending: &str, text: &Option<String>| {
            let text = text.as_ref()?;
            needed.push((file(ending), text.clone().into_bytes()));
            Some(path(&file(ending)))
        };
        let system_file = need("system", &call.system);
        let schema_file = need("schema", &call.schema);
        let prompt_file = path(&file("prompt"));
        // One argument of a command has a size that the kernel allows.
        let prompt = if is_own && call.prompt.len() > ARGUMENT_BYTES_MAX {
            format!("Read the whole of the file {prompt_file}: it is your task. Do what it says.")
        } else {
            call.prompt.clone()
        };
        let session = session_id(run, launch);
        // Below the project's root it has everything before its eyes.
        let reads = prompt_file.rsplit_once('/').map(|(dir, _)| dir);
        let reads = reads.filter(|_| !launch.cwd.is_empty());
        let order = Order {
            command,
            go_on_command,
            prompt: &prompt,
            model: call.model.as_deref(),
            system: call.system.as_deref(),
            system_file: system_file.as_deref(),
            session: &session,
            permissions: call.permissions,
            allow: &call.allow,
            schema: call.schema.as_deref(),
            schema_file: schema_file.as_deref(),
            reads,
        };
        let argv = match &call.goes_on_in {
            None => adapter.start(&order),
            Some(session) => adapter.go_on(session, &order),
        };
        if is_own {
            for (name, value) in adapter.env(&order) {
                launch.env.entry(name).or_insert(value);
            }
        }
        launch.env.insert("ONWARD_PROMPT".to_owned(), prompt_file.clone());
        launch.env.extend(system_file.map(|file| ("ONWARD_SYSTEM".to_owned(), file)));
        launch.stop = Some(adapter.card().stop);
        launch.program = Program::Argv(argv);
        Ok(needed)
    }
}

/// A session that is continued always needs a prompt.
fn go_on(prompt: &str) -> String {
    format!(
        "You were interrupted in the middle of this task. What you changed so far is still in \
         place. The outcome of a command that was running is unknown: check whether it took effect \
         before you repeat it. See how far you got, then finish. The task was:\n\n{prompt}"
    )
}

/// The one turn in which an agent may put its result right.
fn repair(prompt: &str, why: &str) -> String {
    format!(
        "What you did is still in place, but your result does not count: {why}. Do nothing again; \
         give the result alone, as the task asks for it. The task was:\n\n{prompt}"
    )
}

/// For an agent that starts again, without a memory of what happened before.
fn with_brief(prompt: &str, brief: &str) -> String {
    format!(
        "{prompt}\n\nAn earlier attempt at this task did not finish. What follows is a record of \
         it, not a task:\n\n{brief}"
    )
}

/// Linux allows 128 KiB for one argument.
const ARGUMENT_BYTES_MAX: usize = 100 << 10;

/// For a program that takes no schema.
fn with_schema(prompt: &str, schema: &str) -> String {
    format!(
        "{prompt}\n\nYour last message must be JSON and nothing else, and must satisfy this JSON \
         Schema:\n\n{schema}"
    )
}

/// In the form of a UUID, and always the same for the same attempt.
fn session_id(run: &str, launch: &Launch) -> String {
    let attempt = launch.attempt.to_le_bytes();
    let parts = [run.as_bytes(), launch.step.as_str().as_bytes(), attempt.as_slice()];
    let hex = Digest::of_parts(parts).to_string();
    // The version of ids that are made from a name: qwen takes none beyond 5.
    format!("{}-{}-5{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use onward_core::{address::Address, workflow::permissions::Permissions};

    use super::*;

    fn launch(model: Option<&str>, system: Option<&str>) -> Launch {
        let call = AgentCall {
            name: "writer".into(),
            adapter: "claude".into(),
            model: model.map(str::to_owned),
            system: system.map(str::to_owned),
            prompt: "say {model}".into(),
            permissions: Permissions::Edit,
            allow: Vec::new(),
            schema: None,
            repairs: None,
            brief: None,
            goes_on_in: None,
        };
        Launch {
            step: Address::from_text("a/b"),
            attempt: 2,
            program: Program::Agent(call),
            cwd: String::new(),
            env: BTreeMap::new(),
            check: None,
            timeout_ms: None,
            idle_ms: None,
            sync_seal: true,
            snapshot: None,
            stop: None,
            of: None,
            outputs: Vec::new(),
        }
    }

    #[derive(Default)]
    struct Nothing(Commands, Continuations, Adapters);

    impl Nothing {
        fn known<'a>(&'a self, call: &'a [OsString]) -> Known<'a> {
            Known { commands: &self.0, continuations: &self.1, adapters: &self.2, call }
        }
    }

    fn path(name: &str) -> String {
        format!("/run/{name}")
    }

    fn argv(command: &[&str], mut launch: Launch) -> Vec<String> {
        let command = command.iter().map(|it| (*it).to_owned()).collect();
        let commands = [("claude".to_owned(), command)].into();
        let how = Continuation {
            command: ["p", "-r", "{session}", "-m={model}", "{prompt}"].map(String::from).into(),
            transcript: String::new(),
        };
        let (continuations, adapters) = ([("claude".to_owned(), how)].into(), Adapters::new());
        let (commands, continuations, adapters) = (&commands, &continuations, &adapters);
        let call = &["onward".into(), "call".into()];
        let known = Known { commands, continuations, adapters, call };
        let needed = known.resolve(&mut launch, "r-1", &path).unwrap();
        assert_eq!(launch.env["ONWARD_PROMPT"], path(&needed[0].0));
        launch.program.argv()
    }

    #[test]
    fn placeholders_are_filled_once_and_whole() {
        let command = ["p", "-m={model}", "{prompt}", "{other}", "{system_file}"];
        let found = argv(&command, launch(Some("big"), Some("be kind")));
        let system = found[4].clone();
        assert_eq!(found[..4], ["p", "-m=big", "say {model}", "{other}"]);
        assert!(system.starts_with("/run/out/") && system.ends_with(".2.system"), "{system}");
    }

    #[test]
    fn an_option_without_a_value_is_left_out() {
        let command = ["p", "--model", "{model}", "--system={system_file}", "-p", "{prompt}"];
        assert_eq!(argv(&command, launch(None, None)), ["p", "-p", "say {model}"]);
    }

    #[test]
    fn a_session_belongs_to_one_attempt() {
        let one = argv(&["p", "{session}"], launch(None, None));
        // Programs look at the form: a version of 1 to 5, and one of four letters for the variant.
        let parts: Vec<&str> = one[1].split('-').collect();
        assert_eq!(parts.iter().map(|it| it.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert!(parts[2].starts_with('5') && parts[3].starts_with('a'), "{one:?}");
        assert_eq!(one, argv(&["p", "{session}"], launch(None, None)));
        let other = Launch { attempt: 3, ..launch(None, None) };
        assert_ne!(one, argv(&["p", "{session}"], other));
        assert_eq!(one[1].len(), 36);
    }

    #[test]
    fn a_session_is_gone_on_in_with_its_flags_and_its_task() {
        let mut launch = launch(Some("big"), None);
        let Program::Agent(call) = &mut launch.program else { panic!("it is an agent") };
        call.goes_on_in = Some("s-1".into());
        let found = argv(&["p", "{session}"], launch);
        assert_eq!(found[..4], ["p", "-r", "s-1", "-m=big"]);
        assert!(found[4].starts_with("You were interrupted"), "{found:?}");
        assert!(found[4].ends_with("\n\nsay {model}"), "{found:?}");
    }

    #[test]
    fn a_brief_is_part_of_the_prompt_of_an_agent_that_begins_afresh() {
        let mut fresh = launch(None, None);
        let Program::Agent(call) = &mut fresh.program else { panic!("it is an agent") };
        call.brief = Some("# Brief\n".into());
        let mut continued = fresh.clone();
        let found = argv(&["p", "{prompt}"], fresh);
        assert!(found[1].starts_with("say {model}\n\nAn earlier attempt"), "{found:?}");
        assert!(found[1].ends_with("\n\n# Brief\n"), "{found:?}");
        let Program::Agent(call) = &mut continued.program else { panic!("it is an agent") };
        call.goes_on_in = Some("s-1".into());
        assert!(!argv(&["p"], continued)[3].contains("# Brief"));
    }

    #[test]
    fn a_program_that_is_not_there_says_how_to_install_it() {
        let text = b"onward: 1\nname: w\nsteps: [{ id: a, agent: claude, prompt: p }]\n";
        let mut nothing = |path: &str| Err(format!("{path} is not there"));
        let workflow = onward_core::workflow::load("w.yaml", text, &mut nothing).unwrap().workflow;
        assert_eq!(missing(&workflow, &Commands::new(), &|_| true), None);
        let error = missing(&workflow, &Commands::new(), &|_| false).unwrap();
        assert_eq!(error.to_string(), "agent `claude`: the program `claude` is not on the PATH");
        let hint = error.hint();
        assert!(hint.contains("npm install -g @anthropic-ai/claude-code"), "{hint}");
        assert!(hint.contains("`agents.claude.command = ["), "{hint}");
    }

    #[test]
    fn an_agent_without_a_command_says_where_to_put_one() {
        let mut launch = launch(None, None);
        let Program::Agent(call) = &mut launch.program else { panic!("it is an agent") };
        call.adapter = "scribe".into();
        let known = Nothing::default();
        let error = known.known(&[]).resolve(&mut launch, "r", &path).unwrap_err();
        assert_eq!(error.to_string(), "agent `scribe` has no command");
        assert_eq!(error.hint(), own_agent("scribe"));
    }

    #[test]
    fn a_built_in_function_is_this_program() {
        let mut call = launch(None, None);
        let with = serde_json::json!({"round": 2});
        call.program = Program::Call { name: "conference.begin".into(), with };
        let nothing = Nothing::default();
        let call_with = ["onward".into(), "call".into()];
        let known = nothing.known(&call_with);
        let needed = known.resolve(&mut call, "r", &path).unwrap();
        assert_eq!(call.program.argv(), ["onward", "call", "conference.begin"]);
        assert_eq!(needed[0].1, br#"{"round":2}"#);
        assert!(call.env["ONWARD_WITH"].ends_with(".2.with"), "{call:?}");
        call.program = Program::Call { name: "no.such".into(), with: serde_json::Value::Null };
        assert!(known.resolve(&mut call, "r", &path).is_err());
    }
}
