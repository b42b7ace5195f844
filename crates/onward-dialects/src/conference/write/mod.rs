//! Writing what happened into the files, the way the system itself would have written it.
//!
//! Invariant: idempotent and additive. What is in the files already changes nothing; the log only
//! ever grows, by whole lines; every byte that a happening is not about stays as it was. A file
//! that ends in a torn line gets a line end first.

pub mod enter;
pub mod happening;
pub mod rebuild;
pub mod resumed;

use onward_core::{time::Timestamp, told::Change};
use serde_json::{Value, json};

use self::happening::{Happening, Iterated, Verdict, What};
use super::read::{
    Conference, EVENTS, REPORT, SYNTHESIS, export,
    history::{History, Round},
    import,
    log::{EventLog, Status, StuckLevel},
    rows::{CONFERENCE_COLUMNS, RESEARCHER_COLUMNS, Results, Row, numbered},
};
use crate::{
    Files,
    kit::{age::seconds, markdown::Document, number, tsv::cell, with_line},
    rules::conference::{knowledge, review},
};

/// What a happening has still to leave behind.
enum Leaves {
    /// The log has its event already, and with it all that it writes.
    Nothing,
    /// Files, which look themselves whether they have it.
    Files,
    /// Files, if any, and then this event.
    Event(&'static str, Vec<(&'static str, Value)>),
}

impl Leaves {
    fn unless(done: bool, name: &'static str, payload: Vec<(&'static str, Value)>) -> Self {
        if done { Self::Nothing } else { Self::Event(name, payload) }
    }
}

impl Conference {
    /// The conference after it happened.
    #[must_use]
    pub fn after(&self, happening: &Happening) -> Self {
        let leaves = self.leaves(happening);
        if matches!(leaves, Leaves::Nothing) {
            return self.clone();
        }
        let mut next = self.clone();
        match &happening.what {
            What::Iterated(iterated) => next.iterated(happening.at, iterated),
            What::Posted { round, page, .. } => {
                next.posters.insert(*round, page_of(page));
            }
            What::Reviewed { round, page } => {
                next.reviews.insert(*round, page_of(page));
            }
            What::Learned { round, findings } => {
                next.document = knowledge::learned(&self.document, *round, findings);
            }
            What::Judged { round, researcher, verdict } => {
                let judged = |table| knowledge::judged(table, *round, researcher, *verdict);
                next.results = self.results.as_ref().map(judged);
            }
            What::Noted { round, researcher, best, finding, status } => {
                let cells = [&round.to_string(), researcher, best, finding, status];
                next.document = knowledge::noted(&self.document, cells.map(String::as_str));
            }
            What::Synthesised { synthesis, report } => {
                next.synthesis = Some(page_of(synthesis));
                next.report = Some(page_of(report));
            }
            What::Started { .. }
            | What::Resumed { .. }
            | What::RoundStarted { .. }
            | What::Stuck { .. }
            | What::RoundCompleted { .. }
            | What::Converged { .. }
            | What::Stalled { .. }
            | What::Failed { .. }
            | What::Completed => {}
        }
        if let Leaves::Event(name, payload) = leaves {
            next.log(name, happening.at, &payload);
        }
        next.read_again()
    }

