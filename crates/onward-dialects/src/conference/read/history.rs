//! What the event log tells, round by round.
//!
//! Invariant: a fold over the readable lines, in order. It looks at no other file and knows no
//! setting; an iteration that is logged twice is one iteration. Iterations of which only a row
//! tells are added by `import`, and marked.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::time::Timestamp;

use super::log::{EventLog, Fact, LogLine, StuckLevel, Trial};
use crate::conference::PointCode;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub started: bool,
    /// Of the first `conference.started`, if it says a time.
    pub started_at: Option<Timestamp>,
    /// Of the first event that says a time.
    pub first_at: Option<Timestamp>,
    /// Of the last one.
    pub last_at: Option<Timestamp>,
    /// The last readable event, as it is written there.
    pub last_name: Option<String>,
    pub announced: Option<u32>,
    pub rounds: BTreeMap<u32, Round>,
    pub end: Option<End>,
    /// Every researcher failed, and nothing has happened since.
    pub failed: bool,
    pub completed: bool,
    pub resumes: u32,
    /// A round that a person wants done from its beginning, and that has not begun again: nothing
    /// that lies about of it counts.
    pub restarted: Option<u32>,
}

/// Why there is no further round, as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Converged { reason: Option<String> },
    Stalled,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    pub started: bool,
    /// Those it was started with.
    pub announced: Vec<String>,
    /// By researcher and iteration.
    pub trials: BTreeMap<String, BTreeMap<u32, Trial>>,
    /// The worst level that was reported.
    pub stuck: BTreeMap<String, StuckLevel>,
    /// Researchers whose baseline was measured, as only its row tells.
    pub unlogged_baselines: BTreeSet<String>,
    pub poster: bool,
    pub review: bool,
    pub completed: Option<Completed>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completed {
    pub best: Option<f64>,
    pub converged: bool,
}

impl History {
    pub fn of(log: &EventLog) -> Self {
        let mut history = Self::default();
        log.lines.iter().for_each(|line| history.take(line));
        history
    }

    fn take(&mut self, line: &LogLine) {
        self.first_at = self.first_at.or(line.at);
        self.last_at = line.at.or(self.last_at);
        self.last_name = Some(line.name.clone());
        match &line.fact {
            Fact::Started { researchers } => {
                self.started = true;
                self.started_at = self.started_at.or(line.at);
                self.announced = researchers.or(self.announced);
            }
            Fact::RoundStarted { round, researchers } => {
                let round = self.round_mut(*round);
                round.started = true;
                round.announced.clone_from(researchers);
                (self.failed, self.restarted) = (false, None);
            }
            Fact::Iteration { researcher, round, trial } => {
                self.round_mut(*round).take(researcher, trial.clone());
                (self.failed, self.restarted) = (false, None);
            }
            Fact::Stuck { researcher, round, level } => {
                let stuck = &mut self.round_mut(*round).stuck;
                let worst = stuck.get(researcher).copied().unwrap_or(*level).max(*level);
                stuck.insert(researcher.clone(), worst);
            }
            Fact::Poster { round } => self.round_mut(*round).poster = true,
            Fact::Review { round } => self.round_mut(*round).review = true,
            Fact::RoundCompleted { round, best, converged } => {
                let completed = Completed { best: *best, converged: *converged };
                self.round_mut(*round).completed = Some(completed);
            }
            Fact::Converged { reason } => {
                self.end = Some(End::Converged { reason: reason.clone() });
            }
            Fact::Stalled => self.end = self.end.take().or(Some(End::Stalled)),
            Fact::Failed => self.failed = true,
            Fact::Completed => self.completed = true,
            Fact::Resumed { redo } => {
                self.resumes = self.resumes.saturating_add(1);
                if std::mem::take(&mut self.failed) {
                    // Every researcher had failed: the driver that goes on asks all of them again.
                    let rounds = self.rounds.values_mut();
                    let open = rounds.filter(|round| round.completed.is_none());
                    open.for_each(|round| round.stuck.retain(|_, it| *it != StuckLevel::TimedOut));
                }
                if let Some((code, round)) = redo
                    && let Some(code) = PointCode::parse(code)
                {
                    self.enter(code, round.unwrap_or(0));
                }
            }
            Fact::Other => {}
        }
    }

