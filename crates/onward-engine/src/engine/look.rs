//! What every front end that only looks calls: the plan of a run, how it stands, and the same for
//! runs of other systems. All of it is one examination, shown in one way or another.

use std::{path::Path, sync::Arc};

use onward_core::{
    event::EndStatus,
    finding::{Code, Finding},
    graph::Defs,
    journal::{DamagedLines, Rest},
    plan::{Plan, next_record},
    policy::{Choices, Depth},
    run::Run,
    state::{RunStatus, State},
    time::Timestamp,
    view::View,
    workflow::Loaded,
};

use super::{EngineError, Machine, RunPlace, adopt, lacking, look_place};
use crate::{
    foreign::Foreign,
    load::journal::{JOURNAL, load},
    locate::{FoundSite, Holder, LoadWorkflowError, Origin, holder, load_builtin, load_pinned},
    resume::{
        self,
        examine::{Before, Examined, ForeignRead, Subject, examine},
    },
    world::{Connected, World as _, real::RealWorld},
};

/// How a run is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looking<'a> {
    pub choices: &'a Choices,
    pub depth: Depth,
    /// An edited workflow file is left aside.
    pub pinned: bool,
}

/// What a resume would do.
pub fn plan_run(run_dir: &Path, machine: &Machine, choices: &Choices) -> Result<Plan, EngineError> {
    examine_run(run_dir, machine, choices, Depth::Quick, false)
}

/// The same, looking as deep as the person wants before they say yes: in full, every `check` is
/// run. `pinned` leaves an edited workflow file aside.
pub fn examine_run(
    run_dir: &Path,
    machine: &Machine,
    choices: &Choices,
    depth: Depth,
    pinned: bool,
) -> Result<Plan, EngineError> {
    let (mut world, examined) = look_at(run_dir, machine, &Looking { choices, depth, pinned })?;
    Ok(examined.plan(&mut world, &run_dir.display().to_string())?)
}

/// How a run stands, as its plan would say; beside it the run itself.
pub fn view_run(
    run_dir: &Path,
    machine: &Machine,
    depth: Depth,
) -> Result<(View, Run), EngineError> {
    let looking = Looking { choices: &Choices::default(), depth, pinned: true };
    let (_, examined) = look_at(run_dir, machine, &looking)?;
    let view = examined.view(&run_dir.display().to_string());
    Ok((view, examined.run))
}

fn look_at(
    run_dir: &Path,
    machine: &Machine,
    looking: &Looking<'_>,
) -> Result<(RealWorld, Examined), EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    // Before the journal: a driver that ends in between is then only called alive too long.
    let driver = holder(run_dir);
    let bytes = std::fs::read(run_dir.join(JOURNAL))
        .map_err(|_| EngineError::NotARun(run_dir.to_owned()))?;
    let loaded = load(&bytes)?;
    drop(bytes);
    let mut findings = Vec::new();
    match &loaded.tail.rest {
        Rest::Clean => {}
        // Half of what the driver is writing at this moment.
        Rest::Torn(_) if driver.is_some() => {}
        Rest::Torn(torn) => findings.push(resume::torn_tail(torn.offset)),
        Rest::Damaged(damage) => findings.extend(damaged(damage)),
    }
    findings.extend(driver.as_ref().map(still_running));
    let workflow = load_pinned(run_dir)?.workflow;
    // A run that is driven, or that is complete, has no use for another workflow.
    let complete = loaded.state.status == (RunStatus::Ended { status: EndStatus::Completed });
    let origin = if driver.is_some() || complete || looking.pinned {
        Origin::Gone
    } else {
        Origin::of(&at.project, run_dir)
    };
    if let Origin::Invalid(finding) = &origin {
        findings.push(finding.clone());
    }
    let is_new = |it: &Loaded| Some(it.hash) != loaded.state.workflow_hash;
    let edited = origin.valid().filter(is_new);
    let current = edited.as_ref().map_or(&workflow, |it| &it.workflow).clone();
    let lacking = lacking(&current, machine);
    let foreign = adopt::foreign_of(&at.project, run_dir);
    let mut world = RealWorld::new(at.setup(machine), None);
    let connected = match looking.depth {
        Depth::Glance => Connected::default(),
        Depth::Quick | Depth::Full => world.look_at_hands()?,
    };
    let read = |foreign| ForeignRead { foreign, reading: None, is_new: false };
    let subject = Subject {
        run: Run::new(Arc::new(Defs::new(current)), loaded.state),
        connected: &connected,
        choices: looking.choices,
        depth: looking.depth,
        edited: edited.as_ref().map(|new| (&workflow, new)),
        foreign: foreign.as_ref().map(read),
        driven: driver.is_some(),
        findings,
        lacking,
        before: Before::default(),
    };
    let examined = examine(&mut world, subject)?;
    Ok((world, examined))
}

