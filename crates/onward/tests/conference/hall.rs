//! A conference in a temporary repository, and its files in a form that two runs can share.

use std::{collections::BTreeMap, fs, path::PathBuf};

use tempfile::TempDir;

use crate::{bench::Bench, leash::Leash, support::program};

const DOCUMENT: &str = include_str!("../../src/cmd/demo/conference/conference.md");
const AGENT: &str = include_str!("../../src/cmd/demo/conference/agent.sh");
const CONFIG: &str = include_str!("../../src/cmd/demo/conference/config.toml");

pub(crate) struct Hall {
    pub(crate) bench: Bench,
}

impl Hall {
    /// Ready to be run. `edit` changes conference.md first.
    pub(crate) fn new(edit: impl FnOnce(String) -> String) -> Self {
        Self::with(edit, |agent| agent)
    }

    /// The same, with another agent.
    pub(crate) fn with(
        edit: impl FnOnce(String) -> String,
        agent: impl FnOnce(String) -> String,
    ) -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let bench = Bench::at(dir, root, "  - { id: a, run: \"true\" }");
        fs::remove_file(bench.path("w.yaml")).unwrap();
        let hall = Self { bench };
        for file in ["a.txt", "b.txt", "c.txt"] {
            hall.bench.write(file, "100\n");
        }
        hall.bench.write("shared.txt", "nobody\n");
        hall.git(&["init", "--quiet", "--initial-branch=main"]);
        hall.git(&["add", "."]);
        hall.git(&["commit", "--quiet", "--message=start"]);
        let document = DOCUMENT.replace("Max rounds:** 2", "Max rounds:** 3");
        hall.bench.write("conference.md", &edit(document));
        hall.bench.write("agent.sh", &agent(AGENT.to_owned()));
        hall.bench.write(".onward/config.toml", CONFIG);
        hall
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        program::git(&self.bench.root, args)
    }

    pub(crate) fn leash(&self, arguments: &str) -> Leash {
        Leash::start(&mut self.bench.command(arguments))
    }

    /// Whole lines of the native log, without those of resumes.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = self.bench.text("conference_events.jsonl");
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let progress = whole.lines().filter(|line| !line.contains("conference.resumed"));
        progress.map(str::to_owned).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let name = |line: &String| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["event"].as_str().unwrap().to_owned()
        };
        self.events().iter().map(name).collect()
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.bench.project().runs().unwrap().remove(0).dir
    }

    /// From the gate about the worktrees to the end.
    pub(crate) fn close(&self, choice: &str) {
        self.bench.exits(&format!("decide worktrees {choice}"), 0);
        self.bench.exits("resume --no-input --yes", 0);
    }

    /// All that the conference leaves, with times and the order of parallel lines taken out.
    pub(crate) fn left(&self) -> BTreeMap<String, String> {
        let mut left = BTreeMap::new();
        for entry in fs::read_dir(&self.bench.root).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() || name == "said" {
                continue;
            }
            let text = without_times(&self.bench.text(&name));
            let is_shared = name == "conference_events.jsonl" || name == "conference_results.tsv";
            let mut lines: Vec<&str> = text.lines().collect();
            if is_shared {
                lines.retain(|line| !line.contains("conference.resumed"));
                lines.sort_unstable();
            }
            left.insert(name, lines.join("\n"));
        }
        for branch in ["best", "researcher-A", "researcher-B", "researcher-C"] {
            let tree = self.git(&["rev-parse", &format!("conference/{branch}^{{tree}}")]);
            let log = self.git(&["log", "--format=%s", &format!("conference/{branch}")]);
            left.insert(format!("branch {branch}"), format!("{tree}\n{log}"));
        }
        let status =
            |who: &str| self.git(&["-C", &format!(".worktrees/researcher-{who}"), "status", "-s"]);
        left.insert("trees".to_owned(), ["A", "B", "C"].map(status).join(""));
        left
    }
}

/// `2026-05-04T20:00:00Z` becomes `T`.
fn without_times(text: &str) -> String {
    const FORM: &[u8] = b"0000-00-00T00:00:00Z";
    let bytes = text.as_bytes();
    let is_time = |at: usize| {
        let found = bytes.get(at..at + FORM.len());
        found.is_some_and(|found| {
            found.iter().zip(FORM).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                form => byte == form,
            })
        })
    };
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if is_time(at) {
            all.push(b'T');
            at += FORM.len();
        } else {
            all.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(all).unwrap()
}
