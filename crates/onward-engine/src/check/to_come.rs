//! Items and turns that are not there yet, and of which it is known that they may come: lists that
//! need no file and no step to come, and turns up to a fixed `max`.
//!
//! Invariant: this is a guess about names, for the question which files they write. No verdict
//! rests on it.

use onward_core::{
    address::Address,
    decide::{Listed, listed},
    event::Item,
    facts::Facts,
    graph::{NodeId, Role},
    run::Run,
    state::{GroupState, LoopState},
    survey::Survey,
    workflow::model::{Count, Many, Repeat},
};

/// Groups in groups are opened so deep.
const DEPTH_MAX: usize = 4;
/// So many turns are looked ahead, and so many steps.
const TURNS_MAX: u32 = 16;
const NODES_MAX: usize = 10_000;

/// What is to come of a run.
#[derive(Default)]
pub(super) struct ToCome {
    /// The run with all of it; `None` where nothing is known to come.
    pub(super) ahead: Option<Run>,
    /// Each step that the run does not have yet, with the loop or group of the run in which it will
    /// be.
    pub(super) leaves: Vec<(Address, NodeId)>,
}

/// How a group or loop is opened further.
enum Opens {
    Items(Vec<Item>),
    Turns(u32),
}

impl ToCome {
    pub(super) fn of(run: &Run, survey: &Survey) -> Self {
        let mut ahead: Option<Run> = None;
        for depth in 0..DEPTH_MAX {
            let of = ahead.as_ref().unwrap_or(run);
            let mut opens = to_open(run, of);
            if depth == 0 {
                let lists = survey.relisted.iter();
                opens.extend(lists.map(|(it, new)| (it.clone(), Opens::Items(new.items.clone()))));
            }
            if opens.is_empty() || ahead.as_ref().is_some_and(|it| it.graph.len() > NODES_MAX) {
                break;
            }
            let mut state = of.state.clone();
            for (step, opens) in opens {
                match opens {
                    Opens::Items(items) => {
                        state.groups.insert(step, GroupState { items, ..GroupState::default() });
                    }
                    Opens::Turns(turns) => state.loops.entry(step).or_default().turns = turns,
                }
            }
            ahead = Some(Run::new(of.defs.clone(), state));
        }
        let Some(ahead) = ahead else { return Self::default() };
        let ids = ahead.graph.in_order().into_iter();
        let is_new = |id: &NodeId| {
            let node = ahead.graph.node(*id);
            node.role == Role::Leaf && run.graph.find(&node.address).is_none()
        };
        let leaves = ids.filter(is_new).filter_map(|id| Some((known_scope(run, &ahead, id)?, id)));
        let leaves = leaves.collect();
        Self { ahead: Some(ahead), leaves }
    }
}

/// The groups that are closed and would be opened so, and the loops with turns left that were not
/// taken further yet.
fn to_open(run: &Run, of: &Run) -> Vec<(Address, Opens)> {
    let mut found = Vec::new();
    for node in of.graph.unsettled() {
        let Some(id) = of.graph.find(&node.address) else { continue };
        match node.role {
            Role::Each if !of.state.groups.contains_key(&node.address) => {
                if let Listed::Items(items) = listed(of, &Facts::default(), id) {
                    found.push((node.address.clone(), Opens::Items(items)));
                }
            }
            Role::Loop => {
                let known = run.state.loops.get(&node.address).map_or(0, |it| it.turns);
                let turns = of.state.loops.get(&node.address).map_or(0, |it| it.turns);
                let left = turns_left(of, id).unwrap_or(1).min(TURNS_MAX);
                if turns == known && left > 0 {
                    found.push((node.address.clone(), Opens::Turns(turns + left)));
                }
            }
            Role::Root | Role::Each | Role::Group | Role::Item | Role::Turn | Role::Leaf => {}
        }
    }
    found
}

/// How many turns a loop may still take; `None` where that is not known.
pub(super) fn turns_left(run: &Run, id: NodeId) -> Option<u32> {
    let node = run.graph.node(id);
    let Many::Repeat(Repeat { max: Count::Fixed(max), .. }) = &run.defs.step(node.def).many else {
        return None;
    };
    let LoopState { turns, granted, .. } =
        run.state.loops.get(&node.address).copied().unwrap_or_default();
    Some(max.saturating_add(granted).saturating_sub(turns))
}

/// The innermost loop or group around it that the run has.
fn known_scope(run: &Run, ahead: &Run, id: NodeId) -> Option<Address> {
    let mut scope = ahead.graph.node(id).parent;
    while let Some(id) = scope {
        let node = ahead.graph.node(id);
        if run.graph.find(&node.address).is_some() {
            return Some(node.address.clone());
        }
        scope = node.parent;
    }
    None
}
