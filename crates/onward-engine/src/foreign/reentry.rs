//! Going on with a run of another system: what its files say, what stands against it, and what is
//! undone first.
//!
//! Invariant: all or ask. Every path to be put back was looked at in this examination, is kept in
//! the rescue and announced in `run.resumed` before it is touched; one that cannot be put back is a
//! question, and then nothing is.

use std::{collections::BTreeMap, path::Path};

use globset::Glob;
use onward_core::{
    address::Address,
    decide::{Source, regressed},
    digest::Digest,
    event::{AttemptStarted, Certainty, Event, Exported, Revert, RunResumed},
    finding::{Code, Finding},
    plan::{AgeBand, PlannedRevert, RevertKind},
    policy::EnterAt,
    run::Run,
    survey::Survey,
    told::{Change, Deed, NoEntry, Standing, StepTold, Told, Undo, UndoWhat},
};
use onward_dialects::{File, Files, Unread, Unreadable, kit::code::Odd, seam::Root};

use super::{
    Foreign, Reading,
    entering::{Entered, unkept_wish},
    export,
    ours::{self, Ours},
    restoring,
    unread::{unread, words},
};
use crate::{
    revert::{
        self,
        rescue::{self, Undoing},
        snapshot_of,
    },
    world::{At, Hold, Stop, World, files},
};

/// What is known before anything is done.
pub(crate) struct Reentry {
    pub(crate) foreign: Foreign,
    /// As they were examined.
    pub(crate) files: Files,
    pub(crate) told: Box<dyn Told>,
    pub(crate) standing: Standing,
    findings: Vec<Finding>,
    /// What the files lost and our journal knows.
    restored: Vec<Change>,
    /// Where a person enters instead, and since when.
    entered: Option<Entered>,
    /// What the dialect wants undone and nothing of ours stands in.
    undo: Vec<Undo>,
    /// Steps of ours whose work counts.
    alive: Vec<Address>,
    undoing: Vec<Undoing>,
    /// What the paths are when they are put back, where the run does not keep that yet.
    bases: BTreeMap<Digest, Vec<u8>>,
    /// Worktrees whose index follows.
    trees: Vec<String>,
    /// Why it cannot all be undone.
    contested: Vec<Finding>,
}

/// The other system's files, and its lock.
pub(crate) struct Held {
    pub(crate) files: Files,
    lock: Hold,
}

impl Held {
    /// Lets go of the lock.
    pub(crate) fn into_files(self) -> Files {
        self.files
    }
}

impl Reentry {
    /// From what was read; nothing while our run has still to begin it. Changes nothing.
    pub(crate) fn look<W: World>(
        world: &mut W,
        foreign: Foreign,
        reading: Reading,
        run: &Run,
        from: Option<&EnterAt>,
    ) -> Result<Option<Self>, Stop> {
        let Reading { files, told } = reading;
        let Some(mut told) = told else { return Ok(None) };
        let ages = world.now_for_ages();
        let restored = restoring::look(&foreign, (&files, &mut told), run, world.now())?;
        let (restored, lost) = restored.map(|it| (it.changes, it.finding)).unzip();
        let restored: Vec<Change> = restored.unwrap_or_default();
        let mut standing = told.standing(ages);
        let mut findings = told.findings(ages);
        let mut entered = None;
        if let Some(from) = from.cloned().or_else(|| unkept_wish(run)) {
            let found = Entered::find(&*told, &from, world.now());
            let known = foreign.card().entries;
            let no_entry = |unknown: NoEntry| Stop::NoEntry { what: unknown.to_string(), known };
            let found = found.map_err(no_entry)?;
            if !found.changes.is_empty() {
                let after = export::after(files.clone(), &restored);
                let after = export::after(after, &found.changes);
                let Reading { told: again, .. } = foreign.parse(after)?;
                if let Some(again) = again {
                    told = again;
                    // The entry itself is no event of the run's past.
                    let last_event = standing.last_event;
                    standing = Standing { last_event, ..told.standing(ages) };
                    findings = told.findings(ages);
                    findings.retain(|it| it.code != Code::ClockInFuture.as_str());
                }
            }
            entered = Some(found);
        }
        findings.extend(lost);
        // What cannot be read is neither missing nor broken too.
        let is_unread = |path: &String| {
            let mut all = files.unread.iter().map(|it| Path::new(&it.path));
            all.any(|unread| Path::new(path).starts_with(unread))
        };
        let derived = [Code::MissingArtifact, Code::ArtifactUnproved].map(Code::as_str);
        findings.retain(|it| {
            !derived.contains(&it.code.as_str()) || !it.path.as_ref().is_some_and(is_unread)
        });
        findings.extend(files.unread.iter().map(unread));
        let (undo, undoing, contested) = (Vec::new(), Vec::new(), Vec::new());
        let alive = Vec::new();
        let (bases, trees) = (BTreeMap::new(), Vec::new());
        let made = Self {
            foreign,
            files,
            told,
            standing,
            findings,
            restored,
            entered,
            undo,
            alive,
            undoing,
            bases,
            trees,
            contested,
        };
        Ok(Some(made))
    }

