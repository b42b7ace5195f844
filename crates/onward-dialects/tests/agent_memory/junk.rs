//! Whatever the files hold, they are read, and the law of the recovery point holds.

use std::fmt::Write as _;

use onward_dialects::{File, agent_memory::AGENT_MEMORY, seam::Dialect};
use proptest::{prelude::*, sample::Index};

use crate::{
    builder::{built, now, site},
    rows,
};

const PATHS: [&str; 8] = [
    "prd.md",
    "plan.md",
    "constitution.md",
    "task-graph.json",
    "summary.md",
    "pr-description.md",
    "events/executor/20260302-0900.jsonl",
    "events/x.jsonl",
];

const WORDS: &str = "task-created|task-claimed|task_started|task-implemented|task-verified|\
    task-failed|task-blocked|task-unblocked|run-failed|session-resumed|phase_transition|\
    run-complete";

fn junk() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "\\{\"(tasks|type|event_type|to_phase)\":(\\[\\]|7|null|\"x\"|\\{\\})\\}"
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn junk_is_read_and_the_recovery_point_agrees(
        upto in prop::sample::select(vec!["empty", "prd", "plan", "graph", "approved"]),
        graph in prop::collection::vec((0_usize..6, 0_usize..6), 0..6),
        events in prop::collection::vec((WORDS, 0_usize..7, any::<bool>()), 0..16),
        phase in prop::option::of(0_u32..8),
        spoiled in prop::collection::btree_map(prop::sample::select(PATHS.to_vec()), junk(), 0..3),
        cuts in prop::collection::vec(any::<(Index, Index)>(), 0..2),
    ) {
        let mut built = built(upto);
        if !graph.is_empty() {
            let names: Vec<(String, String)> =
                graph.iter().map(|(a, b)| (format!("T{a}"), format!("T{b}"))).collect();
            let after: Vec<[&str; 1]> = names.iter().map(|(_, after)| [after.as_str()]).collect();
            let both = names.iter().zip(&after);
            let tasks: Vec<(&str, &[&str])> =
                both.map(|((id, _), after)| (id.as_str(), &after[..])).collect();
            built = built.graph(&tasks);
        }
        for (word, task, timed) in &events {
            built = if *timed {
                built.event(&format!("{word} T{task}"))
            } else {
                let line = format!("{{\"type\":\"{word}\",\"task_id\":\"T{task}\"}}");
                built.line("verifier/log", &line)
            };
        }
        if let Some(phase) = phase {
            built = built.phase(phase);
        }
        let mut files = built.files;
        for (path, bytes) in spoiled {
            files.insert(path, File { bytes, modified: None });
        }
        for (which, at) in cuts {
            let all: Vec<String> = files.iter().map(|(path, _)| path.to_owned()).collect();
            if all.is_empty() {
                continue;
            }
            let path = &all[which.index(all.len())];
            let mut file = files.remove(path).unwrap();
            if !file.bytes.is_empty() {
                file.bytes.truncate(at.index(file.bytes.len()));
            }
            files.insert(path.clone(), file);
        }
        let told = AGENT_MEMORY.read(&site(), files).unwrap();
        rows::check_agreement(&site(), &*told);
        for finding in told.findings(now()) {
            prop_assert!(!finding.message.is_empty());
        }
    }
}

#[test]
fn a_hundred_thousand_events_are_read_in_time() {
    let mut text = String::new();
    for number in 0..100_000 {
        let (minute, second) = (number / 60 % 60, number % 60);
        let (task, hour) = (number % 7, number / 3600 % 24);
        let _ = writeln!(
            text,
            "{{\"event_type\":\"task-claimed\",\"task_id\":\"T{task}\",\"timestamp\":\
             \"2026-03-02T{hour:02}:{minute:02}:{second:02}Z\"}}",
        );
    }
    let built = built("approved").line("executor/20260302-0900", &text);
    assert_eq!(built.standing().report[2], "Tasks: 0/3 complete");
}
