//! Fan-outs that are too large for a line each: one line with a count, when they are over.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    event::{Event, Record},
    run::Run,
    state::Phase,
    time::Timestamp,
    view::is_stopped,
};

use crate::style::took;

/// Fan-outs of more items than this are folded.
const FOLD_OVER: usize = 20;

#[derive(Default)]
pub(crate) struct Folds(BTreeMap<Address, Fold>);

struct Fold {
    items: usize,
    began: Option<Timestamp>,
    /// Its line was shown.
    told: bool,
}

/// Lines about steps of a large fan-out that follow each other and say the same.
#[derive(Default)]
pub(crate) struct Repeats(Option<Repeated>);

struct Repeated {
    group: Address,
    first: Address,
    head: String,
    said: String,
    count: usize,
    at: Timestamp,
}

/// Whether it may be said of many steps of a fan-out, one right after the other.
pub(crate) fn repeats(event: &Event) -> bool {
    matches!(
        event,
        Event::StepSkipped { .. }
            | Event::AttemptLost { .. }
            | Event::AttemptAdopted(_)
            | Event::StepInvalidated { .. }
    )
}

impl Repeats {
    /// One more; gives the line of what came before it, where that said something else.
    pub(crate) fn add(
        &mut self,
        (group, step): (Address, &Address),
        (head, said): (&str, &str),
        at: Timestamp,
    ) -> Option<(Timestamp, String)> {
        if let Some(it) = &mut self.0
            && it.group == group
            && it.head == head
            && it.said == said
        {
            it.count += 1;
            return None;
        }
        let before = self.end();
        let (first, head, said) = (step.clone(), head.to_owned(), said.to_owned());
        self.0 = Some(Repeated { group, first, head, said, count: 1, at });
        before
    }

    /// The line of what was gathered.
    pub(crate) fn end(&mut self) -> Option<(Timestamp, String)> {
        let Repeated { group, first, head, said, count, at } = self.0.take()?;
        let line = match count {
            1 => format!("{head} {first}  {said}"),
            count => format!("{head} {group}  {count} steps: {said}"),
        };
        Some((at, line))
    }
}

/// Steps that are taken over one after the other, with what their loops and conditions come to
/// meanwhile: another system's run is hundreds of them.
#[derive(Default)]
pub(crate) struct TakenOver {
    held: Vec<Record>,
    /// When this process heard of the first.
    since: Timestamp,
}

/// They are held back no longer than this, whatever comes.
const HELD_MS: u64 = 1_000;

impl TakenOver {
    /// Whether the record belongs to these, and is told with them later.
    pub(crate) fn takes(&self, event: &Event) -> bool {
        match event {
            Event::AttemptAdopted(_) => true,
            Event::LoopTurned { .. } | Event::LoopEnded { .. } | Event::StepSkipped { .. } => {
                !self.held.is_empty()
            }
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunResumed(_)
            | Event::RunPaused { .. }
            | Event::RunEnded { .. }
            | Event::RunArchived { .. }
            | Event::GroupExpanded { .. }
            | Event::StepInvalidated { .. }
            | Event::AttemptStarted(_)
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::AttemptFinished(_)
            | Event::AttemptLost { .. }
            | Event::AttemptVerified(_)
            | Event::GateOpened { .. }
            | Event::GateDecided { .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { .. } => false,
        }
    }

    pub(crate) fn add(&mut self, record: &Record, now: Timestamp) {
        if self.held.is_empty() {
            self.since = now;
        }
        self.held.push(record.clone());
    }

    pub(crate) fn is_late(&self, now: Timestamp) -> bool {
        !self.held.is_empty() && now.ms_since(self.since) >= HELD_MS
    }

    /// What is told of them: one line in the place of many, and each of the others for itself.
    pub(crate) fn end(&mut self) -> (Option<(Timestamp, String)>, Vec<Record>) {
        let mut held = std::mem::take(&mut self.held);
        let source = |it: &Record| {
            let Event::AttemptAdopted(adopted) = &it.event else { return None };
            Some(adopted.source.clone())
        };
        let steps = held.iter().filter_map(source).count();
        let last = held.iter().rposition(|it| source(it).is_some());
        let Some(last) = last.filter(|_| steps > FOLD_OVER) else { return (None, held) };
        let rest = held.split_off(last + 1);
        let from: BTreeSet<String> = held.iter().filter_map(source).collect();
        let from: Vec<String> = from.into_iter().collect();
        (Some((held[last].at, format!("{steps} steps  from {}", from.join(", ")))), rest)
    }
}

impl Folds {
    pub(crate) fn of(run: &Run) -> Self {
        let mut folds = Self::default();
        for (group, state) in &run.state.groups {
            folds.open(group, state.items.len());
        }
        folds
    }

