//! What a program wrote for a terminal, as text to read.
//!
//! Invariant: nothing is made up. Colours and other sequences are left out, and of a line that was
//! written over and over the last state stays; all else goes on to the printer as it is.

/// The text without sequences; a carriage return begins its line again.
pub(crate) fn text(written: &str) -> String {
    let bare = without_sequences(written);
    let lines = bare.split('\n').map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.rsplit('\r').find(|it| !it.is_empty()).unwrap_or_default()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn without_sequences(written: &str) -> String {
    let mut all = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find('\x1b') {
        all.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_final = |it: char| ('\u{40}'..='\u{7e}').contains(&it);
        rest = match after.chars().next() {
            Some('[') => after[1..].find(is_final).map_or("", |end| &after[end + 2..]),
            // A title, a link, a notification: up to the bell, or to the string terminator.
            Some(']') => match after.find(['\x07', '\x1b']) {
                Some(end) if after[end..].starts_with('\x07') => &after[end + 1..],
                Some(end) => after[end + 1..].strip_prefix('\\').unwrap_or(&after[end..]),
                None => "",
            },
            // The choice of an alphabet has one more letter.
            Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                after.get(1..).map_or("", |it| it.get(1..).unwrap_or_default())
            }
            Some(letter) => &after[letter.len_utf8()..],
            None => "",
        };
    }
    all.push_str(rest);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_titles_and_what_was_written_over_are_left_out() {
        for (written, shown) in [
            ("\x1b[31mred\x1b[0m text", "red text"),
            ("10%\r50%\r100%\n", "100%\n"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]8;;u\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b(Bx\x1b", "x"),
            ("cut \x1b[3", "cut "),
        ] {
            assert_eq!(text(written), shown, "{written:?}");
        }
    }
}
