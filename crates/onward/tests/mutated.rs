//! Directories of other systems in which something is broken, seen by the real program: it says so
//! and ends, and no file changes.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "support/program.rs"]
mod program;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write as _,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onward_engine::care::harness::until;
use program::Said;
use serde_json::{Value, json};
use tempfile::TempDir;

const NOW: &str = "2026-04-11T10:00:00Z";
/// Claude Code's directory, in the project.
const CLAUDE: &str = "claude";

fn put(root: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn agent_memory() -> TempDir {
    let project = TempDir::new().unwrap();
    let root = project.path().join(".agent-memory/runs/20260411-0800-law-k3x9");
    for file in ["prd.md", "plan.md", "constitution.md", "tasks/T001.md", "tasks/T002.md"] {
        put(&root, file, "# Text\n");
    }
    let tasks = json!([{"id": "T001", "title": "a", "dependencies": []},
        {"id": "T002", "title": "b", "dependencies": ["T001"]}]);
    put(&root, "task-graph.json", json!({"tasks": tasks}).to_string());
    put(&root, "workflow-state.json", json!({"workflow": {"current_phase": 2}}).to_string());
    let event = |kind: &str| {
        let at = "2026-04-11T09:00:00Z";
        format!("{}\n", json!({"event_type": kind, "task_id": "T001", "timestamp": at}))
    };
    put(&root, "events/executor/20260411-0900.jsonl", event("task-claimed"));
    put(&root, "events/verifier/20260411-0930.jsonl", event("task-verified"));
    begun(project)
}

fn dotagent() -> TempDir {
    let project = TempDir::new().unwrap();
    let root = project.path();
    let at = "2026-04-11T09:00:00Z";
    let done = |phase: &str| json!({"phase": phase, "completed_at": at});
    let phase = json!({
        "workflow_id": "wf", "started_at": at, "last_updated": at,
        "current_phase": "IMPLEMENTATION", "phase_status": "in_progress",
        "completed_phases": [done("REQUIREMENTS"), done("ARCHITECTURE")],
        "user_checkpoints": [], "interruption_safe": true,
    });
    let tasks = json!([{"id": "t1", "status": "running", "attempts": 1,
        "output": "memory/tasks/t1/output.json"}, {"id": "t2", "status": "pending"}]);
    for (name, value) in [
        ("state/phase.json", phase),
        ("state/execution.json", json!({"workflow_id": "wf", "tasks": tasks})),
        ("reports/demand.json", json!({"goal": "x"})),
        ("reports/designs/one.json", json!({"summary": "x"})),
        ("reports/final_design.json", json!({"contracts": []})),
        ("contracts/door.json", json!({"name": "door"})),
        ("tasks/t1/output.json", json!({"status": "pre_complete"})),
        ("tasks/t1/verification.json", json!({"verdict": "FAIL"})),
        ("reflections/old.json", json!({"workflow_id": "other"})),
    ] {
        put(root, &format!("memory/{name}"), value.to_string());
    }
    begun(project)
}

fn pipeline() -> TempDir {
    let project = TempDir::new().unwrap();
    let task = |id: &str, subject: &str, status: &str, metadata: Value| {
        let task = json!({"id": id, "subject": subject, "description": "so", "status": status,
            "blocks": [], "blockedBy": [], "metadata": metadata});
        put(project.path(), &format!("{CLAUDE}/tasks/session-1/{id}.json"), task.to_string());
    };
    let tier = json!({"type": "permanent", "tier": "STANDARD", "current_phase": "P2"});
    task("1", "[PERMANENT] Tea", "in_progress", tier);
    task("2", "one", "completed", json!({"phase": "P0", "files": ["src/a.txt"]}));
    task("3", "two", "completed", json!({"phase": "P1", "commit": "abc"}));
    task("4", "three", "in_progress", json!({"phase": "P2", "error": "x"}));
    task("5", "four", "pending", json!({"skill": "research-codebase"}));
    put(project.path(), &format!("{CLAUDE}/tasks/session-1/.highwatermark"), "5");
    put(project.path(), "src/a.txt", "a\n");
    begun(project)
}

fn sdlc() -> TempDir {
    let project = TempDir::new().unwrap();
    let story = |id: &str, status: &str| {
        format!(
            "# Story {id}: x\n\n**Status:** {status}\n\n## Acceptance Criteria\n\n1. It works.\n\n\
             ## Tasks / Subtasks\n\n- [ ] one\n\n## Change Log\n\n| Date | Agent | Change \
             |\n|---|---|---|\n| 2026-04-01 | sm | written |\n"
        )
    };
    let epic = "epic_state:\n  epicId: 3\n  status: active\n  current_wave: 1\n  waves:\n    \
        1:\n      status: in_progress\n      stories:\n        3.1:\n          status: \
        in_progress\n";
    let state = "workflow: story-development-cycle\ncurrent_story: 4.2\ncurrent_phase: 3\n\
        updated_at: 2026-04-11T09:00:00Z\n";
    let turns = json!({"storyId": "2.1", "currentIteration": 1, "maxIterations": 5,
        "status": "in_progress", "updatedAt": "2026-04-11T09:00:00Z",
        "history": [{"iteration": 1, "verdict": "REJECT", "fixedAt": null}]});
    for (path, text) in [
        ("docs/stories/3.1.story.md", story("3.1", "In Progress")),
        ("docs/stories/4.2.story.md", story("4.2", "In Progress")),
        ("docs/stories/2.1.story.md", story("2.1", "In Review")),
        (".aiox/epic-3-state.yaml", epic.to_owned()),
        (".nexos/workflow-state/run-state.yaml", state.to_owned()),
        ("qa/2.1/loop-status.json", turns.to_string()),
        ("docs/specs/door/requirements.json", "{\"wanted\":1}".to_owned()),
        ("docs/specs/door/complexity.json", "{\"class\":\"SIMPLE\"}".to_owned()),
        ("docs/qa/gates/4.2-x.yml", "storyId: 4.2\nverdict: FAIL\n".to_owned()),
    ] {
        put(project.path(), path, text);
    }
    begun(project)
}

fn begun(project: TempDir) -> TempDir {
    fs::create_dir(project.path().join(".onward")).unwrap();
    project
}

/// What is at a path, without following links.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    Bytes(Vec<u8>),
    Link(PathBuf),
    /// A directory, a pipe; or a file that is too large to be compared, with its length.
    Other(u64),
}

