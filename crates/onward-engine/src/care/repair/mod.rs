//! A journal that was damaged or lost, rebuilt from what else is known of the run.
//!
//! - `read`: what of the file can still be read; `traces`: what attempts left elsewhere.
//! - `rebuild` drives the run once more with the traces as answers, `prove` judges, `bridge` takes
//!   in the records behind the damage; `report` is what a person sees.
//!
//! Invariant: nothing is written before a person said yes to what was shown. Then the damaged file
//! gets a name of its own, and the new one takes its place in one rename.

mod bridge;
mod prove;
mod read;
mod rebuild;
mod report;
mod traces;

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    digest::Digest,
    event::{Event, Mode, Rebuilt, Record, RunOpened},
    graph::Defs,
    journal::{FORMAT, Rest, decode_line, encode},
    run::Run,
    state::{Adopted, State},
    workflow::{Loaded, fits},
};
use serde_json::Value;

use self::{
    read::{Later, Readable, read},
    rebuild::{Claim, Piece, Rebuilder, Source},
    traces::Traces,
};
use crate::{
    care::{CareError, must_be_dead},
    engine::{EngineError, Machine, RunPlace, adopt},
    load::journal::{JOURNAL, LoadError, load},
    locate::{OPENED, RunLock, last_kept, load_kept},
    world::{
        World,
        real::{
            RealWorld,
            disk::{io_stop, sync_dir},
            file_time, wall_clock,
        },
    },
};

pub use report::{DamagedLine, Dropped, Fate, RebuiltEvent, Report, StepFate};

/// A repair that was worked out, and holds the run until the person has answered.
#[derive(Debug)]
pub struct Repair {
    pub report: Report,
    run_dir: PathBuf,
    /// The whole new journal.
    bytes: Vec<u8>,
    /// Where the damaged one goes.
    kept: String,
    _lock: RunLock,
}

/// Where a run's first record comes from when the journal has lost it.
struct Opening {
    record: Record,
    from: String,
}

impl Repair {
    /// Works out what the journal was. `inputs` are needed only where nothing else has kept them.
    pub fn prepare(
        run_dir: &Path,
        machine: &Machine,
        inputs: &BTreeMap<String, Value>,
    ) -> Result<Self, CareError> {
        let at = RunPlace::even_without_journal(run_dir, machine)?;
        let lock =
            RunLock::take(run_dir, &at.place.run, wall_clock()).map_err(EngineError::from)?;
        must_be_dead(&at.place)?;
        let bytes = read_or_empty(&run_dir.join(JOURNAL))?;
        let traces = Traces::gather(&at.place, &machine.env)?;
        let found = read(bytes.as_deref().unwrap_or_default())
            .map_err(|error| EngineError::from(LoadError::from(error)))?;
        let is_damaged = found.prefix.is_empty() || !found.damage.is_empty();
        let changed = if is_damaged { last_kept(run_dir) } else { last_change(&found) };
        let workflow = load_kept(run_dir, changed).map_err(EngineError::from)?;
        let opening = match found.prefix.first() {
            Some(_) => None,
            None => Some(opening(&at, &workflow, &traces, inputs)?),
        };
        let mut world = RealWorld::new(at.setup(machine), None);
        let mut rebuilder = begin(&mut world, &workflow, &traces, &found, opening.as_ref())?;
        if is_damaged {
            adopt_again(&mut rebuilder, &at, &found)?;
        }
        for Later { record, after_gap } in &found.later {
            if *after_gap {
                rebuilder.catch_up(Some(record.at))?;
            }
            rebuilder.apply(record)?;
        }
        if let Some(hash) = changed.filter(|it| rebuilder.run.state.workflow_hash != Some(*it)) {
            // It was changed, and the event that says so is lost.
            let event = Event::WorkflowChanged { hash, edits: Vec::new() };
            let at = rebuilder.run.state.last_at;
            let pushed = rebuilder.push(at, event, Source::Workflow, "its last copy is another");
            pushed.map_err(EngineError::from)?;
        }
        rebuilder.catch_up(None)?;
        let Rebuilder { pieces, dropped, epoch, batch, .. } = rebuilder;
        let kept = kept_name(run_dir, bytes.as_deref())?;
        let prefix = &bytes.as_deref().unwrap_or_default()[..found.prefix_bytes];
        let (records, opened) = (found.prefix.len() as u64, opening.as_ref());
        let made = Made { prefix, records, opening: opened, pieces: &pieces, kept: &kept };
        let new = made.bytes(epoch, batch)?;
        let run = folded(&new, &workflow)?;
        let mut report = Report::new(run_dir, &found, &pieces, &dropped, &run);
        report.needed = is_damaged || !pieces.is_empty();
        report.lost = bytes.is_none();
        report.opened_from = opening.map(|it| it.from);
        Ok(Self { report, run_dir: run_dir.to_owned(), bytes: new, kept, _lock: lock })
    }

