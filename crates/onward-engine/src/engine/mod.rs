//! Starting, resuming and planning a run on this machine: what every front end calls.
//!
//! Order: the run's lock, the tree's lock, the workflow as pinned, the journal, the supervisor, the
//! loop. A new run is made under the tree lock, and then taken up like any other.
//!
//! Invariant: what only looks (`look`) changes nothing anywhere and takes no lock, except that in
//! full depth it runs the checks that steps declare.

pub mod adopt;
mod compare;
mod history;
mod listing;
mod look;
mod parked;
pub mod person;
mod share;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    event::{Event, Mode},
    finding::{Code, Finding},
    graph::Defs,
    id::RunId,
    plan::Status,
    policy::Choices,
    state::Violation,
    time::Timestamp,
    workflow::{Loaded, model::Workflow},
};
use serde_json::Value;

use crate::{
    agents::{self, Adapters, AgentError, Continuations, missing_agent},
    drive::{Options, Resume, gate, offline::DecideError},
    engine::{
        parked::Then,
        share::{first_with_worktree, share_of, share_of_defs},
    },
    foreign::Foreign,
    load::{
        checkpoint::{self, Folded},
        journal::{JOURNAL, LoadError},
    },
    locate::{
        Cast, CreateError, LoadWorkflowError, LockError, Misnamed, NewRun, Origin, Pinned, Project,
        RunLock, TakeOver, TreeLock, create_run, keep_beside, keep_new, opened,
    },
    resume::{self, ResumeError},
    world::{
        Stop, World as _,
        real::{News, RealWorld, Redactor, Setup, Sink, on_path, stand_in::StandIn, wall_clock},
        seen::Seen,
        supervisor::{Place, boot_id},
    },
};

pub use crate::{
    drive::outcome::{FailedStep, Outcome},
    engine::{
        compare::{compare_run, compare_site},
        listing::view_runs,
        look::{
            Looking, Page, examine_run, last_sign, page_of_run, page_of_site, plan_and_end,
            plan_run, plan_site, steps_in_row, view_run, voice_of,
        },
        person::{Decided, cancel, decide, done, end},
    },
};

/// What is the same for every run on this machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The environment we were started in.
    pub env: Vec<(OsString, OsString)>,
    /// The command that runs the hidden subcommand `supervise`; four arguments are added to it,
    /// from which [`place_from_args`](crate::world::real::place_from_args) makes the place again.
    pub supervise: Vec<OsString>,
    /// The command that runs the hidden subcommand `snapshot`; one argument is added to it, for
    /// [`snapshot_from_args`](crate::world::real::snapshot_from_args).
    pub snapshot: Vec<OsString>,
    /// The command that runs the hidden subcommand `call`; the name of the built-in function is
    /// added to it.
    pub call: Vec<OsString>,
    /// By default [`crate::world::supervisor::socket_dir_of_this_user`].
    pub socket_dir: PathBuf,
    /// The command of each agent.
    pub agents: BTreeMap<String, Vec<String>>,
    /// How agents go on in a session of their own.
    pub continuations: Continuations,
    /// The names of the agents' adapters, where they are not the default.
    pub adapters: Adapters,
    /// Run when a run needs a person or is over; empty = none.
    pub notify: Vec<String>,
    pub catch_signals: bool,
    /// Hears what is waited for before a run is driven.
    pub tell: Option<fn(&str)>,
    /// What a person said to measure ages against.
    pub now: Option<Timestamp>,
    /// Who plays the agents and commands, in a rehearsal.
    pub stand_in: Option<StandIn>,
    /// Who plays the roles of built-in workflows.
    pub cast: Cast,
}

impl Machine {
    /// The same for one who only looks: git starts nothing that the checkout's configuration names.
    pub(crate) fn looking(&self) -> Self {
        let mut machine = self.clone();
        machine.env.push((crate::world::git::LOOKS_ONLY.into(), "1".into()));
        machine
    }
}

