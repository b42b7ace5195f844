//! A pipeline that Claude Code began, gone on with; and one of ours that it went on with meanwhile.

use std::{fs, path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{bench::kill_all, kitchen::Kitchen};

/// A list in the user's directory: the tier, and tasks as `P6:7~` (`+` completed, `~` in progress,
/// `-` pending, `!` failed).
pub(crate) fn list(kitchen: &Kitchen, tier: &str, script: &str) -> PathBuf {
    let list = kitchen.home.join("tasks/session-12345678");
    fs::create_dir_all(&list).unwrap();
    let slug = kitchen.bench.root.file_name().unwrap().to_str().unwrap();
    let metadata = json!({"type": "permanent", "tier": tier, "current_phase": "P7",
        "commit_status": "pending", "own": [1.50, "x"], "projectSlug": slug});
    write(&list, 1, "[PERMANENT] Better tea", "in_progress", &metadata);
    for word in script.split_whitespace() {
        let (phase, rest) = word.split_once(':').unwrap();
        let (id, sign) = rest.split_at(rest.len() - 1);
        let mut metadata = json!({"type": "work", "phase": phase, "parent": "1"});
        if phase == "P6" {
            metadata["files"] = json!([format!("src/{id}.txt")]);
        }
        if sign == "!" {
            metadata["error"] = json!("agent_interrupted");
        }
        let status = match sign {
            "+" => "completed",
            "~" | "!" => "in_progress",
            _ => "pending",
        };
        write(&list, id.parse().unwrap(), &format!("do {id}"), status, &metadata);
    }
    fs::write(list.join(".lock"), "").unwrap();
    list
}

pub(crate) fn write(
    list: &std::path::Path,
    id: u32,
    subject: &str,
    status: &str,
    metadata: &Value,
) {
    let task = json!({"id": id.to_string(), "subject": subject, "description": "-",
        "status": status, "blocks": [], "blockedBy": [], "metadata": metadata});
    fs::write(list.join(format!("{id}.json")), format!("{task:#}")).unwrap();
}

pub(crate) fn content(list: &std::path::Path, id: u32) -> Vec<u8> {
    fs::read(list.join(format!("{id}.json"))).unwrap()
}

#[test]
fn an_interrupted_pipeline_goes_on_and_is_delivered_and_completed_tasks_stay_as_they_are() {
    let kitchen = Kitchen::new("-");
    let script = "P0:2+ P1:3+ P2:4+ P3:5+ P6:6! P6:7-";
    let list = list(&kitchen, "STANDARD", script);
    let before: Vec<Vec<u8>> = (2..6).map(|id| content(&list, id)).collect();
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.permanent()["metadata"]["resume_count"], 1);
    assert_eq!((2..6).map(|id| content(&list, id)).collect::<Vec<_>>(), before);
    for step in ["intake", "breakdown", "P3[5]/work", "P3[5]/verify"] {
        assert_eq!(kitchen.calls(step), 0, "{step}");
    }
    assert_eq!((kitchen.calls("P6[6]/work"), kitchen.calls("P6[7]/work")), (1, 1));
    assert_eq!(kitchen.bench.text("src/6.txt").lines().last(), Some("made for src/6.txt"));
    let tasks = kitchen.tasks();
    assert_eq!(tasks[&6]["metadata"]["error"], Value::Null);
    let verification = tasks.values().filter(|it| it["metadata"]["phase"] == "P7").count();
    assert_eq!((tasks.len(), verification), (9, 2), "new tasks for new work alone");
    let text = String::from_utf8(content(&list, 1)).unwrap();
    assert!(text.contains("1.5") && text.contains("\"own\""), "what is unknown stays: {text}");
    kitchen.approve();
    let permanent = kitchen.permanent();
    assert_eq!(permanent["metadata"]["commit_status"], "committed", "{permanent:#}");
    assert_eq!(kitchen.git(&["show", "--name-only", "--format=", "HEAD"]), "src/6.txt\nsrc/7.txt");
    kitchen.exits("resume", 17);
}

#[test]
fn delivery_pending_is_delivered_and_nothing_else_runs() {
    let kitchen = Kitchen::new("-");
    list(&kitchen, "TRIVIAL", "P6:2+");
    fs::write(kitchen.bench.path("src/2.txt"), "made\n").unwrap();
    kitchen.exits("resume --yes --no-input --accept artifact-changed", 11);
    assert_eq!(kitchen.calls("P8/describe"), 1);
    kitchen.approve();
    assert_eq!(kitchen.git(&["show", "--name-only", "--format=", "HEAD"]), "src/2.txt");
}

