//! One examination, two endings: `plan` shows it, `resume` takes it and goes on.
//!
//! Invariant: nothing is written, started, ended or locked here, and everything that is known
//! before anything is done is in one value. The headline, the rows, the counts, the reverts and
//! what a resume then writes are all computed from it.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide::adoption,
    event::{AttemptFinished, AttemptVerified, Certainty, EndStatus, Event, Revert, SettledBy},
    finding::{Code, Finding, RUN_OVER, RUN_SUPERSEDED},
    plan::{
        AgeBand, EDITED, Plan, RecoveryPoint, Resumption, Status, Telling, assemble, next_record,
        recovery_point, resumption, run_info,
    },
    policy::{Choices, Depth},
    recovery::Decision,
    run::Run,
    state::{EffectState, Phase, RunStatus},
    survey::{InFlight, Survey},
    time::Timestamp,
    view::{View, as_planned, has_more, view},
    workflow::{Loaded, model::Workflow},
};
use onward_dialects::seam::Card;

use super::redone;
use crate::{
    check::{doubts, elsewhere::Elsewhere, foresee, survey, witness, worktrees},
    foreign::{
        Foreign, Importing as _, Onlooker, Reentry, as_undone, driven as driven_from, import,
        import_announced,
    },
    revert::{self, CutShort, rescue::Undoing, theirs::Theirs},
    world::{Connected, Stop, World, seen::Seen},
};

/// What is examined, and what is known about it already.
#[derive(Clone)]
pub(crate) struct Subject<'a> {
    /// As its journal says, with the workflow as it is now.
    pub(crate) run: Run,
    pub(crate) connected: &'a Connected,
    pub(crate) choices: &'a Choices,
    pub(crate) depth: Depth,
    /// The workflow that the run keeps, and the edited file in its place.
    pub(crate) edited: Option<(&'a Workflow, &'a Loaded)>,
    pub(crate) foreign: Option<ForeignRead<'a>>,
    /// Files of its that no attempt of ours left.
    pub(crate) theirs: Theirs,
    /// A driver holds the run at this moment.
    pub(crate) driven: bool,
    /// What the caller found: torn tail, damage, missing agents, another driver.
    pub(crate) findings: Vec<Finding>,
    /// An agent that is not set up.
    pub(crate) lacking: Option<Finding>,
    /// What an earlier resume announced to undo, and what this one mended already.
    pub(crate) before: Before,
}

/// The other system's run.
#[derive(Clone)]
pub(crate) struct ForeignRead<'a> {
    pub(crate) foreign: &'a Foreign,
    /// Its files, where this command has read them before.
    pub(crate) seen: &'a Seen,
    /// No run of ours goes on with it yet.
    pub(crate) is_new: bool,
}

/// What a resume did before it looked again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) undone: Vec<Revert>,
    pub(crate) findings: Vec<Finding>,
}

/// See the module.
pub(crate) struct Examined {
    /// With everything imported that the other system's files prove.
    pub(crate) run: Run,
    pub(crate) survey: Survey,
    pub(crate) resumption: Resumption,
    /// What is to be undone, by the name of its rescue.
    pub(crate) undoing: BTreeMap<String, Undoing>,
    pub(crate) reentry: Option<Reentry>,
    /// What the import records, in order.
    pub(crate) imported: Vec<Event>,
    pub(crate) worktrees: Vec<worktrees::Seen>,
    /// Undos that were announced and cut short, still to be done.
    pub(crate) cut_short: Vec<Revert>,
    /// Paths of an announced undo that a person changed since.
    pub(crate) strange: BTreeSet<String>,
    /// The run as its journal says, where an import took it further.
    pub(crate) journaled: Option<Run>,
    is_adopted: bool,
    /// Until then a limit holds, and a resume changes nothing.
    pub(crate) parked_until: Option<Timestamp>,
    /// Choices without an entry that the other system's files tell.
    pub(crate) choices: Choices,
}

