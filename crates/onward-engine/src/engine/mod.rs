//! Starting, resuming and planning a run on this machine: what every front end calls.
//!
//! Order: the run's lock, the tree's lock, the workflow as pinned, the journal, the supervisor, the
//! loop. A new run is made by whoever holds the tree for it, and then taken up like any other.
//!
//! Invariant: [`plan_run`] changes nothing anywhere and takes no lock; nor does [`examine_run`],
//! except that in full it runs the checks that steps declare.

pub mod person;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    event::{EndStatus, Mode},
    finding::{Code, Finding},
    graph::Defs,
    id::RunId,
    journal::{DamagedLines, Rest},
    plan::{Plan, Status, plan},
    policy::{self, Choices, Depth},
    run::Run,
    state::{RunStatus, Violation},
    time::Timestamp,
    workflow::{
        Loaded,
        model::{Kind, Step, Workflow},
    },
};
use serde_json::Value;

use crate::{
    check::{doubts, survey},
    drive::{Options, Resume, offline::DecideError},
    foreign::adopt::{self, Native},
    load::journal::{JOURNAL, LoadError, load},
    locate::{
        CreateError, Holder, LoadWorkflowError, LockError, NewRun, Origin, Project, RunLock, Share,
        TakeOver, TreeLock, create_run, holder, load_pinned,
    },
    resume::{self, ResumeError},
    revert::CutShort,
    world::real::stand_in::StandIn,
    world::{
        Stop,
        real::{
            RealWorld, Redactor, Setup, Sink,
            agents::{self, AgentError},
            has_orphans, look,
            transcripts::Continuations,
            wall_clock,
        },
        supervisor::{Place, boot_id},
    },
};

