//! Rulings on what the seed leaves open, one test each: in the plan, in a live call and in a resume
//! alike.

use onward_core::{address::Address, told::StepTold};
use onward_dialects::{
    conference::{
        Conference, Point, PointCode, import,
        read::log::Status,
        write::happening::{Happening, Iterated, What},
    },
    rules::conference::{converge, results},
};

use crate::builder::{Built, ROUND_1, changed, conference, finding, next, plan_of, point, undone};

fn in_round_2(lines: &str) -> Built {
    conference(&format!("{ROUND_1}round 2: A B\n{lines}"))
}

fn read(built: &Built) -> Conference {
    import(&built.files()).unwrap()
}

/// What the live calls say when an iteration is settled: whether its researcher goes on.
fn finishes(conference: &Conference, researcher: &str, iteration: u32) -> bool {
    results::settled(conference, 2, researcher, iteration)["finished"] == true
}

const RESEARCHED: &str = "A2.0 baseline 70\nA2.1 kept 66\nA2.2 reverted 69\n\
                          B2.0 baseline 70\nB2.1 kept 65\nB2.2 kept 64\n";

#[test]
fn an_open_round_is_finished_before_a_reached_target_ends_the_conference() {
    let lines = RESEARCHED.replace("B2.1 kept 65", "B2.1 kept 49");
    for (more, code, first) in [
        ("", "poster-session", "round[2]/roll"),
        ("poster 2\n", "peer-review", "round[2]/poster/draft"),
        ("poster 2\nreview 2\n", "knowledge-transfer", "round[2]/review/judge"),
    ] {
        let built = in_round_2(&format!("{lines}{more}"));
        let plan = built.plan();
        assert_eq!(plan.recovery_point.code, code);
        assert_eq!(next(&plan), [first], "its page is gone, so it is made again");
        assert_eq!(converge::over(&read(&built)), None, "a live call says so, too");
    }
    let over = in_round_2(&format!("{lines}poster 2\nreview 2\nend 2 49"));
    assert_eq!(over.plan().recovery_point.code, "synthesis");
    assert_eq!(results::converged(&read(&over))["reason"], "target_reached");
}

#[test]
fn an_open_round_beyond_the_last_one_is_finished_too() {
    let built = in_round_2("A2.0 baseline 70").says("**Max rounds:** 4", "**Max rounds:** 1");
    assert_eq!(built.plan().recovery_point.code, "research-continue");
    assert_eq!(results::converged(&read(&built))["over"], false);
}

#[test]
fn only_the_time_and_a_logged_convergence_leave_an_open_round() {
    let time = in_round_2("A2.0 baseline 70").says("budget:** 8h", "budget:** 1h");
    let logged = in_round_2("A2.0 baseline 70\nconverged");
    for built in [time, logged] {
        assert_eq!(point(&built.plan()), "synthesis 11/- [synthesis]");
        assert_eq!(next(&built.plan()), ["synthesis/draft"]);
        assert_eq!(results::converged(&read(&built))["over"], true);
    }
}

#[test]
fn a_researcher_at_level_3_has_finished_whether_it_was_logged_or_only_follows() {
    let seven = (1..=7).fold("A2.0 baseline 70".to_owned(), |script, turn| {
        format!("{script}\nA2.{turn} reverted 71")
    });
    let long = |lines: &str| in_round_2(lines).says("per round:** 3", "per round:** 20");
    let a_goes_on = "research-continue 1/2 [round[2]/research[A] round[2]/research[B]]";
    let six = seven.rsplit_once('\n').unwrap().0;
    assert_eq!(point(&long(six).plan()), a_goes_on);
    assert!(!finishes(&read(&long(six)), "A", 6));
    let only_b = "research-continue 1/2 [round[2]/research[B]]";
    for lines in [seven.clone(), format!("{seven}\nstuck A2 3"), format!("{six}\nstuck A2 3")] {
        assert_eq!(point(&long(&lines).plan()), only_b, "{lines}");
        assert_eq!(next(&long(&lines).plan()), ["round[2]/research[B]/baseline/score"]);
    }
    assert!(finishes(&read(&long(&seven)), "A", 7));
    let both = format!("{seven}\nstuck B2 3");
    assert_eq!(point(&long(&both).plan()), "poster-session 2/2 [round[2]/poster]");
}

#[test]
fn rows_ahead_of_the_log_count_so_that_a_round_of_four_never_gets_a_fifth() {
    let of_four = |built: Built| built.says("per round:** 3", "per round:** 4");
    // A's fourth iteration is in its table, and the crash came before its event.
    let a = "A2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65";
    let b = "\nB2.0 baseline 70\nB2.1 kept 69\nB2.2 reverted 70\nB2.3 kept 68";
    let built = of_four(in_round_2(&format!("{a}{b}"))).row("A", "3 kept 60");
    let plan = built.plan();
    assert_eq!(point(&plan), "poster-session 2/2 [round[2]/poster]");
    assert_eq!(next(&plan), ["round[2]/roll"]);
    assert!(finding(&plan, "rows-exceed-events").hint.as_deref().unwrap().contains("1 of them"));
    // The live calls count the same way before anything is logged.
    let conference = read(&built);
    assert_eq!(conference.finished_iterations(2, "A"), 4);
    assert!(finishes(&conference, "A", 3));
    // And the resume logs it: the point stays.
    let after = changed(&built.files(), &plan.resumed_at("2026-05-04T22:30:00Z".parse().unwrap()));
    let resumed = plan_of(&after, "2026-05-04T22:30:00Z".parse().unwrap());
    assert_eq!(point(&resumed), point(&plan));
    assert!(import(&after).unwrap().history.is_logged(2, "A", 3));
    assert!(resumed.findings.is_empty(), "{:?}", resumed.findings);
}

