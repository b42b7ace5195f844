//! What a start writes into conference.md: the person's word, and who looks where.
//!
//! Invariant: check and complete. What is there already stays as it is.

use std::collections::BTreeMap;

use crate::kit::markdown::Document;

/// With the final confirmation given, where the file waits for one.
pub fn confirmed(document: &Document) -> Document {
    let text = document.text();
    if text.as_bytes() != document.bytes() {
        return document.clone();
    }
    let is_pending = |line: &str| {
        let lower = line.to_lowercase();
        let value = lower.split_once(':').map(|(key, value)| (key, value.trim_matches(['*', ' '])));
        value.is_some_and(|(key, value)| {
            key.contains("final confirmation") && value.starts_with("pending")
        })
    };
    let mut all = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.to_lowercase().find("pending").filter(|_| is_pending(line)) {
            Some(at) => {
                all.push_str(&line[..at]);
                all.push_str("confirmed");
                all.push_str(&line[at + "pending".len()..]);
            }
            None => all.push_str(line),
        }
    }
    Document::read(all.as_bytes())
}

/// With a focus for each researcher that has none.
pub fn partitioned(document: &Document, focus: &BTreeMap<String, String>) -> Document {
    let mut document = document.clone();
    for (researcher, text) in focus {
        let title = format!("Researcher {researcher} Focus");
        if document.section(&title).is_none() {
            let text = text.trim();
            let text = format!("\n### {title}\n{text}");
            document = document.with_under("Search Space Partitioning", &text);
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_word_becomes_a_given_one_and_nothing_else_changes() {
        let text = "## Pre-Flight Gate\n- pending things\n- **Final confirmation:** pending\n";
        let after = confirmed(&Document::read(text.as_bytes()));
        let wanted = "## Pre-Flight Gate\n- pending things\n- **Final confirmation:** confirmed\n";
        assert_eq!(after.text(), wanted);
        assert_eq!(confirmed(&after).text(), wanted);
    }

    #[test]
    fn a_focus_is_added_once_and_never_replaced() {
        let text = "## Search Space Partitioning\n- **Strategy:** assigned\n\n\
                    ### Researcher A Focus\nmine\n\n## Guard\nx\n";
        let focus = [("A", "other"), ("B", "water")];
        let focus = focus.map(|(it, text)| (it.to_owned(), text.to_owned())).into();
        let once = partitioned(&Document::read(text.as_bytes()), &focus);
        assert_eq!(once.section("Researcher A Focus").unwrap().body.trim(), "mine");
        assert_eq!(once.section("Researcher B Focus").unwrap().body.trim(), "water");
        assert_eq!(once.section("Guard").unwrap().body.trim(), "x");
        assert_eq!(partitioned(&once, &focus).text(), once.text());
    }
}
