//! What conference.md asks for: goal, mode, counts, budgets, target.
//!
//! Invariant: a value that cannot be read is absent, never a default, and a template's placeholder
//! in braces is no value. What must not be absent is named by [`Settings::missing`].

use super::spelling::{Spelling, Spellings};
use crate::{
    kit::{
        markdown::{Document, Pair, is_value, out_of_code, pair_in, without_comments},
        number,
    },
    rules::conference::measure::{Direction, Schedule, Target},
};

#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the answers of a form, each on its own")]
pub struct Settings {
    pub goal: Option<String>,
    pub mode: Option<Mode>,
    pub metric: Option<String>,
    pub target: Option<Target>,
    pub direction: Option<Direction>,
    pub count: Option<u32>,
    pub iterations: Option<Schedule>,
    pub max_rounds: Option<u32>,
    pub max_iterations: Option<u32>,
    pub time_budget_ms: Option<u64>,
    pub noise: Option<f64>,
    /// Researchers may change code, as far as the words of the file can tell.
    pub changes_code: bool,
    /// The start gate still waits for a person.
    pub unconfirmed: bool,
    /// A person has passed it.
    pub confirmed: bool,
    /// The command that prints the metric.
    pub evaluator: Option<String>,
    /// How often it is asked; the median counts.
    pub noise_runs: Option<u32>,
    /// One researcher doubts what the others believe.
    pub devils_advocate: Option<bool>,
    /// What one iteration of a researcher may take.
    pub researcher_timeout_ms: Option<u64>,
    /// The search space is to be divided among the researchers.
    pub assigned: bool,
    /// Sections that a conference writes to and the file does not have.
    pub missing_sections: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Metric,
    Qualitative,
}

impl Settings {
    pub fn read(document: &Document, met: &mut Spellings) -> Self {
        let pairs = document.pairs();
        let mut look = Look { document, pairs: &pairs, met };
        let goal = look.prose("Goal", &["goal"]);
        let mode = look.prose("Mode", &["mode"]).and_then(|text| mode(&text));
        let direction = look.value("success metric", &["direction"]).and_then(Direction::parse);
        let target = look.value("success metric", &["target"]);
        let target = target.and_then(|text| Target::parse(text, direction));
        let allowed = look.prose("Allowed Changes", &["allowed changes"]).unwrap_or_default();
        let said = look.value("search space", &["worktrees", "worktree mode", "code changes"]);
        let final_word = look.value("pre flight gate", &["final confirmation"]);
        let final_word = final_word.map(str::to_lowercase).unwrap_or_default();
        let devil = look.value("researchers", &DEVIL);
        let strategy = look.value("search space partitioning", &["strategy"]).unwrap_or_default();
        let noise_keys = ["noise threshold", "min consensus delta"];
        let limit = look.value("constraints", &["researcher timeout"]);
        let evaluator_keys = ["evaluator", "evaluator command", "evaluation command"];
        let evaluator = look.value("success metric", &evaluator_keys);
        let evaluator = evaluator.map(|text| out_of_code(text).to_owned());
        Self {
            metric: look.value("success metric", &["metric"]).map(str::to_owned),
            direction: direction.or_else(|| target.map(Target::direction)),
            target,
            count: look.whole("researchers", &COUNT),
            iterations: look.schedule(),
            max_rounds: look.whole("researchers", &ROUNDS),
            max_iterations: look.whole("constraints", &["max total iterations"]),
            time_budget_ms: look.value("constraints", &["time budget"]).and_then(number::span_ms),
            noise: look.value("noise handling", &noise_keys).and_then(number::number),
            noise_runs: look.whole("noise handling", &["noise runs"]),
            devils_advocate: devil.and_then(number::yes_or_no),
            researcher_timeout_ms: limit.and_then(number::span_ms),
            assigned: strategy.to_lowercase().starts_with("assigned"),
            evaluator: evaluator.filter(|text| !text.is_empty() && mode != Some(Mode::Qualitative)),
            changes_code: said
                .and_then(number::yes_or_no)
                .unwrap_or_else(|| speaks_of_code(&allowed)),
            unconfirmed: final_word.starts_with("pending"),
            confirmed: final_word.starts_with("confirmed") || final_word.starts_with("yes"),
            missing_sections: missing_sections(document),
            goal,
            mode,
        }
    }

    /// What a conference cannot go on without and does not say.
    pub fn missing(&self) -> Vec<&'static str> {
        let needed = [
            (self.goal.is_some(), "goal"),
            (self.mode.is_some(), "mode"),
            (self.count.is_some_and(|count| count > 0), "researcher count"),
            (self.max_rounds.is_some_and(|rounds| rounds > 0), "max rounds"),
        ];
        let fields = needed.into_iter().filter(|(there, _)| !there).map(|(_, name)| name);
        fields.chain(self.missing_sections.iter().copied()).collect()
    }

    pub fn direction_or_default(&self) -> Direction {
        self.direction.unwrap_or(Direction::Maximize)
    }

    /// The letters of the researchers that the file asks for.
    pub fn researchers(&self) -> Vec<String> {
        let letters = (b'A'..=b'Z').map(|letter| char::from(letter).to_string());
        letters.take(self.count.unwrap_or(0) as usize).collect()
    }
}

fn missing_sections(document: &Document) -> Vec<&'static str> {
    let sections = [
        ("Shared Knowledge", "section Shared Knowledge"),
        ("Conference Log", "section Conference Log"),
    ];
    let missing = sections.into_iter().filter(|(title, _)| document.section(title).is_none());
    missing.map(|(_, name)| name).collect()
}

/// The values of the file; which spellings were met is remembered.
struct Look<'a, 'm> {
    document: &'a Document,
    pairs: &'a [Pair<'a>],
    met: &'m mut Spellings,
}

