//! What is done around an attempt so that it can be undone: outputs are saved and the tree is
//! recorded before it, what it changed is noted after it, and what a failed one left is rescued
//! before the next.
//!
//! Invariant: whatever is recorded here is durable before the event that speaks of it.

use std::collections::BTreeMap;

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, FileKind, Revert},
    evidence::{Cause, Evidence, Outcome},
    launch::{Launch, Program, Seal},
    state::Phase,
    worktree::WorktreePlace,
};

use crate::{
    drive::Driver,
    revert::{self, Others, Test, Unfinished, snapshot_of},
    world::{Snapshot, Stop, Taken, When, World, files, is_glob},
};

/// More paths than this are not written into the journal: git has them all.
const FOOTPRINT_MAX: usize = 1_000;

/// What the next attempt begins with.
#[derive(Debug, Default)]
pub(crate) struct UndoOfPrevious {
    pub(crate) reverts: Vec<Revert>,
    /// The outputs that the attempt before declared.
    declared: Vec<String>,
    /// The snapshot of the tree as it is when all is undone.
    pub(crate) undone: Option<String>,
}

/// What an attempt takes over from the one whose session it goes on in: all that the two of them
/// change is one footprint.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) base: Option<String>,
    pub(crate) saved: BTreeMap<String, Option<Digest>>,
    pub(crate) kinds: BTreeMap<String, FileKind>,
}

type Saved = (BTreeMap<String, Option<Digest>>, BTreeMap<String, FileKind>);

