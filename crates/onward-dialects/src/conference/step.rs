//! The steps of the built-in workflow: their addresses, their rows in a plan, and what the files
//! say about each.
//!
//! Invariant: agrees with the recovery table. A driver that takes every step that is done here for
//! done, skips what is passed over and starts the first of the others stands at the recovery point.

use onward_core::{
    address::{Address, encode_key},
    told::{Done, StepTold, Undo, UndoWhat},
};
use serde_json::{Value, json};

use super::{Conference, Point, PointCode, read::log::StuckLevel};
use crate::rules::conference::{finish::Finish, results};

pub fn round(round: u32) -> Address {
    Address::from_text("round").turn(round)
}

/// A step directly in a round, such as `poster`.
pub fn in_round(number: u32, id: &str) -> Address {
    Address::from_text(&format!("{}/{id}", round(number)))
}

pub fn research(number: u32, researcher: &str) -> Address {
    in_round(number, "research").item(researcher)
}

pub fn synthesis() -> Address {
    Address::from_text("synthesis")
}

/// A step of the workflow, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot<'a> {
    Top(&'a str),
    InRound(u32, &'a str),
    /// Round, researcher as the address has it, iteration, and what is done in it.
    Iteration(u32, &'a str, u32, &'a str),
}

impl<'a> Spot<'a> {
    /// `None` for an address that the workflow does not have.
    pub fn of(step: &'a Address) -> Option<Self> {
        let (first, rest) = match step.as_str().split_once('/') {
            Some((first, rest)) if first.starts_with("round[") => (first, rest),
            Some(_) | None => return Some(Self::Top(step.as_str())),
        };
        let round = first.strip_prefix("round[")?.strip_suffix(']')?.parse().ok()?;
        let Some(rest) = rest.strip_prefix("research[") else {
            return Some(Self::InRound(round, rest));
        };
        let (researcher, rest) = rest.split_once("]/")?;
        if let Some(what) = rest.strip_prefix("baseline/") {
            return Some(Self::Iteration(round, researcher, 0, what));
        }
        let (iteration, what) = rest.strip_prefix("iterate[")?.split_once("]/")?;
        Some(Self::Iteration(round, researcher, iteration.parse().ok()?, what))
    }

    fn round(&self) -> Option<u32> {
        match self {
            Self::Top(_) => None,
            Self::InRound(round, _) | Self::Iteration(round, ..) => Some(*round),
        }
    }

    /// The files tell when the step is done, because it writes what the conference goes by.
    fn is_witnessed(&self) -> bool {
        match self {
            Self::Top(id) => matches!(*id, "start" | "synthesis/publish" | "close"),
            Self::InRound(_, id) => {
                matches!(*id, "begin" | "poster/publish" | "review/publish" | "transfer")
            }
            Self::Iteration(.., what) => *what == "settle",
        }
    }
}

/// The row that a step is shown in: an iteration, a phase, or the step itself.
pub fn row(step: &Address) -> Address {
    let is_part = match Spot::of(step) {
        Some(Spot::Top(id)) => matches!(id, "synthesis/draft" | "synthesis/publish"),
        Some(Spot::InRound(_, id)) => id.starts_with("poster/") || id.starts_with("review/"),
        Some(Spot::Iteration(..)) => true,
        None => false,
    };
    step.parent().filter(|_| is_part).unwrap_or_else(|| step.clone())
}

/// What the files say about a step. Pages that are undone are those that no event vouches for.
pub fn told(conference: &Conference, point: &Point, undo: &[Undo], step: &Address) -> StepTold {
    let Some(spot) = Spot::of(step) else { return StepTold::Silent };
    let files = StepFiles { conference, point };
    if let Some(done) = files.done(&spot) {
        return StepTold::Done(done);
    }
    if let Some(why) = files.passed_over(&spot) {
        return StepTold::PassedOver(why);
    }
    let is_page = |it: &Undo| it.what == UndoWhat::Remove && step.is_within(&it.step);
    if undo.iter().any(is_page) {
        return StepTold::Unproved("a file is there, and no event tells of it".to_owned());
    }
    if spot.is_witnessed() || files.came_to_nothing(&spot) {
        StepTold::Undone
    } else {
        StepTold::Silent
    }
}

struct StepFiles<'a> {
    conference: &'a Conference,
    point: &'a Point,
}

