//! Asking whether an effect outside happened: a short command with a bound on its time.

use std::{
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use onward_core::recovery::Probed;
use rustix::process::{Pid, Signal, kill_process_group};

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// 0 = it happened, `absent` = it did not. Everything else, time-out included, tells nothing.
pub(crate) fn probe(
    command: &str,
    absent: i32,
    dir: &Path,
    env: &[(OsString, OsString)],
    within: Duration,
) -> io::Result<Probed> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let status = status_within(&mut child, within)?;
    Ok(match status.and_then(|status| status.code()) {
        Some(0) => Probed::Happened,
        Some(code) if code == absent => Probed::Absent,
        Some(_) | None => Probed::Unknown,
    })
}

/// `None` when it had to be ended, with all that it started.
fn status_within(child: &mut Child, within: Duration) -> io::Result<Option<ExitStatus>> {
    let looks = within.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..=looks {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK_EVERY);
    }
    // Not reaped yet, so the group's number is nobody else's.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_the_answer() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("here"), "").unwrap();
        let ask = |command: &str, within_ms| {
            let env = [("PATH".into(), "/usr/bin:/bin".into())];
            probe(command, 7, dir.path(), &env, Duration::from_millis(within_ms)).unwrap()
        };
        assert_eq!(ask("test -e here", 10_000), Probed::Happened);
        assert_eq!(ask("exit 7", 10_000), Probed::Absent);
        assert_eq!(ask("exit 1", 10_000), Probed::Unknown);
        assert_eq!(ask("no-such-program", 10_000), Probed::Unknown);
        assert_eq!(ask("kill -9 $$", 10_000), Probed::Unknown);
        assert_eq!(ask("sleep 1000 & wait", 20), Probed::Unknown);
    }
}
