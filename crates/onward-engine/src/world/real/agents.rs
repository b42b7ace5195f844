//! From an agent's name to its command line.
//!
//! A configured command is a list of arguments with the placeholders `{prompt}`, `{model}`,
//! `{system_file}` and `{session}`. An argument whose placeholder has no value is left out, and
//! with it the option (`-x`, `--xyz`) right before it. An attempt that goes on in the session of
//! the one before it takes the agent's `continue` instead, with everything filled in anew: flags
//! do not travel with a session. A built-in function is this very program, told by name and by a
//! file what to do; one that starts an agent gets the agent's command.

use std::{collections::BTreeMap, ffi::OsString};

use onward_core::{
    digest::Digest,
    launch::{AgentCall, Launch, Program},
    workflow::model::{Kind, Step, Workflow},
};

use super::transcripts::{Continuation, Continuations};
use crate::{
    world::out_name,
    world::{At, Stop},
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
            let via = declared.and_then(|agent| agent.via.as_deref());
            if let Some(error) = via.and_then(no_call) {
                return Some(error);
            }
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

/// How the agent goes on in a session, if it keeps any.
pub(super) fn continuation_of<'c>(
    name: &str,
    adapter: &str,
    continuations: &'c Continuations,
) -> Option<&'c Continuation> {
    continuations.get(name).or_else(|| continuations.get(adapter))
}

/// The session that an attempt will have, where its agent keeps sessions.
pub(super) fn session_of(
    launch: &Launch,
    continuations: &Continuations,
    run: &str,
) -> Option<String> {
    let Program::Agent(call) = &launch.program else { return None };
    if call.via.is_some() {
        // Whatever starts it makes its place ready first, half-done edits or not.
        return None;
    }
    continuation_of(&call.name, &call.adapter, continuations)?;
    Some(call.goes_on_in.clone().unwrap_or_else(|| session_id(run, launch)))
}

/// Writes a file and says how a child names it.
type Write<'a> = dyn FnMut(At<'_>, &[u8]) -> Result<String, Stop> + 'a;

/// What stands for a name.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) commands: &'a Commands,
    pub(super) continuations: &'a Continuations,
    /// The command that runs a built-in function; its name is added to it.
    pub(super) call: &'a [OsString],
}

impl Known<'_> {
    fn call(&self, name: &str) -> Result<Vec<String>, Stop> {
        let words = self.call.iter().map(|word| word.to_str().map(str::to_owned));
        let words: Option<Vec<String>> = words.chain([Some(name.to_owned())]).collect();
        let known = words.filter(|_| !self.call.is_empty() && no_call(name).is_none());
        known.ok_or_else(|| cannot(&AgentError::NoCall(name.to_owned())))
    }
}

/// Makes the program of `launch` one that can be spawned.
pub(super) fn resolve(
    launch: &mut Launch,
    known: Known<'_>,
    run: &str,
    write: &mut Write<'_>,
) -> Result<(), Stop> {
    let call = match &launch.program {
        Program::Argv(_) | Program::Shell(_) => return Ok(()),
        Program::Call { name, with } => {
            let argv = known.call(name)?;
            let file = out_name(&launch.step, launch.attempt, "with");
            let file = write(At::Run(&file), with.to_string().as_bytes())?;
            launch.env.insert("ONWARD_WITH".to_owned(), file);
            launch.program = Program::Argv(argv);
            return Ok(());
        }
        Program::Agent(call) => call.clone(),
    };
    let (call, command) = if call.goes_on_in.is_some() {
        let how = continuation_of(&call.name, &call.adapter, known.continuations);
        let how = how.ok_or_else(|| cannot(&AgentError::NoContinuation(call.adapter.clone())))?;
        (AgentCall { prompt: go_on(&call.prompt), ..call }, how.command.as_slice())
    } else {
        let command = command_of(&call.name, &call.adapter, known.commands);
        (call.clone(), command.map_err(|it| cannot(&it))?)
    };
    let prompt = out_name(&launch.step, launch.attempt, "prompt");
    let prompt_file = write(At::Run(&prompt), call.prompt.as_bytes())?;
    let system_file = match &call.system {
        None => None,
        Some(text) => {
            let name = out_name(&launch.step, launch.attempt, "system");
            Some(write(At::Run(&name), text.as_bytes())?)
        }
    };
    let session = call.goes_on_in.clone().unwrap_or_else(|| session_id(run, launch));
    let values = Values { call: &call, system_file: system_file.as_deref(), session: &session };
    let filled = values.fill(command);
    launch.program = Program::Argv(match &call.via {
        None => filled,
        Some(via) => known.call(via)?.into_iter().chain(["--".to_owned()]).chain(filled).collect(),
    });
    launch.env.insert("ONWARD_PROMPT".to_owned(), prompt_file);
    if let Some(file) = system_file {
        launch.env.insert("ONWARD_SYSTEM".to_owned(), file);
    }
    Ok(())
}

