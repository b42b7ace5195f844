//! All attempts in our hands: spawn, listen, time out, stop, reap, clear out, seal.
//!
//! Invariant: a report is handed out only after its line is in the log, and after the sync where
//! one is owed. An error from here means that the log can no longer be written: then the supervisor
//! ends.

use crate::world::{open, secrets::Redactor, spot::Spot};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::File,
    io,
    os::fd::BorrowedFd,
    path::PathBuf,
};

use onward_core::{
    evidence::Ending,
    launch::{Launch, Program, Seal},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::{WaitOptions, WaitStatus},
};

use super::{
    attempt::{Attempt, Due, Key, Next},
    descendants::{Claimant, Family, Owner, owner},
    linux::{self, Children, Identity, Process},
    place::Place,
    seals::{Line, Log, OutputLost, Snapshot, Spawned, Spawning},
    settle::settle,
    spawn::{Nursery, SHELL},
    wire::{Alive, Report, Stop},
};

const READ_BYTES: usize = 64 << 10;
/// More than any pipe holds when its writers are gone; the rest comes from strangers.
const DRAIN_READS_MAX: usize = 256;
const LOOK_AGAIN_MS: u64 = 100;
const HEARTBEAT_MS: u64 = 1_000;
const STREAMS: [&str; 2] = ["out", "err"];

mod kin;
mod queue;

use kin::Group;
use queue::Queue;

pub(super) struct Work {
    pub(super) place: Place,
    pub(super) nursery: Nursery,
    log: Log,
    /// Why nothing begins any more: the log has no room for its end.
    is_full: Option<io::Error>,
    redactor: Redactor,
    leftover_stop: Stop,
    output_bytes_max: u64,
    attempts: BTreeMap<Key, Attempt>,
    queue: Queue,
    /// Children not reaped yet, by pid.
    mains: BTreeMap<i32, Key>,
    /// Children that came to us as orphans, and whose they are as far as that is clear.
    strays: BTreeMap<i32, Option<Key>>,
    children: Option<Children>,
    reports: Vec<Report>,
    /// When they are due at the latest.
    report_at: Option<u64>,
    /// When to look again at the process table that could not be read.
    look_at: Option<u64>,
    /// Without an engine the log is all there is, so each seal is synced.
    pub(super) has_engine: bool,
    owes_sync: bool,
    heartbeat: Option<File>,
    beat_at: u64,
    group: Group,
    /// Strays that are in the log.
    noted: BTreeSet<Identity>,
    buffer: Box<[u8]>,
}

pub(super) struct WorkConfig {
    pub(super) place: Place,
    pub(super) spot: Spot,
    /// The device.
    pub(super) null: File,
    pub(super) leftover_stop: Stop,
    pub(super) output_bytes_max: u64,
}

impl Work {
    pub(super) fn new(config: WorkConfig, log: Log) -> Self {
        let WorkConfig { place, spot, null, leftover_stop, output_bytes_max } = config;
        let (run, project_dir) = (place.run.clone(), place.project_dir.clone());
        Self {
            place,
            nursery: Nursery::new(run, spot, project_dir, null),
            log,
            is_full: None,
            redactor: Redactor::default(),
            leftover_stop,
            output_bytes_max,
            attempts: BTreeMap::new(),
            queue: Queue::default(),
            mains: BTreeMap::new(),
            strays: BTreeMap::new(),
            children: Children::open(),
            reports: Vec::new(),
            report_at: None,
            look_at: None,
            has_engine: false,
            owes_sync: false,
            heartbeat: None,
            beat_at: 0,
            group: Group::default(),
            noted: BTreeSet::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        }
    }

    /// The project was moved, and the run's directory with it. Another one is not believed.
    pub(super) fn move_to(&mut self, run_dir: PathBuf, project_dir: PathBuf) {
        if Spot::is_of(Some(self.nursery.spot), &run_dir) {
            self.nursery.project_dir.clone_from(&project_dir);
            self.place = Place { run_dir, project_dir, ..self.place.clone() };
        }
    }

    /// An engine has come, with the environment that its children inherit.
    pub(super) fn meet(&mut self, env: Vec<(OsString, OsString)>) {
        self.redactor = Redactor::of_run(&env, &self.place.run_dir);
        self.nursery.inherit(env);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.attempts.is_empty() && self.strays.is_empty()
    }

