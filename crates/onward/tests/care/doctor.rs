//! Doctor: what is wrong is found and named, what is safe is mended.

use std::{
    fs,
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use crate::{
    bench::{Bench, id, journal, processes, sees_nobody_left, signal},
    json,
};

/// The health of each check of this name.
fn health(checkup: &Value, name: &str) -> Vec<String> {
    let checks = checkup["checks"].as_array().unwrap().iter();
    let named = checks.filter(|it| it["check"] == name);
    named.map(|it| it["health"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_fit_machine_is_told_so() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    let config = "[agents.here]\ncommand = ['sh', '-c']\n[agents.there]\ncommand = ['./agent']\n";
    fs::write(bench.path(".onward/config.toml"), config).unwrap();
    fs::write(bench.path("agent"), "#!/bin/sh\necho agent 1.2\n").unwrap();
    assert!(Command::new("chmod").arg("+x").arg(bench.path("agent")).status().unwrap().success());
    bench.exits("run w.yaml", 0);
    let checkup = json(&bench, "doctor", "doctor", 0);
    for name in ["git", "locks", "sync", "clock", "socket", "runs"] {
        assert_eq!(health(&checkup, name), ["ok"], "{name}: {checkup:#}");
    }
    assert_eq!(health(&checkup, "agent"), ["ok", "ok"], "{checkup:#}");
    let there = "agent there: `./agent` of this project is there, and was not started";
    assert!(checkup.to_string().contains(there), "{checkup:#}");
    assert_eq!(checkup["healthy"], true);
}

#[test]
fn a_missing_agent_and_a_long_runtime_directory_are_problems() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    let config = "[agents.gone]\ncommand = ['no-such-agent-program']\n";
    fs::write(bench.path(".onward/config.toml"), config).unwrap();
    let long = bench.path(&"x".repeat(120));
    fs::create_dir(&long).unwrap();
    let mut command = bench.command("doctor --json");
    let output = command.env("XDG_RUNTIME_DIR", &long).output().unwrap();
    assert_eq!(output.status.code(), Some(16), "{output:?}");
    let checkup: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(health(&checkup, "agent"), ["problem"]);
    assert_eq!(health(&checkup, "socket"), ["problem"]);
    assert_eq!(checkup["healthy"], false);
}

#[test]
fn damaged_and_lost_journals_are_found_with_what_to_do() {
    let bench = Bench::new("  - { id: one, run: LOG }\n  - { id: two, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    bench.exits("run w.yaml", 0);
    let runs = bench.project().runs().unwrap();
    let text = journal(&runs[0].dir).replacen("attempt.started", "attempt.startex", 1);
    fs::write(runs[0].dir.join("journal.jsonl"), text).unwrap();
    fs::remove_file(runs[1].dir.join("journal.jsonl")).unwrap();
    let checkup = json(&bench, "doctor", "doctor", 16);
    assert_eq!(health(&checkup, "journal-damaged"), ["problem"], "{checkup:#}");
    assert_eq!(health(&checkup, "journal-lost"), ["problem"], "{checkup:#}");
    let said = bench.exits("doctor -q", 16);
    for run in &runs {
        assert!(said.out.contains(&format!("onward repair {}", run.id)), "{said:?}");
    }
    assert!(!said.out.contains("ok "), "{said:?}");
}

#[test]
fn a_half_made_run_goes_to_the_archive_unless_it_is_being_made() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let half = bench.path(".onward/runs/.new-story-20261115-aaaa");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("workflow.yaml"), "half").unwrap();
    let young = json(&bench, "doctor", "doctor --fix", 0);
    assert_eq!(health(&young, "half-made-run"), [""; 0], "{young:#}");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_hours(400_000);
    fs::File::open(&half).unwrap().set_modified(long_ago).unwrap();
    let found = json(&bench, "doctor", "doctor", 0);
    assert_eq!(health(&found, "half-made-run"), ["warning"], "{found:#}");
    assert!(half.exists());
    let fixed = json(&bench, "doctor", "doctor --fix", 0);
    assert_eq!(health(&fixed, "half-made-run"), ["fixed"], "{fixed:#}");
    assert!(!half.exists());
    let archive = fs::read_dir(bench.path(".onward/archive")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_to_string(archive.path().join("workflow.yaml")).unwrap(), "half");
}

#[test]
fn orphans_are_ended_only_when_told_so() {
    let bench = Bench::new("  - { id: one, run: 'LOG; setsid sleep 1000' }\n");
    let (run, _) = bench.run_and_kill(|_| !bench.ran("one").is_empty());
    let whereabouts = fs::read(run.join("supervisor")).unwrap();
    let whereabouts: Value = serde_json::from_slice(&whereabouts).unwrap();
    let pid = u32::try_from(whereabouts["pid"].as_u64().unwrap()).unwrap();
    signal(pid, "-9");
    onward_engine::care::harness::until("the supervisor to die", || {
        Ok((!processes(&run).contains(&pid)).then_some(()))
    })
    .unwrap();
    let found = json(&bench, "doctor", "doctor", 0);
    assert_eq!(health(&found, "orphan-process"), ["warning"], "{found:#}");
    assert!(!processes(&run).is_empty());
    let fixed = json(&bench, "doctor", "doctor --fix", 0);
    assert_eq!(health(&fixed, "orphan-process"), ["fixed"], "{fixed:#}");
    sees_nobody_left(&run);
    assert!(bench.exits(&format!("plan {}", id(&run)), 0).out.contains("rerun"));
}
