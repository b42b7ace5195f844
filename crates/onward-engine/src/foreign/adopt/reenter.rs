//! Going on with a run of another system: what its files say, what stands against it, and what is
//! undone first.
//!
//! Invariant: all or ask. Every path to be put back was looked at in this resume, is kept in the
//! rescue and announced in `run.resumed` before it is touched; one that cannot be put back is a
//! question, and then nothing is.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptStarted, Exported, Revert, RunResumed},
    finding::{Code, Finding, Severity},
    plan::{AgeBand, Plan, PlannedRevert, PlannedStep, Verdict},
    policy::EnterAt,
    run::Run,
    state::{Phase, StepState},
    survey::Survey,
};
use onward_dialects::{Files, Undone};

use super::{
    Native, Witness,
    elsewhere::{Elsewhere, FROM, unkept_wish},
    ours::Ours,
};
use crate::{
    drive::Driver,
    foreign::ForeignError,
    revert::{
        self,
        rescue::{self, Undoing},
        snapshot_of,
    },
    world::{At, Stop, World, files},
};

/// What is known before anything is done.
#[derive(Debug)]
pub(crate) struct Reentry {
    pub(crate) native: Native,
    /// As they are, and say where a person enters.
    pub(crate) files: Files,
    pub(crate) plan: Plan,
    /// Where a person enters instead, and since when.
    pub(crate) entering: Option<Elsewhere>,
    undoing: Vec<Undoing>,
    /// What the paths are when they are put back, where the run does not keep that yet.
    bases: BTreeMap<Digest, Vec<u8>>,
    /// Worktrees whose index follows.
    trees: Vec<String>,
    /// Why it cannot all be undone.
    contested: Vec<Finding>,
}

const RESET_WORKTREE: &str = "reset-worktree";

impl Reentry {
    /// Looks, and changes nothing.
    pub(crate) fn look<W: World>(
        world: &mut W,
        native: Native,
        run: &Run,
        from: Option<&EnterAt>,
    ) -> Result<Self, Stop> {
        let mut files = native.files()?;
        let mut plan = native.plan(&files, world.now_for_ages())?;
        if native.is_unbegun(&files) {
            // What is not there yet is for the run itself to make.
            plan.findings.clear();
        }
        let mut entering = None;
        if let Some(from) = from.cloned().or_else(|| unkept_wish(run)) {
            let (now, ages) = (world.now(), world.now_for_ages());
            let elsewhere = Elsewhere::find(native.dialect, &files, &plan, &from, now);
            let elsewhere = elsewhere.map_err(ForeignError::from)?;
            if let Some(entry) = &elsewhere.entry {
                files.insert(&entry.path, entry.file());
                plan = Elsewhere::seen_from(plan, native.plan(&files, ages)?);
            }
            entering = Some(elsewhere);
        }
        let (undoing, bases, trees, contested) =
            (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Self { native, files, plan, entering, undoing, bases, trees, contested })
    }

