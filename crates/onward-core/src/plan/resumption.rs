//! What a resume writes before it goes on: lost attempts, stale steps, adopted work, reverts.

use std::collections::{BTreeMap, BTreeSet};

use super::{Status, Why, checks};
use crate::{
    address::Address,
    event::{AttemptAdopted, Certainty, Event, Revert, SettledBy},
    evidence::Cause,
    finding::{Code, Finding},
    key::Difference,
    plural::count,
    policy::Choices,
    recovery::{self, Decision, Probed, Row, Rung},
    run::Run,
    state::{EffectState, Glance, Phase, State, StepState},
    survey::{Contested, Edited, InFlight, Proof, Survey},
};

/// See the module.
#[derive(Default)]
pub struct Resumption {
    pub code: &'static str,
    pub summary: String,
    /// Written in the batch of `run.resumed`, in this order.
    pub events: Vec<Event>,
    pub reverts: Vec<Revert>,
    pub findings: Vec<Finding>,
    pub needs: Vec<String>,
    /// The row of the recovery table for each attempt in flight.
    pub rungs: BTreeMap<Address, &'static Row>,
    /// Reasons beyond those the state itself gives.
    pub reasons: BTreeMap<Address, Vec<Why>>,
    /// Steps whose next attempt goes on in the session of the last one.
    pub continuing: BTreeSet<Address>,
    pub choices: Choices,
    /// The run is complete.
    pub(super) is_over: bool,
    /// Effects whose probe must be asked before anything is decided.
    pub to_probe: Vec<Address>,
    /// Effects that are tried again only if a person accepts that: nothing shows what became of
    /// them.
    pub(super) to_accept: Vec<Address>,
    /// Attempts that left all but the word of their check, which is run first.
    pub to_check: Vec<Address>,
    /// Attempts that are given up although they ended or live, because their result cannot count.
    pub(super) superseded: BTreeSet<Address>,
    /// Effects in flight that count as done when they are through, and are made again all the same,
    /// because they are asked for differently now.
    pub retaken: BTreeMap<Address, Vec<Difference>>,
    /// Done steps whose `when` does not hold any more.
    pub(super) passed_over: BTreeSet<Address>,
    /// Items of fan-outs that are no longer listed: what is in them is left as it is.
    pub(super) unlisted: Vec<Address>,
    /// Those of them that live: a resume ends them first.
    pub to_stop: BTreeSet<Address>,
    /// Done steps that a person keeps whatever becomes of the steps before them.
    pub(super) kept: BTreeSet<Address>,
    /// Attempts of which a person was asked, because other hands changed the same files.
    pub(super) contested: BTreeSet<Address>,
    /// Outputs of attempts that are taken as done, as other hands left them since.
    pub edited: BTreeMap<Address, BTreeSet<String>>,
}

const CONTESTED_EFFECT: &str =
    "if it did not happen, it runs again, and the same files were edited afterwards";
const PROBED: &str = "the probe decides: if it happened, the step counts as done";
const PROBED_ANYWAY: &str =
    "the probe is asked first: if it happened, that is recorded, and it is made again";
/// Why the evidence of a step is another one than what it left.
pub const EDITED: &str = "an output was changed by hand; the change is kept";
const LEFT: &str = "what it changed stays, as asked";

pub fn resumption(run: &Run, survey: &Survey, choices: &Choices) -> Resumption {
    let mut made = decided(run, survey, choices);
    made.replace(run, survey);
    made.summarise(run, survey);
    made
}

