//! Shipping a finished conference: which files there must be, and which are published.
//!
//! Invariant: the drafts are read only; each published file is replaced whole.

use crate::world::open;
use std::path::Path;

use onward_dialects::conference::read::{DOCUMENT, REPORT, RESULTS, SYNTHESIS};
use serde_json::{Value, json};

use super::{
    CallError, Function, Order,
    conference::{Seat, whole_draft},
};

pub(super) const FUNCTIONS: [(&str, Function); 2] =
    [("ship.verify", verify), ("ship.publish", publish)];

const LOG: &str = "ship-log.md";
const REVIEW: &str = "peer-review-ship.md";
const PHASES: [&str; 8] =
    ["verify", "format", "evidence", "citations", "abstract", "review", "confirm", "publish"];

/// What a format is called, and the file it makes.
fn format(order: &Order) -> Result<(&'static str, &'static str), CallError> {
    match order.format.as_str() {
        "report" => Ok(("a report", "report.md")),
        "blog" => Ok(("a blog post", "blog-post.md")),
        "paper" => Ok(("the sections of a paper", "paper-sections.md")),
        "summary" => Ok(("an executive summary of one page", "executive-summary.md")),
        other => Err(CallError::new(format!("there is no format `{other}`"))
            .hint("--input format=report, blog, paper or summary")),
    }
}

fn verify(order: &Order) -> Result<Value, CallError> {
    let (what, file) = format(order)?;
    let seat = Seat::take(order)?;
    let needed = [DOCUMENT, RESULTS, SYNTHESIS, REPORT];
    let missing: Vec<&str> =
        needed.into_iter().filter(|name| !seat.dir.join(name).is_file()).collect();
    if !missing.is_empty() {
        return Err(CallError::new(format!("cannot ship: {} missing", missing.join(", ")))
            .hint("finish the conference first, with `onward resume`"));
    }
    let warnings = warnings(&seat)?;
    let drafts = match order.dir.to_str() {
        Some(".") | None => "workspace/ship".to_owned(),
        Some(dir) => format!("{dir}/workspace/ship"),
    };
    Ok(json!({"what": what, "file": file, "drafts": drafts, "warnings": warnings}))
}

fn warnings(seat: &Seat) -> Result<Vec<&'static str>, CallError> {
    let conference = seat.read()?;
    let open = !conference.history.completed;
    Ok(open.then_some("conference.completed is not logged").into_iter().collect())
}

fn publish(order: &Order) -> Result<Value, CallError> {
    let (_, file) = format(order)?;
    let seat = Seat::take(order)?;
    let page = whole_draft(&seat, "ship/abstract.md")?;
    let review = whole_draft(&seat, "ship/review.md")?;
    seat.replace(REVIEW, review.as_bytes())?;
    seat.replace(file, page.as_bytes())?;
    let log = logged(&seat.dir.join(LOG), &order.attempt.run, file, &warnings(&seat)?)?;
    seat.replace(LOG, log.as_bytes())?;
    Ok(json!({"file": file, "review": REVIEW, "log": LOG}))
}

/// The log with this run in it, once.
fn logged(path: &Path, run: &str, file: &str, warnings: &[&str]) -> Result<String, CallError> {
    let before = match open::text_named(path, open::FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "# Ship log\n".to_owned(),
        Err(error) => return Err(CallError::io("read", path)(error)),
    };
    let title = format!("## {file}, run {run}");
    if before.lines().any(|line| line == title) {
        return Ok(before);
    }
    let warned = warnings.iter().map(|it| format!("- warning: {it}\n"));
    let lines = warned.chain(PHASES.iter().map(|it| format!("- {it}: done\n")));
    let lines = lines.collect::<Vec<_>>().concat();
    Ok(format!("{before}\n{title}\n\n{lines}"))
}
