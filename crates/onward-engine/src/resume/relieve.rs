//! The supervisor died and the engine lives: another one takes its place, and the run goes on. Or
//! a person cancels it: then what is half done is put away first.
//!
//! Invariant: what was in flight goes the way it would go after the engine's own death: orphans are
//! ended, seals are read, the recovery table decides, and all of it is journaled as a resume.

use onward_core::plan::Status;

use super::{Agreed, ResumeError, end_superseded, examine::Before, round::Round};
use crate::{
    drive::{Driver, Rest},
    world::{Connected, Stop, World, seen::Seen},
};

/// Supervisors that may die in a row with nothing finished in between.
const LOSSES_MAX: u32 = 3;
const BY_PERSON: &str = "cancelled by a person";

/// How often it has come to this.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    in_a_row: u32,
    finished_before: usize,
}

/// Drives a run that was opened until the loop comes to rest, over the deaths of supervisors.
pub fn drive<W: World>(driver: &mut Driver<'_, W>) -> Result<Status, Stop> {
    let mut losses = Losses::default();
    loop {
        match driver.drive()? {
            Rest::With(status) => return Ok(status),
            Rest::HalfDone => put_away(driver)?,
            Rest::HandsLost { why: Some(why) } => return Err(Stop::HandsGaveUp(why)),
            Rest::HandsLost { why: None } => {
                losses.count(driver)?;
                take_hold_again(driver)?;
            }
        }
    }
}

impl Losses {
    fn count<W: World>(&mut self, driver: &Driver<'_, W>) -> Result<(), Stop> {
        let done = driver.run.state.steps.phases().filter(|phase| phase.is_concluded());
        let finished = done.count();
        if finished > self.finished_before {
            *self = Self { in_a_row: 0, finished_before: finished };
        }
        self.in_a_row += 1;
        if self.in_a_row > LOSSES_MAX {
            return Err(Stop::Hands(format!("it has died {LOSSES_MAX} times in a row")));
        }
        Ok(())
    }
}

/// A run that is cancelled leaves no half-done work in the tree, as if it were ended without a
/// driver: nothing that a person could accept stands in the way of an end, and what a person
/// changed meanwhile is left as it is.
fn put_away<W: World>(driver: &mut Driver<'_, W>) -> Result<(), Stop> {
    driver.journal.commit(driver.world)?;
    driver.how.options.ending = Some(BY_PERSON.to_owned());
    driver.how.choices.from = None;
    driver.how.choices.yes = true;
    // Its files are not gone on with; that the run was cancelled is said in them at the end.
    let foreign = driver.how.foreign.take();
    let settled = undo_half_done(driver);
    driver.how.foreign = foreign;
    settled.map_err(stopped)
}

fn undo_half_done<W: World>(driver: &mut Driver<'_, W>) -> Result<(), ResumeError> {
    let connected = driver.world.look_at_hands(&driver.run.state)?;
    let (findings, before, seen) = (Vec::new(), Before::default(), Seen::default());
    let mut round = Round { edited: None, findings, before, seen };
    let found = round.examine(driver.world, driver.run.clone(), &connected, &driver.how)?;
    if found.resumption.reverts.is_empty() {
        return Ok(());
    }
    driver.how.choices.accept_all(&found.resumption.findings);
    let examined = round.examine(driver.world, driver.run.clone(), &connected, &driver.how)?;
    let (_, agreed) = Agreed::settle(driver.world, examined, connected)?;
    round.go_on(driver, agreed)
}

fn take_hold_again<W: World>(driver: &mut Driver<'_, W>) -> Result<(), Stop> {
    // What had been heard before it died counts.
    driver.journal.commit(driver.world)?;
    // It may live and only have let go of us; a later epoch takes it from our former selves.
    driver.journal.begin_epoch();
    let mut connected = driver.world.connect(driver.journal.epoch(), &driver.run.state)?;
    // This engine was there all the while. The last sign of the dead supervisor may be seconds old
    // on a busy machine; what its attempts wrote since, until they ended, is no person's.
    connected.last_heartbeat = Some(driver.world.now());
    driver.announced.clear();
    driver.ask_again_to_stop();
    // Where to enter was for the first time.
    driver.how.choices.from = None;
    let (findings, before, seen) = (Vec::new(), Before::default(), Seen::default());
    let mut round = Round { edited: None, findings, before, seen };
    let mut examine = |driver: &mut Driver<'_, W>, connected: &Connected| {
        round.examine(driver.world, driver.run.clone(), connected, &driver.how)
    };
    let mut examined = examine(driver, &connected)?;
    if !examined.resumption.to_stop.is_empty() {
        let early = end_superseded(driver.world, &examined, &mut connected)?;
        driver.early.extend(early);
        examined = examine(driver, &connected)?;
    }
    let recovered = Agreed::settle(driver.world, examined, connected)
        .and_then(|(_, agreed)| round.go_on(driver, agreed));
    recovered.map_err(stopped)
}

fn stopped(error: ResumeError) -> Stop {
    match error {
        ResumeError::Conflicts(findings) => Stop::Conflicts(findings),
        ResumeError::Stop(stop) => stop,
        ResumeError::NoJournal
        | ResumeError::Journal(_)
        | ResumeError::Damaged
        | ResumeError::NoSuchStep(_)
        | ResumeError::NoSuchFinding(_)
        | ResumeError::Parked { .. }
        | ResumeError::Cancelled
        | ResumeError::Complete => Stop::Hands(error.to_string()),
    }
}
