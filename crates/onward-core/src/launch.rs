//! What the hands are asked to do, and what they report: plain data between decider and supervisor.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    address::Address, event::is_zero, evidence::Ending, mark::Mark, state::StepState,
    time::Timestamp, workflow::permissions::Permissions,
};

/// One attempt, ready to be spawned. Everything is rendered; nothing is looked up later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub step: Address,
    pub attempt: u32,
    pub program: Program,
    /// Relative to the project directory; empty for the project directory itself.
    pub cwd: String,
    /// Added to the environment the engine was started in.
    pub env: BTreeMap<String, String>,
    /// A shell command that must exit 0 after the program did.
    pub check: Option<String>,
    /// Wall time, counted while the machine is awake.
    pub timeout_ms: Option<u64>,
    /// Time without any output.
    pub idle_ms: Option<u64>,
    /// Whether the seal must be on disk before it is reported: agents, and effects outside.
    pub sync_seal: bool,
    /// What is run when program and check are over and nothing of them lives: it prints the
    /// snapshot of the tree that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Vec<String>>,
    /// The signal that makes an agent and its tools tidy up; `None` = TERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopSignal>,
    /// The start that this is; repeated in every line about the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Mark>,
    /// Files and patterns, from the project, that are brought to the disk before a seal that is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
}

/// The polite request to end. What still lives after the grace is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    Term,
    Int,
}

/// `out/<address>.<attempt>.<ending>` in the run's directory.
pub fn out_name(step: &Address, attempt: u32, ending: &str) -> String {
    format!("out/{}.{attempt}.{ending}", step.file_name())
}

/// What is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Spawned directly: no shell stands between us and the child.
    Argv(Vec<String>),
    /// Handed to `/bin/sh -c`.
    Shell(String),
    /// An agent, before its adapter has turned it into an argument vector.
    Agent(AgentCall),
    /// A built-in function of a dialect: this very program, before it is told how to call it.
    Call { name: String, with: serde_json::Value },
}

/// What an adapter needs to know to start an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCall {
    /// The name under `agents:`, or the adapter itself.
    pub name: String,
    pub adapter: String,
    pub model: Option<String>,
    /// The text of the system prompt.
    pub system: Option<String>,
    pub prompt: String,
    #[serde(default)]
    pub permissions: Permissions,
    /// Tools that are allowed besides, in the program's own words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The JSON Schema of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Why the result of its last turn does not count, where it is to give it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<String>,
    /// What happened before, for an agent that begins without a memory of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// The session of its own to go on in; `None` = a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on_in: Option<String>,
}

impl Program {
    /// The full argument vector, as it is journaled.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Argv(argv) => argv.clone(),
            Self::Shell(command) => vec!["/bin/sh".into(), "-c".into(), command.clone()],
            Self::Agent(call) => vec!["agent".into(), call.adapter.clone()],
            Self::Call { name, .. } => vec!["call".into(), name.clone()],
        }
    }

    /// A shell command that needs no shell is split into words here, which saves one process.
    ///
    /// Only when every character is one that no shell gives a meaning to; anything else goes to the
    /// shell whole.
    pub fn from_shell(command: &str) -> Self {
        let plain = |c: char| c.is_ascii_alphanumeric() || " _-./:,+@%".contains(c);
        let first = command.split(' ').find(|word| !word.is_empty());
        let direct = command.chars().all(plain) && first.is_some_and(|word| !is_builtin(word));
        if direct {
            let words = command.split(' ').filter(|word| !word.is_empty());
            Self::Argv(words.map(str::to_owned).collect())
        } else {
            Self::Shell(command.to_owned())
        }
    }
}

/// Words that mean something to a shell itself and have no program, or another one, behind them.
fn is_builtin(word: &str) -> bool {
    const BUILTINS: [&str; 46] = [
        ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done",
        "elif", "else", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "for",
        "getopts", "hash", "if", "in", "jobs", "local", "read", "readonly", "return", "set",
        "shift", "source", "then", "times", "trap", "type", "ulimit", "umask", "unalias", "unset",
        "until", "wait", "while", "echo",
    ];
    BUILTINS.contains(&word)
}

/// How an attempt ended, as the supervisor saw it and wrote to `exits.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    pub step: Address,
    pub attempt: u32,
    pub at: Timestamp,
    pub ending: Ending,
    /// How the check ended, where there is one and the program exited 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Ending>,
    /// The tree after it, where there was a snapshot before it and the supervisor took this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whose end it is. Seals of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Mark>,
    /// What it left was on the disk before this was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// How long it had waited for a slot when it was spawned, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited: u64,
}

impl Seal {
    /// Whether it still tells how the attempt ended when the machine was restarted since: a success
    /// is only as good as what it left, and that was on the disk before it, or may be gone.
    pub fn outlasts_a_restart(&self) -> bool {
        let is_good = |ending: &Ending| ending.is_success();
        self.settled || !is_good(&self.ending) || !self.check.as_ref().is_none_or(is_good)
    }

    /// Whether it is the end of the step's last start. One of a start that the journal lost has the
    /// same number as the attempt that was made in its place, and another nonce.
    pub fn is_of(&self, step: &Address, entry: &StepState) -> bool {
        let nonce = entry.started.as_deref().and_then(|it| it.nonce);
        self.step == *step
            && self.attempt == entry.attempts
            && self.of.as_ref().map(|it| it.nonce) == nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_shell_characters_is_spawned_directly() {
        let argv = |words: &[&str]| Program::Argv(words.iter().map(|it| (*it).into()).collect());
        assert_eq!(Program::from_shell("/bin/true"), argv(&["/bin/true"]));
        assert_eq!(Program::from_shell("make  -j2 all"), argv(&["make", "-j2", "all"]));
        for shell in
            ["a | b", "echo $X", "a > b", "a && b", "cd x", "a 'b'", "X=1 a", "a ~", "a *", "", " "]
        {
            assert_eq!(Program::from_shell(shell), Program::Shell(shell.into()), "{shell}");
        }
    }
}
