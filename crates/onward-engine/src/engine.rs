//! Starting, resuming and planning a run on this machine: what every front end calls.
//!
//! Order: the run's lock, the tree's lock, the workflow as pinned, the journal, the supervisor, the
//! loop. A new run is made on disk first and then taken up like any other.
//!
//! Invariant: [`plan_run`] changes nothing anywhere and takes no lock.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptAdopted, Certainty, EndStatus, Event, Mode},
    evidence::Evidence,
    finding::{Code, Finding},
    graph::Defs,
    id::RunId,
    journal::{DamagedLines, Rest},
    judge::ResultSeen,
    plan::{Plan, Status, plan},
    policy::{Choices, Depth},
    recovery::Probed,
    run::Run,
    state::{RunStatus, State, Violation},
    time::Timestamp,
    workflow::{
        Loaded,
        model::{Kind, Step, Workflow},
        template::Quoting,
    },
};
use serde_json::{Value, json};

use crate::{
    collect::collect,
    consent::Consent,
    drive::Options,
    inbox::{self, DecideError},
    journal::{JOURNAL, LoadError, load},
    real::{
        RealWorld, Redactor, Setup, Sink,
        agents::{self, AgentError},
        look, wall_clock,
    },
    rehearse::StandIn,
    resume::{self, Resume, ResumeError},
    store::{
        CreateError, Holder, LoadWorkflowError, LockError, NewRun, Origin, Project, RunLock, Share,
        TreeLock, create_run, holder, load_pinned,
    },
    supervisor::{Place, boot_id},
    survey,
    world::{Stop, World as _},
};

/// What is the same for every run on this machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The environment we were started in.
    pub env: Vec<(OsString, OsString)>,
    /// The command that runs the hidden subcommand `supervise`; four arguments are added to it,
    /// from which [`place_from_args`](crate::real::place_from_args) makes the place again.
    pub supervise: Vec<OsString>,
    /// The command that runs the hidden subcommand `snapshot`; one argument is added to it, for
    /// [`snapshot_from_args`](crate::real::snapshot_from_args).
    pub snapshot: Vec<OsString>,
    /// Such as [`socket_dir_of_this_user`](crate::supervisor::socket_dir_of_this_user) gives.
    pub socket_dir: PathBuf,
    /// The command of each agent.
    pub agents: BTreeMap<String, Vec<String>>,
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
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub status: Status,
    pub run: RunId,
    pub dir: PathBuf,
    /// When a run that is parked can go on.
    pub until: Option<Timestamp>,
    /// Why nobody could be notified, where somebody should have been.
    pub not_notified: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("{} is not the directory of a run", .0.display())]
    NotARun(PathBuf),
    #[error("step `{step}` has `worktree`, which this version cannot give it")]
    NoWorktrees { step: String },
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
            Self::NoWorktrees { .. } => {
                Some("take it out; steps that edit then share the tree".to_owned())
            }
            Self::Create(error) => error.hint(),
            Self::Lock(error) => Some(error.hint()),
            Self::Agent(error) => Some(error.hint()),
            Self::Journal(LoadError::Read(error)) => Some(error.hint().to_owned()),
            Self::Decide(DecideError::Refused(error)) => Some(error.hint()),
            Self::Stop(Stop::Unready { hint, .. })
            | Self::Resume(ResumeError::Stop(Stop::Unready { hint, .. })) => Some(hint.clone()),
            Self::Machine { .. }
            | Self::Workflow(_)
            | Self::Resume(_)
            | Self::Journal(_)
            | Self::Decide(_)
            | Self::Impossible(_)
            | Self::Stop(_) => None,
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
    let dir = new_run(project, workflow, None, inputs, machine, how.mode)?;
    resume_run(&dir, machine, how, sink, None)
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
    if let Some(error) = agents::missing(&workflow.workflow, &machine.agents) {
        return Err(error.into());
    }
    // Said before anything starts: work meant for a tree of its own must not land in this one.
    if let Some(step) = first_with_worktree(&workflow.workflow.steps) {
        return Err(EngineError::NoWorktrees { step });
    }
    let boot_id = this_boot()?;
    let new = NewRun { workflow, file, inputs, mode, now: wall_clock(), boot_id };
    let redactor = Redactor::of_environment(&machine.env);
    Ok(create_run(project, &new, &redactor)?.1)
}

