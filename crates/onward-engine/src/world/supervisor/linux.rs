//! What only Linux can tell or do: process identities from `/proc`, signals through pidfds, the
//! subreaper, and the two clocks.
//!
//! Invariant: a signal to a single process goes through a pidfd whose start time was read again
//! after it was opened, so a re-used pid is never hit.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::fs::FileExt as _},
};

use onward_core::time::Timestamp;
use rustix::{
    process::{Pid, PidfdFlags, Signal},
    time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic},
};
use serde::{Deserialize, Serialize};

/// One process. A pid alone is used again; with its start time it is not, until the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// Clock ticks since boot.
    pub start_time: u64,
}

impl Identity {
    /// `None` where `/proc` cannot be read.
    pub fn of_this_process() -> Option<Self> {
        Some(process(rustix::process::getpid().as_raw_nonzero().get())?.id)
    }

    /// Whether exactly this process runs, on this machine and since its last boot.
    pub fn is_alive(self) -> bool {
        process(self.pid).is_some_and(|found| found.id == self && !found.is_dead)
    }
}

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: Identity,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// A zombie counts as dead: nothing of it runs.
    pub(super) is_dead: bool,
    /// A part of the kernel: it has no environment, and no attempt started it.
    pub(super) is_kernel: bool,
}

/// The attempt that a process belongs to, as its environment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) run: String,
    /// Of the run's directory: a copy of the run has the same name.
    pub(super) spot: String,
    pub(super) step: String,
    pub(super) attempt: Option<u32>,
}

pub(super) const TAG_RUN: &str = "ONWARD_RUN";
pub(super) const TAG_SPOT: &str = "ONWARD_SPOT";
pub(super) const TAG_STEP: &str = "ONWARD_STEP";
pub(super) const TAG_ATTEMPT: &str = "ONWARD_ATTEMPT";

/// Names the time since the last boot; pids and start times mean nothing beyond it.
pub fn boot_id() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim_end().to_owned())
}

pub(super) fn process(pid: i32) -> Option<Process> {
    // A thread's directory answers too, but only processes are ever listed or waited for.
    // One read, because this is asked at every spawn; the kernel gives the line whole.
    let mut stat = [0; 1024];
    let count = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse_stat(pid, &stat[..count])
}

/// `PF_KTHREAD` among the flags of a process.
const OF_KERNEL: u32 = 0x0020_0000;

/// The command's name stands in parentheses and may contain any byte, `)` included.
fn parse_stat(pid: i32, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // Fields 9, 20 and 22 of the whole line; session, the sixth, comes next.
    let flags: u32 = fields.nth(3)?.parse().ok()?;
    let threads: u32 = fields.nth(10)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    // The first thread may be over while others of the same process go on.
    let is_dead = matches!(state, "Z" | "X" | "x") && threads <= 1;
    let is_kernel = flags & OF_KERNEL != 0;
    Some(Process { id: Identity { pid, start_time }, parent, group, is_dead, is_kernel })
}

/// Every process that can be seen now.
pub(super) fn table() -> io::Result<BTreeMap<i32, Process>> {
    let mut table = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(process) = pid.and_then(process) {
            table.insert(process.id.pid, process);
        }
    }
    Ok(table)
}

/// `None` where the environment cannot be read or carries no tag. Patient with a process that is in
/// the middle of becoming another program: for a moment it has neither environment nor words.
pub(super) fn tag_of(pid: i32) -> Option<Tag> {
    let moment = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    for _ in 0..EXEC_MOMENTS_MAX {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        if !environ.is_empty() || !is_becoming(pid) {
            return parse_tag(&environ);
        }
        let _ = rustix::event::poll(&mut [], Some(&moment));
    }
    None
}

/// A process that has no words is becoming a program, or is a part of the kernel, or dead; those
/// have no program either.
fn is_becoming(pid: i32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline"));
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    words.is_ok_and(|it| it.is_empty()) && program.is_ok()
}

/// A process that has no program any more is dead, or about to be, and does nothing more.
pub(super) fn is_dying(pid: i32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Moments of a millisecond; a process that is to become a program is waited for that long.
const EXEC_MOMENTS_MAX: usize = 200;

fn parse_tag(environ: &[u8]) -> Option<Tag> {
    let value_of = |name: &str| {
        let mut entries = environ.split(|byte| *byte == 0);
        let value = entries
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .map(|value| String::from_utf8_lossy(value).into_owned());
        value.filter(|value| !value.is_empty())
    };
    let run = value_of(TAG_RUN)?;
    let attempt = value_of(TAG_ATTEMPT).and_then(|text| text.parse().ok());
    let [spot, step] = [TAG_SPOT, TAG_STEP].map(|name| value_of(name).unwrap_or_default());
    Some(Tag { run, spot, step, attempt })
}

/// A process held by its pidfd; a later process with the same pid is not meant.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) fd: OwnedFd,
}

impl Held {
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(&self.fd, signal)?)
    }
}

/// `None` when that process is gone, even if another has its pid now.
pub(super) fn hold(id: Identity) -> Option<Held> {
    let fd = rustix::process::pidfd_open(Pid::from_raw(id.pid)?, PidfdFlags::empty()).ok()?;
    let now = process(id.pid)?;
    (now.id == id && !now.is_dead).then_some(Held { fd })
}

/// Signals exactly this process; says whether it was still there.
pub(super) fn signal(id: Identity, signal: Signal) -> bool {
    hold(id).is_some_and(|held| held.signal(signal).is_ok())
}

