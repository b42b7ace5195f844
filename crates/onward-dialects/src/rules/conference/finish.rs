//! Who has finished a round: iterations, being stuck, the target.
//!
//! Invariant: one answer for a plan, a live call and a resume. An iteration of which only a kept
//! row tells is one; see [`infer`](super::infer).

use std::collections::BTreeMap;

use crate::conference::{
    Conference,
    read::{
        history::Round,
        log::{Status, StuckLevel, Trial},
    },
};

/// Iterations without improvement, and the level of being stuck that they make.
const STUCK: [(u32, u32); 3] = [(7, 3), (5, 2), (3, 1)];

/// Why a researcher has nothing left to do in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Count,
    Final,
    /// At level 3.
    Stuck,
    Target,
}

impl Conference {
    /// How many iterations a researcher has in a round: as many as conference.md says, and no more
    /// than its share of what is left of all iterations, which does not depend on who is faster.
    pub fn iterations_in(&self, round: u32) -> Option<u32> {
        let asked = self.iterations_asked(round)?;
        Some(self.share_of(round).map_or(asked, |share| asked.min(share)))
    }

    fn share_of(&self, round: u32) -> Option<u32> {
        let max = self.settings.max_iterations.filter(|max| *max > 0)?;
        let before = self.history.rounds.range(..round).map(|(_, it)| it.iterations());
        let used = u32::try_from(before.sum::<usize>()).unwrap_or(u32::MAX);
        let people = u32::try_from(self.researchers_of(round).len()).unwrap_or(u32::MAX);
        Some(max.saturating_sub(used).div_ceil(people.max(1)).max(1))
    }

    /// Whether as many iterations were logged as there may be at all.
    pub fn is_out_of_iterations(&self) -> bool {
        let max = self.settings.max_iterations.filter(|max| *max > 0);
        max.is_some_and(|max| self.history.iterations() >= max as usize)
    }

    fn iterations_asked(&self, round: u32) -> Option<u32> {
        if let Some(schedule) = &self.settings.iterations {
            return Some(schedule.in_round(round));
        }
        let settings = &self.settings;
        let divided = || {
            let whole = settings.max_iterations?;
            let shares = settings.count?.checked_mul(settings.max_rounds?)?;
            (shares > 0 && whole.is_multiple_of(shares)).then(|| whole / shares)
        };
        divided().or_else(|| self.iterations_seen())
    }

    /// What every researcher had in every round whose research is over.
    pub fn iterations_seen(&self) -> Option<u32> {
        let rounds = self.history.rounds.iter();
        let over = rounds.filter(|(_, it)| it.is_past_research());
        let mut counts = over.flat_map(|(number, round)| {
            round.trials.keys().map(|who| self.finished_iterations(*number, who))
        });
        let first = counts.next().filter(|count| *count > 0)?;
        counts.all(|count| count == first).then_some(first)
    }

    /// How many iterations of a round the researcher is known to have finished. A baseline row
    /// counts, logged or not; an iteration that is logged as number 3 was not the first.
    pub fn finished_iterations(&self, round: u32, researcher: &str) -> u32 {
        let Some(told) = self.history.round(round) else { return 0 };
        let known: Vec<u32> = told.trials_of(researcher).map(|(number, _)| number).collect();
        let count = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let has_unlogged =
            told.unlogged_baselines.contains(researcher) && known.first() != Some(&0);
        let unlogged_baseline = u32::from(has_unlogged && !known.is_empty());
        count.saturating_add(unlogged_baseline).max(known.last().copied().unwrap_or(0))
    }

