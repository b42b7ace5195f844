//! Where else a person may enter, and what the files say then.
//!
//! Invariant: no story is edited. Where a story re-enters is noted in the state of its run, until
//! the step that begins there has written; an artifact that counts no more is kept as a copy and
//! emptied; a verdict that counts no more is taken back.

use onward_core::{
    time::Timestamp,
    told::{Change, Entering, NoEntry},
};
use serde_json::Value;

use super::{
    Code,
    epic::{Epic, Member},
    qa::{Loop, Verdict},
    site::usual_state,
    spec::{Artifact, Spec},
    state::{ENTER, Flow},
    status::Status,
    step,
    told::{Kind, SdlcTold},
};
use crate::rules::sdlc::{
    gate::with_noted,
    turn::{escalated, taken_back},
    wave::{self, Again},
};

/// The codes of each workflow in the order of the work.
const fn order(flow: Flow) -> &'static [Code] {
    match flow {
        Flow::Sdc => &[Code::Create, Code::Validate, Code::Implement, Code::QaGate],
        Flow::Spec => &[Code::Gather, Code::Assess, Code::Research, Code::Write, Code::Critique],
        Flow::QaLoop => &[Code::Review, Code::Fix, Code::Escalate],
        Flow::Epic => &[Code::Stories, Code::Gate, Code::FinalGate],
    }
}

/// Nothing when that is where the run goes on anyway.
pub(super) fn enter(told: &SdlcTold, at: &Entering<'_>) -> Result<Vec<Change>, NoEntry> {
    let wanted = meant(told.flow, at.place);
    let wanted = wanted.ok_or_else(|| NoEntry::Unknown(at.place.to_owned()))?;
    let is_one_story = told.flow == Flow::Epic && at.place.contains("story[");
    if wanted == told.code && !is_one_story {
        return Ok(Vec::new());
    }
    let all = order(told.flow);
    let place = |code: Code| all.iter().position(|it| *it == code).unwrap_or(all.len());
    let is_ahead = place(wanted) > place(told.code) && wanted != Code::Escalate;
    if is_ahead && !at.force {
        let (wanted, now) = (wanted.as_str(), told.code.as_str());
        return Err(NoEntry::Ahead(format!("{wanted} lies ahead of what is done ({now})")));
    }
    match &told.kind {
        Kind::Story(_) => of_story(told, wanted),
        Kind::Spec(spec) => Ok(of_spec(told, spec, wanted, at.now)),
        Kind::Loop(it) => of_loop(told, it, wanted, at.now),
        Kind::Epic(epic) => of_epic(told, epic, wanted, at.place),
    }
}

/// A code, with or without its workflow, or a step.
fn meant(flow: Flow, place: &str) -> Option<Code> {
    let short = |code: Code| code.as_str().rsplit(':').next().unwrap_or_default();
    let first = place.split(['/', '[']).next().unwrap_or_default();
    let by_code =
        || order(flow).iter().copied().find(|it| it.as_str() == place || short(*it) == first);
    let by_step = || match (flow, first) {
        (Flow::Sdc, "ready") => Some(Code::Validate),
        (Flow::Sdc, "start" | "heal" | "submit" | "rework") => Some(Code::Implement),
        (Flow::Sdc, "gated") => Some(Code::QaGate),
        (Flow::Spec, "revise") => Some(Code::Write),
        (Flow::Epic, "wave") if place.contains("story[") => Some(Code::Stories),
        (Flow::Epic, "wave") if place.contains("/gate") => Some(Code::Gate),
        (Flow::Sdc | Flow::Spec | Flow::QaLoop | Flow::Epic, _) => None,
    };
    by_code().or_else(by_step)
}

fn of_story(told: &SdlcTold, wanted: Code) -> Result<Vec<Change>, NoEntry> {
    if wanted == Code::Create {
        let why = format!("the story {} is there; move it away to have it written again", told.key);
        return Err(NoEntry::Ahead(why));
    }
    let usual = || usual_state(told.flow, &told.key).unwrap_or_default();
    let path = told.state_path.clone().unwrap_or_else(usual);
    let id = Value::from(told.key.as_str());
    let status = told.status_of(&told.key).unwrap_or(Status::Draft).as_str();
    let fresh =
        format!("workflow: sdc\ncurrent_story: {id}\nstory_status: {status}\nstatus: active\n");
    let text = told.files.bytes(&path).map(|it| String::from_utf8_lossy(it).into_owned());
    let text = text.unwrap_or(fresh);
    let changed = with_noted(&text, ENTER, wanted.as_str());
    let changed = changed.filter(|_| !path.to_lowercase().ends_with(".json"));
    let changed = changed.ok_or_else(|| {
        NoEntry::Ahead(format!("`{path}` is not written so that another phase can be noted in it"))
    })?;
    Ok(vec![Change::Replace { path, bytes: changed.into_bytes() }])
}

