//! What is wrong with an epic: its plan, its pointer, the stories of its waves.

use std::collections::BTreeSet;

use onward_core::{
    finding::{Code as Known, Finding},
    time::Timestamp,
};

use super::{
    Code,
    check::{Own, aborted, changed, disagree, known, waits},
    epic::{Epic, Member, Next as NextWave},
    status::{Says, Status},
    step,
    story::bare,
    told::SdlcTold,
    touched,
};
use crate::{
    kit::{
        code::Odd,
        path::{inside, shown},
    },
    rules::sdlc::wave,
};

pub(super) fn findings(told: &SdlcTold, epic: &Epic, now: Timestamp, all: &mut Vec<Finding>) {
    let path = told.state_path.clone().unwrap_or_default();
    if epic.is_aborted() {
        aborted(told, all);
    }
    let is_begun = told.state_path.is_some();
    if epic.waves.is_empty() && is_begun && told.code != Code::Complete {
        let message = "neither the state nor a plan says which waves and stories there are";
        all.push(Odd::StateUnreadable.finding(message).at_path(&path));
    }
    if let Some(plan) = epic.plan_path.as_deref().filter(|_| told.code != Code::Complete) {
        match inside(plan) {
            None => {
                let message =
                    format!("`{}` lies outside of the project; nothing looks there", shown(plan));
                all.push(Odd::PathRefused.finding(message).at_path(&path));
            }
            Some(plan) if !told.files.contains(&plan) => {
                let message = "the plan of the epic is missing; the state itself knows its waves";
                all.push(Finding::new(Known::MissingArtifact, message).at_path(plan));
            }
            Some(plan) => {
                let unread = told.project.unread_plans.iter().find(|(path, _)| *path == plan);
                all.extend(unread.map(|(path, why)| {
                    let why = shown(why);
                    let message =
                        format!("it cannot be read ({why}); the state itself knows its waves");
                    Finding::new(Known::ArtifactUnproved, message).at_path(path)
                }));
            }
        }
    }
    let Some(next) = told.next_wave() else { return };
    let current = match next {
        NextWave::Stories(it) | NextWave::Gate(it) | NextWave::Checkpoint(it) => Some(it),
        NextWave::FinalGate | NextWave::Over => None,
    };
    if let (Some(pointer), Some(current)) = (epic.pointer, current) {
        if pointer > current {
            let message = format!("the state is in wave {pointer}, and wave {current} is not over");
            all.push(Finding::new(Known::PhaseAheadOfEvidence, message).at_path(&path));
        } else if pointer < current {
            let message = format!("the state is in wave {pointer}, and that wave is over");
            all.push(Own::PointerBehind.finding(message).at_path(&path));
        }
    }
    if told.code == Code::Complete {
        return;
    }
    let text = told.files.bytes(&path).and_then(|it| std::str::from_utf8(it).ok());
    let first = current.or_else(|| epic.waves.keys().next_back().copied());
    if let (Some(text), Some(first), None) = (text, first, &told.rebuilt)
        && !wave::is_writable(text, epic, first)
    {
        let message = "it is written in a way in which no progress could be noted";
        let hint = "write its maps one key a line, without `&`, `*` and `|`";
        all.push(Odd::StateUnreadable.finding(message).at_path(&path).with_hint(hint));
    }
    let ids: BTreeSet<String> = epic.members().map(|it| bare(&it.id)).collect();
    for (number, wave) in &epic.waves {
        for member in &wave.stories {
            of_member(told, epic, (*number, member), &ids, now, all);
        }
    }
    // What stands in the way was told first.
    let over = epic.waves.iter().flat_map(|(number, wave)| {
        wave.stories.iter().filter(|it| it.says.is_over()).map(move |it| (*number, it))
    });
    for (number, member) in over.filter(|it| told.project.story(&it.1.id).is_none()) {
        let message = format!(
            "the file of story {} is gone; the story is over, and the run can continue without it",
            shown(&member.id)
        );
        let path = member.file.clone().unwrap_or_else(|| step::story_path(&member.id));
        let finding = Finding::new(Known::MissingArtifact, message);
        all.push(finding.at_step(&step::address(number, member)).at_path(path));
    }
}

fn of_member(
    told: &SdlcTold,
    epic: &Epic,
    (number, member): (u32, &Member),
    known_ids: &BTreeSet<String>,
    now: Timestamp,
    all: &mut Vec<Finding>,
) {
    let at = step::address(number, member);
    if member.is_new {
        let message = format!(
            "the plan has story {} in wave {number}, and the state does not",
            shown(&member.id)
        );
        all.push(Own::NewDependency.finding(message).at_step(&at));
    }
    if let Some(word) = &member.odd {
        let message = format!("`{}` is not a status of a story; it counts as pending", shown(word));
        all.push(Odd::OddValue.finding(message).at_step(&at));
    }
    let Some(story) = told.project.story(&member.id) else {
        if !member.says.is_over() {
            let message = format!("the file of story {} no longer exists", shown(&member.id));
            let path = member.file.clone().unwrap_or_else(|| step::story_path(&member.id));
            all.push(Own::MissingCritical.finding(message).at_step(&at).at_path(path));
        }
        return;
    };
    if story.status.is_err() || story.status() == Some(Status::Blocked) {
        known(story, all);
    }
    // The work lies on its branch until the wave is accepted.
    let wave = epic.waves.get(&number);
    let is_apart = member.branch.is_some() && wave.is_some_and(|it| it.verdict.is_none());
    // A state that cannot be read says nothing: there the stories alone count.
    if told.rebuilt.is_none() && (!is_apart || member.says != Says::Completed) {
        disagree(member.says, story, Some((number, member)), all);
    }
    if member.says == Says::InProgress {
        changed(told, story, epic.updated_at, now, all);
        touched::files(told, story, epic.updated_at, all);
    }
    // A word that names no story here may be anything: it is told where it is new.
    let is_story = |id: &&String| told.project.story(id).is_some();
    for id in story.after.iter().filter(|it| !known_ids.contains(&bare(it))).filter(is_story) {
        if !member.says.is_over() {
            all.extend(waits(told, story, id).map(|it| it.at_step(&at)));
        }
    }
}
