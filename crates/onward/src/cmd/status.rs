//! `onward list` and `onward status`: which runs there are, and how one of them is doing.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    address::Address,
    bill::{Bill, Biller, Sum},
    event::Event,
    plan::{RunInfo, Status},
    policy::{Choices, Depth},
    time::Timestamp,
    view::{Counts, GateView, StepView, View, of_plan},
};
use onward_engine::{
    care::rescues::{Now, list as all_rescues},
    engine::{last_sign, person::gates_now, view_run, view_runs},
    load::follow::Follower,
    load::journal::JOURNAL,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::Context,
    diagnostic::printable,
    error::Error,
    ink::Style,
    next,
    session::{Driving, Session, Wanted, Which, is_driven, named_in_commands, word},
    style::{self, ago, cut, took},
    summary::is_stopped,
    undone,
};

/// List the runs here: those that need you, then the last active
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ListArgs {
    /// A task list, or the directory of all task lists, in the place of Claude Code's own
    #[arg(long, value_name = "DIR")]
    pub(crate) tasks: Option<PathBuf>,
}

/// `onward list --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    schema: String,
    runs: Vec<Listed>,
}

/// A run; what cannot be read of it is `null`, and `error` says why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Listed {
    id: String,
    dialect: String,
    workflow: Option<String>,
    status: Option<Status>,
    dir: String,
    started_at: Option<String>,
    last_event_at: String,
    phase: Option<String>,
    counts: Option<Counts>,
    /// The open gates.
    gates: Vec<String>,
    /// What is damaged in its journal.
    damage: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Listed {
    fn of(row: &Row) -> Self {
        match &row.shown {
            Ok(view) => Self {
                id: view.run.id.clone(),
                dialect: view.run.dialect.clone(),
                workflow: Some(view.run.workflow.clone()),
                status: Some(view.run.status),
                dir: view.run.dir.clone(),
                started_at: Some(view.run.started_at.clone()),
                last_event_at: view.run.last_event.at.clone(),
                phase: view.phase.clone(),
                counts: Some(view.counts),
                gates: view.gates.iter().map(|gate| gate.step.clone()).collect(),
                damage: view.damage.clone(),
                error: None,
            },
            Err(why) => Self {
                id: row.id.clone(),
                dialect: "onward".to_owned(),
                workflow: None,
                status: None,
                dir: row.dir.clone(),
                started_at: None,
                last_event_at: row.last_active.clone(),
                phase: None,
                counts: None,
                gates: Vec::new(),
                damage: Vec::new(),
                error: Some(why.clone()),
            },
        }
    }
}

pub(crate) fn list(cx: &mut Context, args: &ListArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let mut rows = rows(cx, &session, args.tasks.as_deref())?;
    if cx.global.json {
        let runs = rows.iter().map(Listed::of).collect();
        return cx.print_json(&Listing { schema: "onward.list/1".to_owned(), runs });
    }
    if rows.is_empty() {
        writeln!(cx.err, "no runs here; start one with `onward run FILE`")?;
        return Ok(ExitCode::SUCCESS);
    }
    print(cx, &mut rows, session.now)?;
    Ok(ExitCode::SUCCESS)
}

/// What needs a person on top, each part newest first.
pub(crate) fn print(cx: &mut Context, rows: &mut [Row], now: Timestamp) -> Result<(), Error> {
    rows.sort_by_key(|row| !row.needs_a_person());
    table(cx, rows, now)
}

/// Every run here, of ours and of other systems, the last active one first.
pub(crate) fn rows(
    cx: &Context,
    session: &Session,
    tasks: Option<&Path>,
) -> Result<Vec<Row>, Error> {
    let mut rows: Vec<Row> = Vec::new();
    let runs = session.project.even_lost_runs()?;
    let dirs: Vec<PathBuf> = runs.iter().map(|it| it.dir.clone()).collect();
    for (dir, shown) in runs.iter().zip(view_runs(&dirs, &session.machine)) {
        let (id, at) = (dir.id.to_string(), dir.dir.display().to_string());
        let last_active = dir.last_activity.to_string();
        if !dir.dir.join(JOURNAL).is_file() {
            let lost = format!("it has lost its journal; `onward repair {id}`");
            rows.push(Row { id, dir: at, place: None, last_active, shown: Err(lost) });
            continue;
        }
        // One run that cannot be read must not hide the others.
        let shown = shown.map_err(|error| error.to_string());
        rows.push(Row { id, dir: at, place: None, last_active, shown });
    }
    let here = std::path::absolute(&cx.global.cwd)
        .map_err(|source| Error::CannotRead { path: cx.global.cwd.clone(), source })?;
    let tasks = tasks.map(|it| cx.path(it));
    for found in session.strangers(&here, tasks.as_deref())? {
        let plan = session.glance(&found).map_err(|error| error.to_string());
        let (id, dir) = (found.site.name.clone(), found.dir.display().to_string());
        let place = match found.dir.strip_prefix(&here) {
            Ok(inner) if inner.as_os_str().is_empty() => None,
            Ok(inner) => Some(inner.display().to_string()),
            Err(_) => Some(dir.clone()),
        };
        let last_active = plan.as_ref().map(|it| it.run.last_event.at.clone()).unwrap_or_default();
        rows.push(Row { id, dir, place, last_active, shown: plan.map(|it| of_plan(&it)) });
    }
    rows.sort_by(|one, other| other.last_active.cmp(&one.last_active));
    Ok(rows)
}

