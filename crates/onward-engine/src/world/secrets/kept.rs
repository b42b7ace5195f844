//! `secrets` in a run's directory: digests by which a secret is known again whose value is not.
//!
//! A resume under another environment does not have the values that an earlier life of the run had,
//! yet what that life left may hold them. For each form of each secret the file has its length, two
//! bytes of a rolling sum and a slow digest, all salted. A text is gone through once for each
//! length; where the sum agrees the digest decides.
//!
//! Invariant: nothing in the file gives a value away, except to one who can guess it: the file is
//! for its owner alone, and each guess costs [`ROUNDS`] hashes.

use std::{collections::BTreeMap, io, ops::Range, path::Path};

use serde::{Deserialize, Serialize};

use crate::world::{
    open::{self, SMALL_BYTES_MAX},
    real::disk::replace,
    supervisor::random,
};

pub(super) const FILE: &str = "secrets";
const SCHEMA: &str = "onward.secrets/1";
const ROUNDS: u32 = 100;
/// More than a person has; the rest is not kept.
const ENTRIES_MAX: usize = 2_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    schema: String,
    salt: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    name: String,
    bytes: usize,
    sum: u16,
    digest: String,
}

impl Kept {
    /// None, or one that cannot be read, is empty: it only helps.
    pub(super) fn read(run_dir: &Path) -> Self {
        let bytes = open::read_at(&run_dir.join(FILE), SMALL_BYTES_MAX);
        let read = bytes.ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        read.filter(|it| it.schema == SCHEMA && it.key().is_some()).unwrap_or_default()
    }

    pub(super) fn write(&self, run_dir: &Path) -> io::Result<()> {
        replace(&run_dir.join(FILE), &serde_json::to_vec(self)?, open::PRIVATE)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn key(&self) -> Option<[u8; 32]> {
        blake3::Hash::from_hex(&self.salt).ok().map(|it| *it.as_bytes())
    }

    /// Adds forms of secrets; true when there was one that is new.
    pub(super) fn add(&mut self, forms: &[(String, String)]) -> io::Result<bool> {
        if forms.is_empty() {
            return Ok(false);
        }
        if self.key().is_none() {
            let salt = blake3::Hash::from_bytes(random()?).to_hex().to_string();
            *self = Self { schema: SCHEMA.to_owned(), salt, entries: Vec::new() };
        }
        let Some(key) = self.key() else { return Ok(false) };
        let before = self.entries.len();
        for (name, value) in forms {
            let entry = entry(&key, name, value.as_bytes());
            let is_there = self.entries.iter().any(|it| it.digest == entry.digest);
            if !is_there && self.entries.len() < ENTRIES_MAX {
                self.entries.push(entry);
            }
        }
        Ok(self.entries.len() > before)
    }

    /// What is looked for when these forms are known as they are.
    pub(super) fn without(&self, known: &[(String, String)]) -> Sieve {
        let Some(key) = self.key() else { return Sieve::default() };
        let known: Vec<Entry> =
            known.iter().map(|(name, value)| entry(&key, name, value.as_bytes())).collect();
        let mut by_bytes: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
        for entry in &self.entries {
            if entry.bytes > 0 && !known.iter().any(|it| it.digest == entry.digest) {
                by_bytes.entry(entry.bytes).or_default().push(entry.clone());
            }
        }
        Sieve { key, by_bytes }
    }
}

fn entry(key: &[u8; 32], name: &str, value: &[u8]) -> Entry {
    let sum = Rolling::new(key, value).sum();
    Entry { name: name.to_owned(), bytes: value.len(), sum, digest: digest(key, value) }
}

fn digest(key: &[u8; 32], value: &[u8]) -> String {
    let mut hash = blake3::keyed_hash(key, value);
    for _ in 1..ROUNDS {
        hash = blake3::keyed_hash(key, hash.as_bytes());
    }
    hash.to_hex().to_string()
}

/// A sum over a window that moves by one byte at a time.
struct Rolling {
    base: u64,
    /// Of the byte that leaves.
    top: u64,
    value: u64,
}

impl Rolling {
    fn new(key: &[u8; 32], window: &[u8]) -> Self {
        let mut first = [0; 8];
        first.copy_from_slice(&key[..8]);
        let base = u64::from_le_bytes(first) | 1;
        let top = (1..window.len()).fold(1_u64, |top, _| top.wrapping_mul(base));
        let next = |value: u64, byte: &u8| value.wrapping_mul(base).wrapping_add(u64::from(*byte));
        Self { base, top, value: window.iter().fold(0, next) }
    }

    fn step(&mut self, leaves: u8, comes: u8) {
        let without = self.value.wrapping_sub(self.top.wrapping_mul(u64::from(leaves)));
        self.value = without.wrapping_mul(self.base).wrapping_add(u64::from(comes));
    }

    /// The upper bits depend on every byte; two bytes of it say little.
    fn sum(&self) -> u16 {
        let mixed = self.value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        u16::try_from(mixed >> 48).unwrap_or_default()
    }
}

/// Kept secrets whose values are not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Sieve {
    key: [u8; 32],
    by_bytes: BTreeMap<usize, Vec<Entry>>,
}

impl Sieve {
    pub(super) fn is_empty(&self) -> bool {
        self.by_bytes.is_empty()
    }

    /// The longest value that is looked for.
    pub(super) fn bytes_max(&self) -> usize {
        self.by_bytes.keys().last().copied().unwrap_or(0)
    }

    pub(super) fn find(&self, text: &[u8]) -> Vec<(Range<usize>, &str)> {
        let mut found = Vec::new();
        for (&bytes, entries) in self.by_bytes.range(..=text.len()) {
            let mut rolling = Rolling::new(&self.key, &text[..bytes]);
            for start in 0..=text.len() - bytes {
                if start > 0 {
                    rolling.step(text[start - 1], text[start + bytes - 1]);
                }
                let sum = rolling.sum();
                let mut agree = entries.iter().filter(|it| it.sum == sum).peekable();
                if agree.peek().is_none() {
                    continue;
                }
                let digest = digest(&self.key, &text[start..start + bytes]);
                if let Some(entry) = agree.find(|it| it.digest == digest) {
                    found.push((start..start + bytes, entry.name.as_str()));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_value_is_found_by_what_is_kept_of_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Kept::default();
        assert!(kept.add(&[form("A", "tok-5f0c9a77d1"), form("B", "hunter22")]).unwrap());
        assert!(!kept.add(&[form("B", "hunter22")]).unwrap());
        kept.write(dir.path()).unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert!(!text.contains("hunter22") && !text.contains("tok-5f0c"));
        let again = Kept::read(dir.path());
        assert_eq!(again, kept);
        let sieve = again.without(&[]);
        let text = b"xhunter22y hunter2 tok-5f0c9a77d1";
        assert_eq!(sieve.find(text), [(1..9, "B"), (19..33, "A")]);
        assert_eq!(sieve.find(b"short"), []);
        let sieve = again.without(&[form("B", "hunter22")]);
        assert_eq!(sieve.find(text), [(19..33, "A")], "the other is known as it is");
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_as_good_as_none() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "{}", "{\"schema\":\"onward.secrets/1\",\"salt\":\"x\",\"entries\":[]}"] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert!(Kept::read(dir.path()).is_empty());
        }
        assert!(Kept::read(&dir.path().join("nowhere")).is_empty());
    }
}
