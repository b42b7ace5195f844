//! For tests: a run of another system imported in memory, by core alone.
//!
//! What is told is adopted until nothing more can be; what the decider would then start must be
//! what the recovery point names.

use std::{collections::BTreeSet, sync::Arc};

use onward_core::{
    address::Address,
    decide::{Command, Source, adoptions},
    digest::Digest,
    event::{Event, Mode, RunOpened},
    evidence::FileProof,
    facts::{Facts, Need},
    graph::Defs,
    plan::next_record,
    run::Run,
    state::{Phase, State},
    time::Timestamp,
    told::Told,
    workflow::load,
};
use onward_dialects::{builtin, seam::Site};

/// A run in which everything is adopted that the files prove.
pub(crate) struct Imported {
    pub(crate) run: Run,
}

pub(crate) fn import(site: &Site, told: &dyn Told) -> Imported {
    let text = builtin::workflow(site.workflow).unwrap();
    let mut read = |path: &str| -> Result<Vec<u8>, String> {
        builtin::file(path).map(|text| text.as_bytes().to_vec()).ok_or("no such file".into())
    };
    let loaded = load(site.workflow, text.as_bytes(), &mut read).unwrap();
    let mut inputs = site.inputs.clone();
    for input in &loaded.workflow.inputs {
        if let Some(default) = input.1.default.clone() {
            inputs.entry(input.0.clone()).or_insert(default);
        }
    }
    let mut run = Run::new(Arc::new(Defs::new(loaded.workflow)), State::default());
    record(
        &mut run,
        Event::RunOpened(Box::new(RunOpened {
            format: 1,
            run: "test-20261115-aaaa".parse().unwrap(),
            workflow: site.workflow.into(),
            workflow_hash: Digest::of(b"test"),
            file: None,
            inputs,
            git: None,
            engine: "0".into(),
            boot_id: "boot".into(),
            mode: Mode::Interactive,
        })),
    );
    let (dialect, source) = (site.dialect.to_owned(), site.dir().to_owned());
    record(&mut run, Event::RunAdopted { dialect, source, files: Vec::new() });
    adopt(&mut run, site, told);
    Imported { run }
}

fn adopt(run: &mut Run, site: &Site, told: &dyn Told) {
    let source = Source { dialect: site.dialect, by: site.dialect, told };
    let mut facts = Facts::default();
    for _ in 0..10_000 {
        let commands = adoptions(run, &facts, source);
        if commands.is_empty() {
            return;
        }
        for command in commands {
            match command {
                Command::Record(event) => record(run, event),
                Command::Need { step, needs } => {
                    for need in needs {
                        answer(&mut facts, &step, need);
                    }
                }
                Command::Start(_) | Command::StopAll | Command::WakeAt(_) => {
                    panic!("{command:?}")
                }
            }
        }
    }
    panic!("it adopts for ever");
}

fn answer(facts: &mut Facts, step: &Address, need: Need) {
    let facts = facts.at(step);
    match need {
        Need::Text(path) => {
            facts.texts.insert(path, None);
        }
        Need::Glob(pattern) => {
            facts.globs.insert(pattern, Vec::<FileProof>::new());
        }
    }
}

fn record(run: &mut Run, event: Event) {
    let text = format!("{event:?}");
    let record = next_record(&run.state, Timestamp::from_micros(1_000_000_000), event);
    run.after(record).unwrap_or_else(|error| panic!("{error}: {text}"));
}

impl Imported {
    /// The steps that would start, or ask, next.
    pub(crate) fn left(&self) -> Vec<Address> {
        let graph = &self.run.graph;
        let ids: BTreeSet<_> =
            graph.ready_control().chain(graph.ready_work()).chain(graph.open_gates()).collect();
        ids.into_iter().map(|id| graph.node(id).address.clone()).collect()
    }

    pub(crate) fn phase(&self, step: &str) -> Phase {
        self.run.state.phase(&Address::from_text(step))
    }
}

/// The law: what is left to start are children of the steps that the recovery point names, each of
/// those has some, and nothing is left when it names none.
pub(crate) fn check_agreement(site: &Site, told: &dyn Told) -> Imported {
    let imported = import(site, told);
    let point = told.standing(Timestamp::from_micros(0)).point;
    let left = imported.left();
    let named: Vec<Address> = point.steps.iter().map(|step| Address::from_text(step)).collect();
    for step in &left {
        let row = told.row(step);
        let is_named = named.iter().any(|it| step.is_within(it) || row.is_within(it));
        assert!(is_named, "{step} would start, and the point is {point:#?}");
    }
    for step in &named {
        let is_left = left.iter().any(|it| it.is_within(step) || told.row(it).is_within(step));
        assert!(is_left, "{step} is the point, and what would start is {left:?}");
    }
    assert_eq!(imported.run.graph.root().is_settled(), named.is_empty());
    imported
}
