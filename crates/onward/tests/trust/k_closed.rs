//! A file that the user may not read: it is told with what to do, and the rest of the run goes on.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::Value;

use crate::bench::{Bench, Said};

/// The same command without the rights of root, which may read everything; `None` = they cannot be
/// laid down here, or are none.
fn plainly(bench: &Bench, arguments: &str) -> Option<Said> {
    let whole = bench.command(arguments);
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        command.args(["--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search"]);
    }
    command.arg("--").arg(whole.get_program()).args(whole.get_args());
    command.current_dir(whole.get_current_dir().unwrap());
    for (name, value) in whole.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(Said::of(&command.output().ok()?))
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn can_be_closed(bench: &Bench) -> bool {
    let probe = bench.path("closed");
    fs::write(&probe, "x").unwrap();
    mode(bench, "closed", 0o000);
    let mut command = Command::new("setpriv");
    command.args(["--inh-caps=-all", "--bounding-set=-dac_override,-dac_read_search", "--", "cat"]);
    let read = command.arg(&probe).output();
    fs::remove_file(&probe).unwrap();
    let is_closed = read.is_ok_and(|it| String::from_utf8_lossy(&it.stderr).contains("denied"));
    if !is_closed {
        eprintln!("skipped: nothing here lays down the rights of root");
    }
    is_closed
}

fn mode(bench: &Bench, name: &str, mode: u32) {
    fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    let mut rows = plan["steps"].as_array().unwrap().iter();
    rows.find(|row| row["step"] == step).unwrap()["verdict"].as_str().unwrap()
}

#[test]
fn k9_an_output_that_may_not_be_read_is_told_and_the_rest_goes_on() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > x.md', writes: [x.md] }\n  \
         - { id: b, run: 'LOG; test -e go', reads: [x.md] }\n  \
         - { id: c, run: 'LOG; cat x.md', reads: [x.md] }\n  \
         - { id: free, needs: [], run: 'LOG; test -e go' }\n",
    );
    if !can_be_closed(&bench) {
        return;
    }
    assert_eq!(plainly(&bench, "run w.yaml --no-input").unwrap().code, 10);
    bench.write("go", "");
    mode(&bench, "x.md", 0o000);
    for command in ["plan", "status", "list", "why a", ""] {
        let said = plainly(&bench, command).unwrap();
        assert_eq!(said.code, 0, "{command}: {said:?}");
    }
    let plan = plainly(&bench, "plan --json").unwrap().json();
    assert_eq!((verdict(&plan, "a"), &plan["can_resume"]), ("keep", &Value::Bool(true)));
    let findings = plan["findings"].as_array().unwrap();
    let found = findings.iter().find(|it| it["code"] == "missing-artifact").unwrap();
    assert_eq!((&found["path"], &found["step"]), (&"x.md".into(), &"a".into()), "{plan:#}");
    assert!(found["hint"].as_str().unwrap().contains("chmod u+r x.md"), "{found:#}");
    let said = plainly(&bench, "resume --no-input --yes").unwrap();
    assert_eq!(said.code, 10, "{said:?}");
    assert!(said.err.contains("x.md may not be read"), "{said:?}");
    assert_eq!((bench.ran("a"), bench.ran("free")), (vec![1], vec![1, 2]), "{said:?}");
    assert_eq!((bench.ran("b"), bench.ran("c")), (vec![1], vec![]), "{said:?}");
    mode(&bench, "x.md", 0o644);
    let said = plainly(&bench, "resume --no-input --yes").unwrap();
    assert_eq!((said.code, bench.ran("a"), bench.ran("c").len()), (0, vec![1], 1), "{said:?}");
}

#[test]
fn k9_what_a_step_may_not_read_it_does_not_replace() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; rm -f x.md; echo $ONWARD_ATTEMPT > x.md', writes: [x.md] }\n  \
         - { id: b, needs: [], run: 'LOG; test -e go' }\n",
    );
    if !can_be_closed(&bench) {
        return;
    }
    assert_eq!(plainly(&bench, "run w.yaml --no-input").unwrap().code, 10);
    bench.write("go", "");
    bench.write("x.md", "by hand\n");
    mode(&bench, "x.md", 0o000);
    let said = plainly(&bench, "resume --no-input --yes --redo a").unwrap();
    assert_ne!(said.code, 0, "{said:?}");
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1, 2]), "{said:?}");
    assert_eq!(plainly(&bench, "status").unwrap().code, 0);
    assert!(plainly(&bench, "log").unwrap().out.contains("x.md, which it writes, may not be read"));
    mode(&bench, "x.md", 0o644);
    assert_eq!(bench.text("x.md"), "by hand\n");
    let accept = "resume --no-input --yes --accept artifact-changed";
    let said = plainly(&bench, accept).unwrap();
    assert_eq!((said.code, bench.text("x.md").as_str()), (0, "2\n"), "{said:?}");
}

/// What a step leaves so is not proved.
#[test]
fn k9_an_attempt_that_leaves_what_may_not_be_read_has_failed() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo 1 > x.md; test -e go || chmod 000 x.md', writes: [x.md] }\n",
    );
    if !can_be_closed(&bench) {
        return;
    }
    let said = plainly(&bench, "run w.yaml --no-input").unwrap();
    assert_eq!(said.code, 10, "{said:?}");
    assert!(said.err.contains("what was written may not be read: x.md"), "{said:?}");
    for command in ["plan", "status", "list"] {
        assert_eq!(plainly(&bench, command).unwrap().code, 0, "{command}");
    }
    bench.write("go", "");
    fs::remove_file(bench.path("x.md")).unwrap();
    let said = plainly(&bench, "resume --no-input --yes").unwrap();
    assert_eq!((said.code, bench.ran("a")), (0, vec![1, 2]), "{said:?}");
}
