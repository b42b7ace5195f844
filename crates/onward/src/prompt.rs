//! Asking the person at the terminal: which one, yes or no, one of these.
//!
//! Invariant: no question hangs. Where no person is there, as off a terminal, with `--json` or
//! `--no-input`, in the background or under CI, each comes back at once as `None`, and so it does
//! when the input ends. The command that asked then says what is missing and how to give it.

use std::{
    io::{IsTerminal as _, stderr, stdin},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use onward_engine::world::real::Interrupts;

use crate::{cmd::Context, screen::Screen, session::Driving};

/// The person who may be at the keyboard.
pub(crate) struct Person {
    is_there: bool,
    keyboard: Box<dyn Keyboard + Send>,
    screen: Screen,
    /// Heeded while nothing is driven: Ctrl-C then is an answer, too.
    interrupts: Option<Interrupts>,
}

/// What the first of several answers is to a person who types nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// The one that is meant.
    ByDefault,
    /// No answer; not even its beginning is one.
    InFull,
}

/// Which of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    One(usize),
    None,
}

/// What came of a question that another person may answer too.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Said(String),
    /// They want to see it again.
    ShowAgain,
    /// One of the keys that are no option, and what was typed behind it.
    Key(char, String),
    /// The answer is not needed any more.
    Withdrawn,
    NoPerson,
}

impl Person {
    /// Found out once, before anything is asked.
    pub(crate) fn at_terminal(cx: &Context, driving: &Driving) -> Self {
        let is_there = !cx.global.json
            && !driving.no_input
            && stdin().is_terminal()
            && stderr().is_terminal()
            && !is_ci(std::env::var_os("CI").as_deref())
            && is_in_foreground();
        let keyboard = Box::new(Terminal { typed: Vec::new() });
        Self { is_there, keyboard, screen: Screen::of_stderr(), interrupts: None }
    }

    /// From here on Ctrl-C leaves the question, and with it the program, in good order.
    pub(crate) fn heed_interrupts(&mut self) {
        if self.is_there {
            // Where that cannot be had, Ctrl-C ends the program as it ends any other.
            self.interrupts = Interrupts::heed().ok();
        }
    }

    /// Whether the person wants out; from here on the driver sees to that.
    pub(crate) fn leave_interrupts(&mut self) -> bool {
        self.interrupts.take().is_some_and(|it| it.came())
    }

    /// Why there was no answer: Ctrl-C, and not the end of the input.
    pub(crate) fn was_interrupted(&self) -> bool {
        self.interrupts.as_ref().is_some_and(Interrupts::came)
    }

