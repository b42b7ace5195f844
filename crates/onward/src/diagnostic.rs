//! Problems as people expect to read them: what, where, the line itself, what to do.
//!
//! Invariant: text from files reaches the terminal without control characters.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use anstyle::{AnsiColor, Style};
use onward_core::workflow::{Problem, Severity};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();
const FRAME: Style = AnsiColor::Blue.on_default().bold();

/// Columns of a source line that are shown.
const COLUMNS_MAX: usize = 110;

/// A failure that has no place in a file.
pub(crate) fn failure(out: &mut dyn Write, message: &str, hint: Option<&str>) -> io::Result<()> {
    let lines: Vec<String> = message.lines().map(printable).collect();
    writeln!(out, "{ERROR}error{ERROR:#}: {}", lines.join("\n"))?;
    if let Some(hint) = hint {
        writeln!(out, "{HELP}help{HELP:#}: {}", printable(hint))?;
    }
    Ok(())
}

/// Ends with a blank line.
pub(crate) fn problem(out: &mut dyn Write, problem: &Problem) -> io::Result<()> {
    let style = match problem.severity {
        Severity::Error => ERROR,
        Severity::Warning => WARNING,
    };
    let word = problem.severity.as_str();
    writeln!(out, "{style}{word}{style:#}: {}", printable(&problem.message))?;
    let line = problem.at.line.to_string();
    let margin = " ".repeat(line.len());
    let (file, column) = (printable(&problem.file), problem.at.column);
    writeln!(out, "{margin}{FRAME}-->{FRAME:#} {file}:{line}:{column}")?;
    if let Some(source) = &problem.source_line {
        let (shown, indent) = excerpt(source, column as usize);
        writeln!(out, "{margin} {FRAME}|{FRAME:#}")?;
        writeln!(out, "{FRAME}{line} |{FRAME:#} {shown}")?;
        writeln!(out, "{margin} {FRAME}|{FRAME:#} {}{style}^{style:#}", " ".repeat(indent))?;
    }
    if let Some(hint) = &problem.hint {
        writeln!(out, "{HELP}help{HELP:#}: {}", printable(hint))?;
    }
    writeln!(out)
}

/// The part of a line around a column counted from 1, and how far in the caret stands.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let line = line.trim_end();
    let before = column.saturating_sub(1);
    let skipped = if before > COLUMNS_MAX * 3 / 4 { before - COLUMNS_MAX / 2 } else { 0 };
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    let mut indent = shown.chars().count();
    let mut cut = false;
    for (index, c) in line.chars().enumerate().skip(skipped) {
        if index - skipped >= COLUMNS_MAX {
            cut = true;
            break;
        }
        let piece = printable_char(c);
        if index < before {
            indent += piece.chars().map(width).sum::<usize>();
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
    text.chars().fold(String::with_capacity(text.len()), |mut all, c| {
        all.push_str(&printable_char(c));
        all
    })
}

fn printable_char(c: char) -> String {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match c {
        '\t' => " ".into(),
        c if c.is_control() || reorders => {
            let mut escaped = String::new();
            write!(escaped, "\\u{{{:x}}}", c as u32).expect("a string takes all");
            escaped
        }
        c => c.into(),
    }
}

/// Columns a terminal gives a character; the wide ones are those of East Asian scripts and emoji.
fn width(c: char) -> usize {
    let wide = matches!(c as u32,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd);
    if wide { 2 } else { 1 }
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
        assert_eq!(excerpt("ab cd", 4), ("ab cd".into(), 3));
        assert_eq!(excerpt("\tab", 2), (" ab".into(), 1));
        assert_eq!(excerpt("漢 x", 3), ("漢 x".into(), 3));
        let (shown, indent) = excerpt(&format!("{}X{}", "a".repeat(300), "b".repeat(300)), 301);
        assert_eq!(shown.chars().nth(indent), Some('X'));
        assert_eq!(shown.chars().count(), COLUMNS_MAX + 2);
    }
}
