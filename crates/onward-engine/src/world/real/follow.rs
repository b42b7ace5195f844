//! Logs that only ever grow: one that stays as it is is read once.
//!
//! Invariant: shared only while device, inode, size and both times are the same; a file that may be
//! replaced is read each time.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use globset::{Glob, GlobSet, GlobSetBuilder};
use onward_dialects::{Held, Version, seam::Card};

/// Files that only ever grow, as they were read last: while one stays as it is, it is not read
/// again.
#[derive(Debug, Default)]
pub(crate) struct Followed(BTreeMap<PathBuf, Arc<Held>>);

impl Followed {
    pub(super) fn known(&self, path: &Path, version: Version) -> Option<&Arc<Held>> {
        self.0.get(path).filter(|held| held.version() == Some(version))
    }

    pub(super) fn keep(&mut self, path: PathBuf, held: &Arc<Held>) {
        self.0.insert(path, held.clone());
    }
}

/// What reading a file needs besides its name.
pub(super) struct Reader<'a> {
    grows: GlobSet,
    /// So many bytes may still be read.
    pub(super) left: &'a mut u64,
    pub(super) followed: &'a mut Followed,
}

impl<'a> Reader<'a> {
    pub(super) fn new(card: &'static Card, left: &'a mut u64, followed: &'a mut Followed) -> Self {
        let mut grows = GlobSetBuilder::new();
        for glob in card.grows.iter().filter_map(|it| Glob::new(it).ok()) {
            grows.add(glob);
        }
        Self { grows: grows.build().unwrap_or_default(), left, followed }
    }

    /// What is there has this state; `None` for a file that may be replaced, which is read.
    pub(super) fn version(&self, name: &str, meta: &fs::Metadata) -> Option<Version> {
        let nanos = |seconds: i64, nanos: i64| {
            seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos).cast_unsigned()
        };
        let (written, changed) =
            (nanos(meta.mtime(), meta.mtime_nsec()), nanos(meta.ctime(), meta.ctime_nsec()));
        let version = Version([meta.dev(), meta.ino(), meta.len(), written, changed]);
        self.grows.is_match(name).then_some(version)
    }
}

#[cfg(test)]
mod tests {
    use onward_dialects::{dialect, seam::Site};

    use super::*;
    use crate::world::real::site::contents;

    #[test]
    fn a_log_that_has_not_grown_is_not_read_again_and_any_other_file_is() {
        let dir = tempfile::tempdir().unwrap();
        let card = dialect("agent-memory").unwrap().card();
        let site = Site::at(card, ".");
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for path in ["events/a/1.jsonl", "events/b/2.jsonl", "prd.md"] {
            write(path, "{}\n");
        }
        let mut followed = Followed::default();
        let mut read = || contents(dir.path(), &site, card, &mut followed).unwrap();
        let first = read();
        write("events/b/2.jsonl", "{}\n{}\n");
        let second = read();
        let is_shared = |path: &str| {
            let (one, two) = (first.held_in(0, path).unwrap(), second.held_in(0, path).unwrap());
            Arc::ptr_eq(one, two)
        };
        assert!(is_shared("events/a/1.jsonl"));
        assert!(!is_shared("events/b/2.jsonl") && !is_shared("prd.md"));
        assert_eq!(second.bytes("events/b/2.jsonl"), Some(b"{}\n{}\n".as_slice()));
    }
}
