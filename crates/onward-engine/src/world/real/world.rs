//! [`RealWorld`]: the engine on a real machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::Path,
    time::Duration,
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{Event, FileKind, GitHead},
    evidence::FileProof,
    launch::Launch,
    recovery::Probed,
    survey::CommitSeen,
    time::Timestamp,
    worktree::WorktreePlace,
};
use onward_dialects::{
    Files,
    seam::{Card, Site},
};

use super::{
    clock::wall_clock,
    disk::{Disk, io_stop},
    grip::{self, hands_stop},
    inputs::{Heard, Inputs},
    look::Looker,
    probe::probe,
    schema::Schemas,
    secrets::Redactor,
    site,
    stand_in::StandIn,
    trees::{self, Trees},
    variable,
    worktrees::{Instead, moved_into},
};
use crate::agents::{
    Adapter, Adapters, AgentError, Commands, Known, adapter_of,
    resolve::continuation_of,
    sessions::live_sessions,
    transcripts::{self, Asked, Continuations},
};
use crate::world::{
    At, Changes, Condition, Connected, Hold, Input, Looked, Rescued, SessionOf, Snapshot, Stop,
    Taken, Undo, WorktreeHead, World,
    git::Git,
    inbox::{self, Left},
    supervisor::{Hands, HandsError, Identity, Place, Stop as StopLadder},
};

/// A probe asks, it does not work.
const PROBE_WITHIN: Duration = Duration::from_mins(1);

/// Takes durable journal lines, whole ones.
pub type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// What a world must know.
#[derive(Clone, Debug)]
pub struct Setup {
    pub place: Place,
    /// The environment we were started in: children inherit it, and secrets are found in it.
    pub env: Vec<(OsString, OsString)>,
    /// The command that runs the hidden subcommand; the place is added to it.
    pub supervise: Vec<OsString>,
    /// The command that takes a snapshot; what of is added to it. Empty = nobody takes one after
    /// an attempt.
    pub snapshot: Vec<OsString>,
    /// The command that runs a built-in function; its name is added to it.
    pub call: Vec<OsString>,
    pub agents: BTreeMap<String, Vec<String>>,
    pub continuations: Continuations,
    /// The names of the agents' adapters, where they are not the default.
    pub adapters: Adapters,
    /// What a person said to measure ages against.
    pub now: Option<Timestamp>,
    /// SIGINT, SIGTERM and SIGHUP become inputs.
    pub catch_signals: bool,
    /// Who plays the agents and commands, in a rehearsal.
    pub stand_in: Option<StandIn>,
}

pub struct RealWorld {
    place: Place,
    env: Vec<(OsString, OsString)>,
    supervise: Vec<OsString>,
    snapshot: Vec<OsString>,
    call: Vec<OsString>,
    trees: Trees,
    commands: Commands,
    continuations: Continuations,
    adapters: Adapters,
    now: Option<Timestamp>,
    catch_signals: bool,
    stand_in: Option<StandIn>,
    disk: Disk,
    looker: Looker,
    schemas: Schemas,
    redactor: Redactor,
    hands: Option<Hands>,
    inputs: Inputs,
    /// Requests that the driver has; removed when what came of them is durable.
    taken: Vec<Left>,
    sink: Option<Sink>,
}

impl fmt::Debug for RealWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealWorld").field("place", &self.place).finish_non_exhaustive()
    }
}

impl RealWorld {
    /// Touches nothing yet.
    pub fn new(setup: Setup, sink: Option<Sink>) -> Self {
        let Setup { place, env, supervise, snapshot, call, agents, continuations, .. } = setup;
        let Setup { now, catch_signals, stand_in, adapters, .. } = setup;
        let Place { run_dir, project_dir, .. } = place.clone();
        Self {
            disk: Disk::new(run_dir, project_dir.clone()),
            looker: Looker::new(project_dir),
            schemas: Schemas::default(),
            redactor: Redactor::of_environment(&env),
            hands: None,
            inputs: Inputs::new(),
            taken: Vec::new(),
            commands: agents,
            continuations,
            adapters,
            trees: Trees::new(place.clone(), env.clone()),
            place,
            env,
            supervise,
            snapshot,
            call,
            now,
            catch_signals,
            stand_in,
            sink,
        }
    }

