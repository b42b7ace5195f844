//! One event onto the state: total, exhaustive, and refusing what cannot be true.
//!
//! Invariant: an event that is refused changes nothing. Every arm looks before it touches.

use std::{collections::BTreeMap, fmt::Display, sync::Arc};

use super::{
    Adopted, EffectState, GateState, GroupState, Lifted, LoopState, Phase, RunStatus, State,
    StepState,
};
use crate::{
    address::Address,
    digest::Digest,
    event::{
        AttemptAdopted, AttemptFinished, AttemptStarted, AttemptVerified, Event, Exported, Record,
        Revert, RunOpened,
    },
    evidence::{Cause, Evidence, FileProof, FreeTries, Outcome, Usd},
    key::{Difference, Key, KeyParts},
    recovery::Rung,
    time::Timestamp,
};

/// The journal says something that cannot be true. Always a bug or a damaged file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {seq} is impossible: {why}")]
pub struct Violation {
    pub seq: u64,
    pub why: String,
}

/// Records that a person's command may have written while no driver lived: they are no sign of one.
const BY_PERSONS: [&str; 3] = ["gate.decided", "attempt.adopted", "step.skipped"];

/// The source of work that a person did.
pub const PERSON: &str = "person";

impl State {
    /// Folds a whole journal.
    pub fn fold(records: impl IntoIterator<Item = Record>) -> Result<Self, Violation> {
        let mut state = Self::default();
        records.into_iter().try_for_each(|record| state.after(record))?;
        Ok(state)
    }

    /// Takes in one record, or says why it cannot follow and stays as it was.
    #[inline]
    pub fn after(&mut self, record: Record) -> Result<(), Violation> {
        let Record { seq, at, epoch, batch, event } = record;
        if seq != self.next_seq {
            return Err(self.violation(format!("its number is {seq}")));
        }
        if epoch < self.epoch {
            let last = self.epoch;
            return Err(self.violation(format!("epoch {epoch} comes after epoch {last}")));
        }
        if batch < self.batch {
            let last = self.batch;
            return Err(self.violation(format!("batch {batch} comes after batch {last}")));
        }
        let kind = event.kind();
        let progress = !matches!(event, Event::Note { .. });
        let resumes = matches!(event, Event::RunResumed(_));
        if self.steps.graph().is_some() && self.moves_nodes(&event) {
            self.steps.forget_graph();
        }
        self.take(event, at)?;
        if resumes {
            self.undoing = Some((epoch, batch));
        } else if self.undoing.is_some_and(|(by, last)| by == epoch && batch > last) {
            self.undoing = None;
        }
        self.next_seq += 1;
        self.epoch = epoch;
        self.batch = batch;
        if progress {
            self.last_kind = kind;
            self.last_at = at;
            if !BY_PERSONS.contains(&kind) {
                self.driven_at = at;
            }
        }
        Ok(())
    }

    /// All but the few of which it is known that no node is another one after them.
    fn moves_nodes(&self, event: &Event) -> bool {
        match event {
            Event::RunPaused { .. } | Event::RunEnded { .. } | Event::Note { .. } => false,
            Event::RunResumed(_) => self.has_given_up(),
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunArchived { .. }
            | Event::GroupExpanded { .. }
            | Event::LoopTurned { .. }
            | Event::LoopEnded { .. }
            | Event::StepSkipped { .. }
            | Event::StepInvalidated { .. }
            | Event::AttemptStarted(_)
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::AttemptFinished(_)
            | Event::AttemptLost { .. }
            | Event::AttemptAdopted(_)
            | Event::AttemptVerified(_)
            | Event::GateOpened { .. }
            | Event::GateDecided { .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. } => true,
        }
    }