    /// A person entered somewhere: what was logged about that place and what follows counts no
    /// more. At the synthesis it means that there is no further round.
    fn enter(&mut self, code: PointCode, number: u32) {
        self.completed = false;
        // Whether the poster and the review of the round still count.
        let (poster, review) = match code {
            PointCode::Complete | PointCode::Close => return,
            PointCode::Synthesis => {
                let is_converged = matches!(self.end, Some(End::Converged { .. }));
                let reason = Some("asked".to_owned());
                self.end = self.end.take().filter(|_| is_converged);
                self.end.get_or_insert(End::Converged { reason });
                return;
            }
            PointCode::RoundStart | PointCode::ResearchRestart => {
                self.end = None;
                self.rounds.split_off(&number);
                self.restarted = Some(number);
                return;
            }
            PointCode::ResearchContinue | PointCode::PosterSession => (false, false),
            PointCode::PeerReview => (true, false),
            PointCode::KnowledgeTransfer => (true, true),
        };
        self.end = None;
        self.rounds.split_off(&number.saturating_add(1));
        if let Some(round) = self.rounds.get_mut(&number) {
            round.completed = None;
            round.poster &= poster;
            round.review &= review;
        }
    }

    /// The round an event is about: the one it names, or the one under way.
    fn round_mut(&mut self, named: Option<u32>) -> &mut Round {
        let here = self.open_round().unwrap_or_else(|| self.last_completed().saturating_add(1));
        self.rounds.entry(named.unwrap_or(here)).or_default()
    }

    /// 0 before the first.
    pub fn last_completed(&self) -> u32 {
        let completed = self.rounds.iter().rev().find(|(_, round)| round.completed.is_some());
        completed.map_or(0, |(number, _)| *number)
    }

    /// The round that something was logged about since the last one was completed.
    pub fn open_round(&self) -> Option<u32> {
        let (number, round) = self.rounds.last_key_value()?;
        round.completed.is_none().then_some(*number)
    }

    pub fn round(&self, number: u32) -> Option<&Round> {
        self.rounds.get(&number)
    }

    /// Iterations of every researcher in every round.
    pub fn iterations(&self) -> usize {
        self.rounds.values().map(Round::iterations).sum()
    }

    /// From `conference.started` to `at`, pauses included; in a log that does not say when it
    /// started, from its first event on.
    pub fn ms_until(&self, at: Timestamp) -> Option<u64> {
        self.started_at.or(self.first_at).map(|start| at.ms_since(start))
    }

    /// Whether an event tells of the iteration, not only a row.
    pub fn is_logged(&self, round: u32, researcher: &str, iteration: u32) -> bool {
        let trials = self.round(round).and_then(|it| it.trials.get(researcher));
        trials.and_then(|it| it.get(&iteration)).is_some_and(|it| !it.is_inferred)
    }

    /// Rounds that something came after although their end is not logged.
    pub fn skipped_endings(&self) -> Vec<u32> {
        let Some((last, _)) = self.rounds.last_key_value() else { return Vec::new() };
        let open = self.rounds.iter().filter(|(_, round)| round.completed.is_none());
        open.map(|(number, _)| *number).filter(|number| number != last).collect()
    }
}

impl Round {
    /// An iteration after a timeout: the researcher works again.
    pub(crate) fn take(&mut self, researcher: &str, trial: Trial) {
        if self.stuck.get(researcher) == Some(&StuckLevel::TimedOut) {
            self.stuck.remove(researcher);
        }
        let trials = self.trials.entry(researcher.to_owned()).or_default();
        let after_last = || trials.keys().next_back().map_or(0, |it| it.saturating_add(1));
        let iteration = trial.iteration.unwrap_or_else(after_last);
        trials.insert(iteration, trial);
    }

    /// Whether the log has a word about the round; rows alone may tell of it, too.
    pub fn is_logged(&self) -> bool {
        let is_told = self.started || self.poster || self.review || self.completed.is_some();
        is_told || !self.stuck.is_empty() || self.logged_iterations() > 0
    }

    pub fn logged_iterations(&self) -> usize {
        let trials = self.trials.values().flat_map(BTreeMap::values);
        trials.filter(|trial| !trial.is_inferred).count()
    }

    /// Its research is over: the poster session or what follows it is logged.
    pub fn is_past_research(&self) -> bool {
        self.poster || self.review || self.completed.is_some()
    }

    pub fn iterations(&self) -> usize {
        self.trials.values().map(BTreeMap::len).sum()
    }

