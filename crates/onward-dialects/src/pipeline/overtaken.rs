//! Work that another program completed after a run of ours had accepted the execution.
//!
//! Invariant: a yes at P8 counts for the files that it showed. With others the question is another.

use onward_core::{
    address::Address,
    finding::{Code as Known, Finding},
    told::{Journaled, Overtaken},
};

use super::{Code, told::Pipeline};
use crate::rules::pipeline as rules;

pub(super) fn overtaken(told: &Pipeline, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
    let is_done = |step: &str| matches!(known(&Address::from_text(step)), Journaled::Done(_));
    let accept = Address::from_text("accept");
    let Journaled::Done(accepted) = known(&accept) else { return Vec::new() };
    let then = accepted.get("files").and_then(|it| it.as_str()).unwrap_or_default();
    if told.code != Code::Deliver || is_done("P8/commit") || then == rules::delivered(told) {
        return Vec::new();
    }
    let message = "what would be delivered are other files than those of the accepted execution";
    let finding = if is_done("P8/confirm") {
        let finding = Finding::new(Known::ApprovalOutdated, message);
        finding.at_step(&Address::from_text("P8/confirm")).with_hint("the gate asks again")
    } else {
        Finding::new(Known::ArtifactChanged, message).with_hint("the question names them all")
    };
    let says = "the execution has other files since".to_owned();
    vec![Overtaken { steps: vec![accept], says, finding }]
}
