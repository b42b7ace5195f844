//! Markdown as other systems write state into it: front matter, sections, `key: value` lines,
//! tables, code spans.
//!
//! Invariant: the bytes are kept as they came; everything else is a view of them. Headings inside a
//! fenced block are text, keys inside one are keys. A file that is no UTF-8 is never rewritten.

/// The file, and its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    bytes: Vec<u8>,
    text: String,
}

/// A heading and what stands under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    pub level: usize,
    pub title: &'a str,
    /// Up to the next heading of any level.
    pub body: &'a str,
    /// Up to the next heading of this level or a higher one.
    pub whole: &'a str,
    /// Where `whole` begins in the text.
    pub start: usize,
}

/// One `key: value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Title of the section it stands in; empty above the first heading.
    pub section: &'a str,
    /// In lower case, with spaces for `_` and `-`.
    pub key: String,
    pub value: &'a str,
    /// Neither a bullet nor bold.
    pub bare: bool,
}

impl Document {
    pub fn read(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_owned(), text: String::from_utf8_lossy(bytes).into_owned() }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn sections(&self) -> Vec<Section<'_>> {
        let text = self.text.as_str();
        let mut fence = Fence::default();
        let mut headings: Vec<(usize, &str, usize, usize)> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let end = at + line.len();
            if !fence.holds(line)
                && let Some((level, title)) = heading(line)
            {
                headings.push((level, title, at, end));
            }
            at = end;
        }
        let section = |index: usize| {
            let (level, title, _, start) = headings[index];
            let later = &headings[index + 1..];
            let next = later.first().map_or(text.len(), |it| it.2);
            let peer = later.iter().find(|it| it.0 <= level).map_or(text.len(), |it| it.2);
            Section { level, title, body: &text[start..next], whole: &text[start..peer], start }
        };
        (0..headings.len()).map(section).collect()
    }

    /// The first section of this title, whatever its case.
    pub fn section(&self, title: &str) -> Option<Section<'_>> {
        self.sections().into_iter().find(|section| section.title.eq_ignore_ascii_case(title))
    }

    /// Every `key: value` line, in order.
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        let mut fence = Fence::default();
        let mut section = "";
        let mut pairs = Vec::new();
        for line in self.text.lines() {
            let fenced = fence.holds(line);
            match heading(line).filter(|_| !fenced) {
                Some((_, title)) => section = title,
                None => pairs.extend(pair(section, line)),
            }
        }
        pairs
    }

    /// What stands between `---` and `---` at the very beginning.
    pub fn front_matter(&self) -> Option<&str> {
        let rest = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        let first = rest.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")?;
        let body = &rest[first.len()..];
        let mut length = 0;
        for line in body.split_inclusive('\n') {
            if line.trim_end() == "---" {
                return Some(&body[..length]);
            }
            length += line.len();
        }
        None
    }

    /// With `text` as the last lines of the section of this title; as a new section where there is
    /// none.
    #[must_use]
    pub fn with_under(&self, title: &str, text: &str) -> Self {
        if let Some(section) = self.section(title) {
            return self.with_in(&section, text);
        }
        if self.text.as_bytes() != self.bytes {
            return self.clone();
        }
        Self::read(format!("{}\n\n## {title}\n{text}\n", self.text.trim_end()).as_bytes())
    }

    /// With `text` as the last lines of the section, before the blank lines and rule that end it.
    #[must_use]
    pub fn with_in(&self, section: &Section<'_>, text: &str) -> Self {
        let all = self.text.as_str();
        if all.as_bytes() != self.bytes {
            return self.clone();
        }
        let body = section.whole.trim_end().trim_end_matches("---").trim_end();
        let (before, rest) = all.split_at(section.start + body.len());
        let gap = if before.ends_with('\n') || before.is_empty() { "" } else { "\n" };
        // A rule right below a line would make a heading of it.
        let after = match rest {
            _ if rest.trim().is_empty() && rest.starts_with('\n') => "",
            _ if rest.trim().is_empty() => "\n",
            _ if rest.starts_with("\n\n") || rest.starts_with("\n\r\n") => "",
            _ if rest.starts_with('\n') => "\n",
            _ => "\n\n",
        };
        Self::read(format!("{before}{gap}{text}{after}{rest}").as_bytes())
    }

    /// It has a title and something under it, and no block or heading was left open at its end.
    pub fn is_whole(&self) -> bool {
        let mut fence = Fence::default();
        let (mut titled, mut last_is_text) = (false, false);
        for line in self.text.lines().filter(|line| !line.trim().is_empty()) {
            let fenced = fence.holds(line);
            let is_heading = !fenced && heading(line).is_some();
            titled |= is_heading;
            last_is_text = !is_heading;
        }
        let is_text = self.text.as_bytes() == self.bytes;
        is_text && titled && last_is_text && !fence.open
    }
}

