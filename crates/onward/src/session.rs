//! Where a command works: the project, its configuration, this machine, and which run is meant.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    event::Mode,
    graph::Defs,
    plan::{Plan, Status},
    policy::{Choices, Depth},
    run::Run,
    state::State,
    time::Timestamp,
};
use onward_engine::{
    dialects::{dialect, dialects},
    drive::Options,
    engine::{EngineError, How, Machine, adopt, plan_site},
    load::journal::{JOURNAL, load},
    locate::{
        FindError, FoundSite, Project, RunDir, Search, TakeOver,
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
            adapters: config.agent_adapters(),
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

    /// The run of ours that was named: by its directory, its id or a prefix of it.
    pub(crate) fn named(&self, cx: &Context, wanted: &str) -> Result<PathBuf, Error> {
        match self.which(cx, &Wanted { run: Some(wanted), ..Wanted::default() })? {
            Which::Ours(dir) => Ok(dir),
            Which::Foreign(found) => Err(Error::NotAdopted { dir: found.dir }),
        }
    }

    /// Where runs of other systems are looked for.
    pub(crate) fn search<'a>(&'a self, tasks: Option<&'a Path>) -> Search<'a> {
        Search { dialects: dialects(), env: &self.machine.env, tasks }
    }

    /// The run that is meant, of ours or of another system. Without a name: the one in this very
    /// directory, the one of ours that was active last, or the only one that another system left
    /// below.
    pub(crate) fn which(&self, cx: &Context, wanted: &Wanted<'_>) -> Result<Which, Error> {
        let path = cx.path(Path::new(wanted.run.unwrap_or(".")));
        let dir =
            std::path::absolute(&path).map_err(|source| Error::CannotRead { path, source })?;
        if wanted.run.is_some() && dir.join(JOURNAL).is_file() {
            return Ok(Which::Ours(dir));
        }
        let cannot_read = |source| Error::CannotRead { path: dir.clone(), source };
        let tasks = wanted.tasks.map(|tasks| cx.path(tasks));
        let search = self.search(tasks.as_deref());
        if let Some(name) = wanted.dialect
            && dialect(name).is_none()
        {
            let known = dialects().iter().map(|it| it.card().name.to_owned()).collect();
            return Err(Error::NoSuchDialect { name: name.to_owned(), known });
        }
        let here = if dir.is_dir() {
            search.at(&dir, wanted.dialect).map_err(cannot_read)?
        } else {
            Vec::new()
        };
        let whole: Vec<&FoundSite> = here.iter().filter(|it| it.site.lacks.is_none()).collect();
        // A run that onward can only look at does not stand before one of our own.
        let is_ours_first = wanted.run.is_none()
            && whole.iter().all(|it| !it.card().continues)
            && self.project.last_run().is_ok();
        if !whole.is_empty() && !is_ours_first || wanted.dialect.is_some() && wanted.tasks.is_none()
        {
            return self.only(here);
        }
        let ours = match (wanted.run, wanted.tasks) {
            (Some(run), _) => self.project.find(run),
            (None, None) => self.project.last_run(),
            (None, Some(_)) => Err(FindError::NoRuns),
        };
        let error = match ours {
            Ok(run) => return Ok(Which::Ours(run.dir)),
            Err(error) => error,
        };
        let below =
            if dir.is_dir() { search.below(&dir).map_err(cannot_read)? } else { Vec::new() };
        let is_of = |it: &FoundSite| wanted.dialect.is_none_or(|name| it.card().name == name);
        let below: Vec<FoundSite> =
            below.into_iter().filter(|it| is_of(it) && !it.site.elsewhere).collect();
        match (below.is_empty(), here.is_empty()) {
            (false, _) => self.only(below),
            // One that lacks a file: reading it says which.
            (true, false) => self.only(here),
            (true, true) => Err(error.into()),
        }
    }

    /// The one that was found; several are listed.
    fn only(&self, mut found: Vec<FoundSite>) -> Result<Which, Error> {
        let dialects: BTreeSet<&str> = found.iter().map(|it| it.card().name).collect();
        if dialects.len() == 1 {
            // Of several runs in one place, the last active one is meant.
            let dir = found.first().map(|it| it.dir.clone());
            if found.iter().all(|it| Some(&it.dir) == dir.as_ref()) {
                found.sort_by_key(|it| it.site.last_activity);
                found.drain(..found.len() - 1);
            }
        }
        if let [_, _, ..] = found.as_slice() {
            let line = |it: &FoundSite| format!("{} ({})", it.dir.display(), it.card().name);
            let list: Vec<String> = found.iter().map(line).collect();
            let first = found.first().map(|it| it.dir.display().to_string()).unwrap_or_default();
            return Err(Error::SeveralRuns { list, first });
        }
        match found.pop() {
            Some(found) => self.adopted_or_foreign(found),
            None => Err(FindError::NoRuns.into()),
        }
    }

    /// The run that goes on with another system's run, or else that run itself.
    pub(crate) fn adopted_or_foreign(&self, found: FoundSite) -> Result<Which, Error> {
        match adopt::adopter(&found.project, &found)? {
            Some(it) if !it.is_complete || self.is_over(&found) => Ok(Which::Ours(it.run.dir)),
            Some(_) | None => Ok(Which::Foreign(Box::new(found))),
        }
    }

    fn is_over(&self, found: &FoundSite) -> bool {
        let plan = self.glance(found);
        plan.is_ok_and(|plan| plan.run.status == Status::Completed)
    }

    /// Runs of other systems at and below this directory, and in task lists, that no run of ours
    /// goes on with.
    pub(crate) fn strangers(&self, below: &Path) -> Result<Vec<FoundSite>, Error> {
        let cannot_read = |source| Error::CannotRead { path: below.to_owned(), source };
        let mut strangers = Vec::new();
        for found in self.search(None).below(below).map_err(cannot_read)? {
            if let Which::Foreign(found) = self.adopted_or_foreign(found)? {
                strangers.push(*found);
            }
        }
        Ok(strangers)
    }

    /// How another system's run stands, by its files alone.
    pub(crate) fn glance(&self, found: &FoundSite) -> Result<Plan, Error> {
        Ok(plan_site(found, &self.machine, &Choices::default(), Depth::Glance)?)
    }

    /// What a resume of another system's run would do.
    pub(crate) fn foreign_plan(
        &self,
        found: &FoundSite,
        choices: &Choices,
        depth: Depth,
    ) -> Result<Plan, Error> {
        Ok(plan_site(found, &self.machine, choices, depth)?)
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

/// How a run was named on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// An id, a prefix of one, or a directory.
    pub(crate) run: Option<&'a str>,
    /// Which system wrote it.
    pub(crate) dialect: Option<&'a str>,
    /// Where task lists are.
    pub(crate) tasks: Option<&'a Path>,
}

/// A run, by who wrote it.
pub(crate) enum Which {
    Ours(PathBuf),
    Foreign(Box<FoundSite>),
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
