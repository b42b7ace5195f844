//! One run in one copy of the project: driven, killed once, resumed to its end, looked at.

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{Event, Mode, Record},
    evidence::Outcome as Judged,
    graph::{Defs, Role},
    journal::Reader,
    plan::Status,
    run::Run,
    workflow::model::Kind,
    worktree::WORKTREES,
};
use rustix::process::Signal;

use super::{RehearseError, Script, played};
use crate::{
    care::harness::EngineProcess,
    drive::gate::Answer,
    engine::{self, EngineError, FailedStep, How, Machine, RunPlace, resume_run},
    load::journal::{JOURNAL, load},
    locate::{Project, load_pinned},
    world::{
        real::{News, Sink, disk::io_stop},
        supervisor::{
            Place, Stop as StopLadder, StopSignal,
            orphans::{clear_orphans, kill_supervisor},
            seals::{Line, read_seals},
        },
    },
};

/// What dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// The engine, after the batch is durable.
    Engine,
    /// Everything, before it is.
    Power,
}

impl Kill {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Power => "power",
        }
    }
}

/// Drives a run, and dies by SIGKILL as soon as `boundary` batches are durable.
pub fn drive_until(
    run_dir: &Path,
    machine: &Machine,
    how: &How,
    boundary: Option<u32>,
) -> Result<engine::Outcome, EngineError> {
    let mut count = batches(run_dir)?;
    let sink: Sink = Box::new(move |news| {
        match news {
            News::Lines(_) => count += 1,
            News::Waits(_) => return,
        }
        if Some(count) == boundary {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
            // Nothing more is done until it arrives.
            loop {
                thread::park();
            }
        }
    });
    resume_run(run_dir, machine, how, Some(sink))
}

/// How many batches the journal has beyond the one that opened the run.
fn batches(run_dir: &Path) -> Result<u32, EngineError> {
    let records = records(run_dir)?;
    let all: BTreeSet<(u32, u64)> = records.iter().map(|it| (it.epoch, it.batch)).collect();
    Ok(u32::try_from(all.len()).unwrap_or(u32::MAX).saturating_sub(1))
}

fn records(run_dir: &Path) -> Result<Vec<Record>, EngineError> {
    let path = run_dir.join(JOURNAL);
    let bytes = open::read_at(&path, open::LOG_BYTES_MAX).map_err(io_stop("read", &path))?;
    let mut reader = Reader::new(bytes.as_slice());
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().map_err(crate::load::journal::LoadError::from)? {
        records.push(record);
    }
    Ok(records)
}

/// How a case ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) status: Status,
    /// It would not go on by itself.
    pub(super) stuck: bool,
    /// What the last driver said.
    pub(super) said: String,
    /// Steps that failed, and why.
    pub(super) failed: Vec<String>,
    pub(super) boundaries: u32,
    pub(super) killed_after: String,
    pub(super) files: BTreeMap<String, Digest>,
    pub(super) attempts: BTreeMap<String, u32>,
    states: BTreeMap<String, &'static str>,
    finished: BTreeMap<String, u32>,
}

/// Differences of one sort that are named one by one.
const NAMED_MAX: usize = 5;

impl Outcome {
    /// What is not as in the run that was not killed.
    pub(super) fn differences(&self, reference: &Self, restless: &BTreeSet<String>) -> Vec<String> {
        let mut all = Vec::new();
        if self.stuck || self.status != reference.status {
            let (is, was) = (self.status.as_str(), reference.status.as_str());
            let said = self.said.lines().next().unwrap_or_default();
            all.push(format!("it ended as {is}, not as {was}: {said}"));
        }
        let content = |files: &BTreeMap<String, Digest>, name: &String| files.get(name).copied();
        let names: BTreeSet<&String> = self.files.keys().chain(reference.files.keys()).collect();
        let other = names.into_iter().filter(|name| {
            let differs = content(&self.files, name) != content(&reference.files, name);
            differs && !restless.contains(*name)
        });
        all.extend(other.take(NAMED_MAX).map(|name| format!("{name} has another content")));
        let steps: BTreeSet<&String> = self.states.keys().chain(reference.states.keys()).collect();
        for step in steps {
            let word = |states: &BTreeMap<String, &'static str>| states.get(step).copied();
            let (is, was) = (word(&self.states), word(&reference.states));
            if is != was {
                let text = |word: Option<&'static str>| word.unwrap_or("not there");
                all.push(format!("{step} is {}, not {}", text(is), text(was)));
            }
            let count = |finished: &BTreeMap<String, u32>| finished.get(step).copied().unwrap_or(0);
            let (is, was) = (count(&self.finished), count(&reference.finished));
            if is != was {
                all.push(format!("{step} was finished {is} times, not {was}"));
            }
        }
        all
    }
}

