//! Typed readings of a YAML node. Each says itself what it expected and found.

use std::{borrow::Cow, iter};

use serde_json::Value;

use super::{
    duration,
    model::{Place, Template},
    pattern::understood,
    problem::Problems,
    refs::lone_expression,
    yaml::{Key, Node, Tree},
};

/// The entries of a mapping, none of them unknown.
#[derive(Clone, Copy)]
pub(super) struct Fields<'n> {
    pub(super) at: Place,
    pub(super) pairs: &'n [(Key, Node)],
}

impl<'n> Fields<'n> {
    /// Without looking at the keys.
    pub(super) fn of(node: &'n Node, what: &str, problems: &mut Problems) -> Option<Self> {
        match &node.tree {
            Tree::Map(pairs) => Some(Self { at: node.at, pairs }),
            Tree::Scalar(_) | Tree::List(_) | Tree::Broken => {
                expected(node, &format!("{what} is a mapping"), problems);
                None
            }
        }
    }

    /// Says which keys are not among `known`.
    pub(super) fn known(
        node: &'n Node,
        what: &str,
        known: &[&str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let fields = Self::of(node, what, problems)?;
        for (key, _) in fields.pairs {
            if !known.contains(&key.text.as_str()) {
                unknown_key(key, what, known, problems);
            }
        }
        Some(fields)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        self.entry(name).map(|(_, node)| node)
    }

    pub(super) fn entry(&self, name: &str) -> Option<&'n (Key, Node)> {
        self.pairs.iter().find(|(key, _)| key.text == name)
    }
}

/// A longer list of keys cannot be read.
const KEYS_SHOWN_MAX: usize = 12;

pub(super) fn unknown_key(key: &Key, what: &str, known: &[&str], problems: &mut Problems) {
    let message = format!("{what} has no key `{}`", key.text);
    let problem = problems.unknown(key.at, message, &key.text, known.iter().copied());
    if let Some(ours) =
        elsewhere(&key.text).filter(|it| known.iter().any(|key| it.starts_with(key)))
    {
        problem.hint(format!("here it is `{ours}`"));
    } else if problem.hint.is_none() && known.len() > KEYS_SHOWN_MAX {
        problem.hint("see `onward schema workflow` for all keys");
    } else if problem.hint.is_none() {
        problem.hint(format!("it can have: {}", known.join(", ")));
    }
}

/// What other tools call by this key, in our words.
fn elsewhere(key: &str) -> Option<&'static str> {
    const TABLE: [(&[&str], &str); 11] = [
        (&["cmd", "command", "script", "shell", "exec"], "run: COMMAND"),
        (&["depends_on", "depends", "dependencies", "requires", "after"], "needs: [STEP]"),
        (&["env_vars", "environment", "envs"], "env: { NAME: VALUE }"),
        (&["name"], "id: NAME"),
        (&["use", "uses"], "agent: NAME"),
        (&["retries", "attempts", "max_attempts"], "retry: { max: 3 }"),
        (&["if", "condition"], "when: EXPRESSION"),
        (&["foreach", "for_each", "matrix", "with_items"], "each: [ITEM]"),
        (&["loop", "while"], "repeat: { max: 3, until: EXPRESSION }"),
        (&["outputs", "creates", "produces"], "writes: [FILE]"),
        (&["working_directory", "workdir", "cwd"], "dir: PATH"),
    ];
    TABLE.iter().find(|(keys, _)| keys.contains(&key)).map(|(_, ours)| *ours)
}

/// Says what was expected; silent where something was said already.
pub(super) fn expected(node: &Node, what: &str, problems: &mut Problems) {
    if !matches!(node.tree, Tree::Broken) {
        problems.error(node.at, format!("{what}, found {}", node.kind_name()));
    }
}

/// The same with what to write instead.
fn expected_so(node: &Node, what: &str, hint: &str, problems: &mut Problems) {
    if !matches!(node.tree, Tree::Broken) {
        problems.error(node.at, format!("{what}, found {}", node.kind_name())).hint(hint);
    }
}

/// Any scalar is text as it is spelled, so that `run: true` runs `true`.
pub(super) fn text<'n>(node: &'n Node, name: &str, problems: &mut Problems) -> Option<&'n str> {
    match &node.tree {
        Tree::Scalar(scalar) if !scalar.value().is_null() => {
            if scalar.text.trim().is_empty() {
                problems.error(node.at, format!("`{name}` is empty"));
                return None;
            }
            Some(&scalar.text)
        }
        Tree::Scalar(_) | Tree::List(_) | Tree::Map(_) | Tree::Broken => {
            let hint = "write it in quotes, or on lines of its own below `|`";
            expected_so(node, &format!("`{name}` is text"), hint, problems);
            None
        }
    }
}

pub(super) fn template(node: &Node, name: &str, problems: &mut Problems) -> Option<Template> {
    let source = text(node, name, problems)?.to_owned();
    Some(Template::new(source, node.at))
}

pub(super) fn flag(node: &Node, name: &str, problems: &mut Problems) -> Option<bool> {
    let value = node.value().as_bool();
    if value.is_none() {
        expected(node, &format!("`{name}` is true or false"), problems);
    }
    value
}

pub(super) fn whole(
    node: &Node,
    name: &str,
    range: std::ops::RangeInclusive<u32>,
    problems: &mut Problems,
) -> Option<u32> {
    let value = node.value();
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| range.contains(number));
    if number.is_none() {
        let (from, to) = range.into_inner();
        let found = if value.is_number() { value.to_string() } else { node.kind_name().into() };
        if !matches!(node.tree, Tree::Broken) {
            let to = if to == u32::MAX { String::new() } else { format!(" to {to}") };
            let message = format!("`{name}` is a whole number from {from}{to}, found {found}");
            problems.error(node.at, message);
        }
    }
    number
}

