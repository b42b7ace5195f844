//! Lines that belong together: each cut at the width, or all wrapped, up to so many rows.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    text::{Line, Text},
    widgets::{Paragraph, Wrap},
};

use crate::style::cut;

pub(super) struct Part {
    pub(super) lines: Vec<Line<'static>>,
    wraps: bool,
    rows_max: u16,
}

impl Part {
    /// A row for each line.
    pub(super) fn cut(lines: impl Into<Text<'static>>) -> Self {
        Self { lines: lines.into().lines, wraps: false, rows_max: u16::MAX }
    }

    /// As many rows as the words need.
    pub(super) fn wrapped(lines: impl Into<Text<'static>>) -> Self {
        Self { wraps: true, ..Self::cut(lines) }
    }

    pub(super) fn at_most(self, rows_max: u16) -> Self {
        Self { rows_max, ..self }
    }

    pub(super) fn rows(&self, columns: u16) -> u16 {
        let rows = if self.wraps {
            text(self.lines.clone()).line_count(columns)
        } else {
            self.lines.len()
        };
        u16::try_from(rows).unwrap_or(u16::MAX).min(self.rows_max)
    }

    /// On top of this room; gives what is left of it.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, room: Rect) -> Rect {
        let rows = Constraint::Length(self.rows(room.width).min(room.height));
        let [here, rest] = Layout::vertical([rows, Constraint::Fill(1)]).areas(room);
        if self.wraps {
            frame.render_widget(text(self.lines.clone()), here);
        } else {
            let lines = self.lines.iter().take(here.height.into());
            let columns = usize::from(here.width);
            // A line has one style.
            let cut = lines.map(|it| Line::styled(cut(&it.to_string(), columns), it.style));
            frame.render_widget(Paragraph::new(cut.collect::<Vec<_>>()), here);
        }
        rest
    }
}

/// Wrapped between words.
pub(super) fn text(lines: Vec<Line<'_>>) -> Paragraph<'_> {
    Paragraph::new(lines).wrap(Wrap { trim: false })
}
