//! The shape of a workflow without its contents: who stands where, and what others can see of it.
//!
//! Templates are changed while they are checked, and each may look at any step; so the checker
//! holds this copy instead of the steps.

use std::collections::BTreeMap;

use super::{
    model::{Kind, Many, Step},
    refs::Part,
};

/// One list of steps.
pub(super) struct Outline {
    /// Counts the lists of a workflow.
    pub(super) list: usize,
    pub(super) ids: BTreeMap<String, usize>,
    pub(super) needs: Vec<Vec<usize>>,
    pub(super) shapes: Vec<Shape>,
}

/// What others see of a step.
pub(super) struct Shape {
    pub(super) id: String,
    many: Plural,
    /// Of a group or an included workflow.
    pub(super) inside: Option<Outline>,
}

#[derive(Clone, Copy)]
enum Plural {
    Once,
    Each,
    Repeat,
}

/// What a leaf shows.
const LEAF: [&str; 7] = ["status", "cause", "result", "stdout", "writes", "branch", "path"];
/// What a group shows besides its children.
const GROUP: [&str; 3] = ["status", "branch", "path"];

impl Outline {
    pub(super) fn of(steps: &[Step], lists: &mut usize) -> Self {
        let list = *lists;
        *lists += 1;
        let shape = |step: &Step| Shape {
            id: step.id.as_str().to_owned(),
            many: match step.many {
                Many::Once => Plural::Once,
                Many::Each(_) => Plural::Each,
                Many::Repeat(_) => Plural::Repeat,
            },
            inside: match &step.kind {
                Kind::Group { steps } => Some(Self::of(steps, lists)),
                Kind::Sub { workflow, .. } => Some(Self::of(&workflow.steps, lists)),
                Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => None,
            },
        };
        let shapes: Vec<Shape> = steps.iter().map(shape).collect();
        let ids = shapes.iter().enumerate().map(|(index, it)| (it.id.clone(), index)).collect();
        Self { list, ids, needs: steps.iter().map(|step| step.needs.clone()).collect(), shapes }
    }

    /// A list of one step as it looks from its own `until`.
    pub(super) fn alone(step: &Step, lists: &mut usize) -> Self {
        let shape = Shape { id: step.id.as_str().to_owned(), many: Plural::Once, inside: None };
        let list = *lists;
        *lists += 1;
        let ids = BTreeMap::from([(shape.id.clone(), 0)]);
        Self { list, ids, needs: vec![Vec::new()], shapes: vec![shape] }
    }
}

/// A part of a path that leads nowhere.
pub(super) struct Nowhere<'p> {
    pub(super) part: &'p str,
    pub(super) offset: usize,
    pub(super) known: Vec<String>,
}

impl Shape {
    /// Follows what stands behind `steps.<id>`.
    pub(super) fn follow<'p>(&self, path: &'p [Part]) -> Result<(), Nowhere<'p>> {
        match self.many {
            Plural::Once => self.follow_one(path),
            Plural::Each => {
                let rest = Self::expect(path, &["items", "status"])?;
                // The next part is a key, which only the run knows.
                match rest {
                    Some(("items", [_, rest @ ..])) => self.follow_one(rest),
                    Some(_) | None => Ok(()),
                }
            }
            Plural::Repeat => match Self::expect(path, &["last", "turns", "status"])? {
                Some(("last", rest)) => self.follow_one(rest),
                Some(_) | None => Ok(()),
            },
        }
    }

    fn follow_one<'p>(&self, path: &'p [Part]) -> Result<(), Nowhere<'p>> {
        let Some(outline) = &self.inside else { return Self::expect(path, &LEAF).map(drop) };
        let Some((Part::Known { name, offset }, rest)) = path.split_first() else { return Ok(()) };
        if let Some(index) = outline.ids.get(name) {
            return outline.shapes[*index].follow(rest);
        }
        if GROUP.contains(&name.as_str()) {
            return Ok(());
        }
        let known = outline.ids.keys().cloned().chain(GROUP.map(String::from));
        Err(Nowhere { part: name, offset: *offset, known: known.collect() })
    }

    /// The first part, which must be one of `known`, and the rest.
    fn expect<'p>(
        path: &'p [Part],
        known: &[&str],
    ) -> Result<Option<(&'p str, &'p [Part])>, Nowhere<'p>> {
        match path.split_first() {
            Some((Part::Known { name, offset }, rest)) => {
                if known.contains(&name.as_str()) {
                    return Ok(Some((name, rest)));
                }
                let known = known.iter().map(|it| (*it).to_owned()).collect();
                Err(Nowhere { part: name, offset: *offset, known })
            }
            Some((Part::Computed, _)) | None => Ok(None),
        }
    }
}

/// Whether looking at `path` of a step may look at standard output: when it says so, or does not
/// say what it looks at.
pub(super) fn sees_stdout(path: &[Part]) -> bool {
    let named = |part: &Part, names: &[&str]| match part {
        Part::Known { name, .. } => names.contains(&name.as_str()),
        Part::Computed => false,
    };
    !path.iter().any(|part| named(part, &["result", "status", "cause", "writes", "branch", "path"]))
}
