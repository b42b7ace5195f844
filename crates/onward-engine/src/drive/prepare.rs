//! What is done around an attempt so that it can be undone: outputs are saved and the tree is
//! recorded before it, what it changed is noted after it, and what a failed one left is rescued
//! before the next.
//!
//! Invariant: whatever is recorded here is durable before the event that speaks of it.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, FileKind, Revert},
    evidence::{Cause, Evidence, Outcome, Reaction},
    key::Difference,
    launch::{Launch, Program, Seal},
    mark::{Mark, Nonce},
    recovery::Probed,
    state::Phase,
    workflow::pattern::is_glob,
    worktree::{WorktreePlace, worktree_path},
};

use crate::{
    check::hear,
    drive::Driver,
    revert::{self, Others, Test, Unfinished, snapshot_of},
    world::{
        Condition, SessionOf, Snapshot, Stop, Taken, When, World,
        files::{self, Leads},
    },
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
        self.node(step).is_some_and(|id| self.run.defs.brief(self.run.graph.node(id).def).edits())
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
            // A later step would look for it on the branch, and not find it.
            Err(why) => {
                let detail = format!("what it did in {} cannot be committed: {why}", place.path);
                finished.outcome = Outcome::Failed { cause: Cause::Unproved, detail };
                finished.evidence = Evidence::default();
                finished.result = None;
            }
        }
        Ok(())
    }

    /// The commit that the project's branch leads to, where this attempt made it.
    pub(crate) fn moved_head(&mut self, of: &AttemptFinished) -> Result<Option<String>, Stop> {
        let Some(known) = self.run.state.head.clone() else { return Ok(None) };
        let now = self.world.head("")?.and_then(|it| it.head);
        let Some(now) = now.filter(|now| *now != known) else { return Ok(None) };
        let made = (of.step.clone(), of.attempt);
        let commits = self.world.commits("", Some(&known), &now)?;
        let is_own = commits.iter().any(|it| it.by.as_ref() == Some(&made));
        Ok(is_own.then_some(now))
    }

    /// Before an effect beyond this machine the checks of kept steps that it rests on are run once
    /// more. One that does not agree makes its step run again first.
    pub(crate) fn rests_on_what_holds(&mut self, step: &Address) -> Result<bool, Stop> {
        let Some(id) = self.node(step) else { return Ok(true) };
        let (mut rest, mut seen) = (self.run.graph.effective_needs(id), BTreeSet::new());
        let mut unproved = Vec::new();
        while let Some(need) = rest.pop() {
            if !seen.insert(need) {
                continue;
            }
            let node = self.run.graph.node(need);
            rest.extend(&node.children);
            rest.extend(self.run.graph.effective_needs(need));
            let entry = self.run.state.step(&node.address);
            let is_kept = entry.is_some_and(|it| {
                it.phase == Phase::Done && it.ended_at < self.opened_at && it.key.is_some()
            });
            let (address, def) = (node.address.clone(), node.def);
            let check = self.run.defs.step(def).check.as_ref().filter(|_| is_kept);
            let command = check.and_then(|it| decide::command(&self.run, need, it));
            let Some(command) = command.filter(|_| !self.rechecked.contains(&address)) else {
                continue;
            };
            let tree = worktree_path(&self.run, need);
            if let Some(place) = WorktreePlace::at(&tree)
                && matches!(self.world.worktree_condition(&place)?, Condition::Missing { .. })
            {
                // Its commit is what is left to prove it.
                continue;
            }
            // No exit code but 0 is an answer here.
            if self.world.probe(&tree, &command, i32::MIN)? == Probed::Happened {
                self.rechecked.insert(address);
            } else {
                unproved.push(address);
            }
        }
        for step in &unproved {
            let was = Some("agreed".to_owned());
            let is = Some("does not agree any more".to_owned());
            let causes = vec![Difference { part: "check".to_owned(), was, is }];
            self.record(Event::StepInvalidated { step: step.clone(), causes })?;
        }
        Ok(unproved.is_empty())
    }

    /// Makes `launch` go on in the session of the attempt before it, where that was decided at the
    /// resume, or where that attempt failed for a cause that leaves its session as good as it was.
    pub(crate) fn inherited(
        &mut self,
        launch: &mut Launch,
        goes_on: bool,
    ) -> Result<Option<Inherited>, Stop> {
        let decided = self.continuing.remove(&launch.step);
        let Program::Agent(call) = &mut launch.program else { return Ok(None) };
        let Some(entry) = self.run.state.step(&launch.step) else { return Ok(None) };
        let is_lost = entry.phase == Phase::Lost && decided;
        let (Some(session), Some(started)) = (&entry.session, entry.started.as_deref()) else {
            return Ok(None);
        };
        if !is_lost && !goes_on {
            return Ok(None);
        }
        if started.agent.as_deref() != Some(call.name.as_str()) {
            let text = "its session is not continued: another agent takes over".to_owned();
            self.record(Event::Note { text, step: Some(launch.step.clone()) })?;
            return Ok(None);
        }
        let (agent, adapter, cwd) = (&call.name, &call.adapter, &launch.cwd);
        let of = SessionOf { agent, adapter, session, cwd };
        let lacks = self.world.session_lacks(&of)?.filter(|_| !is_lost);
        if let Some(why) = lacks.map(|it| it.why().to_owned()).or_else(|| {
            // Between that look and now another run may have taken it.
            let is_free = is_lost || self.world.hold_session(session);
            (!is_free).then(|| "another run of onward has it open".to_owned())
        }) {
            let text = format!("its session is not continued: {why}");
            self.record(Event::Note { text, step: Some(launch.step.clone()) })?;
            return Ok(None);
        }
        call.repairs = entry.failure.as_deref().and_then(|(cause, why)| {
            (cause.leads_to() == Reaction::Repair && !is_lost).then(|| why.clone())
        });
        call.goes_on_in = Some(session.clone());
        let AttemptStarted { base, saved, kinds, .. } = started.clone();
        Ok(Some(Inherited { base, saved, kinds }))
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

    /// An attempt in the person's own tree cannot be told from the person: that is said once.
    pub(crate) fn tell_of_tree(&mut self, step: &Address) -> Result<(), Stop> {
        if std::mem::replace(&mut self.told_of_tree, true) {
            return Ok(());
        }
        let text = format!(
            "what changes in this directory while {step} runs counts as its work, and is undone \
             with it if it fails; `worktree: true` keeps the two apart"
        );
        self.record(Event::Note { text, step: None })
    }

    /// The nonce of the start that is recorded next; the attempt carries it from here on.
    pub(crate) fn mark(&mut self, launch: &mut Launch) -> Nonce {
        let (epoch, at) = (self.journal.epoch(), self.world.now());
        let run = self.run_id();
        let nonce = Nonce::of(&run, epoch, self.run.state.next_seq, at);
        launch.of = Some(Mark { run, epoch, nonce });
        nonce
    }

    pub(crate) fn run_id(&self) -> String {
        self.run.state.opened.as_ref().map(|it| it.run.to_string()).unwrap_or_default()
    }

    /// Tells the supervisor what the attempt makes, and how to record the tree after it.
    pub(crate) fn equip(&self, launch: &mut Launch, has_base: bool, writes: &[String]) {
        launch.outputs = writes.to_vec();
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

    /// Keeps every file that matches the declared outputs, and what a link among them leads to, and
    /// notes those that are not there, as they are once the undo is done.
    pub(crate) fn save(&mut self, writes: &[String], undo: &UndoOfPrevious) -> Result<Saved, Stop> {
        let goes = undo.reverts.iter().filter(|it| !it.keeps_in_place());
        let reverts: Vec<&Revert> = goes.collect();
        let (mut saved, mut kinds) = Saved::default();
        for pattern in writes {
            let found = self.world.glob(pattern, &[])?;
            if found.is_empty() && !is_glob(pattern) {
                saved.insert(pattern.clone(), None);
            }
            for file in found {
                if !files::can_be_put_back(self.world, &file)? {
                    continue;
                }
                if reverts.iter().any(|revert| revert.path == file.path) {
                    saved.insert(file.path, None);
                    continue;
                }
                let behind = match self.world.leads(&file.path)? {
                    Leads::To(path) => Some(path),
                    Leads::Nowhere | Leads::Away => None,
                };
                for path in [file.path].into_iter().chain(behind) {
                    let content = files::save(self.world, &path)?;
                    if let Some((_, kind)) = content.filter(|(_, kind)| !kind.is_plain()) {
                        kinds.insert(path.clone(), kind);
                    }
                    saved.insert(path, content.map(|(digest, _)| digest));
                }
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

    /// An output that is a link to a file which is not kept: the link is rescued and taken away, so
    /// that the attempt writes a file of the project and not that one.
    pub(crate) fn take_links_away(
        &mut self,
        step: &Address,
        attempt: u32,
        writes: &[String],
        undo: &mut UndoOfPrevious,
    ) -> Result<(), Stop> {
        let mut links = Vec::new();
        for pattern in writes {
            for file in self.world.glob(pattern, &[])? {
                let is_known = undo.reverts.iter().any(|it| it.path == file.path);
                if !is_known && self.world.leads(&file.path)? == Leads::Away {
                    links.extend(revert::link_change(self.world, file.path)?);
                }
            }
        }
        links.dedup_by(|one, other| one.path == other.path);
        let first = undo.reverts.first().and_then(Revert::rescue_number);
        let number = first.unwrap_or(self.run.state.rescues) + 1;
        let started = AttemptStarted::bare(step.clone(), attempt);
        let undoing = revert::undoing(number, &started, &links);
        undoing.keep(self.world)?;
        undo.reverts.extend(undoing.reverts);
        Ok(())
    }

    /// Rescues what the failed attempt left. `None` when a person must look first: then the step
    /// is not tried again by this driver.
    pub(crate) fn undo_of_previous(
        &mut self,
        step: &Address,
    ) -> Result<Option<UndoOfPrevious>, Stop> {
        let mut all = Vec::new();
        for (other, entry) in self.run.state.steps.noteworthy() {
            let Some(started) = entry.started.as_deref() else { continue };
            let after = entry.after.as_deref().filter(|_| entry.phase == Phase::Failed);
            if other == step || entry.phase == Phase::Running {
                let mut left = revert::footprint(self.world, started, after)?;
                left.leave_to_outputs(&entry.evidence);
                left.leave_to(&self.how.theirs);
                left.leave_workflow(&self.run);
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
        let touched = if me.left.is_beyond_declared() {
            hear::touched(self.world, &self.run, step, started)?
        } else {
            None
        };
        let (touched, others) = (touched.as_ref(), &others);
        let judged = me.left.judge(&Test { limit_ns, survived: unclear, touched, others });
        if !judged.contested.is_empty() {
            let paths = judged.contested.paths.join(", ");
            let text =
                format!("not retried: files were changed meanwhile, and not by the step ({paths})");
            self.facts.held.insert(step.clone());
            self.record(Event::Note { text, step: Some(step.clone()) })?;
            return Ok(None);
        }
        let number = self.run.state.rescues + 1;
        let undoing = revert::undoing(number, started, &judged.undo);
        let number = number + u32::from(!undoing.reverts.is_empty());
        let overlaid = revert::overlaid(&self.run, me, number);
        let kept = undoing.keep(self.world)?;
        overlaid.keep(self.world)?;
        let undone = kept.map(|kept| kept.undone);
        let reverts = undoing.reverts.into_iter().chain(overlaid.reverts).collect();
        let declared = started.saved.keys().cloned().collect();
        Ok(Some(UndoOfPrevious { reverts, declared, undone }))
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
