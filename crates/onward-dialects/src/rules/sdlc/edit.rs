//! The status of a story, and the lines of its Change Log, written into its text.

use std::ops::Range;

use crate::{
    kit::markdown::Document,
    sdlc::{
        Status,
        status::{status, words},
    },
};

/// The text with another status, where it names one; `None` where it names none.
pub fn with_status(text: &str, to: Status) -> Option<String> {
    let word = match to {
        Status::Draft => "Draft",
        Status::Ready => "Ready",
        Status::InProgress => "In Progress",
        Status::InReview => "Ready for Review",
        Status::Done => "Done",
        Status::Blocked => "Blocked",
    };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let head = lines.iter().position(|line| line.starts_with("##")).unwrap_or(lines.len());
    let section = section(&lines);
    let named = |range: Range<usize>, keys: &[&str]| {
        let mut numbered = range.map(|at| (at, &lines[at]));
        numbered.find_map(|(at, line)| Some((at, value_of(line, keys)?)))
    };
    let place = named(0..head, &KEYS).or_else(|| named(section.clone(), &CURRENT));
    if place.is_none() && section.clone().any(|at| box_of(&lines[at]).is_some()) {
        tick(&mut lines, section, to, word);
        return Some(lines.concat());
    }
    let place = place.or_else(|| section.clone().find_map(|at| Some((at, first_of(&lines[at])?))));
    let (at, value) = place.or_else(|| named(0..lines.len(), &["status"]))?;
    let line = &lines[at];
    let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
    lines[at] = format!("{}{word}{}{end}", &line[..value.start], line[value.end..].trim_end());
    Some(lines.concat())
}

/// Who names the status above the first section, and who within a section of its own.
const KEYS: [&str; 4] = ["status", "story status", "estado", "state"];
const CURRENT: [&str; 3] = ["current", "current status", "status"];

/// The lines below `## Status`, or what it is called.
fn section(lines: &[String]) -> Range<usize> {
    let of = |line: &String| {
        let title = line.strip_prefix("##").map(|it| words(it.trim_start_matches('#')).concat());
        title.is_some_and(|it| matches!(it.as_str(), "status" | "storystatus" | "estado"))
    };
    let Some(title) = lines.iter().position(of) else { return 0..0 };
    let rest = lines.iter().skip(title + 1);
    let end = rest.clone().position(|line| line.starts_with('#')).unwrap_or(rest.len());
    title + 1..title + 1 + end
}

/// Where the value of such a line begins and ends: a pair, or a row of a table.
fn value_of(line: &str, keys: &[&str]) -> Option<Range<usize>> {
    let body = line.trim_end();
    let is_row = body.starts_with('|');
    let key_end = if is_row { body[1..].find('|')? + 1 } else { body.find(':')? };
    let key = body[..key_end].trim_matches(|c: char| "|-*+ \t".contains(c));
    let key = key.trim_end_matches([':', '*']);
    if !keys.iter().any(|it| key.eq_ignore_ascii_case(it)) {
        return None;
    }
    let rest = &body[key_end + 1..];
    let skip = |c: char| c == '*' || c == ' ';
    let start = key_end + 1 + (rest.len() - rest.trim_start_matches(skip).len());
    let end = if is_row {
        body[start..].find('|').map_or(body.len(), |it| start + it - 1)
    } else {
        body.len()
    };
    (start < end).then_some(start..end)
}

/// A line that is nothing but the status.
fn first_of(line: &str) -> Option<Range<usize>> {
    let is_mark = |c: char| "-* \t".contains(c);
    let start = line.len() - line.trim_start_matches(is_mark).len();
    let end = line.trim_end().trim_end_matches('*').len();
    (start < end && !line.starts_with(['#', '|'])).then_some(start..end)
}

/// Where the mark of a checkbox stands, and what is checked.
fn box_of(line: &str) -> Option<(Range<usize>, &str)> {
    let item = line.trim_start().strip_prefix(['-', '*', '+'])?.trim_start();
    let (mark, text) = item.strip_prefix('[')?.split_once(']')?;
    let start = line.len() - item.len() + 1;
    Some((start..start + mark.len(), text.trim()))
}

/// Of a list of statuses the last one that is checked counts: those up to the new one are.
fn tick(lines: &mut Vec<String>, section: Range<usize>, to: Status, word: &str) {
    let boxes = section.filter(|at| box_of(&lines[*at]).is_some());
    let boxes: Vec<usize> = boxes.collect();
    let is_it = |at: &&usize| {
        let text = box_of(&lines[**at]).map(|(_, text)| text.to_owned());
        text.is_some_and(|it| status(&it) == Some(to))
    };
    let known = boxes.iter().rev().find(is_it).copied();
    let upto = known.or(boxes.last().copied()).unwrap_or_default();
    for at in &boxes {
        let Some(mark) = box_of(&lines[*at]).map(|it| it.0) else { continue };
        lines[*at].replace_range(mark, if *at <= upto { "x" } else { " " });
    }
    if known.is_none() {
        let end = if lines[upto].ends_with("\r\n") { "\r\n" } else { "\n" };
        if !lines[upto].ends_with('\n') {
            lines[upto].push_str(end);
        }
        lines.insert(upto + 1, format!("- [x] {word}{end}"));
    }
}

