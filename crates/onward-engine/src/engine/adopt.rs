//! Which run goes on with another system's run: the one that adopted it, or a new one.
//!
//! Invariant: a run of another system is adopted by one run of ours at a time; the engine that
//! makes one holds the site's lock and looks again after it got it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use onward_core::{
    digest::Digest,
    event::{EndStatus, Event, Mode, RunOpened, SourceFile},
    id::RunId,
    journal::decode_line,
    plan::Status,
    state::{Adopted, RunStatus},
    workflow::Loaded,
};
use onward_dialects::{Dialect, Site, dialect, dialects};
use serde_json::Value;

use super::{Begun, EngineError, Machine, begin_with, look_place, this_boot};
use crate::{
    agents,
    foreign::{Foreign, exported},
    load::journal::{JOURNAL, load},
    locate::{FindError, FoundSite, NewRun, Project, RunDir},
    world::{World as _, real::wall_clock},
};

/// A run of ours that goes on, or went on, with another system's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopter {
    pub run: RunDir,
    pub is_complete: bool,
}

/// The run that adopted the site: one that is not complete, or else the last active one.
pub fn adopter(project: &Project, found: &FoundSite) -> Result<Option<Adopter>, FindError> {
    let wanted = canonical(&found.dir);
    let mut complete = None;
    for run in project.runs()? {
        let Some(adopted) = adopted(&run.dir) else { continue };
        let is_it = adopted.dialect == found.card().name
            && canonical(&project.root().join(&adopted.source)) == wanted;
        if !is_it {
            continue;
        }
        if !is_complete(&run.dir) {
            return Ok(Some(Adopter { run, is_complete: false }));
        }
        complete = complete.or(Some(Adopter { run, is_complete: true }));
    }
    Ok(complete)
}

/// Where another system's run was found that this one goes on with; `None` for one of our own.
pub fn adopted_from(project: &Project, run_dir: &Path) -> Option<(String, PathBuf)> {
    let adopted = adopted(run_dir)?;
    Some((adopted.dialect, canonical(&project.root().join(adopted.source))))
}

/// The same as the engine works with it; `None` also when this build does not know the dialect.
pub(crate) fn foreign_of(project: &Project, run_dir: &Path) -> Option<Foreign> {
    let adopted = adopted(run_dir)?;
    let dialect = dialect(&adopted.dialect)?;
    let mut site = Site::at(dialect.card(), &adopted.source);
    if adopted.source != "." {
        site.place = project.root().join(&adopted.source).display().to_string();
    }
    Some(Foreign { dialect, site, begins: adopted.files.is_empty() })
}

fn canonical(dir: &Path) -> PathBuf {
    fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned())
}

/// It is the second record, or the first that a repair put back; the rest is not read.
fn adopted(run_dir: &Path) -> Option<Adopted> {
    let journal = File::open(run_dir.join(JOURNAL)).ok()?;
    for line in BufReader::new(journal).split(b'\n').skip(1) {
        let event = decode_line(&line.ok()?).ok()?.event;
        if let Event::RunAdopted { dialect, source, files } = event {
            return Some(Adopted { dialect, source, files });
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
    let bytes = fs::read(run_dir.join(JOURNAL)).unwrap_or_default();
    let status = load(&bytes).map(|it| it.state.status);
    status.is_ok_and(|it| it == RunStatus::Ended { status: EndStatus::Completed })
}

/// What a run says that begins another system's files itself. Refused where they are begun already.
pub(crate) fn begun_here(
    project: &Project,
    workflow: &Loaded,
    inputs: &BTreeMap<String, Value>,
    machine: &Machine,
) -> Result<Option<Adopted>, EngineError> {
    let Some(dialect) = of_workflow(&workflow.workflow.name) else { return Ok(None) };
    if !dialect.card().continues {
        return Err(EngineError::CannotContinue { dialect: dialect.card().name });
    }
    let source = inputs.get("dir").and_then(Value::as_str).unwrap_or(".").to_owned();
    let site = Site::at(dialect.card(), &source);
    let foreign = Foreign { dialect, site, begins: false };
    let mut world = look_place(project, machine);
    if let Ok(reading) = foreign.read(&mut world)
        && let Some(told) = reading.told
        && told.standing(wall_clock()).status != Status::Fresh
    {
        return Err(EngineError::BegunElsewhere { dir: project.root().join(&source) });
    }
    let dialect = dialect.card().name.to_owned();
    Ok(Some(Adopted { dialect, source, files: Vec::new() }))
}

/// Makes the run that goes on with another system's; nothing in its files changes yet.
pub fn adopt(
    found: &FoundSite,
    workflow: &Loaded,
    machine: &Machine,
    mode: Mode,
) -> Result<Begun, EngineError> {
    let FoundSite { dialect, site, project, dir } = found;
    let foreign = Foreign { dialect: *dialect, site: site.clone(), begins: false };
    let mut world = look_place(project, machine);
    let _held = world.hold(site, found.card())?;
    if adopter(project, found).is_ok_and(|it| it.is_some_and(|it| !it.is_complete)) {
        return Err(EngineError::BegunElsewhere { dir: dir.clone() });
    }
    let reading = foreign.read(&mut world)?;
    let standing = reading.told.map(|told| told.standing(wall_clock()));
    let missing = agents::missing(&workflow.workflow, &machine.agents);
    if let Some(error) = missing.filter(|_| standing.is_none_or(|it| it.needs_agents)) {
        return Err(error.into());
    }
    if !found.card().continues {
        return Err(EngineError::CannotContinue { dialect: found.card().name });
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
    begin_with(project, &new, machine)
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
