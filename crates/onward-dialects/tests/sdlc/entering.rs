//! A person enters somewhere else: what the files say then, and that no story is edited.

use onward_core::told::{Change, Entering, NoEntry};

use crate::builder::{LOOP, Project, now, project};

fn changes(told: &Project, place: &str, force: bool) -> Result<Vec<Change>, NoEntry> {
    told.told().enter(&Entering { place, force, now: now() })
}

/// The project after the entry; its stories are as they were.
#[track_caller]
fn entered(told: &Project, place: &str) -> Project {
    let mut after = told.clone();
    for change in changes(told, place, false).unwrap() {
        let Change::Replace { path, bytes } = change else { panic!("{change:?}") };
        let is_story = path.starts_with("docs/stories/") && path.ends_with(".story.md");
        assert!(!is_story, "{path} is a story");
        after = after.file(&path, String::from_utf8(bytes).unwrap());
    }
    after
}

#[test]
fn a_story_is_entered_earlier_with_a_state_and_without_one() {
    let review = project().story("4.2", "Ready for Review");
    for told in [review.clone(), review.clone().state("4")] {
        for (place, expected) in [
            ("sdc:validate", "sdc:validate 2 validate"),
            ("sdc:implement", "sdc:implement 3 implement"),
            ("implement", "sdc:implement 3 implement"),
            ("sdc:qa-gate", "sdc:qa-gate 4 qa-gate"),
        ] {
            assert_eq!(entered(&told, place).line(), expected, "{place}");
        }
    }
    let done = project().story("4.2", "Done").state("4");
    assert_eq!(entered(&done, "sdc:qa-gate").line(), "sdc:qa-gate 4 qa-gate");
    assert_eq!(changes(&review, "sdc:qa-gate", false), Ok(Vec::new()), "it goes on there anyway");
    assert!(matches!(changes(&review, "sdc:create", false), Err(NoEntry::Ahead(_))));
    assert!(matches!(changes(&review, "nowhere", false), Err(NoEntry::Unknown(_))));
}

#[test]
fn what_lies_ahead_takes_force() {
    let told = project().story("4.2", "In Progress").state("3");
    assert!(matches!(changes(&told, "sdc:qa-gate", false), Err(NoEntry::Ahead(_))));
    assert_eq!(changes(&told, "sdc:qa-gate", true).unwrap().len(), 1);
}

#[test]
fn a_spec_keeps_what_it_had_as_copies() {
    let at = |name: &str| format!("docs/specs/login/{name}");
    let told = project()
        .file(&at("requirements.json"), "{\"a\": 1}")
        .file(&at("complexity.json"), "{\"class\": \"SIMPLE\"}")
        .file(&at("spec.md"), "# Spec\n");
    assert_eq!(told.line(), "spec:critique 5 critique");
    let after = entered(&told, "spec:assess");
    assert_eq!(after.line(), "spec:assess 2 assess");
    let copies: Vec<&str> = after
        .files
        .iter()
        .filter(|(path, _)| path.contains("/archive/"))
        .map(|(_, it)| it.0.as_str())
        .collect();
    assert_eq!(copies, ["{\"class\": \"SIMPLE\"}", "# Spec\n"]);
}

#[test]
fn a_loop_is_reviewed_or_fixed_again_or_handed_to_a_person() {
    let told = project().story("2.1", "In Review").qa(2, "REJECT+ REJECT");
    assert_eq!(entered(&told, "qa-loop:review").line(), "qa-loop:review 2 review[2]");
    assert_eq!(entered(&told, "qa-loop:escalate").line(), "qa-loop:escalate 2 escalate");
    let fixed = project().story("2.1", "In Review").qa(2, "REJECT+ REJECT+");
    let again = changes(&fixed, "qa-loop:fix", true).unwrap();
    let Change::Replace { path, bytes } = &again[0] else { panic!("{again:?}") };
    assert_eq!(path, LOOP);
    let after = fixed.file(LOOP, String::from_utf8(bytes.clone()).unwrap());
    assert_eq!(after.line(), "qa-loop:fix 2 fix[2]");
}

#[test]
fn an_epic_is_judged_again_and_a_story_of_it_done_again() {
    let waves: &[(&str, &str, &[&str])] = &[
        ("completed", "approved", &["3.1=completed"]),
        ("in_progress", "-", &["3.4=completed", "3.5=pending"]),
    ];
    let told = project().story("3.4", "Ready").story("3.5", "Ready").epic(2, waves);
    let again = entered(&told, "wave[2]/story[3.4]");
    assert_eq!(again.line(), "epic:stories 2 wave[2]/story[3.4] wave[2]/story[3.5]");
    let over: &[(&str, &str, &[&str])] = &[("completed", "approved", &["3.4=completed"])];
    let over = project().story("3.4", "Done").epic(1, over);
    assert_eq!(over.line(), "epic:final-gate 1 final-gate");
    assert_eq!(entered(&over, "epic:gate").line(), "epic:gate 1 wave[1]/gate");
    let done = changes(&over, "wave[1]/story[3.4]", false);
    assert!(matches!(done, Err(NoEntry::Ahead(_))), "a resume edits no story: {done:?}");
}
