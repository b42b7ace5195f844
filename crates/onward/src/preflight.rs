//! What was compared before another system's run is resumed in preflight mode, as a user reads it.
//!
//! Invariant: complete. Every file, story and link is a line of its own; what differs comes first.

use std::io::{self, Write};

use onward_core::{
    plan::{Compared, ComparedFile, ComparedStatus, Dependency, Plan, Preflight, Stamp},
    time::Timestamp,
};

use crate::{
    diagnostic::printable,
    outlook,
    style::{columns, local_times, wrap},
};

pub(crate) fn write(
    out: &mut dyn Write,
    told: &Preflight,
    plan: &Plan,
    now: Timestamp,
) -> io::Result<()> {
    let since = match &told.since {
        Some(at) => format!("with what was there when the state was last written, {at}"),
        None => "and no state tells when it was last written: only what is there now".to_owned(),
    };
    writeln!(out, "\nCompared {}", local_times(&since, now))?;
    let mut files: Vec<&ComparedFile> = told.files.iter().collect();
    files.sort_by_key(|it| it.verdict == Compared::Same);
    section(out, "Files", files.into_iter().map(|it| (it.verdict.as_str(), file(it))))?;
    section(out, "Stories", told.statuses.iter().map(|it| ("", status(it))))?;
    section(out, "Dependencies", told.dependencies.iter().map(|it| ("", dependency(it))))?;
    section(out, "Execution plan", told.ahead.iter().map(|it| ("", it.clone())))?;
    outlook::risks(out, plan)
}

fn section<'a>(
    out: &mut dyn Write,
    title: &str,
    lines: impl Iterator<Item = (&'a str, String)>,
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    let mut is_empty = true;
    for (word, line) in lines {
        is_empty = false;
        let word = if word.is_empty() { String::new() } else { format!("{word:<8}  ") };
        let line = format!("  {word}{}", printable(&line));
        writeln!(out, "{}", wrap(&line, columns(), 0, 4))?;
    }
    if is_empty {
        writeln!(out, "  none")?;
    }
    Ok(())
}

fn file(it: &ComparedFile) -> String {
    let ComparedFile { path, role, was, is, .. } = it;
    let held = match (it.verdict, was, is) {
        (Compared::Same, _, Some(is)) => stamp(is),
        (Compared::Missing, Some(was), _) => format!("then {}, now gone", stamp(was)),
        (Compared::Missing, None, _) => "not there".to_owned(),
        (_, Some(was), Some(is)) => format!("then {}, now {}", stamp(was), stamp(is)),
        (_, None, Some(is)) => format!("then not known, now {}", stamp(is)),
        (_, _, None) => "cannot be read".to_owned(),
    };
    let need = match (it.verdict, it.critical) {
        (Compared::Missing, true) => "; the run cannot continue without it",
        (Compared::Missing, false) => "; the run can continue without it",
        (Compared::Same | Compared::Changed | Compared::Unknown, _) => "",
    };
    format!("{path} ({role}): {held}{need}")
}

/// Its size, and enough of its hash to tell two apart.
fn stamp(it: &Stamp) -> String {
    let hash: String = it.hash.chars().take(12).collect();
    format!("{} bytes {hash}", it.bytes)
}

fn status(it: &ComparedStatus) -> String {
    let word = |it: &Option<String>| it.clone().unwrap_or_else(|| "nothing".to_owned());
    let (state, file) = (word(&it.state), word(&it.file));
    format!("{}: the state says {state}, the story says {file}: {}", it.story, it.verdict)
}

fn dependency(it: &Dependency) -> String {
    format!("{} after {}: {}", it.what, it.after, it.verdict)
}
