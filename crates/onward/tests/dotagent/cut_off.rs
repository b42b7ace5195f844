//! Everything is killed while an agent of ours is at work: that was an attempt.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use crate::{
    bench::{codes, journal, kill_all, sees, signal},
    leash::Leash,
    office::{EXECUTION, Office, PHASE, RESUME, RUN, caught},
};

/// The agent that `does` something waits as long as `.onward/waits` is there, and the other tasks
/// for the first one.
fn waiting(does: &str) -> Office {
    let office = Office::with(|agent| {
        let waits = "trap 'exit 1' INT TERM; echo begun > \"$project/.onward/at\"
    while [ -e \"$project/.onward/waits\" ]; do sleep 0.05; done; ";
        let agent = agent.replacen(does, &format!("{waits}{does}"), 1);
        assert!(agent.contains(waits));
        let after = "\"depends_on\": [\"task-001\"], \"files\": [\"";
        let agent = agent.replace("\"files\": [\"shout", &format!("{after}shout"));
        agent.replace("\"files\": [\"count", &format!("{after}count"))
    });
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    office.bench.write(".onward/waits", "");
    office
}

/// How an agent at work comes to its end, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// With everything else.
    Killed,
    /// By Ctrl-C.
    Stopped,
    /// The engine dies alone.
    Outlives,
}

/// Goes on until the agent is at work; then it ends so.
fn ends(office: &Office, end: End) {
    let at = office.bench.path(".onward/at");
    let _ = fs::remove_file(&at);
    let mut engine = office.bench.command(RESUME).stdout(Stdio::null()).spawn().unwrap();
    sees(&at);
    match end {
        End::Killed | End::Outlives => engine.kill().unwrap(),
        End::Stopped => signal(engine.id(), "-INT"),
    }
    engine.wait().unwrap();
    if end == End::Killed {
        kill_all(&office.run_dir());
    }
}

fn attempt(office: &Office, task: &str) -> (Value, Value) {
    let task = office.task(task);
    (task["status"].clone(), task["attempts"].clone())
}

/// A task that stops the machine each time is not begun for ever.
#[track_caller]
fn is_asked_about(task: &str, does: &str, all: [End; 3]) {
    let office = waiting(does);
    for (number, end) in (1..=3).zip(all) {
        ends(&office, end);
        assert_eq!(attempt(&office, task), ("running".into(), number.into()), "{number}");
    }
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(codes(&plan).contains(&"attempts-used-up"), "{plan:#}");
    let before = office.bench.text(EXECUTION);
    let refused = office.bench.exits(RESUME, 16);
    assert!(refused.err.contains(&format!("{task} has failed after 3 attempts")), "{refused:?}");
    assert_eq!(office.bench.text(EXECUTION), before, "a refused resume writes nothing");
    fs::remove_file(office.bench.path(".onward/waits")).unwrap();
    office.bench.exits(&format!("{RESUME} --accept attempts-used-up"), 0);
    assert_eq!(attempt(&office, task), ("verified".into(), 4.into()));
    assert_eq!(office.task(task)["cut_off"], Value::Null);
}

#[test]
fn a_task_that_is_cut_off_three_times_is_asked_about() {
    is_asked_about("task-001", "echo hello > greet.txt", [End::Killed; 3]);
}

#[test]
fn a_task_that_is_stopped_has_used_up_an_attempt() {
    let all = [End::Killed, End::Stopped, End::Killed];
    is_asked_about("task-001", "echo hello > greet.txt", all);
}

#[test]
fn a_repair_that_is_cut_off_three_times_is_asked_about() {
    is_asked_about("repair-1", "echo bye >> greet.txt", [End::Killed; 3]);
}

#[test]
fn an_agent_that_outlives_its_engine_is_one_attempt() {
    let office = waiting("echo hello > greet.txt");
    ends(&office, End::Outlives);
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(!codes(&plan).contains(&"orphan-task"), "{plan:#}");
    let report = plan["summary"].as_array().unwrap();
    assert!(report.contains(&"task-001: running".into()), "{plan:#}");
    let told = || {
        let journal = journal(&office.run_dir());
        ["\"run.resumed\"", "\"native.exported\""].map(|it| journal.matches(it).count())
    };
    let before = told();
    let has_resumed = || told().into_iter().zip(before).all(|(now, before)| now > before);
    let mut engine = Leash::start(&mut office.bench.command(RESUME));
    assert!(engine.until(has_resumed), "{}", engine.last);
    assert_eq!(attempt(&office, "task-001"), ("running".into(), 1.into()));
    fs::remove_file(office.bench.path(".onward/waits")).unwrap();
    engine.until(|| false);
    assert_eq!(engine.exits(), Some(0), "{}", engine.last);
    assert_eq!(attempt(&office, "task-001"), ("verified".into(), 1.into()));
}

/// The original begins it once more itself, and is stopped, too.
#[test]
fn what_the_original_counted_after_a_kill_is_not_counted_twice() {
    let office = waiting("echo hello > greet.txt");
    ends(&office, End::Killed);
    let mut execution = office.object(EXECUTION);
    let task = execution["tasks"].as_array_mut().unwrap().first_mut().unwrap();
    (task["status"], task["attempts"]) = ("pending".into(), 2.into());
    office.put(EXECUTION, &execution);
    ends(&office, End::Killed);
    assert_eq!(attempt(&office, "task-001"), ("running".into(), 2.into()));
}

/// The original's try was rejected, ours is killed: what was adopted is history by then.
#[test]
fn a_try_that_was_adopted_is_not_done_again_when_the_next_one_is_cut_off() {
    let does = "printf '1\\n2\\n3\\n' > count.txt";
    let office = Office::with(|agent| {
        let waits = "echo begun > \"$project/.onward/at\"
    while [ -e \"$project/.onward/waits\" ]; do sleep 0.05; done; ";
        let changed = agent.replacen(does, &format!("{waits}{does}"), 1);
        assert!(changed.contains(waits));
        changed
    });
    let caught = caught();
    for file in [PHASE, "memory/reports/demand.json", "memory/reports/final_design.json"] {
        office.put(file, &caught.object(file));
    }
    let task = json!({"id": "task-003", "status": "pre_complete", "attempts": 1,
        "output": "memory/tasks/task-003/output.json"});
    office.put(EXECUTION, &json!({"workflow_id": "wf-greet", "tasks": [task]}));
    let output = json!({"task_id": "task-003", "status": "pre_complete"});
    office.put("memory/tasks/task-003/output.json", &output);
    let verdict = json!({"task_id": "task-003", "verdict": "FAIL", "failures": ["no three"]});
    office.put("memory/tasks/task-003/verification.json", &verdict);
    office.bench.write(".onward/waits", "");
    ends(&office, End::Killed);
    fs::remove_file(office.bench.path(".onward/waits")).unwrap();
    let plan = office.bench.exits("plan --json", 0).json();
    assert!(!codes(&plan).contains(&"status-disagrees"), "{plan:#}");
    office.bench.exits(RESUME, 0);
    let ledger = office.ledger();
    assert!(!ledger.iter().any(|it| it.contains("[task-003]/try[1]/")), "{ledger:?}");
    assert!(!office.bench.path("memory/tasks/task-003/verification.2.json").exists());
}
