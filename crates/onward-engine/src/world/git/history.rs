//! Commits since some moment, and which attempt of ours made them.
//!
//! A commit is an attempt's own when its trailers say so, or when the reflog does: git writes the
//! variable `GIT_REFLOG_ACTION` of the attempt's environment there, and no message changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStringExt as _,
};

use onward_core::{address::Address, name};

use super::{
    command::{Git, GitError},
    repo::Repo,
};

/// More are not listed one by one.
const COMMITS_MAX: &str = "--max-count=200";
/// How far back in the reflog an attempt is looked for.
pub(super) const REFLOG_MAX: &str = "--max-count=2000";

/// So many paths fit on a command line.
const PATHS_MAX: usize = 500;

/// The attempt that made a commit.
pub type Made = (Address, u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    pub subject: String,
    /// `None` = not made by this run.
    pub by: Option<Made>,
}

/// What every [`reflog_action`] begins with.
pub(super) const OURS: &str = "onward:";

/// What goes into `GIT_REFLOG_ACTION`.
pub fn reflog_action(run: &str, step: &Address, attempt: u32) -> String {
    format!("{OURS}{run}:{step}:{attempt}")
}

/// What a commit of ours ends with.
pub fn trailers(run: &str, step: &Address, attempt: u32) -> String {
    format!("Onward-Run: {run}\nOnward-Step: {step}\nOnward-Attempt: {attempt}\n")
}

impl Repo {
    /// Commits that `until` leads to and `since` does not, newest first. A commit that git no
    /// longer has is its own whole history. `reflog` is that of `HEAD`, or of a branch: attempts
    /// are looked for there.
    pub fn commits(
        &self,
        since: Option<&str>,
        until: &str,
        run: &str,
        reflog: &str,
    ) -> Result<Vec<Commit>, GitError> {
        let git = self.looking();
        let range = since.map_or_else(|| until.to_owned(), |since| format!("{since}..{until}"));
        let format = format!("--format=%H%x01%s{}%x02", trailer_formats());
        let args = ["log", COMMITS_MAX, &format, &range, "--"];
        let answer = git.ask(&args, &[])?;
        if answer.code != Some(0) {
            let (id, subject) = (until.to_owned(), String::new());
            return Ok(vec![Commit { id, subject, by: None }]);
        }
        let logged = attributed(&git, run, reflog)?;
        let text = String::from_utf8_lossy(&answer.out);
        let mut commits = Vec::new();
        for record in text.split('\u{2}') {
            let fields: Vec<&str> = record.trim_start().split('\u{1}').collect();
            let [id, subject, of_run, step, attempt] = fields[..] else { continue };
            let by_trailer = attempt.trim().parse().ok().filter(|_| of_run.trim() == run);
            let by_trailer = by_trailer.map(|attempt| (Address::from_text(step.trim()), attempt));
            let by = by_trailer.or_else(|| logged.get(id).cloned());
            commits.push(Commit { id: id.to_owned(), subject: subject.to_owned(), by });
        }
        Ok(commits)
    }
}

impl Repo {
    /// Those of the paths that are as the head of the branch has them, and not only untracked.
    pub fn as_committed(&self, paths: &[String]) -> Result<BTreeSet<String>, GitError> {
        let mut clean = BTreeSet::new();
        for some in paths.chunks(PATHS_MAX) {
            let literal = some.iter().map(|path| {
                let words = [&b":(literal)"[..], &name::bytes(path)].concat();
                OsString::from_vec(words)
            });
            let literal: Vec<OsString> = literal.collect();
            let ask = |start: &[&str]| {
                let start = start.iter().map(OsStr::new);
                let args = start.chain(literal.iter().map(OsString::as_os_str));
                self.looking().run(&args.collect::<Vec<_>>())
            };
            let status = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignored", "-uall"];
            let dirty = ask(&[&status[..], &["--"]].concat())?;
            let tracked = ask(&["ls-files", "-v", "-z", "--"])?;
            let dirty: BTreeSet<&[u8]> = dirty
                .split(|byte| *byte == 0)
                .filter_map(|entry| entry.get(3..).and_then(|path| self.ours(path)))
                .collect();
            // Any other tag: git was told not to look at it, and so does not know.
            let tracked = tracked.split(|byte| *byte == 0).filter_map(|it| it.strip_prefix(b"H "));
            let is_clean = tracked.filter(|path| !dirty.contains(path));
            clean.extend(is_clean.map(name::text));
        }
        Ok(clean)
    }
}

fn trailer_formats() -> String {
    let format = |key| format!("%x01%(trailers:key={key},valueonly,separator=%x20)");
    ["Onward-Run", "Onward-Step", "Onward-Attempt"].map(format).concat()
}

/// Commits that a reflog says attempts of the run made.
fn attributed(git: &Git, run: &str, reflog: &str) -> Result<BTreeMap<String, Made>, GitError> {
    let args = ["log", "--walk-reflogs", REFLOG_MAX, "--format=%H%x01%gs%x02", reflog, "--"];
    let answer = git.ask(&args, &[])?;
    let text = String::from_utf8_lossy(&answer.out);
    let start = format!("onward:{run}:");
    let mut made = BTreeMap::new();
    for record in text.split('\u{2}') {
        let Some((id, action)) = record.trim_start().split_once('\u{1}') else { continue };
        let ours = action.strip_prefix(start.as_str()).and_then(|rest| rest.split_once(": "));
        let named = ours.and_then(|(named, _)| named.rsplit_once(':'));
        let Some((step, attempt)) = named else { continue };
        if let Ok(attempt) = attempt.parse() {
            made.insert(id.to_owned(), (Address::from_text(step), attempt));
        }
    }
    Ok(made)
}
