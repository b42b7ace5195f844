//! One workflow, one edit, one progress: what the edit is, and what it makes stale.

use std::sync::Arc;

use super::*;
use crate::{
    graph::Defs,
    plan::{Plan, plan},
    policy::Choices,
    survey::Survey,
    testing::Bench,
    workflow,
};

const BEFORE: &str = "agents: { w: { use: claude, model: sonnet } }
steps:
  - { id: a, run: make a, writes: [a] }
  - { id: b, agent: w, prompt: write, timeout: 5m }
  - { id: c, run: make c }
";

fn load(yaml: &str) -> Workflow {
    let text = format!("onward: 1\nname: test\n{yaml}");
    let mut nothing = |path: &str| Err(format!("{path} is not there"));
    workflow::load("test.yaml", text.as_bytes(), &mut nothing).unwrap().workflow
}

/// The run after `script`, holding the workflow with `from` replaced by `to`.
fn after_edit(script: &str, from: &str, to: &str) -> (Run, Edited) {
    assert!(BEFORE.contains(from), "{from}");
    let new = load(&BEFORE.replace(from, to));
    let bench = Bench::new(BEFORE).tell(script);
    let run = Run::new(Arc::new(Defs::new(new.clone())), bench.run.state);
    let hash = Digest::of(b"new");
    let edited = edited(&load(BEFORE), &new, &run, &Facts::default(), hash).unwrap();
    (run, edited)
}

/// `a cosmetic, b touches_done`
#[track_caller]
fn check(script: &str, from: &str, to: &str, expected: &str) {
    let (_, edited) = after_edit(script, from, to);
    let words: Vec<String> = edited
        .edits
        .iter()
        .map(|edit| {
            let class = match edit.class {
                EditClass::Cosmetic => "cosmetic",
                EditClass::Pending => "pending",
                EditClass::TouchesDone => "touches_done",
            };
            format!("{} {class}", edit.step)
        })
        .collect();
    assert_eq!(words.join(", "), expected, "{from} -> {to} after {script}");
}

fn planned(script: &str, from: &str, to: &str, choices: &Choices) -> Plan {
    let (run, edited) = after_edit(script, from, to);
    let now = run.state.last_at;
    let survey = Survey { now, edited: Some(edited), ..Survey::default() };
    plan(&run, &survey, choices, "dir").unwrap()
}

fn verdicts(plan: &Plan) -> String {
    let words: Vec<String> =
        plan.steps.iter().map(|it| format!("{} {}", it.step, it.verdict.as_str())).collect();
    words.join(", ")
}

#[test]
fn an_edit_is_classed_by_what_it_says_and_how_far_the_run_got() {
    check("a!x", "timeout: 5m", "timeout: 9m", "b cosmetic");
    check("a!x b!", "timeout: 5m", "timeout: 9m", "b cosmetic");
    check("a!x", "make c", "make d", "c pending");
    check("a!x", "make a", "make d", "a touches_done");
    check("", "make a", "make d", "a pending");
    check("a!x", "model: sonnet", "model: opus", "b pending");
    check("a!x b!", "model: sonnet", "model: opus", "b touches_done");
    check("a!x", "id: a,", "id: a, description: the first,", "a cosmetic");
    check("a!x", "id: a,", "id: a, idle: 9m, retry: { max: 2 },", "a cosmetic");
    // Asked in other words, it is the same question.
    check("a!x", "run: make a", "run: \"make {{ 'a' }}\"", "a pending");
    check("a!x b! bX", "model: sonnet", "model: opus", "b pending");
    check("a!x b!", "steps:\n", "steps:\n  # a comment\n", "");
    check("a!x", "  - { id: c, run: make c }\n", "", "c pending");
    check("a!x b!", "id: c, run: make c", "id: d, run: make c", "c pending, d pending");
}

#[test]
fn an_edit_in_a_group_is_an_edit_of_the_step_in_it() {
    let before = "steps: [{ id: g, steps: [{ id: a, run: x }, { id: b, run: y }] }]";
    let new = load(&before.replace("run: y", "run: z").replace("{ id: a, run: x }, ", ""));
    let bench = Bench::new(before).tell("g/a!x");
    let run = Run::new(Arc::new(Defs::new(new.clone())), bench.run.state);
    let hash = Digest::of(b"new");
    let edited = edited(&load(before), &new, &run, &Facts::default(), hash).unwrap();
    let found: Vec<_> = edited.edits.iter().map(|it| (it.step.as_str(), it.class)).collect();
    assert_eq!(found, [("g/a", EditClass::TouchesDone), ("g/b", EditClass::Pending)]);
}

#[test]
fn a_step_that_is_gone_touches_done_work_only_if_it_was_done() {
    let line = "  - { id: a, run: make a, writes: [a] }\n";
    check("a!x", line, "", "a touches_done, b pending");
    check("", line, "", "a pending, b pending");
}

#[test]
fn only_the_touched_step_runs_again_and_the_part_is_named() {
    let plan = planned("a!x b!", "model: sonnet", "model: opus", &Choices::default());
    assert_eq!(verdicts(&plan), "a keep, b rerun, c run");
    let why = &plan.steps[1].why[0];
    assert_eq!(why.cause, "agent.model");
    assert_eq!((why.was.as_deref(), why.is.as_deref()), (Some("sonnet"), Some("opus")));
    assert!(plan.can_resume);
}

#[test]
fn labels_and_comments_make_nothing_stale() {
    let plan = planned("a!x b!", "timeout: 5m", "timeout: 9m", &Choices::default());
    assert_eq!(verdicts(&plan), "a keep, b keep, c run");
}

#[test]
fn a_person_may_keep_a_touched_step_and_it_holds_under_the_new_key_from_then_on() {
    let keep = Choices { keep: vec![Address::from_text("b")], ..Choices::default() };
    let plan = planned("a!x b!", "model: sonnet", "model: opus", &keep);
    assert_eq!(verdicts(&plan), "a keep, b keep, c run");
    let codes: Vec<&str> = plan.findings.iter().map(|it| it.code.as_str()).collect();
    assert_eq!(codes, ["workflow-changed"]);
}
