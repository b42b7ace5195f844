//! What a person is shown before a repair is adopted: what was lost, what is put in its place and
//! from where, and what that means for each step.

use std::{collections::BTreeMap, path::Path};

use onward_core::{
    address::Address,
    event::{Certainty, Event, Record},
    graph::Role,
    run::Run,
    state::Phase,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{read::Readable, rebuild::Piece};
use crate::care::RunRef;

/// `onward repair --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Report {
    pub schema: String,
    pub run: RunRef,
    /// Something was lost or damaged.
    pub needed: bool,
    /// There was no journal at all.
    pub lost: bool,
    pub damage: Vec<DamagedLine>,
    /// Records before the damage; they stay as they are.
    pub kept: u64,
    /// Where `run.opened` comes from, when it was lost too.
    pub opened_from: Option<String>,
    pub rebuilt: Vec<RebuiltEvent>,
    /// Readable records that could not be taken.
    pub dropped: Vec<Dropped>,
    pub steps: Vec<StepFate>,
    pub adopted: bool,
    /// The name that the damaged journal has now.
    pub kept_as: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DamagedLine {
    /// Counted from 1, as editors do.
    pub line: u64,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RebuiltEvent {
    pub kind: String,
    pub step: Option<String>,
    pub attempt: Option<u32>,
    pub source: String,
    /// `recorded` or `inferred`.
    pub certainty: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Dropped {
    pub seq: u64,
    pub kind: String,
    pub why: String,
}

/// What the repair makes of a step that had begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepFate {
    pub step: String,
    pub fate: Fate,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It counts as done.
    Kept,
    /// It counts as done if what it needs comes out as it was.
    KeptIfSame,
    /// The next resume looks at it and decides.
    LookedAt,
    /// A person is asked again.
    Asked,
    /// It runs again.
    Again,
}

impl Fate {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "keep",
            Self::KeptIfSame => "keep if same",
            Self::LookedAt => "look",
            Self::Asked => "ask",
            Self::Again => "rerun",
        }
    }
}

impl Report {
    pub(super) fn new(
        run_dir: &Path,
        found: &Readable,
        pieces: &[Piece],
        dropped: &[(Record, String)],
        run: &Run,
    ) -> Self {
        let damage = found.damage.iter();
        let damage = damage.map(|it| DamagedLine { line: it.line, why: it.why.clone() });
        let rebuilt = pieces.iter().filter(|piece| !piece.imagined).map(rebuilt);
        let dropped = dropped.iter().map(|(record, why)| Dropped {
            seq: record.seq,
            kind: record.event.kind().to_owned(),
            why: why.clone(),
        });
        Self {
            schema: "onward.repair/1".to_owned(),
            run: RunRef::of(run_dir),
            needed: false,
            lost: false,
            damage: damage.collect(),
            kept: found.prefix.len() as u64,
            opened_from: None,
            rebuilt: rebuilt.collect(),
            dropped: dropped.collect(),
            steps: steps(pieces, run),
            adopted: false,
            kept_as: None,
        }
    }
}

fn rebuilt(piece: &Piece) -> RebuiltEvent {
    let about = serde_json::to_value(&piece.event).unwrap_or_default();
    let attempt = about["attempt"].as_u64().and_then(|it| u32::try_from(it).ok());
    RebuiltEvent {
        kind: piece.event.kind().to_owned(),
        step: about["step"].as_str().map(str::to_owned),
        attempt,
        source: piece.source.as_str().to_owned(),
        certainty: word(piece.source.certainty()).to_owned(),
        why: piece.why.clone(),
    }
}

fn word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Recorded => "recorded",
        Certainty::Inferred => "inferred",
    }
}

fn steps(pieces: &[Piece], run: &Run) -> Vec<StepFate> {
    let mut last: BTreeMap<Address, String> = BTreeMap::new();
    for piece in pieces {
        let step = serde_json::to_value(&piece.event).ok();
        let step = step.as_ref().and_then(|it| it["step"].as_str());
        if let Some(step) = step.filter(|_| !matches!(piece.event, Event::Note { .. })) {
            let certainty = word(piece.source.certainty());
            let told = format!("{} ({certainty} by {})", piece.why, piece.source.as_str());
            last.insert(Address::from_text(step), told);
        }
    }
    let mut fates = Vec::new();
    for id in run.graph.in_order() {
        let node = run.graph.node(id);
        if node.role != Role::Leaf {
            continue;
        }
        let entry = run.state.step(&node.address);
        let phase = entry.map_or(Phase::Pending, |entry| entry.phase);
        let began = entry.is_some_and(|entry| entry.attempts > 0);
        let supposed = last.contains_key(&node.address);
        let fate = match phase {
            Phase::Done | Phase::Tolerated | Phase::Skipped if node.is_settled() => Fate::Kept,
            Phase::Done | Phase::Tolerated | Phase::Skipped => Fate::KeptIfSame,
            Phase::Running => Fate::LookedAt,
            Phase::Waiting => Fate::Asked,
            Phase::Failed | Phase::Lost | Phase::Stale => Fate::Again,
            Phase::Pending if began => Fate::Again,
            Phase::Pending if supposed => Fate::Asked,
            Phase::Pending => continue,
        };
        let why = last.remove(&node.address).unwrap_or_else(|| "the journal says so".to_owned());
        fates.push(StepFate { step: node.address.to_string(), fate, why });
    }
    fates
}
