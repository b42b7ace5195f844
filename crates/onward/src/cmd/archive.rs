//! `onward archive` and `onward gc`: runs that are over move out of the way; gc alone deletes.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use onward_core::{plan::Status, plural::count, time::Timestamp, told::CleanUp};
use onward_engine::{
    care::{
        CareError, RunRef,
        archive::{
            Archive, Archived, ArchivedWorktree, Collectable, archive_run, collectable, delete,
            gives_up,
        },
        clean,
    },
    engine::adopt::{retire, retires},
    locate::FoundSite,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::Context,
    confirm::{Answer, confirm},
    diagnostic::printable,
    error::Error,
    meant::Wanted,
    open::Found,
    outlook,
    session::{Driving, Session, Which, found_in_commands, id_of, word},
    style::{self, columns_of_errors},
};

/// Move a run that is over, or given up, to the archive
///
/// Nothing is deleted: the run's directory goes to `.onward/archive`. A run that is driven, or has
/// a process that lives, stays. You are asked about one that is not over. Its worktrees go if all
/// that is in them is committed; their branches stay. A run of another system that has an archive
/// of its own (dotagent, SDLC) is given up there: its state moves into that archive, and stories
/// that it left half-way are ready again. Files of the other systems stay where they are.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward archive\n  onward archive release-20261115-k3fq")]
pub(crate) struct ArchiveArgs {
    /// Which run; without it the last active one that is completed or cancelled
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Give up a run that is not over, or one of another system, without asking
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn run(cx: &mut Context, args: &ArchiveArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let dir = match &args.run {
        Some(wanted) => {
            match session
                .which(cx, &Wanted { run: Some(wanted), command: "archive", ..Wanted::default() })?
            {
                Which::Ours(dir) => dir,
                Which::Foreign(found) => return give_up(cx, &found, args.yes, session.now),
            }
        }
        None => last_that_is_over(&session)?,
    };
    if gives_up(&dir, &session.machine)? {
        let id = id_of(&dir);
        let question = format!("Run {id} is not over. Give it up? Its files stay.");
        match confirm(cx, args.yes, &question) {
            Answer::Yes => {}
            Answer::No => {
                writeln!(cx.err, "nothing was done")?;
                return Ok(ExitCode::SUCCESS);
            }
            Answer::NotAsked => {
                return Err(Error::Care(CareError::NeedsYes {
                    what: format!("run {id} is not over; this would give it up"),
                    hint: format!("say `onward archive {} --yes`", word(&id)),
                }));
            }
        }
    }
    let archived = archive_run(&dir, &session.machine)?;
    if cx.global.json {
        return cx.print_json(&archived);
    }
    let to = Path::new(&archived.to);
    let to = to.strip_prefix(session.project.root()).unwrap_or(to);
    let text = format!("run {} moved to the archive:", archived.run.id);
    let to = word(&to.display().to_string());
    writeln!(cx.err, "{}", style::wrap_with(&text, &to, columns_of_errors(), 0, 2))?;
    for step in &archived.lost {
        let said = format!("  {step} was killed half-way; what it left in the tree stays there");
        writeln!(cx.err, "{}", style::wrap(&said, style::columns_of_errors(), 0, 4))?;
    }
    for worktree in &archived.worktrees {
        let ArchivedWorktree { path, branch, removed } = worktree;
        let said = if *removed {
            format!("  {path} was removed; its commits stay on {branch}")
        } else {
            format!("  {path} has changes that {branch} does not, so it stays")
        };
        writeln!(cx.err, "{}", style::wrap(&said, style::columns_of_errors(), 0, 4))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The same for a system that keeps its earlier runs in an archive of its own.
fn put_away(cx: &mut Context, session: &Session, found: &FoundSite) -> Result<ExitCode, Error> {
    let name = found.card().name;
    if !retire(found, &session.machine)? {
        return Err(no_archive(found));
    }
    let (run, to) = (RunRef::of(&found.dir), found.dir.display().to_string());
    if cx.global.json {
        let schema = "onward.archive/1".to_owned();
        let (lost, worktrees) = (Vec::new(), Vec::new());
        return cx.print_json(&Archived { schema, run, to, lost, worktrees });
    }
    let kept = printable(&found.site.name);
    writeln!(cx.err, "{kept} is kept in the archive of {name}; a new run can begin")?;
    writeln!(cx.err, "{}", outlook::start_over(found))?;
    Ok(ExitCode::SUCCESS)
}

/// Puts the state of another system's run away, after showing what that means; under the moment at
/// which the user was shown it, since the archive is named after it.
pub(crate) fn give_up(
    cx: &mut Context,
    found: &FoundSite,
    yes: bool,
    now: Timestamp,
) -> Result<ExitCode, Error> {
    let session = Session::at(cx, found.project.root(), &Driving::default())?;
    let name = &found.site.name;
    let refused = |what, hint: &str| CareError::Refused { what, hint: hint.to_owned() };
    let status = session.glance(found)?.run.status;
    if status == Status::Running {
        let what = format!("{name} is being worked on");
        return Err(Error::Care(refused(what, "stop it there first")));
    }
    let clean = clean::look(found, &session.machine, now)?;
    if clean.is_none() && !retires(found, &session.machine)? {
        return Err(no_archive(found));
    }
    if clean.is_none() && status == Status::Fresh {
        let what = format!("{name} has not begun: there is nothing to put away");
        return Err(Error::Care(refused(what, "see `onward plan`")));
    }
    let told = clean.as_ref().map(lines).unwrap_or_default();
    if !cx.global.json {
        for line in &told {
            writeln!(cx.err, "{}", printable(line))?;
        }
    }
    match confirm(cx, yes, &format!("Give {name} up? Nothing is deleted.")) {
        Answer::Yes => {}
        Answer::No => return Ok(ExitCode::SUCCESS),
        Answer::NotAsked => {
            return Err(Error::Care(CareError::NeedsYes {
                what: match told.join("; ") {
                    none if none.is_empty() => format!("this would give {name} up"),
                    told => format!("this would give {name} up: {told}"),
                },
                hint: format!("say `onward archive {} --yes`", found_in_commands(found)),
            }));
        }
    }
    if clean.is_none() {
        return put_away(cx, &session, found);
    }
    let mode = session.mode_at(found);
    let (dir, clean) = clean::clean_up(found, &session.machine, mode, now)?;
    let archived = archive_run(&dir, &session.machine)?;
    if cx.global.json {
        return cx.print_json(&archived);
    }
    let (run, to) = (&archived.run.id, &archived.to);
    writeln!(cx.err, "{name} was given up; run {run} tells of it: {to}")?;
    if !clean.moves.is_empty() {
        writeln!(cx.err, "{}", outlook::start_over(found))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The system that wrote it has no archive, and no run of ours continues it.
fn no_archive(found: &FoundSite) -> Error {
    let (name, system) = (found_in_commands(found), found.card().name);
    Error::Care(CareError::Refused {
        what: format!("{name} stays: {system} has no archive, and no run continues it yet"),
        hint: format!("its files are yours to move; or continue it: `onward resume {name}`"),
    })
}

/// What giving a run up does, line by line.
pub(crate) fn lines(clean: &CleanUp) -> Vec<String> {
    let moves = clean.moves.iter().map(|(from, to)| format!("{from} is kept as {to}"));
    moves.chain(clean.resets.iter().map(|it| it.what.clone())).collect()
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
#[command(after_help = "Examples:\n  onward gc\n  onward gc --keep 10")]
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
            let dir = archive.dir.strip_prefix(session.project.root()).unwrap_or(&archive.dir);
            let dir = word(&dir.display().to_string());
            writeln!(cx.err, "{}", style::wrap_with("delete", &dir, columns_of_errors(), 0, 2))?;
        }
    }
    let question = format!("Delete {} for good?", count(doomed.len(), "archive"));
    let answer = match doomed.as_slice() {
        [] => Answer::Yes,
        [..] => confirm(cx, args.yes, &question),
    };
    match answer {
        Answer::Yes => delete(&session.project, &doomed, &session.machine.env)?,
        Answer::No => {
            writeln!(cx.err, "nothing was done")?;
            return Ok(ExitCode::SUCCESS);
        }
        Answer::NotAsked => {
            let list: Vec<&str> = doomed.iter().map(|it| it.name.as_str()).collect();
            return Err(Error::Care(CareError::NeedsYes {
                what: format!("this would remove the archives {}", list.join(", ")),
                hint: match args.keep {
                    Some(keep) => format!("say `onward gc --keep {keep} --yes`"),
                    None => "say `onward gc --yes`".to_owned(),
                },
            }));
        }
    }
    if cx.global.json {
        let names = |all: &[Archive]| all.iter().map(|it| it.name.clone()).collect();
        let schema = "onward.gc/1".to_owned();
        return cx.print_json(&Collected { schema, kept: names(&kept), deleted: names(&doomed) });
    }
    let deleted = count(doomed.len(), "archive");
    let kept = kept.len();
    let line = match doomed.len() {
        0 if kept == 0 => "nothing to delete: there is no archive".to_owned(),
        0 => format!(
            "nothing to delete: {} here, and the last {keep} stay; \
             `onward gc --keep N` keeps another number",
            count(kept, "archive")
        ),
        _ => format!("{deleted} deleted, {kept} kept"),
    };
    writeln!(cx.err, "{}", style::wrap(&line, columns_of_errors(), 0, 2))?;
    Ok(ExitCode::SUCCESS)
}