    fn take(&mut self, event: Event, at: Timestamp) -> Result<(), Violation> {
        let opening = matches!(event, Event::RunOpened(_));
        if opening != (self.next_seq == 0) {
            let why = if opening { "the run was opened twice" } else { "the run is not open" };
            return Err(self.violation(why));
        }
        match event {
            Event::RunOpened(opened) => self.open(*opened, at),
            Event::RunAdopted { dialect, source, files } => {
                self.found(Adopted { dialect, source, files })?;
            }
            Event::RunResumed(resumed) => self.resume(*resumed, at)?,
            Event::RunPaused { cause, until } => {
                self.must_be_under_way()?;
                self.status = RunStatus::Paused { cause, until };
            }
            Event::RunEnded { status, why: _ } => {
                self.must_be_idle()?;
                if self.is_ended() {
                    return Err(self.violation("the run has ended already"));
                }
                self.status = RunStatus::Ended { status };
            }
            Event::RunArchived { to: _ } => self.must_be_idle()?,
            Event::GroupExpanded { step, items, needs } => {
                self.expand(step, GroupState { items, needs })?;
            }
            Event::LoopTurned { step, turn } => {
                let now = self.loops.get(&step).copied().unwrap_or_default();
                if turn != now.turns + 1 || now.ended.is_some() {
                    return Err(self.violation(format!("loop `{step}` is {now:?}")));
                }
                self.loops.insert(step, LoopState { turns: turn, ended: None, ..now });
            }
            Event::LoopEnded { step, turns, reason } => {
                let now = self.loops.get(&step).copied().unwrap_or_default();
                if turns != now.turns || now.ended.is_some() {
                    return Err(self.violation(format!("loop `{step}` is {now:?}")));
                }
                self.loops.insert(step, LoopState { turns, ended: Some(reason), ..now });
            }
            Event::StepSkipped { step, needs, reads, .. } => self.skip(&step, reads, needs, at)?,
            Event::StepInvalidated { step, causes } => {
                self.invalidate(&step)?;
                self.know_damage(&causes);
                self.invalidated.push((self.next_seq, step));
            }
            Event::AttemptStarted(started) => self.start(started, at)?,
            Event::AttemptSession { step, attempt, session } => {
                self.running_attempt(&step, attempt)?.session = Some(session);
            }
            Event::AttemptSpent { step, attempt, spent } => {
                let entry = self.running_attempt(&step, attempt)?;
                entry.bill(spent);
                let tokens = spent.tokens_in().saturating_add(spent.output_tokens);
                self.tokens = self.tokens.saturating_add(tokens);
                self.spend(spent.usd.unwrap_or_default());
            }
            Event::AttemptFinished(finished) => self.finish(*finished, at)?,
            Event::AttemptLost { step, attempt, cause, rung, reverted: _, rescue: _ } => {
                let entry = self.running_attempt(&step, attempt)?;
                entry.phase = Phase::Lost;
                if rung == Rung::NeverSpawned {
                    entry.unspawned += 1;
                } else {
                    entry.failure = Some(Box::new((cause, rung.as_str().to_owned())));
                }
                entry.lost_by = Some(rung);
                entry.ended_at = at;
                self.running -= 1;
            }
            Event::AttemptAdopted(adopted) => self.adopt(*adopted, at)?,
            Event::AttemptVerified(verified) => self.verify(*verified)?,
            Event::GateOpened { step, prompt, options, shows, hash } => {
                let (consumed, seq) = (false, self.next_seq);
                self.open_gate(&step, GateState { prompt, options, shows, hash, consumed, seq })?;
            }
            Event::GateDecided { step, by: _, option, comment, hash, stops } => {
                let result = serde_json::json!({ "option": option, "comment": comment });
                self.answer_gate(step.clone(), hash, result, at)?;
                if stops {
                    self.cancelling = Some(step);
                }
            }
            Event::EffectIntended { step, attempt, effect: _ } => {
                self.running_attempt(&step, attempt)?.effect = EffectState::Intended;
            }
            Event::EffectSettled { step, attempt, happened, by: _ } => {
                self.settle_effect(&step, attempt, happened)?;
            }
            Event::NativeExported { files } => self.export(files)?,
            Event::LimitHit { provider: _, agent, account: _, resets_at } => {
                let lifted = resets_at.map_or(Lifted::Unknown, Lifted::At);
                self.limits.insert(agent.unwrap_or_default(), lifted);
            }
            Event::BudgetHit { spent: _, limit: _ } => self.must_be_under_way()?,
            Event::WorkflowChanged { hash, edits } => self.take_up(hash, &edits),
            Event::JournalRepaired { .. } | Event::Note { text: _, step: _ } => {}
        }
        Ok(())
    }

    fn spend(&mut self, usd: Usd) {
        self.spent = self.spent.plus(usd);
        if usd != Usd::default() {
            self.streak.gain();
        }
    }

