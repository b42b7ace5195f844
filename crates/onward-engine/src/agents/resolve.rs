//! From an agent's name to its command line.
//!
//! An attempt that continues the session of the one before it takes the agent's `continue` command,
//! with every placeholder filled again: flags do not travel with a session. A built-in function is
//! this program itself, told by name and by a file what to do.
//!
//! Invariant: nothing is written here. The files that a launch needs are handed back, and the
//! caller writes them before it spawns.

use std::{collections::BTreeMap, ffi::OsString};

use onward_core::{
    digest::Digest,
    launch::{AgentCall, Launch, Program, out_name},
    workflow::model::{Kind, Step, Workflow},
};

use super::{
    Adapters, Order, adapter_of,
    transcripts::{Continuation, Continuations},
};

/// The commands by agent name, as configured.
pub type Commands = BTreeMap<String, Vec<String>>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    #[error("agent `{0}` has no command")]
    NoCommand(String),
    #[error("the command of agent `{0}` is empty")]
    EmptyCommand(String),
    #[error("nothing says how agent `{0}` goes on in a session")]
    NoContinuation(String),
    #[error("there is no built-in function `{0}`")]
    NoCall(String),
}

impl AgentError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoCommand(name) | Self::EmptyCommand(name) => {
                format!("put [agents.{name}] command = [...] in .onward/config.toml")
            }
            Self::NoContinuation(name) => {
                format!("put `continue` and `transcript` under [agents.{name}] again")
            }
            Self::NoCall(_) => "use a `run` step instead, or another version of onward".to_owned(),
        }
    }
}

/// Every agent and call of a workflow that could not be started, before anything is.
pub fn missing(workflow: &Workflow, commands: &Commands) -> Option<AgentError> {
    workflow.steps.iter().find_map(|step| missing_in(step, workflow, commands))
}

fn missing_in(step: &Step, workflow: &Workflow, commands: &Commands) -> Option<AgentError> {
    match &step.kind {
        Kind::Run { .. } | Kind::Gate(_) => None,
        Kind::Call { name, .. } => no_call(name),
        Kind::Agent { agent, .. } => {
            let declared = workflow.agents.get(agent);
            let adapter = declared.map_or(agent.as_str(), |agent| &agent.adapter);
            command_of(agent, adapter, commands).err()
        }
        Kind::Group { steps } => steps.iter().find_map(|step| missing_in(step, workflow, commands)),
        Kind::Sub { workflow, .. } => missing(workflow, commands),
    }
}

fn no_call(name: &str) -> Option<AgentError> {
    (!onward_dialects::builtin::CALLS.contains(&name)).then(|| AgentError::NoCall(name.to_owned()))
}

fn command_of<'c>(
    name: &str,
    adapter: &str,
    commands: &'c Commands,
) -> Result<&'c [String], AgentError> {
    let found = commands.get(name).or_else(|| commands.get(adapter));
    match found {
        None => Err(AgentError::NoCommand(adapter.to_owned())),
        Some(command) if command.is_empty() => Err(AgentError::EmptyCommand(adapter.to_owned())),
        Some(command) => Ok(command),
    }
}

/// How the agent continues a session, if it keeps any.
pub(crate) fn continuation_of<'c>(
    name: &str,
    adapter: &str,
    continuations: &'c Continuations,
) -> Option<&'c Continuation> {
    continuations.get(name).or_else(|| continuations.get(adapter))
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

    /// The session that an attempt will have, where its agent takes an id that we choose.
    pub(crate) fn session_of(&self, launch: &Launch, run: &str) -> Option<String> {
        let Program::Agent(call) = &launch.program else { return None };
        continuation_of(&call.name, &call.adapter, self.continuations)?;
        if let Some(session) = &call.goes_on_in {
            return Some(session.clone());
        }
        let command = command_of(&call.name, &call.adapter, self.commands).ok()?;
        let takes_one = command.iter().any(|word| word.contains("{session}"));
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
        let how = continuation_of(&call.name, &call.adapter, self.continuations);
        let (command, go_on_command) = match (&call.goes_on_in, how) {
            (None, _) => (command_of(&call.name, &call.adapter, self.commands)?, &[][..]),
            (Some(_), Some(how)) => (&[][..], how.command.as_slice()),
            (Some(_), None) => return Err(AgentError::NoContinuation(call.adapter)),
        };
        if call.goes_on_in.is_some() {
            call.prompt = go_on(&call.prompt);
        }
        let file = |ending: &str| out_name(&launch.step, launch.attempt, ending);
        let mut needed = vec![(file("prompt"), call.prompt.clone().into_bytes())];
        if let Some(text) = &call.system {
            needed.push((file("system"), text.clone().into_bytes()));
        }
        let system_file = call.system.as_ref().map(|_| path(&file("system")));
        let session = session_id(run, launch);
        let adapter = adapter_of(&call.name, &call.adapter, self.adapters);
        let order = Order {
            command,
            go_on_command,
            prompt: &call.prompt,
            model: call.model.as_deref(),
            system_file: system_file.as_deref(),
            session: &session,
        };
        let argv = match &call.goes_on_in {
            None => adapter.start(&order),
            Some(session) => adapter.go_on(session, &order),
        };
        launch.env.insert("ONWARD_PROMPT".to_owned(), path(&file("prompt")));
        launch.env.extend(system_file.map(|file| ("ONWARD_SYSTEM".to_owned(), file)));
        launch.stop = Some(adapter.stop());
        launch.program = Program::Argv(argv);
        Ok(needed)
    }
}

/// A session that is continued always needs a prompt.
fn go_on(prompt: &str) -> String {
    format!(
        "You were interrupted in the middle of this task. What you changed so far is still in \
         place, but a command that was running may have been cut short. See how far you got, then \
         finish. The task was:\n\n{prompt}"
    )
}

/// In the form of a UUID, and always the same for the same attempt.
fn session_id(run: &str, launch: &Launch) -> String {
    let attempt = launch.attempt.to_le_bytes();
    let parts = [run.as_bytes(), launch.step.as_str().as_bytes(), attempt.as_slice()];
    let hex = Digest::of_parts(parts).to_string();
    // Version 8 is the one for ids of one's own making.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use onward_core::address::Address;

    use super::*;

    fn launch(model: Option<&str>, system: Option<&str>) -> Launch {
        let call = AgentCall {
            name: "writer".into(),
            adapter: "claude".into(),
            model: model.map(str::to_owned),
            system: system.map(str::to_owned),
            prompt: "say {model}".into(),
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
    fn an_agent_without_a_command_says_where_to_put_one() {
        let mut launch = launch(None, None);
        let known = Nothing::default();
        let error = known.known(&[]).resolve(&mut launch, "r", &path).unwrap_err();
        assert_eq!(error.to_string(), "agent `claude` has no command");
        assert_eq!(error.hint(), "put [agents.claude] command = [...] in .onward/config.toml");
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
