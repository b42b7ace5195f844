//! The ground of a researcher without git: a directory below `workspace/`.
//!
//! Invariant: there is a copy of every state that stands, and a copy of what differs is made before
//! the directory goes back to one of them.

use crate::world::open;
use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use onward_dialects::conference::Conference;

use super::{CallError, Name, ground::Which, tree::names};

/// See the module.
pub(super) struct Directory {
    live: PathBuf,
    /// A copy of each state, by round and iteration.
    states: PathBuf,
    /// The last one whose row stands.
    standing: String,
    /// What would have been lost, by researcher.
    rescues: PathBuf,
}

const FIRST: &str = "0-0";

impl Directory {
    pub(super) fn of(dir: &Path, conference: &Conference, researcher: &Name) -> Self {
        let workspace = dir.join("workspace");
        let states = workspace.join(".states").join(researcher.as_str());
        let rounds = conference.history.rounds.iter().rev();
        let standing = rounds.flat_map(|(round, told)| {
            let trials: Vec<_> = told.trials_of(researcher.as_str()).collect();
            let stands = trials.into_iter().rev().filter(|(_, trial)| trial.status.stands());
            stands.map(|(iteration, _)| format!("{round}-{iteration}")).collect::<Vec<_>>()
        });
        let mut standing = standing.filter(|name| states.join(name).is_dir());
        let standing = standing.next().unwrap_or_else(|| FIRST.to_owned());
        let live = workspace.join(format!("researcher-{researcher}"));
        Self { live, states, standing, rescues: workspace.join(".rescue") }
    }

    pub(super) fn ensure(&self) -> Result<(), CallError> {
        let made = fs::create_dir_all(&self.live).and_then(|()| fs::create_dir_all(&self.states));
        made.map_err(CallError::io("make", &self.live))?;
        let first = self.states.join(FIRST);
        if !first.is_dir() {
            replace(&self.live, &first)?;
        }
        Ok(())
    }

    pub(super) fn restore(&self) -> Result<(), CallError> {
        replace(&self.states.join(&self.standing), &self.live)
    }

    /// What is not as it stands, as a copy of its own. Made again after a kill, it is the same one.
    pub(super) fn keep_aside(&self, which: Which<'_>) -> Result<Vec<String>, CallError> {
        let standing = self.states.join(&self.standing);
        if is_same(&standing, &self.live).map_err(CallError::io("compare", &self.live))? {
            return Ok(Vec::new());
        }
        let name = format!("{}-{}", which.round, which.iteration);
        let dir = self.rescues.join(which.researcher.as_str());
        fs::create_dir_all(&dir).map_err(CallError::io("make", &dir))?;
        for path in names(&dir.join(name)) {
            let is_free = path.symlink_metadata().is_err();
            if is_free {
                replace(&self.live, &path)?;
            }
            if is_free || is_same(&path, &self.live).map_err(CallError::io("compare", &path))? {
                return Ok(vec![path.display().to_string()]);
            }
        }
        Err(CallError::new(format!("`{}` has no name left", dir.display())))
    }

    pub(super) fn save(&self, which: Which<'_>) -> Result<String, CallError> {
        let name = format!("{}-{}", which.round, which.iteration);
        let state = self.states.join(&name);
        if !state.is_dir() {
            replace(&self.live, &state)?;
        }
        Ok(name)
    }

    /// A proposal that was saved for this iteration counts no more.
    pub(super) fn drop_saved(&self, which: Which<'_>) -> Result<(), CallError> {
        let name = format!("{}-{}", which.round, which.iteration);
        let state = self.states.join(&name);
        if name == self.standing || !state.is_dir() {
            return Ok(());
        }
        fs::remove_dir_all(&state).map_err(CallError::io("remove", &state))
    }

    pub(super) fn path(&self) -> &Path {
        &self.live
    }

    pub(super) fn show(&self, saved: &str) -> Result<(), CallError> {
        let saved = Name::checked(saved)?;
        replace(&self.states.join(saved.as_str()), &self.live)
    }
}

/// Puts a copy of `from` in the place of `to`. After a crash the caller does it again.
fn replace(from: &Path, to: &Path) -> Result<(), CallError> {
    let part = to.with_extension("part");
    let done = || -> io::Result<()> {
        if part.exists() {
            fs::remove_dir_all(&part)?;
        }
        copy(from, &part)?;
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        fs::rename(&part, to)
    };
    done().map_err(CallError::io("copy", from))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    open::read_named(path, open::LOG_BYTES_MAX)
}

/// Whether two places hold the same names and contents.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let kind = |path: &Path| path.symlink_metadata().map(|it| it.file_type());
    let kinds = kind(one)?;
    if kinds != kind(other)? {
        return Ok(false);
    }
    if kinds.is_symlink() {
        return Ok(fs::read_link(one)? == fs::read_link(other)?);
    }
    if !kinds.is_dir() {
        return Ok(read(one)? == read(other)?);
    }
    let names = |path: &Path| -> io::Result<BTreeSet<OsString>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
    };
    let own = names(one)?;
    if own != names(other)? {
        return Ok(false);
    }
    for name in own {
        if !is_same(&one.join(&name), &other.join(&name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            open::copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}
