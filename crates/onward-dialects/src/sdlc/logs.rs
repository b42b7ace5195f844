//! What the system's own programs logged: how a workflow was led, and what was decided on a story.
//!
//! Invariant: a log only grows, and proves nothing: it is told, and a resume is noted in it where
//! there is one. None is begun here.

use onward_core::{plan::RecoveryPoint, time::Timestamp, told::Change};

use super::{report, story::bare, told::SdlcTold};
use crate::kit::path::shown;

/// Whether a path is one of such a log.
pub(super) fn is_log(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["orchestration-log-", "decision-log-"].iter().any(|it| name.starts_with(it))
}

/// The last one of how workflows were led: they are named by the time.
fn orchestration(told: &SdlcTold) -> Option<(&str, &[u8])> {
    let all = told.files.iter().filter(|(path, _)| is_log(path));
    let all = all.filter(|(path, _)| path.contains("/orchestration-log-"));
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    all.max_by_key(|(path, _)| name(path)).map(|(path, file)| (path, file.bytes.as_slice()))
}

/// For the report.
pub(super) fn lines(told: &SdlcTold) -> Vec<String> {
    let mut lines = Vec::new();
    let last = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        lines.next_back().map(|it| shown(it.trim_start_matches(['-', '#', ' '])))
    };
    if let Some((path, bytes)) = orchestration(told) {
        let last = last(bytes).map(|it| format!(", last: {it}")).unwrap_or_default();
        lines.push(format!("Orchestration log: {}{last}", shown(path)));
    }
    let own = format!("decision-log-{}.md", bare(&told.key));
    let is_own = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        name == own || name == format!("decision-log-story-{}.md", bare(&told.key))
    };
    let decisions = told.files.iter().filter(|(path, _)| is_own(path));
    lines.extend(decisions.map(|(path, file)| {
        let last = last(&file.bytes).map(|it| format!(", last: {it}")).unwrap_or_default();
        format!("Decision log: {}{last}", shown(path))
    }));
    lines
}

/// A resume, as the original logs one.
pub(super) fn resumed(told: &SdlcTold, point: &RecoveryPoint, at: Timestamp) -> Option<Change> {
    let (path, bytes) = orchestration(told)?;
    let findings = super::check::findings(told, at);
    let validation = report::validation(&findings).to_lowercase();
    let validation = validation.trim_start_matches("validation: ").to_owned();
    let source = told.state_path.clone().or_else(|| told.story().map(|it| it.path.clone()));
    let idle = told.last_at().and_then(|(_, last)| report::ago(at, last));
    let idle = idle.map_or_else(|| "unknown".to_owned(), |it| it.trim_end_matches(" ago").into());
    let gap = if bytes.is_empty() || bytes.ends_with(b"\n") { "" } else { "\n" };
    let (name, agent) = (told.code.row().1, told.code.row().2);
    let phase = point.phase.as_deref().map(|it| format!("Phase {it}, ")).unwrap_or_default();
    let text = format!(
        "{gap}\n[{at}] Workflow resumed: {} ({})\nState source: {}\nResume point: {phase}{name} -- \
         @{agent}\nInterruption duration: {idle}\nValidation: {validation}\n",
        told.flow.title(),
        shown(&told.key),
        shown(&source.unwrap_or_default()),
    );
    Some(Change::Append { path: path.to_owned(), bytes: text.into_bytes() })
}
