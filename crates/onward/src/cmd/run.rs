//! `onward run`: starts a run. It never resumes one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use indexmap::IndexMap;
use onward_core::{
    journal::encode,
    plan::Status,
    policy::Choices,
    workflow::{
        Loaded, fits,
        model::{Input, InputKind, Kind, Step},
    },
};
use onward_engine::{
    engine::{self, Begun, EngineError, begin_run, can_begin},
    load::follow::Follower,
    locate::{Cast, Origin, example, kind_name, load_pinned},
    play::conference::has_started,
    resume::ResumeError,
    world::{git::facts, real::News},
};
use serde_json::Value;

use crate::{
    cmd::{Context, check, resume::drive},
    diagnostic::{self, printable},
    error::{self, Error},
    prompt::Person,
    session::{Driving, Session, id_of, open_run, word},
    style,
};

/// Start a run of a workflow
///
/// Makes a new run and drives it until it is done, needs a person, or is interrupted. A run that
/// was interrupted is never picked up here: see `onward resume`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward run release.yaml\n  onward run release.yaml \
    --input topic=bees --input 'writers=[\"ann\",\"bob\"]'\n  onward run release.yaml --detach\n  \
    onward run --again release-20261115-k3fq")]
pub(crate) struct RunArgs {
    /// The workflow file, or the name of a built-in workflow such as `conference`
    #[arg(add = crate::complete::workflow())]
    file: Option<PathBuf>,
    /// Start over with the workflow and inputs of this run; it is cancelled, and its files stay
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "inputs", "detach"])]
    #[arg(add = crate::complete::run())]
    again: Option<String>,
    /// An input of the workflow; lists and objects as JSON
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<String>,
    /// With a built-in workflow: the agent that plays all of its roles
    #[arg(long, value_name = "AGENT", conflicts_with = "again")]
    agent: Option<String>,
    /// Leave it running in the background and return at once
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    driving: Driving,
}

pub(crate) fn run(cx: &mut Context, args: &RunArgs) -> Result<ExitCode, Error> {
    if let Some(wanted) = &args.again {
        let session = Session::new(cx, &args.driving)?;
        let dir = session.named(cx, wanted)?;
        let person = Person::at_terminal(cx, &args.driving);
        return again(cx, &session, &dir, person);
    }
    let Some(file) = args.file.as_deref() else { return Err(which_workflow(cx)) };
    let mut session = Session::new(cx, &args.driving)?;
    if args.agent.is_some() && cx.path(file).is_file() {
        return Err(Error::Usage {
            message: "--agent is for built-in workflows".into(),
            hint: format!("its own agents are declared under `agents` in {}", file.display()),
        });
    }
    session.machine.cast.all.clone_from(&args.agent);
    let loaded = load(cx, file, &session.machine.cast)?;
    let mut inputs = inputs(&args.inputs, &loaded.workflow.inputs)?;
    let mode = session.config.mode.value;
    let path = cx.path(file);
    let is_builtin = !path.is_file();
    if is_builtin {
        let dir = place(cx, &session, &loaded, &mut inputs);
        if let Some(dir) = dir.filter(|_| loaded.workflow.name == "conference")
            && has_started(&dir)
        {
            return Err(Error::Usage {
                message: format!("a conference has started in `{}`", dir.display()),
                hint: "continue it: `onward resume` there".into(),
            });
        }
    }
    let mut person = Person::at_terminal(cx, &args.driving);
    ask_for_missing(&mut person, &loaded.workflow.inputs, &mut inputs);
    let file = (!is_builtin).then_some(path.as_path());
    let begun = begin_run(&session.project, &loaded, file, inputs, &session.machine, mode)?;
    if !cx.global.json && !cx.global.quiet && has_worktrees(&loaded.workflow.steps) {
        tell_uncommitted(cx, &session)?;
    }
    begun.keep_workflow(loaded, &session.machine);
    if args.detach {
        // The driver that is left behind takes the tree for itself.
        return super::attach::leave(cx, &session, &begun.leave(), &[]);
    }
    drive_new(cx, &session, begun, person)
}

/// No workflow was named: those that are here, or else how one is made.
fn which_workflow(cx: &Context) -> Error {
    let files = check::workflow_files(&cx.path(Path::new(".")));
    let hint = match files.as_slice() {
        [] => "write one with `onward init hello`, or name a built-in one".to_owned(),
        files => {
            let all: Vec<String> =
                files.iter().map(|it| format!("`onward run {}`", word(it))).collect();
            all.join(", ")
        }
    };
    Error::Usage { message: "say which workflow".into(), hint }
}

