//! How attempts end, and what is kept of them.

use onward_core::{
    evidence::Ending,
    launch::{Launch, Program, Seal},
};
use onward_engine::world::supervisor::seals::Line;

use crate::bench::{Bench, argv, exited, is_living, launch, say, shell};

fn ending_of<'a>(seals: &'a [Seal], step: &str) -> &'a Ending {
    &seals.iter().find(|seal| seal.step.as_str() == step).unwrap().ending
}

fn why(ending: &Ending) -> &str {
    match ending {
        Ending::NotStarted { why } => why,
        other @ (Ending::Exited { .. }
        | Ending::Signalled { .. }
        | Ending::TimedOut { .. }
        | Ending::Stopped) => panic!("{other:?}"),
    }
}

#[test]
fn exit_codes_and_signals_are_sealed_as_they_were() {
    let bench = Bench::new("codes");
    let seals = bench.run(&[
        argv("true", &["true"]),
        shell("three", "exit 3"),
        shell("killed", "kill -9 $$"),
        shell("term", "kill $$"),
        argv("argument", &["sh", "-c", "exit $#", "sh", "a b", ""]),
    ]);
    assert_eq!(*ending_of(&seals, "true"), exited(0));
    assert_eq!(*ending_of(&seals, "three"), exited(3));
    assert_eq!(*ending_of(&seals, "killed"), Ending::Signalled { signal: 9 });
    assert_eq!(*ending_of(&seals, "term"), Ending::Signalled { signal: 15 });
    assert_eq!(*ending_of(&seals, "argument"), exited(2));
    let log = bench.seals();
    assert_eq!((log.damaged.len(), log.torn.len()), (0, 0));
    assert_eq!(log.seals().cloned().collect::<Vec<_>>(), seals, "told as it was written");
}

#[test]
fn what_cannot_be_started_is_sealed_with_its_reason() {
    let bench = Bench::new("not-started");
    let plain = bench.place.project_dir.join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    let call = Program::Call { name: "f".into(), with: serde_json::Value::Null };
    let seals = bench.run(&[
        argv("bare", &["no-such-program"]),
        argv("path", &["./no-such-program"]),
        argv("plain", &["./plain"]),
        argv("empty", &[]),
        Launch { cwd: "nowhere".into(), ..argv("cwd", &["true"]) },
        launch("call", call),
    ]);
    assert_eq!(why(ending_of(&seals, "bare")), "no program `no-such-program` in PATH");
    assert!(why(ending_of(&seals, "path")).contains("No such file"));
    assert!(why(ending_of(&seals, "plain")).contains("ermission denied"));
    assert!(why(ending_of(&seals, "empty")).contains("no program"));
    assert!(why(ending_of(&seals, "cwd")).contains("nowhere` is missing"));
    assert!(why(ending_of(&seals, "call")).contains("`f`"));
    let spawned = bench.seals().lines.iter().any(|line| matches!(line, Line::Spawned(_)));
    assert!(!spawned, "nothing was spawned");
}

#[test]
fn each_spawn_is_in_the_log_before_it_happens_and_again_when_it_has_lived_a_while() {
    let bench = Bench::new("order");
    let go = bench.fifo("go");
    let mut engine = bench.connect(1);
    engine.hands.spawn(&[argv("missing", &["no-such-program"])]).unwrap();
    engine.next_seal();
    engine.hands.spawn(&[shell("lives", "read word < go")]).unwrap();
    let alive = engine.next_spawned();
    assert!(is_living(alive.pid) && alive.start_time > 0);
    say(go);
    engine.next_seal();
    engine.leave();
    let log = bench.seals();
    let kinds = log.lines.iter().map(|line| match line {
        Line::Opened(_) => "opened",
        Line::Spawning(_) => "spawning",
        Line::Spawned(_) => "spawned",
        Line::Exited(_) => "exited",
        Line::Snapshot(_) => "snapshot",
        Line::OutputLost(_) | Line::Unknown(_) => "other",
        // Written once a second, on a machine that is that slow.
        Line::Grouped(_) | Line::Stray(_) => "kin",
    });
    let kinds = kinds.filter(|kind| *kind != "kin");
    let brief = ["opened", "spawning", "exited"];
    let lasting = ["spawning", "spawned", "exited"];
    assert_eq!(kinds.collect::<Vec<_>>(), [&brief[..], &lasting].concat());
}

#[test]
fn output_is_kept_apart_and_a_silent_stream_makes_no_file() {
    let bench = Bench::new("output");
    let step = "r[1]/a";
    bench.run(&[
        shell(step, "printf one; printf two >&2; sleep 0.01; printf ' three'"),
        shell("silent", "exit 0"),
        shell("only-err", "printf x >&2"),
    ]);
    assert_eq!(bench.output("r[1]~a.1.out").as_deref(), Some("one three"));
    assert_eq!(bench.output("r[1]~a.1.err").as_deref(), Some("two"));
    assert_eq!(bench.output("only-err.1.err").as_deref(), Some("x"));
    let mut files: Vec<_> = std::fs::read_dir(bench.place.out_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["only-err.1.err", "r[1]~a.1.err", "r[1]~a.1.out"]);
}

