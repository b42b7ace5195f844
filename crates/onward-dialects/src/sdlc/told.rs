//! What core asks of such a run: how it stands, what is done, what comes next.

use std::{cell::OnceCell, collections::BTreeMap, sync::Arc};

use onward_core::{
    address::Address,
    finding::Finding,
    plan::{RecoveryPoint, Referred, Status as RunStatus},
    time::Timestamp,
    told::{
        Ahead, Change, CleanUp, Deed, Entering, Journaled, LastTold, NoEntry, Overtaken, Standing,
        StepTold, Told, Undo,
    },
};
use serde_json::Value;

use super::{
    Code, SpecFacts, check, clean, enter,
    epic::{Epic, Next as NextWave},
    epic_code, knows, lock, loop_code, overtaken, preflight,
    project::Project,
    qa::{Loop, Next as NextTurn},
    report,
    site::usual_state,
    spec::{Artifact, Critique, Spec},
    spec_code,
    state::{Flow, State},
    status::Status,
    step,
    story::{Story, is_same},
    story_code,
    story_run::StoryRun,
    write,
};
use crate::{
    Files,
    kit::path::shown,
    rules::sdlc::{sections::Marked, turn, wave},
    seam::{Missing, Site},
};

/// See the module.
pub(super) struct SdlcTold {
    pub(super) dir: String,
    pub(super) flow: Flow,
    pub(super) key: String,
    pub(super) state_path: Option<String>,
    pub(super) project: Arc<Project>,
    pub(super) files: Files,
    pub(super) kind: Kind,
    pub(super) code: Code,
    /// Why the state file cannot be read; the rest was rebuilt without it.
    pub(super) rebuilt: Option<String>,
    pub(super) opening: OnceCell<Value>,
    members: OnceCell<BTreeMap<Address, usize>>,
}

pub(super) enum Kind {
    Story(StoryRun),
    Spec(Spec),
    Loop(Loop),
    Epic(Epic),
}

impl SdlcTold {
    pub(super) fn new(site: &Site, files: Files) -> Result<Self, Missing> {
        // Who lives is no matter of the files.
        let project = if files.alive.is_empty() {
            files.worked_out(Project::of)
        } else {
            Arc::new(Project::of(&files))
        };
        let flow = [Flow::Sdc, Flow::Spec, Flow::QaLoop, Flow::Epic];
        let flow = flow.into_iter().find(|it| it.as_str() == site.workflow).unwrap_or(Flow::Sdc);
        let input = |key: &str| site.inputs.get(key).and_then(Value::as_str);
        let key = ["story", "feature", "epic"].iter().find_map(|key| input(key));
        let key = key.unwrap_or_default().to_owned();
        let state_path = input("state").filter(|it| !it.is_empty()).map(str::to_owned);
        let state_path = state_path.or_else(|| kept_path(&project, flow, &key));
        if key.is_empty() && state_path.is_none() {
            return Err(Missing {
                dialect: "sdlc",
                file: "docs/stories".to_owned(),
                hint: "name a project with stories, or start with `onward run sdc`".to_owned(),
            });
        }
        let why = |path: &String| project.broken.iter().find(|(it, _)| it == path);
        let rebuilt = state_path.as_ref().and_then(why).map(|(_, why)| why.clone());
        let kept_state = || {
            let mut all = project.states.iter();
            let by_path = all.find(|it| Some(&it.path) == state_path.as_ref());
            by_path.map(|it| it.told.clone())
        };
        let (kind, code) = match flow {
            Flow::Sdc => {
                let run = StoryRun::of(&project, &key, kept_state());
                let code = story_code(run.facts);
                (Kind::Story(run), code)
            }
            Flow::Spec => {
                let spec = project.specs.iter().find(|it| it.feature == key).cloned();
                let spec = spec.unwrap_or_else(|| Spec {
                    folder: format!("docs/specs/{}", crate::kit::path::component(&key)),
                    feature: key.clone(),
                    ..Spec::default()
                });
                let code = spec_code(spec_facts(&spec));
                (Kind::Spec(spec), code)
            }
            Flow::QaLoop => {
                let mut all = project.loops.iter();
                let by_path = all.find(|it| Some(&it.path) == state_path.as_ref());
                let by_story = || project.loops.iter().find(|it| is_same(&it.told.story, &key));
                let told = by_path.or_else(by_story).map(|it| it.told.clone());
                let told = told.unwrap_or_else(|| rebuilt_loop(&key, kept_state().as_ref()));
                let code = loop_code(told.next());
                (Kind::Loop(told), code)
            }
            Flow::Epic => {
                let mut all = project.epics.iter();
                let by_path = all.find(|it| Some(&it.path) == state_path.as_ref());
                let epic = match (by_path, &state_path) {
                    (Some(kept), _) => kept.told.clone(),
                    (None, Some(path)) => project.rebuilt_epic(path, &files),
                    (None, None) => {
                        let mut all = project.epics.iter();
                        let kept = all.find(|it| is_same(&it.told.id, &key));
                        kept.map(|it| it.told.clone()).unwrap_or_default()
                    }
                };
                let status = |id: &str| project.story(id).and_then(Story::status);
                let code = if epic.waves.is_empty() && !epic.is_over() {
                    Code::Stories
                } else {
                    epic_code(epic.next(&status))
                };
                (Kind::Epic(epic), code)
            }
        };
        Ok(Self {
            dir: site.dir().to_owned(),
            flow,
            key,
            state_path,
            project,
            files,
            kind,
            code,
            rebuilt,
            opening: OnceCell::new(),
            members: OnceCell::new(),
        })
    }

