//! What people see of a run while it is driven: plain lines, and on a terminal a block that moves.
//!
//! Invariant: it is fed durable journal lines, and what a driver waits for before it writes any, so
//! it can show nothing that did not happen, and it counts nothing itself: core does. It writes to
//! standard error; standard output belongs to data.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use onward_core::{
    address::Address,
    event::{AttemptFinished, Event, Record},
    evidence::{Cause, Outcome},
    journal::decode_line,
    key::part_in_words,
    recovery::Rung,
    run::Run,
    state::{Phase, State, StepState},
    time::Timestamp,
    view::{Followed, Live},
};
use onward_engine::{
    engine::Machine,
    world::real::{News, Sink, wall_clock},
};

use crate::{
    attend::Attendant,
    cmd::Context,
    command::onward,
    diagnostic::printable,
    folds::{self, Folds, Repeats, TakenOver},
    ink::Printer,
    live::{Row, Running, Scene, earlier, what_follows},
    screen::{self, Screen},
    session::{Session, id_of, open_run, word},
    style::{
        BAD, DIM, GOOD, WARN, clock, columns_of_errors, failure, fraction, paragraph, parked,
        seconds, took, wrap,
    },
    undone, warned,
};

/// How the run is told.
pub(crate) enum Telling {
    /// One JSON object per event on standard output.
    Json,
    /// Lines for people on standard error, and on a terminal a block below them.
    Words(Box<Words>),
}

/// Who asks the gates.
pub(crate) enum Asks {
    /// At once, at this terminal.
    Here(Attendant),
    /// At this terminal, when the driver has left.
    Later,
    Never,
}

/// What a command that drives or watches a run shows of it.
pub(crate) fn telling(
    cx: &Context,
    session: &Session,
    screen: Screen,
    dir: &Path,
    run: Run,
    (asks, since): (Asks, Timestamp),
) -> Telling {
    let how_much = match (cx.global.quiet, cx.global.verbose) {
        (true, _) => HowMuch::Quiet,
        (false, 0) => HowMuch::Usual,
        (false, _) => HowMuch::All,
    };
    let before =
        if screen.moves() && how_much != HowMuch::Quiet { earlier(dir, &run) } else { None };
    let mut running = Running::default();
    for (step, entry) in run.state.steps.noteworthy() {
        if entry.phase == Phase::Running {
            running.begin(step, entry.attempts, entry.started_at);
        }
    }
    let folds = Folds::of(&run);
    let (live, now) = (Some(Live::new(run)), wall_clock());
    let (dir, machine) = (dir.to_owned(), session.machine.clone());
    Telling::Words(Box::new(Words {
        dir,
        machine,
        live,
        before,
        since,
        running,
        folds,
        screen,
        asks,
        how_much,
        said: Vec::new(),
        repeats: Repeats::default(),
        taken_over: TakenOver::default(),
        gates: Vec::new(),
        unanswered: Vec::new(),
        block: Vec::new(),
        turn: 0,
        drawn: now,
        beat: now,
    }))
}

/// How often the block is drawn again while nothing happens.
const TICK: Duration = Duration::from_millis(200);
/// How often, at most, it is drawn because something happened.
const DRAW_MS: u64 = 50;
/// Off a terminal a line a minute says that the run is alive.
const BEAT_MS: u64 = 60_000;
/// A driver that has left its gate open so long has not left itself.
const STAYS_MS: u64 = 1_000;

/// Takes durable lines as they come, and what is waited for.
pub(crate) fn sink(telling: Telling) -> Sink {
    match telling {
        Telling::Json => Box::new(|news| {
            let lines = match news {
                News::Lines(lines) => lines,
                News::Waits(words) => return Screen::of_stderr().line(words),
            };
            let mut out = Printer::json();
            for line in each_line(lines) {
                // A reader that went away does not stop the run.
                let _ = out.write_all(b"{\"schema\":\"onward.event/1\",");
                let _ = out.write_all(&line[1..]);
                let _ = out.write_all(b"\n");
            }
            let _ = out.flush();
        }),
        Telling::Words(words) => {
            let words = Arc::new(Mutex::new(*words));
            tick(&words);
            Box::new(move |news| {
                let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
                let lines = match news {
                    News::Lines(lines) => lines,
                    News::Waits(what) => return words.screen.line(what),
                };
                for line in each_line(lines) {
                    if let Ok(record) = decode_line(line) {
                        words.take(record);
                    }
                }
                if wall_clock().ms_since(words.drawn) >= DRAW_MS {
                    words.redraw();
                } else {
                    words.settle();
                }
            })
        }
    }
}

