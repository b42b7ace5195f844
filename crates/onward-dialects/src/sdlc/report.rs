//! The report before a resume, in the three forms that users of the system know: it can go on, it
//! can go on in part, it cannot go on.

use onward_core::{
    finding::{Code as Known, Finding, Severity},
    plural,
    time::Timestamp,
};

use super::{
    Code, check, preflight,
    spec::Artifact,
    step,
    told::{Kind, SdlcTold},
};
use crate::kit::{
    age::is_future,
    code::Odd,
    path::{below, shown},
};

pub(super) fn report(told: &SdlcTold, now: Timestamp) -> Vec<String> {
    let findings = check::findings(told, now);
    let is_lost = findings.iter().any(is_final);
    let blocks = |it: &&Finding| is_lost && it.severity() == Severity::Blocking;
    let reasons: Vec<&Finding> = findings.iter().filter(blocks).collect();
    let again = if reasons.is_empty() { again(told, &findings) } else { Vec::new() };
    let form = match () {
        () if told.code == Code::Complete => "Complete",
        () if !reasons.is_empty() => "Cannot resume",
        () if !again.is_empty() => "Partial resume possible",
        () => "Resume",
    };
    let mut lines = vec![format!("{form}: {}, {}", told.flow.title(), shown(&told.key))];
    lines.extend(source(told, now));
    section(&mut lines, "Reasons:", reasons.iter().map(|it| it.message.clone()));
    let done = if again.is_empty() { "Completed:" } else { "Still valid:" };
    section(&mut lines, done, step::done_lines(told).into_iter());
    section(&mut lines, "To be done again:", again.into_iter());
    lines.push(format!("Resume point: {}", told.summary()));
    let is_over = told.code == Code::Complete;
    if let Some(inputs) = preflight::inputs(told).filter(|_| !is_over) {
        lines.push(format!("Input: {inputs}"));
    }
    lines
}

/// Clean, or how much there is of what, found by whichever look.
pub(super) fn validation(findings: &[Finding]) -> String {
    let of = |severity| findings.iter().filter(|it| it.severity() == severity).count();
    let counted = [(of(Severity::Blocking), "conflict"), (of(Severity::Warning), "warning")];
    let counted = counted.into_iter().filter(|(many, _)| *many > 0);
    let counted: Vec<String> = counted.map(|(many, what)| plural::count(many, what)).collect();
    let counted = if counted.is_empty() { "clean".to_owned() } else { counted.join(", ") };
    format!("Validation: {counted}")
}

fn section(lines: &mut Vec<String>, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_some() {
        lines.push(title.to_owned());
        lines.extend(items.map(|it| format!("  {it}")));
    }
}

/// When it stopped, where that is written, and in which mode.
fn source(told: &SdlcTold, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(when(told, now));
    let source = told.state_path.clone().or_else(|| told.story().map(|it| it.path.clone()));
    if let Some(source) = source {
        lines.push(format!("State source: {}", below(&told.dir, &shown(&source))));
    }
    if let Some(mode) = told.mode() {
        lines.push(format!("Mode of the run: {}", shown(mode)));
    }
    if let Some(why) = &told.rebuilt {
        let why = shown(why);
        lines.push(format!("The state file cannot be read ({why})"));
        lines.push("What follows was made from the stories and artifacts".to_owned());
    }
    lines
}

/// When it was last at work. A checkout or a copy writes files too: when they were written says
/// nothing of when a run stopped.
fn when(told: &SdlcTold, now: Timestamp) -> Option<String> {
    let (_, at) = told.last_at()?;
    let is_rest = told.code == Code::Complete || told.is_unbegun();
    let what = if is_rest { "Last active" } else { "Interrupted" };
    Some(match ago(now, at) {
        None => format!("{what}: time unknown; the files give one in the future"),
        Some(ago) if is_rest || told.noted_at().is_some() => format!("{what}: {ago}"),
        Some(ago) => format!("{what}: time unknown; the files were last written {ago}"),
    })
}

/// A file is gone without which nothing goes on, or nothing says what there is to do.
fn is_final(finding: &Finding) -> bool {
    let codes = [Known::MissingArtifact.as_str(), Odd::StateUnreadable.row().word];
    finding.severity() == Severity::Blocking && codes.contains(&finding.code.as_str())
}

/// Phases or waves that the state gives as done and that the files do not show, with the reason.
fn again(told: &SdlcTold, findings: &[Finding]) -> Vec<String> {
    let codes = [
        Known::StatusDisagrees.as_str(),
        Known::PhaseAheadOfEvidence.as_str(),
        Known::ArtifactUnproved.as_str(),
    ];
    let why = findings.iter().find(|it| codes.contains(&it.code.as_str()));
    let (Some(why), Some(now)) = (why, told.phase()) else { return Vec::new() };
    let line = |number: u32, name: &str| format!("{number}. {name}: {}", why.message);
    match &told.kind {
        Kind::Story(run) => {
            let said = |it: &super::state::State| {
                it.reached().max(it.pointer.unwrap_or(1).saturating_sub(1))
            };
            let said = run.state.as_ref().map_or(0, said);
            let names = ["Create", "Validate", "Implement", "QA Gate"];
            (now..=said).filter_map(|it| Some(line(it, names.get(it as usize - 1)?))).collect()
        }
        Kind::Spec(spec) => {
            let is_broken = |kind: &Artifact| {
                let is_it = |path: &String| path.contains(&format!("/{}.", kind.as_str()));
                spec.broken.iter().any(|(path, _)| is_it(path))
            };
            let numbered = (1..).zip(Artifact::ALL);
            let broken = numbered.filter(|(number, it)| *number >= now && is_broken(it));
            broken.map(|(number, it)| line(number, it.as_str())).collect()
        }
        Kind::Epic(epic) => {
            let said = epic.pointer.unwrap_or(0);
            let waves = epic.waves.range(now..said.max(now));
            waves.map(|(number, it)| line(*number, &format!("Wave {}", shown(&it.name)))).collect()
        }
        Kind::Loop(_) => Vec::new(),
    }
}

/// 45 minutes ago, 3 days ago; `None` for a moment that has not come yet.
fn ago(now: Timestamp, at: Timestamp) -> Option<String> {
    if is_future(now, at) {
        return None;
    }
    let minutes = now.ms_since(at) / 60_000;
    let (count, unit) = match minutes {
        0 => return Some("less than a minute ago".to_owned()),
        1..60 => (minutes, "minute"),
        60..1440 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Some(format!("{} ago", plural::count(count, unit)))
}
