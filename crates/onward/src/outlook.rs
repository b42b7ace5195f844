//! How much of a run can be recovered, in words: what stays valid, what must run again, and where
//! nothing can go on, the ways out.
//!
//! Invariant: the same words on a terminal and off one, and each way out is a command to paste.

use std::io::{self, Write};

use onward_core::{
    finding::{Code, Finding, RUN_SUPERSEDED, Severity},
    plan::{AgeBand, Outlook, Plan},
    plural::count,
    policy::{self, Choices},
    run::Run,
    survey::outputs_to_check,
};
use onward_engine::locate::FoundSite;

use crate::{
    command::onward,
    diagnostic::printable,
    hints::naming,
    next,
    session::{found_in_commands, word},
    style,
};

/// So many files are named one by one.
const NAMED_MAX: usize = 40;

/// Says what kind of resume this is, unless all that is done stays done.
pub(crate) fn show(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    match plan.outlook() {
        Outlook::Whole => Ok(()),
        Outlook::Partly => partly(out, plan),
        Outlook::Not => not(out, plan),
    }
}

fn partly(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    writeln!(out, "\nPartly recoverable")?;
    phases(out, plan)?;
    let again = plan.steps.iter().filter(|step| step.is_redone()).count();
    let compared = plan.steps.iter().filter(|step| step.counts_no_more()).count() - again;
    let kept = plan.counts.get("keep").copied().unwrap_or(0);
    let id = &plan.run.id;
    let nothing_stays = kept == 0 && compared == 0;
    if nothing_stays || plan.run.age_band == AgeBand::Stale {
        let age = style::span(plan.run.age_seconds);
        let old = format!("the run is {age} old");
        let why = if nothing_stays { "no finished work can stay" } else { &old };
        let (text, command) =
            (format!("  Suggestion: start over ({why}):"), onward!("run --again {id}"));
        return writeln!(out, "{}", style::wrap_with(&text, &command, style::columns(), 0, 4));
    }
    let mut parts = vec![format!("{} kept", count(kept as usize, "step"))];
    parts.extend((again > 0).then(|| format!("{} to run again", count(again, "done step"))));
    parts.extend((compared > 0).then(|| format!("{compared} to compare")));
    let text = format!("  Suggestion: continue ({})", parts.join(", "));
    writeln!(out, "{}", style::wrap(&text, style::columns(), 0, 4))
}

fn not(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let id = &plan.run.id;
    let is_superseded = plan.findings.iter().any(|it| it.code == RUN_SUPERSEDED);
    let yet = if is_superseded { "" } else { " yet" };
    writeln!(out, "\n{id} cannot be resumed{yet}:")?;
    let stuck = |it: &&Finding| it.severity() == Severity::Blocking && !it.can_be_accepted();
    for finding in plan.findings.iter().filter(stuck) {
        writeln!(out, "  {}: {}", finding.code, printable(&finding.message))?;
        if let Some(hint) = &finding.hint {
            writeln!(out, "    {}", printable(&naming(hint, &plan.run)))?;
        }
    }
    phases(out, plan)?;
    let from = plan.phases().valid.pop().or_else(|| plan.recovery_point.phase.clone());
    // Nothing more can be written into a journal that is damaged.
    let is_damaged = plan.findings.iter().any(|it| it.code == Code::JournalDamaged.as_str());
    let first =
        if is_damaged { format!("{} && ", onward!("repair {id} --yes")) } else { String::new() };
    let end = format!("{first}{} && {}", onward!("cancel {id}"), onward!("archive {id}"));
    let besides = if is_superseded { "" } else { ", besides fixing that" };
    writeln!(out, "Ways out{besides}:")?;
    let mut way = |what: &str, command: &str| writeln!(out, "  {what}:\n    {command}");
    // Nothing is to be fixed: another run lies there, and that is the one to go on with.
    if is_superseded {
        return way("clean up and end it", &end);
    }
    let resume = format!("{first}{}", onward!("resume {id}"));
    way("once that is fixed, continue where it stopped", &resume)?;
    if let Some(from) = from {
        let command = format!("{first}{}", onward!("resume {id} --from {}", word(&from)));
        way("once that is fixed, do the last phase that is still valid again", &command)?;
    }
    way("start over; all files stay", &onward!("run --again {id}"))?;
    way("clean up and end it", &end)
}