/// One line of the list: what is known of a run even when the rest cannot be read.
pub(crate) struct Row {
    id: String,
    dir: String,
    /// Where another system keeps it, if not right here.
    place: Option<String>,
    last_active: String,
    pub(crate) shown: Result<View, String>,
}

impl Row {
    fn needs_a_person(&self) -> bool {
        self.shown.as_ref().map_or(true, |view| view.run.status == Status::Waiting)
    }

    /// Run, status, done, phase, last active, and what to know besides.
    fn cells(&self, now: Timestamp) -> [String; 6] {
        let id = printable(&self.id);
        match &self.shown {
            Ok(view) => {
                let (run, counts) = (&view.run, view.counts);
                let gates: Vec<&str> = view.gates.iter().map(|gate| gate.step.as_str()).collect();
                let of = match (run.dialect.as_str(), &self.place) {
                    ("onward", _) => String::new(),
                    (dialect, Some(place)) => format!("{dialect} in {place}"),
                    (dialect, None) => dialect.to_owned(),
                };
                let note = match gates.as_slice() {
                    [] => next::waits(run, now).or(view.needs.first().cloned()).unwrap_or(of),
                    gates => format!("needs you: {}", gates.join(", ")),
                };
                let phase = view.phase.as_deref().unwrap_or("-");
                let done = format!("{}/{}", counts.done, counts.total);
                let (status, age) = (status_of(view).to_owned(), ago(run.age_seconds));
                [id, status, done, printable(phase), age, printable(&note)]
            }
            Err(why) => {
                let note = format!("needs you: {}", printable(why));
                [id, "unreadable".to_owned(), "-".into(), "-".into(), "-".into(), note]
            }
        }
    }

    fn style(&self) -> Style {
        self.shown.as_ref().map_or(style::BAD, |view| style::of_status(view.run.status))
    }
}

fn table(cx: &mut Context, rows: &[Row], now: Timestamp) -> Result<(), Error> {
    let heads = ["RUN", "STATUS", "DONE", "PHASE", "LAST ACTIVE", ""].map(str::to_owned);
    let lines: Vec<[String; 6]> = rows.iter().map(|row| row.cells(now)).collect();
    let width = |at: usize| {
        let all = std::iter::once(&heads).chain(&lines);
        all.map(|line| line[at].chars().count()).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let shown = |[id, status, done, phase, age, note]: &[String; 6], style: Style| {
        let [ids, states, dones, phases, ages] = widths;
        let line = format!(
            "{id:<ids$}  {style}{status:<states$}{style:#}  {done:>dones$}  {phase:<phases$}  \
             {age:<ages$}  {note}"
        );
        line.trim_end().to_owned()
    };
    writeln!(cx.out, "{}", shown(&heads, style::DIM))?;
    for (row, line) in rows.iter().zip(&lines) {
        writeln!(cx.out, "{}", shown(line, row.style()))?;
    }
    Ok(())
}

/// Tell how a run is doing
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// A task list, or the directory of all task lists, in the place of Claude Code's own
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    tasks: Option<PathBuf>,
    /// Tell what was useful, and what interruptions have cost
    #[arg(long)]
    cost: bool,
}

