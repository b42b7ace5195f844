//! `onward status`: how one run is doing.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::{
    cmd::Context,
    command::onward,
    diagnostic::printable,
    error::Error,
    meant::Wanted,
    next,
    session::{Driving, Session, Which, is_driven, named_in_commands, word},
    style::{self, ago, cut, took},
    undone::{self, Why},
};
use onward_core::{
    address::Address,
    bill::{Bill, Biller, Sum},
    event::Event,
    plan::{RunInfo, Status},
    policy::{Choices, Depth},
    time::Timestamp,
    view::{GateView, StepView, View, is_stopped, of_plan},
};
use onward_engine::{
    care::rescues::{Now, list as all_rescues},
    engine::{last_sign, person::gates_now, view_run},
    load::follow::Follower,
};

/// Tell how a run is doing
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward status\n  onward status --cost")]
pub(crate) struct StatusArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// A task list, or the directory of all task lists, instead of Claude Code's own
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    tasks: Option<PathBuf>,
    /// Tell what was useful, and what interruptions have cost
    #[arg(long)]
    cost: bool,
}

pub(crate) fn status(cx: &mut Context, args: &StatusArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, dialect) = (args.run.as_deref(), args.dialect.as_deref());
    let wanted =
        Wanted { run, dialect, tasks: args.tasks.as_deref(), newest: true, command: "status" };
    let which = session.which(cx, &wanted)?;
    let (mut first, mut stopped) = (Vec::new(), BTreeSet::new());
    let view = match &which {
        Which::Ours(dir) => {
            let driven = is_driven(dir);
            let (mut view, run) = view_run(dir, &session.machine, session.folded_of(dir))?;
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
            // The process ends: nothing is given back piece by piece.
            std::mem::forget(run);
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
            "pending" => biller.forget(&step),
            _ => {}
        }
    }
}

/// Where the words behind a label begin.
const LABEL: usize = 16;

/// What was undone or replaced, and has not come back.
fn rescues(cx: &mut Context, session: &Session, dir: &Path) -> Result<(), Error> {
    let Ok(found) = all_rescues(dir, &session.machine) else { return Ok(()) };
    for rescue in &found.rescues {
        for (label, why, is_meant) in [
            ("Undone:", Why::Undone, (Now::Undone, false)),
            ("Replaced:", Why::Replaced, (Now::Changed, true)),
        ] {
            let gone = rescue.paths.iter().filter(|it| (it.now, it.by_hand) == is_meant);
            let paths: Vec<&str> = gone.map(|it| it.path.as_str()).collect();
            if !paths.is_empty() {
                let (said, command) = undone::line(&paths, &found.run.id, rescue.number, why);
                let line = style::wrap_with(&said, &command, style::columns(), LABEL, LABEL);
                writeln!(cx.out, "{label:<LABEL$}{line}")?;
            }
        }
    }
    Ok(())
}

fn costs(cx: &mut Context, bill: &Bill) -> Result<(), Error> {
    let Bill { useful, repeated, reverted, under_way, waiting, by_cause, steps, drives } = bill;
    let rows = steps.keys().chain(by_cause.keys());
    let widths = rows.map(|it| printable(it).chars().count() + 11);
    let width = widths.max().unwrap_or(0).clamp(15, 50);
    let heads = format!("{:>8} {:>12} {:>10} {:>10}", "attempts", "time", "tokens", "US$");
    writeln!(cx.out, "\n{:<width$} {heads}", "Cost")?;
    let mut line = |name: &str, sum: &Sum| -> Result<(), Error> {
        let Sum { attempts, seconds, input_tokens, output_tokens, .. } = sum;
        let (span, tokens) = (span(*seconds), style::thousands(input_tokens + output_tokens));
        let (name, money) = (cut(&printable(name), width), money(sum));
        // Time in which no attempt ran is of none.
        let is_idle = *attempts == 0 && *seconds > 0.0;
        let attempts = if is_idle { "-".to_owned() } else { attempts.to_string() };
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
        let is_idle = sum.attempts == 0 && sum.seconds > 0.0;
        let name = if is_idle { format!("  waited ({cause})") } else { format!("  {cause}") };
        line(&name, sum)?;
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
    if let Some(about) = &run.about {
        writeln!(cx.out, "About:          {}", printable(about))?;
    }
    let comma = if run.status == Status::Running { "," } else { "" };
    let until = next::waits(run, now).map_or(String::new(), |it| format!("{comma} {it}"));
    writeln!(cx.out, "Status:         {style}{}{style:#}{until}", status_of(view))?;
    writeln!(cx.out, "Phase:          {}", printable(phase.as_deref().unwrap_or("-")))?;
    let more = if counts.more { ", and more to come" } else { "" };
    writeln!(cx.out, "Steps:          {} of {} done{more}", counts.done, counts.total)?;
    let last = style::moment(&run.last_event.at, now);
    writeln!(cx.out, "Last activity:  {last} ({})", ago(run.age_seconds))?;
    if let Some(last) = last_completed {
        let at = style::moment(&last.at, now);
        writeln!(cx.out, "Last completed: {} at {at}", printable(&last.step))?;
    }
    for line in damage {
        let line = style::wrap(&printable(line), style::columns(), LABEL, LABEL);
        writeln!(cx.out, "Damage:         {line}")?;
    }
    if let Some(next) = view.next.first() {
        writeln!(cx.out, "Next step:      {}", printable(next))?;
    }
    unfinished(cx, &view.steps, stopped)?;
    for gate in gates {
        gate_words(cx, run, gate)?;
    }
    for need in needs {
        let need = style::wrap(&printable(need), style::columns(), LABEL, LABEL);
        writeln!(cx.out, "Needs you:      {need}")?;
    }
    for first in first.iter().filter(|_| gates.is_empty()) {
        let first = style::wrap(first, style::columns(), LABEL, LABEL);
        writeln!(cx.out, "First:          {first}")?;
    }
    let (words, command) = next_action(view);
    let words = format!("Next action:    {words}");
    let action = match command {
        // Alone in its row, where it does not fit behind the words.
        Some(command) if words.ends_with(':') => {
            style::wrap_with(&words, &command, style::columns(), 0, 2)
        }
        Some(command) => format!("{words}{command}"),
        None => words,
    };
    writeln!(cx.out, "{action}")?;
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
pub(super) fn status_of(view: &View) -> &'static str {
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
        writeln!(cx.out, "  {}", onward!("decide {id} {step} {option} --hash {hash}"))?;
    }
    writeln!(cx.out)?;
    Ok(())
}

/// What to do next, in words, and the command to paste.
fn next_action(view: &View) -> (&'static str, Option<String>) {
    let View { run, damage, .. } = view;
    let has_gate = !view.gates.is_empty();
    let which = named_in_commands(run);
    if !damage.is_empty() {
        return ("", Some(onward!("repair {which}")));
    }
    match run.status {
        // No word takes it up again: what it needs says why.
        Status::Cancelled if !view.needs.is_empty() => ("none; the run is over", None),
        Status::Cancelled => {
            ("none; to continue it anyway:", Some(onward!("resume {which} --force")))
        }
        Status::Completed if run.dialect == "onward" => {
            ("none; to run it again:", Some(onward!("run --again {which}")))
        }
        Status::Completed => ("none; the run is complete", None),
        Status::Waiting | Status::Running if has_gate => ("answer the gate", None),
        Status::Waiting
        | Status::Running
        | Status::Fresh
        | Status::Interrupted
        | Status::Parked
        | Status::OverBudget
        | Status::Failed => ("", next::command(&which, run.status)),
    }
}
