//! A step the journal says is done, against the world: does it stand, and under which evidence?

use std::collections::BTreeMap;

use super::{Resumption, Why, resumption::EDITED};
use crate::{
    address::Address,
    digest::Digest,
    event::{AttemptVerified, Event},
    evidence::Evidence,
    finding::{Code, Finding},
    key::{Difference, Key, KeyParts, part_in_words, parts_in_words},
    overwritten::{overwritten_at_resume, run_again},
    run::Run,
    state::{Phase, State, StepState},
    survey::{Damage, OutputSeen, ReadSeen, Survey},
};

impl Resumption {
    /// Whether anything was chosen for a done step or seen of it that [`add_done`](Self::add_done)
    /// looks at.
    pub(super) fn is_told_of(&self, step: &Address, survey: &Survey) -> bool {
        self.choices.keeps(step)
            || self.choices.redoes(step)
            || survey.outputs.contains_key(step)
            || survey.reads.contains_key(step)
            || survey.whens.contains_key(step)
            || survey.disagreements.contains_key(step)
            || survey.reentered.contains_key(step)
            || survey.git.as_ref().is_some_and(|git| git.lost_heads.contains_key(step))
            || survey.redefined(step).is_some()
    }

    pub(super) fn add_done(
        &mut self,
        step: &Address,
        (entry, state): (&StepState, &State),
        survey: &Survey,
    ) {
        let keeps = self.choices.keeps(step);
        let (mut causes, mut kept) = (Vec::new(), Vec::new());
        if self.choices.redoes(step) {
            let is = Some("a person asked for it".to_owned());
            causes.push(Difference { part: "redo".to_owned(), was: None, is });
        }
        let mut adopted = entry.evidence.clone();
        let outputs = || survey.outputs.get(step).into_iter().flatten();
        for output in outputs().filter(|it| it.is_lost()) {
            causes.push(self.lost_output(step, entry, output));
        }
        for read in survey.reads.get(step).into_iter().flatten() {
            if entry.key.as_ref().is_some_and(|key| is_made_again(key, read, state, survey)) {
                continue;
            }
            if keeps {
                kept.push(difference(read));
            } else {
                causes.push(self.read(step, read));
            }
        }
        if let Some(read) = survey.whens.get(step) {
            let says = format!("the `when` of {step} does not hold any more");
            match self.decided_otherwise(step, read, &says, "it is passed over") {
                Some(cause) => {
                    self.passed_over.insert(step.clone());
                    causes.push(cause);
                }
                None => kept.push(difference(read)),
            }
        }
        if let Some(says) = survey.disagreements.get(step).filter(|_| keeps) {
            self.explain(step, "kept", format!("{says}; it is kept, as asked"));
        } else if let Some(says) = survey.disagreements.get(step) {
            let was = entry.phase.as_str();
            let message = format!("the journal has {step} as {was}, but {says}");
            if !survey.explained.contains(step) {
                let finding = Finding::new(Code::StatusDisagrees, message).at_step(step);
                self.findings.push(finding.with_hint("the careful reading counts: it runs again"));
            }
            causes.push(Difference {
                part: "status".to_owned(),
                was: Some(was.to_owned()),
                is: Some(says.clone()),
            });
        }
        if let Some(head) = survey.git.as_ref().and_then(|git| git.lost_heads.get(step)) {
            let where_to =
                if entry.head.is_some() { "gone from the branch" } else { "on no branch any more" };
            let message = format!("the commit that proves {step} is {where_to}");
            let finding = Finding::new(Code::MissingCommits, message).at_step(step);
            self.findings.push(finding.with_hint("the step counts as not done"));
            let part = "branch".to_owned();
            causes.push(Difference { part, was: Some(head.clone()), is: None });
        }
        causes.extend(survey.reentered.get(step).map(|place| Difference {
            part: "from".to_owned(),
            was: None,
            is: Some(format!("asked to enter at {place}")),
        }));
        if let Some(differences) = survey.redefined(step) {
            if keeps {
                kept.extend(differences.iter().cloned());
            } else {
                let (was, parts) = (entry.phase.as_str(), parts_in_words(differences));
                let message = format!("{step} is {was}, and {parts} changed");
                let finding = Finding::new(Code::DefinitionTouchesDone, message).at_step(step);
                let named = step.in_commands();
                let hint = format!("it runs again; keep it with `--keep {named}`");
                self.findings.push(finding.with_hint(hint));
                let is_new = |it: &&Difference| !causes.iter().any(|known| known.part == it.part);
                let new: Vec<Difference> = differences.iter().filter(is_new).cloned().collect();
                causes.extend(new);
            }
        }
        if causes.is_empty() || self.is_over {
            for output in outputs().filter(|it| !it.is_lost()) {
                self.changed(step, output, &mut adopted);
            }
        }
        if !causes.is_empty() {
            let whys = causes.iter().map(|cause| Why::changed(cause, detail(cause)));
            self.reasons.entry(step.clone()).or_default().extend(whys);
            self.events.push(Event::StepInvalidated { step: step.clone(), causes });
            return;
        }
        if let Some(first) = kept.first() {
            let part = part_in_words(&first.part);
            self.explain(step, "kept", format!("{part} changed; it is kept, as asked"));
            let key = entry.key.as_ref().map(|key| under(key, &kept));
            self.verified(step, None, key, "a person keeps it although that changed");
        }
        if adopted != entry.evidence {
            adopted.files.sort_by(|one, other| one.path.cmp(&other.path));
            self.verified(step, Some(adopted), None, EDITED);
        }
    }

