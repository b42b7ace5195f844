//! The time budget is over in mid-round: what the log does not have is passed over, not adopted.

use std::{fmt::Write as _, fs};

use onward_core::{event::Event, journal::decode_line};

use crate::tea::{LOG, Tea};

const BUDGET: &str = "## Constraints\n- **Time budget:** 1h\n\n";

/// The second round was begun long ago, within minutes, with a time budget of an hour. The log is
/// all there is: no row speaks for an iteration that it does not have.
fn long_ago() -> Tea {
    let finished = Tea::finished();
    let log = String::from_utf8(finished[LOG].clone()).unwrap();
    let (mut aged, mut rounds) = (String::new(), 0);
    for (minute, line) in log.lines().enumerate() {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["timestamp"] = format!("2024-05-04T20:{minute:02}:00Z").into();
        writeln!(aged, "{event}").unwrap();
        rounds += usize::from(event["event"] == "round.started");
        // The second round has begun, and one of its iterations is logged.
        if rounds == 2 && event["event"] == "researcher.iteration" {
            break;
        }
    }
    let tea = Tea::new();
    tea.set_log(aged.as_bytes());
    let document = String::from_utf8(finished["conference.md"].clone()).unwrap();
    let document = document.replace("## Shared Knowledge", &format!("{BUDGET}## Shared Knowledge"));
    fs::write(tea.dir().join("conference.md"), document).unwrap();
    tea
}

/// Steps of the second round: those that were adopted, and those that were skipped.
fn second_round(tea: &Tea) -> (Vec<String>, Vec<String>) {
    let (mut adopted, mut skipped) = (Vec::new(), Vec::new());
    for line in tea.journal().lines() {
        let event = decode_line(line.as_bytes()).unwrap().event;
        if let Event::AttemptAdopted(it) = event {
            adopted.push(it.step.to_string());
        } else if let Event::StepSkipped { step, .. } = event {
            skipped.push(step.to_string());
        }
    }
    adopted.retain(|it| it.starts_with("round[2]/"));
    skipped.retain(|it| it.starts_with("round[2]/"));
    (adopted, skipped)
}

#[test]
fn a_resume_on_another_day_goes_straight_to_the_synthesis_and_adopts_only_what_is_logged() {
    let tea = long_ago();
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "research-continue", "{plan:#}");
    assert!(plan["summary"].to_string().contains("over with this resume"), "{plan:#}");
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(tea.calls(), ["synthesis/draft"]);
    assert_eq!((tea.count("round.completed"), tea.count("conference.completed")), (1, 1));
    let (adopted, skipped) = second_round(&tea);
    let who = &adopted[1]["round[2]/".len()..]["research[".len()..][..1];
    let baseline = ["score", "settle"].map(|it| format!("round[2]/research[{who}]/baseline/{it}"));
    assert_eq!(adopted, ["round[2]/begin".to_owned(), baseline[0].clone(), baseline[1].clone()]);
    for id in ["poster/draft", "poster/publish", "review/judge", "transfer", "converge"] {
        assert!(skipped.contains(&format!("round[2]/{id}")), "{id}: {skipped:#?}");
    }
}

#[test]
fn raising_the_budget_brings_back_what_was_passed_over() {
    let tea = long_ago();
    tea.killed_at("synthesis/draft", "resume --yes --no-input");
    let document = fs::read_to_string(tea.dir().join("conference.md")).unwrap();
    fs::write(tea.dir().join("conference.md"), document.replace(BUDGET, "")).unwrap();
    let plan = tea.json("plan --json");
    assert_eq!(plan["recovery_point"]["code"], "research-continue", "{plan:#}");
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole("raised");
}
