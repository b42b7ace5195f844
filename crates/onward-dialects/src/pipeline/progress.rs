//! How far each task and each phase is.
//!
//! Invariant: the conservative reading. A phase with one task that is not completed is not
//! complete; a completed task that something speaks against is verified before anything after it
//! runs; no task is lost, whichever phase it names.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::digest::Digest;

use super::{
    phase::{Phase, Tier},
    read::{List, Noted, Permanent, Review, Task, TaskStatus, namers},
};
use crate::{
    Files,
    kit::{
        order::is_circular,
        path::{literal, shown},
    },
};

/// The root of a site that holds the project's files.
pub(super) const PROJECT: usize = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Completed, and nothing speaks against it.
    Settled,
    /// Completed, to be verified before anything after it.
    Doubtful(Doubt),
    /// To be worked on.
    Open,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// This file was changed after the task.
    Stale(String),
    /// This file, which the task had left, is gone.
    Gone(String),
    /// This task, which it comes after, was not completed before it.
    Dependency(String),
    /// The phase restarts whole.
    Restart,
    /// Nothing is left of its outcome.
    NoOutput,
}

impl Doubt {
    fn of(noted: &Noted) -> Self {
        match noted {
            Noted::Changed(path) => Self::Stale(path.clone()),
            Noted::Gone(path) => Self::Gone(path.clone()),
            Noted::Before(id) => Self::Dependency(id.clone()),
        }
    }

    /// What a resume notes, so that it counts until the task is verified. The others are found
    /// again when the phase is listed.
    pub(super) fn noted(&self) -> Option<Noted> {
        match self {
            Self::Stale(path) => Some(Noted::Changed(path.clone())),
            Self::Gone(path) => Some(Noted::Gone(path.clone())),
            Self::Dependency(id) => Some(Noted::Before(id.clone())),
            Self::Restart | Self::NoOutput => None,
        }
    }

    /// For a person, after the name of the task.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Stale(path) => {
                format!("completed, and {} was changed since; verify it first", shown(path))
            }
            Self::Gone(path) => format!("completed, and {} is gone; verify it first", shown(path)),
            Self::Dependency(id) => {
                format!(
                    "completed before task {}, which it comes after; verify it first",
                    shown(id)
                )
            }
            Self::Restart => "completed; its phase restarts, verify it".to_owned(),
            Self::NoOutput => "completed, and left nothing; verify it".to_owned(),
        }
    }
}

/// One task in its phase.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) task: Task,
    pub(super) stage: Stage,
    /// Tasks of the same phase.
    pub(super) after: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PhaseState {
    pub(super) phase: Phase,
    pub(super) items: Vec<Item>,
    pub(super) is_complete: bool,
    /// What speaks for it, where it has no tasks.
    pub(super) vouched: Option<Vouched>,
}

/// Why a phase without tasks counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vouched {
    /// It is said to have passed.
    Signal,
    /// Work of a later phase has begun and is not over.
    Begun,
    /// The next phase with tasks came after some that were cleaned up.
    CleanedUp,
    /// A small change is planned in the head: the execution is proof of what came before.
    Executed,
}

impl Vouched {
    /// For a person, after the name of the phase.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::Signal => "no tasks; its signal says that it has passed",
            Self::Begun => "no tasks; it counts as done, as work of a later phase has begun",
            Self::CleanedUp => "no tasks; most likely completed and cleaned up",
            Self::Executed => "no tasks; a small change is executed without them",
        }
    }
}

/// All phases on the path before P8.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Progress {
    pub(super) tier: Tier,
    pub(super) phases: Vec<PhaseState>,
    /// The first that is not complete.
    pub(super) resume: Option<Phase>,
    /// It can go on task by task.
    pub(super) by_task: bool,
    /// Completed tasks whose commits are gone.
    pub(super) gone: BTreeSet<String>,
    /// Unfinished tasks that name no phase, and where they were put.
    pub(super) placed: BTreeMap<String, Phase>,
}

impl Progress {
    pub(super) fn phase(&self, phase: Phase) -> Option<&PhaseState> {
        self.phases.iter().find(|it| it.phase == phase)
    }

    pub(super) fn resuming(&self) -> Option<&PhaseState> {
        self.resume.and_then(|phase| self.phase(phase))
    }

    /// The last phase before the point of resume.
    pub(super) fn last_completed(&self) -> Option<Phase> {
        let before = self.phases.iter().take_while(|it| it.is_complete);
        before.last().map(|it| it.phase)
    }
}

