//! A person's answer to a gate: what makes it count.

use onward_core::{
    address::Address, digest::Digest, event::Event, run::Run, state::Phase, workflow::model::Kind,
};

/// What somebody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub step: Address,
    pub option: String,
    pub comment: Option<String>,
    pub by: String,
    /// What they saw; `None` takes what is shown now.
    pub hash: Option<Digest>,
}

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no open gate `{step}`")]
    NotOpen { step: Address, open: Vec<Address> },
    #[error("`{option}` is not an option of gate `{step}`")]
    NoSuchOption { step: Address, option: String, options: Vec<String> },
    #[error("what gate `{step}` shows has changed since you looked")]
    Moved { step: Address },
}

impl Refused {
    pub fn hint(&self) -> String {
        match self {
            Self::NotOpen { open, .. } if open.is_empty() => {
                "no gate is open; see `onward status`".to_owned()
            }
            Self::NotOpen { open, .. } => {
                let open: Vec<&str> = open.iter().map(Address::as_str).collect();
                format!("open gates: {}", open.join(", "))
            }
            Self::NoSuchOption { options, .. } => format!("options: {}", options.join(", ")),
            Self::Moved { step } => format!("look again with `onward status`, then decide {step}"),
        }
    }
}

/// The event that records the answer, if it counts.
pub fn decided(run: &Run, answer: Answer) -> Result<Event, Refused> {
    let Answer { step, option, comment, by, hash } = answer;
    let entry = run.state.step(&step).filter(|entry| entry.phase == Phase::Waiting);
    let node = run.graph.find(&step);
    let (Some(gate), Some(node)) = (entry.and_then(|entry| entry.gate.as_ref()), node) else {
        let open = run.graph.open_gates().map(|id| run.graph.node(id).address.clone());
        return Err(Refused::NotOpen { step, open: open.collect() });
    };
    if !gate.options.contains(&option) {
        let options = gate.options.clone();
        return Err(Refused::NoSuchOption { step, option, options });
    }
    if hash.is_some_and(|seen| seen != gate.hash) {
        return Err(Refused::Moved { step });
    }
    let stops = match &run.defs.step(run.graph.node(node).def).kind {
        Kind::Gate(declared) => declared.stop.contains(&option),
        Kind::Run { .. }
        | Kind::Agent { .. }
        | Kind::Call { .. }
        | Kind::Group { .. }
        | Kind::Sub { .. } => false,
    };
    let hash = gate.hash;
    Ok(Event::GateDecided { step, by, option, comment, hash, stops })
}
