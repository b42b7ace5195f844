//! The plan is true: for random runs, interruptions and answers, what is shown before a resume and
//! what the resume then does are one.

mod compare;

use std::collections::BTreeMap;

use onward_core::{
    address::Address,
    plan::{Plan, Status, Verdict},
    policy::{Choices, EnterAt},
    view::View,
    workflow::model::Workflow,
};
use onward_engine::{
    foreign::Foreign,
    resume::{ResumeError, open, plan},
};

use crate::{
    chance::Chance,
    crash::Crash,
    harness::{Booted, boot, how, parse},
    random,
    refused::Before,
    toy::{
        journal,
        start::{STARTS, others_go_on},
        system,
    },
    world::SimWorld,
};
use compare::Life;

/// How many resumes have to be compared.
const COMPARED_OWN: u64 = 450;
const COMPARED_ADOPTED: u64 = 1_500;

/// What became of the comparisons.
#[derive(Default)]
struct Score {
    compared: u64,
    refused: u64,
    /// Resumes that did not come to the end of the run.
    unfinished: u64,
    /// The verdicts of all rows.
    verdicts: BTreeMap<&'static str, u64>,
    /// By law: how often it was broken, and the first time.
    broken: BTreeMap<&'static str, (u64, String)>,
}

struct Case {
    workflow: Workflow,
    text: String,
    foreign: Option<Foreign>,
}

impl Case {
    fn own(seed: u64) -> Self {
        let text = random::workflow(seed);
        Self { workflow: parse(&text), text, foreign: None }
    }

    /// A run of the toy system, and where it starts.
    fn toy(number: usize) -> Self {
        let start = &STARTS[number % STARTS.len()];
        let foreign = Some(system::foreign(start.begins()));
        let workflow = parse(system::WORKFLOW);
        Self { workflow, text: format!("{start:?}"), foreign }
    }

    fn world(&self, seed: u64, number: usize) -> SimWorld {
        let mut world = SimWorld::new(seed);
        world.stands_still = true;
        // People may ask for what is done to be done again.
        (world.taken.files, world.taken.commits) = (true, true);
        if self.foreign.is_some() {
            STARTS[number % STARTS.len()].lay(&mut world);
        }
        world
    }

    /// Crashes, looks, compares with what comes of it, and crashes again.
    fn live(&self, seed: u64, number: usize, score: &mut Score) {
        let mut chance = Chance::new(seed ^ 0xa9ee);
        let mut world = self.world(seed, number);
        let mut choices = Choices::default();
        for turn in 0..4 {
            let fuse = u64::try_from(chance.below(160)).unwrap();
            let crash = [Crash::Engine, Crash::Processes, Crash::Power][chance.below(3)];
            world.fuses = [(fuse, crash)].into();
            world.story = format!("seed {seed}, {turn} resumes before: {}", self.text);
            match boot(&mut world, &self.workflow, &choices, self.foreign.as_ref()) {
                // Refusals are compared below; a person says yes then.
                Booted::Refused { findings, .. } => {
                    choices = Choices::default();
                    choices.accept_all(&findings);
                    continue;
                }
                Booted::With(Status::Completed) => return,
                Booted::Dark | Booted::InUse | Booted::With(_) => {}
            }
            world.fuses.clear();
            if self.foreign.is_some() && world.supervisor.is_idle() && chance.one_in(3) {
                others_go_on(&mut world);
            }
            choices = self.compare(&mut world, &mut chance, score);
        }
    }

    /// The answers that were given.
    fn compare(&self, world: &mut SimWorld, chance: &mut Chance, score: &mut Score) -> Choices {
        let Some((first, view)) = self.look(world, &Choices::default(), score) else {
            return Choices::default();
        };
        let mut choices = answers(&first, &view, chance);
        // The other system knows of no other place to enter at.
        let is_known = |from: &EnterAt| system::STEPS.contains(&from.step.as_str());
        choices.from = choices.from.filter(|it| self.foreign.is_none() || is_known(it));
        let Some((plan, view)) = self.look(world, &choices, score) else { return choices };
        let mut after = world.clone();
        after.story = format!("{choices:?}, {}", world.story);
        let before = Before::look(world);
        let how = how(&choices, self.foreign.as_ref());
        let booted = match open(&mut after, &self.workflow, &how) {
            Ok(mut driver) => onward_engine::resume::drive(&mut driver).map_err(ResumeError::Stop),
            Err(error) => Err(error),
        };
        let status = match booted {
            Ok(status) => status,
            Err(ResumeError::Complete) => return choices,
            Err(ResumeError::Conflicts(findings)) => {
                score.refused += 1;
                before.check(&after, &|| after.story.clone());
                if choices == Choices::default() && self.foreign.is_none() {
                    // No one has changed anything.
                    let what = format!("{findings:#?}\n{plan:#?}\n{}", after.story);
                    score.note("asked about a crash", what);
                }
                let says_so = !plan.can_resume || !plan.needs.is_empty();
                if !says_so {
                    score.note("refused", format!("{findings:#?}\n{plan:#?}\n{}", after.story));
                }
                return choices;
            }
            Err(error) => {
                score.note("stopped", format!("{error}: {}", after.story));
                return choices;
            }
        };
        let events = journal(&after).split_off(journal(world).len());
        let life = Life { plan: &plan, view: &view, events: &events, before: world, after: &after };
        score.compared += 1;
        score.unfinished += u64::from(status != Status::Completed);
        for row in &plan.steps {
            *score.verdicts.entry(row.verdict.as_str()).or_default() += 1;
        }
        for (law, what) in life.broken_laws(status, self.foreign.as_ref()) {
            score.note(law, format!("{what}\n{}\n{}", life.told(), after.story));
        }
        choices
    }

