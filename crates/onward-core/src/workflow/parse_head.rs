//! The head of a workflow file: version, name, inputs, agents, defaults, limits.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::Value;

use super::{
    fields::{self, Fields},
    model::{Agent, Input, InputKind, Limits, PARALLEL_DEFAULT},
    parse::{ADAPTERS, Reader, Surroundings, VERSION},
    yaml::Node,
};
use crate::{evidence::Usd, nearest::nearest};

impl Reader<'_> {
    /// Nothing else is looked at in a file for another version.
    pub(super) fn version(&mut self, fields: &Fields<'_>) -> Option<()> {
        let Some(node) = fields.get("onward") else {
            let near = fields.pairs.iter().find(|(key, _)| key.text.eq_ignore_ascii_case("onward"));
            let at = near.map_or(fields.at, |(key, _)| key.at);
            self.problems
                .error(at, "the file does not say which version of the language it is in")
                .hint("begin it with `onward: 1`");
            return None;
        };
        let version = node.value();
        if version.as_u64() == Some(VERSION) {
            return Some(());
        }
        let newer = version.as_u64().filter(|version| *version > VERSION);
        if let Some(version) = newer {
            self.problems
                .error(node.at, format!("the file is in version {version} of the language"))
                .hint("this onward reads version 1: update onward");
        } else {
            self.problems
                .error(node.at, format!("`onward` is a version number, found {version}"))
                .hint("write `onward: 1`");
        }
        None
    }

    pub(super) fn name(&mut self, fields: &Fields<'_>) -> String {
        let given =
            fields.get("name").and_then(|node| fields::text(node, "name", &mut self.problems));
        let Some(given) = given else {
            let path = &self.sources[fields.at.file as usize].path;
            let file = path.rsplit('/').next().unwrap_or(path);
            let stem = file.split('.').next().unwrap_or(file);
            return slug(stem);
        };
        if slug(given) != given {
            let at = fields.get("name").map_or(fields.at, |node| node.at);
            self.problems
                .error(at, format!("`{given}` cannot name a workflow"))
                .hint(format!("it becomes part of directory names: write `{}`", slug(given)));
        }
        given.to_owned()
    }

    pub(super) fn inputs(&mut self, node: &Node) -> IndexMap<String, Input> {
        const TYPES: [(&str, InputKind); 6] = [
            ("string", InputKind::String),
            ("number", InputKind::Number),
            ("integer", InputKind::Integer),
            ("boolean", InputKind::Boolean),
            ("list", InputKind::List),
            ("object", InputKind::Object),
        ];
        let mut inputs = IndexMap::new();
        let Some(all) = Fields::of(node, "`inputs`", &mut self.problems) else { return inputs };
        for (key, node) in all.pairs {
            if !is_identifier(&key.text) {
                self.problems
                    .error(key.at, format!("`{}` cannot name an input", key.text))
                    .hint("use letters, digits and `_`, a letter first");
            }
            let what = format!("input `{}`", key.text);
            let known = ["type", "default", "description"];
            let fields = Fields::known(node, &what, &known, &mut self.problems);
            let word = fields.and_then(|fields| fields.get("type"));
            if fields.is_some() && word.is_none() {
                self.problems
                    .error(key.at, format!("{what} has no `type`"))
                    .hint("write `{ type: string }`; or number, integer, boolean, list, object");
            }
            let text = word.and_then(|node| fields::text(node, "type", &mut self.problems));
            let kind = text.and_then(|text| TYPES.iter().find(|(name, _)| *name == text));
            if let (Some(node), Some(text), None) = (word, text, kind) {
                let message = format!("`{text}` is not a type");
                let names = TYPES.iter().map(|(name, _)| *name);
                let problem = self.problems.unknown(node.at, message, text, names);
                if problem.hint.is_none() {
                    problem.hint("one of string, number, integer, boolean, list, object");
                }
            }
            let default = fields.and_then(|fields| fields.get("default"));
            if let (Some((name, kind)), Some(node)) = (kind, default)
                && !fits(*kind, &node.value())
            {
                let found = node.kind_name();
                self.problems
                    .error(node.at, format!("the default of {what} is {found}, not a {name}"));
            }
            let described = fields.and_then(|fields| fields.get("description"));
            let description = described
                .and_then(|node| fields::text(node, "description", &mut self.problems))
                .map(str::to_owned);
            let kind = kind.map_or(InputKind::String, |(_, kind)| *kind);
            let default = default.map(Node::value);
            inputs.insert(key.text.clone(), Input { kind, default, description });
        }
        inputs
    }

    pub(super) fn agents(&mut self, node: &Node) -> BTreeMap<String, Agent> {
        let mut agents = BTreeMap::new();
        let Some(all) = Fields::of(node, "`agents`", &mut self.problems) else { return agents };
        for (key, node) in all.pairs {
            let what = format!("agent `{}`", key.text);
            let known = ["use", "model", "system", "permissions", "allow"];
            let Some(fields) = Fields::known(node, &what, &known, &mut self.problems) else {
                agents.insert(key.text.clone(), Agent::default());
                continue;
            };
            let mut text = |name: &str| {
                fields.get(name).and_then(|node| fields::text(node, name, &mut self.problems))
            };
            let (adapter, model) = (text("use"), text("model").map(str::to_owned));
            let adapter = match adapter {
                Some(adapter) => adapter.to_owned(),
                None if ADAPTERS.contains(&key.text.as_str()) => key.text.clone(),
                None => {
                    if fields.get("use").is_none() {
                        self.problems
                            .error(key.at, format!("{what} does not say which program it uses"))
                            .hint("write `use: claude`, or another agent program");
                    }
                    String::new()
                }
            };
            let near = nearest(&adapter, ADAPTERS);
            if let (Some(near), Some(node)) = (near, fields.get("use"))
                && near != adapter
            {
                let message = format!("`{adapter}` is not an agent program onward knows");
                let problem = self.problems.warn(node.at, message);
                problem
                    .hint(format!("did you mean `{near}`? Otherwise the configuration names it"));
                problem.agent = Some(adapter.clone());
            }
            let system = fields.get("system").and_then(|node| self.pinned(node, "system"));
            let (permissions, allow) = self.permissions(&fields);
            let agent = Agent { adapter, model, system, permissions, allow };
            agents.insert(key.text.clone(), agent);
        }
        agents
    }

    pub(super) fn defaults(&mut self, node: &Node, around: &mut Surroundings) {
        let known = ["timeout", "idle", "retry"];
        let Some(fields) = Fields::known(node, "`defaults`", &known, &mut self.problems) else {
            return;
        };
        around.timeout_ms = self.time_limit(&fields, "timeout");
        around.idle_ms = self.time_limit(&fields, "idle");
        if let Some(node) = fields.get("retry") {
            around.retry = self.retry(node, &around.retry);
        }
    }

    pub(super) fn limits(&mut self, node: Option<&Node>) -> Limits {
        let mut limits = Limits { parallel: PARALLEL_DEFAULT, usd: None, resumes: None };
        let Some(node) = node else { return limits };
        if self.including.len() > 1 {
            self.problems
                .warn(node.at, "the limits of an included workflow are not used")
                .hint("the workflow that includes it sets them");
        }
        let known = ["parallel", "usd", "resumes"];
        let Some(fields) = Fields::known(node, "`limits`", &known, &mut self.problems) else {
            return limits;
        };
        let problems = &mut self.problems;
        if let Some(node) = fields.get("parallel") {
            let given = fields::whole(node, "parallel", 1..=10_000, problems);
            limits.parallel = given.unwrap_or(PARALLEL_DEFAULT);
        }
        if let Some(node) = fields.get("resumes") {
            limits.resumes = fields::whole(node, "resumes", 0..=u32::MAX, problems);
        }
        if let Some(node) = fields.get("usd") {
            limits.usd = node.value().as_f64().and_then(Usd::from_dollars);
            if limits.usd.is_none() {
                fields::expected(node, "`usd` is an amount of US dollars", problems);
            }
        }
        limits
    }
}

/// Whether a value has the declared type.
pub fn fits(kind: InputKind, value: &Value) -> bool {
    match kind {
        InputKind::String => value.is_string(),
        InputKind::Number => value.is_number(),
        InputKind::Integer => value.is_i64() || value.is_u64(),
        InputKind::Boolean => value.is_boolean(),
        InputKind::List => value.is_array(),
        InputKind::Object => value.is_object(),
    }
}

/// What a template can write after a dot.
pub(super) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The nearest text that can be part of a run's id.
fn slug(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let text: String = text
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if allowed(c) { c } else { '-' })
        .take(64)
        .collect();
    let text = text.trim_matches(['-', '.']);
    if text.is_empty() { "workflow".into() } else { text.into() }
}
