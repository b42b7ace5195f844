//! Repair: whatever part of a journal is lost, finished steps are kept and the run completes.

use std::{fs, path::PathBuf};

use crate::{
    bench::{Bench, id, journal, kill_all, sees},
    json, texts,
};

/// A list that fans out, a loop over one file, a gate, and an end that fails until it is allowed.
const STEPS: &str = "  - id: plan
    run: 'LOG; echo \"[\\\"x\\\", \\\"y\\\"]\" > $ONWARD_RESULT'
    result: { schema: list.json }
  - id: look
    each: '{{ steps.plan.result }}'
    run: 'LOG; echo {{ item }} > {{ item }}'
    writes: ['{{ item }}']
  - id: round
    repeat: { max: 3, until: '{{ round >= 2 }}' }
    steps:
      - { id: edit, run: 'LOG; echo {{ round }} > book', writes: [book] }
      - { id: judge, run: 'LOG; cat book', reads: [book] }
  - { id: ask, gate: Go on?, shows: [book] }
  - { id: print, run: 'LOG; cp book printed', writes: [printed], check: test -s printed }
  - { id: last, run: 'LOG; test -e allowed' }
";

/// A run that failed at its last step, and everything there is then, to be had again.
struct Story {
    bench: Bench,
    run: PathBuf,
    saved: tempfile::TempDir,
}

impl Story {
    fn new() -> Self {
        let bench = Bench::new("");
        fs::write(bench.path("list.json"), "{\"type\": \"array\"}").unwrap();
        bench.workflow("w.yaml", "limits: { parallel: 1 }\nsteps:", STEPS);
        bench.exits("run w.yaml", 11);
        bench.exits("approve", 0);
        bench.exits("resume", 10);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let saved = bench.copied();
        Self { bench, run, saved }
    }

    fn lines(&self) -> Vec<Vec<u8>> {
        let bytes = fs::read(self.run.join("journal.jsonl")).unwrap();
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    }

    fn write(&self, lines: &[Vec<u8>]) {
        fs::write(self.run.join("journal.jsonl"), lines.concat()).unwrap();
    }

    /// Repairs, goes on to the end, and sees that nothing which was finished ran again.
    #[track_caller]
    fn ends_well(&self, what: &str) {
        let id = id(&self.run);
        let said = self.bench.exits(&format!("repair {id} --yes"), 0);
        fs::write(self.bench.path("allowed"), "").unwrap();
        let mut went = self.bench.onward(&format!("resume {id}"));
        if went.code == 11 {
            // The answer to the gate was lost with the journal; the same one keeps what followed.
            self.bench.exits(&format!("approve {id}"), 0);
            went = self.bench.onward(&format!("resume {id}"));
        }
        assert_eq!(went.code, 0, "{what}: {went:#?}\n{said:#?}");
        let ledger = self.bench.ledger().0;
        let (last, others): (Vec<_>, Vec<_>) = ledger.iter().partition(|(step, _)| *step == "last");
        assert_eq!(last[0].1, &[1, 2], "{what}: {said:#?}");
        assert_eq!(others.len(), 8, "{ledger:?}");
        for (step, ran) in others {
            assert_eq!(ran, &[1], "{what}: {step}: {said:#?}\n{went:#?}");
        }
    }
}

#[test]
fn any_line_of_the_journal_can_be_damaged() {
    let story = Story::new();
    let count = story.lines().len();
    // The end that a crash may leave is no damage: the last batch is cut off.
    for line in 0..count - 1 {
        story.bench.restore(&story.saved);
        let mut lines = story.lines();
        let middle = lines[line].len() / 2;
        lines[line][middle] ^= 1;
        story.write(&lines);
        let plan = story.bench.onward(&format!("resume {}", id(&story.run)));
        assert_ne!(plan.code, 0, "a damaged journal is not gone on with");
        story.ends_well(&format!("line {line} flipped"));
        assert_eq!(fs::read(story.run.join("journal.damaged-1.jsonl")).unwrap(), lines.concat());
    }
}

#[test]
fn the_middle_of_the_journal_can_be_gone() {
    let story = Story::new();
    let count = story.lines().len();
    for (from, to) in [(1, count - 1), (1, count / 2), (count / 2, count - 2), (4, 9)] {
        story.bench.restore(&story.saved);
        let mut lines = story.lines();
        lines.drain(from..to);
        story.write(&lines);
        story.ends_well(&format!("lines {from} to {to} deleted"));
    }
}