impl PhaseState {
    /// Those whose turn it is.
    pub(super) fn runnable(&self) -> impl Iterator<Item = &Item> {
        let is_open = |it: &&Item| it.stage != Stage::Settled;
        let open: BTreeSet<&str> =
            self.items.iter().filter(is_open).map(|it| it.task.id.as_str()).collect();
        let waits = move |it: &Item| it.after.iter().any(|id| open.contains(id.as_str()));
        self.items.iter().filter(is_open).filter(move |it| !waits(it))
    }
}

/// `asked` are the files of the project that were looked for.
pub(super) fn progress(
    list: &List,
    permanent: &Permanent,
    files: &Files,
    asked: &[String],
) -> Progress {
    let gone = gone(list, files);
    let tier = permanent.tier.unwrap_or_else(|| likely_tier(&list.tasks));
    let (placed, by_phase) = places(list, permanent, tier, &gone);
    let (mut changed, done) = (stale(&list.tasks, files), done(list, &gone));
    changed.extend(missed(&list.tasks, files, asked));
    if permanent.review == Some(Review::Fixing) {
        let executed = list.tasks.iter().filter(|it| it.phase == Some(Phase::P6));
        for task in executed {
            changed.remove(task.id.as_str());
        }
    }
    let mut phases: Vec<PhaseState> = Vec::new();
    for phase in Phase::working() {
        let tasks = by_phase.get(&phase).cloned().unwrap_or_default();
        if tasks.is_empty() && !tier.has(phase) {
            continue;
        }
        let item = |task: &Task| {
            let doubt = || {
                let stale = changed.get(task.id.as_str()).cloned();
                let noted = task.noted.as_ref().map(Doubt::of);
                let open = task.blocked_by.iter().find(|id| !done.contains(id.as_str()));
                stale.or(noted).or_else(|| open.map(|id| Doubt::Dependency(id.clone())))
            };
            let is_done = task.is_completed() && !gone.contains(&task.id);
            let stage = match is_done.then(doubt) {
                None => Stage::Open,
                Some(None) => Stage::Settled,
                Some(Some(doubt)) => Stage::Doubtful(doubt),
            };
            Item { task: task.clone(), stage, after: Vec::new() }
        };
        let items = ordered(tasks.into_iter().map(item).collect());
        phases.push(PhaseState { phase, items, is_complete: false, vouched: None });
    }
    // Where no task is left nothing vouches for any phase.
    if !list.tasks.is_empty() {
        let tasks = list.tasks.iter().chain(list.permanents.iter().map(|it| &it.task));
        let known: BTreeSet<&str> = tasks.map(|it| it.id.as_str()).collect();
        let cleaned: BTreeSet<Phase> = list
            .tasks
            .iter()
            .filter(|it| rests_on_cleaned(list, &known, it))
            .filter_map(|it| it.phase)
            .collect();
        judge(&mut phases, permanent, tier, &cleaned);
    }
    let resume = phases.iter().find(|it| !it.is_complete).map(|it| it.phase);
    let mut by_task = false;
    if let Some(at) = phases.iter_mut().find(|it| !it.is_complete) {
        by_task = regard_mixed(at, permanent, tier, files);
    }
    Progress { tier, phases, resume, by_task, gone, placed }
}

/// Where nothing says the tier: the phases that have tasks do.
fn likely_tier(tasks: &[Task]) -> Tier {
    let is_complex = |task: &Task| task.phase.is_some_and(|it| !Tier::Standard.has(it));
    if tasks.iter().any(is_complex) { Tier::Complex } else { Tier::Standard }
}

/// Completed tasks that name a commit which is not in the history any more.
fn gone(list: &List, files: &Files) -> BTreeSet<String> {
    let Some(git) = &files.git else { return BTreeSet::new() };
    let is_lost = |task: &&Task| task.commits.iter().any(|commit| git.missing.contains(commit));
    list.tasks.iter().filter(is_lost).map(|task| task.id.clone()).collect()
}

type Placed<'a> = (BTreeMap<String, Phase>, BTreeMap<Phase, Vec<&'a Task>>);

