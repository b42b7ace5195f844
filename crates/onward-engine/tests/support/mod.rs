//! What the engine's tests on real processes share: copies of the test binary that play a role,
//! processes to end and to wait for, and fifos to talk through.
//!
//! All waits are for an event; the long bound on each only turns a hang into a failure.

use std::{
    ffi::OsString,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::channel,
    time::Duration,
};

use onward_engine::world::supervisor::Identity;
use rustix::{
    event::{PollFd, PollFlags, Timespec},
    process::{Pid, PidfdFlags, Signal},
};

const ROLE: &str = "ONWARD_TEST_ROLE";
pub(crate) const HANG: Duration = Duration::from_mins(2);

/// The words that start a copy of this binary, which finds its role in [`role`]. `env` sets it and
/// becomes the copy; no process stands between.
pub(crate) fn copy_of_us(role: &str) -> Vec<OsString> {
    let us = std::env::current_exe().unwrap();
    let args = ["role_of_a_copy", "--exact", "--nocapture", "--test-threads=1"];
    let start = [OsString::from("/usr/bin/env"), format!("{ROLE}={role}").into(), us.into()];
    start.into_iter().chain(args.map(OsString::from)).collect()
}

/// A copy of this binary, with these words behind its own.
pub(crate) fn start_copy(role: &str, words: &[&Path]) -> Child {
    let argv = copy_of_us(role);
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).args(words).stdout(Stdio::null()).spawn().unwrap()
}

/// What this copy is to do; `None` for the binary that runs the tests.
pub(crate) fn role() -> Option<String> {
    std::env::var_os(ROLE).map(|role| role.into_string().unwrap())
}

fn pidfd(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    rustix::process::pidfd_send_signal(pidfd(pid).unwrap(), signal).unwrap();
}

/// Kills that process and waits until it is dead.
pub(crate) fn kill(id: Identity) {
    if let Some(fd) = pidfd(id.pid).filter(|_| id.is_alive()) {
        let _ = rustix::process::pidfd_send_signal(&fd, Signal::KILL);
        await_end(&fd);
    }
}

/// Waits until that process has ended by itself.
pub(crate) fn see_end(id: Identity) {
    if let Some(fd) = pidfd(id.pid).filter(|_| id.is_alive()) {
        await_end(&fd);
    }
}

pub(crate) fn await_death(pid: i32) {
    if let Some(fd) = pidfd(pid) {
        await_end(&fd);
    }
}

fn await_end(fd: &OwnedFd) {
    let timeout = Timespec { tv_sec: i64::try_from(HANG.as_secs()).unwrap(), tv_nsec: 0 };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut fds, Some(&timeout)).unwrap(), 1, "it should have died");
}

pub(crate) fn fifo(path: PathBuf) -> PathBuf {
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Reads one whole message from a fifo: returns when its writer has written and closed.
pub(crate) fn hear(fifo: PathBuf) -> String {
    let (sender, heard) = channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(fifo).unwrap()));
    heard.recv_timeout(HANG).expect("a word through the fifo").trim_end().to_owned()
}

/// Lets a reader of this fifo go on.
pub(crate) fn say(fifo: PathBuf) {
    let (sender, said) = channel();
    std::thread::spawn(move || sender.send(std::fs::write(fifo, "go\n")));
    said.recv_timeout(HANG).expect("a reader of the fifo").unwrap();
}
