//! For each code that core itself can find: a world that has it, and the nearest one that has not.

use super::*;
use crate::{
    digest::Digest,
    event::{AttemptAdopted, Certainty, Edit, Event},
    evidence::{Evidence, Usd},
    key::Difference,
    plan::resumption,
    policy::Choices,
    said::Spent,
    survey::CommitSeen,
    testing::Bench,
};

const CHAIN: &str = "steps: [{ id: a, run: x }, { id: b, run: y }, { id: c, run: z }]";

fn at(text: &str) -> Address {
    Address::from_text(text)
}

/// The run and the world around it.
struct World {
    bench: Bench,
    survey: Survey,
}

fn after(yaml: &str, script: &str) -> World {
    let bench = Bench::new(yaml).tell(script);
    let survey = Survey { now: bench.now, ..Survey::default() };
    World { bench, survey }
}

impl World {
    fn findings(&self) -> Vec<Finding> {
        resumption(&self.bench.run, &self.survey, &Choices::default()).findings
    }

    fn codes(&self) -> Vec<String> {
        self.findings().into_iter().map(|it| it.code).collect()
    }

    fn message(&self, code: &str) -> String {
        let found = self.findings().into_iter().find(|it| it.code == code);
        found.map(|it| it.message).unwrap_or_default()
    }

    fn seen(mut self, change: impl FnOnce(&mut Survey)) -> Self {
        change(&mut self.survey);
        self
    }

    fn on_branch(mut self, change: impl FnOnce(&mut GitSeen)) -> Self {
        let head = GitHead { branch: Some("main".into()), head: Some("aaa".into()) };
        let mut git = GitSeen { known: head.clone(), now: head, ..GitSeen::default() };
        change(&mut git);
        self.survey.git = Some(git);
        self
    }

    fn adopting(mut self, step: &str) -> Self {
        self.bench.record(Event::AttemptAdopted(Box::new(AttemptAdopted {
            step: at(step),
            source: "person".into(),
            certainty: Certainty::Recorded,
            evidence: Evidence::default(),
            result: None,
            by: None,
        })));
        self
    }
}

#[track_caller]
fn check(code: &str, has: &World, has_not: &World) {
    assert!(has.codes().iter().any(|it| it == code), "{code} not in {:?}", has.codes());
    assert!(!has_not.codes().iter().any(|it| it == code), "{code} in {:?}", has_not.codes());
}

fn edited(redefined: bool) -> Edited {
    let class = if redefined { EditClass::TouchesDone } else { EditClass::Pending };
    let difference = Difference { part: "definition.run".into(), was: None, is: None };
    let touched = redefined.then(|| (at("a"), vec![difference]));
    Edited {
        hash: Digest::of(b"new"),
        edits: vec![Edit { step: "a".into(), class }],
        redefined: touched.into_iter().collect(),
        begun: [].into(),
        gone: [].into(),
    }
}

#[test]
fn age_and_clock_are_measured_from_the_last_event() {
    let day = |days: u64| {
        move |survey: &mut Survey| survey.now = survey.now.plus_ms(days * 86_400_000 + 1000)
    };
    let run = || after(CHAIN, "a!x");
    check("stale-age", &run().seen(day(8)), &run().seen(day(6)));
    let message = run().seen(day(8)).message("stale-age");
    assert_eq!(message, "nothing has happened for 8 days");
    let early = |seconds: i64| {
        move |survey: &mut Survey| {
            let now = survey.now.as_micros() - seconds * 1_000_000;
            survey.now = crate::time::Timestamp::from_micros(now);
        }
    };
    check("clock-in-future", &run().seen(early(301)), &run().seen(early(299)));
}

#[test]
fn many_resumes_are_a_warning_and_three_in_vain_block() {
    check("resumed-repeatedly", &after(CHAIN, "R R R"), &after(CHAIN, "R R"));
    let blocks = |script: &str| {
        let world = after(CHAIN, script);
        let made = resumption(&world.bench.run, &world.survey, &Choices::default());
        made.findings.iter().any(|it| it.severity() == crate::finding::Severity::Blocking)
    };
    assert!(blocks("a?crash R a?crash R a?crash R a?crash"));
    assert!(!blocks("a?crash R a?crash R a?crash"));
    assert!(!blocks("a?crash R a?crash R a?timeout R a?crash"));
    assert!(!blocks("a?crash R a?crash R a!x b?crash R b?crash"), "something was finished");
    let capped = "limits: { resumes: 2 }\nsteps: [{ id: a, run: x }]";
    check("resumed-repeatedly", &after(capped, "R R"), &after(capped, "R"));
}