/// See the module. What only a killed agent of ours wrote proves nothing about another system's
/// run: it is looked at once more without that.
pub(crate) fn examine<W: World>(world: &mut W, subject: Subject<'_>) -> Result<Examined, Stop> {
    let state = &subject.run.state;
    let may_be_half_done = state.running > 0 || !state.pending_reverts().is_empty();
    let again = (subject.foreign.is_some() && may_be_half_done).then(|| subject.clone());
    let found = examined(world, subject, &[])?;
    let misleading = found.misleading();
    match again.filter(|_| !misleading.is_empty()) {
        Some(again) => examined(world, again, &misleading),
        None => Ok(found),
    }
}

/// `undone`: undos after which the other system's files are read.
fn examined<W: World>(
    world: &mut W,
    subject: Subject<'_>,
    undone: &[Revert],
) -> Result<Examined, Stop> {
    let Subject {
        mut run,
        connected,
        choices,
        edited,
        foreign,
        theirs,
        driven,
        findings,
        lacking,
        before,
        ..
    } = subject;
    // The driver of a run works undisturbed.
    let depth = if driven { Depth::Quick.min(subject.depth) } else { subject.depth };
    let is_complete = run.state.status == (RunStatus::Ended { status: EndStatus::Completed });
    let is_adopted = foreign.as_ref().is_none_or(|it| !it.is_new);
    let asks = choices.from.is_some() || !choices.redo.is_empty();
    let can_move = driven || edited.is_some() || asks;
    let parked_until = run.state.parked_until(world.now()).filter(|_| !can_move);
    let mut choices = choices.clone();
    let mut reentry = None;
    let (mut imported, mut journaled) = (Vec::new(), None);
    let (mut superseded, mut other_driver) = (None, None);
    if let Some(ForeignRead { foreign, seen, .. }) = foreign.filter(|_| !driven && !is_complete) {
        let files = seen.files(world, &foreign.site, foreign.card())?;
        let mut reading = foreign.parse(files.clone())?;
        if !undone.is_empty() {
            reading.told = foreign.parse(as_undone(world, foreign, files, undone)?)?.told;
        }
        let from = choices.from.take();
        superseded = reading.told.as_ref().and_then(|it| it.superseded());
        other_driver = reading.told.as_ref().and_then(|it| driven_from(&**it, &run));
        if superseded.is_none() {
            reentry = Reentry::look(world, foreign.clone(), reading, &run, from.as_ref())?;
        }
        if let Some(reentry) = &reentry {
            let mut onlooker = Onlooker::new(world, run.clone());
            import(reentry.source(), &mut onlooker)?;
            journaled = Some(std::mem::replace(&mut run, onlooker.run));
            imported = onlooker.events;
        }
    }
    let counts = |it: &Card| it.agents_declare || !it.keeps.is_empty();
    let told = reentry.as_ref().filter(|it| counts(it.foreign.card()));
    let elsewhere = Elsewhere { theirs, told: told.map(|it| &*it.told) };
    let mut seen = survey::survey(world, &run, connected, &elsewhere, depth)?;
    redone::look(world, &run, &choices, &mut seen)?;
    let (mut survey, undoing, worktrees) = (seen.survey, seen.undoing, seen.worktrees);
    survey.driven = driven;
    survey.findings.extend(findings);
    survey.findings.extend(superseded.into_iter().chain(other_driver));
    // A driver may have started them since the journal was read.
    survey.findings.extend(witness::lost_tail(&run, connected).filter(|_| !driven));
    let takes_agents = reentry.as_ref().is_none_or(|it| it.standing.needs_agents);
    survey.findings.extend(lacking.filter(|_| takes_agents));
    let is_new = |it: &Finding| !survey.findings.contains(it);
    let new: Vec<Finding> = before.findings.into_iter().filter(is_new).collect();
    survey.findings.extend(new);
    if let Some((pinned, new)) = edited {
        survey.edited = Some(doubts::edits(world, &run, pinned, new)?);
    }
    let (mut cut_short, strange) =
        announced_and_left(world, &run, connected, reentry.as_ref(), &mut survey)?;
    // Announced again, so that the next resume is told if this one is cut short too.
    survey.cut_short = before.undone;
    if let Some(reentry) = &reentry {
        cut_short.retain(|it| reentry.still_undoes(&run, it));
        // What is back already is announced with the rest, and nothing more happens to it.
        let mut announced = Vec::new();
        for revert in std::mem::take(&mut survey.cut_short) {
            if reentry.still_undoes(&run, &revert) || revert::is_back(world, &revert)? {
                announced.push(revert);
            }
        }
        survey.cut_short = announced;
    }
    let is_new = |it: &&Revert| !survey.cut_short.contains(it);
    let rest: Vec<Revert> = cut_short.iter().filter(is_new).cloned().collect();
    survey.cut_short.extend(rest);
    if let Some(reentry) = reentry.as_mut().filter(|_| depth > Depth::Glance) {
        let number = run.state.rescues + 1 + u32::try_from(undoing.len()).unwrap_or(0);
        reentry.look_at_undo(world, &run, &survey, &cut_short, number)?;
    }
    if let Some(reentry) = &reentry {
        reentry.tell(&run, &imported, &mut survey);
    }
    let resumption = resumption(&run, &survey, &choices);
    Ok(Examined {
        run,
        survey,
        resumption,
        undoing,
        reentry,
        imported,
        worktrees,
        cut_short,
        strange,
        journaled,
        is_adopted,
        parked_until,
        choices,
    })
}

