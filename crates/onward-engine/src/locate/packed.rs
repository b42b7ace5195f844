//! A large workflow as bytes beside the copy of its text: what saves reading YAML at every look.
//!
//! Invariant: it is a cache, and nothing rests on it. It counts only under a seal that this user
//! alone can make, with a key that no checkout has, and only for exactly the text that the run
//! keeps. Whatever else stands there (torn, of another version, of another run, made by a stranger)
//! is passed over, and the text is read. A command that only looks never writes it.

use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    digest::Digest,
    graph::Defs,
    workflow::{Loaded, model::PinnedFile},
};

use super::pinned::{PINNED, Texts, WORKFLOW, hash_under};
use crate::world::{
    known::{Fact, Known, Of, RIGHT, Renewal},
    open::{self, To},
    real::shared::{sealed, under_seal},
};

const PACKED: &str = "workflow.packed";
/// A smaller text is read as soon.
pub(super) const TEXT_BYTES_MIN: usize = 64 << 10;
/// What the key is for; another purpose has another one.
const PURPOSE: &str = "onward packed workflow";
const HASH_BYTES: usize = 16;
/// What stands in front of a sealed body.
const SEAL_BYTES: usize = 32;

/// What is sealed: the version, the hash of the text, the names of its files, the steps.
struct Body<'a> {
    hash: &'a [u8],
    names: Vec<&'a str>,
    defs: &'a [u8],
}

/// The steps of the copy in `dir`, without reading YAML.
pub(super) struct Read {
    pub(super) defs: Defs,
    pub(super) texts: Texts,
    pub(super) hash: Digest,
    /// The text is known to be the one that the journal names.
    pub(super) is_named: bool,
}

/// `None` = read the text. `named` is how the journal names it; what is `known` of a file need not
/// be read.
pub(super) fn read(
    run_dir: &Path,
    dir: &Path,
    (named, known): (Option<Digest>, &Known),
    env: &[(OsString, OsString)],
) -> Option<Read> {
    let open = |path: &Path| open::own(run_dir, path.strip_prefix(run_dir).ok()?, To::Read, 0).ok();
    let own = |path: &Path| open::all_of(open(path)?, open::LOG_BYTES_MAX).ok();
    let packed = open(&dir.join(PACKED))?;
    let is_right = dir == run_dir && known.has(Of::Packed, &packed.metadata().ok()?, &RIGHT);
    let bytes = open::all_of(packed, open::LOG_BYTES_MAX).ok()?;
    let body = if is_right { bytes.get(SEAL_BYTES..) } else { under_seal(env, PURPOSE, &bytes) };
    let body = Body::of(body?)?;
    if let Some(fact) = body.fact(named).filter(|_| is_right) {
        let text = open(&dir.join(WORKFLOW))?;
        if known.has(Of::Copy, &text.metadata().ok()?, &fact) {
            let (at, texts) = (bytes.len() - body.defs.len(), Texts::Unread(Arc::new(text)));
            let hash = Digest::from_bytes(body.hash.try_into().ok()?);
            drop(body);
            let defs = Defs::unpack_at(bytes, at)?.of_text(hash);
            return Some(Read { defs, texts, hash, is_named: true });
        }
    }
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
    Some(Read { defs, texts: Texts::Read(files), hash, is_named: false })
}

/// Notes down by what marks the next look knows the text and its steps. `is_named` says whether
/// these texts are what the journal names.
pub(super) fn note(
    known: &mut Renewal<'_>,
    named: Digest,
    is_named: impl FnOnce(&[PinnedFile]) -> bool,
) -> Option<()> {
    let (dir, env) = (known.run_dir(), known.env());
    let packed = || open::own(dir, PACKED, To::Read, 0);
    let bytes = open::all_of(packed().ok()?, open::LOG_BYTES_MAX).ok()?;
    let body = Body::of(under_seal(env, PURPOSE, &bytes)?)?;
    let fact = body.fact(Some(named))?;
    // What was read just now is what is there: a change since has left other marks.
    let is_it = |file: &File, _| {
        let again = file.try_clone().and_then(|it| open::all_of(it, open::LOG_BYTES_MAX));
        again.is_ok_and(|it| it == bytes)
    };
    let is_text = |file: &File, _| {
        let text = file.try_clone().and_then(|it| open::all_of(it, open::LOG_BYTES_MAX)).ok();
        let Some(text) = text.and_then(|it| String::from_utf8(it).ok()) else { return false };
        let files = [PinnedFile { path: WORKFLOW.to_owned(), text }];
        hash_under(WORKFLOW, &files).as_bytes() == body.hash && is_named(&files)
    };
    if known.note(Of::Packed, packed(), RIGHT, is_it) {
        known.note(Of::Copy, open::own(dir, WORKFLOW, To::Read, 0), fact, is_text);
    }
    Some(())
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
    /// What the only text is known for: its hash, and how the journal names it. `None` where it
    /// includes others, or the journal does not say.
    fn fact(&self, named: Option<Digest>) -> Option<Fact> {
        let mut fact = RIGHT;
        fact[..HASH_BYTES].copy_from_slice(self.hash);
        fact[HASH_BYTES..].copy_from_slice(named?.as_bytes());
        (self.names == [WORKFLOW]).then_some(fact)
    }

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
            let unknown = (None, &Known::default());
            read(&self.run_dir(), &self.run_dir(), unknown, &self.env).is_some()
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
            assert_eq!(other.files().unwrap(), plain.files().unwrap());
            assert_eq!(other.hash, plain.hash);
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
        let body = body(place.looked().hash, &place.looked().files().unwrap(), &evil.defs.pack());
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