fn has_worktrees(steps: &[Step]) -> bool {
    steps.iter().any(|step| {
        step.worktree.is_some()
            || match &step.kind {
                Kind::Group { steps } => has_worktrees(steps),
                Kind::Sub { workflow, .. } => has_worktrees(&workflow.steps),
                Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => false,
            }
    })
}

/// So many files are named.
const NAMED_MAX: usize = 3;

/// A worktree begins with all that is not committed, and git merges nothing over such files.
fn tell_uncommitted(cx: &mut Context, session: &Session) -> Result<(), Error> {
    let root = session.project.root();
    let changes = facts(root, &session.machine.env, None, &[]).map(|it| it.changes);
    // `XY path`, as `git status --porcelain` has it.
    let paths = changes.iter().flatten().filter_map(|it| it.get(3..));
    let paths: Vec<&str> = paths.filter(|it| !it.starts_with(".onward/")).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let more = match paths.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names: Vec<String> = paths.iter().take(NAMED_MAX).map(|it| printable(it)).collect();
    let line = format!(
        "note  not committed: {}{more}. The branch of each worktree begins with that, so commit \
         it before you merge one",
        names.join(", ")
    );
    writeln!(cx.err, "{}", style::wrap(&line, style::columns_of_errors(), 0, 6))?;
    Ok(())
}

/// A built-in workflow works where the person is, unless they say otherwise.
pub(crate) fn place(
    cx: &Context,
    session: &Session,
    loaded: &Loaded,
    inputs: &mut BTreeMap<String, Value>,
) -> Option<PathBuf> {
    let declared = loaded.workflow.inputs.get("dir")?;
    if !inputs.contains_key("dir") && declared.default.as_ref().is_some_and(|it| it == "") {
        // Its system names the directory of each run itself.
        return None;
    }
    let here = session.project.relative(&cx.global.cwd);
    let here = if here.is_empty() { ".".to_owned() } else { here };
    let dir = inputs.entry("dir".to_owned()).or_insert_with(|| here.into());
    Some(session.project.root().join(dir.as_str().unwrap_or_default()))
}

/// A new run of a built-in workflow with these inputs.
pub(crate) fn builtin(
    cx: &mut Context,
    session: &Session,
    name: &str,
    inputs: BTreeMap<String, Value>,
    person: Person,
) -> Result<ExitCode, Error> {
    let loaded = load(cx, Path::new(name), &session.machine.cast)?;
    let mode = session.config.mode.value;
    let begun = begin_run(&session.project, &loaded, None, inputs, &session.machine, mode)?;
    drive_new(cx, session, begun, person)
}

fn drive_new(
    cx: &mut Context,
    session: &Session,
    begun: Begun,
    person: Person,
) -> Result<ExitCode, Error> {
    if !cx.global.json && !cx.global.quiet {
        writeln!(cx.err, "run {}", id_of(&begun.dir))?;
    }
    let how = session.how(Choices::default());
    let mut opened = Vec::new();
    if cx.global.json {
        // Scripts read the journal from its first line, which was written before there is a driver.
        for record in Follower::new(&begun.dir).poll()? {
            encode(&record, &mut opened).map_err(std::io::Error::other)?;
        }
    }
    drive(cx, session, how, person, (&begun.dir.clone(), None), |how, mut sink| {
        if !opened.is_empty() {
            sink(News::Lines(&opened));
        }
        begun.drive(&session.machine, &how, Some(sink))
    })
}

