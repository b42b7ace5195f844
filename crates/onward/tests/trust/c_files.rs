//! Names and files of strangers lead nowhere outside.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command},
};

use onward_engine::care::harness::until;

use crate::{
    bench::{Bench, Said, codes, id},
    support::program::onward,
};

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn run_of(bench: &Bench) -> std::path::PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

/// What a command said, if it ended by itself.
fn ended(mut child: Child) -> Option<Said> {
    let seen = until("a command to end", || Ok(child.try_wait().unwrap().map(drop)));
    if seen.is_err() {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    seen.is_ok().then(|| Said::of(&output))
}

fn at_once(bench: &Bench, arguments: &str, case: &str) -> Said {
    let mut command = onward(&bench.root, arguments);
    let pipe = std::process::Stdio::piped;
    let child = command.stdout(pipe()).stderr(pipe()).spawn().unwrap();
    ended(child).unwrap_or_else(|| panic!("{arguments} hangs: {case}"))
}

pub(crate) const DOCUMENT: &str = "\
# Conference: Tea\n\n## Goal\nSteep it better.\n\n## Mode\nmetric\n\n## Success Metric\n\
- **Metric:** taste\n- **Target:** >= 90\n- **Direction:** maximize\n\n## Researchers\n\
- **Count:** 2\n- **Iterations per round:** 3\n- **Max rounds:** 3\n\n## Shared Knowledge\n\n\
## Conference Log\n";

#[test]
fn c1_a_name_in_a_foreign_log_is_no_path() {
    for name in ["/../../../victim", "../victim", "x/../../victim", "..", "a\\nb"] {
        let bench = Bench::new("");
        let dir = bench.path("talks/tea");
        fs::create_dir_all(&dir).unwrap();
        for victim in ["victim_results.tsv", "talks/victim_results.tsv"] {
            bench.write(victim, "precious");
        }
        fs::write(dir.join("conference.md"), DOCUMENT).unwrap();
        let line = |event: &str, payload: &str| {
            let at = "2026-05-04T20:00:00Z";
            format!("{{\"event\":\"{event}\",\"timestamp\":\"{at}\",\"payload\":{{{payload}}}}}\n")
        };
        let log = [
            line("conference.started", "\"researchers\":2"),
            line("round.started", &format!("\"round\":1,\"researcher_states\":[\"{name}:ready\"]")),
            line(
                "researcher.iteration",
                &format!(
                    "\"researcher\":\"{name}\",\"round\":1,\"iteration\":0,\
                     \"metric_value\":40,\"status\":\"baseline\""
                ),
            ),
        ];
        fs::write(dir.join("conference_events.jsonl"), log.concat()).unwrap();
        // With an agent the resume goes on, up to where it rebuilds the tables of researchers.
        bench.write(".onward/config.toml", "[agents.claude]\ncommand = [\"true\"]\n");
        let plan = bench.exits("plan --json talks/tea", 0).json();
        let found = codes(&plan);
        assert!(found.contains(&"broken-line") && !found.contains(&"rows-missing"), "{plan:#}");
        let said = bench.onward("resume --no-input --yes talks/tea");
        assert!(said.err.contains("run conference-"), "it was not resumed at all: {said:?}");
        assert!(!said.err.contains("leads out"), "stopped by the opener alone: {said:?}");
        for victim in ["victim_results.tsv", "talks/victim_results.tsv"] {
            assert_eq!(bench.text(victim), "precious", "{name}");
        }
        let above = bench.root.parent().unwrap();
        assert!(!above.join("victim_results.tsv").exists());
    }
}

#[test]
fn c2_outputs_outside_of_the_project_are_refused() {
    for path in [
        "../x",
        "../../../journal.jsonl",
        "/etc/x",
        "a/../../x",
        ".onward/runs/*/journal.jsonl",
        "./.git/config",
    ] {
        let bench = Bench::new(&format!("  - {{ id: a, run: LOG, writes: ['{path}'] }}\n"));
        let said = bench.exits("check w.yaml", 2);
        assert!(said.err.contains("writes"), "{said:?}");
        assert_eq!(bench.onward("run w.yaml").code, 2);
        assert_eq!(bench.ran("a"), [0; 0]);
    }
    // The same, known only when it runs.
    let bench = Bench::new("");
    bench.workflow(
        "w.yaml",
        "inputs: { to: { type: string, default: '../x' } }\nsteps:",
        "  - { id: a, run: LOG, writes: ['{{ inputs.to }}'] }\n",
    );
    bench.exits("run w.yaml", 10);
    assert_eq!(bench.ran("a"), [0; 0]);
    bench.exits(&format!("rescue list {}", id(&run_of(&bench))), 0);
}

#[test]
fn c3_a_link_where_a_file_of_ours_should_be_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let precious = outside.path().join("precious");
    let is_whole = |case: &str| {
        assert_eq!(fs::read(&precious).unwrap(), b"mine", "{case}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "{case}");
    };
    fs::write(&precious, "mine").unwrap();
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    symlink(&precious, bench.path(".onward/tree.lock")).unwrap();
    assert_ne!(bench.onward("run w.yaml").code, 0);
    is_whole("tree.lock");
    fs::remove_file(bench.path(".onward/tree.lock")).unwrap();

    for name in ["lock", "exits.jsonl", "heartbeat", "supervisor", "supervisor.log", "inbox", "out"]
    {
        let bench = Bench::new("  - { id: a, run: 'LOG; echo said; test -e go' }\n");
        bench.exits("run w.yaml", 10);
        let run = run_of(&bench);
        bench.write("go", "");
        let at = run.join(name);
        let _ = fs::remove_file(&at);
        let _ = fs::remove_dir_all(&at);
        let target = if matches!(name, "inbox" | "out") { outside.path() } else { &*precious };
        symlink(target, &at).unwrap();
        at_once(&bench, &format!("resume --no-input {}", id(&run)), name);
        is_whole(name);
    }
}

#[test]
fn c3_a_fifo_where_a_file_should_be_hangs_nothing() {
    for name in [
        "lock",
        "exits.jsonl",
        "heartbeat",
        "supervisor",
        "supervisor.log",
        "journal.jsonl",
        "workflow.yaml",
    ] {
        let bench = Bench::new("  - { id: a, run: 'LOG; test -e go' }\n");
        bench.exits("run w.yaml", 10);
        let run = run_of(&bench);
        let _ = fs::remove_file(run.join(name));
        fifo(&run.join(name));
        for command in ["plan", "status", "resume --no-input"] {
            at_once(&bench, &format!("{command} {}", id(&run)), name);
        }
    }
    let bench = Bench::new("  - { id: a, run: LOG, result: { schema: schema.json } }\n");
    fifo(&bench.path("schema.json"));
    assert_ne!(at_once(&bench, "check w.yaml", "schema").code, 0);
    bench.workflow("w.yaml", "steps:", "  - { id: a, workflow: part.yaml }\n");
    fifo(&bench.path("part.yaml"));
    assert_ne!(at_once(&bench, "check w.yaml", "an included workflow").code, 0);
    fs::remove_file(bench.path("w.yaml")).unwrap();
    fifo(&bench.path("w.yaml"));
    assert_ne!(at_once(&bench, "run w.yaml", "workflow").code, 0);
    for name in [".onward/tree.lock", ".onward/config.toml"] {
        let bench = Bench::new("  - { id: a, run: LOG }\n");
        fifo(&bench.path(name));
        assert_ne!(at_once(&bench, "run w.yaml", name).code, 0);
    }
    let bench = Bench::new("  - { id: a, run: 'test -e go' }\n");
    bench.exits("run w.yaml", 10);
    let run = run_of(&bench);
    fifo(&run.join("inbox/00000000000000000001-1-0.json"));
    at_once(&bench, &format!("resume --no-input {}", id(&run)), "inbox");
}

#[test]
fn c3_a_template_reads_files_and_nothing_else() {
    for path in ["pipe", "/dev/zero"] {
        let bench =
            Bench::new(&format!("  - {{ id: a, run: 'echo {{{{ read_text(\"{path}\") }}}}' }}\n"));
        fifo(&bench.path("pipe"));
        let said = at_once(&bench, "run w.yaml", path);
        assert_ne!(said.code, 0, "{said:?}");
        assert_eq!(bench.ran("a"), [0; 0]);
    }
}

#[test]
fn e11_a_fifo_where_git_reads_ends_with_an_error_and_not_never() {
    let bench = Bench::new(
        "  - { id: e, run: 'echo e > e.txt', edits: true }\n  - { id: b, run: 'test -e ok' }\n",
    );
    let git = "git init -q . && printf '.onward\\n' > .gitignore && git add -A && \
               git -c user.name=n -c user.email=e@x commit -qm one";
    let made = Command::new("sh").args(["-c", git]).current_dir(&bench.root).status();
    assert!(made.unwrap().success());
    bench.exits("run w.yaml", 10);
    fs::create_dir(bench.path("sub")).unwrap();
    fifo(&bench.path("sub/.gitignore"));
    let said = at_once(&bench, "plan", ".gitignore");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("FIFO"), "{said:?}");
}
