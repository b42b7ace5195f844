//! What a front end needs to write a conference.md: the draft, and a trial of its evaluator.

use std::path::Path;

pub use onward_dialects::{
    conference::read::DOCUMENT,
    rules::conference::{
        draft::{Draft, Measure},
        measure::Direction,
    },
};

use super::{CallError, evaluate};
use crate::world::git::{Env, Git};

/// The number that an evaluator prints in this directory; an error when it prints none.
pub fn try_evaluator(command: &str, dir: &Path) -> Result<String, CallError> {
    let env = [("CONFERENCE_DIR", dir.display().to_string())];
    evaluate::measure(command, 1, dir, &env)?.map_err(|why| {
        CallError::new(format!("the evaluator `{command}` does not work: {why}"))
            .hint("it is run by /bin/sh, and prints the metric in its last line")
    })
}

/// Files that the command names and that no commit has: the worktrees of the researchers will lack
/// them. What a program opens by itself is not known.
pub fn uncommitted(command: &str, dir: &Path, env: &Env) -> Vec<String> {
    let is_of_path = |c: char| c.is_alphanumeric() || "._-/+@".contains(c);
    let words = command.split(|c: char| !is_of_path(c)).filter(|it| !it.starts_with('-'));
    let mut named: Vec<&str> = words.filter(|it| dir.join(it).is_file()).collect();
    named.sort_unstable();
    named.dedup();
    if named.is_empty() {
        return Vec::new();
    }
    let literal = named.into_iter().map(|it| format!(":(literal){it}"));
    let start = ["ls-files", "--others", "-z", "--"].map(str::to_owned);
    let args: Vec<String> = start.into_iter().chain(literal).collect();
    let listed = Git::new(dir, env).ask(&args, &[]).ok().filter(|it| it.code == Some(0));
    let listed = listed.map(|it| String::from_utf8_lossy(&it.out).into_owned()).unwrap_or_default();
    listed.split('\0').filter(|it| !it.is_empty()).map(str::to_owned).collect()
}
