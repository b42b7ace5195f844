//! A workflow from its file, and from the copy that a run keeps.
//!
//! Invariant: a run reads its copies only. The first file is `workflow.yaml`; what it includes lies
//! under `pinned/` by the path it was included by, so that no included file can take the name of
//! one of ours. Where the workflow was changed between two resumes, the copy that counts lies under
//! `workflows/<hash>/`, and the journal says which.

use crate::world::open;
use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    digest::Digest,
    graph::Defs,
    workflow::{Loaded, Problem, load, model::PinnedFile},
};

use super::packed;
use crate::load::journal::{JOURNAL, load as load_journal};

pub(super) const WORKFLOW: &str = "workflow.yaml";
pub(super) const PINNED: &str = "pinned";
/// One directory per accepted change of the workflow.
pub(super) const CHANGED: &str = "workflows";

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
    let bytes_max = open::text_bytes_max();
    let read = |path: &Path| open::read_named(path, bytes_max);
    load_with(&read, path, &path.to_string_lossy(), &dir)
}

/// Reads the copy that a run keeps.
pub fn load_pinned(run_dir: &Path) -> Result<Loaded, LoadWorkflowError> {
    let dir = changed_copy(run_dir).unwrap_or_else(|| run_dir.to_owned());
    load_copy(run_dir, &dir)
}

/// The workflow of a run, ready to be run or looked at.
#[derive(Clone, Debug)]
pub struct Pinned {
    pub defs: Arc<Defs>,
    /// As in [`Loaded`].
    pub files: Vec<PinnedFile>,
    pub hash: Digest,
}

impl Pinned {
    /// For one who only looks: nothing is written.
    pub fn look(run_dir: &Path, env: &[(OsString, OsString)]) -> Result<Self, LoadWorkflowError> {
        Self::read(run_dir, env, |_, loaded| Defs::new(loaded.workflow))
    }

    /// For one who drives the run: a large workflow is kept in a form that is read faster.
    pub fn take(run_dir: &Path, env: &[(OsString, OsString)]) -> Result<Self, LoadWorkflowError> {
        Self::read(run_dir, env, |dir, loaded| packed::keep(dir, loaded, env))
    }

    fn read(
        run_dir: &Path,
        env: &[(OsString, OsString)],
        defs: impl FnOnce(&Path, Loaded) -> Defs,
    ) -> Result<Self, LoadWorkflowError> {
        let dir = changed_copy(run_dir).unwrap_or_else(|| run_dir.to_owned());
        if let Some((defs, files, hash)) = packed::read(run_dir, &dir, env) {
            return Ok(Self { defs: Arc::new(defs), files, hash });
        }
        let loaded = load_copy(run_dir, &dir)?;
        let (files, hash) = (loaded.files.clone(), loaded.hash);
        Ok(Self { defs: Arc::new(defs(&dir, loaded)), files, hash })
    }
}

/// A copy is a file of the run: no link in its name leads elsewhere.
fn load_copy(run_dir: &Path, dir: &Path) -> Result<Loaded, LoadWorkflowError> {
    let read = |path: &Path| {
        let below = path.strip_prefix(run_dir).map_err(io::Error::other)?;
        open::read_own(run_dir, below, open::LOG_BYTES_MAX)
    };
    load_with(&read, &dir.join(WORKFLOW), WORKFLOW, &dir.join(PINNED))
}

/// The directory of the copy that replaced the first one. Most runs have none, and then the journal
/// is not read for it.
fn changed_copy(run_dir: &Path) -> Option<PathBuf> {
    let copies = run_dir.join(CHANGED);
    if !copies.is_dir() {
        return None;
    }
    let journal = open::read_own(run_dir, JOURNAL, open::LOG_BYTES_MAX).ok()?;
    let hash = load_journal(&journal).ok()?.state.workflow_hash?;
    Some(copies.join(hash.to_string())).filter(|copy| copy.is_dir())
}

/// Reads the copy that was kept under this hash; the first one where there is none.
pub fn load_kept(run_dir: &Path, hash: Option<Digest>) -> Result<Loaded, LoadWorkflowError> {
    let copy = hash.map(|hash| run_dir.join(CHANGED).join(hash.to_string()));
    let dir = copy.filter(|copy| copy.is_dir()).unwrap_or_else(|| run_dir.to_owned());
    load_copy(run_dir, &dir)
}

/// The hash of the copy that was made last, for a run whose journal does not say which counts.
pub fn last_kept(run_dir: &Path) -> Option<Digest> {
    let entries = fs::read_dir(run_dir.join(CHANGED)).ok()?;
    let copies = entries.flatten().filter_map(|entry| {
        let hash = Digest::parse(entry.file_name().to_str()?.as_bytes())?;
        Some((entry.metadata().ok()?.modified().ok()?, hash))
    });
    copies.max_by_key(|(made, _)| *made).map(|(_, hash)| hash)
}

/// Where the files of a changed workflow are kept, relative to the run, and what they hold.
pub fn pinned_names(new: &Loaded) -> Vec<(String, &str)> {
    let dir = format!("{CHANGED}/{}", new.hash);
    let name = |(index, file): (usize, &PinnedFile)| match index {
        0 => format!("{dir}/{WORKFLOW}"),
        _ => format!("{dir}/{PINNED}/{}", file.path),
    };
    let files = new.files.iter().enumerate();
    files.map(|(index, file)| (name((index, file)), file.text.as_str())).collect()
}

/// Writes the copy once more, beside a journal that was saved from a run whose directory is gone.
pub fn keep_beside(dir: &Path, files: &[PinnedFile]) -> io::Result<()> {
    for (index, file) in files.iter().enumerate() {
        let path = match index {
            0 => dir.join(WORKFLOW),
            _ => dir.join(PINNED).join(&file.path),
        };
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        open::put(&path, file.text.as_bytes(), open::PRIVATE)?;
    }
    Ok(())
}

fn load_with(
    read_at: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
    path: &Path,
    shown: &str,
    dir: &Path,
) -> Result<Loaded, LoadWorkflowError> {
    let failed = |source| LoadWorkflowError::Io { path: path.to_owned(), source };
    let bytes = read_at(path).map_err(failed)?;
    let mut read = |name: &str| read_at(&dir.join(name)).map_err(|error| error.to_string());
    load(shown, &bytes, &mut read).map_err(LoadWorkflowError::Invalid)
}
