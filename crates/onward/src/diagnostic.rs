//! Problems as people expect to read them: what, where, the line itself, what to do.
//!
//! Invariant: text from files reaches the terminal without control characters.

use std::io::{self, Write};

use onward_core::workflow::{Problem, Severity};
use onward_engine::world::real::wall_clock;

use crate::{
    command::in_text,
    ink::{self, AnsiColor, Style},
    style, width,
};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();
const FRAME: Style = AnsiColor::Blue.on_default().bold();

/// Columns of a source line that are shown.
const COLUMNS_MAX: usize = 110;

/// A failure that has no place in a file.
pub(crate) fn failure(out: &mut dyn Write, message: &str, hint: Option<&str>) -> io::Result<()> {
    let message = style::local_times(message, wall_clock());
    let width = style::columns_of_errors();
    let lines = message
        .lines()
        .enumerate()
        .map(|(at, line)| style::wrap(&printable(line), width, if at == 0 { 7 } else { 0 }, 2));
    writeln!(out, "{ERROR}error{ERROR:#}: {}", lines.collect::<Vec<_>>().join("\n"))?;
    if let Some(hint) = hint {
        let hint = style::wrap(&printable(hint), width, 6, 2);
        writeln!(out, "{HELP}help{HELP:#}: {hint}")?;
    }
    Ok(())
}

/// Ends with a blank line.
pub(crate) fn problem(out: &mut dyn Write, problem: &Problem) -> io::Result<()> {
    let colour = match problem.severity {
        Severity::Error => ERROR,
        Severity::Warning => WARNING,
    };
    let word = problem.severity.as_str();
    let width = style::columns_of_errors();
    let message = style::wrap(&printable(&problem.message), width, word.len() + 2, 2);
    writeln!(out, "{colour}{word}{colour:#}: {message}")?;
    let line = problem.at.line.to_string();
    let margin = " ".repeat(line.len());
    let (file, column) = (printable(&problem.file), problem.at.column);
    writeln!(out, "{margin}{FRAME}-->{FRAME:#} {file}:{line}:{column}")?;
    if let Some(source) = &problem.source_line {
        let room =
            width.map_or(COLUMNS_MAX, |it| it.saturating_sub(line.len() + 5).min(COLUMNS_MAX));
        let (shown, indent) = excerpt(source, column as usize, room);
        writeln!(out, "{margin} {FRAME}|{FRAME:#}")?;
        writeln!(out, "{FRAME}{line} |{FRAME:#} {shown}")?;
        writeln!(out, "{margin} {FRAME}|{FRAME:#} {}{colour}^{colour:#}", " ".repeat(indent))?;
    }
    if let Some(hint) = problem.hint.as_deref().map(in_text) {
        writeln!(out, "{HELP}help{HELP:#}: {}", style::wrap(&printable(&hint), width, 6, 2))?;
    }
    writeln!(out)
}

/// The part of a line around a column counted from 1, and how far in the caret stands.
fn excerpt(line: &str, column: usize, room: usize) -> (String, usize) {
    let line = line.trim_end();
    let before = column.saturating_sub(1);
    let skipped = if before > room * 3 / 4 { before - room / 2 } else { 0 };
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    let mut indent = shown.chars().count();
    let mut cut = false;
    for (index, c) in line.chars().enumerate().skip(skipped) {
        if index - skipped >= room {
            cut = true;
            break;
        }
        let piece = printable_char(c);
        if index < before {
            indent += width::of(&piece);
        }
        shown.push_str(&piece);
    }
    if cut {
        shown.push('…');
    }
    (shown, indent)
}

/// Text that cannot move the cursor, change colours or reorder what follows.
pub(crate) fn printable(text: &str) -> String {
    ink::printed(&text.replace('\t', " ").replace('\n', "\\u{a}"), false)
}

fn printable_char(c: char) -> String {
    printable(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_cannot_speak_to_the_terminal() {
        assert_eq!(printable("a\x1b[31m\u{202e}b\tc"), "a\\u{1b}[31m\\u{202e}b c");
    }

    #[test]
    fn the_caret_stands_below_its_character() {
        assert_eq!(excerpt("ab cd", 4, 20), ("ab cd".into(), 3));
        assert_eq!(excerpt("\tab", 2, 20), (" ab".into(), 1));
        assert_eq!(excerpt("漢 x", 3, 20), ("漢 x".into(), 3));
        let (shown, indent) =
            excerpt(&format!("{}X{}", "a".repeat(300), "b".repeat(300)), 301, 110);
        assert_eq!(shown.chars().nth(indent), Some('X'));
        assert_eq!(shown.chars().count(), 112);
    }
}
