//! How much of a run can be recovered, told by its phases.
//!
//! A phase is a step of the workflow's first level, with all that is inside it.

use indexmap::IndexMap;

use super::{Plan, PlannedStep, Verdict, verdict::WHEN};
use crate::finding::{Finding, Severity};

/// How much of a run can be recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// What is done stays done.
    Whole,
    /// Some of what is done does not count any more.
    Partly,
    /// Something stands in the way that no yes settles.
    Not,
}

/// The phases of a run, by what becomes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// All of it stands.
    pub valid: Vec<String>,
    /// Done work in it counts no more.
    pub again: Vec<String>,
    /// Done work in it is kept if what it was made from comes out the same.
    pub compared: Vec<String>,
    /// It was begun, and goes on.
    pub under_way: Vec<String>,
    pub to_come: Vec<String>,
}

impl Plan {
    pub fn outlook(&self) -> Outlook {
        let stuck = |it: &Finding| it.severity() == Severity::Blocking && !it.can_be_accepted();
        if self.findings.iter().any(stuck) {
            Outlook::Not
        } else if self.steps.iter().any(PlannedStep::counts_no_more) {
            Outlook::Partly
        } else {
            Outlook::Whole
        }
    }

    pub fn phases(&self) -> Phases {
        // In order of first mention.
        let mut by_phase: IndexMap<&str, Vec<&PlannedStep>> = IndexMap::new();
        for step in &self.steps {
            by_phase.entry(step.phase()).or_default().push(step);
        }
        let mut phases = Phases::default();
        for (phase, steps) in by_phase {
            let stands = |step: &&&PlannedStep| {
                matches!(step.verdict, Verdict::Keep | Verdict::Skip | Verdict::Adopt)
            };
            let standing = steps.iter().filter(stands).count();
            let list = if steps.iter().any(|step| step.is_redone()) {
                &mut phases.again
            } else if standing == steps.len() {
                &mut phases.valid
            } else if steps.iter().any(|step| step.counts_no_more()) {
                &mut phases.compared
            } else if steps.iter().all(|step| step.verdict == Verdict::Run) {
                &mut phases.to_come
            } else {
                &mut phases.under_way
            };
            list.push(phase.to_owned());
        }
        phases
    }
}

impl PlannedStep {
    /// It was done, and runs again for sure.
    pub fn is_redone(&self) -> bool {
        self.verdict == Verdict::Rerun && self.counts_no_more()
    }

    /// It runs if its `when` holds, which is asked when the steps before it are through.
    pub fn waits_for_when(&self) -> bool {
        self.verdict == Verdict::Verify && self.why.iter().any(|it| it.cause == WHEN)
    }

    /// It was done, and runs again or is compared again.
    pub fn counts_no_more(&self) -> bool {
        let changed = || {
            let named = |it: &super::Why| it.was.is_some() || it.is.is_some();
            self.why.iter().any(|it| named(it) || it.cause == "stale")
        };
        match self.verdict {
            Verdict::Verify if self.waits_for_when() => changed(),
            Verdict::Verify => self.why.iter().any(|it| it.cause == "upstream"),
            Verdict::Rerun => changed(),
            Verdict::Keep
            | Verdict::Adopt
            | Verdict::Reattach
            | Verdict::Continue
            | Verdict::Run
            | Verdict::Ask
            | Verdict::Skip => false,
        }
    }

    /// Whether a person may say that it stays as it is, although something changed.
    pub fn may_be_kept(&self) -> bool {
        let soft = |it: &super::Why| {
            ["definition.", "agent.", "reads."].iter().any(|part| it.cause.starts_with(part))
                || it.cause == "status"
        };
        let changed = |it: &&super::Why| it.was.is_some() || it.is.is_some();
        let mut causes = self.why.iter().filter(changed).peekable();
        let runs = self.verdict == Verdict::Rerun || self.waits_for_when();
        runs && causes.peek().is_some() && causes.all(soft)
    }

