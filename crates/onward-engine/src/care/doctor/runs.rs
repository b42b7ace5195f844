//! The store: journals that cannot be read, runs that were never made, processes without a master.

use crate::world::open;
use std::{fs, io::ErrorKind, path::Path};

use onward_core::{id::RunId, journal::Rest, plural, state::State};

use super::{Check, Health};
use crate::{
    care::{CareError, archive::free_name, supervisor_lives},
    engine::{EngineError, Machine, RunPlace},
    load::journal::{JOURNAL, load},
    locate::{LockError, Misnamed, Pinned, Project, RunDir, RunLock, holder, opened},
    world::{
        real::{
            disk::{io_stop, make_parents, sync_dir},
            file_time, look, wall_clock,
        },
        supervisor::{Place, Stop as StopLadder, orphans::clear_orphans, seals::read_seals},
    },
};

/// A run that is being made is not left over.
const MAKING_MS: u64 = 60 * 1000;
/// Two machines' clocks may differ by this much.
const CLOCK_SLACK_MS: u64 = 5 * 60 * 1000;

pub(super) fn checks(
    project: &Project,
    machine: &Machine,
    fix: bool,
) -> Result<Vec<Check>, CareError> {
    let mut checks = Vec::new();
    let runs = match project.even_lost_runs() {
        Ok(runs) => runs,
        Err(error) => {
            let check = Check::new("runs", Health::Problem, error.to_string());
            return Ok(vec![check.with_hint(error.hint())]);
        }
    };
    for run in &runs {
        checks.extend(journal(run));
        if let Some(misnamed) = opened(&run.dir).and_then(|it| Misnamed::of(&run.dir, &it.run)) {
            let check = Check::new("misnamed", Health::Problem, misnamed.to_string());
            checks.push(check.with_hint(misnamed.hint()));
        }
        checks.extend(workflow(run, machine));
        // What stands in the way of one run is told, and the others are looked at all the same.
        checks.extend(processes(run, machine, fix).unwrap_or_else(|error| {
            let message = format!("the processes of run {} cannot be looked at: {error}", run.id);
            vec![Check::new("processes", Health::Problem, with_causes(message, &error))]
        }));
    }
    checks.extend(half_made(project, fix)?);
    if checks.is_empty() {
        checks.push(Check::ok(
            "runs",
            match runs.len() {
                0 => "no runs here".to_owned(),
                number => format!("{}, all can be read", plural::count(number, "run")),
            },
        ));
    }
    Ok(checks)
}

fn journal(run: &RunDir) -> Option<Check> {
    let id = &run.id;
    let repair = format!("rebuild it with `onward repair {id}`");
    let problem = |word: &str, message: String| Check::new(word, Health::Problem, message);
    let bytes = match open::read_own(&run.dir, JOURNAL, open::LOG_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let check = problem("journal-lost", format!("run {id} has lost its journal"));
            return Some(check.with_hint(repair));
        }
        Err(error) => {
            let message = format!("the journal of run {id} cannot be read: {error}");
            return Some(problem("journal-damaged", message));
        }
    };
    match load(&bytes) {
        Err(error) => {
            let message = format!("the journal of run {id} is damaged: {error}");
            Some(problem("journal-damaged", message).with_hint(repair))
        }
        Ok(loaded) => match loaded.tail.rest {
            Rest::Damaged(damage) => {
                let lines =
                    damage.listed.len() + usize::try_from(damage.more).unwrap_or(usize::MAX);
                let lines = plural::count(lines, "line");
                let message = format!("the journal of run {id} is damaged: {lines}");
                Some(problem("journal-damaged", message).with_hint(repair))
            }
            Rest::Clean | Rest::Torn(_) => {
                let last = loaded.state.last_at;
                let ahead = last > wall_clock().plus_ms(CLOCK_SLACK_MS);
                let message = format!("the last event of run {id} is in the future: {last}");
                let hint = "set the clock right, or the journal was damaged";
                ahead.then(|| problem("clock-in-future", message).with_hint(hint))
            }
        },
    }
}

