//! Asking whether an effect outside happened: a short command with a bound on its time.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use onward_core::recovery::Probed;

use super::child::{self, Output};

/// A probe asks, it does not work.
pub(crate) const PROBE_WITHIN: Duration = Duration::from_mins(1);

/// 0 = it happened, `absent` = it did not. Everything else, time-out included, tells nothing.
pub(crate) fn probe(
    command: &str,
    absent: i32,
    dir: &Path,
    env: &[(OsString, OsString)],
    within: Duration,
) -> io::Result<Probed> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stderr(Stdio::null());
    let ended = child::run(&mut shell, within, Output::Dropped)?;
    Ok(match ended.status.and_then(|status| status.code()) {
        Some(0) => Probed::Happened,
        Some(code) if code == absent => Probed::Absent,
        Some(_) | None => Probed::Unknown,
    })
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
