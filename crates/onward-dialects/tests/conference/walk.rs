//! The built-in workflow, walked by core with what the files tell: what is done is adopted, what is
//! passed over is skipped, and what is left would start.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use onward_core::{
    address::Address,
    decide::{Command, Source, adoptions},
    digest::Digest,
    event::{Certainty, Event, Mode, RunOpened},
    facts::{Facts, Need},
    graph::{Defs, Role},
    plan::{Verdict, next_record},
    run::Run,
    state::State,
    time::Timestamp,
    told::{StepTold, Told},
    workflow::load,
};
use onward_dialects::builtin;

/// More turns than any conference here needs.
const TURNS_MAX: usize = 2_000;

pub(crate) struct Walk<'a> {
    told: &'a dyn Told,
    run: Run,
}

impl<'a> Walk<'a> {
    pub(crate) fn of(told: &'a dyn Told) -> Self {
        let run = Run::new(defs(), State::default());
        let mut walk = Self { told, run };
        walk.record(Event::RunOpened(Box::new(RunOpened {
            format: 1,
            run: "conference-20260504-aaaa".parse().unwrap(),
            workflow: "conference".into(),
            workflow_hash: Digest::of(b"conference"),
            file: None,
            inputs: [("dir".to_owned(), ".".into())].into(),
            git: None,
            engine: "0".into(),
            boot_id: "boot".into(),
            mode: Mode::Interactive,
        })));
        walk.record(Event::RunAdopted {
            dialect: "conference".into(),
            source: ".".into(),
            files: Vec::new(),
        });
        walk.adopt();
        walk
    }

    fn record(&mut self, event: Event) {
        let text = format!("{event:?}");
        let record = next_record(&self.run.state, Timestamp::default(), event);
        self.run.after(record).unwrap_or_else(|error| panic!("{error}: {text}"));
    }

    fn adopt(&mut self) {
        let (dialect, by) = ("conference", "conference.md");
        let source = Source { dialect, by, told: self.told };
        let mut facts = Facts::default();
        for _ in 0..TURNS_MAX {
            let commands = adoptions(&self.run, &facts, source);
            if commands.is_empty() {
                return;
            }
            for command in commands {
                match command {
                    Command::Record(event) => self.record(event),
                    Command::Need { step, needs } => answer(&mut facts, &step, needs),
                    Command::Start(_) | Command::StopAll | Command::WakeAt(_) => {
                        panic!("{command:?}")
                    }
                }
            }
        }
        panic!("it adopts for ever");
    }

    /// The steps that would start, or ask, next.
    pub(crate) fn next(&self) -> Vec<String> {
        let graph = &self.run.graph;
        let ids = graph.ready_control().chain(graph.ready_work());
        let ids: BTreeSet<String> = ids.map(|id| graph.node(id).address.to_string()).collect();
        ids.into_iter().collect()
    }

    /// What becomes of a row of the plan: of all steps within it that the workflow has come to.
    pub(crate) fn verdict(&self, row: &str) -> Verdict {
        let graph = &self.run.graph;
        let leaves = graph.in_order().into_iter().map(|id| graph.node(id));
        let leaves = leaves.filter(|node| node.role == Role::Leaf).map(|node| &node.address);
        let row = Address::from_text(row);
        let own: Vec<StepTold> = leaves
            .filter(|step| self.told.row(step).is_within(&row))
            .map(|step| self.told.step(step))
            .collect();
        assert!(!own.is_empty(), "the workflow has no {row}");
        let unproved = |it: &StepTold| matches!(it, StepTold::Unproved(_));
        let passed = |it: &StepTold| matches!(it, StepTold::PassedOver(_));
        let done = |it: &StepTold| matches!(it, StepTold::Done(_));
        let inferred =
            |it: &StepTold| matches!(it, StepTold::Done(it) if it.certainty == Certainty::Inferred);
        if own.iter().any(unproved) {
            Verdict::Verify
        } else if own.iter().all(passed) {
            Verdict::Skip
        } else if !own.iter().all(|it| done(it) || passed(it)) {
            Verdict::Run
        } else if own.iter().any(inferred) {
            Verdict::Adopt
        } else {
            Verdict::Keep
        }
    }
}

fn defs() -> Arc<Defs> {
    static DEFS: OnceLock<Arc<Defs>> = OnceLock::new();
    let loaded = || {
        let mut read = |path: &str| -> Result<Vec<u8>, String> {
            builtin::file(path).map(|text| text.as_bytes().to_vec()).ok_or("no such file".into())
        };
        let text = builtin::workflow("conference").unwrap();
        let loaded = load("conference", text.as_bytes(), &mut read).unwrap();
        Arc::new(Defs::new(loaded.workflow))
    };
    DEFS.get_or_init(loaded).clone()
}

fn answer(facts: &mut Facts, step: &Address, needs: BTreeSet<Need>) {
    for need in needs {
        let known = facts.at(step);
        match need {
            Need::Glob(pattern) => drop(known.globs.insert(pattern, Vec::new())),
            Need::Text(path) => panic!("{step} reads {path}"),
        }
    }
}
