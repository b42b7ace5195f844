//! One question, answered with yes or no, where there is somebody to ask.

use std::io::BufRead as _;

use crate::{
    cmd::Context,
    error::Error,
    session::{Driving, can_ask},
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
pub(crate) fn confirm(cx: &mut Context, yes: bool, question: &str) -> Result<Answer, Error> {
    if yes {
        return Ok(Answer::Yes);
    }
    if !can_ask(cx, &Driving::default()) {
        return Ok(Answer::Nobody);
    }
    write!(cx.err, "{question} [y/N] ")?;
    cx.err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    let is_yes = matches!(answer.trim(), "y" | "Y" | "yes");
    Ok(if is_yes { Answer::Yes } else { Answer::No })
}
