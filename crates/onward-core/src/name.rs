//! Names of files that are not UTF-8, as text and back.
//!
//! Paths stand in workflows, journals and plans as text. A byte that is no part of a character is
//! one of 128 characters that Unicode keeps for private use; such a character in a real name is
//! written as its bytes, each in the same way.
//!
//! Invariant: [`bytes`] gives back what [`text`] was made from, whatever the name.

use std::borrow::Cow;

/// The byte `b` from 0x80 on is the character `BYTES + b`.
const BYTES: u32 = 0x10_fe00;

/// A name as it stands in a journal.
pub fn text(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if byte_of(c).is_some() {
                text.extend(c.encode_utf8(&mut [0; 4]).bytes().filter_map(char_of));
            } else {
                text.push(c);
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(char_of));
    }
    text
}

/// The name that the text stands for.
pub fn bytes(text: &str) -> Cow<'_, [u8]> {
    if !text.chars().any(|c| byte_of(c).is_some()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut name = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte_of(c) {
            Some(byte) => name.push(byte),
            None => name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(name)
}

/// The byte that a character stands for, if it is one of ours.
pub fn byte_of(c: char) -> Option<u8> {
    let byte = u32::from(c).checked_sub(BYTES)?;
    u8::try_from(byte).ok().filter(|byte| *byte >= 0x80)
}

fn char_of(byte: u8) -> Option<char> {
    char::from_u32(BYTES + u32::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_itself_and_a_stray_byte_is_a_character() {
        assert_eq!(text("a/Ü.md".as_bytes()), "a/Ü.md");
        assert_eq!(text(b"s\xff").chars().nth(1).and_then(byte_of), Some(0xff));
        let own = text(b"s\xff");
        assert_ne!(text(own.as_bytes()), own, "a real name of such a character is another one");
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in proptest::collection::vec(any::<u8>(), 0..12)) {
            let text = text(&name);
            prop_assert_eq!(&*bytes(&text), &name[..]);
        }

        #[test]
        fn two_names_are_two_texts(one in ".{0,6}", other in ".{0,6}") {
            let same = text(one.as_bytes()) == text(other.as_bytes());
            prop_assert_eq!(same, one == other);
        }
    }
}
