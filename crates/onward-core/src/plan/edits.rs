//! A workflow file that was edited while its run was interrupted: what each edit touches.
//!
//! Three things are compared: the copy the run keeps, the file as it is now, and how far the run
//! got. Whether a finished step is touched is not told from the text of the file but by asking for
//! its key once more: an edit that comes out the same is none.

use std::collections::BTreeMap;

use crate::{
    address::Address,
    decide::{self, Defined},
    digest::Digest,
    event::{Edit, EditClass, LoopEnd},
    facts::{Facts, Lacking},
    graph::{NodeId, Role},
    id::StepId,
    key::Difference,
    run::Run,
    state::{Phase, StepState},
    survey::Edited,
    workflow::model::{Agent, Count, Kind, Many, Place, Step, Template, Workflow},
};

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
        let phase = run.state.phase(&node.address);
        node.role == Role::Leaf && (phase.is_concluded() || phase == Phase::Skipped)
    };
    let mut lacking = Lacking::new();
    let mut redefined: BTreeMap<Address, Vec<Difference>> = BTreeMap::new();
    for id in run.graph.in_order().into_iter().filter(done) {
        let address = &run.graph.node(id).address;
        let name = address.declared();
        let Some(edit) = edits.iter_mut().find(|edit| edit.step == name) else { continue };
        if edit.class == EditClass::Cosmetic {
            continue;
        }
        if let Some(was) = found(pinned, &name)
            && let Some(difference) = remade(run, id, was)
        {
            edit.class = EditClass::TouchesDone;
            redefined.insert(address.clone(), vec![difference]);
            continue;
        }
        if run.state.phase(address) == Phase::Skipped {
            continue;
        }
        let is = run.defs.step(run.graph.node(id).def);
        let reads_more = found(pinned, &name).is_some_and(|was| was.reads != is.reads);
        let read = reads_more.then(|| decide::newly_read(run, facts, id));
        for asked in std::iter::once(decide::defined(run, facts, id)).chain(read) {
            match asked {
                Defined::Lacks(needs) => {
                    lacking.entry(address.clone()).or_default().extend(needs);
                }
                Defined::Differs(differences) if !differences.is_empty() => {
                    edit.class = EditClass::TouchesDone;
                    redefined.entry(address.clone()).or_default().extend(differences);
                }
                Defined::Differs(_) | Defined::Unknown => {}
            }
        }
    }
    let begun = begun(run, facts, &edits, &mut lacking);
    for (step, difference) in turning_again(pinned, run) {
        let name = step.declared();
        if let Some(edit) = edits.iter_mut().find(|edit| edit.step == name) {
            edit.class = EditClass::TouchesDone;
        }
        redefined.insert(step, vec![difference]);
    }
    for (step, _) in run.state.steps.iter().filter(|(_, entry)| entry.phase.is_concluded()) {
        // It was one step and is several now, or the other way round.
        let id = run.graph.find(step);
        if id.is_none_or(|id| run.graph.node(id).role != Role::Leaf) {
            let name = step.declared();
            if let Some(edit) = edits.iter_mut().find(|edit| edit.step == name) {
                edit.class = EditClass::TouchesDone;
            }
        }
    }
    for gone in edits.iter_mut().filter(|edit| !names(new, &edit.step)) {
        let had_done = |(step, entry): (&Address, &StepState)| {
            entry.phase.is_concluded() && step.declared() == gone.step
        };
        if run.state.steps.iter().any(had_done) {
            gone.class = EditClass::TouchesDone;
        }
    }
    if !lacking.is_empty() {
        return Err(lacking);
    }
    edits.sort_by(|one, other| one.step.cmp(&other.step));
    let is_gone = |edit: &&Edit| !names(new, &edit.step);
    let gone = edits.iter().filter(is_gone).map(|edit| edit.step.clone()).collect();
    Ok(Edited { hash, edits, redefined, begun, gone })
}

