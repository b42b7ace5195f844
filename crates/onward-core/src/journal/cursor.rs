//! The parts of JSON, read in the one way we write them.
//!
//! Invariant: whatever is read here, a JSON parser reads alike; anything else is `None`, after
//! which the cursor is of no use any more.

use std::{borrow::Cow, collections::BTreeMap};

use serde::de::DeserializeOwned;

use crate::{
    digest::Digest,
    evidence::Usd,
    time::{TEXT_LEN, Timestamp},
    words,
};

/// A place in a line.
pub(super) struct Cursor<'a> {
    text: &'a str,
    /// What is still to be read, as bytes: they need no look at where characters begin.
    rest: &'a [u8],
}

const DIGEST_LEN: usize = 32;

/// So many digits fit into a number, whatever they are.
const DIGITS_SURE: usize = 19;

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, rest: text.as_bytes() }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(super) fn position(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    pub(super) fn go_back(&mut self, position: usize) {
        self.rest = &self.text.as_bytes()[position..];
    }

    #[inline]
    pub(super) fn since(&self, position: usize) -> &'a str {
        &self.text[position..self.position()]
    }

    #[inline]
    fn pass(&mut self, len: usize) {
        self.rest = &self.rest[len..];
    }

    /// Steps over `literal` if it comes next.
    #[inline]
    pub(super) fn eat(&mut self, literal: &str) -> bool {
        let rest = self.rest.strip_prefix(literal.as_bytes());
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    #[inline]
    pub(super) fn expect(&mut self, literal: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal.as_bytes())?;
        Some(())
    }

    /// Steps over the label of an object's member, with the comma that all but the first have.
    #[inline]
    pub(super) fn eat_member(&mut self, first: &mut bool, label: &str) -> bool {
        let before = self.rest;
        if !*first && !self.eat(",") {
            return false;
        }
        if self.eat(label) {
            *first = false;
            return true;
        }
        self.rest = before;
        false
    }

    /// The rest of a string whose opening quote is behind us.
    #[inline]
    pub(super) fn string(&mut self) -> Option<Cow<'a, str>> {
        match self.plain_string() {
            Some(text) => Some(Cow::Borrowed(text)),
            None => self.escaped_string().map(Cow::Owned),
        }
    }

    /// The same, if nothing in it is escaped.
    #[inline]
    pub(super) fn plain_string(&mut self) -> Option<&'a str> {
        let start = self.position();
        let (text, rest) = self.rest.split_at(words::string_stop(self.rest)?);
        self.rest = rest.strip_prefix(b"\"")?;
        Some(&self.text[start..start + text.len()])
    }

    #[cold]
    fn escaped_string(&mut self) -> Option<String> {
        let opening_quote = self.position().checked_sub(1)?;
        self.go_back(opening_quote);
        self.parsed()
    }

    /// Steps over a string that is escaped as we escape it: only where it must be, in the shortest
    /// way.
    #[inline]
    pub(super) fn skip_string(&mut self) -> Option<()> {
        self.expect("\"")?;
        loop {
            self.pass(words::string_stop(self.rest)?);
            if self.eat("\"") {
                return Some(());
            }
            self.skip_escape()?;
        }
    }

    fn skip_escape(&mut self) -> Option<()> {
        let len = match self.rest {
            [b'\\', b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            [b'\\', b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..]
            | [b'\\', b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => 6,
            _ => return None,
        };
        self.pass(len);
        Some(())
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
        let mut values = serde_json::Deserializer::from_slice(self.rest).into_iter();
        let value = values.next()?.ok()?;
        self.pass(values.byte_offset());
        Some(value)
    }

    #[inline]
    pub(super) fn digest(&mut self) -> Option<Digest> {
        self.expect("\"")?;
        let digest = Digest::parse(self.rest.get(..DIGEST_LEN)?)?;
        self.pass(DIGEST_LEN);
        self.expect("\"")?;
        Some(digest)
    }

    #[expect(clippy::option_option, reason = "giving up is not the same as absence")]
    pub(super) fn digest_or_null(&mut self) -> Option<Option<Digest>> {
        if self.eat("null") { Some(None) } else { self.digest().map(Some) }
    }

    #[inline]
    pub(super) fn timestamp(&mut self) -> Option<Timestamp> {
        let moment = Timestamp::from_text(self.rest.get(..TEXT_LEN)?)?;
        self.pass(TEXT_LEN);
        Some(moment)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Option<u64> {
        let (mut number, mut len) = (0_u64, 0);
        for byte in self.rest {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
            len += 1;
        }
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        match digits {
            // JSON knows no leading zeros, and no number without digits.
            [] | [b'0', _, ..] => None,
            _ if len <= DIGITS_SURE => Some(number),
            _ => std::str::from_utf8(digits).ok()?.parse().ok(),
        }
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
            let decimals = self.rest.iter().take_while(|byte| byte.is_ascii_digit());
            for digit in decimals {
                unit /= 10;
                micros += unit * u64::from(digit - b'0');
                self.pass(1);
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
