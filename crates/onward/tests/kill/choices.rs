//! What a person decides about a resume: accepted findings, another point of entry, an edited
//! workflow, a run that has lain for days.

use std::path::PathBuf;

use onward_core::time::Timestamp;

use crate::bench::{Bench, codes, kill_all, sees_nobody_left};

/// The third step fails until the file `ok` is there.
const CHAIN: &str = "
  - { id: a, run: 'LOG; echo a > a.txt', writes: [a.txt] }
  - { id: b, run: 'LOG; cat a.txt > b.txt', reads: [a.txt], writes: [b.txt] }
  - { id: c, run: 'LOG; test -e ok' }
";

fn stopped() -> Bench {
    let bench = Bench::new(CHAIN);
    bench.exits("run w.yaml", 10);
    bench
}

fn ran(bench: &Bench) -> String {
    bench.text("ledger.txt").split_whitespace().step_by(2).collect::<Vec<_>>().join(" ")
}

fn found(bench: &Bench, arguments: &str) -> Vec<String> {
    let plan = bench.exits(arguments, 0).json();
    codes(&plan).into_iter().map(str::to_owned).collect()
}

#[test]
fn an_old_run_needs_a_yes_to_its_age() {
    let bench = stopped();
    bench.write("ok", "");
    let later = "--now 2099-01-01T00:00:00Z";
    assert_eq!(found(&bench, &format!("plan {later} --json")), ["stale-age"]);
    let said = bench.exits(&format!("resume {later}"), 16);
    assert!(said.err.contains("stale-age"), "{said:?}");
    assert!(said.err.contains("--accept stale-age"), "{said:?}");
    bench.exits(&format!("resume {later} --accept stale-age"), 0);
    assert_eq!(ran(&bench), "a b c c");
}

#[test]
fn a_warning_about_a_run_of_some_days_waits_for_a_person() {
    let bench = stopped();
    bench.write("ok", "");
    bench.write("a.txt", "improved\n");
    let plan = bench.exits("plan --json", 0).json();
    let last: Timestamp = plan["run"]["last_event"]["at"].as_str().unwrap().parse().unwrap();
    let later = format!("--now {}", last.plus_ms(2 * 86_400_000));
    bench.exits(&format!("resume {later}"), 16);
    bench.exits(&format!("resume {later} --yes"), 0);
    assert_eq!(ran(&bench), "a b c b c");
    assert_eq!(bench.text("b.txt"), "improved\n");
}

#[test]
fn what_the_policy_went_on_over_is_in_the_journal_with_its_reason() {
    let bench = stopped();
    bench.write("ok", "");
    bench.write("a.txt", "improved\n");
    bench.exits("resume", 0);
    let log = bench.exits("log --json", 0).out;
    assert!(log.contains("continued despite artifact-changed"), "{log}");
    assert!(log.contains("the run is recent"), "{log}");
}

#[test]
fn nobody_can_accept_what_does_not_exist() {
    let bench = stopped();
    let said = bench.exits("resume --accept No-Such-Thing", 2);
    assert!(said.err.contains("does not name a finding"), "{said:?}");
    let said = bench.exits("resume --accept no-such-thing", 2);
    assert!(said.err.contains("no finding `no-such-thing`"), "{said:?}");
    let said = bench.exits("resume --from nowhere", 2);
    assert!(said.err.contains("no step `nowhere`"), "{said:?}");
    assert_eq!(ran(&bench), "a b c", "nothing was touched");
}

/// Killed with everything while `step` runs.
fn killed_in(step: &str, steps: &str) -> (Bench, PathBuf) {
    let bench = Bench::new(steps);
    let (run, _) = bench.run_and_kill(|_| !bench.ran(step).is_empty());
    kill_all(&run);
    (bench, run)
}

#[test]
fn an_interrupted_step_is_unfinished_to_whoever_enters_after_it() {
    let steps = "  - { id: a, run: LOG }\n  - { id: b, run: 'LOG; sleep 1000' }\n\
        \x20 - { id: c, run: LOG }\n";
    let (bench, _) = killed_in("b", steps);
    let said = bench.exits("resume --from c", 16);
    assert!(said.err.contains("unfinished: b"), "{said:?}");
    assert_eq!(ran(&bench), "a b");
    bench.exits("resume --from c --force", 0);
    assert_eq!(ran(&bench), "a b c");
}

