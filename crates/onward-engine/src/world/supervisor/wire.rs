//! What engine and supervisor say to each other: one JSON object a line, both ways.
//!
//! Invariant: the first line of a connection is `hello`, answered by `welcome` or `refused`; after
//! that requests go down and reports come up, with no answer owed to any single request.

use std::ffi::OsString;

use onward_core::{
    address::Address,
    id::RunId,
    launch::{Launch, Seal, StopSignal},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::linux::Identity;

/// Goes up when the two ends can no longer understand each other.
pub(super) const PROTOCOL: u32 = 1;
/// A longer line is not from us.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(super) enum Request {
    Hello(Hello),
    /// All that may start, in one message: at once, or in their order while fewer than `slots`
    /// attempts are under way.
    Spawn {
        launches: Vec<Launch>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slots: Option<u32>,
    },
    /// What still waits for a slot does not start any more.
    Withdraw,
    Stop {
        step: Address,
        attempt: u32,
        how: Stop,
    },
    StopAll {
        how: Stop,
    },
    /// Exit as soon as no child remains.
    Shutdown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: u32,
    pub(super) epoch: u32,
    pub(super) run: RunId,
    /// The environment the engine was started in; children of this connection inherit it.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Where the run lies now: its directory and its project's. Engines of earlier versions do not
    /// say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dirs: Option<(OsString, OsString)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(super) enum Report {
    /// `log_bytes` is how long the log was: what came before is read from it, what comes after is
    /// reported here.
    Welcome {
        alive: Vec<Alive>,
        log_bytes: u64,
    },
    Refused(Refusal),
    Spawned(Alive),
    Sealed(Seal),
    /// It waited for a slot, was never spawned, and never will be.
    Withdrawn {
        step: Address,
        attempt: u32,
    },
    /// The last words of one that cannot go on.
    GaveUp {
        why: String,
    },
}

/// One attempt that has not been sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    pub step: Address,
    pub attempt: u32,
    pub pid: i32,
    pub start_time: u64,
}

impl Alive {
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_time: self.start_time }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub(super) enum Refusal {
    /// An engine with this epoch, not lower than the asking one's, was here.
    Epoch {
        epoch: u32,
    },
    Version {
        version: u32,
    },
    Run {
        run: RunId,
    },
}

/// How an attempt is brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub signal: StopSignal,
    /// What still lives after this long is killed; at once when 0.
    pub grace_ms: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Self { signal: StopSignal::Term, grace_ms: 5_000 }
    }
}

pub(super) fn encode(message: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(&mut *out, message).expect("a message is plain data");
    out.push(b'\n');
}

/// A message whose kind stands first, as we write it, is parsed straight into what it carries: a
/// tag that may stand anywhere is found only by keeping everything else for later.
pub(super) trait Message: DeserializeOwned {
    /// `None` for what is not that common; anything else is for the parser.
    fn straight(line: &[u8]) -> Option<Self>;
}

impl Message for Request {
    fn straight(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Spawn {
            launches: Vec<Launch>,
            #[serde(default)]
            slots: Option<u32>,
        }
        line.strip_prefix(br#"{"ask":"spawn","#)?;
        let Spawn { launches, slots } = serde_json::from_slice(line).ok()?;
        Some(Self::Spawn { launches, slots })
    }
}

impl Message for Report {
    fn straight(line: &[u8]) -> Option<Self> {
        line.strip_prefix(br#"{"say":"sealed","#)?;
        serde_json::from_slice(line).ok().map(Self::Sealed)
    }
}

pub(super) fn decode<T: Message>(line: &[u8]) -> Option<T> {
    T::straight(line).or_else(|| serde_json::from_slice(line).ok())
}

/// Bytes as they come, cut into lines.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Up to here there is no newline.
    searched: usize,
}

impl Inbox {
    /// Says whether what is held is still within the bound.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() <= LINE_BYTES_MAX
    }

    pub(super) fn next_line(&mut self) -> Option<Vec<u8>> {
        let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        let Some(length) = found.map(|at| self.searched + at) else {
            self.searched = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(length + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.pop();
        self.searched = 0;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_came_in() {
        let text = b"one\n\nthree\nrest";
        for cut in 0..=text.len() {
            let mut inbox = Inbox::default();
            let mut lines = Vec::new();
            for part in [&text[..cut], &text[cut..]] {
                assert!(inbox.push(part));
                lines.extend(std::iter::from_fn(|| inbox.next_line()));
            }
            assert_eq!(lines, [&b"one"[..], b"", b"three"], "cut at {cut}");
            assert!(inbox.push(b"\n"));
            assert_eq!(inbox.next_line().unwrap(), b"rest");
        }
    }

    #[test]
    fn what_is_parsed_straight_is_what_the_parser_finds() {
        let launch = r#"{"step":"a","attempt":1,"program":{"argv":["x"]},"cwd":"","env":{"A":"1"},
            "check":null,"timeout_ms":null,"idle_ms":null,"sync_seal":false}"#;
        let spawn = format!(r#"{{"ask":"spawn","launches":[{launch}]}}"#);
        let queue = format!(r#"{{"ask":"spawn","launches":[{launch}],"slots":2}}"#);
        for spawn in [spawn, queue] {
            let found = Request::straight(spawn.as_bytes()).unwrap();
            assert_eq!(serde_json::from_str::<Request>(&spawn).unwrap(), found);
        }
        let sealed = r#"{"say":"sealed","step":"a","attempt":2,"at":"2026-11-17T12:00:00.000001Z",
            "ending":{"how":"exited","code":3}}"#;
        let found = Report::straight(sealed.as_bytes()).unwrap();
        assert_eq!(serde_json::from_str::<Report>(sealed).unwrap(), found);
        assert_eq!(Report::straight(br#"{"say":"sealed","step":"a"}"#), None);
        assert_eq!(decode::<Request>(br#"{"ask":"shutdown"}"#), Some(Request::Shutdown));
    }

    #[test]
    fn a_message_is_one_line_whatever_it_says() {
        use std::os::unix::ffi::OsStringExt as _;
        let env = vec![("A".into(), OsString::from_vec(b"x\n\xff".to_vec()))];
        let run: RunId = "r-1".parse().unwrap();
        let hello = Request::Hello(Hello { version: PROTOCOL, epoch: 3, run, env, dirs: None });
        let mut bytes = Vec::new();
        encode(&hello, &mut bytes);
        let line = bytes.strip_suffix(b"\n").unwrap();
        assert!(!line.contains(&b'\n'));
        assert_eq!(decode::<Request>(line), Some(hello));
    }
}