/// Undos that were announced, by a resume or with an attempt that was never spawned, and are not
/// done. Beside them the paths that changed since, which are a question.
fn announced_and_left<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    reentry: Option<&Reentry>,
    survey: &mut Survey,
) -> Result<(Vec<Revert>, BTreeSet<String>), Stop> {
    let is_open = |it: &&Revert| reentry.is_none_or(|reentry| reentry.still_undoes(run, it));
    let pending: Vec<Revert> =
        run.state.pending_reverts().iter().filter(is_open).cloned().collect();
    let pending = CutShort::look(world, &pending)?;
    survey.findings.extend(pending.finding());
    if let Some(git) = &mut survey.git {
        let announced = run.state.pending_reverts().iter().map(|it| it.path.as_str());
        let announced: BTreeSet<&str> = announced.collect();
        git.changed.retain(|path| !announced.contains(path.as_str()));
    }
    let (mut rest, strange) = (pending.rest, pending.strange.into_iter().collect());
    for (step, entry) in run.state.steps.noteworthy() {
        if let Some(started) = entry.started.as_deref()
            && survey::is_running(entry)
            && survey::never_spawned(run, connected, step)
        {
            rest.extend(CutShort::look(world, &started.reverts)?.rest);
        }
    }
    Ok((rest, strange))
}

/// The run when a resume has given up what is lost and taken in what the files say about it.
fn after<W: World>(
    world: &mut W,
    run: &Run,
    survey: &Survey,
    made: &Resumption,
    reentry: Option<&Reentry>,
) -> Result<Run, Stop> {
    let after = made.folded(run, survey)?;
    let Some(reentry) = reentry else {
        let after = ended_meanwhile(after, survey, made)?;
        return foresee::foreseen(world, after, survey.now);
    };
    let announced: Vec<Address> = made.decided(Decision::Start).cloned().collect();
    let mut onlooker = Onlooker::new(world, after);
    // Its end is judged first; what the files tell of the steps behind it counts from then on.
    for step in made.decided(Decision::AdoptSeal) {
        if let Some(event) = adoption(&onlooker.run, step, reentry.source()) {
            onlooker.record(event)?;
        }
    }
    import_announced(reentry.source(), &mut onlooker, &announced)?;
    Ok(onlooker.run)
}

