//! Changing one value of a JSON file and nothing beside it.
//!
//! Invariant: every byte stays that no change is about: order of keys, unknown keys, spaces, the
//! way a number is spelled, the end of the file. A value that is there already is not written
//! again.

use serde_json::Value;

/// The text of a JSON object, changed member by member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet(String);

/// A member of an object: where it begins, its key, and where its value lies.
struct Member {
    start: usize,
    key: String,
    value: (usize, usize),
}

/// An object: its members, and where its braces are.
struct Braces {
    open: usize,
    close: usize,
    members: Vec<Member>,
}

impl Sheet {
    /// `None` when the bytes hold no object.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let json = text.strip_prefix('\u{feff}').unwrap_or(text);
        let is_object = serde_json::from_str::<Value>(json).is_ok_and(|it| it.is_object());
        is_object.then(|| Self(text.to_owned()))
    }

    /// An empty object; what is set comes in the order in which it is set, two spaces deep.
    pub fn new() -> Self {
        Self("{\n}".to_owned())
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    /// The value at a path of keys.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        let start = self.0.find('{')?;
        let mut span = (start, self.0.len());
        for key in path {
            let object = object(&self.0, span.0)?;
            span = object.members.iter().rfind(|it| it.key == *key)?.value;
        }
        let text = if path.is_empty() { &self.0[start..] } else { &self.0[span.0..span.1] };
        serde_json::from_str(text.trim_end()).ok()
    }

    /// Puts a value at a path of keys, in the place of what is there. Objects on the way are made
    /// where they are missing; anything else that stands in their place is replaced.
    pub fn set(&mut self, path: &[&str], value: &Value) {
        if path.is_empty() || self.get(path).as_ref() == Some(value) {
            return;
        }
        let Some(start) = self.0.find('{') else { return };
        self.put(start, path, value);
    }

    fn put(&mut self, start: usize, path: &[&str], value: &Value) {
        let Some(((key, rest), object)) = path.split_first().zip(object(&self.0, start)) else {
            return;
        };
        match object.members.iter().rfind(|it| it.key == *key) {
            Some(member) if !rest.is_empty() && self.0[member.value.0..].starts_with('{') => {
                self.put(member.value.0, rest, value);
            }
            Some(member) => {
                let depth = self.depth(member.start);
                let text = self.rendered(&nested(rest, value), depth.as_deref());
                self.0.replace_range(member.value.0..member.value.1, &text);
            }
            None => self.add(&object, key, &nested(rest, value)),
        }
    }

    /// Takes a member away, if it is there.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((key, above)) = path.split_last() else { return };
        let Some(mut at) = self.0.find('{') else { return };
        for key in above {
            let Some(object) = object(&self.0, at) else { return };
            let Some(member) = object.members.iter().rfind(|it| it.key == *key) else { return };
            at = member.value.0;
        }
        while let Some(object) = object(&self.0, at)
            && let Some(index) = object.members.iter().position(|it| it.key == *key)
        {
            let (member, next) = (&object.members[index], object.members.get(index + 1));
            let before = index.checked_sub(1).and_then(|it| object.members.get(it));
            // With the comma before it, or behind it where it is the first.
            let range = match (before, next) {
                (Some(before), _) => before.value.1..member.value.1,
                (None, Some(next)) => member.start..next.start,
                (None, None) => object.open + 1..object.close,
            };
            self.0.replace_range(range, "");
        }
    }

    /// The same for a member of one object in the list under a key of the file.
    pub fn set_item(&mut self, list: &str, index: usize, key: &str, value: &Value) {
        let Some(items) = self.items(list) else { return };
        let Some(start) = items.get(index).map(|it| it.0) else { return };
        let known = object(&self.0, start).and_then(|it| {
            let (from, to) = it.members.iter().rfind(|it| it.key == key)?.value;
            serde_json::from_str::<Value>(&self.0[from..to]).ok()
        });
        if known.as_ref() != Some(value) {
            self.put(start, &[key], value);
        }
    }

    /// Adds an object to the list under a key of the file, its members in this order.
    pub fn push(&mut self, list: &str, members: &[(&str, Value)]) {
        if self.items(list).is_none() {
            self.set(&[list], &Value::Array(Vec::new()));
        }
        let Some(items) = self.items(list) else { return };
        let Some(start) = self.0.find('{') else { return };
        let Some(found) = object(&self.0, start) else { return };
        let Some(member) = found.members.iter().rfind(|it| it.key == list) else { return };
        let (open, close) = (member.value.0, member.value.1 - 1);
        let depth = match items.last() {
            Some(end) => self.depth(end.0),
            None => self.depth(member.start).map(|it| format!("{it}  ")),
        };
        let lead = match (&depth, items.is_empty()) {
            (Some(depth), true) => format!("\n{depth}"),
            (Some(depth), false) => format!(",\n{depth}"),
            (None, true) => String::new(),
            (None, false) if self.0.contains("\": ") => ", ".to_owned(),
            (None, false) => ",".to_owned(),
        };
        let at = items.last().map_or(open + 1, |end| end.1) + lead.len();
        let tail = depth.as_ref().filter(|_| items.is_empty());
        let tail = tail.map_or(String::new(), |_| format!("\n{}", self.margin(member.start)));
        let old = items.last().map_or(open + 1..close, |end| end.1..end.1);
        self.0.replace_range(old, &format!("{lead}{{}}{tail}"));
        for (key, value) in members {
            let Some(made) = object(&self.0, at) else { return };
            if !made.members.is_empty() {
                self.add(&made, key, value);
                continue;
            }
            let inner = depth.as_ref().map(|it| format!("{it}  "));
            let text = self.rendered(value, inner.as_deref());
            let first = format!("{}{}{text}", Value::from(*key), self.colon());
            let first = match (&depth, inner) {
                (Some(depth), Some(inner)) => format!("\n{inner}{first}\n{depth}"),
                (Some(_) | None, _) => first,
            };
            self.0.insert_str(made.open + 1, &first);
        }
    }

    /// Over several lines, or on one.
    fn is_wide(&self) -> bool {
        self.0.trim_end().contains('\n')
    }

    fn colon(&self) -> &'static str {
        if self.0.contains("\": ") || self.is_wide() { ": " } else { ":" }
    }

    /// Where the values of the list under a key of the file lie; `None` where there is no list.
    fn items(&self, list: &str) -> Option<Vec<(usize, usize)>> {
        let bytes = self.0.as_bytes();
        let top = object(&self.0, self.0.find('{')?)?;
        let (open, _) = top.members.iter().rfind(|it| it.key == list)?.value;
        if bytes.get(open) != Some(&b'[') {
            return None;
        }
        let mut items = Vec::new();
        let mut at = blank(bytes, open + 1);
        while *bytes.get(at)? != b']' {
            if bytes[at] == b',' {
                at = blank(bytes, at + 1);
            }
            let end = value(bytes, at)?;
            items.push((at, end));
            at = blank(bytes, end);
        }
        Some(items)
    }

    fn add(&mut self, object: &Braces, key: &str, value: &Value) {
        let depth = match object.members.first() {
            Some(first) => self.depth(first.start),
            None if self.is_wide() => Some(format!("{}  ", self.margin(object.open))),
            None => None,
        };
        let text = self.rendered(value, depth.as_deref());
        let name = Value::from(key).to_string();
        let colon = self.colon();
        let lead = match (&depth, object.members.is_empty()) {
            (Some(depth), true) => format!("\n{depth}"),
            (Some(depth), false) => format!(",\n{depth}"),
            (None, true) => String::new(),
            (None, false) if colon == ":" => ",".to_owned(),
            (None, false) => ", ".to_owned(),
        };
        let mut member = format!("{lead}{name}{colon}{text}");
        let end = object.members.last().map_or(object.open + 1, |last| last.value.1);
        if object.members.is_empty() && depth.is_some() {
            member.push('\n');
            member.push_str(&self.margin(object.open));
            self.0.replace_range(end..object.close, &member);
        } else {
            self.0.insert_str(end, &member);
        }
    }

    /// The spaces before a place, when nothing else stands before it on its line.
    fn depth(&self, at: usize) -> Option<String> {
        let line = self.0[..at].rfind('\n')? + 1;
        let is_first = self.0[line..at].trim_matches([' ', '\t']).is_empty();
        is_first.then(|| self.0[line..at].to_owned())
    }

    /// The spaces that the line of a place begins with.
    fn margin(&self, at: usize) -> String {
        let line = self.0[..at].rfind('\n').map_or(0, |it| it + 1);
        let rest = self.0[line..at].trim_start_matches([' ', '\t']);
        self.0[line..at - rest.len()].to_owned()
    }

    /// Over several lines where the object around it is.
    fn rendered(&self, value: &Value, depth: Option<&str>) -> String {
        match depth {
            Some(depth) => {
                let text = serde_json::to_string_pretty(value).unwrap_or_default();
                text.replace('\n', &format!("\n{depth}"))
            }
            None if self.0.contains("\": ") => {
                // Short enough for one line, and still to be read.
                spaced(value)
            }
            None => value.to_string(),
        }
    }
}

