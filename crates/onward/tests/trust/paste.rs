//! Every command that onward prints is pasted, in the situation in which it was printed, and works.
//!
//! In each project there is a second run that waits: a command that forgets to say which run it
//! means does not work there. And each conversation is held from several places: a command that
//! forgets to say where it works does not work there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

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

const LOOKS: &[&str] = &[
    "plan RUN",
    "status RUN",
    "list",
    "resume RUN --no-input",
    "attach RUN --no-input",
    "approve RUN nosuch",
    "",
];

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

/// Where the person stands, and how the project or the run is named from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Project,
    Below,
    /// With `--cwd`, by a relative path that a shell takes apart.
    Elsewhere,
    /// The run is named by its directory.
    ByDirectory,
}

/// A link to the project, in a directory outside of it.
const LINK: &str = "my project";

impl From {
    /// What the person types, `None` where it names no run and so is not about this project.
    fn typed(self, words: &str, run: &str) -> Option<String> {
        let by_id = words.replace("RUN", run);
        match self {
            Self::Project | Self::Below => Some(format!("onward {by_id}")),
            Self::Elsewhere => Some(format!("onward --cwd '{LINK}' {by_id}")),
            Self::ByDirectory => {
                let dir = format!("'{LINK}/.onward/runs/{run}'");
                words.contains("RUN").then(|| format!("onward {}", words.replace("RUN", &dir)))
            }
        }
    }

    fn stands(self, bench: &Bench, elsewhere: &Path) -> PathBuf {
        match self {
            Self::Project => bench.root.clone(),
            Self::Below => {
                let below = bench.path("below");
                fs::create_dir_all(&below).unwrap();
                below
            }
            Self::Elsewhere | Self::ByDirectory => elsewhere.to_owned(),
        }
    }
}

fn paste(bench: &Bench, stands: &Path, command: &str) -> Said {
    // The same environment as the program's, with a shell between.
    let mut shell = onward(&bench.root, "");
    let path = shell.get_envs().find(|it| it.0 == "PATH").and_then(|it| it.1).unwrap().to_owned();
    shell = std::process::Command::new("sh");
    shell.args(["-c", command]).current_dir(stands).env_clear().stdin(Stdio::null());
    Said::of(&shell.env("PATH", path).env("USER", "ann").output().unwrap())
}

/// A word in capitals stands for something that the reader fills in.
fn is_pattern(command: &str) -> bool {
    let is_blank = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    command.contains('…') || command.split([' ', '.', '=']).any(is_blank)
}

fn check(situation: &Situation, from: From) {
    let bench = Bench::new("");
    bench.workflow("other.yaml", "steps:", "  - { id: wait, gate: go? }\n");
    bench.exits("run other.yaml --no-input", 11);
    bench.workflow("w.yaml", "steps:", situation.steps);
    let run = id(&(situation.make)(&bench));
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&bench.root, outside.path().join(LINK)).unwrap();
    let copy = bench.copied();
    let mut all = BTreeSet::new();
    let both = |words: &&str| [(*words).to_owned(), format!("{words} --json")];
    for words in situation.typed.iter().flat_map(both) {
        let Some(typed) = from.typed(&words, &run) else { continue };
        bench.restore(&copy);
        let said = paste(&bench, &from.stands(&bench, outside.path()), &typed);
        let printed = commands(&format!("{}\n{}", said.out, said.err));
        all.extend(printed.iter().cloned());
        for command in printed.iter().filter(|it| !is_pattern(it)) {
            bench.restore(&copy);
            let pasted = paste(&bench, &from.stands(&bench, outside.path()), command);
            // It did something, or says how the run stands now.
            let shows_first = pasted.code == 16 && pasted.err.contains(" --yes");
            let works = [0, 10, 11].contains(&pasted.code) || shows_first;
            let name = situation.name;
            assert!(works, "{name}, {from:?}, `{typed}` prints `{command}`: {pasted:?}");
        }
    }
    assert!(all.len() >= 2, "{}, {from:?}: {all:?}", situation.name);
}

