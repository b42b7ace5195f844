//! How many runs stand, for a list.
//!
//! Invariant: each view is the one that [`view_run`] gives. A run of our own that is over, or that
//! a driver holds, is not examined: its journal and its workflow say it all, and runs of one
//! workflow share it.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use onward_core::{
    digest::Digest,
    graph::Defs,
    journal::Rest,
    plan::{Status, run_info},
    run::Run,
    survey::Survey,
    view::{View, view},
};

use super::{EngineError, Machine, view_run};
use crate::{
    load::{checkpoint::load_looking, journal::JOURNAL},
    locate::{Misnamed, Pinned, holder},
    world::real::{disk::io_stop, wall_clock},
};

/// Fewer runs than this are not worth another thread.
const RUNS_PER_THREAD: usize = 32;
/// More threads than this wait for the same disk.
const THREADS_MAX: usize = 8;

/// The views of these runs, in their order.
pub fn view_runs(dirs: &[PathBuf], machine: &Machine) -> Vec<Result<View, EngineError>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = dirs.len().div_ceil(RUNS_PER_THREAD).clamp(1, cores.min(THREADS_MAX));
    let part = dirs.len().div_ceil(threads).max(1);
    let views = |dirs: &[PathBuf]| {
        let mut shelf = Shelf::default();
        dirs.iter().map(|dir| shelf.view(dir, machine)).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let hands = dirs.chunks(part).map(|dirs| scope.spawn(move || views(dirs)));
        let hands: Vec<_> = hands.collect();
        let seen = hands.into_iter().map(|it| it.join().unwrap_or_else(panic_on));
        seen.flatten().collect()
    })
}

fn panic_on(payload: Box<dyn std::any::Any + Send>) -> Vec<Result<View, EngineError>> {
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