    pub(crate) fn open(&mut self, group: &Address, items: usize) {
        if items > FOLD_OVER {
            self.0.insert(group.clone(), Fold { items, began: None, told: false });
        }
    }

    /// The large fan-out around a step.
    pub(crate) fn around(&self, step: &Address) -> Option<Address> {
        if self.0.is_empty() {
            return None;
        }
        let mut scope = Some(step.clone());
        while let Some(inner) = scope {
            if let Some((group, _)) = inner.group_and_key()
                && self.0.contains_key(&group)
            {
                return Some(group);
            }
            scope = inner.parent();
        }
        None
    }

    /// Whether the step stands in a large fan-out, which then has begun.
    pub(crate) fn begin(&mut self, step: &Address, at: Timestamp) -> bool {
        let group = self.around(step);
        let Some(fold) = group.and_then(|group| self.0.get_mut(&group)) else { return false };
        fold.began.get_or_insert(at);
        true
    }

    /// The line of a fan-out all of which is over, once.
    pub(crate) fn over(&mut self, run: &Run, group: &Address, at: Timestamp) -> Option<String> {
        let id = run.graph.find(group)?;
        let fold = self.0.get_mut(group).filter(|it| !it.told)?;
        if !run.graph.node(id).is_settled() {
            return None;
        }
        fold.told = true;
        let span = took(fold.began.map_or(0, |began| at.ms_since(began)));
        Some(format!("{group}  all {}, {span}", fold.items))
    }

    /// A line for each that began and is not over.
    pub(crate) fn still_open(&mut self, run: &Run, at: Timestamp) -> Vec<String> {
        let mut lines = Vec::new();
        for (group, fold) in self.0.iter_mut().filter(|(_, it)| !it.told) {
            let (Some(began), Some(id)) = (fold.began, run.graph.find(group)) else { continue };
            fold.told = true;
            let items = &run.graph.node(id).children;
            let done = items.iter().filter(|item| run.graph.node(**item).is_settled()).count();
            let failed = items.iter().filter(|it| run.graph.has_failed(**it, &run.state)).count();
            let stopped = stopped_items(run, group);
            let failed = failed.saturating_sub(stopped);
            let mut said = vec![format!("{group}  {done} of {} done", fold.items)];
            said.extend((failed > 0).then(|| format!("{failed} failed")));
            said.extend((stopped > 0).then(|| format!("{stopped} stopped")));
            said.push(took(at.ms_since(began)));
            lines.push(said.join(", "));
        }
        lines
    }
}

/// How many items of a fan-out the user stopped, and nothing else went wrong in.
fn stopped_items(run: &Run, group: &Address) -> usize {
    let (mut stopped, mut failed) = (BTreeSet::new(), BTreeSet::new());
    for (step, entry) in run.state.steps.noteworthy().filter(|(_, it)| it.phase == Phase::Failed) {
        let mut scope = Some(step.clone());
        while let Some(inner) = scope {
            if inner.group_and_key().is_some_and(|(around, _)| around == *group) {
                let of = if is_stopped(entry) { &mut stopped } else { &mut failed };
                of.insert(inner);
                break;
            }
            scope = inner.parent();
        }
    }
    stopped.difference(&failed).count()
}
