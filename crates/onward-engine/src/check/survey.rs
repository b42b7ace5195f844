//! Looking at the world before a resume: what became of the attempts in flight, and whether what
//! was done still stands. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    event::{AttemptStarted, EndStatus, Revert},
    finding::{Code, Finding},
    launch::Seal,
    policy::Depth,
    recovery,
    run::Run,
    state::{Phase, RunStatus, StepState},
    survey::{CommitSeen, GitSeen, InFlight, Survey, counts_as_made, was_logged_by_the_run},
    time::Timestamp,
    worktree::subject,
};

use crate::{
    check::{
        by_hand, doubts,
        elsewhere::Elsewhere,
        emptied, ended, hear, lists,
        ours::Ours,
        outputs, overwriters,
        proof::{self, Committed, Rests},
        reads, stays, witness, worktrees,
    },
    revert::{self, Footprint, Judged, Others, Test, Unfinished, rescue::Undoing},
    world::{Change, Connected, SessionLack, SessionOf, Stop, World},
};

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub survey: Survey,
    /// What is to be undone, by the name of its rescue.
    pub undoing: BTreeMap<String, Undoing>,
    pub(crate) worktrees: Vec<worktrees::Seen>,
}

pub fn survey<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    elsewhere: &Elsewhere<'_>,
    depth: Depth,
) -> Result<Seen, Stop> {
    let mut survey = Survey { now: world.now_for_ages(), ..Survey::default() };
    if depth == Depth::Glance {
        return Ok(Seen { survey, ..Seen::default() });
    }
    let mut git = git(world, run)?;
    let worktrees = worktrees::look(world, run)?;
    survey.findings.extend(worktrees::findings(&worktrees));
    survey.findings.extend(orphans(connected));
    survey.findings.extend(world.others().iter().map(|it| at_work(it)));
    doubts::look_for_leftovers(world, run, &mut survey)?;
    let (now, seen) = (world.now(), (git.as_ref(), worktrees.as_slice()));
    let mut all = left_unfinished(world, run, (connected, elsewhere), seen, now)?;
    let emptied = emptied::take_out(world, run, (connected, now), &mut all)?;
    let mut undoing = BTreeMap::new();
    let mut edited: BTreeMap<Address, Vec<String>> = BTreeMap::new();
    let mut announce = |started: &AttemptStarted, judged: &Judged| {
        let number = run.state.rescues + 1 + u32::try_from(undoing.len()).unwrap_or(u32::MAX);
        let made = revert::undoing(number, started, &judged.undo);
        let reverts = made.reverts.clone();
        if let Some(first) = reverts.first() {
            undoing.insert(first.rescue.clone(), made);
        }
        reverts
    };
    for one in &all {
        let Some(started) = one.entry.started.as_deref() else { continue };
        // What lives is not undone, and says more while it does.
        let may_be_undone = one.left.is_beyond_declared() && !lives(connected, one);
        let touched =
            if may_be_undone { hear::touched(world, run, one.step, started)? } else { None };
        let (touched, others) = (touched.as_ref(), &Others::of(run, one, &all));
        let mut judged =
            one.left.judge(&Test { touched, others, ..test(connected, one, started, now) });
        if one.entry.phase == Phase::Running {
            if !started.continues && never_spawned(run, connected, one.step) {
                judged = judged.as_of_others();
            }
            let reverts = announce(started, &judged);
            let outputs = one.left.outputs_among(&judged.edited);
            let contested = judged.contested.paths.clone();
            let found = &mut survey.findings;
            let emptied = emptied.get(one.step).cloned().unwrap_or_default();
            let (seal, git) = ((connected, emptied), git.as_ref());
            let seen = in_flight(world, run, seal, one, judged, git, found)?;
            let is_taken = seen.facts.sealed || seen.facts.proof || seen.unchecked.is_some();
            if !lives(connected, one) {
                edited.insert(one.step.clone(), if is_taken { outputs } else { contested });
            }
            let seen = elsewhere.heard(run, one, seen);
            survey.findings.extend(witness::unreadable(connected, one.step, &seen));
            if !seen.facts.proof {
                survey.findings.extend(witness::not_on_disk(connected, one.step, one.entry));
            }
            survey.in_flight.insert(one.step.clone(), InFlight { reverts, ..seen });
        } else if (one.entry.phase == Phase::Lost || one.entry.may_go_on())
            && session_lacks(world, run, one, one.entry.session.as_deref(), &mut survey.findings)?
                .is_none()
        {
            survey.sessions.insert(one.step.clone());
            edited.insert(one.step.clone(), judged.edited);
        } else if keeps(run, one.step) {
            edited.insert(one.step.clone(), judged.edited);
        } else {
            let reverts = announce(started, &judged);
            if !reverts.is_empty() {
                survey.left_by_failed.insert(one.step.clone(), reverts);
            }
            edited.insert(one.step.clone(), judged.contested.paths.clone());
            if !judged.contested.is_empty() {
                survey.contested_of_failed.insert(one.step.clone(), judged.contested);
            }
        }
    }
    let ended = all.iter().filter(|one| !lives(connected, one));
    by_hand::keep_overlaid(run, ended, &mut undoing, &mut survey);
    let unfinished = half_done(world, run, connected, &all)?;
    let moved = moved(world, &worktrees)?;
    let ours = Ours { run, moved, silent: worktrees::silent(&worktrees) };
    outputs::look(world, &ours, (connected, &unfinished), depth, &mut survey)?;
    reads::look(world, &ours, connected, &unfinished, &mut survey)?;
    by_hand::look(world, &ours, (&edited, &unfinished), &mut undoing, &mut survey)?;
    lists::look(world, run, &mut survey)?;
    doubts::look_at_approvals(world, run, &mut survey)?;
    doubts::look_at_asked(world, run, &mut survey)?;
    survey.disagreements = doubts::disagreements(run, connected);
    match depth {
        Depth::Glance | Depth::Quick => {}
        Depth::Full => doubts::run_checks(world, run, &mut survey)?,
    }
    if let Some(git) = &mut git {
        worktrees::look_for_commits(world, run, git)?;
        let is_told = |path: &&String| workflow_file(run) == Some(path.as_str());
        let strange = ours.moved.difference(&unfinished);
        let strange = strange.filter(|it| !is_told(it) && !survey.is_damaged(it));
        // After a run is complete its tree is the person's.
        let is_complete = run.state.status == (RunStatus::Ended { status: EndStatus::Completed });
        git.changed = strange.filter(|_| !is_complete).cloned().collect();
        retain_strange(world, run, &mut git.changed)?;
    }
    survey.git = git;
    overwriters::look(world, &ours, (connected, &unfinished), &mut undoing, &mut survey)?;
    Ok(Seen { survey, undoing, worktrees })
}

