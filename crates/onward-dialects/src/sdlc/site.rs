//! Which runs are there: six sources, the most specific first.
//!
//! Invariant: a story that a more specific state names is not listed again, nor by the older one of
//! two states of one kind. What is finished is no candidate, and is known by its name; what was
//! never begun, or is finished and has no state of its own, is a site only where nothing else is.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use onward_core::time::Timestamp;
use serde_json::Value;

use super::{
    epic::{self, Epic},
    project::{HOMES, Project, id_of_state, loop_story, state_map},
    qa::{self, Loop},
    spec::{Artifact, Critique, Spec},
    state::{Flow, State, mode},
    status::{Says, Status},
    story::{Story, bare},
};
use crate::{
    File, Files,
    kit::{
        json::Oddities,
        path::{inside, literal, shown},
    },
    rules::sdlc::{gate, turn, wave},
    seam::{Candidate, Card, Root, Site, Watch},
};

/// One run before it is a site.
struct Run {
    flow: Flow,
    /// A story, a feature or an epic.
    key: String,
    state: Option<String>,
    at: Option<Timestamp>,
    /// Only where its place is named.
    named_only: bool,
    /// It is over by its story alone: its own state says otherwise, and the user is to know.
    contested: bool,
    /// Nothing of it was begun: it says nothing about its story.
    idle: bool,
    reads: Vec<String>,
    /// Besides the state.
    about: Vec<String>,
    /// As the state has it.
    mode: Option<String>,
}

impl Run {
    fn new(flow: Flow) -> Self {
        Self {
            flow,
            key: String::new(),
            state: None,
            at: None,
            named_only: false,
            contested: false,
            idle: false,
            reads: Vec::new(),
            about: Vec::new(),
            mode: None,
        }
    }
}

pub(super) fn sites(card: &'static Card, candidate: &Candidate) -> Vec<Site> {
    // The state directory of a project is no project, whatever lies in it.
    let name = candidate.dir.rsplit('/').next().unwrap_or_default();
    if HOMES.iter().any(|home| home.trim_end_matches('/') == name) {
        return Vec::new();
    }
    let mut files = Files::default();
    for (path, glimpse) in &candidate.marks {
        let bytes = glimpse.bytes.clone().unwrap_or_default();
        files.insert(path.as_str(), File { bytes, modified: glimpse.modified });
    }
    let project = Project::of(&files);
    let mut runs = runs(&project);
    for run in &mut runs {
        run.about = about(&project, run);
    }
    let open = runs.iter().any(|it| !it.named_only);
    // A state that cannot be read tells no time.
    let written = |run: &Run| candidate.marks.get(run.state.as_ref()?)?.modified;
    let made = |run: Run| Site {
        last_activity: run.at.or_else(|| written(&run)),
        by_name_only: run.named_only && !run.contested,
        ..site(card, &candidate.dir, &run)
    };
    if open {
        let is_known = |it: &Run| !it.named_only || it.state.is_some() && !it.idle;
        let beside = |run: Run| Site { by_name_only: run.named_only, ..made(run) };
        return runs.into_iter().filter(is_known).map(beside).collect();
    }
    // Of what is over, the one that is contested, or the last one.
    let newest = runs
        .into_iter()
        .enumerate()
        .max_by_key(|(index, it)| (it.contested, it.at, usize::MAX - index));
    newest.map(|(_, run)| made(run)).into_iter().collect()
}

fn site(card: &'static Card, dir: &str, run: &Run) -> Site {
    let input = input(run.flow);
    let mut inputs: BTreeMap<String, Value> =
        [("dir".to_owned(), Value::from(dir)), (input.to_owned(), Value::from(run.key.as_str()))]
            .into();
    // A state in its usual place is found by what it is about, as one that our run began is.
    let usual = usual_state(run.flow, &run.key);
    if let Some(state) = run.state.as_ref().filter(|it| Some(*it) != usual.as_ref()) {
        inputs.insert("state".to_owned(), Value::from(state.as_str()));
    }
    let mut site = Site {
        name: format!("{}-{}", run.flow.as_str(), shown(&run.key)),
        workflow: run.flow.as_str(),
        inputs,
        implied: run.state.is_none(),
        mode: run.mode.as_deref().and_then(mode),
        about: run.state.iter().chain(&run.about).cloned().collect(),
        ..Site::at(card, dir)
    };
    if let Some(Root { reads, .. }) = site.roots.first_mut() {
        reads.extend(run.reads.iter().map(|it| literal(it)));
    }
    site
}