pub use crate::{
    drive::outcome::{FailedStep, Outcome},
    engine::person::{Decided, cancel, decide, done, end},
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
    /// Run when a run needs somebody or is over; empty = none.
    pub notify: Vec<String>,
    pub catch_signals: bool,
    /// What a person said to measure ages against.
    pub now: Option<Timestamp>,
    /// Who plays the agents and commands, in a rehearsal.
    pub stand_in: Option<StandIn>,
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
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{} is not the directory of a run", .0.display())]
    NotARun(PathBuf),
    #[error("step `{step}` has `worktree`, and this is not the top of a git repository")]
    NoRepository { step: String },
    #[error("{} was begun already", dir.display())]
    BegunElsewhere { dir: PathBuf },
    #[error("cannot find out {what}")]
    Machine { what: &'static str, source: io::Error },
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
            Self::NoRepository { .. } => {
                Some("make it one with `git init`, or take `worktree` out".to_owned())
            }
            Self::BegunElsewhere { dir } => {
                Some(format!("go on with it: `onward resume {}`", dir.display()))
            }
            Self::Create(error) => error.hint(),
            Self::Lock(error) => Some(error.hint()),
            Self::Agent(error) => Some(error.hint()),
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
            | Self::Workflow(_)
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

/// A run that was just made, by whoever holds the tree for it.
#[derive(Debug)]
pub struct Begun {
    pub dir: PathBuf,
    tree: TreeLock,
}

impl Begun {
    /// Lets go of the tree; somebody else drives the run.
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
        let workflow = load_pinned(&self.dir)?.workflow;
        drive_held(at, &workflow, (lock, self.tree), machine, how, sink)
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
    let adopted = match file {
        None => adopt::begun_here(project, workflow, &inputs)?,
        Some(_) => None,
    };
    begin(project, &NewRun { workflow, file, inputs, mode, now, boot_id, adopted }, machine)
}

/// The same for whatever a run begins with.
pub(crate) fn begin(
    project: &Project,
    new: &NewRun<'_>,
    machine: &Machine,
) -> Result<Begun, EngineError> {
    let workflow = new.workflow;
    let native = new.adopted.as_ref().and_then(|it| Native::of(project, it));
    let needed = native.is_none_or(|it| it.needs_agents());
    if let Some(error) = agents::missing(&workflow.workflow, &machine.agents).filter(|_| needed) {
        return Err(error.into());
    }
    // Said before anything starts: work meant for a tree of its own must not land in this one.
    if let Some(step) = first_with_worktree(&workflow.workflow.steps)
        && !project.root().join(".git").exists()
    {
        return Err(EngineError::NoRepository { step });
    }
    let redactor = Redactor::of_environment(&machine.env);
    new.check(&redactor)?;
    project.prepare()?;
    let mut tree = TreeLock::take(project, None, share_of(&workflow.workflow), TakeOver::No)?;
    let (run, dir) = create_run(project, new, &redactor)?;
    tree.sign(&run, new.now)?;
    Ok(Begun { dir, tree })
}

/// Takes a run up and drives it until it is over, needs somebody, or somebody stops it.
pub fn resume_run(
    run_dir: &Path,
    machine: &Machine,
    how: &How,
    sink: Option<Sink>,
) -> Result<Outcome, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let now = wall_clock();
    let lock = RunLock::insist(run_dir, &at.place.run, now, how.take_over)?;
    let workflow = load_pinned(run_dir)?.workflow;
    let (run, share) = (Some(&at.place.run), share_of(&workflow));
    let mut tree = TreeLock::take(&at.project, run, share, how.take_over)?;
    tree.sign(&at.place.run, now)?;
    drive_held(at, &workflow, (lock, tree), machine, how, sink)
}

/// Drives a run that is ours; lets go of it at the end.
fn drive_held(
    at: RunPlace,
    workflow: &Workflow,
    (mut lock, _tree): (RunLock, TreeLock),
    machine: &Machine,
    how: &How,
    sink: Option<Sink>,
) -> Result<Outcome, EngineError> {
    let sink = if how.options.attended { telling_of_gates(machine, &at, sink) } else { sink };
    let mut world = RealWorld::new(at.setup(machine), sink);
    let How { mode, choices, pinned, options, take_over: _ } = how.clone();
    let origin = || Origin::of(&at.project, &at.place.run_dir).valid();
    let edited = if pinned { None } else { origin() };
    let current = edited.as_ref().map_or(workflow, |edited| &edited.workflow);
    let native = adopt::of_run(&at.project, &at.place.run_dir);
    // Whoever ends a run needs none of its agents.
    let needed = options.ending.is_none() && native.as_ref().is_none_or(Native::needs_agents);
    if let Some(finding) = lacking(current, machine).filter(|_| needed) {
        return Err(ResumeError::Conflicts(vec![finding]).into());
    }
    if options.ending.is_none() && has_orphans(&at.place)? {
        // To end them cannot be taken back: not by a resume that then stops at a question.
        let plan = examine(&at, None, machine, &choices, Depth::Quick, pinned)?;
        let standing = policy::standing(&plan.findings, plan.run.age_band, &choices);
        if !standing.is_empty() {
            return Err(ResumeError::Conflicts(standing).into());
        }
    }
    let how = Resume { mode, choices, options, edited, native };
    let mut driver = match resume::open(&mut world, workflow, &how) {
        Ok(driver) => driver,
        Err(error) => {
            // Nobody drives it now: a supervisor that holds nothing need not wait for the next.
            world.finish()?;
            return Err(error.into());
        }
    };
    lock.note_epoch(driver.journal.epoch())?;
    let status = resume::drive(&mut driver)?;
    let Place { run, run_dir, .. } = at.place;
    let mut outcome = Outcome::new(status, run, run_dir).of(&driver.run);
    drop(driver);
    world.finish()?;
    let failed = outcome.notify(&machine.notify).err();
    outcome.not_notified = failed.map(|error| error.to_string());
    Ok(outcome)
}

/// What a resume would do.
pub fn plan_run(run_dir: &Path, machine: &Machine, choices: &Choices) -> Result<Plan, EngineError> {
    examine_run(run_dir, machine, choices, Depth::Quick, false)
}

/// The same, looking as deep as somebody wants before they say yes: in full, every `check` is run.
/// `pinned` leaves an edited workflow file aside.
pub fn examine_run(
    run_dir: &Path,
    machine: &Machine,
    choices: &Choices,
    depth: Depth,
    pinned: bool,
) -> Result<Plan, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    // Before the journal: a driver that ends in between is then only called alive too long.
    let driver = holder(run_dir);
    examine(&at, driver.as_ref(), machine, choices, depth, pinned)
}

