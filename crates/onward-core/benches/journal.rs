//! How fast the journal is written and read, in bytes per second, on one core.
//!
//! The sample is 200,000 events in the mix of a large run: each step starts with its key parts and
//! command line and finishes with one proved file. The limits are what no reader can do without:
//! to copy the bytes out of the page cache, and to check the sum of each line.

use std::{hint::black_box, io::Read as _};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, Mode, Record, RunOpened},
    evidence::{Ending, Evidence, FileProof, Outcome, Stat},
    journal::{FORMAT, Reader, decode_line, encode},
    kept::Kept,
    key::{Key, KeyParts},
    state::State,
    time::Timestamp,
};

const STEPS: u64 = 100_000;

fn opened() -> Event {
    Event::RunOpened(Box::new(RunOpened {
        format: FORMAT,
        run: "bench-20261115-k3fq".parse().expect("a run id"),
        workflow: "bench".into(),
        workflow_hash: Digest::of(b"bench"),
        file: None,
        inputs: [].into(),
        git: None,
        engine: "0.1.0".into(),
        boot_id: "boot".into(),
        mode: Mode::Autopilot,
    }))
}

fn step(number: u64) -> Address {
    Address::from_text(&format!("layer[{}]/compile[{number}]", number / 1000))
}

fn started(number: u64) -> Event {
    let command = format!("cc -O2 -c src/part{number}.c -o out/part{number}.o");
    let needs = [(step(number / 2).to_string(), Digest::of(&number.to_le_bytes()))];
    let key = KeyParts {
        definition: [("run".to_owned(), command.clone())].into(),
        needs: needs.into(),
        ..KeyParts::default()
    };
    let argv: Vec<_> = command.split(' ').map(str::to_owned).collect();
    Event::AttemptStarted(Box::new(AttemptStarted {
        key: Key::from(&key),
        argv: Kept::from(&argv),
        ..AttemptStarted::bare(step(number), 1)
    }))
}

fn finished(number: u64) -> Event {
    let stat = Stat { size: 4096 + number, mtime_ns: 1_794_766_801_123_456_789, inode: number };
    let hash = Digest::of(&number.to_be_bytes());
    let files = vec![FileProof { path: format!("out/part{number}.o"), hash, stat }];
    Event::AttemptFinished(Box::new(AttemptFinished {
        step: step(number),
        attempt: 1,
        outcome: Outcome::Done,
        ending: Some(Ending::Exited { code: 0 }),
        evidence: Evidence { files, ..Evidence::default() },
        result: None,
        stdout: None,
        after: None,
        footprint: vec![],
        tolerated: false,
        head: None,
        ended: None,
        waited: 0,
    }))
}

fn sample() -> Vec<Record> {
    let steps = (0..STEPS).flat_map(|number| [started(number), finished(number)]);
    let events = std::iter::once(opened()).chain(steps);
    let records = (0_u64..).zip(events).map(|(seq, event)| {
        let at = Timestamp::from_micros(1_794_766_801_123_456 + seq.cast_signed() * 977);
        Record { seq, at, epoch: 1, batch: seq / 8, event }
    });
    records.collect()
}

fn journal(c: &mut Criterion) {
    let records = sample();
    let mut bytes = Vec::new();
    for record in &records {
        encode(record, &mut bytes).expect("a small record");
    }
    let mut group = c.benchmark_group("journal");
    group.sample_size(10).throughput(Throughput::Bytes(bytes.len() as u64));

    let mut buffer = vec![0; 256 << 10];
    group.bench_function("limit: copy", |b| {
        b.iter(|| {
            let mut source = bytes.as_slice();
            while source.read(&mut buffer).expect("bytes") > 0 {
                black_box(&buffer);
            }
        });
    });
    let lines: Vec<_> = bytes.trim_ascii_end().split(|byte| *byte == b'\n').collect();
    group.bench_function("limit: checksums", |b| {
        b.iter(|| {
            for line in &lines {
                black_box(crc32fast::hash(line));
            }
        });
    });
    let mut out = Vec::with_capacity(bytes.len());
    group.bench_function("encode", |b| {
        b.iter(|| {
            out.clear();
            for record in &records {
                encode(record, &mut out).expect("a small record");
            }
            black_box(out.len())
        });
    });
    group.bench_function("decode lines", |b| {
        b.iter(|| {
            for line in &lines {
                black_box(decode_line(line).expect("a record"));
            }
        });
    });
    group.bench_function("read", |b| {
        b.iter(|| {
            let mut reader = Reader::new(bytes.as_slice());
            while let Some(record) = reader.next_record().expect("a journal") {
                black_box(record);
            }
            reader.mark().next_seq
        });
    });
    // What every resume does: bytes to state, checksums verified.
    group.bench_function("fold", |b| {
        b.iter(|| {
            let mut reader = Reader::new(bytes.as_slice());
            let mut state = State::default();
            while let Some(record) = reader.next_record().expect("a journal") {
                state.after(record).expect("a possible journal");
            }
            black_box(state.steps.len())
        });
    });
    group.finish();
}

criterion_group!(benches, journal);
criterion_main!(benches);
