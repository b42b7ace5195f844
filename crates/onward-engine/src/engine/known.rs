//! What the next look at a long run need not read again, noted down by the one who drove it.

use std::path::Path;

use super::Machine;
use crate::{
    load::checkpoint,
    locate::{self, Project},
    world::{
        known::{Begun, Renewal},
        real,
    },
};

/// `begun` is what the driver knows of the journal.
pub(super) fn note(project: &Project, run_dir: &Path, machine: &Machine, begun: Option<Begun>) {
    if checkpoint::is_kept(run_dir)
        && let Some(mut known) = Renewal::begin(run_dir, &machine.env)
    {
        checkpoint::note(&mut known, begun);
        locate::note(&mut known, project);
        real::note(&mut known);
        known.keep();
    }
}
