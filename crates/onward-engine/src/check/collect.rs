//! What an attempt left, looked at after it ended.

use std::io::ErrorKind;

use onward_core::{
    address::Address,
    evidence::{FileProof, Stat},
    journal::{VALUE_DEPTH_MAX, is_flat_enough},
    judge::{Collected, Objection, ResultSeen},
    workflow::model::Step,
};

use crate::world::{At, Stop, World, out_name};

/// A result goes into the journal, a line of which has a bound.
const RESULT_BYTES_MAX: usize = 48 << 20;
/// How much of standard output a template can see.
pub(crate) const STDOUT_BYTES_MAX: usize = 64 * 1024;

pub fn collect<W: World>(
    world: &mut W,
    step: &Step,
    address: &Address,
    attempt: u32,
    writes: &[String],
    stdout_is_read: bool,
) -> Result<Collected, Stop> {
    let mut seen = Collected::default();
    for pattern in writes {
        let files: Vec<FileProof> = world.glob(pattern, &[])?;
        let leads_out = |it: &FileProof| it.stat == Stat::OUTSIDE;
        let (outside, files): (Vec<_>, Vec<_>) = files.into_iter().partition(leads_out);
        seen.outside.extend(outside.into_iter().map(|it| it.path));
        if files.is_empty() {
            seen.missing.push(pattern.clone());
        }
        seen.files.extend(files);
    }
    seen.files.sort_by(|one, other| one.path.cmp(&other.path));
    seen.files.dedup_by(|one, other| one.path == other.path);
    // They are held as long as the run is.
    seen.files.shrink_to_fit();
    seen.result = result(world, step, address, attempt)?;
    if stdout_is_read {
        let name = out_name(address, attempt, "out");
        let mut bytes = world.read(At::Run(&name))?.unwrap_or_default();
        bytes.truncate(STDOUT_BYTES_MAX);
        seen.stdout = Some(String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok(seen)
}

/// Brings what a step left to the disk: after this a power cut does not take it.
pub fn settle<W: World>(
    world: &mut W,
    address: &Address,
    attempt: u32,
    seen: &Collected,
) -> Result<(), Stop> {
    for file in &seen.files {
        settle_one(world, At::Project(&file.path))?;
    }
    if seen.result == ResultSeen::Absent {
        return Ok(());
    }
    settle_one(world, At::Run(&out_name(address, attempt, "result")))
}

fn settle_one<W: World>(world: &mut W, at: At<'_>) -> Result<(), Stop> {
    match world.sync(at) {
        // A file of a branch whose worktree is gone is in the repository.
        Err(Stop::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(()),
        other => other.and_then(|()| world.sync_dir(at)),
    }
}

/// The result file, held against the step's schema where it has one.
pub fn result<W: World>(
    world: &mut W,
    step: &Step,
    address: &Address,
    attempt: u32,
) -> Result<ResultSeen, Stop> {
    let name = out_name(address, attempt, "result");
    let Some(bytes) = world.read(At::Run(&name))? else { return Ok(ResultSeen::Absent) };
    if bytes.len() > RESULT_BYTES_MAX {
        let mib = RESULT_BYTES_MAX >> 20;
        return Ok(ResultSeen::NotJson(format!(
            "larger than the {mib} MiB that a result may have"
        )));
    }
    let value: serde_json::Value = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(error) => return Ok(ResultSeen::NotJson(format!("not JSON: {error}"))),
    };
    if !is_flat_enough(&value) {
        return Ok(ResultSeen::NotJson(format!(
            "nested deeper than the {VALUE_DEPTH_MAX} levels that a result may have"
        )));
    }
    match &step.result {
        None => Ok(ResultSeen::Valid(value)),
        Some(schema) => match world.validate(&schema.text, &value) {
            Ok(()) => Ok(ResultSeen::Valid(value)),
            Err(Objection::Violates(why)) => Ok(ResultSeen::Violates(why)),
            Err(Objection::Refuses(what)) => Ok(ResultSeen::Refuses(what)),
        },
    }
}
