//! `onward rescue list` and `onward undo`: what was undone, and how to have it back.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    process::ExitCode,
};

use onward_core::name;
use onward_engine::care::{
    CareError,
    rescues::{BringBack, Flaw, Now, Rescue, RescuedPath, Rescues, list as all, no_such},
};
use onward_engine::world::{open, real::wall_clock};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::{Context, run_and_rest},
    command::{onward, option},
    confirm::{Answer, confirm},
    diagnostic::printable,
    diff,
    error::{self, Error},
    session::{Driving, Session, id_of},
    style::{self, BAD, DIM, STRONG},
};

/// Look at work that was undone and saved
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward rescue\n  onward rescue diff 1")]
pub(crate) struct RescueArgs {
    #[command(subcommand)]
    what: Option<RescueCommand>,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum RescueCommand {
    /// List the rescues of a run, and what their paths are now (the default)
    #[command(after_help = "Examples:\n  onward rescue list\n  onward rescue list \
        release-20261115-k3fq")]
    List {
        /// Which run; without it the last active one
        #[arg(add = crate::complete::run())]
        run: Option<String>,
    },
    /// Show what one rescue has, file by file
    #[command(override_usage = "onward rescue show [OPTIONS] [RUN] N")]
    #[command(after_help = "Example:\n  onward rescue show 1")]
    Show {
        /// `[RUN] N`: the number that `onward rescue list` shows
        #[arg(required = true, num_args = 1..=2, value_name = "N")]
        #[arg(add = crate::complete::run_or_rescue())]
        words: Vec<String>,
    },
    /// Show how the files differ now from what one rescue has
    #[command(override_usage = "onward rescue diff [OPTIONS] [RUN] N")]
    #[command(after_help = "Example:\n  onward rescue diff 1")]
    Diff {
        /// `[RUN] N`: the number that `onward rescue list` shows
        #[arg(required = true, num_args = 1..=2, value_name = "N")]
        #[arg(add = crate::complete::run_or_rescue())]
        words: Vec<String>,
    },
}

pub(crate) fn run(cx: &mut Context, args: &RescueArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let run = match &args.what {
        None => None,
        Some(RescueCommand::List { run }) => run.as_deref(),
        Some(RescueCommand::Show { words }) => return one(cx, &session, words, Part::Saved),
        Some(RescueCommand::Diff { words }) => return one(cx, &session, words, Part::Difference),
    };
    let dir = session.named_or_last(cx, run)?;
    let rescues = all(&dir, &session.machine)?;
    let code = ExitCode::from(exit_code(&rescues));
    if cx.global.json {
        cx.print_json(&rescues)?;
        return Ok(code);
    }
    let id = &rescues.run.id;
    if rescues.rescues.is_empty() && rescues.unusable.is_empty() {
        writeln!(cx.err, "run {id} has no rescue: nothing was undone")?;
    }
    for rescue in &rescues.rescues {
        show(cx, rescue)?;
    }
    for it in &rescues.unusable {
        let (number, why) = (it.number, printable(&it.why));
        let why = style::wrap(&why, style::columns(), 5, 5);
        writeln!(cx.out, "{STRONG}{number:>3}{STRONG:#}  {BAD}{why}{BAD:#}")?;
        writeln!(cx.out, "     {DIM}{}{DIM:#}", printable(&it.dir))?;
    }
    if let Some(last) = rescues.rescues.iter().rfind(|it| can_come_back(it)) {
        writeln!(cx.err, "{}", onward!("undo {id} {}", last.number))?;
    }
    Ok(code)
}

/// One that cannot be read hides no other: the question was answered. One that was edited to reach
/// out of the project is for a person to look at.
fn exit_code(rescues: &Rescues) -> u8 {
    let leads_outside = rescues.unusable.iter().any(|it| it.flaw == Flaw::LeadsOutside);
    if leads_outside { error::CONFLICTS } else { error::OK }
}

/// `onward rescue show --json` and `rescue diff --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    schema: String,
    number: u32,
    step: String,
    attempt: u32,
    at: String,
    dir: String,
    /// The rescue whose `undo` replaced what this one has; without it, an attempt's work.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced_by: Option<u32>,
    paths: Vec<RescuedPath>,
    /// What each path was when it was undone; `null` = the attempt had deleted it.
    contents: BTreeMap<String, Option<String>>,
}

