//! What scripts are told besides plans and states: outcomes, errors, checks, events.
//!
//! Invariant: a shape that is printed with a `schema` has one here or in its command's file, and
//! `onward schema` publishes it. Shapes only grow.

use onward_core::plan::Status;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The last line of `run --json`, `resume --json` and `attach --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    pub(crate) schema: String,
    pub(crate) run: RunRef,
    pub(crate) status: Status,
    /// When a limit is lifted, for a run that is parked.
    pub(crate) until: Option<String>,
    pub(crate) exit: u8,
    /// What a person must do first, each thing in one line.
    pub(crate) needs: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunRef {
    pub(crate) id: String,
    pub(crate) dir: String,
}

/// Every error with `--json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Failure {
    pub(crate) schema: String,
    /// A word for scripts.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// `onward check --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    pub(crate) schema: String,
    pub(crate) file: String,
    /// It can be run.
    pub(crate) ok: bool,
    pub(crate) problems: Vec<CheckProblem>,
    /// Steps that are known before it runs; groups are not counted, the items of a list that is
    /// written out are, and so is the first turn of a loop.
    pub(crate) steps: usize,
    /// Lists and loops may open others.
    pub(crate) more: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mermaid: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CheckProblem {
    /// `error` or `warning`.
    pub(crate) severity: String,
    pub(crate) message: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) hint: Option<String>,
}

/// `help --json`, `man --json` and `completions --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Text {
    pub(crate) schema: String,
    pub(crate) text: String,
}

impl Text {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        Self { schema: "onward.text/1".to_owned(), text }
    }
}

/// `config path --json`, `config edit --json` and `man --dir --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Place {
    pub(crate) schema: String,
    pub(crate) path: String,
}

/// `init --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Written {
    pub(crate) schema: String,
    pub(crate) file: String,
    /// Every file that was written, that one among them.
    pub(crate) wrote: Vec<String>,
}

/// `decide --json`, `approve --json` and `reject --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Decided {
    pub(crate) schema: String,
    pub(crate) run: String,
    /// The gate.
    pub(crate) step: String,
    pub(crate) option: String,
    /// `journaled`, or `taken by the driver`.
    pub(crate) how: String,
}

/// `pause --json` and `cancel --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Asked {
    pub(crate) schema: String,
    pub(crate) run: String,
    /// What became of the request, in words.
    pub(crate) how: String,
}

/// `done --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Done {
    pub(crate) schema: String,
    pub(crate) run: String,
    pub(crate) step: String,
}

/// `demo --json`; what else it has depends on the demo.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Demo {
    pub(crate) schema: String,
    pub(crate) dir: String,
    pub(crate) proved: bool,
    /// What speaks against it.
    pub(crate) against: Vec<String>,
    pub(crate) exit: u8,
    #[serde(flatten)]
    pub(crate) facts: serde_json::Map<String, Value>,
}

/// `version --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Program {
    pub(crate) schema: String,
    pub(crate) version: String,
    pub(crate) journal_format: u32,
    pub(crate) commit: Option<String>,
    pub(crate) features: Vec<String>,
}

impl Program {
    pub(crate) fn this() -> Self {
        let commit = env!("ONWARD_COMMIT");
        let features: &[&str] = if cfg!(feature = "watch") { &["watch"] } else { &[] };
        Self {
            schema: "onward.version/1".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            journal_format: onward_core::journal::FORMAT,
            commit: (!commit.is_empty()).then(|| commit.to_owned()),
            features: features.iter().map(|it| (*it).to_owned()).collect(),
        }
    }
}

/// A record of the journal; what else it has depends on its kind, see docs/journal.md.
pub(crate) fn event_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": "A record of the journal, as `run --json`, `resume --json` and \
            `attach --json` print it, one a line. `log --json` prints it as it is kept, without \
            `schema`. The other fields depend on `kind`; see docs/journal.md.",
        "type": "object",
        "required": ["seq", "at", "kind"],
        "properties": {
            "schema": {"const": "onward.event/1"},
            "seq": {"type": "integer", "minimum": 0},
            "at": {"type": "string", "description": "RFC 3339, UTC"},
            "epoch": {"type": "integer", "minimum": 0},
            "crc": {"type": "string"},
            "step": {"type": "string"},
            "attempt": {"type": "integer", "minimum": 0},
            "kind": {"enum": [
                "run.opened", "run.adopted", "run.resumed", "run.paused", "run.ended",
                "run.archived", "group.expanded", "loop.turned", "loop.ended", "step.skipped",
                "step.invalidated", "attempt.started", "attempt.session", "attempt.spent",
                "attempt.finished", "attempt.lost", "attempt.adopted", "attempt.verified",
                "gate.opened", "gate.decided", "effect.intended", "effect.settled",
                "native.exported", "limit.hit", "budget.hit", "workflow.changed",
                "journal.repaired", "note",
            ]},
        },
    })
}
