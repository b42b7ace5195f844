//! Worktrees of a run on this machine.
//!
//! Invariant: a worktree counts as made only when a note in the run's directory says so. A second
//! note says that the engine is about to make it, a third that it is about to make a lost one
//! again: what a killed engine left half made is cleared away and made once more. A worktree
//! without a note does not belong to the run, and stays.

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self},
    io,
    path::{Path, PathBuf},
};

use onward_core::{
    address::Address,
    evidence::FileProof,
    worktree::{WorktreePlace, subject},
};

use super::{
    disk::{io_stop, make_parents, replace_durably, sync_dir},
    look::Looker,
    trees::{Trees, chain_dir},
};
use crate::world::{
    Stop, WorktreeHead,
    aside::Aside,
    git::{Chain, Condition, trailers},
};

/// What the branch of a worktree has that is gone, in a directory for the time being.
pub(super) struct Gone {
    head: String,
    looker: Looker,
    _dir: Aside,
}

/// Where a path of a worktree is to be looked for.
pub(super) enum Instead<'a> {
    There,
    /// It will hold what the project holds, once it is made.
    Project {
        tree: String,
        rest: String,
    },
    /// It is gone, and this is what its branch has.
    Branch {
        tree: String,
        rest: String,
        looker: &'a mut Looker,
    },
}

impl Trees {
    pub(super) fn condition(&mut self, place: &WorktreePlace) -> Result<Condition, Stop> {
        if !self.note(place).exists() {
            return Ok(Condition::Unmade);
        }
        let dir = self.place.project_dir.join(&place.path);
        let is_half_made = self.remaking(place).exists();
        let Some(repo) = self.repo("")? else {
            return Ok(Condition::Unregistered { has_branch: false });
        };
        if is_half_made {
            let has_branch = repo.branch_head(&place.branch).is_some();
            return Ok(Condition::Missing { has_branch });
        }
        Ok(repo.condition(&dir, &place.branch))
    }

    /// Makes it, or makes it fit to work in again; else says why not.
    pub(super) fn worktree(&mut self, place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        let condition = self.condition(place)?;
        let begun = self.begun(place);
        if condition != Condition::Unmade && begun.exists() {
            // An engine that was killed when it had just made it may have left its note unsynced.
            // Lost in a power cut later on, it would have all that is done there cleared away.
            sync_dir(begun.parent().unwrap_or(&begun))?;
            take_up(&begun)?;
        }
        if condition == Condition::Fine {
            return Ok(Ok(()));
        }
        let dir = self.place.project_dir.join(&place.path);
        let Some(chain) = self.chain("")? else { return Err(no_repository(place)) };
        let mended = if condition == Condition::Unmade {
            let note = self.note(place);
            make_parents(&note)?;
            if begun.exists() {
                clear_away(&dir)?;
            } else if dir.exists() {
                return Ok(Err("something else is in its place".to_owned()));
            }
            set_down(&begun, &place.branch)?;
            make_parents(&dir)?;
            chain.make_worktree(&dir, &place.branch)?;
            sync_all(&dir)?;
            set_down(&note, &place.branch)?;
            let _ = fs::remove_file(&begun);
            Ok(())
        } else {
            self.mend(place, &chain, &dir, &condition)?
        };
        self.repos_changed(&place.path);
        Ok(mended)
    }

    /// Half a checkout must not pass for a worktree in which files were deleted: those would be
    /// deleted from the branch with the next commit.
    fn mend(
        &self,
        place: &WorktreePlace,
        chain: &Chain,
        dir: &Path,
        condition: &Condition,
    ) -> Result<Result<(), String>, Stop> {
        let remaking = self.remaking(place);
        let is_gone = matches!(condition, Condition::Missing { .. });
        if is_gone {
            if remaking.exists() {
                clear_away(dir)?;
            }
            set_down(&remaking, &place.branch)?;
        }
        let mended = chain.mend_worktree(dir, &place.branch)?;
        if mended.is_ok() {
            sync_all(dir)?;
        }
        if is_gone {
            take_up(&remaking)?;
        }
        Ok(mended)
    }

    /// Commits what is there, if it is fit for that; else says why not.
    pub(super) fn commit_worktree(
        &mut self,
        place: &WorktreePlace,
        step: &Address,
        attempt: u32,
    ) -> Result<Result<Option<String>, String>, Stop> {
        let run = self.place.run.to_string();
        if let Err(why) = self.worktree(place)? {
            return Ok(Err(why));
        }
        let Some(chain) = self.chain(&place.path)? else { return Err(no_repository(place)) };
        let trailers = trailers(&run, step, attempt);
        let head = chain.commit_all(&format!("{}\n\n{trailers}", subject(step, attempt)))?;
        self.forget();
        Ok(Ok(head))
    }

