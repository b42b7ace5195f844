//! Every situation against every agent program: what it is, what becomes of the run, and what the
//! journal says. The programs are played by scripts that print small samples of the shapes that
//! the real ones print.
//!
//! Invariant: no cell is empty. A program's cells are one `match` without a rest, so a new
//! situation does not compile before each program has a cell for it; and a program that onward
//! knows without cells fails a test. A program that cannot be in a situation says why.

mod aider;
mod check;
mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;
mod play;
mod qwen;

use onward_engine::agents;

use check::{check, fenced, stopped};

onward_core::listed! {
    /// What an agent can meet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Situation {
        LimitWithReset,
        LimitWithoutReset,
        /// As a program says it that was not asked for JSON.
        LimitInPlainWords,
        Status529,
        Status500,
        Status401,
        Overflow,
        StreamDropped,
        BudgetSpent,
        TooManyTurns,
        SchemaRefused,
        ToolDenied,
        Interrupt,
        Terminate,
        Kill,
        UnknownSession,
        UsedSession,
        SecondWriter,
    }
}

impl Situation {
    /// Whether it is of the provider's making; the rest is how programs end, and their sessions.
    fn is_of_provider(self) -> bool {
        match self {
            Self::LimitWithReset
            | Self::LimitWithoutReset
            | Self::LimitInPlainWords
            | Self::Status529
            | Self::Status500
            | Self::Status401
            | Self::Overflow
            | Self::StreamDropped
            | Self::BudgetSpent => true,
            Self::TooManyTurns
            | Self::SchemaRefused
            | Self::ToolDenied
            | Self::Interrupt
            | Self::Terminate
            | Self::Kill
            | Self::UnknownSession
            | Self::UsedSession
            | Self::SecondWriter => false,
        }
    }
}

/// A situation and a program.
pub(crate) enum Cell {
    Seen(Sample),
    /// The program lets two work in one session: onward does not.
    Fenced,
    /// Why the program cannot be in this situation.
    Never(&'static str),
}

/// How the program that plays ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Code(i32),
    Signal(&'static str),
    /// It does not: the time of the step runs out.
    Never,
    /// When it is told to, by a signal that it writes down. It runs a tool meanwhile.
    WhenTold,
}

/// What it prints to standard output and standard error, how it ends, and the cause that is.
pub(crate) struct Sample {
    out: String,
    err: &'static str,
    end: End,
    cause: &'static str,
}

/// What it prints to standard output and its exit code.
pub(crate) fn seen(out: impl Into<String>, code: i32, cause: &'static str) -> Cell {
    ended(out, End::Code(code), cause)
}

pub(crate) fn ended(out: impl Into<String>, end: End, cause: &'static str) -> Cell {
    Cell::Seen(Sample { out: out.into(), err: "", end, cause })
}

/// What it says on standard error alone.
pub(crate) fn complained(err: &'static str, code: i32, cause: &'static str) -> Cell {
    Cell::Seen(Sample { out: String::new(), err, end: End::Code(code), cause })
}

pub(crate) const PLAIN_LIMIT: &str =
    "You've hit your session limit \u{b7} resets 9pm (Europe/Stockholm)";

/// One program: its name, where it keeps a session, its answer to a task, its answer with a result.
pub(crate) struct Program {
    name: &'static str,
    transcript: &'static str,
    well: String,
    result: String,
    cell: fn(Situation) -> Cell,
    /// Other words for a situation.
    also: Vec<(&'static str, Cell)>,
}

/// All, in the order of the adapters.
const PROGRAMS: [fn() -> Program; 7] = [
    claude::program,
    codex::program,
    gemini::program,
    opencode::program,
    qwen::program,
    copilot::program,
    aider::program,
];

#[test]
fn every_program_that_onward_knows_has_its_cells() {
    let known = agents::ADAPTERS.into_iter().filter_map(|it| it.card().program);
    let played: Vec<&str> = PROGRAMS.iter().map(|program| program().name).collect();
    assert_eq!(known.collect::<Vec<_>>(), played);
}

/// Walks the cells of one half.
fn walk(program: &Program, of_provider: bool) {
    for situation in Situation::ALL.into_iter().filter(|it| it.is_of_provider() == of_provider) {
        let what = format!("{}: {situation:?}", program.name);
        match (program.cell)(situation) {
            Cell::Seen(sample) => check(program, Some(situation), &what, &sample),
            Cell::Fenced => fenced(program, &what),
            Cell::Never(why) => assert!(!why.is_empty(), "{what}"),
        }
    }
}

/// Walks what a program says in other words.
fn walk_also(program: &Program) {
    for (what, cell) in &program.also {
        let what = format!("{}: {what}", program.name);
        let Cell::Seen(sample) = cell else { panic!("{what} is a sample") };
        check(program, None, &what, sample);
    }
}

#[test]
fn four_programs_are_stopped_by_their_own_signals_and_go_on_in_their_sessions() {
    PROGRAMS[..4].iter().for_each(|program| stopped(&program()));
}

#[test]
fn the_other_programs_are_stopped_by_their_own_signals_and_go_on_in_their_sessions() {
    PROGRAMS[4..].iter().for_each(|program| stopped(&program()));
}

#[test]
fn claude_and_its_provider() {
    walk(&claude::program(), true);
}

#[test]
fn claude_and_its_ends() {
    walk(&claude::program(), false);
    walk_also(&claude::program());
}

#[test]
fn codex_and_its_provider() {
    walk(&codex::program(), true);
}

#[test]
fn codex_and_its_ends() {
    walk(&codex::program(), false);
    walk_also(&codex::program());
}

#[test]
fn gemini_and_its_provider() {
    walk(&gemini::program(), true);
}

#[test]
fn gemini_and_its_ends() {
    walk(&gemini::program(), false);
    walk_also(&gemini::program());
}

#[test]
fn opencode_and_its_provider() {
    walk(&opencode::program(), true);
}

#[test]
fn opencode_and_its_ends() {
    walk(&opencode::program(), false);
    walk_also(&opencode::program());
}

#[test]
fn qwen_and_its_provider() {
    walk(&qwen::program(), true);
}

#[test]
fn qwen_and_its_ends() {
    walk(&qwen::program(), false);
    walk_also(&qwen::program());
}

#[test]
fn copilot_and_its_provider() {
    walk(&copilot::program(), true);
}

#[test]
fn copilot_and_its_ends() {
    walk(&copilot::program(), false);
    walk_also(&copilot::program());
}

#[test]
fn aider_and_its_provider() {
    walk(&aider::program(), true);
}

#[test]
fn aider_and_its_ends() {
    walk(&aider::program(), false);
    walk_also(&aider::program());
}

#[test]
fn a_session_is_found_where_the_user_has_the_program_keep_it() {
    let transcript = "../moved/projects/p/SESSION.jsonl";
    let program = Program { transcript, ..claude::program() };
    let Cell::Seen(sample) = (program.cell)(Situation::SchemaRefused) else { panic!() };
    let stage = play::stage(&program, &sample, ", result: { schema: s.json }");
    let mut command = stage.command("run w.yaml --yes");
    let status = command.env("CLAUDE_CONFIG_DIR", stage.path("moved")).status().unwrap();
    assert_eq!(status.code(), Some(0), "{}", stage.journal());
    let starts = stage.of("attempt.started");
    assert_eq!(starts[1]["continues"], serde_json::json!(true), "{}", starts[1]);
}