/// All but what people changed and steps replace.
pub(super) fn decided(run: &Run, survey: &Survey, choices: &Choices) -> Resumption {
    let findings = checks::about_the_run(run, survey);
    let is_over = Status::of(&run.state, survey.driven) == Status::Completed;
    let choices = choices.clone();
    let mut made = Resumption { findings, choices, is_over, ..Resumption::default() };
    if let Some(edited) = &survey.edited {
        let Edited { hash, edits, .. } = edited.clone();
        made.events.push(Event::WorkflowChanged { hash, edits });
    }
    made.reverts.extend(survey.cut_short.iter().cloned());
    made.unlisted = made.unlisted_items(run, survey);
    for (step, glance) in run.state.steps.glances() {
        let entry = match glance {
            Glance::Whole(entry) => entry,
            // Of what is done and as it was left nothing follows.
            Glance::Plain(_) if !made.is_told_of(step, survey) => continue,
            Glance::Plain(_) => &run.state.steps[step],
        };
        match entry.phase {
            Phase::Running => {
                let unseen = InFlight::default();
                let seen = survey.in_flight.get(step).unwrap_or(&unseen);
                made.add_in_flight(step, (entry, &run.state), seen, survey);
            }
            // A time-out, a signal or a stop is no receipt: it may have happened.
            Phase::Failed if entry.effect == EffectState::Intended => {
                let left = survey.left_by_failed.get(step).cloned().unwrap_or_default();
                let contested = survey.contested_of_failed.get(step).cloned().unwrap_or_default();
                let probed = survey.in_flight.get(step).and_then(|it| it.probed);
                let probed = probed.or_else(|| run.is_blind(step).then_some(Probed::Unknown));
                let seen = InFlight { probed, reverts: left, contested, ..InFlight::default() };
                made.add_effect(step, entry, &seen, survey.kept_of(step));
            }
            Phase::Lost | Phase::Failed if survey.sessions.contains(step) => {
                made.continuing.insert(step.clone());
            }
            Phase::Failed | Phase::Lost if made.choices.leaves(step) => {
                made.explain(step, "left", LEFT.to_owned());
            }
            Phase::Failed | Phase::Lost => {
                let left = survey.left_by_failed.get(step);
                made.reverts.extend(left.into_iter().flatten().cloned());
                if let Some(contested) = survey.contested_of_failed.get(step) {
                    let why = "it did not finish, and these files were edited afterwards";
                    let _ = made.contest(step, why, contested, survey.kept_of(step));
                }
            }
            Phase::Done | Phase::Tolerated | Phase::Skipped if made.is_unlisted(step) => {}
            Phase::Done | Phase::Tolerated => {
                made.add_done(step, (entry, &run.state), survey);
            }
            Phase::Skipped => made.add_skipped(step, survey),
            Phase::Pending | Phase::Waiting | Phase::Stale => {}
        }
    }
    made.keep_overlaid(survey);
    made.turn_again(run, survey);
    made.relist(run, survey);
    made.enter(run, survey);
    made.overwrite(run, survey);
    made.keep_as_asked(run, survey);
    made.undo_redone(survey);
    made.supersede(run, survey);
    made
}

impl Resumption {
    fn add_in_flight(
        &mut self,
        step: &Address,
        (entry, state): (&StepState, &State),
        seen: &InFlight,
        survey: &Survey,
    ) {
        // What other hands made of its files since.
        let kept = survey.kept_of(step);
        let row = recovery::row_for(seen.facts);
        self.rungs.insert(step.clone(), row);
        if self.outdates(step, (entry, state), seen, survey) {
            return;
        }
        let unseen_end = match row.decision {
            // Whether an effect happened is not for the tree to say, while its end is not known.
            Decision::Rerun | Decision::RevertThenRerun | Decision::Continue | Decision::Ask => {
                true
            }
            Decision::Start
            | Decision::AdoptSeal
            | Decision::Reattach
            | Decision::AdoptProof
            | Decision::Refuse => false,
        };
        match entry.effect {
            EffectState::Intended if unseen_end => {
                self.add_effect(step, entry, seen, kept);
                return;
            }
            // A crash may have kept that it happened and lost the line that counts the step done.
            EffectState::Happened if unseen_end => {
                let detail = "recorded as having happened".to_owned();
                self.explain(step, "effect-happened", detail);
                self.adopt(step, seen.proof.clone(), kept);
                self.retake(step);
                return;
            }
            EffectState::None
            | EffectState::Intended
            | EffectState::Happened
            | EffectState::Absent => {}
        }
        if let Some(proof) = seen.unchecked.as_ref().filter(|_| unseen_end) {
            match seen.checked {
                None => {
                    self.to_check.push(step.clone());
                    let taken = "its check decides: if it agrees, what is there is taken";
                    self.explain(step, "unchecked", either(taken, &seen.reverts));
                    return;
                }
                Some(Probed::Happened) => {
                    let detail = "it died, but what it left is there, and its check agrees";
                    self.explain(step, "proved", detail.to_owned());
                    return self.adopt(step, Some(proof.clone()), kept);
                }
                Some(Probed::Absent | Probed::Unknown) => {
                    let detail = "what it left is there, but its check does not agree";
                    self.explain(step, "unchecked", detail.to_owned());
                }
            }
        }
        let asks = row.decision == Decision::Ask;
        let why = if asks { seen.contested.why(row.why) } else { row.why };
        self.explain(step, row.rung.as_str(), why.to_owned());
        if let Some((_, detail)) =
            seen.failed.as_ref().filter(|_| row.decision == Decision::AdoptSeal)
        {
            let text = format!("{detail}: counts as failed; retried if the workflow allows it");
            self.explain(step, "failed", text);
        }
        if let Some(lacks) = seen.session_lacks.as_ref().filter(|_| unseen_end) {
            let text = format!("its session cannot continue: {lacks}");
            self.explain(step, "session", text.clone());
            self.events.push(Event::Note { text, step: Some(step.clone()) });
        }
        for text in seen.stays.iter().filter(|_| unseen_end) {
            self.explain(step, "stays", text.clone());
            // Of no step, so that it is said on the screen.
            self.events.push(Event::Note { text: format!("{step}: {text}"), step: None });
        }
        match row.decision {
            Decision::AdoptSeal if seen.failed.is_none() => self.take_as_edited(step, kept),
            Decision::Start | Decision::AdoptSeal | Decision::Reattach => {}
            Decision::AdoptProof => self.adopt(step, seen.proof.clone(), kept),
            Decision::Continue => {
                self.continuing.insert(step.clone());
                self.lose(step, entry, row.rung, &[]);
            }
            Decision::Rerun => self.lose(step, entry, row.rung, &[]),
            // Nothing of it is undone: what a person changed is asked about as what the step
            // replaces.
            Decision::RevertThenRerun | Decision::Ask
                if self.choices.leaves(step) && row.rung != Rung::NeverSpawnedYetDirty =>
            {
                self.explain(step, "left", LEFT.to_owned());
                self.lose(step, entry, row.rung, &[]);
            }
            Decision::RevertThenRerun => self.lose(step, entry, row.rung, &seen.reverts),
            Decision::Ask => {
                if self.contest(step, row.why, &seen.contested, kept) {
                    self.lose(step, entry, row.rung, &[]);
                }
            }
            Decision::Refuse => {
                let finding = Finding::new(Code::JournalDamaged, format!("{step}: {}", row.why));
                self.findings.push(finding.at_step(step).with_hint("run `onward repair`"));
            }
        }
    }

