//! Files that a done step read, and that a step before it has made otherwise since, be it by way of
//! steps that came out the same.
//!
//! Invariant: only what the journal says counts here; what a person changed is the survey's to
//! find.

use super::{Graph, NodeId};
use crate::{
    address::Address,
    digest::Digest,
    key::{Difference, Key},
    overwritten::written,
    state::{Phase, State, StepState},
    time::Timestamp,
};

impl Graph {
    /// What a done or skipped step read against what the steps before it, done again since, left.
    pub(crate) fn overtaken(&self, state: &State, id: NodeId) -> Vec<Difference> {
        let entry = state.steps.aside(&self.node(id).address);
        let key = entry.as_deref().and_then(|entry| Some((entry, entry.key.as_ref()?)));
        key.map_or_else(Vec::new, |(entry, key)| self.overtaken_of(state, id, (entry, key)))
    }

    pub(super) fn overtaken_of(
        &self,
        state: &State,
        id: NodeId,
        (entry, key): (&StepState, &Key),
    ) -> Vec<Difference> {
        // The files of another system go on changing; that system's rules say what counts.
        let may_differ = !state.invalidated.is_empty() && state.adopted.is_none();
        if !may_differ || !key.as_str().contains("\"reads\":") {
            return Vec::new();
        }
        let key = key.get();
        let is_named = |need: &NodeId| key.needs.contains_key(self.node(*need).address.as_str());
        if !self.compared_needs(id).iter().all(is_named) {
            // A person keeps it, whatever the steps before it come out as.
            return Vec::new();
        }
        let again = self.done_again(state, id, entry.read_at());
        let mut all = Vec::new();
        for (path, was) in key.reads {
            let mut last: Option<(Timestamp, Option<Digest>)> = None;
            for (step, at) in &again {
                let left = written(state, step).into_iter().find(|it| it.0 == path);
                let is_later = last.is_none_or(|known| known.0 < *at);
                let Some((_, hash)) = left.filter(|_| is_later) else { continue };
                if self.find(step).is_some_and(|step| self.comes_after(id, step)) {
                    last = Some((*at, hash));
                }
            }
            if let Some((_, is)) = last.filter(|(_, is)| *is != Some(was)) {
                let (was, is) = (Some(was.to_string()), is.map(|it| it.to_string()));
                all.push(Difference { part: format!("reads.{path}"), was, is });
            }
        }
        all
    }

    /// The steps that counted no more, and were done again after this moment. Those of which that
    /// is older than the same of `id` itself are what it was made from, whatever a clock says.
    fn done_again<'s>(
        &self,
        state: &'s State,
        id: NodeId,
        since: Timestamp,
    ) -> Vec<(&'s Address, Timestamp)> {
        let own = &self.node(id).address;
        let later = state.invalidated.iter().rev().take_while(|(_, step)| step != own);
        let done = later.filter_map(|(_, step)| {
            let glance = state.steps.glance(step)?;
            let at = glance.ended_at();
            (glance.phase() == Phase::Done && at > since).then_some((step, at))
        });
        done.collect()
    }
}
