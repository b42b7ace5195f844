//! The agent programs of this machine: which are installed, in which version, and what onward can
//! do with each.

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    agents::{ADAPTERS, Adapter, Card, Cost, Limits, Sessions},
    world::real::{
        child::{self, Output},
        on_path,
    },
};

/// A program that does not tell its version within this is not well.
const PROBE_WITHIN: Duration = Duration::from_secs(10);

/// One known program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Installed {
    pub agent: &'static str,
    /// The command that installs it.
    pub install: Option<&'static str>,
    /// Where it lies; `None` = it is not on the PATH.
    pub path: Option<PathBuf>,
    /// The first line that it says to `--version`; `None` where it does not start.
    pub version: Option<String>,
    /// What onward can do with it, in words.
    pub sessions: &'static str,
    pub results: &'static str,
    pub cost: &'static str,
    pub limits: &'static str,
}

/// Every known program, in the order of the table. With `probe`, each one that is there is asked
/// for its version, which costs nothing and speaks to no model.
pub fn installed(env: &[(OsString, OsString)], probe: bool) -> Vec<Installed> {
    let cards = ADAPTERS.into_iter().map(Adapter::card);
    let known = cards.filter_map(|card| card.program.map(|program| (card, program)));
    let one = |card: &'static Card, program: &str| {
        let path = on_path(env, program);
        let version = path.as_ref().filter(|_| probe).and_then(|path| version(env, path));
        let [sessions, results, cost, limits] = abilities(card);
        let (agent, install) = (card.name, card.install);
        Installed { agent, install, path, version, sessions, results, cost, limits }
    };
    // One that hangs keeps no other waiting.
    thread::scope(|scope| {
        let asked: Vec<_> =
            known.map(|(card, program)| scope.spawn(move || one(card, program))).collect();
        asked.into_iter().filter_map(|it| it.join().ok()).collect()
    })
}

/// Sessions, results, cost and limits: the columns of the table in `docs/agents.md`.
pub fn abilities(card: &Card) -> [&'static str; 4] {
    let sessions = match card.sessions {
        Sessions::Chosen => "id chosen before the start",
        Sessions::Told => "id told by the program",
        Sessions::None => "none",
    };
    let results = if card.takes_schema { "yes" } else { "in the prompt" };
    let cost = match card.cost {
        Cost::Usd => "tokens and USD",
        Cost::Tokens => "tokens",
        Cost::Unknown => "unknown",
    };
    let limits = match card.limits {
        Limits::Moment => "with the moment of the reset",
        Limits::Words => "in words",
    };
    [sessions, results, cost, limits]
}

/// The table in `docs/agents.md`.
pub fn table() -> String {
    let heads = "| program | sessions | result by schema | cost | limits |";
    let mut table = format!("{heads}\n| --- | --- | --- | --- | --- |\n");
    for card in ADAPTERS.into_iter().map(Adapter::card).filter(|it| it.program.is_some()) {
        let [sessions, results, cost, limits] = abilities(card);
        let name = card.name;
        let row = format!("| `{name}` | {sessions} | {results} | {cost} | {limits} |\n");
        table.push_str(&row);
    }
    table
}

fn version(env: &[(OsString, OsString)], path: &PathBuf) -> Option<String> {
    let mut command = Command::new(path);
    command.arg("--version").env_clear().envs(env.iter().cloned()).stderr(Stdio::null());
    let ended = child::run(&mut command, PROBE_WITHIN, Output::Kept).ok()?;
    let said = String::from_utf8_lossy(&ended.out);
    said.lines().next().filter(|_| ended.is_success()).map(|it| it.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_is_found_and_asked_for_its_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("claude");
        std::fs::write(&path, "#!/bin/sh\necho 9.9.9\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let paths = std::env::join_paths([dir.path(), "/bin".as_ref()]).unwrap();
        let all = installed(&[("PATH".into(), paths)], true);
        assert_eq!((all[0].agent, all[0].version.as_deref()), ("claude", Some("9.9.9")));
        assert_eq!(all[0].path.as_ref(), Some(&path));
        assert!(all[1..].iter().all(|it| it.version.is_none()), "{all:?}");
    }

    #[test]
    fn programs_are_asked_side_by_side() {
        let dir = tempfile::tempdir().unwrap();
        // Each answers when the other one has been asked too.
        for (name, other) in [("claude", "codex"), ("codex", "claude")] {
            let (here, there) = (dir.path().join(name), dir.path().join(format!("{other}.asked")));
            let (asked, there) = (here.with_extension("asked"), there.display());
            let wait = format!("until [ -e {there} ]; do sleep 0.01; done");
            let script = format!("#!/bin/sh\n: > {}\n{wait}\necho 9.9.9\n", asked.display());
            std::fs::write(&here, script).unwrap();
            std::fs::set_permissions(&here, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let paths = std::env::join_paths([dir.path(), "/bin".as_ref(), "/usr/bin".as_ref()]);
        let all = installed(&[("PATH".into(), paths.unwrap())], true);
        let answered = all.iter().filter(|it| it.version.as_deref() == Some("9.9.9")).count();
        assert_eq!(answered, 2, "{all:?}");
    }

    #[test]
    fn the_table_in_the_documentation_is_what_the_code_can_do() {
        let docs = include_str!("../../../../docs/agents.md");
        assert!(docs.contains(&table()), "docs/agents.md lacks this:\n{}", table());
    }
}
