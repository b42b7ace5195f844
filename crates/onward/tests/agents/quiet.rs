//! Quiet hours: no agent starts in them, nor where it would not be through before they begin.

use onward_core::{
    event::Event,
    journal::{decode_line, encode},
};
use onward_engine::world::real::wall_clock;

use crate::{
    limits::{calls, stage},
    stage::Stage,
};

#[test]
fn no_agent_starts_in_quiet_hours() {
    // All day but for the minute before midnight.
    let stage = stage("[limits]\nquiet = '00:00-23:59'\n", None);
    let (code, said) = stage.onward("run w.yaml --yes");
    if code == Some(0) {
        // It was that minute.
        return;
    }
    assert_eq!(code, Some(12), "{said}");
    assert!(said.contains("(quiet hours)"), "{said}");
    assert!(stage.exits("status", 0).contains("(quiet hours)"));
    assert_eq!(calls(&stage, "claude"), 0);
    let paused = stage.of("run.paused").remove(0);
    assert!(paused["until"].as_str().unwrap().contains("T23:59:00"), "{paused}");
    assert_eq!(stage.of("attempt.finished").len(), 1, "the command ran");
}

const HOUR_MS: u64 = 3_600_000;

/// The time of day in so many hours.
fn in_hours(hours: u64) -> String {
    wall_clock().plus_ms(hours * HOUR_MS).to_string()[11..16].to_owned()
}

/// As if the agent of the last run had worked for three hours.
fn make_slow(stage: &Stage) {
    let mut slow = false;
    let mut bytes = Vec::new();
    for line in stage.journal().lines() {
        let mut record = decode_line(line.as_bytes()).unwrap();
        let is_its =
            |it: &Event| matches!(it, Event::AttemptFinished(it) if it.step.as_str() == "work");
        slow |= is_its(&record.event);
        if slow {
            record.at = record.at.plus_ms(3 * HOUR_MS);
        }
        encode(&record, &mut bytes).unwrap();
    }
    std::fs::write(stage.run_dir().unwrap().join("journal.jsonl"), bytes).unwrap();
}

#[test]
fn an_agent_does_not_start_that_was_not_through_in_time_in_another_run() {
    let stage = stage("", None);
    stage.exits("run w.yaml --yes", 0);
    make_slow(&stage);
    let config = format!("[limits]\nquiet = '{}-{}'\n", in_hours(2), in_hours(5));
    stage.put(".onward/config.toml", &config);
    let said = stage.exits("run w.yaml --yes", 12);
    assert!(said.contains("(quiet hours)"), "{said}");
    assert_eq!(calls(&stage, "claude"), 1);
    // Another workflow has another history, and a person may not mind.
    stage.put("v.yaml", &stage.text("w.yaml").replace("name: w", "name: v"));
    stage.exits("run v.yaml --yes", 0);
    stage.put(".onward/config.toml", &format!("{config}finish_before_quiet = false\n"));
    stage.exits("run w.yaml --yes", 0);
    assert_eq!(calls(&stage, "claude"), 3);
}