    /// The plan and the view; nothing else changes by it.
    fn look(
        &self,
        world: &mut SimWorld,
        choices: &Choices,
        score: &mut Score,
    ) -> Option<(Plan, View)> {
        world.disk.read("run/journal.jsonl")?;
        let before = world.clone();
        let shown = plan(world, &self.workflow, &how(choices, self.foreign.as_ref()));
        assert!(before.disk == world.disk, "a plan writes nothing: {}", world.story);
        assert_eq!(before.spawns, world.spawns, "a plan starts nothing");
        let hands = |of: &SimWorld| format!("{:?}", of.supervisor);
        assert_eq!(hands(&before), hands(world), "a plan ends nothing");
        match shown {
            Ok(shown) => Some(shown),
            Err(error) => {
                score.note("no plan", format!("{error}: {choices:?}: {}", world.story));
                None
            }
        }
    }
}

/// What a person might say.
fn answers(plan: &Plan, view: &View, chance: &mut Chance) -> Choices {
    let mut choices = Choices::default();
    let mut pick = |of: &[&str]| of.get(chance.below(of.len())).map(|it| Address::from_text(it));
    let with = |wanted: &[Verdict]| -> Vec<&str> {
        let rows = plan.steps.iter().filter(|row| wanted.contains(&row.verdict));
        rows.map(|row| row.step.as_str()).collect()
    };
    let done: Vec<&str> =
        view.steps.iter().filter(|it| it.state == "done").map(|it| it.step.as_str()).collect();
    let any: Vec<&str> = view.steps.iter().map(|it| it.step.as_str()).collect();
    let (one, redo, keep) = (pick(&any), pick(&done), pick(&done));
    let leave = pick(&with(&[Verdict::Rerun]));
    match chance.below(8) {
        0 => choices.yes = true,
        1 => choices.accept_all(&plan.findings),
        2 => choices.redo.extend(redo),
        3 => choices.keep.extend(keep),
        4 => choices.leave.extend(leave),
        5 => {
            let force = chance.one_in(2);
            choices.from = one.map(|step| EnterAt { step: step.to_string(), force });
        }
        _ => {}
    }
    choices
}

impl Score {
    fn note(&mut self, law: &'static str, what: String) {
        self.broken.entry(law).or_insert((0, what)).0 += 1;
    }

    #[track_caller]
    #[expect(clippy::print_stdout, reason = "a test's output says what it explored")]
    fn require(&self, compared: u64) {
        let Self { compared: seen, refused, unfinished, verdicts, .. } = self;
        println!("{seen} resumes compared, {unfinished} came not to the end; {refused} refused");
        println!("rows: {verdicts:?}");
        for (law, (times, first)) in &self.broken {
            println!("BROKEN {law}, {times} times, first: {first}\n");
        }
        let broken: Vec<(&str, u64)> = self.broken.iter().map(|it| (*it.0, it.1.0)).collect();
        assert!(broken.is_empty(), "the plan and the resume disagree: {broken:?}");
        assert!(*seen >= compared, "only {seen} resumes were compared");
    }
}

/// A quarter of 1,500 runs: four tests that run side by side.
fn own_runs_agree(quarter: u64) {
    let mut score = Score::default();
    for seed in quarter * 375..(quarter + 1) * 375 {
        Case::own(seed).live(seed, 0, &mut score);
    }
    score.require(COMPARED_OWN);
}

#[test]
fn the_plan_the_view_and_what_the_resume_does_agree_1() {
    own_runs_agree(0);
}

#[test]
fn the_plan_the_view_and_what_the_resume_does_agree_2() {
    own_runs_agree(1);
}

#[test]
fn the_plan_the_view_and_what_the_resume_does_agree_3() {
    own_runs_agree(2);
}

#[test]
fn the_plan_the_view_and_what_the_resume_does_agree_4() {
    own_runs_agree(3);
}

#[test]
fn the_plan_of_an_adopted_run_and_what_the_resume_does_agree() {
    let mut score = Score::default();
    for seed in 0..3_000 {
        let number = usize::try_from(seed).unwrap();
        Case::toy(number).live(seed, number, &mut score);
    }
    score.require(COMPARED_ADOPTED);
}
