//! What is wrong with the files of a run, or stands against going on with it.

use onward_core::{
    address::Address,
    finding::{Code as Known, Finding},
    plural::count,
    time::Timestamp,
    workflow::template::quoted,
};

use super::{
    Code, EXECUTION, PHASE, Phase,
    read::{DESIGN, Entry, Presence, Sheet, TaskEntry, VERIFICATION, in_task},
    tasks::{Stage, Turn},
    told::{DotagentTold, place},
};
use crate::kit::{
    age,
    code::Odd,
    order::circle,
    path::{from_project, inside, shown},
    status::Progress,
};

/// What helps where no state file can be read.
pub(super) const FROM_REPORTS: &str = "say yes to going on from the reports that are there \
     (`--accept state-unreadable`); both files are kept in memory/state/.archive";

pub(super) fn findings(told: &DotagentTold, now: Timestamp) -> Vec<Finding> {
    let mut all = Vec::new();
    unreadable(told, &mut all);
    writes(told, &mut all);
    pointer(told, &mut all);
    outputs(told, &mut all);
    times(told, now, &mut all);
    tasks(told, &mut all);
    all.extend(told.state.odd.findings());
    from_project(&mut all, &told.dir);
    all
}

/// The checkpoint is of another workflow than the one that our run goes on with.
pub(super) fn superseded(told: &DotagentTold) -> Option<Finding> {
    let (ours, there) = (told.id.as_deref()?.trim(), told.state.workflow_id.as_deref()?.trim());
    if ours == there {
        return None;
    }
    let message = format!(
        "the checkpoint is of the workflow `{}` now; this run continued `{}`, and is over",
        shown(there),
        shown(ours)
    );
    let hint = format!(
        "`onward resume {}` continues the new one; `onward cancel` ends this one",
        quoted(&shown(there))
    );
    let finding = Odd::RunSuperseded.finding(message).with_hint(hint).as_a_fact();
    let mut all = vec![finding.at_path(PHASE)];
    from_project(&mut all, &told.dir);
    all.pop()
}

/// Why there is no list of tasks, where no file of this workflow can hold one.
pub(super) fn lacking(told: &DotagentTold) -> String {
    match &told.state.stranger {
        Some(id) => format!("it is of another workflow, `{}`, and is not used", shown(id)),
        None => "it is missing".to_owned(),
    }
}

/// State files that cannot be read.
fn unreadable(told: &DotagentTold, all: &mut Vec<Finding>) {
    let lost = |sheet: &Sheet| sheet.map().is_none();
    let (phase, execution) = (&told.state.phase_file, &told.state.execution_file);
    if lost(phase) && lost(execution) {
        let message = "neither phase.json nor execution.json can be read";
        all.push(Odd::StateUnreadable.finding(message).at_path(PHASE).with_hint(FROM_REPORTS));
        return;
    }
    let tasks = found_again(told);
    let instead = tasks.as_deref().unwrap_or("no task is known");
    for (sheet, path, instead) in
        [(phase, PHASE, "the reports say how far the run is"), (execution, EXECUTION, instead)]
    {
        if let (Presence::Broken(why), true) = (&sheet.main, lost(sheet)) {
            let message = format!("it cannot be read ({why}); {instead}");
            all.push(Odd::StateRebuilt.finding(message).at_path(path));
        }
    }
    let has_tasks = told.code == Code::Implementation || told.is_past(Phase::Implementation);
    if phase.is_missing() {
        let message = "it is missing; the reports say how far the run is";
        all.push(Odd::StateRebuilt.finding(message).at_path(PHASE));
    }
    if let (Some(tasks), Presence::Missing | Presence::Whole(_)) = (&tasks, &execution.main) {
        let none = || "it has no list of tasks".to_owned();
        let why = if lost(execution) { lacking(told) } else { none() };
        let message = format!("{why}; {tasks}");
        all.push(Odd::StateRebuilt.finding(message).at_path(EXECUTION));
    } else if !phase.is_missing() && execution.is_missing() && has_tasks {
        let listed = told.designed();
        // Right after the design there is no such file yet.
        let is_due = told.state.current.is_none_or(|it| it >= Phase::Implementation);
        if listed.is_empty() || is_due || told.state.stranger.is_some() {
            let known = match listed.as_slice() {
                [] => "no task is known".to_owned(),
                ids => format!("the design lists {}, and none has begun", shown(&ids.join(", "))),
            };
            let message = format!("{}: {known}", lacking(told));
            all.push(Finding::new(Known::MissingArtifact, message).at_path(EXECUTION));
        }
    } else if told.state.stranger.is_some() && !told.state.is_fresh() {
        all.push(Finding::new(Known::StatusDisagrees, lacking(told)).at_path(EXECUTION));
    }
}

