//! Runs that another system left behind: found, read and planned.
//!
//! Invariant: reads only. Everything a dialect is shown is gathered here, once, and nothing on disk
//! or in git changes by it.

pub mod adopt;
mod git;

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use onward_core::{plan::Plan, policy::EnterAt, time::Timestamp};
use onward_dialects::{Asked, Dialect, File, Files, MissingMark, NoEntry, dialect, dialects};

use crate::{
    foreign::adopt::Elsewhere,
    world::real::{file_time, wall_clock},
};

/// A directory that holds a run of another system.
#[derive(Clone, Copy)]
pub struct Foreign<'a> {
    pub dir: &'a Path,
    pub(crate) dialect: &'static dyn Dialect,
}

#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    #[error("there is no dialect `{name}`")]
    NoSuchDialect { name: String },
    #[error("{}: {missing}", dir.display())]
    Missing { dir: PathBuf, missing: MissingMark },
    #[error("cannot read `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(transparent)]
    NoEntry(#[from] NoEntry),
    #[error("`{}` is too large to be read", path.display())]
    TooLarge { path: PathBuf },
}

impl ForeignError {
    pub fn hint(&self) -> String {
        match self {
            Self::NoSuchDialect { .. } => {
                let names: Vec<&str> = dialects().iter().map(|it| it.name()).collect();
                format!("known: {}", names.join(", "))
            }
            Self::Missing { missing, .. } => missing.hint.to_owned(),
            Self::NoEntry(_) => {
                "say a recovery code such as `peer-review`, or a step of `onward plan`".to_owned()
            }
            Self::Io { .. } => "see whether you may read it".to_owned(),
            Self::TooLarge { .. } => format!("at most {} MiB are read", FILE_BYTES_MAX >> 20),
        }
    }
}

/// Longer files are no logs of a run.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// How deep below a directory the marks of a run are looked for: a file directly in it is at 1.
const DEPTH_MAX: usize = 4;
/// A search ends here, whatever is left.
const DIRS_MAX: usize = 20_000;
/// Nobody keeps a run in these; copies of one may well be there.
const PASSED_OVER: [&str; 6] =
    [".git", ".onward", "node_modules", "target", "worktrees", ".worktrees"];

/// The run in this very directory: of the dialect that is named, or of the first whose marks are
/// there, or of one that lacks only some of its marks, which [`Foreign::plan`] then names.
pub fn at<'a>(dir: &'a Path, named: Option<&str>) -> Result<Option<Foreign<'a>>, ForeignError> {
    if let Some(name) = named {
        let missing = || ForeignError::NoSuchDialect { name: name.to_owned() };
        let dialect = dialect(name).ok_or_else(missing)?;
        return Ok(Some(Foreign { dir, dialect }));
    }
    let some = |dialect: &&dyn Dialect| dialect.marks().iter().any(|mark| has(dir, mark));
    let found = marked(dir).or_else(|| dialects().iter().copied().find(some));
    Ok(found.map(|dialect| Foreign { dir, dialect }))
}

/// The dialect whose marks are all in this directory.
fn marked(dir: &Path) -> Option<&'static dyn Dialect> {
    let all = |dialect: &&dyn Dialect| dialect.marks().iter().all(|mark| has(dir, mark));
    dialects().iter().copied().find(all)
}

fn has(dir: &Path, mark: &str) -> bool {
    dir.join(mark).is_file()
}

/// Directories at and below `root` that hold a whole run, in order of their names.
pub fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut level = vec![root.to_owned()];
    let mut visited = 0;
    for _ in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for dir in level {
            visited += 1;
            if visited > DIRS_MAX {
                break;
            }
            if marked(&dir).is_some() {
                found.push(dir);
            } else {
                next.extend(directories(&dir));
            }
        }
        level = next;
    }
    found.sort();
    found
}

/// What may not be read is passed over, and so are links: they could lead in a circle.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let wanted = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        !PASSED_OVER.iter().any(|it| name == *it)
    };
    let mut found: Vec<PathBuf> =
        entries.filter(is_dir).filter(wanted).map(|entry| entry.path()).collect();
    found.sort();
    found
}

