//! Every name in every template means something that is there by then.
//!
//! Also fills in the [`Refs`](super::model::Refs) of each template. What a step can see: `inputs`,
//! `run`, the names of the loops and items it is in, and steps, looked up from its own list
//! outwards, that are done before it because of another step's `needs`.

use std::collections::BTreeMap;

use super::{
    graph,
    model::{Count, Items, Kind, Many, Place, Span, Step, Template, Workflow, Worktree},
    outline::{Outline, sees_stdout},
    problem::Problems,
    refs::{self, Form, Part, Use},
    source::Source,
};
use crate::nearest::nearest;

/// What all `steps[computed]` of a workflow may refer to together; each refers to all it can see.
const COMPUTED_REFS_MAX: usize = 200_000;

pub(super) fn check(workflow: &mut Workflow, sources: &[Source], problems: &mut Problems) {
    let mut lists = 0;
    let outline = Outline::of(&workflow.steps, &mut lists);
    let inputs: Vec<String> = workflow.inputs.keys().cloned().collect();
    let mut checker =
        Checker { inputs, sources, problems, lists, questions: BTreeMap::new(), computed_refs: 0 };
    checker.steps(&mut workflow.steps, &outline, None);
    checker.answer(&outline);
}

/// One frame of what can be seen; the innermost is asked first.
struct Scope<'s> {
    outer: Option<&'s Scope<'s>>,
    frame: Frame<'s>,
}

enum Frame<'s> {
    /// A list of steps, seen from the step at an index.
    Steps(&'s Outline, usize),
    /// A list of steps, all of them done: `until`.
    Turn(&'s Outline),
    /// A loop index or an item.
    Name(&'s str),
}

impl<'s> Scope<'s> {
    fn within(outer: Option<&'s Scope<'s>>, frame: Frame<'s>) -> Self {
        Self { outer, frame }
    }

    fn frames(&self) -> impl Iterator<Item = &Frame<'s>> {
        std::iter::successors(Some(self), |scope| scope.outer).map(|scope| &scope.frame)
    }

    fn names(&self) -> impl Iterator<Item = &'s str> {
        self.frames().filter_map(|frame| match frame {
            Frame::Name(name) => Some(*name),
            Frame::Steps(..) | Frame::Turn(_) => None,
        })
    }

    fn outlines(&self) -> impl Iterator<Item = &'s Outline> {
        self.frames().filter_map(|frame| match frame {
            Frame::Steps(outline, _) | Frame::Turn(outline) => Some(*outline),
            Frame::Name(_) => None,
        })
    }
}

/// Does `step` come after `other`? Answered for a whole list at once.
struct Question {
    step: usize,
    other: usize,
    at: Place,
}

struct Checker<'c> {
    inputs: Vec<String>,
    sources: &'c [Source],
    problems: &'c mut Problems,
    lists: usize,
    /// By list.
    questions: BTreeMap<usize, Vec<Question>>,
    computed_refs: usize,
}

