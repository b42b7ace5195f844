//! A project whose agents are scripts.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::program;

pub(crate) struct Stage(TempDir);

impl Stage {
    /// One step, `work`, and the script of the agent that plays it; `config` names the agent.
    pub(crate) fn new(script: &str, config: &str, step: &str) -> Self {
        let stage = Self::empty();
        stage.put(".onward/config.toml", config);
        stage.put("agent.sh", &format!("#!/bin/sh\necho x >> calls\n{script}\n"));
        let step = format!("{{ id: work, agent: player, prompt: p{step} }}");
        let head = "onward: 1\nname: w\nagents: { player: { use: played } }\n";
        stage.put("w.yaml", &format!("{head}steps: [{step}]\n"));
        stage
    }

    pub(crate) fn empty() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The program, with the agents of `bin` on its PATH and a home and a state of its own.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = program::onward(self.0.path(), arguments);
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        command
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("TZ", "UTC");
        command
    }

    pub(crate) fn onward(&self, arguments: &str) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    #[track_caller]
    pub(crate) fn exits(&self, arguments: &str, code: i32) -> String {
        let (found, said) = self.onward(arguments);
        assert_eq!(found, Some(code), "{arguments}: {said}\n{}", self.journal());
        said
    }

    pub(crate) fn start(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The last run that was begun.
    pub(crate) fn run_dir(&self) -> Option<PathBuf> {
        let runs = fs::read_dir(self.path(".onward/runs")).ok()?.flatten();
        let runs = runs.filter(|it| !it.file_name().to_string_lossy().starts_with('.'));
        runs.map(|it| it.path()).max_by_key(|it| made(it))
    }

    pub(crate) fn journal(&self) -> String {
        let run = self.run_dir().map(|run| fs::read_to_string(run.join("journal.jsonl")).unwrap());
        run.unwrap_or_default().trim_end_matches('\0').to_owned()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        let journal = self.journal();
        journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of this kind.
    pub(crate) fn of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|it| it["kind"] == kind).collect()
    }

    pub(crate) fn calls(&self) -> usize {
        self.text("calls").lines().count()
    }
}

fn made(run: &Path) -> std::time::SystemTime {
    fs::metadata(run.join("workflow.yaml")).and_then(|it| it.modified()).unwrap()
}

pub(crate) const PLAIN: &str = "[agents.played]\ncommand = ['./agent.sh']\n";
pub(crate) const LIKE_CLAUDE: &str =
    "[agents.played]\nadapter = 'claude'\ncommand = ['./agent.sh']\n";

/// A shell command that prints a `result` of the shape of Claude Code. Its session is this test's
/// own: a process of another test that names it would have it open.
pub(crate) fn result(fields: &str) -> String {
    let (process, test) = (std::process::id(), std::thread::current().id());
    let session = format!("session-{process}-{test:?}");
    format!("cat <<'E'\n{{\"type\":\"result\",\"session_id\":\"{session}\",{fields}}}\nE")
}
