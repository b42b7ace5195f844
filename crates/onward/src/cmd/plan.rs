//! `onward plan` and `onward why`: what a resume would do, and why. They change nothing.

use std::{path::PathBuf, process::ExitCode};

use anstyle::{AnsiColor, Style};
use onward_core::{
    finding::Severity,
    plan::{Plan, Verdict, Why},
    policy::{Choices, Depth},
};
use onward_engine::{
    engine::{page_of_site, plan_run},
    locate::FoundSite,
};
use serde_json::json;

use crate::{
    cmd::Context,
    diagnostic::printable,
    error::Error,
    session::{Driving, Session, Wanted, Which, word},
};

/// Show what a resume would do, and why
///
/// Reads only: nothing on disk changes, no check or probe is run.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PlanArgs {
    /// Which run: its id, a prefix of it, or its directory; without it the last active one
    run: Option<String>,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// A task list, or the directory of all task lists, in the place of Claude Code's own
    #[arg(long, value_name = "DIR")]
    tasks: Option<PathBuf>,
    /// The report in a format of the system that wrote the run, such as `l1` of a pipeline
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    format: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &PlanArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let wanted = Wanted {
        run: args.run.as_deref(),
        dialect: args.dialect.as_deref(),
        tasks: args.tasks.as_deref(),
    };
    let plan = match session.which(cx, &wanted)? {
        Which::Ours(dir) => {
            let session = session.of_run(cx, &dir, &Driving::default())?;
            plan_run(&dir, &session.machine, &Choices::default())?
        }
        Which::Foreign(found) => {
            let session = Session::at(cx, found.project.root(), &Driving::default())?;
            if let Some(format) = &args.format {
                return page(cx, &session, &found, format);
            }
            session.foreign_plan(&found, &Choices::default(), Depth::Quick)?
        }
    };
    if cx.global.json {
        let text = serde_json::to_string(&plan).map_err(std::io::Error::other)?;
        writeln!(cx.out, "{text}")?;
    } else {
        let mut text = Vec::new();
        write(&mut text, &plan)?;
        cx.out.write_all(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A report in the words of the other system.
fn page(
    cx: &mut Context,
    session: &Session,
    found: &FoundSite,
    format: &str,
) -> Result<ExitCode, Error> {
    let Some(text) = page_of_site(found, &session.machine, format)? else {
        let name = found.card().name;
        return Err(Error::Usage {
            message: format!("a {name} run has no format `{format}`"),
            hint: "leave `--format` out, or take `--json`".to_owned(),
        });
    };
    write!(cx.out, "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// The plan for a person who is about to be asked.
pub(crate) fn show(cx: &mut Context, plan: &Plan) -> Result<(), Error> {
    let mut text = Vec::new();
    write(&mut text, plan)?;
    Ok(cx.err.write_all(&text)?)
}

const STRONG: Style = Style::new().bold();

fn write(out: &mut Vec<u8>, plan: &Plan) -> std::io::Result<()> {
    use std::io::Write as _;
    let run = &plan.run;
    let age = age(run.age_seconds);
    writeln!(out, "{STRONG}{}{STRONG:#}  {}, last event {age} ago", run.id, run.status.as_str())?;
    for line in &plan.summary {
        writeln!(out, "{}", printable(line))?;
    }
    if plan.summary.is_empty() {
        writeln!(out, "{}", plan.recovery_point.summary)?;
    }
    if !plan.findings.is_empty() {
        writeln!(out, "\nFindings")?;
    }
    for finding in &plan.findings {
        let (style, word) = match finding.severity() {
            Severity::Info => (Style::new().dimmed(), "info"),
            Severity::Warning => (AnsiColor::Yellow.on_default(), "warning"),
            Severity::Blocking => (AnsiColor::Red.on_default().bold(), "blocking"),
        };
        let message = printable(&finding.message);
        writeln!(out, "  {style}{word}{style:#} {}: {message}", finding.code)?;
        if let Some(hint) = &finding.hint {
            writeln!(out, "    {}", printable(hint))?;
        }
    }
    writeln!(out, "\nSteps")?;
    let width = plan.steps.iter().map(|step| step.step.len()).max().unwrap_or(0).min(40);
    for step in &plan.steps {
        let style = style_of(step.verdict);
        let verdict = step.verdict.as_str();
        let why: Vec<String> =
            step.why.iter().map(|why| format!("{}: {}", why.cause, why.detail)).collect();
        let why = printable(&why.join("; "));
        writeln!(out, "  {style}{verdict:<8}{style:#} {:<width$}  {why}", step.step)?;
    }
    for revert in &plan.reverts {
        writeln!(out, "  undo     {} (kept in {})", printable(&revert.path), revert.rescue)?;
        for row in &revert.rows {
            writeln!(out, "           {}", printable(&row.replace('\t', "  ")))?;
        }
    }
    let counts: Vec<String> =
        plan.counts.iter().map(|(verdict, count)| format!("{verdict} {count}")).collect();
    writeln!(out, "\n{}", counts.join(", "))?;
    let cost = plan.cost;
    if cost.spent_usd > 0.0 {
        let (spent, again, restart) = (cost.spent_usd, cost.rerun_usd, cost.restart_usd);
        writeln!(out, "spent ${spent:.2}; re-run about ${again:.2}; restart about ${restart:.2}")?;
    }
    for need in &plan.needs {
        writeln!(out, "needs you: {}", printable(need))?;
    }
    if plan.can_resume {
        let which = if run.dialect == "onward" { &run.id } else { &run.dir };
        writeln!(out, "onward resume {}", word(which))?;
    }
    Ok(())
}

fn style_of(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Keep | Verdict::Adopt | Verdict::Skip => AnsiColor::Green.on_default(),
        Verdict::Verify | Verdict::Reattach | Verdict::Continue => AnsiColor::Cyan.on_default(),
        Verdict::Rerun => AnsiColor::Yellow.on_default(),
        Verdict::Run => Style::new(),
        Verdict::Ask => AnsiColor::Red.on_default(),
    }
}

/// A span as a person says it.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Say why a step will, or will not, run again
///
/// Names each part that changed, with its old and its new value.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct WhyArgs {
    /// `[RUN] STEP`: the address of the step, after the run if there are several
    #[arg(required = true, num_args = 1..=2, value_names = ["RUN", "STEP"])]
    words: Vec<String>,
}

pub(crate) fn why(cx: &mut Context, args: &WhyArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let (run, step) = super::run_and_rest(&args.words);
    let dir = session.named_or_last(cx, run)?;
    let plan = plan_run(&dir, &session.machine, &Choices::default())?;
    let Some(planned) = plan.steps.iter().find(|it| it.step == step) else {
        let known: Vec<String> = plan.steps.into_iter().map(|it| it.step).collect();
        return Err(Error::NoSuchStep { step: step.to_owned(), known });
    };
    let cause = |why: &Why| match (&why.was, &why.is) {
        (None, None) => json!({"part": why.cause, "was": null, "is": why.detail}),
        (was, is) => json!({"part": why.cause, "was": was, "is": is}),
    };
    // Where parts changed, they are the answer; a word such as `done` is one only without them.
    let changed: Vec<&Why> =
        planned.why.iter().filter(|why| why.was.is_some() || why.is.is_some()).collect();
    let told = if changed.is_empty() { planned.why.iter().collect() } else { changed };
    let causes: Vec<serde_json::Value> = told.into_iter().map(cause).collect();
    if cx.global.json {
        let object = json!({
            "schema": "onward.why/1", "step": step,
            "verdict": planned.verdict.as_str(), "causes": causes,
        });
        writeln!(cx.out, "{object}")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(cx.out, "{step}: {}", planned.verdict.as_str())?;
    for why in &planned.why {
        writeln!(cx.out, "  {}: {}", why.cause, printable(&why.detail))?;
    }
    Ok(ExitCode::SUCCESS)
}
