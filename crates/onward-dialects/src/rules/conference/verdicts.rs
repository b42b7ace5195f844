//! A reviewer's verdicts as data, and the page that they make.
//!
//! Invariant: reading the page gives the verdicts back, see [`review`](super::review).

use std::fmt::Write as _;

use serde_json::Value;

use crate::conference::{Conference, read::spelling, write::happening::Verdict};

#[derive(Clone, Debug, PartialEq)]
pub struct Verdicts {
    pub all: Vec<Given>,
    pub notes: String,
}

/// The word on one claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    pub researcher: String,
    pub claim: String,
    pub verdict: Verdict,
    pub reasoning: String,
    pub score: Option<f64>,
}

impl Verdicts {
    /// As the reviewer left them; `None` when they are of another form.
    pub fn read(value: &Value) -> Option<Self> {
        let text = |value: &Value, key: &str| {
            let text = value[key].as_str().unwrap_or_default();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let given = |value: &Value| {
            Some(Given {
                researcher: spelling::researcher(value["researcher"].as_str()?).ok()?,
                claim: Some(text(value, "claim")).filter(|it| !it.is_empty())?,
                verdict: Verdict::find(value["verdict"].as_str()?)?,
                reasoning: text(value, "reasoning"),
                score: value["score"].as_f64(),
            })
        };
        let all: Option<Vec<Given>> = value["verdicts"].as_array()?.iter().map(given).collect();
        Some(Self { all: all?, notes: text(value, "notes") })
    }

    /// As the round takes them: those about other names are left out, and the notes say so; a
    /// researcher that did something and was passed over is challenged, as only what a reviewer
    /// found to hold is shared.
    #[must_use]
    pub fn of_round(mut self, conference: &Conference, round: u32) -> Self {
        let researchers = conference.researchers_of(round);
        let is_known = |it: &Given| researchers.contains(&it.researcher);
        let (known, others): (Vec<Given>, Vec<Given>) = self.all.into_iter().partition(is_known);
        let mut others: Vec<String> = others.into_iter().map(|it| it.researcher).collect();
        others.sort();
        others.dedup();
        if !others.is_empty() {
            let who = others.join(", ");
            let left_out = format!("Left out: verdicts about {who}, not of this round.");
            let notes = [self.notes, left_out];
            self.notes =
                notes.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ");
        }
        self.all = known;
        let told = conference.history.round(round);
        let has_tried = |who: &&String| {
            told.is_some_and(|told| told.trials_of(who).any(|(number, _)| number > 0))
        };
        for researcher in researchers.iter().filter(has_tried) {
            if self.all.iter().all(|it| it.researcher != *researcher) {
                self.all.push(Given {
                    researcher: researcher.clone(),
                    claim: "all that it did in this round".to_owned(),
                    verdict: Verdict::Challenged,
                    reasoning: "the reviewer gave no verdict on it".to_owned(),
                    score: None,
                });
            }
        }
        self
    }

    /// The page of the round. Ordered by researcher, whatever order they came in.
    pub fn page(&self, round: u32) -> String {
        let mut all: Vec<&Given> = self.all.iter().collect();
        all.sort_by(|one, other| one.researcher.cmp(&other.researcher));
        let mut page = format!("# Peer Review — Round {round}\n");
        let mut add = |text: String| page.write_str(&text).expect("a string takes all");
        for it in &all {
            let Given { researcher, claim, verdict, reasoning, .. } = it;
            let verdict = verdict.as_str();
            add(format!("\n### Researcher {researcher} — {claim}\n\n**Claim:** {claim}\n"));
            add(format!("**Verdict:** {verdict}\n"));
            if !reasoning.is_empty() {
                add(format!("**Reasoning:** {reasoning}\n"));
            }
        }
        if all.iter().any(|it| it.score.is_some()) {
            add("\n## Scores\n\n| Researcher | Reviewer Score |\n|---|---|\n".to_owned());
            let mut last = "";
            for it in &all {
                if let Some(score) = it.score.filter(|_| it.researcher != last) {
                    add(format!("| {} | {score} |\n", it.researcher));
                    last = &it.researcher;
                }
            }
        }
        if !self.notes.is_empty() {
            add(format!("\n## Notes\n\n{}\n", self.notes));
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{kit::markdown::Document, rules::conference::review};

    #[test]
    fn the_page_reads_back_as_the_verdicts_and_scores() {
        let given = json!({"notes": "warm water", "verdicts": [
            {"researcher": "B", "claim": "Longer is\nbitter", "verdict": "overturned", "score": 4},
            {"researcher": "A", "claim": "Hot", "verdict": "validated", "reasoning": "rows 1-3",
             "score": 8.5},
        ]});
        let page = Verdicts::read(&given).unwrap().page(2);
        let page = Document::read(page.as_bytes());
        assert!(page.is_whole());
        let read: Vec<_> = review::judgements(&page)
            .into_iter()
            .map(|it| (it.researcher.unwrap(), it.finding, it.verdict.as_str()))
            .collect();
        let own = |who: &str, what: &str, verdict| (who.to_owned(), what.to_owned(), verdict);
        let wanted = [own("A", "Hot", "validated"), own("B", "Longer is bitter", "overturned")];
        assert_eq!(read, wanted);
        assert_eq!(review::scores(&page), [8.5, 4.0]);
        assert_eq!(Verdicts::read(&json!({"verdicts": [{"researcher": "A"}]})), None);
    }
}
