//! Archive and gc: moved, never deleted; deleted only after being listed, and only what was moved.

use std::fs;

use crate::{
    bench::{Bench, id, journal, kill_all, sees},
    json,
};

fn archives(bench: &Bench) -> Vec<String> {
    let Ok(entries) = fs::read_dir(bench.path(".onward/archive")) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_completed_run_moves_to_the_archive_and_says_so_in_its_journal() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let said = json(&bench, "archive", "archive", 0);
    assert_eq!(said["run"]["id"], id(&run));
    assert!(!run.exists());
    let names = archives(&bench);
    assert_eq!(names.len(), 1, "{names:?}");
    let moved = bench.path(".onward/archive").join(&names[0]);
    assert_eq!(said["to"], moved.to_str().unwrap());
    assert!(journal(&moved).contains(&format!("\"run.archived\",\"to\":\"{}\"", names[0])));
    bench.exits("archive", 2);
    bench.exits("list", 0);
}

#[test]
fn a_move_that_was_cut_short_goes_on_under_the_same_name() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits("archive", 0);
    let names = archives(&bench);
    // Killed between the event and the move.
    fs::rename(bench.path(".onward/archive").join(&names[0]), &run).unwrap();
    let before = journal(&run);
    bench.exits("archive", 0);
    assert_eq!(archives(&bench), names);
    assert_eq!(journal(&bench.path(".onward/archive").join(&names[0])), before);
}

#[test]
fn a_run_that_is_driven_or_lives_stays_where_it_is() {
    let bench = Bench::new("  - { id: one, run: 'LOG; echo > begun; sleep 1000' }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    let said = bench.exits(&format!("archive {}", id(&run)), 14);
    assert!(said.err.contains("is driven by"), "{said:?}");
    engine.kill().unwrap();
    let said = bench.exits(&format!("archive {}", id(&run)), 14);
    assert!(said.err.contains("attempt 1 at `one` of run"), "{said:?}");
    assert!(said.err.contains("onward resume"), "{said:?}");
    kill_all(&run);
    // Given up: no process of it lives, no driver holds it.
    let said = bench.exits(&format!("archive {} --yes", id(&run)), 0);
    assert!(said.err.contains("one was killed half-way"), "{said:?}");
    assert_eq!(archives(&bench).len(), 1);
}

#[test]
fn a_damaged_run_is_repaired_before_it_is_archived() {
    let bench = Bench::new("  - { id: one, run: LOG }\n  - { id: two, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let text = journal(&run).replacen("attempt.started", "attempt.startex", 1);
    fs::write(run.join("journal.jsonl"), text).unwrap();
    let said = bench.exits(&format!("archive {}", id(&run)), 15);
    assert!(said.err.contains("onward repair"), "{said:?}");
    assert!(run.exists());
}

#[test]
fn gc_deletes_only_archives_beyond_the_last_and_only_after_a_yes() {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    for _ in 0..3 {
        bench.exits("run w.yaml", 0);
        bench.exits("archive", 0);
    }
    fs::create_dir(bench.path(".onward/archive/mine")).unwrap();
    bench.exits("run w.yaml", 0);
    let all = archives(&bench);
    assert_eq!(json(&bench, "gc", "gc", 0)["deleted"], serde_json::json!([]));
    let said = bench.exits("gc", 0).err;
    assert!(said.contains("nothing to delete: 3 archives here, and the last 5 stay"), "{said}");
    let said = bench.exits("gc --keep 1", 16);
    assert!(said.err.contains("onward gc --keep 1 --yes"), "{said:?}");
    assert_eq!(said.err.matches("delete ").count(), 2, "{said:?}");
    assert_eq!(archives(&bench), all);
    let said = json(&bench, "gc", "gc --keep 1 --yes", 0);
    assert_eq!(crate::texts(&said["deleted"]).len(), 2);
    assert_eq!(crate::texts(&said["kept"]).len(), 1);
    let left = archives(&bench);
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&"mine".to_owned()));
    assert_eq!(bench.project().runs().unwrap().len(), 1, "runs are never collected");
    bench.exits("gc --keep many", 2);
}

#[test]
fn what_git_keeps_for_a_run_goes_with_its_last_archive() {
    let bench = crate::repo::repo("true", "  - { id: one, agent: claude, prompt: x }\n");
    let refs = || crate::repo::git(&bench, "for-each-ref --format=%(refname) refs/onward");
    bench.exits("run w.yaml", 0);
    assert!(!refs().is_empty(), "a snapshot was taken");
    bench.exits("archive", 0);
    assert!(!refs().is_empty(), "an archived run keeps its snapshots");
    bench.exits("gc --keep 0 --yes", 0);
    assert_eq!(refs(), "");
}
