//! A short command with a bound on its time: probes, checks, evaluators, `--version`.
//!
//! Invariant: when [`run`] returns, the command has ended, and so has everything in its process
//! group. It never waits for a process that left the group. Agents and the commands of steps are
//! not run here: they belong to the supervisor.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// More output than this is not read: the last part of it counts.
const OUT_BYTES_MAX: u64 = 1 << 20;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` when its time was over first.
    pub(crate) status: Option<ExitStatus>,
    /// The end of its standard output, where that was asked for.
    pub(crate) out: Vec<u8>,
}

impl Ended {
    pub(crate) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }
}

/// What becomes of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Dropped,
    Kept,
}

/// Runs the command in a process group of its own, without standard input.
pub(crate) fn run(command: &mut Command, within: Duration, output: Output) -> io::Result<Ended> {
    // A file and no pipe: a process that outlives the command would keep a pipe open, and us
    // waiting.
    let mut kept = match output {
        Output::Dropped => None,
        Output::Kept => Some(tempfile::tempfile()?),
    };
    let stdout = match &kept {
        None => Stdio::null(),
        Some(file) => file.try_clone()?.into(),
    };
    let mut child = command.stdin(Stdio::null()).stdout(stdout).process_group(0).spawn()?;
    let status = wait(&mut child, within)?;
    let out = kept.as_mut().map_or_else(|| Ok(Vec::new()), end_of)?;
    Ok(Ended { status, out })
}

/// `None` when the time was over first. Either way the child is reaped and its group is gone.
fn wait(child: &mut Child, within: Duration) -> io::Result<Option<ExitStatus>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let Some(pid) = pid else { return Err(io::ErrorKind::NotFound.into()) };
    let mut has_ended = false;
    for _ in 0..=within.as_millis() / LOOK_EVERY.as_millis() {
        // Not reaped yet: until it is, no other group can have its number.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        has_ended = waitid(WaitId::Pid(pid), options)?.is_some();
        if has_ended {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    // The group may be empty already: then there is nothing to end.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait()?;
    Ok(has_ended.then_some(status))
}

/// What a file that was written to holds; of much, the last part.
pub(crate) fn end_of(out: &mut File) -> io::Result<Vec<u8>> {
    let length = out.seek(SeekFrom::End(0))?;
    out.seek(SeekFrom::Start(length.saturating_sub(OUT_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    out.take(OUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::care::harness::until;

    fn shell(command: &str) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]);
        shell
    }

    fn kept(command: &str) -> Ended {
        run(&mut shell(command), Duration::from_mins(1), Output::Kept).unwrap()
    }

    #[test]
    fn a_command_ends_with_its_status_and_its_output() {
        let ended = kept("echo hello; exit 3");
        assert_eq!(ended.status.unwrap().code(), Some(3));
        assert!(!ended.is_success());
        assert_eq!(ended.out, b"hello\n");
        let dropped = run(&mut shell("echo hello"), Duration::from_mins(1), Output::Dropped);
        let dropped = dropped.unwrap();
        assert!(dropped.is_success() && dropped.out.is_empty());
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = shell("sleep 1000 & echo $! > pid.part; mv pid.part pid; wait");
        command.current_dir(dir.path());
        let ended = run(&mut command, Duration::from_millis(500), Output::Kept).unwrap();
        assert_eq!(ended.status, None);
        let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
        is_gone(&pid);
    }

    #[test]
    fn what_a_command_left_in_its_group_is_ended_and_what_left_the_group_is_not_waited_for() {
        let ended = kept("sleep 400 & echo $!");
        is_gone(&String::from_utf8(ended.out).unwrap());
        assert_eq!(kept("setsid sleep 3 2>/dev/null & echo 81").out, b"81\n");
    }

    #[test]
    fn of_much_output_the_end_is_kept() {
        let out = kept("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 5").out;
        assert!(out.ends_with(b"x\n5\n") && out.len() as u64 == OUT_BYTES_MAX);
    }

    /// Gone, or dead and waiting for its new parent to take notice.
    #[track_caller]
    fn is_gone(pid: &str) {
        let stat = format!("/proc/{}/stat", pid.trim());
        let seen = || std::fs::read_to_string(&stat).map_or(true, |it| it.contains(") Z "));
        until("the end of the child", || Ok(seen().then_some(()))).unwrap();
    }
}
