//! What a step says besides what it is: result, worktree, effect, time limits, retries, env.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    dir::inside_project,
    fields::{self, Fields},
    model::{Durability, OnFailure, PinnedFile, Probe, Retry, Span, Template, Worktree},
    parse::Reader,
    parse_head::is_identifier,
    permissions::Permissions,
    yaml::{Node, Tree},
};
use crate::evidence::Cause;

impl Reader<'_> {
    pub(super) fn result(&mut self, node: &Node) -> Option<PinnedFile> {
        let fields = Fields::known(node, "`result`", &["schema"], &mut self.problems)?;
        let Some(node) = fields.get("schema") else {
            self.problems
                .error(fields.at, "`result` needs a `schema`")
                .hint("write `result: { schema: schemas/result.json }`");
            return None;
        };
        let file = self.pinned(node, "schema")?;
        match serde_json::from_str::<Value>(&file.text) {
            Ok(schema) if schema.is_object() || schema.is_boolean() => {}
            Ok(_) => drop(self.problems.error(node.at, "a JSON Schema is an object")),
            Err(error) => {
                let message = format!("`{}` is not JSON: {error}", file.path);
                self.problems.error(node.at, message);
            }
        }
        Some(file)
    }

    pub(super) fn worktree(&mut self, node: &Node) -> Option<Worktree> {
        match node.value() {
            Value::Bool(own) => own.then_some(Worktree::Own),
            Value::String(_) => {
                fields::template(node, "worktree", &mut self.problems).map(Worktree::Named)
            }
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                fields::expected(node, "`worktree` is true, or a name", &mut self.problems);
                None
            }
        }
    }

    pub(super) fn durability(&mut self, node: &Node) -> Option<Durability> {
        let word = fields::text(node, "durability", &mut self.problems)?;
        match word {
            "full" => Some(Durability::Full),
            "process" => Some(Durability::Process),
            other => {
                self.problems
                    .error(node.at, format!("`{other}` is not a durability"))
                    .hint("write `full` or `process`");
                None
            }
        }
    }

    pub(super) fn effect(&mut self, fields: &Fields<'_>) -> (bool, Option<Probe>) {
        let problems = &mut self.problems;
        let mut outside = false;
        if let Some(node) = fields.get("effect")
            && let Some(effect) = fields::text(node, "effect", problems)
        {
            outside = true;
            if effect != "outside" {
                let message = format!("`{effect}` is not an effect");
                problems.error(node.at, message).hint("the only one is `effect: outside`");
            }
        }
        let Some((key, node)) = fields.entry("probe") else { return (outside, None) };
        if !outside {
            problems
                .error(key.at, "a `probe` asks after an effect, and this step has none")
                .hint("add `effect: outside`");
        }
        let Some(fields) = Fields::known(node, "`probe`", &["run", "absent"], problems) else {
            return (outside, None);
        };
        let absent =
            fields.get("absent").and_then(|it| fields::whole(it, "absent", 1..=255, problems));
        let absent = absent.and_then(|code| i32::try_from(code).ok()).unwrap_or(1);
        let Some(node) = fields.get("run") else {
            problems.error(fields.at, "a `probe` needs a command: `run`");
            return (outside, None);
        };
        let command = fields::template(node, "run", problems);
        (outside, command.map(|command| Probe { command, absent }))
    }

    pub(super) fn time_limit(&mut self, fields: &Fields<'_>, name: &str) -> Option<u64> {
        let node = fields.get(name)?;
        let limit = fields::milliseconds(node, name, &mut self.problems)?;
        if limit == 0 {
            let hint = "leave it out for no limit";
            self.problems.error(node.at, format!("`{name}` must be longer than zero")).hint(hint);
        }
        Some(limit)
    }

    /// A length of time, or a template that gives one.
    pub(super) fn timeout(&mut self, fields: &Fields<'_>) -> Option<Span> {
        let node = fields.get("timeout")?;
        if fields::has_hole(node) {
            let template = fields::template(node, "timeout", &mut self.problems);
            return template.map(Span::Expression);
        }
        self.time_limit(fields, "timeout").map(Span::Fixed)
    }

    /// A directory below the project, as far as that can be told before it is rendered.
    pub(super) fn dir(&mut self, fields: &Fields<'_>, in_worktree: bool) -> Option<Template> {
        let (key, node) = fields.entry("dir")?;
        let problems = &mut self.problems;
        if in_worktree || fields.get("worktree").is_some() {
            problems
                .error(key.at, "a step works in a `dir` or in a `worktree`, not in both")
                .hint("leave one of them out; a `worktree` holds for all steps of its group");
        }
        let dir = fields::template(node, "dir", problems)?;
        if dir.is_literal()
            && let Err(why) = inside_project(&dir.source)
        {
            problems.error(node.at, why).hint("write it relative to the project, without `..`");
        }
        Some(dir)
    }

    pub(super) fn on_failure(&mut self, node: &Node) -> OnFailure {
        let problems = &mut self.problems;
        let Some(word) = fields::text(node, "on_failure", problems) else {
            return OnFailure::Fail;
        };
        match word {
            "fail" => OnFailure::Fail,
            "continue" => OnFailure::Continue,
            _ => {
                let message = format!("`{word}` is not what can follow a failure");
                let problem = problems.unknown(node.at, message, word, ["fail", "continue"]);
                if problem.hint.is_none() {
                    problem.hint("one of: fail, continue");
                }
                OnFailure::Fail
            }
        }
    }

    /// `permissions` and `allow`, of a step or of an agent.
    pub(super) fn permissions(
        &mut self,
        fields: &Fields<'_>,
    ) -> (Option<Permissions>, Vec<String>) {
        let problems = &mut self.problems;
        let node = fields.get("permissions");
        let word = node.and_then(|node| fields::text(node, "permissions", problems));
        let named = word.and_then(Permissions::named);
        if let (Some(node), Some(word), None) = (node, word, named) {
            let known = Permissions::ALL.map(Permissions::as_str);
            let message = format!("`{word}` is not what an agent may do");
            let problem = problems.unknown(node.at, message, word, known);
            if problem.hint.is_none() {
                problem.hint(format!("one of: {}", known.join(", ")));
            }
        }
        let allow = fields.get("allow").map(|it| fields::list(it, "allow", problems));
        let allow = allow.unwrap_or_default().iter();
        let allow = allow.filter_map(|it| fields::text(it, "allow", problems).map(str::to_owned));
        (named, allow.collect())
    }

    /// What is not given is as in `defaults`.
    pub(super) fn retry(&mut self, node: &Node, default: &Retry) -> Retry {
        let mut retry = default.clone();
        let known = ["max", "backoff", "on"];
        let problems = &mut self.problems;
        if let Tree::Scalar(scalar) = &node.tree
            && scalar.value().is_u64()
        {
            let message = "`retry` is a mapping, found a number";
            let ours = format!("here it is `retry: {{ max: {} }}`", scalar.text);
            problems.error(node.at, message).hint(ours);
            return retry;
        }
        let Some(fields) = Fields::known(node, "`retry`", &known, problems) else { return retry };
        if let Some(node) = fields.get("max") {
            retry.max = fields::whole(node, "max", 0..=1000, problems).unwrap_or(0);
        }
        if let Some(node) = fields.get("backoff") {
            retry.backoff_ms = fields::milliseconds(node, "backoff", problems).unwrap_or(0);
        }
        if let Some(node) = fields.get("on") {
            retry.on.clear();
            for node in fields::list(node, "on", problems) {
                let Some(word) = fields::text(node, "on", problems) else { continue };
                if let Some(cause) = Cause::ALL.into_iter().find(|cause| cause.as_str() == word) {
                    retry.on.insert(cause);
                    continue;
                }
                let words = Cause::ALL.map(Cause::as_str);
                let message = format!("`{word}` is not a cause of failure");
                let problem = problems.unknown(node.at, message, word, words);
                if problem.hint.is_none() {
                    problem.hint(format!("one of: {}", words.join(", ")));
                }
            }
        }
        retry
    }

    pub(super) fn env(&mut self, node: &Node) -> BTreeMap<String, Template> {
        let mut env = BTreeMap::new();
        let given = Fields::of(node, "`env`", &mut self.problems);
        for (key, node) in given.map_or(&[][..], |given| given.pairs) {
            if !is_identifier(&key.text) {
                let message = format!("`{}` cannot name an environment variable", key.text);
                self.problems.error(key.at, message).hint("use letters, digits and `_`");
            } else if key.text.starts_with("ONWARD_") {
                self.problems
                    .error(key.at, format!("`{}` is set by onward itself", key.text))
                    .hint("choose a name that does not begin with `ONWARD_`");
            }
            let empty = matches!(&node.tree, Tree::Scalar(it) if it.text.is_empty() && !it.plain);
            let template = if empty {
                Some(Template::new(String::new(), node.at))
            } else {
                fields::template(node, &key.text, &mut self.problems)
            };
            env.extend(template.map(|template| (key.text.clone(), template)));
        }
        env
    }
}
