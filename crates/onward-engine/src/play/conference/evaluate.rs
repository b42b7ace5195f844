//! Running the user's evaluator, and finding the number in what it prints.
//!
//! Invariant: an evaluator ends within its time, and so does everything in its process group.

use std::{io::Write as _, path::Path, process::Command, time::Duration};

use onward_dialects::kit::number;
use serde_json::Value;

use super::CallError;
use crate::world::real::child::{self, Output};

/// The time limit that the system of the conference gives a researcher's command.
const TIME_MAX: Duration = Duration::from_mins(5);

/// The number as the evaluator printed it, or why there is none.
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
            Ok(text) => values.push((number::number(&text).unwrap_or(f64::NAN), text)),
        }
    }
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let middle = (values.len() - 1) / 2;
    Ok(Ok(values.swap_remove(middle).1))
}

fn once(command: &str, dir: &Path, env: &[(&str, String)]) -> Result<Measured, CallError> {
    let failed = || CallError::io("run an evaluator in", dir);
    let mut complaints = tempfile::tempfile().map_err(failed())?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(dir);
    shell.envs(env.iter().map(|(name, value)| (*name, value.as_str())));
    shell.stderr(complaints.try_clone().map_err(failed())?);
    let ended = child::run(&mut shell, TIME_MAX, Output::Kept).map_err(failed())?;
    let complaints = child::end_of(&mut complaints).map_err(failed())?;
    // The log of the step has all of them.
    let _ = std::io::stderr().write_all(&complaints);
    let why = match ended.status {
        None => format!("it took longer than {} s (exit 124)", TIME_MAX.as_secs()),
        Some(status) if !status.success() => match status.code() {
            Some(code) => format!("it ended with exit {code}"),
            None => format!("it ended with {status}"),
        },
        Some(_) => match number_in(&String::from_utf8_lossy(&ended.out)) {
            Some(number) => return Ok(Ok(number)),
            None => "it printed no number".to_owned(),
        },
    };
    Ok(Err(with_complaint(why, &String::from_utf8_lossy(&complaints))))
}

/// The last line that a command complained with says most about why.
fn with_complaint(why: String, complaints: &str) -> String {
    const CHARS_MAX: usize = 200;
    let last = complaints.lines().rev().map(str::trim).find(|line| !line.is_empty());
    match last {
        None => why,
        Some(line) => format!("{why}: {}", line.chars().take(CHARS_MAX).collect::<String>()),
    }
}

/// The number of the last line that has one: a field of a JSON object, the line itself, or the
/// text after its last `:` or `=`.
fn number_in(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| {
        let line = line.trim();
        if let Ok(Value::Object(object)) = serde_json::from_str(line) {
            let mut fields = ["metric_value", "metric", "score", "value"].iter();
            let number = fields.find_map(|key| object.get(*key).filter(|it| it.is_number()));
            return number.map(ToString::to_string);
        }
        let after = line.rsplit([':', '=']).next().unwrap_or(line).trim();
        let (_, rest) = number::number_and_rest(after)?;
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
        let why = measure("echo one >&2; echo two >&2; echo >&2; exit 3").unwrap_err();
        assert!(why.ends_with(": two"), "{why}");
    }

    #[test]
    fn of_several_runs_the_median_counts() {
        let dir = tempfile::tempdir().unwrap();
        let command =
            "echo x >> runs; case $(wc -l < runs) in 1) echo 9;; 2) echo 1;; *) echo 5;; esac";
        assert_eq!(measure(command, 3, dir.path(), &[]).unwrap(), Ok("5".to_owned()));
    }

    #[test]
    fn the_number_is_found_at_the_end_of_a_long_output() {
        let dir = tempfile::tempdir().unwrap();
        let command = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo 5";
        assert_eq!(measure(command, 1, dir.path(), &[]).unwrap(), Ok("5".to_owned()));
    }
}
