//! What people changed since, against what the steps to come declare to write: whose work would be
//! replaced, and by which step.
//!
//! Invariant: a step is named here if it may ever write the path, whatever becomes of it; the plan
//! knows which of them still run.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide,
    graph::{DefId, NodeId, Role},
    run::Run,
    state::Phase,
    survey::{Overwriter, Survey, Writes},
    time::Timestamp,
    workflow::{model::Template, pattern::matcher, template::Quoting},
    worktree::{below, worktree_path},
};

use super::{
    by_hand,
    ours::Ours,
    reads,
    to_come::{self, ToCome},
};
use crate::{
    revert::rescue::Undoing,
    world::{Connected, Stop, World, files::Leads},
};

/// Says of each path that a person changed which steps may write it. One that no step of the run
/// made gets a rescue of its own. `beside` is what the supervisor said, and what unfinished
/// attempts changed.
pub(super) fn look<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    beside: (&Connected, &BTreeSet<String>),
    undoing: &mut BTreeMap<String, Undoing>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let run = ours.run;
    if run.state.adopted.is_some() {
        // The files of another system go on changing; that system's rules say what counts.
        return Ok(());
    }
    let made: BTreeSet<String> =
        survey.by_hand.values().flatten().map(|it| it.path.clone()).collect();
    let changed = survey.git.iter().flat_map(|git| &git.changed);
    let mut strange: BTreeSet<String> = changed.cloned().collect();
    let to_come = ToCome::of(run, survey);
    strange.extend(since_the_end(world, ours, beside, &to_come)?);
    strange.retain(|it| !made.contains(it) && !survey.is_damaged(it));
    if made.is_empty() && strange.is_empty() {
        return Ok(());
    }
    let mut found: BTreeMap<String, Vec<Overwriter>> = BTreeMap::new();
    for (step, paths) in &run.state.footprints {
        for path in paths.iter().filter(|it| made.contains(*it) || strange.contains(*it)) {
            let by = Overwriter { step: step.clone(), how: Writes::Before };
            found.entry(path.clone()).or_default().push(by);
        }
    }
    for (step, pattern) in patterns(run).into_iter().chain(patterns_to_come(&to_come)) {
        let Some(fits) = pattern.matcher() else { continue };
        // Of a path that is known by a pattern with holes alone only what the run made is kept.
        let all = made.iter().chain(strange.iter().filter(|_| pattern.is_known));
        for path in all.filter(|path| **path == pattern.text || fits.is_match(path)) {
            let how = if pattern.is_known { Writes::Named } else { Writes::Perhaps };
            let by = Overwriter { step: step.clone(), how };
            found.entry(path.clone()).or_default().push(by);
        }
    }
    let mut behind = BTreeSet::new();
    for path in made.union(&strange) {
        // What is written to a link is written there.
        if let Some(by) = found.get(path).cloned()
            && let Leads::To(target) = world.leads(path)?
        {
            found.entry(target.clone()).or_insert(by);
            behind.extend((!made.contains(&target)).then_some(target));
        }
    }
    for path in strange.union(&behind) {
        let Some(by) = found.get(path).and_then(|it| it.first()) else { continue };
        let attempts = run.state.step(&by.step).map_or(0, |entry| entry.attempts);
        let (of, number) = ((&by.step, attempts), by_hand::next(run, undoing));
        if let Some(kept) = by_hand::kept(world, run, of, vec![path.clone()], number)? {
            survey.strange_by_hand.extend(by_hand::announce(kept, undoing));
        }
    }
    survey.overwriters = found;
    Ok(())
}