/// A new run of the same workflow and inputs. The old one is brought to its end first, as a resume
/// would settle it: what was half-done leaves the tree for the rescue, and nothing is deleted.
pub(crate) fn again(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    person: Person,
) -> Result<ExitCode, Error> {
    let old = open_run(dir)?;
    let id = id_of(dir);
    let opened = old.state.opened.clone().filter(|_| old.state.adopted.is_none());
    let Some(opened) = opened else {
        return Err(Error::Usage {
            message: format!("`{id}` continues a run of another system, whose files stay"),
            hint: match &old.state.opened {
                Some(it) => format!("`onward run {}` begins another one", it.workflow),
                None => "see `onward list`".to_owned(),
            },
        });
    };
    let place = opened.file.as_ref().map(|it| session.project.root().join(it));
    let kept = || {
        let mut kept = load_pinned(dir).map_err(EngineError::from)?;
        // The copy has another file name, and most workflows are called after theirs.
        kept.workflow.name.clone_from(&opened.workflow);
        Ok::<_, EngineError>(kept)
    };
    let (file, workflow) = match Origin::of(&session.project, dir) {
        Origin::Valid(now) => (place, *now),
        Origin::Same => (place, kept()?),
        Origin::Gone | Origin::Invalid(_) => (None, kept()?),
    };
    let mode = session.mode_of(dir);
    let (inputs, machine) = (opened.inputs.clone(), &session.machine);
    // The old run ends only for a new one that can begin.
    can_begin(&session.project, &workflow, inputs.clone(), machine, mode)?;
    if Status::of(&old.state, false) != Status::Completed {
        let why = "started over as a new run".to_owned();
        match engine::end(dir, &session.machine, why, &Choices::default()) {
            Ok(_) if !cx.global.json => {
                writeln!(cx.err, "run {id} was cancelled; its files stay")?;
            }
            Ok(_) => {}
            Err(EngineError::Resume(ResumeError::Damaged)) => {
                writeln!(cx.err, "run {id} stays as it is: its journal is damaged")?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let begun = begin_run(&session.project, &workflow, file.as_deref(), inputs, machine, mode)?;
    begun.keep_workflow(workflow, machine);
    drive_new(cx, session, begun, person)
}

/// The workflow in a file; what is wrong with it is said.
pub(crate) fn load(cx: &mut Context, file: &Path, cast: &Cast) -> Result<Loaded, Error> {
    let name = file.to_string_lossy();
    match check::read_workflow(cx, file, cast)? {
        Ok(loaded) => Ok(loaded),
        Err(problems) if cx.global.json => {
            let first = problems.first().map(|it| it.message.clone()).unwrap_or_default();
            Err(Error::InvalidWorkflow { name: name.into_owned(), first, is_told: false })
        }
        Err(problems) => {
            for problem in &problems {
                diagnostic::problem(&mut *cx.err, problem)?;
            }
            let errors = problems
                .iter()
                .filter(|it| it.severity == onward_core::workflow::Severity::Error)
                .count();
            let first = onward_core::plural::count(errors, "error");
            Err(Error::InvalidWorkflow { name: name.into_owned(), first, is_told: true })
        }
    }
}

/// `name=value`, the value read as the workflow declares it.
pub(crate) fn inputs(
    given: &[String],
    declared: &IndexMap<String, Input>,
) -> Result<BTreeMap<String, Value>, Error> {
    let mut inputs = BTreeMap::new();
    for text in given {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Error::Usage {
                message: format!("`{text}` is not NAME=VALUE"),
                hint: "for example --input topic=bees".into(),
            });
        };
        let kind = declared.get(name).map_or(InputKind::String, |input| input.kind);
        inputs.insert(name.to_owned(), typed(value, kind));
    }
    Ok(inputs)
}

/// What was typed, as the value that an input of this kind takes.
fn typed(text: &str, kind: InputKind) -> Value {
    match kind {
        InputKind::String => Value::from(text),
        InputKind::Number
        | InputKind::Integer
        | InputKind::Boolean
        | InputKind::List
        | InputKind::Object => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    }
}

/// Inputs that have no value yet are asked for, where a person is there; elsewhere they are named.
fn ask_for_missing(
    person: &mut Person,
    declared: &IndexMap<String, Input>,
    inputs: &mut BTreeMap<String, Value>,
) {
    for (name, input) in declared.iter().filter(|(_, it)| it.default.is_none()) {
        if inputs.contains_key(name) {
            continue;
        }
        if let Some(what) = input.description.as_deref().filter(|_| person.is_there()) {
            person.screen().line(&printable(what));
        }
        // A list and a mapping are typed as JSON, which no one guesses.
        let kind = match input.kind {
            InputKind::List | InputKind::Object => {
                format!("{}, such as {}", kind_name(input.kind), example(input.kind))
            }
            InputKind::String | InputKind::Number | InputKind::Integer | InputKind::Boolean => {
                kind_name(input.kind).to_owned()
            }
        };
        let answer = person.until(&format!("{} ({kind}): ", printable(name)), |text| {
            let value = typed(text, input.kind);
            let fits = !text.is_empty() && fits(input.kind, &value);
            if fits { Ok(value) } else { Err(format!("It must be {kind}.")) }
        });
        let Some(value) = answer else { return };
        inputs.insert(name.clone(), value);
    }
}

/// The exit code that goes with a status.
pub(crate) fn exit_code(status: onward_core::plan::Status) -> u8 {
    use onward_core::plan::Status;
    match status {
        Status::Completed => error::OK,
        Status::Failed | Status::Cancelled => error::RUN_FAILED,
        Status::Waiting => error::WAITING,
        Status::Parked => error::PARKED,
        Status::OverBudget => error::OVER_BUDGET,
        Status::Interrupted | Status::Fresh | Status::Running => error::INTERRUPTED,
    }
}
