//! Waiting in place for a limit to be lifted, before the run is taken up.
//!
//! Invariant: nothing is written meanwhile but what a person says to the run, and that counts at
//! once: an answer may let something go on that the limit does not hold back, a pause ends the
//! waiting, and a cancel the run.

use std::sync::Arc;

use onward_core::{graph::Defs, plan::Status, time::Timestamp};

use crate::{
    drive::{
        gate::Answer,
        offline::{DecideError, decide_offline},
    },
    engine::{EngineError, Machine, RunPlace, person::cancel_held},
    locate::RunLock,
    world::{
        Request,
        real::{RealWorld, Waited},
    },
};

/// What comes after the wait.
pub(super) enum Then {
    /// Something may have moved: the run is looked at again.
    LookAgain,
    /// The driver leaves the run like this.
    Leave(Status),
}

/// Waits until the limit is lifted, or a person wants something else.
pub(super) fn wait(
    world: &mut RealWorld,
    lock: &mut RunLock,
    until: Timestamp,
    (at, workflow, machine): (&RunPlace, &Arc<Defs>, &Machine),
) -> Result<Then, EngineError> {
    lock.note_wait(until)?;
    let requests = match world.wait_until(until)? {
        Waited::Over => return Ok(Then::LookAgain),
        Waited::Interrupted => return Ok(Then::Leave(Status::Parked)),
        Waited::Asked(requests) => requests.into_iter().map(|it| it.request),
    };
    let mut then = Then::LookAgain;
    for request in requests {
        match request {
            Request::Cancel => {
                cancel_held(at, Arc::clone(workflow), machine)?;
                return Ok(Then::Leave(Status::Cancelled));
            }
            Request::Pause => then = Then::Leave(Status::Parked),
            Request::Unattended => {}
            Request::Decide { step, option, comment, by, hash } => {
                let answer = Answer { step, option, comment, by, hash };
                let writer = RealWorld::new(at.setup(machine), None);
                match decide_offline(writer, Arc::clone(workflow), answer) {
                    // The person who answered reads in the journal what came of it.
                    Ok(()) | Err(DecideError::Refused(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    Ok(then)
}
