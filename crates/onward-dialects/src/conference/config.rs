//! What conference.md asks for: goal, mode, counts, budgets, target.
//!
//! Invariant: a value that cannot be read is absent, never a default, and a template's placeholder
//! in braces is no value. What must not be absent is named by [`Settings::missing`].

use super::{
    document::{Document, Pair},
    words::{self, Spelling, Spellings},
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
    /// The search space is to be divided, not free for everybody.
    pub assigned: bool,
    /// What is there and not exact: good enough to go on by, not to start with.
    pub vague: Vec<&'static str>,
    /// Sections that a conference writes to and the file does not have.
    pub missing_sections: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Metric,
    Qualitative,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Maximize,
    Minimize,
}

impl Direction {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Maximize => "maximize",
            Self::Minimize => "minimize",
        }
    }

    /// How much better `new` is than `old`; negative when it is worse.
    pub fn gain(self, new: f64, old: f64) -> f64 {
        match self {
            Self::Maximize => new - old,
            Self::Minimize => old - new,
        }
    }
}

/// When the metric is good enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    pub relation: Relation,
    pub value: f64,
    /// It was given in percent.
    pub percent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Target {
    pub fn is_met_by(self, value: f64) -> bool {
        match self.relation {
            Relation::Above => value > self.value,
            Relation::AtLeast => value >= self.value,
            Relation::Below => value < self.value,
            Relation::AtMost => value <= self.value,
        }
    }
}

/// How many iterations a researcher has in a round. Real files say `4 (round 1-2), 3 (round 3)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    usual: u32,
    /// First round, last round, iterations.
    exceptions: Vec<(u32, u32, u32)>,
}

impl Schedule {
    pub fn in_round(&self, round: u32) -> u32 {
        let here =
            self.exceptions.iter().find(|(first, last, _)| (*first..=*last).contains(&round));
        here.map_or(self.usual, |(_, _, count)| *count)
    }

    fn parse(text: &str) -> Option<Self> {
        let (first, _) = words::whole_and_rest(text)?;
        let mut schedule = Self { usual: first, exceptions: Vec::new() };
        for part in text.split([',', ';']) {
            let Some((count, rest)) = words::whole_and_rest(part) else { continue };
            let lower = rest.to_ascii_lowercase();
            let Some(at) = lower.find("round") else { continue };
            let rounds = lower[at + "round".len()..].trim_start_matches(['s', ' ']);
            let Some((from, rest)) = words::whole_and_rest(rounds) else { continue };
            let rest = rest.trim_start();
            let last = rest.strip_prefix(['-', '–']).and_then(|it| words::whole_and_rest(it));
            schedule.exceptions.push((from, last.map_or(from, |(last, _)| last), count));
        }
        Some(schedule)
    }
}

impl Settings {
    pub fn read(document: &Document, met: &mut Spellings) -> Self {
        let pairs = document.pairs();
        let mut look = Look { document, pairs: &pairs, met };
        let goal = look.prose("Goal", &["goal"]);
        let mode = look.prose("Mode", &["mode"]).and_then(|text| mode(&text));
        let target = look.value("success metric", &["target"]).and_then(target);
        let direction = look.value("success metric", &["direction"]).and_then(direction);
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
        let evaluator = evaluator.map(|text| words::out_of_code(text).to_owned());
        Self {
            metric: look.value("success metric", &["metric"]).map(str::to_owned),
            direction: direction.or_else(|| target.map(direction_of)),
            target: target.map(|target: UnresolvedTarget| target.resolve(direction)),
            count: look.whole("researchers", &COUNT),
            iterations: look.schedule(),
            max_rounds: look.whole("researchers", &ROUNDS),
            max_iterations: look.whole("constraints", &["max total iterations"]),
            time_budget_ms: look.value("constraints", &["time budget"]).and_then(words::span_ms),
            noise: look.value("noise handling", &noise_keys).and_then(words::number),
            noise_runs: look.whole("noise handling", &["noise runs"]),
            devils_advocate: devil.and_then(words::yes_or_no),
            researcher_timeout_ms: limit.and_then(words::span_ms),
            assigned: strategy.to_lowercase().starts_with("assigned"),
            evaluator: evaluator.filter(|text| !text.is_empty() && mode != Some(Mode::Qualitative)),
            changes_code: said
                .and_then(words::yes_or_no)
                .unwrap_or_else(|| speaks_of_code(&allowed)),
            vague: look.vague(),
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

/// Looking for a value in the place where it belongs first, then anywhere.
struct Look<'a, 'm> {
    document: &'a Document,
    pairs: &'a [Pair<'a>],
    met: &'m mut Spellings,
}

impl<'a> Look<'a, '_> {
    fn value(&mut self, section: &str, keys: &[&str]) -> Option<&'a str> {
        let named = |pair: &&Pair<'a>| keys.contains(&pair.key.as_str()) && is_value(pair.value);
        let title = |pair: &Pair<'a>| pair.section.to_lowercase().replace('-', " ");
        let here = self.pairs.iter().filter(named).find(|pair| title(pair) == section);
        let pair = here.or_else(|| self.pairs.iter().find(named))?;
        if pair.bare {
            self.met.insert(Spelling::BareKeys);
        }
        Some(pair.value)
    }

