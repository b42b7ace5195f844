//! Where a command works: the project, its configuration, this machine, and which run is meant.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    event::Mode,
    graph::Defs,
    plan::{Plan, Status},
    policy::Choices,
    run::Run,
    state::State,
    time::Timestamp,
};
use onward_engine::{
    drive::Options,
    engine::{EngineError, How, Machine},
    foreign::{self, adopt},
    load::journal::{JOURNAL, load},
    locate::{
        FindError, Project, RunDir, TakeOver,
        config::{Config, Flags, Origin, Setting},
        holder, load_pinned, opened,
    },
    world::{real::wall_clock, supervisor::socket_dir_of_this_user},
};

use crate::{cmd::Context, error::Error};

/// Everything a command about runs needs to know before it begins.
pub(crate) struct Session {
    pub(crate) project: Project,
    pub(crate) config: Config,
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
}

/// What a person may say about how a run is driven.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Driving {
    /// Who answers: autopilot, interactive or preflight
    #[arg(long, value_enum)]
    mode: Option<ModeName>,
    /// Seconds that running steps get after the first Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
    /// Accept the plan with its warnings
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Never ask anything
    #[arg(long)]
    pub(crate) no_input: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum ModeName {
    Autopilot,
    Interactive,
    Preflight,
}

impl Session {
    pub(crate) fn new(cx: &Context, driving: &Driving) -> Result<Self, Error> {
        Self::at(cx, &cx.global.cwd, driving)
    }

    /// The same, for the project that another directory lies in.
    pub(crate) fn at(cx: &Context, dir: &Path, driving: &Driving) -> Result<Self, Error> {
        let here = std::path::absolute(dir)
            .map_err(|source| Error::CannotRead { path: dir.to_owned(), source })?;
        let project = Project::locate(&here)
            .map_err(|source| Error::CannotRead { path: here.clone(), source })?;
        let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let mode = driving.mode.map(|mode| match mode {
            ModeName::Autopilot => Mode::Autopilot,
            ModeName::Interactive => Mode::Interactive,
            ModeName::Preflight => Mode::Preflight,
        });
        let flags = Flags { mode, grace_seconds: driving.grace, keep: None };
        let config = Config::load(project.root(), &env, &flags)?;
        let this = std::env::current_exe()
            .map_err(|source| Error::CannotRead { path: "onward".into(), source })?;
        let now = cx.global.now.or_else(|| now_from(&env));
        let machine = Machine {
            supervise: vec![this.clone().into(), "supervise".into()],
            snapshot: vec![this.clone().into(), "snapshot".into()],
            call: vec![this.into(), "call".into()],
            socket_dir: socket_dir_of_this_user(),
            agents: config.agent_commands(),
            continuations: config.agent_continuations(),
            notify: config.notify.value.clone(),
            catch_signals: true,
            now,
            env,
            stand_in: None,
        };
        Ok(Self { project, config, machine, now: now.unwrap_or_else(wall_clock) })
    }

    /// The session of the project that the run is kept in: its agents and settings count, wherever
    /// somebody calls from.
    pub(crate) fn of_run(self, cx: &Context, run: &Path, driving: &Driving) -> Result<Self, Error> {
        match Project::of_run(run) {
            Some(project) if project.root() != self.project.root() => {
                Self::at(cx, project.root(), driving)
            }
            Some(_) | None => Ok(self),
        }
    }

    pub(crate) fn how(&self, choices: Choices) -> How {
        let grace_ms = self.config.grace_seconds.value.saturating_mul(1000);
        let options = Options { grace_ms, ..Options::default() };
        let (mode, take_over) = (self.config.mode.value, TakeOver::No);
        How { mode, choices, pinned: false, options, take_over }
    }

    /// A run keeps the mode it was started in, unless somebody says otherwise.
    pub(crate) fn mode_of(&self, dir: &Path) -> Mode {
        let Setting { value, origin } = &self.config.mode;
        if *origin != Origin::Default {
            return *value;
        }
        opened(dir).map_or(*value, |opened| opened.mode)
    }

    /// Who is at the keyboard, for the journal.
    pub(crate) fn user(&self) -> String {
        let env = &self.machine.env;
        let user = env.iter().find(|(name, _)| name == "USER" || name == "LOGNAME");
        user.map_or_else(|| "somebody".to_owned(), |(_, value)| value.to_string_lossy().into())
    }

    /// The run of ours somebody named: its directory, its id or a prefix of it.
    pub(crate) fn named(&self, cx: &Context, wanted: &str) -> Result<PathBuf, Error> {
        match self.which(cx, Some(wanted), None)? {
            Which::Ours(dir) => Ok(dir),
            Which::Foreign { dir, .. } => Err(Error::NotAdopted { dir }),
        }
    }

