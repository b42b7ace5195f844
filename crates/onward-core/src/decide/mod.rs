//! What next? The decider: state and facts in, commands out, nothing done.
//!
//! Invariant: the same run, facts and moment give the same commands. Nothing is started that the
//! journal does not announce, and a fact that is missing comes back as a need, never as a guess.

mod adopt;
mod approval;
mod control;
mod foresee;
mod start;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::{
    address::Address,
    event::{AttemptFinished, AttemptStarted, EndStatus, Event, Item, PauseCause},
    evidence::{Cause, Reaction},
    facts::{Facts, Need, StepFacts},
    graph::{NodeId, Word},
    key::{Difference, Key, KeyParts},
    launch::Launch,
    overwritten::{overwritten, run_again},
    plural::count,
    run::{Run, Worker},
    scope::Scope,
    state::{EffectState, Lifted, Phase, RunStatus},
    time::Timestamp,
    workflow::{
        model::{Kind, Many, Template},
        template::{Quoting, RenderError},
    },
};

pub use adopt::{Source, adoption, adoptions, regressed};
pub use approval::{Content, gate_content, unused_answers};
pub use foresee::{Foreseen, Passing, foreseen, passing, passing_already};

/// What the engine is asked to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write this down; nothing else happens.
    Record(Event),
    /// Announce an attempt, wait until that is durable, spawn it.
    Start(Box<Start>),
    /// Find this out and ask again.
    Need { step: Address, needs: BTreeSet<Need> },
    /// End every running attempt.
    StopAll,
    /// Nothing can happen before this moment unless an attempt ends.
    WakeAt(Timestamp),
}

/// One attempt, rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub launch: Launch,
    pub key: KeyParts,
    /// Patterns of declared outputs: saved before the attempt, looked for after it.
    pub writes: Vec<String>,
    /// The attempt before this one failed, and what it left is to be undone first.
    pub revert_previous: bool,
    /// The attempt before this one failed, and its session can go on as far as the journal knows.
    pub goes_on: bool,
    /// Stable over attempts; given for `effect: outside`.
    pub effect: Option<String>,
    /// The name of the agent.
    pub agent: Option<String>,
}

/// What becomes of an attempt that was announced and never spawned.
#[derive(Debug)]
pub enum Again {
    /// It is still what was announced.
    Same(Box<Start>),
    Lacks(BTreeSet<Need>),
    /// What it would be now is not what was announced.
    Different,
}

/// Renders an announced attempt once more.
pub fn start_again(run: &Run, facts: &Facts, step: &Address) -> Again {
    let now = Timestamp::default();
    let decider = Decider::new(run, facts, now);
    let started = run.state.step(step).and_then(|entry| entry.started.as_ref());
    let (Some(id), Some(started)) = (run.graph.find(step), started) else {
        return Again::Different;
    };
    let rendered = decider.rendered(id, started.attempt).map(|mut start| {
        if let Some(name) =
            started.agent.as_deref().filter(|it| start.agent.as_deref() != Some(*it))
        {
            decider.hand_to(&mut start, id, name);
        }
        start
    });
    match rendered {
        Ok(start) if started.key.differences(&Key::from(&start.key)).is_empty() => {
            Again::Same(Box::new(start))
        }
        Ok(_) | Err(Hold::Fails(_)) => Again::Different,
        Err(Hold::Lacks(needs)) => Again::Lacks(needs),
    }
}

/// How a finished step would be asked for now.
#[derive(Debug)]
pub enum Defined {
    /// Part by part: what was asked for then, and what would be now. Empty = the same.
    Differs(Vec<Difference>),
    Lacks(BTreeSet<Need>),
    /// It holds under no key, or cannot be rendered: nothing is said about it.
    Unknown,
}

/// Asks for the definition of a finished step once more; what it was made from is left out.
pub fn defined(run: &Run, facts: &Facts, step: NodeId) -> Defined {
    let node = run.graph.node(step);
    let is_gate = run.defs.brief(node.def).is_gate();
    let key = run.state.step(&node.address).and_then(|entry| entry.key.as_ref());
    let Some(key) = key.filter(|_| !is_gate) else { return Defined::Unknown };
    defined_against(run, facts, step, key)
}

