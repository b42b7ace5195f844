//! `each` and `repeat`: how often a step stands in the run.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    fields::{self, Fields},
    graph,
    model::{Count, Each, Items, Many, Place, Repeat},
    parse::Reader,
    parse_head::is_identifier,
    yaml::{Node, Tree},
};
use crate::id::StepId;

/// Names that templates know already.
const TAKEN: [&str; 4] = ["inputs", "run", "steps", "loop"];

impl Reader<'_> {
    pub(super) fn many(&mut self, fields: &Fields<'_>, id: &StepId) -> Many {
        let each = fields.entry("each");
        let repeat = fields.entry("repeat");
        if each.is_none() {
            for name in ["as", "key", "after"] {
                if let Some((key, _)) = fields.entry(name) {
                    let message = format!("`{name}` belongs to `each`, which is missing");
                    self.problems.error(key.at, message);
                }
            }
        }
        match (each, repeat) {
            (None, None) => Many::Once,
            (Some((_, node)), None) => Many::Each(self.each(node, fields)),
            (None, Some((key, node))) => self.repeat(node, key.at, id),
            (Some((_, node)), Some((key, _))) => {
                self.problems
                    .error(key.at, "a step cannot have both `each` and `repeat`")
                    .hint("put one inside the other: a group with `each` around one with `repeat`");
                Many::Each(self.each(node, fields))
            }
        }
    }

    fn each(&mut self, node: &Node, fields: &Fields<'_>) -> Each {
        let problems = &mut self.problems;
        let mut name_in = |name: &str| {
            let node = fields.get(name)?;
            fields::text(node, name, problems).map(|text| (text.to_owned(), node.at))
        };
        let (name, key, after) = (name_in("as"), name_in("key"), name_in("after"));
        if let Some((name, at)) = &name {
            self.refuse_taken(name, *at);
            if !is_identifier(name) {
                let message = format!("`{name}` cannot be a name in templates");
                let hint = "use letters, digits and `_`, a letter first";
                self.problems.error(*at, message).hint(hint);
            }
        }
        if let (None, Some((_, at))) = (&key, &after) {
            self.problems
                .error(*at, "`after` compares keys, and there is no `key`")
                .hint("say which field of an item identifies it: `key: id`");
        }
        let each = Each {
            items: Items::List(Vec::new()),
            name: name.map_or_else(|| "item".into(), |(name, _)| name),
            key: key.map(|(key, _)| key),
            after: after.map(|(after, _)| after),
        };
        let items = self.items(node, &each);
        Each { items, ..each }
    }

    fn items(&mut self, node: &Node, each: &Each) -> Items {
        match &node.tree {
            Tree::List(nodes) if !fields::has_hole(node) => {
                let places: Vec<Place> = nodes.iter().map(|node| node.at).collect();
                let items: Vec<Value> = nodes.iter().filter_map(|it| self.item(it)).collect();
                if items.len() == nodes.len() {
                    self.literal_keys(&items, &places, each);
                }
                Items::List(items)
            }
            Tree::List(_) => {
                let template = fields::value_template(node, "each", &mut self.problems);
                Items::Expression(template.map(|(template, _)| template).unwrap_or_default())
            }
            Tree::Scalar(_) if fields::has_hole(node) => {
                let template = fields::template(node, "each", &mut self.problems);
                Items::Expression(template.unwrap_or_default())
            }
            Tree::Scalar(_) | Tree::Map(_) | Tree::Broken => {
                let wanted = "`each` is a list, or an expression \"{{ … }}\" that gives one";
                fields::expected(node, wanted, &mut self.problems);
                Items::List(Vec::new())
            }
        }
    }

    /// Scalars are text as spelled: an item is a name, not a number.
    fn item(&mut self, node: &Node) -> Option<Value> {
        match &node.tree {
            Tree::Scalar(_) => fields::text(node, "each", &mut self.problems).map(Value::from),
            Tree::Map(_) => Some(node.value()),
            Tree::List(_) | Tree::Broken => {
                fields::expected(node, "an item is text or a mapping", &mut self.problems);
                None
            }
        }
    }

    fn literal_keys(&mut self, items: &[Value], places: &[Place], each: &Each) {
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        for (index, (item, at)) in items.iter().zip(places).enumerate() {
            let key = match (item, &each.key) {
                (Value::String(text), _) => Some(text.clone()),
                (item, Some(field)) => match item.get(field) {
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(Value::Number(number)) => Some(number.to_string()),
                    Some(_) | None => {
                        let message = format!("the item has no `{field}` to identify it");
                        self.problems.error(*at, message);
                        None
                    }
                },
                (_, None) => {
                    self.problems
                        .error(*at, "nothing says what identifies this item")
                        .hint("name one of its fields: `key: id`");
                    None
                }
            };
            let Some(key) = key else { continue };
            if let Some(first) = keys.get(&key) {
                let (message, line) = (format!("there are two items `{key}`"), places[*first].line);
                self.problems.error(*at, message).hint(format!("the first is in line {line}"));
            }
            keys.insert(key, index);
        }
        let Some(field) = &each.after else { return };
        let mut needs = vec![Vec::new(); items.len()];
        for (index, item) in items.iter().enumerate() {
            let after = match item.get(field) {
                None | Some(Value::Null) => continue,
                Some(Value::Array(after)) => after,
                Some(_) => {
                    self.problems.error(places[index], format!("`{field}` is a list of keys"));
                    continue;
                }
            };
            for key in after {
                let text = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                if let Some(other) = keys.get(&text) {
                    needs[index].push(*other);
                } else {
                    let message = format!("there is no item `{text}` to come after");
                    let known = keys.keys().map(String::as_str);
                    self.problems.unknown(places[index], message, &text, known);
                }
            }
        }
        if let Err(cycle) = graph::order(&needs) {
            let name = |index: &usize| {
                keys.iter().find(|(_, other)| *other == index).map_or("?", |(key, _)| key.as_str())
            };
            let shown: Vec<&str> = cycle.iter().chain(cycle.first()).map(name).collect();
            let at = cycle.first().map_or(places[0], |first| places[*first]);
            let message = format!("these items wait for each other: {}", shown.join(" -> "));
            self.problems.error(at, message);
        }
    }

    fn repeat(&mut self, node: &Node, at: Place, id: &StepId) -> Many {
        self.refuse_taken(id.as_str(), at);
        let problems = &mut self.problems;
        let known = ["max", "until", "on_max"];
        let mut repeat = Repeat { max: Count::Fixed(1), until: None, continue_on_max: true };
        let Some(fields) = Fields::known(node, "`repeat`", &known, problems) else {
            return Many::Repeat(repeat);
        };
        match fields.get("max") {
            Some(node) if fields::has_hole(node) => {
                let template = fields::template(node, "max", problems);
                repeat.max = Count::Expression(template.unwrap_or_default());
            }
            Some(node) => {
                let max = fields::whole(node, "max", 1..=1_000_000, problems);
                repeat.max = Count::Fixed(max.unwrap_or(1));
            }
            None => {
                problems
                    .error(fields.at, "`repeat` needs a `max`")
                    .hint("even a loop with `until` must end some day: `max: 10`");
            }
        }
        repeat.until = fields.get("until").and_then(|it| fields::template(it, "until", problems));
        repeat.continue_on_max = repeat.until.is_none();
        if let Some(node) = fields.get("on_max")
            && let Some(word) = fields::text(node, "on_max", problems)
        {
            match word {
                "fail" => repeat.continue_on_max = false,
                "continue" => repeat.continue_on_max = true,
                _ => {
                    let message = format!("`on_max` is fail or continue, found `{word}`");
                    problems.unknown(node.at, message, word, ["fail", "continue"]);
                }
            }
        }
        Many::Repeat(repeat)
    }

    /// A name that templates would see.
    fn refuse_taken(&mut self, name: &str, at: Place) {
        if TAKEN.contains(&name) {
            let message = format!("`{name}` already means something in templates");
            self.problems.error(at, message).hint("choose another name");
        }
    }
}
