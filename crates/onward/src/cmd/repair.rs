//! `onward repair`: a damaged or lost journal is rebuilt, shown, and adopted when the user says so.

use onward_engine::world::open;
use std::{path::PathBuf, process::ExitCode};

use crate::ink::{self, AnsiColor, Style};
use onward_core::{plan::Status, plural::count};
use onward_engine::{
    care::{
        CareError,
        repair::{Fate, Repair, Report},
    },
    load::journal::{JOURNAL, load},
    locate::{FindError, load_pinned},
};

use crate::{
    cmd::{Context, run::inputs},
    command::onward,
    confirm::{Answer, confirm},
    diagnostic::printable,
    error::Error,
    meant::left_here,
    next,
    session::{Driving, Session, state_of},
    style, width,
};

/// Rebuild a damaged or lost journal from what else is known
///
/// From readable records, sealed exits, outputs and their checks, results and commits. Shows each
/// rebuilt event with its source, and adopts nothing without a yes. The damaged file is kept.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward repair\n  onward repair release-20261115-k3fq --yes")]
pub(crate) struct RepairArgs {
    /// Which run; without it the first one that is damaged
    run: Option<String>,
    /// Adopt what is shown without asking
    #[arg(short, long)]
    yes: bool,
    /// An input of the run, where nothing has kept it
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<String>,
}

pub(crate) fn run(cx: &mut Context, args: &RepairArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = match &args.run {
        Some(wanted) => named(cx, &session, wanted)?,
        None => first_damaged(cx, &session)?,
    };
    let workflow = load_pinned(&dir).map_err(onward_engine::engine::EngineError::from)?;
    let inputs = inputs(&args.inputs, &workflow.workflow.inputs)?;
    let repair = Repair::prepare(&dir, &session.machine, &inputs)?;
    let id = repair.report.run.id.clone();
    if !cx.global.json {
        show(cx, &repair.report)?;
    }
    if !repair.report.needed {
        if cx.global.json {
            return cx.print_json(&repair.report);
        }
        writeln!(cx.err, "run {id}: there is nothing to repair")?;
        return Ok(ExitCode::SUCCESS);
    }
    match confirm(cx, args.yes, "Adopt this?") {
        Answer::Yes => {}
        Answer::No => return Ok(ExitCode::SUCCESS),
        Answer::NotAsked => {
            if cx.global.json {
                cx.print_json(&repair.report)?;
                return Ok(ExitCode::from(crate::error::CONFLICTS));
            }
            return Err(Error::Care(CareError::NeedsYes {
                what: "nothing was changed: a repair needs your yes".to_owned(),
                hint: format!("say `onward repair {id} --yes`"),
            }));
        }
    }
    let report = repair.adopt()?;
    if cx.global.json {
        return cx.print_json(&report);
    }
    if let Some(kept) = &report.kept_as {
        writeln!(cx.err, "run {id} is repaired; the damaged journal is kept as {kept}")?;
    } else {
        writeln!(cx.err, "run {id} is repaired")?;
    }
    let status = Status::of(&state_of(&dir)?, false);
    match next::command(&id, status) {
        Some(next) => writeln!(cx.err, "{}\n{next}", onward!("plan {id}"))?,
        None => writeln!(cx.err, "it is {}: {}", status.as_str(), onward!("status {id}"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// As everywhere, and one that has lost its journal too.
fn named(cx: &Context, session: &Session, wanted: &str) -> Result<PathBuf, Error> {
    match session.named(cx, wanted) {
        Err(Error::Find(FindError::LostJournal { .. })) => {
            Ok(session.project.find_even_lost(wanted)?.dir)
        }
        other => other,
    }
}

fn first_damaged(cx: &Context, session: &Session) -> Result<PathBuf, Error> {
    let runs = session.project.even_lost_runs()?;
    let is_whole = |dir: &PathBuf| {
        let loaded = open::read_own(dir, JOURNAL, open::LOG_BYTES_MAX)
            .ok()
            .and_then(|bytes| load(&bytes).ok());
        loaded.is_some_and(|it| !matches!(it.tail.rest, onward_core::journal::Rest::Damaged(_)))
    };
    let damaged = runs.iter().find(|run| !is_whole(&run.dir));
    match damaged.or(runs.first()) {
        Some(run) => Ok(run.dir.clone()),
        None => left_here(cx, session, FindError::NoRuns),
    }
}

fn show(cx: &mut Context, report: &Report) -> Result<(), Error> {
    let bold = Style::new().bold();
    if report.lost {
        writeln!(cx.err, "{bold}Lost{bold:#}\n  the journal is not there")?;
    } else if !report.damage.is_empty() {
        writeln!(cx.err, "{bold}Damaged{bold:#}")?;
        for it in &report.damage {
            writeln!(cx.err, "  line {}: {}", it.line, it.why)?;
        }
    }
    if !report.needed {
        return Ok(());
    }
    writeln!(
        cx.err,
        "{bold}Kept{bold:#}\n  {} before it",
        count(usize::try_from(report.kept).unwrap_or(usize::MAX), "record")
    )?;
    if let Some(from) = &report.opened_from {
        writeln!(cx.err, "  run.opened, from {from}")?;
    }
    writeln!(cx.err, "{bold}Rebuilt{bold:#}")?;
    for it in &report.rebuilt {
        let step = it.step.as_deref().unwrap_or_default();
        let attempt = it.attempt.map(|it| format!(" {it}")).unwrap_or_default();
        let what = format!("{step}{attempt}");
        let (kind, certainty, source) = (&it.kind, &it.certainty, &it.source);
        let told = format!("{certainty} by {source}: {}", it.why);
        let told = printable(&told);
        row(cx, &format!("  {kind:<17} {what:<20} "), &told)?;
    }
    if report.rebuilt.is_empty() {
        writeln!(cx.err, "  nothing")?;
    }
    if !report.dropped.is_empty() {
        writeln!(cx.err, "{bold}Left out{bold:#}")?;
    }
    for it in &report.dropped {
        row(cx, "  ", &printable(&format!("record {} {}: {}", it.seq, it.kind, it.why)))?;
    }
    writeln!(cx.err, "{bold}Steps{bold:#}")?;
    for it in &report.steps {
        let style = style_of(it.fate);
        let fate = it.fate.as_str();
        let head = format!("  {style}{fate:<12}{style:#} {:<20} ", printable(&it.step));
        row(cx, &head, &printable(&it.why))?;
    }
    Ok(())
}

/// Words behind a head, in their own column.
fn row(cx: &mut Context, head: &str, text: &str) -> Result<(), Error> {
    let at = width::of(&ink::printed(head, false));
    let row = format!("{head}{}", style::wrap(text, style::columns_of_errors(), at, at.max(4)));
    writeln!(cx.err, "{}", row.trim_end())?;
    Ok(())
}

fn style_of(fate: Fate) -> Style {
    match fate {
        Fate::Kept => AnsiColor::Green.on_default(),
        Fate::KeptIfSame | Fate::LookedAt => AnsiColor::Cyan.on_default(),
        Fate::Asked => AnsiColor::Red.on_default(),
        Fate::Again => AnsiColor::Yellow.on_default(),
    }
}