const ASKED: &str = "  - { id: a, run: 'LOG; echo 1 > one', writes: [one] }\n\
    \x20 - { id: ask, gate: Is it good?, shows: [one] }\n\
    \x20 - { id: b, run: LOG, when: \"{{ 1 == 2 }}\" }\n\
    \x20 - { id: c, run: 'LOG; echo 2 > one' }\n  - { id: d, run: 'LOG; test -e ok' }\n";

#[test]
fn an_answer_to_what_has_moved_is_asked_for_again_in_the_plan_too() {
    let bench = Bench::new(ASKED);
    bench.exits("run w.yaml", 11);
    bench.exits("approve", 0);
    bench.write("one", "edited\n");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"approval-outdated"), "{plan:#}");
    assert_eq!(
        (&plan["steps"][1]["step"], &plan["steps"][1]["verdict"]),
        (&"ask".into(), &"ask".into())
    );
}

#[test]
fn an_answer_to_what_has_moved_is_asked_for_again_by_a_gate_that_is_the_last_step() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > one', writes: [one] }\n\
         \x20 - { id: ask, gate: Is it good?, shows: [one] }\n",
    );
    bench.exits("run w.yaml", 11);
    bench.exits("approve", 0);
    bench.write("one", "edited\n");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let plan = bench.plan(&run);
    let codes = codes(&plan);
    assert!(codes.contains(&"approval-outdated"), "{plan:#}");
    assert!(!codes.contains(&"all-done-not-delivered"), "{plan:#}");
    bench.exits("resume --no-input --yes", 11);
    bench.exits("approve", 0);
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(ran(&bench), "a");
}

/// What the gate shows is about to be made again: the next thing to type is a resume.
#[test]
fn a_gate_behind_an_edited_step_is_not_what_comes_next() {
    let bench = Bench::new(ASKED);
    bench.exits("run w.yaml", 11);
    let asked = bench.exits("", 0).out;
    assert!(asked.contains("onward approve "), "{asked}");
    bench.write("w.yaml", &bench.text("w.yaml").replace("echo 1 > one", "echo one > one"));
    for command in ["", "status"] {
        let said = bench.exits(command, 0).out;
        assert!(said.contains("onward resume ") && !said.contains("approve"), "{command}: {said}");
    }
    bench.exits("resume --no-input --yes", 11);
    assert_eq!(ran(&bench), "a a");
}

#[test]
fn an_answer_that_was_acted_on_behind_a_skipped_step_is_used_up() {
    let bench = Bench::new(ASKED);
    bench.exits("run w.yaml", 11);
    bench.exits("approve", 0);
    bench.exits("resume", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let plan = bench.plan(&run);
    assert!(!codes(&plan).contains(&"approval-outdated"), "{plan:#}");
}

#[test]
fn the_plan_tells_how_an_attempt_failed_that_nobody_saw_end() {
    let bench = Bench::new("  - { id: a, run: 'LOG; while ! test -e go; do :; done; exit 3' }\n");
    let (run, _) = bench.run_and_kill(|_| !bench.ran("a").is_empty());
    bench.write("go", "");
    sees_nobody_left(&run);
    let plan = bench.plan(&run);
    let why: Vec<&str> = plan["steps"][0]["why"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["detail"].as_str().unwrap())
        .collect();
    assert!(why.iter().any(|it| it.starts_with("exit 3: counts as failed")), "{plan:#}");
    bench.exits("resume", 10);
}

#[test]
fn an_effect_that_nothing_can_tell_about_is_asked_about_by_the_plan_too() {
    let (bench, run) = killed_in("a", "  - { id: a, run: 'LOG; sleep 1000', effect: outside }\n");
    let plan = bench.plan(&run);
    assert_eq!((codes(&plan), &plan["can_resume"]), (vec!["effect-unknown"], &false.into()));
    assert_eq!(plan["needs"].as_array().unwrap().len(), 1, "{plan:#}");
    bench.exits("resume", 16);
}

#[test]
fn entering_earlier_runs_what_stands_on_it_again() {
    let bench = stopped();
    bench.write("ok", "");
    bench.exits("resume --from a", 0);
    assert_eq!(ran(&bench), "a b c a b c");
}

#[test]
fn entering_later_takes_force_and_what_was_passed_over_is_skipped() {
    let bench = Bench::new(
        "
  - { id: a, run: 'LOG; test -e ok' }
  - { id: b, run: 'LOG' }
  - { id: c, run: 'LOG' }
",
    );
    bench.exits("run w.yaml", 10);
    let said = bench.exits("resume --from c", 16);
    assert!(said.err.contains("a, b"), "{said:?}");
    bench.exits("resume --from c --force", 0);
    assert_eq!(ran(&bench), "a c");
    let log = bench.exits("log --json", 0).out;
    assert!(log.contains("a person entered at c"), "{log}");
}

#[test]
fn a_label_changes_nothing_and_a_command_runs_its_step_again() {
    let bench = stopped();
    bench.write("ok", "");
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("{ id: a,", "{ id: a, description: first, timeout: 5m,"));
    assert_eq!(found(&bench, "plan --json"), ["workflow-changed"]);
    bench.write("w.yaml", &text.replace("echo a > a.txt", "echo A > a.txt"));
    assert_eq!(found(&bench, "plan --json"), ["workflow-changed", "definition-touches-done"]);
    let why = bench.exits("why a --json", 0).json();
    assert_eq!(why["causes"][0]["part"], "definition.run");
    assert!(why["causes"][0]["is"].as_str().unwrap().contains("echo A"), "{why}");
    bench.exits("resume", 0);
    assert_eq!(ran(&bench), "a b c a b c");
    assert_eq!(bench.text("b.txt"), "A\n");
}

