//! One directory for each spelling: the plan is that of the reference spelling, plus one remark.

use onward_core::finding::Severity;

use crate::builder::{Built, ROUND_1, codes, conference, finding, next, point};

fn reference() -> Built {
    conference(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70\nA2.1 kept 66"))
}

fn check(built: &Built, remark: &str) {
    let (expected, plan) = (reference().plan(), built.plan());
    assert_eq!(point(&plan), point(&expected), "{remark}");
    assert_eq!(next(&plan), next(&expected), "{remark}");
    let found = finding(&plan, "spelling");
    assert_eq!(found.severity(), Severity::Info);
    assert!(found.message.contains(remark), "{remark}: {}", found.message);
    assert_eq!(codes(&plan), ["spelling"]);
    assert_eq!(plan.standing.last_event, expected.standing.last_event);
}

#[test]
fn the_reference_spelling_gets_no_remark() {
    assert_eq!(codes(&reference().plan()), Vec::<&str>::new());
}

#[test]
fn the_log_may_use_other_names() {
    for (before, after, remark) in [
        ("\"event\":", "\"type\":", "`type` for `event`"),
        ("\"timestamp\":", "\"ts\":", "`ts` for `timestamp`"),
        ("\"timestamp\":", "\"time\":", "`time` for `timestamp`"),
        ("\"status\":", "\"outcome\":", "`outcome` for `status`"),
        ("000Z\"", "000\"", "without a time zone"),
        ("\"delta\":0.5", "\"delta\":\"+0.5\"", "a number as text"),
        ("\"metric_value\":66", "\"metric_value\":\"66.0\"", "a number as text"),
        ("\"round\":2", "\"round\":\"2\"", "a number as text"),
    ] {
        let mut built = reference();
        assert!(built.log.contains(before), "{before}");
        built.log = built.log.replace(before, after);
        check(&built, remark);
    }
}

#[test]
fn the_end_of_a_round_may_have_its_number_in_the_name() {
    let mut built = reference();
    built.log = built.log.replace("\"round.completed\"", "\"round.1.completed\"");
    check(&built, "`round.N.completed`");
    built.log = built.log.replace("{\"round\":1,\"best_metric\"", "{\"best_metric\"");
    check(&built, "`round.N.completed`");
}

#[test]
fn fields_may_stand_beside_the_event() {
    let mut built = reference();
    built.log = built.log.replace("\"payload\":{", "").replace("}}\n", "}\n");
    check(&built, "instead of in `payload`");
}

#[test]
fn conference_md_may_have_bare_keys() {
    let bullets = "- **Count:** 2\n- **Iterations per round:** 3\n- **Max rounds:** 4";
    let bare = "count: 2\niterations_per_round: 3\nmax_rounds: 4";
    check(&reference().says(bullets, bare), "bare `key: value` lines");
    let plain = "- Count: 2\n* Iterations per round: 3\n- **Max rounds**: 4";
    assert_eq!(codes(&reference().says(bullets, plain).plan()), Vec::<&str>::new());
}

#[test]
fn conference_md_may_have_text_after_a_number() {
    let built = reference().says("round:** 3", "round:** 3 (rounds 1-3), 2 (round 4)");
    check(&built, "text after a number");
    let built = reference().says("rounds:** 4", "rounds:** 4 at most");
    check(&built, "text after a number");
}

#[test]
fn several_spellings_are_one_remark() {
    let mut built = reference();
    built.log = built.log.replace("\"event\":", "\"type\":").replace("\"status\":", "\"outcome\":");
    check(&built, "`type` for `event`; `outcome` for `status`");
}

#[test]
fn a_table_may_call_its_status_an_outcome() {
    let built = reference();
    let files = built.files();
    let table = |id: &str| {
        let bytes = files.bytes(&format!("researcher_{id}_results.tsv")).unwrap();
        String::from_utf8(bytes.to_vec()).unwrap().replace("\tstatus\t", "\toutcome\t")
    };
    let built = built
        .clone()
        .without_table("A")
        .without_table("B")
        .file("researcher_A_results.tsv", &table("A"))
        .file("researcher_B_results.tsv", &table("B"));
    check(&built, "`outcome` for `status`");
}
