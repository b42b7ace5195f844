//! `onward verify`: proves every done step again.

use std::process::ExitCode;

use onward_engine::care::verify::{Answer, verify_run};

use crate::{
    cmd::Context,
    command::onward,
    diagnostic::printable,
    error::{self, Error},
    ink::{AnsiColor, Style},
    session::{Driving, Session},
    style, width,
};

/// Prove every done step again
///
/// Outputs are read and hashed in full, results held against their schema, checks run, branches
/// looked for. Writes nothing. Exit code 0: all are proved; 16: some are not.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward verify\n  onward verify release-20261115-k3fq")]
pub(crate) struct VerifyArgs {
    /// Which run; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &VerifyArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, args.run.as_deref())?;
    let verified = verify_run(&dir, &session.machine)?;
    let code = ExitCode::from(if verified.proved { error::OK } else { error::CONFLICTS });
    if cx.global.json {
        cx.print_json(&verified)?;
        return Ok(code);
    }
    let width = verified.steps.iter().map(|it| it.step.len()).max().unwrap_or(0).min(40);
    for step in &verified.steps {
        let style = style_of(step.answer);
        let answer = step.answer.as_str();
        let name = printable(&step.step);
        // Behind a name that is longer than its column, the reason begins below it.
        let at = 13 + width::of(&name).max(width);
        let pad = " ".repeat(width.saturating_sub(width::of(&name)));
        let why = style::wrap(&printable(&step.why.join("; ")), style::columns(), at, 13);
        writeln!(cx.out, "  {style}{answer:<8}{style:#} {name}{pad}  {why}")?;
    }
    let id = &verified.run.id;
    match verified.steps.len() {
        0 => writeln!(cx.err, "run {id}: no step is done yet")?,
        1 if verified.proved => say(cx, &format!("run {id}: the one done step is proved"))?,
        count if verified.proved => {
            say(cx, &format!("run {id}: all {count} done steps are proved"))?;
        }
        count => {
            let done = verified.counts.get("done").copied().unwrap_or(0);
            say(cx, &format!("run {id}: {done} of {count} done steps are proved"))?;
            writeln!(cx.err, "{}", onward!("plan {id}"))?;
        }
    }
    Ok(code)
}

fn say(cx: &mut Context, text: &str) -> Result<(), Error> {
    writeln!(cx.err, "{}", style::wrap(text, style::columns_of_errors(), 0, 2))?;
    Ok(())
}

fn style_of(answer: Answer) -> Style {
    match answer {
        Answer::Done => AnsiColor::Green.on_default(),
        Answer::Unproved => AnsiColor::Red.on_default(),
        Answer::Stale => AnsiColor::Yellow.on_default(),
    }
}
