//! The files of another system's run in the simulated world.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use globset::{GlobBuilder, GlobMatcher};
use onward_core::time::Timestamp;
use onward_dialects::{File, Files, Git, seam::Site};
use onward_engine::world::files::is_temporary;

use super::SimWorld;
use crate::agents::{Act, Agent};

impl SimWorld {
    /// What a site says that it is made of, as it is now.
    pub(crate) fn site_files(&self, site: &Site) -> Files {
        let mut files = Files::default();
        for (number, root) in site.roots.iter().enumerate() {
            let prefix = match root.dir.as_str() {
                "." => "project/".to_owned(),
                dir => format!("project/{dir}/"),
            };
            let globs: Vec<Rc<GlobMatcher>> = root.reads.iter().map(|it| matcher(it)).collect();
            for name in self.disk.names() {
                let Some(path) = name.strip_prefix(&prefix) else { continue };
                if !is_temporary(path) && globs.iter().any(|it| it.is_match(path)) {
                    let bytes = self.disk.read(name).expect("listed").to_vec();
                    let modified = self.disk.mtime_us(name).map(Timestamp::from_micros);
                    files.insert_in(number, path, File { bytes, modified });
                }
            }
        }
        if self.repo.is_there() {
            let head = self.repo.head(&self.disk, "");
            files.git = Some(Git { branch: Some("main".to_owned()), head, ..Git::default() });
        }
        files
    }

    /// Calls hold the other system's files while they write, and the engine waits for them.
    pub(super) fn let_calls_end(&mut self) {
        while self.supervisor.agents.values().any(Agent::is_writing) {
            assert!(self.tick(i64::MAX), "a call does not end: {}", self.story);
        }
    }

    /// Whether another call than this one holds the files.
    pub(super) fn is_held(&self) -> bool {
        self.supervisor.agents.values().any(Agent::is_writing)
    }
}

/// Each is compiled once.
fn matcher(glob: &str) -> Rc<GlobMatcher> {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<String, Rc<GlobMatcher>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        let compile = || {
            let glob = GlobBuilder::new(glob).literal_separator(true).build();
            Rc::new(glob.expect("a glob of a card").compile_matcher())
        };
        Rc::clone(known.entry(glob.to_owned()).or_insert_with(compile))
    })
}

impl Agent {
    /// A call that has begun to write, and has not written everything.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.acts.front(), Some(Act::Put(_)))
    }
}