    /// Whether a person has said that what is there now counts, and nothing is put back. What other
    /// hands made of it goes to a rescue first.
    pub(super) fn contest(
        &mut self,
        step: &Address,
        why: &str,
        contested: &Contested,
        kept: &[Revert],
    ) -> bool {
        self.contested.insert(step.clone());
        self.reverts.extend(kept.iter().cloned());
        let saved = match kept.first() {
            Some(first) => format!("it is kept in {}, ", first.rescue),
            None => String::new(),
        };
        let (why, paths) = (contested.why(why), contested.paths.join(", "));
        let message = match contested.paths.as_slice() {
            [] => format!("{step}: {why}"),
            _ => format!("{step}: {why} ({paths})"),
        };
        let hint = if contested.snapshot_lost {
            "look at the tree; accepted, it stays as it is, and the step runs again".to_owned()
        } else {
            let then = "nothing is undone, and the step runs again on top";
            format!("look at {paths}; accepted, {saved}{then}")
        };
        let finding = Finding::new(Code::AttemptContested, message.clone());
        let finding = finding.at_step(step).with_hint(hint);
        let accepted = self.choices.accept(&finding);
        if !accepted {
            self.needs.push(message);
        }
        self.findings.push(finding);
        accepted
    }

    fn add_effect(&mut self, step: &Address, entry: &StepState, seen: &InFlight, kept: &[Revert]) {
        // Asked before the probe is: what it says may lead to another try.
        let may_go = seen.contested.is_empty()
            || seen.probed == Some(Probed::Happened)
            || self.contest(step, CONTESTED_EFFECT, &seen.contested, kept);
        let Some(probed) = seen.probed else {
            self.to_probe.push(step.clone());
            let taken = if self.retaken.contains_key(step) { PROBED_ANYWAY } else { PROBED };
            self.explain(step, "effect-unknown", either(taken, seen.undone_if_lost()));
            return;
        };
        let settled = |happened| Event::EffectSettled {
            step: step.clone(),
            attempt: entry.attempts,
            happened,
            by: SettledBy::Probe,
        };
        let by_a_person = |happened| Event::EffectSettled {
            step: step.clone(),
            attempt: entry.attempts,
            happened,
            by: SettledBy::Person,
        };
        match recovery::effect_decision(probed) {
            Decision::AdoptProof => {
                self.events.push(settled(true));
                self.explain(step, "effect-happened", "the probe says it happened".into());
                self.adopt(step, None, kept);
                self.retake(step);
            }
            Decision::Rerun => {
                self.events.push(settled(false));
                self.explain(step, "effect-absent", "the probe says it did not happen".into());
                if may_go {
                    self.try_effect_again(step, entry, Rung::EffectAbsent, seen);
                }
            }
            Decision::Ask
            | Decision::Start
            | Decision::AdoptSeal
            | Decision::Reattach
            | Decision::Continue
            | Decision::RevertThenRerun
            | Decision::Refuse => {
                debug_assert_eq!(probed, Probed::Unknown, "the other answers are decided above");
                let message = format!("{step}: nothing shows whether its outside effect happened");
                let hint = format!(
                    "find out; then `onward done {step}` if it did, or add a `probe` to the step"
                );
                let finding = Finding::new(Code::EffectUnknown, message.clone());
                let finding = finding.at_step(step).with_hint(hint);
                let unknown = "nothing shows whether it happened";
                self.explain(step, "effect-unknown", accepted(unknown, seen.undone_if_lost()));
                if self.choices.accept(&finding) {
                    // A person who accepts that says: it may be tried again.
                    self.events.push(by_a_person(false));
                    if may_go {
                        self.try_effect_again(step, entry, Rung::EffectAccepted, seen);
                    }
                } else {
                    self.to_accept.push(step.clone());
                    self.needs.push(message);
                }
                self.findings.push(finding);
            }
        }
    }

