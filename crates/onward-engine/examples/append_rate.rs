//! How many records a second become durable when many attempts end at once: the journal alone,
//! without a single process.
//!
//! `cargo run --release -p onward-engine --example append_rate [at_once] [batches]`
//!
//! Each batch is checked, folded, written and synced as the driver does it: first the starts of so
//! many attempts, then their ends. Beside it the same bytes, written and synced and nothing else.
//! Prints seconds and records of both.

use std::{collections::BTreeMap, io::Write as _, path::Path, sync::Arc};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, Mode, RunOpened},
    evidence::{Ending, Evidence, Outcome},
    graph::Defs,
    kept::Kept,
    key::{Key, KeyParts},
    run::Run,
    state::State,
    time::Timestamp,
    workflow,
};
use onward_engine::{
    load::journal::Journal,
    world::{
        World as _,
        real::{RealWorld, Setup},
        supervisor::Place,
    },
};
use rustix::time::{ClockId, clock_gettime};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default| args.get(index).map_or(Ok(default), |it| it.parse());
    let (at_once, batches): (usize, usize) = (number(0, 64)?, number(1, 200)?);
    let dir = tempfile::tempdir()?;
    let (seconds, records, bytes) = appended(dir.path(), at_once, batches)?;
    let limit = written(&dir.path().join("limit"), bytes, 2 * batches)?;
    let mut out = std::io::stdout();
    writeln!(out, "{seconds:.6} {records} {limit:.6}")?;
    Ok(())
}

/// Seconds, records, and the bytes of one batch.
fn appended(dir: &Path, at_once: usize, batches: usize) -> Result<(f64, usize, usize), Failure> {
    let steps = at_once * batches;
    let lines = (0..steps).map(|at| format!("  - {{ id: s{at}, needs: [], run: /bin/true }}\n"));
    let text = format!("onward: 1\nname: bench\nsteps:\n{}", lines.collect::<String>());
    let mut nothing = |path: &str| Err(format!("{path} is not there"));
    let loaded = workflow::load("bench.yaml", text.as_bytes(), &mut nothing)
        .map_err(|problems| format!("{problems:?}"))?;
    let mut run = Run::new(Arc::new(Defs::new(loaded.workflow)), State::default());
    let mut world = world(dir)?;
    let mut journal = Journal::after(&run.state, false);
    let opened = RunOpened {
        format: onward_core::journal::FORMAT,
        run: "bench-20261117-aaaa".parse()?,
        workflow: "bench".into(),
        workflow_hash: Digest::of(text.as_bytes()),
        file: None,
        inputs: BTreeMap::new(),
        git: None,
        engine: "0".into(),
        boot_id: "boot".into(),
        mode: Mode::Autopilot,
    };
    journal.record(&mut run, Timestamp::default(), Event::RunOpened(Box::new(opened)))?;
    journal.commit(&mut world)?;
    let began = now();
    for batch in 0..batches {
        let steps: Vec<Address> = (batch * at_once..(batch + 1) * at_once)
            .map(|at| Address::from_text(&format!("s{at}")))
            .collect();
        for event in [started as fn(&Address) -> Event, finished] {
            for step in &steps {
                let at = world.now();
                journal.record(&mut run, at, event(step))?;
            }
            journal.commit(&mut world)?;
        }
    }
    let seconds = now() - began;
    world.finish()?;
    let length = std::fs::metadata(dir.join("run/journal.jsonl"))?.len();
    Ok((seconds, 2 * steps, usize::try_from(length)? / (2 * batches)))
}

fn started(step: &Address) -> Event {
    let definition = [("run".to_owned(), KeyParts::value("/bin/true"))];
    let key = KeyParts { definition: definition.into(), ..KeyParts::default() };
    Event::AttemptStarted(Box::new(AttemptStarted {
        key: Key::from(&key),
        argv: Kept::from(&vec!["/bin/true".to_owned()]),
        ..AttemptStarted::bare(step.clone(), 1)
    }))
}

fn finished(step: &Address) -> Event {
    Event::AttemptFinished(Box::new(AttemptFinished {
        step: step.clone(),
        attempt: 1,
        outcome: Outcome::Done,
        ending: Some(Ending::Exited { code: 0 }),
        evidence: Evidence::default(),
        result: None,
        stdout: None,
        after: None,
        footprint: vec![],
        tolerated: false,
        head: None,
        ended: None,
        waited: 0,
    }))
}

fn world(dir: &Path) -> Result<RealWorld, Failure> {
    let place = Place {
        run: "bench-20261117-aaaa".parse()?,
        run_dir: dir.join("run"),
        project_dir: dir.to_owned(),
        socket_dir: dir.to_owned(),
    };
    std::fs::create_dir(&place.run_dir)?;
    let setup = Setup {
        place,
        env: Vec::new(),
        supervise: Vec::new(),
        snapshot: Vec::new(),
        call: Vec::new(),
        agents: BTreeMap::new(),
        continuations: BTreeMap::new(),
        adapters: BTreeMap::new(),
        now: None,
        catch_signals: false,
        tell: None,
        stand_in: None,
    };
    Ok(RealWorld::new(setup, None))
}

/// The same batches, as bytes, into a file that grows.
fn written(path: &Path, bytes: usize, batches: usize) -> Result<f64, Failure> {
    let mut file = std::fs::File::create(path)?;
    let batch = vec![b'x'; bytes];
    let began = now();
    for _ in 0..batches {
        file.write_all(&batch)?;
        file.sync_data()?;
    }
    Ok(now() - began)
}

fn now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec, now.tv_nsec);
    #[expect(clippy::cast_precision_loss, reason = "a moment since the machine was started")]
    let moment = seconds as f64 + nanos as f64 / 1e9;
    moment
}
