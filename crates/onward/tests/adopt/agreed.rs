//! What the plan says is what the resume does, and ends as if nothing had happened.

use std::fs;

use serde_json::Value;

use onward_engine::care::harness::until;

use crate::{
    bench::{kill_all, sees},
    tea::Tea,
};

const POSTER: &str = "round[2]/poster/draft";

fn edited(pairs: &[(&str, &str)]) -> Tea {
    let tea = Tea::new();
    let path = tea.dir().join("conference.md");
    let mut text = fs::read_to_string(&path).unwrap();
    for (old, new) in pairs {
        assert!(text.contains(old), "{old}");
        text = text.replace(old, new);
    }
    fs::write(path, text).unwrap();
    tea
}

fn steps(plan: &Value) -> Vec<&str> {
    let steps = plan["recovery_point"]["steps"].as_array().unwrap();
    steps.iter().map(|it| it.as_str().unwrap()).collect()
}

fn verdict<'a>(plan: &'a Value, step: &str) -> &'a str {
    let mut steps = plan["steps"].as_array().unwrap().iter();
    steps.find(|it| it["step"] == step).map_or("none", |it| it["verdict"].as_str().unwrap())
}

/// The events without the line of a resume, those of parallel researchers in order.
fn story(tea: &Tea) -> Vec<String> {
    let mut events = tea.events();
    events.retain(|it| it != "conference.resumed");
    events
}

#[test]
fn phases_that_the_other_system_did_meanwhile_are_not_among_what_the_plan_starts() {
    let tea = Tea::new();
    tea.killed_at(POSTER, "run conference --no-input");
    fs::write(tea.dir().join("poster_session_round_2.md"), "# Poster\n\nTheirs.\n").unwrap();
    let review = "# Review\n\n### A\n- **Verdict:** validated\n\nYes.\n";
    fs::write(tea.dir().join("peer_review_round_2.md"), review).unwrap();
    let at = "2026-05-04T20:00:00Z";
    for name in ["poster_session", "peer_review"] {
        let payload = "\"payload\":{\"round\":2}";
        let line = format!("{{\"event\":\"round.{name}\",\"timestamp\":\"{at}\",{payload}}}\n");
        tea.append_to_log(&line);
    }
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "knowledge-transfer");
    assert_eq!(steps(&plan), ["round[2]/transfer"]);
    for step in [POSTER, "round[2]/poster/publish", "round[2]/review/judge"] {
        assert_eq!(verdict(&plan, step), "keep", "{step}: {plan:#}");
    }
    let before = tea.calls();
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(tea.calls()[before.len()..], ["synthesis/draft".to_owned()]);
}

#[test]
fn a_round_that_used_up_the_iterations_is_reviewed_whether_or_not_it_was_interrupted() {
    let budget = "## Constraints\n- **Max total iterations:** 8\n\n## Shared Knowledge";
    let edits = [("round:** 2", "round:** 3"), ("## Shared Knowledge", budget)];
    let undisturbed = edited(&edits);
    undisturbed.exits("run conference --no-input", 0);
    assert_eq!(undisturbed.count("researcher.iteration"), 8);
    assert_eq!(undisturbed.count("round.peer_review"), 2);
    // One iteration is left for each in round 2, and that is the baseline.
    assert!(!undisturbed.calls().iter().any(|it| it.starts_with("round[2]/research")));
    let tea = edited(&edits);
    tea.killed_at(POSTER, "run conference --no-input");
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "poster-session");
    assert_eq!(steps(&plan), [POSTER]);
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(story(&tea), story(&undisturbed));
}

#[test]
fn a_round_in_which_every_researcher_is_stuck_is_shown_and_reviewed_whatever_interrupts_it() {
    let stuck = || {
        let tea = edited(&[("round:** 2", "round:** 9")]);
        let agent = tea.root.join("agent.sh");
        let text = fs::read_to_string(&agent).unwrap();
        fs::write(agent, text.replace("n - 1", "n + 1")).unwrap();
        tea
    };
    let last = |tea: &Tea| {
        let story = story(tea);
        let end = story.iter().position(|it| it == "round.poster_session").unwrap();
        story[end..].to_vec()
    };
    let wanted = [
        "round.poster_session",
        "round.peer_review",
        "round.completed",
        "conference.stalled",
        "conference.completed",
    ];
    let undisturbed = stuck();
    undisturbed.exits("run conference --no-input", 0);
    assert_eq!(last(&undisturbed), wanted);
    let tea = stuck();
    tea.killed_at("round[1]/review/judge", "run conference --no-input");
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "peer-review");
    assert_eq!(steps(&plan), ["round[1]/review/judge"]);
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(last(&tea), wanted);
    // A round that is open is finished first.
    let tea = stuck();
    tea.killed_at("round[1]/poster/draft", "run conference --no-input");
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "poster-session", "{plan:#}");
    assert_eq!(steps(&plan), ["round[1]/poster/draft"]);
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(last(&tea), wanted);
}

/// Killed while a researcher works; meanwhile the other system ended the rounds: that attempt is
/// lost, and is not begun again.
#[test]
fn an_iteration_that_the_conference_has_no_place_for_any_more_is_told_as_such() {
    let tea = Tea::new();
    let step = "round[1]/research[A]/iterate[1]/propose";
    let mut engine = tea.held_at(step, "run conference --no-input");
    // The other one goes on to the end of its iterations, and nothing of it is in flight any more.
    let over = r#""kind":"loop.ended","step":"round[1]/research[B]/iterate""#;
    until("the other researcher to end", || Ok(tea.journal().contains(over).then_some(())))
        .unwrap();
    engine.kill().unwrap();
    engine.wait().unwrap();
    let [run] = tea.runs().try_into().unwrap();
    kill_all(&run);
    tea.let_go();
    let (at, payload) = ("2026-05-04T20:00:00Z", "{\"reason\":\"metric_plateau\"}");
    let event = "\"event\":\"conference.converged\"";
    tea.append_to_log(&format!("{{{event},\"timestamp\":\"{at}\",\"payload\":{payload}}}\n"));
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "synthesis", "{plan:#}");
    assert_eq!(steps(&plan), ["synthesis/draft"], "{plan:#}");
    let before = tea.calls().len();
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(tea.calls()[before..], ["synthesis/draft"]);
}

#[test]
fn a_run_of_another_system_continues_in_the_background() {
    let tea = Tea::left(&Tea::finished(), 15);
    fs::write(tea.root.join("hold"), "round[2]/review/judge").unwrap();
    let said = tea.exits("resume --detach --no-input --yes", 0);
    assert!(said.err.contains("continues in the background"), "{said:?}");
    sees(&tea.root.join("held"));
    tea.let_go();
    until("the run to end", || Ok(tea.journal().contains("run.ended").then_some(()))).unwrap();
    tea.is_whole("by the driver in the background");
}
