//! Where a command works: the project, its configuration, this machine, and which run is meant.

use std::{
    cell::RefCell,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    event::Mode,
    plan::{Plan, RunInfo, Status},
    policy::{Choices, Depth},
    run::Run,
    state::State,
    time::Timestamp,
};
use onward_engine::{
    dialects::{Home, dialect, dialects},
    drive::Options,
    engine::{
        EngineError, How, Machine,
        adopt::{Adopter, Adopters, is_superseded},
        plan_site,
    },
    load::{
        checkpoint::{Folded, Looked as Journaled, load_looking},
        journal::JOURNAL,
    },
    locate::{
        Cast, FindError, FoundSite, Misnamed, Pinned, Project, RunDir, Search, TakeOver,
        config::{Config, Flags, Origin, Setting},
        has_tasks, holder, is_task_list, is_tasks_root, opened,
    },
    world::{
        real::{wall_clock, zone_of},
        seen::Seen,
        supervisor::socket_dir_of_this_user,
    },
};

#[cfg(feature = "watch")]
use {onward_core::journal::Mark, onward_engine::load::follow::Follower};

use crate::{
    cmd::Context,
    command,
    error::Error,
    meant::{Looked, Wanted, called, here, is_closed, is_sure, left_here, unknown},
    open::was_ended,
    open::{self, Found, Reach},
    screen::Screen,
};

/// Everything a command about runs needs to know before it begins.
pub(crate) struct Session {
    pub(crate) project: Project,
    pub(crate) config: Config,
    pub(crate) machine: Machine,
    pub(crate) now: Timestamp,
    /// The first unfinished run, as it was folded to find that it is.
    folded: RefCell<Option<(PathBuf, Arc<Folded>)>>,
}