pub(super) fn milliseconds(node: &Node, name: &str, problems: &mut Problems) -> Option<u64> {
    let text = text(node, name, problems)?;
    let found = duration::parse(text);
    if found.is_none() {
        problems
            .error(node.at, format!("`{text}` is not a length of time"))
            .hint("write numbers with units, such as `30s`, `5m` or `1h30m`");
    }
    found
}

pub(super) fn list<'n>(node: &'n Node, name: &str, problems: &mut Problems) -> &'n [Node] {
    match &node.tree {
        Tree::List(nodes) => nodes,
        Tree::Scalar(scalar) if !scalar.value().is_null() => {
            problems
                .error(node.at, format!("`{name}` is a list, found {}", node.kind_name()))
                .hint(format!("write `{name}: [{}]`", scalar.text));
            &[]
        }
        Tree::Scalar(_) | Tree::Map(_) | Tree::Broken => {
            let hint = "begin each item on a line of its own, with `- `";
            expected_so(node, &format!("`{name}` is a list"), hint, problems);
            &[]
        }
    }
}

/// The nodes of a list; those of one that was given away are given on.
pub(super) fn items(list: Cow<'_, Node>) -> Box<dyn Iterator<Item = Cow<'_, Node>> + '_> {
    match list {
        Cow::Owned(Node { tree: Tree::List(nodes), .. }) => {
            Box::new(nodes.into_iter().map(Cow::Owned))
        }
        Cow::Borrowed(Node { tree: Tree::List(nodes), .. }) => {
            Box::new(nodes.iter().map(Cow::Borrowed))
        }
        Cow::Owned(_) | Cow::Borrowed(_) => Box::new(iter::empty()),
    }
}

/// What stands under a key of a map; of a map that was given away the rest is dropped.
pub(super) fn field<'n>(map: Cow<'n, Node>, name: &str) -> Option<Cow<'n, Node>> {
    match map {
        Cow::Owned(Node { tree: Tree::Map(pairs), .. }) => {
            pairs.into_iter().find(|(key, _)| key.text == name).map(|(_, node)| Cow::Owned(node))
        }
        Cow::Borrowed(Node { tree: Tree::Map(pairs), .. }) => {
            pairs.iter().find(|(key, _)| key.text == name).map(|(_, node)| Cow::Borrowed(node))
        }
        Cow::Owned(_) | Cow::Borrowed(_) => None,
    }
}

pub(super) fn templates(node: &Node, name: &str, problems: &mut Problems) -> Vec<Template> {
    let nodes = list(node, name, problems);
    nodes.iter().filter_map(|node| template(node, name, problems)).collect()
}

/// Names and patterns of files.
pub(super) fn patterns(node: &Node, name: &str, problems: &mut Problems) -> Vec<Template> {
    let all = templates(node, name, problems);
    for template in all.iter().filter(|it| it.is_literal()) {
        if let Err(why) = understood(&template.source) {
            problems
                .error(template.at, format!("`{name}`: {why}"))
                .hint("in the name of a file write `[[]` for `[`, and `[{]` for `{`");
        }
    }
    all
}

/// A value as the source of a template that gives it back with its type: text stays as it is, `5`
/// becomes `{{ 5 }}`, and expressions may stand inside lists and mappings.
pub(super) fn value_template(
    node: &Node,
    name: &str,
    problems: &mut Problems,
) -> Option<(Template, Option<Value>)> {
    let at = node.at;
    let literal = (!has_hole(node)).then(|| node.value());
    let source = match &node.tree {
        Tree::Scalar(scalar) if scalar.value().is_string() => scalar.text.clone(),
        Tree::Scalar(_) | Tree::List(_) | Tree::Map(_) => {
            format!("{{{{ {} }}}}", expression(node, name, problems)?)
        }
        Tree::Broken => return None,
    };
    Some((Template::new(source, at), literal))
}

pub(super) fn has_hole(node: &Node) -> bool {
    match &node.tree {
        Tree::Scalar(scalar) => ["{{", "{%", "{#"].iter().any(|mark| scalar.text.contains(mark)),
        Tree::List(nodes) => nodes.iter().any(has_hole),
        Tree::Map(pairs) => pairs.iter().any(|(_, node)| has_hole(node)),
        Tree::Broken => false,
    }
}

fn expression(node: &Node, name: &str, problems: &mut Problems) -> Option<String> {
    let joined = match &node.tree {
        Tree::Scalar(scalar) => {
            return match scalar.value() {
                Value::Null => Some("none".into()),
                Value::String(text) if has_hole(node) => {
                    let inner = lone_expression(&text).map(str::to_owned);
                    if inner.is_none() {
                        problems
                            .error(node.at, format!("text with a hole inside a list of `{name}`"))
                            .hint("make it one expression, such as \"{{ 'a-' ~ inputs.b }}\"");
                    }
                    inner.map(|inner| format!("({inner})"))
                }
                value @ (Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_)) => Some(value.to_string()),
            };
        }
        Tree::List(nodes) => {
            let parts: Option<Vec<String>> =
                nodes.iter().map(|node| expression(node, name, problems)).collect();
            format!("[{}]", parts?.join(", "))
        }
        Tree::Map(pairs) => {
            let pair = |(key, node): &(Key, Node), problems: &mut Problems| {
                let value = expression(node, name, problems)?;
                Some(format!("{}: {value}", Value::from(key.text.as_str())))
            };
            let parts: Option<Vec<String>> = pairs.iter().map(|it| pair(it, problems)).collect();
            format!("{{ {} }}", parts?.join(", "))
        }
        Tree::Broken => return None,
    };
    Some(joined)
}