/// How a run is driven this time.
#[derive(Clone, Debug)]
pub struct How {
    pub mode: Mode,
    pub choices: Choices,
    /// Go on with the copy of the workflow that the run keeps, whatever became of its file.
    pub pinned: bool,
    pub options: Options,
    pub take_over: TakeOver,
    /// Another system's files, where an examination before this one read them.
    pub seen: Seen,
    /// What its journal folds to, where the caller has read it before.
    pub folded: Option<Arc<Folded>>,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{} is not the directory of a run", .0.display())]
    NotARun(PathBuf),
    #[error("step `{step}` has `worktree`, and this is not the top of a git repository")]
    NoRepository { step: String },
    #[error("nothing says where Claude Code's task lists are")]
    NoTaskLists,
    #[error("there is no built-in workflow `{name}`")]
    NoWorkflow { name: String },
    #[error("{} was begun already", dir.display())]
    BegunElsewhere { dir: PathBuf },
    #[error("cannot find out {what}")]
    Machine { what: &'static str, source: io::Error },
    #[error(transparent)]
    Misnamed(#[from] Misnamed),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Workflow(#[from] LoadWorkflowError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Journal(#[from] LoadError),
    #[error(transparent)]
    Decide(#[from] DecideError),
    #[error(transparent)]
    Impossible(#[from] Violation),
    #[error(transparent)]
    Stop(#[from] Stop),
}

impl EngineError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotARun(_) => Some("see `onward list`".to_owned()),
            Self::Misnamed(it) => Some(it.hint()),
            Self::NoRepository { .. } => {
                let own = "a workflow of your own can do without `worktree`";
                Some(format!("make it one with `git init` and a first commit; {own}"))
            }
            Self::BegunElsewhere { dir } => {
                let dir = dir.display();
                Some(format!(
                    "continue it: `onward resume {dir}`; or put it away: `onward archive {dir}`"
                ))
            }
            Self::NoTaskLists => {
                Some("set HOME or CLAUDE_CONFIG_DIR, or give `--input dir=DIR`".to_owned())
            }
            Self::Create(error) => error.hint(),
            Self::Lock(error) => Some(error.hint()),
            Self::Agent(error) => Some(error.hint()),
            Self::Workflow(error) => error.hint(),
            Self::Journal(LoadError::Read(error))
            | Self::Resume(ResumeError::Journal(LoadError::Read(error))) => {
                Some(error.hint().to_owned())
            }
            Self::Resume(ResumeError::NoSuchStep(_) | ResumeError::NoSuchFinding(_)) => {
                Some("see `onward plan`".to_owned())
            }
            Self::Decide(error) => error.hint(),
            Self::Stop(stop) | Self::Resume(ResumeError::Stop(stop)) => stop.hint(),
            Self::Machine { .. }
            | Self::NoWorkflow { .. }
            | Self::Resume(_)
            | Self::Journal(_)
            | Self::Impossible(_) => None,
        }
    }
}

/// Makes a run of a workflow and drives it.
pub fn run_new(
    project: &Project,
    workflow: &Loaded,
    inputs: BTreeMap<String, Value>,
    machine: &Machine,
    how: &How,
    sink: Option<Sink>,
) -> Result<Outcome, EngineError> {
    begin_run(project, workflow, None, inputs, machine, how.mode)?.drive(machine, how, sink)
}

/// Makes a run of a workflow and leaves it to be taken up.
pub fn new_run(
    project: &Project,
    workflow: &Loaded,
    file: Option<&Path>,
    inputs: BTreeMap<String, Value>,
    machine: &Machine,
    mode: Mode,
) -> Result<PathBuf, EngineError> {
    Ok(begin_run(project, workflow, file, inputs, machine, mode)?.leave())
}

/// A run that was just made, and the tree lock held for it.
#[derive(Debug)]
pub struct Begun {
    pub dir: PathBuf,
    tree: TreeLock,
    /// Another system's files that it goes on with, as they were examined.
    seen: Seen,
}

impl Begun {
    /// Keeps the steps of its workflow in a form that is read faster, where that is a large one. It
    /// is taken, so that a large one is not held twice.
    pub fn keep_workflow(&self, workflow: Loaded, machine: &Machine) {
        keep_new(&self.dir, workflow, &machine.env);
    }

    /// Lets go of the tree; another process drives the run.
    pub fn leave(self) -> PathBuf {
        self.dir
    }

    pub fn drive(
        self,
        machine: &Machine,
        how: &How,
        sink: Option<Sink>,
    ) -> Result<Outcome, EngineError> {
        let at = RunPlace::of(&self.dir, machine)?;
        let lock = RunLock::take(&self.dir, &at.place.run, wall_clock())?;
        let pinned = Pinned::take(&self.dir, &machine.env)?;
        let how = How { seen: self.seen, ..how.clone() };
        drive_held(at, &pinned, (lock, self.tree), machine, &how, sink)
    }
}

/// Makes a run of a workflow, unless another one works in the tree that this one would edit.
pub fn begin_run(
    project: &Project,
    workflow: &Loaded,
    file: Option<&Path>,
    inputs: BTreeMap<String, Value>,
    machine: &Machine,
    mode: Mode,
) -> Result<Begun, EngineError> {
    let boot_id = this_boot()?;
    let now = wall_clock();
    let mut inputs = inputs;
    if file.is_none() {
        adopt::placed(workflow, project, &mut inputs, machine)?;
    }
    let adopted = match file {
        None => adopt::begun_here(project, workflow, &mut inputs, machine)?,
        Some(_) => None,
    };
    begin_with(project, &NewRun { workflow, file, inputs, mode, now, boot_id, adopted }, machine)
}

/// Whether a run of this workflow could begin. Writes nothing.
pub fn can_begin(
    project: &Project,
    workflow: &Loaded,
    inputs: BTreeMap<String, Value>,
    machine: &Machine,
    mode: Mode,
) -> Result<(), EngineError> {
    let (boot_id, now) = (this_boot()?, wall_clock());
    let new = NewRun { workflow, file: None, inputs, mode, now, boot_id, adopted: None };
    begins(project, &new, machine).map(|_| ())
}

/// What a run that is about to begin must not lack.
fn begins(project: &Project, new: &NewRun<'_>, machine: &Machine) -> Result<Redactor, EngineError> {
    let workflow = new.workflow;
    // Whether another system's run takes an agent at all is found when it is examined.
    let is_ours = new.adopted.as_ref().is_none_or(|it| it.files.is_empty());
    if let Some(error) = missing(&workflow.workflow, machine).filter(|_| is_ours) {
        return Err(error.into());
    }
    if let Some(error) = without_repository(&workflow.workflow, project) {
        return Err(error);
    }
    let redactor = Redactor::of_environment(&machine.env);
    new.check(&redactor)?;
    Ok(redactor)
}

/// The same as [`begin_run`], for whatever a run begins with.
pub(crate) fn begin_with(
    project: &Project,
    new: &NewRun<'_>,
    machine: &Machine,
) -> Result<Begun, EngineError> {
    let redactor = begins(project, new, machine)?;
    project.prepare()?;
    let share = share_of(&new.workflow.workflow);
    let mut tree = TreeLock::take(project, None, share, TakeOver::No)?;
    let (run, dir) = create_run(project, new, &redactor)?;
    tree.sign(&run, new.now)?;
    Ok(Begun { dir, tree, seen: Seen::default() })
}

/// Takes a run up and drives it until it is over, needs a person, or a person stops it.
pub fn resume_run(
    run_dir: &Path,
    machine: &Machine,
    how: &How,
    sink: Option<Sink>,
) -> Result<Outcome, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let now = wall_clock();
    let lock = RunLock::insist(run_dir, &at.place.run, now, how.take_over)?;
    let pinned = Pinned::take(run_dir, &machine.env)?;
    let (run, share) = (Some(&at.place.run), share_of_defs(&pinned.defs));
    let mut tree = TreeLock::take(&at.project, run, share, how.take_over)?;
    tree.sign(&at.place.run, now)?;
    drive_held(at, &pinned, (lock, tree), machine, how, sink)
}

/// Drives a run that is ours; lets go of it at the end.
fn drive_held(
    at: RunPlace,
    pinned_now: &Pinned,
    (mut lock, _tree): (RunLock, TreeLock),
    machine: &Machine,
    how: &How,
    sink: Option<Sink>,
) -> Result<Outcome, EngineError> {
    let sink = if how.options.attended { telling_of_gates(machine, &at, sink) } else { sink };
    let mut world = RealWorld::new(at.setup(machine), sink);
    let How { mode, choices, pinned, options, seen, mut folded, take_over: _ } = how.clone();
    let origin = || Origin::of(&at.project, &at.place.run_dir).valid();
    let edited = if pinned { None } else { origin() };
    let foreign = adopt::foreign_of(&at.project, &at.place.run_dir, &machine.env);
    let current =
        edited.as_ref().map_or(pinned_now.defs.root_workflow(), |edited| &edited.workflow);
    let options = equipped(options, &at, current, machine);
    // A run that is only ended needs none of its agents.
    let needed = options.ending.is_none();
    let lacking = lacking_now(edited.as_ref(), &pinned_now.defs, machine).filter(|_| needed);
    let theirs = foreign.as_ref().map(Foreign::theirs).unwrap_or_default();
    let mut how = Resume { mode, choices, options, edited, foreign, theirs, seen, lacking };
    let mut driver = loop {
        match resume::open_kept(&mut world, &pinned_now.defs, &how, folded.take()) {
            Ok(driver) => break driver,
            Err(ResumeError::Parked { until }) => {
                let then = if how.options.limits.wait {
                    parked::wait(&mut world, &mut lock, until, (&at, &pinned_now.defs, machine))?
                } else {
                    Then::Leave(Status::Parked)
                };
                let Then::Leave(status) = then else {
                    how.seen = Seen::default();
                    continue;
                };
                world.finish()?;
                let Place { run, run_dir, .. } = at.place;
                let until = Some(until).filter(|_| status == Status::Parked);
                return Ok(Outcome { until, ..Outcome::new(status, run, run_dir) });
            }
            Err(ResumeError::Stop(Stop::Interrupted)) => {
                world.finish()?;
                let Place { run, run_dir, .. } = at.place;
                return Ok(Outcome::new(Status::Interrupted, run, run_dir));
            }
            Err(error) => {
                // It has no driver now: a supervisor without attempts need not wait for the next.
                world.finish()?;
                return Err(error.into());
            }
        }
    };
    lock.note_epoch(driver.journal.epoch())?;
    let status = match resume::drive(&mut driver) {
        Err(Stop::Removed { run_dir, kept }) => {
            // No driver could ever take them up again.
            let _ = driver.world.stop_all();
            let files = how.edited.as_ref().map_or(&pinned_now.files, |it| &it.files);
            let kept = kept.filter(|dir| keep_beside(dir, files).is_ok());
            return Err(Stop::Removed { run_dir, kept }.into());
        }
        other => other?,
    };
    let Place { run, run_dir, .. } = at.place;
    let left = driver.into_run();
    let mut outcome = Outcome::new(status, run, run_dir).of(&left);
    for (step, gate) in &mut outcome.gates {
        // What there is to see now counts, not what there was when it was opened.
        let now = gate::shown(&mut world, &left, step)?;
        if let Some(Event::GateOpened { prompt, shows, hash, .. }) = now {
            (gate.prompt, gate.shows, gate.hash) = (prompt, shows, hash);
        }
    }
    checkpoint::keep(&mut world, Some(&left.defs));
    outcome.left = Some(left);
    world.finish()?;
    let failed = outcome.notify(&machine.notify).err();
    outcome.not_notified = failed.map(|error| error.to_string());
    Ok(outcome)
}

/// With what this machine knows: how long steps took before, and which stand-ins could start.
fn equipped(
    mut options: Options,
    at: &RunPlace,
    workflow: &Workflow,
    machine: &Machine,
) -> Options {
    options.history = history::history(&at.project, &at.place.run_dir, &options.limits);
    let is_installed = |program: &str| on_path(&machine.env, program).is_some();
    let lacks = |name: &str| missing_agent(name, workflow, &machine.agents, &is_installed);
    // One that is not there is no help: the step waits for its own agent.
    options.limits.stand_ins.retain(|_, name| lacks(name).is_none());
    options
}

/// A run's directory, and what follows from where it is.
#[derive(Debug)]
pub(crate) struct RunPlace {
    pub(crate) project: Project,
    pub(crate) place: Place,
}

impl RunPlace {
    pub(crate) fn of(run_dir: &Path, machine: &Machine) -> Result<Self, EngineError> {
        if !run_dir.join(JOURNAL).is_file() {
            return Err(EngineError::NotARun(run_dir.to_owned()));
        }
        let at = Self::even_without_journal(run_dir, machine)?;
        // A first record that cannot be read is told as damage.
        if let Some(opened) = opened(run_dir) {
            Misnamed::check(run_dir, &opened.run)?;
        }
        Ok(at)
    }

