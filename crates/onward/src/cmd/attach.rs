//! Leaving a run to itself: a driver without a terminal, in a session of its own.

use std::{
    path::Path,
    process::{Command, ExitCode, ExitStatus, Stdio},
};

use onward_engine::{
    care::harness::{HarnessError, until},
    locate::{Holder, holder},
};
use serde_json::json;

use crate::{
    cmd::Context,
    error::{Error, FAILED, OK, OVER_BUDGET, PARKED, RUN_FAILED, WAITING},
    session::Session,
};

/// Starts a driver for the run and returns as soon as it drives. One that cannot says why, and its
/// exit code is ours.
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
    let mut driver = Command::new(this)
        .args(["resume", "--no-input", "--mode", mode])
        .arg(dir)
        .current_dir(session.project.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C at the terminal we leave does not reach it.
        .process_group(0)
        .spawn()?;
    // Whoever has opened the journal holds the run and the tree.
    let pid = driver.id();
    let has_begun = |it: &Holder| it.epoch > 0 && u32::try_from(it.pid) == Ok(pid);
    let ended = until("the driver to begin", || {
        let ended = driver.try_wait().map_err(HarnessError::io("wait for the driver"))?;
        Ok(ended.map(Some).or_else(|| holder(dir).filter(has_begun).map(|_| None)))
    })?;
    if let Some(code) = ended.and_then(could_not_begin) {
        let said = std::fs::read_to_string(dir.join("driver.log")).unwrap_or_default();
        write!(cx.err, "{said}")?;
        return Ok(ExitCode::from(code));
    }
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

/// A run can be over, or wait for somebody, before anybody has seen it begin.
fn could_not_begin(status: ExitStatus) -> Option<u8> {
    const BEGAN: [u8; 5] = [OK, RUN_FAILED, WAITING, PARKED, OVER_BUDGET];
    let code = status.code().map_or(FAILED, |code| u8::try_from(code).unwrap_or(FAILED));
    (!BEGAN.contains(&code)).then_some(code)
}