impl<W: World> Driver<'_, W> {
    /// May the attempts of this step change the tree beyond their outputs?
    pub(crate) fn edits(&self, step: &Address) -> bool {
        self.node(step).is_some_and(|id| self.run.defs.step(self.run.graph.node(id).def).edits)
    }

    /// Sees to it that the worktree of an attempt is there. `false` when a person must look first:
    /// then the step is not tried by this driver.
    pub(crate) fn enter_worktree(&mut self, launch: &Launch) -> Result<bool, Stop> {
        let Some(place) = WorktreePlace::at(&launch.cwd) else { return Ok(true) };
        let Err(why) = self.world.worktree(&place)? else { return Ok(true) };
        let text = format!("not started: {} cannot be worked in: {why}", place.path);
        self.facts.held.insert(launch.step.clone());
        self.record(Event::Note { text, step: Some(launch.step.clone()) })?;
        Ok(false)
    }

    /// Finished work in a worktree is a commit on its branch.
    pub(crate) fn commit_worktree(
        &mut self,
        finished: &mut AttemptFinished,
        started: &AttemptStarted,
    ) -> Result<(), Stop> {
        let place = WorktreePlace::at(&started.cwd).filter(|_| finished.outcome == Outcome::Done);
        let Some(place) = place else { return Ok(()) };
        match self.world.commit_worktree(&place, &started.step, started.attempt)? {
            Ok(head) => finished.evidence.branch_head = head,
            // Whoever needs it would look for it on the branch, and not find it.
            Err(why) => {
                let detail = format!("what it did in {} cannot be committed: {why}", place.path);
                finished.outcome = Outcome::Failed { cause: Cause::Unproved, detail };
                finished.evidence = Evidence::default();
                finished.result = None;
            }
        }
        Ok(())
    }

    /// Makes `launch` go on in the session of the attempt before it, where that was decided.
    pub(crate) fn inherited(&mut self, launch: &mut Launch) -> Option<Inherited> {
        let decided = self.continuing.remove(&launch.step);
        let entry = self.run.state.step(&launch.step).filter(|it| it.phase == Phase::Lost);
        let (entry, Program::Agent(call)) = (entry.filter(|_| decided)?, &mut launch.program)
        else {
            return None;
        };
        call.goes_on_in = Some(entry.session.clone()?);
        let AttemptStarted { base, saved, kinds, .. } = entry.started.as_deref()?.clone();
        Some(Inherited { base, saved, kinds })
    }

    /// Records the tree before an attempt.
    pub(crate) fn snapshot_before(
        &mut self,
        launch: &Launch,
        writes: &[String],
    ) -> Result<Option<String>, Stop> {
        let taken = self.world.snapshot(&Snapshot {
            tree: &launch.cwd,
            step: &launch.step,
            attempt: launch.attempt,
            when: When::Before,
            writes,
        })?;
        let Some(Taken { id, skipped }) = taken else { return Ok(None) };
        if !skipped.is_empty() {
            let paths = skipped.join(", ");
            let text = format!("too large, or unreadable, to be part of the snapshot: {paths}");
            self.record(Event::Note { text, step: Some(launch.step.clone()) })?;
        }
        Ok(Some(id))
    }

    /// Tells the supervisor how to record the tree after the attempt.
    pub(crate) fn equip(&self, launch: &mut Launch, has_base: bool, writes: &[String]) {
        if has_base {
            launch.snapshot = self.world.snapshot_command(&Snapshot {
                tree: &launch.cwd,
                step: &launch.step,
                attempt: launch.attempt,
                when: When::After,
                writes,
            });
        }
    }

    /// Keeps every file that matches the declared outputs, and notes those that are not there, as
    /// they are once the undo is done.
    pub(crate) fn save(&mut self, writes: &[String], undo: &UndoOfPrevious) -> Result<Saved, Stop> {
        let reverts = &undo.reverts;
        let (mut saved, mut kinds) = Saved::default();
        for pattern in writes {
            let found = self.world.glob(pattern, &[])?;
            if found.is_empty() && !is_glob(pattern) {
                saved.insert(pattern.clone(), None);
            }
            for file in found {
                if reverts.iter().any(|revert| revert.path == file.path) {
                    saved.insert(file.path, None);
                    continue;
                }
                let content = files::save(self.world, &file.path)?;
                if let Some((_, kind)) = content.filter(|(_, kind)| !kind.is_plain()) {
                    kinds.insert(file.path.clone(), kind);
                }
                saved.insert(file.path, content.map(|(digest, _)| digest));
            }
        }
        for revert in reverts {
            if saved.contains_key(&revert.path) || undo.declared.contains(&revert.path) {
                saved.insert(revert.path.clone(), revert.base);
                if !revert.base_kind.is_plain() {
                    kinds.insert(revert.path.clone(), revert.base_kind);
                }
            }
        }
        Ok((saved, kinds))
    }

    /// Rescues what the failed attempt left. `None` when a person must look first: then the step
    /// is not tried again by this driver.
    pub(crate) fn undo_of_previous(
        &mut self,
        step: &Address,
    ) -> Result<Option<UndoOfPrevious>, Stop> {
        let mut all = Vec::new();
        for (other, entry) in &self.run.state.steps {
            let Some(started) = entry.started.as_deref() else { continue };
            let after = entry.after.as_deref().filter(|_| entry.phase == Phase::Failed);
            if other == step || entry.phase == Phase::Running {
                let left = revert::footprint(self.world, started, after)?;
                all.push(Unfinished { step: other, entry, left });
            }
        }
        let me = all.iter().find(|one| one.step == step);
        let Some((me, started)) = me.and_then(|me| Some((me, me.entry.started.as_deref()?))) else {
            return Ok(Some(UndoOfPrevious::default()));
        };
        let unclear = started.base.is_some() && me.entry.after.is_none();
        let limit_ns = started.base.is_none().then(|| revert::limit_ns(me.entry.ended_at));
        let others = Others::of(&self.run, me, &all);
        let judged = me.left.judge(&Test { limit_ns, survived: unclear, others: &others });
        if !judged.contested.is_empty() {
            let paths = judged.contested.join(", ");
            let text = format!("not tried again: somebody else changed the same paths ({paths})");
            self.facts.held.insert(step.clone());
            self.record(Event::Note { text, step: Some(step.clone()) })?;
            return Ok(None);
        }
        let undoing = revert::undoing(self.run.state.rescues + 1, started, &judged.undo);
        let kept = undoing.keep(self.world)?;
        let undone = kept.map(|kept| kept.undone);
        let declared = started.saved.keys().cloned().collect();
        Ok(Some(UndoOfPrevious { reverts: undoing.reverts, declared, undone }))
    }

    /// Notes what an attempt changed beyond its declared outputs.
    pub(crate) fn add_footprint(
        &mut self,
        finished: &mut AttemptFinished,
        seal: &Seal,
        started: &AttemptStarted,
    ) -> Result<(), Stop> {
        let Some(base) = &started.base else { return Ok(()) };
        finished.after = match &seal.after {
            Some(after) => Some(after.clone()),
            None => self.late_snapshot(seal, started, base)?,
        };
        let Some(after) = &finished.after else { return Ok(()) };
        let mut paths = self.world.footprint(&started.cwd, base, after)?;
        let files = &finished.evidence.files;
        paths.retain(|path| !files.iter().any(|file| file.path == *path));
        paths.truncate(FOOTPRINT_MAX);
        finished.footprint = paths;
        Ok(())
    }

    /// The supervisor did not live to record the tree. While nothing has changed since the attempt
    /// ended, it is not too late.
    fn late_snapshot(
        &mut self,
        seal: &Seal,
        started: &AttemptStarted,
        base: &str,
    ) -> Result<Option<String>, Stop> {
        let of = snapshot_of(started);
        let Some(changes) = self.world.changes(&of, base, None)? else { return Ok(None) };
        let limit_ns = revert::limit_ns(seal.at);
        if changes.all.iter().any(|it| it.changed_ns.is_some_and(|at| at > limit_ns)) {
            return Ok(None);
        }
        Ok(self.world.snapshot(&of)?.map(|taken| taken.id))
    }
}
