//! One who only looks starts nothing of the checkout's, and is told what cannot be read.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
};

use crate::{
    bench::{Bench, id, kill_all, sees},
    support::repo::repo,
};

#[test]
fn c8_looking_starts_no_filter_of_the_checkout() {
    let bench = repo("", "  - { id: a, run: 'echo 1 > begun.o; exec sleep 1000', edits: true }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun.o"));
    engine.kill().unwrap();
    kill_all(&run);
    for (key, command) in [
        ("filter.evil.clean", "touch pwned.o; cat"),
        ("filter.evil.smudge", "touch pwned.o; cat"),
        ("filter.evil.required", "true"),
        ("filter.worse.process", "touch pwned.o"),
    ] {
        let mut command_line = std::process::Command::new("git");
        command_line.args(["config", key, command]).current_dir(&bench.root);
        assert!(command_line.status().unwrap().success());
    }
    bench.write(".gitattributes", "*.txt filter=evil\n*.sh filter=worse\n");
    // Contents that git must read to compare.
    for name in ["a.txt", "b.txt", "run.sh"] {
        bench.write(name, "changed\n");
    }
    for command in ["plan", "plan --json", "status", "list", "why a", "doctor"] {
        bench.onward(command);
        assert!(!bench.path("pwned.o").exists(), "`{command}` started a filter");
    }
    let plan = bench.plan(&run);
    assert!(plan.to_string().contains("a.txt"), "what changed is seen all the same: {plan:#}");
    // The filter would have been started: git itself does.
    let mut add = std::process::Command::new("git");
    let _ = add.args(["add", "a.txt"]).current_dir(&bench.root).output();
    assert!(bench.path("pwned.o").exists());
}

#[test]
fn c8_doctor_starts_no_program_of_the_checkout() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    bench.write("agent", "#!/bin/sh\ntouch pwned\n");
    fs::set_permissions(bench.path("agent"), fs::Permissions::from_mode(0o755)).unwrap();
    bench.write(".onward/config.toml", "[agents.claude]\ncommand = [\"./agent\"]\n");
    let said = bench.onward("doctor");
    assert!(said.out.contains("was not started"), "{said:?}");
    assert!(!bench.path("pwned").exists());
}

#[test]
fn c8_a_journal_that_cannot_be_read_is_not_called_missing() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::remove_file(run.join("journal.jsonl")).unwrap();
    fs::create_dir(run.join("journal.jsonl")).unwrap();
    for command in ["plan", "status", "resume"] {
        let said = bench.onward(&format!("{command} {}", id(&run)));
        assert_eq!(said.code, 15, "{command}: {said:?}");
        assert!(said.err.contains("journal") && said.err.contains("onward repair"), "{said:?}");
    }
}

#[test]
fn c8_a_socket_directory_that_is_taken_is_gone_around() {
    let bench = Bench::new("  - { id: a, run: LOG }\n");
    let temporary = tempfile::TempDir::new().unwrap();
    let uid = fs::metadata(temporary.path()).map(|it| std::os::unix::fs::MetadataExt::uid(&it));
    let plain = temporary.path().join(format!("onward-{}", uid.unwrap()));
    // Open to all, as another user would leave it.
    fs::DirBuilder::new().mode(0o777).create(&plain).unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = bench.command("run w.yaml");
    command.env("TMPDIR", temporary.path()).env_remove("XDG_RUNTIME_DIR");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read_dir(&plain).unwrap().count(), 0, "nothing of ours lies in it");
}
