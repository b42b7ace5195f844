//! What a person says to a run: answers, a step done by hand, the end.
//!
//! Invariant: it counts when it is journaled. A driver that lives writes it; a
//! request is left in the inbox.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptAdopted, Certainty, EndStatus, Event, Mode},
    evidence::Evidence,
    finding::{Code, Finding},
    graph::Defs,
    judge::ResultSeen,
    policy::Choices,
    recovery::Probed,
    run::Run,
    state::{PERSON, RunStatus},
    workflow::template::Quoting,
    worktree::{WorktreePlace, below, worktree_path},
};

use crate::{
    check::collect::collect,
    drive::{
        Options,
        gate::{self, Answer, Refused},
        offline::{self, DecideError},
    },
    engine::{EngineError, How, Machine, Outcome, RunPlace, adopt, plan_run, resume_run},
    foreign::say_cancelled,
    load::{
        follow::Follower,
        journal::{JOURNAL, load},
    },
    locate::{LockError, Pinned, RunLock, TakeOver},
    revert,
    world::{
        At, Request, World as _, inbox,
        real::{RealWorld, wall_clock},
        seen::Seen,
    },
};

/// Every open gate as it would be shown now, whatever it showed when it was opened.
pub fn gates_now(run_dir: &Path, run: &Run, machine: &Machine) -> Result<Vec<Event>, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let mut world = RealWorld::new(at.setup(machine), None);
    let mut gates = Vec::new();
    for id in run.graph.open_gates() {
        gates.extend(gate::shown(&mut world, run, &run.graph.node(id).address)?);
    }
    Ok(gates)
}

/// How long a driver may take to write an answer down.
const HEARD_MS_MAX: u64 = 20_000;
/// How often it is looked for.
const LOOK_MS: u64 = 50;

