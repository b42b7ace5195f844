//! Another system's run that a run of ours drives from another working tree, or another project.
//!
//! Invariant: files that lie outside of both trees are driven by one run at a time.

use std::path::Path;

use onward_core::{finding::Finding, run::Run, told::Told};

use crate::locate::holder;

/// What the other driver is, if it lives and is not this very run.
pub(crate) fn driven(told: &dyn Told, run: &Run) -> Option<Finding> {
    let dir = Path::new(told.driven_from()?);
    let own = run.state.opened.as_ref().map(|it| it.run.as_str());
    let is_own = dir.file_name().is_some_and(|it| it.to_str() == own);
    let driver = holder(dir).filter(|_| !is_own)?;
    let hint = format!("wait for it, or watch it with `onward attach {}`", dir.display());
    Some(driver.still_running().with_hint(hint))
}