    fn open(&mut self, opened: RunOpened, at: Timestamp) {
        self.workflow_hash = Some(opened.workflow_hash);
        self.head = opened.git.as_ref().and_then(|it| it.head.clone());
        self.boot_id.clone_from(&opened.boot_id);
        self.opened = Some(Arc::new(opened));
        self.opened_at = at;
        self.status = RunStatus::UnderWay;
    }

    fn found(&mut self, adopted: Adopted) -> Result<(), Violation> {
        if self.adopted.is_some() || self.running > 0 {
            return Err(self.violation("the run is under way already"));
        }
        self.adopted = Some(adopted);
        Ok(())
    }

    fn export(&mut self, files: Vec<Exported>) -> Result<(), Violation> {
        if self.adopted.is_none() {
            return Err(self.violation("the run was not adopted"));
        }
        self.exported = files;
        self.acted_since_resume = true;
        Ok(())
    }

    /// An effect of an attempt that ended without a receipt is settled later.
    fn settle_effect(
        &mut self,
        step: &Address,
        attempt: u32,
        happened: bool,
    ) -> Result<(), Violation> {
        let is_its = |entry: &StepState| {
            let is_open = entry.effect == EffectState::Intended && !entry.phase.is_settled();
            entry.attempts == attempt && (entry.phase == Phase::Running || is_open)
        };
        let entry = self.entry_where(step, "at an effect", is_its)?;
        entry.effect = if happened { EffectState::Happened } else { EffectState::Absent };
        Ok(())
    }

    fn expand(&mut self, step: Address, group: GroupState) -> Result<(), Violation> {
        let before = self.groups.get(&step).map_or(&[][..], |it| &it.items);
        for gone in before {
            if group.items.iter().any(|item| item.key == gone.key) {
                continue;
            }
            let scope = step.item(&gone.key);
            let mut within = self.steps.noteworthy().filter(|(it, _)| it.is_within(&scope));
            if within.any(|(_, entry)| entry.phase == Phase::Running) {
                return Err(self.violation(format!("`{scope}` is still running")));
            }
        }
        self.groups.insert(step, group);
        Ok(())
    }

    fn invalidate(&mut self, step: &Address) -> Result<(), Violation> {
        let ended = self.loops.get_mut(step).filter(|it| it.ended.is_some());
        if let Some(turning) = ended {
            // Its turns stand; whether there is another one is asked again.
            turning.ended = None;
        } else {
            let is_over = |phase: Phase| phase.is_settled() || phase == Phase::Failed;
            let entry = self.in_phase(step, "finished", is_over)?;
            entry.phase = Phase::Stale;
            entry.failures = 0;
            (entry.free_tries, entry.free_wait_ms) = (FreeTries::default(), None);
        }
        // The turns after this one were taken on the strength of what counts no more.
        let mut scope = Some(step.clone());
        while let Some(inner) = scope {
            if let Some((group, key)) = inner.group_and_key()
                && let Some(turning) = self.loops.get_mut(&group)
                && let Ok(turn) = key.parse::<u32>()
            {
                *turning = LoopState { turns: turn.min(turning.turns), ended: None, ..*turning };
            }
            scope = inner.parent();
        }
        Ok(())
    }

    /// What a lost output was when it was found to be lost is no person's work.
    fn know_damage(&mut self, causes: &[Difference]) {
        let known = causes.iter().filter_map(|cause| {
            let path = cause.part.strip_prefix("writes.")?;
            Some((path.to_owned(), Digest::parse(cause.is.as_ref()?.as_bytes())?))
        });
        self.kept_by_hand.extend(known);
    }