/// The same for the key of an attempt that has not finished.
pub fn defined_against(run: &Run, facts: &Facts, step: NodeId, key: &Key) -> Defined {
    against(run, facts, step, |now| {
        let KeyParts { definition, agent, .. } = key.get();
        let was = KeyParts { definition, agent, ..KeyParts::default() };
        let KeyParts { definition, agent, .. } = now;
        was.differences(&KeyParts { definition, agent, ..KeyParts::default() })
    })
}

/// Files that a finished step would read now, and did not.
pub fn newly_read(run: &Run, facts: &Facts, step: NodeId) -> Defined {
    let node = run.graph.node(step);
    let key = run.state.step(&node.address).and_then(|entry| entry.key.as_ref());
    let Some(key) = key else { return Defined::Unknown };
    against(run, facts, step, |now| {
        let was = key.get().reads;
        let reads = now.reads.into_iter().filter(|(path, _)| !was.contains_key(path)).collect();
        KeyParts::default().differences(&KeyParts { reads, ..KeyParts::default() })
    })
}

fn against(
    run: &Run,
    facts: &Facts,
    step: NodeId,
    differences: impl FnOnce(KeyParts) -> Vec<Difference>,
) -> Defined {
    match rendering(run, facts, step, 0) {
        Rendering::Ready(start) => Defined::Differs(differences(start.key)),
        Rendering::Lacks(needs) => Defined::Lacks(needs),
        Rendering::Fails(_) => Defined::Unknown,
    }
}

/// The items of a group that was opened before, as they would be listed now.
#[derive(Debug)]
pub enum Listed {
    Items(Vec<Item>),
    Lacks(BTreeSet<Need>),
    /// It is no such group, or its list cannot be made out.
    Unknown,
}

/// Lists the items of an `each` once more.
pub fn listed(run: &Run, facts: &Facts, group: NodeId) -> Listed {
    let Many::Each(each) = &run.defs.step(run.graph.node(group).def).many else {
        return Listed::Unknown;
    };
    let now = Timestamp::default();
    match Decider::new(run, facts, now).items(group, each) {
        Ok(items) => Listed::Items(items),
        Err(Hold::Lacks(needs)) => Listed::Lacks(needs),
        Err(Hold::Fails(_)) => Listed::Unknown,
    }
}

/// An attempt as it would be if it were started now.
#[derive(Debug)]
pub enum Rendering {
    Ready(Box<Start>),
    Lacks(BTreeSet<Need>),
    Fails(String),
}

/// Renders an attempt that the journal does not know.
pub fn rendering(run: &Run, facts: &Facts, step: NodeId, attempt: u32) -> Rendering {
    let now = Timestamp::default();
    let decider = Decider::new(run, facts, now);
    match decider.rendered(step, attempt) {
        Ok(start) => Rendering::Ready(Box::new(start)),
        Err(Hold::Lacks(needs)) => Rendering::Lacks(needs),
        Err(Hold::Fails(message)) => Rendering::Fails(message),
    }
}

/// A template of a step as it stands now; `None` when it cannot be rendered without more facts.
pub fn text(run: &Run, step: NodeId, template: &Template, quoting: Quoting) -> Option<String> {
    let facts = StepFacts::default();
    Scope { run, node: step, facts: &facts }.text(template, quoting).ok()
}

/// A command of a step as a shell runs it alone, with the variables that it needs.
pub fn command(run: &Run, step: NodeId, template: &Template) -> Option<String> {
    let facts = StepFacts::default();
    let script = Scope { run, node: step, facts: &facts }.script(template, 1).ok()?;
    Some(script.alone())
}

/// What a gate shows, as far as that is known.
#[derive(Debug)]
pub enum Shown {
    /// The gate as it would be opened at this moment.
    Now(Box<Event>),
    Lacks(BTreeSet<Need>),
    /// Its templates cannot be rendered, or it is no gate.
    Fails(String),
}

