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

/// Part of a lock's path, and how many looks it is given to go away by itself.
const OURS: [(&str, u32); 6] = [
    ("/refs/onward/", 20),
    ("/refs/heads/onward/", 20),
    ("/refs/heads/conference/", 20),
    // Trees of researchers, in which nothing else works while a call does.
    ("/worktrees/researcher-", 20),
    ("/onward-gather-index.lock", 20),
    // Anybody's, and needed to delete a ref. git itself holds it for moments and waits a second.
    ("/packed-refs.lock", 200),
];

/// Makes way for a command that failed and said this; false if nothing was to be done about it.
pub(super) fn clear(said: &str) -> bool {
    let Some(lock) = in_the_way(said) else { return false };
    let text = lock.to_string_lossy();
    let ours = OURS.iter().find(|(part, _)| text.contains(part));
    ours.is_some_and(|(_, looks)| outlasts(&lock, *looks))
}

/// In the words of git, which have been these for as long as it has had locks.
fn in_the_way(said: &str) -> Option<PathBuf> {
    let (_, rest) = said.split_once("Unable to create '")?;
    let (path, _) = rest.split_once("': File exists")?;
    let path = PathBuf::from(path);
    path.extension().is_some_and(|it| it == "lock").then_some(path)
}

/// Whether the lock is gone now: let go of, or removed for having stayed.
fn outlasts(lock: &Path, looks: u32) -> bool {
    let made = |path: &Path| fs::symlink_metadata(path).and_then(|it| it.modified()).ok();
    let Some(first) = made(lock) else { return true };
    for _ in 0..looks {
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
        let table = [
            ("refs/onward/r-1.lock", true),
            ("refs/heads/onward/r-1/draft.lock", true),
            ("refs/heads/conference/best.lock", true),
            ("worktrees/researcher-A/HEAD.lock", true),
            ("refs/heads/main.lock", false),
            ("index.lock", false),
            ("worktrees/mine/index.lock", false),
        ];
        for (name, goes) in table {
            let lock = dir.path().join(name);
            fs::create_dir_all(lock.parent().unwrap()).unwrap();
            fs::write(&lock, "").unwrap();
            assert_eq!((clear(&said(&lock)), lock.exists()), (goes, !goes), "{name}");
        }
    }

    #[test]
    fn what_is_let_go_of_is_waited_for() {
        let lock = Path::new("/nowhere/refs/onward/r-1.lock");
        assert!(clear(&said(lock)));
    }

    #[test]
    fn other_failures_are_left_alone() {
        for said in ["", "fatal: not a git repository", "Unable to create 'x': File exists"] {
            assert!(!clear(said), "{said}");
        }
        assert!(!clear("Unable to create '/a/refs/onward/x.lock': Permission denied"));
    }
}
