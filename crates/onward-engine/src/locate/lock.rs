//! Who drives a run, and who edits the tree.
//!
//! Invariant: on a local disk the kernel's lock alone decides; what the file says informs people,
//! and those who must not touch the lock, and a holder that died needs no ritual. On a network file
//! system the kernel may not know of other machines: there a holder on another one stands until
//! a person says that it is gone.

use crate::world::{open, spot::Spot};
use std::{
    fs::{File, TryLockError},
    io::{self, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use onward_core::{
    finding::{Code, Finding},
    id::RunId,
    time::Timestamp,
    worktree::WORKTREES,
};
use serde::{Deserialize, Serialize};

use super::{Project, network};
use crate::world::supervisor::{Identity, boot_id};

/// Between two tries at a lock that a dead driver has left locked.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// So many tries, five seconds at the least, a child of a dead driver has to become a program. Far
/// beyond what a loaded machine takes.
const LOOKS_MAX: u32 = 2_500;

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
    /// Before it opens the journal, it waits for this moment: a limit holds until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// The directory that the lock lies in: a copy of it has a copy of what it says.
    #[serde(default)]
    pub spot: Option<Spot>,
}

impl Holder {
    fn of_us(run: &RunId, since: Timestamp, lock: &Path) -> io::Result<Self> {
        let us = Identity::of_this_process().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            run: run.clone(),
            pid: us.pid,
            start_time: us.start_time,
            boot_id: boot_id()?,
            host: host(),
            epoch: 0,
            since,
            waits_until: None,
            spot: lock.parent().map(Spot::of).transpose()?,
        })
    }

    /// It drives the run at this moment.
    pub fn still_running(&self) -> Finding {
        let Self { pid, host, since, .. } = self;
        let message = format!("it is driven by process {pid} on {host} since {since}");
        Finding::new(Code::StillRunning, message).with_hint("watch it with `onward attach`")
    }

    /// By its name; what this machine knows of processes says nothing about another one's.
    fn is_elsewhere(&self) -> bool {
        self.host != host()
    }

    /// On this machine, since its last boot, and with a lock in this very directory.
    fn is_alive_in(&self, dir: &Path) -> bool {
        let identity = Identity { pid: self.pid, start_time: self.start_time };
        let is_of_boot = boot_id().is_ok_and(|boot| boot == self.boot_id);
        is_of_boot && Spot::is_of(self.spot, dir) && identity.is_alive()
    }

    /// It lives, or on a machine whose processes cannot be seen from here it may.
    fn stands_in(&self, dir: &Path) -> bool {
        self.is_elsewhere() || self.is_alive_in(dir)
    }
}

fn host() -> String {
    let name = open::text_named(Path::new("/proc/sys/kernel/hostname"), 4096).unwrap_or_default();
    name.trim_end().to_owned()
}

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("run `{run}` is driven by {}", shown(holder.as_deref()))]
    RunHeld { run: RunId, holder: Option<Box<Holder>> },
    #[error("run `{run}` is working in this tree: {}", shown(holder.as_deref()))]
    TreeHeld { run: String, holder: Option<Box<Holder>> },
    #[error("cannot lock {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Nothing is written where a link could lead out of the run.
    #[error("run `{run}` is not used")]
    Linked { run: RunId, source: io::Error },
}

