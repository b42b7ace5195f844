//! What a resume of an adopted run would do, for whoever only looks.
//!
//! Invariant: the steps are those of our own workflow after everything that the files prove was
//! adopted in memory, attempts that a resume gives up included; the place, the summary and the rows
//! to drop are told in the words of the other system. Nothing is written.

use std::{collections::BTreeMap, path::Path};

use onward_core::{
    address::Address,
    event::{Event, Mode},
    plan::{Plan, PlannedStep, Resumption, Status, Verdict, plan, resumption},
    policy::Choices,
    recovery::Decision,
    run::Run,
    survey::Survey,
};

use super::{
    Native, Reentry,
    import::{Importing as _, Onlooker},
    of_run,
};
use crate::{
    engine::{EngineError, Machine, RunPlace},
    world::{Stop, World, real::RealWorld},
};

/// The run as it would be with what the other system did meanwhile; as it is for one of our own.
pub fn caught_up(run_dir: &Path, run: Run, machine: &Machine) -> Result<Run, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    let Some(native) = of_run(&at.project, run_dir) else { return Ok(run) };
    let files = native.files()?;
    let mut world = RealWorld::new(at.setup(machine), None);
    let mut onlooker = Onlooker { world: &mut world, run };
    onlooker.import(super::Witness { dialect: native.dialect, files: &files })?;
    Ok(onlooker.run)
}

/// The run with what the other system did, and what a resume would read in its files.
pub(crate) fn look<W: World>(
    world: &mut W,
    native: Native,
    run: Run,
    choices: &Choices,
) -> Result<(Run, Reentry), Stop> {
    let reentry = Reentry::look(world, native, &run, choices.from.as_ref())?;
    let mut onlooker = Onlooker { world, run };
    onlooker.import(reentry.witness())?;
    Ok((onlooker.run, reentry))
}

/// The plan of an adopted run. `reentry` has looked at what is to be undone already.
pub(crate) fn plan_adopted<W: World>(
    world: &mut W,
    run: &Run,
    survey: &Survey,
    choices: &Choices,
    reentry: &Reentry,
    dir: &str,
) -> Result<Plan, Stop> {
    // Where a person enters is said in the files already.
    let choices = Choices { from: None, ..choices.clone() };
    let mut made = plan(run, survey, &choices, dir)?;
    let told = &reentry.plan;
    if made.run.status != Status::Completed {
        let after = taken_up(world, run, &resumption(run, survey, &choices), reentry)?;
        settle_steps(&mut made, plan(&after, survey, &choices, dir)?);
        made.recovery_point.code.clone_from(&told.recovery_point.code);
        made.recovery_point.phase.clone_from(&told.recovery_point.phase);
        made.recovery_point.round = told.recovery_point.round;
        made.recovery_point.summary.clone_from(&told.recovery_point.summary);
    }
    made.summary.clone_from(&told.summary);
    made.reverts.extend(told.reverts.iter().cloned());
    made.needs.extend(told.needs.iter().cloned());
    made.run.last_event.clone_from(&told.run.last_event);
    made.run.age_seconds = told.run.age_seconds;
    made.run.age_band = told.run.age_band;
    Ok(made)
}

/// The run when a resume has given up what is lost and taken in what the files say about it.
fn taken_up<W: World>(
    world: &mut W,
    run: &Run,
    made: &Resumption,
    reentry: &Reentry,
) -> Result<Run, Stop> {
    let resumed = made.resumed(&run.state, Mode::Autopilot, String::new(), None);
    let announced: Vec<Address> = made.decided(Decision::Start).cloned().collect();
    let mut onlooker = Onlooker { world, run: run.clone() };
    onlooker.record(Event::RunResumed(Box::new(resumed)))?;
    for event in &made.events {
        onlooker.record(event.clone())?;
    }
    onlooker.import_announced(reentry.witness(), &announced)?;
    Ok(onlooker.run)
}

/// Steps that the files settle meanwhile are told as such, and what starts first is what comes
/// after them.
fn settle_steps(made: &mut Plan, after: Plan) {
    let mut before: BTreeMap<String, PlannedStep> =
        made.steps.drain(..).map(|it| (it.step.clone(), it)).collect();
    let settled = |later: PlannedStep| {
        let is_settled = matches!(later.verdict, Verdict::Keep | Verdict::Skip);
        let first = before.remove(&later.step);
        first.filter(|it| !is_settled || !starts(it.verdict)).unwrap_or(later)
    };
    made.steps = after.steps.into_iter().map(settled).collect();
    made.counts.clear();
    for step in &made.steps {
        *made.counts.entry(step.verdict.as_str().to_owned()).or_insert(0) += 1;
    }
    made.cost.rerun_usd = after.cost.rerun_usd;
    made.recovery_point.steps = after.recovery_point.steps;
}

/// Whether the verdict has an attempt begin.
fn starts(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Verify | Verdict::Continue | Verdict::Rerun | Verdict::Run => true,
        Verdict::Keep | Verdict::Adopt | Verdict::Reattach | Verdict::Ask | Verdict::Skip => false,
    }
}
