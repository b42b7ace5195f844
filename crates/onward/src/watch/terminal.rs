//! A whole screen for a while: keys come one by one, and what was on it before comes back.
//!
//! Invariant: however it ends, the terminal is left as it was found.

use std::{
    io::{self, Write},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};

use crate::{ink, screen::Size};

pub(super) struct Terminal {
    before: Termios,
    typed: Vec<u8>,
    /// What is on the screen now.
    drawn: Vec<String>,
    size: Size,
    colours: bool,
}

/// What was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Leave,
}

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

impl Terminal {
    pub(super) fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let (size, colours) = (size(), ink::has_colours(&io::stdout()));
        let mut terminal = Self { before, typed: Vec::new(), drawn: Vec::new(), size, colours };
        terminal.enter()?;
        Ok(terminal)
    }

    fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        self.drawn.clear();
        write(ENTER)
    }

    fn leave(&mut self) {
        // When the terminal is gone there is nothing to give back.
        let _ = write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }

    /// Lets something else have the screen for a while.
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        self.leave();
        let made = to();
        self.enter()?;
        Ok(made)
    }

    pub(super) fn size(&mut self) -> Size {
        let now = size();
        if now != self.size {
            // Everything moved: all lines are drawn again.
            self.size = now;
            self.drawn.clear();
        }
        now
    }

    /// Puts these lines on the screen; only those that changed are sent.
    pub(super) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = String::from("\x1b[?2026h");
        if self.drawn.is_empty() {
            text.push_str("\x1b[2J");
        }
        for (row, line) in lines.iter().enumerate() {
            if self.drawn.get(row) != Some(line) {
                let line = ink::printed(line, self.colours);
                let row = (row + 1).to_string();
                // Cleared first: behind a full row the cursor stands on its last character.
                text += &["\x1b[", &row, ";1H\x1b[2K", &line, "\x1b[0m"].concat();
            }
        }
        text.push_str("\x1b[?2026l");
        self.drawn = lines.to_vec();
        write(&text)
    }

    /// The next key, if one comes in this time. `None` in the place of a key = the input ended.
    #[expect(clippy::option_option, reason = "no key yet, and no key any more")]
    pub(super) fn key(&mut self, patience: Duration) -> Option<Option<Key>> {
        if self.typed.is_empty() {
            let stdin = io::stdin();
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            let patience = Timespec::try_from(patience).ok();
            match poll(&mut ready, patience.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => return None,
                Ok(_) => {}
                Err(_) => return Some(None),
            }
            let mut bytes = [0; 256];
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(0) | Err(_) => return Some(None),
                Ok(count) => self.typed.extend_from_slice(&bytes[..count]),
            }
        }
        let (key, used) = parse(&self.typed);
        self.typed.drain(..used);
        key.map(Some)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let or = |it: u16, other: usize| if it == 0 { other } else { usize::from(it) };
    size.map_or(Size { columns: 80, rows: 24 }, |it| Size {
        columns: or(it.ws_col, 80),
        rows: or(it.ws_row, 24),
    })
}

/// The first key of what was typed, and how many bytes it has.
fn parse(typed: &[u8]) -> (Option<Key>, usize) {
    const SEQUENCES: [(&[u8], Key); 12] = [
        (b"\x1b[A", Key::Up),
        (b"\x1bOA", Key::Up),
        (b"\x1b[B", Key::Down),
        (b"\x1bOB", Key::Down),
        (b"\x1b[5~", Key::PageUp),
        (b"\x1b[6~", Key::PageDown),
        (b"\x1b[H", Key::Home),
        (b"\x1b[F", Key::End),
        (b"\r", Key::Enter),
        (b"\n", Key::Enter),
        (b"\x7f", Key::Backspace),
        (b"\x08", Key::Backspace),
    ];
    if let Some((bytes, key)) = SEQUENCES.iter().find(|(bytes, _)| typed.starts_with(bytes)) {
        return (Some(*key), bytes.len());
    }
    match typed.first() {
        Some(0x1b) if typed.get(1) == Some(&b'[') => {
            // A sequence that means nothing here.
            let end = typed[2..].iter().position(|byte| (0x40..0x7f).contains(byte));
            (None, end.map_or(typed.len(), |at| at + 3))
        }
        Some(0x1b) => (Some(Key::Escape), 1),
        Some(3) => (Some(Key::Leave), 1),
        Some(_) => {
            let length = typed.utf8_chunks().next().map_or(0, |it| it.valid().len());
            let first = std::str::from_utf8(&typed[..length]).ok().and_then(|it| it.chars().next());
            match first {
                Some(letter) if !letter.is_control() => {
                    (Some(Key::Letter(letter)), letter.len_utf8())
                }
                Some(_) | None => (None, 1),
            }
        }
        None => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_and_strange_ones_are_passed_by() {
        assert_eq!(parse(b"\x1b[Aj"), (Some(Key::Up), 3));
        assert_eq!(parse(b"j"), (Some(Key::Letter('j')), 1));
        assert_eq!(parse(b"\x1b"), (Some(Key::Escape), 1));
        assert_eq!(parse(b"\x1b[1;5Cx"), (None, 6));
        assert_eq!(parse("é".as_bytes()), (Some(Key::Letter('é')), 2));
        assert_eq!(parse(b"\x03"), (Some(Key::Leave), 1));
        assert_eq!(parse(b"\x01"), (None, 1));
    }
}
