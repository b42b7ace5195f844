//! What people and steps made is never lost to what goes on around it.

use std::{fs, process::Command};

use onward_engine::care::harness::until;

use crate::bench::{Bench, id, kill_all, sees, signal};

#[test]
fn b7_a_result_that_is_too_large_is_a_failed_attempt() {
    let bench = Bench::new("");
    bench.workflow(
        "w.yaml",
        "steps:",
        "  - id: a\n    run: |\n      LOG\n      test -e go && \
         echo 1 > $ONWARD_RESULT && exit\n      \
         (echo '\"'; head -c 70000000 /dev/zero | tr '\\0' x; echo '\"') > $ONWARD_RESULT\n",
    );
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("larger than"), "{said:?}");
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits(&format!("plan {}", id(&run)), 0);
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    assert_eq!(bench.ran("a"), [1, 2]);
}

#[test]
fn b7_a_result_that_is_nested_too_deep_is_a_failed_attempt() {
    let bench = Bench::new("");
    // 120 levels: what a parser of JSON takes, and a record of the journal does not.
    let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
    bench.workflow(
        "w.yaml",
        "steps:",
        &format!(
            "  - id: a\n    run: LOG; test -e go && echo 1 > $ONWARD_RESULT || \
             echo '{deep}' > $ONWARD_RESULT\n"
        ),
    );
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("nested deeper than the 100 levels"), "{said:?}");
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits(&format!("plan {}", id(&run)), 0);
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    assert_eq!(bench.ran("a"), [1, 2]);
}

/// A list from outside may hold any text, and a step may leave anything where its output should be:
/// the step fails and says why, and the run goes on when that is put right.
#[test]
fn b7_a_name_that_no_file_can_have_fails_its_step_and_wedges_nothing() {
    let long = "l".repeat(300);
    let braces = format!("{}{}", "{a,".repeat(300), "}".repeat(300));
    let writes = "run: 'LOG; echo 1 > fine.o', writes: ['{{ item }}.o']";
    let reads = "run: LOG, reads: ['{{ item }}.o']";
    for (what, item, reason) in [
        (writes, "a[b", "unclosed character class"),
        (writes, &*long, "no file can have a name of 302 bytes"),
        (writes, &*braces, "braces in more than 20 others"),
        (reads, "a[b", "unclosed character class"),
        (reads, &*long, "no file can have a name of 302 bytes"),
        ("gate: \"{{ read_text(item ~ '.o') }}\"", &*long, ".o"),
        ("gate: well?, shows: ['{{ item }}']", "a[b", "unclosed character class"),
        (
            "run: 'LOG; ln -sf {{ item }}.o {{ item }}.o; rm -f fine.o; echo 1 > fine.o', \
             writes: ['{{ item }}.o']",
            "loop",
            "nothing was written to loop.o",
        ),
    ] {
        let bench = Bench::new("");
        bench.write("fine.o", "0");
        bench.write("items", &format!("[\"{item}\"]"));
        bench.workflow(
            "w.yaml",
            "steps:",
            &format!(
                "  - {{ id: list, run: cp items $ONWARD_RESULT, reads: [items] }}\n  \
                 - {{ id: use, each: '{{{{ steps.list.result }}}}', {what} }}\n"
            ),
        );
        let said = bench.exits("run w.yaml --no-input", 10);
        assert!(said.err.contains(reason), "{reason}: {said:?}");
        for command in ["plan", "status", "list"] {
            bench.exits(command, 0);
        }
        let said = bench.exits("resume --no-input", 10);
        assert!(said.err.contains(reason), "{reason}: {said:?}");
        bench.write("items", "[\"fine\"]");
        let said = bench.onward("resume --no-input --mode autopilot");
        let wanted = if what.starts_with("gate") { 11 } else { 0 };
        assert_eq!(said.code, wanted, "{what}: {said:?}");
    }
}

#[test]
fn b7_a_pattern_that_is_none_is_an_error_of_check() {
    let bench = Bench::new("");
    for (steps, reason) in [
        ("  - { id: a, run: ls, writes: ['a[b'] }\n", "unclosed character class"),
        ("  - { id: a, run: ls, reads: ['a{b'] }\n", "unclosed alternate group"),
        ("  - { id: a, gate: well?, shows: ['[z-a]'] }\n", "invalid range"),
    ] {
        bench.workflow("v.yaml", "steps:", steps);
        let said = bench.exits("check v.yaml", 2);
        assert!(format!("{said:?}").contains(reason), "{reason}: {said:?}");
    }
}

