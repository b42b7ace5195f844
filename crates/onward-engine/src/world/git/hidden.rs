//! Files that git was told not to look at, by the bits `skip-worktree` and `assume-unchanged`.
//!
//! Invariant: the person's own index keeps its bits; they are cleared in copies of it alone. What a
//! sparse checkout leaves out of the tree is not there: no look and no undo brings it in.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use super::{
    command::{Git, GitError},
    snapshot::{FORGET, list},
};

/// What becomes of entries that git skips and that are not in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// They stay, for an index that a commit is made from.
    Stays,
    /// They go, for an index that says what the tree is.
    Goes,
}

/// Makes the index of `git`, which is a copy, hide nothing that is in the tree `dir`.
pub(super) fn uncover(dir: &Path, git: &Git, left_out: LeftOut) -> Result<(), GitError> {
    let out = git.run(&["ls-files", "-v", "-z"])?;
    let (mut assumed, mut skipped, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    for entry in out.split(|byte| *byte == 0) {
        // `TAG PATH`: `S` is skipped, and a small letter assumed to be unchanged.
        let (Some(tag), Some(path)) = (entry.first(), entry.get(2..)) else { continue };
        if tag.is_ascii_lowercase() {
            assumed.push(path);
        }
        if tag.eq_ignore_ascii_case(&b'S') {
            let list = if is_there(dir, path) { &mut skipped } else { &mut absent };
            list.push(path);
        }
    }
    let gone = match left_out {
        LeftOut::Stays => Vec::new(),
        LeftOut::Goes => absent,
    };
    let clear = |bit| ["update-index", bit, "-z", "--stdin"];
    for (args, paths) in [
        (clear("--no-assume-unchanged"), assumed),
        (clear("--no-skip-worktree"), skipped),
        (FORGET, gone),
    ] {
        if !paths.is_empty() {
            git.feed(&args, &list(&paths))?;
        }
    }
    Ok(())
}

/// What a sparse checkout leaves out of the tree, as `update-index --index-info` takes it.
pub(super) fn left_out(dir: &Path, prefix: &[u8], git: &Git) -> Result<Vec<u8>, GitError> {
    let out = git.run(&["ls-files", "-v", "--stage", "-z"])?;
    let mut found = Vec::new();
    for entry in out.split(|byte| *byte == 0) {
        // `TAG MODE OBJECT STAGE<TAB>PATH`
        let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
        let (about, path) = (&entry[..tab], &entry[tab + 1..]);
        let is_skipped = about.first().is_some_and(|tag| tag.eq_ignore_ascii_case(&b'S'));
        if is_skipped && !is_there(dir, path) {
            found.extend([&about[2..], b"\t", prefix, path, b"\0"].concat());
        }
    }
    Ok(found)
}

fn is_there(dir: &Path, path: &[u8]) -> bool {
    dir.join(OsStr::from_bytes(path)).symlink_metadata().is_ok()
}
