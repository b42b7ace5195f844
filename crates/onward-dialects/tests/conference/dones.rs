//! Walking the built-in workflow by what the files prove done ends at the recovery point.

use onward_core::address::Address;
use onward_dialects::conference::{
    Conference,
    done::done,
    recovery::{Code, point},
};
use serde_json::Value;

/// The result of a step, where it is done.
fn result(conference: &Conference, step: &str) -> Option<Value> {
    done(conference, &Address::from_text(step)).map(|done| done.result)
}

/// The first steps that are not done: what the workflow would start.
fn frontier(conference: &Conference) -> Vec<String> {
    let first = |steps: &[&str]| {
        let open = steps.iter().find(|step| result(conference, step).is_none());
        open.map(|step| vec![(*step).to_owned()])
    };
    if let Some(open) = first(&["open", "confirm", "partition", "start"]) {
        return open;
    }
    let opened = result(conference, "open").unwrap();
    for number in 1..=opened["max_rounds"].as_u64().unwrap() {
        let step = |id: &str| format!("round[{number}]/{id}");
        let Some(begun) = result(conference, &step("begin")) else { return vec![step("begin")] };
        let researchers = opened["researchers"].as_array().unwrap();
        let research = |who: &Value| {
            let who = step(&format!("research[{}]", who.as_str().unwrap()));
            researching(conference, &who, begun["turns"].as_u64().unwrap())
        };
        let open: Vec<String> = researchers.iter().filter_map(research).collect();
        if !open.is_empty() {
            return open;
        }
        let alone = researchers.len() < 2;
        let posters = ["poster/draft", "poster/publish"].into_iter().filter(|_| !alone);
        let rest = ["review/judge", "review/publish", "transfer", "converge"];
        let steps: Vec<String> =
            ["roll"].into_iter().chain(posters).chain(rest).map(step).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        if let Some(open) = first(&steps) {
            return open;
        }
        if result(conference, &step("converge")).unwrap()["over"] == true {
            break;
        }
    }
    let last = ["synthesis/draft", "synthesis/publish", "worktrees", "close"];
    first(&last).unwrap_or_default()
}

fn researching(conference: &Conference, who: &str, turns: u64) -> Option<String> {
    let open = |step: String| result(conference, &step).is_none().then_some(step);
    for what in ["score", "settle"] {
        if let Some(step) = open(format!("{who}/baseline/{what}")) {
            return Some(step);
        }
    }
    for turn in 1..=turns {
        let step = |what: &str| format!("{who}/iterate[{turn}]/{what}");
        for what in ["brief", "propose", "score", "settle"] {
            if let Some(step) = open(step(what)) {
                return Some(step);
            }
        }
        if result(conference, &step("settle")).unwrap()["finished"] == true {
            break;
        }
    }
    None
}

/// Of every state that the driver of `cuts` comes through.
#[track_caller]
pub(crate) fn agrees(conference: &Conference) {
    let at = point(conference);
    let round = at.round.unwrap_or(0);
    let step = |id: &str| vec![format!("round[{round}]/{id}")];
    let found = frontier(conference);
    let expected = match at.code {
        Code::Complete => Vec::new(),
        Code::Close => vec!["worktrees".to_owned()],
        Code::RoundStart if !conference.history.started => vec!["open".to_owned()],
        Code::RoundStart if round == 1 => step("begin"),
        // Whether there is another round is asked first.
        Code::RoundStart => vec![format!("round[{}]/converge", round - 1)],
        Code::PosterSession => step("roll"),
        Code::PeerReview if conference.researchers_of(round).len() == 1 => step("roll"),
        Code::PeerReview => step("review/judge"),
        Code::KnowledgeTransfer => step("transfer"),
        Code::Synthesis => vec!["synthesis/draft".to_owned()],
        Code::ResearchContinue | Code::ResearchRestart => {
            let of = |step: &String| {
                let rest = step.split_once("research[").unwrap().1;
                rest.split_once(']').unwrap().0.to_owned()
            };
            let who: Vec<String> = found.iter().map(of).collect();
            assert_eq!(who, at.researchers, "{found:?}");
            return;
        }
    };
    assert_eq!(found, expected, "{:?}", at.code);
}
