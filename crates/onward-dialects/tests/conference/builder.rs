//! Conference directories from a few readable lines.
//!
//! A script has one event a line, five minutes apart:
//!
//! ```text
//! start                   conference.started
//! round 2: A B            round.started
//! A2.3 kept 71.2          researcher.iteration: A, round 2, iteration 3; also a row of A's file
//! stuck B2 3              researcher.stuck
//! poster 2  review 2      round.poster_session, round.peer_review
//! end 2 63.0              round.completed with its best metric
//! converged  stalled  failed  complete  resumed
//! ```

use std::{collections::BTreeMap, fmt::Write as _};

use onward_core::{
    finding::{Finding, Severity},
    plan::{RecoveryPoint, Verdict},
    time::Timestamp,
    told::{Change, Deed, Standing, Told, Undo, UndoWhat},
};
use onward_dialects::{Dialect as _, File, Files, Git, Site, conference::CONFERENCE};

use crate::walk::Walk;

pub(crate) const DOCUMENT: &str = "\
# Conference: Latency

## Goal
Bring the slow requests down.

## Mode
metric

## Success Metric
- **Metric:** p95_ms
- **Target:** < 50
- **Direction:** minimize
- **Evaluator:** `sh score.sh`

## Researchers
- **Count:** 2
- **Iterations per round:** 3
- **Max rounds:** 4

## Search Space
- **Allowed changes:** cache sizes, pool sizes

## Constraints
- **Max total iterations:** 24
- **Time budget:** 8h

## Shared Knowledge

## Conference Log
| Round | Researcher | Best Metric | Key Finding | Status |
|-------|------------|-------------|-------------|--------|
";

pub(crate) const COLUMNS: &str =
    "iteration\tmetric_value\tdelta\tdelta_pct\tstatus\tdescription\tevaluator_source\ttimestamp\n";

const SHARED_COLUMNS: &str = "iteration\tmetric_value\tdelta\tdelta_pct\tstatus\tdescription\t\
    evaluator_source\tpeer_review_verdict\ttimestamp\n";

/// A round of two researchers that is over, as script lines.
pub(crate) const ROUND_1: &str = "start
round 1: A B
A1.0 baseline 80
B1.0 baseline 80
A1.1 kept 75
B1.1 reverted 82
A1.2 reverted 77
B1.2 kept 70
poster 1
review 1
end 1 70
";

#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) document: String,
    pub(crate) log: String,
    tables: BTreeMap<String, String>,
    /// `conference_results.tsv`, unless a test brings its own.
    shared: String,
    files: BTreeMap<String, String>,
    git: Option<Git>,
    alive: Vec<u32>,
    now: Timestamp,
}

pub(crate) fn conference(script: &str) -> Built {
    let start: Timestamp = "2026-05-04T20:00:00Z".parse().unwrap();
    let mut built = Built {
        document: DOCUMENT.to_owned(),
        log: String::new(),
        tables: BTreeMap::new(),
        shared: String::new(),
        files: BTreeMap::new(),
        git: None,
        alive: Vec::new(),
        now: start,
    };
    for (index, line) in script.lines().enumerate() {
        let at = start.plus_ms(index as u64 * 300_000);
        built.event(line, &at.to_string());
        built.now = at.plus_ms(600_000);
    }
    built
}

