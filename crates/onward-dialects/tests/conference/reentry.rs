//! Going on with a conference: what its files are then, and where else a person may enter.

use onward_core::{
    time::Timestamp,
    told::{Change, Entering, NoEntry},
};
use onward_dialects::Files;

use crate::builder::{Built, ROUND_1, changed, conference, plan_of, point, told, undone};

fn in_round_2(lines: &str) -> Built {
    conference(&format!("{ROUND_1}round 2: A B\n{lines}"))
}

const REVIEWED: &str = "A2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65\nB2.0 baseline 70\n\
                        B2.1 kept 69\nB2.2 kept 68\nposter 2\nreview 2\n";

fn reviewed() -> Built {
    let pages = ["poster_session_round_1.md", "peer_review_round_1.md"];
    let pages = pages.into_iter().chain(["poster_session_round_2.md", "peer_review_round_2.md"]);
    pages.fold(in_round_2(REVIEWED), |built, name| built.file(name, "# Page\n\nText.\n"))
}

/// The files after a person entered; `None` when nothing had to be written.
fn entered(built: &Built, place: &str, force: bool) -> Result<Option<Files>, NoEntry> {
    let files = built.files();
    // On the same evening: on the next day the time budget would be over.
    let now: Timestamp = "2026-05-04T23:00:00Z".parse().unwrap();
    let changes = told(&files).enter(&Entering { place, force, now })?;
    let log = "conference_events.jsonl";
    let is_growth = |it: &Change| matches!(it, Change::Append { path, .. } if path == log);
    assert!(changes.iter().all(is_growth), "the log only grows: {changes:?}");
    Ok((!changes.is_empty()).then(|| changed(&files, &changes)))
}

fn point_after(files: &Files) -> String {
    point(&plan_of(files, "2026-05-05T08:00:00Z".parse().unwrap()))
}

#[test]
fn what_is_undone_is_undone_once_and_the_rest_is_untouched() {
    let built = in_round_2("A2.0 baseline 70\nA2.1 kept 66")
        .row("A", "2 reverted 71")
        .file("poster_session_round_2.md", "# Poster\n\nToo early.\n")
        .outputs();
    let files = built.files();
    let named: Vec<String> = told(&files).undo().into_iter().map(|it| it.path).collect();
    let expected = [
        "researcher_A_results.tsv",
        "poster_session_round_2.md",
        "synthesis.md",
        "final_report.md",
    ];
    assert_eq!(named, expected);
    let after = undone(&files);
    for (path, file) in files.iter().filter(|(path, _)| !expected.contains(path)) {
        assert_eq!(after.bytes(path), Some(file.bytes.as_slice()), "{path}");
    }
    assert_eq!(told(&after).undo(), []);
    assert_eq!(point_after(&after), point_after(&files), "the place is the same");
}

#[test]
fn a_file_that_is_undone_says_whose_work_it_was() {
    let built = in_round_2("A2.0 baseline 70").row("A", "1 reverted 71");
    let undone = told(&built.files()).undo();
    let steps: Vec<&str> = undone.iter().map(|it| it.step.as_str()).collect();
    assert_eq!(steps, ["round[2]/research[A]"]);
}

#[test]
fn a_person_enters_earlier_by_a_code_or_by_a_step() {
    let built = reviewed();
    assert_eq!(point(&built.plan()), "knowledge-transfer 4/2 [round[2]/transfer]");
    for (place, expected) in [
        ("peer-review", "peer-review 3/2 [round[2]/review]"),
        ("round[2]/review", "peer-review 3/2 [round[2]/review]"),
        ("poster-session", "poster-session 2/2 [round[2]/poster]"),
        ("round[1]/transfer", "knowledge-transfer 4/1 [round[1]/transfer]"),
    ] {
        let files = entered(&built, place, false).unwrap().unwrap();
        assert_eq!(point_after(&files), expected, "{place}");
    }
    let again = entered(&built, "round[2]", false).unwrap().unwrap();
    let again = point_after(&undone(&again));
    assert!(again.starts_with("round-start 1/2"), "{again}");
}

#[test]
fn where_it_goes_on_anyway_nothing_has_to_be_said() {
    assert_eq!(entered(&reviewed(), "knowledge-transfer", false), Ok(None));
}

#[test]
fn a_place_ahead_is_refused_unless_a_person_ends_the_rounds() {
    let built = in_round_2("A2.0 baseline 70");
    for (place, force) in [("peer-review", false), ("peer-review", true), ("synthesis", false)] {
        let refused = entered(&built, place, force);
        assert!(matches!(refused, Err(NoEntry::Ahead(_))), "{place}: {refused:?}");
    }
    let ended = entered(&built, "synthesis", true).unwrap().unwrap();
    assert_eq!(point_after(&ended), "synthesis 11/- [synthesis]");
}

#[test]
fn a_place_that_is_none_is_named() {
    for place in ["lunch", "complete", "round[7]/review", "round[2]/research[A]/iterate[1]/settle"]
    {
        let refused = entered(&reviewed(), place, true);
        assert_eq!(refused, Err(NoEntry::Unknown(place.to_owned())), "{place}");
    }
}