/// Answers a gate: through the driver if there is one, else in the journal itself. It returns when
/// the answer counts, or is refused.
pub fn decide(run_dir: &Path, answer: &Answer, machine: &Machine) -> Result<Decided, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let mut asked: Option<PathBuf> = None;
    let deadline = wall_clock().plus_ms(HEARD_MS_MAX);
    loop {
        let now = wall_clock();
        match RunLock::take(run_dir, &at.place.run, now) {
            Ok(_lock) => {
                // The driver left, or it was another answer that held the run.
                if asked.as_ref().is_some_and(|it| !withdrawn(it)) {
                    return heard(run_dir, answer);
                }
                let workflow = Pinned::look(run_dir, &machine.env)?.defs;
                let world = RealWorld::new(at.setup(machine), None);
                return match offline::decide_offline(world, workflow, answer.clone()) {
                    Ok(()) => Ok(Decided::Journaled),
                    Err(error) => Err(answered(run_dir, &answer.step, error)),
                };
            }
            Err(LockError::RunHeld { .. }) if asked.as_ref().is_some_and(|it| !it.exists()) => {
                if let Ok(decided) = heard(run_dir, answer) {
                    return Ok(decided);
                }
                if now > deadline {
                    return heard(run_dir, answer);
                }
            }
            Err(LockError::RunHeld { .. }) if asked.is_none() => {
                let mut world = RealWorld::new(at.setup(machine), None);
                let bytes = world.read(At::Run(JOURNAL))?;
                let loaded = load(&bytes.ok_or_else(|| EngineError::NotARun(run_dir.to_owned()))?)?;
                let defs = Pinned::look(run_dir, &machine.env)?.defs;
                let run = Run::new(defs, loaded.state);
                if let Err(refused) = gate::decided(&mut world, &run, answer.clone())? {
                    let error = DecideError::Refused(refused);
                    return Err(answered(run_dir, &answer.step, error));
                }
                let Answer { step, option, comment, by, hash } = answer.clone();
                let request = Request::Decide { step, option, comment, by, hash };
                asked = Some(inbox::write_request(run_dir, &request, now)?);
            }
            Err(LockError::RunHeld { .. }) if now > deadline => {
                let step = answer.step.clone();
                return Err(DecideError::Unheard(step).into());
            }
            Err(LockError::RunHeld { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(Duration::from_millis(LOOK_MS));
    }
}

/// Takes a request back. `false` when it was read already.
fn withdrawn(request: &Path) -> bool {
    std::fs::remove_file(request).is_ok()
}

/// What the journal says about the gate after a request was read.
fn heard(run_dir: &Path, answer: &Answer) -> Result<Decided, EngineError> {
    match last_answer(run_dir, &answer.step) {
        Some((by, option)) if (&by, &option) == (&answer.by, &answer.option) => Ok(Decided::Taken),
        Some((by, option)) => {
            let step = answer.step.clone();
            Err(DecideError::Refused(Refused::Answered { step, by, option }).into())
        }
        None => Err(DecideError::Unheard(answer.step.clone()).into()),
    }
}

/// A gate that is not open any more was answered: by whom, and how, is said.
fn answered(run_dir: &Path, step: &Address, error: DecideError) -> EngineError {
    let is_late = matches!(error, DecideError::Refused(Refused::NotOpen { .. }));
    match last_answer(run_dir, step).filter(|_| is_late) {
        Some((by, option)) => {
            let step = step.clone();
            DecideError::Refused(Refused::Answered { step, by, option }).into()
        }
        None => error.into(),
    }
}

/// The last answer that the run got, where no gate is open any more: what a late answer is told.
pub fn last_answered(run_dir: &Path, run: &Run) -> Option<EngineError> {
    let answered = run.state.steps.noteworthy().filter(|(_, entry)| entry.gate.is_some());
    let (step, _) = answered.max_by_key(|(_, entry)| entry.ended_at)?;
    let (by, option) = last_answer(run_dir, step)?;
    let step = step.clone();
    Some(DecideError::Refused(Refused::Answered { step, by, option }).into())
}

/// The last answer to a gate, and who gave it.
fn last_answer(run_dir: &Path, gate: &Address) -> Option<(String, String)> {
    let records = Follower::new(run_dir).poll().ok()?;
    let mut last = None;
    for record in records {
        if let Event::GateDecided { step, by, option, .. } = record.event {
            if step == *gate {
                last = Some((by, option));
            }
        } else if matches!(&record.event, Event::GateOpened { step, .. } if step == gate) {
            last = None;
        }
    }
    last
}

/// Ends a run that has no driver. What it has in flight is settled first, as a resume would do it:
/// whatever lives is ended, and what is half-done leaves the tree for the rescue.
pub fn cancel(run_dir: &Path, machine: &Machine) -> Result<(), EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let lock = RunLock::take(run_dir, &at.place.run, wall_clock())?;
    let workflow = Pinned::look(run_dir, &machine.env)?.defs;
    match cancel_held(&at, workflow, machine) {
        Err(EngineError::Decide(DecideError::InFlight)) => {
            drop(lock);
            end(run_dir, machine, BY_PERSON.to_owned(), &Choices::default()).map(|_| ())
        }
        written => written,
    }
}

const BY_PERSON: &str = "cancelled by a person";

/// Writes the end of a run that has nothing in flight. The caller holds its lock.
pub(super) fn cancel_held(
    at: &RunPlace,
    workflow: Arc<Defs>,
    machine: &Machine,
) -> Result<(), EngineError> {
    let mut world = RealWorld::new(at.setup(machine), None);
    if let Some(foreign) = adopt::foreign_of(&at.project, &at.place.run_dir, &machine.env) {
        say_cancelled(&mut world, &foreign)?;
    }
    offline::write_offline(world, workflow, |_, run| {
        // One that has failed is taken up again first: what its last attempts left is settled too.
        match run.state.status {
            RunStatus::Ended { status: EndStatus::Cancelled } => {
                return Err(DecideError::Over("cancelled"));
            }
            RunStatus::Ended { status: EndStatus::Completed } => {
                return Err(DecideError::Over("completed"));
            }
            RunStatus::Ended { status: EndStatus::Failed }
            | RunStatus::Unopened
            | RunStatus::UnderWay
            | RunStatus::Paused { .. } => {}
        }
        let failed = RunStatus::Ended { status: EndStatus::Failed };
        if run.state.running > 0 || run.state.status == failed {
            return Err(DecideError::InFlight);
        }
        let why = Some(BY_PERSON.to_owned());
        Ok(vec![Event::RunEnded { status: EndStatus::Cancelled, why }])
    })?;
    Ok(())
}

/// Takes a run up only to end it: see [`cancel`]. Nothing that a person could accept stands in the
/// way of an end; what a person changed since is left as it is.
pub fn end(
    run_dir: &Path,
    machine: &Machine,
    why: String,
    choices: &Choices,
) -> Result<Outcome, EngineError> {
    let plan = plan_run(run_dir, machine, choices)?;
    let mut choices = Choices { yes: true, from: None, ..choices.clone() };
    // What another system's files say stands against going on, and not against an end.
    let is_ours = |it: &Finding| Code::ALL.iter().any(|code| code.as_str() == it.code);
    let ours: Vec<Finding> = plan.findings.into_iter().filter(is_ours).collect();
    choices.accept_all(&ours);
    let options = Options { ending: Some(why), ..Options::default() };
    let (mode, take_over) = (Mode::Autopilot, TakeOver::No);
    let seen = Seen::default();
    let how = How { mode, choices, pinned: true, options, take_over, seen, folded: None };
    // The command that asked for the end tells the person.
    let machine = Machine { notify: Vec::new(), ..machine.clone() };
    resume_run(run_dir, &machine, &how, None)
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
    let workflow = Pinned::look(run_dir, &machine.env)?.defs;
    let world = RealWorld::new(at.setup(machine), None);
    offline::write_offline(world, workflow, |world, run| Ok(vec![by_hand(world, run, step, by)?]))?;
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
    let text = |template, quoting| {
        let text = onward_core::decide::text(run, id, template, quoting);
        text.ok_or_else(|| unproved("its templates cannot be rendered yet".to_owned()))
    };
    let command = |template| {
        let text = onward_core::decide::command(run, id, template);
        text.ok_or_else(|| unproved("its templates cannot be rendered yet".to_owned()))
    };
    let writes = declared.writes.iter().map(|it| text(it, Quoting::Plain));
    let tree = worktree_path(run, id);
    let writes =
        writes.map(|it| it.map(|pattern| below(&tree, pattern))).collect::<Result<Vec<_>, _>>()?;
    let attempt = run.state.step(step).map_or(0, |entry| entry.attempts);
    let seen = collect(world, declared, step, attempt, &writes, false)?;
    if let Some(missing) = seen.missing.first() {
        return Err(unproved(format!("{missing} is not there")));
    }
    if let Some(check) = &declared.check
        && world.probe(&tree, &command(check)?, i32::MIN)? != Probed::Happened
    {
        return Err(unproved("its check does not agree".to_owned()));
    }
    let result = match seen.result {
        ResultSeen::Valid(result) => Some(result),
        ResultSeen::Absent if declared.result.is_none() => None,
        ResultSeen::Absent => return Err(unproved("it must leave a result".to_owned())),
        ResultSeen::NotJson(why) | ResultSeen::Violates(why) | ResultSeen::Refuses(why) => {
            return Err(unproved(why));
        }
    };
    let branch_head = match WorktreePlace::at(&tree) {
        Some(place) => world.commit_worktree(&place, step, attempt)?.map_err(unproved)?,
        None => None,
    };
    let evidence = Evidence {
        files: seen.files,
        result: result.as_ref().map(|it| Digest::of(it.to_string().as_bytes())),
        stdout: None,
        branch_head,
    };
    // The tree as it is counts as the step's work, also what its killed attempt left there.
    let started = run.state.step(step).and_then(|entry| entry.started.as_deref());
    if let Some(started) = started.filter(|it| it.base.is_some()) {
        world.snapshot(&revert::snapshot_of(started))?;
    }
    Ok(Event::AttemptAdopted(Box::new(AttemptAdopted {
        step: step.clone(),
        source: PERSON.to_owned(),
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
    /// The driver has written it down.
    Taken,
}
