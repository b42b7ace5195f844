//! A journal that lost its tail, at two hundred places: no finished step runs again unless the
//! plan, or a refusal, has named it first.
//!
//! `ONWARD_CUTS=2000` tries so many places, `ONWARD_CUTS_SEED=7` others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    bench::{Bench, id, kill_all, sees, watched},
    chance::{Chance, asked_for},
};

/// Over all tests of this file.
const CUTS: u64 = 200;

/// Every kind of step that a journal tells of in its own way. The last but one waits while there is
/// a file `wait`.
const STEPS: &str = "  - { id: first, run: 'LOG; echo 1 > first.o', writes: [first.o] }\n\
    \x20 - { id: many, each: [x, y, z], run: 'LOG; echo {{ item }} > {{ item }}.o', \
    writes: ['{{ item }}.o'] }\n\
    \x20 - { id: turn, repeat: { max: 2 }, steps: [ { id: note, run: 'LOG; echo {{ turn }}' } ] }\n\
    \x20 - { id: told, run: 'LOG; echo 5 > $ONWARD_RESULT' }\n\
    \x20 - { id: other, needs: [first], run: 'LOG; echo other' }\n\
    \x20 - { id: slow, needs: [told, other], run: 'LOG; echo > begun.o; \
    while test -e wait; do sleep 0.02; done' }\n\
    \x20 - { id: last, run: 'LOG; cat first.o > last.o', reads: [first.o], writes: [last.o] }\n";

struct Saved {
    bench: Bench,
    run: PathBuf,
    copy: TempDir,
    journal: Vec<u8>,
    finished: BTreeSet<String>,
}

impl Saved {
    /// A run that came to its end.
    fn whole() -> Self {
        let bench = Bench::new(STEPS);
        bench.exits("run w.yaml", 0);
        let run = bench.project().runs().unwrap().remove(0).dir;
        Self::of(bench, run)
    }

    /// One whose engine, supervisor and children were killed.
    fn half() -> Self {
        let bench = Bench::new(STEPS);
        bench.write("wait", "");
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun.o"));
        engine.kill().unwrap();
        kill_all(&run);
        fs::remove_file(bench.path("wait")).unwrap();
        Self::of(bench, run)
    }

    fn of(bench: Bench, run: PathBuf) -> Self {
        let copy = bench.copied();
        let bytes = fs::read(run.join("journal.jsonl")).unwrap();
        // A killed driver leaves room behind the last line.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
        let finished = watched(&run).finished().into_iter().map(|(step, _)| step).collect();
        Self { bench, run, copy, journal: bytes[..end].to_vec(), finished }
    }

    fn cut(&self, length: usize) {
        self.bench.restore(&self.copy);
        fs::write(self.run.join("journal.jsonl"), &self.journal[..length]).unwrap();
    }

    /// What was finished before the cut, ran again after it, and was not named first.
    fn unnamed(&self, length: usize) -> Vec<String> {
        self.cut(length);
        let before = self.bench.ledger().0;
        let planned = self.bench.onward(&format!("plan --json {}", id(&self.run)));
        let said = self.bench.onward(&format!("resume --no-input {}", id(&self.run)));
        let after = self.bench.ledger().0;
        let count = |of: &BTreeMap<String, Vec<u32>>, step: &str| of.get(step).map_or(0, Vec::len);
        let again = |step: &&String| count(&after, step) > count(&before, step);
        let named = |step: &&String| planned.code == 0 && is_named(&planned.json(), step);
        let all: Vec<String> =
            self.finished.iter().filter(again).filter(|it| !named(it)).cloned().collect();
        if said.code == 15 || said.code == 16 {
            assert_eq!(after, before, "refused, and ran: {said:?}");
        }
        assert!([0, 15, 16, 17].contains(&said.code), "cut at {length}: {said:?}");
        all
    }
}

/// Said to have been done before: a row that runs it *again*, or a finding that speaks of it.
fn is_named(plan: &Value, step: &str) -> bool {
    let rows = plan["steps"].as_array().unwrap();
    let again = rows.iter().any(|row| row["step"] == step && row["verdict"] == "rerun");
    let speaks = |it: &Value| {
        it["step"] == step || it["message"].as_str().is_some_and(|text| text.contains(step))
    };
    again || plan["findings"].as_array().unwrap().iter().any(speaks)
}

/// Nothing is left, a byte, the last byte is gone; half of the first record and of the last one,
/// each without its newline, each whole, and with the first byte of the next.
fn corners(journal: &[u8]) -> Vec<usize> {
    let ends: Vec<usize> =
        journal.iter().enumerate().filter(|it| *it.1 == b'\n').map(|it| it.0).collect();
    let (first, last) = (ends[0], ends[ends.len() - 2]);
    let around = |end: usize| [end, end + 1, end + 2];
    let halves = [first / 2, usize::midpoint(last, journal.len())];
    let all = [0, 1, journal.len() - 1].into_iter().chain(halves);
    all.chain([first, last].into_iter().flat_map(around)).collect()
}

/// A quarter of all places: the corners first, then any.
fn cuts(saved: &Saved, part: u64) {
    let seed = asked_for("ONWARD_CUTS_SEED").unwrap_or(1);
    let mut chance = Chance(seed * 4 + part);
    let any = || usize::try_from(chance.below(saved.journal.len() as u64)).unwrap();
    let places = corners(&saved.journal).into_iter().chain(std::iter::repeat_with(any));
    let count = usize::try_from(asked_for("ONWARD_CUTS").unwrap_or(CUTS) / 4).unwrap();
    for length in places.take(count) {
        let unnamed = saved.unnamed(length);
        assert_eq!(unnamed, [""; 0], "seed {seed}, cut at {length}");
    }
}

#[test]
fn b3_no_finished_step_of_a_cut_journal_runs_again_unnamed_1() {
    cuts(&Saved::whole(), 0);
}

#[test]
fn b3_no_finished_step_of_a_cut_journal_runs_again_unnamed_2() {
    cuts(&Saved::whole(), 1);
}

#[test]
fn b3_no_finished_step_of_a_cut_journal_runs_again_unnamed_3() {
    cuts(&Saved::half(), 2);
}

#[test]
fn b3_no_finished_step_of_a_cut_journal_runs_again_unnamed_4() {
    cuts(&Saved::half(), 3);
}
