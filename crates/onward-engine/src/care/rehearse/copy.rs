//! A copy of the project to rehearse in: what git would see of it, and its history.
//!
//! Invariant: the project itself is only read. What git ignores is not copied, `.onward` neither.

use crate::world::open;
use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::RehearseError;

/// More than this is not copied again and again.
const BYTES_MAX: u64 = 2 << 30;

/// Copies the project at `root` to `to`, which does not exist yet.
pub(super) fn project(root: &Path, to: &Path) -> Result<(), RehearseError> {
    if root.join(".git").exists() {
        clone(root, to)?;
        return overlay(root, to);
    }
    fs::create_dir_all(to).map_err(failed("make", to))?;
    let mut bytes = 0;
    tree(root, to, &mut bytes)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RehearseError {
    let path = path.to_owned();
    move |source| RehearseError::Io { doing, path, source }
}

/// A copy of a copy: everything, git's own files included.
pub(super) fn all(from: &Path, to: &Path) -> Result<(), RehearseError> {
    fs::create_dir_all(to).map_err(failed("make", to))?;
    let entries = fs::read_dir(from).map_err(failed("list", from))?;
    for entry in entries {
        let entry = entry.map_err(failed("list", from))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed("look at", &path))?;
        if kind.is_dir() {
            all(&path, &target)?;
        } else {
            file(&path, &target, kind.is_symlink())?;
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path, is_link: bool) -> Result<(), RehearseError> {
    let copied = if is_link {
        fs::read_link(from).and_then(|target| std::os::unix::fs::symlink(target, to))
    } else {
        open::copy(from, to)
    };
    copied.map_err(failed("copy", from))
}

fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null());
    command
}

fn clone(root: &Path, to: &Path) -> Result<(), RehearseError> {
    let mut command = git(root);
    // Not `--local`: git would insist on links, and the copy may lie on another file system.
    command.args(["clone", "--quiet", "."]).arg(to);
    let output = command.output().map_err(failed("clone", root))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(RehearseError::Git { said })
}

/// What is not committed: changed, new and deleted files, as they are now.
fn overlay(root: &Path, to: &Path) -> Result<(), RehearseError> {
    let list = |what: &[&str]| -> Result<Vec<PathBuf>, RehearseError> {
        let output = git(root).args(["ls-files", "-z"]).args(what).output();
        let text = output.map_err(failed("list", root))?.stdout;
        let names = text.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| PathBuf::from(String::from_utf8_lossy(name).as_ref())).collect())
    };
    for name in list(&["--modified", "--others", "--exclude-standard"])? {
        let (from, target) = (root.join(&name), to.join(&name));
        let Ok(found) = fs::symlink_metadata(&from) else { continue };
        if name.starts_with(".onward") || found.is_dir() {
            continue;
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed("make", parent))?;
        }
        let _ = fs::remove_file(&target);
        file(&from, &target, found.is_symlink())?;
    }
    for name in list(&["--deleted"])? {
        let _ = fs::remove_file(to.join(name));
    }
    Ok(())
}

fn tree(from: &Path, to: &Path, bytes: &mut u64) -> Result<(), RehearseError> {
    for entry in fs::read_dir(from).map_err(failed("list", from))? {
        let entry = entry.map_err(failed("list", from))?;
        if entry.file_name() == ".onward" {
            continue;
        }
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let found = entry.metadata().map_err(failed("look at", &path))?;
        if found.is_dir() {
            fs::create_dir(&target).map_err(failed("make", &target))?;
            tree(&path, &target, bytes)?;
        } else if found.is_file() || found.is_symlink() {
            *bytes += found.len();
            if *bytes > BYTES_MAX {
                return Err(RehearseError::TooLarge { bytes: BYTES_MAX });
            }
            file(&path, &target, found.is_symlink())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, name: &str, text: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut all = Vec::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(next) = dirs.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with(".git") {
                    continue;
                }
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    all.push(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        all.sort();
        all
    }

    #[test]
    fn a_copy_has_what_is_not_committed_and_not_what_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let (root, to) = (dir.path().join("root"), dir.path().join("to"));
        fs::create_dir(&root).unwrap();
        let git = |args: &[&str]| {
            let me = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
            let done = Command::new("git").arg("-C").arg(&root).args(me).args(args).status();
            assert!(done.unwrap().success(), "{args:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        for (name, text) in [("a", "1"), ("b", "1"), ("gone", "1"), (".gitignore", "target\n")] {
            put(&root, name, text);
        }
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "one"]);
        put(&root, "b", "2");
        put(&root, "new/c", "1");
        put(&root, "target/big", "1");
        put(&root, ".onward/runs/x", "1");
        fs::remove_file(root.join("gone")).unwrap();
        project(&root, &to).unwrap();
        assert_eq!(names(&to), [".gitignore", "a", "b", "new/c"]);
        assert_eq!(fs::read_to_string(to.join("b")).unwrap(), "2");
        let again = dir.path().join("again");
        all(&to, &again).unwrap();
        assert_eq!(names(&again), names(&to));
        assert!(again.join(".git/HEAD").exists());
    }

    #[test]
    fn a_project_without_git_is_copied_whole_but_for_its_runs() {
        let dir = tempfile::tempdir().unwrap();
        let (root, to) = (dir.path().join("root"), dir.path().join("to"));
        put(&root, "a/b", "1");
        put(&root, ".onward/runs/x", "1");
        std::os::unix::fs::symlink("a/b", root.join("link")).unwrap();
        project(&root, &to).unwrap();
        assert_eq!(names(&to), ["a/b", "link"]);
        assert!(to.join("link").is_symlink());
    }
}
