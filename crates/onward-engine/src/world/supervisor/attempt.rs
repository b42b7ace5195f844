//! One attempt in our hands: program, then check, each followed until nothing of it lives.
//!
//! Invariant: `main` is the pid of a child that is not reaped yet, so it, and the process group of
//! that number, are certainly its own.

use std::{collections::BTreeSet, os::fd::OwnedFd};

use onward_core::{
    address::Address,
    evidence::Ending,
    launch::{Launch, Seal, StopSignal},
    time::Timestamp,
};
use rustix::process::Signal;

use super::{
    capture::Capture,
    linux::{self, Identity, Process},
    spawn::Born,
    wire::{Alive, Stop},
};

pub(super) type Key = (Address, u32);

/// What ends sooner is known by its seal alone, which saves a short command much of its cost.
pub(super) const INTRODUCED_AFTER_MS: u64 = 20;
/// What ends sooner is heard at its end: its pipes close a moment before and do not wake the
/// supervisor. A command that writes more than a pipe holds waits that long, once.
const LISTENED_TO_AFTER_MS: u64 = 3;

#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) launch: Launch,
    /// How long it had waited for a slot, in milliseconds.
    waited: u64,
    main: Option<i32>,
    /// The child that runs, or the last one that did. Its start time is 0 until it is asked for.
    latest: Identity,
    /// When the log and the engine are told of it, if it lives that long.
    introduce_at: Option<u64>,
    /// From when on its pipes are part of the wait.
    listen_at: u64,
    /// Standard output and error of the current child; `None` once they ended.
    pub(super) pipes: [Option<OwnedFd>; 2],
    pub(super) captures: [Capture; 2],
    wall_at: Option<u64>,
    idle_at: Option<u64>,
    /// Why we are ending it, from the moment we began to.
    cause: Option<Ending>,
    ladder: Option<Ladder>,
    program: Option<Ending>,
    check: Option<Ending>,
    snapshot: Stage,
    /// Nothing of the current child is older, in the kernel's ticks.
    pub(super) since: u64,
}

/// How far the snapshot after it has got.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    Before,
    /// The end is written down, and git is at work.
    During {
        seal: Box<Seal>,
        said: [Vec<u8>; 2],
    },
    Over,
}

/// A snapshot that takes longer is given up.
const SNAPSHOT_MS_MAX: u64 = 600_000;
/// All that is kept of what the snapshot's command says.
const SAID_BYTES_MAX: usize = 4096;

/// First ask, then kill.
#[derive(Debug)]
struct Ladder {
    signal: StopSignal,
    kill_at: u64,
    is_killing: bool,
    /// Each process is asked once.
    reached: BTreeSet<Identity>,
    /// Its processes have not been looked for yet.
    is_fresh: bool,
}

/// What the clock demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    TimeOut { idle: bool },
    Kill,
}

/// What follows when a child and all that came from it are gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Check(String),
    /// Write down how it ended, then run this.
    Snapshot(Vec<String>),
    Seal,
}

impl Attempt {
    pub(super) fn new(launch: Launch, waited: u64, now: u64) -> Self {
        let wall_at = launch.timeout_ms.map(|span| now.saturating_add(span));
        Self {
            launch,
            waited,
            main: None,
            latest: Identity { pid: 0, start_time: 0 },
            introduce_at: Some(now.saturating_add(INTRODUCED_AFTER_MS)),
            listen_at: 0,
            pipes: [None, None],
            captures: [Capture::default(), Capture::default()],
            wall_at,
            idle_at: None,
            cause: None,
            ladder: None,
            program: None,
            check: None,
            snapshot: Stage::Before,
            since: 0,
        }
    }

    pub(super) fn key(&self) -> Key {
        (self.launch.step.clone(), self.launch.attempt)
    }

    /// Who it is. Asked of `/proc` only now: a short command is gone before anybody wants to know.
    pub(super) fn alive(&mut self) -> Alive {
        if let Some(process) = self.main.and_then(linux::process) {
            self.latest = process.id;
        }
        let Identity { pid, start_time } = self.latest;
        Alive { step: self.launch.step.clone(), attempt: self.launch.attempt, pid, start_time }
    }

