//! Worktrees of the simulated world: the commands of the real one, each a call of its own at which
//! the machine can stop.
//!
//! Invariant: the order of what is written, and what of it is synced, is that of
//! `world/real/worktrees.rs` and `world/git/worktree.rs`.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    survey::CommitSeen,
    worktree::{WorktreePlace, subject},
};
use onward_engine::world::{Condition, Stop, WorktreeHead};

use super::SimWorld;
use crate::{
    repo::{
        Commit, START, admin, begun, branch_name, condition, dot_git, dot_git_text, note, remaking,
        resolve, tip_of,
    },
    trees::files_of,
};

impl SimWorld {
    pub(super) fn record_tree(&mut self, tree: &str) -> String {
        let head = self.repo.head(&self.disk, tree);
        self.trees.record(&self.disk, tree, head)
    }

    /// A worktree that is not there has no chain of snapshots.
    pub(super) fn has_tree(&self, tree: &str) -> bool {
        let Some(place) = WorktreePlace::at(tree) else { return true };
        match condition(&self.disk, &place) {
            Condition::Unmade | Condition::Missing { .. } => false,
            Condition::Fine
            | Condition::Unregistered { .. }
            | Condition::Elsewhere(_)
            | Condition::Busy(_) => true,
        }
    }

    /// Makes it, or makes it fit to work in again; else says why not.
    pub(super) fn enter(&mut self, place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        self.burn()?;
        let condition = condition(&self.disk, place);
        if condition != Condition::Unmade && self.disk.read(&begun(place)).is_some() {
            self.burn()?;
            self.disk.sync_dir(&begun(place));
            self.take_up(&begun(place))?;
        }
        match condition {
            Condition::Fine => return Ok(Ok(())),
            Condition::Unmade => return self.make_worktree(place),
            Condition::Missing { has_branch } => self.remake(place, has_branch)?,
            Condition::Unregistered { has_branch } => {
                if !has_branch {
                    self.begin_branch(place)?;
                }
                self.register(place)?;
                self.sync_checkout()?;
            }
            Condition::Elsewhere(_) => return self.attach(place),
            Condition::Busy(what) => return Ok(Err(format!("it is in the middle of a {what}"))),
        }
        Ok(Ok(()))
    }

    fn remake(&mut self, place: &WorktreePlace, has_branch: bool) -> Result<(), Stop> {
        if self.disk.read(&remaking(place)).is_some() {
            self.clear_away(place)?;
        }
        self.set_down(&remaking(place))?;
        if !has_branch {
            self.begin_branch(place)?;
        }
        self.check_out(place)?;
        self.sync_checkout()?;
        self.take_up(&remaking(place))
    }

    fn take_up(&mut self, note: &str) -> Result<(), Stop> {
        self.burn()?;
        self.disk.remove(note);
        self.burn()?;
        self.disk.sync_dir(note);
        Ok(())
    }

    fn clear_away(&mut self, place: &WorktreePlace) -> Result<(), Stop> {
        let dir = format!("project/{}/", place.path);
        let there: Vec<String> =
            self.disk.names().filter(|name| name.starts_with(&dir)).cloned().collect();
        for name in there {
            self.burn()?;
            self.disk.remove(&name);
        }
        Ok(())
    }

    fn sync_checkout(&mut self) -> Result<(), Stop> {
        self.burn()?;
        self.disk.sync_all();
        Ok(())
    }

    fn make_worktree(&mut self, place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        let dir = format!("project/{}/", place.path);
        if self.disk.read(&begun(place)).is_some() {
            self.clear_away(place)?;
        } else if self.disk.names().any(|name| name.starts_with(&dir)) {
            return Ok(Err("something else is in its place".to_owned()));
        }
        self.set_down(&begun(place))?;
        if !self.has_work(place) {
            self.begin_branch(place)?;
        }
        self.check_out(place)?;
        self.sync_checkout()?;
        self.set_down(&note(place))?;
        self.burn()?;
        self.disk.remove(&begun(place));
        Ok(Ok(()))
    }

    /// A note counts by its name alone.
    fn set_down(&mut self, note: &str) -> Result<(), Stop> {
        self.burn()?;
        self.disk.write(note, b"branch", self.now_us);
        self.burn()?;
        self.disk.sync_dir(note);
        Ok(())
    }

    fn has_work(&self, place: &WorktreePlace) -> bool {
        let Some(tip) = tip_of(&self.disk, &place.branch) else { return false };
        let is_start = self.repo.get(&tip).is_none_or(|commit| commit.subject == START);
        Some(tip) != self.repo.head(&self.disk, "") && !is_start
    }

    /// With the tree as it is, what is not committed included.
    fn begin_branch(&mut self, place: &WorktreePlace) -> Result<(), Stop> {
        self.burn()?;
        let (head, files) = (self.repo.head(&self.disk, ""), files_of(&self.disk, ""));
        let start = match head {
            Some(head) if *self.repo.files(Some(&head)) == files => head,
            parent => {
                self.repo.commit(Commit { parent, files, subject: START.to_owned(), by: None })
            }
        };
        self.move_ref(&place.branch, &start)
    }

