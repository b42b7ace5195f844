//! The files against the log, before anything goes on: findings with fixed codes.
//!
//! Invariant: reads only, says everything once, and leaves the recovery point alone. A warning
//! never blocks; what blocks is a conference.md that cannot be followed, a person's missing word,
//! a clock that cannot be right, or a loop that is still running.

use onward_core::{
    address::Address,
    finding::{Finding, Severity},
    time::Timestamp,
};

use super::{
    config::Mode,
    converge::{span, time_used},
    recovery::{Code as PointCode, Point},
    revert::{self, Inferred},
    rows::Comparison,
    state::{Conference, DOCUMENT, EVENTS, Page, Part, REPORT, RESULTS, SYNTHESIS},
    step,
    words::Spelling,
    worktree,
};

/// Every code that this dialect gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Spelling,
    BrokenLine,
    DocumentIncomplete,
    ConfirmationPending,
    StatusDisagrees,
    RowsExceedEvents,
    RowsMissing,
    ArtifactUnproved,
    MissingArtifact,
    WorktreeMissing,
    WorktreeDetached,
    WorktreeMidRebase,
    DirtyTree,
    BudgetElapsed,
    PrerequisiteMissing,
    StaleAge,
    ClockInFuture,
    StillRunning,
    ResumedRepeatedly,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Spelling => "spelling",
            Self::BrokenLine => "broken-line",
            Self::DocumentIncomplete => "conference-md-incomplete",
            Self::ConfirmationPending => "confirmation-pending",
            Self::StatusDisagrees => "status-disagrees",
            Self::RowsExceedEvents => "rows-exceed-events",
            Self::RowsMissing => "rows-missing",
            Self::ArtifactUnproved => "artifact-unproved",
            Self::MissingArtifact => "missing-artifact",
            Self::WorktreeMissing => "worktree-missing",
            Self::WorktreeDetached => "worktree-detached",
            Self::WorktreeMidRebase => "worktree-mid-rebase",
            Self::DirtyTree => "dirty-tree",
            Self::BudgetElapsed => "budget-elapsed",
            Self::PrerequisiteMissing => "prerequisite-missing",
            Self::StaleAge => "stale-age",
            Self::ClockInFuture => "clock-in-future",
            Self::StillRunning => "still-running",
            Self::ResumedRepeatedly => "resumed-repeatedly",
        }
    }

    const fn severity(self) -> Severity {
        match self {
            Self::Spelling | Self::PrerequisiteMissing => Severity::Info,
            Self::DocumentIncomplete
            | Self::ConfirmationPending
            | Self::ClockInFuture
            | Self::StillRunning => Severity::Blocking,
            Self::BrokenLine
            | Self::StatusDisagrees
            | Self::RowsExceedEvents
            | Self::RowsMissing
            | Self::ArtifactUnproved
            | Self::MissingArtifact
            | Self::WorktreeMissing
            | Self::WorktreeDetached
            | Self::WorktreeMidRebase
            | Self::DirtyTree
            | Self::BudgetElapsed
            | Self::StaleAge
            | Self::ResumedRepeatedly => Severity::Warning,
        }
    }

    pub(super) fn found(self, message: impl Into<String>) -> Finding {
        Finding {
            code: self.as_str().to_owned(),
            severity: self.severity(),
            message: message.into(),
            path: None,
            step: None,
            hint: None,
        }
    }
}

pub fn findings(conference: &Conference, point: &Point, age: Age) -> Vec<Finding> {
    let mut findings = broken_lines(conference);
    findings.extend(spellings(conference));
    // A conference that is over wants nothing from its files any more.
    if point.code == PointCode::Complete {
        return findings;
    }
    findings.extend(document(conference));
    findings.extend(iterations(conference, point));
    findings.extend(evaluator(conference, point));
    findings.extend(still_running(conference));
    findings.extend(log(conference));
    findings.extend(rows(conference, point));
    findings.extend(artifacts(conference, point));
    findings.extend(worktree::findings(conference, point));
    findings.extend(budget(conference));
    findings.extend(age.finding());
    findings
}

/// When the last event was, and when it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    pub last: Option<Timestamp>,
    pub now: Timestamp,
}

impl Age {
    /// Stricter than a native run: the system warns after a day.
    const STALE_MS: u64 = 24 * 3_600_000;

