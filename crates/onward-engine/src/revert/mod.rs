//! Undoing what a half-done attempt left, without losing it.
//!
//! Order, for every path: the rescue is durable, then the event that announces the undo is durable,
//! then the path is put back. After a crash anywhere in between, the path itself tells how far it
//! got: as the attempt left it = to do, as it was before = done, anything else = a person's, and it
//! is not touched.
//!
//! Invariant: all or ask. Either every path that the attempt changed is still as it left it, and
//! all are undone; or only those declared outputs are for which that holds, and a person is asked
//! about the rest.

pub(crate) mod links;
pub mod rescue;
pub mod theirs;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptStarted, FileKind, Revert},
    evidence::Evidence,
    finding::{Code, Finding},
    run::Run,
    said::Touched,
    state::{Phase, StepState},
    survey::Contested,
    time::Timestamp,
    worktree::WorktreePlace,
};

use self::{
    links::{Links, instead_of_dir},
    rescue::Undoing,
};
use crate::world::{At, Change, Condition, Content, Looked, Snapshot, Stop, When, World, files};

pub(crate) use onward_core::state::AFTERGLOW_MS;

/// What an attempt changed: its declared outputs and, where there was a snapshot before it, all
/// else in the tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    /// In path order.
    pub changes: Vec<Change>,
    /// Paths that the step declares.
    pub declared: BTreeSet<String>,
    /// Paths that no snapshot covers and that the step does not declare, such as repositories of
    /// their own: what it did there is not known.
    pub unseen: Vec<String>,
    /// What a person had not committed, and a commit of the attempt replaced: the commit stays, and
    /// so the snapshot alone has these.
    pub overlaid: Vec<(String, Content)>,
    /// The snapshot that it would have to be compared with is gone.
    pub is_lost: bool,
}

/// Compares the tree with what was saved before the attempt, and with the snapshots around it.
pub fn footprint<W: World>(
    world: &mut W,
    started: &AttemptStarted,
    after: Option<&str>,
) -> Result<Footprint, Stop> {
    let mut found = changed(world, started, after)?;
    found.ask_what_stays(world)?;
    Ok(found)
}

fn changed<W: World>(
    world: &mut W,
    started: &AttemptStarted,
    after: Option<&str>,
) -> Result<Footprint, Stop> {
    let mut found = declared(world, started)?;
    let Some(base) = &started.base else { return Ok(found) };
    match world.changes(&snapshot_of(started), base, after)? {
        None => found.is_lost = true,
        Some(mut changes) => {
            // A link that was taken away before the attempt is in the snapshot, and was not there.
            let is_away = |path: &str| {
                let mut links = started.reverts.iter().filter(|it| it.left_kind == FileKind::Link);
                links.any(|it| it.base.is_none() && it.path == path)
            };
            for change in changes.all.iter_mut().filter(|it| is_away(&it.path)) {
                change.base = None;
            }
            changes.all.retain(|it| it.left.is_some() || it.base.is_some());
            // Of what the snapshots cover, they know more: what was committed is not half-done.
            found.changes.retain(|change| changes.skipped.contains(&change.path));
            found.changes.extend(changes.all);
            let is_unseen = |it: &String| !found.declared.contains(it);
            found.unseen = changes.skipped.into_iter().filter(is_unseen).collect();
            found.changes.sort_by(|one, other| one.path.cmp(&other.path));
            found.changes.dedup_by(|one, other| one.path == other.path);
            found.overlaid = changes.overlaid;
        }
    }
    Ok(found)
}

/// The tree that an attempt works in, as it is when the attempt is over.
pub(crate) fn snapshot_of(started: &AttemptStarted) -> Snapshot<'_> {
    Snapshot {
        tree: &started.cwd,
        step: &started.step,
        attempt: started.attempt,
        when: When::After,
        writes: &started.writes,
    }
}

/// Everything in the directory that an attempt has for itself, where no snapshot covers it.
pub(crate) fn own_dir(cwd: &str, base: Option<&str>) -> Option<String> {
    (!cwd.is_empty() && base.is_none()).then(|| format!("{cwd}/**"))
}