    /// Whatever the probe of an effect says, it is made again.
    pub(super) fn probe_anyway(&mut self, step: &Address) {
        for why in self.reasons.get_mut(step).into_iter().flatten() {
            why.detail = why.detail.replacen(PROBED, PROBED_ANYWAY, 1);
        }
    }

    /// It did not happen, or may be tried again all the same: what it left is undone, unless other
    /// hands changed it.
    fn try_effect_again(&mut self, step: &Address, entry: &StepState, rung: Rung, seen: &InFlight) {
        if entry.phase == Phase::Running {
            self.lose(step, entry, rung, seen.undone_if_lost());
        } else {
            self.reverts.extend(seen.undone_if_lost().iter().cloned());
        }
    }

    /// What a person made of an output after the attempt was over counts, and is not the attempt's.
    fn take_as_edited(&mut self, step: &Address, kept: &[Revert]) {
        for path in kept.iter().map(|it| &it.path) {
            self.tell_of_change(step, path);
            self.edited.entry(step.clone()).or_default().insert(path.clone());
        }
    }

    fn adopt(&mut self, step: &Address, proof: Option<Proof>, kept: &[Revert]) {
        self.take_as_edited(step, kept);
        let (evidence, result) = proof.map(|it| (it.evidence, it.result)).unzip();
        let mut evidence = evidence.unwrap_or_default();
        let edited = evidence.without(self.edited.get(step));
        self.events.push(Event::AttemptAdopted(Box::new(AttemptAdopted {
            step: step.clone(),
            source: "evidence".to_owned(),
            certainty: Certainty::Inferred,
            evidence,
            result: result.flatten(),
            by: None,
        })));
        if let Some(evidence) = edited {
            self.verified(step, Some(evidence), None, EDITED);
        }
    }

    pub(super) fn lose(
        &mut self,
        step: &Address,
        entry: &StepState,
        rung: Rung,
        reverts: &[Revert],
    ) {
        self.events.push(Event::AttemptLost {
            step: step.clone(),
            attempt: entry.attempts,
            cause: Cause::Interrupted,
            rung,
            reverted: reverts.iter().map(|revert| revert.path.clone()).collect(),
            rescue: reverts.first().map(|revert| revert.rescue.clone()),
        });
        self.reverts.extend(reverts.iter().cloned());
    }

    pub(super) fn explain(&mut self, step: &Address, cause: &str, detail: String) {
        let why = Why::because(cause, detail);
        self.reasons.entry(step.clone()).or_default().push(why);
    }

    fn summarise(&mut self, run: &Run, survey: &Survey) {
        let state = &run.state;
        let done = state.steps.phases().filter(|phase| phase.is_settled()).count();
        if let Some(from) = &self.choices.from {
            self.code = "from";
            self.summary =
                format!("{} done; enters at {}, as asked", count(done, "step"), from.step);
            return;
        }
        (self.code, self.summary) = match Status::of(state, survey.driven) {
            Status::Completed => ("complete", "everything is done".to_owned()),
            Status::Fresh => ("start", "nothing has run yet".to_owned()),
            Status::Waiting => ("gate", format!("{} done; a gate is open", count(done, "step"))),
            Status::Failed => {
                ("failed-steps", format!("{} done; failed steps run again", count(done, "step")))
            }
            Status::Running
            | Status::Interrupted
            | Status::Parked
            | Status::OverBudget
            | Status::Cancelled => {
                ("continue", format!("{} done; continues from there", count(done, "step")))
            }
        };
    }
}

/// What either answer leads to.
fn either(taken: &str, reverts: &[Revert]) -> String {
    format!("{taken}; if not, {}it runs again", undone(reverts))
}

/// What a person's yes leads to, where that undoes something.
fn accepted(unknown: &str, reverts: &[Revert]) -> String {
    match reverts {
        [] => unknown.to_owned(),
        [..] => format!("{unknown}; accepted, {}it runs again", undone(reverts)),
    }
}

fn undone(reverts: &[Revert]) -> String {
    let Some(first) = reverts.first() else { return String::new() };
    let paths: Vec<&str> = reverts.iter().map(|it| it.path.as_str()).collect();
    format!("{} is undone (kept in {}) and ", paths.join(", "), first.rescue)
}

#[cfg(test)]
mod tests;
