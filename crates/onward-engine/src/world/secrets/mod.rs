//! What must never be written down: values of variables that are named like secrets, passwords in
//! addresses, tokens that are known by their shape.
//!
//! Invariant: in an event that went through [`Redactor::clean`], and in output that went through
//! [`Redactor::bytes`], no text that came from a command, an agent or a person holds such a value,
//! in any of its forms; `[redacted:NAME]` stands in its place. Names, addresses and digests are
//! ours and are left as they are.

mod events;
mod kept;
mod names;
mod shapes;

use std::{borrow::Cow, collections::BTreeMap, ffi::OsString, io, ops::Range, path::Path};

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use self::{
    kept::{Kept, Sieve},
    names::{Secret, forms, secret_of},
};

/// The name of what is known by its shape alone.
pub const TOKEN: &str = "token";
/// A stream holds no more back than this.
const HELD_BYTES_MAX: usize = 64 << 10;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    secrets: Vec<Secret>,
    /// Every form of each, in the order of the finder's patterns.
    forms: Vec<(String, String)>,
    finder: Option<AhoCorasick>,
    kept: Kept,
    sieve: Sieve,
    /// The longest form that holds a blank: so much of a stream cannot be judged yet.
    spaced_bytes_max: usize,
}

impl Redactor {
    pub fn of_environment(env: &[(OsString, OsString)]) -> Self {
        let mut redactor = Self::default();
        let text = |it: &OsString| it.to_str().map(str::to_owned);
        let env = env.iter().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        redactor.learn(env);
        redactor
    }

    /// With what earlier lives of a run knew.
    pub fn of_run(env: &[(OsString, OsString)], run_dir: &Path) -> Self {
        let mut redactor = Self::of_environment(env);
        redactor.kept = Kept::read(run_dir);
        redactor.look_for_kept();
        redactor
    }

    /// Takes secrets in from more variables; true when there were any that are new.
    pub fn learn(&mut self, env: impl IntoIterator<Item = (String, String)>) -> bool {
        let before = self.secrets.len();
        for (name, value) in env {
            let is_new = |it: &Secret| !self.secrets.iter().any(|old| old.value == it.value);
            self.secrets.extend(secret_of(&name, &value).filter(is_new));
        }
        if self.secrets.len() == before {
            return false;
        }
        let all = self.secrets.iter();
        let all = all.flat_map(|it| forms(&it.value).into_iter().map(|form| (&it.name, form)));
        let mut by_form: BTreeMap<String, String> = BTreeMap::new();
        for (name, form) in all {
            by_form.entry(form).or_insert_with(|| name.clone());
        }
        self.forms = by_form.into_iter().map(|(form, name)| (name, form)).collect();
        // The longest: a token that begins with another is that token and not the other.
        self.finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(self.forms.iter().map(|it| &it.1))
            .ok();
        let spaced = self.forms.iter().filter(|it| it.1.contains(is_blank));
        self.spaced_bytes_max = spaced.map(|it| it.1.len()).max().unwrap_or(0);
        self.look_for_kept();
        true
    }

    fn look_for_kept(&mut self) {
        if !self.kept.is_empty() {
            self.sieve = self.kept.without(&self.forms);
        }
    }

