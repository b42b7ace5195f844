//! What a person is shown before a resume in preflight mode: every file that the run refers to, the
//! status of every story, the chain of dependencies, and all phases that are left.
//!
//! Invariant: complete. What the checks look at is listed here whether or not something is wrong.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    plan::{ComparedStatus, Dependency, Referred, ReferredFile},
    time::Timestamp,
};

use super::{
    Code,
    epic::{Epic, Member, Next as NextWave},
    qa::{Loop, Next as NextTurn, Verdict},
    spec::{Artifact, Spec},
    status::{Reading, Says, Status, reading},
    step,
    story::{Story, bare, is_same},
    story_run::StoryRun,
    told::{Kind, SdlcTold},
};
use crate::kit::path::{inside, shown};

pub(super) fn referred(told: &SdlcTold) -> Referred {
    Referred {
        since: since(told),
        files: files(told),
        statuses: statuses(told),
        dependencies: dependencies(told),
        ahead: ahead(told),
    }
}

fn since(told: &SdlcTold) -> Option<Timestamp> {
    match &told.kind {
        Kind::Story(run) => run.state.as_ref()?.updated_at,
        Kind::Loop(it) => it.updated_at,
        Kind::Epic(epic) => epic.updated_at,
        Kind::Spec(_) => None,
    }
}

/// Each file once, under the first role that it has.
struct Files<'a> {
    told: &'a SdlcTold,
    all: Vec<ReferredFile>,
    known: BTreeSet<String>,
}

impl Files<'_> {
    fn add(&mut self, path: &str, role: &'static str, critical: bool) {
        let Some(path) = inside(path) else { return };
        if self.known.insert(path.clone()) {
            self.all.push(ReferredFile { path, role, critical });
        }
    }

    /// A story, its gates, and what its File List names.
    fn story(&mut self, id: &str, file: Option<&str>) {
        let told = self.told;
        let Some(story) = told.project.story(id) else {
            let usual = step::story_path(id);
            return self.add(file.unwrap_or(&usual), "story", true);
        };
        self.add(&story.path, "story", true);
        for gate in told.project.gates.iter().filter(|it| is_same(&it.story, id)) {
            self.add(&gate.path, "gate", false);
        }
        for path in &story.files {
            self.add(path, "File List", false);
        }
    }
}

fn files(told: &SdlcTold) -> Vec<ReferredFile> {
    let mut files = Files { told, all: Vec::new(), known: BTreeSet::new() };
    if let Some(path) = &told.state_path {
        files.add(path, "state", true);
    }
    match &told.kind {
        Kind::Story(StoryRun { state, .. }) => {
            files.story(&told.key, None);
            for path in state.iter().flat_map(|it| &it.artifacts) {
                files.add(path, "artifact", false);
            }
            for path in state.iter().flat_map(|it| &it.needs) {
                files.add(path, "template or configuration", false);
            }
        }
        Kind::Loop(_) => files.story(&told.key, None),
        Kind::Spec(spec) => {
            for (kind, path) in &spec.there {
                files.add(path, kind.as_str(), false);
            }
            for (path, _) in &spec.broken {
                files.add(path, "artifact", false);
            }
        }
        Kind::Epic(epic) => {
            if let Some(plan) = &epic.plan_path {
                files.add(plan, "plan", false);
            }
            for member in epic.members() {
                files.story(&member.id, member.file.as_deref());
            }
        }
    }
    files.all
}

fn statuses(told: &SdlcTold) -> Vec<ComparedStatus> {
    match &told.kind {
        Kind::Story(run) => {
            let says = run.state.as_ref().and_then(super::state::State::says);
            vec![status(told, &told.key, says)]
        }
        Kind::Loop(_) => vec![status(told, &told.key, Some(Says::InReview))],
        Kind::Epic(epic) => {
            let of = |it: &Member| {
                let says = (!it.is_new && told.rebuilt.is_none()).then_some(it.says);
                status(told, &it.id, says)
            };
            epic.members().map(of).collect()
        }
        Kind::Spec(_) => Vec::new(),
    }
}

fn status(told: &SdlcTold, id: &str, says: Option<Says>) -> ComparedStatus {
    let story = told.project.story(id);
    let status = story.and_then(Story::status);
    let verdict = match (says, story, status) {
        (_, None, _) => "its file is missing",
        (_, Some(_), None) => "its status is not known",
        (None, Some(_), Some(_)) => "no state speaks of it",
        (Some(says), Some(_), Some(status)) => match reading(says, status) {
            Reading::Consistent => "consistent",
            Reading::CompletedOutside => "completed outside this workflow",
            Reading::Reset => "reset; the state is stale",
            Reading::ValidatedMeanwhile => "validated while paused; fine",
            Reading::StoryAhead => "the story is further than the state",
            Reading::StoryBehind => "the state is further than the story",
        },
    };
    let word = story.and_then(|it| match &it.status {
        Ok(status) => Some(status.as_str().to_owned()),
        Err(word) => word.as_deref().map(shown),
    });
    ComparedStatus {
        story: shown(id),
        state: says.map(|it| it.as_str().to_owned()),
        file: word,
        verdict: verdict.to_owned(),
    }
}

