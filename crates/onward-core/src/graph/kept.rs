//! The nodes of a graph as they were kept: a row of one size for each, of which a node is made when
//! it is looked into. Of a large run that is only looked at nearly none is.
//!
//! Invariant: every row was looked through when the bytes were taken, so that each part of it is
//! there and leads to a node, a step or a declaration that exists. Steps are named by their place
//! in the state, which never changes.

use std::{ops::Range, sync::Arc};

use foldhash::fast::FixedState;
use indexmap::IndexMap;

use super::{DefId, Few, Graph, Node, NodeId, Role};
use crate::{
    address::Address,
    digest::Digest,
    state::Steps,
    workflow::packed::{Pack, take, text},
};

// The words of a row; the digest follows them.
const PLACE: usize = 0;
const DEF: usize = 1;
const PARENT: usize = 2;
const SOURCES: usize = 3;
const UNMET: usize = 4;
const UNSETTLED: usize = 5;
const IDS_AT: usize = 6;
const CHILDREN: usize = 7;
const NEEDS: usize = 8;
const DEPENDENTS: usize = 9;
const FLAGS: usize = 10;
const WORDS: usize = 11;
const WORD_BYTES: usize = 4;
const DIGEST_BYTES: usize = 16;
const ROW_BYTES: usize = WORDS * WORD_BYTES + DIGEST_BYTES;

const ROLES: [Role; 7] =
    [Role::Root, Role::Leaf, Role::Group, Role::Each, Role::Loop, Role::Item, Role::Turn];
const OPEN: u32 = 1 << 3;
const SETTLED: u32 = 1 << 4;
const DIGEST: u32 = 1 << 5;
const ROLE: u32 = 0b111;

/// See the module.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Arc<Vec<u8>>,
    rows: Range<usize>,
    ids: Range<usize>,
    /// Their names, as they were when these were taken.
    steps: Steps,
    /// By the place of a step, 0 = no node is of it; else its number and one.
    by_place: Vec<u32>,
    /// Nodes that the state has no step of.
    others: IndexMap<Address, NodeId, FixedState>,
}

#[derive(Clone, Copy)]
struct Row<'a>(&'a [u8]);

impl Row<'_> {
    fn word(self, index: usize) -> u32 {
        let at = index * WORD_BYTES;
        let word = self.0.get(at..at + WORD_BYTES).and_then(|it| it.try_into().ok());
        u32::from_le_bytes(word.unwrap_or_default())
    }

    fn has(self, flag: u32) -> bool {
        self.word(FLAGS) & flag != 0
    }

    fn digest(self) -> Option<Digest> {
        let bytes = self.0.get(WORDS * WORD_BYTES..)?.try_into().ok()?;
        self.has(DIGEST).then(|| Digest::from_bytes(bytes))
    }

    fn role(self) -> Role {
        ROLES.get((self.word(FLAGS) & ROLE) as usize).copied().unwrap_or(Role::Leaf)
    }
}

impl Kept {
    /// Takes what [`put`] gave: `at` is where it stands in `bytes`, which are held.
    pub(super) fn take(
        bytes: &Arc<Vec<u8>>,
        at: Range<usize>,
        defs: usize,
        steps: &Steps,
    ) -> Option<(Self, [Vec<NodeId>; 3])> {
        let end = at.end;
        let whole = bytes.get(at)?;
        let mut from = whole;
        let count = u32::unpack(&mut from)?;
        let place = |from: &[u8]| end - from.len();
        let rows = place(from)..place(from) + (count as usize).checked_mul(ROW_BYTES)?;
        take(&mut from, rows.len())?;
        let id_count = usize::unpack(&mut from)?;
        let ids = place(from)..place(from) + id_count.checked_mul(WORD_BYTES)?;
        take(&mut from, ids.len())?;
        let mut kept = Self {
            bytes: Arc::clone(bytes),
            rows,
            ids,
            steps: steps.names(),
            by_place: vec![0; steps.len()],
            others: IndexMap::default(),
        };
        let mut unnamed = kept.checked(count, defs)?;
        for _ in 0..usize::unpack(&mut from)? {
            let (id, name) = (u32::unpack(&mut from)?, Address::from_text(text(&mut from)?));
            let is_new = !kept.steps.contains_key(&name) && !kept.others.contains_key(&name);
            let has_no_place = id < count && kept.row(id as usize).word(PLACE) == 0;
            (is_new && has_no_place).then_some(())?;
            kept.others.insert(name, NodeId(id));
            unnamed = unnamed.checked_sub(1)?;
        }
        let mut ready = || {
            let ids: Vec<u32> = Vec::unpack(&mut from)?;
            let all = ids.into_iter().map(|id| (id < count).then_some(NodeId(id)));
            all.collect::<Option<Vec<NodeId>>>()
        };
        let ready = [ready()?, ready()?, ready()?];
        (from.is_empty() && count > 0 && unnamed == 0).then_some((kept, ready))
    }

    /// Looks through all rows, and counts those that no step names.
    fn checked(&mut self, count: u32, defs: usize) -> Option<usize> {
        let ids = self.bytes.get(self.ids.clone())?.as_chunks().0;
        if ids.iter().any(|id| u32::from_le_bytes(*id) >= count) {
            return None;
        }
        let id_count = ids.len() as u64;
        let mut unnamed = 0;
        for index in 0..count {
            let row = self.row(index as usize);
            let lists = [IDS_AT, CHILDREN, NEEDS, DEPENDENTS].map(|it| u64::from(row.word(it)));
            let is_right = row.word(DEF) as usize <= defs
                && row.word(PARENT) <= count
                && row.word(SOURCES) <= row.word(NEEDS)
                && lists.iter().sum::<u64>() <= id_count
                && (row.word(FLAGS) & ROLE) < 7;
            let place = row.word(PLACE);
            if !is_right {
                return None;
            }
            match place.checked_sub(1) {
                Some(place) => {
                    let node = self.by_place.get_mut(place as usize)?;
                    if *node != 0 {
                        return None;
                    }
                    *node = index + 1;
                }
                None => unnamed += 1,
            }
        }
        Some(unnamed)
    }

