//! A repository with a story, and agents that are scripts.

use std::{fs, path::PathBuf, process::Command};

use tempfile::TempDir;

use crate::{bench::Bench, boundaries::Scene, support::program};

pub(crate) const STORY: &str = "docs/stories/4.2.story.md";

pub(crate) const TEXT: &str = "# Story 4.2: Greet\n\n**Status:** Draft\n\n## Acceptance \
                               Criteria\n\n1. It greets.\n\n## Tasks\n\n- [ ] greet\n\n## Dev \
                               Notes\n\n## QA Results\n\n## Change Log\n\n| Date | Agent | Change \
                               |\n|---|---|---|\n";

/// What each agent does, by the step it is at. The first gate fails, the second one passes.
const AGENT: &str = r#"
story=docs/stories/4.2.story.md
say() { printf '%s' "$1" > "$ONWARD_RESULT"; }
case "$ONWARD_STEP" in
  wave*work/*) id=${ONWARD_STEP#*story\[}; id=${id%%\]*}; story=docs/stories/$id.story.md ;;
esac
case "$ONWARD_STEP" in
  wave*work/validate) say '{"decision": "GO", "score": 8}' ;;
  wave*work/implement) sed -i 's/- \[ \]/- [x]/' "$story"; echo "$id" > "made-$id.txt" ;;
  wave*work/heal*) say '{"passed": true}' ;;
  wave*work/review*judge) say '{"verdict": "PASS"}' ;;
  wave*gate*judge|final-gate) say '{"verdict": "APPROVE"}' ;;
  create) mkdir -p docs/stories; cat story.txt > "$story" ;;
  validate*) say '{"decision": "GO", "score": 9}' ;;
  implement) sed -i 's/- \[ \]/- [x]/' "$story"; echo hello > app.txt ;;
  heal*) say '{"passed": true}' ;;
  qa-gate) say '{"verdict": "FAIL", "issues": ["no name"]}' ;;
  rework*fix) echo hello ada > app.txt ;;
  rework*judge) say '{"verdict": "PASS"}' ;;
  turn*review) grep -q ada app.txt && say '{"verdict": "APPROVE"}' || say '{"verdict": "REJECT"}' ;;
  turn*fix) echo hello ada > app.txt ;;
  gather) mkdir -p docs/specs/login; echo '{"a": 1}' > docs/specs/login/requirements.json ;;
  assess) echo '{"class": "SIMPLE"}' > docs/specs/login/complexity.json
    say '{"class": "SIMPLE"}' ;;
  write) printf '# Login\n\ntext\n' > docs/specs/login/spec.md ;;
  critique) echo '{"verdict": "NEEDS_REVISION"}' > docs/specs/login/critique.json
    say '{"verdict": "NEEDS_REVISION"}' ;;
  revise*rewrite) printf '# Login\n\nbetter\n' > docs/specs/login/spec.md ;;
  revise*judge) echo '{"verdict": "APPROVED"}' > docs/specs/login/critique.json
    say '{"verdict": "APPROVED"}' ;;
esac
"#;

/// Two stories side by side, then one that rests on them.
pub(crate) const PLAN: &str = "\
execution:
  epicId: \"3\"
  stories:
    \"3.1\": {}
    \"3.2\": {}
    \"3.3\": {dependencies: [\"3.1\"]}
  waves:
    1:
      name: ground
      stories: [\"3.1\", \"3.2\"]
      merge: {order: [\"3.2\", \"3.1\"]}
      tag: epic-3-wave-1
    2:
      name: roof
      stories: [\"3.3\"]
";
pub(crate) const STATE: &str = ".aios/epic-3-state.yaml";

pub(crate) struct Yard {
    pub(crate) bench: Bench,
}

impl Yard {
    pub(crate) fn new() -> Self {
        Self::with(|agent| agent)
    }

    pub(crate) fn with(agent: impl FnOnce(String) -> String) -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let bench = Bench::at(dir, root, "  - { id: a, run: \"true\" }");
        fs::remove_file(bench.path("w.yaml")).unwrap();
        bench.write("agent.sh", &agent(AGENT.to_owned()));
        bench.write("story.txt", TEXT);
        bench.write(".gitignore", "said\n");
        let config = "[agents.claude]\ncommand = [\"sh\", \"./agent.sh\"]\n";
        bench.write(".onward/config.toml", config);
        let yard = Self { bench };
        yard.git(&["init", "--quiet", "--initial-branch=main"]);
        yard.git(&["add", "."]);
        yard.git(&["commit", "--quiet", "--message=start"]);
        yard
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        program::git(&self.bench.root, args)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.bench.path(name).parent().unwrap()).unwrap();
        self.bench.write(name, text);
    }

    /// Three stories that are ready, and the plan of their epic, committed.
    pub(crate) fn with_epic(&self) {
        for id in ["3.1", "3.2", "3.3"] {
            let text = TEXT.replace("4.2", id).replace("Draft", "Ready");
            self.write(&format!("docs/stories/{id}.story.md"), &text);
        }
        self.write("docs/epics/epic-3/EXECUTION.yaml", PLAN);
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message=plan"]);
    }

    /// Says GO at the gate that is open.
    pub(crate) fn go(&self) {
        let status = self.bench.exits("status --json", 0).json();
        let gate = status["gates"][0]["step"].as_str().unwrap_or_else(|| panic!("{status:#}"));
        self.bench.exits(&format!("decide {gate} GO"), 0);
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.bench.project().runs().unwrap().remove(0).dir
    }

    /// Everything that the workflow leaves, without days and moments.
    pub(crate) fn left(&self) -> Vec<(String, String)> {
        let mut left = Vec::new();
        let tops = ["docs", "qa", ".aios", ".nexos"];
        let mut level: Vec<PathBuf> = tops.iter().map(|it| self.bench.path(it)).collect();
        while let Some(dir) = level.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().map(Result::unwrap) {
                let path = entry.path();
                if entry.file_type().unwrap().is_dir() {
                    level.push(path);
                    continue;
                }
                let name = path.strip_prefix(&self.bench.root).unwrap().display().to_string();
                let text = fs::read_to_string(&path).unwrap();
                // Without moments, and without the id of the run in a branch.
                let line = |line: &str| match line.split_once(':') {
                    Some((key, _))
                        if key.trim_matches(['"', ' ']).to_lowercase().ends_with("at") =>
                    {
                        key.to_owned()
                    }
                    Some((key, rest)) if key.trim() == "branch" => {
                        format!("{key} {}", rest.rsplit('/').next().unwrap_or_default())
                    }
                    Some(_) | None => line.to_owned(),
                };
                left.push((name, text.lines().map(line).collect::<Vec<_>>().join("\n")));
            }
        }
        for (name, args) in [
            ("log", &["log", "--format=%s"][..]),
            ("tree", &["ls-tree", "-r", "HEAD"]),
            ("tags", &["tag", "--list"]),
            ("status", &["status", "--short", "--untracked-files=all"]),
        ] {
            left.push((name.to_owned(), self.git(args)));
        }
        left.push(("app.txt".to_owned(), self.bench.text("app.txt")));
        left.sort();
        left
    }
}

impl Scene for Yard {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn command(&self, arguments: &str) -> Command {
        self.bench.command(arguments)
    }

    fn answer(&self) {
        self.go();
    }
}
