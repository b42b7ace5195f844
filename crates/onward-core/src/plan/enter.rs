//! Entering somewhere else than at the recovery point, because a person said so.
//!
//! Earlier: the step and everything done on the strength of it counts no more. Later: what is
//! unfinished before it is passed over, which takes more than a word.

use std::collections::{BTreeMap, BTreeSet};

use super::{Resumption, Why, next_record};
use crate::{
    address::Address,
    event::{AttemptVerified, Event},
    finding::{Code, Finding},
    graph::{NodeId, Role},
    key::{Difference, Key, KeyParts},
    run::Run,
    state::Phase,
    survey::Survey,
};

/// Whether the run has such a step, instance or phase.
pub fn has_entry(run: &Run, step: &str) -> bool {
    run.graph.find(&Address::from_text(step)).is_some_and(|id| id != run.graph.root_id())
}

/// A place where a person may enter, and what that would mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    pub step: Address,
    /// Done steps that run again.
    pub redone: usize,
    /// Unfinished steps that are passed over.
    pub passed_over: usize,
}

/// Every phase, and every step inside one, in the order of the workflow; at most `most` of them,
/// whole phases before what is inside them.
pub fn entries(run: &Run, most: usize) -> Vec<EntryPoint> {
    let graph = &run.graph;
    let nodes: Vec<NodeId> =
        graph.in_order().into_iter().filter(|id| *id != graph.root_id()).collect();
    let depth = |id: &NodeId| graph.node(*id).address.as_str().matches('/').count();
    let mut by_depth = nodes.clone();
    by_depth.sort_by_key(depth);
    let chosen: BTreeSet<NodeId> = by_depth.into_iter().take(most).collect();
    let chosen = nodes.iter().filter(|id| chosen.contains(id));
    chosen.filter_map(|id| entry(run, graph.node(*id).address.as_str())).collect()
}

/// One such place, if there is one of that name.
pub fn entry(run: &Run, step: &str) -> Option<EntryPoint> {
    let step = Address::from_text(step);
    let id = run.graph.find(&step).filter(|id| *id != run.graph.root_id())?;
    let redone = downstream(run, &step).len();
    Some(EntryPoint { redone, passed_over: unfinished_before(run, id).len(), step })
}

impl Resumption {
    /// Applies `--from`, where one was given and the run has such a step.
    pub(super) fn enter(&mut self, run: &Run, survey: &Survey) {
        let Some(from) = self.choices.from.clone() else { return };
        let target = Address::from_text(&from.step);
        let Some(id) = run.graph.find(&target) else { return };
        let mut unfinished = unfinished_before(run, id);
        // What still runs, or has ended meanwhile, is waited for or adopted first.
        unfinished.retain(|step| run.state.phase(step) != Phase::Running || self.loses(step));
        if !unfinished.is_empty() && !from.force {
            let names: Vec<String> = unfinished.iter().map(ToString::to_string).collect();
            let message = format!("before {target}, these are unfinished: {}", names.join(", "));
            let finding = Finding::new(Code::EntersAhead, message).at_step(&target);
            let finding = finding.with_hint("`--force` passes them over");
            let accepted = self.choices.accept(&finding);
            self.findings.push(finding);
            if !accepted {
                return;
            }
        }
        self.pass_over(run, survey, &unfinished, &target);
        self.redo(run, &target);
    }

    /// Each step is passed over under what its needs are by then, so that it is not looked at
    /// again.
    fn pass_over(&mut self, run: &Run, survey: &Survey, unfinished: &[Address], target: &Address) {
        // What the events so far make impossible is refused when they are folded for the plan.
        let Ok(mut after) = self.folded(run, survey) else { return };
        let nodes = run.graph.in_order().into_iter().map(|id| run.graph.node(id).address.clone());
        for step in nodes.filter(|it| unfinished.contains(it)) {
            self.explain(&step, "from", format!("skipped to enter at {target}"));
            for event in passed_over(&after, &step, target) {
                self.events.push(event.clone());
                let record = next_record(&after.state, survey.now, event);
                if after.after(record).is_err() {
                    return;
                }
            }
        }
    }

    /// Its attempt is given up.
    pub(super) fn loses(&self, step: &Address) -> bool {
        let is_it =
            |it: &Event| matches!(it, Event::AttemptLost { step: lost, .. } if lost == step);
        self.events.iter().any(is_it)
    }