fn examine(
    at: &RunPlace,
    driver: Option<&Holder>,
    machine: &Machine,
    choices: &Choices,
    depth: Depth,
    pinned: bool,
) -> Result<Plan, EngineError> {
    let run_dir = at.place.run_dir.as_path();
    let bytes = std::fs::read(run_dir.join(JOURNAL))
        .map_err(|_| EngineError::NotARun(run_dir.to_owned()))?;
    let loaded = load(&bytes)?;
    drop(bytes);
    let mut findings = Vec::new();
    match &loaded.tail.rest {
        Rest::Clean => {}
        // Half of what the driver is writing at this moment.
        Rest::Torn(_) if driver.is_some() => {}
        Rest::Torn(torn) => findings.push(resume::torn_tail(torn.offset)),
        Rest::Damaged(damage) => findings.extend(damaged(damage)),
    }
    findings.extend(driver.map(still_running));
    let workflow = load_pinned(run_dir)?.workflow;
    // A run that somebody drives, or that is complete, has no use for another workflow.
    let complete = loaded.state.status == (RunStatus::Ended { status: EndStatus::Completed });
    let origin = if driver.is_some() || complete || pinned {
        Origin::Gone
    } else {
        Origin::of(&at.project, run_dir)
    };
    if let Origin::Invalid(finding) = &origin {
        findings.push(finding.clone());
    }
    let is_new = |it: &Loaded| Some(it.hash) != loaded.state.workflow_hash;
    let edited = origin.valid().filter(is_new);
    let current = edited.as_ref().map_or(&workflow, |it| &it.workflow).clone();
    let native = adopt::of_run(&at.project, run_dir);
    let needed = native.as_ref().is_none_or(Native::needs_agents);
    findings.extend(lacking(&current, machine).filter(|_| needed));
    let mut run = Run::new(Arc::new(Defs::new(current)), loaded.state);
    let seen = look(&at.place)?;
    let connected = seen.connected;
    if seen.orphans > 0 {
        let message = format!("{} processes of this run have lost their supervisor", seen.orphans);
        findings.push(Finding::new(Code::OrphanProcess, message).with_hint("a resume ends them"));
    }
    let mut world = RealWorld::new(at.setup(machine), None);
    let mut reentry = None;
    if let Some(native) = native.filter(|_| driver.is_none() && !complete) {
        let (caught_up, looked) = adopt::look(&mut world, native, run, choices)?;
        run = caught_up;
        reentry = Some(looked);
    }
    // Whoever drives it does so undisturbed.
    let depth = if driver.is_some() { Depth::Quick } else { depth };
    let mut survey = survey::survey(&mut world, &run, &connected, depth)?.survey;
    if let Some(new) = &edited {
        survey.edited = Some(doubts::edits(&mut world, &run, &workflow, new)?);
    }
    survey.driven = driver.is_some();
    survey.findings.extend(findings);
    let cut_short = CutShort::look(&mut world, run.state.pending_reverts())?;
    survey.findings.extend(cut_short.finding());
    survey.cut_short = cut_short.rest;
    if let Some(git) = &mut survey.git {
        let announced = run.state.pending_reverts().iter().map(|it| it.path.as_str());
        let announced: BTreeSet<&str> = announced.collect();
        git.changed.retain(|path| !announced.contains(path.as_str()));
    }
    let dir = run_dir.display().to_string();
    match reentry {
        None => Ok(plan(&run, &survey, choices, &dir)?),
        Some(mut reentry) => {
            reentry.look_at_undo(&mut world, &run, &survey, run.state.rescues + 1)?;
            reentry.tell(&run, &mut survey);
            Ok(adopt::plan_adopted(&mut world, &run, &survey, choices, &reentry, &dir)?)
        }
    }
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
        Self::even_without_journal(run_dir, machine)
    }

    /// For whoever comes to look after a run that has lost it.
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
            now: machine.now,
            catch_signals: machine.catch_signals,
            stand_in: machine.stand_in.clone(),
        }
    }
}

