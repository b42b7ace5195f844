//! Branch and commit of the project, read from git's own files: no process, no lock.

use std::{
    fs,
    path::{Path, PathBuf},
};

use onward_core::event::GitHead;

/// `None` where there is no git repository with `dir` in its tree.
pub fn head(dir: &Path) -> Option<GitHead> {
    let git_dir = dir.ancestors().find_map(git_dir)?;
    let head = fs::read_to_string(git_dir.join("HEAD")).ok()?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref: ") else {
        return Some(GitHead { branch: None, head: Some(head.to_owned()) });
    };
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    Some(GitHead { branch: Some(branch), head: resolve(&git_dir, name) })
}

/// In a worktree, `.git` is a file that says where it is.
pub(super) fn git_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = fs::read_to_string(&dot_git).ok()?;
    let place = text.trim().strip_prefix("gitdir: ")?;
    Some(root.join(place))
}

pub(super) fn branch_head(common_dir: &Path, branch: &str) -> Option<String> {
    resolve(common_dir, &format!("refs/heads/{branch}"))
}

/// `None` before the first commit.
fn resolve(git_dir: &Path, name: &str) -> Option<String> {
    // Branches of a worktree are kept with those of the repository.
    let common = fs::read_to_string(git_dir.join("commondir")).ok();
    let common = common.map_or_else(|| git_dir.to_owned(), |it| git_dir.join(it.trim()));
    if let Ok(hash) = fs::read_to_string(common.join(name)) {
        return Some(hash.trim().to_owned());
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    let mut pairs = packed.lines().filter_map(|line| line.split_once(' '));
    pairs.find(|(_, other)| *other == name).map(|(hash, _)| hash.to_owned())
}

#[cfg(test)]
mod tests {
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
        git(&root, &["pack-refs", "--all"]);
        assert_eq!(head(&root), expected);
        git(&root, &["worktree", "add", "-q", "-b", "side", "../side"]);
        let side = Some(GitHead { branch: Some("side".into()), head: commit.clone() });
        assert_eq!(head(&dir.path().join("side")), side);
        git(&root, &["checkout", "-q", "--detach"]);
        assert_eq!(head(&root), Some(GitHead { branch: None, head: commit }));
    }
}
