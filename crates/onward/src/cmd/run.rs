//! `onward run`: starts a run. It never resumes one.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    plan::Status,
    policy::Choices,
    workflow::{Loaded, model::InputKind},
};
use onward_engine::{
    engine::{self, Begun, EngineError, begin_run, can_begin},
    locate::{Cast, Origin, load_pinned},
    play::conference::has_started,
    resume::ResumeError,
};
use serde_json::Value;

use crate::{
    cmd::{Context, check, resume::drive},
    diagnostic,
    error::{self, Error},
    prompt::Person,
    session::{Driving, Session, id_of, open_run},
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
    #[arg(required_unless_present = "again", add = crate::complete::workflow())]
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
    let file = args.file.as_deref().expect("clap wants one of the two");
    let mut session = Session::new(cx, &args.driving)?;
    if args.agent.is_some() && cx.path(file).is_file() {
        return Err(Error::Usage {
            message: "--agent is for built-in workflows".into(),
            hint: format!("`use` in {} says who works at what", file.display()),
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
    let file = (!is_builtin).then_some(path.as_path());
    let begun = begin_run(&session.project, &loaded, file, inputs, &session.machine, mode)?;
    // The run has its copy; a large one need not be held twice.
    drop(loaded);
    if args.detach {
        // The driver that is left behind takes the tree for itself.
        return super::attach::leave(cx, &session, &begun.leave(), &[]);
    }
    let person = Person::at_terminal(cx, &args.driving);
    drive_new(cx, &session, begun, person)
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
    drive(cx, session, how, person, &begun.dir.clone(), |how, sink| {
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
            message: format!("`{id}` was begun by another system"),
            hint: "start a new one there".to_owned(),
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
    drive_new(cx, session, begun, person)
}

/// The workflow in a file; what is wrong with it is said.
pub(crate) fn load(cx: &mut Context, file: &Path, cast: &Cast) -> Result<Loaded, Error> {
    let name = file.to_string_lossy();
    match check::read_workflow(cx, file, cast)? {
        Ok(loaded) => Ok(loaded),
        Err(problems) if cx.global.json => {
            let first = problems.first().map(|it| it.message.clone()).unwrap_or_default();
            Err(Error::InvalidWorkflow { name: name.into_owned(), first })
        }
        Err(problems) => {
            for problem in &problems {
                diagnostic::problem(&mut *cx.err, problem)?;
            }
            let first = onward_core::plural::count(problems.len(), "problem");
            Err(Error::InvalidWorkflow { name: name.into_owned(), first })
        }
    }
}

/// `name=value`, the value read as the workflow declares it.
pub(crate) fn inputs(
    given: &[String],
    declared: &indexmap::IndexMap<String, onward_core::workflow::model::Input>,
) -> Result<BTreeMap<String, Value>, Error> {
    let mut inputs = BTreeMap::new();
    for text in given {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Error::Usage {
                message: format!("`{text}` is not NAME=VALUE"),
                hint: "for example --input topic=bees".into(),
            });
        };
        let as_text = match declared.get(name).map(|input| input.kind) {
            Some(InputKind::String) | None => true,
            Some(
                InputKind::Number
                | InputKind::Integer
                | InputKind::Boolean
                | InputKind::List
                | InputKind::Object,
            ) => false,
        };
        let value = if as_text {
            Value::from(value)
        } else {
            serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))
        };
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
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
