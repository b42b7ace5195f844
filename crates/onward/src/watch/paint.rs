//! How a frame comes to the terminal: the cells that ratatui found changed, through the printer.
//!
//! Invariant: a frame is one write between the two marks of a synchronised update, and nothing is
//! written where nothing changed. No character moves those behind it, however wide the terminal
//! takes it to be.

use std::io::{self, Write as _};

use ratatui::{
    backend::{Backend, ClearType, WindowSize},
    buffer::Cell,
    layout::{Position, Size},
};

use crate::ink::{self, Style};

use super::terminal;

pub(super) struct Paint {
    colours: bool,
    /// What the frame has come to so far.
    frame: Vec<u8>,
}

/// Cells beside each other that look alike.
#[derive(Default)]
struct Stroke {
    style: Style,
    text: String,
    /// Where the next cell would stand; `None` = that only the terminal knows.
    end: Option<Position>,
}

/// Between these a terminal shows nothing half-drawn; others ignore them.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

impl Paint {
    pub(super) fn new(colours: bool) -> Self {
        Self { colours, frame: Vec::new() }
    }

    fn end(&mut self, stroke: &mut Stroke) -> io::Result<()> {
        let style = stroke.style;
        let text = format!("{style}{}{style:#}", std::mem::take(&mut stroke.text));
        self.frame.write_all(ink::printed(&text, self.colours).as_bytes())
    }
}

impl Backend for Paint {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, cells: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut stroke = Stroke::default();
        for (x, y, cell) in cells {
            let (at, style) = (Position { x, y }, Style::from(cell));
            let follows = stroke.end == Some(at);
            if !follows || stroke.style != style {
                self.end(&mut stroke)?;
                stroke.style = style;
            }
            if !follows {
                self.set_cursor_position(at)?;
            }
            stroke.text.push_str(cell.symbol());
            stroke.end = Some(Position { x: x + 1, y }).filter(|_| cell.symbol().is_ascii());
        }
        self.end(&mut stroke)
    }

    // It is hidden as long as the screen is ours.
    fn hide_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    // Only a part of a screen has to know where it begins.
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, at: P) -> io::Result<()> {
        let Position { x, y } = at.into();
        write!(self.frame, "\x1b[{};{}H", u32::from(y) + 1, u32::from(x) + 1)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, part: ClearType) -> io::Result<()> {
        self.frame.write_all(match part {
            ClearType::All => b"\x1b[2J",
            ClearType::AfterCursor => b"\x1b[J",
            ClearType::BeforeCursor => b"\x1b[1J",
            ClearType::CurrentLine => b"\x1b[2K",
            ClearType::UntilNewLine => b"\x1b[K",
        })
    }

    fn size(&self) -> io::Result<Size> {
        Ok(terminal::size())
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        if frame.is_empty() {
            return Ok(());
        }
        terminal::write(&[BEGIN.as_bytes(), &frame, END.as_bytes()].concat())
    }
}
