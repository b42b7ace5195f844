//! The steps of the built-in workflows: which of them the files prove, and where a run re-enters.
//!
//! Invariant: a step that an agent does is done or not spoken of; a step that writes the files
//! themselves is done or undone.

use std::collections::BTreeMap;

use onward_core::{
    address::Address,
    told::{Ahead, Done, StepTold},
};
use serde_json::{Value, json};

use super::{
    Code,
    epic::{Epic, Member, Next as NextWave},
    project::Project,
    qa::{Loop, Next as NextTurn, Verdict},
    spec::{Artifact, Critique, Spec},
    state::Flow,
    status::{Says, Status},
    story::bare,
    story_run::StoryRun,
    told::{Kind, SdlcTold},
};
use crate::{
    kit::path::shown,
    rules::sdlc::{gate, sections::Marked, turn, wave},
};

/// Where the run re-enters.
pub(super) fn steps(told: &SdlcTold) -> Vec<String> {
    let number = told.phase().unwrap_or(0);
    let one = |text: &str| vec![text.to_owned()];
    match (told.code, &told.kind) {
        (Code::Implement, Kind::Story(run)) if run.facts.failed => one("rework"),
        (Code::QaGate, Kind::Story(run)) if run.was_sent_back => one("rework"),
        (Code::Write, Kind::Spec(spec)) if spec.critique.is_some() && !spec.rewritten => {
            one("revise")
        }
        (Code::Stories, Kind::Epic(epic)) if epic.waves.is_empty() => one("open"),
        (Code::Stories, Kind::Epic(epic)) => {
            let runnable = epic.runnable(number, &|id| told.status_of(id));
            runnable.into_iter().map(|it| address(number, it).to_string()).collect()
        }
        (Code::Create, _) => one("create"),
        (Code::Validate, _) => one("validate"),
        (Code::Implement, _) => one("implement"),
        (Code::QaGate, _) => one("qa-gate"),
        (Code::StoryCheckpoint, _) => one("checkpoint"),
        (Code::Gather, _) => one("gather"),
        (Code::Assess, _) => one("assess"),
        (Code::Research, _) => one("research"),
        (Code::Write, _) => one("write"),
        (Code::Critique, _) => one("critique"),
        (Code::Review, _) => vec![format!("review[{number}]")],
        (Code::Fix, _) => vec![format!("fix[{number}]")],
        (Code::Escalate, _) => one("escalate"),
        (Code::Gate, _) => vec![format!("wave[{number}]/gate")],
        (Code::Checkpoint, _) => vec![format!("wave[{number}]/checkpoint")],
        (Code::FinalGate, _) => one("final-gate"),
        (Code::Complete | Code::Stories, _) => Vec::new(),
    }
}

/// `wave[2]/story[3.4]`.
pub(super) fn address(wave: u32, member: &Member) -> Address {
    let story = Address::from_text(&format!("wave[{wave}]/story"));
    story.item(&member.id)
}