    pub(crate) fn source(&self) -> Source<'_> {
        self.foreign.source(&*self.told)
    }

    /// Whether an undo that was announced still has a reason. The other system may have gone on
    /// and proved by now what was to go: of its files, only what they tell at this moment is
    /// undone.
    pub(crate) fn still_undoes(&self, run: &Run, revert: &Revert) -> bool {
        let step = revert.step.as_ref();
        let is_ours = step.is_some_and(|step| is_of_attempt(run, revert, step));
        if let Some(name) = self.foreign.name_of(&revert.path).filter(|_| !is_ours) {
            let is_it = |undo: &Undo| match &undo.what {
                UndoWhat::Rows { after, .. } => revert.base == Some(Digest::of(after)),
                UndoWhat::Remove => revert.base.is_none(),
                UndoWhat::Worktree { .. } => false,
            };
            return self.told.undo().iter().any(|undo| undo.path == name && is_it(undo));
        }
        match step.map(|step| self.told.step(step)) {
            Some(StepTold::Done(_)) => false,
            Some(
                StepTold::PassedOver(_)
                | StepTold::Unproved(_)
                | StepTold::Undone
                | StepTold::Silent,
            )
            | None => true,
        }
    }

    /// Finds out what is to be undone; rescues are numbered from `number` on. What an earlier
    /// resume announced and was `cut_short` in is undone as announced.
    pub(crate) fn look_at_undo<W: World>(
        &mut self,
        world: &mut W,
        run: &Run,
        survey: &Survey,
        cut_short: &[Revert],
        number: u32,
    ) -> Result<(), Stop> {
        let mut number = number;
        let redone = self.entered.as_ref().is_some_and(|it| !it.changes.is_empty());
        let ours = Ours { told: &*self.told, run, survey, redone };
        let mut undo = self.told.undo();
        let alive = ours.alive();
        let is_announced =
            |it: &Undo| cut_short.iter().any(|revert| revert.path == self.foreign.path(&it.path));
        undo.retain(|it| is_worktree(it) || !is_announced(it));
        let spared: Vec<Undo> = undo.extract_if(.., |it| ours.keeps(it)).collect();
        let is_spared = |path: &Option<String>| {
            path.as_ref().is_some_and(|path| spared.iter().any(|it| it.path == *path))
        };
        let dirty = Code::DirtyTree.as_str();
        self.findings.retain(|it| it.code != dirty || !is_spared(&it.path));
        let mut by_step: BTreeMap<Address, Vec<&Undo>> = BTreeMap::new();
        for one in undo.iter().filter(|it| !is_worktree(it)) {
            by_step.entry(one.step.clone()).or_default().push(one);
        }
        for (step, undo) in by_step {
            let made = self.files_of(world, number, &step, &undo)?;
            number += u32::from(!made.reverts.is_empty());
            self.undoing.push(made);
        }
        for one in undo.iter().filter(|it| is_worktree(it)) {
            if let Some(made) = self.tree(world, number, one)? {
                number += u32::from(!made.reverts.is_empty());
                self.undoing.push(made);
            }
        }
        self.undo = undo;
        self.alive = alive;
        if let Some(report) = self.told.report_with(&self.alive) {
            self.standing.report = report;
        }
        // What looks like an orphan, or like the last one that may be, is ours and lives.
        let lives = |step: &Option<String>| {
            let step = step.as_deref().map(Address::from_text);
            step.is_some_and(|step| self.alive.iter().any(|it| it.is_within(&step)))
        };
        let looks = [Odd::OrphanTask.row().word, Odd::AttemptsUsedUp.row().word];
        self.findings.retain(|it| !looks.contains(&it.code.as_str()) || !lives(&it.step));
        Ok(())
    }

    fn files_of<W: World>(
        &mut self,
        world: &mut W,
        number: u32,
        step: &Address,
        undo: &[&Undo],
    ) -> Result<Undoing, Stop> {
        let mut reverts = Vec::new();
        for one in undo {
            let after = match &one.what {
                UndoWhat::Rows { after, .. } => Some(after.clone()),
                UndoWhat::Remove | UndoWhat::Worktree { .. } => None,
            };
            let seen = self.files.bytes(&one.path).map(Digest::of);
            let path = self.foreign.path(&one.path);
            let Some(left) = world.look(&path)?.filter(|it| Some(it.hash) == seen) else {
                self.contest(step, &path, "it changed while onward looked");
                continue;
            };
            let base = after.map(|bytes| {
                let digest = Digest::of(&bytes);
                self.bases.insert(digest, bytes);
                digest
            });
            reverts.push(Revert {
                path,
                left: Some(left.hash),
                base,
                rescue: rescue::name(number, step),
                left_kind: left.kind,
                base_kind: base.map(|_| left.kind).unwrap_or_default(),
                step: Some(step.clone()),
            });
        }
        Ok(Undoing {
            started: Box::new(AttemptStarted::bare(step.clone(), 0)),
            reverts,
            bases: BTreeMap::new(),
        })
    }

    /// A worktree goes back to the head of its branch, path by path.
    fn tree<W: World>(
        &mut self,
        world: &mut W,
        number: u32,
        undo: &Undo,
    ) -> Result<Option<Undoing>, Stop> {
        let git = self.files.git.clone().unwrap_or_default();
        let branch = git.worktrees.iter().find(|it| it.path == undo.path);
        let branch = branch.and_then(|it| it.branch.as_ref());
        let head = branch.and_then(|name| git.branches.get(name)).map(|it| it.head.clone());
        let inside = inside(&world.absolute(At::Project("")), &undo.path);
        let (Some(head), Some(tree)) = (head, inside) else {
            let why = "it lies outside of the project, or on no branch";
            self.contest(&undo.step, &undo.path, why);
            return Ok(None);
        };
        let started = AttemptStarted {
            cwd: tree.clone(),
            base: Some(head.clone()),
            ..AttemptStarted::bare(undo.step.clone(), 0)
        };
        let changes = world.changes(&snapshot_of(&started), &head, None)?;
        let whole =
            changes.filter(|it| it.skipped.is_empty() && !it.all.iter().any(|change| change.moved));
        let Some(changes) = whole else {
            self.contest(&undo.step, &tree, "not all of it can be put back");
            return Ok(None);
        };
        self.trees.push(tree);
        Ok(Some(revert::undoing(number, &started, &changes.all)))
    }

    fn contest(&mut self, step: &Address, path: &str, why: &str) {
        let message = format!("{path} cannot be undone: {why}");
        let finding = Finding::new(Code::AttemptContested, message).at_path(path).at_step(step);
        self.contested.push(finding.with_hint("look at it, and resume again"));
    }

    /// Adds what stands against going on to what was seen otherwise.
    pub(crate) fn tell(&self, run: &Run, imported: &[Event], survey: &mut Survey) {
        // The user has said what becomes of what was tried too often, and no file tells it yet; or
        // is asked about that by a gate, and by no finding as well.
        let asks = |it: &&Finding| it.code == Odd::AttemptsUsedUp.row().word;
        let is_asked = self.is_asked(run);
        let open = self.findings.iter().filter(|it| !is_asked || !asks(it));
        survey.findings.extend(open.cloned());
        survey.findings.extend(self.contested.iter().cloned());
        survey.findings.extend(self.cut_back(&run.state.exported));
        // They are written again, and what was done with them stays.
        let is_there = |step: &Address| run.graph.find(step).is_some();
        survey.outputs.retain(|step, seen| {
            let again = self.told.made_again_by(step).is_some_and(|it| is_there(&it));
            seen.retain(|it| !again || !it.is_lost());
            !seen.is_empty()
        });
        let is_through = |step: &&Address| matches!(self.told.step(step), StepTold::Done(_));
        let used_up = run.state.used_up().map(|(step, _)| step);
        survey.through.extend(used_up.filter(is_through).cloned());
        let regressed = regressed(run, self.source());
        if let Some(entered) = &self.entered {
            survey.findings.extend(entered.told(regressed.len()));
            let place = |step| (step, entered.place.clone());
            survey.reentered.extend(regressed.into_keys().map(place));
        } else {
            // An answer on which no step has acted to its end is in no file yet.
            let untold = &run.state.untold_answers;
            let told = regressed.into_iter().filter(|(step, _)| !untold.contains(step));
            for (step, says) in told {
                let why = self.told.explains(&step);
                survey.explained.extend(why.is_some().then(|| step.clone()));
                survey.disagreements.insert(step, why.unwrap_or(says));
            }
            ours::overtaken(&*self.told, run, survey);
        }
        if let Some(git) = &mut survey.git {
            // One that is gone is told as missing.
            let theirs = self.foreign.theirs();
            git.changed.retain(|path| !self.has(path) && !theirs.has(path));
        }
        survey.findings.extend(self.asked(imported));
    }

    /// Whether a gate is open where the run re-enters, or the user has answered one there and no
    /// step acted on that yet.
    fn is_asked(&self, run: &Run) -> bool {
        let points: Vec<Address> =
            self.standing.point.steps.iter().map(|it| Address::from_text(it)).collect();
        let untold = run.state.untold_answers.iter();
        let open = run.graph.open_gates().map(|id| &run.graph.node(id).address);
        let mut all = untold.chain(open);
        all.any(|gate| points.iter().any(|point| gate.is_within(point)))
    }

    /// Whether a path of the project is one of the site's files, or one that they speak of.
    fn has(&self, path: &str) -> bool {
        let roots = self.foreign.site.roots.iter().enumerate().skip(1);
        let mut here = roots.filter(|(_, root)| root.dir == ".");
        self.files.iter().any(|(name, _)| self.foreign.path(name) == path)
            || here.any(|(number, _)| self.files.file_in(number, path).is_some())
    }

    /// What a person must say first: whether work counts that the files were just found to show and
    /// that no line of them records. What our run did itself, its journal vouches for.
    fn asked(&self, imported: &[Event]) -> Option<Finding> {
        let asks = self.standing.asks.as_ref()?;
        let step = Address::from_text(self.standing.point.steps.first()?);
        if !imported.iter().any(is_inferred) {
            return None;
        }
        let finding = Finding::new(Code::UnprovedWorkCounts, asks.clone());
        Some(finding.at_step(&step).with_hint("they are kept as they are"))
    }

    /// A log that only ever grows, and has not.
    fn cut_back(&self, exported: &[Exported]) -> Vec<Finding> {
        let is_as_it_was = |file: &&Exported| {
            let Some(offset) = file.offset.and_then(|it| usize::try_from(it).ok()) else {
                return true;
            };
            let held = self.files.bytes(&file.path).and_then(|bytes| bytes.get(..offset));
            held.is_some_and(|bytes| Digest::of(bytes) == file.hash)
        };
        let cut = exported.iter().filter(|file| !is_as_it_was(file));
        let finding = |file: &Exported| {
            let message =
                format!("{} does not begin as it did when onward last wrote it", file.path);
            let finding = Finding::new(Code::StatusDisagrees, message);
            let hint = "what the file says now counts; steps that it does not prove run again";
            finding.at_path(self.foreign.path(&file.path)).with_hint(hint)
        };
        cut.map(finding).collect()
    }

    /// Since the last thing that the files tell; `None` when they tell no time.
    pub(crate) fn age_band(&self, now: onward_core::time::Timestamp) -> Option<AgeBand> {
        let last = self.standing.last_event.as_ref()?;
        Some(AgeBand::of_seconds(now.ms_since(last.at) / 1000))
    }

    /// What the plan shows of the undo.
    pub(crate) fn planned(&self) -> Vec<PlannedRevert> {
        let rescue_of = |path: &str| {
            let all = self.undoing.iter().flat_map(|it| &it.reverts);
            all.clone().find(|it| it.path == path || it.path.starts_with(&format!("{path}/")))
        };
        let of = |undo: &Undo| {
            let (kind, rows) = match &undo.what {
                UndoWhat::Rows { rows, .. } => (RevertKind::TruncateRows, rows.clone()),
                UndoWhat::Remove => (RevertKind::RemoveFile, Vec::new()),
                UndoWhat::Worktree { changes } => (RevertKind::ResetWorktree, changes.clone()),
            };
            let path = match &undo.what {
                UndoWhat::Rows { .. } | UndoWhat::Remove => self.foreign.path(&undo.path),
                UndoWhat::Worktree { .. } => undo.path.clone(),
            };
            let rescue = rescue_of(&path).map(|it| it.rescue.clone());
            let unnumbered = || format!("rescue/{}", undo.step.file_name());
            PlannedRevert {
                only_if: None,
                kind,
                path: undo.path.clone(),
                rows,
                rescue: rescue.unwrap_or_else(unnumbered),
                step: Some(undo.step.to_string()),
            }
        };
        self.undo.iter().map(of).collect()
    }

    /// Says in the event that opens the resume where it enters, and what is undone.
    pub(crate) fn announce(&self, resumed: &mut RunResumed) {
        if let Some(Entered { place, .. }) = &self.entered {
            resumed.accepted.push(format!("from {place}"));
            resumed.entered = Some(place.clone());
        }
        resumed.reverts.extend(self.undoing.iter().flat_map(|it| it.reverts.iter().cloned()));
    }

    /// Keeps everything that is undone, and what is put in its place; durable when it returns.
    pub(crate) fn keep<W: World>(&self, world: &mut W) -> Result<(), Stop> {
        for (digest, bytes) in &self.bases {
            if files::saved(world, *digest)?.is_none() {
                files::keep(world, *digest, bytes)?;
            }
        }
        for undoing in &self.undoing {
            undoing.keep(world)?;
        }
        Ok(())
    }

    /// The files are back; what git had noted of them follows.
    pub(crate) fn settle_trees<W: World>(&self, world: &mut W) -> Result<(), Stop> {
        self.trees.iter().try_for_each(|tree| world.refresh_tree(tree))
    }

    /// Takes the other system's lock and reads its files once more.
    pub(crate) fn hold<W: World>(&self, world: &mut W) -> Result<Held, Stop> {
        let Foreign { site, .. } = &self.foreign;
        let lock = world.hold(site, self.foreign.card())?;
        let files = world.foreign(site, self.foreign.card())?;
        Ok(Held { files: self.foreign.parse(files)?.files, lock })
    }

    /// Whether programs of the other system keep out while the lock is held.
    pub(crate) fn has_lock(&self) -> bool {
        self.foreign.card().lock.is_some()
    }

    /// What an undo has put back is put back in what was read, too.
    pub(crate) fn put_back<W: World>(
        &self,
        world: &mut W,
        reverts: &[Revert],
        read: &mut Files,
    ) -> Result<(), Stop> {
        for revert in reverts {
            for (number, root) in self.foreign.site.roots.iter().enumerate() {
                let Some(name) = below(&root.dir, &revert.path) else { continue };
                if !reads(root, name) {
                    continue;
                }
                read.remove_in(number, name);
                if let Some((bytes, _)) = world.content(&revert.path)? {
                    read.insert_in(number, name, File { bytes, modified: None });
                }
            }
        }
        let project = world.absolute(At::Project(""));
        let is_reset =
            |it: &str| inside(&project, it).is_some_and(|tree| self.trees.contains(&tree));
        let trees = read.git.iter_mut().flat_map(|git| &mut git.worktrees);
        trees.filter(|it| is_reset(&it.path)).for_each(|it| it.changes.clear());
        Ok(())
    }

    /// Tells the other system in its own words that its run goes on: the first thing written there.
    /// Gives what the files tell then. `run` knows which attempts this resume has given up.
    pub(crate) fn say_resumed<W: World>(
        &self,
        world: &mut W,
        held: Held,
        run: &Run,
    ) -> Result<Reading, Stop> {
        let Held { mut files, lock: _lock } = held;
        let mut at = world.now();
        self.refuse_unread(&files, &self.restored)?;
        export::write(world, &self.foreign, &self.restored)?;
        files = export::after(files, &self.restored);
        if let Some(entered) = self.entered.as_ref().filter(|it| !it.changes.is_empty()) {
            self.refuse_unread(&files, &entered.changes)?;
            export::write(world, &self.foreign, &entered.changes)?;
            files = export::after(files, &entered.changes);
            at = entered.at;
        }
        let Reading { files, told } = self.foreign.parse(files)?;
        let Some(told) = told else { return Ok(Reading { files, told }) };
        // What is done again from where a person enters begins afresh.
        let redone = self.entered.as_ref().is_some_and(|it| !it.changes.is_empty());
        let untold = if redone { Vec::new() } else { ours::untold_deaths(run, &*told) };
        let (point, by) = (&self.standing.point, &world.absolute(At::Run("")));
        let (undone, alive, died) = (&self.undo, &self.alive, &untold);
        let changes = told.write(&Deed::Resumed { at, point, undone, alive, died, by });
        self.refuse_unread(&files, &changes)?;
        export::write(world, &self.foreign, &changes)?;
        Ok(ours::read_beside(self.foreign.parse(export::after(files, &changes))?, run))
    }
}

