//! Live sessions of other tools in the same tree, found in the registries they keep.
//!
//! Invariant: read only, and with doubt: these files are other people's, undocumented, and stay
//! behind when a program is killed. An entry counts only while its very process lives.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::world::supervisor::Identity;

/// Where Claude Code keeps one file per live session, below the home directory.
const CLAUDE: &str = ".claude/sessions";

/// A word for each live session whose working directory lies in `project`.
pub(crate) fn live_sessions(home: &Path, project: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(home.join(CLAUDE)) else { return Vec::new() };
    let mut found: Vec<String> =
        entries.flatten().filter_map(|entry| live_session(&entry.path(), project)).collect();
    found.sort_unstable();
    found
}

fn live_session(file: &Path, project: &Path) -> Option<String> {
    let entry: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let pid = i32::try_from(entry.get("pid")?.as_i64()?).ok()?;
    let cwd = PathBuf::from(entry.get("cwd")?.as_str()?);
    let start_time = number(entry.get("procStart")?)?;
    let here = cwd.starts_with(project);
    let alive = Identity { pid, start_time }.is_alive();
    (here && alive).then(|| format!("a Claude Code session (process {pid}) in {}", cwd.display()))
}

/// A number, or a number as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_while_its_very_process_lives_in_this_tree() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join(CLAUDE);
        fs::create_dir_all(&dir).unwrap();
        let us = Identity::of_this_process().unwrap();
        let entry = |cwd: &str, start: u64| {
            let (pid, start) = (us.pid, start.to_string());
            serde_json::json!({"pid": pid, "procStart": start, "cwd": cwd})
        };
        let write = |name: &str, text: String| fs::write(dir.join(name), text).unwrap();
        write("1.json", entry("/p/sub", us.start_time).to_string());
        write("2.json", entry("/other", us.start_time).to_string());
        write("3.json", entry("/p", us.start_time + 1).to_string());
        write("4.json", "not json".to_owned());
        write("5.json", "{\"pid\": \"x\"}".to_owned());
        let found = live_sessions(home.path(), Path::new("/p"));
        let pid = us.pid;
        assert_eq!(found, [format!("a Claude Code session (process {pid}) in /p/sub")]);
        assert_eq!(live_sessions(Path::new("/nowhere"), Path::new("/p")), Vec::<String>::new());
    }
}
