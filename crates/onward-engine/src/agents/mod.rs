//! Agent programs: how one is started, continued and stopped, and what its output means.
//!
//! - [`Adapter`] is one kind of program; [`ADAPTERS`] is the table of all, by name. Its [`Card`]
//!   says what can be done with the program.
//! - `claude` (with `qwen`), `codex`, `gemini`, `opencode`, `copilot` and `aider` are programs that
//!   onward knows; `generic` is one that the configuration describes, `command` a configured
//!   command line, `lines` onward's own protocol for scripts.
//! - `events` reads programs that print one JSON event a line, `notice` tells what a program's
//!   error text means, `reset` when the limit in it is lifted, `quiet` when none is started;
//!   `limits` is what a person said about all that.
//! - `resolve` turns an agent's name into an argument vector, `transcripts` and `sessions` look at
//!   what the programs keep in their own files.
//!
//! Invariant: an adapter is a pure function of an order or of bytes. It opens no file and starts no
//! process, and nothing in an agent's output can make it panic: what it does not understand, it
//! passes over.

pub mod aider;
pub mod claude;
pub mod codex;
pub mod command;
pub mod copilot;
mod events;
pub mod gemini;
pub mod generic;
pub mod limits;
pub mod lines;
pub mod notice;
pub mod opencode;
pub mod quiet;
pub mod reset;
pub mod resolve;
pub mod sessions;
mod shaped;
pub mod transcripts;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, ops::Deref, path::PathBuf, sync::Arc};

use onward_core::{launch::StopSignal, said::Said, workflow::permissions::Permissions};

pub use resolve::{AgentError, Commands, Known, missing, missing_agent, missing_of, own_agent};
pub use transcripts::{Continuation, Continuations};

/// One kind of agent program.
pub trait Adapter: Send + Sync {
    fn card(&self) -> &Card;
    /// The program's own argument vector. The whole order is given when a session is continued too,
    /// because flags do not travel with a session.
    fn argv(&self, _: &Order<'_>, _: Entry<'_>) -> Vec<String> {
        Vec::new()
    }
    /// The argument vector that begins a session: as configured, or the program's own.
    fn start(&self, order: &Order<'_>) -> Vec<String> {
        if order.command.is_empty() {
            return self.argv(order, Entry::New(order.session));
        }
        command::fill(order.command, order, order.session)
    }
    /// The one that continues `session`.
    fn go_on(&self, session: &str, order: &Order<'_>) -> Vec<String> {
        if order.go_on_command.is_empty() {
            return self.argv(order, Entry::Continued(session));
        }
        command::fill(order.go_on_command, order, session)
    }
    /// The provider whose limits all runs of the machine share, where one is known.
    fn shares(&self) -> Option<&str> {
        self.card().program.map(|_| self.card().provider)
    }
    /// What the program needs in its environment besides what the user gave it.
    fn env(&self, _: &Order<'_>) -> Vec<(String, String)> {
        Vec::new()
    }
    /// Takes in more of the output: whole lines, except that the last one of an attempt may lack
    /// its newline. Called with the same lines again after a crash, on a new [`Said`].
    fn read(&self, from: Stream, lines: &[u8], said: &mut Said);
    /// The piece of a message that a line has, where the next line may have more of it.
    fn piece(&self, _line: &str) -> Option<String> {
        None
    }
    /// One line of output in words for a person; empty = nothing worth reading.
    fn tell(&self, line: &str) -> Vec<String> {
        vec![line.to_owned()]
    }
}

impl fmt::Debug for dyn Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.card().name)
    }
}

/// How a program enters its session.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A session begins; the id for it, where the program takes one.
    New(&'a str),
    Continued(&'a str),
}

impl Entry<'_> {
    /// The flag of a program that takes an id either way.
    fn flag(self, new: &str, continued: &str) -> [String; 2] {
        match self {
            Self::New(id) => [new.to_owned(), id.to_owned()],
            Self::Continued(id) => [continued.to_owned(), id.to_owned()],
        }
    }
}

/// What can be done with a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// The word in the configuration and in `use`.
    pub name: &'static str,
    /// The program on the PATH; `None` = the configuration has the command.
    pub program: Option<&'static str>,
    /// The command that installs it.
    pub install: Option<&'static str>,
    pub sessions: Sessions,
    /// Where the program keeps a session; see [`Continuation::transcript`].
    pub transcript: Option<&'static str>,
    /// It takes a JSON Schema for its answer. Where it does not, the schema is in the prompt.
    pub takes_schema: bool,
    pub cost: Cost,
    pub limits: Limits,
    /// Tools can be allowed by name.
    pub names_tools: bool,
    /// It always says how it ended.
    pub closes: bool,
    /// Whose limits it meets.
    pub provider: &'static str,
    /// Variables that may hold the credential, the first that is set counts.
    pub credentials: &'static [&'static str],
    /// A file below the home directory that names the account, and where in its JSON.
    pub account: Option<(&'static str, &'static str)>,
    /// The variable by which a user moves what the program keeps, and where that is below the home
    /// directory otherwise.
    pub moved_by: Option<(&'static str, &'static str)>,
    /// The signal that makes the program and its tools tidy up; the supervisor kills what is left
    /// after the grace.
    pub stop: StopSignal,
}

