//! A large workflow as bytes beside the copy of its text: what saves reading YAML at every look.
//!
//! Invariant: it is a cache, and nothing rests on it. It counts only under a seal that this user
//! alone can make, with a key that no checkout has, and only for exactly the text that the run
//! keeps. Whatever else stands there (torn, of another version, of another run, made by a stranger)
//! is passed over, and the text is read. A command that only looks never writes it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use onward_core::{
    digest::Digest,
    graph::Defs,
    workflow::{Loaded, model::PinnedFile},
};

use super::pinned::{PINNED, WORKFLOW, hash_under};
use crate::world::{
    open,
    real::shared::{sealed, under_seal},
};

const PACKED: &str = "workflow.packed";
/// A smaller text is read as soon.
const TEXT_BYTES_MIN: usize = 64 << 10;
/// What the key is for; another purpose has another one.
const PURPOSE: &str = "onward packed workflow";
const HASH_BYTES: usize = 16;

/// What is sealed: the version, the hash of the text, the names of its files, the steps.
struct Body<'a> {
    hash: &'a [u8],
    names: Vec<&'a str>,
    defs: &'a [u8],
}

/// The steps and the text of the copy in `dir`, without reading YAML; `None` = read it.
pub(super) fn read(
    run_dir: &Path,
    dir: &Path,
    env: &[(OsString, OsString)],
) -> Option<(Defs, Vec<PinnedFile>, Digest)> {
    let own = |path: &Path| {
        open::read_own(run_dir, path.strip_prefix(run_dir).ok()?, open::LOG_BYTES_MAX).ok()
    };
    let bytes = own(&dir.join(PACKED))?;
    let body = Body::of(under_seal(env, PURPOSE, &bytes)?)?;
    let mut files = Vec::with_capacity(body.names.len());
    for (index, name) in body.names.iter().enumerate() {
        let text = String::from_utf8(own(&path_of(dir, index, name))?).ok()?;
        files.push(PinnedFile { path: (*name).to_owned(), text });
    }
    let parts = files.iter().flat_map(|file| [file.path.as_bytes(), file.text.as_bytes()]);
    let hash = Digest::of_parts(parts);
    if hash.as_bytes() != body.hash {
        return None;
    }
    // The steps are the end of it.
    let at = bytes.len() - body.defs.len();
    drop(body);
    let defs = Defs::unpack_at(bytes, at)?.of_text(hash);
    Some((defs, files, hash))
}

/// Keeps the steps of a workflow that was just read from `dir`, and gives them in their small form.
pub(super) fn keep(dir: &Path, loaded: Loaded, env: &[(OsString, OsString)]) -> Defs {
    let (files, hash) = (loaded.files, loaded.hash);
    let defs = Defs::new(loaded.workflow);
    if !is_large(&files) {
        return defs;
    }
    let packed = defs.pack();
    write(dir, hash, &files, &packed, env);
    Defs::unpack(packed).unwrap_or(defs)
}

/// Keeps the steps of a workflow beside the copy that a new run has of it, so that no command reads
/// the YAML of that copy.
pub(crate) fn keep_new(dir: &Path, workflow: Loaded, env: &[(OsString, OsString)]) {
    let Loaded { workflow, mut files, .. } = workflow;
    if !is_large(&files) {
        return;
    }
    if let Some(first) = files.first_mut() {
        WORKFLOW.clone_into(&mut first.path);
    }
    let packed = Defs::new(workflow).pack();
    write(dir, hash_under(WORKFLOW, &files), &files, &packed, env);
}

fn is_large(files: &[PinnedFile]) -> bool {
    files.iter().map(|file| file.text.len()).sum::<usize>() >= TEXT_BYTES_MIN
}

/// That they cannot be kept costs time at the next look, and no more.
fn write(
    dir: &Path,
    hash: Digest,
    files: &[PinnedFile],
    packed: &[u8],
    env: &[(OsString, OsString)],
) {
    let Some(bytes) = sealed(env, PURPOSE, body(hash, files, packed)) else { return };
    let _ = open::put(&dir.join(PACKED), &bytes, open::PRIVATE);
}

fn path_of(dir: &Path, index: usize, name: &str) -> PathBuf {
    if index == 0 { dir.join(WORKFLOW) } else { dir.join(PINNED).join(name) }
}

fn body(hash: Digest, files: &[PinnedFile], defs: &[u8]) -> Vec<u8> {
    let mut to = Vec::with_capacity(defs.len() + 256);
    let mut put = |text: &[u8]| {
        to.extend((text.len() as u64).to_le_bytes());
        to.extend(text);
    };
    put(env!("CARGO_PKG_VERSION").as_bytes());
    put(hash.as_bytes());
    put(&(files.len() as u64).to_le_bytes());
    for file in files {
        put(file.path.as_bytes());
    }
    put(defs);
    to
}

