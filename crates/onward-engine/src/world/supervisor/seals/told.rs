//! What of the log the journal has told already: nearly all of a long one.
//!
//! Invariant: only that is passed over of which nothing follows for one who has the journal: start
//! and good end of one attempt, in one life of a supervisor, of a step that the journal has as done
//! by that very attempt. It is not alive, not in flight, and no lost start; it contradicts nothing.

use onward_core::{
    state::{Phase, State},
    time::Timestamp,
};

use super::{KIND_START, Seen, checked, quick, unchecked};

/// Which lines are passed over.
pub(super) struct Told {
    /// By line.
    lines: Vec<bool>,
    /// By the place of a step in the journal: an attempt of its was passed over.
    steps: Vec<bool>,
    /// The latest end among them.
    pub(super) last_end: Option<Timestamp>,
}

impl Told {
    /// Where something was `seen` before, `log` is what is kept of that and what follows it.
    pub(super) fn look(log: &[u8], state: &State, seen: Option<&Seen>) -> Self {
        let passed = seen.map_or(&[][..], |it| &it.attempts).iter().map(|it| *it > 0);
        let mut steps: Vec<bool> = passed.collect();
        steps.resize(state.steps.len(), false);
        let last_end = seen.and_then(|it| it.last_end);
        let mut told = Self { lines: Vec::new(), steps, last_end };
        // Where the start of a step stands, and in which life.
        let mut starts = vec![(0, 0); state.steps.len()];
        let kept = seen.map_or(0, |it| it.kept.len());
        let (mut rest, mut life) = (log, 1);
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (before, (text, after)) = (rest, rest.split_at(end));
            rest = after.get(1..).unwrap_or_default();
            let number = told.lines.len();
            told.lines.push(false);
            let is_kept = log.len() - before.len() < kept;
            let body = if is_kept { unchecked(text) } else { checked(text) };
            let Some(body) = body else { continue };
            let Some(seen) = quick::glance(body) else {
                let kind = body.strip_prefix(KIND_START);
                life += usize::from(kind.is_some_and(|it| it.starts_with(b"opened\"")));
                continue;
            };
            let Some(place) = done_by(state, seen.step, seen.attempt) else { continue };
            if !seen.is_end {
                starts[place] = (life, number);
            } else if starts[place].0 == life {
                let start = std::mem::take(&mut starts[place]).1;
                (told.lines[start], told.lines[number]) = (true, true);
                told.steps[place] = true;
                told.last_end = told.last_end.max(Some(seen.at));
            }
        }
        told
    }

    /// Whether this line, counted from 0, is passed over.
    pub(super) fn has(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|it| *it)
    }

    /// An attempt of the step in this place is passed over.
    pub(super) fn has_step(&self, place: usize) -> bool {
        self.steps.get(place).is_some_and(|it| *it)
    }

    /// The seal of this attempt is passed over.
    pub(super) fn has_seal(&self, state: &State, step: &str, attempt: u32) -> bool {
        done_by(state, step, attempt).is_some_and(|place| self.steps[place])
    }
}

/// The place of a step that the journal has as done by this attempt.
fn done_by(state: &State, step: &str, attempt: u32) -> Option<usize> {
    let (place, known) = state.steps.find(step)?;
    (known.phase() == Phase::Done && known.attempts() == attempt).then_some(place)
}
