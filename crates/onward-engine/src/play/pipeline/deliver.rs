//! The end of a pipeline: one commit of the files that its tasks name, and then the word of it.
//!
//! Invariant: nothing else that is staged or changed gets into the commit. It carries the run in a
//! trailer, so that a second call finds it instead of making another one.

use onward_core::address::Address;
use onward_dialects::{pipeline::Phase, rules::pipeline as rules};
use serde_json::{Value, json};

use super::{CallError, Order, list::List};
use crate::world::{git::trailers, real::variable};

/// A path that differs from the last commit.
pub(super) struct Differs {
    pub(super) path: String,
    pub(super) is_gone: bool,
}

pub(super) fn changes(list: &List) -> Result<Vec<Differs>, CallError> {
    let status = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"];
    let out = list.git.run(&status)?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let differs = |entry: &str| {
        let (state, path) = (entry.get(..2)?, entry.get(3..).filter(|it| !it.is_empty())?);
        Some(Differs { path: path.to_owned(), is_gone: state.contains('D') })
    };
    Ok(text.split('\0').filter_map(differs).collect())
}

pub(super) fn commit(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let run = &order.attempt.run;
    let pipeline = list.read()?;
    super::nothing_late(&pipeline, Phase::P8)?;
    let wanted = rules::commit_files(&pipeline);
    let mark = format!("^Onward-Run: {run}$");
    let seen = ["log", "--max-count=1", "--format=%H", "--extended-regexp", "--grep", &mark];
    let before = list.git.run(&seen)?;
    let before = String::from_utf8_lossy(&before).trim().to_owned();
    if !before.is_empty() {
        return Ok(json!({ "commit": before }));
    }
    let changes = changes(&list)?;
    // Of the named files, those that differ from the last commit.
    let paths = changes.iter().map(|it| it.path.as_str());
    let (ours, others): (Vec<&str>, Vec<&str>) = paths.partition(|path| wanted.contains(*path));
    let gone = changes.iter().filter(|it| it.is_gone).map(|it| it.path.as_str());
    if let Some((task, path)) = rules::missed(&pipeline, gone) {
        let message =
            format!("{path}, which task {task} had left, is gone: it is not committed so");
        return Err(CallError::new(message)
            .hint("bring it back; `onward resume` verifies the task otherwise"));
    }
    let others: Vec<&str> = others.into_iter().filter(|it| !it.starts_with("pipeline/")).collect();
    if ours.is_empty() {
        return Ok(json!({ "commit": null, "nothing": true, "left_out": others }));
    }
    let said = |key: &str| order.describe[key].as_str().unwrap_or_default().trim();
    let subject = if said("subject").is_empty() { "deliver the pipeline" } else { said("subject") };
    let body =
        if said("body").is_empty() { String::new() } else { format!("{}\n\n", said("body")) };
    let attempt = variable(&order.attempt.env, "ONWARD_ATTEMPT").and_then(|it| it.to_str());
    let attempt = attempt.and_then(|it| it.parse().ok()).unwrap_or(1);
    let marks = trailers(run, &Address::from_text("P8/commit"), attempt);
    let message = format!("{subject}\n\n{body}{marks}");
    let add = [&["add", "--all", "--"][..], &ours].concat();
    list.git.run(&add)?;
    let make = [&["commit", "--quiet", "--only", "--message", &message, "--"][..], &ours].concat();
    list.git.run(&make).map_err(|error| {
        CallError::new(error.to_string())
            .hint("check that `git commit` works here, then `onward resume`")
    })?;
    let commit = list.git.line(&["rev-parse", "HEAD"])?;
    Ok(json!({ "commit": commit, "files": ours, "left_out": others }))
}

pub(super) fn deliver(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let commit = order.commit["commit"].as_str();
    if let Some(commit) = commit {
        let asked = ["merge-base", "--is-ancestor", commit, "HEAD"];
        if list.git.ask(&asked, &[])?.code != Some(0) {
            let message =
                format!("the commit {commit} that delivers the work is not on this branch");
            return Err(CallError::new(message).hint("bring it back, and `onward resume`"));
        }
    }
    list.write(&rules::deliver(&list.read()?, commit))?;
    Ok(json!({ "commit": commit }))
}