    fn start(&mut self, started: Box<AttemptStarted>, at: Timestamp) -> Result<(), Violation> {
        self.must_be_under_way()?;
        let answers = self.answers_used_by(&started.key);
        let rescue = started.reverts.iter().filter_map(Revert::rescue_number).max();
        let kept = started.reverts.iter().filter(|it| it.keeps_in_place());
        let kept: Vec<Revert> = kept.cloned().collect();
        let seq = self.next_seq;
        let place = self.steps.position(&started.step);
        let (phase, attempts) = place.map_or((Phase::Pending, 0), |place| {
            let step = self.steps.glance_at(place);
            (step.phase(), step.attempts())
        });
        if started.attempt.checked_sub(1) != Some(attempts) {
            let why = format!("`{}` has {attempts} attempts", started.step);
            return Err(Violation { seq, why });
        }
        match phase {
            Phase::Pending | Phase::Lost | Phase::Stale | Phase::Failed => {}
            Phase::Running | Phase::Waiting | Phase::Done | Phase::Tolerated | Phase::Skipped => {
                let why = unfit(&started.step, phase, attempts, "pending or failed");
                return Err(Violation { seq, why });
            }
        }
        let place = place.unwrap_or_else(|| self.steps.add(started.step.clone()));
        let entry = self.steps.at_mut(place);
        entry.phase = Phase::Running;
        entry.attempts = started.attempt;
        entry.started_at = at;
        entry.session.clone_from(&started.session);
        entry.open_bill(started.continues);
        entry.effect = EffectState::None;
        entry.outlived_boot = false;
        entry.asked_since = None;
        entry.elsewhere = false;
        entry.after = None;
        entry.by_hand.clear();
        entry.head = None;
        entry.started = Some(started);
        self.rescues = self.rescues.max(rescue.unwrap_or(0));
        self.keep_by_hand(&kept);
        self.kept_at_starts.extend(kept);
        self.running += 1;
        self.acted_since_resume = true;
        for gate in answers {
            self.use_answer(&gate);
        }
        Ok(())
    }

    fn verify(&mut self, verified: AttemptVerified) -> Result<(), Violation> {
        let AttemptVerified { step, evidence, key, why: _ } = verified;
        if self.groups.contains_key(&step) || self.loops.contains_key(&step) {
            return Ok(());
        }
        let entry = self.in_phase(&step, "done", Phase::is_settled)?;
        if let Some(evidence) = evidence {
            let before = &entry.evidence.files;
            let is_known = |file: &&FileProof| {
                before.iter().any(|it| it.path == file.path && it.hash == file.hash)
            };
            let changed = evidence.files.iter().filter(|it| !is_known(it));
            let changed: Vec<_> = changed.map(|it| (it.path.clone(), it.hash)).collect();
            entry.by_hand.extend(changed);
            entry.evidence = evidence;
        }
        if let Some(key) = key {
            entry.key = Some(key);
        }
        Ok(())
    }

    fn finish(&mut self, finished: AttemptFinished, at: Timestamp) -> Result<(), Violation> {
        let AttemptFinished { step, attempt, outcome, ending: _, evidence, .. } = finished;
        let AttemptFinished { result, stdout, after, footprint, tolerated, head, .. } = finished;
        let entry = self.running_attempt(&step, attempt)?;
        entry.started_at = entry.started_at.plus_ms(finished.waited).min(at.max(entry.started_at));
        // No clock is trusted to have put its end between its start and this record.
        let at = finished.ended.map_or(at, |ended| ended.max(entry.started_at).min(at));
        entry.ended_at = at;
        entry.asked_since = None;
        entry.head = head.as_deref().map(Box::from);
        match outcome {
            Outcome::Done => {
                entry.phase = Phase::Done;
                entry.failure = None;
                // Of a finished attempt only the key is ever looked at again.
                entry.key = entry.started.take().map(|it| it.key);
                entry.evidence = evidence;
                entry.result = result.map(Arc::new);
                entry.stdout = stdout.map(Arc::from);
                self.streak.gain();
            }
            Outcome::Failed { cause, detail } => {
                entry.phase = Phase::Failed;
                entry.free_wait_ms = entry.free_tries.next(cause, entry.session.is_some());
                let is_free = entry.free_wait_ms.is_some();
                if is_free {
                    entry.free_tries.take(cause);
                }
                // A stop that was asked for and a provider's limit say nothing about the work.
                let says_nothing = cause == Cause::Interrupted || cause.is_limit() || is_free;
                entry.failures += u32::from(!says_nothing);
                entry.failure = Some(Box::new((cause, detail)));
                entry.after = after.map(Box::from);
                if tolerated {
                    entry.phase = Phase::Tolerated;
                    entry.key = entry.started.take().map(|it| it.key);
                    entry.evidence = Evidence::default();
                    entry.result = None;
                    entry.stdout = None;
                    entry.after = None;
                }
                let started_at = entry.started_at;
                // The run goes on: that is progress, too.
                if tolerated {
                    self.streak.gain();
                } else {
                    self.streak.fail(started_at, cause);
                }
            }
        }
        self.running -= 1;
        self.head = head.or(self.head.take());
        if self.phase(&step).is_settled() {
            self.leave(&step, &footprint, at);
            self.tell_answers(&step);
        }
        if self.running > 0 && !footprint.is_empty() {
            self.shared.insert(step, footprint);
        }
        Ok(())
    }

