//! Agents act in the simulated world, one thing at a time.

use onward_core::{
    address::Address,
    event::Event,
    launch::{Launch, Program, Seal},
    time::Timestamp,
    worktree::WorktreePlace,
};
use onward_engine::world::{Connected, out_name};

use super::SimWorld;
use crate::{
    agents::{ACT_US, Act, Agent, Ended, LIMIT_US, seal_of},
    crash::readable,
    repo::branch_name,
    systems::stage::Write,
    toy::start::others_go_on,
    trees::below,
};

/// What happens while the engine is busy with something else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanwhile {
    /// How often the other system goes on while the engine waits for its lock.
    pub(crate) others_at_lock: u32,
    /// What it did then, each with how often we had spawned it.
    pub(crate) others_did: Vec<(&'static str, usize)>,
    /// A person writes this when a resume has announced to undo the path.
    pub(crate) edit: Option<(&'static str, &'static str)>,
}

impl SimWorld {
    /// What the supervisor knows, told or only looked at.
    pub(super) fn connected(&self) -> Connected {
        let mut alive: Vec<_> = self.supervisor.agents.keys().cloned().collect();
        let ending = self.supervisor.unsealed.iter().map(|ended| &ended.seal);
        let ending = ending.chain(self.supervisor.recording.iter().map(|it| &it.0));
        alive.extend(ending.map(|seal| (seal.step.clone(), seal.attempt)));
        let is_over = |seal: &&Seal| !alive.contains(&(seal.step.clone(), seal.attempt));
        let (counting, unsettled) = self.supervisor.told();
        Connected {
            seals: counting.into_iter().filter(is_over).cloned().collect(),
            unsettled: unsettled.into_iter().cloned().collect(),
            alive,
            spawned: self.supervisor.spawned.clone(),
            spawned_is_complete: true,
            last_heartbeat: self.heartbeat_us.map(Timestamp::from_micros),
            boot_id: self.boot_id(),
            ..Connected::default()
        }
    }

    /// The announcement is durable, and the undo has not begun.
    pub(super) fn let_a_person_edit(&mut self, event: &Event) {
        let Event::RunResumed(resumed) = event else { return };
        let is_announced =
            |it: &mut (&str, &str)| resumed.reverts.iter().any(|revert| revert.path == it.0);
        if let Some((path, text)) = self.meanwhile.edit.take_if(is_announced) {
            let now_us = self.now_us;
            self.disk.write_durably(&format!("project/{path}"), text.as_bytes(), now_us);
        }
    }

    /// The engine waits for the other system's lock, and that system goes on meanwhile.
    pub(super) fn let_others_go_on(&mut self) {
        if self.meanwhile.others_at_lock == 0 || !self.supervisor.is_idle() {
            return;
        }
        self.meanwhile.others_at_lock -= 1;
        for step in others_go_on(self) {
            let spawned = self.spawns.keys().filter(|it| it.0.as_str() == step).count();
            self.meanwhile.others_did.push((step, spawned));
        }
    }

    /// An attempt begins as soon as there is a slot for it.
    pub(super) fn queue(&mut self, launch: &Launch, slots: u32) {
        self.supervisor.slots = usize::try_from(slots).expect("small");
        self.supervisor.waiting.push_back(launch.clone());
        self.fill();
        self.waited += u64::from(!self.supervisor.waiting.is_empty());
    }

    fn fill(&mut self) {
        while self.supervisor.under_way() < self.supervisor.slots
            && let Some(launch) = self.supervisor.waiting.pop_front()
        {
            self.begin(&launch);
        }
    }

