//! One question, answered with yes or no, where there is somebody to ask.

use crate::{
    cmd::Context,
    prompt::{Asked, Person},
    session::Driving,
};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    /// There is nobody, or nobody is to be asked.
    Nobody,
}

/// Asks, unless `--yes` has answered already. Anything but a clear yes is a no.
pub(crate) fn confirm(cx: &Context, yes: bool, question: &str) -> Answer {
    if yes {
        return Answer::Yes;
    }
    let options = ["yes".to_owned(), "no".to_owned()];
    let mut person = Person::at_terminal(cx, &Driving::default());
    match person.ask(question, &options, &|| true) {
        Asked::Said(word) if word == "yes" => Answer::Yes,
        Asked::Said(_) | Asked::ShowAgain | Asked::Withdrawn => Answer::No,
        Asked::NobodyThere => Answer::Nobody,
    }
}
