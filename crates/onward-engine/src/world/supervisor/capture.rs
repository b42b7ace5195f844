//! Where one output stream of one attempt goes.
//!
//! Invariant: no file before the first byte; never more than the bound plus one marker line.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

#[derive(Debug, Default)]
pub(super) struct Capture {
    file: Option<File>,
    bytes: u64,
    /// Nothing more is kept: the bound was reached or the file could not be written.
    closed: bool,
}

impl Capture {
    /// Appends what came, making the file when this is the first byte of the attempt.
    pub(super) fn take(
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
    let open = || OpenOptions::new().append(true).create(true).open(path);
    match (open(), path.parent()) {
        (Err(error), Some(dir)) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(dir)?;
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
        capture.take(b"", 8, path).unwrap();
        assert!(!capture.sync().unwrap() && !path().exists());
        capture.take(b"12345", 8, path).unwrap();
        capture.take(b"678", 8, path).unwrap();
        assert_eq!(std::fs::read(path()).unwrap(), b"12345678", "exactly full is not cut");
        capture.take(b"9", 8, path).unwrap();
        capture.take(b"10", 8, path).unwrap();
        let text = std::fs::read_to_string(path()).unwrap();
        assert_eq!(text, "12345678\n[onward: cut after 8 bytes]\n");
        assert!(capture.sync().unwrap());
    }

    #[test]
    fn a_stream_that_cannot_be_written_complains_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = || dir.path().to_owned();
        let mut capture = Capture::default();
        assert!(capture.take(b"x", 8, path).is_err());
        assert!(capture.take(b"y", 8, path).is_ok());
    }
}
