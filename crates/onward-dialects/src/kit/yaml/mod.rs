//! YAML of foreign files: read whole, and changed one value at a time.
//!
//! `block` sets a value in a tree of lines, `flow` between brackets.
//!
//! Invariant: a change touches one value; comments, order and every key that is not known here stay
//! as they were. What is written means what was meant and nothing else, or it is not written.

mod block;
mod flow;

use onward_core::workflow::foreign_yaml;
use serde_json::{Map, Value};

/// The map that a file holds, or why it holds none.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    if text.contains('\0') {
        return Err("it holds NUL bytes".to_owned());
    }
    match foreign_yaml(text)? {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err("it holds no map".to_owned())
        }
    }
}

/// The text with a plain value at this path of keys; in a list a key is the number of an item, from
/// zero. Keys that are missing are added, as their neighbours are written. What stands there in the
/// place of a map gives way to one; an item of a list that is nothing but a name becomes its `id`.
/// `None` when the file is not written so that this could be done.
pub fn with_value(text: &str, path: &[&str], value: &str) -> Option<String> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let after = block::set(body, path, value)?;
    let mut meant = foreign_yaml(body).unwrap_or(Value::Null);
    put(&mut meant, path, foreign_yaml(&scalar(value)).ok()?)?;
    let is_meant = foreign_yaml(&after).is_ok_and(|it| it == meant);
    is_meant.then(|| format!("{mark}{after}"))
}

/// The same in a tree that was read.
fn put(tree: &mut Value, path: &[&str], value: Value) -> Option<()> {
    let Some((key, rest)) = path.split_first() else {
        *tree = value;
        return Some(());
    };
    if let Value::Array(list) = tree {
        let number: usize = key.parse().ok()?;
        if number == list.len() {
            list.push(Value::Null);
        }
        let item = list.get_mut(number)?;
        if !rest.is_empty() && !matches!(item, Value::Object(_) | Value::Array(_) | Value::Null) {
            let id = item.take();
            *item = Value::Object([("id".to_owned(), id)].into_iter().collect());
        }
        return put(item, rest, value);
    }
    if !tree.is_object() {
        *tree = Value::Object(Map::new());
    }
    put(tree.as_object_mut()?.entry((*key).to_owned()).or_insert(Value::Null), rest, value)
}