/// Everything in the project.
fn things(root: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut all = BTreeMap::new();
    let mut rest = vec![root.to_path_buf()];
    while let Some(dir) = rest.pop() {
        for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let length = entry.metadata().unwrap().len();
            let thing = if kind.is_symlink() {
                Thing::Link(fs::read_link(&path).unwrap())
            } else if kind.is_file() && length < 1 << 20 {
                Thing::Bytes(fs::read(&path).unwrap())
            } else {
                Thing::Other(if kind.is_dir() { 0 } else { length })
            };
            if kind.is_dir() {
                rest.push(path.clone());
            }
            all.insert(path, thing);
        }
    }
    all
}

/// The files of the run, from the project's directory.
fn files(root: &Path) -> Vec<PathBuf> {
    let is_file = |(_, thing): &(&PathBuf, &Thing)| matches!(thing, Thing::Bytes(_));
    things(root).iter().filter(is_file).map(|it| it.0.clone()).collect()
}

/// Runs `plan --json`, which ends in time, says what it has to say as JSON, and changes nothing.
#[track_caller]
fn planned(project: &Path, what: &str) -> (i32, Value) {
    let before = things(project);
    let out = TempDir::new().unwrap();
    let (said, told) = (out.path().join("out"), out.path().join("err"));
    let mut command: Command = program::onward(project, "plan --json");
    command.env("ONWARD_NOW", NOW).env("CLAUDE_CONFIG_DIR", project.join(CLAUDE));
    command.stdout(File::create(&said).unwrap());
    let mut child = command.stderr(File::create(&told).unwrap()).spawn().unwrap();
    let status = until("the plan", || Ok(child.try_wait().unwrap()));
    let status = status.unwrap_or_else(|late| {
        child.kill().unwrap();
        panic!("{what}: it hangs: {late}")
    });
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let (said, told) = (text(&said), text(&told));
    let code = status.code().unwrap_or_else(|| panic!("{what}: {status}: {told}"));
    assert!(!told.contains("panicked"), "{what}: {told}");
    assert!([0, 1, 15, 16, 17].contains(&code), "{what}: exit {code}: {told}");
    let value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{what}: {error}: {said}"));
    assert_eq!(things(project), before, "{what}: a plan changes nothing");
    (code, value)
}