impl Default for Sheet {
    fn default() -> Self {
        Self::new()
    }
}

/// The value inside of objects with these keys.
fn nested(path: &[&str], value: &Value) -> Value {
    let wrap = |inner: Value, key: &&str| {
        Value::Object([((*key).to_owned(), inner)].into_iter().collect())
    };
    path.iter().rev().fold(value.clone(), wrap)
}

fn spaced(value: &Value) -> String {
    match value {
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(spaced).collect();
            format!("[{}]", list.join(", "))
        }
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), spaced(value))
            };
            let members: Vec<String> = map.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// The object that begins at a place. The text is known to be JSON.
fn object(text: &str, open: usize) -> Option<Braces> {
    let bytes = text.as_bytes();
    if bytes.get(open) != Some(&b'{') {
        return None;
    }
    let mut members = Vec::new();
    let mut at = blank(bytes, open + 1);
    while *bytes.get(at)? != b'}' {
        if bytes[at] == b',' {
            at = blank(bytes, at + 1);
        }
        let start = at;
        let end = string(bytes, at)?;
        let key = serde_json::from_str(&text[at..end]).ok()?;
        at = blank(bytes, blank(bytes, end) + 1);
        let end = value(bytes, at)?;
        members.push(Member { start, key, value: (at, end) });
        at = blank(bytes, end);
    }
    Some(Braces { open, close: at, members })
}