    fn phase(&self) -> &str {
        let top = self.step.split('/').next().unwrap_or_default();
        top.split('[').next().unwrap_or(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{finding::Code, plan::Why, policy::Choices, survey::Survey, testing::Bench};

    fn step(name: &str, verdict: Verdict, cause: &str) -> PlannedStep {
        let mut why = Why::because(cause, "");
        why.is = cause.contains('.').then(|| "other".to_owned());
        PlannedStep { step: name.to_owned(), verdict, why: vec![why].into(), cost_usd: None }
    }

    #[test]
    fn what_was_done_and_is_done_again_is_told_from_what_only_goes_on() {
        for (verdict, cause, no_more, kept) in [
            (Verdict::Keep, "done", false, false),
            (Verdict::Rerun, "failed", false, false),
            (Verdict::Rerun, "died-dirty", false, false),
            (Verdict::Rerun, "stale", true, false),
            (Verdict::Rerun, "reads.a", true, true),
            (Verdict::Rerun, "agent.model", true, true),
            (Verdict::Rerun, "definition.run", true, true),
            (Verdict::Rerun, "writes.a", true, false),
            (Verdict::Verify, "upstream", true, false),
            (Verdict::Verify, "effect-unknown", false, false),
            (Verdict::Run, "pending", false, false),
        ] {
            let step = step("a", verdict, cause);
            let found = (step.counts_no_more(), step.may_be_kept());
            assert_eq!(found, (no_more, kept), "{verdict:?} {cause}");
        }
    }

    /// A plan of these steps, with findings of these codes.
    fn plan(steps: &[(&str, Verdict, &str)], findings: &[Finding]) -> Plan {
        let bench = Bench::new("steps: [{ id: a, run: x }]");
        let survey = Survey { now: bench.now, ..Survey::default() };
        let mut plan = crate::plan::plan(&bench.run, &survey, &Choices::default(), "dir").unwrap();
        plan.steps = steps.iter().map(|(name, verdict, why)| step(name, *verdict, why)).collect();
        plan.findings = findings.to_vec();
        plan
    }

    #[test]
    fn phases_are_told_by_what_becomes_of_their_steps() {
        let plan = plan(
            &[
                ("plan", Verdict::Keep, "done"),
                ("round[1]/a", Verdict::Keep, "done"),
                ("round[1]/b", Verdict::Skip, "skipped"),
                ("review/a", Verdict::Keep, "done"),
                ("review/b", Verdict::Rerun, "reads.a"),
                ("write/a", Verdict::Keep, "done"),
                ("write/b", Verdict::Run, "pending"),
                ("end/a", Verdict::Run, "pending"),
                ("end/b", Verdict::Run, "pending"),
                ("test/a", Verdict::Verify, "upstream"),
                // An item that is no longer listed stands behind the step that it followed.
                ("plan[x]", Verdict::Keep, "unlisted"),
            ],
            &[],
        );
        let phases = plan.phases();
        assert_eq!(phases.compared, ["test"]);
        assert_eq!(phases.valid, ["plan", "round"]);
        assert_eq!(phases.again, ["review"]);
        assert_eq!(phases.under_way, ["write"]);
        assert_eq!(phases.to_come, ["end"]);
        assert_eq!(plan.outlook(), Outlook::Partly);
    }

    #[test]
    fn only_what_no_yes_settles_is_beyond_recovery() {
        let whole = &[("a", Verdict::Keep, "done")][..];
        let finding = |code: Code| Finding::new(code, "");
        for (finding, outlook) in [
            (finding(Code::PrerequisiteMissing), Outlook::Not),
            (finding(Code::AgentNotConfigured), Outlook::Whole),
            (finding(Code::AttemptContested), Outlook::Whole),
            (finding(Code::DirtyTree), Outlook::Whole),
        ] {
            assert_eq!(
                plan(whole, std::slice::from_ref(&finding)).outlook(),
                outlook,
                "{finding:?}"
            );
        }
    }

    #[test]
    fn a_phase_is_a_step_of_the_first_level_with_all_that_is_inside_it() {
        assert_eq!(step("round[2]/write[ann]", Verdict::Run, "pending").phase(), "round");
        assert_eq!(step("each[a/b]", Verdict::Run, "pending").phase(), "each");
        assert_eq!(step("plain", Verdict::Run, "pending").phase(), "plain");
    }
}
