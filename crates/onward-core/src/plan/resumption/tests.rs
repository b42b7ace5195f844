//! What a person leaves in the tree, and effects that are on record.

use super::*;
use crate::{
    event::{Revert, SettledBy},
    plan::{
        plan,
        tests::{CHAIN, EFFECT, at, in_flight, survey, verdicts, with_b},
    },
    testing::Bench,
};

fn leaving(step: &str) -> Choices {
    Choices { leave: vec![at(step)], ..Choices::default() }
}

/// What is put back, and what is said about the step.
fn left(bench: &Bench, survey: &Survey, choices: &Choices, step: &str) -> (usize, String) {
    let plan = plan(&bench.run, survey, choices, "dir").unwrap();
    let step = plan.steps.iter().find(|it| it.step == step).unwrap();
    let causes: Vec<&str> = step.why.iter().map(|it| it.cause.as_str()).collect();
    (plan.reverts.len(), causes.join(" "))
}

#[test]
fn what_an_interrupted_step_changed_stays_where_a_person_says_so() {
    let (bench, survey) = with_b("Sd");
    assert_eq!(left(&bench, &survey, &Choices::default(), "b"), (2, "died-dirty".into()));
    assert_eq!(left(&bench, &survey, &leaving("b"), "b"), (0, "died-dirty left".into()));
    assert_eq!(left(&bench, &survey, &leaving("a"), "b"), (2, "died-dirty".into()));
    let made = resumption(&bench.run, &survey, &leaving("b"));
    let Event::AttemptLost { reverted, .. } = &made.events[0] else { panic!("it is lost") };
    assert!(reverted.is_empty());
}

#[test]
fn what_a_failed_step_changed_stays_where_a_person_says_so() {
    let bench = Bench::new(CHAIN).tell("a!x b?");
    let mut survey = survey(&bench);
    let revert = Revert { path: "p".into(), rescue: "rescue/1-b".into(), ..Revert::default() };
    survey.left_by_failed.insert(at("b"), vec![revert]);
    assert_eq!(left(&bench, &survey, &Choices::default(), "b"), (1, "failed".into()));
    assert_eq!(left(&bench, &survey, &leaving("b"), "b"), (0, "failed left".into()));
}

#[test]
fn an_effect_that_is_on_record_is_adopted_unless_its_end_is_known_otherwise() {
    for (letters, verdict) in [
        ("S", "b adopt, c run"),
        ("Sd", "b adopt, c run"),
        ("Sdc", "b adopt, c run"),
        ("Sa", "b reattach, c run"),
        ("", "b run, c run"),
    ] {
        let mut bench = Bench::new(EFFECT).tell("");
        let (step, effect) = (at("b"), "e".to_owned());
        bench.record(Event::EffectIntended { step, attempt: 1, effect });
        let (step, by) = (at("b"), SettledBy::Probe);
        bench.record(Event::EffectSettled { step, attempt: 1, happened: true, by });
        let mut survey = survey(&bench);
        survey.in_flight.insert(at("b"), in_flight(letters));
        let plan = plan(&bench.run, &survey, &Choices::default(), "dir").unwrap();
        assert_eq!(verdicts(&plan), verdict, "{letters}");
        let made = resumption(&bench.run, &survey, &Choices::default());
        let adopts = made.events.iter().any(|it| matches!(it, Event::AttemptAdopted(_)));
        assert_eq!(adopts, verdict.contains("adopt"), "{letters}");
    }
}

#[test]
fn a_step_that_was_passed_over_runs_when_it_has_a_place_again() {
    let yaml = "steps: [{ id: a, run: x }, { id: b, run: y, when: '{{ false }}' }]";
    let bench = Bench::new(yaml).tell("a!x");
    let mut survey = survey(&bench);
    let invalidated = |survey: &Survey| -> Vec<Address> {
        let made = resumption(&bench.run, survey, &Choices::default());
        let step = |event: &Event| {
            let Event::StepInvalidated { step, .. } = event else { panic!("{event:?}") };
            step.clone()
        };
        made.events.iter().map(step).collect()
    };
    assert!(invalidated(&survey).is_empty());
    survey.disagreements.insert(at("b"), "the files do not".to_owned());
    assert_eq!(invalidated(&survey), [at("b")]);
}
