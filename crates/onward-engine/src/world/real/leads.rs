//! Where links of the project lead.
//!
//! Invariant: a link that leads to nothing is followed as far as its names go, as a step that
//! writes to it would make the file there.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use onward_core::name;

use super::look::{Looker, SKIPPED};
use crate::world::{files::Leads, open};

/// A chain of more links is none that the system follows.
const LINKS_MAX: usize = 40;

impl Looker {
    /// Where a link at a path leads.
    pub(super) fn leads(&self, path: &str) -> Leads {
        let full = self.full(path);
        if !fs::symlink_metadata(&full).is_ok_and(|it| it.is_symlink()) {
            return Leads::Nowhere;
        }
        let Some(target) = end_of(&full) else { return Leads::Nowhere };
        let project = fs::canonicalize(self.project_dir()).unwrap_or_default();
        let Ok(inside) = target.strip_prefix(project) else { return Leads::Away };
        let is_work = !SKIPPED.iter().any(|dir| inside.starts_with(dir));
        match target.metadata() {
            Ok(found) if found.is_file() && is_work && found.len() <= open::FILE_BYTES_MAX => {
                Leads::To(name::text(inside.as_os_str().as_bytes()))
            }
            Ok(found) if found.is_file() => Leads::Away,
            Ok(_) => Leads::Nowhere,
            Err(_) if is_work => Leads::Nowhere,
            Err(_) => Leads::Away,
        }
    }
}

/// What is written to when a link is; `None` = its directory is not there, or it leads to itself.
fn end_of(link: &Path) -> Option<PathBuf> {
    let mut at = link.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(found) = fs::canonicalize(&at) {
            return Some(found);
        }
        let target = fs::read_link(&at).ok()?;
        let next = at.parent()?.join(target);
        at = fs::canonicalize(next.parent()?).ok()?.join(next.file_name()?);
        if !fs::symlink_metadata(&at).is_ok_and(|it| it.is_symlink()) {
            return Some(at);
        }
    }
    None
}
