//! What a resume writes before it goes on: lost attempts, stale steps, adopted work, reverts.

use std::collections::BTreeMap;

use super::{AgeBand, Status, Why};
use crate::{
    address::Address,
    event::{AttemptAdopted, AttemptVerified, Certainty, Event, Revert, SettledBy},
    evidence::{Cause, Evidence},
    finding::{Code, Finding},
    key::Difference,
    recovery::{self, Decision, Probed, Row},
    run::Run,
    state::{EffectState, Phase, StepState},
    survey::{InFlight, OutputSeen, Proof, ReadSeen, Survey},
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
    /// Effects whose probe must be asked before anything is decided.
    pub to_probe: Vec<Address>,
}

pub fn resumption(run: &Run, survey: &Survey) -> Resumption {
    let mut made = Resumption { findings: survey.findings.clone(), ..Resumption::default() };
    made.add_age(run, survey);
    let is_over = Status::of(&run.state, survey.driven) == Status::Completed;
    for (step, entry) in &run.state.steps {
        match entry.phase {
            Phase::Running => {
                let unseen = InFlight::default();
                let seen = survey.in_flight.get(step).unwrap_or(&unseen);
                made.add_in_flight(step, entry, seen);
            }
            Phase::Failed => {
                let left = survey.left_by_failed.get(step);
                made.reverts.extend(left.into_iter().flatten().cloned());
            }
            Phase::Done => {
                let outputs = survey.outputs.get(step).map_or(&[][..], Vec::as_slice);
                let reads = survey.reads.get(step).map_or(&[][..], Vec::as_slice);
                made.add_done(step, entry, outputs, reads, is_over);
            }
            Phase::Pending | Phase::Waiting | Phase::Skipped | Phase::Lost | Phase::Stale => {}
        }
    }
    made.summarise(run, survey);
    made
}

impl Resumption {
    fn add_age(&mut self, run: &Run, survey: &Survey) {
        let state = &run.state;
        if state.last_at > survey.now.plus_ms(CLOCK_SLACK_MS) {
            let message = format!("the last event is in the future: {}", state.last_at);
            let hint = "set the clock right, or the journal was damaged";
            self.findings.push(Finding::new(Code::ClockInFuture, message).with_hint(hint));
        }
        let age_seconds = survey.now.ms_since(state.last_at) / 1000;
        if AgeBand::of_seconds(age_seconds) == AgeBand::Stale && !state.is_ended() {
            let days = age_seconds / 86_400;
            let message = format!("nothing has happened for {days} days");
            let hint = "look at the plan with care, or start a new run";
            self.findings.push(Finding::new(Code::StaleAge, message).with_hint(hint));
        }
    }

    fn add_in_flight(&mut self, step: &Address, entry: &StepState, seen: &InFlight) {
        let row = recovery::row_for(seen.facts);
        self.rungs.insert(step.clone(), row);
        let unsure = match row.decision {
            // Whether an effect happened is not for the tree to say, while nobody saw its end.
            Decision::Rerun | Decision::RevertThenRerun | Decision::Continue | Decision::Ask => {
                entry.effect == EffectState::Intended
            }
            Decision::Start
            | Decision::AdoptSeal
            | Decision::Reattach
            | Decision::AdoptProof
            | Decision::Refuse => false,
        };
        if unsure {
            self.add_effect(step, entry, seen);
            return;
        }
        self.explain(step, row.name, row.why.to_owned());
        match row.decision {
            Decision::Start | Decision::AdoptSeal | Decision::Reattach => {}
            Decision::AdoptProof => self.adopt(step, seen.proof.clone()),
            Decision::Continue | Decision::Rerun => self.lose(step, entry, row.name, &[]),
            Decision::RevertThenRerun => self.lose(step, entry, row.name, &seen.reverts),
            Decision::Ask => {
                let paths = seen.contested.join(", ");
                let message = format!("{}: {} ({paths})", step, row.why);
                let hint = format!("look at {paths}; then say which version counts");
                let finding = Finding::new(Code::AttemptContested, message.clone());
                self.findings.push(finding.at_step(step).with_hint(hint));
                self.needs.push(message);
            }
            Decision::Refuse => {
                let finding = Finding::new(Code::JournalDamaged, format!("{step}: {}", row.why));
                self.findings.push(finding.at_step(step).with_hint("run `onward repair`"));
            }
        }
    }

    fn add_effect(&mut self, step: &Address, entry: &StepState, seen: &InFlight) {
        let Some(probed) = seen.probed else {
            self.to_probe.push(step.clone());
            self.explain(step, "effect-unknown", "the probe will tell whether it happened".into());
            return;
        };
        let settled = |happened| Event::EffectSettled {
            step: step.clone(),
            attempt: entry.attempts,
            happened,
            by: SettledBy::Probe,
        };
        match recovery::effect_decision(probed) {
            Decision::AdoptProof => {
                self.events.push(settled(true));
                self.explain(step, "effect-happened", "the probe says that it happened".into());
                self.adopt(step, None);
            }
            Decision::Rerun => {
                self.events.push(settled(false));
                self.explain(step, "effect-absent", "the probe says that it did not happen".into());
                self.lose(step, entry, "effect-absent", &seen.reverts);
            }
            Decision::Ask
            | Decision::Start
            | Decision::AdoptSeal
            | Decision::Reattach
            | Decision::Continue
            | Decision::RevertThenRerun
            | Decision::Refuse => {
                debug_assert_eq!(probed, Probed::Unknown, "the other answers are decided above");
                let message = format!("{step}: nobody knows whether its effect happened");
                let hint = format!(
                    "find out; then `onward done {step}` if it did, or add a `probe` that can tell"
                );
                let finding = Finding::new(Code::EffectUnknown, message.clone());
                self.findings.push(finding.at_step(step).with_hint(hint));
                self.explain(step, "effect-unknown", "the probe could not tell".into());
                self.needs.push(message);
            }
        }
    }