/// What is not as the last snapshots have it.
fn moved<W: World>(world: &mut W, worktrees: &[worktrees::Seen]) -> Result<BTreeSet<String>, Stop> {
    let mut moved: BTreeSet<String> = world.moved("")?.into_iter().collect();
    for tree in worktrees::trees(worktrees) {
        moved.extend(world.moved(tree)?);
    }
    Ok(moved)
}

fn at_work(other: &str) -> Finding {
    let finding = Finding::new(Code::OtherSessionLive, format!("{other} is live"));
    finding.with_hint("two at work in one tree cannot be told apart")
}

fn orphans(connected: &Connected) -> Option<Finding> {
    let count = Some(connected.orphans).filter(|it| *it > 0)?;
    let message = match count {
        1 => "a process of this run has lost its supervisor".to_owned(),
        count => format!("{count} processes of this run have lost their supervisor"),
    };
    Some(Finding::new(Code::OrphanProcess, message).with_hint("the resume ends them"))
}

/// What unfinished attempts wrote is their own: it says nothing about an earlier writer.
fn half_done<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    all: &[Unfinished<'_>],
) -> Result<BTreeSet<String>, Stop> {
    let changes = all.iter().flat_map(|one| &one.left.changes);
    let mut paths: BTreeSet<String> = changes.map(|change| change.path.clone()).collect();
    paths.extend(announced(world, run)?);
    // What lives may write its outputs between two looks.
    let living = all.iter().filter(|one| lives(connected, one));
    paths.extend(living.flat_map(|one| one.left.declared.iter().cloned()));
    Ok(paths)
}

