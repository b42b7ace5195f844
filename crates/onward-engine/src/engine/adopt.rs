//! Which run goes on with another system's run: the one that adopted it, or a new one.
//!
//! Invariant: a run of another system is adopted by one run of ours at a time; the engine that
//! makes one holds the site's lock and looks again after it got it.

use crate::world::open;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use onward_core::{
    digest::Digest,
    event::{EndStatus, Event, Mode, RunOpened, SourceFile},
    id::RunId,
    journal::decode_line,
    plan::Status,
    state::{Adopted, RunStatus, State},
    workflow::Loaded,
};
use onward_dialects::{Dialect, Home, Site, dialect, dialects};
use serde_json::Value;

use super::{
    Begun, EngineError, Machine, begin_with, look_place, missing, prerequisite, this_boot,
};
use crate::{
    foreign::{Foreign, exported, write},
    load::journal::{JOURNAL, load},
    locate::{FindError, FoundSite, NewRun, Project, RunDir, Search},
    resume::ResumeError,
    world::{
        Hold, World as _,
        real::{RealWorld, wall_clock},
    },
};

/// A run of ours that goes on, or went on, with another system's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopter {
    pub run: RunDir,
    pub is_complete: bool,
}

/// Every run of ours that goes on, or went on, with another system's: read once for many sites.
pub struct Adopters {
    root: PathBuf,
    runs: Vec<(RunDir, RunOpened, Adopted)>,
}

impl Adopters {
    pub fn of(project: &Project) -> Result<Self, FindError> {
        let told = |run: RunDir| adopted(&run.dir).map(|(opened, it)| (run, opened, it));
        let runs = project.runs()?.into_iter().filter_map(told).collect();
        Ok(Self { root: project.root().to_owned(), runs })
    }

    /// The run that adopted the site: one that is not complete, or else the last active one.
    pub fn find(&self, found: &FoundSite) -> Option<Adopter> {
        let wanted = canonical(&found.dir);
        let mut complete = None;
        for (run, opened, adopted) in &self.runs {
            let is_same_flow = opened.workflow == found.site.workflow
                || found.site.implied && !is_complete(&run.dir);
            let is_it = adopted.dialect == found.card().name
                && canonical(&self.root.join(&adopted.source)) == wanted
                && is_same_flow
                // A directory may hold several runs: what ours was given says which of them it is.
                && found.dialect.is_of(&found.site, &opened.inputs);
            if !is_it {
                continue;
            }
            let run = run.clone();
            if !is_complete(&run.dir) {
                return Some(Adopter { run, is_complete: false });
            }
            complete = complete.or(Some(Adopter { run, is_complete: true }));
        }
        complete
    }
}

/// The run that adopted the site: one that is not complete, or else the last active one.
pub fn adopter(project: &Project, found: &FoundSite) -> Result<Option<Adopter>, FindError> {
    Ok(Adopters::of(project)?.find(found))
}

/// Where another system's run was found that this one goes on with; `None` for one of our own.
pub fn adopted_from(project: &Project, run_dir: &Path) -> Option<(String, PathBuf)> {
    let (_, adopted) = adopted(run_dir)?;
    Some((adopted.dialect, canonical(&project.root().join(adopted.source))))
}

/// The same as the engine works with it; `None` also when this build does not know the dialect.
pub(crate) fn foreign_of(
    project: &Project,
    run_dir: &Path,
    env: &[(OsString, OsString)],
) -> Option<Foreign> {
    let (opened, adopted) = adopted(run_dir)?;
    let dialect = dialect(&adopted.dialect)?;
    let mut site = match dialect.card().home {
        Home::Project => dialect.site(&adopted.source, &opened.workflow, &opened.inputs),
        Home::TaskLists => listed(project, dialect, &adopted.source, env),
    };
    if adopted.source != "." {
        site.place = project.root().join(&adopted.source).display().to_string();
    }
    Some(Foreign { dialect, site, begins: adopted.files.is_empty() })
}

/// Which of another system's runs this one goes on with, in a few words.
pub(super) fn about(state: &State) -> Option<String> {
    let (opened, adopted) = (state.opened.as_ref()?, state.adopted.as_ref()?);
    dialect(&adopted.dialect)?.about(&opened.workflow, &opened.inputs)
}

/// Whether another run lies in the place of the one that this run of ours goes on with.
pub fn is_superseded(project: &Project, run_dir: &Path, machine: &Machine) -> bool {
    let foreign = foreign_of(project, run_dir, &machine.env);
    let Some(foreign) = foreign.filter(|it| it.dialect.replaces()) else { return false };
    let reading = foreign.read_files(&mut look_place(project, &machine.looking()));
    let told = reading.ok().and_then(|it| it.told);
    told.is_some_and(|it| it.superseded().is_some())
}

