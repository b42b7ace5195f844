//! The configured command line: any program, understood by its exit code, and by the notice of a
//! limit where that is its last word.
//!
//! A command is a list of arguments with the placeholders `{prompt}`, `{model}`, `{system_file}`,
//! `{schema_file}`, `{permissions}` and `{session}`. An argument whose placeholder has no value is
//! left out, and with it the option (`-x`, `--xyz`) right before it.

use onward_core::{evidence::Cause, said::Said};
use serde_json::Value;

use super::{Adapter, Card, Cost, Order, Stream, notice};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Command;

const CARD: Card = Card { cost: Cost::Unknown, closes: false, ..Card::configured("command") };

impl Adapter for Command {
    fn card(&self) -> &Card {
        &CARD
    }

    fn read(&self, from: Stream, lines: &[u8], said: &mut Said) {
        let lines = String::from_utf8_lossy(lines);
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(notice) = notice_in(line) {
                notice::end_with(said, CARD.provider, Cause::UsageLimit, &notice);
            } else if from == Stream::Out {
                // It went on, so that it was not its last word.
                (said.closed, said.limit) = (None, None);
            }
        }
    }
}

/// The notice itself, or JSON of a program that is known to give it as its result.
fn notice_in(line: &str) -> Option<String> {
    if notice::is_limit_notice(line) {
        return Some(line.to_owned());
    }
    let fields: Value = serde_json::from_str(line).ok()?;
    let words = ["result", "response", "message", "error", "answer"].into_iter();
    let mut words = words.filter_map(|name| fields.get(name)?.as_str());
    words.find(|it| notice::is_limit_notice(it)).map(str::to_owned)
}

/// A command with its placeholders filled.
pub(super) fn fill(command: &[String], order: &Order<'_>, session: &str) -> Vec<String> {
    let mut argv: Vec<String> = Vec::with_capacity(command.len());
    for argument in command {
        match filled(argument, order, session) {
            Some(filled) => argv.push(filled),
            None if argv.len() > 1 && argv.last().is_some_and(|it| it.starts_with('-')) => {
                argv.pop();
            }
            None => {}
        }
    }
    argv
}

/// One pass, so that a prompt which contains `{model}` stays as it is.
fn filled(argument: &str, order: &Order<'_>, session: &str) -> Option<String> {
    let values = [
        ("{prompt}", Some(order.prompt)),
        ("{model}", order.model),
        ("{system_file}", order.system_file),
        ("{schema_file}", order.schema_file),
        ("{permissions}", Some(order.permissions.as_str())),
        ("{session}", Some(session)),
    ];
    let mut filled = String::with_capacity(argument.len());
    let mut rest = argument;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((name, value)) = values.iter().find(|(name, _)| rest.starts_with(name)) {
            filled.push_str((*value)?);
            rest = &rest[name.len()..];
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled.push_str(rest);
    Some(filled)
}
