//! A run that is killed at every boundary of its journal, and taken up again after each.
//!
//! A boundary is the end of a batch: the events of one batch become durable together. The engine
//! tells them on standard output before anything acts on them. Here that output is a pipe with
//! room for one write, and something is always in it; so the engine stands still at the first event
//! of each batch, durable and not acted on, until the test lets it go on. How much it has to tell
//! is known from the journal, so that the test never lets it go one write too far. Where a test
//! wants them, the start of each process, as the supervisor logs it, and what only a recovery
//! writes are boundaries too: there an agent is in the middle of its work, or a resume is.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use onward_engine::care::harness::until;
use rustix::{
    io::ioctl_fionread,
    pipe::{PipeFlags, fcntl_setpipe_size, pipe_with},
};
use serde_json::Value;

use super::bench::{Bench, kill_all};

/// The least that a pipe can hold: one write, because each is a packet of its own.
const ONE_WRITE: usize = 4096;
/// After so many looks, an engine that has driven nothing is let speak: it refuses, and says why.
const SILENT_MAX: u32 = 5_000;
/// What the engine puts before each event that it tells.
const BEFORE: &str = "{\"schema\":\"onward.event/1\",";

/// A project in which a run is driven.
pub(crate) trait Scene {
    fn bench(&self) -> &Bench;
    fn command(&self, arguments: &str) -> Command;
    /// What the user says where the run waits for a word.
    fn answer(&self);
}

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dies {
    /// As if the machine had stopped: the engine, the supervisor, the call or agent in mid-write.
    Everything,
    /// What the engine started goes on without it.
    Engine,
}

/// Where it dies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum At {
    #[default]
    /// At the boundaries of an undisturbed run.
    Batches,
    /// There, when a process has started, and when an attempt was found to be lost.
    Everywhere,
}

/// Drives the run to its end, kills it at each boundary that is about one of `these` steps, and
/// goes on. Returns how often it died. A long run is shared by two tests, which run side by side.
#[track_caller]
pub(crate) fn killed_at_every_boundary(
    scene: &impl Scene,
    run: &str,
    (dies, at): (Dies, At),
    these: fn(&str) -> bool,
) -> usize {
    let mut log = Log { at, ..Log::default() };
    let mut engine = Engine::start(scene, run, &mut log);
    let mut kills = 0;
    let code = loop {
        let Some(new) = engine.comes_to(scene, &mut log) else {
            match engine.exits() {
                Some(11) => scene.answer(),
                code => break code,
            }
            engine = Engine::start(scene, "resume --yes --no-input", &mut log);
            continue;
        };
        assert!(new.batches <= 1, "{} boundaries at once after {kills} kills", new.batches);
        if !new.steps.iter().any(|it| these(it)) {
            continue;
        }
        engine.dies();
        if dies == Dies::Everything {
            kill_all(&run_dir(scene));
        }
        kills += 1;
        engine = Engine::start(scene, "resume --yes --no-input", &mut log);
    };
    // The last kill may have come when nothing was left to do.
    assert!(matches!(code, Some(0 | 17)), "{code:?} after {kills} kills: {}", engine.last);
    kills
}

fn run_dir(scene: &impl Scene) -> PathBuf {
    scene.bench().project().runs().unwrap().remove(0).dir
}

/// What the journal and the supervisor's log hold, read as they grow.
#[derive(Default)]
struct Log {
    at: At,
    read: [usize; 2],
    /// What happened to which step, each once: this only ever grows, however often it is killed.
    seen: BTreeSet<String>,
    /// The step that the last event of a step was about.
    step: String,
    last: String,
    epoch: u64,
    batch: u64,
    /// How much an engine of a later epoch than this has to tell.
    started_in: u64,
    to_tell: usize,
}

/// What came since the last look.
#[derive(Default)]
struct New {
    /// Steps that something happened to for the first time.
    steps: Vec<String>,
    /// In so many batches.
    batches: usize,
}

impl Log {
    fn look(&mut self, scene: &impl Scene) -> New {
        let mut new = New::default();
        let runs = scene.bench().project().runs().unwrap_or_default();
        let Some(run) = runs.first() else { return new };
        for (index, name) in ["exits.jsonl", "journal.jsonl"].into_iter().enumerate() {
            for (event, bytes) in self.lines(index, &run.dir.join(name)) {
                if index == 1 {
                    self.takes(&event, bytes, &mut new);
                } else {
                    let step = event["step"].as_str().unwrap_or_default();
                    let is_start = event["kind"] == "spawning" && self.at == At::Everywhere;
                    if is_start && self.seen.insert(format!("spawning {step}")) {
                        new.steps.push(step.to_owned());
                    }
                }
            }
        }
        new
    }

