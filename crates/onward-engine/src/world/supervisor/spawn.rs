//! Starting one child: found, in its directory, with its tag, in a process group of its own.
//!
//! Invariant: nothing runs between us and the child's program, neither a shell nor our own code in
//! a copy of this process, so that the fast way of starting a process stays open.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onward_core::{address::Address, id::RunId, launch::Launch};

use super::linux::{self, TAG_ATTEMPT, TAG_RUN, TAG_STEP};

pub(super) const SHELL: &str = "/bin/sh";
const PATH_DEFAULT: &str = "/usr/bin:/bin";

/// A child as it was born: not waited for yet, its output still in the pipes.
#[derive(Debug)]
pub(super) struct Born {
    pub(super) pid: i32,
    /// It did not start before this tick.
    pub(super) since: u64,
    /// Standard output, then standard error.
    pub(super) pipes: [OwnedFd; 2],
}

/// Whether a directory is there and, with all links followed, still below the project.
pub(crate) fn is_inside(project_dir: &Path, dir: &str) -> bool {
    let found = fs::canonicalize(project_dir.join(dir));
    let root = fs::canonicalize(project_dir);
    found.is_ok_and(|found| found.is_dir() && root.is_ok_and(|root| found.starts_with(root)))
}

/// What all children of one engine share.
#[derive(Debug)]
pub(super) struct Nursery {
    pub(super) run: RunId,
    pub(super) project_dir: PathBuf,
    pub(super) env: Vec<(OsString, OsString)>,
}

impl Nursery {
    /// `Err` is why it could not be started, for people.
    pub(super) fn spawn(&self, argv: &[String], launch: &Launch) -> Result<Born, String> {
        let Some(name) = argv.first() else {
            return Err("there is no program to start".into());
        };
        let cwd = self.project_dir.join(&launch.cwd);
        if !launch.cwd.is_empty() && cwd.is_dir() && !is_inside(&self.project_dir, &launch.cwd) {
            return Err(format!("its directory `{}` leads out of the project", cwd.display()));
        }
        let program = self.find(name, launch, &cwd)?;
        let started = match self.start(&program, name, &argv[1..], launch, &cwd) {
            // A script without a first line that names its interpreter: a shell would run it too.
            Err(error)
                if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) =>
            {
                let path = program.to_string_lossy().into_owned();
                let words = std::iter::once(path).chain(argv[1..].iter().cloned());
                self.start(Path::new(SHELL), SHELL, &words.collect::<Vec<_>>(), launch, &cwd)
            }
            started => started,
        };
        started.map_err(|error| {
            if cwd.is_dir() {
                format!("cannot start `{name}`: {error}")
            } else {
                format!("its directory `{}` is missing", cwd.display())
            }
        })
    }

    fn start(
        &self,
        program: &Path,
        name: &str,
        args: &[String],
        launch: &Launch,
        cwd: &Path,
    ) -> io::Result<Born> {
        let mut command = Command::new(program);
        command
            .arg0(name)
            .args(args)
            .current_dir(cwd)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs(&launch.env)
            .envs(tag(&self.run, &launch.step, launch.attempt))
            .env("GIT_REFLOG_ACTION", reflog_action(&self.run, launch))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let since = linux::ticks_now();
        let mut child = command.spawn()?;
        let pipe = "both streams were asked to be pipes";
        let pipes =
            [child.stdout.take().expect(pipe).into(), child.stderr.take().expect(pipe).into()];
        let pid = i32::try_from(child.id()).expect("a pid fits its own type");
        Ok(Born { pid, since, pipes })
    }

    /// Looks a bare name up in the child's own `PATH`.
    fn find(&self, name: &str, launch: &Launch, cwd: &Path) -> Result<PathBuf, String> {
        if name.contains('/') {
            return Ok(name.into());
        }
        let inherited = || self.env.iter().find(|(key, _)| key == "PATH");
        let path = match launch.env.get("PATH") {
            Some(path) => OsStr::new(path),
            None => inherited().map_or(OsStr::new(PATH_DEFAULT), |(_, path)| path.as_os_str()),
        };
        let candidates = std::env::split_paths(path).map(|dir| cwd.join(dir).join(name));
        let found = candidates.into_iter().find(|path| is_executable(path));
        found.ok_or_else(|| format!("no program `{name}` in PATH"))
    }
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// What git writes into the reflog of whatever the child commits.
fn reflog_action(run: &RunId, launch: &Launch) -> String {
    crate::world::git::reflog_action(run.as_str(), &launch.step, launch.attempt)
}

fn tag(run: &RunId, step: &Address, attempt: u32) -> [(&'static str, String); 3] {
    [(TAG_RUN, run.to_string()), (TAG_STEP, step.to_string()), (TAG_ATTEMPT, attempt.to_string())]
}
