//! Values made up for a JSON Schema, and file names made up for a pattern.
//!
//! Invariant: the same schema or pattern always gives the same answer, so that two rehearsals of
//! one workflow can be compared.

use onward_core::workflow::answer::ACCEPTS;
use serde_json::{Map, Value, json};

/// How deep a schema that refers to itself is followed.
const DEPTH_MAX: u32 = 20;
/// A fan-out over one item is no fan-out.
const ITEMS: u64 = 2;

/// A value that fits the schema and lets the run go on.
pub(super) fn answer(schema: &Value) -> Value {
    match schema.get(ACCEPTS) {
        Some(accepts) => value(&json!({ "allOf": [schema, accepts] })),
        None => value(schema),
    }
}

/// A value that fits the schema, as far as its common words are understood.
pub(super) fn value(schema: &Value) -> Value {
    of(schema, schema, 0, 0)
}

fn of(root: &Value, schema: &Value, index: u64, depth: u32) -> Value {
    if depth > DEPTH_MAX {
        return Value::Null;
    }
    let inside = |schema: &Value, index| of(root, schema, index, depth + 1);
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")) {
        return fixed.clone();
    }
    if let Some(first) = first_of(schema, "enum").or_else(|| first_of(schema, "examples")) {
        return first.clone();
    }
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(Value::Null, |found| inside(found, index));
    }
    if let Some(all) = schema.get("allOf").and_then(Value::as_array) {
        let mut whole = schema.clone();
        if let Some(object) = whole.as_object_mut() {
            object.remove("allOf");
        }
        for part in all {
            merge(&mut whole, resolved(root, part));
        }
        return inside(&whole, index);
    }
    if let Some(choice) = first_of(schema, "oneOf").or_else(|| first_of(schema, "anyOf")) {
        let mut whole = schema.clone();
        if let Some(object) = whole.as_object_mut() {
            object.remove("oneOf");
            object.remove("anyOf");
        }
        merge(&mut whole, resolved(root, choice));
        return inside(&whole, index);
    }
    match kind(schema) {
        Some("object") => object(schema, &inside),
        Some("array") => array(schema, &inside),
        Some("string") => string(schema, index),
        Some("integer") => whole(number(schema, index)),
        Some("number") => json!(number(schema, index)),
        Some("null") => Value::Null,
        // Whatever it decides, it says yes: loops that wait for it end.
        Some(_) | None => Value::Bool(true),
    }
}

/// A whole number as JSON Schema wants it: without a fraction, not even of zero.
#[expect(clippy::cast_possible_truncation, reason = "limits of schemas are small")]
fn whole(number: f64) -> Value {
    json!(number.ceil() as i64)
}

fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str);
    target.and_then(|it| root.pointer(it.strip_prefix('#')?)).unwrap_or(schema)
}

/// Adds what `part` says; lists of names and maps of properties come together.
fn merge(whole: &mut Value, part: &Value) {
    let (Some(into), Some(from)) = (whole.as_object_mut(), part.as_object()) else { return };
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Array(have)), Value::Array(more)) => have.extend(more.iter().cloned()),
            (Some(have @ Value::Object(_)), Value::Object(_)) => merge(have, value),
            (_, _) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

fn first_of<'a>(schema: &'a Value, word: &str) -> Option<&'a Value> {
    schema.get(word)?.as_array()?.first()
}

fn kind(schema: &Value) -> Option<&str> {
    let named = match schema.get("type") {
        Some(Value::String(one)) => Some(one.as_str()),
        Some(Value::Array(several)) => several.first().and_then(Value::as_str),
        Some(_) | None => None,
    };
    let has = |word: &str| schema.get(word).is_some();
    named
        .or_else(|| (has("properties") || has("required")).then_some("object"))
        .or_else(|| (has("items") || has("minItems")).then_some("array"))
}

fn object(schema: &Value, inside: &dyn Fn(&Value, u64) -> Value) -> Value {
    let mut object = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let declared = schema.get("properties").and_then(|it| it.get(name));
        object.insert(name.to_owned(), inside(declared.unwrap_or(&Value::Bool(true)), 0));
    }
    Value::Object(object)
}

fn array(schema: &Value, inside: &dyn Fn(&Value, u64) -> Value) -> Value {
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(ITEMS);
    let most = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let any = json!({"type": "string"});
    let items = schema.get("items").unwrap_or(&any);
    (0..least.max(ITEMS).min(most)).map(|index| inside(items, index)).collect()
}

