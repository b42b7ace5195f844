//! What is finished stays finished through a power cut.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use onward_core::{event::Event, journal::encode};
use serde_json::Value;

use crate::bench::{Bench, codes, id, sees_nobody_left, watched};

/// What a power cut leaves of a small file that was not on the disk yet.
#[test]
fn b2_an_empty_state_file_hinders_nothing() {
    let bench = Bench::new("  - { id: a, run: 'LOG; test -e go' }\n");
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::write(run.join("supervisor"), "").unwrap();
    fs::create_dir_all(run.join("rescue/1-a")).unwrap();
    fs::write(run.join("rescue/1-a/UNDO.json"), "").unwrap();
    for command in ["plan", "status", "rescue list"] {
        bench.exits(&format!("{command} {}", id(&run)), 0);
    }
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
}

#[test]
fn b1_durability_is_a_word_of_the_workflow() {
    let bench = Bench::new("");
    for (word, code) in [("full", 0), ("process", 0), ("maybe", 2)] {
        let step = format!("  - {{ id: a, run: 'echo 1 > x', writes: [x], durability: {word} }}\n");
        bench.workflow("w.yaml", "steps:", &step);
        bench.exits("check w.yaml", code);
        assert_eq!(bench.onward("run w.yaml").code, code, "{word}");
    }
}

#[test]
fn b9_a_limit_of_the_file_size_is_a_full_disk() {
    for blocks in ["1", "4", "8"] {
        let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: b, run: LOG }\n");
        let program = env!("CARGO_BIN_EXE_onward");
        let script = format!("ulimit -f {blocks}; exec {program} run w.yaml");
        let mut command = std::process::Command::new("sh");
        let output = command.arg("-c").arg(script).current_dir(&bench.root).output().unwrap();
        assert!(output.status.code().is_some(), "killed by a signal: {output:?}");
        let run = bench.project().runs().unwrap().pop();
        let Some(run) = run.filter(|_| !output.status.success()) else { continue };
        // Where there is room again, it goes on, and nothing that was finished runs twice; also
        // with the supervisor that is still there, under the old limit.
        bench.exits(&format!("resume --no-input {}", id(&run.dir)), 0);
        bench.is_proved(&run.dir);
    }
}

/// A run that failed at its last step, with the durability of the first.
fn failed(durability: &str) -> (Bench, PathBuf) {
    let bench = Bench::new(&format!(
        "  - {{ id: s1, run: LOG; echo made > out, writes: [out], durability: {durability} }}\n\
         \x20 - {{ id: s2, run: LOG; cat out > copy, reads: [out], writes: [copy] }}\n\
         \x20 - {{ id: s3, run: 'LOG; test -e go' }}\n"
    ));
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    // The supervisor writes its log until it has left.
    sees_nobody_left(&run);
    (bench, run)
}

/// The run as it would be if all of it had been written before a restart of the machine.
fn restart(run: &Path) {
    let log = run.join("exits.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let lines = text.lines().map(|line| {
        let Some((before, rest)) = line.split_once("\"boot_id\":\"") else {
            return format!("{line}\n");
        };
        let (_, after) = rest.split_once('"').unwrap();
        let after = &after[..after.find("\"crc\"").unwrap()];
        let body = format!("{before}\"boot_id\":\"an earlier boot\"{after}");
        format!("{body}\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    });
    fs::write(&log, lines.collect::<String>()).unwrap();

    let mut bytes = Vec::new();
    for mut record in watched(run).records {
        if let Event::RunOpened(opened) = &mut record.event {
            "an earlier boot".clone_into(&mut opened.boot_id);
        }
        encode(&record, &mut bytes).unwrap();
    }
    fs::write(run.join("journal.jsonl"), bytes).unwrap();
}

/// Other content of the same length, under the same inode and time: only its hash tells.
fn tear(path: &Path, bytes: &[u8]) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, bytes).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

fn verdict<'p>(plan: &'p Value, step: &str) -> &'p str {
    let row = plan["steps"].as_array().unwrap().iter().find(|row| row["step"] == step).unwrap();
    row["verdict"].as_str().unwrap()
}

#[test]
fn b1_an_output_that_is_empty_or_nul_is_damage_and_no_persons_change() {
    for left in [&b""[..], &[0; 5], &[0; 4096]] {
        for restarted in [false, true] {
            let (bench, run) = failed("process");
            if restarted {
                restart(&run);
            }
            fs::write(bench.path("out"), left).unwrap();
            let plan = bench.plan(&run);
            assert!(codes(&plan).contains(&"artifact-damaged"), "{plan:#}");
            assert!(!codes(&plan).contains(&"artifact-changed"), "{plan:#}");
            assert_eq!(verdict(&plan, "s1"), "rerun", "{plan:#}");
            bench.write("go", "");
            bench.exits(&format!("resume --no-input {}", id(&run)), 0);
            assert_eq!((bench.text("out"), bench.text("copy")), ("made\n".into(), "made\n".into()));
            assert_eq!((bench.ran("s1"), bench.ran("s2")), (vec![1, 2], vec![1]));
        }
    }
}