impl Built {
    fn event(&mut self, line: &str, at: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, payload) = match words.as_slice() {
            ["start"] => ("conference.started", r#"{"researchers":2,"mode":"metric"}"#.to_owned()),
            ["round", number, researchers @ ..] => {
                let states: Vec<String> =
                    researchers.iter().map(|it| format!("\"{it}:ready\"")).collect();
                let (number, states) = (number.trim_end_matches(':'), states.join(","));
                ("round.started", format!(r#"{{"round":{number},"researcher_states":[{states}]}}"#))
            }
            ["stuck", who, level] => {
                let (researcher, round) = who.split_at(1);
                let payload = format!(
                    r#"{{"researcher":"{researcher}","round":{round},"stuck_level":{level}}}"#
                );
                ("researcher.stuck", payload)
            }
            ["poster", round] => ("round.poster_session", format!(r#"{{"round":{round}}}"#)),
            ["review", round] => ("round.peer_review", format!(r#"{{"round":{round}}}"#)),
            ["end", round, best] => {
                let payload =
                    format!(r#"{{"round":{round},"best_metric":{best},"converged":false}}"#);
                ("round.completed", payload)
            }
            ["converged"] => ("conference.converged", r#"{"reason":"metric_plateau"}"#.to_owned()),
            ["stalled"] => ("conference.stalled", "{}".to_owned()),
            ["failed"] => ("conference.failed", "{}".to_owned()),
            ["complete"] => ("conference.completed", "{}".to_owned()),
            ["resumed"] => ("conference.resumed", "{}".to_owned()),
            [which, status, metric] => {
                let (researcher, numbers) = which.split_at(1);
                let (round, iteration) = numbers.split_once('.').unwrap();
                let row = format!("{iteration}\t{metric}\t-\t-\t{status}\ta try\tscore.sh\t{at}");
                self.add_row(researcher, &row);
                let shared = row.replace("\tscore.sh\t", "\tscore.sh\t-\t");
                writeln!(self.shared, "{round}\t{researcher}\t{shared}").unwrap();
                let payload = format!(
                    "{{\"researcher\":\"{researcher}\",\"round\":{round},\
                     \"iteration\":{iteration},\"metric_value\":{metric},\"delta\":0.5,\
                     \"status\":\"{status}\"}}"
                );
                ("researcher.iteration", payload)
            }
            _ => panic!("no such line: {line}"),
        };
        writeln!(self.log, r#"{{"event":"{name}","timestamp":"{at}","payload":{payload}}}"#)
            .unwrap();
    }

    fn add_row(&mut self, researcher: &str, row: &str) {
        let name = format!("researcher_{researcher}_results.tsv");
        let table = self.tables.entry(name).or_insert_with(|| COLUMNS.to_owned());
        table.push_str(row);
        table.push('\n');
    }

    /// A row without an event: `2 reverted 81`.
    pub(crate) fn row(mut self, researcher: &str, row: &str) -> Self {
        let words: Vec<&str> = row.split_whitespace().collect();
        let [iteration, status, metric] = words.as_slice() else { panic!("{row}") };
        self.add_row(
            researcher,
            &format!("{iteration}\t{metric}\t-\t-\t{status}\ta try\tscore.sh\t-"),
        );
        self
    }

    /// A line of the log as it is.
    pub(crate) fn line(mut self, line: &str) -> Self {
        self.log.push_str(line);
        self.log.push('\n');
        self
    }

    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        self.files.insert(name.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn without_table(mut self, researcher: &str) -> Self {
        self.tables.remove(&format!("researcher_{researcher}_results.tsv")).unwrap();
        self
    }

    /// Both outputs, whole.
    pub(crate) fn outputs(self) -> Self {
        let page = "# Words\n\nThe end of it.\n";
        self.file("synthesis.md", page).file("final_report.md", page)
    }

    /// Replaces a part of conference.md, which must be there.
    pub(crate) fn says(mut self, before: &str, after: &str) -> Self {
        assert!(self.document.contains(before), "conference.md has no {before}");
        self.document = self.document.replacen(before, after, 1);
        self
    }

    pub(crate) fn git(mut self, git: Git) -> Self {
        self.git = Some(git);
        self
    }

    pub(crate) fn alive(mut self, pid: u32) -> Self {
        self.alive.push(pid);
        self
    }

    pub(crate) fn later(mut self, hours: u64) -> Self {
        self.now = self.now.plus_ms(hours * 3_600_000);
        self
    }

    pub(crate) fn at(mut self, now: &str) -> Self {
        self.now = now.parse().unwrap();
        self
    }

    pub(crate) fn files(&self) -> Files {
        let named = [("conference.md", &self.document), ("conference_events.jsonl", &self.log)];
        let named = named.into_iter().map(|(name, text)| (name.to_owned(), text));
        let results = "conference_results.tsv".to_owned();
        let shared = format!("round\tresearcher\t{}{}", SHARED_COLUMNS, self.shared);
        let shared = [(results, shared)].into_iter().filter(|_| !self.shared.is_empty());
        let shared: BTreeMap<String, String> = shared.collect();
        let others = shared.iter().chain(&self.tables).chain(&self.files);
        let others = others.map(|(name, text)| (name.clone(), text));
        let mut files: Files =
            named.chain(others).map(|(name, text)| (name, text.as_bytes())).collect();
        files.git.clone_from(&self.git);
        files.alive = self.alive.iter().copied().collect();
        files
    }

    pub(crate) fn plan(&self) -> Seen {
        plan_of(&self.files(), self.now)
    }
}

/// Everything that the files tell, at one moment.
pub(crate) struct Seen {
    pub(crate) told: Box<dyn Told>,
    pub(crate) standing: Standing,
    pub(crate) recovery_point: RecoveryPoint,
    pub(crate) findings: Vec<Finding>,
    pub(crate) undo: Vec<Undo>,
    pub(crate) can_resume: bool,
    /// What a person must decide first.
    pub(crate) needs: Vec<String>,
}

impl Seen {
    /// What is undone apart from whole pages: rows and worktrees.
    pub(crate) fn reverts(&self) -> Vec<&Undo> {
        self.undo.iter().filter(|it| it.what != UndoWhat::Remove).collect()
    }

    /// What a resume writes first.
    pub(crate) fn resumed(&self) -> Vec<Change> {
        self.resumed_at("2026-05-05T20:00:00Z".parse().unwrap())
    }

    pub(crate) fn resumed_at(&self, at: Timestamp) -> Vec<Change> {
        let (point, undone) = (&self.recovery_point, &self.undo[..]);
        self.told.write(&Deed::Resumed { at, point, undone, alive: &[], died: &[], by: "" })
    }
}

pub(crate) fn told(files: &Files) -> Box<dyn Told> {
    let site = Site::at(CONFERENCE.card(), "conferences/latency");
    CONFERENCE.read(&site, files.clone()).unwrap()
}

pub(crate) fn plan_of(files: &Files, now: Timestamp) -> Seen {
    let told = told(files);
    let (standing, findings, undo) = (told.standing(now), told.findings(now), told.undo());
    let blocking = findings.iter().filter(|it| it.severity() == Severity::Blocking);
    let mut needs: Vec<String> = blocking.map(|it| it.message.clone()).collect();
    let can_resume = needs.is_empty() && standing.point.code != "complete";
    needs.extend(standing.asks.clone());
    let recovery_point = standing.point.clone();
    Seen { told, standing, recovery_point, findings, undo, can_resume, needs }
}

/// The files with these changes.
pub(crate) fn changed(files: &Files, changes: &[Change]) -> Files {
    let mut after = files.clone();
    for change in changes {
        let old = after.bytes(change.path()).unwrap_or_default();
        let bytes = match change {
            Change::Append { bytes, .. } => [old, bytes].concat(),
            Change::Replace { bytes, .. } => bytes.clone(),
        };
        after.insert(change.path(), File { bytes, modified: None });
    }
    after
}

/// The files with everything undone that a resume undoes first.
pub(crate) fn undone(files: &Files) -> Files {
    let mut after = files.clone();
    for Undo { path, what, .. } in told(files).undo() {
        match what {
            UndoWhat::Rows { after: bytes, .. } => {
                after.insert(path, File { bytes, modified: None });
            }
            UndoWhat::Remove => drop(after.remove(&path).unwrap()),
            UndoWhat::Worktree { .. } => {}
        }
    }
    after
}

/// `code phase/round [steps]`, on one line.
pub(crate) fn point(plan: &Seen) -> String {
    let point = &plan.recovery_point;
    let or_dash = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
    let phase = or_dash(point.phase.clone());
    let round = or_dash(point.round.map(|round| round.to_string()));
    format!("{} {phase}/{round} [{}]", point.code, point.steps.join(" "))
}

pub(crate) fn codes(plan: &Seen) -> Vec<&str> {
    plan.findings.iter().map(|finding| finding.code.as_str()).collect()
}

pub(crate) fn finding<'a>(plan: &'a Seen, code: &str) -> &'a Finding {
    let mut found = plan.findings.iter().filter(|finding| finding.code == code);
    let first = found.next().unwrap_or_else(|| panic!("no {code} among {:?}", codes(plan)));
    assert_eq!(found.count(), 0, "{code} is said once");
    first
}

pub(crate) fn verdict(plan: &Seen, row: &str) -> Verdict {
    Walk::of(&*plan.told).verdict(row)
}

/// The steps that would start next, as core finds them.
pub(crate) fn next(plan: &Seen) -> Vec<String> {
    Walk::of(&*plan.told).next()
}
