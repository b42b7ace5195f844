//! The plan, the screen and the files of a run say what is, also of what came to nothing while no
//! engine was there.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use onward_engine::{care::harness::until, revert::rescue};
use serde_json::{Value, json};

use crate::bench::{Bench, id, kill_all, sees, sees_nobody_left, signal, spend};

pub(crate) fn row<'p>(plan: &'p Value, step: &str) -> &'p Value {
    let rows = plan["steps"].as_array().unwrap();
    rows.iter().find(|row| row["step"] == step).unwrap_or(&Value::Null)
}

pub(crate) fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    row(plan, step)["verdict"].as_str().unwrap_or_default()
}

/// What a step does first that is let go by the file `go`.
pub(crate) const WAITS: &str = "LOG; touch begun; while ! test -e go; do sleep 0.02; done";

/// Starts the run, kills its engine in the midst of the first step, and lets that step end.
pub(crate) fn ended_meanwhile(bench: &Bench) -> PathBuf {
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    bench.write("go", "");
    until("a seal", || {
        let seals = fs::read(run.join("exits.jsonl")).unwrap_or_default();
        let seals = String::from_utf8_lossy(&seals).into_owned();
        Ok(["exited", "signalled"].iter().any(|it| seals.contains(it)).then_some(()))
    })
    .unwrap();
    sees_nobody_left(&run);
    run
}

/// A person changes `x.md`, a minute later.
fn by_hand_later(bench: &Bench) {
    bench.write("x.md", "by hand\n");
    let file = fs::File::options().write(true).open(bench.path("x.md")).unwrap();
    let later = file.metadata().unwrap().modified().unwrap() + Duration::from_mins(1);
    file.set_modified(later).unwrap();
}

fn undone(run: &Path) -> Vec<String> {
    let all = rescue::list(run).unwrap().rescues;
    all.iter().flat_map(|it| it.note.paths.iter().map(|path| path.path.clone())).collect()
}

#[test]
fn k1_nothing_behind_a_step_that_failed_meanwhile_is_said_to_start() {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: '{WAITS}; exit 3' }}\n  - {{ id: b, run: LOG }}\n  \
         - {{ id: c, run: LOG }}\n  \
         - {{ id: g, steps: [{{ id: d, run: LOG }}] }}\n  \
         - {{ id: m, each: [x], run: LOG }}\n  - {{ id: free, needs: [], run: LOG }}\n"
    ));
    bench.workflow("w.yaml", "limits: { parallel: 1 }\nsteps:", &{
        let text = bench.text("w.yaml");
        text.split_once("steps:\n").unwrap().1.to_owned()
    });
    let run = ended_meanwhile(&bench);
    let plan = bench.plan(&run);
    for step in ["b", "c", "g/d", "m"] {
        assert_eq!(verdict(&plan, step), "verify", "{step}: {plan:#}");
        assert!(row(&plan, step).to_string().contains("it waits for a: a failed"), "{plan:#}");
    }
    assert_eq!(verdict(&plan, "free"), "run", "{plan:#}");
    assert_eq!(plan["recovery_point"]["steps"], json!(["free"]), "{plan:#}");
    let page = bench.exits("plan", 0);
    assert!(page.out.contains("1 step failed meanwhile, 4 to verify, 1 to run"), "{page:?}");
    bench.exits("resume --no-input", 10);
    let ran = ["a", "b", "c", "g/d", "m[x]", "free"].map(|step| bench.ran(step).len());
    assert_eq!(ran, [1, 0, 0, 0, 0, 1], "as the rows say");
}

#[test]
fn k1_a_retry_of_a_step_that_failed_meanwhile_names_what_it_undoes() {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: '{WAITS}; echo half > x.md; test $ONWARD_ATTEMPT = 2', \
         writes: [x.md], retry: {{ max: 1, on: [failed] }} }}\n  - {{ id: b, run: LOG }}\n"
    ));
    let run = ended_meanwhile(&bench);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("rerun", "run"), "{plan:#}");
    let revert = &plan["reverts"][0];
    assert_eq!(revert["path"], "x.md", "{plan:#}");
    let planned = revert["rescue"].as_str().unwrap().to_owned();
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("a"), undone(&run)), (vec![1, 2], vec!["x.md".to_owned()]));
    assert!(run.join(planned).exists(), "it is kept where the plan says");
}