/// Paths that a start or a resume announced to be put back, and nothing put back yet: what is there
/// was left by the attempt before it.
fn announced<W: World>(world: &mut W, run: &Run) -> Result<Vec<String>, Stop> {
    let mut found = Vec::new();
    let running = run.state.steps.noteworthy().filter(|(_, entry)| is_running(entry));
    let begun = running.filter_map(|(_, it)| it.started.as_deref()).flat_map(|it| &it.reverts);
    let all = begun.chain(run.state.pending_reverts()).filter(|it| !it.keeps_in_place());
    for revert in all {
        if world.digest(&revert.path)? == revert.left {
            found.push(revert.path.clone());
        }
    }
    Ok(found)
}

/// The file that the run was made from. What a person edits in it is told and decided as an edit of
/// the workflow.
fn workflow_file(run: &Run) -> Option<&str> {
    run.state.opened.as_ref()?.file.as_deref()
}

/// Leaves out what a step of the run made or wrote into another system's log, and what the last
/// resume put back: that is known, whichever attempt took the last snapshot.
fn retain_strange<W: World>(
    world: &mut W,
    run: &Run,
    changed: &mut Vec<String>,
) -> Result<(), Stop> {
    let mut strange = Vec::new();
    let undone = run.state.resumed.as_deref().map_or(&[][..], |it| &it.reverts);
    for path in changed.drain(..) {
        let now = world.digest(&path)?;
        let is_back = undone.iter().any(|it| it.path == path && it.base == now);
        let is_ours = |now| {
            counts_as_made(&run.state, &path, now) || was_logged_by_the_run(&run.state, &path, now)
        };
        if !is_back && !now.is_some_and(is_ours) {
            strange.push(path);
        }
    }
    *changed = strange;
    Ok(())
}

/// Every attempt that is in flight or failed, with what it changed.
fn unfinished<'r, W: World>(
    world: &mut W,
    run: &'r Run,
    connected: &Connected,
    git: Option<&GitSeen>,
) -> Result<Vec<Unfinished<'r>>, Stop> {
    let mut all = Vec::new();
    for (step, entry) in run.state.steps.noteworthy() {
        let Some(started) = entry.started.as_deref() else { continue };
        let mut left = match entry.phase {
            // Nothing in the tree can be its own, but a person wants to know of its outputs.
            Phase::Running if !started.continues && never_spawned(run, connected, step) => {
                let mut left = revert::declared(world, started)?;
                // What its start announced to be undone, and nothing undid yet, is known.
                left.changes.retain(|it| !is_announced(it, &started.reverts));
                left
            }
            // What the supervisor saw right after it tells its changes from later ones.
            Phase::Running => {
                let after = seal_of(connected, step, entry).and_then(|it| it.after.as_deref());
                revert::footprint(world, started, after)?
            }
            Phase::Failed => revert::footprint(world, started, entry.after.as_deref())?,
            // It was to be continued, so that what it left was not undone; and then it was not.
            Phase::Lost if entry.lost_by.is_some_and(recovery::Rung::continues) => {
                revert::footprint(world, started, None)?
            }
            Phase::Pending
            | Phase::Waiting
            | Phase::Done
            | Phase::Tolerated
            | Phase::Skipped
            | Phase::Lost
            | Phase::Stale => continue,
        };
        // What a resume that was cut short is to undo is undone first, and no second time.
        left.changes.retain(|it| !is_announced(it, run.state.pending_reverts()));
        left.leave_to_outputs(&entry.evidence);
        let has_moved = git.is_some_and(|git| git.known.head != git.now.head);
        let mut one = Unfinished { step, entry, left };
        if started.base.is_none() && started.cwd.is_empty() && has_moved {
            let limit_ns = test(connected, &one, started, world.now()).limit_ns;
            leave_committed(world, &mut one.left, limit_ns)?;
        }
        all.push(one);
    }
    Ok(all)
}

