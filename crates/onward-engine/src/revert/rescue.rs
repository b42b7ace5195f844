//! The rescue: what is undone is saved here first, and stays.
//!
//! `rescue/<n>-<address>/` in the run's directory, `n` counting up over the run, holds
//! - `files/<path>`: each path as the attempt left it, with its executable bit, links as links;
//! - `patch.diff`: what is undone, as a patch; only where the attempt had a snapshot before it;
//! - `UNDO.json`: [`Note`], written last. A directory without it is a rescue that never came about.
//!
//! With a snapshot there is also the ref `refs/onward/<run>-rescue/<n>`: a commit of the tree as it
//! was left, on top of one of the tree as it is when all is undone.
//!
//! Invariant: everything here is durable before the event that announces the undo. `files` may hold
//! more than the note lists, left by a rescue that a crash cut short; only the note counts.

use crate::world::open;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptStarted, FileKind, Revert},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::{
    revert::snapshot_of,
    world::{At, Rescued, Stop, Undo, World, files},
};

pub const NOTE: &str = "UNDO.json";
pub const FILES: &str = "files";
pub const PATCH: &str = "patch.diff";
const SCHEMA: &str = "onward.rescue/1";

/// The content of `UNDO.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub schema: String,
    pub step: Address,
    pub attempt: u32,
    pub at: Timestamp,
    /// The ref that keeps it, and its commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The rescue whose `undo` replaced what this one has; without it, an attempt's work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<u32>,
    /// In path order.
    pub paths: Vec<Undone>,
}

/// One path that was put back. `undo` looks first: as `base` says = still undone,
/// as `left` says = brought back already, anything else = a person's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Relative to the project; below `files` it has the same name.
    pub path: String,
    /// What the attempt left; `None` = it deleted the file, and `files` does not have it.
    pub left: Option<Digest>,
    /// What is there when it is undone; `None` = nothing. Its content is in `saved/<digest>`.
    pub base: Option<Digest>,
    #[serde(default, skip_serializing_if = "FileKind::is_plain")]
    pub left_kind: FileKind,
    #[serde(default, skip_serializing_if = "FileKind::is_plain")]
    pub base_kind: FileKind,
}

/// A rescue on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescue {
    pub number: u32,
    pub dir: PathBuf,
    pub note: Note,
}

/// What stands in the place of a rescue and cannot be read as one.
#[derive(Debug)]
pub struct Unreadable {
    pub number: u32,
    pub dir: PathBuf,
    pub error: io::Error,
}

/// The rescues of a run, oldest first, and what cannot be read: one hides no other.
#[derive(Debug, Default)]
pub struct Listed {
    pub rescues: Vec<Rescue>,
    pub unreadable: Vec<Unreadable>,
}

/// Every rescue of a run. Torn journal ends, which are kept there too, are none.
pub fn list(run_dir: &Path) -> io::Result<Listed> {
    let mut found = Listed::default();
    let entries = match std::fs::read_dir(run_dir.join("rescue")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let dir = entry?.path();
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
        let Some(number) = number else { continue };
        let bytes = match open::read_own(&dir, NOTE, open::SMALL_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                found.unreadable.push(Unreadable { number, dir, error });
                continue;
            }
        };
        // One that a power cut left half written: the rescue never came about.
        let Ok(note) = serde_json::from_slice(&bytes) else { continue };
        found.rescues.push(Rescue { number, dir, note });
    }
    found.rescues.sort_by_key(|rescue| rescue.number);
    found.unreadable.sort_by_key(|it| it.number);
    Ok(found)
}

/// Its name, relative to the run's directory.
pub(crate) fn name(number: u32, step: &Address) -> String {
    format!("rescue/{number}-{}", step.file_name())
}

/// What one attempt left, about to be undone.
#[derive(Clone, Debug)]
pub struct Undoing {
    pub started: Box<AttemptStarted>,
    pub reverts: Vec<Revert>,
    /// For each path, the snapshot or commit that has its base.
    pub bases: BTreeMap<String, String>,
}

impl Undoing {
    /// Saves everything, durably. Gives what git keeps of it.
    pub fn keep<W: World>(&self, world: &mut W) -> Result<Option<Rescued>, Stop> {
        let started = &self.started;
        let Some(first) = self.reverts.first() else { return Ok(None) };
        let dir = &first.rescue;
        for revert in &self.reverts {
            keep_left(world, revert)?;
            keep_base(world, revert)?;
        }
        let kept = match (&started.base, first.rescue_number()) {
            (Some(_), Some(number)) => {
                let undo = Undo { number, reverts: &self.reverts, bases: &self.bases };
                world.keep_rescue(&snapshot_of(started), &undo)?
            }
            (Some(_) | None, _) => None,
        };
        if let Some(kept) = &kept {
            files::write_durably(world, At::Run(&format!("{dir}/{PATCH}")), &kept.patch)?;
        }
        let undone = self.reverts.iter().map(|revert| Undone {
            path: revert.path.clone(),
            left: revert.left,
            base: revert.base,
            left_kind: revert.left_kind,
            base_kind: revert.base_kind,
        });
        let note = Note {
            schema: SCHEMA.to_owned(),
            step: started.step.clone(),
            attempt: started.attempt,
            at: world.now(),
            reference: kept.as_ref().map(|kept| kept.reference.clone()),
            commit: kept.as_ref().map(|kept| kept.commit.clone()),
            replaced_by: None,
            paths: undone.collect(),
        };
        let mut text = serde_json::to_vec_pretty(&note).expect("a note is plain data");
        text.push(b'\n');
        files::write_durably(world, At::Run(&format!("{dir}/{NOTE}")), &text)?;
        Ok(kept)
    }
}

/// What is not as the attempt left it any more is not undone either. What is only kept, and is not
/// in the tree, a snapshot has.
fn keep_left<W: World>(world: &mut W, revert: &Revert) -> Result<(), Stop> {
    let name = format!("{}/{FILES}/{}", revert.rescue, revert.path);
    if let Some((bytes, kind)) = world.content(&revert.path)?
        && (Some(Digest::of(&bytes)), kind) == (revert.left, revert.left_kind)
    {
        files::put_durably(world, At::Run(&name), &bytes, kind)?;
        // A power cut in the middle of the undo leaves this, or the base, and nothing else.
        if kind != FileKind::Link {
            let at = At::Project(&revert.path);
            world.sync(at)?;
            world.sync_dir(at)?;
        }
    } else if revert.keeps_in_place()
        && let Some(left) = revert.left
        && let Some(bytes) = world.base_content(left)?.filter(|bytes| Digest::of(bytes) == left)
    {
        files::put_durably(world, At::Run(&name), &bytes, revert.left_kind)?;
    }
    Ok(())
}

fn keep_base<W: World>(world: &mut W, revert: &Revert) -> Result<(), Stop> {
    let Some(base) = revert.base else { return Ok(()) };
    if revert.keeps_in_place() {
        // It stays where it is until its step replaces it; `files` has it.
        return Ok(());
    }
    if files::saved(world, base)?.is_some() {
        return files::settle(world, base);
    }
    let bytes = world.base_content(base)?.filter(|bytes| Digest::of(bytes) == base);
    let Some(bytes) = bytes else {
        return Err(Stop::Unready {
            what: format!("{} cannot be put back: what it was is lost", revert.path),
            hint: "look at it, and resume again".to_owned(),
        });
    };
    files::keep(world, base, &bytes)
}
