//! One step on the whole screen: how it stands, what it was asked, and what it printed, scrolled.
//!
//! Invariant: at the end it follows what comes; scrolled up it stays where the person reads.

use super::terminal::Key;

#[derive(Default)]
pub(super) struct Inside {
    /// The first row that is shown; `None` = the last rows, whatever comes.
    top: Option<usize>,
    /// How many rows there were to show, and how many had room.
    rows: usize,
    height: usize,
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
            Key::Down | Key::Letter('j') => at + 1,
            Key::PageUp => at.saturating_sub(page),
            Key::PageDown => at + page,
            Key::Home | Key::Letter('g') => 0,
            Key::End | Key::Letter('G') => last,
            Key::Escape | Key::Enter | Key::Backspace => return Went::Back,
            Key::Letter(_) | Key::Leave => return Went::Elsewhere,
        };
        self.top = Some(to).filter(|to| *to < last);
        Went::Scrolled
    }

    /// The rows that are visible; the first of all stays on top.
    pub(super) fn shown(&mut self, all: Vec<String>, height: usize) -> Vec<String> {
        let mut all = all.into_iter();
        let mut shown: Vec<String> = all.by_ref().take(1).collect();
        (self.rows, self.height) = (all.len(), height.saturating_sub(1));
        let last = self.rows.saturating_sub(self.height);
        let at = self.top.map_or(last, |it| it.min(last));
        shown.extend(all.skip(at).take(self.height));
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(inside: &mut Inside, count: usize) -> Vec<String> {
        inside.shown((0..count).map(|it| it.to_string()).collect(), 4)
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
