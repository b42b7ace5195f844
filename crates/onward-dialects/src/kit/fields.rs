//! Some fields of a JSON object, without the rest.
//!
//! Invariant: total and pure; of two fields with one name the last counts. A log has millions of
//! lines, and most of what is in them says nothing here: that is passed over, and text is borrowed.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize as _,
    de::{
        DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::Value;

/// The name of a field; and where it holds an object, the names of what is wanted of that. With
/// none, all of it is.
pub type Wanted = (&'static str, &'static [&'static str]);

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    Text(Cow<'a, str>),
    Object(Fields<'a>),
    Other(Value),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields<'a>(Vec<(&'static str, Field<'a>)>);

impl<'a> Fields<'a> {
    /// `None` when the text is no JSON object.
    pub fn of(text: &'a str, wanted: &'static [Wanted]) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = json.deserialize_map(Outer(wanted)).ok()?;
        json.end().ok()?;
        Some(fields)
    }

    pub fn get(&self, name: &str) -> Option<&Field<'a>> {
        self.0.iter().rev().find(|it| it.0 == name).map(|it| &it.1)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }
}

impl<'a> Field<'a> {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Object(_) | Self::Other(_) => None,
        }
    }

    pub fn object(&self) -> Option<&Fields<'a>> {
        match self {
            Self::Object(fields) => Some(fields),
            Self::Text(_) | Self::Other(_) => None,
        }
    }

    pub fn other(&self) -> Option<&Value> {
        match self {
            Self::Other(value) => Some(value),
            Self::Text(_) | Self::Object(_) => None,
        }
    }
}

struct Outer(&'static [Wanted]);

impl<'de> Visitor<'de> for Outer {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Vec::with_capacity(8);
        let known = |key: &str| self.0.iter().find(|it| it.0 == key).copied();
        while let Some(wanted) = map.next_key_seed(Key(known))? {
            match wanted {
                Some((name, inner)) => fields.push((name, map.next_value_seed(Inner(inner))?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Fields(fields))
    }
}

/// A name, looked up without being kept.
struct Key<F>(F);

impl<'de, T, F: Fn(&str) -> T> DeserializeSeed<'de> for Key<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<T, D::Error> {
        key.deserialize_str(self)
    }
}

impl<T, F: Fn(&str) -> T> Visitor<'_> for Key<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<T, E> {
        Ok((self.0)(key))
    }
}

#[derive(Clone, Copy)]
struct Inner(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Inner {
    type Value = Field<'de>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Field<'de>, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Inner {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Field<'de>, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Field<'de>, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Field<'de>, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Field<'de>, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Field<'de>, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Field<'de>, E> {
        Ok(Field::Other(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Field<'de>, E> {
        Ok(Field::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Field<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(Field::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field<'de>, A::Error> {
        if self.0.is_empty() {
            return Value::deserialize(MapAccessDeserializer::new(map)).map(Field::Other);
        }
        let mut fields = Vec::new();
        let known = |key: &str| self.0.iter().find(|it| **it == key).copied();
        while let Some(wanted) = map.next_key_seed(Key(known))? {
            match wanted {
                Some(name) => fields.push((name, map.next_value_seed(Self(&[]))?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Field::Object(Fields(fields)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WANTED: &[Wanted] = &[("a", &[]), ("b", &["c"])];

    #[test]
    fn what_is_wanted_is_there_whatever_it_is_and_the_last_one_counts() {
        let text =
            r#"{"x": [1, {"a": 2}], "a": "one", "b": {"c": {"d": 1}, "e": 2}, "a": "two\n"}"#;
        let all = Fields::of(text, WANTED).unwrap();
        assert_eq!(all.text("a"), Some("two\n"));
        let inner = all.get("b").and_then(Field::object).unwrap();
        assert_eq!(inner.get("c").and_then(Field::other), Some(&json!({"d": 1})));
        assert_eq!((inner.get("e"), all.get("x")), (None, None));
        let of = |text: &'static str| Fields::of(text, WANTED);
        for value in ["null", "true", "-1", "1.5", "[1]", "{\"c\": 1}"] {
            let text = format!("{{\"a\": {value}}}");
            let whole: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                Fields::of(&text, WANTED).unwrap().get("a").unwrap().other(),
                Some(&whole["a"])
            );
        }
        for odd in ["", "[]", "1", "{\"a\": }", "{} {}", "{\"a\": 1"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }
}
