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
use crate::address::Address;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps(IndexMap<Address, Arc<StepState>, FixedState>);

impl Steps {
    pub(super) fn with_capacity(count: usize) -> Self {
        Self(IndexMap::with_capacity_and_hasher(count, FixedState::default()))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get<Q: ?Sized + Hash + Equivalent<Address>>(&self, step: &Q) -> Option<&StepState> {
        self.0.get(step).map(Borrow::borrow)
    }

    pub fn get_mut<Q: ?Sized + Hash + Equivalent<Address>>(
        &mut self,
        step: &Q,
    ) -> Option<&mut StepState> {
        self.0.get_mut(step).map(Arc::make_mut)
    }

    pub fn contains_key<Q: ?Sized + Hash + Equivalent<Address>>(&self, step: &Q) -> bool {
        self.0.contains_key(step)
    }

    pub fn insert(&mut self, step: Address, entry: StepState) -> Option<StepState> {
        self.0.insert(step, Arc::new(entry)).map(Arc::unwrap_or_clone)
    }

    pub fn iter(&self) -> Iter<'_> {
        self.0.iter().map(|(step, entry)| (step, entry))
    }

    pub fn keys(&self) -> map::Keys<'_, Address, Arc<StepState>> {
        self.0.keys()
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &StepState> + ExactSizeIterator {
        self.0.values().map(Borrow::borrow)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut StepState> {
        self.0.values_mut().map(Arc::make_mut)
    }

    /// Those that fit, to be changed; the others stay shared.
    pub(super) fn change(
        &mut self,
        fits: impl Fn(&StepState) -> bool,
    ) -> impl Iterator<Item = &mut StepState> {
        self.0.values_mut().filter(move |entry| fits(entry)).map(Arc::make_mut)
    }

    pub(super) fn entry(&mut self, step: Address) -> Entry<'_, Address, Arc<StepState>> {
        self.0.entry(step)
    }

    /// Where the step stands; one that was never mentioned is added if that is wanted.
    pub(super) fn position(&self, step: &Address) -> Option<usize> {
        self.0.get_index_of(step)
    }

    pub(super) fn add(&mut self, step: Address) -> usize {
        self.0.insert_full(step, Arc::default()).0
    }

    pub(super) fn at(&self, position: usize) -> &StepState {
        &self.0[position]
    }

    pub(super) fn at_mut(&mut self, position: usize) -> &mut StepState {
        Arc::make_mut(&mut self.0[position])
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
        &self.0[step]
    }
}

/// By the order of first mention.
impl std::ops::Index<usize> for Steps {
    type Output = StepState;

    fn index(&self, position: usize) -> &StepState {
        &self.0[position]
    }
}