/// The files that speak of a run, besides its state.
fn about(project: &Project, run: &Run) -> Vec<String> {
    let path = |id: &str| project.story(id).map(|it| it.path.clone());
    match run.flow {
        Flow::Sdc | Flow::QaLoop => path(&run.key).into_iter().collect(),
        Flow::Spec => {
            let own = project.specs.iter().filter(|it| it.feature == run.key);
            own.flat_map(|it| it.there.iter().map(|it| it.1.clone())).collect()
        }
        Flow::Epic => {
            let own = project.epics.iter().find(|it| Some(&it.path) == run.state.as_ref());
            let open = own.into_iter().flat_map(|it| it.told.members());
            let open = open.filter(|it| !it.says.is_over()).filter_map(|it| path(&it.id));
            run.reads.iter().cloned().chain(open).collect()
        }
    }
}

/// A story of which no run is known: one that would begin, or is over.
pub(super) fn meant_by(
    path: &str,
    bytes: &[u8],
) -> Option<(&'static str, BTreeMap<String, Value>)> {
    let file = File { bytes: bytes.to_owned(), modified: None };
    let story = Story::read(path, &file).filter(|_| path.starts_with("docs/stories/"))?;
    Some((Flow::Sdc.as_str(), [("story".to_owned(), Value::from(story.id))].into()))
}

/// Where a run of ours keeps its state, or looks for it.
pub(super) fn usual_state(flow: Flow, key: &str) -> Option<String> {
    match flow {
        Flow::Sdc => Some(gate::state_path(key)),
        Flow::QaLoop => Some(turn::path(key)),
        Flow::Epic => Some(wave::path(key)),
        Flow::Spec => None,
    }
}

const fn input(flow: Flow) -> &'static str {
    match flow {
        Flow::Sdc | Flow::QaLoop => "story",
        Flow::Spec => "feature",
        Flow::Epic => "epic",
    }
}

/// `story 4.2`.
pub(super) fn about_run(workflow: &str, inputs: &BTreeMap<String, Value>) -> Option<String> {
    let flow = [Flow::Sdc, Flow::Spec, Flow::QaLoop, Flow::Epic];
    let flow = flow.into_iter().find(|it| it.as_str() == workflow)?;
    let key = inputs.get(input(flow)).and_then(Value::as_str).filter(|it| !it.is_empty())?;
    Some(format!("{} {}", input(flow), shown(key)))
}

/// The site that a run of ours goes on with, by what it was given.
pub(super) fn of_inputs(
    card: &'static Card,
    dir: &str,
    workflow: &str,
    inputs: &BTreeMap<String, Value>,
) -> Site {
    let flow = [Flow::Sdc, Flow::Spec, Flow::QaLoop, Flow::Epic];
    let flow = flow.into_iter().find(|it| it.as_str() == workflow).unwrap_or(Flow::Sdc);
    let text = |key: &str| {
        inputs.get(key).and_then(Value::as_str).filter(|it| !it.is_empty()).map(str::to_owned)
    };
    let reads = text("plan").and_then(|it| inside(&it)).into_iter().collect();
    let key = text(input(flow)).unwrap_or_default();
    let state = text("state");
    site(card, dir, &Run { key, state, reads, ..Run::new(flow) })
}

