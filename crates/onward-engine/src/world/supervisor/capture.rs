//! Where one output stream of one attempt goes.
//!
//! Invariant: no file before the first byte; never more than the bound plus one marker line; no
//! secret that the redactor knows. A word that is not over yet is held back.

use crate::world::{
    open::{self, To},
    secrets::Redactor,
};
use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

#[derive(Debug, Default)]
pub(super) struct Capture {
    file: Option<File>,
    bytes: u64,
    /// What came last, and may be the beginning of a secret.
    held: Vec<u8>,
    /// Nothing more is kept: the bound was reached or the file could not be written.
    closed: bool,
}

impl Capture {
    /// Appends what came, making the file when this is the first byte of the attempt.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        bytes_max: u64,
        redactor: &Redactor,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        self.held.extend_from_slice(bytes);
        let rest = self.held.split_off(redactor.judged(&self.held));
        let judged = std::mem::replace(&mut self.held, rest);
        self.put(&redactor.bytes(&judged), bytes_max, path)
    }

    /// Nothing more comes.
    pub(super) fn end(
        &mut self,
        bytes_max: u64,
        redactor: &Redactor,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.put(&redactor.bytes(&held), bytes_max, path)
    }

    fn put(
        &mut self,
        bytes: &[u8],
        bytes_max: u64,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<()> {
        if self.closed || bytes.is_empty() {
            return Ok(());
        }
        let written = self.append(bytes, bytes_max, path);
        self.closed |= written.is_err();
        written
    }

    fn append(
        &mut self,
        bytes: &[u8],
        bytes_max: u64,
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create(&path())?),
        };
        let room = usize::try_from(bytes_max.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        file.write_all(kept)?;
        self.bytes += kept.len() as u64;
        if kept.len() < bytes.len() {
            self.closed = true;
            writeln!(file, "\n[onward: cut after {bytes_max} bytes]")?;
        }
        Ok(())
    }

    /// Says whether there was a file to make durable.
    pub(super) fn sync(&self) -> io::Result<bool> {
        self.file.as_ref().map_or(Ok(false), |file| file.sync_data().map(|()| true))
    }
}

fn create(path: &Path) -> io::Result<File> {
    let open = || open::at(path, To::Append);
    match (open(), path.parent()) {
        (Err(error), Some(dir)) if error.kind() == io::ErrorKind::NotFound => {
            open::make_dir(dir)?;
            open()
        }
        (opened, _) => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_by_the_first_byte_and_stops_at_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = || dir.path().join("out/a.1.out");
        let mut capture = Capture::default();
        let none = &Redactor::default();
        capture.take(b"", 8, none, path).unwrap();
        assert!(!capture.sync().unwrap() && !path().exists());
        capture.take(b"1234 ", 8, none, path).unwrap();
        capture.take(b"67 ", 8, none, path).unwrap();
        assert_eq!(std::fs::read(path()).unwrap(), b"1234 67 ", "exactly full is not cut");
        capture.take(b"9", 8, none, path).unwrap();
        capture.end(8, none, path).unwrap();
        capture.take(b"10", 8, none, path).unwrap();
        let text = std::fs::read_to_string(path()).unwrap();
        assert_eq!(text, "1234 67 \n[onward: cut after 8 bytes]\n");
        assert!(capture.sync().unwrap());
    }

    #[test]
    fn a_stream_that_cannot_be_written_complains_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = || dir.path().to_owned();
        let mut capture = Capture::default();
        let none = &Redactor::default();
        assert!(capture.take(b"x ", 8, none, path).is_err());
        assert!(capture.take(b"y ", 8, none, path).is_ok());
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = || dir.path().join("out/a.1.out");
        let redactor = Redactor::of_environment(&[("A_TOKEN".into(), "tok-5f0c9a77d1".into())]);
        let mut capture = Capture::default();
        for piece in ["it is to", "k-5f0c9a", "77d1, and tok-5f0c9a7", "7d1"] {
            capture.take(piece.as_bytes(), 100, &redactor, path).unwrap();
        }
        capture.end(100, &redactor, path).unwrap();
        let text = std::fs::read_to_string(path()).unwrap();
        assert_eq!(text, "it is [redacted:A_TOKEN], and [redacted:A_TOKEN]");
    }
}