    /// The run that is meant, whoever wrote it. Without a name: the one in this very directory, the
    /// one of ours that was active last, or the only one that another system left below.
    pub(crate) fn which(
        &self,
        cx: &Context,
        wanted: Option<&str>,
        dialect: Option<&str>,
    ) -> Result<Which, Error> {
        let path = cx.path(Path::new(wanted.unwrap_or(".")));
        let dir =
            std::path::absolute(&path).map_err(|source| Error::CannotRead { path, source })?;
        let foreign = |dir: PathBuf| self.adopted_or_foreign(dir, dialect);
        if wanted.is_some() && dir.join(JOURNAL).is_file() {
            return Ok(Which::Ours(dir));
        }
        let below = if dir.is_dir() { foreign::below(&dir) } else { Vec::new() };
        if dialect.is_some() || below.contains(&dir) {
            return foreign(dir);
        }
        let ours = match wanted {
            Some(wanted) => self.project.find(wanted),
            None => self.project.last_run(),
        };
        match (ours, below.as_slice()) {
            (Ok(run), _) => Ok(Which::Ours(run.dir)),
            (Err(_), [only]) => foreign(only.clone()),
            (Err(_), []) if dir.is_dir() && foreign::at(&dir, None)?.is_some() => foreign(dir),
            (Err(error), []) => Err(error.into()),
            (Err(_), several) => {
                let list: Vec<String> =
                    several.iter().map(|dir| dir.display().to_string()).collect();
                let first = list.first().cloned().unwrap_or_default();
                Err(Error::SeveralRuns { list, first })
            }
        }
    }

    /// The run that goes on with a directory of another system, or else the directory itself.
    pub(crate) fn adopted_or_foreign(
        &self,
        dir: PathBuf,
        dialect: Option<&str>,
    ) -> Result<Which, Error> {
        let located = Project::locate(&dir);
        let project = located.map_err(|source| Error::CannotRead { path: dir.clone(), source })?;
        let is_over = |dir: &Path| {
            let plan = self.foreign_plan(dir, dialect);
            plan.is_ok_and(|plan| plan.run.status == Status::Completed)
        };
        match adopt::find(&project, &dir)? {
            Some(it) if !it.is_complete || is_over(&dir) => Ok(Which::Ours(it.run.dir)),
            Some(_) | None => Ok(Which::Foreign { dir, dialect: dialect.map(str::to_owned) }),
        }
    }

    /// The directories at and below this one in which another system left a run that no run of ours
    /// goes on with.
    pub(crate) fn strangers(&self, below: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut strangers = Vec::new();
        for dir in foreign::below(below) {
            if let Which::Foreign { dir, .. } = self.adopted_or_foreign(dir, None)? {
                strangers.push(dir);
            }
        }
        Ok(strangers)
    }

    /// What a resume of another system's run would do.
    pub(crate) fn foreign_plan(&self, dir: &Path, dialect: Option<&str>) -> Result<Plan, Error> {
        let found = foreign::at(dir, dialect)?.ok_or(FindError::NoRuns)?;
        Ok(found.plan(self.now)?)
    }

    /// The named run, or the one that was active last.
    pub(crate) fn named_or_last(
        &self,
        cx: &Context,
        wanted: Option<&str>,
    ) -> Result<PathBuf, Error> {
        match wanted {
            Some(wanted) => self.named(cx, wanted),
            None => Ok(self.project.last_run()?.dir),
        }
    }

    /// Runs that are not complete, the last active one first.
    pub(crate) fn unfinished(&self) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        for run in self.project.runs()? {
            let found_run = Found::look(run)?;
            match found_run.status {
                Status::Completed | Status::Cancelled => {}
                Status::Fresh
                | Status::Running
                | Status::Interrupted
                | Status::Waiting
                | Status::Parked
                | Status::OverBudget
                | Status::Failed => found.push(found_run),
            }
        }
        Ok(found)
    }
}

fn now_from(env: &[(OsString, OsString)]) -> Option<Timestamp> {
    let value = env.iter().find(|(name, _)| name == "ONWARD_NOW")?.1.to_str()?;
    value.parse().ok()
}

/// A run, by who wrote it.
pub(crate) enum Which {
    Ours(PathBuf),
    Foreign { dir: PathBuf, dialect: Option<String> },
}

/// A run on disk, folded. Its workflow is read by whoever asks for more than how it stands.
pub(crate) struct Found {
    pub(crate) dir: RunDir,
    pub(crate) state: State,
    pub(crate) status: Status,
}

impl Found {
    pub(crate) fn look(dir: RunDir) -> Result<Self, Error> {
        let state = state_of(&dir.dir)?;
        let status = Status::of(&state, dir.is_driven());
        Ok(Self { dir, state, status })
    }

    pub(crate) fn is_complete(dir: &Path) -> Result<bool, Error> {
        Ok(Status::of(&state_of(dir)?, false) == Status::Completed)
    }

    pub(crate) fn run(self) -> Result<Run, Error> {
        with_workflow(&self.dir.dir, self.state)
    }
}

/// Folds a run that nobody is about to change.
pub(crate) fn open_run(dir: &Path) -> Result<Run, Error> {
    with_workflow(dir, state_of(dir)?)
}

fn state_of(dir: &Path) -> Result<State, Error> {
    let path = dir.join(JOURNAL);
    let bytes = std::fs::read(&path).map_err(|source| Error::CannotRead { path, source })?;
    Ok(load(&bytes).map_err(EngineError::from)?.state)
}

fn with_workflow(dir: &Path, state: State) -> Result<Run, Error> {
    let workflow = load_pinned(dir).map_err(EngineError::from)?.workflow;
    Ok(Run::new(Arc::new(Defs::new(workflow)), state))
}

pub(crate) fn is_driven(dir: &Path) -> bool {
    holder(dir).is_some()
}

/// The run that this directory is of.
pub(crate) fn id_of(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// One word of a command that a person can paste into a shell.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,+@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_where_a_shell_would_take_it_apart() {
        assert_eq!(word("round[2]/ask"), "'round[2]/ask'");
        assert_eq!(word("plain-word_1.x/y"), "plain-word_1.x/y");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
    }
}