#[test]
fn the_whole_journal_can_be_gone() {
    let story = Story::new();
    let journal = story.run.join("journal.jsonl");
    fs::remove_file(&journal).unwrap();
    let said = story.bench.exits(&format!("resume {}", id(&story.run)), 15);
    assert!(said.err.contains("onward repair"), "{said:?}");
    let shown = json(&story.bench, "repair", "repair", 16);
    assert_eq!((&shown["lost"], &shown["adopted"]), (&true.into(), &false.into()));
    assert_eq!(shown["opened_from"], "opened.json");
    assert!(!journal.exists(), "nothing is written before a yes");
    let events = shown["rebuilt"].as_array().unwrap();
    let sealed = events.iter().filter(|it| it["kind"] == "attempt.finished");
    let mut count = 0;
    for event in sealed {
        assert_eq!((&event["source"], &event["certainty"]), (&"seal".into(), &"recorded".into()));
        count += 1;
    }
    assert_eq!(count, 9, "{shown:#}");
    let gate = shown["steps"].as_array().unwrap().iter().find(|it| it["step"] == "ask").unwrap();
    assert_eq!(gate["fate"], "asked");
    story.ends_well("the journal deleted");
    let text = self::journal(&story.run);
    assert!(text.contains("\"kind\":\"journal.repaired\""), "{text}");
    assert!(text.contains("\"source\":\"seal\",\"certainty\":\"recorded\""), "{text}");
    assert!(text.contains("\"source\":\"workflow\",\"certainty\":\"inferred\""), "{text}");
}

#[test]
fn an_answer_other_than_the_first_makes_what_rested_on_it_run_again() {
    let story = Story::new();
    fs::remove_file(story.run.join("journal.jsonl")).unwrap();
    let id = id(&story.run);
    story.bench.exits(&format!("repair {id} --yes"), 0);
    fs::write(story.bench.path("allowed"), "").unwrap();
    story.bench.exits(&format!("resume {id}"), 11);
    story.bench.exits(&format!("approve {id} --comment carefully"), 0);
    story.bench.exits(&format!("resume {id}"), 0);
    assert_eq!(story.bench.ran("print"), [1, 2]);
    assert_eq!(story.bench.ran("look[x]"), [1]);
}

#[test]
fn without_seals_only_what_speaks_for_itself_is_kept() {
    let story = Story::new();
    let id = id(&story.run);
    for lost in ["journal.jsonl", "exits.jsonl"] {
        fs::remove_file(story.run.join(lost)).unwrap();
    }
    let shown = json(&story.bench, "repair", "repair", 16);
    let by = |kind: &str| -> Vec<(String, String)> {
        let events = shown["rebuilt"].as_array().unwrap().iter();
        let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
        let of_kind = events.filter(|it| it["kind"] == kind);
        of_kind.map(|it| (text(&it["step"]), text(&it["source"]))).collect()
    };
    // `plan` left a result that fits; the others left files that anybody could have made.
    assert_eq!(by("attempt.adopted"), [("plan".to_owned(), "result".to_owned())], "{shown:#}");
    story.bench.exits(&format!("repair {id} --yes"), 0);
    fs::write(story.bench.path("allowed"), "").unwrap();
    story.bench.exits(&format!("resume {id}"), 11);
    story.bench.exits(&format!("approve {id}"), 0);
    story.bench.exits(&format!("resume {id}"), 0);
    assert_eq!(story.bench.ran("plan"), [1]);
    // What printed something left a trace of its number; what did not starts over.
    assert_eq!(story.bench.ran("round[1]/judge"), [1, 2]);
    assert_eq!(story.bench.ran("look[x]"), [1, 1]);
}

