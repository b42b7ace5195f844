//! Random workflows under random kills of the engine, the supervisor, both, or a child: in the end
//! nothing is lost, nothing ran twice, nothing is left over and every file is right.
//!
//! `scripts/soak --kills 500` asks for more than the suite has time for.

mod workflow;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
    fs,
    path::{Path, PathBuf},
};

use onward_engine::care::harness::{EngineProcess, Watch, until};

use crate::{
    bench::{Bench, id, kill_all, processes, signal},
    chance::{Chance, asked_for},
};
use workflow::Random;

/// Where nothing else is asked for.
const KILLS: u64 = 12;
const KILLS_A_WORKFLOW: u64 = 5;
/// A run that is interrupted more often than this does not get anywhere.
const STARTS_MAX: u32 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Engine,
    Supervisor,
    Both,
    Child,
}

const VICTIMS: [Victim; 4] = [Victim::Engine, Victim::Supervisor, Victim::Both, Victim::Child];

/// What is counted over all runs. Everything but the first three must be 0.
#[derive(Debug, Default)]
struct Figure {
    workflows: u64,
    steps: u64,
    kills: BTreeMap<Victim, u64>,
    lost: u64,
    twice: u64,
    left_over: u64,
    wrong_files: u64,
    /// A child lived on while no one watched it, and wrote: what it changed is a person's to judge.
    asked: u64,
    /// What about, and after which kills.
    questions: String,
    stories: String,
}

impl Figure {
    fn killed(&self) -> u64 {
        self.kills.values().sum()
    }

    fn is_clean(&self) -> bool {
        [self.lost, self.twice, self.left_over, self.wrong_files] == [0; 4]
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |victim| self.kills.get(&victim).copied().unwrap_or(0);
        write!(
            f,
            "{} kills (engine {}, supervisor {}, both {}, child {}) over {} random workflows with \
             {} steps, a person asked {} times: {} lost, {} twice, {} left over, {} wrong files",
            self.killed(),
            of(Victim::Engine),
            of(Victim::Supervisor),
            of(Victim::Both),
            of(Victim::Child),
            self.workflows,
            self.steps,
            self.asked,
            self.lost,
            self.twice,
            self.left_over,
            self.wrong_files
        )
    }
}

struct Soaked {
    bench: Bench,
    random: Random,
    run: PathBuf,
    watch: Watch,
    engine: EngineProcess,
    starts: u32,
    asked: u64,
    questions: String,
    /// A supervisor was killed: what its attempts wrote until the next one came, no one saw.
    was_unwatched: bool,
    story: String,
}

impl Soaked {
    fn begin(chance: &mut Chance, seed: u64) -> Self {
        let random = Random::new(chance);
        let bench = random.bench();
        let (engine, run) = bench.start_run();
        let watch = Watch::new(&run);
        let story = format!("workflow of seed {seed}:\n{}", bench.text("w.yaml"));
        Self {
            bench,
            random,
            run,
            watch,
            engine,
            starts: 1,
            asked: 0,
            questions: String::new(),
            was_unwatched: false,
            story,
        }
    }

    /// The engine goes on until the journal has so many more records; false when it ended first.
    fn goes_on(&mut self, records: usize) -> bool {
        let wanted = self.watch.records.len() + records;
        self.watch.until(&mut self.engine, |it| it.records.len() >= wanted).unwrap()
    }

    fn resume(&mut self, flags: &str) {
        self.starts += 1;
        let said = self.bench.text("said");
        assert!(self.starts < STARTS_MAX, "it gets nowhere:\n{}\n{said}", self.story);
        let id = id(&self.run);
        self.engine = self.bench.start(&format!("resume --no-input --yes {flags}{id}"));
    }

    /// True when the run is completed. One that failed with a child that was killed goes on.
    fn has_ended(&mut self) -> bool {
        let code = self.engine.wait().unwrap().code();
        let said = self.bench.text("said");
        match code {
            Some(0) => return true,
            // It was killed after its last word.
            Some(17) if said.contains("complete") => return true,
            Some(10) => self.resume(""),
            // It was killed again and again before a step could end; the hint says what to do.
            Some(_) if said.contains("times in a row") => self.resume(""),
            Some(16) if said.contains("dirty-tree") && self.was_unwatched => self.answer(&said),
            _ => panic!("exit {code:?}:\n{}\n{said}", self.story),
        }
        false
    }

    /// As a person would who is told that a killed step wrote on: ends what is left of it, puts the
    /// files back as the finished steps made them, and says so.
    fn answer(&mut self, said: &str) {
        self.asked += 1;
        kill_all(&self.run);
        self.watch.look().unwrap();
        let done: Vec<String> = self.watch.finished().into_iter().map(|it| it.0).collect();
        if self.random.files.contains_key("notes.txt") {
            self.bench.write("notes.txt", &self.random.notes(&done));
        }
        for (_, output) in self.random.outputs.iter().filter(|it| !done.contains(it.0)) {
            let _ = fs::remove_file(self.bench.path(output));
        }
        let mut kills = self.story.lines().filter(|line| line.contains(" killed after "));
        let last = kills.next_back().unwrap_or_default();
        for line in said.lines().filter(|line| line.contains("dirty-tree:")) {
            writeln!(self.questions, "{last}: {}", line.trim()).unwrap();
        }
        writeln!(self.story, "a person was asked, and put the files back:\n{said}").unwrap();
        self.resume("--accept dirty-tree ");
    }

