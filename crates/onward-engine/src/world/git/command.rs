//! Running git: the one place that knows its environment, its options and its failures.
//!
//! Invariant: nothing that we run starts a hook, a pager, a prompt, a daemon or maintenance, and
//! nothing of the caller's own git environment, such as a hook has, leaks into it.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::{self, Write as _},
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{fifos, locks};
use crate::world::{open, real::variable};

/// Why git could not be asked, or what it answered.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be started: {0}")]
    Start(io::Error),
    #[error("git {what} failed: {said}")]
    Failed { what: String, said: String },
    #[error("git {what} waits for something that never comes")]
    Hangs { what: String },
    #[error("git {what} waits for a FIFO: {}", fifo.display())]
    MeetsFifo { what: String, fifo: PathBuf },
    #[error("git {what} said something that is not understood")]
    Unclear { what: String },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl GitError {
    pub fn hint(&self) -> String {
        match self {
            Self::Start(_) => "install git, or set `edits: false` for the step".to_owned(),
            Self::Failed { said, .. } if said.contains("dubious ownership") => {
                "see `git help config` under safe.directory".to_owned()
            }
            Self::Hangs { .. } => {
                "check whether a FIFO stands where git reads: .gitignore, .gitattributes, \
                 .git/info/exclude"
                    .to_owned()
            }
            Self::MeetsFifo { .. } => {
                "nothing ever comes from it: take it away, or make it a file".to_owned()
            }
            Self::Failed { .. } | Self::Unclear { .. } | Self::Io { .. } => {
                "check that `git status` works here, or set `edits: false` for the step".to_owned()
            }
        }
    }

    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// Settings of the person that would make git do more than it is asked, or less durably.
const SETTINGS: [&str; 11] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.ignoreStat=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.quotePath=false",
    "core.fsync=objects,reference",
    "core.fsyncMethod=fsync",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
];

/// What the reflog says of whatever git moves.
const REFLOG_ACTION: &str = "GIT_REFLOG_ACTION";

/// The variables that tell git where to work, and those that change what it says.
const FOREIGN: [&str; 24] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DEFAULT_REF_FORMAT",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    REFLOG_ACTION,
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Set while onward only looks: git then starts no filter that the repository's own configuration
/// names. Filters of the user's own configuration still run.
pub const LOOKS_ONLY: &str = "ONWARD_LOOKS_ONLY";

/// More than one command can meet: each ref of a conference has its own.
const LOCKS_MAX: u32 = 64;

/// A git that is asked to look or to record is never idle for so long.
const STUCK_AFTER: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who makes the commits that no person ever sees on a branch.
const NAME: &str = "onward";
const ADDRESS: &str = "onward@localhost";

/// How git is called in one directory.
#[derive(Clone, Debug)]
pub struct Git {
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    settings: Vec<&'static str>,
}

/// What git answered.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub said: String,
}

impl Git {
    pub fn new(dir: &Path, env: &[(OsString, OsString)]) -> Self {
        let is_ours = |name: &OsStr| !FOREIGN.iter().any(|foreign| name == *foreign);
        let looks_only = env.iter().any(|(name, _)| name == LOOKS_ONLY);
        let env = env.iter().filter(|(name, _)| is_ours(name)).cloned().collect();
        let mut git = Self { dir: dir.to_owned(), env, settings: SETTINGS.to_vec() };
        if looks_only {
            git.start_no_filters();
        }
        git
    }