#[test]
fn what_claude_code_completed_meanwhile_is_not_done_again() {
    let kitchen = Kitchen::new("TRIVIAL");
    let mut engine = kitchen.leash("run pipeline --no-input --input request=tea");
    let is_begun =
        |it: &Kitchen| it.events().iter().any(|it| it.starts_with("group.expanded \"P6"));
    assert!(engine.until(|| is_begun(&kitchen)), "{}", engine.last);
    engine.kill();
    kill_all(&kitchen.run_dir());
    let list = kitchen.list();
    let tasks = kitchen.tasks();
    let open: Vec<u32> = tasks
        .iter()
        .filter(|(_, it)| it["metadata"]["phase"] == "P6" && it["status"] != "completed")
        .map(|it| *it.0)
        .collect();
    let id = *open.last().unwrap();
    let mut task = tasks[&id].clone();
    task["status"] = json!("completed");
    task["metadata"]["result"] = json!("by hand");
    fs::write(kitchen.bench.path("src/pot.txt"), "by hand\n").unwrap();
    fs::write(list.join(format!("{id}.json")), format!("{task:#}")).unwrap();
    let before = kitchen.calls(&format!("P6[{id}]/work"));
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.calls(&format!("P6[{id}]/work")), before, "it is completed");
    assert_eq!(kitchen.bench.text("src/pot.txt"), "by hand\n");
    kitchen.approve();
}

/// Claude Code clears completed tasks away: what a run of ours did, or took over, stays done.
#[test]
fn a_completed_task_whose_file_is_gone_is_not_done_again() {
    let kitchen = Kitchen::new("TRIVIAL");
    let mut engine = kitchen.leash("run pipeline --no-input --input request=tea");
    let is_expanded =
        |it: &Kitchen| it.events().iter().any(|it| it.starts_with("group.expanded \"P6"));
    assert!(engine.until(|| is_expanded(&kitchen)), "{}", engine.last);
    engine.kill();
    kill_all(&kitchen.run_dir());
    let done = kitchen.list().join("2.json");
    assert!(fs::read_to_string(&done).unwrap().contains("completed"));
    fs::remove_file(&done).unwrap();
    let plan = kitchen.exits("plan --json", 0).json();
    assert!(!plan["findings"].to_string().contains("status-disagrees"), "{plan:#}");
    assert!(plan["findings"].to_string().contains("blocker-gone"), "{plan:#}");
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.calls("P0[2]/work"), 1);
    assert!(!done.exists(), "it is not made again");
}

#[test]
fn a_file_that_changed_since_is_verified_and_what_does_not_hold_is_done_again() {
    for (holds, works) in [("true", 0), ("false", 1)] {
        let mut kitchen = Kitchen::new("-");
        kitchen.env.push(("HOLDS", holds.to_owned()));
        let list = list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6+ P7:7-");
        fs::write(kitchen.bench.path("src/6.txt"), "edited by hand\n").unwrap();
        let file = fs::File::open(list.join("6.json")).unwrap();
        let earlier = fs::metadata(kitchen.bench.path("src/6.txt")).unwrap().modified().unwrap();
        let earlier = earlier - Duration::from_mins(1);
        file.set_modified(earlier).unwrap();
        let plan = kitchen.exits("plan --json", 0).json();
        let mut rows = plan["steps"].as_array().unwrap().iter();
        let row = rows.find(|it| it["step"] == "P6[6]").unwrap();
        assert_eq!(row["verdict"], "verify", "{plan:#}");
        kitchen.exits("resume --yes --no-input", 11);
        assert_eq!(kitchen.calls("P6[6]/verify"), 1);
        assert_eq!(kitchen.calls("P6[6]/redo"), works);
    }
}

