//! Which runs a person may mean by a name, a directory or a file, and why none is meant.
//!
//! Invariant: looks only. What may be another project's is meant by its whole name alone.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use onward_core::{address::Address, plan::Status};
use onward_engine::{
    care::archive::collectable,
    dialects::{Home, dialect, dialects},
    locate::{FindError, FoundSite, Project, Search, near},
};

use crate::{
    cmd::Context,
    command,
    error::Error,
    open::Found,
    session::{Session, Which, found_in_commands, not_adopted, open_run, word},
};

/// How a run was named on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// An id, a prefix of one, or a directory.
    pub(crate) run: Option<&'a str>,
    /// Which system wrote it.
    pub(crate) dialect: Option<&'a str>,
    /// Where task lists are.
    pub(crate) tasks: Option<&'a Path>,
    /// Where nothing is named, the last active one is meant: for what only looks.
    pub(crate) newest: bool,
    /// The command that asks, for a hint.
    pub(crate) command: &'static str,
}

impl Wanted<'_> {
    /// Refused when it names a system that is not known.
    pub(crate) fn names_a_dialect(&self) -> Result<(), Error> {
        let Some(name) = self.dialect.filter(|name| dialect(name).is_none()) else {
            return Ok(());
        };
        let known = dialects().iter().map(|it| it.card().name.to_owned()).collect();
        Err(Error::NoSuchDialect { name: name.to_owned(), known })
    }
}

/// Where a pipeline of this project was looked for, in vain.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The directory of all task lists.
    pub(crate) root: Option<PathBuf>,
    /// Lists without a pipeline: one can be begun there.
    pub(crate) lists: Vec<PathBuf>,
    /// Lists that hold one of another project.
    pub(crate) others: Vec<PathBuf>,
}

/// The directory whose runs a person means who names none: the current one, or around it, within
/// the project, the nearest in which another system left a run.
pub(crate) fn here(cx: &Context, session: &Session) -> Result<PathBuf, Error> {
    let cwd = &cx.global.cwd;
    let cannot_read = |source| Error::CannotRead { path: cwd.clone(), source };
    let here = std::path::absolute(cwd).map_err(cannot_read)?;
    // The project's root is known without links.
    let whole = here.canonicalize().map_err(cannot_read)?;
    let nearest = session.search(None).nearest(&session.project, &whole);
    Ok(if nearest == whole { here } else { nearest })
}

impl Looked {
    pub(crate) fn of(search: &Search<'_>, found: &[FoundSite]) -> Self {
        let in_lists = found.iter().filter(|it| it.card().home == Home::TaskLists);
        let known: BTreeSet<&PathBuf> = in_lists.clone().map(|it| &it.dir).collect();
        let mut lists = search.task_lists();
        lists.retain(|it| !known.contains(it));
        let others = in_lists.filter(|it| it.site.elsewhere).map(|it| it.dir.clone());
        Self { root: search.tasks_root(), lists, others: others.collect() }
    }
}

/// Runs of other systems by a file that speaks of them, or by the name that lists give them, as one
/// directory may hold several: here and below, or in the directory that stands before the name.
pub(crate) fn called(
    cx: &Context,
    search: &Search<'_>,
    name: &str,
    path: &Path,
) -> std::io::Result<Vec<FoundSite>> {
    if path.is_file() {
        return search.about(path);
    }
    let last = path.file_name().and_then(|it| it.to_str()).unwrap_or(name);
    let mut found = match path.parent().filter(|it| name.contains('/') && it.is_dir()) {
        Some(dir) => search.at(dir, None)?,
        None => search.below(&std::path::absolute(cx.path(Path::new(".")))?)?,
    };
    let is_it = |it: &FoundSite| it.site.name == last;
    if found.iter().any(is_it) {
        found.retain(is_it);
    } else {
        // A part of a name means no list that may be another project's.
        found.retain(|it| it.site.name.starts_with(last) && is_sure(it));
    }
    Ok(found)
}