pub(crate) fn this_boot() -> Result<String, EngineError> {
    boot_id().map_err(|source| EngineError::Machine { what: "when it was started", source })
}

fn first_with_worktree(steps: &[Step]) -> Option<String> {
    steps.iter().find_map(|step| {
        if step.worktree.is_some() {
            return Some(step.id.to_string());
        }
        match &step.kind {
            Kind::Group { steps } => first_with_worktree(steps),
            Kind::Sub { workflow, .. } => first_with_worktree(&workflow.steps),
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => None,
        }
    })
}

/// A step that may change anything in the tree wants it for itself, unless it has its own.
fn share_of(workflow: &Workflow) -> Share {
    fn edits(step: &Step) -> bool {
        if step.worktree.is_some() {
            return false;
        }
        match &step.kind {
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Call { .. } => step.edits,
            Kind::Gate(_) => false,
            Kind::Group { steps } => steps.iter().any(edits),
            Kind::Sub { workflow, .. } => workflow.steps.iter().any(edits),
        }
    }
    if workflow.steps.iter().any(edits) { Share::Alone } else { Share::WithOthers }
}

/// What must be set up before the workflow can go on.
fn lacking(workflow: &Workflow, machine: &Machine) -> Option<Finding> {
    let error = agents::missing(workflow, &machine.agents)?;
    let finding = Finding::new(Code::PrerequisiteMissing, error.to_string());
    Some(finding.with_hint(error.hint()))
}

fn still_running(driver: &Holder) -> Finding {
    let Holder { pid, host, since, .. } = driver;
    let message = format!("it is driven by process {pid} on {host} since {since}");
    Finding::new(Code::StillRunning, message).with_hint("watch it with `onward attach`")
}

fn damaged(damage: &DamagedLines) -> Vec<Finding> {
    let finding = |message| Finding::new(Code::JournalDamaged, message);
    let hint = "run `onward repair`";
    let lines = damage.listed.iter().map(|it| {
        let message = format!("line {} of the journal cannot be read: {}", it.line, it.why);
        finding(message).with_hint(hint)
    });
    let more = (damage.more > 0).then(|| {
        finding(format!("{} more lines of the journal cannot be read", damage.more)).with_hint(hint)
    });
    lines.chain(more).collect()
}

/// A gate does not end an attended run, so that nobody would be told of it.
fn telling_of_gates(machine: &Machine, at: &RunPlace, sink: Option<Sink>) -> Option<Sink> {
    if machine.notify.is_empty() {
        return sink;
    }
    let (command, mut sink) = (machine.notify.clone(), sink);
    let (run, dir) = (at.place.run.clone(), at.place.run_dir.clone());
    let waits = Outcome::new(Status::Waiting, run, dir);
    Some(Box::new(move |lines| {
        const OPENED: &[u8] = b"\"kind\":\"gate.opened\"";
        if lines.windows(OPENED.len()).any(|it| it == OPENED) {
            // Whoever is at the terminal sees the gate; a command that fails is told of at the end.
            let _ = waits.notify(&command);
        }
        if let Some(sink) = &mut sink {
            sink(lines);
        }
    }))
}