    /// `None` while the researcher has something left to do in the round.
    pub fn finish(&self, round: u32, researcher: &str) -> Option<Finish> {
        let told = self.history.round(round)?;
        let trials = || told.trials_of(researcher);
        let last = trials().last().map(|(_, trial)| trial.status);
        let done = self.finished_iterations(round, researcher);
        let target = self.settings.target.filter(|_| !self.target_met_before(round));
        let meets = |(number, trial): (u32, &Trial)| {
            let reached = target.zip(trial.metric).is_some_and(|(it, metric)| it.is_met_by(metric));
            number > 0 && trial.status.stands() && reached || trial.status == Status::TargetReached
        };
        if self.iterations_in(round).is_some_and(|needed| needed > 0 && done >= needed) {
            Some(Finish::Count)
        } else if last == Some(Status::Final) {
            Some(Finish::Final)
        } else if self.stuck_level(round, researcher) >= 3 {
            Some(Finish::Stuck)
        } else {
            trials().any(meets).then_some(Finish::Target)
        }
    }

    /// How many of the researcher's last iterations of the round improved nothing.
    fn fruitless(&self, round: u32, researcher: &str) -> u32 {
        let told = self.history.round(round);
        let trials = told.into_iter().flat_map(|it| it.trials_of(researcher));
        let statuses: Vec<Status> = trials.map(|(_, trial)| trial.status).collect();
        let in_vain = |status: &&Status| matches!(status, Status::Reverted | Status::Failed);
        let count = statuses.iter().rev().take_while(in_vain).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// 0 to 3: as it was logged, or as the iterations tell.
    pub fn stuck_level(&self, round: u32, researcher: &str) -> u32 {
        let fruitless = self.fruitless(round, researcher);
        let reached = STUCK.iter().find(|(count, _)| fruitless >= *count).map_or(0, |(_, it)| *it);
        let told = self.history.round(round).and_then(|it| it.stuck.get(researcher));
        match told {
            Some(StuckLevel::Level(level)) => reached.max(*level),
            Some(StuckLevel::TimedOut) | None => reached,
        }
    }

    /// All researchers at level 2 or more in the round.
    pub fn is_stalled_in(&self, round: u32) -> bool {
        let researchers = self.researchers_of(round);
        !researchers.is_empty() && researchers.iter().all(|who| self.stuck_level(round, who) >= 2)
    }

    /// Later phases of the round, or of the conference, have begun.
    pub fn is_past_research(&self, round: u32) -> bool {
        let history = &self.history;
        history.round(round).is_some_and(Round::is_past_research)
            || history.rounds.keys().next_back().is_some_and(|last| *last > round)
            || history.completed
    }

    /// A conference that went on after its target was met is after something else.
    fn target_met_before(&self, round: u32) -> bool {
        let before = self.history.rounds.range(..round);
        before.into_iter().any(|(_, round)| self.meets_target(round))
    }

    /// Whether some state of the round that stands meets the target.
    pub fn meets_target(&self, round: &Round) -> bool {
        let best = round.completed.as_ref().and_then(|completed| completed.best);
        let trials = round.trials.values().flat_map(BTreeMap::values);
        let standing = trials.clone().filter(|it| it.status.stands()).filter_map(|it| it.metric);
        let target = self.settings.target;
        standing.chain(best).any(|metric| target.is_some_and(|target| target.is_met_by(metric)))
            || trials.clone().any(|trial| trial.status == Status::TargetReached)
    }

    /// The best value of a round: as it was logged, or as its rows have it.
    pub fn best_of(&self, number: u32) -> Option<f64> {
        let round = self.history.round(number)?;
        if let Some(best) = round.completed.as_ref().and_then(|completed| completed.best) {
            return Some(best);
        }
        let trials = round.trials.values().flat_map(BTreeMap::values);
        let trials = trials.filter(|trial| trial.status.stands()).filter_map(|it| it.metric);
        let rows = self.results.iter().flat_map(|table| &table.rows);
        let rows = rows.filter(|row| row.round == Some(number) && row.trial.status.stands());
        let direction = self.settings.direction_or_default();
        let better =
            |one: f64, other: f64| if direction.gain(other, one) > 0.0 { other } else { one };
        trials.chain(rows.filter_map(|row| row.trial.metric)).reduce(better)
    }
}
