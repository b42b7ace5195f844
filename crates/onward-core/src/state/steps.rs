//! The step instances of a run, in order of first mention.
//!
//! Invariant: two copies that differ in a few steps share the others. A plan is made on a copy of
//! the state, and a large run would not want to be held twice for it.

use std::{borrow::Borrow, hash::Hash, sync::Arc};

use foldhash::fast::FixedState;
use indexmap::{
    Equivalent, IndexMap,
    map::{self, Entry},
};

use super::StepState;
use crate::{address::Address, graph::PackedGraph};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    all: IndexMap<Address, Arc<StepState>, FixedState>,
    /// The graph of exactly these steps, where one was kept: forgotten as soon as one of them may
    /// be changed. It says nothing that they do not.
    graph: Option<Arc<PackedGraph>>,
}

impl PartialEq for Steps {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Steps {
    pub(super) fn with_capacity(count: usize) -> Self {
        let all = IndexMap::with_capacity_and_hasher(count, FixedState::default());
        Self { all, graph: None }
    }

    pub(crate) fn graph(&self) -> Option<&PackedGraph> {
        self.graph.as_deref()
    }

    pub(super) fn keep_graph(&mut self, graph: PackedGraph) {
        self.graph = Some(Arc::new(graph));
    }

    /// They are not, or not all, what that graph was made of.
    pub(crate) fn forget_graph(&mut self) {
        self.graph = None;
    }

    /// The address of the step in this place.
    pub(crate) fn name(&self, place: usize) -> Option<&Address> {
        self.all.get_index(place).map(|(step, _)| step)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get<Q: ?Sized + Hash + Equivalent<Address>>(&self, step: &Q) -> Option<&StepState> {
        self.all.get(step).map(Borrow::borrow)
    }

    pub fn get_mut<Q: ?Sized + Hash + Equivalent<Address>>(
        &mut self,
        step: &Q,
    ) -> Option<&mut StepState> {
        self.forget_graph();
        self.all.get_mut(step).map(Arc::make_mut)
    }

    /// The step with its place, by its address as text.
    pub fn find(&self, step: &str) -> Option<(usize, &StepState)> {
        self.all.get_full(step).map(|(place, _, entry)| (place, &**entry))
    }

    pub fn contains_key<Q: ?Sized + Hash + Equivalent<Address>>(&self, step: &Q) -> bool {
        self.all.contains_key(step)
    }

    pub fn insert(&mut self, step: Address, entry: StepState) -> Option<StepState> {
        self.forget_graph();
        self.all.insert(step, Arc::new(entry)).map(Arc::unwrap_or_clone)
    }

    pub fn iter(&self) -> Iter<'_> {
        self.all.iter().map(|(step, entry)| (step, entry))
    }

    pub fn keys(&self) -> map::Keys<'_, Address, Arc<StepState>> {
        self.all.keys()
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &StepState> + ExactSizeIterator {
        self.all.values().map(Borrow::borrow)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut StepState> {
        self.forget_graph();
        self.all.values_mut().map(Arc::make_mut)
    }

    /// Those that fit, to be changed; the others stay shared.
    pub(super) fn change(
        &mut self,
        fits: impl Fn(&StepState) -> bool,
    ) -> impl Iterator<Item = &mut StepState> {
        if self.graph.is_some() && self.all.values().any(|entry| fits(entry)) {
            self.forget_graph();
        }
        self.all.values_mut().filter(move |entry| fits(entry)).map(Arc::make_mut)
    }

    pub(super) fn entry(&mut self, step: Address) -> Entry<'_, Address, Arc<StepState>> {
        self.forget_graph();
        self.all.entry(step)
    }

    /// Where the step stands; one that was never mentioned is added if that is wanted.
    pub(super) fn position(&self, step: &Address) -> Option<usize> {
        self.all.get_index_of(step)
    }

    pub(super) fn add(&mut self, step: Address) -> usize {
        self.forget_graph();
        self.all.insert_full(step, Arc::default()).0
    }

    pub(super) fn at(&self, position: usize) -> &StepState {
        &self.all[position]
    }

    pub(super) fn at_mut(&mut self, position: usize) -> &mut StepState {
        self.forget_graph();
        Arc::make_mut(&mut self.all[position])
    }
}

/// Every step with its state.
pub type Iter<'a> = std::iter::Map<
    map::Iter<'a, Address, Arc<StepState>>,
    fn((&'a Address, &'a Arc<StepState>)) -> (&'a Address, &'a StepState),
>;

impl<'a> IntoIterator for &'a Steps {
    type Item = (&'a Address, &'a StepState);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<Q: ?Sized + Hash + Equivalent<Address>> std::ops::Index<&Q> for Steps {
    type Output = StepState;

    fn index(&self, step: &Q) -> &StepState {
        &self.all[step]
    }
}

/// By the order of first mention.
impl std::ops::Index<usize> for Steps {
    type Output = StepState;

    fn index(&self, position: usize) -> &StepState {
        &self.all[position]
    }
}
