//! Looking at the world before a resume: what became of the attempts in flight, and whether what
//! was done still stands. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    decide,
    digest::Digest,
    event::{AttemptStarted, Revert},
    evidence::Evidence,
    finding::{Code, Finding},
    graph::NodeId,
    judge::{self, ResultSeen},
    launch::Seal,
    policy::Depth,
    recovery,
    run::Run,
    state::{Phase, StepState},
    survey::{
        CommitSeen, GitSeen, InFlight, OutputSeen, Proof, ReadSeen, Survey, outputs_to_check,
        was_made_by_the_run,
    },
    time::Timestamp,
    workflow::template::Quoting,
    worktree::{WorktreePlace, below, subject, worktree_path},
};

use crate::{
    check::{collect, doubts, worktrees},
    revert::{self, Footprint, Judged, Others, Test, Unfinished, rescue::Undoing},
    world::{Change, Connected, SessionOf, Stop, World, is_glob},
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
    depth: Depth,
) -> Result<Seen, Stop> {
    let mut survey = Survey { now: world.now_for_ages(), ..Survey::default() };
    if depth == Depth::Glance {
        return Ok(Seen { survey, ..Seen::default() });
    }
    let mut git = git(world, run)?;
    let worktrees = worktrees::look(world, run)?;
    survey.findings.extend(worktrees::findings(&worktrees));
    if connected.orphans > 0 {
        let message =
            format!("{} processes of this run have lost their supervisor", connected.orphans);
        let finding = Finding::new(Code::OrphanProcess, message);
        survey.findings.push(finding.with_hint("the resume ends them"));
    }
    for other in world.others() {
        let finding = Finding::new(Code::OtherSessionLive, format!("{other} is live"));
        survey.findings.push(finding.with_hint("two at work in one tree cannot be told apart"));
    }
    doubts::look_for_leftovers(world, run, &mut survey)?;
    let mut all = unfinished(world, run, connected, git.as_ref())?;
    for one in &mut all {
        // A worktree that the resume makes again is looked into when it is there.
        let cwd = one.entry.started.as_ref().map_or("", |started| started.cwd.as_str());
        if one.left.is_lost && worktrees::is_mended(&worktrees, cwd) {
            one.left = Footprint::default();
        }
    }
    let mut undoing = BTreeMap::new();
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
        let judged = one
            .left
            .judge(&Test { others: &Others::of(run, one, &all), ..test(connected, one, started) });
        if one.entry.phase == Phase::Running {
            let reverts = announce(started, &judged);
            let seen = in_flight(world, run, connected, one, judged, git.as_ref())?;
            survey.in_flight.insert(one.step.clone(), InFlight { reverts, ..seen });
        } else if one.entry.phase == Phase::Lost && session_lacks(world, run, one)?.is_none() {
            survey.sessions.insert(one.step.clone());
        } else if !keeps(run, one.step) {
            let reverts = announce(started, &judged);
            if !reverts.is_empty() {
                survey.left_by_failed.insert(one.step.clone(), reverts);
            }
            if !judged.contested.is_empty() {
                survey.contested_of_failed.insert(one.step.clone(), judged.contested);
            }
        }
    }
    // What an unfinished attempt wrote is its own: it says nothing about whoever wrote it before.
    let changes = all.iter().flat_map(|one| &one.left.changes);
    let unfinished: BTreeSet<String> = changes.map(|change| change.path.clone()).collect();
    let mut moved: BTreeSet<String> = world.moved("")?.into_iter().collect();
    for tree in worktrees::trees(&worktrees) {
        moved.extend(world.moved(tree)?);
    }
    let ours = Ours { run, moved, silent: worktrees::silent(&worktrees) };
    look_at_outputs(world, &ours, &unfinished, depth, &mut survey)?;
    look_at_reads(world, &ours, connected, &unfinished, &mut survey)?;
    doubts::look_at_approvals(world, run, &mut survey)?;
    survey.disagreements = doubts::disagreements(run, connected);
    match depth {
        Depth::Glance | Depth::Quick => {}
        Depth::Full => doubts::run_checks(world, run, &mut survey)?,
    }
    if let Some(git) = &mut git {
        worktrees::look_for_commits(world, run, git)?;
        git.changed = ours.moved.difference(&unfinished).cloned().collect();
    }
    survey.git = git;
    Ok(Seen { survey, undoing, worktrees })
}

