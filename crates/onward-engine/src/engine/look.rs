//! What every front end that only looks calls: the plan of a run, how it stands, and the same for
//! runs of other systems. All of it is one examination, shown in one way or another.

use std::{collections::BTreeSet, io::ErrorKind, panic, path::Path, sync::Arc, thread};

use onward_core::{
    address::Address,
    event::EndStatus,
    finding::{Code, Finding},
    graph::Defs,
    journal::{DamagedLines, Rest},
    plan::{Plan, next_record},
    policy::{Choices, Depth},
    run::{Run, Worker},
    state::{RunStatus, State},
    time::Timestamp,
    told::Told,
    view::View,
    workflow::{Loaded, model::Workflow},
};

use super::{
    EngineError, Machine, RunPlace, adopt, lacking, lacking_now, look_place, without_repository,
};
use crate::{
    agents::{Spoken, adapter_of},
    foreign::Foreign,
    load::{
        checkpoint::{Folded, is_kept, load_looking},
        journal::JOURNAL,
    },
    locate::{FoundSite, Holder, LoadWorkflowError, Origin, Pinned, Project, holder, load_builtin},
    resume::{
        self,
        examine::{Before, Examined, ForeignRead, Subject, examine},
    },
    world::{
        Connected, World as _,
        real::{RealWorld, disk::io_stop},
        seen::Seen,
    },
};

/// How a run is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Looking<'a> {
    pub choices: &'a Choices,
    /// In full, every `check` is run.
    pub depth: Depth,
    /// An edited workflow file is left aside.
    pub pinned: bool,
    /// Another system's files are read once for all that share this.
    pub seen: &'a Seen,
}

/// What a resume would do.
pub fn plan_run(run_dir: &Path, machine: &Machine, choices: &Choices) -> Result<Plan, EngineError> {
    let seen = &Seen::default();
    examine_run(run_dir, machine, &Looking { choices, depth: Depth::Quick, pinned: false, seen })
}

/// The same for a command that ends with it. What the plan was made of is left to the end of the
/// process: given back piece by piece it takes longer than much of the plan. `folded` is the
/// journal as this command has folded it before.
pub fn plan_and_end(
    run_dir: &Path,
    machine: &Machine,
    choices: &Choices,
    folded: Option<Arc<Folded>>,
) -> Result<Plan, EngineError> {
    let seen = &Seen::default();
    let looking = Looking { choices, depth: Depth::Quick, pinned: false, seen };
    let (mut world, examined) = look_at(run_dir, machine, &looking, folded)?;
    let plan = examined.plan(&mut world, &run_dir.display().to_string())?;
    std::mem::forget(examined);
    Ok(plan)
}

/// The same, looking as deep as the person wants before they say yes.
pub fn examine_run(
    run_dir: &Path,
    machine: &Machine,
    looking: &Looking<'_>,
) -> Result<Plan, EngineError> {
    let (mut world, examined) = look_at(run_dir, machine, looking, None)?;
    Ok(examined.plan(&mut world, &run_dir.display().to_string())?)
}

/// How a run stands, as its plan says; beside it the run itself, under the workflow that it keeps.
/// `folded` is the journal as this command has folded it before.
pub fn view_run(
    run_dir: &Path,
    machine: &Machine,
    folded: Option<Arc<Folded>>,
) -> Result<(View, Run), EngineError> {
    let (choices, seen) = (&Choices::default(), &Seen::default());
    let looking = Looking { choices, depth: Depth::Quick, pinned: false, seen };
    let (mut world, examined) = look_at(run_dir, machine, &looking, folded)?;
    let mut view = examined.view(&mut world, &run_dir.display().to_string())?;
    view.run.about = adopt::about(&examined.run.state);
    let is_edited = examined.survey.edited.is_some();
    let run = if is_edited {
        Run::new(Pinned::look(run_dir, &machine.env)?.defs, examined.run.state)
    } else {
        examined.run
    };
    Ok((view, run))
}

/// When the run was last seen at work, beyond what its journal says.
pub fn last_sign(run_dir: &Path, machine: &Machine) -> Result<Option<Timestamp>, EngineError> {
    let at = RunPlace::of(run_dir, machine)?;
    Ok(RealWorld::new(at.setup(machine), None).look_at_hands(&State::default())?.last_sign())
}

