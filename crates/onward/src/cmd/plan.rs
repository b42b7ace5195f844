//! `onward plan`: what a resume would do, and why. It changes nothing.

use std::{path::PathBuf, process::ExitCode};

use onward_core::{
    event::Mode,
    plan::Plan,
    policy::{Choices, Depth},
};
use onward_engine::engine::{
    Page, compare_run, compare_site, page_of_run, page_of_site, plan_and_end,
};

use crate::{
    cmd::Context,
    error::Error,
    hints::pasteable,
    meant::Wanted,
    plan_page::{self, For, Rows},
    session::{Driving, Session, Which, id_of},
};

/// Show what a resume would do, and why
///
/// Reads only: nothing on disk changes, no check or probe is run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward plan\n  onward plan --all\n  \
    onward plan path/to/conference")]
pub(crate) struct PlanArgs {
    /// Which run: its id, a prefix of it, or its directory; without it the last active one
    #[arg(add = crate::complete::run())]
    run: Option<String>,
    /// Which system wrote it, where that is in doubt
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// A task list, or the directory of all task lists, instead of Claude Code's own
    #[arg(long, value_name = "DIR")]
    tasks: Option<PathBuf>,
    /// The report in a format of the system that wrote the run, such as `l1` of a pipeline
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    format: Option<String>,
    /// Every step in a line of its own
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(cx: &mut Context, args: &PlanArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let now = session.now;
    let wanted = Wanted {
        run: args.run.as_deref(),
        dialect: args.dialect.as_deref(),
        tasks: args.tasks.as_deref(),
        newest: true,
        command: "plan",
    };
    let mut plan = match session.which(cx, &wanted)? {
        Which::Ours(dir) => {
            let folded = session.folded_of(&dir);
            let session = session.of_run(cx, &dir, &Driving::default())?;
            if let Some(format) = &args.format {
                let text = page_of_run(&dir, &session.machine, format)?;
                return page(cx, text, &id_of(&dir), format);
            }
            let mut plan = plan_and_end(&dir, &session.machine, &Choices::default(), folded)?;
            if session.mode_of(&dir) == Mode::Preflight {
                plan.preflight = compare_run(&dir, None, &session.machine)?;
            }
            plan
        }
        Which::Foreign(found) => {
            let session = Session::at(cx, found.project.root(), &Driving::default())?;
            if let Some(format) = &args.format {
                let text = page_of_site(&found, &session.machine, format)?;
                return page(cx, text, &found.site.name, format);
            }
            let mut plan = session.foreign_plan(&found, &Choices::default(), Depth::Quick)?;
            if session.mode_at(&found) == Mode::Preflight {
                plan.preflight = compare_site(&found, None, &session.machine)?;
            }
            plan
        }
    };
    if cx.global.json {
        pasteable(&mut plan);
        let text = serde_json::to_string(&plan).map_err(std::io::Error::other)?;
        writeln!(cx.out, "{text}")?;
    } else {
        let rows = if args.all || cx.global.verbose > 0 { Rows::All } else { Rows::Folded };
        plan_page::write(&mut *cx.out, &plan, rows, For::Reader, now)?;
    }
    // The process ends: nothing is given back piece by piece.
    std::mem::forget(plan);
    Ok(ExitCode::SUCCESS)
}

/// A report in the words of the other system.
fn page(cx: &mut Context, page: Page, name: &str, format: &str) -> Result<ExitCode, Error> {
    let text = page.map_err(|formats| {
        let known = formats.iter().map(|it| format!("use `--format {it}`, "));
        Error::Usage {
            message: format!("the run {name} has no format `{format}`"),
            hint: format!("{}leave `--format` out, or use `--json`", known.collect::<String>()),
        }
    })?;
    write!(cx.out, "{text}")?;
    Ok(ExitCode::SUCCESS)
}

/// The plan for a person who is about to be asked, and made these choices so far.
pub(crate) fn show(
    cx: &mut Context,
    session: &Session,
    plan: &Plan,
    choices: &Choices,
) -> Result<(), Error> {
    let rows = if cx.global.verbose > 0 { Rows::All } else { Rows::Folded };
    Ok(plan_page::write(&mut *cx.err, plan, rows, For::Menu(choices), session.now)?)
}
