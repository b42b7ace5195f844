//! What a resume decides before it starts anything: turns of loops, lists that are read again,
//! conditions that do not hold. Its plan names the steps behind that.
//!
//! Invariant: reads only; the events are folded into a copy and never written from here.

use onward_core::{facts::Facts, plan::foresee, run::Run, time::Timestamp};

use crate::{
    check::needs::find_out,
    world::{Stop, World},
};

/// The run when its first steps start.
pub(crate) fn foreseen<W: World>(world: &mut W, mut run: Run, now: Timestamp) -> Result<Run, Stop> {
    let mut facts = Facts::default();
    loop {
        let lacking = foresee(&mut run, &facts, now)?;
        if lacking.is_empty() {
            return Ok(run);
        }
        for (step, needs) in lacking {
            find_out(world, facts.at(&step), needs)?;
        }
    }
}
