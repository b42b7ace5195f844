//! What a conference tells: its files, parsed once, with the recovery point and what is undone.
//!
//! Invariant: everything that does not depend on the time is found out once, when it is read.

use onward_core::{
    address::Address,
    finding::Finding,
    plan::{RecoveryPoint, Status},
    time::Timestamp,
    told::{Change, Deed, Entering, LastTold, NoEntry, Standing, StepTold, Told, Undo},
};

use super::{
    Conference, Point, PointCode, Starts, check, import,
    read::{EVENTS, REPORT, SYNTHESIS},
    step, undo, write,
};
use crate::{Files, rules::conference::converge, seam::Missing};

pub(super) struct ConferenceTold {
    conference: Conference,
    point: Point,
    undo: Vec<Undo>,
    /// How users know the directory.
    dir: String,
    /// The last event's time, or when the log was last written to.
    last: Option<Timestamp>,
}

impl ConferenceTold {
    pub(super) fn read(dir: &str, files: &Files) -> Result<Self, Missing> {
        let conference = import(files)?;
        let point = Point::of(&conference);
        let written = files.file(EVENTS).and_then(|file| file.modified);
        Ok(Self {
            undo: undo::undo(&conference, &point),
            last: conference.history.last_at.or(written),
            dir: dir.to_owned(),
            conference,
            point,
        })
    }

    fn status(&self) -> Status {
        let Conference { loop_pid, alive, history, .. } = &self.conference;
        if self.point.code == PointCode::Complete {
            Status::Completed
        } else if loop_pid.is_some_and(|pid| alive.contains(&pid)) {
            Status::Running
        } else if history.failed {
            Status::Failed
        } else if history.rounds.is_empty() {
            Status::Fresh
        } else {
            Status::Interrupted
        }
    }

    /// The steps that start first, at the level of researchers and phases.
    fn entry_steps(&self) -> Vec<String> {
        let round = self.point.round.unwrap_or(0);
        let steps = match self.point.code.starts() {
            Starts::Nothing => Vec::new(),
            Starts::Last(id) => vec![Address::from_text(id)],
            Starts::Phase(id) => vec![step::in_round(round, id)],
            Starts::Research => {
                self.point.researchers.iter().map(|who| step::research(round, who)).collect()
            }
        };
        steps.iter().map(Address::to_string).collect()
    }

    /// For a complete conference, where its outputs are: only files that are there.
    fn point_in_words(&self) -> String {
        if self.point.code != PointCode::Complete {
            return self.point.summary();
        }
        let all = [(SYNTHESIS, &self.conference.synthesis), (REPORT, &self.conference.report)];
        let there = all.iter().filter(|(_, page)| page.is_some());
        let there: Vec<String> = there.map(|(name, _)| format!("{}/{name}", self.dir)).collect();
        let complete = self.point.summary();
        match there.as_slice() {
            [] => format!("{complete}. Its outputs are not there any more"),
            _ => format!("{complete}. Outputs are in {}", there.join(" and ")),
        }
    }

    fn report(&self, now: Timestamp) -> Vec<String> {
        let history = &self.conference.history;
        let completed = history.rounds.values().filter(|round| round.completed.is_some()).count();
        let last = match (&history.last_name, history.last_at) {
            (Some(name), Some(at)) => format!("{name} at {at}"),
            (Some(name), None) => name.clone(),
            (None, _) => "none".to_owned(),
        };
        let round = history.rounds.keys().next_back().copied();
        let researchers = self.conference.researchers_of(round.unwrap_or(1)).join(", ");
        let none = || "no round has begun".to_owned();
        let of_round = round.map_or_else(none, |round| format!("round {round}"));
        let converged = match &self.point.over {
            Some(over) if over.reason.is_budget() => format!("no, but {}", over.detail),
            Some(over) => format!("yes, {}", over.detail),
            None => "no".to_owned(),
        };
        let mut lines = vec![
            format!("Rounds completed: {completed}"),
            format!("Last completed event: {last}"),
            format!("Researchers in the last round: {researchers} ({of_round})"),
            format!("Convergence reached: {converged}"),
            format!("Interruption point: {}", self.point_in_words()),
        ];
        lines.extend(self.time_line(now));
        lines
    }

    /// The line that a resume logs is an event too: with it the time budget may be over.
    fn time_line(&self, now: Timestamp) -> Option<String> {
        let goes_on = self.point.over.is_none() && self.point.code != PointCode::Complete;
        let used = converge::time_used(&self.conference, now).filter(|_| goes_on)?;
        Some(format!(
            "Time budget: over with this resume ({used}), which then goes straight to the \
             synthesis; to continue the research, raise it in conference.md first"
        ))
    }
}

impl Told for ConferenceTold {
    fn standing(&self, now: Timestamp) -> Standing {
        let Point { code, round, .. } = &self.point;
        let history = &self.conference.history;
        let kind = history.last_name.clone().unwrap_or_default();
        let question = "say whether synthesis.md and final_report.md are the final ones";
        Standing {
            status: self.status(),
            started_at: history.first_at.or(self.last),
            last_event: self.last.map(|at| LastTold { kind, at }),
            resumes: history.resumes,
            point: RecoveryPoint {
                code: code.as_str().to_owned(),
                phase: code.phase().map(str::to_owned),
                round: *round,
                steps: self.entry_steps(),
                summary: self.point_in_words(),
            },
            report: self.report(now),
            needs_agents: !matches!(code, PointCode::Close | PointCode::Complete),
            asks: (*code == PointCode::Close).then(|| question.to_owned()),
        }
    }

    fn findings(&self, now: Timestamp) -> Vec<Finding> {
        check::findings(&self.conference, &self.point, self.last, now)
    }

    fn step(&self, at: &Address) -> StepTold {
        step::told(&self.conference, &self.point, &self.undo, at)
    }

    fn row(&self, at: &Address) -> Address {
        step::row(at)
    }

    fn undo(&self) -> Vec<Undo> {
        self.undo.clone()
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            Deed::Resumed { at, point, undone, .. } => {
                write::resumed::resumed(&self.conference, *at, point, undone)
            }
            Deed::Cancelled { .. } => Vec::new(),
        }
    }

    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        write::enter::enter(&self.conference, &self.point, at)
    }
}
