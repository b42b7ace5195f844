//! What all runs of this user on this machine share: the limits that providers set, and who has a
//! session open.
//!
//! Below `$XDG_STATE_HOME/onward`: `limits/PROVIDER-ACCOUNT.json`, `sessions/SESSION.lock`, `salt`.
//! The lock of a session leaves with the driver that holds it, and with it every lock that a driver
//! left which was killed. A lock file is removed by the one that has its lock, and a lock on a file
//! that was removed meanwhile counts for nothing: so no two drivers can have one session.
//!
//! Invariant: no secret is here. An account is a salted hash of the credential, or of the id in the
//! program's own files. What cannot be read or written costs knowledge, never a run: a program asks
//! its provider in vain, and meets the limit itself.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use onward_core::{digest::Digest, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{disk, variable};
use crate::{
    agents::{Adapter, Card},
    world::{KnownLimit, open},
};

const SCHEMA: &str = "onward.limit/1";
const SALT: &str = "salt";
/// Why a session of another run is left alone.
pub(super) const HELD: &str = "another run of onward has it open";
/// How the name of a session's lock ends.
const LOCK: &str = ".lock";
/// The kernel gives another one at each look.
const RANDOM: &str = "/proc/sys/kernel/random/uuid";

/// See the module.
#[derive(Debug)]
pub(super) struct Shared {
    /// `None` where nothing says where it would be.
    dir: Option<PathBuf>,
    env: Vec<(OsString, OsString)>,
    /// Sessions that this driver has open, until it is gone.
    held: BTreeMap<String, File>,
}

/// A key for `purpose` that only this user has on this machine, and that no checkout can know. The
/// salt that it comes from is made where it is missing.
pub(crate) fn own_key(env: &[(OsString, OsString)], purpose: &str) -> Option<[u8; 32]> {
    key_from(&Shared::of(env).salt().ok()?, purpose)
}

/// The same, for one who only looks.
pub(crate) fn known_key(env: &[(OsString, OsString)], purpose: &str) -> Option<[u8; 32]> {
    key_from(&Shared::of(env).known_salt()?, purpose)
}

/// These bytes under the seal of this user: no one else can make it, and nothing in them can be
/// changed behind it.
pub(crate) fn sealed(
    env: &[(OsString, OsString)],
    purpose: &str,
    mut bytes: Vec<u8>,
) -> Option<Vec<u8>> {
    let key = own_key(env, purpose)?;
    let seal = blake3::keyed_hash(&key, &bytes);
    // Many bytes are moved, and not held twice.
    bytes.reserve_exact(blake3::OUT_LEN);
    bytes.splice(0..0, *seal.as_bytes());
    Some(bytes)
}

/// What was sealed by this user for this purpose; of anything else nothing.
pub(crate) fn unsealed(
    env: &[(OsString, OsString)],
    purpose: &str,
    mut sealed: Vec<u8>,
) -> Option<Vec<u8>> {
    under_seal(env, purpose, &sealed)?;
    sealed.drain(..blake3::OUT_LEN);
    Some(sealed)
}

/// The same, where it stands.
pub(crate) fn under_seal<'a>(
    env: &[(OsString, OsString)],
    purpose: &str,
    sealed: &'a [u8],
) -> Option<&'a [u8]> {
    let (seal, bytes) = sealed.split_at_checked(blake3::OUT_LEN)?;
    let key = known_key(env, purpose)?;
    // Compared in a time that tells nothing.
    let is_ours = blake3::keyed_hash(&key, bytes) == blake3::Hash::from_slice(seal).ok()?;
    is_ours.then_some(bytes)
}

/// An empty salt is no secret.
fn key_from(salt: &[u8], purpose: &str) -> Option<[u8; 32]> {
    (!salt.is_empty()).then(|| blake3::derive_key(purpose, salt))
}

/// One entry of the ledger.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    schema: String,
    provider: String,
    account: Option<String>,
    met_at: Timestamp,
    resets_at: Timestamp,
}

impl Shared {
    pub(super) fn of(env: &[(OsString, OsString)]) -> Self {
        let home = || variable(env, "HOME").map(|it| Path::new(it).join(".local/state"));
        let state = variable(env, "XDG_STATE_HOME").map(PathBuf::from);
        let dir = state.filter(|it| it.is_absolute()).or_else(home);
        let dir = dir.filter(|it| it.is_absolute()).map(|it| it.join("onward"));
        Self { dir, env: env.to_vec(), held: BTreeMap::new() }
    }

