//! What the other system had come to when onward was called, and what it does in between.

use super::system::{DIR, LOG, PAGE, ROWS, STEPS, ToyTold};
use crate::world::SimWorld;

/// Files of the toy's run.
#[derive(Debug)]
pub(crate) struct Start {
    /// `None` = our run begins it.
    log: Option<&'static str>,
    rows: Option<&'static str>,
    page: Option<&'static str>,
}

/// Several prefixes of the work, with half-done work and without.
pub(crate) static STARTS: [Start; 10] = [
    Start { log: None, rows: None, page: None },
    Start { log: Some("start\n"), rows: None, page: None },
    Start { log: Some("start\n"), rows: Some("row plan\n"), page: None },
    Start {
        log: Some("start\ndone plan\n"),
        rows: Some("row plan\nrow lanes/right\n"),
        page: None,
    },
    Start {
        log: Some("start\ndone plan\nresumed\n"),
        rows: Some("row plan\nrow lanes/left\nrow lanes/right\n"),
        page: None,
    },
    // The first step is not recorded; a step after it is.
    Start {
        log: Some("start\ndone lanes/left\n"),
        rows: Some("row plan\nrow lanes/left\n"),
        page: None,
    },
    Start {
        log: Some("start\ndone plan\ndone lanes/left\ndone lanes/right\n"),
        rows: Some("row plan\nrow lanes/left\nrow lanes/right\nrow page\n"),
        page: Some("pa"),
    },
    // The log ends within a line, and a person has to look.
    Start {
        log: Some("start\ndone plan\ndone lanes/right\ndone lanes/left\ndoubt\ndone pa"),
        rows: Some("row plan\nrow lanes/right\nrow lanes/left\n"),
        page: None,
    },
    Start {
        log: Some("start\ndone plan\ndone lanes/left\ndone lanes/right\ndone page\n"),
        rows: Some("row plan\nrow lanes/left\nrow lanes/right\nrow page\nrow close\n"),
        page: Some("page-page"),
    },
    Start {
        log: Some("start\ndone plan\ndone lanes/left\ndone lanes/right\ndone page\ndone close\n"),
        rows: Some("row plan\nrow lanes/left\nrow lanes/right\nrow page\nrow close\n"),
        page: Some("page-page"),
    },
];

/// Files in which nothing is ever said.
pub(crate) const UNTOUCHED: [(&str, &str); 2] =
    [("toy/notes.txt", "a person's notes"), ("mine.txt", "mine")];

impl Start {
    pub(crate) fn begins(&self) -> bool {
        self.log.is_none()
    }

    fn told(&self) -> ToyTold {
        let rows = self.rows.map(str::as_bytes);
        ToyTold::read(self.log.unwrap_or_default().as_bytes(), rows, self.page.is_some())
    }

    pub(crate) fn done(&self) -> Vec<&'static str> {
        let told = self.told();
        STEPS.into_iter().filter(|step| told.is_done(step)).collect()
    }

    /// A step that is done and not logged.
    pub(crate) fn inferred(&self) -> Option<&'static str> {
        let log = self.log.unwrap_or_default();
        self.done().into_iter().find(|step| !log.contains(&format!("done {step}\n")))
    }

    pub(crate) fn half_done(&self) -> Vec<String> {
        self.told().half_done().into_iter().map(str::to_owned).collect()
    }

    /// Puts the files on the disk.
    pub(crate) fn lay(&self, world: &mut SimWorld) {
        for (name, text) in [(LOG, self.log), (ROWS, self.rows), (PAGE, self.page)] {
            if let Some(text) = text {
                let now_us = world.now_us;
                world.disk.write_durably(&at(name), text.as_bytes(), now_us);
            }
        }
        for (name, text) in UNTOUCHED {
            let now_us = world.now_us;
            world.disk.write_durably(&format!("project/{name}"), text.as_bytes(), now_us);
        }
    }
}

/// The other system goes on with its run for a few steps, as it would alone: half-done rows go,
/// then steps are done, and the last one may be left half way. Gives the steps that it did.
pub(crate) fn others_go_on(world: &mut SimWorld) -> Vec<&'static str> {
    let mut did = Vec::new();
    let is_begun = world.disk.read(&at(LOG)).is_some_and(|log| !log.is_empty());
    if !is_begun || told(world).open().is_empty() || world.chance.one_in(4) {
        return did;
    }
    let now_us = world.now_us;
    world.disk.write_durably(&at(ROWS), &told(world).rows_that_count(), now_us);
    world.disk.tell(&at(LOG), "resumed", now_us);
    for _ in 0..world.chance.below(3) {
        let open = told(world).open();
        let Some(step) = open.get(world.chance.below(open.len())).copied() else { break };
        world.disk.tell(&at(ROWS), &format!("row {step}"), now_us);
        if step == "page" {
            world.disk.write_durably(&at(PAGE), b"page-page", now_us);
        }
        if world.chance.one_in(4) {
            break;
        }
        world.disk.tell(&at(LOG), &format!("done {step}"), now_us);
        did.push(step);
    }
    did
}

fn told(world: &SimWorld) -> ToyTold {
    let read = |name: &str| world.disk.read(&at(name));
    ToyTold::read(read(LOG).unwrap_or_default(), read(ROWS), read(PAGE).is_some())
}

fn at(name: &str) -> String {
    format!("project/{DIR}/{name}")
}