/// What a resume of another system's run would do, before a run of ours goes on with it.
pub fn plan_site(
    found: &FoundSite,
    machine: &Machine,
    choices: &Choices,
    depth: Depth,
) -> Result<Plan, EngineError> {
    let name = found.site.workflow;
    let workflow = load_builtin(Some(&found.project), name)
        .ok_or_else(|| EngineError::NoWorkflow { name: name.to_owned() })?
        .map_err(|problems| EngineError::from(LoadWorkflowError::Invalid(problems)))?;
    let mut world = look_place(&found.project, machine);
    let now = world.now_for_ages();
    let foreign = Foreign { dialect: found.dialect, site: found.site.clone(), begins: false };
    let read = ForeignRead { foreign: &foreign, reading: None, is_new: true };
    let subject = Subject {
        run: imagined(found, &workflow, now)?,
        connected: &Connected::default(),
        choices,
        depth,
        edited: None,
        foreign: Some(read),
        driven: false,
        findings: Vec::new(),
        lacking: lacking(&workflow.workflow, machine).map(unconfigured),
        before: Before::default(),
    };
    let examined = examine(&mut world, subject)?;
    let dir = found.dir.display().to_string();
    let mut plan = examined.plan(&mut world, &dir)?;
    plan.run.id.clone_from(&found.site.name);
    if !found.card().continues {
        let message =
            format!("this version of onward reads {name} runs, but cannot drive them yet");
        let finding = Finding::new(Code::CannotContinue, message);
        plan.findings.push(finding.with_hint("go on with the system that wrote them"));
    }
    Ok(plan)
}

/// A report of another system's run in a format of that system; `None` when it has no such format.
pub fn page_of_site(
    found: &FoundSite,
    machine: &Machine,
    format: &str,
) -> Result<Option<String>, EngineError> {
    let mut world = look_place(&found.project, machine);
    let foreign = Foreign { dialect: found.dialect, site: found.site.clone(), begins: false };
    let reading = foreign.read(&mut world)?;
    Ok(reading.told.and_then(|told| told.page(format)))
}

/// A run that goes on with the site, in memory.
fn imagined(found: &FoundSite, workflow: &Loaded, now: Timestamp) -> Result<Run, EngineError> {
    let mut run = Run::new(Arc::new(Defs::new(workflow.workflow.clone())), State::default());
    for event in adopt::imagined(found, workflow) {
        let record = next_record(&run.state, now, event);
        run.after(record)?;
    }
    Ok(run)
}

/// The files themselves stand against nothing: a line of configuration settles it.
fn unconfigured(lacking: Finding) -> Finding {
    let finding = Finding::new(Code::AgentNotConfigured, lacking.message);
    finding.with_hint(lacking.hint.unwrap_or_default())
}

fn still_running(driver: &Holder) -> Finding {
    let Holder { pid, host, since, .. } = driver;
    let message = format!("it is driven by process {pid} on {host} since {since}");
    Finding::new(Code::StillRunning, message).with_hint("watch it with `onward attach`")
}

fn damaged(damage: &DamagedLines) -> Vec<Finding> {
    let finding = |message| Finding::new(Code::JournalDamaged, message);
    let hint = "run `onward repair`";
    let lines = damage.listed.iter().map(|it| {
        let message = format!("line {} of the journal cannot be read: {}", it.line, it.why);
        finding(message).with_hint(hint)
    });
    let more = (damage.more > 0).then(|| {
        finding(format!("{} more lines of the journal cannot be read", damage.more)).with_hint(hint)
    });
    lines.chain(more).collect()
}
