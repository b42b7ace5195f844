//! What a journal of ours knows of a story whose agents are at work, or were.
//!
//! Invariant: what an agent of our own run wrote while it worked is no progress of the original. A
//! status or a gate that is ahead of the journal counts where a state of the original says so too,
//! or where no agent of ours came to its end since the story was noted.

use onward_core::{address::Address, told::Journaled};
use serde_json::Value;

use super::{
    Code,
    qa::Verdict,
    status::Status,
    step, story_code,
    told::{Kind, SdlcTold},
};

pub(super) fn beside(told: &mut SdlcTold, known: &dyn Fn(&Address) -> Journaled) {
    let known = |at: &str| known(&Address::from_text(at));
    let result = |at: &str| match known(at) {
        Journaled::Done(result) | Journaled::Stale(result) => Some(result),
        Journaled::Failed | Journaled::Open => None,
    };
    let Kind::Story(run) = &told.kind else { return };
    if run.entered.is_some() || run.is_closing {
        return;
    }
    let (mut facts, mut status) = (run.facts, run.known);
    // The state says so until the story is finished; the person has answered meanwhile.
    let is_go =
        |turn| result(&format!("checkpoint[{turn}]/ask")).is_some_and(|it| it["option"] == "GO");
    facts.awaits &= run.proved > 4 || !(1..=20).any(is_go);
    let is_gone = told.story().is_none() && result("start").is_some();
    facts.there |= is_gone;
    let held = work(&result).find(|it| {
        let look = known(&it.look);
        result(&it.note).is_some() && !matches!(look, Journaled::Done(_))
    });
    // What is to be done again is not done, whatever our own calls have written behind it.
    let is_stale = |at: &str| matches!(known(at), Journaled::Stale(_));
    let again = ["start", "implement"].into_iter().any(is_stale);
    let again = again.then(|| work(&result).next()).flatten();
    let is_again = again.is_some();
    let held = again.or_else(|| held.filter(|it| !step::by_state(told, it.phase)));
    let behind = held.filter(|it| {
        let has_failed = matches!(known(&it.look), Journaled::Failed);
        let is_ahead = it.is_ahead(status, facts.passed, has_failed || is_again);
        is_ahead && (has_failed || it.has_worked)
    });
    let is_behind = behind.is_some();
    if let Some(it) = behind {
        status = Some(it.status);
        (facts.failed, facts.passed) = (it.sent_back, false);
        facts.done = false;
        facts.review = it.status == Status::InReview;
        facts.draft = it.status == Status::Draft;
    }
    let code = story_code(facts);
    if let Kind::Story(run) = &mut told.kind {
        run.is_gone |= is_gone;
        run.is_held = is_behind;
        (run.facts, run.known) = (facts, status);
    }
    told.code = if is_gone && code == Code::Create { Code::Implement } else { code };
}

/// Agents of ours between the note of what a story holds and the look at it.
struct Work {
    note: String,
    look: String,
    phase: u32,
    /// As the run had set it.
    status: Status,
    /// A gate had sent the story back.
    sent_back: bool,
    /// An agent came to its end, and its word is not that the story is through.
    has_worked: bool,
}

impl Work {
    /// Whether the files are ahead of the run. That the story is in review may be our own call,
    /// cut short, unless that has failed.
    fn is_ahead(&self, status: Option<Status>, passed: bool, has_failed: bool) -> bool {
        let Some(status) = status else { return false };
        let is_more = match (self.status, status) {
            (_, Status::Done)
            | (Status::Draft, Status::Ready | Status::InProgress | Status::InReview) => true,
            (Status::InProgress, Status::InReview) => has_failed,
            (
                Status::Draft
                | Status::Ready
                | Status::InProgress
                | Status::InReview
                | Status::Done
                | Status::Blocked,
                Status::Draft
                | Status::Ready
                | Status::InProgress
                | Status::InReview
                | Status::Blocked,
            ) => false,
        };
        is_more || passed
    }
}

fn work(result: &dyn Fn(&str) -> Option<Value>) -> impl Iterator<Item = Work> {
    let one = |(note, look): (&str, &str), turn: &str, by: (&str, u32), status| {
        let at = |step: &str| format!("{turn}{step}");
        let said = result(&at(by.0));
        let verdict = said.as_ref().and_then(|it| it["verdict"].as_str()).and_then(Verdict::of);
        Work {
            note: at(note),
            look: at(look),
            phase: by.1,
            status,
            sent_back: turn.starts_with("rework"),
            has_worked: said.is_some() && verdict.is_none_or(Verdict::sends_back),
        }
    };
    let mut all = vec![
        one(("start", "submit"), "", ("implement", 3), Status::InProgress),
        one(("submit", "gated"), "", ("qa-gate", 4), Status::InReview),
    ];
    for turn in 1..=3 {
        let at = format!("validate[{turn}]/");
        all.push(one(("begin", "judged"), &at, ("judge", 2), Status::Draft));
        let at = format!("rework[{turn}]/");
        all.push(one(("begin", "submit"), &at, ("fix", 4), Status::InReview));
        all.push(one(("submit", "gated"), &at, ("judge", 4), Status::InReview));
    }
    all.into_iter()
}
