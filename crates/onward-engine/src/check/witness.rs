//! The supervisor's log against the journal: what it knows of attempts that the journal does not,
//! and what of it cannot be read.
//!
//! Invariant: a start is durable before its spawn, so that an attempt which the log knows and the
//! journal does not shows that the journal lost its end.

use onward_core::{
    address::Address,
    finding::{Code, Finding},
    launch::Seal,
    run::Run,
    state::StepState,
    survey::InFlight,
};

use crate::world::Connected;

/// The first attempt, if any, of which the journal has lost the start.
pub(crate) fn lost_tail(run: &Run, connected: &Connected) -> Option<Finding> {
    let is_unknown = |step: &Address, attempt: u32| {
        attempt > run.state.step(step).map_or(0, |entry| entry.attempts)
    };
    let ended = connected.seals.iter().chain(&connected.unsettled);
    let ended = ended.map(|seal| (&seal.step, seal.attempt, "ended"));
    let began = connected.spawned.iter().map(|(step, attempt)| (step, *attempt, "was spawned"));
    let mut all = ended.chain(began);
    let (step, attempt, what) = all.find(|(step, attempt, _)| is_unknown(step, *attempt))?;
    let message = format!(
        "lost tail: attempt {attempt} of {step} {what}, and the journal has no record of its start"
    );
    let hint = "run `onward repair`: it offers to adopt what the supervisor's log proves";
    Some(Finding::new(Code::LostTail, message).at_step(step).with_hint(hint))
}

/// The machine was restarted since the run last went on; or since the resume before this one, which
/// may not have come to look.
pub(super) fn was_restarted(run: &Run, connected: &Connected) -> bool {
    connected.boot_id != run.state.boot_id || run.state.undoing.is_some()
}

/// The end of an attempt that does not count any more.
pub(super) fn unsettled<'c>(
    connected: &'c Connected,
    step: &Address,
    entry: &StepState,
) -> Option<&'c Seal> {
    connected.unsettled.iter().find(|seal| seal.is_of(step, entry))
}

/// It ended well, and a restart of the machine may have taken what it made.
pub(super) fn not_on_disk(
    connected: &Connected,
    step: &Address,
    entry: &StepState,
) -> Option<Finding> {
    unsettled(connected, step, entry)?;
    let message =
        format!("{step} ended, and what it made was not on the disk when the machine went down");
    let hint = "it runs again; `durability: full` makes it wait for the disk";
    Some(Finding::new(Code::ArtifactDamaged, message).at_step(step).with_hint(hint))
}

/// An attempt without a known end, while lines of the log cannot be read: one of them may be it.
pub(crate) fn unreadable(
    connected: &Connected,
    step: &Address,
    seen: &InFlight,
) -> Option<Finding> {
    let is_known = seen.facts.sealed || seen.facts.alive || seen.facts.proof;
    let line = connected.unreadable.first().filter(|_| !is_known && seen.facts.spawned)?;
    let message = format!(
        "{step}: line {line} of exits.jsonl cannot be read; it may say that this is finished"
    );
    let accept = Address::from_text(&format!("{}@{step}", Code::SealDamaged.as_str()));
    let hint = format!(
        "look at what it left, then say `onward done {}`, or run it again with \
         `onward resume --accept {}`",
        step.in_commands(),
        accept.in_commands()
    );
    Some(Finding::new(Code::SealDamaged, message).at_step(step).with_hint(hint))
}
