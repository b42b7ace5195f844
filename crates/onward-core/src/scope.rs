//! What a template can see from where it stands.
//!
//! Names are looked up from the nearest scope outwards and never across the border of a
//! sub-workflow. Only what a template refers to is built, so a run of ten thousand steps costs a
//! template nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    address::encode_key,
    facts::StepFacts,
    graph::{NodeId, Role},
    run::Run,
    state::Phase,
    workflow::{
        model::{Kind, Many, Refs, Step, Template},
        shell::Script,
        template::{self, Context, Quoting, RenderError},
    },
    worktree::worktree_of,
};

/// Renders templates as seen from one node.
pub(crate) struct Scope<'a> {
    pub(crate) run: &'a Run,
    pub(crate) node: NodeId,
    pub(crate) facts: &'a StepFacts,
}

impl Scope<'_> {
    pub(crate) fn text(&self, it: &Template, quoting: Quoting) -> Result<String, RenderError> {
        if it.is_literal() {
            return Ok(it.source.clone());
        }
        template::render(it, &self.context(&it.refs, None)?, &self.facts.texts, quoting)
    }

    /// A command as it is run; `first` is the number of its first variable.
    pub(crate) fn script(&self, it: &Template, first: usize) -> Result<Script, RenderError> {
        if it.is_literal() {
            return Ok(Script { text: it.source.clone(), values: Vec::new() });
        }
        template::script(it, &self.context(&it.refs, None)?, &self.facts.texts, first)
    }

    pub(crate) fn texts(&self, all: &[Template]) -> Result<Vec<String>, RenderError> {
        all.iter().map(|it| self.text(it, Quoting::Plain)).collect()
    }

    pub(crate) fn holds(&self, it: &Template) -> Result<bool, RenderError> {
        template::condition(it, &self.context(&it.refs, None)?, &self.facts.texts)
    }

    /// A condition about the turn just ended: its steps come first.
    pub(crate) fn holds_after(&self, it: &Template, turn: NodeId) -> Result<bool, RenderError> {
        template::condition(it, &self.context(&it.refs, Some(turn))?, &self.facts.texts)
    }

    /// It looks at nothing that a step may still change: what it says now, it says later, unless it
    /// reads a file.
    pub(crate) fn is_settled(&self, it: &Template) -> bool {
        let takes_inputs = it.refs.names.contains("inputs");
        it.refs.steps.is_empty() && !(takes_inputs && self.enclosing_sub().is_some())
    }

    pub(crate) fn value(&self, it: &Template) -> Result<Value, RenderError> {
        template::value(it, &self.context(&it.refs, None)?, &self.facts.texts)
    }

    fn context(&self, refs: &Refs, turn: Option<NodeId>) -> Result<Context, RenderError> {
        let mut names = BTreeMap::new();
        if refs.names.contains("inputs") {
            names.insert("inputs".to_owned(), self.inputs()?);
        }
        if refs.names.contains("run") {
            let id = self.run.state.opened.as_ref().map(|opened| opened.run.as_str());
            names.insert("run".to_owned(), json!({ "id": id }));
        }
        self.add_indexes(turn, &mut names);
        let steps: Map<String, Value> = refs
            .steps
            .iter()
            .filter_map(|id| Some((id.clone(), step_value(self.run, self.find(id, turn)?))))
            .collect();
        names.insert("steps".to_owned(), Value::Object(steps));
        Ok(Context { names })
    }

    /// The inputs of the workflow the node was declared in.
    fn inputs(&self) -> Result<Value, RenderError> {
        let Some((sub, step, with)) = self.enclosing_sub() else {
            let opened = self.run.state.opened.as_ref();
            let mut inputs = opened.map(|opened| opened.inputs.clone()).unwrap_or_default();
            // An input that the workflow got after the run had begun is at its default.
            for (name, declared) in &self.run.defs.root_workflow().inputs {
                if let Some(default) =
                    declared.default.as_ref().filter(|_| !inputs.contains_key(name))
                {
                    inputs.insert(name.clone(), default.clone());
                }
            }
            return Ok(Value::Object(inputs.into_iter().collect()));
        };
        let outer = Scope { run: self.run, node: sub, facts: self.facts };
        let mut inputs = Map::new();
        for (name, input) in &self.run.defs.workflow_inside(step).inputs {
            let given = with.get(name).map(|it| outer.value(it)).transpose()?;
            inputs.extend(given.or_else(|| input.default.clone()).map(|it| (name.clone(), it)));
        }
        Ok(Value::Object(inputs))
    }

    /// The nearest sub-workflow around the node, the node itself left out.
    fn enclosing_sub(&self) -> Option<(NodeId, crate::graph::DefId, &BTreeMap<String, Template>)> {
        let mut inner = self.run.graph.node(self.node);
        while let Some(id) = inner.parent {
            let node = self.run.graph.node(id);
            if node.role != Role::Root
                && is_scope(node.role)
                && let Kind::Sub { with, .. } = &self.run.defs.step(node.def).kind
            {
                return Some((id, node.def, with));
            }
            inner = node;
        }
        None
    }

    /// Loop indexes and items of every scope around the node, the nearest winning.
    fn add_indexes(&self, turn: Option<NodeId>, names: &mut BTreeMap<String, Value>) {
        let mut scope = Some(turn.unwrap_or(self.node));
        while let Some(id) = scope {
            let node = self.run.graph.node(id);
            if node.role == Role::Root {
                return;
            }
            let step = self.run.defs.step(node.def);
            if let Some((name, value)) = self.index(step, id)
                && !names.contains_key(&name)
            {
                names.insert(name, value);
            }
            // The inside of a sub-workflow does not see the outside.
            let inside = id != self.node && is_scope(node.role);
            if inside && matches!(step.kind, Kind::Sub { .. }) {
                return;
            }
            scope = node.parent;
        }
    }

    fn index(&self, step: &Step, id: NodeId) -> Option<(String, Value)> {
        let node = self.run.graph.node(id);
        let (group, key) = node.address.group_and_key()?;
        match &step.many {
            Many::Once => None,
            Many::Repeat(_) => Some((step.id.to_string(), key.parse::<u32>().ok()?.into())),
            Many::Each(each) => {
                let items = &self.run.state.groups.get(&group)?.items;
                // Most keys are written as they are, and need not be written again to be compared.
                let is_encoded = key.contains('%');
                let is_it = |name: &str| {
                    if is_encoded { encode_key(name) == key } else { name == key }
                };
                // Items and their nodes stand in one order, unless the list changed since.
                let nodes = node.parent.map(|id| &self.run.graph.node(id).children);
                let at = nodes.and_then(|nodes| nodes.binary_search(&id).ok());
                let same = at.and_then(|at| items.get(at)).filter(|item| is_it(&item.key));
                let item = same.or_else(|| items.iter().find(|item| is_it(&item.key)))?;
                Some((each.name.clone(), item.value.clone()))
            }
        }
    }

    /// The instance that `steps.<id>` means here.
    fn find(&self, id: &str, turn: Option<NodeId>) -> Option<NodeId> {
        let graph = &self.run.graph;
        if let Some(turn) = turn {
            let node = graph.node(turn);
            if node.role == Role::Leaf && self.run.defs.id(node.def) == id {
                return Some(turn);
            }
            if let Some(found) = self.child_of(turn, id) {
                return Some(found);
            }
        }
        let mut inner = graph.node(self.node);
        while let Some(parent) = inner.parent {
            if let Some(found) = self.child_of(parent, id) {
                return Some(found);
            }
            let node = graph.node(parent);
            if node.role != Role::Root
                && is_scope(node.role)
                && matches!(self.run.defs.step(node.def).kind, Kind::Sub { .. })
            {
                return None;
            }
            inner = node;
        }
        None
    }

    fn child_of(&self, scope: NodeId, id: &str) -> Option<NodeId> {
        let node = self.run.graph.node(scope);
        let id = id.parse().ok()?;
        is_scope(node.role).then(|| self.run.graph.find(&node.address.child(&id))).flatten()
    }
}

