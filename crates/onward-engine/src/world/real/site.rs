//! The files of another system's run, as they are now.
//!
//! Invariant: reads only, each file once. What cannot be read (a link in the place of a file or out
//! of the site, a file that is too large or forbidden) is told by name, and empty: the rest counts.

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use globset::Glob;
use onward_core::workflow::pattern::is_glob;
use onward_dialects::{
    File, Files, Unread, Unreadable, dialect,
    kit::path::literal,
    seam::{Card, Root, Site},
};

use super::{
    clock::file_time,
    disk::{hold_dir, hold_file, io_stop},
    held::Meanwhile,
};
use crate::world::{
    Stop,
    files::is_temporary,
    git::{Env, as_of, facts, heads, since},
};

/// A file of another system may be this large: room for a log of two million events.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// All files of a run together may have so many bytes.
const SITE_BYTES_MAX: u64 = 512 << 20;
/// So many entries of a root are looked at.
const ENTRIES_MAX: usize = 200_000;
/// Globs lead no deeper than this below a root.
const DEPTH_MAX: usize = 64;

pub(super) fn read(
    project: &Path,
    site: &Site,
    card: &'static Card,
    env: &Env,
) -> Result<Files, Stop> {
    let mut files = all_contents(project, site, card)?;
    let known = dialect(card.name);
    let (own, around) = (project.join(site.dir()), around(project, site));
    let around = around.as_path();
    files.git = facts(around, env, card.branches, &site.commits);
    let wanted = known.map(|it| it.moments(site, &files)).unwrap_or_default();
    let watched = known.and_then(|it| it.watch(site, &files));
    if let Some(git) = &mut files.git {
        let then = |(path, at): (String, _)| Some((path.clone(), as_of(around, env, &path, at)?));
        git.then = wanted.into_iter().filter_map(then).collect();
        if let Some(watch) = watched {
            git.since = since(around, env, &watch);
        }
    }
    for (name, word) in card.processes {
        let mut found = Found::default();
        expand(&own, name, &mut found)?;
        let pids = found.names.iter().filter_map(|name| files.bytes(name)).filter_map(pid);
        let alive: Vec<u32> = pids.filter(|pid| is_alive(*pid, word)).collect();
        files.alive.extend(alive);
    }
    Ok(files)
}

/// The files, and of git only where the head and the branches stand.
pub(super) fn read_files(
    project: &Path,
    site: &Site,
    card: &'static Card,
    env: &Env,
) -> Result<Files, Stop> {
    let mut files = all_contents(project, site, card)?;
    files.git = heads(&around(project, site), env, card.branches);
    Ok(files)
}

/// A site outside of the project, such as a task list, speaks of the project's own repository.
fn around(project: &Path, site: &Site) -> PathBuf {
    let own = project.join(site.dir());
    if own.starts_with(project) { own } else { project.to_owned() }
}

/// The files of a site, and those that they name.
fn all_contents(project: &Path, site: &Site, card: &'static Card) -> Result<Files, Stop> {
    let mut files = contents(project, site)?;
    let more = dialect(card.name).map(|it| it.more(site, &files)).unwrap_or_default();
    let more = more.iter().filter(|it| !files.contains(it)).map(|it| literal(it));
    let more: Vec<String> = more.collect();
    if let Some(root) = site.roots.first().filter(|_| !more.is_empty()) {
        let (named, mut left) = (Root { dir: root.dir.clone(), reads: more }, SITE_BYTES_MAX);
        take(project, 0, &named, &mut left, &mut files)?;
    }
    Ok(files)
}

/// Keeps programs out that respect the site's lock, until what this gives is dropped.
pub(super) fn hold(
    project: &Path,
    site: &Site,
    card: &'static Card,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<fs::File, Stop> {
    let dir = project.join(site.dir());
    match card.lock {
        Some(name) => hold_file(&dir, name, meanwhile),
        None => hold_dir(&dir),
    }
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
        take(project, number, root, &mut room, &mut files)?;
    }
    Ok(files)
}