fn look_at(
    run_dir: &Path,
    machine: &Machine,
    looking: &Looking<'_>,
    folded: Option<Arc<Folded>>,
) -> Result<(RealWorld, Examined), EngineError> {
    let machine = &machine.looking();
    let at = RunPlace::of(run_dir, machine)?;
    // Before the journal: a driver that ends in between is then only called alive too long.
    let driver = holder(run_dir);
    let is_fixed = driver.is_some() || looking.pinned;
    let workflow = || {
        let origin = if is_fixed { Origin::Gone } else { Origin::of(&at.project, run_dir) };
        (Pinned::look(run_dir, &machine.env), origin)
    };
    let mut world = RealWorld::new(at.setup(machine), None);
    // What the journal and the supervisor's log say.
    let told = || {
        let looked = load_looking(run_dir, &machine.env, folded).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                EngineError::NotARun(run_dir.to_owned())
            } else {
                EngineError::from(io_stop("read", &run_dir.join(JOURNAL))(error))
            }
        })?;
        let loaded = looked?.loaded;
        let connected = match looking.depth {
            Depth::Glance => Connected::default(),
            Depth::Quick | Depth::Full => world.look_at_hands(&loaded.state)?,
        };
        Ok::<_, EngineError>((loaded, connected))
    };
    let (told, (pinned, origin)) =
        if is_kept(run_dir) { both(told, workflow) } else { (told(), workflow()) };
    let (loaded, connected) = told?;
    let mut findings = Vec::new();
    match &loaded.tail.rest {
        Rest::Clean => {}
        // Half of what the driver is writing at this moment.
        Rest::Torn(_) if driver.is_some() => {}
        Rest::Torn(torn) => findings.push(resume::torn_tail(torn.offset)),
        Rest::Damaged(damage) => findings.extend(damaged(damage)),
    }
    findings.extend(driver.as_ref().map(Holder::still_running));
    let pinned = pinned?.defs;
    // A run that is driven, or that is complete, has no use for another workflow.
    let complete = loaded.state.status == (RunStatus::Ended { status: EndStatus::Completed });
    let origin = if complete { Origin::Gone } else { origin };
    if let Origin::Invalid(finding) = &origin {
        findings.push(finding.clone());
    }
    let is_new = |it: &Loaded| Some(it.hash) != loaded.state.workflow_hash;
    let edited = origin.valid().filter(is_new);
    let lacking = lacking_now(edited.as_ref(), &pinned, machine);
    let (defs, workflow) = match &edited {
        Some(new) => (Arc::new(Defs::new(new.workflow.clone())), Some(pinned.workflow())),
        None => (pinned, None),
    };
    let foreign = adopt::foreign_of(&at.project, run_dir, &machine.env);
    let read = |foreign| ForeignRead { foreign, seen: looking.seen, is_new: false };
    let subject = Subject {
        run: Run::new(defs, loaded.state),
        connected: &connected,
        choices: looking.choices,
        depth: looking.depth,
        edited: workflow.as_ref().zip(edited.as_ref()),
        foreign: foreign.as_ref().map(read),
        theirs: foreign.as_ref().map(Foreign::theirs).unwrap_or_default(),
        // One that came meanwhile has started what the journal did not have yet.
        driven: driver.is_some() || holder(run_dir).is_some(),
        findings,
        lacking,
        before: Before::default(),
    };
    let examined = examine(&mut world, subject)?;
    Ok((world, examined))
}

/// Two readings of a large run, side by side.
fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let one = one();
        (one, other.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    })
}

/// How the words of a step's agent are told to a person; `None` where they are plain already.
pub fn voice_of(run: &Run, step: &Address, machine: &Machine) -> Option<Spoken> {
    let Worker { name, program } = run.worker_at(run.graph.find(step)?)?;
    let adapter = adapter_of(name, program, &machine.adapters, &machine.agents);
    (adapter.card().closes && machine.stand_in.is_none()).then_some(adapter)
}

