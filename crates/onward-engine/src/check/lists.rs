//! Lists of items that were journaled when their group was opened, against what they would be now.

use onward_core::{
    address::Address,
    decide::{Defined, Listed, defined, listed},
    digest::Digest,
    event::{Event, Item},
    facts::Facts,
    graph::{NodeId, Role},
    plan::{Resumption, Status, next_record},
    run::Run,
    survey::{Relisted, Survey, was_made_by_the_run},
};

use crate::{
    check::needs::find_out,
    world::{Stop, World},
};

/// A list that a step of the run made is that step's to change; one that the workflow file or a
/// file of the project has is looked at again.
pub(crate) fn look<W: World>(world: &mut W, run: &Run, survey: &mut Survey) -> Result<(), Stop> {
    if run.state.groups.is_empty() {
        return Ok(());
    }
    if run.state.adopted.is_some() {
        // The files of another system go on changing; that system's rules say what counts.
        return Ok(());
    }
    for id in run.graph.in_order() {
        let node = run.graph.node(id);
        let Some(known) = run.state.groups.get(&node.address) else { continue };
        if node.role != Role::Each || !node.is_reachable() {
            continue;
        }
        let Some((items, files)) = now(world, run, id)? else { continue };
        if is_same(&known.items, &items) {
            continue;
        }
        look_at_returning(world, run, (&node.address, &items), survey)?;
        survey.relisted.insert(node.address.clone(), Relisted { items, files });
    }
    Ok(())
}

/// Items that were finished, left the list and are in it again: what they were asked for then,
/// against what they would be asked for now.
fn look_at_returning<W: World>(
    world: &mut W,
    run: &Run,
    (group, items): (&Address, &[Item]),
    survey: &mut Survey,
) -> Result<(), Stop> {
    let known = run.state.groups.get(group).map(|it| it.items.as_slice()).unwrap_or_default();
    let is_new = |it: &&Item| !known.iter().any(|known| known.key == it.key);
    let scopes: Vec<Address> = items.iter().filter(is_new).map(|it| group.item(&it.key)).collect();
    let returns =
        |step: &Address| scopes.iter().any(|scope| step == scope || step.is_within(scope));
    let done = run.state.steps.glances().filter(|(_, entry)| entry.phase().is_concluded());
    let done: Vec<Address> = done.map(|(step, _)| step).filter(|it| returns(it)).cloned().collect();
    let is_over = Status::of(&run.state, survey.driven) == Status::Completed;
    if done.is_empty() || is_over {
        return Ok(());
    }
    let mut after = Resumption::default().folded(run, survey)?;
    let needs = run.state.groups.get(group).map(|it| it.needs.clone()).unwrap_or_default();
    let all = known.iter().chain(items.iter().filter(is_new)).cloned().collect();
    let expanded = Event::GroupExpanded { step: group.clone(), items: all, needs };
    after.after(next_record(&after.state, survey.now, expanded))?;
    for step in done {
        let mut facts = Facts::default();
        let Some(id) = after.graph.find(&step) else { continue };
        loop {
            match defined(&after, &facts, id) {
                Defined::Lacks(needs) => find_out(world, facts.at(&step), needs)?,
                Defined::Differs(parts) if !parts.is_empty() => {
                    break drop(survey.returning.insert(step, parts));
                }
                Defined::Differs(_) | Defined::Unknown => break,
            }
        }
    }
    Ok(())
}

/// Items, and the files that list them.
type ItemsOf = (Vec<Item>, Vec<String>);

/// The items now and the files that list them; `None` where nothing is to be said about them.
fn now<W: World>(world: &mut W, run: &Run, id: NodeId) -> Result<Option<ItemsOf>, Stop> {
    let step = &run.graph.node(id).address;
    let mut facts = Facts::default();
    let items = loop {
        match listed(run, &facts, id) {
            Listed::Items(items) => break items,
            Listed::Lacks(needs) => find_out(world, facts.at(step), needs)?,
            Listed::Unknown => return Ok(None),
        }
    };
    let texts = std::mem::take(&mut facts.at(step).texts);
    for (path, text) in &texts {
        let hash = text.as_ref().map(|text| Digest::of(text.as_bytes()));
        if hash.is_some_and(|hash| was_made_by_the_run(&run.state, path, hash)) {
            return Ok(None);
        }
    }
    Ok(Some((items, texts.into_keys().collect())))
}

fn is_same(was: &[Item], is: &[Item]) -> bool {
    let same = |one: &Item, other: &Item| {
        one.key == other.key && one.value == other.value && one.after == other.after
    };
    was.len() == is.len() && was.iter().zip(is).all(|(one, other)| same(one, other))
}