    fn leaves(&self, happening: &Happening) -> Leaves {
        let history = &self.history;
        let is = |round: &u32, what: fn(&Round) -> bool| history.round(*round).is_some_and(what);
        match &happening.what {
            What::Started { researchers, mode, goal, config } => {
                let payload = vec![
                    ("researchers", json!(researchers)),
                    ("mode", json!(mode)),
                    ("goal", json!(goal)),
                    ("config_summary", json!(config)),
                ];
                Leaves::unless(history.started, "conference.started", payload)
            }
            What::Resumed { recovery_point, round, reverted } => {
                let name = "conference.resumed";
                let payload = vec![
                    ("recovery_point", json!(recovery_point)),
                    ("round", json!(round)),
                    ("reverted_researchers", json!(reverted)),
                ];
                Leaves::unless(self.ends_with(name, happening.at), name, payload)
            }
            What::RoundStarted { round, researchers } => {
                let state = |it: &String| format!("{it}:ready");
                let states: Vec<String> = researchers.iter().map(state).collect();
                let payload = vec![("round", json!(round)), ("researcher_states", json!(states))];
                Leaves::unless(is(round, |it| it.started), "round.started", payload)
            }
            What::Iterated(it) => {
                let logged = history.is_logged(it.round, &it.researcher, it.iteration);
                Leaves::unless(logged, "researcher.iteration", self.iteration_payload(it))
            }
            What::Stuck { researcher, round, level } => {
                let known = history.round(*round).and_then(|it| it.stuck.get(researcher));
                let written = match level {
                    StuckLevel::TimedOut => json!("timeout"),
                    StuckLevel::Level(level) => json!(level),
                };
                let payload = vec![
                    ("researcher", json!(researcher)),
                    ("round", json!(round)),
                    ("stuck_level", written),
                ];
                Leaves::unless(
                    known.is_some_and(|known| known >= level),
                    "researcher.stuck",
                    payload,
                )
            }
            What::Posted { round, summary, .. } => {
                let payload = vec![("round", json!(round)), ("summary", json!(summary))];
                Leaves::unless(is(round, |it| it.poster), "round.poster_session", payload)
            }
            What::Reviewed { round, page } => {
                let payload = review_payload(*round, page);
                Leaves::unless(is(round, |it| it.review), "round.peer_review", payload)
            }
            What::Learned { .. } | What::Judged { .. } | What::Noted { .. } => Leaves::Files,
            What::RoundCompleted { round, best, researcher, converged } => {
                let payload = vec![
                    ("round", json!(round)),
                    ("best_metric", number_or_text(best)),
                    ("best_researcher", json!(researcher)),
                    ("converged", json!(converged)),
                ];
                Leaves::unless(is(round, |it| it.completed.is_some()), "round.completed", payload)
            }
            What::Converged { .. }
            | What::Stalled { .. }
            | What::Failed { .. }
            | What::Synthesised { .. }
            | What::Completed => self.leaves_last(&happening.what),
        }
    }

    /// The same for what ends a conference.
    fn leaves_last(&self, what: &What) -> Leaves {
        let history = &self.history;
        match what {
            What::Converged { best, rounds, reason } => {
                let payload = vec![
                    ("final_best_metric", number_or_text(best)),
                    ("round_count", json!(rounds)),
                    ("reason", json!(reason)),
                ];
                Leaves::unless(history.end.is_some(), "conference.converged", payload)
            }
            What::Stalled { round } => {
                let payload = vec![("round", json!(round))];
                Leaves::unless(history.end.is_some(), "conference.stalled", payload)
            }
            What::Failed { round } => {
                Leaves::unless(history.failed, "conference.failed", vec![("round", json!(round))])
            }
            What::Completed => {
                let payload = vec![
                    ("synthesis_path", json!(SYNTHESIS)),
                    ("final_report_path", json!(REPORT)),
                    ("total_iterations", json!(history.iterations())),
                ];
                Leaves::unless(history.completed, "conference.completed", payload)
            }
            // The closing event is what proves the synthesis.
            What::Synthesised { .. } if history.completed => Leaves::Nothing,
            What::Synthesised { .. }
            | What::Started { .. }
            | What::Resumed { .. }
            | What::RoundStarted { .. }
            | What::Iterated(_)
            | What::Stuck { .. }
            | What::Posted { .. }
            | What::Reviewed { .. }
            | What::Learned { .. }
            | What::Judged { .. }
            | What::Noted { .. }
            | What::RoundCompleted { .. } => Leaves::Files,
        }
    }

    /// What a reader of the files would now believe.
    fn read_again(&self) -> Self {
        import(&export(self)).expect("both marks are always exported")
    }