    fn start_no_filters(&mut self) {
        const ASKED: [&str; 7] =
            ["config", "--local", "--includes", "--name-only", "-z", "--get-regexp", "^filter[.]"];
        let Ok(answer) = self.ask(&ASKED, &[]) else { return };
        let keys = String::from_utf8_lossy(&answer.out).into_owned();
        let names: BTreeSet<&str> =
            keys.split('\0').filter_map(|it| Some(it.rsplit_once('.')?.0)).collect();
        let settings = names.iter().flat_map(|name| {
            let off = ["clean", "smudge", "process"].map(|it| (format!("{name}.{it}"), ""));
            off.into_iter().chain([(format!("{name}.required"), "false")])
        });
        let settings: Vec<(String, &str)> = settings.collect();
        for (number, (key, value)) in settings.iter().enumerate() {
            self.env.push((format!("GIT_CONFIG_KEY_{number}").into(), key.into()));
            self.env.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
        }
        self.env.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// What it moves is the work of the attempt whose environment this is.
    #[must_use]
    pub fn signed(self, env: &[(OsString, OsString)]) -> Self {
        match variable(env, REFLOG_ACTION) {
            Some(action) => self.with(REFLOG_ACTION, action),
            None => self,
        }
    }

    #[must_use]
    pub(super) fn set(mut self, setting: &'static str) -> Self {
        self.settings.push(setting);
        self
    }

    /// Standard output of a command that must succeed.
    pub fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, GitError> {
        self.feed(args, &[])
    }

    /// The same, with something to read. A lock that a killed git left is not in the way.
    pub fn feed<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<Vec<u8>, GitError> {
        let mut answer = self.ask(args, input)?;
        for _ in 0..LOCKS_MAX {
            let cleared = || locks::clear(&answer.said, self.whom(), || self.common_dir());
            if answer.code == Some(0) || !cleared() {
                break;
            }
            answer = self.ask(args, input)?;
        }
        match answer.code {
            Some(0) => Ok(answer.out),
            Some(_) | None => Err(failed(args, &answer.said)),
        }
    }

    /// The environment of a built-in function names its attempt.
    fn whom(&self) -> locks::For {
        match variable(&self.env, "ONWARD_ATTEMPT") {
            Some(_) => locks::For::Step,
            None => locks::For::Onward,
        }
    }

    fn common_dir(&self) -> Option<PathBuf> {
        const ASKED: [&str; 3] = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        let answer = self.ask(&ASKED, &[]).ok().filter(|it| it.code == Some(0))?;
        let line = answer.out.strip_suffix(b"\n")?;
        Some(PathBuf::from(OsStr::from_bytes(line)))
    }

    /// The first line of standard output, such as an object's name.
    pub fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, GitError> {
        let out = self.run(args)?;
        let line = out.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = str::from_utf8(line).map_err(|_| unclear(args))?;
        if line.is_empty() { Err(unclear(args)) } else { Ok(line.to_owned()) }
    }

    pub fn ask<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<Answer, GitError> {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.dir).arg("--no-pager");
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            // Said this way, it is understood by old versions of git too.
            .envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_ADVICE", "0")])
            .envs([("GIT_AUTHOR_NAME", NAME), ("GIT_AUTHOR_EMAIL", ADDRESS)])
            .envs([("GIT_COMMITTER_NAME", NAME), ("GIT_COMMITTER_EMAIL", ADDRESS)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Start)?;
        let stdin = child.stdin.take();
        let pid = child.id();
        // Taken before it can have been waited for: a later process with its number is not meant.
        let held = Pid::from_raw(pid.cast_signed());
        let held = held.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let is_over = AtomicBool::new(false);
        let (output, hangs) = thread::scope(|scope| {
            // A git that does not read to the end says why on its own.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            let watch = scope.spawn(|| end_if_stuck(pid, held, &self.dir, &is_over));
            let output = child.wait_with_output();
            is_over.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            (output, watch.join().unwrap_or_default())
        });
        let output = output.map_err(GitError::Start)?;
        let what = || name_of(args);
        match hangs {
            Stuck::No => {}
            Stuck::At(fifo) => return Err(GitError::MeetsFifo { what: what(), fifo }),
            Stuck::Somewhere => return Err(GitError::Hangs { what: what() }),
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Ok(Answer { code: output.status.code(), out: output.stdout, said })
    }
}

/// What a git that had to be ended waited for.
#[derive(Debug, Default)]
enum Stuck {
    #[default]
    No,
    At(PathBuf),
    Somewhere,
}

/// A git that opens a FIFO waits for ever, and we with it. Ends one that sleeps without having used
/// any time of the processor or having a child to wait for: at once where a FIFO is found among
/// what it reads, else after a long time.
fn end_if_stuck(pid: u32, held: Option<OwnedFd>, dir: &Path, is_over: &AtomicBool) -> Stuck {
    let (mut last, mut looks) = (None, 0);
    loop {
        thread::park_timeout(LOOK_EVERY);
        if is_over.load(Ordering::Relaxed) {
            return Stuck::No;
        }
        let now = asleep(pid);
        if now.is_none() || now != last {
            (last, looks) = (now, 0);
            continue;
        }
        looks += 1;
        let fifo = if looks == 1 { fifos::among_what_git_reads(dir) } else { None };
        if fifo.is_none() && LOOK_EVERY * looks <= STUCK_AFTER {
            continue;
        }
        let is_ended = held.is_some_and(|held| pidfd_send_signal(held, Signal::KILL).is_ok());
        return if is_ended { fifo.map_or(Stuck::Somewhere, Stuck::At) } else { Stuck::No };
    }
}

/// The time that a process has used, if it sleeps and has no child.
fn asleep(pid: u32) -> Option<String> {
    let read = |file: &str| open::text_named(Path::new(&format!("/proc/{pid}/{file}")), 4096).ok();
    let children = read(&format!("task/{pid}/children"))?;
    let stat = read("stat")?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let is_asleep = fields.first() == Some(&"S") && children.trim().is_empty();
    is_asleep.then(|| fields.get(11..13).unwrap_or_default().join(" "))
}

pub(super) fn failed<A: AsRef<OsStr>>(args: &[A], said: &str) -> GitError {
    let said = if said.is_empty() { "it did not say why" } else { said };
    GitError::Failed { what: name_of(args), said: said.to_owned() }
}

pub(super) fn unclear<A: AsRef<OsStr>>(args: &[A]) -> GitError {
    GitError::Unclear { what: name_of(args) }
}

fn name_of<A: AsRef<OsStr>>(args: &[A]) -> String {
    args.first().map_or_else(String::new, |it| it.as_ref().to_string_lossy().into_owned())
}
