//! Branch and commit of the project, read from git's own files: no process, no lock.

use crate::world::open;
use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use onward_core::event::GitHead;

/// `None` where there is no git repository with `dir` in its tree.
pub fn head(dir: &Path) -> Option<GitHead> {
    let git_dir = dir.ancestors().find_map(git_dir)?;
    let head = text(&git_dir.join("HEAD"))?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref: ") else {
        return Some(GitHead { branch: None, head: Some(head.to_owned()) });
    };
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    Some(GitHead { branch: Some(branch), head: resolve(&git_dir, name) })
}

fn text(path: &Path) -> Option<String> {
    open::text_named(path, open::SMALL_BYTES_MAX).ok()
}

/// In a worktree, `.git` is a file that says where it is.
pub(crate) fn git_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let bytes = open::read_named(&dot_git, open::SMALL_BYTES_MAX).ok()?;
    let place = bytes.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    Some(root.join(OsStr::from_bytes(place)))
}

pub(super) fn branch_head(common_dir: &Path, branch: &str) -> Option<String> {
    resolve(common_dir, &format!("refs/heads/{branch}"))
}

/// The commit that a full ref such as `refs/heads/main` names in the repository around `dir`.
/// `None` where its file does not say so, and git has to be asked.
pub(crate) fn ref_commit(dir: &Path, name: &str) -> Option<String> {
    if !name.starts_with("refs/") {
        return None;
    }
    let git_dir = dir.ancestors().find_map(git_dir)?;
    let is_hash = |it: &String| it.len() >= 40 && it.bytes().all(|byte| byte.is_ascii_hexdigit());
    resolve(&git_dir, name).filter(is_hash)
}

/// `None` before the first commit.
fn resolve(git_dir: &Path, name: &str) -> Option<String> {
    // Branches of a worktree are kept with those of the repository.
    let common = text(&git_dir.join("commondir"));
    let common = common.map_or_else(|| git_dir.to_owned(), |it| git_dir.join(it.trim()));
    if let Some(hash) = text(&common.join(name)) {
        return Some(hash.trim().to_owned());
    }
    let packed = text(&common.join("packed-refs"))?;
    let mut pairs = packed.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(_, other)| *other == name).map(|(hash, _)| hash.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::process::Command;

    use super::*;

    #[test]
    fn git_agrees_in_every_form_of_repository() {
        let dir = tempfile::tempdir().unwrap();
        let git = |at: &Path, args: &[&str]| {
            let me = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
            let output = Command::new("git").current_dir(at).args(me).args(args).output();
            let output = output.expect("git is installed");
            assert!(output.status.success(), "{args:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let root = dir.path().join("repo");
        fs::create_dir(&root).unwrap();
        assert_eq!(head(&root), None);
        git(&root, &["init", "-q", "-b", "feature/x"]);
        let branch = Some("feature/x".to_owned());
        assert_eq!(head(&root), Some(GitHead { branch: branch.clone(), head: None }));
        git(&root, &["commit", "-q", "--allow-empty", "-m", "one"]);
        let commit = Some(git(&root, &["rev-parse", "HEAD"]));
        let expected = Some(GitHead { branch, head: commit.clone() });
        assert_eq!(head(&root), expected);
        assert_eq!(ref_commit(&root, "refs/heads/feature/x"), commit);
        git(&root, &["pack-refs", "--all"]);
        assert_eq!(head(&root), expected);
        assert_eq!(ref_commit(&root, "refs/heads/feature/x"), commit);
        for name in ["refs/heads/none", "HEAD", "feature/x", "../HEAD"] {
            assert_eq!(ref_commit(&root, name), None, "{name}");
        }
        git(&root, &["worktree", "add", "-q", "-b", "side", "../side"]);
        let side = Some(GitHead { branch: Some("side".into()), head: commit.clone() });
        assert_eq!(head(&dir.path().join("side")), side);
        git(&root, &["checkout", "-q", "--detach"]);
        assert_eq!(head(&root), Some(GitHead { branch: None, head: commit }));
    }
}