/// What of a rescue is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Saved,
    Difference,
}

fn one(
    cx: &mut Context,
    session: &Session,
    words: &[String],
    part: Part,
) -> Result<ExitCode, Error> {
    let (run, number) = run_and_rest(words);
    let number = number_of(number)?;
    let dir = session.named_or_last(cx, run)?;
    let rescues = all(&dir, &session.machine)?;
    if let Some(it) = rescues.unusable.iter().find(|it| it.number == number) {
        return Err(it.refused().into());
    }
    let Some(rescue) = rescues.rescues.iter().find(|it| it.number == number) else {
        let known: Vec<u32> = rescues.rescues.iter().map(|it| it.number).collect();
        let (message, hint) = no_such(&rescues.run.id, number, &known);
        return Err(Error::Usage { message, hint });
    };
    let saved = dir.join(PathBuf::from(&rescue.dir));
    if cx.global.json {
        let content = |path: &str| {
            let file = open::project(&saved.join("files"), path);
            let bytes = file.and_then(|it| open::all_of(it, open::FILE_BYTES_MAX)).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let contents = rescue.paths.iter().map(|it| (it.path.clone(), content(&it.path)));
        let contents = contents.collect();
        let Rescue { number, step, attempt, at, dir, paths, replaced_by } = rescue.clone();
        let schema = "onward.rescue/1".to_owned();
        return cx.print_json(&Shown {
            schema,
            number,
            step,
            attempt,
            at,
            dir,
            replaced_by,
            paths,
            contents,
        });
    }
    show(cx, rescue)?;
    for path in &rescue.paths {
        let text = open::project(&saved.join("files"), &path.path)
            .and_then(|it| open::all_of(it, open::FILE_BYTES_MAX));
        let shown = printable(&path.path);
        let Ok(text) = text else {
            writeln!(cx.out, "\n{STRONG}{shown}{STRONG:#}\n  {DIM}the attempt deleted it{DIM:#}")?;
            continue;
        };
        writeln!(cx.out, "\n{STRONG}{shown}{STRONG:#}")?;
        let saved = String::from_utf8_lossy(&text);
        if part == Part::Saved {
            for line in saved.lines() {
                writeln!(cx.out, "  {}", printable(line))?;
            }
            continue;
        }
        let now = open::looked(session.project.root(), &path.path)
            .and_then(|it| open::all_of(it, open::FILE_BYTES_MAX))
            .unwrap_or_default();
        let now = String::from_utf8_lossy(&now);
        diff::write(&mut *cx.out, &now, &saved)?;
    }
    if can_come_back(rescue) {
        writeln!(cx.err, "\n{}", onward!("undo {} {number}", rescues.run.id))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// There is something in it that is not in the tree.
fn can_come_back(rescue: &Rescue) -> bool {
    rescue.paths.iter().any(|it| it.now != Now::Back)
}

fn number_of(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| Error::Usage {
        message: format!("`{text}` is not the number of a rescue"),
        hint: "see `onward rescue list`".into(),
    })
}

fn show(cx: &mut Context, rescue: &Rescue) -> Result<(), Error> {
    let Rescue { number, step, attempt, at, replaced_by, .. } = rescue;
    let at = style::moment(at, wall_clock());
    let step = printable(step);
    let what = if rescue.paths.iter().all(|it| it.by_hand) { "saved" } else { "undone" };
    let of = match attempt {
        0 => step,
        _ => format!("{step}, attempt {attempt}"),
    };
    let what = match replaced_by {
        Some(other) => format!("what `undo {other}` replaced {at} ({of})"),
        None => format!("{of}, {what} {at}"),
    };
    let what = style::wrap(&what, style::columns(), 5, 5);
    writeln!(cx.out, "{STRONG}{number:>3}{STRONG:#}  {what}")?;
    for path in &rescue.paths {
        writeln!(cx.out, "     {:<8} {}", word_of(path.now), printable(&path.path))?;
    }
    Ok(())
}

/// What has become of a path, next to its name.
fn word_of(now: Now) -> &'static str {
    match now {
        Now::Undone | Now::Changed => now.as_str(),
        // The file that is there now is the one that was saved.
        Now::Back => "same",
    }
}

/// Bring back what was undone, by the number of its rescue
///
/// A file that has not changed since the undo comes back at once; about one that was edited since
/// you are asked, or it is refused. What is replaced is kept in a rescue of its own.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward undo 1\n  onward undo release-20261115-k3fq 1 --yes")]
#[command(override_usage = "onward undo [OPTIONS] [RUN] N")]
pub(crate) struct UndoArgs {
    /// `[RUN] N`: the number that `onward rescue list` shows
    #[arg(required = true, num_args = 1..=2, value_name = "N")]
    #[arg(add = crate::complete::run_or_rescue())]
    words: Vec<String>,
    /// Bring it back without asking
    #[arg(short, long)]
    yes: bool,
    /// Replace this path although it was changed since
    #[arg(long, value_name = "PATH")]
    replace: Vec<OsString>,
}

pub(crate) fn undo(cx: &mut Context, args: &UndoArgs) -> Result<ExitCode, Error> {
    let (run, number) = run_and_rest(&args.words);
    let number = number_of(number)?;
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, run)?;
    // The run is not held while the user thinks.
    let shown = BringBack::prepare(&dir, &session.machine, number)?.rescue;
    if !cx.global.json {
        show(cx, &shown)?;
    }
    let mut replace: BTreeSet<String> =
        args.replace.iter().map(|it| name::text(it.as_bytes())).collect();
    if can_come_back(&shown) {
        match confirm(cx, args.yes, "Restore this?") {
            Answer::Yes => {}
            Answer::No => {
                writeln!(cx.err, "nothing was done")?;
                return Ok(ExitCode::SUCCESS);
            }
            Answer::NotAsked => {
                let changed = shown.paths.iter().filter(|it| it.now == Now::Changed);
                let replace = changed
                    .fold(String::new(), |all, it| all + " " + &option("--replace", &it.path));
                return Err(Error::Care(CareError::NeedsYes {
                    what: format!("this would restore rescue {number}"),
                    hint: format!("say `onward undo {} {number} --yes{replace}`", id_of(&dir)),
                }));
            }
        }
        if !args.yes {
            for path in shown.paths.iter().filter(|it| it.now == Now::Changed) {
                let question = format!(
                    "{} was edited since. Replace it? The edited version is saved.",
                    path.path
                );
                if confirm(cx, false, &question) == Answer::Yes {
                    replace.insert(path.path.clone());
                }
            }
        }
    }
    let back = BringBack::prepare(&dir, &session.machine, number)?;
    if back.rescue != shown {
        return Err(Error::Care(CareError::Refused {
            what: format!("files of rescue {number} changed while you were asked"),
            hint: format!("look again: `onward undo {} {number}`", id_of(&dir)),
        }));
    }
    let brought = back.adopt(&replace)?;
    if cx.global.json {
        return cx.print_json(&brought);
    }
    match brought.replaced_in {
        None => writeln!(cx.err, "everything in it is back already")?,
        Some(kept) => {
            let count = onward_core::plural::count(brought.brought.len(), "file");
            writeln!(cx.err, "{count} restored; what was there is rescue {kept}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