    pub(crate) fn is_there(&self) -> bool {
        self.is_there
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// One of a numbered list, by its place in it, or none of them.
    pub(crate) fn choose(&mut self, question: &str, list: &[String]) -> Option<Chosen> {
        if !self.is_there {
            return None;
        }
        for (index, entry) in list.iter().enumerate() {
            self.screen.line(&format!("  {}. {entry}", index + 1));
        }
        self.screen.line("  none leaves them all as they are");
        let most = list.len();
        self.until(&format!("{question} [1-{most}] "), |text| {
            if text.eq_ignore_ascii_case("none") {
                return Ok(Chosen::None);
            }
            let number: Option<usize> = text.parse().ok();
            number
                .filter(|it| (1..=most).contains(it))
                .map(|it| Chosen::One(it - 1))
                .ok_or_else(|| format!("Type a number from 1 to {most}, or none."))
        })
    }

    /// One of these words, by its place among them.
    pub(crate) fn pick(&mut self, question: &str, words: &[String], first: First) -> Option<usize> {
        self.pick_also(question, words, first, &[])
    }

    /// The same; other words that stand for some of them are not shown.
    pub(crate) fn pick_also(
        &mut self,
        question: &str,
        words: &[String],
        first: First,
        also: &[(&str, usize)],
    ) -> Option<usize> {
        let mut shown = words.to_vec();
        if first == First::ByDefault {
            // The default is marked as everywhere: in capitals.
            shown[0] = shown[0].to_uppercase();
        }
        self.until(&format!("{question} [{}] ", shown.join("/")), |text| {
            let in_full = || format!("Type \"{}\" to continue.", words[0]);
            if text.is_empty() {
                return if first == First::ByDefault { Ok(0) } else { Err(in_full()) };
            }
            let other = also.iter().find(|it| it.0.eq_ignore_ascii_case(text)).map(|it| it.1);
            let named = option(text, words);
            let named = named.and_then(|it| words.iter().position(|word| word == it));
            let index = named.or(other).ok_or_else(|| wrong(text, words, Numbers::None))?;
            let is_whole = first == First::ByDefault || words[0].eq_ignore_ascii_case(text);
            if index > 0 || is_whole { Ok(index) } else { Err(in_full()) }
        })
    }

    /// One of these words, as long as `wanted` says that it is needed. What was typed before the
    /// question could be read is no answer to it.
    pub(crate) fn ask(
        &mut self,
        question: &str,
        options: &[String],
        keys: &[char],
        wanted: &dyn Fn() -> bool,
    ) -> Asked {
        if !self.is_there {
            return Asked::NoPerson;
        }
        self.keyboard.forget();
        let question = format!("{question} [{}] ", options.join("/"));
        loop {
            self.screen.question(&question);
            match self.keyboard.line(wanted) {
                Line::Typed(text) => {
                    self.screen.answered();
                    match option(&text, options) {
                        Some(option) => return Asked::Said(option.clone()),
                        None if text.is_empty() => return Asked::ShowAgain,
                        None => match key(&text, keys) {
                            Some(key) => return key,
                            None => self.screen.line(&wrong(&text, options, Numbers::Shown)),
                        },
                    }
                }
                Line::NotWanted => {
                    self.screen.withdraw();
                    return Asked::Withdrawn;
                }
                Line::End => {
                    self.leave();
                    return Asked::NoPerson;
                }
            }
        }
    }

    /// Asks until the answer means something; what was wrong with another one is said.
    pub(crate) fn until<T>(
        &mut self,
        question: &str,
        means: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let interrupts = self.interrupts.clone();
        let wanted = || interrupts.as_ref().is_none_or(|it| !it.came());
        while self.is_there {
            self.screen.question(question);
            match self.keyboard.line(&wanted) {
                Line::Typed(text) => {
                    self.screen.answered();
                    match means(&text) {
                        Ok(answer) => return Some(answer),
                        Err(why) => self.screen.line(&why),
                    }
                }
                Line::NotWanted | Line::End => self.leave(),
            }
        }
        None
    }

    fn leave(&mut self) {
        self.is_there = false;
        self.screen.answered();
        self.screen.line("");
    }
}

/// The option that is meant: its number, its name, or as much of the name as no other has.
pub(crate) fn option<'o>(text: &str, options: &'o [String]) -> Option<&'o String> {
    let text = text.to_lowercase();
    let by_number = || text.parse::<usize>().ok().and_then(|it| options.get(it.checked_sub(1)?));
    let exact = options.iter().find(|it| it.to_lowercase() == text);
    exact.or_else(by_number).or_else(|| {
        let mut begin_so = options.iter().filter(|it| it.to_lowercase().starts_with(&text));
        let only = begin_so.next().filter(|_| !text.is_empty())?;
        begin_so.next().is_none().then_some(only)
    })
}

/// A letter by itself, or with a text behind it.
pub(crate) fn key(text: &str, keys: &[char]) -> Option<Asked> {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let key = keys.iter().find(|key| first.chars().eq([**key]))?;
    Some(Asked::Key(*key, rest.trim().to_owned()))
}

/// Whether the answers were shown with numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    Shown,
    None,
}