/// The declared outputs alone, and without git the files of a directory of its own.
pub fn declared<W: World>(world: &mut W, started: &AttemptStarted) -> Result<Footprint, Stop> {
    let mut declared: BTreeSet<String> = started.saved.keys().cloned().collect();
    let own = own_dir(&started.cwd, started.base.as_deref());
    for pattern in started.writes.iter().chain(&own) {
        for file in world.glob(pattern, &[])? {
            if files::can_be_put_back(world, &file)? {
                declared.insert(file.path);
            }
        }
    }
    let mut changes = Vec::new();
    let mut instead = BTreeMap::new();
    for path in &declared {
        let saved = started.saved.get(path).copied().flatten();
        let kind = started.kinds.get(path).copied().unwrap_or_default();
        let base = saved.map(|digest| (digest, kind));
        // A directory was there: what stands in its place was put there since.
        let above = instead_of_dir(world, path)?;
        let (left, changed_ns) = match &above {
            Some(above) => (None, world.look(above)?),
            None => world.look(path).map(|seen| (seen.map(Looked::content), seen))?,
        };
        if left != base {
            let changed_ns = match changed_ns {
                Some(seen) => Some(seen.changed_ns),
                None => world.dir_changed_ns(path)?,
            };
            instead.extend(above.map(|above| (above, changed_ns)));
            let (path, base_at) = (path.clone(), String::new());
            changes.push(Change { path, left, base, base_at, changed_ns, moved: false });
        }
    }
    for (path, changed_ns) in instead {
        let left = world.look(&path)?.map(Looked::content);
        let base_at = String::new();
        declared.insert(path.clone());
        changes.push(Change { path, left, base: None, base_at, changed_ns, moved: false });
    }
    changes.retain(|it| it.left != it.base);
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes.dedup_by(|one, other| one.path == other.path);
    Ok(Footprint { changes, declared, ..Footprint::default() })
}

/// A link that is to be taken away; `None` when it is gone.
pub(crate) fn link_change<W: World>(world: &mut W, path: String) -> Result<Option<Change>, Stop> {
    let Some(seen) = world.look(&path)? else { return Ok(None) };
    let (left, changed_ns) = (Some(seen.content()), Some(seen.changed_ns));
    let base_at = String::new();
    Ok(Some(Change { path, left, base: None, base_at, changed_ns, moved: false }))
}

/// Until when a change is an attempt's own, if no snapshot was taken after it.
pub fn limit_ns(last_sign: Timestamp) -> i64 {
    last_sign.plus_ms(AFTERGLOW_MS).as_micros().saturating_mul(1000)
}

/// What tells an attempt's changes from those of others.
#[derive(Clone, Copy, Debug)]
pub struct Test<'a> {
    /// Later changes are not its own; `None` where the snapshot after it tells.
    pub limit_ns: Option<i64>,
    /// A process of it lived on unwatched.
    pub survived: bool,
    /// What its agent reports to have changed, where it reports that.
    pub touched: Option<&'a Touched>,
    pub others: &'a Others,
}

/// A footprint, judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    pub undo: Vec<Change>,
    /// Not touched; a person is asked.
    pub contested: Contested,
    /// Paths that are known to have been changed since by other hands.
    pub edited: Vec<String>,
}

impl Judged {
    /// Nothing of it can be the attempt's own, which never began.
    #[must_use]
    pub fn as_of_others(mut self) -> Self {
        let paths: BTreeSet<String> =
            self.undo.drain(..).map(|it| it.path).chain(self.contested.paths).collect();
        self.contested.paths = paths.into_iter().collect();
        self
    }
}

impl Footprint {
    /// Something changed that the step does not declare.
    pub fn is_beyond_declared(&self) -> bool {
        self.changes.iter().any(|change| !self.declared.contains(&change.path))
    }

    /// Those that the step declares.
    pub(crate) fn outputs_among(&self, paths: &[String]) -> Vec<String> {
        paths.iter().filter(|it| self.declared.contains(*it)).cloned().collect()
    }

