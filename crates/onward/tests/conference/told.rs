//! What researchers, reviewers and readers are told: the guard, verdicts, why there is no number.

use crate::hall::Hall;

fn one_round(text: &str) -> String {
    text.replace("Max rounds:** 3", "Max rounds:** 1")
}

#[test]
fn a_review_counts_for_those_of_the_round_and_for_all_of_them() {
    let verdicts = r#"{"verdicts": [
 {"researcher": "A", "claim": "a1 holds", "verdict": "validated"},
 {"researcher": "A", "claim": "a2 fails", "verdict": "overturned"},
 {"researcher": "Z", "claim": "z was never here", "verdict": "validated"},
 {"researcher": "C", "claim": "c holds", "verdict": "validated"}], "notes": "All well."}"#;
    let hall = Hall::with(
        |text| one_round(&text),
        |agent| {
            let (before, rest) = agent.split_once("{\"verdicts\": [").unwrap();
            let (_, after) = rest.split_once("\nEND").unwrap();
            format!("{before}{verdicts}\nEND{after}")
        },
    );
    hall.bench.exits("run conference --no-input", 11);
    let document = hall.bench.text("conference.md");
    assert!(document.contains("| a2 fails | overturned |"), "{document}");
    assert!(document.contains("c holds (Researcher C)"), "{document}");
    assert!(document.contains("a1 holds (Researcher A)"), "{document}");
    assert!(!document.contains("z was never here"), "{document}");
    let page = hall.bench.text("peer_review_round_1.md");
    assert!(page.contains("All well. Left out: verdicts about Z, not of this round."), "{page}");
    let told = hall.events().into_iter().find(|it| it.contains("round.peer_review")).unwrap();
    let counts = "\"validated_count\":2,\"challenged_count\":1,\"overturned_count\":1";
    assert!(told.contains(counts), "{told}");
    let results = hall.bench.text("conference_results.tsv");
    let of_b: Vec<&str> = results.lines().filter(|it| it.starts_with("1\tB\t")).collect();
    assert_eq!(of_b.iter().filter(|it| it.contains("\tchallenged\t")).count(), 2, "{results}");
    assert!(page.contains("the reviewer gave no verdict on it"), "{page}");
    let best = hall.git(&["log", "--format=%s", "conference/best"]);
    assert_eq!(best.lines().count(), 2, "the start, and C alone: {best}");
}

#[test]
fn a_researcher_knows_the_guard_and_its_log_says_why_there_is_no_number() {
    let hall = Hall::with(
        |text| {
            let text =
                one_round(&text).replace("## Shared", "## Guard\nKeep the kettle.\n\n## Shared");
            let fails = "`test $CONFERENCE_ITERATION != 2 || exit 124; echo";
            text.replace("`echo", fails)
        },
        |agent| {
            let copies =
                "    cp \"$ONWARD_PROMPT\" \"$CONFERENCE_DIR/prompt-$who\"\n    value=$(cat";
            agent.replace("    value=$(cat", copies)
        },
    );
    hall.bench.exits("run conference --no-input", 11);
    let prompt = hall.bench.text("prompt-B");
    assert!(prompt.contains("whatever a change would gain): Keep the kettle."), "{prompt}");
    let log = hall.bench.text("researcher_A_log.md");
    let why = "- **Analysis:** no result: it ended with exit 124; see the rows";
    assert!(log.contains(why), "{log}");
}
