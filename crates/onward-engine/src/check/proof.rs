//! What proves an attempt done of which no end is on disk.

use onward_core::{
    digest::Digest,
    evidence::Evidence,
    graph::NodeId,
    judge::ResultSeen,
    run::Run,
    survey::Proof,
    workflow::model::{Kind, Step},
    worktree::WorktreePlace,
};

use crate::{
    check::collect,
    revert::Unfinished,
    world::{Stop, World},
};

/// What an attempt has on its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Committed {
    No,
    /// And went on to change nothing after that, which would say that it was not through.
    ByItself,
    /// In its worktree, when it had been judged: the journal alone does not know it yet.
    ByUs,
}

/// A result that fits its schema proves itself, and so does a commit of the attempt's own; unless
/// the step wants more than that: outputs that are not all there, or a check, which then decides.
/// After a restart of the machine (`is_whole` is false) a result says nothing of other files.
pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    id: NodeId,
    one: &Unfinished<'_>,
    (committed, is_whole): (Committed, bool),
) -> Result<Option<(Proof, Rests)>, Stop> {
    let (step, entry) = (one.step, one.entry);
    let def = run.graph.node(id).def;
    let declared = run.defs.step(def);
    let Some(started) = entry.started.as_deref() else { return Ok(None) };
    // What it printed until it was killed may be half of what another step is to look at.
    if run.defs.stdout_is_read(def) {
        return Ok(None);
    }
    let rests = match (committed, &declared.check) {
        (Committed::No, _) if declared.result.is_none() => return Ok(None),
        (Committed::No, _) if !is_whole && (declared.edits || !started.writes.is_empty()) => {
            return Ok(None);
        }
        (Committed::ByUs, _) | (Committed::No | Committed::ByItself, None) => Rests::OnItself,
        (Committed::No | Committed::ByItself, Some(_)) => Rests::OnItsCheck,
    };
    let seen = collect::collect(world, declared, step, entry.attempts, &started.writes, false)?;
    if !seen.missing.is_empty() {
        return Ok(None);
    }
    let result = match seen.result {
        ResultSeen::Valid(result) => Some(result),
        // A call answers at its very end: others rest on its answer.
        ResultSeen::Absent if declared.result.is_none() && !is_call(declared) => None,
        ResultSeen::Absent
        | ResultSeen::NotJson(_)
        | ResultSeen::Violates(_)
        | ResultSeen::Refuses(_) => return Ok(None),
    };
    let digest = result.as_ref().map(|result| Digest::of(result.to_string().as_bytes()));
    let branch_head = match WorktreePlace::at(&started.cwd) {
        Some(place) => world.head(&place.path)?.and_then(|it| it.head),
        None => None,
    };
    let evidence = Evidence { files: seen.files, result: digest, stdout: None, branch_head };
    Ok(Some((Proof { evidence, result }, rests)))
}

fn is_call(step: &Step) -> bool {
    matches!(step.kind, Kind::Call { .. })
}

/// What a proof needs besides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rests {
    OnItself,
    /// Only the step's `check` can tell, and nothing ran it yet.
    OnItsCheck,
}
