//! A workflow from its file, and from the copy that a run keeps.
//!
//! Invariant: a run reads its copies only. The first file is `workflow.yaml`; what it includes lies
//! under `pinned/` by the path it was included by, so that no included file can take the name of
//! one of ours. Where the workflow was changed between two resumes, the copy that counts lies under
//! `workflows/<hash>/`, and the journal says which. A copy counts only if it is the text that the
//! journal names by its hash; one that is not is taken from the project's file, if that still is.

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
    workflow::{Loaded, Problem, load, model::PinnedFile, template::quoted},
};

use super::{Project, origin::opened, packed};
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
    /// Neither the copy nor the file is the text that the run was started with.
    #[error("the copy of its workflow that the run keeps is not the one that its journal names")]
    Altered {
        /// The file that the run was made from, as the journal names it, and where that is.
        file: Option<(String, PathBuf)>,
    },
}

impl LoadWorkflowError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { .. } | Self::Invalid(_) => None,
            Self::Altered { file: Some((file, path)) } => {
                let path = quoted(&path.display().to_string());
                Some(format!(
                    "bring {file} back as it was when the run last continued, and the run takes it \
                     from there; or start another one with `onward run {path}`"
                ))
            }
            Self::Altered { file: None } => {
                Some("start another run; `onward archive` puts this one away".to_owned())
            }
        }
    }
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
    Kept::of(run_dir).load(run_dir).map(|(loaded, _)| loaded)
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
        let kept = Kept::of(run_dir);
        if let Some((defs, files, hash)) = packed::read(run_dir, &kept.dir, env)
            && kept.is(run_dir, &files)
        {
            return Ok(Self { defs: Arc::new(defs), files, hash });
        }
        let (loaded, found) = kept.load(run_dir)?;
        let (files, hash) = (loaded.files.clone(), loaded.hash);
        let defs = match found {
            Found::Copy => defs(&kept.dir, loaded),
            // A packed form would lie beside a text that it is not of.
            Found::Origin => Defs::new(loaded.workflow),
        };
        Ok(Self { defs: Arc::new(defs), files, hash })
    }
}

/// The copy that counts: where it lies, and what the journal says that it is.
struct Kept {
    dir: PathBuf,
    /// `None` where the journal does not say.
    hash: Option<Digest>,
}

/// Where the text that the journal names was found.
enum Found {
    Copy,
    /// In the project: the copy is not what it was.
    Origin,
}

impl Kept {
    /// Most runs have the first copy alone, and then only the first record is read.
    fn of(run_dir: &Path) -> Self {
        let copies = run_dir.join(CHANGED);
        if !copies.is_dir() {
            let hash = opened(run_dir).map(|opened| opened.workflow_hash);
            return Self { dir: run_dir.to_owned(), hash };
        }
        let journal = open::read_own(run_dir, JOURNAL, open::LOG_BYTES_MAX).ok();
        let loaded = journal.and_then(|journal| load_journal(&journal).ok());
        Self::under(run_dir, loaded.and_then(|it| it.state.workflow_hash))
    }

    fn under(run_dir: &Path, hash: Option<Digest>) -> Self {
        let copy = hash.map(|hash| run_dir.join(CHANGED).join(hash.to_string()));
        let dir = copy.filter(|copy| copy.is_dir()).unwrap_or_else(|| run_dir.to_owned());
        Self { dir, hash }
    }

    /// The name of the first file is part of what is hashed, and a copy has another one.
    fn is(&self, run_dir: &Path, files: &[PinnedFile]) -> bool {
        let (Some(hash), Some(opened)) = (self.hash, opened(run_dir)) else { return true };
        let file = opened.file.as_deref().map(|it| it.rsplit('/').next().unwrap_or(it));
        let built_in = format!("{}.yaml", opened.workflow);
        let first = files.first().map(|it| it.path.as_str());
        let names = [file, first, Some(WORKFLOW), Some(&*built_in), Some(&opened.workflow)];
        names.into_iter().flatten().any(|name| hash == hash_under(name, files))
    }

    fn load(&self, run_dir: &Path) -> Result<(Loaded, Found), LoadWorkflowError> {
        let copy = load_copy(run_dir, &self.dir);
        if self.hash.is_none() || copy.as_ref().is_ok_and(|it| self.is(run_dir, &it.files)) {
            return copy.map(|copy| (copy, Found::Copy));
        }
        // A link, or whatever else stands in its place, is a stranger's.
        if let Err(LoadWorkflowError::Io { source, .. }) = &copy
            && source.kind() != io::ErrorKind::NotFound
        {
            return copy.map(|copy| (copy, Found::Copy));
        }
        let file = opened(run_dir).and_then(|opened| opened.file);
        let project = Project::of_run(run_dir);
        let file = file.zip(project).map(|(file, it)| {
            let path = it.root().join(&file);
            (file, path)
        });
        let origin = file.as_ref().and_then(|(_, path)| load_workflow(path).ok());
        match origin.filter(|origin| Some(origin.hash) == self.hash) {
            Some(origin) => Ok((origin, Found::Origin)),
            None => Err(LoadWorkflowError::Altered { file }),
        }
    }
}

/// The hash of these files, the first of them called so.
pub(super) fn hash_under(name: &str, files: &[PinnedFile]) -> Digest {
    let names = std::iter::once(name).chain(files.iter().skip(1).map(|it| it.path.as_str()));
    let texts = files.iter().map(|it| it.text.as_bytes());
    Digest::of_parts(names.zip(texts).flat_map(|(name, text)| [name.as_bytes(), text]))
}

/// A copy is a file of the run: no link in its name leads elsewhere.
fn load_copy(run_dir: &Path, dir: &Path) -> Result<Loaded, LoadWorkflowError> {
    let read = |path: &Path| {
        let below = path.strip_prefix(run_dir).map_err(io::Error::other)?;
        open::read_own(run_dir, below, open::LOG_BYTES_MAX)
    };
    load_with(&read, &dir.join(WORKFLOW), WORKFLOW, &dir.join(PINNED))
}

/// Reads the copy that was kept under this hash; the first one where there is none.
pub fn load_kept(run_dir: &Path, hash: Option<Digest>) -> Result<Loaded, LoadWorkflowError> {
    let first = || opened(run_dir).map(|opened| opened.workflow_hash);
    let mut kept = Kept::under(run_dir, hash);
    kept.hash = hash.or_else(first);
    kept.load(run_dir).map(|(loaded, _)| loaded)
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
