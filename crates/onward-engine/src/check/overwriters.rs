//! What people changed since, against what the steps to come declare to write: whose work would be
//! replaced, and by which step.
//!
//! Invariant: a step is named here if it may ever write the path, whatever becomes of it; the plan
//! knows which of them still run.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide,
    event::{AttemptStarted, Revert},
    graph::{DefId, NodeId, Role},
    run::Run,
    state::LoopState,
    survey::{Overwriter, Survey},
    workflow::{
        model::{Count, Many, Repeat, Template},
        pattern::matcher,
        template::Quoting,
    },
    worktree::{below, worktree_path},
};

use crate::{
    revert::rescue::{self, Undoing},
    world::{Stop, World, files::Leads},
};

/// Says of each path that a person changed which steps may write it. One that no step of the run
/// made gets a rescue of its own.
pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    undoing: &mut BTreeMap<String, Undoing>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    if run.state.adopted.is_some() {
        // The files of another system go on changing; that system's rules say what counts.
        return Ok(());
    }
    let made: BTreeSet<String> =
        survey.by_hand.values().flatten().map(|it| it.path.clone()).collect();
    let changed = survey.git.iter().flat_map(|git| &git.changed);
    let strange: BTreeSet<String> = changed.filter(|it| !made.contains(*it)).cloned().collect();
    if made.is_empty() && strange.is_empty() {
        return Ok(());
    }
    let mut found: BTreeMap<String, Vec<Overwriter>> = BTreeMap::new();
    for (step, pattern) in patterns(run) {
        let Some(fits) = pattern.matcher() else { continue };
        // Of a path that is known by a pattern with holes alone only what the run made is kept.
        let all = made.iter().chain(strange.iter().filter(|_| pattern.is_known));
        for path in all.filter(|path| **path == pattern.text || fits.is_match(path)) {
            let by = Overwriter { step: step.clone(), is_known: pattern.is_known };
            found.entry(path.clone()).or_default().push(by);
        }
    }
    let mut behind = BTreeSet::new();
    for path in &strange {
        // What is written to a link is written there.
        if let Some(by) = found.get(path).cloned()
            && let Leads::To(target) = world.leads(path)?
            && !made.contains(&target)
        {
            found.entry(target.clone()).or_insert(by);
            behind.insert(target);
        }
    }
    for path in strange.union(&behind) {
        let Some(by) = found.get(path).and_then(|it| it.first()) else { continue };
        let Some((digest, kind)) = world.look(path)?.map(crate::world::Looked::content) else {
            continue;
        };
        if run.state.kept_by_hand.get(path) == Some(&digest) {
            continue;
        }
        let number = run.state.rescues + 1 + u32::try_from(undoing.len()).unwrap_or(u32::MAX);
        let revert = Revert {
            path: path.clone(),
            left: Some(digest),
            base: Some(digest),
            rescue: rescue::name(number, &by.step),
            left_kind: kind,
            base_kind: kind,
            step: Some(by.step.clone()),
        };
        let attempts = run.state.step(&by.step).map_or(0, |entry| entry.attempts);
        let started = Box::new(AttemptStarted::bare(by.step.clone(), attempts));
        let (reverts, bases) = (vec![revert.clone()], BTreeMap::new());
        undoing.insert(revert.rescue.clone(), Undoing { started, reverts, bases });
        survey.strange_by_hand.push(revert);
    }
    survey.overwriters = found;
    Ok(())
}

/// A pattern of `writes`.
struct Pattern {
    text: String,
    /// Nothing in it is to be filled in later.
    is_known: bool,
}

impl Pattern {
    fn matcher(&self) -> Option<globset::GlobMatcher> {
        // What fills a hole may have any form, directories included.
        matcher(&self.text, self.is_known).ok()
    }

    /// As far as it is known before its step is there.
    fn unfilled(template: &Template, tree: &str) -> Self {
        let is_known = template.is_literal();
        let text = if is_known { template.source.clone() } else { holes_open(&template.source) };
        Self { text: below(tree, text), is_known }
    }
}

/// The text with `*` for each hole; one that is made by statements may come out as anything.
fn holes_open(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    if rest.contains("{%") || rest.contains("{#") {
        return "*".to_owned();
    }
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        text.push('*');
        rest = after.split_once("}}").map_or("", |it| it.1);
    }
    text + rest
}

/// What each step of the run declares to write, and what turns and items to come will.
fn patterns(run: &Run) -> Vec<(Address, Pattern)> {
    let mut all = Vec::new();
    for id in run.graph.in_order() {
        let node = run.graph.node(id);
        match node.role {
            Role::Leaf => {
                let tree = worktree_path(run, id);
                for template in &run.defs.step(node.def).writes {
                    let pattern = match decide::text(run, id, template, Quoting::Plain) {
                        Some(text) => Pattern { text: below(&tree, text), is_known: true },
                        None => Pattern::unfilled(template, &tree),
                    };
                    all.push((node.address.clone(), pattern));
                }
            }
            Role::Loop if may_turn(run, id) => add_to_come(run, id, node.def, &mut all),
            Role::Each if node.children.is_empty() => add_to_come(run, id, node.def, &mut all),
            Role::Root | Role::Each | Role::Loop | Role::Group | Role::Item | Role::Turn => {}
        }
    }
    all
}

/// Whether the loop has turns left, as far as that is known.
fn may_turn(run: &Run, id: NodeId) -> bool {
    let node = run.graph.node(id);
    let Many::Repeat(Repeat { max: Count::Fixed(max), .. }) = &run.defs.step(node.def).many else {
        return true;
    };
    let LoopState { turns, granted, .. } =
        run.state.loops.get(&node.address).copied().unwrap_or_default();
    turns < max.saturating_add(granted)
}

/// What is declared inside, for instances that are not there yet. A worktree of their own begins
/// with a copy.
fn add_to_come(run: &Run, id: NodeId, def: DefId, all: &mut Vec<(Address, Pattern)>) {
    let (step, tree) = (&run.graph.node(id).address, worktree_path(run, id));
    let mut rest = vec![def];
    while let Some(inner) = rest.pop() {
        if run.defs.brief(inner).has_worktree() && (inner != def || tree.is_empty()) {
            continue;
        }
        let writes = &run.defs.step(inner).writes;
        all.extend(writes.iter().map(|it| (step.clone(), Pattern::unfilled(it, &tree))));
        rest.extend(&run.defs.get(inner).children);
    }
}
