//! Which run goes on with a directory of another system: the one that adopted it, or a new one.
//!
//! Invariant: a directory is adopted by one run at a time; whoever makes one holds the directory,
//! and looks again after it got hold of it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
};

use onward_core::{
    digest::Digest,
    event::{EndStatus, Event, Mode, RunOpened, SourceFile},
    journal::decode_line,
    plan::Status,
    state::{Adopted, RunStatus},
    workflow::Loaded,
};
use onward_dialects::{Dialect, dialects};
use serde_json::Value;

use super::Native;
use crate::{
    engine::{self, Begun, EngineError, Machine},
    foreign::{Foreign, at, snapshot},
    load::journal::{JOURNAL, load},
    locate::{FindError, NewRun, Project, RunDir},
    world::{Stop, real::wall_clock},
};

/// A run that goes on, or went on, with a directory of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopter {
    pub run: RunDir,
    pub is_complete: bool,
}

/// The run that adopted the directory: one that is not complete, or else the last active one.
pub fn find(project: &Project, dir: &Path) -> Result<Option<Adopter>, FindError> {
    let wanted = canonical(dir);
    let mut complete = None;
    for run in project.runs()? {
        let source = adopted(&run.dir).map(|it| canonical(&project.root().join(it.source)));
        if source.as_ref() != Some(&wanted) {
            continue;
        }
        if !is_complete(&run.dir) {
            return Ok(Some(Adopter { run, is_complete: false }));
        }
        complete = complete.or(Some(Adopter { run, is_complete: true }));
    }
    Ok(complete)
}

/// Where a run was found; `None` for one of our own.
pub fn is_of(project: &Project, run_dir: &Path) -> Option<PathBuf> {
    Some(canonical(&project.root().join(adopted(run_dir)?.source)))
}

pub(crate) fn of_run(project: &Project, run_dir: &Path) -> Option<Native> {
    Native::of(project, &adopted(run_dir)?)
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
    let is_of = |it: &&&dyn Dialect| it.workflow() == opened.workflow && opened.file.is_none();
    let dialect = dialects().iter().find(is_of)?;
    let source = opened.inputs.get("dir").and_then(Value::as_str)?.to_owned();
    let is_there = project.root().join(&source).join(dialect.marks().first()?).is_file();
    let dialect = dialect.name().to_owned();
    is_there.then_some(Adopted { dialect, source, files: Vec::new() })
}

fn is_complete(run_dir: &Path) -> bool {
    let bytes = fs::read(run_dir.join(JOURNAL)).unwrap_or_default();
    let status = load(&bytes).map(|it| it.state.status);
    status.is_ok_and(|it| it == RunStatus::Ended { status: EndStatus::Completed })
}

/// What a run says that begins another system's files itself. Refused where somebody has begun.
pub(crate) fn begun_here(
    project: &Project,
    workflow: &Loaded,
    inputs: &BTreeMap<String, Value>,
) -> Result<Option<Adopted>, EngineError> {
    let is_of = |it: &&&dyn Dialect| it.workflow() == workflow.workflow.name;
    let Some(dialect) = dialects().iter().find(is_of) else { return Ok(None) };
    let source = inputs.get("dir").and_then(Value::as_str).unwrap_or(".").to_owned();
    let dir = project.root().join(&source);
    if let Some(foreign) = at(&dir, Some(dialect.name())).map_err(Stop::from)?
        && let Ok(plan) = foreign.plan(wall_clock())
        && plan.run.status != Status::Fresh
    {
        return Err(EngineError::BegunElsewhere { dir });
    }
    Ok(Some(Adopted { dialect: dialect.name().to_owned(), source, files: Vec::new() }))
}

/// Makes the run that goes on with a directory; nothing in the directory changes yet.
pub fn begin(
    project: &Project,
    foreign: &Foreign<'_>,
    workflow: &Loaded,
    machine: &Machine,
    mode: Mode,
) -> Result<Begun, EngineError> {
    let native = Native::new(project, foreign.dir, foreign.dialect);
    let _held = native.hold()?;
    if find(project, foreign.dir).is_ok_and(|it| it.is_some_and(|it| !it.is_complete)) {
        return Err(EngineError::BegunElsewhere { dir: native.dir });
    }
    let files = snapshot(foreign.dir, foreign.dialect).map_err(Stop::from)?;
    let source = |(path, file): (&str, &onward_dialects::File)| SourceFile {
        path: path.to_owned(),
        hash: Digest::of(&file.bytes),
    };
    let new = NewRun {
        workflow,
        file: None,
        inputs: foreign.dialect.inputs(&native.source),
        mode,
        now: wall_clock(),
        boot_id: engine::this_boot()?,
        adopted: Some(Adopted {
            dialect: foreign.dialect().to_owned(),
            source: native.source,
            files: files.iter().map(source).collect(),
        }),
    };
    engine::begin(project, &new, machine)
}