#[test]
fn a_row_beyond_the_last_iteration_is_not_made_an_iteration() {
    let a = "A2.0 baseline 70\nA2.1 kept 66";
    let built = in_round_2(a).row("A", "2 kept 65").row("A", "3 kept 64");
    let conference = read(&built);
    assert_eq!(conference.finished_iterations(2, "A"), 3);
    assert_eq!(point(&built.plan()), "research-continue 1/2 [round[2]/research[B]]");
    let fourth =
        built.plan().told.step(&Address::from_text("round[2]/research[A]/iterate[3]/settle"));
    assert!(matches!(fourth, StepTold::PassedOver(_)), "{fourth:?}");
    let after = import(&changed(&built.files(), &built.plan().resumed())).unwrap();
    assert!(after.history.is_logged(2, "A", 2) && !after.history.is_logged(2, "A", 3));
}

#[test]
fn kept_rows_count_towards_the_budget_of_all_iterations() {
    let built = in_round_2("A2.0 baseline 70\nB2.0 baseline 70").row("A", "1 kept 66");
    assert_eq!(read(&built).history.iterations(), 9, "six, and three");
}

#[test]
fn rows_of_a_conference_that_is_over_make_no_round() {
    let built = conference(&format!("{ROUND_1}converged")).row("A", "0 baseline 70");
    let built = built.row("A", "1 kept 60");
    assert_eq!(point(&built.plan()), "synthesis 11/- [synthesis]");
    assert_eq!(read(&built).history.round(2), None);
}

#[test]
fn rows_alone_finish_a_round_whose_beginning_is_not_logged() {
    let rows = ["0 baseline 70", "1 kept 66", "2 kept 65"];
    let built = rows.iter().fold(conference(ROUND_1), |it, row| it.row("A", row).row("B", row));
    let plan = built.plan();
    assert_eq!(point(&plan), "poster-session 2/2 [round[2]/poster]");
    assert_eq!(next(&plan), ["round[2]/roll"]);
    assert_eq!(plan.undo, []);
    let one = rows.iter().fold(conference(ROUND_1), |it, row| it.row("A", row)).plan();
    assert_eq!(point(&one), "round-start 1/2 [round[2]/research[B]]");
}

#[test]
fn a_line_of_nuls_is_a_broken_line() {
    let built = in_round_2("A2.0 baseline 70").line("\0\0\0\0");
    let plan = built.plan();
    let found = finding(&plan, "broken-line");
    assert!(found.message.contains("line 14") && found.message.contains("NUL"), "{found:?}");
    assert_eq!(found.path.as_deref(), Some("conference_events.jsonl"));
    assert_eq!(plan.recovery_point.code, "research-continue");
    let started = What::RoundStarted { round: 3, researchers: Vec::new() };
    let after = read(&built)
        .after(&Happening { at: "2026-05-04T23:00:00Z".parse().unwrap(), what: started });
    assert_eq!(after.log.broken.len(), 1, "what follows it is read");
    assert!(after.history.round(3).is_some());
}

#[test]
fn a_row_of_nuls_at_the_end_of_a_table_goes_before_the_next_one_is_added() {
    let built = in_round_2("A2.0 baseline 70");
    let name = "researcher_A_results.tsv";
    let table = String::from_utf8(built.files().bytes(name).unwrap().to_vec()).unwrap();
    let built = built.file(name, &format!("{table}\0\0\0"));
    assert_eq!(finding(&built.plan(), "broken-line").path.as_deref(), Some(name));
    assert_eq!(undone(&built.files()).bytes(name), Some(table.as_bytes()));
}

#[test]
fn a_name_that_could_become_a_path_is_told_and_never_used() {
    for name in ["../../etc/x", "..", "a\\u0000b", "", &"x".repeat(200)] {
        let payload = format!(
            r#"{{"researcher":"{name}","round":2,"iteration":1,"metric_value":1,"status":"kept"}}"#
        );
        let line = format!(r#"{{"event":"researcher.iteration","payload":{payload}}}"#);
        let built = in_round_2("A2.0 baseline 70").line(&line);
        let plan = built.plan();
        let found = finding(&plan, "broken-line");
        assert!(found.message.contains("a name "), "{found:?}");
        assert!(read(&built).researchers_of(2).iter().eq(["A", "B"]), "{name}");
        assert!(plan.resumed().iter().all(|it| !it.path().contains("researcher_.")));
    }
}

#[test]
fn a_live_iteration_over_a_kept_row_writes_only_its_event() {
    let built = in_round_2("A2.0 baseline 70").row("A", "1 kept 66");
    let before = read(&built);
    let what = What::Iterated(Iterated {
        researcher: "A".to_owned(),
        round: 2,
        iteration: 1,
        metric: "66".to_owned(),
        status: Status::Kept,
        description: "a try".to_owned(),
        evaluator: "score.sh".to_owned(),
        hypothesis: "-".to_owned(),
        analysis: "-".to_owned(),
    });
    let after = before.after(&Happening { at: "2026-05-04T22:00:00Z".parse().unwrap(), what });
    assert!(after.history.is_logged(2, "A", 1));
    assert_eq!(after.researchers["A"].results, before.researchers["A"].results);
    assert_eq!(Point::of(&after).code, PointCode::ResearchContinue);
    assert_eq!(Point::of(&after).researchers, Point::of(&before).researchers);
}
