//! What is about to be undone, kept as a commit: its parent is the tree as it will be, its tree the
//! tree as it is, so `git show` gives the patch and `git cherry-pick` brings it back.

use std::collections::BTreeMap;

use onward_core::name;

use super::{
    command::GitError,
    compare::diff,
    head::head,
    snapshot::{Chain, commit, copy_index, move_ref, remove_if_there},
};

/// What an undo will do to the tree, in git's terms.
#[derive(Clone, Debug)]
pub struct Undoing<'a> {
    /// Such as `what draft, attempt 1, left`.
    pub title: &'a str,
    /// Counts up over the run.
    pub number: u32,
    /// Each path and the snapshot that has its base, or `None` where the path is to go.
    pub paths: BTreeMap<&'a str, Option<&'a str>>,
    pub also: &'a [String],
}

/// Durable when it is returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// The reference that keeps it.
    pub reference: String,
    pub commit: String,
    /// The tree as it will be when all is undone: what the next attempt starts from.
    pub undone: String,
    pub patch: Vec<u8>,
}

impl Chain {
    pub fn rescue(&self, what: &Undoing<'_>) -> Result<Rescued, GitError> {
        let _lock = self.lock()?;
        let left = self.record(what.also)?;
        let index = self.dir().join("index.undone");
        // No other process has one while we hold the chain: a killed git left it.
        remove_if_there(&index.with_added_extension("lock"))?;
        copy_index(self.index_to_start_from(), &index)?;
        let git = self.repo().writing(&index);
        let bases: std::collections::BTreeSet<&str> =
            what.paths.values().filter_map(|base| *base).collect();
        let mut trees = BTreeMap::new();
        for base in bases {
            trees.insert(base, diff(&git, &left.id, base)?);
        }
        let nothing = "0".repeat(left.id.len());
        let (mut gone, mut back) = (Vec::new(), Vec::new());
        for (path, base) in &what.paths {
            let path = name::bytes(path);
            let found = base.and_then(|base| trees.get(base)?.get(&*path));
            let (line, list) = match (base, found) {
                (None, _) | (Some(_), Some((_, None))) => (format!("0 {nothing}"), &mut gone),
                (Some(_), Some((_, Some(side)))) => {
                    (format!("{:o} {}", side.mode, side.object), &mut back)
                }
                // As it was already.
                (Some(_), None) => continue,
            };
            list.extend_from_slice(line.as_bytes());
            list.push(b'\t');
            list.extend_from_slice(&self.repo().prefix);
            list.extend_from_slice(&path);
            list.push(0);
        }
        // What goes makes room for what comes back.
        gone.append(&mut back);
        if !gone.is_empty() {
            git.feed(&["update-index", "--replace", "-z", "--index-info"], &gone)?;
        }
        let undone = git.line(&["write-tree"])?;
        let head = head(self.repo().dir()).and_then(|it| it.head);
        let parents: Vec<String> =
            self.tip()?.map(|tip| tip.id).into_iter().chain(head.clone()).collect();
        let title = format!("without {}", what.title);
        let parent = commit(&git, &undone, &parents, &title, head.as_deref())?;
        let id =
            commit(&git, &left.id, std::slice::from_ref(&parent), what.title, head.as_deref())?;
        let reference = format!("{}/{}", self.rescues(), what.number);
        move_ref(&git, &reference, &id)?;
        let patch = git.run(&[
            "diff-tree",
            "-p",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            &parent,
            &id,
        ])?;
        // git makes it for whom the user's mask says.
        remove_if_there(&index)?;
        Ok(Rescued { reference, commit: id, undone: parent, patch })
    }
}
