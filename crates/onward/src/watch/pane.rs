//! The selected step: how it stands, what it was asked, and the end of what it printed.

use std::{
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
};

use onward_core::{
    decide::text,
    graph::NodeId,
    key::Key,
    run::Run,
    state::StepState,
    time::Timestamp,
    view::{Counts, state_word},
    workflow::{
        model::{Kind, Template},
        template::Quoting,
    },
};
use onward_engine::{
    agents::Spoken,
    world::{open, out_name, real::wall_clock},
};
use ratatui::{Frame, layout::Rect, text::Line};

use crate::{
    diagnostic::printable,
    plain, speech,
    style::{self, DIM, STRONG, of_state, took},
};

use super::{
    part::Part,
    tree::{Row, RowKind},
};

/// So much of an output is read, and so many lines: more than any screen holds.
const TAIL: u64 = 65_536;
const LINES_MAX: usize = 10_000;
/// So many rows say why, and what was asked, beside the tree; Enter shows all of it.
const WHY_ROWS: u16 = 3;
const ASKED_ROWS: u16 = 4;

/// From top to bottom.
pub(super) struct Pane {
    name: Part,
    parts: Vec<Part>,
    /// What it printed, of which the end is shown where not all of it has room.
    printed: Vec<Line<'static>>,
}

/// What is known of the step besides the fold.
pub(super) struct Said<'a> {
    /// How its agent is understood.
    pub(super) voice: Option<&'a Spoken>,
    /// Why it will, or will not, run.
    pub(super) why: Option<&'a str>,
}

impl Pane {
    pub(super) fn of(run: &Run, dir: &Path, row: &Row, said: &Said<'_>) -> Self {
        let name = Part::cut(Line::styled(printable(row.address.as_str()), STRONG));
        let (parts, printed) = match &row.kind {
            RowKind::Leaf => leaf(run, dir, row, said),
            RowKind::Group { counts: Counts { done, total, more }, .. } => {
                let more = if *more { ", and more to come" } else { "" };
                (vec![Part::cut(format!("{done} of {total} done{more}"))], Vec::new())
            }
        };
        Self { name, parts, printed }
    }

    /// Beside the tree.
    pub(super) fn draw(self, frame: &mut Frame<'_>, room: Rect) {
        let room = self.name.draw(frame, room);
        let room = self.parts.iter().fold(room, |room, part| part.draw(frame, room));
        let skipped = self.printed.len().saturating_sub(room.height.into());
        Part::cut(self.printed[skipped..].to_vec()).draw(frame, room);
    }

    /// The name, and all below it.
    pub(super) fn whole(self) -> (Part, Vec<Line<'static>>) {
        let lines = self.parts.into_iter().flat_map(|part| part.lines);
        (self.name, lines.chain(self.printed).collect())
    }
}

fn leaf(run: &Run, dir: &Path, row: &Row, said: &Said<'_>) -> (Vec<Part>, Vec<Line<'static>>) {
    let step = &row.address;
    let state = state_word(run, row.id);
    let entry = run.state.step(step);
    let mut facts = vec![Line::styled(state, of_state(state))];
    if let Some(entry) = entry {
        facts.extend(facts_of(entry, state == "running"));
    }
    let mut parts = vec![Part::cut(facts)];
    parts.extend(said.why.map(|why| Part::wrapped(why.to_owned()).at_most(WHY_ROWS)));
    let asked = asked(run, row.id, entry);
    if let Some(gate) = entry.and_then(|it| it.gate.as_deref()) {
        parts.push(Part::wrapped(lines_of(&gate.prompt)));
        let look_at = |it: &String| Line::raw(format!("  look at {}", printable(it)));
        parts.push(Part::cut(gate.shows.iter().map(look_at).collect::<Vec<_>>()));
    } else {
        let asked = lines_of(&asked).into_iter().map(|line| line.style(DIM));
        parts.push(Part::cut(asked.collect::<Vec<_>>()).at_most(ASKED_ROWS));
    }
    parts.push(Part::cut(Line::default()));
    let attempts = entry.map_or(0, |it| it.attempts);
    if attempts == 0 {
        return (parts, Vec::new());
    }
    let mut printed = tail(&dir.join(out_name(step, attempts, "out")), said.voice);
    printed.extend(tail(&dir.join(out_name(step, attempts, "err")), None));
    if printed.is_empty() {
        let so_far = if state == "running" { "has printed nothing yet" } else { "no output" };
        printed.push(Line::styled(so_far, DIM));
    }
    (parts, printed)
}

