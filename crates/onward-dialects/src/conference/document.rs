//! conference.md as sections and `key: value` lines.
//!
//! Invariant: the bytes are kept as they came; everything else is a view of them. Headings inside a
//! fenced block are text, keys inside one are keys.

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
}

/// Whether a line stands in a fenced block; asked line by line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fence {
    open: bool,
}

impl Fence {
    pub fn holds(&mut self, line: &str) -> bool {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            self.open = !self.open;
            return true;
        }
        self.open
    }

    pub fn is_open(self) -> bool {
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
}
