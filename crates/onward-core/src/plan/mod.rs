//! The plan: what `resume` would do, and why, in the shape that scripts rely on.
//!
//! Invariant: a plan is made by folding the very events that a resume would write into a copy of
//! the run and reading the verdicts off the result, so that showing and doing cannot differ.

mod checks;
mod done;
mod edits;
mod enter;
mod foresee;
mod headline;
mod outdated;
mod phases;
mod preflight;
mod rechecks;
mod resumption;
mod retell;
mod reverts;
mod rows;
mod settle;
#[cfg(test)]
mod tests;
mod verdict;
mod whens;
mod whys;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    bill,
    event::{EndStatus, Event, GitHead, Mode, PauseCause, Record, RunResumed},
    finding::{Code, Finding, Severity},
    key::Difference,
    policy::{self, Choices},
    run::Run,
    state::{Phase, RunStatus, State, Violation},
    survey::Survey,
    time::Timestamp,
    told::LastDone,
};

pub use edits::edited;
pub use enter::{EntryPoint, entries, entry, has_entry};
pub use foresee::foresee;
pub use phases::{Outlook, Phases};
pub use preflight::{
    Compared, ComparedFile, ComparedStatus, Dependency, Preflight, Referred, ReferredFile, Stamp,
};
pub use resumption::{EDITED, Resumption, resumption};
pub use retell::Telling;
pub use reverts::{PlannedRevert, RevertKind};
pub use whys::Whys;

/// `onward plan --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    pub schema: String,
    pub run: RunInfo,
    /// The state in plain words, line by line, where a dialect has such a report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<String>,
    pub recovery_point: RecoveryPoint,
    pub findings: Vec<Finding>,
    pub steps: Vec<PlannedStep>,
    pub reverts: Vec<PlannedRevert>,
    pub counts: BTreeMap<String, u32>,
    pub can_resume: bool,
    /// What a person must decide first.
    pub needs: Vec<String>,
    #[serde(default)]
    pub cost: PlanCost,
    /// What the report calls the last completed, for other ways to tell it.
    #[serde(skip)]
    pub last_done: LastDone,
    /// Lists or loops of another system's run have steps to open that no row tells of.
    #[serde(skip)]
    pub more: bool,
    /// What was compared, where another system's run is to be resumed in preflight mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
}

/// What each choice costs, by the run's own history. Plain commands cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanCost {
    /// Spent so far, over all resumes.
    pub spent_usd: f64,
    /// What runs again for sure; steps that never ran have no history.
    pub rerun_usd: f64,
    /// Everything that has run, once more.
    pub restart_usd: f64,
    /// Tokens so far, in and out, over all resumes.
    #[serde(default)]
    pub spent_tokens: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    pub id: String,
    pub dialect: String,
    pub workflow: String,
    pub dir: String,
    pub status: Status,
    pub started_at: String,
    pub last_event: LastEvent,
    pub age_seconds: u64,
    pub age_band: AgeBand,
    pub resume_count: u32,
    /// Why no driver holds it, though it is not over: what it was paused for (`gate`, `limit`,
    /// `quiet-hours`, `budget`, `interrupted`, `asked`, `person`), or `killed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// When a run that is parked can go on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What it is about, where its id does not tell. For people: scripts read the inputs.
    #[serde(skip)]
    pub about: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LastEvent {
    pub kind: String,
    pub at: String,
}

/// One list for plan, list, status and outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Fresh,
    Running,
    Interrupted,
    Waiting,
    Parked,
    OverBudget,
    Failed,
    Cancelled,
    Completed,
}

impl Status {
    /// By the journal, and whether a driver holds the run.
    pub fn of(state: &State, driven: bool) -> Self {
        match state.status {
            RunStatus::Ended { status: EndStatus::Completed } => Self::Completed,
            RunStatus::Ended { status: EndStatus::Failed } => Self::Failed,
            RunStatus::Ended { status: EndStatus::Cancelled } => Self::Cancelled,
            RunStatus::Paused { .. } | RunStatus::UnderWay | RunStatus::Unopened if driven => {
                Self::Running
            }
            RunStatus::Paused { cause, .. } => match cause {
                PauseCause::Gate if has_open_gate(state) => Self::Waiting,
                PauseCause::Person => Self::Waiting,
                PauseCause::Limit => Self::Parked,
                PauseCause::Budget => Self::OverBudget,
                // A gate that was answered while no driver held the run only has to be taken up.
                PauseCause::Gate | PauseCause::Interrupted | PauseCause::Asked => Self::Interrupted,
            },
            RunStatus::Unopened => Self::Fresh,
            RunStatus::UnderWay if state.steps.is_empty() => Self::Fresh,
            RunStatus::UnderWay => Self::Interrupted,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::OverBudget => "over-budget",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
        }
    }
}

