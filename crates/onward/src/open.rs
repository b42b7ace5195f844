//! The runs that can be resumed here, of ours and of other systems, and which of them is meant
//! where a person names none.
//!
//! Invariant: one order. What `plan` and `status` show is what `resume` continues, or the first of
//! those that it lists when it asks.

use std::{path::Path, sync::Arc};

use onward_core::{
    event::Mode,
    finding::RUN_OVER,
    plan::{Plan, Status},
    run::Run,
    state::State,
};
use onward_engine::{
    load::checkpoint::Folded,
    locate::{FoundSite, RunDir},
};

use crate::{
    cmd::{Context, resume},
    diagnostic::printable,
    error::Error,
    meant,
    prompt::{First, Person},
    session::{Session, Which, found_in_commands, looked, state_of, with_workflow},
    style::ago,
};

/// A run on disk, folded. Callers that ask for more than how it stands read its workflow.
pub(crate) struct Found {
    pub(crate) dir: RunDir,
    pub(crate) state: State,
    pub(crate) status: Status,
    pub(crate) folded: Option<Arc<Folded>>,
}

impl Found {
    pub(crate) fn look(dir: RunDir) -> Result<Self, Error> {
        let looked = looked(&dir.dir)?;
        let folded = looked.folded().map(Arc::new);
        let state = looked.loaded.state;
        let status = Status::of(&state, dir.is_driven());
        Ok(Self { dir, state, status, folded })
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        match self.status {
            Status::Completed | Status::Cancelled => false,
            Status::Fresh
            | Status::Running
            | Status::Interrupted
            | Status::Waiting
            | Status::Parked
            | Status::OverBudget
            | Status::Failed => true,
        }
    }

    pub(crate) fn is_complete(dir: &Path) -> Result<bool, Error> {
        Ok(Status::of(&state_of(dir)?, false) == Status::Completed)
    }

    pub(crate) fn run(self) -> Result<Run, Error> {
        with_workflow(&self.dir.dir, self.state)
    }
}

/// How many are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The one that is meant; runs of ours that come later are not looked at.
    Meant,
    All,
}

/// A run that can be resumed.
pub(crate) enum Open {
    Ours(Box<Found>),
    Theirs(Box<Glanced>),
}

impl Open {
    pub(crate) fn which(self) -> Which {
        match self {
            Self::Ours(it) => Which::Ours(it.dir.dir),
            Self::Theirs(it) => Which::Foreign(Box::new(it.found)),
        }
    }

    /// As commands call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Ours(it) => it.dir.id.to_string(),
            Self::Theirs(it) => found_in_commands(&it.found),
        }
    }

    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Ours(it) => it.status,
            Self::Theirs(it) => it.plan.run.status,
        }
    }

    pub(crate) fn in_a_line(&self, session: &Session) -> Result<String, Error> {
        match self {
            Self::Ours(it) => resume::in_a_line(session, Found::look(it.dir.clone())?),
            Self::Theirs(it) => Ok(it.in_a_line()),
        }
    }

    /// Its own system says that it failed or was cancelled.
    fn is_over(&self) -> bool {
        match self {
            Self::Ours(_) => false,
            Self::Theirs(it) => it.is_over(),
        }
    }

    /// It may be gone on with although no person has named it. With a `yes`, so may a list that
    /// says nothing against it.
    pub(crate) fn is_sure(&self, yes: bool) -> bool {
        match self {
            Self::Ours(_) => true,
            Self::Theirs(it) => !it.found.site.unsure || yes && !it.found.site.unplaced,
        }
    }

    /// What is surely this project's comes first. On autopilot a run of ours comes before one of
    /// another system, which waits for a word. Then the last active one.
    fn rank(&self, session: &Session) -> (bool, bool, u64) {
        let is_autopilot = session.config.mode.value == Mode::Autopilot;
        let (is_theirs, age) = match self {
            Self::Ours(it) => (false, session.now.ms_since(it.dir.last_activity) / 1000),
            Self::Theirs(it) => (true, it.plan.run.age_seconds),
        };
        (!self.is_sure(false), is_autopilot && is_theirs, age)
    }
}

/// The one run that another system left in this very directory; or else all that can be resumed
/// here and below, the one that is meant first.
pub(crate) fn here(cx: &Context, session: &Session, reach: Reach) -> Result<Vec<Open>, Error> {
    let here = meant::here(cx, session)?;
    let (mut at_hand, others): (Vec<Glanced>, Vec<Glanced>) =
        theirs(session, &here)?.into_iter().partition(|it| it.found.dir == here);
    if at_hand.len() == 1 {
        return Ok(vec![Open::Theirs(Box::new(at_hand.remove(0)))]);
    }
    let ours = match reach {
        Reach::Meant => session.first_unfinished()?.into_iter().collect(),
        Reach::All => session.unfinished()?,
    };
    let theirs = at_hand.into_iter().chain(others).map(|it| Open::Theirs(Box::new(it)));
    let mut open: Vec<Open> =
        ours.into_iter().map(|it| Open::Ours(Box::new(it))).chain(theirs).collect();
    // What failed or was cancelled is meant where nothing else is.
    if !open.iter().all(Open::is_over) {
        open.retain(|it| !it.is_over());
    }
    open.sort_by_key(|it| it.rank(session));
    Ok(open)
}

/// The system that wrote the run says that it failed or was cancelled.
pub(crate) fn was_ended(plan: &Plan) -> bool {
    plan.findings.iter().any(|it| it.code == RUN_OVER)
}

/// Another system's run, and how it stands.
pub(crate) struct Glanced {
    pub(crate) found: FoundSite,
    plan: Plan,
}

impl Glanced {
    /// Nothing says whose it is: the person does.
    pub(crate) fn is_ours(&self, person: &mut Person) -> Result<Which, Error> {
        if person.is_there() {
            person.screen().line(&printable(&self.in_a_line()));
            let question = "Nothing in it says that it is this project's. Continue it here?";
            let words = ["no", "yes"].map(str::to_owned);
            match person.pick(question, &words, First::ByDefault) {
                Some(1) => return Ok(Which::Foreign(Box::new(self.found.clone()))),
                None if person.was_interrupted() => {
                    return Err(Error::Interrupted { command: "resume".to_owned() });
                }
                Some(_) | None => {}
            }
        }
        Err(Error::WhoseList { list: self.found.dir.clone() })
    }

    pub(crate) fn is_over(&self) -> bool {
        was_ended(&self.plan)
    }

    /// Name, place, system, phase and age.
    fn in_a_line(&self) -> String {
        let Plan { run, recovery_point, .. } = &self.plan;
        let phase = recovery_point.phase.as_deref().unwrap_or("-");
        let (age, which) = (ago(run.age_seconds), found_in_commands(&self.found));
        format!("{which}  {}, {}, phase {phase}, {age}", run.workflow, run.status.as_str())
    }
}

/// Runs of other systems that are not over and belong here, the last active one first.
pub(crate) fn theirs(session: &Session, here: &Path) -> Result<Vec<Glanced>, Error> {
    let mut glanced = Vec::new();
    for found in session.strangers(here, None)? {
        if let Ok(plan) = session.glance(&found)
            && plan.run.status != Status::Completed
            && found.is_candidate()
        {
            glanced.push(Glanced { found, plan });
        }
    }
    glanced.sort_by_key(|it| it.plan.run.age_seconds);
    Ok(glanced)
}