/// Whether the copy of the workflow is the one that the journal names.
fn workflow(run: &RunDir, machine: &Machine) -> Option<Check> {
    let error = Pinned::look(&run.dir, &machine.env).err()?;
    let message = format!("the workflow that run {} keeps cannot be used: {error}", run.id);
    let check = Check::new("workflow-damaged", Health::Problem, with_causes(message, &error));
    let hint = EngineError::from(error).hint();
    Some(match hint {
        Some(hint) => check.with_hint(hint),
        None => check,
    })
}

fn with_causes(mut message: String, error: &dyn std::error::Error) -> String {
    let mut cause = error.source();
    while let Some(one) = cause {
        message = format!("{message}: {one}");
        cause = one.source();
    }
    message
}

fn processes(run: &RunDir, machine: &Machine, fix: bool) -> Result<Vec<Check>, CareError> {
    let at = RunPlace::even_without_journal(&run.dir, machine)?;
    let (place, id) = (&at.place, &run.id);
    // Its driver looks after its processes.
    if holder(&run.dir).is_some() {
        return Ok(Vec::new());
    }
    let seen = look(place, &State::default(), &[])?;
    let mut checks = Vec::new();
    if supervisor_lives(place) && !seen.alive.is_empty() {
        let attempts = plural::count(seen.alive.len(), "attempt");
        let message = format!("{attempts} of run {id} still running without an engine");
        checks.push(Check::ok("supervisor", message).with_hint(format!("`onward resume {id}`")));
    }
    if seen.orphans > 0 {
        let (verb, s) = if seen.orphans == 1 { ("has", "") } else { ("have", "es") };
        let message =
            format!("{} process{s} of run {id} {verb} lost their supervisor", seen.orphans);
        checks.push(if fix {
            end(place, message)?
        } else {
            Check::new("orphan-process", Health::Warning, message)
                .with_hint("a resume ends them, and so does `onward doctor --fix`")
        });
    }
    Ok(checks)
}

/// Ends processes that carry the run's tag, or that its supervisor wrote down in this boot.
fn end(place: &Place, message: String) -> Result<Check, CareError> {
    let _lock = match RunLock::take(&place.run_dir, &place.run, wall_clock()) {
        Ok(lock) => lock,
        // A driver has just come, and ends them.
        Err(LockError::RunHeld { .. }) => return Ok(Check::ok("orphan-process", message)),
        Err(error) => return Err(EngineError::from(error).into()),
    };
    let path = place.seals();
    let seals = read_seals(&path, None).map_err(io_stop("read", &path))?;
    let (ended, left) = clear_orphans(place, &seals, StopLadder::default())
        .map_err(io_stop("end the orphans of", &place.run_dir))?;
    Ok(match left.first() {
        None => {
            let message = format!("{message}; {} were ended", ended.len());
            Check::new("orphan-process", Health::Fixed, message)
        }
        Some(defiant) => {
            let pid = defiant.identity.pid;
            Check::new("orphan-process", Health::Problem, format!("process {pid} cannot be ended"))
        }
    })
}

/// `.new-<id>` under `runs`: the process that was making it died.
fn half_made(project: &Project, fix: bool) -> Result<Vec<Check>, CareError> {
    let dir = project.runs_dir();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_stop("list", &dir)(error).into()),
    };
    let mut checks = Vec::new();
    for entry in entries {
        let path = entry.map_err(io_stop("list", &dir))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(id) = name.strip_prefix(".new-").and_then(|it| it.parse::<RunId>().ok()) else {
            continue;
        };
        if is_young(&path) {
            continue;
        }
        let message = format!("{name} is a run that was never made");
        if !fix {
            let check = Check::new("half-made-run", Health::Warning, message);
            checks.push(check.with_hint("move it to the archive with `onward doctor --fix`"));
            continue;
        }
        let archive = project.archive_dir();
        let to = archive.join(free_name(&archive, &id, wall_clock()));
        make_parents(&to)?;
        fs::rename(&path, &to).map_err(io_stop("move", &path))?;
        sync_dir(&dir)?;
        sync_dir(&archive)?;
        let message = format!("{message}; it is in {} now", to.display());
        checks.push(Check::new("half-made-run", Health::Fixed, message));
    }
    Ok(checks)
}

fn is_young(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|found| found.modified());
    changed.is_ok_and(|changed| wall_clock().ms_since(file_time(changed)) < MAKING_MS)
}
