//! Writing a deed into the files, the way the system itself would have written it.
//!
//! Invariant: idempotent and additive. A deed that is in the files already changes nothing; the log
//! only ever grows, by whole lines; every byte that a deed is not about stays as it was. A file
//! that ends in a torn line gets a line end first.

use onward_core::time::Timestamp;
use serde_json::{Value, json};

use super::{
    deed::{Deed, Iterated, Verdict, What},
    event_log::{EventLog, Status, StuckLevel},
    history::{History, Round},
    knowledge, review,
    state::{Conference, EVENTS, Page, REPORT, SYNTHESIS, export, import},
    tsv::{CONFERENCE_COLUMNS, RESEARCHER_COLUMNS, Row, Table},
    words,
};
use crate::{File, Files};

/// What a deed has still to leave behind.
enum Leaves {
    /// The log has its event already, and with it all that the deed writes.
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
    /// The conference after the deed.
    #[must_use]
    pub fn after(&self, deed: &Deed) -> Self {
        let leaves = self.leaves(deed);
        if matches!(leaves, Leaves::Nothing) {
            return self.clone();
        }
        let mut next = self.clone();
        match &deed.what {
            What::Iterated(iterated) => next.iterated(deed.at, iterated),
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
            next.log(name, deed.at, &payload);
        }
        next.read_again()
    }

