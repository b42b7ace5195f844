//! [`RealWorld`]: the engine on a real machine.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{Event, FileKind, GitHead},
    evidence::FileProof,
    judge::Objection,
    launch::Launch,
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

use super::{
    clock::wall_clock,
    disk::{Disk, io_stop},
    grip::{self, not_if_gone},
    inputs::{Heard, Inputs, Waited},
    look::Looker,
    news::{self, News, Sink},
    probe::{PROBE_WITHIN, probe},
    schema::Schemas,
    setup::Setup,
    shared::{self, Shared},
    site,
    stand_in::StandIn,
    trees::{self, Trees},
    variable,
    worktrees::{Instead, moved_into},
    zone_of,
};
use crate::agents::{
    Adapters, AgentError, Commands, Known, Spoken,
    command::Command,
    reset,
    sessions::{self, live_sessions},
    transcripts::{self, Asked, Continuations},
};
use crate::world::{
    At, Changes, Condition, Connected, Hold, Input, KnownLimit, Looked, Rescued, SessionLack,
    SessionOf, Snapshot, Stop, Taken, Undo, WorktreeHead, World, files,
    git::Git,
    inbox::{self, Left},
    out_name,
    secrets::Redactor,
    spot::Spot,
    supervisor::{Hands, Identity, Place, Stop as StopLadder},
};

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
    /// What was asked before is not meant for us.
    begun_at: Timestamp,
    catch_signals: bool,
    tell: Option<fn(&str)>,
    stand_in: Option<StandIn>,
    disk: Disk,
    looker: Looker,
    schemas: Schemas,
    redactor: Redactor,
    shared: Shared,
    hands: Option<Hands>,
    inputs: Inputs,
    /// Requests that the driver has; removed when what came of them is durable.
    taken: Vec<Left>,
    /// The last file of the run that was looked for and was not there.
    absent: Option<String>,
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
        let Setup { now, catch_signals, tell, stand_in, adapters, .. } = setup;
        let Place { run_dir, project_dir, .. } = place.clone();
        Self {
            disk: Disk::new(run_dir, project_dir.clone()),
            looker: Looker::new(project_dir),
            schemas: Schemas::default(),
            redactor: Redactor::of_run(&env, &place.run_dir),
            shared: Shared::of(&env),
            hands: None,
            inputs: Inputs::new(),
            taken: Vec::new(),
            absent: None,
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
            begun_at: wall_clock(),
            catch_signals,
            tell,
            stand_in,
            sink,
        }
    }

    /// The driver is through: requests are removed, the journal gets its true length, and a
    /// supervisor without children leaves.
    pub fn finish(mut self) -> Result<(), Stop> {
        inbox::remove_all(&mut self.taken)?;
        self.disk.close_journal()?;
        if let Some(hands) = &mut self.hands {
            // Whether it hears that or not, it leaves by itself a little later.
            let _ = hands.shutdown();
        }
        Ok(())
    }

    /// Waits for a moment before the journal is opened, unless a person wants something else. What
    /// was asked at the last call has been done by now.
    pub(crate) fn wait_until(&mut self, moment: Timestamp) -> Result<Waited, Stop> {
        inbox::remove_all(&mut self.taken)?;
        self.hear_person()?;
        let waited = self.inputs.until(moment);
        if let Waited::Asked(requests) = &waited {
            self.taken.extend(requests.iter().cloned());
        }
        Ok(waited)
    }

    /// From here on signals and requests are heard. A resume is a later wish than a pause or a
    /// cancel that was left before it; one that came since, while the run was examined or the
    /// driver waited for a limit, is meant for us.
    fn hear_person(&mut self) -> Result<(), Stop> {
        let dir = &self.place.run_dir;
        if self.catch_signals {
            self.inputs.hear_signals().map_err(io_stop("catch signals for", dir))?;
        }
        if !self.inputs.watches_inbox() {
            inbox::forget_stops(dir, self.begun_at)?;
            let watched = self.inputs.watch_inbox(dir.clone());
            watched.map_err(io_stop("watch the inbox of", dir))?;
        }
        Ok(())
    }

    /// The tree is about to be another one.
    fn touch(&mut self, at: At<'_>) {
        self.absent = None;
        if matches!(at, At::Project(_)) {
            self.trees.forget();
        }
    }

    /// What a step wrote into its result file it wrote into our directory.
    fn clean_result(&mut self, event: &Event) {
        let Event::AttemptFinished(finished) = event else { return };
        let name = out_name(&finished.step, finished.attempt, "result");
        // Nothing of the attempt lives: what it had not made when it was judged, it never makes.
        if self.absent.as_ref() == Some(&name) {
            return;
        }
        let Ok(Some(bytes)) = self.disk.read(At::Run(&name)) else { return };
        if let Cow::Owned(clean) = self.redactor.bytes(&bytes) {
            // The journal is what counts; a disk that cannot be written stops the next append.
            let _ = self.disk.write(At::Run(&name), &clean);
        }
    }

    fn home(&self) -> Option<&Path> {
        variable(&self.env, "HOME").map(Path::new)
    }

    fn path_in(&self, name: &str) -> Option<PathBuf> {
        variable(&self.env, name).map(PathBuf::from)
    }

    fn known(&self) -> Known<'_> {
        let Self { commands, continuations, adapters, call, .. } = self;
        Known { commands, continuations, adapters, call }
    }

    fn hands(&mut self) -> Result<&mut Hands, Stop> {
        self.hands.as_mut().ok_or_else(|| Stop::Hands("the engine is not connected to it".into()))
    }
}

