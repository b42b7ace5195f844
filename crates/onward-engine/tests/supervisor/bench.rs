//! One run in a temporary directory, with its supervisor, seen from the engine's end.
//!
//! All waits are for an event; the long bound on each only turns a hang into a failure.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use onward_core::{
    address::Address,
    evidence::Ending,
    launch::{Launch, Program, Seal},
};
use onward_engine::world::supervisor::{
    Alive, Hands, HandsConfig, HandsError, HandsEvent, Identity, Place, Stop, StopSignal,
    SuperviseConfig, Welcome, Whereabouts,
    orphans::clear_orphans,
    seals::{Seals, read_seals},
    supervise,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions},
};

const ROLE: &str = "ONWARD_TEST_ROLE";
pub(crate) const HANG: Duration = Duration::from_mins(2);

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) place: Place,
    pub(crate) grace_ms: u64,
    pub(crate) linger_ms: u64,
    pub(crate) output_bytes_max: u64,
}

impl Bench {
    pub(crate) fn new(run: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let place = place(run, dir.path());
        std::fs::create_dir(&place.run_dir).unwrap();
        std::fs::create_dir(&place.project_dir).unwrap();
        Self { dir, place, grace_ms: 200, linger_ms: 60_000, output_bytes_max: 1 << 20 }
    }

    pub(crate) fn config(&self, epoch: u32) -> HandsConfig {
        let limits = [self.grace_ms, self.linger_ms, self.output_bytes_max];
        hands_config(&self.place, epoch, limits)
    }

    pub(crate) fn try_connect(&self, epoch: u32) -> Result<(Hands, Welcome), HandsError> {
        Hands::connect_or_start(&self.config(epoch))
    }

    pub(crate) fn connect(&self, epoch: u32) -> Engine {
        let (mut hands, welcome) = self.try_connect(epoch).unwrap();
        let (sender, events) = channel();
        hands.listen(move |event| drop(sender.send(event))).unwrap();
        Engine { hands, welcome, events }
    }

    /// A run of one engine: spawn these, collect their seals in any order.
    pub(crate) fn run(&self, launches: &[Launch]) -> Vec<Seal> {
        let mut engine = self.connect(1);
        engine.hands.spawn(launches).unwrap();
        let seals = launches.iter().map(|_| engine.next_seal()).collect();
        engine.leave();
        seals
    }

    pub(crate) fn seals(&self) -> Seals {
        read_seals(&self.place.seals(), None).unwrap()
    }

    pub(crate) fn supervisor(&self) -> Option<Identity> {
        Whereabouts::read(&self.place).unwrap().map(|here| here.identity())
    }

    pub(crate) fn output(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.place.out_dir().join(name)).ok()
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.place.project_dir.join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    /// Every living process that carries this run's tag. Written apart from the product on purpose.
    pub(crate) fn tagged(&self) -> Vec<i32> {
        let tag = format!("ONWARD_RUN={}", self.place.run);
        let is_ours = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|entry| entry == tag.as_bytes())
        };
        let names = std::fs::read_dir("/proc").unwrap().map(|it| it.unwrap().file_name());
        let pids = names.filter_map(|name| name.to_str()?.parse().ok());
        pids.filter(is_ours).filter(|pid| is_living(*pid)).collect()
    }
}

impl Drop for Bench {
    /// A failing test leaves nothing behind either.
    fn drop(&mut self) {
        if let Some(it) = Whereabouts::read(&self.place).ok().flatten() {
            kill(it.identity());
        }
        let _ = clear_orphans(&self.place.run, &self.seals(), Stop { grace_ms: 0, ..TERM });
    }
}

pub(crate) const TERM: Stop = Stop { signal: StopSignal::Term, grace_ms: 5_000 };

pub(crate) struct Engine {
    pub(crate) hands: Hands,
    pub(crate) welcome: Welcome,
    pub(crate) events: Receiver<HandsEvent>,
}

impl Engine {
    pub(crate) fn next(&self) -> HandsEvent {
        self.events.recv_timeout(HANG).expect("an event, before this hangs")
    }

    pub(crate) fn next_seal(&self) -> Seal {
        loop {
            match self.next() {
                HandsEvent::Sealed(seal) => return seal,
                HandsEvent::Spawned(_) => {}
                HandsEvent::Gone { .. } => panic!("the supervisor is gone"),
            }
        }
    }

    pub(crate) fn next_spawned(&self) -> Alive {
        match self.next() {
            HandsEvent::Spawned(alive) => alive,
            other @ (HandsEvent::Sealed(_) | HandsEvent::Gone { .. }) => panic!("{other:?}"),
        }
    }

    /// Asks the supervisor to leave and sees it go.
    pub(crate) fn leave(mut self) {
        self.hands.shutdown().unwrap();
        while self.next() != (HandsEvent::Gone { why: None }) {}
    }
}

fn place(run: &str, dir: &Path) -> Place {
    Place {
        run: run.parse().unwrap(),
        run_dir: dir.join("run"),
        project_dir: dir.join("project"),
        socket_dir: dir.join("s"),
    }
}

