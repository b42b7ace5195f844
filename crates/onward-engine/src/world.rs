//! Everything the engine may ask of the outside, in one trait with two implementations: the real
//! one and the simulated one.
//!
//! Invariant: the engine reaches files, processes and the clock only through [`World`]. Calls are
//! small on purpose: a simulated power cut can fall between any two of them.

use std::io::ErrorKind;

use onward_core::{
    address::Address,
    digest::Digest,
    event::Event,
    evidence::FileProof,
    finding::Finding,
    launch::{Launch, Seal},
    recovery::Probed,
    time::Timestamp,
};

/// A file, by the directory it is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At<'a> {
    /// In the run's own directory.
    Run(&'a str),
    /// In the project, where the steps work.
    Project(&'a str),
}

impl<'a> At<'a> {
    pub fn path(self) -> &'a str {
        match self {
            Self::Run(path) | Self::Project(path) => path,
        }
    }
}

/// Why the engine must stop at once. It never appends again after this.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("cannot {doing} {path}")]
    Io {
        doing: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the supervisor cannot be reached: {0}")]
    Hands(String),
    /// It told us why it ended.
    #[error("the supervisor cannot go on: {0}")]
    HandsGaveUp(String),
    /// What came of a supervisor's death is for a person to settle.
    #[error("{} must be settled first", .0.len())]
    Conflicts(Vec<Finding>),
    /// A bug of ours, or a journal somebody else wrote to.
    #[error(transparent)]
    Impossible(#[from] onward_core::state::Violation),
    #[error("an event cannot be written: {0}")]
    Unwritable(String),
    #[error("the journal is damaged")]
    Damaged,
    /// Something that a start needs is not set up on this machine.
    #[error("{what}")]
    Unready { what: String, hint: String },
    /// The simulated machine went dark.
    #[error("the machine stopped")]
    Dark,
}

impl Stop {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => {
                let kind = source.kind();
                let is_full = matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                is_full.then(|| "make room on that disk, then `onward resume`".to_owned())
            }
            Self::HandsGaveUp(_) => Some("put that right, then `onward resume`".to_owned()),
            Self::Hands(_) => Some("`onward resume` starts another one".to_owned()),
            Self::Conflicts(_) => Some(
                "see `onward plan`; accept a finding with `onward resume --accept CODE`".into(),
            ),
            Self::Unready { hint, .. } => Some(hint.clone()),
            Self::Impossible(_) | Self::Unwritable(_) | Self::Damaged | Self::Dark => None,
        }
    }
}

/// See the module.
pub trait World {
    /// The time of events, and of whatever waits.
    fn now(&mut self) -> Timestamp;
    /// The time that ages are measured against; another one only where a person said so.
    fn now_for_ages(&mut self) -> Timestamp {
        self.now()
    }
    /// Takes out of an event what must never reach the journal, before it is written or believed.
    fn clean(&mut self, event: &mut Event) {
        let _ = event;
    }

    // Files. Nothing is durable before `sync`, and no name before `sync_dir`.

    /// The whole content, or `None` when there is no such file.
    fn read(&mut self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop>;
    /// Makes or replaces a file.
    fn write(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop>;
    /// Adds to the end of a file, in one write; makes it when it is not there.
    fn append(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop>;
    fn truncate(&mut self, at: At<'_>, length: u64) -> Result<(), Stop>;
    fn sync(&mut self, at: At<'_>) -> Result<(), Stop>;
    /// Renames within one directory tree, replacing what is there.
    fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop>;
    fn remove(&mut self, at: At<'_>) -> Result<(), Stop>;
    /// Makes the names in the directory of `at` durable.
    fn sync_dir(&mut self, at: At<'_>) -> Result<(), Stop>;
    /// The digest of a project file, or `None` when it is not there.
    fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop>;
    /// Project files that match a glob, in path order; `known` saves reading what has not changed.
    fn glob(&mut self, pattern: &str, known: &[FileProof]) -> Result<Vec<FileProof>, Stop>;

    // Processes.

    /// Takes hold of the supervisor, starting one if none lives, and ends what a dead one left.
    fn connect(&mut self, epoch: u32) -> Result<Connected, Stop>;
    /// Spawns attempts whose announcement is durable.
    fn spawn(&mut self, launches: &[Launch]) -> Result<(), Stop>;
    /// Ends every running attempt; their seals come as inputs.
    fn stop_all(&mut self) -> Result<(), Stop>;
    /// Asks the probe of an effect outside: a command, and the exit code that means absent.
    fn probe(&mut self, command: &str, absent: i32) -> Result<Probed, Stop>;
    /// Waits until something happens or the moment comes. Returns all that has happened.
    fn wait(&mut self, until: Option<Timestamp>) -> Result<Vec<Input>, Stop>;
    /// Turns an agent into the argument vector of its adapter; leaves everything else as it is.
    fn resolve(&mut self, launch: &mut Launch) -> Result<(), Stop>;
    /// How a child process names the file.
    fn absolute(&self, at: At<'_>) -> String;
    /// Tells whoever watches that these records are durable.
    fn published(&mut self, lines: &[u8]);
    /// Whether a result satisfies its JSON Schema; `Err` says what is wrong.
    fn validate(&mut self, schema: &str, result: &serde_json::Value) -> Result<(), String>;
}

/// What a supervisor, old or new, has to say when it is taken hold of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connected {
    /// Attempts it still holds.
    pub alive: Vec<(Address, u32)>,
    /// Attempts known to have been spawned.
    pub spawned: Vec<(Address, u32)>,
    /// Every seal on disk.
    pub seals: Vec<Seal>,
    /// Nothing is missing from `spawned`, unless the machine has been restarted.
    pub spawned_is_complete: bool,
    /// Processes of a dead supervisor that had to be ended.
    pub orphans_ended: u32,
    /// The moment the last supervisor was seen alive.
    pub last_heartbeat: Option<Timestamp>,
    pub boot_id: String,
}

/// What can happen to a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An attempt ended.
    Sealed(Seal),
    /// Somebody asks for something, through the inbox.
    Asked(Request),
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupted,
    /// The supervisor is gone, and what it held with it. `why` if it could still say so.
    HandsLost { why: Option<String> },
}

/// What a person can ask of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    Decide {
        step: Address,
        option: String,
        comment: Option<String>,
        by: String,
        /// What the person saw; `None` takes what is shown now.
        hash: Option<Digest>,
    },
    Pause,
    Cancel,
    /// Whoever was there to answer gates is gone: an open gate no longer keeps the driver.
    Unattended,
}