    /// Writes down by which digests this life's secrets are known again. The file is replaced only
    /// when there is something new.
    pub fn keep(&mut self, run_dir: &Path) -> io::Result<()> {
        if self.kept.add(&self.forms)? { self.kept.write(run_dir) } else { Ok(()) }
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // What goes is whole characters, and what comes is plain.
            Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
        }
    }

    pub fn bytes<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        let found = self.find(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut clean = Vec::with_capacity(text.len());
        let mut from = 0;
        for (range, name) in found {
            clean.extend_from_slice(&text[from..range.start]);
            clean.extend_from_slice(format!("[redacted:{name}]").as_bytes());
            from = range.end;
        }
        clean.extend_from_slice(&text[from..]);
        Cow::Owned(clean)
    }

    /// Everything secret in a text, without overlaps, in order.
    fn find(&self, text: &[u8]) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        if let Some(finder) = &self.finder {
            let name = |index: usize| self.forms[index].0.as_str();
            found.extend(
                finder.find_iter(text).map(|it| (it.range(), name(it.pattern().as_usize()))),
            );
        }
        if !self.sieve.is_empty() {
            found.extend(self.sieve.find(text));
        }
        found.extend(shapes::find(text).into_iter().map(|range| (range, TOKEN)));
        // Where several begin at one place, the longest counts; a named secret before a token.
        found.sort_by_key(|(range, name)| (range.start, usize::MAX - range.end, *name == TOKEN));
        let mut end = 0;
        found.retain_mut(|(range, _)| {
            if range.end <= end {
                return false;
            }
            range.start = range.start.max(end);
            end = range.end;
            true
        });
        found
    }

    /// How much of a stream can be judged: what follows may be the beginning of a secret.
    pub fn judged(&self, stream: &[u8]) -> usize {
        let word = stream.iter().rposition(|byte| is_blank(char::from(*byte)));
        let spaced = self.spaced_bytes_max.max(self.sieve.bytes_max());
        let held = stream.len() - word.map_or(0, |at| at + 1);
        // A stream of one endless word goes on all the same.
        if held.max(spaced) > HELD_BYTES_MAX {
            return stream.len();
        }
        if held >= spaced {
            return stream.len() - held;
        }
        let cut = (stream.len() + 1).saturating_sub(spaced);
        let is_cut = |it: &&(Range<usize>, &str)| it.0.start < cut && cut < it.0.end;
        self.find(stream).iter().find(is_cut).map_or(cut, |it| it.0.start)
    }

    /// The name of the first secret in a value, wherever it stands.
    pub fn name_in(&self, value: &Value) -> Option<&str> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            Value::String(text) => Some(self.find(text.as_bytes()).first()?.1),
            Value::Array(items) => items.iter().find_map(|item| self.name_in(item)),
            Value::Object(fields) => fields.iter().find_map(|(key, field)| {
                let in_key = self.find(key.as_bytes()).first().map(|it| it.1);
                in_key.or_else(|| self.name_in(field))
            }),
        }
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(all: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        all.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn redactor() -> Redactor {
        Redactor::of_environment(&env(&[
            ("API_KEY", "sk-abcdef"),
            ("LONG_TOKEN", "sk-abcdef-ghi"),
            ("db_password", "hunter22"),
            ("SHORT_KEY", "abc"),
            ("HOME", "plainvalue"),
        ]))
    }

    #[test]
    fn only_what_is_named_like_a_secret_is_one() {
        let redactor = redactor();
        let check = |text: &str, clean: &str| assert_eq!(redactor.text(text), clean);
        check("-H sk-abcdef!", "-H [redacted:API_KEY]!");
        check("sk-abcdef-ghi", "[redacted:LONG_TOKEN]");
        check("hunter22hunter22", "[redacted:db_password][redacted:db_password]");
        check("abc plainvalue", "abc plainvalue");
        let value = serde_json::json!({"a": [1, null, "x hunter22"]});
        assert_eq!(redactor.name_in(&value), Some("db_password"));
        assert_eq!(redactor.name_in(&serde_json::json!({"hunter22": 1})), Some("db_password"));
        assert_eq!(redactor.name_in(&serde_json::json!(["abc"])), None);
        assert_eq!(Redactor::default().text("sk-abcdef"), "sk-abcdef");
    }

    #[test]
    fn what_an_earlier_life_knew_is_found_without_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = Redactor::of_run(&env(&[("A_TOKEN", "tok-5f0c9a77d1")]), dir.path());
        first.keep(dir.path()).unwrap();
        let second = Redactor::of_run(&env(&[("B_TOKEN", "another-one")]), dir.path());
        assert_eq!(
            second.text("x tok-5f0c9a77d1, another-one"),
            "x [redacted:A_TOKEN], [redacted:B_TOKEN]"
        );
        assert_eq!(
            second.text("eyB0b2stNWYwYzlhNzdkMSB9"),
            "eyB[redacted:A_TOKEN]SB9",
            "in base64"
        );
    }

    #[test]
    fn a_stream_is_judged_up_to_its_last_whole_word() {
        let redactor = redactor();
        assert_eq!(redactor.judged(b"one two sk-ab"), 8);
        assert_eq!(redactor.judged(b"one two "), 8);
        assert_eq!(redactor.judged(b"sk-ab"), 0);
        assert_eq!(redactor.judged(&vec![b'x'; HELD_BYTES_MAX + 1]), HELD_BYTES_MAX + 1);
        let spaced = Redactor::of_environment(&env(&[("PASSPHRASE", "correct horse staple")]));
        assert_eq!(spaced.judged(b"it is correct horse stap"), 5);
        // Nothing that is whole is cut in two.
        let both = [("PASSPHRASE", "correct horse staple"), ("A_TOKEN", "tok-5f0c9a77d1")];
        let both = Redactor::of_environment(&env(&both));
        assert_eq!(both.judged(b"it is tok-5f0c9a77d1 and so on"), 6);
    }
}
