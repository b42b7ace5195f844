//! A small conference about tea in a project, scripted agents, and a log that can be cut anywhere.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use onward_engine::{care::harness::until, locate::Project};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use crate::bench::Said;
use crate::{bench::kill_all, support::program};

const DOCUMENT: &str = "\
# Conference: Tea

## Goal
Steep it better.

## Mode
metric

## Success Metric
- **Metric:** bitterness
- **Target:** <= 10
- **Direction:** minimize
- **Evaluator:** sh -c 'cat value 2>/dev/null || echo 80'

## Researchers
- **Count:** 2
- **Iterations per round:** 2
- **Max rounds:** 2
- **Devil's Advocate:** no

## Pre-Flight Gate
- **Final confirmation:** confirmed

## Search Space
- **Allowed changes:** water, time

## Search Space Partitioning
- **Strategy:** free

## Shared Knowledge

## Conference Log
| Round | Researcher | Best Metric | Key Finding | Status |
|-------|------------|-------------|-------------|--------|
";

/// Lowers the number it finds; `hold` names a step that waits until `hold` is gone.
const AGENT: &str = r#"#!/bin/sh
step=$ONWARD_STEP
echo "$step" >> "ROOT/calls"
if [ "$step" = "$(cat ROOT/hold 2>/dev/null)" ]; then
  touch ROOT/held
  while [ -e ROOT/hold ]; do sleep 0.02; done
fi
case $step in
*/propose)
  n=$(cat value 2>/dev/null || echo 80); echo $((n - 1)) > value
  echo '{"description":"lower","hypothesis":"h","analysis":"a"}' > "$ONWARD_RESULT";;
*/poster/draft)
  round=${step#round[}; round=${round%%]*}
  mkdir -p ROOT/talks/tea/workspace/round-$round
  printf '# Poster %s\n\nAll lower.\n' $round > ROOT/talks/tea/workspace/round-$round/poster.md;;
*/review/judge)
  cp ROOT/review.json "$ONWARD_RESULT";;
synthesis/draft)
  mkdir -p ROOT/talks/tea/workspace
  printf '# Synthesis\n\nIt is lower.\n' > ROOT/talks/tea/workspace/synthesis.md
  printf '# Report\n\nIt is lower.\n' > ROOT/talks/tea/workspace/final_report.md;;
esac
"#;

const REVIEW: &str = r#"{"notes":"go on","verdicts":[
{"researcher":"A","claim":"a is lower","verdict":"validated","reasoning":"yes","score":7},
{"researcher":"B","claim":"b is lower","verdict":"challenged","reasoning":"no","score":5}]}"#;

pub(crate) const LOG: &str = "conference_events.jsonl";

pub(crate) struct Tea {
    _dir: TempDir,
    pub(crate) root: PathBuf,
}

pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

