//! What holds for every directory, however mangled.

use std::fmt::Write as _;

use onward_core::{address::Address, plan::Status, told::StepTold};
use onward_dialects::{Dialect as _, File, Files, conference};
use proptest::{prelude::*, sample::Index};

use crate::builder::{ROUND_1, changed, codes, conference as build, next, plan_of, undone};

#[test]
fn either_missing_mark_is_named_with_what_to_do_instead() {
    for mark in conference::CONFERENCE.card().marks.iter().map(|it| it.glob) {
        let mut files = build(ROUND_1).files();
        files.remove(mark);
        let missing = conference::import(&files).unwrap_err();
        assert_eq!(missing.file, mark);
        assert!(missing.hint.contains("onward run conference"));
        assert!(missing.hint.contains("onward init --from conference"));
    }
}

#[test]
fn what_is_imported_is_exported_byte_for_byte() {
    let files = whole();
    let state = conference::import(&files).unwrap();
    assert_eq!(conference::export(&state), files);
}

fn whole() -> Files {
    let built = build(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70\nA2.1 kept 66"));
    let page = "# P\n\n## Qualitative Scores\n| Who | Score |\n|---|---|\n| A | 8 |\n";
    built
        .outputs()
        .row("B", "0 baseline 70")
        .row("B", "1 kept 66")
        .row("A", "2 reverted 67")
        .file("poster_session_round_1.md", page)
        .file("peer_review_round_1.md", page)
        .file("researcher_A_log.md", "# Log\n")
        .file("conference_results.tsv", "1\tA\t0\t80\t-\t-\tbaseline\tx\ty\t-\t-\n")
        .file(".autoconference-loop.pid", "12\n")
        .files()
}

#[test]
fn huge_numbers_and_long_tables_come_to_an_end() {
    let huge = "4294967295";
    let mut built = build(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70"))
        .says("**Count:** 2", &format!("**Count:** {huge}"))
        .says("round:** 3", &format!("round:** {huge} (rounds 2-{huge}), {huge}"))
        .says("rounds:** 4", &format!("rounds:** {huge}"))
        .says("iterations:** 24", &format!("iterations:** {huge}"));
    let placeholders = "0\tTBD\t-\t-\tbaseline\tx\ty\t-\n".repeat(20_000);
    let kept = (0..20_000).fold(String::new(), |mut rows, it| {
        writeln!(rows, "{it}\t70\t-\t-\tkept\tx\ty\t-").unwrap();
        rows
    });
    built = built.without_table("A").file("researcher_A_results.tsv", &placeholders);
    built = built.without_table("B").file("researcher_B_results.tsv", &kept);
    built = built.line("\0").line(&"[".repeat(100_000)).line("{\"event\":1e999}");
    let plan = built.plan();
    let open = plan.told.step(&Address::from_text("open"));
    let StepTold::Done(open) = open else { panic!("{open:?}") };
    assert_eq!(open.result["researchers"].as_array().unwrap().len(), 26);
    assert_eq!(codes(&plan).iter().filter(|it| **it == "broken-line").count(), 3);
    assert_eq!(plan.recovery_point.code, "research-continue");
}

/// One way of mangling a file: cut it, double a line, drop one, or overwrite some bytes.
#[derive(Clone, Debug)]
enum Harm {
    Cut(Index),
    DoubleLine(Index),
    DropLine(Index),
    Overwrite(Index, Vec<u8>),
    Replace(&'static str, &'static str),
    Remove,
}

fn harm() -> impl Strategy<Value = Harm> {
    let pairs = [
        ("1", "4294967295"),
        ("2", "0"),
        ("70", "1e308"),
        ("A", ""),
        ("kept", "baseline"),
        ("\t", " "),
        ("round", "rounds"),
        ("3", "-3"),
        ("\n", "\r\n"),
        ("\"", "\\\""),
        ("Z", "+99:99"),
        ("8h", "99999999999999999999d"),
    ];
    prop_oneof![
        any::<Index>().prop_map(Harm::Cut),
        any::<Index>().prop_map(Harm::DoubleLine),
        any::<Index>().prop_map(Harm::DropLine),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..6))
            .prop_map(|(at, bytes)| Harm::Overwrite(at, bytes)),
        prop::sample::select(pairs.to_vec()).prop_map(|(from, to)| Harm::Replace(from, to)),
        Just(Harm::Remove),
    ]
}