impl Foreign<'_> {
    pub fn dialect(&self) -> &'static str {
        self.dialect.name()
    }

    /// The built-in workflow that goes on with it.
    pub fn workflow(&self) -> &'static str {
        self.dialect.workflow()
    }

    /// Whether going on with it takes an agent at all.
    pub fn needs_agents(&self) -> Result<bool, ForeignError> {
        Ok(self.dialect.needs_agents(&snapshot(self.dir, self.dialect)?))
    }

    /// What a resume would do.
    pub fn plan(&self, now: Timestamp) -> Result<Plan, ForeignError> {
        self.plan_from(now, None)
    }

    /// The recovery codes that a person can enter at.
    pub fn places(&self) -> &'static [&'static str] {
        self.dialect.places()
    }

    /// The same, if a person wants to enter there.
    pub fn plan_from(&self, now: Timestamp, from: Option<&EnterAt>) -> Result<Plan, ForeignError> {
        let mut files = snapshot(self.dir, self.dialect)?;
        let mut plan = self.plan_of(&files, now)?;
        if let Some(from) = from {
            let elsewhere = Elsewhere::find(self.dialect, &files, &plan, from, wall_clock())?;
            if let Some(entry) = &elsewhere.entry {
                files.insert(&entry.path, entry.file());
                plan = Elsewhere::seen_from(plan, self.plan_of(&files, now)?);
            }
            plan.findings.extend(elsewhere.told(0));
        }
        Ok(plan)
    }

    fn plan_of(&self, files: &Files, now: Timestamp) -> Result<Plan, ForeignError> {
        let dir = self.dir.display().to_string();
        let missing = |missing| ForeignError::Missing { dir: self.dir.to_owned(), missing };
        self.dialect.plan(files, &Asked { dir: &dir, now }).map_err(missing)
    }
}

/// Everything the dialect wants to see.
pub(crate) fn snapshot(dir: &Path, dialect: &dyn Dialect) -> Result<Files, ForeignError> {
    let mut files = Files::default();
    let entries = fs::read_dir(dir).map_err(unreadable(dir))?;
    for entry in entries {
        let entry = entry.map_err(unreadable(dir))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| dialect.reads(name)) else { continue };
        if let Some(file) = read(&entry.path())? {
            files.insert(name, file);
        }
    }
    files.git = dialect.branch_prefix().and_then(|prefix| git::look(dir, prefix));
    let named = dialect.processes(&files).into_iter();
    files.alive = named.filter(|(pid, word)| is_alive(*pid, word)).map(|(pid, _)| pid).collect();
    Ok(files)
}

/// `None` for what is no file, or is gone since it was listed.
fn read(path: &Path) -> Result<Option<File>, ForeignError> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path)(error)),
    };
    if !meta.is_file() {
        return Ok(None);
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(ForeignError::TooLarge { path: path.to_owned() });
    }
    let bytes = fs::read(path).map_err(unreadable(path))?;
    Ok(Some(File { bytes, modified: meta.modified().ok().map(file_time) }))
}

fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> ForeignError {
    move |source| ForeignError::Io { path: path.to_owned(), source }
}

/// A number alone proves nothing: it may long be another process's.
fn is_alive(pid: u32, word: &str) -> bool {
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command_line).contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conference(dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        for mark in ["conference.md", "conference_events.jsonl"] {
            fs::write(dir.join(mark), "").unwrap();
        }
    }

    #[test]
    fn runs_are_found_four_levels_deep_and_no_deeper() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in ["b", "a/x/y", "a/x/z/too-deep", ".git/c", "worktrees/copy", "b/inner"] {
            conference(&at(path));
        }
        fs::write(at("a/conference.md"), "").unwrap();
        assert_eq!(below(root.path()), [at("a/x/y"), at("b")]);
        assert_eq!(below(&at("b")), [at("b")]);
    }

    #[test]
    fn half_of_the_marks_name_the_other_half() {
        let root = tempfile::tempdir().unwrap();
        assert!(at(root.path(), None).unwrap().is_none());
        fs::write(root.path().join("conference.md"), "").unwrap();
        let found = at(root.path(), None).unwrap().unwrap();
        let Err(ForeignError::Missing { missing, .. }) = found.plan(Timestamp::default()) else {
            panic!()
        };
        assert_eq!(missing.file, "conference_events.jsonl");
    }

    #[test]
    fn a_named_dialect_needs_no_mark_and_an_unknown_one_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let named = at(root.path(), Some("conference")).unwrap().unwrap();
        assert_eq!(named.dialect(), "conference");
        let Err(error) = at(root.path(), Some("parliament")) else { panic!() };
        assert!(error.hint().contains("conference"));
    }

    #[test]
    fn planning_changes_nothing_and_sees_the_file_s_own_time() {
        let root = tempfile::tempdir().unwrap();
        conference(root.path());
        let names = || -> Vec<_> {
            fs::read_dir(root.path()).unwrap().map(|it| it.unwrap().file_name()).collect()
        };
        let before = names();
        let plan = at(root.path(), None).unwrap().unwrap().plan(Timestamp::MAX).unwrap();
        assert_eq!(plan.recovery_point.code, "round-start");
        assert!(plan.run.age_seconds > 0 && plan.run.last_event.at.starts_with("20"));
        assert_eq!(names(), before);
    }

    #[test]
    fn a_process_is_known_by_its_command_line_too() {
        assert!(!is_alive(std::process::id(), "no such word in any command line"));
        assert!(is_alive(std::process::id(), "onward") || !Path::new("/proc/self").exists());
    }
}