/// What was wrong with an answer.
pub(crate) fn wrong(text: &str, options: &[String], numbers: Numbers) -> String {
    let begins = |it: &&String| it.to_lowercase().starts_with(&text.to_lowercase());
    let several: Vec<&str> = options.iter().filter(begins).map(String::as_str).collect();
    let text = crate::diagnostic::printable(text);
    if !text.is_empty() && several.len() > 1 {
        return format!("`{text}` can mean {}: type more of it", or(&several));
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let or_number = if numbers == Numbers::Shown { ", or its number" } else { "" };
    format!("`{text}` is not an answer here: type {}{or_number}", or(&options))
}

/// `a`, `a or b`, `a, b or c`
fn or(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn is_ci(value: Option<&std::ffi::OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0" && value != "false")
}

/// A job in the background that reads from its terminal is stopped by it, for good.
fn is_in_foreground() -> bool {
    // A terminal that does not control us does not stop us.
    let in_front = rustix::termios::tcgetpgrp(stdin());
    in_front.is_ok_and(|group| group == rustix::process::getpgrp()) || in_front.is_err()
}

/// Where lines come from.
trait Keyboard {
    /// The next line, without its end.
    fn line(&mut self, wanted: &dyn Fn() -> bool) -> Line;
    /// Throws away what was typed and not read.
    fn forget(&mut self);
}

enum Line {
    Typed(String),
    NotWanted,
    End,
}

struct Terminal {
    typed: Vec<u8>,
}

/// How often it is asked whether the answer is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Keyboard for Terminal {
    fn line(&mut self, wanted: &dyn Fn() -> bool) -> Line {
        loop {
            if let Some(end) = self.typed.iter().position(|byte| *byte == b'\n') {
                let rest = self.typed.split_off(end + 1);
                let line = std::mem::replace(&mut self.typed, rest);
                return Line::Typed(String::from_utf8_lossy(&line).trim().to_owned());
            }
            if !wanted() {
                return Line::NotWanted;
            }
            let stdin = stdin();
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            let patience = Timespec::try_from(LOOK_EVERY).ok();
            match poll(&mut ready, patience.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) if is_in_foreground() => {}
                Ok(_) => {
                    std::thread::sleep(LOOK_EVERY);
                    continue;
                }
                Err(_) => return Line::End,
            }
            let mut bytes = [0; 4096];
            match rustix::io::read(&stdin, &mut bytes) {
                Ok(count) if count > 0 => self.typed.extend_from_slice(&bytes[..count]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Ok(_) | Err(_) => return Line::End,
            }
        }
    }

    fn forget(&mut self) {
        self.typed.clear();
        // What cannot be thrown away is an answer that was typed early.
        let _ = rustix::termios::tcflush(stdin(), rustix::termios::QueueSelector::IFlush);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::screen::tests::Paper;

    struct Script(VecDeque<&'static str>);

    impl Keyboard for Script {
        fn line(&mut self, wanted: &dyn Fn() -> bool) -> Line {
            match self.0.pop_front() {
                _ if !wanted() => Line::NotWanted,
                Some(text) => Line::Typed(text.to_owned()),
                None => Line::End,
            }
        }

        fn forget(&mut self) {}
    }

    fn person(is_there: bool, lines: &[&'static str]) -> (Person, Paper) {
        let paper = Paper::default();
        let keyboard = Box::new(Script(lines.iter().copied().collect()));
        (Person { is_there, keyboard, screen: paper.screen(false), interrupts: None }, paper)
    }

    fn words(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn several_words_are_told_apart_by_commas() {
        let options = ["approve", "later", "reject"].map(str::to_owned);
        let said = wrong("x", &options, Numbers::Shown);
        let end = "type approve, later or reject, or its number";
        assert_eq!(said, format!("`x` is not an answer here: {end}"));
    }

    #[test]
    fn a_person_who_is_not_there_is_not_asked() {
        let (mut person, paper) = person(false, &["1", "y", "a"]);
        assert_eq!(person.choose("Which?", &words(&["a", "b"])), None);
        assert_eq!(person.pick("Proceed?", &words(&["yes"]), First::ByDefault), None);
        assert_eq!(person.ask("a?", &words(&["a"]), &[], &|| true), Asked::NoPerson);
        assert_eq!(paper.text(), "");
    }

    #[test]
    fn an_answer_that_means_nothing_is_asked_for_again() {
        let (mut person, paper) = person(true, &["", "3", "2", "what", "N"]);
        assert_eq!(person.choose("Which?", &words(&["one", "two"])), Some(Chosen::One(1)));
        assert_eq!(person.pick("Go?", &words(&["yes", "no"]), First::ByDefault), Some(1));
        let text = paper.text();
        let which = "Which? [1-2] Type a number from 1 to 2, or none.\n";
        let list = "  1. one\n  2. two\n  none leaves them all as they are\n";
        assert!(text.starts_with(&format!("{list}{which}{which}")), "{text}");
        let wrong = "`what` is not an answer here: type yes or no\n";
        assert!(text.ends_with(&format!("Go? [YES/no] {wrong}Go? [YES/no] ")), "{text}");
    }

    #[test]
    fn a_word_that_is_wanted_in_full_is_not_taken_by_its_beginning_or_for_nothing() {
        let ways = words(&["proceed", "restart"]);
        let (mut person, _) = person(true, &["", "p", "1", "proceed"]);
        assert_eq!(person.pick("What now?", &ways, First::InFull), Some(0));
        assert_eq!(person.pick("What now?", &ways, First::InFull), None, "all was used up");
        let (mut person, _) = self::person(true, &["r", "", "pro"]);
        assert_eq!(person.pick("What now?", &ways, First::InFull), Some(1));
        assert_eq!(person.pick("What now?", &ways, First::ByDefault), Some(0));
        assert_eq!(person.pick("What now?", &ways, First::ByDefault), Some(0));
    }

    #[test]
    fn the_end_of_the_input_answers_nothing_and_ends_the_asking() {
        let (mut person, _) = person(true, &["x"]);
        assert_eq!(person.choose("Which?", &words(&["one"])), None);
        assert!(!person.is_there());
        assert_eq!(person.pick("Go?", &words(&["yes"]), First::ByDefault), None);
    }

    #[test]
    fn an_option_is_known_by_its_name_its_number_or_its_beginning() {
        let options = words(&["approve", "revise", "reject"]);
        for (typed, meant) in [
            ("approve", Some("approve")),
            ("REJECT", Some("reject")),
            ("2", Some("revise")),
            ("a", Some("approve")),
            ("re", None),
            ("rev", Some("revise")),
            ("", None),
            ("0", None),
            ("4", None),
        ] {
            assert_eq!(option(typed, &options).map(String::as_str), meant, "{typed}");
        }
    }

    #[test]
    fn a_question_that_another_person_answered_is_withdrawn() {
        let (mut person, _) = person(true, &["approve"]);
        let options = words(&["approve"]);
        assert_eq!(person.ask("Go on?", &options, &[], &|| false), Asked::Withdrawn);
        let (mut person, _) = self::person(true, &["nonsense", "", "a"]);
        assert_eq!(person.ask("Go on?", &options, &[], &|| true), Asked::ShowAgain);
        let said = person.ask("Go on?", &options, &[], &|| true);
        assert_eq!(said, Asked::Said("approve".to_owned()));
        let (mut person, _) = self::person(true, &["c looks right", "v"]);
        let keys = ['v', 'c'];
        let said = person.ask("Go on?", &options, &keys, &|| true);
        assert_eq!(said, Asked::Key('c', "looks right".to_owned()));
        let said = person.ask("Go on?", &options, &keys, &|| true);
        assert_eq!(said, Asked::Key('v', String::new()));
    }

    #[test]
    fn ci_is_no_person() {
        let is = |text: &str| is_ci(Some(text.as_ref()));
        assert!(is("true") && is("1"));
        assert!(!is("") && !is("0") && !is("false") && !is_ci(None));
    }
}
