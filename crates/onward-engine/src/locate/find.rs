//! Which runs there are, and which one is meant.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use onward_core::{id::RunId, nearest::distance, time::Timestamp};

use super::{Misnamed, Project, lock::holder, pinned::WORKFLOW};
use crate::{load::journal::JOURNAL, world::real::file_time};

/// A run on disk and what can be told without reading its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDir {
    pub id: RunId,
    pub dir: PathBuf,
    /// When its journal was last written to.
    pub last_activity: Timestamp,
    /// It has not lost its journal.
    pub has_journal: bool,
}

impl RunDir {
    pub fn is_driven(&self) -> bool {
        holder(&self.dir).is_some()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("no run is called `{wanted}`")]
    NoSuchRun { wanted: String, near: Vec<String> },
    #[error("there is no run here")]
    NoRuns,
    #[error("run `{run}` has lost its journal")]
    LostJournal { run: RunId },
    #[error("`{wanted}` can mean {} runs", all.len())]
    Several { wanted: String, all: Vec<RunId> },
    #[error("cannot look at the runs in {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl FindError {
    pub fn hint(&self) -> String {
        let list = |ids: &[RunId]| ids.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ");
        match self {
            Self::NoSuchRun { near, .. } if near.is_empty() => "see `onward list`".to_owned(),
            Self::NoSuchRun { near, .. } => format!("did you mean {}?", near.join(", ")),
            Self::NoRuns => "start one with `onward run FILE`, or try `onward demo`".to_owned(),
            Self::LostJournal { run } => format!("rebuild it with `onward repair {run}`"),
            Self::Several { all, .. } => format!("say which: {}", list(all)),
            Self::Io { .. } => "check whether you may read it".to_owned(),
        }
    }
}

/// How many near names are shown.
const NEAR_MAX: usize = 3;

impl Project {
    /// Every run, the last active one first.
    pub fn runs(&self) -> Result<Vec<RunDir>, FindError> {
        let mut runs = self.even_lost_runs()?;
        runs.retain(|run| run.has_journal);
        Ok(runs)
    }

    /// The one that was active last.
    pub fn last_run(&self) -> Result<RunDir, FindError> {
        let runs = self.even_lost_runs()?;
        let is_meant = |run: &&RunDir| run.has_journal && !Misnamed::is_copy(&run.dir);
        match (runs.iter().find(is_meant), runs.first()) {
            (Some(run), _) => Ok(run.clone()),
            (None, Some(lost)) => Err(FindError::LostJournal { run: lost.id.clone() }),
            (None, None) => Err(FindError::NoRuns),
        }
    }

    /// The same, and those that have lost their journal.
    pub fn even_lost_runs(&self) -> Result<Vec<RunDir>, FindError> {
        let path = self.runs_dir();
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(FindError::Io { path, source }),
        };
        let mut runs = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| FindError::Io { path: path.clone(), source })?;
            runs.extend(run_at(&entry.path()));
        }
        runs.sort_by(|one, other| {
            other.last_activity.cmp(&one.last_activity).then_with(|| one.id.cmp(&other.id))
        });
        Ok(runs)
    }

    /// The run with this id, or the only one whose id begins so.
    pub fn find(&self, wanted: &str) -> Result<RunDir, FindError> {
        let found = self.find_even_lost(wanted)?;
        if found.has_journal { Ok(found) } else { Err(FindError::LostJournal { run: found.id }) }
    }

    /// The same, and one that has lost its journal is found too.
    pub fn find_even_lost(&self, wanted: &str) -> Result<RunDir, FindError> {
        let mut runs = self.even_lost_runs()?;
        if runs.is_empty() {
            return Err(FindError::NoRuns);
        }
        if let Some(exact) = runs.iter().position(|run| run.id.as_str() == wanted) {
            return Ok(runs.swap_remove(exact));
        }
        let begin_so = |run: &&RunDir| run.id.as_str().starts_with(wanted);
        let meant: Vec<&RunDir> = runs.iter().filter(begin_so).collect();
        match meant[..] {
            [] => {
                let near = near(wanted, runs.iter().map(|run| run.id.as_str()));
                Err(FindError::NoSuchRun { wanted: wanted.to_owned(), near })
            }
            [one] => Ok(one.clone()),
            _ => {
                let all = meant.iter().map(|run| run.id.clone()).collect();
                Err(FindError::Several { wanted: wanted.to_owned(), all })
            }
        }
    }
}

