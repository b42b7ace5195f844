//! `onward list` and `onward status`: which runs there are, and how one of them is doing.

use std::process::ExitCode;

use onward_core::{
    event::Event,
    plan::{Status, run_info},
    survey::Survey,
    view::{GateView, View, view},
};
use onward_engine::person::gates_now;
use serde_json::json;

use crate::{
    cmd::{Context, plan::age},
    error::Error,
    session::{Driving, Found, Session, is_driven, open_run, word},
};

/// List the runs of this project, the last active one first
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ListArgs {}

pub(crate) fn list(cx: &mut Context, _args: &ListArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let mut rows = Vec::new();
    for dir in session.project.runs()? {
        // One run that cannot be read must not hide the others.
        let shown = match Found::look(dir.clone()) {
            Ok(found) => {
                let survey = Survey { now: session.now, ..Survey::default() };
                let at = dir.dir.display().to_string();
                Ok(view(&found.run, run_info(&found.run.state, &survey, found.status, &at)))
            }
            Err(error) => Err(error.to_string()),
        };
        rows.push((dir, shown));
    }
    if cx.global.json {
        let runs: Vec<_> = rows
            .iter()
            .map(|(dir, shown)| match shown {
                Ok(view) => json!({
                    "id": view.run.id, "dialect": view.run.dialect,
                    "workflow": view.run.workflow, "status": view.run.status,
                    "dir": view.run.dir, "started_at": view.run.started_at,
                    "last_event_at": view.run.last_event.at, "phase": view.phase,
                }),
                Err(why) => json!({
                    "id": dir.id, "dialect": "onward", "workflow": null, "status": null,
                    "dir": dir.dir.display().to_string(), "started_at": null,
                    "last_event_at": dir.last_activity, "phase": null, "error": why,
                }),
            })
            .collect();
        writeln!(cx.out, "{}", json!({"schema": "onward.list/1", "runs": runs}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        writeln!(cx.err, "no runs here; start one with `onward run FILE`")?;
    }
    for (dir, shown) in rows {
        match shown {
            Ok(view) => {
                let (run, counts) = (&view.run, view.counts);
                let age = age(run.age_seconds);
                let phase = view.phase.as_deref().unwrap_or("-");
                let (done, total) = (counts.done, counts.total);
                let status = run.status.as_str();
                writeln!(cx.out, "{}  {status:<11} {done}/{total}  {phase}  {age} ago", run.id)?;
            }
            Err(why) => writeln!(cx.out, "{}  unreadable: {why}", dir.id)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Tell how a run is doing
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// Which run; without it the last active one
    run: Option<String>,
}

pub(crate) fn status(cx: &mut Context, args: &StatusArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    let run = open_run(&dir)?;
    let survey = Survey { now: session.now, ..Survey::default() };
    let status = Status::of(&run.state, is_driven(&dir));
    let mut view = view(&run, run_info(&run.state, &survey, status, &dir.display().to_string()));
    show_now(&mut view, gates_now(&dir, &run, &session.machine)?);
    if cx.global.json {
        let text = serde_json::to_string(&view).map_err(std::io::Error::other)?;
        writeln!(cx.out, "{text}")?;
    } else {
        words(cx, &view)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A gate is shown with what there is to see now, which may have moved since it was opened.
fn show_now(view: &mut View, now: Vec<Event>) {
    for gate in now {
        let Event::GateOpened { step, prompt, options, shows, hash } = gate else { continue };
        if let Some(shown) = view.gates.iter_mut().find(|it| it.step == step.as_str()) {
            let step = step.to_string();
            *shown = GateView { step, prompt, options, shows, hash: hash.to_string() };
        }
    }
}

fn words(cx: &mut Context, view: &View) -> Result<(), Error> {
    let View { run, phase, counts, steps, gates, last_completed, next, .. } = view;
    writeln!(cx.out, "Run:            {}", run.id)?;
    writeln!(cx.out, "Status:         {}", run.status.as_str())?;
    writeln!(cx.out, "Phase:          {}", phase.as_deref().unwrap_or("-"))?;
    writeln!(cx.out, "Steps:          {} of {} done", counts.done, counts.total)?;
    let last = &run.last_event;
    writeln!(cx.out, "Last activity:  {} ({} ago)", last.at, age(run.age_seconds))?;
    if let Some(last) = last_completed {
        writeln!(cx.out, "Last completed: {} at {}", last.step, last.at)?;
    }
    for step in steps.iter().filter(|it| !matches!(&*it.state, "done" | "skipped" | "pending")) {
        writeln!(cx.out, "  {:<8} {}", step.state, step.step)?;
    }
    for gate in gates {
        writeln!(cx.out, "Gate {}: {}", gate.step, gate.prompt)?;
        for path in &gate.shows {
            writeln!(cx.out, "  look at {path}")?;
        }
        for option in &gate.options {
            let (id, step, option) = (&run.id, word(&gate.step), word(option));
            writeln!(cx.out, "  onward decide {id} {step} {option} --hash {}", gate.hash)?;
        }
    }
    let action = match run.status {
        Status::Completed => "nothing: it is complete".to_owned(),
        Status::Running => format!("onward attach {}", run.id),
        Status::Waiting => "answer the gate".to_owned(),
        Status::Fresh
        | Status::Interrupted
        | Status::Parked
        | Status::OverBudget
        | Status::Failed
        | Status::Cancelled => format!("onward resume {}", run.id),
    };
    if let Some(first) = next.first() {
        writeln!(cx.out, "Next step:      {first}")?;
    }
    writeln!(cx.out, "Next action:    {action}")?;
    Ok(())
}
