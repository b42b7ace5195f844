//! A person enters somewhere else than at the recovery point.
//!
//! Invariant: where, is written into the other system's log before anything else is; what its files
//! prove from then on is what counts, so that no second way to place a run is needed.

use onward_core::{
    finding::{Code, Finding, Severity},
    plan::Plan,
    policy::EnterAt,
    run::Run,
    time::Timestamp,
};
use onward_dialects::{Dialect, Entering, Entry, Files, NoEntry};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub(super) place: String,
    pub(super) at: Timestamp,
    /// What has to be written; nothing when that is where it goes on anyway.
    pub(crate) entry: Option<Entry>,
    /// How it was placed without it.
    detected: String,
    refused: Option<Finding>,
}

/// How `run.resumed` says that a person entered somewhere.
pub(super) const FROM: &str = "from ";

impl Elsewhere {
    pub(crate) fn find(
        dialect: &dyn Dialect,
        files: &Files,
        plan: &Plan,
        from: &EnterAt,
        at: Timestamp,
    ) -> Result<Self, NoEntry> {
        let detected = plan.recovery_point.summary.clone();
        let entering = Entering { place: &from.step, force: from.force, now: at };
        let (entry, refused) = match dialect.enter(files, &entering) {
            Ok(entry) => (entry, None),
            Err(NoEntry::Ahead(why)) => {
                let mut finding = Finding::new(Code::PhaseAheadOfEvidence, why);
                finding.severity = Severity::Blocking;
                (None, Some(finding.with_hint("leave `--from` out")))
            }
            Err(unknown @ NoEntry::Unknown(_)) => return Err(unknown),
        };
        Ok(Self { place: from.step.clone(), at, entry, detected, refused })
    }

    /// The plan with the entry, and the age without it.
    pub(crate) fn seen_from(before: Plan, mut with_entry: Plan) -> Plan {
        with_entry.run = before.run;
        // That somebody enters at this moment is no event from the future.
        with_entry.findings.retain(|it| it.code != Code::ClockInFuture.as_str());
        with_entry
    }

    /// What entering there means; `redone` steps of ours are done already.
    pub(crate) fn told(&self, redone: usize) -> Option<Finding> {
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        self.entry.as_ref()?;
        let place = &self.place;
        let done = if redone > 0 { format!(" ({redone} done steps)") } else { String::new() };
        let message = format!("entering at {place} does again what was done from there on{done}");
        let finding = Finding::new(Code::EntersEarlier, message);
        Some(finding.with_hint(format!("without `--from`: {}", self.detected)))
    }
}

/// A person's wish that a crash kept from the files: nothing was started since.
pub(super) fn unkept_wish(run: &Run) -> Option<EnterAt> {
    let resumed = run.state.resumed.as_ref().filter(|_| !run.state.started_since_resume)?;
    let place = resumed.accepted.iter().find_map(|it| it.strip_prefix(FROM))?;
    Some(EnterAt { step: place.to_owned(), force: true })
}