/// Whether a line stands in a fenced block; asked line by line.
#[derive(Clone, Copy, Debug, Default)]
struct Fence {
    open: bool,
}

impl Fence {
    fn holds(&mut self, line: &str) -> bool {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            self.open = !self.open;
            return true;
        }
        self.open
    }
}

/// `## Title` as its level and title.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let title = rest.strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !title.is_empty()).then_some((level, title))
}

fn pair<'a>(section: &'a str, line: &'a str) -> Option<Pair<'a>> {
    const KEY_BYTES_MAX: usize = 48;
    let line = line.trim();
    let item = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark));
    let (key, value) = item.unwrap_or(line).split_once(':')?;
    let bold = key.trim_start().starts_with("**");
    // `**Key:** value` leaves its closing mark on the value's side.
    let value = value.trim_start_matches('*').trim();
    let key = key.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '"'));
    let plain = |c: char| c.is_alphanumeric() || " _-/'’&()".contains(c);
    if key.is_empty() || key.len() > KEY_BYTES_MAX || !key.chars().all(plain) {
        return None;
    }
    let key = key.to_lowercase().replace(['_', '-'], " ").replace('’', "'");
    Some(Pair { section, key, value, bare: item.is_none() && !bold })
}

/// The first pair with one of these keys and a value: in the section where it belongs, or else
/// anywhere. `section` is in lower case, with spaces for `-`.
pub fn pair_in<'p, 'a>(
    pairs: &'p [Pair<'a>],
    section: &str,
    keys: &[&str],
) -> Option<&'p Pair<'a>> {
    let named = |pair: &&Pair<'a>| keys.contains(&pair.key.as_str()) && is_value(pair.value);
    let title = |pair: &Pair<'a>| pair.section.to_lowercase().replace('-', " ");
    let here = pairs.iter().filter(named).find(|pair| title(pair) == section);
    here.or_else(|| pairs.iter().find(named))
}

/// The rows of the first table in a text, its header first; the line of dashes is left out.
pub fn table(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|'));
    let is_rule = |line: &str| line.contains('-') && !line.contains(|c| !"|-: ".contains(c));
    let rows = rows.enumerate().filter(|(index, line)| *index != 1 || !is_rule(line));
    rows.map(|(_, line)| cells(line)).collect()
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').unwrap_or(line);
    inner.strip_suffix('|').unwrap_or(inner).split('|').map(str::trim).collect()
}

/// On one line, with single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without `<!-- … -->`, and without blanks around it.
pub fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        kept.push_str(&rest[..start]);
        rest = rest[start..].find("-->").map_or("", |end| &rest[start + end + "-->".len()..]);
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

/// Not empty, and not a placeholder of a template, in braces.
pub fn is_value(text: &str) -> bool {
    let text = text.trim();
    let is_placeholder = text.starts_with('{') && text.ends_with('}');
    !text.is_empty() && !is_placeholder
}

/// Without the marks of a code span, where one encloses the whole of it: a command may well end in
/// a backtick of its own.
pub fn out_of_code(text: &str) -> &str {
    let text = text.trim();
    let marks = text.len() - text.trim_start_matches('`').len();
    let inner = text.get(marks..text.len().saturating_sub(marks)).unwrap_or_default();
    let is_run = |run: &str| run.len() == marks;
    let mut runs = inner.split(|c: char| c != '`').filter(|run| !run.is_empty());
    let encloses = text.ends_with(&text[..marks]) && !inner.trim().is_empty();
    if marks > 0 && encloses && !runs.any(is_run) { inner.trim() } else { text }
}

