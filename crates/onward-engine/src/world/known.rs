//! Long files of a run that need not be read again: each with the marks by which the file system
//! shows that it is still the file that was read, and with what it was known for.
//!
//! Invariant: it is a cache, and nothing rests on it. It counts only under a seal that this user
//! alone can make. A file is believed unread only while device, number, length and both its times
//! are as they were, one of which no program can set back; and it is noted down only where the file
//! system was seen to give every change after a look a time of its own, and only until the machine
//! is started again: what a power cut made of it may have the same marks. Whatever else is so is
//! read. A command that only looks never writes it, and one that is to find damage never asks it.

use std::{
    ffi::OsString,
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use super::{
    open,
    real::{
        keen_device,
        shared::{sealed, under_seal},
    },
    supervisor::boot_id,
};

/// In the directory of the run.
const KNOWN: &str = "known";
/// What the seal is for; another purpose has another one.
const PURPOSE: &str = "onward known files";
/// Another one whenever anything in here is written differently.
const LAYOUT: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "/1").as_bytes();
const WORDS: usize = 5;
const FACT_BYTES: usize = 32;
const ROW_BYTES: usize = WORDS * 8 + FACT_BYTES;

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Journal,
    /// The folded state beside it.
    Checkpoint,
    /// The supervisor's log.
    Log,
    /// What was read of that.
    Seen,
    /// The copy of the workflow that the run keeps.
    Copy,
    /// The steps beside it.
    Packed,
    /// The file of the project that the run was made from.
    Origin,
}

const COUNT: usize = 7;

/// What a file was known for.
pub(crate) type Fact = [u8; FACT_BYTES];

/// Of a file that has no more to say than that it was right.
pub(crate) const RIGHT: Fact = [0; FACT_BYTES];

/// That a file begins with so many bytes of this sum.
pub(crate) fn begins(length: u64, crc: u32) -> Fact {
    let mut fact = RIGHT;
    fact[..8].copy_from_slice(&length.to_le_bytes());
    fact[8..12].copy_from_slice(&crc.to_le_bytes());
    fact
}

/// Whether a file begins with so many bytes of this sum, of which `piece` gives what stands at an
/// offset.
pub(crate) fn begun_by<E>(
    length: u64,
    crc: u32,
    mut piece: impl FnMut(u64) -> Result<Vec<u8>, E>,
) -> Result<bool, E> {
    let (mut sum, mut offset) = (crc32fast::Hasher::new(), 0);
    while offset < length {
        let mut piece = piece(offset)?;
        piece.truncate(usize::try_from(length - offset).unwrap_or(usize::MAX));
        if piece.is_empty() {
            return Ok(false);
        }
        sum.update(&piece);
        offset += piece.len() as u64;
    }
    Ok(sum.finalize() == crc)
}

/// A file that is known to begin with so many bytes of this sum, as long as it has these marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) print: Print,
    pub(crate) length: u64,
    pub(crate) crc: u32,
}

/// The marks of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print([u64; WORDS]);

impl Print {
    /// The same as something that another file is known for.
    pub(crate) fn as_fact(self) -> Fact {
        let bytes = self.0.map(u64::to_le_bytes);
        *blake3::hash(bytes.as_flattened()).as_bytes()
    }

    pub(crate) fn of(found: &Metadata) -> Self {
        let time = |seconds: i64, nanos: i64| {
            seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos).cast_unsigned()
        };
        Self([
            found.dev(),
            found.ino(),
            found.len(),
            time(found.mtime(), found.mtime_nsec()),
            time(found.ctime(), found.ctime_nsec()),
        ])
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known([Option<(Print, Fact)>; COUNT]);

impl Known {
    /// Nothing where nothing is kept, or what is kept does not count.
    pub(crate) fn read(run_dir: &Path, env: &[(OsString, OsString)]) -> Self {
        let bytes = open::read_own(run_dir, KNOWN, open::SMALL_BYTES_MAX).ok();
        let known =
            |bytes: Vec<u8>| Self::unpack(under_seal(env, PURPOSE, &bytes)?, &boot_id().ok()?);
        bytes.and_then(known).unwrap_or_default()
    }

    /// What the file was known for, if it is still the one that was read.
    pub(crate) fn fact(&self, of: Of, found: &Metadata) -> Option<Fact> {
        let (print, fact) = self.0[of as usize]?;
        (print == Print::of(found)).then_some(fact)
    }

    pub(crate) fn has(&self, of: Of, found: &Metadata, fact: &Fact) -> bool {
        self.fact(of, found).is_some_and(|it| it == *fact)
    }

    fn pack(&self, boot: &str) -> Vec<u8> {
        let mut to = [LAYOUT, boot.as_bytes()].concat();
        for row in &self.0 {
            let (print, fact) = row.unwrap_or((Print([0; WORDS]), RIGHT));
            to.push(u8::from(row.is_some()));
            to.extend(print.0.iter().flat_map(|word| word.to_le_bytes()));
            to.extend(fact);
        }
        to
    }