impl LockError {
    pub fn hint(&self) -> String {
        match self {
            Self::RunHeld { run, holder: Some(it) } if it.is_elsewhere() => format!(
                "wait for it; if {} is gone for good, `onward resume {run} --take-over`",
                it.host
            ),
            Self::RunHeld { run, .. } => format!("watch it with `onward attach {run}`"),
            Self::TreeHeld { run, .. } => {
                format!("wait for it, or stop it with `onward pause {run}`")
            }
            Self::Io { .. } => "check whether this file system has locks".to_owned(),
            Self::Linked { .. } => "look where it leads, and remove it".to_owned(),
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
        Self::insist(run_dir, run, now, TakeOver::No)
    }

    /// The same, even from a holder on another machine, if a person says that it is gone.
    pub fn insist(
        run_dir: &Path,
        run: &RunId,
        now: Timestamp,
        take_over: TakeOver,
    ) -> Result<Self, LockError> {
        let path = run_dir.join("lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        let held = |holder: Option<Holder>| LockError::RunHeld {
            run: run.clone(),
            holder: holder.map(Box::new),
        };
        let linked = |source| LockError::Linked { run: run.clone(), source };
        without_links(run_dir, run).map_err(linked)?;
        let is_driven = |named: Option<&Holder>| named.is_some_and(|it| it.stands_in(run_dir));
        let found = obtain(&path, File::try_lock, take_over, is_driven);
        let file = found.map_err(failed)?.map_err(held)?;
        let holder = Holder::of_us(run, now, &path).map_err(failed)?;
        let mut lock = Self { file, path: path.clone(), holder };
        lock.write().map_err(failed)?;
        Ok(lock)
    }

    /// Tells people under which epoch we write.
    pub fn note_epoch(&mut self, epoch: u32) -> Result<(), LockError> {
        (self.holder.epoch, self.holder.waits_until) = (epoch, None);
        self.tell()
    }

    /// Tells people that we wait, and for which moment.
    pub fn note_wait(&mut self, until: Timestamp) -> Result<(), LockError> {
        self.holder.waits_until = Some(until);
        self.tell()
    }

    fn tell(&mut self) -> Result<(), LockError> {
        let path = self.path.clone();
        self.write().map_err(|source| LockError::Io { path, source })
    }

    fn write(&mut self) -> io::Result<()> {
        rewrite(&mut self.file, &self.holder)
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A process that only looks must not take us for a driver.
        let _ = self.file.set_len(0);
        // A child that another thread is just starting has the file open too, until it is executed:
        // closing ours alone would leave the lock with it.
        let _ = self.file.unlock();
    }
}

/// A run directory and the worktrees beside it are what they seem.
fn without_links(run_dir: &Path, run: &RunId) -> io::Result<()> {
    open::no_links_in(run_dir)?;
    match Project::of_run(run_dir) {
        Some(project) => open::no_links_in(&project.root().join(WORKTREES).join(run.as_str())),
        None => Ok(()),
    }
}

/// Who drives the run now, found out without touching the lock.
pub fn holder(run_dir: &Path) -> Option<Holder> {
    let path = run_dir.join("lock");
    let is_on_network =
        || open::at(&path, open::To::Read).is_ok_and(|file| network::is_on_network(&file));
    read(&path).filter(|it| it.is_alive_in(run_dir) || (it.is_elsewhere() && is_on_network()))
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
    path: PathBuf,
    share: Share,
}

impl TreeLock {
    /// Takes it for `run`, or for one that is still to be made.
    pub fn take(
        project: &Project,
        run: Option<&RunId>,
        share: Share,
        take_over: TakeOver,
    ) -> Result<Self, LockError> {
        let path = project.onward_dir().join("tree.lock");
        let failed = |source| LockError::Io { path: path.clone(), source };
        let try_lock = match share {
            Share::Alone => File::try_lock,
            Share::WithOthers => File::try_lock_shared,
        };
        let held = |holder: Option<Holder>| {
            let holder = holder.or_else(|| other_driver(project, run));
            let run = holder.as_ref().map_or_else(String::new, |it| it.run.to_string());
            LockError::TreeHeld { run, holder: holder.map(Box::new) }
        };
        let dir = project.onward_dir();
        let is_driven = |named: Option<&Holder>| match named {
            Some(named) => named.stands_in(&dir),
            None => other_driver(project, run).is_some(),
        };
        let found = obtain(&path, try_lock, take_over, is_driven);
        let file = found.map_err(failed)?.map_err(held)?;
        // What one that died has left.
        file.set_len(0).map_err(failed)?;
        Ok(Self { file, path, share })
    }

