//! What people made of files, as far as it is kept already, or is no person's work after all.
//!
//! Invariant: a version is known here until a step has replaced it. From then on the same content
//! is asked about again when a person brings it back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{digest::Digest, event::Revert};

/// By path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ByHand(BTreeMap<String, Version>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Version {
    hash: Digest,
    /// `None` = a power cut left it.
    rescued: Option<Rescued>,
}

/// A person's version in a rescue; a step to come replaces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rescued {
    pub revert: Revert,
    /// A person accepted that it is replaced.
    pub is_accepted: bool,
}

impl ByHand {
    /// Whether this version is in a rescue, or no person's work.
    pub fn knows(&self, path: &str, hash: Digest) -> bool {
        self.0.get(path).is_some_and(|it| it.hash == hash)
    }

    /// Where this version is kept.
    pub fn rescued(&self, path: &str, hash: Digest) -> Option<&Rescued> {
        self.0.get(path).filter(|it| it.hash == hash)?.rescued.as_ref()
    }

    /// The paths of which a version is in a rescue.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, it)| it.rescued.is_some()).map(|(path, _)| path.as_str())
    }

    pub(super) fn know_damage(&mut self, path: &str, hash: Digest) {
        self.0.insert(path.to_owned(), Version { hash, rescued: None });
    }

    /// Those of these that are kept as they are.
    pub(super) fn keep(&mut self, reverts: &[Revert], is_accepted: bool) {
        for revert in reverts.iter().filter(|it| it.keeps_in_place()) {
            let Some(hash) = revert.left else { continue };
            // A later resume tells of it once more.
            let before = self.rescued(&revert.path, hash);
            let before = before.filter(|it| it.revert.rescue == revert.rescue);
            let is_accepted = before.map_or(is_accepted, |it| it.is_accepted);
            let rescued = Some(Rescued { revert: revert.clone(), is_accepted });
            self.0.insert(revert.path.clone(), Version { hash, rescued });
        }
    }

    /// A step was done, and left this there.
    pub(super) fn replace(&mut self, path: &str, now: Option<Digest>) {
        if now.is_none_or(|now| !self.knows(path, now)) {
            self.0.remove(path);
        }
    }
}
