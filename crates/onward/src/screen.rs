//! Standard error as people see it: lines that stay, and below them a block that does not.
//!
//! Invariant: all that is written to the terminal while a run is driven is written here, so that no
//! line tears another, and a question that waits for its answer is the last thing on the screen.

use crate::{ink, keys, width};
use std::{
    io::{IsTerminal as _, Write},
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError},
};

/// Shared by all who have something to say.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<Shown>>);

struct Shown {
    out: Box<dyn Write + Send>,
    /// A terminal: what is at the bottom can be replaced.
    moves: bool,
    keyboard: Keyboard,
    colours: bool,
    /// What runs now, one line each, redrawn as it changes.
    block: Vec<String>,
    /// The lines that are on the screen, without colours, and must be cleared before others come.
    drawn: Vec<String>,
    question: Option<String>,
    /// Nothing moves any more.
    ended: bool,
    /// A stop finds this screen.
    steps_aside: Once,
}

/// Who presses keys at it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyboard {
    User,
    None,
}

/// Between these a terminal shows nothing half-drawn; others ignore them.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// The row of the cursor, and the row above it. Row by row, because a terminal that is told to
/// clear everything from its first row on keeps what it cleared in its scrollback (tmux).
const CLEAR: &str = "\r\x1b[2K";
const CLEAR_ABOVE: &str = "\x1b[1A\x1b[2K";
/// Where no terminal says how large it is.
const SIZE: Size = Size { columns: 100, rows: 24 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The columns of standard output, where that is a terminal.
pub(crate) fn columns_of_output() -> Option<usize> {
    let out = std::io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|it| *it > 0)
}

/// The columns of standard error, where that is a terminal.
pub(crate) fn columns_of_errors() -> Option<usize> {
    std::io::stderr().is_terminal().then(|| size().columns)
}

/// As large as the terminal is at this moment.
pub(crate) fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    let or = |it: u16, other: usize| if it == 0 { other } else { usize::from(it) };
    size.map_or(SIZE, |it| Size {
        columns: or(it.ws_col, SIZE.columns),
        rows: or(it.ws_row, SIZE.rows),
    })
}

impl Screen {
    pub(crate) fn of_stderr() -> Self {
        let err = std::io::stderr();
        let colours = ink::has_colours(&err);
        let moves = err.is_terminal() && std::env::var_os("TERM").is_none_or(|it| it != "dumb");
        let screen = Self::new(Box::new(err), moves, colours);
        screen.shown().keyboard = if moves { Keyboard::User } else { Keyboard::None };
        screen
    }

    fn new(out: Box<dyn Write + Send>, moves: bool, colours: bool) -> Self {
        let (block, drawn, question) = (Vec::new(), Vec::new(), None);
        let (keyboard, ended, steps_aside) = (Keyboard::None, false, Once::new());
        let shown =
            Shown { out, moves, keyboard, colours, block, drawn, question, ended, steps_aside };
        Self(Arc::new(Mutex::new(shown)))
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        // A thread that panicked while writing left at most half a line.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn moves(&self) -> bool {
        self.shown().moves
    }

    /// A line that stays.
    pub(crate) fn line(&self, text: &str) {
        self.shown().put(&[text.to_owned()]);
    }

    /// Lines that stay, and what is running now in the place of what ran before: both at once, so
    /// that no step is shown as running below the line that says how it ended. Only a terminal
    /// shows what is running.
    pub(crate) fn frame(&self, lines: &[String], block: Vec<String>) {
        let mut shown = self.shown();
        let is_same = shown.block == block && shown.drawn.len() == block.len();
        if !shown.ended {
            shown.block = block;
        }
        let moved = !shown.ended && !is_same && shown.moves && shown.question.is_none();
        if shown.keyboard == Keyboard::User {
            shown.steps_aside.call_once(|| {
                let shown = Arc::downgrade(&self.0);
                keys::before_a_stop(move || {
                    if let Some(shown) = shown.upgrade() {
                        Self(shown).step_aside();
                    }
                });
            });
        }
        shown.hide_keys();
        if moved || !lines.is_empty() {
            shown.put(lines);
        }
    }

    /// Asks for attention, and shows what is asked until it is answered.
    pub(crate) fn question(&self, text: &str) {
        let mut shown = self.shown();
        shown.show_keys();
        shown.begin();
        shown.clear();
        shown.question = Some(text.to_owned());
        shown.draw();
        shown.end();
    }

    /// The person has typed a line: the cursor is below the question already.
    pub(crate) fn answered(&self) {
        let mut shown = self.shown();
        shown.question = None;
        shown.drawn.clear();
    }

    /// No answer is needed any more.
    pub(crate) fn withdraw(&self) {
        let mut shown = self.shown();
        shown.question = None;
        shown.begin();
        shown.clear();
        shown.draw();
        shown.end();
    }