#[test]
fn k1_a_retry_that_other_hands_hinder_is_not_promised() {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: '{WAITS}; echo half > x.md; exit 3', \
         writes: [x.md], retry: {{ max: 1, on: [failed] }} }}\n  - {{ id: b, run: LOG }}\n"
    ));
    let run = ended_meanwhile(&bench);
    by_hand_later(&bench);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "a"), "adopt", "{plan:#}");
    assert!(row(&plan, "a").to_string().contains("not tried again before you were asked"));
    assert_eq!(plan["reverts"], json!([]), "{plan:#}");
    bench.exits("resume --no-input", 10);
    assert_eq!((bench.ran("a"), bench.text("x.md")), (vec![1], "by hand\n".into()));
    assert_eq!(bench.plan(&run)["can_resume"], false, "now it asks");
}

#[test]
fn k1_a_loop_whose_last_turn_ended_meanwhile_is_not_through() {
    for (says, is_through) in [("no", false), ("yes", true)] {
        let bench = Bench::new(&format!(
            "  - id: r\n    \
             repeat: {{ max: 1, until: \"{{{{ steps.t.stdout | trim == 'yes' }}}}\" }}\n    \
             steps:\n      - {{ id: t, run: '{WAITS}; echo {says}' }}\n  \
             - {{ id: b, run: LOG }}\n  \
             - {{ id: c, run: LOG }}\n"
        ));
        let run = ended_meanwhile(&bench);
        let plan = bench.plan(&run);
        let expected = if is_through { "run" } else { "verify" };
        assert_eq!((verdict(&plan, "b"), verdict(&plan, "c")), (expected, expected), "{plan:#}");
        let summary = plan["recovery_point"]["summary"].as_str().unwrap();
        assert_eq!(summary.contains("as many as it may, and is not through"), !is_through);
        bench.exits("resume --no-input", if is_through { 0 } else { 10 });
        assert_eq!(bench.ran("c").len(), usize::from(is_through));
    }
}

#[test]
fn k1_a_failure_that_the_workflow_goes_on_without_is_told_as_that() {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: '{WAITS}; exit 3', on_failure: continue }}\n  - {{ id: b, run: LOG }}\n"
    ));
    let run = ended_meanwhile(&bench);
    let plan = bench.plan(&run);
    assert!(row(&plan, "a").to_string().contains("the workflow continues without it"), "{plan:#}");
    let status = bench.exits(&format!("status --json {}", id(&run)), 0).json();
    assert_eq!(status["counts"]["done"], 1, "{status:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("b"), [1]);
}

/// A signal is no receipt of what happened outside: a retry might do it twice.
#[test]
fn k2_an_effect_that_was_ended_by_a_signal_meanwhile_is_asked_about_before_it_is_made_again() {
    let bench = Bench::new(&format!(
        "  - {{ id: e, effect: outside, retry: {{ max: 1, on: [crash, failed] }}, \
         run: '{WAITS}; test $ONWARD_ATTEMPT = 2 || kill -9 $$' }}\n  - {{ id: b, run: LOG }}\n"
    ));
    let run = ended_meanwhile(&bench);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "e"), &plan["can_resume"]), ("ask", &json!(false)), "{plan:#}");
    bench.exits("resume --no-input --yes", 16);
    assert_eq!(bench.ran("e"), [1]);
    bench.exits("resume --no-input --accept effect-unknown", 0);
    assert_eq!((bench.ran("e"), bench.ran("b")), (vec![1, 2], vec![1]));
}

/// An exit code is: it did not happen.
#[test]
fn k2_an_effect_that_failed_meanwhile_is_tried_again_as_its_row_says() {
    let bench = Bench::new(&format!(
        "  - {{ id: e, effect: outside, retry: {{ max: 1, on: [failed] }}, \
         run: '{WAITS}; test $ONWARD_ATTEMPT = 2' }}\n  - {{ id: b, run: LOG }}\n"
    ));
    let run = ended_meanwhile(&bench);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "e"), &plan["can_resume"]), ("rerun", &json!(true)), "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!((bench.ran("e"), bench.ran("b")), (vec![1, 2], vec![1]));
}