/// Looks at a gate as it is now, whatever it showed when it was opened.
pub fn gate_now(run: &Run, facts: &Facts, step: &Address) -> Shown {
    let now = Timestamp::default();
    let decider = Decider::new(run, facts, now);
    let found = run.graph.find(step).map(|id| (id, &run.defs.step(run.graph.node(id).def).kind));
    let Some((id, Kind::Gate(gate))) = found else {
        return Shown::Fails(format!("`{step}` is not a gate"));
    };
    match decider.opened(id, id, gate) {
        Ok(opened) => Shown::Now(Box::new(opened)),
        Err(Hold::Lacks(needs)) => Shown::Lacks(needs),
        Err(Hold::Fails(message)) => Shown::Fails(message),
    }
}

/// See the module.
pub fn decide(run: &Run, facts: &Facts, now: Timestamp) -> Vec<Command> {
    match run.state.status {
        RunStatus::UnderWay => {}
        RunStatus::Unopened | RunStatus::Paused { .. } | RunStatus::Ended { .. } => {
            return Vec::new();
        }
    }
    if run.state.cancelling.is_some() {
        return vec![match run.state.running {
            0 => end(EndStatus::Cancelled, Some("a gate was answered so".into())),
            _ => Command::StopAll,
        }];
    }
    if facts.draining {
        return Vec::new();
    }
    if let Some(limit) = run.defs.limits().usd
        && run.state.spent >= limit
        && !run.graph.root().is_settled()
    {
        return over_budget(run, limit);
    }
    let mut decider = Decider::new(run, facts, now);
    decider.look();
    decider.conclude()
}

fn over_budget(run: &Run, limit: crate::evidence::Usd) -> Vec<Command> {
    if run.state.running > 0 {
        return Vec::new();
    }
    vec![
        Command::Record(Event::BudgetHit { spent: run.state.spent, limit }),
        Command::Record(Event::RunPaused { cause: PauseCause::Budget, until: None }),
    ]
}

fn end(status: EndStatus, why: Option<String>) -> Command {
    Command::Record(Event::RunEnded { status, why })
}

/// What is said of a loop that took all its turns for nothing.
pub fn used_up((step, turns): (&Address, u32)) -> String {
    let turns = count(turns as usize, "turn");
    format!("`{step}` took {turns}, as many as it may, and is not through")
}

/// One round of looking at everything that is ready.
struct Decider<'a> {
    run: &'a Run,
    facts: &'a Facts,
    now: Timestamp,
    commands: Vec<Command>,
    /// The earliest moment at which a failed try may be repeated.
    wake: Option<Timestamp>,
    /// A limit holds something back: the first of them to be lifted.
    limited: Option<Lifted>,
}

/// The earlier of two moments that may be unknown.
fn sooner(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Why a ready node does not move yet.
enum Hold {
    Lacks(BTreeSet<Need>),
    Fails(String),
}

impl Hold {
    fn message(self) -> Option<String> {
        match self {
            Self::Fails(message) => Some(message),
            Self::Lacks(_) => None,
        }
    }
}

impl From<RenderError> for Hold {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Need(paths) => Self::Lacks(paths.into_iter().map(Need::Text).collect()),
            RenderError::Failed { message } => Self::Fails(message),
        }
    }
}

impl From<BTreeSet<Need>> for Hold {
    fn from(needs: BTreeSet<Need>) -> Self {
        Self::Lacks(needs)
    }
}

impl<'a> Decider<'a> {
    fn new(run: &'a Run, facts: &'a Facts, now: Timestamp) -> Self {
        Self { run, facts, now, commands: Vec::new(), wake: None, limited: None }
    }
}

