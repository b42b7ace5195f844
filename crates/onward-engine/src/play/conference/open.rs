//! Before the first round: what conference.md asks for, and how it is set up.

use std::collections::BTreeMap;

use onward_dialects::{
    conference::{
        read::{DOCUMENT, settings::Mode},
        write::happening::What,
    },
    rules::conference::{gate, results, setup},
};
use serde_json::{Value, json};

use super::{
    CallError, Order,
    repo::{BEST, Repo},
    seat::Seat,
};

/// What the start gate shows. Refused while conference.md leaves something open.
pub(super) fn open(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let conference = seat.read()?;
    let missing = gate::unready(&conference);
    if !conference.history.started && !missing.is_empty() {
        let list = missing.join(", ");
        return Err(CallError::new(format!("conference.md does not say: {list}"))
            .hint("add it, or write a new one with `onward init --from conference`"));
    }
    if conference.has_worktrees() {
        seat.repo()?.head()?;
    }
    Ok(results::opening(&conference))
}

/// Sets everything up, and logs that the conference has started.
pub(super) fn start(order: &Order) -> Result<Value, CallError> {
    let seat = Seat::take(order)?;
    let mut conference = seat.read()?;
    if conference.history.started {
        return Ok(json!({}));
    }
    let focus: BTreeMap<String, String> =
        serde_json::from_value(order.focus.clone()).unwrap_or_default();
    conference.document = setup::partitioned(&setup::confirmed(&conference.document), &focus);
    let document = conference.document.bytes().to_vec();
    seat.replace(DOCUMENT, &document)?;
    let conference = seat.read()?;
    if conference.has_worktrees() {
        branch_off(&seat.repo()?)?;
    }
    let settings = &conference.settings;
    let (mode, config) = match settings.mode {
        Some(Mode::Qualitative) => ("qualitative", "by the success criteria".to_owned()),
        Some(Mode::Metric) | None => {
            let metric = settings.metric.as_deref().unwrap_or("-");
            let direction = settings.direction_or_default().as_str();
            let target = settings.target.map_or_else(|| "none".into(), |it| it.value.to_string());
            ("metric", format!("metric={metric}, direction={direction}, target={target}"))
        }
    };
    let goal = settings.goal.clone().unwrap_or_default();
    let researchers = settings.count.unwrap_or(0);
    seat.add(&conference, What::Started { researchers, mode, goal, config })?;
    Ok(json!({}))
}

/// conference/best begins at the user's commit. A branch that is there is of another conference.
fn branch_off(repo: &Repo) -> Result<(), CallError> {
    let head = repo.head()?;
    match repo.commit(BEST)? {
        None => {
            repo.git().run(&["update-ref", BEST, &head])?;
            Ok(())
        }
        Some(best) if best == head => Ok(()),
        Some(_) => Err(CallError::new("the branch conference/best is there already")
            .hint("it is of an earlier conference: rename or delete the branches conference/…")),
    }
}