impl<'a> Body<'a> {
    fn of(mut from: &'a [u8]) -> Option<Self> {
        let mut next = || {
            let (length, rest) = from.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (part, rest) = rest.split_at_checked(length)?;
            from = rest;
            Some(part)
        };
        if next()? != env!("CARGO_PKG_VERSION").as_bytes() {
            return None;
        }
        let hash = next().filter(|it| it.len() == HASH_BYTES)?;
        let count = u64::from_le_bytes(next()?.try_into().ok()?);
        let names = (0..count).map(|_| std::str::from_utf8(next()?).ok()).collect::<Option<_>>()?;
        let defs = next()?;
        Some(Self { hash, names, defs })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::locate::{Pinned, load_workflow};

    const SEAL_BYTES: usize = 32;

    struct Place {
        dir: tempfile::TempDir,
        env: Vec<(OsString, OsString)>,
    }

    impl Place {
        /// A run directory with a workflow that is large enough, and a user.
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let place = Self { env: user(dir.path(), "me"), dir };
            fs::create_dir(place.run_dir()).unwrap();
            place.write(&text("echo good"));
            place
        }

        fn run_dir(&self) -> PathBuf {
            self.dir.path().join("run")
        }

        fn write(&self, text: &str) {
            fs::write(self.run_dir().join(WORKFLOW), text).unwrap();
        }

        fn packed(&self) -> PathBuf {
            self.run_dir().join(PACKED)
        }

        fn is_used(&self) -> bool {
            read(&self.run_dir(), &self.run_dir(), &self.env).is_some()
        }

        fn looked(&self) -> Pinned {
            Pinned::look(&self.run_dir(), &self.env).unwrap()
        }
    }

    fn user(dir: &Path, name: &str) -> Vec<(OsString, OsString)> {
        vec![("XDG_STATE_HOME".into(), dir.join(name).into())]
    }

    fn text(command: &str) -> String {
        let step = |index| format!("  - {{ id: s{index}, needs: [], run: {command} {index} }}\n");
        let steps: String = (0..3000).map(step).collect();
        format!("onward: 1\nname: large\nsteps:\n{steps}")
    }

    #[test]
    fn what_is_kept_is_the_workflow_and_a_look_keeps_nothing() {
        let place = Place::new();
        let plain = place.looked();
        assert!(!place.packed().exists() && !place.dir.path().join("me").exists());
        let taken = Pinned::take(&place.run_dir(), &place.env).unwrap();
        assert!(place.is_used());
        let again = place.looked();
        for other in [&taken, &again] {
            assert_eq!(other.defs.workflow(), plain.defs.workflow());
            assert_eq!((&other.files, other.hash), (&plain.files, plain.hash));
        }
        fs::remove_file(place.packed()).unwrap();
        assert_eq!(place.looked().defs.workflow(), plain.defs.workflow());
    }

    #[test]
    fn a_new_run_keeps_what_its_first_driver_would_keep() {
        let place = Place::new();
        let path = place.run_dir().join("mine.yaml");
        fs::copy(place.run_dir().join(WORKFLOW), &path).unwrap();
        keep_new(&place.run_dir(), load_workflow(&path).unwrap(), &place.env);
        assert!(place.is_used());
        let kept = fs::read(place.packed()).unwrap();
        fs::remove_file(place.packed()).unwrap();
        Pinned::take(&place.run_dir(), &place.env).unwrap();
        assert_eq!(kept, fs::read(place.packed()).unwrap());
    }

    #[test]
    fn what_is_torn_stale_or_of_a_stranger_is_passed_over() {
        let place = Place::new();
        Pinned::take(&place.run_dir(), &place.env).unwrap();
        let good = fs::read(place.packed()).unwrap();
        let plain = place.looked().defs.workflow();
        for cut in [0, 1, SEAL_BYTES, SEAL_BYTES + 20, good.len() / 2, good.len() - 1] {
            fs::write(place.packed(), &good[..cut]).unwrap();
            assert!(!place.is_used(), "cut at {cut}");
            let mut spoilt = good.clone();
            spoilt[cut] ^= 1;
            fs::write(place.packed(), &spoilt).unwrap();
            assert!(!place.is_used(), "spoilt at {cut}");
            assert_eq!(place.looked().defs.workflow(), plain);
        }
        // A stranger seals steps of their own for the text that stands there.
        let stranger = Place { dir: tempfile::tempdir().unwrap(), env: Vec::new() };
        let stranger = Place { env: user(stranger.dir.path(), "stranger"), ..stranger };
        fs::create_dir(stranger.run_dir()).unwrap();
        stranger.write(&text("rm -rf"));
        let evil = Pinned::take(&stranger.run_dir(), &stranger.env).unwrap();
        let body = body(place.looked().hash, &place.looked().files, &evil.defs.pack());
        fs::write(place.packed(), sealed(&stranger.env, PURPOSE, body).unwrap()).unwrap();
        assert!(!place.is_used());
        assert_eq!(place.looked().defs.workflow(), plain);
        // The text is another one.
        fs::write(place.packed(), &good).unwrap();
        assert!(place.is_used());
        place.write(&text("echo other"));
        assert!(!place.is_used());
        assert_ne!(place.looked().defs.workflow(), plain);
    }

    #[test]
    fn a_small_workflow_and_a_user_without_a_home_keep_nothing() {
        let place = Place::new();
        Pinned::take(&place.run_dir(), &[]).unwrap();
        assert!(!place.packed().exists());
        place.write("onward: 1\nsteps: [{ id: a, run: a }]\n");
        Pinned::take(&place.run_dir(), &place.env).unwrap();
        assert!(!place.packed().exists());
    }
}
