//! A few nodes, in the place where they are named: most nodes have a need or two, and a large graph
//! would not want a list of its own for each.

use std::ops::{Deref, DerefMut};

use super::NodeId;

/// So many stand in place.
const IN_PLACE: usize = 4;

/// Two with the same nodes in the same order are equal, wherever these stand.
#[derive(Clone, Debug)]
pub enum Few {
    InPlace(u8, [NodeId; IN_PLACE]),
    Listed(Vec<NodeId>),
}

impl Few {
    pub const NONE: Self = Self::InPlace(0, [NodeId(0); IN_PLACE]);

    pub(super) fn push(&mut self, id: NodeId) {
        match self {
            Self::InPlace(count, ids) => {
                if let Some(free) = ids.get_mut(usize::from(*count)) {
                    *free = id;
                    *count += 1;
                } else {
                    let mut listed = Vec::with_capacity(2 * IN_PLACE);
                    listed.extend(*ids);
                    listed.push(id);
                    *self = Self::Listed(listed);
                }
            }
            Self::Listed(ids) => ids.push(id),
        }
    }

    /// Each once, in the order of `by`.
    pub(super) fn sort_once<K: Ord>(&mut self, by: impl Fn(NodeId) -> K) {
        self.sort_unstable_by_key(|id| by(*id));
        let mut once = Self::NONE;
        for id in &*self {
            if once.last() != Some(id) {
                once.push(*id);
            }
        }
        *self = once;
    }
}

impl Deref for Few {
    type Target = [NodeId];

    fn deref(&self) -> &[NodeId] {
        match self {
            Self::InPlace(count, ids) => &ids[..usize::from(*count)],
            Self::Listed(ids) => ids,
        }
    }
}

impl DerefMut for Few {
    fn deref_mut(&mut self) -> &mut [NodeId] {
        match self {
            Self::InPlace(count, ids) => &mut ids[..usize::from(*count)],
            Self::Listed(ids) => ids,
        }
    }
}

impl PartialEq for Few {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Extend<NodeId> for Few {
    fn extend<I: IntoIterator<Item = NodeId>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| self.push(id));
    }
}

impl FromIterator<NodeId> for Few {
    fn from_iter<I: IntoIterator<Item = NodeId>>(ids: I) -> Self {
        let mut few = Self::NONE;
        few.extend(ids);
        few
    }
}

impl<'a> IntoIterator for &'a Few {
    type Item = &'a NodeId;
    type IntoIter = std::slice::Iter<'a, NodeId>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_the_same_list() {
        for count in 0..10 {
            let ids: Vec<NodeId> = (0..count).map(NodeId).collect();
            let few: Few = ids.iter().copied().collect();
            assert_eq!(&*few, &ids[..]);
            assert_eq!(few, Few::Listed(ids.clone()));
            let mut twice: Few = ids.iter().chain(&ids).copied().collect();
            twice.sort_once(|id| std::cmp::Reverse(id.0));
            assert_eq!(twice, Few::Listed(ids.into_iter().rev().collect()));
        }
    }
}
