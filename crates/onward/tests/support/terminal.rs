//! A terminal without a person: what the program shows on it, and what is typed into it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    process::{Child, Command, Stdio},
    time::Duration,
};

use onward_engine::care::harness::until;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use crate::bench::Bench;

/// The program with a terminal of its own, which is in the foreground of it.
pub(crate) struct Terminal {
    keyboard_and_screen: File,
    child: Child,
    /// All that was shown.
    pub(crate) shown: String,
    /// Up to here somebody has looked.
    seen: usize,
}

impl Terminal {
    pub(crate) fn start(bench: &Bench, arguments: &str) -> Self {
        Self::of(&bench.command(arguments))
    }

    /// The command as it is, on a terminal.
    pub(crate) fn of(command: &Command) -> Self {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        Self::like(command, &words)
    }

    pub(crate) fn command(bench: &Bench, words: &[&str]) -> Self {
        Self::like(&bench.command("version"), words)
    }

    /// In the place and the environment of another command.
    fn like(usual: &Command, words: &[&str]) -> Self {
        let (master, slave) = pair();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).args(words).env_clear();
        command.current_dir(usual.get_current_dir().unwrap());
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let keyboard_and_screen = File::from(master);
        Self { keyboard_and_screen, child, shown: String::new(), seen: 0 }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard_and_screen.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until this is shown, after what was waited for before.
    #[track_caller]
    pub(crate) fn shows(&mut self, text: &str) {
        let waited = until("the terminal to show it", || {
            let found = self.shown[self.seen..].find(text).map(|at| self.seen + at + text.len());
            self.seen = found.unwrap_or(self.seen);
            Ok(found.is_some().then_some(()).or_else(|| self.look().then_some(()).and(None)))
        });
        assert!(waited.is_ok(), "`{text}` is not in:\n{}", &self.shown[self.seen..]);
    }

    /// Reads what there is; `false` when there was nothing.
    fn look(&mut self) -> bool {
        let mut ready = [PollFd::new(&self.keyboard_and_screen, PollFlags::IN)];
        let patience = Timespec::try_from(Duration::from_millis(20)).unwrap();
        if poll(&mut ready, Some(&patience)).unwrap_or(0) == 0 {
            return false;
        }
        let mut bytes = [0; 4096];
        // An error is the end: nobody has the other side open any more.
        let count = self.keyboard_and_screen.read(&mut bytes).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        count > 0
    }

    /// Waits for the end, and gives all that was shown.
    #[track_caller]
    pub(crate) fn exits(mut self, code: i32) -> String {
        let status = until("the program to end", || {
            self.look();
            Ok(self.child.try_wait().unwrap())
        });
        while self.look() {}
        let status = status.unwrap_or_else(|error| panic!("{error}:\n{}", self.shown));
        assert_eq!(status.code(), Some(code), "{}", self.shown);
        self.shown.replace("\r\x1b[K", "").replace("\r\n", "\n")
    }
}

fn pair() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
    (master, slave)
}
