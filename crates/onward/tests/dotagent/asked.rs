//! What a person says, before anything costs money and after an answer.

use crate::office::{Office, PHASE, RESUME, RUN};

#[test]
fn a_wish_that_says_nothing_and_architects_that_are_none_start_no_agent() {
    let office = Office::new();
    let said = office.bench.exits("run dotagent --no-input --input request=", 2);
    assert!(said.err.contains("`request` is missing"), "{said:?}");
    assert!(said.err.contains("--input request=VALUE`"), "{said:?}");
    assert!(!said.err.contains("--input request= "), "{said:?}");
    for architects in [r#"["a","a"]"#, "[1,null]", "[]"] {
        let said = office.bench.exits(&format!("{RUN} --input architects={architects}"), 2);
        assert!(said.err.contains("architects"), "{said:?}");
    }
    assert!(office.ledger().is_empty());
    assert!(office.bench.project().runs().unwrap().is_empty());
}

#[test]
fn after_an_answer_the_plan_says_what_the_resume_does() {
    let office = crate::office::caught();
    crate::kept::before_the_yes(&office);
    office.bench.exits(RESUME, 11);
    let open = office.bench.exits("plan --json", 0).json();
    assert!(open["recovery_point"]["summary"].to_string().contains("has to approve"), "{open:#}");
    office.approves();
    let plan = office.bench.exits("plan --json", 0).json();
    let summary = plan["recovery_point"]["summary"].to_string();
    assert!(!summary.contains("has to approve"), "{plan:#}");
    assert!(summary.contains("continues at approved"), "{plan:#}");
}

#[test]
fn a_linked_checkpoint_is_not_put_away_as_an_empty_copy() {
    let office = crate::office::caught();
    let outside = tempfile::TempDir::new().unwrap();
    let target = outside.path().join("phase.json");
    std::fs::rename(office.bench.path(PHASE), &target).unwrap();
    std::os::unix::fs::symlink(&target, office.bench.path(PHASE)).unwrap();
    let refused = office.bench.onward("archive . --yes");
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.err.contains("is a link"), "{refused:?}");
    assert_eq!(std::fs::read_link(office.bench.path(PHASE)).unwrap(), target);
}
