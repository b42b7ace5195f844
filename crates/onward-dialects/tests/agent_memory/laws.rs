//! The laws of a run that onward goes on with: what it logs is what the files then tell, and no
//! file of another actor changes.

use onward_core::{
    plan::RecoveryPoint,
    time::Timestamp,
    told::{Change, Deed},
};
use onward_dialects::{
    File, Files,
    agent_memory::{
        tasks::Stage,
        write::{Entry, logged, look},
    },
};
use proptest::prelude::*;
use serde_json::json;

use crate::builder::{Built, built, now};

/// What each of our events makes of a task.
const OURS: [(&str, &str); 7] = [
    ("task-claimed", "Running"),
    ("task-implemented", "Implemented"),
    ("task-verified", "Done"),
    ("task-completed", "Done"),
    ("task-failed", "Failed"),
    ("task-blocked", "Blocked"),
    ("task-unblocked", "Pending"),
];

const THEIRS: &str = "task-created|task-claimed|task_started|task-implemented|task-verified|\
    task-failed|task-blocked|run-failed|phase_transition";

fn after(files: &Files, changes: &[Change]) -> Files {
    let mut after = files.clone();
    for change in changes {
        let Change::Append { path, bytes } = change else { panic!("{change:?}") };
        assert!(path.starts_with("events/onward/"), "{path}");
        let mut all = files.bytes(path).unwrap_or_default().to_vec();
        all.extend_from_slice(bytes);
        after.insert(path.clone(), File { bytes: all, modified: None });
    }
    after
}