    /// What stood in a directory in the place of an output of the step is not put back: there the
    /// output belongs, and a person who took the directory away wants it so.
    pub(crate) fn leave_to_outputs(&mut self, outputs: &Evidence) {
        let is_within = |path: &str| {
            outputs.files.iter().any(|file| {
                path.strip_prefix(file.path.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
        };
        self.changes.retain(|it| it.left.is_some() || !is_within(&it.path));
    }

    /// The workflow file is a person's: what became of it while a step that does not declare it
    /// ran is told as an edit of the workflow, and never undone.
    pub(crate) fn leave_workflow(&mut self, run: &Run) {
        let Some(file) = run.state.opened.as_ref().and_then(|it| it.file.as_deref()) else {
            return;
        };
        if !self.declared.contains(file) {
            self.changes.retain(|it| it.path != file);
        }
    }

    /// A path cannot be put back while something stands in its way that no undo takes away: that
    /// is a person's to settle, before anything is undone.
    fn ask_what_stays<W: World>(&mut self, world: &mut W) -> Result<(), Stop> {
        let goes = |it: &&Change| it.base.is_none();
        let gone: BTreeSet<String> =
            self.changes.iter().filter(goes).map(|it| it.path.clone()).collect();
        for change in self.changes.iter_mut().filter(|it| it.left != it.base) {
            let stays = |it: &String| change.base.is_none() || !gone.contains(it);
            let is_stuck = world.in_the_way(&change.path)?.iter().any(stays);
            change.moved |= is_stuck;
        }
        Ok(())
    }

    pub fn judge(&self, test: &Test<'_>) -> Judged {
        let others = test.others;
        let is_mine = |change: &&Change| {
            self.declared.contains(&change.path)
                || !others.owned.get(&change.path).is_some_and(|owned| owned.is(change))
        };
        let is_edited = |change: &Change| {
            let late = test.limit_ns.is_some_and(|limit_ns| {
                change.changed_ns.is_some_and(|changed_ns| changed_ns > limit_ns)
            });
            late || change.moved
        };
        let clears = |change: &Change| {
            let is_reported = self.declared.contains(&change.path)
                || test.touched.is_none_or(|it| it.accounts_for(&change.path));
            let by_two = others.owned.contains_key(&change.path)
                || (others.changed.contains(&change.path) && !self.declared.contains(&change.path));
            !is_edited(change) && !by_two && is_reported
        };
        let mine: Vec<&Change> = self.changes.iter().filter(is_mine).collect();
        let edited = mine.iter().filter(|it| is_edited(it));
        let edited: Vec<String> = edited.map(|it| it.path.clone()).collect();
        if !self.is_lost && !test.survived && mine.iter().all(|change| clears(change)) {
            let undo = mine.into_iter().cloned().collect();
            return Judged { undo, contested: Contested::default(), edited };
        }
        let may_go = |change: &&&Change| self.declared.contains(&change.path) && clears(change);
        let undo: Vec<Change> = mine.iter().filter(may_go).map(|it| (*it).clone()).collect();
        let rest: Vec<&&Change> = mine.iter().filter(|change| !may_go(change)).collect();
        // The person is told what was changed; the rest stays because of it.
        let changed = rest.iter().any(|change| !clears(change));
        let named = rest.iter().filter(|change| !changed || !clears(change));
        let paths = named.map(|change| change.path.clone()).collect();
        Judged { undo, contested: Contested { paths, snapshot_lost: self.is_lost }, edited }
    }
}

/// What others did to a tree while an attempt ran in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    /// Paths that another step declares.
    owned: BTreeMap<String, Owned>,
    /// Paths that others changed without declaring them.
    changed: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    /// By an attempt that has not finished: it is undone with that one, if at all.
    Unfinished,
    /// Finished work is this.
    Done(Digest),
}

impl Owned {
    fn is(self, change: &Change) -> bool {
        match self {
            Self::Unfinished => true,
            Self::Done(hash) => change.left.is_some_and(|(left, _)| left == hash),
        }
    }
}

/// An attempt that has not finished, and what it changed.
#[derive(Clone, Debug)]
pub struct Unfinished<'a> {
    pub step: &'a Address,
    pub entry: &'a StepState,
    pub left: Footprint,
}

impl Others {
    pub const NONE: Self = Self { owned: BTreeMap::new(), changed: BTreeSet::new() };

