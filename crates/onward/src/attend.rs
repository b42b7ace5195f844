//! Gates answered at the terminal while the run is driven.
//!
//! Invariant: an answer goes the way of every other one, through the inbox, with the hash of what
//! was on the screen: whether it still counts is for the driver to say.

use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use onward_core::{event::Event, run::Run};
use onward_engine::{
    world::inbox::write_request,
    world::{Request, real::wall_clock},
};

use crate::{
    gates::{Gate, Said},
    prompt::Person,
};

/// Hears of gates and has them answered.
pub(crate) struct Attendant(Arc<Desk>);

#[derive(Default)]
struct Desk {
    open: Mutex<Vec<Gate>>,
    more: Condvar,
}

impl Attendant {
    /// Waits for gates, from a thread of its own; `run` may have some that are open already.
    pub(crate) fn new(person: Person, run: &Run, dir: &Path, by: String) -> Self {
        let desk = Arc::new(Desk::default());
        let attendant = Self(Arc::clone(&desk));
        for id in run.graph.open_gates() {
            let step = &run.graph.node(id).address;
            if let Some(gate) = run.state.step(step).and_then(|entry| entry.gate.as_deref()) {
                desk.put(Gate {
                    step: step.clone(),
                    prompt: gate.prompt.clone(),
                    options: gate.options.clone(),
                    shows: gate.shows.clone(),
                    hash: gate.hash,
                });
            }
        }
        let dir = dir.to_owned();
        thread::spawn(move || attend(&desk, person, &dir, &by));
        attendant
    }

    /// Takes in what became durable.
    pub(crate) fn hear(&self, event: &Event) {
        if let Some(gate) = Gate::of(event) {
            self.0.put(gate);
        } else if let Event::GateDecided { step, .. } = event {
            self.0.gates().retain(|gate| gate.step != *step);
        }
    }
}

impl Desk {
    fn gates(&self) -> MutexGuard<'_, Vec<Gate>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, gate: Gate) {
        let mut gates = self.gates();
        gates.retain(|it| it.step != gate.step);
        gates.push(gate);
        self.more.notify_all();
    }

    fn first(&self) -> Gate {
        let mut gates = self.gates();
        loop {
            if let Some(gate) = gates.first() {
                return gate.clone();
            }
            gates = self.more.wait(gates).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Until the person leaves, or the process ends.
fn attend(desk: &Desk, mut person: Person, dir: &Path, by: &str) {
    loop {
        let gate = desk.first();
        let wanted = || desk.gates().contains(&gate);
        let request = match gate.ask(&mut person, dir, &wanted) {
            Said::Withdrawn => continue,
            Said::Option { option, comment } => {
                let (step, by, hash) = (gate.step.clone(), by.to_owned(), Some(gate.hash));
                // Asked again only if the driver opens it again.
                desk.gates().retain(|it| it.step != gate.step);
                Request::Decide { step, option, comment, by, hash }
            }
            Said::Left => Request::Unattended,
        };
        let left = request == Request::Unattended;
        if let Err(error) = write_request(dir, &request, wall_clock()) {
            person.screen().line(&format!("the answer could not be sent: {error}"));
        }
        if left {
            return;
        }
    }
}