#[test]
fn b5_what_a_person_changed_meanwhile_is_told_with_the_command_that_brings_it_back() {
    let bench = Bench::new(
        "  - id: a\n    edits: true\n    retry: { max: 2, backoff: 0s, on: [failed] }\n    \
         run: |\n      LOG\n      test $ONWARD_ATTEMPT = 1 || exit 0\n      \
         touch begun; while ! test -e mine; do sleep 0.05; done; exit 1\n",
    );
    let git = "git init -q . && printf 'ledger.txt\\nsaid\\n.onward\\n' > .gitignore && \
               git add -A && git -c user.name=n -c user.email=e@x commit -qm one";
    let status = Command::new("sh").args(["-c", git]).current_dir(&bench.root).status();
    assert!(status.unwrap().success());
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    // A person works in the same tree.
    bench.write("mine", "a person's\n");
    assert!(engine.wait().unwrap().success(), "{}", bench.text("said"));
    assert!(!bench.path("mine").exists(), "it counted as the work of the attempt that failed");
    let said = bench.text("said");
    let command = format!("onward undo {} 1", id(&run));
    assert_eq!(said.matches("`worktree: true` keeps the two apart").count(), 1, "{said}");
    let log = bench.exits(&format!("log {}", id(&run)), 0).out;
    let shown = bench.exits(&format!("status {}", id(&run)), 0).out;
    for told in [&said, &log, &shown] {
        assert!(told.contains("mine") && told.contains(&command), "{told}");
    }
    bench.exits(&format!("{} --yes", command.strip_prefix("onward ").unwrap()), 0);
    assert_eq!(bench.text("mine"), "a person's\n");
    let shown = bench.exits(&format!("status {}", id(&run)), 0).out;
    assert!(!shown.contains(&command), "what is back is not told of: {shown}");
}

/// It says that it wrote `made`, and with which tool; meanwhile a person writes `mine`.
fn reporting(tool: &str) -> (Bench, crate::bench::Said) {
    let bench = Bench::new(
        "  - id: a\n    agent: claude\n    prompt: p\n    \
         retry: { max: 2, backoff: 0s, on: [failed] }\n",
    );
    let agent = format!(
        "echo \"$ONWARD_STEP $ONWARD_ATTEMPT\" >> ledger.txt\n\
         echo '{{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[]}}'\n\
         test $ONWARD_ATTEMPT = 1 || {{ echo '{{\"type\":\"result\",\"subtype\":\"success\",\
         \"is_error\":false,\"result\":\"done\"}}'; exit; }}\n\
         echo '{{\"type\":\"assistant\",\"message\":{{\"content\":[{tool}]}}}}'\n\
         echo half > made; touch begun; read line < go; exit 1\n"
    );
    bench.write(
        ".onward/config.toml",
        "[agents.claude]\nadapter = 'claude'\ncommand = ['sh', 'agent.sh']\n",
    );
    bench.write("agent.sh", &agent);
    bench.write(".gitignore", "ledger.txt\nsaid\n.onward\ngo\nbegun\n");
    let go = bench.fifo("go");
    crate::support::program::git(&bench.root, &["init", "-q"]);
    crate::support::program::git(&bench.root, &["add", "-A"]);
    crate::support::program::git(&bench.root, &["commit", "-q", "-m", "one"]);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.write("mine", "a person's\n");
    fs::write(go, "go\n").unwrap();
    let code = engine.wait().unwrap().code();
    let said = bench.onward(&format!("resume --no-input {}", id(&run)));
    assert_eq!(code, Some(if said.code == 16 { 10 } else { 0 }), "{}", bench.text("said"));
    (bench, said)
}

#[test]
fn b5_a_path_that_a_reporting_agent_cannot_have_changed_is_asked_about() {
    let write = r#"{"type":"tool_use","name":"Write","input":{"file_path":"/p/made"}}"#;
    let (bench, said) = reporting(write);
    assert_eq!(said.code, 16, "{said:?}");
    assert!(said.err.contains("(mine)"), "only that one is asked about: {said:?}");
    assert_eq!((bench.text("mine"), bench.ran("a")), ("a person's\n".into(), vec![1]));
    // A shell can have changed whatever changed.
    let shell = r#"{"type":"tool_use","name":"Bash","input":{"command":"make"}}"#;
    let (bench, said) = reporting(&format!("{write},{shell}"));
    assert_eq!((said.code, bench.ran("a")), (17, vec![1, 2]), "{said:?}");
    assert!(!bench.path("mine").exists() && !bench.path("made").exists());
}

/// Found by the control group where there is one, else because the supervisor wrote it down.
#[test]
fn b8_a_daemon_without_session_parent_or_environment_is_found_after_its_supervisor_was_killed() {
    for keeps_group in [true, false] {
        let daemon = "setsid -f env -i sh -c 'echo $$ > daemon; exec sleep 1000'";
        let bench = Bench::new(&format!(
            "  - id: a\n    run: |\n      LOG\n      test -e go || {{ {daemon}; sleep 1000; }}\n"
        ));
        let (run, _) = bench.run_and_kill(|_| bench.path("daemon").exists());
        let log = run.join("exits.jsonl");
        until("the daemon to be written down", || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            Ok(text.contains("\"kind\":\"stray\"").then_some(()))
        })
        .unwrap();
        kill_all(&run);
        let pid: u32 = bench.text("daemon").trim().parse().unwrap();
        let lives = || {
            fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.contains("1000"))
        };
        assert!(lives(), "nothing else ends it");
        if !keeps_group {
            let text = fs::read_to_string(&log).unwrap();
            let others = text.split_inclusive('\n').filter(|line| !line.contains("\"grouped\""));
            fs::write(&log, others.collect::<String>()).unwrap();
        }
        let plan = bench.plan(&run);
        let found = crate::bench::codes(&plan).contains(&"orphan-process");
        bench.write("go", "");
        let said = bench.onward(&format!("resume --no-input {}", id(&run)));
        let is_left = lives();
        signal(pid, "-KILL");
        assert_eq!((said.code, found, is_left), (0, true, false), "{said:?} {plan:#}");
    }
}