    /// Puts the rebuilt journal in place. Redo-safe: killed before the rename, nothing has changed
    /// but that the damaged journal has a second name.
    pub fn adopt(mut self) -> Result<Report, CareError> {
        let journal = self.run_dir.join(JOURNAL);
        let new = self.run_dir.join(format!("{JOURNAL}.repaired"));
        let written = open::make_at(&new, open::PRIVATE).and_then(|mut file| {
            file.write_all(&self.bytes)?;
            file.sync_all()
        });
        written.map_err(io_stop("write", &new))?;
        let kept = self.run_dir.join(&self.kept);
        match fs::hard_link(&journal, &kept) {
            Ok(()) => self.report.kept_as = Some(self.kept.clone()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.report.kept_as = Some(self.kept.clone());
            }
            // There is none to keep.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(_) => {
                let copied = copy_durably(&journal, &kept);
                copied.map_err(io_stop("keep", &journal))?;
                self.report.kept_as = Some(self.kept.clone());
            }
        }
        sync_dir(&self.run_dir)?;
        fs::rename(&new, &journal).map_err(io_stop("rename", &new))?;
        sync_dir(&self.run_dir)?;
        self.report.adopted = true;
        Ok(self.report)
    }
}

fn copy_durably(from: &Path, to: &Path) -> std::io::Result<()> {
    open::copy(from, to)?;
    open::at(to, open::To::Read)?.sync_all()
}

/// The copy of the workflow that counts, as a whole journal says.
fn last_change(found: &Readable) -> Option<Digest> {
    let mut last = None;
    for record in &found.prefix {
        if let Event::WorkflowChanged { hash, .. } = record.event {
            last = Some(hash);
        }
    }
    last
}

fn read_or_empty(path: &Path) -> Result<Option<Vec<u8>>, CareError> {
    match open::read_at(path, open::LOG_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_stop("read", path)(error).into()),
    }
}

/// `journal.damaged-<n>.jsonl`: the next free number, or the one that holds these bytes already.
fn kept_name(run_dir: &Path, bytes: Option<&[u8]>) -> Result<String, CareError> {
    for number in 1_u32.. {
        let name = format!("journal.damaged-{number}.jsonl");
        match read_or_empty(&run_dir.join(&name))? {
            Some(kept) if Some(kept.as_slice()) != bytes => {}
            Some(_) | None => return Ok(name),
        }
    }
    unreachable!("the numbers do not end before the names do")
}

/// The run as its good beginning tells it, ready to be gone on with.
fn begin<'a>(
    world: &'a mut RealWorld,
    workflow: &Loaded,
    traces: &'a Traces,
    found: &Readable,
    opening: Option<&Opening>,
) -> Result<Rebuilder<'a, RealWorld>, CareError> {
    let mut state = State::default();
    let first = opening.map(|it| &it.record);
    for record in first.into_iter().chain(&found.prefix) {
        state.after(record.clone()).map_err(EngineError::from)?;
    }
    let epochs = found.later.iter().map(|it| it.record.epoch);
    let epoch = epochs.max().unwrap_or(0).max(state.epoch).max(traces.lives) + 1;
    let batch = state.batch + 1;
    let run = Run::new(Arc::new(Defs::new(workflow.workflow.clone())), state);
    let mut rebuilder = Rebuilder {
        world,
        run,
        traces,
        left: traces.attempts.keys().cloned().collect(),
        claims: BTreeMap::new(),
        ended: BTreeSet::new(),
        decided: BTreeSet::new(),
        seen: Vec::new(),
        epoch,
        batch,
        pieces: Vec::new(),
        dropped: Vec::new(),
    };
    for Later { record, .. } in &found.later {
        foresee(&mut rebuilder, record);
    }
    Ok(rebuilder)
}

