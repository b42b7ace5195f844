//! A project with a repository, the user's task lists beside it, and a scripted agent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    bench::{Bench, Said},
    boundaries::Scene,
    leash::Leash,
    support::program,
};

const AGENT: &str = include_str!("../../src/cmd/demo/pipeline/agent.sh");
const CONFIG: &str = include_str!("../../src/cmd/demo/pipeline/config.toml");

pub(crate) struct Kitchen {
    pub(crate) bench: Bench,
    pub(crate) home: PathBuf,
    _home: TempDir,
    /// What agents and the program are told by their environment.
    pub(crate) env: Vec<(&'static str, String)>,
}

impl Kitchen {
    /// Ready for a pipeline of this tier.
    pub(crate) fn new(tier: &str) -> Self {
        let (dir, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let root = fs::canonicalize(dir.path()).unwrap();
        let bench = Bench::at(dir, root, "  - { id: a, run: \"true\" }");
        fs::remove_file(bench.path("w.yaml")).unwrap();
        let at = fs::canonicalize(home.path()).unwrap();
        let ledger = at.join("ledger").display().to_string();
        let env = vec![
            ("CLAUDE_CONFIG_DIR", at.display().to_string()),
            ("HOME", at.display().to_string()),
            ("TIER", tier.to_owned()),
            ("LEDGER", ledger),
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_AUTHOR_NAME", "ann".to_owned()),
            ("GIT_AUTHOR_EMAIL", "ann@example.com".to_owned()),
            ("GIT_COMMITTER_NAME", "ann".to_owned()),
            ("GIT_COMMITTER_EMAIL", "ann@example.com".to_owned()),
        ];
        let kitchen = Self { bench, home: at, _home: home, env };
        kitchen.git(&["init", "--quiet", "--initial-branch=main"]);
        fs::create_dir_all(kitchen.bench.path("src")).unwrap();
        kitchen.bench.write("src/water.txt", "cold\n");
        kitchen.bench.write("agent.sh", AGENT);
        kitchen.bench.write(".gitignore", "said\n");
        kitchen.git(&["add", "."]);
        kitchen.git(&["commit", "--quiet", "--message=start"]);
        kitchen.bench.write(".onward/config.toml", CONFIG);
        kitchen
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        program::git(&self.bench.root, args)
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = self.bench.command(arguments);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn onward(&self, arguments: &str) -> Said {
        Said::of(&self.command(arguments).output().unwrap())
    }

    #[track_caller]
    pub(crate) fn exits(&self, arguments: &str, code: i32) -> Said {
        let said = self.onward(arguments);
        assert_eq!(said.code, code, "{arguments}: {said:#?}");
        said
    }

    pub(crate) fn leash(&self, arguments: &str) -> Leash {
        Leash::start(&mut self.command(arguments))
    }

    /// All task lists of the user.
    pub(crate) fn lists(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.join("tasks")).into_iter().flatten().flatten();
        entries.map(|it| it.path()).collect()
    }

    /// The only one.
    #[track_caller]
    pub(crate) fn list(&self) -> PathBuf {
        let [list] = self.lists().try_into().unwrap();
        list
    }

    /// The tasks of a list by number.
    pub(crate) fn tasks(&self) -> BTreeMap<u32, Value> {
        tasks(&self.list())
    }

    pub(crate) fn permanent(&self) -> Value {
        let tasks = self.tasks();
        let is_it = |it: &&Value| it["subject"].as_str().unwrap().starts_with("[PERMANENT]");
        tasks.values().find(is_it).unwrap().clone()
    }

    /// How often an agent was started for a step.
    pub(crate) fn calls(&self, step: &str) -> usize {
        let text = fs::read_to_string(self.home.join("ledger")).unwrap_or_default();
        text.lines().filter(|line| *line == step).count()
    }

    /// From the gate to the end.
    pub(crate) fn approve(&self) {
        // For what the gate shows now.
        let status = self.exits("status --json", 0).json();
        let hash = status["gates"][0]["hash"].as_str().unwrap().to_owned();
        self.exits(&format!("decide P8/confirm approve --hash {hash}"), 0);
        self.exits("resume --yes --no-input", 0);
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.bench.project().runs().unwrap().remove(0).dir
    }

    /// What happened to which step, each once: this only ever grows, however often it is killed.
    pub(crate) fn events(&self) -> BTreeSet<String> {
        let runs = self.bench.project().runs().unwrap_or_default();
        let journal = runs.first().map(|it| it.dir.join("journal.jsonl"));
        let bytes = journal.and_then(|it| fs::read(it).ok()).unwrap_or_default();
        let mut events = BTreeSet::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(event) = serde_json::from_slice::<Value>(line) else { continue };
            let kind = event["kind"].as_str().unwrap_or_default();
            let is_progress = [
                "attempt.started",
                "attempt.finished",
                "group.expanded",
                "loop.turned",
                "loop.ended",
                "step.skipped",
                "gate.opened",
            ]
            .contains(&kind);
            if is_progress {
                events.insert(format!("{kind} {}", event["step"]));
            }
        }
        events
    }

    /// All that a delivered pipeline leaves, without what differs from run to run.
    pub(crate) fn left(&self) -> BTreeMap<String, String> {
        let mut left = BTreeMap::new();
        for (id, mut task) in self.tasks() {
            let metadata = task["metadata"].as_object_mut().unwrap();
            metadata.remove("resume_count");
            if metadata.remove("commit").is_some() {
                metadata.insert("commit".into(), json!("set"));
            }
            left.insert(format!("task {id}"), format!("{task:#}"));
        }
        let tree = self.git(&["ls-tree", "-r", "HEAD"]);
        left.insert("tree".into(), tree);
        left.insert("log".into(), self.git(&["log", "--format=%s"]));
        left.insert("status".into(), self.git(&["status", "--short"]));
        left
    }
}

impl Scene for Kitchen {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn command(&self, arguments: &str) -> Command {
        self.command(arguments)
    }

    fn answer(&self) {
        self.exits("approve P8/confirm", 0);
    }
}

pub(crate) fn tasks(list: &Path) -> BTreeMap<u32, Value> {
    let entries = fs::read_dir(list).unwrap().map(Result::unwrap);
    let numbered = entries.filter_map(|it| {
        let number = it.file_name().to_str()?.strip_suffix(".json")?.parse().ok()?;
        Some((number, serde_json::from_slice(&fs::read(it.path()).ok()?).ok()?))
    });
    numbered.collect()
}
