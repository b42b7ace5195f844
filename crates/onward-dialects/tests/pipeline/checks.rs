//! What stands against going on is told, and nothing else is.

use onward_dialects::{File, Git, pipeline::PIPELINE, seam::Dialect, seam::Root};
use serde_json::json;

use crate::builder::{Built, DIR, at, built, now, severity, site};

fn going() -> Built {
    built("STANDARD", "P0:2+ P1:3~")
}

#[test]
fn a_pipeline_in_order_has_no_finding() {
    assert_eq!(going().codes(), Vec::<String>::new());
    assert_eq!(going().on(Some("main")).codes(), Vec::<String>::new());
}

#[test]
fn another_branch_is_never_silent() {
    let expected = going().meta("branch", json!("feat/rate-limit"));
    assert_eq!(expected.clone().on(Some("feat/rate-limit")).codes(), Vec::<String>::new());
    for branch in [Some("main"), None] {
        let other = expected.clone().on(branch);
        assert_eq!(other.codes(), ["branch-mismatch"]);
        assert_eq!(severity(&other.findings()[0]), "blocking");
        assert!(other.findings()[0].message.contains("feat/rate-limit"));
    }
}

/// Cut short, by its own words or by what the others call it.
#[test]
fn a_pipeline_whose_own_task_cannot_be_read_is_found_and_stopped() {
    for (text, parent) in [
        ("{\"id\":\"1\",\"subject\":\"[PERMANENT] Rate lim", None),
        ("{\"id\":\"1\",\"subj", Some("1")),
        ("", Some("1")),
    ] {
        let mut lost = going().own("1.json", text);
        if let Some(parent) = parent {
            lost = lost.task_meta("2", "parent", json!(parent));
        }
        assert_eq!(lost.line(), "restart-phase P1 P1", "{text}");
        let found = lost.findings();
        let unread = found.iter().find(|it| it.code == "state-unreadable").unwrap();
        assert_eq!(severity(unread), "blocking");
        assert!(unread.path.as_deref().unwrap().ends_with("/1.json"), "{unread:?}");
    }
    // Any other file that cannot be read is a task.
    let site = site();
    let files = going().own("1.json", "{").files();
    assert!(PIPELINE.read(&site, files).is_err());
}

#[test]
fn changes_that_belong_to_no_task_are_told() {
    let mut dirty = going().task_meta("2", "files", json!(["src/a.ts"])).on(Some("main"));
    dirty.git.as_mut().unwrap().changes = vec![" M src/a.ts".into(), "R  x -> src/a.ts".into()];
    assert_eq!(dirty.codes(), Vec::<String>::new());
    dirty.git.as_mut().unwrap().changes.extend(["?? notes.md".into(), String::new(), "é".into()]);
    assert_eq!(dirty.codes(), ["dirty-tree"]);
    assert_eq!(dirty.findings()[0].path.as_deref(), Some("notes.md"));
}

#[test]
fn a_task_whose_commit_is_gone_is_not_completed() {
    let named = going().task_meta("2", "commit", json!("abcdef1234"));
    let mut lost = named.on(Some("main"));
    assert_eq!(lost.line(), "restart-phase P1 P1");
    lost.git.as_mut().unwrap().missing = ["abcdef1234".to_owned()].into();
    assert_eq!(lost.codes(), ["missing-commits"]);
    assert_eq!(lost.line(), "restart-phase P0 P0");
    assert_eq!(lost.next(), "P0[2]/begin");
    let delivered = built("TRIVIAL", "P6:2+").meta("commit_status", json!("committed"));
    let mut delivered = delivered.meta("commit", json!("abcdef1234")).on(Some("main"));
    assert_eq!(delivered.line(), "complete -");
    delivered.git.as_mut().unwrap().missing = ["abcdef1234".to_owned()].into();
    assert_eq!(delivered.line(), "deliver P8 P8");
    assert!(delivered.codes().contains(&"missing-commits".to_owned()));
}

#[test]
fn many_resumes_are_told_and_few_only_ask_for_evidence() {
    for (count, codes) in [(0, vec![]), (1, vec![]), (2, vec![]), (3, vec!["resumed-repeatedly"])] {
        let resumed = going().meta("resume_count", json!(count));
        assert_eq!(resumed.codes(), codes, "{count}");
        assert_eq!(resumed.standing().resumes, count);
    }
    let named = going().task_meta("2", "files", json!(["src/a.ts"]));
    assert_eq!(named.codes(), Vec::<String>::new());
    let resumed = named.meta("resume_count", json!(1));
    assert_eq!(resumed.codes(), ["missing-artifact"]);
    assert_eq!(resumed.file("src/a.ts", 20).codes(), Vec::<String>::new());
}

#[test]
fn the_newest_open_permanent_task_is_chosen_and_the_others_are_told() {
    let other = |id: &str, status: &str, reason: &str| {
        json!({"id": id, "subject": format!("[PERMANENT] Other {id}"), "status": status,
            "metadata": {"tier": "COMPLEX", "current_phase": "P0", "reason": reason}})
    };
    let mut two = going();
    two.tasks.insert("9".into(), other("9", "in_progress", ""));
    assert!(two.standing().report[0].starts_with("[PERMANENT] Other 9"), "the higher number");
    assert_eq!(two.codes(), ["others-open"]);
    two.modified.insert("9".into(), at(10));
    assert!(two.standing().report[0].starts_with("[PERMANENT] Rate limiter"), "the newer one");
    for closed in [other("4", "completed", ""), other("4", "completed", "duplicate")] {
        let mut one = going();
        one.tasks.insert("4".into(), closed);
        assert!(one.standing().report[0].starts_with("[PERMANENT] Rate limiter"));
        assert_eq!(one.codes(), Vec::<String>::new());
    }
}

