//! `onward check`: is this file a workflow, and what does it look like?

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::workflow::{Loaded, Problem, Severity, TEXT_BYTES_MAX, load};
use onward_engine::locate::{Project, load_builtin};
use serde_json::{Value, json};

use crate::{
    cmd::Context,
    diagnostic, draw,
    error::{self, Error},
};

/// Check a workflow file and draw its steps
///
/// Says everything that is wrong with it, with file, line and column, and what to do about it.
/// Starts nothing. Exit code 0: it can be run; 2: it cannot; 1: it could not be read.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    /// The workflow file, or the name of a built-in workflow such as `conference`
    file: PathBuf,
    /// Draw the steps as a Mermaid flowchart
    #[arg(long)]
    mermaid: bool,
}

/// More problems are counted, and shown with `-v`.
const SHOWN_MAX: usize = 20;

pub(crate) fn run(cx: &mut Context, args: &CheckArgs) -> Result<ExitCode, Error> {
    let name = args.file.to_string_lossy();
    let result = read_workflow(&cx.path(&args.file), &name)?;
    let (loaded, problems) = match &result {
        Ok(loaded) => (Some(loaded), &loaded.warnings),
        Err(problems) => (None, problems),
    };
    if cx.global.json {
        writeln!(cx.out, "{}", as_json(&name, loaded, problems, args.mermaid))?;
    } else {
        show(cx, &name, problems)?;
        if let Some(loaded) = loaded {
            if args.mermaid {
                write!(cx.out, "{}", draw::mermaid(&loaded.workflow))?;
            } else if !cx.global.quiet {
                write!(cx.out, "{}", draw::tree(&loaded.workflow))?;
            }
        }
    }
    Ok(ExitCode::from(if loaded.is_some() { error::OK } else { error::INVALID }))
}

/// Reads a workflow from disk. `name` is what problems call it.
pub(crate) fn read_workflow(
    path: &Path,
    name: &str,
) -> Result<Result<Loaded, Vec<Problem>>, Error> {
    let cannot_read = |source| Error::CannotRead { path: path.to_owned(), source };
    let here = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let project = Project::locate(here).ok();
    if !path.is_file()
        && let Some(loaded) = load_builtin(project.as_ref(), name)
    {
        return Ok(loaded);
    }
    let text = match read_bounded(path).map_err(cannot_read)? {
        Bounded::Text(text) => text,
        Bounded::TooLarge(bytes) => {
            let most = TEXT_BYTES_MAX >> 20;
            let message = format!("the file has {bytes} bytes; a workflow has at most {most} MiB");
            return Ok(Err(vec![Problem::at_start(name, message, "is this the right file?")]));
        }
    };
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(load(name, &text, &mut |relative| match read_bounded(&directory.join(relative))
        .map_err(|error| error::reason(&error))?
    {
        Bounded::Text(text) => Ok(text),
        Bounded::TooLarge(bytes) => Err(format!("it has {bytes} bytes")),
    }))
}

enum Bounded {
    Text(Vec<u8>),
    TooLarge(u64),
}

/// Looks at the size first, so that a huge file is refused unread; and does not trust it, because
/// a pipe has none and a file can grow.
fn read_bounded(path: &Path) -> io::Result<Bounded> {
    let most = TEXT_BYTES_MAX as u64;
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > most {
        return Ok(Bounded::TooLarge(bytes));
    }
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Ok(Bounded::TooLarge(text.len() as u64));
    }
    Ok(Bounded::Text(text))
}

fn show(cx: &mut Context, name: &str, problems: &[Problem]) -> Result<(), Error> {
    let shown_max = if cx.global.verbose > 0 { usize::MAX } else { SHOWN_MAX };
    for problem in problems.iter().take(shown_max) {
        diagnostic::problem(&mut *cx.err, problem)?;
    }
    if problems.len() > shown_max {
        writeln!(cx.err, "and {} more; see them with `-v`\n", problems.len() - shown_max)?;
    }
    let count = |severity| problems.iter().filter(|it| it.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if errors > 0 {
        let fixed = if errors == 1 { "1 error" } else { &format!("{errors} errors") };
        let message = format!("`{name}` cannot be run: {fixed}");
        diagnostic::failure(&mut *cx.err, &message, None)?;
    } else if warnings > 0 && !cx.global.quiet {
        let s = if warnings == 1 { "" } else { "s" };
        writeln!(cx.err, "`{name}` can be run, with {warnings} warning{s}")?;
    }
    Ok(())
}

fn as_json(name: &str, loaded: Option<&Loaded>, problems: &[Problem], mermaid: bool) -> Value {
    let problem = |it: &Problem| {
        json!({
            "severity": it.severity.as_str(),
            "message": it.message,
            "file": it.file,
            "line": it.at.line,
            "column": it.at.column,
            "hint": it.hint,
        })
    };
    let mut object = json!({
        "schema": "onward.check/1",
        "file": name,
        "ok": loaded.is_some(),
        "problems": problems.iter().map(problem).collect::<Vec<_>>(),
        "steps": loaded.map_or(0, |loaded| draw::leaves(&loaded.workflow.steps)),
    });
    if let Some(loaded) = loaded.filter(|_| mermaid) {
        object["mermaid"] = draw::mermaid(&loaded.workflow).into();
    }
    object
}
