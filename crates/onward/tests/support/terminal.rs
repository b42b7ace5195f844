//! A terminal without a person: what the program shows on it, and what is typed into it.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::{AsFd, OwnedFd},
    process::{Child, Command, Stdio},
    time::Duration,
};

use onward_engine::care::harness::until;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    io::ioctl_fionread,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use super::glass::Glass;
use crate::bench::{Bench, signal};

/// The program with a terminal of its own, which is in the foreground of it.
pub(crate) struct Terminal {
    keyboard_and_screen: File,
    child: Child,
    /// All that was written to it.
    pub(crate) shown: String,
    /// Bytes of a character whose rest has not come.
    pending: Vec<u8>,
    /// What a person sees of it.
    pub(crate) glass: Glass,
    /// Up to here the test has looked.
    seen: usize,
}

impl Terminal {
    /// On a terminal of so many columns and rows.
    pub(crate) fn start_sized(bench: &Bench, arguments: &str, size: (u16, u16)) -> Self {
        Self::of_sized(&bench.command(arguments), size)
    }

    pub(crate) fn of_sized(command: &Command, size: (u16, u16)) -> Self {
        Self::like(command, &words_of(command), Some(size))
    }

    pub(crate) fn start(bench: &Bench, arguments: &str) -> Self {
        Self::of(&bench.command(arguments))
    }

    /// The command as it is, on a terminal.
    pub(crate) fn of(command: &Command) -> Self {
        Self::like(command, &words_of(command), None)
    }

    pub(crate) fn command(bench: &Bench, words: &[&str]) -> Self {
        Self::like(&bench.command("version"), words, None)
    }

    /// In the place and the environment of another command.
    fn like(usual: &Command, words: &[&str], size: Option<(u16, u16)>) -> Self {
        let (master, slave) = pair();
        if let Some(size) = size {
            tcsetwinsize(&master, window(size)).unwrap();
        }
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).args(words).env_clear();
        command.current_dir(usual.get_current_dir().unwrap());
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let keyboard_and_screen = File::from(master);
        let (shown, pending, glass) =
            (String::new(), Vec::new(), Glass::new(size.unwrap_or(USUAL)));
        Self { keyboard_and_screen, child, shown, pending, glass, seen: 0 }
    }

    /// The person makes the window larger or smaller, at a moment at which nothing is being drawn:
    /// a frame that is half written is for the size that the program found before it.
    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        let pid = self.child.id();
        until("a moment between two frames", || {
            signal(pid, "-STOP");
            until("the program to stand still", || Ok(is_stopped(pid).then_some(())))?;
            while self.look() {}
            if self.glass.in_frame {
                signal(pid, "-CONT");
                return Ok(None);
            }
            tcsetwinsize(&self.keyboard_and_screen, window(size)).unwrap();
            self.glass.resize(size);
            signal(pid, "-CONT");
            Ok(Some(()))
        })
        .unwrap();
    }

    /// Waits until the glass is so.
    #[track_caller]
    pub(crate) fn sees(&mut self, what: impl Fn(&Glass) -> bool) {
        let waited = until("the glass to show it", || {
            self.look();
            Ok(what(&self.glass).then_some(()))
        });
        assert!(waited.is_ok(), "it is not on:\n{}", self.glass.all().join("\n"));
    }

    /// Waits until a row of the glass has it.
    #[track_caller]
    pub(crate) fn sees_text(&mut self, text: &str) {
        self.sees(|glass| glass.screen().iter().any(|row| row.contains(text)));
    }

    /// Waits until the whole screen was drawn again since now.
    pub(crate) fn sees_frames(&mut self, count: usize) {
        let before = self.glass.frames;
        self.sees(|glass| glass.frames >= before + count && !glass.in_frame);
    }

    /// The person closes the window; what runs in it is hung up on.
    pub(crate) fn hang_up(self) -> Child {
        let Self { keyboard_and_screen, child, .. } = self;
        drop(keyboard_and_screen);
        child
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
        // An error is the end: no process has the other side open any more.
        let count = self.keyboard_and_screen.read(&mut bytes).unwrap_or(0);
        self.glass.write(&bytes[..count]);
        self.pending.extend_from_slice(&bytes[..count]);
        // What is cut in the middle of a character waits for the rest of it.
        let whole = match std::str::from_utf8(&self.pending) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.pending.len(),
        };
        let text: Vec<u8> = self.pending.drain(..whole).collect();
        self.shown.push_str(&String::from_utf8_lossy(&text));
        count > 0
    }

    /// Whether the terminal shows what is typed.
    pub(crate) fn shows_keys(&self) -> bool {
        let modes = tcgetattr(&self.keyboard_and_screen).unwrap().local_modes;
        modes.contains(LocalModes::ECHO)
    }

    /// Types a line that the program does not read yet, and waits until the terminal has it.
    pub(crate) fn types_ahead(&mut self, line: &str) {
        self.types(line);
        let slave = other_side(&self.keyboard_and_screen);
        until("the terminal to have it", || {
            Ok((ioctl_fionread(&slave).unwrap() >= line.len() as u64).then_some(()))
        })
        .unwrap();
    }

    /// The program itself, for signals.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program stands still, as after Ctrl-Z.
    pub(crate) fn stands_still(&self) {
        let pid = self.child.id();
        until("the program to stand still", || Ok(is_stopped(pid).then_some(()))).unwrap();
    }

    /// Waits for the end, and gives all that was shown.
    #[track_caller]
    pub(crate) fn exits(mut self, code: i32) -> String {
        self.ends(code)
    }

    /// The same, and the terminal can be looked at afterwards.
    #[track_caller]
    pub(crate) fn ends(&mut self, code: i32) -> String {
        let status = until("the program to end", || {
            self.look();
            Ok(self.child.try_wait().unwrap())
        });
        while self.look() {}
        let status = status.unwrap_or_else(|error| panic!("{error}:\n{}", self.shown));
        assert_eq!(status.code(), Some(code), "{}", self.shown);
        plain(&self.shown)
    }
}

/// What a terminal has whose size no test set: what the program takes for it.
const USUAL: (u16, u16) = (100, 24);

fn window((ws_col, ws_row): (u16, u16)) -> Winsize {
    Winsize { ws_col, ws_row, ws_xpixel: 0, ws_ypixel: 0 }
}

fn words_of(command: &Command) -> Vec<&str> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_str().unwrap()).collect()
}

fn is_stopped(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
}

/// What was shown, without what moves the cursor or calls the person.
fn plain(shown: &str) -> String {
    let (mut text, mut rest) = (String::new(), shown);
    while let Some(at) = rest.find('\x1b') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = match rest.as_bytes().first() {
            Some(b']') => rest.find('\x07'),
            Some(_) | None => rest.find(|it: char| it.is_ascii_alphabetic()),
        };
        rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
    }
    text.push_str(rest);
    text.replace('\x07', "").replace("\r\n", "\n").replace('\r', "")
}

fn pair() -> (OwnedFd, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let slave = other_side(&master);
    (master, slave)
}

fn other_side(master: impl AsFd) -> OwnedFd {
    let name = ptsname(master, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(name, flags, Mode::empty()).unwrap()
}
