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
    command::onward,
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
    /// A task list, or the directory of all task lists, instead of Claude Code's own
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
        writeln!(cx.err, "no runs here; start one with `{}`", onward!("run FILE"))?;
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
            let lost = format!("it has lost its journal; `{}`", onward!("repair {id}"));
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
        is_broken.then(|| onward!("repair {}", word(&self.id)))
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
                let gates = view.gates.iter().map(|gate| gate.step.as_str());
                let mut gates: Vec<String> = gates.map(str::to_owned).collect();
                let others = gates.len().saturating_sub(GATES_MAX);
                gates.truncate(GATES_MAX);
                gates.extend((others > 0).then(|| format!("{others} more")));
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

/// So many open gates are named; `status` has all.
const GATES_MAX: usize = 2;
/// What stands between two columns.
const GAP: usize = 2;
/// The phase is not cut further than to so many columns.
const PHASE_MIN: usize = 8;
/// Names of runs have so many columns before phase and age go to a row of their own.
const ID_MIN: usize = 24;

fn table(cx: &mut Context, rows: &[Row], now: Timestamp) -> Result<(), Error> {
    let heads = ["RUN", "STATUS", "DONE", "PHASE", "LAST ACTIVE", ""].map(str::to_owned);
    let lines: Vec<[String; 6]> = rows.iter().map(|row| row.cells(now)).collect();
    let all: Vec<&[String; 6]> = std::iter::once(&heads).chain(&lines).collect();
    let layout = Layout::of(&all, style::columns());
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
    /// typed: one that leaves no room for the others has a row of its own.
    fn of(lines: &[&[String; 6]], columns: Option<usize>) -> Self {
        let of = |at: usize| lines.iter().map(move |line| width::of(&line[at]));
        let mut widths: [usize; 6] = std::array::from_fn(|at| of(at).max().unwrap_or(0));
        let Some(room) = columns else { return Self { widths, columns, is_narrow: false } };
        let status_and_done = widths[1] + widths[2] + 2 * GAP;
        let others = status_and_done + widths[4] + 2 * GAP;
        let beside = others + widths[3].min(PHASE_MIN);
        let is_narrow = beside + widths[0].min(ID_MIN) > room;
        let room_of_id = room.saturating_sub(if is_narrow { status_and_done } else { beside });
        widths[0] = of(0).filter(|it| *it <= room_of_id).max().unwrap_or(0);
        if !is_narrow {
            widths[3] = widths[3].min(room - widths[0] - others);
        }
        Self { widths, columns, is_narrow }
    }

    fn row(&self, cells: &[String; 6], style: Style) -> String {
        let [id, status, done, phase, age, note] = cells;
        let [ids, of_status, of_done, phases, ages, _] = self.widths;
        let alone = if width::of(id) > ids { format!("{id}\n") } else { String::new() };
        let id = padded(if alone.is_empty() { id } else { "" }, ids);
        let head = format!("{id}  {style}{status:<of_status$}{style:#}  {done:>of_done$}");
        let indented =
            |text: &str| format!("\n{}", style::wrap(&format!("    {text}"), self.columns, 0, 4));
        if self.is_narrow {
            let rest = [phase, age, note].map(String::as_str);
            let rest: Vec<&str> =
                rest.into_iter().filter(|it| !it.is_empty() && *it != "-").collect();
            return format!("{alone}{head}{}", indented(&rest.join(", ")));
        }
        let phase = padded(&style::cut(phase, phases), phases);
        let line = format!("{head}  {phase}  {age:<ages$}");
        let whole = width::of(&ink::printed(&line, false)) + GAP + width::of(note);
        if note.is_empty() {
            format!("{alone}{}", line.trim_end())
        } else if self.columns.is_none_or(|columns| whole <= columns) {
            format!("{alone}{line}  {note}")
        } else {
            format!("{alone}{}{}", line.trim_end(), indented(note))
        }
    }
}

fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width::of(text))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shown(columns: usize) -> Vec<String> {
        let cells = |id: &str, phase: &str, note: &str| {
            [id, "waiting", "3/5", phase, "2 h ago", note].map(str::to_owned)
        };
        let head = ["RUN", "STATUS", "DONE", "PHASE", "LAST ACTIVE", ""].map(str::to_owned);
        let long = "a-name-that-leaves-no-room-for-the-others-in-eighty-columns-20261118-abcd";
        let lines = [
            head,
            cells("写作会议", "写作写作写作写作写作写作", ""),
            cells(long, "-", "needs you: g"),
        ];
        let layout = Layout::of(&lines.iter().collect::<Vec<_>>(), Some(columns));
        let rows = lines.iter().map(|it| layout.row(it, Style::new()));
        let text = rows.map(|it| ink::printed(&it, false)).collect::<Vec<_>>().join("\n");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_stand_below_each_other_where_characters_are_wide_and_names_long() {
        for columns in [50, 80, 140] {
            let rows = shown(columns);
            let at = |row: &String, word: &str| row.find(word).map(|at| width::of(&row[..at]));
            let heads = at(&rows[0], "STATUS");
            let status: Vec<_> = rows.iter().filter_map(|it| at(it, "waiting")).collect();
            assert_eq!(status.len(), 2, "{rows:#?}");
            assert!(status.iter().all(|it| Some(*it) == heads), "{rows:#?}");
            let age: BTreeSet<_> = rows.iter().filter_map(|it| at(it, "2 h ago")).collect();
            assert!(columns == 50 || age.len() == 1, "{rows:#?}");
            // A name is typed, and never cut.
            let fits = |it: &String| width::of(it) <= columns || it.starts_with("a-name");
            assert!(rows.iter().all(fits), "{rows:#?}");
            assert!(rows.iter().any(|it| it.contains("-20261118-abcd")), "{rows:#?}");
        }
    }
}
