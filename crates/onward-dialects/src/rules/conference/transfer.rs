//! A knowledge transfer, laid out: what is shared, what is gathered, and in which order.
//!
//! Invariant: a function of the round's review and rows. Every part of it adds only what is
//! missing, so that a transfer may be begun again anywhere.

use super::{
    converge::{self, Reason},
    keep,
    review::{self, Judgement},
};
use crate::conference::{
    Conference,
    write::happening::{Happening, Verdict, What},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Shared Knowledge.
    pub learned: What,
    /// Whose commits go to conference/best, the better change first, then the lower letter.
    pub picks: Vec<String>,
    /// Verdicts in the results, then rows of the Conference Log.
    pub noted: Vec<What>,
}

pub fn transfer(conference: &Conference, round: u32) -> Transfer {
    let page = conference.reviews.get(&round);
    let researchers = conference.researchers_of(round);
    let mut judgements = page.map(review::judgements).unwrap_or_default();
    judgements.retain(|it| it.researcher.as_ref().is_none_or(|who| researchers.contains(who)));
    let validated = judgements.iter().filter(|it| it.verdict == Verdict::Validated);
    let by = |it: &Judgement| it.researcher.as_ref().map(|who| format!(" (Researcher {who})"));
    let finding = |it: &Judgement| format!("{}{}", it.finding, by(it).unwrap_or_default());
    let findings = validated.map(finding).collect();
    let verdict = |who: &String| review::overall(&judgements, who);
    let mut picks: Vec<(f64, String)> = researchers
        .iter()
        .filter(|who| verdict(who) == Some(Verdict::Validated))
        .map(|who| (gain(conference, round, who), who.clone()))
        .collect();
    picks.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let judged = researchers.iter().filter_map(|who| {
        let verdict = verdict(who)?;
        Some(What::Judged { round, researcher: who.clone(), verdict })
    });
    let noted = researchers.iter().map(|who| {
        // The finding that the verdict on the researcher comes from.
        let is_it = |it: &&Judgement| {
            it.researcher.as_ref() == Some(who) && Some(it.verdict) == verdict(who)
        };
        let own = judgements.iter().find(is_it);
        What::Noted {
            round,
            researcher: who.clone(),
            best: number(keep::standing(conference, round, who)),
            finding: own.map_or_else(|| "-".to_owned(), |it| it.finding.clone()),
            status: verdict(who).map_or("-", Verdict::as_str).to_owned(),
        }
    });
    Transfer {
        learned: What::Learned { round, findings },
        noted: judged.chain(noted).collect(),
        picks: picks.into_iter().map(|(_, who)| who).collect(),
    }
}

/// How much better the researcher's state became in the round.
fn gain(conference: &Conference, round: u32, researcher: &str) -> f64 {
    let ends = keep::standing(conference, round, researcher)
        .zip(keep::baseline(conference, round, researcher));
    let direction = conference.settings.direction_or_default();
    ends.map_or(0.0, |(end, start)| direction.gain(end, start))
}

/// The end of the round.
pub fn completed(conference: &Conference, round: u32, at: onward_core::time::Timestamp) -> What {
    let direction = conference.settings.direction_or_default();
    let mut best: Option<(f64, String)> = None;
    for who in conference.researchers_of(round) {
        let Some(value) = keep::standing(conference, round, &who) else { continue };
        if best.as_ref().is_none_or(|(best, _)| direction.gain(value, *best) > 0.0) {
            best = Some((value, who));
        }
    }
    let (value, researcher) = match best {
        Some((value, who)) => (Some(value), who),
        None => (None, "-".to_owned()),
    };
    let of = |converged| What::RoundCompleted {
        round,
        best: number(value),
        researcher: researcher.clone(),
        converged,
    };
    let after = conference.after(&Happening { at, what: of(false) });
    let over = converge::over(&after).map(|over| over.reason);
    of(over.is_some_and(|reason| !reason.is_budget() && reason != Reason::Stalled))
}

/// What is logged about the end of the rounds; a budget that is used up has no event of its own.
pub fn ending(conference: &Conference) -> Option<What> {
    let over = converge::over(conference)?;
    let last = conference.history.last_completed();
    let best = number(conference.best_of(last));
    match over.reason {
        Reason::Rounds | Reason::Iterations | Reason::Time => None,
        Reason::Stalled => Some(What::Stalled { round: last }),
        Reason::Logged | Reason::Target | Reason::Plateau | Reason::Quality => {
            let reason = converge::rule(conference).map_or(over.reason, |over| over.reason);
            let reason = reason.as_str().to_owned();
            Some(What::Converged { best, rounds: last, reason })
        }
    }
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
