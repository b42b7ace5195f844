//! Random workflows, interruptions and changes: plan, status and list against what the resume does.
//!
//! `ONWARD_TRUST_SEEDS=200` tries so many seeds; `ONWARD_TRUST_SEED=17` tries one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs, panic,
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
struct Made {
    steps: String,
    slow: u64,
    /// What the file `flag` says at first.
    flag: &'static str,
    /// The last step may be passed over, and then makes nothing that could be a list.
    may_skip_last: bool,
}

impl Made {
    fn new(chance: &mut Chance, in_git: bool) -> Self {
        let count = 3 + chance.below(3);
        let slow = 1 + chance.below(count - 1);
        let flag = ["yes", "no"][usize::try_from(chance.below(2)).unwrap()];
        let mut made = Self { steps: String::new(), slow, flag, may_skip_last: false };
        for number in 0..count {
            made.add(number, chance, in_git);
        }
        made
    }

    fn add(&mut self, number: u64, chance: &mut Chance, in_git: bool) {
        let from = if number == 0 { "in.txt".into() } else { format!("out-{}", number - 1) };
        let wait = if number == self.slow {
            "; touch began.o; while test -e wait.o; do sleep 0.02; done"
        } else {
            ""
        };
        let many = match chance.below(7) {
            0 => ", each: [x, y]".to_owned(),
            1 => ", repeat: { max: 2 }".to_owned(),
            2 => ", each: \"{{ lines('list') }}\"".to_owned(),
            3 if number > 0 && !self.may_skip_last => {
                format!(", each: \"{{{{ lines('{from}') }}}}\"")
            }
            _ => String::new(),
        };
        let when = match chance.below(4) {
            // What waits has to begin.
            0 if number == self.slow => Some(self.flag),
            0 => Some("yes"),
            1 if number != self.slow => Some("no"),
            _ => None,
        };
        let when =
            when.map(|it| format!(", when: \"{{{{ read_text('flag') | trim == '{it}' }}}}\""));
        let when = when.unwrap_or_default();
        self.may_skip_last = !when.is_empty();
        let edits = if in_git && chance.below(2) == 0 { ", edits: true" } else { "" };
        let reads = if chance.below(3) == 0 { "" } else { &format!(", reads: [{from}]") };
        let (does, effect) = if many.is_empty() && edits.is_empty() && chance.below(4) == 0 {
            let probe = format!("probe: {{ run: test -e hap-{number}.o, absent: 1 }}");
            (format!("touch hap-{number}.o; "), format!(", effect: outside, {probe}"))
        } else {
            (String::new(), String::new())
        };
        let copy = format!("cat {from} > out-{number} || echo none > out-{number}");
        writeln!(
            self.steps,
            "  - {{ id: s{number}, run: 'LOG; {does}{copy}{wait}', \
             writes: [out-{number}]{reads}{many}{when}{edits}{effect} }}"
        )
        .unwrap();
    }
}

struct Case {
    bench: Bench,
    run: std::path::PathBuf,
    story: String,
    slow: u64,
    /// The step that waited has ended.
    is_sealed: bool,
}