fn hands_config(place: &Place, epoch: u32, limits: [u64; 3]) -> HandsConfig {
    let dir = place.run_dir.parent().unwrap().display();
    let [grace_ms, linger_ms, output_bytes_max] = limits;
    let role =
        format!("{ROLE}=supervisor {} {dir} {grace_ms} {linger_ms} {output_bytes_max}", place.run);
    let path = std::env::var_os("PATH").unwrap();
    let env = vec![("PATH".into(), path), ("FROM_ENGINE".into(), "yes".into())];
    HandsConfig { place: place.clone(), epoch, env, exec: copy_of_us(role) }
}

/// `env` sets the role and becomes the copy; no process stands between.
fn copy_of_us(role: String) -> Vec<OsString> {
    let us = std::env::current_exe().unwrap();
    let args = ["role_of_a_copy", "--exact", "--nocapture", "--test-threads=1"];
    let start = [OsString::from("/usr/bin/env"), role.into(), us.into()];
    start.into_iter().chain(args.map(OsString::from)).collect()
}

/// A process that connects as an engine, spawns `sh -c script` as step `a`, and waits to be killed.
pub(crate) fn engine_process(bench: &Bench, script: &str) -> std::process::Child {
    let role = format!("{ROLE}=engine {} {} {script}", bench.place.run, bench.dir.path().display());
    let argv = copy_of_us(role);
    let stdout = std::process::Stdio::null();
    std::process::Command::new(&argv[0]).args(&argv[1..]).stdout(stdout).spawn().unwrap()
}

pub(crate) fn play_role() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    let role = role.into_string().unwrap();
    let (name, rest) = role.split_once(' ').unwrap();
    let mut words = rest.splitn(if name == "engine" { 3 } else { 5 }, ' ');
    let mut word = || words.next().unwrap();
    let place = place(word(), Path::new(word()));
    if name == "engine" {
        // The supervisor that it starts is a copy of us too, with the other role.
        let config = hands_config(&place, 1, [200, 60_000, 1 << 20]);
        let (mut hands, _) = Hands::connect_or_start(&config).unwrap();
        hands.spawn(&[shell("a", word())]).unwrap();
        loop {
            std::thread::park();
        }
    }
    let (grace_ms, linger_ms) = (word().parse().unwrap(), word().parse().unwrap());
    let output_bytes_max = word().parse().unwrap();
    let leftover_stop = Stop { grace_ms, ..TERM };
    supervise(&SuperviseConfig { place, leftover_stop, linger_ms, output_bytes_max }).unwrap();
}

pub(crate) fn launch(step: &str, program: Program) -> Launch {
    Launch {
        step: Address::from_text(step),
        attempt: 1,
        program,
        cwd: String::new(),
        env: BTreeMap::new(),
        check: None,
        timeout_ms: None,
        idle_ms: None,
        sync_seal: false,
        snapshot: None,
    }
}

pub(crate) fn shell(step: &str, command: &str) -> Launch {
    launch(step, Program::Shell(command.into()))
}

pub(crate) fn argv(step: &str, words: &[&str]) -> Launch {
    launch(step, Program::Argv(words.iter().map(|it| (*it).into()).collect()))
}

pub(crate) const fn exited(code: i32) -> Ending {
    Ending::Exited { code }
}

pub(crate) fn is_living(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

fn pidfd(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    rustix::process::pidfd_send_signal(pidfd(pid).unwrap(), signal).unwrap();
}

/// Stops a child of ours until it is continued; it has stopped when this returns.
pub(crate) fn freeze(pid: i32) {
    signal(pid, Signal::STOP);
    let pid = Pid::from_raw(pid).unwrap();
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(pid), options).unwrap();
}

/// Kills that process and waits until it is dead.
pub(crate) fn kill(id: Identity) {
    if let Some(fd) = pidfd(id.pid) {
        let _ = rustix::process::pidfd_send_signal(&fd, Signal::KILL);
        await_end(&fd);
    }
}

pub(crate) fn await_death(pid: i32) {
    if let Some(fd) = pidfd(pid) {
        await_end(&fd);
    }
}

fn await_end(fd: &OwnedFd) {
    let timeout = Timespec { tv_sec: i64::try_from(HANG.as_secs()).unwrap(), tv_nsec: 0 };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut fds, Some(&timeout)).unwrap(), 1, "it should have died");
}

/// Reads one whole message from a fifo: returns when its writer has written and closed.
pub(crate) fn hear(fifo: PathBuf) -> String {
    let (sender, heard) = channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(fifo).unwrap()));
    heard.recv_timeout(HANG).expect("a word through the fifo").trim_end().to_owned()
}

/// Lets a reader of this fifo go on.
pub(crate) fn say(fifo: PathBuf) {
    let (sender, said) = channel();
    std::thread::spawn(move || sender.send(std::fs::write(fifo, "go\n")));
    said.recv_timeout(HANG).expect("a reader of the fifo").unwrap();
}
