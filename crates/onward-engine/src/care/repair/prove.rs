//! Whether an attempt that the journal lost was done: by its seal, or by what speaks for itself.
//!
//! Invariant: a step counts as done only if the engine would have judged it so, from what is there
//! now; a file that merely exists proves nothing.

use onward_core::{
    address::Address,
    decide::Start,
    digest::Digest,
    event::{AttemptAdopted, AttemptFinished, Event, SettledBy},
    evidence::{Ending, Evidence, FileProof, Outcome, Stat},
    graph::NodeId,
    judge::{Collected, ResultSeen, judge},
    launch::Seal,
    recovery::Probed,
    time::Timestamp,
    workflow::model::Step,
};

use super::{
    rebuild::{Rebuilder, Source, lost},
    traces::Trace,
};
use crate::{
    check::{collect, hear::Ear},
    world::{Stop, World},
};

impl<W: World> Rebuilder<'_, W> {
    /// What became of an attempt that was just started: proved, or lost.
    pub(super) fn end(
        &mut self,
        id: NodeId,
        step: &Address,
        attempt: u32,
        start: Option<&Start>,
        is_last: bool,
    ) -> Result<(), Stop> {
        let trace = self.traces.get(step, attempt).cloned().unwrap_or_default();
        let at = self.seen_at(step, attempt);
        let effect = start.and_then(|start| start.effect.clone());
        if let Some(effect) = effect.clone() {
            let event = Event::EffectIntended { step: step.clone(), attempt, effect };
            let _ = self.push(at, event, Source::Workflow, "its step has an effect outside");
        }
        let give_up = |this: &mut Self, why: &str| {
            // Whether an effect happened is asked by the next resume, not decided here.
            if effect.is_none() {
                let _ = this.push(at, lost(step, attempt), Source::Gap, why);
            }
        };
        let Some(start) = start else {
            give_up(self, "what it was made from is not known");
            return Ok(());
        };
        if !is_last {
            give_up(self, "a later attempt began");
            return Ok(());
        }
        if let Some(seal) = trace.seal() {
            self.finish(id, seal, &start.writes)?;
        } else if trace.seals.is_empty() {
            match self.inferred(id, step, attempt, start, &trace)? {
                Some((source, event)) => {
                    let why = "it left what proves it";
                    let _ = self.push(at, event, source, why);
                }
                None => give_up(self, "nothing proves that it was done"),
            }
        } else {
            give_up(self, "its seals contradict each other");
        }
        Ok(())
    }

    /// Judged as the engine would have judged it, by its seal and by what is there now.
    pub(super) fn finish(
        &mut self,
        id: NodeId,
        seal: &Seal,
        writes: &[String],
    ) -> Result<bool, Stop> {
        let def = self.run.graph.node(id).def;
        let declared: Step = self.run.defs.step(def).clone();
        let reads_stdout = self.run.defs.stdout_is_read(def);
        let mut seen = Collected::default();
        if seal.ending.is_success() {
            let (step, attempt) = (&seal.step, seal.attempt);
            seen = collect::collect(self.world, &declared, step, attempt, writes, reads_stdout)?;
            self.as_it_was(&mut seen.files, seal.at);
        }
        let ear =
            Ear::of(self.world, &self.run, &seal.step).filter(|it| it.attempt == seal.attempt);
        let said = ear.map(|ear| ear.hear_out(self.world, &seal.step)).transpose()?;
        let said = said.unwrap_or_default();
        let entry = self.run.state.step(&seal.step);
        let spent = entry.map(|entry| entry.owed(said.spent, said.counting)).unwrap_or_default();
        let mut finished: AttemptFinished = judge(&declared, seal, seen, &said);
        finished.tolerated = self.run.tolerates(&finished);
        let (step, attempt) = (seal.step.clone(), seal.attempt);
        if !spent.is_nothing() {
            let spent = Event::AttemptSpent { step: step.clone(), attempt, spent };
            let _ = self.push(seal.at, spent, Source::Seal, "its agent said so");
        }
        if declared.effect_outside && matches!(seal.ending, Ending::Exited { .. }) {
            let (happened, by) = (seal.ending.is_success(), SettledBy::Receipt);
            let settled = Event::EffectSettled { step, attempt, happened, by };
            let _ = self.push(seal.at, settled, Source::Seal, "it came back");
        }
        let why = match &finished.outcome {
            Outcome::Done => "sealed, and its outputs are there".to_owned(),
            Outcome::Failed { cause, detail } => format!("{}: {detail}", cause.in_words()),
        };
        let event = Event::AttemptFinished(Box::new(finished));
        Ok(self.push(seal.at, event, Source::Seal, why).is_ok())
    }

    /// A file that a later attempt replaced: its content then is what the next one had seen of it.
    fn as_it_was(&self, files: &mut [FileProof], ended_at: Timestamp) {
        for file in files {
            let mut later = self.seen.iter().filter(|(at, _)| *at >= ended_at);
            let first = later.find_map(|(_, seen)| *seen.get(&file.path)?);
            if let Some(hash) = first.filter(|hash| *hash != file.hash) {
                let stat = Stat { size: 0, mtime_ns: 0, inode: 0 };
                *file = FileProof { path: file.path.clone(), hash, stat };
            }
        }
    }

    /// Without a seal: only what speaks for itself, and belongs to this run.
    fn inferred(
        &mut self,
        id: NodeId,
        step: &Address,
        attempt: u32,
        start: &Start,
        trace: &Trace,
    ) -> Result<Option<(Source, Event)>, Stop> {
        let def = self.run.graph.node(id).def;
        let declared: Step = self.run.defs.step(def).clone();
        let reads_stdout = self.run.defs.stdout_is_read(def);
        let writes = &start.writes;
        let seen = collect::collect(self.world, &declared, step, attempt, writes, reads_stdout)?;
        let has_result = declared.result.is_some();
        let result = match seen.result {
            ResultSeen::Valid(value) => Some(value),
            ResultSeen::Absent if !has_result => None,
            ResultSeen::Absent
            | ResultSeen::NotJson(_)
            | ResultSeen::Violates(_)
            | ResultSeen::Refuses(_) => return Ok(None),
        };
        if !seen.missing.is_empty() {
            return Ok(None);
        }
        let tree = &start.launch.cwd;
        let source = match &start.launch.check {
            Some(check) if self.world.probe(tree, check, i32::MIN)? == Probed::Happened => {
                Source::Check
            }
            None if trace.commit.is_some() => Source::Commit,
            None if has_result => Source::Result,
            Some(_) | None => return Ok(None),
        };
        let has_tree = !tree.is_empty();
        let evidence = Evidence {
            files: seen.files,
            result: result.as_ref().map(|it| Digest::of(it.to_string().as_bytes())),
            stdout: seen.stdout.as_ref().map(|it| Digest::of(it.as_bytes())),
            branch_head: trace.commit.clone().filter(|_| has_tree),
        };
        let event = Event::AttemptAdopted(Box::new(AttemptAdopted {
            step: step.clone(),
            source: format!("repair: {}", source.as_str()),
            certainty: source.certainty(),
            evidence,
            result,
            by: None,
        }));
        Ok(Some((source, event)))
    }
}
