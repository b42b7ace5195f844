//! A workflow as declared: parsed, checked, defaults filled in, nothing evaluated.
//!
//! Invariant: a [`Workflow`] needs no further validation. Ids are unique in their list,
//! needs name siblings and have no cycle, templates compile and name only what they can see.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{Deref, DerefMut},
};

use indexmap::IndexMap;
use serde_json::Value;

use crate::{
    evidence::{Cause, Usd},
    id::StepId,
    workflow::permissions::Permissions,
};

/// One workflow file with everything it includes.
#[derive(Clone, Debug, PartialEq)]
pub struct Workflow {
    pub name: String,
    pub inputs: IndexMap<String, Input>,
    pub agents: BTreeMap<String, Agent>,
    pub limits: Limits,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub kind: InputKind,
    /// None = required.
    pub default: Option<Value>,
    pub description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    String,
    Number,
    Integer,
    Boolean,
    List,
    Object,
}

/// An agent program and how it is set up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    /// The adapter: `claude`, `codex`, …, or a name from the configuration.
    pub adapter: String,
    pub model: Option<String>,
    /// Path of the system prompt, and its text, which is pinned with the run.
    pub system: Option<PinnedFile>,
    /// For steps that do not say themselves.
    pub permissions: Option<Permissions>,
    pub allow: Vec<String>,
}

/// A file the workflow names and that is copied into the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub parallel: u32,
    pub usd: Option<Usd>,
    pub resumes: Option<u32>,
}

/// Attempts at a time, when the file does not say.
pub const PARALLEL_DEFAULT: u32 = 4;

/// What a power cut may take of a step that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: its outputs are on the disk first.
    Full,
    /// Outputs that the system has not brought to the disk by itself.
    Process,
}

/// One step. Fields that its kind cannot have are at their defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub id: StepId,
    pub at: Place,
    pub description: Option<String>,
    pub kind: Kind,
    /// Indexes into the list this step stands in, in order.
    pub needs: Vec<usize>,
    pub many: Many,
    pub when: Option<Template>,
    pub reads: Vec<Template>,
    pub writes: Vec<Template>,
    pub check: Option<Template>,
    /// The JSON Schema its result must satisfy; a step that has one must leave a result.
    pub result: Option<PinnedFile>,
    pub worktree: Option<Worktree>,
    /// The directory that its attempts work in, below the project.
    pub dir: Option<Template>,
    /// `effect: outside`
    pub effect_outside: bool,
    pub probe: Option<Probe>,
    pub retry: Retry,
    pub on_failure: OnFailure,
    pub timeout: Option<Span>,
    pub idle_ms: Option<u64>,
    /// May change the tree beyond `writes`.
    pub edits: bool,
    pub durability: Durability,
    /// Keeps what a failed attempt left, instead of reverting it before the next.
    pub keep: bool,
    /// What its agent may do; `None` = as the agent's entry says, or the least that fits the step.
    pub permissions: Option<Permissions>,
    /// Tools that its agent may use besides.
    pub allow: Vec<String>,
    pub env: BTreeMap<String, Template>,
}

impl Step {
    /// Runs or asks by itself, instead of holding other steps.
    pub fn is_leaf(&self) -> bool {
        match self.kind {
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => true,
            Kind::Group { .. } | Kind::Sub { .. } => false,
        }
    }

    /// Every template of the step itself, those of its children left out.
    pub fn templates(&self) -> Vec<&Template> {
        let mut all: Vec<&Template> = Vec::new();
        all.extend(&self.when);
        all.extend(&self.reads);
        all.extend(&self.writes);
        all.extend(&self.check);
        all.extend(self.env.values());
        all.extend(self.probe.as_ref().map(|probe| &probe.command));
        all.extend(&self.dir);
        match &self.timeout {
            Some(Span::Expression(timeout)) => all.push(timeout),
            Some(Span::Fixed(_)) | None => {}
        }
        if let Some(Worktree::Named(name)) = &self.worktree {
            all.push(name);
        }
        match &self.many {
            Many::Once => {}
            Many::Each(each) => match &each.items {
                Items::List(_) => {}
                Items::Expression(items) => all.push(items),
            },
            Many::Repeat(repeat) => {
                all.extend(&repeat.until);
                match &repeat.max {
                    Count::Fixed(_) => {}
                    Count::Expression(max) => all.push(max),
                }
            }
        }
        match &self.kind {
            Kind::Run { command } => all.push(command),
            Kind::Agent { agent: _, prompt } => all.push(prompt),
            Kind::Gate(gate) => {
                all.push(&gate.prompt);
                all.extend(&gate.shows);
            }
            Kind::Call { with, .. } | Kind::Sub { with, .. } => all.extend(with.values()),
            Kind::Group { steps: _ } => {}
        }
        all
    }
}

