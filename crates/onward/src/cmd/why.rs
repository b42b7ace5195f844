//! `onward why`: why a step will, or will not, run again. It changes nothing.

use std::{
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use onward_core::{
    address::Address,
    digest::Digest,
    key::part_in_words,
    plan::{Plan, PlannedStep, RunInfo, Verdict, Why},
    plural::count,
    policy::{Choices, Depth},
    time::Timestamp,
    workflow::model::{Kind, Step, Workflow},
};
use onward_engine::{
    engine::{plan_run, steps_in_row},
    locate::{Origin, Project, load_pinned},
    world::open,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::Context,
    command::onward,
    diagnostic::printable,
    diff,
    error::Error,
    meant::Wanted,
    plan_page::reason,
    session::{Driving, Session, Which, named_in_commands, open_run},
    style::{self, DIM},
    width,
};

/// Say why a step will, or will not, run again
///
/// Shows each part that changed as a diff: the prompt, the command, an input, a file.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward why publish\n  \
    onward why release-20261115-k3fq 'draft[ann]'")]
#[command(override_usage = "onward why [OPTIONS] [RUN] STEP")]
pub(crate) struct WhyArgs {
    /// `[RUN] STEP`: the address of the step, after the run if there are several
    #[arg(required = true, num_args = 1..=2, value_name = "STEP")]
    #[arg(add = crate::complete::run_or_step())]
    words: Vec<String>,
}

/// `onward why --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    schema: String,
    step: String,
    /// Of a group: that of its first step that is not kept.
    verdict: String,
    causes: Vec<Cause>,
    /// Of a group: the same for each of its steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Answer>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Cause {
    /// A word such as `done`, or the part that changed, such as `agent.model`.
    part: String,
    was: Option<String>,
    is: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &WhyArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, step) = super::run_and_rest(&args.words);
    let which =
        session.which(cx, &Wanted { run, newest: true, command: "why", ..Wanted::default() })?;
    let (dir, plan) = match which {
        Which::Ours(dir) => {
            let plan = plan_run(&dir, &session.machine, &Choices::default())?;
            (dir, plan)
        }
        Which::Foreign(found) => {
            let plan = session.foreign_plan(&found, &Choices::default(), Depth::Quick)?;
            (found.dir, plan)
        }
    };
    let Some(planned) = plan.steps.iter().find(|it| it.step == step) else {
        let inner: Vec<&PlannedStep> =
            plan.steps.iter().filter(|it| is_inside(&it.step, step)).collect();
        if !inner.is_empty() {
            return group(cx, (&plan.run, step), &inner, session.now);
        }
        // Before a run of ours took it up, the plan had the other system's rows.
        if plan.run.dialect != "onward" {
            let all = plan.steps.iter().map(|it| it.step.as_str());
            let of_row = steps_in_row(&dir, &session.machine, step, all).unwrap_or_default();
            let is_in_it = |it: &&PlannedStep| of_row.contains(it.step.as_str());
            let inner: Vec<&PlannedStep> = plan.steps.iter().filter(is_in_it).collect();
            if !inner.is_empty() {
                return group(cx, (&plan.run, step), &inner, session.now);
            }
        }
        let known: Vec<String> = plan.steps.into_iter().map(|it| it.step).collect();
        return Err(Error::NoSuchStep { step: step.to_owned(), known });
    };
    if cx.global.json {
        return cx.print_json(&answer(planned));
    }
    let style = style::of_verdict(planned.verdict);
    writeln!(cx.out, "{step}: {style}{}{style:#}", planned.verdict.as_str())?;
    for why in &planned.why {
        show(cx, &session, &dir, planned, why)?;
    }
    upstream(cx, &plan, planned)
}

/// Whether a step is an item, a turn or a child of that group, or stands deeper in it.
fn is_inside(step: &str, group: &str) -> bool {
    step.strip_prefix(group).is_some_and(|rest| rest.starts_with(['[', '/']))
}

