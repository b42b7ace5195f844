//! `onward check`: is this file a workflow, and what does it look like?

use onward_engine::world::open;
use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    nearest::nearest,
    workflow::{
        HEAD_BYTES, Loaded, Problem, Severity, TEXT_BYTES_MAX, begins_as_workflow, load,
        model::{Kind, Step},
    },
};
use onward_engine::dialects::builtin::CALLS;
use onward_engine::locate::{Cast, Project, builtin_names, load_builtin};

use crate::{
    cmd::Context,
    command::in_text,
    diagnostic, draw,
    error::{self, Error},
    session::{Driving, Session},
    shapes::{CheckProblem, Checked},
};

/// Check a workflow file and draw its steps
///
/// Says everything that is wrong with it, with file, line and column, and what to do about it.
/// Starts nothing. Exit code 0: it can be run; 2: it cannot; 1: it could not be read.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward check release.yaml\n  \
    onward check release.yaml --mermaid")]
pub(crate) struct CheckArgs {
    /// The workflow file, or the name of a built-in workflow such as `conference`
    #[arg(add = crate::complete::workflow())]
    file: PathBuf,
    /// Draw the steps as a Mermaid flowchart
    #[arg(long)]
    mermaid: bool,
}

/// More problems are counted, and shown with `-v`.
const SHOWN_MAX: usize = 20;

