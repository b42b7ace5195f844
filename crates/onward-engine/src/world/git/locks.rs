//! Locks that a killed git left behind.
//!
//! git makes `NAME.lock` beside what it is about to replace; one that dies there leaves it, and
//! every later git stops at it. Invariant: only a lock that is in the way of a command of ours and
//! stays for longer than a living git would need it is removed; and where others than onward write,
//! only for a step of ours, once every git is gone that worked in that repository when the lock was
//! first seen. One that began later has not made it: on a busy machine there always is one.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::world::open;

/// Between two looks at a lock.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So many looks it is given to go away by itself.
const LOOKS: u32 = 20;

/// So many looks are given to those that may hold it.
const LOOKS_MAX: u32 = 100;

/// What is ours in a repository, below its own directory.
const OURS: [&str; 5] = [
    "refs/onward/",
    "refs/heads/onward/",
    "refs/heads/conference/",
    // Trees of researchers, in which nothing else works while a call does.
    "worktrees/researcher-",
    "onward-gather-index.lock",
];

/// For whom a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    Onward,
    /// A built-in function: an earlier attempt of this step or of another one may have been cut off
    /// in the midst of a git.
    Step,
}

/// Makes way for a command that failed and said this; false if nothing was to be done about it.
/// `common_dir` is asked for only if a lock is in the way.
pub(super) fn clear(said: &str, whom: For, common_dir: impl FnOnce() -> Option<PathBuf>) -> bool {
    let Some(lock) = in_the_way(said) else { return false };
    let Some(common_dir) = common_dir() else { return false };
    // Where the project lies must not make anything in it ours.
    let Some(name) = below(&common_dir, &lock) else { return false };
    if OURS.iter().any(|ours| name.starts_with(ours)) {
        return outlasts(&lock, BTreeSet::new, LOOKS);
    }
    match whom {
        For::Step => {
            let Ok(common_dir) = common_dir.canonicalize() else { return false };
            outlasts(&lock, || living_gits(&common_dir), LOOKS_MAX)
        }
        For::Onward => false,
    }
}

/// The gits that work in the repository: in its own directory, or in the tree around that.
fn living_gits(common_dir: &Path) -> BTreeSet<OsString> {
    let tree = match common_dir.parent() {
        Some(tree) if common_dir.ends_with(".git") => tree,
        Some(_) | None => common_dir,
    };
    let is_git = |process: &fs::DirEntry| {
        let name = open::text_named(&process.path().join("comm"), open::SMALL_BYTES_MAX);
        name.is_ok_and(|it| it.starts_with("git"))
            && fs::read_link(process.path().join("cwd")).is_ok_and(|it| it.starts_with(tree))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(is_git).map(|it| it.file_name()).collect()
}

fn below(common_dir: &Path, lock: &Path) -> Option<String> {
    let (dir, name) = (lock.parent()?.canonicalize().ok()?, lock.file_name()?);
    let place = dir.join(name);
    let inside = place.strip_prefix(common_dir.canonicalize().ok()?).ok()?;
    Some(inside.to_str()?.to_owned())
}

/// In the words of git, which have been these for as long as it has had locks.
fn in_the_way(said: &str) -> Option<PathBuf> {
    let (_, rest) = said.split_once("Unable to create '")?;
    let (path, _) = rest.split_once("': File exists")?;
    let path = PathBuf::from(path);
    path.extension().is_some_and(|it| it == "lock").then_some(path)
}

/// Whether the lock is gone now: let go of, or removed for having stayed though none of those that
/// may have made it is left.
fn outlasts(lock: &Path, living: impl Fn() -> BTreeSet<OsString>, looks_max: u32) -> bool {
    let made = |path: &Path| fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
    let Some(first) = made(lock) else { return true };
    let mut holders = living();
    for look in 1..=looks_max {
        thread::sleep(LOOK_EVERY);
        if made(lock) != Some(first) {
            // A living git: the lock is gone, or is another one by now.
            return true;
        }
        if look >= LOOKS {
            let left = living();
            holders.retain(|it| left.contains(it));
            if holders.is_empty() {
                return made(lock) == Some(first) && fs::remove_file(lock).is_ok();
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lock: &Path) -> String {
        format!("fatal: Unable to create '{}': File exists.\n\nAnother git…", lock.display())
    }

    #[test]
    fn only_locks_of_ours_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        // Named so that everything in it looks like ours to a check of the whole path.
        let common_dir = dir.path().join("refs/onward/.git");
        let table = [
            ("refs/onward/r-1.lock", true),
            ("refs/heads/onward/r-1/draft.lock", true),
            ("refs/heads/conference/best.lock", true),
            ("worktrees/researcher-A/HEAD.lock", true),
            ("refs/heads/main.lock", false),
            ("index.lock", false),
            ("packed-refs.lock", false),
            ("worktrees/mine/index.lock", false),
        ];
        for (name, goes) in table {
            let lock = common_dir.join(name);
            fs::create_dir_all(lock.parent().unwrap()).unwrap();
            fs::write(&lock, "").unwrap();
            let cleared = clear(&said(&lock), For::Onward, || Some(common_dir.clone()));
            assert_eq!((cleared, lock.exists()), (goes, !goes), "{name}");
        }
    }

    #[test]
    fn a_step_is_not_stopped_by_what_a_killed_git_left() {
        let dir = tempfile::tempdir().unwrap();
        let common_dir = dir.path().join(".git");
        fs::create_dir_all(&common_dir).unwrap();
        let lock = common_dir.join("index.lock");
        fs::write(&lock, "").unwrap();
        let clear = || clear(&said(&lock), For::Step, || Some(common_dir.clone()));
        // The user's own, which waits for what it is to read.
        let mut living = std::process::Command::new("git");
        living.args(["hash-object", "--stdin"]).current_dir(dir.path());
        let living = living.stdin(std::process::Stdio::piped()).spawn().unwrap();
        // The kernel names a new program shortly after its start.
        let tree = common_dir.canonicalize().unwrap();
        while living_gits(&tree).is_empty() {
            thread::yield_now();
        }
        let refused = !clear() && lock.exists();
        living.wait_with_output().unwrap();
        assert!(refused, "a git that lives keeps its lock");
        // One that begins when the lock is there has not made it: each look sees another one.
        let looks = std::cell::Cell::new(0);
        let young = || {
            looks.set(looks.get() + 1);
            BTreeSet::from([OsString::from(looks.get().to_string())])
        };
        let cleared = outlasts(&lock, young, LOOKS_MAX);
        assert!(cleared && !lock.exists());
    }

    #[test]
    fn what_is_let_go_of_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("refs/onward")).unwrap();
        let lock = dir.path().join("refs/onward/r-1.lock");
        assert!(clear(&said(&lock), For::Onward, || Some(dir.path().to_owned())));
    }

    #[test]
    fn other_failures_are_left_alone() {
        let asked = || panic!("there is nothing to ask about");
        for said in ["", "fatal: not a git repository", "Unable to create 'x': File exists"] {
            assert!(!clear(said, For::Step, asked), "{said}");
        }
        let denied = "Unable to create '/a/refs/onward/x.lock': Permission denied";
        assert!(!clear(denied, For::Step, asked));
        assert!(!clear(&said(Path::new("/a/refs/onward/x.lock")), For::Step, || None));
    }
}
