//! How the simulated world goes dark, when that is interesting, and what can be read afterwards.

use onward_core::{event::Event, journal::decode_line};

onward_core::listed! {
    /// How the world goes dark when the fuse is out.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Crash {
        /// SIGKILL of the engine: the disk keeps everything, the agents go on.
        Engine,
        /// SIGKILL of engine, supervisor and agents: the disk keeps everything.
        Processes,
        /// Power cut: nothing lives, and the disk forgets what was not synced.
        Power,
        /// SIGKILL of supervisor and agents: the engine lives, and hears of it when it waits.
        Hands,
    }
}

onward_core::listed! {
    /// The moments in which a crash is interesting.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Window {
        BeforeSync,
        SyncToSpawn,
        Running,
        ExitToSeal,
        SealToSnapshot,
        SealToJournal,
        RescueToUndo,
        DuringUndo,
    }
}

/// What a person's doings may have cost, so that work which was finished is rightly done again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// Files that were not committed.
    pub(crate) files: bool,
    /// Commits.
    pub(crate) commits: bool,
}

/// Every event of the readable part. Line by line: the reader's room for large journals costs more
/// than a small one, and a law asks this at every spawn.
pub(crate) fn readable(bytes: &[u8]) -> Vec<Event> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.map_while(|line| decode_line(line).ok()).map(|record| record.event).collect()
}
