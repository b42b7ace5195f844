//! The simulated world: the engine's real code runs on it, and it can go dark at any call.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{Event, FileKind, GitHead},
    evidence::{FileProof, Stat},
    journal::decode_line,
    launch::{Launch, Seal},
    recovery::Probed,
    survey::CommitSeen,
    time::Timestamp,
};
use onward_engine::{
    load::journal::JOURNAL,
    world::{
        At, Changes, Connected, Input, Looked, Request, Rescued, Snapshot, Stop, Survived, Taken,
        Undo, World,
    },
};

use crate::{
    agents::{Act, Agent, Ended, Supervisor, seal_of},
    chance::Chance,
    crash::{Crash, Window, readable},
    disk::Disk,
    trees::Trees,
};

mod watch;

#[derive(Clone, Debug)]
pub(crate) struct SimWorld {
    pub(crate) disk: Disk,
    pub(crate) supervisor: Supervisor,
    now_us: i64,
    boot: u32,
    /// When it goes dark and how: calls left after the crash before it.
    pub(crate) fuses: VecDeque<(u64, Crash)>,
    pub(crate) chance: Chance,
    /// Calls made in this life.
    pub(crate) calls: u64,
    /// Exits that were seen by nobody but the world, per step.
    exits: BTreeMap<Address, u32>,
    /// Effects beyond the machine, each as often as it happened.
    pub(crate) effects: BTreeMap<String, u32>,
    /// Spawns of each attempt, for the laws.
    pub(crate) spawns: BTreeMap<(Address, u32), u32>,
    /// Finished when the lights went out, so never to be spawned again.
    pub(crate) finished: BTreeSet<Address>,
    open_gates: BTreeMap<Address, Digest>,
    heartbeat_us: Option<i64>,
    /// Windows in which a crash has fallen.
    pub(crate) windows: BTreeSet<Window>,
    undoing: bool,
    pub(crate) trees: Trees,
    /// The supervisor is dead, and nobody has taken hold of another one.
    pub(crate) hands_lost: bool,
    /// What this world is to live through, for whoever reads a failure.
    pub(crate) story: String,
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
            finished: BTreeSet::new(),
            open_gates: BTreeMap::new(),
            heartbeat_us: None,
            windows: BTreeSet::new(),
            undoing: false,
            trees: Trees::default(),
            hands_lost: false,
            story: String::new(),
        }
    }

    pub(crate) fn boot_id(&self) -> String {
        format!("boot {}", self.boot)
    }

    /// Uses up one call; the last one does not return, unless it is only the hands that die.
    fn burn(&mut self) -> Result<(), Stop> {
        self.calls += 1;
        match self.fuses.front_mut() {
            None => Ok(()),
            Some((0, crash)) => {
                let crash = *crash;
                self.fuses.pop_front();
                self.go_dark(crash);
                self.hands_lost = crash == Crash::Hands;
                if self.hands_lost { Ok(()) } else { Err(Stop::Dark) }
            }
            Some((left, _)) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// A dying write may leave a part of itself.
    fn dying(&mut self, bytes: &[u8]) -> Option<usize> {
        let dies = matches!(self.fuses.front(), Some((0, crash)) if *crash != Crash::Hands);
        dies.then(|| self.chance.below(bytes.len() + 1))
    }

    fn go_dark(&mut self, crash: Crash) {
        self.note_windows();
        match crash {
            Crash::Engine => {
                self.supervisor.engine_connected = false;
                self.supervisor.unreported.clear();
                // Nobody is connected any more: from here on every seal is synced.
                self.supervisor.synced = self.supervisor.seals.len();
            }
            Crash::Processes | Crash::Hands => self.end_processes(),
            Crash::Power => {
                self.end_processes();
                self.disk.power_cut(&mut self.chance);
                let kept = self.supervisor.synced;
                let extra = self.chance.below(self.supervisor.seals.len() - kept + 1);
                self.supervisor.seals.truncate(kept + extra);
                let spawned = self.chance.below(self.supervisor.spawned.len() + 1);
                self.supervisor.spawned.truncate(spawned);
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
        self.supervisor.engine_connected = false;
    }

    /// One thing happens among the agents. `false` when nothing can.
    fn tick(&mut self, until_us: i64) -> bool {
        if self.supervisor.unsealed.is_some() {
            self.supervisor.seal();
            return true;
        }
        if self.supervisor.recording.is_some() {
            let after = self.trees.record(&self.disk);
            self.supervisor.record(after);
            return true;
        }
        let Some((key, at_us)) = self.supervisor.next().filter(|(_, at)| *at <= until_us) else {
            return false;
        };
        self.now_us = self.now_us.max(at_us);
        let now_us = self.now_us;
        let agent = self.supervisor.agents.get_mut(&key).expect("just found");
        agent.next_at_us = now_us + crate::agents::ACT_US;
        let act = agent.acts.pop_front().expect("the last act ends it");
        let launch = agent.launch.clone();
        match act {
            Act::Write { path, text } => {
                self.disk.write(&format!("project/{path}"), text.as_bytes(), now_us);
                // An agent's own files are not ours to sync; assume it does before it exits.
                self.disk.sync(&format!("project/{path}"));
                self.disk.sync_dir(&format!("project/{path}"));
            }
            Act::Append { path, text } => {
                let name = format!("project/{path}");
                self.disk.append(&name, text.as_bytes(), now_us);
                self.disk.sync(&name);
                self.disk.sync_dir(&name);
            }
            Act::Delete(path) => {
                let name = format!("project/{path}");
                self.disk.remove(&name);
                self.disk.sync_dir(&name);
            }
            Act::Result(json) => {
                let name = launch.env["ONWARD_RESULT"].clone();
                self.disk.write(&name, json.as_bytes(), now_us);
                self.disk.sync(&name);
                self.disk.sync_dir(&name);
            }
            Act::Outside(effect) => *self.effects.entry(effect).or_insert(0) += 1,
            Act::Work => {}
            Act::Exit { fails } => {
                let exits = self.exits.entry(launch.step.clone()).or_insert(0);
                *exits += 1;
                let code = i32::from(*exits <= fails);
                self.supervisor.agents.remove(&key);
                let (sync, wants_snapshot) = (launch.sync_seal, launch.snapshot.is_some());
                let seal = seal_of(&launch, code, now_us);
                self.supervisor.unsealed = Some(Ended { seal, sync, wants_snapshot });
            }
        }
        true
    }
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
        if let Some(part) = self.dying(bytes) {
            self.disk.write(&name(at), &bytes[..part], self.now_us);
        }
        self.burn()?;
        self.disk.write(&name(at), bytes, self.now_us);
        Ok(())
    }

    fn append(&mut self, at: At<'_>, bytes: &[u8]) -> Result<(), Stop> {
        if let Some(part) = self.dying(bytes) {
            self.disk.append(&name(at), &bytes[..part], self.now_us);
        }
        self.burn()?;
        self.disk.append(&name(at), bytes, self.now_us);
        Ok(())
    }

    fn truncate(&mut self, at: At<'_>, length: u64) -> Result<(), Stop> {
        self.burn()?;
        self.disk.truncate(&name(at), usize::try_from(length).expect("small"));
        Ok(())
    }

    fn sync(&mut self, at: At<'_>) -> Result<(), Stop> {
        self.burn()?;
        self.disk.sync(&name(at));
        Ok(())
    }

    fn rename(&mut self, from: At<'_>, to: At<'_>) -> Result<(), Stop> {
        self.burn()?;
        self.disk.rename(&name(from), &name(to));
        Ok(())
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

    fn snapshot(&mut self, _of: &Snapshot<'_>) -> Result<Option<Taken>, Stop> {
        self.burn()?;
        let id = self.trees.record(&self.disk);
        Ok(Some(Taken { id, skipped: Vec::new() }))
    }

    fn snapshot_command(&self, _of: &Snapshot<'_>) -> Option<Vec<String>> {
        Some(vec!["snapshot".to_owned()])
    }

    fn changes(
        &mut self,
        _of: &Snapshot<'_>,
        base: &str,
        after: Option<&str>,
    ) -> Result<Option<Changes>, Stop> {
        self.burn()?;
        Ok(Some(Changes { all: self.trees.changes(&self.disk, base, after), skipped: Vec::new() }))
    }

    fn footprint(&mut self, _tree: &str, base: &str, after: &str) -> Result<Vec<String>, Stop> {
        self.burn()?;
        Ok(self.trees.footprint(base, after))
    }

    fn base_content(&mut self, base: Digest) -> Result<Option<Vec<u8>>, Stop> {
        self.burn()?;
        Ok(self.trees.content(base))
    }

    fn keep_rescue(
        &mut self,
        _of: &Snapshot<'_>,
        undo: &Undo<'_>,
    ) -> Result<Option<Rescued>, Stop> {
        self.burn()?;
        let undone = self.trees.record_without(&self.disk, undo.reverts);
        let (reference, commit) = (format!("rescue/{}", undo.number), undone.clone());
        Ok(Some(Rescued { reference, commit, undone, patch: b"patch".to_vec() }))
    }

    fn as_committed(&mut self, _paths: &[String]) -> Result<BTreeSet<String>, Stop> {
        Ok(BTreeSet::new())
    }

    fn head(&mut self, _tree: &str) -> Result<Option<GitHead>, Stop> {
        Ok(None)
    }

    fn commits(
        &mut self,
        _tree: &str,
        _since: Option<&str>,
        _until: &str,
    ) -> Result<Vec<CommitSeen>, Stop> {
        Ok(Vec::new())
    }

    fn moved(&mut self, _tree: &str) -> Result<Vec<String>, Stop> {
        Ok(Vec::new())
    }

    fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop> {
        self.burn()?;
        Ok(self.disk.read(&name(At::Project(path))).map(Digest::of))
    }

    fn glob(&mut self, pattern: &str, _known: &[FileProof]) -> Result<Vec<FileProof>, Stop> {
        self.burn()?;
        let wanted = name(At::Project(pattern));
        let (prefix, suffix) = wanted.split_once('*').unwrap_or((&wanted, ""));
        let exact = !wanted.contains('*');
        let mut found = Vec::new();
        for name in self.disk.names() {
            let fits = if exact {
                *name == wanted
            } else {
                name.starts_with(prefix) && name.ends_with(suffix)
            };
            if fits {
                let bytes = self.disk.read(name).expect("listed");
                let mtime_us = self.disk.mtime_us(name).expect("listed");
                let size = u64::try_from(bytes.len()).expect("small");
                found.push(FileProof {
                    path: name.strip_prefix("project/").expect("in the project").to_owned(),
                    hash: Digest::of(bytes),
                    stat: Stat { size, mtime_ns: mtime_us * 1000, inode: 0 },
                });
            }
        }
        Ok(found)
    }

    fn connect(&mut self, _epoch: u32) -> Result<Connected, Stop> {
        self.burn()?;
        // A surviving supervisor had some time to itself.
        for _ in 0..self.chance.below(4) {
            self.tick(i64::MAX);
        }
        self.supervisor.engine_connected = true;
        self.supervisor.unreported.clear();
        self.hands_lost = false;
        let mut alive: Vec<_> = self.supervisor.agents.keys().cloned().collect();
        let ending = self.supervisor.unsealed.iter().map(|ended| &ended.seal);
        let ending = ending.chain(&self.supervisor.recording);
        alive.extend(ending.map(|seal| (seal.step.clone(), seal.attempt)));
        let is_over = |seal: &&Seal| !alive.contains(&(seal.step.clone(), seal.attempt));
        Ok(Connected {
            seals: self.supervisor.seals.iter().filter(is_over).cloned().collect(),
            alive,
            spawned: self.supervisor.spawned.clone(),
            spawned_is_complete: true,
            orphans_ended: 0,
            survived: Survived::default(),
            last_heartbeat: self.heartbeat_us.map(Timestamp::from_micros),
            boot_id: self.boot_id(),
        })
    }

    fn spawn(&mut self, launches: &[Launch]) -> Result<(), Stop> {
        for launch in launches {
            self.burn()?;
            if self.hands_lost {
                return Ok(());
            }
            let key = (launch.step.clone(), launch.attempt);
            // The laws, checked from outside.
            let durable = self.disk.synced("run/journal.jsonl").unwrap_or_default();
            let announced = readable(durable).into_iter().any(|event| match event {
                Event::AttemptStarted(it) => it.step == key.0 && it.attempt == key.1,
                _ => false,
            });
            assert!(announced, "{key:?} is not announced: {}", self.story);
            assert!(!self.finished.contains(&key.0), "{key:?} was finished: {}", self.story);
            assert!(!self.supervisor.agents.contains_key(&key), "{key:?} lives: {}", self.story);
            *self.spawns.entry(key.clone()).or_insert(0) += 1;
            self.supervisor.spawned.push(key.clone());
            self.supervisor.agents.insert(key, Agent::new(launch, self.now_us));
        }
        Ok(())
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
            if !self.supervisor.unreported.is_empty() {
                let seals = std::mem::take(&mut self.supervisor.unreported);
                return Ok(seals.into_iter().map(Input::Sealed).collect());
            }
            let until_us = until.map_or(i64::MAX, Timestamp::as_micros);
            if self.tick(until_us) {
                continue;
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
        }
    }

    fn validate(&mut self, _schema: &str, result: &serde_json::Value) -> Result<(), String> {
        if result.is_object() { Ok(()) } else { Err("not an object".to_owned()) }
    }
}