    fn leaves(&self, deed: &Deed) -> Leaves {
        let history = &self.history;
        let is = |round: &u32, what: fn(&Round) -> bool| history.round(*round).is_some_and(what);
        match &deed.what {
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
                Leaves::unless(self.ends_with(name, deed.at), name, payload)
            }
            What::RoundStarted { round, researchers } => {
                let state = |it: &String| format!("{it}:ready");
                let states: Vec<String> = researchers.iter().map(state).collect();
                let payload = vec![("round", json!(round)), ("researcher_states", json!(states))];
                Leaves::unless(is(round, |it| it.started), "round.started", payload)
            }
            What::Iterated(it) => {
                let trials =
                    history.round(it.round).and_then(|round| round.trials.get(&it.researcher));
                let logged = trials.is_some_and(|trials| trials.contains_key(&it.iteration));
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
                    ("best_metric", number(best)),
                    ("best_researcher", json!(researcher)),
                    ("converged", json!(converged)),
                ];
                Leaves::unless(is(round, |it| it.completed.is_some()), "round.completed", payload)
            }
            What::Converged { .. }
            | What::Stalled { .. }
            | What::Failed { .. }
            | What::Synthesised { .. }
            | What::Completed => self.leaves_last(&deed.what),
        }
    }

    /// The same for what ends a conference.
    fn leaves_last(&self, what: &What) -> Leaves {
        let history = &self.history;
        match what {
            What::Converged { best, rounds, reason } => {
                let payload = vec![
                    ("final_best_metric", number(best)),
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
        self.log.entries.last().is_some_and(|entry| entry.name == name && entry.at == at)
    }

    fn log(&mut self, name: &str, at: Timestamp, payload: &[(&str, Value)]) {
        let fields: Vec<String> =
            payload.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        let payload = fields.join(",");
        let (name, at) = (json!(name), json!(seconds(at)));
        let line = format!("{{\"event\":{name},\"timestamp\":{at},\"payload\":{{{payload}}}}}");
        self.log = EventLog::read(&with_line(self.log.bytes(), &line));
        self.history = History::of(&self.log);
    }

    /// The row, the entry in the researcher's log, the row in the shared results.
    fn iterated(&mut self, at: Timestamp, it: &Iterated) {
        let (delta, percent) = self.change_from_baseline(it);
        let one_line = |text: &str| text.replace(['\t', '\n', '\r'], " ");
        let cells = [
            it.iteration.to_string(),
            one_line(&it.metric),
            delta,
            percent,
            it.status.as_str().to_owned(),
            one_line(&it.description),
            one_line(&it.evaluator),
            seconds(at),
        ];
        let segments = self.segments(&it.researcher);
        let segment = segments.iter().find(|segment| segment.round == it.round);
        // The setup's own baseline row has no value yet.
        let is_measured =
            |row: &Row| row.trial.status != Status::Baseline || row.trial.metric.is_some();
        let is_this = |row: &&Row| row.trial.iteration == Some(it.iteration) && is_measured(row);
        let has_row = segment.is_some_and(|segment| segment.rows.iter().any(is_this));
        let files = self.researchers.entry(it.researcher.clone()).or_default();
        if !has_row {
            let table = files.table.as_ref().map(Table::bytes);
            let rows = with_row(table, &RESEARCHER_COLUMNS, &cells);
            files.table = Some(Table::read(&rows));
        }
        let entry = log_entry(files.log.as_ref(), it);
        files.log = Some(entry);
        let shared = self.results.iter().flat_map(|table| &table.rows);
        let is_shared = |row: &Row| {
            row.round == Some(it.round)
                && row.researcher.as_ref() == Some(&it.researcher)
                && row.trial.iteration == Some(it.iteration)
        };
        if !shared.into_iter().any(is_shared) {
            let [iteration, metric, delta, percent, status, description, evaluator, at] = cells;
            let (round, researcher) = (it.round.to_string(), one_line(&it.researcher));
            let verdict = "-".to_owned();
            let cells = [
                round,
                researcher,
                iteration,
                metric,
                delta,
                percent,
                status,
                description,
                evaluator,
                verdict,
                at,
            ];
            let table = self.results.as_ref().map(Table::bytes);
            self.results = Some(Table::read(&with_row(table, &CONFERENCE_COLUMNS, &cells)));
        }
    }

    fn iteration_payload(&self, it: &Iterated) -> Vec<(&'static str, Value)> {
        let (delta, _) = self.change_from_baseline(it);
        vec![
            ("researcher", json!(it.researcher)),
            ("round", json!(it.round)),
            ("iteration", json!(it.iteration)),
            ("metric_value", number(&it.metric)),
            ("delta", if delta == "-" { json!("-") } else { number(&delta) }),
            ("status", json!(it.status.as_str())),
        ]
    }

    /// Signed, with as many decimals as the metric has; `-` for the baseline itself.
    fn change_from_baseline(&self, it: &Iterated) -> (String, String) {
        let none = || ("-".to_owned(), "-".to_owned());
        let round = self.history.round(it.round);
        let first = round.and_then(|round| round.trials_of(&it.researcher).next());
        let baseline = first.and_then(|(_, trial)| trial.metric);
        let metric = words::number(&it.metric);
        let known = baseline.zip(metric).filter(|_| it.status != Status::Baseline);
        let Some((baseline, metric)) = known else { return none() };
        let decimals = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
        let places = decimals(&it.metric).max(decimals(&baseline.to_string())).clamp(1, 9);
        let delta = metric - baseline;
        (format!("{delta:+.places$}"), percent(baseline, metric))
    }
}

/// The files that differ from `before`, the log last: what it says is then true of the others.
pub fn changes(before: &Files, after: &Conference) -> Vec<(String, Vec<u8>)> {
    let is_new = |(path, file): &(&str, &File)| before.bytes(path) != Some(file.bytes.as_slice());
    let exported = export(after);
    let changed = exported.iter().filter(is_new);
    let mut changed: Vec<(String, Vec<u8>)> =
        changed.map(|(path, file)| (path.to_owned(), file.bytes.clone())).collect();
    changed.sort_by_key(|(path, _)| path == EVENTS);
    changed
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

fn page_of(text: &str) -> Page {
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    Page { bytes: format!("{text}{end}").into_bytes() }
}

/// A number where it is one, else the text.
fn number(text: &str) -> Value {
    words::number(text).map_or_else(|| json!(text), |number| json!(number))
}

/// The change from a baseline, signed; `-` where there is no share of it.
pub fn percent(baseline: f64, metric: f64) -> String {
    match baseline {
        0.0 => "-".to_owned(),
        _ => format!("{:+.1}%", 100.0 * (metric - baseline) / baseline.abs()),
    }
}

/// To the second, as the system writes times.
pub fn seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or_else(|| text.clone(), |(whole, _)| format!("{whole}Z"))
}

/// With one line more, which ends as the lines of the file do.
fn with_line(bytes: &[u8], line: &str) -> Vec<u8> {
    let first = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let end = if first.ends_with(b"\r\n") { "\r\n" } else { "\n" };
    let mut all = bytes.to_vec();
    if all.last().is_some_and(|byte| *byte != b'\n') {
        all.extend_from_slice(end.as_bytes());
    }
    all.extend_from_slice(line.replace('\n', end).as_bytes());
    all.extend_from_slice(end.as_bytes());
    all
}

fn with_row(table: Option<&[u8]>, columns: &[&str], cells: &[String]) -> Vec<u8> {
    let header = || format!("{}\n", columns.join("\t")).into_bytes();
    let table = table.filter(|bytes| !bytes.is_empty()).map_or_else(header, <[u8]>::to_vec);
    with_line(&table, &cells.join("\t"))
}

/// The researcher's own log with an entry for the iteration, under the heading of its round.
fn log_entry(log: Option<&Page>, it: &Iterated) -> Page {
    let title = || format!("# Researcher {} Log\n", it.researcher).into_bytes();
    let mut bytes = log.map_or_else(title, |page| page.bytes.clone());
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
        return Page { bytes };
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
    Page { bytes: with_line(&bytes, &entry) }
}
