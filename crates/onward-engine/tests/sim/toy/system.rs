//! A small system of its own, in whose files another program's progress is told.
//!
//! A run is the directory `toy/`:
//! - `toy.log` only grows: `start`, then `done STEP` when a step is over, `resumed` when a program
//!   goes on with the run, `doubt` when a person has to look first. Any other line is broken.
//! - `rows.txt` has `row STEP` for what a step does, before the log tells of it. A row whose step
//!   is not done is half-done work.
//! - `page.txt` is what the step `page` makes; without `done page`, nothing vouches for it.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    finding::{Code, Finding},
    plan::{RecoveryPoint, Status},
    time::Timestamp,
    told::{Change, Deed, Done, Entering, NoEntry, Standing, StepTold, Told, Undo, UndoWhat},
};
use onward_dialects::{
    Files,
    seam::{Card, Dialect, Home, Listing, Mark, Missing, Site},
};
use onward_engine::foreign::Foreign;
use serde_json::json;

pub(crate) const DIR: &str = "toy";
pub(crate) const LOG: &str = "toy.log";
pub(crate) const ROWS: &str = "rows.txt";
pub(crate) const PAGE: &str = "page.txt";

/// In the order of the work; the two in `lanes` are done side by side.
pub(crate) const STEPS: [&str; 5] = ["plan", "lanes/left", "lanes/right", "page", "close"];

pub(crate) const WORKFLOW: &str = "
onward: 1
name: toy
limits: { parallel: 3 }
steps:
  - { id: plan,
      run: begin toy/toy.log start; tell toy/rows.txt row plan; work; tell toy/toy.log done plan }
  - { id: note, needs: [plan], run: write note.txt noted, writes: [note.txt] }
  - id: lanes
    needs: [plan]
    steps:
      - { id: left, needs: [],
          run: tell toy/rows.txt row lanes/left; tell toy/toy.log done lanes/left }
      - { id: right, needs: [],
          run: work; tell toy/rows.txt row lanes/right; work; tell toy/toy.log done lanes/right }
  - { id: page, needs: [lanes],
      run: tell toy/rows.txt row page; write toy/page.txt page-page; tell toy/toy.log done page }
  - { id: close, needs: [page],
      run: tell toy/rows.txt row close; tell toy/toy.log done close; work }
";

const TOY: Card = Card {
    name: "toy",
    workflows: &["toy"],
    entries: &STEPS,
    home: Home::Project,
    marks: &[Mark { glob: LOG, peek: false }],
    reads: &[LOG, ROWS, PAGE],
    grows: &[LOG],
    agents_declare: false,
    keeps: &[],
    branches: None,
    processes: &[],
    lock: None,
};
pub(crate) static CARD: Card = TOY;
static LOCKED: Card = Card { lock: Some("toy.lock"), ..TOY };

/// The toy system, with or without a lock that its own programs take.
pub(crate) struct ToyDialect {
    card: &'static Card,
}

static PLAIN: ToyDialect = ToyDialect { card: &CARD };
static LOCKING: ToyDialect = ToyDialect { card: &LOCKED };

/// The toy system's run in the project.
pub(crate) fn foreign(begins: bool) -> Foreign {
    Foreign { dialect: &PLAIN, site: Site::at(&CARD, DIR), begins }
}

/// The same of a system whose programs keep out while its lock is held.
pub(crate) fn locked(begins: bool) -> Foreign {
    Foreign { dialect: &LOCKING, ..foreign(begins) }
}

impl Dialect for ToyDialect {
    fn card(&self) -> &'static Card {
        self.card
    }

    fn sites(&self, seen: &Listing) -> Vec<Site> {
        seen.candidates.iter().map(|it| Site::at(&CARD, &it.dir)).collect()
    }

    fn read(&self, _site: &Site, files: Files) -> Result<Box<dyn Told>, Missing> {
        let Some(log) = files.bytes(LOG) else {
            let hint = "a run of the toy system begins with its log".to_owned();
            return Err(Missing { dialect: CARD.name, file: LOG.to_owned(), hint });
        };
        Ok(Box::new(ToyTold::read(log, files.bytes(ROWS), files.contains(PAGE))))
    }
}

/// What the files of one run say.
#[derive(Debug)]
pub(crate) struct ToyTold {
    logged: BTreeSet<String>,
    pub(crate) resumed: u32,
    doubted: bool,
    /// The log ends within a line.
    is_torn: bool,
    rows: Vec<String>,
    has_page: bool,
}

impl ToyTold {
    pub(crate) fn read(log: &[u8], rows: Option<&[u8]>, has_page: bool) -> Self {
        let lines = lines(log);
        let logged = lines.iter().filter_map(|line| line.strip_prefix("done "));
        Self {
            logged: logged.map(str::to_owned).collect(),
            resumed: u32::try_from(lines.iter().filter(|it| *it == "resumed").count()).unwrap(),
            doubted: lines.iter().rev().take_while(|it| *it != "resumed").any(|it| it == "doubt"),
            is_torn: log.last().is_some_and(|byte| *byte != b'\n'),
            rows: self::lines(rows.unwrap_or_default()),
            has_page,
        }
    }

