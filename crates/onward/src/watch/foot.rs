//! The last rows of the screen: what can be typed now, and what the last key came to.
//!
//! Invariant: it is one row where nothing is asked or told. The question of a gate stands in full,
//! as far as the screen has room for it, above the line that is typed.

use ratatui::text::Line;

use crate::{diagnostic::printable, style::DIM};

use super::{Answering, Mode, part::Part};

/// A question has so many rows, the pane and `v` show the rest; and so many all else.
const QUESTION_ROWS: u16 = 4;
const ROWS: u16 = 3;

/// `said` = what the last key came to.
pub(super) fn parts(mode: &Mode, filter: &str, said: &str) -> Vec<Part> {
    let one = match mode {
        Mode::Answer(at) => return answering(at, said),
        Mode::Filter => format!("filter: {filter}_   Enter keeps it, Esc clears it"),
        Mode::Pause => "Pause the run? Running steps end first. [y/N]".to_owned(),
        Mode::Help | Mode::Text(_) => "any key goes back".to_owned(),
        Mode::Browse | Mode::Inside(_) if !said.is_empty() => return vec![told(said)],
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
    vec![Part::cut(Line::styled(one, DIM))]
}

fn told(said: &str) -> Part {
    Part::wrapped(Line::styled(printable(said), DIM)).at_most(ROWS)
}

fn answering(at: &Answering, said: &str) -> Vec<Part> {
    let Answering { gate, typed, comment } = at;
    let question = printable(gate.prompt.trim().lines().next().unwrap_or_default());
    let options = gate.options.iter().enumerate();
    let options: Vec<String> =
        options.map(|(at, option)| format!("{} {}", at + 1, printable(option))).collect();
    let comment = if comment.is_some() { " with your comment" } else { "" };
    let keys = "v view  d diff  c TEXT comment  Esc leaves it";
    vec![
        Part::wrapped(format!("{}: {question}", gate.step)).at_most(QUESTION_ROWS),
        Part::wrapped(format!("[{}]{comment} > {typed}_", options.join(", "))),
        told(if said.is_empty() { keys } else { said }),
    ]
}
