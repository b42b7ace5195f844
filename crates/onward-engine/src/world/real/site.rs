//! The files of another system's run, as they are now.
//!
//! Invariant: reads only, each file once. A link in the place of a file, or out of the site, is
//! refused by name, as a resume would refuse to write there. What is too large is told, and empty.

use crate::world::open;
use std::{collections::BTreeSet, fs, io::ErrorKind, path::Path};

use globset::Glob;
use onward_dialects::{
    File, Files, dialect,
    seam::{Card, Site},
};

use super::{clock::file_time, disk::io_stop};
use crate::world::{
    Stop,
    files::is_temporary,
    git::{Env, as_of, facts},
    is_glob,
};

/// A file of another system may be this large: room for a log of two million events.
const FILE_BYTES_MAX: u64 = 256 << 20;
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
    let mut files = contents(project, site)?;
    // A site outside of the project, such as a task list, speaks of the project's own repository.
    let own = project.join(site.dir());
    let around = if own.starts_with(project) { own.as_path() } else { project };
    files.git = facts(around, env, card.branches, &site.commits);
    let wanted = dialect(card.name).map(|it| it.moments(site, &files)).unwrap_or_default();
    if let Some(git) = &mut files.git {
        let then = |(path, at): (String, _)| Some((path.clone(), as_of(around, env, &path, at)?));
        git.then = wanted.into_iter().filter_map(then).collect();
    }
    for (name, word) in card.processes {
        let mut found = BTreeSet::new();
        expand(&own, name, &mut found)?;
        let pids = found.iter().filter_map(|name| files.bytes(name)).filter_map(pid);
        let alive: Vec<u32> = pids.filter(|pid| is_alive(*pid, word)).collect();
        files.alive.extend(alive);
    }
    Ok(files)
}

/// How much is read, in words.
pub(crate) fn room() -> String {
    let (file, site) = (FILE_BYTES_MAX >> 20, SITE_BYTES_MAX >> 20);
    format!("at most {file} MiB of a file and {site} MiB of a run are read")
}

/// The files of a site alone.
pub(crate) fn contents(project: &Path, site: &Site) -> Result<Files, Stop> {
    let mut files = Files::default();
    let mut room = SITE_BYTES_MAX;
    for (number, root) in site.roots.iter().enumerate() {
        let dir = project.join(&root.dir);
        let mut found = BTreeSet::new();
        for pattern in &root.reads {
            expand(&dir, pattern, &mut found)?;
        }
        for path in found {
            refuse_link(&dir, &path)?;
            let full = dir.join(&path);
            match content(&full, &mut room)? {
                None => {}
                Some(Content::Whole(file)) => files.insert_in(number, path, file),
                Some(Content::TooLarge(file)) => {
                    let place = full.strip_prefix(project).unwrap_or(&full);
                    files.unread.push(place.display().to_string());
                    files.insert_in(number, path, file);
                }
            }
        }
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
            let (name, is_whole) = (entry.file_name(), |name: &&str| !is_temporary(name));
            names.extend(name.to_str().filter(is_whole).map(|name| (name.to_owned(), is_dir)));
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn refuse_link(dir: &Path, path: &str) -> Result<(), Stop> {
    let full = dir.join(path);
    let is_link = fs::symlink_metadata(&full).is_ok_and(|it| it.is_symlink());
    let leads_out = || {
        let (root, found) = (fs::canonicalize(dir), fs::canonicalize(&full));
        found.is_ok_and(|found| root.is_ok_and(|root| !found.starts_with(root)))
    };
    if !is_link && !leads_out() {
        return Ok(());
    }
    let what = format!("`{}` is a link, or lies behind one", full.display());
    let hint = "put the file itself there: onward follows no link in another system's files";
    Err(Stop::Unready { what, hint: hint.to_owned() })
}

/// What was read of a file.
enum Content {
    Whole(File),
    /// Nothing, because it is larger than what is read.
    TooLarge(File),
}

/// `None` for what is no file, or is gone since it was listed.
fn content(path: &Path, room: &mut u64) -> Result<Option<Content>, Stop> {
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) => return Err(io_stop("read", path)(error)),
    };
    if !meta.is_file() {
        return Ok(None);
    }
    let modified = meta.modified().ok().map(file_time);
    if meta.len() > FILE_BYTES_MAX.min(*room) {
        return Ok(Some(Content::TooLarge(File { bytes: Vec::new(), modified })));
    }
    let bytes = open::read_named(path, FILE_BYTES_MAX).map_err(io_stop("read", path))?;
    *room = room.saturating_sub(bytes.len() as u64);
    Ok(Some(Content::Whole(File { bytes, modified })))
}

fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The number of a process: the first word of the file, or the one behind `pid:`.
fn pid(bytes: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(bytes);
    let first = || text.split_whitespace().next()?.parse().ok();
    let named = || {
        let (_, rest) = text.split_once("pid")?;
        let rest = rest.trim_start_matches(|c: char| "\"':".contains(c) || c.is_whitespace());
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    first().or_else(named)
}

/// A number alone proves nothing: another process may have it by now. Without a word to look for,
/// the file itself must say until when it counts.
fn is_alive(pid: u32, word: &str) -> bool {
    let command_line =
        open::read_named(Path::new(&format!("/proc/{pid}/cmdline")), 1 << 20).unwrap_or_default();
    !command_line.is_empty() && String::from_utf8_lossy(&command_line).contains(word)
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
    fn what_a_kill_left_of_a_write_of_ours_is_no_file_of_the_run() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run-state.yaml", "run-state.yaml.onward-new"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let mut found = BTreeSet::new();
        expand(dir.path(), "*", &mut found).unwrap();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["run-state.yaml"]);
    }

    #[test]
    fn the_number_of_a_process_is_the_first_word_or_named() {
        assert_eq!(pid(b"42 loop\n"), Some(42));
        assert_eq!(pid(b"owner: qa\npid: 7\nttl_seconds: 300\n"), Some(7));
        assert_eq!(pid(b"{\"pid\": 9, \"owner\": \"x\"}"), Some(9));
        assert_eq!((pid(b""), pid(b"owner: qa"), pid(b"pid: x")), (None, None, None));
    }

    #[test]
    fn a_process_is_known_by_its_command_line_too() {
        assert!(!is_alive(std::process::id(), "no such word in any command line"));
        assert!(is_alive(std::process::id(), "onward") || !Path::new("/proc/self").exists());
    }
}