impl Checker<'_> {
    fn steps(&mut self, steps: &mut [Step], outline: &Outline, outer: Option<&Scope<'_>>) {
        for (index, step) in steps.iter_mut().enumerate() {
            let here = Scope::within(outer, Frame::Steps(outline, index));
            self.step(step, outline, index, &here);
        }
    }

    fn step(&mut self, step: &mut Step, outline: &Outline, index: usize, here: &Scope<'_>) {
        // Decided once, before there is an item or a turn.
        if let Some(when) = &mut step.when {
            self.template(when, Form::Condition, here);
        }
        let repeats = matches!(step.many, Many::Repeat(_));
        let alone = repeats.then(|| Outline::alone(step, &mut self.lists));
        let name = match &mut step.many {
            Many::Once => None,
            Many::Each(each) => {
                if let Items::Expression(items) = &mut each.items {
                    self.template(items, Form::Expression, here);
                }
                Some(each.name.clone())
            }
            Many::Repeat(repeat) => {
                if let Count::Expression(max) = &mut repeat.max {
                    self.template(max, Form::Expression, here);
                }
                Some(step.id.as_str().to_owned())
            }
        };
        let named;
        let inner = match &name {
            Some(name) => {
                named = Scope::within(Some(here), Frame::Name(name));
                &named
            }
            None => here,
        };
        let inside = outline.shapes[index].inside.as_ref();
        if let Many::Repeat(repeat) = &mut step.many
            && let Some(until) = &mut repeat.until
        {
            let turn = inside.or(alone.as_ref()).map(Frame::Turn);
            let turn = turn.map(|frame| Scope::within(Some(inner), frame));
            self.template(until, Form::Condition, turn.as_ref().unwrap_or(inner));
        }
        self.fields(step, inner);
        match (&mut step.kind, inside) {
            (Kind::Group { steps }, Some(inside)) => self.steps(steps, inside, Some(inner)),
            // An included workflow was checked on its own.
            (
                Kind::Run { .. }
                | Kind::Agent { .. }
                | Kind::Gate(_)
                | Kind::Call { .. }
                | Kind::Sub { .. }
                | Kind::Group { .. },
                _,
            ) => {}
        }
    }

    fn fields(&mut self, step: &mut Step, scope: &Scope<'_>) {
        for template in step.reads.iter_mut().chain(&mut step.writes).chain(step.env.values_mut()) {
            self.template(template, Form::Text, scope);
        }
        if let Some(check) = &mut step.check {
            self.template(check, Form::Command, scope);
        }
        if let Some(probe) = &mut step.probe {
            self.template(&mut probe.command, Form::Command, scope);
        }
        if let Some(Worktree::Named(name)) = &mut step.worktree {
            self.template(name, Form::Text, scope);
        }
        if let Some(dir) = &mut step.dir {
            self.template(dir, Form::Text, scope);
        }
        if let Some(Span::Expression(timeout)) = &mut step.timeout {
            self.template(timeout, Form::Text, scope);
        }
        match &mut step.kind {
            Kind::Run { command } => self.template(command, Form::Command, scope),
            Kind::Agent { prompt, .. } => self.template(prompt, Form::Text, scope),
            Kind::Gate(gate) => {
                self.template(&mut gate.prompt, Form::Text, scope);
                for path in &mut gate.shows {
                    self.template(path, Form::Text, scope);
                }
            }
            Kind::Call { with, .. } | Kind::Sub { with, .. } => {
                for value in with.values_mut() {
                    self.template(value, Form::Text, scope);
                }
            }
            Kind::Group { .. } => {}
        }
    }

    fn template(&mut self, template: &mut Template, form: Form, scope: &Scope<'_>) {
        let expression = matches!(form, Form::Condition | Form::Expression);
        // One that stands nowhere stands for a value that was refused already.
        if template.at == Place::default() || (template.is_literal() && !expression) {
            return;
        }
        match refs::find(&template.source, form) {
            Ok(uses) => uses.iter().for_each(|it| self.resolve(template, it, scope)),
            Err(faults) => {
                for fault in faults {
                    let at = self.place(template, fault.offset);
                    let problem = self.problems.error(at, fault.message);
                    problem.hint = fault.hint;
                }
            }
        }
    }

    fn place(&self, template: &Template, offset: usize) -> Place {
        let source = self.sources.get(template.at.file as usize);
        source.map_or(template.at, |source| source.place_in(template, offset))
    }

    fn resolve(&mut self, template: &mut Template, it: &Use, scope: &Scope<'_>) {
        match it.name.as_str() {
            "steps" => return self.resolve_step(template, it, scope),
            "inputs" => {
                if let Some(Part::Known { name, offset }) = it.path.first()
                    && !self.inputs.contains(name)
                {
                    let at = self.place(template, *offset);
                    let message = format!("the workflow declares no input `{name}`");
                    let known = self.inputs.iter().map(String::as_str);
                    let problem = self.problems.unknown(at, message, name, known);
                    if problem.hint.is_none() {
                        problem.hint(format!(
                            "declare it: `inputs: {{ {name}: {{ type: string }} }}`"
                        ));
                    }
                }
            }
            "run" => {
                if let Some(Part::Known { name, offset }) = it.path.first()
                    && name != "id"
                {
                    let at = self.place(template, *offset);
                    let problem = self.problems.error(at, format!("`run` has no `{name}`"));
                    problem.hint("it has `run.id`");
                }
            }
            name => {
                if !scope.names().any(|known| known == name) {
                    self.unknown_name(template, it, scope);
                }
            }
        }
        template.refs.names.insert(it.name.clone());
    }

    fn unknown_name(&mut self, template: &Template, it: &Use, scope: &Scope<'_>) {
        let name = it.name.as_str();
        let at = self.place(template, it.offset);
        let is_step = scope.outlines().any(|outline| outline.ids.contains_key(name));
        let hint = if self.inputs.iter().any(|input| input == name) {
            Some(format!("did you mean `inputs.{name}`?"))
        } else if is_step {
            Some(format!("did you mean `steps.{name}`?"))
        } else {
            let known = scope.names().chain(["inputs", "run", "steps"]);
            nearest(name, known).map(|near| format!("did you mean `{near}`?"))
        };
        let problem = self.problems.error(at, format!("nothing here is called `{name}`"));
        let seen: Vec<&str> = scope.names().chain(["inputs", "run", "steps"]).collect();
        problem.hint = hint.or_else(|| Some(format!("a template sees: {}", seen.join(", "))));
    }

    fn resolve_step(&mut self, template: &mut Template, it: &Use, scope: &Scope<'_>) {
        let Some((Part::Known { name, offset }, path)) = it.path.split_first() else {
            return self.computed_step(template, it, scope);
        };
        let mut own_list = true;
        for frame in scope.frames() {
            let (outline, here) = match frame {
                Frame::Name(_) => continue,
                Frame::Turn(outline) => (*outline, None),
                Frame::Steps(outline, here) => (*outline, Some(*here)),
            };
            let Some(index) = outline.ids.get(name).copied() else {
                own_list = false;
                continue;
            };
            if here == Some(index) {
                let at = self.place(template, *offset);
                let message = if own_list {
                    format!("`{name}` is this step: it cannot look at itself")
                } else {
                    format!("`{name}` contains this step, so it is not done before it")
                };
                self.problems.error(at, message);
                return;
            }
            if let Some(here) = here
                && !outline.needs[here].contains(&index)
            {
                let at = self.place(template, *offset);
                let question = Question { step: here, other: index, at };
                self.questions.entry(outline.list).or_default().push(question);
            }
            if let Err(nowhere) = outline.shapes[index].follow(path) {
                let at = self.place(template, nowhere.offset);
                let message = format!("step `{name}` shows no `{}`", nowhere.part);
                let known = nowhere.known.iter().map(String::as_str);
                let problem = self.problems.unknown(at, message, nowhere.part, known);
                if problem.hint.is_none() {
                    problem.hint(format!("it shows: {}", nowhere.known.join(", ")));
                }
            }
            template.refs.steps.insert(name.clone());
            if sees_stdout(path) {
                template.refs.stdout.insert(name.clone());
            }
            return;
        }
        self.unknown_step(template, name, *offset, scope);
    }

    fn unknown_step(&mut self, template: &Template, name: &str, offset: usize, scope: &Scope<'_>) {
        let at = self.place(template, offset);
        let inside = scope.outlines().flat_map(|outline| &outline.shapes).find(|shape| {
            shape.inside.as_ref().is_some_and(|inside| inside.ids.contains_key(name))
        });
        let known = scope.outlines().flat_map(|outline| outline.ids.keys().map(String::as_str));
        let message = format!("no step `{name}` can be seen from here");
        let problem = self.problems.unknown(at, message, name, known);
        if let Some(shape) = inside {
            problem.hint(format!("it is inside `{0}`: write `steps.{0}.{name}`", shape.id));
        }
    }

    /// `steps[expr]`, or `steps` as a whole: every step that is done before.
    fn computed_step(&mut self, template: &mut Template, it: &Use, scope: &Scope<'_>) {
        for frame in scope.frames() {
            let (outline, seen) = match frame {
                Frame::Name(_) => continue,
                Frame::Turn(outline) => (outline, (0..outline.shapes.len()).collect()),
                Frame::Steps(outline, here) => (outline, graph::all_before(&outline.needs, *here)),
            };
            self.computed_refs += seen.len();
            if self.computed_refs > COMPUTED_REFS_MAX {
                let at = self.place(template, it.offset);
                let message = "templates that compute a step's name see too many steps in all";
                self.problems.error(at, message).hint("name the step: `steps.some_id`");
                return;
            }
            let ids = seen.into_iter().map(|index| outline.shapes[index].id.clone());
            template.refs.steps.extend(ids);
        }
        if it.path.get(1..).is_none_or(sees_stdout) {
            let refs = &mut template.refs;
            refs.stdout.extend(refs.steps.iter().cloned());
        }
    }

    fn answer(&mut self, outline: &Outline) {
        for inside in outline.shapes.iter().filter_map(|shape| shape.inside.as_ref()) {
            self.answer(inside);
        }
        let Some(questions) = self.questions.remove(&outline.list) else { return };
        // With a cycle nothing is before anything, and that has been said.
        let Ok(ordered) = graph::order(&outline.needs) else { return };
        let pairs: Vec<(usize, usize)> = questions.iter().map(|it| (it.step, it.other)).collect();
        let answers = graph::comes_after(&outline.needs, &ordered, &pairs);
        for (question, _) in questions.iter().zip(answers).filter(|(_, answer)| !answer) {
            let id = |index: usize| outline.shapes[index].id.as_str();
            let (step, other) = (id(question.step), id(question.other));
            let message = format!("`{other}` need not be done when this is looked at");
            let mut needs: Vec<&str> =
                outline.needs[question.step].iter().map(|need| id(*need)).collect();
            needs.push(other);
            let hint = if question.other > question.step && needs.len() == 1 {
                format!("it stands below; give `{step}` `needs: [{other}]`, or move it")
            } else {
                format!("give `{step}` `needs: [{}]`", needs.join(", "))
            };
            self.problems.error(question.at, message).hint(hint);
        }
    }
}