/// What unfinished attempts left, without what is no work of theirs.
fn left_unfinished<'r, W: World>(
    world: &mut W,
    run: &'r Run,
    (connected, elsewhere): (&Connected, &Elsewhere<'_>),
    (git, worktrees): (Option<&GitSeen>, &[worktrees::Seen]),
    now: Timestamp,
) -> Result<Vec<Unfinished<'r>>, Stop> {
    let mut all = unfinished(world, run, connected, git)?;
    elsewhere.leave_to_others(&mut all, run, worktrees);
    let limit_ns =
        |one: &Unfinished<'_>, it: &AttemptStarted| test(connected, one, it, now).limit_ns;
    elsewhere.doubt(world, &mut all, &limit_ns)?;
    Ok(all)
}

pub(super) fn lives(connected: &Connected, one: &Unfinished<'_>) -> bool {
    let is_it = |it: &(Address, u32)| it.0 == *one.step && it.1 == one.entry.attempts;
    one.entry.phase == Phase::Running && connected.alive.iter().any(is_it)
}

pub(super) fn seal_of<'c>(
    connected: &'c Connected,
    step: &Address,
    entry: &StepState,
) -> Option<&'c Seal> {
    connected.seals.iter().find(|seal| seal.is_of(step, entry))
}

/// The path is still as the undo is to find it.
fn is_announced(change: &Change, reverts: &[Revert]) -> bool {
    let left = change.left.map(|(digest, _)| digest);
    let mut undone = reverts.iter().filter(|revert| !revert.keeps_in_place());
    undone.any(|revert| revert.path == change.path && revert.left == left)
}

/// What was committed since is no half-done work. What other hands changed before that is theirs to
/// decide about all the same.
fn leave_committed<W: World>(
    world: &mut W,
    left: &mut Footprint,
    limit_ns: Option<i64>,
) -> Result<(), Stop> {
    let is_late = |it: &&Change| it.changed_ns > limit_ns;
    let own = left.changes.iter().filter(|it| limit_ns.is_none() || !is_late(it));
    let paths: Vec<String> = own.map(|change| change.path.clone()).collect();
    let committed = world.as_committed(&paths)?;
    left.changes.retain(|change| !committed.contains(&change.path));
    Ok(())
}

/// How an attempt's own changes are told from later ones.
pub(super) fn test<'o>(
    connected: &Connected,
    one: &Unfinished<'_>,
    started: &AttemptStarted,
    now: Timestamp,
) -> Test<'o> {
    const NO_OTHERS: &Others = &Others::NONE;
    let entry = one.entry;
    if entry.phase == Phase::Failed {
        // Without the snapshot after it, its own part of the rest cannot be told.
        let unclear = started.base.is_some() && entry.after.is_none();
        let limit_ns = started.base.is_none().then(|| revert::limit_ns(entry.ended_at));
        return Test { limit_ns, survived: unclear, touched: None, others: NO_OTHERS };
    }
    if entry.phase == Phase::Lost {
        // When it was given up, what it left was untouched.
        let limit_ns = Some(revert::limit_ns(entry.ended_at));
        return Test { limit_ns, survived: false, touched: None, others: NO_OTHERS };
    }
    let sealed = seal_of(connected, one.step, entry);
    if sealed.is_some_and(|it| it.after.is_some()) {
        return Test { limit_ns: None, survived: false, touched: None, others: NO_OTHERS };
    }
    // Until its end, what it changed is its own, also while a resume ends it: of a process that
    // outlived its supervisor until this very examination the end is known.
    let ended = sealed.or_else(|| witness::unsettled(connected, one.step, entry));
    let lived_on = connected.survived.names(one.step, entry.attempts);
    let ended = ended.map(|seal| seal.at).or(lived_on.then_some(now));
    let signs = [connected.last_heartbeat, ended, Some(entry.started_at)].into_iter().flatten();
    // A sign from the future is of a clock that was set back since: it does not say when it was.
    let latest = now.plus_ms(revert::AFTERGLOW_MS);
    let last_sign = signs.filter(|it| *it <= latest).max().unwrap_or_default();
    let survived = connected.survived.has(one.step, entry.attempts);
    Test { limit_ns: Some(revert::limit_ns(last_sign)), survived, touched: None, others: NO_OTHERS }
}

