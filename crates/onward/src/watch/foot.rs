//! The last rows of the screen: what can be typed now, and what the last key came to.
//!
//! Invariant: it is one row, but for a gate that is answered. There the question stands in full, as
//! far as the screen has room for it, above the line that is typed.

use crate::{
    diagnostic::printable,
    style::{DIM, cut, wrap},
};

use super::{Answering, Mode};

/// A question has so many rows; the pane and `v` show the rest.
const QUESTION_ROWS: usize = 4;

/// `said` = what the last key came to.
pub(super) fn lines(mode: &Mode, filter: &str, said: &str, columns: usize) -> Vec<String> {
    let one = match mode {
        Mode::Answer(at) => return answering(at, said, columns),
        Mode::Filter => format!("filter: {filter}_   Enter keeps it, Esc clears it"),
        Mode::Pause => "Pause the run? Running steps end first. [y/N]".to_owned(),
        Mode::Help | Mode::Text(_) => "any key goes back".to_owned(),
        Mode::Browse | Mode::Inside(_) if !said.is_empty() => said.to_owned(),
        Mode::Inside(_) => {
            "j k scroll  g G first, last  Esc back  o log  d why  a answer  ? help  q quit"
                .to_owned()
        }
        Mode::Browse if !filter.is_empty() => {
            format!(
                "filter: {filter}  Esc clears it, / changes it  j k move  Enter in  ? help  q quit"
            )
        }
        // It fits into 80 columns; `?` shows all keys.
        Mode::Browse => {
            "j k move  Enter in  / filter  a answer  o log  d why  ? help  q quit".to_owned()
        }
    };
    vec![format!("{DIM}{}{DIM:#}", cut(&one, columns))]
}

fn answering(at: &Answering, said: &str, columns: usize) -> Vec<String> {
    let Answering { gate, typed, comment } = at;
    let question = printable(gate.prompt.trim().lines().next().unwrap_or_default());
    let question = wrap(&format!("{}: {question}", gate.step), Some(columns), 0, 2);
    let rows = question.lines().take(QUESTION_ROWS).map(|row| cut(row, columns));
    let mut lines: Vec<String> = rows.collect();
    let options = gate.options.iter().enumerate();
    let options: Vec<String> =
        options.map(|(at, option)| format!("{} {}", at + 1, printable(option))).collect();
    let comment = if comment.is_some() { " with your comment" } else { "" };
    lines.push(cut(&format!("[{}]{comment} > {typed}_", options.join(", ")), columns));
    let keys = "v view  d diff  c TEXT comment  Esc leaves it";
    let last = if said.is_empty() { keys } else { said };
    let last = wrap(last, Some(columns), 0, 2);
    lines.extend(last.lines().take(2).map(|row| format!("{DIM}{}{DIM:#}", cut(row, columns))));
    lines
}