    pub(crate) fn witness(&self) -> Witness<'_> {
        Witness { dialect: self.native.dialect, files: &self.files }
    }

    /// Finds out what is to be undone; rescues are numbered from `number` on.
    pub(crate) fn look_at_undo<W: World>(
        &mut self,
        world: &mut W,
        run: &Run,
        survey: &Survey,
        number: u32,
    ) -> Result<(), Stop> {
        let mut number = number;
        let mut undone = self.native.dialect.undone(&self.files);
        self.spare(run, survey, &mut undone);
        let mut by_step: BTreeMap<Address, Vec<Undone>> = BTreeMap::new();
        for undone in undone {
            by_step.entry(undone.step.clone()).or_default().push(undone);
        }
        for (step, undone) in by_step {
            let made = self.files_of(world, number, &step, undone)?;
            number += u32::from(!made.reverts.is_empty());
            self.undoing.push(made);
        }
        let trees = self.plan.reverts.iter().filter(|it| it.kind == RESET_WORKTREE);
        for planned in trees.cloned().collect::<Vec<_>>() {
            if let Some(made) = self.tree(world, number, &planned)? {
                number += u32::from(!made.reverts.is_empty());
                self.undoing.push(made);
            }
        }
        Ok(())
    }

    /// What an attempt of ours has in hand, or has done and the files do not tell of yet, is not
    /// half-done work of somebody who is gone: it is taken off the plan.
    fn spare(&mut self, run: &Run, survey: &Survey, undone: &mut Vec<Undone>) {
        let redone = self.entering.as_ref().is_some_and(|it| it.entry.is_some());
        let ours = Ours { witness: self.witness(), run, survey, redone };
        let written = undone.extract_if(.., |it| ours.is_writing(&it.step));
        let mut spared: Vec<String> = written.map(|it| it.path).collect();
        let trees = self.plan.reverts.iter().filter(|it| it.kind == RESET_WORKTREE);
        let trees = trees.filter(|it| self.step_of(it).is_some_and(|step| ours.has_work(&step)));
        spared.extend(trees.map(|it| it.path.clone()));
        self.plan.reverts.retain(|it| !spared.contains(&it.path));
        let is_spared = |path: &Option<String>| path.as_ref().is_some_and(|it| spared.contains(it));
        let dirty = Code::DirtyTree.as_str();
        self.plan.findings.retain(|it| it.code != dirty || !is_spared(&it.path));
    }

    fn files_of<W: World>(
        &mut self,
        world: &mut W,
        number: u32,
        step: &Address,
        undone: Vec<Undone>,
    ) -> Result<Undoing, Stop> {
        let mut reverts = Vec::new();
        for Undone { path, after, .. } in undone {
            let seen = self.files.bytes(&path).map(Digest::of);
            let path = self.native.path(&path);
            let Some(left) = world.look(&path)?.filter(|it| Some(it.hash) == seen) else {
                self.contest(step, &path, "it changed while we looked");
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
        planned: &PlannedRevert,
    ) -> Result<Option<Undoing>, Stop> {
        let step = self.step_of(planned).unwrap_or_else(|| Address::from_text("worktree"));
        let git = self.files.git.clone().unwrap_or_default();
        let branch = git.worktrees.iter().find(|it| it.path == planned.path);
        let branch = branch.and_then(|it| it.branch.as_ref());
        let head = branch.and_then(|name| git.branches.get(name)).map(|it| it.head.clone());
        let inside = inside(&world.absolute(At::Project("")), &planned.path);
        let (Some(head), Some(tree)) = (head, inside) else {
            self.contest(&step, &planned.path, "it lies outside of the project, or on no branch");
            return Ok(None);
        };
        let started = AttemptStarted {
            cwd: tree.clone(),
            base: Some(head.clone()),
            ..AttemptStarted::bare(step.clone(), 0)
        };
        let changes = world.changes(&snapshot_of(&started), &head, None)?;
        let whole =
            changes.filter(|it| it.skipped.is_empty() && !it.all.iter().any(|change| change.moved));
        let Some(changes) = whole else {
            self.contest(&step, &tree, "not all of it can be put back");
            return Ok(None);
        };
        self.trees.push(tree);
        Ok(Some(revert::undoing(number, &started, &changes.all)))
    }

    fn step_of(&self, planned: &PlannedRevert) -> Option<Address> {
        self.native.dialect.step_of(&self.files, planned)
    }

    fn contest(&mut self, step: &Address, path: &str, why: &str) {
        let message = format!("{path} cannot be undone: {why}");
        let finding = Finding::new(Code::AttemptContested, message).at_path(path).at_step(step);
        self.contested.push(finding.with_hint("look at it, and resume again"));
    }

    /// Adds what stands against going on to what was seen otherwise.
    pub(crate) fn tell(&self, run: &Run, survey: &mut Survey) {
        survey.findings.extend(self.plan.findings.iter().cloned());
        survey.findings.extend(self.contested.iter().cloned());
        survey.findings.extend(self.cut_back(&run.state.exported));
        let regressed = self.witness().regressed(run);
        match &self.entering {
            Some(elsewhere) => {
                survey.findings.extend(elsewhere.told(regressed.len()));
                let place = |step| (step, elsewhere.place.clone());
                survey.reentered.extend(regressed.into_keys().map(place));
            }
            None => survey.disagreements.extend(regressed),
        }
        if let Some(git) = &mut survey.git {
            git.changed.retain(|path| !self.native.has(path));
        }
        survey.findings.extend(self.asked(run));
    }

    /// What a person must say first: whether work that nobody vouches for counts. What we did
    /// ourselves, the journal vouches for.
    fn asked(&self, run: &Run) -> Option<Finding> {
        let is_adopted = |step: &&PlannedStep| step.verdict == Verdict::Adopt;
        let unproved: Vec<Address> = (self.plan.steps.iter().filter(is_adopted))
            .map(|it| Address::from_text(&it.step))
            .collect();
        let is_ours = |(step, entry): (&Address, &StepState)| {
            let done = entry.phase == Phase::Done && !entry.elsewhere;
            done && unproved.iter().any(|it| step.is_within(it))
        };
        if !self.plan.can_resume || run.state.steps.iter().any(is_ours) {
            return None;
        }
        let need = self.plan.needs.first()?;
        let step = self.plan.recovery_point.steps.first()?;
        let mut finding = Finding::new(Code::ArtifactUnproved, need.clone());
        finding.severity = Severity::Blocking;
        Some(finding.at_step(&Address::from_text(step)).with_hint("they are kept as they are"))
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
            let message = format!("{} does not begin as it did when we last wrote it", file.path);
            let finding = Finding::new(Code::StatusDisagrees, message);
            let hint = "what the file says now counts; steps that it does not prove run again";
            finding.at_path(self.native.path(&file.path)).with_hint(hint)
        };
        cut.map(finding).collect()
    }

    pub(crate) fn age_band(&self) -> AgeBand {
        self.plan.run.age_band
    }

    /// Says in the event that opens the resume where it enters, and what is undone.
    pub(crate) fn announce(&self, resumed: &mut RunResumed) {
        let point = &self.plan.recovery_point;
        resumed.code.clone_from(&point.code);
        resumed.summary.clone_from(&point.summary);
        let from = self.entering.iter().map(|it| format!("{FROM}{}", it.place));
        resumed.accepted.extend(from);
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
    pub(crate) fn settle_trees<W: World>(&self, world: &W) {
        for tree in &self.trees {
            let dir = world.absolute(At::Project(tree));
            // One that cannot be reset is found not to be clean at the next look.
            let _ = Command::new("git")
                .args(["-C", &dir, "reset", "--quiet"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
    }
}

impl<W: World> Driver<'_, W> {
    /// What the other system's files say; what they prove is recorded, and committed with the
    /// resume. Nothing for a run of our own, nor for one that is only to be ended.
    pub(crate) fn look_at_native(&mut self) -> Result<Option<Reentry>, Stop> {
        if self.how.options.ending.is_some() {
            self.how.native = None;
        }
        let Some(native) = self.how.native.clone() else { return Ok(None) };
        let from = self.how.choices.from.clone();
        let reentry = Reentry::look(self.world, native, &self.run, from.as_ref())?;
        self.import(reentry.witness())?;
        Ok(Some(reentry))
    }
}

/// A path below the project, as the project names it.
fn inside(project: &str, path: &str) -> Option<String> {
    let rest = Path::new(path).strip_prefix(project).ok()?;
    rest.to_str().filter(|rest| !rest.is_empty()).map(str::to_owned)
}
