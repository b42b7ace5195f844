//! A run that dies at every boundary of its journal, once at each, and goes on after it.
//!
//! A boundary is the moment in which records are durable and nothing has acted on them. The engine
//! is on a taut leash: it is let past a record only when the record after it was looked at, so that
//! no boundary is passed unseen, however quick or busy the machine is. What happens at two moments
//! is told apart by the kind of its record and its step, not by the attempt: a step that runs again
//! after a kill is not killed at the same boundary again, and the run comes to its end.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::Command,
};

use onward_engine::care::harness::until;
use serde_json::Value;

use super::{
    bench::{Bench, kill_all},
    leash::Leash,
};

/// A project in which a run is driven.
pub(crate) trait Scene {
    fn bench(&self) -> &Bench;

    fn command(&self, arguments: &str) -> Command {
        self.bench().command(arguments)
    }

    /// What the user says where the run waits for a word.
    fn answer(&self);

    /// How the run goes on from where it is.
    fn resume(&self) -> String {
        "resume --yes --no-input".to_owned()
    }

    /// Looks at the files after each death.
    fn holds(&self) {}
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// At every record. The records of a batch are one write: an engine that dies alone has written
    /// all of it. When everything dies, any part of it may have come to the disk, so that each
    /// record is a boundary, and those behind it are cut off.
    Records,
    /// At the end of each batch that an undisturbed run has, too.
    Batches,
    /// There, when a process has started, and when an attempt was found to be lost.
    Everywhere,
}

/// Drives the run to its end; it dies at each boundary that is about one of `these` steps, and goes
/// on. A long run is shared by several tests, which run side by side.
#[track_caller]
pub(crate) fn killed_at_every_boundary(
    scene: &impl Scene,
    run: &str,
    (dies, at): (Dies, At),
    these: fn(&str) -> bool,
) -> Kills {
    let kills = Kills { died_at: BTreeSet::new(), count: 0, these };
    let mut story = Story { scene, dies, at, kills };
    story.tell(run);
    story.kills
}

/// How often a run died, and where.
pub(crate) struct Kills {
    died_at: BTreeSet<String>,
    count: usize,
    these: fn(&str) -> bool,
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.count.fmt(f)
    }
}

impl Kills {
    /// Of the records of another run, those at which this one did not die. What files proved
    /// after a kill was taken over from them, and the run died at that boundary instead. An answer
    /// is a command of its own, and over before the run goes on.
    pub(crate) fn missed(&self, other: &Path) -> BTreeSet<String> {
        let adopted: Vec<&str> =
            self.died_at.iter().filter_map(|it| it.strip_prefix("attempt.adopted ")).collect();
        let is_in = |step: &str, whole: &str| {
            step.strip_prefix(whole).is_some_and(|it| it.is_empty() || it.starts_with(['/', '[']))
        };
        let is_missed = |it: &Line| {
            let is_answer = it.kind == "gate.decided";
            let is_adopted = adopted.iter().any(|whole| is_in(&it.step, whole));
            (self.these)(&it.step) && !self.died_at.contains(&it.key) && !is_answer && !is_adopted
        };
        let all = Lines::of(other, At::Records).all.into_iter().filter(is_missed);
        all.map(|it| it.key).collect()
    }
}

/// One run, from the command that starts it to its end.
struct Story<'s, S> {
    scene: &'s S,
    dies: Dies,
    at: At,
    kills: Kills,
}

