//! What follows from what was found for work that stands on it: attempts whose result cannot count,
//! lists that changed, and what people made of outputs that are made again.
//!
//! Invariant: each of these is decided on the run as it is when everything else of the resume is
//! folded in, so that the plan says what becomes of a step in the end.

use std::collections::BTreeSet;

use super::{
    Resumption, Why, checks, foresee,
    outdated::{changed_needs, retaken_for},
    resumption::decided,
};
use crate::{
    address::Address,
    event::{Event, Item, Revert},
    facts::Facts,
    finding::{Code, Finding},
    graph::{NodeId, Role},
    key::Difference,
    overwritten::written,
    recovery::{Decision, Rung},
    run::Run,
    state::{EffectState, Phase, StepState},
    survey::{InFlight, Relisted, Survey, Writes},
};

const SUPERSEDED: &str = "a step before it runs again, so its result cannot count";
const CAME_OUT_OTHERWISE: &str = "what it was made from changed, so its result cannot count";

impl Resumption {
    /// Groups whose list changed: new items run, known ones keep, those that are no longer listed
    /// are reported and stay as they are.
    pub(super) fn relist(&mut self, run: &Run, survey: &Survey) {
        for (group, listed) in &survey.relisted {
            let Some(known) = run.state.groups.get(group) else { continue };
            if listed.files.is_empty() && survey.edited.is_none() {
                continue;
            }
            if self.choices.keeps(group) {
                self.explain(group, "kept", "its list changed; it is kept, as asked".to_owned());
                continue;
            }
            let gone = difference(&known.items, &listed.items);
            let scopes: Vec<Address> = gone.iter().map(|it| group.item(&it.key)).collect();
            let inside = |step: &Address| scopes.iter().any(|scope| step.is_within(scope));
            let running: Vec<(&Address, &StepState)> =
                run.state.steps.noteworthy().filter(|it| it.1.phase == Phase::Running).collect();
            let running = running.into_iter().filter(|(step, _)| inside(step) && !self.loses(step));
            let running: Vec<(&Address, &StepState)> = running.collect();
            // What it does beyond this machine is waited for; the list is looked at again then.
            if running.iter().any(|(_, entry)| entry.effect != EffectState::None) {
                continue;
            }
            for (step, entry) in &running {
                let unseen = InFlight::default();
                let seen = survey.in_flight.get(*step).unwrap_or(&unseen);
                self.supersede_one((step, entry), seen, survey.kept_of(step), &[]);
            }
            self.report_list(group, &known.items, listed);
            // A person says first which version of its files counts.
            if running.iter().any(|(step, _)| !self.loses(step)) {
                continue;
            }
            self.invalidate_changed(run, group, &known.items, &listed.items);
            let (items, needs) = (listed.items.clone(), known.needs.clone());
            self.events.push(Event::GroupExpanded { step: group.clone(), items, needs });
        }
    }

    /// The items that these lists do not have any more.
    pub(super) fn unlisted_items(&self, run: &Run, survey: &Survey) -> Vec<Address> {
        let mut all = Vec::new();
        for (group, listed) in &survey.relisted {
            let counts = !listed.files.is_empty() || survey.edited.is_some();
            let known = run.state.groups.get(group).filter(|_| counts);
            let Some(known) = known.filter(|_| !self.choices.keeps(group)) else { continue };
            let gone = difference(&known.items, &listed.items);
            all.extend(gone.into_iter().map(|it| group.item(&it.key)));
        }
        all
    }

    pub(super) fn is_unlisted(&self, step: &Address) -> bool {
        self.unlisted.iter().any(|item| step.is_within(item))
    }

