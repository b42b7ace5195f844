//! The step instances of a run, in order of first mention.
//!
//! Invariant: two copies that differ in a few steps share the others. A plan is made on a copy of
//! the state, and a large run would not want to be held twice for it. A step that was kept as
//! [`Plain`] is made when it is first looked into, and is the same made or not; a look at a large
//! run makes none of them, and asks for a [`Glance`] instead.

use std::{
    borrow::Cow,
    hash::Hash,
    sync::{Arc, OnceLock},
};

use foldhash::fast::FixedState;
use indexmap::{Equivalent, IndexMap, map};

use super::{Phase, StepState, packed::key_of_plain, plain::Plain};
use crate::{address::Address, graph::PackedGraph, time::Timestamp};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    all: Arc<IndexMap<Address, Slot, FixedState>>,
    /// What steps are made of that no one has looked into.
    kept: Arc<Vec<u8>>,
    /// The graph of exactly these steps, where one was kept: forgotten as soon as one of them may
    /// be changed. It says nothing that they do not.
    graph: Option<Arc<PackedGraph>>,
}

/// One step.
#[derive(Clone, Debug)]
struct Slot {
    made: OnceLock<Arc<StepState>>,
    /// Where its record stands, while it was not changed; a record is never empty.
    at: u32,
    length: u32,
}

impl Slot {
    fn new(entry: StepState) -> Self {
        Self { made: OnceLock::from(Arc::new(entry)), at: 0, length: 0 }
    }

    #[inline]
    fn plain<'a>(&self, kept: &'a [u8]) -> Plain<'a> {
        let at = self.at as usize;
        Plain::known(&kept[at..at + self.length as usize])
    }

    #[inline]
    fn glance<'a>(&'a self, kept: &'a [u8]) -> Glance<'a> {
        match self.made.get() {
            Some(entry) => Glance::Whole(entry),
            None => Glance::Plain(self.plain(kept)),
        }
    }

    /// Gives up what was made, if that is all in a record: the one it was made of, or a new one.
    fn settle(&mut self, kept: &mut Vec<u8>) {
        let Some(entry) = self.made.get() else { return };
        if self.length == 0 {
            let before = kept.len();
            let Some((at, length)) = put(entry, kept) else {
                kept.truncate(before);
                return;
            };
            (self.at, self.length) = (at, length);
        }
        self.made = OnceLock::new();
    }

    fn entry(&self, kept: &[u8]) -> &StepState {
        self.made.get_or_init(|| Arc::new(self.plain(kept).made()))
    }

    fn entry_mut(&mut self, kept: &[u8]) -> &mut StepState {
        if self.made.get().is_none() {
            *self = Self::new(self.plain(kept).made());
        }
        Arc::make_mut(self.made.get_mut().expect("it was made just now"))
    }
}

/// Puts the record of a step there, if that is all of it, and says where it stands.
fn put(entry: &StepState, kept: &mut Vec<u8>) -> Option<(u32, u32)> {
    let at = kept.len();
    Plain::put(entry, key_of_plain(entry)?, kept)?;
    Some((u32::try_from(at).ok()?, u32::try_from(kept.len() - at).ok()?))
}

