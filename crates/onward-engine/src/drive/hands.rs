//! Files of people that a start would replace and no plan could name.
//!
//! Invariant: whatever a plan could name, it named and asked about. What only the filled-in name of
//! an item or a turn tells, and what people changed while the run was driven, is in a rescue before
//! the start that would replace it is recorded.

use std::collections::BTreeSet;

use onward_core::{
    address::Address,
    event::Revert,
    run::Run,
    state::{Gap, Phase},
    time::Timestamp,
    workflow::pattern::matcher,
};

use super::{Driver, prepare::UndoOfPrevious};
use crate::{
    check::{by_hand, overwriters::known_of},
    revert::{limit_ns, links::is_at_or_above},
    world::{
        Looked, Stop, World,
        files::{self, Leads},
    },
};

impl<W: World> Driver<'_, W> {
    /// Keeps such files as they are, unless the run made them or keeps them already. `is_new`: the
    /// attempt works in the project's own tree, and does not go on in the session of another.
    pub(crate) fn keep_by_hand(
        &mut self,
        (step, attempt): (&Address, u32),
        is_new: bool,
        writes: &[String],
        undo: &mut UndoOfPrevious,
    ) -> Result<(), Stop> {
        let state = &self.run.state;
        if state.adopted.is_some() {
            // The files of another system go on changing; that system's rules say what counts.
            return Ok(());
        }
        let since = match state.gaps.first() {
            Some(first) if !is_new => first.since,
            None if !is_new => return Ok(()),
            Some(_) | None => state.opened_at,
        };
        // What the last resume put back is as it was before the run changed it.
        let back = state.resumed.as_deref().map_or(&[][..], |it| &it.reverts);
        let mut paths = BTreeSet::new();
        for pattern in writes {
            for path in self.world.changed_since(pattern, ns(since))? {
                let Some(seen) = self.world.look(&path)? else { continue };
                let is_between =
                    |it: &Gap| (ns(it.since) + 1..=ns(it.until)).contains(&seen.changed_ns);
                let (now, _) = Looked::content(seen);
                let is_back = |it: &Revert| it.path == path && it.base == Some(now);
                let is_known = undo.reverts.iter().any(|it| is_at_or_above(it, &path));
                if is_known || back.iter().any(is_back) {
                    continue;
                }
                let is_strange = state.gaps.iter().any(is_between)
                    || is_new && is_strange(self.world, &self.run, step, (&path, seen))?;
                if !is_strange {
                    continue;
                }
                // A step that writes to a link writes to the file that it leads to.
                if let Leads::To(behind) = self.world.leads(&path)? {
                    paths.insert(behind);
                }
                paths.insert(path);
            }
        }
        let (paths, made) = (paths.into_iter().collect(), &undo.reverts);
        if let Some(kept) = by_hand::kept(self.world, &self.run, (step, attempt), paths, made)? {
            kept.keep(self.world)?;
            undo.reverts.extend(kept.reverts);
        }
        Ok(())
    }
}

/// Whether no attempt of the run is known to have left the path so. What was there when an earlier
/// attempt began was looked at then.
fn is_strange<W: World>(
    world: &mut W,
    run: &Run,
    step: &Address,
    (path, seen): (&str, Looked),
) -> Result<bool, Stop> {
    let state = &run.state;
    if state.touched.get(path).is_some_and(|at| seen.changed_ns <= ns(*at)) {
        return Ok(false);
    }
    let own = state.step(step).filter(|it| it.attempts > 0);
    if own.is_some_and(|it| seen.changed_ns >= begun_ns(it.started_at)) {
        return Ok(false);
    }
    if state.steps.glances().any(|(other, _)| gave_up_on(run, other, (path, seen.changed_ns))) {
        return Ok(false);
    }
    Ok(files::saved(world, seen.content().0)?.is_none())
}

/// Whether an attempt that came to nothing, and left what it wrote, was at work at this moment, and
/// declares the path.
fn gave_up_on(run: &Run, step: &Address, (path, at_ns): (&str, i64)) -> bool {
    let is_over = match run.state.phase(step) {
        Phase::Failed | Phase::Tolerated | Phase::Lost => true,
        Phase::Pending
        | Phase::Waiting
        | Phase::Running
        | Phase::Done
        | Phase::Skipped
        | Phase::Stale => false,
    };
    let Some(entry) = run.state.step(step).filter(|_| is_over) else { return false };
    let was_at_work = begun_ns(entry.started_at) <= at_ns && at_ns <= limit_ns(entry.ended_at);
    let declares =
        |it: &String| it == path || matcher(it, true).is_ok_and(|pattern| pattern.is_match(path));
    was_at_work && run.graph.find(step).is_some_and(|id| known_of(run, id).iter().any(declares))
}

/// The earliest time that a file can have which an attempt wrote that started then: the kernel
/// takes the times of files from a clock that stands still between two of its ticks.
fn begun_ns(started_at: Timestamp) -> i64 {
    const TICK_NS: i64 = 10_000_000;
    ns(started_at).saturating_sub(TICK_NS)
}

fn ns(moment: Timestamp) -> i64 {
    moment.as_micros().saturating_mul(1000)
}
