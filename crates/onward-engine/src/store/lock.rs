//! Who drives a run, and who edits the tree.
//!
//! Invariant: the kernel's lock alone decides. What the file says informs people, and those who
//! must not touch the lock; a holder that died needs no ritual.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use onward_core::{id::RunId, time::Timestamp};
use serde::{Deserialize, Serialize};

use super::Project;
use crate::supervisor::{Identity, boot_id};

/// What a lock file says about its holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub run: RunId,
    pub pid: i32,
    pub start_time: u64,
    pub boot_id: String,
    pub host: String,
    /// 0 until the journal was opened.
    pub epoch: u32,
    pub since: Timestamp,
}

impl Holder {
    fn of_us(run: &RunId, since: Timestamp) -> io::Result<Self> {
        let us = Identity::of_this_process().ok_or(io::ErrorKind::NotFound)?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Self {
            run: run.clone(),
            pid: us.pid,
            start_time: us.start_time,
            boot_id: boot_id()?,
            host: host.trim_end().to_owned(),
            epoch: 0,
            since,
        })
    }

    /// On this machine, since its last boot.
    fn is_alive(&self) -> bool {
        let identity = Identity { pid: self.pid, start_time: self.start_time };
        boot_id().is_ok_and(|boot| boot == self.boot_id) && identity.is_alive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("run `{run}` is driven by {}", shown(holder.as_deref()))]
    RunHeld { run: RunId, holder: Option<Box<Holder>> },
    #[error("run `{run}` is working in this tree: {}", shown(holder.as_deref()))]
    TreeHeld { run: String, holder: Option<Box<Holder>> },
    #[error("cannot lock {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl LockError {
    pub fn hint(&self) -> String {
        match self {
            Self::RunHeld { run, .. } => format!("watch it with `onward attach {run}`"),
            Self::TreeHeld { run, .. } => {
                format!("wait for it, or stop it with `onward pause {run}`")
            }
            Self::Io { .. } => "see whether this file system knows locks".to_owned(),
        }
    }
}

fn shown(holder: Option<&Holder>) -> String {
    match holder {
        None => "another process".to_owned(),
        Some(Holder { pid, host, since, .. }) => {
            format!("process {pid} on {host} since {since}")
        }
    }
}

/// The right to write to a run, until it is dropped.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    path: PathBuf,
    holder: Holder,
}

