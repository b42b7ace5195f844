//! What people see of a run while it is driven: plain lines, and on a terminal one line that moves.
//!
//! Invariant: it is fed durable journal lines and nothing else, so it can show nothing that did not
//! happen, and it counts nothing itself: core does. It writes to standard error; standard output
//! belongs to data.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use anstyle::{AnsiColor, Style};
use onward_core::{
    address::Address,
    event::{Event, Record},
    evidence::Outcome,
    journal::decode_line,
    run::Run,
    time::Timestamp,
    view::{Counts, Followed, Live},
};
use onward_engine::world::real::{Sink, wall_clock};

use crate::{attend::Attendant, screen::Screen, session::open_run};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const DIM: Style = Style::new().dimmed();

/// How the run is told.
pub(crate) enum Telling {
    /// One JSON object per event on standard output.
    Json,
    /// Lines for people on standard error, where nothing moves and nobody answers.
    Lines { screen: Screen, quiet: bool },
    /// The same on a terminal, with a line that moves.
    Words {
        counter: Counter,
        screen: Screen,
        /// Where a person is there to answer gates.
        attendant: Option<Attendant>,
        quiet: bool,
    },
}

/// How much of the run is done, for the line that moves.
pub(crate) struct Counter {
    dir: PathBuf,
    live: Option<Box<Live>>,
}

impl Counter {
    pub(crate) fn new(dir: PathBuf, run: Run) -> Self {
        Self { dir, live: Some(Box::new(Live::new(run))) }
    }

    fn none() -> Self {
        Self { dir: PathBuf::new(), live: None }
    }

    fn take(&mut self, record: Record) {
        let Some(live) = &mut self.live else { return };
        match live.take(record) {
            Followed::Yes | Followed::Known => {}
            // What cannot be read now is not counted any more; the run goes on without a counter.
            Followed::Lost => {
                self.live = open_run(&self.dir).ok().map(|run| Box::new(Live::new(run)));
            }
        }
    }

    fn counts(&self) -> Option<Counts> {
        self.live.as_ref().map(|live| live.counts())
    }
}

/// How often the moving line is drawn again while nothing happens.
const TICK: Duration = Duration::from_millis(500);

/// Takes durable lines as they come.
pub(crate) fn sink(telling: Telling) -> Sink {
    match telling {
        Telling::Json => Box::new(|lines| {
            let mut out = std::io::stdout().lock();
            for line in each_line(lines) {
                // A reader that went away does not stop the run.
                let _ = out.write_all(b"{\"schema\":\"onward.event/1\",");
                let _ = out.write_all(&line[1..]);
                let _ = out.write_all(b"\n");
            }
            let _ = out.flush();
        }),
        Telling::Lines { quiet: true, .. }
        | Telling::Words { quiet: true, attendant: None, .. } => Box::new(|_| {}),
        Telling::Lines { screen, quiet } => {
            let (counter, attendant) = (Counter::none(), None);
            sink(Telling::Words { counter, screen, attendant, quiet })
        }
        Telling::Words { counter, screen, attendant, quiet } => {
            // Counting means folding: only for those who see the count.
            let counter = if screen.moves() && !quiet { counter } else { Counter::none() };
            let words = Words { running: BTreeMap::new(), counter, screen, quiet };
            let words = Arc::new(Mutex::new(words));
            tick(&words);
            Box::new(move |lines| {
                let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                for line in each_line(lines) {
                    if let Ok(record) = decode_line(line) {
                        words.take(&record);
                        if let Some(attendant) = &attendant {
                            attendant.hear(&record.event);
                        }
                        words.counter.take(record);
                    }
                }
                words.redraw();
            })
        }
    }
}

/// Keeps the moving line moving, until the sink is gone.
fn tick(words: &Arc<Mutex<Words>>) {
    let first = words.lock().unwrap_or_else(PoisonError::into_inner);
    if first.quiet || !first.screen.moves() {
        return;
    }
    drop(first);
    let words = Arc::downgrade(words);
    thread::spawn(move || {
        while let Some(words) = words.upgrade() {
            words.lock().unwrap_or_else(PoisonError::into_inner).redraw();
            drop(words);
            thread::sleep(TICK);
        }
    });
}