fn history(events: &[(String, usize, u8)]) -> Built {
    events.iter().fold(built("approved"), |built, (word, task, how)| {
        let id = format!("T00{task}");
        match how {
            0 => built.event(&format!("{word} {id}")),
            // Without a time, and from a clock that is ahead.
            1 => built.line("verifier/log", &json!({"type": word, "task_id": id}).to_string()),
            _ => {
                let at = "2027-01-01T00:00:00Z";
                let event = json!({"type": word, "task_id": id, "timestamp": at});
                built.line("other/20270101-0000", &event.to_string())
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_we_log_is_what_the_files_tell_then(
        events in prop::collection::vec((THEIRS, 1_usize..4, 0_u8..3), 0..12),
        ours in prop::collection::vec((0_usize..7, 1_usize..4), 1..6),
        torn in any::<bool>(),
    ) {
        let mut files = history(&events).files;
        if torn {
            let bytes = b"{\"event_ty".to_vec();
            files.insert("events/onward/20260302-0900.jsonl", File { bytes, modified: None });
        }
        let before = files.clone();
        for (which, task) in ours {
            let (kind, state) = OURS[which];
            let id = format!("T00{task}");
            let entry = Entry::new(kind, json!({})).of_task(&id);
            files = after(&files, &logged(&files, &[entry], now()));
            let (_, tasks) = look(&files);
            let task = tasks.get(&id).unwrap();
            prop_assert_eq!(format!("{:?}", task.state), state);
            prop_assert!(task.ours);
            prop_assert!(kind != "task-unblocked" || task.stage == Stage::Open);
        }
        for (path, file) in before.iter() {
            let now = files.bytes(path).unwrap();
            prop_assert!(now.starts_with(&file.bytes), "{} was rewritten", path);
            prop_assert!(path.starts_with("events/onward/") || now == file.bytes);
        }
        let own = files.iter().filter(|(path, _)| path.starts_with("events/onward/"));
        prop_assert_eq!(own.count(), 1, "one log, however often it is written");
    }
}

/// Clocks of others have seconds, or only the minute in a file's name, or go wrong.
fn theirs(how: u8, word: &str, id: &str, at: Timestamp) -> (&'static str, String) {
    let mut event = json!({"type": word, "task_id": id});
    let text = at.to_string();
    let second = text.split('.').next().unwrap();
    match how {
        0 => event["timestamp"] = format!("{}Z", second.trim_end_matches('Z')).into(),
        1 => event["timestamp"] = at.as_micros().div_euclid(1_000_000).into(),
        2 => event["timestamp"] = at.as_micros().div_euclid(1000).into(),
        _ => return ("verifier/20260302-1200", event.to_string()),
    }
    ("executor/20260302-0900", event.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The actor that speaks last of a task is heard, ours or theirs, also within one second.
    #[test]
    fn who_speaks_after_whom_is_known_within_one_second(
        said in prop::collection::vec((any::<bool>(), 0_usize..6, 1_usize..4, 0_u8..4), 1..14),
        pace_ms in 1_u64..400,
    ) {
        let mut built = built("approved");
        let mut at = now();
        for (is_ours, which, task, how) in said {
            at = at.plus_ms(pace_ms);
            let ((kind, state), id) = (OURS[which], format!("T00{task}"));
            if is_ours {
                let entry = Entry::new(kind, json!({})).of_task(&id);
                let changes = logged(&built.files, &[entry], at);
                built.files = after(&built.files, &changes);
            } else {
                let (_, before) = look(&built.files);
                let (file, line) = theirs(how, kind, &id, at);
                built = built.line(file, &line);
                // Among themselves their clocks alone tell, and the rank where they do not.
                if !before.get(&id).unwrap().ours {
                    continue;
                }
            }
            let (_, tasks) = look(&built.files);
            let task = tasks.get(&id).unwrap();
            prop_assert_eq!(format!("{:?}", task.state), state, "{:?}", built.files);
            prop_assert_eq!(task.ours, is_ours);
        }
    }
}

#[test]
fn an_event_of_ours_names_others_only_where_their_clocks_do_not_tell() {
    let claimed = Entry::new("task-claimed", json!({})).of_task("T002");
    let line = |built: &Built, at: &str| {
        let changes = logged(&built.files, std::slice::from_ref(&claimed), at.parse().unwrap());
        let Change::Append { bytes, .. } = &changes[0] else { panic!("{changes:?}") };
        serde_json::from_slice::<serde_json::Value>(bytes).unwrap()
    };
    let built = built("approved").done(&["T001"]);
    let later = line(&built, "2026-03-02T09:03:01.5Z");
    assert_eq!(later["details"], json!({}));
    let same = line(&built, "2026-03-02T09:03:00.5Z");
    let seen = json!({"events/executor/20260302-0900.jsonl": 3});
    assert_eq!(same["details"]["seen"], seen);
    assert_eq!(same["timestamp"], "2026-03-02T09:03:00.500000Z", "it is not put off");
}

/// The original ends the run in the very second in which we took it up.
#[test]
fn an_end_in_the_second_of_our_resume_is_the_end() {
    let open = built("approved").done(&["T001"]);
    let point = open.standing().point;
    let at = "2026-03-02T10:00:05.300Z".parse().unwrap();
    let deed = Deed::Resumed { at, point: &point, undone: &[], alive: &[], died: &[], by: "" };
    let files = after(&open.files, &open.told().write(&deed));
    let end = json!({"type": "run-complete", "timestamp": "2026-03-02T10:00:05Z"}).to_string();
    let over = Built { files, ..open }.line("orchestrator/20260302-0900", &end);
    assert_eq!(over.point(), "complete -");
    // And what we had seen of that second does not end what we take up after it.
    let failed = json!({"type": "run-failed", "timestamp": "2026-03-02T10:00:05Z"}).to_string();
    let failed = built("approved").line("orchestrator/20260302-0900", &failed);
    let files = after(&failed.files, &failed.told().write(&deed));
    let again = Built { files, ..failed };
    assert!(!again.codes().contains(&"run-over".to_owned()));
}

#[test]
fn a_resume_is_logged_and_takes_a_failed_run_up_again() {
    let over = built("approved").done(&["T001"]).event("run-failed");
    let point = RecoveryPoint { ..over.standing().point };
    let deed =
        Deed::Resumed { at: now(), point: &point, undone: &[], alive: &[], died: &[], by: "" };
    let changes = over.told().write(&deed);
    let files = after(&over.files, &changes);
    let again = Built { files, ..over };
    assert!(!again.codes().contains(&"run-over".to_owned()));
    assert_eq!(again.point(), "execute 2 execute[T002]");
    assert_eq!(again.standing().resumes, 1);
}

/// Found by driving whole runs: T002 was claimed in vain, because T001 had failed, and no log says
/// so. Nothing denies it.
#[test]
fn a_claim_that_found_nothing_to_do_is_not_denied() {
    use onward_core::{address::Address, told::StepTold};
    let failed = built("approved").events(&["task-claimed T001", "task-failed T001"]);
    let tell = |built: &Built, step: &str| built.told().step(&Address::from_text(step));
    assert_eq!(tell(&failed, "execute[T002]/claim"), StepTold::Silent);
    assert_eq!(tell(&failed, "execute[T002]/implement"), StepTold::Undone);
    let reopened = failed.events(&["task-claimed T002", "task-ready T002"]);
    assert_eq!(tell(&reopened, "execute[T002]/claim"), StepTold::Undone);
}

/// Our run is cut off between its last event and the end of its journal: nothing opens it again.
#[test]
fn a_resume_after_the_end_of_the_run_is_not_logged() {
    let over = built("approved").done(&["T001", "T002", "T003"]).event("run-complete");
    let point = over.standing().point;
    let deed =
        Deed::Resumed { at: now(), point: &point, undone: &[], alive: &[], died: &[], by: "" };
    assert_eq!(over.told().write(&deed), []);
}

#[test]
fn an_attempt_that_our_own_run_was_cut_off_in_is_the_journals_to_tell() {
    let ours = |kind: &str, step: &str| {
        let at = "2026-03-02T11:00:00Z";
        json!({"event_type": kind, "task_id": "T001", "timestamp": at, "actor": "onward",
            "details": {"step": step}})
        .to_string()
    };
    let claimed = ours("task-claimed", "execute[T001]/claim");
    let claimed = built("approved").line("onward/20260302-1100", &claimed);
    assert_eq!(claimed.point(), "execute 2 execute[T001]");
    let recorded = ours("task-implemented", "execute[T001]/record");
    let recorded = built("approved").line("onward/20260302-1100", &recorded);
    assert_eq!(recorded.point(), "execute 2 execute[T001]");
    let reworked = ours("task-claimed", "rework[2]/execute[T001]/claim");
    let reworked = built("approved").line("onward/20260302-1100", &reworked);
    assert_eq!(reworked.point(), "execute 2 rework");
}