fn dependencies(told: &SdlcTold) -> Vec<Dependency> {
    let link = |what: String, after: String, verdict: &str| Dependency {
        what,
        after,
        verdict: verdict.to_owned(),
    };
    match &told.kind {
        Kind::Story(_) | Kind::Loop(_) => {
            let after = told.story().map(|it| it.after.as_slice()).unwrap_or_default();
            let of = |id: &String| {
                let (one, other) = (shown(&told.key), shown(id));
                link(format!("story {one}"), format!("story {other}"), standing(told, id))
            };
            after.iter().map(of).collect()
        }
        Kind::Epic(epic) => {
            let mut all = Vec::new();
            let mut members: BTreeMap<String, &Member> = BTreeMap::new();
            for member in epic.members() {
                members.entry(bare(&member.id)).or_insert(member);
            }
            for member in epic.members() {
                let own = told.project.story(&member.id).map(|it| it.after.as_slice());
                let more = own.unwrap_or_default();
                let more = more.iter().filter(|id| !member.after.iter().any(|it| is_same(it, id)));
                for id in member.after.iter().chain(more) {
                    let over = members.get(&bare(id));
                    let over = over.is_some_and(|it| it.is_over(&|id| told.status_of(id)));
                    let verdict = if over { "done" } else { standing(told, id) };
                    let (one, other) = (shown(&member.id), shown(id));
                    all.push(link(format!("story {one}"), format!("story {other}"), verdict));
                }
            }
            for number in epic.waves.keys().skip(1) {
                let before = format!("wave {}", number - 1);
                let is_over = epic
                    .waves
                    .get(&(number - 1))
                    .is_some_and(|it| it.verdict == Some(Verdict::Approve));
                let verdict = if is_over { "done" } else { "open" };
                all.push(link(format!("wave {number}"), before, verdict));
            }
            all
        }
        Kind::Spec(spec) => {
            let needed = Artifact::ALL
                .into_iter()
                .filter(|it| *it != Artifact::Research || !spec.is_simple || spec.has(*it));
            let needed: Vec<Artifact> = needed.collect();
            let pairs = needed.iter().zip(needed.iter().skip(1));
            let of = |(before, it): (&Artifact, &Artifact)| {
                let verdict = if spec.has(*before) { "done" } else { "open" };
                link(it.as_str().to_owned(), before.as_str().to_owned(), verdict)
            };
            pairs.map(of).collect()
        }
    }
}

fn standing(told: &SdlcTold, id: &str) -> &'static str {
    match (told.project.story(id), told.status_of(id)) {
        (None, _) => "missing: no story of that id",
        (Some(_), Some(Status::Done)) => "done",
        (Some(_), _) => "open",
    }
}

/// The phases from the recovery point to the end.
fn ahead(told: &SdlcTold) -> Vec<String> {
    if told.code == Code::Complete {
        return Vec::new();
    }
    let by = |code: Code| format!("{} by @{}", code.row().1, code.row().2);
    let now = told.phase().unwrap_or(1);
    let rest = |codes: &[Code]| -> Vec<String> {
        let numbered = (1..).zip(codes).filter(|(number, _)| *number >= now);
        numbered.map(|(number, code)| format!("{number}. {}", by(*code))).collect()
    };
    match &told.kind {
        Kind::Story(_) => {
            let cycle = [
                Code::Create,
                Code::Validate,
                Code::Implement,
                Code::QaGate,
                Code::StoryCheckpoint,
            ];
            let mut all = rest(&cycle);
            if now <= 4 {
                all.push("   a gate that fails leads back to Implement".to_owned());
            }
            all
        }
        Kind::Spec(spec) => {
            let has_research = !spec.is_simple || spec.has(Artifact::Research);
            let all = [Code::Gather, Code::Assess, Code::Research, Code::Write, Code::Critique];
            let numbered = (1..).zip(all).filter(|(number, _)| *number >= now);
            let left = numbered.filter(|(_, code)| has_research || *code != Code::Research);
            let mut all: Vec<String> =
                left.map(|(number, code)| format!("{number}. {}", by(code))).collect();
            all.push("   a critique that wants a revision leads back to Write Spec".to_owned());
            all
        }
        Kind::Loop(it) => turns(it),
        Kind::Epic(epic) => waves(told, epic),
    }
}

