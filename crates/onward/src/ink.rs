//! The one printer: everything that onward shows passes through here on its way out.
//!
//! Invariant: a terminal gets text, line ends, tabs, and the colours that this program chose. What
//! a stranger wrote (an agent's words, a file's name, a prompt) cannot move the cursor, hide or
//! reorder what follows, or take on our colours: its control characters are shown as `\u{1b}`. Our
//! own marks carry a number that only this process knows.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    io::{self, IsTerminal, Write},
    sync::OnceLock,
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str, stream::RawStream};
use onward_core::name;

use crate::{cli::Colours, style, width};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsiColor {
    Red,
    Green,
    Yellow,
    Blue,
    Cyan,
}

/// The codes of colours begin here.
#[cfg(feature = "watch")]
const COLOURS: u8 = 30;

impl AnsiColor {
    #[cfg(feature = "watch")]
    const ALL: [Self; 5] = [Self::Red, Self::Green, Self::Yellow, Self::Blue, Self::Cyan];

    pub(crate) const fn on_default(self) -> Style {
        Style { colour: Some(self), bold: false, dimmed: false }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Red => 31,
            Self::Green => 32,
            Self::Yellow => 33,
            Self::Blue => 34,
            Self::Cyan => 36,
        }
    }
}

/// How a word of ours looks: `{STYLE}word{STYLE:#}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    colour: Option<AnsiColor>,
    bold: bool,
    dimmed: bool,
}

impl Style {
    pub(crate) const fn new() -> Self {
        Self { colour: None, bold: false, dimmed: false }
    }

    pub(crate) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) const fn dimmed(self) -> Self {
        Self { dimmed: true, ..self }
    }
}

/// The same in the cells of a whole screen.
#[cfg(feature = "watch")]
impl From<Style> for ratatui::style::Style {
    fn from(style: Style) -> Self {
        use ratatui::style::{Color, Modifier};
        let bold = if style.bold { Modifier::BOLD } else { Modifier::empty() };
        let dimmed = if style.dimmed { Modifier::DIM } else { Modifier::empty() };
        let cell = Self::new().add_modifier(bold | dimmed);
        style.colour.map_or(cell, |it| cell.fg(Color::Indexed(it.code() - COLOURS)))
    }
}

/// Of a cell, which has no looks but ours.
#[cfg(feature = "watch")]
impl From<&ratatui::buffer::Cell> for Style {
    fn from(cell: &ratatui::buffer::Cell) -> Self {
        use ratatui::style::{Color, Modifier};
        let is = |it: &AnsiColor| cell.fg == Color::Indexed(it.code() - COLOURS);
        Self {
            colour: AnsiColor::ALL.into_iter().find(is),
            bold: cell.modifier.contains(Modifier::BOLD),
            dimmed: cell.modifier.contains(Modifier::DIM),
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return Ok(());
        }
        let mark = |f: &mut fmt::Formatter<'_>, code: u8| write!(f, "{}{code}{END}", start());
        if f.alternate() {
            return mark(f, 0);
        }
        if self.bold {
            mark(f, 1)?;
        }
        if self.dimmed {
            mark(f, 2)?;
        }
        self.colour.map_or(Ok(()), |colour| mark(f, colour.code()))
    }
}

const ESCAPE: char = '\x1b';
const END: char = '>';

/// What our own marks begin with, in this process only.
fn start() -> &'static str {
    static START: OnceLock<String> = OnceLock::new();
    START.get_or_init(|| format!("{ESCAPE}<{:016x}:", RandomState::new().hash_one(0)))
}

/// The text as it is shown.
pub(crate) fn printed(text: &str, colours: bool) -> String {
    let look = if colours { Look::Colours } else { Look::Plain };
    let mut printer = Printer { to: Vec::new(), look, pending: text.as_bytes().to_vec() };
    // Memory takes everything.
    let _ = printer.print(true);
    String::from_utf8_lossy(&printer.to).into_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Colours,
    /// The same text in other letters: JSON has its own escapes.
    Json,
    /// For a program that reads it.
    AsItIs,
}

