//! What a resume of an adopted run would do, for whoever only looks.
//!
//! Invariant: the steps are those of our own workflow after everything that the files prove was
//! adopted in memory; the place, the summary and the rows to drop are told in the words of the
//! other system. Nothing is written.

use std::path::Path;

use onward_core::{
    plan::{Plan, Status, plan},
    policy::Choices,
    run::Run,
    state::Violation,
    survey::Survey,
};

use super::{Native, Reentry, import::Onlooker, of_run};
use crate::{
    engine::{EngineError, Machine, RunPlace},
    real::RealWorld,
    world::{Stop, World},
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
pub(crate) fn plan_adopted(
    run: &Run,
    survey: &Survey,
    choices: &Choices,
    reentry: &Reentry,
    dir: &str,
) -> Result<Plan, Violation> {
    // Where a person enters is said in the files already.
    let choices = Choices { from: None, ..choices.clone() };
    let mut made = plan(run, survey, &choices, dir)?;
    let told = &reentry.plan;
    if made.run.status != Status::Completed {
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