    /// A commit that was rewritten, by a rebase say, still has its trailers.
    pub(super) fn lost_commits(
        &mut self,
        heads: &BTreeMap<Address, WorktreeHead>,
    ) -> Result<BTreeSet<Address>, Stop> {
        let run = self.place.run.to_string();
        let Some(repo) = self.repo("")? else { return Ok(BTreeSet::new()) };
        let lost = repo.lost(&heads.values().map(|it| it.commit.clone()).collect())?;
        let mut steps: BTreeSet<Address> = heads
            .iter()
            .filter(|(_, head)| lost.contains(&head.commit))
            .map(|(step, _)| step.clone())
            .collect();
        if !steps.is_empty() {
            for (_, step, attempt) in repo.commits_of(&run)? {
                if heads.get(&step).is_some_and(|head| head.attempt == attempt) {
                    steps.remove(&step);
                }
            }
        }
        Ok(steps)
    }

    /// Where to look for a path, or a pattern.
    pub(super) fn instead(&mut self, path: &str) -> Result<Instead<'_>, Stop> {
        let Some((place, rest)) = WorktreePlace::split(path) else { return Ok(Instead::There) };
        let (tree, rest) = (place.path.clone(), rest.to_owned());
        match self.condition(&place)? {
            Condition::Unmade => Ok(Instead::Project { tree, rest }),
            Condition::Missing { has_branch: true } => {
                let gone = self.gone(&place)?;
                Ok(gone.map_or(Instead::There, |gone| Instead::Branch {
                    tree,
                    rest,
                    looker: &mut gone.looker,
                }))
            }
            Condition::Missing { has_branch: false }
            | Condition::Fine
            | Condition::Unregistered { .. }
            | Condition::Elsewhere(_)
            | Condition::Busy(_) => Ok(Instead::There),
        }
    }

    fn gone(&mut self, place: &WorktreePlace) -> Result<Option<&mut Gone>, Stop> {
        let Some(repo) = self.repo("")?.cloned() else { return Ok(None) };
        let Some(head) = repo.branch_head(&place.branch) else { return Ok(None) };
        if self.gone.get(&place.path).is_none_or(|gone| gone.head != head) {
            let dir =
                Aside::new().map_err(io_stop("make a directory in", &std::env::temp_dir()))?;
            let files = dir.path().join("files");
            fs::create_dir(&files).map_err(io_stop("make", &files))?;
            repo.export_branch(&place.branch, &files)?;
            let gone = Gone { head, looker: Looker::new(files), _dir: dir };
            self.gone.insert(place.path.clone(), gone);
        }
        Ok(self.gone.get_mut(&place.path))
    }

    /// Says that the worktree was made.
    fn note(&self, place: &WorktreePlace) -> PathBuf {
        chain_dir(&self.place.run_dir).join(format!("worktree-{}", place.name()))
    }

    /// Says that it is about to be.
    fn begun(&self, place: &WorktreePlace) -> PathBuf {
        chain_dir(&self.place.run_dir).join(format!("making-{}", place.name()))
    }

    /// Says that it was gone, and is about to be made again.
    fn remaking(&self, place: &WorktreePlace) -> PathBuf {
        chain_dir(&self.place.run_dir).join(format!("remaking-{}", place.name()))
    }
}

/// As the worktree will name them.
pub(super) fn moved_into(tree: &str, mut files: Vec<FileProof>) -> Vec<FileProof> {
    for file in &mut files {
        file.path = format!("{tree}/{}", file.path);
    }
    files
}

fn set_down(note: &Path, text: &str) -> Result<(), Stop> {
    replace_durably(note, format!("{text}\n").as_bytes())
}

/// A note that came back after a power cut would have work cleared away.
fn take_up(note: &Path) -> Result<(), Stop> {
    fs::remove_file(note).map_err(io_stop("remove", note))?;
    sync_dir(note.parent().unwrap_or(note))
}

/// Git does not wait for the files of a checkout to be on disk.
fn sync_all(dir: &Path) -> Result<(), Stop> {
    let synced = open::dir(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
    synced.map_err(io_stop("sync", dir))
}

/// What was begun and is not there by its note was never worked in.
fn clear_away(dir: &Path) -> Result<(), Stop> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(io_stop("clear away", dir)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn no_repository(place: &WorktreePlace) -> Stop {
    Stop::Unready {
        what: format!("{} cannot be made: this is not a git repository", place.path),
        hint: "make it one with `git init`, or take `worktree` out".to_owned(),
    }
}
