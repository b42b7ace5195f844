//! Every boundary of a journal, and a run that dies at each of them once.
//!
//! A boundary is the moment in which a record is durable and nothing has acted on it. The engine is
//! on a taut leash: it is let past a record only when the record after it was looked at, so that no
//! boundary is passed unseen, however quick or busy the machine is. What happens at two moments is
//! told apart by the kind of its record and its step, not by the attempt: a step that runs again
//! after a kill is not killed at the same boundary again, and the run comes to its end.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use onward_engine::care::harness::until;
use serde_json::Value;

use super::{
    bench::{Bench, kill_all},
    leash::Leash,
};

/// Who dies at a boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dies {
    /// The engine alone: what it started goes on without it. Records of one batch are one write,
    /// and one boundary.
    Engine,
    /// As if the machine had stopped: of a batch, any part may have come to the disk, so that
    /// every record of it is a boundary.
    Everything,
}

/// One record of a journal.
#[derive(Clone, Debug)]
struct Line {
    seq: u64,
    batch: u64,
    kind: String,
    /// The step that it is about, or that ended before it.
    step: String,
    /// What tells this moment from every other of the story.
    key: String,
    /// Where the next one begins.
    end: u64,
}

/// The run dies at every boundary and goes on after it; what it did in between is in its journal.
pub(crate) struct Boundaries<'b> {
    bench: &'b Bench,
    who: Dies,
    /// How the run goes on from where it is.
    resume: &'b dyn Fn() -> String,
    /// Of a long story, the boundaries that one test has; all, if all of them are.
    of: fn(&str) -> bool,
    /// Boundaries at which it died.
    died_at: BTreeSet<String>,
}

impl<'b> Boundaries<'b> {
    pub(crate) fn new(
        bench: &'b Bench,
        who: Dies,
        resume: &'b dyn Fn() -> String,
        of: fn(&str) -> bool,
    ) -> Self {
        Self { bench, who, resume, of, died_at: BTreeSet::new() }
    }

    /// Of the boundaries of another run, those at which this one did not die. What files proved
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
            (self.of)(&it.key) && !self.died_at.contains(&it.key) && !is_answer && !is_adopted
        };
        let all = Lines::of(other).all.into_iter().filter(is_missed);
        all.map(|it| it.key).collect()
    }

    /// From the command that starts the run to its end. `answers` what a gate asks, and `holds`
    /// looks at the files after each death.
    pub(crate) fn all(&mut self, run: &str, mut answers: impl FnMut(), mut holds: impl FnMut()) {
        let mut engine = Leash::start_taut(&mut self.bench.command(run));
        let run = engine.first_run(&self.bench.project());
        // It is made with its first batch in it.
        let made = Lines::of(&run).all.into_iter().take_while(|it| it.batch == 1);
        let mut last = self.dies(&mut engine, &run, &made.last().unwrap());
        while last.kind != "run.ended" {
            holds();
            if last.kind == "run.paused" {
                // Asked again, and nothing before it is repeated.
                self.bench.exits(&(self.resume)(), 11);
                answers();
            }
            engine = Leash::start_taut(&mut self.bench.command(&(self.resume)()));
            last = if let Some(line) = self.next(&mut engine, &run) {
                self.dies(&mut engine, &run, &line)
            } else {
                let (code, last) = (engine.exits(), Lines::of(&run).last().clone());
                let wanted = if last.kind == "run.ended" { 0 } else { 11 };
                assert_eq!(code, Some(wanted), "{}", engine.last);
                last
            };
        }
        holds();
    }

    /// Lets the engine go on to the next boundary at which the run has not died yet; none if it
    /// came to rest before.
    fn next(&self, engine: &mut Leash, run: &Path) -> Option<Line> {
        let mut lines = Lines::of(run);
        let begun_at = lines.last().seq;
        let mut told = Vec::new();
        let found = until("the next boundary", || {
            loop {
                lines.look();
                let last = lines.last();
                let mut new = lines.all.iter().skip_while(|it| it.seq <= begun_at);
                let is_due = |it: &&Line| (self.of)(&it.key) && !self.died_at.contains(&it.key);
                if let Some(line) = new.find(is_due) {
                    assert_eq!(last.batch, line.batch, "{} was passed: {}", line.key, last.key);
                    return Ok(Some(Some(line.clone())));
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
    fn dies(&mut self, engine: &mut Leash, run: &Path, line: &Line) -> Line {
        engine.kill();
        let mut left = Lines::of(run).all;
        match self.who {
            Dies::Everything => {
                kill_all(run);
                left.retain(|it| it.seq <= line.seq);
            }
            Dies::Engine => left.retain(|it| it.batch <= line.batch),
        }
        self.died_at.extend(left.iter().map(|it| it.key.clone()));
        let last = left.pop().unwrap();
        let journal = OpenOptions::new().write(true).open(run.join("journal.jsonl")).unwrap();
        journal.set_len(last.end).unwrap();
        last
    }
}

fn seq(line: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(line).ok()?["seq"].as_u64()
}

/// The records of a journal that are whole, each read once.
struct Lines {
    path: PathBuf,
    all: Vec<Line>,
    /// The step that finished last.
    finished: String,
}

impl Lines {
    fn of(run: &Path) -> Self {
        let path = run.join("journal.jsonl");
        let mut lines = Self { path, all: Vec::new(), finished: String::new() };
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
            }
            let key = match kind.as_str() {
                "loop.turned" => format!("{kind} {step} {}", record["turn"]),
                _ => format!("{kind} {step}").trim_end().to_owned(),
            };
            if kind == "attempt.finished" {
                self.finished.clone_from(&step);
            }
            end += u64::try_from(line.len()).unwrap();
            let number = |key: &str| record[key].as_u64().unwrap();
            let (seq, batch) = (number("seq"), number("batch"));
            self.all.push(Line { seq, batch, kind, step, key, end });
        }
    }
}