/// Every second situation, from this one on.
fn check_half(first: usize, from: From) {
    SITUATIONS.iter().skip(first).step_by(2).for_each(|it| check(it, from));
}

#[test]
fn a15_a17_every_printed_command_works_when_pasted_1() {
    check_half(0, From::Project);
}

#[test]
fn a15_a17_every_printed_command_works_when_pasted_2() {
    check_half(1, From::Project);
}

#[test]
fn a15_every_printed_command_works_below_the_project_1() {
    check_half(0, From::Below);
}

#[test]
fn a15_every_printed_command_works_below_the_project_2() {
    check_half(1, From::Below);
}

#[test]
fn a15_every_printed_command_works_elsewhere_with_cwd_1() {
    check_half(0, From::Elsewhere);
}

#[test]
fn a15_every_printed_command_works_elsewhere_with_cwd_2() {
    check_half(1, From::Elsewhere);
}

#[test]
fn a15_every_printed_command_works_for_a_run_named_by_its_directory_1() {
    check_half(0, From::ByDirectory);
}

#[test]
fn a15_every_printed_command_works_for_a_run_named_by_its_directory_2() {
    check_half(1, From::ByDirectory);
}

/// The words of a driver that was left to itself are read where the user stands.
#[test]
fn a15_what_a_driver_in_the_background_says_works_where_it_was_started() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: ok, gate: fine? }\n");
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&bench.root, outside.path().join(LINK)).unwrap();
    ran(&bench, 11);
    let typed = format!("onward --cwd '{LINK}' resume --detach");
    let said = paste(&bench, outside.path(), &typed);
    let answer = commands(&said.err).into_iter().find(|it| it.contains("approve"));
    let answer = answer.unwrap_or_else(|| panic!("{said:?}"));
    let pasted = paste(&bench, outside.path(), &answer);
    assert_eq!(pasted.code, 0, "{answer}: {pasted:?}");
}

#[test]
fn a15_a_mistyped_command_is_corrected_for_the_same_place() {
    let bench = Bench::new("  - { id: ok, gate: fine? }\n");
    bench.exits("run w.yaml", 11);
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&bench.root, outside.path().join(LINK)).unwrap();
    for typed in [format!("onward --cwd '{LINK}' show"), format!("onward show --cwd='{LINK}'")] {
        let said = paste(&bench, outside.path(), &typed);
        let printed = commands(&said.err);
        let pasted = paste(&bench, outside.path(), &printed[0]);
        assert_eq!(pasted.code, 0, "{printed:?} {pasted:?}");
        assert!(pasted.out.contains("Gate ok"), "{pasted:?}");
    }
}

#[test]
fn a15_a_run_comes_back_from_the_archive_by_the_printed_command() {
    for from in [From::Project, From::Below, From::Elsewhere] {
        let bench = Bench::new("  - { id: a, run: LOG }\n");
        let run = id(&ran(&bench, 0));
        bench.exits(&format!("archive {run}"), 0);
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&bench.root, outside.path().join(LINK)).unwrap();
        let stands = from.stands(&bench, outside.path());
        let said = paste(&bench, &stands, &from.typed("status RUN", &run).unwrap());
        assert_eq!(said.code, 17, "{said:?}");
        let back = said.err.split('`').find(|it| it.starts_with("mv ")).unwrap();
        let pasted = paste(&bench, &stands, back);
        assert_eq!(pasted.code, 0, "{from:?}: {back}: {pasted:?}");
        bench.exits(&format!("status {run}"), 0);
    }
}

#[test]
fn a15_the_file_that_is_no_workflow_any_more_is_named_from_below_too() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: ok, gate: fine? }\n");
    bench.exits("run w.yaml", 11);
    bench.write("w.yaml", "steps: 3\n");
    let below = From::Below.stands(&bench, Path::new(""));
    let said = paste(&bench, &below, "onward plan");
    let check = commands(&said.out).into_iter().find(|it| it.contains(" check ")).unwrap();
    let pasted = paste(&bench, &below, &check);
    assert!(pasted.code == 2 && pasted.err.contains("cannot be run"), "{check}: {pasted:?}");
}