    /// The stories of an epic by their addresses: which one of its wave each is.
    pub(super) fn members(&self) -> &BTreeMap<Address, usize> {
        self.members.get_or_init(|| {
            let waves = match &self.kind {
                Kind::Epic(epic) => Some(&epic.waves),
                Kind::Story(_) | Kind::Spec(_) | Kind::Loop(_) => None,
            };
            let mut all = BTreeMap::new();
            for (number, wave) in waves.into_iter().flatten() {
                for (place, member) in wave.stories.iter().enumerate() {
                    all.entry(step::address(*number, member)).or_insert(place);
                }
            }
            all
        })
    }

    pub(super) fn story(&self) -> Option<&Story> {
        self.project.story(&self.key)
    }

    pub(super) fn status_of(&self, id: &str) -> Option<Status> {
        self.project.story(id).and_then(Story::status)
    }

    pub(super) fn next_wave(&self) -> Option<NextWave> {
        match &self.kind {
            Kind::Epic(epic) => Some(epic.next(&|id| self.status_of(id))),
            Kind::Story(_) | Kind::Spec(_) | Kind::Loop(_) => None,
        }
    }

    /// In the numbers of the workflow: phases, iterations or waves.
    pub(super) fn phase(&self) -> Option<u32> {
        match self.code {
            Code::Create | Code::Gather => Some(1),
            Code::Validate | Code::Assess => Some(2),
            Code::Implement | Code::Research => Some(3),
            Code::QaGate | Code::Write => Some(4),
            Code::StoryCheckpoint | Code::Critique => Some(5),
            Code::Review | Code::Fix | Code::Escalate => match &self.kind {
                Kind::Loop(told) => match told.next() {
                    NextTurn::Review(it) | NextTurn::Fix(it) | NextTurn::Escalate(it) => Some(it),
                    NextTurn::Over => None,
                },
                Kind::Story(_) | Kind::Spec(_) | Kind::Epic(_) => None,
            },
            Code::Stories | Code::Gate | Code::Checkpoint | Code::FinalGate => {
                match (self.next_wave(), &self.kind) {
                    (
                        Some(NextWave::Stories(it) | NextWave::Gate(it) | NextWave::Checkpoint(it)),
                        _,
                    ) => Some(it),
                    (Some(NextWave::FinalGate), Kind::Epic(epic)) => {
                        epic.waves.keys().next_back().copied()
                    }
                    (
                        Some(NextWave::FinalGate | NextWave::Over) | None,
                        Kind::Epic(_) | Kind::Story(_) | Kind::Spec(_) | Kind::Loop(_),
                    ) => None,
                }
            }
            Code::Complete => None,
        }
    }

    pub(super) fn last_at(&self) -> Option<(String, Timestamp)> {
        let named = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let state = self.state_path.as_deref();
        let by_state = self.noted_at();
        let file = |path: &str| self.files.file(path).and_then(|it| it.modified);
        if let Some(path) = state {
            let at = by_state.or_else(|| file(path))?;
            return Some((named(path), at));
        }
        match &self.kind {
            Kind::Spec(spec) => Some((spec.feature.clone(), spec.touched?)),
            Kind::Story(_) | Kind::Loop(_) | Kind::Epic(_) => {
                let story = self.story()?;
                let logged = story.log.iter().map(|it| it.0).max();
                Some((named(&story.path), logged.max(story.modified)?))
            }
        }
    }

    /// When its state was last written, where the state itself says so.
    pub(super) fn noted_at(&self) -> Option<Timestamp> {
        match &self.kind {
            Kind::Story(run) => run.state.as_ref().and_then(|it| it.updated_at.or(it.started_at)),
            Kind::Loop(told) => told.updated_at.or(told.started_at),
            Kind::Epic(epic) => epic.updated_at.or(epic.started_at),
            Kind::Spec(_) => None,
        }
    }