impl Look {
    /// After an escape: our own mark, or a stranger's.
    fn escape<'a>(self, rest: &'a str, shown: &mut String) -> &'a str {
        let mark = rest.strip_prefix(&start()[1..]).and_then(|rest| rest.split_once(END));
        match mark {
            Some((code, after)) if code.parse::<u8>().is_ok() => {
                if self == Self::Colours {
                    put(shown, format_args!("{ESCAPE}[{code}m"));
                }
                after
            }
            Some(_) | None => {
                self.char(ESCAPE, shown);
                rest
            }
        }
    }

    fn char(self, c: char, shown: &mut String) {
        let byte = name::byte_of(c).filter(|_| matches!(self, Self::Plain | Self::Colours));
        if let Some(byte) = byte {
            // Of the name of a file that is not UTF-8.
            put(shown, format_args!("\\x{byte:02x}"));
        } else if self == Self::AsItIs || !is_unsafe(c) {
            shown.push(c);
        } else if self == Self::Json {
            put(shown, format_args!("\\u{:04x}", c as u32));
        } else {
            put(shown, format_args!("\\u{{{:x}}}", c as u32));
        }
    }
}

fn put(shown: &mut String, text: fmt::Arguments<'_>) {
    // Memory takes everything.
    let _ = fmt::Write::write_fmt(shown, text);
}

/// Control characters, and marks that change the direction or the ends of lines.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}')
}

/// See the module.
pub(crate) struct Printer<W: Write> {
    to: W,
    look: Look,
    /// The beginning of a character or of a mark, whose rest comes with the next write.
    pending: Vec<u8>,
}

/// What the user wants of every stream.
pub(crate) fn choose(colours: Colours) {
    match colours {
        Colours::Auto => {}
        Colours::Always => ColorChoice::Always.write_global(),
        Colours::Never => ColorChoice::Never.write_global(),
    }
}

pub(crate) fn has_colours(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

impl Printer<io::Stdout> {
    pub(crate) fn stdout() -> Self {
        let to = io::stdout();
        let look = if has_colours(&to) { Look::Colours } else { Look::Plain };
        Self { to, look, pending: Vec::new() }
    }

    /// For objects that a program reads, or a person on a terminal.
    pub(crate) fn json() -> Self {
        let to = io::stdout();
        let look = if to.is_terminal() { Look::Json } else { Look::AsItIs };
        Self { to, look, pending: Vec::new() }
    }
}

impl Printer<io::Stderr> {
    pub(crate) fn stderr() -> Self {
        let to = io::stderr();
        let look = if has_colours(&to) { Look::Colours } else { Look::Plain };
        Self { to, look, pending: Vec::new() }
    }
}

impl<W: Write> Printer<W> {
    /// As much of what is pending as is whole.
    fn print(&mut self, is_end: bool) -> io::Result<()> {
        let mut shown = String::new();
        let bytes = std::mem::take(&mut self.pending);
        let mut rest = &bytes[..];
        loop {
            match str::from_utf8(rest) {
                Ok(text) => {
                    rest = &rest[self.take(text, is_end, &mut shown)..];
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    let text = str::from_utf8(good).unwrap_or_default();
                    let taken = self.take(text, true, &mut shown);
                    debug_assert_eq!(taken, text.len());
                    let Some(length) = error.error_len().or(is_end.then_some(bad.len())) else {
                        rest = bad;
                        break;
                    };
                    for byte in &bad[..length] {
                        put(&mut shown, format_args!("\\x{byte:02x}"));
                    }
                    rest = &bad[length..];
                }
            }
        }
        self.pending = rest.to_vec();
        self.to.write_all(shown.as_bytes())
    }

    /// Says how much was taken: all but the beginning of a mark.
    fn take(&self, text: &str, is_end: bool, shown: &mut String) -> usize {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            // Nearly all of it is letters that every look shows as they are.
            let plain = rest.bytes().take_while(|byte| matches!(byte, b' '..=b'~')).count();
            if plain > 0 {
                shown.push_str(&rest[..plain]);
                rest = &rest[plain..];
                continue;
            }
            let after = &rest[c.len_utf8()..];
            let is_begun = || rest.len() < MARK_BYTES_MAX && !rest.contains(END);
            match c {
                ESCAPE if !is_end && is_begun() && begins_alike(rest, start()) => break,
                ESCAPE => {
                    rest = self.look.escape(after, shown);
                    continue;
                }
                '\r' if self.look == Look::AsItIs => shown.push(c),
                '\r' if !is_end && after.is_empty() => break,
                '\r' if after.starts_with('\n') => {}
                '\n' | '\t' => shown.push(c),
                c => self.look.char(c, shown),
            }
            rest = after;
        }
        text.len() - rest.len()
    }
}

/// A mark has no more bytes.
const MARK_BYTES_MAX: usize = 24;

fn begins_alike(one: &str, other: &str) -> bool {
    one.bytes().zip(other.bytes()).all(|(one, other)| one == other)
}