/// What a file is made to be, in words and in deed.
type Way<'a> = (&'static str, Box<dyn Fn() + 'a>);

/// A file that is not what it should be.
fn spoilt<'a>(path: &'a Path, whole: &[u8]) -> Vec<Way<'a>> {
    let write = |bytes: Vec<u8>| move || fs::write(path, &bytes).unwrap();
    let instead = |make: &'static dyn Fn(&Path)| {
        move || {
            fs::remove_file(path).unwrap();
            make(path);
        }
    };
    let flipped = whole.iter().map(|byte| byte ^ 0x55).collect();
    let deep = [vec![b'['; 20_000], vec![b']'; 20_000]].concat();
    let large = format!("{{\"tasks\":[{}]}}", vec!["{\"id\":7}"; 20_000].join(","));
    vec![
        ("empty", Box::new(write(Vec::new()))),
        ("half", Box::new(write(whole[..whole.len() / 2].to_vec()))),
        ("without its last byte", Box::new(write(whole[..whole.len() - 1].to_vec()))),
        ("NULs", Box::new(write(vec![0; 5_000]))),
        ("junk", Box::new(write(flipped))),
        ("no UTF-8", Box::new(write(b"\xff\xfe{\x80}".to_vec()))),
        ("a list", Box::new(write(b"[]".to_vec()))),
        ("a number", Box::new(write(b"7".to_vec()))),
        (
            "wrong types",
            Box::new(write(
                br#"{"tasks":7,"current_phase":[],"completed_phases":{"a":1},"event_type":{}}"#
                    .to_vec(),
            )),
        ),
        (
            "tasks of no shape",
            Box::new(write(
                br#"{"tasks":[null,[],7,{"id":[]},{"id":"","dependencies":"x"}]}"#.to_vec(),
            )),
        ),
        ("deep", Box::new(write(deep))),
        ("large", Box::new(write(large.into_bytes()))),
        ("gone", Box::new(instead(&|_| {}))),
        ("a directory", Box::new(instead(&|path| fs::create_dir(path).unwrap()))),
        ("a link to nothing", Box::new(instead(&|path| symlink("nowhere", path).unwrap()))),
        ("a link to itself", Box::new(instead(&|path| symlink(path, path).unwrap()))),
        ("a link out", Box::new(instead(&|path| symlink("/etc/passwd", path).unwrap()))),
        ("an endless device", Box::new(instead(&|path| symlink("/dev/zero", path).unwrap()))),
        (
            "a pipe",
            Box::new(instead(&|path| {
                assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
            })),
        ),
        ("huge", Box::new(move || File::create(path).unwrap().set_len(3 << 30).unwrap())),
    ]
}

#[track_caller]
fn every_file_is_spoilt(make: fn() -> TempDir) {
    let sound = make();
    assert_eq!(planned(sound.path(), "sound").0, 0);
    let count = files(sound.path()).len();
    assert!(count >= 7, "{count}");
    for index in 0..count {
        let kinds = spoilt(Path::new(""), b"xx").len();
        for kind in 0..kinds {
            let project = make();
            let path = files(project.path()).swap_remove(index);
            let whole = fs::read(&path).unwrap();
            let ways = spoilt(&path, &whole);
            let (name, spoil) = &ways[kind];
            spoil();
            let inner = path.strip_prefix(project.path()).unwrap();
            planned(project.path(), &format!("{} is {name}", inner.display()));
        }
    }
}

#[test]
fn whatever_a_file_of_agent_memory_is_the_plan_is_made_or_refused_and_nothing_changes() {
    every_file_is_spoilt(agent_memory);
}

#[test]
fn whatever_a_file_of_dotagent_is_the_plan_is_made_or_refused_and_nothing_changes() {
    every_file_is_spoilt(dotagent);
}

#[test]
fn whatever_a_file_of_a_pipeline_is_the_plan_is_made_or_refused_and_nothing_changes() {
    every_file_is_spoilt(pipeline);
}

#[test]
fn whatever_a_file_of_an_sdlc_project_is_the_plan_is_made_or_refused_and_nothing_changes() {
    every_file_is_spoilt(sdlc);
}

