//! Everything the engine may ask of the outside, in one trait with two implementations: the real
//! one and the simulated one.
//!
//! Invariant: the engine reaches files, processes and the clock only through [`World`]. Calls are
//! small on purpose: a simulated power cut can fall between any two of them.

pub mod aside;
pub mod files;
pub mod git;
pub mod inbox;
pub mod open;
pub mod real;
pub mod schema;
pub mod secrets;
pub mod seen;
pub mod spot;
mod stop;
pub mod supervisor;

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{Event, FileKind, GitHead, Revert},
    evidence::FileProof,
    judge::Objection,
    launch::{Launch, Seal},
    recovery::Probed,
    run::Worker,
    state::{FileKept, State},
    survey::CommitSeen,
    time::Timestamp,
    worktree::WorktreePlace,
};
use onward_dialects::{
    Files,
    seam::{Card, Site},
};

use crate::agents::{self, Spoken};

pub use crate::world::{
    git::{Condition, Rescued, Taken},
    inbox::Request,
};
pub use onward_core::launch::out_name;
pub use stop::Stop;

/// The name of the journal in a run's directory.
pub const JOURNAL: &str = "journal.jsonl";

/// The commit that a finished attempt left on the branch of its worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeHead {
    pub attempt: u32,
    pub commit: String,
}

