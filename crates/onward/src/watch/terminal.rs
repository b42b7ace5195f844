//! A whole screen for a while: keys come one by one, and what was on it before comes back.
//!
//! Invariant: however it ends, the terminal is left as it was found.

use std::{
    io::{self, Write},
    time::Duration,
};

use onward_engine::world::real::Interrupts;
use ratatui::{Frame, layout::Size};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr},
};

use crate::ink;

use super::paint::Paint;

pub(super) struct Terminal {
    before: Termios,
    typed: Vec<u8>,
    screen: ratatui::Terminal<Paint>,
    /// A signal ends it as `q` does.
    signals: Interrupts,
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
/// The rest of a key that came in pieces is there by then; Escape alone has none.
const REST_OF_A_KEY: Duration = Duration::from_millis(25);

impl Terminal {
    pub(super) fn take() -> io::Result<Self> {
        let (before, signals) = (tcgetattr(io::stdin())?, Interrupts::heed()?);
        let screen = ratatui::Terminal::new(Paint::new(ink::has_colours(&io::stdout())))?;
        let mut terminal = Self { before, typed: Vec::new(), screen, signals };
        terminal.enter()?;
        Ok(terminal)
    }

    fn enter(&mut self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        write(ENTER.as_bytes())?;
        self.screen.clear()
    }

    fn leave(&mut self) {
        // When the terminal is gone there is nothing to give back.
        let _ = write(LEAVE.as_bytes());
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }

    /// Lets something else have the screen for a while. Ctrl-C is its own then.
    pub(super) fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        self.leave();
        let made = to();
        self.signals.forget();
        self.enter()?;
        Ok(made)
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.screen.draw(draw).map(drop)
    }

    /// The next key, if one comes in this time. `None` in the place of a key = the input ended.
    #[expect(clippy::option_option, reason = "no key yet, and no key any more")]
    pub(super) fn key(&mut self, patience: Duration) -> Option<Option<Key>> {
        if self.signals.came() {
            return Some(None);
        }
        if self.typed.is_empty() && !self.read(patience)? {
            return Some(None);
        }
        while is_begun(&self.typed) && self.read(REST_OF_A_KEY).is_some_and(|came| came) {}
        let (key, used) = parse(&self.typed);
        self.typed.drain(..used);
        key.map(Some)
    }

    /// Takes what was typed; `false` = the input ended, `None` = nothing came in this time.
    fn read(&mut self, patience: Duration) -> Option<bool> {
        let stdin = io::stdin();
        let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut ready, Timespec::try_from(patience).ok().as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return None,
            Ok(_) => {}
            Err(_) => return Some(false),
        }
        let mut bytes = [0; 256];
        let count = rustix::io::read(&stdin, &mut bytes).unwrap_or(0);
        self.typed.extend_from_slice(&bytes[..count]);
        Some(count > 0)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

pub(super) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()
}

pub(super) fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let or = |it: u16, other| if it == 0 { other } else { it };
    let size = size.map(|it| Size::new(or(it.ws_col, 80), or(it.ws_row, 24)));
    size.unwrap_or(Size::new(80, 24))
}

/// A key of several bytes, of which some are missing.
fn is_begun(typed: &[u8]) -> bool {
    match typed {
        b"\x1b" | b"\x1bO" => true,
        [0x1b, b'[', rest @ ..] => !rest.iter().any(|byte| (0x40..0x7f).contains(byte)),
        _ => false,
    }
}

/// The first key of what was typed, and how many bytes it has.
fn parse(typed: &[u8]) -> (Option<Key>, usize) {
    const SEQUENCES: [(&[u8], Key); 16] = [
        (b"\x1b[A", Key::Up),
        (b"\x1bOA", Key::Up),
        (b"\x1b[B", Key::Down),
        (b"\x1bOB", Key::Down),
        (b"\x1b[5~", Key::PageUp),
        (b"\x1b[6~", Key::PageDown),
        (b"\x1b[H", Key::Home),
        (b"\x1b[F", Key::End),
        (b"\x1bOH", Key::Home),
        (b"\x1bOF", Key::End),
        (b"\x1b[1~", Key::Home),
        (b"\x1b[4~", Key::End),
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
        Some(0x1b) if typed.get(1) == Some(&b'O') => (None, typed.len().min(3)),
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
        assert_eq!(parse(b"\x1bOPx"), (None, 3));
    }

    #[test]
    fn a_key_that_came_in_pieces_is_waited_for() {
        let begun: [&[u8]; 4] = [b"\x1b", b"\x1b[", b"\x1b[5", b"\x1bO"];
        assert!(begun.into_iter().all(is_begun));
        let whole: [&[u8]; 6] = [b"", b"j", b"\x1b[A", b"\x1b[5~", b"\x1bOH", b"\x1bj"];
        assert!(!whole.into_iter().any(is_begun));
    }
}
