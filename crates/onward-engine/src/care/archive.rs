//! Runs that are over are moved out of the way; `gc` alone deletes, and only what was moved before.
//!
//! Invariant: the event that announces a move is durable before the move, and a move that a crash
//! cut short goes on to the same name. What `gc` deletes had been listed, is named as an archive of
//! a run, and lies directly in `.onward/archive`.

use crate::world::open;
use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use onward_core::{
    event::{Event, Record},
    evidence::Cause,
    id::RunId,
    journal::Reader,
    state::{Phase, State},
    time::Timestamp,
    worktree::{WORKTREES, WorktreePlace},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    care::{CareError, Opened, RunRef, must_be_dead},
    engine::{EngineError, Machine, RunPlace},
    load::{follow::Follower, journal::JOURNAL},
    locate::{Project, RunLock},
    world::{
        Stop,
        git::{Env, Repo},
        real::{
            RealWorld,
            disk::{io_stop, make_parents, sync_dir},
            wall_clock,
        },
    },
};

/// `onward archive --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Archived {
    pub schema: String,
    pub run: RunRef,
    /// Where it is now.
    pub to: String,
    /// Steps whose attempt had died without a result; what it left in the tree stays there.
    pub lost: Vec<String>,
    /// Its worktrees. The branches stay, with all that was committed.
    pub worktrees: Vec<ArchivedWorktree>,
}

/// A worktree of a run that is archived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArchivedWorktree {
    pub path: String,
    pub branch: String,
    /// No = it holds what its branch does not have, so it stays where it is.
    pub removed: bool,
}

/// Moves a run to the archive. Refused while it has a driver or a living process.
pub fn archive_run(run_dir: &Path, machine: &Machine) -> Result<Archived, CareError> {
    let at = RunPlace::of(run_dir, machine)?;
    let now = wall_clock();
    let _lock = RunLock::take(run_dir, &at.place.run, now).map_err(EngineError::from)?;
    let opened = Opened::read(&at, RealWorld::new(at.setup(machine), None))?;
    must_be_dead(&at.place)?;
    let archive_dir = at.project.archive_dir();
    let lost = in_flight(&opened.run.state);
    let names = lost.iter().map(|(step, _)| step.clone()).collect();
    let to = match announced(&opened.run.state, run_dir)? {
        Some(name) if !archive_dir.join(&name).exists() => name,
        Some(_) | None => {
            let name = free_name(&archive_dir, &at.place.run, now);
            let mut events: Vec<Event> = lost.into_iter().map(|(_, event)| event).collect();
            events.push(Event::RunArchived { to: name.clone() });
            opened.append(events)?;
            name
        }
    };
    let worktrees = remove_worktrees(&at, &machine.env)?;
    let target = archive_dir.join(&to);
    make_parents(&target)?;
    fs::rename(run_dir, &target).map_err(io_stop("move", run_dir))?;
    sync_dir(&at.project.runs_dir())?;
    sync_dir(&archive_dir)?;
    let to = target.display().to_string();
    Ok(Archived {
        schema: "onward.archive/1".to_owned(),
        run: RunRef::of(run_dir),
        to,
        lost: names,
        worktrees,
    })
}

/// Whether the run could still go on, so that archiving it gives it up. Refused where `archive_run`
/// would be.
pub fn gives_up(run_dir: &Path, machine: &Machine) -> Result<bool, CareError> {
    let at = RunPlace::of(run_dir, machine)?;
    let _lock = RunLock::take(run_dir, &at.place.run, wall_clock()).map_err(EngineError::from)?;
    let state = Opened::read(&at, RealWorld::new(at.setup(machine), None))?.run.state;
    must_be_dead(&at.place)?;
    // A move that a crash cut short was agreed to before.
    let is_moving = announced(&state, run_dir)?.is_some();
    Ok(!state.is_ended() && !is_moving)
}

/// Removes those that hold nothing but what is committed.
fn remove_worktrees(at: &RunPlace, env: &Env) -> Result<Vec<ArchivedWorktree>, CareError> {
    let run = at.place.run.as_str();
    let dir = at.project.root().join(WORKTREES).join(run);
    let mut all = Vec::new();
    for name in names(&dir)? {
        let WorktreePlace { path, branch } = WorktreePlace::new(run, &name);
        let repo = Repo::find(at.project.root(), env).map_err(Stop::from)?;
        let removed = repo.is_some_and(|repo| {
            repo.remove_worktree(&dir.join(&name), &branch).unwrap_or_default()
        });
        all.push(ArchivedWorktree { path, branch, removed });
    }
    all.sort_by(|one, other| one.path.cmp(&other.path));
    // Goes only if nothing is left in it.
    let _ = fs::remove_dir(&dir);
    Ok(all)
}

