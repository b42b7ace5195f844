//! A directory that holds a run under another name than the run's own.
//!
//! Invariant: a run is one directory, named by its id. A copy of it in the store would share its
//! locks, branches and rescues by that id, so none is looked at or continued.

use std::path::{Path, PathBuf};

use onward_core::{id::RunId, workflow::template::quoted};

use super::{Project, opened};

/// What the directory holds by its journal.
#[derive(Debug, thiserror::Error)]
#[error("{} holds run `{run}`, which goes by its own name", dir.display())]
pub struct Misnamed {
    dir: PathBuf,
    run: RunId,
}

impl Misnamed {
    /// `run` is what the journal in `dir` tells of.
    pub fn check(dir: &Path, run: &RunId) -> Result<(), Self> {
        Self::of(dir, run).map_or(Ok(()), Err)
    }

    pub fn of(dir: &Path, run: &RunId) -> Option<Self> {
        let is_named = dir.file_name().is_some_and(|name| name == run.as_str());
        (!is_named).then(|| Self { dir: dir.to_owned(), run: run.clone() })
    }

    /// Whether `dir` is a copy of the run beside it, which is the one that is meant.
    pub fn is_copy(dir: &Path) -> bool {
        let found = opened(dir).and_then(|it| Self::of(dir, &it.run));
        found.is_some_and(|it| it.home().exists())
    }

    /// Where the run belongs.
    fn home(&self) -> PathBuf {
        self.dir.with_file_name(self.run.as_str())
    }

    /// A copy goes elsewhere; a run that was renamed gets its name back.
    pub fn hint(&self) -> String {
        let home = self.home();
        let (words, to) = match (Project::of_run(&self.dir), self.dir.file_name()) {
            (Some(project), Some(name)) if home.exists() => {
                ("move the copy away", project.onward_dir().join(name))
            }
            (Some(_) | None, Some(_) | None) => ("give the run its name back", home),
        };
        let word = |path: &Path| quoted(&path.display().to_string());
        format!("{words}: `mv {} {}`", word(&self.dir), word(&to))
    }
}