impl<S: Scene> Story<'_, S> {
    fn tell(&mut self, run: &str) {
        let mut engine = Leash::start_taut(&mut self.scene.command(run));
        let project = self.scene.bench().project();
        // It is made with its first batch in it, before anything of it is told.
        let run = until("a run", || Ok(project.runs().unwrap_or_default().pop().map(|it| it.dir)));
        let run = run.unwrap();
        let made = Lines::of(&run, self.at).all.into_iter().take_while(|it| it.batch == 1);
        let made = made.last().unwrap();
        let mut last = match self.at {
            At::Records => self.kills(&mut engine, &run, &made),
            At::Batches | At::Everywhere => {
                // What it tells of its beginning takes the place of what the pipe was full of.
                engine.lets_through();
                self.goes_on(&mut engine, &run, made.seq)
            }
        };
        while last.kind != "run.ended" {
            self.scene.holds();
            if last.kind == "run.paused" {
                // Asked again, and nothing before it is repeated.
                let again = self.scene.command(&self.scene.resume()).output().unwrap();
                assert_eq!(again.status.code(), Some(11), "{again:?}");
                self.scene.answer();
            }
            let begun_at = Lines::of(&run, self.at).last().seq;
            engine = Leash::start_taut(&mut self.scene.command(&self.scene.resume()));
            last = self.goes_on(&mut engine, &run, begun_at);
        }
        self.scene.holds();
    }

    /// Up to its next death, or to where it comes to rest. Returns the last record that is left.
    fn goes_on(&mut self, engine: &mut Leash, run: &Path, begun_at: u64) -> Line {
        if let Some(line) = self.next(engine, run, begun_at) {
            return self.kills(engine, run, &line);
        }
        let (code, last) = (engine.exits(), Lines::of(run, self.at).last().clone());
        let wanted = if last.kind == "run.ended" { 0 } else { 11 };
        let why = || format!("after {} kills: {}\n{}", self.kills, engine.last, self.failures(run));
        assert_eq!(code, Some(wanted), "{}", why());
        last
    }

    /// Attempts that failed, and what the last steps said: a failure is rarely seen twice.
    fn failures(&self, run: &Path) -> String {
        let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
        let failed: Vec<&str> = journal.lines().filter(|it| it.contains("\"failed\"")).collect();
        let status = self.scene.command("status").output().unwrap();
        format!("{}\n{}", failed.join("\n"), String::from_utf8_lossy(&status.stdout))
    }

    /// Lets the engine go on to the next boundary at which the run has not died yet; none if it
    /// came to rest before.
    fn next(&mut self, engine: &mut Leash, run: &Path, begun_at: u64) -> Option<Line> {
        let mut lines = Lines::of(run, self.at);
        let mut told = Vec::new();
        let Self { at, kills, .. } = self;
        let found = until("the next boundary", || {
            loop {
                let begun = if *at == At::Everywhere { spawned(run) } else { Vec::new() };
                lines.look();
                let last = lines.last();
                let mut new = lines.all.iter().skip_while(|it| it.seq <= begun_at);
                let is_open =
                    |key: &str, step: &str| (kills.these)(step) && !kills.died_at.contains(key);
                if let Some(line) = new.find(|it| it.counts(*at) && is_open(&it.key, &it.step)) {
                    assert_eq!(last.batch, line.batch, "{} was passed: {}", line.key, last.key);
                    return Ok(Some(Some(line.clone())));
                }
                let mut begun = begun.into_iter().map(|step| (format!("spawning {step}"), step));
                if let Some((key, _)) = begun.find(|(key, step)| is_open(key, step)) {
                    kills.died_at.insert(key);
                    return Ok(Some(Some(last.clone())));
                }
                let rests = matches!(last.kind.as_str(), "run.ended" | "run.paused");
                if engine.has_ended() || rests && last.seq > begun_at {
                    return Ok(Some(None));
                }
                let packet = engine.tells();
                let is_whole = packet.ends_with(b"\n");
                let line = [told.as_slice(), packet.as_slice()].concat();
                // The line that is told is one behind the record that the engine stands at.
                let is_looked_at = last.seq > seq(&line).unwrap_or(begun_at);
                if packet.is_empty() || is_whole && !is_looked_at {
                    return Ok(None);
                }
                engine.lets_through();
                told = if is_whole { Vec::new() } else { line };
            }
        });
        found.unwrap_or_else(|error| {
            panic!("{error} after {:?}, with {}", lines.last(), engine.last)
        })
    }

    /// Returns the last record that is left.
    fn kills(&mut self, engine: &mut Leash, run: &Path, line: &Line) -> Line {
        engine.kill();
        let mut left = Lines::of(run, self.at).all;
        if self.dies == Dies::Everything {
            kill_all(run);
        }
        if self.at == At::Records {
            left.retain(|it| match self.dies {
                Dies::Everything => it.seq <= line.seq,
                Dies::Engine => it.batch <= line.batch,
            });
            let journal = OpenOptions::new().write(true).open(run.join("journal.jsonl")).unwrap();
            journal.set_len(left.last().unwrap().end).unwrap();
        }
        self.kills.died_at.extend(left.iter().map(|it| it.key.clone()));
        self.kills.count += 1;
        left.pop().unwrap()
    }
}

