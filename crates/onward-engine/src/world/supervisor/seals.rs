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

use crate::world::{
    open::{self, To},
    spot::Spot,
};
use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _, Write as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use onward_core::{address::Address, launch::Seal, mark::Mark, state::State, time::Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(crate) use self::seen::{LOG_BYTES_MIN, Seen};
use self::told::Told;
use super::linux::Identity;

mod quick;
mod seen;
mod told;

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
    /// The supervisor and all that it holds are in a control group of their own.
    Grouped(Grouped),
    /// A process left its parents behind and came to the supervisor.
    Stray(Stray),
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
    /// The run directory that it served; a copy of the log tells of processes that are not ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<Spot>,
}

impl Opened {
    /// Whether it began in this boot, for this very directory.
    pub fn is_of(&self, boot_id: &str, run_dir: &Path) -> bool {
        self.boot_id == boot_id && Spot::is_of(self.spot, run_dir)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawning {
    pub step: Address,
    pub attempt: u32,
    pub at: Timestamp,
    /// Whose start it is. Lines of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Mark>,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grouped {
    pub dir: PathBuf,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    pub pid: i32,
    pub start_time: u64,
    pub at: Timestamp,
}

/// What the log says, and where it cannot be believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seals {
    pub lines: Vec<Line>,
    /// Unreadable bytes with readable ones of the same life after them.
    pub damaged: Vec<Unreadable>,
    /// Unreadable bytes at the end of a life: a power cut. What they said is lost, no more.
    pub torn: Vec<Unreadable>,
    /// The latest end that was passed over; `None` where nothing was.
    pub last_passed: Option<Timestamp>,
    /// The last life, or none yet, has starts that were passed over.
    pub passed_starts: bool,
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
            | Line::Grouped(_)
            | Line::Stray(_)
            | Line::Unknown(_) => None,
        });
        if let Some(seal) = seal {
            seal.after.clone_from(&snapshot.after);
        }
    }

    /// Every seal, whether it counts or not.
    pub fn seals(&self) -> impl Iterator<Item = &Seal> {
        self.lines.iter().filter_map(|line| match line {
            Line::Exited(seal) => Some(seal),
            Line::Opened(_)
            | Line::Spawning(_)
            | Line::Spawned(_)
            | Line::Snapshot(_)
            | Line::OutputLost(_)
            | Line::Grouped(_)
            | Line::Stray(_)
            | Line::Unknown(_) => None,
        })
    }

    /// The seals that count in the boot `boot_id`, and those that do not: of an earlier boot, of a
    /// success, and written before what they speak of was on the disk.
    pub fn seals_in_boot(self, boot_id: &str) -> (Vec<Seal>, Vec<Seal>) {
        let mut is_this_boot = false;
        let (mut counting, mut unsettled) = (Vec::new(), Vec::new());
        for line in self.lines {
            match line {
                Line::Opened(opened) => is_this_boot = opened.boot_id == boot_id,
                Line::Exited(seal) if is_this_boot || seal.outlasts_a_restart() => {
                    counting.push(seal);
                }
                Line::Exited(seal) => unsettled.push(seal),
                Line::Spawning(_)
                | Line::Spawned(_)
                | Line::Snapshot(_)
                | Line::OutputLost(_)
                | Line::Grouped(_)
                | Line::Stray(_)
                | Line::Unknown(_) => {}
            }
        }
        (counting, unsettled)
    }

    /// Lines that cannot be read and may be a seal, counted from 1. One that was never written to
    /// its end is lost, as one that was not written at all.
    pub fn doubtful(&self) -> Vec<u64> {
        let torn = self.torn.iter().filter(|it| !it.is_cut);
        self.damaged.iter().chain(torn).map(|it| it.line).collect()
    }

    /// Every identity that was recorded since the boot `boot_id` for this very run directory,
    /// whether it lives or not, and every control group.
    pub fn kin_since_boot(
        &self,
        boot_id: &str,
        run_dir: &Path,
    ) -> (BTreeSet<Identity>, Vec<&Path>) {
        let mut is_this_boot = false;
        let (mut known, mut groups) = (BTreeSet::new(), Vec::new());
        for line in &self.lines {
            match line {
                Line::Opened(opened) => is_this_boot = opened.is_of(boot_id, run_dir),
                Line::Spawned(it) if is_this_boot => {
                    known.insert(it.identity());
                }
                Line::Stray(it) if is_this_boot => {
                    known.insert(Identity { pid: it.pid, start_time: it.start_time });
                }
                Line::Grouped(it) if is_this_boot => groups.push(it.dir.as_path()),
                Line::Spawned(_)
                | Line::Stray(_)
                | Line::Grouped(_)
                | Line::Spawning(_)
                | Line::Exited(_)
                | Line::Snapshot(_)
                | Line::OutputLost(_)
                | Line::Unknown(_) => {}
            }
        }
        (known, groups)
    }
}