pub(crate) fn status(cx: &mut Context, args: &StatusArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, dialect) = (args.run.as_deref(), args.dialect.as_deref());
    let wanted = Wanted { run, dialect, tasks: args.tasks.as_deref(), newest: true };
    let which = session.which(cx, &wanted)?;
    let (mut first, mut stopped) = (Vec::new(), BTreeSet::new());
    let view = match &which {
        Which::Ours(dir) => {
            let driven = is_driven(dir);
            let (mut view, run) = view_run(dir, &session.machine)?;
            show_now(&mut view, gates_now(dir, &run, &session.machine)?);
            first = next::first(&run, view.run.status);
            let ended = run.state.steps.iter().filter(|(_, it)| is_stopped(it));
            stopped.extend(ended.map(|(step, _)| step.to_string()));
            if args.cost {
                let mut biller = Biller::default();
                Follower::new(dir).poll()?.iter().for_each(|record| biller.take(record));
                if driven {
                    biller.see(session.now);
                } else {
                    last_sign(dir, &session.machine)?.into_iter().for_each(|it| biller.see(it));
                    settle(&mut biller, &view);
                }
                view.bill = Some(biller.bill((!driven).then_some(session.now)));
            }
            view
        }
        Which::Foreign(found) => {
            let choices = Choices::default();
            of_plan(&session.foreign_plan(found, &choices, Depth::Quick)?)
        }
    };
    if cx.global.json {
        let text = serde_json::to_string(&view).map_err(std::io::Error::other)?;
        writeln!(cx.out, "{text}")?;
    } else {
        words(cx, &view, (&first, &stopped), session.now)?;
        if let Which::Ours(dir) = &which {
            rescues(cx, &session, dir)?;
        }
        if let Some(bill) = &view.bill {
            costs(cx, bill)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Attempts of which the journal knows only the start, as the examination found them.
fn settle(biller: &mut Biller, view: &View) {
    for it in &view.steps {
        let step = Address::from_text(&it.step);
        match it.state.as_str() {
            "lost" | "failed" => biller.lose(&step),
            "done" => biller.keep(&step),
            _ => {}
        }
    }
}

/// What was undone and has not come back.
fn rescues(cx: &mut Context, session: &Session, dir: &Path) -> Result<(), Error> {
    let Ok(found) = all_rescues(dir, &session.machine) else { return Ok(()) };
    for rescue in &found.rescues {
        let undone = rescue.paths.iter().filter(|it| it.now == Now::Undone);
        let paths: Vec<&str> = undone.map(|it| it.path.as_str()).collect();
        if !paths.is_empty() {
            let line = undone::line(&paths, &found.run.id, rescue.number);
            writeln!(cx.out, "Undone:         {line}")?;
        }
    }
    Ok(())
}

fn costs(cx: &mut Context, bill: &Bill) -> Result<(), Error> {
    let Bill { useful, repeated, reverted, under_way, waiting, by_cause, steps, drives } = bill;
    let rows = steps.keys().chain(by_cause.keys());
    let widths = rows.map(|it| printable(it).chars().count() + 2);
    let width = widths.max().unwrap_or(0).clamp(15, 50);
    let heads = format!("{:>8} {:>12} {:>10} {:>10}", "attempts", "time", "tokens", "US$");
    writeln!(cx.out, "\n{:<width$} {heads}", "Cost")?;
    let mut line = |name: &str, sum: &Sum| -> Result<(), Error> {
        let Sum { attempts, seconds, input_tokens, output_tokens, .. } = sum;
        let (span, tokens) = (span(*seconds), style::thousands(input_tokens + output_tokens));
        let (name, money) = (cut(&printable(name), width), money(sum));
        Ok(writeln!(cx.out, "{name:<width$} {attempts:>8} {span:>12} {tokens:>10} {money:>10}")?)
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
    if steps.is_empty() {
        return Ok(());
    }
    for (number, sum) in drives.iter().enumerate() {
        let name = if number == 0 { "First drive".to_owned() } else { format!("Resume {number}") };
        line(&name, sum)?;
    }
    for (step, sum) in steps {
        line(&format!("  {step}"), sum)?;
    }
    Ok(())
}

/// Where the price of tokens is not known, that is no price of nothing.
fn money(sum: &Sum) -> String {
    let known = style::usd(sum.usd).trim_start_matches('$').to_owned();
    if !sum.unpriced {
        known
    } else if sum.usd <= 0.0 {
        "unknown".to_owned()
    } else {
        format!("over {known}")
    }
}

/// A span of seconds as everywhere.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a span of seconds")]
fn span(seconds: f64) -> String {
    took((seconds * 1000.0) as u64)
}

/// Shows a gate with its files as they are now; they may have changed since it was opened.
fn show_now(view: &mut View, now: Vec<Event>) {
    for gate in now {
        let Event::GateOpened { step, prompt, options, shows, hash } = gate else { continue };
        if let Some(shown) = view.gates.iter_mut().find(|it| it.step == step.as_str()) {
            let step = step.to_string();
            *shown = GateView { step, prompt, options, shows, hash: hash.to_string() };
        }
    }
}

/// So many steps of one state are named.
const NAMED_MAX: usize = 10;

/// `first` = what a person must do before the next command can work; `stopped` = the steps that
/// the user stopped, which the view counts among the failed.
fn words(
    cx: &mut Context,
    view: &View,
    (first, stopped): (&[String], &BTreeSet<String>),
    now: Timestamp,
) -> Result<(), Error> {
    let View { run, phase, counts, gates, needs, last_completed, damage, .. } = view;
    let style = if damage.is_empty() { style::of_status(run.status) } else { style::BAD };
    writeln!(cx.out, "Run:            {}", printable(style::name_of(run)))?;
    let until = next::waits(run, now).map_or(String::new(), |it| format!(" {it}"));
    writeln!(cx.out, "Status:         {style}{}{style:#}{until}", status_of(view))?;
    writeln!(cx.out, "Phase:          {}", printable(phase.as_deref().unwrap_or("-")))?;
    writeln!(cx.out, "Steps:          {} of {} done", counts.done, counts.total)?;
    let last = style::moment(&run.last_event.at, now);
    writeln!(cx.out, "Last activity:  {last} ({})", ago(run.age_seconds))?;
    if let Some(last) = last_completed {
        let at = style::moment(&last.at, now);
        writeln!(cx.out, "Last completed: {} at {at}", printable(&last.step))?;
    }
    for line in damage {
        writeln!(cx.out, "Damage:         {}", printable(line))?;
    }
    if let Some(next) = view.next.first() {
        writeln!(cx.out, "Next step:      {}", printable(next))?;
    }
    unfinished(cx, &view.steps, stopped)?;
    for gate in gates {
        gate_words(cx, run, gate)?;
    }
    for need in needs {
        writeln!(cx.out, "Needs you:      {}", printable(need))?;
    }
    for first in first.iter().filter(|_| gates.is_empty()) {
        writeln!(cx.out, "First:          {first}")?;
    }
    let action = next_action(run, damage, !gates.is_empty());
    writeln!(cx.out, "Next action:    {action}")?;
    Ok(())
}

/// The steps that are neither done nor to come, by what they are.
fn unfinished(
    cx: &mut Context,
    steps: &[StepView],
    stopped: &BTreeSet<String>,
) -> Result<(), Error> {
    for state in ["running", "parked", "failed", "stopped", "lost", "stale", "blocked"] {
        let is = |it: &StepView| match it.state.as_str() {
            "failed" if stopped.contains(&it.step) => state == "stopped",
            other => other == state,
        };
        let style = style::of_state(if state == "stopped" { "lost" } else { state });
        for step in steps.iter().filter(|it| is(it)).take(NAMED_MAX) {
            let tries = if step.attempts > 1 {
                format!("  attempt {}", step.attempts)
            } else {
                String::new()
            };
            writeln!(cx.out, "  {style}{state:<8}{style:#} {}{tries}", printable(&step.step))?;
        }
        let more = steps.iter().filter(|it| is(it)).count().saturating_sub(NAMED_MAX);
        if more > 0 {
            writeln!(cx.out, "  {style}{state:<8}{style:#} and {more} more")?;
        }
    }
    Ok(())
}

/// A run whose journal is damaged is that first of all.
fn status_of(view: &View) -> &'static str {
    if view.damage.is_empty() { view.run.status.as_str() } else { "damaged" }
}

/// The question once, what to look at, and the commands that answer it.
fn gate_words(cx: &mut Context, run: &RunInfo, gate: &GateView) -> Result<(), Error> {
    let strong = style::STRONG;
    let (step, prompt) =
        (printable(&gate.step), style::paragraph(&gate.prompt, gate.step.len() + 7, 2));
    writeln!(cx.out, "\n{strong}Gate {step}{strong:#}: {prompt}")?;
    for path in &gate.shows {
        writeln!(cx.out, "  look at {}", printable(path))?;
    }
    // As much of the hash as tells two apart.
    let hash: String = gate.hash.chars().take(12).collect();
    for option in &gate.options {
        let (id, step, option) = (&run.id, word(&gate.step), word(option));
        writeln!(cx.out, "  onward decide {id} {step} {option} --hash {hash}")?;
    }
    writeln!(cx.out)?;
    Ok(())
}

fn next_action(run: &RunInfo, damage: &[String], has_gate: bool) -> String {
    let which = named_in_commands(run);
    if !damage.is_empty() {
        return format!("onward repair {which}");
    }
    match run.status {
        Status::Cancelled => {
            format!("none; to continue it all the same: onward resume {which} --force")
        }
        Status::Completed if run.dialect == "onward" => {
            format!("none; to run it again: onward run --again {which}")
        }
        Status::Completed => "none; the run is complete".to_owned(),
        Status::Waiting | Status::Running if has_gate => "answer the gate".to_owned(),
        Status::Waiting
        | Status::Running
        | Status::Fresh
        | Status::Interrupted
        | Status::Parked
        | Status::OverBudget
        | Status::Failed => next::command(&which, run.status).unwrap_or_default(),
    }
}