    pub fn ms(self) -> u64 {
        self.last.map_or(0, |last| self.now.ms_since(last))
    }

    fn finding(self) -> Option<Finding> {
        let last = self.last?;
        if last > self.now {
            let message = format!("the last event is in the future: {last}");
            let hint = "set the clock right, or the log was damaged";
            return Some(Code::ClockInFuture.found(message).at_path(EVENTS).with_hint(hint));
        }
        let hours = self.ms() / 3_600_000;
        let hint = "what it depends on may have changed meanwhile: look at the plan with care";
        let message = format!("it was interrupted {hours} hours ago");
        (self.ms() > Self::STALE_MS).then(|| Code::StaleAge.found(message).with_hint(hint))
    }
}

fn spellings(conference: &Conference) -> Option<Finding> {
    let met: Vec<&str> =
        conference.met.iter().map(|spelling: &Spelling| spelling.as_str()).collect();
    let message = format!("understood as written: {}", met.join("; "));
    (!met.is_empty()).then(|| Code::Spelling.found(message))
}

/// How many broken lines of one file are named one by one.
const BROKEN_LINES_MAX: usize = 20;

fn broken_lines(conference: &Conference) -> Vec<Finding> {
    let of_log = conference.log.broken.iter().map(|it| (EVENTS.to_owned(), it.line, it.why));
    let tables = conference.researchers.iter().filter_map(|(id, files)| {
        Some((Part::ResearcherResults(id.clone()).file_name(), files.table.as_ref()?))
    });
    let tables = tables.chain(conference.results.iter().map(|it| (RESULTS.to_owned(), it)));
    let of_tables = tables.flat_map(|(name, table)| {
        table.broken.iter().map(move |line| (name.clone(), *line, "the row is cut short"))
    });
    let all: Vec<(String, usize, &str)> = of_log.chain(of_tables).collect();
    let found = |(path, line, why): &(String, usize, &str)| {
        let finding = Code::BrokenLine.found(format!("line {line} cannot be read: {why}"));
        finding.at_path(path.as_str()).with_hint("the other lines are used")
    };
    let mut findings: Vec<Finding> = all.iter().take(BROKEN_LINES_MAX).map(found).collect();
    if let Some(more) = all.len().checked_sub(BROKEN_LINES_MAX).filter(|more| *more > 0) {
        findings.push(Code::BrokenLine.found(format!("{more} further lines cannot be read")));
    }
    findings
}

fn document(conference: &Conference) -> Vec<Finding> {
    let missing = |name: &str| {
        let finding = Code::DocumentIncomplete.found(format!("conference.md has no {name}"));
        finding.at_path(DOCUMENT).with_hint(format!("add the {name} to conference.md"))
    };
    let mut findings: Vec<Finding> =
        conference.settings.missing().into_iter().map(missing).collect();
    if conference.settings.unconfirmed {
        let message = "conference.md says that its final confirmation is pending";
        let hint = "read the Pre-Flight Gate, then write `confirmed` instead of `pending`";
        let finding = Code::ConfirmationPending.found(message);
        findings.push(finding.at_path(DOCUMENT).with_hint(hint));
    }
    findings
}

/// How long a round is must be known while there is one to come.
fn iterations(conference: &Conference, point: &Point) -> Option<Finding> {
    let round = point.round?;
    let is_last = conference.settings.max_rounds.is_some_and(|max| round >= max);
    let is_needed = !point.researchers.is_empty() || !is_last;
    if conference.settings.iterations.is_some() || !is_needed {
        return None;
    }
    let message = "conference.md has no iterations per round";
    let finding = Code::DocumentIncomplete.found(message).at_path(DOCUMENT);
    Some(match conference.iterations_in(round) {
        None => finding.with_hint("add the iterations per round to conference.md"),
        Some(count) => {
            let hint = format!("as in the rest of it, everybody has {count} in round {round}");
            Finding { severity: Severity::Warning, ..finding.with_hint(hint) }
        }
    })
}