/// What became of the tasks whose list is lost.
fn found_again(told: &DotagentTold) -> Option<String> {
    told.state.rebuilt.as_ref()?;
    let verified = told.tasks.iter().filter(|it| it.stage == Stage::Verified);
    let verified: Vec<&str> = verified.map(|it| it.id.as_str()).collect();
    let count = count(told.tasks.len(), "task");
    let verified = match verified.as_slice() {
        [] => "none is verified".to_owned(),
        ids => format!("verified: {}", shown(&ids.join(", "))),
    };
    Some(format!("the design, outputs and verdicts tell of {count}; {verified}"))
}

/// Signs of a write that was not finished.
fn writes(told: &DotagentTold, all: &mut Vec<Finding>) {
    if !told.state.interruption_safe {
        let message = "`interruption_safe` is false: the last write was not finished; the file \
             parses and is used";
        all.push(Odd::InterruptedWrite.finding(message).at_path(PHASE));
    }
    for (path, sheet) in &told.state.sheets {
        let used = match (&sheet.main, &sheet.tmp) {
            (_, Presence::Missing) => continue,
            (Presence::Whole(_), _) => "the file itself is whole and counts",
            (Presence::Missing | Presence::Broken(_), Presence::Whole(_)) => {
                "the file itself is not whole, and this one counts"
            }
            (Presence::Missing | Presence::Broken(_), Presence::Broken(_)) => {
                "neither it nor the file itself can be read"
            }
        };
        let message = format!("a write was cut off: {used}");
        let hint = "nothing deletes it; remove it when the run continues well";
        let finding = Odd::LeftoverTempFile.finding(message).with_hint(hint);
        all.push(finding.at_path(format!("{path}.tmp")));
    }
}

/// Where the state says that the run is, against what else it says.
fn pointer(told: &DotagentTold, all: &mut Vec<Finding>) {
    let state = &told.state;
    if state.current.is_none() && state.phase_file.map().is_some() {
        let named = state.current_word.as_deref().map_or("no phase".to_owned(), |word| {
            format!("`{}`, which is not a phase", shown(word))
        });
        let message = format!("`current_phase` names {named}; the reports say how far the run is");
        all.push(Odd::MissingCurrentPhase.finding(message).at_path(PHASE));
    }
    let known: Vec<Phase> = state.completed.iter().filter_map(|it| it.phase).collect();
    for pair in known.windows(2).filter(|pair| pair[1] <= pair[0]) {
        let message = format!(
            "phases only move forward, and `completed_phases` has {} after {}",
            pair[1].as_str(),
            pair[0].as_str()
        );
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(PHASE));
    }
    for entry in state.completed.iter().filter(|it| it.phase.is_none()) {
        let message =
            format!("`completed_phases` names `{}`, which is not a phase", shown(&entry.word));
        all.push(Odd::OddValue.finding(message).at_path(PHASE));
    }
    let Some(current) = state.current else { return };
    if let Some(later) = known.iter().find(|phase| **phase > current) {
        let message = format!(
            "the run is in {}, and {} is said to be completed already",
            current.as_str(),
            later.as_str()
        );
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(PHASE));
    }
    let ahead = Phase::ALL.into_iter().filter(|it| *it < current && !known.contains(it));
    let ahead: Vec<&str> = ahead.map(Phase::as_str).collect();
    if !ahead.is_empty() {
        let message = format!(
            "the run is in {}, and `completed_phases` does not name {}",
            current.as_str(),
            ahead.join(", ")
        );
        all.push(Finding::new(Known::PhaseAheadOfEvidence, message).at_path(PHASE));
    }
    let is_said = state.checkpoints.iter().any(|it| it.phase == Some(Phase::Requirements));
    // The phase before is complete, and this one not begun: the moment in which the user is asked.
    let is_between = current == Phase::Architecture && state.status == Some(Progress::Done);
    if told.code == Code::Architects && is_between && !is_said {
        let message = "the run is past the demand, and nothing says that the user approved it";
        let hint = "`onward resume --from approval` asks first";
        let finding = Finding::new(Known::PhaseAheadOfEvidence, message).at_path(PHASE);
        all.push(finding.with_hint(hint));
    }
    if current == Phase::Reflection && state.verdict(VERIFICATION) == Some(false) {
        let message = "the verification failed, and the run is past it";
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(VERIFICATION));
    }
}

