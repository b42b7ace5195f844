//! The lines that nearly every attempt has, read in the order in which we write them.
//!
//! Invariant: what is read here is what the parser would read. Anything that is not exactly as
//! expected (an escape, a field more or less, another order) is left to the parser.

use std::str::FromStr;

use onward_core::{
    address::Address,
    evidence::Ending,
    launch::Seal,
    mark::{Mark, Nonce},
    time::Timestamp,
};

use super::{KIND_START, Line, Spawned, Spawning};

/// `body` ends with the comma before the checksum.
pub(super) fn line(body: &[u8]) -> Option<Line> {
    let Some(glance) = glance(body) else { return spawned(body).map(Line::Spawned) };
    let Glance { is_end, step, attempt, at, of, waited } = glance;
    let step = Address::from_text(step);
    let of = of.map(|(run, epoch, nonce)| Mark { run: run.to_owned(), epoch, nonce });
    if !is_end {
        return Some(Line::Spawning(Spawning { step, attempt, at, of }));
    }
    let (ending, settled) = (Ending::Exited { code: 0 }, false);
    let (check, after) = (None, None);
    Some(Line::Exited(Seal { step, attempt, at, ending, check, after, of, settled, waited }))
}

/// Who an attempt is that lived for a while.
fn spawned(body: &[u8]) -> Option<Spawned> {
    let mut from = Cursor(body);
    from.literal(KIND_START)?;
    from.literal(br#"spawned","step":""#)?;
    let step = from.text()?;
    from.literal(br#","attempt":"#)?;
    let attempt = from.number()?;
    from.literal(br#","pid":"#)?;
    let pid = from.number()?;
    from.literal(br#","start_time":"#)?;
    let start_time = from.number()?;
    from.literal(br#","at":""#)?;
    let at = Timestamp::from_text(from.exactly(MOMENT_BYTES)?)?;
    let step = Address::from_text(step);
    (from.0 == b",").then_some(Spawned { step, attempt, pid, start_time, at })
}

/// The start or the good end of an attempt, where it stands.
pub(super) struct Glance<'a> {
    /// The good end of an attempt; otherwise its start.
    pub(super) is_end: bool,
    pub(super) step: &'a str,
    pub(super) attempt: u32,
    pub(super) at: Timestamp,
    of: Option<(&'a str, u32, Nonce)>,
    waited: u64,
}

/// The same without making anything of it.
pub(super) fn glance(body: &[u8]) -> Option<Glance<'_>> {
    let mut from = Cursor(body);
    from.literal(KIND_START)?;
    let is_end = from.literal(br#"spawning","step":""#).is_none();
    if is_end {
        from.literal(br#"exited","step":""#)?;
    }
    let step = from.text()?;
    from.literal(br#","attempt":"#)?;
    let attempt = from.number()?;
    from.literal(br#","at":""#)?;
    let at = Timestamp::from_text(from.exactly(MOMENT_BYTES)?)?;
    if is_end {
        from.literal(br#","ending":{"how":"exited","code":0}"#)?;
    }
    let of = match from.literal(br#","of":{"run":""#) {
        Some(()) => Some(from.mark()?),
        None => None,
    };
    let waited = match from.literal(br#","waited":"#) {
        Some(()) if is_end => from.number()?,
        Some(()) => return None,
        None => 0,
    };
    (from.0 == b",").then_some(Glance { is_end, step, attempt, at, of, waited })
}

/// Moments and nonces are always of this length.
const MOMENT_BYTES: usize = 27;
const NONCE_BYTES: usize = 16;

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Up to the closing quote, which is taken too. An escape is for the parser.
    fn text(&mut self) -> Option<&'a str> {
        let end = memchr::memchr2(b'"', b'\\', self.0)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.strip_prefix(b"\"")?;
        let is_plain = text.iter().all(|byte| *byte >= b' ');
        is_plain.then(|| std::str::from_utf8(text).ok()).flatten()
    }

    /// So many bytes up to the closing quote, which is taken too. What they may be is for the
    /// caller to see.
    fn exactly(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest.strip_prefix(b"\"")?;
        Some(bytes)
    }

    /// As we write it: no sign, no zero in front.
    fn number<N: FromStr>(&mut self) -> Option<N> {
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit())?;
        let (digits, rest) = self.0.split_at(end);
        if digits.len() > 1 && digits[0] == b'0' {
            return None;
        }
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Run, epoch and nonce.
    fn mark(&mut self) -> Option<(&'a str, u32, Nonce)> {
        let run = self.text()?;
        self.literal(br#","epoch":"#)?;
        let epoch = self.number()?;
        self.literal(br#","nonce":""#)?;
        let nonce = Nonce::parse(std::str::from_utf8(self.exactly(NONCE_BYTES)?).ok()?)?;
        self.literal(b"}")?;
        Some((run, epoch, nonce))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{CRC_BYTES, encode, parse},
        *,
    };

    fn body(line: &Line) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(line, &mut bytes);
        bytes.truncate(bytes.len() - 1 - CRC_BYTES);
        bytes
    }

    fn mark() -> Mark {
        let nonce = Nonce::of("r-1", 3, 4, Timestamp::from_micros(7));
        Mark { run: "r-1".to_owned(), epoch: 3, nonce }
    }

    fn seal(step: &str, ending: Ending) -> Seal {
        let (step, at) = (Address::from_text(step), Timestamp::from_micros(1_700_000_000_000_001));
        let (of, settled) = (Some(mark()), false);
        let (check, after) = (None, None);
        Seal { step, attempt: 12, at, ending, check, after, of, settled, waited: 0 }
    }

    #[test]
    fn what_is_read_quickly_is_what_was_written() {
        let good = Ending::Exited { code: 0 };
        let Seal { step, attempt, at, .. } = seal("a[1]/b", good.clone());
        let lines = [
            Line::Exited(seal("s1", good.clone())),
            Line::Exited(Seal { waited: 14, ..seal("s1", good.clone()) }),
            Line::Exited(Seal { of: None, ..seal("\u{e9}", good) }),
            Line::Spawning(Spawning { step: step.clone(), attempt, at, of: Some(mark()) }),
            Line::Spawning(Spawning { step: step.clone(), attempt, at, of: None }),
            Line::Spawned(Spawned { step, attempt, pid: 71, start_time: u64::MAX, at }),
        ];
        for expected in lines {
            assert_eq!(line(&body(&expected)), Some(expected));
        }
    }

    #[test]
    fn what_is_not_as_expected_is_left_to_the_parser() {
        let good = || Ending::Exited { code: 0 };
        for rare in [
            seal("a\"b", good()),
            seal("s", Ending::Exited { code: 3 }),
            seal("s", Ending::Stopped),
            Seal { settled: true, ..seal("s", good()) },
            Seal { after: Some("x".to_owned()), ..seal("s", good()) },
            Seal { check: Some(good()), ..seal("s", good()) },
        ] {
            assert_eq!(line(&body(&Line::Exited(rare.clone()))), None, "{rare:?}");
        }
        let plain = body(&Line::Exited(seal("s", good())));
        for cut in 0..plain.len() {
            let mut spoilt = plain.clone();
            spoilt[cut] = b'7';
            // What is cut or spoilt is read as the parser reads it, or not at all.
            for mut other in [plain[..cut].to_vec(), spoilt] {
                if let Some(Line::Exited(quick)) = line(&other) {
                    other.extend(br#""crc":""}"#);
                    assert_eq!(Some(quick), parse(&other), "{cut}");
                }
            }
        }
    }
}