    pub(super) fn main(&self) -> Option<i32> {
        self.main
    }

    /// The process group of the latest child.
    pub(super) fn group(&self) -> i32 {
        self.latest.pid
    }

    /// Says once that it is time to tell of it.
    pub(super) fn must_introduce(&mut self, now: u64) -> bool {
        let is_due = self.main.is_some() && self.introduce_at.is_some_and(|at| at <= now);
        if is_due {
            self.introduce_at = None;
        }
        is_due
    }

    pub(super) fn is_listened_to(&self, now: u64) -> bool {
        self.listen_at <= now
    }

    /// When its pipes become part of the wait, if they are not yet.
    pub(super) fn listens_later(&self, now: u64) -> Option<u64> {
        let is_open = self.pipes.iter().any(Option::is_some);
        (is_open && self.listen_at > now).then_some(self.listen_at)
    }

    pub(super) fn is_being_ended(&self) -> bool {
        self.ladder.is_some()
    }

    /// Whether its remaining processes have been asked to end.
    pub(super) fn has_asked(&self) -> bool {
        self.ladder.as_ref().is_some_and(|ladder| !ladder.is_fresh)
    }

    /// The program, or later its check, runs.
    pub(super) fn child_started(&mut self, child: Born, now: u64) {
        let Born { pid, since, pipes } = child;
        self.main = Some(pid);
        self.latest = Identity { pid, start_time: 0 };
        self.since = since;
        self.pipes = pipes.map(Some);
        // Where silence counts, every byte does.
        let later = self.launch.idle_ms.map_or(LISTENED_TO_AFTER_MS, |_| 0);
        self.listen_at = now.saturating_add(later);
        self.ladder = None;
        self.heard(now);
    }

    /// Output came, or a child that may make some.
    pub(super) fn heard(&mut self, now: u64) {
        self.idle_at = self.launch.idle_ms.map(|span| now.saturating_add(span));
    }

    /// The child was reaped. If we had begun to end it, that is how it ended, whatever it says: an
    /// agent that is interrupted may well exit 0.
    pub(super) fn child_ended(&mut self, how: Ending) {
        self.main = None;
        self.idle_at = None;
        if matches!(self.snapshot, Stage::During { .. }) {
            return;
        }
        let ending = self.cause.clone().unwrap_or(how);
        *self.current() = Some(ending);
        // INT was for the program to tidy up. What remains may well ignore it, as the background
        // children of a shell do.
        if let Some(ladder) = self.ladder.as_mut().filter(|it| it.signal == StopSignal::Int) {
            ladder.signal = StopSignal::Term;
            ladder.reached.clear();
            ladder.is_fresh = true;
        }
    }

    pub(super) fn could_not_start(&mut self, why: String) {
        if let Stage::During { said, .. } = &mut self.snapshot {
            said[1] = why.into_bytes();
            return;
        }
        *self.current() = Some(Ending::NotStarted { why });
    }

    fn current(&mut self) -> &mut Option<Ending> {
        if self.program.is_none() { &mut self.program } else { &mut self.check }
    }

    pub(super) fn next(&mut self) -> Next {
        let wants_check = self.program.as_ref().is_some_and(Ending::is_success);
        let command = self.launch.check.as_ref().filter(|_| wants_check && self.check.is_none());
        match (command, &self.cause) {
            (Some(_), Some(cause)) => {
                // Stopped between program and check: the check never had its chance.
                self.check = Some(cause.clone());
                self.next_is_snapshot()
            }
            (Some(command), None) => Next::Check(command.clone()),
            (None, _) => self.next_is_snapshot(),
        }
    }

    fn next_is_snapshot(&self) -> Next {
        match (&self.snapshot, &self.launch.snapshot) {
            (Stage::Before, Some(argv)) => Next::Snapshot(argv.clone()),
            (Stage::Before, None) | (Stage::During { .. } | Stage::Over, _) => Next::Seal,
        }
    }

    pub(super) fn seal(&self, at: Timestamp) -> Seal {
        let unended = || Ending::NotStarted { why: "it never began".into() };
        Seal {
            step: self.launch.step.clone(),
            attempt: self.launch.attempt,
            at,
            ending: self.program.clone().unwrap_or_else(unended),
            check: self.check.clone(),
            after: None,
            of: self.launch.of.clone(),
            settled: false,
            waited: self.waited,
        }
    }

