//! The block at the bottom of a terminal while a run is driven: a line for each running step, and
//! one bar.
//!
//! Invariant: it counts nothing itself. Done, total, money and what is left come from the fold that
//! `list` and `status` show; only the last words of a step are read from its output.

use std::{
    collections::BTreeMap,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use onward_core::{
    address::Address,
    event::{AttemptFinished, Event, Record},
    evidence::Cause,
    plan::Status,
    run::Run,
    state::State,
    time::Timestamp,
    view::{Counts, Live, Retrying},
};
use onward_engine::{
    agents::Spoken,
    engine::{Machine, voice_of},
    locate::Project,
    world::{open, out_name, real::file_time},
};

use crate::{
    diagnostic::printable,
    plain,
    screen::Size,
    session::state_of,
    speech,
    style::{BUSY, DIM, GOOD, WARN, cut, fraction, parked, span, thousands, took, usd},
    width,
};

/// The last run of the same workflow that was completed, for how long things take.
pub(crate) fn earlier(dir: &Path, run: &Run) -> Option<State> {
    const LOOKED_AT: usize = 5;
    let name = &run.state.opened.as_ref()?.workflow;
    let project = Project::of_run(dir)?;
    let runs = project.runs().ok()?.into_iter().filter(|it| it.dir != dir).take(LOOKED_AT);
    let mut states = runs.filter_map(|it| state_of(&it.dir).ok());
    states.find(|state| {
        let same = state.opened.as_ref().is_some_and(|it| it.workflow == *name);
        same && Status::of(state, false) == Status::Completed
    })
}

/// What runs now, by address.
#[derive(Default)]
pub(crate) struct Running(BTreeMap<Address, Attempt>);

struct Attempt {
    number: u32,
    began: Timestamp,
    /// Its last line, and when it came.
    said: String,
    said_at: Timestamp,
    bytes: u64,
}

/// A step that says nothing for so long is called quiet.
const QUIET_MS: u64 = 120_000;
/// The end of an output in which its last line is looked for.
const TAIL: u64 = 32_768;

impl Running {
    pub(crate) fn begin(&mut self, step: &Address, number: u32, at: Timestamp) {
        let said = String::new();
        let attempt = Attempt { number, began: at, said, said_at: at, bytes: 0 };
        self.0.insert(step.clone(), attempt);
    }

    /// When it began, if it was running.
    pub(crate) fn end(&mut self, step: &Address) -> Option<Timestamp> {
        self.0.remove(step).map(|it| it.began)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, step: &Address) -> bool {
        self.0.contains_key(step)
    }

    pub(crate) fn take(&mut self, record: &Record) {
        match &record.event {
            Event::AttemptStarted(it) => self.begin(&it.step, it.attempt, record.at),
            Event::AttemptFinished(it) => drop(self.end(&it.step)),
            Event::AttemptLost { step, .. } => drop(self.end(step)),
            Event::AttemptAdopted(it) => drop(self.end(&it.step)),
            Event::RunOpened(_)
            | Event::RunAdopted { .. }
            | Event::RunResumed(_)
            | Event::RunPaused { .. }
            | Event::RunEnded { .. }
            | Event::RunArchived { .. }
            | Event::GroupExpanded { .. }
            | Event::LoopTurned { .. }
            | Event::LoopEnded { .. }
            | Event::StepSkipped { .. }
            | Event::StepInvalidated { .. }
            | Event::AttemptSession { .. }
            | Event::AttemptSpent { .. }
            | Event::AttemptVerified(_)
            | Event::GateOpened { .. }
            | Event::GateDecided { .. }
            | Event::EffectIntended { .. }
            | Event::EffectSettled { .. }
            | Event::NativeExported { .. }
            | Event::LimitHit { .. }
            | Event::BudgetHit { .. }
            | Event::WorkflowChanged { .. }
            | Event::JournalRepaired { .. }
            | Event::Note { .. } => {}
        }
    }

    /// Steps and how long they have been running, the longest first.
    pub(crate) fn in_words(&self, now: Timestamp, most: usize) -> String {
        let mut all: Vec<(&Address, &Attempt)> = self.0.iter().collect();
        all.sort_by_key(|(_, attempt)| attempt.began);
        let shown = all.iter().take(most);
        let mut words: Vec<String> =
            shown.map(|(step, it)| format!("{step} {}", took(now.ms_since(it.began)))).collect();
        let more = all.len().saturating_sub(most);
        if more > 0 {
            words.push(format!("and {more} more"));
        }
        words.join(", ")
    }
}

/// What comes after an attempt that failed, where that is not the end of the step: told from the
/// fold that has it already.
pub(crate) fn what_follows(
    live: Option<&Live>,
    finished: &AttemptFinished,
    cause: Cause,
    now: Timestamp,
) -> Option<String> {
    if finished.tolerated {
        return Some("the run continues without it".to_owned());
    }
    let live = live?;
    if let Some(retry) = live.retry(&finished.step) {
        return Some(tries_again(&retry, now));
    }
    // Tries were declared, for other causes.
    let node = live.run().graph.node(live.run().graph.find(&finished.step)?);
    let retry = &live.run().defs.step(node.def).retry;
    let word = cause.as_str();
    let is_other = retry.max > 0 && !retry.on.contains(&cause);
    is_other.then(|| format!("not tried again: its `retry.on` lacks `{word}`"))
}

/// `tries again in 2 s (retry 1 of 3)`
fn tries_again(it: &Retrying, now: Timestamp) -> String {
    let again = match it.at.ms_since(now).div_ceil(1000) {
        0 => "tries again".to_owned(),
        seconds => format!("tries again in {}", span(seconds)),
    };
    match it.number {
        0 => again,
        number => format!("{again} (retry {number} of {})", it.max),
    }
}

/// What the block is drawn from.
pub(crate) struct Scene<'a> {
    pub(crate) dir: &'a Path,
    /// How agents are understood.
    pub(crate) machine: &'a Machine,
    pub(crate) live: Option<&'a Live>,
    /// An earlier run of the same workflow that was completed.
    pub(crate) before: Option<&'a State>,
    /// When this drive began.
    pub(crate) since: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) turn: usize,
    pub(crate) size: Size,
}

