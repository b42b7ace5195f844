//! One round around its research: begin, roll, poster, review, transfer, converge.

use crate::world::open;
use std::path::Path;

use onward_dialects::{
    conference::{
        Conference,
        read::{Part, REPORT, history::Round, log::StuckLevel},
        write::happening::What,
    },
    kit::markdown::Document,
    rules::conference::{results, transfer as transferring, verdicts::Verdicts},
};
use serde_json::{Value, json};

use super::{CallError, Name, Order, seat::Seat, tree::Tree};
use crate::world::real::wall_clock;

/// Every researcher begins with the best there is. Until an iteration of the round is logged, a
/// second call clears up again.
pub(super) fn begin(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let mut conference = seat.read()?;
    let round = order.round;
    let told = conference.history.round(round);
    let is_started = told.is_some_and(Round::is_logged);
    let is_under_way = told.is_some_and(|told| told.iterations() > 0);
    let mut rescued = Vec::new();
    if !is_under_way && conference.has_worktrees() {
        let researchers = results::researchers(&conference);
        let repo = seat.repo()?;
        let best = repo.best(&researchers)?;
        for researcher in &researchers {
            let tree = Tree::of(&repo, &Name::checked(researcher)?)?;
            tree.ensure()?;
            rescued.extend(tree.begin(round, &best)?);
        }
    }
    if !is_started {
        let researchers = results::researchers(&conference);
        conference = seat.add(&conference, What::RoundStarted { round, researchers })?;
    }
    Ok(with_rescued(results::beginning(&conference, round), &rescued))
}

/// The result, with the places of what was kept aside.
pub(super) fn with_rescued(mut result: Value, rescued: &[String]) -> Value {
    if !rescued.is_empty() {
        result["rescued"] = rescued.into();
    }
    result
}

/// The conference has failed when every researcher of the round has.
pub(super) fn roll(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let round = order.round;
    let told = conference.history.round(round);
    let researchers = conference.researchers_of(round);
    let has_failed = |who: &&String| {
        let stuck = told.and_then(|it| it.stuck.get(*who));
        stuck == Some(&StuckLevel::TimedOut) && conference.finish(round, who).is_none()
    };
    let failed: Vec<&String> = researchers.iter().filter(has_failed).collect();
    if failed.is_empty() || failed.len() < researchers.len() {
        return Ok(json!({"failed": failed}));
    }
    if !conference.history.failed {
        seat.replace(REPORT, partial_report(&conference, round).as_bytes())?;
        seat.add(&conference, What::Failed { round })?;
    }
    let message = format!("every researcher failed in round {round}");
    let hint = "final_report.md says what there is; see to the agents, then `onward resume`: \
                it asks every researcher again";
    Err(CallError::new(message).hint(hint))
}

fn partial_report(conference: &Conference, round: u32) -> String {
    let goal = conference.settings.goal.as_deref().unwrap_or("-");
    let completed = conference.history.last_completed();
    let best = conference.best_of(completed).map_or_else(|| "none".to_owned(), |it| it.to_string());
    let iterations = conference.history.iterations();
    format!(
        "# Partial report\n\nGoal: {goal}\n\nThe conference failed in round {round}: no researcher \
         could work. {completed} rounds were completed before, with {iterations} iterations in \
         all; the best metric is {best}. What was learned so far is in conference.md, under \
         Shared Knowledge.\n"
    )
}

/// The draft, or why it cannot be used.
fn draft(dir: &Path, name: &str) -> Result<String, CallError> {
    let path = dir.join("workspace").join(name);
    let text =
        open::text_named(&path, open::FILE_BYTES_MAX).map_err(CallError::io("read", &path))?;
    if Document::read(text.as_bytes()).is_whole() {
        return Ok(text);
    }
    let message = format!("`{}` is not a whole page: a title, and text under it", path.display());
    Err(CallError::new(message).hint("correct it, then `onward resume`"))
}

pub(in crate::play) fn whole_draft(seat: &Seat, name: &str) -> Result<String, CallError> {
    draft(&seat.dir, name)
}

pub(super) fn poster(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let round = order.round;
    let page = draft(&seat.dir, &format!("round-{round}/poster.md"))?;
    let summary = summary_of(&page);
    let what = What::Posted { round, summary: summary.clone(), page: page.clone() };
    let after = seat.add(&conference, what)?;
    // It is logged, but the file is gone.
    if !after.posters.contains_key(&round) {
        seat.replace(&Part::Poster(round).file_name(), page.as_bytes())?;
    }
    Ok(json!({"summary": summary}))
}

/// The first paragraph.
fn summary_of(page: &str) -> String {
    let lines = page.lines().map(str::trim).skip_while(|it| it.is_empty() || it.starts_with('#'));
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

pub(super) fn review(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let round = order.round;
    let Some(verdicts) = Verdicts::read(&order.review) else {
        return Err(CallError::new("the reviewer's verdicts cannot be read"));
    };
    let verdicts = verdicts.of_round(&conference, round);
    let page = verdicts.page(round);
    let after = seat.add(&conference, What::Reviewed { round, page: page.clone() })?;
    if !after.reviews.contains_key(&round) {
        seat.replace(&Part::Review(round).file_name(), page.as_bytes())?;
    }
    Ok(json!({"verdicts": verdicts.all.len()}))
}

/// Reads the verdicts, picks the findings, and writes each of the seven parts that is missing, in
/// their order.
pub(super) fn transfer(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let mut conference = seat.read()?;
    let round = order.round;
    let transfer = transferring::transfer(&conference, round);
    let is_completed = conference.history.round(round).is_some_and(|told| told.completed.is_some());
    if !is_completed {
        conference = seat.add(&conference, transfer.learned)?;
        if conference.has_worktrees() {
            let repo = seat.repo()?;
            let best = repo.best(&conference.researchers_of(round))?;
            repo.gather(&best, &transfer.picks)?;
        }
        for what in transfer.noted {
            conference = seat.add(&conference, what)?;
        }
        let what = transferring::completed(&conference, round, wall_clock());
        conference = seat.add(&conference, what)?;
    }
    seat.draw(&conference)?;
    Ok(json!({"picked": transfer.picks}))
}

/// Whether another round follows.
pub(super) fn converge(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let mut conference = seat.read()?;
    let result = results::converged(&conference);
    if let Some(what) = transferring::ending(&conference) {
        conference = seat.add(&conference, what)?;
    }
    seat.draw(&conference)?;
    Ok(result)
}
