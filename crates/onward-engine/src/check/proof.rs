//! Whether what a killed attempt left proves by itself that the attempt was done.
//!
//! Invariant: a file proves an end only if nothing shows that the attempt went on after it.

use onward_core::{
    digest::Digest,
    evidence::Evidence,
    graph::NodeId,
    judge::ResultSeen,
    run::Run,
    said::Closed,
    survey::Proof,
    workflow::model::{Kind, Step},
    worktree::WorktreePlace,
};

use crate::{
    check::{collect, hear::Ear},
    revert::Unfinished,
    world::{At, Change, Stop, World, out_name},
};

/// What is known around an attempt.
pub(super) struct Seen<'a> {
    pub(super) committed: Committed,
    /// The machine was not restarted since.
    pub(super) is_whole: bool,
    /// Paths that other hands changed since.
    pub(super) edited: &'a [String],
}

/// What an attempt has on its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Committed {
    No,
    /// And went on to change nothing after that, which would say that it was not through.
    ByItself,
    /// In its worktree, when it had been judged: the journal alone does not know it yet.
    ByUs,
}

/// A result that fits its schema proves itself where it is the last thing that the attempt did, and
/// so does a commit of the attempt's own; unless
/// the step wants more than that: outputs that are not all there, or a check, which then decides.
/// After a restart of the machine (`is_whole` is false) a result says nothing of other files.
pub(super) fn look<W: World>(
    world: &mut W,
    run: &Run,
    id: NodeId,
    one: &Unfinished<'_>,
    around: &Seen<'_>,
) -> Result<Option<(Proof, Rests)>, Stop> {
    let Seen { committed, is_whole, .. } = *around;
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
    let says_so = committed == Committed::No && rests == Rests::OnItself;
    if says_so && !is_last_word(world, run, one, around)? {
        return Ok(None);
    }
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

/// Whether the result is the last thing that an attempt did, as far as can be told: an agent that
/// says when it is through has said so, and nothing was written after it.
fn is_last_word<W: World>(
    world: &mut W,
    run: &Run,
    one: &Unfinished<'_>,
    around: &Seen<'_>,
) -> Result<bool, Stop> {
    let (step, attempt) = (one.step, one.entry.attempts);
    if let Some(ear) = Ear::of(world, run, step).filter(Ear::is_live)
        && ear.hear_out(world, step)?.closed != Some(Closed::Well)
    {
        return Ok(false);
    }
    let name = out_name(step, attempt, "result");
    let Some(written_ns) = world.changed_ns(At::Run(&name))? else { return Ok(true) };
    let is_own = |it: &&Change| !around.edited.contains(&it.path);
    let mut own = one.left.changes.iter().filter(is_own);
    Ok(!own.any(|it| it.changed_ns.is_some_and(|at| at > written_ns)))
}