fn each_line(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

struct Words {
    running: BTreeMap<Address, Timestamp>,
    counter: Counter,
    screen: Screen,
    quiet: bool,
}

impl Words {
    fn take(&mut self, record: &Record) {
        match &record.event {
            Event::AttemptStarted(started) => {
                self.running.insert(started.step.clone(), record.at);
                let again = if started.attempt > 1 {
                    format!(" (attempt {})", started.attempt)
                } else {
                    String::new()
                };
                if !self.screen.moves() {
                    self.line(&format!("{DIM}start{DIM:#} {}{again}", started.step));
                }
            }
            Event::AttemptFinished(finished) => {
                let began = self.running.remove(&finished.step);
                let took = began.map_or(String::new(), |began| elapsed(record.at, began));
                match &finished.outcome {
                    Outcome::Done => {
                        self.line(&format!("{GOOD}done{GOOD:#}  {}{took}", finished.step));
                    }
                    Outcome::Failed { cause, detail } => {
                        let cause = cause.as_str();
                        let step = &finished.step;
                        let and =
                            if finished.tolerated { "; the run goes on without it" } else { "" };
                        self.line(&format!(
                            "{BAD}fail{BAD:#}  {step}{took}: {cause}, {detail}{and}"
                        ));
                    }
                }
            }
            Event::StepSkipped { step, .. } => {
                self.line(&format!("{DIM}skip{DIM:#}  {step}"));
            }
            Event::AttemptLost { step, rung, .. } => {
                self.running.remove(step);
                self.line(&format!("{DIM}lost{DIM:#}  {step}: {}", rung.as_str()));
            }
            Event::AttemptAdopted(adopted) => {
                self.running.remove(&adopted.step);
                self.line(&format!("{GOOD}adopt{GOOD:#} {} ({})", adopted.step, adopted.source));
            }
            Event::StepInvalidated { step, causes } => {
                let parts: Vec<&str> = causes.iter().map(|cause| cause.part.as_str()).collect();
                self.line(&format!("{DIM}stale{DIM:#} {step}: {}", parts.join(", ")));
            }
            Event::GateOpened { step, prompt, .. } => {
                self.line(&format!("{BAD}gate{BAD:#}  {step}: {prompt}"));
            }
            Event::GateDecided { step, option, by, .. } => {
                self.line(&format!("{GOOD}gate{GOOD:#}  {step}: {option}, said {by}"));
            }
            Event::LoopTurned { step, turn } => {
                self.line(&format!("{DIM}turn{DIM:#}  {step} {turn}"));
            }
            Event::Note { text, step: None } => {
                self.line(&format!("{DIM}note{DIM:#}  {text}"));
            }
            Event::RunResumed(resumed) => {
                self.line(&format!("{DIM}resume{DIM:#} {}", resumed.summary));
            }
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunPaused { .. }
            | Event::RunEnded { .. }
            | Event::RunArchived { .. }
            | Event::GroupExpanded { .. }
            | Event::LoopEnded { .. }
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::AttemptVerified(_)
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { step: Some(_), .. } => {}
        }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.screen.line(text);
        }
    }

    /// The moving line: how much is done, and what runs for how long.
    fn redraw(&self) {
        if self.quiet || !self.screen.moves() {
            return;
        }
        if self.running.is_empty() {
            return self.screen.moving(String::new());
        }
        let now = wall_clock();
        let running: Vec<String> = self
            .running
            .iter()
            .take(3)
            .map(|(step, began)| format!("{step}{}", elapsed(now, *began)))
            .collect();
        let more = self.running.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let counts = self.counter.counts();
        let counts = counts.map_or(String::new(), |it| format!("[{}/{}] ", it.done, it.total));
        self.screen.moving(format!("{counts}{}{more}", running.join(", ")));
    }
}

fn elapsed(now: Timestamp, began: Timestamp) -> String {
    let ms = now.ms_since(began);
    match ms {
        0..1_000 => String::new(),
        1_000..60_000 => format!(" {:.1}s", f64::from(u32::try_from(ms).unwrap_or(0)) / 1000.0),
        _ => format!(" {}m{:02}s", ms / 60_000, ms / 1000 % 60),
    }
}