    fn row(&self, index: usize) -> Row<'_> {
        let at = self.rows.start + index * ROW_BYTES;
        Row(self.bytes.get(at..at + ROW_BYTES).unwrap_or_default())
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len() / ROW_BYTES
    }

    pub(super) fn find(&self, address: &Address) -> Option<NodeId> {
        match self.steps.find(address.as_str()) {
            Some((place, _)) => self.by_place.get(place)?.checked_sub(1).map(NodeId),
            None => self.others.get(address).copied().filter(|id| id.0 > 0),
        }
    }

    /// The place of the step that a settled leaf stands for, where that is of the run itself.
    pub(super) fn settled_top_leaf(&self, index: usize) -> Option<usize> {
        let row = self.row(index);
        let fits = row.has(SETTLED) && row.role() == Role::Leaf && row.word(PARENT) == 1;
        let place = row.word(PLACE).checked_sub(1)?;
        fits.then_some(place as usize)
    }

    pub(super) fn is_settled(&self, index: usize) -> bool {
        self.row(index).has(SETTLED)
    }

    pub(super) fn has_children(&self, index: usize) -> bool {
        self.row(index).word(CHILDREN) > 0
    }

    /// The node itself.
    pub(super) fn node(&self, index: usize) -> Node {
        let row = self.row(index);
        let named = row.word(PLACE).checked_sub(1).and_then(|it| self.steps.name(it as usize));
        let other = || {
            let is_it = |(_, id): &(&Address, &NodeId)| id.0 as usize == index;
            self.others.iter().find(is_it).map(|(name, _)| name)
        };
        let address = named.or_else(other).cloned().unwrap_or_else(Address::root);
        let mut at = row.word(IDS_AT) as usize;
        let mut list = |length: usize| {
            let from = self.ids.start + at * WORD_BYTES;
            let length = row.word(length) as usize;
            at += length;
            let ids = self.bytes.get(from..from + length * WORD_BYTES).unwrap_or_default();
            ids.as_chunks().0.iter().map(|id| NodeId(u32::from_le_bytes(*id)))
        };
        Node {
            address,
            def: DefId(row.word(DEF)),
            role: row.role(),
            parent: row.word(PARENT).checked_sub(1).map(NodeId),
            children: list(CHILDREN).collect(),
            needs: list(NEEDS).collect::<Few>(),
            sources: row.word(SOURCES),
            dependents: list(DEPENDENTS).collect::<Few>(),
            unmet: row.word(UNMET),
            unsettled: row.word(UNSETTLED),
            open: row.has(OPEN),
            settled: row.has(SETTLED),
            digest: row.digest(),
        }
    }
}

/// The graph as bytes. `None` where a number is too large.
pub(super) fn put(graph: &Graph, steps: &Steps) -> Option<Vec<u8>> {
    let mut to = Vec::with_capacity(96 * graph.len());
    let (mut ids, mut others) = (Vec::new(), Vec::new());
    graph.len().pack(&mut to);
    for index in 0..graph.len() {
        let node = graph.nodes.get(index);
        let place = steps.find(node.address.as_str()).map(|(place, _)| place);
        if place.is_none() {
            others.push((index, &node.address));
        }
        let role = ROLES.iter().position(|it| *it == node.role)?;
        let flags = [(OPEN, node.open), (SETTLED, node.settled), (DIGEST, node.digest.is_some())];
        let flags = flags.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag);
        let mut row = [0_u32; WORDS];
        row[PLACE] = place.map_or(Some(0), |it| u32::try_from(it + 1).ok())?;
        row[DEF] = node.def.0;
        row[PARENT] = node.parent.map_or(0, |it| it.0 + 1);
        (row[SOURCES], row[UNMET], row[UNSETTLED]) = (node.sources, node.unmet, node.unsettled);
        row[IDS_AT] = u32::try_from(ids.len()).ok()?;
        let lists: [&[NodeId]; 3] = [&node.children, &node.needs, &node.dependents];
        for (length, list) in [CHILDREN, NEEDS, DEPENDENTS].into_iter().zip(lists) {
            row[length] = u32::try_from(list.len()).ok()?;
            ids.extend(list.iter().map(|id| id.0));
        }
        row[FLAGS] = flags.fold(u32::try_from(role).ok()?, |all, flag| all | flag);
        to.extend(row.iter().flat_map(|word| word.to_le_bytes()));
        let missing = [0; DIGEST_BYTES];
        to.extend(node.digest.as_ref().map_or(&missing[..], Digest::as_bytes));
    }
    ids.len().pack(&mut to);
    to.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    others.len().pack(&mut to);
    for (index, name) in others {
        index.pack(&mut to);
        name.as_str().len().pack(&mut to);
        to.extend(name.as_str().as_bytes());
    }
    for ready in [&graph.ready_work, &graph.ready_control, &graph.open_gates] {
        ready.iter().map(|id| id.0).collect::<Vec<u32>>().pack(&mut to);
    }
    Some(to)
}
