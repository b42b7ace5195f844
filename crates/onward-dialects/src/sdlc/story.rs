//! A story file: its id, how far it is, its tasks, what it depends on, what was logged.
//!
//! Invariant: text only. Nothing that stands in a story is ever followed.

use onward_core::time::Timestamp;

use super::status::{Status, status};
use crate::{
    File,
    kit::{
        age,
        markdown::{Document, Section, is_value, table},
        path::inside,
    },
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    pub id: String,
    pub path: String,
    pub title: String,
    /// `None` when nothing names one; the word when what names it is not known.
    pub status: Result<Status, Option<String>>,
    /// Checked or not, in order.
    pub tasks: Vec<(bool, String)>,
    /// Ids that its own Dependencies name.
    pub after: Vec<String>,
    /// The files that were made or changed for it, by its File List.
    pub files: Vec<String>,
    /// Date and text of each row of its Change Log.
    pub log: Vec<(Timestamp, String)>,
    pub modified: Option<Timestamp>,
    pub document: Document,
}

/// Sections that say what is wanted; a change there is a change of scope.
pub const SCOPE: [&str; 3] = ["acceptance criteria", "scope", "story"];

impl Story {
    /// `None` when the file is no story.
    pub fn read(path: &str, file: &File) -> Option<Self> {
        if !is_story_path(path) {
            return None;
        }
        let document = Document::read(&file.bytes);
        let heading = document.sections().first().map(|it| it.title.to_owned());
        let (id, title) = named(heading.as_deref().unwrap_or_default(), path)?;
        let told = told_status(&document);
        let known = match told {
            None => Err(None),
            Some(text) => status(&text).ok_or(Some(text)),
        };
        Some(Self {
            id,
            path: path.to_owned(),
            title,
            status: known,
            tasks: tasks(&document),
            after: dependencies(&document),
            files: file_list(&document),
            log: change_log(&document),
            modified: file.modified,
            document,
        })
    }

    pub fn status(&self) -> Option<Status> {
        self.status.as_ref().ok().copied()
    }

    pub fn first_open_task(&self) -> Option<&str> {
        self.tasks.iter().find(|(is_done, _)| !is_done).map(|(_, text)| text.as_str())
    }

    pub fn all_tasks_done(&self) -> bool {
        !self.tasks.is_empty() && self.tasks.iter().all(|(is_done, _)| *is_done)
    }

    /// What stands under the sections of these titles, for comparison.
    pub fn section(&self, title: &str) -> String {
        let all = self.document.sections();
        let of = |it: &&Section<'_>| it.level == 2 && it.title.to_lowercase().contains(title);
        all.iter().filter(of).map(|it| it.whole).collect()
    }
}

/// Whether two texts name the same story: `STORY-123.5` is `123.5`, `act-6` is `ACT-6`.
pub fn is_same(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}

pub fn bare(id: &str) -> String {
    let id = id.trim().to_lowercase();
    let id = id
        .strip_prefix("story")
        .map_or(id.as_str(), |rest| rest.trim_start_matches(['-', ' ', '_']));
    id.trim_end_matches(".story").to_owned()
}

fn is_story_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let is_page = name.rsplit('.').next() == Some("md");
    let other = ["readme", "index", "spec", "decision-log", "orchestration-log", "epic", "."];
    is_page
        && !path.contains("/spec/")
        && !other.iter().any(|it| name.starts_with(it))
        && !name.contains("-index")
}