/// Signals the process group that an unreaped child of ours leads. While it is not reaped, no
/// other process can have that number.
pub(super) fn signal_group(leader: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(leader) {
        // Gone already, or moved to another group: the caller's look at the table finds the rest.
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

/// Orphaned descendants come to us instead of to init.
pub(super) fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Our direct children, from the kernel's own list: one small read instead of a walk of `/proc`.
#[derive(Debug)]
pub(super) struct Children {
    /// Of the thread that spawns, and of the main thread, which inherits orphans.
    lists: Vec<File>,
}

impl Children {
    /// `None` where the kernel has no such list.
    pub(super) fn open() -> Option<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero();
        let main = format!("/proc/self/task/{pid}/children");
        let is_main = std::fs::read_link("/proc/thread-self").ok()?.ends_with(pid.to_string());
        let mut lists = vec![File::open(main).ok()?];
        if !is_main {
            lists.push(File::open("/proc/thread-self/children").ok()?);
        }
        Some(Self { lists })
    }

    /// Zombies that are not reaped yet are in the list.
    pub(super) fn pids(&self) -> io::Result<Vec<i32>> {
        let mut text = [0; 4096];
        let mut pids = Vec::new();
        for list in &self.lists {
            let mut all = Vec::new();
            loop {
                let count = list.read_at(&mut text, all.len() as u64)?;
                all.extend_from_slice(&text[..count]);
                // The kernel fills a page before it stops, so a small answer is the whole.
                if count < text.len() / 2 {
                    break;
                }
            }
            let words = all.split(|byte| *byte == b' ');
            let numbers =
                words.filter_map(|word| std::str::from_utf8(word).ok()?.parse::<i32>().ok());
            pids.extend(numbers);
        }
        Ok(pids)
    }
}

/// Milliseconds on a clock that stands still while the machine sleeps.
pub(super) fn awake_ms() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// The start time of a process that would start right now.
pub(super) fn ticks_now() -> u64 {
    let clock = DynamicClockId::Boottime;
    let Ok(now) = clock_gettime_dynamic(clock) else { return 0 };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * TICKS_PER_SECOND
        + u64::try_from(now.tv_nsec).unwrap_or(0) * TICKS_PER_SECOND / 1_000_000_000
}

/// Fixed towards programs, whatever the kernel itself counts in.
const TICKS_PER_SECOND: u64 = 100;

/// The time on the wall, for people.
pub(super) fn wall_now() -> Timestamp {
    let now = clock_gettime(ClockId::Realtime);
    Timestamp::from_micros(now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
}

/// Bytes that no stranger can foretell.
pub(crate) fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut random = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_its_stat_line() {
        let stat = b"42 (a) Z 1 (b)) S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 10 11";
        let expected = Process {
            id: Identity { pid: 42, start_time: 98765 },
            parent: 7,
            group: 8,
            is_dead: false,
            is_kernel: false,
        };
        assert_eq!(parse_stat(42, stat), Some(expected));
        let kernel = b"7 (kworker/0:0) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 8 0 0";
        assert!(parse_stat(7, kernel).unwrap().is_kernel);
        assert_eq!(parse_stat(42, b"42 (a) S 7"), None);
        let with = |state_and_threads: (&str, u32)| {
            let (state, threads) = state_and_threads;
            let text = format!("42 (a) {state} 7 8 9{} {threads} 0 98765", " 1".repeat(13));
            parse_stat(42, text.as_bytes()).unwrap().is_dead
        };
        assert_eq!([("Z", 1), ("Z", 2), ("S", 1)].map(with), [true, false, false]);
    }

    #[test]
    fn a_tag_is_read_from_whole_entries_only() {
        let tag = parse_tag(
            b"XONWARD_RUN=no\0ONWARD_RUN=r-1\0ONWARD_SPOT=8:1\0ONWARD_STEP=a/b\0ONWARD_ATTEMPT=3\0",
        );
        let (run, spot, step) = ("r-1".into(), "8:1".into(), "a/b".into());
        let expected = Tag { run, spot, step, attempt: Some(3) };
        assert_eq!(tag, Some(expected));
        assert_eq!(parse_tag(b"ONWARD_RUN=\0"), None);
        assert_eq!(parse_tag(b"ONWARD_RUNS=x\0A=ONWARD_RUN=x\0"), None);
    }

    #[test]
    fn a_recycled_pid_is_never_held_nor_signalled() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let truth = process(pid).unwrap().id;
        let earlier = Identity { start_time: truth.start_time - 1, ..truth };
        let (was_held, was_hit) = (hold(earlier).is_some(), signal(earlier, Signal::TERM));
        let was_spared = signal(truth, Signal::KILL);
        // Before anything is asserted: a failing test must not leave it behind.
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(!was_held && !was_hit, "the wrong start time is another process");
        assert!(was_spared);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert!(hold(truth).is_none(), "gone after it was reaped");
    }

    #[test]
    fn a_process_never_starts_before_the_tick_that_was_read_before_it() {
        let before = ticks_now();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let started = process(i32::try_from(child.id()).unwrap()).unwrap().id.start_time;
        assert!((before..=ticks_now()).contains(&started));
        child.wait().unwrap();
    }

    #[test]
    fn the_process_table_knows_us_and_our_parent() {
        let us = i32::try_from(std::process::id()).unwrap();
        let table = table().unwrap();
        let parent = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(table[&us].parent, parent);
        assert_eq!(Some(table[&us]), process(us));
    }
}