#[test]
fn b1_after_a_restart_an_output_that_was_not_synced_is_proved_by_its_hash() {
    let (bench, run) = failed("process");
    restart(&run);
    assert_eq!(verdict(&bench.plan(&run), "s1"), "keep", "what is whole is kept");
    tear(&bench.path("out"), b"m\0\0\0\n");
    let plan = bench.plan(&run);
    assert_eq!((codes(&plan).contains(&"artifact-damaged"), verdict(&plan, "s1")), (true, "rerun"));
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    assert_eq!(bench.text("out"), "made\n");
    assert_eq!(bench.ran("s1"), [1, 2]);
    // What a person made of it after the restart is theirs.
    let (bench, run) = failed("process");
    restart(&run);
    bench.write("out", "mine\n");
    let written = fs::metadata(bench.path("out")).unwrap().modified().unwrap();
    let later = written + std::time::Duration::from_mins(10);
    fs::File::options().write(true).open(bench.path("out")).unwrap().set_modified(later).unwrap();
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"artifact-changed"), "{plan:#}");
}

/// The end of `s1` is on the disk, and nothing after it: the driver had not recorded it yet.
fn sealed(durability: &str) -> (Bench, PathBuf) {
    let (bench, run) = failed(durability);
    let mut bytes = Vec::new();
    let is_end = |event: &Event| matches!(event, Event::AttemptFinished(_));
    for record in watched(&run).records.iter().take_while(|it| !is_end(&it.event)) {
        encode(record, &mut bytes).unwrap();
    }
    fs::write(run.join("journal.jsonl"), bytes).unwrap();
    let log = run.join("exits.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let is_later = |line: &&str| line.contains("\"s2\"") || line.contains("\"s3\"");
    let first = text.split_inclusive('\n').filter(|line| !is_later(line));
    fs::write(&log, first.collect::<String>()).unwrap();
    (bench, run)
}

#[test]
fn b1_an_end_that_came_to_the_disk_before_its_outputs_proves_nothing_after_a_restart() {
    for (durability, restarted, expected) in
        [("process", false, "adopt"), ("full", true, "adopt"), ("process", true, "rerun")]
    {
        let (bench, run) = sealed(durability);
        if restarted {
            restart(&run);
        }
        let plan = bench.plan(&run);
        let case = format!("{durability}, restarted: {restarted}: {plan:#}");
        assert_eq!(verdict(&plan, "s1"), expected, "{case}");
        let runs_again = expected == "rerun";
        assert_eq!(codes(&plan).contains(&"artifact-damaged"), runs_again, "{case}");
        if runs_again {
            tear(&bench.path("out"), b"m\0\0\0\n");
        }
        bench.write("go", "");
        bench.exits(&format!("resume --no-input {}", id(&run)), 0);
        assert_eq!((bench.text("out"), bench.text("copy")), ("made\n".into(), "made\n".into()));
        assert_eq!(bench.ran("s1").len(), if runs_again { 2 } else { 1 }, "{case}");
    }
}

/// A file system of its own, in a file; it goes with the test.
struct Mounted {
    dir: tempfile::TempDir,
}

impl Mounted {
    /// `None`, with a word, where mounting is not allowed.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let script = "truncate -s 64M disk && mkfs.ext4 -q -F disk && mkdir at && \
                      mount -o loop,commit=300 disk at";
        let made = Command::new("sh").args(["-c", script]).current_dir(dir.path()).output();
        match made {
            Ok(made) if made.status.success() => Some(Self { dir }),
            other => {
                eprintln!("skipped: no file system can be mounted here: {other:?}");
                None
            }
        }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("at")
    }

    fn run(&self, script: &str) -> bool {
        let status = Command::new("sh").args(["-c", script]).current_dir(self.dir.path()).status();
        status.is_ok_and(|it| it.success())
    }

    /// As if the power had failed: nothing that is not on the disk comes there any more.
    fn cut(&self) {
        // An injected error stops its journal; what that had committed is replayed.
        self.run("mount -o remount,abort at");
        assert!(self.run("umount at && mount -o loop disk at"));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.run("umount -l at");
    }
}

#[test]
fn b1_a_file_system_that_is_cut_off_loses_no_work_that_counts() {
    let Some(mounted) = Mounted::new() else { return };
    let bench = Bench::at_existing(mounted.root());
    fs::create_dir_all(bench.path(".onward")).unwrap();
    let steps = "  - { id: a, run: echo process > a, writes: [a] }\n\
        \x20 - { id: b, run: echo full > b, writes: [b], durability: full }\n\
        \x20 - { id: c, run: test -e go, reads: [a, b] }\n";
    bench.workflow("w.yaml", "steps:", steps);
    assert!(mounted.run("sync"));
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    crate::bench::sees_nobody_left(&run);
    mounted.cut();
    restart(&run);
    assert_eq!(bench.text("b"), "full\n");
    let plan = bench.plan(&run);
    assert!(["keep", "verify"].contains(&verdict(&plan, "b")), "{plan:#}");
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    assert_eq!(bench.text("a"), "process\n");
}
