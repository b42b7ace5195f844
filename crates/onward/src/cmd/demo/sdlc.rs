//! `onward demo sdlc`: an epic of four stories in two waves, killed in the first one, resumed, and
//! held against the state that the original would go on from.
//!
//! Invariant: it says that the proof holds only when every story is done in its own file, the epic
//! is completed in its state, and no story that was completed at the kill was implemented again.

use std::{collections::BTreeSet, fs, process::ExitCode};

use serde_json::json;

use super::stage::{Stage, Told, say};
use crate::{
    cmd::Context,
    error::{self, Error},
};

const STORIES: [&str; 4] = ["3.1", "3.2", "3.3", "3.4"];
const STATE: &str = ".aios/epic-3-state.yaml";
const PLAN: &str = "docs/epics/epic-3/EXECUTION.yaml";
const PLAN_TEXT: &str = "\
execution:
  epicId: \"3\"
  stories:
    \"3.1\": {}
    \"3.2\": {dependencies: [\"3.1\"]}
    \"3.3\": {}
    \"3.4\": {}
  waves:
    1:
      name: ground
      stories: [\"3.1\", \"3.2\"]
      tag: epic-3-wave-1
    2:
      name: roof
      stories: [\"3.3\", \"3.4\"]
      merge: {order: [\"3.4\", \"3.3\"]}
";

pub(super) fn run(cx: &mut Context) -> Result<ExitCode, Error> {
    let stage = Stage::set_up(&[
        ("agent.sh", include_str!("sdlc/agent.sh")),
        (".onward/config.toml", include_str!("sdlc/config.toml")),
        (PLAN, PLAN_TEXT),
    ])?;
    for id in STORIES {
        write(&stage, &story(id), &text(id))?;
    }
    say(cx, &format!("An epic of four stories in two waves, in {}\n", stage.dir.display()))?;
    stage.commit(&["agent.sh", "docs"])?;
    stage.sign()?;
    let started = ["run", "epic", "--no-input", "--input", "epic=3"];
    let some = || Some(completed(&stage)).filter(|it| !it.is_empty());
    let (pid, at_kill) = stage.kill_when(cx, &started, "a completed story", some)?;
    let names: Vec<&str> = at_kill.iter().map(String::as_str).collect();
    let names = names.join(", ");
    say(cx, &format!("\nkill -9 {pid}: completed was {names}. The plan now:\n"))?;
    let plan = stage.plan(cx)?;
    say(cx, "\nResumed, up to the checkpoint of the first wave:\n")?;
    let mut exits = vec![stage.onward(cx, &["resume", "--no-input", "--yes"])?];
    for wave in 1..=2 {
        say(cx, "\nThe user says GO:\n")?;
        let gate = format!("wave[{wave}]/checkpoint[1]/ask");
        exits.push(stage.onward(cx, &["decide", &gate, "GO"])?);
        exits.push(stage.onward(cx, &["resume", "--no-input", "--yes"])?);
    }
    stage.tell(
        cx,
        &Told {
            proved: "four stories are done and merged, and none was implemented twice.",
            against: &against(&stage, &exits, &at_kill),
            facts: json!({"completed_at_kill": at_kill, "stories": STORIES.len(), "plan": plan}),
            look: &format!("onward log\n  git log --oneline --decorate\n  cat {STATE}"),
        },
    )
}

fn story(id: &str) -> String {
    format!("docs/stories/{id}.story.md")
}

fn text(id: &str) -> String {
    format!(
        "# Story {id}: Make {id}\n\n**Status:** Ready\n\n## Acceptance Criteria\n\n1. It is \
         there.\n\n## Tasks\n\n- [ ] make it\n\n## Change Log\n\n| Date | Agent | Change |\n\
         |---|---|---|\n"
    )
}

fn write(stage: &Stage, name: &str, text: &str) -> Result<(), Error> {
    let path = stage.dir.join(name);
    let parent = path.parent().unwrap_or(&stage.dir);
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
    written.map_err(|source| Error::CannotMake { path, source })
}

/// The stories that the state calls completed.
fn completed(stage: &Stage) -> BTreeSet<String> {
    let epic = fs::read_to_string(stage.dir.join(STATE)).unwrap_or_default();
    let mut found = BTreeSet::new();
    let mut last = "";
    for line in epic.lines().map(str::trim) {
        let key = line.trim_end_matches(':').trim_matches('"');
        if STORIES.contains(&key) {
            last = key;
        } else if line == "status: completed" && !last.is_empty() {
            found.insert(last.to_owned());
            last = "";
        }
    }
    found
}

fn against(stage: &Stage, exits: &[Option<i32>], at_kill: &BTreeSet<String>) -> Vec<String> {
    let mut against = Vec::new();
    let wanted = [error::WAITING, error::OK, error::WAITING, error::OK, error::OK];
    if !exits.iter().copied().eq(wanted.map(|code| Some(i32::from(code)))) {
        against.push(format!("the commands exited with {exits:?}"));
    }
    let epic = fs::read_to_string(stage.dir.join(STATE)).unwrap_or_default();
    if !epic.contains("\n  status: completed\n") {
        against.push("the epic is not completed".to_owned());
    }
    let ledger = fs::read_to_string(stage.dir.join(".onward/ledger")).unwrap_or_default();
    for id in STORIES {
        let page = fs::read_to_string(stage.dir.join(story(id))).unwrap_or_default();
        if !page.contains("**Status:** Done") || !page.contains("- [x]") {
            against.push(format!("story {id} is not done"));
        }
        let step = format!("story[{id}]/work/implement");
        let ran = ledger.lines().filter(|line| line.ends_with(&step)).count();
        if at_kill.contains(id) && ran != 1 {
            against.push(format!("story {id} was implemented {ran} times"));
        }
    }
    against
}
