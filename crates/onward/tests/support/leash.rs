//! An engine on a leash: it gets no further than the event after the one that a test looks at,
//! however busy or quick the machine is.
//!
//! An engine with `--json` tells every event on standard output when it is durable and before
//! anything acts on it. Here that output is a pipe with room for a single line, so the engine
//! stands still at its next event until the test has read the one before.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    os::fd::OwnedFd,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use onward_engine::locate::Project;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, tee},
};

/// The least that a pipe can hold: one line, because each is a packet of its own.
const ONE_LINE: usize = 4096;

/// How long a look waits for a line before it looks again.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// After so many looks a wait has failed. Far beyond what a loaded machine takes.
const LOOKS_MAX: u32 = 60_000;

/// At which of the events that are seen a test kills: a long story is shared by two of them, which
/// run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    Odd,
    Even,
}

impl Share {
    /// Whether the event of this number, from 1 on, is one of them.
    pub(crate) fn takes(self, number: usize) -> bool {
        match self {
            Self::Odd => !number.is_multiple_of(2),
            Self::Even => number.is_multiple_of(2),
        }
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::DIRECT).unwrap();
    assert_eq!(fcntl_setpipe_size(&write, ONE_LINE).unwrap(), ONE_LINE);
    (read, write)
}

pub(crate) struct Leash {
    engine: Child,
    told: File,
    /// The last line that was read: after the end, why it ended.
    pub(crate) last: String,
}

impl Leash {
    /// Starts the command, which drives a run.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::on(command, pipe())
    }

    /// The same, with a pipe that is full from the start: the engine stands still as soon as its
    /// first event is durable, and before anything acts on it.
    pub(crate) fn start_taut(command: &mut Command) -> Self {
        let (read, write) = pipe();
        let mut write = File::from(write);
        write.write_all(b"\n").unwrap();
        Self::on(command, (read, write.into()))
    }

    fn on(command: &mut Command, (read, write): (OwnedFd, OwnedFd)) -> Self {
        let engine = command.arg("--json").stdout(write).spawn().unwrap();
        // The command keeps what it was given; the end of the engine is to be the end of the pipe.
        command.stdout(Stdio::null());
        Self { engine, told: File::from(read), last: String::new() }
    }

    /// Lets the engine go on until the test sees what it waits for; false if it ended before.
    /// Asked before every line that is let through, so that nothing follows unseen.
    pub(crate) fn until(&mut self, mut sees: impl FnMut() -> bool) -> bool {
        for _ in 0..LOOKS_MAX {
            let has_told = self.has_told();
            if sees() {
                return true;
            }
            if has_told && !self.lets_through() {
                return sees();
            }
        }
        panic!("waited in vain for an engine on the leash, after {}", self.last);
    }

    /// The run that it makes in a project without one.
    pub(crate) fn first_run(&mut self, project: &Project) -> PathBuf {
        let runs = || project.runs().unwrap_or_default();
        assert!(self.until(|| !runs().is_empty()), "{}", self.last);
        runs().remove(0).dir
    }

    /// What is told, without taking it away: the engine gets no further for that. Nothing where
    /// nothing came yet, or at the end.
    pub(crate) fn tells(&self) -> Vec<u8> {
        let (copy, into) = pipe();
        let count = tee(&self.told, &into, ONE_LINE, SpliceFlags::NONBLOCK).unwrap_or(0);
        let mut packet = vec![0; count];
        File::from(copy).read_exact(&mut packet).unwrap();
        packet
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.engine.try_wait().unwrap().is_some()
    }

    /// Whether a line, or the end, can be read.
    fn has_told(&self) -> bool {
        let mut ready = [PollFd::new(&self.told, PollFlags::IN)];
        let patience = Timespec::try_from(LOOK_EVERY).unwrap();
        poll(&mut ready, Some(&patience)).unwrap_or(0) > 0
    }

    /// Reads one packet, which is a line or a part of a long one; false at the end.
    pub(crate) fn lets_through(&mut self) -> bool {
        let mut line = [0; ONE_LINE];
        let count = self.told.read(&mut line).unwrap();
        if count > 0 {
            self.last = String::from_utf8_lossy(&line[..count]).into_owned();
        }
        count > 0
    }

    /// SIGKILL, and gone when this returns.
    pub(crate) fn kill(&mut self) {
        self.engine.kill().unwrap();
        self.engine.wait().unwrap();
    }

    /// Lets go of it, and waits for its end.
    pub(crate) fn exits(&mut self) -> Option<i32> {
        while self.lets_through() {}
        self.engine.wait().unwrap().code()
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let _ = self.engine.kill();
        let _ = self.engine.wait();
    }
}
