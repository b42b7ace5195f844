//! Why no run is meant: none is called so, or none is unfinished.

use std::{io, path::Path};

use onward_core::address::Address;
use onward_engine::locate::{FindError, RunDir, Search, near};

use crate::{
    cmd::Context,
    error::Error,
    session::{Found, Session, open_run, word},
};

/// No run of ours is called so: a workflow file is none, and a run of another system may be meant.
pub(crate) fn called(
    cx: &Context,
    search: &Search<'_>,
    name: &str,
    error: FindError,
) -> io::Result<Error> {
    let is_workflow = Path::new(name).extension().is_some_and(|it| it == "yaml" || it == "yml");
    if is_workflow && cx.path(Path::new(name)).is_file() {
        let file = word(name);
        return Ok(Error::Usage {
            message: format!("`{name}` is a workflow file, not a run"),
            hint: format!("`onward check {file}` looks at it, `onward run {file}` starts it"),
        });
    }
    let FindError::NoRuns = error else { return Ok(error.into()) };
    let others = search.below(&cx.path(Path::new(".")))?;
    if others.is_empty() {
        return Ok(error.into());
    }
    let near = near(name, others.iter().map(|it| it.site.name.as_str()));
    Ok(FindError::NoSuchRun { wanted: name.to_owned(), near }.into())
}

/// No run is called so, and a step of the last one is.
pub(crate) fn run_of_step(session: &Session, wanted: Option<&str>, error: Error) -> Error {
    let (Some(step), Error::Find(FindError::NoSuchRun { .. })) = (wanted, &error) else {
        return error;
    };
    let last = session.project.last_run().ok().and_then(|it| open_run(&it.dir).ok());
    if !last.is_some_and(|it| it.graph.find(&Address::from_text(step)).is_some()) {
        return error;
    }
    Error::Usage {
        message: format!("`{step}` is a step, not a run"),
        hint: format!("see what it printed with `onward log --step {}`", word(step)),
    }
}

/// No run is unfinished. The last one may be complete.
pub(crate) fn unfinished(session: &Session) -> Error {
    let is_complete = |it: &RunDir| Found::is_complete(&it.dir).unwrap_or(false);
    match session.project.last_run().ok().filter(is_complete) {
        Some(run) => Error::LastIsComplete { run: run.id.to_string() },
        None => Error::NothingToResume,
    }
}
