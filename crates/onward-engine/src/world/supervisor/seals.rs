//! `exits.jsonl`: the supervisor's own log of what it spawned and how each attempt ended.
//!
//! One JSON object a line, `kind` first and `crc` last: CRC-32 (IEEE), lower-case hex, of every
//! byte from `{` up to and including the comma before `"crc"`. Each line is one write. A supervisor
//! begins its life with `opened`; then, per attempt, `spawning` (about to), `spawned` (its
//! identity, if it lived for a while), `exited` (the seal) and, where one is wanted, `snapshot`
//! (the tree after it). An attempt without `spawning` was certainly never spawned; with it, it may
//! have been.
//!
//! Invariant: one supervisor at a time holds the file's lock, and what was once written is never
//! changed. A kind that is not known here is kept and not damage.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
};

use onward_core::{address::Address, launch::Seal, time::Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::linux::Identity;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line {
    /// A supervisor began its life. Unreadable bytes just before are the torn end of the last one.
    Opened(Opened),
    /// Written before the spawn: from here on the attempt may have run.
    Spawning(Spawning),
    /// Written a moment after the spawn, unless it was over by then.
    Spawned(Spawned),
    /// The seal: the attempt and all its descendants are gone.
    Exited(Seal),
    /// The tree after it was recorded, or could not be. What is read has it in the seal.
    Snapshot(Snapshot),
    /// Output of this attempt could not be kept.
    OutputLost(OutputLost),
    /// A good line of a kind that only a later version knows.
    #[serde(skip)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub pid: i32,
    pub start_time: u64,
    pub boot_id: String,
    pub version: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawning {
    pub step: Address,
    pub attempt: u32,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawned {
    pub step: Address,
    pub attempt: u32,
    pub pid: i32,
    pub start_time: u64,
    pub at: Timestamp,
}

impl Spawned {
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_time: self.start_time }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub step: Address,
    pub attempt: u32,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What was said instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLost {
    pub step: Address,
    pub attempt: u32,
    pub stream: String,
    pub why: String,
}

/// What the log says, and where it cannot be believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seals {
    pub lines: Vec<Line>,
    /// Unreadable bytes with readable ones of the same life after them.
    pub damaged: Vec<Unreadable>,
    /// Unreadable bytes at the end of a life: a power cut. What they said is lost, no more.
    pub torn: Vec<Unreadable>,
}

impl Seals {
    fn add_to_seal(&mut self, line: &Line) {
        let Line::Snapshot(snapshot) = line else { return };
        let seal = self.lines.iter_mut().rev().find_map(|line| match line {
            Line::Exited(seal) => {
                (seal.step == snapshot.step && seal.attempt == snapshot.attempt).then_some(seal)
            }
            Line::Opened(_)
            | Line::Spawning(_)
            | Line::Spawned(_)
            | Line::Snapshot(_)
            | Line::OutputLost(_)
            | Line::Unknown(_) => None,
        });
        if let Some(seal) = seal {
            seal.after.clone_from(&snapshot.after);
        }
    }

    pub fn seals(&self) -> impl Iterator<Item = &Seal> {
        self.lines.iter().filter_map(|line| match line {
            Line::Exited(seal) => Some(seal),
            Line::Opened(_)
            | Line::Spawning(_)
            | Line::Spawned(_)
            | Line::Snapshot(_)
            | Line::OutputLost(_)
            | Line::Unknown(_) => None,
        })
    }

    /// Every identity that was recorded since the boot `boot_id`, whether it lives or not.
    pub fn spawned_since_boot(&self, boot_id: &str) -> Vec<&Spawned> {
        let mut is_this_boot = false;
        let mut spawned = Vec::new();
        for line in &self.lines {
            match line {
                Line::Opened(opened) => is_this_boot = opened.boot_id == boot_id,
                Line::Spawned(it) if is_this_boot => spawned.push(it),
                Line::Spawned(_)
                | Line::Spawning(_)
                | Line::Exited(_)
                | Line::Snapshot(_)
                | Line::OutputLost(_)
                | Line::Unknown(_) => {}
            }
        }
        spawned
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Counted from 1, as editors do.
    pub line: u64,
    pub offset: u64,
    pub bytes: u64,
}

/// Reads the log, or only its first `bytes_max` bytes: what had been written when an engine was
/// welcomed. A log that does not exist is empty.
pub fn read_seals(path: &Path, bytes_max: Option<u64>) -> io::Result<Seals> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(bytes_max.unwrap_or(u64::MAX)).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(decode(&bytes))
}

pub(super) fn decode(bytes: &[u8]) -> Seals {
    let mut seals = Seals::default();
    let mut unclear = Vec::new();
    let mut offset = 0;
    for (line, text) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let bytes = text.len() as u64;
        match decode_line(text.strip_suffix(b"\n").unwrap_or(text)) {
            Some(decoded) => {
                let ends_a_life = matches!(decoded, Line::Opened(_));
                let sort = if ends_a_life { &mut seals.torn } else { &mut seals.damaged };
                sort.append(&mut unclear);
                seals.add_to_seal(&decoded);
                seals.lines.push(decoded);
            }
            None => unclear.push(Unreadable { line, offset, bytes }),
        }
        offset += bytes;
    }
    seals.torn.append(&mut unclear);
    seals
}

/// `"crc":"xxxxxxxx"}`; the comma before it is under the checksum.
const CRC_BYTES: usize = 17;
const KIND_START: &[u8] = b"{\"kind\":\"";

fn decode_line(line: &[u8]) -> Option<Line> {
    let (body, end) = line.split_at_checked(line.len().checked_sub(CRC_BYTES)?)?;
    let hex = end.strip_prefix(b"\"crc\":\"")?.strip_suffix(b"\"}")?;
    if format!("{:08x}", crc32fast::hash(body)).as_bytes() != hex {
        return None;
    }
    // The kind comes first, so that each line is parsed once and straight into its own type.
    let rest = line.strip_prefix(KIND_START)?;
    let kind = &rest[..rest.iter().position(|byte| *byte == b'"')?];
    match kind {
        b"opened" => parse(line).map(Line::Opened),
        b"spawning" => parse(line).map(Line::Spawning),
        b"spawned" => parse(line).map(Line::Spawned),
        b"exited" => parse(line).map(Line::Exited),
        b"snapshot" => parse(line).map(Line::Snapshot),
        b"output_lost" => parse(line).map(Line::OutputLost),
        other => Some(Line::Unknown(String::from_utf8_lossy(other).into_owned())),
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

pub(super) fn encode(line: &Line, out: &mut Vec<u8>) {
    let start = out.len();
    serde_json::to_writer(&mut *out, line).expect("a line is plain data, and memory takes all");
    out.pop();
    out.push(b',');
    let crc = crc32fast::hash(&out[start..]);
    writeln!(out, "\"crc\":\"{crc:08x}\"}}").expect("memory takes all");
}

/// The log as its one writer has it. A failed write ends the supervisor: it never appends again.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    bytes: u64,
    is_dirty: bool,
    line: Vec<u8>,
}

/// Somebody else holds the log.
#[derive(Debug)]
pub(super) enum OpenError {
    Held,
    Io(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Log {
    /// Takes the lock and begins a new life. With `wait`, a holder that is about to go is waited
    /// for.
    pub(super) fn open(path: &Path, wait: bool, opened: Opened) -> Result<Self, OpenError> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        if wait {
            file.lock()?;
        } else {
            file.try_lock().map_err(|error| match error {
                std::fs::TryLockError::WouldBlock => OpenError::Held,
                std::fs::TryLockError::Error(error) => OpenError::Io(error),
            })?;
        }
        let bytes = file.metadata()?.len();
        let mut log = Self { file, bytes, is_dirty: false, line: Vec::new() };
        // A torn end must not swallow our first line.
        let mut last = [b'\n'];
        if bytes > 0 {
            log.file.read_exact_at(&mut last, bytes - 1)?;
        }
        if last != [b'\n'] {
            log.line.push(b'\n');
        }
        encode(&Line::Opened(opened), &mut log.line);
        log.write()?;
        log.sync()?;
        if let Some(dir) = path.parent() {
            File::open(dir)?.sync_all()?;
        }
        Ok(log)
    }

    pub(super) fn append(&mut self, line: &Line) -> io::Result<()> {
        encode(line, &mut self.line);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all(&self.line)?;
        self.bytes += self.line.len() as u64;
        self.is_dirty = true;
        self.line.clear();
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.is_dirty {
            self.file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests;