#[test]
fn a_spent_budget_is_said_before_anything_is_tried() {
    let yaml = "limits: { usd: 2 }\nsteps: [{ id: a, run: x }]";
    let spending = |usd: u64| {
        let mut world = after(yaml, "");
        let event =
            Event::AttemptSpent { step: at("a"), attempt: 1, spent: Spent::of_usd(Usd(usd)) };
        world.bench.record(event);
        world
    };
    check("budget-elapsed", &spending(2_000_000), &spending(1_999_999));
}

#[test]
fn done_work_over_work_never_begun_is_suspect() {
    let phases = "steps: [{ id: p, steps: [{ id: a, run: x }, { id: b, run: y }, \
                  { id: c, run: z }] }]";
    let code = "done-with-unfinished-dependency";
    check(code, &after(phases, "").adopting("p/c"), &after(phases, "p/a!x").adopting("p/b"));
    let code = "phase-ahead-of-evidence";
    let two = "steps: [{ id: a, run: x }, { id: b, run: y }, { id: c, run: z }]";
    check(code, &after(two, "").adopting("c"), &after(two, "a!x").adopting("b"));
    // Upstream that runs again is no contradiction: that is what `verify` is for.
    let again = after(two, "a!x b!y aX");
    assert_eq!(again.codes(), Vec::<String>::new());
}

#[test]
fn a_run_whose_end_was_never_written_says_so() {
    let mut over = after("steps: [{ id: a, run: x }]", "");
    over = over.adopting("a");
    check("all-done-not-delivered", &over, &after("steps: [{ id: a, run: x }]", "a!x"));
}

#[test]
fn the_repository_is_held_against_what_the_run_wrote_down() {
    let run = || after(CHAIN, "a!x");
    let clean = || run().on_branch(|_| {});
    let other = |git: &mut GitSeen| git.now.branch = Some("other".into());
    check("branch-mismatch", &run().on_branch(other), &clean());
    let commit = |by| CommitSeen { id: "c0ffee".into(), subject: "s".into(), by };
    check("missing-commits", &run().on_branch(|git| git.missing.push(commit(None))), &clean());
    let foreign = run().on_branch(|git| git.commits.push(commit(None)));
    let ours = run().on_branch(|git| git.commits.push(commit(Some((at("a"), 1)))));
    check("unexpected-commits", &foreign, &ours);
    check("dirty-tree", &run().on_branch(|git| git.changed.push("x".into())), &clean());
    assert_eq!(clean().codes(), Vec::<String>::new());
}

#[test]
fn other_witnesses_and_old_approvals_are_findings() {
    let run = || after(CHAIN, "a!x");
    let disagree = |survey: &mut Survey| {
        survey.disagreements.insert(at("a"), "its seal says exit 1".into());
    };
    check("status-disagrees", &run().seen(disagree), &run());
    let moved = |survey: &mut Survey| survey.outdated_approvals.push(at("a"));
    check("approval-outdated", &run().seen(moved), &run());
}

#[test]
fn an_edited_workflow_is_news_and_a_touched_step_a_warning() {
    let run = || after(CHAIN, "a!x");
    let edit = |redefined| move |survey: &mut Survey| survey.edited = Some(edited(redefined));
    check("workflow-changed", &run().seen(edit(false)), &run());
    let said = |redefined| run().seen(edit(redefined)).message("workflow-changed");
    let kept = "the workflow file was edited: a (what is done of it is kept)";
    assert_eq!(said(false), kept);
    let begun = after(CHAIN, "").seen(edit(false)).message("workflow-changed");
    assert_eq!(begun, "the workflow file was edited: a (not finished)");
    assert_eq!(said(true), "the workflow file was edited: a (touching finished work)");
    check("definition-touches-done", &run().seen(edit(true)), &run().seen(edit(false)));
}

#[test]
fn long_lists_are_counted() {
    let names: Vec<String> = (1..=7).map(|n| format!("f{n}")).collect();
    assert_eq!(some_of(&names), "f1, f2, f3, f4, f5 and 2 more");
    assert_eq!(some_of(&names[..5]), "f1, f2, f3, f4, f5");
}