    pub fn trials_of(&self, researcher: &str) -> impl Iterator<Item = (u32, &Trial)> {
        let trials = self.trials.get(researcher).into_iter().flatten();
        trials.map(|(iteration, trial)| (*iteration, trial))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(lines: &[&str]) -> History {
        History::of(&EventLog::read(lines.join("\n").as_bytes()))
    }

    #[test]
    fn rounds_are_told_by_their_events_and_a_repeated_iteration_is_one() {
        let iteration = "{\"event\":\"researcher.iteration\",\"payload\":{\"researcher\":\"A\",\
                         \"round\":1,\"iteration\":1,\"status\":\"kept\"}}";
        let told = history(&[
            r#"{"event":"conference.started","payload":{"researchers":2}}"#,
            r#"{"event":"round.started","payload":{"round":1,"researcher_states":["A:x","B:x"]}}"#,
            iteration,
            iteration,
            r#"{"event":"round.1.completed","timestamp":"2026-05-04T21:00:00Z"}"#,
            r#"{"event":"round.started","payload":{"round":2}}"#,
        ]);
        assert_eq!((told.last_completed(), told.open_round()), (1, Some(2)));
        assert_eq!(told.iterations(), 1);
        assert_eq!(told.round(1).unwrap().announced, ["A", "B"]);
        assert_eq!(told.last_name.as_deref(), Some("round.started"));
        assert_eq!(told.last_at, "2026-05-04T21:00:00Z".parse().ok());
    }

    #[test]
    fn a_round_that_is_not_named_is_the_one_under_way() {
        let told = history(&[
            r#"{"event":"round.completed","payload":{"round":1}}"#,
            r#"{"event":"researcher.iteration","payload":{"researcher":"A","status":"kept"}}"#,
            r#"{"event":"researcher.iteration","payload":{"researcher":"A","status":"kept"}}"#,
            r#"{"event":"round.poster_session","payload":{}}"#,
        ]);
        let round = told.round(2).unwrap();
        let iterations: Vec<u32> = round.trials_of("A").map(|(number, _)| number).collect();
        assert_eq!((iterations, round.poster), (vec![0, 1], true));
    }

    #[test]
    fn an_ending_that_is_not_logged_is_noticed() {
        let told = history(&[
            r#"{"event":"round.started","payload":{"round":1}}"#,
            r#"{"event":"round.started","payload":{"round":2}}"#,
        ]);
        assert_eq!((told.skipped_endings(), told.open_round()), (vec![1], Some(2)));
    }

    #[test]
    fn where_a_person_enters_what_was_logged_counts_no_more() {
        let log = [
            r#"{"event":"round.completed","payload":{"round":1}}"#,
            r#"{"event":"round.poster_session","payload":{"round":2}}"#,
            r#"{"event":"round.peer_review","payload":{"round":2}}"#,
            r#"{"event":"round.completed","payload":{"round":2}}"#,
            r#"{"event":"round.started","payload":{"round":3}}"#,
        ];
        let after = |code: &str, redo: bool| {
            let payload = format!(r#"{{"recovery_point":"{code}","round":2,"redo":{redo}}}"#);
            let line = format!(r#"{{"event":"conference.resumed","payload":{payload}}}"#);
            let mut lines = log.to_vec();
            lines.push(&line);
            history(&lines)
        };
        let at_review = after("peer-review", true);
        let round = at_review.round(2).unwrap();
        assert_eq!((round.poster, round.review, &round.completed), (true, false, &None));
        assert_eq!((at_review.open_round(), at_review.last_completed()), (Some(2), 1));
        assert_eq!(after("round-start", true).round(2), None);
        assert!(after("knowledge-transfer", true).round(2).unwrap().review);
        assert!(after("synthesis", true).end.is_some());
        assert_eq!(after("peer-review", false).open_round(), Some(3), "it was not asked for");
        assert_eq!(after("no such place", true).open_round(), Some(3));
    }

    #[test]
    fn time_counts_from_the_start_to_the_last_event_and_a_night_in_between_too() {
        let lines = [
            r#"{"event":"coffee.break","timestamp":"2026-05-04T18:00:00Z"}"#,
            r#"{"event":"conference.started","timestamp":"2026-05-04T20:00:00Z"}"#,
            r#"{"event":"round.started","timestamp":"2026-05-04T21:00:00Z"}"#,
            r#"{"event":"conference.resumed","timestamp":"2026-05-05T07:00:00Z"}"#,
            r#"{"event":"round.started","timestamp":"2026-05-05T08:00:00Z"}"#,
        ];
        let hours = |told: &History| Some(told.ms_until(told.last_at?)? / 3_600_000);
        assert_eq!(hours(&history(&lines)), Some(12));
        assert_eq!(hours(&history(&lines[2..])), Some(11), "the start is not logged");
        assert_eq!(hours(&history(&[r#"{"event":"conference.started"}"#])), None);
    }
}