/// A line of the block.
pub(crate) struct Row {
    /// The step that runs, where the line is about one.
    pub(crate) step: Option<Address>,
    pub(crate) text: String,
}

impl From<String> for Row {
    fn from(text: String) -> Self {
        Self { step: None, text }
    }
}

const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Scene<'_> {
    /// One line a step, as many as half the screen holds, and the bar.
    pub(crate) fn rows(&self, running: &mut Running) -> Vec<Row> {
        let most = (self.size.rows / 2).saturating_sub(2).max(1);
        let retries = self.live.map(|live| live.retries(self.now)).unwrap_or_default();
        let limited = self.live.map(Live::parked).unwrap_or_default();
        let mut rows: Vec<Row> = Vec::new();
        let total = running.0.len() + retries.len() + limited.len();
        let mut all: Vec<(&Address, &mut Attempt)> = running.0.iter_mut().collect();
        all.sort_by_key(|(_, attempt)| attempt.began);
        for (step, attempt) in all.into_iter().take(most) {
            let voice = || voice_of(self.live?.run(), step, self.machine);
            let path = self.dir.join(out_name(step, attempt.number, "out"));
            attempt.listen(&path, self.now, voice);
            rows.push(Row { step: Some(step.clone()), text: self.step(step, attempt) });
        }
        for it in retries.iter().take(most - rows.len().min(most)) {
            let seconds = it.at.ms_since(self.now).div_ceil(1000);
            // A try that takes none of `retry.max` has no number.
            let text = match it.number {
                0 => format!("tries again in {seconds} s"),
                number => format!("retry {number}/{} in {seconds} s", it.max),
            };
            rows.push(self.waiting("↻", &it.step, &text).into());
        }
        for it in limited.iter().take(most - rows.len().min(most)) {
            let text = parked(it.cause, it.until, self.now);
            rows.push(self.waiting("z", &it.step, &text).into());
        }
        if total > rows.len() {
            rows.push(format!("{DIM}  and {} more{DIM:#}", total - rows.len()).into());
        }
        rows.push(self.bar().into());
        rows
    }

    /// A step that is tried again later, and when.
    fn waiting(&self, mark: &str, step: &Address, text: &str) -> String {
        let room = self.size.columns.saturating_sub(width::of(text) + 5);
        let step = cut(&printable(step.as_str()), room);
        format!("{WARN}{mark}{WARN:#} {step}  {WARN}{text}{WARN:#}")
    }

    fn step(&self, step: &Address, attempt: &Attempt) -> String {
        let spinner = SPINNER[self.turn % SPINNER.len()];
        let elapsed = took(self.now.ms_since(attempt.began));
        let quiet = self.now.ms_since(attempt.said_at);
        let said = if quiet >= QUIET_MS {
            format!("quiet for {} min", quiet / 60_000)
        } else {
            attempt.said.clone()
        };
        let name = printable(step.as_str());
        let name = cut(&name, self.size.columns.saturating_sub(elapsed.len() + 7));
        let used = 2 + width::of(&name) + 2 + elapsed.len() + 2;
        let said = cut(&said, self.size.columns.saturating_sub(used + 1));
        format!("{BUSY}{spinner}{BUSY:#} {name}  {DIM}{elapsed}  {said}{DIM:#}")
    }

    fn bar(&self) -> String {
        const WIDTH: usize = 20;
        let counts = self.live.map(Live::counts).unwrap_or_default();
        let Counts { done, total, .. } = counts;
        let full = if total == 0 { 0 } else { WIDTH * done as usize / total as usize };
        let (full, rest) = ("━".repeat(full), "─".repeat(WIDTH - full));
        let mut parts = vec![fraction(counts), took(self.now.ms_since(self.since))];
        let left =
            self.live.zip(self.before).and_then(|(live, state)| live.left_ms(state, self.now));
        if let Some(ms) = left.filter(|ms| *ms > 0) {
            parts.push(format!("about {} left", took(ms)));
        }
        let state = self.live.map(|live| &live.run().state);
        let spent = state.map_or(0.0, |state| state.spent.dollars());
        if spent > 0.0 {
            parts.push(usd(spent));
        }
        if let Some(tokens) = state.map(|state| state.tokens).filter(|it| *it > 0) {
            parts.push(format!("{} tokens", thousands(tokens)));
        }
        if let Some(moment) = state.and_then(|state| state.next_reset(self.now)) {
            parts.push(format!("limit lifted in {}", took(moment.ms_since(self.now))));
        }
        // Behind it is room for the `^C` that a terminal shows.
        let text = cut(&parts.join("  "), self.size.columns.saturating_sub(WIDTH + 5));
        format!("{GOOD}{full}{GOOD:#}{DIM}{rest}{DIM:#}  {text}")
    }
}

