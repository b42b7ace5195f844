//! Locks that a killed git left behind.
//!
//! git makes `NAME.lock` beside what it is about to replace; one that dies there leaves it, and
//! every later git stops at it. Invariant: only a lock that is in the way of a command of ours,
//! lies where nobody but us writes, and stays for longer than any living git would need it, is
//! removed.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

/// Between two looks at a lock.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So many looks it is given to go away by itself.
const LOOKS: u32 = 20;

/// What is ours in a repository, below its own directory.
const OURS: [&str; 5] = [
    "refs/onward/",
    "refs/heads/onward/",
    "refs/heads/conference/",
    // Trees of researchers, in which nothing else works while a call does.
    "worktrees/researcher-",
    "onward-gather-index.lock",
];

/// Makes way for a command that failed and said this; false if nothing was to be done about it.
/// `common_dir` is asked for only if a lock is in the way.
pub(super) fn clear(said: &str, common_dir: impl FnOnce() -> Option<PathBuf>) -> bool {
    let Some(lock) = in_the_way(said) else { return false };
    // Where the project lies must not make anything in it ours.
    let name = common_dir().and_then(|dir| below(&dir, &lock));
    let is_ours = name.is_some_and(|name| OURS.iter().any(|ours| name.starts_with(ours)));
    is_ours && outlasts(&lock)
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

/// Whether the lock is gone now: let go of, or removed for having stayed.
fn outlasts(lock: &Path) -> bool {
    let made = |path: &Path| fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
    let Some(first) = made(lock) else { return true };
    for _ in 0..LOOKS {
        thread::sleep(LOOK_EVERY);
        if made(lock) != Some(first) {
            // Somebody lives: gone, or another one by now.
            return true;
        }
    }
    fs::remove_file(lock).is_ok()
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
        // Named so that everything in it looks like ours to whoever reads the whole path.
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
            let cleared = clear(&said(&lock), || Some(common_dir.clone()));
            assert_eq!((cleared, lock.exists()), (goes, !goes), "{name}");
        }
    }

    #[test]
    fn what_is_let_go_of_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("refs/onward")).unwrap();
        let lock = dir.path().join("refs/onward/r-1.lock");
        assert!(clear(&said(&lock), || Some(dir.path().to_owned())));
    }

    #[test]
    fn other_failures_are_left_alone() {
        let asked = || panic!("there is nothing to ask about");
        for said in ["", "fatal: not a git repository", "Unable to create 'x': File exists"] {
            assert!(!clear(said, asked), "{said}");
        }
        assert!(!clear("Unable to create '/a/refs/onward/x.lock': Permission denied", asked));
        assert!(!clear(&said(Path::new("/a/refs/onward/x.lock")), || None));
    }
}
