//! The simulated world: the engine's real code runs on it, and it can go dark at any call.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    rc::Rc,
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{FileKind, GitHead},
    evidence::{FileProof, Stat},
    journal::decode_line,
    judge::Objection,
    launch::Launch,
    recovery::Probed,
    state::State,
    survey::CommitSeen,
    time::Timestamp,
    worktree::WorktreePlace,
};
use onward_dialects::{
    Files,
    seam::{Card, Site},
};
use onward_engine::{
    agents::{self, Adapter, Spoken},
    load::journal::JOURNAL,
    world::{
        At, Changes, Condition, Connected, Hold, Input, Looked, Request, Rescued, Snapshot, Stop,
        Taken, Undo, WorktreeHead, World,
    },
};

use crate::{
    agents::Supervisor,
    chance::Chance,
    crash::{Crash, Losses, Window},
    disk::{Disk, fits},
    forks::{Fork, Put},
    repo::{Repo, admin, condition, resolve},
    systems::stage::Stage,
    trees::{Trees, below},
};
use act::Meanwhile;
use watch::Finished;
use worktrees::Instead;

pub(crate) mod act;
mod site;
mod watch;
mod worktrees;

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a test switches on")]
pub(crate) struct SimWorld {
    pub(crate) disk: Disk,
    pub(crate) supervisor: Supervisor,
    pub(crate) now_us: i64,
    boot: u32,
    /// When it goes dark and how: calls left after the crash before it.
    pub(crate) fuses: VecDeque<(u64, Crash)>,
    pub(crate) chance: Chance,
    /// Calls made in this life.
    pub(crate) calls: u64,
    /// Exits that were seen by the world alone, per step.
    exits: BTreeMap<Address, u32>,
    /// Effects beyond the machine, each as often as it happened.
    pub(crate) effects: BTreeMap<String, u32>,
    /// Spawns of each attempt, for the laws.
    pub(crate) spawns: BTreeMap<(Address, u32), u32>,
    /// Finished when the lights went out, so never to be spawned again.
    pub(crate) finished: BTreeMap<Address, Finished>,
    open_gates: BTreeMap<Address, Digest>,
    heartbeat_us: Option<i64>,
    /// Steps whose agents have met their limit.
    limited: BTreeSet<Address>,
    /// Windows in which a crash has fallen.
    pub(crate) windows: BTreeSet<Window>,
    undoing: bool,
    pub(crate) trees: Trees,
    pub(crate) repo: Repo,
    /// What a person took away while nothing ran.
    pub(crate) taken: Losses,
    /// Files of a person's, and their branches, as they left them.
    pub(crate) of_person: BTreeMap<String, Vec<u8>>,
    pub(crate) hands_lost: bool,
    /// How often another system's files were read since the engine was started.
    pub(crate) foreign_reads: u32,
    /// The same when the first step of this start was spawned, or nothing if a crash came first.
    pub(crate) foreign_reads_at_spawn: Option<u32>,
    pub(crate) meanwhile: Meanwhile,
    /// A supervisor that survived does nothing while an engine connects.
    pub(crate) stands_still: bool,
    /// Steps leave what they write to the disk's own time.
    pub(crate) lazy: bool,
    /// Drivers announce ahead from the first step on.
    pub(crate) eager: bool,
    /// As many attempts may be under way.
    pub(crate) parallel: usize,
    /// How often an attempt had to wait for a slot.
    pub(crate) waited: u64,
    /// Where built-in calls are made and what agents do there; without one, scripts are all there
    /// is.
    pub(crate) stage: Option<Rc<Stage>>,
    /// The run of another system that ours goes on with.
    pub(crate) site: Option<Site>,
    /// What this world is to live through, for the reader of a failure.
    pub(crate) story: String,
    /// Each call so far, where they are kept.
    pub(crate) forks: Option<Vec<Fork>>,
}