fn harmed(bytes: &[u8], harm: &Harm) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let at = |index: &Index| index.index(lines.len().max(1)).min(lines.len());
    match harm {
        Harm::Cut(index) => bytes[..index.index(bytes.len() + 1)].to_vec(),
        Harm::DoubleLine(index) => {
            let (before, after) = lines.split_at(at(index));
            [before, &after[..after.len().min(1)], after].concat().concat()
        }
        Harm::DropLine(index) => {
            let (before, after) = lines.split_at(at(index));
            [before, after.get(1..).unwrap_or_default()].concat().concat()
        }
        Harm::Overwrite(index, with) => {
            let start = index.index(bytes.len() + 1);
            let end = (start + with.len()).min(bytes.len());
            [&bytes[..start], with, &bytes[end..]].concat()
        }
        Harm::Replace(from, to) => String::from_utf8_lossy(bytes).replace(from, to).into_bytes(),
        Harm::Remove => Vec::new(),
    }
}

fn mangled(harms: &[(Index, Harm)]) -> Files {
    let mut files = whole();
    let names: Vec<String> = files.iter().map(|(name, _)| name.to_owned()).collect();
    for (which, harm) in harms {
        let name = which.get(&names);
        let bytes = harmed(files.bytes(name).unwrap_or_default(), harm);
        files.insert(name.as_str(), File { bytes, modified: None });
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No directory is so mangled that there is no answer, and the answer makes sense in itself.
    #[test]
    fn a_mangled_directory_still_gives_a_plan(
        harms in prop::collection::vec((any::<Index>(), harm()), 1..6),
    ) {
        let files = mangled(&harms);
        let state = conference::import(&files).unwrap();
        let exported = conference::export(&state);
        let again = conference::import(&exported).unwrap();
        prop_assert!(again == state, "what is imported is exported");

        let now = "2026-05-05T20:00:00Z".parse().unwrap();
        let plan = plan_of(&files, now);
        let completed = plan.standing.status == Status::Completed;
        prop_assert_eq!(plan.recovery_point.steps.is_empty(), completed);
        // What is undone is undone once, and does not move the recovery point.
        let after = undone(&files);
        let again = plan_of(&after, now);
        prop_assert_eq!(&again.undo, &[]);
        prop_assert_eq!(&again.recovery_point.steps, &plan.recovery_point.steps);
        // A resume goes on where the plan says, and finds nothing more to undo. It comes at once:
        // later the time budget might be over.
        let at = again.standing.last_event.as_ref().map_or(now, |last| last.at);
        let resumed = plan_of(&changed(&after, &again.resumed_at(at)), now);
        prop_assert_eq!(&resumed.undo, &[]);
        // The same if the files were read before they were undone.
        let early = plan_of(&changed(&after, &plan.resumed_at(at)), now);
        prop_assert_eq!(&early.undo, &[]);
        prop_assert_eq!(&early.recovery_point.steps, &plan.recovery_point.steps);
        prop_assert_eq!(&resumed.recovery_point.steps, &plan.recovery_point.steps);
    }

    /// Core can walk the workflow with whatever the files tell, and comes to an end.
    #[test]
    fn a_mangled_directory_can_be_walked(
        harms in prop::collection::vec((any::<Index>(), harm()), 1..6),
        which in 0..8_u8,
    ) {
        // Walking is slow: a few of all.
        if which == 0 {
            next(&plan_of(&mangled(&harms), "2026-05-05T20:00:00Z".parse().unwrap()));
        }
    }

    /// A cut anywhere gives the plan of what is left.
    #[test]
    fn a_log_cut_in_a_line_is_the_log_without_that_line(cut in any::<Index>()) {
        let built = build(ROUND_1);
        let cut = cut.index(built.log.len() + 1);
        let whole_lines = built.log[..cut].rfind('\n').map_or(0, |at| at + 1);
        let plan = |len: usize| {
            let mut built = built.clone();
            built.log.truncate(len);
            built.at("2026-05-05T01:00:00Z").plan()
        };
        // A line that lacks nothing but its end is whole.
        let is_whole = built.log[cut..].starts_with('\n');
        if !is_whole {
            prop_assert_eq!(plan(cut).recovery_point, plan(whole_lines).recovery_point);
        }
    }
}