/// A value as YAML: plain where that is safe, or else in quotes.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_plain);
    let means_something = ["true", "false", "null", "yes", "no", "on", "off"];
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let is_taken = means_something.contains(&text.to_ascii_lowercase().as_str());
    if is_word && !is_taken || is_number || matches!(text, "true" | "false" | "null") {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# made by a program
epic_state:
  epicId: 3   # a name
  status: paused
  waves:
    1:
      status: completed
    2:
      status: in_progress
      stories:
        3.4:
          status: pending

  other: [a, b]
";

    #[test]
    fn one_line_changes_and_the_rest_stays() {
        let path = ["epic_state", "waves", "2", "stories", "3.4", "status"];
        let after = with_value(TEXT, &path, "completed").unwrap();
        assert_eq!(after, TEXT.replace("status: pending", "status: completed"));
        let after = with_value(TEXT, &["epic_state", "epicId"], "7").unwrap();
        assert_eq!(after, TEXT.replace("epicId: 3   # a name", "epicId: 7 # a name"));
    }

    #[test]
    fn what_is_missing_is_added_where_its_neighbours_are() {
        let path = ["epic_state", "waves", "2", "stories", "3.4", "completed_at"];
        let after = with_value(TEXT, &path, "2026-02-01T00:00:00Z").unwrap();
        let added = "status: pending\n          completed_at: \"2026-02-01T00:00:00Z\"\n";
        assert_eq!(after, TEXT.replace("status: pending\n", added));
        let after = with_value(TEXT, &["epic_state", "gate_verdicts", "1", "status"], "approved");
        let map = object(after.unwrap().as_bytes()).unwrap();
        assert_eq!(map["epic_state"]["gate_verdicts"]["1"]["status"], "approved");
        assert_eq!(map["epic_state"]["other"][1], "b");
        assert_eq!(with_value("a: 1", &["b"], "x y").unwrap(), "a: 1\nb: \"x y\"\n");
    }

    #[test]
    fn between_brackets_one_value_changes_and_the_rest_stays() {
        for (text, path, expected) in [
            (
                "{a: 1, b: {c: 'x, y', d: 2}} # kept\n",
                &["b", "d"][..],
                "{a: 1, b: {c: 'x, y', d: new}} # kept\n",
            ),
            ("a: {b: 1}\nz: 2\n", &["a", "b"], "a: {b: new}\nz: 2\n"),
            ("a: {b: 1}\n", &["a", "c", "d"], "a: {b: 1, c: {d: new}}\n"),
            ("a: {}\n", &["a", "b"], "a: {b: new}\n"),
            ("a: {b: }\n", &["a", "b"], "a: {b: new }\n"),
            ("{\"a\": {\"b\": \"}\"}}\n", &["a", "c"], "{\"a\": {\"b\": \"}\", \"c\": \"new\"}}\n"),
            (
                "{\n  \"a\": {\n    \"b\": 1 # one\n  }\n}\n",
                &["a", "c"],
                "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": \"new\" # one\n  }\n}\n",
            ),
            (
                "a:\n  - {id: 1}\n  - {id: 2}\n",
                &["a", "1", "s"],
                "a:\n  - {id: 1}\n  - {id: 2, s: new}\n",
            ),
            ("a: [{id: 1}, {id: 2}]\n", &["a", "0", "s"], "a: [{id: 1, s: new}, {id: 2}]\n"),
            ("a: [3.1, '3.2']\n", &["a", "1", "s"], "a: [3.1, {id: '3.2', s: new}]\n"),
            ("a: [3.1]\n", &["a", "1", "id"], "a: [3.1, {id: new}]\n"),
        ] {
            assert_eq!(with_value(text, path, "new").as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn an_item_of_a_list_is_changed_where_it_stands() {
        for (text, path, expected) in [
            (
                "a:\n  - id: 1\n    s: x\n  - id: 2\n",
                &["a", "0", "s"][..],
                "a:\n  - id: 1\n    s: new\n  - id: 2\n",
            ),
            (
                "a:\n- id: 1\n- id: 2\nb: 1\n",
                &["a", "1", "s"],
                "a:\n- id: 1\n- id: 2\n  s: new\nb: 1\n",
            ),
            ("a:\n  - s: x # why\n", &["a", "0", "s"], "a:\n  - s: new # why\n"),
            ("a:\n  - 3.1\n  - 3.2\n", &["a", "0", "s"], "a:\n  - {id: 3.1, s: new}\n  - 3.2\n"),
            ("a:\n  - 3.1\n", &["a", "1", "id"], "a:\n  - 3.1\n  - {id: new}\n"),
            ("a:\n  b: x\n", &["a", "b", "s"], "a:\n  b: {s: new}\n"),
            ("a:\r\n  b: 1\r\n", &["a", "c"], "a:\r\n  b: 1\r\n  c: new\r\n"),
            ("a: \"x #1\" # why\n", &["a"], "a: new # why\n"),
        ] {
            assert_eq!(with_value(text, path, "new").as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_told_in_one_place_is_not_changed() {
        for text in [
            "a: &x {b: 1}\nc: *x\n",
            "a: |\n  b: 1\n",
            "a:\n  - b: 1\n",
            "a: [1]\n",
            "a: {b: 1\n",
            "\tb: 1\n",
        ] {
            assert_eq!(with_value(text, &["a", "b"], "2"), None, "{text}");
        }
        assert_eq!(with_value("a:\n  b: 1\n", &["a"], "2"), None);
        assert!(object(b"- 1\n").is_err() && object(&[0xff]).is_err() && object(b"\0").is_err());
    }
}
