//! What content is: the first 128 bits of its BLAKE3 hash, 32 hex digits as `b3sum` prints them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::words;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 16]);

/// A list of parts that takes no more is short.
const SHORT_BYTES: usize = 256;

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_blake3(&blake3::hash(bytes))
    }

    /// Shortens a hash that was computed piece by piece.
    pub fn from_blake3(hash: &blake3::Hash) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&hash.as_bytes()[..16]);
        Self(short)
    }

    /// A digest of named parts, in which no two different lists look alike.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        // Most lists are short: hashed in one go they take half as long.
        let (mut short, mut used) = ([0; SHORT_BYTES], 0);
        let mut long: Option<blake3::Hasher> = None;
        for part in parts {
            for piece in [&(part.len() as u64).to_le_bytes(), part] {
                let free = short.get_mut(used..used + piece.len());
                match (&mut long, free) {
                    (Some(hasher), _) => {
                        hasher.update(piece);
                    }
                    (None, Some(free)) => {
                        free.copy_from_slice(piece);
                        used += piece.len();
                    }
                    (None, None) => {
                        let hasher = long.insert(blake3::Hasher::new());
                        hasher.update(&short[..used]).update(piece);
                    }
                }
            }
        }
        let hash = long.map_or_else(|| blake3::hash(&short[..used]), |it| it.finalize());
        Self::from_blake3(&hash)
    }

    /// What [`as_bytes`](Self::as_bytes) gave.
    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the 32 hex digits of `Display`; lower case only, as we write it.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits: &[u8; 32] = text.try_into().ok()?;
        let mut bytes = [0; 16];
        for (part, digits) in bytes.as_chunks_mut().0.iter_mut().zip(digits.as_chunks().0) {
            *part = words::hex(*digits)?.to_be_bytes();
        }
        Some(Self(bytes))
    }

    fn hex(&self) -> [u8; 32] {
        let mut digits = [0; 32];
        for (digits, part) in digits.as_chunks_mut().0.iter_mut().zip(self.0.as_chunks().0) {
            *digits = words::hex_digits(u32::from_be_bytes(*part));
        }
        digits
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.hex()).expect("hex digits"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.hex()).expect("hex digits"))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).ok_or_else(|| D::Error::custom("expected 32 hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_parts_is_hashed_alike_short_or_long() {
        for length in (0..SHORT_BYTES + 40).step_by(7) {
            let part = vec![b'x'; length];
            for parts in [vec![&part[..]], vec![b"a", &part, b""], vec![&part, b"b", &part]] {
                let mut hasher = blake3::Hasher::new();
                for part in &parts {
                    hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
                }
                assert_eq!(Digest::of_parts(parts), Digest::from_blake3(&hasher.finalize()));
            }
        }
    }

    #[test]
    fn a_digest_reads_back_as_it_was_written() {
        let digest = Digest::of(b"onward");
        assert_eq!(Digest::parse(digest.to_string().as_bytes()), Some(digest));
        assert!(blake3::hash(b"onward").to_hex().starts_with(&digest.to_string()));
        assert_eq!(Digest::parse(b"0"), None);
        assert_eq!(Digest::parse(&[b'G'; 32]), None);
        assert_eq!(Digest::parse(&[b'A'; 32]), None);
    }

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        let of = |parts: &[&[u8]]| Digest::of_parts(parts.iter().copied());
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"ab"]), of(&[b"ab", b""]));
    }
}