/// An iteration's review and fix are rows of their own; a story of an epic is one; a step that
/// writes files belongs to the phase whose outcome it writes.
pub(super) fn row(flow: Flow, at: &Address) -> Address {
    let parts: Vec<&str> = at.as_str().split('/').collect();
    let name = match (flow, parts.as_slice()) {
        (Flow::Sdc, ["ready"]) => "validate",
        (Flow::Sdc, [turn, "begin" | "judged"]) if turn.starts_with("validate[") => {
            return Address::from_text(&format!("{turn}/judge"));
        }
        (Flow::Sdc, ["start" | "submit"]) => "implement",
        (Flow::Sdc, ["gated"]) => "qa-gate",
        (Flow::Sdc, ["finish"]) => "checkpoint",
        (Flow::Spec, ["judged"]) => "critique",
        (Flow::QaLoop, ["close"]) => "escalate",
        (Flow::QaLoop, [turn, step, ..]) => {
            let Some(number) = turn.strip_prefix("turn") else { return at.clone() };
            let name = match *step {
                "begin" | "review" | "reviewed" => "review",
                "handed" | "fix" | "fixed" => "fix",
                other => other,
            };
            return Address::from_text(&format!("{name}{number}"));
        }
        (Flow::Epic, ["close"]) => "final-gate",
        (Flow::Epic, [wave, "handed" | "merge" | "tag" | "gated"]) => {
            return Address::from_text(&format!("{wave}/gate"));
        }
        (Flow::Epic, [wave, turn, "marked" | "mended"]) if turn.starts_with("gate[") => {
            return Address::from_text(&format!("{wave}/{turn}/fix"));
        }
        (Flow::Epic, [wave, "closed"]) => {
            return Address::from_text(&format!("{wave}/checkpoint"));
        }
        (Flow::Epic, [wave, story, _, ..]) if story.starts_with("story[") => {
            return Address::from_text(&format!("{wave}/{story}"));
        }
        (Flow::Sdc | Flow::Spec | Flow::QaLoop | Flow::Epic, _) => return at.clone(),
    };
    Address::from_text(name)
}

/// The stories, gates and checkpoints of the waves behind the one that the run is at.
pub(super) fn ahead(told: &SdlcTold) -> Option<Ahead> {
    let (Kind::Epic(epic), Some(now)) = (&told.kind, told.phase()) else { return None };
    let is_open = |it: &&Member| !it.is_over(&|id| told.status_of(id));
    let later = epic.waves.iter().filter(|(number, _)| **number > now);
    let later = later.filter(|_| told.code != Code::FinalGate);
    let rows = later.flat_map(|(number, wave)| {
        let stories = wave.stories.iter().filter(is_open).map(|it| address(*number, it));
        let ends = ["gate", "checkpoint"];
        let ends = ends.map(|it| Address::from_text(&format!("wave[{number}]/{it}")));
        let says = format!("not started; wave {number}, {}", shown(&wave.name));
        stories.chain(ends).map(|it| (it, says.clone())).collect::<Vec<_>>()
    });
    Some(Ahead { rows: rows.collect(), before: Address::from_text("final-gate") })
}

/// What is done, for the report.
pub(super) fn done_lines(told: &SdlcTold) -> Vec<String> {
    let phases = |codes: &[Code]| {
        let phase = match &told.kind {
            Kind::Story(run) if told.code == Code::StoryCheckpoint => Some(run.proved),
            Kind::Story(_) | Kind::Spec(_) | Kind::Loop(_) | Kind::Epic(_) => told.phase(),
        };
        let upto = phase.map_or(codes.len(), |it| it as usize - 1).min(codes.len());
        let line = |(index, code): (usize, &Code)| {
            let (_, name, agent) = code.row();
            format!("{}. {name} by @{agent}: done", index + 1)
        };
        codes[..upto].iter().enumerate().map(line).collect()
    };
    match &told.kind {
        Kind::Story(_) => phases(&[Code::Create, Code::Validate, Code::Implement, Code::QaGate]),
        Kind::Spec(spec) => {
            let there =
                spec.there.iter().map(|(kind, path)| format!("{}: {}", kind.as_str(), shown(path)));
            there.collect()
        }
        Kind::Loop(it) => {
            let turns =
                it.turns.iter().filter_map(|(number, turn)| Some((number, turn, turn.verdict?)));
            let line = |(number, turn, verdict): (&u32, &super::qa::Turn, Verdict)| {
                let fixed = if turn.fixed { ", fixed" } else { "" };
                format!("Iteration {number}: {}{fixed}", verdict.as_str())
            };
            turns.map(line).collect()
        }
        Kind::Epic(epic) => {
            let line = |(number, wave): (&u32, &super::epic::Wave)| {
                let over = wave.stories.iter().filter(|it| it.is_over(&|id| told.status_of(id)));
                let verdict = wave.verdict.map_or("no verdict", Verdict::as_str);
                let (over, all) = (over.count(), wave.stories.len());
                format!("Wave {number} {}: {over} of {all} stories, {verdict}", shown(&wave.name))
            };
            let is_begun = |(_, wave): &(&u32, &super::epic::Wave)| {
                let is_over = |it: &Member| it.is_over(&|id| told.status_of(id));
                wave.verdict.is_some() || wave.stories.iter().any(is_over)
            };
            epic.waves.iter().filter(is_begun).map(line).collect()
        }
    }
}