#[test]
fn an_open_pipeline_of_another_list_is_told() {
    let mut site = site();
    let dir = "/users/me/.claude/tasks/session-2".to_owned();
    site.roots.push(Root { dir, reads: vec!["1.json".into()] });
    let mut files = going().files();
    let bytes = br#"{"subject":"[PERMANENT] Other","status":"pending"}"#.to_vec();
    files.insert_in(2, "1.json", File { bytes, modified: None });
    let findings = PIPELINE.read(&site, files).unwrap().findings(now());
    assert_eq!(findings[0].code, "others-open");
    assert!(findings[0].message.contains("session-2"));
}

#[test]
fn what_cannot_be_read_counts_as_not_completed() {
    let mut torn = built("TRIVIAL", "P0:2+ P6:3+");
    torn.own.insert("4.json".into(), "{\"id\":\"4\",\"subj".into());
    assert_eq!(torn.line(), "restart-phase P0 P0", "it is where the pointer is");
    assert_eq!(torn.codes(), ["artifact-unproved", "task-without-phase"]);
    let path = format!("{DIR}/4.json");
    assert_eq!(torn.findings()[0].path.as_deref(), Some(path.as_str()));
    let mut odd = going();
    odd.tasks.get_mut("3").unwrap()["status"] = json!("sleeping");
    assert_eq!(odd.codes(), ["odd-value"]);
    odd.tasks.get_mut("3").unwrap()["status"] = json!("deleted");
    assert_eq!(odd.codes(), Vec::<String>::new());
    let away = going().task_meta("3", "files", json!(["../x", "/etc/y"]));
    assert_eq!(away.codes(), ["path-refused"; 2]);
}

#[test]
fn time_is_that_of_the_files() {
    let mut old = going();
    for id in ["1", "2", "3"] {
        old.modified.insert(id.into(), "2026-04-01T00:00:00Z".parse().unwrap());
    }
    assert_eq!(old.codes(), ["stale-age"]);
    old.modified.insert("3".into(), "2026-04-12T00:00:00Z".parse().unwrap());
    assert_eq!(old.codes(), ["clock-in-future"]);
    assert_eq!(going().standing().last_event.unwrap().at, at(30));
    assert_eq!(Git::default().missing.len(), 0);
}

#[test]
fn statuses_are_known_in_any_spelling() {
    for (spelling, expected) in [
        ("Completed", "restart-phase P2 P2"),
        ("done", "restart-phase P2 P2"),
        ("IN-PROGRESS", "restart-phase P1 P1"),
        ("inProgress", "restart-phase P1 P1"),
    ] {
        let mut spelled = going();
        spelled.tasks.get_mut("3").unwrap()["status"] = json!(spelling);
        assert_eq!(spelled.line(), expected, "{spelling}");
        assert_eq!(spelled.codes(), Vec::<String>::new());
    }
}

/// Claude Code clears completed tasks away, and a person may delete a pending one: both are gone,
/// and neither is gone without a word.
#[test]
fn a_task_that_is_gone_is_told() {
    let whole = built("STANDARD", "P0:2+ P1:3+ P1:4-");
    assert_eq!(whole.codes(), Vec::<String>::new());
    let mut gap = built("STANDARD", "P0:2+ P1:4~");
    let found = gap.findings();
    assert_eq!(gap.codes(), ["blocker-gone"]);
    assert!(found[0].message.contains("gone (3)"), "{found:?}");
    gap.own.insert(".highwatermark".into(), "9".into());
    assert!(gap.findings()[0].message.contains("gone (3, 5 to 9)"), "{:?}", gap.findings());
    // What comes after a task that is not completed was not completed either.
    let mut ahead = built("STANDARD", "P0:2+ P1:3~");
    ahead.tasks.get_mut("3").unwrap()["blocks"] = json!(["4"]);
    assert_eq!(ahead.codes(), ["missing-artifact"]);
    assert_eq!(severity(&ahead.findings()[0]), "warning");
    assert!(ahead.findings()[0].message.contains("task 4"), "{:?}", ahead.findings());
}

#[test]
fn a_word_that_is_none_is_told_with_its_field() {
    for (key, value, said) in [
        ("phase", json!("P77"), "`phase` says `P77`"),
        ("files", json!([[]]), "`files` is a list"),
        ("parent", json!([]), "`parent` is a list"),
    ] {
        let odd = built("STANDARD", "P0:2+ P1:3~").task_meta("3", key, value);
        let found = odd.findings();
        assert!(found.iter().any(|it| it.message.starts_with(said)), "{key}: {found:?}");
    }
    let tier = going().meta("tier", json!("HUGE"));
    let found = tier.findings();
    assert!(found.iter().any(|it| it.message.starts_with("`tier` says `HUGE`")), "{found:?}");
}
