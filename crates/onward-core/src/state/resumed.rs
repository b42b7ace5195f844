//! What a resume does to the state, and what it asks of effects that are not broken off for it.
//!
//! Invariant: what a resume decided about an attempt that lives on is known to the next one, though
//! the driver that was to act on it died.

use std::sync::Arc;

use super::{
    AFTERGLOW_MS, EffectState, Gap, Lifted, LoopState, Phase, RunStatus, State, StepState,
    Violation,
};
use crate::{
    address::Address,
    digest::Digest,
    event::{Edit, EditClass, EndStatus, LoopEnd, Revert, RunResumed},
    evidence::FreeTries,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

/// How an effect in flight was asked for since it began: it counts as done when it is through, and
/// is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskedSince {
    /// The workflow file was edited there.
    Edited,
    /// A person asked for it once more.
    Redo,
}

impl State {
    pub(super) fn resume(&mut self, resumed: RunResumed, at: Timestamp) -> Result<(), Violation> {
        if self.status == (RunStatus::Ended { status: EndStatus::Completed }) {
            return Err(self.violation("the run is complete"));
        }
        if resumed.count != self.resumes + 1 {
            let so_far = self.resumes;
            return Err(self.violation(format!("it was resumed {so_far} times")));
        }
        self.resumes = resumed.count;
        self.note_gap(resumed.last_sign, at);
        self.streak.resume(at);
        if self.boot_id != resumed.boot_id {
            self.boot_id.clone_from(&resumed.boot_id);
            let running = self.steps.change(Phase::Running);
            running.for_each(|step| step.outlived_boot = true);
        }
        self.note_redos(&resumed.accepted);
        self.ask_again_what_ended_it();
        self.status = RunStatus::UnderWay;
        // Only time lifts a limit whose moment is known.
        self.limits.retain(|_, lifted| *lifted != Lifted::Unknown);
        self.acted_since_resume = false;
        self.head = resumed.git.as_ref().and_then(|it| it.head.clone()).or(self.head.take());
        self.count_rescues(&resumed.reverts);
        self.keep_by_hand(&resumed.reverts);
        self.kept_at_starts.clear();
        if self.running == 0 {
            self.shared.clear();
        }
        let accepted = resumed.accepted.clone();
        self.resumed = Some(Arc::new(resumed));
        for step in self.steps.change(Phase::Failed) {
            step.phase = Phase::Pending;
            step.failures = 0;
            (step.free_tries, step.free_wait_ms) = (FreeTries::default(), None);
        }
        for (step, turning) in &mut self.loops {
            // A loop that ran out of turns may have more of them now.
            if turning.ended == Some(LoopEnd::Exhausted) {
                let is_given = |it: &String| LoopState::is_given_a_turn(it, step);
                turning.granted += u32::from(accepted.iter().any(is_given));
                turning.ended = None;
            }
        }
        Ok(())
    }

    /// Nothing of the run was at work until this resume. A journal that was rebuilt without any
    /// times does not say since when.
    fn note_gap(&mut self, last_sign: Option<Timestamp>, until: Timestamp) {
        let lived = last_sign.filter(|_| self.running > 0).map(|it| it.plus_ms(AFTERGLOW_MS));
        let since = lived.unwrap_or_default().max(self.driven_at);
        if self.driven_at > self.opened_at && since < until {
            self.gaps.push(Gap { since, until });
        }
    }

    /// What people made of these paths is in a rescue.
    pub(super) fn keep_by_hand(&mut self, reverts: &[Revert]) {
        let kept = reverts.iter().filter(|it| it.keeps_in_place());
        self.kept_by_hand.extend(kept.filter_map(|it| Some((it.path.clone(), it.left?))));
    }

    fn count_rescues(&mut self, reverts: &[Revert]) {
        let highest = reverts.iter().filter_map(Revert::rescue_number).max();
        self.rescues = self.rescues.max(highest.unwrap_or(0));
    }

    /// Steps that this resume was to redo; an effect that lives is waited for first.
    fn note_redos(&mut self, accepted: &[String]) {
        let redone: Vec<Address> = named(accepted, "redo ").collect();
        self.note_asked(AskedSince::Redo, |step| redone.iter().any(|it| step.is_within(it)));
    }

    /// Edits of the workflow that are taken up with a resume, unless it keeps the step as it is.
    pub(super) fn take_up(&mut self, hash: Digest, edits: &[Edit]) {
        self.workflow_hash = Some(hash);
        let accepted = self.resumed.as_ref().map_or(&[][..], |it| &it.accepted);
        let kept: Vec<Address> = named(accepted, "keep ").collect();
        let counts = |it: &&Edit| it.class != EditClass::Cosmetic;
        let edited: Vec<&str> = edits.iter().filter(counts).map(|it| it.step.as_str()).collect();
        self.note_asked(AskedSince::Edited, |step| {
            let is_kept = kept.iter().any(|it| step.is_within(it));
            !is_kept && edited.contains(&step.declared().as_str())
        });
    }

    fn note_asked(&mut self, how: AskedSince, is_meant: impl Fn(&Address) -> bool) {
        // What is no effect was ended for it.
        let is_open = |it: &StepState| it.phase == Phase::Running && it.effect != EffectState::None;
        let running = self.steps.noteworthy().filter(|(_, it)| is_open(it));
        let meant = running.filter(|(step, _)| is_meant(step)).map(|(step, _)| step.clone());
        for step in meant.collect::<Vec<_>>() {
            if let Some(entry) = self.steps.get_mut(&step) {
                entry.asked_since = Some(how);
            }
        }
    }
}

/// The steps that these words of a resume name.
fn named<'a>(accepted: &'a [String], word: &'a str) -> impl Iterator<Item = Address> + 'a {
    accepted.iter().filter_map(move |it| it.strip_prefix(word)).map(Address::from_text)
}
