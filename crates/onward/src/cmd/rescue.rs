//! `onward rescue list` and `onward undo`: what was undone, and how to have it back.

use std::{collections::BTreeSet, process::ExitCode};

use onward_engine::care::{
    CareError,
    rescues::{BringBack, Now, Rescue, list as all},
};

use crate::{
    cmd::{Context, run_and_rest},
    confirm::{Answer, confirm},
    error::Error,
    session::{Driving, Session},
};

/// Look at what was undone
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RescueArgs {
    #[command(subcommand)]
    what: RescueCommand,
}

#[derive(clap::Subcommand, Clone, Debug)]
enum RescueCommand {
    /// List the rescues of a run, and what their paths are now
    List {
        /// Which run; without it the last active one
        run: Option<String>,
    },
}

pub(crate) fn run(cx: &mut Context, args: &RescueArgs) -> Result<ExitCode, Error> {
    let RescueCommand::List { run } = &args.what;
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, run.as_deref())?;
    let rescues = all(&dir, &session.machine)?;
    if cx.global.json {
        return cx.print_json(&rescues);
    }
    let id = &rescues.run.id;
    if rescues.rescues.is_empty() {
        writeln!(cx.err, "run {id} has no rescue: nothing was undone")?;
    }
    for rescue in &rescues.rescues {
        show(cx, rescue)?;
    }
    if let Some(last) = rescues.rescues.last() {
        writeln!(cx.err, "onward undo {id} {}", last.number)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(cx: &mut Context, rescue: &Rescue) -> Result<(), Error> {
    let Rescue { number, step, attempt, at, .. } = rescue;
    writeln!(cx.out, "{number}  {step} attempt {attempt}, undone {at}")?;
    for path in &rescue.paths {
        writeln!(cx.out, "     {:<8} {}", path.now.as_str(), path.path)?;
    }
    Ok(())
}

/// Bring back what was undone, by the number of its rescue
///
/// A path is brought back where it is as it was when it was undone; one that somebody changed since
/// is asked about, or refused. What is replaced is kept in a rescue of its own.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct UndoArgs {
    /// `[RUN] N`: the number that `onward rescue list` shows
    #[arg(required = true, num_args = 1..=2, value_names = ["RUN", "N"])]
    words: Vec<String>,
    /// Bring it back without asking
    #[arg(short, long)]
    yes: bool,
    /// Replace this path although somebody changed it since
    #[arg(long, value_name = "PATH")]
    replace: Vec<String>,
}

pub(crate) fn undo(cx: &mut Context, args: &UndoArgs) -> Result<ExitCode, Error> {
    let (run, number) = run_and_rest(&args.words);
    let number: u32 = number.parse().map_err(|_| Error::Usage {
        message: format!("`{number}` is not the number of a rescue"),
        hint: "see `onward rescue list`".into(),
    })?;
    let session = Session::new(cx, &Driving::default())?;
    let dir = session.named_or_last(cx, run)?;
    let back = BringBack::prepare(&dir, &session.machine, number)?;
    if !cx.global.json {
        show(cx, &back.rescue)?;
    }
    let mut replace: BTreeSet<String> = args.replace.iter().cloned().collect();
    if back.rescue.paths.iter().any(|it| it.now != Now::Back) {
        match confirm(cx, args.yes, "Bring this back?") {
            Answer::Yes => {}
            Answer::No => return Ok(ExitCode::SUCCESS),
            Answer::Nobody => {
                return Err(Error::Care(CareError::NeedsYes {
                    what: format!("rescue {number} would be brought back"),
                    hint: format!("say `onward undo {} --yes`", args.words.join(" ")),
                }));
            }
        }
        if !args.yes {
            for path in back.rescue.paths.iter().filter(|it| it.now == Now::Changed) {
                let question =
                    format!("{} was changed since. Replace it? What is there is kept.", path.path);
                if confirm(cx, false, &question) == Answer::Yes {
                    replace.insert(path.path.clone());
                }
            }
        }
    }
    let brought = back.adopt(&replace)?;
    if cx.global.json {
        return cx.print_json(&brought);
    }
    match brought.replaced_in {
        None => writeln!(cx.err, "all of it is back already")?,
        Some(kept) => {
            let count = brought.brought.len();
            writeln!(cx.err, "{count} paths are back; what they replaced is rescue {kept}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
