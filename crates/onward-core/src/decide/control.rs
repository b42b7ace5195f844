//! Decisions that start no process: groups, loops, gates, and done steps to compare.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Command, Decider, Hold};
use crate::{
    address::Address,
    digest::Digest,
    event::{Event, Item, LoopEnd},
    graph::{NodeId, Role},
    key::KeyParts,
    scope::Scope,
    state::{LoopState, Phase},
    workflow::{
        model::{Count, Each, Gate, Items, Kind, Many, Repeat, Step},
        pattern::understood,
        template::Quoting,
    },
};

impl Decider<'_> {
    pub(super) fn control(&self, id: NodeId) -> Result<Vec<Command>, Hold> {
        let node = self.run.graph.node(id);
        let step = self.run.defs.step(node.def);
        let phase = self.run.state.phase(&node.address);
        if phase.is_settled() {
            return Ok(vec![Command::Record(self.invalidation(id))]);
        }
        if phase == Phase::Failed {
            return Ok(Vec::new());
        }
        match node.role {
            Role::Loop => match &step.many {
                Many::Repeat(repeat) => self.turn(id, step, repeat),
                Many::Once | Many::Each(_) => self.expand(id, step),
            },
            Role::Leaf => match &step.kind {
                Kind::Gate(gate) => self.gate(id, step, gate),
                Kind::Run { .. }
                | Kind::Agent { .. }
                | Kind::Call { .. }
                | Kind::Group { .. }
                | Kind::Sub { .. } => self.expand(id, step),
            },
            Role::Root | Role::Group | Role::Each | Role::Item | Role::Turn => {
                self.expand(id, step)
            }
        }
    }

    /// A done or skipped step whose needs are not what they were.
    pub(super) fn invalidation(&self, id: NodeId) -> Event {
        let graph = &self.run.graph;
        let step = graph.node(id).address.clone();
        let key = self.run.state.step(&step).and_then(|entry| entry.key.as_ref());
        let needs = key.map(|key| key.get().needs).unwrap_or_default();
        let was = KeyParts { needs, ..KeyParts::default() };
        let needs = graph.need_digests(id, &self.run.defs);
        let causes = was.differences(&KeyParts { needs, ..KeyParts::default() });
        Event::StepInvalidated { step, causes }
    }

    fn scope(&self, id: NodeId) -> Scope<'_> {
        let facts = self.facts.of(&self.run.graph.node(id).address);
        Scope { run: self.run, node: id, facts }
    }

    /// `Some` with the event that skips the step, when its `when` does not hold.
    pub(super) fn skipped(&self, id: NodeId, step: &Step) -> Result<Option<Event>, Hold> {
        let Some(when) = &step.when else { return Ok(None) };
        if self.scope(id).holds(when)? {
            return Ok(None);
        }
        let step = self.run.graph.node(id).address.clone();
        let reason = format!("`when` does not hold: {}", when.source);
        let needs = self.run.graph.need_digests(id, &self.run.defs);
        let texts = self.facts.of(&step).texts.iter();
        let read = texts.filter_map(|(path, text)| Some((path.clone(), text.as_ref()?)));
        let reads = read.map(|(path, text)| (path, Digest::of(text.as_bytes()))).collect();
        Ok(Some(Event::StepSkipped { step, reason, needs, reads }))
    }

    fn expand(&self, id: NodeId, step: &Step) -> Result<Vec<Command>, Hold> {
        if let Some(skipped) = self.skipped(id, step)? {
            return Ok(vec![Command::Record(skipped)]);
        }
        let items = match &step.many {
            Many::Once | Many::Repeat(_) => Vec::new(),
            Many::Each(each) => self.items(id, each)?,
        };
        let address = self.run.graph.node(id).address.clone();
        let needs = self.run.graph.need_digests(id, &self.run.defs);
        let gone = self.vanished(&address, &items);
        let mut commands: Vec<Command> = gone.into_iter().map(Command::Record).collect();
        if self.is_running_within(&address, &items) {
            // A vanished item still runs: its end brings us back here.
            return Ok(Vec::new());
        }
        commands.push(Command::Record(Event::GroupExpanded { step: address, items, needs }));
        Ok(commands)
    }

    /// Finished steps of items that are no more count no more; they are not undone.
    fn vanished(&self, group: &Address, items: &[Item]) -> Vec<Event> {
        let scopes = self.vanished_scopes(group, items);
        let steps = self.run.state.steps.glances().filter(|(address, entry)| {
            entry.phase().is_settled() && scopes.iter().any(|scope| address.is_within(scope))
        });
        let cause = crate::key::Difference {
            part: format!("items.{group}"),
            was: Some("an item".into()),
            is: None,
        };
        steps
            .map(|(address, _)| Event::StepInvalidated {
                step: address.clone(),
                causes: vec![cause.clone()],
            })
            .collect()
    }

    fn is_running_within(&self, group: &Address, items: &[Item]) -> bool {
        let scopes = self.vanished_scopes(group, items);
        let mut steps = self.run.state.steps.noteworthy();
        steps.any(|(address, entry)| {
            entry.phase == Phase::Running && scopes.iter().any(|scope| address.is_within(scope))
        })
    }

    fn vanished_scopes(&self, group: &Address, items: &[Item]) -> Vec<Address> {
        let before = self.run.state.groups.get(group).map_or(&[][..], |it| &it.items);
        let stands = |was: &Item, is: &Item| was.key == is.key && was.value == is.value;
        let gone = before.iter().filter(|was| !items.iter().any(|item| stands(was, item)));
        gone.map(|item| group.item(&item.key)).collect()
    }

    pub(super) fn items(&self, id: NodeId, each: &Each) -> Result<Vec<Item>, Hold> {
        let list = match &each.items {
            Items::List(list) => list.clone(),
            Items::Expression(expression) => match self.scope(id).value(expression)? {
                Value::Array(list) => list,
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)) => {
                    return Err(Hold::Fails(format!("`each` is not a list but {}", kind(&other))));
                }
            },
        };
        items(each, list).map_err(Hold::Fails)
    }

    fn turn(&self, id: NodeId, step: &Step, repeat: &Repeat) -> Result<Vec<Command>, Hold> {
        let node = self.run.graph.node(id);
        let address = node.address.clone();
        let LoopState { turns, granted, .. } =
            self.run.state.loops.get(&address).copied().unwrap_or_default();
        if turns == 0
            && let Some(skipped) = self.skipped(id, step)?
        {
            return Ok(vec![Command::Record(skipped)]);
        }
        let end = |reason| {
            let step = address.clone();
            Ok(vec![Command::Record(Event::LoopEnded { step, turns, reason })])
        };
        if let Some(last) = node.children.last()
            && let Some(asks) = self.outdated_within(*last)?
        {
            return Ok(vec![asks]);
        }
        if let (Some(until), Some(last)) = (&repeat.until, node.children.last())
            && self.scope(id).holds_after(until, *last)?
        {
            return end(LoopEnd::Until);
        }
        if turns < self.turns_max(id, &repeat.max)?.saturating_add(granted) {
            return Ok(vec![Command::Record(Event::LoopTurned { step: address, turn: turns + 1 })]);
        }
        end(if repeat.continue_on_max { LoopEnd::Max } else { LoopEnd::Exhausted })
    }

    fn turns_max(&self, id: NodeId, max: &Count) -> Result<u32, Hold> {
        match max {
            Count::Fixed(max) => Ok(*max),
            Count::Expression(expression) => {
                let value = self.scope(id).value(expression)?;
                let number = match value.as_str() {
                    Some(text) => text.trim().parse().ok(),
                    None => value.as_u64().and_then(|it| u32::try_from(it).ok()),
                };
                number.ok_or_else(|| {
                    Hold::Fails(format!("`repeat.max` is not a whole number but {value}"))
                })
            }
        }
    }

    fn gate(&self, id: NodeId, step: &Step, gate: &Gate) -> Result<Vec<Command>, Hold> {
        if let Some(skipped) = self.skipped(id, step)? {
            return Ok(vec![Command::Record(skipped)]);
        }
        Ok(vec![Command::Record(self.opened(id, id, gate)?)])
    }

    /// The gate `id` as it would be shown now, with the facts of `asker`.
    pub(super) fn opened(&self, asker: NodeId, id: NodeId, gate: &Gate) -> Result<Event, Hold> {
        let facts = self.facts.of(&self.run.graph.node(asker).address);
        let scope = Scope { run: self.run, node: id, facts };
        let prompt = scope.text(&gate.prompt, Quoting::Plain)?;
        let patterns = scope.texts(&gate.shows)?;
        for pattern in &patterns {
            understood(pattern).map_err(|why| Hold::Fails(format!("shows: {why}")))?;
        }
        let files = facts.files(&patterns)?;
        let by_path: BTreeMap<&str, Digest> =
            files.iter().map(|file| (file.path.as_str(), file.hash)).collect();
        let mut parts: Vec<&[u8]> = vec![prompt.as_bytes()];
        for (path, hash) in &by_path {
            parts.extend([path.as_bytes(), hash.as_bytes()]);
        }
        let hash = Digest::of_parts(parts);
        let shows = by_path.keys().map(|path| (*path).to_owned()).collect();
        let step = self.run.graph.node(id).address.clone();
        Ok(Event::GateOpened { step, prompt, options: gate.options.clone(), shows, hash })
    }
}

