//! What does the run of another system mean?
//!
//! One module per system, each a [`Dialect`]; [`rules`] has what the built-in workflows do with
//! such a run, [`kit`] what several systems write alike. Invariant: nothing here writes, spawns or
//! knows about the engine; a dialect is a pure function of the files it is shown.

pub mod agent_memory;
pub mod builtin;
pub mod conference;
pub mod dotagent;
mod files;
pub mod kit;
pub mod pipeline;
pub mod rules;
pub mod sdlc;
pub mod seam;

use onward_core::finding::DialectCode;

pub use files::{Branch, File, Files, Git, Since, Unread, Unreadable, Worktree};
pub use seam::{
    Candidate, Card, Dialect, Glimpse, Home, Listing, Mark, Missing, Root, Site, Watch,
};

/// Every dialect this build knows, in the order in which doubt is settled.
pub fn dialects() -> &'static [&'static dyn Dialect] {
    static ALL: [&dyn Dialect; 5] = [
        &conference::CONFERENCE,
        &agent_memory::AGENT_MEMORY,
        &dotagent::DOTAGENT,
        &pipeline::PIPELINE,
        &sdlc::SDLC,
    ];
    &ALL
}

/// The dialect of this name.
pub fn dialect(name: &str) -> Option<&'static dyn Dialect> {
    dialects().iter().copied().find(|dialect| dialect.card().name == name)
}

/// Every code that a dialect of this build gives, so that `--accept` knows them all.
pub fn codes() -> impl Iterator<Item = DialectCode> {
    let conference = conference::check::Own::ALL.into_iter().map(conference::check::Own::row);
    let sdlc = sdlc::Own::ALL.into_iter().map(sdlc::Own::row);
    conference.chain(sdlc).chain(kit::code::Odd::ALL.into_iter().map(kit::code::Odd::row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_own_name_only() {
        for known in dialects() {
            let card = known.card();
            assert_eq!(dialect(card.name).map(|it| it.card().name), Some(card.name));
            assert!(!card.marks.is_empty(), "{} could be anywhere", card.name);
            assert!(card.workflows.iter().all(|it| builtin::workflow(it).is_some()));
        }
        assert!(dialect("no-such-system").is_none());
    }
}
