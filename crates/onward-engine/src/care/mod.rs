//! What looking after runs has in common: how it is refused, and how facts are added to a journal
//! that has no driver.
//!
//! Invariant: every function here holds the run's lock before it writes, and writes nothing
//! when it refuses.

pub mod archive;
pub mod clean;
pub mod doctor;
pub mod harness;
pub mod programs;
pub mod rehearse;
pub mod repair;
pub mod rescues;
pub mod verify;

use std::{path::Path, sync::Arc, thread, time::Duration};

use onward_core::{event::Event, graph::Defs, journal::Rest, run::Run, state::State};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    engine::{EngineError, RunPlace},
    load::journal::{End, JOURNAL, Journal, load, mend_tail},
    locate::load_pinned,
    world::{
        At, Stop, World as _,
        real::{RealWorld, look},
        supervisor::{Place, Whereabouts, boot_id},
    },
};

/// Why a run was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum CareError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the journal of run `{0}` is damaged")]
    Damaged(String),
    /// Processes of the run live, though it has no driver.
    #[error("{what} of run `{run}` is still alive")]
    Alive { run: String, what: String },
    /// Nothing is done without a person's word.
    #[error("{what}")]
    NeedsYes { what: String, hint: String },
    /// It cannot be done, and what to do instead.
    #[error("{what}")]
    Refused { what: String, hint: String },
}

impl CareError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::Damaged(run) => Some(format!("rebuild it with `onward repair {run}`")),
            Self::Alive { .. } => Some(
                "let it end, or continue with `onward resume`; orphans are ended by \
                 `onward doctor --fix`"
                    .to_owned(),
            ),
            Self::NeedsYes { hint, .. } | Self::Refused { hint, .. } => Some(hint.clone()),
        }
    }
}

impl From<Stop> for CareError {
    fn from(stop: Stop) -> Self {
        Self::Engine(stop.into())
    }
}

/// Which run a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunRef {
    pub id: String,
    pub dir: String,
}

impl RunRef {
    pub fn of(run_dir: &Path) -> Self {
        let id = run_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { id, dir: run_dir.display().to_string() }
    }
}

/// A run whose journal was read whole.
pub(crate) struct Opened {
    pub(crate) world: RealWorld,
    pub(crate) run: Run,
    end: End,
    tail: onward_core::journal::Tail,
}

impl Opened {
    pub(crate) fn read(at: &RunPlace, world: RealWorld) -> Result<Self, CareError> {
        let mut world = world;
        let bytes = world.read(At::Run(JOURNAL))?.unwrap_or_default();
        let loaded = load(&bytes).map_err(EngineError::from)?;
        if let Rest::Damaged(_) = loaded.tail.rest {
            return Err(CareError::Damaged(at.place.run.to_string()));
        }
        let workflow = load_pinned(&at.place.run_dir).map_err(EngineError::from)?.workflow;
        let run = Run::new(Arc::new(Defs::new(workflow)), loaded.state);
        Ok(Self { world, run, end: End { offset: 0, bytes }, tail: loaded.tail })
    }

    /// Adds facts, as one batch, and lets go of the journal. The caller holds the run's lock.
    pub(crate) fn append(mut self, events: Vec<Event>) -> Result<Run, CareError> {
        if events.is_empty() {
            return Ok(self.run);
        }
        mend_tail(&mut self.world, &self.end, &self.tail)?;
        let mut journal = Journal::after(&self.run.state, self.tail.missing_newline);
        for mut event in events {
            self.world.clean(&mut event);
            let at = self.world.now();
            journal.record(&mut self.run, at, event)?;
        }
        journal.commit(&mut self.world)?;
        self.world.finish()?;
        Ok(self.run)
    }
}

/// How long a supervisor without children may take to leave; it goes by itself.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Refuses while anything of the run lives. A supervisor that holds nothing is waited for.
pub(crate) fn must_be_dead(place: &Place) -> Result<(), CareError> {
    let alive = |what: String| CareError::Alive { run: place.run.to_string(), what };
    for _ in 0..=LEAVES_WITHIN.as_millis() / LOOK_EVERY.as_millis() {
        let seen = look(place, &State::default(), &[])?;
        if let Some((step, attempt)) = seen.alive.first() {
            return Err(alive(format!("attempt {attempt} at `{step}`")));
        }
        if seen.orphans > 0 {
            return Err(alive(format!("{} of the processes", seen.orphans)));
        }
        if !supervisor_lives(place) {
            return Ok(());
        }
        thread::sleep(LOOK_EVERY);
    }
    Err(alive("the supervisor".to_owned()))
}

/// Whether the supervisor of this run is a process of this boot.
pub(crate) fn supervisor_lives(place: &Place) -> bool {
    let here = Whereabouts::read(place);
    let is_of_boot = |here: &Whereabouts| boot_id().is_ok_and(|boot| boot == here.boot_id);
    here.is_some_and(|here| is_of_boot(&here) && here.identity().is_alive())
}