/// What a later record will tell by itself when its turn comes.
fn foresee(rebuilder: &mut Rebuilder<'_, RealWorld>, record: &Record) {
    let (step, attempt) = if let Event::AttemptStarted(started) = &record.event {
        rebuilder.claims.insert((started.step.clone(), started.attempt), Claim::Started);
        let read = started.key.get().reads.into_iter().map(|(path, hash)| (path, Some(hash)));
        let seen = started.saved.clone().into_iter().chain(read).collect();
        rebuilder.seen.push((record.at, seen));
        return;
    } else if let Event::GateDecided { step, .. } = &record.event {
        rebuilder.decided.insert(step.clone());
        return;
    } else if let Event::AttemptFinished(finished) = &record.event {
        rebuilder.ended.insert((finished.step.clone(), finished.attempt));
        (&finished.step, finished.attempt)
    } else if let Event::AttemptLost { step, attempt, .. } = &record.event {
        rebuilder.ended.insert((step.clone(), *attempt));
        (step, *attempt)
    } else if let Event::AttemptSession { step, attempt, .. }
    | Event::AttemptSpent { step, attempt, .. }
    | Event::EffectIntended { step, attempt, .. }
    | Event::EffectSettled { step, attempt, .. } = &record.event
    {
        (step, *attempt)
    } else {
        return;
    };
    rebuilder.claims.entry((step.clone(), attempt)).or_insert(Claim::Mentioned);
}

/// `run.opened` again: from the copy that the run keeps of it, or from what is pinned.
fn opening(
    at: &RunPlace,
    workflow: &Loaded,
    traces: &Traces,
    inputs: &BTreeMap<String, Value>,
) -> Result<Opening, CareError> {
    let path = at.place.run_dir.join(OPENED);
    if let Some(record) = kept(&path)?.into_iter().next()
        && let Event::RunOpened(opened) = &record.event
        && opened.run == at.place.run
    {
        return Ok(Opening { record, from: OPENED.to_owned() });
    }
    let mut known = BTreeMap::new();
    for (name, declared) in &workflow.workflow.inputs {
        let value = inputs.get(name).or(declared.default.as_ref());
        match value.filter(|value| fits(declared.kind, value)) {
            Some(value) => known.insert(name.clone(), value.clone()),
            None => {
                return Err(CareError::Refused {
                    what: format!("what input `{name}` was is not kept anywhere"),
                    hint: format!("say it: `onward repair {} --input {name}=VALUE`", at.place.run),
                });
            }
        };
    }
    let pinned = at.place.run_dir.join("workflow.yaml");
    let made_at = fs::metadata(&pinned).and_then(|it| it.modified()).map(file_time);
    let (seen_at, boot_id) = traces.first_opened.clone().unwrap_or_default();
    let opened = RunOpened {
        format: FORMAT,
        run: at.place.run.clone(),
        workflow: workflow.workflow.name.clone(),
        workflow_hash: workflow.hash,
        file: None,
        inputs: known,
        git: None,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        boot_id,
        mode: Mode::Interactive,
    };
    let event = Event::RunOpened(Box::new(opened));
    let at = made_at.unwrap_or(seen_at);
    let record = Record { seq: 0, at, epoch: 1, batch: 1, event };
    Ok(Opening { record, from: "workflow.yaml and the run's name".to_owned() })
}

/// The records that the run was made with, as far as their copy can be read.
fn kept(path: &Path) -> Result<Vec<Record>, CareError> {
    let bytes = read_or_empty(path)?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n');
    Ok(lines.map_while(|line| decode_line(line).ok()).collect())
}

