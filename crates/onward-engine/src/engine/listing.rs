//! How many runs stand, for a list.
//!
//! Invariant: each view is the one that [`view_run`] gives, each plan the one that [`plan_site`]
//! gives. A run of our own that is over, or that a driver holds, is not examined: its journal and
//! its workflow say it all. Runs of one workflow share it, those of other systems too.
//!
//! [`plan_site`]: super::plan_site

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io::ErrorKind,
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use onward_core::{
    digest::Digest,
    finding::Finding,
    graph::Defs,
    journal::Rest,
    plan::{Plan, Status, run_info},
    policy::{Choices, Depth},
    run::Run,
    survey::Survey,
    view::{View, view},
    workflow::Loaded,
};
use onward_dialects::seam::Home;

use super::{
    EngineError, Machine,
    look::{SiteLook, builtin_of, imagined, lacking_of},
    look_place, view_run,
};
use crate::{
    load::{checkpoint::load_looking, journal::JOURNAL},
    locate::{FoundSite, Misnamed, Pinned, holder},
    world::{
        World as _,
        git::Around,
        real::{
            RealWorld,
            disk::io_stop,
            site::{Followed, read_beside},
            wall_clock,
        },
    },
};

/// Fewer runs than this are not worth another thread.
const RUNS_PER_THREAD: usize = 32;
/// More threads than this wait for the same disk.
const THREADS_MAX: usize = 8;

/// The views of these runs, in their order.
pub fn view_runs(dirs: &[PathBuf], machine: &Machine) -> Vec<Result<View, EngineError>> {
    let views = |dirs: &[PathBuf]| {
        let mut shelf = Shelf::default();
        dirs.iter().map(|dir| shelf.view(dir, machine)).collect::<Vec<_>>()
    };
    on_threads(dirs, &views)
}

/// How these runs of other systems stand by their files alone, in their order.
pub fn glance_sites(found: &[FoundSite], machine: &Machine) -> Vec<Result<Plan, EngineError>> {
    let looking = &machine.looking();
    let around = &Grounds::look(found, looking);
    let glances = |part: &[FoundSite]| {
        let mut desk = Desk::default();
        part.iter().map(|it| desk.glance(it, (machine, looking), around)).collect::<Vec<_>>()
    };
    on_threads(found, &glances)
}

/// Each part on a thread of its own, where there are enough of them.
fn on_threads<T: Sync, R: Send>(all: &[T], each: &(impl Fn(&[T]) -> Vec<R> + Sync)) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = all.len().div_ceil(RUNS_PER_THREAD).clamp(1, cores.min(THREADS_MAX));
    let part = all.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let hands: Vec<_> = all.chunks(part).map(|part| scope.spawn(move || each(part))).collect();
        let seen = hands.into_iter().map(|it| it.join().unwrap_or_else(panic_on));
        seen.flatten().collect()
    })
}

/// What git says around the projects of task lists: the same for all lists of one.
struct Grounds(BTreeMap<PathBuf, Around>);

impl Grounds {
    fn look(found: &[FoundSite], machine: &Machine) -> Self {
        let mut commits: BTreeMap<&Path, BTreeSet<String>> = BTreeMap::new();
        for it in found.iter().filter(|it| it.card().home == Home::TaskLists) {
            let named = commits.entry(it.project.root()).or_default();
            named.extend(it.site.commits.iter().cloned());
        }
        let look = |(root, commits): (&Path, BTreeSet<String>)| {
            (root.to_owned(), Around::look(root, &machine.env, &commits))
        };
        Self(commits.into_iter().map(look).collect())
    }
}

/// What runs of one workflow share.
struct Bound {
    defs: Arc<Defs>,
    loaded: Loaded,
    lacking: Option<Finding>,
}

/// Worlds to look from, by project, and workflows beside them.
#[derive(Default)]
struct Desk {
    worlds: BTreeMap<PathBuf, RealWorld>,
    bound: BTreeMap<(PathBuf, &'static str), Bound>,
}

impl Desk {
    fn glance(
        &mut self,
        found: &FoundSite,
        (machine, looking): (&Machine, &Machine),
        around: &Grounds,
    ) -> Result<Plan, EngineError> {
        let root = found.project.root();
        if let Some(around) = around.0.get(root)
            && found.card().home == Home::TaskLists
        {
            let git = || around.of(&found.site.commits);
            let env = &looking.env;
            let mut followed = Followed::default();
            let card = found.card();
            found
                .seen
                .fill(|| read_beside(root, &found.site, card, (env, git()), &mut followed))?;
        }
        let name = found.site.workflow;
        let bound = match self.bound.entry((root.to_owned(), name)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let loaded = builtin_of(found, machine)?;
                let defs = Arc::new(Defs::new(loaded.workflow.clone()));
                let lacking = lacking_of(&loaded, found, looking);
                new.insert(Bound { defs, loaded, lacking })
            }
        };
        let world = self.worlds.entry(root.to_owned());
        let world = world.or_insert_with(|| look_place(&found.project, looking));
        let look = SiteLook {
            run: imagined(found, &bound.loaded, bound.defs.clone(), world.now_for_ages())?,
            lacking: bound.lacking.clone(),
            choices: &Choices::default(),
            depth: Depth::Glance,
        };
        look.plan(found, world)
    }
}

fn panic_on<R>(payload: Box<dyn std::any::Any + Send>) -> Vec<R> {
    std::panic::resume_unwind(payload)
}

/// Workflows that were read, by their hash.
#[derive(Default)]
struct Shelf {
    workflows: BTreeMap<Digest, Arc<Defs>>,
}

impl Shelf {
    fn view(&mut self, run_dir: &Path, machine: &Machine) -> Result<View, EngineError> {
        let looked = load_looking(run_dir, &machine.env, None).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                EngineError::NotARun(run_dir.to_owned())
            } else {
                io_stop("read", &run_dir.join(JOURNAL))(error).into()
            }
        })?;
        let looked = looked?;
        let state = &looked.loaded.state;
        if let Some(opened) = &state.opened {
            Misnamed::check(run_dir, &opened.run)?;
        }
        let is_whole = match looked.loaded.tail.rest {
            Rest::Clean | Rest::Torn(_) => true,
            Rest::Damaged(_) => false,
        };
        // One that has ended is told by its end, also while a driver still holds it.
        let is_driven = !state.is_ended() && holder(run_dir).is_some();
        let status = Status::of(state, is_driven);
        let is_told =
            matches!(status, Status::Completed | Status::Cancelled | Status::Running) && is_whole;
        let is_quiet = is_told && state.adopted.is_none();
        let Some(hash) = state.workflow_hash.filter(|_| is_quiet) else {
            let folded = looked.folded().map(Arc::new);
            drop(looked);
            return view_run(run_dir, machine, folded).map(|(view, _)| view);
        };
        let defs = if let Some(known) = self.workflows.get(&hash) {
            known.clone()
        } else {
            let defs = Pinned::look(run_dir, &machine.env)?.defs;
            self.workflows.insert(hash, defs.clone());
            defs
        };
        let now = machine.now.unwrap_or_else(wall_clock);
        let survey = Survey { now, ..Survey::default() };
        let run = Run::new(defs, looked.loaded.state);
        let dir = run_dir.display().to_string();
        Ok(view(&run, run_info(&run.state, &survey, status, &dir)))
    }
}