/// An attempt that will not be taken up again ends here.
fn in_flight(state: &State) -> Vec<(String, Event)> {
    let running = state.steps.iter().filter(|(_, entry)| entry.phase == Phase::Running);
    let lost = running.map(|(step, entry)| {
        let event = Event::AttemptLost {
            step: step.clone(),
            attempt: entry.attempts,
            cause: Cause::Interrupted,
            rung: onward_core::recovery::Rung::Archived,
            reverted: Vec::new(),
            rescue: None,
        };
        (step.to_string(), event)
    });
    lost.collect()
}

/// The name that the last record announced, when a crash came before the move.
fn announced(state: &State, run_dir: &Path) -> Result<Option<String>, CareError> {
    if state.last_kind != "run.archived" {
        return Ok(None);
    }
    let path = run_dir.join(JOURNAL);
    let bytes = open::read_at(&path, open::LOG_BYTES_MAX).map_err(io_stop("read", &path))?;
    let mut reader = Reader::new(bytes.as_slice());
    let mut name = None;
    while let Ok(Some(record)) = reader.next_record() {
        if let Event::RunArchived { to } = record.event {
            name = Some(to);
        }
    }
    Ok(name)
}

/// `<run-id>_<yyyymmdd>T<hhmmss>Z`, a second later when that one is taken.
pub(crate) fn free_name(archive_dir: &Path, run: &RunId, now: Timestamp) -> String {
    let mut moment = now;
    loop {
        let name = format!("{run}_{}", stamp(moment));
        if !archive_dir.join(&name).exists() {
            return name;
        }
        moment = moment.plus_ms(1000);
    }
}

fn stamp(moment: Timestamp) -> String {
    let digits: String =
        moment.to_string()[..19].chars().filter(|it| !":-".contains(*it)).collect();
    format!("{digits}Z")
}

/// A run that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    pub name: String,
    pub run: RunId,
    pub dir: PathBuf,
    /// As in its name; sorts as time does.
    stamp: String,
}

/// What a `gc` would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collectable {
    pub kept: Vec<Archive>,
    pub doomed: Vec<Archive>,
}

/// Being deleted: said yes to, and renamed first, so that no half archive looks like a whole one.
const DYING: &str = ".gc-";

/// When it was moved, to the microsecond, as its journal says.
fn archived_at(dir: &Path) -> Timestamp {
    let records = Follower::new(dir).poll().unwrap_or_default();
    let moved = |it: &&Record| matches!(it.event, Event::RunArchived { .. });
    let last = records.iter().rev().find(moved).or(records.last());
    last.map(|it| it.at).unwrap_or_default()
}

/// Every archive, the last moved one first.
pub fn archives(project: &Project) -> Result<Vec<Archive>, CareError> {
    let dir = project.archive_dir();
    let mut all: Vec<Archive> = names(&dir)?.iter().filter_map(|name| parse(&dir, name)).collect();
    let of_a_second = |one: &Archive| all.iter().filter(|it| it.stamp == one.stamp).count() > 1;
    let moved: BTreeMap<String, Timestamp> = all
        .iter()
        .filter(|it| of_a_second(it))
        .map(|it| (it.name.clone(), archived_at(&it.dir)))
        .collect();
    let at = |it: &Archive| moved.get(&it.name).copied().unwrap_or_default();
    let order = |it: &Archive| (it.stamp.clone(), at(it), it.name.clone());
    all.sort_by_key(|it| std::cmp::Reverse(order(it)));
    Ok(all)
}

/// Which archives lie beyond the last `keep`.
pub fn collectable(project: &Project, keep: u32) -> Result<Collectable, CareError> {
    let mut kept = archives(project)?;
    let doomed = kept.split_off(kept.len().min(keep as usize));
    Ok(Collectable { kept, doomed })
}