/// What a root names, as far as there is room.
fn take(
    project: &Path,
    number: usize,
    root: &Root,
    left: &mut u64,
    files: &mut Files,
) -> Result<(), Stop> {
    let dir = project.join(&root.dir);
    if dir.starts_with(project) && leads_out(project, &dir) {
        let path = root.dir.clone();
        let outside = Unread { path, why: Unreadable::Outside };
        if !files.unread.contains(&outside) {
            files.unread.push(outside);
        }
    }
    let mut found = Found::default();
    for pattern in &root.reads {
        expand(&dir, pattern, &mut found)?;
    }
    let Found { names, mut unread, .. } = found;
    for name in names {
        match content(&dir, &name, left)? {
            None => {}
            Some(Content::Whole(file)) => files.insert_in(number, name, file),
            Some(Content::Hidden) => {
                let around = name.rsplit_once('/').map_or("", |(around, _)| around);
                unread.insert(around.to_owned(), Unreadable::Forbidden);
            }
            Some(Content::Unread(why, file)) => {
                unread.insert(name.clone(), why);
                files.insert_in(number, name, file);
            }
        }
    }
    files.unread.extend(outermost(unread).map(|(name, why)| {
        let full = dir.join(name);
        let place = full.strip_prefix(project).unwrap_or(&full);
        Unread { path: place.display().to_string(), why }
    }));
    Ok(())
}

/// Without what lies in a directory that may not be read itself.
fn outermost(unread: BTreeMap<String, Unreadable>) -> impl Iterator<Item = (String, Unreadable)> {
    let all = unread.clone();
    let is_inside = move |name: &str| {
        let around = name.match_indices('/').map(|(end, _)| &name[..end]);
        around.into_iter().any(|dir| all.get(dir) == Some(&Unreadable::Forbidden))
    };
    unread.into_iter().filter(move |(name, _)| !is_inside(name))
}

/// What patterns lead to below a directory.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Whether or not they are there.
    pub(crate) names: BTreeSet<String>,
    /// Directories that no pattern was followed into.
    unread: BTreeMap<String, Unreadable>,
    /// A `*` may stand for a link to a directory. Never a `**`: that could lead in a circle.
    follows: bool,
}

impl Found {
    /// For finding out which runs there are: a run's own directory may be a link.
    pub(crate) fn following() -> Self {
        Self { follows: true, ..Self::default() }
    }
}

/// The paths below a directory that a pattern names, whether or not they are there.
///
/// A `*` stands for a part of one name, a `**` for any number of directories.
pub(crate) fn expand(dir: &Path, pattern: &str, found: &mut Found) -> Result<(), Stop> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let mut walk = Walk { root: dir, entries: 0, found };
    walk.down("", &parts, DEPTH_MAX)
}

