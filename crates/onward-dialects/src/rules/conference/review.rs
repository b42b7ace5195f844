//! A peer review as verdicts: who found what, and whether it holds.
//!
//! Invariant: total. What is not said plainly is not a verdict.

use crate::{
    conference::{read::spelling, write::happening::Verdict},
    kit::{
        markdown::{Document, heading, table},
        number,
    },
};

/// One finding and the reviewer's word on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// `None` where the review does not say whose finding it is.
    pub researcher: Option<String>,
    pub finding: String,
    pub verdict: Verdict,
}

/// Every verdict of the review, in order. A verdict belongs to the claim, or else to the heading,
/// that it follows; a heading belongs to the last researcher named above it.
pub fn judgements(review: &Document) -> Vec<Judgement> {
    let (mut researcher, mut title, mut claim) = (None, String::new(), None);
    let mut found = Vec::new();
    for line in review.text().lines() {
        if let Some((_, text)) = heading(line) {
            researcher = researcher_in(text).or(researcher);
            title = without_researcher(text);
            claim = None;
            continue;
        }
        let text = plain(line);
        if let Some(said) = after(&text, "claim:") {
            claim = Some(said.to_owned());
        } else if let Some(said) = after(&text, "verdict:") {
            let Some(verdict) = Verdict::find(said) else { continue };
            let finding = claim.clone().unwrap_or_else(|| title.clone());
            found.push(Judgement { researcher: researcher.clone(), finding, verdict });
        }
    }
    found
}

/// The most careful verdict on any of the researcher's findings.
pub fn overall(judgements: &[Judgement], researcher: &str) -> Option<Verdict> {
    let own = judgements.iter().filter(|it| it.researcher.as_deref() == Some(researcher));
    own.map(|it| it.verdict).max()
}

/// The scores that a reviewer gave, from the table of scores.
pub fn scores(review: &Document) -> Vec<f64> {
    let sections = review.sections();
    let about = |title: &str| title.to_lowercase().contains("score");
    let section = sections.iter().find(|section| about(section.title));
    let rows = section.map(|section| table(section.whole)).unwrap_or_default();
    let Some((header, rows)) = rows.split_first() else { return Vec::new() };
    let has = |wanted: &str| header.iter().position(|it| it.to_lowercase().contains(wanted));
    let Some(column) = has("reviewer score").or_else(|| has("score")) else { return Vec::new() };
    rows.iter().filter_map(|row| number::number(row.get(column)?)).collect()
}

/// Without bullets, bold and code marks.
fn plain(line: &str) -> String {
    let line = line.trim().trim_start_matches(['-', '*', '+', ' ']);
    line.replace(['*', '`'], "").trim().to_owned()
}

fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| text[word.len()..].trim())
}

/// The letter in `Researcher A — what was found`.
fn researcher_in(title: &str) -> Option<String> {
    let lower = title.to_lowercase();
    let at = lower.find("researcher ")?;
    let rest = title.get(at + "researcher ".len()..)?;
    let name = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    spelling::researcher(name).ok()
}

fn without_researcher(title: &str) -> String {
    let rest = match researcher_in(title) {
        Some(_) => title.split_once(['—', '–', ':']).or_else(|| title.split_once("--")),
        None => after(title, "claim:").map(|rest| ("", rest)),
    };
    plain(rest.map_or(title, |(_, rest)| rest.trim_start_matches('-').trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String, &'static str)> {
        let all = judgements(&Document::read(text.as_bytes()));
        let of =
            |it: Judgement| (it.researcher.unwrap_or_default(), it.finding, it.verdict.as_str());
        all.into_iter().map(of).collect()
    }

    fn own(who: &str, finding: &str, verdict: &'static str) -> (String, String, &'static str) {
        (who.to_owned(), finding.to_owned(), verdict)
    }

    #[test]
    fn the_form_of_the_reference_is_read() {
        let text = "# Peer Review — Round 1\n\n### Researcher A — Hotter water\n\n\
                    **Claim:** Hotter is better\n**Verdict:** validated\n\n\
                    ### Researcher B — Longer\n\n**Verdict:** overturned\n**Reasoning:** bitter\n";
        let expected =
            [own("A", "Hotter is better", "validated"), own("B", "Longer", "overturned")];
        assert_eq!(read(text), expected);
    }

    #[test]
    fn the_form_of_older_reviews_is_read_too() {
        let text = "## Researcher A -- Leaves\n\n### Claim: Whole leaves win\n\
                    **Verdict: CHALLENGED (partially)**\n\n### Researcher C\n\
                    - **Verdict: VALIDATED** -- not challenged at all\n\n\
                    | Researcher | Verdict |\n|---|---|\n| A | CHALLENGED |\n";
        let expected =
            [own("A", "Whole leaves win", "challenged"), own("C", "Researcher C", "validated")];
        assert_eq!(read(text), expected);
    }

    #[test]
    fn a_review_without_a_verdict_has_none() {
        assert_eq!(read("# Review\n\nVerdict: hard to say.\nAll was validated, they say.\n"), []);
    }

    #[test]
    fn the_most_careful_verdict_counts_for_the_researcher() {
        let of = |researcher: &str, verdict| Judgement {
            researcher: Some(researcher.to_owned()),
            finding: String::new(),
            verdict,
        };
        let all = [of("A", Verdict::Validated), of("A", Verdict::Challenged)];
        assert_eq!(overall(&all, "A"), Some(Verdict::Challenged));
        assert_eq!(overall(&all, "B"), None);
    }
}