/// The branch, next to what the run last knew of it.
fn git<W: World>(world: &mut W, run: &Run) -> Result<Option<GitSeen>, Stop> {
    let resumed = run.state.resumed.as_ref().and_then(|it| it.git.clone());
    let known = resumed.or_else(|| run.state.opened.as_ref().and_then(|it| it.git.clone()));
    let (Some(mut known), Some(mut now)) = (known, world.head("")?) else { return Ok(None) };
    // Commits of the run's own steps are known as soon as a step ended on them.
    known.head = run.state.head.clone().or(known.head);
    // The journal has the branch without the secrets that its name holds.
    known.branch = known.branch.map(|it| world.cleaned(it));
    now.branch = now.branch.map(|it| world.cleaned(it));
    let mut seen = GitSeen { known, now, ..GitSeen::default() };
    if seen.known.head != seen.now.head {
        if let Some(now) = &seen.now.head {
            seen.commits = world.commits("", seen.known.head.as_deref(), now)?;
        }
        if let Some(known) = &seen.known.head {
            seen.missing = world.commits("", seen.now.head.as_deref(), known)?;
        }
        for commit in seen.commits.iter_mut().chain(&mut seen.missing) {
            commit.subject = world.cleaned(std::mem::take(&mut commit.subject));
        }
    }
    Ok(Some(seen))
}

fn keeps(run: &Run, step: &Address) -> bool {
    let id = run.graph.find(step);
    id.is_some_and(|id| run.defs.step(run.graph.node(id).def).keep)
}

/// Whether the journal says that an attempt of the step is running.
pub fn is_running(entry: &StepState) -> bool {
    entry.phase == Phase::Running
}

/// Known never to have been spawned: the supervisor's log is whole and does not have it. A restart
/// of the machine may have taken the unsynced end of that log with it.
pub fn never_spawned(run: &Run, connected: &Connected, step: &Address) -> bool {
    let Some(entry) = run.state.step(step) else { return true };
    let attempt = entry.attempts;
    let is = |other: &(Address, u32)| other.0 == *step && other.1 == attempt;
    let sealed = seal_of(connected, step, entry).is_some();
    connected.spawned_is_complete
        && is_of_this_boot(run, connected, entry)
        && !sealed
        && !connected.alive.iter().any(is)
        && !connected.spawned.iter().any(is)
}

/// The machine was not restarted since the attempt was announced.
fn is_of_this_boot(run: &Run, connected: &Connected, entry: &StepState) -> bool {
    connected.boot_id == run.state.boot_id && !entry.outlived_boot
}