/// Attempts in flight that would be asked for differently now.
fn begun(
    run: &Run,
    facts: &Facts,
    edits: &[Edit],
    lacking: &mut Lacking,
) -> BTreeMap<Address, Vec<Difference>> {
    let mut begun = BTreeMap::new();
    for (step, entry) in run.state.steps.noteworthy() {
        let started = entry.started.as_deref().filter(|_| entry.phase == Phase::Running);
        let id = run.graph.find(step).filter(|id| run.graph.node(*id).role == Role::Leaf);
        let (Some(started), Some(id)) = (started, id) else { continue };
        let name = step.declared();
        let is_it = |edit: &&Edit| edit.step == name && edit.class != EditClass::Cosmetic;
        if edits.iter().find(is_it).is_none() || run.defs.brief(run.graph.node(id).def).is_gate() {
            continue;
        }
        match decide::defined_against(run, facts, id, &started.key) {
            Defined::Lacks(needs) => lacking.entry(step.clone()).or_default().extend(needs),
            Defined::Differs(differences) if !differences.is_empty() => {
                begun.insert(step.clone(), differences);
            }
            Defined::Differs(_) | Defined::Unknown => {}
        }
    }
    begun
}

/// What no key tells: the step is of another kind now, or was skipped for another reason.
fn remade(run: &Run, id: NodeId, was: &Step) -> Option<Difference> {
    let node = run.graph.node(id);
    let is = run.defs.step(node.def);
    let (old, new) = (was.kind.word(), is.kind.word());
    if old != new {
        let (was, is) = (Some(old.to_owned()), Some(new.to_owned()));
        return Some(Difference { part: "kind".to_owned(), was, is });
    }
    let is_skipped = run.state.phase(&node.address) == Phase::Skipped;
    let text = |when: &Option<Template>| when.as_ref().map(|it| it.source.clone());
    (is_skipped && was.when != is.when).then(|| {
        let (was, is) = (text(&was.when), text(&is.when));
        Difference { part: "when".to_owned(), was, is }
    })
}

/// Loops that have ended, and that the new file asks for more turns or for another end.
fn turning_again(pinned: &Workflow, run: &Run) -> Vec<(Address, Difference)> {
    let mut all = Vec::new();
    for (step, turning) in &run.state.loops {
        let (Some(end), Some(id)) = (turning.ended, run.graph.find(step)) else { continue };
        let was = found(pinned, &step.declared()).map(|it| &it.many);
        let is = &run.defs.step(run.graph.node(id).def).many;
        let (Some(Many::Repeat(was)), Many::Repeat(is)) = (was, is) else { continue };
        let text = |until: &Option<Template>| until.as_ref().map(|it| it.source.clone());
        let allows_more = match (end, &is.max) {
            // A resume lets it go on by itself.
            (LoopEnd::Exhausted, _) => continue,
            (LoopEnd::Until, _) => false,
            (LoopEnd::Max, Count::Fixed(max)) => {
                turning.turns < max.saturating_add(turning.granted)
            }
            (LoopEnd::Max, Count::Expression(_)) => was.max != is.max,
        };
        let (part, was, is) = if was.until != is.until {
            ("repeat.until", text(&was.until), text(&is.until))
        } else if allows_more {
            ("repeat.max", Some(turns(&was.max)), Some(turns(&is.max)))
        } else {
            continue;
        };
        all.push((step.clone(), Difference { part: part.to_owned(), was, is }));
    }
    all
}

fn turns(max: &Count) -> String {
    match max {
        Count::Fixed(max) => max.to_string(),
        Count::Expression(expression) => expression.source.clone(),
    }
}

/// Whether the workflow declares a step by this path.
fn names(workflow: &Workflow, path: &str) -> bool {
    found(workflow, path).is_some()
}

fn found<'a>(workflow: &'a Workflow, path: &str) -> Option<&'a Step> {
    let mut steps = &workflow.steps[..];
    let mut last = None;
    for id in path.split('/') {
        let step = steps.iter().find(|step| step.id.as_str() == id)?;
        steps = children(step);
        last = Some(step);
    }
    last
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
    let (pinned_ids, new_ids) = (by_id(pinned_steps), by_id(new_steps));
    for step in new_steps {
        let Some(was) = pinned_ids.get(&step.id) else {
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
    let is_gone = |step: &&Step| !new_ids.contains_key(&step.id);
    edits.extend(pinned_steps.iter().filter(is_gone).map(pending));
}

fn by_id(steps: &[Step]) -> BTreeMap<&StepId, &Step> {
    steps.iter().map(|step| (&step.id, step)).collect()
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
