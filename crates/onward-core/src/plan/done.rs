//! A step the journal says is done, against the world: does it stand, and under which evidence?

use std::collections::BTreeMap;

use super::{Resumption, Why};
use crate::{
    address::Address,
    digest::Digest,
    event::{AttemptVerified, Event},
    evidence::Evidence,
    finding::{Code, Finding},
    key::{Difference, Key, KeyParts},
    state::StepState,
    survey::{OutputSeen, ReadSeen, Survey},
};

impl Resumption {
    pub(super) fn add_done(&mut self, step: &Address, entry: &StepState, survey: &Survey) {
        let keeps = self.choices.keep.contains(step);
        let (mut causes, mut kept) = (Vec::new(), Vec::new());
        if self.choices.redo.contains(step) {
            let is = Some("a person asked for it".to_owned());
            causes.push(Difference { part: "redo".to_owned(), was: None, is });
        }
        let mut adopted = entry.evidence.clone();
        for output in survey.outputs.get(step).into_iter().flatten() {
            causes.extend(self.output(step, entry, output, &mut adopted));
        }
        for read in survey.reads.get(step).into_iter().flatten() {
            if is_made_again(entry, read, survey) {
                continue;
            }
            if keeps {
                kept.push(difference(read));
            } else {
                causes.push(self.read(step, read));
            }
        }
        if let Some(says) = survey.disagreements.get(step).filter(|_| keeps) {
            self.explain(step, "kept", format!("{says}; it is kept, as asked"));
        } else if let Some(says) = survey.disagreements.get(step) {
            let was = entry.phase.as_str();
            let message = format!("the journal has {step} as {was}, but {says}");
            let finding = Finding::new(Code::StatusDisagrees, message).at_step(step);
            self.findings.push(finding.with_hint("the careful reading counts: it runs again"));
            causes.push(Difference {
                part: "status".to_owned(),
                was: Some(was.to_owned()),
                is: Some(says.clone()),
            });
        }
        if let Some(head) = survey.git.as_ref().and_then(|git| git.lost_heads.get(step)) {
            let message = format!("the commit that proves {step} is on no branch any more");
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
        let redefined = survey.edited.as_ref().and_then(|edited| edited.redefined.get(step));
        if let Some(differences) = redefined {
            if keeps {
                kept.extend(differences.iter().cloned());
            } else {
                let parts: Vec<&str> = differences.iter().map(|it| it.part.as_str()).collect();
                let was = entry.phase.as_str();
                let message = format!("{step} is {was}, and {} changed", parts.join(", "));
                let finding = Finding::new(Code::DefinitionTouchesDone, message).at_step(step);
                let hint = format!("it runs again; keep it with `--keep {step}`");
                self.findings.push(finding.with_hint(hint));
                causes.extend(differences.iter().cloned());
            }
        }
        if !causes.is_empty() {
            let whys = causes.iter().map(|cause| Why::changed(cause, detail(cause)));
            self.reasons.entry(step.clone()).or_default().extend(whys);
            self.events.push(Event::StepInvalidated { step: step.clone(), causes });
            return;
        }
        if let Some(first) = kept.first() {
            self.explain(step, "kept", format!("{} changed; it is kept, as asked", first.part));
            let key = entry.key.as_ref().map(|key| under(key, &kept));
            self.verified(step, None, key, "a person keeps it although that changed");
        }
        if adopted != entry.evidence {
            adopted.files.sort_by(|one, other| one.path.cmp(&other.path));
            let why = "an output was changed by hand; the change is kept";
            self.verified(step, Some(adopted), None, why);
        }
    }

    /// A step that was passed over for another system's sake, and has a place again.
    pub(super) fn add_skipped(&mut self, step: &Address, survey: &Survey) {
        let again = survey.reentered.get(step).map(|place| ("from", format!("asked at {place}")));
        let again = again.or_else(|| Some(("status", survey.disagreements.get(step)?.clone())));
        let Some((part, is)) = again else { return };
        let was = Some("skipped".to_owned());
        let cause = Difference { part: part.to_owned(), was, is: Some(is) };
        let why = Why::changed(&cause, "it was passed over, and is not any more");
        self.reasons.entry(step.clone()).or_default().push(why);
        self.events.push(Event::StepInvalidated { step: step.clone(), causes: vec![cause] });
    }

    fn output(
        &mut self,
        step: &Address,
        entry: &StepState,
        output: &OutputSeen,
        adopted: &mut Evidence,
    ) -> Option<Difference> {
        let path = output.path.clone();
        if let Some(now) = &output.now {
            let message = format!("{path} of {step} was changed since");
            let hint = self.sequel("the change is kept, and steps that use it run again");
            let finding = Finding::new(Code::ArtifactChanged, message);
            self.findings.push(finding.at_step(step).at_path(&path).with_hint(hint));
            self.explain(step, "artifact-changed", format!("{path}, kept as it is"));
            adopted.files.retain(|file| file.path != path);
            adopted.files.push(now.clone());
            return None;
        }
        let finding = Finding::new(Code::MissingArtifact, format!("{path} of {step} is gone"));
        let hint = self.sequel("it is made again");
        self.findings.push(finding.at_step(step).at_path(&path).with_hint(hint));
        let file = entry.evidence.files.iter().find(|file| file.path == path);
        let was = file.map(|file| file.hash.to_string());
        Some(Difference { part: format!("writes.{path}"), was, is: None })
    }

    fn read(&mut self, step: &Address, read: &ReadSeen) -> Difference {
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

    fn verified(
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
fn is_made_again(entry: &StepState, read: &ReadSeen, survey: &Survey) -> bool {
    let Some(key) = entry.key.as_ref().filter(|_| read.now.is_none()) else { return false };
    let lost = |need: &String| {
        let mut outputs = survey.outputs.get(&Address::from_text(need)).into_iter().flatten();
        outputs.any(|it| it.path == read.path && it.now.is_none())
    };
    key.get().needs.keys().any(lost)
}

fn difference(read: &ReadSeen) -> Difference {
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

fn detail(cause: &Difference) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("was {}, is {}", text(&cause.was), text(&cause.is))
}
