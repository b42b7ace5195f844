//! Many files looked at without reading them: are they as they were?
//!
//! Invariant: yes is said only of what a single look would have believed. Whatever is in doubt
//! (gone, unreadable, no plain file) is left to that single look.

use std::{
    num::NonZero,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    thread,
};

use onward_core::{evidence::Stat, state::FileKept};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::look::nanos;
use crate::world::open;

/// Fewer files than this are not worth another thread.
const FILES_PER_THREAD: usize = 2048;
/// More threads than this wait for the same disk.
const THREADS_MAX: usize = 4;

/// So many directories are open at a time.
const DIRECTORIES_MAX: usize = 16;

/// For each file, in their order, whether its stat is still the known one.
pub(super) fn unchanged(project_dir: &Path, files: &[(usize, FileKept<'_>)]) -> Vec<bool> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = files.len().div_ceil(FILES_PER_THREAD).clamp(1, cores.min(THREADS_MAX));
    if threads == 1 {
        return part(project_dir, files);
    }
    let each = files.len().div_ceil(threads);
    thread::scope(|scope| {
        let parts = files.chunks(each).map(|files| scope.spawn(|| part(project_dir, files)));
        let parts: Vec<_> = parts.collect();
        let seen = parts.into_iter().zip(files.chunks(each));
        // A thread that could not go on has seen nothing.
        let seen = seen.map(|(it, files)| it.join().unwrap_or_else(|_| vec![false; files.len()]));
        seen.flatten().collect()
    })
}

/// Files of a few directories are looked up in these.
fn part(project_dir: &Path, files: &[(usize, FileKept<'_>)]) -> Vec<bool> {
    let root = directory(rustix::fs::CWD, project_dir);
    let Some(root) = root else { return vec![false; files.len()] };
    let mut open: Vec<(&str, Option<OwnedFd>)> = Vec::new();
    let mut seen = Vec::with_capacity(files.len());
    for (_, file) in files {
        let path = file.path;
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        // What a text stands for may be other bytes, or may lead elsewhere.
        let is_plain = !path.starts_with('/') && open::raw(path).as_os_str() == path;
        if file.stat.inode == 0 || !is_plain {
            seen.push(false);
            continue;
        }
        let known = open.iter().rposition(|(known, _)| *known == dir).unwrap_or_else(|| {
            let inside = if dir.is_empty() { Path::new(".") } else { Path::new(dir) };
            if open.len() == DIRECTORIES_MAX {
                open.clear();
            }
            open.push((dir, directory(root.as_fd(), inside)));
            open.len() - 1
        });
        let inside = open[known].1.as_ref();
        seen.push(inside.is_some_and(|inside| {
            rustix::fs::statat(inside, name, AtFlags::empty())
                .is_ok_and(|found| is(&found, &file.stat))
        }));
    }
    seen
}

fn directory(at: BorrowedFd<'_>, path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty()).ok()
}

fn is(found: &rustix::fs::Stat, known: &Stat) -> bool {
    let part_ns = i64::try_from(found.st_mtime_nsec).unwrap_or(-1);
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && u64::try_from(found.st_size) == Ok(known.size)
        && nanos(found.st_mtime, part_ns) == known.mtime_ns
        && found.st_ino == known.inode
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        time::{Duration, SystemTime},
    };

    use onward_core::{digest::Digest, evidence::FileProof};

    use super::*;
    use crate::world::real::look::Looker;

    #[test]
    fn many_are_looked_at_as_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let count = FILES_PER_THREAD + 10;
        fs::create_dir_all(root.join("o/deep")).unwrap();
        let name = |index: usize| match index % 3 {
            0 => format!("{index}"),
            1 => format!("o/{index}"),
            _ => format!("o/deep/{index}"),
        };
        let names: Vec<String> = (0..count).map(name).collect();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for name in &names {
            fs::write(root.join(name), name).unwrap();
            let file = fs::File::options().write(true).open(root.join(name)).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        let mut looker = Looker::new(root.to_owned());
        let mut proofs: Vec<FileProof> =
            names.iter().map(|name| looker.glob(name, &[]).unwrap().remove(0)).collect();
        fs::write(root.join(&names[5]), "other").unwrap();
        fs::remove_file(root.join(&names[6])).unwrap();
        fs::create_dir(root.join(&names[6])).unwrap();
        fs::remove_file(root.join(&names[7])).unwrap();
        std::os::unix::fs::symlink(root.join(&names[1]), root.join("link")).unwrap();
        proofs[8].path = "link".to_owned();
        proofs[9].path = "/etc/passwd".to_owned();
        proofs[10].stat.inode = 0;
        let seen =
            unchanged(root, &proofs.iter().map(FileKept::of).enumerate().collect::<Vec<_>>());
        let odd: Vec<usize> = (0..count).filter(|index| !seen[*index]).collect();
        assert_eq!(odd, [5, 6, 7, 8, 9, 10]);
        // A hash that no content has shows that a single look believes the same.
        for (proof, _) in proofs.iter_mut().zip(seen).filter(|(_, seen)| *seen) {
            proof.hash = Digest::of(b"believed");
            let mut fresh = Looker::new(root.to_owned());
            let found = fresh.glob(&proof.path, std::slice::from_ref(proof)).unwrap();
            assert_eq!(found, std::slice::from_ref(proof));
        }
    }
}
