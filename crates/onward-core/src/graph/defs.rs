//! The workflow's steps in one flat list: what instances point at.

use std::collections::BTreeSet;

use crate::workflow::model::{Items, Kind, Limits, Many, Step, Workflow};

/// Position of a declared step in [`Defs`]; 0 is the workflow itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefId(u32);

impl DefId {
    pub const ROOT: Self = Self(0);
}

/// Every declared step, parents before children.
#[derive(Clone, Debug, PartialEq)]
pub struct Defs {
    all: Vec<Def>,
    /// The file's own workflow first, then each sub-workflow, without their steps.
    workflows: Vec<Workflow>,
    /// Ids whose standard output some template reads, wherever they stand.
    stdout_read: BTreeSet<String>,
}

/// One declared step.
#[derive(Clone, Debug, PartialEq)]
pub struct Def {
    /// `None` for the workflow itself. The children of a group are not in it but in `children`.
    step: Option<Step>,
    pub children: Vec<DefId>,
    /// The workflow whose inputs and agents it sees.
    workflow: usize,
    /// Steps that only say which items an `each` has: nothing inside looks at them.
    sources: BTreeSet<String>,
}

impl Def {
    fn new(step: Option<Step>, workflow: usize) -> Self {
        Self { step, children: Vec::new(), workflow, sources: BTreeSet::new() }
    }

    /// The declaration. The root has none, and no caller asks for it.
    pub fn step(&self) -> &Step {
        self.step.as_ref().expect("only the root has no declaration, and it is never decided")
    }
}

impl Defs {
    pub fn new(mut workflow: Workflow) -> Self {
        let steps = std::mem::take(&mut workflow.steps);
        let root = Def::new(None, 0);
        let mut defs =
            Self { all: vec![root], workflows: vec![workflow], stdout_read: BTreeSet::new() };
        let children = defs.add(steps, 0);
        defs.all[0].children = children;
        let steps = defs.all.iter().filter_map(|def| def.step.as_ref());
        let templates = steps.flat_map(Step::templates);
        defs.stdout_read = templates.flat_map(|it| it.refs.stdout.iter().cloned()).collect();
        for index in 1..defs.all.len() {
            defs.all[index].sources = defs.sources_of(index);
        }
        defs
    }

    fn sources_of(&self, index: usize) -> BTreeSet<String> {
        let step = self.all[index].step();
        let Many::Each(each) = &step.many else { return BTreeSet::new() };
        let Items::Expression(items) = &each.items else { return BTreeSet::new() };
        let mut sources = items.refs.steps.clone();
        let mut rest = vec![&self.all[index]];
        while let Some(def) = rest.pop() {
            let templates = def.step().templates().into_iter();
            for inside in templates.filter(|template| *template != items) {
                sources.retain(|source| !inside.refs.steps.contains(source));
            }
            rest.extend(def.children.iter().map(|child| self.get(*child)));
        }
        sources
    }

    fn add(&mut self, steps: Vec<Step>, workflow: usize) -> Vec<DefId> {
        steps.into_iter().map(|step| self.add_one(step, workflow)).collect()
    }

    fn add_one(&mut self, mut step: Step, workflow: usize) -> DefId {
        let (inner, inner_workflow) = match &mut step.kind {
            Kind::Group { steps } => (std::mem::take(steps), workflow),
            Kind::Sub { workflow: sub, .. } => {
                let mut sub = sub.as_ref().clone();
                let steps = std::mem::take(&mut sub.steps);
                self.workflows.push(sub);
                (steps, self.workflows.len() - 1)
            }
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => {
                (Vec::new(), workflow)
            }
        };
        let id = DefId(u32::try_from(self.all.len()).expect("fewer steps than a u32 counts"));
        self.all.push(Def::new(Some(step), workflow));
        let children = self.add(inner, inner_workflow);
        self.all[id.0 as usize].children = children;
        id
    }

    pub fn get(&self, id: DefId) -> &Def {
        &self.all[id.0 as usize]
    }

    pub fn step(&self, id: DefId) -> &Step {
        self.get(id).step()
    }

    /// The workflow a step was declared in: its inputs and agents. Its steps are not in it.
    pub fn workflow_of(&self, id: DefId) -> &Workflow {
        &self.workflows[self.get(id).workflow]
    }

    /// The workflow that the children of a sub-workflow step see.
    pub fn workflow_inside(&self, id: DefId) -> &Workflow {
        let def = self.get(id);
        let inside = def.children.first().map_or(def.workflow, |child| self.get(*child).workflow);
        &self.workflows[inside]
    }

    /// Declared steps in order, the root left out.
    pub fn ids(&self) -> impl Iterator<Item = DefId> {
        (1..self.all.len()).map(|index| DefId(u32::try_from(index).expect("counted in new")))
    }

    pub fn limits(&self) -> &Limits {
        &self.workflows[0].limits
    }

    pub fn name(&self) -> &str {
        &self.workflows[0].name
    }

    pub fn root_workflow(&self) -> &Workflow {
        &self.workflows[0]
    }

    /// Opened by an event, because something must be evaluated first.
    pub(super) fn opens_by_event(&self, id: DefId) -> bool {
        let step = self.step(id);
        step.when.is_some() || step.many != Many::Once
    }

    /// Whether `need` only says which items `each` has. An answer of a gate always counts.
    pub(super) fn is_source(&self, each: DefId, need: DefId) -> bool {
        let step = self.step(need);
        let is_work = step.is_leaf() && !matches!(step.kind, Kind::Gate(_));
        is_work && self.get(each).sources.contains(step.id.as_str())
    }

    /// Whether some template may look at the step's standard output.
    pub fn stdout_is_read(&self, id: DefId) -> bool {
        self.stdout_read.contains(self.step(id).id.as_str())
    }
}
