//! Archived checkpoints: the last five stay where the system looks for them, and none is deleted.

use std::{fs, path::PathBuf};

use onward_dialects::rules::dotagent::phases::ARCHIVE;

use super::{CallError, Desk};

/// So many archives stay where they are.
const KEPT: usize = 5;
/// Where the others go, within the archive.
const OLDER: &str = "older";

pub(super) fn keep_last(desk: &Desk) -> Result<(), CallError> {
    let dir = desk.dir.join(ARCHIVE);
    let Ok(listed) = fs::read_dir(&dir) else { return Ok(()) };
    let mut all: Vec<(String, PathBuf)> = Vec::new();
    for entry in listed {
        let entry = entry.map_err(CallError::io("list", &dir))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_dir = entry.file_type().is_ok_and(|it| it.is_dir());
        if is_dir && name != OLDER {
            // `<workflow>_<time>`: the time orders them.
            let stamp = name.rsplit('_').next().unwrap_or_default().to_owned();
            all.push((stamp, PathBuf::from(name)));
        }
    }
    all.sort();
    let older = all.len().saturating_sub(KEPT);
    let aside = |(_, name): (String, PathBuf)| {
        let name = name.to_string_lossy().into_owned();
        (format!("{ARCHIVE}{name}"), format!("{ARCHIVE}{OLDER}/{name}"))
    };
    let moves: Vec<(String, String)> = all.into_iter().take(older).map(aside).collect();
    desk.rename(&moves)
}
