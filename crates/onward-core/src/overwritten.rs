//! Files that several steps write, one after the other: which finished work is lost when one of
//! these steps runs again.
//!
//! Invariant: what is found is named with the path and the other step. A step is found once, and
//! never for the sake of a step that stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    address::Address,
    digest::Digest,
    event::Event,
    graph::{Graph, NodeId, Role},
    key::Difference,
    run::Run,
    state::{EffectState, Phase, State},
    survey::outputs_kept,
    time::Timestamp,
};

/// A done step that counts no more, because another one runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overwritten {
    pub step: Address,
    pub path: String,
    pub cause: Cause,
    /// What the step made of the path, where it declared it.
    was: Option<Digest>,
}

/// What the other step does to the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It comes before, and writes the path again.
    WrittenAgain { by: Address },
    /// `reader` comes after and reads the path, which `by` has replaced since.
    ReadAgain { reader: Address, by: Address },
}

impl Overwritten {
    pub fn difference(&self) -> Difference {
        let is = match &self.cause {
            Cause::WrittenAgain { by } => format!("written again by {by}"),
            Cause::ReadAgain { by, .. } => format!("replaced by {by}"),
        };
        let was = self.was.map(|was| was.to_string());
        Difference { part: format!("writes.{}", self.path), was, is: Some(is) }
    }

    pub fn detail(&self) -> String {
        let path = &self.path;
        match &self.cause {
            Cause::WrittenAgain { by } => format!("{by}, which runs again, writes {path} first"),
            Cause::ReadAgain { reader, .. } => {
                format!("{reader}, which runs again, reads {path} as this step left it")
            }
        }
    }

    /// The same where it is not known yet whether the other one runs again.
    pub fn condition(&self) -> String {
        let path = &self.path;
        match &self.cause {
            Cause::WrittenAgain { by } => format!("{by} runs again, which writes {path} first"),
            Cause::ReadAgain { reader, .. } => {
                format!("{reader} runs again, which reads {path} as this step left it")
            }
        }
    }

    pub fn event(&self) -> Event {
        Event::StepInvalidated { step: self.step.clone(), causes: vec![self.difference()] }
    }
}

/// The steps that run again by these events: they count no more, and are neither passed over nor
/// left out of a list.
pub fn run_again<'e>(events: impl Iterator<Item = &'e Event>) -> BTreeSet<Address> {
    let mut again = BTreeSet::new();
    for event in events {
        if let Event::StepInvalidated { step, .. } = event {
            again.insert(step.clone());
        } else if let Event::StepSkipped { step, .. } = event {
            again.remove(step);
        } else if let Event::GroupExpanded { step: group, items, .. } = event {
            let is_listed = |key: String| items.iter().any(|item| item.key == key);
            again.retain(|step| key_in(step, group).is_none_or(is_listed));
        }
    }
    again
}

/// The item of a group in which a step stands.
fn key_in(step: &Address, group: &Address) -> Option<String> {
    let mut scope = Some(step.clone());
    while let Some(inner) = scope {
        if let Some((around, key)) = inner.group_and_key()
            && around == *group
        {
            return Some(key.to_owned());
        }
        scope = inner.parent();
    }
    None
}

/// Done steps that come after one of `again` and left a version of a path that it writes, too: when
/// it has run, their version is no more. And steps before it whose version it read and replaced.
pub fn overwritten(run: &Run, again: BTreeSet<Address>) -> Vec<Overwritten> {
    overwritten_at_resume((&run.graph, &run.state), again, |_| false, |_, _, _| false)
}

/// The same at a resume. The graph is the one before it, with all turns that were taken; the state
/// the one after it. `stays` names steps that a person keeps; `is_there` says that the path has the
/// content that the step read.
pub fn overwritten_at_resume(
    run: (&Graph, &State),
    again: BTreeSet<Address>,
    stays: impl Fn(&Address) -> bool,
    is_there: impl Fn(&Address, &str, Digest) -> bool,
) -> Vec<Overwritten> {
    let mut search = Search::of(run, again, stays);
    loop {
        search.look_earlier(&is_there);
        if !search.look_later() {
            return search.found;
        }
    }
}