/// What a person may say about how a run is driven.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Driving {
    /// Who answers: autopilot, interactive or preflight
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeName>,
    /// Seconds that running steps get after the first Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    pub(crate) grace: Option<u64>,
    /// Accept the plan with its warnings
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Never ask anything
    #[arg(long)]
    pub(crate) no_input: bool,
    /// At a limit, wait until it is lifted, then continue
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum ModeName {
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
        let wait = driving.wait.then_some(true);
        let flags = Flags { mode, grace_seconds: driving.grace, keep: None, wait };
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
            tell: Some(|words| Screen::of_stderr().line(words)),
            now,
            env,
            stand_in: None,
            cast: Cast { all: None, roles: config.settings.parts() },
        };
        let (now, folded) = (now.unwrap_or_else(wall_clock), RefCell::default());
        Ok(Self { project, config, machine, now, folded })
    }

    /// The session of the project that the run is kept in: its agents and settings count,
    /// whatever the current directory is.
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
        let limits = self.config.settings.limits(&zone_of(&self.machine.env));
        let options = Options { grace_ms, limits, ..Options::default() };
        let (mode, take_over) = (self.config.mode.value, TakeOver::No);
        let seen = Seen::default();
        How { mode, choices, pinned: false, options, take_over, seen, folded: None }
    }

    /// A run keeps the mode it was started in, unless the user says otherwise.
    pub(crate) fn mode_of(&self, dir: &Path) -> Mode {
        let Setting { value, origin } = &self.config.mode;
        if *origin != Origin::Default {
            return *value;
        }
        opened(dir).map_or(*value, |opened| opened.mode)
    }

    /// The same for a run of another system, where its files tell the mode.
    pub(crate) fn mode_at(&self, found: &FoundSite) -> Mode {
        let Setting { value, origin } = &self.config.mode;
        match found.site.mode {
            Some(mode) if *origin == Origin::Default => mode,
            Some(_) | None => *value,
        }
    }

    /// Who is at the keyboard, for the journal.
    pub(crate) fn user(&self) -> String {
        crate::user::name(&self.machine.env)
    }

    /// The run of ours that was named: by its directory, its id or a prefix of it.
    pub(crate) fn named(&self, cx: &Context, wanted: &str) -> Result<PathBuf, Error> {
        match self.which(cx, &Wanted { run: Some(wanted), ..Wanted::default() })? {
            Which::Ours(dir) => Ok(dir),
            Which::Foreign(found) => Err(not_adopted(&found)),
        }
    }

    /// Where runs of other systems are looked for.
    pub(crate) fn search<'a>(&'a self, tasks: Option<&'a Path>) -> Search<'a> {
        Search { dialects: dialects(), env: &self.machine.env, tasks }
    }

    /// The run that is meant, of ours or of another system. Without a name: the one in this very
    /// directory, the one of ours that was active last, or the one that another system left below.
    ///
    /// Every command that takes a run comes through here. A directory that holds a run under
    /// another name is refused, and from now on commands that are printed work in the project of
    /// the run.
    pub(crate) fn which(&self, cx: &Context, wanted: &Wanted<'_>) -> Result<Which, Error> {
        let which = self.meant(cx, wanted)?;
        let project = match &which {
            Which::Ours(dir) => {
                if let Some(opened) = opened(dir) {
                    Misnamed::check(dir, &opened.run).map_err(EngineError::from)?;
                }
                Project::of_run(dir)
            }
            Which::Foreign(found) => Some(found.project.clone()),
        };
        if let Some(project) = project.filter(|it| it.root() != self.project.root()) {
            command::is_about(project.root());
        }
        Ok(which)
    }

    fn meant(&self, cx: &Context, wanted: &Wanted<'_>) -> Result<Which, Error> {
        if let Wanted { run: None, dialect: None, tasks: None, newest: true, command: _ } = wanted
            && let Some(meant) = open::here(cx, self, Reach::Meant)?.into_iter().next()
        {
            return Ok(meant.which());
        }
        self.looked_for(cx, wanted)
    }

    fn looked_for(&self, cx: &Context, wanted: &Wanted<'_>) -> Result<Which, Error> {
        let dir = match wanted.run.map(|run| cx.path(Path::new(run))) {
            None => here(cx, self)?,
            Some(path) => {
                std::path::absolute(&path).map_err(|source| Error::CannotRead { path, source })?
            }
        };
        if wanted.run.is_some() && dir.join(JOURNAL).is_file() {
            return Ok(Which::Ours(dir));
        }
        let cannot_read = |source| Error::CannotRead { path: dir.clone(), source };
        let tasks = wanted.tasks.map(|tasks| cx.path(tasks));
        let search = self.search(tasks.as_deref());
        wanted.names_a_dialect()?;
        // A task list lies in no project: a named one is continued in the user's directory.
        let list = match (wanted.run, &tasks) {
            (None, Some(tasks)) => Some(tasks),
            (Some(_), None) => Some(&dir),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some(list) = list.filter(|it| is_task_list(it)) {
            let found = search.of_list(&self.project, list);
            if let Some(found) = found.filter(|it| it.site.lacks.is_none()) {
                return self.only(vec![found], wanted);
            }
        }
        // Such runs are not in the project: all task lists are searched.
        let is_in_lists = wanted.run.is_none()
            && wanted.dialect.and_then(dialect).is_some_and(|it| it.card().home == Home::TaskLists);
        let here = if dir.is_dir() && !is_in_lists && wanted.tasks.is_none() {
            search.at(&dir, wanted.dialect).map_err(cannot_read)?
        } else {
            Vec::new()
        };
        // What is over, or was never begun, is meant only by the person who names its place.
        let has_open = here.iter().any(|it| !it.site.by_name_only);
        let is_meant = |it: &FoundSite| !it.site.by_name_only || wanted.run.is_some() && !has_open;
        let here: Vec<FoundSite> = here.into_iter().filter(is_meant).collect();
        let whole: Vec<&FoundSite> = here.iter().filter(|it| it.site.lacks.is_none()).collect();
        let is_settled = wanted.dialect.is_some() && wanted.tasks.is_none() && !is_in_lists;
        if !whole.is_empty() || is_settled {
            let is_open = wanted.run.is_none() && wanted.dialect.is_none();
            if here.len() > 1 && is_open {
                // What lies deeper, and in task lists, is in doubt with it.
                let all = search.below(&dir).map_err(cannot_read)?;
                return self.only(all.into_iter().filter(is_sure).collect(), wanted);
            }
            return self.only(here, wanted);
        }
        let ours = match (wanted.run, wanted.tasks) {
            (Some(run), _) => self.project.find(run),
            (None, None) if !is_in_lists => self.project.last_run(),
            (None, Some(_) | None) => Err(FindError::NoRuns),
        };
        let error = match ours {
            Ok(run) => return Ok(Which::Ours(run.dir)),
            Err(error) => error,
        };
        if let Some(name) = wanted.run.filter(|_| !dir.is_dir()) {
            let called = called(cx, &search, name, &dir).map_err(cannot_read)?;
            let unknown = || unknown(cx, (&self.project, &search), name, error);
            return if called.is_empty() { Err(unknown()) } else { self.only(called, wanted) };
        }
        let below = search.below(&dir).map_err(cannot_read)?;
        let is_inside = |it: &FoundSite| it.dir.starts_with(&dir);
        let is_named = wanted.run.is_some() && wanted.tasks.is_none();
        if is_named && is_tasks_root(&dir) && !below.iter().any(is_inside) {
            return self.meant(cx, &Wanted { run: None, tasks: Some(&dir), ..*wanted });
        }
        // A named directory stands for the runs in it. A task list lies outside of every project:
        // the project that it belongs to may continue it, and the one that the user is in.
        let cwd = cx.global.cwd.canonicalize().ok();
        let is_meant = |it: &FoundSite| {
            let root = it.project.root();
            let is_root = dir.canonicalize().is_ok_and(|it| it == root);
            let is_ours = is_root && (!it.site.unsure || root.canonicalize().ok() == cwd);
            let is_listed = it.card().home == Home::TaskLists && !it.dir.starts_with(&dir);
            wanted.run.is_none() || wanted.tasks.is_some() || !is_listed || is_ours
        };
        let is_of = |it: &FoundSite| {
            let is_there = wanted.tasks.is_none() || it.card().home == Home::TaskLists;
            is_there && is_meant(it) && wanted.dialect.is_none_or(|name| it.card().name == name)
        };
        let looked = Looked::of(&search, &below);
        let closed: Vec<String> =
            below.iter().filter(|it| is_closed(it)).map(found_in_commands).collect();
        let below: Vec<FoundSite> =
            below.into_iter().filter(|it| is_of(it) && it.is_candidate()).collect();
        match (below.is_empty(), here.is_empty()) {
            (false, _) => self.only(below, wanted),
            // One that lacks a file: reading it says which.
            (true, false) => self.only(here, wanted),
            (true, true) if is_in_lists || wanted.tasks.is_some() => {
                Err(Error::NoPermanentTask(looked))
            }
            (true, true) if is_task_list(&dir) => {
                Err(Error::NoPermanentTask(Looked { lists: vec![dir], ..Looked::default() }))
            }
            (true, true) if wanted.run.is_none() && !closed.is_empty() => {
                Err(Error::NoneOpen { names: closed })
            }
            (true, true) if wanted.run.is_none() => Err(self.beside_lists(error.into())),
            (true, true) => Err(error.into()),
        }
    }

    /// Nothing is here. Where Claude Code keeps tasks that may be meant, that is said with it.
    pub(crate) fn beside_lists(&self, error: Error) -> Error {
        let lists = self.search(None).task_lists();
        let lists = lists.iter().filter(|it| has_tasks(it)).count();
        if lists == 0 { error } else { Error::BesideLists { lists, error: Box::new(error) } }
    }

    /// The one that was found; several are listed, or the last active one is meant.
    fn only(&self, mut found: Vec<FoundSite>, wanted: &Wanted<'_>) -> Result<Which, Error> {
        let dialects: BTreeSet<&str> = found.iter().map(|it| it.card().name).collect();
        if dialects.len() == 1 {
            // Of several runs in one place, the last active one is meant.
            let dir = found.first().map(|it| it.dir.clone());
            if found.iter().all(|it| Some(&it.dir) == dir.as_ref()) {
                found.sort_by_key(|it| it.site.last_activity);
                found.drain(..found.len() - 1);
            }
        }
        if found.len() > 1 {
            // A run that is over is not meant where another one is not.
            let open = found.iter().filter(|it| !self.has_ended(it));
            let open: Vec<FoundSite> = open.cloned().collect();
            found = if open.is_empty() { found } else { open };
            found.sort_by_key(|it| Reverse(it.site.last_activity));
        }
        if wanted.newest && wanted.run.is_none() && wanted.tasks.is_none() {
            found.truncate(1);
        }
        if let [_, _, ..] = found.as_slice() {
            let line = |it: &FoundSite| format!("{} ({})", found_in_commands(it), it.card().name);
            let list: Vec<String> = found.iter().map(line).collect();
            let first = found.first().map(found_in_commands).unwrap_or_default();
            return Err(Error::SeveralRuns { list, first, command: wanted.command });
        }
        match found.pop() {
            Some(found) => self.adopted_or_foreign(found),
            None => Err(FindError::NoRuns.into()),
        }
    }

    /// The run that goes on with another system's run, or else that run itself.
    pub(crate) fn adopted_or_foreign(&self, found: FoundSite) -> Result<Which, Error> {
        let adopters = Adopters::of(&found.project)?;
        Ok(self.taken_up(found, |it| adopters.find(it)))
    }

    fn taken_up(
        &self,
        found: FoundSite,
        adopter: impl FnOnce(&FoundSite) -> Option<Adopter>,
    ) -> Which {
        match adopter(&found) {
            Some(it) if !it.is_complete || self.is_over(&found) => Which::Ours(it.run.dir),
            Some(_) | None => Which::Foreign(Box::new(found)),
        }
    }

    /// Complete, failed or cancelled, by its own files.
    fn has_ended(&self, found: &FoundSite) -> bool {
        let plan = self.glance(found);
        let is_over = |it: &Plan| it.run.status == Status::Completed || was_ended(it);
        plan.is_ok_and(|plan| is_over(&plan))
    }

    pub(crate) fn is_over(&self, found: &FoundSite) -> bool {
        let plan = self.glance(found);
        plan.is_ok_and(|plan| plan.run.status == Status::Completed)
    }

    /// Runs of other systems at and below this directory, and in task lists, that no run of ours
    /// goes on with.
    pub(crate) fn strangers(
        &self,
        below: &Path,
        tasks: Option<&Path>,
    ) -> Result<Vec<FoundSite>, Error> {
        let cannot_read = |source| Error::CannotRead { path: below.to_owned(), source };
        let mut strangers = Vec::new();
        let mut adopters: BTreeMap<PathBuf, Adopters> = BTreeMap::new();
        for found in self.search(tasks).below(below).map_err(cannot_read)? {
            let known = match adopters.entry(found.project.root().to_owned()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Adopters::of(&found.project)?),
            };
            if let Which::Foreign(found) = self.taken_up(found, |it| known.find(it)) {
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
            None => match self.project.last_run() {
                Ok(run) => Ok(run.dir),
                Err(error) => left_here(cx, self, error),
            },
        }
    }

    /// The last active one that is neither complete nor superseded.
    pub(crate) fn first_unfinished(&self) -> Result<Option<Found>, Error> {
        for run in self.originals()? {
            let found = Found::look(run)?;
            if self.is_to_do(&found) {
                self.keep_folded(&found);
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// All runs but copies of others.
    fn originals(&self) -> Result<impl Iterator<Item = RunDir>, Error> {
        Ok(self.project.runs()?.into_iter().filter(|run| !Misnamed::is_copy(&run.dir)))
    }

    fn is_to_do(&self, found: &Found) -> bool {
        found.is_unfinished() && !self.is_superseded(&found.dir, &found.state)
    }

    /// Runs that are neither complete nor superseded, the last active one first.
    pub(crate) fn unfinished(&self) -> Result<Vec<Found>, Error> {
        let looked = self.originals()?.map(Found::look);
        let mut found = looked.collect::<Result<Vec<Found>, Error>>()?;
        found.retain(|it| self.is_to_do(it));
        found.first().inspect(|it| self.keep_folded(it));
        Ok(found)
    }

    fn keep_folded(&self, found: &Found) {
        let folded = found.folded.clone().map(|it| (found.dir.dir.clone(), it));
        self.folded.replace(folded);
    }

    /// Another run of the other system lies in the place of the one that this run goes on with.
    pub(crate) fn is_superseded(&self, run: &RunDir, state: &State) -> bool {
        state.adopted.is_some() && is_superseded(&self.project, &run.dir, &self.machine)
    }

    /// What the journal of a run folds to, where this command has read it to find the run.
    pub(crate) fn folded_of(&self, dir: &Path) -> Option<Arc<Folded>> {
        self.folded.take().filter(|it| it.0 == dir).map(|it| it.1)
    }
}

/// How a run is named in a command that works from anywhere: ours by its id, another system's by
/// its directory, with its name behind it where that is another one.
pub(crate) fn named_in_commands(run: &RunInfo) -> String {
    if run.dialect == "onward" { word(&run.id) } else { placed_name(&run.dir, &run.id) }
}

/// Only a run of ours can be meant, and no such run goes on with this one yet.
pub(crate) fn not_adopted(found: &FoundSite) -> Error {
    Error::NotAdopted { name: found_in_commands(found) }
}

/// The same of a run that was only found.
pub(crate) fn found_in_commands(found: &FoundSite) -> String {
    word(&found.path().display().to_string())
}

fn placed_name(dir: &str, name: &str) -> String {
    let is_named_so = Path::new(dir).file_name().is_some_and(|it| it == name);
    if is_named_so { word(dir) } else { word(&format!("{}/{name}", dir.trim_end_matches('/'))) }
}

fn now_from(env: &[(OsString, OsString)]) -> Option<Timestamp> {
    let value = env.iter().find(|(name, _)| name == "ONWARD_NOW")?.1.to_str()?;
    value.parse().ok()
}

/// A run, by who wrote it.
pub(crate) enum Which {
    Ours(PathBuf),
    Foreign(Box<FoundSite>),
}

/// Folds a run that this command does not change.
pub(crate) fn open_run(dir: &Path) -> Result<Run, Error> {
    with_workflow(dir, state_of(dir)?)
}

/// The same, and one that tells what comes after.
#[cfg(feature = "watch")]
pub(crate) fn open_and_follow(dir: &Path) -> Result<(Run, Follower), Error> {
    let loaded = looked(dir)?.loaded;
    let (state, tail) = (loaded.state, loaded.tail);
    // A last record that may still be written is read again.
    let mark = if tail.missing_newline { Mark::default() } else { tail.mark };
    Ok((with_workflow(dir, state)?, Follower::resume_at(dir, mark)))
}

pub(crate) fn state_of(dir: &Path) -> Result<State, Error> {
    Ok(looked(dir)?.loaded.state)
}

pub(crate) fn looked(dir: &Path) -> Result<Journaled, Error> {
    let env: Vec<_> = std::env::vars_os().collect();
    let looked = load_looking(dir, &env, None)
        .map_err(|source| Error::CannotRead { path: dir.join(JOURNAL), source })?;
    Ok(looked.map_err(EngineError::from)?)
}

pub(crate) fn with_workflow(dir: &Path, state: State) -> Result<Run, Error> {
    let env: Vec<_> = std::env::vars_os().collect();
    let pinned = Pinned::look(dir, &env).map_err(EngineError::from)?;
    Ok(Run::new(pinned.defs, state))
}

pub(crate) fn is_driven(dir: &Path) -> bool {
    holder(dir).is_some()
}

/// The run that this directory is of.
pub(crate) fn id_of(dir: &Path) -> String {
    dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) use crate::command::word;

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
