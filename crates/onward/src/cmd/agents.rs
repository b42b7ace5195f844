//! `onward agents`: which agent programs are here, and what can be done with them.

use std::process::ExitCode;

use onward_engine::care::programs::{Installed, installed};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    cmd::Context,
    diagnostic::printable,
    error::Error,
    session::{Driving, Session, word},
};

/// List the agent programs onward knows, and what each can do
///
/// Those on the PATH are asked for their version; no model is called.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:\n  onward agents\n  onward agents --no-probe")]
pub(crate) struct AgentsArgs {
    /// Only look for the programs; start none of them
    #[arg(long)]
    no_probe: bool,
}

/// `onward agents --json`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Known {
    schema: String,
    agents: Vec<Installed>,
    /// The agents of the configuration.
    configured: Vec<String>,
}

pub(crate) fn run(cx: &mut Context, args: &AgentsArgs) -> Result<ExitCode, Error> {
    let session = Session::new(cx, &Driving::default())?;
    let all = installed(&session.machine.env, !args.no_probe);
    if cx.global.json {
        let configured = session.config.agents.keys().cloned().collect();
        let schema = "onward.agents/1".to_owned();
        return cx.print_json(&Known { schema, agents: all, configured });
    }
    let is_configured = |name: &str| session.config.agents.contains_key(name);
    // A name that the configuration defines means what it says there.
    for agent in all.iter().filter(|it| !is_configured(it.agent)) {
        let found = match (&agent.path, &agent.version) {
            (None, _) => match agent.install {
                Some(install) => format!("not installed; {install}"),
                None => "not installed".to_owned(),
            },
            (Some(path), None) if args.no_probe => path.display().to_string(),
            (Some(path), None) => {
                format!("does not work: `{} --version` gave no answer", path.display())
            }
            (Some(path), Some(version)) => format!("{version}, {}", path.display()),
        };
        writeln!(cx.out, "{:<9} {found}", agent.agent)?;
        if cx.global.verbose > 0 || agent.path.is_some() {
            let (sessions, results, cost) = (agent.sessions, agent.results, agent.cost);
            writeln!(cx.out, "          sessions: {sessions}; results by schema: {results}")?;
            writeln!(cx.out, "          cost: {cost}; limits: {}", agent.limits)?;
        }
    }
    for (name, command) in &session.config.agents {
        let command: Vec<String> = command.value.iter().map(|it| word(it)).collect();
        let command = printable(&command.join(" "));
        writeln!(cx.out, "{:<9} configured: {command}", printable(name))?;
    }
    Ok(ExitCode::SUCCESS)
}
