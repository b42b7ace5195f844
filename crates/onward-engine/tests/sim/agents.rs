//! Scripted agents, and the supervisor that holds them.
//!
//! A command is a list of acts separated by `;`: `write PATH TEXT` (in two halves), `result JSON`,
//! `fail N` (exit 1 the first N times it gets that far), `outside NAME` (an effect beyond the
//! machine), `work` (takes time). Without `fail` the exit code is 0.

use std::collections::{BTreeMap, VecDeque};

use onward_core::{
    address::Address,
    evidence::Ending,
    launch::{Launch, Program, Seal},
    time::Timestamp,
};

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Write { path: String, text: String },
    Result(String),
    Outside(String),
    Work,
    Exit { fails: u32 },
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
    pub(crate) unsealed: Option<(Seal, bool)>,
    pub(crate) engine_connected: bool,
    /// Seals the connected engine has not been told of.
    pub(crate) unreported: VecDeque<Seal>,
}

impl Supervisor {
    /// The next agent to act, and when.
    pub(crate) fn next(&self) -> Option<((Address, u32), i64)> {
        let due = self.agents.iter().min_by_key(|(_, agent)| agent.next_at_us)?;
        Some((due.0.clone(), due.1.next_at_us))
    }

    /// Second half of an exit: the seal is written, and the engine is told if it is there.
    pub(crate) fn seal(&mut self) {
        let Some((seal, sync)) = self.unsealed.take() else { return };
        self.seals.push(seal.clone());
        if sync || !self.engine_connected {
            self.synced = self.seals.len();
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
    }
}
