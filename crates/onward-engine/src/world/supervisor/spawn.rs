//! Starting one child: found, in its directory, with its tag, in a process group of its own.
//!
//! Invariant: nothing runs between us and the child's program, neither a shell nor our own code in
//! a copy of this process; how it begins is in `birth`.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, OsStr, OsString},
    fs::{self, File},
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use onward_core::{address::Address, id::RunId, launch::Launch};

use super::{
    birth::{self, Child, Stack},
    linux::{self, TAG_ATTEMPT, TAG_RUN, TAG_SPOT, TAG_STEP},
};
use crate::world::spot::Spot;

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
    pub(super) spot: Spot,
    pub(super) project_dir: PathBuf,
    /// Standard input of every child.
    null: File,
    stack: Stack,
    /// `NAME=value` of what they inherit, by name.
    env: BTreeMap<OsString, CString>,
}

impl Nursery {
    /// `null` is the device of that name.
    pub(super) fn new(run: RunId, spot: Spot, project_dir: PathBuf, null: File) -> Self {
        Self { run, spot, project_dir, null, stack: Stack::new(), env: BTreeMap::new() }
    }

    /// From now on children inherit this environment.
    pub(super) fn inherit(&mut self, env: Vec<(OsString, OsString)>) {
        let entry = |(name, value): (OsString, OsString)| {
            let entry = variable(&name, &value).ok()?;
            Some((name, entry))
        };
        // What no environment can hold came from none.
        self.env = env.into_iter().filter_map(entry).collect();
    }

    /// `Err` is why it could not be started, for people.
    pub(super) fn spawn(&mut self, argv: &[String], launch: &Launch) -> Result<Born, String> {
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
        &mut self,
        program: &Path,
        name: &str,
        args: &[String],
        launch: &Launch,
        cwd: &Path,
    ) -> io::Result<Born> {
        let all = std::iter::once(name).chain(args.iter().map(String::as_str));
        let words = all.map(text).collect::<io::Result<Vec<CString>>>()?;
        let own = self.own_env(launch)?;
        let inherited = self.env.iter().filter(|(name, _)| {
            let is_own = |it: &(&str, CString)| OsStr::new(it.0) == name.as_os_str();
            !own.iter().any(is_own)
        });
        let inherited = inherited.map(|(_, entry)| entry.as_c_str());
        let env: Vec<&CStr> = inherited.chain(own.iter().map(|it| it.1.as_c_str())).collect();
        let [program, cwd] = [program, cwd].map(|it| text(it.as_os_str()));
        let (program, cwd) = (program?, cwd?);
        let (out, out_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (err, err_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let stdio = [self.null.as_fd(), out_end.as_fd(), err_end.as_fd()];
        let child = Child { program: &program, argv: &words, env: &env, cwd: &cwd, stdio };
        let since = linux::ticks_now();
        let pid = birth::bear(&child, &mut self.stack)?;
        Ok(Born { pid, since, pipes: [out, err] })
    }

    /// What one child has besides or instead of what it inherits, each name once.
    fn own_env<'a>(&self, launch: &'a Launch) -> io::Result<Vec<(&'a str, CString)>> {
        let tag = self.tag(&launch.step, launch.attempt);
        let reflog = ("GIT_REFLOG_ACTION", reflog_action(&self.run, launch));
        let ours = tag.into_iter().chain([reflog]);
        let ours: Vec<(&str, String)> = ours.collect();
        let is_ours = |name: &str| ours.iter().any(|it| it.0 == name);
        let asked = launch.env.iter().filter(|(name, _)| !is_ours(name));
        let asked = asked.map(|(name, value)| Ok((name.as_str(), variable(name, value)?)));
        let ours = ours.iter().map(|(name, value)| Ok((*name, variable(name, value)?)));
        asked.chain(ours).collect()
    }

    fn tag(&self, step: &Address, attempt: u32) -> [(&'static str, String); 4] {
        [
            (TAG_RUN, self.run.to_string()),
            (TAG_SPOT, self.spot.to_string()),
            (TAG_STEP, step.to_string()),
            (TAG_ATTEMPT, attempt.to_string()),
        ]
    }

    /// Looks a bare name up in the child's own `PATH`.
    fn find(&self, name: &str, launch: &Launch, cwd: &Path) -> Result<PathBuf, String> {
        if name.contains('/') {
            return Ok(name.into());
        }
        let inherited = || self.env.get(OsStr::new("PATH"))?.to_bytes().strip_prefix(b"PATH=");
        let path = match launch.env.get("PATH") {
            Some(path) => OsStr::new(path),
            None => inherited().map_or(OsStr::new(PATH_DEFAULT), OsStr::from_bytes),
        };
        let candidates = std::env::split_paths(path).map(|dir| cwd.join(dir).join(name));
        let found = candidates.into_iter().find(|path| is_executable(path));
        found.ok_or_else(|| format!("no program `{name}` in PATH"))
    }
}

/// As the kernel takes it, which ends it at the first NUL byte.
fn text(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}

fn variable(name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> io::Result<CString> {
    let (name, value) = (name.as_ref().as_bytes(), value.as_ref().as_bytes());
    Ok(CString::new([name, b"=", value].concat())?)
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// What git writes into the reflog of whatever the child commits.
fn reflog_action(run: &RunId, launch: &Launch) -> String {
    crate::world::git::reflog_action(run.as_str(), &launch.step, launch.attempt)
}