    fn whole(&mut self, section: &str, keys: &[&str]) -> Option<u32> {
        let value = self.value(section, keys)?;
        let (number, rest) = words::whole_and_rest(value)?;
        if !rest.trim().is_empty() {
            self.met.insert(Spelling::TextAfterNumber);
        }
        Some(number)
    }

    fn schedule(&mut self) -> Option<Schedule> {
        self.whole("researchers", &["iterations per round"])?;
        Schedule::parse(self.value("researchers", &["iterations per round"])?)
    }

    fn vague(&mut self) -> Vec<&'static str> {
        let mut is_vague = |keys: &[&str], exact: fn(&str) -> bool| {
            self.value("researchers", keys).is_some_and(|text| !exact(text))
        };
        let asked = [
            (is_vague(&COUNT, is_exact), "exact researcher count"),
            (is_vague(&["iterations per round"], is_exact_schedule), "exact iterations per round"),
            (is_vague(&ROUNDS, is_exact), "exact max rounds"),
        ];
        asked.into_iter().filter(|(vague, _)| *vague).map(|(_, name)| name).collect()
    }

    /// A section's text, or the value of a key.
    fn prose(&mut self, title: &str, keys: &[&str]) -> Option<String> {
        let section = self.document.section(title).map(|section| without_comments(section.body));
        let section = section.filter(|text| is_value(text));
        section.or_else(|| self.value(&title.to_lowercase(), keys).map(str::to_owned))
    }
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        kept.push_str(&rest[..start]);
        rest = rest[start..].find("-->").map_or("", |end| &rest[start + end + "-->".len()..]);
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

/// Not empty, and not a placeholder of the template.
fn is_value(text: &str) -> bool {
    let text = text.trim();
    let is_placeholder = text.starts_with('{') && text.ends_with('}');
    !text.is_empty() && !is_placeholder
}

fn mode(text: &str) -> Option<Mode> {
    let first = text.trim_start_matches(['*', '`', '-', ' ']).to_lowercase();
    match first.split(|c: char| !c.is_alphabetic()).next() {
        Some("metric") => Some(Mode::Metric),
        Some("qualitative") => Some(Mode::Qualitative),
        Some(_) | None => None,
    }
}

fn direction(text: &str) -> Option<Direction> {
    let lower = text.to_lowercase();
    let starts = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
    if starts(&["max", "higher", "increase"]) {
        Some(Direction::Maximize)
    } else if starts(&["min", "lower", "decrease", "reduce"]) {
        Some(Direction::Minimize)
    } else {
        None
    }
}

/// A target whose relation may depend on the direction.
#[derive(Clone, Copy)]
struct UnresolvedTarget {
    relation: Option<Relation>,
    value: f64,
    percent: bool,
}

impl UnresolvedTarget {
    fn resolve(self, direction: Option<Direction>) -> Target {
        let by_direction = match direction {
            Some(Direction::Minimize) => Relation::AtMost,
            Some(Direction::Maximize) | None => Relation::AtLeast,
        };
        let Self { relation, value, percent } = self;
        Target { relation: relation.unwrap_or(by_direction), value, percent }
    }
}

fn direction_of(target: UnresolvedTarget) -> Direction {
    match target.relation {
        Some(Relation::Below | Relation::AtMost) => Direction::Minimize,
        Some(Relation::Above | Relation::AtLeast) | None => Direction::Maximize,
    }
}

fn target(text: &str) -> Option<UnresolvedTarget> {
    const RELATIONS: [(&str, Relation); 14] = [
        (">=", Relation::AtLeast),
        ("=>", Relation::AtLeast),
        ("≥", Relation::AtLeast),
        ("at least", Relation::AtLeast),
        ("<=", Relation::AtMost),
        ("=<", Relation::AtMost),
        ("≤", Relation::AtMost),
        ("at most", Relation::AtMost),
        (">", Relation::Above),
        ("above", Relation::Above),
        ("over", Relation::Above),
        ("<", Relation::Below),
        ("below", Relation::Below),
        ("under", Relation::Below),
    ];
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '"'));
    let lower = text.to_lowercase();
    let found = RELATIONS.iter().find(|(word, _)| lower.starts_with(word));
    let amount = found.map_or(lower.as_str(), |(word, _)| &lower[word.len()..]);
    let (value, rest) = words::number_and_rest(amount.trim_start_matches(['=', ' ']))?;
    let percent = rest.trim_start().starts_with('%');
    Some(UnresolvedTarget { relation: found.map(|(_, relation)| *relation), value, percent })
}

