//! One step on the whole screen: how it stands, what it was asked, and what it printed, scrolled.
//!
//! Invariant: at the end it follows what comes; scrolled up it stays where the person reads.

use ratatui::{Frame, layout::Rect, text::Line};

use super::{
    part::{self, Part},
    terminal::Key,
};

#[derive(Default)]
pub(super) struct Inside {
    /// The first row that is shown; `None` = the last rows, whatever comes.
    top: Option<u16>,
    /// How many rows there were to show, and how many had room.
    rows: u16,
    height: u16,
}

/// What a key came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Went {
    Scrolled,
    /// To the tree again.
    Back,
    /// It is a key of the tree.
    Elsewhere,
}

impl Inside {
    pub(super) fn press(&mut self, key: Key) -> Went {
        let last = self.rows.saturating_sub(self.height);
        let at = self.top.map_or(last, |it| it.min(last));
        let page = self.height.saturating_sub(1).max(1);
        let to = match key {
            Key::Up | Key::Letter('k') => at.saturating_sub(1),
            Key::Down | Key::Letter('j') => at.saturating_add(1),
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at.saturating_add(page),
            Key::Home | Key::Letter('g') => 0,
            Key::End | Key::Letter('G') => last,
            Key::Escape | Key::Enter | Key::Backspace => return Went::Back,
            Key::Letter(_) | Key::Leave => return Went::Elsewhere,
        };
        self.top = Some(to).filter(|to| *to < last);
        Went::Scrolled
    }

    /// The name of the step stays on top.
    pub(super) fn draw(
        &mut self,
        (name, lines): (Part, Vec<Line<'_>>),
        frame: &mut Frame<'_>,
        room: Rect,
    ) {
        let room = name.draw(frame, room);
        let text = part::text(lines);
        let rows = u16::try_from(text.line_count(room.width)).unwrap_or(u16::MAX);
        (self.rows, self.height) = (rows, room.height);
        let last = rows.saturating_sub(room.height);
        let at = self.top.map_or(last, |it| it.min(last));
        frame.render_widget(text.scroll((at, 0)), room);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    fn shown(inside: &mut Inside, count: usize) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(3, 4)).unwrap();
        let lines: Vec<Line<'_>> = (1..count).map(|it| it.to_string().into()).collect();
        terminal.draw(|it| inside.draw((Part::cut("0"), lines), it, it.area())).unwrap();
        let cells = terminal.backend().buffer().content.chunks(3);
        let rows = cells.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect());
        rows.map(|row: String| row.trim_end().to_owned()).filter(|row| !row.is_empty()).collect()
    }

    #[test]
    fn the_end_is_followed_until_a_person_scrolls_up() {
        let mut inside = Inside::default();
        assert_eq!(shown(&mut inside, 6), ["0", "3", "4", "5"]);
        assert_eq!(shown(&mut inside, 7), ["0", "4", "5", "6"], "what came is followed");
        assert_eq!(inside.press(Key::Up), Went::Scrolled);
        assert_eq!(shown(&mut inside, 8), ["0", "3", "4", "5"], "it stays there");
        assert_eq!(inside.press(Key::PageUp), Went::Scrolled);
        assert_eq!(shown(&mut inside, 8), ["0", "1", "2", "3"]);
        assert_eq!(inside.press(Key::Letter('G')), Went::Scrolled);
        assert_eq!(shown(&mut inside, 9), ["0", "6", "7", "8"], "and is followed again");
        assert_eq!(inside.press(Key::Escape), Went::Back);
        assert_eq!(inside.press(Key::Letter('q')), Went::Elsewhere);
    }

    #[test]
    fn what_fits_does_not_scroll() {
        let mut inside = Inside::default();
        assert_eq!(shown(&mut inside, 2), ["0", "1"]);
        assert_eq!(inside.press(Key::Up), Went::Scrolled);
        assert_eq!(shown(&mut inside, 2), ["0", "1"]);
    }
}
