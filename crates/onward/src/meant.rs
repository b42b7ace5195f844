//! Which runs of other systems a person may mean by a name, a directory or a file.
//!
//! Invariant: looks only. What may be another project's is meant by its whole name alone.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use onward_engine::{
    dialects::Home,
    locate::{FindError, FoundSite, Search},
};

use crate::{cmd::Context, error::Error};

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
        None => search.below(&cx.path(Path::new(".")))?,
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

/// Nothing is called so. A project that holds runs of other systems is not without runs.
pub(crate) fn unknown(cx: &Context, search: &Search<'_>, name: &str, error: FindError) -> Error {
    let any = || search.below(&cx.path(Path::new("."))).is_ok_and(|it| it.iter().any(is_here));
    if matches!(error, FindError::NoRuns) && any() {
        return FindError::NoSuchRun { wanted: name.to_owned(), near: Vec::new() }.into();
    }
    error.into()
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
