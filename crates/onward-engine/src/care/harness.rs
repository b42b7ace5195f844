//! Trying out a run from outside: an engine as a child process, a moment of its journal to wait
//! for, a ledger that counts what really ran.
//!
//! What `onward demo` shows and what the kill tests prove is the same code. Invariant: it decides
//! from the journal and the ledger alone, never from how much time has passed; time only makes a
//! wait that hangs fail.

use crate::world::open;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    thread,
    time::Duration,
};

use onward_core::{
    event::{Event, Record},
    evidence::Outcome,
};

use crate::{
    load::follow::{FollowError, Follower},
    locate::{FindError, Project},
};

/// How often the journal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(3);
/// After so many looks, two minutes at the least, a wait has failed. Far beyond what a loaded
/// machine takes.
const LOOKS_MAX: u32 = 40_000;

#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    #[error("cannot {doing}")]
    Io { doing: &'static str, source: io::Error },
    #[error(transparent)]
    Follow(#[from] FollowError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error("waited too long for {0}")]
    InVain(&'static str),
    #[error("line {line} of the ledger is not STEP ATTEMPT: `{text}`")]
    Ledger { line: usize, text: String },
}

impl HarnessError {
    pub fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}

/// Asks again until there is an answer. It waits by looking, not by hoping.
pub fn until<T>(
    what: &'static str,
    mut ask: impl FnMut() -> Result<Option<T>, HarnessError>,
) -> Result<T, HarnessError> {
    for _ in 0..LOOKS_MAX {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        thread::sleep(LOOK_EVERY);
    }
    Err(HarnessError::InVain(what))
}

/// An engine of its own, to be killed. It does not outlive the holder of this value.
#[derive(Debug)]
pub struct EngineProcess(Child);

impl EngineProcess {
    pub fn start(command: &mut Command) -> Result<Self, HarnessError> {
        command.spawn().map(Self).map_err(HarnessError::io("start an engine"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// SIGKILL, and gone when this returns.
    pub fn kill(&mut self) -> Result<(), HarnessError> {
        self.0.kill().map_err(HarnessError::io("kill the engine"))?;
        self.wait().map(drop)
    }

    pub fn wait(&mut self) -> Result<ExitStatus, HarnessError> {
        self.0.wait().map_err(HarnessError::io("wait for the engine"))
    }

    fn has_ended(&mut self) -> Result<bool, HarnessError> {
        Ok(self.0.try_wait().map_err(HarnessError::io("wait for the engine"))?.is_some())
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The run that an engine makes in a project without one.
pub fn first_run(
    project: &Project,
    engine: &mut EngineProcess,
) -> Result<Option<PathBuf>, HarnessError> {
    until("a run to be made", || {
        let ended = engine.has_ended()?;
        match project.runs()?.into_iter().next() {
            Some(run) => Ok(Some(Some(run.dir))),
            None => Ok(ended.then_some(None)),
        }
    })
}

/// Everything a journal holds so far.
#[derive(Debug)]
pub struct Watch {
    follower: Follower,
    pub records: Vec<Record>,
}

impl Watch {
    pub fn new(run_dir: &Path) -> Self {
        Self { follower: Follower::new(run_dir), records: Vec::new() }
    }

    /// Reads what has come.
    pub fn look(&mut self) -> Result<(), HarnessError> {
        self.records.extend(self.follower.poll()?);
        Ok(())
    }

    /// Waits until the journal shows it; false if the engine ended before it did.
    pub fn until(
        &mut self,
        engine: &mut EngineProcess,
        mut shows: impl FnMut(&Self) -> bool,
    ) -> Result<bool, HarnessError> {
        until("the journal to show it", || {
            // Asked before reading, so that what the engine wrote last is not missed.
            let ended = engine.has_ended()?;
            self.look()?;
            if shows(self) {
                return Ok(Some(true));
            }
            Ok(ended.then_some(false))
        })
    }

    /// The attempts that count, in the order in which they were recorded.
    pub fn finished(&self) -> Vec<(String, u32)> {
        let mut finished = Vec::new();
        for record in &self.records {
            if let Event::AttemptFinished(it) = &record.event
                && it.outcome == Outcome::Done
            {
                finished.push((it.step.to_string(), it.attempt));
            }
        }
        finished
    }

    /// The attempts that were announced and of which nothing more is known.
    pub fn in_flight(&self) -> Vec<(String, u32)> {
        let mut open: Vec<(String, u32)> = Vec::new();
        for record in &self.records {
            let ended = if let Event::AttemptStarted(it) = &record.event {
                open.push((it.step.to_string(), it.attempt));
                continue;
            } else if let Event::AttemptFinished(it) = &record.event {
                &it.step
            } else if let Event::AttemptAdopted(it) = &record.event {
                &it.step
            } else if let Event::AttemptLost { step, .. } = &record.event {
                step
            } else {
                continue;
            };
            open.retain(|(step, _)| *step != ended.as_str());
        }
        open
    }
}

/// What the steps themselves say about having run: each adds a line `STEP ATTEMPT` when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger(pub BTreeMap<String, Vec<u32>>);

impl Ledger {
    /// One that does not exist is empty.
    pub fn read(path: &Path) -> Result<Self, HarnessError> {
        match open::text_named(path, open::FILE_BYTES_MAX) {
            Ok(text) => Self::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(HarnessError::io("read the ledger")(error)),
        }
    }

    pub fn parse(text: &str) -> Result<Self, HarnessError> {
        let mut ledger = Self::default();
        for (index, line) in text.lines().enumerate() {
            let entry = line
                .rsplit_once(' ')
                .and_then(|(step, attempt)| Some((step.to_owned(), attempt.parse::<u32>().ok()?)));
            let bad = || HarnessError::Ledger { line: index + 1, text: line.to_owned() };
            let (step, attempt) = entry.ok_or_else(bad)?;
            ledger.0.entry(step).or_default().push(attempt);
        }
        Ok(ledger)
    }

    /// How the ledger contradicts the journal. Empty when every finished attempt ran once, no
    /// attempt ran twice, and no attempt of a step ran after the one that finished it.
    pub fn against(&self, finished: &[(String, u32)]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (step, attempt) in finished {
            let ran = self.0.get(step).map_or(&[][..], Vec::as_slice);
            let times = ran.iter().filter(|it| *it == attempt).count();
            if times != 1 {
                wrong.push(format!("{step}: attempt {attempt} finished and ran {times} times"));
            }
            if let Some(later) = ran.iter().find(|it| *it > attempt) {
                wrong.push(format!("{step}: finished by attempt {attempt}, yet {later} ran"));
            }
        }
        for (step, ran) in &self.0 {
            let mut once = ran.clone();
            once.sort_unstable();
            once.dedup();
            if once.len() != ran.len() {
                wrong.push(format!("{step}: an attempt ran twice: {ran:?}"));
            }
        }
        wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn against(ledger: &str, finished: &[(&str, u32)]) -> Vec<String> {
        let finished: Vec<_> = finished.iter().map(|(it, n)| ((*it).to_owned(), *n)).collect();
        Ledger::parse(ledger).unwrap().against(&finished)
    }

    #[test]
    fn what_ran_once_and_finished_proves_itself() {
        assert_eq!(against("a 1\nb[x y] 1\nb[x y] 2\n", &[("a", 1), ("b[x y]", 2)]), [""; 0]);
    }

    #[test]
    fn every_way_of_running_too_often_is_found() {
        assert_eq!(against("", &[("a", 1)]), ["a: attempt 1 finished and ran 0 times"]);
        assert_eq!(against("a 1\na 2\n", &[("a", 1)]), ["a: finished by attempt 1, yet 2 ran"]);
        assert_eq!(against("a 1\na 1\n", &[]), ["a: an attempt ran twice: [1, 1]"]);
        let error = Ledger::parse("a 1\nb").unwrap_err();
        assert_eq!(error.to_string(), "line 2 of the ledger is not STEP ATTEMPT: `b`");
    }
}
