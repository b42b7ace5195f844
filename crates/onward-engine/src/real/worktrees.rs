//! Worktrees of a run on this machine.
//!
//! Invariant: one counts as made only when a note in the run's directory says so; what a killed
//! engine left half made is made anew before anybody worked in it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use onward_core::{address::Address, worktree::WorktreePlace};

use super::{
    disk::{io_stop, make_parents, sync_dir},
    trees::{Trees, chain_dir},
};
use crate::{
    git::{Condition, trailers},
    world::Stop,
};

impl Trees {
    pub(super) fn condition(&mut self, place: &WorktreePlace) -> Result<Condition, Stop> {
        if !self.note(place).exists() {
            return Ok(Condition::Unmade);
        }
        let dir = self.place.project_dir.join(&place.path);
        let repo = self.repo("")?;
        Ok(repo.map_or(Condition::Unregistered, |repo| repo.condition(&dir, &place.branch)))
    }

    /// Makes it, or makes it fit to work in again.
    pub(super) fn worktree(&mut self, place: &WorktreePlace) -> Result<(), Stop> {
        let condition = self.condition(place)?;
        let dir = self.place.project_dir.join(&place.path);
        let Some(chain) = self.chain("")? else { return Err(no_repository(place)) };
        match condition {
            Condition::Fine => return Ok(()),
            Condition::Unmade => {
                clear_away(&dir)?;
                make_parents(&dir)?;
                chain.make_worktree(&dir, &place.branch)?;
                let note = self.note(place);
                make_parents(&note)?;
                fs::write(&note, format!("{}\n", place.branch)).map_err(io_stop("write", &note))?;
                sync_dir(note.parent().unwrap_or(&note))?;
            }
            Condition::Missing { .. }
            | Condition::Unregistered
            | Condition::Elsewhere(_)
            | Condition::Busy(_) => chain.mend_worktree(&dir, &place.branch, &condition)?,
        }
        self.forget();
        Ok(())
    }

    pub(super) fn commit_worktree(
        &mut self,
        place: &WorktreePlace,
        step: &Address,
        attempt: u32,
    ) -> Result<Option<String>, Stop> {
        let run = self.place.run.to_string();
        let Some(repo) = self.repo(&place.path)? else { return Ok(None) };
        let trailers = trailers(&run, step, attempt);
        let head = repo.commit_all(&format!("{step}, attempt {attempt}\n\n{trailers}"))?;
        self.forget();
        Ok(head)
    }

    pub(super) fn lost_commits(
        &mut self,
        ids: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, Stop> {
        let Some(repo) = self.repo("")? else { return Ok(BTreeSet::new()) };
        Ok(repo.lost(ids)?)
    }

    /// Says that the worktree was made.
    fn note(&self, place: &WorktreePlace) -> PathBuf {
        chain_dir(&self.place.run_dir).join(format!("worktree-{}", place.name()))
    }
}

/// What is there without a note was never worked in.
fn clear_away(dir: &Path) -> Result<(), Stop> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io_stop("clear away", dir)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn no_repository(place: &WorktreePlace) -> Stop {
    Stop::Unready {
        what: format!("{} cannot be made: this is no git repository", place.path),
        hint: "make it one with `git init`, or take `worktree` out".to_owned(),
    }
}
