//! In which order the events of all actors happened.
//!
//! Invariant: what we had seen when we wrote came before it, and what we had not seen came after
//! it, unless the clocks of others say otherwise. A clock with seconds does not say where in its
//! second something happened; our own events there name what they had seen.

use std::{cmp::Ordering, collections::BTreeMap};

use onward_core::time::Timestamp;

use super::event::{ACTOR, Event, Log};

const SECOND_MICROS: i64 = 1_000_000;
const MILLI_MICROS: i64 = 1000;

/// Where an event stands, and between which moments it happened; without one, at any time before
/// or after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) file: usize,
    pub(super) line: usize,
    pub(super) from: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

impl Span {
    /// A full second means all of it, and a full millisecond too.
    pub(super) fn at(at: Timestamp) -> Self {
        let micros = at.as_micros();
        let steps = [SECOND_MICROS, MILLI_MICROS].into_iter();
        let step = steps.filter(|step| micros.rem_euclid(*step) == 0).max().unwrap_or(1);
        let until = Timestamp::from_micros(micros.saturating_add(step - 1));
        Self { from: Some(at), until: Some(until), ..Self::default() }
    }
}

/// Ours as they were written. One of the others stands before the first of ours that had seen it,
/// else behind all that it may have come after; among themselves they go by time, actor, file and
/// line.
pub(super) fn in_order(events: Vec<Event>, paths: &[String]) -> Vec<Event> {
    let name = |it: &Event| paths[it.span.file].rsplit('/').next().unwrap_or_default();
    let by_time = |one: &Event, other: &Event| {
        let key = (one.at, &one.actor, name(one), one.span.line);
        key.cmp(&(other.at, &other.actor, name(other), other.span.line))
    };
    let (mut ours, theirs): (Vec<Event>, Vec<Event>) =
        events.into_iter().partition(|it| it.actor == ACTOR);
    ours.sort_by(by_time);
    let sight = Sight::of(&ours);
    // The number of ours that come before it.
    let slot = |it: &Event| {
        let Span { file, line, from, until } = it.span;
        let low = from.map_or(0, |from| ours.partition_point(|it| it.at < Some(from)));
        let high = until.map_or(ours.len(), |end| ours.partition_point(|it| it.at <= Some(end)));
        let first = sight.first(&paths[file], line);
        first.map_or(high, |it| it.clamp(low.min(high), high))
    };
    let mut theirs: Vec<(usize, Event)> = theirs.into_iter().map(|it| (slot(&it), it)).collect();
    theirs.sort_by(|(slot, one), (other_slot, other)| match slot.cmp(other_slot) {
        Ordering::Equal => by_time(one, other),
        order @ (Ordering::Less | Ordering::Greater) => order,
    });
    let mut all = Vec::with_capacity(ours.len() + theirs.len());
    let mut theirs = theirs.into_iter().peekable();
    for (place, event) in ours.into_iter().enumerate() {
        while let Some((_, before)) = theirs.next_if(|(slot, _)| *slot <= place) {
            all.push(before);
        }
        all.push(event);
    }
    all.extend(theirs.map(|(_, event)| event));
    all
}

/// What ours had seen: for each log, which of ours was the first to know it up to which line.
#[derive(Debug, Default)]
struct Sight(BTreeMap<String, Vec<(usize, usize)>>);

impl Sight {
    fn of(ours: &[Event]) -> Self {
        let mut sight = Self::default();
        for (place, event) in ours.iter().enumerate() {
            for (path, line) in &event.seen {
                let known = sight.0.entry(path.clone()).or_default();
                if known.last().is_none_or(|(_, before)| before < line) {
                    known.push((place, *line));
                }
            }
        }
        sight
    }

    fn first(&self, path: &str, line: usize) -> Option<usize> {
        let known = self.0.get(path)?;
        known.get(known.partition_point(|(_, upto)| *upto < line)).map(|(place, _)| *place)
    }
}

impl Log {
    /// The moment that an event written now has: none is older than one that is there already.
    pub(super) fn next_moment(&self, now: Timestamp) -> Timestamp {
        let begun = |it: &Event| if it.actor == ACTOR { it.at } else { it.span.from };
        let last = self.events.iter().filter_map(begun).max();
        last.filter(|it| *it >= now).map_or(now, |it| it.plus_ms(1))
    }

    /// What an event of this moment has to name, because no clock tells that it came before.
    pub(super) fn unclear(&self, at: Timestamp) -> BTreeMap<&str, usize> {
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        let ours = || self.events.iter().filter(|it| it.actor == ACTOR);
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for (path, line) in ours().flat_map(|it| &it.seen) {
            let upto = known.entry(path).or_default();
            *upto = (*upto).max(*line);
        }
        for Span { file, line, from, until } in
            self.events.iter().filter(|it| it.actor != ACTOR).map(|it| it.span)
        {
            let is_clear = from.is_some() && until.is_some_and(|it| it < at);
            let path = self.paths[file].as_str();
            if !is_clear && known.get(path).is_none_or(|upto| *upto < line) {
                let upto = named.entry(path).or_default();
                *upto = (*upto).max(line);
            }
        }
        named
    }
}