fn in_flight<W: World>(
    world: &mut W,
    run: &Run,
    (connected, emptied): (&Connected, Vec<String>),
    one: &Unfinished<'_>,
    judged: Judged,
    git: Option<&GitSeen>,
    findings: &mut Vec<Finding>,
) -> Result<InFlight, Stop> {
    let (step, attempt) = (one.step, one.entry.attempts);
    let made = (step.clone(), attempt);
    let mut commits = commits_of(world, one, git)?;
    commits.retain(|it| it.by.as_ref() == Some(&made));
    let is_dirty = !judged.undo.is_empty() || !judged.contested.is_empty();
    let committed = if commits.iter().any(|it| it.subject == subject(step, attempt)) {
        Committed::ByUs
    } else if !commits.is_empty() && !is_dirty {
        Committed::ByItself
    } else {
        Committed::No
    };
    let is_whole = is_of_this_boot(run, connected, one.entry);
    // What it left was whole at its end, and is not any more.
    let (proof, unchecked) = match run.graph.find(step).filter(|_| emptied.is_empty()) {
        Some(id) => {
            let seen = proof::Seen { committed, is_whole, edited: &judged.edited };
            match proof::look(world, run, id, one, &seen)? {
                None => (None, None),
                Some((proof, Rests::OnItself)) => (Some(proof), None),
                Some((proof, Rests::OnItsCheck)) => (None, Some(proof)),
            }
        }
        None => (None, None),
    };
    let seal = seal_of(connected, step, one.entry);
    let sealed = seal.is_some();
    let ended::Ended { failed, finished, gone } = match seal {
        Some(seal) => ended::look(world, run, one, seal)?,
        None => ended::Ended::default(),
    };
    let alive = lives(connected, one);
    let continues = one.entry.started.as_ref().is_some_and(|it| it.continues);
    let over = sealed || alive || proof.is_some();
    let session =
        if over { None } else { hear::session(world, run, step, one.entry.session.as_deref())? };
    let has_session = session.is_some();
    let session_lacks = match &session {
        Some(session) => session_lacks(world, run, one, Some(session), findings)?,
        None => None,
    };
    Ok(InFlight {
        facts: recovery::AttemptFacts {
            announced: true,
            // The attempt that began the session it was to go on in was spawned for sure.
            spawned: continues || !never_spawned(run, connected, step),
            sealed,
            alive,
            proof: proof.is_some(),
            session: has_session && session_lacks.is_none(),
            dirty: is_dirty,
            contested: !judged.contested.is_empty(),
        },
        failed,
        finished,
        gone,
        emptied: if sealed { emptied } else { Vec::new() },
        reverts: Vec::new(),
        contested: judged.contested,
        proof,
        unchecked: unchecked.filter(|_| !sealed && !alive),
        checked: None,
        // Without a probe there is nothing to ask.
        probed: run.is_blind(step).then_some(recovery::Probed::Unknown),
        session_lacks,
        stays: stays::told(&commits, &one.left.unseen),
    })
}

/// Commits in the tree that an attempt worked in.
fn commits_of<W: World>(
    world: &mut W,
    one: &Unfinished<'_>,
    git: Option<&GitSeen>,
) -> Result<Vec<CommitSeen>, Stop> {
    let Some(git) = git else { return Ok(Vec::new()) };
    let cwd = one.entry.started.as_ref().map_or("", |started| &started.cwd);
    if cwd.is_empty() {
        return Ok(git.commits.clone());
    }
    match world.head(cwd)?.and_then(|it| it.head) {
        Some(head) => world.commits(cwd, git.known.head.as_deref(), &head),
        None => Ok(Vec::new()),
    }
}

/// What keeps the session of an attempt from going on; `None` = nothing. One that is open elsewhere
/// is a finding of its own.
fn session_lacks<W: World>(
    world: &mut W,
    run: &Run,
    one: &Unfinished<'_>,
    session: Option<&str>,
    findings: &mut Vec<Finding>,
) -> Result<Option<String>, Stop> {
    let Unfinished { step, entry, .. } = one;
    let (Some(started), Some(session)) = (entry.started.as_deref(), session) else {
        return Ok(Some("there is none".to_owned()));
    };
    let key = started.key.get();
    let agent = started.agent.as_deref().unwrap_or_default();
    let own = key.agent.get("use").map_or(agent, String::as_str);
    // Another agent may have stood in for the one that the key names.
    let worker = run.graph.find(step).and_then(|id| run.worker_at(id));
    let adapter = worker.map_or(own, |it| it.program);
    let of = SessionOf { agent, adapter, session, cwd: &started.cwd };
    if let Some(lacks) = world.session_lacks(&of)? {
        if let SessionLack::Busy(why) = &lacks {
            let message = format!("the session of {step} is open elsewhere: {why}");
            let finding = Finding::new(Code::SessionBusy, message).at_step(step);
            findings.push(finding.with_hint(
                "onward leaves it alone: the step begins in a new session, with a brief",
            ));
        }
        return Ok(Some(lacks.why().to_owned()));
    }
    doubts::redefined(world, run, step, &started.key)
}