/// The id and title: `# Story 4.2: Log in`, `# ACT-6: …`, or by the name of the file.
fn named(heading: &str, path: &str) -> Option<(String, String)> {
    let (head, title) = heading.split_once(':').unwrap_or((heading, ""));
    let (first, rest) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
    let is_named = first.eq_ignore_ascii_case("story");
    let candidate = if is_named { rest.trim() } else { first };
    let by_heading = candidate.split([' ', '—', '–']).next().filter(|it| is_id(it));
    let title = if title.is_empty() { heading } else { title };
    if let Some(id) = by_heading {
        return Some((id.to_owned(), title.trim().to_owned()));
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.strip_suffix(".md")?;
    let stem = stem.strip_suffix(".story").unwrap_or(stem);
    let id = id_of_stem(stem)?;
    Some((id, title.trim().to_owned()))
}

/// `4.2.login` is 4.2, `story-4.2-login` is 4.2, `STORY-123.5-x` is 123.5.
fn id_of_stem(stem: &str) -> Option<String> {
    let lower = stem.to_lowercase();
    let is_named = lower.starts_with("story");
    let rest = if is_named { stem[5..].trim_start_matches(['-', '_', '.']) } else { stem };
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let digits = digits.trim_end_matches('.').to_owned();
    if digits.contains('.') {
        return Some(digits);
    }
    if is_named && !rest.is_empty() { Some(rest.to_owned()) } else { None }
}

/// The id of the story that a state names: by the id itself, or by the path of its file, from
/// wherever that path is seen.
pub fn id_of(named: &str, stories: &[Story]) -> String {
    let Some(stem) = named.strip_suffix(".md") else { return named.to_owned() };
    let ends = |long: &str, short: &str| {
        let rest = long.strip_suffix(short);
        rest.is_some_and(|it| it.is_empty() || it.ends_with('/'))
    };
    let is_it = |it: &&Story| ends(named, &it.path) || ends(&it.path, named);
    if let Some(story) = stories.iter().find(is_it) {
        return story.id.clone();
    }
    let name = stem.rsplit('/').next().unwrap_or(stem);
    let name = name.strip_suffix(".story").unwrap_or(name);
    id_of_stem(name).unwrap_or_else(|| name.to_owned())
}

/// Something with a digit and no blank: 4.2, 001.5, ACT-6, CODEINTEL-RP-001.
pub fn is_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let has_digit = text.contains(|c: char| c.is_ascii_digit());
    let has_mark = text.contains(['.', '-']) || text.chars().all(|c| c.is_ascii_digit());
    has_digit
        && has_mark
        && text.len() <= 64
        && text.chars().all(fits)
        && !text.contains("..")
        && !text.starts_with(['.', '-'])
        && !text.ends_with('.')
}

/// The text that says how far the story is, wherever it stands.
fn told_status(document: &Document) -> Option<String> {
    let sections = document.sections();
    let head = sections.iter().find(|it| it.level > 1).map_or(document.text().len(), |it| it.start);
    let head_text = document.text().get(..head).unwrap_or_default();
    let pairs = document.pairs();
    let title = sections.first().map_or("", |it| it.title);
    let is_status = |key: &str| matches!(key, "status" | "story status" | "estado" | "state");
    let in_head = pairs.iter().find(|it| {
        (it.section.is_empty() || it.section == title) && is_status(&it.key) && is_value(it.value)
    });
    in_head
        .map(|it| it.value.to_owned())
        .or_else(|| in_table(head_text))
        .or_else(|| in_column(head_text))
        .or_else(|| in_quote(head_text))
        .or_else(|| in_heading(&sections))
        .or_else(|| in_section(document))
        .or_else(|| {
            let mut any = pairs.iter().filter(|it| it.key == "status" && is_value(it.value));
            any.next().map(|it| it.value.to_owned())
        })
        .or_else(|| in_table(document.text()))
}

fn in_table(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| line.starts_with('|'));
    lines.find_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let key = cells.next()?.trim_matches('*').trim_end_matches(':').to_lowercase();
        let value = cells.next().filter(|it| is_value(it))?;
        (key == "status").then(|| value.to_owned())
    })
}

/// A table of one row, under the titles of its columns.
fn in_column(text: &str) -> Option<String> {
    let rows = table(text);
    let [titles, row] = rows.as_slice() else { return None };
    let at = titles.iter().position(|it| is_status_word(it))?;
    row.get(at).filter(|it| is_value(it)).map(|it| (*it).to_owned())
}

/// `> **Status:** Ready`
fn in_quote(text: &str) -> Option<String> {
    let quoted = text.lines().filter_map(|line| line.trim_start().strip_prefix('>'));
    let (_, value) = quoted.filter_map(|it| it.split_once(':')).find(|it| is_status_word(it.0))?;
    let value = value.trim_start_matches('*').trim();
    is_value(value).then(|| value.to_owned())
}

