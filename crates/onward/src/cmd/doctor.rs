//! `onward doctor`: is this machine, and this project's store, fit to run and to resume?

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use onward_engine::care::doctor::{Health, examine};

use crate::{
    cmd::Context,
    error::{self, Error},
    session::{Driving, Session},
};

/// Check the machine and the store of runs
///
/// git, agents, locks and syncs on this file system, the clock, room for sockets; damaged journals,
/// half-made runs, processes that lost their supervisor. Exit code 16: there is a problem.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// Mend what is safe: archive half-made runs, end processes of runs without a supervisor
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(cx: &mut Context, args: &DoctorArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let checkup = examine(&session.project, &session.machine, args.fix)?;
    let code = ExitCode::from(if checkup.healthy { error::OK } else { error::CONFLICTS });
    if cx.global.json {
        cx.print_json(&checkup)?;
        return Ok(code);
    }
    for check in &checkup.checks {
        let style = match check.health {
            Health::Ok => AnsiColor::Green.on_default(),
            Health::Fixed => AnsiColor::Cyan.on_default(),
            Health::Warning => AnsiColor::Yellow.on_default(),
            Health::Problem => AnsiColor::Red.on_default().bold(),
        };
        if cx.global.quiet && check.health == Health::Ok {
            continue;
        }
        let health = check.health.as_str();
        writeln!(cx.out, "  {style}{health:<8}{style:#} {}: {}", check.check, check.message)?;
        if let Some(hint) = &check.hint {
            let dim = Style::new().dimmed();
            writeln!(cx.out, "           {dim}{hint}{dim:#}")?;
        }
    }
    Ok(code)
}