    /// The driver is through: requests are removed, the journal gets its true length, and a
    /// supervisor without children leaves.
    pub fn finish(mut self) -> Result<(), Stop> {
        self.remove_taken()?;
        self.disk.close_journal()?;
        if let Some(hands) = &mut self.hands {
            // Whether it hears that or not, it leaves by itself a little later.
            let _ = hands.shutdown();
        }
        Ok(())
    }

    fn remove_taken(&mut self) -> Result<(), Stop> {
        for left in self.taken.drain(..) {
            inbox::remove(&left)?;
        }
        Ok(())
    }

    /// The tree is about to be another one.
    fn touch(&mut self, at: At<'_>) {
        if matches!(at, At::Project(_)) {
            self.trees.forget();
        }
    }

    fn home(&self) -> Option<&Path> {
        variable(&self.env, "HOME").map(Path::new)
    }

    fn known(&self) -> Known<'_> {
        let Self { commands, continuations, adapters, call, .. } = self;
        Known { commands, continuations, adapters, call }
    }

    fn hands(&mut self) -> Result<&mut Hands, Stop> {
        self.hands.as_mut().ok_or_else(|| Stop::Hands("nobody has connected to it".into()))
    }
}

impl From<AgentError> for Stop {
    fn from(error: AgentError) -> Self {
        Self::Unready { what: error.to_string(), hint: error.hint() }
    }
}

/// Hands that are gone are heard of as [`Input::HandsLost`], which sees to everything they held or
/// were about to.
fn not_if_gone(asked: Result<(), HandsError>) -> Result<(), Stop> {
    match asked {
        Err(HandsError::Gone { .. }) => Ok(()),
        other => other.map_err(|it| hands_stop(&it)),
    }
}

impl World for RealWorld {
    fn others(&mut self) -> Vec<String> {
        let is_alive = |pid, start_time| Identity { pid, start_time }.is_alive();
        let found = |home| live_sessions(home, &self.place.project_dir, &is_alive);
        self.home().map(found).unwrap_or_default()
    }

    fn now(&mut self) -> Timestamp {
        wall_clock()
    }

    fn now_for_ages(&mut self) -> Timestamp {
        self.now.unwrap_or_else(wall_clock)
    }

    fn clean(&mut self, event: &mut Event) {
        self.redactor.clean(event);
    }