/// Every attempt that is in flight or failed, with what it changed.
fn unfinished<'r, W: World>(
    world: &mut W,
    run: &'r Run,
    connected: &Connected,
    git: Option<&GitSeen>,
) -> Result<Vec<Unfinished<'r>>, Stop> {
    let mut all = Vec::new();
    for (step, entry) in &run.state.steps {
        let Some(started) = entry.started.as_deref() else { continue };
        let mut left = match entry.phase {
            // Nothing in the tree can be its own, but a person wants to know of its outputs.
            Phase::Running if !started.continues && never_spawned(run, connected, step) => {
                let mut left = revert::declared(world, started)?;
                // What its start announced to be undone, and nothing undid yet, is known.
                left.changes.retain(|it| !is_announced(it, &started.reverts));
                left
            }
            Phase::Running => revert::footprint(world, started, None)?,
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
        let has_moved = git.is_some_and(|git| git.known.head != git.now.head);
        if started.base.is_none() && started.cwd.is_empty() && has_moved {
            leave_committed(world, &mut left)?;
        }
        all.push(Unfinished { step, entry, left });
    }
    Ok(all)
}

/// The path is still as the undo is to find it.
fn is_announced(change: &Change, reverts: &[Revert]) -> bool {
    let left = change.left.map(|(digest, _)| digest);
    reverts.iter().any(|revert| revert.path == change.path && revert.left == left)
}

/// What was committed since is no half-done work.
fn leave_committed<W: World>(world: &mut W, left: &mut Footprint) -> Result<(), Stop> {
    let paths: Vec<String> = left.changes.iter().map(|change| change.path.clone()).collect();
    let committed = world.as_committed(&paths)?;
    left.changes.retain(|change| !committed.contains(&change.path));
    Ok(())
}

/// How an attempt's own changes are told from later ones.
fn test<'o>(connected: &Connected, one: &Unfinished<'_>, started: &AttemptStarted) -> Test<'o> {
    const NOBODY: &Others = &Others::NONE;
    let entry = one.entry;
    if entry.phase == Phase::Failed {
        // Without the snapshot after it, nobody can tell what of the rest is its own.
        let unclear = started.base.is_some() && entry.after.is_none();
        let limit_ns = started.base.is_none().then(|| revert::limit_ns(entry.ended_at));
        return Test { limit_ns, survived: unclear, others: NOBODY };
    }
    if entry.phase == Phase::Lost {
        // When it was given up, nobody else had touched what it left.
        let limit_ns = Some(revert::limit_ns(entry.ended_at));
        return Test { limit_ns, survived: false, others: NOBODY };
    }
    let last_sign = connected.last_heartbeat.unwrap_or(entry.started_at).max(entry.started_at);
    let survived = connected.survived.has(one.step, entry.attempts);
    Test { limit_ns: Some(revert::limit_ns(last_sign)), survived, others: NOBODY }
}