pub(super) struct Case<'s> {
    script: &'s Script<'s>,
    machine: Machine,
    dir: PathBuf,
    run_dir: PathBuf,
}

/// Gates, failures and retries make more than one drive; a case that needs more than this hangs.
const DRIVES_MAX: u32 = 1000;

impl<'s> Case<'s> {
    pub(super) fn new(script: &'s Script<'s>, dir: &Path) -> Result<Self, RehearseError> {
        let machine = Machine {
            agents: played(&script.workflow.workflow, &script.stand_in),
            notify: Vec::new(),
            catch_signals: false,
            tell: None,
            now: None,
            stand_in: Some(script.stand_in.clone()),
            ..script.machine.clone()
        };
        let store = dir.join(".onward");
        fs::create_dir_all(&store).map_err(io("make", &store))?;
        let project = Project::locate(dir).map_err(io("find", dir))?;
        let inputs = script.inputs.clone();
        let run_dir =
            engine::new_run(&project, script.workflow, None, inputs, &machine, Mode::Autopilot)?;
        Ok(Self { script, machine, dir: dir.to_owned(), run_dir })
    }

    /// To the end, killed on the way when `boundary` is not 0.
    pub(super) fn play(self, boundary: u32, kill: Kill) -> Result<Outcome, RehearseError> {
        let mut ahead = Some(boundary).filter(|it| *it > 0);
        let mut killed_after = String::new();
        let mut last = (None, String::new());
        for _ in 0..DRIVES_MAX {
            let (status, said) = self.drive(ahead)?;
            if status.signal() == Some(9) {
                ahead = None;
                killed_after = self.last_event()?;
                if kill == Kill::Power {
                    self.cut_power()?;
                }
                // Killed after its very end, it only has to be looked at.
                let status = Status::of(&self.folded()?.state, false);
                if status == Status::Completed {
                    last = (Some(0), String::new());
                    break;
                }
                continue;
            }
            last = (status.code(), said);
            // Only a person can end the waiting at a gate.
            if last.0 != Some(WAITING) || !self.answer_gates()? {
                break;
            }
        }
        let outcome = self.outcome(last, killed_after)?;
        self.leave()?;
        Ok(outcome)
    }

    fn drive(&self, boundary: Option<u32>) -> Result<(ExitStatus, String), RehearseError> {
        let said = self.run_dir.join("rehearsal.log");
        let log = open::make_at(&said, open::PRIVATE).map_err(io("write", &said))?;
        let Some((program, args)) = self.script.driver.split_first() else {
            return Err(EngineError::NotARun(self.run_dir.clone()).into());
        };
        let mut command = Command::new(program);
        command.args(args).arg(&self.run_dir).arg(boundary.unwrap_or(0).to_string());
        command.arg(if self.script.stand_in.commands { "all" } else { "agents" });
        command.current_dir(&self.dir).env_remove("ONWARD_NOW").env_remove("ONWARD_MODE");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let status = EngineProcess::start(&mut command)?.wait()?;
        let text = open::text_named(&said, open::FILE_BYTES_MAX).map_err(io("read", &said))?;
        Ok((status, text))
    }