/// Steps of which the supervisor has started a process.
fn spawned(run: &Path) -> Vec<String> {
    let log = fs::read(run.join("exits.jsonl")).unwrap_or_default();
    let lines = log.split(|byte| *byte == b'\n').map(serde_json::from_slice::<Value>);
    let starts = lines.map_while(Result::ok).filter(|it| it["kind"] == "spawning");
    starts.map(|it| it["step"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Of the last record that is told; a new run tells its first ones at once.
fn seq(lines: &[u8]) -> Option<u64> {
    let last = lines.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    serde_json::from_slice::<Value>(last).ok()?["seq"].as_u64()
}

/// One record of a journal.
#[derive(Clone, Debug)]
struct Line {
    seq: u64,
    batch: u64,
    kind: String,
    /// The step that it is about, or that came before it.
    step: String,
    /// What tells this moment from every other of the story.
    key: String,
    /// Where the next one begins.
    end: u64,
}

impl Line {
    /// A boundary there: going on is no progress of an undisturbed run, and a loss is none.
    fn counts(&self, at: At) -> bool {
        match at {
            At::Records => true,
            At::Batches => !self.kind.starts_with("run.") && self.kind != "attempt.lost",
            At::Everywhere => !self.kind.starts_with("run."),
        }
    }
}

/// The records of a journal that are whole, each read once.
struct Lines {
    path: PathBuf,
    at: At,
    all: Vec<Line>,
    /// The step that finished last.
    finished: String,
}

impl Lines {
    fn of(run: &Path, at: At) -> Self {
        let path = run.join("journal.jsonl");
        let mut lines = Self { path, at, all: Vec::new(), finished: String::new() };
        lines.look();
        lines
    }

    fn last(&self) -> &Line {
        self.all.last().unwrap()
    }

    /// Reads what has come.
    fn look(&mut self) {
        let mut end = self.all.last().map_or(0, |it| it.end);
        let mut file = File::open(&self.path).unwrap();
        file.seek(SeekFrom::Start(end)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|it| it.ends_with(b"\n")) {
            // While it is written, the beginning may be seen after the end.
            let Ok(record) = serde_json::from_slice::<Value>(line) else { break };
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            let (kind, mut step) = (text("kind"), text("step"));
            if kind == "native.exported" {
                step.clone_from(&self.finished);
            } else if step.is_empty() && self.at != At::Records {
                step = self.all.last().map(|it| it.step.clone()).unwrap_or_default();
            }
            let key = match kind.as_str() {
                "loop.turned" => format!("{kind} {step} {}", record["turn"]),
                _ => format!("{kind} {step}").trim_end().to_owned(),
            };
            if kind == "attempt.finished" {
                self.finished.clone_from(&step);
            }
            // No run of these tests fails by itself; what led to it is rarely seen twice.
            let has_failed = kind == "run.ended" && record["status"] != "completed";
            assert!(!has_failed, "{}", fs::read_to_string(&self.path).unwrap());
            end += u64::try_from(line.len()).unwrap();
            let number = |key: &str| record[key].as_u64().unwrap();
            let (seq, batch) = (number("seq"), number("batch"));
            self.all.push(Line { seq, batch, kind, step, key, end });
        }
    }
}