fn runs(project: &Project) -> Vec<Run> {
    let mut all = epics(project);
    all.extend(loops(project));
    all.extend(states(project));
    let broken = project.broken.iter().filter_map(|(path, _)| broken(project, path));
    all.extend(broken);
    drop_repeated(project, &mut all);
    let mut told: BTreeSet<String> = all.iter().flat_map(|it| names(project, it)).collect();
    for wanted in [Status::InProgress, Status::InReview] {
        let found = project.stories.iter().filter(|it| it.status() == Some(wanted));
        let found: Vec<Run> = found.filter(|it| told.insert(bare(&it.id))).map(implied).collect();
        all.extend(found);
    }
    let specs = all.iter().filter(|it| it.flow == Flow::Spec).map(|it| it.key.clone());
    let mut listed: BTreeSet<String> = specs.collect();
    let specs = project.specs.iter().filter(|it| listed.insert(it.feature.clone()));
    all.extend(specs.map(of_spec));
    if all.iter().all(|it| it.named_only) {
        let is_idle = |it: &&Story| {
            matches!(
                it.status(),
                Some(Status::Draft | Status::Ready | Status::Done | Status::Blocked) | None
            )
        };
        let is_done = |it: &Story| it.status() == Some(Status::Done);
        let idle =
            project.stories.iter().filter(is_idle).filter(|it| !told.contains(&bare(&it.id)));
        let mut idle: Vec<&Story> = idle.collect();
        let has_other = !all.is_empty() || idle.iter().any(|it| !is_done(it));
        idle.retain(|it| !is_done(it) || !has_other);
        let idle: Vec<Run> =
            idle.into_iter().map(|it| Run { named_only: true, ..implied(it) }).collect();
        all.extend(idle);
    }
    all
}

fn epics(project: &Project) -> Vec<Run> {
    let of = |kept: &super::project::Kept<epic::Epic>| {
        let epic = &kept.told;
        let status = |id: &str| project.story(id).and_then(Story::status);
        Run {
            key: epic.id.clone(),
            state: Some(kept.path.clone()),
            at: epic.updated_at.or(epic.started_at).or(kept.modified),
            named_only: epic.next(&status) == epic::Next::Over,
            reads: epic.plan_path.as_deref().and_then(inside).into_iter().collect(),
            mode: epic.mode.clone(),
            ..Run::new(Flow::Epic)
        }
    };
    project.epics.iter().map(of).collect()
}

fn loops(project: &Project) -> Vec<Run> {
    let of = |kept: &super::project::Kept<qa::Loop>| Run {
        key: kept.told.story.clone(),
        state: Some(kept.path.clone()),
        at: kept.told.updated_at.or(kept.told.started_at).or(kept.modified),
        named_only: kept.told.next() == qa::Next::Over || kept.told.is_idle(),
        idle: kept.told.is_idle(),
        ..Run::new(Flow::QaLoop)
    };
    project.loops.iter().map(of).collect()
}

fn states(project: &Project) -> Vec<Run> {
    let mut all = Vec::new();
    for kept in &project.states {
        let state = &kept.told;
        let key = match state.flow {
            Flow::Sdc | Flow::QaLoop | Flow::Epic => state.story.clone(),
            Flow::Spec => state.feature.clone().or_else(|| state.story.clone()),
        };
        let Some(key) = key else { continue };
        let story = project.story(&key).and_then(Story::status);
        let is_done = story == Some(Status::Done) && !state.awaits;
        let is_done = state.flow == Flow::Sdc && is_done;
        all.push(Run {
            key,
            state: Some(kept.path.clone()),
            at: state.updated_at.or(state.started_at).or(kept.modified),
            named_only: state.is_over() || is_done,
            contested: is_done && !state.is_over(),
            reads: state.artifacts.iter().chain(&state.needs).filter_map(|it| inside(it)).collect(),
            mode: state.mode.clone(),
            ..Run::new(state.flow)
        });
    }
    all
}