/// Each task in its phase. An unfinished one that names none is where the pointer is, or else in
/// the execution; a completed one that names none proves nothing. One that cannot be read may be of
/// the first phase for which nothing else speaks: that one is not passed over.
fn places<'a>(
    list: &'a List,
    permanent: &Permanent,
    tier: Tier,
    gone: &BTreeSet<String>,
) -> Placed<'a> {
    let pointed = permanent.current.filter(|it| *it < Phase::P8 && tier.has(*it));
    let named: BTreeSet<Phase> = list.tasks.iter().filter_map(|it| it.phase).collect();
    let is_bare = |it: &Phase| !named.contains(it) && !permanent.passed.contains(it);
    let bare = Phase::working().filter(|it| tier.has(*it)).find(is_bare);
    let (mut placed, mut by_phase) = (BTreeMap::new(), BTreeMap::<Phase, Vec<&Task>>::new());
    for task in &list.tasks {
        let is_done = task.is_completed() && !gone.contains(&task.id);
        let phase = match task.phase {
            Some(phase) => phase,
            None if is_done => continue,
            None => {
                let unread = task.broken.as_ref().and(bare);
                let phase = unread.or(pointed).unwrap_or(Phase::P6);
                placed.insert(task.id.clone(), phase);
                phase
            }
        };
        by_phase.entry(phase).or_default().push(task);
    }
    (placed, by_phase)
}

/// The ids that count as completed: by their file, or gone and below the highest id ever used.
fn done<'a>(list: &'a List, gone: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let is_done = |task: &&Task| task.is_completed() && !gone.contains(&task.id);
    let mut done: BTreeSet<&str> =
        list.tasks.iter().filter(is_done).map(|it| it.id.as_str()).collect();
    let known: BTreeSet<&str> = list.tasks.iter().map(|it| it.id.as_str()).collect();
    for id in list.tasks.iter().flat_map(|task| &task.blocked_by) {
        if !known.contains(id.as_str()) && was_cleaned_up(list, id) {
            done.insert(id);
        }
    }
    // The pipeline's own task blocks nothing.
    done.extend(list.permanents.iter().map(|it| it.task.id.as_str()));
    done
}

/// A completed task that came after one which was most likely completed and cleaned up.
fn rests_on_cleaned(list: &List, known: &BTreeSet<&str>, task: &Task) -> bool {
    let mut before = task.blocked_by.iter().filter(|it| !known.contains(it.as_str()));
    task.is_completed() && before.any(|id| was_cleaned_up(list, id))
}

/// A file that is gone, of an id that was in use: most likely completed.
pub(super) fn was_cleaned_up(list: &List, id: &str) -> bool {
    let number: Option<u64> = id.parse().ok();
    number.is_some_and(|number| list.highwatermark.is_some_and(|highest| number <= highest))
}

/// Completed tasks by id, each with a file that was changed after it and by none of the others: by
/// what it holds, where that was noted, or else by its time.
fn stale<'a>(tasks: &'a [Task], files: &Files) -> BTreeMap<&'a str, Doubt> {
    let mut stale = BTreeMap::new();
    for (path, namers) in namers(tasks) {
        let is_under_way = namers.iter().any(|it| it.status == TaskStatus::InProgress);
        // The change is noted already, with the task that it speaks against.
        let noted = Some(Noted::Changed(path.to_owned()));
        if namers.iter().any(|it| it.is_completed() && it.noted == noted) {
            continue;
        }
        let completed = namers.iter().filter(|it| it.is_completed());
        let last = completed.max_by_key(|it| it.modified).filter(|_| !is_under_way);
        let (Some(file), Some(last)) = (files.file_in(PROJECT, path), last) else { continue };
        let is_changed = match last.hashes.get(path) {
            Some(hash) => Digest::of(&file.bytes).to_string() != *hash,
            None => file.modified.is_some_and(|at| last.modified.is_some_and(|done| at > done)),
        };
        if is_changed {
            stale.insert(last.id.as_str(), Doubt::Stale(path.to_owned()));
        }
    }
    stale
}

/// Completed tasks by id, each with a file that is gone and that was there when it was completed:
/// a run of ours noted what it held, or the last commit has it. One that no task named when the
/// site was found was not looked for.
fn missed<'a>(tasks: &'a [Task], files: &Files, asked: &[String]) -> BTreeMap<&'a str, Doubt> {
    let Some(git) = &files.git else { return BTreeMap::new() };
    let deleted: BTreeSet<&str> = git.changes.iter().filter_map(|line| deleted(line)).collect();
    let mut missed = BTreeMap::new();
    for (path, namers) in namers(tasks) {
        let is_there = files.file_in(PROJECT, path).is_some() || !asked.contains(&literal(path));
        let is_under_way = namers.iter().any(|it| it.status == TaskStatus::InProgress);
        let completed = namers.iter().filter(|it| it.is_completed());
        let last = completed.max_by_key(|it| it.modified).filter(|_| !is_there && !is_under_way);
        let Some(last) = last else { continue };
        if last.hashes.contains_key(path) || deleted.contains(path) && last.has_left(path) {
            missed.insert(last.id.as_str(), Doubt::Gone(path.to_owned()));
        }
    }
    missed
}

