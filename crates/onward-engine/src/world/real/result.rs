//! The result files of attempts that ended: steps write them straight into our directory.
//!
//! Invariant: when the end of an attempt is recorded, however it came to it, its result file is
//! this user's alone and holds no secret that is known.

use std::{
    borrow::Cow,
    fs::{self, Permissions},
    io::{self, Seek as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use onward_core::{address::Address, event::Event, launch::out_name};

use crate::world::{open, secrets::Redactor};

/// Does that for the attempt of which `event` is the end. `absent` is a file that was not there
/// when the attempt was judged: nothing of it lives, so it never makes that file.
pub(super) fn clean(run_dir: &Path, redactor: &Redactor, absent: Option<&str>, event: &Event) {
    let names = match event {
        Event::AttemptFinished(it) => vec![out_name(&it.step, it.attempt, RESULT)],
        Event::AttemptLost { step, attempt, .. } => vec![out_name(step, *attempt, RESULT)],
        Event::AttemptAdopted(it) => of_all_attempts(run_dir, &it.step),
        Event::RunOpened(_)
        | Event::RunAdopted { .. }
        | Event::RunResumed(_)
        | Event::RunPaused { .. }
        | Event::RunEnded { .. }
        | Event::RunArchived { .. }
        | Event::GroupExpanded { .. }
        | Event::LoopTurned { .. }
        | Event::LoopEnded { .. }
        | Event::StepSkipped { .. }
        | Event::StepInvalidated { .. }
        | Event::AttemptStarted(_)
        | Event::AttemptSession { .. }
        | Event::AttemptSpent { .. }
        | Event::AttemptVerified(_)
        | Event::GateOpened { .. }
        | Event::GateDecided { .. }
        | Event::EffectIntended { .. }
        | Event::EffectSettled { .. }
        | Event::NativeExported { .. }
        | Event::LimitHit { .. }
        | Event::BudgetHit { .. }
        | Event::WorkflowChanged { .. }
        | Event::JournalRepaired { .. }
        | Event::Note { .. } => return,
    };
    for name in names.iter().filter(|name| absent != Some(name.as_str())) {
        // The journal is what counts; a disk that cannot be written stops the next append.
        let _ = clean_one(run_dir, name, redactor);
    }
}

const RESULT: &str = "result";

/// What is adopted does not say by which attempt it was made.
fn of_all_attempts(run_dir: &Path, step: &Address) -> Vec<String> {
    let Ok(entries) = fs::read_dir(run_dir.join("out")) else { return Vec::new() };
    let (before, after) = (format!("{}.", step.file_name()), format!(".{RESULT}"));
    let names = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
    let is_its = |name: &String| {
        let attempt = name.strip_prefix(&before).and_then(|it| it.strip_suffix(&after));
        attempt.is_some_and(|it| it.parse::<u32>().is_ok())
    };
    names.filter(is_its).map(|name| format!("out/{name}")).collect()
}

fn clean_one(run_dir: &Path, name: &str, redactor: &Redactor) -> io::Result<()> {
    let mut file = open::own(run_dir, name, open::To::Change, open::PRIVATE)?;
    file.set_permissions(Permissions::from_mode(open::PRIVATE))?;
    let bytes = open::all_of(file.try_clone()?, open::LOG_BYTES_MAX)?;
    if let Cow::Owned(clean) = redactor.bytes(&bytes) {
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&clean)?;
    }
    Ok(())
}
