//! Looking at project files: which match, and what they hold.
//!
//! Invariant: a hash is believed without reading only while size, time and inode are as they were,
//! and only if a later change would have left another time behind. On a file system that was seen
//! to give every change after a look a time of its own, that is always so. On any other the file
//! must have rested for a clock tick when it was hashed: a change within the tick of the look would
//! leave the same time behind; such a proof is marked with inode 0, which no file has, so it is
//! read again.

use crate::world::open;
use std::{
    collections::BTreeMap,
    fs::{self, Metadata},
    io::{self, ErrorKind},
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::{FileExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
};

use globset::GlobMatcher;
use onward_core::{
    digest::Digest,
    event::FileKind,
    evidence::{FileProof, Stat},
    name,
    state::FileKept,
    workflow::pattern::{is_glob, matcher},
};
use rustix::{
    io::Errno,
    time::{ClockId, clock_gettime},
};

use super::{disk::io_stop, stats};
use crate::world::{Looked, Stop, files::Leads};

/// Directories that belong to tools, not to the work.
const SKIPPED: [&str; 2] = [".git", ".onward"];
/// A path that so many files stand in the way of is not put back in any case.
const IN_THE_WAY_MAX: usize = 10_000;
/// More are forgotten: a look costs little, memory counts.
const REMEMBERED_MAX: usize = 4096;
/// So many changes within microseconds all have times of their own, or none is believed to.
const TRIES: u8 = 12;

#[derive(Debug)]
pub(super) struct Looker {
    project_dir: PathBuf,
    /// What was hashed in this life, by path.
    seen: BTreeMap<String, (Stat, Digest)>,
    /// The device whose file system gives every change after a look a time of its own.
    keen: Option<u64>,
}

impl Looker {
    pub(super) fn new(project_dir: PathBuf) -> Self {
        Self { project_dir, seen: BTreeMap::new(), keen: None }
    }

    /// Tries out on a file without a name in `dir` whether the file system there shows every change
    /// after a look. One that only counts ticks of the clock would have to tick between each two of
    /// these changes.
    pub(super) fn try_out(&mut self, dir: &Path) {
        let tried = open::unnamed(dir).and_then(|file| {
            let mut last = None;
            for round in 0..TRIES {
                file.write_all_at(&[round], 0)?;
                let now = stat_of(&file.metadata()?).mtime_ns;
                if last.is_some_and(|last| last >= now) {
                    return Ok(None);
                }
                last = Some(now);
            }
            Ok(Some(file.metadata()?.dev()))
        });
        self.keen = tried.ok().flatten();
    }

    pub(super) fn unchanged(&self, files: &[(usize, FileKept<'_>)]) -> Vec<bool> {
        stats::unchanged(&self.project_dir, files)
    }

    fn full(&self, path: &str) -> PathBuf {
        self.project_dir.join(open::raw(path))
    }

    pub(super) fn digest(&mut self, path: &str) -> Result<Option<Digest>, Stop> {
        Ok(self.proof(path, None)?.map(|proof| proof.hash))
    }

    /// A link is what it says, not where it leads.
    pub(super) fn look(&mut self, path: &str) -> Result<Option<Looked>, Stop> {
        let full = self.full(path);
        let found = match fs::symlink_metadata(&full) {
            Ok(found) => found,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(io_stop("look at", &full)(error)),
        };
        let changed_ns = changed_ns(&found);
        if found.is_symlink() {
            let target = fs::read_link(&full).map_err(io_stop("read", &full))?;
            let hash = Digest::of(target.as_os_str().as_bytes());
            return Ok(Some(Looked { hash, kind: FileKind::Link, changed_ns }));
        }
        let kind = kind_of(&found);
        let proof = self.proof(path, None)?;
        Ok(proof.map(|proof| Looked { hash: proof.hash, kind, changed_ns }))
    }

    pub(super) fn content(&self, path: &str) -> Result<Option<(Vec<u8>, FileKind)>, Stop> {
        content_of(&self.full(path))
    }

    pub(super) fn dir_changed_ns(&self, path: &str) -> Option<i64> {
        let full = self.full(path);
        let mut above = full.ancestors().skip(1);
        let found = above.find_map(|dir| fs::metadata(dir).ok().filter(Metadata::is_dir));
        found.map(|found| stat_of(&found).mtime_ns)
    }

    /// All that is in a directory at `path`, whatever it is called, what git ignores included; the
    /// path itself if the system does not let it be replaced; what stands where a directory above
    /// it should be.
    pub(super) fn in_the_way(&self, path: &str) -> Vec<String> {
        if let Some(above) = self.no_dir_above(path) {
            return vec![above];
        }
        let full = self.full(path);
        let Ok(found) = fs::symlink_metadata(&full) else { return Vec::new() };
        if !found.is_dir() {
            return if is_fixed(&full) { vec![path.to_owned()] } else { Vec::new() };
        }
        let mut found = Vec::new();
        let mut dirs = vec![path.to_owned()];
        while let Some(dir) = dirs.pop() {
            // One that cannot be looked into is in the way as a whole.
            let Ok(entries) = fs::read_dir(self.full(&dir)) else {
                found.push(dir);
                continue;
            };
            for entry in entries.flatten() {
                let path = format!("{dir}/{}", name::text(entry.file_name().as_bytes()));
                if found.len() >= IN_THE_WAY_MAX {
                    return found;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => dirs.push(path),
                    Ok(_) | Err(_) => found.push(path),
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// What stands in the place of a directory above a path.
    fn no_dir_above(&self, path: &str) -> Option<String> {
        let names = path.match_indices('/').map(|(at, _)| &path[..at]);
        for above in names.filter(|it| !it.is_empty() && !path.starts_with('/')) {
            let found = fs::symlink_metadata(self.full(above)).ok()?;
            let leads_on = || self.full(above).is_dir() && self.links_inside(above);
            if !(found.is_dir() || found.is_symlink() && leads_on()) {
                return Some(above.to_owned());
            }
        }
        None
    }

    /// Where a link at a path leads.
    pub(super) fn leads(&self, path: &str) -> Leads {
        let full = self.full(path);
        let is_link = fs::symlink_metadata(&full).is_ok_and(|it| it.is_symlink());
        let target = if is_link { fs::canonicalize(&full).ok() } else { None };
        let Some((target, found)) = target.and_then(|it| Some((it.clone(), it.metadata().ok()?)))
        else {
            return Leads::Nowhere;
        };
        if !found.is_file() {
            return Leads::Nowhere;
        }
        let project = fs::canonicalize(&self.project_dir).unwrap_or_default();
        let inside = target.strip_prefix(project).ok();
        let is_work = |it: &&Path| !SKIPPED.iter().any(|dir| it.starts_with(dir));
        match inside.filter(is_work) {
            Some(inside) if found.len() <= open::FILE_BYTES_MAX => {
                Leads::To(name::text(inside.as_os_str().as_bytes()))
            }
            Some(_) | None => Leads::Away,
        }
    }

    /// A pattern without wildcards names one file, or a directory and all files in it. One with
    /// wildcards names the file of that very name too, such as `app/[slug]/page.tsx`.
    pub(super) fn glob(
        &mut self,
        pattern: &str,
        known: &[FileProof],
    ) -> Result<Vec<FileProof>, Stop> {
        if !is_glob(pattern) {
            let known = known.iter().find(|proof| proof.path == pattern);
            if let Some(proof) = self.proof(pattern, known)? {
                return Ok(vec![proof]);
            }
            let dir = pattern.trim_end_matches('/');
            return self.matching(dir, None, &[]);
        }
        let glob = matcher(pattern, true).map_err(|why| {
            io_stop("match", Path::new(pattern))(io::Error::new(ErrorKind::InvalidInput, why))
        })?;
        let mut found = self.matching(fixed_prefix(pattern), Some(&glob), known)?;
        if !glob.is_match(pattern)
            && let Some(named) = self.proof(pattern, known.iter().find(|it| it.path == pattern))?
        {
            found.push(named);
            found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        }
        Ok(found)
    }

    /// Found without reading them.
    pub(super) fn changed_since(&self, pattern: &str, since_ns: i64) -> Result<Vec<String>, Stop> {
        let mut paths = vec![pattern.trim_end_matches('/').to_owned()];
        if is_glob(pattern) {
            let glob = matcher(pattern, true).ok();
            self.walk(fixed_prefix(pattern), &mut paths)?;
            let fits = |path: &String| glob.as_ref().is_some_and(|glob| glob.is_match(path));
            paths.retain(|path| path == pattern || fits(path));
        } else {
            self.walk(pattern.trim_end_matches('/'), &mut paths)?;
        }
        let is_later = |path: &String| {
            let found = fs::symlink_metadata(self.full(path)).ok().filter(|it| !it.is_dir());
            found.is_some_and(|it| changed_ns(&it) > since_ns)
        };
        paths.retain(is_later);
        Ok(paths)
    }

    fn matching(
        &mut self,
        base: &str,
        glob: Option<&GlobMatcher>,
        known: &[FileProof],
    ) -> Result<Vec<FileProof>, Stop> {
        let mut paths = Vec::new();
        self.walk(base, &mut paths)?;
        paths.retain(|path| glob.is_none_or(|glob| glob.is_match(path)));
        paths.sort_unstable();
        let mut proofs = Vec::with_capacity(paths.len());
        for path in paths {
            let known = known.iter().find(|proof| proof.path == path);
            // One that is gone since it was listed is gone.
            proofs.extend(self.proof(&path, known)?);
        }
        Ok(proofs)
    }

    /// All files below `dir`. Links to directories are not entered, so there is no cycle and no way
    /// out of the project.
    fn walk(&self, dir: &str, paths: &mut Vec<String>) -> Result<(), Stop> {
        let mut dirs = vec![dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            let full = self.full(&dir);
            let entries = match fs::read_dir(&full) {
                Ok(entries) => entries,
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(io_stop("list", &full)(error)),
            };
            for entry in entries {
                let entry = entry.map_err(io_stop("list", &full))?;
                let name = name::text(entry.file_name().as_bytes());
                let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
                let kind = entry.file_type().map_err(io_stop("look at", &full))?;
                // In a worktree, `.git` is a file.
                if SKIPPED.contains(&name.as_str()) {
                    continue;
                }
                if kind.is_dir() {
                    dirs.push(path);
                } else if kind.is_file() || (kind.is_symlink() && self.links_inside(&path)) {
                    paths.push(path);
                }
            }
        }
        Ok(())
    }

    fn links_inside(&self, path: &str) -> bool {
        let target = fs::canonicalize(self.full(path));
        let project = fs::canonicalize(&self.project_dir);
        target.is_ok_and(|target| project.is_ok_and(|project| target.starts_with(project)))
    }

    /// `None` when there is no such file, or it is none.
    fn proof(&mut self, path: &str, known: Option<&FileProof>) -> Result<Option<FileProof>, Stop> {
        let full = self.full(path);
        let found = match fs::metadata(&full) {
            Ok(found) => found,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(io_stop("look at", &full)(error)),
        };
        if !found.is_file() {
            return Ok(None);
        }
        let stat = stat_of(&found);
        let remembered = self.seen.get(path).map(|(stat, hash)| (*stat, *hash));
        let known = known.map(|proof| (proof.stat, proof.hash));
        let believed = known.into_iter().chain(remembered).find(|(was, _)| *was == stat);
        if let Some((_, hash)) = believed {
            return Ok(Some(FileProof { path: path.to_owned(), hash, stat }));
        }
        let before = tick_ns();
        let mut is_keen = false;
        let mut hasher = blake3::Hasher::new();
        let read = open::looked(&self.project_dir, path).and_then(|file| {
            // The stat of before the reading: if the file changes meanwhile, it will not fit.
            let found = file.metadata()?;
            is_keen = self.keen == Some(found.dev());
            let stat = stat_of(&found);
            hasher.update_reader(file)?;
            Ok(stat)
        });
        let mut stat = match read {
            Ok(stat) => stat,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                return Ok(outside(path, &full));
            }
            Err(error) => return Err(io_stop("read", &full)(error)),
        };
        let hash = Digest::from_blake3(&hasher.finalize());
        // A time that is still to come was set by hand, and may be set again.
        let is_shown = is_keen && stat.mtime_ns <= now_ns();
        if stat.mtime_ns >= before && !is_shown {
            stat.inode = 0;
        } else {
            self.remember(path, stat, hash);
        }
        Ok(Some(FileProof { path: path.to_owned(), hash, stat }))
    }

    fn remember(&mut self, path: &str, stat: Stat, hash: Digest) {
        if self.seen.len() >= REMEMBERED_MAX {
            self.seen.clear();
        }
        self.seen.insert(path.to_owned(), (stat, hash));
    }
}

/// Whether no other file can take its place: it is immutable, or its directory is not ours to
/// change. That it cannot be written to is no matter, as it is replaced.
fn is_fixed(full: &Path) -> bool {
    let may = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
    let is_link = fs::symlink_metadata(full).is_ok_and(|it| it.is_symlink());
    let is_immutable = !is_link && may(full) == Err(rustix::io::Errno::PERM);
    is_immutable || full.parent().is_some_and(|dir| may(dir).is_err())
}

/// What a link out of the project leads to is known by its place, size and time, and never read.
fn outside(path: &str, full: &Path) -> Option<FileProof> {
    let target = fs::canonicalize(full).ok()?;
    let found = stat_of(&fs::metadata(&target).ok()?);
    let (size, time) = (found.size.to_le_bytes(), found.mtime_ns.to_le_bytes());
    let hash = Digest::of_parts([b"outside", target.as_os_str().as_bytes(), &size, &time]);
    Some(FileProof { path: path.to_owned(), hash, stat: Stat::OUTSIDE })
}

/// A name that no file can have names none, and a link that leads to itself leads nowhere.
fn is_absence(error: &io::Error) -> bool {
    use ErrorKind::{InvalidFilename, NotADirectory, NotFound};
    let leads_nowhere = error.raw_os_error() == Some(Errno::LOOP.raw_os_error());
    leads_nowhere || matches!(error.kind(), NotFound | NotADirectory | InvalidFilename)
}

/// What was moved or copied here may have an old time of its own; that it was is not old.
fn changed_ns(found: &Metadata) -> i64 {
    stat_of(found).mtime_ns.max(nanos(found.ctime(), found.ctime_nsec()))
}

fn stat_of(found: &Metadata) -> Stat {
    let mtime_ns = nanos(found.mtime(), found.mtime_nsec());
    Stat { size: found.len(), mtime_ns, inode: found.ino() }
}

pub(super) fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

fn kind_of(found: &Metadata) -> FileKind {
    if found.is_symlink() {
        FileKind::Link
    } else if found.mode() & 0o100 != 0 {
        FileKind::Executable
    } else {
        FileKind::Plain
    }
}

/// The content of a file or link itself; `None` for anything else, and for nothing.
pub(super) fn content_of(full: &Path) -> Result<Option<(Vec<u8>, FileKind)>, Stop> {
    let read = fs::symlink_metadata(full).and_then(|found| {
        let bytes = if found.is_symlink() {
            fs::read_link(full)?.into_os_string().into_vec()
        } else if found.is_file() {
            open::read_at(full, open::LOG_BYTES_MAX)?
        } else {
            return Ok(None);
        };
        Ok(Some((bytes, kind_of(&found))))
    });
    match read {
        Err(error) if is_absence(&error) => Ok(None),
        other => other.map_err(io_stop("read", full)),
    }
}

/// The time that the kernel would write into a file changed now.
fn tick_ns() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    nanos(now.tv_sec, now.tv_nsec)
}

/// The directory below which everything a pattern matches must stand.
fn fixed_prefix(pattern: &str) -> &str {
    let wild = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    pattern[..wild].rfind('/').map_or("", |slash| &pattern[..slash])
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use std::time::{Duration, SystemTime};

    use super::*;

    fn project(files: &[&str]) -> (tempfile::TempDir, Looker) {
        let dir = tempfile::tempdir().unwrap();
        for path in files {
            let full = dir.path().join(path);
            fs::create_dir_all(full.parent().unwrap()).unwrap();
            fs::write(full, path).unwrap();
        }
        let looker = Looker::new(dir.path().to_owned());
        (dir, looker)
    }

    fn rest(path: &Path) {
        let hour_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
    }

    #[test]
    fn patterns_match_files_in_path_order_and_stars_stay_in_their_directory() {
        let files = ["b.md", "a.md", "docs/c.md", "docs/deep/d.md", ".git/e.md", ".onward/f.md"];
        let (_dir, mut looker) = project(&files);
        let check = |looker: &mut Looker, pattern: &str, expected: &[&str]| {
            let found = looker.glob(pattern, &[]).unwrap();
            let paths: Vec<&str> = found.iter().map(|proof| proof.path.as_str()).collect();
            assert_eq!(paths, expected, "{pattern}");
        };
        check(&mut looker, "*.md", &["a.md", "b.md"]);
        check(&mut looker, "docs/*.md", &["docs/c.md"]);
        check(&mut looker, "**/*.md", &["a.md", "b.md", "docs/c.md", "docs/deep/d.md"]);
        check(&mut looker, "{b,docs/c}.md", &["b.md", "docs/c.md"]);
        check(&mut looker, "docs", &["docs/c.md", "docs/deep/d.md"]);
        check(&mut looker, "docs/", &["docs/c.md", "docs/deep/d.md"]);
        check(&mut looker, "b.md", &["b.md"]);
        check(&mut looker, "nothing/*.md", &[]);
        check(&mut looker, "nothing", &[]);
        assert!(looker.glob("[", &[]).is_err());
    }

    #[test]
    fn links_lead_to_files_of_the_project_only() {
        let (dir, mut looker) = project(&["in.md", "sub/x.md"]);
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("out.md"), "secret").unwrap();
        let link = |to: &Path, name: &str| {
            std::os::unix::fs::symlink(to, dir.path().join(name)).unwrap();
        };
        link(&dir.path().join("in.md"), "inside.md");
        link(&outside.path().join("out.md"), "outside.md");
        link(outside.path(), "away");
        link(dir.path(), "sub/round");
        let found = looker.glob("**/*.md", &[]).unwrap();
        let paths: Vec<&str> = found.iter().map(|proof| proof.path.as_str()).collect();
        assert_eq!(paths, ["in.md", "inside.md", "sub/x.md"]);
    }

    #[test]
    fn a_rested_file_is_believed_by_its_stat_alone() {
        let (dir, mut looker) = project(&["a"]);
        let path = dir.path().join("a");
        rest(&path);
        let mut proof = looker.glob("a", &[]).unwrap().remove(0);
        assert_ne!(proof.stat.inode, 0);
        assert_eq!(proof.hash, Digest::of(b"a"));
        // A hash that no content has shows that the file was not read.
        proof.hash = Digest::of(b"believed");
        let mut fresh = Looker::new(dir.path().to_owned());
        assert_eq!(fresh.glob("a", std::slice::from_ref(&proof)).unwrap(), [proof.clone()]);
        assert_eq!(fresh.glob("?", std::slice::from_ref(&proof)).unwrap(), [proof.clone()]);
        fs::write(&path, "longer").unwrap();
        let now = fresh.glob("a", std::slice::from_ref(&proof)).unwrap().remove(0);
        assert_eq!(now.hash, Digest::of(b"longer"));
    }

    #[test]
    fn a_file_that_changed_in_the_tick_of_the_look_is_read_again() {
        let (dir, mut looker) = project(&["a"]);
        let path = dir.path().join("a");
        let ahead = SystemTime::UNIX_EPOCH + Duration::from_secs(20_000_000_000);
        let touch = || {
            File::options().write(true).open(&path).unwrap().set_modified(ahead).unwrap();
        };
        touch();
        let racy = looker.glob("a", &[]).unwrap().remove(0);
        assert_eq!(racy.stat.inode, 0);
        // Same size, same time, same inode; other content.
        fs::write(&path, "b").unwrap();
        touch();
        let again = looker.glob("a", std::slice::from_ref(&racy)).unwrap().remove(0);
        assert_eq!(again.hash, Digest::of(b"b"));
        assert_eq!(looker.digest("a").unwrap(), Some(Digest::of(b"b")));
        assert_eq!(looker.digest("none").unwrap(), None);
    }

    #[test]
    fn where_every_change_is_shown_a_file_need_not_rest() {
        let (dir, mut looker) = project(&["a"]);
        looker.try_out(dir.path());
        if looker.keen.is_none() {
            // This file system counts ticks: the test before this one is about it.
            return;
        }
        for round in 0..200_u32 {
            fs::write(dir.path().join("a"), round.to_le_bytes()).unwrap();
            let mut proof = looker.glob("a", &[]).unwrap().remove(0);
            assert_ne!(proof.stat.inode, 0);
            fs::write(dir.path().join("a"), (round + 1).to_le_bytes()).unwrap();
            // Same size, same inode; a look that believed the proof would give this hash.
            proof.hash = Digest::of(b"believed");
            let mut fresh = Looker::new(dir.path().to_owned());
            let now = fresh.glob("a", std::slice::from_ref(&proof)).unwrap().remove(0);
            assert_eq!(now.hash, Digest::of(&(round + 1).to_le_bytes()));
        }
        // Another mount was not tried out.
        looker.keen = looker.keen.map(|device| device + 1);
        fs::write(dir.path().join("a"), "x").unwrap();
        assert_eq!(looker.glob("a", &[]).unwrap()[0].stat.inode, 0);
    }

    #[test]
    fn a_look_does_not_follow_links_and_sees_what_can_be_executed() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, mut looker) = project(&["a", "run"]);
        let path = |name: &str| dir.path().join(name);
        fs::set_permissions(path("run"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("a", path("link")).unwrap();
        let kind = |looker: &mut Looker, path: &str| looker.look(path).unwrap().map(|it| it.kind);
        assert_eq!(kind(&mut looker, "a"), Some(FileKind::Plain));
        assert_eq!(kind(&mut looker, "run"), Some(FileKind::Executable));
        assert_eq!(kind(&mut looker, "link"), Some(FileKind::Link));
        assert_eq!(kind(&mut looker, "none"), None);
        assert_eq!(kind(&mut looker, ""), None, "a directory is no file");
        assert_eq!(looker.look("link").unwrap().unwrap().hash, Digest::of(b"a"));
        assert_eq!(looker.content("link").unwrap(), Some((b"a".to_vec(), FileKind::Link)));
        fs::remove_file(path("a")).unwrap();
        assert_eq!(kind(&mut looker, "link"), Some(FileKind::Link), "leading nowhere is no matter");
    }

    #[test]
    fn what_was_moved_here_changed_now_however_old_it_is() {
        let (dir, mut looker) = project(&["old"]);
        rest(&dir.path().join("old"));
        let before = tick_ns();
        fs::rename(dir.path().join("old"), dir.path().join("new")).unwrap();
        assert!(looker.look("new").unwrap().unwrap().changed_ns >= before);
        assert!(looker.dir_changed_ns("old").unwrap() >= before);
        assert_eq!(looker.dir_changed_ns("gone/deep"), looker.dir_changed_ns("old"));
    }

    #[test]
    fn a_large_file_has_the_hash_of_its_bytes() {
        let (dir, mut looker) = project(&[]);
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|it| it.to_le_bytes()[0]).collect();
        fs::write(dir.path().join("large"), &bytes).unwrap();
        assert_eq!(looker.digest("large").unwrap(), Some(Digest::of(&bytes)));
    }
}
