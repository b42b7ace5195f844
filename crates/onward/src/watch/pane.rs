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

use crate::{
    diagnostic::printable,
    plain, speech,
    style::{self, DIM, STRONG, cut, of_state, took, wrap},
};

use super::tree::{Row, RowKind};

/// So much of an output is read: more than any screen holds.
const TAIL: u64 = 65_536;
/// So many rows say why, and what was asked, beside the tree; Enter shows all of it.
const WHY_ROWS: usize = 3;
const ASKED_ROWS: usize = 4;

/// Where it is shown.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// Beside the tree: so many columns and rows, and the end of what was printed.
    Beside(usize, usize),
    /// On the whole screen, which is scrolled: so many columns.
    Whole(usize),
}

/// What is known of the step besides the fold.
pub(super) struct Said<'a> {
    /// How its agent is understood.
    pub(super) voice: Option<&'a Spoken>,
    /// Why it will, or will not, run.
    pub(super) why: Option<&'a str>,
}

pub(super) fn lines(run: &Run, dir: &Path, row: &Row, said: &Said<'_>, room: Room) -> Vec<String> {
    let (width, why_rows, asked_rows) = match room {
        Room::Beside(width, _) => (width, WHY_ROWS, ASKED_ROWS),
        Room::Whole(width) => (width, usize::MAX, usize::MAX),
    };
    let step = &row.address;
    let mut lines = vec![format!("{STRONG}{}{STRONG:#}", cut(&printable(step.as_str()), width))];
    let state = match &row.kind {
        RowKind::Leaf => state_word(run, row.id),
        RowKind::Group { counts: Counts { done, total, more }, .. } => {
            let more = if *more { ", and more to come" } else { "" };
            lines.push(format!("{done} of {total} done{more}"));
            return lines;
        }
    };
    let shown = of_state(state);
    lines.push(format!("{shown}{state}{shown:#}"));
    let entry = run.state.step(step);
    let asked = asked(run, row.id, entry);
    let opened = entry.and_then(|it| it.gate.as_deref());
    if let Some(entry) = entry {
        let mut facts = Vec::new();
        if entry.attempts > 0 {
            facts.push(format!("attempt {}", entry.attempts));
            let end = if state == "running" { wall_clock() } else { entry.ended_at };
            facts.push(took(end.ms_since(entry.started_at)));
        }
        if state != "running" && entry.ended_at > Timestamp::default() {
            facts.push(format!("ended {}", style::clock(entry.ended_at, wall_clock())));
        }
        if entry.spent.0 > 0 {
            facts.push(format!("${:.2}", entry.spent.dollars()));
        }
        lines.push(cut(&facts.join("  "), width));
        let proofs: Vec<String> =
            entry.evidence.files.iter().map(|file| printable(&file.path)).collect();
        if !proofs.is_empty() {
            lines.push(cut(&format!("proved by {}", proofs.join(", ")), width));
        }
        if let Some(failure) = &entry.failure {
            let ms = Some(entry.ended_at.ms_since(entry.started_at));
            lines.push(cut(&printable(&style::failure(failure.0, &failure.1, ms)), width));
        }
    }
    if let Some(why) = said.why {
        lines.extend(wrap(why, Some(width), 0, 2).lines().take(why_rows).map(|it| cut(it, width)));
    }
    if let Some(gate) = opened {
        let prompt = wrap(&printable(&gate.prompt), Some(width), 0, 0);
        lines.extend(prompt.lines().map(str::to_owned));
        let look_at = |it: &String| cut(&format!("  look at {}", printable(it)), width);
        lines.extend(gate.shows.iter().map(look_at));
    } else {
        let asked = asked.lines().take(asked_rows).map(printable);
        let rows = asked.flat_map(|line| room.rows(&line));
        lines.extend(rows.map(|line| format!("{DIM}{line}{DIM:#}")));
    }
    lines.push(String::new());
    let attempts = entry.map_or(0, |it| it.attempts);
    if attempts > 0 {
        let mut printed = tail(&dir.join(out_name(step, attempts, "out")), said.voice);
        printed.extend(tail(&dir.join(out_name(step, attempts, "err")), None));
        if printed.is_empty() {
            let so_far = if state == "running" { "has printed nothing yet" } else { "no output" };
            lines.push(format!("{DIM}{}{DIM:#}", cut(so_far, width)));
        }
        let skipped = match room {
            Room::Beside(_, height) => {
                printed.len().saturating_sub(height.saturating_sub(lines.len()))
            }
            Room::Whole(_) => 0,
        };
        lines.extend(printed.iter().skip(skipped).flat_map(|line| room.rows(line)));
    }
    lines
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

impl Room {
    /// A line of a text: one row beside the tree, as many as it needs on the whole screen.
    fn rows(self, line: &str) -> Vec<String> {
        match self {
            Self::Beside(width, _) => vec![cut(line, width)],
            Self::Whole(width) => {
                let wrapped = wrap(line, Some(width), 0, 2);
                wrapped.lines().map(|row| cut(row, width)).collect()
            }
        }
    }
}

fn tail(path: &Path, voice: Option<&Spoken>) -> Vec<String> {
    let Ok(mut file) = open::at(path, open::To::Read) else { return Vec::new() };
    let bytes = file.metadata().map_or(0, |it| it.len());
    let mut text = Vec::new();
    let from = bytes.saturating_sub(TAIL);
    if file.seek(SeekFrom::Start(from)).is_err() || file.take(TAIL).read_to_end(&mut text).is_err()
    {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    let plainly = || plain::text(&text).lines().map(printable).collect();
    voice.map_or_else(plainly, |it| speech::told(it, &text))
}