pub(crate) fn run(cx: &mut Context, args: &CheckArgs) -> Result<ExitCode, Error> {
    let name = args.file.to_string_lossy();
    // A built-in one is played as a run of it would be.
    let is_file = cx.path(&args.file).is_file();
    let session = (!is_file).then(|| Session::new(cx, &Driving::default())).transpose()?;
    let cast = session.map(|it| it.machine.cast).unwrap_or_default();
    let result = read_workflow(cx, &args.file, &cast)?;
    let (loaded, problems) = match &result {
        Ok(loaded) => (Some(loaded), &loaded.warnings),
        Err(problems) => (None, problems),
    };
    if cx.global.json {
        cx.print_json(&as_json(&name, loaded, problems, args.mermaid))?;
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

/// Reads a workflow from disk, with the agents that the configuration defines.
pub(crate) fn read_workflow(
    cx: &Context,
    file: &Path,
    cast: &Cast,
) -> Result<Result<Loaded, Vec<Problem>>, Error> {
    let name = file.to_string_lossy();
    let mut read = read_alone(&cx.path(file), &name, cast)?;
    let problems = match &mut read {
        Ok(loaded) => &mut loaded.warnings,
        Err(problems) => problems,
    };
    if problems.iter().any(|it| it.agent.is_some()) {
        let config = Session::new(cx, &Driving::default())?.config;
        let is_known =
            |it: &String| config.agents.contains_key(it) || config.adapters.contains_key(it);
        problems.retain(|it| !it.agent.as_ref().is_some_and(is_known));
    }
    // Neither the workflow nor the configuration knows it.
    for problem in problems.iter_mut().filter(|it| it.agent.is_some()) {
        problem.severity = Severity::Error;
    }
    if let Ok(loaded) = &mut read {
        let mut calls = unknown_calls(&loaded.workflow.steps, &name);
        loaded.warnings.append(&mut calls);
    }
    let is_error = |it: &Problem| it.severity == Severity::Error;
    Ok(match read {
        Ok(loaded) if loaded.warnings.iter().any(is_error) => Err(loaded.warnings),
        Ok(_) | Err(_) => read,
    })
}

/// Steps that call a built-in function which is not there.
fn unknown_calls(steps: &[Step], file: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    for step in steps {
        match &step.kind {
            Kind::Call { name, .. } if !CALLS.contains(&name.as_str()) => {
                let near = nearest(name, CALLS.iter().copied());
                let hint = near.map_or_else(
                    || "only built-in workflows call functions: use `run` or `agent`".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                let message = format!("there is no built-in function `{name}`");
                found.push(Problem { at: step.at, ..Problem::at_start(file, message, &hint) });
            }
            Kind::Group { steps } => found.append(&mut unknown_calls(steps, file)),
            Kind::Sub { path, workflow, .. } => {
                found.append(&mut unknown_calls(&workflow.steps, path));
            }
            Kind::Call { .. } | Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) => {}
        }
    }
    found
}

/// `name` is what problems call it.
fn read_alone(path: &Path, name: &str, cast: &Cast) -> Result<Result<Loaded, Vec<Problem>>, Error> {
    let cannot_read = |source| Error::CannotRead { path: path.to_owned(), source };
    let here = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let project = Project::locate(here).ok();
    if !path.is_file()
        && let Some(loaded) = load_builtin(project.as_ref(), name, cast)
    {
        return Ok(loaded);
    }
    let read = read_bounded(path);
    if let Err(error) = &read
        && error.kind() == io::ErrorKind::NotFound
    {
        let (path, near) = (path.to_owned(), meant(path, here, name));
        return Err(Error::NoSuchWorkflow { path, near, known: known(here) });
    }
    let text = match read.map_err(cannot_read)? {
        Bounded::Text(text) => text,
        Bounded::TooLarge { bytes, most } => {
            let most = most >> 20;
            let message = format!("the file has {bytes} bytes; a workflow has at most {most} MiB");
            return Ok(Err(vec![Problem::at_start(name, message, "is this the right file?")]));
        }
    };
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(load(name, &text, &mut |relative| match read_bounded(&directory.join(relative))
        .map_err(|error| error::reason(&error))?
    {
        Bounded::Text(text) => Ok(text),
        Bounded::TooLarge { bytes, .. } => Err(format!("it has {bytes} bytes")),
    }))
}

/// The workflow that a person who typed this name may have meant: with its extension, another one
/// in that directory, or a built-in one.
fn meant(path: &Path, here: &Path, name: &str) -> Option<String> {
    let with = |extension: &str| Some(path.with_extension(extension)).filter(|it| it.is_file());
    if let Some(file) = with("yaml").or_else(|| with("yml")) {
        let file = file.file_name()?.to_string_lossy().into_owned();
        let file = Path::new(name).with_file_name(file);
        return Some(file.to_string_lossy().into_owned());
    }
    let known = known(here);
    nearest(path.file_name()?.to_str()?, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The workflow files in a directory, and the built-in workflows.
fn known(here: &Path) -> Vec<String> {
    let mut known = workflow_files(here);
    known.extend(builtin_names().map(str::to_owned));
    known
}

/// The names of the workflow files in a directory, sorted.
pub(crate) fn workflow_files(dir: &Path) -> Vec<String> {
    let is_yaml = |path: &Path| path.extension().is_some_and(|it| it == "yaml" || it == "yml");
    let begins = |path: &Path| {
        let mut head = Vec::new();
        let read = open::named(path).map(|it| it.take(HEAD_BYTES as u64).read_to_end(&mut head));
        read.is_ok_and(|it| it.is_ok()) && begins_as_workflow(&head)
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.map(|it| it.path()).filter(|it| is_yaml(it) && begins(it));
    let names = files.filter_map(|it| Some(it.file_name()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

enum Bounded {
    Text(Vec<u8>),
    TooLarge { bytes: u64, most: u64 },
}

/// Looks at the size first, so that a huge file is refused unread; and does not trust it, because
/// a pipe has none and a file can grow. What begins as a workflow may be as large as memory allows.
fn read_bounded(path: &Path) -> io::Result<Bounded> {
    let mut file = open::named(path)?;
    let size = file.metadata()?.len();
    let mut text = Vec::new();
    file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut text)?;
    let small = TEXT_BYTES_MAX as u64;
    let most = if begins_as_workflow(&text) { open::text_bytes_max() } else { small };
    if size <= most {
        let rest = (most + 1).saturating_sub(text.len() as u64);
        file.take(rest).read_to_end(&mut text)?;
    }
    let bytes = size.max(text.len() as u64);
    Ok(if bytes > most { Bounded::TooLarge { bytes, most } } else { Bounded::Text(text) })
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

fn as_json(name: &str, loaded: Option<&Loaded>, problems: &[Problem], mermaid: bool) -> Checked {
    let problem = |it: &Problem| CheckProblem {
        severity: it.severity.as_str().to_owned(),
        message: it.message.clone(),
        file: it.file.clone(),
        line: it.at.line,
        column: it.at.column,
        hint: it.hint.as_deref().map(in_text),
    };
    let size = loaded.map(|loaded| draw::Size::of(&loaded.workflow.steps)).unwrap_or_default();
    let drawn = loaded.filter(|_| mermaid).map(|loaded| draw::mermaid(&loaded.workflow));
    Checked {
        schema: "onward.check/1".to_owned(),
        file: name.to_owned(),
        ok: loaded.is_some(),
        problems: problems.iter().map(problem).collect(),
        steps: size.known,
        more: !size.open.is_empty(),
        mermaid: drawn,
    }
}
