//! What a person reads while looking after a run, from its damage to its archive.

use std::{fs, path::Path};

use insta::assert_snapshot;

use crate::bench::{Bench, id};

/// Standard output, standard error and exit code as one text; what differs from run to run masked.
fn said(bench: &Bench, run: &Path, arguments: &str) -> String {
    let said = bench.onward(&arguments.replace("RUN", &id(run)));
    let text = format!("{}--- stderr\n{}--- exit {}", said.out, said.err, said.code);
    let text = text.replace(&id(run), "RUN").replace(bench.root.to_str().unwrap(), "HERE");
    let words = text.split_inclusive([' ', '\n']).map(|word| {
        let bare = word.trim_end();
        let is_crc = bare.len() == 8 && bare.chars().all(|it| it.is_ascii_hexdigit());
        let is_time = bare.len() == 27 && bare.starts_with("20") && bare.ends_with('Z');
        match (is_crc, bare.split_once("RUN_")) {
            (true, _) => word.replace(bare, "CRC"),
            (false, Some((before, _))) => word.replace(bare, &format!("{before}RUN_STAMP")),
            (false, None) if is_time => word.replace(bare, "TIME"),
            (false, None) => word.to_owned(),
        }
    });
    words.collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one conversation, read from top to bottom")]
fn a_damaged_run_is_looked_after_in_words() {
    let bench = Bench::new(
        "  - { id: one, run: echo 1 > one, writes: [one] }\n\
         \x20 - { id: two, run: cp one two, writes: [two], check: test -s two }\n",
    );
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let journal = run.join("journal.jsonl");
    let mut lines: Vec<String> =
        fs::read_to_string(&journal).unwrap().lines().map(str::to_owned).collect();
    lines[2] = lines[2].replace("attempt.finished", "attempt.finishex");
    fs::write(&journal, lines.join("\n") + "\n").unwrap();
    assert_snapshot!(said(&bench, &run, "verify"), @r#"
    --- stderr
    error: the journal of run `RUN` is damaged
    help: rebuild it with `onward repair RUN`
    --- exit 15
    "#);
    assert_snapshot!(said(&bench, &run, "repair"), @r#"
    --- stderr
    Damaged
      line 3: its checksum should be CRC
    Kept
      2 records before it
    Rebuilt
      attempt.finished  one 1                recorded by seal: sealed, and its outputs are there
      attempt.started   two 1                recorded by journal: it can be read
      attempt.finished  two 1                recorded by journal: it can be read
      run.ended                              recorded by journal: it can be read
    Steps
      keep         one                  sealed, and its outputs are there (recorded by seal)
      keep         two                  it can be read (recorded by journal)
    error: nothing was changed: a repair needs your yes
    help: say `onward repair RUN --yes`
    --- exit 16
    "#);
    assert_snapshot!(said(&bench, &run, "repair RUN --yes"), @r#"
    --- stderr
    Damaged
      line 3: its checksum should be CRC
    Kept
      2 records before it
    Rebuilt
      attempt.finished  one 1                recorded by seal: sealed, and its outputs are there
      attempt.started   two 1                recorded by journal: it can be read
      attempt.finished  two 1                recorded by journal: it can be read
      run.ended                              recorded by journal: it can be read
    Steps
      keep         one                  sealed, and its outputs are there (recorded by seal)
      keep         two                  it can be read (recorded by journal)
    run RUN is repaired; the damaged journal is kept as journal.damaged-1.jsonl
    it is completed: onward status RUN
    --- exit 0
    "#);
    assert_snapshot!(said(&bench, &run, "verify"), @r#"
      done     one  one is as it was
      done     two  two is as it was; its check agrees
    --- stderr
    run RUN: all 2 done steps are proved
    --- exit 0
    "#);
    fs::write(bench.path("one"), "other").unwrap();
    assert_snapshot!(said(&bench, &run, "verify"), @r#"
      stale    one  one was changed
      done     two  two is as it was; its check agrees
    --- stderr
    run RUN: 1 of 2 done steps are proved
    onward plan RUN
    --- exit 16
    "#);
    assert_snapshot!(said(&bench, &run, "rescue list"), @r#"
    --- stderr
    run RUN has no rescue: nothing was undone
    --- exit 0
    "#);
    assert_snapshot!(said(&bench, &run, "undo 1"), @r#"
    --- stderr
    error: run `RUN` has no rescue 1
    help: nothing was undone in it
    --- exit 16
    "#);
    assert_snapshot!(said(&bench, &run, "rescue show 1"), @r#"
    --- stderr
    error: run `RUN` has no rescue 1
    help: nothing was undone in it
    --- exit 2
    "#);
    assert_snapshot!(said(&bench, &run, "archive"), @r#"
    --- stderr
    run RUN moved to the archive: .onward/archive/RUN_STAMP
    --- exit 0
    "#);
    assert_snapshot!(said(&bench, &run, "gc --keep 0"), @r#"
    --- stderr
    delete .onward/archive/RUN_STAMP
    error: this would remove the archives RUN_STAMP
    help: say `onward gc --keep 0 --yes`
    --- exit 16
    "#);
    assert_snapshot!(said(&bench, &run, "gc --keep 0 --yes"), @r#"
    --- stderr
    delete .onward/archive/RUN_STAMP
    1 archive deleted, 0 kept
    --- exit 0
    "#);
    fs::write(bench.path("blind.yaml"), "onward: 1\nsteps: [{ id: x, run: y, effect: outside }]")
        .unwrap();
    assert_snapshot!(said(&bench, &run, "rehearse blind.yaml --limit 1"), @r#"
    blind ends as completed; 2 boundaries, 1 tried
    2 kills, of which 2 made no difference
    not safe to repeat: x
      its effect is outside and it has no `probe`: after a crash nothing tells whether it happened
    --- stderr
    0 of 2 kills tried
    2 of 2 kills tried
    --- exit 16
    "#);
}
