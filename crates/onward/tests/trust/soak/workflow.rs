//! A random workflow whose every file is known beforehand.
//!
//! Each step adds to its output instead of writing it, so that an attempt whose half-done work was
//! not undone shows in the end.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{bench::Bench, chance::Chance, support::program::git};

pub(crate) struct Random {
    text: String,
    in_git: bool,
    /// Every step that must be done in the end.
    pub(crate) steps: Vec<String>,
    /// Every file that must be there in the end.
    pub(crate) files: BTreeMap<String, String>,
    /// The output of each step.
    pub(crate) outputs: BTreeMap<String, String>,
    /// The steps that edit `notes.txt`, and what each adds.
    notes: Vec<(String, String)>,
}

impl Random {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let mut random = Self {
            text: String::new(),
            in_git: chance.below(3) == 0,
            steps: Vec::new(),
            files: [("in.txt".to_owned(), "0\n".to_owned())].into(),
            outputs: BTreeMap::new(),
            notes: Vec::new(),
        };
        if random.in_git {
            random.files.insert(".gitignore".into(), "ledger.txt\nsaid\nw.yaml\n".into());
        }
        let count = 4 + chance.below(5);
        let mut from = "in.txt".to_owned();
        for number in 0..count {
            from = random.step(number, &from, chance);
        }
        if random.in_git {
            let all = random.notes(&random.steps);
            random.files.insert("notes.txt".into(), all);
        }
        random
    }

    /// `notes.txt` when these steps are done.
    pub(crate) fn notes(&self, done: &[String]) -> String {
        let added = self.notes.iter().filter(|(step, _)| done.contains(step));
        added.fold("notes\n".to_owned(), |all, (_, line)| all + line)
    }

    pub(crate) fn bench(&self) -> Bench {
        let bench = Bench::new("");
        // A child that is killed again and again is no reason to stop here.
        let head = "limits: { parallel: 3, resumes: 1000 }\nsteps:";
        bench.workflow("w.yaml", head, &self.text);
        bench.write("in.txt", "0\n");
        if self.in_git {
            bench.write(".gitignore", &self.files[".gitignore"]);
            bench.write("notes.txt", "notes\n");
            bench.write(".onward/.gitignore", "*\n");
            for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "one"]] {
                git(&bench.root, arguments);
            }
        }
        bench
    }

    /// Adds one, and gives the file that the next one reads.
    fn step(&mut self, number: u64, from: &str, chance: &mut Chance) -> String {
        let before = self.files[from].clone();
        let wait = format!("sleep 0.0{}", chance.below(10));
        let wait = match chance.below(4) {
            // What a step leaves behind goes with it.
            0 => format!("setsid sleep 100 & {wait}"),
            1 => String::from("sleep 0.15"),
            _ => wait,
        };
        let retry = if chance.below(2) == 0 { ", retry: { max: 8, backoff: 0s }" } else { "" };
        let work = |out: &str| {
            format!("set -e; LOG; cat {from} >> {out}; {wait}; echo {number} >> {out}; sleep 0.02")
        };
        let after = format!("{before}{number}\n");
        let made = |random: &mut Self, step: String, file: String| {
            random.outputs.insert(step.clone(), file.clone());
            random.steps.push(step);
            random.files.insert(file, after.clone());
        };
        match chance.below(5) {
            0 => {
                let run = work(&format!("out-{number}-{{{{ item }}}}"));
                writeln!(
                    self.text,
                    "  - {{ id: s{number}, each: [x, y, z], run: '{run}', reads: [{from}], \
                     writes: ['out-{number}-{{{{ item }}}}']{retry} }}"
                )
                .unwrap();
                for item in ["x", "y", "z"] {
                    made(self, format!("s{number}[{item}]"), format!("out-{number}-{item}"));
                }
                format!("out-{number}-y")
            }
            1 => {
                let run = work(&format!("out-{number}-{{{{ s{number} }}}}"));
                writeln!(
                    self.text,
                    "  - {{ id: s{number}, repeat: {{ max: 2 }}, steps: [ {{ id: w, run: '{run}', \
                     writes: ['out-{number}-{{{{ s{number} }}}}']{retry} }} ] }}"
                )
                .unwrap();
                for turn in 1..=2 {
                    made(self, format!("s{number}[{turn}]/w"), format!("out-{number}-{turn}"));
                }
                format!("out-{number}-2")
            }
            2 if self.in_git => {
                let run = format!("{}; echo {number} >> notes.txt", work(&format!("out-{number}")));
                writeln!(
                    self.text,
                    "  - {{ id: s{number}, run: '{run}', edits: true, \
                     writes: [out-{number}]{retry} }}"
                )
                .unwrap();
                made(self, format!("s{number}"), format!("out-{number}"));
                self.notes.push((format!("s{number}"), format!("{number}\n")));
                format!("out-{number}")
            }
            _ => {
                let run =
                    format!("{}; echo {number} > $ONWARD_RESULT", work(&format!("out-{number}")));
                writeln!(
                    self.text,
                    "  - {{ id: s{number}, run: '{run}', reads: [{from}], \
                     writes: [out-{number}]{retry} }}"
                )
                .unwrap();
                made(self, format!("s{number}"), format!("out-{number}"));
                format!("out-{number}")
            }
        }
    }
}
