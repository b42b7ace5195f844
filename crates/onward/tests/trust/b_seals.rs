//! Seals prove the start they belong to, and no other.

use std::{fs, path::Path};

use onward_core::{
    event::{Event, Record},
    journal::encode,
    mark::Nonce,
    time::Timestamp,
};

use crate::bench::{Bench, codes, id, sees_nobody_left, watched};

const STEPS: &str = "  - { id: s1, run: LOG; echo 1 > one, writes: [one] }\n\
    \x20 - { id: s2, run: 'LOG; test -e go', reads: [one] }\n";

/// A run that failed at `s2`, and its directory.
fn failed() -> (Bench, std::path::PathBuf) {
    let bench = Bench::new(STEPS);
    bench.exits("run w.yaml", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    // The supervisor writes its log until it has left.
    sees_nobody_left(&run);
    (bench, run)
}

fn is_of(event: &Event, step: &str) -> bool {
    matches!(event, Event::AttemptStarted(it) if it.step.as_str() == step)
}

/// Keeps the records before the first for which this is true.
fn cut(run: &Path, is_lost: impl Fn(&Event) -> bool) {
    let records = watched(run).records;
    let kept = records.iter().take_while(|it| !is_lost(&it.event));
    write(run, kept.cloned());
}

fn write(run: &Path, records: impl Iterator<Item = Record>) {
    let mut bytes = Vec::new();
    records.for_each(|record| encode(&record, &mut bytes).unwrap());
    fs::write(run.join("journal.jsonl"), bytes).unwrap();
}

#[test]
fn b3_a_seal_without_its_start_is_a_lost_tail_and_damage() {
    for lost in ["s1", "s2"] {
        let (bench, run) = failed();
        cut(&run, |event| is_of(event, lost));
        let before = fs::read(run.join("journal.jsonl")).unwrap();
        let plan = bench.plan(&run);
        assert!(codes(&plan).contains(&"journal-damaged"), "{plan:#}");
        assert_eq!(plan["can_resume"], false);
        let said = bench.exits(&format!("resume --no-input {}", id(&run)), 15);
        assert!(said.err.contains("onward repair"), "{said:?}");
        assert!(bench.onward("status").out.contains("lost tail"), "{:?}", bench.onward("status"));
        assert_eq!(fs::read(run.join("journal.jsonl")).unwrap(), before, "nothing was written");
        assert_eq!(bench.ran("s1"), [1]);
        let said = bench.exits(&format!("repair {} --yes", id(&run)), 0);
        assert!(said.err.contains("recorded by seal"), "{said:?}");
        bench.write("go", "");
        bench.exits(&format!("resume --no-input {}", id(&run)), 0);
        assert_eq!(bench.ran("s1"), [1], "its seal was adopted");
        bench.is_proved(&run);
    }
}

#[test]
fn b3_an_old_seal_never_proves_a_new_attempt() {
    let (bench, run) = failed();
    // The start was lost, and an attempt of the same number was announced in its place.
    let mut records = watched(&run).records;
    let at = records.iter().position(|it| is_of(&it.event, "s1")).unwrap();
    records.truncate(at + 1);
    if let Event::AttemptStarted(it) = &mut records[at].event {
        assert!(it.nonce.is_some());
        it.nonce = Some(Nonce::of("r-1", 9, 9, Timestamp::default()));
    }
    write(&run, records.into_iter());
    let log = run.join("exits.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let first = text.split_inclusive('\n').filter(|line| !line.contains("\"s2\""));
    fs::write(&log, first.collect::<String>()).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "s1"), "rerun", "{plan:#}");
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    assert_eq!(bench.ran("s1"), [1, 2]);
}

#[test]
fn b3_a_run_of_an_earlier_version_is_read_as_before() {
    let (bench, run) = failed();
    let mut records = watched(&run).records;
    let at = records.iter().position(|it| is_of(&it.event, "s1")).unwrap();
    records.truncate(at + 1);
    if let Event::AttemptStarted(it) = &mut records[at].event {
        it.nonce = None;
    }
    write(&run, records.into_iter());
    let log = run.join("exits.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let first = text.lines().filter(|line| !line.contains("\"s2\""));
    let lines: Vec<String> = first.map(without_mark).collect();
    assert!(text.contains("\"of\":"), "{text}");
    fs::write(&log, lines.concat()).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdict(&plan, "s1"), "adopt", "{plan:#}");
    bench.write("go", "");
    bench.exits(&format!("resume --no-input {}", id(&run)), 0);
    assert_eq!(bench.ran("s1"), [1]);
}

fn verdict<'p>(plan: &'p serde_json::Value, step: &str) -> &'p str {
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|row| row["step"] == step).unwrap();
    row["verdict"].as_str().unwrap()
}

/// A line of `exits.jsonl` as an earlier version wrote it.
fn without_mark(line: &str) -> String {
    let mut body = line[..line.rfind("\"crc\"").unwrap()].to_owned();
    if let Some(start) = body.find("\"of\":{") {
        let end = start + body[start..].find("},").unwrap() + 2;
        body.replace_range(start..end, "");
    }
    let mut crc = !0_u32;
    for byte in body.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    format!("{body}\"crc\":\"{:08x}\"}}\n", !crc)
}

#[test]
fn b4_a_damaged_seal_is_a_finding_and_asks() {
    let (bench, run) = failed();
    cut(&run, |event| matches!(event, Event::AttemptFinished(it) if it.step.as_str() == "s1"));
    let log = run.join("exits.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    // As the driver was killed before it heard of the end: nothing of `s2` is there yet.
    let lines = text.split_inclusive('\n').filter(|line| !line.contains("\"s2\""));
    let bytes = lines.collect::<String>().into_bytes();
    let journal = fs::read(run.join("journal.jsonl")).unwrap();
    let seal = String::from_utf8_lossy(&bytes).find("\"exited\"").unwrap();
    let offsets =
        [20, seal - 60, seal, seal + 12, bytes.len() - 20, bytes.len() - 3, bytes.len() - 1];
    for offset in offsets {
        let mut flipped = bytes.clone();
        flipped[offset] ^= 4;
        fs::write(&log, &flipped).unwrap();
        let plan = bench.plan(&run);
        let asks = codes(&plan).contains(&"seal-damaged");
        assert!(asks || verdict(&plan, "s1") == "adopt", "byte {offset}: {plan:#}");
        assert!(asks || offset < seal || offset + 1 == bytes.len(), "byte {offset}: {plan:#}");
        if asks {
            let said = bench.exits(&format!("resume --no-input {}", id(&run)), 16);
            assert!(said.err.contains("seal-damaged"), "{said:?}");
        }
        assert_eq!(bench.ran("s1"), [1], "byte {offset}");
        assert_eq!(fs::read(run.join("journal.jsonl")).unwrap(), journal);
    }
    let mut flipped = bytes;
    flipped[seal + 12] ^= 4;
    fs::write(&log, &flipped).unwrap();
    bench.write("go", "");
    bench.exits(&format!("resume --no-input --accept seal-damaged@s1 {}", id(&run)), 0);
    assert_eq!(bench.ran("s1"), [1, 2]);
}
