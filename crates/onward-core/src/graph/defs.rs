//! The workflow's steps in one flat list: what instances point at.
//!
//! Invariant: what a step declares is the same whether the list was made from a workflow or from
//! bytes. From bytes a step is made when it is first looked into; most steps of a large run that is
//! only looked at never are.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
};

use super::brief::{Brief, Often};
use crate::digest::Digest;
use crate::workflow::{
    model::{Items, Kind, Limits, Many, Step, Workflow},
    packed::{self, Pack},
};

/// Position of a declared step in [`Defs`]; 0 is the workflow itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefId(pub(super) u32);

impl DefId {
    pub const ROOT: Self = Self(0);
}

/// Every declared step, parents before children.
#[derive(Clone, Debug)]
pub struct Defs {
    all: Vec<Def>,
    /// The file's own workflow first, then each sub-workflow, without their steps.
    workflows: Vec<Workflow>,
    /// Ids whose standard output some template reads, wherever they stand.
    stdout_read: BTreeSet<String>,
    /// What steps are made of that no one has looked into.
    packed: Arc<Vec<u8>>,
    /// See [`of_text`](Self::of_text).
    origin: Option<Digest>,
}

/// One declared step.
#[derive(Clone, Debug)]
pub struct Def {
    /// Empty for the workflow itself. The children of a group are not in it but in `children`.
    step: OnceLock<Box<Step>>,
    /// `None` for most.
    more: Option<Arc<More>>,
    /// The workflow whose inputs and agents it sees.
    workflow: u32,
    brief: Brief,
    /// Where its id, its needs and then the step itself stand in the bytes.
    at: u32,
}

/// What few steps have.
#[derive(Clone, Debug, Default)]
struct More {
    children: Vec<DefId>,
    /// Steps that only say which items an `each` has: nothing inside looks at them.
    sources: BTreeSet<String>,
}

impl More {
    fn some(self) -> Option<Arc<Self>> {
        let is_empty = self.children.is_empty() && self.sources.is_empty();
        (!is_empty).then(|| Arc::new(self))
    }
}

impl Def {
    pub fn children(&self) -> &[DefId] {
        self.more.as_ref().map_or(&[], |more| &more.children)
    }

    fn new(step: Option<Step>, workflow: u32) -> Self {
        let brief = step.as_ref().map(Brief::of).unwrap_or_default();
        let made = OnceLock::new();
        if let Some(step) = step {
            let _ = made.set(Box::new(step));
        }
        Self { step: made, more: None, workflow, brief, at: 0 }
    }
}

impl Defs {
    pub fn new(mut workflow: Workflow) -> Self {
        let steps = std::mem::take(&mut workflow.steps);
        let mut defs = Self {
            all: vec![Def::new(None, 0)],
            workflows: vec![workflow],
            stdout_read: BTreeSet::new(),
            packed: Arc::default(),
            origin: None,
        };
        defs.all.reserve_exact(steps.len());
        let children = defs.add(steps, 0);
        defs.all[0].more = More { children, ..More::default() }.some();
        let steps = defs.all.iter().filter_map(|def| def.step.get());
        let templates = steps.flat_map(|step| step.templates());
        defs.stdout_read = templates.flat_map(|it| it.refs.stdout.iter().cloned()).collect();
        for id in 1..defs.all.len() {
            let sources = defs.sources_of(id);
            if !sources.is_empty() {
                let more = More { children: defs.all[id].children().to_vec(), sources };
                defs.all[id].more = more.some();
            }
        }
        defs
    }

    fn sources_of(&self, index: usize) -> BTreeSet<String> {
        let step = self.step(counted(index));
        let Many::Each(each) = &step.many else { return BTreeSet::new() };
        let Items::Expression(items) = &each.items else { return BTreeSet::new() };
        let mut sources = items.refs.steps.clone();
        let mut rest = vec![counted(index)];
        while let Some(id) = rest.pop() {
            let templates = self.step(id).templates().into_iter();
            for inside in templates.filter(|template| *template != items) {
                sources.retain(|source| !inside.refs.steps.contains(source));
            }
            rest.extend(self.get(id).children());
        }
        sources
    }

    fn add(&mut self, steps: Vec<Step>, workflow: u32) -> Vec<DefId> {
        steps.into_iter().map(|step| self.add_one(step, workflow)).collect()
    }

    fn add_one(&mut self, mut step: Step, workflow: u32) -> DefId {
        let (inner, inner_workflow) = match &mut step.kind {
            Kind::Group { steps } => (std::mem::take(steps), workflow),
            Kind::Sub { workflow: sub, .. } => {
                let mut sub = sub.as_ref().clone();
                let steps = std::mem::take(&mut sub.steps);
                self.workflows.push(sub);
                (steps, counted(self.workflows.len() - 1).0)
            }
            Kind::Run { .. } | Kind::Agent { .. } | Kind::Gate(_) | Kind::Call { .. } => {
                (Vec::new(), workflow)
            }
        };
        let id = counted(self.all.len());
        self.all.push(Def::new(Some(step), workflow));
        let children = self.add(inner, inner_workflow);
        self.all[id.0 as usize].more = More { children, ..More::default() }.some();
        id
    }

