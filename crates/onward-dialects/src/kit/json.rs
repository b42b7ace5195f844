//! JSON of foreign files: what can be read is read, and what is odd is told.
//!
//! Invariant: a missing value and `null` are the same, and silent. A value of another type than the
//! one asked for is noted once and then as good as missing.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use onward_core::{finding::Finding, time::Timestamp};
use serde_json::{Map, Value};

use super::{age, code::Odd, path::shown};

/// The object that a file holds, or why it holds none.
pub fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("it holds {}, not an object", kind(&other))),
        Err(error) => Err(error.to_string()),
    }
}

/// What was odd so far, with the file it was in.
#[derive(Debug, Default)]
pub struct Oddities(Mutex<Noted>);

/// Each once, in the order in which it was met.
#[derive(Debug, Default)]
struct Noted {
    all: Vec<(String, String)>,
    known: BTreeSet<(String, String)>,
}

impl Oddities {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, path: &str, message: String) {
        let entry = (path.to_owned(), message);
        let mut noted = self.noted();
        if noted.known.insert(entry.clone()) {
            noted.all.push(entry);
        }
    }

    /// Notes a file of which nothing can be used, and why.
    pub fn unread(&self, path: &str, why: &str) {
        self.note(path, format!("it cannot be read ({}), and was passed over", shown(why)));
    }

    pub fn findings(&self) -> Vec<Finding> {
        let noted = self.noted();
        let finding = |(path, message): &(String, String)| {
            Odd::OddValue.finding(message.clone()).at_path(path.clone())
        };
        noted.all.iter().map(finding).collect()
    }
}

/// An object of a file, asked field by field.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    pub map: &'a Map<String, Value>,
    /// The file, as findings name it.
    pub path: &'a str,
    pub odd: &'a Oddities,
}

impl<'a> Object<'a> {
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Text, or a number as text.
    pub fn text(&self, key: &str) -> Option<String> {
        let value = self.get(key)?;
        plain(value).or_else(|| self.odd(key, value, "text"))
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        value.as_bool().or_else(|| self.odd(key, value, "true or false"))
    }

    /// A whole number, also one in quotes.
    pub fn count(&self, key: &str) -> Option<u32> {
        let value = self.get(key)?;
        let number = match value.as_str() {
            Some(text) => text.trim().parse().ok(),
            None => value.as_u64().and_then(|it| u32::try_from(it).ok()),
        };
        number.or_else(|| self.odd(key, value, "a whole number"))
    }

    pub fn moment(&self, key: &str) -> Option<Timestamp> {
        let value = self.get(key)?;
        let moment = value.as_str().and_then(age::moment);
        moment.or_else(|| self.odd(key, value, "a moment (ISO 8601)"))
    }

    /// A moment, or the beginning of a day. An empty text stands for none.
    pub fn moment_or_day(&self, key: &str) -> Option<Timestamp> {
        let value = self.get(key)?;
        let text = value.as_str().unwrap_or("-").trim();
        let day = || age::moment(&format!("{text}T00:00:00Z"));
        let found = age::moment(text).or_else(day);
        if text.is_empty() {
            return None;
        }
        found.or_else(|| self.odd(key, value, "a moment (ISO 8601)"))
    }

    /// One of the words that `of` knows; another one is noted as no `wanted`.
    pub fn word<T>(&self, key: &str, wanted: &str, of: impl Fn(&str) -> Option<T>) -> Option<T> {
        let word = self.text(key).filter(|it| !it.trim().is_empty())?;
        of(&word).or_else(|| self.unknown(key, &word, wanted))
    }

    /// Notes a word that is no `wanted`.
    pub fn unknown<T>(&self, key: &str, word: &str, wanted: &str) -> Option<T> {
        let word = shown(word);
        self.odd.note(self.path, format!("`{key}` says `{word}`, which is not a {wanted}"));
        None
    }

    /// The entries of a list; none when there is no list.
    pub fn list(&self, key: &str) -> &'a [Value] {
        match self.get(key) {
            None => &[],
            Some(Value::Array(list)) => list,
            Some(other) => self.odd(key, other, "a list").unwrap_or(&[]),
        }
    }

    /// The texts of a list.
    pub fn texts(&self, key: &str) -> Vec<String> {
        let entry = |it: &Value| plain(it).or_else(|| self.odd(key, it, "a list of texts"));
        self.list(key).iter().filter_map(entry).collect()
    }

    /// The texts of the first of these lists that is there. One text alone, with commas or without,
    /// is a list as well.
    pub fn texts_of(&self, keys: &[&str]) -> Vec<String> {
        let Some(key) = keys.iter().find(|key| self.get(key).is_some()) else { return Vec::new() };
        match self.get(key).and_then(Value::as_str) {
            Some(text) => {
                let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }
            None => self.texts(key),
        }
    }

    /// The objects of a list.
    pub fn objects(&self, key: &str) -> Vec<Object<'a>> {
        let entry = |it: &'a Value| match it.as_object() {
            Some(map) => Some(Object { map, ..*self }),
            None => self.odd(key, it, "a list of objects"),
        };
        self.list(key).iter().filter_map(entry).collect()
    }

    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        let value = self.get(key)?;
        match value.as_object() {
            Some(map) => Some(Object { map, ..*self }),
            None => self.odd(key, value, "an object"),
        }
    }

    /// Notes that it should be a task, and is none.
    pub fn nameless(&self) {
        self.odd.note(self.path, "a task has no id, and is passed over".to_owned());
    }

    /// Notes that it has another type than the one that is wanted.
    pub fn odd<T>(&self, key: &str, found: &Value, wanted: &str) -> Option<T> {
        let found = kind(found);
        self.odd.note(self.path, format!("`{key}` is {found}, and should be {wanted}"));
        None
    }
}

/// A text, also one that is written as a number.
pub fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_type_is_noted_once_and_what_is_missing_is_not() {
        let text = br#"{"a":1,"b":[1,"x",{}],"c":"7","d":null,"e":{"f":true}}"#;
        let (map, odd) = (object(text).unwrap(), Oddities::default());
        let it = Object { map: &map, path: "x.json", odd: &odd };
        assert_eq!(it.text("a").as_deref(), Some("1"));
        assert_eq!(it.texts("b"), ["1", "x"]);
        assert_eq!((it.count("c"), it.count("d"), it.count("none")), (Some(7), None, None));
        assert_eq!(it.object("e").and_then(|e| e.flag("f")), Some(true));
        assert_eq!((it.list("a").len(), it.flag("a"), it.flag("a")), (0, None, None));
        let findings = odd.findings();
        let messages: Vec<&str> = findings.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "`b` is an object, and should be a list of texts",
                "`a` is a number, and should be a list",
                "`a` is a number, and should be true or false",
            ]
        );
    }

    #[test]
    fn a_file_that_holds_no_object_says_what_it_holds() {
        assert!(object("\u{feff}{}".as_bytes()).is_ok());
        assert_eq!(object(b"[]").unwrap_err(), "it holds a list, not an object");
        for broken in [&b""[..], b"{\"a\":", b"\0\0\0", b"{} {}", &[b'['; 10_000]] {
            assert!(object(broken).is_err());
        }
    }
}
