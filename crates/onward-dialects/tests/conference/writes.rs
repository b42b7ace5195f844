//! Deeds written into the files, and read back.

use onward_core::time::Timestamp;
use onward_dialects::{
    File, Files,
    conference::{
        Conference, export, import,
        read::log::{Status, StuckLevel},
        write::{
            changes,
            happening::{Happening, Iterated, Verdict, What},
        },
    },
    rules::conference::chart,
};
use proptest::{prelude::*, sample::Index};

use crate::builder::{DOCUMENT, ROUND_1, conference, plan_of};

fn at(minute: u64) -> Timestamp {
    let start: Timestamp = "2026-05-04T20:00:00Z".parse().unwrap();
    start.plus_ms(minute * 60_000)
}

fn deed(minute: u64, what: What) -> Happening {
    Happening { at: at(minute), what }
}

fn iterated(which: &str, metric: &str, status: Status) -> What {
    let (researcher, numbers) = which.split_at(1);
    let (round, iteration) = numbers.split_once('.').unwrap();
    What::Iterated(Iterated {
        researcher: researcher.to_owned(),
        round: round.parse().unwrap(),
        iteration: iteration.parse().unwrap(),
        metric: metric.to_owned(),
        status,
        description: format!("try {iteration}"),
        evaluator: "script:score.sh".to_owned(),
        hypothesis: "smaller is faster".to_owned(),
        analysis: "so it is".to_owned(),
    })
}

const REVIEW: &str = "# Peer Review — Round 1\n\n### Researcher A — Small pools\n\
    **Claim:** Small pools are fast\n**Verdict:** validated\n\n\
    ### Researcher B — Big pools\n**Claim:** Big pools are fast\n**Verdict:** overturned\n";

/// Everything that happens in a round of two, and the point after each of it.
fn round(number: u32, best: &str) -> Vec<(What, &'static str)> {
    let page = |name: &str| format!("# {name} — Round {number}\n\nWords.\n");
    let one = |which: &str, metric: &str, status| {
        iterated(&which.replace('N', &number.to_string()), metric, status)
    };
    vec![
        (
            What::RoundStarted { round: number, researchers: vec!["A".into(), "B".into()] },
            "research-restart",
        ),
        (one("AN.0", "80.5", Status::Baseline), "research-continue"),
        (one("AN.1", best, Status::Kept), "research-continue"),
        (one("AN.2", "81.5", Status::Reverted), "research-continue"),
        (one("BN.0", "80.5", Status::Baseline), "research-continue"),
        (one("BN.1", "82", Status::Reverted), "research-continue"),
        (one("BN.2", "79", Status::Kept), "poster-session"),
        (
            What::Posted { round: number, summary: "A leads".into(), page: page("Posters") },
            "peer-review",
        ),
        (What::Reviewed { round: number, page: REVIEW.to_owned() }, "knowledge-transfer"),
        (
            What::Learned { round: number, findings: vec!["**Small pools** are fast.".into()] },
            "knowledge-transfer",
        ),
        (
            What::Judged { round: number, researcher: "A".into(), verdict: Verdict::Validated },
            "knowledge-transfer",
        ),
        (
            What::Judged { round: number, researcher: "B".into(), verdict: Verdict::Overturned },
            "knowledge-transfer",
        ),
        (
            What::Noted {
                round: number,
                researcher: "A".into(),
                best: best.into(),
                finding: "Small pools".into(),
                status: "validated".into(),
            },
            "knowledge-transfer",
        ),
    ]
}

fn completed(number: u32, best: &str) -> What {
    let (best, researcher) = (best.to_owned(), "A".to_owned());
    What::RoundCompleted { round: number, best, researcher, converged: false }
}

/// A conference of two rounds from its first event to its last.
fn whole() -> Vec<(What, &'static str)> {
    let goal = "Bring the slow requests down.".to_owned();
    let started = What::Started { researchers: 2, mode: "metric", goal, config: "p95_ms".into() };
    let mut all = vec![(started, "round-start")];
    all.extend(round(1, "70.5"));
    all.push((completed(1, "70.5"), "round-start"));
    all.extend(round(2, "49.5"));
    all.push((completed(2, "49.5"), "synthesis"));
    let page = || "# Words\n\nThe end of it.\n".to_owned();
    all.push((What::Synthesised { synthesis: page(), report: page() }, "close"));
    all.push((What::Completed, "complete"));
    all
}

