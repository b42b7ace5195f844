//! What a person says to a run: answers, a step done by hand, the end.
//!
//! Invariant: it counts when it is journaled. Where somebody drives the run, that one writes it; a
//! request is left in the inbox.

use std::path::Path;

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptAdopted, Certainty, EndStatus, Event, Mode},
    evidence::Evidence,
    judge::ResultSeen,
    policy::Choices,
    recovery::Probed,
    run::Run,
    state::RunStatus,
    workflow::template::Quoting,
    worktree::{WorktreePlace, below, worktree_path},
};

use crate::{
    check::collect::collect,
    drive::{
        Options,
        gate::{self, Answer},
        offline::{self, DecideError},
    },
    engine::{EngineError, How, Machine, Outcome, RunPlace, plan_run, resume_run},
    locate::{LockError, RunLock, TakeOver, load_pinned},
    world::{
        Request, World as _, inbox,
        real::{RealWorld, wall_clock},
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

/// Answers a gate: through the driver if there is one, else in the journal itself.
pub fn decide(run_dir: &Path, answer: Answer, machine: &Machine) -> Result<Decided, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let now = wall_clock();
    match RunLock::take(run_dir, &at.place.run, now) {
        Ok(_lock) => {
            let workflow = load_pinned(run_dir)?.workflow;
            let world = RealWorld::new(at.setup(machine), None);
            offline::decide_offline(world, workflow, answer)?;
            Ok(Decided::Journaled)
        }
        Err(LockError::RunHeld { .. }) => {
            let Answer { step, option, comment, by, hash } = answer;
            let request = Request::Decide { step, option, comment, by, hash };
            inbox::write_request(run_dir, &request, now)?;
            Ok(Decided::Left)
        }
        Err(error) => Err(error.into()),
    }
}

/// Ends a run that nobody drives. What it has in flight is settled first, as a resume would do it:
/// whatever lives is ended, and what is half-done leaves the tree for the rescue.
pub fn cancel(run_dir: &Path, machine: &Machine) -> Result<(), EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let lock = RunLock::take(run_dir, &at.place.run, wall_clock())?;
    let workflow = load_pinned(run_dir)?.workflow;
    let world = RealWorld::new(at.setup(machine), None);
    let why = "somebody cancelled it".to_owned();
    let written = offline::write_offline(world, workflow, |_, run| {
        // One that has failed is taken up again first: what its last attempts left is settled too.
        let failed = RunStatus::Ended { status: EndStatus::Failed };
        if run.state.running > 0 || run.state.status == failed {
            return Err(DecideError::InFlight);
        }
        let why = Some(why.clone());
        Ok(vec![Event::RunEnded { status: EndStatus::Cancelled, why }])
    });
    match written {
        Err(DecideError::InFlight) => {
            drop(lock);
            end(run_dir, machine, why, &Choices::default()).map(|_| ())
        }
        written => Ok(written?),
    }
}

/// Takes a run up only to end it: see [`cancel`]. Nothing that a person could accept stands in the
/// way of an end; what somebody changed since is left as it is.
pub fn end(
    run_dir: &Path,
    machine: &Machine,
    why: String,
    choices: &Choices,
) -> Result<Outcome, EngineError> {
    let plan = plan_run(run_dir, machine, choices)?;
    let mut choices = Choices { yes: true, from: None, ..choices.clone() };
    choices.accept_all(&plan.findings);
    let options = Options { ending: Some(why), ..Options::default() };
    let (mode, take_over) = (Mode::Autopilot, TakeOver::No);
    let how = How { mode, choices, pinned: true, options, take_over };
    // What a person is told about the end is told by whoever asked for it.
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
    let workflow = load_pinned(run_dir)?.workflow;
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
        && world.probe(&tree, &text(check, Quoting::Shell)?, i32::MIN)? != Probed::Happened
    {
        return Err(unproved("its check does not agree".to_owned()));
    }
    let result = match seen.result {
        ResultSeen::Valid(result) => Some(result),
        ResultSeen::Absent if declared.result.is_none() => None,
        ResultSeen::Absent => return Err(unproved("it must leave a result".to_owned())),
        ResultSeen::NotJson(why) | ResultSeen::Violates(why) => return Err(unproved(why)),
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