    fn started_at(&self) -> Option<Timestamp> {
        match &self.kind {
            Kind::Story(run) => run.state.as_ref().and_then(|it| it.started_at),
            Kind::Loop(told) => told.started_at,
            Kind::Epic(epic) => epic.started_at,
            Kind::Spec(_) => None,
        }
    }

    /// The mode that the run was started in, as it is written.
    pub(super) fn mode(&self) -> Option<&str> {
        match &self.kind {
            Kind::Story(run) => run.state.as_ref()?.mode.as_deref(),
            Kind::Epic(epic) => epic.mode.as_deref(),
            Kind::Loop(_) | Kind::Spec(_) => None,
        }
    }

    /// A run could begin here, and none has.
    pub(super) fn is_unbegun(&self) -> bool {
        match &self.kind {
            Kind::Story(run) => {
                // A story that was validated is one that a run can begin with.
                let is_ready = run.known == Some(Status::Ready) && !run.facts.failed;
                let is_early = matches!(self.code, Code::Create | Code::Validate);
                run.state.is_none() && (is_early || is_ready)
            }
            Kind::Spec(spec) => spec.there.is_empty() && self.state_path.is_none(),
            Kind::Loop(told) => told.is_idle(),
            Kind::Epic(_) => self.state_path.is_none(),
        }
    }

    fn status(&self, now: Timestamp) -> RunStatus {
        match self.code {
            Code::Complete => RunStatus::Completed,
            _ if lock::live(self, now).is_some() => RunStatus::Running,
            Code::StoryCheckpoint | Code::Checkpoint | Code::Escalate => RunStatus::Waiting,
            Code::Create
            | Code::Validate
            | Code::Implement
            | Code::QaGate
            | Code::Gather
            | Code::Assess
            | Code::Research
            | Code::Write
            | Code::Critique
            | Code::Review
            | Code::Fix
            | Code::Stories
            | Code::Gate
            | Code::FinalGate => {
                if self.is_unbegun() {
                    RunStatus::Fresh
                } else {
                    RunStatus::Interrupted
                }
            }
        }
    }

    pub(super) fn summary(&self) -> String {
        let (_, name, agent) = self.code.row();
        let title = self.flow.title();
        let key = shown(&self.key);
        let number = self.phase().map(|it| it.to_string()).unwrap_or_default();
        let place = match self.code {
            Code::Complete => return format!("{title} for {key} is already complete"),
            Code::Stories if number.is_empty() => {
                return format!("{title} for {key}: no file names its waves and stories");
            }
            Code::Review | Code::Fix | Code::Escalate => {
                let max = match &self.kind {
                    Kind::Loop(told) => told.max,
                    Kind::Story(_) | Kind::Spec(_) | Kind::Epic(_) => 0,
                };
                format!("iteration {number}/{max}, {name}")
            }
            Code::Stories | Code::Gate | Code::Checkpoint => format!("wave {number}, {name}"),
            Code::FinalGate => name.to_owned(),
            Code::Create
            | Code::Validate
            | Code::Implement
            | Code::QaGate
            | Code::StoryCheckpoint
            | Code::Gather
            | Code::Assess
            | Code::Research
            | Code::Write
            | Code::Critique => format!("phase {number} ({name})"),
        };
        let open = self.story().and_then(Story::first_open_task);
        let task = match open.filter(|_| self.code == Code::Implement) {
            Some(task) => format!("; first open task: {}", shown(task)),
            None if self.code == Code::Stories => {
                format!(": {}", shown(&step::steps(self).join(", ")))
            }
            None => String::new(),
        };
        format!("{title} for {key}: {place} by @{agent}{task}")
    }
}

/// Where the state of a loop or an epic is kept that is known by what it is about.
fn kept_path(project: &Project, flow: Flow, key: &str) -> Option<String> {
    let is_broken = |path: &String| project.broken.iter().any(|it| it.0 == *path);
    let (known, usual) = match flow {
        Flow::QaLoop => {
            let mut all = project.loops.iter();
            let known = all.find(|it| is_same(&it.told.story, key)).map(|it| it.path.clone());
            (known, turn::path(key))
        }
        Flow::Epic => {
            let mut all = project.epics.iter();
            let known = all.find(|it| is_same(&it.told.id, key)).map(|it| it.path.clone());
            (known, wave::path(key))
        }
        Flow::Sdc => {
            let usual = usual_state(flow, key).unwrap_or_default();
            let is_it = |it: &&super::project::Kept<State>| it.path == usual;
            (project.states.iter().find(is_it).map(|it| it.path.clone()), usual)
        }
        Flow::Spec => return None,
    };
    known.or_else(|| Some(usual).filter(is_broken))
}

