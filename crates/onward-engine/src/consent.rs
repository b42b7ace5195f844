//! Somebody who can be asked before a run goes on.

use onward_core::{finding::Finding, plan::Plan, policy::Choices};

/// Asked under the run's lock, with the very plan that would be carried out.
pub trait Consent {
    /// `standing` is what the policy would not go on over; it may be nothing.
    fn answer(&mut self, plan: &Plan, standing: &[Finding]) -> Reply;
}

/// What the person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Go on as shown; what stands is accepted, where it can be.
    Go,
    /// Show what it would be with these choices instead.
    Instead(Choices),
    /// Leave everything as it is.
    Leave,
}