fn fresh() -> Conference {
    let files: Files =
        [("conference.md", DOCUMENT), ("conference_events.jsonl", "")].into_iter().collect();
    import(&files).unwrap()
}

fn code(conference: &Conference) -> String {
    let plan = plan_of(&export(conference), at(1_000));
    let ours: Vec<_> = plan.findings.iter().filter(|it| it.code != "missing-artifact").collect();
    assert!(
        ours.iter().all(|it| matches!(&*it.code, "status-disagrees" | "artifact-unproved")),
        "{ours:?}"
    );
    plan.recovery_point.code
}

#[test]
fn a_conference_written_deed_by_deed_is_read_back_at_the_point_it_is_at() {
    let mut state = fresh();
    for (minute, (what, expected)) in (0..).zip(whole()) {
        state = state.after(&deed(minute, what.clone()));
        assert_eq!(code(&state), expected, "after {what:?}");
    }
    let plan = plan_of(&export(&state), at(1_000));
    assert_eq!(plan.findings, [], "what onward writes is whole in its own eyes");
}

#[test]
fn events_are_written_in_the_reference_spelling() {
    let deeds = [
        deed(
            0,
            What::Resumed {
                recovery_point: "research-continue".into(),
                round: Some(2),
                reverted: vec!["B".into()],
            },
        ),
        deed(1, iterated("A1.0", "80.5", Status::Baseline)),
        deed(2, iterated("A1.1", "70.25", Status::Kept)),
        deed(3, What::Stuck { researcher: "B".into(), round: 1, level: StuckLevel::TimedOut }),
        deed(4, What::Reviewed { round: 1, page: REVIEW.to_owned() }),
    ];
    let state = deeds.iter().fold(fresh(), |state, deed| state.after(deed));
    let log = String::from_utf8(state.log.bytes().to_vec()).unwrap();
    let expected = [
        ("conference.resumed", r#""recovery_point":"research-continue","round":2,"#),
        ("researcher.iteration", r#""researcher":"A","round":1,"iteration":0,"#),
        ("researcher.iteration", r#""researcher":"A","round":1,"iteration":1,"#),
        ("researcher.stuck", r#""researcher":"B","round":1,"#),
        ("round.peer_review", r#""round":1,"#),
    ];
    let rest = [
        r#""reverted_researchers":["B"]"#,
        r#""metric_value":80.5,"delta":"-","status":"baseline""#,
        r#""metric_value":70.25,"delta":-10.25,"status":"kept""#,
        r#""stuck_level":"timeout""#,
        r#""validated_count":1,"challenged_count":0,"overturned_count":1"#,
    ];
    for (minute, line) in log.lines().enumerate() {
        let ((name, first), rest) = (expected[minute], rest[minute]);
        let at = format!("2026-05-04T20:0{minute}:00Z");
        let payload = format!("{{{first}{rest}}}");
        let whole = format!(r#"{{"event":"{name}","timestamp":"{at}","payload":{payload}}}"#);
        assert_eq!(line, whole);
    }
    assert_eq!(log.lines().count(), expected.len());
    assert_eq!(state.met, [].into(), "no other spelling than the reference's");
}

#[test]
fn an_iteration_is_written_to_three_files_and_the_log() {
    let first = fresh().after(&deed(1, iterated("A1.0", "80.5", Status::Baseline)));
    let state = first.after(&deed(2, iterated("A1.1", "70.25", Status::Kept)));
    let text =
        |files: &Files, name: &str| String::from_utf8(files.bytes(name).unwrap().to_vec()).unwrap();
    let files = export(&state);
    assert_eq!(
        text(&files, "researcher_A_results.tsv"),
        format!(
            "{}0\t80.5\t-\t-\tbaseline\ttry 0\tscript:score.sh\t2026-05-04T20:01:00Z\n\
             1\t70.25\t-10.25\t-12.7%\tkept\ttry 1\tscript:score.sh\t2026-05-04T20:02:00Z\n",
            crate::builder::COLUMNS
        )
    );
    let last = text(&files, "conference_results.tsv");
    let last = last.lines().last().unwrap();
    let row =
        "1\tA\t1\t70.25\t-10.25\t-12.7%\tkept\ttry 1\tscript:score.sh\t-\t2026-05-04T20:02:00Z";
    assert_eq!(last, row);
    let log = "# Researcher A Log\n\n## Round 1\n\n### Iteration 0: try 0\n\
               - **Hypothesis:** smaller is faster\n- **Result:** 80.5\n- **Status:** BASELINE\n\
               - **Analysis:** so it is\n\n### Iteration 1: try 1\n\
               - **Hypothesis:** smaller is faster\n- **Result:** 70.25\n- **Status:** KEPT\n\
               - **Analysis:** so it is\n";
    assert_eq!(text(&files, "researcher_A_log.md"), log);
    let names: Vec<String> =
        changes(&export(&first), &state).iter().map(|it| it.path().to_owned()).collect();
    let expected = [
        "conference_results.tsv",
        "researcher_A_log.md",
        "researcher_A_results.tsv",
        "conference_events.jsonl",
    ];
    assert_eq!(names, expected, "the log comes last, and nothing else changes");
}

#[test]
fn a_kept_row_without_an_event_gets_its_event_and_no_second_row() {
    let built =
        conference(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70")).row("A", "1 kept 66");
    let before = import(&built.files()).unwrap();
    let after = before.after(&deed(90, iterated("A2.1", "66", Status::Kept)));
    assert_eq!(after.researchers["A"].results, before.researchers["A"].results);
    assert!(!before.history.is_logged(2, "A", 1) && after.history.is_logged(2, "A", 1));
    assert_eq!(after.history.iterations(), before.history.iterations(), "it counted before");
}

#[test]
fn a_torn_line_gets_its_end_before_anything_follows() {
    let mut files = conference(ROUND_1).files();
    let torn = b"{\"event\":\"round.sta";
    let log = [files.bytes("conference_events.jsonl").unwrap(), torn].concat();
    files.insert("conference_events.jsonl", File { bytes: log, modified: None });
    let before = import(&files).unwrap();
    let started = What::RoundStarted { round: 2, researchers: vec!["A".into()] };
    let after = before.after(&deed(90, started));
    assert!(after.log.bytes().starts_with(before.log.bytes()));
    assert_eq!(after.log.broken, before.log.broken);
    assert!(after.history.round(2).unwrap().started);
}

fn document_after(document: &str, deeds: &[What]) -> String {
    let files: Files =
        [("conference.md", document), ("conference_events.jsonl", "")].into_iter().collect();
    let state = import(&files).unwrap();
    let state = deeds.iter().fold(state, |state, what| state.after(&deed(5, what.clone())));
    String::from_utf8(state.document.bytes().to_vec()).unwrap()
}

#[test]
fn shared_knowledge_grows_by_what_is_missing_and_by_nothing_else() {
    let document = "# C\n\n## Shared Knowledge\n<!-- filled in -->\n\n\
                    ### Round 1 Validated Findings\n\
                    1. **Warm the pot.**\n\n## Context\n\n---\n\n## Conference Log\n";
    let learned = |round: u32, findings: &[&str]| What::Learned {
        round,
        findings: findings.iter().map(|it| (*it).to_owned()).collect(),
    };
    let half = document_after(document, &[learned(1, &["Warm the pot", "Stir once."])]);
    let expected = document.replace("pot.**\n", "pot.**\n2. Stir once.\n");
    assert_eq!(half, expected);
    let next = document_after(&half, &[learned(2, &["Stir once.", "Wait\nlonger."])]);
    let expected =
        half.replace("once.\n", "once.\n\n### Round 2 Validated Findings\n3. Wait longer.\n");
    assert_eq!(next, expected);
    assert_eq!(document_after(&next, &[learned(2, &["wait longer"])]), next);
}

#[test]
fn the_conference_log_gets_one_row_for_round_and_researcher() {
    let noted = |finding: &str| What::Noted {
        round: 1,
        researcher: "A".into(),
        best: "70".into(),
        finding: finding.into(),
        status: "validated".into(),
    };
    let once = document_after(DOCUMENT, &[noted("Small | pools")]);
    assert_eq!(once, format!("{DOCUMENT}| 1 | A | 70 | Small / pools | validated |\n"));
    assert_eq!(document_after(&once, &[noted("Other words")]), once);
    let bare = document_after("# C\n\n## Conference Log\nSee the results.\n", &[noted("x")]);
    let lines: Vec<&str> = bare.lines().skip(3).collect();
    let expected = [
        "See the results.",
        "| Round | Researcher | Best Metric | Key Finding | Status |",
        "|-------|-----------|-------------|-------------|--------|",
        "| 1 | A | 70 | x | validated |",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn a_verdict_is_filled_in_where_there_is_none_and_never_on_a_baseline() {
    let deeds = [
        deed(1, iterated("A1.0", "80.5", Status::Baseline)),
        deed(2, iterated("A1.1", "70.5", Status::Kept)),
        deed(3, iterated("B1.1", "75.5", Status::Kept)),
        deed(4, What::Judged { round: 1, researcher: "A".into(), verdict: Verdict::Challenged }),
        deed(5, What::Judged { round: 1, researcher: "A".into(), verdict: Verdict::Validated }),
    ];
    let state = deeds.iter().fold(fresh(), |state, deed| state.after(deed));
    let rows = &state.results.as_ref().unwrap().rows;
    let verdicts: Vec<Option<&str>> = rows.iter().map(|row| row.verdict.as_deref()).collect();
    assert_eq!(verdicts, [None, Some("challenged"), None]);
}

#[test]
fn the_progress_is_drawn_for_every_researcher_and_round() {
    assert_eq!(chart::progress(&fresh()), None);
    let state = (0..)
        .zip(whole())
        .fold(fresh(), |state, (minute, (what, _))| state.after(&deed(minute, what)));
    let svg = chart::progress(&state).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline ").count(), 2);
    assert_eq!(svg.matches("<circle ").count(), 12);
    assert_eq!(svg.matches("fill=\"#ffffff\" stroke=").count(), 4, "reverted ones are hollow");
    assert!(svg.contains(">round 2<") && svg.contains(">target<"));
}

fn any_deed() -> impl Strategy<Value = Happening> {
    let whole: Vec<What> = whole().into_iter().map(|(what, _)| what).collect();
    let more = vec![
        What::Resumed { recovery_point: "synthesis".into(), round: None, reverted: Vec::new() },
        What::Stuck { researcher: "B".into(), round: 2, level: StuckLevel::Level(2) },
        What::Converged { best: "49.5".into(), rounds: 2, reason: "target".into() },
        What::Stalled { round: 2 },
        What::Failed { round: 2 },
        What::Learned { round: 9, findings: vec!["a\tb\n| c".into(), String::new()] },
        iterated("A2.7", "not a number", Status::Failed),
    ];
    let all: Vec<What> = whole.into_iter().chain(more).collect();
    (0_u64..600, prop::sample::select(all)).prop_map(|(minute, what)| deed(minute, what))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The laws of adopted runs, for deeds in any order on whatever is there.
    #[test]
    fn writing_is_idempotent_additive_and_read_back(
        deeds in prop::collection::vec(any_deed(), 1..12),
        cut in any::<Index>(),
    ) {
        let script = format!("{ROUND_1}round 2: A B\nA2.0 baseline 70");
        let built = conference(&script).row("B", "0 baseline 70");
        let mut files = built.files();
        let log = files.bytes("conference_events.jsonl").unwrap().to_vec();
        let log = log[..cut.index(log.len() + 1)].to_vec();
        files.insert("conference_events.jsonl", File { bytes: log, modified: None });
        let mut state = import(&files).unwrap();
        for deed in &deeds {
            let next = state.after(deed);
            prop_assert!(import(&export(&next)).unwrap() == next, "it is read back: {deed:?}");
            prop_assert!(next.after(deed) == next, "a deed is written once: {deed:?}");
            prop_assert!(next.log.bytes().starts_with(state.log.bytes()), "the log only grows");
            prop_assert!(next.log.broken.len() == state.log.broken.len());
            for (id, researcher) in &state.researchers {
                let before = researcher.results.as_ref().unwrap().bytes();
                let after = next.researchers[id].results.as_ref().unwrap().bytes();
                prop_assert!(after.starts_with(before), "rows are only added");
            }
            let (before, after) = (export(&state), export(&next));
            for (path, _) in before.iter() {
                prop_assert!(after.contains(path), "{} is gone", path);
            }
            state = next;
        }
    }
}