impl<'a> Look<'a, '_> {
    fn value(&mut self, section: &str, keys: &[&str]) -> Option<&'a str> {
        let pair = pair_in(self.pairs, section, keys)?;
        if pair.bare {
            self.met.insert(Spelling::BareKeys);
        }
        Some(pair.value)
    }

    fn whole(&mut self, section: &str, keys: &[&str]) -> Option<u32> {
        let value = self.value(section, keys)?;
        let (number, rest) = number::whole_and_rest(value)?;
        if !rest.trim().is_empty() {
            self.met.insert(Spelling::TextAfterNumber);
        }
        Some(number)
    }

    fn schedule(&mut self) -> Option<Schedule> {
        self.whole("researchers", &ITERATIONS)?;
        Schedule::parse(self.value("researchers", &ITERATIONS)?)
    }

    /// A section's text, or the value of a key.
    fn prose(&mut self, title: &str, keys: &[&str]) -> Option<String> {
        let section = self.document.section(title).map(|section| without_comments(section.body));
        let section = section.filter(|text| is_value(text));
        section.or_else(|| self.value(&title.to_lowercase(), keys).map(str::to_owned))
    }
}

fn mode(text: &str) -> Option<Mode> {
    let first = text.trim_start_matches(['*', '`', '-', ' ']).to_lowercase();
    match first.split(|c: char| !c.is_alphabetic()).next() {
        Some("metric") => Some(Mode::Metric),
        Some("qualitative") => Some(Mode::Qualitative),
        Some(_) | None => None,
    }
}

pub const COUNT: [&str; 3] = ["count", "researchers", "researcher count"];
pub const ITERATIONS: [&str; 1] = ["iterations per round"];
pub const ROUNDS: [&str; 2] = ["max rounds", "rounds"];
/// How the one who doubts is called, with and without the template's other name for it.
#[rustfmt::skip]
const DEVIL: [&str; 5] = [
    "devil's advocate", "devils advocate",
    "critic / devil's advocate", "critic/devil's advocate", "critic",
];

/// Whether the allowed changes are changes of code. Prompts and settings alone need no worktree.
fn speaks_of_code(allowed: &str) -> bool {
    const WORDS: &str =
        "code codebase implementation implementations source sources refactoring src";
    const ENDINGS: &str = ".c .cc .cpp .go .h .java .js .kt .py .rb .rs .ts";
    let lower = allowed.to_lowercase();
    let mut tokens = lower.split(|c: char| c.is_whitespace() || ",;()`\"'".contains(c));
    tokens.any(|token| {
        let token = token.trim_end_matches(['.', ':']);
        let mut parts = token.split(['/', '-']);
        parts.any(|part| WORDS.split(' ').any(|word| word == part))
            || ENDINGS.split(' ').any(|ending| token.ends_with(ending))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Settings, Spellings) {
        let mut met = Spellings::new();
        let settings = Settings::read(&Document::read(text.as_bytes()), &mut met);
        (settings, met)
    }

    const WHOLE: &str = "\
# Conference: Tea

## Goal
Steep better tea.

## Mode
metric

## Success Metric
- **Metric:** taste
- **Target:** >= 80
- **Direction:** maximize

## Researchers
- **Count:** 3
- **Iterations per round:** 4 (round 1-2), 3 (round 3)
- **Max rounds:** 5

## Search Space
- **Allowed changes:** leaf, water, time

## Constraints
- **Max total iterations:** 33
- **Time budget:** 2h

## Shared Knowledge

## Conference Log
";

    #[test]
    fn every_section_of_the_file_is_read() {
        let (settings, met) = read(WHOLE);
        assert_eq!(settings.missing(), Vec::<&str>::new());
        assert_eq!(settings.goal.as_deref(), Some("Steep better tea."));
        assert_eq!(settings.mode, Some(Mode::Metric));
        assert_eq!(settings.direction, Some(Direction::Maximize));
        let target = settings.target.unwrap();
        assert!(target.is_met_by(80.0) && !target.is_met_by(79.9));
        assert_eq!(settings.researchers(), ["A", "B", "C"]);
        assert_eq!((settings.max_rounds, settings.max_iterations), (Some(5), Some(33)));
        assert_eq!(settings.time_budget_ms, Some(7_200_000));
        assert!(!settings.changes_code && !settings.unconfirmed);
        assert_eq!(met, [Spelling::TextAfterNumber].into());
    }

    #[test]
    fn a_placeholder_is_no_value() {
        let (settings, _) = read(&WHOLE.replace("\nmetric\n", "\n{metric | qualitative}\n"));
        assert_eq!(settings.missing(), ["mode"]);
        let (settings, _) = read(&WHOLE.replace("**Count:** 3", "**Count:** three"));
        assert_eq!(settings.missing(), ["researcher count"]);
    }

    #[test]
    fn a_missing_direction_is_that_of_the_target() {
        let text = WHOLE.replace("- **Direction:** maximize\n", "").replace(">= 80", "< 80");
        assert_eq!(read(&text).0.direction, Some(Direction::Minimize));
    }

    #[test]
    fn code_is_told_from_prompts_and_settings() {
        for code in ["The sorting implementation", "source files", "src/parse", "`fast.rs`, docs"] {
            assert!(speaks_of_code(code), "{code}");
        }
        for other in ["Prompt wording, examples", "box dimensions", "Unicode rules", ""] {
            assert!(!speaks_of_code(other), "{other}");
        }
        let said = WHOLE.replace("## Constraints", "- **Code changes:** yes\n\n## Constraints");
        assert!(read(&said).0.changes_code);
    }
}
