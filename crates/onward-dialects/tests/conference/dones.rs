//! Walking the built-in workflow by what the files prove done ends at the recovery point.

use onward_core::{address::Address, event::Certainty};
use onward_dialects::conference::{
    Conference,
    done::{done, passed_over},
    import,
    recovery::{Code, point},
};
use serde_json::Value;

use crate::builder::{ROUND_1, conference};

/// The result of a step, where it is done.
fn result(conference: &Conference, step: &str) -> Option<Value> {
    done(conference, &Address::from_text(step)).map(|done| done.result)
}

/// Nobody has done it, and somebody will.
fn is_open(conference: &Conference, step: &str) -> bool {
    let passed_over = passed_over(conference, &Address::from_text(step)).is_some();
    result(conference, step).is_none() && !passed_over
}

/// The first steps that are not done: what the workflow would start.
fn frontier(conference: &Conference) -> Vec<String> {
    let first = |steps: &[&str]| {
        let open = steps.iter().find(|step| is_open(conference, step));
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
        if result(conference, &step("converge")).is_none_or(|it| it["over"] == true) {
            break;
        }
    }
    let last = ["synthesis/draft", "synthesis/publish", "worktrees", "close"];
    first(&last).unwrap_or_default()
}

fn researching(conference: &Conference, who: &str, turns: u64) -> Option<String> {
    let open = |step: String| is_open(conference, &step).then_some(step);
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
        if result(conference, &step("settle")).is_none_or(|it| it["finished"] == true) {
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

#[test]
fn when_time_is_over_in_mid_round_what_is_not_logged_is_passed_over_and_never_done() {
    let out_of_time = |lines: &str| {
        let built = conference(&format!("{ROUND_1}{lines}")).says("budget:** 8h", "budget:** 1h");
        import(&built.files()).unwrap()
    };
    let research = "round 2: A B\nA2.0 baseline 70\n";
    let posted = format!("{research}B2.0 baseline 70\nA2.1 kept 69\nposter 2\n");
    let reviewed = format!("{posted}review 2\n");
    let proved = ["begin", "research[A]/baseline/score", "research[A]/baseline/settle"];
    let tail = ["poster/publish", "review/judge", "review/publish", "transfer", "converge"];
    for (lines, done_of_tail) in [(research, 0), (&posted, 1), (&reviewed, 3)] {
        let told = out_of_time(lines);
        agrees(&told);
        let is_done = |id: &&str| result(&told, &format!("round[2]/{id}")).is_some();
        assert!(proved.iter().all(is_done), "{lines}");
        assert!(tail[..done_of_tail].iter().all(is_done), "{lines}");
        for id in &tail[done_of_tail..] {
            assert!(!is_done(id), "{id} after {lines}");
            let why = passed_over(&told, &Address::from_text(&format!("round[2]/{id}")));
            assert!(why.is_some_and(|it| it.contains("time budget is over")), "{id}");
        }
    }
    let early = out_of_time(research);
    assert_eq!(result(&early, "round[2]/research[B]/baseline/score"), None);
    assert_eq!(result(&early, "round[2]/research[A]/iterate[1]/settle"), None);
}

#[test]
fn what_only_follows_from_the_log_is_inferred() {
    let of = |script: &str| {
        let built = conference(script).row("A", "1 kept 66");
        let told = import(&built.files()).unwrap();
        move |step: &str| done(&told, &Address::from_text(step)).map(|it| it.certainty)
    };
    let recorded = Some(Certainty::Recorded);
    let inferred = Some(Certainty::Inferred);
    let whole = of(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70"));
    let logged = [
        "open",
        "round[1]/begin",
        "round[1]/poster/publish",
        "round[1]/research[B]/iterate[2]/propose",
    ];
    for step in logged {
        assert_eq!(whole(step), recorded, "{step}");
    }
    assert_eq!(whole("round[1]/roll"), inferred, "nobody logs it");
    assert_eq!(whole("round[1]/converge"), inferred, "another round has begun");
    assert_eq!(whole("round[2]/research[A]/baseline/settle"), recorded);
    assert_eq!(whole("round[2]/research[A]/iterate[1]/settle"), inferred, "only its row is there");
    assert_eq!(whole("round[2]/research[B]/baseline/settle"), None);
    // As a real log has it: iterations, and the end of the round.
    let bare = of("start\nA1.0 baseline 80\nB1.0 baseline 80\nend 1 80");
    for step in ["begin", "poster/publish", "review/judge", "research[A]/iterate[2]/settle"] {
        assert_eq!(bare(&format!("round[1]/{step}")), inferred, "{step}");
    }
    assert_eq!(bare("round[1]/transfer"), recorded);
    assert_eq!(bare("round[1]/research[A]/baseline/settle"), recorded);
}
