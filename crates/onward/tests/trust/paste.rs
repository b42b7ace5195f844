//! Every command that onward prints is pasted, in the situation in which it was printed, and works.
//!
//! In each project there is a second run that waits: a command that forgets to say which run it
//! means does not work there.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Stdio};

use crate::{
    a_commands::commands,
    bench::{Bench, Said, id, kill_all, sees},
    support::program::onward,
};

/// What becomes of a project before its words are read.
struct Situation {
    name: &'static str,
    steps: &'static str,
    make: fn(&Bench) -> PathBuf,
    /// What is typed, `RUN` for the run; the words of each count.
    typed: &'static [&'static str],
}

const LOOKS: &[&str] = &["plan RUN", "status RUN", "list", "resume RUN --no-input", ""];

const SITUATIONS: &[Situation] = &[
    Situation {
        name: "a gate is open",
        steps: "  - { id: a, run: LOG }\n  - { id: ok, gate: fine? }\n  - { id: b, run: LOG }\n",
        make: |bench| ran(bench, 11),
        typed: LOOKS,
    },
    Situation {
        name: "a step failed",
        steps: "  - { id: a, run: LOG }\n  - { id: b, run: 'LOG; echo bad >&2; test -e go' }\n",
        make: |bench| ran(bench, 10),
        typed: LOOKS,
    },
    Situation {
        name: "an output was edited and its step too",
        steps: "  - { id: a, run: 'LOG; echo 1 > a.md', writes: [a.md] }\n  \
                - { id: b, run: 'LOG; test -e go' }\n",
        make: |bench| {
            let run = ran(bench, 10);
            bench.write("a.md", "by hand\n");
            let text = bench.text("w.yaml").replace("echo 1 >", "echo 2 >");
            bench.write("w.yaml", &text);
            bench.write("go", "");
            run
        },
        typed: LOOKS,
    },
    Situation {
        name: "an effect without a probe",
        steps: "  - { id: a, effect: outside, \
                run: 'LOG; echo > begun; test $ONWARD_ATTEMPT = 2 || exec sleep 1000' }\n",
        make: killed,
        typed: LOOKS,
    },
    Situation {
        name: "everything was killed",
        steps: "  - { id: a, run: 'LOG; echo > begun; test $ONWARD_ATTEMPT = 2 || sleep 1000' }\n",
        make: killed,
        typed: LOOKS,
    },
    Situation {
        name: "it was cancelled",
        steps: "  - { id: a, run: LOG }\n  - { id: ok, gate: fine? }\n",
        make: |bench| {
            let run = ran(bench, 11);
            bench.exits(&format!("cancel {}", id(&run)), 0);
            run
        },
        typed: LOOKS,
    },
    Situation {
        name: "its journal is damaged",
        steps: "  - { id: a, run: LOG }\n  - { id: ok, gate: fine? }\n",
        make: |bench| {
            let run = ran(bench, 11);
            let path = run.join("journal.jsonl");
            let mut bytes = fs::read(&path).unwrap();
            let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 20;
            bytes[second] ^= 1;
            fs::write(&path, bytes).unwrap();
            run
        },
        typed: &["plan RUN", "status RUN", "list", "resume RUN --no-input", "verify RUN"],
    },
    Situation {
        name: "it is complete, with a rescue",
        steps: "  - { id: a, run: 'LOG; echo half > made; echo > begun; \
                test -e held || { echo > held; exec sleep 1000; }; \
                echo whole > made', writes: [made] }\n",
        make: |bench| {
            let run = killed(bench);
            bench.exits(&format!("resume --no-input {}", id(&run)), 0);
            run
        },
        typed: &["plan RUN", "status RUN", "list", "resume RUN", "undo RUN 1", "rescue list RUN"],
    },
];

fn ran(bench: &Bench, code: i32) -> PathBuf {
    let before: BTreeSet<PathBuf> = runs(bench);
    bench.exits("run w.yaml --no-input", code);
    runs(bench).difference(&before).next().unwrap().clone()
}

fn runs(bench: &Bench) -> BTreeSet<PathBuf> {
    bench.project().runs().unwrap().into_iter().map(|it| it.dir).collect()
}

fn killed(bench: &Bench) -> PathBuf {
    let before = runs(bench);
    let mut engine = bench.start("run w.yaml --no-input");
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    let run = runs(bench).difference(&before).next().unwrap().clone();
    kill_all(&run);
    fs::remove_file(bench.path("begun")).unwrap();
    run
}

fn paste(bench: &Bench, command: &str) -> Said {
    // The same environment as the program's, with a shell between.
    let mut shell = onward(&bench.root, "");
    let path = shell.get_envs().find(|it| it.0 == "PATH").and_then(|it| it.1).unwrap().to_owned();
    shell = std::process::Command::new("sh");
    shell.args(["-c", command]).current_dir(&bench.root).env_clear().stdin(Stdio::null());
    Said::of(&shell.env("PATH", path).env("USER", "ann").output().unwrap())
}

/// A word in capitals stands for something that the reader fills in.
fn is_pattern(command: &str) -> bool {
    let is_blank = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    command.contains('…') || command.split([' ', '.', '=']).any(is_blank)
}

fn check(situation: &Situation) {
    let bench = Bench::new("");
    bench.workflow("other.yaml", "steps:", "  - { id: wait, gate: go? }\n");
    bench.exits("run other.yaml --no-input", 11);
    bench.workflow("w.yaml", "steps:", situation.steps);
    let run = id(&(situation.make)(&bench));
    let copy = bench.copied();
    for typed in situation.typed {
        bench.restore(&copy);
        let said = paste(&bench, &format!("onward {}", typed.replace("RUN", &run)));
        let printed = commands(&format!("{}\n{}", said.out, said.err));
        for command in printed.iter().filter(|it| !is_pattern(it)) {
            bench.restore(&copy);
            let pasted = paste(&bench, command);
            // It did something, or says how the run stands now.
            let shows_first = pasted.code == 16 && pasted.err.contains(" --yes");
            let works = [0, 10, 11].contains(&pasted.code) || shows_first;
            let name = situation.name;
            assert!(works, "{name}, `onward {typed}` prints `{command}`: {pasted:?}");
        }
    }
}

#[test]
fn a15_a17_every_printed_command_works_when_pasted_1() {
    SITUATIONS.iter().step_by(2).for_each(check);
}

#[test]
fn a15_a17_every_printed_command_works_when_pasted_2() {
    SITUATIONS.iter().skip(1).step_by(2).for_each(check);
}
