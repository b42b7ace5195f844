//! What to try next, in words: the sentences of hints whose commands depend on more than the error.
//!
//! Invariant: a command in a hint stands in backticks.

use std::path::PathBuf;

use onward_core::{
    finding::{Finding, RUN_OVER},
    nearest::nearest,
    plan::{Plan, RunInfo},
};

use crate::{command::in_text, meant::Looked, next, session::word};

/// How a plan is confirmed, with all that the resume was asked for.
pub(crate) fn confirming(run: &str, flags: &[String]) -> String {
    let words = flags.iter().map(|it| word(it)).chain(["--yes".to_owned()]);
    let flags: Vec<String> = words.collect();
    format!("look at it with `onward plan {run}`, then `onward resume {run} {}`", flags.join(" "))
}

/// The step that is meant, or some of those that there are.
pub(crate) fn steps_hint(step: &str, known: &[String]) -> String {
    if let Some(near) = nearest(step, known.iter().map(String::as_str)) {
        return format!("did you mean {}?", word(near));
    }
    let some: Vec<&str> = known.iter().take(8).map(String::as_str).collect();
    format!("steps: {}", some.join(", "))
}

/// How the gates that wait are answered; `is_named` = the person named another one.
pub(crate) fn gates_hint(is_named: bool, open: &[String]) -> String {
    let open: Vec<String> = open.iter().map(|it| format!("`onward {it}`")).collect();
    match (open.as_slice(), is_named) {
        ([], false) => "see `onward status`".to_owned(),
        ([], true) => "no gate is open; see `onward status`".to_owned(),
        (_, false) => format!("say which: {}", open.join(", ")),
        (_, true) => format!("what waits: {}", open.join(", ")),
    }
}

/// A hint of a plan. A run of another system is named by its directory, in hints of its own.
pub(crate) fn naming(hint: &str, run: &RunInfo) -> String {
    in_text(&if run.dialect == "onward" { naming_run(hint, &run.id) } else { hint.to_owned() })
}

/// The same for all hints of a plan, for scripts.
pub(crate) fn pasteable(plan: &mut Plan) {
    for finding in &mut plan.findings {
        finding.hint = finding.hint.as_deref().map(|hint| naming(hint, &plan.run));
    }
}

/// A hint whose commands name the run, so that they can be pasted where there are several.
pub(crate) fn naming_run(hint: &str, run: &str) -> String {
    const OF_A_RUN: [&str; 10] = [
        "archive",
        "attach",
        "cancel",
        "log",
        "plan",
        "repair",
        "rescue list",
        "resume",
        "run --again",
        "status",
    ];
    // The one command whose other word comes last.
    let hint = hint.replace("`onward done ", &format!("`onward done {run} "));
    OF_A_RUN.iter().fold(hint, |hint, word| {
        let hint = hint.replace(&format!("`onward {word}`"), &format!("`onward {word} {run}`"));
        hint.replace(&format!("`onward {word} --"), &format!("`onward {word} {run} --"))
    })
}

/// Where else the task may be, and how one is made.
pub(crate) fn another_list(Looked { lists, others, .. }: &Looked) -> String {
    let shown = |it: &PathBuf| word(&it.display().to_string());
    let place = lists.first().map(|it| format!(" --input dir={}", shown(it))).unwrap_or_default();
    let way = others.first().map_or_else(
        || "a new session has a list of its own: name another one with `--tasks`".to_owned(),
        |it| format!("if it is this project's, name it: `onward plan {}`", shown(it)),
    );
    format!(
        "{way}; or make the task from git log and the working tree: `onward run pipeline{place}`"
    )
}

/// Before the command that goes on in spite of what was found.
const ANYWAY: &str = "to continue anyway: ";

/// A hint whose command to go on repeats what was given: without it the command means something
/// else.
pub(crate) fn with_flags(mut hint: String, flags: &[String]) -> String {
    let command = hint.find(ANYWAY).map(|at| at + ANYWAY.len() + 1);
    if let Some(end) = command.and_then(|at| Some(at + hint[at..].find('`')?)) {
        let given: Vec<String> = flags.iter().map(|it| word(it)).collect();
        hint.insert_str(end, &format!(" {}", given.join(" ")));
    }
    hint
}

/// The flags that settle what can be settled with a word.
pub(crate) fn conflicts_hint(findings: &[Finding]) -> String {
    let Some(flags) = next::settling(findings) else {
        // How it is mended is said at once.
        let mut stuck = findings.iter().filter(|it| it.code != RUN_OVER && !it.can_be_accepted());
        let first = stuck.next().and_then(|it| it.hint.clone());
        let remedy = first.filter(|it| stuck.next().is_none() && !it.is_empty());
        return remedy.unwrap_or_else(|| "see `onward plan`".to_owned());
    };
    if flags.is_empty() {
        return "see `onward plan`".to_owned();
    }
    format!("see `onward plan`; {ANYWAY}`onward resume {}`", flags.join(" "))
}