pub(super) fn told(told: &SdlcTold, at: &Address) -> StepTold {
    if at.as_str() == "open" {
        let is_known = !matches!(&told.kind, Kind::Epic(epic) if epic.waves.is_empty());
        let opening = || told.opening.get_or_init(|| opening(told)).clone();
        return if is_known { StepTold::Done(Done::recorded(opening())) } else { StepTold::Silent };
    }
    match &told.kind {
        Kind::Story(_) => of_story(told, at.as_str()),
        Kind::Spec(spec) => of_spec(told, spec, at.as_str()),
        Kind::Loop(it) => of_loop(it, at.as_str()),
        Kind::Epic(epic) => of_epic(told, epic, at.as_str()),
    }
}

/// What the first step of each workflow finds out.
fn opening(told: &SdlcTold) -> Value {
    match &told.kind {
        Kind::Story(run) => {
            let story = told.story();
            let path = story.map_or_else(|| story_path(&told.key), |it| it.path.clone());
            let status = run.known.map_or("Draft", Status::as_str);
            let state = told.state_path.clone().unwrap_or_else(|| gate::state_path(&told.key));
            json!({ "story": told.key, "path": path, "state": state,
                "exists": run.facts.there, "status": status, "awaits": run.facts.awaits })
        }
        Kind::Spec(spec) => json!({ "feature": spec.feature, "folder": spec.folder }),
        Kind::Loop(it) => {
            let story = told.story().map_or_else(|| story_path(&told.key), |it| it.path.clone());
            let state = told.state_path.clone().unwrap_or_else(|| turn::path(&told.key));
            json!({ "story": told.key, "path": story, "state": state, "max": it.max })
        }
        Kind::Epic(epic) => {
            let state = told.state_path.clone().unwrap_or_else(|| wave::path(&told.key));
            json!({ "epic": epic.id, "state": state, "waves": waves(&told.project, epic) })
        }
    }
}

pub(super) fn story_path(id: &str) -> String {
    format!("docs/stories/{}.story.md", crate::kit::path::component(id))
}

/// The waves of an epic as its workflow goes through them.
pub fn waves(project: &Project, epic: &Epic) -> Vec<Value> {
    let mut before: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (number, wave) in &epic.waves {
        let mut own: BTreeMap<String, &String> = BTreeMap::new();
        for member in &wave.stories {
            own.entry(bare(&member.id)).or_insert(&member.id);
        }
        let of = |it: &Member| {
            let after: Vec<&String> =
                it.after.iter().filter_map(|id| own.get(&bare(id)).copied()).collect();
            let path = project.story(&it.id).map(|it| it.path.clone());
            let path = path.or_else(|| it.file.clone()).unwrap_or_else(|| story_path(&it.id));
            json!({ "id": it.id, "path": path, "after": after, "branch": it.branch })
        };
        let stories: Vec<Value> = wave.stories.iter().map(of).collect();
        all.push(json!({ "number": number.to_string(), "name": wave.name, "after": before,
            "tag": wave.tag, "order": wave.order, "stories": stories }));
        before = vec![number.to_string()];
    }
    all
}

/// An agent's step.
fn agent(is_done: bool, result: Value) -> StepTold {
    if is_done { StepTold::Done(Done::inferred(result)) } else { StepTold::Silent }
}

