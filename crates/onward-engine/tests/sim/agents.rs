//! Scripted agents, and the supervisor that holds them.
//!
//! A command is a list of acts separated by `;`: `write PATH TEXT` (in two halves), `append PATH
//! TEXT`, `tell PATH LINE` (a line of its own), `begin PATH LINE` (of a new file), `delete PATH`,
//! `result JSON`, `fail N` (exit 1 the first N times it gets that far), `outside NAME` (an effect
//! beyond the machine), `commit` (all that is in its worktree), `work` (takes time), `long` (takes
//! longer than the engine's patience between two looks), `say JSON` (a line on standard output),
//! `limited` (says that a limit holds and exits 1; once per step). Without `fail` the exit code is
//! 0.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

use onward_core::workflow::template::quoted;
use onward_core::{
    address::Address,
    evidence::Ending,
    launch::{Launch, Program, Seal},
    time::Timestamp,
};

use onward_engine::world::Input;

use crate::{
    disk::Disk,
    systems::stage::{Stage, Write},
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
    /// A line of its own, also behind half a line.
    Tell {
        path: String,
        line: String,
    },
    /// Only where the file is not there.
    Begin {
        path: String,
        line: String,
    },
    Delete(String),
    /// A built-in function, which finds out what it writes.
    Call,
    /// What it has written, from one file to the next.
    Put(Write),
    Result(String),
    Outside(String),
    Commit,
    Work,
    /// Takes as long as this.
    Long(i64),
    Say(String),
    /// The first time it gets that far, a provider's limit ends it.
    Limited,
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

/// How long `long` takes, and how long a limit holds.
const LONG_US: i64 = 2_500_000;
pub(crate) const LIMIT_US: i64 = 3_600_000_000;

/// What a shell would see with the variables filled in.
fn with_values(command: &str, launch: &Launch) -> String {
    let values = launch.env.iter().filter(|(name, _)| name.starts_with("ONWARD_V"));
    values.fold(command.to_owned(), |text, (name, value)| {
        text.replace(&format!("\"${name}\""), &quoted(value))
    })
}

impl Agent {
    /// One whose acts its stage knows.
    pub(crate) fn on(stage: &Rc<Stage>, launch: &Launch, disk: &Disk, now_us: i64) -> Self {
        let mut acts: VecDeque<Act> = stage.acts(launch, disk).into();
        acts.push_back(Act::Exit { fails: 0 });
        Self { launch: launch.clone(), acts, next_at_us: now_us + ACT_US }
    }

    pub(crate) fn new(launch: &Launch, now_us: i64) -> Self {
        let command = match &launch.program {
            Program::Argv(argv) => argv.join(" "),
            Program::Shell(command) => with_values(command, launch),
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
                "tell" | "begin" => {
                    let (path, line) = rest.split_once(' ').expect("`tell PATH LINE`");
                    let (path, line) = (path.to_owned(), line.to_owned());
                    let tell = verb == "tell";
                    let act =
                        if tell { Act::Tell { path, line } } else { Act::Begin { path, line } };
                    acts.push_back(act);
                }
                "delete" => acts.push_back(Act::Delete(rest.to_owned())),
                "result" => acts.push_back(Act::Result(rest.trim_matches('\'').to_owned())),
                "outside" => acts.push_back(Act::Outside(rest.to_owned())),
                "commit" => acts.push_back(Act::Commit),
                "say" => acts.push_back(Act::Say(rest.to_owned())),
                "long" => acts.push_back(Act::Long(LONG_US)),
                "limited" => acts.push_back(Act::Limited),
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
    /// So many of them are of earlier boots.
    pub(crate) of_earlier_boots: usize,
    pub(crate) spawned: Vec<(Address, u32)>,
    /// Ended, and not yet written down.
    pub(crate) unsealed: Option<Ended>,
    /// Written down, and the tree after it, this one, is being recorded.
    pub(crate) recording: Option<(Seal, String)>,
    pub(crate) engine_connected: bool,
    /// Seals the connected engine has not been told of.
    pub(crate) unreported: VecDeque<Seal>,
    /// Attempts that begin when fewer than `slots` are under way, for the connected engine only.
    pub(crate) waiting: VecDeque<Launch>,
    pub(crate) slots: usize,
    /// Attempts that were taken back, and of which the engine has not been told.
    withdrawn: Vec<(Address, u32)>,
}

/// An attempt that is over.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) seal: Seal,
    pub(crate) sync: bool,
    pub(crate) wants_snapshot: bool,
    /// Where it worked.
    pub(crate) tree: String,
    /// Files that are brought to the disk before a seal that is.
    pub(crate) outputs: Vec<String>,
}

impl Supervisor {
    /// The seals that count, and those whose work a power cut may have taken.
    pub(crate) fn told(&self) -> (Vec<&Seal>, Vec<&Seal>) {
        let (earlier, since) = self.seals.split_at(self.of_earlier_boots);
        let (mut counting, unsettled): (Vec<&Seal>, _) =
            earlier.iter().partition(|seal| seal.outlasts_a_restart());
        counting.extend(since);
        (counting, unsettled)
    }

    /// Nothing of any attempt is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.agents.is_empty() && self.unsealed.is_none() && self.recording.is_none()
    }

    /// How many attempts are not sealed yet.
    pub(crate) fn under_way(&self) -> usize {
        let ending = usize::from(self.unsealed.is_some()) + usize::from(self.recording.is_some());
        self.agents.len() + ending
    }

    pub(crate) fn withdraw(&mut self) {
        let waiting = self.waiting.drain(..);
        self.withdrawn.extend(waiting.map(|launch| (launch.step, launch.attempt)));
    }

    pub(crate) fn forget_queue(&mut self) {
        self.waiting.clear();
        self.withdrawn.clear();
    }

    /// What the engine has not been told. While enough waits, ends are told together.
    pub(crate) fn tell(&mut self, at_once: bool) -> Vec<Input> {
        let has_time = self.withdrawn.is_empty() && self.waiting.len() > self.slots;
        if has_time && !at_once {
            return Vec::new();
        }
        let withdrawn = std::mem::take(&mut self.withdrawn).into_iter();
        let withdrawn = withdrawn.map(|(step, attempt)| Input::Withdrawn { step, attempt });
        let seals = std::mem::take(&mut self.unreported).into_iter().map(Input::Sealed);
        seals.chain(withdrawn).collect()
    }

    /// Whether something of an attempt is still under way in a tree.
    pub(crate) fn works_in(&self, tree: &str) -> bool {
        self.agents.values().any(|agent| agent.launch.cwd == tree)
            || self.unsealed.as_ref().is_some_and(|it| it.tree == tree)
            || self.recording.as_ref().is_some_and(|it| it.1 == tree)
    }

    /// The next agent to act, and when.
    pub(crate) fn next(&self) -> Option<((Address, u32), i64)> {
        let due = self.agents.iter().min_by_key(|(_, agent)| agent.next_at_us)?;
        Some((due.0.clone(), due.1.next_at_us))
    }

    /// Second part of an exit: the seal is written, and the engine is told if it is there, unless
    /// the tree is to be recorded first.
    pub(crate) fn seal(&mut self) {
        let Some(ended) = self.unsealed.take() else { return };
        let Ended { seal, sync, wants_snapshot, tree, .. } = ended;
        self.seals.push(seal.clone());
        if sync || wants_snapshot || !self.engine_connected {
            self.synced = self.seals.len();
        }
        if wants_snapshot {
            self.recording = Some((seal, tree));
        } else {
            self.unreported.push_back(seal);
        }
    }

    /// Third part: the tree after it is recorded.
    pub(crate) fn record(&mut self, after: String) {
        let Some((mut seal, _)) = self.recording.take() else { return };
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
        of: launch.of.clone(),
        settled: false,
        waited: 0,
    }
}
