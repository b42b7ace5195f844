//! How long a journal of so many events takes to fold, every sum verified: `fold_rate EVENTS`.
//!
//! Prints seconds, the kilobytes that the state takes at the peak beside the journal itself, and
//! the bytes of the journal. Up to 100,000 steps start and finish; all other events are notes, as a
//! long run leaves them.

use std::{io::Write as _, time::Duration};

use onward_core::{
    address::Address,
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, Mode, Record, RunOpened},
    evidence::{Ending, Evidence, FileProof, Outcome, Stat},
    journal::{FORMAT, Reader, encode},
    kept::Kept,
    key::{Key, KeyParts},
    state::State,
    time::Timestamp,
};
use rustix::time::{ClockId, clock_gettime};

const STEPS_MAX: u64 = 100_000;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let events: u64 = std::env::args().nth(1).ok_or("say how many events")?.parse()?;
    let journal = journal(events)?;
    let (before_kb, began) = (peak_kb(), seconds_now());
    let mut reader = Reader::new(journal.as_slice());
    let mut state = State::default();
    while let Some(record) = reader.next_record()? {
        state.after(record)?;
    }
    let seconds = seconds_now() - began;
    let state_kb = peak_kb().saturating_sub(before_kb);
    writeln!(std::io::stdout(), "{seconds:.6} {state_kb} {}", journal.len())?;
    Ok(())
}

fn seconds_now() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0)).as_secs_f64()
}

/// The largest this process ever was.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    let number = line.and_then(|it| it.split_whitespace().next());
    number.and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn journal(events: u64) -> Result<Vec<u8>, Failure> {
    let steps = (events.saturating_sub(1) / 2).min(STEPS_MAX);
    let mut to = Vec::new();
    for seq in 0..events {
        let event = match seq.checked_sub(1) {
            None => opened(),
            Some(at) if at / 2 < steps && at % 2 == 0 => started(at / 2),
            Some(at) if at / 2 < steps => finished(at / 2),
            Some(at) => {
                let text = format!("waited for the provider, {at} so far");
                Event::Note { text, step: Some(step(at % steps.max(1))) }
            }
        };
        let at = Timestamp::from_micros(1_794_766_801_123_456 + seq.cast_signed() * 977);
        let record = Record { seq, at, epoch: 1, batch: seq / 8, event };
        encode(&record, &mut to)?;
    }
    to.shrink_to_fit();
    Ok(to)
}

fn step(number: u64) -> Address {
    Address::from_text(&format!("layer[{}]/compile[{number}]", number / 1000))
}

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
