//! Who may edit which section of a story, and whether they kept to it.
//!
//! Invariant: a role that is not in the table may edit nothing. Every role may only add
//! to the Change Log.

use std::collections::BTreeMap;

use onward_core::digest::Digest;
use serde_json::{Value, json};

use crate::{
    kit::markdown::Document,
    sdlc::story::{SCOPE, Story},
};

/// Sections in lower case; `tasks` stands for the checkboxes of the tasks, not for their text.
const OWN: [(&str, &[&str]); 2] =
    [("dev", &["tasks", "file list", "dev notes", "dev agent record"]), ("qa", &["qa results"])];

pub(super) const LOG: &str = "change log";
/// What stands before the first section: title, status, who and what.
const HEAD: &str = "the head";

/// What a story holds before an agent works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    sections: BTreeMap<String, String>,
    /// With every checkbox open.
    tasks: Option<String>,
    log: String,
    /// What the other stories ask for, by their paths: no agent may change it on the way.
    others: BTreeMap<String, String>,
}

impl Marked {
    #[must_use]
    pub fn beside<'a>(mut self, others: impl Iterator<Item = &'a Story>) -> Self {
        let asked = |it: &Story| {
            let asked: String = SCOPE.iter().map(|title| it.section(title)).collect();
            Digest::of(asked.trim_end().as_bytes()).to_string()
        };
        self.others = others.map(|it| (it.path.clone(), asked(it))).collect();
        self
    }

    pub fn of(text: &str) -> Self {
        let document = Document::read(text.as_bytes());
        let all = document.sections();
        let seconds = || all.iter().filter(|it| it.level == 2);
        let end = seconds().next().map_or(text.len(), |it| {
            text[..it.start].trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1)
        });
        let digest = |text: &str| Digest::of(text.trim_end().as_bytes()).to_string();
        let mut marked = Self {
            sections: [(HEAD.to_owned(), digest(&text[..end]))].into(),
            tasks: None,
            log: String::new(),
            others: BTreeMap::new(),
        };
        for section in seconds() {
            let title = section.title.to_lowercase();
            if title == LOG {
                section.whole.trim_end().clone_into(&mut marked.log);
            } else if is_tasks(&title) {
                marked.tasks = Some(digest(&opened(section.whole)));
                marked.sections.insert(title, digest(section.whole));
            } else {
                marked.sections.insert(title, digest(section.whole));
            }
        }
        marked
    }

    pub fn to_json(&self) -> Value {
        let mut all = json!({ "sections": self.sections, "tasks": self.tasks, "log": self.log });
        if !self.others.is_empty() {
            all["others"] = json!(self.others);
        }
        all
    }

    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts = |key: &str| -> Option<BTreeMap<String, String>> {
            let all = value.get(key)?.as_object()?.iter();
            all.map(|(key, it)| Some((key.clone(), text(it)?))).collect()
        };
        Some(Self {
            sections: texts("sections")?,
            tasks: value.get("tasks").and_then(text),
            log: value.get("log").and_then(text)?,
            others: texts("others").unwrap_or_default(),
        })
    }

    /// Sections of no role that a person's copy of the story has otherwise. The head is left out:
    /// an orchestrator writes the status there.
    pub fn rewritten_in(&self, theirs: &Self) -> Vec<String> {
        let titles: std::collections::BTreeSet<&String> =
            self.sections.keys().chain(theirs.sections.keys()).collect();
        let is_same = |title: &String| {
            let is_whole = self.sections.get(title) == theirs.sections.get(title);
            is_whole || is_tasks(title) && self.tasks == theirs.tasks
        };
        let counts = |it: &&&String| !is_owned(it) && it.as_str() != HEAD && !is_same(it);
        titles.iter().filter(counts).map(|it| (**it).clone()).collect()
    }

    /// The same, where what a person's copy of the story says is no agent's doing.
    #[must_use]
    pub fn knowing(mut self, now: &Self, theirs: &Self) -> Self {
        let taken =
            now.sections.iter().filter(|(title, it)| theirs.sections.get(*title) == Some(it));
        self.sections.extend(taken.map(|(title, it)| (title.clone(), it.clone())));
        self.sections.retain(|title, _| {
            now.sections.contains_key(title) || theirs.sections.contains_key(title)
        });
        if now.tasks == theirs.tasks {
            self.tasks.clone_from(&now.tasks);
        }
        self
    }

    /// The sections that differ now and that this role may not edit.
    pub fn trespassed(&self, now: &Self, role: &str) -> Vec<String> {
        let own = OWN.iter().find(|(name, _)| *name == role).map_or(&[][..], |(_, own)| *own);
        let mut found = Vec::new();
        let titles: std::collections::BTreeSet<&String> =
            self.sections.keys().chain(now.sections.keys()).collect();
        for title in titles {
            let is_same = self.sections.get(title) == now.sections.get(title);
            let is_own = own.contains(&title.as_str());
            let only_boxes = is_tasks(title) && own.contains(&"tasks") && self.tasks == now.tasks;
            if !is_same && !is_own && !only_boxes {
                found.push(title.clone());
            }
        }
        if !now.log.starts_with(&self.log) {
            found.push(format!("{LOG}, which only grows"));
        }
        let changed = self.others.iter().filter(|(path, it)| now.others.get(*path) != Some(*it));
        found.extend(changed.map(|(path, _)| format!("what {path} asks for")));
        found
    }
}

