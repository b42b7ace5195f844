//! Words of other tools that a person may type here, and the command that does it.

/// What was typed, and what is meant. Sorted by what is meant.
const COMMANDS: &[(&str, &str)] = &[
    ("clean", "archive"),
    ("delete", "archive"),
    ("remove", "archive"),
    ("rm", "archive"),
    ("abort", "cancel"),
    ("kill", "cancel"),
    ("lint", "check"),
    ("validate", "check"),
    ("answer", "decide"),
    ("prune", "gc"),
    ("new", "init"),
    ("ls", "list"),
    ("ps", "list"),
    ("runs", "list"),
    ("history", "log"),
    ("logs", "log"),
    ("tail", "log -f"),
    ("stop", "pause"),
    ("diff", "rescue diff"),
    ("continue", "resume"),
    ("restart", "resume"),
    ("retry", "resume"),
    ("exec", "run"),
    ("start", "run"),
    ("info", "status"),
    ("show", "status"),
    ("restore", "undo"),
    ("explain", "why"),
];

/// The command that a person who typed this one means.
pub(crate) fn command(typed: &str) -> Option<String> {
    let (_, meant) = COMMANDS.iter().find(|(word, _)| *word == typed)?;
    Some(format!("try `onward {meant}`"))
}

/// What a command that takes `[RUN] WORD` was not given, or was given too much of.
const WORDS: &[(&str, &str, &str)] = &[
    ("check", "<FILE>", "`onward init` writes a workflow to start from"),
    ("decide", "[RUN] GATE OPTION", "`onward status` shows the open gates and their options"),
    ("done", "[RUN] STEP", "`onward plan --all` lists the steps"),
    ("rehearse", "<FILE>", "`onward init` writes a workflow to start from"),
    ("rescue diff", "[RUN] N", "N is the number that `onward rescue list` shows"),
    ("rescue show", "[RUN] N", "N is the number that `onward rescue list` shows"),
    ("run", "<FILE>", "`onward init` writes a workflow to start from"),
    ("undo", "[RUN] N", "N is the number that `onward rescue list` shows"),
    ("why", "[RUN] STEP", "`onward plan --all` lists the steps"),
];

/// How a command is called, and where its words come from; `usage` is what the parser says of it.
pub(crate) fn words(usage: &str) -> Option<(String, String)> {
    let (name, words, hint) = WORDS.iter().find(|(name, words, _)| {
        usage.contains(&format!("onward {name} ")) && usage.contains(words)
    })?;
    let words = words.trim_matches(['<', '>']);
    Some((format!("call it as `onward {name} {words}`"), (*hint).to_owned()))
}

/// What does the job of a flag that other tools have.
pub(crate) fn flag(typed: &str) -> Option<&'static str> {
    match typed {
        "--dry-run" | "-n" => {
            Some("`onward check FILE` draws the steps, `onward rehearse FILE` plays them")
        }
        _ => None,
    }
}
