//! Random workflows, interruptions and changes: plan, status and list against what the resume does.
//!
//! `ONWARD_TRUST_SEEDS=200` tries so many seeds; `ONWARD_TRUST_SEED=17` tries one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use onward_engine::{care::harness::until, revert::rescue};
use serde_json::Value;

use crate::{
    bench::{Bench, id, journal, kill_all, sees, signal},
    chance::{Chance, asked_for},
    support::repo::{git, repo},
};

/// So many are tried where nothing else is asked for.
const SEEDS: u64 = 12;

/// Steps that each copy what the one before made; one of them waits until it is let go.
fn workflow(chance: &mut Chance, in_git: bool) -> (String, u64) {
    let count = 3 + chance.below(3);
    let slow = 1 + chance.below(count - 1);
    let mut text = String::new();
    for number in 0..count {
        let from = if number == 0 { "in.txt".into() } else { format!("out-{}", number - 1) };
        let wait = if number == slow {
            "; touch began.o; while test -e wait.o; do sleep 0.02; done"
        } else {
            ""
        };
        let many = match chance.below(5) {
            0 => ", each: [x, y]",
            1 => ", repeat: { max: 2 }",
            _ => "",
        };
        let edits = if in_git && chance.below(2) == 0 { ", edits: true" } else { "" };
        let run = format!("LOG; cat {from} > out-{number}{wait}");
        writeln!(
            text,
            "  - {{ id: s{number}, run: '{run}', reads: [{from}], \
             writes: [out-{number}]{many}{edits} }}"
        )
        .unwrap();
    }
    (text, slow)
}

struct Case {
    bench: Bench,
    run: std::path::PathBuf,
    story: String,
}

impl Case {
    fn begin(seed: u64) -> (Self, Chance) {
        let mut chance = Chance(seed);
        let in_git = seed.is_multiple_of(3);
        let (steps, slow) = workflow(&mut chance, in_git);
        let bench = if in_git { repo("", &steps) } else { Bench::new(&steps) };
        bench.write("in.txt", "1\n");
        bench.write("wait.o", "");
        if in_git {
            git(&bench, "add -A");
            git(&bench, "commit -q -m two");
        }
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("began.o"));
        let mut story = format!("seed {seed}:\n{steps}");
        match chance.below(4) {
            0 => {
                engine.kill().unwrap();
                story += "the engine killed; ";
            }
            1 => {
                engine.kill().unwrap();
                fs::remove_file(bench.path("wait.o")).unwrap();
                let seal = format!("\"step\":\"s{slow}");
                // A step that edits has ended when the tree behind it is kept: until then nothing
                // tells whose a change is, and two looks may differ.
                let is_slow = |it: &str| it.contains(&format!("id: s{slow},"));
                let edits = steps.lines().any(|it| is_slow(it) && it.contains("edits: true"));
                let last = if edits { "\"kind\":\"snapshot\"" } else { "\"kind\":\"exited\"" };
                until("a seal", || {
                    let seals = fs::read(run.join("exits.jsonl")).unwrap_or_default();
                    let seals = String::from_utf8_lossy(&seals).into_owned();
                    let is_it = |it: &str| it.contains(&seal) && it.contains(last);
                    Ok(seals.lines().any(is_it).then_some(()))
                })
                .unwrap();
                story += "the engine killed, the step ended; ";
            }
            2 => {
                engine.kill().unwrap();
                kill_all(&run);
                story += "everything killed; ";
            }
            _ => {
                signal(engine.pid(), "-INT");
                signal(engine.pid(), "-INT");
                engine.wait().unwrap();
                story += "interrupted; ";
            }
        }
        (Self { bench, run, story }, chance)
    }

    /// What a person might do meanwhile.
    fn change(&mut self, chance: &mut Chance, slow: u64) {
        for _ in 0..chance.below(3) {
            let number = chance.below(slow);
            let output = format!("out-{number}");
            match chance.below(5) {
                0 => self.bench.write("in.txt", "2\n"),
                1 => drop(fs::remove_file(self.bench.path(&output))),
                2 => self.bench.write(&output, "by hand\n"),
                3 => {
                    let text = self.bench.text("w.yaml");
                    let text = text.replace(&format!("> {output}"), &format!(">  {output}"));
                    self.bench.write("w.yaml", &text);
                }
                _ => {
                    let text = self.bench.text("w.yaml");
                    self.bench.write("w.yaml", &format!("{text}# a comment\n"));
                }
            }
            write!(self.story, "changed {output} or what it is made of; ").unwrap();
        }
    }

    fn compare(&self) {
        let (bench, story) = (&self.bench, &self.story);
        let plan = bench.plan(&self.run);
        let status = bench.exits(&format!("status --json {}", id(&self.run)), 0).json();
        let list = bench.exits("list --json", 0).json();
        let say = |what: &str| format!("{what}\n{story}\n{}", told(&plan, &self.run));
        assert_eq!(plan["run"]["status"], status["run"]["status"], "{}", say("status"));
        assert_eq!(plan["run"]["status"], list["runs"][0]["status"], "{}", say("list"));
        let rows = rows(&plan);
        let stays = |it: &&(String, String)| ["keep", "skip", "adopt"].contains(&it.1.as_str());
        let kept = rows.iter().filter(stays).count();
        // What lives may end between two looks.
        if rows.iter().all(|it| it.1 != "reattach") {
            assert_eq!(status["counts"]["done"], kept, "{}\n{status}", say("done"));
            assert_eq!(status["counts"], list["runs"][0]["counts"], "{}\n{status}", say("counts"));
        }
        check_counts(&plan, &rows, &say);
        check_headline(&plan, &rows, &say);
        let _ = fs::remove_file(bench.path("wait.o"));
        let before = bench.ledger().0;
        let accept = "--accept artifact-changed --accept dirty-tree";
        if plan["can_resume"] == false {
            let (journaled, ledger) = (journal(&self.run), bench.text("ledger.txt"));
            bench.exits("resume --no-input --yes", 16);
            assert_eq!(journal(&self.run), journaled, "{}", say("a refused resume wrote"));
            assert_eq!(bench.text("ledger.txt"), ledger, "{}", say("a refused resume ran"));
        }
        let rescued = rescue::list(&self.run).unwrap().rescues.len();
        let said = bench.onward(&format!("resume --no-input --yes {accept}"));
        assert_eq!(said.code, 0, "{}\n{said:?}", say("the resume"));
        let after = bench.ledger().0;
        let ran = |step: &str| {
            let count = |of: &BTreeMap<String, Vec<u32>>| of.get(step).map_or(0, Vec::len);
            count(&after) - count(&before)
        };
        for (step, verdict) in &rows {
            let times = ran(step);
            match verdict.as_str() {
                "keep" | "skip" | "adopt" | "reattach" => {
                    assert_eq!(times, 0, "{}", say(&format!("{step} is {verdict}, and ran")));
                }
                // A group that is not open yet stands for its items.
                "run" | "rerun" | "continue" => {
                    let inside = format!("{step}[");
                    let runs = |it: &&String| *it == step || it.starts_with(&inside);
                    let any = after.keys().filter(runs).any(|it| ran(it) > 0);
                    assert!(any, "{}", say(&format!("{step} is {verdict}, and did not run")));
                }
                _ => {}
            }
        }
        for step in after.keys().filter(|step| ran(step) > 0) {
            let group = step.split('[').next().unwrap();
            let has_row = rows.iter().any(|(it, _)| it.split('[').next() == Some(group));
            assert!(has_row, "{}", say(&format!("{step} ran without a row")));
        }
        let undone: BTreeSet<String> = rescue::list(&self.run).unwrap().rescues[rescued..]
            .iter()
            .flat_map(|it| it.note.paths.iter().map(|path| path.path.clone()))
            .collect();
        let planned = plan["reverts"].as_array().unwrap();
        let planned: BTreeSet<String> =
            planned.iter().map(|it| it["path"].as_str().unwrap().to_owned()).collect();
        assert_eq!(undone, planned, "{}", say("reverts"));
    }
}