/// Without a command that measures, a metric is what each researcher says it is.
fn evaluator(conference: &Conference, point: &Point) -> Option<Finding> {
    let settings = &conference.settings;
    let is_measured = settings.mode != Some(Mode::Metric) || settings.evaluator.is_some();
    if is_measured || point.round.is_none() {
        return None;
    }
    let message = "no evaluator: researchers report their metric themselves";
    let hint = "add `- **Evaluator:** COMMAND` under Success Metric to have it measured";
    Some(Code::PrerequisiteMissing.found(message).at_path(DOCUMENT).with_hint(hint))
}

fn still_running(conference: &Conference) -> Option<Finding> {
    let pid = conference.loop_pid.filter(|pid| conference.alive.contains(pid))?;
    let message = format!("the system's own loop is running as process {pid}");
    let hint = "stop it first; two drivers would write the same files";
    Some(Code::StillRunning.found(message).at_path(Part::LoopPid.file_name()).with_hint(hint))
}

fn log(conference: &Conference) -> Vec<Finding> {
    let history = &conference.history;
    let mut findings = Vec::new();
    if !history.started {
        let message = "the log has no conference.started";
        let hint = "the rest of it is believed all the same";
        findings.push(Code::StatusDisagrees.found(message).at_path(EVENTS).with_hint(hint));
    }
    for round in history.skipped_endings() {
        let message = format!("round {round} was never completed, but a later one has begun");
        let hint = "it is taken as over";
        let finding = Code::StatusDisagrees.found(message).at_path(EVENTS).with_hint(hint);
        findings.push(finding.at_step(&step::round(round)));
    }
    if history.resumes >= 3 {
        let message = format!("this conference was resumed {} times", history.resumes);
        let hint = "find out what stops it before going on";
        findings.push(Code::ResumedRepeatedly.found(message).at_path(EVENTS).with_hint(hint));
    }
    findings
}

fn rows(conference: &Conference, point: &Point) -> Vec<Finding> {
    let inferred = revert::inferred(conference, point);
    let logged = conference.history.rounds.values().flat_map(|round| round.trials.keys());
    let mut researchers: Vec<&String> = conference.researchers.keys().chain(logged).collect();
    researchers.sort_unstable();
    researchers.dedup();
    let of = |researcher: &String| rows_of(conference, researcher, &inferred);
    let own = researchers.into_iter().flat_map(of);
    own.chain(shared_rows(conference)).collect()
}

/// The results of all, which shipping needs.
fn shared_rows(conference: &Conference) -> Option<Finding> {
    let count = conference.history.iterations();
    if conference.results.is_some() || count == 0 {
        return None;
    }
    let message = format!("{RESULTS} is missing, and {count} iterations are logged");
    let hint = format!("a resume rebuilds it with {count} rows from the log and the other results");
    let finding = Code::RowsMissing.found(message).at_path(RESULTS).with_hint(hint);
    // The system itself takes the file as a convenience.
    Some(Finding { severity: Severity::Info, ..finding })
}

fn rows_of(conference: &Conference, researcher: &str, inferred: &[Inferred]) -> Vec<Finding> {
    let path = Part::ResearcherResults(researcher.to_owned()).file_name();
    let table = conference.researchers.get(researcher).and_then(|files| files.table.as_ref());
    let rounds = conference.history.rounds.iter();
    let logged =
        rounds.filter_map(|(number, round)| Some((*number, round.trials.get(researcher)?)));
    if table.is_none() {
        let count: usize = logged.map(|(_, trials)| trials.len()).sum();
        let message = format!("{path} is missing, and {count} iterations are logged");
        let hint = format!("a resume rebuilds it with {count} rows from the event log");
        let finding = Code::RowsMissing.found(message).at_path(path).with_hint(hint);
        return if count > 0 { vec![finding] } else { Vec::new() };
    }
    let segments = conference.segments(researcher);
    let mut numbers: Vec<u32> = segments.iter().map(|segment| segment.round).collect();
    numbers.extend(logged.map(|(number, _)| number));
    numbers.sort_unstable();
    numbers.dedup();
    let (mut unlogged, mut rowless, mut different) = (Vec::new(), Vec::new(), Vec::new());
    for number in numbers {
        let segment = segments.iter().find(|segment| segment.round == number);
        let rows = segment.map(|segment| segment.rows.as_slice()).unwrap_or_default();
        let round = conference.history.round(number);
        let trials = round.and_then(|round| round.trials.get(researcher));
        let comparison = Comparison::of(rows, trials);
        let in_words = |iterations: &[u32]| {
            let list: Vec<String> = iterations.iter().map(u32::to_string).collect();
            (!list.is_empty()).then(|| format!("round {number}: {}", list.join(", ")))
        };
        unlogged.extend(in_words(&comparison.unlogged));
        rowless.extend(in_words(&comparison.rowless));
        different.extend(in_words(&comparison.different));
    }
    // A baseline without an event is nothing to speak of.
    let stays = |it: &&Inferred| it.researcher == researcher && it.iteration > 0;
    let stays = inferred.iter().filter(stays).count();
    let hint = match stays {
        0 => "they may be from an earlier, interrupted run".to_owned(),
        _ => format!("{stays} of them end in a kept state and stay, with inferred events"),
    };
    let reported = |code: Code, what: &str, list: &[String], hint: &str| {
        let message = format!("{path} {what} ({})", list.join("; "));
        let finding = code.found(message).at_path(path.as_str()).with_hint(hint);
        (!list.is_empty()).then_some(finding)
    };
    let findings = [
        reported(Code::RowsExceedEvents, "has unlogged rows", &unlogged, &hint),
        reported(
            Code::RowsMissing,
            "lacks rows",
            &rowless,
            "the event log counts; the rows stay as they are",
        ),
        reported(Code::StatusDisagrees, "and the log disagree", &different, "the log is believed"),
    ];
    findings.into_iter().flatten().collect()
}

