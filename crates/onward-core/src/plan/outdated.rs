//! Attempts in flight that ended or live, and whose result cannot count: they are asked for
//! differently now, what they read was changed, or what they made is gone.
//!
//! Invariant: an attempt is treated as the finished step would be, for the same named causes; only
//! what may have happened beyond this machine is never broken off.

use super::{
    Resumption, Why,
    done::{detail, difference, is_made_again},
};
use crate::{
    address::Address,
    event::{Event, SettledBy},
    finding::{Code, Finding},
    key::{Difference, part_in_words, parts_in_words},
    recovery::{self, Decision, Rung},
    state::{AskedSince, EffectState, State, StepState},
    survey::{InFlight, Survey},
};

const OUTDATED: &str = "its result cannot count";

impl Resumption {
    /// Whether the attempt is given up for that.
    pub(super) fn outdates(
        &mut self,
        step: &Address,
        (entry, state): (&StepState, &State),
        seen: &InFlight,
        survey: &Survey,
    ) -> bool {
        let decision = recovery::row_for(seen.facts).decision;
        let may_have_happened = match entry.effect {
            EffectState::Intended | EffectState::Happened => true,
            EffectState::None | EffectState::Absent => false,
        };
        let is_taken = match decision {
            Decision::AdoptSeal | Decision::Reattach | Decision::AdoptProof => true,
            Decision::Continue | Decision::Rerun | Decision::RevertThenRerun | Decision::Ask => {
                may_have_happened || seen.unchecked.is_some()
            }
            Decision::Start | Decision::Refuse => false,
        };
        if !is_taken {
            return false;
        }
        let mut causes = self.asked_differently((step, entry), seen, survey);
        // Its end is known: what it did beyond this machine is done, and what it made here is gone.
        let is_half_gone = !seen.gone.is_empty() || !seen.emptied.is_empty();
        if may_have_happened && !is_half_gone {
            if !causes.is_empty() {
                let detail = "it is made again all the same, because this changed";
                let whys = causes.iter().map(|cause| Why::changed(cause, detail));
                self.reasons.entry(step.clone()).or_default().extend(whys);
                self.retaken.insert(step.clone(), causes);
            }
            return false;
        }
        if decision == Decision::AdoptSeal {
            causes.extend(self.read_differently(step, (entry, state), survey));
        }
        let whys = causes.iter().map(|cause| Why::changed(cause, detail(cause)));
        let mut whys: Vec<Why> = whys.collect();
        let gone = seen.gone.iter().map(|path| (path, Code::MissingArtifact, "is gone"));
        let emptied = seen.emptied.iter();
        let emptied =
            emptied.map(|path| (path, Code::ArtifactDamaged, "was emptied after its end"));
        for (path, code, what) in gone.chain(emptied) {
            let finding = Finding::new(code, format!("{path} of {step} {what}"));
            self.findings.push(finding.at_step(step).at_path(path).with_hint("it is made again"));
            whys.push(Why::because(code.as_str(), format!("{path} {what}")));
        }
        if whys.is_empty() {
            return false;
        }
        if may_have_happened {
            let (step, attempt) = (step.clone(), entry.attempts);
            let (happened, by) = (true, SettledBy::Receipt);
            self.events.push(Event::EffectSettled { step, attempt, happened, by });
        }
        self.explain(step, Rung::Outdated.as_str(), OUTDATED.to_owned());
        self.reasons.entry(step.clone()).or_default().extend(whys);
        self.give_up(step, entry, seen, survey.kept_of(step), (Rung::Outdated, OUTDATED));
        true
    }

    /// By an edited workflow, or because a person asks for it once more.
    fn asked_differently(
        &mut self,
        (step, entry): (&Address, &StepState),
        seen: &InFlight,
        survey: &Survey,
    ) -> Vec<Difference> {
        let mut causes = Vec::new();
        let was_asked = entry.asked_since == Some(AskedSince::Redo);
        if self.choices.redoes(step) || was_asked && !self.choices.keeps(step) {
            let is = Some("a person asked for it".to_owned());
            causes.push(Difference { part: "redo".to_owned(), was: None, is });
        }
        let asked = survey.edited.as_ref().and_then(|it| it.begun.get(step));
        let asked = asked.or_else(|| survey.begun.get(step));
        let Some(differences) = asked else { return causes };
        let parts = parts_in_words(differences);
        if self.choices.keeps(step) {
            self.explain(step, "kept", format!("{parts} changed; it is kept, as asked"));
            return causes;
        }
        let named = step.in_commands();
        let (what, hint) = if seen.facts.sealed {
            ("ended while the engine was down", "it runs again")
        } else if seen.facts.alive {
            ("is still running", "it is ended, and runs again")
        } else {
            ("was killed, and may be done", "it runs again")
        };
        let message = format!("{step} {what}, and {parts} changed");
        let finding = Finding::new(Code::DefinitionTouchesDone, message).at_step(step);
        self.findings.push(finding.with_hint(format!("{hint}; keep it with `--keep {named}`")));
        causes.extend(differences.iter().cloned());
        causes
    }

    fn read_differently(
        &mut self,
        step: &Address,
        (entry, state): (&StepState, &State),
        survey: &Survey,
    ) -> Vec<Difference> {
        let mut causes = Vec::new();
        let key = entry.started.as_deref().map(|it| &it.key);
        for read in survey.reads.get(step).into_iter().flatten() {
            if key.is_some_and(|key| is_made_again(key, read, state, survey)) {
                continue;
            }
            if self.choices.keeps(step) {
                let part = part_in_words(&difference(read).part);
                self.explain(step, "kept", format!("{part} changed; it is kept, as asked"));
            } else {
                causes.push(self.read(step, read));
            }
        }
        causes
    }

    /// An effect that counts as done from here on is made again, where it is asked for differently.
    pub(super) fn retake(&mut self, step: &Address) {
        if let Some(causes) = self.retaken.remove(step) {
            self.events.push(Event::StepInvalidated { step: step.clone(), causes });
        }
    }
}