/// Files that steps to come declare, and that changed when nothing of the run was at work any more.
/// Snapshots tell it better, where there are some; what unfinished attempts left is looked at with
/// them.
fn since_the_end<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    (connected, unfinished): (&Connected, &BTreeSet<String>),
    to_come: &ToCome,
) -> Result<Vec<String>, Stop> {
    let run = ours.run;
    let alone_since_ns = reads::alone_since_ns(run, connected);
    // A journal that was rebuilt without any times cannot say until when the run was at work: what
    // lies there may be its own.
    if alone_since_ns <= reads::ns(run.state.opened_at) {
        return Ok(Vec::new());
    }
    let undone = run.state.resumed.as_deref().map_or(&[][..], |it| &it.reverts);
    let mut found = BTreeSet::new();
    let unsettled = run.graph.unsettled().filter(|node| node.role == Role::Leaf);
    // One that was passed over may run when its `when` is asked again.
    let skipped = run.state.steps.glances().filter(|(_, it)| it.phase() == Phase::Skipped);
    let steps = unsettled.map(|node| &node.address).chain(skipped.map(|(step, _)| step));
    let steps = steps.filter(|step| run.state.phase(step) != Phase::Running);
    let known = steps.filter_map(|step| run.graph.find(step)).flat_map(|id| inside(run, id));
    let known = known.flat_map(|id| known_of(run, id));
    let known_to_come = patterns_to_come(to_come).into_iter().filter(|it| it.1.is_known);
    for pattern in known.chain(known_to_come.map(|it| it.1.text)) {
        found.extend(world.changed_since(&pattern, alone_since_ns)?);
    }
    let mut strange = Vec::new();
    for path in found {
        if unfinished.contains(&path) || ours.is(&path, Timestamp::default()) {
            continue;
        }
        let now = world.digest(&path)?;
        if !undone.iter().any(|it| it.path == path && it.base == now) {
            strange.push(path);
        }
    }
    Ok(strange)
}

/// The leaf itself, or those of a group that was passed over as a whole.
fn inside(run: &Run, id: NodeId) -> Vec<NodeId> {
    let (mut leaves, mut rest) = (Vec::new(), vec![id]);
    while let Some(id) = rest.pop() {
        let node = run.graph.node(id);
        if node.role == Role::Leaf {
            leaves.push(id);
        }
        rest.extend(&node.children);
    }
    leaves
}

/// What a step writes, where nothing in it is to be filled in later.
pub(super) fn known_of(run: &Run, id: NodeId) -> Vec<String> {
    let of = patterns_of(run, id).into_iter();
    of.filter(|it| it.is_known).map(|it| it.text).collect()
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
                all.extend(patterns_of(run, id).into_iter().map(|it| (node.address.clone(), it)));
            }
            Role::Loop if may_turn(run, id) => add_to_come(run, id, node.def, &mut all),
            Role::Each if node.children.is_empty() => add_to_come(run, id, node.def, &mut all),
            Role::Root | Role::Each | Role::Loop | Role::Group | Role::Item | Role::Turn => {}
        }
    }
    all
}

/// What items and turns will write that are not there yet, and of which it is known that they may
/// come, by the loop or group in which they will be.
fn patterns_to_come(to_come: &ToCome) -> Vec<(Address, Pattern)> {
    let Some(ahead) = &to_come.ahead else { return Vec::new() };
    let patterns = |(scope, id): &(Address, NodeId)| {
        let of = patterns_of(ahead, *id).into_iter();
        of.map(|it| (scope.clone(), it)).collect::<Vec<_>>()
    };
    to_come.leaves.iter().flat_map(patterns).collect()
}

/// What one step declares to write.
fn patterns_of(run: &Run, id: NodeId) -> Vec<Pattern> {
    let writes = &run.defs.step(run.graph.node(id).def).writes;
    if writes.is_empty() {
        return Vec::new();
    }
    let tree = worktree_path(run, id);
    let pattern = |template: &Template| match decide::text(run, id, template, Quoting::Plain) {
        Some(text) => Pattern { text: below(&tree, text), is_known: true },
        None => Pattern::unfilled(template, &tree),
    };
    writes.iter().map(pattern).collect()
}

/// Whether the loop has turns left, as far as that is known.
fn may_turn(run: &Run, id: NodeId) -> bool {
    to_come::turns_left(run, id) != Some(0)
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
        rest.extend(run.defs.get(inner).children());
    }
}
