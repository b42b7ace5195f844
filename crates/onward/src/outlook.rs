//! How much of a run can be recovered, in words: what stays valid, what must run again, and where
//! nothing can go on, the ways out.
//!
//! Invariant: the same words on a terminal and off one, and each way out is a command to paste.

use std::io::{self, Write};

use onward_core::{
    finding::{Code, Finding, Severity},
    plan::{AgeBand, Outlook, Plan},
    run::Run,
    survey::outputs_to_check,
};

use crate::{diagnostic::printable, session::word};

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
    let again = plan.steps.iter().filter(|step| step.counts_no_more()).count();
    let kept = plan.counts.get("keep").copied().unwrap_or(0);
    let id = &plan.run.id;
    let noun = if again == 1 { "step that was done runs" } else { "steps that were done run" };
    if kept == 0 || plan.run.age_band == AgeBand::Stale {
        let why = if kept == 0 { "nothing that is done stays" } else { "it has lain for long" };
        writeln!(out, "  Suggestion: start anew, as {why}: onward run --again {id}")
    } else {
        writeln!(out, "  Suggestion: go on; {again} {noun} again, {kept} stay as they are")
    }
}

fn not(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let id = &plan.run.id;
    writeln!(out, "\n{id} cannot be resumed as it is:")?;
    let stuck =
        |it: &&Finding| it.severity() == Severity::Blocking && !Code::can_be_accepted(&it.code);
    for finding in plan.findings.iter().filter(stuck) {
        writeln!(out, "  {}: {}", finding.code, printable(&finding.message))?;
        if let Some(hint) = &finding.hint {
            writeln!(out, "    {}", printable(hint))?;
        }
    }
    phases(out, plan)?;
    let from = plan.phases().valid.pop().or_else(|| plan.recovery_point.phase.clone());
    // Nothing more can be written into a journal that is damaged.
    let is_damaged = plan.findings.iter().any(|it| it.code == Code::JournalDamaged.as_str());
    let first = if is_damaged { format!("onward repair {id} --yes && ") } else { String::new() };
    writeln!(out, "Ways out, besides mending that:")?;
    let mut way = |what: &str, command: &str| writeln!(out, "  {what}:\n    {command}");
    way("start anew; all files stay", &format!("onward run --again {id}"))?;
    if let Some(from) = from {
        let command = format!("{first}onward resume {id} --from {}", word(&from));
        way("once it is mended, enter at a phase that is still valid", &command)?;
    }
    way("clean up and end it", &format!("{first}onward cancel {id} && onward archive {id}"))
}

fn phases(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    let phases = plan.phases();
    for (names, what) in [
        (phases.valid, "stays valid"),
        (phases.again, "runs again"),
        (phases.under_way, "goes on"),
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

fn risks(out: &mut dyn Write, plan: &Plan) -> io::Result<()> {
    writeln!(out, "\nRisks")?;
    let grave = plan.findings.iter().filter(|it| it.severity() != Severity::Info).count();
    let reverts = plan.reverts.len();
    let again = plan.counts.get("rerun").copied().unwrap_or(0);
    if grave == 0 && reverts == 0 && again == 0 {
        return writeln!(out, "  none that can be seen");
    }
    if grave > 0 {
        writeln!(out, "  {grave} findings above are accepted by going on")?;
    }
    if reverts > 0 {
        writeln!(out, "  {reverts} files are put back as they were; they stay in the rescue")?;
    }
    if again > 0 {
        let cost = plan.cost.rerun_usd;
        let cost = if cost > 0.0 { format!(", about ${cost:.2}") } else { String::new() };
        writeln!(out, "  {again} steps run again{cost}")?;
    }
    Ok(())
}