/// The ways out where another system's run cannot be taken up as it is.
pub(crate) fn ways_out(
    out: &mut dyn Write,
    plan: &Plan,
    found: &FoundSite,
    (again, choices): (&str, &Choices),
    can_be_given_up: bool,
) -> io::Result<()> {
    let code = plan.recovery_point.code.as_str();
    let flow = code.split(':').next().unwrap_or_default();
    let entries = found.card().entries.iter().filter(|it| it.split(':').next() == Some(flow));
    let before = entries.take_while(|it| **it != code).last();
    writeln!(out, "\nWays out, besides fixing that:")?;
    let mut number = 0;
    let mut way = |what: &str, command: &str| {
        number += 1;
        writeln!(out, "  {number}. {what}:\n     {command}")
    };
    let give_up = can_be_given_up.then(|| onward!("archive {}", found_in_commands(found)));
    // A run cannot begin where another one is still noted.
    let first = give_up.as_ref().map(|it| format!("{it} --yes && ")).unwrap_or_default();
    let standing = policy::standing(&plan.findings, plan.run.age_band, choices);
    let flags = next::settling(&standing).unwrap_or_default();
    if !flags.is_empty() {
        way("continue as it is", &format!("{again} {}", flags.join(" ")))?;
    }
    if let Some(before) = before {
        let command = format!("{again} --from {before}");
        way("once it is fixed, continue at a phase before it", &command)?;
    }
    way("start over; all files stay", &format!("{first}{}", start_over(found)))?;
    if let Some(give_up) = give_up {
        way("clean up its state and end it; nothing is deleted", &give_up)?;
    }
    Ok(())
}

/// The command that starts another run on the same thing.
pub(crate) fn start_over(found: &FoundSite) -> String {
    let site = &found.site;
    let given = site.inputs.iter().filter(|(name, _)| *name != "dir" && *name != "state");
    // Where one run after the other lies in the same place, they name the one that is put away.
    let given = given.filter(|_| !found.dialect.replaces());
    let given = given.filter_map(|(name, value)| Some((name, value.as_str()?)));
    let mut command = vec![onward!("run {}", site.workflow)];
    command.extend(given.map(|(name, it)| format!("--input {name}={}", word(it))));
    let asks = found.dialect.is_told_what();
    command.extend(asks.then(|| "--input request='WISH'".to_owned()));
    command.join(" ")
}

fn phases(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let phases = plan.phases();
    for (names, what) in [
        (phases.valid, "stays valid"),
        (phases.again, "runs again"),
        (phases.compared, "is compared"),
        (phases.under_way, "continues"),
        (phases.to_come, "to come"),
    ] {
        if !names.is_empty() {
            writeln!(out, "  {what:<11} {}", names.join(", "))?;
        }
    }
    Ok(())
}

/// What a look at everything compared, file by file and check by check, and what is at risk.
pub(crate) fn compared(out: &mut dyn Write, run: &Run, plan: &Plan) -> io::Result<()> {
    writeln!(out, "\nCompared")?;
    let found = |path: &str, step: &str| {
        let is =
            |it: &&Finding| it.path.as_deref() == Some(path) && it.step.as_deref() == Some(step);
        plan.findings.iter().find(is).map(|it| it.code.clone())
    };
    let mut lines = Vec::new();
    for (step, file) in outputs_to_check(&run.state) {
        lines.push((found(&file.path, step.as_str()), format!("{} of {step}", file.path)));
    }
    for (step, entry) in &run.state.steps {
        let Some(key) = entry.key.as_ref().filter(|_| entry.phase.is_settled()) else { continue };
        for path in key.get().reads.into_keys() {
            lines.push((found(&path, step.as_str()), format!("{path}, read by {step}")));
        }
        let id = run.graph.find(step).map(|id| run.graph.node(id).def);
        if id.is_some_and(|id| run.defs.step(id).check.is_some()) {
            let code = Code::StatusDisagrees.as_str();
            let differs = plan
                .findings
                .iter()
                .any(|it| it.code == code && it.step.as_deref() == Some(step.as_str()));
            lines.push((differs.then(|| code.to_owned()), format!("the check of {step}")));
        }
    }
    // What differs comes first: it must not be among what is only counted.
    lines.sort_by_key(|(code, _)| code.is_none());
    for (code, what) in lines.iter().take(NAMED_MAX) {
        writeln!(out, "  {:<18} {}", code.as_deref().unwrap_or("same"), printable(what))?;
    }
    if lines.is_empty() {
        writeln!(out, "  nothing: no step is done yet, or none leaves files")?;
    }
    let more = lines.len().saturating_sub(NAMED_MAX);
    if more > 0 {
        let differ = lines.iter().skip(NAMED_MAX).filter(|(code, _)| code.is_some()).count();
        writeln!(out, "  and {more} more, {differ} of them not the same")?;
    }
    risks(out, plan)
}

/// What continuing may cost.
pub(crate) fn risks(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    writeln!(out, "\nRisks")?;
    let grave = plan.findings.iter().filter(|it| it.severity() != Severity::Info).count();
    let reverts = plan.reverts.len();
    let again = plan.counts.get("rerun").copied().unwrap_or(0);
    if grave == 0 && reverts == 0 && again == 0 {
        return writeln!(out, "  none that can be seen");
    }
    if grave > 0 {
        writeln!(out, "  continuing accepts {}", count(grave, "finding"))?;
    }
    if reverts > 0 {
        writeln!(
            out,
            "  {} put back as before the attempt; copies are saved",
            count(reverts, "file")
        )?;
    }
    if again > 0 {
        let cost = plan.cost.rerun_usd;
        let cost = if cost > 0.0 { format!(", about ${cost:.2}") } else { String::new() };
        writeln!(out, "  {} to run again{cost}", count(again as usize, "step"))?;
    }
    Ok(())
}