/// `None` for what is no run: another name, or neither a journal nor a workflow.
fn run_at(dir: &Path) -> Option<RunDir> {
    let id: RunId = dir.file_name()?.to_str()?.parse().ok()?;
    let journal = fs::metadata(dir.join(JOURNAL));
    let has_journal = journal.as_ref().is_ok_and(fs::Metadata::is_file);
    let file = journal.or_else(|_| fs::metadata(dir.join(WORKFLOW))).ok()?;
    let last_activity = file_time(file.modified().ok()?);
    Some(RunDir { id, dir: dir.to_owned(), last_activity, has_journal })
}

/// The names that a person who typed another one may have meant.
pub fn near<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    // A person who mistypes mostly mistypes a part: compare with as much as they typed.
    let apart = |name: &str| {
        let part = name.get(..wanted.len()).unwrap_or(name);
        distance(wanted, part).min(distance(wanted, name))
    };
    let mut all: Vec<(usize, &str)> = names.map(|name| (apart(name), name)).collect();
    all.sort_unstable();
    let allowed = wanted.len().div_ceil(3);
    let close = all.into_iter().take_while(|(apart, _)| *apart <= allowed);
    close.take(NEAR_MAX).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn project(ids: &[&str]) -> (tempfile::TempDir, Project) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".onward")).unwrap();
        let project = Project::locate(dir.path()).unwrap();
        for (age, id) in ids.iter().enumerate() {
            let run = project.runs_dir().join(id);
            fs::create_dir_all(&run).unwrap();
            let file = fs::File::create(run.join(JOURNAL)).unwrap();
            let seconds = 2_000_000_000 - age as u64;
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }
        (dir, project)
    }

    #[test]
    fn runs_are_listed_by_activity_and_half_made_ones_are_none() {
        let (_dir, project) = project(&["b-20261115-aaaa", "a-20261115-bbbb", ".new-x"]);
        fs::create_dir(project.runs_dir().join("no-journal")).unwrap();
        let ids: Vec<String> = project.runs().unwrap().iter().map(|it| it.id.to_string()).collect();
        assert_eq!(ids, ["b-20261115-aaaa", "a-20261115-bbbb"]);
    }

    #[test]
    fn a_run_without_its_journal_is_named_and_not_listed() {
        let (_dir, project) = project(&["demo-20261115-aaaa", "demo-20261116-bbbb"]);
        let lost = project.runs_dir().join("demo-20261116-bbbb");
        fs::rename(lost.join(JOURNAL), lost.join(WORKFLOW)).unwrap();
        assert_eq!(project.runs().unwrap().len(), 1);
        assert_eq!(project.even_lost_runs().unwrap().len(), 2);
        assert!(matches!(project.find("demo-20261116"), Err(FindError::LostJournal { .. })));
        assert_eq!(project.find_even_lost("demo-20261116").unwrap().dir, lost);
    }

    #[test]
    fn a_prefix_is_enough_while_it_means_one_run() {
        let (_dir, project) = project(&["demo-20261115-aaaa", "demo-20261116-bbbb", "demo"]);
        let found = |text: &str| project.find(text).map(|run| run.id.to_string());
        assert_eq!(found("demo-20261116").unwrap(), "demo-20261116-bbbb");
        assert_eq!(found("demo").unwrap(), "demo", "a whole id means itself");
        let Err(FindError::Several { all, .. }) = found("demo-") else { panic!() };
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn a_wrong_name_brings_near_ones() {
        let (_dir, project) = project(&["demo-20261115-aaaa", "other-20261116-bbbb"]);
        let error = project.find("dmo-2026").unwrap_err();
        assert_eq!(error.hint(), "did you mean demo-20261115-aaaa?");
        assert_eq!(project.find("zzzzzz").unwrap_err().hint(), "see `onward list`");
        let (_dir, empty) = self::project(&[]);
        assert!(matches!(empty.find("x"), Err(FindError::NoRuns)));
    }
}
