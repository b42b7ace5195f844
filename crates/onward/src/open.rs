//! The runs that can be resumed here, of ours and of other systems, and which of them is meant
//! where a person names none.
//!
//! Invariant: one order. What `plan` and `status` show is what `resume` continues, or the first of
//! those that it lists when it asks.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    event::Mode,
    finding::RUN_OVER,
    plan::{Plan, Status},
    run::Run,
    state::State,
};
use onward_engine::{
    engine::adopt::Adopters,
    load::checkpoint::Folded,
    locate::{FoundSite, RunDir},
};

use crate::{
    cmd::{Context, resume},
    command::in_text,
    diagnostic::printable,
    error::Error,
    meant,
    prompt::{First, Person},
    screen::Screen,
    session::{Session, Which, found_in_commands, looked, state_of, with_workflow},
    style::{ago, columns_of_errors, wrap},
};

/// A run on disk, folded. Callers that ask for more than how it stands read its workflow.
pub(crate) struct Found {
    pub(crate) dir: RunDir,
    pub(crate) state: State,
    pub(crate) status: Status,
    pub(crate) folded: Option<Arc<Folded>>,
    /// The run of another system that it continues, where that lies in another project.
    pub(crate) elsewhere: Option<FoundSite>,
}

impl Found {
    pub(crate) fn look(dir: RunDir) -> Result<Self, Error> {
        let looked = looked(&dir.dir)?;
        let folded = looked.folded().map(Arc::new);
        let state = looked.loaded.state;
        let status = Status::of(&state, dir.is_driven());
        Ok(Self { dir, state, status, folded, elsewhere: None })
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
    /// The one that is meant, and another one, if there is any.
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
            Self::Ours(it) => {
                it.elsewhere.as_ref().map_or_else(|| it.dir.id.to_string(), found_in_commands)
            }
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
            Self::Ours(it) => {
                let line = resume::in_a_line(session, it)?;
                let elsewhere = it.elsewhere.as_ref().map(found_in_commands);
                Ok(elsewhere.map_or(line.clone(), |place| format!("{line}, in {place}")))
            }
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
    fn rank(&self, session: &Session) -> (bool, bool, Reverse<String>) {
        let is_autopilot = session.config.mode.value == Mode::Autopilot;
        // As `list` orders them.
        let (is_theirs, last_active) = match self {
            Self::Ours(it) => (false, it.dir.last_activity.to_string()),
            Self::Theirs(it) => (true, it.plan.run.last_event.at.clone()),
        };
        (!self.is_sure(false), is_autopilot && is_theirs, Reverse(last_active))
    }
}

/// The one run that another system left in this very directory; or else all that can be resumed
/// here and below, the one that is meant first.
pub(crate) fn here(cx: &Context, session: &Session, reach: Reach) -> Result<Vec<Open>, Error> {
    let here = meant::here(cx, session)?;
    let Below { strangers, taken_up } = below(session, &here, None)?;
    let (mut at_hand, others): (Vec<Glanced>, Vec<Glanced>) =
        glances(session, strangers).into_iter().partition(|it| it.found.dir == here);
    if at_hand.len() == 1 {
        return Ok(vec![Open::Theirs(Box::new(at_hand.remove(0)))]);
    }
    let mut ours = match reach {
        Reach::Meant => session.first_unfinished(2)?,
        Reach::All => session.unfinished()?,
    };
    ours.extend(elsewhere(session, taken_up));
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

/// The run that is meant where none is named: for commands that only look. Where another could be,
/// the user is told which one is.
pub(crate) fn meant_here(cx: &Context, session: &Session) -> Result<Option<Open>, Error> {
    let mut open = here(cx, session, Reach::Meant)?.into_iter();
    let meant = open.next();
    if let Some(meant) = meant.as_ref().filter(|_| open.any(|it| it.is_sure(false))) {
        match meant {
            Open::Ours(it) => tell_which(cx, it.dir.id.as_str()),
            Open::Theirs(_) => tell_which(cx, &meant.name()),
        }
    }
    Ok(meant)
}

/// Says which of several runs a command took that looks.
pub(crate) fn tell_which(cx: &Context, name: &str) {
    if !cx.global.json && !cx.global.quiet {
        let said = format!(
            "note: several runs can be resumed here; this is {}, and {} shows all",
            printable(name),
            in_text("`onward list`")
        );
        Screen::of_stderr().line(&wrap(&said, columns_of_errors(), 0, 2));
    }
}

/// What lies at and below a directory, and in task lists, besides the runs of the project itself.
#[derive(Default)]
pub(crate) struct Below {
    /// Runs of other systems that no run of ours continues.
    pub(crate) strangers: Vec<FoundSite>,
    /// Those that a run of ours in a project further down continues, and that run.
    pub(crate) taken_up: Vec<(FoundSite, RunDir)>,
}

/// See [`Below`].
pub(crate) fn below(session: &Session, dir: &Path, tasks: Option<&Path>) -> Result<Below, Error> {
    let cannot_read = |source| Error::CannotRead { path: dir.to_owned(), source };
    let root = dir.canonicalize().map_err(cannot_read)?;
    let mut below = Below::default();
    let mut adopters: BTreeMap<PathBuf, Adopters> = BTreeMap::new();
    for found in session.search(tasks).below(dir).map_err(cannot_read)? {
        let place = found.project.root();
        let known = match adopters.entry(place.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Adopters::of(&found.project)?),
        };
        let is_further_down = place != session.project.root() && place.starts_with(&root);
        let is_new = |run: &RunDir| below.taken_up.iter().all(|(_, it)| it.dir != run.dir);
        match session.continued_by(&found, known) {
            None => below.strangers.push(found),
            Some(run) if is_further_down && is_new(&run) => below.taken_up.push((found, run)),
            Some(_) => {}
        }
    }
    Ok(below)
}

/// Those of them that can be resumed. One that cannot be read hides no other.
pub(crate) fn elsewhere(session: &Session, all: Vec<(FoundSite, RunDir)>) -> Vec<Found> {
    let look = |(site, run)| Found::look(run).map(|it| Found { elsewhere: Some(site), ..it });
    let found = all.into_iter().filter_map(|it| look(it).ok());
    found.filter(|it| session.is_to_do(it)).collect()
}

/// Runs of other systems that are not over and belong here, the last active one first.
pub(crate) fn glances(session: &Session, strangers: Vec<FoundSite>) -> Vec<Glanced> {
    let mut glanced = Vec::new();
    let plans = session.glances(&strangers);
    for (found, plan) in strangers.into_iter().zip(plans) {
        if let Ok(plan) = plan
            && plan.run.status != Status::Completed
            && found.is_candidate()
        {
            glanced.push(Glanced { found, plan });
        }
    }
    glanced.sort_by_key(|it| Reverse(it.plan.run.last_event.at.clone()));
    glanced
}