/// What a resume of another system's run would do, before a run of ours goes on with it.
pub fn plan_site(
    found: &FoundSite,
    machine: &Machine,
    choices: &Choices,
    depth: Depth,
) -> Result<Plan, EngineError> {
    let name = found.site.workflow;
    let workflow = load_builtin(Some(&found.project), name, &machine.cast)
        .ok_or_else(|| EngineError::NoWorkflow { name: name.to_owned() })?
        .map_err(|problems| EngineError::from(LoadWorkflowError::Invalid(problems)))?;
    let machine = &machine.looking();
    let mut world = look_place(&found.project, machine);
    let now = world.now_for_ages();
    let foreign = Foreign { dialect: found.dialect, site: found.site.clone(), begins: false };
    let read = ForeignRead { foreign: &foreign, seen: &found.seen, is_new: true };
    let subject = Subject {
        run: imagined(found, &workflow, now)?,
        connected: &Connected::default(),
        choices,
        depth,
        edited: None,
        foreign: Some(read),
        theirs: foreign.theirs(),
        driven: false,
        findings: Vec::new(),
        lacking: lacking(&workflow.workflow, machine)
            .map(unconfigured)
            .or_else(|| homeless(&workflow.workflow, &found.project)),
        before: Before::default(),
    };
    let examined = examine(&mut world, subject)?;
    let dir = found.dir.display().to_string();
    let mut plan = examined.plan(&mut world, &dir)?;
    plan.run.id.clone_from(&found.site.name);
    Ok(plan)
}

/// A report in a format of another system, or else the formats that it has.
pub type Page = Result<String, &'static [&'static str]>;

/// A report of another system's run in a format of that system.
pub fn page_of_site(
    found: &FoundSite,
    machine: &Machine,
    format: &str,
) -> Result<Page, EngineError> {
    let foreign = Foreign { dialect: found.dialect, site: found.site.clone(), begins: false };
    let told = told_by(&found.project, machine, (&foreign, &found.seen))?;
    Ok(page(told.as_deref(), format))
}

/// The same of a run of ours that goes on with one of another system; any other has no format.
pub fn page_of_run(run_dir: &Path, machine: &Machine, format: &str) -> Result<Page, EngineError> {
    Ok(page(told_of_run(run_dir, machine)?.as_deref(), format))
}

fn page(told: Option<&dyn Told>, format: &str) -> Page {
    let Some(told) = told else { return Err(&[]) };
    told.page(format).ok_or_else(|| told.formats())
}

/// Of these steps of a run of ours, those that the other system's plan shows in this row.
pub fn steps_in_row<'a>(
    run_dir: &Path,
    machine: &Machine,
    row: &str,
    steps: impl Iterator<Item = &'a str>,
) -> Result<BTreeSet<&'a str>, EngineError> {
    let Some(told) = told_of_run(run_dir, machine)? else { return Ok(BTreeSet::new()) };
    let is_in_it = |step: &&str| told.row(&Address::from_text(step)).as_str() == row;
    Ok(steps.filter(is_in_it).collect())
}

/// What the files tell of a run of ours that goes on with one of another system.
fn told_of_run(run_dir: &Path, machine: &Machine) -> Result<Option<Box<dyn Told>>, EngineError> {
    let project = RunPlace::of(run_dir, machine)?.project;
    match adopt::foreign_of(&project, run_dir, &machine.env) {
        Some(foreign) => told_by(&project, machine, (&foreign, &Seen::default())),
        None => Ok(None),
    }
}

fn told_by(
    project: &Project,
    machine: &Machine,
    (foreign, seen): (&Foreign, &Seen),
) -> Result<Option<Box<dyn Told>>, EngineError> {
    let mut world = look_place(project, &machine.looking());
    let files = seen.files(&mut world, &foreign.site, foreign.dialect.card())?;
    Ok(foreign.parse(files)?.told)
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

/// A step wants a worktree, and there is no repository to make one of: a resume refuses.
fn homeless(workflow: &Workflow, project: &Project) -> Option<Finding> {
    let error = without_repository(workflow, project)?;
    let finding = Finding::new(Code::AgentNotConfigured, error.to_string());
    Some(finding.with_hint(error.hint().unwrap_or_default()))
}

/// The files themselves stand against nothing: a line of configuration settles it.
fn unconfigured(lacking: Finding) -> Finding {
    let finding = Finding::new(Code::AgentNotConfigured, lacking.message);
    finding.with_hint(lacking.hint.unwrap_or_default())
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