    pub(super) fn move_ref(&mut self, branch: &str, commit: &str) -> Result<(), Stop> {
        self.burn()?;
        self.disk.write_durably(&branch_name(branch), commit.as_bytes(), self.now_us);
        Ok(())
    }

    /// `git worktree add`: nothing of it is synced.
    fn check_out(&mut self, place: &WorktreePlace) -> Result<(), Stop> {
        self.register(place)?;
        let tip = tip_of(&self.disk, &place.branch);
        for (path, bytes) in self.repo.files(tip.as_deref()).clone() {
            let name = format!("project/{}/{path}", place.path);
            self.burn()?;
            self.disk.write(&name, &bytes, self.now_us);
        }
        Ok(())
    }

    fn register(&mut self, place: &WorktreePlace) -> Result<(), Stop> {
        let head = format!("ref: refs/heads/{}", place.branch);
        self.burn()?;
        self.disk.remove(&admin(place, "rebase-merge"));
        self.disk.write(&admin(place, "HEAD"), head.as_bytes(), self.now_us);
        self.burn()?;
        self.disk.write(&dot_git(place), dot_git_text(place).as_bytes(), self.now_us);
        Ok(())
    }

    /// Back onto its branch, if what it is on follows from that.
    fn attach(&mut self, place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        let (_, head) = resolve(&self.disk, &admin(place, "HEAD"));
        let head = head.unwrap_or_default();
        if let Some(tip) = tip_of(&self.disk, &place.branch)
            && !self.repo.history(Some(&head)).contains(&tip.as_str())
        {
            return Ok(Err(format!("it is not on {}, nor on what follows", place.branch)));
        }
        self.move_ref(&place.branch, &head)?;
        self.burn()?;
        let text = format!("ref: refs/heads/{}", place.branch);
        self.disk.write_durably(&admin(place, "HEAD"), text.as_bytes(), self.now_us);
        Ok(Ok(()))
    }

    pub(super) fn commit_all(
        &mut self,
        place: &WorktreePlace,
        step: &Address,
        attempt: u32,
    ) -> Result<Result<Option<String>, String>, Stop> {
        if let Err(why) = self.enter(place)? {
            return Ok(Err(why));
        }
        self.burn()?;
        let by = Some((step.clone(), attempt));
        let id = self.commit_tree(&place.path, subject(step, attempt), by);
        self.move_ref(&place.branch, &id)?;
        Ok(Ok(Some(id)))
    }

    /// The commit of a tree as it is: the head of its branch while nothing is new.
    pub(super) fn commit_tree(
        &mut self,
        tree: &str,
        subject: String,
        by: Option<(Address, u32)>,
    ) -> String {
        let (parent, files) = (self.repo.head(&self.disk, tree), files_of(&self.disk, tree));
        match parent {
            Some(parent) if *self.repo.files(Some(&parent)) == files => parent,
            parent => self.repo.commit(Commit { parent, files, subject, by }),
        }
    }

    /// A commit that was made again, by a rebase say, still has its trailers.
    pub(super) fn lost(&self, heads: &BTreeMap<Address, WorktreeHead>) -> BTreeSet<Address> {
        let reachable = self.repo.reachable(&self.disk);
        let is_by_trailer = |step: &Address, attempt: u32| {
            let by = reachable.iter().filter_map(|id| self.repo.get(id)?.by.as_ref());
            by.into_iter().any(|by| by.0 == *step && by.1 == attempt)
        };
        let lost = heads.iter().filter(|(step, head)| {
            !reachable.contains(&head.commit) && !is_by_trailer(step, head.attempt)
        });
        lost.map(|(step, _)| step.clone()).collect()
    }

    pub(super) fn commits_between(&self, since: Option<&str>, until: &str) -> Vec<CommitSeen> {
        let known = self.repo.history(since);
        let new = self.repo.history(Some(until)).into_iter().filter(|id| !known.contains(id));
        let seen = new.filter_map(|id| {
            let commit = self.repo.get(id)?;
            let (subject, by) = (commit.subject.clone(), commit.by.clone());
            Some(CommitSeen { id: id.to_owned(), subject, by })
        });
        seen.collect()
    }

    /// Where a path of a worktree is to be looked for: in the project while it is not made, on its
    /// branch when it is gone.
    pub(super) fn instead(&self, path: &str) -> Instead {
        let Some((place, rest)) = WorktreePlace::split(path) else { return Instead::There };
        let (tree, rest) = (place.path.clone(), rest.to_owned());
        match condition(&self.disk, &place) {
            Condition::Unmade => Instead::In { files: files_of(&self.disk, ""), tree, rest },
            Condition::Missing { has_branch: true } => {
                let tip = tip_of(&self.disk, &place.branch);
                Instead::In { files: self.repo.files(tip.as_deref()).clone(), tree, rest }
            }
            Condition::Missing { has_branch: false }
            | Condition::Fine
            | Condition::Unregistered { .. }
            | Condition::Elsewhere(_)
            | Condition::Busy(_) => Instead::There,
        }
    }
}

/// See [`SimWorld::instead`].
pub(super) enum Instead {
    There,
    In { files: crate::trees::Files, tree: String, rest: String },
}