#[test]
fn what_contradicts_itself_runs_again() {
    let story = Story::new();
    let id = id(&story.run);
    // The journal says that it was done, the supervisor that it failed.
    let seals = fs::read_to_string(story.run.join("exits.jsonl")).unwrap();
    let forged: String = seals.lines().map(|line| forged(line, "look[x]")).collect();
    fs::write(story.run.join("exits.jsonl"), forged).unwrap();
    let mut lines = story.lines();
    lines.remove(2);
    story.write(&lines);
    let shown = json(&story.bench, "repair", "repair", 16);
    let dropped = shown["dropped"].as_array().unwrap();
    assert_eq!(dropped[0]["why"], "its seal says that it failed", "{shown:#}");
    story.bench.exits(&format!("repair {id} --yes"), 0);
    fs::write(story.bench.path("allowed"), "").unwrap();
    story.bench.exits(&format!("resume {id}"), 0);
    assert_eq!(story.bench.ran("look[x]"), [1, 2]);
    assert_eq!(story.bench.ran("look[y]"), [1]);
}

/// The line with another exit code, under a right checksum, if it is the seal of `step`.
fn forged(line: &str, step: &str) -> String {
    let is_seal = line.starts_with("{\"kind\":\"exited\"") && line.contains(&format!("\"{step}\""));
    if !is_seal {
        return format!("{line}\n");
    }
    let body = line.replace("\"code\":0", "\"code\":3");
    let body = body.rsplit_once("\"crc\"").unwrap().0;
    format!("{body}\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
}

#[test]
fn an_input_that_nothing_has_kept_is_asked_for() {
    let bench = Bench::new("");
    let head = "inputs: { topic: { type: string }, more: { type: string, default: x } }\nsteps:";
    bench.workflow("w.yaml", head, "  - { id: one, run: 'LOG; echo {{ inputs.topic }} > one' }\n");
    bench.exits("run w.yaml --input topic=bees", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    for lost in ["journal.jsonl", "opened.json"] {
        fs::remove_file(run.join(lost)).unwrap();
    }
    let said = bench.exits("repair", 16);
    assert!(said.err.contains("--input topic=VALUE"), "{said:?}");
    bench.exits("repair --input topic=bees --yes", 0);
    assert!(journal(&run).contains("\"topic\":\"bees\""));
    bench.exits("resume", 0);
    assert_eq!(bench.ran("one"), [1]);
}

#[test]
fn a_whole_journal_needs_no_repair_and_a_living_run_gets_none() {
    let bench = Bench::new("  - { id: one, run: 'LOG; echo > begun; sleep 1000' }\n");
    bench.exits("repair", 17);
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    bench.exits("repair", 14);
    engine.kill().unwrap();
    let said = bench.exits("repair", 14);
    assert!(said.err.contains("still alive"), "{said:?}");
    kill_all(&run);
    let before = journal(&run);
    let said = bench.exits("repair", 0);
    assert!(said.err.contains("nothing to repair"), "{said:?}");
    let shown = json(&bench, "repair", "repair", 0);
    assert_eq!(shown["needed"], false);
    assert_eq!(texts(&serde_json::json!([])), [""; 0]);
    assert_eq!(journal(&run), before);
    bench.exits("repair nothing", 17);
}

#[test]
fn a_step_that_was_under_way_when_its_start_was_lost_runs_again_under_a_new_number() {
    let bench = Bench::new(
        "  - { id: one, run: LOG }\n\
         \x20 - { id: two, run: 'LOG; [ $ONWARD_ATTEMPT = 2 ] || sleep 1000' }\n",
    );
    let (run, _) = bench.run_and_kill(|_| !bench.ran("two").is_empty());
    kill_all(&run);
    fs::remove_file(run.join("journal.jsonl")).unwrap();
    bench.exits("repair --yes", 0);
    bench.exits("resume", 0);
    assert_eq!((bench.ran("one"), bench.ran("two")), (vec![1], vec![1, 2]));
}

#[test]
fn a_workflow_that_was_changed_on_the_way_is_the_changed_one_after_a_repair() {
    let bench = Bench::new("  - { id: one, run: LOG }\n  - { id: two, run: 'LOG; exit 3' }\n");
    bench.exits("run w.yaml", 10);
    let steps = "  - { id: one, run: LOG }\n  - { id: two, run: 'LOG; test -e allowed' }\n";
    bench.workflow("w.yaml", "steps:", steps);
    bench.exits("resume --yes", 10);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::remove_file(run.join("journal.jsonl")).unwrap();
    bench.exits("repair --yes", 0);
    fs::write(bench.path("allowed"), "").unwrap();
    bench.exits("resume --yes", 0);
    assert_eq!((bench.ran("one"), bench.ran("two")), (vec![1], vec![1, 2, 3]));
}