/// Steps that run again if a done step that is still compared with what it needs does.
pub fn overwritten_if_compared(run: &Run) -> BTreeMap<Address, Overwritten> {
    let unsettled = run.graph.unsettled().filter(|node| node.role == Role::Leaf);
    let done = unsettled.filter(|node| run.state.phase(&node.address) == Phase::Done);
    let compared: BTreeSet<Address> = done.map(|node| node.address.clone()).collect();
    if compared.is_empty() {
        return BTreeMap::new();
    }
    let mut search = Search::of((&run.graph, &run.state), compared, |_| false);
    search.look_earlier(&|_, _, _| false);
    if search.found.is_empty() {
        // Later versions of their files are compared themselves.
        return BTreeMap::new();
    }
    while search.look_later() {
        search.look_earlier(&|_, _, _| false);
    }
    search.found.into_iter().map(|it| (it.step.clone(), it)).collect()
}

struct Search<'r, S> {
    graph: &'r Graph,
    state: &'r State,
    stays: S,
    known: BTreeSet<Address>,
    /// Those of `known` whose outputs were not looked at yet.
    open: Vec<Address>,
    found: Vec<Overwritten>,
    followers: BTreeMap<NodeId, BTreeSet<NodeId>>,
    /// The paths that several steps wrote.
    shared: Option<Shared<'r>>,
}

/// A step and its version of a path, where it declared it.
type Left<'s> = (&'s Address, Option<Digest>);
type Shared<'s> = BTreeMap<&'s str, Vec<Left<'s>>>;

impl<'r, S: Fn(&Address) -> bool> Search<'r, S> {
    fn of((graph, state): (&'r Graph, &'r State), known: BTreeSet<Address>, stays: S) -> Self {
        // The files of another system go on changing; that system's rules say what counts.
        let is_ours = state.adopted.is_none();
        let open = known.iter().filter(|_| is_ours).cloned().collect();
        let (found, followers) = (Vec::new(), BTreeMap::new());
        Self { graph, state, stays, known, open, found, followers, shared: None }
    }

    /// Whether any was found.
    fn look_later(&mut self) -> bool {
        let state = self.state;
        let mut wanted: BTreeMap<String, Vec<Address>> = BTreeMap::new();
        for step in std::mem::take(&mut self.open) {
            for (path, _) in written(state, &step) {
                wanted.entry(path.to_owned()).or_default().push(step.clone());
            }
        }
        if wanted.is_empty() {
            return false;
        }
        let before = self.found.len();
        for (step, path, was) in writers(state, |path| wanted.contains_key(path)) {
            if self.known.contains(step) || (self.stays)(step) {
                continue;
            }
            let by = wanted[path].iter().find(|by| self.follows(step, by)).cloned();
            if let Some(by) = by {
                self.add(step, path, was, Cause::WrittenAgain { by });
            }
        }
        self.found.len() > before
    }

    fn look_earlier(&mut self, is_there: &impl Fn(&Address, &str, Digest) -> bool) {
        let state = self.state;
        let mut rest = self.open.clone();
        if rest.is_empty() {
            return;
        }
        let shared = self.shared.take().unwrap_or_else(|| shared(state, &self.known));
        while let Some(step) = rest.pop() {
            let key = state.step(&step).and_then(|entry| entry.key.as_ref());
            let Some(key) = key.filter(|_| !shared.is_empty()) else { continue };
            for (path, read) in key.get().reads {
                let Some(all) = shared.get(path.as_str()) else { continue };
                let Some(by) = self.replaced_by(&step, read, all) else { continue };
                if is_there(by, &path, read) {
                    continue;
                }
                let is_before = |it: &&Left<'_>| *it.0 != step && self.follows(&step, it.0);
                let before: Vec<&Left<'_>> = all.iter().filter(is_before).collect();
                let last = before.into_iter().max_by_key(|it| ended_at(state, it.0));
                // What another step replaced is made again only where it is what was read.
                let last = last.filter(|it| *by == step || it.1 == Some(read));
                // What it did beyond this machine is not done twice for a file.
                let is_effect = |it: &Address| {
                    state.step(it).is_some_and(|entry| entry.effect != EffectState::None)
                };
                let last = last.filter(|it| !is_effect(it.0));
                let last = last.filter(|it| !self.known.contains(it.0) && !(self.stays)(it.0));
                if let Some((maker, was)) = last {
                    let (reader, by) = (step.clone(), by.clone());
                    self.add(maker, &path, *was, Cause::ReadAgain { reader, by });
                    rest.push((*maker).clone());
                }
            }
        }
        self.shared = Some(shared);
    }