/// Outputs that are named and not there, or do not parse.
fn outputs(told: &DotagentTold, all: &mut Vec<Finding>) {
    let state = &told.state;
    for Entry { word, output, phase, .. } in &state.completed {
        let Some(named) = output.as_ref().filter(|it| !it.trim().is_empty()) else { continue };
        let what = format!("the output of {}", shown(word));
        match inside(named) {
            None => all.push(refused(named, &what, PHASE)),
            Some(path) => {
                let found = output_at(told, &path, &what);
                let is_next = phase.is_some_and(|it| !told.is_past(it));
                all.extend(found.map(|it| {
                    if is_next {
                        it.with_hint("the step that makes it runs again")
                    } else {
                        made_again(it, phase.map(maker))
                    }
                }));
            }
        }
    }
    for entry in &state.tasks {
        if entry.refused {
            all.push(refused("", &format!("the output of {}", shown(&entry.id)), EXECUTION));
        }
        let is_due = match entry.status {
            Some(Progress::Pending | Progress::Running | Progress::Failed | Progress::Blocked)
            | None => false,
            Some(Progress::PreComplete | Progress::Done | Progress::Verified) => true,
        };
        if is_due {
            let what = format!("the output of {}", shown(&entry.id));
            let maker = Address::from_text("implementation").item(&entry.id).to_string();
            let found = output_at(told, &entry.output, &what);
            all.extend(found.map(|it| made_again(it, Some(&maker))));
        }
    }
    strange(told, all);
    // Reports that no state file names.
    let reports = [super::read::DEMAND, DESIGN, VERIFICATION];
    let designs = state.designs().map(|(path, _)| path);
    for path in reports.into_iter().chain(designs) {
        let is_named = all.iter().any(|it| it.path.as_deref() == Some(path));
        if let Some(Sheet { main: Presence::Broken(why), .. }) = state.sheet(path)
            && !is_named
            && !told.is_void(path)
        {
            all.push(broken(path, "a report", why));
        }
    }
}

/// What lies in the place of a task's output or verdict, and is another task's.
fn strange(told: &DotagentTold, all: &mut Vec<Finding>) {
    let state = &told.state;
    let is_begun = |it: &&TaskEntry| it.status != Some(Progress::Pending);
    for TaskEntry { id, output, .. } in state.tasks.iter().filter(is_begun) {
        let verdict = in_task(id, "verification.json");
        for (path, what) in [(output, "output"), (&verdict, "verdict")] {
            let Some(other) = state.another(path, id) else { continue };
            let (other, id) = (shown(&other), shown(id));
            let message = format!("it names `{other}` and counts as no {what} of {id}");
            all.push(Finding::new(Known::StatusDisagrees, message).at_path(path));
        }
    }
}

fn output_at(told: &DotagentTold, path: &str, what: &str) -> Option<Finding> {
    match told.state.sheet(path).map(|sheet| (&sheet.main, sheet.map())) {
        None | Some((Presence::Missing, None)) => {
            let message = format!("{what} is missing");
            Some(Finding::new(Known::MissingArtifact, message).at_path(path))
        }
        Some((Presence::Broken(_), None)) if told.is_void(path) => None,
        Some((Presence::Broken(why), None)) => Some(broken(path, what, why)),
        Some((_, Some(_)) | (Presence::Whole(_), None)) => None,
    }
}

/// What makes the output of a phase.
const fn maker(phase: Phase) -> &'static str {
    match phase {
        Phase::Requirements => Code::Requirements.as_str(),
        Phase::Architecture => Code::Roundtable.as_str(),
        Phase::Implementation => Code::Implementation.as_str(),
        Phase::Verification => Code::Verification.as_str(),
        Phase::Reflection => Code::Reflection.as_str(),
    }
}

/// What is said to be done stays done: its output is made again by a person's word.
fn made_again(finding: Finding, maker: Option<&str>) -> Finding {
    let Some(maker) = maker else { return finding };
    let again = format!("`onward resume --from {maker}` makes it and all that rests on it again");
    finding.with_hint(format!("put it back; or {again}"))
}

