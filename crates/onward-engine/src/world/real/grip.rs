//! Holding the supervisor: take it, start it, or only look whether it lives.
//!
//! Invariant: [`look`] starts, ends and writes nothing.

use std::{collections::BTreeSet, ffi::OsString, io, path::Path};

use onward_core::{address::Address, launch::Seal, state::State, time::Timestamp};

use super::clock::file_time;
use crate::world::{
    Connected, Stop, Survived,
    supervisor::{
        Hands, HandsConfig, HandsError, Place, Stop as StopLadder, Whereabouts, boot_id,
        orphans::{Orphan, clear_orphans, sweep},
        seals::{LOG_BYTES_MIN, Line, Seals, Seen, read_seals_beyond},
    },
};
use crate::world::{open, real::shared};

/// What was read of the supervisor's log before, beside it.
const SEEN: &str = "exits.seen";
/// What the seal is for; another purpose has another one.
const PURPOSE: &str = "onward exits";

/// What the hidden subcommand is told after its own name: four arguments.
fn args_of(place: &Place) -> [OsString; 4] {
    let Place { run, run_dir, project_dir, socket_dir } = place;
    [run.to_string().into(), run_dir.into(), project_dir.into(), socket_dir.into()]
}

/// The place that the arguments of the hidden subcommand name.
pub fn place_from_args(args: &[OsString]) -> Option<Place> {
    let [run, run_dir, project_dir, socket_dir] = args else { return None };
    Some(Place {
        run: run.to_str()?.parse().ok()?,
        run_dir: run_dir.into(),
        project_dir: project_dir.into(),
        socket_dir: socket_dir.into(),
    })
}

/// Takes hold of the supervisor of a run, and ends what a dead one left.
pub(super) fn connect(
    place: &Place,
    told: &State,
    epoch: u32,
    env: Vec<(OsString, OsString)>,
    supervise: &[OsString],
) -> Result<(Hands, Connected), Stop> {
    // Before a new supervisor touches it.
    let last_heartbeat = heartbeat(place)?;
    let had_supervisor = place.seals().exists();
    let exec = supervise.iter().cloned().chain(args_of(place)).collect();
    let config = HandsConfig { place: place.clone(), epoch, env, exec };
    let (hands, welcome) = Hands::connect_or_start(&config).map_err(|it| hands_stop(&it))?;
    let seals = read(place, told, Some(welcome.log_bytes), &config.env)?;
    let (mut orphans, mut survived) = (0, Survived::default());
    // Also when an engine that started this supervisor died before it got here.
    if had_supervisor && has_spawned_nothing(&seals) {
        let (ended, left) = clear_orphans(place, &seals, StopLadder::default())
            .map_err(io_stop("end the orphans of", &place.run_dir))?;
        if let Some(defiant) = left.first() {
            let pid = defiant.identity.pid;
            return Err(Stop::Hands(format!("process {pid} of this run cannot be ended")));
        }
        orphans = u32::try_from(ended.len()).unwrap_or(u32::MAX);
        survived = survived_of(&ended);
    }
    let boot_id = boot_id().map_err(io_stop("read the boot id of", &place.run_dir))?;
    let lives_before =
        opened_in(&seals, &boot_id, place).saturating_sub(usize::from(welcome.is_new));
    let alive: Vec<_> = welcome.alive.into_iter().map(|it| (it.step, it.attempt)).collect();
    // One whose end is written and whose snapshot is being taken is waited for.
    let is_over = |seal: &Seal| !alive.iter().any(|it| it.0 == seal.step && it.1 == seal.attempt);
    let (spawned, unreadable) = (spawned(&seals), seals.doubtful());
    let last_told = seals.last_passed;
    let spawned_is_complete = lives_before > 0 && is_whole(&seals);
    let (mut seals, unsettled) = seals.seals_in_boot(&boot_id);
    seals.retain(is_over);
    let connected = Connected {
        alive,
        spawned,
        seals,
        unsettled,
        spawned_is_complete,
        unreadable,
        last_told,
        orphans,
        survived,
        last_heartbeat,
        boot_id,
    };
    Ok((hands, connected))
}

/// What a supervisor would say, found out without asking or disturbing it.
pub fn look(place: &Place, told: &State, env: &[(OsString, OsString)]) -> Result<Connected, Stop> {
    let seals = read(place, told, None, env)?;
    let boot_id = boot_id().map_err(io_stop("read the boot id of", &place.run_dir))?;
    let here = Whereabouts::read(place);
    let lives = here.is_some_and(|it| it.boot_id == boot_id && it.identity().is_alive());
    let had_supervisor = opened_in(&seals, &boot_id, place) > 0;
    let orphans = if had_supervisor && (!lives || has_spawned_nothing(&seals)) {
        let found = sweep(place, &seals);
        found.map_err(io_stop("look for the orphans of", &place.run_dir))?
    } else {
        Vec::new()
    };
    let alive = if lives { held(&seals) } else { Vec::new() };
    let is_over = |seal: &Seal| !alive.iter().any(|it| it.0 == seal.step && it.1 == seal.attempt);
    let (spawned, unreadable) = (spawned(&seals), seals.doubtful());
    let last_told = seals.last_passed;
    let spawned_is_complete = had_supervisor && is_whole(&seals);
    let (mut seals, unsettled) = seals.seals_in_boot(&boot_id);
    seals.retain(is_over);
    Ok(Connected {
        alive,
        spawned,
        seals,
        unsettled,
        spawned_is_complete,
        unreadable,
        last_told,
        orphans: u32::try_from(orphans.len()).unwrap_or(u32::MAX),
        survived: survived_of(&orphans),
        last_heartbeat: heartbeat(place)?,
        boot_id,
    })
}