/// Bytes of which nothing, or only their beginning, can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Counted from 1, as editors do.
    pub line: u64,
    pub offset: u64,
    pub bytes: u64,
    /// A write that did not come to its end: a power cut, or a full disk. Otherwise it was written,
    /// and became another one since.
    pub is_cut: bool,
}

/// Whether a line that cannot be read lacks its end, give or take the byte that was spoilt.
fn is_cut(line: &[u8]) -> bool {
    const END: &[u8; CRC_BYTES] = b"\"crc\":\"xxxxxxxx\"}";
    let ends_right = |line: &[u8]| {
        let end = line.last_chunk::<CRC_BYTES>();
        end.is_some_and(|end| {
            let differs = |(is, should): &(&u8, &u8)| **should != b'x' && is != should;
            end.iter().zip(END).filter(differs).count() <= 1
        })
    };
    let (_, shorter) = line.split_last().unwrap_or((&0, line));
    let is_whole = ends_right(line) || ends_right(shorter);
    // One NUL byte may be a spoilt space; a power cut leaves many.
    let has_hole = line.iter().filter(|byte| **byte == 0).nth(1).is_some();
    !is_whole || has_hole
}

/// Reads the log, or only its first `bytes_max` bytes: what had been written when an engine was
/// welcomed. A log that does not exist is empty.
pub fn read_seals(path: &Path, bytes_max: Option<u64>) -> io::Result<Seals> {
    Ok(decode(&bytes_of(path, bytes_max)?))
}

/// The same for one who has the journal: start and end of attempts by which it has steps done are
/// passed over. What was `seen` before is only summed.
pub(crate) fn read_seals_beyond(
    state: &State,
    path: &Path,
    bytes_max: Option<u64>,
    seen: Option<&Seen>,
) -> io::Result<Seals> {
    if let Some(seen) = seen.filter(|it| it.fits(state))
        && let Ok(log) = open::at(path, To::Read)
        && let Some(mini) = seen.and_rest(log, bytes_max.unwrap_or(u64::MAX))?
    {
        return Ok(seen.decode(state, &mini));
    }
    Ok(decode_beyond(state, &bytes_of(path, bytes_max)?))
}

fn bytes_of(path: &Path, bytes_max: Option<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match open::at(path, To::Read) {
        Ok(file) => file.take(bytes_max.unwrap_or(u64::MAX)).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    Ok(bytes)
}

pub(super) fn decode(bytes: &[u8]) -> Seals {
    decode_beyond(&State::default(), bytes)
}

fn decode_beyond(state: &State, bytes: &[u8]) -> Seals {
    decode_from(state, bytes, None)
}

/// Where something was `seen` before, `bytes` are what is kept of that and what follows it.
fn decode_from(state: &State, bytes: &[u8], seen: Option<&Seen>) -> Seals {
    let told = if state.steps.is_empty() { None } else { Some(Told::look(bytes, state, seen)) };
    let last_passed = told.as_ref().and_then(|it| it.last_end);
    let mut seals = Seals { last_passed, ..Seals::default() };
    // What stood between the kept lines: so far on is the rest of the log.
    let kept = seen.map_or(0, |it| it.kept.len());
    let left_out = seen.map_or((0, 0), |it| {
        let lines = memchr::memchr_iter(b'\n', &it.kept).count();
        (it.lines - lines as u64, it.length - kept as u64)
    });
    let mut unclear: Vec<Unreadable> = Vec::new();
    // Where this line begins, and where the last one that cannot be read does.
    let (mut offset, mut begun) = (0, 0);
    for number in 0.. {
        if offset == kept {
            seals.passed_starts |= seen.is_some_and(|it| it.passed_starts);
        }
        let rest = &bytes[offset..];
        if rest.is_empty() {
            break;
        }
        let end = memchr::memchr(b'\n', rest);
        let (text, length) = end.map_or((rest, rest.len()), |end| (&rest[..end], end + 1));
        if told.as_ref().is_some_and(|it| it.has(number)) {
            seals.damaged.append(&mut unclear);
            seals.passed_starts = true;
        } else if let Some(decoded) = decode_line(text, offset < kept) {
            let ends_a_life = matches!(decoded, Line::Opened(_));
            let sort = if ends_a_life { &mut seals.torn } else { &mut seals.damaged };
            sort.append(&mut unclear);
            seals.passed_starts &= !ends_a_life;
            let is_told = |it: &Snapshot| {
                told.as_ref().is_some_and(|told| told.has_seal(state, it.step.as_str(), it.attempt))
            };
            // What is added to a seal that was passed over is, too.
            if !matches!(&decoded, Line::Snapshot(it) if is_told(it)) {
                seals.add_to_seal(&decoded);
                seals.lines.push(decoded);
            }
        } else {
            // A spoilt byte may have become the end of a line: then the two are one.
            if let Some(before) = unclear.last_mut() {
                before.is_cut &= is_cut(&bytes[begun..offset + text.len()]);
            }
            begun = offset;
            let is_cut = is_cut(text);
            let line = left_out.0 + number as u64 + 1;
            let (offset, bytes) = (left_out.1 + offset as u64, length as u64);
            unclear.push(Unreadable { line, offset, bytes, is_cut });
        }
        offset += length;
    }
    seals.torn.append(&mut unclear);
    seals
}

/// `"crc":"xxxxxxxx"}`; the comma before it is under the checksum.
const CRC_BYTES: usize = 17;
const KIND_START: &[u8] = b"{\"kind\":\"";

/// What stands under the checksum of a line, if that is right.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (body, end) = line.split_at_checked(line.len().checked_sub(CRC_BYTES)?)?;
    let hex = end.strip_prefix(b"\"crc\":\"")?.strip_suffix(b"\"}")?;
    (crc_digits(crc32fast::hash(body)) == *hex).then_some(body)
}