/// Deletes exactly these, what git keeps for them, and what an interrupted deletion left. A person
/// said yes to them.
pub fn delete(project: &Project, doomed: &[Archive], env: &Env) -> Result<(), CareError> {
    let dir = project.archive_dir();
    for archive in doomed {
        let dying = dir.join(format!("{DYING}{}", archive.name));
        fs::rename(&archive.dir, &dying).map_err(io_stop("rename", &archive.dir))?;
    }
    let dying = names(&dir)?.into_iter().filter(|name| name.starts_with(DYING));
    for name in dying {
        let path = dir.join(name);
        fs::remove_dir_all(&path).map_err(io_stop("delete", &path))?;
    }
    if dir.is_dir() {
        sync_dir(&dir)?;
    }
    let left = archives(project)?;
    let is_gone = |run: &RunId| {
        left.iter().all(|it| it.run != *run) && !project.runs_dir().join(run.as_str()).exists()
    };
    // Without git there is nothing to let go of.
    if let Ok(Some(repo)) = Repo::find(project.root(), env) {
        for archive in doomed.iter().filter(|it| is_gone(&it.run)) {
            let _ = repo.forget(archive.run.as_str());
        }
    }
    Ok(())
}

/// The directories in `dir`; links and files are not ours.
fn names(dir: &Path) -> Result<Vec<String>, CareError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_stop("list", dir)(error).into()),
    };
    let name = |entry: io::Result<fs::DirEntry>| -> io::Result<Option<String>> {
        let entry = entry?;
        let is_dir = entry.file_type()?.is_dir();
        Ok(entry.file_name().into_string().ok().filter(|_| is_dir))
    };
    let names: io::Result<Vec<Option<String>>> = entries.map(name).collect();
    Ok(names.map_err(io_stop("list", dir))?.into_iter().flatten().collect())
}

/// `None` for whatever else a person keeps there.
fn parse(dir: &Path, name: &str) -> Option<Archive> {
    let (run, stamp) = name.rsplit_once('_')?;
    let is_stamp = |(at, byte): (usize, u8)| match at {
        8 => byte == b'T',
        15 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    };
    let run: RunId = run.parse().ok()?;
    let fits = stamp.len() == 16 && stamp.bytes().enumerate().all(is_stamp);
    let (name, stamp) = (name.to_owned(), stamp.to_owned());
    fits.then(|| Archive { dir: dir.join(&name), name, run, stamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(names: &[&str]) -> (tempfile::TempDir, Project) {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            fs::create_dir_all(dir.path().join(".onward/archive").join(name)).unwrap();
        }
        fs::create_dir_all(dir.path().join(".onward/runs")).unwrap();
        let project = Project::locate(dir.path()).unwrap();
        (dir, project)
    }

    #[test]
    fn the_last_moved_archives_are_kept_and_what_is_no_archive_is_nobodys_business() {
        let (dir, project) = project(&[
            "b-1_20261115T182001Z",
            "a_b_20261116T182001Z",
            "c-1_20251115T182001Z",
            "mine",
            "mine_too",
            ".gc-old-1_20251115T182001Z",
        ]);
        fs::write(dir.path().join(".onward/archive/d-1_20261115T182001Z"), "a file").unwrap();
        let found = collectable(&project, 1).unwrap();
        let names = |all: &[Archive]| all.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found.kept), ["a_b_20261116T182001Z"]);
        assert_eq!(names(&found.doomed), ["b-1_20261115T182001Z", "c-1_20251115T182001Z"]);
        assert_eq!(collectable(&project, 3).unwrap().doomed, []);
        delete(&project, &found.doomed, &Env::new()).unwrap();
        let mut left: Vec<String> = names_of(&project.archive_dir());
        left.sort();
        assert_eq!(left, ["a_b_20261116T182001Z", "d-1_20261115T182001Z", "mine", "mine_too"]);
    }

    fn names_of(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn two_moves_in_one_second_have_two_names() {
        let (_dir, project) = project(&["r-1_20261115T182001Z"]);
        let now: Timestamp = "2026-11-15T18:20:01.999999Z".parse().unwrap();
        let run: RunId = "r-1".parse().unwrap();
        let name = free_name(&project.archive_dir(), &run, now);
        assert_eq!(name, "r-1_20261115T182002Z");
        assert!(parse(&project.archive_dir(), &name).is_some());
    }

    #[test]
    fn a_project_without_archives_has_none() {
        let (_dir, project) = project(&[]);
        assert_eq!(collectable(&project, 0).unwrap(), Collectable::default());
        delete(&project, &[], &Env::new()).unwrap();
    }
}