    /// An attempt begins. The laws, checked from outside.
    pub(super) fn begin(&mut self, launch: &Launch) {
        let key = (launch.step.clone(), launch.attempt);
        let durable = self.disk.synced("run/journal.jsonl").unwrap_or_default();
        let events = readable(durable);
        let announced = events.iter().any(|event| match event {
            Event::AttemptStarted(it) => it.step == key.0 && it.attempt == key.1,
            _ => false,
        });
        assert!(announced, "{key:?} is not announced: {}", self.story);
        let given_up = events.iter().any(|event| match event {
            Event::AttemptLost { step, attempt, .. } => *step == key.0 && *attempt == key.1,
            _ => false,
        });
        assert!(!given_up, "{key:?} was given up: {}", self.story);
        self.check_that_it_may_run(&key);
        let is_agent = matches!(launch.program, Program::Agent(_));
        let limited = events.iter().any(|event| match event {
            Event::LimitHit { resets_at: Some(until), .. } => until.as_micros() > self.now_us,
            _ => false,
        });
        assert!(!(is_agent && limited), "{key:?} starts in a limit: {}", self.story);
        assert!(!self.supervisor.agents.contains_key(&key), "{key:?} lives: {}", self.story);
        *self.spawns.entry(key.clone()).or_insert(0) += 1;
        self.supervisor.spawned.push(key.clone());
        let agent = match &self.stage {
            Some(stage) => Agent::on(stage, launch, &self.disk, self.now_us),
            None => Agent::new(launch, self.now_us),
        };
        self.supervisor.agents.insert(key, agent);
        let (under_way, slots) = (self.supervisor.under_way(), self.parallel);
        assert!(under_way <= slots, "{under_way} under way in {slots} slots: {}", self.story);
    }

