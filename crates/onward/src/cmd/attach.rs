//! Leaving a run to itself: a driver without a terminal, in a session of its own.

use std::{
    path::Path,
    process::{Command, ExitCode, Stdio},
};

use serde_json::json;

use crate::{cmd::Context, error::Error, session::Session};

/// Starts a driver for the run and returns at once.
pub(crate) fn leave(cx: &mut Context, session: &Session, dir: &Path) -> Result<ExitCode, Error> {
    use std::os::unix::process::CommandExt as _;
    let this = &session.machine.supervise[0];
    let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let log = std::fs::File::create(dir.join("driver.log"))
        .map_err(|source| Error::CannotRead { path: dir.join("driver.log"), source })?;
    let mode = match session.config.mode.value {
        onward_core::event::Mode::Autopilot => "autopilot",
        onward_core::event::Mode::Interactive => "interactive",
        onward_core::event::Mode::Preflight => "preflight",
    };
    Command::new(this)
        .args(["resume", "--no-input", "--mode", mode])
        .arg(dir)
        .current_dir(session.project.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C at the terminal we leave does not reach it.
        .process_group(0)
        .spawn()?;
    if cx.global.json {
        let run = json!({"id": id, "dir": dir.display().to_string()});
        let object = json!({"schema": "onward.outcome/1", "run": run, "status": "running",
            "exit": 0});
        writeln!(cx.out, "{object}")?;
    } else {
        writeln!(cx.err, "run {id} goes on by itself\nonward attach {id}")?;
    }
    Ok(ExitCode::SUCCESS)
}