impl Card {
    /// What is true of most; an adapter says what differs.
    pub(crate) const fn usual(name: &'static str, provider: &'static str) -> Self {
        Self {
            name,
            program: Some(name),
            install: None,
            sessions: Sessions::None,
            transcript: None,
            takes_schema: false,
            cost: Cost::Tokens,
            limits: Limits::Words,
            names_tools: true,
            closes: true,
            provider,
            credentials: &[],
            account: None,
            moved_by: None,
            stop: StopSignal::Term,
        }
    }

    /// Where a file is that the program keeps at `path` below the home directory, if the user has
    /// moved it.
    pub(crate) fn moved(
        &self,
        path: &str,
        variable: impl Fn(&str) -> Option<PathBuf>,
    ) -> Option<PathBuf> {
        let (name, usual) = self.moved_by?;
        let rest = path.strip_prefix(usual).and_then(|it| it.strip_prefix('/'));
        Some(variable(name)?.join(rest.unwrap_or(path)))
    }

    /// A program that only the configuration knows.
    pub(crate) const fn configured(name: &'static str) -> Self {
        Self { program: None, ..Self::usual(name, "unknown") }
    }
}

/// Who chooses the id of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Onward, before the program is started.
    Chosen,
    /// The program, which says it.
    Told,
    /// It keeps none, or nothing is known about them.
    None,
}

/// What a program says about its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    Usd,
    Tokens,
    Unknown,
}

/// How a program says that a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// With the moment of the reset, as a number.
    Moment,
    /// In words, often with a time of day.
    Words,
}

/// Where a line was printed. Some programs say on standard error alone why they did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// What a program is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The configured command lines, with placeholders; adapters of known programs need none.
    pub command: &'a [String],
    pub go_on_command: &'a [String],
    pub prompt: &'a str,
    pub model: Option<&'a str>,
    /// The system prompt, and a file with it.
    pub system: Option<&'a str>,
    pub system_file: Option<&'a str>,
    /// The id for a new session, where the program takes one.
    pub session: &'a str,
    pub permissions: Permissions,
    /// Tools that are allowed besides, in the program's own words.
    pub allow: &'a [String],
    /// The JSON Schema of the answer, and a file with it.
    pub schema: Option<&'a str>,
    pub schema_file: Option<&'a str>,
    /// A directory outside the tree it works in, with files that it is told to read: a long prompt,
    /// what an earlier attempt left.
    pub reads: Option<&'a str>,
}

impl Order<'_> {
    /// The prompt of a program that takes no system prompt of its own beside its own one.
    fn whole_prompt(&self) -> String {
        match self.system {
            Some(system) => format!("{system}\n\n{}", self.argument()),
            None => self.argument(),
        }
    }

    /// The prompt as an argument that no parser takes for an option.
    fn argument(&self) -> String {
        if self.prompt.starts_with('-') {
            return format!("\n{}", self.prompt);
        }
        self.prompt.to_owned()
    }
}

/// All adapters that need no description, by name.
pub const ADAPTERS: [&dyn Adapter; 9] = [
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::OpenCode,
    &claude::Qwen,
    &copilot::Copilot,
    &aider::Aider,
    &command::Command,
    &lines::Lines,
];

/// An adapter that is known, or one that the configuration describes.
#[derive(Clone)]
pub enum Spoken {
    Known(&'static dyn Adapter),
    Described(Arc<generic::Generic>),
}

impl Deref for Spoken {
    type Target = dyn Adapter;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Known(adapter) => *adapter,
            Self::Described(adapter) => &**adapter,
        }
    }
}

impl fmt::Debug for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.card().name)
    }
}

/// The adapter that a configuration names.
pub fn named(name: &str) -> Option<Spoken> {
    ADAPTERS.into_iter().find(|adapter| adapter.card().name == name).map(Spoken::Known)
}

/// The adapter of a program that onward knows without configuration.
pub fn known_program(name: &str) -> Option<Spoken> {
    named(name).filter(|adapter| adapter.card().program.is_some())
}

/// The adapters that the configuration names, by agent.
pub type Adapters = BTreeMap<String, Spoken>;

/// The adapter of an agent: by its name in the workflow, then by the program it uses. A program
/// that onward knows is spoken to as itself, unless the configuration has a command for it.
pub fn adapter_of(
    agent: &str,
    program: &str,
    configured: &Adapters,
    commands: &Commands,
) -> Spoken {
    let chosen = configured.get(agent).or_else(|| configured.get(program)).cloned();
    let own = || {
        let has_command = commands.contains_key(agent) || commands.contains_key(program);
        known_program(program).filter(|_| !has_command)
    };
    chosen.or_else(own).unwrap_or(Spoken::Known(&command::Command))
}
