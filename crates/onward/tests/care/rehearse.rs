//! Rehearse: a safe workflow passes at every boundary, an unsafe step is named.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::{bench::Bench, json, repo::repo, texts};

fn unsafe_steps(rehearsal: &Value) -> Vec<String> {
    let steps = rehearsal["unsafe_steps"].as_array().unwrap();
    steps.iter().map(|it| it["step"].as_str().unwrap().to_owned()).collect()
}

fn entries(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(&bench.root).unwrap();
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_demos_own_workflow_passes_at_every_boundary() {
    let bench = Bench::new("");
    let demo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cmd/demo/book.yaml");
    fs::copy(demo, bench.path("book.yaml")).unwrap();
    fs::write(
        bench.path("topics.json"),
        "{\"type\": \"array\", \"items\": {\"type\": \"string\"}}",
    )
    .unwrap();
    let verdict = "{\"type\": \"object\", \"required\": [\"ok\"]}";
    fs::write(bench.path("verdict-schema.json"), verdict).unwrap();
    let before = entries(&bench);
    let found = json(&bench, "rehearse", "rehearse book.yaml", 0);
    assert_eq!(found["status"], "completed", "{found:#}");
    assert_eq!((&found["safe"], &found["failures"]), (&true.into(), &serde_json::json!([])));
    let boundaries = found["boundaries"].as_u64().unwrap();
    assert!(boundaries > 10, "{found:#}");
    assert_eq!(found["tried"], boundaries);
    assert_eq!(found["passed"], boundaries * 2);
    assert_eq!(entries(&bench), before, "the project itself is only read");
    assert!(bench.project().runs().unwrap().is_empty());
}

#[test]
fn a_command_that_appends_is_named_and_one_that_declares_its_output_is_not() {
    let bench = Bench::new(
        "  - { id: good, run: 'echo 1 > made; echo 2 >> made', writes: [made] }\n\
         \x20 - { id: appends, run: echo once >> log.txt }\n\
         \x20 - { id: after, run: cp made copied, writes: [copied] }\n",
    );
    let found = json(&bench, "rehearse", "rehearse w.yaml --real-commands", 16);
    assert_eq!(unsafe_steps(&found), ["appends"], "{found:#}");
    let why = found["unsafe_steps"][0]["why"].as_str().unwrap();
    assert!(why.contains("log.txt"), "{found:#}");
    assert!(!bench.path("log.txt").exists());
    // Played, its command is not tried, and that is said.
    let played = json(&bench, "rehearse", "rehearse w.yaml --limit 2", 0);
    assert_eq!((&played["tried"], &played["kills"]), (&2.into(), &4.into()));
    assert_eq!(texts(&played["not_tried"]), ["good", "appends", "after"]);
}

#[test]
fn an_effect_without_a_probe_is_named_and_one_with_it_is_not() {
    let bench = Bench::new(
        "  - { id: asked, run: send, effect: outside, probe: { run: was-it-sent } }\n\
         \x20 - { id: blind, run: send, effect: outside }\n",
    );
    let found = json(&bench, "rehearse", "rehearse w.yaml", 16);
    assert_eq!(unsafe_steps(&found), ["blind"], "{found:#}");
    let said = bench.exits("rehearse w.yaml --limit 0", 16);
    assert!(said.out.contains("not safe to repeat: blind"), "{said:?}");
}

#[test]
fn what_cannot_be_rehearsed_is_said() {
    let bench = Bench::new("  - { id: bad, run: 'exit 3' }\n");
    let failed = json(&bench, "rehearse", "rehearse w.yaml --real-commands --limit 1", 0);
    assert_eq!(failed["status"], "failed", "{failed:#}");
    assert_eq!(texts(&failed["ended_by"]), ["bad: failed, exit 3"], "{failed:#}");
    bench.exits("rehearse nowhere.yaml", 1);
    bench.exits("rehearse w.yaml --input x=1", 2);
    bench.exits("rehearse w.yaml --limit some", 2);
    bench.workflow("w.yaml", "steps:", "  - { id: bad, rnu: x }\n");
    bench.exits("rehearse w.yaml", 2);
}

#[test]
fn a_worktree_is_played_and_compared_too() {
    let bench = repo(
        "",
        "  - { id: a, agent: claude, prompt: x, worktree: true, writes: [a.txt] }\n\
         \x20 - { id: b, agent: claude, prompt: x, worktree: true, needs: [], writes: [b.txt] }\n",
    );
    let found = json(&bench, "rehearse", "rehearse w.yaml", 0);
    assert_eq!((&found["status"], &found["safe"]), (&"completed".into(), &true.into()));
    assert!(bench.project().runs().unwrap().is_empty());
}

/// A place on another file system than the project, if this machine has one to write to.
fn elsewhere(bench: &Bench) -> Option<TempDir> {
    let device = |path: &Path| Some(fs::metadata(path).ok()?.dev());
    let mut places = ["/dev/shm", "/tmp", "/var/tmp"].into_iter().map(Path::new);
    let place = places.find(|it| device(it).is_some_and(|it| Some(it) != device(&bench.root)))?;
    TempDir::new_in(place).ok()
}

#[test]
fn a_rehearsal_on_another_file_system_than_the_project_is_played_too() {
    let bench = repo("", "  - { id: a, run: 'echo 1 > x', writes: [x] }\n");
    let Some(place) = elsewhere(&bench) else {
        #[expect(clippy::print_stderr, reason = "a reader of the test's output must know")]
        {
            eprintln!("not tested: there is no other file system to write to");
        }
        return;
    };
    let mut command = bench.command("rehearse w.yaml");
    let output = command.env("TMPDIR", place.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