fn string(schema: &Value, index: u64) -> Value {
    let formatted = match schema.get("format").and_then(Value::as_str) {
        Some("date") => Some("2026-11-15"),
        Some("date-time") => Some("2026-11-15T18:20:01Z"),
        Some("time") => Some("18:20:01Z"),
        Some("email") => Some("ann@example.com"),
        Some("uri") => Some("https://example.com/"),
        Some("uuid") => Some("00000000-0000-8000-8000-000000000000"),
        Some(_) | None => None,
    };
    if let Some(text) = formatted {
        return text.into();
    }
    let length = |word: &str| {
        let length = schema.get(word).and_then(Value::as_u64);
        length.and_then(|it| usize::try_from(it).ok())
    };
    let mut text = format!("item-{}", index + 1);
    while text.len() < length("minLength").unwrap_or(0) {
        text.push('x');
    }
    if let Some(most) = length("maxLength") {
        text = text.chars().rev().take(most).collect::<Vec<_>>().into_iter().rev().collect();
    }
    text.into()
}

#[expect(clippy::cast_precision_loss, reason = "an index into a handful of items")]
fn number(schema: &Value, index: u64) -> f64 {
    let limit = |word: &str| schema.get(word).and_then(Value::as_f64);
    let least = limit("minimum").or_else(|| limit("exclusiveMinimum").map(|it| it + 1.0));
    let most = limit("maximum").or_else(|| limit("exclusiveMaximum").map(|it| it - 1.0));
    let wanted = least.unwrap_or(1.0) + index as f64;
    let step = limit("multipleOf").filter(|it| *it > 0.0);
    let wanted = step.map_or(wanted, |step| (wanted / step).ceil() * step);
    most.map_or(wanted, |most| wanted.min(most))
}

/// A name that the pattern matches.
pub(super) fn path(pattern: &str) -> String {
    let mut name = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '*' => {
                if let Some(deeper) = rest.strip_prefix("*/") {
                    rest = deeper;
                } else {
                    rest = rest.trim_start_matches('*');
                    name.push_str("rehearsed");
                }
            }
            '?' => name.push('x'),
            '[' => {
                let end = rest.find(']').unwrap_or(rest.len());
                name.push(letter_of(&rest[..end]));
                rest = rest.get(end + 1..).unwrap_or("");
            }
            '{' => {
                let end = rest.find('}').unwrap_or(rest.len());
                name.push_str(rest[..end].split(',').next().unwrap_or(""));
                rest = rest.get(end + 1..).unwrap_or("");
            }
            other => name.push(other),
        }
    }
    // A directory stands for the files in it.
    if name.ends_with('/') {
        name.push_str("rehearsed");
    }
    name
}

/// One that the class between brackets has, or that a class of exceptions has not.
fn letter_of(class: &str) -> char {
    match class.strip_prefix(['!', '^']) {
        Some(except) => ('a'..='z').find(|it| !except.contains(*it)).unwrap_or('_'),
        None => class.chars().next().unwrap_or('x'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_up_value_fits_its_schema() {
        for schema in [
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "object", "required": ["ok"]}),
            json!({"type": "object", "required": ["n", "s", "when"], "properties": {
                "n": {"type": "integer", "minimum": 3, "multipleOf": 5},
                "s": {"type": "string", "minLength": 12, "maxLength": 14},
                "when": {"type": "string", "format": "date"},
                "more": {"type": "string"},
            }}),
            json!({"type": "array", "minItems": 3, "uniqueItems": true,
                "items": {"type": "number", "exclusiveMinimum": 0.5}}),
            json!({"enum": ["red", "green"]}),
            json!({"const": 7}),
            json!({"oneOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]}),
            json!({"type": "object", "allOf": [
                {"required": ["a"], "properties": {"a": {"const": 1}}},
                {"required": ["b"], "properties": {"b": {"type": "boolean"}}},
            ]}),
            json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": ["string", "null"]}}}),
            json!({"type": "null"}),
            json!(true),
        ] {
            let made = value(&schema);
            let compiled = crate::world::schema::Schema::compile(&schema).unwrap();
            assert_eq!(compiled.check(&made), Ok(()), "{made} for {schema}");
        }
    }

    #[test]
    fn a_schema_without_an_end_has_one_here() {
        let schema = json!({"type": "object", "required": ["in"], "properties": {
            "in": {"$ref": "#"},
        }});
        assert!(value(&schema).is_object());
    }

    #[test]
    fn a_made_up_name_matches_its_pattern() {
        for pattern in
            ["a.md", "notes/*.md", "**/*.md", "a/**/b?.txt", "{b,c}/x", "x[abc]", "src/**", "[!a]b"]
        {
            let name = path(pattern);
            let glob = globset::GlobBuilder::new(pattern).literal_separator(true).build().unwrap();
            assert!(glob.compile_matcher().is_match(&name), "{name} for {pattern}");
        }
        assert_eq!(path("dir/"), "dir/rehearsed");
    }
}