    /// Every open gate gets the first answer that does not end the run.
    fn answer_gates(&self) -> Result<bool, RehearseError> {
        let run = self.folded()?;
        let mut answered = false;
        for id in run.graph.open_gates() {
            let node = run.graph.node(id);
            let Kind::Gate(gate) = &run.defs.step(node.def).kind else { continue };
            let first = gate.options.iter().find(|option| !gate.stop.contains(option));
            let Some(option) = first.cloned() else { continue };
            let (step, by) = (node.address.clone(), "rehearsal".to_owned());
            let answer = Answer { step, option, comment: None, by, hash: None };
            engine::decide(&self.run_dir, &answer, &self.machine)?;
            answered = true;
        }
        Ok(answered)
    }

    fn place(&self) -> Result<Place, EngineError> {
        Ok(RunPlace::of(&self.run_dir, &self.machine)?.place)
    }

    fn folded(&self) -> Result<Run, EngineError> {
        let path = self.run_dir.join(JOURNAL);
        let bytes = open::read_at(&path, open::LOG_BYTES_MAX).map_err(io_stop("read", &path))?;
        let workflow = load_pinned(&self.run_dir)?.workflow;
        Ok(Run::new(Arc::new(Defs::new(workflow)), load(&bytes)?.state))
    }

    fn last_event(&self) -> Result<String, EngineError> {
        let records = records(&self.run_dir)?;
        let Some(last) = records.last() else { return Ok(String::new()) };
        let value = serde_json::to_value(&last.event).unwrap_or_default();
        let step = value["step"].as_str().unwrap_or_default();
        Ok(format!("{} {step}", last.event.kind()).trim_end().to_owned())
    }

    /// As if the last batch had never reached the disk, nor any seal that was not synced.
    fn cut_power(&self) -> Result<(), RehearseError> {
        let place = self.place()?;
        self.leave()?;
        let path = self.run_dir.join(JOURNAL);
        let bytes = open::read_at(&path, open::LOG_BYTES_MAX).map_err(io("read", &path))?;
        let records = records(&self.run_dir)?;
        let last = records.last().map(|it| (it.epoch, it.batch));
        let kept = records.iter().filter(|it| Some((it.epoch, it.batch)) != last).count();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(kept);
        let length: usize = lines.map(<[u8]>::len).sum();
        open::put(&path, &bytes[..length], open::PRIVATE).map_err(io("cut", &path))?;
        let run = self.folded()?;
        let finished = finished(&records[..kept]);
        let is_synced = |step: &Address| {
            let id = run.graph.find(step);
            id.is_none_or(|id| {
                let declared = run.defs.step(run.graph.node(id).def);
                matches!(declared.kind, Kind::Agent { .. }) || declared.effect_outside
            })
        };
        let path = place.seals();
        let seals = read_seals(&path, None).map_err(io("read", &path))?;
        let is_known = |step: &Address, attempt: u32| {
            run.state.step(step).is_some_and(|entry| entry.attempts >= attempt)
        };
        let survives = |line: &Line| match line {
            Line::Exited(seal) if !is_known(&seal.step, seal.attempt) => false,
            Line::Exited(seal) => {
                is_synced(&seal.step) || finished.contains(&(seal.step.clone(), seal.attempt))
            }
            Line::Snapshot(taken) => {
                is_synced(&taken.step) || finished.contains(&(taken.step.clone(), taken.attempt))
            }
            // Nothing is spawned before its start is there to stay.
            Line::Spawning(it) => is_known(&it.step, it.attempt),
            Line::Spawned(it) => is_known(&it.step, it.attempt),
            Line::Opened(_)
            | Line::OutputLost(_)
            | Line::Grouped(_)
            | Line::Stray(_)
            | Line::Unknown(_) => true,
        };
        let bytes = open::read_at(&path, open::LOG_BYTES_MAX).map_err(io("read", &path))?;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(&seals.lines);
        let left: Vec<u8> =
            lines.filter(|(_, line)| survives(line)).flat_map(|(text, _)| text.to_vec()).collect();
        open::put(&path, &left, open::PRIVATE).map_err(io("cut", &path))
    }