    /// Tells people which run works here. Many who share have no one name.
    pub fn sign(&mut self, run: &RunId, now: Timestamp) -> Result<(), LockError> {
        let written = match self.share {
            Share::Alone => {
                let holder = Holder::of_us(run, now, &self.path);
                holder.and_then(|holder| rewrite(&mut self.file, &holder))
            }
            Share::WithOthers => Ok(()),
        };
        written.map_err(|source| LockError::Io { path: self.path.clone(), source })
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
fn other_driver(project: &Project, us: Option<&RunId>) -> Option<Holder> {
    let runs = project.runs().ok()?;
    runs.iter().filter(|it| Some(&it.id) != us).find_map(|it| holder(&it.dir))
}

/// What a person says about a holder on another machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TakeOver {
    #[default]
    No,
    /// It is gone for good.
    Yes,
}

/// What to do about a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Take,
    /// Another file takes its place: a lock on the old one locks nothing.
    Replace,
    Refuse,
}

/// See the module. `elsewhere` = the file names a holder on another machine.
fn verdict(is_locked: bool, is_on_network: bool, elsewhere: bool, take_over: TakeOver) -> Verdict {
    match (is_locked, is_on_network && elsewhere, take_over) {
        (false, false, _) | (false, true, TakeOver::Yes) => Verdict::Take,
        (true, true, TakeOver::Yes) => Verdict::Replace,
        (true, false, _) | (_, true, TakeOver::No) => Verdict::Refuse,
    }
}

type TryLock = fn(&File) -> Result<(), TryLockError>;

/// The file, locked; or the holder that stands in the way. `is_driven` says whether the one that
/// the file names does.
fn obtain(
    path: &Path,
    try_lock: TryLock,
    take_over: TakeOver,
    is_driven: impl Fn(Option<&Holder>) -> bool,
) -> io::Result<Result<File, Option<Holder>>> {
    let file = open(path)?;
    let mut is_locked = !locked(&file, try_lock)?;
    let mut holder = read(path);
    // A driver that was killed while it started a program has left the lock with that child, until
    // the child is executed. One that lives may not have signed yet.
    for _ in 0..LOOKS_MAX {
        if !is_locked || is_driven(holder.as_ref()) {
            break;
        }
        thread::sleep(LOOK_EVERY);
        is_locked = !locked(&file, try_lock)?;
        holder = read(path);
    }
    let elsewhere = holder.as_ref().is_some_and(Holder::is_elsewhere);
    match verdict(is_locked, network::is_on_network(&file), elsewhere, take_over) {
        Verdict::Take => Ok(Ok(file)),
        Verdict::Refuse => Ok(Err(holder)),
        Verdict::Replace => {
            std::fs::rename(path, path.with_extension("taken-over"))?;
            let file = open(path)?;
            Ok(if locked(&file, try_lock)? { Ok(file) } else { Err(read(path)) })
        }
    }
}

fn locked(file: &File, try_lock: TryLock) -> io::Result<bool> {
    match try_lock(file) {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<File> {
    open::at(path, open::To::Write)
}

fn read(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&open::read_at(path, open::SMALL_BYTES_MAX).ok()?).ok()
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
    fn a_kernel_decides_about_its_own_disk_and_a_person_about_another_machine() {
        use TakeOver::{No, Yes};
        use Verdict::{Refuse, Replace, Take};
        for (is_locked, is_on_network, elsewhere, take_over, wanted) in [
            // A local disk: whatever the file says, the kernel knows.
            (false, false, false, No, Take),
            (false, false, true, No, Take),
            (false, false, true, Yes, Take),
            (true, false, false, No, Refuse),
            (true, false, false, Yes, Refuse),
            (true, false, true, No, Refuse),
            (true, false, true, Yes, Refuse),
            // A network: the same among the processes of this machine,
            (false, true, false, No, Take),
            (false, true, false, Yes, Take),
            (true, true, false, No, Refuse),
            (true, true, false, Yes, Refuse),
            // and another machine's word stands, locked or not, until a person says otherwise.
            (false, true, true, No, Refuse),
            (false, true, true, Yes, Take),
            (true, true, true, No, Refuse),
            (true, true, true, Yes, Replace),
        ] {
            let found = verdict(is_locked, is_on_network, elsewhere, take_over);
            let case = (is_locked, is_on_network, elsewhere, take_over);
            assert_eq!(found, wanted, "{case:?}");
        }
    }

    #[test]
    fn a_holder_on_another_machine_is_named_with_the_way_past_it() {
        let us = Holder::of_us(&id("r-1"), Timestamp::from_micros(7), Path::new("/lock")).unwrap();
        let there = Holder { host: format!("not-{}", us.host), ..us };
        let hint = |holder: &Holder| {
            let holder = Some(Box::new(holder.clone()));
            LockError::RunHeld { run: id("r-1"), holder }.hint()
        };
        assert!(hint(&there).contains("onward resume r-1 --take-over"), "{}", hint(&there));
        let here = Holder { host: host(), ..there };
        assert_eq!(hint(&here), "watch it with `onward attach r-1`");
    }

    #[test]
    fn a_dead_holder_needs_no_ritual() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::from_micros(7);
        let us = Holder::of_us(&id("r-1"), now, &dir.path().join("lock")).unwrap();
        for dead in [
            Holder { start_time: us.start_time - 1, ..us.clone() },
            Holder { boot_id: "another".into(), ..us.clone() },
            Holder { spot: Spot::of(Path::new("/")).ok(), ..us.clone() },
        ] {
            std::fs::write(dir.path().join("lock"), serde_json::to_vec(&dead).unwrap()).unwrap();
            assert_eq!(holder(dir.path()), None);
            RunLock::take(dir.path(), &id("r-1"), now).unwrap();
        }
    }

    /// As a driver leaves it that is killed between the fork and the execution of a child.
    #[test]
    fn a_lock_that_only_a_child_of_a_dead_driver_has_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let file = open(&path).unwrap();
        file.try_lock().unwrap();
        let us = Holder::of_us(&id("r-1"), Timestamp::from_micros(7), &path).unwrap();
        let dead = Holder { start_time: us.start_time - 1, ..us };
        std::fs::write(&path, serde_json::to_vec(&dead).unwrap()).unwrap();
        let child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(file)
            .spawn()
            .unwrap();
        let looks = std::cell::RefCell::new((0, Some(child)));
        let is_driven = |named: Option<&Holder>| {
            let (count, child) = &mut *looks.borrow_mut();
            *count += 1;
            if let Some(child) = child.take() {
                child.wait_with_output().unwrap();
            }
            named.is_some_and(|it| it.stands_in(dir.path()))
        };
        let taken = obtain(&path, File::try_lock, TakeOver::No, is_driven).unwrap();
        assert!(taken.is_ok(), "{taken:?}");
        assert_eq!(looks.into_inner().0, 1, "it was locked, and then it was not");
    }

    #[test]
    fn one_editor_per_tree_and_many_who_only_write_what_they_declared() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".onward/runs/other-1")).unwrap();
        let project = Project::locate(dir.path()).unwrap();
        let now = Timestamp::from_micros(7);
        let take = |run: &str, share| {
            let mut lock = TreeLock::take(&project, Some(&id(run)), share, TakeOver::No)?;
            lock.sign(&id(run), now)?;
            Ok::<_, LockError>(lock)
        };
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
