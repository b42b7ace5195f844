//! Why the engine cannot go on, and what a person can do about it.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use onward_core::{finding::Finding, workflow::template::quoted};

/// Why the engine must stop at once. It never appends again after this.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("cannot {doing} {path}")]
    Io {
        doing: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the supervisor cannot be reached: {0}")]
    Hands(String),
    /// It told us why it ended.
    #[error("the supervisor cannot continue: {0}")]
    HandsGaveUp(String),
    /// What came of a supervisor's death is for a person to settle.
    #[error("{} your decision first", onward_core::policy::problems_need(.0))]
    Conflicts(Vec<Finding>),
    /// A bug of ours, or a journal that another program wrote to.
    #[error(transparent)]
    Impossible(#[from] onward_core::state::Violation),
    #[error("an event cannot be written: {0}")]
    Unwritable(String),
    #[error("the journal is damaged")]
    Damaged,
    /// A step, or a person, removed the run's own directory under its driver.
    #[error("the run's directory {} was removed{}", run_dir.display(), told(kept.as_deref()))]
    Removed { run_dir: PathBuf, kept: Option<PathBuf> },
    #[error("the run's directory {} was moved to {}", run_dir.display(), to.display())]
    Moved { run_dir: PathBuf, to: PathBuf },
    /// A file of another system without which nothing can be said about its run.
    #[error("{what}")]
    MissingFile { what: String, hint: String },
    /// A person wants to enter where another system's run has no such place.
    #[error("{what}")]
    NoEntry { what: String, known: &'static [&'static str] },
    /// Something that a start needs is not set up on this machine.
    #[error("{what}")]
    Unready { what: String, hint: String },
    /// A person interrupted a driver that waited, and had written nothing.
    #[error("interrupted")]
    Interrupted,
    /// The simulated machine went dark.
    #[error("the machine stopped")]
    Dark,
}

fn told(kept: Option<&Path>) -> String {
    kept.map(|dir| format!("; what is known of it is in {}", dir.display())).unwrap_or_default()
}

impl Stop {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => {
                let kind = source.kind();
                let is_full = matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                is_full.then(|| "make room on that disk, then `onward resume`".to_owned())
            }
            Self::HandsGaveUp(_) => Some("correct that, then `onward resume`".to_owned()),
            Self::Hands(_) => Some("`onward resume` starts another one".to_owned()),
            Self::Conflicts(_) => Some(
                "see `onward plan`; accept a finding with `onward resume --accept CODE`".into(),
            ),
            Self::Unready { hint, .. } | Self::MissingFile { hint, .. } => Some(hint.clone()),
            Self::Moved { to, .. } => {
                let project = quoted(&to.ancestors().nth(3).unwrap_or(to).display().to_string());
                Some(format!("its steps live on; continue there: `cd {project} && onward resume`"))
            }
            Self::Removed { run_dir, kept } => Some(match kept {
                Some(kept) => {
                    let word = |path: &Path| quoted(&path.display().to_string());
                    let (runs, run) = (word(run_dir.parent().unwrap_or(run_dir)), word(run_dir));
                    let bring = format!("mkdir -p {runs} && mv {} {run}", word(kept));
                    format!("bring it back with `{bring}`, then `onward resume`")
                }
                None => "nothing of it could be kept".to_owned(),
            }),
            Self::NoEntry { known, .. } => {
                Some(format!("say one of {}, or a step of `onward plan`", known.join(", ")))
            }
            Self::Impossible(_) | Self::Unwritable(_) | Self::Damaged | Self::Dark => None,
            Self::Interrupted => {
                Some("nothing was written; continue with `onward resume`".to_owned())
            }
        }
    }
}