    /// The last event only: the log counts in seconds, and two resumes fit into one.
    fn ends_with(&self, name: &str, at: Timestamp) -> bool {
        let at = seconds(at).parse().ok();
        self.log.lines.last().is_some_and(|line| line.name == name && line.at == at)
    }

    fn log(&mut self, name: &str, at: Timestamp, payload: &[(&str, Value)]) {
        let line = log_line(name, &seconds(at), payload);
        self.log = EventLog::read(&with_line(self.log.bytes(), &line));
        self.history = History::of(&self.log);
    }

    /// The row, the entry in the researcher's log, the row in the shared results.
    fn iterated(&mut self, at: Timestamp, it: &Iterated) {
        let (delta, percent) = self.change_from_baseline(it);
        let cells = [
            it.iteration.to_string(),
            cell(&it.metric),
            delta,
            percent,
            it.status.as_str().to_owned(),
            cell(&it.description),
            cell(&it.evaluator),
            seconds(at),
        ];
        // The setup's own baseline row has no value yet.
        let is_measured =
            |row: &Row| row.trial.status != Status::Baseline || row.trial.metric.is_some();
        let rows = numbered(&self.rows_of(it.round, &it.researcher));
        let has_row = rows.iter().any(|(number, row)| *number == it.iteration && is_measured(row));
        let files = self.researchers.entry(it.researcher.clone()).or_default();
        if !has_row {
            let results = with_row(files.results.as_ref(), &RESEARCHER_COLUMNS, &cells);
            files.results = Some(results);
        }
        let entry = log_entry(files.log.as_ref(), it);
        files.log = Some(entry);
        let shared = self.results.iter().flat_map(|results| &results.rows);
        let is_shared = |row: &Row| {
            row.round == Some(it.round)
                && row.researcher.as_ref() == Some(&it.researcher)
                && row.trial.iteration == Some(it.iteration)
        };
        if !shared.into_iter().any(is_shared) {
            let cells = shared_cells(it.round, &it.researcher, cells, "-");
            self.results = Some(with_row(self.results.as_ref(), &CONFERENCE_COLUMNS, &cells));
        }
    }

    fn iteration_payload(&self, it: &Iterated) -> Vec<(&'static str, Value)> {
        let (delta, _) = self.change_from_baseline(it);
        vec![
            ("researcher", json!(it.researcher)),
            ("round", json!(it.round)),
            ("iteration", json!(it.iteration)),
            ("metric_value", number_or_text(&it.metric)),
            ("delta", if delta == "-" { json!("-") } else { number_or_text(&delta) }),
            ("status", json!(it.status.as_str())),
        ]
    }

    /// Signed, with as many decimals as the metric has; `-` for the baseline itself.
    fn change_from_baseline(&self, it: &Iterated) -> (String, String) {
        let none = || ("-".to_owned(), "-".to_owned());
        let round = self.history.round(it.round);
        let first = round.and_then(|round| round.trials_of(&it.researcher).next());
        let baseline = first.and_then(|(_, trial)| trial.metric);
        let metric = number::number(&it.metric);
        let known = baseline.zip(metric).filter(|_| it.status != Status::Baseline);
        let Some((baseline, metric)) = known else { return none() };
        let decimals = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
        let places = decimals(&it.metric).max(decimals(&baseline.to_string())).clamp(1, 9);
        let delta = metric - baseline;
        (format!("{delta:+.places$}"), percent(baseline, metric))
    }
}

/// The files that differ from `before`, the log last: what it says is then true of the others.
pub fn changes(before: &Files, after: &Conference) -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, file) in export(after).iter() {
        let old = before.bytes(path).unwrap_or_default();
        let (path, bytes) = (path.to_owned(), file.bytes.clone());
        match bytes.strip_prefix(old).filter(|_| path == EVENTS) {
            _ if bytes == old && before.contains(&path) => {}
            Some(new) => changes.push(Change::Append { bytes: new.to_vec(), path }),
            None => changes.push(Change::Replace { path, bytes }),
        }
    }
    changes.sort_by_key(|change| change.path() == EVENTS);
    changes
}

