//! Walking the built-in workflow by what the files prove done ends at the recovery point.

use onward_core::{
    address::Address,
    event::Certainty,
    told::{StepTold, Told},
};
use onward_dialects::conference::{Conference, export};

use crate::builder::{ROUND_1, conference, next, plan_of, point, told};

fn step(told: &dyn Told, step: &str) -> StepTold {
    told.step(&Address::from_text(step))
}

fn is_done(told: &dyn Told, at: &str) -> bool {
    matches!(step(told, at), StepTold::Done(_))
}

/// What core would start lies within the steps of the recovery point, or is a call that comes
/// before them: whether there is another round, its beginning, and the roll after the research.
#[track_caller]
pub(crate) fn agrees(conference: &Conference) {
    let plan = plan_of(&export(conference), "2026-05-05T20:00:00Z".parse().unwrap());
    let at = &plan.recovery_point;
    let found = next(&plan);
    let round = at.round.unwrap_or(0);
    let call = |id: &str| vec![format!("round[{round}]/{id}")];
    let expected = match at.code.as_str() {
        "complete" => Vec::new(),
        "round-start" if !conference.history.started => vec!["open".to_owned()],
        "round-start" if conference.history.round(round).is_some() => within(&found, &at.steps),
        "round-start" if round == 1 => call("begin"),
        // Whether there is another round is asked first.
        "round-start" => vec![format!("round[{}]/converge", round - 1)],
        "poster-session" => call("roll"),
        "peer-review" if conference.researchers_of(round).len() == 1 => call("roll"),
        _ => within(&found, &at.steps),
    };
    assert_eq!(found, expected, "{}", point(&plan));
}

/// `found`, if each of it lies within one of the steps, and each of these holds one of it.
#[track_caller]
fn within(found: &[String], steps: &[String]) -> Vec<String> {
    let is_in =
        |step: &String, at: &String| Address::from_text(step).is_within(&Address::from_text(at));
    assert!(found.iter().all(|step| steps.iter().any(|at| is_in(step, at))), "{found:?} {steps:?}");
    assert!(steps.iter().all(|at| found.iter().any(|step| is_in(step, at))), "{found:?} {steps:?}");
    found.to_vec()
}

#[test]
fn when_time_is_over_in_mid_round_what_is_not_logged_is_passed_over_and_never_done() {
    let out_of_time =
        |lines: &str| conference(&format!("{ROUND_1}{lines}")).says("budget:** 8h", "budget:** 1h");
    let research = "round 2: A B\nA2.0 baseline 70\n";
    let posted = format!("{research}B2.0 baseline 70\nA2.1 kept 69\nposter 2\n");
    let reviewed = format!("{posted}review 2\n");
    let proved = ["begin", "research[A]/baseline/score", "research[A]/baseline/settle"];
    let tail = ["poster/publish", "review/judge", "review/publish", "transfer", "converge"];
    for (lines, done_of_tail) in [(research, 0), (&posted, 1), (&reviewed, 3)] {
        let built = out_of_time(lines);
        assert_eq!(next(&built.plan()), ["synthesis/draft"]);
        let told = told(&built.files());
        let is_done = |id: &&str| is_done(&*told, &format!("round[2]/{id}"));
        assert!(proved.iter().all(is_done), "{lines}");
        assert!(tail[..done_of_tail].iter().all(is_done), "{lines}");
        for id in &tail[done_of_tail..] {
            let said = step(&*told, &format!("round[2]/{id}"));
            let StepTold::PassedOver(why) = said else { panic!("{id}: {said:?}") };
            assert!(why.contains("time budget is over"), "{id}: {why}");
        }
    }
    let early = told(&out_of_time(research).files());
    assert!(!is_done(&*early, "round[2]/research[B]/baseline/score"));
    assert!(!is_done(&*early, "round[2]/research[A]/iterate[1]/settle"));
}

#[test]
fn what_only_follows_from_the_log_is_inferred() {
    let of = |script: &str| {
        let told = told(&conference(script).row("A", "1 kept 66").files());
        move |at: &str| match step(&*told, at) {
            StepTold::Done(done) => Some(done.certainty),
            StepTold::PassedOver(_)
            | StepTold::Unproved(_)
            | StepTold::Undone
            | StepTold::Silent => None,
        }
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
    assert_eq!(whole("round[1]/roll"), inferred, "no event tells of it");
    assert_eq!(whole("round[1]/converge"), inferred, "another round has begun");
    assert_eq!(whole("round[2]/research[A]/baseline/settle"), recorded);
    assert_eq!(whole("round[2]/research[A]/iterate[1]/settle"), inferred, "only its row is there");
    assert_eq!(whole("round[2]/research[B]/baseline/settle"), None);
    // As a real log has it: iterations, and the end of the round.
    let bare = of("start\nA1.0 baseline 80\nB1.0 baseline 80\nend 1 80");
    for step in ["begin", "poster/publish", "review/judge"] {
        assert_eq!(bare(&format!("round[1]/{step}")), inferred, "{step}");
    }
    assert_eq!(bare("round[1]/research[A]/iterate[2]/settle"), None, "it never was");
    assert_eq!(bare("round[1]/transfer"), recorded);
    assert_eq!(bare("round[1]/research[A]/baseline/settle"), recorded);
}

#[test]
fn the_files_tell_when_what_they_witness_is_not_done() {
    let built = conference(&format!("{ROUND_1}round 2: A B\nA2.0 baseline 70"));
    let told = told(&built.files());
    for at in [
        "round[2]/research[A]/iterate[1]/settle",
        "round[2]/poster/publish",
        "round[2]/review/publish",
        "round[2]/transfer",
        "round[3]/begin",
        "round[3]/research[A]/iterate[1]/propose",
        "synthesis/publish",
        "close",
    ] {
        assert_eq!(step(&*told, at), StepTold::Undone, "{at}");
    }
    for at in [
        "round[2]/research[A]/iterate[1]/propose",
        "round[2]/research[A]/iterate[1]/score",
        "round[2]/roll",
        "round[2]/poster/draft",
        "round[2]/converge",
        "worktrees",
        "no/such/step",
    ] {
        assert_eq!(step(&*told, at), StepTold::Silent, "{at}");
    }
}

#[test]
fn proposals_of_researchers_that_all_failed_came_to_nothing() {
    let script = "round 2: A B\nA2.0 baseline 70\nstuck A2 \"timeout\"\nstuck B2 \"timeout\"";
    let propose = "round[2]/research[A]/iterate[1]/propose";
    let of = |more: &str| {
        let built = conference(&format!("{ROUND_1}{script}{more}"));
        step(&*told(&built.files()), propose)
    };
    assert_eq!(of(""), StepTold::Silent);
    assert_eq!(of("\nfailed"), StepTold::Undone);
}

#[test]
fn a_researcher_that_came_later_takes_no_part_in_a_round_that_began_without_it() {
    let script = format!("{ROUND_1}round 2: A B\nA2.0 baseline 70\nA2.1 kept 66\nA2.2 kept 65");
    let built = conference(&script).says("**Count:** 2", "**Count:** 3");
    let told = told(&built.files());
    let said = step(&*told, "round[2]/research[C]/baseline/score");
    assert!(matches!(said, StepTold::PassedOver(_)), "{said:?}");
    assert_eq!(next(&built.plan()), ["round[2]/research[B]/baseline/score"]);
}