/// A step as far as it is known without making it.
#[derive(Clone, Copy, Debug)]
pub enum Glance<'a> {
    /// It is done, and that is all that is to be told of it.
    Plain(Plain<'a>),
    Whole(&'a StepState),
}

impl<'a> Glance<'a> {
    #[inline]
    pub fn phase(self) -> Phase {
        match self {
            Self::Plain(_) => Phase::Done,
            Self::Whole(entry) => entry.phase,
        }
    }

    #[inline]
    pub fn attempts(self) -> u32 {
        match self {
            Self::Plain(plain) => plain.attempts(),
            Self::Whole(entry) => entry.attempts,
        }
    }

    #[inline]
    pub fn started_at(self) -> Timestamp {
        match self {
            Self::Plain(plain) => plain.started_at(),
            Self::Whole(entry) => entry.started_at,
        }
    }

    #[inline]
    pub fn ended_at(self) -> Timestamp {
        match self {
            Self::Plain(plain) => plain.ended_at(),
            Self::Whole(entry) => entry.ended_at,
        }
    }

    /// `None` for a step of which no more is to be told than that it is done.
    #[inline]
    pub fn whole(self) -> Option<&'a StepState> {
        match self {
            Self::Plain(_) => None,
            Self::Whole(entry) => Some(entry),
        }
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Self) -> bool {
        let is_there = |(step, entry): (&Address, &StepState)| other.get(step) == Some(entry);
        // Copies of each other are not looked into.
        self.are_shared_with(other) || self.len() == other.len() && self.iter().all(is_there)
    }
}

impl Steps {
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

    /// Holds as records again what was made of them, and what became of steps that are done since:
    /// they are the same, and smaller. Those that another copy shares are left alone.
    pub(super) fn settle(&mut self) {
        let (Some(all), Some(kept)) = (Arc::get_mut(&mut self.all), Arc::get_mut(&mut self.kept))
        else {
            return;
        };
        for slot in all.values_mut() {
            slot.settle(kept);
        }
    }

    /// The same steps, for one who wants to know their names only.
    pub(crate) fn names(&self) -> Self {
        Self { graph: None, ..self.clone() }
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
        self.all.get(step).map(|slot| slot.entry(&self.kept))
    }