    /// Steps whose version of a file is lost, because another step that writes or reads it runs
    /// again.
    pub(super) fn overwrite(&mut self, run: &Run, survey: &Survey) {
        let mut again = run_again(self.events.iter());
        again.retain(|step| !self.passed_over.contains(step));
        if again.is_empty() || self.is_over {
            return;
        }
        // Work that this resume adopts is among it.
        let Ok(after) = self.folded(run, survey) else { return };
        let stays = |step: &Address| self.choices.keeps(step) || self.is_unlisted(step);
        let is_there = |step: &Address, path: &str, read: Digest| {
            let mut outputs = survey.outputs.get(step).into_iter().flatten();
            let output = outputs.find(|it| it.path == path).and_then(|it| it.now.as_ref());
            output.is_some_and(|now| now.hash == read)
        };
        for found in overwritten_at_resume((&run.graph, &after.state), again, stays, is_there) {
            let step = &found.step;
            // What a person made of its files counts no more, either.
            let is_taken =
                |it: &Event| matches!(it, Event::AttemptVerified(of) if of.step == *step);
            self.events.retain(|it| !is_taken(it));
            self.forget_change(step);
            let why = Why::changed(&found.difference(), found.detail());
            self.reasons.entry(step.clone()).or_default().push(why);
            self.events.push(found.event());
        }
    }

    /// Steps that stay as they are, as asked, although a step before them is not what it was or
    /// runs again: from then on they are compared with what it is now, and not with what is made
    /// again.
    pub(super) fn keep_as_asked(&mut self, run: &Run, survey: &Survey) {
        if self.choices.keep.is_empty() {
            return;
        }
        let Ok(after) = self.folded(run, survey) else { return };
        for (step, entry) in &after.state.steps {
            let is_meant = self.choices.keeps(step) && entry.phase.is_concluded();
            let id = after.graph.find(step).filter(|_| is_meant && !self.invalidates(step));
            let (Some(id), Some(key)) = (id, entry.key.as_ref()) else { continue };
            let is = after.graph.need_digests(id, &after.defs);
            let holds = |need: &String| {
                let need = after.graph.find(&Address::from_text(need));
                need.is_some_and(|need| after.graph.node(need).is_settled())
            };
            let mut parts: KeyParts = key.get();
            let known = std::mem::take(&mut parts.needs);
            let now = |(need, _): (&String, &Digest)| Some((need.clone(), *is.get(need)?));
            parts.needs = known.iter().filter_map(now).filter(|(need, _)| holds(need)).collect();
            if parts.needs == known {
                continue;
            }
            let needs = known.iter().filter(|(need, was)| parts.needs.get(*need) != Some(was));
            let needs = needs.map(|(need, _)| need.as_str()).collect::<Vec<_>>().join(", ");
            self.explain(step, "kept", format!("{needs} changed; it is kept, as asked"));
            let why = "a person keeps it although that changed";
            self.verified(step, None, Some(Key::from(&parts)), why);
            self.kept.insert(step.clone());
        }
    }