/// The branch, next to what the run last knew of it.
fn git<W: World>(world: &mut W, run: &Run) -> Result<Option<GitSeen>, Stop> {
    let resumed = run.state.resumed.as_ref().and_then(|it| it.git.clone());
    let known = resumed.or_else(|| run.state.opened.as_ref().and_then(|it| it.git.clone()));
    let (Some(known), Some(now)) = (known, world.head("")?) else { return Ok(None) };
    let mut seen = GitSeen { known, now, ..GitSeen::default() };
    if seen.known.head != seen.now.head {
        if let Some(now) = &seen.now.head {
            seen.commits = world.commits("", seen.known.head.as_deref(), now)?;
        }
        if let Some(known) = &seen.known.head {
            seen.missing = world.commits("", seen.now.head.as_deref(), known)?;
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
    let same_boot = connected.boot_id == run.state.boot_id && !entry.outlived_boot;
    let is = |other: &(Address, u32)| other.0 == *step && other.1 == attempt;
    let sealed = connected.seals.iter().any(|seal| seal.step == *step && seal.attempt == attempt);
    connected.spawned_is_complete
        && same_boot
        && !sealed
        && !connected.alive.iter().any(is)
        && !connected.spawned.iter().any(is)
}

fn in_flight<W: World>(
    world: &mut W,
    run: &Run,
    connected: &Connected,
    one: &Unfinished<'_>,
    judged: Judged,
    git: Option<&GitSeen>,
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
    let proof = match run.graph.find(step) {
        Some(id) => proof(world, run, id, one, committed)?,
        None => None,
    };
    let is_own = |seal: &&Seal| seal.step == *step && seal.attempt == attempt;
    let seal = connected.seals.iter().find(is_own);
    let sealed = seal.is_some();
    let failed = seal.and_then(|it| judge::failure(&it.ending)).map(|(_, detail)| detail);
    let alive = connected.alive.iter().any(|it| it.0 == *step && it.1 == attempt);
    let continues = one.entry.started.as_ref().is_some_and(|it| it.continues);
    let over = sealed || alive || proof.is_some();
    let has_session = one.entry.session.is_some() && !over;
    let session_lacks = if has_session { session_lacks(world, run, one)? } else { None };
    // Without a probe there is nobody to ask.
    let declared = run.graph.find(step).map(|id| run.defs.step(run.graph.node(id).def));
    let blind = declared.is_some_and(|it| it.effect_outside && it.probe.is_none());
    Ok(InFlight {
        facts: recovery::AttemptFacts {
            announced: true,
            // Whoever began the session that it was to go on in was spawned for sure.
            spawned: continues || !never_spawned(run, connected, step),
            sealed,
            alive,
            proof: proof.is_some(),
            session: has_session && session_lacks.is_none(),
            dirty: is_dirty,
            contested: !judged.contested.is_empty(),
        },
        failed,
        reverts: Vec::new(),
        contested: judged.contested,
        proof,
        probed: blind.then_some(recovery::Probed::Unknown),
        session_lacks,
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

/// What an attempt has on its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Committed {
    No,
    /// And went on to change nothing after that, which would say that it was not through.
    ByItself,
    /// In its worktree, when it had been judged: the journal alone does not know it yet.
    ByUs,
}

/// What keeps the session of an attempt from going on; `None` = nothing.
fn session_lacks<W: World>(
    world: &mut W,
    run: &Run,
    one: &Unfinished<'_>,
) -> Result<Option<String>, Stop> {
    let Unfinished { step, entry, .. } = one;
    let (Some(started), Some(session)) = (entry.started.as_deref(), entry.session.as_deref())
    else {
        return Ok(Some("there is none".to_owned()));
    };
    let key = started.key.get();
    let agent = started.agent.as_deref().unwrap_or_default();
    let adapter = key.agent.get("use").map_or(agent, String::as_str);
    let of = SessionOf { agent, adapter, session, cwd: &started.cwd };
    if let Some(lacks) = world.session_lacks(&of)? {
        return Ok(Some(lacks));
    }
    doubts::redefined(world, run, step, &started.key)
}

/// A result that fits its schema proves itself, and so does a commit of the attempt's own; unless
/// the step wants more than that: a check that nobody ran, or outputs that are not all there.
fn proof<W: World>(
    world: &mut W,
    run: &Run,
    id: NodeId,
    one: &Unfinished<'_>,
    committed: Committed,
) -> Result<Option<Proof>, Stop> {
    let (step, entry) = (one.step, one.entry);
    let declared = run.defs.step(run.graph.node(id).def);
    let Some(started) = entry.started.as_deref() else { return Ok(None) };
    let may_prove = match committed {
        Committed::No => declared.result.is_some() && declared.check.is_none(),
        Committed::ByItself => declared.check.is_none(),
        Committed::ByUs => true,
    };
    if !may_prove {
        return Ok(None);
    }
    let seen = collect::collect(world, declared, step, entry.attempts, &started.writes, false)?;
    if !seen.missing.is_empty() {
        return Ok(None);
    }
    let result = match seen.result {
        ResultSeen::Valid(result) => Some(result),
        ResultSeen::Absent if declared.result.is_none() => None,
        ResultSeen::Absent | ResultSeen::NotJson(_) | ResultSeen::Violates(_) => return Ok(None),
    };
    let digest = result.as_ref().map(|result| Digest::of(result.to_string().as_bytes()));
    let branch_head = match WorktreePlace::at(&started.cwd) {
        Some(place) => world.head(&place.path)?.and_then(|it| it.head),
        None => None,
    };
    let evidence = Evidence { files: seen.files, result: digest, stdout: None, branch_head };
    Ok(Some(Proof { evidence, result }))
}

/// What the run itself changed is no drift.
struct Ours<'r> {
    run: &'r Run,
    /// What is not as the last snapshot has it.
    moved: BTreeSet<String>,
    /// Worktrees whose files say nothing.
    silent: BTreeSet<String>,
}

impl Ours<'_> {
    /// Whether a later attempt changed the path without declaring it, and nobody since; or whether
    /// nothing can be said of it, because its whole worktree is not what it was.
    fn is(&self, path: &str, since: Timestamp) -> bool {
        let touched = self.run.state.touched.get(path);
        touched.is_some_and(|at| *at > since) && !self.moved.contains(path)
            || self.silent.iter().any(|tree| path.starts_with(tree))
    }
}

fn look_at_outputs<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    unfinished: &BTreeSet<String>,
    depth: Depth,
    survey: &mut Survey,
) -> Result<(), Stop> {
    for (step, file) in outputs_to_check(&ours.run.state) {
        let ended_at = ours.run.state.step(step).map(|entry| entry.ended_at).unwrap_or_default();
        if unfinished.contains(&file.path) || ours.is(&file.path, ended_at) {
            continue;
        }
        // What is known saves reading a file whose stat has not changed.
        let known = match depth {
            Depth::Glance | Depth::Quick => std::slice::from_ref(file),
            Depth::Full => &[],
        };
        let now = world.glob(&file.path, known)?.into_iter().next();
        if now.as_ref().is_none_or(|now| now.hash != file.hash) {
            let seen = OutputSeen { path: file.path.clone(), now };
            survey.outputs.entry(step.clone()).or_default().push(seen);
        }
    }
    Ok(())
}

fn look_at_reads<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    connected: &Connected,
    unfinished: &BTreeSet<String>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let run = ours.run;
    let alone_since_ns = alone_since_ns(run, connected);
    let mut seen = BTreeMap::new();
    for (step, entry) in &run.state.steps {
        let Some(key) = entry.key.as_ref().filter(|_| entry.phase.is_concluded()) else {
            continue;
        };
        let patterns = read_patterns(run, step);
        // Most keys name no file at all; those are not looked into.
        if !key.as_str().contains("\"reads\":") && patterns.is_empty() {
            continue;
        }
        let reads = key.get().reads;
        for pattern in patterns {
            for file in world.glob(&pattern, &[])? {
                let is_new = file.stat.mtime_ns > alone_since_ns && !reads.contains_key(&file.path);
                if is_new && !unfinished.contains(&file.path) {
                    let read = ReadSeen { path: file.path, was: None, now: Some(file.hash) };
                    survey.reads.entry(step.clone()).or_default().push(read);
                }
            }
        }
        for (path, was) in &reads {
            let now = if let Some(now) = seen.get(path) {
                *now
            } else {
                let now = world.digest(path)?;
                seen.insert(path.clone(), now);
                now
            };
            let is_ours = ours.is(path, entry.started_at)
                || now.is_some_and(|now| was_made_by_the_run(&run.state, path, now));
            if now != Some(*was) && !is_ours {
                let read = ReadSeen { path: path.clone(), was: Some(*was), now };
                survey.reads.entry(step.clone()).or_default().push(read);
            }
        }
    }
    Ok(())
}

/// From when on a new file is not the work of one of the run's own steps, declared or not.
fn alone_since_ns(run: &Run, connected: &Connected) -> i64 {
    let state = &run.state;
    let last_sign = match connected.last_heartbeat.filter(|_| state.running > 0) {
        Some(heartbeat) => heartbeat.max(state.last_at).plus_ms(revert::AFTERGLOW_MS),
        None => state.last_at,
    };
    last_sign.as_micros().saturating_mul(1000)
}

/// What a step reads by pattern, so that a file may have come to it; names of files are in its key.
fn read_patterns(run: &Run, step: &Address) -> Vec<String> {
    let Some(id) = run.graph.find(step) else { return Vec::new() };
    let declared = run.defs.step(run.graph.node(id).def).reads.iter();
    let rendered = declared.filter_map(|it| decide::text(run, id, it, Quoting::Plain));
    let tree = worktree_path(run, id);
    rendered.filter(|pattern| is_glob(pattern)).map(|it| below(&tree, it)).collect()
}