/// What stands there, without a look at its checksum: for lines that were found right before, and
/// that are kept where only this user writes.
fn unchecked(line: &[u8]) -> Option<&[u8]> {
    line.split_at_checked(line.len().checked_sub(CRC_BYTES)?).map(|(body, _)| body)
}

fn decode_line(line: &[u8], is_kept: bool) -> Option<Line> {
    let body = if is_kept { unchecked(line) } else { checked(line) }?;
    if let Some(line) = quick::line(body) {
        return Some(line);
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
        b"grouped" => parse(line).map(Line::Grouped),
        b"stray" => parse(line).map(Line::Stray),
        other => Some(Line::Unknown(String::from_utf8_lossy(other).into_owned())),
    }
}

fn crc_digits(crc: u32) -> [u8; 8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 8];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        *digit = DIGITS[(crc >> (4 * place)) as usize & 15];
    }
    digits
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

/// What the lines about one attempt may take, from its first to its end.
const ATTEMPT_BYTES: u64 = 8 << 10;
/// Room is made in pieces of this size.
const ROOM_BYTES: u64 = 64 << 10;

/// The log as its one writer has it. A failed write ends the supervisor: it never appends again.
/// So no attempt begins for whose end there is no room: a disk that fills up, or a file that may
/// not grow, takes the end of nothing that was begun.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    bytes: u64,
    /// The file may grow up to here for sure.
    room_to: u64,
    is_dirty: bool,
    line: Vec<u8>,
}

/// Between two tries at the lock of a log.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// So many tries, ten seconds at the least, one that leaves or comes has to do so. Far beyond what
/// a loaded machine takes.
const LOOKS_MAX: u32 = 5_000;

/// Another supervisor holds the log.
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
    /// Takes the lock and begins a new life. A lock that is held is waited for unless `is_kept`
    /// says that its holder will keep it.
    pub(super) fn open(
        path: &Path,
        is_kept: impl Fn() -> bool,
        opened: Opened,
    ) -> Result<Self, OpenError> {
        let file = open::at(path, To::Append)?;
        let mut looks = 0;
        while let Err(error) = file.try_lock() {
            match error {
                std::fs::TryLockError::WouldBlock if is_kept() || looks == LOOKS_MAX => {
                    return Err(OpenError::Held);
                }
                std::fs::TryLockError::WouldBlock => thread::sleep(LOOK_EVERY),
                std::fs::TryLockError::Error(error) => return Err(OpenError::Io(error)),
            }
            looks += 1;
        }
        let bytes = file.metadata()?.len();
        let mut log = Self { file, bytes, room_to: bytes, is_dirty: false, line: Vec::new() };
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
            open::sync_dir(dir)?;
        }
        Ok(log)
    }

    /// Makes room for the ends of so many attempts, or says why there is none.
    pub(super) fn make_room(&mut self, attempts: usize) -> io::Result<()> {
        let needed = self.bytes + ATTEMPT_BYTES * attempts as u64;
        if needed <= self.room_to {
            return Ok(());
        }
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| needed > limit) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let to = limit.map_or(needed + ROOM_BYTES, |limit| limit.min(needed + ROOM_BYTES));
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, self.bytes, to - self.bytes) {
            // Some file systems cannot tell beforehand.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                self.room_to = to;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
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

impl Drop for Log {
    /// Gives back the room that was not needed.
    fn drop(&mut self) {
        if self.room_to <= self.bytes {
            return;
        }
        let length = self.file.metadata().map(|found| found.len());
        let _ = length.and_then(|length| self.file.set_len(length));
    }
}

#[cfg(test)]
mod tests;