struct Walk<'a> {
    root: &'a Path,
    entries: usize,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn down(&mut self, below: &str, parts: &[&str], depth: usize) -> Result<(), Stop> {
        let Some((first, rest)) = parts.split_first() else {
            self.found.names.insert(below.to_owned());
            return Ok(());
        };
        let inner = |name: &str| {
            if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") }
        };
        if depth == 0 {
            self.found.unread.insert(below.to_owned(), Unreadable::TooDeep);
            return Ok(());
        }
        if *first == "**" {
            self.down(below, rest, depth)?;
            for (name, kind) in self.names(below)? {
                match kind {
                    Kind::Dir => self.down(&inner(&name), parts, depth - 1)?,
                    Kind::LinkedDir => self.pass_over(inner(&name)),
                    Kind::Other => {}
                }
            }
            return Ok(());
        }
        if !is_glob(first) {
            return self.down(&inner(first), rest, depth - 1);
        }
        let Ok(glob) = Glob::new(first) else { return Ok(()) };
        let glob = glob.compile_matcher();
        for (name, kind) in self.names(below)? {
            if !glob.is_match(&name) {
                continue;
            }
            match kind {
                Kind::LinkedDir if !rest.is_empty() && !self.found.follows => {
                    self.pass_over(inner(&name));
                }
                Kind::Dir if rest.is_empty() && looks_like_file(&name) => {
                    self.found.unread.insert(inner(&name), Unreadable::NoFile);
                }
                Kind::Dir if rest.is_empty() => {}
                Kind::Other if !rest.is_empty() => {}
                Kind::Dir | Kind::LinkedDir | Kind::Other => {
                    self.down(&inner(&name), rest, depth - 1)?;
                }
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, name: String) {
        self.found.unread.insert(name, Unreadable::Link);
    }

    /// What is in a directory, and of which kind each is.
    fn names(&mut self, below: &str) -> Result<Vec<(String, Kind)>, Stop> {
        let path = self.root.join(below);
        let listed = match fs::read_dir(&path) {
            Ok(listed) => listed,
            Err(error) if is_absence(&error) => {
                if !below.is_empty() && fs::symlink_metadata(&path).is_ok_and(|it| it.is_file()) {
                    self.found.unread.insert(below.to_owned(), Unreadable::NoDirectory);
                }
                return Ok(Vec::new());
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                self.found.unread.insert(below.to_owned(), Unreadable::Forbidden);
                return Ok(Vec::new());
            }
            Err(error) => return Err(io_stop("list", &path)(error)),
        };
        let mut names = Vec::new();
        for entry in listed {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) if is_absence(&error) => break,
                Err(error) => return Err(io_stop("list", &path)(error)),
            };
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                self.found.unread.insert(below.to_owned(), Unreadable::TooMany);
                break;
            }
            let (name, is_whole) = (entry.file_name(), |name: &&str| !is_temporary(name));
            let kind = Kind::of(&entry);
            names.extend(name.to_str().filter(is_whole).map(|name| (name.to_owned(), kind)));
        }
        names.sort_unstable_by(|one, two| one.0.cmp(&two.0));
        Ok(names)
    }
}

/// What stands under a name in a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dir,
    LinkedDir,
    Other,
}

impl Kind {
    fn of(entry: &fs::DirEntry) -> Self {
        let Ok(kind) = entry.file_type() else { return Self::Other };
        if kind.is_dir() {
            return Self::Dir;
        }
        let leads_to_dir = || fs::metadata(entry.path()).is_ok_and(|it| it.is_dir());
        if kind.is_symlink() && leads_to_dir() { Self::LinkedDir } else { Self::Other }
    }
}

/// Whether a name is a link, or lies behind one that leads out of the directory.
fn is_link(dir: &Path, name: &str) -> bool {
    let full = dir.join(name);
    fs::symlink_metadata(&full).is_ok_and(|it| it.is_symlink()) || leads_out(dir, &full)
}

/// Whether what is there lies, behind some link, outside of the directory.
fn leads_out(dir: &Path, full: &Path) -> bool {
    let (root, found) = (fs::canonicalize(dir), fs::canonicalize(full));
    found.is_ok_and(|found| root.is_ok_and(|root| !found.starts_with(root)))
}

/// Why a file below a directory is not read, whatever room there is; a call replaces no such file.
pub(crate) fn unreadable(dir: &Path, name: &str) -> Option<Unreadable> {
    if is_link(dir, name) {
        return Some(Unreadable::Link);
    }
    let meta = fs::metadata(dir.join(name));
    if meta.as_ref().is_ok_and(|it| !it.is_file()) {
        return Some(Unreadable::NoFile);
    }
    (meta.map_or(0, |it| it.len()) > FILE_BYTES_MAX).then_some(Unreadable::TooLarge)
}

/// A name with an ending: a directory that has one stands where a file belongs.
fn looks_like_file(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.trim_start_matches('.').contains('.')
}

/// What was read of a file.
enum Content {
    Whole(File),
    /// Nothing; the file is empty.
    Unread(Unreadable, File),
    /// Not even whether it is there: the directory around it is forbidden.
    Hidden,
}