/// Whether steps are looked up among the node's children.
fn is_scope(role: Role) -> bool {
    match role {
        Role::Root | Role::Group | Role::Item | Role::Turn => true,
        Role::Leaf | Role::Each | Role::Loop => false,
    }
}

/// What `steps.<id>` is: a leaf's status, result, output and files; a group's children; an `each`'s
/// items; a loop's turns.
fn step_value(run: &Run, id: NodeId) -> Value {
    let node = run.graph.node(id);
    let entry = run.state.step(&node.address);
    let phase = entry.map_or(Phase::Pending, |entry| entry.phase);
    let mut value = Map::new();
    match node.role {
        Role::Leaf => {
            if let Some(entry) = entry.filter(|entry| entry.phase == Phase::Done) {
                let result = entry.result.as_deref().cloned();
                value.extend(result.map(|it| ("result".to_owned(), it)));
                let stdout = entry.stdout.as_deref().unwrap_or("");
                value.insert("stdout".to_owned(), stdout.into());
                let writes = entry.evidence.files.iter().map(|file| file.path.clone());
                value.insert("writes".to_owned(), writes.collect::<Vec<_>>().into());
            }
            let failed = entry.filter(|entry| entry.phase == Phase::Tolerated);
            if let Some(failure) = failed.and_then(|entry| entry.failure.as_ref()) {
                value.insert("cause".to_owned(), failure.0.as_str().into());
            }
        }
        Role::Root | Role::Group | Role::Item | Role::Turn => {
            for child in &node.children {
                let id = run.defs.id(run.graph.node(*child).def).to_owned();
                value.insert(id, step_value(run, *child));
            }
        }
        Role::Each => {
            let items = run.state.groups.get(&node.address).map_or(&[][..], |it| &it.items);
            let keys = items.iter().map(|item| item.key.clone());
            let values = node.children.iter().map(|child| step_value(run, *child));
            value.insert("items".to_owned(), Value::Object(keys.zip(values).collect()));
        }
        Role::Loop => {
            let turns: Vec<Value> =
                node.children.iter().map(|child| step_value(run, *child)).collect();
            value.extend(turns.last().cloned().map(|it| ("last".to_owned(), it)));
            value.insert("turns".to_owned(), turns.into());
        }
    }
    // A name that cannot be rendered yet is not there yet.
    if node.role != Role::Root
        && let Ok(Some(place)) = worktree_of(run, id)
    {
        value.insert("branch".to_owned(), place.branch.into());
        value.insert("path".to_owned(), place.path.into());
    }
    let status = match node.role {
        Role::Leaf => phase.as_str(),
        Role::Root | Role::Group | Role::Each | Role::Loop | Role::Item | Role::Turn => {
            if phase == Phase::Skipped {
                phase.as_str()
            } else if node.is_settled() {
                "done"
            } else {
                "pending"
            }
        }
    };
    value.insert("status".to_owned(), status.into());
    Value::Object(value)
}