    /// The step whose version of a path stands in the place of the one that `step` read: itself, or
    /// one behind it that declares the path.
    fn replaced_by<'w>(
        &mut self,
        step: &Address,
        read: Digest,
        all: &[Left<'w>],
    ) -> Option<&'w Address> {
        let is_behind =
            |it: &&Left<'_>| *it.0 == *step || (it.1.is_some() && self.follows(it.0, step));
        let behind: Vec<&Left<'w>> = all.iter().filter(is_behind).collect();
        let (last, left) = behind.into_iter().max_by_key(|it| ended_at(self.state, it.0))?;
        (*left != Some(read)).then_some(*last)
    }

    fn add(&mut self, step: &Address, path: &str, was: Option<Digest>, cause: Cause) {
        let (step, path) = (step.clone(), path.to_owned());
        self.known.insert(step.clone());
        self.open.push(step.clone());
        self.found.push(Overwritten { step, path, cause, was });
    }

    fn standing(&self, step: &Address) -> Option<Standing> {
        if let Some(id) = self.graph.find(step) {
            return Some(Standing::There(id));
        }
        let mut scope = Some(step.clone());
        while let Some(inner) = scope {
            let around = inner.group_and_key().map(|(group, _)| group);
            let turning = around.filter(|it| self.state.loops.contains_key(it));
            if let Some(id) = turning.and_then(|it| self.graph.find(&it)) {
                return Some(Standing::ToCome(id));
            }
            scope = inner.parent();
        }
        None
    }

    /// Whether `later` waits for `earlier`, directly or by way of others.
    fn follows(&mut self, later: &Address, earlier: &Address) -> bool {
        let graph = self.graph;
        let (Some(later), Some(earlier)) = (self.standing(later), graph.find(earlier)) else {
            return false;
        };
        let followers = self.followers.entry(earlier).or_insert_with(|| graph.followers(earlier));
        match later {
            Standing::There(id) => followers.contains(&id),
            Standing::ToCome(scope) => {
                let is_around = || graph.stands_in(earlier, scope);
                followers.contains(&scope) || is_around()
            }
        }
    }
}

/// Where a step stands in the graph.
enum Standing {
    There(NodeId),
    /// In a turn that its loop takes again later.
    ToCome(NodeId),
}

/// What a step left, declared or not.
pub fn written<'s>(state: &'s State, step: &Address) -> Vec<(&'s str, Option<Digest>)> {
    let entry = state.step(step);
    let files = entry.into_iter().flat_map(|entry| &entry.evidence.files);
    let declared = files.map(|file| (file.path.as_str(), Some(file.hash)));
    let footprint = state.footprints.get(step).into_iter().flatten();
    declared.chain(footprint.map(|path| (path.as_str(), None))).collect()
}

/// The paths that several steps wrote, of those that are done and those that run `again`.
fn shared<'s>(state: &'s State, again: &BTreeSet<Address>) -> Shared<'s> {
    let mut shared = Shared::new();
    let done = writers(state, |_| true);
    let again = state.steps.glances().map(|it| it.0).filter(|it| again.contains(*it));
    let lost = again.flat_map(|step| written(state, step).into_iter().map(move |it| (step, it)));
    let lost = lost.map(|(step, (path, hash))| (step, path, hash));
    for (step, path, hash) in done.into_iter().chain(lost) {
        let all: &mut Vec<Left<'_>> = shared.entry(path).or_default();
        // What it declared is in its footprint, too.
        if !all.iter().any(|it| it.0 == step) {
            all.push((step, hash));
        }
    }
    shared.retain(|_, all| all.len() > 1);
    shared
}

fn ended_at(state: &State, step: &Address) -> Option<Timestamp> {
    state.step(step).map(|it| it.ended_at)
}

/// Each done step that left a path which fits.
fn writers(state: &State, fits: impl Fn(&str) -> bool) -> Vec<(&Address, &str, Option<Digest>)> {
    let mut all = Vec::new();
    for (place, file) in outputs_kept(state) {
        if fits(file.path)
            && let Some(step) = state.steps.name(place)
        {
            all.push((step, file.path, Some(file.hash)));
        }
    }
    for (step, paths) in &state.footprints {
        if state.phase(step) == Phase::Done {
            let fitting = paths.iter().filter(|path| fits(path));
            all.extend(fitting.map(|path| (step, path.as_str(), None)));
        }
    }
    all
}
