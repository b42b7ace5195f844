//! `onward archive` and `onward gc`: runs that are over move out of the way; gc alone deletes.

use std::{path::PathBuf, process::ExitCode};

use onward_core::plan::Status;
use onward_engine::care::{
    CareError,
    archive::{Archive, ArchivedWorktree, Collectable, archive_run, collectable, delete},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::Context,
    confirm::{Answer, confirm},
    error::Error,
    session::{Driving, Found, Session},
};

/// Move a run that is over, or given up, to the archive
///
/// Nothing is deleted: the run's directory goes to `.onward/archive`. A run that is driven, or of
/// which a process lives, stays. Its worktrees go if all that is in them is committed; their
/// branches stay.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ArchiveArgs {
    /// Which run; without it the last active one that is completed or cancelled
    run: Option<String>,
}

pub(crate) fn run(cx: &mut Context, args: &ArchiveArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = match &args.run {
        Some(wanted) => session.named(cx, wanted)?,
        None => last_that_is_over(&session)?,
    };
    let archived = archive_run(&dir, &session.machine)?;
    if cx.global.json {
        return cx.print_json(&archived);
    }
    writeln!(cx.err, "run {} is in the archive: {}", archived.run.id, archived.to)?;
    for step in &archived.lost {
        writeln!(cx.err, "  {step} had died half-way; what it left in the tree stays there")?;
    }
    for worktree in &archived.worktrees {
        let ArchivedWorktree { path, branch, removed } = worktree;
        if *removed {
            writeln!(cx.err, "  {path} is removed; what was committed there stays on {branch}")?;
        } else {
            writeln!(cx.err, "  {path} holds what {branch} does not have, so it stays")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn last_that_is_over(session: &Session) -> Result<PathBuf, Error> {
    for run in session.project.runs()? {
        // One that cannot be read is not known to be over.
        let Ok(found) = Found::look(run) else { continue };
        if matches!(found.status, Status::Completed | Status::Cancelled) {
            return Ok(found.dir.dir);
        }
    }
    Err(Error::Usage {
        message: "no run here is completed or cancelled".into(),
        hint: "name the one to archive: see `onward list`".into(),
    })
}

/// Delete old archives, after listing them
///
/// The only command that deletes anything, and only what `archive` has moved before.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct GcArgs {
    /// How many archives stay, the last moved ones; 5 unless the configuration says otherwise
    #[arg(long, value_name = "N")]
    keep: Option<u32>,
    /// Delete what is listed without asking
    #[arg(short, long)]
    yes: bool,
}

/// `onward gc --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Collected {
    schema: String,
    kept: Vec<String>,
    deleted: Vec<String>,
}

pub(crate) fn gc(cx: &mut Context, args: &GcArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let keep = args.keep.unwrap_or(session.config.keep.value);
    let Collectable { kept, doomed } = collectable(&session.project, keep)?;
    if !cx.global.json {
        for archive in &doomed {
            writeln!(cx.err, "delete {}", archive.dir.display())?;
        }
    }
    let question = format!("Delete {} archives for good?", doomed.len());
    let answer = match doomed.as_slice() {
        [] => Answer::Yes,
        [..] => confirm(cx, args.yes, &question),
    };
    match answer {
        Answer::Yes => delete(&session.project, &doomed, &session.machine.env)?,
        Answer::No => return Ok(ExitCode::SUCCESS),
        Answer::Nobody => {
            let list: Vec<&str> = doomed.iter().map(|it| it.name.as_str()).collect();
            return Err(Error::Care(CareError::NeedsYes {
                what: format!("these archives would be deleted: {}", list.join(", ")),
                hint: "say `onward gc --yes`".to_owned(),
            }));
        }
    }
    if cx.global.json {
        let names = |all: &[Archive]| all.iter().map(|it| it.name.clone()).collect();
        let schema = "onward.gc/1".to_owned();
        return cx.print_json(&Collected { schema, kept: names(&kept), deleted: names(&doomed) });
    }
    writeln!(cx.err, "{} archives deleted, {} kept", doomed.len(), kept.len())?;
    Ok(ExitCode::SUCCESS)
}