#[test]
fn a_file_that_is_too_large_to_be_read_is_a_finding_and_the_rest_is_used() {
    let project = agent_memory();
    let usual = planned(project.path(), "sound").1;
    let huge = ".agent-memory/runs/20260411-0800-law-k3x9/events/executor/20260411-0959.jsonl";
    File::create(project.path().join(huge)).unwrap().set_len(3 << 30).unwrap();
    let (code, plan) = planned(project.path(), "a huge log");
    assert_eq!((code, &plan["can_resume"]), (0, &json!(false)), "{plan:#}");
    assert_eq!(plan["recovery_point"], usual["recovery_point"], "{plan:#}");
    let findings = plan["findings"].as_array().unwrap();
    let found = findings.iter().find(|it| it["code"] == "state-unreadable").unwrap();
    assert_eq!(found["path"], huge, "{plan:#}");
    assert!(found["message"].as_str().unwrap().contains("too large"), "{plan:#}");
}

/// A file, and a directory that a pattern leads into.
#[test]
fn a_link_is_a_finding_and_the_rest_is_used() {
    let run = ".agent-memory/runs/20260411-0800-law-k3x9";
    for (make, name) in [
        (agent_memory as fn() -> TempDir, format!("{run}/events/executor/20260411-0900.jsonl")),
        (agent_memory, format!("{run}/events/executor")),
        (dotagent, "memory/reflections/old.json".to_owned()),
        (dotagent, "memory/tasks/t1".to_owned()),
    ] {
        let project = make();
        let path = project.path().join(&name);
        fs::rename(&path, project.path().join("moved")).unwrap();
        symlink(project.path().join("moved"), &path).unwrap();
        let (code, plan) = planned(project.path(), &name);
        assert_eq!((code, &plan["can_resume"]), (0, &json!(false)), "{name}: {plan:#}");
        let findings = plan["findings"].as_array().unwrap();
        let found = findings.iter().find(|it| it["code"] == "state-unreadable");
        let found = found.unwrap_or_else(|| panic!("{name}: {plan:#}"));
        assert_eq!(found["path"], name, "{plan:#}");
        assert!(found["message"].as_str().unwrap().contains("is a link"), "{plan:#}");
        let code = plan["recovery_point"]["code"].as_str().unwrap();
        assert!(["execute", "implementation"].contains(&code), "the rest counts: {plan:#}");
    }
}

/// To root it is a file like any other.
#[test]
fn a_file_that_may_not_be_read_stops_no_plan() {
    for (make, name) in [(agent_memory as fn() -> TempDir, "plan.md"), (dotagent, "t1")] {
        let project = make();
        let path = things(project.path()).into_keys().find(|it| it.ends_with(name)).unwrap();
        let usual = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        let mut command: Command = program::onward(project.path(), "plan --json");
        let said = Said::of(&command.env("ONWARD_NOW", NOW).stdin(Stdio::null()).output().unwrap());
        let is_barred = File::open(&path).is_err();
        fs::set_permissions(&path, usual).unwrap();
        assert_eq!(said.code, 0, "{name}: {said:?}");
        assert_eq!(said.out.contains("state-unreadable"), is_barred, "{name}: {said:?}");
    }
}

/// Each task comes after the one before it.
#[test]
fn a_chain_of_a_thousand_tasks_is_planned() {
    let id = |number: usize| format!("T{number:04}");
    let after = |number: usize| number.checked_sub(1).map(id).into_iter().collect::<Vec<_>>();
    let project = agent_memory();
    let root = project.path().join(".agent-memory/runs/20260411-0800-law-k3x9");
    let task = |number| json!({"id": id(number), "dependencies": after(number)});
    let tasks: Vec<Value> = (0..1000).map(task).collect();
    put(&root, "task-graph.json", json!({"tasks": tasks}).to_string());
    let (code, plan) = planned(project.path(), "a long task graph");
    assert_eq!((code, &plan["recovery_point"]["steps"]), (0, &json!(["execute[T0000]"])));
    let project = dotagent();
    let task = |number| json!({"id": id(number), "status": "pending", "depends_on": after(number)});
    let tasks: Vec<Value> = (0..1000).map(task).collect();
    let execution = json!({"workflow_id": "wf", "tasks": tasks}).to_string();
    put(project.path(), "memory/state/execution.json", execution);
    let (code, plan) = planned(project.path(), "a long execution plan");
    assert_eq!((code, &plan["recovery_point"]["steps"]), (0, &json!(["implementation[T0000]"])));
}