/// A session that is taken up again always needs a word.
fn go_on(prompt: &str) -> String {
    format!(
        "You were interrupted in the middle of this task. What you changed so far is still in \
         place, but a command that was running may have been cut short. See how far you got, then \
         finish. The task was:\n\n{prompt}"
    )
}

fn cannot(error: &AgentError) -> Stop {
    Stop::Unready { what: error.to_string(), hint: error.hint() }
}

/// In the form of a UUID, and always the same for the same attempt.
fn session_id(run: &str, launch: &Launch) -> String {
    let attempt = launch.attempt.to_le_bytes();
    let parts = [run.as_bytes(), launch.step.as_str().as_bytes(), attempt.as_slice()];
    let hex = Digest::of_parts(parts).to_string();
    // Version 8 is the one for ids of one's own making.
    format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

struct Values<'a> {
    call: &'a AgentCall,
    system_file: Option<&'a str>,
    session: &'a str,
}

impl Values<'_> {
    fn fill(&self, command: &[String]) -> Vec<String> {
        let mut argv: Vec<String> = Vec::with_capacity(command.len());
        for argument in command {
            match self.filled(argument) {
                Some(filled) => argv.push(filled),
                None if argv.len() > 1 && argv.last().is_some_and(|it| it.starts_with('-')) => {
                    argv.pop();
                }
                None => {}
            }
        }
        argv
    }

    /// One pass, so that a prompt which speaks of `{model}` stays as it is.
    fn filled(&self, argument: &str) -> Option<String> {
        let values = [
            ("{prompt}", Some(self.call.prompt.as_str())),
            ("{model}", self.call.model.as_deref()),
            ("{system_file}", self.system_file),
            ("{session}", Some(self.session)),
        ];
        let mut filled = String::with_capacity(argument.len());
        let mut rest = argument;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some((name, value)) = values.iter().find(|(name, _)| rest.starts_with(name)) {
                filled.push_str((*value)?);
                rest = &rest[name.len()..];
            } else {
                filled.push('{');
                rest = &rest[1..];
            }
        }
        filled.push_str(rest);
        Some(filled)
    }
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
            via: None,
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
        }
    }

    fn argv(command: &[&str], mut launch: Launch) -> Vec<String> {
        let command = command.iter().map(|it| (*it).to_owned()).collect();
        let commands = [("claude".to_owned(), command)].into();
        let mut written = Vec::new();
        let how = Continuation {
            command: ["p", "-r", "{session}", "-m={model}", "{prompt}"].map(String::from).into(),
            transcript: String::new(),
        };
        let continuations = [("claude".to_owned(), how)].into();
        let call = &["onward".into(), "call".into()];
        let known = Known { commands: &commands, continuations: &continuations, call };
        resolve(&mut launch, known, "r-1", &mut |at, _| {
            written.push(at.path().to_owned());
            Ok(format!("/run/{}", at.path()))
        })
        .unwrap();
        assert_eq!(launch.env["ONWARD_PROMPT"], format!("/run/{}", written[0]));
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
        let (commands, continuations) = (Commands::new(), Continuations::new());
        let known = Known { commands: &commands, continuations: &continuations, call: &[] };
        let stop = resolve(&mut launch, known, "r", &mut |_, _| Ok(String::new()));
        let Err(Stop::Unready { what, hint }) = stop else { panic!("{stop:?}") };
        assert_eq!(what, "agent `claude` has no command");
        assert_eq!(hint, "put [agents.claude] command = [...] in .onward/config.toml");
    }

    #[test]
    fn a_built_in_function_is_this_program_and_may_start_an_agent() {
        let mut call = launch(None, None);
        let with = serde_json::json!({"round": 2});
        call.program = Program::Call { name: "conference.begin".into(), with };
        let (commands, continuations) = (Commands::new(), Continuations::new());
        let call_with = ["onward".into(), "call".into()];
        let known = Known { commands: &commands, continuations: &continuations, call: &call_with };
        let mut written = String::new();
        resolve(&mut call, known, "r", &mut |at, bytes| {
            written = String::from_utf8_lossy(bytes).into_owned();
            Ok(at.path().to_owned())
        })
        .unwrap();
        assert_eq!(call.program.argv(), ["onward", "call", "conference.begin"]);
        assert_eq!(written, r#"{"round":2}"#);
        assert!(call.env["ONWARD_WITH"].ends_with(".2.with"), "{call:?}");
        call.program = Program::Call { name: "no.such".into(), with: serde_json::Value::Null };
        assert!(resolve(&mut call, known, "r", &mut |_, _| Ok(String::new())).is_err());
        let mut agent = launch(None, None);
        let Program::Agent(it) = &mut agent.program else { panic!() };
        it.via = Some("conference.propose".into());
        let found = argv(&["p", "{prompt}"], agent);
        assert_eq!(found, ["onward", "call", "conference.propose", "--", "p", "say {model}"]);
    }
}