/// Whose the orphans are.
fn survived_of(orphans: &[Orphan]) -> Survived {
    let whose = orphans.iter().map(|it| Some((it.step.clone()?, it.attempt?)));
    whose.collect::<Option<Vec<_>>>().map_or(Survived::Any, Survived::These)
}

/// `told` is what the journal says; start and end of what it has as done are passed over.
fn read(
    place: &Place,
    told: &State,
    bytes_max: Option<u64>,
    env: &[(OsString, OsString)],
) -> Result<Seals, Stop> {
    let path = place.seals();
    let seen = seen(place, env);
    read_seals_beyond(told, &path, bytes_max, seen.as_ref()).map_err(io_stop("read", &path))
}

fn seen(place: &Place, env: &[(OsString, OsString)]) -> Option<Seen> {
    let sealed = open::read_own(&place.run_dir, SEEN, open::LOG_BYTES_MAX).ok()?;
    Seen::unpack(&shared::unsealed(env, PURPOSE, sealed)?)
}

/// Keeps what one who has the journal has read of a long log. Half of it is as good as none.
pub(super) fn keep(place: &Place, told: &State, env: &[(OsString, OsString)]) -> Option<()> {
    let log = open::read_own(&place.run_dir, place.seals().file_name()?, open::LOG_BYTES_MAX);
    let log = log.ok().filter(|it| it.len() >= LOG_BYTES_MIN)?;
    let sealed = shared::sealed(env, PURPOSE, Seen::of(&log, told)?.pack())?;
    open::put(&place.run_dir.join(SEEN), &sealed, open::PRIVATE).ok()
}

/// Supervisors of this very directory; what those of the run that it is a copy of did since, this
/// log does not say.
fn opened_in(seals: &Seals, boot: &str, place: &Place) -> usize {
    let is_ours = |line: &&Line| matches!(line, Line::Opened(it) if it.is_of(boot, &place.run_dir));
    seals.lines.iter().filter(is_ours).count()
}

/// The last supervisor was asked for nothing yet: all processes of this run are orphans. An engine
/// ends them before it asks for anything.
fn has_spawned_nothing(seals: &Seals) -> bool {
    let is_opened = |line: &Line| matches!(line, Line::Opened(_));
    let since = seals.lines.iter().rposition(is_opened).unwrap_or(0);
    let is_spawn = |line: &Line| matches!(line, Line::Spawning(_) | Line::Spawned(_));
    !seals.passed_starts && !seals.lines[since..].iter().any(is_spawn)
}

fn is_whole(seals: &Seals) -> bool {
    seals.damaged.is_empty() && seals.torn.is_empty()
}

/// What the last supervisor spawned, or was about to, and has not sealed.
fn held(seals: &Seals) -> Vec<(Address, u32)> {
    let mut held = BTreeSet::new();
    for line in &seals.lines {
        match line {
            Line::Opened(_) => held.clear(),
            Line::Spawning(it) => {
                held.insert((it.step.clone(), it.attempt));
            }
            Line::Exited(seal) => {
                held.remove(&(seal.step.clone(), seal.attempt));
            }
            Line::Spawned(_)
            | Line::Snapshot(_)
            | Line::OutputLost(_)
            | Line::Grouped(_)
            | Line::Stray(_)
            | Line::Unknown(_) => {}
        }
    }
    held.into_iter().collect()
}

/// From the line that is written before the spawn: without it there was none.
fn spawned(seals: &Seals) -> Vec<(Address, u32)> {
    let spawning = seals.lines.iter().filter_map(|line| match line {
        Line::Spawning(it) => Some((it.step.clone(), it.attempt)),
        Line::Spawned(_)
        | Line::Opened(_)
        | Line::Exited(_)
        | Line::Snapshot(_)
        | Line::OutputLost(_)
        | Line::Grouped(_)
        | Line::Stray(_)
        | Line::Unknown(_) => None,
    });
    spawning.collect()
}

fn heartbeat(place: &Place) -> Result<Option<Timestamp>, Stop> {
    let path = place.heartbeat();
    match std::fs::metadata(&path).and_then(|found| found.modified()) {
        Ok(time) => Ok(Some(file_time(time))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_stop("look at", &path)(error)),
    }
}

/// Hands that are gone are heard of as [`HandsLost`](crate::world::Input::HandsLost), which sees to
/// everything they held or were about to.
pub(super) fn not_if_gone(asked: Result<(), HandsError>) -> Result<(), Stop> {
    match asked {
        Err(HandsError::Gone { .. }) => Ok(()),
        other => other.map_err(|it| hands_stop(&it)),
    }
}

pub(super) fn hands_stop(error: &HandsError) -> Stop {
    let mut text = error.to_string();
    let cause = std::error::Error::source(error);
    for more in [cause.map(ToString::to_string), error.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(&more);
    }
    Stop::Hands(text)
}

fn io_stop(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Stop {
    super::disk::io_stop(doing, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_the_command_line() {
        let place = Place {
            run: "demo-20261115-k3fq".parse().unwrap(),
            run_dir: "/p/.onward/runs/demo-20261115-k3fq".into(),
            project_dir: "/p".into(),
            socket_dir: "/s".into(),
        };
        assert_eq!(place_from_args(&args_of(&place)), Some(place));
        assert_eq!(place_from_args(&[]), None);
    }

    #[test]
    fn a_look_at_a_run_that_never_had_a_supervisor_finds_nothing_and_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place {
            run: "r-1".parse().unwrap(),
            run_dir: dir.path().into(),
            project_dir: dir.path().into(),
            socket_dir: dir.path().join("s"),
        };
        let seen = look(&place, &State::default(), &[]).unwrap();
        assert!(!seen.spawned_is_complete);
        assert_eq!((seen.orphans, seen.alive.len()), (0, 0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
