//! What an outsider sees of the simulated world: which window a crash falls into, which steps were
//! finished when the lights went out, which gates are open.

use onward_core::{address::Address, event::Event, evidence::Outcome, launch::Seal};

use super::SimWorld;
use crate::crash::{Window, readable};

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

    /// Finished = its seal of a success, or its finish record, can be read after the crash.
    pub(super) fn remember_finished(&mut self) {
        let events = readable(self.disk.read("run/journal.jsonl").unwrap_or_default());
        for event in &events {
            match event {
                Event::AttemptFinished(it) if it.outcome == Outcome::Done => {
                    self.finished.insert(it.step.clone());
                }
                Event::AttemptAdopted(it) => {
                    self.finished.insert(it.step.clone());
                }
                _ => {}
            }
        }
        let announced = |seal: &&Seal| {
            events.iter().any(|event| match event {
                Event::AttemptStarted(it) => it.step == seal.step && it.attempt == seal.attempt,
                _ => false,
            })
        };
        let sealed = self.supervisor.seals.iter().filter(announced);
        let done = sealed.filter(|seal| seal.ending.is_success()).map(|seal| seal.step.clone());
        self.finished.extend(done);
        self.open_gates.clear();
        for event in events {
            self.see_gate(&event);
        }
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
