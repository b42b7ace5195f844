//! The machine: git, agents, locks, syncs, the clock, room for a socket's name.

use crate::world::open;
use std::{
    ffi::OsString,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use onward_core::time::Timestamp;

use super::{Check, Health};
use crate::{
    agents::own_agent,
    care::programs::{self, Installed},
    engine::Machine,
    locate::Project,
    world::{
        real::{
            child::{self, Output},
            wall_clock,
        },
        supervisor::Place,
    },
};

/// The first git that can be told to sync what snapshots write.
const GIT_LEAST: (u32, u32) = (2, 36);
/// A program that only says its version is quick.
const VERSION_WITHIN: Duration = Duration::from_secs(10);
/// No clock that is right shows less.
const WRITTEN_AT: &str = "2026-11-01T00:00:00.000000Z";

pub(super) fn checks(project: &Project, machine: &Machine) -> Vec<Check> {
    let mut checks = vec![git(project, machine)];
    for (name, command) in &machine.agents {
        checks.push(agent(project, machine, name, command));
    }
    let known = programs::installed(&machine.env, true);
    checks.extend(
        known.iter().filter(|it| !machine.agents.contains_key(it.agent)).filter_map(program),
    );
    // Where runs are kept; a project without any is not given a store by looking.
    let store = Some(project.onward_dir()).filter(|dir| dir.is_dir());
    let dir = store.unwrap_or_else(|| project.root().to_owned());
    checks.push(locks(&dir));
    checks.push(syncs(&dir));
    checks.push(clock(wall_clock()));
    checks.push(socket(project, machine));
    checks
}

fn git(project: &Project, machine: &Machine) -> Check {
    let is_repository = project.root().join(".git").exists();
    let lacking = if is_repository { Health::Problem } else { Health::Warning };
    match version(project.root(), machine, "git") {
        Version::Said(text) => match parse(&text) {
            Some(found) if found < GIT_LEAST => {
                let (major, minor) = GIT_LEAST;
                Check::new("git", lacking, format!("{text} is older than {major}.{minor}"))
                    .with_hint("install a newer git")
            }
            Some(_) | None => Check::ok("git", text),
        },
        Version::Silent => Check::new("git", lacking, "git does not say its version"),
        Version::Missing => Check::new("git", lacking, "git is not installed")
            .with_hint("without it there are no snapshots and no worktrees"),
    }
}

/// The first two numbers of a version.
fn parse(text: &str) -> Option<(u32, u32)> {
    let mut numbers =
        text.split(|letter: char| !letter.is_ascii_digit()).filter(|it| !it.is_empty());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn agent(project: &Project, machine: &Machine, name: &str, command: &[String]) -> Check {
    let what = format!("agent {name}");
    let Some(program) = command.first() else {
        return Check::new("agent", Health::Problem, format!("{what} has no command"))
            .with_hint(own_agent(name));
    };
    let found = located(project.root(), machine, program);
    if found.as_deref().is_some_and(|path| is_of_project(project.root(), path)) {
        let message = format!("{what}: `{program}` of this project is there, and was not started");
        return Check::ok("agent", message);
    }
    match version(project.root(), machine, program) {
        Version::Said(text) => Check::ok("agent", format!("{what}: {text}")),
        Version::Silent => Check::ok("agent", format!("{what}: {program} is there")),
        Version::Missing => {
            Check::new("agent", Health::Problem, format!("{what}: `{program}` is not installed"))
                .with_hint("install it, or change its command in the configuration")
        }
    }
}

/// A known program that is installed; one that is not is no concern of a machine.
fn program(found: &Installed) -> Option<Check> {
    let path = found.path.as_ref()?;
    let what = format!("agent {}", found.agent);
    if let Some(version) = &found.version {
        return Some(Check::ok("agent", format!("{what}: {version}")));
    }
    let message = format!("{what}: {} does not say its version", path.display());
    Some(Check::new("agent", Health::Warning, message).with_hint("check whether it starts"))
}

enum Version {
    /// The first line it printed.
    Said(String),
    Silent,
    Missing,
}

fn located(root: &Path, machine: &Machine, program: &str) -> Option<PathBuf> {
    let found =
        if program.contains('/') { Some(root.join(program)) } else { find(&machine.env, program) };
    found.filter(|path| path.is_file())
}

/// A program that came with the checkout: looking starts nothing of it.
fn is_of_project(root: &Path, program: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    program.starts_with(root) || real(program).starts_with(real(root))
}

fn version(root: &Path, machine: &Machine, program: &str) -> Version {
    let Some(path) = located(root, machine, program) else { return Version::Missing };
    match first_line(&path, root, &machine.env) {
        Ok(Some(line)) if !line.is_empty() => Version::Said(line),
        Ok(_) => Version::Silent,
        Err(_) => Version::Missing,
    }
}

fn find(env: &[(OsString, OsString)], program: &str) -> Option<PathBuf> {
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = path.unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// What `PROGRAM --version` prints first; `None` when it fails or does not come to an end.
fn first_line(
    program: &Path,
    dir: &Path,
    env: &[(OsString, OsString)],
) -> io::Result<Option<String>> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stderr(Stdio::null());
    let ended = child::run(&mut command, VERSION_WITHIN, Output::Kept)?;
    let text = String::from_utf8_lossy(&ended.out);
    let line = text.lines().next().unwrap_or_default().trim().to_owned();
    Ok(Some(line).filter(|_| ended.is_success()))
}

fn locks(dir: &Path) -> Check {
    match second_lock_is_refused(dir) {
        Ok(true) => Check::ok("locks", format!("locks hold in {}", dir.display())),
        Ok(false) => {
            let message = format!("locks do not hold in {}", dir.display());
            Check::new("locks", Health::Problem, message)
                .with_hint("keep the project on a local disk: two drivers could write to one run")
        }
        Err(error) => {
            let message = format!("files in {} cannot be locked: {error}", dir.display());
            Check::new("locks", Health::Problem, message).with_hint(
                "check whether you may write there, and whether its file system has locks",
            )
        }
    }
}

fn second_lock_is_refused(dir: &Path) -> io::Result<bool> {
    let file = tempfile::NamedTempFile::new_in(dir)?;
    file.as_file().lock()?;
    let second = open::at(file.path(), open::To::Read)?;
    Ok(matches!(second.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

fn syncs(dir: &Path) -> Check {
    let synced = tempfile::NamedTempFile::new_in(dir).and_then(|mut file| {
        file.write_all(b"onward\n")?;
        file.as_file().sync_data()?;
        open::sync_dir(dir)
    });
    match synced {
        Ok(()) => Check::ok("sync", format!("files in {} can be synced", dir.display())),
        Err(error) => {
            let message = format!("files in {} cannot be synced: {error}", dir.display());
            Check::new("sync", Health::Problem, message)
                .with_hint("a power cut could take what a run has finished")
        }
    }
}

fn clock(now: Timestamp) -> Check {
    let written: Timestamp = WRITTEN_AT.parse().unwrap_or_default();
    if now >= written {
        return Check::ok("clock", format!("it is {now}"));
    }
    Check::new("clock", Health::Problem, format!("the clock is wrong: it shows {now}"))
        .with_hint("set it right: ages of runs are measured by it")
}

fn socket(project: &Project, machine: &Machine) -> Check {
    let place = Place {
        run: "doctor".parse().expect("a plain word is a run id"),
        run_dir: project.runs_dir().join("doctor"),
        project_dir: project.root().to_owned(),
        socket_dir: machine.socket_dir.clone(),
    };
    match place.socket() {
        Ok(path) => Check::ok("socket", format!("sockets go to {}", show_dir(&path))),
        Err(error) => {
            let check = Check::new("socket", Health::Problem, error.to_string());
            let hint = error.hint().unwrap_or("set XDG_RUNTIME_DIR to a directory of your own");
            check.with_hint(hint)
        }
    }
}

fn show_dir(path: &Path) -> String {
    path.parent().unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (text, expected) in [
            ("git version 2.39.5", Some((2, 39))),
            ("git version 2.9.1 (Apple Git-1)", Some((2, 9))),
            ("v10.2", Some((10, 2))),
            ("unknown", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert!(parse("git version 2.9.1").unwrap() < GIT_LEAST);
        assert!(parse("git version 2.100").unwrap() > GIT_LEAST);
    }

    #[test]
    fn a_clock_from_before_this_program_is_wrong() {
        assert_eq!(clock(Timestamp::default()).health, Health::Problem);
        assert_eq!(clock(wall_clock()).health, Health::Ok);
    }

    #[test]
    fn locks_and_syncs_are_tried_and_leave_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(locks(dir.path()).health, Health::Ok);
        assert_eq!(syncs(dir.path()).health, Health::Ok);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let nowhere = dir.path().join("nowhere");
        assert_eq!(locks(&nowhere).health, Health::Problem);
        assert_eq!(syncs(&nowhere).health, Health::Problem);
    }
}