    /// One thing happens among the agents. `false` when nothing can.
    pub(super) fn tick(&mut self, until_us: i64) -> bool {
        if self.supervisor.unsealed.is_some() {
            self.settle();
            self.supervisor.seal();
            self.fill();
            return true;
        }
        if let Some((_, tree)) = self.supervisor.recording.clone() {
            let after = self.record_tree(&tree);
            self.supervisor.record(after);
            self.fill();
            return true;
        }
        let Some((key, at_us)) = self.supervisor.next().filter(|(_, at)| *at <= until_us) else {
            return false;
        };
        self.now_us = self.now_us.max(at_us);
        let now_us = self.now_us;
        let agent = self.supervisor.agents.get_mut(&key).expect("just found");
        agent.next_at_us = now_us + ACT_US;
        let act = agent.acts.pop_front().expect("the last act ends it");
        let launch = agent.launch.clone();
        let in_tree = |path: &str| format!("project/{}", below(&launch.cwd, path));
        match act {
            Act::Write { path, text } if self.lazy => {
                self.disk.write(&in_tree(&path), text.as_bytes(), now_us);
            }
            // An agent's own files are not ours to sync; assume it does before it exits.
            Act::Write { path, text } => {
                self.disk.write_durably(&in_tree(&path), text.as_bytes(), now_us);
            }
            Act::Append { path, text } => {
                let name = in_tree(&path);
                self.disk.append(&name, text.as_bytes(), now_us);
                self.disk.sync(&name);
                self.disk.sync_dir(&name);
            }
            Act::Tell { path, line } => self.disk.tell(&in_tree(&path), &line, now_us),
            Act::Begin { path, line } => {
                let name = in_tree(&path);
                if self.disk.read(&name).is_none() {
                    self.disk.tell(&name, &line, now_us);
                }
            }
            Act::Delete(path) => {
                let name = in_tree(&path);
                self.disk.remove(&name);
                self.disk.sync_dir(&name);
            }
            Act::Result(json) if self.lazy => {
                self.disk.write(&launch.env["ONWARD_RESULT"], json.as_bytes(), now_us);
            }
            Act::Result(json) => {
                self.disk.write_durably(&launch.env["ONWARD_RESULT"], json.as_bytes(), now_us);
            }
            Act::Commit => {
                let place = WorktreePlace::at(&launch.cwd).expect("only in a worktree");
                let by = Some((launch.step.clone(), launch.attempt));
                let id = self.commit_tree(&launch.cwd, "by the agent".to_owned(), by);
                self.disk.write_durably(&branch_name(&place.branch), id.as_bytes(), now_us);
            }
            Act::Call if self.is_held() => {
                let agent = self.supervisor.agents.get_mut(&key).expect("it waits");
                agent.acts.push_front(Act::Call);
            }
            Act::Call => self.begin_call(&key, &launch),
            Act::Put(files) => self.put(files, now_us),
            Act::Outside(effect) => *self.effects.entry(effect).or_insert(0) += 1,
            Act::Work => {}
            Act::Long(us) => {
                if let Some(agent) = self.supervisor.agents.get_mut(&key) {
                    agent.next_at_us = now_us + us;
                }
            }
            Act::Say(line) => self.say(&launch, &line),
            Act::Limited => {
                if self.limited.insert(launch.step.clone()) {
                    let at = (now_us + LIMIT_US) / 1_000_000;
                    let line = format!(r#"{{"limit":{{"provider":"p","resets_at":{at}}}}}"#);
                    self.say(&launch, &line);
                    self.exit(&key, launch, 1);
                }
            }
            Act::Exit { fails } => {
                let exits = self.exits.entry(launch.step.clone()).or_insert(0);
                *exits += 1;
                let code = i32::from(*exits <= fails);
                self.exit(&key, launch, code);
            }
        }
        true
    }

    /// From here on the call writes what it writes, file by file.
    fn begin_call(&mut self, key: &(Address, u32), launch: &Launch) {
        let stage = self.stage.clone().expect("only there");
        let played = stage.play(&self.disk, launch);
        let result = match &played.result {
            Ok(result) => Act::Result(result.to_string()),
            Err(why) => {
                let journal = self.disk.read("run/journal.jsonl").unwrap_or_default();
                let journal = String::from_utf8_lossy(journal);
                panic!("{}: {why}: {}\n{journal}", launch.step, self.story)
            }
        };
        let acts = played.writes.iter().map(|it| Act::Put(it.clone())).chain([result]);
        let agent = self.supervisor.agents.get_mut(key).expect("it acts");
        let rest = std::mem::take(&mut agent.acts);
        agent.acts = acts.chain(rest).collect();
    }

    fn put(&mut self, files: Write, now_us: i64) {
        for (path, bytes) in files {
            let name = format!("project/{path}");
            if let Some(bytes) = bytes {
                self.disk.write_durably(&name, &bytes, now_us);
            } else {
                self.disk.remove(&name);
                self.disk.sync_dir(&name);
            }
        }
    }

    fn exit(&mut self, key: &(Address, u32), launch: Launch, code: i32) {
        self.supervisor.agents.remove(key);
        let (sync, wants_snapshot) = (launch.sync_seal, launch.snapshot.is_some());
        let mut outputs: Vec<String> =
            launch.outputs.iter().map(|path| format!("project/{path}")).collect();
        outputs.extend(launch.env.get("ONWARD_RESULT").cloned());
        let (seal, tree) = (seal_of(&launch, code, self.now_us), launch.cwd);
        self.supervisor.unsealed = Some(Ended { seal, sync, wants_snapshot, tree, outputs });
    }

    /// What an attempt left is brought to the disk before a seal that is.
    fn settle(&mut self) {
        let connected = self.supervisor.engine_connected;
        let ended = self.supervisor.unsealed.as_mut().filter(|it| it.sync || !connected);
        let Some(ended) = ended else { return };
        ended.seal.settled = true;
        for name in &ended.outputs {
            if self.disk.read(name).is_some() {
                self.disk.sync(name);
                self.disk.sync_dir(name);
            }
        }
    }

    /// A line of an agent's standard output. The supervisor syncs it before the seal of an agent.
    fn say(&mut self, launch: &Launch, line: &str) {
        let name = format!("run/{}", out_name(&launch.step, launch.attempt, "out"));
        self.disk.append(&name, format!("{line}\n").as_bytes(), self.now_us);
        self.disk.sync(&name);
        self.disk.sync_dir(&name);
    }
}
