//! The laws of adopted runs: the journal and the files say the same, and the log only grows.

use std::sync::Arc;

use onward_core::{
    address::Address,
    digest::Digest,
    event::Event,
    graph::Defs,
    journal::decode_line,
    run::Run,
    state::{Phase, State},
    told::StepTold,
};
use onward_engine::dialects::{Dialect as _, Files, Site, conference::CONFERENCE};
use onward_engine::locate::load_pinned;

use crate::tea::{LOG, Tea};

/// Every step of the workflow that the journal knows of.
fn steps(state: &State) -> impl Iterator<Item = (&Address, Phase)> {
    state.steps.iter().map(|(step, entry)| (step, entry.phase))
}

/// Steps that write what the conference itself goes by.
fn is_written(step: &Address) -> bool {
    matches!(step.last_id(), "settle" | "publish" | "transfer" | "close" | "start" | "begin")
}

#[test]
fn after_every_export_the_journal_and_the_files_say_the_same() {
    let finished = Tea::finished();
    for cut in [1, 4, 8, 13] {
        let tea = Tea::left(&finished, cut);
        tea.exits("resume --yes --no-input", 0);
        let [run_dir] = tea.runs().try_into().unwrap();
        let defs = Arc::new(Defs::new(load_pinned(&run_dir).unwrap().workflow));
        let log = tea.log();
        let mut run = Run::new(defs, State::default());
        let mut exports = 0;
        for line in tea.journal().lines() {
            let record = decode_line(line.as_bytes()).unwrap();
            let mut exported = None;
            if let Event::NativeExported { files } = &record.event {
                exported = files.iter().find(|it| it.path == LOG).cloned();
            }
            run.after(record).unwrap();
            let Some(exported) = exported else { continue };
            exports += 1;
            let offset = usize::try_from(exported.offset.unwrap()).unwrap();
            assert_eq!(Digest::of(&log[..offset]), exported.hash, "the log was rewritten");
            let mut contents = tea.contents();
            contents.insert(LOG.to_owned(), log[..offset].to_vec());
            let files: Files = contents.into_iter().collect();
            let told = CONFERENCE.read(&Site::at(CONFERENCE.card(), "."), files).unwrap();
            for (step, phase) in steps(&run.state) {
                let says = told.step(step);
                let is_witness = !matches!(says, StepTold::Silent);
                let is_proved = matches!(says, StepTold::Done(_));
                let told = format!("cut {cut}, export {exports}, {step}: {phase:?}");
                if phase == Phase::Done && is_witness {
                    assert!(is_proved, "{told}");
                }
                // Of two calls at a time, one may have written what the journal has yet to hear.
                if is_proved && is_written(step) {
                    assert!(matches!(phase, Phase::Done | Phase::Running), "{told}");
                }
            }
        }
        assert!(exports >= 2, "{exports}");
    }
}

#[test]
fn every_adopted_step_is_done_with_a_result_and_never_stale() {
    let tea = Tea::left(&Tea::finished(), 14);
    tea.exits("resume --yes --no-input", 0);
    let [run_dir] = tea.runs().try_into().unwrap();
    let defs = Arc::new(Defs::new(load_pinned(&run_dir).unwrap().workflow));
    let mut run = Run::new(defs, State::default());
    for line in tea.journal().lines() {
        let record = decode_line(line.as_bytes()).unwrap();
        assert!(!matches!(record.event, Event::StepInvalidated { .. }), "{line}");
        run.after(record).unwrap();
    }
    let adopted: Vec<_> = run.state.steps.values().filter(|entry| entry.elsewhere).collect();
    assert!(adopted.len() > 20, "{}", adopted.len());
    for entry in adopted {
        assert_eq!((entry.phase, entry.attempts), (Phase::Done, 0));
        assert!(entry.result.is_some() && entry.key.is_none());
    }
}