impl RunLock {
    pub fn take(run_dir: &Path, run: &RunId, now: Timestamp) -> Result<Self, LockError> {
        let path = run_dir.join("lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        let file = open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read(&path).map(Box::new);
                return Err(LockError::RunHeld { run: run.clone(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let holder = Holder::of_us(run, now).map_err(failed)?;
        let mut lock = Self { file, path: path.clone(), holder };
        lock.write().map_err(failed)?;
        Ok(lock)
    }

    /// Tells people under which epoch we write.
    pub fn note_epoch(&mut self, epoch: u32) -> Result<(), LockError> {
        self.holder.epoch = epoch;
        let path = self.path.clone();
        self.write().map_err(|source| LockError::Io { path, source })
    }

    fn write(&mut self) -> io::Result<()> {
        rewrite(&mut self.file, &self.holder)
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Nobody who only looks shall take us for a driver.
        let _ = self.file.set_len(0);
        // A child that another thread is just starting has the file open too, until it is executed:
        // closing ours alone would leave the lock with it.
        let _ = self.file.unlock();
    }
}

/// Who drives the run now, found out without touching the lock.
pub fn holder(run_dir: &Path) -> Option<Holder> {
    read(&run_dir.join("lock")).filter(Holder::is_alive)
}

/// What a run does to the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Some step may change anything in it.
    Alone,
    /// Steps write what they declare, or work in trees of their own.
    WithOthers,
}

/// The right to work in the project's tree, until it is dropped.
#[derive(Debug)]
pub struct TreeLock {
    file: File,
    share: Share,
}

impl TreeLock {
    pub fn take(
        project: &Project,
        run: &RunId,
        share: Share,
        now: Timestamp,
    ) -> Result<Self, LockError> {
        let path = project.onward_dir().join("tree.lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        let mut file = open(&path).map_err(failed)?;
        let taken = match share {
            Share::Alone => file.try_lock(),
            Share::WithOthers => file.try_lock_shared(),
        };
        match taken {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read(&path).or_else(|| other_driver(project, run));
                let run = holder.as_ref().map_or_else(String::new, |it| it.run.to_string());
                let holder = holder.map(Box::new);
                return Err(LockError::TreeHeld { run, holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        match share {
            Share::Alone => {
                let holder = Holder::of_us(run, now).map_err(failed)?;
                rewrite(&mut file, &holder).map_err(failed)?;
            }
            // Left by one that died; many who share have no one name.
            Share::WithOthers => file.set_len(0).map_err(failed)?,
        }
        Ok(Self { file, share })
    }
}

impl Drop for TreeLock {
    fn drop(&mut self) {
        if self.share == Share::Alone {
            let _ = self.file.set_len(0);
        }
        let _ = self.file.unlock();
    }
}

/// Those who share do not sign; their run locks name them.
fn other_driver(project: &Project, us: &RunId) -> Option<Holder> {
    let runs = project.runs().ok()?;
    runs.iter().filter(|it| it.id != *us).find_map(|it| holder(&it.dir))
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn read(path: &Path) -> Option<Holder> {
    let mut text = String::new();
    File::open(path).ok()?.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn rewrite(file: &mut File, holder: &Holder) -> io::Result<()> {
    let mut text = serde_json::to_vec(holder)?;
    text.push(b'\n');
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        text.parse().unwrap()
    }

    #[test]
    fn one_driver_at_a_time_and_a_refusal_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::from_micros(7);
        assert_eq!(holder(dir.path()), None);
        let mut lock = RunLock::take(dir.path(), &id("r-1"), now).unwrap();
        lock.note_epoch(3).unwrap();
        let seen = holder(dir.path()).unwrap();
        assert_eq!((seen.epoch, seen.since), (3, now));
        assert_eq!(seen.pid.cast_unsigned(), std::process::id());
        let refused = RunLock::take(dir.path(), &id("r-1"), now).unwrap_err();
        let LockError::RunHeld { holder: Some(named), .. } = refused else { panic!() };
        assert_eq!(*named, seen);
        drop(lock);
        assert_eq!(holder(dir.path()), None);
        RunLock::take(dir.path(), &id("r-1"), now).unwrap();
    }

    #[test]
    fn a_dead_holder_needs_no_ritual() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::from_micros(7);
        let us = Holder::of_us(&id("r-1"), now).unwrap();
        for dead in [
            Holder { start_time: us.start_time - 1, ..us.clone() },
            Holder { boot_id: "another".into(), ..us.clone() },
        ] {
            std::fs::write(dir.path().join("lock"), serde_json::to_vec(&dead).unwrap()).unwrap();
            assert_eq!(holder(dir.path()), None);
            RunLock::take(dir.path(), &id("r-1"), now).unwrap();
        }
    }

    #[test]
    fn one_editor_per_tree_and_many_who_only_write_what_they_declared() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".onward/runs/other-1")).unwrap();
        let project = Project::locate(dir.path()).unwrap();
        let now = Timestamp::from_micros(7);
        let take = |run: &str, share| TreeLock::take(&project, &id(run), share, now);
        let one = take("one", Share::WithOthers).unwrap();
        let two = take("two", Share::WithOthers).unwrap();
        let other_dir = project.runs_dir().join("other-1");
        std::fs::write(other_dir.join("journal.jsonl"), "").unwrap();
        let _driver = RunLock::take(&other_dir, &id("other-1"), now).unwrap();
        let refused = take("three", Share::Alone).unwrap_err();
        assert!(matches!(&refused, LockError::TreeHeld { run, .. } if run == "other-1"));
        drop((one, two));
        let editor = take("three", Share::Alone).unwrap();
        for share in [Share::Alone, Share::WithOthers] {
            let refused = take("four", share).unwrap_err();
            assert!(matches!(&refused, LockError::TreeHeld { run, .. } if run == "three"));
        }
        drop(editor);
        take("four", Share::WithOthers).unwrap();
    }
}
