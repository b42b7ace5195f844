//! The files of another system's run, as they are now.
//!
//! Invariant: reads only, each file once. Links that lead out of the site are not followed, and
//! what is too large is refused by name.

use std::{collections::BTreeSet, fs, io::ErrorKind, path::Path};

use globset::Glob;
use onward_dialects::{
    File, Files,
    seam::{Card, Site},
};

use super::{clock::file_time, disk::io_stop};
use crate::world::{
    Stop,
    git::{Env, facts},
    is_glob,
};

/// A file of another system may be this large.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// All files of a run together may have so many bytes.
const SITE_BYTES_MAX: u64 = 512 << 20;
/// So many entries of a root are looked at.
const ENTRIES_MAX: usize = 200_000;
/// Globs lead no deeper than this below a root.
const DEPTH_MAX: usize = 8;

pub(super) fn read(
    project: &Path,
    site: &Site,
    card: &'static Card,
    env: &Env,
) -> Result<Files, Stop> {
    let mut files = Files::default();
    let mut room = SITE_BYTES_MAX;
    for (number, root) in site.roots.iter().enumerate() {
        let dir = project.join(&root.dir);
        let mut found = BTreeSet::new();
        for pattern in &root.reads {
            expand(&dir, pattern, &mut found)?;
        }
        for path in found {
            if let Some(file) = content(&dir.join(&path), &mut room)? {
                files.insert_in(number, path, file);
            }
        }
    }
    // A site outside of the project, such as a task list, speaks of the project's own repository.
    let own = project.join(site.dir());
    let around = if own.starts_with(project) { own.as_path() } else { project };
    files.git = facts(around, env, card.branches, &site.commits);
    for (name, word) in card.processes {
        let pid = files.bytes(name).and_then(pid);
        files.alive.extend(pid.filter(|pid| is_alive(*pid, word)));
    }
    Ok(files)
}

/// The paths below a directory that a pattern names, whether or not they are there.
///
/// A `*` stands for a part of one name, a `**` for any number of directories.
pub(crate) fn expand(dir: &Path, pattern: &str, found: &mut BTreeSet<String>) -> Result<(), Stop> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let mut walk = Walk { root: dir, entries: 0, found };
    walk.down("", &parts, DEPTH_MAX)
}

struct Walk<'a> {
    root: &'a Path,
    entries: usize,
    found: &'a mut BTreeSet<String>,
}

impl Walk<'_> {
    fn down(&mut self, below: &str, parts: &[&str], depth: usize) -> Result<(), Stop> {
        let Some((first, rest)) = parts.split_first() else {
            self.found.insert(below.to_owned());
            return Ok(());
        };
        let inner = |name: &str| {
            if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") }
        };
        if depth == 0 {
            return Ok(());
        }
        if *first == "**" {
            self.down(below, rest, depth)?;
            for (name, is_dir) in self.names(below)? {
                if is_dir {
                    self.down(&inner(&name), parts, depth - 1)?;
                }
            }
            return Ok(());
        }
        if !is_glob(first) {
            return self.down(&inner(first), rest, depth - 1);
        }
        let Ok(glob) = Glob::new(first) else { return Ok(()) };
        let glob = glob.compile_matcher();
        for (name, is_dir) in self.names(below)? {
            if glob.is_match(&name) && is_dir != rest.is_empty() {
                self.down(&inner(&name), rest, depth - 1)?;
            }
        }
        Ok(())
    }

    /// What is in a directory, and whether it is one itself; links are not, and stay names.
    fn names(&mut self, below: &str) -> Result<Vec<(String, bool)>, Stop> {
        let path = self.root.join(below);
        let listed = match fs::read_dir(&path) {
            Ok(listed) => listed,
            Err(error) if is_absence(&error) => return Ok(Vec::new()),
            Err(error) => return Err(io_stop("list", &path)(error)),
        };
        let mut names = Vec::new();
        for entry in listed {
            let entry = entry.map_err(io_stop("list", &path))?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                break;
            }
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            names.extend(entry.file_name().to_str().map(|name| (name.to_owned(), is_dir)));
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// `None` for what is no file, or is gone since it was listed.
fn content(path: &Path, room: &mut u64) -> Result<Option<File>, Stop> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(io_stop("read", path)(error)),
    };
    if !meta.is_file() {
        return Ok(None);
    }
    if meta.len() > FILE_BYTES_MAX.min(*room) {
        let what = format!("`{}` is too large to be read", path.display());
        let (file, site) = (FILE_BYTES_MAX >> 20, SITE_BYTES_MAX >> 20);
        let hint = format!("at most {file} MiB of a file and {site} MiB of a run are read");
        return Err(Stop::Unready { what, hint });
    }
    let bytes = fs::read(path).map_err(io_stop("read", path))?;
    *room = room.saturating_sub(bytes.len() as u64);
    Ok(Some(File { bytes, modified: meta.modified().ok().map(file_time) }))
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The first number in a file that names a process.
fn pid(bytes: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(bytes);
    text.split_whitespace().next()?.parse().ok()
}

/// A number alone proves nothing: another process may have it by now.
fn is_alive(pid: u32, word: &str) -> bool {
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command_line).contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_and_names_are_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a.md", "m/tasks/t1/output.json", "m/tasks/t1/other", "deep/x/a.md"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let found = |pattern: &str| {
            let mut found = BTreeSet::new();
            expand(dir.path(), pattern, &mut found).unwrap();
            found.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(found("*.md"), ["a.md"]);
        assert_eq!(found("**/*.md"), ["a.md", "deep/x/a.md"]);
        assert_eq!(found("m/tasks/*/output.json"), ["m/tasks/t1/output.json"]);
        assert_eq!(found("gone.json"), ["gone.json"], "reading finds out that it is not there");
        assert_eq!(found("a.md/*"), Vec::<String>::new());
    }

    #[test]
    fn a_process_is_known_by_its_command_line_too() {
        assert!(!is_alive(std::process::id(), "no such word in any command line"));
        assert!(is_alive(std::process::id(), "onward") || !Path::new("/proc/self").exists());
    }
}