impl From<AgentError> for Stop {
    fn from(error: AgentError) -> Self {
        Self::Unready { what: error.to_string(), hint: error.hint() }
    }
}

impl World for RealWorld {
    fn others(&mut self) -> Vec<String> {
        let is_alive = |pid, start_time| Identity { pid, start_time }.is_alive();
        let found = |dir: PathBuf| live_sessions(&dir, &self.place.project_dir, &is_alive);
        sessions::dir(|name| self.path_in(name)).map(found).unwrap_or_default()
    }

    fn now(&mut self) -> Timestamp {
        wall_clock()
    }

    fn now_for_ages(&mut self) -> Timestamp {
        self.now.unwrap_or_else(wall_clock)
    }

    fn clean(&mut self, event: &mut Event) {
        self.clean_result(event);
        self.redactor.clean(event);
    }

    fn read(&mut self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop> {
        let found = self.disk.read(at)?;
        self.absent = match (at, &found) {
            (At::Run(name), None) => Some(name.to_owned()),
            (At::Run(_) | At::Project(_), _) => None,
        };
        Ok(found)
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

    fn in_the_way(&mut self, path: &str) -> Result<Vec<String>, Stop> {
        Ok(self.looker.in_the_way(path))
    }

    fn leads(&mut self, path: &str) -> Result<files::Leads, Stop> {
        Ok(self.looker.leads(path))
    }

    fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop> {
        match self.trees.instead(path)? {
            Instead::There => self.looker.digest(path),
            Instead::Project { rest, .. } => self.looker.digest(&rest),
            Instead::Branch { rest, looker, .. } => looker.digest(&rest),
        }
    }

    fn unchanged(&mut self, files: &[(usize, FileKept<'_>)]) -> Result<Vec<bool>, Stop> {
        let mut seen = self.looker.unchanged(files);
        for (seen, (_, file)) in seen.iter_mut().zip(files).filter(|(seen, _)| **seen) {
            // What lay in a worktree may have to be looked for elsewhere.
            *seen = matches!(self.trees.instead(file.path)?, Instead::There);
        }
        Ok(seen)
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

    fn changed_since(&mut self, pattern: &str, since_ns: i64) -> Result<Vec<String>, Stop> {
        self.looker.changed_since(pattern, since_ns)
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

    fn foreign_files(&mut self, site: &Site, card: &'static Card) -> Result<Files, Stop> {
        site::read_files(self.disk.project_dir(), site, card, &self.env)
    }

    fn hold(&mut self, site: &Site, card: &'static Card) -> Result<Hold, Stop> {
        let told = (self.sink.as_mut(), self.tell);
        let mut meanwhile = news::while_waiting(&mut self.inputs, self.catch_signals, told);
        site::hold(self.disk.project_dir(), site, card, &mut meanwhile).map(Hold::of)
    }

    fn refresh_tree(&mut self, tree: &str) -> Result<(), Stop> {
        let dir = self.disk.project_dir().join(tree);
        // One that cannot be reset is found not to be clean at the next look.
        let _ = Git::new(&dir, &self.env).run(&["reset", "--quiet"]);
        Ok(())
    }

    fn look_at_hands(&mut self, told: &State) -> Result<Connected, Stop> {
        grip::look(&self.place, told, &self.env)
    }

    fn keep_looked(&mut self, told: &State) {
        let _ = grip::keep(&self.place, told, &self.env);
    }

    fn connect(&mut self, epoch: u32, told: &State) -> Result<Connected, Stop> {
        let run_dir = self.place.run_dir.clone();
        self.hear_person()?;
        self.redactor.keep(&run_dir).map_err(io_stop("keep digests in", &run_dir))?;
        self.looker.try_out(&run_dir);
        let env = self.env.clone();
        let (mut hands, connected) = grip::connect(&self.place, told, epoch, env, &self.supervise)?;
        // What a dead supervisor left has worked on until it was ended just now.
        self.trees.forget();
        let heard = hands.ears().map_or(Ok(()), |ears| self.inputs.hear_hands(ears));
        heard.map_err(io_stop("listen to the supervisor of", &run_dir))?;
        self.hands = Some(hands);
        Ok(connected)
    }

    fn spawn(&mut self, launches: &[Launch], slots: Option<u32>) -> Result<(), Stop> {
        self.trees.forget_bases();
        let given = launches.iter().flat_map(|it| it.env.clone());
        if self.redactor.learn(given) {
            let run_dir = &self.place.run_dir;
            self.redactor.keep(run_dir).map_err(io_stop("keep digests in", run_dir))?;
        }
        not_if_gone(self.hands()?.queue(launches, slots))
    }

    fn withdraw(&mut self) -> Result<(), Stop> {
        not_if_gone(self.hands()?.withdraw())
    }

    fn stop(&mut self, step: &Address, attempt: u32) -> Result<(), Stop> {
        not_if_gone(self.hands()?.stop(step, attempt, StopLadder::default()))
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
        inbox::remove_all(&mut self.taken)?;
        self.trees.forget();
        let heard = self.inputs.wait(until);
        self.disk.has_not_moved()?;
        let inputs = heard.into_iter().map(|heard| match heard {
            Heard::Input(input) => input,
            Heard::Request(left) => {
                self.taken.push(left.clone());
                Input::Asked(left.request)
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

    fn adapter(&self, agent: &str, program: &str) -> Spoken {
        // A stand-in speaks like no program.
        if self.stand_in.is_some() {
            return Spoken::Known(&Command);
        }
        self.known().adapter(agent, program)
    }

    fn moment_in(&self, words: &str, at: Timestamp) -> Option<Timestamp> {
        reset::moment(words, at, &zone_of(&self.env))
    }

    fn session_of(&self, launch: &Launch) -> Option<String> {
        // A stand-in keeps no session.
        let plays = self.stand_in.is_some();
        self.known().session_of(launch, self.place.run.as_str()).filter(|_| !plays)
    }

    fn session_lacks(&mut self, of: &SessionOf<'_>) -> Result<Option<SessionLack>, Stop> {
        let unusable = |why: String| Ok(Some(SessionLack::Unusable(why)));
        let Some(how) = self.known().goes_on(of.agent, of.adapter) else {
            return unusable("nothing says how to continue it".to_owned());
        };
        let dir = self.place.project_dir.join(of.cwd);
        let (session, run) = (of.session, self.place.run.as_str());
        let now = self.now.unwrap_or_else(wall_clock);
        let spot = Spot::of(&self.place.run_dir).map(|it| it.to_string()).unwrap_or_default();
        let asked = Asked { session, run, spot: &spot, dir: &dir, home: self.home(), now };
        let adapter = self.known().adapter(of.agent, of.adapter);
        let transcript = how.transcript(&adapter, |name| self.path_in(name));
        if let Some(why) = transcripts::lacks(&transcript, &asked) {
            return unusable(why);
        }
        let is_alive = |pid, start_time| Identity { pid, start_time }.is_alive();
        let of_claude = sessions::dir(|name| self.path_in(name));
        let of_another = || self.shared.is_held_elsewhere(session).then(|| shared::HELD.to_owned());
        let busy = transcripts::writer(&asked)
            .or_else(|| sessions::open_in(&of_claude?, session, &is_alive))
            .filter(|pid| !transcripts::is_ours(*pid, &asked))
            .map(|pid| format!("process {pid} has it open"))
            .or_else(of_another);
        Ok(busy.map(SessionLack::Busy))
    }

    fn hold_session(&mut self, session: &str) -> bool {
        self.shared.hold(session)
    }

    fn known_limit(&mut self, of: Worker<'_>) -> Option<KnownLimit> {
        self.shared.limit(&*self.adapter(of.name, of.program), wall_clock())
    }

    fn limit_met(&mut self, of: Worker<'_>, resets_at: Option<Timestamp>) -> Option<String> {
        self.shared.meet(&*self.adapter(of.name, of.program), resets_at, wall_clock())
    }

    fn cleaned(&self, text: String) -> String {
        self.redactor.text(&text).into_owned()
    }

    fn absolute(&self, at: At<'_>) -> String {
        self.disk.path(at).to_string_lossy().into_owned()
    }

    fn sealed(&self, purpose: &str, bytes: Vec<u8>) -> Option<Vec<u8>> {
        shared::sealed(&self.env, purpose, bytes)
    }

    fn unsealed(&self, purpose: &str, sealed: Vec<u8>) -> Option<Vec<u8>> {
        shared::unsealed(&self.env, purpose, sealed)
    }

    fn published(&mut self, lines: &[u8]) {
        self.sink.iter_mut().for_each(|sink| sink(News::Lines(lines)));
    }

    fn validate(&mut self, schema: &str, result: &serde_json::Value) -> Result<(), Objection> {
        self.schemas.validate(schema, result)
    }
}
