//! Steps that write while the run is looked at: what they write is their own.

use std::{fs, os::unix::fs::PermissionsExt as _};

use onward_engine::care::harness::Watch;

use crate::{
    a_plan::waits_for_seal,
    bench::{Bench, codes, id, kill_all, sees},
    support::{
        program::Said,
        repo::{git, repo, rescued},
    },
};

/// A git that lets the step write, and waits until it has, before it compares the tree for the
/// first time.
const LETS_WRITE: &str = "#!/bin/sh\n\
    case \"$*\" in *ls-files*)\n\
      if rm .git/armed 2> /dev/null; then echo > .git/go; read -r _ < .git/wrote; fi\n\
    esac\n\
    PATH=${PATH#*:} exec git \"$@\"\n";

/// The step `WRITES` has begun, and the engine is killed; the next look at the tree lets it write.
fn looked_at(steps: &str) -> (Bench, std::path::PathBuf, Said) {
    let bench = repo("", steps);
    for name in [".git/go", ".git/wrote", ".git/end"] {
        bench.fifo(name);
    }
    let bin = bench.path(".git/bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("git"), LETS_WRITE).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    git(&bench, "add -A");
    git(&bench, "commit -q -m two");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/begun"));
    engine.kill().unwrap();
    bench.write(".git/armed", "");
    let mut command = bench.command(&format!("plan --json {}", id(&run)));
    let path = command.get_envs().find(|it| it.0 == "PATH").unwrap().1.unwrap();
    let path = format!("{}:{}", bin.display(), path.to_str().unwrap());
    let said = Said::of(&command.env("PATH", path).output().unwrap());
    assert!(!bench.path(".git/armed").exists(), "the plan looked at the tree: {said:?}");
    bench.write(".git/end", "\n");
    (bench, run, said)
}

const WRITES: &str = "touch .git/begun; read -r _ < .git/go; echo x >> x.md; echo > .git/wrote; \
    read -r _ < .git/end";

#[test]
fn i2_what_a_living_step_writes_while_the_run_is_looked_at_is_its_own() {
    let first = "  - { id: s, run: LOG, edits: true }\n";
    let alone = format!("{first}  - {{ id: w, run: 'LOG; {WRITES}', writes: [x.md] }}\n");
    let turns = format!(
        "{first}  - id: l\n    repeat: {{ max: 2 }}\n    steps:\n      \
         - {{ id: w, run: 'LOG; if test -e x.md; then {WRITES}; else echo > x.md; fi', \
         writes: [x.md] }}\n"
    );
    let edits = format!("{first}  - {{ id: w, run: 'LOG; {WRITES}', edits: true }}\n");
    for steps in [alone, turns, edits] {
        let (bench, _, said) = looked_at(&steps);
        let plan = said.json();
        assert_eq!(codes(&plan), [""; 0], "{steps}\n{plan:#}");
        assert_eq!(plan["counts"]["reattach"], 1, "{steps}\n{plan:#}");
        bench.exits("resume --no-input", 0);
    }
}

#[test]
fn i2_what_other_hands_made_of_a_path_of_an_undo_that_was_cut_short_is_in_a_rescue() {
    let steps = "  - id: a\n    writes: [many/*]\n    run: |\n      LOG\n      \
        mkdir -p many\n      \
        for n in $(seq 200); do echo $ONWARD_ATTEMPT > many/$n; done\n      \
        [ $ONWARD_ATTEMPT = 2 ] && exit\n      touch begun.o\n      exec sleep 1000\n";
    for bench in [Bench::new(steps), repo("", steps)] {
        let left = || fs::read_dir(bench.path("many")).into_iter().flatten().flatten();
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun.o"));
        engine.kill().unwrap();
        kill_all(&run);
        let mut engine = bench.start(&format!("resume {}", id(&run)));
        let begun = Watch::new(&run).until(&mut engine, |_| left().count() < 200).unwrap();
        assert!(begun, "{}", bench.text("said"));
        engine.kill().unwrap();
        kill_all(&run);
        let path = left().next().unwrap().path();
        fs::write(&path, "by other hands\n").unwrap();
        let plan = bench.plan(&run);
        assert_eq!(codes(&plan), ["dirty-tree", "artifact-changed"], "{plan:#}");
        bench.exits("resume --no-input --yes", 16);
        bench.exits("resume --no-input --yes --accept dirty-tree --accept artifact-changed", 0);
        assert_eq!(
            (bench.ran("a"), fs::read_to_string(&path).unwrap()),
            (vec![1, 2], "2\n".into())
        );
        let name = path.strip_prefix(&bench.root).unwrap();
        let kept = rescued(&run, 2).dir.join("files").join(name);
        assert_eq!(fs::read_to_string(kept).unwrap(), "by other hands\n");
    }
}

#[test]
fn i3_an_effect_that_is_asked_for_differently_is_made_again_though_two_drivers_die() {
    for (flags, edits, ran, text) in [
        ("--yes", true, 2, "v2\n"),
        ("--yes --redo e", false, 2, "v1\n"),
        // A person keeps it as it is.
        ("--yes --keep e", true, 1, "v1\n"),
    ] {
        let bench = Bench::new(
            "  - { id: e, effect: outside, probe: { run: test -e sent }, \
             run: 'LOG; touch begun; while ! test -e go; do sleep 0.02; done; echo v1 > sent' }\n",
        );
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun"));
        engine.kill().unwrap();
        if edits {
            let text = bench.text("w.yaml").replace("v1", "v2");
            bench.write("w.yaml", &text);
        }
        let mut engine = bench.start(&format!("resume --no-input {flags} {}", id(&run)));
        // They come in one batch.
        let last = if edits { "workflow.changed" } else { "run.resumed" };
        let is_there = |it: &Watch| it.records.iter().any(|it| it.event.kind() == last);
        assert!(Watch::new(&run).until(&mut engine, is_there).unwrap(), "{}", bench.text("said"));
        engine.kill().unwrap();
        bench.write("go", "");
        waits_for_seal(&run, "e");
        let plan = bench.plan(&run);
        let verdict = if ran == 2 { "rerun" } else { "adopt" };
        assert_eq!(plan["steps"][0]["verdict"], verdict, "{flags}: {plan:#}");
        bench.exits("resume --no-input --yes", 0);
        assert_eq!((bench.ran("e").len(), bench.text("sent")), (ran, text.into()), "{flags}");
    }
}
