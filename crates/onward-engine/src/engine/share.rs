//! What a workflow does to the tree that it works in.

use onward_core::{
    graph::{DefId, Defs, Word},
    workflow::model::{Kind, Step, Workflow},
};

use crate::locate::Share;

pub(super) fn first_with_worktree(steps: &[Step]) -> Option<String> {
    steps.iter().find_map(|step| {
        if step.worktree.is_some() {
            return Some(step.id.to_string());
        }
        match &step.kind {
            Kind::Group { steps } => first_with_worktree(steps),
            Kind::Sub { workflow, .. } => first_with_worktree(&workflow.steps),
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => None,
        }
    })
}

/// A step that may change anything in the tree wants it for itself, unless it has its own.
pub(super) fn share_of(workflow: &Workflow) -> Share {
    fn edits(step: &Step) -> bool {
        if step.worktree.is_some() {
            return false;
        }
        match &step.kind {
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Call { .. } => step.edits,
            Kind::Gate(_) => false,
            Kind::Group { steps } => steps.iter().any(edits),
            Kind::Sub { workflow, .. } => workflow.steps.iter().any(edits),
        }
    }
    if workflow.steps.iter().any(edits) { Share::Alone } else { Share::WithOthers }
}

/// The same of a workflow whose steps are in a list.
pub(super) fn share_of_defs(defs: &Defs) -> Share {
    let mut rest = defs.get(DefId::ROOT).children().to_vec();
    while let Some(id) = rest.pop() {
        let brief = defs.brief(id);
        if brief.has_worktree() {
            continue;
        }
        match brief.word() {
            Word::Run | Word::Agent | Word::Call if brief.edits() => return Share::Alone,
            Word::Run | Word::Agent | Word::Call | Word::Gate => {}
            Word::Group | Word::Sub => rest.extend(defs.get(id).children()),
        }
    }
    Share::WithOthers
}