/// What a state file that cannot be read was about, by its name.
fn broken(project: &Project, path: &str) -> Option<Run> {
    let run = |flow, key: String| Run { key, state: Some(path.to_owned()), ..Run::new(flow) };
    if path.ends_with("loop-status.json") {
        let review = project.stories.iter().find(|it| it.status() == Some(Status::InReview));
        let story = loop_story(path).or_else(|| review.map(|it| it.id.clone()));
        return Some(run(Flow::QaLoop, story.unwrap_or_default()));
    }
    let name = path.rsplit('/').next()?;
    let id = id_of_state(path)?;
    if name.starts_with("epic-") {
        return Some(run(Flow::Epic, id));
    }
    let is_home = HOMES.iter().any(|home| path.starts_with(home));
    let active = project
        .stories
        .iter()
        .filter(|it| matches!(it.status(), Some(Status::InProgress | Status::InReview)));
    let active: Vec<&Story> = active.collect();
    let open = project.stories.iter().filter(|it| it.status() != Some(Status::Done));
    let open: Vec<&Story> = open.collect();
    match (project.story(&id), active.as_slice(), open.as_slice()) {
        (Some(story), ..) => Some(run(Flow::Sdc, story.id.clone())),
        // The only one that it can be about: one that is worked on, or else one that is not done.
        (None, [only], _) | (None, [], [only]) if is_home => Some(run(Flow::Sdc, only.id.clone())),
        (None, ..) => None,
    }
}

fn implied(story: &Story) -> Run {
    let at = story.log.iter().map(|it| it.0).max().max(story.modified);
    Run { key: story.id.clone(), at, ..Run::new(Flow::Sdc) }
}

fn of_spec(spec: &Spec) -> Run {
    let is_over = spec.has(Artifact::Critique)
        && spec.critique == Some(Critique::Approved)
        && !spec.rewritten;
    let (key, at) = (spec.feature.clone(), spec.touched);
    Run { key, at, named_only: is_over, ..Run::new(Flow::Spec) }
}

/// The stories that an open run speaks of, by their bare ids.
fn names(project: &Project, run: &Run) -> Vec<String> {
    match run.flow {
        Flow::Sdc | Flow::QaLoop if run.idle => Vec::new(),
        Flow::Sdc | Flow::QaLoop => vec![bare(&run.key)],
        Flow::Spec => Vec::new(),
        Flow::Epic if run.named_only => Vec::new(),
        Flow::Epic => {
            let kept = project.epics.iter().find(|it| Some(&it.path) == run.state.as_ref());
            let members = kept.into_iter().flat_map(|it| it.told.members());
            members.filter(|it| !it.says.is_over()).map(|it| bare(&it.id)).collect()
        }
    }
}

