//! A journal's bytes, piece by piece: lines, and runs of NUL bytes between or after them.
//!
//! Invariant: the pieces, with the newlines between them, are all the bytes of the source in their
//! order; and no more than [`RECORD_BYTES_MAX`] of them, or one buffer, are held at a time.

use std::io::{self, Read};

use memchr::{memchr, memchr2};

use super::RECORD_BYTES_MAX;

const BUFFER_LEN: usize = 256 << 10;

/// What lies between two ends. A record never holds a newline or a NUL byte.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Line {
        bytes: &'a [u8],
        ended_by: EndedBy,
    },
    /// A line longer than any record; its bytes were passed over.
    TooLong {
        ended_by: EndedBy,
    },
    /// Space that was never written, or whose bytes never reached the disk.
    Nuls {
        count: u64,
        reach_the_end: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    Newline,
    /// The NUL bytes are the next piece.
    Nul,
    EndOfFile,
}

/// Where a piece stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Counted from 1, as editors do.
    pub(super) line: u64,
    /// Bytes before it.
    pub(super) offset: u64,
    /// Bytes before what follows it and its newline.
    pub(super) end: u64,
}

pub(super) struct Pieces<R> {
    source: R,
    buffer: Vec<u8>,
    /// The bytes read but not yet given out are `buffer[start..end]`.
    start: usize,
    end: usize,
    line: u64,
    offset: u64,
}

impl<R: Read> Pieces<R> {
    /// `source` must stand at `offset`, where line `line` begins.
    pub(super) fn new(source: R, line: u64, offset: u64) -> Self {
        Self { source, buffer: vec![0; BUFFER_LEN], start: 0, end: 0, line, offset }
    }

    /// The next piece without its newline, if it is a line that was read already and ended by one;
    /// NUL bytes may be in it.
    #[inline]
    pub(super) fn line_at_hand(&self) -> Option<&[u8]> {
        let unread = &self.buffer[self.start..self.end];
        let line = &unread[..memchr(b'\n', unread)?];
        (line.len() < RECORD_BYTES_MAX).then_some(line)
    }

    /// Steps over a line at hand, which is so long.
    #[inline]
    pub(super) fn pass_line(&mut self, len: usize) {
        self.pass(len);
        self.pass_newline(EndedBy::Newline);
    }

    pub(super) fn next(&mut self) -> io::Result<Option<(Span, Piece<'_>)>> {
        let (line, offset) = (self.line, self.offset);
        let Some((piece, end)) = self.piece()? else { return Ok(None) };
        Ok(Some((Span { line, offset, end }, piece)))
    }