    /// Loops that have ended, and of which the edited workflow asks for more.
    pub(super) fn turn_again(&mut self, run: &Run, survey: &Survey) {
        let redefined = survey.edited.iter().flat_map(|it| &it.redefined);
        for (step, causes) in redefined.filter(|(step, _)| run.state.loops.contains_key(*step)) {
            let parts = parts_in_words(causes);
            if self.choices.keeps(step) {
                self.explain(step, "kept", format!("{parts} changed; it is kept, as asked"));
                continue;
            }
            let message = format!("{step} has had its turns, and {parts} changed");
            let finding = Finding::new(Code::DefinitionTouchesDone, message).at_step(step);
            let named = step.in_commands();
            let hint = format!("it turns again if that allows it; `--keep {named}` leaves it");
            self.findings.push(finding.with_hint(hint));
            let whys = causes.iter().map(|cause| Why::changed(cause, detail(cause)));
            self.reasons.entry(step.clone()).or_default().extend(whys);
            let (step, causes) = (step.clone(), causes.clone());
            self.events.push(Event::StepInvalidated { step, causes });
        }
    }

    /// A step that was passed over for another system's sake, and has a place again.
    pub(super) fn add_skipped(&mut self, step: &Address, survey: &Survey) {
        let again = survey.reentered.get(step).map(|place| ("from", format!("asked at {place}")));
        let again = again.or_else(|| Some(("status", survey.disagreements.get(step)?.clone())));
        let edited = survey.edited.as_ref().and_then(|it| it.redefined.get(step)?.first());
        let edited = edited.map(|it| (it.part.as_str(), it.is.clone().unwrap_or_default()));
        let cause = match (again.or(edited), survey.whens.get(step)) {
            (Some((part, is)), _) => {
                let was = Some("skipped".to_owned());
                Difference { part: part.to_owned(), was, is: Some(is) }
            }
            (None, Some(read)) => {
                let says = format!("the `when` of {step} holds now");
                let Some(cause) = self.decided_otherwise(step, read, &says, "it runs") else {
                    let detail = format!("{} changed; it stays skipped, as asked", read.path);
                    return self.explain(step, "kept", detail);
                };
                cause
            }
            (None, None) => return,
        };
        let why = Why::changed(&cause, "it was skipped before, and is not any more");
        self.reasons.entry(step.clone()).or_default().push(why);
        self.events.push(Event::StepInvalidated { step: step.clone(), causes: vec![cause] });
    }

    /// A file changed that the `when` of a step read; `None` if a person keeps the step as it is.
    fn decided_otherwise(
        &mut self,
        step: &Address,
        read: &ReadSeen,
        says: &str,
        then: &str,
    ) -> Option<Difference> {
        if self.choices.keeps(step) {
            return None;
        }
        let message = format!("{} was changed since, and {says}", read.path);
        let named = step.in_commands();
        let hint = format!("{then}; `--keep {named}` leaves it as it is");
        let hint = if self.is_over { self.sequel("").to_owned() } else { hint };
        let finding = Finding::new(Code::InputChanged, message);
        self.findings.push(finding.at_step(step).at_path(&read.path).with_hint(hint));
        Some(difference(read))
    }

    /// A person made something else of it: that counts from now on.
    fn changed(&mut self, step: &Address, output: &OutputSeen, adopted: &mut Evidence) {
        let (path, Some(now)) = (output.path.clone(), &output.now) else { return };
        self.tell_of_change(step, &path);
        adopted.files.retain(|file| file.path != path);
        adopted.files.push(now.clone());
    }

    pub(super) fn tell_of_change(&mut self, step: &Address, path: &str) {
        let message = format!("{path} of {step} was changed since");
        let hint = self.sequel("the change is kept, and steps that use it run again");
        let finding = Finding::new(Code::ArtifactChanged, message);
        self.findings.push(finding.at_step(step).at_path(path).with_hint(hint));
        self.explain(step, "artifact-changed", format!("{path} was changed since, and stays so"));
    }

    /// It counts no more, because its step runs again.
    pub(super) fn forget_change(&mut self, step: &Address) {
        let is_it = |it: &Finding| {
            it.code == Code::ArtifactChanged.as_str() && it.step.as_deref() == Some(step.as_str())
        };
        self.findings.retain(|it| !is_it(it));
        if let Some(reasons) = self.reasons.get_mut(step) {
            reasons.retain(|it| it.cause != "artifact-changed");
        }
    }