/// A command that ended while the engine was down is done or has failed when the resume has judged
/// its end. What an agent said of its own end is heard only then.
fn ended_meanwhile(mut run: Run, survey: &Survey, made: &Resumption) -> Result<Run, Stop> {
    for step in made.decided(Decision::AdoptSeal) {
        let id = run.graph.find(step).filter(|id| run.worker(*id).is_none());
        // Where a person says first which of its files count, it is neither done nor lost.
        let is_open = run.state.phase(step) == Phase::Running && !made.gives_up_on(step);
        let Some(seen) = survey.in_flight.get(step).filter(|_| is_open && id.is_some()) else {
            continue;
        };
        for event in end(&run, step, seen, made) {
            run.after(next_record(&run.state, survey.now, event))?;
        }
    }
    Ok(run)
}

/// What the resume will record of the end of an attempt, as far as that is known.
fn end(run: &Run, step: &Address, seen: &InFlight, made: &Resumption) -> Vec<Event> {
    let Some(entry) = run.state.step(step) else { return Vec::new() };
    let attempt = entry.attempts;
    if let Some((cause, detail)) = seen.failed.clone() {
        let mut finished = AttemptFinished::failed(step.clone(), attempt, cause, detail);
        finished.tolerated = run.tolerates(&finished);
        return vec![Event::AttemptFinished(Box::new(finished))];
    }
    let Some(mut finished) = seen.finished.clone() else { return Vec::new() };
    let mut events = Vec::new();
    if entry.effect == EffectState::Intended {
        let (happened, by) = (true, SettledBy::Receipt);
        events.push(Event::EffectSettled { step: step.clone(), attempt, happened, by });
    }
    let as_it_is = finished.evidence.without(made.edited.get(step));
    events.push(Event::AttemptFinished(finished));
    if let Some(evidence) = as_it_is {
        let (step, why) = (step.clone(), EDITED.to_owned());
        let verified = AttemptVerified { step, evidence: Some(evidence), key: None, why };
        events.push(Event::AttemptVerified(Box::new(verified)));
    }
    if let Some(causes) = made.retaken.get(step).cloned() {
        events.push(Event::StepInvalidated { step: step.clone(), causes });
    }
    events
}

impl Examined {
    /// How long ago the run was active, by its own files or by the journal.
    pub(crate) fn age_band(&self) -> AgeBand {
        let told = self.reentry.as_ref().and_then(|it| it.age_band(self.survey.now));
        let age = || self.survey.now.ms_since(self.run.state.last_at) / 1000;
        told.unwrap_or_else(|| AgeBand::of_seconds(age()))
    }

    /// What a resume would do. `dir` is how the person knows the run's directory.
    pub(crate) fn plan<W: World>(&self, world: &mut W, dir: &str) -> Result<Plan, Stop> {
        let (mut plan, _) = self.assembled(world, dir)?;
        if let Some(reentry) = &self.reentry {
            plan = self.told_as(reentry, plan);
        } else if let Some(superseded) = self.superseded() {
            plan = plan.superseded(&superseded.message);
        }
        Ok(match self.parked_until {
            Some(until) => plan.parked(until),
            None => plan,
        })
    }

    /// Where a resume would go on, as its plan says.
    pub(crate) fn recovery_point<W: World>(&self, world: &mut W) -> Result<RecoveryPoint, Stop> {
        // In another system's words it is told with the rows, and so it is beside a limit.
        if self.reentry.is_some() || self.parked_until.is_some() {
            return Ok(self.plan(world, "")?.recovery_point);
        }
        let (made, survey) = (&self.resumption, &self.survey);
        let after = after(world, &self.run, survey, made, None)?;
        Ok(recovery_point(&self.run, &after, made, survey))
    }

    /// The plan in our own words, and the run that it leads to.
    fn assembled<W: World>(&self, world: &mut W, dir: &str) -> Result<(Plan, Run), Stop> {
        let (made, survey) = (&self.resumption, &self.survey);
        let after = after(world, &self.run, survey, made, self.reentry.as_ref())?;
        let mut plan = assemble(&self.run, &after, made, survey, dir);
        if let Some(reentry) = &self.reentry {
            plan.last_done = reentry.told.last_done();
            plan.more = plan.run.status != Status::Completed && has_more(&after);
        }
        Ok((plan, after))
    }