    /// Its end is written down. From here on its own time does not count, and no time-out stops it.
    pub(super) fn begin_snapshot(&mut self, seal: Seal, now: u64) {
        self.snapshot = Stage::During { seal: Box::new(seal), said: [Vec::new(), Vec::new()] };
        self.cause = None;
        self.wall_at = Some(now.saturating_add(SNAPSHOT_MS_MAX));
        self.launch.idle_ms = None;
    }

    /// Takes what the snapshot's command says; `false` while there is none.
    pub(super) fn hears_snapshot(&mut self, stream: usize, bytes: &[u8]) -> bool {
        let Stage::During { said, .. } = &mut self.snapshot else { return false };
        let room = SAID_BYTES_MAX.saturating_sub(said[stream].len());
        said[stream].extend_from_slice(&bytes[..bytes.len().min(room)]);
        true
    }

    /// The end as it was written down, and the snapshot or what was said instead.
    pub(super) fn take_snapshot(&mut self) -> Option<(Seal, Result<String, String>)> {
        match std::mem::replace(&mut self.snapshot, Stage::Over) {
            Stage::During { seal, said } => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
                let [out, err] = said.map(|bytes| text(&bytes));
                let is_id = out.len() >= 40 && out.bytes().all(|byte| byte.is_ascii_hexdigit());
                Some((*seal, if is_id { Ok(out) } else { Err(err) }))
            }
            Stage::Before | Stage::Over => None,
        }
    }

    pub(super) fn due(&self, now: u64) -> Option<Due> {
        let passed = |at: Option<u64>| at.is_some_and(|at| at <= now);
        let kill_at = self.ladder.as_ref().filter(|it| !it.is_killing).map(|it| it.kill_at);
        if passed(kill_at) {
            Some(Due::Kill)
        } else if self.cause.is_none() && passed(self.wall_at) {
            Some(Due::TimeOut { idle: false })
        } else if self.cause.is_none() && passed(self.idle_at) {
            Some(Due::TimeOut { idle: true })
        } else {
            None
        }
    }

    /// The next moment at which [`Self::due`] may say something.
    pub(super) fn deadline(&self) -> Option<u64> {
        let kill_at = self.ladder.as_ref().filter(|it| !it.is_killing).map(|it| it.kill_at);
        let time_out = [self.wall_at, self.idle_at].into_iter().flatten().min();
        let time_out = time_out.filter(|_| self.cause.is_none());
        let introduce_at = self.introduce_at.filter(|_| self.main.is_some());
        [kill_at, time_out, introduce_at].into_iter().flatten().min()
    }

    /// Begins to end it for this cause. Asked again, only the time left can get shorter.
    pub(super) fn end(&mut self, cause: Ending, stop: Stop, now: u64) {
        // It has ended; the snapshot is ours, and only its own time can be over.
        if matches!(self.snapshot, Stage::During { .. }) && cause == Ending::Stopped {
            return;
        }
        self.cause.get_or_insert(cause);
        // Agents differ in which signal makes them tidy up; a check is no agent.
        let own = self.launch.stop.filter(|_| self.program.is_none());
        self.clear_out(Stop { signal: own.unwrap_or(stop.signal), ..stop }, now);
    }

    /// Begins to end whatever is left of it: the group at once, the rest when it has been found.
    pub(super) fn clear_out(&mut self, stop: Stop, now: u64) {
        let kill_at = now.saturating_add(stop.grace_ms);
        if let Some(ladder) = &mut self.ladder {
            ladder.kill_at = ladder.kill_at.min(kill_at);
            return;
        }
        let ladder = Ladder {
            signal: stop.signal,
            kill_at,
            is_killing: false,
            reached: BTreeSet::new(),
            is_fresh: true,
        };
        let signal = ladder.current_signal();
        self.ladder = Some(ladder);
        if let Some(main) = self.main {
            linux::signal_group(main, signal);
        }
    }

    /// The grace is over.
    pub(super) fn kill(&mut self) {
        if let Some(ladder) = &mut self.ladder {
            ladder.is_killing = true;
            ladder.reached.clear();
            if let Some(main) = self.main {
                linux::signal_group(main, Signal::KILL);
            }
        }
    }

    /// Reaches every process of the attempt that was not reached yet.
    pub(super) fn reach(&mut self, family: &[Process]) {
        let Some(ladder) = &mut self.ladder else { return };
        ladder.is_fresh = false;
        for process in family.iter().filter(|it| !it.is_dead) {
            let in_group = self.main == Some(process.group);
            if ladder.reached.insert(process.id) && (ladder.is_killing || !in_group) {
                linux::signal(process.id, ladder.current_signal());
            }
        }
    }
}