fn spec_facts(spec: &Spec) -> SpecFacts {
    SpecFacts {
        requirements: spec.has(Artifact::Requirements),
        complexity: spec.has(Artifact::Complexity),
        simple: spec.is_simple,
        research: spec.has(Artifact::Research),
        spec: spec.has(Artifact::Spec),
        judged: spec.critique.is_some() && !spec.rewritten,
        approved: spec.critique == Some(Critique::Approved),
    }
}

/// A loop whose file cannot be read starts over; what a state says about it counts.
fn rebuilt_loop(story: &str, state: Option<&State>) -> Loop {
    let verdict = state.and_then(|it| it.verdict);
    let current = state.and_then(|it| it.pointer).unwrap_or(1).max(1);
    let turn = super::qa::Turn { verdict, fixed: false };
    Loop {
        story: story.to_owned(),
        current,
        pointer: state.and_then(|it| it.pointer).unwrap_or(0),
        is_lost: false,
        max: super::qa::ITERATIONS.max(current),
        turns: [(current, turn)].into(),
        word: None,
        escalated: None,
        waived: false,
        closing: false,
        started_at: state.and_then(|it| it.started_at),
        updated_at: state.and_then(|it| it.updated_at),
        resumes: 0,
        map: serde_json::Map::new(),
    }
}

impl Told for SdlcTold {
    fn standing(&self, now: Timestamp) -> Standing {
        let asks = self.rebuilt.as_ref().map(|_| {
            format!("the state file cannot be read; rebuilt without it: {}", self.summary())
        });
        let resumes = match &self.kind {
            Kind::Loop(told) => told.resumes,
            Kind::Story(_) | Kind::Spec(_) | Kind::Epic(_) => 0,
        };
        Standing {
            status: self.status(now),
            started_at: self.started_at(),
            last_event: self.last_at().map(|(kind, at)| LastTold { kind, at }),
            resumes,
            point: RecoveryPoint {
                code: self.code.as_str().to_owned(),
                phase: self.phase().map(|it| it.to_string()),
                round: None,
                steps: step::steps(self),
                summary: self.summary(),
            },
            report: report::report(self, now),
            needs_agents: !matches!(
                self.code,
                Code::Complete | Code::StoryCheckpoint | Code::Checkpoint | Code::Escalate
            ),
            asks,
        }
    }

    fn closing(&self, findings: &[Finding]) -> Option<String> {
        (self.code != Code::Complete).then(|| report::validation(findings))
    }

    fn findings(&self, now: Timestamp) -> Vec<Finding> {
        check::findings(self, now)
    }

    fn step(&self, at: &Address) -> StepTold {
        step::told(self, at)
    }

    fn vouches(&self, at: &Address) -> bool {
        step::vouched(self, at.as_str())
    }

    fn row(&self, at: &Address) -> Address {
        step::row(self.flow, at)
    }

    fn ahead(&self) -> Option<Ahead> {
        step::ahead(self)
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn enter(&self, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
        enter::enter(self, at)
    }

    fn clean_up(&self, now: Timestamp) -> Option<CleanUp> {
        clean::clean_up(self, now)
    }

    fn guards(&self, at: &Address, path: &str) -> bool {
        let name = match self.dir.as_str() {
            "." => Some(path),
            dir => path.strip_prefix(dir).and_then(|it| it.strip_prefix('/')),
        };
        let is_story = |it: &str| self.project.stories.iter().any(|story| story.path == it);
        step::role(self.flow, at.as_str()).is_some() && name.is_some_and(is_story)
    }

    fn is_beyond(&self, at: &Address, before: &[u8], after: &[u8]) -> bool {
        let Some(role) = step::role(self.flow, at.as_str()) else { return false };
        let marked = |bytes: &[u8]| Marked::of(&String::from_utf8_lossy(bytes));
        !marked(before).trespassed(&marked(after), role).is_empty()
    }

    fn beside(&mut self, known: &dyn Fn(&Address) -> Journaled) {
        knows::beside(self, known);
    }

    fn overtaken(&self, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
        overtaken::overtaken(self, known)
    }

    fn preflight(&self) -> Option<Referred> {
        Some(preflight::referred(self))
    }

    fn write(&self, deed: &Deed<'_>) -> Vec<Change> {
        match deed {
            Deed::Resumed { at, .. } => write::resumed(self, *at),
            Deed::Cancelled { at } => write::cancelled(self, *at),
        }
    }
}