    /// Whole lines that were not read before, and how long each is.
    fn lines(&mut self, index: usize, path: &Path) -> Vec<(Value, usize)> {
        let bytes = fs::read(path).unwrap_or_default();
        let rest = bytes.get(self.read[index]..).unwrap_or_default();
        let mut all = Vec::new();
        for line in rest.split_inclusive(|byte| *byte == b'\n') {
            // While a line is written, its end may be seen before its beginning.
            let whole = line.strip_suffix(b"\n").map(serde_json::from_slice::<Value>);
            let Some(Ok(event)) = whole else { break };
            self.read[index] += line.len();
            all.push((event, line.len() - 1));
        }
        all
    }

    fn takes(&mut self, event: &Value, bytes: usize, new: &mut New) {
        let number = |key: &str| event[key].as_u64().unwrap_or_default();
        if let Some(step) = event["step"].as_str() {
            step.clone_into(&mut self.step);
        }
        event["kind"].as_str().unwrap_or_default().clone_into(&mut self.last);
        self.epoch = number("epoch");
        if self.epoch > self.started_in {
            self.to_tell += BEFORE.len() + bytes;
        }
        // Going on is no progress, and files are written once for each step.
        let counts = self.at == At::Everywhere || self.last != "attempt.lost";
        let is_new = !self.last.starts_with("run.")
            && counts
            && self.seen.insert(format!("{} {}", self.last, self.step));
        if is_new {
            new.steps.push(self.step.clone());
            new.batches += usize::from(self.batch != number("batch"));
        }
        self.batch = number("batch");
    }
}

/// An engine that gets no further than it is let.
struct Engine {
    child: Child,
    told: File,
    /// What was read of what it tells; `None` while nothing of that can be in the pipe.
    read: Option<usize>,
    last: String,
}

impl Engine {
    fn start(scene: &impl Scene, arguments: &str, log: &mut Log) -> Self {
        log.look(scene);
        // The first epoch is that of making the run.
        (log.started_in, log.to_tell) = (log.epoch.max(1), 0);
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).unwrap();
        assert_eq!(fcntl_setpipe_size(&write, ONE_WRITE).unwrap(), ONE_WRITE);
        let mut write = File::from(write);
        write.write_all(b"-").unwrap();
        let mut command = scene.command(arguments);
        let child = command.arg("--json").stdout(write).stderr(Stdio::null()).spawn().unwrap();
        Self { child, told: File::from(read), read: None, last: String::new() }
    }

    /// Lets it go on until something happens for the first time; `None` if it ended before.
    fn comes_to(&mut self, scene: &impl Scene, log: &mut Log) -> Option<New> {
        let mut looks = 0;
        let came = until("a boundary of the journal", || {
            looks += 1;
            loop {
                let has_ended = self.child.try_wait().unwrap().is_some();
                let new = log.look(scene);
                if !new.steps.is_empty() {
                    return Ok(Some(Some(new)));
                }
                let is_over = log.last == "run.ended"
                    || log.last == "run.paused" && log.epoch > log.started_in
                    || log.to_tell == 0 && looks > SILENT_MAX;
                if is_over || has_ended {
                    return Ok(Some(None));
                }
                // What was let through a moment ago may not be there yet.
                let held = usize::try_from(ioctl_fionread(&self.told).unwrap()).unwrap();
                let told = self.read.map_or(0, |read| read + held);
                if held == 0 || told >= log.to_tell {
                    return Ok(None);
                }
                self.lets_through();
            }
        });
        came.unwrap()
    }

    /// Reads one write; false at the end.
    fn lets_through(&mut self) -> bool {
        let mut bytes = [0; ONE_WRITE];
        let count = self.told.read(&mut bytes).unwrap();
        self.read = Some(self.read.map_or(0, |read| read + count));
        if count > 1 {
            self.last = String::from_utf8_lossy(&bytes[..count]).into_owned();
        }
        count > 0
    }

    fn dies(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets go of it, and waits for its end.
    fn exits(&mut self) -> Option<i32> {
        while self.lets_through() {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