fn artifacts(conference: &Conference, point: &Point) -> Vec<Finding> {
    let history = &conference.history;
    let round = |number: u32| history.round(number);
    let is_over = |number: u32| {
        number <= history.last_completed() || history.skipped_endings().contains(&number)
    };
    let unproved = |path: String, step: &Address| {
        let finding = Code::ArtifactUnproved.found(format!("{path} is there, but not its event"));
        let hint = "it is looked at again; redone, the old file goes to the rescue first";
        finding.at_path(path).at_step(step).with_hint(hint)
    };
    let missing = |path: String, step: &Address| {
        let finding = Code::MissingArtifact.found(format!("{path} is logged, but not there"));
        finding.at_path(path).at_step(step).with_hint("it is made again")
    };
    let mut findings = Vec::new();
    for number in conference.posters.keys().copied().filter(|number| !is_over(*number)) {
        if !round(number).is_some_and(|round| round.poster || round.review) {
            let path = Part::Poster(number).file_name();
            findings.push(unproved(path, &step::in_round(number, "poster")));
        }
    }
    for number in conference.reviews.keys().copied().filter(|number| !is_over(*number)) {
        if !round(number).is_some_and(|round| round.review) {
            let path = Part::Review(number).file_name();
            findings.push(unproved(path, &step::in_round(number, "review")));
        }
    }
    if let Some(number) = point.round {
        let told = round(number);
        if point.code == PointCode::PeerReview
            && told.is_some_and(|round| round.poster)
            && !conference.posters.contains_key(&number)
        {
            let path = Part::Poster(number).file_name();
            findings.push(missing(path, &step::in_round(number, "poster")));
        }
        if point.code == PointCode::KnowledgeTransfer && !conference.reviews.contains_key(&number) {
            let path = Part::Review(number).file_name();
            findings.push(missing(path, &step::in_round(number, "review")));
        }
    }
    let outputs = [(SYNTHESIS, &conference.synthesis), (REPORT, &conference.report)];
    let there = |page: &Option<Page>| page.is_some() && point.code != PointCode::Close;
    let outputs = outputs.into_iter().filter(|(_, page)| there(page));
    findings.extend(outputs.map(|(name, _)| unproved(name.to_owned(), &step::synthesis())));
    findings
}

/// Said whatever else ends it: to go on with the research needs more than the other reason gone.
fn budget(conference: &Conference) -> Option<Finding> {
    let used = time_used(conference, conference.history.last_at?)?;
    let message = format!("the time budget is over: {used}");
    let hint = "what there is goes straight to the synthesis; to go on with the research, raise \
                `Time budget` in conference.md";
    Some(Code::BudgetElapsed.found(message).with_hint(hint))
}

/// The age in words, for the summary.
pub fn ago(age: Age) -> String {
    span(age.ms())
}