    /// What moves goes from the screen; the next frame draws it again.
    fn step_aside(&self) {
        let mut shown = self.shown();
        if shown.question.is_none() && !shown.drawn.is_empty() {
            shown.begin();
            shown.clear();
            shown.end();
        }
    }

    /// Nothing moves from here on, and nothing stale stays.
    pub(crate) fn end(&self) {
        let mut shown = self.shown();
        shown.question = None;
        shown.ended = true;
        shown.block.clear();
        shown.show_keys();
        shown.begin();
        shown.clear();
        shown.end();
    }

    /// Calls a person who is looking elsewhere: the bell, and a notification where the terminal
    /// has them (OSC 9).
    pub(crate) fn notify(&self, text: &str) {
        let mut shown = self.shown();
        if shown.moves {
            let text: String = text.chars().filter(|it| !it.is_control()).collect();
            let _ = shown.out.write_all(format!("\x1b]9;{text}\x07\x07").as_bytes());
            let _ = shown.out.flush();
        }
    }
}

// When the terminal takes nothing any more, as after a hang-up, the run continues unseen.
impl Shown {
    fn begin(&mut self) {
        if self.moves {
            let _ = self.out.write_all(BEGIN.as_bytes());
        }
    }

    fn end(&mut self) {
        if self.moves {
            let _ = self.out.write_all(END.as_bytes());
        }
        let _ = self.out.flush();
    }

    /// As long as rows stand at the bottom that are drawn again.
    fn hide_keys(&self) {
        if self.keyboard == Keyboard::User && self.question.is_none() && !self.block.is_empty() {
            keys::hide();
        }
    }

    fn show_keys(&self) {
        if self.keyboard == Keyboard::User {
            keys::show();
        }
    }

    /// Above the block, which is drawn again.
    fn put(&mut self, lines: &[String]) {
        self.begin();
        self.clear();
        for line in lines {
            self.print(&format!("{line}\n"));
        }
        self.draw();
        self.end();
    }

    fn clear(&mut self) {
        let drawn = std::mem::take(&mut self.drawn);
        if !self.moves {
            return;
        }
        // A terminal that became narrower has wrapped what was on it.
        let Size { columns, rows } = size();
        let taken: usize = drawn.iter().map(|line| width::rows(line, columns)).sum();
        let above = taken.min(rows).saturating_sub(1);
        let _ = self.out.write_all(format!("{CLEAR}{}", CLEAR_ABOVE.repeat(above)).as_bytes());
    }

    fn draw(&mut self) {
        let lines = match &self.question {
            Some(question) => vec![question.clone()],
            None if self.moves => self.block.clone(),
            None => Vec::new(),
        };
        self.print(&lines.join("\n"));
        self.drawn = lines.iter().map(|it| ink::printed(it, false)).collect();
    }

    fn print(&mut self, text: &str) {
        let _ = self.out.write_all(ink::printed(text, self.colours).as_bytes());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What was written, for the test that looks at it afterwards.
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
        screen.frame(&[], vec!["one".to_owned(), "1/2".to_owned()]);
        screen.question("Go on? ");
        screen.frame(&[], vec!["one 2 s".to_owned(), "1/2".to_owned()]);
        let bold = ink::Style::new().bold();
        screen.line(&format!("{bold}done{bold:#} one"));
        screen.withdraw();
        let all = [
            format!("{CLEAR}one\n1/2"),
            format!("{CLEAR}{CLEAR_ABOVE}Go on? "),
            format!("{CLEAR}done one\nGo on? "),
            format!("{CLEAR}one 2 s\n1/2"),
        ];
        let all = all.iter().fold(String::new(), |sum, it| sum + BEGIN + it + END);
        assert_eq!(paper.text(), all);
    }

    #[test]
    fn what_ended_is_below_no_line_that_says_so() {
        let paper = Paper::default();
        let screen = paper.screen(true);
        screen.frame(&[], vec!["one".to_owned(), "0/2".to_owned()]);
        screen.frame(&["done one".to_owned()], vec!["1/2".to_owned()]);
        let after = format!("{BEGIN}{CLEAR}{CLEAR_ABOVE}done one\n1/2{END}");
        assert!(paper.text().ends_with(&after), "{:?}", paper.text());
        screen.frame(&[], vec!["1/2".to_owned()]);
        assert!(paper.text().ends_with(&after), "nothing new is not drawn");
    }

    #[test]
    fn at_the_end_nothing_stale_stays() {
        let paper = Paper::default();
        let screen = paper.screen(true);
        screen.frame(&[], vec!["one".to_owned()]);
        screen.end();
        assert!(paper.text().ends_with(&format!("{BEGIN}{CLEAR}{END}")), "{}", paper.text());
    }

    #[test]
    fn off_a_terminal_there_are_lines_and_nothing_else() {
        let paper = Paper::default();
        let screen = paper.screen(false);
        screen.frame(&[], vec!["1/2 one".to_owned()]);
        screen.notify("a gate");
        screen.line("done one");
        screen.end();
        assert_eq!(paper.text(), "done one\n");
    }
}