/// Whether some role may write in it. Of the tasks that is their boxes alone.
pub(super) fn is_owned(title: &str) -> bool {
    !is_tasks(title) && OWN.iter().any(|(_, own)| own.contains(&title))
}

pub(super) fn is_tasks(title: &str) -> bool {
    title.starts_with("tasks")
}

pub(super) fn opened(text: &str) -> String {
    text.replace("[x]", "[ ]").replace("[X]", "[ ]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Story 4.2: x\n\n**Status:** Ready\n\n## Acceptance Criteria\n\n1. It \
        works.\n\n## Tasks / Subtasks\n\n- [ ] a\n- [ ] b\n\n## Dev Notes\n\n## QA Results\n\n## \
        Change Log\n\n| Date | Agent | Change |\n|---|---|---|\n| 1 | sm | made |\n";

    fn trespassed(role: &str, edit: impl Fn(&str) -> String) -> Vec<String> {
        let before = Marked::from_json(&Marked::of(TEXT).to_json()).unwrap();
        before.trespassed(&Marked::of(&edit(TEXT)), role)
    }

    #[test]
    fn each_role_edits_its_own_sections() {
        let none = Vec::<String>::new();
        assert_eq!(trespassed("dev", |it| it.replace("- [ ] a", "- [x] a")), none);
        assert_eq!(
            trespassed("dev", |it| it.replace("## Dev Notes\n", "## Dev Notes\n\nx\n")),
            none
        );
        assert_eq!(trespassed("dev", |it| format!("{it}| 2 | dev | done |\n")), none);
        assert_eq!(trespassed("dev", |it| format!("{it}\n## File List\n\n- a.rs\n")), none);
        assert_eq!(
            trespassed("qa", |it| it.replace("## QA Results\n", "## QA Results\n\nPASS\n")),
            none
        );
    }

    #[test]
    fn what_other_stories_ask_for_is_left_alone() {
        let path = "docs/stories/4.1.story.md";
        let other = |text: String| {
            let file = crate::File { bytes: text.into_bytes(), modified: None };
            Story::read(path, &file).unwrap()
        };
        let marked = |text: String| Marked::of(TEXT).beside([&other(text)].into_iter());
        let before = Marked::from_json(&marked(TEXT.to_owned()).to_json()).unwrap();
        let evil = marked(TEXT.replace("It works.", "It may work."));
        assert_eq!(before.trespassed(&evil, "dev"), [format!("what {path} asks for")]);
        // Its own run may go on meanwhile.
        let going_on = marked(TEXT.replace("Ready", "Done").replace("[ ] a", "[x] a"));
        assert_eq!(before.trespassed(&going_on, "dev"), Vec::<String>::new());
    }

    #[test]
    fn whatever_else_changes_is_named() {
        let one = |role, from: &str, to: &str| trespassed(role, |it| it.replace(from, to));
        assert_eq!(one("dev", "It works.", "It may work."), ["acceptance criteria"]);
        assert_eq!(one("dev", "- [ ] b\n", ""), ["tasks / subtasks"]);
        assert_eq!(one("dev", "Ready", "Done"), [HEAD]);
        assert_eq!(one("dev", "## QA Results\n", "## QA Results\n\nPASS\n"), ["qa results"]);
        assert_eq!(one("qa", "- [ ] a", "- [x] a"), ["tasks / subtasks"]);
        assert_eq!(one("qa", "| 1 | sm | made |", "| 1 | qa | made |").len(), 1);
        assert_eq!(one("stranger", "## Dev Notes\n", "## Dev Notes\n\nx\n"), ["dev notes"]);
    }
}