/// A task list speaks of files and commits of the project, which are looked at too.
fn listed(
    project: &Project,
    dialect: &'static dyn Dialect,
    source: &str,
    env: &[(OsString, OsString)],
) -> Site {
    let search = Search { dialects: &[dialect], env, tasks: None };
    let found = search.of_list(project, &project.root().join(source));
    found.map_or_else(|| Site::at(dialect.card(), source), |it| it.site)
}

/// Where a run that begins another system's files puts them, when the user named no place: a task
/// list of its own.
pub(crate) fn placed(
    workflow: &Loaded,
    project: &Project,
    inputs: &mut BTreeMap<String, Value>,
    machine: &Machine,
) -> Result<(), EngineError> {
    let Some(dialect) = of_workflow(&workflow.workflow.name) else { return Ok(()) };
    let dir = inputs.get("dir").and_then(Value::as_str).unwrap_or_default();
    if dialect.card().home != Home::TaskLists || !dir.is_empty() {
        return Ok(());
    }
    let search = Search { dialects: &[], env: &machine.env, tasks: None };
    let root = search.tasks_root().ok_or(EngineError::NoTaskLists)?;
    let name = format!("{} {}", project.root().display(), wall_clock());
    let name = Digest::of(name.as_bytes()).to_string();
    let dir = root.join(format!("onward-{}", name.get(..8).unwrap_or(&name)));
    inputs.insert("dir".to_owned(), Value::from(dir.display().to_string()));
    Ok(())
}

fn canonical(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}

/// It is the second record, or the first that a repair put back; the rest is not read.
fn adopted(run_dir: &Path) -> Option<(RunOpened, Adopted)> {
    let journal = open::own(run_dir, JOURNAL, open::To::Read, 0).ok()?;
    let mut lines = BufReader::new(journal).split(b'\n');
    let Event::RunOpened(opened) = decode_line(&lines.next()?.ok()?).ok()?.event else {
        return None;
    };
    for line in lines {
        let event = decode_line(&line.ok()?).ok()?.event;
        if let Event::RunAdopted { dialect, source, files } = event {
            return Some((*opened, Adopted { dialect, source, files }));
        }
        if !matches!(event, Event::JournalRepaired { .. }) {
            break;
        }
    }
    None
}

/// How a run of the built-in workflow of a dialect was adopted, when nothing has kept that: the
/// workflow is told where the other system's files are, and they are there.
pub(crate) fn supposed(project: &Project, opened: &RunOpened) -> Option<Adopted> {
    let dialect = of_workflow(&opened.workflow).filter(|_| opened.file.is_none())?;
    let source = opened.inputs.get("dir").and_then(Value::as_str)?.to_owned();
    let mark = dialect.card().marks.first()?;
    let is_there = project.root().join(&source).join(mark.glob).is_file();
    let dialect = dialect.card().name.to_owned();
    is_there.then_some(Adopted { dialect, source, files: Vec::new() })
}

fn of_workflow(name: &str) -> Option<&'static dyn Dialect> {
    let goes_on = |it: &&&'static dyn Dialect| it.card().workflows.contains(&name);
    dialects().iter().find(goes_on).copied()
}

fn is_complete(run_dir: &Path) -> bool {
    let bytes = open::read_own(run_dir, JOURNAL, open::LOG_BYTES_MAX).unwrap_or_default();
    let status = load(&bytes).map(|it| it.state.status);
    status.is_ok_and(|it| it == RunStatus::Ended { status: EndStatus::Completed })
}

/// What a run says that begins another system's files itself. Refused where they are begun already.
pub(crate) fn begun_here(
    project: &Project,
    workflow: &Loaded,
    inputs: &mut BTreeMap<String, Value>,
    machine: &Machine,
) -> Result<Option<Adopted>, EngineError> {
    let Some(dialect) = of_workflow(&workflow.workflow.name) else { return Ok(None) };
    let fresh = dialect.fresh(inputs, wall_clock());
    inputs.extend(fresh);
    let source = inputs.get("dir").and_then(Value::as_str).unwrap_or(".").to_owned();
    let site = dialect.site(&source, &workflow.workflow.name, inputs);
    let foreign = Foreign { dialect, site, begins: false };
    let mut world = look_place(project, machine);
    if let Ok(reading) = foreign.read(&mut world)
        && let Some(told) = reading.told
    {
        let found = FoundSite::new(dialect, foreign.site.clone(), project);
        let begun = || EngineError::BegunElsewhere { dir: found.path() };
        match told.standing(wall_clock()).status {
            Status::Fresh => inputs.extend(told.inputs()),
            Status::Completed => {
                let changes = told.retire(wall_clock()).ok_or_else(begun)?;
                let _held = world.hold(&foreign.site, foreign.card())?;
                write(&mut world, &foreign, &changes)?;
            }
            Status::Running
            | Status::Interrupted
            | Status::Waiting
            | Status::Parked
            | Status::OverBudget
            | Status::Failed
            | Status::Cancelled => return Err(begun()),
        }
    }
    let dialect = dialect.card().name.to_owned();
    Ok(Some(Adopted { dialect, source, files: Vec::new() }))
}

