//! One resume: what was shown before it, against what it did.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use onward_core::{
    address::Address,
    event::{Event, RunResumed},
    evidence::Outcome,
    plan::{Plan, PlannedStep, Status, Verdict},
    view::{StepView, View},
};
use onward_engine::foreign::Foreign;

use crate::{crash::readable, harness::state, toy::system::DIR, world::SimWorld};

/// See the module.
pub(super) struct Life<'a> {
    pub(super) plan: &'a Plan,
    pub(super) view: &'a View,
    /// What the resume recorded.
    pub(super) events: &'a [Event],
    pub(super) before: &'a SimWorld,
    pub(super) after: &'a SimWorld,
}

type Broken = Vec<(&'static str, String)>;

impl Life<'_> {
    pub(super) fn broken_laws(&self, status: Status, foreign: Option<&Foreign>) -> Broken {
        let mut broken = Vec::new();
        self.counts(&mut broken);
        self.headline(&mut broken);
        self.resumed(foreign, &mut broken);
        self.shown(&mut broken);
        for row in &self.plan.steps {
            if let Some(what) = self.row(row, status) {
                broken.push((row.verdict.as_str(), format!("{} {what}", row.step)));
            }
        }
        self.starts_without_a_row(&mut broken);
        broken
    }

    /// (a) The counts are those of the rows, in the plan as in the view.
    fn counts(&self, broken: &mut Broken) {
        let mut counts = BTreeMap::new();
        for row in &self.plan.steps {
            *counts.entry(row.verdict.as_str().to_owned()).or_insert(0) += 1;
        }
        if counts != self.plan.counts {
            broken.push(("counts", format!("{counts:?}, {:?}", self.plan.counts)));
        }
        let is_done = |step: &&StepView| matches!(step.state.as_str(), "done" | "skipped");
        let done = self.view.steps.iter().filter(is_done).count();
        // A step that failed for good counts too, while what it rests on stands.
        let tolerated = self.plan.steps.iter().filter(|row| is_tolerated(row)).count();
        let (shown, total) = (self.view.counts.done as usize, self.view.counts.total as usize);
        if shown != done + tolerated || total != self.view.steps.len() {
            broken.push(("view counts", format!("{shown} of {total}, {done}, {tolerated}")));
        }
    }

    /// (b) The headline names rows in which something happens, and says that none is left only when
    /// none is.
    fn headline(&self, broken: &mut Broken) {
        let point = &self.plan.recovery_point;
        let active: Vec<&str> =
            self.plan.steps.iter().filter(|row| acts(row)).map(|row| row.step.as_str()).collect();
        for step in &point.steps {
            if !active.contains(&step.as_str()) {
                broken.push(("headline", format!("{step} of {point:?} is not in {active:?}")));
            }
        }
        if point.steps.is_empty() != active.is_empty() {
            broken.push(("headline settles", format!("{point:?}, {active:?}")));
        }
    }

    /// (c), (d) `run.resumed` says what the plan said, and undoes that.
    fn resumed(&self, foreign: Option<&Foreign>, broken: &mut Broken) {
        let Some(resumed) = self.events.iter().find_map(resumed_in) else {
            // A run in which nothing has happened is only begun.
            if self.plan.recovery_point.code != "start" && foreign.is_none() {
                broken.push(("not resumed", String::new()));
            }
            return;
        };
        let point = &self.plan.recovery_point;
        if self.probes() {
            // What a probe answers is known to the resume alone.
            return;
        }
        if (&resumed.code, &resumed.summary) != (&point.code, &point.summary) {
            let said = format!("{} {}", resumed.code, resumed.summary);
            broken.push(("headline recorded", format!("{said}, {point:?}")));
        }
        let undone: BTreeSet<String> = resumed.reverts.iter().map(|it| it.path.clone()).collect();
        let of_site = |path: &str| foreign.is_some() && ["rows.txt", "page.txt"].contains(&path);
        let planned: BTreeSet<String> = self
            .plan
            .reverts
            .iter()
            .map(
                |it| if of_site(&it.path) { format!("{DIR}/{}", it.path) } else { it.path.clone() },
            )
            .collect();
        // What the last resume announced, and may not have done to its end, is announced once more.
        let journal = self.before.disk.read("run/journal.jsonl").unwrap_or_default();
        let journaled = readable(journal);
        let pending = state(self.before);
        let pending = pending.pending_reverts().iter();
        let mut known: BTreeSet<String> = pending.map(|it| it.path.clone()).collect();
        // Nor can a plan know what an attempt that lives will write before the resume stops it.
        known.extend(journaled.iter().flat_map(|event| self.written_by_stopped(event)));
        let more: BTreeSet<String> = undone.difference(&planned).cloned().collect();
        if !planned.is_subset(&undone) || !more.is_subset(&known) {
            broken.push(("reverts", format!("undone {undone:?}, planned {planned:?}")));
        }
        let rescues = |of: BTreeSet<&String>| of.into_iter().cloned().collect::<Vec<_>>();
        let kept = rescues(resumed.reverts.iter().map(|it| &it.rescue).collect());
        let told = rescues(self.plan.reverts.iter().map(|it| &it.rescue).collect());
        if kept != told && more.is_empty() {
            broken.push(("rescues", format!("kept {kept:?}, planned {told:?}")));
        }
    }

    /// What a start declares of an attempt that lives, and that the plan gives up.
    fn written_by_stopped(&self, event: &Event) -> Vec<String> {
        let Event::AttemptStarted(started) = event else { return Vec::new() };
        let is_stopped = |row: &&PlannedStep| {
            let has = |cause: &str| row.why.iter().any(|why| why.cause == cause);
            row.step == started.step.as_str() && has("alive") && has("superseded")
        };
        let stopped = self.plan.steps.iter().find(is_stopped);
        stopped.map_or_else(Vec::new, |_| started.writes.clone())
    }

    /// (f) The view says of each step what the plan says.
    fn shown(&self, broken: &mut Broken) {
        if self.view.run.status != self.plan.run.status {
            let what = format!("{:?}, {:?}", self.view.run.status, self.plan.run.status);
            broken.push(("status", what));
        }
        let is_over = matches!(self.view.run.status, Status::Completed | Status::Cancelled);
        for step in &self.view.steps {
            let Some(row) = self.plan.steps.iter().find(|row| row.step == step.step) else {
                let address = Address::from_text(&step.step);
                let within = |row: &PlannedStep| {
                    let row = Address::from_text(&row.step);
                    address.is_within(&row)
                };
                if !self.plan.steps.iter().any(within) {
                    broken.push(("no row", format!("{} {}", step.step, step.state)));
                }
                continue;
            };
            let fits = match step.state.as_str() {
                "done" => match row.verdict {
                    Verdict::Keep | Verdict::Adopt => true,
                    // Nothing counts less in a run that is over, until it is taken up again.
                    Verdict::Verify => is_over,
                    Verdict::Rerun | Verdict::Ask => is_over && (row.counts_no_more() || asks(row)),
                    Verdict::Skip | Verdict::Run | Verdict::Continue | Verdict::Reattach => false,
                },
                "skipped" => match row.verdict {
                    Verdict::Skip => true,
                    Verdict::Verify | Verdict::Rerun => is_over,
                    Verdict::Keep
                    | Verdict::Adopt
                    | Verdict::Reattach
                    | Verdict::Continue
                    | Verdict::Run
                    | Verdict::Ask => false,
                },
                // Its turn may be no more.
                "running" => match row.verdict {
                    Verdict::Reattach | Verdict::Verify => true,
                    // It is ended, or waited for and made again, because its result cannot count.
                    Verdict::Rerun => {
                        let causes = ["superseded", "alive"];
                        row.why.iter().any(|why| causes.contains(&why.cause.as_str()))
                    }
                    Verdict::Keep
                    | Verdict::Adopt
                    | Verdict::Continue
                    | Verdict::Run
                    | Verdict::Ask
                    | Verdict::Skip => false,
                },
                // It may be proved by what it left, by a seal or by another system.
                "lost" | "failed" => match row.verdict {
                    Verdict::Keep => is_told_elsewhere(row) || is_tolerated(row),
                    Verdict::Reattach => false,
                    Verdict::Verify
                    | Verdict::Adopt
                    | Verdict::Continue
                    | Verdict::Rerun
                    | Verdict::Run
                    | Verdict::Ask
                    | Verdict::Skip => true,
                },
                // A person may enter behind it.
                "stale" => !matches!(row.verdict, Verdict::Keep | Verdict::Run),
                "waiting" => matches!(row.verdict, Verdict::Ask | Verdict::Skip | Verdict::Verify),
                "pending" | "blocked" => match row.verdict {
                    Verdict::Keep => is_told_elsewhere(row),
                    Verdict::Reattach | Verdict::Continue => false,
                    Verdict::Verify
                    | Verdict::Adopt
                    | Verdict::Rerun
                    | Verdict::Run
                    | Verdict::Ask
                    | Verdict::Skip => true,
                },
                other => panic!("{other} is a state of its own"),
            };
            if !fits {
                let what = format!("{} is {}, {}", step.step, step.state, row.verdict.as_str());
                broken.push(("view", what));
            }
        }
    }

    /// (e) What happened to the step of a row, where that is not what its verdict says.
    fn row(&self, row: &PlannedStep, status: Status) -> Option<String> {
        let step = Address::from_text(&row.step);
        let (starts, ends) = (self.starts(&step), self.ends(&step));
        let goes_on = status == Status::Completed;
        match row.verdict {
            Verdict::Keep | Verdict::Skip => (starts > 0 || self.opens(&step)).then(|| {
                let causes = self.events.iter().filter(|it| invalidates(it, &step));
                format!("started: {causes:?}", causes = causes.collect::<Vec<_>>())
            }),
            Verdict::Adopt | Verdict::Reattach => match ends {
                Some(Ended::Adopted | Ended::Done | Ended::Failed) => None,
                None if row.why.iter().any(|why| why.cause == "inferred") => None,
                Some(Ended::Started) | None => Some(format!("came to {ends:?}")),
            },
            // A `when` may not hold, and what another system's files prove by now is taken.
            Verdict::Run | Verdict::Rerun | Verdict::Ask => {
                let acted = starts > 0 || self.opens(&step) || self.decides(&step);
                let opened = self.expands(&step) || self.skips(&step);
                (goes_on && !acted && !opened).then(|| format!("did not start: {ends:?}"))
            }
            Verdict::Continue => {
                let continued = self.events.iter().any(|it| match it {
                    Event::AttemptStarted(it) => it.step == step && it.continues,
                    _ => false,
                });
                (!continued).then(|| "was not continued".to_owned())
            }
            Verdict::Verify if row.why.iter().any(|why| why.cause == "unproved") => {
                (goes_on && starts == 0).then(|| "was counted".to_owned())
            }
            // Kept if what it needs comes out the same, adopted if the probe says so.
            Verdict::Verify => None,
        }
    }

    /// A step without a row is inside of one, or of another turn or item of one.
    fn starts_without_a_row(&self, broken: &mut Broken) {
        let known: BTreeSet<String> = self.plan.steps.iter().map(|row| bare(&row.step)).collect();
        for (step, _) in self.spawned() {
            let mut scope = Some(step.clone());
            let mut is_known = false;
            while let Some(inner) = scope.filter(|it| !it.is_root()) {
                is_known |= known.contains(&bare(inner.as_str()));
                scope = inner.parent();
            }
            if !is_known {
                broken.push(("started without a row", step.to_string()));
            }
        }
    }

    fn spawned(&self) -> impl Iterator<Item = &(Address, u32)> {
        self.after.spawns.keys().filter(|it| !self.before.spawns.contains_key(*it))
    }

    fn starts(&self, step: &Address) -> usize {
        self.spawned().filter(|it| it.0 == *step).count()
    }

    /// The first thing that was said about it.
    fn ends(&self, step: &Address) -> Option<Ended> {
        self.events.iter().find_map(|event| match event {
            Event::AttemptStarted(it) if it.step == *step => Some(Ended::Started),
            Event::AttemptAdopted(it) if it.step == *step => Some(Ended::Adopted),
            Event::GateDecided { step: it, .. } if it == step => Some(Ended::Done),
            Event::AttemptFinished(it) if it.step == *step => {
                Some(if it.outcome == Outcome::Done { Ended::Done } else { Ended::Failed })
            }
            _ => None,
        })
    }

    fn opens(&self, step: &Address) -> bool {
        self.any(|it| matches!(it, Event::GateOpened { step: it, .. } if it == step))
    }

    fn decides(&self, step: &Address) -> bool {
        self.any(|it| matches!(it, Event::GateDecided { step: it, .. } if it == step))
    }

    fn expands(&self, step: &Address) -> bool {
        self.any(|it| match it {
            Event::GroupExpanded { step: it, .. }
            | Event::LoopTurned { step: it, .. }
            | Event::LoopEnded { step: it, .. } => it == step,
            _ => false,
        })
    }

    /// It, or a group around it, was passed over.
    fn skips(&self, step: &Address) -> bool {
        self.any(|it| match it {
            Event::StepSkipped { step: it, .. } => step == it || step.is_within(it),
            _ => false,
        })
    }

    fn any(&self, is_it: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(is_it)
    }

    fn probes(&self) -> bool {
        let is_effect = |row: &PlannedStep| {
            row.verdict == Verdict::Verify && row.why.iter().any(|it| it.cause == "effect-unknown")
        };
        self.plan.steps.iter().any(is_effect)
    }

    /// The plan and the journal, for a reader.
    pub(super) fn told(&self) -> String {
        let mut text = format!("{:?}\n", self.plan.recovery_point);
        for row in &self.plan.steps {
            let causes: Vec<&str> = row.why.iter().map(|why| why.cause.as_str()).collect();
            let shown = self.view.steps.iter().find(|it| it.step == row.step);
            let shown = shown.map_or("", |it| it.state.as_str());
            let verdict = row.verdict.as_str();
            writeln!(text, "  {verdict} {} {causes:?} ({shown})", row.step).unwrap();
        }
        let journal = self.after.disk.read("run/journal.jsonl").unwrap_or_default();
        let journal = String::from_utf8_lossy(journal);
        let before = journal.lines().count() - self.events.len().min(journal.lines().count());
        for (number, line) in journal.lines().enumerate() {
            let mark = if number < before { ' ' } else { '+' };
            let line = line.split("\"kind\":").last().unwrap_or_default();
            writeln!(text, "{mark} {}", line.chars().take(300).collect::<String>()).unwrap();
        }
        text
    }
}