    pub fn get(&self, id: DefId) -> &Def {
        &self.all[id.0 as usize]
    }

    /// The declaration. The root has none, and no caller asks for it.
    pub fn step(&self, id: DefId) -> &Step {
        assert_ne!(id, DefId::ROOT, "the root has no declaration, and it is never decided");
        self.get(id).step.get_or_init(|| Box::new(self.unpacked(id)))
    }

    /// The declaration, for one who looks at many steps once.
    pub fn step_once(&self, id: DefId) -> Step {
        self.get(id).step.get().map_or_else(|| self.unpacked(id), |step| step.as_ref().clone())
    }

    fn unpacked(&self, id: DefId) -> Step {
        let mut rest = self.bytes(id);
        let made = packed::text(&mut rest).and_then(|_| {
            skip_needs(&mut rest)?;
            Step::unpack(&mut rest)
        });
        made.expect("the caller of `unpack` has seen that the bytes are ours")
    }

    /// What a step that was not looked into is made of.
    fn bytes(&self, id: DefId) -> &[u8] {
        &self.packed[self.get(id).at as usize..]
    }

    /// What is asked of every step.
    pub fn brief(&self, id: DefId) -> Brief {
        self.get(id).brief
    }

    pub fn id(&self, id: DefId) -> &str {
        match self.get(id).step.get() {
            Some(step) => step.id.as_str(),
            None => packed::text(&mut self.bytes(id)).unwrap_or_default(),
        }
    }

    /// Indexes into the list that the step stands in, in order.
    pub(super) fn needs(&self, id: DefId) -> Vec<usize> {
        if let Some(step) = self.get(id).step.get() {
            step.needs.clone()
        } else {
            let mut rest = self.bytes(id);
            let needs = packed::text(&mut rest).and_then(|_| Vec::unpack(&mut rest));
            needs.unwrap_or_default()
        }
    }

    /// The workflow a step was declared in: its inputs and agents. Its steps are not in it.
    pub fn workflow_of(&self, id: DefId) -> &Workflow {
        &self.workflows[self.get(id).workflow as usize]
    }

    /// The workflow that the children of a sub-workflow step see.
    pub fn workflow_inside(&self, id: DefId) -> &Workflow {
        let def = self.get(id);
        let inside = def.children().first().map_or(def.workflow, |child| self.get(*child).workflow);
        &self.workflows[inside as usize]
    }

    /// The workflow as it was declared, steps and all.
    pub fn workflow(&self) -> Workflow {
        let steps = self.get(DefId::ROOT).children().iter().map(|id| self.whole(*id)).collect();
        Workflow { steps, ..self.workflows[0].clone() }
    }

    fn whole(&self, id: DefId) -> Step {
        let mut step = self.step_once(id);
        if let Kind::Group { steps } = &mut step.kind {
            *steps = self.get(id).children().iter().map(|id| self.whole(*id)).collect();
        }
        step
    }

    /// Declared steps in order, the root left out.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = DefId> {
        (1..self.all.len()).map(counted)
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
        let brief = self.brief(id);
        brief.has_when() || brief.often() != Often::Once
    }

    fn sources(&self, each: DefId) -> Option<&BTreeSet<String>> {
        self.get(each).more.as_ref().map(|more| &more.sources).filter(|it| !it.is_empty())
    }

    /// Whether some step only says which items it has.
    pub(super) fn has_sources(&self, each: DefId) -> bool {
        self.sources(each).is_some()
    }

    /// Whether `need` only says which items `each` has. An answer of a gate always counts.
    pub(super) fn is_source(&self, each: DefId, need: DefId) -> bool {
        // Most steps have none; nothing else is looked at then.
        let Some(sources) = self.sources(each) else { return false };
        let brief = self.brief(need);
        brief.is_leaf() && !brief.is_gate() && sources.contains(self.id(need))
    }

    /// Whether some template may look at the step's standard output.
    pub fn stdout_is_read(&self, id: DefId) -> bool {
        self.stdout_read.contains(self.id(id))
    }
}

/// Another number whenever the list itself is written differently; a step has one of its own.
const LAYOUT: u32 = 2;
/// Where the step stands, its workflow and its brief, four bytes each.
const ROW_BYTES: usize = 12;

