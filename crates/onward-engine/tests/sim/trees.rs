//! Snapshots of the simulated project: whole trees in memory, durable as soon as they are named.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    digest::Digest,
    event::{FileKind, Revert},
};
use onward_engine::world::{Change, Content};

use crate::disk::Disk;

type Tree = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Trees {
    by_id: BTreeMap<String, Tree>,
}

impl Trees {
    /// The same tree has the same name.
    pub(crate) fn record(&mut self, disk: &Disk) -> String {
        self.keep(tree_of(disk))
    }

    /// The tree as it is once these are done.
    pub(crate) fn record_without(&mut self, disk: &Disk, reverts: &[Revert]) -> String {
        let mut tree = tree_of(disk);
        for revert in reverts {
            match revert.base {
                None => tree.remove(&revert.path),
                Some(base) => {
                    let bytes = self.content(base).expect("a base is in some snapshot");
                    tree.insert(revert.path.clone(), bytes)
                }
            };
        }
        self.keep(tree)
    }

    fn keep(&mut self, tree: Tree) -> String {
        let parts = tree.iter().flat_map(|(path, bytes)| [path.as_bytes(), bytes.as_slice()]);
        let id = Digest::of_parts(parts.collect::<Vec<_>>()).to_string();
        self.by_id.insert(id.clone(), tree);
        id
    }

    pub(crate) fn content(&self, digest: Digest) -> Option<Vec<u8>> {
        let mut all = self.by_id.values().flat_map(BTreeMap::values);
        all.find(|bytes| Digest::of(bytes) == digest).cloned()
    }

    pub(crate) fn footprint(&self, base: &str, after: &str) -> Vec<String> {
        let (base, after) = (&self.by_id[base], &self.by_id[after]);
        let paths: BTreeSet<&String> = base.keys().chain(after.keys()).collect();
        let differs = paths.into_iter().filter(|path| base.get(*path) != after.get(*path));
        differs.cloned().collect()
    }

    pub(crate) fn changes(&self, disk: &Disk, base: &str, after: Option<&str>) -> Vec<Change> {
        let (base, now) = (&self.by_id[base], tree_of(disk));
        let left = after.map_or(&now, |after| &self.by_id[after]);
        let paths: BTreeSet<&String> = base.keys().chain(left.keys()).collect();
        let mut changes = Vec::new();
        for path in paths {
            if base.get(path) == left.get(path) || base.get(path) == now.get(path) {
                continue;
            }
            let content = |tree: &Tree| -> Option<Content> {
                Some((Digest::of(tree.get(path)?), FileKind::Plain))
            };
            changes.push(Change {
                path: path.clone(),
                left: content(&now),
                base: content(base),
                base_at: "base".to_owned(),
                changed_ns: disk.mtime_us(&format!("project/{path}")).map(|it| it * 1000),
                moved: left.get(path) != now.get(path),
            });
        }
        changes
    }
}

fn tree_of(disk: &Disk) -> Tree {
    let names = disk.names().filter_map(|name| name.strip_prefix("project/"));
    let bytes = |path: &str| disk.read(&format!("project/{path}")).expect("listed").to_vec();
    names.map(|path| (path.to_owned(), bytes(path))).collect()
}