impl SimWorld {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            disk: Disk::default(),
            supervisor: Supervisor::default(),
            now_us: 1_800_000_000_000_000,
            boot: 1,
            fuses: VecDeque::new(),
            chance: Chance::new(seed),
            calls: 0,
            exits: BTreeMap::new(),
            effects: BTreeMap::new(),
            spawns: BTreeMap::new(),
            finished: BTreeMap::new(),
            open_gates: BTreeMap::new(),
            heartbeat_us: None,
            limited: BTreeSet::new(),
            windows: BTreeSet::new(),
            undoing: false,
            trees: Trees::default(),
            repo: Repo::default(),
            taken: Losses::default(),
            of_person: BTreeMap::new(),
            hands_lost: false,
            foreign_reads: 0,
            foreign_reads_at_spawn: None,
            meanwhile: Meanwhile::default(),
            stands_still: false,
            lazy: false,
            eager: false,
            parallel: usize::MAX,
            waited: 0,
            stage: None,
            site: None,
            story: String::new(),
            forks: None,
        }
    }

    pub(crate) fn boot_id(&self) -> String {
        format!("boot {}", self.boot)
    }

    fn burn(&mut self) -> Result<(), Stop> {
        self.fork(None);
        self.burn_out()
    }

    /// Uses up one call; the last one does not return, unless it is only the hands that die.
    pub(crate) fn burn_out(&mut self) -> Result<(), Stop> {
        self.calls += 1;
        match self.fuses.front_mut() {
            None => Ok(()),
            Some((0, crash)) => {
                let crash = *crash;
                self.fuses.pop_front();
                self.go_dark(crash);
                self.hands_lost = crash == Crash::Hands;
                // From here on it is another resume.
                self.foreign_reads_at_spawn.get_or_insert(0);
                if self.hands_lost { Ok(()) } else { Err(Stop::Dark) }
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// A dying write may leave a part of itself.
    fn write_in(&mut self, put: Put, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        let name = name(at);
        self.fork(Some((put, &name, bytes)));
        if matches!(self.fuses.front(), Some((0, crash)) if *crash != Crash::Hands) {
            let part = self.chance.below(bytes.len() + 1);
            put(&mut self.disk, &name, &bytes[..part], self.now_us);
        }
        self.burn_out()?;
        put(&mut self.disk, &name, bytes, self.now_us);
        Ok(())
    }

    fn go_dark(&mut self, crash: Crash) {
        self.note_windows();
        match crash {
            Crash::Engine => {
                self.supervisor.engine_connected = false;
                self.supervisor.unreported.clear();
                self.supervisor.forget_queue();
                // No engine is connected any more: from here on every seal is synced.
                self.supervisor.synced = self.supervisor.seals.len();
            }
            Crash::Processes | Crash::Hands => self.end_processes(),
            Crash::Power => {
                self.end_processes();
                self.keep_what_is_over();
                self.disk.power_cut(&mut self.chance);
                let kept = self.supervisor.synced;
                let extra = self.chance.below(self.supervisor.seals.len() - kept + 1);
                self.supervisor.seals.truncate(kept + extra);
                let spawned = self.chance.below(self.supervisor.spawned.len() + 1);
                self.supervisor.spawned.truncate(spawned);
                self.supervisor.of_earlier_boots = self.supervisor.seals.len();
                self.boot += 1;
            }
        }
        self.supervisor.synced = self.supervisor.seals.len();
        self.undoing = false;
        self.remember_finished();
        self.now_us += 1_000_000;
    }

    fn end_processes(&mut self) {
        self.heartbeat_us = Some(self.now_us);
        self.supervisor.agents.clear();
        self.supervisor.unsealed = None;
        self.supervisor.recording = None;
        self.supervisor.unreported.clear();
        self.supervisor.forget_queue();
        self.supervisor.engine_connected = false;
    }

    /// A person comes back when the limit is lifted.
    pub(crate) fn wait_for(&mut self, until: Timestamp) {
        self.now_us = self.now_us.max(until.as_micros());
    }

    fn proofs(&self, wanted: &str) -> Vec<FileProof> {
        let mut found = Vec::new();
        for name in self.disk.names().filter(|name| fits(wanted, name)) {
            let bytes = self.disk.read(name).expect("listed");
            let mtime_us = self.disk.mtime_us(name).expect("listed");
            let path = name.strip_prefix("project/").expect("in the project").to_owned();
            found.push(proof(path, bytes, mtime_us * 1000));
        }
        found
    }
}

fn proof(path: String, bytes: &[u8], mtime_ns: i64) -> FileProof {
    let size = u64::try_from(bytes.len()).expect("small");
    FileProof { path, hash: Digest::of(bytes), stat: Stat { size, mtime_ns, inode: 0 } }
}

fn name(at: At<'_>) -> String {
    match at {
        At::Run(path) => format!("run/{path}"),
        At::Project(path) => format!("project/{path}"),
    }
}

impl World for SimWorld {
    fn now(&mut self) -> Timestamp {
        Timestamp::from_micros(self.now_us)
    }

    fn read(&mut self, at: At<'_>) -> Result<Option<Vec<u8>>, Stop> {
        self.burn()?;
        Ok(self.disk.read(&name(at)).map(<[u8]>::to_vec))
    }

    fn make(&mut self, at: At<'_>, bytes: &[u8], kind: FileKind) -> Result<(), Stop> {
        assert_eq!(kind, FileKind::Plain, "there are no others here");
        self.write(at, bytes)
    }

    fn write(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        if matches!(at, At::Project(_)) {
            self.undoing = true;
        }
        self.write_in(Disk::write, at, bytes)
    }

    fn append(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        self.write_in(Disk::append, at, bytes)
    }

    fn truncate(&mut self, at: At<'_>, length: u64) -> Result<(), Stop> {
        self.burn()?;
        self.disk.truncate(&name(at), usize::try_from(length).expect("small"));
        Ok(())
    }

    fn sync(&mut self, at: At<'_>) -> Result<(), Stop> {
        self.burn().map(|()| self.disk.sync(&name(at)))
    }

    fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop> {
        self.burn().map(|()| self.disk.rename(&name(from), &name(to)))
    }

    fn remove(&mut self, at: At<'_>) -> Result<(), Stop> {
        if matches!(at, At::Project(_)) {
            self.undoing = true;
        }
        self.burn()?;
        self.disk.remove(&name(at));
        Ok(())
    }

    fn sync_dir(&mut self, at: At<'_>) -> Result<(), Stop> {
        self.burn()?;
        self.disk.sync_dir(&name(at));
        self.undoing = false;
        Ok(())
    }

    fn look(&mut self, path: &str) -> Result<Option<Looked>, Stop> {
        self.burn()?;
        let name = name(At::Project(path));
        let Some(bytes) = self.disk.read(&name) else { return Ok(None) };
        let changed_ns = self.disk.mtime_us(&name).expect("it is there") * 1000;
        Ok(Some(Looked { hash: Digest::of(bytes), kind: FileKind::Plain, changed_ns }))
    }

    fn content(&mut self, path: &str) -> Result<Option<(Vec<u8>, FileKind)>, Stop> {
        let bytes = self.read(At::Project(path))?;
        Ok(bytes.map(|bytes| (bytes, FileKind::Plain)))
    }

    fn dir_changed_ns(&mut self, _path: &str) -> Result<Option<i64>, Stop> {
        Ok(None)
    }

    fn snapshot(&mut self, of: &Snapshot<'_>) -> Result<Option<Taken>, Stop> {
        self.burn()?;
        if !self.has_tree(of.tree) {
            return Ok(None);
        }
        let id = self.record_tree(of.tree);
        Ok(Some(Taken { id, skipped: Vec::new() }))
    }

    fn snapshot_command(&self, _of: &Snapshot<'_>) -> Option<Vec<String>> {
        Some(vec!["snapshot".to_owned()])
    }

    fn changes(
        &mut self,
        of: &Snapshot<'_>,
        base: &str,
        after: Option<&str>,
    ) -> Result<Option<Changes>, Stop> {
        self.burn()?;
        if !self.has_tree(of.tree) {
            // With the directory went whatever was changed in it.
            return Ok(Some(Changes::default()));
        }
        let all = self.trees.changes(&self.disk, &self.repo, of.tree, (base, after));
        Ok(Some(Changes { all, ..Changes::default() }))
    }

    fn footprint(&mut self, tree: &str, base: &str, after: &str) -> Result<Vec<String>, Stop> {
        self.burn()?;
        Ok(self.trees.footprint(tree, base, after))
    }

    fn base_content(&mut self, base: Digest) -> Result<Option<Vec<u8>>, Stop> {
        self.burn()?;
        Ok(self.trees.content(&self.repo, base))
    }

    fn keep_rescue(&mut self, of: &Snapshot<'_>, undo: &Undo<'_>) -> Result<Option<Rescued>, Stop> {
        self.burn()?;
        let undone = self.trees.record_without(&self.disk, &self.repo, of.tree, undo.reverts);
        let (reference, commit) = (format!("rescue/{}", undo.number), undone.clone());
        Ok(Some(Rescued { reference, commit, undone, patch: b"patch".to_vec() }))
    }

    fn as_committed(&mut self, _paths: &[String]) -> Result<BTreeSet<String>, Stop> {
        Ok(BTreeSet::new())
    }

    fn worktree_condition(&mut self, place: &WorktreePlace) -> Result<Condition, Stop> {
        self.burn()?;
        Ok(condition(&self.disk, place))
    }

    fn worktree(&mut self, place: &WorktreePlace) -> Result<Result<(), String>, Stop> {
        self.enter(place)
    }

    fn commit_worktree(
        &mut self,
        place: &WorktreePlace,
        step: &Address,
        attempt: u32,
    ) -> Result<Result<Option<String>, String>, Stop> {
        self.commit_all(place, step, attempt)
    }

    fn lost_commits(
        &mut self,
        heads: &BTreeMap<Address, WorktreeHead>,
    ) -> Result<BTreeSet<Address>, Stop> {
        self.burn()?;
        Ok(self.lost(heads))
    }

    fn head(&mut self, tree: &str) -> Result<Option<GitHead>, Stop> {
        if !self.repo.is_there() {
            return Ok(None);
        }
        self.burn()?;
        let Some(head) = self.repo.head(&self.disk, tree) else { return Ok(None) };
        let file = WorktreePlace::at(tree).map(|place| admin(&place, "HEAD"));
        let file = file.unwrap_or_else(|| crate::repo::HEAD.to_owned());
        let branch = resolve(&self.disk, &file).0;
        Ok(Some(GitHead { branch, head: Some(head) }))
    }

    fn commits(
        &mut self,
        _tree: &str,
        since: Option<&str>,
        until: &str,
    ) -> Result<Vec<CommitSeen>, Stop> {
        self.burn()?;
        Ok(self.commits_between(since, until))
    }

    fn moved(&mut self, tree: &str) -> Result<Vec<String>, Stop> {
        if !self.repo.is_there() || !self.has_tree(tree) {
            return Ok(Vec::new());
        }
        self.burn()?;
        Ok(self.trees.moved(&self.disk, &self.repo, tree))
    }

    fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop> {
        self.burn()?;
        Ok(match self.instead(path) {
            Instead::There => self.disk.read(&name(At::Project(path))).map(Digest::of),
            Instead::In { files, rest, .. } => files.get(&rest).map(|bytes| Digest::of(bytes)),
        })
    }

    fn glob(&mut self, pattern: &str, _known: &[FileProof]) -> Result<Vec<FileProof>, Stop> {
        self.burn()?;
        Ok(match self.instead(pattern) {
            Instead::There => self.proofs(&name(At::Project(pattern))),
            Instead::In { files, tree, rest } => {
                let found = files.iter().filter(|(path, _)| fits(&rest, path));
                found.map(|(path, bytes)| proof(below(&tree, path), bytes, 0)).collect()
            }
        })
    }

    fn foreign(&mut self, site: &Site, _card: &'static Card) -> Result<Files, Stop> {
        self.burn()?;
        self.foreign_reads += 1;
        Ok(self.site_files(site))
    }

    fn foreign_files(&mut self, site: &Site, card: &'static Card) -> Result<Files, Stop> {
        self.foreign(site, card)
    }

    fn hold(&mut self, _site: &Site, _card: &'static Card) -> Result<Hold, Stop> {
        self.burn()?;
        self.let_calls_end();
        self.let_others_go_on();
        Ok(Hold::default())
    }

    fn refresh_tree(&mut self, _tree: &str) -> Result<(), Stop> {
        self.burn()
    }

    fn look_at_hands(&mut self, _told: &State) -> Result<Connected, Stop> {
        self.burn().map(|()| self.connected())
    }

    fn connect(&mut self, _epoch: u32, _told: &State) -> Result<Connected, Stop> {
        self.burn()?;
        // A surviving supervisor had some time to itself.
        let ticks = if self.stands_still { 0 } else { self.chance.below(4) };
        for _ in 0..ticks {
            self.tick(i64::MAX);
        }
        self.supervisor.engine_connected = true;
        self.supervisor.unreported.clear();
        self.supervisor.forget_queue();
        self.hands_lost = false;
        Ok(self.connected())
    }

    fn spawn(&mut self, launches: &[Launch], slots: Option<u32>) -> Result<(), Stop> {
        self.foreign_reads_at_spawn.get_or_insert(self.foreign_reads);
        for launch in launches {
            self.burn()?;
            if self.hands_lost {
                return Ok(());
            }
            match slots {
                Some(slots) => self.queue(launch, slots),
                None => self.begin(launch),
            }
        }
        Ok(())
    }

    fn withdraw(&mut self) -> Result<(), Stop> {
        self.burn()?;
        self.supervisor.withdraw();
        Ok(())
    }

    fn stop(&mut self, _step: &Address, _attempt: u32) -> Result<(), Stop> {
        self.burn()
    }
    fn stop_all(&mut self) -> Result<(), Stop> {
        self.burn()
    }

    fn probe(&mut self, _tree: &str, command: &str, _absent: i32) -> Result<Probed, Stop> {
        self.burn()?;
        let effect = command.strip_prefix("probe ").expect("`probe NAME`");
        Ok(if self.effects.contains_key(effect) { Probed::Happened } else { Probed::Absent })
    }

    fn wait(&mut self, until: Option<Timestamp>) -> Result<Vec<Input>, Stop> {
        loop {
            self.burn()?;
            if self.hands_lost {
                return Ok(vec![Input::HandsLost { why: None }]);
            }
            let told = self.supervisor.tell(false);
            if !told.is_empty() {
                return Ok(told);
            }
            let until_us = until.map_or(i64::MAX, Timestamp::as_micros);
            if self.tick(until_us) {
                continue;
            }
            let told = self.supervisor.tell(true);
            if !told.is_empty() {
                return Ok(told);
            }
            if let Some((step, hash)) = self.open_gates.pop_first() {
                let (option, by) = ("approve".to_owned(), "sim".to_owned());
                let hash = Some(hash);
                let request = Request::Decide { step, option, comment: None, by, hash };
                return Ok(vec![Input::Asked(request)]);
            }
            assert!(until.is_some(), "a standstill: {}", self.story);
            self.now_us = self.now_us.max(until_us);
            return Ok(Vec::new());
        }
    }

    fn resolve(&mut self, _launch: &mut Launch) -> Result<(), Stop> {
        Ok(())
    }

    fn absolute(&self, at: At<'_>) -> String {
        name(at)
    }

    fn published(&mut self, lines: &[u8]) {
        assert_eq!(
            self.disk.synced(&name(At::Run(JOURNAL))),
            self.disk.read(&name(At::Run(JOURNAL))),
            "only what is durable is told"
        );
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record = decode_line(line).expect("we wrote it");
            self.see_gate(&record.event);
            self.let_a_person_edit(&record.event);
            self.check_exported(&record.event);
        }
    }

    fn adapter(&self, agent: &str, _program: &str) -> Spoken {
        // The one that speaks; all others are known by their exit code alone.
        let speaks = agent == "talker";
        let adapter: &'static dyn Adapter =
            if speaks { &agents::lines::Lines } else { &agents::command::Command };
        Spoken::Known(adapter)
    }

    fn validate(&mut self, _schema: &str, result: &serde_json::Value) -> Result<(), Objection> {
        let violates = || Objection::Violates("not an object".to_owned());
        if result.is_object() { Ok(()) } else { Err(violates()) }
    }
}