/// A step that writes the files.
fn written(is_done: bool, result: impl FnOnce() -> Value) -> StepTold {
    if is_done { StepTold::Done(Done::recorded(result())) } else { StepTold::Undone }
}

fn nothing() -> Value {
    json!({})
}

fn of_story(told: &SdlcTold, at: &str) -> StepTold {
    let Kind::Story(run) = &told.kind else { return StepTold::Silent };
    let is_asked = told.code == Code::StoryCheckpoint;
    let reached = if is_asked { run.proved } else { told.phase().unwrap_or(6) };
    let failed = run.facts.failed || run.was_sent_back;
    let is_over = told.code == Code::Complete;
    let is_judged = reached > 4;
    // What the story holds now is what the next agent finds.
    let mark = || {
        let text = told.story().map(|it| Marked::of(it.document.text()).to_json());
        json!({ "mark": text })
    };
    // A person does again what was done from there on.
    let place = at.split(['/', '[']).next().unwrap_or_default();
    let phase = phase_of(place);
    if run.entered.is_some_and(|it| phase >= it) {
        return StepTold::Undone;
    }
    let is_built = reached > 3 || failed;
    let is_started = run.known == Some(Status::InProgress);
    // Loops that another program brought to their end.
    let is_through = match place {
        "validate" => reached > 2,
        "rework" => is_judged && !failed && !run.is_closing,
        _ => false,
    };
    if let Some(told) = of_turn(at, "validate[1]/judge", is_through) {
        return told;
    }
    match at {
        "create" => agent(reached > 1, json!({})),
        "validate[1]/judge" => agent(reached > 2, json!({ "decision": "GO", "score": 10 })),
        "ready" => written(reached > 2, mark),
        "start" => written(is_built || is_started, mark),
        "implement" => agent(is_built, json!({})),
        "heal[1]/inspect" => agent(is_built, json!({ "passed": true })),
        "submit" => written(is_built, mark),
        "qa-gate" if failed => agent(true, json!({ "verdict": "FAIL" })),
        "qa-gate" => agent(is_judged, json!({ "verdict": "PASS" })),
        // The gate that is about to be given is ours, and our journal knows which it is: the first
        // one, or the one behind the rework.
        "gated" if run.is_closing && !failed => StepTold::Silent,
        "gated" => written(is_judged || failed, nothing),
        "finish" => written(is_over, nothing),
        _ if place == "checkpoint" && at.ends_with("/ask") => {
            agent(is_over, json!({ "option": "GO" }))
        }
        _ => StepTold::Silent,
    }
}

/// The phase of a story's cycle that a step belongs to.
fn phase_of(place: &str) -> u32 {
    match place {
        "create" => 1,
        "validate" | "ready" => 2,
        "start" | "implement" | "heal" | "submit" => 3,
        _ => 4,
    }
}

/// Who works in a story at this step, by its name in the table of sections; `None` where an agent
/// may write all of it, or none does. One that is not in the table may write nothing.
pub(super) fn role(flow: Flow, at: &str) -> Option<&'static str> {
    let last = at.rsplit('/').next().unwrap_or(at);
    match (flow, last) {
        (Flow::Sdc, "judge") if at.starts_with("validate[") => Some("po"),
        (Flow::Sdc, "qa-gate" | "judge") | (Flow::QaLoop, "review") => Some("qa"),
        (Flow::Epic, "judge" | "final-gate" | "look") => Some("architect"),
        (Flow::Sdc, "implement" | "inspect" | "mend" | "fix")
        | (Flow::QaLoop | Flow::Epic, "fix") => Some("dev"),
        (Flow::Sdc | Flow::Spec | Flow::QaLoop | Flow::Epic, _) => None,
    }
}