/// Items with their keys: unique, and `after` naming only items that are there, without a cycle.
fn items(each: &Each, list: Vec<Value>) -> Result<Vec<Item>, String> {
    let mut items = Vec::with_capacity(list.len());
    let mut keys = BTreeSet::new();
    for value in list {
        let key = item_key(each, &value)?;
        if !keys.insert(key.clone()) {
            return Err(format!("two items of `each` have the key `{key}`"));
        }
        let after = item_after(each, &key, &value)?;
        items.push(Item { key, value, after });
    }
    for item in &items {
        if let Some(unknown) = item.after.iter().find(|after| !keys.contains(*after)) {
            return Err(format!(
                "item `{}` comes after `{unknown}`, which is not an item",
                item.key
            ));
        }
    }
    match cycle(&items) {
        Some(key) => Err(format!("item `{key}` comes, by way of others, after itself")),
        None => Ok(items),
    }
}

fn item_key(each: &Each, value: &Value) -> Result<String, String> {
    let named = match (&each.key, value) {
        (Some(field), Value::Object(object)) => object.get(field).unwrap_or(&Value::Null),
        (_, value) => value,
    };
    match named {
        Value::String(text) if !text.is_empty() => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::String(_) => Err("an item of `each` is empty".into()),
        Value::Null | Value::Array(_) | Value::Object(_) => match &each.key {
            Some(field) => Err(format!("an item of `each` has no text in `{field}`")),
            None => Err(format!("an item of `each` is {}; name it with `key:`", kind(named))),
        },
    }
}