fn has_open_gate(state: &State) -> bool {
    state.steps.phases().any(|phase| phase == Phase::Waiting)
}

/// How long ago the last event was.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AgeBand {
    /// Under an hour.
    Fresh,
    /// Under a day.
    Recent,
    /// Up to seven days.
    Moderate,
    /// Older: suggest a restart.
    Stale,
}

impl AgeBand {
    pub fn of_seconds(age_seconds: u64) -> Self {
        const HOUR: u64 = 3600;
        const DAY: u64 = 24 * HOUR;
        match age_seconds {
            0..HOUR => Self::Fresh,
            HOUR..DAY => Self::Recent,
            DAY..=604_800 => Self::Moderate,
            _ => Self::Stale,
        }
    }
}

impl Plan {
    /// The plan of a run that waits for a limit: its rows are for the time after it.
    #[must_use]
    pub fn parked(mut self, until: Timestamp) -> Self {
        let point = &mut self.recovery_point;
        let then = &point.summary;
        point.summary = format!("parked at a limit until {until}; {then}");
        "parked".clone_into(&mut point.code);
        self
    }
}

/// Where the run re-enters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryPoint {
    pub code: String,
    pub phase: Option<String>,
    pub round: Option<u32>,
    pub steps: Vec<String>,
    pub summary: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedStep {
    pub step: String,
    pub verdict: Verdict,
    #[schemars(with = "Vec<Why>")]
    pub why: Whys,
    pub cost_usd: Option<f64>,
}

/// What a resume does with a step.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Done and proved.
    Keep,
    /// Done, but something upstream runs again: kept if its output is the same.
    Verify,
    /// Its result is there already and is taken.
    Adopt,
    /// It is still running.
    Reattach,
    /// Goes on in the agent's own session.
    Continue,
    /// It ran, and runs again.
    Rerun,
    /// It never ran.
    Run,
    /// A person must decide.
    Ask,
    /// Its `when` does not hold.
    Skip,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Verify => "verify",
            Self::Adopt => "adopt",
            Self::Reattach => "reattach",
            Self::Continue => "continue",
            Self::Rerun => "rerun",
            Self::Run => "run",
            Self::Ask => "ask",
            Self::Skip => "skip",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// A word, or the part of the key that changed, such as `agent.model`.
    pub cause: String,
    pub detail: String,
    /// The old and the new value, where a part changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

impl Why {
    pub fn because(cause: &str, detail: impl Into<String>) -> Self {
        Self { cause: cause.to_owned(), detail: detail.into(), was: None, is: None }
    }

    fn changed(difference: &Difference, detail: impl Into<String>) -> Self {
        let Difference { part, was, is } = difference.clone();
        Self { cause: part, detail: detail.into(), was, is }
    }
}

/// See the module. `dir` is how the person knows the run's directory.
pub fn plan(run: &Run, survey: &Survey, choices: &Choices, dir: &str) -> Result<Plan, Violation> {
    let resumption = resumption(run, survey, choices);
    let after = resumption.folded(run, survey)?;
    Ok(assemble(run, &after, &resumption, survey, dir))
}