    /// Fails once the log is full and all that was begun has its end in it.
    pub(super) fn must_go_on(&mut self) -> io::Result<()> {
        if self.attempts.is_empty() { self.is_full.take().map_or(Ok(()), Err) } else { Ok(()) }
    }

    pub(super) fn alive(&mut self) -> Vec<Alive> {
        self.attempts.values_mut().map(Attempt::alive).collect()
    }

    pub(super) fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.owes_sync = false;
        self.log.sync()
    }

    pub(super) fn reports_are_due(&self, now: u64) -> bool {
        self.report_at.is_some_and(|at| at <= now)
    }

    /// What there is to tell, once it may be told.
    pub(super) fn take_reports(&mut self) -> io::Result<Vec<Report>> {
        if self.owes_sync {
            self.sync()?;
        }
        self.report_at = None;
        Ok(std::mem::take(&mut self.reports))
    }

    pub(super) fn spawn(&mut self, launch: Launch, now: u64) -> io::Result<()> {
        self.spawn_after(launch, 0, now)
    }

    /// Spawns what has waited so long.
    fn spawn_after(&mut self, launch: Launch, waited: u64, now: u64) -> io::Result<()> {
        let key = (launch.step.clone(), launch.attempt);
        if let Some(running) = self.attempts.get_mut(&key) {
            self.reports.push(Report::Spawned(running.alive()));
            self.report_by(now);
            return Ok(());
        }
        if self.is_full.is_none() {
            self.is_full = self.log.make_room(self.attempts.len() + 1).err();
        }
        if self.is_full.is_some() {
            // Nothing is in the log of it: the next resume begins it as it was announced.
            return Ok(());
        }
        let (step, attempt) = key.clone();
        let at = linux::wall_now();
        let of = launch.of.clone();
        self.log.append(&Line::Spawning(Spawning { step, attempt, at, of }))?;
        let argv = match &launch.program {
            Program::Argv(_) | Program::Shell(_) => Ok(launch.program.argv()),
            Program::Call { name, .. } => Err(format!("`{name}` is for the engine to call")),
            Program::Agent(call) => Err(format!("agent `{}` has no command yet", call.name)),
        };
        self.redactor.learn(launch.env.clone());
        let mut attempt = Attempt::new(launch, waited, now);
        match argv.and_then(|argv| self.start_child(&mut attempt, &argv, now)) {
            Ok(()) => {
                self.attempts.insert(key, attempt);
                Ok(())
            }
            Err(why) => {
                attempt.could_not_start(why);
                self.seal(attempt)
            }
        }
    }

    /// Whatever has lived for a while gets its line in the log, and the engine learns its pid.
    fn introduce(&mut self, now: u64) -> io::Result<()> {
        let due = self.attempts.values_mut().filter_map(|it| it.must_introduce(now).then_some(it));
        let due: Vec<Alive> = due.map(Attempt::alive).collect();
        for alive in due {
            let Alive { step, attempt, pid, start_time } = alive.clone();
            let at = linux::wall_now();
            let spawned = Spawned { step, attempt, pid, start_time, at };
            self.log.append(&Line::Spawned(spawned))?;
            self.reports.push(Report::Spawned(alive));
            self.report_by(now);
        }
        Ok(())
    }

    fn report_by(&mut self, at: u64) {
        self.report_at = Some(self.report_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn start_child(
        &mut self,
        attempt: &mut Attempt,
        argv: &[String],
        now: u64,
    ) -> Result<(), String> {
        let born = self.nursery.spawn(argv, &attempt.launch)?;
        self.mains.insert(born.pid, attempt.key());
        attempt.child_started(born, now);
        Ok(())
    }

    pub(super) fn stop(&mut self, key: &Key, stop: Stop, now: u64) {
        self.withdraw_one(key);
        let Some(attempt) = self.attempts.get_mut(key) else { return };
        attempt.end(Ending::Stopped, stop, now);
        self.look_around(now);
    }

    pub(super) fn stop_all(&mut self, stop: Stop, now: u64) {
        self.withdraw();
        for attempt in self.attempts.values_mut() {
            attempt.end(Ending::Stopped, stop, now);
        }
        if !self.attempts.is_empty() {
            self.look_around(now);
        }
    }

    /// Every open pipe that is listened to, for the one wait of the loop.
    pub(super) fn pipes(&self, now: u64) -> impl Iterator<Item = (&Key, usize, BorrowedFd<'_>)> {
        use std::os::fd::AsFd as _;
        let heard = self.attempts.iter().filter(move |(_, it)| it.is_listened_to(now));
        heard.flat_map(|(key, attempt)| {
            let open = (0..).zip(&attempt.pipes);
            open.filter_map(move |(stream, pipe)| Some((key, stream, pipe.as_ref()?.as_fd())))
        })
    }

    /// A pipe is ready: one read, so that no stream starves the others.
    pub(super) fn hear(
        &mut self,
        key: &Key,
        stream: usize,
        ready: PollFlags,
        now: u64,
    ) -> io::Result<()> {
        let Some(attempt) = self.attempts.get_mut(key) else { return Ok(()) };
        let Some(pipe) = &attempt.pipes[stream] else { return Ok(()) };
        let has_bytes = ready.contains(PollFlags::IN);
        let read = if has_bytes { rustix::io::read(pipe, &mut *self.buffer) } else { Ok(0) };
        let count = match read {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(0) | Err(_) => {
                attempt.pipes[stream] = None;
                return Ok(());
            }
            Ok(count) => count,
        };
        if attempt.hears_snapshot(stream, &self.buffer[..count]) {
            return Ok(());
        }
        if attempt.main().is_some() {
            attempt.heard(now);
        }
        let (step, number) = key;
        let (dir, name) = (self.place.out_dir(), STREAMS[stream]);
        let path = || dir.join(format!("{}.{number}.{name}", step.file_name()));
        let bytes = &self.buffer[..count];
        let redactor = &self.redactor;
        let kept = attempt.captures[stream].take(bytes, self.output_bytes_max, redactor, path);
        kept.or_else(|error| self.lose_output(key, name, &error))
    }

    fn lose_output(&mut self, key: &Key, stream: &str, error: &io::Error) -> io::Result<()> {
        let (step, attempt) = key.clone();
        let (stream, why) = (stream.to_owned(), error.to_string());
        self.log.append(&Line::OutputLost(OutputLost { step, attempt, stream, why }))
    }

    /// What is still in the pipes of a child whose family is gone.
    fn drain(&mut self, key: &Key, now: u64) -> io::Result<()> {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        for _ in 0..DRAIN_READS_MAX {
            let Some(attempt) = self.attempts.get(key) else { return Ok(()) };
            let open = (0..).zip(&attempt.pipes);
            let open = open.filter_map(|(stream, pipe)| Some((stream, pipe.as_ref()?)));
            let (streams, mut fds): (Vec<usize>, Vec<PollFd<'_>>) =
                open.map(|(stream, pipe)| (stream, PollFd::new(pipe, PollFlags::IN))).unzip();
            if fds.is_empty() || rustix::event::poll(&mut fds, Some(&at_once)).is_err() {
                break;
            }
            let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
            if !ready.iter().any(|ready| ready.contains(PollFlags::IN)) {
                break;
            }
            for (stream, ready) in streams.into_iter().zip(ready) {
                if ready.contains(PollFlags::IN) {
                    self.hear(key, stream, ready, now)?;
                }
            }
        }
        if let Some(attempt) = self.attempts.get_mut(key) {
            attempt.pipes = [None, None];
        }
        Ok(())
    }

    /// Time-outs, and graces that are over.
    pub(super) fn fire(&mut self, now: u64) -> io::Result<()> {
        self.introduce(now)?;
        let mut fired = false;
        for attempt in self.attempts.values_mut() {
            match attempt.due(now) {
                Some(Due::Kill) => attempt.kill(),
                Some(Due::TimeOut { idle }) => {
                    attempt.end(Ending::TimedOut { idle }, self.leftover_stop, now);
                }
                None => continue,
            }
            fired = true;
        }
        self.beat(now)?;
        if fired {
            self.look_around(now);
        }
        if self.look_at.is_some_and(|at| at <= now) { self.reap(now) } else { Ok(()) }
    }

    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        let beat = (!self.attempts.is_empty()).then_some(self.beat_at);
        let all = self.attempts.values().filter_map(Attempt::deadline);
        let listen = self.attempts.values().filter_map(|it| it.listens_later(now));
        all.chain(listen).chain(beat).chain(self.report_at).chain(self.look_at).min()
    }

    /// Writes the moment until which this supervisor lived.
    fn beat(&mut self, now: u64) -> io::Result<()> {
        if self.attempts.is_empty() || now < self.beat_at {
            return Ok(());
        }
        // A run of a moment has no use for it.
        if self.beat_at > 0 {
            self.watch_kin(now)?;
        }
        self.beat_at = now + HEARTBEAT_MS;
        let path = self.place.heartbeat();
        let open = || open::at(&path, open::To::Append).ok();
        let file = self.heartbeat.take().or_else(open);
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
        // A missed beat only makes the next engine more careful.
        self.heartbeat = file.filter(|file| rustix::fs::futimens(file, &times).is_ok());
        Ok(())
    }

    /// Some child ended. All that ended are taken, then what follows from it.
    pub(super) fn reap(&mut self, now: u64) -> io::Result<()> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get();
            self.strays.remove(&pid);
            let attempt = self.mains.remove(&pid).and_then(|key| self.attempts.get_mut(&key));
            if let (Some(attempt), Some(ending)) = (attempt, ending_of(status)) {
                attempt.child_ended(ending);
            }
        }
        if self.must_look() && !self.look_around(now) {
            return Ok(());
        }
        loop {
            let is_over = |(key, attempt): (&Key, &Attempt)| {
                let is_over = attempt.main().is_none() && !self.has_strays(key);
                is_over.then(|| key.clone())
            };
            let over: Vec<Key> = self.attempts.iter().filter_map(is_over).collect();
            if over.is_empty() {
                return Ok(());
            }
            for key in over {
                self.child_is_over(&key, now)?;
            }
            // With an attempt less, it may be clear whose they are.
            if self.strays.values().any(Option::is_none) && !self.look_around(now) {
                return Ok(());
            }
        }
    }

    fn has_strays(&self, key: &Key) -> bool {
        self.strays.values().any(|owner| owner.as_ref() == Some(key))
    }

    /// Whether there is more to know than the kernel's list of our children tells. For a command
    /// that leaves nothing behind this is one small read.
    fn must_look(&self) -> bool {
        let over = || self.attempts.iter().filter(|(_, it)| it.main().is_none());
        let any_over = over().next().is_some();
        let any_unclear = any_over && self.strays.values().any(Option::is_none);
        let any_left = over().any(|(key, it)| !it.has_asked() && self.has_strays(key));
        let pids = self.children.as_ref().and_then(|children| children.pids().ok());
        match pids {
            None => any_over,
            Some(pids) => {
                let is_known =
                    |pid: &i32| self.mains.contains_key(pid) || self.strays.contains_key(pid);
                any_left || any_unclear || !pids.iter().all(is_known)
            }
        }
    }

    /// Looks at the whole process table: who is whose, who must go. Without a look nothing is
    /// concluded; says whether there was one, and comes back to it otherwise.
    fn look_around(&mut self, now: u64) -> bool {
        let Ok(family) = Family::look() else {
            // Such as no file descriptor left, which passes.
            self.look_at = Some(now + LOOK_AGAIN_MS);
            return false;
        };
        self.look_at = None;
        let claimants: Vec<Claimant> = self.attempts.values().map(claim).collect();
        self.strays.clear();
        for stray in family.strays(|pid| self.mains.contains_key(&pid)) {
            let tag = linux::tag_of(stray.id.pid);
            let key = match owner(&stray, tag.as_ref(), self.place.run.as_str(), &claimants) {
                Owner::Attempt(key) => Some(key),
                Owner::Unclear => None,
                Owner::Unknown => {
                    kill_all(&family.below([stray.id.pid]));
                    None
                }
            };
            self.strays.insert(stray.id.pid, key);
        }
        for (key, attempt) in &mut self.attempts {
            let strays = self.strays.iter().filter(|(_, owner)| owner.as_ref() == Some(key));
            let mut roots: Vec<i32> = strays.map(|(pid, _)| *pid).collect();
            match attempt.main() {
                None if !roots.is_empty() && !attempt.is_being_ended() => {
                    attempt.clear_out(self.leftover_stop, now);
                }
                main => roots.extend(main),
            }
            if attempt.is_being_ended() {
                attempt.reach(&family.below(roots));
            }
        }
        true
    }

    /// A child and all that came from it are gone: its check, or the seal.
    fn child_is_over(&mut self, key: &Key, now: u64) -> io::Result<()> {
        self.drain(key, now)?;
        let Some(mut attempt) = self.attempts.remove(key) else { return Ok(()) };
        let argv = match attempt.next() {
            Next::Seal => return self.seal(attempt),
            Next::Check(command) => vec![SHELL.to_owned(), "-c".to_owned(), command],
            Next::Snapshot(argv) => {
                let seal = self.write_end(&mut attempt)?;
                // While the snapshot is taken, its end must be there to stay.
                if self.owes_sync {
                    self.sync()?;
                }
                attempt.begin_snapshot(seal, now);
                argv
            }
        };
        match self.start_child(&mut attempt, &argv, now) {
            Ok(()) => {
                self.attempts.insert(key.clone(), attempt);
                Ok(())
            }
            Err(why) => {
                attempt.could_not_start(why);
                self.seal(attempt)
            }
        }
    }

    /// The last line of an attempt: its end, or the snapshot after it.
    fn seal(&mut self, mut attempt: Attempt) -> io::Result<()> {
        let seal = match attempt.take_snapshot() {
            None => self.write_end(&mut attempt)?,
            Some((mut seal, taken)) => {
                let Seal { step, attempt: number, .. } = seal.clone();
                let (after, why) = match taken {
                    Ok(after) => (Some(after), None),
                    Err(why) => (None, Some(why)),
                };
                seal.after.clone_from(&after);
                let at = linux::wall_now();
                let line = Snapshot { step, attempt: number, at, after, why };
                self.log.append(&Line::Snapshot(line))?;
                self.owes_sync |= attempt.launch.sync_seal || !self.has_engine;
                seal
            }
        };
        self.reports.push(Report::Sealed(seal));
        self.tell_end(attempt.launch.sync_seal);
        Ok(())
    }

    /// Writes down how an attempt ended. Its output is made durable before, where the line will be.
    fn write_end(&mut self, attempt: &mut Attempt) -> io::Result<Seal> {
        let (key, dir) = (attempt.key(), self.place.out_dir());
        for (capture, stream) in attempt.captures.iter_mut().zip(STREAMS) {
            let path = || dir.join(format!("{}.{}.{stream}", key.0.file_name(), key.1));
            let kept = capture.end(self.output_bytes_max, &self.redactor, path);
            kept.or_else(|error| self.lose_output(&key, stream, &error))?;
        }
        let mut settled = false;
        if attempt.launch.sync_seal || !self.has_engine {
            self.owes_sync = true;
            settled = settle(&self.place.project_dir, &attempt.launch);
            for (capture, stream) in attempt.captures.iter().zip(STREAMS) {
                let synced = capture.sync().and_then(|made| {
                    if made { open::sync_dir(&self.place.out_dir()) } else { Ok(()) }
                });
                synced.or_else(|error| self.lose_output(&key, stream, &error))?;
            }
        }
        let seal = Seal { settled, ..attempt.seal(linux::wall_now()) };
        self.log.append(&Line::Exited(seal.clone()))?;
        Ok(seal)
    }
}

fn claim(attempt: &Attempt) -> Claimant {
    Claimant { key: attempt.key(), group: attempt.group(), since: attempt.since }
}

fn kill_all(processes: &[Process]) {
    for process in processes.iter().filter(|it| !it.is_dead) {
        linux::signal(process.id, rustix::process::Signal::KILL);
    }
}

/// `None` for a child that was merely stopped or continued, which we never ask about.
fn ending_of(status: WaitStatus) -> Option<Ending> {
    let exited = status.exit_status().map(|code| Ending::Exited { code });
    exited.or_else(|| status.terminating_signal().map(|signal| Ending::Signalled { signal }))
}
