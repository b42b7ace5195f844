//! What a list tells of one step of a task, and of phases that are not on the path.

use onward_core::told::{Done, StepTold};
use serde_json::json;

use super::{
    Code,
    phase::Phase,
    progress::{Item, Stage, was_cleaned_up},
    told::{Pipeline, address},
};

impl Pipeline {
    /// One step of a task. What a run of ours has begun, its journal knows better than the file.
    pub(super) fn task_step(&self, task: &str, step: &str) -> StepTold {
        let done = StepTold::Done(Done::recorded(json!({ "done": true })));
        let Some(stage) = self.stages.get(task) else {
            let id = task.split_once('[').map_or("", |(_, id)| id.trim_end_matches(']'));
            let is_over = self.code == Code::Complete || self.was_in_use(id);
            return match step {
                "begin" | "work" | "settle" if is_over => {
                    StepTold::Done(Done::inferred(json!({ "done": true })))
                }
                "begin" | "work" | "settle" => StepTold::Undone,
                _ => StepTold::Silent,
            };
        };
        let is_ours = self.ours.contains(task);
        match (step, stage) {
            ("begin" | "work" | "settle", _) if self.code == Code::Complete => {
                StepTold::Done(Done::inferred(json!({ "done": true })))
            }
            ("begin" | "work" | "settle", Stage::Settled)
            | ("begin" | "work", Stage::Doubtful(_)) => done,
            ("verify", Stage::Doubtful(doubt)) => StepTold::Unproved(doubt.why()),
            ("begin" | "work", Stage::Open) if is_ours => StepTold::Silent,
            ("settle", Stage::Open) if self.is_refused(task) => StepTold::Silent,
            ("begin" | "work" | "settle", Stage::Open) => StepTold::Undone,
            (_, Stage::Settled | Stage::Doubtful(_) | Stage::Open) => StepTold::Silent,
        }
    }

    /// Nothing but what verifiers of ours refused is left of the verification.
    pub(super) fn is_refused_only(&self, phase: Phase) -> bool {
        let is_some = self.refused()["tasks"].as_array().is_some_and(|it| !it.is_empty());
        phase == Phase::P7 && is_some && !self.has_unverified()
    }

    /// A verifier of ours refused it: that is settled, and the fix comes next.
    pub(super) fn is_refused(&self, task: &str) -> bool {
        let items = self.progress.phases.iter().flat_map(|state| {
            state.items.iter().map(|it| (address(state.phase, &it.task), &it.task))
        });
        let mut of_ours = items.filter(|(_, it)| it.is_ours && it.refused_for.is_some());
        of_ours.any(|(address, _)| address.as_str() == task)
    }

    /// A task of ours whose file is gone: numbers are given in order, so it was there. Claude Code
    /// clears completed tasks away; one that is gone cannot be done again.
    pub(super) fn was_in_use(&self, id: &str) -> bool {
        let number = id.parse::<u64>().ok();
        was_cleaned_up(&self.list, id) || number.is_some_and(|it| self.highest > Some(it))
    }

    /// Some task of the verification is open, and none of ours has refused it.
    pub(super) fn has_unverified(&self) -> bool {
        let state = self.progress.phase(Phase::P7);
        let is_new = |it: &Item| it.stage != Stage::Settled && it.task.refused_for.is_none();
        state.is_some_and(|it| it.items.iter().any(is_new))
    }

    /// Why a phase, or the listing of its tasks, is no part of this pipeline.
    pub(super) fn off_path(&self, first: &str) -> Option<String> {
        let name = match first {
            "verdicts" | "mend" => Phase::P7.as_str(),
            first => first.strip_prefix("tasks_").unwrap_or(first),
        };
        let phase = Phase::working().find(|it| it.as_str() == name)?;
        let tier = self.progress.tier.as_str();
        let is_off = self.progress.phase(phase).is_none();
        is_off.then(|| format!("tier {tier} has no {name}"))
    }

    /// It comes after the phase that is gone on with.
    pub(super) fn is_ahead(&self, phase: Phase) -> bool {
        self.progress.resume.is_some_and(|at| phase > at)
    }
}