const COUNT: [&str; 3] = ["count", "researchers", "researcher count"];
const ROUNDS: [&str; 2] = ["max rounds", "rounds"];
/// How the one who doubts is called, with and without the template's other name for it.
const DEVIL: [&str; 5] = [
    "devil's advocate",
    "devils advocate",
    "critic / devil's advocate",
    "critic/devil's advocate",
    "critic",
];

/// One number and nothing else.
fn is_exact(text: &str) -> bool {
    let text = text.trim().trim_matches('`');
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The same, or a number for each of some rounds.
fn is_exact_schedule(text: &str) -> bool {
    let of_rounds = |part: &str| {
        let (number, rest) = part.trim().split_once(' ').unwrap_or((part.trim(), ""));
        let rest = rest.trim();
        is_exact(number) && (rest.is_empty() || rest.to_lowercase().starts_with("(round"))
    };
    text.split([',', ';']).all(of_rounds)
}

/// Whether the allowed changes are changes of code. Prompts and settings alone need no worktree.
fn speaks_of_code(allowed: &str) -> bool {
    const WORDS: [&str; 8] = [
        "code",
        "codebase",
        "implementation",
        "implementations",
        "source",
        "sources",
        "refactoring",
        "src",
    ];
    const ENDINGS: [&str; 12] =
        [".c", ".cc", ".cpp", ".go", ".h", ".java", ".js", ".kt", ".py", ".rb", ".rs", ".ts"];
    let lower = allowed.to_lowercase();
    let mut tokens = lower.split(|c: char| c.is_whitespace() || ",;()`\"'".contains(c));
    tokens.any(|token| {
        let token = token.trim_end_matches(['.', ':']);
        let mut parts = token.split(['/', '-']);
        parts.any(|part| WORDS.contains(&part))
            || ENDINGS.iter().any(|ending| token.ends_with(ending))
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
    fn a_round_may_have_its_own_number_of_iterations() {
        let schedule = read(WHOLE).0.iterations.unwrap();
        assert_eq!([1, 2, 3, 4].map(|round| schedule.in_round(round)), [4, 4, 3, 4]);
    }

    #[test]
    fn bare_keys_are_read_and_reported() {
        let text = "goal: Faster\nmode: qualitative\ncount: 2\nmax_rounds: 3\n\
                    ## Shared Knowledge\n## Conference Log\n";
        let (settings, met) = read(text);
        assert_eq!(settings.missing(), Vec::<&str>::new());
        assert_eq!(settings.mode, Some(Mode::Qualitative));
        assert_eq!(met, [Spelling::BareKeys].into());
    }

    #[test]
    fn each_needed_field_is_missed_by_name() {
        for (gone, name) in [
            ("Steep better tea.\n", "goal"),
            ("metric\n\n", "mode"),
            ("- **Count:** 3\n", "researcher count"),
            ("- **Max rounds:** 5\n", "max rounds"),
            ("## Shared Knowledge\n", "section Shared Knowledge"),
            ("## Conference Log\n", "section Conference Log"),
        ] {
            let (settings, _) = read(&WHOLE.replacen(gone, "", 1));
            assert_eq!(settings.missing(), [name], "without {gone}");
        }
    }

    #[test]
    fn a_placeholder_is_no_value() {
        let (settings, _) = read(&WHOLE.replace("\nmetric\n", "\n{metric | qualitative}\n"));
        assert_eq!(settings.missing(), ["mode"]);
        let (settings, _) = read(&WHOLE.replace("**Count:** 3", "**Count:** three"));
        assert_eq!(settings.missing(), ["researcher count"]);
    }

    #[test]
    fn a_target_says_its_relation_or_takes_it_from_the_direction() {
        for (text, met, unmet) in [
            ("< 50ms", 49.0, 50.0),
            ("> 95%", 95.1, 95.0),
            ("≤ 3", 3.0, 3.1),
            ("at least 8/10", 8.0, 7.0),
            ("`>= 0.9`", 0.9, 0.8),
        ] {
            let target = target(text).unwrap().resolve(None);
            assert!(target.is_met_by(met) && !target.is_met_by(unmet), "{text}");
        }
        let bare = target("50").unwrap();
        assert!(bare.resolve(Some(Direction::Minimize)).is_met_by(50.0));
        assert!(!bare.resolve(Some(Direction::Minimize)).is_met_by(51.0));
        assert!(bare.resolve(Some(Direction::Maximize)).is_met_by(51.0));
        assert!(target("as good as it gets").is_none());
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

    #[test]
    fn a_pending_confirmation_is_seen() {
        let gate = "## Pre-Flight Gate\n- **Final confirmation:** pending — ask first\n";
        assert!(read(&format!("{WHOLE}{gate}")).0.unconfirmed);
        assert!(!read(&format!("{WHOLE}{}", gate.replace("pending", "given"))).0.unconfirmed);
    }
}
