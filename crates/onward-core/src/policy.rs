//! Who answers at a resume, and what needs a person: the modes, as tables.
//!
//! Invariant: what is not accepted here is accepted nowhere else. A front end asks a person only
//! what [`standing`] returns, and a resume without a person goes on only when that is nothing.

use std::{fmt, str::FromStr};

use crate::{
    address::Address,
    event::Mode,
    finding::{Code, Finding, RUN_OVER, Severity, Told, told},
    plan::AgeBand,
    plural,
};

/// What a person said beforehand about a resume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    pub accepted: Vec<Accept>,
    /// The plan with its warnings is fine. It answers no gate and settles nothing that blocks.
    pub yes: bool,
    /// Enter somewhere else than at the recovery point.
    pub from: Option<EnterAt>,
    /// Done steps that stay as they are although what they were asked, or made from, changed.
    pub keep: Vec<Address>,
    /// Done steps that run again although nothing asks for it.
    pub redo: Vec<Address>,
    /// Steps whose half-done work stays in the tree: nothing of it is undone.
    pub leave: Vec<Address>,
    /// Take a run up again that was cancelled, or that is over in another system.
    pub revive: bool,
}

/// A step that is named stands for all in it: the items of a fan-out, the turns of a loop.
impl Choices {
    pub fn keeps(&self, step: &Address) -> bool {
        names(&self.keep, step)
    }

    pub fn redoes(&self, step: &Address) -> bool {
        names(&self.redo, step)
    }

    pub fn leaves(&self, step: &Address) -> bool {
        names(&self.leave, step)
    }
}

fn names(all: &[Address], step: &Address) -> bool {
    all.iter().any(|it| step.is_within(it))
}

/// `--accept CODE[@STEP]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    pub code: String,
    /// `None` = wherever it is found.
    pub step: Option<Address>,
}

/// `--from STEP|PHASE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnterAt {
    pub step: String,
    /// Over unfinished work too.
    pub force: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a finding")]
pub struct BadAccept(String);

impl FromStr for Accept {
    type Err = BadAccept;

    fn from_str(text: &str) -> Result<Self, BadAccept> {
        let (code, step) = match text.split_once('@') {
            Some((code, step)) => (code, Some(step)),
            None => (text, None),
        };
        let is_word = |it: &str| it.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if code.is_empty() || !is_word(code) || step.is_some_and(str::is_empty) {
            return Err(BadAccept(text.to_owned()));
        }
        Ok(Self { code: code.to_owned(), step: step.map(Address::from_text) })
    }
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.step {
            Some(step) => write!(f, "{}@{step}", self.code),
            None => f.write_str(&self.code),
        }
    }
}

impl Choices {
    /// Whether a person has said yes to this one in particular.
    pub fn accept(&self, finding: &Finding) -> bool {
        if finding.code == RUN_OVER {
            return self.revive;
        }
        let named = self.accepted.iter().any(|it| {
            let here = it.step.as_ref().is_none_or(|step| {
                finding.step.as_deref().is_some_and(|found| found == step.as_str())
            });
            it.code == finding.code && here
        });
        named && finding.can_be_accepted()
    }

    /// A person saw these and said yes.
    pub fn accept_all(&mut self, findings: &[Finding]) {
        let accepts = findings.iter().map(|it| Accept {
            code: it.code.clone(),
            step: it.step.as_deref().map(Address::from_text),
        });
        self.accepted.extend(accepts);
    }

    fn settle(&self, finding: &Finding) -> bool {
        self.accept(finding) || (self.yes && finding.severity() == Severity::Warning)
    }
}

/// How deep the check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What the journal and the other system's files say; nothing else is looked at.
    Glance,
    /// Stats and statuses.
    Quick,
    /// Every hash, every `check` and every prerequisite.
    Full,
}

/// Whether a person is asked when one is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Only about what the policy leaves standing.
    Conflicts,
    /// Always.
    Always,
}