/// The last attempt: how long it took, what it cost, and what proves it or how it failed.
fn facts_of(entry: &StepState, is_running: bool) -> Vec<Line<'static>> {
    let mut facts = Vec::new();
    if entry.attempts > 0 {
        facts.push(format!("attempt {}", entry.attempts));
        let end = if is_running { wall_clock() } else { entry.ended_at };
        facts.push(took(end.ms_since(entry.started_at)));
    }
    if !is_running && entry.ended_at > Timestamp::default() {
        facts.push(format!("ended {}", style::clock(entry.ended_at, wall_clock())));
    }
    if entry.spent.0 > 0 {
        facts.push(format!("${:.2}", entry.spent.dollars()));
    }
    let mut lines = vec![Line::raw(facts.join("  "))];
    // Of one that runs nothing is known yet: this was said of the one before.
    if !is_running && !entry.evidence.files.is_empty() {
        let proofs: Vec<_> = entry.evidence.files.iter().map(|it| printable(&it.path)).collect();
        lines.push(Line::raw(format!("proved by {}", proofs.join(", "))));
    }
    if let Some(failure) = &entry.failure {
        let ms = Some(entry.ended_at.ms_since(entry.started_at)).filter(|_| !is_running);
        let how = printable(&style::failure(failure.0, &failure.1, ms));
        lines.push(Line::raw(if is_running { format!("before: {how}") } else { how }));
    }
    lines
}

fn lines_of(text: &str) -> Vec<Line<'static>> {
    text.lines().map(|line| Line::raw(printable(line))).collect()
}

/// What the step was asked, where the journal has it in full; else what it would be asked now, with
/// its own item and inputs; and as it is written where that is not known yet.
fn asked(run: &Run, id: NodeId, entry: Option<&StepState>) -> String {
    let started = entry.and_then(|it| it.started.as_deref()).map(|it| &it.key);
    let key = entry.and_then(|it| it.key.as_ref()).or(started).map(Key::get);
    let asked = |name: &str, template: &Template, quoting| {
        let kept = key.as_ref().and_then(|it| it.definition.get(name).cloned());
        let kept = kept.filter(|it| !it.contains(" bytes, b3:"));
        let now = || text(run, id, template, quoting);
        kept.or_else(now).unwrap_or_else(|| template.source.clone())
    };
    match &run.defs.step(run.graph.node(id).def).kind {
        Kind::Run { command } => format!("$ {}", asked("run", command, Quoting::Shell)),
        Kind::Agent { agent, prompt } => {
            format!("{agent}: {}", asked("prompt", prompt, Quoting::Plain))
        }
        Kind::Gate(gate) => asked("gate", &gate.prompt, Quoting::Plain),
        Kind::Call { name, .. } => format!("call {name}"),
        Kind::Group { .. } | Kind::Sub { .. } => String::new(),
    }
}

fn tail(path: &Path, voice: Option<&Spoken>) -> Vec<Line<'static>> {
    let Ok(mut file) = open::at(path, open::To::Read) else { return Vec::new() };
    let bytes = file.metadata().map_or(0, |it| it.len());
    let mut text = Vec::new();
    let from = bytes.saturating_sub(TAIL);
    if file.seek(SeekFrom::Start(from)).is_err() || file.take(TAIL).read_to_end(&mut text).is_err()
    {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    let lines = match voice {
        Some(voice) => speech::told(voice, &text),
        None => plain::text(&text).lines().map(str::to_owned).collect(),
    };
    let skipped = lines.len().saturating_sub(LINES_MAX);
    lines[skipped..].iter().map(|line| Line::raw(printable(line))).collect()
}