impl Tea {
    /// A project with a conference that is ready to begin.
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let tea = Self { _dir: dir, root };
        fs::create_dir_all(tea.root.join(".onward")).unwrap();
        fs::create_dir_all(tea.dir()).unwrap();
        let agent = tea.root.join("agent.sh");
        fs::write(&agent, AGENT.replace("ROOT", tea.root.to_str().unwrap())).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!("[agents.claude]\ncommand = [\"{}\"]\n", agent.display());
        fs::write(tea.root.join(".onward/config.toml"), config).unwrap();
        fs::write(tea.root.join("review.json"), REVIEW).unwrap();
        fs::write(tea.dir().join("conference.md"), DOCUMENT).unwrap();
        tea
    }

    /// The native files of a whole conference.
    pub(crate) fn finished() -> Contents {
        let tea = Self::new();
        tea.exits("run conference --no-input", 0);
        tea.contents()
    }

    /// A project in which another system left these files, the log cut after so many lines.
    pub(crate) fn left(contents: &Contents, lines: usize) -> Self {
        let tea = Self::new();
        for (name, bytes) in contents {
            fs::write(tea.dir().join(name), bytes).unwrap();
        }
        tea.set_log(&first_lines(&contents[LOG], lines));
        tea
    }

    /// The directory of the conference.
    pub(crate) fn dir(&self) -> PathBuf {
        self.root.join("talks/tea")
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        program::onward(&self.dir(), arguments)
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

    #[track_caller]
    pub(crate) fn json(&self, arguments: &str) -> Value {
        self.onward(arguments).json()
    }

    /// An engine that is at `step`, whose agent waits there.
    pub(crate) fn held_at(&self, step: &str, arguments: &str) -> Child {
        fs::write(self.root.join("hold"), step).unwrap();
        let said = fs::File::create(self.root.join("said")).unwrap();
        let mut command = self.command(arguments);
        let mut engine = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
        let held = self.root.join("held");
        let came = until("the agent to be held", || {
            let ended = engine.try_wait().unwrap().is_some();
            Ok(if held.exists() { Some(true) } else { ended.then_some(false) })
        });
        let said = fs::read_to_string(self.root.join("said")).unwrap();
        assert!(came.unwrap(), "{said}");
        engine
    }

    /// Killed at `step` with everything that it started; nothing is held any more. Gives the run.
    pub(crate) fn killed_at(&self, step: &str, arguments: &str) -> PathBuf {
        let mut engine = self.held_at(step, arguments);
        engine.kill().unwrap();
        engine.wait().unwrap();
        let [run] = self.runs().try_into().unwrap();
        kill_all(&run);
        self.let_go();
        run
    }

    pub(crate) fn let_go(&self) {
        fs::remove_file(self.root.join("hold")).unwrap();
        fs::remove_file(self.root.join("held")).unwrap();
    }

    /// Steps for which an agent was started, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Every file of the conference, by name.
    pub(crate) fn contents(&self) -> Contents {
        contents(&self.dir())
    }

    pub(crate) fn log(&self) -> Vec<u8> {
        fs::read(self.dir().join(LOG)).unwrap()
    }

    pub(crate) fn set_log(&self, bytes: &[u8]) {
        fs::write(self.dir().join(LOG), bytes).unwrap();
    }

    pub(crate) fn append_to_log(&self, text: &str) {
        let mut log = self.log();
        log.extend_from_slice(text.as_bytes());
        self.set_log(&log);
    }

    /// The names of the logged events.
    pub(crate) fn events(&self) -> Vec<String> {
        let log = String::from_utf8_lossy(&self.log()).into_owned();
        let name = |line: &str| {
            let event: Value = serde_json::from_str(line).ok()?;
            Some(event["event"].as_str()?.to_owned())
        };
        log.lines().filter_map(name).collect()
    }

    pub(crate) fn count(&self, event: &str) -> usize {
        self.events().iter().filter(|it| *it == event).count()
    }

    /// The directories of all runs.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let project = Project::locate(&self.root).unwrap();
        project.runs().unwrap().into_iter().map(|it| it.dir).collect()
    }

    pub(crate) fn journal(&self) -> String {
        let [run] = self.runs().try_into().unwrap();
        fs::read_to_string(run.join("journal.jsonl")).unwrap()
    }

    #[track_caller]
    pub(crate) fn is_whole(&self, told: &str) {
        let counts = ["researcher.iteration", "round.completed", "conference.completed"]
            .map(|it| self.count(it));
        assert_eq!(counts, [8, 2, 1], "{told}: {:#?}", self.events());
        for file in ["synthesis.md", "final_report.md", "peer_review_round_2.md"] {
            assert!(self.dir().join(file).is_file(), "{told}: {file}");
        }
        for researcher in ["A", "B"] {
            let name = format!("researcher_{researcher}_results.tsv");
            let rows = fs::read_to_string(self.dir().join(name)).unwrap();
            assert_eq!(rows.lines().count(), 5, "{told}: {rows}");
        }
    }
}

pub(crate) fn contents(dir: &Path) -> Contents {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    files.map(|it| (it.file_name().into_string().unwrap(), fs::read(it.path()).unwrap())).collect()
}

pub(crate) fn first_lines(log: &[u8], lines: usize) -> Vec<u8> {
    log.split_inclusive(|byte| *byte == b'\n').take(lines).flatten().copied().collect()
}
