//! Gates answered at the terminal while the run is driven.
//!
//! Invariant: an answer goes the way of every other one, through the inbox, with the hash of what
//! was on the screen: whether it still counts is for the driver to say.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use onward_core::{address::Address, digest::Digest, event::Event, run::Run};
use onward_engine::{
    locate::Project,
    world::inbox::write_request,
    world::{Request, real::wall_clock},
};

use crate::prompt::{Asked, Person};

/// Hears of gates and has them answered.
pub(crate) struct Attendant(Arc<Desk>);

#[derive(Default)]
struct Desk {
    open: Mutex<Vec<Gate>>,
    more: Condvar,
}

/// What is open, as it was shown.
#[derive(Clone, PartialEq, Eq)]
struct Gate {
    step: Address,
    prompt: String,
    options: Vec<String>,
    shows: Vec<String>,
    hash: Digest,
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
        if let Event::GateOpened { step, prompt, options, shows, hash } = event.clone() {
            self.0.put(Gate { step, prompt, options, shows, hash });
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
        show(&person, &gate, dir);
        let question = format!("{}?", gate.step);
        let wanted = || desk.gates().contains(&gate);
        let request = match person.ask(&question, &gate.options, &wanted) {
            Asked::ShowAgain | Asked::Withdrawn => continue,
            Asked::Said(option) => {
                let (step, comment) = (gate.step.clone(), None);
                let (by, hash) = (by.to_owned(), Some(gate.hash));
                // Asked again only if the driver opens it again.
                desk.gates().retain(|it| it.step != gate.step);
                Request::Decide { step, option, comment, by, hash }
            }
            Asked::NobodyThere => Request::Unattended,
        };
        let left = request == Request::Unattended;
        if let Err(error) = write_request(dir, &request, wall_clock()) {
            person.screen().line(&format!("the answer could not be left: {error}"));
        }
        if left {
            return;
        }
    }
}

fn show(person: &Person, gate: &Gate, dir: &Path) {
    let screen = person.screen();
    screen.bell();
    screen.line(&format!("\n{}: {}", gate.step, gate.prompt));
    let root = Project::of_run(dir).map_or_else(PathBuf::new, |it| it.root().to_owned());
    for path in &gate.shows {
        let seen = match std::fs::read(root.join(path)) {
            Ok(bytes) => format!("{} bytes, {}", bytes.len(), short(Digest::of(&bytes))),
            Err(_) => "cannot be read".to_owned(),
        };
        screen.line(&format!("  look at {path} ({seen})"));
    }
    for (index, option) in gate.options.iter().enumerate() {
        screen.line(&format!("  {}. {option}", index + 1));
    }
    screen.line(&format!(
        "An answer holds for what is shown now ({}). Ctrl-D leaves the gate open.",
        short(gate.hash)
    ));
}

/// Enough to tell two apart.
fn short(digest: Digest) -> String {
    digest.to_string().chars().take(12).collect()
}
