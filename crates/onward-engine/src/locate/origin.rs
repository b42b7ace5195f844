//! The workflow file that a run was made from, as it is now.

use crate::world::open;
use std::{
    io::{BufRead as _, BufReader},
    path::Path,
};

use onward_core::{
    event::{Event, RunOpened},
    finding::{Code, Finding},
    journal::decode_line,
    workflow::{Loaded, template::quoted},
};

use super::{
    LoadWorkflowError, Project, load_workflow,
    pinned::{CHANGED, PINNED, WORKFLOW},
};
use crate::load::journal::JOURNAL;

/// What became of the file.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Where it was is not known, or it is gone: the run keeps its copy.
    Gone,
    /// As the run keeps it: there is nothing to read in it.
    Same,
    Valid(Box<Loaded>),
    /// It is no workflow now; the run keeps its copy, and this is said.
    Invalid(Finding),
}

impl Origin {
    pub fn of(project: &Project, run_dir: &Path) -> Self {
        let Some(file) = opened(run_dir).and_then(|opened| opened.file) else { return Self::Gone };
        let path = project.root().join(&file);
        if is_kept(run_dir, &path) {
            return Self::Same;
        }
        match load_workflow(&path) {
            Ok(loaded) => Self::Valid(Box::new(loaded)),
            Err(LoadWorkflowError::Io { .. } | LoadWorkflowError::Altered { .. }) => Self::Gone,
            Err(LoadWorkflowError::Invalid(problems)) => {
                let first = problems.first().map(|it| it.message.clone()).unwrap_or_default();
                let message = format!("{file} is not a valid workflow now: {first}");
                let finding = Finding::new(Code::WorkflowChanged, message).at_path(&file);
                let path = quoted(&path.display().to_string());
                let hint = format!("the run continues with its copy; see `onward check {path}`");
                Self::Invalid(finding.with_hint(hint))
            }
        }
    }

    /// The file, where a run can go on with it.
    pub fn valid(self) -> Option<Loaded> {
        match self {
            Self::Valid(loaded) => Some(*loaded),
            Self::Gone | Self::Same | Self::Invalid(_) => None,
        }
    }
}

/// Whether the file is, byte for byte, the one copy that the run keeps. One that includes others,
/// or was changed before, is looked at more closely.
fn is_kept(run_dir: &Path, path: &Path) -> bool {
    let is_plain = !run_dir.join(CHANGED).exists() && !run_dir.join(PINNED).exists();
    let same = || {
        let kept = open::own(run_dir, WORKFLOW, open::To::Read, 0)?;
        open::are_the_same(&kept, &open::named(path)?)
    };
    is_plain && same().is_ok_and(|it| it)
}

/// The first record of a run, without reading the rest.
pub fn opened(run_dir: &Path) -> Option<RunOpened> {
    let journal = open::own(run_dir, JOURNAL, open::To::Read, 0).ok()?;
    let mut line = Vec::new();
    BufReader::new(journal).read_until(b'\n', &mut line).ok()?;
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let Event::RunOpened(opened) = decode_line(line).ok()?.event else { return None };
    Some(*opened)
}