    fn report_list(&mut self, group: &Address, was: &[Item], listed: &Relisted) {
        let keys = |items: &[Item], other: &[Item]| -> Vec<String> {
            let is_new = |it: &&Item| !other.iter().any(|known| known.key == it.key);
            items.iter().filter(is_new).map(|it| it.key.clone()).collect()
        };
        let mut parts = Vec::new();
        for (names, what) in [
            (keys(&listed.items, was), "new"),
            (keys(was, &listed.items), "no longer listed, and left as they are"),
        ] {
            if !names.is_empty() {
                parts.push(format!("{}: {what}", names.join(", ")));
            }
        }
        if parts.is_empty() {
            parts.push("other values or another order".to_owned());
        }
        let (code, by, hint) = match listed.files.first() {
            Some(_) => (
                Code::ItemsChanged,
                format!("{} changed", listed.files.join(", ")),
                format!(
                    "accepted, the new list counts; `--keep {}` keeps the old one",
                    group.in_commands()
                ),
            ),
            None => (
                Code::WorkflowChanged,
                "the workflow file was edited".to_owned(),
                "new items run, the others are kept".to_owned(),
            ),
        };
        let message = format!("{group} has another list, because {by} ({})", parts.join("; "));
        let mut finding = Finding::new(code, message).at_step(group).with_hint(hint);
        if let Some(path) = listed.files.first() {
            finding = finding.at_path(path);
        }
        self.findings.push(finding);
    }

    /// An item of the same key that says something else is another one.
    fn invalidate_changed(&mut self, run: &Run, group: &Address, was: &[Item], is: &[Item]) {
        for item in was {
            let now = is.iter().find(|it| it.key == item.key);
            let Some(now) = now.filter(|it| it.value != item.value) else { continue };
            let scope = group.item(&item.key);
            let cause = Difference {
                part: format!("items.{group}"),
                was: Some(item.value.to_string()),
                is: Some(now.value.to_string()),
            };
            let settled = run.state.steps.glances().filter(|(step, entry)| {
                entry.phase().is_settled() && (**step == scope || step.is_within(&scope))
            });
            for (step, _) in settled.collect::<Vec<_>>() {
                if self.invalidates(step) {
                    continue;
                }
                let why = Why::changed(&cause, "its item is another one now");
                self.reasons.entry(step.clone()).or_default().push(why);
                let causes = vec![cause.clone()];
                self.events.push(Event::StepInvalidated { step: step.clone(), causes });
            }
        }
    }

    /// Attempts in flight that stand on work which is made again: they are ended, their changes go
    /// to the rescue, and they run again when what they need is there.
    pub(super) fn supersede(&mut self, run: &Run, survey: &Survey) {
        if run.state.adopted.is_some() {
            // What its files prove may count, whatever the journal says of what is before it.
            return;
        }
        if self.rungs.is_empty() {
            return;
        }
        let Some(after) = self.foreseen(run, survey) else { return };
        for step in self.to_probe.clone() {
            let id = after.graph.find(&step);
            if id.is_some_and(|id| !retaken_for(&after, id).is_empty()) {
                self.probe_anyway(&step);
            }
        }
        let mut given_up = Vec::new();
        for (step, row) in &self.rungs {
            let takes = match row.decision {
                Decision::AdoptSeal | Decision::Reattach => true,
                Decision::Start
                | Decision::AdoptProof
                | Decision::Continue
                | Decision::Rerun
                | Decision::RevertThenRerun
                | Decision::Ask
                | Decision::Refuse => false,
            };
            let is_open = takes && after.state.phase(step) == Phase::Running;
            let seen = survey.in_flight.get(step);
            let changed = seen.map_or(&[][..], |seen| &seen.reverts);
            if is_open && !self.may_count(&after, step, changed) {
                let id = after.graph.find(step);
                let causes = id.map(|id| changed_needs(&after, id)).unwrap_or_default();
                given_up.push((step.clone(), causes));
            }
        }
        for (step, causes) in given_up {
            let Some(entry) = run.state.step(&step) else { continue };
            // What may have happened beyond this machine is never broken off.
            if entry.effect == EffectState::None {
                let unseen = InFlight::default();
                let seen = survey.in_flight.get(&step).unwrap_or(&unseen);
                self.supersede_one((&step, entry), seen, survey.kept_of(&step), &causes);
            }
        }
    }