    fn unpack(from: &[u8], boot: &str) -> Option<Self> {
        let rows = from
            .strip_prefix(LAYOUT)?
            .strip_prefix(boot.as_bytes())?
            .as_chunks::<{ ROW_BYTES + 1 }>();
        let (rows, []) = rows else { return None };
        let mut known = Self::default();
        for (row, place) in rows.iter().zip(&mut known.0) {
            let (is_there, row) = row.split_first()?;
            let (words, fact) = row.split_at_checked(WORDS * 8)?;
            let mut print = [0; WORDS];
            for (word, bytes) in print.iter_mut().zip(words.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            *place = (*is_there != 0).then_some((Print(print), fact.try_into().ok()?));
        }
        (rows.len() == COUNT).then_some(known)
    }
}

/// The same, brought up to date by one who has driven the run.
pub(crate) struct Renewal<'r> {
    run_dir: &'r Path,
    env: &'r [(OsString, OsString)],
    /// The device whose file system shows every change after a look.
    keen: u64,
    before: Known,
    now: Known,
}

impl<'r> Renewal<'r> {
    /// `None` where no file could be known by its marks.
    pub(crate) fn begin(run_dir: &'r Path, env: &'r [(OsString, OsString)]) -> Option<Self> {
        let keen = keen_device(run_dir)?;
        let before = Known::read(run_dir, env);
        Some(Self { run_dir, env, keen, before, now: Known::default() })
    }

    pub(crate) fn run_dir(&self) -> &'r Path {
        self.run_dir
    }

    pub(crate) fn env(&self) -> &'r [(OsString, OsString)] {
        self.env
    }

    /// Notes down what a file is known for: what is noted already stays, anything else only if it
    /// `is_so`, which is found out behind a look at the marks. A change meanwhile changes these.
    pub(crate) fn note(
        &mut self,
        of: Of,
        file: io::Result<File>,
        fact: Fact,
        is_so: impl FnOnce(&File, Print) -> bool,
    ) -> bool {
        let Some((file, found)) = file.ok().and_then(|it| it.metadata().ok().map(|at| (it, at)))
        else {
            return false;
        };
        let print = Print::of(&found);
        let is_known = self.before.has(of, &found, &fact);
        let is_right = is_known || (found.dev() == self.keen && is_so(&file, print));
        self.now.0[of as usize] = is_right.then_some((print, fact));
        is_right
    }

    /// That it cannot be kept costs time at the next look, and no more.
    pub(crate) fn keep(self) {
        if self.now != self.before
            && let Ok(boot) = boot_id()
            && let Some(bytes) = sealed(self.env, PURPOSE, self.now.pack(&boot))
        {
            let _ = open::put(&self.run_dir.join(KNOWN), &bytes, open::PRIVATE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _, time::Duration};

    use super::*;

    fn user(dir: &Path, name: &str) -> Vec<(OsString, OsString)> {
        vec![("XDG_STATE_HOME".into(), dir.join(name).into())]
    }

    #[test]
    fn a_file_is_known_until_anything_changes_it() {
        let dir = tempfile::tempdir().unwrap();
        let (run, me, stranger) = (dir.path(), user(dir.path(), "me"), user(dir.path(), "other"));
        let path = run.join("journal");
        fs::write(&path, "whole").unwrap();
        let fact = begins(5, 7);
        let is_known = |env: &[(OsString, OsString)]| {
            Known::read(run, env).has(Of::Journal, &fs::metadata(&path).unwrap(), &fact)
        };
        let note = |is_so: bool| {
            let Some(mut renewal) = Renewal::begin(run, &me) else { return false };
            renewal.note(Of::Journal, File::open(&path), fact, |_, _| is_so);
            renewal.keep();
            true
        };
        if !note(true) {
            // This file system counts ticks: nothing is ever known on it.
            assert!(!run.join(KNOWN).exists());
            return;
        }
        assert!(is_known(&me) && !is_known(&stranger) && !is_known(&[]));
        assert!(!Known::read(run, &me).has(Of::Log, &fs::metadata(&path).unwrap(), &fact));
        // What is known stays so, and is not looked into again.
        assert!(note(false) && is_known(&me));
        let old = fs::metadata(&path).unwrap().modified().unwrap();
        let spoil: [&dyn Fn(); 5] = [
            &|| fs::write(&path, "wHole").unwrap(),
            &|| {
                // Same length, and the time set back.
                fs::write(&path, "whOle").unwrap();
                File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
            },
            &|| File::options().append(true).open(&path).unwrap().write_all(b"x").unwrap(),
            &|| {
                fs::write(run.join("new"), "whole").unwrap();
                fs::rename(run.join("new"), &path).unwrap();
            },
            &|| {
                let ahead = old + Duration::from_hours(1);
                File::options().write(true).open(&path).unwrap().set_modified(ahead).unwrap();
            },
        ];
        for spoil in spoil {
            assert!(note(true) && is_known(&me));
            spoil();
            assert!(!is_known(&me));
            assert!(note(false) && !is_known(&me), "what is not so is not noted");
        }
        assert!(note(true));
        let good = fs::read(run.join(KNOWN)).unwrap();
        let earlier = sealed(&me, PURPOSE, Known::read(run, &me).pack("an earlier boot")).unwrap();
        fs::write(run.join(KNOWN), earlier).unwrap();
        assert!(!is_known(&me), "after the machine was started again");
        for cut in 0..good.len() {
            fs::write(run.join(KNOWN), &good[..cut]).unwrap();
            assert!(!is_known(&me), "cut at {cut}");
            let mut spoilt = good.clone();
            spoilt[cut] ^= 1;
            fs::write(run.join(KNOWN), spoilt).unwrap();
            assert!(!is_known(&me), "spoilt at {cut}");
        }
    }
}
