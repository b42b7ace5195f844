//! A conference rehearsed before anybody spends anything on it.

use std::fs;

use crate::hall::Hall;

#[test]
fn a_conference_of_made_up_agents_is_killed_and_ends_the_same() {
    let hall = Hall::new(|text| {
        let text = text.replace("Max rounds:** 3", "Max rounds:** 1");
        let text = text.replace("Count:** 3", "Count:** 2");
        text.replace("Iterations per round:** 3", "Iterations per round:** 2")
    });
    let before = hall.bench.text("conference.md");
    let found = hall.bench.exits("rehearse conference --limit 2 --json", 0).json();
    assert_eq!(
        (&found["status"], &found["safe"]),
        (&"completed".into(), &true.into()),
        "{found:#}"
    );
    assert!(found["boundaries"].as_u64().unwrap() >= 25, "{found:#}");
    assert_eq!((&found["tried"], &found["passed"]), (&2.into(), &4.into()), "{found:#}");
    assert_eq!(hall.bench.text("conference.md"), before);
    assert!(
        !hall.bench.path("conference_events.jsonl").exists(),
        "the project itself is only read"
    );
}

#[test]
fn without_a_conference_md_there_is_nothing_to_rehearse() {
    let hall = Hall::new(|text| text);
    fs::remove_file(hall.bench.path("conference.md")).unwrap();
    let said = hall.bench.exits("rehearse conference", 2);
    assert!(said.err.contains("conference.md"), "{said:?}");
    assert!(said.err.contains("onward init --from conference"), "{said:?}");
}
