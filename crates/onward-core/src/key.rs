//! What a step instance *is*: the named parts whose change makes finished work stale.
//!
//! Invariant: a key says what was asked for and what it was made from, never when, where in the log
//! or at which attempt. Labels, time-outs and retries are not in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{digest::Digest, kept::Kept};

/// The parts by name, so that a difference can be named field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyParts {
    /// The rendered command or prompt, the schema, the names of environment values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definition: BTreeMap<String, String>,
    /// Adapter, model, system prompt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent: BTreeMap<String, String>,
    /// Files the step declared to read, and files its templates read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reads: BTreeMap<String, Digest>,
    /// Each step it needs, by address, and the digest of that step's evidence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub needs: BTreeMap<String, Digest>,
}

/// The same as it is kept, in `attempt.started` and in the state of a run.
pub type Key = Kept<KeyParts>;

impl Key {
    /// See [`KeyParts::differences`].
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        if self == now { Vec::new() } else { self.get().differences(&now.get()) }
    }
}

/// One part that differs. `None` = it was not there, or is not there any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Difference {
    /// Dotted, such as `agent.model` or `reads.notes.md`.
    pub part: String,
    pub was: Option<String>,
    pub is: Option<String>,
}

/// A part of what a step is, as its author calls it: `its command` for `definition.run`.
pub fn part_in_words(part: &str) -> String {
    match part.split_once('.') {
        Some(("definition", "run")) => "its command".to_owned(),
        Some(("definition", "prompt")) => "its prompt".to_owned(),
        Some(("definition", key)) => format!("its `{key}`"),
        Some(("agent", key)) => format!("its agent's {key}"),
        Some(("needs", step)) => format!("the output of {step}"),
        Some(("reads" | "writes", path)) => path.to_owned(),
        Some(_) | None => part.to_owned(),
    }
}

/// The same for several.
pub(crate) fn parts_in_words(differences: &[Difference]) -> String {
    let parts: Vec<String> = differences.iter().map(|it| part_in_words(&it.part)).collect();
    parts.join(", ")
}

/// Values longer than this are kept as their digest; the whole text is in the attempt's argv.
const VALUE_BYTES_MAX: usize = 240;

impl KeyParts {
    /// How a text stands in a key: as it is when short, else by size and digest.
    pub fn value(text: &str) -> String {
        if text.len() <= VALUE_BYTES_MAX {
            text.to_owned()
        } else {
            format!("{} bytes, b3:{}", text.len(), Digest::of(text.as_bytes()))
        }
    }

    /// Every part in which `self` (what was) and `now` (what is) differ, in a fixed order.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut all = Vec::new();
        let same_text = |was: &String, is: &String| is_same_text(was, is);
        differ(&mut all, "definition", &self.definition, &now.definition, same_text);
        differ(&mut all, "agent", &self.agent, &now.agent, same_text);
        differ(&mut all, "reads", &self.reads, &now.reads, Digest::eq);
        differ(&mut all, "needs", &self.needs, &now.needs, Digest::eq);
        all
    }
}

/// Where a secret was taken out of a journaled text, any text is the same: a new password makes no
/// finished work stale.
fn is_same_text(was: &str, is: &str) -> bool {
    const MARK: &str = "[redacted:";
    let mut pieces = was.split(MARK);
    let Some(mut rest) = pieces.next().and_then(|first| is.strip_prefix(first)) else {
        return false;
    };
    // Each piece begins with the name of the secret.
    let after_name = |piece: &str| piece.find(']').map_or(piece.len(), |end| end + 1);
    let mut pieces: Vec<&str> = pieces.map(|piece| &piece[after_name(piece)..]).collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

fn differ<V: ToString>(
    all: &mut Vec<Difference>,
    part: &str,
    was: &BTreeMap<String, V>,
    is: &BTreeMap<String, V>,
    same: impl Fn(&V, &V) -> bool,
) {
    let gone = was.keys().filter(|name| !is.contains_key(*name));
    let mut names: Vec<&String> = is.keys().chain(gone).collect();
    names.sort_unstable();
    for name in names {
        let (was, is) = (was.get(name), is.get(name));
        let is_same = match (was, is) {
            (Some(was), Some(is)) => same(was, is),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            let text = |value: Option<&V>| value.map(V::to_string);
            all.push(Difference { part: format!("{part}.{name}"), was: text(was), is: text(is) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(model: &str, notes: Option<&[u8]>) -> KeyParts {
        let agent = [("model".to_owned(), model.to_owned())].into();
        let reads = notes.map(|text| ("notes.md".to_owned(), Digest::of(text))).into_iter();
        KeyParts { agent, reads: reads.collect(), ..KeyParts::default() }
    }

    #[test]
    fn a_difference_names_its_part_with_the_old_and_the_new_value() {
        let found = key("sonnet", Some(b"x")).differences(&key("opus", None));
        let parts: Vec<_> = found.iter().map(|it| it.part.as_str()).collect();
        assert_eq!(parts, ["agent.model", "reads.notes.md"]);
        assert_eq!(found[0].was.as_deref(), Some("sonnet"));
        assert_eq!(found[0].is.as_deref(), Some("opus"));
        assert_eq!(found[1].is, None);
        assert_eq!(key("a", None).differences(&key("a", None)), []);
    }

    #[test]
    fn a_secret_that_was_taken_out_is_no_difference() {
        for (was, is, same) in [
            ("a [redacted:K] b", "a secret b", true),
            ("a [redacted:K] b", "a  b", true),
            ("[redacted:K]x[redacted:L]", "oneXxtwo", true),
            ("a [redacted:K] b", "a secret c", false),
            ("a [redacted:K] b", "b secret b", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("ab", "a", false),
        ] {
            assert_eq!(is_same_text(was, is), same, "{was} / {is}");
        }
    }

    #[test]
    fn a_key_differs_as_its_parts_do() {
        let (one, other) = (key("sonnet", Some(b"x")), key("opus", None));
        let found = Key::from(&one).differences(&Key::from(&other));
        assert_eq!(found, one.differences(&other));
        assert_eq!(Key::from(&one).differences(&Key::from(&one)), []);
    }

    #[test]
    fn a_long_value_is_kept_as_its_digest() {
        assert_eq!(KeyParts::value("make"), "make");
        let long = KeyParts::value(&"x".repeat(241));
        assert!(long.starts_with("241 bytes, b3:"), "{long}");
    }
}