impl Reentry {
    /// What was not read is not replaced: nothing of it would be kept. A log that is too large
    /// still grows.
    fn refuse_unread(&self, files: &Files, changes: &[Change]) -> Result<(), Stop> {
        let unread = |change: &Change| {
            let path = self.foreign.path(change.path());
            let found = files.unread.iter().find(|it| it.path == path)?;
            let grows = matches!(change, Change::Append { .. });
            (!grows || found.why != Unreadable::TooLarge).then_some(found)
        };
        let Some(Unread { path, why }) = changes.iter().find_map(unread) else { return Ok(()) };
        let (what, hint) = words(*why);
        Err(Stop::Unready { what: format!("{path} {what}, and is to change"), hint })
    }
}

/// Whether a step is adopted that the files show and no line of them records.
fn is_inferred(event: &Event) -> bool {
    let Event::AttemptAdopted(adopted) = event else { return false };
    adopted.certainty == Certainty::Inferred
}

fn is_worktree(undo: &Undo) -> bool {
    match undo.what {
        UndoWhat::Worktree { .. } => true,
        UndoWhat::Rows { .. } | UndoWhat::Remove => false,
    }
}

/// Whether a file below a root is one of those that are read.
pub(super) fn reads(root: &Root, name: &str) -> bool {
    let fits = |glob: &String| Glob::new(glob).is_ok_and(|it| it.compile_matcher().is_match(name));
    root.reads.iter().any(fits)
}

/// Whether the undo is of what an attempt of ours left there.
pub(super) fn is_of_attempt(run: &Run, revert: &Revert, step: &Address) -> bool {
    let started = run.state.step(step).and_then(|it| it.started.as_deref());
    started.is_some_and(|it| it.saved.contains_key(&revert.path) || it.base.is_some())
}

/// What a path of the project is called below a root.
pub(super) fn below<'p>(root: &str, path: &'p str) -> Option<&'p str> {
    if root == "." { Some(path) } else { path.strip_prefix(root)?.strip_prefix('/') }
}

/// A path below the project, as the project names it.
fn inside(project: &str, path: &str) -> Option<String> {
    let rest = Path::new(path).strip_prefix(project).ok()?;
    rest.to_str().filter(|rest| !rest.is_empty()).map(str::to_owned)
}