    /// The first step is also known to be done by the steps that came after it.
    pub(crate) fn is_done(&self, step: &str) -> bool {
        self.logged.contains(step) || (step == STEPS[0] && !self.logged.is_empty())
    }

    /// The steps that may begin.
    pub(crate) fn open(&self) -> Vec<&'static str> {
        let needs = |step: &str| -> &[&str] {
            match step {
                "plan" => &[],
                "lanes/left" | "lanes/right" => &["plan"],
                "page" => &["lanes/left", "lanes/right"],
                _ => &["page"],
            }
        };
        let is_open =
            |step: &&str| !self.is_done(step) && needs(step).iter().all(|need| self.is_done(need));
        STEPS.into_iter().filter(is_open).collect()
    }

    /// Whose rows are half-done work.
    pub(crate) fn half_done(&self) -> BTreeSet<&str> {
        let steps = self.rows.iter().filter_map(|row| row.strip_prefix("row "));
        steps.filter(|step| !self.is_done(step)).collect()
    }

    /// The rows without those of half-done work.
    pub(crate) fn rows_that_count(&self) -> Vec<u8> {
        let half: Vec<String> = self.half_done().iter().map(|step| format!("row {step}")).collect();
        let kept = self.rows.iter().filter(|row| !half.contains(row));
        kept.flat_map(|row| format!("{row}\n").into_bytes()).collect()
    }
}

impl Told for ToyTold {
    fn standing(&self, _now: Timestamp) -> Standing {
        let open = self.open();
        let code = open.first().map_or("over", |step| step.split('/').next().unwrap_or(step));
        let summary = match open.first() {
            Some(first) => format!("the toy goes on at {first}"),
            None => "the toy is done".to_owned(),
        };
        let point = RecoveryPoint {
            code: code.to_owned(),
            phase: open.first().map(|_| code.to_owned()),
            round: None,
            steps: open.iter().map(|step| (*step).to_owned()).collect(),
            summary,
        };
        Standing {
            status: if open.is_empty() { Status::Completed } else { Status::Interrupted },
            started_at: None,
            last_event: None,
            resumes: self.resumed,
            point,
            report: vec![format!("{} of {} steps", self.logged.len(), STEPS.len())],
            needs_agents: false,
            asks: None,
        }
    }

    fn findings(&self, _now: Timestamp) -> Vec<Finding> {
        let doubt = || Finding::new(Code::UnprovedWorkCounts, "the log says that it is in doubt");
        self.doubted.then(doubt).into_iter().collect()
    }

    fn step(&self, at: &Address) -> StepTold {
        let step = at.as_str();
        if !STEPS.contains(&step) {
            StepTold::Silent
        } else if self.logged.contains(step) {
            StepTold::Done(Done::recorded(json!({ "step": step })))
        } else if self.is_done(step) {
            StepTold::Done(Done::inferred(json!({ "step": step })))
        } else if step == "page" && self.has_page {
            StepTold::Unproved("there is a page, and the log does not tell of it".to_owned())
        } else {
            StepTold::Undone
        }
    }

    fn undo(&self) -> Vec<Undo> {
        let mut undo = Vec::new();
        let half = self.half_done();
        if let Some(first) = half.first() {
            // One undo for one file; rows of both lanes belong to what holds them.
            let step = if half.len() > 1 { "lanes" } else { first };
            let rows = half.iter().map(|step| format!("row {step}")).collect();
            let what = UndoWhat::Rows { rows, after: self.rows_that_count() };
            undo.push(Undo { step: Address::from_text(step), path: ROWS.to_owned(), what });
        }
        if self.has_page && !self.is_done("page") {
            let (step, path) = (Address::from_text("page"), PAGE.to_owned());
            undo.push(Undo { step, path, what: UndoWhat::Remove });
        }
        undo
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            Deed::Resumed { .. } => {
                let line = if self.is_torn { "\nresumed\n" } else { "resumed\n" };
                vec![Change::Append { path: LOG.to_owned(), bytes: line.into() }]
            }
            Deed::Cancelled { .. } => Vec::new(),
        }
    }

    /// Only where it goes on anyway.
    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        match self.standing(at.now).point.steps.iter().any(|step| step == at.place) {
            true => Ok(Vec::new()),
            false if STEPS.contains(&at.place) => {
                Err(NoEntry::Ahead(format!("it does not go on at {}", at.place)))
            }
            false => Err(NoEntry::Unknown(at.place.to_owned())),
        }
    }
}

/// Whole lines of text; others are broken.
pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    let whole = bytes.split_inclusive(|byte| *byte == b'\n').filter(|it| it.ends_with(b"\n"));
    let text = whole.filter_map(|line| std::str::from_utf8(line).ok());
    let text = text.map(|line| line.trim_end().to_owned());
    text.filter(|line| !line.is_empty() && !line.contains('\0')).collect()
}
