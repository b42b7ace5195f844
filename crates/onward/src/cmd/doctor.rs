//! `onward doctor`: is this machine, and this project's store, fit to run and to resume?

use std::process::ExitCode;

use onward_engine::{
    agents::known_program,
    care::doctor::{Check, Health, examine},
    locate::builtin_roles,
};

use crate::{
    cmd::Context,
    command::in_text,
    diagnostic::printable,
    error::{self, Error},
    ink::{AnsiColor, Style},
    session::{Driving, Session},
    style,
};

/// Check the machine and the store of runs
///
/// git, agents, locks and syncs on this file system, the clock, room for sockets; damaged journals,
/// half-made runs, processes that lost their supervisor. Exit code 16: there is a problem.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward doctor\n  onward doctor --fix")]
pub(crate) struct DoctorArgs {
    /// Fix what is safe: archive half-made runs, end processes of runs without a supervisor
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(cx: &mut Context, args: &DoctorArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let mut checkup = examine(&session.project, &session.machine, args.fix)?;
    checkup.checks.extend(config(&session));
    for check in &mut checkup.checks {
        check.hint = check.hint.as_deref().map(in_text);
    }
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
        let message = printable(&style::local_times(&check.message, session.now));
        let said = format!("{}: {message}", check.check);
        let said = style::wrap(&said, style::columns(), 11, 11);
        writeln!(cx.out, "  {style}{health:<8}{style:#} {said}")?;
        if let Some(hint) = &check.hint {
            let dim = Style::new().dimmed();
            let hint = style::wrap(hint, style::columns(), 11, 11);
            writeln!(cx.out, "           {dim}{hint}{dim:#}")?;
        }
    }
    Ok(code)
}

/// What the configuration names and nothing has: a stand-in, a role, the agent of a role.
fn config(session: &Session) -> Vec<Check> {
    let settings = &session.config.settings;
    let is_agent =
        |name: &str| session.config.agents.contains_key(name) || known_program(name).is_some();
    let unknown = |message: String| Check::new("config", Health::Warning, message);
    let mut checks = Vec::new();
    for (name, stand_in) in settings.limits(&jiff::tz::TimeZone::UTC).stand_ins {
        if !is_agent(&stand_in) {
            let message = format!("agents.{name}.stand_in: there is no agent `{stand_in}`");
            checks.push(unknown(message).with_hint("see `onward agents`"));
        }
    }
    let roles = builtin_roles();
    for (role, part) in settings.parts() {
        let agent = part.agent.as_deref().unwrap_or("claude");
        let is_listed = known_program(agent).is_none_or(|it| it.card().names_tools);
        if !part.allow.is_empty() && !is_listed {
            let message = format!("roles.{role}.allow: {agent} takes no list of tools");
            checks.push(unknown(message).with_hint("`permissions` says what it may do"));
        }
        if !roles.contains(&role) {
            let known: Vec<&str> = roles.iter().map(String::as_str).collect();
            let message = format!("roles.{role}: no built-in workflow has this role");
            checks.push(unknown(message).with_hint(format!("roles: {}", known.join(", "))));
        }
        if !is_agent(agent) {
            let message = format!("roles.{role}: there is no agent `{agent}`");
            checks.push(unknown(message).with_hint("see `onward agents`"));
        }
    }
    checks
}
