//! Why the selected step will, or will not, run: from the fold while the run is driven, else from
//! the plan of a resume.
//!
//! Invariant: a plan is made beside the screen, never before a key is answered, and says nothing
//! any more when the journal has moved on.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
};

use onward_core::{
    graph::NodeId,
    plan::{Plan, Status, Verdict},
    policy::Choices,
    run::Run,
    time::Timestamp,
};
use onward_engine::engine::{Machine, plan_run};

use crate::{diagnostic::printable, plan_page::reason};

/// Plans of larger runs are made by `onward why` alone.
const STEPS_MAX: usize = 20_000;
/// So many steps that one waits for are named.
const NAMED_MAX: usize = 3;

#[derive(Default)]
pub(super) struct Whys {
    rows: BTreeMap<String, (Verdict, String)>,
    /// One is being made, or was; one is enough until the journal says more.
    is_asked: bool,
    coming: Option<Receiver<Option<Plan>>>,
}

impl Whys {
    /// The journal says more than before.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Begins a plan where there is none, and takes one that is ready.
    pub(super) fn look(&mut self, dir: &Path, machine: &Machine, run: &Run, now: Timestamp) {
        if !self.is_asked {
            self.is_asked = true;
            let status = Status::of(&run.state, false);
            let is_over = matches!(status, Status::Completed | Status::Cancelled);
            if !is_over && run.graph.len() <= STEPS_MAX {
                self.coming = Some(begin(dir, machine));
            }
        }
        let Some(coming) = &self.coming else { return };
        match coming.try_recv() {
            Ok(plan) => {
                let steps = plan.into_iter().flat_map(|it| it.steps);
                let row = |it: onward_core::plan::PlannedStep| {
                    let why: Vec<String> = it.why.iter().map(|why| reason(why, now)).collect();
                    (it.step, (it.verdict, printable(&why.join("; "))))
                };
                self.rows = steps.map(row).collect();
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
    }

    /// In one sentence.
    pub(super) fn of(&self, run: &Run, id: NodeId, is_driven: bool) -> Option<String> {
        let node = run.graph.node(id);
        if let Some((verdict, why)) = self.rows.get(node.address.as_str()).filter(|_| !is_driven) {
            let does = does(*verdict);
            return Some(if why.is_empty() { does.to_owned() } else { format!("{does} ({why})") });
        }
        let needs = run.graph.effective_needs(id).into_iter();
        let open: Vec<NodeId> = needs.filter(|it| !run.graph.node(*it).is_settled()).collect();
        if open.is_empty() || node.is_settled() {
            return None;
        }
        let names = open.iter().take(NAMED_MAX).map(|it| run.graph.node(*it).address.as_str());
        let more = match open.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("waits for {}{more}", printable(&names.collect::<Vec<_>>().join(", "))))
    }
}

/// What a resume does with the step.
fn does(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Keep => "a resume keeps it",
        Verdict::Verify => "a resume checks it first",
        Verdict::Adopt => "a resume takes it over",
        Verdict::Reattach => "a resume waits for it, since it still runs",
        Verdict::Continue => "a resume continues it where it stopped",
        Verdict::Rerun => "a resume runs it again",
        Verdict::Run => "a resume runs it",
        Verdict::Ask => "a resume asks you first",
        Verdict::Skip => "a resume skips it",
    }
}

fn begin(dir: &Path, machine: &Machine) -> Receiver<Option<Plan>> {
    let (give, coming) = channel();
    let (dir, machine) = (dir.to_owned(), machine.clone());
    thread::spawn(move || {
        // When the screen is left, it has no reader any more.
        let _ = give.send(plan_run(&dir, &machine, &Choices::default()).ok());
    });
    coming
}
