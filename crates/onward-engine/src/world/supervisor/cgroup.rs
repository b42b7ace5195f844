//! A control group of the run's own: whatever comes from it stays in it, whatever session, parent
//! or environment it leaves behind.
//!
//! Invariant: without version 2 of control groups, or the right to make one, there is none, and
//! nothing else changes.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use onward_core::id::RunId;

use crate::world::open;

const PROCS: &str = "cgroup.procs";
const PREFIX: &str = "onward-";

#[derive(Debug)]
pub(super) struct Cgroup {
    pub(super) dir: PathBuf,
    /// Where we came from.
    above: PathBuf,
}

impl Cgroup {
    /// Makes a group below our own, and enters it.
    pub(super) fn enter(run: &RunId) -> Option<Self> {
        let above = own_dir()?;
        let pid = rustix::process::getpid().as_raw_nonzero();
        let dir = above.join(format!("{PREFIX}{run}-{pid}"));
        fs::create_dir(&dir).ok()?;
        let group = Self { dir, above };
        if group.add(0).is_err() {
            let _ = fs::remove_dir(&group.dir);
            return None;
        }
        // Those of supervisors that were killed; one in which something lives is not removed.
        let beside = fs::read_dir(&group.above).into_iter().flatten().flatten();
        for other in beside.filter(|it| it.file_name().to_string_lossy().starts_with(PREFIX)) {
            let _ = fs::remove_dir(other.path());
        }
        Some(group)
    }

    /// Moves a process into it; 0 is ourselves.
    pub(super) fn add(&self, pid: i32) -> io::Result<()> {
        put(&self.dir, pid)
    }

    /// Goes back to where we came from.
    pub(super) fn leave(self) {
        let _ = put(&self.above, 0);
        let _ = fs::remove_dir(&self.dir);
    }
}

fn put(dir: &Path, pid: i32) -> io::Result<()> {
    open::at(&dir.join(PROCS), open::To::Change)?.write_all(pid.to_string().as_bytes())
}

/// The processes in a group; none in one that is gone.
pub(super) fn members(dir: &Path) -> Vec<i32> {
    let text = open::text_named(&dir.join(PROCS), open::SMALL_BYTES_MAX).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Removes a group in which no process lives.
pub(super) fn forget(dir: &Path) {
    let _ = fs::remove_dir(dir);
}

/// The directory of the group that this process is in.
fn own_dir() -> Option<PathBuf> {
    let read = |path: &str| open::text_named(Path::new(path), open::SMALL_BYTES_MAX).ok();
    let mounts = read("/proc/self/mounts")?;
    let own = read("/proc/self/cgroup")?;
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    })?;
    let below = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(root.join(below))
}
