//! What a resume that was refused must leave as it was: everything but its own notes.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::event::Event;

use crate::{crash::readable, world::SimWorld};

const JOURNAL: &str = "run/journal.jsonl";

/// Project, repository and journal before a resume.
pub(crate) struct Before {
    files: BTreeMap<String, Vec<u8>>,
    /// `None` before there was a journal.
    events: Option<usize>,
    /// An agent may write at any time.
    is_quiet: bool,
}

impl Before {
    pub(crate) fn look(world: &SimWorld) -> Self {
        let events = world.disk.read(JOURNAL).map(|_| events(world).len());
        let is_quiet = world.supervisor.agents.is_empty();
        Self { files: files(world), events, is_quiet }
    }

    pub(crate) fn check(&self, world: &SimWorld, story: &dyn Fn() -> String) {
        if let Some(before) = self.events {
            assert_eq!(events(world).len(), before, "a refused resume recorded: {}", story());
        }
        if !self.is_quiet {
            return;
        }
        let after = files(world);
        let names: BTreeSet<&String> = self.files.keys().chain(after.keys()).collect();
        for name in names {
            let is_same = self.files.get(name) == after.get(name);
            assert!(is_same, "a refused resume changed {name}: {}", story());
        }
    }
}

fn events(world: &SimWorld) -> Vec<Event> {
    readable(world.disk.read(JOURNAL).unwrap_or_default())
}

fn files(world: &SimWorld) -> BTreeMap<String, Vec<u8>> {
    let names = world.disk.names().filter(|name| !name.starts_with("run/"));
    names.map(|name| (name.clone(), world.disk.read(name).expect("listed").to_vec())).collect()
}
