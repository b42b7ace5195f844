//! Journals larger than memory should hold.

use std::io::{self, Read};

use super::{line, opened, record, turned};
use crate::{
    journal::{Fault, RECORD_BYTES_MAX, Reader, Rest},
    time::Timestamp,
};

/// Makes its bytes when asked for them, and never holds more than one line.
struct Generated<F> {
    line: F,
    number: u64,
    current: io::Cursor<Vec<u8>>,
    largest_request: usize,
}

impl<F: FnMut(u64) -> Option<Vec<u8>>> Read for &mut Generated<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.largest_request = self.largest_request.max(into.len());
        loop {
            match self.current.read(into)? {
                0 => {}
                len => return Ok(len),
            }
            let Some(line) = (self.line)(self.number) else { return Ok(0) };
            self.number += 1;
            self.current = io::Cursor::new(line);
        }
    }
}

fn generated<F: FnMut(u64) -> Option<Vec<u8>>>(line: F) -> Generated<F> {
    Generated { line, number: 0, current: io::Cursor::default(), largest_request: 0 }
}

#[test]
fn a_journal_of_a_gigabyte_is_read_in_bounded_memory() {
    let text = "x".repeat(1 << 20);
    // As `encode` would write it; a test without optimisation has no time for a gigabyte of that.
    let note = |seq: u64| {
        let at = Timestamp::default();
        let head = format!(r#"{{"seq":{seq},"at":"{at}","epoch":1,"batch":{seq},"kind":"note""#);
        let body = [&head, r#","text":""#, &text, "\","].concat();
        let crc = crc32fast::hash(body.as_bytes());
        format!("{body}\"crc\":\"{crc:08x}\"}}\n").into_bytes()
    };
    let mut source = generated(|seq| match seq {
        0 => Some(line(&record(0, 1, 0, opened(1)))),
        1..=1024 => Some(note(seq)),
        _ => None,
    });
    let mut reader = Reader::new(&mut source);
    let mut records = 0;
    while reader.next_record().unwrap().is_some() {
        records += 1;
    }
    let tail = reader.tail().unwrap();
    assert_eq!((records, &tail.rest), (1025, &Rest::Clean));
    assert!(tail.mark.offset > 1 << 30);
    assert!(source.largest_request <= 2 << 20, "{}", source.largest_request);
}

#[test]
fn a_gigabyte_without_a_newline_is_one_unreadable_line() {
    let chunk = vec![b'x'; 4 << 20];
    let mut source = generated(|number| match number {
        0 => Some(line(&record(0, 1, 0, opened(1)))),
        1..=256 => Some(chunk.clone()),
        257 => Some(b"\n".to_vec()),
        258 => Some(line(&record(2, 1, 1, turned(1)))),
        259 => Some(line(&record(3, 1, 2, turned(2)))),
        _ => None,
    });
    let tail = Reader::new(&mut source).tail().unwrap();
    let Rest::Damaged(lines) = tail.rest else { panic!("{:?}", tail.rest) };
    assert_eq!(lines.listed.len(), 1);
    assert_eq!((lines.listed[0].line, &lines.listed[0].why), (2, &Fault::TooLong));
    assert!(source.largest_request <= 2 * RECORD_BYTES_MAX, "{}", source.largest_request);
}
