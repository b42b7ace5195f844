//! What an outsider sees of the simulated world: which window a crash falls into, which steps were
//! finished when the lights went out, which gates are open.

use std::collections::BTreeMap;

use onward_core::{
    address::Address, digest::Digest, event::Event, evidence::Outcome, launch::Seal,
};

use super::SimWorld;
use crate::crash::{Window, readable};

/// What can be read of a step that is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// Its seal, of a success.
    Sealed,
    /// Its finish record.
    Recorded,
}

impl SimWorld {
    pub(super) fn note_windows(&mut self) {
        let current = self.disk.read("run/journal.jsonl").unwrap_or_default().to_vec();
        let synced = self.disk.synced("run/journal.jsonl").unwrap_or_default().to_vec();
        if current.len() > synced.len() {
            self.windows.insert(Window::BeforeSync);
        }
        if !self.supervisor.agents.is_empty() {
            self.windows.insert(Window::Running);
        }
        if self.supervisor.unsealed.is_some() {
            self.windows.insert(Window::ExitToSeal);
        }
        if self.supervisor.recording.is_some() {
            self.windows.insert(Window::SealToSnapshot);
        }
        let events = readable(&synced);
        let finished = |step: &Address, attempt: u32| {
            events.iter().any(|event| match event {
                Event::AttemptFinished(it) => it.step == *step && it.attempt == attempt,
                Event::AttemptLost { step: lost, attempt: number, .. } => {
                    lost == step && *number == attempt
                }
                _ => false,
            })
        };
        if self.supervisor.seals.iter().any(|seal| !finished(&seal.step, seal.attempt)) {
            self.windows.insert(Window::SealToJournal);
        }
        for event in &events {
            if let Event::AttemptStarted(it) = event
                && !self.spawns.contains_key(&(it.step.clone(), it.attempt))
                && !finished(&it.step, it.attempt)
            {
                self.windows.insert(Window::SyncToSpawn);
                if !it.reverts.is_empty() {
                    self.windows.insert(Window::RescueToUndo);
                }
            }
        }
        if let Some(Event::RunResumed(resumed)) = events.last()
            && !resumed.reverts.is_empty()
        {
            self.windows.insert(Window::RescueToUndo);
        }
        if self.undoing {
            self.windows.insert(Window::DuringUndo);
        }
    }

    /// Finished work runs again only when a person took it away, and the journal says so first.
    pub(super) fn check_that_it_may_run(&mut self, (step, attempt): &(Address, u32)) {
        let Some(finished) = self.finished.remove(step) else { return };
        let journal = self.disk.read("run/journal.jsonl").unwrap_or_default();
        let journal = String::from_utf8_lossy(journal);
        let story = format!("{step}, attempt {attempt}: {}\n{journal}", self.story);
        match finished {
            Finished::Recorded if self.may_have_lost(step) => {}
            // What it rests on may be gone, and is made again first.
            Finished::Sealed if self.lazy && self.boot > 1 => {}
            Finished::Sealed => {
                let may = self.taken.files || self.taken.commits;
                assert!(may, "it was finished: {story}");
            }
            Finished::Recorded => assert!(self.taken.commits, "it was done: {story}"),
        }
        let events = readable(self.disk.synced("run/journal.jsonl").unwrap_or_default());
        let started = |event: &Event| match event {
            Event::AttemptStarted(it) => it.step == *step && it.attempt < *attempt,
            _ => false,
        };
        let since = events.iter().rposition(started).unwrap_or(0);
        let is_named = events[since..].iter().any(|event| match event {
            Event::StepInvalidated { step: it, .. } | Event::AttemptLost { step: it, .. } => {
                it == step
            }
            Event::AttemptFinished(it) => it.step == *step && it.outcome != Outcome::Done,
            _ => false,
        });
        assert!(is_named, "it was finished, and nothing says why it counts no more: {story}");
    }

    /// A power cut may have taken what the step left: it says `durability: process`.
    pub(crate) fn may_have_lost(&self, step: &Address) -> bool {
        self.lazy && self.boot > 1 && !step.as_str().starts_with("full")
    }

    /// What can be read after a power cut is all that was finished. Nothing looks again at what a
    /// completed run left: that it is there is not promised.
    pub(super) fn keep_what_is_over(&mut self) {
        self.finished.clear();
        let events = readable(self.disk.read("run/journal.jsonl").unwrap_or_default());
        if self.lazy && matches!(events.last(), Some(Event::RunEnded { .. })) {
            self.disk.sync_all();
        }
    }

    /// Finished = its seal of a success, or its finish record, can be read after the crash.
    pub(super) fn remember_finished(&mut self) {
        let events = readable(self.disk.read("run/journal.jsonl").unwrap_or_default());
        for event in &events {
            match event {
                Event::AttemptStarted(it) => {
                    let is_its = |seal: &&Seal| seal.step == it.step && seal.attempt == it.attempt;
                    let seal = self.supervisor.told().0.into_iter().find(is_its);
                    if seal.is_some_and(|seal| seal.ending.is_success()) {
                        self.finished.entry(it.step.clone()).or_insert(Finished::Sealed);
                    }
                }
                Event::AttemptFinished(it) if it.outcome == Outcome::Done => {
                    self.finished.insert(it.step.clone(), Finished::Recorded);
                }
                Event::AttemptAdopted(it) => {
                    self.finished.insert(it.step.clone(), Finished::Recorded);
                }
                _ => {}
            }
        }
        self.open_gates.clear();
        for event in events {
            self.see_gate(&event);
        }
    }

    /// What is said to be another system's files is what they are: nothing happens between the look
    /// and the commit.
    pub(super) fn check_exported(&self, event: &Event) {
        let Event::NativeExported { files } = event else { return };
        let known: BTreeMap<&str, Digest> =
            files.iter().map(|file| (file.path.as_str(), file.hash)).collect();
        let site = self.site.as_ref().expect("a run is adopted");
        let files = self.site_files(site);
        let there = files.iter().map(|(path, file)| (path, Digest::of(&file.bytes)));
        assert_eq!(known, there.collect(), "{}", self.story);
    }

    pub(super) fn see_gate(&mut self, event: &Event) {
        match event {
            Event::GateOpened { step, hash, .. } => {
                self.open_gates.insert(step.clone(), *hash);
            }
            Event::GateDecided { step, .. } => {
                self.open_gates.remove(step);
            }
            _ => {}
        }
    }
}