impl Case {
    fn begin(seed: u64) -> (Self, Chance) {
        let mut chance = Chance(seed);
        let in_git = seed.is_multiple_of(3);
        let Made { steps, slow, flag, .. } = Made::new(&mut chance, in_git);
        let bench = if in_git { repo("", &steps) } else { Bench::new(&steps) };
        for (name, text) in [("in.txt", "1\n"), ("list", "x\ny\n"), ("flag", flag), ("wait.o", "")]
        {
            bench.write(name, text);
        }
        if in_git {
            git(&bench, "add -A");
            git(&bench, "commit -q -m two");
        }
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("began.o"));
        let mut story = format!("seed {seed}, flag {flag}:\n{steps}");
        let ending = chance.below(5);
        match ending {
            0 => {
                engine.kill().unwrap();
                story += "the engine killed; ";
            }
            1 | 2 => {
                engine.kill().unwrap();
                fs::remove_file(bench.path("wait.o")).unwrap();
                waits_for_all(&run);
                story += "the engine killed, the step ended; ";
            }
            3 => {
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
        let is_sealed = matches!(ending, 1 | 2);
        (Self { bench, run, story, slow, is_sealed }, chance)
    }

    /// What a person might do meanwhile.
    fn change(&mut self, chance: &mut Chance) {
        for _ in 0..chance.below(3) {
            let number = chance.below(self.slow + 1);
            let output = format!("out-{number}");
            // What an attempt that lives or died half-way made is its own.
            let is_whole = number < self.slow;
            let what = match chance.below(8) {
                0 => {
                    self.bench.write("in.txt", "2\n");
                    "in.txt changed"
                }
                1 if is_whole || self.is_sealed => {
                    drop(fs::remove_file(self.bench.path(&output)));
                    "removed"
                }
                2 if is_whole && self.bench.path(&output).exists() => {
                    self.bench.write(&output, "by hand\n");
                    "changed by hand"
                }
                3 | 4 => {
                    let text = self.bench.text("w.yaml");
                    let text = text.replace(&format!("> {output}"), &format!(">  {output}"));
                    self.bench.write("w.yaml", &text);
                    "its command changed"
                }
                5 => {
                    let other = if self.bench.text("flag") == "yes" { "no" } else { "yes" };
                    self.bench.write("flag", other);
                    "flag changed"
                }
                6 => {
                    self.bench.write("list", "y\nz\n");
                    "list changed"
                }
                _ => {
                    let text = self.bench.text("w.yaml");
                    self.bench.write("w.yaml", &format!("{text}# a comment\n"));
                    "a comment"
                }
            };
            write!(self.story, "{output}: {what}; ").unwrap();
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
        // A list or a loop that is passed over has no steps.
        let is_counted = |it: &&(String, String)| {
            let is_it = |step: &Value| step["step"] == it.0.as_str();
            let is_told = status["steps"].as_array().unwrap().iter().any(is_it);
            let is_empty = it.1 == "skip" && self.is_many(&it.0);
            assert!(is_told || is_empty, "{}\n{status}", say(&format!("{} in status", it.0)));
            is_told
        };
        let stays = |it: &&(String, String)| ["keep", "skip", "adopt"].contains(&it.1.as_str());
        let kept = rows.iter().filter(stays).filter(is_counted).count();
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
        let absent = self.absent();
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
                // It waits for its `when`, which is asked then.
                "verify" if causes(&plan, step) == ["when"] => {
                    let inside = format!("{step}[");
                    let runs = |it: &&String| *it == step || it.starts_with(&inside);
                    let any = after.keys().filter(runs).any(|it| ran(it) > 0);
                    let is_told = any != is_skipped(&self.run, step);
                    assert!(is_told, "{}", say(&format!("{step} was to run or to be skipped")));
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
        // An undo that rests on a probe is made if that says no.
        let is_made = |it: &&Value| it["only_if"].is_null() || absent.contains(&it["step"]);
        let made = planned.iter().filter(is_made);
        let made: BTreeSet<String> =
            made.map(|it| it["path"].as_str().unwrap().to_owned()).collect();
        assert_eq!(undone, made, "{}", say("reverts"));
    }

    /// Whether a step of this id has items or turns.
    fn is_many(&self, step: &str) -> bool {
        let (text, named) = (self.bench.text("w.yaml"), format!("id: {step},"));
        let line = text.lines().find(|it| it.contains(&named)).unwrap_or_default();
        line.contains(", each:") || line.contains(", repeat:")
    }

    /// Steps whose probe says that they did not happen.
    fn absent(&self) -> Vec<Value> {
        let text = self.bench.text("w.yaml");
        let numbers = (0..9).filter(|it| {
            let mark = format!("hap-{it}.o");
            text.contains(&mark) && !self.bench.path(&mark).exists()
        });
        numbers.map(|it| Value::from(format!("s{it}"))).collect()
    }
}

/// Whether the last word about a step is that it was passed over.
fn is_skipped(run: &Path, step: &str) -> bool {
    let journal = journal(run);
    let named = format!("\"step\":\"{step}\"");
    let last = journal.lines().rfind(|line| line.contains(&named));
    last.is_some_and(|line| line.contains("step.skipped"))
}

/// Waits until everything that was spawned has ended; a step that edits has when the tree behind it
/// is kept: until then nothing tells whose a change is, and two looks may differ.
fn waits_for_all(run: &Path) {
    until("all seals", || {
        let log = fs::read(run.join("exits.jsonl")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let count = |kind: &str| {
            let kind = format!("\"kind\":\"{kind}\"");
            log.lines().filter(|it| it.contains(&kind)).count()
        };
        let snapshots = journal(run).matches("\"base\":").count();
        let is_all = count("spawning") == count("exited") && snapshots == count("snapshot");
        Ok(is_all.then_some(()))
    })
    .unwrap();
}

fn rows(plan: &Value) -> Vec<(String, String)> {
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = plan["steps"].as_array().unwrap().iter();
    rows.map(|row| (text(row, "step"), text(row, "verdict"))).collect()
}

/// Why a row has its verdict, by the words for it.
fn causes<'p>(plan: &'p Value, step: &str) -> Vec<&'p str> {
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|row| row["step"] == step).unwrap();
    row["why"].as_array().unwrap().iter().map(|it| it["cause"].as_str().unwrap()).collect()
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
    case.change(&mut chance);
    case.compare();
}

#[test]
fn a20_to_a27_the_plan_status_list_and_resume_agree_over_random_runs() {
    if let Some(seed) = asked_for("ONWARD_TRUST_SEED") {
        return live(seed);
    }
    let seeds = 0..asked_for("ONWARD_TRUST_SEEDS").unwrap_or(SEEDS);
    let disagree = |seed: &u64| panic::catch_unwind(|| live(*seed)).is_err();
    let broken: Vec<u64> = seeds.filter(disagree).collect();
    assert_eq!(broken, [0; 0], "these seeds disagree");
}