/// Recorded when the log has it, inferred when it only follows.
fn done(is_logged: bool, result: Value) -> Done {
    if is_logged { Done::recorded(result) } else { Done::inferred(result) }
}

impl StepFiles<'_> {
    fn done(&self, spot: &Spot<'_>) -> Option<Done> {
        match spot {
            Spot::Top(id) => self.top(id),
            Spot::InRound(round, id) => self.in_round(*round, id),
            Spot::Iteration(round, who, iteration, what) => {
                self.in_iteration(*round, &self.researcher(*round, who), *iteration, what)
            }
        }
    }

    /// The researcher whose name the address has, encoded.
    fn researcher(&self, round: u32, encoded: &str) -> String {
        let all = self.conference.researchers_of(round);
        let own = all.into_iter().find(|it| encode_key(it) == encoded);
        own.unwrap_or_else(|| encoded.to_owned())
    }

    fn top(&self, id: &str) -> Option<Done> {
        let history = &self.conference.history;
        let is_started = history.started || !history.rounds.is_empty();
        let is_complete = self.point.code == PointCode::Complete;
        let is_written = is_complete || self.point.code == PointCode::Close;
        let started = |result| is_started.then(|| done(history.started, result));
        match id {
            "open" => started(results::opening(self.conference)),
            // Its start says so, also where the document still calls it pending.
            "confirm" => is_started.then(|| {
                let is_written = history.started && !self.conference.settings.unconfirmed;
                done(is_written, json!({"option": "approve"}))
            }),
            "partition" => is_started.then(|| Done::inferred(json!({}))),
            "start" => started(json!({})),
            "synthesis/draft" | "synthesis/publish" => {
                is_written.then(|| done(is_complete, json!({})))
            }
            "worktrees" => is_complete.then(|| Done::inferred(json!({"option": "keep"}))),
            "close" => is_complete.then(|| Done::recorded(json!({}))),
            _ => None,
        }
    }

    fn in_round(&self, round: u32, id: &str) -> Option<Done> {
        let known = self.conference.history.round(round);
        let is_after = self.is_after(round);
        let is_over = self.point.over.is_some();
        let (posted, reviewed) = known.map_or((false, false), |it| (it.poster, it.review));
        let has_poster = self.conference.posters.contains_key(&round) || is_over;
        let has_review = self.conference.reviews.contains_key(&round) || is_over;
        let (is_done, is_logged, result) = match id {
            "begin" => {
                let is_begun = known.is_some_and(|it| it.started || it.iterations() > 0);
                let is_logged = known.is_some_and(|it| it.started);
                let is_done = is_begun || is_over && known.is_some();
                (is_done, is_logged, results::beginning(self.conference, round))
            }
            "roll" => (posted || reviewed, false, json!({})),
            // After the review the poster is not read again before the synthesis.
            "poster/draft" | "poster/publish" => {
                (posted && has_poster || reviewed, posted, json!({}))
            }
            "review/judge" | "review/publish" => (reviewed && has_review, reviewed, json!({})),
            "transfer" => (false, known.is_some_and(|it| it.completed.is_some()), json!({})),
            "converge" => return self.converged(round, is_after && is_over),
            _ => return None,
        };
        (is_after || is_done).then(|| done(is_logged, result))
    }

    fn converged(&self, round: u32, is_over: bool) -> Option<Done> {
        let is_logged = self.conference.history.end.is_some();
        if self.has_later(round) {
            return Some(Done::inferred(json!({"over": false})));
        }
        is_over.then(|| done(is_logged, results::converged(self.conference)))
    }

    fn has_later(&self, round: u32) -> bool {
        self.conference.history.rounds.keys().next_back().is_some_and(|last| *last > round)
    }

    /// Nothing of the round is left to do: it is completed, or a later one has begun.
    fn is_after(&self, round: u32) -> bool {
        let known = self.conference.history.round(round);
        known.is_some_and(|it| it.completed.is_some()) || self.has_later(round)
    }

    fn in_iteration(
        &self,
        round: u32,
        researcher: &str,
        iteration: u32,
        what: &str,
    ) -> Option<Done> {
        let Self { conference, .. } = self;
        let known = conference.history.round(round)?;
        // Many logs never mention a baseline; an iteration after it proves it.
        let last = known.trials.get(researcher)?.keys().next_back()?;
        let result = match what {
            "brief" => json!({"text": ""}),
            "propose" => json!({"outcome": "adopted"}),
            "score" => json!({"ok": false, "adopted": true}),
            "settle" => results::settled(conference, round, researcher, iteration),
            _ => return None,
        };
        let is_logged = conference.history.is_logged(round, researcher, iteration);
        (*last >= iteration).then(|| done(is_logged, result))
    }

    /// Why a step that is not done will not run either.
    fn passed_over(&self, spot: &Spot<'_>) -> Option<String> {
        let Self { conference, point } = self;
        let round = spot.round()?;
        if let Some(over) = &point.over
            && conference.history.open_round() == Some(round)
        {
            return Some(format!("the conference goes to its synthesis: {}", over.detail));
        }
        let researchers = conference.researchers_of(round);
        let is_alone = researchers.len() == 1;
        match spot {
            Spot::InRound(_, id) if id.starts_with("poster/") && is_alone => {
                Some("one researcher has nothing to compare".to_owned())
            }
            Spot::Top(_) | Spot::InRound(..) => None,
            Spot::Iteration(_, who, ..) => {
                let known = conference.history.round(round)?;
                let Some(own) = researchers.iter().find(|it| encode_key(it) == *who) else {
                    // conference.md asks for it by now, and the round was started without it.
                    let why = format!("it takes no part in round {round}");
                    return known.is_logged().then_some(why);
                };
                let finish = conference.finish(round, own).map(in_words);
                let past = conference.is_past_research(round).then_some("its research is over");
                finish.or(past).map(str::to_owned)
            }
        }
    }

    /// A proposal in a round that the log knows nothing of (any more), or of a researcher that
    /// failed with all the others: no row or event is left of it, and a resume asks for another.
    fn came_to_nothing(&self, spot: &Spot<'_>) -> bool {
        let Spot::Iteration(round, who, _, "propose") = spot else { return false };
        let Some(known) = self.conference.history.round(*round) else { return true };
        let researcher = self.researcher(*round, who);
        let has_failed = known.stuck.get(&researcher) == Some(&StuckLevel::TimedOut);
        let is_open = self.conference.finish(*round, &researcher).is_none();
        self.conference.history.failed && has_failed && is_open
    }
}