#[test]
fn a_flood_is_cut_at_its_bound_and_the_program_still_ends() {
    let mut bench = Bench::new("flood");
    bench.output_bytes_max = 100_000;
    let seals = bench.run(&[shell("a", "head -c 3000000 /dev/zero | tr '\\0' x")]);
    assert_eq!(seals[0].ending, exited(0));
    let kept = bench.output("a.1.out").unwrap();
    let (bytes, marker) = kept.split_at(100_000);
    assert!(bytes.bytes().all(|byte| byte == b'x'));
    assert_eq!(marker, "\n[onward: cut after 100000 bytes]\n");
}

#[test]
fn everything_up_to_the_last_byte_is_there_when_the_seal_is() {
    let bench = Bench::new("last-byte");
    bench.run(&[shell("a", "head -c 200000 /dev/zero | tr '\\0' x; printf end")]);
    let kept = bench.output("a.1.out").unwrap();
    assert_eq!((kept.len(), kept.ends_with("xend")), (200_003, true));
}

#[test]
fn a_child_has_its_tag_its_directory_both_environments_and_no_input() {
    let bench = Bench::new("child");
    std::fs::create_dir(bench.place.project_dir.join("sub")).unwrap();
    let script = "echo $ONWARD_RUN $ONWARD_STEP $ONWARD_ATTEMPT $FROM_ENGINE $FROM_LAUNCH; \
                  basename $PWD; cat; readlink /proc/self/fd/0; \
                  test $(ps -o pgid= $$) = $$ && echo own group";
    let launch = Launch {
        attempt: 7,
        cwd: "sub".into(),
        env: [("FROM_LAUNCH".into(), "too".into())].into(),
        ..shell("s/t", script)
    };
    bench.run(&[launch]);
    let expected = "child s/t 7 yes too\nsub\n/dev/null\nown group\n";
    assert_eq!(bench.output("s~t.7.out").as_deref(), Some(expected));
}

#[test]
fn a_bare_name_is_looked_up_in_the_childs_own_path() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new("path");
    let dir = bench.place.project_dir.join("tools");
    std::fs::create_dir(&dir).unwrap();
    // Without a first line that names an interpreter, it runs as it would from a shell.
    std::fs::write(dir.join("tool"), "echo \"$0\" \"$1\"\n").unwrap();
    std::fs::set_permissions(dir.join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    let env = [("PATH".into(), "tools:/usr/bin:/bin".into())].into();
    bench.run(&[Launch { env, ..argv("a", &["tool", "x y"]) }]);
    assert!(bench.output("a.1.out").unwrap().ends_with("tools/tool x y\n"));
}

#[test]
fn a_check_runs_after_success_only_and_writes_to_the_same_files() {
    let bench = Bench::new("check");
    let with = |launch: Launch, check: &str| Launch { check: Some(check.into()), ..launch };
    let seals = bench.run(&[
        with(shell("good", "echo program"), "echo check $ONWARD_STEP"),
        with(shell("bad", "true"), "exit 4"),
        with(shell("failed", "exit 1"), "echo never"),
        with(shell("died", "true"), "kill -9 $$"),
    ]);
    let check_of = |step: &str| {
        let seal = seals.iter().find(|seal| seal.step.as_str() == step).unwrap();
        (seal.ending.clone(), seal.check.clone())
    };
    assert_eq!(check_of("good"), (exited(0), Some(exited(0))));
    assert_eq!(check_of("bad"), (exited(0), Some(exited(4))));
    assert_eq!(check_of("failed"), (exited(1), None));
    assert_eq!(check_of("died"), (exited(0), Some(Ending::Signalled { signal: 9 })));
    assert_eq!(bench.output("good.1.out").as_deref(), Some("program\ncheck good\n"));
    assert_eq!(bench.output("failed.1.out"), None);
}

#[test]
fn wall_time_covers_program_and_check_and_idle_time_only_silence() {
    let bench = Bench::new("times");
    let talkative = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; done";
    let seals = bench.run(&[
        Launch { timeout_ms: Some(300), ..shell("wall", "while :; do echo x; sleep 0.01; done") },
        Launch { idle_ms: Some(300), ..shell("idle", "echo x; sleep 1000") },
        Launch { idle_ms: Some(1500), ..shell("talkative", talkative) },
        Launch {
            timeout_ms: Some(500),
            check: Some("sleep 1000".into()),
            ..shell("check", "true")
        },
    ]);
    assert_eq!(*ending_of(&seals, "wall"), Ending::TimedOut { idle: false });
    assert_eq!(*ending_of(&seals, "idle"), Ending::TimedOut { idle: true });
    assert_eq!(*ending_of(&seals, "talkative"), exited(0));
    let check = seals.iter().find(|seal| seal.step.as_str() == "check").unwrap();
    assert_eq!(check.check, Some(Ending::TimedOut { idle: false }));
    assert_eq!(check.ending, exited(0));
}

#[test]
fn two_hundred_commands_two_at_a_time_are_each_sealed_once() {
    let bench = Bench::new("many");
    let mut engine = bench.connect(1);
    let mut launches = (0..200).map(|number| argv(&format!("s{number}"), &["/bin/true"]));
    let first: Vec<Launch> = launches.by_ref().take(2).collect();
    engine.hands.spawn(&first).unwrap();
    let mut sealed = std::collections::BTreeSet::new();
    while sealed.len() < 200 {
        let seal = engine.next_seal();
        assert_eq!(seal.ending, exited(0));
        assert!(sealed.insert(seal.step.to_string()), "{} twice", seal.step);
        if let Some(launch) = launches.next() {
            engine.hands.spawn(&[launch]).unwrap();
        }
    }
    engine.leave();
    assert_eq!(bench.seals().seals().count(), 200);
}
