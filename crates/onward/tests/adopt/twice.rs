//! Resumed, killed, gone on with by the original skill, resumed again: one run all the while.

use std::fs;

use crate::tea::{LOG, Tea, first_lines};

/// Up to the end of the first round.
const ROUND_1: usize = 9;

#[test]
fn a_killed_resume_is_taken_up_by_the_next_one_and_nothing_runs_twice() {
    let tea = Tea::left(&Tea::finished(), ROUND_1);
    let mut engine = tea.held_at("round[2]/poster/draft", "resume --yes --no-input");
    engine.kill().unwrap();
    engine.wait().unwrap();
    tea.let_go();
    let list = tea.json("list --json");
    assert_eq!(list["runs"].as_array().unwrap().len(), 1, "{list}");
    let status = tea.json("status --json");
    assert_eq!(status["run"]["dialect"], "conference");
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole("killed once");
    assert_eq!(tea.runs().len(), 1);
    assert_eq!(tea.count("conference.resumed"), 2);
    let mut calls = tea.calls();
    calls.sort();
    let count = calls.len();
    calls.dedup();
    assert_eq!(calls.len(), count, "{calls:?}");
}

#[test]
fn what_the_original_skill_did_between_two_resumes_is_imported() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, ROUND_1);
    for (name, lines) in [("researcher_A", 3), ("researcher_B", 3), ("conference", 5)] {
        let name = format!("{name}_results.tsv");
        fs::write(tea.dir().join(&name), first_lines(&finished[&name], lines)).unwrap();
    }
    tea.killed_at("round[2]/research[A]/iterate[1]/propose", "resume --yes");
    // The skill takes over by itself: it ends the second round, in its own words.
    let theirs = String::from_utf8(finished[LOG].clone()).unwrap();
    let logged = String::from_utf8(tea.log()).unwrap();
    let is_new = |line: &&str| !logged.contains(line.split("\"payload\"").nth(1).unwrap());
    let mut more = theirs.lines().take(17).filter(is_new).collect::<Vec<_>>().join("\n") + "\n";
    assert!(more.contains("round.completed"), "{more}");
    more.insert_str(0, if logged.ends_with('\n') { "" } else { "\n" });
    tea.append_to_log(&more);
    for (name, bytes) in &finished {
        if name != LOG && name != "synthesis.md" && name != "final_report.md" {
            fs::write(tea.dir().join(name), bytes).unwrap();
        }
    }
    let before = tea.calls().len();
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "synthesis", "{plan:#}");
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(tea.calls()[before..], ["synthesis/draft"]);
    let adopted = r#""kind":"attempt.adopted","step":"round[2]/review/publish""#;
    assert!(tea.journal().contains(adopted));
    assert_eq!((tea.runs().len(), tea.count("conference.completed")), (1, 1));
}

#[test]
fn what_is_gone_from_the_log_is_said_and_done_again() {
    let tea = Tea::left(&Tea::finished(), ROUND_1);
    tea.killed_at("round[2]/review/judge", "resume --yes --no-input");
    // Everything after the first round and our own line.
    tea.set_log(&first_lines(&tea.log(), ROUND_1 + 1));
    let plan = tea.json("plan --json");
    let codes = plan["findings"].as_array().unwrap().iter().map(|it| it["code"].clone());
    assert!(codes.collect::<Vec<_>>().contains(&"status-disagrees".into()), "{plan:#}");
    // The rows of the second round are there, and count without their events.
    assert_eq!(plan["recovery_point"]["code"], "poster-session", "{plan:#}");
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole("cut back");
    let posters = tea.calls().iter().filter(|it| *it == "round[2]/poster/draft").count();
    assert!(posters >= 1, "{:?}", tea.calls());
}

#[test]
fn a_torn_last_line_gets_a_newline_first_and_stays() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, ROUND_1);
    tea.append_to_log(r#"{"event":"round.star"#);
    let torn = tea.log();
    tea.exits("resume --yes --no-input", 0);
    let log = tea.log();
    assert!(log.starts_with(&torn));
    assert_eq!(log[torn.len()], b'\n');
    tea.is_whole("torn");
}

#[test]
fn the_plan_changes_nothing_before_and_after_the_adoption() {
    let tea = Tea::left(&Tea::finished(), 14);
    let before = tea.contents();
    let first = tea.json("plan --json");
    assert_eq!((tea.contents(), tea.runs().len()), (before, 0));
    let run = tea.killed_at("round[2]/poster/draft", "resume --yes");
    let (contents, journal) = (tea.contents(), tea.journal());
    let second = tea.json("plan --json");
    assert_eq!((tea.contents(), tea.journal()), (contents, journal));
    for key in ["code", "phase", "round"] {
        let of = |plan: &serde_json::Value| plan["recovery_point"][key].clone();
        assert_eq!(of(&first), of(&second), "{second:#}");
    }
    assert_eq!(first["summary"].as_array().unwrap().len(), 5);
    assert_eq!(second["run"]["id"], run.file_name().unwrap().to_str().unwrap());
}

#[test]
fn a_directory_that_somebody_began_is_not_run_anew() {
    let tea = Tea::left(&Tea::finished(), 12);
    let said = tea.exits("run conference --no-input", 2);
    assert!(said.err.contains("onward resume"), "{said:?}");
    assert_eq!(tea.runs().len(), 0);
}
