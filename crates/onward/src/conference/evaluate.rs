//! Running the user's evaluator, and finding the number in what it prints.
//!
//! Invariant: a command that ends, one way or another, within its time; everything that it started
//! is stopped with it.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use onward_engine::dialects::conference::words;
use rustix::process::{WaitId, WaitIdOptions};
use serde_json::Value;

use super::CallError;

/// What a command of a researcher may take, as the system has it.
pub(super) const TIME_MAX: Duration = Duration::from_mins(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);
const OUT_BYTES_MAX: u64 = 1 << 20;

/// What the evaluator said: the number as it printed it, or why there is none.
pub(super) type Measured = Result<String, String>;

/// The median of several runs.
pub(super) fn measure(
    command: &str,
    runs: u32,
    dir: &Path,
    env: &[(&str, String)],
) -> Result<Measured, CallError> {
    let mut values: Vec<(f64, String)> = Vec::new();
    for _ in 0..runs.max(1) {
        match once(command, dir, env)? {
            Err(why) => return Ok(Err(why)),
            Ok(text) => values.push((words::number(&text).unwrap_or(f64::NAN), text)),
        }
    }
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let middle = (values.len() - 1) / 2;
    Ok(Ok(values.swap_remove(middle).1))
}

fn once(command: &str, dir: &Path, env: &[(&str, String)]) -> Result<Measured, CallError> {
    // A file and no pipe: whoever outlives the command keeps nobody waiting.
    let no_file = |error| CallError::new(format!("cannot keep what a command says: {error}"));
    let mut out = tempfile::tempfile().map_err(no_file)?;
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(dir)
        .envs(env.iter().map(|(name, value)| (*name, value.as_str())))
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(no_file)?)
        .process_group(0)
        .spawn()
        .map_err(CallError::io("start", Path::new("/bin/sh")))?;
    let Some(status) = wait(&mut child, TIME_MAX)? else {
        return Ok(Err(format!("it took longer than {} s (exit 124)", TIME_MAX.as_secs())));
    };
    if !status.success() {
        return Ok(Err(format!("it ended with {status}")));
    }
    let text = end_of(&mut out).map_err(no_file)?;
    Ok(number_in(&text).ok_or_else(|| "it printed no number".to_owned()))
}

/// What was said last. The number is in it, however much came before.
fn end_of(out: &mut File) -> io::Result<String> {
    let length = out.seek(SeekFrom::End(0))?;
    out.seek(SeekFrom::Start(length.saturating_sub(OUT_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    out.take(OUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `None` when the time was over first. Either way the child and its group are gone: a command has
/// ended when its first process has.
pub(super) fn wait(child: &mut Child, within: Duration) -> Result<Option<ExitStatus>, CallError> {
    let failed = |error: io::Error| CallError::new(format!("cannot wait for a command: {error}"));
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid else { return Err(failed(io::ErrorKind::NotFound.into())) };
    let mut has_ended = false;
    for _ in 0..within.as_millis().div_ceil(LOOK_EVERY.as_millis()) {
        // Left unreaped, so that its group cannot be somebody else's by now.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let seen = rustix::process::waitid(WaitId::Pid(pid), options);
        has_ended = seen.map_err(|error| failed(error.into()))?.is_some();
        if has_ended {
            break;
        }
        thread::sleep(LOOK_EVERY);
    }
    // Gone in this very moment is as good.
    let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    let status = child.wait().map_err(failed)?;
    Ok(has_ended.then_some(status))
}

/// In the last line that has one: a field of a JSON object, the line itself, or what stands after
/// its last `:` or `=`.
fn number_in(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| {
        let line = line.trim();
        if let Ok(Value::Object(object)) = serde_json::from_str(line) {
            let mut fields = ["metric_value", "metric", "score", "value"].iter();
            let number = fields.find_map(|key| object.get(*key).filter(|it| it.is_number()));
            return number.map(ToString::to_string);
        }
        let after = line.rsplit([':', '=']).next().unwrap_or(line).trim();
        let (_, rest) = words::number_and_rest(after)?;
        Some(after[..after.len() - rest.len()].trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_with_a_number_is_the_answer() {
        for (text, wanted) in [
            ("4.50\n", Some("4.50")),
            ("warming up\nscore: 0.85 of 1\n", Some("0.85")),
            ("a=1\nb = -2e-3\ndone\n", Some("-2e-3")),
            ("{\"metric\": 71.2, \"n\": 3}\n", Some("71.2")),
            ("nothing\n", None),
        ] {
            assert_eq!(number_in(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn an_evaluator_answers_fails_or_says_nothing_of_use() {
        let dir = tempfile::tempdir().unwrap();
        let measure = |command: &str| {
            let env = [("N", "7".to_owned())];
            measure(command, 1, dir.path(), &env).unwrap()
        };
        assert_eq!(measure("echo $N"), Ok("7".to_owned()));
        assert!(measure("echo 7; exit 3").unwrap_err().contains('3'));
        assert_eq!(measure("echo no"), Err("it printed no number".to_owned()));
    }

    #[test]
    fn of_several_runs_the_median_counts() {
        let dir = tempfile::tempdir().unwrap();
        let command =
            "echo x >> runs; case $(wc -l < runs) in 1) echo 9;; 2) echo 1;; *) echo 5;; esac";
        assert_eq!(measure(command, 3, dir.path(), &[]).unwrap(), Ok("5".to_owned()));
    }

    #[test]
    fn whoever_takes_too_long_is_stopped() {
        let mut child =
            Command::new("/bin/sh").args(["-c", "sleep 600"]).process_group(0).spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(20)).unwrap(), None);
    }

    #[test]
    fn nobody_waits_for_what_an_evaluator_left_behind_and_it_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let command = "sleep 400 & echo $! > pid; echo 80";
        assert_eq!(measure(command, 1, dir.path(), &[]).unwrap(), Ok("80".to_owned()));
        let pid = std::fs::read_to_string(dir.path().join("pid")).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // Whether anybody reaps it is for the machine to say.
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |it| it.contains(") Z "));
        let seen = || Ok(is_gone().then_some(()));
        onward_engine::care::harness::until("the end of what was left behind", seen).unwrap();
        // One that left its group is not found, and not waited for either.
        let command = "setsid sleep 3 2>/dev/null & echo 81";
        assert_eq!(measure(command, 1, dir.path(), &[]).unwrap(), Ok("81".to_owned()));
    }

    #[test]
    fn however_much_an_evaluator_says_the_end_counts() {
        let dir = tempfile::tempdir().unwrap();
        let command = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 5";
        assert_eq!(measure(command, 1, dir.path(), &[]).unwrap(), Ok("5".to_owned()));
    }
}
