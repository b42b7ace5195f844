//! FIFOs where git reads its own files: it opens them, and waits for ever.
//!
//! Looked for only when a git sleeps: what is there is then no harm to a git that works.

use std::{
    fs,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

/// Names that git reads in every directory of a tree.
const IN_TREE: [&str; 2] = [".gitignore", ".gitattributes"];
/// Names that it reads in its own.
const IN_REPOSITORY: [&str; 5] =
    ["info/exclude", "info/attributes", "config", "HEAD", "packed-refs"];
/// More entries are not looked at.
const ENTRIES_MAX: usize = 500_000;

/// The first such FIFO in the repository that `dir` is in.
pub(super) fn among_what_git_reads(dir: &Path) -> Option<PathBuf> {
    let root = dir.ancestors().find(|it| it.join(".git").exists())?;
    let own = IN_REPOSITORY.map(|name| root.join(".git").join(name));
    own.into_iter().find(|it| is_fifo(it)).or_else(|| in_tree(root))
}

fn in_tree(root: &Path) -> Option<PathBuf> {
    let (mut dirs, mut entries) = (vec![root.to_owned()], 0);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).ok().into_iter().flatten().flatten() {
            entries += 1;
            let (name, kind) = (entry.file_name(), entry.file_type().ok()?);
            if kind.is_fifo() && IN_TREE.iter().any(|it| name == *it) {
                return Some(entry.path());
            }
            if kind.is_dir() && name != ".git" {
                dirs.push(entry.path());
            }
        }
        if entries > ENTRIES_MAX {
            return None;
        }
    }
    None
}

fn is_fifo(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}
