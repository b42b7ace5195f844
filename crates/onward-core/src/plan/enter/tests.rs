//! `--from`: earlier, at, and later than where the run would go on by itself.

use super::*;
use crate::{
    event::Mode,
    plan::{Plan, plan, resumption},
    policy::{Choices, EnterAt},
    survey::Survey,
    testing::Bench,
};

const YAML: &str = "steps:
  - { id: a, run: x }
  - { id: g, steps: [{ id: b, run: y }, { id: c, run: z }] }
  - { id: d, run: w }
  - { id: e, run: v, needs: [a] }
";

fn from(script: &str, step: &str, force: bool) -> Plan {
    let bench = Bench::new(YAML).tell(script);
    let entry = EnterAt { step: step.into(), force };
    let choices = Choices { from: Some(entry), ..Choices::default() };
    let survey = Survey { now: bench.now, ..Survey::default() };
    plan(&bench.run, &survey, &choices, "dir").unwrap()
}

#[track_caller]
fn check(plan: &Plan, verdicts: &str, codes: &[&str]) {
    let words: Vec<String> =
        plan.steps.iter().map(|it| format!("{} {}", it.step, it.verdict.as_str())).collect();
    assert_eq!(words.join(", "), verdicts);
    let found: Vec<&str> = plan.findings.iter().map(|it| it.code.as_str()).collect();
    assert_eq!(found, codes);
}

#[test]
fn entering_earlier_runs_the_step_and_what_stands_on_it_again_and_warns() {
    let plan = from("a! e! g/b! g/c! d?", "g", false);
    let verdicts = "a keep, g/b rerun, g/c rerun, d rerun, e keep";
    check(&plan, verdicts, &["enters-earlier"]);
    assert!(plan.can_resume);
    assert!(plan.findings[0].message.contains("2 steps"), "{}", plan.findings[0].message);
}

#[test]
fn entering_at_one_step_leaves_what_does_not_stand_on_it() {
    let plan = from("a! e! g/b! g/c! d?", "g/c", false);
    check(&plan, "a keep, g/b keep, g/c rerun, d rerun, e keep", &["enters-earlier"]);
}

#[test]
fn entering_where_the_run_would_go_on_anyway_is_nothing_special() {
    let plan = from("a! e! g/b?", "g/b", false);
    check(&plan, "a keep, g/b rerun, g/c run, d run, e keep", &[]);
}

#[test]
fn entering_later_over_unfinished_work_is_refused_and_names_it() {
    let plan = from("a! e! g/b?", "d", false);
    check(&plan, "a keep, g/b rerun, g/c run, d run, e keep", &["phase-ahead-of-evidence"]);
    assert!(!plan.can_resume);
    assert!(plan.findings[0].message.contains("g/b, g/c"), "{}", plan.findings[0].message);
}

#[test]
fn entering_later_by_force_passes_the_unfinished_steps_over() {
    let plan = from("a! e! g/b?", "d", true);
    check(&plan, "a keep, g/b skip, g/c skip, d run, e keep", &[]);
    assert_eq!(plan.recovery_point.steps, ["d"]);
}

#[test]
fn only_steps_of_the_run_can_be_entered() {
    let bench = Bench::new(YAML).tell("");
    for (step, known) in [("a", true), ("g/b", true), ("g", true), ("x", false), ("", false)] {
        assert_eq!(has_entry(&bench.run, step), known, "{step}");
    }
}

#[test]
fn every_place_says_what_runs_again_and_what_is_passed_over() {
    let bench = Bench::new(YAML).tell("a! e! g/b! g/c?");
    let words = |entries: Vec<EntryPoint>| -> Vec<String> {
        let word = |it: EntryPoint| format!("{} {}/{}", it.step, it.redone, it.passed_over);
        entries.into_iter().map(word).collect()
    };
    let all = ["a 3/0", "g 1/0", "g/b 1/0", "g/c 0/0", "d 0/1", "e 1/0"];
    assert_eq!(words(entries(&bench.run, 10)), all);
    let phases = ["a 3/0", "g 1/0", "d 0/1", "e 1/0"];
    assert_eq!(words(entries(&bench.run, 4)), phases, "whole phases first");
    for (step, there) in [("g/b", true), ("x", false), ("", false)] {
        assert_eq!(entry(&bench.run, step).is_some(), there, "{step}");
    }
}

#[test]
fn the_journal_says_in_a_field_of_its_own_where_a_person_entered() {
    let bench = Bench::new(YAML).tell("a! e! g/b! g/c! d?");
    let survey = Survey { now: bench.now, ..Survey::default() };
    let entered = |from: Option<EnterAt>| {
        let choices = Choices { from, ..Choices::default() };
        let made = resumption(&bench.run, &survey, &choices);
        made.resumed(&bench.run.state, Mode::Autopilot, String::new(), None)
    };
    let there = entered(Some(EnterAt { step: "g/c".into(), force: false }));
    assert_eq!(there.entered.as_deref(), Some("g/c"));
    assert_eq!(there.accepted, ["from g/c"]);
    assert_eq!(entered(None).entered, None);
}