/// A mode is a preset of two things.
pub const fn preset(mode: Mode) -> (Depth, Asking) {
    match mode {
        Mode::Autopilot => (Depth::Quick, Asking::Conflicts),
        Mode::Interactive => (Depth::Quick, Asking::Always),
        Mode::Preflight => (Depth::Full, Asking::Always),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ruling {
    Go,
    /// A person must say so.
    Ask,
}

/// Columns: under a day, up to seven days, older. Rows: the worst finding that was not accepted.
#[rustfmt::skip]
const AUTOPILOT: [[Ruling; 3]; 3] = {
    use Ruling::{Ask, Go};
    [
        [Go,  Go,  Ask], // none, or info
        [Go,  Ask, Ask], // warnings
        [Ask, Ask, Ask], // blocking
    ]
};

fn ruling(worst: Severity, band: AgeBand) -> Ruling {
    let row = match worst {
        Severity::Info => 0,
        Severity::Warning => 1,
        Severity::Blocking => 2,
    };
    let column = match band {
        AgeBand::Fresh | AgeBand::Recent => 0,
        AgeBand::Moderate => 1,
        AgeBand::Stale => 2,
    };
    AUTOPILOT[row][column]
}

/// What needs a person before the run may go on; nothing = go.
pub fn standing(findings: &[Finding], band: AgeBand, choices: &Choices) -> Vec<Finding> {
    let open: Vec<&Finding> = findings.iter().filter(|it| !choices.settle(it)).collect();
    let worst = open.iter().map(|it| it.severity()).max().unwrap_or(Severity::Info);
    // The age is a finding itself, and a person who accepts that one has accepted the column.
    let is_age = |it: &&Finding| it.code == Code::StaleAge.as_str();
    let band = match band {
        AgeBand::Stale if findings.iter().any(|it| is_age(&it) && choices.settle(it)) => {
            AgeBand::Recent
        }
        AgeBand::Fresh | AgeBand::Recent | AgeBand::Moderate | AgeBand::Stale => band,
    };
    match ruling(worst, band) {
        Ruling::Go => Vec::new(),
        Ruling::Ask => {
            open.into_iter().filter(|it| it.severity() != Severity::Info).cloned().collect()
        }
    }
}

/// `1 problem needs`, of what stands in the way: what blocks. Warnings beside it are told, and are
/// counted only where nothing blocks.
pub fn problems_need(standing: &[Finding]) -> String {
    let blocking = standing.iter().filter(|it| it.severity() == Severity::Blocking).count();
    plural::problems_need(if blocking > 0 { blocking } else { standing.len() })
}

/// Why the policy went on over a finding without asking a person, for the journal.
pub fn passed_over(findings: &[Finding], band: AgeBand, choices: &Choices) -> Vec<String> {
    let silent = |it: &&Finding| it.severity() == Severity::Warning && !choices.settle(it);
    let age = match band {
        AgeBand::Fresh | AgeBand::Recent => "the run is recent",
        AgeBand::Moderate => "the run is some days old",
        AgeBand::Stale => "the run is more than seven days old",
    };
    let line = |it: &Told<'_>| {
        let (code, message) = (&it.finding.code, it.message());
        format!("continued despite {code}: {message} (a warning; {age})")
    };
    told(findings.iter().filter(silent)).iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(code: Code) -> Finding {
        Finding::new(code, "what").at_step(&Address::from_text("b"))
    }

    fn accept(words: &[&str]) -> Choices {
        let accepted = words.iter().map(|word| word.parse().unwrap()).collect();
        Choices { accepted, ..Choices::default() }
    }

    /// The codes that stand, for a run of this age.
    fn asked(codes: &[Code], band: AgeBand, choices: &Choices) -> Vec<String> {
        let mut findings: Vec<Finding> = codes.iter().map(|code| finding(*code)).collect();
        if band == AgeBand::Stale {
            findings.push(Finding::new(Code::StaleAge, "old"));
        }
        standing(&findings, band, choices).into_iter().map(|it| it.code).collect()
    }

    #[test]
    fn every_cell_of_the_autopilot_table_is_as_documented() {
        use AgeBand::{Fresh, Moderate, Recent, Stale};
        let (info, warning, blocking) =
            (Code::TornTail, Code::ArtifactChanged, Code::BranchMismatch);
        let silent = Choices::default();
        let cases: [(&[Code], [bool; 4]); 5] = [
            (&[], [true, true, true, false]),
            (&[info], [true, true, true, false]),
            (&[warning], [true, true, false, false]),
            (&[blocking], [false; 4]),
            (&[info, warning, blocking], [false; 4]),
        ];
        for (codes, goes) in cases {
            for (band, goes) in [Fresh, Recent, Moderate, Stale].into_iter().zip(goes) {
                let asked = asked(codes, band, &silent);
                assert_eq!(asked.is_empty(), goes, "{codes:?} {band:?} {asked:?}");
            }
        }
    }

    #[test]
    fn an_accepted_finding_does_not_stand_and_the_others_do() {
        let codes = [Code::BranchMismatch, Code::EffectUnknown];
        let asked = |words: &[&str]| asked(&codes, AgeBand::Fresh, &accept(words));
        assert_eq!(asked(&["branch-mismatch"]), ["effect-unknown"]);
        assert_eq!(asked(&["branch-mismatch@b", "effect-unknown"]), Vec::<String>::new());
        assert_eq!(asked(&["branch-mismatch@c", "effect-unknown"]), ["branch-mismatch"]);
    }

    #[test]
    fn yes_settles_warnings_and_age_but_nothing_that_blocks() {
        let yes = Choices { yes: true, ..Choices::default() };
        assert_eq!(asked(&[Code::DirtyTree], AgeBand::Stale, &yes), Vec::<String>::new());
        assert_eq!(asked(&[Code::DirtyTree], AgeBand::Moderate, &yes), Vec::<String>::new());
        assert_eq!(asked(&[Code::EffectUnknown], AgeBand::Fresh, &yes), ["effect-unknown"]);
    }

    #[test]
    fn accepting_the_age_is_enough_for_a_stale_run_with_no_other_finding() {
        assert_eq!(asked(&[], AgeBand::Stale, &accept(&["stale-age"])), Vec::<String>::new());
        assert_eq!(asked(&[], AgeBand::Stale, &accept(&["dirty-tree"])), ["stale-age"]);
    }

    #[test]
    fn a_fact_cannot_be_accepted() {
        for code in [Code::StillRunning, Code::JournalDamaged, Code::PrerequisiteMissing] {
            let asked = asked(&[code], AgeBand::Fresh, &accept(&[code.as_str()]));
            assert_eq!(asked, [code.as_str()]);
        }
    }

    #[test]
    fn what_the_policy_passed_over_is_said_with_its_reason() {
        let findings = [finding(Code::ArtifactChanged), finding(Code::TornTail)];
        let said = passed_over(&findings, AgeBand::Recent, &Choices::default());
        let line = "continued despite artifact-changed: what (a warning; the run is recent)";
        assert_eq!(said, [line]);
        let accepted = accept(&["artifact-changed"]);
        assert_eq!(passed_over(&findings, AgeBand::Recent, &accepted), Vec::<String>::new());
    }

    #[test]
    fn an_acceptance_is_read_as_it_is_written_and_junk_is_refused() {
        for text in ["dirty-tree", "dirty-tree@round[2]/a", "effect-unknown@a@b"] {
            assert_eq!(text.parse::<Accept>().unwrap().to_string(), text);
        }
        for text in ["", "@b", "dirty-tree@", "Dirty", "dirty tree"] {
            assert!(text.parse::<Accept>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_autopilot_leaves_people_alone_and_only_preflight_looks_at_everything() {
        assert_eq!(preset(Mode::Autopilot), (Depth::Quick, Asking::Conflicts));
        assert_eq!(preset(Mode::Interactive), (Depth::Quick, Asking::Always));
        assert_eq!(preset(Mode::Preflight), (Depth::Full, Asking::Always));
    }
}