    fn redo(&mut self, run: &Run, target: &Address) {
        let stale: BTreeSet<Address> = self
            .events
            .iter()
            .filter_map(|event| {
                let Event::StepInvalidated { step, .. } = event else { return None };
                Some(step.clone())
            })
            .collect();
        let redone: Vec<Address> =
            downstream(run, target).into_iter().filter(|step| !stale.contains(step)).collect();
        if redone.is_empty() {
            return;
        }
        let count = redone.len();
        let noun = if count == 1 { "step that is" } else { "steps that are" };
        let message = format!("entering at {target} runs {count} {noun} done again");
        let finding = Finding::new(Code::EntersEarlier, message).at_step(target);
        self.findings.push(finding.with_hint("leave `--from` out to keep them"));
        for step in redone {
            let cause = Difference {
                part: "from".to_owned(),
                was: None,
                is: Some(format!("asked to enter at {target}")),
            };
            let why = Why::changed(&cause, "a person asked for it");
            self.reasons.entry(step.clone()).or_default().push(why);
            self.events.push(Event::StepInvalidated { step, causes: vec![cause] });
        }
    }
}

/// What is done stays done under other needs; what was skipped before is skipped once more.
fn passed_over(after: &Run, step: &Address, target: &Address) -> Vec<Event> {
    let Some(id) = after.graph.find(step) else { return Vec::new() };
    let needs = after.graph.need_digests(id, &after.defs);
    let why = format!("a person entered at {target}");
    let skipped = Event::StepSkipped {
        step: step.clone(),
        reason: why.clone(),
        needs: needs.clone(),
        reads: BTreeMap::new(),
    };
    match after.state.phase(step) {
        Phase::Done => {
            let key = after.state.step(step).and_then(|entry| entry.key.as_ref());
            let parts = KeyParts { needs, ..key.map(Key::get).unwrap_or_default() };
            let (step, key) = (step.clone(), Some(Key::from(&parts)));
            let verified = AttemptVerified { step, evidence: None, key, why };
            vec![Event::AttemptVerified(Box::new(verified))]
        }
        Phase::Skipped => {
            let cause = Difference { part: "from".to_owned(), was: None, is: Some(why) };
            let causes = vec![cause];
            vec![Event::StepInvalidated { step: step.clone(), causes }, skipped]
        }
        Phase::Pending | Phase::Waiting | Phase::Lost | Phase::Stale => vec![skipped],
        // It is waited for, tried again, or settled as failed.
        Phase::Running | Phase::Failed | Phase::Tolerated => Vec::new(),
    }
}

/// Leaves and unopened groups that stand before `id` and are not settled, outermost first.
fn unfinished_before(run: &Run, id: NodeId) -> Vec<Address> {
    let mut seen = BTreeSet::new();
    let mut rest = run.graph.effective_needs(id);
    let mut found = BTreeSet::new();
    while let Some(need) = rest.pop() {
        let node = run.graph.node(need);
        if node.is_settled() || !seen.insert(need) {
            continue;
        }
        if node.children.is_empty() {
            found.insert(node.address.clone());
            rest.extend(run.graph.effective_needs(need));
        } else {
            rest.extend(&node.children);
        }
    }
    found.into_iter().collect()
}

/// Done steps at or inside `target`, and those that stand on them, however far.
fn downstream(run: &Run, target: &Address) -> Vec<Address> {
    let done: Vec<NodeId> = run
        .graph
        .in_order()
        .into_iter()
        .filter(|id| {
            let node = run.graph.node(*id);
            node.role == Role::Leaf && run.state.phase(&node.address).is_concluded()
        })
        .collect();
    let mut redone: BTreeSet<Address> = BTreeSet::new();
    // The redone steps and every scope around them: what others may name as a need.
    let mut touched: BTreeSet<Address> = BTreeSet::new();
    loop {
        let before = redone.len();
        for id in &done {
            let step = &run.graph.node(*id).address;
            let inside = step == target || step.is_within(target);
            let stands_on = || {
                let mut needs = run.graph.effective_needs(*id).into_iter();
                needs.any(|need| touched.contains(&run.graph.node(need).address))
            };
            if !redone.contains(step) && (inside || stands_on()) {
                redone.insert(step.clone());
                let mut scope = Some(step.clone());
                while let Some(inner) = scope {
                    scope = inner.parent();
                    touched.insert(inner);
                }
            }
        }
        if redone.len() == before {
            return redone.into_iter().collect();
        }
    }
}

#[cfg(test)]
mod tests;
