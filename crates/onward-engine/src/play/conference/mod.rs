//! The functions of the workflow `conference`.
//!
//! - `seat` is the conference's directory: held, read, written.
//! - `ground` is where one researcher works: a `tree` in a `repo`, or a `directory`; `evaluate`
//!   gives the number.
//! - `open`, `round`, `trial` and `close` are the functions, in the order of a conference.
//! - `wizard` writes the conference.md that all of it begins with.
//!
//! Invariant: native files are changed by these functions alone, under the seat's lock; what a
//! researcher left in its ground is kept before anything is put in its place.

mod close;
mod directory;
mod evaluate;
mod ground;
mod open;
mod repo;
mod round;
mod seat;
mod tree;
mod trial;
mod wizard;

use std::path::Path;

use onward_dialects::conference::read::{EVENTS, history::History, log::EventLog};

use super::{CallError, Function, Order, name::Name};

pub use self::wizard::{DOCUMENT, Direction, Draft, Measure, try_evaluator, uncommitted};
pub(super) use self::{round::whole_draft, seat::Seat};

pub(super) const FUNCTIONS: [(&str, Function); 13] = [
    ("conference.open", open::open),
    ("conference.start", open::start),
    ("conference.begin", round::begin),
    ("conference.brief", trial::brief),
    ("conference.score", trial::score),
    ("conference.settle", trial::settle),
    ("conference.roll", round::roll),
    ("conference.poster", round::poster),
    ("conference.review", round::review),
    ("conference.transfer", round::transfer),
    ("conference.converge", round::converge),
    ("conference.synthesis", close::synthesis),
    ("conference.close", close::close),
];

/// Whether the log of a conference in this directory says that it has begun.
pub fn has_started(dir: &Path) -> bool {
    let log = crate::world::open::read_named(&dir.join(EVENTS), crate::world::open::FILE_BYTES_MAX)
        .unwrap_or_default();
    History::of(&EventLog::read(&log)).started
}