    /// Ends whatever still lives of this run.
    fn leave(&self) -> Result<(), RehearseError> {
        let place = self.place()?;
        let run_dir = &self.run_dir;
        kill_supervisor(&place).map_err(io("end the supervisor of", run_dir))?;
        let path = place.seals();
        let seals = read_seals(&path, None).map_err(io("read", &path))?;
        let at_once = StopLadder { signal: StopSignal::Term, grace_ms: 0 };
        clear_orphans(&place, &seals, at_once).map_err(io("end the orphans of", run_dir))?;
        Ok(())
    }

    fn outcome(
        &self,
        (code, said): (Option<i32>, String),
        killed_after: String,
    ) -> Result<Outcome, RehearseError> {
        let run = self.folded()?;
        let records = records(&self.run_dir)?;
        let mut counts = BTreeMap::new();
        for (step, _) in finished(&records) {
            *counts.entry(step.to_string()).or_insert(0) += 1;
        }
        let mut states = BTreeMap::new();
        for id in run.graph.in_order() {
            let node = run.graph.node(id);
            if node.role == Role::Leaf {
                states.insert(node.address.to_string(), run.state.phase(&node.address).as_str());
            }
        }
        let attempts =
            run.state.steps.iter().map(|(step, entry)| (step.to_string(), entry.attempts));
        let mut files = BTreeMap::new();
        digests(&self.dir, "", &mut files)?;
        let place = self.place()?;
        let worktrees = self.dir.join(WORKTREES).join(place.run.as_str());
        if worktrees.is_dir() {
            let mut inside = BTreeMap::new();
            digests(&worktrees, "", &mut inside)?;
            files.extend(inside.into_iter().map(|(name, it)| (format!("worktree {name}"), it)));
        }
        let ended =
            engine::Outcome::new(Status::of(&run.state, false), place.run, self.run_dir.clone())
                .of(&run);
        let why = |it: &FailedStep| format!("{}: {}, {}", it.step, it.cause.in_words(), it.detail);
        Ok(Outcome {
            status: ended.status,
            failed: ended.failed.iter().map(why).collect(),
            stuck: !matches!(code, Some(0 | FAILED)),
            said,
            boundaries: batches(&self.run_dir)?,
            killed_after,
            files,
            attempts: attempts.collect(),
            states,
            finished: counts,
        })
    }
}

/// Exit codes of a driver, as `docs/exit-codes.md` has them.
const WAITING: i32 = 11;
const FAILED: i32 = 10;

fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> RehearseError {
    let path = path.to_owned();
    move |source| RehearseError::Io { doing, path, source }
}

/// Attempts that count, each once.
fn finished(records: &[Record]) -> BTreeSet<(Address, u32)> {
    let mut all = BTreeSet::new();
    for record in records {
        if let Event::AttemptFinished(it) = &record.event
            && it.outcome == Judged::Done
        {
            all.insert((it.step.clone(), it.attempt));
        } else if let Event::AttemptAdopted(it) = &record.event {
            all.insert((it.step.clone(), 0));
        }
    }
    all
}

/// Every file but git's, wherever it lies, and ours, with its content.
fn digests(
    root: &Path,
    below: &str,
    files: &mut BTreeMap<String, Digest>,
) -> Result<(), RehearseError> {
    let dir = root.join(below);
    for entry in fs::read_dir(&dir).map_err(io("list", &dir))? {
        let entry = entry.map_err(io("list", &dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == ".git" || (below.is_empty() && name == ".onward") {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let kind = entry.file_type().map_err(io("look at", &dir))?;
        if kind.is_dir() {
            digests(root, &path, files)?;
            continue;
        }
        let full = entry.path();
        let bytes = if kind.is_symlink() {
            let target = fs::read_link(&full).map_err(io("read", &full))?;
            target.into_os_string().into_encoded_bytes()
        } else {
            open::read_at(&full, open::LOG_BYTES_MAX).map_err(io("read", &full))?
        };
        files.insert(path, Digest::of(&bytes));
    }
    Ok(())
}