#[test]
fn an_edited_workflow_that_was_accepted_is_remembered() {
    let bench = stopped();
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("test -e ok", "test -e OK"));
    bench.exits("resume", 10);
    // Even when the file is gone, the run knows what it accepted.
    std::fs::remove_file(bench.path("w.yaml")).unwrap();
    assert_eq!(found(&bench, "plan --json"), Vec::<String>::new());
    bench.write("OK", "");
    bench.exits("resume", 0);
    assert_eq!(ran(&bench), "a b c c c");
}

#[test]
fn a_finished_step_can_be_kept_under_its_new_definition() {
    let bench = stopped();
    bench.write("ok", "");
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("echo a > a.txt", "echo A > a.txt"));
    bench.exits("resume --keep a", 0);
    assert_eq!(ran(&bench), "a b c c");
    assert_eq!(bench.text("a.txt"), "a\n");
}

#[test]
fn the_copy_is_used_when_asked_for_and_when_the_file_is_no_workflow_now() {
    let bench = stopped();
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("echo a > a.txt", "echo A > a.txt"));
    bench.exits("resume --pinned", 10);
    assert_eq!(ran(&bench), "a b c c");
    bench.write("w.yaml", "steps: [");
    assert_eq!(found(&bench, "plan --json"), ["workflow-changed"]);
    bench.write("ok", "");
    bench.exits("resume", 0);
    assert_eq!(ran(&bench), "a b c c c");
}

#[test]
fn three_resumes_in_vain_stop_the_fourth_and_say_why() {
    let bench = stopped();
    for _ in 0..3 {
        bench.exits("resume", 10);
    }
    let said = bench.exits("resume", 16);
    assert!(said.err.contains("resumed-repeatedly"), "{said:?}");
    assert!(said.err.contains("3 resumes in a row ended in `failed`"), "{said:?}");
    bench.write("ok", "");
    bench.exits("resume --accept resumed-repeatedly", 0);
    assert_eq!(ran(&bench), "a b c c c c c");
}

#[test]
fn an_agent_that_is_not_set_up_is_found_before_anything_runs() {
    let bench = Bench::new("\n  - { id: a, run: 'LOG; test -e ok' }\n");
    bench.exits("run w.yaml", 10);
    let text = bench.text("w.yaml");
    let text = text.replace("test -e ok' }", "test -e ok' }\n  - { id: z, agent: amp, prompt: x }");
    bench.write("w.yaml", &text);
    assert!(found(&bench, "plan --json").contains(&"prerequisite-missing".to_owned()));
}

#[test]
fn preflight_runs_the_checks_of_finished_steps_again_and_plan_runs_none() {
    let bench = Bench::new(
        "
  - { id: a, run: 'LOG; touch made', writes: [made], check: 'echo >> checked; test -e fine' }
  - { id: b, run: 'LOG; test -e ok' }
",
    );
    bench.write("fine", "");
    bench.exits("run w.yaml", 10);
    assert_eq!(bench.text("checked"), "\n");
    bench.exits("plan", 0);
    bench.exits("resume", 10);
    assert_eq!(bench.text("checked"), "\n", "a quick look runs no check");
    bench.exits("resume --mode preflight", 10);
    assert_eq!((ran(&bench), bench.text("checked").len()), ("a b b b".to_owned(), 2));
    std::fs::remove_file(bench.path("fine")).unwrap();
    bench.write("ok", "");
    let said = bench.exits("resume --mode preflight --json", 10);
    assert!(said.out.contains("its check does not agree any more"), "{said:?}");
    assert_eq!(ran(&bench), "a b b b a");
}
