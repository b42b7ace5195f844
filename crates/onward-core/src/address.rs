//! Where a step instance stands in its run, such as `round[2]/research[A]/score`.
//!
//! Invariant: an address is segments joined by `/`; a segment is a step id, followed by `[key]`
//! when it is one item of an `each` or one turn of a `repeat`. Keys are percent-encoded, so that no
//! key can pretend to be another segment, climb out of a directory or need quoting.

use std::{borrow::Borrow, fmt, fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::id::StepId;

/// Cheap to clone; ordered as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(Arc<str>);

impl Address {
    /// The run itself: the scope of the top-level steps. Shown as nothing.
    pub fn root() -> Self {
        Self("".into())
    }

    /// Takes text that was an address before: from our own journal or a person's argument. Whether
    /// such an instance exists is for the run to say.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// As one word of a command for a shell, in which brackets are a pattern.
    pub fn in_commands(&self) -> String {
        if self.0.contains(['[', '%']) { format!("'{}'", self.0) } else { self.0.to_string() }
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The address of step `id` in the scope `self`.
    #[must_use]
    pub fn child(&self, id: &StepId) -> Self {
        self.child_named(id.as_str())
    }

    /// The same, where the id is known by its text only.
    #[must_use]
    pub(crate) fn child_named(&self, id: &str) -> Self {
        if self.is_root() { Self(id.into()) } else { Self(format!("{}/{id}", self.0).into()) }
    }

    /// The address of the item `key` of the `each` group `self`.
    #[must_use]
    pub fn item(&self, key: &str) -> Self {
        Self(format!("{}[{}]", self.0, encode_key(key)).into())
    }

    /// The address of turn `turn` of the loop `self`, counted from 1.
    #[must_use]
    pub fn turn(&self, turn: u32) -> Self {
        Self(format!("{}[{turn}]", self.0).into())
    }

    /// The segment-wise parent: `a/b[1]/c` is in `a/b[1]`, which is in `a`. The root has none.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        Some(self.0.rsplit_once('/').map_or_else(Self::root, |(parent, _)| Self(parent.into())))
    }

    /// For `a/b[1]`: the group or loop `a/b` and the key `1` as written.
    pub fn group_and_key(&self) -> Option<(Self, &str)> {
        let last = self.0.rfind('/').map_or(0, |slash| slash + 1);
        let bracket = last + self.0[last..].find('[')?;
        let key = self.0[bracket + 1..].strip_suffix(']')?;
        Some((Self(self.0[..bracket].into()), key))
    }

    /// The last segment without its key.
    pub fn last_id(&self) -> &str {
        let last = self.0.rsplit('/').next().unwrap_or("");
        last.split('[').next().unwrap_or(last)
    }

    /// The ids alone: which step of the workflow it is an instance of.
    pub fn declared(&self) -> String {
        let segments = self.as_str().split('/');
        let ids = segments.map(|segment| segment.split('[').next().unwrap_or(segment));
        ids.collect::<Vec<_>>().join("/")
    }

    /// Whether `self` is `ancestor` or lies below it.
    pub fn is_within(&self, ancestor: &Self) -> bool {
        let rest = self.0.strip_prefix(&*ancestor.0);
        ancestor.is_root()
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
    }

    /// A file name for this instance: one component, and different for different addresses even
    /// where the file system folds case.
    pub fn file_name(&self) -> String {
        let mut name = String::with_capacity(self.0.len());
        for c in self.0.chars() {
            match c {
                '/' => name.push('~'),
                c if c.is_ascii_uppercase() => percent(&mut name, c as u8),
                c => name.push(c),
            }
        }
        if name.len() > FILE_NAME_BYTES_MAX {
            let digest = crate::digest::Digest::of(self.0.as_bytes());
            name.truncate(FILE_NAME_BYTES_MAX);
            write!(name, "-{digest}").expect("a string takes all");
        }
        name
    }
}

/// Longer names are cut and told apart by a digest; file systems stop at 255.
const FILE_NAME_BYTES_MAX: usize = 150;

/// Letters, digits, `_`, `-`, `.`, `+`, `@`, `:` and `,` stand for themselves, except that a key of
/// dots only is encoded whole; every other byte becomes `%XX`.
pub fn encode_key(key: &str) -> String {
    let mut encoded = String::with_capacity(key.len());
    let only_dots = key.bytes().all(|byte| byte == b'.');
    for byte in key.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"_-.+@:,".contains(&byte);
        if plain && !only_dots {
            encoded.push(byte as char);
        } else {
            percent(&mut encoded, byte);
        }
    }
    encoded
}

fn percent(text: &mut String, byte: u8) {
    write!(text, "%{byte:02X}").expect("a string takes all");
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Borrow<str> for Address {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> StepId {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_built_from_the_outside_in() {
        let score = Address::root().child(&id("round")).turn(2).child(&id("research")).item("A");
        let score = score.child(&id("score"));
        assert_eq!(score.as_str(), "round[2]/research[A]/score");
        assert_eq!(score.last_id(), "score");
        assert_eq!(score.parent().unwrap().as_str(), "round[2]/research[A]");
        assert_eq!(score.parent().unwrap().last_id(), "research");
        assert_eq!(Address::root().child(&id("a")).parent(), Some(Address::root()));
        assert_eq!(Address::root().parent(), None);
    }

    #[test]
    fn a_turn_or_item_knows_its_group_and_key() {
        let of = |text: &str| {
            let address = Address::from_text(text);
            address.group_and_key().map(|(group, key)| (group.to_string(), key.to_owned()))
        };
        assert_eq!(of("a[1]/b[x]"), Some(("a[1]/b".into(), "x".into())));
        assert_eq!(of("b[x]"), Some(("b".into(), "x".into())));
        assert_eq!(of("a[1]/b"), None);
    }

    #[test]
    fn a_key_cannot_leave_its_segment() {
        for (key, encoded) in [
            ("..", "%2E%2E"),
            ("a/b", "a%2Fb"),
            ("a]b[c", "a%5Db%5Bc"),
            ("é", "%C3%A9"),
            ("100%", "100%25"),
            ("v1.2", "v1.2"),
        ] {
            assert_eq!(encode_key(key), encoded);
        }
    }

    #[test]
    fn within_follows_segments_and_not_letters() {
        let within = |a: &str, b: &str| Address::from_text(a).is_within(&Address::from_text(b));
        assert!(within("a/b", "a"));
        assert!(within("a[1]/b", "a"));
        assert!(within("a[1]/b", "a[1]"));
        assert!(within("a", "a"));
        assert!(within("a", ""));
        assert!(!within("ab", "a"));
        assert!(!within("a[11]/b", "a[1]"));
    }

    #[test]
    fn file_names_differ_where_case_is_folded_and_stay_short() {
        let name = |text: &str| Address::from_text(text).file_name();
        assert_eq!(name("r[2]/s[A]"), "r[2]~s[%41]");
        assert_ne!(name("s[A]").to_lowercase(), name("s[a]").to_lowercase());
        let (long, longer) = ("x".repeat(300), "x".repeat(301));
        assert!(name(&long).len() < 200);
        assert_ne!(name(&long), name(&longer));
    }
}
