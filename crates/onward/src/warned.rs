//! What the calls of built-in workflows warn of: a step that did its part, and found something that
//! a person should know now.
//!
//! Invariant: only a `call` is heard, and only its field `warning`. What agents say is no warning.

use onward_core::{event::AttemptFinished, run::Run, workflow::model::Kind};

/// What it warns of, where it does.
pub(crate) fn by(run: &Run, finished: &AttemptFinished) -> Option<String> {
    let node = run.graph.node(run.graph.find(&finished.step)?);
    let is_call = matches!(run.defs.step(node.def).kind, Kind::Call { .. });
    let warning = finished.result.as_ref().filter(|_| is_call)?.get("warning")?;
    warning.as_str().map(str::to_owned)
}
