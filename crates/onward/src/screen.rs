//! Standard error as people see it: lines that stay, and below them one that does not.
//!
//! Invariant: whoever writes to the terminal while a run is driven writes here, so that no line
//! tears another, and a question that waits for its answer is the last thing on the screen.

use std::{
    io::{IsTerminal as _, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Shared by everybody who has something to say.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<Shown>>);

struct Shown {
    out: Box<dyn Write + Send>,
    /// A terminal: the last line can be replaced.
    moves: bool,
    colours: bool,
    /// What is running, redrawn as it changes.
    moving: String,
    question: Option<String>,
}

const CLEAR: &str = "\r\x1b[K";
/// Where nobody says how wide the terminal is.
const COLUMNS: u16 = 100;

impl Screen {
    pub(crate) fn of_stderr() -> Self {
        let err = std::io::stderr();
        let colours = anstream::AutoStream::choice(&err) != anstream::ColorChoice::Never;
        let moves = err.is_terminal();
        Self::new(Box::new(err), moves, colours)
    }

    fn new(out: Box<dyn Write + Send>, moves: bool, colours: bool) -> Self {
        let (moving, question) = (String::new(), None);
        Self(Arc::new(Mutex::new(Shown { out, moves, colours, moving, question })))
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // Whoever panicked while writing left at most half a line.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn moves(&self) -> bool {
        self.shown().moves
    }

    /// A line that stays.
    pub(crate) fn line(&self, text: &str) {
        let mut shown = self.shown();
        shown.clear();
        shown.print(&format!("{text}\n"));
        shown.draw_last();
    }

    /// What is running now; nothing when empty. Only a terminal shows it.
    pub(crate) fn moving(&self, text: String) {
        let mut shown = self.shown();
        shown.moving = text;
        if shown.question.is_none() {
            shown.clear();
            shown.draw_last();
        }
    }

    /// Asks for attention, and shows what is asked until it is answered.
    pub(crate) fn question(&self, text: &str) {
        let mut shown = self.shown();
        shown.clear();
        shown.question = Some(text.to_owned());
        shown.draw_last();
    }

    /// The person has typed a line: the cursor is below the question already.
    pub(crate) fn answered(&self) {
        self.shown().question = None;
    }

    /// Nobody needs an answer any more.
    pub(crate) fn withdraw(&self) {
        let mut shown = self.shown();
        shown.question = None;
        shown.clear();
        shown.draw_last();
    }

    pub(crate) fn bell(&self) {
        let mut shown = self.shown();
        if shown.moves {
            shown.print("\x07");
        }
    }
}

// Nobody is left to tell when the terminal takes nothing any more: the run goes on.
impl Shown {
    fn clear(&mut self) {
        if self.moves {
            let _ = self.out.write_all(CLEAR.as_bytes());
        }
    }

    fn draw_last(&mut self) {
        match self.question.clone() {
            Some(question) => self.print(&question),
            None if self.moves => {
                let columns = rustix::termios::tcgetwinsize(std::io::stderr());
                let columns = columns.map_or(0, |size| size.ws_col);
                let columns = usize::from(if columns == 0 { COLUMNS } else { columns });
                let text: String = self.moving.chars().take(columns.saturating_sub(1)).collect();
                self.print(&text);
            }
            None => {}
        }
        let _ = self.out.flush();
    }

    fn print(&mut self, text: &str) {
        let written = if self.colours {
            self.out.write_all(text.as_bytes())
        } else {
            let plain = anstream::adapter::strip_str(text).to_string();
            self.out.write_all(plain.as_bytes())
        };
        let _ = written;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What was written, for whoever looks at it afterwards.
    #[derive(Clone, Default)]
    pub(crate) struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Paper {
        pub(crate) fn screen(&self, moves: bool) -> Screen {
            Screen::new(Box::new(self.clone()), moves, false)
        }

        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_question_stays_the_last_thing_on_a_terminal() {
        let paper = Paper::default();
        let screen = paper.screen(true);
        screen.moving("[1/2] one".to_owned());
        screen.question("Go on? ");
        screen.moving("[1/2] one 2s".to_owned());
        screen.line("\x1b[32mdone\x1b[0m one");
        screen.withdraw();
        let last = "Go on? ";
        let all =
            format!("{CLEAR}[1/2] one{CLEAR}{last}{CLEAR}done one\n{last}{CLEAR}[1/2] one 2s");
        assert_eq!(paper.text(), all);
    }

    #[test]
    fn off_a_terminal_there_are_lines_and_nothing_else() {
        let paper = Paper::default();
        let screen = paper.screen(false);
        screen.moving("[1/2] one".to_owned());
        screen.bell();
        screen.line("done one");
        assert_eq!(paper.text(), "done one\n");
    }
}