impl Ladder {
    fn current_signal(&self) -> Signal {
        match (self.is_killing, self.signal) {
            (true, _) => Signal::KILL,
            (false, StopSignal::Term) => Signal::TERM,
            (false, StopSignal::Int) => Signal::INT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_core::launch::Program;

    const GONE: i32 = i32::MAX;

    fn attempt(timeout_ms: Option<u64>, idle_ms: Option<u64>, check: Option<&str>) -> Attempt {
        let launch = Launch {
            step: Address::from_text("a"),
            attempt: 1,
            program: Program::Argv(vec!["true".into()]),
            cwd: String::new(),
            env: std::collections::BTreeMap::new(),
            check: check.map(str::to_owned),
            timeout_ms,
            idle_ms,
            sync_seal: false,
            snapshot: None,
            stop: None,
            of: None,
            outputs: Vec::new(),
        };
        let mut attempt = Attempt::new(launch, 0, 1000);
        start(&mut attempt);
        attempt
    }

    fn start(attempt: &mut Attempt) {
        let (one, other) = std::io::pipe().unwrap();
        let pipes = [one.into(), other.into()];
        attempt.child_started(Born { pid: GONE, since: 1, pipes }, 1000);
        attempt.introduce_at = None;
    }

    fn sealed(attempt: &Attempt) -> (Ending, Option<Ending>) {
        let seal = attempt.seal(Timestamp::default());
        (seal.ending, seal.check)
    }

    #[test]
    fn a_short_command_is_heard_at_its_end_and_one_whose_silence_counts_from_the_first_byte() {
        let plain = attempt(None, None, None);
        assert_eq!(plain.listens_later(1000), Some(1000 + LISTENED_TO_AFTER_MS));
        let later = 1000 + LISTENED_TO_AFTER_MS;
        assert!(!plain.is_listened_to(later - 1) && plain.is_listened_to(later));
        assert_eq!(plain.listens_later(later), None);
        let watched = attempt(None, Some(5_000), None);
        assert!(watched.is_listened_to(1000) && watched.listens_later(1000).is_none());
        // Its pipes may outlive the child, in the hands of what it left behind.
        let mut left = attempt(None, None, None);
        left.child_ended(OK);
        assert_eq!(left.listens_later(1000), Some(later));
    }

    const OK: Ending = Ending::Exited { code: 0 };

    #[test]
    fn an_attempt_we_end_ended_so_whatever_it_says() {
        let mut it = attempt(Some(50), None, None);
        assert_eq!((it.due(1049), it.due(1050)), (None, Some(Due::TimeOut { idle: false })));
        it.end(Ending::TimedOut { idle: false }, Stop::default(), 1050);
        it.end(Ending::Stopped, Stop::default(), 1051);
        assert_eq!((it.due(6049), it.due(6050)), (None, Some(Due::Kill)));
        it.child_ended(OK);
        assert_eq!(it.next(), Next::Seal);
        assert_eq!(sealed(&it), (Ending::TimedOut { idle: false }, None));
    }

    #[test]
    fn silence_is_counted_from_the_last_output() {
        let mut it = attempt(Some(500), Some(50), None);
        it.heard(1040);
        assert_eq!((it.deadline(), it.due(1089)), (Some(1090), None));
        assert_eq!(it.due(1090), Some(Due::TimeOut { idle: true }));
        assert_eq!(it.due(1500), Some(Due::TimeOut { idle: false }), "wall time comes first");
        it.child_ended(OK);
        assert_eq!(it.deadline(), Some(1500), "only a child can be silent");
    }

    #[test]
    fn a_check_follows_success_only_and_shares_the_wall_time() {
        let mut failed = attempt(None, None, Some("c"));
        failed.child_ended(Ending::Exited { code: 1 });
        assert_eq!(failed.next(), Next::Seal);
        assert_eq!(sealed(&failed), (Ending::Exited { code: 1 }, None));
        let mut it = attempt(Some(50), None, Some("c"));
        it.child_ended(OK);
        assert_eq!(it.next(), Next::Check("c".into()));
        start(&mut it);
        assert_eq!(it.due(1050), Some(Due::TimeOut { idle: false }));
        it.child_ended(Ending::Exited { code: 3 });
        assert_eq!(it.next(), Next::Seal);
        assert_eq!(sealed(&it), (OK, Some(Ending::Exited { code: 3 })));
    }

    #[test]
    fn a_check_that_never_had_its_chance_did_not_pass() {
        let mut it = attempt(None, None, Some("c"));
        it.child_ended(OK);
        it.end(Ending::Stopped, Stop::default(), 1000);
        assert_eq!(it.next(), Next::Seal);
        assert_eq!(sealed(&it), (OK, Some(Ending::Stopped)));
    }

    #[test]
    fn a_second_request_can_only_hasten_the_end() {
        let stop = |grace_ms| Stop { grace_ms, ..Stop::default() };
        let mut it = attempt(None, None, None);
        it.end(Ending::Stopped, stop(100), 1000);
        it.end(Ending::Stopped, stop(500), 1000);
        assert_eq!(it.deadline(), Some(1100));
        it.end(Ending::Stopped, stop(0), 1010);
        assert_eq!(it.due(1010), Some(Due::Kill));
        it.kill();
        assert_eq!((it.due(9999), it.deadline()), (None, None));
    }

    #[test]
    fn the_tree_is_recorded_after_every_end_and_nothing_stops_that() {
        let mut it = attempt(Some(50), Some(50), Some("c"));
        it.launch.snapshot = Some(vec!["snap".into()]);
        it.end(Ending::Stopped, Stop::default(), 1010);
        it.child_ended(OK);
        assert_eq!(it.next(), Next::Snapshot(vec!["snap".into()]), "whatever became of the check");
        let end = it.seal(Timestamp::default());
        it.begin_snapshot(end.clone(), 1020);
        start(&mut it);
        assert_eq!((it.due(1100), it.is_being_ended()), (None, false), "its own time is over");
        it.end(Ending::Stopped, Stop::default(), 1030);
        assert!(!it.is_being_ended());
        assert!(it.hears_snapshot(1, b"a warning\n") && it.hears_snapshot(0, &[b'0'; 20]));
        assert!(it.hears_snapshot(0, &[b'a'; 20]) && it.hears_snapshot(0, b"\n"));
        it.child_ended(OK);
        assert_eq!(it.next(), Next::Seal);
        let id = "0".repeat(20) + &"a".repeat(20);
        assert_eq!(it.take_snapshot(), Some((end, Ok(id))));
        assert_eq!((it.next(), it.take_snapshot()), (Next::Seal, None));
    }

    #[test]
    fn a_snapshot_that_hangs_is_given_up_and_what_it_said_is_told() {
        let mut it = attempt(None, None, None);
        it.launch.snapshot = Some(vec!["snap".into()]);
        it.child_ended(Ending::Exited { code: 1 });
        assert!(matches!(it.next(), Next::Snapshot(_)));
        it.begin_snapshot(it.seal(Timestamp::default()), 1000);
        start(&mut it);
        assert!(it.hears_snapshot(1, b"error: no room\n"));
        let late = 1000 + SNAPSHOT_MS_MAX;
        assert_eq!(it.due(late), Some(Due::TimeOut { idle: false }));
        it.end(Ending::TimedOut { idle: false }, Stop::default(), late);
        assert!(it.is_being_ended());
        it.child_ended(Ending::Signalled { signal: 15 });
        let (seal, taken) = it.take_snapshot().unwrap();
        assert_eq!(seal.ending, Ending::Exited { code: 1 }, "as it was written down");
        assert_eq!(taken, Err("error: no room".into()));
    }
}
