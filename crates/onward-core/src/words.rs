//! Text looked at eight bytes at a time, as one number: a journal holds millions of digits.
//!
//! Invariant: what is said about a word is what looking at its bytes one by one would say. The
//! first byte is the lowest part of the number, so that carries and borrows only ever reach bytes
//! that come later.

const HIGH_BITS: u64 = each(0x80);

/// The same byte, eight times.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Where the first byte stands that cannot be inside a JSON string as it is: a quote, a backslash
/// or a control character.
#[inline]
pub(crate) fn string_stop(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let stops = stops(u64::from_le_bytes(*word));
        if stops != 0 {
            return Some(index * 8 + stops.trailing_zeros() as usize / 8);
        }
    }
    let in_rest = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
    in_rest.map(|at| bytes.len() - rest.len() + at)
}

/// Has the high bit of the first such byte, none of the bytes before it, and any after it.
#[inline]
fn stops(word: u64) -> u64 {
    // A byte borrows from its high bit if it is smaller than what is taken from it.
    let quote = (word ^ each(b'"')).wrapping_sub(each(1));
    let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
    let control = word.wrapping_sub(each(b' '));
    (quote | backslash | control) & !word & HIGH_BITS
}

/// Eight bytes of which each `0` stands for any digit and all else for itself. Made when the
/// program is built: a moment is read from four of them, and a journal has millions of moments.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    text: u64,
    /// What may be added to each byte before it says, by its high bit, that it does not fit.
    room: u64,
}

impl Pattern {
    pub(crate) const fn of(text: [u8; 8]) -> Self {
        let mut room = [0x7f; 8];
        let mut at = 0;
        while at < 8 {
            if text[at] == b'0' {
                room[at] -= 9;
            }
            at += 1;
        }
        Self { text: u64::from_le_bytes(text), room: u64::from_le_bytes(room) }
    }

    /// The values of the digits where the pattern has a `0`, and 0 elsewhere; `None` unless all
    /// other bytes are its own.
    #[inline]
    pub(crate) const fn digit_values(self, text: [u8; 8]) -> Option<u64> {
        let values = u64::from_le_bytes(text) ^ self.text;
        let fits = (values | values.wrapping_add(self.room)) & HIGH_BITS == 0;
        if fits { Some(values) } else { None }
    }
}

/// In each byte, the number that its digit and the next one make.
#[inline]
pub(crate) fn pairs(digit_values: u64) -> u64 {
    digit_values.wrapping_mul(10).wrapping_add(digit_values >> 8)
}

/// The number that eight hexadecimal digits are; `None` if one of them is none, or upper case.
#[inline]
pub(crate) fn hex(digits: [u8; 8]) -> Option<u32> {
    let text = u64::from_le_bytes(digits);
    // `a` is 0x61: nine more than its low half says, and the bit 0x40 tells it from `1`.
    let values = (text & each(0x0f)).wrapping_add(((text >> 6) & each(1)).wrapping_mul(9));
    if values & each(0xf0) != 0 || hex_text(values) != text {
        return None;
    }
    // Neighbours are joined: eight digits to four bytes, to two groups of two, to one number.
    let bytes = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let twos = (bytes << 8 | bytes >> 16) & 0x0000_ffff_0000_ffff;
    u32::try_from((twos << 16 | twos >> 32) & 0xffff_ffff).ok()
}

/// The eight hexadecimal digits of a number, lower case.
#[inline]
pub(crate) fn hex_digits(number: u32) -> [u8; 8] {
    // The way back of `hex`.
    let number = u64::from(number);
    let twos = (number >> 16 | number << 32) & 0x0000_ffff_0000_ffff;
    let bytes = (twos >> 8 | twos << 16) & 0x00ff_00ff_00ff_00ff;
    let values = (bytes >> 4 | bytes << 8) & each(0x0f);
    hex_text(values).to_le_bytes()
}

/// Eight values below 16 as their digits.
#[inline]
fn hex_text(values: u64) -> u64 {
    let letters = (values.wrapping_add(each(0x7f - 9)) & HIGH_BITS) >> 7;
    let digits = values.wrapping_add(each(b'0'));
    digits.wrapping_add(letters.wrapping_mul(u64::from(b'a' - b'0' - 10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_stops_at_the_first_byte_that_cannot_be_in_it() {
        let plain = [b' ', 0xff, b'~', 0x7f, 0x80, b'!', 0xa2, b'#', b'[', b']', 0xdc].repeat(2);
        assert_eq!(string_stop(&plain), None);
        for at in 0..plain.len() {
            for stop in (0..b' ').chain(*b"\"\\") {
                let mut bytes = plain.clone();
                bytes[at] = stop;
                assert_eq!(string_stop(&bytes), Some(at), "{stop}");
                bytes[at + 1..].fill(b'"');
                assert_eq!(string_stop(&bytes), Some(at), "{stop}");
            }
        }
    }

    #[test]
    fn a_pattern_takes_digits_for_its_zeros_and_itself_for_the_rest() {
        let pattern = *b"0000-00-";
        let values = Pattern::of(pattern).digit_values(*b"2026-11-").map(u64::to_le_bytes);
        assert_eq!(values, Some([2, 0, 2, 6, 0, 1, 1, 0]));
        for at in 0..8 {
            for byte in 0..=u8::MAX {
                let mut text = *b"2026-11-";
                text[at] = byte;
                let fits = if pattern[at] == b'0' { byte.is_ascii_digit() } else { byte == b'-' };
                let values = Pattern::of(pattern).digit_values(text);
                assert_eq!(values.is_some(), fits, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn hexadecimal_digits_are_those_of_the_formatter_and_read_back() {
        for number in [0, 1, 0x0123_4567, 0x89ab_cdef, 0xdead_beef, u32::MAX] {
            assert_eq!(hex_digits(number), format!("{number:08x}").as_bytes());
            assert_eq!(hex(hex_digits(number)), Some(number));
        }
    }

    #[test]
    fn a_byte_that_is_no_lower_case_digit_is_refused_wherever_it_stands() {
        for at in 0..8 {
            for byte in 0..=u8::MAX {
                let mut text = *b"90af16ce";
                text[at] = byte;
                let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                let read = std::str::from_utf8(&text).ok();
                let read = read.and_then(|text| u32::from_str_radix(text, 16).ok());
                assert_eq!(hex(text), read.filter(|_| is_digit), "{byte} at {at}");
            }
        }
    }
}
