//! What the files say was done, as rows of a plan, each with its moment.

use onward_core::{address::Address, time::Timestamp};

use super::{
    Code, Phase,
    read::MERGED,
    tasks::Stage,
    told::{DotagentTold, place},
};

/// In the order of the work; what has no moment is left out.
pub(super) fn rows(told: &DotagentTold) -> Vec<(Address, Timestamp)> {
    let state = &told.state;
    let counts = |phase: Phase| {
        told.is_past(phase) || phase == Phase::Requirements && told.code == Code::Approval
    };
    let mut rows = Vec::new();
    for phase in Phase::ALL.into_iter().filter(|it| counts(*it)) {
        let done = state.completed.iter().filter(|it| it.phase == Some(phase));
        let said = state.checkpoints.iter().filter(|it| it.phase == Some(phase));
        let (made, gate) = of_phase(phase);
        rows.extend(done.filter_map(|it| Some((Address::from_text(made?), it.at?))));
        rows.extend(said.filter_map(|it| Some((Address::from_text(gate?), it.at?))));
    }
    if told.code == Code::Roundtable {
        // No state file tells of them: what they wrote does.
        let written = |path: &str| told.files.file(path).and_then(|file| file.modified);
        let designs = state.designs().filter(|(_, sheet)| sheet.is_valid());
        let designed = designs.filter_map(|(path, _)| written(path)).max();
        let merged = Some(MERGED).filter(|_| told.is_merged()).and_then(written);
        rows.extend(designed.map(|at| (Address::from_text("architects"), at)));
        rows.extend(merged.map(|at| (Address::from_text("roundtable"), at)));
    }
    for (task, entry) in told.tasks.iter().zip(&state.tasks) {
        let ended = entry.moments.iter().find(|(key, _)| *key == "completed_at");
        if let (Stage::Verified, Some((_, at))) = (task.stage, ended) {
            rows.push((place(task), *at));
        }
    }
    rows
}

/// The row that makes what the phase ends in, and the one in which the user says yes to it. The
/// implementation is its tasks.
const fn of_phase(phase: Phase) -> (Option<&'static str>, Option<&'static str>) {
    match phase {
        Phase::Requirements => (Some("requirements"), Some("approve")),
        Phase::Architecture => (Some("roundtable"), Some("approve-design")),
        Phase::Implementation => (None, None),
        Phase::Verification => (Some("verification"), None),
        Phase::Reflection => (Some("reflection"), None),
    }
}
