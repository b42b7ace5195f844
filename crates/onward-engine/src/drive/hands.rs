//! What people changed while no driver lived, and the next attempt declares to write.
//!
//! Invariant: whatever a plan could name, it named and asked about. What only the filled-in name of
//! an item or a turn tells is in a rescue before the start that would replace it is recorded.

use std::collections::BTreeSet;

use onward_core::{address::Address, event::Revert, state::Gap, time::Timestamp};

use super::{Driver, prepare::UndoOfPrevious};
use crate::{
    check::by_hand,
    world::{Looked, Stop, World, files::Leads},
};

impl<W: World> Driver<'_, W> {
    /// Keeps such files as they are, unless the run made them or keeps them already.
    pub(crate) fn keep_by_hand(
        &mut self,
        step: &Address,
        attempt: u32,
        writes: &[String],
        undo: &mut UndoOfPrevious,
    ) -> Result<(), Stop> {
        let state = &self.run.state;
        let Some(first) = state.gaps.first() else { return Ok(()) };
        if state.adopted.is_some() {
            // The files of another system go on changing; that system's rules say what counts.
            return Ok(());
        }
        // What the last resume put back is as it was before the run changed it.
        let back = state.resumed.as_deref().map_or(&[][..], |it| &it.reverts);
        let mut paths = BTreeSet::new();
        for pattern in writes {
            for path in self.world.changed_since(pattern, ns(first.since))? {
                let Some(seen) = self.world.look(&path)? else { continue };
                let is_between =
                    |it: &Gap| (ns(it.since) + 1..=ns(it.until)).contains(&seen.changed_ns);
                let (now, _) = Looked::content(seen);
                let is_back = |it: &Revert| it.path == path && it.base == Some(now);
                let is_known = undo.reverts.iter().any(|it| it.path == path);
                if is_known || back.iter().any(is_back) || !state.gaps.iter().any(is_between) {
                    continue;
                }
                // A step that writes to a link writes to the file that it leads to.
                if let Leads::To(behind) = self.world.leads(&path)? {
                    paths.insert(behind);
                }
                paths.insert(path);
            }
        }
        let last = undo.reverts.iter().filter_map(Revert::rescue_number).max();
        let number = last.unwrap_or(state.rescues) + 1;
        let paths = paths.into_iter().collect();
        if let Some(kept) = by_hand::kept(self.world, &self.run, (step, attempt), paths, number)? {
            kept.keep(self.world)?;
            undo.reverts.extend(kept.reverts);
        }
        Ok(())
    }
}

fn ns(moment: Timestamp) -> i64 {
    moment.as_micros().saturating_mul(1000)
}
