//! Stories that were changed between what a run of ours noted of them and its look at what the
//! agent made of them.
//!
//! Invariant: no agent is blamed for what a person may have done. What differs while no call of
//! ours looked is a person's word to take or to put back; taken, it is what the agent finds.

use super::{
    check::Own,
    epic::Epic,
    step,
    story::{SCOPE, Story},
    told::{Kind, SdlcTold},
};
use crate::{kit::path::shown, rules::sdlc::sections::Marked};
use onward_core::{
    address::Address,
    finding::{Code as Known, Finding},
    told::{Journaled, Overtaken, StepTold},
};

/// A step that notes what the story holds, the one that compares, and who works between them.
type Pair = (String, String, &'static str);

fn pairs(told: &SdlcTold) -> Vec<Pair> {
    let pair = |note: &str, look: &str, role| (note.to_owned(), look.to_owned(), role);
    match &told.kind {
        Kind::Story(run) if !run.is_closing => {
            let mut all = vec![pair("start", "submit", "dev"), pair("submit", "gated", "qa")];
            for turn in 1..=3 {
                let at = |step: &str| format!("validate[{turn}]/{step}");
                all.push((at("begin"), at("judged"), "po"));
                let at = |step: &str| format!("rework[{turn}]/{step}");
                all.push((at("begin"), at("submit"), "dev"));
                all.push((at("submit"), at("gated"), "qa"));
            }
            all
        }
        Kind::Loop(it) if !it.closing => {
            let at = |step: &str| format!("turn[{}]/{step}", it.current);
            vec![(at("begin"), at("reviewed"), "qa"), (at("handed"), at("fixed"), "dev")]
        }
        // Those of a wave are worked on elsewhere (`of_wave`); a spec has no sections of its own.
        Kind::Story(_) | Kind::Loop(_) | Kind::Spec(_) | Kind::Epic(_) => Vec::new(),
    }
}

pub(super) fn overtaken(told: &SdlcTold, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
    if let Kind::Epic(epic) = &told.kind {
        return of_waves(told, epic, known);
    }
    let Some(story) = told.story() else { return Vec::new() };
    let others = || told.project.stories.iter().filter(|it| it.path != story.path);
    let is_held = matches!(&told.kind, Kind::Story(run) if run.is_held);
    let mut all = Vec::new();
    for (note, look, role) in pairs(told) {
        let (note, look) = (Address::from_text(&note), Address::from_text(&look));
        let Journaled::Done(noted) = known(&note) else { continue };
        let has_failed = match known(&look) {
            Journaled::Done(_) => continue,
            Journaled::Failed => true,
            Journaled::Stale(_) | Journaled::Open => false,
        };
        // The files say more than the journal, or take it back: then they count.
        let is_silent = |at: &Address| matches!(step::told(told, at), StepTold::Silent);
        let is_known = is_silent(&note) || matches!(step::told(told, &note), StepTold::Done(_));
        let is_behind = matches!(step::told(told, &look), StepTold::Done(_));
        let Some(before) = noted.get("mark").and_then(Marked::from_json) else { continue };
        if !is_known || is_behind {
            continue;
        }
        let now = Marked::of(story.document.text()).beside(others());
        let changed = before.trespassed(&now, role);
        if changed.is_empty() {
            continue;
        }
        // What is compared there, too, before it is noted, is noted first.
        let first = note.as_str().strip_suffix("/submit").map(|turn| format!("{turn}/begin"));
        // What asks for something else is implemented, too.
        let is_scope = changed.iter().any(|it| SCOPE.contains(&it.as_str()));
        let start = (note.as_str() == "submit" && is_scope).then(|| "start".to_owned());
        let first = first.or(start).map(|it| Address::from_text(&it));
        all.push(Overtaken {
            finding: finding(story, &changed, role, (has_failed, is_held)).at_step(&look),
            steps: first.into_iter().chain([note]).collect(),
            says: format!("{} was edited since", shown(&story.path)),
        });
    }
    all
}

/// Agents of a wave work on copies in worktrees: what differs in the project is the user's. The
/// step that notes what the copy holds takes it from there, and runs again.
fn of_waves(told: &SdlcTold, epic: &Epic, known: &dyn Fn(&Address) -> Journaled) -> Vec<Overtaken> {
    let mut all = Vec::new();
    for (number, member) in
        epic.waves.iter().flat_map(|(n, it)| it.stories.iter().map(move |s| (*n, s)))
    {
        let at = |step: &str| {
            Address::from_text(&format!("{}/work/{step}", step::address(number, member)))
        };
        // What is merged is what the project has.
        let gated = Address::from_text(&format!("wave[{number}]/gated"));
        let is_merged = matches!(step::told(told, &gated), StepTold::Done(_));
        let Some(story) = told.project.story(&member.id).filter(|_| !is_merged) else { continue };
        let is_over = matches!(step::told(told, &at("implement")), StepTold::Done(_));
        let is_done = |it: &Address| matches!(known(it), Journaled::Done(_));
        let noted: Vec<Address> = notes(&at).into_iter().filter(is_done).collect();
        let Some(note) = noted.last().cloned() else { continue };
        let Journaled::Done(held) = known(&note) else { continue };
        let Some(before) = held.get("mark").and_then(Marked::from_json) else { continue };
        let changed = before.rewritten_in(&Marked::of(story.document.text()));
        if changed.is_empty() {
            continue;
        }
        // Where it asks for something else, each of its agents sees it; where not, the next one.
        // What is compared there, too, is noted first.
        let asks = |it: &String| SCOPE.contains(&it.as_str()) || it.starts_with("tasks");
        let pairs = [("work/begin", "work/given"), ("/judged", "/begin")];
        let first = pairs.iter().find_map(|(own, first)| {
            Some(Address::from_text(&format!("{}{first}", note.as_str().strip_suffix(own)?)))
        });
        let steps = if is_over {
            Vec::new()
        } else if changed.iter().any(asks) {
            noted
        } else {
            first.into_iter().chain([note]).collect()
        };
        let place = step::address(number, member);
        let mut finding = finding(story, &changed, "", (false, false)).at_step(&place);
        if is_over {
            let hint = format!(
                "its agents are through: accepted, it comes in with the merge; `onward resume \
                 --from '{place}'` has them see it first"
            );
            finding = finding.with_hint(hint);
        }
        all.push(Overtaken {
            finding,
            steps,
            says: format!("{} was edited since", shown(&story.path)),
        });
    }
    all
}

/// The steps that note what the copy of a story holds, in their order.
fn notes(at: &dyn Fn(&str) -> Address) -> Vec<Address> {
    let turns =
        (1..=3).flat_map(|turn| ["begin", "judged"].map(|it| format!("review[{turn}]/{it}")));
    let all = ["given", "begin"].map(str::to_owned).into_iter().chain(turns);
    all.map(|it| at(&it)).collect()
}

fn finding(story: &Story, changed: &[String], role: &str, how: (bool, bool)) -> Finding {
    let (has_failed, is_held) = how;
    let (id, what) = (shown(&story.id), shown(&changed.join(", ")));
    let is_scope = changed.iter().any(|it| SCOPE.contains(&it.as_str()) || it.starts_with("what "));
    let hint = "read it; accepted, it counts, and the work that rests on it is done again";
    let finding = match (has_failed, is_scope) {
        (true, _) => {
            let message = format!(
                "story {id} is not as it was given to the {role}, who may not change this: {what}"
            );
            let hint = "put it back as it was; or accept it as it is, and it counts as yours";
            return Own::ScopeChanged.finding(message).with_hint(hint).at_path(&story.path);
        }
        (false, true) => {
            let message =
                format!("what story {id} asks for was changed since the interruption: {what}");
            Own::ScopeChanged.finding(message)
        }
        (false, false) if is_held => {
            let message = format!(
                "story {id} is ahead of this run, which did not write that: it was completed \
                 outside this workflow, or the {role} wrote it: {what}"
            );
            let hint = "put it back as it was; accepted, the run continues from where it is, and \
                        its gate is still to come";
            return Own::CompletedOutside.finding(message).with_hint(hint).at_path(&story.path);
        }
        (false, false) => {
            let message = format!("story {id} was modified since the interruption: {what}");
            Finding::new(Known::ArtifactChanged, message)
        }
    };
    finding.with_hint(hint).at_path(&story.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(text: &str) -> Story {
        let file = crate::File { bytes: text.as_bytes().to_vec(), modified: None };
        Story::read("docs/stories/4.2.story.md", &file).unwrap()
    }

    #[test]
    fn what_a_story_asks_for_blocks_and_the_rest_warns() {
        let story = story("# Story 4.2: x\n\n**Status:** InProgress\n");
        let of =
            |changed: &str, failed| finding(&story, &[changed.to_owned()], "dev", (failed, false));
        for (changed, failed, code) in [
            ("acceptance criteria", false, "scope-changed"),
            ("what docs/stories/4.1.story.md asks for", false, "scope-changed"),
            ("risks", false, "artifact-changed"),
            ("risks", true, "scope-changed"),
        ] {
            assert_eq!(of(changed, failed).code, code, "{changed}");
        }
    }
}
