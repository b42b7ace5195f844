//! Where a resume goes on, in one sentence.

use super::{PlannedStep, RecoveryPoint, Resumption, Status, Verdict, verdict::ended_meanwhile};
use crate::{address::Address, plural::count, run::Run};

/// What the resume does first, in one sentence. It follows from the rows: the steps it names are
/// started, continued, waited for or asked about, and it says that none is left only if none is.
/// Rows of kept steps may be missing; `kept` says how many there are.
pub(super) fn recovery_point(
    after: &Run,
    made: &Resumption,
    (steps, kept): (&[PlannedStep], usize),
    status: Status,
) -> RecoveryPoint {
    let failed_meanwhile = ended_meanwhile(after, made);
    let is_reachable = |step: &&&PlannedStep| {
        let id = after.graph.find(&Address::from_text(&step.step));
        id.is_some_and(|id| after.graph.node(id).is_reachable())
    };
    let active: Vec<&PlannedStep> = steps.iter().filter(|step| acts(step.verdict)).collect();
    let reachable: Vec<&PlannedStep> = active.iter().filter(is_reachable).copied().collect();
    // Behind a result that is taken or a step that is waited for, nothing can be reached yet.
    let is_behind = reachable.is_empty();
    let entry = if is_behind { active.get(..1).unwrap_or(&[]).to_vec() } else { reachable };
    let ends = after.state.cancelling.as_ref();
    let verdict_of_first = entry.first().map(|row| row.verdict);
    let first_failed =
        entry.first().is_some_and(|row| row.why.iter().any(|it| it.cause == "failed"));
    let entry: Vec<String> = match status {
        _ if ends.is_some() => Vec::new(),
        Status::Completed => Vec::new(),
        Status::Fresh
        | Status::Running
        | Status::Interrupted
        | Status::Waiting
        | Status::Parked
        | Status::OverBudget
        | Status::Failed
        | Status::Cancelled => entry.into_iter().map(|step| step.step.clone()).collect(),
    };
    let first = entry.first().map(|step| Address::from_text(step));
    let phase = first.as_ref().map(|step| {
        let top = step.as_str().split('/').next().unwrap_or("");
        top.split('[').next().unwrap_or(top).to_owned()
    });
    let round = first.as_ref().and_then(|step| innermost_turn(after, step));
    let kept = count(kept, "step");
    let compared = steps.iter().find(|row| row.verdict == Verdict::Verify);
    let asked = steps.iter().find_map(|row| asked_first(row, made));
    let (code, summary) = match (status, entry.as_slice(), verdict_of_first) {
        (Status::Completed, ..) => ("complete", "everything is done".to_owned()),
        (_, [], _) if ends.is_some() => {
            let gate = ends.map(Address::as_str).unwrap_or_default();
            let text =
                format!("the answer to {gate} ends the run; only the closing record is missing");
            ("settle", text)
        }
        (_, [], _) if failed_meanwhile.is_some() => {
            let step = failed_meanwhile.map(Address::as_str).unwrap_or_default();
            let text = format!("{kept} kept; {step} failed while the engine was down");
            ("settle", format!("{text}: that is recorded, and the run ends as failed"))
        }
        (_, [], _) => match (asked, compared) {
            (Some((first, _)), _) => ("settle", format!("{kept} kept; {first}")),
            (None, Some(row)) if row.waits_for_when() => {
                ("settle", format!("{kept} kept; {} runs if its `when` holds", row.step))
            }
            (None, Some(row)) => {
                let text = format!("{kept} kept; nothing starts, unless what {} needs", row.step);
                ("settle", format!("{text} comes out otherwise"))
            }
            (None, None) => {
                ("settle", "all steps are done; only the closing record is missing".to_owned())
            }
        },
        (Status::Fresh, [first, ..], _) => {
            ("start", format!("nothing has run yet; starts at {first}"))
        }
        (Status::Cancelled, [first, ..], _) if !made.choices.revive => {
            let text = format!("it was cancelled; with `--force` it continues at {first}");
            ("continue", format!("{text}, {kept} kept"))
        }
        (
            Status::Running
            | Status::Interrupted
            | Status::Waiting
            | Status::Parked
            | Status::OverBudget
            | Status::Failed
            | Status::Cancelled,
            [first, ..],
            verdict,
        ) => {
            if let Some((what, either)) = asked.filter(|_| is_behind) {
                ("continue", format!("{kept} kept; {what}; continues at {first} {either}"))
            } else if status == Status::Waiting && verdict == Some(Verdict::Ask) {
                ("gate", format!("{kept} kept; {first} waits for your answer"))
            } else if status == Status::Failed && first_failed {
                ("failed-steps", format!("{kept} kept; continues at {first}, which failed"))
            } else {
                ("continue", format!("{kept} kept; continues at {first}"))
            }
        }
    };
    RecoveryPoint { code: code.to_owned(), phase, round, steps: entry, summary }
}

/// What the resume asks before anything of such a step is known, and what the answer leads to.
fn asked_first(row: &PlannedStep, made: &Resumption) -> Option<(String, String)> {
    let (name, step) = (&row.step, Address::from_text(&row.step));
    let is_retaken = || {
        let changed = row.why.iter().any(|it| it.cause.starts_with("needs."));
        changed || made.retaken.contains_key(&step)
    };
    if made.to_probe.contains(&step) && is_retaken() {
        let what = format!("the probe of {name} is asked first, and {name} is made again");
        return Some((format!("{what} whatever it says"), "after that".to_owned()));
    }
    if made.to_probe.contains(&step) {
        let either = format!("if it happened, else at {name}");
        return Some((format!("the probe of {name} is asked first"), either));
    }
    made.to_check.contains(&step).then(|| {
        let either = format!("if it agrees, else at {name}");
        (format!("the check of {name} runs first"), either)
    })
}

/// Whether the resume does something about such a step, beyond taking what is there.
fn acts(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Reattach | Verdict::Continue | Verdict::Rerun | Verdict::Run | Verdict::Ask => {
            true
        }
        Verdict::Keep | Verdict::Skip | Verdict::Verify | Verdict::Adopt => false,
    }
}

/// The turn of the nearest loop around `step`.
fn innermost_turn(after: &Run, step: &Address) -> Option<u32> {
    let mut scope = Some(step.clone());
    while let Some(inner) = scope {
        if let Some((group, key)) = inner.group_and_key()
            && after.state.loops.contains_key(&group)
        {
            return key.parse().ok();
        }
        scope = inner.parent();
    }
    None
}