/// Takes a run up and drives it until it is over, needs somebody, or somebody stops it.
pub fn resume_run(
    run_dir: &Path,
    machine: &Machine,
    how: &How,
    sink: Option<Sink>,
    person: Option<&mut dyn Consent>,
) -> Result<Outcome, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let now = wall_clock();
    let mut lock = RunLock::take(run_dir, &at.place.run, now)?;
    let workflow = load_pinned(run_dir)?.workflow;
    if let Some(error) = agents::missing(&workflow, &machine.agents) {
        return Err(error.into());
    }
    let _tree = TreeLock::take(&at.project, &at.place.run, share_of(&workflow), now)?;
    let mut world = RealWorld::new(at.setup(machine), sink);
    let How { mode, choices, pinned, options } = how.clone();
    let edited = if pinned { None } else { Origin::of(&at.project, run_dir).valid() };
    let how = Resume { mode, choices, options, edited };
    let mut driver = match resume::open(&mut world, &workflow, &how, person) {
        Ok(driver) => driver,
        Err(error) => {
            // Nobody drives it now: a supervisor that holds nothing need not wait for the next.
            world.finish()?;
            return Err(error.into());
        }
    };
    lock.note_epoch(driver.journal.epoch())?;
    let status = driver.drive()?;
    let until = until(&driver.run.state);
    drop(driver);
    world.finish()?;
    let mut outcome =
        Outcome { status, run: at.place.run, dir: run_dir.to_owned(), until, not_notified: None };
    let failed = notify(&machine.notify, &outcome).err();
    outcome.not_notified = failed.map(|error| error.to_string());
    Ok(outcome)
}

/// What a resume would do.
pub fn plan_run(run_dir: &Path, machine: &Machine, choices: &Choices) -> Result<Plan, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    // Before the journal: a driver that ends in between is then only called alive too long.
    let driver = holder(run_dir);
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
    findings.extend(driver.as_ref().map(still_running));
    let workflow = load_pinned(run_dir)?.workflow;
    // A run that somebody drives, or that is complete, has no use for another workflow.
    let complete = loaded.state.status == (RunStatus::Ended { status: EndStatus::Completed });
    let origin =
        if driver.is_some() || complete { Origin::Gone } else { Origin::of(&at.project, run_dir) };
    if let Origin::Invalid(finding) = &origin {
        findings.push(finding.clone());
    }
    let is_new = |it: &Loaded| Some(it.hash) != loaded.state.workflow_hash;
    let edited = origin.valid().filter(is_new);
    let current = edited.as_ref().map_or(&workflow, |it| &it.workflow).clone();
    if let Some(error) = agents::missing(&current, &machine.agents) {
        let finding = Finding::new(Code::PrerequisiteMissing, error.to_string());
        findings.push(finding.with_hint(error.hint()));
    }
    let run = Run::new(Arc::new(Defs::new(current)), loaded.state);
    let seen = look(&at.place)?;
    let connected = seen.connected;
    if seen.orphans > 0 {
        let message = format!("{} processes of this run have lost their supervisor", seen.orphans);
        findings.push(Finding::new(Code::OrphanProcess, message).with_hint("a resume ends them"));
    }
    let mut world = RealWorld::new(at.setup(machine), None);
    let mut survey = survey::survey(&mut world, &run, &connected, Depth::Quick)?.survey;
    if let Some(new) = &edited {
        survey.edited = Some(survey::edits(&mut world, &run, &workflow, new)?);
    }
    survey.driven = driver.is_some();
    survey.findings.extend(findings);
    Ok(plan(&run, &survey, choices, &run_dir.display().to_string())?)
}

/// Answers a gate: through the driver if there is one, else in the journal itself.
pub fn decide(
    run_dir: &Path,
    answer: crate::gate::Answer,
    machine: &Machine,
) -> Result<Decided, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let now = wall_clock();
    match RunLock::take(run_dir, &at.place.run, now) {
        Ok(_lock) => {
            let workflow = load_pinned(run_dir)?.workflow;
            let world = RealWorld::new(at.setup(machine), None);
            inbox::decide_offline(world, workflow, answer)?;
            Ok(Decided::Journaled)
        }
        Err(LockError::RunHeld { .. }) => {
            let crate::gate::Answer { step, option, comment, by, hash } = answer;
            let request = crate::world::Request::Decide { step, option, comment, by, hash };
            inbox::write_request(run_dir, &request, now)?;
            Ok(Decided::Left)
        }
        Err(error) => Err(error.into()),
    }
}

