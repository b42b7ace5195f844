//! `onward list` and `onward status`: which runs there are, and how one of them is doing.

use std::process::ExitCode;

use onward_core::{
    bill::{Bill, Biller, Sum},
    event::Event,
    plan::Status,
    policy::{Choices, Depth},
    view::{GateView, View, of_plan},
};
use onward_engine::{
    engine::{person::gates_now, view_run},
    load::follow::Follower,
};
use serde_json::json;

use crate::{
    cmd::{Context, plan::age},
    error::Error,
    session::{Driving, Session, Wanted, Which, is_driven, word},
};

/// List the runs of this project, the last active one first
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ListArgs {}

pub(crate) fn list(cx: &mut Context, _args: &ListArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let mut rows: Vec<Row> = Vec::new();
    for dir in session.project.runs()? {
        let (id, at) = (dir.id.to_string(), dir.dir.display().to_string());
        let last_active = dir.last_activity.to_string();
        // One run that cannot be read must not hide the others.
        let shown = view_run(&dir.dir, &session.machine, Depth::Glance);
        let shown = shown.map(|(view, _)| view).map_err(|error| error.to_string());
        rows.push(Row { id, dir: at, last_active, shown });
    }
    let here = std::path::absolute(&cx.global.cwd)
        .map_err(|source| Error::CannotRead { path: cx.global.cwd.clone(), source })?;
    for found in session.strangers(&here)? {
        let plan = session.glance(&found).map_err(|error| error.to_string());
        let at = found.dir.display().to_string();
        let last_active = plan.as_ref().map(|it| it.run.last_event.at.clone()).unwrap_or_default();
        rows.push(Row { id: at.clone(), dir: at, last_active, shown: plan.map(|it| of_plan(&it)) });
    }
    rows.sort_by(|one, other| other.last_active.cmp(&one.last_active));
    if cx.global.json {
        let runs: Vec<_> = rows
            .iter()
            .map(|row| match &row.shown {
                Ok(view) => json!({
                    "id": view.run.id, "dialect": view.run.dialect,
                    "workflow": view.run.workflow, "status": view.run.status,
                    "dir": view.run.dir, "started_at": view.run.started_at,
                    "last_event_at": view.run.last_event.at, "phase": view.phase,
                }),
                Err(why) => json!({
                    "id": row.id, "dialect": "onward", "workflow": null, "status": null,
                    "dir": row.dir, "started_at": null,
                    "last_event_at": row.last_active, "phase": null, "error": why,
                }),
            })
            .collect();
        writeln!(cx.out, "{}", json!({"schema": "onward.list/1", "runs": runs}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        writeln!(cx.err, "no runs here; start one with `onward run FILE`")?;
    }
    for Row { id, shown, .. } in rows {
        match shown {
            Ok(view) => {
                let (run, counts) = (&view.run, view.counts);
                let age = age(run.age_seconds);
                let phase = view.phase.as_deref().unwrap_or("-");
                let (done, total) = (counts.done, counts.total);
                let status = run.status.as_str();
                let dialect = if run.dialect == "onward" { "" } else { &run.dialect };
                let line = format!("{id}  {status:<11} {done}/{total}  {phase}  {age} ago");
                writeln!(cx.out, "{}", format!("{line}  {dialect}").trim_end())?;
            }
            Err(why) => writeln!(cx.out, "{id}  unreadable: {why}")?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One line of the list: what is known of a run even when the rest cannot be read.
struct Row {
    id: String,
    dir: String,
    last_active: String,
    shown: Result<View, String>,
}

/// Tell how a run is doing
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// Which run; without it the last active one
    run: Option<String>,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// Tell what was useful, and what interruptions have cost
    #[arg(long)]
    cost: bool,
}

pub(crate) fn status(cx: &mut Context, args: &StatusArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, dialect) = (args.run.as_deref(), args.dialect.as_deref());
    let wanted = Wanted { run, dialect, tasks: None };
    let view = match session.which(cx, &wanted)? {
        Which::Ours(dir) => {
            let driven = is_driven(&dir);
            let (mut view, run) = view_run(&dir, &session.machine, Depth::Quick)?;
            show_now(&mut view, gates_now(&dir, &run, &session.machine)?);
            if args.cost {
                let mut biller = Biller::default();
                Follower::new(&dir).poll()?.iter().for_each(|record| biller.take(record));
                view.bill = Some(biller.bill((!driven).then_some(session.now)));
            }
            view
        }
        Which::Foreign(found) => {
            let choices = Choices::default();
            of_plan(&session.foreign_plan(&found, &choices, Depth::Quick)?)
        }
    };
    if cx.global.json {
        let text = serde_json::to_string(&view).map_err(std::io::Error::other)?;
        writeln!(cx.out, "{text}")?;
    } else {
        words(cx, &view)?;
        if let Some(bill) = &view.bill {
            costs(cx, bill)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn costs(cx: &mut Context, bill: &Bill) -> Result<(), Error> {
    let Bill { useful, repeated, reverted, under_way, waiting, by_cause } = bill;
    writeln!(cx.out, "\n{:<15} {:>8} {:>12} {:>10}", "Cost", "attempts", "time", "US$")?;
    let mut line = |name: &str, sum: &Sum| -> Result<(), Error> {
        let Sum { attempts, seconds, usd } = sum;
        Ok(writeln!(cx.out, "{name:<15} {attempts:>8} {:>12} {usd:>10.2}", span(*seconds))?)
    };
    for (name, sum) in [
        ("Useful", useful),
        ("Repeated", repeated),
        ("Reverted", reverted),
        ("Under way", under_way),
        ("Waiting", waiting),
    ] {
        line(name, sum)?;
    }
    for (cause, sum) in by_cause {
        line(&format!("  {cause}"), sum)?;
    }
    Ok(())
}

/// Shorter spans with their tenths, longer ones as everywhere.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a span of seconds")]
fn span(seconds: f64) -> String {
    if seconds < 60.0 { format!("{seconds:.1} s") } else { age(seconds as u64) }
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
        | Status::Cancelled
            if run.dialect != "onward" =>
        {
            format!("onward resume {}", word(&run.dir))
        }
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
