//! A workflow file that was edited while its run was interrupted: what each edit touches.
//!
//! Three things are compared: the copy the run keeps, the file as it is now, and how far the run
//! got. Whether a finished step is touched is not told from the text of the file but by asking for
//! its key once more: an edit that comes out the same is none.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    address::Address,
    decide::{self, Defined},
    digest::Digest,
    event::{Edit, EditClass},
    facts::{Facts, Need},
    graph::{NodeId, Role},
    id::StepId,
    run::Run,
    state::StepState,
    survey::Edited,
    workflow::model::{Agent, Kind, Place, Step, Workflow},
};

/// What must be known before the edits can be judged, step by step.
pub type Lacking = BTreeMap<Address, BTreeSet<Need>>;

/// Compares the pinned workflow with `run`, which holds the new one and the progress so far.
pub fn edited(
    pinned: &Workflow,
    new: &Workflow,
    run: &Run,
    facts: &Facts,
    hash: Digest,
) -> Result<Edited, Lacking> {
    let mut edits = Vec::new();
    compare(&mut edits, "", (pinned, &pinned.steps), (new, &new.steps));
    let done = |id: &NodeId| {
        let node = run.graph.node(*id);
        node.role == Role::Leaf && run.state.phase(&node.address).is_concluded()
    };
    let mut lacking = Lacking::new();
    let mut redefined = BTreeMap::new();
    for id in run.graph.in_order().into_iter().filter(done) {
        let address = &run.graph.node(id).address;
        let name = declared(address);
        let Some(edit) = edits.iter_mut().find(|edit| edit.step == name) else { continue };
        if edit.class == EditClass::Cosmetic {
            continue;
        }
        match decide::defined(run, facts, id) {
            Defined::Lacks(needs) => {
                lacking.insert(address.clone(), needs);
            }
            Defined::Differs(differences) if !differences.is_empty() => {
                edit.class = EditClass::TouchesDone;
                redefined.insert(address.clone(), differences);
            }
            Defined::Differs(_) | Defined::Unknown => {}
        }
    }
    for gone in edits.iter_mut().filter(|edit| !names(new, &edit.step)) {
        let had_done = |(step, entry): (&Address, &StepState)| {
            entry.phase.is_concluded() && declared(step) == gone.step
        };
        if run.state.steps.iter().any(had_done) {
            gone.class = EditClass::TouchesDone;
        }
    }
    if !lacking.is_empty() {
        return Err(lacking);
    }
    edits.sort_by(|one, other| one.step.cmp(&other.step));
    Ok(Edited { hash, edits, redefined })
}

/// Whether the workflow declares a step by this path.
fn names(workflow: &Workflow, path: &str) -> bool {
    let mut steps = &workflow.steps[..];
    path.split('/').all(|id| {
        let found = steps.iter().find(|step| step.id.as_str() == id);
        steps = found.map_or(&[], children);
        found.is_some()
    })
}

/// `round[2]/research[A]/score` was declared as `round/research/score`.
fn declared(step: &Address) -> String {
    let segments = step.as_str().split('/');
    let ids = segments.map(|segment| segment.split('[').next().unwrap_or(segment));
    ids.collect::<Vec<_>>().join("/")
}

/// Walks both lists of steps by id.
fn compare(
    edits: &mut Vec<Edit>,
    scope: &str,
    (pinned, pinned_steps): (&Workflow, &[Step]),
    (new, new_steps): (&Workflow, &[Step]),
) {
    let path = |step: &Step| format!("{scope}{}", step.id);
    let pending = |step: &Step| Edit { step: path(step), class: EditClass::Pending };
    for step in new_steps {
        let Some(was) = pinned_steps.iter().find(|it| it.id == step.id) else {
            edits.push(pending(step));
            continue;
        };
        let (own_was, own_is) = (bare(was), bare(step));
        // Needs are positions in the list, which other steps move; the steps they name count.
        let needs = |list: &[Step], of: &Step| -> Vec<StepId> {
            of.needs.iter().map(|index| list[*index].id.clone()).collect()
        };
        let same_needs = needs(pinned_steps, was) == needs(new_steps, step);
        let same_agent = agent(pinned, was) == agent(new, step);
        if own_was != own_is || !same_needs || !same_agent {
            let only_labels =
                same_needs && same_agent && without_labels(own_was, &own_is) == own_is;
            let class = if only_labels { EditClass::Cosmetic } else { EditClass::Pending };
            edits.push(Edit { step: path(step), class });
        }
        let inner = format!("{}/", path(step));
        compare(edits, &inner, inside(pinned, was), inside(new, step));
    }
    let is_gone = |step: &&Step| !new_steps.iter().any(|it| it.id == step.id);
    edits.extend(pinned_steps.iter().filter(is_gone).map(pending));
}

fn agent<'a>(workflow: &'a Workflow, step: &Step) -> Option<&'a Agent> {
    match &step.kind {
        Kind::Agent { agent, .. } => workflow.agents.get(agent),
        Kind::Run { .. }
        | Kind::Gate(_)
        | Kind::Call { .. }
        | Kind::Group { .. }
        | Kind::Sub { .. } => None,
    }
}

fn children(step: &Step) -> &[Step] {
    match &step.kind {
        Kind::Group { steps } => steps,
        Kind::Sub { workflow, .. } => &workflow.steps,
        Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => &[],
    }
}

/// The workflow that the children of a step see, and those children.
fn inside<'a>(workflow: &'a Workflow, step: &'a Step) -> (&'a Workflow, &'a [Step]) {
    match &step.kind {
        Kind::Sub { workflow, .. } => (workflow, &workflow.steps),
        Kind::Group { .. }
        | Kind::Run { .. }
        | Kind::Agent { .. }
        | Kind::Gate(_)
        | Kind::Call { .. } => (workflow, children(step)),
    }
}

/// The step itself: no children, and not where it stands.
fn bare(step: &Step) -> Step {
    let mut step = step.clone();
    match &mut step.kind {
        Kind::Group { steps } => steps.clear(),
        Kind::Sub { workflow, .. } => workflow.steps.clear(),
        Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => {}
    }
    step.needs.clear();
    step.at = Place::default();
    step
}

/// `step` with the labels of `other`: what never makes finished work stale.
fn without_labels(step: Step, other: &Step) -> Step {
    Step {
        description: other.description.clone(),
        timeout: other.timeout.clone(),
        on_failure: other.on_failure,
        idle_ms: other.idle_ms,
        retry: other.retry.clone(),
        ..step
    }
}

#[cfg(test)]
mod tests;
