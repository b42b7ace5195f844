//! Links that come or go with an undo, and what stands where a directory was.
//!
//! Invariant: a path below such a link is not what lies behind it. While the link stands, there is
//! nothing at the path; what lies behind has a name of its own.

use std::collections::BTreeSet;

use onward_core::event::{FileKind, Revert};

use crate::world::{Content, Stop, World};

/// The paths of one undo at which a link stands before or after it, and not both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links<'a>(BTreeSet<&'a str>);

impl<'a> Links<'a> {
    pub(crate) fn of(reverts: impl IntoIterator<Item = &'a Revert>) -> Self {
        Self::among(reverts.into_iter().map(|it| {
            let left = it.left.map(|_| it.left_kind);
            (it.path.as_str(), left, it.base.map(|_| it.base_kind))
        }))
    }

    /// Each path, and what it is before and after.
    pub(crate) fn among(
        all: impl Iterator<Item = (&'a str, Option<FileKind>, Option<FileKind>)>,
    ) -> Self {
        let is_link = |kind: Option<FileKind>| kind == Some(FileKind::Link);
        Self(all.filter(|it| is_link(it.1) != is_link(it.2)).map(|it| it.0).collect())
    }

    /// Whether one of them stands above the path now.
    pub(crate) fn hide<W: World>(&self, world: &mut W, path: &str) -> Result<bool, Stop> {
        if self.0.is_empty() {
            return Ok(false);
        }
        for above in path.match_indices('/').map(|(at, _)| &path[..at]) {
            let is_named = self.0.contains(above);
            if is_named && world.look(above)?.is_some_and(|it| it.kind == FileKind::Link) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a path holds.
    pub(crate) fn look<W: World>(
        &self,
        world: &mut W,
        path: &str,
    ) -> Result<Option<Content>, Stop> {
        if self.hide(world, path)? {
            return Ok(None);
        }
        Ok(world.look(path)?.map(crate::world::Looked::content))
    }
}

/// What stands in the place of a directory above a path, so that nothing can be at the path.
pub(super) fn instead_of_dir<W: World>(world: &mut W, path: &str) -> Result<Option<String>, Stop> {
    let is_above =
        |it: &String| path.strip_prefix(it.as_str()).is_some_and(|it| it.starts_with('/'));
    Ok(world.in_the_way(path)?.into_iter().find(is_above))
}
