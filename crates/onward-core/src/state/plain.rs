//! A step that is done and of which nothing else is to be told, as it stands in the bytes that a
//! large run keeps: nearly all of its steps are of this kind, and a look makes an object of none.
//!
//! Invariant: [`Plain::made`] is the step that was put there, field for field. A record is looked
//! through once, by [`Plain::checked`]; after that each part of it is there.

use super::{Phase, StepState};
use crate::{
    digest::Digest,
    evidence::{Evidence, FileProof, Stat},
    key::Key,
    time::Timestamp,
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a>(&'a [u8]);

/// An output as it was when its step ended, where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKept<'a> {
    pub path: &'a str,
    pub hash: Digest,
    pub stat: Stat,
}

impl<'a> FileKept<'a> {
    pub fn of(file: &'a FileProof) -> Self {
        let FileProof { path, hash, stat } = file;
        Self { path, hash: *hash, stat: *stat }
    }
}

// Where the parts of a record stand, each of a fixed size: then the files, and the key at the end.
const ATTEMPTS: usize = 0;
const KEY_BYTES: usize = 4;
const STARTED: usize = 8;
const ENDED: usize = 16;
const FILES: usize = 24;
const READS: usize = 28;
const HEAD_BYTES: usize = 29;
/// Of one file, in front of its path.
const PATH_BYTES: usize = 0;
const HASH: usize = 4;
const SIZE: usize = 20;
const MTIME: usize = 28;
const INODE: usize = 36;
const FILE_BYTES: usize = 44;

/// How a key names the files that its step read.
const NAMES_READS: &str = "\"reads\":";

impl<'a> Plain<'a> {
    /// Puts a step there of which only this is to be told. `None` where a part is too large.
    pub(super) fn put(entry: &StepState, key: &Key, to: &mut Vec<u8>) -> Option<()> {
        let key = key.as_str();
        let files = &entry.evidence.files;
        to.extend(entry.attempts.to_le_bytes());
        to.extend(u32::try_from(key.len()).ok()?.to_le_bytes());
        to.extend(entry.started_at.as_micros().to_le_bytes());
        to.extend(entry.ended_at.as_micros().to_le_bytes());
        to.extend(u32::try_from(files.len()).ok()?.to_le_bytes());
        to.push(u8::from(key.contains(NAMES_READS)));
        for FileProof { path, hash, stat } in files {
            let Stat { size, mtime_ns, inode } = *stat;
            to.extend(u32::try_from(path.len()).ok()?.to_le_bytes());
            to.extend(hash.as_bytes());
            to.extend(size.to_le_bytes());
            to.extend(mtime_ns.to_le_bytes());
            to.extend(inode.to_le_bytes());
            to.extend(path.as_bytes());
        }
        to.extend(key.as_bytes());
        Some(())
    }

    /// A record that is whole, and no longer than that.
    pub(super) fn checked(record: &'a [u8]) -> Option<Self> {
        let plain = Self(record);
        let mut rest = record.get(HEAD_BYTES..)?;
        for _ in 0..plain.file_count() {
            rest = file(rest)?.1;
        }
        // What the key says is for one who makes the step of it.
        let is_whole = rest.len() == number(record, KEY_BYTES, u32::from_le_bytes) as usize;
        is_whole.then_some(plain)
    }

    /// A record that was found to be whole before.
    #[inline]
    pub(super) fn known(record: &'a [u8]) -> Self {
        Self(record)
    }

    pub(super) fn record(self) -> &'a [u8] {
        self.0
    }

    #[inline]
    pub fn attempts(self) -> u32 {
        number(self.0, ATTEMPTS, u32::from_le_bytes)
    }

    #[inline]
    pub fn started_at(self) -> Timestamp {
        Timestamp::from_micros(number(self.0, STARTED, i64::from_le_bytes))
    }

    #[inline]
    pub fn ended_at(self) -> Timestamp {
        Timestamp::from_micros(number(self.0, ENDED, i64::from_le_bytes))
    }

    /// Whether its key names files that it read.
    pub fn names_reads(self) -> bool {
        self.0.get(READS).is_some_and(|it| *it != 0)
    }

    fn file_count(self) -> u32 {
        number(self.0, FILES, u32::from_le_bytes)
    }

    /// Its outputs, in path order.
    pub fn files(self) -> impl Iterator<Item = FileKept<'a>> {
        let mut rest = self.0.get(HEAD_BYTES..).unwrap_or_default();
        (0..self.file_count()).map_while(move |_| {
            let (kept, after) = file(rest)?;
            rest = after;
            Some(kept)
        })
    }

    fn key(self) -> &'a str {
        let length = number(self.0, KEY_BYTES, u32::from_le_bytes) as usize;
        let at = self.0.len().saturating_sub(length);
        std::str::from_utf8(&self.0[at..]).unwrap_or_default()
    }

    /// The step itself.
    pub(super) fn made(self) -> StepState {
        let whole =
            |it: FileKept<'_>| FileProof { path: it.path.to_owned(), hash: it.hash, stat: it.stat };
        StepState {
            phase: Phase::Done,
            attempts: self.attempts(),
            started_at: self.started_at(),
            ended_at: self.ended_at(),
            key: Some(Key::from_canonical(self.key())),
            evidence: Evidence { files: self.files().map(whole).collect(), ..Evidence::default() },
            ..StepState::default()
        }
    }
}

#[inline]
fn file(from: &[u8]) -> Option<(FileKept<'_>, &[u8])> {
    let (head, rest) = from.split_at_checked(FILE_BYTES)?;
    let length = number(head, PATH_BYTES, u32::from_le_bytes) as usize;
    let (path, rest) = rest.split_at_checked(length)?;
    let stat = Stat {
        size: number(head, SIZE, u64::from_le_bytes),
        mtime_ns: number(head, MTIME, i64::from_le_bytes),
        inode: number(head, INODE, u64::from_le_bytes),
    };
    let hash = Digest::from_bytes(number(head, HASH, |it| it));
    Some((FileKept { path: std::str::from_utf8(path).ok()?, hash, stat }, rest))
}

/// The number that stands there; nothing where the bytes end before it.
#[inline]
fn number<const N: usize, T>(from: &[u8], at: usize, of: fn([u8; N]) -> T) -> T {
    let bytes = from.get(at..at + N).and_then(|it| it.try_into().ok());
    of(bytes.unwrap_or([0; N]))
}