/// The path of a line of `git status --porcelain`; of a rename, the new one.
pub(super) fn changed(line: &str) -> Option<&str> {
    let path = line.get(3..)?;
    let path = path.rsplit(" -> ").next().unwrap_or(path).trim_matches('"');
    (!path.is_empty()).then_some(path)
}

/// The same of a file that was deleted.
fn deleted(line: &str) -> Option<&str> {
    changed(line).filter(|_| line.get(..2).is_some_and(|it| it.contains('D')))
}

/// What comes after what within the phase; nothing does when there is a circle.
fn ordered(mut items: Vec<Item>) -> Vec<Item> {
    let ids: BTreeSet<&str> = items.iter().map(|it| it.task.id.as_str()).collect();
    let after = |task: &Task| -> Vec<String> {
        let own = task.blocked_by.iter().filter(|it| **it != task.id);
        let own: BTreeSet<&String> = own.filter(|it| ids.contains(it.as_str())).collect();
        own.into_iter().cloned().collect()
    };
    let all: Vec<Vec<String>> = items.iter().map(|it| after(&it.task)).collect();
    let names = items.iter().map(|it| it.task.id.as_str());
    if !is_circular(names.zip(all.iter().map(Vec::as_slice))) {
        for (item, after) in items.iter_mut().zip(all) {
            item.after = after;
        }
    }
    items
}

/// Which phases are complete. One without tasks is when it is said to have passed, when work of a
/// later phase has begun and is not over, or when the next one that has tasks came after some that
/// were cleaned up.
fn judge(phases: &mut [PhaseState], permanent: &Permanent, tier: Tier, cleaned: &BTreeSet<Phase>) {
    let mut follows_cleaned = false;
    let is_settled = |it: &PhaseState| it.items.iter().all(|it| it.stage == Stage::Settled);
    let mut is_begun = false;
    let is_executed = tier == Tier::Trivial
        && phases.iter().any(|it| it.phase == Phase::P6 && !it.items.is_empty());
    for state in phases.iter_mut().rev() {
        let is_empty = state.items.is_empty();
        state.is_complete = if is_empty {
            let vouched = match () {
                () if permanent.passed.contains(&state.phase) => Some(Vouched::Signal),
                () if permanent.refused.contains(&state.phase) => None,
                () if is_executed && state.phase < Phase::P6 => Some(Vouched::Executed),
                () if follows_cleaned => Some(Vouched::CleanedUp),
                () if is_begun => Some(Vouched::Begun),
                () => None,
            };
            state.vouched = vouched;
            vouched.is_some()
        } else {
            follows_cleaned = cleaned.contains(&state.phase);
            is_settled(state)
        };
        let waits = state.phase == Phase::P6 && permanent.review.is_some();
        state.is_complete &= !waits && permanent.listing != Some(state.phase);
        is_begun |= !is_settled(state) || waits;
    }
}

/// In a phase with open tasks: which completed ones are taken as they are. Returns whether the
/// phase goes on task by task.
fn regard_mixed(at: &mut PhaseState, permanent: &Permanent, tier: Tier, files: &Files) -> bool {
    let is_open = at.items.iter().any(|it| it.stage == Stage::Open);
    if !is_open {
        // Nothing is left of its tasks when a review or the list itself is.
        return at.items.iter().any(|it| it.stage != Stage::Settled);
    }
    let has_passed = permanent.passed.contains(&at.phase);
    let has_output = |task: &Task| {
        let is_there = |path: &String| files.file_in(PROJECT, path).is_some();
        task.has_result || has_passed || task.files.iter().any(is_there)
    };
    let mut by_task = false;
    for item in at.items.iter_mut().filter(|it| it.stage == Stage::Settled) {
        if item.task.is_checked {
            by_task |= tier == Tier::Complex;
        } else if tier != Tier::Complex {
            item.stage = Stage::Doubtful(Doubt::Restart);
        } else if has_output(&item.task) {
            by_task = true;
        } else {
            item.stage = Stage::Doubtful(Doubt::NoOutput);
        }
    }
    by_task
}
