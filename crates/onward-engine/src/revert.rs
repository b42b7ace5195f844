//! Undoing what a half-done attempt left, without losing it.
//!
//! Order, for every path: the rescue is durable, then the event that announces the undo is durable,
//! then the path is put back. After a crash anywhere in between, the path itself tells how far it
//! got: as the attempt left it = to do, as it was before = done, anything else = somebody's, and it
//! is not touched.

use std::collections::BTreeMap;

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptStarted, Revert},
};

use crate::{
    files,
    world::{At, Stop, World},
};

/// What an attempt changed among its declared outputs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub path: String,
    pub left: Option<Digest>,
    pub base: Option<Digest>,
    /// When it was last changed; `None` for a file that is gone.
    pub mtime_ns: Option<i64>,
}

/// Compares the declared outputs with what was saved before the attempt.
pub fn footprint<W: World>(world: &mut W, started: &AttemptStarted) -> Result<Footprint, Stop> {
    let mut seen = BTreeMap::new();
    for pattern in &started.writes {
        for file in world.glob(pattern, &[])? {
            seen.insert(file.path.clone(), (file.hash, file.stat.mtime_ns));
        }
    }
    let mut changes = Vec::new();
    for (path, (hash, mtime_ns)) in &seen {
        let base = started.saved.get(path).copied().flatten();
        if base != Some(*hash) {
            let (path, left) = (path.clone(), Some(*hash));
            changes.push(Change { path, left, base, mtime_ns: Some(*mtime_ns) });
        }
    }
    for (path, base) in &started.saved {
        if base.is_some() && !seen.contains_key(path) {
            let (path, base) = (path.clone(), *base);
            changes.push(Change { path, left: None, base, mtime_ns: None });
        }
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(Footprint { changes })
}

impl Footprint {
    /// As announced, with the place where what is undone is kept.
    pub fn reverts(&self, step: &Address, attempt: u32) -> Vec<Revert> {
        let rescue = format!("rescue/{}.{attempt}", step.file_name());
        let revert = |change: &Change| Revert {
            path: change.path.clone(),
            left: change.left,
            base: change.base,
            rescue: rescue.clone(),
        };
        self.changes.iter().map(revert).collect()
    }
}

/// Keeps what is about to be undone, durably.
pub fn rescue<W: World>(world: &mut W, reverts: &[Revert]) -> Result<(), Stop> {
    for revert in reverts {
        let name = rescued_name(revert);
        if let Some(bytes) = world.read(At::Project(&revert.path))?
            && Some(Digest::of(&bytes)) == revert.left
        {
            files::write_durably(world, At::Run(&name), &bytes)?;
        }
    }
    Ok(())
}

fn rescued_name(revert: &Revert) -> String {
    format!("{}/{}", revert.rescue, revert.path)
}

/// Puts each path back, unless it is back already or somebody changed it. Returns the latter.
pub fn undo<W: World>(world: &mut W, reverts: &[Revert]) -> Result<Vec<String>, Stop> {
    let mut foreign = Vec::new();
    for revert in reverts {
        let now = world.digest(&revert.path)?;
        if now == revert.base {
            continue;
        }
        if now != revert.left {
            foreign.push(revert.path.clone());
            continue;
        }
        match revert.base {
            None => {
                world.remove(At::Project(&revert.path))?;
                world.sync_dir(At::Project(&revert.path))?;
            }
            Some(base) => match files::saved(world, base)? {
                Some(bytes) => files::write_durably(world, At::Project(&revert.path), &bytes)?,
                None => foreign.push(revert.path.clone()),
            },
        }
    }
    Ok(foreign)
}
