//! The configured command line: any program, understood by its exit code alone.
//!
//! A command is a list of arguments with the placeholders `{prompt}`, `{model}`, `{system_file}`
//! and `{session}`. An argument whose placeholder has no value is left out, and with it the option
//! (`-x`, `--xyz`) right before it.

use onward_core::said::Said;

use super::{Adapter, Order, Stream};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Command;

impl Adapter for Command {
    fn name(&self) -> &'static str {
        "command"
    }

    fn start(&self, order: &Order<'_>) -> Vec<String> {
        fill(order.command, order, order.session)
    }

    fn go_on(&self, session: &str, order: &Order<'_>) -> Vec<String> {
        fill(order.go_on_command, order, session)
    }

    fn understands(&self) -> bool {
        false
    }

    fn closes(&self) -> bool {
        false
    }

    fn read(&self, _: Stream, _: &[u8], _: &mut Said) {}
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