/// Holds another system's run by that system's own lock. Refused while a run of ours goes on with
/// it.
fn hold_untaken(
    found: &FoundSite,
    machine: &Machine,
) -> Result<(RealWorld, Foreign, Hold), EngineError> {
    let FoundSite { dialect, site, project, .. } = found;
    let foreign = Foreign { dialect: *dialect, site: site.clone(), begins: false };
    let mut world = look_place(project, machine);
    let held = world.hold(site, found.card())?;
    if adopter(project, found).is_ok_and(|it| it.is_some_and(|it| !it.is_complete)) {
        return Err(EngineError::BegunElsewhere { dir: found.path() });
    }
    Ok((world, foreign, held))
}

/// Whether another system keeps its earlier runs in an archive of its own.
pub fn retires(found: &FoundSite, machine: &Machine) -> Result<bool, EngineError> {
    let mut world = look_place(&found.project, &machine.looking());
    let foreign = Foreign { dialect: found.dialect, site: found.site.clone(), begins: false };
    let reading = foreign.parse(found.seen.files(&mut world, &found.site, found.card())?)?;
    Ok(reading.told.is_some_and(|told| told.retire(wall_clock()).is_some()))
}

/// Keeps another system's run in its own archive, so that a new one can begin in its place; false
/// when it has no such archive. Refused while a run of ours goes on with it.
pub fn retire(found: &FoundSite, machine: &Machine) -> Result<bool, EngineError> {
    let (mut world, foreign, _held) = hold_untaken(found, machine)?;
    let told = foreign.read(&mut world)?.told;
    let Some(changes) = told.and_then(|told| told.retire(wall_clock())) else { return Ok(false) };
    write(&mut world, &foreign, &changes)?;
    Ok(true)
}

/// Makes the run that goes on with another system's; nothing in its files changes yet.
pub fn adopt(
    found: &FoundSite,
    workflow: &Loaded,
    machine: &Machine,
    mode: Mode,
) -> Result<Begun, EngineError> {
    let FoundSite { site, project, seen, .. } = found;
    let (mut world, foreign, _held) = hold_untaken(found, machine)?;
    // As they were examined. The resume looks once more before it writes anything.
    let reading = foreign.parse(seen.files(&mut world, site, found.card())?)?;
    let standing = reading.told.map(|told| told.standing(wall_clock()));
    let missing = missing(&workflow.workflow, machine);
    if let Some(error) = missing.filter(|_| standing.is_none_or(|it| it.needs_agents)) {
        return Err(ResumeError::Conflicts(vec![prerequisite(&error)]).into());
    }
    let source = |it: onward_core::event::Exported| SourceFile { path: it.path, hash: it.hash };
    let files = exported(&foreign, &reading.files).into_iter().map(source).collect();
    let new = NewRun {
        workflow,
        file: None,
        inputs: site.inputs.clone(),
        mode,
        now: wall_clock(),
        boot_id: this_boot()?,
        adopted: Some(Adopted {
            dialect: found.card().name.to_owned(),
            source: site.dir().to_owned(),
            files,
        }),
    };
    let begun = begin_with(project, &new, machine)?;
    Ok(Begun { seen: seen.clone(), ..begun })
}

/// What the run of a site is opened with, for a plan before there is one.
pub(super) fn imagined(found: &FoundSite, workflow: &Loaded) -> Vec<Event> {
    let mut inputs = found.site.inputs.clone();
    for (name, input) in &workflow.workflow.inputs {
        if let Some(default) = &input.default {
            inputs.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    let opened = RunOpened {
        format: onward_core::journal::FORMAT,
        run: RunId::imagined(),
        workflow: found.site.workflow.to_owned(),
        workflow_hash: workflow.hash,
        file: None,
        inputs,
        git: None,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id: String::new(),
        mode: Mode::Autopilot,
    };
    let adopted = Event::RunAdopted {
        dialect: found.card().name.to_owned(),
        source: found.site.dir().to_owned(),
        files: vec![SourceFile { path: String::new(), hash: Digest::of(b"") }],
    };
    vec![Event::RunOpened(Box::new(opened)), adopted]
}