    /// Whether all that an attempt in flight stands on is there, or is only made again because its
    /// outputs are gone, so that it may well come out the same; and none of that replaces what the
    /// attempt changed.
    fn may_count(&self, after: &Run, step: &Address, changed: &[Revert]) -> bool {
        let Some(id) = after.graph.find(step) else { return false };
        if !changed_needs(after, id).is_empty() {
            return false;
        }
        let (mut rest, mut seen) = (after.graph.effective_needs(id), BTreeSet::new());
        while let Some(need) = rest.pop() {
            let node = after.graph.node(need);
            if node.is_settled() || !seen.insert(need) {
                continue;
            }
            rest.extend(&node.children);
            rest.extend(after.graph.effective_needs(need));
            let waits = match after.state.phase(&node.address) {
                Phase::Done | Phase::Skipped | Phase::Tolerated => !node.is_reachable(),
                Phase::Stale => {
                    let left = written(&after.state, &node.address);
                    let replaces = |it: &Revert| left.iter().any(|(path, _)| *path == it.path);
                    self.only_gone(&node.address) && !changed.iter().any(replaces)
                }
                Phase::Pending | Phase::Running | Phase::Waiting | Phase::Failed | Phase::Lost => {
                    node.role != Role::Leaf && !node.children.is_empty()
                }
            };
            if !waits {
                return false;
            }
        }
        true
    }

    /// It is made again for no other reason than that its outputs are gone.
    fn only_gone(&self, step: &Address) -> bool {
        let is_it = |event: &Event| {
            matches!(event, Event::StepInvalidated { step: of, causes }
                if of == step && causes.iter().all(|it| it.part.starts_with("writes.")))
        };
        self.events.iter().any(is_it)
    }

    /// `causes`: what it was made from and is there, but not as it was.
    fn supersede_one(
        &mut self,
        (step, entry): (&Address, &StepState),
        seen: &InFlight,
        kept: &[Revert],
        causes: &[Difference],
    ) {
        let why = if causes.is_empty() { SUPERSEDED } else { CAME_OUT_OTHERWISE };
        self.explain(step, Rung::Superseded.as_str(), why.to_owned());
        let whys = causes.iter().map(|cause| Why::changed(cause, "its output changed"));
        self.reasons.entry(step.clone()).or_default().extend(whys);
        self.give_up(step, entry, seen, kept, (Rung::Superseded, why));
    }

    /// Gives up an attempt that ended or lives; what is contested is asked about first.
    pub(super) fn give_up(
        &mut self,
        step: &Address,
        entry: &StepState,
        seen: &InFlight,
        kept: &[Revert],
        (rung, why): (Rung, &str),
    ) {
        if self.edited.remove(step).is_some() {
            self.forget_change(step);
        }
        self.superseded.insert(step.clone());
        if seen.contested.is_empty() {
            self.lose(step, entry, rung, &seen.reverts);
        } else if self.contest(step, why, &seen.contested, kept) {
            self.lose(step, entry, rung, &[]);
        } else {
            return;
        }
        if seen.facts.alive && !seen.facts.sealed {
            self.to_stop.insert(step.clone());
        }
    }

    /// The run when its first steps start, as far as that is known without another look.
    fn foreseen(&self, run: &Run, survey: &Survey) -> Option<Run> {
        let mut after = self.folded(run, survey).ok()?;
        if run.state.adopted.is_none() && !self.is_over {
            foresee(&mut after, &Facts::default(), survey.now).ok()?;
        }
        Some(after)
    }