/// In a code span that can hold it.
pub fn in_code(text: &str) -> String {
    let runs = text.split(|c: char| c != '`').map(str::len);
    let marks = "`".repeat(runs.max().unwrap_or(0) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
preface: yes
# Conference: Tea

## Goal
Brew it: faster.

```yaml
# not a heading
max_rounds: 4
```

## Shared Knowledge
### Round 1
1. Water first.

## Conference Log
";

    #[test]
    fn a_section_ends_at_its_next_peer_and_its_body_at_any_heading() {
        let document = Document::read(TEXT.as_bytes());
        let titles: Vec<&str> = document.sections().iter().map(|it| it.title).collect();
        let expected = ["Conference: Tea", "Goal", "Shared Knowledge", "Round 1", "Conference Log"];
        assert_eq!(titles, expected);
        let knowledge = document.section("shared knowledge").unwrap();
        assert_eq!(knowledge.body, "");
        assert_eq!(knowledge.whole, "### Round 1\n1. Water first.\n\n");
        assert!(document.text()[knowledge.start..].starts_with(knowledge.whole));
        assert_eq!(document.section("Conference Log").unwrap().whole, "");
        assert_eq!(document.section("Guard"), None);
    }

    #[test]
    fn a_key_is_read_from_a_bullet_a_bold_word_or_a_bare_line() {
        let text =
            "## R\n- **Max rounds:** 4 of them\n* **Count**: 3\nmode: metric\n- a sentence\n";
        let document = Document::read(text.as_bytes());
        let pairs = document.pairs();
        let seen: Vec<(&str, &str, bool)> =
            pairs.iter().map(|it| (it.key.as_str(), it.value, it.bare)).collect();
        let expected =
            [("max rounds", "4 of them", false), ("count", "3", false), ("mode", "metric", true)];
        assert_eq!(seen, expected);
        assert!(pairs.iter().all(|it| it.section == "R"));
    }

    #[test]
    fn a_key_in_a_fenced_block_counts_and_a_heading_there_does_not() {
        let document = Document::read(TEXT.as_bytes());
        let pair = document.pairs().into_iter().find(|it| it.key == "max rounds").unwrap();
        assert_eq!((pair.section, pair.value), ("Goal", "4"));
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_all_the_same() {
        let bytes = b"# A\n\xff\n";
        assert_eq!(Document::read(bytes).bytes(), bytes);
        assert_eq!(Document::read(bytes).sections().len(), 1);
    }

    #[test]
    fn a_command_loses_only_the_marks_that_enclose_all_of_it() {
        for command in ["sh score.sh", "echo `cat v`", "`cat v`", "echo ``", "`a` `b`"] {
            assert_eq!(out_of_code(&in_code(command)), command);
        }
        assert_eq!(out_of_code("echo `cat v`"), "echo `cat v`");
        assert_eq!(out_of_code("`echo 1`"), "echo 1");
        assert_eq!(out_of_code("`a` `b`"), "`a` `b`");
        assert_eq!(out_of_code("`` echo `cat v` ``"), "echo `cat v`");
    }

    #[test]
    fn front_matter_is_what_stands_between_the_rules_at_the_top() {
        let read = |text: &str| Document::read(text.as_bytes()).front_matter().map(str::to_owned);
        assert_eq!(read("---\na: 1\n---\n# T\n").as_deref(), Some("a: 1\n"));
        assert_eq!(read("---\r\na: 1\r\n---").as_deref(), Some("a: 1\r\n"));
        assert_eq!(read("---\na: 1\n"), None, "it never ends");
        assert_eq!(read("# T\n---\na: 1\n---\n"), None);
    }

    #[test]
    fn a_table_is_its_header_and_its_rows() {
        let text = "Words.\n\n| Who | Score |\n|:---|---:|\n| A | 8/10 |\n| - | |\n\n| x |\n";
        assert_eq!(table(text), [vec!["Who", "Score"], vec!["A", "8/10"], vec!["-", ""]]);
        assert_eq!(table("no table"), Vec::<Vec<&str>>::new());
    }
}
