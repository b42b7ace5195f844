//! The parts of JSON, read in the one way we write them.
//!
//! Invariant: whatever is read here, a JSON parser reads alike; anything else is `None`, after
//! which the cursor is of no use any more.

use std::{borrow::Cow, collections::BTreeMap};

use memchr::memchr2;
use serde::de::DeserializeOwned;

use crate::{
    digest::Digest,
    evidence::Usd,
    time::{TEXT_LEN, Timestamp},
};

/// A place in a line without control characters.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

const DIGEST_LEN: usize = 32;

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn go_back(&mut self, position: usize) {
        self.at = position;
    }

    pub(super) fn since(&self, position: usize) -> &'a str {
        &self.text[position..self.at]
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Steps over `literal` if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, literal: &str) -> bool {
        let comes = self.rest().starts_with(literal.as_bytes());
        if comes {
            self.at += literal.len();
        }
        comes
    }

    #[inline]
    pub(super) fn expect(&mut self, literal: &str) -> Option<()> {
        self.eat(literal).then_some(())
    }

    /// Steps over the label of an object's member, with the comma that all but the first have.
    #[inline]
    pub(super) fn eat_member(&mut self, first: &mut bool, label: &str) -> bool {
        let before = self.at;
        if !*first && !self.eat(",") {
            return false;
        }
        if self.eat(label) {
            *first = false;
            return true;
        }
        self.at = before;
        false
    }

    /// The rest of a string whose opening quote is behind us.
    #[inline]
    pub(super) fn string(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        let end = start + memchr2(b'"', b'\\', self.rest())?;
        if self.text.as_bytes()[end] == b'\\' {
            return self.escaped_string(end);
        }
        self.at = end + 1;
        Some(Cow::Borrowed(&self.text[start..end]))
    }

    #[cold]
    fn escaped_string(&mut self, first_escape: usize) -> Option<Cow<'a, str>> {
        let bytes = self.text.as_bytes();
        let mut end = first_escape;
        while bytes[end] == b'\\' {
            let after_escape = bytes.get(end + 2..)?;
            end += 2 + memchr2(b'"', b'\\', after_escape)?;
        }
        let quoted = &self.text[self.at.checked_sub(1)?..=end];
        self.at = end + 1;
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    }

    /// Steps over a string that is escaped as we escape it: only where it must be, in the shortest
    /// way.
    #[inline]
    pub(super) fn skip_string(&mut self) -> Option<()> {
        self.expect("\"")?;
        loop {
            self.at += memchr2(b'"', b'\\', self.rest())?;
            if self.eat("\"") {
                return Some(());
            }
            self.at += match self.rest() {
                [_, b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                [_, b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..]
                | [_, b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => 6,
                _ => return None,
            };
        }
    }

    /// A string of ours that never needs an escape, such as a kind.
    #[inline]
    pub(super) fn plain_string(&mut self) -> Option<&'a str> {
        match self.string()? {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    #[inline]
    pub(super) fn quoted_string(&mut self) -> Option<String> {
        self.expect("\"")?;
        self.string().map(Cow::into_owned)
    }

    /// `label` ends in the opening quote.
    #[inline]
    pub(super) fn text_field(&mut self, label: &str) -> Option<String> {
        self.expect(label)?;
        self.string().map(Cow::into_owned)
    }

    /// The outer `None` gives up, the inner one says that the field is not there.
    #[inline]
    #[expect(clippy::option_option, reason = "giving up is not the same as absence")]
    pub(super) fn optional_text(&mut self, label: &str) -> Option<Option<String>> {
        if self.eat(label) { self.string().map(|text| Some(text.into_owned())) } else { Some(None) }
    }

    /// The rest of a list whose opening bracket is behind us.
    #[inline]
    pub(super) fn list<T>(&mut self, item: fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        if self.eat("]") {
            return Some(Vec::new());
        }
        // One proved file is the most frequent list, and it is kept for the life of the run.
        let mut items = Vec::with_capacity(1);
        loop {
            items.push(item(self)?);
            if !self.eat(",") {
                self.expect("]")?;
                return Some(items);
            }
        }
    }

    /// A list that is left out when it is empty.
    #[inline]
    pub(super) fn optional_list<T>(
        &mut self,
        label: &str,
        item: fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        if self.eat(label) { self.list(item) } else { Some(Vec::new()) }
    }

    /// The rest of an object whose opening brace is behind us and whose names ascend.
    #[inline]
    pub(super) fn map<V>(
        &mut self,
        value: fn(&mut Self) -> Option<V>,
    ) -> Option<BTreeMap<String, V>> {
        let mut map = BTreeMap::new();
        if self.eat("}") {
            return Some(map);
        }
        loop {
            let name = self.quoted_string()?;
            self.expect(":")?;
            let value = value(self)?;
            if map.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return None;
            }
            map.insert(name, value);
            if !self.eat(",") {
                self.expect("}")?;
                return Some(map);
            }
        }
    }

    /// Any JSON, by the general parser.
    pub(super) fn parsed<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut values = serde_json::Deserializer::from_slice(self.rest()).into_iter();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        Some(value)
    }

    #[inline]
    pub(super) fn digest(&mut self) -> Option<Digest> {
        self.expect("\"")?;
        let digest = Digest::parse(self.rest().get(..DIGEST_LEN)?)?;
        self.at += DIGEST_LEN;
        self.expect("\"")?;
        Some(digest)
    }

    #[expect(clippy::option_option, reason = "giving up is not the same as absence")]
    pub(super) fn digest_or_null(&mut self) -> Option<Option<Digest>> {
        if self.eat("null") { Some(None) } else { self.digest().map(Some) }
    }

    #[inline]
    pub(super) fn timestamp(&mut self) -> Option<Timestamp> {
        let moment = Timestamp::from_text(self.rest().get(..TEXT_LEN)?)?;
        self.at += TEXT_LEN;
        Some(moment)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        let (mut number, mut len) = (0_u64, 0);
        let rest = self.rest();
        while let Some(digit) = rest.get(len).map(|byte| byte.wrapping_sub(b'0'))
            && digit < 10
        {
            number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            len += 1;
        }
        self.at += len;
        // JSON knows no leading zeros, and no number without digits.
        (len == 1 || (len > 1 && rest[0] != b'0')).then_some(number)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.u64()?).ok()
    }

    #[inline]
    pub(super) fn i64(&mut self) -> Option<i64> {
        if self.eat("-") {
            // To a JSON parser, `-0` is no integer.
            let magnitude = self.u64().filter(|magnitude| *magnitude > 0)?;
            0_i64.checked_sub_unsigned(magnitude)
        } else {
            self.u64()?.try_into().ok()
        }
    }

    /// An amount such as `1.25`: exact up to nine digits before the point and six after it.
    pub(super) fn usd(&mut self) -> Option<Usd> {
        let dollars = self.u64().filter(|dollars| *dollars < 1_000_000_000)?;
        let mut micros = dollars * 1_000_000;
        if self.eat(".") {
            let mut unit = 1_000_000;
            let decimals = self.rest().iter().take_while(|byte| byte.is_ascii_digit());
            for digit in decimals {
                unit /= 10;
                micros += unit * u64::from(digit - b'0');
                self.at += 1;
                if unit == 0 {
                    return None;
                }
            }
            if unit == 1_000_000 {
                return None;
            }
        }
        Some(Usd(micros))
    }
}
