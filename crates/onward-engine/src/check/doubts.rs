//! What else the world says about a run: other witnesses, moved content, checks, an edited
//! workflow.
//!
//! Reads only, except that a `check` is a command and does what it does.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide::{self, Content, Defined, defined_against, gate_content, unused_answers},
    evidence::Ending,
    facts::Facts,
    finding::{Code, Finding},
    key::Key,
    plan::edited,
    recovery::Probed,
    run::Run,
    state::{AskedSince, Phase},
    survey::{Edited, Survey},
    workflow::{Loaded, model::Workflow},
    worktree::{WorktreePlace, worktree_path},
};

use crate::{
    check::needs::find_out,
    world::{Condition, Connected, Stop, World, files},
};

/// Half a file, left where an undo was cut short; the undo makes it again.
pub(crate) fn look_for_leftovers<W: World>(
    world: &mut W,
    run: &Run,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let begun = run.state.steps.noteworthy().filter_map(|(_, entry)| entry.started.as_deref());
    let reverts = begun.flat_map(|started| &started.reverts).chain(run.state.pending_reverts());
    let names: BTreeSet<String> = reverts.map(|it| files::temporary_name(&it.path)).collect();
    for name in names {
        if world.digest(&name)?.is_some() {
            let finding =
                Finding::new(Code::LeftoverTempFile, format!("{name} was left half made"));
            survey.findings.push(finding.at_path(name).with_hint("nothing reads it; delete it"));
        }
    }
    Ok(())
}

/// Answers that no step has acted on yet, whose content has moved since.
pub(crate) fn look_at_approvals<W: World>(
    world: &mut W,
    run: &Run,
    survey: &mut Survey,
) -> Result<(), Stop> {
    for gate in unused_answers(run) {
        let mut facts = Facts::default();
        loop {
            match gate_content(run, &facts, gate) {
                Content::Lacks(needs) => find_out(world, facts.at(gate), needs)?,
                Content::Moved => break survey.outdated_approvals.push(gate.clone()),
                Content::Same => break,
            }
        }
    }
    Ok(())
}

/// The supervisor's log has the last word on how an attempt ended: two different endings cannot
/// both be true.
pub(crate) fn disagreements(run: &Run, connected: &Connected) -> BTreeMap<Address, String> {
    let mut all = BTreeMap::new();
    for seal in &connected.seals {
        let Some(entry) = run.state.step(&seal.step) else { continue };
        // Of a start in the past no nonce is kept: the number tells whose it is, unless it is known
        // to be of another one.
        let counts = entry.phase == Phase::Done && entry.attempts == seal.attempt;
        // Work adopted from elsewhere has no key, and does not rest on how an attempt ended.
        if counts && entry.key.is_some() && !seal.ending.is_success() {
            let how = match &seal.ending {
                Ending::Exited { code } => format!("exited with {code}"),
                Ending::Signalled { signal } => format!("was ended by signal {signal}"),
                Ending::TimedOut { .. } => "ran out of time".to_owned(),
                Ending::Stopped => "was stopped".to_owned(),
                Ending::NotStarted { why } => format!("could not be started: {why}"),
            };
            all.insert(seal.step.clone(), format!("its seal says that it {how}"));
        }
    }
    all
}

/// Runs the `check` of every done step that has one: what it proved then must hold now.
pub(crate) fn run_checks<W: World>(
    world: &mut W,
    run: &Run,
    survey: &mut Survey,
) -> Result<(), Stop> {
    for (step, entry) in &run.state.steps {
        let Some(id) = run.graph.find(step).filter(|_| entry.phase == Phase::Done) else {
            continue;
        };
        let def = run.graph.node(id).def;
        if !run.defs.brief(def).has_check() {
            continue;
        }
        let declared = run.defs.step(def);
        let check = declared.check.as_ref();
        let Some(command) = check.and_then(|it| decide::command(run, id, it)) else {
            continue;
        };
        let tree = worktree_path(run, id);
        if let Some(place) = WorktreePlace::at(&tree)
            && matches!(world.worktree_condition(&place)?, Condition::Missing { .. })
        {
            // Its commit is what is left to prove it.
            continue;
        }
        // No exit code but 0 is an answer here.
        if world.probe(&tree, &command, i32::MIN)? != Probed::Happened {
            let says = "its check does not agree any more".to_owned();
            survey.disagreements.insert(step.clone(), says);
        }
    }
    Ok(())
}

/// How a step that did not finish would be asked for differently now; `None` = it would not.
pub(crate) fn redefined<W: World>(
    world: &mut W,
    run: &Run,
    step: &Address,
    key: &Key,
) -> Result<Option<String>, Stop> {
    let Some(id) = run.graph.find(step) else {
        return Ok(Some("the workflow no longer has this step".to_owned()));
    };
    let mut facts = Facts::default();
    loop {
        match defined_against(run, &facts, id, key) {
            Defined::Lacks(needs) => find_out(world, facts.at(step), needs)?,
            Defined::Unknown => return Ok(Some("its task cannot be made out".to_owned())),
            Defined::Differs(parts) => {
                let first = parts.into_iter().next();
                return Ok(first.map(|it| format!("{} is another one now", it.part)));
            }
        }
    }
}

/// Effects in flight at which the workflow was edited when an earlier resume took them up: how they
/// would be asked for differently now.
pub(crate) fn look_at_asked<W: World>(
    world: &mut W,
    run: &Run,
    survey: &mut Survey,
) -> Result<(), Stop> {
    for (step, entry) in run.state.steps.noteworthy() {
        let is_open =
            entry.phase == Phase::Running && entry.asked_since == Some(AskedSince::Edited);
        let started = entry.started.as_deref().filter(|_| is_open);
        let (Some(started), Some(id)) = (started, run.graph.find(step)) else { continue };
        let mut facts = Facts::default();
        loop {
            match defined_against(run, &facts, id, &started.key) {
                Defined::Lacks(needs) => find_out(world, facts.at(step), needs)?,
                Defined::Differs(parts) if !parts.is_empty() => {
                    break drop(survey.begun.insert(step.clone(), parts));
                }
                Defined::Differs(_) | Defined::Unknown => break,
            }
        }
    }
    Ok(())
}

/// What became of a workflow file that was edited since it was pinned.
pub(crate) fn edits<W: World>(
    world: &mut W,
    run: &Run,
    pinned: &Workflow,
    new: &Loaded,
) -> Result<Edited, Stop> {
    let mut facts = Facts::default();
    loop {
        match edited(pinned, &new.workflow, run, &facts, new.hash) {
            Ok(edited) => return Ok(edited),
            Err(lacking) => {
                for (step, needs) in lacking {
                    find_out(world, facts.at(&step), needs)?;
                }
            }
        }
    }
}