/// A file, by the directory it is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At<'a> {
    /// In the run's own directory.
    Run(&'a str),
    /// In the project, where the steps work; an absolute path where a site lies outside of it.
    Project(&'a str),
}

impl<'a> At<'a> {
    pub fn path(self) -> &'a str {
        match self {
            Self::Run(path) | Self::Project(path) => path,
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

    /// A word for each live session of another tool in this tree.
    fn others(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The bytes under a seal that only this user can make; `None` where there is no such seal.
    fn sealed(&self, _purpose: &str, _bytes: Vec<u8>) -> Option<Vec<u8>> {
        None
    }
    /// What this user sealed for this purpose; of anything else nothing.
    fn unsealed(&self, _purpose: &str, _sealed: Vec<u8>) -> Option<Vec<u8>> {
        None
    }

    // Files. Nothing is durable before `sync`, and no name before `sync_dir`.

    /// The whole content, or `None` when there is no such file.
    fn read(&mut self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop>;
    /// At most `bytes_max` of what stands at `offset` and after it; empty at the end, and where
    /// there is no such file.
    fn read_from(&mut self, at: At<'_>, offset: u64, bytes_max: usize) -> Result<Vec<u8>, Stop> {
        let bytes = self.read(at)?.unwrap_or_default();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(bytes_max).min(bytes.len());
        Ok(bytes[start..end].to_vec())
    }
    /// Makes or replaces a file.
    fn make(&mut self, at: At<'_>, bytes: &[u8], kind: FileKind) -> Result<(), Stop>;
    /// Makes or replaces a plain file.
    fn write(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop>;
    /// Adds to the end of a file, in one write; makes it when it is not there.
    fn append(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop>;
    fn truncate(&mut self, at: At<'_>, length: u64) -> Result<(), Stop>;
    fn sync(&mut self, at: At<'_>) -> Result<(), Stop>;
    /// Renames within one directory tree, replacing what is there.
    fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop>;
    /// Removes a file, and the project's directories that this leaves empty.
    fn remove(&mut self, at: At<'_>) -> Result<(), Stop>;
    /// Makes the names in the directory of `at` durable.
    fn sync_dir(&mut self, at: At<'_>) -> Result<(), Stop>;
    /// What a project file is, a link itself and not where it leads; `None` when there is none.
    fn look(&mut self, path: &str) -> Result<Option<Looked>, Stop>;
    /// Its content, and what it is.
    fn content(&mut self, path: &str) -> Result<Option<(Vec<u8>, FileKind)>, Stop>;
    /// When a file was last changed; `None` when there is none.
    fn changed_ns(&mut self, at: At<'_>) -> Result<Option<i64>, Stop> {
        let path = self.absolute(at);
        Ok(self.look(&path)?.map(|it| it.changed_ns))
    }
    /// When names were last added to or taken from the directory of a path, or the nearest one
    /// above it that is there.
    fn dir_changed_ns(&mut self, path: &str) -> Result<Option<i64>, Stop>;
    /// What keeps a file from being put at a path: everything in a directory that stands there,
    /// the path itself where it cannot be replaced; or what stands in the place of a directory
    /// above it, a file or a link that leads to no directory of the project. As a rule nothing.
    fn in_the_way(&mut self, _path: &str) -> Result<Vec<String>, Stop> {
        Ok(Vec::new())
    }
    /// Where a link at a path leads.
    fn leads(&mut self, _path: &str) -> Result<files::Leads, Stop> {
        Ok(files::Leads::Nowhere)
    }
    /// The digest of a project file, or `None` when it is not there.
    fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop>;
    /// Project files that match a glob, in path order; `known` saves reading what has not changed.
    fn glob(&mut self, pattern: &str, known: &[FileProof]) -> Result<Vec<FileProof>, Stop>;
    /// Those of them that were changed after a moment.
    fn changed_since(&mut self, pattern: &str, since_ns: i64) -> Result<Vec<String>, Stop> {
        let found = self.glob(pattern, &[])?.into_iter();
        Ok(found.filter(|it| it.stat.mtime_ns > since_ns).map(|it| it.path).collect())
    }
    /// Which of these outputs, each with the place of its step in the state, are for sure as they
    /// were, found without reading them. The others are
    /// to be looked at one by one; a world that knows no faster way says that of all.
    fn unchanged(&mut self, files: &[(usize, FileKept<'_>)]) -> Result<Vec<bool>, Stop> {
        Ok(vec![false; files.len()])
    }

    // The tree as a whole, where git is there to record it. `tree` is a directory in the project,
    // empty for the project itself; paths are relative to the project all the same.

    /// Records the tree; durable when it returns. `None` outside git.
    fn snapshot(&mut self, of: &Snapshot<'_>) -> Result<Option<Taken>, Stop>;
    /// The command with which the supervisor takes the snapshot after an attempt.
    fn snapshot_command(&self, of: &Snapshot<'_>) -> Option<Vec<String>>;
    /// What differs between the snapshots `base` and `after`, or the tree now. `None` when they
    /// are lost.
    fn changes(
        &mut self,
        of: &Snapshot<'_>,
        base: &str,
        after: Option<&str>,
    ) -> Result<Option<Changes>, Stop>;
    /// The paths that differ between two snapshots.
    fn footprint(&mut self, tree: &str, base: &str, after: &str) -> Result<Vec<String>, Stop>;
    /// The content of a base that `changes` told of.
    fn base_content(&mut self, base: Digest) -> Result<Option<Vec<u8>>, Stop>;
    /// Keeps what is about to be undone; durable when it returns. `None` outside git.
    fn keep_rescue(&mut self, of: &Snapshot<'_>, undo: &Undo<'_>) -> Result<Option<Rescued>, Stop>;
    /// Those of the paths that are as the head of the branch has them.
    fn as_committed(&mut self, paths: &[String]) -> Result<BTreeSet<String>, Stop>;
    /// How a worktree of the run was left. Only looks.
    fn worktree_condition(&mut self, _place: &WorktreePlace) -> Result<Condition, Stop> {
        Ok(Condition::Unmade)
    }
    /// Sees to it that a worktree is there and on its branch; says why it cannot be.
    fn worktree(&mut self, _place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        Ok(Err("there are no worktrees in this world".to_owned()))
    }
    /// Commits what is in a worktree, and gives the head of its branch; says why it cannot.
    fn commit_worktree(
        &mut self,
        _place: &WorktreePlace,
        _step: &Address,
        _attempt: u32,
    ) -> Result<Result<Option<String>, String>, Stop> {
        Ok(Err("there are no worktrees in this world".to_owned()))
    }
    /// Steps whose commit no branch has any more.
    fn lost_commits(
        &mut self,
        _heads: &BTreeMap<Address, WorktreeHead>,
    ) -> Result<BTreeSet<Address>, Stop> {
        Ok(BTreeSet::new())
    }
    /// Branch and head of a tree; `None` outside git.
    fn head(&mut self, tree: &str) -> Result<Option<GitHead>, Stop>;
    /// Commits that `until` leads to and `since` does not, newest first.
    fn commits(
        &mut self,
        tree: &str,
        since: Option<&str>,
        until: &str,
    ) -> Result<Vec<CommitSeen>, Stop>;
    /// Paths of a tree that are not as they were when a snapshot was last taken of it. Empty while
    /// none was.
    fn moved(&mut self, tree: &str) -> Result<Vec<String>, Stop>;

    // Runs of other systems. Their files are written like any other: a path of the project is one
    // below it, or absolute where the site lies outside.

    /// Every file that a site names, as it is now, with what git says around it. Only looks.
    fn foreign(&mut self, site: &Site, card: &'static Card) -> Result<Files, Stop>;
    /// The same, with no more of git than where the head and the branches stand: what a driver
    /// needs after each step.
    fn foreign_files(&mut self, site: &Site, card: &'static Card) -> Result<Files, Stop>;
    /// Keeps every program that respects the site's lock from changing it, until it is dropped.
    fn hold(&mut self, site: &Site, card: &'static Card) -> Result<Hold, Stop>;
    /// Brings what git has noted of a worktree in line with its files.
    fn refresh_tree(&mut self, tree: &str) -> Result<(), Stop>;

    // Processes.

    /// What a supervisor would say, found out without asking or disturbing it. What it knows of
    /// attempts by which `told` has steps done may be left out.
    fn look_at_hands(&mut self, told: &State) -> Result<Connected, Stop>;
    /// Keeps what the next look need not read again. That it cannot costs time, and no more.
    fn keep_looked(&mut self, _told: &State) {}
    /// Takes hold of the supervisor, starting one if none lives, and ends what a dead one left.
    fn connect(&mut self, epoch: u32, told: &State) -> Result<Connected, Stop>;
    /// Spawns attempts whose announcement is durable: at once, or in their order while fewer than
    /// `slots` are under way. What waits when the engine is gone never starts.
    fn spawn(&mut self, launches: &[Launch], slots: Option<u32>) -> Result<(), Stop>;
    /// Takes back what waits for a slot; it comes as [`Input::Withdrawn`].
    fn withdraw(&mut self) -> Result<(), Stop>;
    /// Ends one attempt; its seal comes as an input. One that is over stays so.
    fn stop(&mut self, step: &Address, attempt: u32) -> Result<(), Stop>;
    /// Ends every running attempt; their seals come as inputs.
    fn stop_all(&mut self) -> Result<(), Stop>;
    /// Asks the probe of an effect outside: a command, and the exit code that means absent.
    fn probe(&mut self, tree: &str, command: &str, absent: i32) -> Result<Probed, Stop>;
    /// Waits until something happens or the moment comes. Returns all that has happened.
    fn wait(&mut self, until: Option<Timestamp>) -> Result<Vec<Input>, Stop>;
    /// Turns an agent into the argument vector of its adapter; leaves everything else as it is.
    fn resolve(&mut self, launch: &mut Launch) -> Result<(), Stop>;
    /// How an agent is spoken to: by its name in the workflow, and by the program it uses.
    fn adapter(&self, _agent: &str, _program: &str) -> Spoken {
        Spoken::Known(&agents::command::Command)
    }
    /// The moment that a notice of a limit speaks of, printed at `at`.
    fn moment_in(&self, words: &str, at: Timestamp) -> Option<Timestamp> {
        agents::reset::moment(words, at, &jiff::tz::TimeZone::UTC)
    }
    /// The session that an attempt will have or go on in, where its agent keeps sessions.
    fn session_of(&self, _launch: &Launch) -> Option<String> {
        None
    }
    /// What keeps the session of an attempt from going on; `None` = nothing.
    fn session_lacks(&mut self, _of: &SessionOf<'_>) -> Result<Option<SessionLack>, Stop> {
        Ok(Some(SessionLack::Unusable("nothing says how".to_owned())))
    }
    /// Takes a session for this driver, as long as it lives. `false` = another one has it.
    fn hold_session(&mut self, _session: &str) -> bool {
        true
    }
    /// The limit of an agent's account, as any run on this machine met it.
    fn known_limit(&mut self, _of: Worker<'_>) -> Option<KnownLimit> {
        None
    }
    /// Tells the other runs on this machine of a limit. The account that met it, if that is known.
    fn limit_met(&mut self, _of: Worker<'_>, _resets_at: Option<Timestamp>) -> Option<String> {
        None
    }
    /// A text without what must never be handed on.
    fn cleaned(&self, text: String) -> String {
        text
    }
    /// How a child process names the file.
    fn absolute(&self, at: At<'_>) -> String;
    /// Tells the watchers that these records are durable.
    fn published(&mut self, lines: &[u8]);
    /// Whether a result satisfies its JSON Schema and lets the run go on; `Err` says why not.
    fn validate(&mut self, schema: &str, result: &serde_json::Value) -> Result<(), Objection>;
}

/// The lock of another system's run, held until it is dropped.
#[derive(Debug, Default)]
pub struct Hold {
    _file: Option<std::fs::File>,
}

impl Hold {
    pub fn of(file: std::fs::File) -> Self {
        Self { _file: Some(file) }
    }
}

/// Why a session is not continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionLack {
    /// It is gone, too old, or nothing says how.
    Unusable(String),
    /// A person or another program has it open.
    Busy(String),
}

impl SessionLack {
    pub fn why(&self) -> &str {
        match self {
            Self::Unusable(why) | Self::Busy(why) => why,
        }
    }
}

/// A limit that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownLimit {
    pub provider: String,
    /// Never a secret.
    pub account: Option<String>,
    pub resets_at: Timestamp,
}

/// An agent's own session.
#[derive(Clone, Copy, Debug)]
pub struct SessionOf<'a> {
    /// The agent's name in the workflow, and the one it goes by.
    pub agent: &'a str,
    pub adapter: &'a str,
    pub session: &'a str,
    /// The directory in the project that it worked in.
    pub cwd: &'a str,
}

/// A file, looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    pub hash: Digest,
    pub kind: FileKind,
    /// When it, or what is known of it, was last changed.
    pub changed_ns: i64,
}

impl Looked {
    pub fn content(self) -> Content {
        (self.hash, self.kind)
    }
}

/// What a file is: digest and kind.
pub type Content = (Digest, FileKind);

/// Which tree, and for whom.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// A directory in the project, empty for the project itself.
    pub tree: &'a str,
    pub step: &'a Address,
    pub attempt: u32,
    pub when: When,
    /// Patterns of declared outputs: part of the tree even where git ignores them.
    pub writes: &'a [String],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

/// What [`World::changes`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// In path order.
    pub all: Vec<Change>,
    /// Paths that the snapshots do not cover, as they are too large or cannot be read.
    pub skipped: Vec<String>,
    /// What was not committed before, and was replaced by a commit since.
    pub overlaid: Vec<(String, Content)>,
}

/// One path that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    /// As it is now.
    pub left: Option<Content>,
    pub base: Option<Content>,
    /// The snapshot or commit that has the base.
    pub base_at: String,
    /// When the path, or for one that is gone its directory, was last changed.
    pub changed_ns: Option<i64>,
    /// It is not as the snapshot after the attempt has it, or cannot be put back.
    pub moved: bool,
}

/// What [`World::keep_rescue`] is to keep.
#[derive(Clone, Debug)]
pub struct Undo<'a> {
    /// The number of the rescue.
    pub number: u32,
    pub reverts: &'a [Revert],
    /// For each path, what has its base.
    pub bases: &'a BTreeMap<String, String>,
}

/// What a supervisor, old or new, has to say when it is taken hold of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connected {
    /// Attempts it still holds.
    pub alive: Vec<(Address, u32)>,
    /// Attempts known to have been spawned.
    pub spawned: Vec<(Address, u32)>,
    /// Every seal on disk that counts, but for those of which the journal has told already.
    pub seals: Vec<Seal>,
    /// Those that do not: the machine was restarted since, and what they speak of had not been
    /// synced.
    pub unsettled: Vec<Seal>,
    /// Nothing is missing from `spawned`, unless the machine has been restarted.
    pub spawned_is_complete: bool,
    /// Lines of its log that cannot be read, counted from 1, and may be seals.
    pub unreadable: Vec<u64>,
    /// The latest end among the seals that are left out.
    pub last_told: Option<Timestamp>,
    /// Processes that a dead supervisor left: ended when the run is taken hold of.
    pub orphans: u32,
    /// Attempts of which something outlived the supervisor; all of them where that is unclear.
    pub survived: Survived,
    /// The moment the last supervisor was seen alive.
    pub last_heartbeat: Option<Timestamp>,
    pub boot_id: String,
}

impl Connected {
    /// The last moment at which the run is known to have been at work.
    pub fn last_sign(&self) -> Option<Timestamp> {
        let ends = self.seals.iter().map(|it| it.at).chain(self.last_told);
        ends.chain(self.last_heartbeat).max()
    }

    /// Whether both tell the same of the attempts, so that nothing happened in between.
    pub fn is_as(&self, later: &Self) -> bool {
        let sorted = |alive: &[(Address, u32)]| alive.iter().cloned().collect::<BTreeSet<_>>();
        sorted(&self.alive) == sorted(&later.alive)
            && self.seals == later.seals
            && self.unsettled == later.unsettled
            && self.survived == later.survived
            && self.spawned == later.spawned
            && self.spawned_is_complete == later.spawned_is_complete
            && self.unreadable == later.unreadable
            && self.boot_id == later.boot_id
    }
}

/// Whose processes outlived their supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Survived {
    These(Vec<(Address, u32)>),
    /// One of them did not say whose it is.
    Any,
}

impl Default for Survived {
    fn default() -> Self {
        Self::These(Vec::new())
    }
}

impl Survived {
    /// Whether a process of this attempt may be among them.
    pub fn has(&self, step: &Address, attempt: u32) -> bool {
        match self {
            Self::Any => true,
            Self::These(_) => self.names(step, attempt),
        }
    }

    /// Whether a process of this attempt is among them for sure.
    pub fn names(&self, step: &Address, attempt: u32) -> bool {
        match self {
            Self::Any => false,
            Self::These(these) => these.iter().any(|it| it.0 == *step && it.1 == attempt),
        }
    }
}

/// What can happen to a driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An attempt ended.
    Sealed(Seal),
    /// An attempt that waited for a slot was never spawned, and never will be.
    Withdrawn { step: Address, attempt: u32 },
    /// A person asks for something, through the inbox.
    Asked(Request),
    /// SIGINT or SIGTERM; a hang-up only takes the screen away.
    Interrupted,
    /// The supervisor is gone, and what it held with it. `why` if it could still say so.
    HandsLost { why: Option<String> },
}
