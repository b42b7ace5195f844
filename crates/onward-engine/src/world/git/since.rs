//! What became of some files since a moment.
//!
//! Invariant: looks only. A commit that an attempt of ours made is no other work, whichever run it
//! was of. A merge counts as one commit, at its own time, with all that it brought.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
    path::Path,
};

use onward_core::{name, time::Timestamp};
use onward_dialects::{Since, seam::Watch};

use super::{
    command::{Git, GitError},
    history::{OURS, REFLOG_MAX},
    repo::{Env, Repo},
};
use crate::world::real::file_time;

/// More are not looked at.
const COMMITS_MAX: &str = "--max-count=200";

/// Nothing where there is no repository, or where git does not answer.
pub fn since(dir: &Path, env: &Env, watch: &Watch) -> BTreeMap<String, Since> {
    let Ok(Some(repo)) = Repo::find(dir, env) else { return BTreeMap::new() };
    let commits = commits(&repo.looking(), watch).unwrap_or_default();
    let clean = repo.as_committed(&watch.paths).ok();
    let mut all = BTreeMap::new();
    for path in &watch.paths {
        let modified = modified(&dir.join(path));
        let commits = commits.get(path).cloned().unwrap_or_default();
        let is_clean = clean.as_ref().is_none_or(|it| it.contains(path));
        // What is neither there nor tracked was never made.
        let is_dirty = !is_clean && (modified.is_some() || is_tracked(&repo, path));
        if is_dirty || !commits.is_empty() {
            all.insert(path.clone(), Since { commits, is_dirty, modified });
        }
    }
    all
}

fn modified(path: &Path) -> Option<Timestamp> {
    path.symlink_metadata().ok()?.modified().ok().map(file_time)
}

fn is_tracked(repo: &Repo, path: &str) -> bool {
    let asked = ["ls-files".into(), "--".into(), literal(path)];
    repo.looking().run(&asked).is_ok_and(|it| !it.is_empty())
}

fn literal(path: &str) -> OsString {
    OsString::from_vec([&b":(literal)"[..], &name::bytes(path)].concat())
}

/// By path: the commits since, newest first.
fn commits(git: &Git, watch: &Watch) -> Result<BTreeMap<String, Vec<String>>, GitError> {
    let after = format!("--since={}", watch.since);
    let format = "--format=%x02%H%x01%h %s%x01%(trailers:key=Onward-Run,valueonly)%x01";
    let asked = ["log", COMMITS_MAX, "--first-parent", "-m", "--relative", "--no-renames"];
    let how = ["--name-only", "-z", &after, format, "HEAD", "--"];
    let asked = asked.iter().chain(&how).map(OsString::from);
    let asked = asked.chain(watch.paths.iter().map(|it| literal(it)));
    let out = git.run(&asked.collect::<Vec<OsString>>())?;
    let ours = ours(git)?;
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in out.split(|byte| *byte == 2).filter(|it| !it.is_empty()) {
        let fields: Vec<&[u8]> = record.splitn(4, |byte| *byte == 1).collect();
        let [id, words, run, paths] = fields[..] else { continue };
        let is_ours =
            !run.trim_ascii().is_empty() || ours.contains(String::from_utf8_lossy(id).as_ref());
        if is_ours {
            continue;
        }
        let words = String::from_utf8_lossy(words).trim().to_owned();
        let paths = paths.split(|byte| matches!(byte, 0 | b'\n')).filter(|it| !it.is_empty());
        for path in paths.map(name::text) {
            all.entry(path).or_default().push(words.clone());
        }
    }
    Ok(all)
}

/// Commits that the reflog of the head says attempts of ours made.
fn ours(git: &Git) -> Result<BTreeSet<String>, GitError> {
    let asked = ["log", "--walk-reflogs", REFLOG_MAX, "--format=%H%x01%gs%x02", "HEAD", "--"];
    let answer = git.ask(&asked, &[])?;
    let text = String::from_utf8_lossy(&answer.out);
    let made = |record: &str| {
        let (id, action) = record.trim_start().split_once('\u{1}')?;
        action.starts_with(OURS).then(|| id.to_owned())
    };
    Ok(text.split('\u{2}').filter_map(made).collect())
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    const THEN: &str = "2026-02-17T10:00:00Z";

    fn git(at: &Path, when: &str, action: &str, args: &[&str]) {
        let mut git = Command::new("git");
        git.current_dir(at).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
        git.env("GIT_COMMITTER_DATE", when).env("GIT_AUTHOR_DATE", when);
        git.env("GIT_REFLOG_ACTION", action).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(git.args(args).status().unwrap().success(), "{args:?}");
    }

    #[test]
    fn commits_of_others_since_the_moment_and_what_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("below");
        fs::create_dir(&at).unwrap();
        let write = |name: &str, text: &str| fs::write(at.join(name), text).unwrap();
        let commit = |when: &str, action: &str, message: &str| {
            git(&at, when, action, &["add", "."]);
            git(&at, when, action, &["commit", "--quiet", "--message", message]);
        };
        git(dir.path(), THEN, "", &["init", "--quiet", "--initial-branch=main"]);
        for name in ["old", "theirs", "ours", "signed", "gone", "merged", "dirty", "*"] {
            write(name, "1");
        }
        commit("2026-02-17T09:00:00Z", "commit", "before");
        git(&at, THEN, "", &["branch", "side"]);
        let later = "2026-02-17T11:00:00Z";
        write("theirs", "2");
        commit(later, "commit", "mended");
        write("ours", "2");
        commit(later, "onward:r-1:implement:1", "work");
        write("signed", "2");
        commit(later, "commit", "work\n\nOnward-Run: r-1\n");
        fs::remove_file(at.join("gone")).unwrap();
        commit(later, "commit", "cleaned");
        git(&at, later, "", &["checkout", "--quiet", "side"]);
        write("merged", "2");
        // Made before, and brought in since.
        commit("2026-02-17T09:30:00Z", "commit", "elsewhere");
        git(&at, later, "", &["checkout", "--quiet", "main"]);
        git(&at, later, "", &["merge", "--quiet", "--no-ff", "--message=merged it", "side"]);
        write("dirty", "2");
        write("new", "1");
        let names =
            ["old", "theirs", "ours", "signed", "gone", "merged", "dirty", "new", "never", "*"];
        let paths = names.map(str::to_owned).to_vec();
        let watch = Watch { since: THEN.parse().unwrap(), paths };
        let env: Env = std::env::vars_os().collect();
        let seen = since(&at, &env, &watch);
        let words = |name: &str| {
            let it = seen.get(name)?;
            let commits = it.commits.iter().map(|it| it.split_once(' ').unwrap().1).collect();
            Some((commits, it.is_dirty, it.modified.is_some()))
        };
        for name in ["old", "ours", "signed", "never", "*"] {
            assert_eq!(words(name), None, "{name}");
        }
        assert_eq!(words("theirs"), Some((vec!["mended"], false, true)));
        assert_eq!(words("gone"), Some((vec!["cleaned"], false, false)));
        assert_eq!(words("merged"), Some((vec!["merged it"], false, true)));
        assert_eq!(words("dirty"), Some((vec![], true, true)));
        assert_eq!(words("new"), Some((vec![], true, true)));
        assert!(since(Path::new("/"), &env, &watch).is_empty());
    }
}