/// Whether a state, a loop or a gate says how far this step is. A story and the artifacts of a spec
/// may be as an agent of ours left them.
pub(super) fn vouched(told: &SdlcTold, at: &str) -> bool {
    match &told.kind {
        Kind::Loop(_) | Kind::Epic(_) => true,
        Kind::Spec(_) => false,
        Kind::Story(run) => {
            let phase = phase_of(at.split(['/', '[']).next().unwrap_or_default());
            let gate = told.project.gate(&told.key).filter(|_| phase == 4 && !run.is_held);
            by_state(told, phase) || gate.is_some_and(|it| it.verdict.is_some())
        }
    }
}

/// Whether the state of a story's run is behind this phase.
pub(super) fn by_state(told: &SdlcTold, phase: u32) -> bool {
    let Kind::Story(StoryRun { state: Some(state), .. }) = &told.kind else { return false };
    let is_behind = state.pointer.is_some_and(|pointer| pointer > phase);
    state.reached() >= phase || is_behind || state.is_over()
}

/// A loop that is through, or a step in it other than `but`; `None` for everything else.
fn of_turn(at: &str, but: &str, is_through: bool) -> Option<StepTold> {
    if !is_through || at == but {
        return None;
    }
    Some(if at.ends_with(']') || !at.contains('/') {
        StepTold::Done(Done::inferred(nothing()))
    } else {
        StepTold::PassedOver("the files say that it is through".to_owned())
    })
}

fn of_spec(told: &SdlcTold, spec: &Spec, at: &str) -> StepTold {
    let reached = told.phase().unwrap_or(6);
    let verdict = spec.critique.filter(|_| !spec.rewritten);
    let class = spec.class.as_deref().unwrap_or("STANDARD");
    let said = || json!({ "verdict": verdict.unwrap_or(Critique::Approved).as_str() });
    match at {
        "gather" => agent(reached > 1, json!({})),
        "assess" => agent(reached > 2, json!({ "class": class })),
        "research" if spec.is_simple && !spec.has(Artifact::Research) => StepTold::Silent,
        "research" => agent(reached > 3, json!({})),
        "write" => agent(reached > 4 || verdict.is_some(), json!({})),
        // Its file is what counts: one that is gone or says nothing is made again.
        "critique" if spec.critique.is_none() => StepTold::Undone,
        "critique" => agent(verdict.is_some(), said()),
        "judged" => written(verdict.is_some(), said),
        _ => StepTold::Silent,
    }
}

fn of_loop(it: &Loop, at: &str) -> StepTold {
    let next = it.next();
    let parts = at.strip_prefix("turn[").and_then(|rest| rest.split_once("]/"));
    let Some((number, step)) = parts.and_then(|(n, step)| Some((n.parse::<u32>().ok()?, step)))
    else {
        return match at {
            // An approval that came after all answers it, too.
            "escalate" => agent(next == NextTurn::Over, json!({ "option": "waive" })),
            "close" => written(next == NextTurn::Over, nothing),
            _ => StepTold::Silent,
        };
    };
    let (is_last, turn) = (number == it.current, it.turn(number));
    let escalates = (matches!(next, NextTurn::Escalate(_)) || it.waived) && is_last;
    // An iteration before the current one was rejected and fixed, or there would be no other.
    let verdict = match turn.verdict {
        Some(Verdict::Reject) | None if escalates && !turn.fixed => Some(Verdict::Blocked),
        Some(Verdict::Approve | Verdict::Blocked) | None if number < it.current => {
            Some(Verdict::Reject)
        }
        verdict => verdict.filter(|_| number <= it.current),
    };
    let is_fixed = turn.fixed || number < it.current;
    let is_fixed = is_fixed && verdict == Some(Verdict::Reject);
    // Nothing is left to be compared.
    let marked = |is_done: bool, is_told: bool| match (is_done, is_told) {
        (true, true) => StepTold::Done(Done::recorded(json!({ "mark": null }))),
        (is_done, _) => agent(is_done, json!({ "mark": null })),
    };
    let is_told = verdict.is_some() && verdict == turn.verdict;
    match step {
        "begin" => marked(verdict.is_some(), is_told),
        "review" => match verdict {
            Some(verdict) if is_told => {
                StepTold::Done(Done::recorded(json!({ "verdict": verdict.as_str() })))
            }
            Some(verdict) => agent(true, json!({ "verdict": verdict.as_str() })),
            None => StepTold::Silent,
        },
        "reviewed" => written(verdict.is_some(), nothing),
        "handed" => marked(is_fixed, turn.fixed),
        "fix" => agent(is_fixed, json!({})),
        "fixed" => written(is_fixed, nothing),
        _ => StepTold::Silent,
    }
}