/// The plan of a resume that brings the run from `run` to `after` and goes on from there.
pub fn assemble(
    run: &Run,
    after: &Run,
    resumption: &Resumption,
    survey: &Survey,
    dir: &str,
) -> Plan {
    let choices = &resumption.choices;
    let status = Status::of(&run.state, survey.driven);
    let complete = status == Status::Completed;
    let steps = rows::steps(run, after, resumption);
    let counts = counts(&steps);
    let kept = counts.get(Verdict::Keep.as_str()).map_or(0, |it| *it as usize);
    let recovery_point = headline::recovery_point(after, resumption, (&steps, kept), status);
    let blocks = |it: &Finding| it.severity() == Severity::Blocking && !choices.accept(it);
    let blocked = resumption.findings.iter().any(blocks);
    let is_over = status == Status::Cancelled && !choices.revive;
    let cost = PlanCost {
        spent_usd: run.state.spent.dollars(),
        rerun_usd: verdict::rerun_cost(run, &steps).dollars(),
        restart_usd: bill::restart(&run.state).dollars(),
        spent_tokens: run.state.tokens,
    };
    let needs = needs((run, after), &steps, resumption, survey);
    Plan {
        schema: "onward.plan/1".to_owned(),
        run: run_info(&run.state, survey, status, dir),
        summary: Vec::new(),
        recovery_point,
        steps,
        reverts: reverts::planned(resumption, survey),
        counts,
        can_resume: !complete && !blocked && !is_over,
        needs,
        findings: resumption.findings.clone(),
        cost,
        last_done: LastDone::ByRows,
        more: false,
        preflight: None,
    }
}

/// The recovery point of that plan, for one who wants nothing else of it.
pub fn recovery_point(
    run: &Run,
    after: &Run,
    resumption: &Resumption,
    survey: &Survey,
) -> RecoveryPoint {
    let status = Status::of(&run.state, survey.driven);
    let (steps, kept) = rows::steps_beyond_kept(run, after, resumption);
    headline::recovery_point(after, resumption, (&steps, kept), status)
}

/// How many steps have each verdict.
fn counts(steps: &[PlannedStep]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for step in steps {
        let word = step.verdict.as_str();
        match counts.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                counts.insert(word.to_owned(), 1);
            }
        }
    }
    counts
}

/// What a person must decide before the run goes on, each thing once.
fn needs(
    (run, after): (&Run, &Run),
    steps: &[PlannedStep],
    made: &Resumption,
    survey: &Survey,
) -> Vec<String> {
    let choices = &made.choices;
    let mut needs = made.needs.clone();
    if Status::of(&run.state, survey.driven) == Status::Cancelled && !choices.revive {
        needs.push("it was cancelled: `--force` takes it up again".to_owned());
    }
    let band = AgeBand::of_seconds(survey.now.ms_since(run.state.last_at) / 1000);
    for finding in policy::standing(&made.findings, band, choices) {
        if !needs.contains(&finding.message) {
            needs.push(finding.message);
        }
    }
    let is_gate = |row: &&PlannedStep| {
        let id = after.graph.find(&Address::from_text(&row.step));
        id.is_some_and(|id| after.defs.brief(after.graph.node(id).def).is_gate())
    };
    let asked = steps.iter().filter(|row| row.verdict == Verdict::Ask).filter(is_gate);
    needs.extend(asked.map(|row| format!("{} waits for your answer", row.step)));
    needs.extend(needs_a_person(&run.state));
    needs
}

/// What a person must do before steps can be tried again: log in, allow a tool, pay.
pub fn needs_a_person(state: &State) -> Vec<String> {
    if !matches!(state.status, RunStatus::Paused { cause: PauseCause::Person, .. }) {
        return Vec::new();
    }
    let failed = state.steps.noteworthy().filter(|(_, it)| it.phase == Phase::Failed);
    let needs = failed.filter_map(|(step, entry)| {
        let (cause, detail) = entry.failure.as_deref()?;
        Some(format!("{step} needs you: {} ({detail})", cause.in_words()))
    });
    needs.collect()
}

/// See [`RunInfo::stopped_by`].
fn stopped_by(state: &State, status: Status) -> Option<String> {
    let word = match state.status {
        // No limit of an agent holds so long: these are the hours in which none is started.
        RunStatus::Paused { cause: PauseCause::Limit, until: Some(until) }
            if state.limits.values().all(|it| it.moment().is_some_and(|it| it < until)) =>
        {
            "quiet-hours"
        }
        RunStatus::Paused { cause, .. } => cause.as_str(),
        RunStatus::UnderWay if state.adopted.is_none() && status == Status::Interrupted => "killed",
        RunStatus::Unopened | RunStatus::UnderWay | RunStatus::Ended { .. } => return None,
    };
    (status != Status::Running).then(|| word.to_owned())
}

