//! Attempts in flight that ended or live, and whose result cannot count: they are asked for
//! differently now, what they read was changed, or what they made is gone.
//!
//! Invariant: an attempt is treated as the finished step would be, for the same named causes; only
//! what may have happened beyond this machine is never broken off.

use super::{
    Resumption, Why,
    done::{detail, difference, is_made_again},
    verdict::because,
};
use crate::{
    address::Address,
    digest::Digest,
    event::{Event, SettledBy},
    finding::{Code, Finding},
    graph::NodeId,
    key::{Difference, part_in_words, parts_in_words},
    recovery::{self, Decision, Rung},
    run::Run,
    state::{AskedSince, EffectState, Phase, State, StepState},
    survey::{InFlight, Survey},
};

const OUTDATED: &str = "its result cannot count";
/// What becomes of an effect in the end, whether it happened or not.
const MADE_AGAIN: &str = "it is made again all the same, because this changed";
const MADE_AGAIN_MAYBE: &str = "it is made again all the same if what it needs comes out otherwise";

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
        causes.extend(self.read_differently(step, (entry, state), survey));
        // Its end is known: what it did beyond this machine is done, and what it made here is gone.
        let is_half_gone = !seen.gone.is_empty() || !seen.emptied.is_empty();
        if may_have_happened && !is_half_gone {
            if !causes.is_empty() {
                let whys = causes.iter().map(|cause| Why::changed(cause, MADE_AGAIN));
                self.reasons.entry(step.clone()).or_default().extend(whys);
                self.retaken.insert(step.clone(), causes);
            }
            return false;
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

/// What an attempt was made from that is not what it was: the steps before it that came out
/// otherwise.
pub(super) fn changed_needs(after: &Run, id: NodeId) -> Vec<Difference> {
    let Some(entry) = after.state.step(&after.graph.node(id).address) else { return Vec::new() };
    let key = entry.started.as_deref().map(|it| &it.key).or(entry.key.as_ref());
    let was = key.map(|key| key.get().needs).unwrap_or_default();
    let is = after.graph.need_digests(id, &after.defs);
    let differs = |(need, is): (String, Digest)| {
        let was = was.get(&need).filter(|was| **was != is)?.to_string();
        let (part, is) = (format!("needs.{need}"), Some(is.to_string()));
        Some(Difference { part, was: Some(was), is })
    };
    is.into_iter().filter_map(differs).collect()
}

/// Why work that the resume takes is made again all the same: what it stands on is not what it was.
/// The decider finds that when the work counts as done.
pub(super) fn retaken_for(after: &Run, id: NodeId) -> Vec<Why> {
    let node = after.graph.node(id);
    // Another system's files may prove it, whatever it was made from.
    let counts = after.state.phase(&node.address) == Phase::Done && node.is_settled();
    if counts || !node.is_reachable() {
        return Vec::new();
    }
    changed_needs(after, id).iter().map(|it| Why::changed(it, MADE_AGAIN)).collect()
}

/// The same of an effect whose probe is asked first.
pub(super) fn retaken_if_probed(after: &Run, id: NodeId) -> Vec<Why> {
    if !after.graph.node(id).is_reachable() {
        return vec![because("upstream", MADE_AGAIN_MAYBE)];
    }
    retaken_for(after, id)
}
