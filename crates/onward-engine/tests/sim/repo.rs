//! A small model of a git repository: commits in memory, references and worktrees as files.
//!
//! Objects and references are durable when the command that wrote them returns, because that is
//! what the engine asks git for (`core.fsync=objects,reference`). What git does not sync, the
//! administration of worktrees and the files of a checkout, a power cut may take or tear.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    rc::Rc,
};

use onward_core::{address::Address, digest::Digest, worktree::WorktreePlace};
use onward_engine::world::Condition;

use crate::{disk::Disk, trees::Files};

#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) parent: Option<String>,
    pub(crate) files: Files,
    pub(crate) subject: String,
    /// The attempt of which trailers or reflog say that it made this.
    pub(crate) by: Option<(Address, u32)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Repo {
    commits: BTreeMap<String, Rc<Commit>>,
    nothing: Files,
}

/// What the first commit of a worktree says.
pub(crate) const START: &str = "what was not committed when the worktree was made";

/// The project's own.
pub(crate) const HEAD: &str = "git/HEAD";

/// The file that has a branch.
pub(crate) fn branch_name(branch: &str) -> String {
    format!("git/refs/heads/{branch}")
}

/// What git keeps of a worktree, in the repository and in its directory.
pub(crate) fn admin(place: &WorktreePlace, file: &str) -> String {
    format!("git/worktrees/{}/{file}", place.name())
}

pub(crate) fn dot_git(place: &WorktreePlace) -> String {
    format!("project/{}/.git", place.path)
}

pub(crate) fn dot_git_text(place: &WorktreePlace) -> String {
    format!("gitdir: {}", admin(place, ""))
}

/// The note that says that a worktree was made, and the one that says that it is about to be.
pub(crate) fn note(place: &WorktreePlace) -> String {
    format!("run/git/worktree-{}", place.name())
}

pub(crate) fn begun(place: &WorktreePlace) -> String {
    format!("run/git/making-{}", place.name())
}

/// The note that says that one which was gone is about to be made again.
pub(crate) fn remaking(place: &WorktreePlace) -> String {
    format!("run/git/remaking-{}", place.name())
}

impl Repo {
    /// Is there a repository at all?
    pub(crate) fn is_there(&self) -> bool {
        !self.commits.is_empty()
    }

    pub(crate) fn commit(&mut self, commit: Commit) -> String {
        let Commit { parent, files, subject, .. } = &commit;
        let mut text = format!("{parent:?} {subject}");
        for (path, bytes) in files {
            write!(text, " {path} {}", Digest::of(bytes)).unwrap();
        }
        let id = Digest::of(text.as_bytes()).to_string();
        self.commits.insert(id.clone(), Rc::new(commit));
        id
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Commit> {
        self.commits.get(id).map(Rc::as_ref)
    }

    pub(crate) fn files(&self, commit: Option<&str>) -> &Files {
        let found = commit.and_then(|id| self.commits.get(id));
        found.map_or(&self.nothing, |commit| &commit.files)
    }

    pub(crate) fn all_files(&self) -> impl Iterator<Item = &Files> {
        self.commits.values().map(|commit| &commit.files)
    }

    /// From a commit to the first one.
    pub(crate) fn history(&self, from: Option<&str>) -> Vec<&str> {
        let start = from.and_then(|id| self.commits.get_key_value(id));
        let older = |(_, commit): &(&String, &Rc<Commit>)| {
            self.commits.get_key_value(commit.parent.as_ref()?)
        };
        std::iter::successors(start, |it| older(it)).map(|(id, _)| id.as_str()).collect()
    }

    /// Every commit that a branch leads to, or the head of the project.
    pub(crate) fn reachable(&self, disk: &Disk) -> BTreeSet<String> {
        let branches = disk.names().filter(|name| name.starts_with("git/refs/heads/"));
        let mut tips: Vec<String> = branches
            .map(|name| String::from_utf8_lossy(disk.read(name).expect("listed")).into_owned())
            .collect();
        tips.extend(self.head(disk, ""));
        let all = tips.iter().flat_map(|tip| self.history(Some(tip)));
        all.map(str::to_owned).collect()
    }

    /// Where the branch of a tree stands. Of a worktree that git does not know, its branch is what
    /// there is.
    pub(crate) fn head(&self, disk: &Disk, tree: &str) -> Option<String> {
        if !self.is_there() {
            return None;
        }
        let Some(place) = WorktreePlace::at(tree) else { return resolve(disk, HEAD).1 };
        match condition(disk, &place) {
            Condition::Unmade => None,
            Condition::Missing { .. } | Condition::Unregistered { .. } => {
                tip_of(disk, &place.branch)
            }
            Condition::Fine | Condition::Elsewhere(_) | Condition::Busy(_) => {
                resolve(disk, &admin(&place, "HEAD")).1
            }
        }
    }
}

/// Where a branch stands.
pub(crate) fn tip_of(disk: &Disk, branch: &str) -> Option<String> {
    let bytes = disk.read(&branch_name(branch))?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// Branch and commit that a `HEAD` names.
pub(crate) fn resolve(disk: &Disk, head: &str) -> (Option<String>, Option<String>) {
    let text = String::from_utf8_lossy(disk.read(head).unwrap_or_default()).into_owned();
    match text.strip_prefix("ref: refs/heads/") {
        Some(branch) => (Some(branch.to_owned()), tip_of(disk, branch)),
        None => (None, Some(text)),
    }
}

/// Looks as `git/worktree.rs` does, at the same files in the same order.
pub(crate) fn condition(disk: &Disk, place: &WorktreePlace) -> Condition {
    if disk.read(&note(place)).is_none() {
        return Condition::Unmade;
    }
    let has_branch = tip_of(disk, &place.branch).is_some();
    let dir = format!("project/{}/", place.path);
    let is_half_made = disk.read(&remaking(place)).is_some();
    if is_half_made || !disk.names().any(|name| name.starts_with(&dir)) {
        return Condition::Missing { has_branch };
    }
    let points = disk.read(&dot_git(place)) == Some(dot_git_text(place).as_bytes());
    let head = admin(place, "HEAD");
    if !points || disk.read(&head).is_none() {
        return Condition::Unregistered { has_branch };
    }
    if disk.read(&admin(place, "rebase-merge")).is_some() {
        return Condition::Busy("rebase");
    }
    match resolve(disk, &head) {
        (Some(branch), Some(_)) if branch == place.branch => Condition::Fine,
        (branch, Some(commit)) => Condition::Elsewhere(branch.unwrap_or(commit)),
        (_, None) => Condition::Unregistered { has_branch },
    }
}
