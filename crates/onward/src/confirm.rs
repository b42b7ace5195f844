//! One question, answered with yes or no, where a person is there to answer.

use crate::{
    cmd::Context,
    prompt::{First, Person},
    session::Driving,
};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// No person is there, or none is to be asked.
    NotAsked,
}

/// Asks, unless `--yes` has answered already. Anything but a clear yes is a no.
pub(crate) fn confirm(cx: &Context, yes: bool, question: &str) -> Answer {
    if yes {
        return Answer::Yes;
    }
    let words = ["no".to_owned(), "yes".to_owned()];
    let mut person = Person::at_terminal(cx, &Driving::default());
    if !person.is_there() {
        return Answer::NotAsked;
    }
    match person.pick(question, &words, First::ByDefault) {
        Some(1) => Answer::Yes,
        Some(_) | None => Answer::No,
    }
}