/// Ends a run that nobody drives. Whatever still lives of it is ended by the next resume or sweep.
pub fn cancel(run_dir: &Path, machine: &Machine) -> Result<(), EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let _lock = RunLock::take(run_dir, &at.place.run, wall_clock())?;
    let workflow = load_pinned(run_dir)?.workflow;
    let world = RealWorld::new(at.setup(machine), None);
    inbox::write_offline(world, workflow, |_, run| {
        if run.state.running > 0 {
            let why = "attempts were running when its driver died; resume it, then cancel";
            let step = Address::root();
            return Err(DecideError::Unproved { step, why: why.to_owned() });
        }
        let why = Some("somebody cancelled it".to_owned());
        Ok(Event::RunEnded { status: EndStatus::Cancelled, why })
    })?;
    Ok(())
}

/// Counts a step as done that a person finished by hand, if its outputs are there and its check
/// agrees.
pub fn done(
    run_dir: &Path,
    step: &Address,
    by: String,
    machine: &Machine,
) -> Result<(), EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let _lock = RunLock::take(run_dir, &at.place.run, wall_clock())?;
    let workflow = load_pinned(run_dir)?.workflow;
    let world = RealWorld::new(at.setup(machine), None);
    inbox::write_offline(world, workflow, |world, run| by_hand(world, run, step, by))?;
    Ok(())
}

fn by_hand(
    world: &mut RealWorld,
    run: &Run,
    step: &Address,
    by: String,
) -> Result<Event, DecideError> {
    let id = run.graph.find(step).ok_or_else(|| DecideError::NoSuchStep(step.clone()))?;
    let phase = run.state.phase(step);
    if phase.is_settled() {
        return Err(DecideError::Settled(step.clone(), phase.as_str()));
    }
    let declared = run.defs.step(run.graph.node(id).def);
    let unproved = |why: String| DecideError::Unproved { step: step.clone(), why };
    let text = |template| {
        let text = onward_core::decide::text(run, id, template, Quoting::Shell);
        text.ok_or_else(|| unproved("its templates cannot be rendered yet".to_owned()))
    };
    let writes = declared.writes.iter().map(&text).collect::<Result<Vec<_>, _>>()?;
    let attempt = run.state.step(step).map_or(0, |entry| entry.attempts);
    let seen = collect(world, declared, step, attempt, &writes, false)?;
    if let Some(missing) = seen.missing.first() {
        return Err(unproved(format!("{missing} is not there")));
    }
    if let Some(check) = &declared.check
        && world.probe(&text(check)?, i32::MIN)? != Probed::Happened
    {
        return Err(unproved("its check does not agree".to_owned()));
    }
    let result = match seen.result {
        ResultSeen::Valid(result) => Some(result),
        ResultSeen::Absent if declared.result.is_none() => None,
        ResultSeen::Absent => return Err(unproved("it must leave a result".to_owned())),
        ResultSeen::NotJson(why) | ResultSeen::Violates(why) => return Err(unproved(why)),
    };
    let evidence = Evidence {
        files: seen.files,
        result: result.as_ref().map(|it| Digest::of(it.to_string().as_bytes())),
        stdout: None,
        branch_head: None,
    };
    Ok(Event::AttemptAdopted(Box::new(AttemptAdopted {
        step: step.clone(),
        source: "person".to_owned(),
        certainty: Certainty::Recorded,
        evidence,
        result,
        by: Some(by),
    })))
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It counts.
    Journaled,
    /// The driver will see it.
    Left,
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
            agents: machine.agents.clone(),
            now: machine.now,
            catch_signals: machine.catch_signals,
            stand_in: machine.stand_in.clone(),
        }
    }
}

fn this_boot() -> Result<String, EngineError> {
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

fn until(state: &State) -> Option<Timestamp> {
    match state.status {
        RunStatus::Paused { until, .. } => until,
        RunStatus::Unopened | RunStatus::UnderWay | RunStatus::Ended { .. } => None,
    }
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

/// Starts the command and leaves it to itself.
fn notify(command: &[String], outcome: &Outcome) -> io::Result<()> {
    let Some((program, args)) = command.split_first() else { return Ok(()) };
    match outcome.status {
        Status::Waiting
        | Status::Parked
        | Status::OverBudget
        | Status::Failed
        | Status::Cancelled
        | Status::Completed => {}
        // Whoever stopped it knows.
        Status::Fresh | Status::Running | Status::Interrupted => return Ok(()),
    }
    let message = json!({
        "schema": "onward.notify/1",
        "run": {"id": outcome.run.as_str(), "dir": outcome.dir.display().to_string()},
        "status": outcome.status.as_str(),
        "until": outcome.until.map(|until| until.to_string()),
    });
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| writeln!(stdin, "{message}"));
    thread::spawn(move || child.wait());
    written
}