/// Of several that speak of one story, the most specific one stays, and the newest of its kind.
fn drop_repeated(project: &Project, all: &mut Vec<Run>) {
    // Where each stands in the order of the sources, which is kept.
    let mut runs: Vec<(usize, Run)> = all.drain(..).enumerate().collect();
    let source = |run: &Run| match run.flow {
        Flow::Epic => 0,
        Flow::QaLoop => 1,
        Flow::Sdc | Flow::Spec => 2,
    };
    runs.sort_by_key(|(at, run)| (source(run), Reverse(run.at), *at));
    let mut kept: Vec<(usize, Run)> = Vec::new();
    let mut told: BTreeSet<String> = BTreeSet::new();
    // What is over says nothing of what is open, and one that is over is enough.
    let mut over: BTreeSet<(&'static str, String)> = BTreeSet::new();
    for (at, run) in runs {
        let is_story = matches!(run.flow, Flow::Sdc | Flow::QaLoop);
        let is_told = is_story && told.contains(&bare(&run.key));
        let is_over = run.named_only && !run.contested;
        if is_told || is_over && !over.insert((run.flow.as_str(), bare(&run.key))) {
            continue;
        }
        if !run.named_only {
            told.extend(names(project, &run));
        }
        kept.push((at, run));
    }
    kept.sort_by_key(|(at, _)| *at);
    *all = kept.into_iter().map(|(_, run)| run).collect();
}

/// The artifacts, templates and configuration that a state names; the plan that an epic names.
pub(super) fn more(site: &Site, files: &Files) -> Vec<String> {
    let given =
        |name: &str| site.inputs.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let flow = [Flow::Sdc, Flow::Spec, Flow::QaLoop, Flow::Epic];
    let flow = flow.into_iter().find(|it| it.as_str() == site.workflow);
    let Some((flow, key)) = flow.map(|it| (it, given(input(it)).unwrap_or_default())) else {
        return Vec::new();
    };
    let state = given("state").map(str::to_owned).or_else(|| usual_state(flow, key));
    let odd = Oddities::default();
    let map = state.and_then(|path| Some((state_map(&path, files.bytes(&path)?).ok()?, path)));
    let Some((map, path)) = map else { return Vec::new() };
    let named = match flow {
        Flow::Epic => {
            Epic::read(&map, &path, &odd).and_then(|it| it.plan_path).into_iter().collect()
        }
        Flow::Sdc | Flow::Spec => State::read(&map, &path, &odd)
            .map(|it| [it.artifacts, it.needs].concat())
            .unwrap_or_default(),
        Flow::QaLoop => Vec::new(),
    };
    named.iter().filter_map(|it| inside(it)).collect()
}

/// The stories of a run as they were when the run's state was last written: what changed in them
/// since is no work of the run.
pub(super) fn moments(site: &Site, files: &Files) -> Vec<(String, Timestamp)> {
    let Some((at, stories)) = worked_on(site, files) else { return Vec::new() };
    stories.into_iter().map(|it| (it.path, at)).collect()
}

/// The files that those stories list, from that moment on.
pub(super) fn watch(site: &Site, files: &Files) -> Option<Watch> {
    let (since, stories) = worked_on(site, files)?;
    let mut paths: Vec<String> = stories.into_iter().flat_map(|it| it.files).collect();
    paths.sort_unstable();
    paths.dedup();
    (!paths.is_empty()).then_some(Watch { since, paths })
}

/// When a run's state was last written, and the stories that were being worked on.
fn worked_on(site: &Site, files: &Files) -> Option<(Timestamp, Vec<Story>)> {
    let given =
        |name: &str| site.inputs.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
    let flow = [Flow::Sdc, Flow::QaLoop, Flow::Epic];
    let flow = flow.into_iter().find(|it| it.as_str() == site.workflow);
    let (flow, key) = flow.and_then(|it| Some((it, given(input(it))?)))?;
    let state = given("state").map(str::to_owned).or_else(|| usual_state(flow, key));
    let (at, ids) = state.and_then(|path| last_written(flow, key, &path, files))?;
    let ids: Vec<String> = ids.iter().map(|it| bare(it)).collect();
    let may_be = |path: &str| {
        let path = path.to_lowercase();
        ids.iter().any(|id| path.contains(id))
    };
    let stories = files.iter().filter(|(path, _)| may_be(path));
    let stories = stories.filter_map(|(path, file)| Story::read(path, file));
    Some((at, stories.filter(|it| ids.contains(&bare(&it.id))).collect()))
}

/// When a state was last written, and the stories that were being worked on then.
fn last_written(
    flow: Flow,
    key: &str,
    path: &str,
    files: &Files,
) -> Option<(Timestamp, Vec<String>)> {
    let (file, odd) = (files.file(path)?, Oddities::default());
    let own = vec![key.to_owned()];
    match flow {
        Flow::QaLoop => Some((Loop::of(file, path, &odd).ok()?.updated_at?, own)),
        Flow::Sdc => {
            Some((State::read(&state_map(path, &file.bytes).ok()?, path, &odd)?.updated_at?, own))
        }
        Flow::Epic => {
            let epic = Epic::read(&state_map(path, &file.bytes).ok()?, path, &odd)?;
            let open = epic.members().filter(|it| it.says == Says::InProgress);
            Some((epic.updated_at?, open.map(|it| it.id.clone()).collect()))
        }
        Flow::Spec => None,
    }
}