/// A run that was adopted stays one: `run.adopted` is put back before anything else, unless it can
/// be read.
fn adopt_again<W: World>(
    rebuilder: &mut Rebuilder<'_, W>,
    at: &RunPlace,
    found: &Readable,
) -> Result<(), CareError> {
    let later = found.later.iter().map(|it| &it.record);
    let mut readable = found.prefix.iter().chain(later);
    let Some(opened) = rebuilder.run.state.opened.clone() else { return Ok(()) };
    if readable.any(|it| matches!(it.event, Event::RunAdopted { .. })) {
        return Ok(());
    }
    let is_beginning = |it: &Record| matches!(it.event, Event::JournalRepaired { .. });
    if !found.prefix.iter().skip(1).all(is_beginning) {
        // What follows the beginning can be read, and it is not there.
        return Ok(());
    }
    let of_this_run =
        |it: &Record| matches!(&it.event, Event::RunOpened(it) if it.run == opened.run);
    let kept = kept(&at.place.run_dir.join(OPENED))?;
    let is_ours = kept.first().is_some_and(of_this_run);
    let adopted = kept.into_iter().find(|it| matches!(it.event, Event::RunAdopted { .. }));
    let found = match adopted.filter(|_| is_ours) {
        Some(record) => Some((record.event, Source::Opened, "the run was made with it")),
        None => adopt::supposed(&at.project, &opened).map(|it| {
            let Adopted { dialect, source, files } = it;
            let event = Event::RunAdopted { dialect, source, files };
            (event, Source::Workflow, "its workflow continues with such files")
        }),
    };
    if let Some((event, source, why)) = found {
        let moment = rebuilder.run.state.last_at;
        rebuilder.push(moment, event, source, why).map_err(EngineError::from)?;
    }
    Ok(())
}

/// What the new journal is made of.
struct Made<'a> {
    prefix: &'a [u8],
    /// How many records it holds.
    records: u64,
    opening: Option<&'a Opening>,
    pieces: &'a [Piece],
    kept: &'a str,
}

impl Made<'_> {
    fn bytes(&self, epoch: u32, batch: u64) -> Result<Vec<u8>, CareError> {
        let mut out = self.prefix.to_vec();
        if !out.is_empty() && !out.ends_with(b"\n") {
            out.push(b'\n');
        }
        let mut seq = self.records;
        let mut add = |record: &Record| {
            let added = encode(record, &mut out);
            added.map_err(|error| refused(&format!("an event cannot be written: {error}")))
        };
        if let Some(Opening { record, .. }) = self.opening {
            add(record)?;
            seq = 1;
        }
        let pieces: Vec<&Piece> = self.pieces.iter().filter(|piece| !piece.imagined).collect();
        let repaired = Event::JournalRepaired {
            kept: self.kept.to_owned(),
            events: pieces.len() as u64,
            rebuilt: origins(&pieces),
        };
        let now = pieces.first().map_or_else(wall_clock, |piece| piece.at);
        let repaired = (now, &repaired);
        let rest = pieces.iter().map(|piece| (piece.at, &piece.event));
        for (at, event) in std::iter::once(repaired).chain(rest) {
            add(&Record { seq, at, epoch, batch, event: event.clone() })?;
            seq += 1;
        }
        Ok(out)
    }
}

fn origins(pieces: &[&Piece]) -> Vec<Rebuilt> {
    let mut all: Vec<Rebuilt> = Vec::new();
    for piece in pieces {
        let (source, certainty) = (piece.source.as_str(), piece.source.certainty());
        match all.last_mut() {
            Some(last) if last.source == source => last.count += 1,
            Some(_) | None => {
                all.push(Rebuilt { count: 1, source: source.to_owned(), certainty });
            }
        }
    }
    all
}

/// The new journal must be one that can be folded: otherwise it is never shown.
fn folded(bytes: &[u8], workflow: &Loaded) -> Result<Run, CareError> {
    let loaded = load(bytes).map_err(EngineError::from)?;
    if loaded.tail.rest != Rest::Clean {
        return Err(refused("the rebuilt journal cannot be read"));
    }
    Ok(Run::new(Arc::new(Defs::new(workflow.workflow.clone())), loaded.state))
}

fn refused(what: &str) -> CareError {
    let hint = "nothing was changed; this is a bug of onward".to_owned();
    CareError::Refused { what: what.to_owned(), hint }
}
