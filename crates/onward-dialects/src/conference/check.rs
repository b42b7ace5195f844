//! The files against the log, before anything goes on: findings with fixed codes.
//!
//! Invariant: reads only, says everything once, and leaves the recovery point alone. A warning
//! never blocks; what blocks is a conference.md that cannot be followed, a person's missing word,
//! a clock that cannot be right, or a loop that is still running.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    finding::{Code, DialectCode, Finding, Severity},
    plural::{self, count},
    time::Timestamp,
};

use super::{
    Conference, Point, PointCode,
    read::{
        DOCUMENT, EVENTS, LOOP_PID, Part, RESULTS, history::Round, rows::Comparison, settings::Mode,
    },
    step,
};
use crate::{
    Git, Worktree,
    kit::trees::{Tree, tree_of},
    rules::conference::converge::time_used,
};

onward_core::listed! {
    /// Findings that only this system has, and those that weigh less here than elsewhere.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Own {
        Spelling,
        DocumentIncomplete,
        /// How long a round is follows from the rest of the file.
        LengthAssumed,
        ConfirmationPending,
        /// The system itself takes the shared results as a convenience.
        SharedRowsMissing,
        /// Researchers can report their metric themselves.
        NoEvaluator,
        /// A researcher's tree holds nothing that its branch and the rescue do not.
        TreeDetached,
        TreeMidRebase,
    }
}

impl Own {
    pub const fn row(self) -> DialectCode {
        let (word, severity) = match self {
            Self::Spelling => ("spelling", Severity::Info),
            Self::DocumentIncomplete => ("conference-md-incomplete", Severity::Blocking),
            Self::LengthAssumed => ("conference-md-incomplete", Severity::Warning),
            Self::ConfirmationPending => ("confirmation-pending", Severity::Blocking),
            Self::SharedRowsMissing => (Code::RowsMissing.as_str(), Severity::Info),
            Self::NoEvaluator => (Code::PrerequisiteMissing.as_str(), Severity::Info),
            Self::TreeDetached => (Code::WorktreeDetached.as_str(), Severity::Warning),
            Self::TreeMidRebase => (Code::WorktreeMidRebase.as_str(), Severity::Warning),
        };
        DialectCode { word, severity }
    }

    fn found(self, message: impl Into<String>) -> Finding {
        Finding::of_dialect(self.row(), message)
    }
}

fn found(code: Code, path: &str, message: impl Into<String>, hint: &str) -> Finding {
    Finding::new(code, message).at_path(path).with_hint(hint)
}