fn of_spec(told: &SdlcTold, spec: &Spec, wanted: Code, now: Timestamp) -> Vec<Change> {
    let first = Artifact::ALL.iter().zip(order(Flow::Spec)).find(|(_, code)| **code == wanted);
    let first = first.map_or(Artifact::Requirements, |it| *it.0);
    let stamp: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    let mut changes = Vec::new();
    for (_, path) in spec.there.iter().filter(|(kind, _)| *kind >= first) {
        let name = path.rsplit('/').next().unwrap_or(path);
        let bytes = told.files.bytes(path).unwrap_or_default().to_vec();
        let copy = format!("{}/archive/{stamp}/{name}", spec.folder);
        changes.push(Change::Replace { path: copy, bytes });
        changes.push(Change::Replace { path: path.clone(), bytes: Vec::new() });
    }
    changes
}

fn of_loop(
    told: &SdlcTold,
    it: &Loop,
    wanted: Code,
    now: Timestamp,
) -> Result<Vec<Change>, NoEntry> {
    let path = told.state_path.clone().unwrap_or_default();
    let before = told.files.bytes(&path).unwrap_or_default();
    let rejected = it.turn(it.current).verdict == Some(Verdict::Reject);
    let bytes = if wanted == Code::Escalate {
        escalated(before, &now.to_string())
    } else if wanted == Code::Review || wanted == Code::Fix && rejected {
        taken_back(before, it.current, wanted == Code::Review)
    } else {
        None
    };
    let bytes = bytes.ok_or_else(|| NoEntry::Unknown(wanted.as_str().to_owned()))?;
    Ok(vec![Change::Replace { path, bytes }])
}

fn of_epic(
    told: &SdlcTold,
    epic: &Epic,
    wanted: Code,
    place: &str,
) -> Result<Vec<Change>, NoEntry> {
    let unknown = || NoEntry::Unknown(place.to_owned());
    let path = told.state_path.clone().ok_or_else(unknown)?;
    let text = told.files.bytes(&path).map(|it| String::from_utf8_lossy(it).into_owned());
    let text = text.ok_or_else(unknown)?;
    let ids;
    let (wave, what) = match wanted {
        Code::Stories => {
            let (number, members) = stories(told, epic, place).ok_or_else(unknown)?;
            let is_done = |it: &&&Member| told.status_of(&it.id) == Some(Status::Done);
            if let Some(member) = members.iter().find(is_done) {
                let why = format!("story {} says Done; set its status back first", member.id);
                return Err(NoEntry::Ahead(why));
            }
            ids = members.iter().map(|it| it.id.as_str()).collect::<Vec<_>>();
            (number, Again::Stories(&ids))
        }
        Code::Gate => {
            let mut judged = epic.waves.iter().rev().filter(|(_, it)| it.verdict.is_some());
            (*judged.next().ok_or_else(unknown)?.0, Again::Gate)
        }
        Code::FinalGate => (0, Again::FinalGate),
        Code::Create
        | Code::Validate
        | Code::Implement
        | Code::QaGate
        | Code::StoryCheckpoint
        | Code::Gather
        | Code::Assess
        | Code::Research
        | Code::Write
        | Code::Critique
        | Code::Review
        | Code::Fix
        | Code::Escalate
        | Code::Checkpoint
        | Code::Complete => return Err(unknown()),
    };
    let text = wave::reopened(&text, epic, wave, what).ok_or_else(unknown)?;
    Ok(vec![Change::Replace { path, bytes: text.into_bytes() }])
}

/// The story of that address, or all of the wave that the run is in which are not done themselves.
fn stories<'e>(told: &SdlcTold, epic: &'e Epic, place: &str) -> Option<(u32, Vec<&'e Member>)> {
    if place.contains("story[") {
        let mut all = epic
            .waves
            .iter()
            .flat_map(|(number, wave)| wave.stories.iter().map(move |member| (*number, member)));
        // An address in it counts, another story whose id begins so does not.
        let is_it = |(number, member): &(u32, &Member)| {
            let rest = place.strip_prefix(step::address(*number, member).as_str());
            rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        return all.find(is_it).map(|(number, member)| (number, vec![member]));
    }
    let number = told.phase()?;
    let open = |it: &&Member| told.status_of(&it.id) != Some(Status::Done);
    let members: Vec<&Member> = epic.waves.get(&number)?.stories.iter().filter(open).collect();
    (!members.is_empty()).then_some((number, members))
}
