//! The interruption bill, as `status --cost` tells it.

use std::{fs, time::Duration};

use onward_core::{
    event::{Event, Record},
    time::Timestamp,
};

use crate::{
    bench::{Bench, id, kill_all, sees, sees_nobody_left, signal, watched},
    json,
    repo::{HALF_DONE, repo},
};

#[test]
fn the_bill_of_a_killed_run_tells_useful_from_repeated_work() {
    let bench = Bench::new(
        "  - { id: one, run: LOG }\n\
         \x20 - { id: two, run: 'LOG; [ $ONWARD_ATTEMPT = 2 ] || sleep 1000' }\n",
    );
    let (run, _) = bench.run_and_kill(|_| !bench.ran("two").is_empty());
    kill_all(&run);
    bench.exits("resume", 0);
    let view = json(&bench, "status", "status --cost", 0);
    let bill = &view["bill"];
    assert_eq!(bill["useful"]["attempts"], 2, "{bill:#}");
    assert_eq!(bill["repeated"]["attempts"], 1, "{bill:#}");
    assert_eq!(bill["reverted"]["attempts"], 0, "{bill:#}");
    assert_eq!(bill["by_cause"]["interrupted"]["attempts"], 1, "{bill:#}");
    assert!(bill["waiting"]["seconds"].as_f64().unwrap() > 0.0, "{bill:#}");
    assert_eq!(json(&bench, "status", "status", 0)["bill"], serde_json::Value::Null);
    let said = bench.exits(&format!("status --cost {}", id(&run)), 0);
    for word in ["Useful", "Repeated", "Reverted", "Waiting", "interrupted", "killed"] {
        assert!(said.out.contains(word), "{said:?}");
    }
}

#[test]
fn the_time_without_a_driver_is_no_time_of_work() {
    let wait = "LOG; until [ -e go ]; do sleep 0.05; done";
    let bench = Bench::new(&format!("  - {{ id: s, run: '{wait}' }}\n"));
    let (run, _) = bench.run_and_kill(|_| !bench.ran("s").is_empty());
    bench.write("go", "");
    sees_nobody_left(&run);
    bench.exits("resume", 0);
    let seals = fs::read_to_string(run.join("exits.jsonl")).unwrap();
    let seal = seals.lines().find(|line| line.contains("\"kind\":\"exited\"")).unwrap();
    let seal: serde_json::Value = serde_json::from_str(seal).unwrap();
    let sealed: Timestamp = seal["at"].as_str().unwrap().parse().unwrap();
    let records = watched(&run).records;
    let is_start = |it: &Record| matches!(it.event, Event::AttemptStarted(_)).then_some(it.at);
    let began = records.iter().find_map(is_start).unwrap();
    let end = |it: &Record| {
        let Event::AttemptFinished(finished) = &it.event else { return None };
        Some((it.at, finished.ended))
    };
    let (told_at, ended) = records.iter().find_map(end).unwrap();
    assert!(told_at > sealed);
    assert_eq!(ended, Some(sealed));
    let bill = &json(&bench, "status", "status --cost", 0)["bill"];
    let ms = |row: &str| {
        let seconds = bill[row]["seconds"].as_f64().unwrap();
        Duration::from_secs_f64(seconds).as_millis()
    };
    assert_eq!(ms("useful"), u128::from(sealed.ms_since(began)), "{bill:#}");
    let whole = u128::from(records.last().unwrap().at.ms_since(began));
    assert!(ms("useful") + ms("waiting") <= whole, "{whole}: {bill:#}");
}

#[test]
fn what_was_undone_after_a_stop_is_billed_as_reverted() {
    let bench = repo(HALF_DONE, "  - { id: draft, agent: claude, prompt: write }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/half"));
    signal(engine.pid(), "-INT");
    signal(engine.pid(), "-INT");
    engine.wait().unwrap();
    let said = bench.exits(&format!("log {}", id(&run)), 0);
    assert!(said.out.contains("draft 1 stopped by the user"), "{said:?}");
    assert!(!said.out.contains("failed"), "{said:?}");
    bench.exits("resume --yes", 0);
    let bill = &json(&bench, "status", "status --cost", 0)["bill"];
    assert_eq!(bill["useful"]["attempts"], 1, "{bill:#}");
    assert_eq!(bill["repeated"]["attempts"], 0, "{bill:#}");
    assert_eq!(bill["reverted"]["attempts"], 1, "{bill:#}");
}
