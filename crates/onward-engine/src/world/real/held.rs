//! A lock that another program holds: waiting for it, and who that program is.
//!
//! Invariant: a driver that waits here has written nothing yet, and may stop waiting at any time.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use super::disk::io_stop;
use crate::world::{Stop, open};

/// How soon a person who interrupts is heard.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// So many looks are without a word, half a second: programs hold such a lock for moments.
const LOOKS_SILENT: u32 = 10;

/// What is done while a lock is waited for. Once it is given the words that say for what; what it
/// says against waiting ends the wait.
pub(crate) type Meanwhile<'a> = dyn FnMut(Option<&str>) -> Result<(), Stop> + 'a;

/// Takes the lock of a file, in the order in which programs asked for it.
pub(crate) fn hold(file: File, path: &Path, meanwhile: &mut Meanwhile<'_>) -> Result<File, Stop> {
    let failed = || io_stop("hold", path);
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(failed()(error)),
    }
    // The lock belongs to both names of the open file. A driver that stops waiting drops this one;
    // the other one goes when the lock comes.
    let same = file.try_clone().map_err(failed())?;
    let (teller, told) = channel();
    thread::spawn(move || {
        let _ = teller.send(same.lock());
    });
    let mut looks = 0_u32;
    loop {
        match told.recv_timeout(LOOK_EVERY) {
            Ok(locked) => return locked.map(|()| file).map_err(failed()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed()(std::io::ErrorKind::Other.into()));
            }
        }
        looks = looks.saturating_add(1);
        let words = (looks == LOOKS_SILENT).then(|| words(&file, path));
        meanwhile(words.as_deref())?;
    }
}

fn words(file: &File, path: &Path) -> String {
    let holder = holder(file, path).unwrap_or_else(|| "another program".to_owned());
    format!("waiting for {}, which {holder} holds", path.display())
}

/// The program that holds the lock, as far as this machine tells.
fn holder(file: &File, path: &Path) -> Option<String> {
    let known = file.metadata().ok()?;
    let path = fs::canonicalize(path).ok()?;
    let locks = open::text_named(Path::new("/proc/locks"), TABLE_BYTES_MAX).ok()?;
    let pids = locks.lines().filter_map(|line| pid_of(line, known.ino()));
    let pid = pids.into_iter().find(|pid| has_open(*pid, &path))?;
    let name = open::text_named(Path::new(&format!("/proc/{pid}/comm")), 4096).ok()?;
    Some(format!("{} (pid {pid})", name.trim_end()))
}

/// Far beyond what a busy machine has.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Of a line such as `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`, if it is about this inode.
/// A line with an arrow tells of a process that waits.
fn pid_of(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, file, ..] = words.as_slice() else { return None };
    let is_it = file.rsplit(':').next()?.parse() == Ok(inode);
    pid.parse().ok().filter(|pid| is_it && *pid > 0)
}

/// Other file systems have the same inodes.
fn has_open(pid: u32, path: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|it| fs::read_link(it.path()).ok()).any(|it| it == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_another_holds_is_named_with_its_holder_and_taken_when_it_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let open = || File::options().create(true).append(true).open(&path).unwrap();
        let other = open();
        other.lock().unwrap();
        let (mut other, mut told) = (Some(other), Vec::new());
        hold(open(), &path, &mut |words| {
            if let Some(words) = words {
                told.push(words.to_owned());
                other = None;
            }
            Ok(())
        })
        .unwrap();
        let [words] = told.as_slice() else { panic!("{told:?}") };
        let of = format!("waiting for {}, which ", path.display());
        assert!(words.starts_with(&of), "{words}");
        assert!(words.ends_with(&format!("(pid {}) holds", std::process::id())), "{words}");
    }

    #[test]
    fn one_who_waits_may_stop_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let open = || File::options().create(true).append(true).open(&path).unwrap();
        let other = open();
        other.lock().unwrap();
        let stopped = hold(open(), &path, &mut |_| Err(Stop::Interrupted));
        assert!(matches!(stopped, Err(Stop::Interrupted)), "{stopped:?}");
    }

    #[test]
    fn the_kernels_table_names_holders_and_those_who_wait() {
        let line = "3: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF";
        assert_eq!(pid_of(line, 5678), Some(1234));
        assert_eq!(pid_of(line, 567), None);
        assert_eq!(pid_of("3: -> FLOCK  ADVISORY  WRITE 9 fd:01:5678 0 EOF", 5678), None);
        assert_eq!(pid_of("3: FLOCK  ADVISORY  WRITE -1 fd:01:5678 0 EOF", 5678), None);
        assert_eq!(pid_of("", 5678), None);
    }
}