    fn told_as(&self, reentry: &Reentry, plan: Plan) -> Plan {
        let telling = Telling {
            told: &*reentry.told,
            standing: &reentry.standing,
            imported: &self.imported.iter().filter_map(adopted).collect(),
            now: self.survey.now,
        };
        let mut plan = telling.retell(plan, self.is_adopted);
        if plan.run.status == Status::Completed {
            // Its end is in its own files.
            plan.findings.retain(|it| it.code != Code::AllDoneNotDelivered.as_str());
        }
        plan.reverts.extend(reentry.planned());
        plan
    }

    /// How the run stands, step by step: as its plan says, unless a driver holds it or it is over.
    pub(crate) fn view<W: World>(&self, world: &mut W, dir: &str) -> Result<View, Stop> {
        let Self { run, survey, .. } = self;
        let is_over = survey.findings.iter().any(|it| it.code == RUN_OVER);
        let status = if self.superseded().is_some() {
            Status::Cancelled
        } else if is_over {
            Status::Failed
        } else {
            Status::of(&run.state, survey.driven)
        };
        let mut view = view(run, run_info(&run.state, survey, status, dir));
        if let Some(superseded) = self.superseded() {
            view.gates.clear();
            view.needs = vec![superseded.message.clone()];
        }
        let damages = [Code::JournalDamaged.as_str(), Code::LostTail.as_str()];
        let is_damage = |it: &&Finding| damages.contains(&it.code.as_str());
        let damage = survey.findings.iter().filter(is_damage);
        view.damage = damage.map(|it| it.message.clone()).collect();
        if !survey.driven {
            let lives = |step: &str| {
                survey.in_flight.iter().any(|(it, seen)| it.as_str() == step && seen.facts.alive)
            };
            let running = view.steps.iter_mut().filter(|step| step.state == "running");
            // The journal knows only that they began.
            running.filter(|it| !lives(&it.step)).for_each(|it| "lost".clone_into(&mut it.state));
        }
        let is_over = matches!(status, Status::Completed | Status::Cancelled);
        // What becomes of a damaged run is known when it was repaired.
        if survey.driven || is_over || !view.damage.is_empty() {
            return Ok(view);
        }
        let (plan, after) = self.assembled(world, dir)?;
        if self.reentry.as_ref().is_some_and(|it| it.standing.is_all_done(&plan)) {
            view.run.status = Status::Completed;
        }
        Ok(as_planned(view, run, &after, &plan))
    }

    /// Another run lies in its place: nothing that it waits for comes any more.
    fn superseded(&self) -> Option<&Finding> {
        self.survey.findings.iter().find(|it| it.code == RUN_SUPERSEDED)
    }

    /// The answers of probes are in: decides again.
    pub(crate) fn decide_again(&mut self) {
        self.resumption = resumption(&self.run, &self.survey, &self.choices);
    }

    /// Undos of files that mislead the other system's reading.
    fn misleading(&self) -> Vec<Revert> {
        let Some(reentry) = &self.reentry else { return Vec::new() };
        let run = self.as_journaled();
        let pending = run.state.pending_reverts();
        reentry.misled_by(run, self.resumption.reverts.iter().chain(pending))
    }

    /// The run as its journal says.
    pub(crate) fn as_journaled(&self) -> &Run {
        self.journaled.as_ref().unwrap_or(&self.run)
    }

    /// The same, to be examined once more.
    pub(crate) fn into_run(self) -> Run {
        self.journaled.unwrap_or(self.run)
    }
}

/// A step that the files prove, and how certain that is.
fn adopted(event: &Event) -> Option<(Address, Certainty)> {
    let Event::AttemptAdopted(it) = event else { return None };
    Some((it.step.clone(), it.certainty))
}
