//! Phases, tiers, and which phase a task belongs to.

use crate::kit::status::bare;

/// `P0` to `P8`, in the order of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Phase(u8);

impl Phase {
    pub const P0: Self = Self(0);
    pub const P6: Self = Self(6);
    pub const P8: Self = Self(8);

    /// Those that have tasks; P8 is the delivery of all of them.
    pub fn working() -> impl DoubleEndedIterator<Item = Self> {
        (0..8).map(Self)
    }

    #[rustfmt::skip]
    const fn row(self) -> (&'static str, &'static str, &'static [&'static str]) {
        match self.0 {
            0 => ("P0", "pre-design",  &["pre-design-brainstorm", "pre-design-feasibility"]),
            1 => ("P1", "design",      &["design-architecture", "design-interface", "design-risk"]),
            2 => ("P2", "research",    &["research-codebase", "research-external"]),
            3 => ("P3", "plan",        &["plan-static", "plan-behavioral", "plan-impact"]),
            4 => ("P4", "plan verify", &["plan-verify"]),
            5 => ("P5", "orchestrate", &["orchestrate"]),
            6 => ("P6", "execution",   &["execution-code", "execution-infra"]),
            7 => ("P7", "verify",      &["verify-structural", "verify-quality"]),
            _ => ("P8", "delivery",    &[]),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// `p6`, as signals are kept.
    pub fn key(self) -> String {
        self.as_str().to_ascii_lowercase()
    }

    /// What people call it.
    pub const fn title(self) -> &'static str {
        self.row().1
    }

    /// What is done in it where no task says so.
    pub const fn skills(self) -> &'static [&'static str] {
        self.row().2
    }

    /// `P6`, `p6`, `6`, `phase-6` and the like.
    pub fn parse(text: &str) -> Option<Self> {
        let word = if text.trim_start().starts_with('-') { String::new() } else { bare(text) };
        let number = word.strip_prefix("phase").or_else(|| word.strip_prefix('p'));
        match number.unwrap_or(&word).as_bytes() {
            [digit @ b'0'..=b'8'] => Some(Self(digit - b'0')),
            _ => None,
        }
    }

    /// By a skill such as `execution-code` or a domain such as `execution`. The first row fits.
    pub fn of_skill(text: &str) -> Option<Self> {
        #[rustfmt::skip]
        const PREFIXES: [(&str, u8); 12] = [
            ("predesign",   0), ("design",      1), ("research",    2), ("audit",       2),
            ("planverify",  4), ("plan",        3), ("orchestrat",  5), ("execution",   6),
            ("execute",     6), ("verif",       7), ("validat",     7), ("deliver",     8),
        ];
        let word = bare(text);
        let row = PREFIXES.iter().find(|(prefix, _)| word.starts_with(prefix));
        row.map(|(_, number)| Self(*number))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Trivial,
    Standard,
    Complex,
}

impl Tier {
    pub const ALL: [Self; 3] = [Self::Trivial, Self::Standard, Self::Complex];

    const fn row(self) -> (&'static str, &'static [u8]) {
        match self {
            Self::Trivial => ("TRIVIAL", &[0, 6, 8]),
            Self::Standard => ("STANDARD", &[0, 1, 2, 3, 6, 7, 8]),
            Self::Complex => ("COMPLEX", &[0, 1, 2, 3, 4, 5, 6, 7, 8]),
        }
    }

    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    pub fn has(self, phase: Phase) -> bool {
        self.row().1.contains(&phase.0)
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str().eq_ignore_ascii_case(text.trim()))
    }

    /// The first tier that a text names in capitals, such as `Tier STANDARD.`
    pub fn named_in(text: &str) -> Option<Self> {
        let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
        words.find_map(|word| Self::ALL.into_iter().find(|tier| tier.as_str() == word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_known_in_any_spelling() {
        for text in ["P6", "p6", "6", "phase-6", "Phase 6", "PHASE_6"] {
            assert_eq!(Phase::parse(text), Some(Phase::P6), "{text}");
        }
        for text in ["", "P", "P9", "P66", "phase", "six", "-1"] {
            assert_eq!(Phase::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_skill_says_more_than_a_number() {
        for (skill, phase) in [
            ("pre-design-validate", "P0"),
            ("design-risk", "P1"),
            ("audit-impact", "P2"),
            ("plan-static", "P3"),
            ("plan-verify-coordinator", "P4"),
            ("orchestration-assign", "P5"),
            ("execution-infra", "P6"),
            ("verify-quality", "P7"),
            ("delivery-pipeline", "P8"),
        ] {
            assert_eq!(Phase::of_skill(skill).map(Phase::as_str), Some(phase), "{skill}");
        }
        assert_eq!(Phase::of_skill("cooking"), None);
        for phase in Phase::working() {
            let of = |skill: &&str| Phase::of_skill(skill);
            assert!(phase.skills().iter().all(|it| of(it) == Some(phase)), "{phase:?}");
        }
    }

    #[test]
    fn a_tier_has_its_path() {
        let path = |tier: Tier| {
            let all = Phase::working().chain([Phase::P8]).filter(|it| tier.has(*it));
            all.map(Phase::as_str).collect::<Vec<&str>>().join(" ")
        };
        assert_eq!(path(Tier::Trivial), "P0 P6 P8");
        assert_eq!(path(Tier::Standard), "P0 P1 P2 P3 P6 P7 P8");
        assert_eq!(path(Tier::Complex), "P0 P1 P2 P3 P4 P5 P6 P7 P8");
        assert_eq!(Tier::named_in("Tier STANDARD. ACs: …"), Some(Tier::Standard));
        assert_eq!(Tier::named_in("a standard thing"), None);
    }
}