/// The text with this row at the end of its Change Log, once.
pub fn with_log(text: &str, day: &str, agent: &str, change: &str) -> String {
    let ends = text.matches('\n').count();
    if ends > 0 && ends == text.matches("\r\n").count() {
        // Lines end there as they end here.
        let plain = with_log(&text.replace("\r\n", "\n"), day, agent, change);
        return plain.replace('\n', "\r\n");
    }
    let cell = |it: &str| it.replace(['|', '\n', '\r'], " ");
    let row = format!("| {} | {} | {} |", cell(day), cell(agent), cell(change));
    let document = Document::read(text.as_bytes());
    let log = document.section("Change Log");
    if log.is_some_and(|it| it.whole.trim_end().lines().last() == Some(row.as_str())) {
        return text.to_owned();
    }
    let head = "\n| Date | Agent | Change |\n|---|---|---|\n";
    let rows = if log.is_some() { row } else { format!("{head}{row}") };
    String::from_utf8_lossy(document.with_under("Change Log", &rows).bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_replaced_where_it_stands() {
        for (text, expected) in [
            ("**Status:** Draft\nx\n", "**Status:** Ready\nx\n"),
            ("- **Status**: 📋 Draft\r\n", "- **Status**: Ready\r\n"),
            ("Status: draft", "Status: Ready\n"),
            ("| **Status** | Draft |\n", "| **Status** | Ready |\n"),
            ("## Status\n\nDraft\n\n## Story\n", "## Status\n\nReady\n\n## Story\n"),
            ("## Status\n\n**Current:** In Progress\n", "## Status\n\n**Current:** Ready\n"),
            ("## Status\n\n**Draft**\n", "## Status\n\n**Ready**\n"),
            (
                "## Estado\n\n- [x] Rascunho\n- [ ] Pronta\n- [x] Em andamento\n- [ ] Concluída\n",
                "## Estado\n\n- [x] Rascunho\n- [x] Pronta\n- [ ] Em andamento\n- [ ] Concluída\n",
            ),
            ("## Status\n- [x] Draft\n", "## Status\n- [x] Draft\n- [x] Ready\n"),
        ] {
            assert_eq!(with_status(text, Status::Ready).as_deref(), Some(expected));
        }
        assert_eq!(with_status("# Story\n\ntext\n", Status::Done), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = [Status::Ready, Status::InProgress, Status::InReview, Status::Done];
        for text in [
            "# Story 4.2: x\n\n## Status\n\n**Current:** In Progress\n\n## Tasks\n",
            "# Story 4.2: x\n\n## Estado\n\n- [x] Rascunho\n- [ ] Em andamento\n- [ ] Concluída\n",
            "# Story 4.2: x\n\n**Story Status:** Draft\n\n## Tasks\n\nStatus: none\n",
        ] {
            for to in all {
                let bytes = with_status(text, to).unwrap().into_bytes();
                let file = crate::File { bytes, modified: None };
                let read = crate::sdlc::Story::read("docs/stories/4.2.story.md", &file).unwrap();
                assert_eq!(read.status(), Some(to), "{:?}", String::from_utf8_lossy(&file.bytes));
            }
        }
    }

    #[test]
    fn lines_end_as_they_did() {
        let text = "# x\n\n## Change Log\n\n| Date | Agent | Change |\n|---|---|---|\n";
        let dos = with_log(&text.replace('\n', "\r\n"), "2026-02-17", "po", "Ready");
        assert_eq!(dos, with_log(text, "2026-02-17", "po", "Ready").replace('\n', "\r\n"));
    }

    #[test]
    fn a_row_is_logged_once() {
        let text = "# x\n\n## Change Log\n\n| Date | Agent | Change |\n|---|---|---|\n";
        let once = with_log(text, "2026-02-17", "po", "Ready");
        assert!(once.ends_with("|---|---|---|\n| 2026-02-17 | po | Ready |\n"), "{once}");
        assert_eq!(with_log(&once, "2026-02-17", "po", "Ready"), once);
        let new = with_log("# x\n\ntext\n", "2026-02-17", "po", "a|b");
        assert!(new.contains("## Change Log\n") && new.contains("| a b |"), "{new}");
    }
}
