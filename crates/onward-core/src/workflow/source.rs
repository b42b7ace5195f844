//! The files a workflow is made of, and where a byte of a template stands in them.

use std::cell::OnceCell;

use super::model::{Place, Template};

pub(super) struct Source {
    /// Relative to the directory of the first file.
    pub(super) path: String,
    /// As a person would name it.
    pub(super) shown: String,
    pub(super) text: String,
    line_starts: OnceCell<Vec<usize>>,
}

impl Source {
    pub(super) fn new(path: String, shown: String, text: String) -> Self {
        Self { path, shown, text, line_starts: OnceCell::new() }
    }

    /// The text from a place on.
    fn after(&self, at: Place) -> Option<&str> {
        let starts = self.line_starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(index, _)| index + 1)).collect()
        });
        let line = &self.text[*starts.get((at.line as usize).checked_sub(1)?)?..];
        let column = (at.column as usize).checked_sub(1)?;
        // A byte order mark is no column.
        let line = if at.line == 1 { line.trim_start_matches('\u{feff}') } else { line };
        let offset = line.char_indices().map(|(index, _)| index).chain([line.len()]).nth(column)?;
        Some(&line[offset..])
    }

    /// Where byte `offset` of a template stands.
    ///
    /// YAML changes only white space and, inside quotes, escapes: so the place is found by counting
    /// the other characters. A template that was put together from several nodes has no such
    /// place, and answers with its beginning.
    pub(super) fn place_in(&self, template: &Template, offset: usize) -> Place {
        let Some(raw) = self.after(template.at) else { return template.at };
        let (Some(before), Some(after)) =
            (template.source.get(..offset), template.source.get(offset..))
        else {
            return template.at;
        };
        let wanted = before.chars().filter(|c| !c.is_whitespace()).count();
        let Some(target) = after.chars().find(|c| !c.is_whitespace()) else { return template.at };
        let first_word = template.source.split_whitespace().next().unwrap_or("");
        let quote = raw.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quote = quote.filter(|_| !raw.starts_with(first_word));
        let mut place = template.at;
        let mut counted = 0;
        let mut chars = raw.chars().peekable();
        if quote.is_some() {
            chars.next();
            place.column += 1;
        }
        while let Some(c) = chars.next() {
            let mut shown = c;
            let mut width = 1;
            if quote == Some('"') && c == '\\' {
                let escaped = chars.next().unwrap_or(c);
                let digits = match escaped {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                chars.by_ref().take(digits as usize).for_each(drop);
                width += 1 + digits;
                shown = if "ntre \n".contains(escaped) { ' ' } else { escaped };
                if escaped == '\n' {
                    place.line += 1;
                    place.column = 1;
                    continue;
                }
            } else if quote == Some('\'') && c == '\'' {
                chars.next();
                width += 1;
            } else if c == '\n' {
                place.line += 1;
                place.column = 1;
                continue;
            }
            if !shown.is_whitespace() {
                if counted == wanted {
                    return if shown == target { place } else { template.at };
                }
                counted += 1;
            }
            place.column += width;
        }
        template.at
    }
}

/// `path` as seen from the directory of `from`, both below the first file's directory. An error
/// says what is wrong with it.
pub(super) fn resolve(from: &str, path: &str) -> Result<String, &'static str> {
    let drive = path.as_bytes().get(1) == Some(&b':');
    if path.starts_with(['/', '~']) || path.contains('\\') || drive {
        return Err("write it relative to this file, with `/`");
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                let popped = parts.pop();
                popped.ok_or("files of a workflow stand in the directory of its first file")?;
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() { Err("it names no file") } else { Ok(parts.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_first_file() {
        let good = |from: &str, path: &str| resolve(from, path).unwrap();
        assert_eq!(good("w.yaml", "prompts/a.md"), "prompts/a.md");
        assert_eq!(good("sub/w.yaml", "./a.md"), "sub/a.md");
        assert_eq!(good("sub/w.yaml", "../a.md"), "a.md");
        for path in ["../a", "/etc/passwd", "~/a", "a/../../b", "C:/a", "a\\b", "", ".", ".."] {
            assert!(resolve("w.yaml", path).is_err(), "{path}");
        }
    }

    /// `text` has one template; its `@` marks what is looked for.
    fn found(text: &str) -> (u32, u32) {
        let mut problems = super::super::problem::Problems::default();
        let node = super::super::yaml::parse(text, 0, &mut problems).unwrap();
        let super::super::yaml::Tree::Map(pairs) = node.tree else { panic!("{text}") };
        let (_, node) = &pairs[0];
        let source = node.value().as_str().unwrap().to_owned();
        let offset = source.find('@').unwrap();
        let template = Template::new(source, node.at);
        let source = Source::new("f".into(), "f".into(), text.into());
        let place = source.place_in(&template, offset);
        (place.line, place.column)
    }

    #[test]
    fn a_byte_of_a_template_is_found_in_every_style() {
        for (text, place) in [
            ("a: xy @", (1, 7)),
            ("a: one\n  two @\n", (2, 7)),
            ("a: 'it''s @'", (1, 11)),
            ("a: \"t\\tq\\\" \\u00e9 @\"", (1, 19)),
            ("a: \"one\\\n  two @\"", (2, 7)),
            ("a: |\n  one\n\n    two @\n", (4, 9)),
            ("a: >-\n  one\n  two @\n", (3, 7)),
            ("a: |\n  \"q\" @\n", (2, 7)),
            ("# é\na: é @", (2, 6)),
            ("\u{feff}a: b @", (1, 6)),
            ("a: b @\r\n", (1, 6)),
        ] {
            assert_eq!(found(text), place, "{text:?}");
        }
    }
}