    fn read(&mut self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop> {
        self.disk.read(at)
    }

    fn read_from(&mut self, at: At<'_>, offset: u64, bytes_max: usize) -> Result<Vec<u8>, Stop> {
        self.disk.read_from(at, offset, bytes_max)
    }

    fn make(&mut self, at: At<'_>, bytes: &[u8], kind: FileKind) -> Result<(), Stop> {
        self.touch(at);
        self.disk.make(at, bytes, kind)
    }

    fn write(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        self.touch(at);
        self.disk.write(at, bytes)
    }

    fn append(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        self.disk.append(at, bytes)
    }

    fn truncate(&mut self, at: At<'_>, length: u64) -> Result<(), Stop> {
        self.disk.truncate(at, length)
    }

    fn sync(&mut self, at: At<'_>) -> Result<(), Stop> {
        self.disk.sync(at)
    }

    fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop> {
        self.touch(to);
        self.disk.rename(from, to)
    }

    fn remove(&mut self, at: At<'_>) -> Result<(), Stop> {
        self.touch(at);
        self.disk.remove(at)
    }

    fn sync_dir(&mut self, at: At<'_>) -> Result<(), Stop> {
        self.disk.sync_dir(at)
    }

    fn look(&mut self, path: &str) -> Result<Option<Looked>, Stop> {
        self.looker.look(path)
    }

    fn content(&mut self, path: &str) -> Result<Option<(Vec<u8>, FileKind)>, Stop> {
        self.looker.content(path)
    }

    fn dir_changed_ns(&mut self, path: &str) -> Result<Option<i64>, Stop> {
        Ok(self.looker.dir_changed_ns(path))
    }

    fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop> {
        match self.trees.instead(path)? {
            Instead::There => self.looker.digest(path),
            Instead::Project { rest, .. } => self.looker.digest(&rest),
            Instead::Branch { rest, looker, .. } => looker.digest(&rest),
        }
    }

    fn glob(&mut self, pattern: &str, known: &[FileProof]) -> Result<Vec<FileProof>, Stop> {
        match self.trees.instead(pattern)? {
            Instead::There => self.looker.glob(pattern, known),
            Instead::Project { tree, rest } => Ok(moved_into(&tree, self.looker.glob(&rest, &[])?)),
            Instead::Branch { tree, rest, looker } => {
                Ok(moved_into(&tree, looker.glob(&rest, &[])?))
            }
        }
    }

    fn snapshot(&mut self, of: &Snapshot<'_>) -> Result<Option<Taken>, Stop> {
        self.trees.snapshot(of, &mut self.looker)
    }

    fn snapshot_command(&self, of: &Snapshot<'_>) -> Option<Vec<String>> {
        trees::command(&self.snapshot, self.trees.args(of))
    }

    fn changes(
        &mut self,
        of: &Snapshot<'_>,
        base: &str,
        after: Option<&str>,
    ) -> Result<Option<Changes>, Stop> {
        self.trees.changes(of, base, after, &mut self.looker)
    }

    fn footprint(&mut self, tree: &str, base: &str, after: &str) -> Result<Vec<String>, Stop> {
        self.trees.footprint(tree, base, after)
    }

    fn base_content(&mut self, base: Digest) -> Result<Option<Vec<u8>>, Stop> {
        self.trees.base_content(base)
    }

    fn keep_rescue(&mut self, of: &Snapshot<'_>, undo: &Undo<'_>) -> Result<Option<Rescued>, Stop> {
        self.trees.keep_rescue(of, undo, &mut self.looker)
    }

    fn as_committed(&mut self, paths: &[String]) -> Result<BTreeSet<String>, Stop> {
        self.trees.as_committed(paths)
    }

    fn worktree_condition(&mut self, place: &WorktreePlace) -> Result<Condition, Stop> {
        self.trees.condition(place)
    }

    fn worktree(&mut self, place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        self.trees.worktree(place)
    }

    fn commit_worktree(
        &mut self,
        place: &WorktreePlace,
        step: &Address,
        attempt: u32,
    ) -> Result<Result<Option<String>, String>, Stop> {
        self.trees.commit_worktree(place, step, attempt)
    }

    fn lost_commits(
        &mut self,
        heads: &BTreeMap<Address, WorktreeHead>,
    ) -> Result<BTreeSet<Address>, Stop> {
        self.trees.lost_commits(heads)
    }

    fn head(&mut self, tree: &str) -> Result<Option<GitHead>, Stop> {
        self.trees.head(tree)
    }

    fn commits(
        &mut self,
        tree: &str,
        since: Option<&str>,
        until: &str,
    ) -> Result<Vec<CommitSeen>, Stop> {
        self.trees.commits(tree, since, until)
    }

    fn moved(&mut self, tree: &str) -> Result<Vec<String>, Stop> {
        self.trees.moved(tree)
    }

    fn foreign(&mut self, site: &Site, card: &'static Card) -> Result<Files, Stop> {
        site::read(self.disk.project_dir(), site, card, &self.env)
    }

    fn hold(&mut self, site: &Site, card: &'static Card) -> Result<Hold, Stop> {
        let dir = self.disk.project_dir().join(site.dir());
        let path = card.lock.map_or_else(|| dir.clone(), |name| dir.join(name));
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        if card.lock.is_some() {
            options.write(true).create(true).truncate(false);
        }
        let held = options.open(&path).and_then(|file| file.lock().map(|()| file));
        held.map(Hold::of).map_err(io_stop("hold", &path))
    }

    fn refresh_tree(&mut self, tree: &str) -> Result<(), Stop> {
        let dir = self.disk.project_dir().join(tree);
        // One that cannot be reset is found not to be clean at the next look.
        let _ = Git::new(&dir, &self.env).run(&["reset", "--quiet"]);
        Ok(())
    }

    fn look_at_hands(&mut self) -> Result<Connected, Stop> {
        grip::look(&self.place)
    }

    fn connect(&mut self, epoch: u32) -> Result<Connected, Stop> {
        let run_dir = self.place.run_dir.clone();
        // A resume is a later wish than a pause or a cancel that somebody left before. One that
        // comes while a dead supervisor is replaced is meant for us.
        if self.hands.is_none() {
            inbox::forget_stops(&run_dir)?;
        }
        if self.catch_signals {
            self.inputs.hear_signals().map_err(io_stop("catch signals for", &run_dir))?;
        }
        let env = self.env.clone();
        let (mut hands, connected) = grip::connect(&self.place, epoch, env, &self.supervise)?;
        hands.listen(self.inputs.ear());
        self.hands = Some(hands);
        self.inputs.watch_inbox(run_dir);
        Ok(connected)
    }

    fn spawn(&mut self, launches: &[Launch]) -> Result<(), Stop> {
        self.trees.forget_bases();
        not_if_gone(self.hands()?.spawn(launches))
    }

    fn stop_all(&mut self) -> Result<(), Stop> {
        not_if_gone(self.hands()?.stop_all(StopLadder::default()))
    }

    fn probe(&mut self, tree: &str, command: &str, absent: i32) -> Result<Probed, Stop> {
        self.trees.forget();
        // One that is gone has nothing to say.
        let there = self.disk.project_dir().join(tree);
        let dir = if there.is_dir() { &there } else { self.disk.project_dir() };
        if let Some(stand_in) = self.stand_in.as_ref().filter(|it| it.commands) {
            return (stand_in.probe)(&self.place.run_dir).map_err(io_stop("rehearse in", dir));
        }
        probe(command, absent, dir, &self.env, PROBE_WITHIN).map_err(io_stop("run a probe in", dir))
    }

    fn wait(&mut self, until: Option<Timestamp>) -> Result<Vec<Input>, Stop> {
        self.remove_taken()?;
        self.trees.forget();
        let heard = self.inputs.wait(until);
        let inputs = heard.into_iter().map(|heard| match heard {
            Heard::Input(input) => input,
            Heard::Request(left) => {
                let request = left.request.clone();
                self.taken.push(left);
                Input::Asked(request)
            }
        });
        Ok(inputs.collect())
    }

    fn resolve(&mut self, launch: &mut Launch) -> Result<(), Stop> {
        if let Some(stand_in) = &self.stand_in {
            stand_in.take_part(launch);
        }
        let path = |name: &str| self.absolute(At::Run(name));
        let needed = self.known().resolve(launch, self.place.run.as_str(), &path)?;
        needed.iter().try_for_each(|(name, bytes)| self.disk.write(At::Run(name), bytes))
    }

    fn adapter(&self, agent: &str, program: &str) -> &'static dyn Adapter {
        adapter_of(agent, program, &self.adapters)
    }

    fn session_of(&self, launch: &Launch) -> Option<String> {
        // A stand-in keeps no session.
        let plays = self.stand_in.is_some();
        self.known().session_of(launch, self.place.run.as_str()).filter(|_| !plays)
    }

    fn session_lacks(&mut self, of: &SessionOf<'_>) -> Result<Option<String>, Stop> {
        let how = continuation_of(of.agent, of.adapter, &self.continuations);
        let Some(how) = how else {
            return Ok(Some("nothing says how to go on in it".to_owned()));
        };
        let dir = self.place.project_dir.join(of.cwd);
        let (session, run) = (of.session, self.place.run.as_str());
        let now = self.now.unwrap_or_else(wall_clock);
        Ok(transcripts::lacks(how, &Asked { session, run, dir: &dir, home: self.home(), now }))
    }

    fn absolute(&self, at: At<'_>) -> String {
        self.disk.path(at).to_string_lossy().into_owned()
    }

    fn published(&mut self, lines: &[u8]) {
        if let Some(sink) = &mut self.sink {
            sink(lines);
        }
    }

    fn validate(&mut self, schema: &str, result: &serde_json::Value) -> Result<(), String> {
        self.schemas.validate(schema, result)
    }
}