/// Keeps the block moving, or the heart beating, until the sink is gone.
fn tick(words: &Arc<Mutex<Words>>) {
    let first = words.lock().unwrap_or_else(PoisonError::into_inner);
    if first.how_much == HowMuch::Quiet {
        return;
    }
    drop(first);
    let words = Arc::downgrade(words);
    thread::spawn(move || {
        while let Some(words) = words.upgrade() {
            let mut now = words.lock().unwrap_or_else(PoisonError::into_inner);
            now.turn += 1;
            now.beat(BEAT_MS);
            now.redraw();
            drop(now);
            drop(words);
            thread::sleep(TICK);
        }
    });
}

fn each_line(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HowMuch {
    /// Only what needs a person.
    Quiet,
    Usual,
    /// Every item of every fan-out.
    All,
}

/// An open gate, and when this process heard of it.
struct Unanswered {
    step: Address,
    prompt: String,
    options: Vec<String>,
    heard: Timestamp,
}

pub(crate) struct Words {
    dir: PathBuf,
    /// How agents are understood.
    machine: Machine,
    live: Option<Live>,
    before: Option<State>,
    since: Timestamp,
    running: Running,
    folds: Folds,
    screen: Screen,
    asks: Asks,
    how_much: HowMuch,
    /// What is to be shown with the next frame, and what became of gates meanwhile.
    said: Vec<String>,
    /// What is said of one step after the other.
    repeats: Repeats,
    taken_over: TakenOver,
    gates: Vec<Event>,
    /// Gates that no answer was heard of.
    unanswered: Vec<Unanswered>,
    block: Vec<Row>,
    turn: usize,
    drawn: Timestamp,
    beat: Timestamp,
}

impl Words {
    fn take(&mut self, record: Record) {
        // Whether a step that failed is tried again is known when the fold has the failure.
        let is_failed =
            matches!(&record.event, Event::AttemptFinished(it) if it.outcome != Outcome::Done);
        let later = is_failed.then(|| record.clone());
        if later.is_none() {
            self.tell(&record);
            self.running.take(&record);
        }
        if matches!(record.event, Event::GateOpened { .. } | Event::GateDecided { .. }) {
            self.gates.push(record.event.clone());
        }
        let at = record.at;
        let stops = matches!(record.event, Event::RunEnded { .. } | Event::RunPaused { .. });
        let ended = if let Event::AttemptFinished(it) = &record.event {
            self.folds.around(&it.step)
        } else {
            None
        };
        let Some(live) = &mut self.live else { return };
        match live.take(record) {
            Followed::Yes | Followed::Known => {}
            // What cannot be read now is not counted any more; the run continues without a bar.
            Followed::Lost => self.live = open_run(&self.dir).ok().map(Live::new),
        }
        if let Some(record) = later {
            self.tell(&record);
            self.running.take(&record);
        }
        if let Some(group) = ended {
            self.tell_fold(&group, at);
        }
        if stops {
            self.tell_open_folds(at);
        }
    }

    /// Where some item failed, the fan-out is never over: what became of it is said at the end.
    fn tell_open_folds(&mut self, at: Timestamp) {
        let Some(run) = self.live.as_ref().map(Live::run) else { return };
        if self.how_much == HowMuch::All {
            return;
        }
        for line in self.folds.still_open(run, at) {
            self.line(at, &format!("{DIM}fan{DIM:#}   {line}"));
        }
    }

    /// A fan-out that was folded is one line, when all of it is over.
    fn tell_fold(&mut self, group: &Address, at: Timestamp) {
        let Some(run) = self.live.as_ref().map(Live::run) else { return };
        if self.how_much == HowMuch::All {
            return;
        }
        if let Some(line) = self.folds.over(run, group, at) {
            self.line(at, &format!("{GOOD}done{GOOD:#}  {line}"));
        }
    }

    /// Steps that are taken over, told when the last of them is known.
    fn tell(&mut self, record: &Record) {
        if self.how_much != HowMuch::All && self.taken_over.takes(&record.event) {
            self.taken_over.add(record, wall_clock());
            return;
        }
        // A fan-out that they stand in is no end of them.
        if !matches!(record.event, Event::GroupExpanded { .. }) {
            self.tell_taken_over();
        }
        self.tell_one(record);
    }

    fn tell_taken_over(&mut self) {
        let (many, others) = self.taken_over.end();
        if let Some((at, line)) = many {
            self.line(at, &format!("{GOOD}adopt{GOOD:#} {}", printable(&line)));
        }
        for record in others {
            self.tell_one(&record);
        }
    }

    fn tell_one(&mut self, record: &Record) {
        let at = record.at;
        let width = columns_of_errors().filter(|_| self.screen.moves());
        for (why, line) in undone::lines(&record.event, &id_of(&self.dir), (width, 6, 6)) {
            let word = match why {
                undone::Why::Undone => "undo",
                undone::Why::Replaced => "save",
            };
            self.line(at, &format!("{WARN}{word}{WARN:#}  {line}"));
        }
        if !folds::repeats(&record.event) {
            self.tell_repeats();
        }
        match &record.event {
            Event::AttemptStarted(started) => {
                let again = if self.has_begun(&started.step) {
                    format!(" (attempt {})", started.attempt)
                } else {
                    String::new()
                };
                let is_folded = self.is_folded(&started.step, at);
                if !self.screen.moves() && !is_folded {
                    self.line(at, &format!("{DIM}start{DIM:#} {}{again}", started.step));
                }
            }
            Event::AttemptFinished(finished) => self.finished(finished, at),
            Event::StepSkipped { step, reason, .. } => {
                self.one_of_many(at, &format!("{DIM}skip{DIM:#} "), step, &printable(reason));
            }
            // Announced a moment before there was a slot for it.
            Event::AttemptLost { step, rung: Rung::NeverSpawned, .. } => {
                self.one_of_many(at, &format!("{DIM}wait{DIM:#} "), step, "it has not begun yet");
            }
            Event::AttemptLost { step, rung, .. } => {
                self.one_of_many(at, &format!("{WARN}lost{WARN:#} "), step, rung.in_words());
            }
            Event::AttemptAdopted(adopted) => {
                let said = format!("from {}", printable(&adopted.source));
                self.one_of_many(at, &format!("{GOOD}adopt{GOOD:#}"), &adopted.step, &said);
            }
            Event::StepInvalidated { step, causes } => {
                let parts: Vec<String> =
                    causes.iter().map(|cause| part_in_words(&cause.part)).collect();
                let parts = printable(&parts.join(", "));
                let said = format!("changed: {parts}");
                self.one_of_many(at, &format!("{WARN}stale{WARN:#}"), step, &said);
            }
            Event::GateOpened { step, prompt, options, .. } => {
                self.gate_opened(at, step, prompt, options);
            }
            Event::GateDecided { step, option, by, .. } => {
                self.unanswered.retain(|it| it.step != *step);
                let (option, by) = (printable(option), printable(by));
                self.line(at, &format!("{GOOD}gate{GOOD:#}  {step}  \"{option}\" by {by}"));
            }
            Event::LoopTurned { step, turn } => {
                self.line(at, &format!("{DIM}turn{DIM:#}  {step} {turn}"));
            }
            Event::Note { text, step: None } => {
                self.line(at, &format!("{DIM}note{DIM:#}  {}", printable(text)));
            }
            Event::RunResumed(resumed) => {
                self.line(at, &format!("{DIM}resume{DIM:#} {}", printable(&resumed.summary)));
                if let Some(place) = &resumed.entered {
                    let place = printable(place);
                    let told = "entered as you asked: finished work from there on is done again";
                    self.line(at, &format!("{WARN}warn{WARN:#}  {place}  {told}"));
                }
            }
            Event::GroupExpanded { step, items, .. } => self.folds.open(step, items.len()),
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunPaused { .. }
            | Event::RunEnded { .. }
            | Event::RunArchived { .. }
            | Event::LoopEnded { .. }
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::AttemptVerified(_)
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { step: Some(_), .. } => {}
            Event::LimitHit { provider, agent, resets_at, .. } => {
                let whose = printable(agent.as_ref().unwrap_or(provider));
                let until = resets_at.map_or_else(
                    || "the provider does not say until when".to_owned(),
                    |moment| format!("until {}", clock(moment, at)),
                );
                self.line(at, &format!("{WARN}limit{WARN:#} {whose}  {until}"));
            }
        }
    }

    /// A line that may be said of many steps. In a large fan-out those that follow each other and
    /// say the same are one line with their count.
    fn one_of_many(&mut self, at: Timestamp, head: &str, step: &Address, said: &str) {
        let group = self.folds.around(step).filter(|_| self.how_much != HowMuch::All);
        let Some(group) = group else {
            return self.line(at, &format!("{head} {step}  {said}"));
        };
        if let Some((at, line)) = self.repeats.add((group, step), (head, said), at) {
            self.line(at, &line);
        }
    }

    fn tell_repeats(&mut self) {
        if let Some((at, line)) = self.repeats.end() {
            self.line(at, &line);
        }
    }

    /// Whether an attempt at the step began before. One that was announced ahead of a slot, and
    /// taken back, is none.
    fn has_begun(&self, step: &Address) -> bool {
        let state = self.live.as_ref().map(|live| &live.run().state);
        state.and_then(|it| it.step(step)).is_some_and(StepState::has_begun)
    }

    fn finished(&mut self, finished: &AttemptFinished, at: Timestamp) {
        let step = &finished.step;
        let began = self.running.end(step);
        let ms = began
            .map(|began| finished.ended.unwrap_or(at).ms_since(began))
            .map(|ms| ms.saturating_sub(finished.waited));
        match &finished.outcome {
            Outcome::Done => self.done(finished, at, ms),
            Outcome::Failed { cause: Cause::Interrupted, .. } => self.stopped(step, at, ms),
            Outcome::Failed { cause, .. } if cause.is_limit() => {
                let until = self.live.as_ref().and_then(|live| live.lifted_at(step));
                let why = parked(*cause, until, at);
                self.line(at, &format!("{WARN}park{WARN:#}  {step}  {why}"));
            }
            Outcome::Failed { cause, detail } => {
                let and = what_follows(self.live.as_ref(), finished, *cause, at);
                let and = and.map_or(String::new(), |it| format!("; {it}"));
                let why = printable(&failure(*cause, detail, ms));
                self.line(at, &format!("{BAD}fail{BAD:#}  {step}  {why}{and}"));
            }
        }
    }

    fn is_folded(&mut self, step: &Address, at: Timestamp) -> bool {
        if self.how_much == HowMuch::All {
            return false;
        }
        self.folds.begin(step, at)
    }

    fn done(&mut self, finished: &AttemptFinished, at: Timestamp, ms: Option<u64>) {
        let step = &finished.step;
        let is_folded = self.is_folded(step, at);
        let run = self.live.as_ref().map(Live::run);
        if let Some(why) = run.and_then(|run| warned::by(run, finished)) {
            return self.line(at, &format!("{WARN}warn{WARN:#}  {step}  {}", printable(&why)));
        }
        if is_folded {
            return;
        }
        let span = ms.map_or(String::new(), |ms| format!("  {}", took(ms)));
        self.line(at, &format!("{GOOD}done{GOOD:#}  {step}{DIM}{span}{DIM:#}"));
    }

    /// The user stopped it: that says nothing against the step.
    fn stopped(&mut self, step: &Address, at: Timestamp, ms: Option<u64>) {
        if self.is_folded(step, at) {
            return;
        }
        let span = ms.map_or(String::new(), |ms| format!("  after {}", took(ms)));
        self.line(at, &format!("{WARN}stop{WARN:#}  {step}{DIM}{span}{DIM:#}"));
    }

    /// Off a terminal each line has its time.
    fn line(&mut self, at: Timestamp, text: &str) {
        if self.how_much == HowMuch::Quiet {
            return;
        }
        let has_clock = !self.screen.moves();
        self.said.push(if has_clock {
            format!("{} {text}", seconds(at))
        } else {
            let width = columns_of_errors();
            let lines: Vec<String> = text.split('\n').map(|it| wrap(it, width, 0, 6)).collect();
            lines.join("\n")
        });
    }

    /// What was said, above the block as it is now.
    fn redraw(&mut self) {
        self.say_how_to_answer();
        self.block = self.rows();
        self.show();
    }

    fn gate_opened(&mut self, at: Timestamp, step: &Address, prompt: &str, options: &[String]) {
        // The question is read once: where it is asked, or at the end with what answers it.
        if !matches!(self.asks, Asks::Here(_)) {
            self.line(at, &format!("{WARN}gate{WARN:#}  {step}  opened"));
        }
        let (step, heard) = (step.clone(), wall_clock());
        let (prompt, options) = (prompt.to_owned(), options.to_vec());
        self.screen.notify(&format!("onward: {step} waits for your answer"));
        self.unanswered.push(Unanswered { step, prompt, options, heard });
    }

    /// A driver that stays at a gate waits at its own terminal: a watcher is told how to answer.
    fn say_how_to_answer(&mut self) {
        if !matches!(self.asks, Asks::Later) {
            return;
        }
        let (now, run) = (wall_clock(), id_of(&self.dir));
        let stays = |it: &mut Unanswered| now.ms_since(it.heard) >= STAYS_MS;
        let waiting: Vec<Unanswered> = self.unanswered.extract_if(.., stays).collect();
        for Unanswered { step, prompt, options, .. } in waiting {
            let indent = step.as_str().len() + 2;
            self.line(now, &format!("{step}: {}", paragraph(&prompt, indent, 2)));
            for option in options {
                let (gate, option) = (word(step.as_str()), word(&option));
                self.line(now, &format!("  {}", onward!("decide {run} {gate} {option}")));
            }
        }
    }

    /// The same with the block as it was, without the steps that ended: cheap enough for each
    /// event of a large run.
    fn settle(&mut self) {
        self.block.retain(|row| row.step.as_ref().is_none_or(|step| self.running.has(step)));
        self.show();
    }

    fn show(&mut self) {
        if self.taken_over.is_late(wall_clock()) {
            self.tell_taken_over();
        }
        self.tell_repeats();
        let block = self.block.iter().map(|row| row.text.clone()).collect();
        self.screen.frame(&std::mem::take(&mut self.said), block);
        // A question comes below what was said before it.
        for event in std::mem::take(&mut self.gates) {
            if let Asks::Here(attendant) = &self.asks {
                attendant.hear(&event);
            }
        }
    }

    fn rows(&mut self) -> Vec<Row> {
        if self.how_much == HowMuch::Quiet || !self.screen.moves() {
            return Vec::new();
        }
        let now = wall_clock();
        self.drawn = now;
        let waits = self.live.as_ref().is_some_and(|live| {
            !live.retries(now).is_empty() || live.run().state.next_reset(now).is_some()
        });
        if self.running.is_empty() && !waits {
            return Vec::new();
        }
        let scene = Scene {
            dir: &self.dir,
            machine: &self.machine,
            live: self.live.as_ref(),
            before: self.before.as_ref(),
            since: self.since,
            now,
            turn: self.turn,
            size: screen::size(),
        };
        scene.rows(&mut self.running)
    }

    /// Off a terminal: the run is alive, and this is what it does.
    fn beat(&mut self, every_ms: u64) {
        let now = wall_clock();
        if self.screen.moves() || now.ms_since(self.beat) < every_ms {
            return;
        }
        self.beat = now;
        let counts = self.live.as_ref().map(Live::counts).unwrap_or_default();
        let running = printable(&self.running.in_words(now, 3));
        let running = if running.is_empty() { "nothing runs".to_owned() } else { running };
        self.line(now, &format!("{DIM}alive{DIM:#} {} done; {running}", fraction(counts)));
    }
}