fn turns(it: &Loop) -> Vec<String> {
    let by = |code: Code| format!("{} by @{}", code.row().1, code.row().2);
    let (first, mut all) = match it.next() {
        NextTurn::Review(number) => (number, Vec::new()),
        NextTurn::Fix(number) => (number + 1, vec![format!("{number}. {}", by(Code::Fix))]),
        NextTurn::Escalate(_) => return vec![by(Code::Escalate)],
        NextTurn::Over => return Vec::new(),
    };
    let line =
        |number| format!("{number}. {}, then, if rejected, {}", by(Code::Review), by(Code::Fix));
    all.extend((first..=it.max).map(line));
    all.push(format!("   after iteration {}: {}", it.max, by(Code::Escalate)));
    all
}

fn waves(told: &SdlcTold, epic: &Epic) -> Vec<String> {
    let by = |code: Code| format!("{} by @{}", code.row().1, code.row().2);
    let (from, is_gated) = match told.next_wave() {
        Some(NextWave::Stories(it) | NextWave::Gate(it)) => (it, false),
        Some(NextWave::Checkpoint(it)) => (it, true),
        Some(NextWave::FinalGate) => return vec![by(Code::FinalGate)],
        Some(NextWave::Over) | None => return Vec::new(),
    };
    let mut all = Vec::new();
    for (number, wave) in epic.waves.range(from..) {
        let at = format!("wave {number}");
        if *number > from || !is_gated {
            let open = wave.stories.iter().filter(|it| !it.is_over(&|id| told.status_of(id)));
            for member in open {
                let after: Vec<String> =
                    member.after.iter().map(|it| format!("story {}", shown(it))).collect();
                let after = if after.is_empty() {
                    String::new()
                } else {
                    format!(", after {}", after.join(", "))
                };
                let id = shown(&member.id);
                all.push(format!("{at}: story {id}{after}: validate, implement, review"));
            }
            let order = if wave.order.is_empty() {
                wave.stories.iter().map(|it| shown(&it.id)).collect::<Vec<_>>()
            } else {
                wave.order.iter().map(|it| shown(it)).collect()
            };
            all.push(format!("{at}: {}", by(Code::Gate)));
            let tag = wave.tag.as_ref().map_or(String::new(), |it| format!(", tag {}", shown(it)));
            all.push(format!("{at}: merge {}{tag}", order.join(", ")));
        }
        all.push(format!("{at}: {}: GO, PAUSE, REVIEW or ABORT", by(Code::Checkpoint)));
    }
    all.push(by(Code::FinalGate));
    all
}

/// What the phase that follows is given.
pub(super) fn inputs(told: &SdlcTold) -> Option<String> {
    use Artifact::{Complexity, Critique, Requirements, Research, Spec as Text};
    let story = || told.story().map(|it| shown(&it.path));
    let of = |spec: &Spec, kinds: &[Artifact]| {
        let paths: Vec<String> = kinds.iter().filter_map(|it| spec.path(*it)).map(shown).collect();
        (!paths.is_empty()).then(|| paths.join(", "))
    };
    match (&told.kind, told.code) {
        (Kind::Story(run), Code::Implement) if run.facts.failed => {
            let gate = told.project.gate(&told.key).map(|it| shown(&it.path));
            Some([story(), gate].into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        (Kind::Loop(_), Code::Fix) => {
            let state = told.state_path.as_deref().map(shown);
            Some([story(), state].into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
        (Kind::Story(_) | Kind::Loop(_), _) => story(),
        (Kind::Spec(spec), Code::Assess) => of(spec, &[Requirements]),
        (Kind::Spec(spec), Code::Research) => of(spec, &[Requirements, Complexity]),
        (Kind::Spec(spec), Code::Write) => {
            of(spec, &[Requirements, Complexity, Research, Text, Critique])
        }
        (Kind::Spec(spec), Code::Critique) => of(spec, &[Requirements, Text]),
        (Kind::Spec(_), _) => None,
        (Kind::Epic(epic), Code::Stories) => {
            let number = told.phase()?;
            let open = epic.runnable(number, &|id| told.status_of(id));
            let paths = open.into_iter().filter_map(|it| told.project.story(&it.id));
            let paths: Vec<String> = paths.map(|it| shown(&it.path)).collect();
            (!paths.is_empty()).then(|| paths.join(", "))
        }
        (Kind::Epic(epic), Code::Gate | Code::Checkpoint) => {
            let wave = epic.waves.get(&told.phase()?)?;
            let ids: Vec<String> = wave.stories.iter().map(|it| shown(&it.id)).collect();
            (!ids.is_empty()).then(|| format!("stories {}", ids.join(", ")))
        }
        (Kind::Epic(_), _) => told.state_path.as_deref().map(shown),
    }
}