impl Attempt {
    /// Reads the last line of its output, if there is more of it than before.
    fn listen(&mut self, path: &Path, now: Timestamp, voice: impl Fn() -> Option<Spoken>) {
        let Ok(mut file) = open::at(path, open::To::Read) else { return };
        let Ok(about) = file.metadata() else { return };
        let bytes = about.len();
        if bytes == self.bytes {
            return;
        }
        // When it was written, which for one who has just come may be long ago.
        let written = about.modified().map_or(now, file_time);
        (self.bytes, self.said_at) = (bytes, written.min(now).max(self.began));
        let mut tail = Vec::new();
        if file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL))).is_ok()
            && file.take(TAIL).read_to_end(&mut tail).is_ok()
        {
            let voice = voice();
            let text = String::from_utf8_lossy(&tail);
            let text = if voice.is_some() { text.into_owned() } else { plain::text(&text) };
            let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
            match voice {
                // What says nothing to a person leaves the words before it.
                Some(voice) => {
                    let told = speech::told(&voice, &text).pop();
                    self.said = told.unwrap_or_else(|| std::mem::take(&mut self.said));
                }
                None => self.said = printable(lines.next().unwrap_or_default().trim()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use onward_engine::world::real::wall_clock;

    #[test]
    fn one_who_comes_back_is_told_how_long_a_step_has_been_quiet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, "one\ntwo\n").unwrap();
        let now = wall_clock();
        let hour = std::time::Duration::from_hours(1);
        let file = fs::File::options().append(true).open(&path).unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        file.set_modified(written - hour).unwrap();
        let mut running = Running::default();
        let step = Address::from_text("train");
        running.begin(&step, 1, Timestamp::default());
        let attempt = running.0.get_mut(&step).unwrap();
        attempt.listen(&path, now, || None);
        assert_eq!(attempt.said, "two");
        assert!(now.ms_since(attempt.said_at) >= 3_599_000, "an hour");
        // One that began after the file was last written has not been quiet yet.
        running.begin(&step, 1, now);
        let attempt = running.0.get_mut(&step).unwrap();
        attempt.listen(&path, now, || None);
        assert_eq!(attempt.said_at, now);
    }
}
