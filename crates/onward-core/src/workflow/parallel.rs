//! Steps that may run at the same time and get into each other's way: warnings.
//!
//! In one list, steps in each other's way must stand in one chain. In any order that respects
//! needs, a chain's neighbours come one after the other; so only neighbours are compared.

use std::collections::BTreeMap;

use super::{
    graph,
    model::{Items, Kind, Many, Place, Step},
    problem::Problems,
};

pub(super) fn check(steps: &[Step], problems: &mut Problems) {
    list(steps, problems);
}

/// What some steps do to the tree they share with the steps around them.
#[derive(Default)]
struct Touches<'s> {
    /// The first that may change anything.
    editor: Option<&'s Step>,
    /// Outputs whose names are certain.
    writes: BTreeMap<&'s str, Place>,
}

fn list<'s>(steps: &'s [Step], problems: &mut Problems) -> Touches<'s> {
    let touches: Vec<Touches<'s>> = steps.iter().map(|step| one(step, problems)).collect();
    let needs: Vec<Vec<usize>> = steps.iter().map(|step| step.needs.clone()).collect();
    let Ok(ordered) = graph::order(&needs) else { return Touches::default() };

    let editors: Vec<usize> =
        ordered.iter().copied().filter(|step| touches[*step].editor.is_some()).collect();
    for (_, first, second) in unordered_neighbours(&needs, &ordered, &[editors]) {
        let editor = |index: usize| touches[index].editor.map_or(&steps[index], |step| step);
        let (one, other) = (editor(first.min(second)), editor(first.max(second)));
        let message =
            format!("`{}` and `{}` may run at the same time and edit one tree", one.id, other.id);
        problems.warn(other.at, message).hint(format!(
            "`{}` is in line {}; settle it with `worktree: true`, `edits: false` or `needs`",
            one.id, one.at.line
        ));
    }

    let mut writers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for step in &ordered {
        for path in touches[*step].writes.keys() {
            writers.entry(path).or_default().push(*step);
        }
    }
    let (paths, groups): (Vec<&str>, Vec<Vec<usize>>) =
        writers.into_iter().filter(|(_, writers)| writers.len() > 1).unzip();
    for (group, first, second) in unordered_neighbours(&needs, &ordered, &groups) {
        let (path, first, second) = (paths[group], first.min(second), first.max(second));
        let message = format!("`{path}` may be written by two steps at the same time");
        let line = touches[first].writes[path].line;
        problems
            .warn(touches[second].writes[path], message)
            .hint(format!("the other is in line {line}; order them with `needs`"));
    }

    let mut all = Touches::default();
    for touches in touches {
        all.editor = all.editor.or(touches.editor);
        all.writes.extend(touches.writes);
    }
    all
}

fn one<'s>(step: &'s Step, problems: &mut Problems) -> Touches<'s> {
    let mut touches = match &step.kind {
        Kind::Group { steps } => list(steps, problems),
        Kind::Sub { workflow, .. } => list(&workflow.steps, problems),
        Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => {
            Touches { editor: step.edits.then_some(step), writes: BTreeMap::new() }
        }
    };
    let certain = |path: &str| !path.contains(['*', '?', '[', '{']);
    let writes = step.writes.iter().filter(|it| it.is_literal() && certain(&it.source));
    touches.writes.extend(writes.map(|it| (it.source.as_str(), it.at)));
    if step.worktree.is_some() {
        return Touches::default();
    }
    if let Some(dir) = &step.dir {
        // Outputs are named from there. A name with holes is taken to be each attempt's own.
        touches.writes.clear();
        touches.editor = touches.editor.filter(|_| dir.is_literal());
    }
    if may_have_several(&step.many) {
        if let Some(editor) = touches.editor {
            let message =
                format!("the items of `{}` may run at the same time and edit one tree", step.id);
            problems
                .warn(step.at, message)
                .hint(format!("add `worktree: true`, or `edits: false` to `{}`", editor.id));
        }
        for (path, at) in &touches.writes {
            problems
                .warn(*at, format!("every item of `{}` writes `{path}`", step.id))
                .hint("put the item into the name, or add `worktree: true`");
        }
    }
    touches
}

fn may_have_several(many: &Many) -> bool {
    match many {
        Many::Each(each) => match &each.items {
            Items::List(items) => items.len() > 1,
            Items::Expression(_) => true,
        },
        // Turns come one after the other.
        Many::Once | Many::Repeat(_) => false,
    }
}

/// Neighbours in `groups` of which neither comes after the other, with the index of their group.
fn unordered_neighbours(
    needs: &[Vec<usize>],
    ordered: &[usize],
    groups: &[Vec<usize>],
) -> Vec<(usize, usize, usize)> {
    let mut pairs = Vec::new();
    let mut of_group = Vec::new();
    for (group, members) in groups.iter().enumerate() {
        for pair in members.windows(2).filter(|pair| !needs[pair[1]].contains(&pair[0])) {
            pairs.push((pair[1], pair[0]));
            of_group.push(group);
        }
    }
    let answers = graph::comes_after(needs, ordered, &pairs);
    let found = pairs.into_iter().zip(of_group).zip(answers).filter(|(_, after)| !after);
    found.map(|(((later, earlier), group), _)| (group, earlier, later)).collect()
}
