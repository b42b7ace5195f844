//! A person disagrees with the recovery point and names another one.

use crate::tea::Tea;

/// The second round is reviewed; its knowledge transfer is next.
const REVIEWED: usize = 16;

#[test]
fn entering_earlier_does_that_phase_again_and_keeps_what_was_there() {
    let tea = Tea::left(&Tea::finished(), REVIEWED);
    assert_eq!(tea.json("plan --json")["recovery_point"]["code"], "knowledge-transfer");
    tea.exits("resume --from peer-review --yes --no-input", 0);
    assert_eq!(tea.calls(), ["round[2]/review/judge", "synthesis/draft"]);
    assert_eq!((tea.count("round.peer_review"), tea.count("round.completed")), (3, 2));
    let log = String::from_utf8(tea.log()).unwrap();
    let resumed = log.lines().find(|it| it.contains("conference.resumed")).unwrap();
    assert!(resumed.contains(r#""recovery_point":"peer-review""#), "{resumed}");
    assert!(tea.journal().contains(r#""accepted":["yes","from peer-review"]"#));
}

#[test]
fn a_step_names_a_place_too() {
    let tea = Tea::left(&Tea::finished(), REVIEWED);
    tea.exits("resume --from round[2]/poster --yes --no-input", 0);
    let calls = tea.calls();
    assert_eq!(calls, ["round[2]/poster/draft", "round[2]/review/judge", "synthesis/draft"]);
}

#[test]
fn a_place_ahead_is_refused_and_one_that_is_none_is_named() {
    let tea = Tea::left(&Tea::finished(), 11);
    let before = tea.contents();
    let said = tea.exits("resume --from knowledge-transfer --yes --no-input", 16);
    assert!(said.err.contains("phase-ahead-of-evidence"), "{said:?}");
    let said = tea.onward("resume --from lunch --yes --no-input");
    assert!(said.code != 0 && said.err.contains("lunch"), "{said:?}");
    assert_eq!(tea.contents(), before);
}

#[test]
fn a_person_may_end_the_rounds() {
    let tea = Tea::left(&Tea::finished(), 9);
    // The rows of the second round are all there, and count although the log lost their events.
    assert_eq!(tea.json("plan --json")["recovery_point"]["code"], "poster-session");
    tea.exits("resume --from synthesis --yes --no-input", 16);
    tea.exits("resume --from synthesis --force --yes --no-input", 0);
    assert_eq!(tea.calls(), ["synthesis/draft"]);
    assert_eq!((tea.count("round.completed"), tea.count("conference.completed")), (1, 1));
}
