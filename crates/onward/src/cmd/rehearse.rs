//! `onward rehearse`: what an interruption would do to a workflow, tried before it happens.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use onward_core::{
    address::Address, event::Mode, plural::count, policy::Choices, workflow::Loaded,
};
use onward_engine::{
    care::rehearse::{Rehearsal, Role, Script, StandIn, act, drive_until, probe, rehearse},
    dialects::{Dialect, dialects},
    drive::Options,
    engine::{How, Machine},
    locate::{Cast, TakeOver},
    world::{real::variable, seen::Seen},
};

use crate::{
    cmd::{
        Context,
        run::{exit_code, inputs, load, place},
    },
    error::{self, Error},
    session::{Driving, Session},
};

/// Kill a workflow at every boundary, and see if it ends the same
///
/// Runs it in temporary copies of the project. Agents are played by a stand-in that leaves what
/// their step declares, and so are commands unless `--real-commands` is given. Names the steps that
/// are not safe to repeat. Exit code 16: there are such steps, or a resume went wrong.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward rehearse release.yaml\n  \
    onward rehearse release.yaml --real-commands --limit 10\n  \
    onward rehearse conference --limit 10")]
pub(crate) struct RehearseArgs {
    /// The workflow: a file, or the name of a built-in one
    #[arg(add = crate::complete::workflow())]
    file: PathBuf,
    /// Run commands as they are, in the copies; only agents are played
    #[arg(long)]
    real_commands: bool,
    /// An input of the workflow; lists and objects as JSON
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<String>,
    /// Try so many boundaries at most, spread over the run
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

pub(crate) fn run(cx: &mut Context, args: &RehearseArgs) -> Result<ExitCode, Error> {
    let workflow = load(cx, &args.file, &Cast::default())?;
    let session = Session::new(cx, &Driving::default())?;
    let mut inputs = inputs(&args.inputs, &workflow.workflow.inputs)?;
    if !cx.path(&args.file).is_file() {
        must_be_ready(&workflow, place(cx, &session, &workflow, &mut inputs))?;
    }
    let this = session.machine.supervise[0].clone();
    let script = Script {
        project: &session.project,
        workflow: &workflow,
        inputs,
        machine: &session.machine,
        driver: vec![this.clone(), "rehearsed".into()],
        stand_in: stand_in(&this, !args.real_commands),
        limit: args.limit,
    };
    let quiet = cx.global.quiet || cx.global.json;
    let err = &mut cx.err;
    let rehearsal = rehearse(&script, &mut |done, all| {
        if !quiet && (done == all || done.is_multiple_of(10)) {
            // The rehearsal goes on when its progress cannot be shown.
            let _ = writeln!(err, "{done} of {all} kills tried");
        }
    })?;
    let code = ExitCode::from(if rehearsal.safe { error::OK } else { error::CONFLICTS });
    if cx.global.json {
        cx.print_json(&rehearsal)?;
    } else {
        words(cx, &rehearsal)?;
    }
    Ok(code)
}

/// A workflow that goes on with another system's files needs those that a person writes.
fn must_be_ready(workflow: &Loaded, dir: Option<PathBuf>) -> Result<(), Error> {
    let of = |it: &&&dyn Dialect| it.card().workflows.contains(&workflow.workflow.name.as_str());
    let card = dialects().iter().find(of).map(|it| it.card());
    let Some((card, dir)) = card.zip(dir) else { return Ok(()) };
    let marks = card.marks.iter().map(|mark| mark.glob);
    let mut written = marks.filter(|it| !card.grows.contains(it) && !it.contains('*'));
    let Some(missing) = written.find(|it| !dir.join(it).is_file()) else { return Ok(()) };
    let name = card.workflows.first().copied().unwrap_or(card.name);
    Err(Error::Usage {
        message: format!("there is no `{missing}` in `{}` to rehearse with", dir.display()),
        hint: format!("write one: `onward init --from {name}`; or watch `onward demo {name}`"),
    })
}

fn stand_in(this: &OsString, commands: bool) -> StandIn {
    let argv = vec![this.to_string_lossy().into_owned(), "stand-in".to_owned()];
    StandIn { argv, commands, probe }
}

fn words(cx: &mut Context, it: &Rehearsal) -> Result<(), Error> {
    let Rehearsal { workflow, status, boundaries, tried, kills, passed, .. } = it;
    let s = if *boundaries == 1 { "y" } else { "ies" };
    writeln!(cx.out, "{workflow} ends as {status}; {boundaries} boundar{s}, {tried} tried")?;
    for why in &it.ended_by {
        writeln!(cx.out, "  {why}")?;
    }
    let kills = count(*kills as usize, "kill");
    writeln!(cx.out, "{kills}, of which {passed} made no difference")?;
    for failure in &it.failures {
        let (boundary, kill) = (failure.boundary, &failure.kill);
        writeln!(cx.out, "  boundary {boundary} ({kill}, {}):", failure.after)?;
        for difference in &failure.differences {
            writeln!(cx.out, "    {difference}")?;
        }
    }
    for step in &it.unsafe_steps {
        writeln!(cx.out, "not safe to repeat: {}\n  {}", step.step, step.why)?;
    }
    if !it.not_compared.is_empty() {
        writeln!(
            cx.out,
            "not compared, because they differ by themselves: {}",
            it.not_compared.join(", ")
        )?;
    }
    if it.safe && !it.not_tried.is_empty() {
        let played = it.not_tried.join(", ");
        let where_to = if tried == boundaries { "" } else { " where it was tried" };
        writeln!(
            cx.out,
            "safe{where_to} as far as it was played; not really run: {played} \
             (`--real-commands` runs commands)"
        )?;
    } else if it.safe && tried == boundaries {
        writeln!(cx.out, "safe: it can be killed anywhere and ends the same")?;
    } else if it.safe {
        writeln!(cx.out, "safe where it was tried")?;
    }
    Ok(())
}

/// Drives a run of a rehearsal; started by `rehearse`, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RehearsedArgs {
    run: PathBuf,
    boundary: u32,
    /// `all` or `agents`: who is played
    played: String,
}