    /// Whose limits a program meets: never the credential, and never the same on two machines.
    fn account(&self, provider: &str, card: &Card) -> Option<String> {
        let secret = self.credential(card)?;
        let salt = self.salt().ok()?;
        let parts = [salt.as_slice(), provider.as_bytes(), secret.as_bytes()];
        Some(Digest::of_parts(parts).to_string().chars().take(16).collect())
    }

    fn credential(&self, card: &Card) -> Option<String> {
        let mut variables = card.credentials.iter();
        let given = variables.find_map(|name| variable(&self.env, name)?.to_str());
        if let Some(given) = given {
            return Some(given.to_owned());
        }
        let (file, pointer) = card.account?;
        let moved = card.moved(file, |name| variable(&self.env, name).map(PathBuf::from));
        let usual = || Some(Path::new(variable(&self.env, "HOME")?).join(file));
        let path = moved.or_else(usual)?;
        let bytes = open::read_named(&path, open::SMALL_BYTES_MAX).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        value.pointer(pointer)?.as_str().map(str::to_owned)
    }

    /// Made once; of two that would make it at the same time, the second finds it.
    fn salt(&self) -> io::Result<Vec<u8>> {
        let dir = self.made("")?;
        let known = || open::read_own(&dir, SALT, open::SMALL_BYTES_MAX);
        if let Ok(salt) = known() {
            return Ok(salt);
        }
        let _alone = lock(&dir)?;
        known().or_else(|_| {
            let random = open::read_named(Path::new(RANDOM), open::SMALL_BYTES_MAX)?;
            disk::replace(&dir.join(SALT), &random, open::PRIVATE)?;
            Ok(random)
        })
    }

    /// The same, for one who may not make it.
    fn known_salt(&self) -> Option<Vec<u8>> {
        open::read_own(self.dir.as_ref()?, SALT, open::SMALL_BYTES_MAX).ok()
    }