/// `None` for a plain directory, and for what is gone since it was listed.
fn content(dir: &Path, name: &str, room: &mut u64) -> Result<Option<Content>, Stop> {
    let path = dir.join(name);
    let unread = |why: Unreadable, modified| {
        Ok(Some(Content::Unread(why, File { bytes: Vec::new(), modified })))
    };
    if is_link(dir, name) {
        return unread(Unreadable::Link, None);
    }
    let is_forbidden = |error: &std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    let meta = match fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) if is_forbidden(&error) => return Ok(Some(Content::Hidden)),
        Err(error) => return Err(io_stop("read", &path)(error)),
    };
    let modified = meta.modified().ok().map(file_time);
    if meta.is_dir() && !looks_like_file(name) {
        return Ok(None);
    }
    if !meta.is_file() {
        return unread(Unreadable::NoFile, modified);
    }
    if meta.len() > FILE_BYTES_MAX.min(*room) {
        return unread(Unreadable::TooLarge, modified);
    }
    let bytes = match open::read_named(&path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        // A call may have moved it aside since it was looked at.
        Err(error) if is_absence(&error) => return Ok(None),
        Err(error) if is_forbidden(&error) => return unread(Unreadable::Forbidden, modified),
        Err(error) => return Err(io_stop("read", &path)(error)),
    };
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
            let mut found = Found::default();
            expand(dir.path(), pattern, &mut found).unwrap();
            found.names.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(found("*.md"), ["a.md"]);
        assert_eq!(found("**/*.md"), ["a.md", "deep/x/a.md"]);
        assert_eq!(found("m/tasks/*/output.json"), ["m/tasks/t1/output.json"]);
        assert_eq!(found("gone.json"), ["gone.json"], "reading finds out that it is not there");
        assert_eq!(found("a.md/*"), Vec::<String>::new());
    }

    /// A call moves a file aside while the engine reads the others.
    #[test]
    fn a_file_that_is_moved_while_it_is_read_is_there_or_not_and_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("output.json"), dir.path().join("output.1.json"));
        fs::write(&one, "{}").unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let order = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(order) {
                    fs::rename(&one, &two).unwrap();
                    fs::rename(&two, &one).unwrap();
                }
            });
            let read = |_| content(dir.path(), "output.json", &mut u64::from(u32::MAX).clone());
            let failed = (0..20_000).map(read).find_map(Result::err);
            is_over.store(true, order);
            assert!(failed.is_none(), "{failed:?}");
        });
    }

    #[test]
    fn what_lies_deep_is_found_and_a_file_in_the_place_of_a_directory_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let deep = "events/".to_owned() + &"a/".repeat(20);
        fs::create_dir_all(dir.path().join(&deep)).unwrap();
        fs::write(dir.path().join(&deep).join("x.jsonl"), "{}").unwrap();
        fs::write(dir.path().join("tasks"), "").unwrap();
        let deeper = "events/".to_owned() + &"b/".repeat(DEPTH_MAX);
        fs::create_dir_all(dir.path().join(&deeper)).unwrap();
        let mut found = Found::default();
        expand(dir.path(), "events/**/*.jsonl", &mut found).unwrap();
        expand(dir.path(), "tasks/*.md", &mut found).unwrap();
        assert_eq!(found.names.into_iter().collect::<Vec<_>>(), [format!("{deep}x.jsonl")]);
        let unread: Vec<Unreadable> = found.unread.values().copied().collect();
        assert_eq!(unread, [Unreadable::TooDeep, Unreadable::NoDirectory]);
    }

    #[test]
    fn what_a_kill_left_of_a_write_of_ours_is_no_file_of_the_run() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run-state.yaml", "run-state.yaml.onward-new"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let mut found = Found::default();
        expand(dir.path(), "*", &mut found).unwrap();
        assert_eq!(found.names.into_iter().collect::<Vec<_>>(), ["run-state.yaml"]);
    }

    #[test]
    fn of_a_forbidden_directory_nothing_more_is_told() {
        use Unreadable::{Forbidden, Link};
        let names = ["memory/reports", "memory/reports/designs", "memory/reports2", "a/b"];
        let all = names.map(|name| (name.to_owned(), Forbidden));
        let all = all.into_iter().chain([("a".to_owned(), Link)]).collect();
        let told: Vec<String> = outermost(all).map(|(name, _)| name).collect();
        assert_eq!(told, ["a", "a/b", "memory/reports", "memory/reports2"]);
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