    /// For the commands that look after a run without a supervisor.
    pub(crate) fn even_without_journal(
        run_dir: &Path,
        machine: &Machine,
    ) -> Result<Self, EngineError> {
        let not_a_run = || EngineError::NotARun(run_dir.to_owned());
        let name = run_dir.file_name().and_then(|name| name.to_str()).ok_or_else(not_a_run)?;
        let run: RunId = name.parse().map_err(|_| not_a_run())?;
        let project = Project::of_run(run_dir).ok_or_else(not_a_run)?;
        let place = Place {
            run,
            run_dir: run_dir.to_owned(),
            project_dir: project.root().to_owned(),
            socket_dir: machine.socket_dir.clone(),
        };
        Ok(Self { project, place })
    }

    pub(crate) fn setup(&self, machine: &Machine) -> Setup {
        Setup {
            place: self.place.clone(),
            env: machine.env.clone(),
            supervise: machine.supervise.clone(),
            snapshot: machine.snapshot.clone(),
            call: machine.call.clone(),
            agents: machine.agents.clone(),
            continuations: machine.continuations.clone(),
            adapters: machine.adapters.clone(),
            now: machine.now,
            catch_signals: machine.catch_signals,
            tell: machine.tell,
            stand_in: machine.stand_in.clone(),
        }
    }
}

/// A world in which nothing is run: for looking at a project before it has the run in question.
pub(crate) fn look_place(project: &Project, machine: &Machine) -> RealWorld {
    let place = Place {
        run: RunId::imagined(),
        run_dir: project.onward_dir().join("no-run"),
        project_dir: project.root().to_owned(),
        socket_dir: machine.socket_dir.clone(),
    };
    RealWorld::new(RunPlace { project: project.clone(), place }.setup(machine), None)
}

pub(crate) fn this_boot() -> Result<String, EngineError> {
    boot_id().map_err(|source| EngineError::Machine { what: "when it was started", source })
}

/// Work meant for a tree of its own must not land in this one: said before anything starts.
pub(crate) fn without_repository(workflow: &Workflow, project: &Project) -> Option<EngineError> {
    let step = first_with_worktree(&workflow.steps)?;
    (!project.root().join(".git").exists()).then_some(EngineError::NoRepository { step })
}

/// The first agent or call that this machine could not start.
pub(crate) fn missing(workflow: &Workflow, machine: &Machine) -> Option<AgentError> {
    let is_installed = |program: &str| on_path(&machine.env, program).is_some();
    agents::missing(workflow, &machine.agents, &is_installed)
}

/// What must be set up before the workflow can go on.
pub(crate) fn lacking(workflow: &Workflow, machine: &Machine) -> Option<Finding> {
    missing(workflow, machine).map(|error| prerequisite(&error))
}

/// The same of a run: of its edited workflow, or of the one that it keeps.
pub(crate) fn lacking_now(
    edited: Option<&Loaded>,
    kept: &Defs,
    machine: &Machine,
) -> Option<Finding> {
    if let Some(edited) = edited {
        return lacking(&edited.workflow, machine);
    }
    let is_installed = |program: &str| on_path(&machine.env, program).is_some();
    let missing = agents::missing_of(kept, &machine.agents, &is_installed);
    missing.map(|error| prerequisite(&error))
}

pub(crate) fn prerequisite(error: &AgentError) -> Finding {
    let finding = Finding::new(Code::PrerequisiteMissing, error.to_string());
    finding.with_hint(error.hint())
}

/// A gate does not end an attended run, so the end would not tell of it.
fn telling_of_gates(machine: &Machine, at: &RunPlace, sink: Option<Sink>) -> Option<Sink> {
    if machine.notify.is_empty() {
        return sink;
    }
    let (command, mut sink) = (machine.notify.clone(), sink);
    let (run, dir) = (at.place.run.clone(), at.place.run_dir.clone());
    let waits = Outcome::new(Status::Waiting, run, dir);
    Some(Box::new(move |news| {
        let opens_gate = |line: &[u8]| {
            let record = onward_core::journal::decode_line(line.trim_ascii_end());
            record.is_ok_and(|it| matches!(it.event, onward_core::event::Event::GateOpened { .. }))
        };
        let lines = match news {
            News::Lines(lines) => lines,
            News::Waits(_) => &[],
        };
        if lines.split_inclusive(|byte| *byte == b'\n').any(opens_gate) {
            // The person at the terminal sees the gate; a command that fails is told of at the end.
            let _ = waits.notify(&command);
        }
        if let Some(sink) = &mut sink {
            sink(news);
        }
    }))
}