#[test]
fn k3_over_budget_the_plan_starts_nothing_and_says_what_comes_when_it_is_raised() {
    let steps = "  - { id: a, run: 'LOG; touch begun; test -e go || sleep 1000' }\n  \
                 - { id: b, run: LOG }\n";
    let bench = Bench::new(steps);
    bench.workflow("w.yaml", "limits: { usd: 1 }\nsteps:", steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    spend(&run, "a", 1.5);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("verify", "verify"), "{plan:#}");
    assert!(row(&plan, "a").to_string().contains("rerun, when the budget is raised"), "{plan:#}");
    let summary = plan["recovery_point"]["summary"].as_str().unwrap();
    assert!(summary.contains("nothing starts; when it is raised, continues at a"), "{summary}");
    assert_eq!(plan["recovery_point"]["steps"], json!([]));
    let page = bench.exits("plan", 0);
    assert!(page.out.contains("raise `limits.usd` in w.yaml, then `onward resume"), "{page:?}");
    bench.write("go", "");
    bench.exits("resume --no-input", 13);
    assert_eq!(bench.ran("b"), [0; 0]);
    bench.workflow("w.yaml", "limits: { usd: 5 }\nsteps:", steps);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "b"), "run", "{plan:#}");
    bench.exits("resume --no-input", 0);
}

/// As if everything had been killed between the announcement of an attempt and its spawn.
fn never_spawned(bench: &Bench, run: &Path) {
    let log = run.join("exits.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let before = lines.iter().take_while(|it| !it.contains("\"kind\":\"spawning\""));
    fs::write(log, before.copied().collect::<String>()).unwrap();
    fs::remove_file(bench.path("ledger.txt")).unwrap();
}

#[test]
fn k3_over_budget_a_step_that_was_announced_and_never_spawned_is_not_started() {
    let steps = "  - { id: a, run: 'LOG; touch begun; test -e go || sleep 1000' }\n";
    let bench = Bench::new(steps);
    bench.workflow("w.yaml", "limits: { usd: 1 }\nsteps:", steps);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    never_spawned(&bench, &run);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "a"), "run", "{plan:#}");
    assert!(row(&plan, "a").to_string().contains("about to start"), "{plan:#}");
    spend(&run, "a", 1.5);
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "a"), "verify", "{plan:#}");
    assert!(row(&plan, "a").to_string().contains("run, when the budget is raised"), "{plan:#}");
    assert_eq!(plan["recovery_point"]["steps"], json!([]), "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 13);
    assert_eq!(bench.ran("a"), [0; 0]);
    bench.workflow("w.yaml", "limits: { usd: 5 }\nsteps:", steps);
    assert_eq!(verdict(&bench.plan(&run), "a"), "run");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("a").len(), 1);
}

/// Each file below a directory, and each directory.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            all.extend(all_below(&entry.path()));
        } else {
            all.push(entry.path());
        }
    }
    all
}

#[test]
fn k4_a_secret_in_the_result_of_a_step_that_was_killed_with_everything_goes() {
    let secret = "tok-5f0c9a77d1";
    let bench = Bench::new(
        "  - { id: a, result: { schema: s.json }, run: 'LOG; \
         printf \"\\\"%s\\\"\" \"$A_TOKEN\" > \"$ONWARD_RESULT\"; echo 1 > x.md; touch begun; \
         test $ONWARD_ATTEMPT = 2 || sleep 1000', writes: [x.md] }\n",
    );
    bench.write("s.json", "{}");
    let mut command = bench.command("run w.yaml");
    command.env("A_TOKEN", secret).stdout(std::process::Stdio::null());
    let mut engine = onward_engine::care::harness::EngineProcess::start(&mut command).unwrap();
    let run = onward_engine::care::harness::first_run(&bench.project(), &mut engine);
    let run = run.unwrap().unwrap();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let holds = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(secret.len()).any(|it| it == secret.as_bytes())
    };
    let raw: Vec<PathBuf> = all_below(&run).into_iter().filter(holds).collect();
    assert_eq!(raw, [run.join("out/a.1.result")], "what a killed attempt leaves");
    for command in ["plan", "plan --json", "status", "status --json", "log"] {
        let said = bench.exits(command, 0);
        assert!(!format!("{said:?}").contains(secret), "{command}: {said:?}");
    }
    // The one who resumes has no such variable.
    bench.exits("resume --no-input", 0);
    let raw: Vec<PathBuf> = all_below(&run).into_iter().filter(holds).collect();
    assert!(raw.is_empty(), "{raw:?}");
    let text = fs::read_to_string(run.join("out/a.1.result")).unwrap();
    assert!(text.contains("[redacted:A_TOKEN]"), "{text}");
}

