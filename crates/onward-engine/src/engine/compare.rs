//! What a person is shown before another system's run is resumed in preflight mode: its files as
//! they were when its state was last written, and as they are.
//!
//! Invariant: looks only. A file is `same` where git has the very bytes from then, or where it was
//! not written since; what neither git nor its time tells is `unknown`.

use std::path::Path;

use onward_core::{
    digest::Digest,
    plan::{Compared, ComparedFile, Preflight, Referred, ReferredFile, Stamp},
    policy::EnterAt,
    time::Timestamp,
};

use super::{EngineError, Machine, RunPlace, adopt, look_place};
use crate::{
    foreign::{Foreign, Reading, told_at},
    locate::{FoundSite, Project},
    world::{
        World as _,
        git::{Env, as_of},
        open,
        real::{file_time, site::unreadable},
        seen::Seen,
    },
};

/// What was written within so many milliseconds was written together: by one program, or one copy.
const TOGETHER_MS: u64 = 60_000;

/// The role of the file that the others are compared by.
const STATE: &str = "state";

/// `None` where the system has no such report. What lies ahead is told from where a person enters.
pub fn compare_site(
    found: &FoundSite,
    from: Option<&EnterAt>,
    machine: &Machine,
) -> Result<Option<Preflight>, EngineError> {
    let foreign = Foreign { dialect: found.dialect, site: found.site.clone(), begins: false };
    compare(&found.project, &foreign, from, &found.seen, machine)
}

/// The same of a run of ours that goes on with another system's.
pub fn compare_run(
    run_dir: &Path,
    from: Option<&EnterAt>,
    machine: &Machine,
) -> Result<Option<Preflight>, EngineError> {
    let project = RunPlace::of(run_dir, machine)?.project;
    match adopt::foreign_of(&project, run_dir, &machine.env) {
        Some(foreign) => compare(&project, &foreign, from, &Seen::default(), machine),
        None => Ok(None),
    }
}

fn compare(
    project: &Project,
    foreign: &Foreign,
    from: Option<&EnterAt>,
    seen: &Seen,
    machine: &Machine,
) -> Result<Option<Preflight>, EngineError> {
    let machine = machine.looking();
    let mut world = look_place(project, &machine);
    let files = seen.files(&mut world, &foreign.site, foreign.card())?;
    let Reading { files, told: Some(told) } = foreign.parse(files)? else { return Ok(None) };
    let Some(referred) = told.preflight() else { return Ok(None) };
    let entered = match from {
        Some(from) => told_at(foreign, (files, &*told), from, world.now())?,
        None => None,
    };
    let entered = entered.and_then(|it| it.preflight()).map(|it| it.ahead);
    let dir = project.root().join(foreign.site.dir());
    let Referred { since, files, statuses, dependencies, ahead } = referred;
    let ahead = entered.unwrap_or(ahead);
    let state = files.iter().find(|it| it.role == STATE);
    let state = state.and_then(|it| modified(&dir.join(&it.path)));
    let then = since.map(|at| Then { at, state });
    let files = files.into_iter().map(|it| compared(&dir, it, then, &machine.env)).collect();
    let since = since.map(|it| it.to_string());
    Ok(Some(Preflight { since, files, statuses, dependencies, ahead }))
}

/// The moment that files are compared with, and when the state itself was written by its time.
#[derive(Clone, Copy)]
struct Then {
    at: Timestamp,
    state: Option<Timestamp>,
}

fn compared(dir: &Path, file: ReferredFile, then: Option<Then>, env: &Env) -> ComparedFile {
    let ReferredFile { path, role, critical } = file;
    let full = dir.join(&path);
    let is_hidden = unreadable(dir, &path).is_some();
    let bytes = open::read_named(&full, open::FILE_BYTES_MAX).ok().filter(|_| !is_hidden);
    let is = bytes.as_deref().map(stamp);
    let before = then.and_then(|then| as_of(dir, env, &path, then.at));
    let mut was = before.as_deref().map(stamp);
    let written = modified(&full);
    let is_older = then.zip(written).is_some_and(|(then, at)| at <= then.at.plus_ms(TOGETHER_MS));
    let is_copied = then
        .and_then(|it| it.state)
        .zip(written)
        .is_some_and(|(state, at)| state.ms_since(at).max(at.ms_since(state)) < TOGETHER_MS);
    let verdict = match (&was, &is) {
        (_, None) if is_hidden => Compared::Unknown,
        (_, None) => Compared::Missing,
        (Some(was), Some(is)) if was == is => Compared::Same,
        // What was changed before, and not committed, was known to the run; the state is what it
        // was itself.
        (_, Some(is)) if is_older || role == STATE => {
            was = Some(is.clone());
            Compared::Same
        }
        (None, Some(_)) if is_copied || then.is_none() => Compared::Unknown,
        (_, Some(_)) => Compared::Changed,
    };
    ComparedFile { path, role: role.to_owned(), critical, was, is, verdict }
}

fn stamp(bytes: &[u8]) -> Stamp {
    Stamp { bytes: bytes.len() as u64, hash: Digest::of(bytes).to_string() }
}

fn modified(path: &Path) -> Option<Timestamp> {
    path.symlink_metadata().ok()?.modified().ok().map(file_time)
}