fn blank(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|it| it.is_ascii_whitespace()).count()
}

/// Where the string ends that begins here.
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    loop {
        match bytes.get(end)? {
            b'\\' => end += 2,
            b'"' => return Some(end + 1),
            _ => end += 1,
        }
    }
}

/// Where the value ends that begins here.
fn value(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut end = at;
    loop {
        match bytes.get(end) {
            Some(b'"') => {
                end = string(bytes, end)?;
                if depth == 0 {
                    return Some(end);
                }
                continue;
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') if depth <= 1 => {
                // A number or a word ends where the object around it does.
                return Some(if depth == 0 { end } else { end + 1 });
            }
            Some(b'}' | b']') => depth -= 1,
            Some(byte) if depth == 0 && (*byte == b',' || byte.is_ascii_whitespace()) => {
                return Some(end);
            }
            Some(_) => {}
            None => return None,
        }
        end += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edited(text: &str, edit: impl FnOnce(&mut Sheet)) -> String {
        let mut sheet = Sheet::read(text.as_bytes()).unwrap();
        edit(&mut sheet);
        String::from_utf8(sheet.into_bytes()).unwrap()
    }

    #[test]
    fn one_value_changes_and_nothing_beside_it() {
        let text = "{\n  \"id\": \"1\",\n  \"odd\" :  1.50e2,\n  \"status\": \"pending\",\n  \
             \"blocks\": [\n    \"3\"\n  ],\n  \"metadata\": {\"a\":1}\n}";
        let done = edited(text, |it| it.set(&["status"], &json!("completed")));
        assert_eq!(done, text.replace("pending", "completed"));
        let inner = edited(text, |it| it.set(&["metadata", "b"], &json!([1])));
        assert_eq!(inner, text.replace("{\"a\":1}", "{\"a\":1, \"b\": [1]}"));
        assert_eq!(edited(text, |it| it.set(&["status"], &json!("pending"))), text);
        let gone = edited(text, |it| it.remove(&["odd"]));
        assert_eq!(gone, text.replace(",\n  \"odd\" :  1.50e2", ""));
        let first = edited(text, |it| it.remove(&["id"]));
        assert_eq!(first, text.replace("\"id\": \"1\",\n  ", ""));
        assert_eq!(edited(text, |it| it.remove(&["metadata", "none"])), text);
    }

    #[test]
    fn what_is_missing_is_added_at_the_end_in_the_manner_of_the_file() {
        let wide = "{\n  \"id\": \"1\"\n}\n";
        let set = |it: &mut Sheet| it.set(&["metadata", "phase_signals", "p0"], &json!("PASS"));
        assert_eq!(
            edited(wide, set),
            "{\n  \"id\": \"1\",\n  \"metadata\": {\n    \"phase_signals\": {\n      \"p0\": \
             \"PASS\"\n    }\n  }\n}\n"
        );
        let narrow = edited("{\"id\":\"1\"}", |it| it.set(&["a", "b"], &json!({"c": 1})));
        assert_eq!(narrow, "{\"id\":\"1\",\"a\":{\"b\":{\"c\":1}}}");
        assert_eq!(edited("{}", |it| it.set(&["a"], &json!(1))), "{\"a\":1}");
        let replaced = edited("{\"a\":null}", |it| it.set(&["a", "b"], &json!(1)));
        assert_eq!(replaced, "{\"a\":{\"b\":1}}");
        let mut made = Sheet::new();
        made.set(&["b"], &json!(1));
        made.set(&["a"], &json!([]));
        assert_eq!(made.into_bytes(), b"{\n  \"b\": 1,\n  \"a\": []\n}");
    }

    #[test]
    fn objects_of_a_list_are_changed_and_added_in_the_manner_of_the_file() {
        let wide = "{\n  \"list\": [\n    {\n      \"z\": 1,\n      \"a\": null\n    }\n  ]\n}\n";
        let set = edited(wide, |it| it.set_item("list", 0, "a", &json!("x")));
        assert_eq!(set, wide.replace("null", "\"x\""));
        assert_eq!(edited(wide, |it| it.set_item("list", 1, "a", &json!("x"))), wide);
        assert_eq!(edited(wide, |it| it.set_item("none", 0, "a", &json!("x"))), wide);
        let more = [("z", json!(2)), ("a", json!([1]))];
        let pushed = edited(wide, |it| it.push("list", &more));
        let item = ",\n    {\n      \"z\": 2,\n      \"a\": [\n        1\n      ]\n    }\n  ]";
        assert_eq!(pushed, wide.replace("\n  ]", item));
        let narrow = edited("{\"list\":[{\"z\":1}]}", |it| it.push("list", &more));
        assert_eq!(narrow, "{\"list\":[{\"z\":1},{\"z\":2,\"a\":[1]}]}");
        let spaced = edited("{\"list\": []}", |it| it.push("list", &more));
        assert_eq!(spaced, "{\"list\": [{\"z\": 2, \"a\": [1]}]}");
        let made = edited("{\n  \"id\": 1\n}", |it| it.push("list", &[("z", json!(2))]));
        let list = "\"list\": [\n    {\n      \"z\": 2\n    }\n  ]";
        assert_eq!(made, format!("{{\n  \"id\": 1,\n  {list}\n}}"));
    }

    #[test]
    fn what_is_no_object_is_no_sheet() {
        for text in ["", "[]", "1", "{", "{\"a\":}", "{} x"] {
            assert_eq!(Sheet::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Sheet::read(&[0xff]), None);
    }

    proptest! {
        #[test]
        fn what_is_set_is_there_and_the_rest_is_as_it_was(
            members in prop::collection::vec(
                ("[a-c\"\\\\é]{0,3}", "[ -~é\n]{0,6}", any::<i32>()),
                0..5,
            ),
            pretty: bool,
            key in "[a-c\"]{0,2}",
            inner in prop::option::of("[a-c]"),
        ) {
            let map: serde_json::Map<String, Value> = members
                .iter()
                .map(|(key, text, number)| (key.clone(), json!({"t": text, "n": [number, null]})))
                .collect();
            let before = Value::Object(map);
            let text = if pretty { format!("{before:#}") } else { before.to_string() };
            let path = [Some(key.as_str()), inner.as_deref()];
            let path: Vec<&str> = path.into_iter().flatten().collect();
            let mut sheet = Sheet::read(text.as_bytes()).unwrap();
            sheet.set(&path, &json!({"new": true}));
            let after = serde_json::from_slice::<Value>(&sheet.clone().into_bytes()).unwrap();
            prop_assert_eq!(sheet.get(&path), Some(json!({"new": true})));
            for (name, value) in before.as_object().unwrap() {
                if *name != key {
                    prop_assert_eq!(after.get(name), Some(value));
                }
            }
            sheet.remove(&path);
            prop_assert_eq!(sheet.get(&path), None);
            prop_assert!(Sheet::read(&sheet.into_bytes()).is_some());
        }
    }
}