fn rows(plan: &Value) -> Vec<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = plan["steps"].as_array().unwrap().iter();
    rows.map(|row| (text(row, "step"), text(row, "verdict"))).collect()
}

fn check_counts(plan: &Value, rows: &[(String, String)], say: &impl Fn(&str) -> String) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, verdict) in rows {
        *counts.entry(verdict).or_default() += 1;
    }
    assert_eq!(plan["counts"], serde_json::json!(counts), "{}", say("counts"));
}

fn check_headline(plan: &Value, rows: &[(String, String)], say: &impl Fn(&str) -> String) {
    let acts = |verdict: &str| ["run", "rerun", "ask", "continue", "reattach"].contains(&verdict);
    let acting: Vec<&str> = rows.iter().filter(|it| acts(&it.1)).map(|it| it.0.as_str()).collect();
    let named = plan["recovery_point"]["steps"].as_array().unwrap();
    assert_eq!(named.is_empty(), acting.is_empty(), "{}", say("headline"));
    for step in named {
        let step = step.as_str().unwrap();
        assert!(acting.contains(&step), "{}", say(&format!("{step} in the headline")));
    }
}

/// The plan and the journal, for a reader.
fn told(plan: &Value, run: &Path) -> String {
    let mut text = format!("{}\n", plan["recovery_point"]);
    for row in plan["steps"].as_array().unwrap() {
        writeln!(text, "  {} {} {}", row["verdict"], row["step"], row["why"]).unwrap();
    }
    writeln!(text, "{}\n{}", plan["reverts"], plan["findings"]).unwrap();
    for line in journal(run).lines() {
        let line = line.split("\"kind\":").last().unwrap_or_default();
        writeln!(text, "  {}", line.chars().take(200).collect::<String>()).unwrap();
    }
    text
}

fn live(seed: u64) {
    let (mut case, mut chance) = Case::begin(seed);
    let slow = {
        let mut again = Chance(seed);
        workflow(&mut again, seed.is_multiple_of(3)).1
    };
    case.change(&mut chance, slow);
    case.compare();
}

#[test]
fn a20_to_a27_the_plan_status_list_and_resume_agree_over_random_runs() {
    if let Some(seed) = asked_for("ONWARD_TRUST_SEED") {
        return live(seed);
    }
    (0..asked_for("ONWARD_TRUST_SEEDS").unwrap_or(SEEDS)).for_each(live);
}