    /// What a person made of a file is kept in a rescue before a step replaces it, and that it is
    /// replaced is asked about first.
    pub(super) fn replace(&mut self, run: &Run, survey: &Survey) {
        let is_none = survey.by_hand.is_empty() && survey.strange_by_hand.is_empty();
        // Where nothing starts, nothing is replaced.
        if is_none || self.is_over || checks::is_over_budget(run) {
            return;
        }
        let Some(after) = self.foreseen(run, survey) else { return };
        for (step, reverts) in &survey.by_hand {
            // Asked about, and announced, with the attempt.
            if self.contested.contains(step) {
                continue;
            }
            // A turn that is no more, because its loop turns again, leaves its file to the turns to
            // come; and so does an attempt that is taken as done.
            let stays = self.edited.contains_key(step) || self.kept.contains(step);
            let open = after.graph.find(step).filter(|_| !stays);
            let open = open.filter(|id| !after.graph.node(*id).is_settled());
            if self.is_only_recorded(run, survey, step) {
                continue;
            }
            let Some(id) = open else {
                for revert in reverts {
                    self.replace_later(&after, survey, Some(step), revert);
                }
                continue;
            };
            let is_sure = is_sure(&after, id);
            let can_be_kept = self.can_be_kept(run, survey, step);
            for revert in reverts {
                let (path, rescue) = (&revert.path, &revert.rescue);
                let mut by = survey.overwriters.get(path).into_iter().flatten();
                let is_declared = by.any(|it| it.step == *step && it.how != Writes::Before);
                let (word, what) = match (is_sure, is_declared) {
                    (true, true) => ("will be", ""),
                    (true, false) => ("may be", "if it changes it again, "),
                    (false, _) => ("may be", "if what it needs comes out otherwise, "),
                };
                let number = revert.rescue_number().unwrap_or_default();
                let message = format!(
                    "{path} of {step}, which a person changed, {word} replaced, saved as rescue \
                     {number}"
                );
                let mut hint = format!("accepted, it is kept in {rescue}");
                if can_be_kept {
                    hint = format!("{hint}; `--keep {}` keeps it", step.in_commands());
                }
                self.ask_to_replace(step, path, message, hint);
                let detail = format!("{what}{path} is replaced; it is kept in {rescue}");
                self.explain(step, "artifact-replaced", detail);
            }
            self.reverts.extend(reverts.iter().cloned());
        }
        for revert in &survey.strange_by_hand {
            if self.replace_later(&after, survey, None, revert) {
                let is_dirt = |it: &&mut Finding| it.code == Code::DirtyTree.as_str();
                let dirt = self.findings.iter_mut().filter(is_dirt);
                for finding in dirt.filter(|it| it.step.is_none()) {
                    let hint = "they stay, but for what a step replaces, which is saved first";
                    finding.hint = Some(hint.to_owned());
                }
            }
        }
    }

    /// What a step changed in place and is to change once more.
    pub(super) fn undo_redone(&mut self, survey: &Survey) {
        for (step, reverts) in &survey.redone {
            let Some(first) = reverts.first().filter(|_| self.invalidates(step)) else { continue };
            let detail = format!("what it changed is undone first, and kept in {}", first.rescue);
            self.explain(step, "undone", detail);
            self.reverts.extend(reverts.iter().cloned());
        }
    }

    /// What a person had not committed, and an attempt replaced by a commit that stays.
    pub(super) fn keep_overlaid(&mut self, survey: &Survey) {
        let is_over = self.is_over;
        for (step, reverts) in survey.overlaid.iter().filter(|_| !is_over) {
            for Revert { path, rescue, .. } in reverts {
                let what = "was not committed, and a commit of its attempt replaced it";
                let detail = format!("{path} {what}; it is kept in {rescue}");
                self.explain(step, "artifact-replaced", detail);
            }
            self.reverts.extend(reverts.iter().cloned());
        }
    }

    /// Whether `--keep` would leave it as it is.
    fn can_be_kept(&self, run: &Run, survey: &Survey, step: &Address) -> bool {
        let mut choices = self.choices.clone();
        choices.keep.push(step.clone());
        let is_done = run.state.phase(step) == Phase::Done;
        is_done && !decided(run, survey, &choices).invalidates(step)
    }