fn broken(path: &str, what: &str, why: &str) -> Finding {
    let message = format!("{what} does not parse ({why}) and counts as missing");
    Finding::new(Known::ArtifactUnproved, message).at_path(path)
}

fn refused(named: &str, what: &str, file: &str) -> Finding {
    let named = if named.is_empty() { String::new() } else { format!(", `{}`,", shown(named)) };
    let message = format!("{what}{named} lies outside of the project and was not looked at");
    Odd::PathRefused.finding(message).at_path(file)
}

fn times(told: &DotagentTold, now: Timestamp, all: &mut Vec<Finding>) {
    let state = &told.state;
    let heads = [("started_at", state.started_at), ("last_updated", state.last_updated)];
    let heads = heads.into_iter().filter_map(|(key, at)| Some((key.to_owned(), at?)));
    let entries = [("completed_at", &state.completed), ("approved_at", &state.checkpoints)];
    let entries = entries.into_iter().flat_map(|(key, list)| {
        let named = move |it: &Entry| Some((format!("`{key}` of {}", shown(&it.word)), it.at?));
        list.iter().filter_map(named)
    });
    for (what, at) in heads.chain(entries) {
        all.extend(age::future(now, &what, at).map(|it| it.at_path(PHASE)));
    }
    for TaskEntry { id, moments, .. } in &state.tasks {
        for (key, at) in moments {
            let what = format!("`{key}` of {}", shown(id));
            all.extend(age::future(now, &what, *at).map(|it| it.at_path(EXECUTION)));
        }
    }
    let last = state.last_updated.or(state.touched).filter(|_| told.code != Code::Complete);
    all.extend(last.and_then(|at| age::stale(now, at)).map(|it| it.at_path(PHASE)));
}

fn tasks(told: &DotagentTold, all: &mut Vec<Finding>) {
    for id in &told.state.doubled {
        let message = format!("two tasks have the id `{}`; the first one counts", shown(id));
        all.push(Finding::new(Known::StatusDisagrees, message).at_path(EXECUTION));
    }
    all.extend(told.circles.iter().map(|it| circle(it).at_path(EXECUTION)));
    if told.is_past(Phase::Implementation) {
        let open: Vec<&str> = told
            .tasks
            .iter()
            .filter(|it| it.stage != Stage::Verified)
            .map(|it| it.id.as_str())
            .collect();
        if !open.is_empty() {
            let open = shown(&open.join(", "));
            let message = format!("the run is past IMPLEMENTATION, and not verified: {open}");
            all.push(Finding::new(Known::PhaseAheadOfEvidence, message).at_path(EXECUTION));
        }
        return;
    }
    let is_told = told.state.rebuilt.is_some();
    for (task, entry) in told.tasks.iter().zip(&told.state.tasks) {
        let word = shown(&entry.word);
        let finding = match (task.turn, task.stage) {
            (Turn::AsWritten | Turn::Retry | Turn::Unproved, _) => continue,
            // Nothing was written of it that a verdict could be held against.
            (Turn::FromVerdict, _) if is_told => continue,
            (Turn::Orphan, _) => Odd::OrphanTask.finding(format!(
                "it was running and left no output that can be read; attempt {} starts",
                task.attempts
            )),
            (Turn::FromOutput, stage) => {
                let says = match stage {
                    Stage::Blocked => "blocked",
                    Stage::Open => "failed",
                    Stage::Implemented | Stage::Rejected | Stage::Verified => "pre_complete",
                };
                let message = format!("execution.json says `{word}`, its output says `{says}`");
                Finding::new(Known::StatusDisagrees, message)
            }
            (Turn::FromVerdict, stage) => {
                let says = if stage == Stage::Verified { "good" } else { "not good" };
                let message = format!("execution.json says `{word}`, and its verdict is {says}");
                Finding::new(Known::StatusDisagrees, message)
            }
            (Turn::UsedUp, _) => {
                let hint = "fix it by hand, or accept this: it is tried once more";
                let message = format!(
                    "{} has failed after {} attempts and is not tried again by itself",
                    shown(&entry.id),
                    entry.attempts
                );
                Odd::AttemptsUsedUp.finding(message).with_hint(hint)
            }
            (Turn::Unknown, _) => {
                Odd::OddValue.finding(format!("`{word}` is not a status; it counts as pending"))
            }
        };
        all.push(finding.at_step(&place(task)).at_path(EXECUTION));
    }
}
