//! Agent programs: how one is started, continued and stopped, and what its output means.
//!
//! - [`Adapter`] is one kind of program; [`ADAPTERS`] is the table of all, by name.
//! - `command` is the configured command line, `lines` onward's own protocol for scripts.
//! - `resolve` turns an agent's name into an argument vector, `transcripts` and `sessions` look at
//!   what the programs keep in their own files.
//!
//! Invariant: an adapter is a pure function of an order or of bytes. It opens no file and starts no
//! process, and nothing in an agent's output can make it panic: what it does not understand, it
//! passes over.

pub mod command;
pub mod lines;
pub mod resolve;
pub mod sessions;
pub mod transcripts;

use std::{collections::BTreeMap, fmt};

use onward_core::{launch::StopSignal, said::Said};

pub use resolve::{AgentError, Commands, Known, missing};
pub use transcripts::{Continuation, Continuations};

/// One kind of agent program.
pub trait Adapter: Sync {
    /// The word in the configuration.
    fn name(&self) -> &'static str;
    /// The argument vector that begins a session.
    fn start(&self, order: &Order<'_>) -> Vec<String>;
    /// The one that continues `session`. The whole order is given again, because flags do not
    /// travel with a session.
    fn go_on(&self, session: &str, order: &Order<'_>) -> Vec<String>;
    /// The signal that makes the program and its tools tidy up; the supervisor kills what is left
    /// after the grace.
    fn stop(&self) -> StopSignal {
        StopSignal::Term
    }
    /// Whether [`read`](Self::read) finds anything in the output. Where it does not, the engine
    /// does not read it, and standard output is the answer.
    fn understands(&self) -> bool;
    /// Whether the program always says how it ended.
    fn closes(&self) -> bool;
    /// Takes in more of the output: whole lines, except that the last one of an attempt may lack
    /// its newline. Called with the same lines again after a crash, on a new [`Said`].
    fn read(&self, from: Stream, lines: &[u8], said: &mut Said);
}

impl fmt::Debug for dyn Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
    /// A file with the system prompt.
    pub system_file: Option<&'a str>,
    /// The id for a new session, where the program takes one.
    pub session: &'a str,
}

/// All adapters, by name.
pub const ADAPTERS: [&dyn Adapter; 2] = [&command::Command, &lines::Lines];

/// The adapter that a configuration names.
pub fn named(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.into_iter().find(|adapter| adapter.name() == name)
}

/// The names of the adapters that are not the default, by agent.
pub type Adapters = BTreeMap<String, String>;

/// The adapter of an agent: by its name in the workflow, then by the program it uses.
pub fn adapter_of(agent: &str, program: &str, configured: &Adapters) -> &'static dyn Adapter {
    let name = configured.get(agent).or_else(|| configured.get(program));
    name.and_then(|name| named(name)).unwrap_or(&command::Command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_found_by_the_nearer_name_and_has_one_name_of_its_own() {
        let configured = [("writer", "lines"), ("claude", "command")];
        let configured = configured.map(|(agent, name)| (agent.to_owned(), name.to_owned()));
        let configured = Adapters::from(configured);
        let name = |agent, program| adapter_of(agent, program, &configured).name();
        assert_eq!(name("writer", "claude"), "lines");
        assert_eq!(name("reader", "claude"), "command");
        assert_eq!(name("reader", "codex"), "command");
        for adapter in ADAPTERS {
            assert_eq!(named(adapter.name()).unwrap().name(), adapter.name());
        }
        assert!(named("no such").is_none());
    }

    #[test]
    fn no_output_makes_an_adapter_panic() {
        let junk: [&[u8]; 9] = [
            b"",
            b"\n\n",
            b"\0\0\0\n",
            b"{",
            b"{\"spent\":{\"usd\":1e999,\"input_tokens\":-1}}\n",
            b"{\"spent\":[],\"session\":7,\"answer\":{},\"limit\":3,\"error\":[],\"denied\":{}}\n",
            b"{\"limit\":{\"resets_at\":99999999999999999999}}\n",
            b"{\"limit\":{\"resets_at\":\"soon\",\"provider\":null}}\n",
            b"\xff\xfe{\"answer\":\"x\"}\n[[[[\n",
        ];
        for adapter in ADAPTERS {
            let mut said = Said::nothing_yet(adapter.closes());
            for bytes in junk {
                adapter.read(Stream::Out, bytes, &mut said);
                adapter.read(Stream::Err, bytes, &mut said);
            }
            assert_eq!((said.answer, said.spent.input_tokens), (None, 0), "{adapter:?}");
        }
    }
}