/// Nothing is called so: a workflow file is no run, and one of another system may be meant.
pub(crate) fn unknown(
    cx: &Context,
    (project, search): (&Project, &Search<'_>),
    name: &str,
    error: FindError,
) -> Error {
    let is_workflow = Path::new(name).extension().is_some_and(|it| it == "yaml" || it == "yml");
    if is_workflow && cx.path(Path::new(name)).is_file() {
        let file = word(name);
        return Error::Usage {
            message: format!("`{name}` is a workflow file, not a run"),
            hint: format!("`onward check {file}` looks at it, `onward run {file}` starts it"),
        };
    }
    // A run that is here is meant before one that was put away.
    if let FindError::Several { .. } = error {
        return error.into();
    }
    if let Some(archived) = archived(project, name) {
        return archived;
    }
    let FindError::NoRuns = error else { return error.into() };
    // A project that holds runs of other systems is not without runs.
    let others = search.below(&cx.path(Path::new("."))).unwrap_or_default();
    if !others.iter().any(is_here) {
        return error.into();
    }
    let near = near(name, others.iter().filter(|it| is_here(it)).map(|it| it.site.name.as_str()));
    FindError::NoSuchRun { wanted: name.to_owned(), near }.into()
}

/// A run that was moved to the archive under this name.
fn archived(project: &Project, name: &str) -> Option<Error> {
    let all = collectable(project, u32::MAX).ok()?.kept;
    let found = all.iter().find(|it| it.run.as_str().starts_with(name))?;
    let run = found.run.to_string();
    let back = command::path(&project.runs_dir().join(&run));
    Some(Error::Archived { run, dir: command::path(&found.dir), back })
}

/// No run of ours is here. One that another system left may be meant.
pub(crate) fn left_here(
    cx: &Context,
    session: &Session,
    error: FindError,
) -> Result<PathBuf, Error> {
    if !matches!(error, FindError::NoRuns) {
        return Err(error.into());
    }
    match session.which(cx, &Wanted { newest: true, ..Wanted::default() }) {
        Ok(Which::Ours(dir)) => Ok(dir),
        Ok(Which::Foreign(found)) if !is_sure(&found) => Err(error.into()),
        Ok(Which::Foreign(found)) if session.is_over(&found) => {
            Err(Error::NoneOpen { names: vec![found_in_commands(&found)] })
        }
        Ok(Which::Foreign(found)) => Err(not_adopted(&found)),
        Err(none @ Error::NoneOpen { .. }) => Err(none),
        Err(_) => Err(error.into()),
    }
}

/// No run is called so, and a step of the last one is.
pub(crate) fn run_of_step(session: &Session, wanted: Option<&str>, error: Error) -> Error {
    let (Some(step), Error::Find(FindError::NoSuchRun { .. })) = (wanted, &error) else {
        return error;
    };
    let last = session.project.last_run().ok().and_then(|it| open_run(&it.dir).ok());
    if last.is_none_or(|it| it.graph.find(&Address::from_text(step)).is_none()) {
        return error;
    }
    Error::Usage {
        message: format!("`{step}` is a step, not a run"),
        hint: format!("see what it printed with `onward log --step {}`", word(step)),
    }
}

/// No run is unfinished. The last one may be complete, or cancelled.
pub(crate) fn none_unfinished(session: &Session) -> Error {
    let last = session.project.last_run().ok().and_then(|it| Found::look(it).ok());
    let Some(last) = last else { return Error::NothingToResume };
    let run = last.dir.id.to_string();
    match last.status {
        Status::Completed => Error::LastIsComplete { run },
        Status::Cancelled => Error::LastIsCancelled { run },
        Status::Fresh
        | Status::Running
        | Status::Interrupted
        | Status::Waiting
        | Status::Parked
        | Status::OverBudget
        | Status::Failed => Error::NothingToResume,
    }
}

/// It lies in the project itself, not in the user's task lists.
fn is_here(found: &FoundSite) -> bool {
    found.card().home == Home::Project
}

/// It is over, or was never begun, and lies in the project.
pub(crate) fn is_closed(found: &FoundSite) -> bool {
    is_here(found) && found.site.by_name_only
}

/// It may be meant without its whole name.
pub(crate) fn is_sure(found: &FoundSite) -> bool {
    found.is_candidate() && !found.site.unsure
}