/// As bytes, and from them.
impl Defs {
    /// A row of one size for each step, then those that have children or sources, then what the
    /// steps are made of.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Vec::new();
        packed::LAYOUT.pack(&mut to);
        LAYOUT.pack(&mut to);
        self.workflows.pack(&mut to);
        self.stdout_read.pack(&mut to);
        self.all.len().pack(&mut to);
        let mut own = Vec::new();
        for (index, def) in self.all.iter().enumerate() {
            to.extend(counted(own.len()).0.to_le_bytes());
            to.extend(def.workflow.to_le_bytes());
            to.extend(u32::from(def.brief.bits()).to_le_bytes());
            let packed = |step: &Step, own: &mut Vec<u8>| {
                step.id.pack(own);
                step.needs.pack(own);
                step.pack(own);
            };
            match def.step.get() {
                Some(step) => packed(step, &mut own),
                None if index == 0 => {}
                None => packed(&self.unpacked(counted(index)), &mut own),
            }
        }
        let all = self.all.iter().enumerate();
        let more: Vec<_> = all.filter_map(|(at, def)| Some((at, def.more.as_ref()?))).collect();
        more.len().pack(&mut to);
        for (index, More { children, sources }) in more.into_iter().map(|(at, it)| (at, &**it)) {
            index.pack(&mut to);
            children.len().pack(&mut to);
            for child in children {
                child.0.pack(&mut to);
            }
            sources.pack(&mut to);
        }
        own.len().pack(&mut to);
        to.extend_from_slice(&own);
        to
    }

    /// Takes the bytes that [`pack`](Self::pack) gave. What is of another layout, is cut short or
    /// points out of itself is refused; that all else is as it was written is for the caller to
    /// know.
    pub fn unpack(bytes: Vec<u8>) -> Option<Self> {
        Self::unpack_at(bytes, 0)
    }

    /// The same of bytes that stand behind others. They are held.
    pub fn unpack_at(bytes: Vec<u8>, at: usize) -> Option<Self> {
        // Positions in it are kept as such.
        u32::try_from(bytes.len()).ok()?;
        let mut from = bytes.get(at..)?;
        if [u32::unpack(&mut from)?, u32::unpack(&mut from)?] != [packed::LAYOUT, LAYOUT] {
            return None;
        }
        let workflows = Vec::<Workflow>::unpack(&mut from)?;
        let stdout_read = Pack::unpack(&mut from)?;
        let count = usize::unpack(&mut from)?;
        let rows = packed::take(&mut from, count.checked_mul(ROW_BYTES)?)?.as_chunks().0;
        let more = More::unpack(&mut from, count)?;
        let length = usize::unpack(&mut from)?;
        let own = bytes.len() - from.len();
        let def = |row: &[[u8; 4]; 3]| {
            let [at, workflow, brief] = row.map(u32::from_le_bytes);
            workflows.get(workflow as usize)?;
            let at =
                (at as usize <= length).then(|| at.checked_add(u32::try_from(own).ok()?))??;
            let brief = Brief::from_bits(brief)?;
            Some(Def { step: OnceLock::new(), more: None, workflow, brief, at })
        };
        let split = |row: &[u8; ROW_BYTES]| *row.as_chunks().0.first_chunk().expect("three words");
        let mut all = Vec::with_capacity(count);
        for row in rows {
            all.push(def(&split(row))?);
        }
        for (index, more) in more {
            all[index].more = more.some();
        }
        let is_whole = from.len() == length && !all.is_empty();
        let packed = Arc::new(bytes);
        is_whole.then_some(Self { all, workflows, stdout_read, packed, origin: None })
    }

    /// The same, known to be the steps of exactly this text: what is kept for them is found again.
    #[must_use]
    pub fn of_text(self, hash: Digest) -> Self {
        Self { origin: Some(hash), ..self }
    }

    /// The same, none of them made yet: for one who has looked into many and needs them no more.
    /// `None` where they could not be made again.
    pub fn unmade(&self) -> Option<Self> {
        let unmade = |def: &Def| {
            let Def { step: _, more, workflow, brief, at } = def;
            let (workflow, brief, at) = (*workflow, *brief, *at);
            Def { step: OnceLock::new(), more: more.clone(), workflow, brief, at }
        };
        (!self.packed.is_empty()).then(|| Self {
            all: self.all.iter().map(unmade).collect(),
            workflows: self.workflows.clone(),
            stdout_read: self.stdout_read.clone(),
            packed: Arc::clone(&self.packed),
            origin: self.origin,
        })
    }

    /// The text that they are known to be of.
    pub fn origin(&self) -> Option<Digest> {
        self.origin
    }
}

impl More {
    /// All of them, each of one of `count` steps, with children behind it among these.
    fn unpack(from: &mut &[u8], count: usize) -> Option<Vec<(usize, Self)>> {
        let mut all = Vec::new();
        for _ in 0..usize::unpack(from)? {
            let index = usize::unpack(from).filter(|it| *it < count)?;
            let children = usize::unpack(from)?;
            let children = (0..children).map(|_| {
                let child = u32::unpack(from).map(DefId)?;
                (child.0 as usize > index && (child.0 as usize) < count).then_some(child)
            });
            let children = children.collect::<Option<Vec<DefId>>>()?;
            all.push((index, Self { children, sources: BTreeSet::unpack(from)? }));
        }
        Some(all)
    }
}

fn skip_needs(from: &mut &[u8]) -> Option<()> {
    for _ in 0..usize::unpack(from)? {
        usize::unpack(from)?;
    }
    Some(())
}

fn counted(index: usize) -> DefId {
    DefId(u32::try_from(index).expect("fewer steps than a u32 counts"))
}