    fn piece(&mut self) -> io::Result<Option<(Piece<'_>, u64)>> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(found) = memchr2(b'\n', 0, &unread[searched..]) {
                let len = searched + found;
                return match unread[len] {
                    b'\n' => Ok(Some(self.line(len, EndedBy::Newline))),
                    _ if len > 0 => Ok(Some(self.line(len, EndedBy::Nul))),
                    _ => self.nuls().map(Some),
                };
            }
            searched = unread.len();
            if searched >= RECORD_BYTES_MAX {
                return self.too_long().map(Some);
            }
            if !self.fill()? {
                return Ok((searched > 0).then(|| self.line(searched, EndedBy::EndOfFile)));
            }
        }
    }

    fn line(&mut self, len: usize, ended_by: EndedBy) -> (Piece<'_>, u64) {
        let bytes = self.start..self.start + len;
        self.pass(len);
        self.pass_newline(ended_by);
        // With its newline it would be longer than any record.
        if len >= RECORD_BYTES_MAX {
            return (Piece::TooLong { ended_by }, self.offset);
        }
        (Piece::Line { bytes: &self.buffer[bytes], ended_by }, self.offset)
    }

    fn nuls(&mut self) -> io::Result<(Piece<'static>, u64)> {
        let mut count = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            let run = unread.iter().take_while(|byte| **byte == 0).count();
            let is_over = run < unread.len();
            self.pass(run);
            count += run as u64;
            if is_over || !self.fill()? {
                return Ok((Piece::Nuls { count, reach_the_end: !is_over }, self.offset));
            }
        }
    }

    fn too_long(&mut self) -> io::Result<(Piece<'static>, u64)> {
        loop {
            let unread = &self.buffer[self.start..self.end];
            let found = memchr2(b'\n', 0, unread);
            let ended_by = found.map(|at| match unread[at] {
                b'\n' => EndedBy::Newline,
                _ => EndedBy::Nul,
            });
            self.pass(found.unwrap_or(unread.len()));
            if let Some(ended_by) = ended_by {
                self.pass_newline(ended_by);
                return Ok((Piece::TooLong { ended_by }, self.offset));
            }
            if !self.fill()? {
                return Ok((Piece::TooLong { ended_by: EndedBy::EndOfFile }, self.offset));
            }
        }
    }

    fn pass(&mut self, len: usize) {
        self.start += len;
        self.offset += len as u64;
    }

    fn pass_newline(&mut self, ended_by: EndedBy) {
        if ended_by == EndedBy::Newline {
            self.pass(1);
            self.line += 1;
        }
    }

    /// Reads more behind what is still unread; `false` at the end of the source.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.end * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(len) => {
                    self.end += len;
                    return Ok(len > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes out in small portions, with an interruption before each.
    struct Trickle<'a> {
        bytes: &'a [u8],
        portion: usize,
        interrupt: bool,
    }

    impl Read for Trickle<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.interrupt = !self.interrupt;
            if self.interrupt {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let portion = self.portion.min(into.len());
            self.bytes
                .take(portion as u64)
                .read(into)
                .inspect(|len| self.bytes = &self.bytes[*len..])
        }
    }

    /// `3+12 abc newline`: a line of three bytes begins on line 3 at offset 12.
    fn told(bytes: &[u8], portion: usize) -> Vec<String> {
        let mut pieces = Pieces::new(Trickle { bytes, portion, interrupt: false }, 1, 0);
        let (mut all, mut last_end) = (Vec::new(), 0);
        while let Some((Span { line, offset, end }, piece)) = pieces.next().unwrap() {
            assert_eq!(offset, last_end);
            last_end = end;
            let what = match piece {
                Piece::Line { bytes, ended_by } => {
                    format!("{} {ended_by:?}", String::from_utf8_lossy(bytes))
                }
                Piece::TooLong { ended_by } => format!("TooLong {ended_by:?}"),
                Piece::Nuls { count, reach_the_end } => format!("Nuls {count} {reach_the_end}"),
            };
            all.push(format!("{line}+{offset} {what}"));
        }
        assert_eq!(last_end, bytes.len() as u64);
        all
    }

    #[test]
    fn lines_and_nuls_are_told_apart_however_the_bytes_arrive() {
        let bytes = b"ab\n\ncd\0\0\0ef\n\0\ngh";
        for portion in 1..=bytes.len() {
            assert_eq!(
                told(bytes, portion),
                [
                    "1+0 ab Newline",
                    "2+3  Newline",
                    "3+4 cd Nul",
                    "3+6 Nuls 3 false",
                    "3+9 ef Newline",
                    "4+12 Nuls 1 false",
                    "4+13  Newline",
                    "5+14 gh EndOfFile",
                ]
            );
        }
        assert_eq!(told(b"a\n\0\0", 3), ["1+0 a Newline", "2+2 Nuls 2 true"]);
        assert_eq!(told(b"", 1), Vec::<String>::new());
    }

    #[test]
    fn a_line_may_be_longer_than_the_buffer_but_not_than_any_record() {
        let mut bytes = vec![b'x'; BUFFER_LEN * 3 + 5];
        bytes.extend(b"\ny\n");
        let told_last = |bytes: &[u8]| told(bytes, 1 << 20).pop().unwrap();
        assert_eq!(told_last(&bytes), format!("2+{} y Newline", BUFFER_LEN * 3 + 6));

        for (len, too_long) in [(RECORD_BYTES_MAX - 1, false), (RECORD_BYTES_MAX, true)] {
            for (end, name) in [(&b"\ny\n"[..], "Newline"), (b"\0y\n", "Nul"), (b"", "EndOfFile")] {
                let mut bytes = vec![b'x'; len];
                bytes.extend(end);
                let all = told(&bytes, BUFFER_LEN);
                assert_eq!(all[0] == format!("1+0 TooLong {name}"), too_long, "{len} {name}");
                assert!(end.is_empty() || all.last().unwrap().ends_with("y Newline"));
            }
        }
    }
}
