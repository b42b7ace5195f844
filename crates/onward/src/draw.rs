//! A workflow as a picture: a tree for terminals, a flowchart for Mermaid.

use std::fmt::Write as _;

use onward_core::{
    plural::count,
    workflow::model::{Count, Items, Kind, Many, Step, Workflow},
};

use crate::diagnostic::printable;

fn inside(step: &Step) -> &[Step] {
    match &step.kind {
        Kind::Group { steps } => steps,
        Kind::Sub { workflow, .. } => &workflow.steps,
        Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => &[],
    }
}

/// One line a step, groups as branches, what each needs behind it.
pub(crate) fn tree(workflow: &Workflow) -> String {
    let mut lines = Vec::new();
    branch(&workflow.steps, "", &mut lines);
    let width = |column: fn(&Line) -> &str| {
        lines.iter().map(|line| column(line).chars().count()).max().unwrap_or(0)
    };
    let (name_width, what_width) = (width(|line| &line.name), width(|line| &line.what));
    let mut text = format!("{}: {}\n", printable(&workflow.name), size(&workflow.steps));
    for Line { name, what, needs } in &lines {
        let row = format!("{name:name_width$}  {what:what_width$}  {needs}");
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// `3+ steps, more from fan`: those that any run of it has, and which lists and loops open steps
/// that are not known before.
fn size(steps: &[Step]) -> String {
    const NAMED_MAX: usize = 3;
    let Size { known, mut open } = Size::of(steps);
    let others = open.len().saturating_sub(NAMED_MAX);
    open.truncate(NAMED_MAX);
    if others > 0 {
        open.push(format!("{others} more"));
    }
    let from = match open.split_last() {
        None => return count(known, "step"),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
    };
    match known {
        0 => format!("steps come from {from}"),
        known => format!("{known}+ steps, more from {from}"),
    }
}

/// How many steps a workflow has; groups are not counted.
#[derive(Default)]
pub(crate) struct Size {
    /// Those that are known before it runs: the items of a list that is written out, and the first
    /// turn of a loop.
    pub(crate) known: usize,
    /// The lists and loops that open others.
    pub(crate) open: Vec<String>,
}

impl Size {
    pub(crate) fn of(steps: &[Step]) -> Self {
        Self::below(steps, "")
    }

    fn below(steps: &[Step], scope: &str) -> Self {
        let mut size = Self::default();
        for step in steps {
            let address = format!("{scope}{}", step.id);
            let (times, opens) = match &step.many {
                Many::Once => (1, false),
                Many::Each(each) => match &each.items {
                    Items::List(items) => (items.len(), false),
                    Items::Expression(_) => (0, true),
                },
                Many::Repeat(repeat) => (1, !matches!(repeat.max, Count::Fixed(1))),
            };
            let inner = Self::below(inside(step), &format!("{address}/"));
            let once = if step.is_leaf() { 1 } else { inner.known };
            size.known = size.known.saturating_add(once.saturating_mul(times));
            if opens {
                size.open.push(address);
            } else if times > 0 {
                size.open.extend(inner.open);
            }
        }
        size
    }
}

struct Line {
    name: String,
    what: String,
    needs: String,
}

fn branch(steps: &[Step], indent: &str, lines: &mut Vec<Line>) {
    for (index, step) in steps.iter().enumerate() {
        let last = index + 1 == steps.len();
        let (fork, bar) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let needs: Vec<&str> = step.needs.iter().map(|need| steps[*need].id.as_str()).collect();
        let needs = if needs.is_empty() { String::new() } else { needs.join(", ") };
        lines.push(Line {
            name: format!("{indent}{fork}{}", step.id),
            what: what(step),
            needs: if needs.is_empty() { needs } else { format!("needs {needs}") },
        });
        branch(inside(step), &format!("{indent}{bar}"), lines);
    }
}

/// What a step is, in a few words.
fn what(step: &Step) -> String {
    let kind = match &step.kind {
        Kind::Run { .. } => "run".into(),
        Kind::Agent { agent, .. } => format!("agent {agent}"),
        Kind::Gate(gate) => format!("gate {}", gate.options.join("/")),
        Kind::Call { name, .. } => format!("call {name}"),
        Kind::Group { .. } => "steps".into(),
        Kind::Sub { path, .. } => format!("workflow {path}"),
    };
    let many = many(&step.many).map(|many| format!(", {many}")).unwrap_or_default();
    let when = if step.when.is_some() { ", when" } else { "" };
    let worktree = if step.worktree.is_some() { ", worktree" } else { "" };
    let outside = if step.effect_outside { ", outside" } else { "" };
    printable(&format!("{kind}{many}{when}{worktree}{outside}"))
}

fn many(many: &Many) -> Option<String> {
    match many {
        Many::Once => None,
        Many::Each(each) => Some(match &each.items {
            Items::List(items) => format!("each of {}", items.len()),
            Items::Expression(_) => format!("each {}", each.name),
        }),
        Many::Repeat(repeat) => Some(match &repeat.max {
            Count::Fixed(max) => format!("up to {max} times"),
            Count::Expression(_) => "repeat".into(),
        }),
    }
}

/// A flowchart: groups are subgraphs, arrows follow needs.
pub(crate) fn mermaid(workflow: &Workflow) -> String {
    let mut text = String::from("flowchart TD\n");
    subgraph(&workflow.steps, 1, &mut 0, &mut text);
    text
}

fn subgraph(steps: &[Step], depth: usize, nodes: &mut usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let mut names = Vec::with_capacity(steps.len());
    for step in steps {
        *nodes += 1;
        let node = format!("n{nodes}");
        let extra = many(&step.many).map(|many| format!(" ({many})")).unwrap_or_default();
        let label = label(&format!("{}{extra}", step.id));
        let (open, close) = match &step.kind {
            Kind::Run { .. } => ("[", "]"),
            Kind::Agent { .. } => ("(", ")"),
            Kind::Gate(_) => ("{", "}"),
            Kind::Call { .. } => ("[[", "]]"),
            Kind::Group { .. } | Kind::Sub { .. } => {
                line(text, &format!("{indent}subgraph {node}[\"{label}\"]"));
                subgraph(inside(step), depth + 1, nodes, text);
                line(text, &format!("{indent}end"));
                names.push(node);
                continue;
            }
        };
        line(text, &format!("{indent}{node}{open}\"{label}\"{close}"));
        names.push(node);
    }
    for (index, step) in steps.iter().enumerate() {
        for need in &step.needs {
            line(text, &format!("{indent}{} --> {}", names[*need], names[index]));
        }
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes all");
}

fn label(text: &str) -> String {
    printable(text).replace('"', "#quot;")
}
