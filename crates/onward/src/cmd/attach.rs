//! Leaving a run to itself: a driver without a terminal, in a session of its own.

use onward_engine::world::open;
use std::{
    path::Path,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    time::Duration,
};

use onward_core::plan::Status;
use onward_engine::{
    care::harness::{HarnessError, until},
    locate::{Holder, holder},
};

use crate::{
    cmd::{Context, closing},
    command::{of_child, onward},
    error::{Error, FAILED, OK, OVER_BUDGET, PARKED, RUN_FAILED, WAITING},
    session::{Session, id_of, open_run},
};

/// Starts a driver for the run and returns as soon as it drives. One that cannot says why, and its
/// exit code is ours.
pub(crate) fn leave(
    cx: &mut Context,
    session: &Session,
    dir: &Path,
    flags: &[String],
) -> Result<ExitCode, Error> {
    let id = id_of(dir);
    let code = start(session, dir, flags)?;
    if cx.global.json && code.is_none_or(has_begun) {
        let run = open_run(dir)?;
        let status = code.map_or(Status::Running, |_| Status::of(&run.state, false));
        let exit = code.unwrap_or(OK);
        cx.print_json(&closing::shape_of(dir, &run, status, exit)?)?;
        return Ok(ExitCode::from(exit));
    }
    let Some(code) = code else {
        if !cx.global.quiet {
            let attach = onward!("attach {id}");
            writeln!(cx.err, "run {id} continues in the background\n{attach}")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    if cx.global.json {
        return Err(in_shape(code, &said(dir)));
    }
    write!(cx.err, "{}", said(dir))?;
    Ok(ExitCode::from(code))
}

/// What a driver that could not begin said on its last lines, for scripts.
fn in_shape(exit: u8, said: &str) -> Error {
    let (said, hint) = match said.split_once("\nhelp: ") {
        Some((said, hint)) => (said, Some(hint.trim_end().to_owned())),
        None => (said.trim_end(), None),
    };
    let message = said.rsplit("error: ").next().unwrap_or(said).to_owned();
    Error::Left { exit, message, hint }
}

/// What the driver that was left behind said.
pub(crate) fn said(dir: &Path) -> String {
    open::text_named(&dir.join("driver.log"), open::FILE_BYTES_MAX).unwrap_or_default()
}

/// Whether a driver that ended with this code had the run before.
pub(crate) fn has_begun(code: u8) -> bool {
    BEGAN.contains(&code)
}

/// Starts a driver for the run, and waits until it drives; or else for its end, and the exit code.
pub(crate) fn start(session: &Session, dir: &Path, flags: &[String]) -> Result<Option<u8>, Error> {
    use std::os::unix::process::CommandExt as _;
    let this = &session.machine.supervise[0];
    let log = open::make_at(&dir.join("driver.log"), open::PRIVATE)
        .map_err(|source| Error::CannotRead { path: dir.join("driver.log"), source })?;
    let mode = match session.config.mode.value {
        onward_core::event::Mode::Autopilot => "autopilot",
        onward_core::event::Mode::Interactive => "interactive",
        onward_core::event::Mode::Preflight => "preflight",
    };
    let grace = session.config.grace_seconds.value.to_string();
    // Its words are read where this command was typed.
    let place = of_child(session.project.root());
    let mut driver = Command::new(this)
        .args(place)
        .args(["resume", "--no-input", "--agreed", "--mode", mode, "--grace", &grace])
        .args(session.config.settings.wait.value.then_some("--wait"))
        .args(flags)
        .arg(dir)
        .current_dir(session.project.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Ctrl-C at the terminal we leave does not reach it.
        .process_group(0)
        .spawn()?;
    // A driver that has opened the journal holds the run and the tree; so does one that waits for
    // a limit before that.
    let pid = driver.id();
    let waits = |it: &Holder| it.waits_until.is_some();
    let is_it = |it: &Holder| u32::try_from(it.pid) == Ok(pid) && (it.epoch > 0 || waits(it));
    let begun = until("the driver to begin", || {
        let ended = driver.try_wait().map_err(HarnessError::io("wait for the driver"))?;
        Ok(ended.map(Err).or_else(|| holder(dir).filter(is_it).map(Ok)))
    })?;
    let ended = match begun {
        Err(status) => Some(status),
        Ok(holder) if waits(&holder) => None,
        Ok(_) => came_to_rest(&mut driver, dir)?,
    };
    let code = ended.map(|status| status.code().and_then(|code| u8::try_from(code).ok()));
    Ok(code.map(|code| code.unwrap_or(FAILED)))
}

/// A run that waits for an answer, is parked, or has nothing left to do comes to rest at once: the
/// driver's end, unless the driver has an attempt running or takes longer than a moment.
fn came_to_rest(driver: &mut Child, dir: &Path) -> Result<Option<ExitStatus>, Error> {
    for _ in 0..LOOKS_MAX {
        if let Some(status) = driver.try_wait()? {
            return Ok(Some(status));
        }
        if open_run(dir).is_ok_and(|run| run.state.running > 0) {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(None)
}

/// How often a driver is looked at that may come to rest at once, and how many times.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS_MAX: u32 = 50;

/// With these it had begun.
const BEGAN: [u8; 5] = [OK, RUN_FAILED, WAITING, PARKED, OVER_BUDGET];