    /// The attempts that shared the tree with one at `step` while that ran.
    pub fn of(run: &Run, me: &Unfinished<'_>, all: &[Unfinished<'_>]) -> Self {
        let mut others = Self::default();
        let since = me.entry.started_at;
        for (step, entry) in &run.state.steps {
            if entry.phase == Phase::Done && entry.ended_at > since && step != me.step {
                let files = entry.evidence.files.iter();
                let owned = files.map(|file| (file.path.clone(), Owned::Done(file.hash)));
                others.owned.extend(owned);
            }
        }
        for (step, paths) in &run.state.shared {
            let ended_at = run.state.step(step).map(|entry| entry.ended_at);
            if step != me.step && ended_at.is_some_and(|it| it > since) {
                others.changed.extend(paths.iter().cloned());
            }
        }
        let ends = |entry: &StepState| match entry.phase {
            Phase::Running => Timestamp::MAX,
            Phase::Pending
            | Phase::Waiting
            | Phase::Done
            | Phase::Failed
            | Phase::Tolerated
            | Phase::Skipped
            | Phase::Lost
            | Phase::Stale => entry.ended_at,
        };
        for other in all.iter().filter(|other| other.step != me.step) {
            if ends(other.entry) > since && ends(me.entry) > other.entry.started_at {
                let declared = other.left.declared.iter().cloned();
                others.owned.extend(declared.map(|path| (path, Owned::Unfinished)));
                let paths = other.left.changes.iter().map(|change| change.path.clone());
                others.changed.extend(paths);
            }
        }
        others
    }
}

/// What a commit of the attempt replaced, kept in a rescue of its own and left as it is in the
/// tree. What is in a rescue already is not kept once more.
pub fn overlaid(run: &Run, of: &Unfinished<'_>, number: u32) -> Undoing {
    let rescue = rescue::name(number, of.step);
    let is_new = |(path, (digest, _)): &&(String, Content)| {
        run.state.kept_by_hand.get(path.as_str()) != Some(digest)
    };
    let revert = |(path, (digest, kind)): &(String, Content)| Revert {
        path: path.clone(),
        left: Some(*digest),
        base: Some(*digest),
        rescue: rescue.clone(),
        left_kind: *kind,
        base_kind: *kind,
        step: Some(of.step.clone()),
    };
    Undoing {
        started: Box::new(AttemptStarted::bare(of.step.clone(), of.entry.attempts)),
        reverts: of.left.overlaid.iter().filter(is_new).map(revert).collect(),
        bases: BTreeMap::new(),
    }
}

/// As announced, with the place where what is undone is kept.
pub fn undoing(number: u32, started: &AttemptStarted, changes: &[Change]) -> Undoing {
    let rescue = rescue::name(number, &started.step);
    let kind = |side: Option<(Digest, FileKind)>| side.map(|(_, kind)| kind).unwrap_or_default();
    let revert = |change: &Change| Revert {
        path: change.path.clone(),
        left: change.left.map(|(digest, _)| digest),
        base: change.base.map(|(digest, _)| digest),
        rescue: rescue.clone(),
        left_kind: kind(change.left),
        base_kind: kind(change.base),
        step: Some(started.step.clone()),
    };
    let bases = changes.iter().map(|change| (change.path.clone(), change.base_at.clone()));
    Undoing {
        started: Box::new(started.clone()),
        reverts: changes.iter().map(revert).collect(),
        bases: bases.collect(),
    }
}

/// A file on its own would look like a worktree in which all the others were deleted.
pub(crate) fn is_in_gone_worktree<W: World>(world: &mut W, path: &str) -> Result<bool, Stop> {
    let Some((place, _)) = WorktreePlace::split(path) else { return Ok(false) };
    Ok(match world.worktree_condition(&place)? {
        Condition::Missing { .. } => true,
        Condition::Unmade
        | Condition::Fine
        | Condition::Unregistered { .. }
        | Condition::Elsewhere(_)
        | Condition::Busy(_) => false,
    })
}

/// How far the undo of a path has got, as the path itself tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// As the attempt left it.
    Left,
    /// As it was before.
    Base,
    /// A person's.
    Neither,
}

