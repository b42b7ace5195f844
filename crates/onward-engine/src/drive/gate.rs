//! A person's answer to a gate: what makes it count.
//!
//! Invariant: an answer counts for what the gate shows at this moment. One that was given for
//! something else is refused, however long ago the gate was opened.

use onward_core::{
    address::Address,
    decide::{Shown, gate_now},
    digest::Digest,
    event::{EndStatus, Event},
    facts::Facts,
    run::Run,
    state::{Phase, RunStatus},
    workflow::model::Kind,
};

use crate::{
    check::needs::find_out,
    world::{Stop, World},
};

/// What a person answered.
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
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error("there is no open gate `{step}`")]
    NotOpen { step: Address, open: Vec<Address> },
    #[error("gate `{step}` asks no more: the run {how}")]
    Over { step: Address, how: &'static str },
    #[error("{by} answered gate `{step}` already: {option}")]
    Answered { step: Address, by: String, option: String },
    #[error("`{option}` is not an option of gate `{step}`")]
    NoSuchOption { step: Address, option: String, options: Vec<String> },
    #[error("what gate `{step}` shows has changed since you looked")]
    Moved { step: Address, now: Digest, opened: Option<Box<Event>> },
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
            Self::Answered { .. } | Self::Over { .. } => "see `onward status`".to_owned(),
            Self::NoSuchOption { options, .. } => format!("options: {}", options.join(", ")),
            Self::Moved { now, .. } => {
                format!("look again with `onward status`, then answer with `--hash {now}`")
            }
        }
    }

    /// The gate as it must be shown now.
    pub(crate) fn reopened(self) -> Option<Event> {
        match self {
            Self::Moved { opened, .. } => opened.map(|event| *event),
            Self::NotOpen { .. }
            | Self::Over { .. }
            | Self::NoSuchOption { .. }
            | Self::Answered { .. } => None,
        }
    }
}

/// The gate as it would be opened now; `None` when it cannot be shown.
pub fn shown<W: World>(world: &mut W, run: &Run, step: &Address) -> Result<Option<Event>, Stop> {
    let mut facts = Facts::default();
    loop {
        match gate_now(run, &facts, step) {
            Shown::Now(event) => return Ok(Some(*event)),
            Shown::Lacks(needs) => {
                find_out(world, facts.by_step.entry(step.clone()).or_default(), needs)?;
            }
            Shown::Fails(_) => return Ok(None),
        }
    }
}

/// The events that record the answer, if it counts.
pub fn decided<W: World>(
    world: &mut W,
    run: &Run,
    answer: Answer,
) -> Result<Result<Vec<Event>, Refused>, Stop> {
    let Answer { step, option, comment, by, hash: seen } = answer;
    if let RunStatus::Ended { status } = run.state.status {
        let how = match status {
            EndStatus::Cancelled => Some("was cancelled"),
            EndStatus::Completed => Some("is over"),
            EndStatus::Failed => None,
        };
        if let Some(how) = how {
            return Ok(Err(Refused::Over { step, how }));
        }
    }
    let entry = run.state.step(&step).filter(|entry| entry.phase == Phase::Waiting);
    let node = run.graph.find(&step);
    let (Some(gate), Some(node)) = (entry.and_then(|entry| entry.gate.as_ref()), node) else {
        let open = run.graph.open_gates().map(|id| run.graph.node(id).address.clone());
        return Ok(Err(Refused::NotOpen { step, open: open.collect() }));
    };
    if !gate.options.contains(&option) {
        let options = gate.options.clone();
        return Ok(Err(Refused::NoSuchOption { step, option, options }));
    }
    let opened = shown(world, run, &step)?;
    let hash = match &opened {
        Some(Event::GateOpened { hash, .. }) => *hash,
        Some(_) | None => gate.hash,
    };
    if seen.is_some_and(|seen| seen != hash) {
        let opened = opened.map(Box::new);
        return Ok(Err(Refused::Moved { step, now: hash, opened }));
    }
    // What was answered is journaled as it was seen.
    let mut events: Vec<Event> = opened.into_iter().filter(|_| hash != gate.hash).collect();
    let stops = match &run.defs.step(run.graph.node(node).def).kind {
        Kind::Gate(declared) => declared.stop.contains(&option),
        Kind::Run { .. }
        | Kind::Agent { .. }
        | Kind::Call { .. }
        | Kind::Group { .. }
        | Kind::Sub { .. } => false,
    };
    events.push(Event::GateDecided { step, by, option, comment, hash, stops });
    Ok(Ok(events))
}