impl<W: Write> Write for Printer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        self.print(false)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.print(true)?;
        self.to.flush()
    }
}

/// What a step wrote: to a program byte for byte, to a terminal so that it can be read.
pub(crate) fn as_it_is(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    if io::stdout().is_terminal() {
        out.write_all(crate::plain::text(&String::from_utf8_lossy(bytes)).as_bytes())?;
        return out.flush();
    }
    io::stdout().write_all(bytes)
}

/// The help of the parser, with the parser's own colours and at the width of the reader.
pub(crate) fn help(text: &clap::builder::StyledStr) -> io::Result<()> {
    let width = style::columns().unwrap_or(HELP_COLUMNS).min(HELP_COLUMNS);
    let text = text.ansi().to_string();
    let lines: Vec<String> = text.split('\n').map(|line| hung(line, width)).collect();
    write!(anstream::stdout(), "{}", lines.join("\n"))
}

/// Wider lines are hard to read.
const HELP_COLUMNS: usize = 100;

/// A line of help between words; what follows hangs below the text that it belongs to, which in a
/// table is its last column.
fn hung(line: &str, width: usize) -> String {
    let plain = strip_str(line).to_string();
    if width::of(&plain) <= width {
        return line.to_owned();
    }
    let margin = plain.len() - plain.trim_start().len();
    let column = plain[margin..].find("  ").map(|at| {
        let gap = &plain[margin + at..];
        margin + at + gap.len() - gap.trim_start().len()
    });
    let indent = column.filter(|it| *it * 2 <= width).unwrap_or(margin);
    style::wrap_by(line, Some(width), 0, indent, |word| width::of(&strip_str(word).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOLD: Style = Style::new().bold();

    #[test]
    fn help_hangs_below_its_column_and_colours_take_no_room() {
        let table = "  -q, \x1b[1m--quiet\x1b[0m  Say only what went wrong";
        let gap = format!("\n{}", " ".repeat(15));
        assert_eq!(hung(table, 31), table.replace(" went", &format!("{gap}went")));
        let narrow = table.replace(" what", "\n  what");
        assert_eq!(hung(table, 25), narrow, "a column too far right is none");
        assert_eq!(hung("    one two three", 12), "    one two\n    three");
        assert_eq!(hung("one two", 7), "one two");
    }

    #[test]
    fn strangers_cannot_speak_to_the_terminal_and_we_can() {
        let hostile = "a\x1b[31mb\u{9b}2Jc\u{202e}d\re\r\nf\x07\tg";
        let shown = "a\\u{1b}[31mb\\u{9b}2Jc\\u{202e}d\\u{d}e\nf\\u{7}\tg";
        assert_eq!(printed(hostile, true), shown);
        let ours = format!("{BOLD}x{BOLD:#}");
        assert_eq!(printed(&ours, true), "\x1b[1mx\x1b[0m");
        assert_eq!(printed(&ours, false), "x");
        assert_eq!(printed("\x1b<0000000000000000:1>x", true), "\\u{1b}<0000000000000000:1>x");
    }

    #[test]
    fn what_comes_in_pieces_is_printed_as_what_comes_at_once() {
        let text = format!("é{BOLD}漢\u{9b}{BOLD:#}\x1b[2J\r\nx\ry");
        let mut bytes = text.into_bytes();
        bytes.extend(b"\xff!\n");
        let print = |size: usize| {
            let mut printer = Printer { to: Vec::new(), look: Look::Colours, pending: Vec::new() };
            for piece in bytes.chunks(size) {
                printer.write_all(piece).unwrap();
            }
            printer.flush().unwrap();
            String::from_utf8(std::mem::take(&mut printer.to)).unwrap()
        };
        let whole = print(bytes.len());
        assert_eq!(whole, "é\x1b[1m漢\\u{9b}\x1b[0m\\u{1b}[2J\nx\\u{d}y\\xff!\n");
        for size in 1..bytes.len() {
            assert_eq!(print(size), whole, "{size}");
        }
    }

    #[test]
    fn json_means_the_same_after_it_was_printed() {
        let object = serde_json::json!({"a": "\u{9b}\u{202e}\x1b\n\u{7f}é"});
        let mut printer = Printer { to: Vec::new(), look: Look::Json, pending: Vec::new() };
        writeln!(printer, "{object}").unwrap();
        let text = String::from_utf8(printer.to).unwrap();
        assert!(!text.trim_end().contains(is_unsafe), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), object);
    }
}
