//! Snapshots of the simulated trees: whole trees in memory, durable as soon as they are named.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use onward_core::{
    digest::Digest,
    event::{FileKind, Revert},
};
use onward_engine::world::{Change, Content};

use crate::{disk::Disk, repo::Repo};

/// By path, as the tree names it.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Trees {
    by_id: BTreeMap<String, Rc<Shot>>,
    /// The newest snapshot of each tree.
    tips: BTreeMap<String, String>,
}

/// A tree, and where its branch stood when it was looked at.
#[derive(Debug)]
struct Shot {
    files: Files,
    head: Option<String>,
}

impl Trees {
    /// The same tree on the same commit has the same name.
    pub(crate) fn record(&mut self, disk: &Disk, tree: &str, head: Option<String>) -> String {
        let id = self.keep(files_of(disk, tree), head);
        self.tips.insert(tree.to_owned(), id.clone());
        id
    }

    /// The tree as it is once these are done. It is no snapshot of its chain.
    pub(crate) fn record_without(
        &mut self,
        disk: &Disk,
        repo: &Repo,
        tree: &str,
        reverts: &[Revert],
    ) -> String {
        let mut files = files_of(disk, tree);
        for revert in reverts {
            let path = strip(tree, &revert.path).to_owned();
            match revert.base {
                None => files.remove(&path),
                Some(base) => {
                    let bytes = self.content(repo, base).expect("a base is in some snapshot");
                    files.insert(path, bytes)
                }
            };
        }
        self.keep(files, repo.head(disk, tree))
    }

    fn keep(&mut self, files: Files, head: Option<String>) -> String {
        let parts = files.iter().flat_map(|(path, bytes)| [path.as_bytes(), bytes.as_slice()]);
        let head_part = head.iter().map(String::as_bytes);
        let id = Digest::of_parts(parts.chain(head_part).collect::<Vec<_>>()).to_string();
        self.by_id.insert(id.clone(), Rc::new(Shot { files, head }));
        id
    }

    pub(crate) fn content(&self, repo: &Repo, digest: Digest) -> Option<Vec<u8>> {
        let shots = self.by_id.values().map(|shot| &shot.files);
        let mut all = shots.chain(repo.all_files()).flat_map(BTreeMap::values);
        all.find(|bytes| Digest::of(bytes) == digest).cloned()
    }

    pub(crate) fn footprint(&self, tree: &str, base: &str, after: &str) -> Vec<String> {
        let (base, after) = (&self.by_id[base].files, &self.by_id[after].files);
        differing(base, after).into_iter().map(|path| below(tree, path)).collect()
    }

    /// What the branch moved on to since the base was taken is no work of an attempt: such a
    /// path's base is what the branch has.
    pub(crate) fn changes(
        &self,
        disk: &Disk,
        repo: &Repo,
        tree: &str,
        (base, after): (&str, Option<&str>),
    ) -> Vec<Change> {
        let (Shot { files: base, head }, now) = (&*self.by_id[base], files_of(disk, tree));
        let left = after.map_or(&now, |after| &self.by_id[after].files);
        let stands = repo.head(disk, tree);
        let (was, is) = (repo.files(head.as_deref()), repo.files(stands.as_deref()));
        let on_branch: BTreeSet<&String> = differing(was, is);
        let mut changes = Vec::new();
        for path in differing(base, left) {
            let moved_on = on_branch.contains(path);
            let base = if moved_on { is.get(path) } else { base.get(path) };
            if base == now.get(path) {
                continue;
            }
            let content = |bytes: &Vec<u8>| -> Content { (Digest::of(bytes), FileKind::Plain) };
            let path_of_project = below(tree, path);
            let changed_ns = disk.mtime_us(&format!("project/{path_of_project}"));
            changes.push(Change {
                path: path_of_project,
                left: now.get(path).map(content),
                base: base.map(content),
                base_at: "base".to_owned(),
                changed_ns: changed_ns.map(|it| it * 1000),
                moved: left.get(path) != now.get(path),
            });
        }
        changes
    }

    /// The paths that are neither as the newest snapshot has them, nor as the branch that moved on
    /// since has them.
    pub(crate) fn moved(&self, disk: &Disk, repo: &Repo, tree: &str) -> Vec<String> {
        let Some(tip) = self.tips.get(tree).map(|id| &self.by_id[id]) else { return Vec::new() };
        let now = files_of(disk, tree);
        let stands = repo.head(disk, tree);
        let (was, is) = (repo.files(tip.head.as_deref()), repo.files(stands.as_deref()));
        let on_branch = differing(was, is);
        let is_told = |path: &&String| on_branch.contains(path) && is.get(*path) == now.get(*path);
        let moved = differing(&tip.files, &now).into_iter().filter(|path| !is_told(path));
        moved.map(|path| below(tree, path)).collect()
    }
}

/// What is in a tree, without what git keeps there and, in the project, without the worktrees.
pub(crate) fn files_of(disk: &Disk, tree: &str) -> Files {
    let prefix = below("project", &below(tree, ""));
    let names = disk.names().filter(|name| name.starts_with(&prefix));
    let paths = names.map(|name| (&name[prefix.len()..], name));
    // What lies elsewhere on the machine has an absolute path.
    let own =
        |path: &str| path != ".git" && !path.starts_with(".onward/") && !path.starts_with('/');
    let ours = paths.filter(|(path, _)| own(path));
    ours.map(|(path, name)| (path.to_owned(), disk.read(name).expect("listed").to_vec())).collect()
}

fn differing<'f>(one: &'f Files, other: &'f Files) -> BTreeSet<&'f String> {
    let paths: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).collect()
}

/// A path in a tree, as the project names it.
pub(crate) fn below(tree: &str, path: &str) -> String {
    if tree.is_empty() { path.to_owned() } else { format!("{tree}/{path}") }
}

fn strip<'p>(tree: &str, path: &'p str) -> &'p str {
    path.strip_prefix(tree).map_or(path, |rest| rest.trim_start_matches('/'))
}