/// The facts about a run that every report begins with.
pub fn run_info(state: &State, survey: &Survey, status: Status, dir: &str) -> RunInfo {
    let opened = state.opened.as_ref();
    let age_seconds = survey.now.ms_since(state.last_at) / 1000;
    let adopted = state.adopted.as_ref();
    RunInfo {
        id: opened.map(|it| it.run.to_string()).unwrap_or_default(),
        dialect: adopted.map_or("onward", |it| &it.dialect).to_owned(),
        workflow: opened.map(|it| it.workflow.clone()).unwrap_or_default(),
        dir: dir.to_owned(),
        status,
        started_at: state.opened_at.to_string(),
        last_event: LastEvent { kind: state.last_kind.to_owned(), at: state.last_at.to_string() },
        age_seconds,
        age_band: AgeBand::of_seconds(age_seconds),
        resume_count: state.resumes,
        stopped_by: stopped_by(state, status),
        until: match state.status {
            RunStatus::Paused { until, .. } => until,
            // Its driver waits in place.
            RunStatus::UnderWay if status == Status::Running && state.running == 0 => {
                state.next_reset(survey.now)
            }
            RunStatus::Unopened | RunStatus::UnderWay | RunStatus::Ended { .. } => None,
        }
        .map(|until| until.to_string()),
        about: None,
    }
}

/// `event` as the record that would follow now.
pub fn next_record(state: &State, at: Timestamp, event: Event) -> Record {
    Record { seq: state.next_seq, at, epoch: state.epoch, batch: state.batch, event }
}

impl Resumption {
    /// The run as it would be right after the resume; as it is when it is complete.
    pub fn folded(&self, run: &Run, survey: &Survey) -> Result<Run, Violation> {
        let mut after = run.clone();
        if self.is_over {
            return Ok(after);
        }
        let mut resumed = self.resumed(&run.state, Mode::Autopilot, String::new(), None);
        // Without that answer nothing is resumed, and with it the loop turns once more.
        let is_used_up = |it: &&Finding| it.code == Code::TurnsUsedUp.as_str();
        let used_up = self.findings.iter().filter(is_used_up).filter_map(|it| it.step.as_ref());
        let given = used_up.map(|step| format!("{}@{step}", Code::TurnsUsedUp.as_str()));
        resumed.accepted.extend(given);
        let first = Event::RunResumed(Box::new(resumed));
        for event in std::iter::once(first).chain(self.events.iter().cloned()) {
            let record = next_record(&after.state, survey.now, event);
            after.after(record)?;
        }
        Ok(after)
    }

    /// The event that opens the resume; everything undone is announced in it.
    pub fn resumed(
        &self,
        state: &State,
        mode: Mode,
        boot_id: String,
        git: Option<GitHead>,
    ) -> RunResumed {
        let mut accepted: Vec<String> =
            self.choices.accepted.iter().map(ToString::to_string).collect();
        accepted.extend(self.choices.yes.then(|| "yes".to_owned()));
        accepted.extend(self.choices.revive.then(|| "revive".to_owned()));
        accepted.extend(self.choices.from.as_ref().map(|from| format!("from {}", from.step)));
        let Choices { keep, redo, leave, .. } = &self.choices;
        for (word, steps) in [("keep", keep), ("redo", redo), ("leave", leave)] {
            accepted.extend(steps.iter().map(|step| format!("{word} {step}")));
        }
        RunResumed {
            code: self.code.to_owned(),
            summary: self.summary.clone(),
            mode,
            count: state.resumes + 1,
            boot_id,
            git,
            accepted,
            entered: self.choices.from.as_ref().map(|from| from.step.clone()),
            reverts: self.reverts.clone(),
            last_sign: None,
        }
    }

    /// An attempt that ended or lives is given up, because its result cannot count.
    pub fn gives_up_on(&self, step: &Address) -> bool {
        self.superseded.contains(step)
    }

    /// Steps whose sealed exit is to be judged, and steps to be spawned as announced.
    pub fn decided(&self, decision: crate::recovery::Decision) -> impl Iterator<Item = &Address> {
        self.rungs.iter().filter(move |(_, row)| row.decision == decision).map(|(step, _)| step)
    }
}