    fn supervisor(&self) -> Option<u32> {
        let text = fs::read_to_string(self.run.join("supervisor")).ok()?;
        let here: serde_json::Value = serde_json::from_str(&text).ok()?;
        let pid = u32::try_from(here["pid"].as_u64()?).ok()?;
        // A file that a dead one left may name another process by now.
        processes(&self.run).contains(&pid).then_some(pid)
    }

    fn child(&self, chance: &mut Chance) -> Option<u32> {
        let tag = b"ONWARD_STEP=";
        let is_child = |pid: &u32| {
            let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            bytes.split(|byte| *byte == 0).any(|word| word.starts_with(tag))
        };
        let all: Vec<u32> = processes(&self.run).into_iter().filter(is_child).collect();
        let count = u64::try_from(all.len()).unwrap();
        (count > 0).then(|| all[usize::try_from(chance.below(count)).unwrap()])
    }

    /// False when there was none of that kind to be killed.
    fn kill(&mut self, victim: Victim, chance: &mut Chance) -> bool {
        let pid = match victim {
            Victim::Engine => None,
            Victim::Supervisor | Victim::Both => self.supervisor(),
            Victim::Child => self.child(chance),
        };
        if victim != Victim::Engine && pid.is_none() {
            return false;
        }
        if matches!(victim, Victim::Engine | Victim::Both) {
            self.engine.kill().unwrap();
        }
        if let Some(pid) = pid {
            signal(pid, "-9");
            self.was_unwatched |= victim != Victim::Child;
        }
        writeln!(self.story, "{victim:?} killed after {} records", self.watch.records.len())
            .unwrap();
        if matches!(victim, Victim::Engine | Victim::Both) {
            self.resume("");
        }
        true
    }

    fn judge(mut self, figure: &mut Figure) {
        self.watch.look().unwrap();
        let mut say = |what: String, story: &str| {
            writeln!(figure.stories, "{what}\n{story}").unwrap();
        };
        let mut done: Vec<String> =
            self.watch.finished().into_iter().map(|(step, _)| step).collect();
        done.sort();
        done.dedup();
        for step in self.random.steps.iter().filter(|step| !done.contains(step)) {
            figure.lost += 1;
            say(format!("{step} is lost"), &self.story);
        }
        let ledger = self.bench.ledger();
        for wrong in ledger.against(&self.watch.finished()) {
            figure.twice += 1;
            say(wrong, &self.story);
        }
        let gone =
            until("the last process to end", || Ok(processes(&self.run).is_empty().then_some(())));
        if gone.is_err() {
            figure.left_over += 1;
            say(format!("left over: {:?}", processes(&self.run)), &self.story);
        }
        let found = files(&self.bench.root);
        let names: BTreeSet<&String> = self.random.files.keys().chain(found.keys()).collect();
        for name in names {
            let (wanted, found) = (self.random.files.get(name), found.get(name));
            if wanted != found {
                figure.wrong_files += 1;
                say(format!("{name} is {found:?}, not {wanted:?}"), &self.story);
            }
        }
        figure.asked += self.asked;
        figure.questions += &self.questions;
        figure.workflows += 1;
        figure.steps += u64::try_from(self.random.steps.len()).unwrap();
    }
}

/// What the steps made, by name, and whatever else lies there.
fn files(root: &Path) -> BTreeMap<String, String> {
    const OURS: [&str; 5] = [".git", ".onward", "ledger.txt", "said", "w.yaml"];
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !OURS.contains(&name.as_str()) {
            all.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
    all
}

/// One workflow from its beginning to its end, with so many kills if it lives that long.
fn soak(seed: u64, kills: u64, figure: &mut Figure) {
    let mut chance = Chance(seed);
    let mut soaked = Soaked::begin(&mut chance, seed);
    let mut left = kills;
    loop {
        let records = 1 + usize::try_from(chance.below(6)).unwrap();
        if left == 0 || !soaked.goes_on(records) {
            if soaked.has_ended() {
                break;
            }
            continue;
        }
        // Not always just behind a write: the moment itself is what is tried.
        let mut looks = chance.below(10);
        let moment = || {
            looks = looks.saturating_sub(1);
            Ok((looks == 0).then_some(()))
        };
        until("a moment", moment).unwrap();
        let victim = VICTIMS[usize::try_from(chance.below(4)).unwrap()];
        if soaked.kill(victim, &mut chance) {
            left -= 1;
            *figure.kills.entry(victim).or_default() += 1;
        }
    }
    soaked.judge(figure);
}

#[test]
fn soak_nothing_is_lost_twice_left_over_or_wrong_under_random_kills() {
    let kills = asked_for("ONWARD_SOAK_KILLS").unwrap_or(KILLS);
    let seed = asked_for("ONWARD_SOAK_SEED").unwrap_or(1);
    let first = asked_for("ONWARD_SOAK_FIRST").unwrap_or(0);
    let mut figure = Figure::default();
    while figure.killed() < kills {
        let quota = KILLS_A_WORKFLOW.min(kills - figure.killed());
        let number = first.wrapping_add(figure.workflows);
        soak(seed.wrapping_mul(1_000_003).wrapping_add(number), quota, &mut figure);
        assert!(figure.workflows <= kills, "no workflow lives long enough: {figure}");
    }
    #[expect(clippy::print_stdout, reason = "the figure is what the script is started for")]
    {
        println!("soak, seed {seed}: {figure}\n{}", figure.questions);
    }
    assert!(figure.is_clean(), "{figure}\n{}", figure.stories);
}
