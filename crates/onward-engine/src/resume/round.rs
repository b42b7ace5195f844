//! One resume from its first look to what it carries out, with as many looks as that takes.
//!
//! Invariant: nothing is written into another system's files, and nothing is recorded about them,
//! unless they are at that moment, under their own lock, what was examined. Files that change again
//! and again are examined for the last time while their lock is held.

use onward_core::{
    event::Revert,
    finding::Finding,
    plan::Resumption,
    policy,
    run::Run,
    workflow::{Loaded, model::Workflow},
};

use super::{
    Agreed, ResumeError, agree,
    examine::{Before, Examined, ForeignRead, Subject, examine},
};
use crate::{
    check::worktrees,
    drive::{Driver, Resume},
    foreign::{Held, Reentry},
    revert,
    world::{Connected, Stop, World, seen::Seen},
};

/// What is known about a run from one look of a resume to the next.
pub(super) struct Round<'a> {
    pub(super) edited: Option<(&'a Workflow, &'a Loaded)>,
    pub(super) findings: Vec<Finding>,
    pub(super) before: Before,
    /// Another system's files, for the next look alone.
    pub(super) seen: Seen,
}

impl Round<'_> {
    pub(super) fn examine<W: World>(
        &mut self,
        world: &mut W,
        run: Run,
        connected: &Connected,
        how: &Resume,
    ) -> Result<Examined, Stop> {
        let seen = &std::mem::take(&mut self.seen);
        let foreign = how.foreign.as_ref();
        let foreign = foreign.map(|foreign| ForeignRead { foreign, seen, is_new: false });
        let subject = Subject {
            run,
            connected,
            choices: &how.choices,
            depth: policy::preset(how.mode).0,
            edited: self.edited,
            foreign,
            theirs: how.theirs.clone(),
            driven: false,
            findings: self.findings.clone(),
            lacking: how.lacking.clone(),
            before: self.before.clone(),
        };
        examine(world, subject)
    }

    /// Brings to its end what an earlier resume began, and mends worktrees that are gone, before
    /// anything rests on the tree; what was found of it is told all the same. Whether it did.
    pub(super) fn settle<W: World>(
        &mut self,
        world: &mut W,
        examined: &Examined,
        held: Option<Held>,
    ) -> Result<bool, Stop> {
        let found = worktrees::findings(&examined.worktrees);
        let is_whole = examined.cut_short.is_empty() && found.is_empty();
        self.before.findings.extend(found);
        let is_new = |it: &&Revert| !self.before.undone.contains(it);
        let more: Vec<Revert> = examined.cut_short.iter().filter(is_new).cloned().collect();
        self.before.undone.extend(more);
        revert::undo(world, &examined.cut_short)?;
        worktrees::mend(world, &examined.worktrees)?;
        if let Some((reentry, mut held)) = examined.reentry.as_ref().zip(held) {
            reentry.put_back(world, &examined.cut_short, &mut held.files)?;
            self.seen = Seen::of(held.files);
        }
        Ok(!is_whole)
    }

    /// Takes the other system's lock where an undo goes on in its files, and sees that they are
    /// what was examined. What changed meanwhile is examined once more; what changed again, while
    /// the lock is held.
    pub(super) fn hold_to_settle<W: World>(
        &mut self,
        world: &mut W,
        mut examined: Examined,
        connected: &Connected,
        how: &Resume,
    ) -> Result<(Examined, Option<Held>), ResumeError> {
        for is_last in [false, true] {
            let Some(reentry) =
                examined.reentry.as_ref().filter(|_| !examined.cut_short.is_empty())
            else {
                return Ok((examined, None));
            };
            let held = reentry.hold(world)?;
            if reentry.files.tell_the_same_as(&held.files) {
                return Ok((examined, Some(held)));
            }
            let is_locked = reentry.has_lock();
            self.seen = Seen::of(held.files.clone());
            let held = Some(held).filter(|_| is_last && is_locked);
            if is_last && held.is_none() {
                break;
            }
            examined = self.examine(world, examined.into_run(), connected, how)?;
            agree(&examined)?;
            if held.is_some() {
                return Ok((examined, held));
            }
        }
        Err(changing())
    }

    /// Carries out what was agreed to, if the other system's files are still what was examined. If
    /// not, they are examined once more, and then while their lock is held; nothing was written
    /// until then.
    pub(super) fn go_on<W: World>(
        &mut self,
        driver: &mut Driver<'_, W>,
        agreed: Agreed,
    ) -> Result<(), ResumeError> {
        let held = agreed.hold(driver.world)?;
        if agreed.is_of(held.as_ref()) {
            return Ok(driver.go_on_from(agreed, self.edited, held)?);
        }
        let connected = agreed.connected;
        // The lock is free while probes and checks run.
        self.seen = held.map(|it| Seen::of(it.into_files())).unwrap_or_default();
        let run = driver.run.clone();
        let examined = self.examine(driver.world, run, &connected, &driver.how)?;
        let (_, agreed) = Agreed::settle(driver.world, examined, connected)?;
        let held = agreed.hold(driver.world)?;
        // An attempt of ours that lives may write there all the time.
        if agreed.is_of(held.as_ref()) || !agreed.connected.alive.is_empty() {
            return Ok(driver.go_on_from(agreed, self.edited, held)?);
        }
        let is_locked = agreed.reentry.as_ref().is_some_and(Reentry::has_lock);
        match held.filter(|_| is_locked) {
            Some(held) => self.go_on_as_held(driver, agreed.connected, held),
            None => Err(changing()),
        }
    }

    /// Another program writes all the time: while its lock is held it cannot. Probes and checks may
    /// take long, and that program would wait for them: where one is to be asked, this is refused.
    fn go_on_as_held<W: World>(
        &mut self,
        driver: &mut Driver<'_, W>,
        connected: Connected,
        held: Held,
    ) -> Result<(), ResumeError> {
        self.seen = Seen::of(held.files.clone());
        let run = driver.run.clone();
        let examined = self.examine(driver.world, run, &connected, &driver.how)?;
        let Resumption { to_probe, to_check, .. } = &examined.resumption;
        if !to_probe.is_empty() || !to_check.is_empty() {
            return Err(changing());
        }
        let (_, agreed) = Agreed::settle(driver.world, examined, connected)?;
        Ok(driver.go_on_from(agreed, self.edited, Some(held))?)
    }
}

/// Twice in a row, what was examined was not what was there when it was to be written.
fn changing() -> ResumeError {
    let what = "another program changes the files of this run at this moment".to_owned();
    let hint = "nothing was written; let that program end, then `onward resume`".to_owned();
    Stop::Unready { what, hint }.into()
}