#[test]
fn k5_all_that_a_run_keeps_is_its_users_alone() {
    let bench = crate::support::repo::repo(
        "",
        "  - { id: a, result: { schema: s.json }, run: 'LOG; umask 022; \
         echo 1 > \"$ONWARD_RESULT\"; echo 1 > x.md', writes: [x.md], check: 'test -e x.md' }\n  \
         - { id: e, edits: true, run: 'LOG; echo new > base.txt; test -e go' }\n  \
         - { id: m, each: [p, q], run: 'LOG; echo {{ item }}' }\n  \
         - { id: l, repeat: { max: 2 }, run: LOG }\n  \
         - { id: o, effect: outside, probe: { run: 'true' }, run: LOG }\n  \
         - { id: ok, gate: Go on?, shows: [x.md] }\n  - { id: z, run: LOG }\n",
    );
    bench.write("s.json", "{}");
    bench.exits("run w.yaml --no-input", 10);
    let run = bench.project().runs().unwrap()[0].dir.clone();
    bench.write("go", "");
    bench.exits("resume --no-input --yes", 11);
    bench.exits("approve", 0);
    bench.write("x.md", "by hand\n");
    bench.exits("resume --no-input --yes --accept artifact-changed --redo a", 0);
    sees_nobody_left(&run);
    let all = all_below(&run);
    assert!(all.len() > 20 && run.join("seen").exists() && run.join("rescue").exists(), "{all:?}");
    let wide = all.iter().filter(|path| {
        let found = fs::symlink_metadata(path).unwrap();
        let own = if found.is_dir() { 0o700 } else { 0o600 };
        found.permissions().mode() & 0o777 != own
    });
    let wide: Vec<&PathBuf> = wide.collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn k6_a_resume_of_which_the_supervisor_is_stopped_says_so_at_once() {
    let bench = Bench::new(&format!("  - {{ id: a, run: '{WAITS}' }}\n"));
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    let place: Value = serde_json::from_slice(&fs::read(run.join("supervisor")).unwrap()).unwrap();
    let pid = u32::try_from(place["pid"].as_u64().unwrap()).unwrap();
    signal(pid, "-STOP");
    until("the supervisor to stop", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        Ok(stat.contains(") T ").then_some(()))
    })
    .unwrap();
    let said = bench.onward("resume --no-input");
    signal(pid, "-CONT");
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains(&format!("process {pid}, is stopped")), "{said:?}");
    assert!(said.err.contains(&format!("kill -CONT {pid}")), "{said:?}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("a"), [1]);
}

#[test]
fn k7_a_cancel_names_what_it_undoes() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo half > x.md; touch begun; sleep 1000', \
         writes: [x.md] }\n",
    );
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let said = bench.exits("cancel", 0);
    assert!(!said.err.contains("its files stay"), "{said:?}");
    assert!(said.err.contains("what it left half done is undone"), "{said:?}");
    assert!(said.err.contains("undone: x.md; bring it back with:"), "{said:?}");
    assert!(!bench.path("x.md").exists());
    bench.exits(&format!("undo {} 1 --yes", id(&run)), 0);
    assert_eq!(bench.text("x.md"), "half\n");
}

#[test]
fn k9_off_a_terminal_the_command_that_goes_on_is_named() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > x.md', writes: [x.md] }\n  \
         - { id: b, run: 'LOG; echo 2 > x.md; test -e go', writes: [x.md] }\n",
    );
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap()[0].dir.clone();
    by_hand_later(&bench);
    bench.exits("resume --no-input", 16);
    let names = |command: &str| {
        let said = bench.exits(command, 0).out;
        let line = said.lines().rfind(|it| it.contains("onward resume")).unwrap_or_default();
        let (_, arguments) = line.split_once("onward ").unwrap_or_else(|| panic!("{said}"));
        arguments.trim().to_owned()
    };
    let (status, bare) = (names("status"), names(""));
    assert_eq!(status, bare);
    assert!(status.contains("--accept"), "{status}");
    bench.write("go", "");
    bench.exits(&format!("{status} --no-input"), 0);
    assert_eq!(bench.text("x.md"), "2\n");
    let _ = run;
}