fn in_words(finish: Finish) -> &'static str {
    match finish {
        Finish::Count => "its researcher has had all its iterations",
        Finish::Final => "its researcher's last iteration is marked final",
        Finish::Stuck => "its researcher is stuck at level 3 and stops for this round",
        Finish::Target => "its researcher reached the target",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_from_the_round_inwards() {
        assert_eq!(round(2).as_str(), "round[2]");
        assert_eq!(in_round(2, "poster").as_str(), "round[2]/poster");
        assert_eq!(research(2, "A").as_str(), "round[2]/research[A]");
        assert_eq!(research(1, "x y").as_str(), "round[1]/research[x%20y]");
    }

    #[test]
    fn the_parts_of_an_iteration_or_a_phase_share_a_row() {
        for (step, wanted) in [
            ("round[1]/research[A]/iterate[2]/propose", "round[1]/research[A]/iterate[2]"),
            ("round[1]/research[A]/baseline/settle", "round[1]/research[A]/baseline"),
            ("round[1]/poster/draft", "round[1]/poster"),
            ("round[1]/review/publish", "round[1]/review"),
            ("round[1]/transfer", "round[1]/transfer"),
            ("synthesis/draft", "synthesis"),
            ("close", "close"),
            ("open", "open"),
        ] {
            assert_eq!(row(&Address::from_text(step)).as_str(), wanted);
        }
    }

    #[test]
    fn an_address_that_the_workflow_does_not_have_is_no_spot() {
        for step in ["round[x]/begin", "round[1]/research[A]", "round[1]/research[A]/iterate[y]/z"]
        {
            assert_eq!(Spot::of(&Address::from_text(step)), None, "{step}");
        }
    }
}