fn stands<W: World>(world: &mut W, revert: &Revert, links: &Links<'_>) -> Result<Stands, Stop> {
    if is_in_gone_worktree(world, &revert.path)? {
        return Ok(Stands::Base);
    }
    let now = links.look(world, &revert.path)?;
    let base = revert.base.map(|digest| (digest, revert.base_kind));
    let left = revert.left.map(|digest| (digest, revert.left_kind));
    Ok(if now == base {
        Stands::Base
    } else if now == left {
        Stands::Left
    } else {
        Stands::Neither
    })
}

/// The path is as it was before.
pub(crate) fn is_back<W: World>(world: &mut W, revert: &Revert) -> Result<bool, Stop> {
    Ok(stands(world, revert, &Links::default())? == Stands::Base)
}

/// An undo that a crash cut short.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CutShort {
    /// Still to be put back.
    pub rest: Vec<Revert>,
    /// A person changed these since.
    pub strange: Vec<String>,
}

impl CutShort {
    pub fn look<W: World>(world: &mut W, announced: &[Revert]) -> Result<Self, Stop> {
        let mut found = Self::default();
        // What was only kept is not to be put back, and half a write of ours is no person's.
        let is_ours = |it: &&Revert| it.path.ends_with(files::NEW_SUFFIX);
        let links = Links::of(announced);
        let announced = announced.iter().filter(|it| !it.keeps_in_place() && !is_ours(it));
        for revert in announced {
            match stands(world, revert, &links)? {
                Stands::Base => {}
                Stands::Left => found.rest.push(revert.clone()),
                Stands::Neither => found.strange.push(revert.path.clone()),
            }
        }
        Ok(found)
    }

    /// What a person has to say first.
    pub fn finding(&self) -> Option<Finding> {
        let first = self.strange.first()?;
        let paths = self.strange.join(", ");
        let message =
            format!("a resume was cut short while it undid, and since then changed: {paths}");
        let hint = "accepted, they stay as they are and the rest is undone";
        Some(Finding::new(Code::AttemptContested, message).at_path(first).with_hint(hint))
    }
}

/// Puts each path back, unless it is back already or a person changed it. Returns the latter.
pub fn undo<W: World>(world: &mut W, reverts: &[Revert]) -> Result<Vec<String>, Stop> {
    let mut foreign = Vec::new();
    let links = Links::of(reverts);
    let reverts = reverts.iter().filter(|it| !it.keeps_in_place());
    // What goes makes room for what comes back: a file may have taken a directory's place.
    let (gone, back): (Vec<&Revert>, _) = reverts.partition(|it| it.base.is_none());
    for revert in gone.into_iter().chain(back) {
        match stands(world, revert, &links)? {
            Stands::Left => {}
            Stands::Base => continue,
            Stands::Neither => {
                foreign.push(revert.path.clone());
                continue;
            }
        }
        let at = At::Project(&revert.path);
        match revert.base {
            None => {
                if !went(world.remove(at))? {
                    foreign.push(revert.path.clone());
                }
                world.sync_dir(at)?;
            }
            Some(base) => match files::saved(world, base)? {
                Some(bytes) => {
                    // A directory appeared there just now: the other paths are undone all the same.
                    if !went(files::put_durably(world, at, &bytes, revert.base_kind))? {
                        let half = files::temporary_name(&revert.path);
                        went(world.remove(At::Project(&half)))?;
                        foreign.push(revert.path.clone());
                    }
                }
                None => foreign.push(revert.path.clone()),
            },
        }
    }
    Ok(foreign)
}

/// Whether nothing was in the way.
fn went(done: Result<(), Stop>) -> Result<bool, Stop> {
    match done {
        Err(Stop::Io { source, .. }) if is_in_the_way(source.kind()) => Ok(false),
        other => other.map(|()| true),
    }
}

/// A directory, or none where one should be; a link that leads out; or what the system does not let
/// be replaced.
fn is_in_the_way(kind: ErrorKind) -> bool {
    use ErrorKind::{AlreadyExists, DirectoryNotEmpty, InvalidInput, IsADirectory};
    use ErrorKind::{NotADirectory, PermissionDenied};
    matches!(kind, IsADirectory | NotADirectory | DirectoryNotEmpty)
        || matches!(kind, PermissionDenied | AlreadyExists | InvalidInput)
}
