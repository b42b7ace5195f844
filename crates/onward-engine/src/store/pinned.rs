//! A workflow from its file, and from the copy that a run keeps.
//!
//! Invariant: a run reads its copy only. The first file is `workflow.yaml`; what it includes lies
//! under `pinned/` by the path it was included by, so that no included file can take the name of
//! one of ours.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use onward_core::workflow::{Loaded, Problem, load};

pub(super) const WORKFLOW: &str = "workflow.yaml";
pub(super) const PINNED: &str = "pinned";

#[derive(Debug, thiserror::Error)]
pub enum LoadWorkflowError {
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// At least one of them is an error.
    #[error("the workflow is not valid")]
    Invalid(Vec<Problem>),
}

/// Reads the file that a person named.
pub fn load_workflow(path: &Path) -> Result<Loaded, LoadWorkflowError> {
    let dir = path.parent().unwrap_or(Path::new("")).to_owned();
    load_with(path, &path.to_string_lossy(), &dir)
}

/// Reads the copy that a run keeps.
pub fn load_pinned(run_dir: &Path) -> Result<Loaded, LoadWorkflowError> {
    load_with(&run_dir.join(WORKFLOW), WORKFLOW, &run_dir.join(PINNED))
}

fn load_with(path: &Path, shown: &str, dir: &Path) -> Result<Loaded, LoadWorkflowError> {
    let bytes =
        fs::read(path).map_err(|source| LoadWorkflowError::Io { path: path.to_owned(), source })?;
    let mut read = |name: &str| fs::read(dir.join(name)).map_err(|error| error.to_string());
    load(shown, &bytes, &mut read).map_err(LoadWorkflowError::Invalid)
}
