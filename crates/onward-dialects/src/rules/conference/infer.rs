//! Iterations of which only rows tell, and who takes part in a round.
//!
//! Invariant: a kept row without an event is an iteration of its researcher, so that a plan, a live
//! call and a resume count alike. The next resume logs it.

use std::collections::BTreeSet;

use super::converge;
use crate::conference::{
    Conference,
    read::{
        history::Round,
        log::{Status, Trial},
        rows::{Comparison, Row, numbered, standing_len},
        settings::Settings,
    },
};

/// No researcher has more iterations in a round; what is left is for the next look.
const ROWS_MAX: usize = 1_000;

impl Conference {
    /// Adds to the history what only rows tell: measured baselines, and in the round that is being
    /// researched the rows up to the last one to stand on, as far as the researcher has iterations
    /// for them.
    pub(crate) fn infer(&mut self) {
        for (round, researcher) in self.measured_baselines() {
            if let Some(told) = self.history.rounds.get_mut(&round) {
                told.unlogged_baselines.insert(researcher);
            }
        }
        let next = self.history.last_completed().saturating_add(1);
        let round = self.history.open_round().unwrap_or(next);
        let told = self.history.round(round);
        let is_told = told.is_some();
        let is_over = self.history.completed
            || told.is_some_and(Round::is_past_research)
            || !is_told && self.history.restarted == Some(round)
            || converge::over(self).is_some();
        if is_over {
            return;
        }
        let researchers = self.researchers_of(round);
        let unlogged = |who: &String| (who.clone(), self.unlogged_rows(round, who));
        let unlogged: Vec<(String, Vec<Trial>)> = researchers.iter().map(unlogged).collect();
        let trials = || unlogged.iter().flat_map(|(_, trials)| trials);
        // Baselines alone do not make a round that the log has not heard of.
        if !is_told && !trials().any(|trial| trial.status == Status::Kept) {
            return;
        }
        self.history.rounds.entry(round).or_default();
        for (researcher, trials) in unlogged {
            for trial in trials {
                if self.finish(round, &researcher).is_some() {
                    break;
                }
                if let Some(told) = self.history.rounds.get_mut(&round) {
                    told.take(&researcher, trial);
                }
            }
        }
    }

    /// Rows of the round that stay without an event. A baseline is among them only while nothing
    /// after it is logged: many logs never mention theirs.
    fn unlogged_rows(&self, round: u32, researcher: &str) -> Vec<Trial> {
        let rows = self.rows_of(round, researcher);
        let stays = &rows[..standing_len(&rows)];
        let trials = self.history.round(round).and_then(|it| it.trials.get(researcher));
        let unlogged: BTreeSet<u32> = Comparison::of(stays, trials).unlogged.into_iter().collect();
        let is_first = |row: &Row| row.trial.status == Status::Baseline && trials.is_none();
        let is_wanted = |(number, row): &(u32, &Row)| {
            is_first(row) && row.trial.metric.is_some() && *number == 0 || unlogged.contains(number)
        };
        let inferred = |(number, row): (u32, &Row)| Trial {
            iteration: Some(number),
            is_inferred: true,
            ..row.trial.clone()
        };
        numbered(stays).into_iter().filter(is_wanted).map(inferred).take(ROWS_MAX).collect()
    }

    /// Round and researcher, where the first row of the round was measured and not logged.
    fn measured_baselines(&self) -> Vec<(u32, String)> {
        let is_measured = |row: &&Row| {
            let is_first = row.trial.iteration.unwrap_or(0) == 0;
            is_first && row.trial.status == Status::Baseline && row.trial.metric.is_some()
        };
        let of = |researcher: &String| -> Vec<(u32, String)> {
            let segments = self.segments(researcher).into_iter();
            let measured = segments.filter(|it| it.rows.iter().any(is_measured));
            let unlogged = measured.filter(|it| !self.history.is_logged(it.round, researcher, 0));
            unlogged.map(|it| (it.round, researcher.clone())).collect()
        };
        self.researchers.keys().flat_map(of).collect()
    }

    /// The researchers of a round: those it was started with, else those that conference.md asks
    /// for, and those with an iteration in it.
    pub fn researchers_of(&self, round: u32) -> Vec<String> {
        let told = self.history.round(round);
        let announced = told.map(|round| round.announced.clone()).unwrap_or_default();
        let mut all: BTreeSet<String> = if announced.is_empty() {
            self.asked_for().into_iter().collect()
        } else {
            announced.into_iter().collect()
        };
        all.extend(told.into_iter().flat_map(|round| round.trials.keys().cloned()));
        if all.is_empty() {
            all.extend(self.researchers.keys().cloned());
            let rounds = self.history.rounds.values();
            all.extend(rounds.flat_map(|round| round.trials.keys().cloned()));
        }
        all.into_iter().collect()
    }

    fn asked_for(&self) -> Vec<String> {
        let count = self.settings.count.or(self.history.announced);
        Settings { count, ..Settings::default() }.researchers()
    }
}