/// While a run of ours waits at its gate: its journal has the task as completed.
#[test]
fn a_file_that_changes_in_a_run_of_ours_is_verified_before_anything_after_it_runs() {
    for holds in [true, false] {
        let mut kitchen = Kitchen::new("-");
        list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6-");
        kitchen.exits("resume --yes --no-input", 11);
        kitchen.bench.write("src/6.txt", "edited by hand\n");
        let plan = kitchen.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["phase"], "P6", "{plan:#}");
        assert_eq!(plan["recovery_point"]["steps"], json!(["P6[6]/verify"]), "{plan:#}");
        kitchen.env.push(("HOLDS", holds.to_string()));
        let said = kitchen.exits("resume --yes --no-input", if holds { 11 } else { 10 });
        assert_eq!((kitchen.calls("P6[6]/verify"), kitchen.calls("P6[6]/work")), (1, 1));
        assert_eq!(kitchen.calls("P6[6]/redo"), usize::from(!holds));
        assert_eq!(kitchen.bench.text("src/6.txt"), "edited by hand\n", "it is a person's");
        if !holds {
            assert!(said.err.contains("src/6.txt"), "a person settles it: {said:#?}");
            continue;
        }
        assert_eq!(kitchen.calls("review[1]/judge"), 2, "it is reviewed again");
        kitchen.approve();
        let plan = kitchen.exits("plan --json", 0).json();
        assert_eq!(plan["run"]["status"], "completed", "{plan:#}");
        let own = plan["findings"].to_string();
        assert!(!own.contains("unexpected-commits"), "the commit is its own: {plan:#}");
    }
}

#[test]
fn a_person_enters_at_an_earlier_phase_and_is_told_what_is_done_again() {
    let kitchen = Kitchen::new("-");
    let list = list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6~");
    let before = content(&list, 3);
    let said = kitchen.onward("resume --yes --no-input --from P7");
    assert_eq!(said.code, 16, "it lies ahead: {said:#?}");
    assert!(said.err.contains("`--force` enters there") && !said.err.contains("--accept"));
    kitchen.exits("resume --yes --no-input --from P7 --accept phase-ahead-of-evidence", 16);
    assert_eq!(content(&list, 3), before);
    kitchen.exits("resume --yes --no-input --from P2", 11);
    assert_eq!((kitchen.calls("P2[4]/work"), kitchen.calls("P3[5]/work")), (1, 1));
    assert_eq!(kitchen.calls("P1[3]/work"), 0);
    assert_eq!(content(&list, 3), before);
}

#[test]
fn tasks_that_were_parallel_go_on_in_parallel() {
    let kitchen = Kitchen::new("-");
    list(&kitchen, "COMPLEX", "P0:2+ P1:3+ P2:4+ P3:5+ P4:6+ P5:7+ P6:8~ P6:9-");
    kitchen.exits("resume --yes --no-input", 11);
    let journal = fs::read_to_string(kitchen.run_dir().join("journal.jsonl")).unwrap();
    let at = |kind: &str, step: &str| {
        let is_it = |line: &&str| line.contains(kind) && line.contains(step);
        let line = journal.lines().find(is_it).unwrap();
        serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap()
    };
    for (one, other) in [("P6[8]/work", "P6[9]/work"), ("P6[9]/work", "P6[8]/work")] {
        assert!(at("attempt.started", one) < at("attempt.finished", other), "{one}");
    }
}

/// A task that another program adds to a phase which our run has listed already.
fn add_task(list: &std::path::Path, id: u32, phase: &str) {
    let metadata = json!({"type": "work", "phase": phase, "parent": "1",
        "files": [format!("src/{id}.txt")]});
    write(list, id, &format!("do {id}"), "pending", &metadata);
}

#[test]
fn tasks_that_are_added_to_a_listed_phase_are_run_and_what_is_done_is_not_done_again() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    let works = |kitchen: &Kitchen| {
        let done = kitchen.tasks().into_keys().filter(|id| *id < 50);
        done.map(|id| kitchen.calls(&format!("P6[{id}]/work"))).sum::<usize>()
    };
    let before = works(&kitchen);
    add_task(&kitchen.list(), 50, "P6");
    let plan = kitchen.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["phase"], "P6", "{plan:#}");
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!(kitchen.calls("P6[50]/work"), 1);
    assert_eq!(works(&kitchen), before, "what is completed stays as it is");
    assert_eq!(kitchen.tasks()[&50]["status"], "completed");
    kitchen.approve();
    let committed = kitchen.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert!(committed.contains("src/50.txt"), "{committed}");
}

