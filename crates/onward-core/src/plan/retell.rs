//! A plan of another system's run, told in that system's own words.
//!
//! Invariant: the words change, the truth does not. Verdicts are core's; a row that starts because
//! nothing vouches for what is there is called `verify`. Before a run of ours goes on with it,
//! steps that share a row in the other system's reports are merged into that row.

use std::collections::BTreeMap;

use super::{AgeBand, Plan, PlannedStep, RecoveryPoint, Status, Verdict, Why, counts};
use crate::{
    address::Address,
    event::Certainty,
    finding::{Code, Finding, RUN_OVER},
    time::Timestamp,
    told::{Ahead, Standing, StepTold, Told},
};

const RECORDED: &str = "the files record it";
const SHOWN: &str = "the files show it; no line records it";

/// What the other system adds to a plan.
pub struct Telling<'a> {
    pub told: &'a dyn Told,
    pub standing: &'a Standing,
    /// Steps that its files were just found to prove, and whether a line of them records it.
    pub imported: &'a BTreeMap<Address, Certainty>,
    pub now: Timestamp,
}

impl Telling<'_> {
    /// The plan in the other system's words. `is_adopted` = a run of ours goes on with it, and its
    /// journal says how it stands.
    #[must_use]
    pub fn retell(&self, mut plan: Plan, is_adopted: bool) -> Plan {
        self.spare(&mut plan);
        self.ask(&mut plan);
        plan.steps = if is_adopted { self.reworded(plan.steps) } else { self.rows(plan.steps) };
        self.add_ahead(&mut plan.steps);
        plan.counts = counts(&plan.steps);
        plan.summary.clone_from(&self.standing.report);
        plan.summary.extend(self.told.closing(&plan.findings));
        if let Some(last) = &self.standing.last_event {
            plan.run.age_seconds = self.now.ms_since(last.at) / 1000;
            plan.run.age_band = AgeBand::of_seconds(plan.run.age_seconds);
            plan.run.last_event = last.clone().into();
        }
        if !is_adopted {
            plan.run.status = self.standing.status;
            plan.run.resume_count = self.standing.resumes;
            let started = self.standing.started_at;
            plan.run.started_at = started.map(|at| at.to_string()).unwrap_or_default();
        }
        // Of a run of ours that has ended, its journal says where it stands.
        if plan.run.status != Status::Completed || !is_adopted {
            plan.recovery_point = self.point(&plan, is_adopted);
        }
        // The other system has ended it, whatever our run still waits for.
        if plan.findings.iter().any(|it| it.code == RUN_OVER) {
            plan.run.status = Status::Failed;
        } else if self.standing.is_all_done(&plan) {
            plan.run.status = Status::Completed;
        }
        if plan.run.status == Status::Completed {
            plan.can_resume = false;
            // The closing record that an imagined run lacks is none of the other system's.
            let lacks_end = |it: &Finding| it.code == Code::AllDoneNotDelivered.as_str();
            plan.findings.retain(|it| is_adopted || !lacks_end(it));
        }
        plan
    }

    /// Behind a step that writes again what got lost, what the files prove stays as it is.
    fn spare(&self, plan: &mut Plan) {
        let starts = |it: &PlannedStep| matches!(it.verdict, Verdict::Run | Verdict::Rerun);
        let restores = |it: &PlannedStep| self.told.restores(&Address::from_text(&it.step));
        let Some(from) = plan.steps.iter().rposition(|it| restores(it) && starts(it)) else {
            return;
        };
        let mut behind = Vec::new();
        for mut step in plan.steps.drain(from + 1..) {
            let address = Address::from_text(&step.step);
            let items = self.told.items(&address);
            if items.is_empty() || step.verdict != Verdict::Run {
                self.spare_one(&address, &mut step);
                behind.push(step);
                continue;
            }
            for (row, first) in items {
                let mut item = PlannedStep { step: row.to_string(), ..step.clone() };
                self.spare_one(&first, &mut item);
                if let Some(why) = self.told.asks_about(&first) {
                    plan.needs.push(format!("{row}: {why}"));
                    item.verdict = Verdict::Ask;
                    item.why = vec![Why::because("asked", why)].into();
                }
                behind.push(item);
            }
        }
        plan.steps.extend(behind);
    }

    fn spare_one(&self, address: &Address, step: &mut PlannedStep) {
        let (verdict, why) = match (step.verdict, self.told.step(address)) {
            // It was done, and nothing that it was made from is another.
            (Verdict::Verify, _) => {
                (Verdict::Keep, Why::because("done", "what is written again changes nothing of it"))
            }
            (Verdict::Run, StepTold::Done(_)) => {
                (Verdict::Keep, Why::because("done", "the files record it"))
            }
            (Verdict::Run, StepTold::PassedOver(why)) => {
                (Verdict::Skip, Why::because("skipped", why))
            }
            (Verdict::Run, StepTold::Unproved(_) | StepTold::Undone | StepTold::Silent)
            | (
                Verdict::Keep
                | Verdict::Adopt
                | Verdict::Reattach
                | Verdict::Continue
                | Verdict::Rerun
                | Verdict::Ask
                | Verdict::Skip,
                _,
            ) => return,
        };
        step.verdict = verdict;
        step.why = vec![why].into();
    }

    /// Steps that are passed over until a person has said what becomes of them. A gate that is
    /// open asks by itself.
    fn ask(&self, plan: &mut Plan) {
        let is_gate = |it: &Why| it.cause == "gate";
        let waits = |it: &PlannedStep| it.verdict == Verdict::Ask && it.why.iter().any(is_gate);
        if plan.run.status == Status::Completed || plan.steps.iter().any(waits) {
            return;
        }
        for step in &mut plan.steps {
            let is_passed_over = match step.verdict {
                Verdict::Skip | Verdict::Run | Verdict::Rerun => true,
                Verdict::Keep
                | Verdict::Verify
                | Verdict::Adopt
                | Verdict::Reattach
                | Verdict::Continue
                | Verdict::Ask => false,
            };
            let asked = self.told.asks_about(&Address::from_text(&step.step));
            if let Some(why) = asked.filter(|_| is_passed_over) {
                plan.needs
                    .push(format!("{}: {why}", self.told.row(&Address::from_text(&step.step))));
                step.verdict = Verdict::Ask;
                step.why = vec![Why::because("asked", why)].into();
            }
        }
    }

    /// What the run has not opened yet, and the files name.
    fn add_ahead(&self, steps: &mut Vec<PlannedStep>) {
        let Some(Ahead { rows, before }) = self.told.ahead() else { return };
        let known: Vec<Address> = steps.iter().map(|it| Address::from_text(&it.step)).collect();
        let is_new = |(row, _): &(Address, String)| !known.iter().any(|it| it.is_within(row));
        let step = |(row, says): (Address, String)| PlannedStep {
            step: row.to_string(),
            verdict: Verdict::Run,
            why: vec![Why::because("pending", says)].into(),
            cost_usd: None,
        };
        let rows: Vec<PlannedStep> = rows.into_iter().filter(is_new).map(step).collect();
        let at = known.iter().position(|it| *it == before).unwrap_or(steps.len());
        steps.splice(at..at, rows);
    }

    /// In the other system's codes; the steps of a run of ours are those that it starts.
    fn point(&self, plan: &Plan, is_adopted: bool) -> RecoveryPoint {
        let mut point = self.standing.point.clone();
        // The files know of nothing more to do, and the run has steps that they do not tell of.
        if is_adopted && point.steps.is_empty() && !plan.recovery_point.steps.is_empty() {
            return plan.recovery_point.clone();
        }
        if is_adopted {
            point.steps.clone_from(&plan.recovery_point.steps);
        }
        point
    }

    /// Each step in a row of its own, as the journal of a run of ours knows it.
    fn reworded(&self, mut steps: Vec<PlannedStep>) -> Vec<PlannedStep> {
        for step in &mut steps {
            self.reword(&Address::from_text(&step.step), step);
        }
        steps
    }

    /// Steps of one row become one, in the order in which rows first come.
    fn rows(&self, steps: Vec<PlannedStep>) -> Vec<PlannedStep> {
        let mut rows: Vec<PlannedStep> = Vec::new();
        let mut index: BTreeMap<String, usize> = BTreeMap::new();
        for mut step in steps {
            let address = Address::from_text(&step.step);
            self.reword(&address, &mut step);
            let is_kept = step.verdict == Verdict::Keep;
            if is_kept && step.why.iter().any(|it| it.detail.starts_with("at ")) {
                step.why = vec![self.just_found(&address)].into();
            }
            let row = self.told.row(&address).to_string();
            step.step.clone_from(&row);
            if let Some(at) = index.get(&row) {
                merge(&mut rows[*at], step);
            } else {
                index.insert(row, rows.len());
                rows.push(step);
            }
        }
        rows
    }

    /// It was taken in in this very look: the moment of that says nothing.
    fn just_found(&self, address: &Address) -> Why {
        let (is_inferred, why) = match self.told.step(address) {
            StepTold::Done(done) => (done.certainty == Certainty::Inferred, done.why),
            StepTold::PassedOver(_)
            | StepTold::Unproved(_)
            | StepTold::Undone
            | StepTold::Silent => (false, None),
        };
        let told = if is_inferred { SHOWN } else { RECORDED };
        Why::because("done", why.unwrap_or(told))
    }

    fn reword(&self, address: &Address, step: &mut PlannedStep) {
        match step.verdict {
            Verdict::Keep => match self.imported.get(address) {
                Some(Certainty::Inferred) => {
                    step.verdict = Verdict::Adopt;
                    let why = match self.told.step(address) {
                        StepTold::Done(done) => done.why,
                        StepTold::PassedOver(_)
                        | StepTold::Unproved(_)
                        | StepTold::Undone
                        | StepTold::Silent => None,
                    };
                    step.why = vec![Why::because("inferred", why.unwrap_or(SHOWN))].into();
                }
                Some(Certainty::Recorded) => {
                    step.why = vec![Why::because("done", RECORDED)].into();
                }
                None => {}
            },
            Verdict::Run | Verdict::Rerun => match self.told.step(address) {
                StepTold::Unproved(why) => {
                    step.verdict = Verdict::Verify;
                    step.why = vec![Why::because("unproved", why)].into();
                }
                // The run has not come to it yet, and will not stay there.
                StepTold::PassedOver(why) => {
                    step.verdict = Verdict::Skip;
                    step.why = vec![Why::because("skipped", why)].into();
                }
                StepTold::Done(_) | StepTold::Undone | StepTold::Silent => {}
            },
            Verdict::Verify
            | Verdict::Adopt
            | Verdict::Reattach
            | Verdict::Continue
            | Verdict::Ask => {}
            Verdict::Skip => match self.told.step(address) {
                // A gate that nothing asks any more, because it was answered there.
                StepTold::Done(done) if done.certainty == Certainty::Recorded => {
                    step.verdict = Verdict::Keep;
                    step.why = vec![Why::because("done", RECORDED)].into();
                }
                StepTold::PassedOver(why) => step.why = vec![Why::because("skipped", why)].into(),
                StepTold::Done(_) | StepTold::Unproved(_) | StepTold::Undone | StepTold::Silent => {
                }
            },
        }
    }
}

