//! `onward list`: which runs there are.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{
    plan::Status,
    time::Timestamp,
    view::{Counts, View, of_plan},
};
use onward_engine::{engine::view_runs, load::journal::JOURNAL};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::{Context, status::status_of},
    diagnostic::printable,
    error::Error,
    ink::{self, Style},
    meant, next,
    session::{Driving, Session, word},
    style::{self, ago},
    width,
};

/// List the runs here: those that need you, then the last active
#[derive(clap::Args, Clone, Debug, Default)]
#[command(after_help = "Examples:\n  onward list\n  onward list --json")]
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
        if !dir.has_journal {
            let lost = format!("it has lost its journal; `onward repair {id}`");
            rows.push(Row { id, dir: at, place: None, last_active, shown: Err(lost) });
            continue;
        }
        // One run that cannot be read must not hide the others.
        let shown = shown.map_err(|error| error.to_string());
        rows.push(Row { id, dir: at, place: None, last_active, shown });
    }
    let here = meant::here(cx, session)?;
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
    /// The command without which nothing goes on, where the journal is damaged or lost.
    pub(crate) fn repair(&self) -> Option<String> {
        let is_broken = match &self.shown {
            Ok(view) => !view.damage.is_empty(),
            Err(_) => !Path::new(&self.dir).join(JOURNAL).is_file() && self.place.is_none(),
        };
        is_broken.then(|| format!("onward repair {}", word(&self.id)))
    }

    pub(crate) fn is_of(&self, id: &str) -> bool {
        self.id == id
    }

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
                let note = match &run.about {
                    Some(about) if note == run.dialect => format!("{note}, {about}"),
                    Some(about) => format!("{about}, {note}"),
                    None => note,
                };
                let phase = view.phase.as_deref().unwrap_or("-");
                let done = style::fraction(counts);
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

/// What stands between two columns.
const GAP: usize = 2;
/// The phase is not cut further than to so many columns.
const PHASE_MIN: usize = 8;

fn table(cx: &mut Context, rows: &[Row], now: Timestamp) -> Result<(), Error> {
    let heads = ["RUN", "STATUS", "DONE", "PHASE", "LAST ACTIVE", ""].map(str::to_owned);
    let lines: Vec<[String; 6]> = rows.iter().map(|row| row.cells(now)).collect();
    let all = || std::iter::once(&heads).chain(&lines);
    let widths =
        std::array::from_fn(|at| all().map(|line| width::of(&line[at])).max().unwrap_or(0));
    let layout = Layout::of(widths, style::columns());
    // In one go: each line by itself would be a call of its own.
    let mut page = layout.row(&heads, style::DIM);
    for (row, line) in rows.iter().zip(&lines) {
        page.push('\n');
        page.push_str(&layout.row(line, row.style()));
    }
    writeln!(cx.out, "{page}")?;
    Ok(())
}

/// How a table fits into the columns that there are.
struct Layout {
    widths: [usize; 6],
    columns: Option<usize>,
    /// Phase and age have a row of their own.
    is_narrow: bool,
}

impl Layout {
    /// The phase is the first to be cut: `status` tells it in full. A run is never cut, since it is
    /// typed.
    fn of(mut widths: [usize; 6], columns: Option<usize>) -> Self {
        let Some(room) = columns else { return Self { widths, columns, is_narrow: false } };
        let others: usize = [0, 1, 2, 4].map(|at| widths[at] + GAP).iter().sum();
        let is_narrow = others + widths[3].min(PHASE_MIN) > room;
        if !is_narrow {
            widths[3] = widths[3].min(room - others);
        }
        Self { widths, columns, is_narrow }
    }

    fn row(&self, cells: &[String; 6], style: Style) -> String {
        let [id, status, done, phase, age, note] = cells;
        let [ids, of_status, of_done, phases, ages, _] = self.widths;
        let head =
            format!("{}  {style}{status:<of_status$}{style:#}  {done:>of_done$}", padded(id, ids));
        let indented =
            |text: &str| format!("\n{}", style::wrap(&format!("    {text}"), self.columns, 0, 4));
        if self.is_narrow {
            let rest = [phase, age, note].map(String::as_str);
            let rest: Vec<&str> =
                rest.into_iter().filter(|it| !it.is_empty() && *it != "-").collect();
            return format!("{head}{}", indented(&rest.join(", ")));
        }
        let phase = padded(&style::cut(phase, phases), phases);
        let line = format!("{head}  {phase}  {age:<ages$}");
        let whole = width::of(&ink::printed(&line, false)) + GAP + width::of(note);
        if note.is_empty() {
            line.trim_end().to_owned()
        } else if self.columns.is_none_or(|columns| whole <= columns) {
            format!("{line}  {note}")
        } else {
            format!("{}{}", line.trim_end(), indented(note))
        }
    }
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width::of(text))))
}