/// Larger than what is looked at of a file while runs are searched for.
#[test]
fn a_story_of_any_size_is_found_by_its_first_lines() {
    let project = TempDir::new().unwrap();
    let head =
        "# Story 4.2: x\n\n**Status:** In Progress\n\n## Tasks\n\n- [ ] one\n\n## Dev Notes\n\n";
    put(project.path(), "docs/stories/4.2.story.md", head.to_owned() + &"much\n".repeat(1 << 20));
    let project = begun(project);
    let (code, plan) = planned(project.path(), "a large story");
    assert_eq!(code, 0, "{plan:#}");
    assert_eq!(plan["recovery_point"]["code"], "sdc:implement", "{plan:#}");
}

#[test]
fn folders_that_are_missing_or_odd_are_no_obstacle() {
    for make in [agent_memory as fn() -> TempDir, dotagent] {
        let sound = make();
        let is_dir = |(_, thing): &(&PathBuf, &Thing)| **thing == Thing::Other(0);
        let all = things(sound.path());
        let dirs: Vec<PathBuf> = all.iter().filter(is_dir).map(|it| it.0.clone()).collect();
        let is_ours = |dir: &PathBuf| dir.ends_with(".onward");
        for dir in dirs.into_iter().filter(|it| !is_ours(it)) {
            let inner = dir.strip_prefix(sound.path()).unwrap().to_owned();
            for way in ["gone", "a file", "a link", "a link to its parent"] {
                let project = make();
                let path = project.path().join(&inner);
                fs::remove_dir_all(&path).unwrap();
                match way {
                    "a file" => fs::write(&path, "junk").unwrap(),
                    "a link" => symlink("/etc", &path).unwrap(),
                    "a link to its parent" => symlink("..", &path).unwrap(),
                    _ => {}
                }
                planned(project.path(), &format!("{} is {way}", inner.display()));
            }
        }
        // Names that are no text, and a depth that no system uses.
        let project = make();
        let place = files(project.path())[0].parent().unwrap().to_path_buf();
        let odd = std::ffi::OsStr::from_bytes(b"\xff\xfe.json");
        fs::write(place.join(odd), "{}").unwrap();
        let deep = project.path().join(vec!["events"; 200].join("/"));
        fs::create_dir_all(deep).unwrap();
        planned(project.path(), "odd names");
    }
}

/// One log of a million events in the shape that the agents write.
#[test]
fn a_million_events_are_planned() {
    let project = agent_memory();
    let root = project.path().join(".agent-memory/runs/20260411-0800-law-k3x9");
    let path = root.join("events/executor/20260411-0900.jsonl");
    let mut log = std::io::BufWriter::new(File::create(&path).unwrap());
    for number in 0..1_000_000_usize {
        let (hour, minute, second) = (number / 3600 % 9, number / 60 % 60, number % 60);
        let kind = ["task-claimed", "task-failed"][number % 2];
        let at = format!("2026-04-11T0{hour}:{minute:02}:{second:02}Z");
        writeln!(
            log,
            "{{\"event_type\":\"{kind}\",\"task_id\":\"T001\",\"timestamp\":\"{at}\",\
             \"actor\":\"executor\",\"details\":{{}}}}"
        )
        .unwrap();
    }
    log.flush().unwrap();
    drop(log);
    let (code, plan) = planned(project.path(), "a million events");
    assert_eq!(code, 0, "{plan:#}");
    // T001 is verified at half past nine, after all of them.
    assert_eq!(plan["recovery_point"]["steps"], json!(["execute[T002]"]), "{plan:#}");
}

#[test]
fn a_resume_of_a_spoilt_run_loses_no_file() {
    for (make, spoil) in
        [(agent_memory as fn() -> TempDir, "task-graph.json"), (dotagent, "phase.json")]
    {
        let project = make();
        let path = files(project.path()).into_iter().find(|it| it.ends_with(spoil)).unwrap();
        fs::write(&path, b"{\"tasks\": [\0\0").unwrap();
        let before = things(project.path());
        let mut command = program::onward(project.path(), "resume --no-input --yes");
        let said = Said::of(&command.env("ONWARD_NOW", NOW).stdin(Stdio::null()).output().unwrap());
        assert!(!said.err.contains("panicked"), "{said:?}");
        let after = things(project.path());
        let lost = before.keys().filter(|it| !after.contains_key(*it));
        assert_eq!(lost.count(), 0, "{spoil}: {said:?}");
    }
}