fn of_epic(told: &SdlcTold, epic: &Epic, at: &str) -> StepTold {
    let next = told.next_wave().unwrap_or(NextWave::Over);
    let is_over = next == NextWave::Over;
    let accepted = || json!({ "verdict": "APPROVE" });
    let Some((number, rest)) = at.strip_prefix("wave[").and_then(|it| it.split_once("]/")) else {
        return match at {
            "final-gate" => agent(is_over, accepted()),
            "close" => written(is_over, nothing),
            _ => StepTold::Silent,
        };
    };
    let Ok(number) = number.parse::<u32>() else { return StepTold::Silent };
    // What of this wave is behind the run: its gate, and then its checkpoint.
    let (gated, past) = match next {
        NextWave::Stories(it) | NextWave::Gate(it) => (number < it, number < it),
        NextWave::Checkpoint(it) => (number <= it, number < it),
        NextWave::FinalGate | NextWave::Over => (true, true),
    };
    if let Some((story, step)) = rest.strip_prefix("story[").and_then(|it| it.split_once("]/")) {
        let at = format!("wave[{number}]/story[{story}]");
        let Some(member) = told.members().get(at.as_str()) else { return StepTold::Silent };
        let wave = epic.waves.get(&number);
        let Some(member) = wave.and_then(|it| it.stories.get(*member)) else {
            return StepTold::Silent;
        };
        let is_done = gated || member.is_over(&|id| told.status_of(id));
        let status = told.status_of(&member.id);
        // That a story is ready says nothing of a validator whom this run has asked, and who may
        // have said no. One that was begun had its yes.
        let is_begun = |it: Status| match it {
            Status::InProgress | Status::InReview | Status::Done => true,
            Status::Draft | Status::Ready | Status::Blocked => false,
        };
        let is_valid = is_done || status.is_some_and(is_begun);
        // A state that has the story as pending was never told that it began, or took it back.
        let is_new = member.says == Says::Pending && !is_valid;
        return match step {
            _ if is_new => StepTold::Undone,
            "started" => agent(is_done || member.says == Says::InProgress, json!({})),
            "work/given" => agent(is_valid, json!({ "mark": null })),
            "work/validate" => agent(is_valid, json!({ "decision": "GO", "score": 10 })),
            "work/heal[1]/inspect" => agent(is_done, json!({ "passed": true })),
            "work/review[1]/judge" => agent(is_done, json!({ "verdict": "PASS" })),
            "work/begin"
            | "work/implement"
            | "work/built"
            | "work/review[1]/begin"
            | "work/review[1]/judged" => agent(is_done, json!({ "mark": null })),
            "record" => written(is_done, nothing),
            _ => StepTold::Silent,
        };
    }
    let is_gate = rest == "gate" || rest.starts_with("gate[");
    if let Some(told) = of_turn(rest, "gate[1]/judge", is_gate && gated) {
        return told;
    }
    match rest {
        "gate[1]/judge" => agent(gated, accepted()),
        "gated" => written(gated, nothing),
        "handed" | "merge" | "tag" => agent(gated, json!({})),
        _ if rest.starts_with("checkpoint[") && rest.ends_with("/ask") => {
            agent(past, json!({ "option": "GO" }))
        }
        "closed" => written(past, nothing),
        _ => StepTold::Silent,
    }
}