/// `last` is when something was last heard of the conference.
pub fn findings(
    conference: &Conference,
    point: &Point,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Vec<Finding> {
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
    findings.extend(rows(conference));
    findings.extend(artifacts(conference, point));
    findings.extend(worktrees(conference, point));
    findings.extend(budget(conference));
    findings.extend(age(last, now));
    findings
}

/// The system warns after a day.
const STALE_MS: u64 = 24 * 3_600_000;

fn age(last: Option<Timestamp>, now: Timestamp) -> Option<Finding> {
    let last = last?;
    if last > now {
        let message = format!("the last event is in the future: {last}");
        let hint = "set the clock right, or the log was damaged";
        return Some(found(Code::ClockInFuture, EVENTS, message, hint));
    }
    let age_ms = now.ms_since(last);
    let hint = "what it depends on may have changed meanwhile: look at the plan with care";
    let hours = usize::try_from(age_ms / 3_600_000).unwrap_or(usize::MAX);
    let age = if hours < 48 { count(hours, "hour") } else { count(hours / 24, "day") };
    let message = format!("it was interrupted {age} ago");
    let finding = || Finding::new(Code::StaleAge, message).with_hint(hint);
    (age_ms > STALE_MS).then(finding)
}

fn spellings(conference: &Conference) -> Option<Finding> {
    let met: Vec<&str> = conference.met.iter().map(|spelling| spelling.as_str()).collect();
    let message = format!("understood as written: {}", met.join("; "));
    (!met.is_empty()).then(|| Own::Spelling.found(message))
}

/// How many broken lines are named one by one.
const BROKEN_LINES_MAX: usize = 20;

fn broken_lines(conference: &Conference) -> Vec<Finding> {
    let named = conference.broken().take(BROKEN_LINES_MAX).map(|(path, broken)| {
        let message = format!("line {} cannot be read: {}", broken.line, broken.why);
        found(Code::BrokenLine, &path, message, "the other lines are used")
    });
    let more = conference.broken().skip(BROKEN_LINES_MAX).count();
    let rest = format!("{more} further lines cannot be read");
    let rest = (more > 0).then(|| Finding::new(Code::BrokenLine, rest));
    named.chain(rest).collect()
}

fn document(conference: &Conference) -> Vec<Finding> {
    let missing = |name: &str| {
        let finding = Own::DocumentIncomplete.found(format!("conference.md has no {name}"));
        finding.at_path(DOCUMENT).with_hint(format!("add the {name} to conference.md"))
    };
    let mut findings: Vec<Finding> =
        conference.settings.missing().into_iter().map(missing).collect();
    if conference.settings.unconfirmed {
        let message = "conference.md says that its final confirmation is pending";
        let hint = "read the Pre-Flight Gate, then write `confirmed` instead of `pending`";
        let finding = Own::ConfirmationPending.found(message);
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
    let (own, hint) = match conference.iterations_in(round) {
        None => (Own::DocumentIncomplete, "add the iterations per round to it".to_owned()),
        Some(count) => {
            let hint = format!("as in the rest of it, everybody has {count} in round {round}");
            (Own::LengthAssumed, hint)
        }
    };
    Some(own.found(message).at_path(DOCUMENT).with_hint(hint))
}

/// Without a command that measures, a metric is what each researcher says it is.
fn evaluator(conference: &Conference, point: &Point) -> Option<Finding> {
    let settings = &conference.settings;
    let is_measured = settings.mode != Some(Mode::Metric) || settings.evaluator.is_some();
    point.round.filter(|_| !is_measured)?;
    let message = "no evaluator: researchers report their metric themselves";
    let hint = "add `- **Evaluator:** COMMAND` under Success Metric to have it measured";
    Some(Own::NoEvaluator.found(message).at_path(DOCUMENT).with_hint(hint))
}

fn still_running(conference: &Conference) -> Option<Finding> {
    let pid = conference.loop_pid.filter(|pid| conference.alive.contains(pid))?;
    let message = format!("the system's own loop is running as process {pid}");
    let hint = "stop it first; two drivers would write the same files";
    Some(found(Code::StillRunning, LOOP_PID, message, hint))
}

fn log(conference: &Conference) -> Vec<Finding> {
    let history = &conference.history;
    let mut findings = Vec::new();
    if !history.started {
        let (message, hint) = ("the log has no conference.started", "the rest of it is believed");
        findings.push(found(Code::StatusDisagrees, EVENTS, message, hint));
    }
    for round in history.skipped_endings() {
        let message = format!("round {round} was never completed, but a later one has begun");
        let finding = found(Code::StatusDisagrees, EVENTS, message, "it is taken as over");
        findings.push(finding.at_step(&step::round(round)));
    }
    if history.resumes >= 3 {
        let message = format!("this conference was resumed {} times", history.resumes);
        let hint = "find out what stops it before you continue";
        findings.push(found(Code::ResumedRepeatedly, EVENTS, message, hint));
    }
    findings
}

fn rows(conference: &Conference) -> Vec<Finding> {
    let logged = conference.history.rounds.values().flat_map(|round| round.trials.keys());
    let researchers: BTreeSet<&String> = conference.researchers.keys().chain(logged).collect();
    let own = researchers.into_iter().flat_map(|it| rows_of(conference, it));
    own.chain(shared_rows(conference)).collect()
}

/// The results of all, which shipping needs.
fn shared_rows(conference: &Conference) -> Option<Finding> {
    let count = conference.history.iterations();
    let is_lost = conference.results.is_none() && count > 0;
    let message = format!("{RESULTS} is missing, and {} logged", iterations_are(count));
    let rows = plural::count(count, "row");
    let hint = format!("a resume rebuilds it with {rows} from the log and the other results");
    is_lost.then(|| Own::SharedRowsMissing.found(message).at_path(RESULTS).with_hint(hint))
}

/// `1 iteration is`, `2 iterations are`.
fn iterations_are(count: usize) -> String {
    format!("{} {}", plural::count(count, "iteration"), if count == 1 { "is" } else { "are" })
}

fn rows_of(conference: &Conference, researcher: &str) -> Vec<Finding> {
    let path = Part::ResearcherResults(researcher.to_owned()).file_name();
    let rounds = conference.history.rounds.iter();
    let trials = rounds.filter_map(|(number, it)| Some((*number, it.trials.get(researcher)?)));
    if conference.results_of(researcher).is_none() {
        let count: usize = trials.map(|(_, trials)| trials.len()).sum();
        let message = format!("{path} is missing, and {} logged", iterations_are(count));
        let rows = plural::count(count, "row");
        let hint = format!("a resume rebuilds it with {rows} from the event log");
        let finding = (count > 0).then(|| found(Code::RowsMissing, &path, message, &hint));
        return finding.into_iter().collect();
    }
    // A baseline without an event is nothing to speak of.
    let inferred = trials.clone().flat_map(|(_, trials)| trials);
    let stays = inferred.filter(|(number, it)| **number > 0 && it.is_inferred).count();
    let rows = conference.rows_by_round(researcher);
    let rounds = rows.keys().copied();
    let numbers: BTreeSet<u32> = trials.map(|(number, _)| number).chain(rounds).collect();
    let (mut unlogged, mut rowless, mut different) = (Vec::new(), Vec::new(), Vec::new());
    for number in numbers {
        let trials = conference.history.round(number).and_then(|it| it.trials.get(researcher));
        let rows = rows.get(&number).map(Vec::as_slice).unwrap_or_default();
        let found = Comparison::of(rows, trials);
        let in_words = |iterations: &[u32]| {
            let list: Vec<String> = iterations.iter().map(u32::to_string).collect();
            (!list.is_empty()).then(|| format!("round {number}: {}", list.join(", ")))
        };
        unlogged.extend(in_words(&found.unlogged));
        rowless.extend(in_words(&found.rowless));
        different.extend(in_words(&found.different));
    }
    let hint = match stays {
        0 => "they may be from an earlier, interrupted run".to_owned(),
        _ => format!("{stays} of them end in a kept state and stay, with inferred events"),
    };
    let reported = |code: Code, what: &str, list: &[String], hint: &str| {
        let message = format!("{path} {what} ({})", list.join("; "));
        (!list.is_empty()).then(|| found(code, &path, message, hint))
    };
    let counts = "the event log counts; the rows stay as they are";
    let findings = [
        reported(Code::RowsExceedEvents, "has unlogged rows", &unlogged, &hint),
        reported(Code::RowsMissing, "lacks rows", &rowless, counts),
        reported(Code::StatusDisagrees, "and the log disagree", &different, "the log is believed"),
    ];
    findings.into_iter().flatten().collect()
}

/// Pages that no event vouches for, each with its step. The end of a round vouches for its poster
/// and its review, a review for the poster before it; outputs count when only the end is missing.
pub(super) fn unproved_pages(conference: &Conference, point: &Point) -> Vec<(String, Address)> {
    let Conference { history, posters, reviews, synthesis, report, .. } = conference;
    let last = history.rounds.keys().next_back().copied().unwrap_or(0);
    let is_unproved = |number: u32, is_told: fn(&Round) -> bool| {
        let is_over = number <= history.last_completed() || number < last;
        !is_over && !history.round(number).is_some_and(is_told)
    };
    let posters = posters.keys().copied();
    let posters = posters.filter(|it| is_unproved(*it, |round| round.poster || round.review));
    let posters = posters.map(|it| (Part::Poster(it), step::in_round(it, "poster")));
    let reviews = reviews.keys().copied();
    let reviews = reviews.filter(|it| is_unproved(*it, |round| round.review));
    let reviews = reviews.map(|it| (Part::Review(it), step::in_round(it, "review")));
    let synthesis = synthesis.iter().map(|_| (Part::Synthesis, step::synthesis()));
    let report = report.iter().map(|_| (Part::Report, step::synthesis()));
    let outputs = synthesis.chain(report).filter(|_| point.code != PointCode::Close);
    let all = posters.chain(reviews).chain(outputs);
    all.map(|(part, step)| (part.file_name(), step)).collect()
}

fn artifacts(conference: &Conference, point: &Point) -> Vec<Finding> {
    let unproved = unproved_pages(conference, point).into_iter().map(|(path, step)| {
        let message = format!("{path} is there, but not its event");
        let hint = "it is looked at again; redone, the old file goes to the rescue first";
        found(Code::ArtifactUnproved, &path, message, hint).at_step(&step)
    });
    unproved.chain(lost_page(conference, point)).collect()
}

/// The page that is logged, is needed next, and is gone.
fn lost_page(conference: &Conference, point: &Point) -> Option<Finding> {
    let number = point.round?;
    let is_posted = conference.history.round(number).is_some_and(|round| round.poster);
    let needs_poster = point.code == PointCode::PeerReview && is_posted;
    let needs_review = point.code == PointCode::KnowledgeTransfer;
    let (part, id) = if needs_poster && !conference.posters.contains_key(&number) {
        (Part::Poster(number).file_name(), "poster")
    } else if needs_review && !conference.reviews.contains_key(&number) {
        (Part::Review(number).file_name(), "review")
    } else {
        return None;
    };
    let message = format!("{part} is logged, but not there");
    let finding = found(Code::MissingArtifact, &part, message, "it is made again");
    Some(finding.at_step(&step::in_round(number, id)))
}

/// Said whatever else ends it: to continue the research needs more than the other reason gone.
fn budget(conference: &Conference) -> Option<Finding> {
    let used = time_used(conference, conference.history.last_at?)?;
    let message = format!("the time budget is over: {used}");
    let hint = "what there is goes straight to the synthesis; to continue the research, raise \
                `Time budget` in conference.md";
    Some(Finding::new(Code::BudgetElapsed, message).with_hint(hint))
}

/// Where validated work is gathered. Nothing touches it before the review of its round.
pub const BEST: &str = "conference/best";

pub fn branch_of(researcher: &str) -> String {
    format!("conference/researcher-{researcher}")
}

/// The trees in which researchers change code: are they there, and are they clean?
fn worktrees(conference: &Conference, point: &Point) -> Vec<Finding> {
    if !conference.has_worktrees() {
        return Vec::new();
    }
    let last = conference.history.rounds.keys().next_back().copied().unwrap_or(1);
    let researchers = conference.researchers_of(point.round.unwrap_or(last));
    let Some(git) = &conference.git else {
        let message = "researchers change code here, but this is not a git repository";
        return vec![no_tree(message, "run it where its branches are")];
    };
    if !git.branches.keys().any(|name| name.starts_with("conference/")) {
        let message = "none of the branches conference/… exists";
        return vec![no_tree(message, "they are made again from the current branch")];
    }
    let hint = match point.round {
        Some(_) => "they are saved to the rescue before the tree goes back to its branch",
        None => "they are left as they are: no round comes that would need the tree",
    };
    let mut findings: Vec<Finding> =
        researchers.iter().flat_map(|it| tree(git, it, hint)).collect();
    if !git.branches.contains_key(BEST) {
        let message = format!("the branch {BEST} does not exist");
        findings.push(no_tree(&message, "it is made again from the current branch"));
    }
    findings
}

fn no_tree(message: &str, hint: &str) -> Finding {
    found(Code::WorktreeMissing, DOCUMENT, message, hint)
}

/// What is wrong with one researcher's branch and tree.
fn tree(git: &Git, researcher: &str, if_dirty: &str) -> Vec<Finding> {
    let branch = branch_of(researcher);
    let about = |tree: &Worktree, what: &str| format!("the worktree {} {what}", tree.path);
    let (tree, finding) = match tree_of(git, &branch) {
        Tree::NoBranch => {
            let message = format!("the branch {branch} does not exist");
            return vec![no_tree(&message, &format!("it is made again from {BEST}"))];
        }
        Tree::NoTree => {
            let message = format!("no worktree has the branch {branch}");
            return vec![no_tree(&message, "it is made again")];
        }
        Tree::Detached(tree) => {
            let hint = format!("see what it holds, then `git switch {branch}` in it");
            let message = about(tree, "is not on its branch any more");
            (tree, Some(Own::TreeDetached.found(message).with_hint(hint)))
        }
        Tree::Gone(tree) => {
            let hint = format!("it is made again from {branch}");
            (tree, Some(no_tree(&about(tree, "is registered, but gone"), &hint)))
        }
        Tree::There(tree) => (tree, None),
    };
    let unfinished = tree.unfinished.iter().map(|what| {
        let message = about(tree, &format!("was left in the middle of a {what}"));
        Own::TreeMidRebase.found(message).with_hint("finish or abort it")
    });
    let count = tree.changes.len();
    let message = about(tree, &format!("has {count} uncommitted changes"));
    let dirty = Finding::new(Code::DirtyTree, message).with_hint(if_dirty);
    let dirty = unfinished.chain((count > 0).then_some(dirty)).filter(|_| finding.is_none());
    let all: Vec<Finding> = dirty.collect();
    finding.into_iter().chain(all).map(|it| it.at_path(&*tree.path)).collect()
}