pub(crate) fn rehearsed(cx: &mut Context, args: &RehearsedArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let this = session.machine.supervise[0].clone();
    let stand_in = stand_in(&this, args.played == "all");
    let workflow = onward_engine::locate::load_pinned(&args.run)
        .map_err(onward_engine::engine::EngineError::from)?;
    let agents = onward_engine::care::rehearse::played(&workflow.workflow, &stand_in);
    let machine = Machine {
        agents,
        notify: Vec::new(),
        catch_signals: false,
        tell: None,
        now: None,
        stand_in: Some(stand_in),
        ..session.machine
    };
    let (mode, choices, options) = (Mode::Autopilot, Choices::default(), Options::default());
    let (take_over, seen) = (TakeOver::No, Seen::default());
    let how = How { mode, choices, pinned: true, options, take_over, seen, folded: None };
    let boundary = Some(args.boundary).filter(|it| *it > 0);
    let outcome = drive_until(&args.run, &machine, &how, boundary)?;
    Ok(ExitCode::from(exit_code(outcome.status)))
}

/// Plays one attempt; started by a rehearsal, never by a person
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StandInArgs {
    /// Whatever else an agent is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

pub(crate) fn play(_cx: &mut Context, _args: &StandInArgs) -> Result<ExitCode, Error> {
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let text = |name: &str| Some(variable(&env, name)?.to_string_lossy().into_owned());
    let role = text("ONWARD_STEP").zip(text("ONWARD_ATTEMPT")).zip(text("ONWARD_RESULT"));
    let role = role.and_then(|((step, attempt), result)| {
        let (step, result) = (Address::from_text(&step), PathBuf::from(result));
        Some(Role { step, attempt: attempt.parse().ok()?, result })
    });
    let Some(role) = role else {
        return Err(Error::Usage {
            message: "this is not an attempt of a rehearsal".into(),
            hint: "it is started by `onward rehearse`".into(),
        });
    };
    act(&role)?;
    Ok(ExitCode::SUCCESS)
}