    /// An attempt that failed while the engine was down: its end is recorded, and before another
    /// try its files are looked at again, unless the step keeps them.
    fn is_only_recorded(&self, run: &Run, survey: &Survey, step: &Address) -> bool {
        let takes = self.rungs.get(step).is_some_and(|it| it.decision == Decision::AdoptSeal);
        let failed = survey.in_flight.get(step).is_some_and(|it| it.failed.is_some());
        let id = run.graph.find(step);
        let keeps = id.is_some_and(|id| run.defs.step(run.graph.node(id).def).keep);
        takes && failed && !keeps && !self.superseded.contains(step)
    }

    /// What the step that made it leaves alone may be written by another one. Whether it may.
    fn replace_later(
        &mut self,
        after: &Run,
        survey: &Survey,
        maker: Option<&Address>,
        revert: &Revert,
    ) -> bool {
        let (path, rescue) = (&revert.path, &revert.rescue);
        let by = survey.overwriters.get(path).into_iter().flatten();
        let open = by.filter_map(|it| {
            let id = self.may_come_in(after, &it.step)?;
            let node = after.graph.node(id);
            // The maker itself is no later one, unless its turn is no more, and may come again.
            let is_later = Some(&node.address) != maker && !node.is_settled();
            let is_leaf = node.role == Role::Leaf;
            let is_named = it.how == Writes::Named;
            is_later.then(|| (&node.address, it.how, is_named && is_leaf && is_sure(after, id)))
        });
        // The surest of them is named.
        let Some((later, how, is_sure)) = open.max_by_key(|(_, how, is_sure)| (*is_sure, *how))
        else {
            return false;
        };
        let word = if is_sure { "will be" } else { "may be" };
        if how != Writes::Perhaps {
            let of = maker.map(|maker| format!(" of {maker}")).unwrap_or_default();
            let number = revert.rescue_number().unwrap_or_default();
            let message = format!(
                "{path}{of}, which a person changed, {word} replaced by {later}, saved as rescue \
                 {number}"
            );
            let hint = format!("accepted, it is kept in {rescue}, and stays until then");
            self.ask_to_replace(later, path, message, hint);
        }
        let detail = format!("{path} {word} replaced by {later}; it is kept in {rescue}");
        if let Some(maker) = maker {
            self.explain(maker, "artifact-replaced", detail.clone());
        }
        self.explain(later, "artifact-replaced", detail);
        self.reverts.push(revert.clone());
        true
    }

    /// The step, or the loop or group in which it may come again, where its turn is no more.
    fn may_come_in(&self, after: &Run, step: &Address) -> Option<NodeId> {
        if self.is_unlisted(step) {
            return None;
        }
        let is_there = after.graph.find(step);
        let mut scope = Some(step.clone()).filter(|_| is_there.is_none());
        while let Some(inner) = scope {
            let around = inner.group_and_key().and_then(|(group, _)| after.graph.find(&group));
            if around.is_some() {
                return around;
            }
            // A step that the workflow has no more comes no more.
            scope = inner.parent().filter(|it| after.graph.find(it).is_none());
        }
        is_there
    }

    fn ask_to_replace(&mut self, step: &Address, path: &str, message: String, hint: String) {
        let finding = Finding::new(Code::ArtifactReplaced, message.clone());
        let finding = finding.at_step(step).at_path(path).with_hint(hint);
        if !self.choices.accept(&finding) {
            self.needs.push(message);
        }
        self.findings.push(finding);
    }

    pub(super) fn invalidates(&self, step: &Address) -> bool {
        let is_it =
            |it: &Event| matches!(it, Event::StepInvalidated { step: of, .. } if of == step);
        self.events.iter().any(is_it)
    }
}

/// It runs whatever becomes of others.
fn is_sure(after: &Run, id: NodeId) -> bool {
    let node = after.graph.node(id);
    !after.state.phase(&node.address).is_settled() || node.is_reachable()
}

/// Items that are not in the other list.
fn difference<'a>(of: &'a [Item], other: &[Item]) -> Vec<&'a Item> {
    of.iter().filter(|it| !other.iter().any(|known| known.key == it.key)).collect()
}