fn item_after(each: &Each, key: &str, value: &Value) -> Result<Vec<String>, String> {
    let Some(field) = &each.after else { return Ok(Vec::new()) };
    let wrong = || format!("`{field}` of item `{key}` is not a list of keys");
    match value.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|entry| match entry {
                Value::String(text) => Ok(text.clone()),
                Value::Number(number) => Ok(number.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(wrong()),
            })
            .collect(),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            Err(wrong())
        }
    }
}

/// Takes away items that come after nothing until none are left, or only a cycle.
fn cycle(items: &[Item]) -> Option<&str> {
    let mut waiting: BTreeMap<&str, usize> =
        items.iter().map(|item| (item.key.as_str(), item.after.len())).collect();
    let mut followers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for item in items {
        for after in &item.after {
            followers.entry(after).or_default().push(&item.key);
        }
    }
    let mut free: Vec<&str> =
        waiting.iter().filter(|(_, count)| **count == 0).map(|(key, _)| *key).collect();
    while let Some(key) = free.pop() {
        waiting.remove(key);
        for follower in followers.remove(key).unwrap_or_default() {
            if let Some(count) = waiting.get_mut(follower) {
                *count -= 1;
                if *count == 0 {
                    free.push(follower);
                }
            }
        }
    }
    waiting.into_keys().next()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