impl Decider<'_> {
    fn look(&mut self) {
        let run = self.run;
        for id in run.graph.ready_control() {
            let decided = self.control(id);
            self.take(id, decided);
        }
        self.add_overwritten();
        let (parallel, running) = (run.defs.limits().parallel, run.state.running);
        let mut slots = parallel.saturating_sub(running);
        let mut ahead = self.facts.ahead.saturating_sub(running.saturating_sub(parallel));
        for id in run.graph.ready_work() {
            if slots == 0 && (ahead == 0 || !self.is_plain(id)) {
                break;
            }
            let held = &self.facts.held;
            if held.contains(&run.graph.node(id).address) || self.must_wait(id) {
                continue;
            }
            let decided = self.start(id);
            if slots > 0 {
                slots -= 1;
            } else if self.can_wait_announced(id, &decided) {
                ahead -= 1;
            } else {
                // In their order: nothing takes the slot of what came first.
                break;
            }
            self.take(id, decided);
        }
    }

    /// What was decided to count no more takes later versions of its files with it.
    fn add_overwritten(&mut self) {
        let events = self.commands.iter().filter_map(|command| match command {
            Command::Record(event) => Some(event),
            Command::Start(_) | Command::Need { .. } | Command::StopAll | Command::WakeAt(_) => {
                None
            }
        });
        let again = run_again(events);
        if !again.is_empty() {
            let found = overwritten(self.run, again);
            self.commands.extend(found.iter().map(|it| Command::Record(it.event())));
        }
    }

    /// A command that is tried for the first time and declares nothing that is looked at or saved
    /// before it begins: what runs until there is a slot for it may change that.
    fn is_plain(&self, id: NodeId) -> bool {
        let node = self.run.graph.node(id);
        let brief = self.run.defs.brief(node.def);
        let is_first = self.run.state.step(&node.address).is_none_or(|it| it.attempts == 0);
        let is_run = brief.word() == Word::Run && !brief.has_reads();
        if !is_run || brief.edits() || brief.has_worktree() || !is_first {
            return false;
        }
        let step = self.run.defs.step(node.def);
        step.writes.is_empty() && step.dir.is_none() && !step.effect_outside
    }

    /// Whether it is the start of a plain command that no file has a part in.
    fn can_wait_announced(&self, id: NodeId, decided: &Result<Vec<Command>, Hold>) -> bool {
        let has_texts = !self.facts.of(&self.run.graph.node(id).address).texts.is_empty();
        let is_start = |it: &Command| matches!(it, Command::Start(_));
        !has_texts && decided.as_ref().is_ok_and(|them| them.iter().all(is_start))
    }

    fn take(&mut self, id: NodeId, decided: Result<Vec<Command>, Hold>) {
        let address = &self.run.graph.node(id).address;
        match decided {
            Ok(commands) => self.commands.extend(commands),
            Err(Hold::Lacks(needs)) => {
                self.commands.push(Command::Need { step: address.clone(), needs });
            }
            Err(Hold::Fails(message)) => self.commands.extend(self.unstartable(id, message)),
        }
    }

    /// A failed try waits for its backoff; the steps of an agent wait while its limit holds.
    fn must_wait(&mut self, id: NodeId) -> bool {
        let entry = self.run.state.step(&self.run.graph.node(id).address);
        // A resume finds out first whether its effect happened; until then nothing tries again.
        if entry.is_some_and(|it| it.phase == Phase::Failed && it.effect == EffectState::Intended) {
            return true;
        }
        if let Some(lifted) = self.deferred(id).or_else(|| self.limit_of(id)) {
            let other = self.limited.and_then(Lifted::moment);
            self.limited = Some(sooner(other, lifted.moment()).map_or(Lifted::Unknown, Lifted::At));
            return true;
        }
        let retry_at = self.run.retry_at(id);
        let waits = retry_at.is_some_and(|moment| moment > self.now);
        if waits {
            self.wake = sooner(self.wake, retry_at);
        }
        waits
    }

    fn deferred(&self, id: NodeId) -> Option<Lifted> {
        let until = self.facts.deferred.get(&self.run.graph.node(id).address)?;
        Some(Lifted::At(*until)).filter(|it| it.holds_at(self.now))
    }

    /// The limit that keeps a step from starting, unless another agent stands in.
    fn limit_of(&self, id: NodeId) -> Option<Lifted> {
        let lifted = self.own_limit_of(id)?;
        self.stand_in(id).is_none().then_some(lifted)
    }

    /// The agent that works at a step while the limit of its own holds: one that has no limit.
    pub(super) fn stand_in(&self, id: NodeId) -> Option<Worker<'_>> {
        let own = self.run.worker(id)?;
        self.own_limit_of(id)?;
        let stand_ins = &self.facts.stand_ins;
        let name = stand_ins.get(own.name).or_else(|| stand_ins.get(own.program))?;
        let other = self.run.worker_named(self.run.graph.node(id).def, name);
        let limit = self.run.state.limit_of(other.program);
        let is_free = !limit.is_some_and(|it| it.holds_at(self.now));
        (is_free && other.program != own.program).then_some(other)
    }

    /// The limit of the agent that a step names.
    fn own_limit_of(&self, id: NodeId) -> Option<Lifted> {
        let node = self.run.graph.node(id);
        let of_agent = self.run.worker(id).and_then(|it| self.run.state.limit_of(it.program));
        let entry = self.run.state.step(&node.address);
        let parked = entry.is_some_and(|entry| {
            let cause = entry.failure.as_ref().map(|failure| failure.0);
            entry.phase == Phase::Failed && cause.is_some_and(Cause::is_limit)
        });
        // One that says nothing of a reset is tried again when a person asks for it.
        let lifted = of_agent.or(parked.then_some(Lifted::Unknown))?;
        lifted.holds_at(self.now).then_some(lifted)
    }

    /// A step whose templates cannot be rendered has failed at its first try, without a process.
    fn unstartable(&self, id: NodeId, message: String) -> [Command; 2] {
        let step = self.run.graph.node(id).address.clone();
        let attempt = self.run.state.step(&step).map_or(0, |entry| entry.attempts) + 1;
        let started = AttemptStarted::bare(step.clone(), attempt);
        let finished = AttemptFinished::failed(step, attempt, Cause::Failed, message);
        [
            Command::Record(Event::AttemptStarted(Box::new(started))),
            Command::Record(Event::AttemptFinished(Box::new(finished))),
        ]
    }

    /// When there is nothing to do and nothing runs, the run is over, or waits for a person.
    fn conclude(mut self) -> Vec<Command> {
        let run = self.run;
        let waits = self.wake.is_some() || self.gate_is_attended();
        if self.commands.is_empty() && run.state.running == 0 {
            self.commands.extend(if run.graph.root().is_settled() {
                Some(match self.outdated_within(run.graph.root_id()) {
                    Ok(asks) => asks.unwrap_or_else(|| end(EndStatus::Completed, None)),
                    Err(hold) => end(EndStatus::Failed, hold.message()),
                })
            } else if waits {
                None
            } else if let Some(lifted) = self.limited {
                let (cause, until) = (PauseCause::Limit, lifted.moment());
                let waits = self.facts.waits && until.is_some();
                (!waits).then_some(Command::Record(Event::RunPaused { cause, until }))
            } else if run.graph.open_gates().next().is_some() {
                let cause = PauseCause::Gate;
                Some(Command::Record(Event::RunPaused { cause, until: None }))
            } else if self.a_person_can_mend_it() {
                let cause = PauseCause::Person;
                Some(Command::Record(Event::RunPaused { cause, until: None }))
            } else {
                Some(end(EndStatus::Failed, self.first_failure()))
            });
        }
        let wake = sooner(self.wake, self.limited.and_then(Lifted::moment));
        self.commands.extend(wake.map(Command::WakeAt));
        self.commands
    }

    fn gate_is_attended(&self) -> bool {
        self.facts.attended && self.run.graph.open_gates().next().is_some()
    }

    /// Everything that failed waits for a person: a login, a permission, money.
    fn a_person_can_mend_it(&self) -> bool {
        let steps = self.run.state.steps.noteworthy().map(|(_, entry)| entry);
        let failed = steps.filter(|it| it.phase == Phase::Failed);
        let mut causes = failed.filter_map(|it| it.failure.as_deref()).map(|it| it.0).peekable();
        causes.peek().is_some() && causes.all(|cause| cause.leads_to() == Reaction::Ask)
    }

    fn first_failure(&self) -> Option<String> {
        let mut all = self.run.state.steps.noteworthy();
        let failed = all.find(|(_, entry)| entry.phase == Phase::Failed);
        let Some((step, entry)) = failed else {
            return self.run.state.used_up().next().map(used_up);
        };
        let detail = entry.failure.as_ref().map_or("", |failure| &failure.1);
        Some(format!("{step}: {detail}"))
    }
}
