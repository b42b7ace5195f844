//! One run in a temporary directory, with its supervisor, seen from the engine's end.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
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
    event::{PollFd, PollFlags},
    process::{Pid, Signal, WaitId, WaitIdOptions},
};

use crate::support::{self, copy_of_us, start_copy};
pub(crate) use crate::support::{HANG, await_death, hear, kill, say, signal};

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
        let mut ears = hands.ears().unwrap();
        std::thread::spawn(move || {
            loop {
                for event in ears.take() {
                    let is_last = matches!(event, HandsEvent::Gone { .. });
                    if sender.send(event).is_err() || is_last {
                        return;
                    }
                }
                rustix::event::poll(&mut [PollFd::new(&ears, PollFlags::IN)], None).unwrap();
            }
        });
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
        Whereabouts::read(&self.place).map(|here| here.identity())
    }

    pub(crate) fn output(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.place.out_dir().join(name)).ok()
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        support::fifo(self.place.project_dir.join(name))
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
        if let Some(it) = Whereabouts::read(&self.place) {
            kill(it.identity());
        }
        let _ = clear_orphans(&self.place, &self.seals(), Stop { grace_ms: 0, ..TERM });
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
                other @ HandsEvent::Withdrawn { .. } => panic!("{other:?}"),
                HandsEvent::Gone { .. } => panic!("the supervisor is gone"),
            }
        }
    }

    pub(crate) fn next_spawned(&self) -> Alive {
        match self.next() {
            HandsEvent::Spawned(alive) => alive,
            other @ (HandsEvent::Sealed(_)
            | HandsEvent::Withdrawn { .. }
            | HandsEvent::Gone { .. }) => panic!("{other:?}"),
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
    let role = format!("supervisor {} {dir} {grace_ms} {linger_ms} {output_bytes_max}", place.run);
    let path = std::env::var_os("PATH").unwrap();
    let env = vec![("PATH".into(), path), ("FROM_ENGINE".into(), "yes".into())];
    HandsConfig { place: place.clone(), epoch, env, exec: copy_of_us(&role) }
}

/// A process that connects as an engine, spawns `sh -c script` as step `a`, and waits to be killed.
pub(crate) fn engine_process(bench: &Bench, script: &str) -> std::process::Child {
    let role = format!("engine {} {} {script}", bench.place.run, bench.dir.path().display());
    start_copy(&role, &[])
}

pub(crate) fn play_role() {
    let Some(role) = support::role() else { return };
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
        stop: None,
        of: None,
        outputs: Vec::new(),
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

/// Stops a child of ours until it is continued; it has stopped when this returns.
pub(crate) fn freeze(pid: i32) {
    signal(pid, Signal::STOP);
    let pid = Pid::from_raw(pid).unwrap();
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    rustix::process::waitid(WaitId::Pid(pid), options).unwrap();
}