impl Plan {
    /// The plan of a run in whose place another one lies: it is over, and nothing of it starts.
    #[must_use]
    pub fn superseded(mut self, why: &str) -> Self {
        for row in &mut self.steps {
            match row.verdict {
                Verdict::Keep | Verdict::Adopt | Verdict::Skip => continue,
                Verdict::Verify
                | Verdict::Reattach
                | Verdict::Continue
                | Verdict::Rerun
                | Verdict::Run
                | Verdict::Ask => {}
            }
            row.verdict = Verdict::Skip;
            row.why = vec![Why::because("superseded", "another run lies in its place")].into();
            row.cost_usd = None;
        }
        self.counts = counts(&self.steps);
        self.run.status = Status::Cancelled;
        self.can_resume = false;
        self.needs.clear();
        self.reverts.clear();
        let point = &mut self.recovery_point;
        "superseded".clone_into(&mut point.code);
        why.clone_into(&mut point.summary);
        point.steps.clear();
        self
    }
}

/// The verdict that asks most of the reader wins, with its reasons.
fn merge(row: &mut PlannedStep, more: PlannedStep) {
    let cost = [row.cost_usd, more.cost_usd].into_iter().flatten().reduce(|one, other| one + other);
    if weight(&more) > weight(row) {
        row.verdict = more.verdict;
        row.why = more.why;
    }
    row.cost_usd = cost;
}

/// Steps that wait for an upstream to come out the same weigh less than those that start for sure.
fn weight(step: &PlannedStep) -> u8 {
    let is_unproved = step.why.iter().any(|why| why.cause == "unproved");
    match step.verdict {
        Verdict::Ask => 9,
        Verdict::Reattach => 8,
        Verdict::Continue => 7,
        Verdict::Verify if is_unproved => 6,
        Verdict::Rerun => 5,
        Verdict::Run => 4,
        Verdict::Verify => 3,
        Verdict::Adopt => 2,
        Verdict::Keep => 1,
        Verdict::Skip => 0,
    }
}