    fn adopt(&mut self, adopted: AttemptAdopted, at: Timestamp) -> Result<(), Violation> {
        let dialect = self.adopted.as_ref().map(|it| it.dialect.as_str());
        let elsewhere = dialect == Some(adopted.source.as_str());
        let entry =
            self.entry_where(&adopted.step, "unfinished", |entry| entry.phase != Phase::Done)?;
        let was_running = entry.phase == Phase::Running;
        let is_new = entry.phase == Phase::Pending;
        // Work of our own interrupted attempt has a known key; work from elsewhere has none.
        let started = entry.started.take().filter(|_| was_running);
        entry.key = started.map(|it| it.key);
        entry.phase = Phase::Done;
        entry.failure = None;
        // What a person did by hand is that person's, also when it counts as the step's work.
        let files = adopted.evidence.files.iter().filter(|_| adopted.source == PERSON);
        entry.by_hand = files.map(|it| (it.path.clone(), it.hash)).collect();
        entry.evidence = adopted.evidence;
        entry.result = adopted.result.map(Arc::new);
        entry.ended_at = at;
        entry.asked_since = None;
        entry.elsewhere = elsewhere;
        self.running -= u32::from(was_running);
        self.streak.gain();
        if elsewhere && is_new {
            // The other system came further, and has acted on the answers there were.
            for gate in self.unused_answers.clone() {
                self.use_answer(&gate);
            }
            self.untold_answers.clear();
        }
        Ok(())
    }

    fn must_be_under_way(&self) -> Result<(), Violation> {
        match self.status {
            RunStatus::UnderWay => Ok(()),
            RunStatus::Unopened | RunStatus::Paused { .. } | RunStatus::Ended { .. } => {
                Err(self.violation(format!("the run is {:?}", self.status)))
            }
        }
    }

    fn must_be_idle(&self) -> Result<(), Violation> {
        if self.running > 0 {
            return Err(self.violation(format!("{} attempts are running", self.running)));
        }
        Ok(())
    }

    fn skip(
        &mut self,
        step: &Address,
        reads: BTreeMap<String, Digest>,
        needs: BTreeMap<String, Digest>,
        at: Timestamp,
    ) -> Result<(), Violation> {
        // A person may pass over an open gate too.
        let may = |phase: Phase| phase.is_startable() || phase == Phase::Waiting;
        let entry = self.in_phase(step, "pending", may)?;
        entry.phase = Phase::Skipped;
        entry.key = Some(Key::from(&KeyParts { reads, needs, ..KeyParts::default() }));
        entry.ended_at = at;
        Ok(())
    }

    fn in_phase(
        &mut self,
        step: &Address,
        wanted: &str,
        fits: impl Fn(Phase) -> bool,
    ) -> Result<&mut StepState, Violation> {
        self.entry_where(step, wanted, |entry| fits(entry.phase))
    }

    fn running_attempt(
        &mut self,
        step: &Address,
        attempt: u32,
    ) -> Result<&mut StepState, Violation> {
        self.entry_where(step, format_args!("running attempt {attempt}"), |entry| {
            entry.phase == Phase::Running && entry.attempts == attempt
        })
    }

    /// The step's entry, made on first mention, if it `fits`.
    pub(super) fn entry_where(
        &mut self,
        step: &Address,
        wanted: impl Display,
        fits: impl Fn(&StepState) -> bool,
    ) -> Result<&mut StepState, Violation> {
        let index = match self.steps.position(step) {
            Some(index) => index,
            None if fits(&StepState::default()) => self.steps.add(step.clone()),
            None => return Err(self.violation(format!("step `{step}` is unknown, not {wanted}"))),
        };
        let StepState { phase, attempts, .. } = *self.steps.at(index);
        if !fits(self.steps.at(index)) {
            return Err(self.violation(unfit(step, phase, attempts, wanted)));
        }
        Ok(self.steps.at_mut(index))
    }

    pub(super) fn violation(&self, why: impl Into<String>) -> Violation {
        Violation { seq: self.next_seq, why: why.into() }
    }
}

fn unfit(step: &Address, phase: Phase, attempts: u32, wanted: impl Display) -> String {
    format!("step `{step}` is {} at attempt {attempts}, not {wanted}", phase.as_str())
}
