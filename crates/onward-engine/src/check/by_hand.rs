//! Outputs as a person left them: what must be kept before the step that made them runs again.

use std::collections::BTreeMap;

use onward_core::{
    address::Address,
    event::{AttemptStarted, Revert},
    run::Run,
    state::{Glance, Phase, StepState},
    survey::{Survey, was_made_by_the_run},
};

use crate::{
    revert::rescue::{self, Undoing},
    world::{Stop, World, files::Leads},
};

/// Looks at steps that were done before. Each that has such outputs gets a rescue of its own.
pub(crate) fn look<W: World>(
    world: &mut W,
    run: &Run,
    undoing: &mut BTreeMap<String, Undoing>,
    survey: &mut Survey,
) -> Result<(), Stop> {
    for (step, glance) in run.state.steps.glances() {
        let entry = match glance {
            Glance::Whole(entry) => entry,
            Glance::Plain(_) if !survey.outputs.contains_key(step) => continue,
            Glance::Plain(_) => &run.state.steps[step],
        };
        let mut reverts = Vec::new();
        let number = run.state.rescues + 1 + u32::try_from(undoing.len()).unwrap_or(u32::MAX);
        let (mut paths, mut away) = (Vec::new(), Vec::new());
        for path in candidates(step, entry, survey) {
            // A directory may stand in its place: what is in it is the person's.
            paths.extend(world.in_the_way(&path)?.into_iter().filter(|it| *it != path));
            // A link may: the step would write through it.
            let leads = world.leads(&path)?;
            paths.push(path.clone());
            match leads {
                Leads::Nowhere => {}
                Leads::To(behind) => paths.push(behind),
                Leads::Away => away.push(path),
            }
        }
        for path in paths {
            let Some((digest, kind)) = world.look(&path)?.map(crate::world::Looked::content) else {
                continue;
            };
            let is_kept = run.state.kept_by_hand.get(&path) == Some(&digest);
            if is_kept || was_made_by_the_run(&run.state, &path, digest) {
                continue;
            }
            // What is not kept behind a link is kept by taking the link away.
            let base = Some((digest, kind)).filter(|_| !away.contains(&path));
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
        if let Some(first) = reverts.first() {
            let started = Box::new(AttemptStarted::bare(step.clone(), entry.attempts));
            let bases = BTreeMap::new();
            let kept = Undoing { started, reverts: reverts.clone(), bases };
            undoing.insert(first.rescue.clone(), kept);
            survey.by_hand.insert(step.clone(), reverts);
        }
    }
    Ok(())
}

/// Of a done step the outputs that changed now or before; of a stale one all it had.
fn candidates(step: &Address, entry: &StepState, survey: &Survey) -> Vec<String> {
    match entry.phase {
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
        Phase::Pending
        | Phase::Running
        | Phase::Waiting
        | Phase::Failed
        | Phase::Tolerated
        | Phase::Skipped
        | Phase::Lost => Vec::new(),
    }
}