/// `### Status: Ready`
fn in_heading(sections: &[Section<'_>]) -> Option<String> {
    let below = sections.iter().filter(|it| it.level > 1);
    let mut pairs = below.filter_map(|it| it.title.split_once(':'));
    let (_, value) = pairs.find(|(key, value)| is_status_word(key) && is_value(value))?;
    Some(value.trim_start_matches('*').trim().to_owned())
}

fn is_status_word(text: &str) -> bool {
    matches!(super::status::words(text).concat().as_str(), "status" | "storystatus" | "estado")
}

/// `## Status`: what is current, the last box that is checked, or the first line.
fn in_section(document: &Document) -> Option<String> {
    let all = document.sections();
    let section = all.iter().find(|it| it.level > 1 && is_status_word(it.title))?;
    let pairs = Document::read(section.body.as_bytes());
    let pairs = pairs.pairs();
    let current =
        pairs.iter().find(|it| matches!(it.key.as_str(), "current" | "current status" | "status"));
    if let Some(current) = current {
        return Some(current.value.to_owned());
    }
    let boxes: Vec<(bool, String)> = section.body.lines().filter_map(checkbox).collect();
    if !boxes.is_empty() {
        return boxes.into_iter().rfind(|(checked, _)| *checked).map(|(_, text)| text);
    }
    let mut lines = section.body.lines().map(|it| it.trim().trim_start_matches(['-', '*', ' ']));
    lines.find(|it| !it.is_empty()).map(str::to_owned)
}

fn checkbox(line: &str) -> Option<(bool, String)> {
    let line = line.trim_start();
    let item = line.strip_prefix(['-', '*', '+'])?.trim_start();
    let rest = item.strip_prefix('[')?;
    let (mark, text) = rest.split_once(']')?;
    let checked = match mark.trim() {
        "" => false,
        "x" | "X" | "✓" | "✅" => true,
        _ => return None,
    };
    Some((checked, text.trim().to_owned()))
}

fn tasks(document: &Document) -> Vec<(bool, String)> {
    let all = document.sections();
    let is_tasks = |title: &str| {
        let title = title.to_lowercase();
        title.starts_with("tasks") || title.starts_with("subtasks") || title.starts_with("tarefas")
    };
    let section = all.iter().find(|it| it.level > 1 && is_tasks(it.title));
    section.map_or_else(Vec::new, |it| it.whole.lines().filter_map(checkbox).collect())
}

/// The ids that `**Dependencies:** ACT-1, ACT-2` or a section of that name speaks of.
fn dependencies(document: &Document) -> Vec<String> {
    let pairs = document.pairs();
    let is_key = |key: &str| matches!(key, "dependencies" | "depends on" | "blocked by");
    let named = pairs.iter().filter(|it| is_key(&it.key)).map(|it| it.value);
    let mut text = named.collect::<Vec<_>>().join(" ");
    text.push(' ');
    if let Some(section) = document.section("Dependencies") {
        text.push_str(section.whole);
    }
    let mut ids: Vec<String> = Vec::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))) {
        let word = word.trim_matches(['.', '-', '_']);
        if is_id(word) && !ids.iter().any(|it| is_same(it, word)) {
            ids.push(word.to_owned());
        }
    }
    ids
}

/// So many files of a story are known by name.
const FILES_MAX: usize = 200;

/// Paths in the File List: in code spans, as links, or as the first words of an item or a row.
fn file_list(document: &Document) -> Vec<String> {
    let is_list = |title: &str| {
        let words = super::status::words(title).concat();
        matches!(words.as_str(), "filelist" | "fileschanged" | "listadearquivos")
    };
    let all = document.sections();
    let Some(section) = all.iter().find(|it| it.level > 1 && is_list(it.title)) else {
        return Vec::new();
    };
    let mut paths: Vec<String> = Vec::new();
    for line in section.whole.lines() {
        let line = line.trim().trim_start_matches(['-', '*', '+', '|', ' ']);
        // Spans and texts of links come at odd places.
        let marked = |open: char, close: char| {
            let parts = line.split([open, close]).skip(1).step_by(2);
            parts.filter(|it| is_file(it)).map(str::to_owned).collect::<Vec<String>>()
        };
        let mut named = marked('`', '`');
        if named.is_empty() && line.contains("](") {
            named = marked('[', ']');
        }
        if named.is_empty() {
            let first = line.split_whitespace().next().unwrap_or_default();
            let first = first.trim_matches(['*', ',', ':', ';', '|']);
            named.extend(Some(first).filter(|it| is_file(it)).map(str::to_owned));
        }
        for path in named.iter().filter_map(|it| inside(it)) {
            // A story is compared by its sections, and states are no work.
            if !path.starts_with("docs/stories/") && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    paths.truncate(FILES_MAX);
    paths
}

/// One word with a separator, or with an ending.
fn is_file(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or(text);
    let has_ending = name.rsplit_once('.').is_some_and(|(_, end)| {
        (1..=10).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let is_word = !text.contains(|c: char| c.is_whitespace() || "[](){}<>`\"".contains(c));
    !name.is_empty() && is_word && !text.contains("://") && (has_ending || text.contains('/'))
}

fn change_log(document: &Document) -> Vec<(Timestamp, String)> {
    let Some(section) = document.section("Change Log") else { return Vec::new() };
    let row = |row: Vec<&str>| {
        let at = day(row.first()?)?;
        let text = row.iter().skip(1).copied().filter(|it| !it.is_empty());
        Some((at, text.collect::<Vec<_>>().join(", ")))
    };
    table(section.whole).into_iter().filter_map(row).collect()
}

/// A moment, or the beginning of a day.
fn day(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let is_day = text.len() == 10 && text.as_bytes().get(4) == Some(&b'-');
    if is_day { age::moment(&format!("{text}T00:00:00Z")) } else { age::moment(text) }
}