#[derive(Clone, Copy, Debug)]
enum Ended {
    Started,
    Adopted,
    Done,
    Failed,
}

/// Something happens about it, beyond taking what is there.
fn acts(row: &PlannedStep) -> bool {
    match row.verdict {
        Verdict::Run | Verdict::Rerun | Verdict::Continue | Verdict::Reattach | Verdict::Ask => {
            true
        }
        Verdict::Verify => row.why.iter().any(|why| why.cause == "unproved"),
        Verdict::Keep | Verdict::Adopt | Verdict::Skip => false,
    }
}

fn asks(row: &PlannedStep) -> bool {
    row.why.iter().any(|why| why.cause == "gate")
}

fn invalidates(event: &Event, step: &Address) -> bool {
    matches!(event, Event::StepInvalidated { step: it, .. } if it == step)
}

/// It failed for good, and the run goes on without it.
fn is_tolerated(row: &PlannedStep) -> bool {
    row.verdict == Verdict::Keep && row.why.iter().any(|why| why.cause == "failed")
}

/// The other system did it meanwhile: the resume takes it from its files.
fn is_told_elsewhere(row: &PlannedStep) -> bool {
    row.why.iter().any(|why| why.detail == "done by the other system since")
}

fn resumed_in(event: &Event) -> Option<&RunResumed> {
    match event {
        Event::RunResumed(it) => Some(it),
        _ => None,
    }
}

/// Without items and turns.
fn bare(step: &str) -> String {
    let mut inside = 0_u32;
    let mut bare = String::new();
    for letter in step.chars() {
        match letter {
            '[' => inside += 1,
            ']' => inside = inside.saturating_sub(1),
            other if inside == 0 => bare.push(other),
            _ => {}
        }
    }
    bare
}
