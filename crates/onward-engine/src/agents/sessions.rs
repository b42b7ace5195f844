//! Live sessions of other tools in the same tree, found in the registries they keep.
//!
//! Invariant: the files are only read, and not trusted: they belong to other programs, are
//! undocumented, and stay behind when a program is killed. An entry counts only while the process
//! that it names lives.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Adapter as _, claude::Claude};

/// Where Claude Code keeps one file per live session, below its own directory.
const CLAUDE: &str = "sessions";

/// The directory in which Claude Code keeps its files, by the user's environment.
pub(crate) fn dir(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let moved = Claude.card().moved(".claude/", &variable);
    moved.or_else(|| Some(variable("HOME")?.join(".claude")))
}

/// Whether the process with this id and start time lives.
type IsAlive<'a> = &'a dyn Fn(i32, u64) -> bool;

/// One description for each live session whose working directory lies in `project`.
pub(crate) fn live_sessions(claude: &Path, project: &Path, is_alive: IsAlive<'_>) -> Vec<String> {
    let Ok(entries) = fs::read_dir(claude.join(CLAUDE)) else { return Vec::new() };
    let mut found: Vec<String> =
        entries.flatten().filter_map(|it| live_session(&it.path(), project, is_alive)).collect();
    found.sort_unstable();
    found
}

/// The live process that has a session open, by the registry.
pub(crate) fn open_in(claude: &Path, session: &str, is_alive: IsAlive<'_>) -> Option<u32> {
    let entries = fs::read_dir(claude.join(CLAUDE)).ok()?.flatten();
    entries.filter_map(|it| fs::read(it.path()).ok()).find_map(|bytes| {
        let entry: Value = serde_json::from_slice(&bytes).ok()?;
        let pid = entry.get("pid")?.as_u64()?;
        let start_time = number(entry.get("procStart")?)?;
        let is_it = entry.get("sessionId")?.as_str()? == session;
        (is_it && is_alive(i32::try_from(pid).ok()?, start_time))
            .then_some(u32::try_from(pid).ok()?)
    })
}

fn live_session(file: &Path, project: &Path, is_alive: IsAlive<'_>) -> Option<String> {
    let entry: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let pid = i32::try_from(entry.get("pid")?.as_i64()?).ok()?;
    let cwd = PathBuf::from(entry.get("cwd")?.as_str()?);
    let start_time = number(entry.get("procStart")?)?;
    let here = cwd.starts_with(project);
    (here && is_alive(pid, start_time))
        .then(|| format!("a Claude Code session (process {pid}) in {}", cwd.display()))
}

/// A number, or a number as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_while_its_own_process_lives_in_this_tree() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(CLAUDE);
        fs::create_dir_all(&dir).unwrap();
        let is_alive = |pid: i32, start: u64| (pid, start) == (7, 70);
        let entry = |cwd: &str, start: u64| {
            let start = start.to_string();
            serde_json::json!({"pid": 7, "procStart": start, "cwd": cwd})
        };
        let write = |name: &str, text: String| fs::write(dir.join(name), text).unwrap();
        write("1.json", entry("/p/sub", 70).to_string());
        write("2.json", entry("/other", 70).to_string());
        write("3.json", entry("/p", 71).to_string());
        write("4.json", "not json".to_owned());
        write("5.json", "{\"pid\": \"x\"}".to_owned());
        let found = live_sessions(home.path(), Path::new("/p"), &is_alive);
        assert_eq!(found, ["a Claude Code session (process 7) in /p/sub"]);
        let mut open = entry("/p", 70);
        open["sessionId"] = "s-1".into();
        write("6.json", open.to_string());
        assert_eq!(open_in(home.path(), "s-1", &is_alive), Some(7));
        assert_eq!(open_in(home.path(), "s-2", &is_alive), None);
        open["procStart"] = "71".into();
        write("6.json", open.to_string());
        assert_eq!(open_in(home.path(), "s-1", &is_alive), None, "its process is gone");
        fs::remove_file(dir.join("6.json")).unwrap();
        let nowhere = live_sessions(Path::new("/nowhere"), Path::new("/p"), &is_alive);
        assert_eq!(nowhere, Vec::<String>::new());
    }
}