#[test]
fn a_task_that_comes_while_its_phase_runs_is_done_before_the_next_phase() {
    let kitchen = Kitchen::new("-");
    let list = list(&kitchen, "STANDARD", "P0:2+ P1:3+ P2:4+ P3:5+ P6:6-");
    let late = json!({"id": "50", "subject": "do 50", "status": "pending",
        "metadata": {"phase": "P6", "files": ["src/50.txt"]}});
    let agent = kitchen.bench.text("agent.sh").replace(
        "  P6*/work|P6*/redo)\n",
        &format!(
            "  P6*/work|P6*/redo)\n    [ -e {0}/50.json ] || echo '{late}' > {0}/50.json\n",
            list.display()
        ),
    );
    kitchen.bench.write("agent.sh", &agent);
    let said = kitchen.exits("resume --yes --no-input", 10);
    assert!(said.err.contains("P6[50]"), "{said:#?}");
    assert_eq!(kitchen.calls("P7[51]/work"), 0, "nothing rests on what is not done");
    kitchen.exits("resume --yes --no-input", 11);
    assert_eq!((kitchen.calls("P6[50]/work"), kitchen.calls("P6[6]/work")), (1, 1));
}

#[test]
fn another_branch_is_confirmed_first_and_then_kept() {
    let kitchen = Kitchen::new("-");
    let list = list(&kitchen, "TRIVIAL", "P0:2+ P6:3~");
    let mut permanent: Value = serde_json::from_slice(&content(&list, 1)).unwrap();
    permanent["metadata"]["branch"] = json!("feat/tea");
    fs::write(list.join("1.json"), format!("{permanent:#}")).unwrap();
    let said = kitchen.exits("resume --yes --no-input", 16);
    assert!(said.err.contains("branch-mismatch"), "{said:#?}");
    kitchen.exits("resume --yes --no-input --accept branch-mismatch", 11);
    assert_eq!(kitchen.permanent()["metadata"]["branch"], "main");
}

/// What a run of ours settled: the user wants the execution once more, and again after changes by
/// hand.
#[test]
fn a_phase_that_a_run_of_ours_settled_is_done_again_on_the_users_word() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    for turn in 2..4 {
        let said = kitchen.exits("resume --yes --no-input --from P6", 11);
        let warned = "P6  entered as you asked: finished work from there on is done again";
        assert!(said.err.contains(warned), "{said:#?}");
        let tasks = kitchen.tasks().into_iter();
        for (id, task) in tasks.filter(|it| it.1["metadata"]["phase"] == "P6") {
            assert_eq!(kitchen.calls(&format!("P6[{id}]/work")), turn, "{task:#}");
            assert_eq!(task["status"], "completed", "{task:#}");
        }
        let water = kitchen.bench.text("src/water.txt");
        assert_eq!(water.starts_with("by hand\n"), turn == 3, "it rests on what is there: {water}");
        kitchen.bench.write("src/water.txt", "by hand\n");
    }
    assert_eq!(kitchen.calls("P0[2]/work"), 1);
    kitchen.exits("resume --yes --no-input", 11);
    kitchen.approve();
    let committed = kitchen.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed, "src/leaves.txt\nsrc/pot.txt\nsrc/water.txt");
}

/// The tasks of a phase being known is not the phase being done.
#[test]
fn a_phase_whose_tasks_are_open_has_no_row_that_says_it_is_done() {
    let kitchen = Kitchen::new("-");
    let _list = list(&kitchen, "TRIVIAL", "P0:2+ P6:3~ P6:4-");
    let plan = kitchen.exits("plan --json", 0).json();
    let rows: Vec<&str> =
        plan["steps"].as_array().unwrap().iter().map(|it| it["step"].as_str().unwrap()).collect();
    assert!(rows.contains(&"P6[3]") && !rows.contains(&"P6"), "{rows:?}");
    let status = kitchen.exits("status --json", 0).json();
    assert_ne!(status["last_completed"]["step"], "P6", "{status:#}");
    // Once it is ours, a row of that plan is still a name for its steps.
    kitchen.bench.write("agent.sh", "exit 1\n");
    kitchen.exits("resume --yes --no-input", 10);
    let why = kitchen.exits("why intake", 0);
    assert!(why.out.starts_with("intake"), "{why:#?}");
    let none = kitchen.exits("plan --format l9", 2);
    assert!(none.err.contains("`--format l1`"), "{none:#?}");
}