/// A group has no verdict of its own: its steps have.
fn group(
    cx: &mut Context,
    (run, name): (&RunInfo, &str),
    inner: &[&PlannedStep],
    now: Timestamp,
) -> Result<ExitCode, Error> {
    if cx.global.json {
        let first = inner.iter().find(|it| it.verdict != Verdict::Keep).or(inner.first());
        return cx.print_json(&Answer {
            schema: "onward.why/1".to_owned(),
            step: name.to_owned(),
            verdict: first.map_or("", |it| it.verdict.as_str()).to_owned(),
            causes: Vec::new(),
            steps: inner.iter().map(|it| answer(it)).collect(),
        });
    }
    writeln!(cx.out, "{}: {}", printable(name), count(inner.len(), "step"))?;
    let widest = inner.iter().map(|it| width::of(&it.step)).max().unwrap_or(0).min(STEP_MAX);
    for planned in inner.iter().take(INNER_MAX) {
        let style = style::of_verdict(planned.verdict);
        let why: Vec<String> = planned.why.iter().map(|it| reason(it, now)).collect();
        let (verdict, step) = (planned.verdict.as_str(), printable(&planned.step));
        let pad = " ".repeat(widest.saturating_sub(width::of(&step)));
        let at = 14 + widest;
        let why = style::wrap(&printable(&why.join("; ")), style::columns(), at, at);
        writeln!(cx.out, "  {style}{verdict:<8}{style:#}  {step}{pad}  {why}")?;
    }
    if let Some(more) = inner.len().checked_sub(INNER_MAX).filter(|it| *it > 0) {
        let all = onward!("plan {} --all", named_in_commands(run));
        writeln!(cx.out, "  and {more} more: {all}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// So many steps of a group are named, in a column of at most this width.
const INNER_MAX: usize = 50;
const STEP_MAX: usize = 40;

fn answer(planned: &PlannedStep) -> Answer {
    let cause = |why: &&Why| match (&why.was, &why.is) {
        (None, None) => Cause { part: why.cause.clone(), was: None, is: Some(why.detail.clone()) },
        (was, is) => Cause { part: why.cause.clone(), was: was.clone(), is: is.clone() },
    };
    // Where parts changed, they are the answer; a word such as `done` is one only without them.
    let changed: Vec<&Why> =
        planned.why.iter().filter(|why| why.was.is_some() || why.is.is_some()).collect();
    let told = if changed.is_empty() { planned.why.iter().collect() } else { changed };
    Answer {
        schema: "onward.why/1".to_owned(),
        step: planned.step.clone(),
        verdict: planned.verdict.as_str().to_owned(),
        causes: told.iter().map(cause).collect(),
        steps: Vec::new(),
    }
}

fn show(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    planned: &PlannedStep,
    why: &Why,
) -> Result<(), Error> {
    let (was, is) = match (&why.was, &why.is) {
        (None, None) => {
            return say(cx, &reason(why, session.now));
        }
        (was, is) => (was.clone().unwrap_or_default(), is.clone().unwrap_or_default()),
    };
    if let Some(need) = why.cause.strip_prefix("needs.") {
        return say(cx, &format!("the output of {need} changed"));
    }
    let path = why.cause.strip_prefix("reads.").or_else(|| why.cause.strip_prefix("writes."));
    if let Some(path) = path {
        return file(cx, session, path, why);
    }
    say(cx, &format!("{} changed", part_in_words(&why.cause)))?;
    // A long text stands in a key by its size alone: the two workflows have it in full.
    let texts = if is_sized(&was) || is_sized(&is) {
        sources(&session.project, dir, &planned.step)
    } else {
        None
    };
    let (was, is) = texts.unwrap_or((was, is));
    diff::write(&mut *cx.out, &was, &is)?;
    Ok(())
}

/// One line below the verdict, in words of the run.
fn say(cx: &mut Context, text: &str) -> Result<(), Error> {
    writeln!(cx.out, "  {}", style::wrap(&printable(text), style::columns(), 2, 4))?;
    Ok(())
}

/// What changed in a file that the step reads, where git still has what it was.
fn file(cx: &mut Context, session: &Session, path: &str, why: &Why) -> Result<(), Error> {
    let (name, root) = (printable(path), session.project.root());
    let is = open::project(root, path).and_then(|it| open::all_of(it, open::FILE_BYTES_MAX)).ok();
    let was = why.was.as_deref().and_then(|digest| content(root, path, digest));
    match (why.was.is_some(), was, is) {
        (false, _, _) => writeln!(cx.out, "  {name} is new")?,
        (true, _, None) => writeln!(cx.out, "  {name} is gone")?,
        (true, None, Some(_)) => {
            writeln!(cx.out, "  {name} changed; what it was is in no commit")?;
        }
        (true, Some(was), Some(is)) => {
            writeln!(cx.out, "  {name} changed")?;
            let [was, is] = [was, is].map(|it| String::from_utf8_lossy(&it).into_owned());
            diff::write(&mut *cx.out, &was, &is)?;
        }
    }
    Ok(())
}

/// So many commits of a file are looked at.
const COMMITS_MAX: &str = "100";

/// The version of a file with this digest, among those that git has.
fn content(root: &Path, path: &str, digest: &str) -> Option<Vec<u8>> {
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.arg("--no-optional-locks").args(words).current_dir(root).stdin(Stdio::null());
        git.output().ok().filter(|it| it.status.success()).map(|it| it.stdout)
    };
    let commits = git(&["rev-list", "--all", "-n", COMMITS_MAX, "--", path])?;
    let commits = String::from_utf8(commits).ok()?;
    let versions = commits.lines().filter_map(|it| git(&["show", &format!("{it}:./{path}")]));
    let mut versions = versions.map(|bytes| (Digest::of(&bytes).to_string(), bytes));
    versions.find(|(found, _)| found == digest).map(|(_, bytes)| bytes)
}

/// `1234 bytes, 0a1b…`: how a key keeps what is too long for it.
fn is_sized(text: &str) -> bool {
    text.split_once(" bytes").is_some_and(|(number, _)| number.parse::<usize>().is_ok())
}

/// The prompt or command of a step, as the run began with it and as the file has it now.
fn sources(project: &Project, dir: &Path, step: &str) -> Option<(String, String)> {
    let was = load_pinned(dir).ok()?.workflow;
    let is = Origin::of(project, dir).valid()?.workflow;
    Some((text_of(&was, step)?, text_of(&is, step)?))
}

fn text_of(workflow: &Workflow, address: &str) -> Option<String> {
    let mut steps: &[Step] = &workflow.steps;
    let mut text = None;
    for part in address.split('/') {
        let id = part.split('[').next().unwrap_or(part);
        let step = steps.iter().find(|it| it.id.as_str() == id)?;
        (steps, text) = match &step.kind {
            Kind::Run { command } => (&[][..], Some(command.source.clone())),
            Kind::Agent { prompt, .. } => (&[][..], Some(prompt.source.clone())),
            Kind::Gate(gate) => (&[][..], Some(gate.prompt.source.clone())),
            Kind::Call { with, .. } => {
                let all: Vec<&str> = with.values().map(|it| it.source.as_str()).collect();
                (&[][..], Some(all.join("\n")))
            }
            Kind::Group { steps } => (steps.as_slice(), None),
            Kind::Sub { workflow, .. } => (workflow.steps.as_slice(), None),
        };
    }
    text
}

/// What has to be known of the steps that it needs.
fn upstream(cx: &mut Context, plan: &Plan, planned: &PlannedStep) -> Result<ExitCode, Error> {
    if planned.why.iter().any(|why| why.cause == "upstream") {
        let again = plan.steps.iter().take_while(|it| it.step != planned.step);
        let again: Vec<&str> = again
            .filter(|it| it.verdict != Verdict::Keep)
            .map(|it| it.step.as_str())
            .take(5)
            .collect();
        if !again.is_empty() {
            say(cx, &format!("before it: {}", again.join(", ")))?;
        }
    }
    let run = open_run(Path::new(&plan.run.dir)).ok();
    let attempts = run.and_then(|run| {
        Some(run.state.step(&Address::from_text(&planned.step))?.begun()).filter(|it| *it > 0)
    });
    if let Some(attempts) = attempts {
        let (id, step) = (&plan.run.id, crate::session::word(&planned.step));
        let tries = count(attempts as usize, "attempt");
        let command = onward!("log {id} --step {step}");
        let said = format!("{tries} so far:");
        let said = style::wrap_with(&said, &command, style::columns(), 2, 4);
        writeln!(cx.out, "  {DIM}{said}{DIM:#}")?;
    }
    Ok(ExitCode::SUCCESS)
}