    fn adopt(&mut self, step: &Address, proof: Option<Proof>) {
        let (evidence, result) = proof.map(|it| (it.evidence, it.result)).unzip();
        self.events.push(Event::AttemptAdopted(Box::new(AttemptAdopted {
            step: step.clone(),
            source: "evidence".to_owned(),
            certainty: Certainty::Inferred,
            evidence: evidence.unwrap_or_default(),
            result,
            by: None,
        })));
    }

    fn lose(&mut self, step: &Address, entry: &StepState, rung: &str, reverts: &[Revert]) {
        self.events.push(Event::AttemptLost {
            step: step.clone(),
            attempt: entry.attempts,
            cause: Cause::Interrupted,
            rung: rung.to_owned(),
            reverted: reverts.iter().map(|revert| revert.path.clone()).collect(),
            rescue: reverts.first().map(|revert| revert.rescue.clone()),
        });
        self.reverts.extend(reverts.iter().cloned());
    }

    fn add_done(
        &mut self,
        step: &Address,
        entry: &StepState,
        outputs: &[OutputSeen],
        reads: &[ReadSeen],
        is_over: bool,
    ) {
        // A complete run is never taken up again: nothing that is found out about it has a sequel.
        let sequel =
            |hint| if is_over { "the run is complete; only a new one uses it" } else { hint };
        let mut causes = Vec::new();
        let mut adopted = entry.evidence.clone();
        for output in outputs {
            let path = output.path.clone();
            match &output.now {
                None => {
                    let finding =
                        Finding::new(Code::MissingArtifact, format!("{path} of {step} is gone"));
                    let hint = sequel("it is made again");
                    self.findings.push(finding.at_step(step).at_path(&path).with_hint(hint));
                    causes.push(Difference {
                        part: format!("writes.{path}"),
                        was: recorded(&entry.evidence, &path),
                        is: None,
                    });
                }
                Some(now) => {
                    let message = format!("{path} of {step} was changed since");
                    let hint = sequel("the change is kept, and steps that use it run again");
                    let finding = Finding::new(Code::ArtifactChanged, message);
                    self.findings.push(finding.at_step(step).at_path(&path).with_hint(hint));
                    self.explain(step, "artifact-changed", format!("{path}, kept as it is"));
                    adopted.files.retain(|file| file.path != path);
                    adopted.files.push(now.clone());
                }
            }
        }
        for read in reads {
            let message = match read.was {
                Some(_) => format!("{}, which {step} read, was changed since", read.path),
                None => format!("{} is new, and {step} reads such files", read.path),
            };
            let finding = Finding::new(Code::InputChanged, message).at_step(step);
            let hint = sequel("the step runs again");
            self.findings.push(finding.at_path(&read.path).with_hint(hint));
            causes.push(Difference {
                part: format!("reads.{}", read.path),
                was: read.was.map(|was| was.to_string()),
                is: read.now.map(|now| now.to_string()),
            });
        }
        if !causes.is_empty() {
            let whys = causes.iter().map(|cause| Why::changed(cause, detail(cause)));
            self.reasons.entry(step.clone()).or_default().extend(whys);
            self.events.push(Event::StepInvalidated { step: step.clone(), causes });
        } else if adopted != entry.evidence {
            adopted.files.sort_by(|one, other| one.path.cmp(&other.path));
            self.events.push(Event::AttemptVerified(Box::new(AttemptVerified {
                step: step.clone(),
                evidence: Some(adopted),
                key: None,
                why: "somebody changed an output; the change is kept".to_owned(),
            })));
        }
    }

    fn explain(&mut self, step: &Address, cause: &str, detail: String) {
        let why = Why::because(cause, detail);
        self.reasons.entry(step.clone()).or_default().push(why);
    }

    fn summarise(&mut self, run: &Run, survey: &Survey) {
        let state = &run.state;
        let done = state.steps.values().filter(|entry| entry.phase.is_settled()).count();
        (self.code, self.summary) = match Status::of(state, survey.driven) {
            Status::Completed => ("complete", "everything is done".to_owned()),
            Status::Fresh => ("start", "nothing has run yet".to_owned()),
            Status::Waiting => ("gate", format!("{done} steps are done; a gate is open")),
            Status::Failed => {
                ("failed-steps", format!("{done} steps are done; failed ones run again"))
            }
            Status::Running
            | Status::Interrupted
            | Status::Parked
            | Status::OverBudget
            | Status::Cancelled => ("continue", format!("{done} steps are done; go on from there")),
        };
    }
}

/// Two machines' clocks may differ by this much before it is called corruption.
const CLOCK_SLACK_MS: u64 = 5 * 60 * 1000;

fn recorded(evidence: &Evidence, path: &str) -> Option<String> {
    let file = evidence.files.iter().find(|file| file.path == path)?;
    Some(file.hash.to_string())
}

fn detail(cause: &Difference) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("was {}, is {}", text(&cause.was), text(&cause.is))
}
