//! Agents act in the simulated world, one thing at a time.

use onward_core::{address::Address, launch::Launch, worktree::WorktreePlace};
use onward_engine::world::out_name;

use super::SimWorld;
use crate::{
    agents::{ACT_US, Act, Ended, LIMIT_US, seal_of},
    repo::branch_name,
    trees::below,
};

impl SimWorld {
    /// One thing happens among the agents. `false` when nothing can.
    pub(super) fn tick(&mut self, until_us: i64) -> bool {
        if self.supervisor.unsealed.is_some() {
            self.supervisor.seal();
            return true;
        }
        if let Some((_, tree)) = self.supervisor.recording.clone() {
            let after = self.record_tree(&tree);
            self.supervisor.record(after);
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
            Act::Result(json) => {
                self.disk.write_durably(&launch.env["ONWARD_RESULT"], json.as_bytes(), now_us);
            }
            Act::Commit => {
                let place = WorktreePlace::at(&launch.cwd).expect("only in a worktree");
                let by = Some((launch.step.clone(), launch.attempt));
                let id = self.commit_tree(&launch.cwd, "by the agent".to_owned(), by);
                self.disk.write_durably(&branch_name(&place.branch), id.as_bytes(), now_us);
            }
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

    fn exit(&mut self, key: &(Address, u32), launch: Launch, code: i32) {
        self.supervisor.agents.remove(key);
        let (sync, wants_snapshot) = (launch.sync_seal, launch.snapshot.is_some());
        let (seal, tree) = (seal_of(&launch, code, self.now_us), launch.cwd);
        self.supervisor.unsealed = Some(Ended { seal, sync, wants_snapshot, tree });
    }

    /// A line of an agent's standard output. The supervisor syncs it before the seal of an agent.
    fn say(&mut self, launch: &Launch, line: &str) {
        let name = format!("run/{}", out_name(&launch.step, launch.attempt, "out"));
        self.disk.append(&name, format!("{line}\n").as_bytes(), self.now_us);
        self.disk.sync(&name);
        self.disk.sync_dir(&name);
    }
}