/// Exactly one per step.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Run {
        command: Template,
    },
    Agent {
        agent: String,
        prompt: Template,
    },
    Gate(Gate),
    Call {
        name: String,
        with: BTreeMap<String, Template>,
    },
    Group {
        steps: Vec<Step>,
    },
    /// Another file, expanded in place; it sees its own inputs and steps only.
    Sub {
        path: String,
        with: BTreeMap<String, Template>,
        workflow: Box<Workflow>,
    },
}

impl Kind {
    /// The key that makes a step one of this kind.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Run { .. } => "run",
            Self::Agent { .. } => "agent",
            Self::Gate(_) => "gate",
            Self::Call { .. } => "call",
            Self::Group { .. } => "steps",
            Self::Sub { .. } => "workflow",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub prompt: Template,
    /// Paths of files a person should look at; globs.
    pub shows: Vec<Template>,
    pub options: Vec<String>,
    /// Options that end the run as cancelled.
    pub stop: Vec<String>,
}

/// How often a step stands in the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Many {
    Once,
    Each(Each),
    Repeat(Repeat),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Each {
    pub items: Items,
    /// The name an item has in templates.
    pub name: String,
    /// The field that identifies an object item.
    pub key: Option<String>,
    /// The field that lists the keys an item comes after.
    pub after: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Items {
    List(Vec<Value>),
    /// An expression that gives a list.
    Expression(Template),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    pub max: Count,
    pub until: Option<Template>,
    /// What when `max` turns are over and `until` never held; `true` = go on.
    pub continue_on_max: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Count {
    Fixed(u32),
    /// An expression that gives a whole number, evaluated once before the first turn.
    Expression(Template),
}

/// The step's own git worktree.
#[derive(Clone, Debug, PartialEq)]
pub enum Worktree {
    /// Named after the instance.
    Own,
    Named(Template),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub command: Template,
    /// The exit code that says it did not happen.
    pub absent: i32,
}

/// What becomes of the run when a step has failed and no try is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The run fails.
    #[default]
    Fail,
    /// The step stays failed, and its dependents go on as after a skipped one.
    Continue,
}

/// A length of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// In milliseconds.
    Fixed(u64),
    /// Text with holes that gives one, such as `30m`.
    Expression(Template),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// Further tries after the first.
    pub max: u32,
    pub backoff_ms: u64,
    pub on: BTreeSet<Cause>,
}

/// Text with holes, or an expression. Compiles: the checker saw to it. One word wide: a step has
/// room for many, and most have one or two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Box<Text>);

/// What a template is made of.
#[derive(Clone, Debug, Default, Eq)]
pub struct Text {
    pub source: String,
    pub at: Place,
    pub refs: Refs,
}

/// What it says, not where it stands.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.refs == other.refs
    }
}

impl Deref for Template {
    type Target = Text;

    fn deref(&self) -> &Text {
        &self.0
    }
}

impl DerefMut for Template {
    fn deref_mut(&mut self) -> &mut Text {
        &mut self.0
    }
}

impl Template {
    /// One of which it is not known yet what it looks at.
    pub fn new(source: String, at: Place) -> Self {
        Self::from(Text { source, at, refs: Refs::default() })
    }
    /// Nothing in it is evaluated.
    pub fn is_literal(&self) -> bool {
        !self.source.contains("{{") && !self.source.contains("{%") && !self.source.contains("{#")
    }
}

impl From<Text> for Template {
    fn from(text: Text) -> Self {
        Self(Box::new(text))
    }
}

/// What a template may look at, found without evaluating it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// Ids under `steps.`, each visible from where the template stands.
    pub steps: BTreeSet<String>,
    /// Those of them whose `.stdout` is looked at.
    pub stdout: BTreeSet<String>,
    /// Other top-level names: `inputs`, `run`, loop indexes, item names.
    pub names: BTreeSet<String>,
}

/// Where something stands in a file, counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which file of the workflow: 0 is the one named by the person.
    pub file: u32,
    pub line: u32,
    pub column: u32,
}
