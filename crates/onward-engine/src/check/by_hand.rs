//! Outputs as a person left them: what must be kept before the step that made them runs again.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::{
    address::Address,
    event::{AttemptStarted, Revert},
    run::Run,
    state::{Glance, Phase, StepState},
    survey::{Survey, was_made_by_the_run},
};

use super::{ours::Ours, overwriters};
use crate::{
    revert::{
        self, Unfinished,
        rescue::{self, Undoing},
    },
    world::{Stop, World, files::Leads},
};

/// Looks at steps that ran before. Each that has such outputs gets a rescue of its own. `beside`
/// is what other hands changed of what unfinished attempts left, and all that those changed.
pub(super) fn look<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    beside: (&BTreeMap<Address, Vec<String>>, &BTreeSet<String>),
    undoing: &mut BTreeMap<String, Undoing>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    let run = ours.run;
    for (step, glance) in run.state.steps.glances() {
        let entry = match glance {
            Glance::Whole(entry) => entry,
            Glance::Plain(_) if !survey.outputs.contains_key(step) => continue,
            Glance::Plain(_) => &run.state.steps[step],
        };
        let mut paths = Vec::new();
        for path in candidates(world, ours, (step, entry), beside, survey)? {
            // A directory may stand in its place: what is in it is the person's.
            paths.extend(world.in_the_way(&path)?.into_iter().filter(|it| *it != path));
            // A step that writes to a link writes to the file that it leads to.
            if let Leads::To(behind) = world.leads(&path)? {
                paths.push(behind);
            }
            paths.push(path);
        }
        if let Some(kept) = kept(world, run, (step, entry.attempts), paths, next(run, undoing))? {
            survey.by_hand.insert(step.clone(), announce(kept, undoing));
        }
    }
    Ok(())
}

/// The number of the next rescue.
pub(crate) fn next(run: &Run, undoing: &BTreeMap<String, Undoing>) -> u32 {
    run.state.rescues + 1 + u32::try_from(undoing.len()).unwrap_or(u32::MAX)
}

/// What is kept, by the name of its rescue.
pub(crate) fn announce(kept: Undoing, undoing: &mut BTreeMap<String, Undoing>) -> Vec<Revert> {
    let reverts = kept.reverts.clone();
    if let Some(first) = reverts.first() {
        undoing.insert(first.rescue.clone(), kept);
    }
    reverts
}

/// Says that these paths are kept as they are, in the rescue of this number, but for what the run
/// itself made or keeps already.
pub(crate) fn kept<W: World>(
    world: &mut W,
    run: &Run,
    (step, attempt): (&Address, u32),
    paths: Vec<String>,
    number: u32,
) -> Result<Option<Undoing>, Stop> {
    let mut reverts = Vec::new();
    for path in paths {
        let Some((digest, kind)) = world.look(&path)?.map(crate::world::Looked::content) else {
            continue;
        };
        let is_kept = run.state.kept_by_hand.get(&path) == Some(&digest);
        if is_kept || was_made_by_the_run(&run.state, &path, digest) {
            continue;
        }
        // What is not kept behind a link is kept by taking the link away.
        let stays = world.leads(&path)? != Leads::Away;
        let base = stays.then_some((digest, kind));
        reverts.push(Revert {
            path,
            left: Some(digest),
            base: base.map(|it| it.0),
            rescue: rescue::name(number, step),
            left_kind: kind,
            base_kind: base.map(|it| it.1).unwrap_or_default(),
            step: Some(step.clone()),
        });
    }
    if reverts.is_empty() {
        return Ok(None);
    }
    let started = Box::new(AttemptStarted::bare(step.clone(), attempt));
    Ok(Some(Undoing { started, reverts, bases: BTreeMap::new() }))
}

/// What a person had not committed and an unfinished attempt replaced by a commit gets a rescue of
/// its own.
pub(super) fn keep_overlaid<'u>(
    run: &Run,
    ended: impl Iterator<Item = &'u Unfinished<'u>>,
    undoing: &mut BTreeMap<String, Undoing>,
    survey: &mut Survey,
) {
    for one in ended {
        let kept = announce(revert::overlaid(run, one, next(run, undoing)), undoing);
        if !kept.is_empty() {
            survey.overlaid.insert(one.step.clone(), kept);
        }
    }
}

/// Of a done step the outputs that changed now or before; of a stale one all it had; of one that
/// did not finish what other hands changed since; of one that failed and is passed over what
/// changed after it.
fn candidates<W: World>(
    world: &mut W,
    ours: &Ours<'_>,
    (step, entry): (&Address, &StepState),
    (edited, unfinished): (&BTreeMap<Address, Vec<String>>, &BTreeSet<String>),
    survey: &Survey,
) -> Result<Vec<String>, Stop> {
    Ok(match entry.phase {
        Phase::Done => {
            let seen = survey.outputs.get(step).into_iter().flatten();
            // What a power cut left of one is no person's.
            let seen = seen.filter(|it| it.damage.is_none());
            let mut paths: Vec<String> = seen.map(|it| it.path.clone()).collect();
            paths.extend(entry.by_hand.keys().cloned());
            paths.sort();
            paths.dedup();
            paths
        }
        Phase::Stale => entry.evidence.files.iter().map(|it| it.path.clone()).collect(),
        Phase::Running | Phase::Failed | Phase::Lost => {
            edited.get(step).cloned().unwrap_or_default()
        }
        Phase::Tolerated => {
            let limit_ns = revert::limit_ns(entry.ended_at);
            let id = ours.run.graph.find(step);
            let mut paths = BTreeSet::new();
            for pattern in id.into_iter().flat_map(|id| overwriters::known_of(ours.run, id)) {
                paths.extend(world.changed_since(&pattern, limit_ns)?);
            }
            paths.retain(|it| !unfinished.contains(it) && !ours.is(it, entry.ended_at));
            paths.into_iter().collect()
        }
        Phase::Pending | Phase::Waiting | Phase::Skipped => Vec::new(),
    })
}