    /// The same for one who is done with it soon: what is made for it is not held.
    pub fn aside<Q: ?Sized + Hash + Equivalent<Address>>(
        &self,
        step: &Q,
    ) -> Option<Cow<'_, StepState>> {
        Some(match self.glance(step)? {
            Glance::Plain(plain) => Cow::Owned(plain.made()),
            Glance::Whole(entry) => Cow::Borrowed(entry),
        })
    }

    /// The same without making it.
    pub fn glance<Q: ?Sized + Hash + Equivalent<Address>>(&self, step: &Q) -> Option<Glance<'_>> {
        self.all.get(step).map(|slot| slot.glance(&self.kept))
    }

    pub fn get_mut<Q: ?Sized + Hash + Equivalent<Address>>(
        &mut self,
        step: &Q,
    ) -> Option<&mut StepState> {
        self.position(step).map(|place| self.at_mut(place))
    }

    /// The step with its place, by its address as text.
    pub fn find(&self, step: &str) -> Option<(usize, Glance<'_>)> {
        let (place, _, slot) = self.all.get_full(step)?;
        Some((place, slot.glance(&self.kept)))
    }

    pub fn contains_key<Q: ?Sized + Hash + Equivalent<Address>>(&self, step: &Q) -> bool {
        self.all.contains_key(step)
    }

    pub fn insert(&mut self, step: Address, entry: StepState) -> Option<StepState> {
        self.forget_graph();
        let before = Arc::make_mut(&mut self.all).insert(step, Slot::new(entry));
        before.map(|slot| slot.entry(&self.kept).clone())
    }

    /// Each with its state; those that were not are made for it.
    pub fn iter(&self) -> Iter<'_> {
        Iter { slots: self.all.iter(), kept: &self.kept }
    }

    /// Each as far as it is known without making it.
    pub fn glances(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&Address, Glance<'_>)> + ExactSizeIterator {
        self.all.iter().map(|(step, slot)| (step, slot.glance(&self.kept)))
    }

    /// The glance at the step in this place.
    #[inline]
    pub fn glance_at(&self, place: usize) -> Glance<'_> {
        self.all[place].glance(&self.kept)
    }

    /// Those of which more is to be told than that they are done. One more or less of the others
    /// may be among them.
    pub fn noteworthy(&self) -> impl DoubleEndedIterator<Item = (&Address, &StepState)> {
        self.glances().filter_map(|(step, it)| Some((step, it.whole()?)))
    }

    /// What each of them is at.
    pub fn phases(&self) -> impl DoubleEndedIterator<Item = Phase> + ExactSizeIterator {
        self.glances().map(|(_, it)| it.phase())
    }

    /// Whether two copies are known to be the same steps in the same state.
    pub(crate) fn are_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Address> + ExactSizeIterator {
        self.all.keys()
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &StepState> + ExactSizeIterator {
        self.all.values().map(|slot| slot.entry(&self.kept))
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut StepState> {
        self.forget_graph();
        let kept = &self.kept;
        Arc::make_mut(&mut self.all).values_mut().map(|slot| slot.entry_mut(kept))
    }

    /// Those in this phase, to be changed; the others stay shared.
    pub(super) fn change(&mut self, phase: Phase) -> impl Iterator<Item = &mut StepState> {
        let any = self.phases().any(|it| it == phase);
        if any {
            self.forget_graph();
        }
        let kept = &self.kept;
        let all = any.then(|| Arc::make_mut(&mut self.all).values_mut());
        let fits = move |slot: &&mut Slot| slot.glance(kept).phase() == phase;
        all.into_iter().flatten().filter(fits).map(|slot| slot.entry_mut(kept))
    }

    /// Where the step stands.
    pub(super) fn position<Q: ?Sized + Hash + Equivalent<Address>>(
        &self,
        step: &Q,
    ) -> Option<usize> {
        self.all.get_index_of(step)
    }

    /// Adds one that was never mentioned.
    pub(super) fn add(&mut self, step: Address) -> usize {
        self.forget_graph();
        Arc::make_mut(&mut self.all).insert_full(step, Slot::new(StepState::default())).0
    }

    pub(super) fn at(&self, position: usize) -> &StepState {
        self.all[position].entry(&self.kept)
    }

    pub(super) fn at_mut(&mut self, position: usize) -> &mut StepState {
        self.forget_graph();
        Arc::make_mut(&mut self.all)[position].entry_mut(&self.kept)
    }
}

/// Steps that are added one by one, of which some are not made yet.
pub(super) struct Kept {
    all: IndexMap<Address, Slot, FixedState>,
    bytes: Arc<Vec<u8>>,
}

impl Kept {
    pub(super) fn of(bytes: Arc<Vec<u8>>, count: usize) -> Self {
        let all = IndexMap::with_capacity_and_hasher(count, FixedState::default());
        Self { all, bytes }
    }

    /// Adds a step whose record stands there; `None` where there is none, or it was added before.
    pub(super) fn add_plain(&mut self, step: &str, at: usize, length: usize) -> Option<()> {
        Plain::checked(self.bytes.get(at..at.checked_add(length)?)?)?;
        let (at, length) = (u32::try_from(at).ok()?, u32::try_from(length).ok()?);
        let slot = Slot { made: OnceLock::new(), at, length };
        self.all.insert(Address::from_text(step), slot).is_none().then_some(())
    }

    pub(super) fn add_whole(&mut self, step: &str, entry: StepState) -> Option<()> {
        let before = self.all.insert(Address::from_text(step), Slot::new(entry));
        before.is_none().then_some(())
    }

    pub(super) fn steps(self) -> Steps {
        Steps { all: Arc::new(self.all), kept: self.bytes, graph: None }
    }
}

/// Every step with its state.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    slots: map::Iter<'a, Address, Slot>,
    kept: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Address, &'a StepState);

    fn next(&mut self) -> Option<Self::Item> {
        self.slots.next().map(|(step, slot)| (step, slot.entry(self.kept)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.slots.next_back().map(|(step, slot)| (step, slot.entry(self.kept)))
    }
}

impl ExactSizeIterator for Iter<'_> {}

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
        self.all[step].entry(&self.kept)
    }
}

/// By the order of first mention.
impl std::ops::Index<usize> for Steps {
    type Output = StepState;

    fn index(&self, position: usize) -> &StepState {
        self.at(position)
    }
}
