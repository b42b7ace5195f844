//! Giving up another system's run: its state is moved into an archive, and what it left half-way is
//! reset, so that a new run can begin there.
//!
//! Invariant: nothing is deleted. A run of ours that ends as cancelled says first what is done, and
//! the copy in the archive is durable before the file leaves its place.

use std::path::PathBuf;

use onward_core::{
    event::{Event, Mode, SourceFile},
    state::Adopted,
    time::Timestamp,
    told::CleanUp,
};

use super::{CareError, Opened};
use crate::{
    engine::{EngineError, Machine, RunPlace, cancel, look_place, this_boot},
    foreign::{Foreign, exported, write},
    locate::{FoundSite, LoadWorkflowError, NewRun, RunLock, create_run, load_builtin},
    world::{
        At, World as _, files,
        real::{RealWorld, Redactor, wall_clock},
    },
};

/// What would be put away and set back at this moment; `None` where the system keeps no state of
/// its runs.
pub fn look(
    found: &FoundSite,
    machine: &Machine,
    now: Timestamp,
) -> Result<Option<CleanUp>, CareError> {
    let mut world = look_place(&found.project, &machine.looking());
    let files = found.seen.files(&mut world, &found.site, found.card())?;
    let reading = foreign_of(found).parse(files)?;
    Ok(reading.told.and_then(|told| told.clean_up(now)))
}

/// Does it, and gives what was done beside the run that tells of it. The moment is the one that
/// [`look`] was asked for: archives are named after it.
pub fn clean_up(
    found: &FoundSite,
    machine: &Machine,
    mode: Mode,
    now: Timestamp,
) -> Result<(PathBuf, CleanUp), CareError> {
    let foreign = foreign_of(found);
    let mut world = look_place(&found.project, machine);
    let held = world.hold(&found.site, found.card())?;
    let reading = foreign.read(&mut world)?;
    let clean = reading.told.and_then(|told| told.clean_up(now));
    let clean = clean.ok_or_else(|| CareError::Refused {
        what: format!("nothing of {} is left to be put away", found.site.name),
        hint: "see `onward plan`".to_owned(),
    })?;
    let of = |it: onward_core::event::Exported| SourceFile { path: it.path, hash: it.hash };
    let sources = exported(&foreign, &reading.files).into_iter().map(of).collect();
    let run_dir = announced(found, machine, mode, sources, &clean)?;
    for reset in &clean.resets {
        write(&mut world, &foreign, std::slice::from_ref(&reset.change))?;
    }
    for (from, to) in &clean.moves {
        let (from, to) = (foreign.path(from), foreign.path(to));
        let Some((bytes, kind)) = world.content(&from)? else { continue };
        files::put_durably(&mut world, At::Project(&to), &bytes, kind)?;
        world.remove(At::Project(&from))?;
        world.sync_dir(At::Project(&from))?;
    }
    drop(held);
    cancel(&run_dir, machine)?;
    Ok((run_dir, clean))
}

fn foreign_of(found: &FoundSite) -> Foreign {
    Foreign { dialect: found.dialect, site: found.site.clone(), begins: false }
}

/// A run of ours that has adopted the other one, and says what becomes of it.
fn announced(
    found: &FoundSite,
    machine: &Machine,
    mode: Mode,
    sources: Vec<SourceFile>,
    clean: &CleanUp,
) -> Result<PathBuf, CareError> {
    let name = found.site.workflow;
    let workflow = load_builtin(Some(&found.project), name, &machine.cast)
        .ok_or_else(|| EngineError::NoWorkflow { name: name.to_owned() })?
        .map_err(|problems| EngineError::from(LoadWorkflowError::Invalid(problems)))?;
    let new = NewRun {
        workflow: &workflow,
        file: None,
        inputs: found.site.inputs.clone(),
        mode,
        now: wall_clock(),
        boot_id: this_boot()?,
        adopted: Some(Adopted {
            dialect: found.card().name.to_owned(),
            source: found.site.dir().to_owned(),
            files: sources,
        }),
    };
    let redactor = Redactor::of_environment(&machine.env);
    let (run, dir) = create_run(&found.project, &new, &redactor).map_err(EngineError::from)?;
    let at = RunPlace::of(&dir, machine)?;
    let _lock = RunLock::take(&dir, &run, new.now).map_err(EngineError::from)?;
    let moves = clean.moves.iter().map(|(from, to)| format!("{from} is kept as {to}"));
    let resets = clean.resets.iter().map(|it| it.what.clone());
    let note = |text: String| Event::Note { text, step: None };
    let events = moves.chain(resets).map(|it| note(format!("given up: {it}"))).collect();
    Opened::read(&at, RealWorld::new(at.setup(machine), None))?.append(events)?;
    Ok(dir)
}