    fn lost_output(
        &mut self,
        step: &Address,
        entry: &StepState,
        output: &OutputSeen,
    ) -> Difference {
        let path = output.path.clone();
        let (code, what) = match output.damage {
            None => (Code::MissingArtifact, "is gone"),
            Some(Damage::Emptied) => (Code::ArtifactDamaged, "is empty, and was not"),
            Some(Damage::Torn) => {
                (Code::ArtifactDamaged, "did not reach the disk before the machine went down")
            }
        };
        let finding = Finding::new(code, format!("{path} of {step} {what}"));
        let hint = self.sequel("it is made again");
        self.findings.push(finding.at_step(step).at_path(&path).with_hint(hint));
        let file = entry.evidence.files.iter().find(|file| file.path == path);
        let was = file.map(|file| file.hash.to_string());
        let is = output.now.as_ref().map(|now| now.hash.to_string());
        Difference { part: format!("writes.{path}"), was, is }
    }

    pub(super) fn read(&mut self, step: &Address, read: &ReadSeen) -> Difference {
        let message = match read.was {
            Some(_) => format!("{}, which {step} read, was changed since", read.path),
            None => format!("{} is new, and {step} reads such files", read.path),
        };
        let finding = Finding::new(Code::InputChanged, message).at_step(step);
        let hint = self.sequel("the step runs again");
        self.findings.push(finding.at_path(&read.path).with_hint(hint));
        difference(read)
    }

    /// A complete run is never taken up again: nothing that is found out about it has a sequel.
    fn sequel(&self, hint: &'static str) -> &'static str {
        if self.is_over { "the run is complete; only a new one uses it" } else { hint }
    }

    pub(super) fn verified(
        &mut self,
        step: &Address,
        evidence: Option<Evidence>,
        key: Option<Key>,
        why: &str,
    ) {
        let (step, why) = (step.clone(), why.to_owned());
        let verified = AttemptVerified { step, evidence, key, why };
        self.events.push(Event::AttemptVerified(Box::new(verified)));
    }
}

/// Whether a step that this one needs lost the file and makes it again: when that is done, what it
/// made tells whether this one is to run again.
pub(super) fn is_made_again(key: &Key, read: &ReadSeen, state: &State, survey: &Survey) -> bool {
    // An earlier resume may have found it lost, and was cut short before it was made again.
    let is_lost = read.now.is_none() || state.kept_by_hand.get(&read.path) == read.now.as_ref();
    let lost = |need: &String| {
        let need = Address::from_text(need);
        let mut outputs = survey.outputs.get(&need).into_iter().flatten();
        let made_before = |it: &&StepState| it.evidence.files.iter().any(|it| it.path == read.path);
        let before = state.step(&need).filter(made_before);
        outputs.any(|it| it.path == read.path && it.is_lost())
            || before.is_some_and(|it| match it.phase {
                Phase::Stale => is_lost,
                // What is there is the half-done work of an attempt that makes it again.
                Phase::Pending | Phase::Waiting | Phase::Running | Phase::Failed | Phase::Lost => {
                    true
                }
                Phase::Done | Phase::Tolerated | Phase::Skipped => false,
            })
    };
    key.get().needs.keys().any(lost)
}

pub(super) fn difference(read: &ReadSeen) -> Difference {
    Difference {
        part: format!("reads.{}", read.path),
        was: read.was.map(|was| was.to_string()),
        is: read.now.map(|now| now.to_string()),
    }
}

/// The key as it would have been under what changed; all else stays.
fn under(key: &Key, differences: &[Difference]) -> Key {
    let mut parts: KeyParts = key.get();
    for difference in differences {
        let Difference { part, is, .. } = difference;
        if let Some(path) = part.strip_prefix("reads.") {
            match is.as_ref().and_then(|is| Digest::parse(is.as_bytes())) {
                Some(is) => parts.reads.insert(path.to_owned(), is),
                None => parts.reads.remove(path),
            };
            continue;
        }
        let (map, name): (&mut BTreeMap<String, String>, &str) =
            match (part.strip_prefix("definition."), part.strip_prefix("agent.")) {
                (Some(name), _) => (&mut parts.definition, name),
                (None, Some(name)) => (&mut parts.agent, name),
                (None, None) => continue,
            };
        match is {
            Some(is) => map.insert(name.to_owned(), is.clone()),
            None => map.remove(name),
        };
    }
    Key::from(&parts)
}

pub(super) fn detail(cause: &Difference) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
    // Here the other side is what another system's files say of it.
    if cause.part == "status" {
        return format!("the journal says {}, {}", text(&cause.was), text(&cause.is));
    }
    format!("was {}, is {}", text(&cause.was), text(&cause.is))
}
