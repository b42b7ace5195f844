//! Scripted agents, and the supervisor that holds them.
//!
//! A command is a list of acts separated by `;`: `write PATH TEXT` (in two halves), `append PATH
//! TEXT`, `delete PATH`, `result JSON`, `fail N` (exit 1 the first N times it gets that far),
//! `outside NAME` (an effect beyond the machine), `work` (takes time). Without `fail` the exit code
//! is 0.

use std::collections::{BTreeMap, VecDeque};

use onward_core::{
    address::Address,
    evidence::Ending,
    launch::{Launch, Program, Seal},
    time::Timestamp,
};

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Write {
        path: String,
        text: String,
    },
    /// Done twice, it shows.
    Append {
        path: String,
        text: String,
    },
    Delete(String),
    Result(String),
    Outside(String),
    Work,
    Exit {
        fails: u32,
    },
}

/// One living attempt.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) launch: Launch,
    pub(crate) acts: VecDeque<Act>,
    pub(crate) next_at_us: i64,
}

/// How long each act takes.
pub(crate) const ACT_US: i64 = 10_000;

impl Agent {
    pub(crate) fn new(launch: &Launch, now_us: i64) -> Self {
        let command = match &launch.program {
            Program::Argv(argv) => argv.join(" "),
            Program::Shell(command) => command.clone(),
            Program::Agent(call) => call.prompt.clone(),
            Program::Call { .. } => String::new(),
        };
        let mut fails = 0;
        let mut acts = VecDeque::new();
        for act in command.split(';').map(str::trim) {
            let (verb, rest) = act.split_once(' ').unwrap_or((act, ""));
            match verb {
                "write" => {
                    let (path, text) = rest.split_once(' ').unwrap_or((rest, "text"));
                    let half = text.chars().take(text.len() / 2).collect();
                    acts.push_back(Act::Write { path: path.to_owned(), text: half });
                    let (path, text) = (path.to_owned(), text.to_owned());
                    acts.push_back(Act::Write { path, text });
                }
                "append" => {
                    let (path, text) = rest.split_once(' ').expect("`append PATH TEXT`");
                    let (path, text) = (path.to_owned(), text.to_owned());
                    acts.push_back(Act::Append { path, text });
                }
                "delete" => acts.push_back(Act::Delete(rest.to_owned())),
                "result" => acts.push_back(Act::Result(rest.trim_matches('\'').to_owned())),
                "outside" => acts.push_back(Act::Outside(rest.to_owned())),
                "fail" => fails = rest.parse().expect("`fail N`"),
                _ => acts.push_back(Act::Work),
            }
        }
        acts.push_back(Act::Exit { fails });
        Self { launch: launch.clone(), acts, next_at_us: now_us + ACT_US }
    }
}

/// What a supervisor process holds; it may outlive the engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supervisor {
    pub(crate) agents: BTreeMap<(Address, u32), Agent>,
    /// In the order written; the first `synced` of them survive a power cut for certain.
    pub(crate) seals: Vec<Seal>,
    pub(crate) synced: usize,
    pub(crate) spawned: Vec<(Address, u32)>,
    /// Ended, and not yet written down.
    pub(crate) unsealed: Option<Ended>,
    /// Written down, and the tree after it is being recorded.
    pub(crate) recording: Option<Seal>,
    pub(crate) engine_connected: bool,
    /// Seals the connected engine has not been told of.
    pub(crate) unreported: VecDeque<Seal>,
}

/// An attempt that is over.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) seal: Seal,
    pub(crate) sync: bool,
    pub(crate) wants_snapshot: bool,
}

impl Supervisor {
    /// The next agent to act, and when.
    pub(crate) fn next(&self) -> Option<((Address, u32), i64)> {
        let due = self.agents.iter().min_by_key(|(_, agent)| agent.next_at_us)?;
        Some((due.0.clone(), due.1.next_at_us))
    }

    /// Second part of an exit: the seal is written, and the engine is told if it is there, unless
    /// the tree is to be recorded first.
    pub(crate) fn seal(&mut self) {
        let Some(Ended { seal, sync, wants_snapshot }) = self.unsealed.take() else { return };
        self.seals.push(seal.clone());
        if sync || wants_snapshot || !self.engine_connected {
            self.synced = self.seals.len();
        }
        if wants_snapshot {
            self.recording = Some(seal);
        } else {
            self.unreported.push_back(seal);
        }
    }

    /// Third part: the tree after it is recorded.
    pub(crate) fn record(&mut self, after: String) {
        let Some(mut seal) = self.recording.take() else { return };
        seal.after = Some(after);
        let is_it = |it: &&mut Seal| it.step == seal.step && it.attempt == seal.attempt;
        if let Some(written) = self.seals.iter_mut().find(is_it) {
            *written = seal.clone();
        }
        self.unreported.push_back(seal);
    }
}

pub(crate) fn seal_of(launch: &Launch, code: i32, now_us: i64) -> Seal {
    Seal {
        step: launch.step.clone(),
        attempt: launch.attempt,
        at: Timestamp::from_micros(now_us),
        ending: Ending::Exited { code },
        check: None,
        after: None,
    }
}
