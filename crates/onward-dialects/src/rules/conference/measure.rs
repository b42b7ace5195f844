//! What is measured: the direction, the target, and how many iterations a round has for it.
//!
//! Invariant: text that does not say it plainly says nothing.

use crate::kit::number;

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

    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let starts = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
        if starts(&["max", "higher", "increase"]) {
            Some(Self::Maximize)
        } else {
            let is_less = starts(&["min", "lower", "decrease", "reduce"]);
            is_less.then_some(Self::Minimize)
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

    /// The way that it lies.
    pub fn direction(self) -> Direction {
        match self.relation {
            Relation::Below | Relation::AtMost => Direction::Minimize,
            Relation::Above | Relation::AtLeast => Direction::Maximize,
        }
    }

    /// A number alone is to be reached in the direction that is given otherwise.
    pub fn parse(text: &str, direction: Option<Direction>) -> Option<Self> {
        let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '`' | '"'));
        let lower = text.to_lowercase();
        let found = RELATIONS.iter().find(|(word, _)| lower.starts_with(word));
        let amount = found.map_or(lower.as_str(), |(word, _)| &lower[word.len()..]);
        let (value, rest) = number::number_and_rest(amount.trim_start_matches(['=', ' ']))?;
        let by_direction = match direction {
            Some(Direction::Minimize) => Relation::AtMost,
            Some(Direction::Maximize) | None => Relation::AtLeast,
        };
        let relation = found.map_or(by_direction, |(_, relation)| *relation);
        Some(Self { relation, value, percent: rest.trim_start().starts_with('%') })
    }
}

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

    pub fn parse(text: &str) -> Option<Self> {
        let (first, _) = number::whole_and_rest(text)?;
        let mut schedule = Self { usual: first, exceptions: Vec::new() };
        for part in text.split([',', ';']) {
            let Some((count, rest)) = number::whole_and_rest(part) else { continue };
            let lower = rest.to_ascii_lowercase();
            let Some(at) = lower.find("round") else { continue };
            let rounds = lower[at + "round".len()..].trim_start_matches(['s', ' ']);
            let Some((from, rest)) = number::whole_and_rest(rounds) else { continue };
            let rest = rest.trim_start();
            let last = rest.strip_prefix(['-', '–']).and_then(|it| number::whole_and_rest(it));
            schedule.exceptions.push((from, last.map_or(from, |(last, _)| last), count));
        }
        Some(schedule)
    }

    /// The iterations of one researcher in so many rounds.
    pub fn total(&self, rounds: u32) -> u64 {
        let end = u64::from(rounds) + 1;
        let borders = self
            .exceptions
            .iter()
            .flat_map(|(first, last, _)| [u64::from(*first), u64::from(*last) + 1]);
        let mut borders: Vec<u64> =
            borders.chain([1, end]).filter(|it| (1..=end).contains(it)).collect();
        borders.sort_unstable();
        let spans = borders.iter().zip(borders.iter().skip(1));
        let of = |(from, to): (&u64, &u64)| {
            let here = u32::try_from(*from).map_or(0, |round| self.in_round(round));
            (to - from).saturating_mul(u64::from(here))
        };
        spans.map(of).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_may_have_its_own_number_of_iterations() {
        let schedule = Schedule::parse("4 (round 1-2), 3 (round 3)").unwrap();
        assert_eq!([1, 2, 3, 4].map(|round| schedule.in_round(round)), [4, 4, 3, 4]);
        assert_eq!([0, 1, 3, 5].map(|rounds| schedule.total(rounds)), [0, 4, 11, 19]);
        let all = u64::from(u32::MAX);
        assert_eq!(schedule.total(u32::MAX), all * 4 - 1, "at once, however many there are");
        assert_eq!(Schedule::parse("5 (rounds 2-4294967295)").unwrap().total(u32::MAX), all * 5);
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
            let target = Target::parse(text, None).unwrap();
            assert!(target.is_met_by(met) && !target.is_met_by(unmet), "{text}");
        }
        let bare = |direction| Target::parse("50", Some(direction)).unwrap();
        assert!(bare(Direction::Minimize).is_met_by(50.0));
        assert!(!bare(Direction::Minimize).is_met_by(51.0));
        assert!(bare(Direction::Maximize).is_met_by(51.0));
        assert!(Target::parse("as good as it gets", None).is_none());
    }
}