/// A line of the log, in the order and spelling of the reference.
fn log_line(name: &str, at: &str, payload: &[(&str, Value)]) -> String {
    let fields = payload.iter().map(|(key, value)| format!("{}:{value}", json!(key)));
    let payload = fields.collect::<Vec<_>>().join(",");
    let (name, at) = (json!(name), json!(at));
    format!("{{\"event\":{name},\"timestamp\":{at},\"payload\":{{{payload}}}}}")
}

fn review_payload(round: u32, page: &str) -> Vec<(&'static str, Value)> {
    let judgements = review::judgements(&page_of(page));
    let count = |verdict| judgements.iter().filter(|it| it.verdict == verdict).count();
    vec![
        ("round", json!(round)),
        ("validated_count", json!(count(Verdict::Validated))),
        ("challenged_count", json!(count(Verdict::Challenged))),
        ("overturned_count", json!(count(Verdict::Overturned))),
    ]
}

fn page_of(text: &str) -> Document {
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    Document::read(format!("{text}{end}").as_bytes())
}

/// A number where it is one, else the text.
fn number_or_text(text: &str) -> Value {
    number::number(text).map_or_else(|| json!(text), |number| json!(number))
}

/// The change from a baseline, signed; `-` where there is no share of it.
pub fn percent(baseline: f64, metric: f64) -> String {
    match baseline {
        0.0 => "-".to_owned(),
        _ => format!("{:+.1}%", 100.0 * (metric - baseline) / baseline.abs()),
    }
}

/// A researcher's row as the shared results have it.
fn shared_cells(round: u32, researcher: &str, cells: [String; 8], verdict: &str) -> [String; 11] {
    let [iteration, metric, delta, percent, status, description, evaluator, at] = cells;
    let (round, who, verdict) = (round.to_string(), cell(researcher), verdict.to_owned());
    [round, who, iteration, metric, delta, percent, status, description, evaluator, verdict, at]
}

fn with_row(results: Option<&Results>, columns: &[&str], cells: &[String]) -> Results {
    let header = || format!("{}\n", columns.join("\t")).into_bytes();
    let bytes = results.map(Results::bytes).filter(|bytes| !bytes.is_empty());
    let bytes = bytes.map_or_else(header, <[u8]>::to_vec);
    Results::read(&with_line(&bytes, &cells.join("\t")))
}

/// The researcher's own log with an entry for the iteration, under the heading of its round.
fn log_entry(log: Option<&Document>, it: &Iterated) -> Document {
    let title = || format!("# Researcher {} Log\n", it.researcher).into_bytes();
    let mut bytes = log.map_or_else(title, |page| page.bytes().to_vec());
    let round = format!("## Round {}", it.round);
    let entry = format!("### Iteration {}:", it.iteration);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_round = |line: &str| {
        let rest = line.strip_prefix(&round);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let has_round = text.lines().any(is_round);
    let entries = text.lines().skip_while(|line| !is_round(line)).skip(1);
    let mut entries = entries.take_while(|line| !line.starts_with("## "));
    let has_entry = entries.any(|line| line.starts_with(&entry));
    if has_entry {
        return Document::read(&bytes);
    }
    if !has_round {
        bytes = with_line(&bytes, &format!("\n{round}"));
    }
    let Iterated { description, hypothesis, metric, analysis, .. } = it;
    let status = it.status.as_str().to_uppercase();
    let entry = format!(
        "\n{entry} {description}\n- **Hypothesis:** {hypothesis}\n- **Result:** {metric}\n\
         - **Status:** {status}\n- **Analysis:** {analysis}"
    );
    Document::read(&with_line(&bytes, &entry))
}