    fn made(&self, below: &str) -> io::Result<PathBuf> {
        let dir = self.dir.as_ref().ok_or(io::ErrorKind::NotFound)?.join(below);
        std::fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Until when a limit holds, if any run met it and it is not lifted.
    pub(super) fn limit(&self, of: &dyn Adapter, now: Timestamp) -> Option<KnownLimit> {
        let provider = of.shares()?;
        let account = self.account(provider, of.card());
        let dir = self.dir.as_ref()?.join("limits");
        let bytes = open::read_own(&dir, name(provider, account.as_deref()), open::SMALL_BYTES_MAX);
        let entry: Entry = serde_json::from_slice(&bytes.ok()?).ok()?;
        let (provider, resets_at) = (provider.to_owned(), entry.resets_at);
        let holds = entry.schema == SCHEMA && resets_at > now;
        holds.then_some(KnownLimit { provider, account, resets_at })
    }

    /// Notes a limit for the other runs; a later moment that is known stays. The account that met
    /// it is handed back.
    pub(super) fn meet(
        &self,
        of: &dyn Adapter,
        resets_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<String> {
        let account = self.account(of.shares()?, of.card());
        // See the invariant.
        let _ = resets_at.map(|it| self.note(of, account.as_deref(), it, now));
        account
    }

    fn note(
        &self,
        of: &dyn Adapter,
        account: Option<&str>,
        resets_at: Timestamp,
        now: Timestamp,
    ) -> io::Result<()> {
        let provider = of.shares().ok_or(io::ErrorKind::NotFound)?;
        let dir = self.made("limits")?;
        // Another run may be about to note a later moment.
        let _alone = lock(&dir)?;
        if self.limit(of, now).is_some_and(|known| known.resets_at >= resets_at) {
            return Ok(());
        }
        let entry = Entry {
            schema: SCHEMA.to_owned(),
            provider: provider.to_owned(),
            account: account.map(str::to_owned),
            met_at: now,
            resets_at,
        };
        let text = serde_json::to_vec(&entry).unwrap_or_default();
        disk::replace(&dir.join(name(provider, account)), &text, open::PRIVATE)
    }

    /// Takes a session for this driver. `false` = another run has it open.
    pub(super) fn hold(&mut self, session: &str) -> bool {
        if self.held.contains_key(session) {
            return true;
        }
        let Ok(dir) = self.made("sessions") else { return true };
        match taken(&dir, &lock_of(session)) {
            Ok(Some(file)) => {
                self.held.insert(session.to_owned(), file);
                true
            }
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Whether another run has it open; nothing is made for looking.
    pub(super) fn is_held_elsewhere(&self, session: &str) -> bool {
        let Some(dir) = self.dir.as_ref().filter(|_| !self.held.contains_key(session)) else {
            return false;
        };
        let opened = open::own(&dir.join("sessions"), lock_of(session), open::To::Read, 0);
        let tried = opened.map(|file| file.try_lock());
        matches!(tried, Ok(Err(TryLockError::WouldBlock)))
    }
}

impl Drop for Shared {
    /// One that only looked leaves everything as it is.
    fn drop(&mut self) {
        let Some(dir) = self.dir.as_ref().filter(|_| !self.held.is_empty()) else { return };
        let dir = dir.join("sessions");
        let held = std::mem::take(&mut self.held);
        for session in held.keys() {
            remove(&dir, &lock_of(session));
        }
        drop(held);
        // What is left of drivers that were killed.
        for name in names(&dir).into_iter().filter(|name| name.ends_with(LOCK)) {
            let Ok(file) = open::own(&dir, &name, open::To::Read, 0) else { continue };
            if file.try_lock().is_ok() && is_at(&file, &dir.join(&name)) {
                remove(&dir, &name);
            }
        }
    }
}

/// What is in a directory, in order.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// For the one that has its lock. A file that stays is found free by the next driver.
fn remove(dir: &Path, name: &str) {
    let _ = std::fs::remove_file(dir.join(name));
}

/// A lock file, made and locked; `None` = another process has its lock.
fn taken(dir: &Path, name: &str) -> io::Result<Option<File>> {
    loop {
        let file = open::own(dir, name, open::To::Write, open::PRIVATE)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, &dir.join(name)) => return Ok(Some(file)),
            // The one that had it before has removed it.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Whether an open file is still the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let known = file.metadata().map(|it| (it.dev(), it.ino()));
    let found = path.symlink_metadata().map(|it| (it.dev(), it.ino()));
    matches!((known, found), (Ok(known), Ok(found)) if known == found)
}

fn lock(dir: &Path) -> io::Result<File> {
    let held = open::dir(dir)?;
    held.lock().map(|()| held)
}

/// A provider that the configuration names may have any name.
fn name(provider: &str, account: Option<&str>) -> String {
    let is_plain = provider.chars().all(|it| it.is_ascii_alphanumeric());
    let digest = || Digest::of(provider.as_bytes()).to_string();
    let provider = if is_plain { provider.to_owned() } else { digest() };
    format!("{provider}-{}.json", account.unwrap_or("unknown"))
}

/// A session's id is another program's word, and no file name.
fn lock_of(session: &str) -> String {
    format!("{}{LOCK}", Digest::of(session.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{
        claude::Claude,
        codex::Codex,
        command::Command,
        generic::{Generic, Reads},
    };

    fn shared(dir: &Path, key: &str) -> Shared {
        let env: [(&str, &str); 2] =
            [("XDG_STATE_HOME", dir.to_str().unwrap()), ("ANTHROPIC_API_KEY", key)];
        Shared::of(&env.map(|(name, value)| (name.into(), value.into())))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_limit_is_known_to_every_run_of_the_account_until_it_is_lifted() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (shared(dir.path(), "key-1"), shared(dir.path(), "key-1"));
        let stranger = shared(dir.path(), "key-2");
        let card: &dyn Adapter = &Claude;
        assert_eq!(other.limit(card, at(5)), None);
        let account = one.meet(card, Some(at(100)), at(5));
        let known = other.limit(card, at(5)).unwrap();
        assert_eq!((known.resets_at, known.account.clone()), (at(100), account));
        assert_eq!(known.provider, "anthropic");
        assert_eq!(stranger.limit(card, at(5)), None, "another account");
        assert_eq!(other.limit(&Codex, at(5)), None, "another provider");
        assert_eq!(other.limit(card, at(100)), None, "it is lifted");
        // An earlier moment takes nothing back, and one without a moment holds for this run alone.
        one.meet(card, Some(at(50)), at(6));
        one.meet(card, None, at(6));
        assert_eq!(other.limit(card, at(7)).unwrap().resets_at, at(100));
        assert_eq!(one.meet(&Command, Some(at(100)), at(6)), None);
        let all = text_below(dir.path());
        assert!(!all.contains("key-1"), "{all}");
    }

    fn text_below(dir: &Path) -> String {
        let entries = std::fs::read_dir(dir).unwrap().flatten().map(|it| it.path());
        let texts = entries.map(|path| {
            if path.is_dir() {
                return text_below(&path);
            }
            format!(
                "{} {}",
                path.display(),
                String::from_utf8_lossy(&std::fs::read(&path).unwrap())
            )
        });
        texts.collect()
    }

    #[test]
    fn a_session_is_open_in_one_driver_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (shared(dir.path(), "k"), shared(dir.path(), "k"));
        assert!(!other.is_held_elsewhere("../s"));
        assert!(!dir.path().join("onward").exists(), "looking makes nothing");
        assert!(one.hold("../s") && one.hold("../s"));
        assert!(!other.hold("../s") && other.is_held_elsewhere("../s"));
        assert!(other.hold("t") && !one.is_held_elsewhere("../s"));
        drop(one);
        assert!(!other.is_held_elsewhere("../s") && other.hold("../s"));
    }

    #[test]
    fn a_described_program_shares_the_limits_of_the_provider_that_it_names() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (shared(dir.path(), "k"), shared(dir.path(), "k"));
        let of = |provider: Option<&str>| {
            Generic::new(Reads { provider: provider.map(str::to_owned), ..Reads::default() })
        };
        one.meet(&of(Some("../new")), Some(at(100)), at(1));
        let known = other.limit(&of(Some("../new")), at(1)).unwrap();
        assert_eq!((known.provider.as_str(), known.resets_at), ("../new", at(100)));
        assert_eq!(other.limit(&of(Some("newer")), at(1)), None);
        one.meet(&of(None), Some(at(100)), at(1));
        assert_eq!(other.limit(&of(None), at(1)), None, "whose limit it is, nothing says");
        assert!(!dir.path().join("onward/new-unknown.json").exists());
    }

    fn locks(dir: &Path) -> Vec<String> {
        names(&dir.join("onward/sessions"))
    }

    #[test]
    fn locks_leave_with_their_driver_and_those_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (shared(dir.path(), "k"), shared(dir.path(), "k"));
        assert!(one.hold("a") && one.hold("b") && other.hold("c"));
        // A driver that was killed leaves its file without a lock on it.
        std::fs::write(dir.path().join("onward/sessions").join(lock_of("d")), "").unwrap();
        std::fs::write(dir.path().join("onward/sessions/notes.txt"), "").unwrap();
        drop(shared(dir.path(), "k"));
        assert_eq!(locks(dir.path()).len(), 5, "one that only looked removes nothing");
        drop(one);
        let mut left = vec![lock_of("c"), "notes.txt".to_owned()];
        left.sort_unstable();
        assert_eq!(locks(dir.path()), left);
        let mut third = shared(dir.path(), "k");
        assert!(third.is_held_elsewhere("c") && !third.hold("c") && third.hold("a"));
    }

    /// Its name may stand for another file by now, which another driver has locked.
    #[test]
    fn a_lock_on_a_file_that_was_removed_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let first = taken(dir.path(), "x.lock").unwrap().unwrap();
        assert!(is_at(&first, &path));
        std::fs::remove_file(&path).unwrap();
        let second = taken(dir.path(), "x.lock").unwrap().unwrap();
        assert!(!is_at(&first, &path) && is_at(&second, &path));
        assert!(taken(dir.path(), "x.lock").unwrap().is_none());
    }

    #[test]
    fn of_two_runs_that_meet_a_limit_the_later_moment_stays() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (shared(dir.path(), "k"), shared(dir.path(), "k"));
        let card: &dyn Adapter = &Claude;
        let account = one.meet(card, Some(at(10)), at(1));
        // It is lifted when the two meet another one, at the same moment.
        let limits = dir.path().join("onward/limits");
        let alone = lock(&limits).unwrap();
        let late = std::thread::spawn(move || other.meet(card, Some(at(50)), at(20)));
        let inode = format!(":{} ", std::fs::metadata(&limits).unwrap().ino());
        let waits = |line: &str| line.contains("->") && line.contains(&inode);
        while !std::fs::read_to_string("/proc/locks").unwrap().lines().any(waits) {
            std::thread::yield_now();
        }
        let path = limits.join(name("anthropic", account.as_deref()));
        let text = std::fs::read_to_string(&path).unwrap();
        let later = text.replace(&at(10).to_string(), &at(100).to_string());
        disk::replace(&path, later.as_bytes(), open::PRIVATE).unwrap();
        drop(alone);
        late.join().unwrap();
        assert_eq!(one.limit(card, at(20)).unwrap().resets_at, at(100));
    }

    #[test]
    fn nothing_is_shared_where_nothing_says_where() {
        let mut nowhere = Shared::of(&[]);
        assert_eq!(nowhere.meet(&Claude, Some(at(9)), at(1)), None);
        assert_eq!(nowhere.limit(&Claude, at(1)), None);
        assert!(nowhere.hold("s") && !nowhere.is_held_elsewhere("s"));
    }
}
