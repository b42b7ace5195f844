//! Files that several steps write, one after the other: what lies there belongs to the last of
//! them, and when an earlier one runs again, the later ones do, too.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{
    bench::{Bench, LOG},
    g_rows::{WAITS, ended},
    support::repo::{git, repo},
};

fn verdicts<'p>(plan: &'p Value, steps: &[&str]) -> Vec<&'p str> {
    let rows = plan["steps"].as_array().unwrap();
    let verdict = |step: &&str| {
        let row = rows.iter().find(|row| row["step"] == *step);
        row.map_or("no row", |row| row["verdict"].as_str().unwrap())
    };
    steps.iter().map(verdict).collect()
}

fn causes(plan: &Value, step: &str) -> String {
    let row = plan["steps"].as_array().unwrap().iter().find(|row| row["step"] == step).unwrap();
    row["why"].to_string()
}

fn summary(plan: &Value) -> &str {
    plan["recovery_point"]["summary"].as_str().unwrap()
}

/// Runs until the gate.
fn at_gate(bench: &Bench) -> PathBuf {
    bench.exits("run w.yaml --no-input", 11);
    bench.project().runs().unwrap()[0].dir.clone()
}

/// A chain of three in which the second one changes the file of the first one in place.
fn in_place(fmt: &str) -> String {
    format!(
        "  - {{ id: gen, run: 'LOG; grep -v \"^#\" in > f', reads: [in], writes: [f] }}\n  \
         - {{ id: fmt, run: 'LOG; sed -i s/x/FORMATTED/ f', {fmt} }}\n  \
         - {{ id: use, run: 'LOG; cat f > use.txt', reads: [f], writes: [use.txt] }}\n  \
         - {{ id: g, gate: 'ok?' }}\n  \
         - {{ id: ship, run: 'LOG; cp f shipped', writes: [shipped] }}\n"
    )
}

/// Answers the gate, lets the run end, and holds the product and its proof against each other.
fn ships(bench: &Bench) {
    bench.exits("approve", 0);
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("shipped"), "FORMATTED\n");
    let verified = bench.exits("verify", 0);
    assert!(!verified.out.contains("fmt  it declares no output"), "{verified:?}");
}

#[test]
fn h1_a_step_that_changes_a_file_in_place_runs_again_with_the_step_that_made_it() {
    let bench = Bench::new(&in_place("writes: [f]"));
    bench.write("in", "#c1\nx\n");
    let run = at_gate(&bench);
    bench.write("in", "#c2\nx\n");
    let plan = bench.plan(&run);
    let rows = verdicts(&plan, &["gen", "fmt", "use"]);
    assert_eq!(rows, ["rerun", "rerun", "verify"], "{plan:#}");
    let why = causes(&plan, "fmt");
    assert!(why.contains("gen, which runs again, writes f first"), "{why}");
    bench.exits("resume --no-input --yes", 11);
    assert_eq!((bench.ran("fmt"), bench.ran("use")), (vec![1, 2], vec![1]));
    ships(&bench);
}

#[test]
fn h1_the_same_by_a_redo_and_for_a_step_that_declares_nothing() {
    let bench = repo("", &in_place("edits: true"));
    bench.write("in", "#c1\nx\n");
    git(&bench, "add -A");
    git(&bench, "commit -qm all");
    let _ = at_gate(&bench);
    bench.exits("resume --no-input --yes --redo gen", 11);
    assert_eq!((bench.ran("gen"), bench.ran("fmt")), (vec![1, 2], vec![1, 2]));
    bench.exits("approve", 0);
    bench.exits("resume --no-input --yes", 0);
    assert_eq!(bench.text("shipped"), "FORMATTED\n");
    let verified = bench.exits("verify", 0);
    assert!(verified.out.contains("f is the work of fmt since"), "{verified:?}");
}

#[test]
fn h1_the_same_in_the_turns_of_a_loop() {
    let bench = Bench::new(
        "  - id: lp\n    repeat: { max: 4, until: '{{ lp >= 2 }}' }\n    steps:\n      \
         - { id: gen, run: 'LOG; grep -v \"^#\" in > f', reads: [in], writes: [f] }\n      \
         - { id: fmt, run: 'LOG; sed -i s/x/FORMATTED/ f', writes: [f] }\n  \
         - { id: g, gate: 'ok?' }\n  \
         - { id: ship, run: 'LOG; cp f shipped', writes: [shipped] }\n",
    );
    bench.write("in", "#c1\nx\n");
    let _ = at_gate(&bench);
    bench.write("in", "#c2\nx\n");
    bench.exits("resume --no-input --yes", 11);
    assert_eq!((bench.ran("lp[1]/fmt"), bench.ran("lp[2]/fmt")), (vec![1, 2], vec![1, 2]));
    ships(&bench);
}

/// The driver itself finds that `gen` is to run again, behind a step that came out otherwise.
#[test]
fn h1_the_same_when_the_driver_finds_the_first_of_them_stale() {
    let bench = Bench::new(
        "  - { id: up, run: 'LOG; cat in > up.txt', reads: [in], writes: [up.txt] }\n  \
         - { id: gen, run: 'LOG; grep -v \"^#\" up.txt > f', writes: [f] }\n  \
         - { id: note, run: 'LOG; echo 1 > note', writes: [note] }\n  \
         - { id: fmt, run: 'LOG; sed -i s/x/FORMATTED/ f', writes: [f] }\n  \
         - { id: g, gate: 'ok?' }\n  \
         - { id: ship, run: 'LOG; cp f shipped', writes: [shipped] }\n",
    );
    bench.write("in", "#c1\nx\n");
    let run = at_gate(&bench);
    bench.write("in", "#c2\nx\n");
    let plan = bench.plan(&run);
    let rows = verdicts(&plan, &["up", "gen", "note", "fmt"]);
    assert_eq!(rows, ["rerun", "verify", "verify", "verify"], "{plan:#}");
    bench.exits("resume --no-input --yes", 11);
    assert_eq!((bench.ran("gen"), bench.ran("note")), (vec![1, 2], vec![1]));
    assert_eq!(bench.ran("fmt"), [1, 2]);
    ships(&bench);
}

#[test]
fn h1_an_attempt_that_ended_meanwhile_runs_again_when_its_file_is_written_again() {
    let bench = Bench::new(&format!(
        "  - {{ id: gen, run: 'LOG; echo x > f; echo 1 > other', writes: [f, other] }}\n  \
         - {{ id: fmt, run: 'LOG; sed -i s/x/FORMATTED/ f; {WAITS}', writes: [f] }}\n  \
         - {{ id: ship, run: 'LOG; cp f shipped', writes: [shipped] }}\n"
    ));
    let run = ended(&bench, "fmt");
    fs::remove_file(bench.path("other")).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["gen", "fmt", "ship"]), ["rerun", "rerun", "run"], "{plan:#}");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!((bench.ran("gen"), bench.ran("fmt")), (vec![1, 2], vec![1, 2]));
    assert_eq!(bench.text("shipped"), "FORMATTED\n");
}

#[test]
fn h1_a_step_that_reads_what_it_replaces_gets_it_as_it_was() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo a > f', writes: [f] }\n  \
         - { id: b, run: 'LOG; test -e f && echo b >> f', reads: [f], writes: [f] }\n  \
         - { id: c, run: 'LOG; test -e f && echo c >> f', reads: [f], writes: [f] }\n  \
         - { id: g, gate: 'ok?' }\n",
    );
    let run = at_gate(&bench);
    fs::remove_file(bench.path("f")).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["a", "b", "c"]), ["rerun"; 3], "{plan:#}");
    let why = causes(&plan, "a");
    assert!(why.contains("b, which runs again, reads f as this step left it"), "{why}");
    bench.exits("resume --no-input --yes", 11);
    assert_eq!(bench.text("f"), "a\nb\nc\n");
    bench.exits("resume --no-input --yes --redo c", 11);
    assert_eq!(bench.text("f"), "a\nb\nc\n");
    assert_eq!(bench.ran("a"), [1, 2, 3]);
}

#[test]
fn h1_the_same_when_the_driver_finds_out_that_it_runs_again() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo a > f', writes: [f] }\n  \
         - { id: o, run: 'LOG; cat in > o', reads: [in], writes: [o], needs: [] }\n  \
         - { id: c, run: 'LOG; cat o >> f', reads: [f], writes: [f], needs: [a, o] }\n  \
         - { id: g, gate: 'ok?' }\n",
    );
    bench.write("in", "1\n");
    let run = at_gate(&bench);
    assert_eq!(bench.text("f"), "a\n1\n");
    bench.write("in", "2\n");
    let plan = bench.plan(&run);
    let rows = verdicts(&plan, &["a", "o", "c"]);
    assert_eq!(rows, ["verify", "rerun", "verify"], "{plan:#}");
    let why = causes(&plan, "a");
    assert!(why.contains("c runs again, which reads f as this step left it"), "{why}");
    bench.exits("resume --no-input --yes", 11);
    assert_eq!(bench.text("f"), "a\n2\n");
    assert_eq!(["a", "o", "c"].map(|it| bench.ran(it).len()), [2, 2, 2]);
}

#[test]
fn h9_a_changed_file_is_the_matter_of_steps_behind_its_last_writer() {
    let steps = "  - id: lp\n    repeat: { max: 4, until: '{{ lp >= 3 }}' }\n    steps:\n      \
         - { id: draft, run: 'LOG; echo {{ lp }} >> draft.md', writes: [draft.md] }\n      \
         - { id: review, run: 'LOG; cat draft.md > review.md', reads: [draft.md], \
         writes: [review.md] }\n  - { id: g, gate: 'ok?', shows: [draft.md] }\n";
    let bench = Bench::new(steps);
    let run = at_gate(&bench);
    bench.write("draft.md", "1\n2\n3\nperson\n");
    let plan = bench.plan(&run);
    let rows = verdicts(&plan, &["lp[1]/review", "lp[2]/review", "lp[3]/draft", "lp[3]/review"]);
    assert_eq!(rows, ["keep", "keep", "keep", "rerun"], "{plan:#}");
    assert!(summary(&plan).ends_with("continues at lp[3]/review"), "{plan:#}");
    bench.exits("resume --no-input --yes --accept artifact-changed", 11);
    assert_eq!(bench.text("review.md"), "1\n2\n3\nperson\n");
    assert_eq!((bench.ran("lp[1]/review"), bench.ran("lp[3]/review")), (vec![1], vec![1, 2]));
    fs::remove_file(bench.path("draft.md")).unwrap();
    bench.exits("resume --no-input --yes", 11);
    assert_eq!(bench.text("review.md"), "3\n");
    assert_eq!((bench.ran("lp[1]/review"), bench.ran("lp[2]/draft")), (vec![1], vec![1]));
    bench.exits("verify", 0);
}

#[test]
fn h9_a_file_that_is_gone_is_made_by_its_last_writer_and_globs_know_it() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo a > f', writes: [f] }\n  \
         - { id: b, run: 'LOG; cat f src/*', reads: [f, 'src/*'] }\n  \
         - { id: c, run: 'LOG; echo c > f; echo b > src/b', writes: [f, src/b] }\n  \
         - { id: d, run: 'LOG; cat f > d.txt', reads: [f], writes: [d.txt] }\n  \
         - { id: g, gate: 'ok?' }\n",
    );
    fs::create_dir(bench.path("src")).unwrap();
    bench.write("src/a", "");
    let run = at_gate(&bench);
    fs::remove_file(bench.path("f")).unwrap();
    let plan = bench.plan(&run);
    let rows = verdicts(&plan, &["a", "b", "c", "d"]);
    assert_eq!(rows, ["keep", "keep", "rerun", "verify"], "{plan:#}");
    bench.exits("resume --no-input --yes", 11);
    assert_eq!(["a", "b", "c", "d"].map(|it| bench.ran(it).len()), [1, 1, 2, 1]);
    bench.write("src/b", "person\n");
    assert_eq!(verdicts(&bench.plan(&run), &["a", "b", "c"]), ["keep"; 3]);
    // A new file that no step of the run made is read by `b`, which gets `f` as `a` left it.
    bench.write("src/new", "person\n");
    assert_eq!(verdicts(&bench.plan(&run), &["a", "b", "c"]), ["rerun"; 3]);
}

#[test]
fn h16_the_plan_of_a_loop_that_used_up_its_turns_says_what_the_answer_leads_to() {
    let bench = Bench::new(&format!(
        "  - id: lp\n    repeat: {{ max: 2, until: '{{{{ false }}}}' }}\n    steps:\n      \
         - {{ id: t, run: '{LOG}' }}\n  - {{ id: z, run: '{LOG}' }}\n"
    ));
    bench.exits("run w.yaml --no-input", 10);
    let run = bench.project().runs().unwrap()[0].dir.clone();
    let plan = bench.plan(&run);
    assert_eq!(summary(&plan), "2 steps kept; continues at lp[3]/t", "{plan:#}");
    let rows = verdicts(&plan, &["lp[1]/t", "lp[2]/t", "lp[3]/t"]);
    assert_eq!(rows, ["keep", "keep", "run"], "{plan:#}");
    assert_eq!(verdicts(&plan, &["z"]), ["verify"], "{plan:#}");
    bench.exits("resume --no-input --yes --accept turns-used-up", 10);
    assert_eq!((bench.ran("lp[3]/t"), bench.ran("z")), (vec![1], vec![]));
}

/// The version that it read is no more: the step that made it runs again, and so does the one that
/// replaced it.
#[test]
fn h2_a_step_that_runs_again_reads_what_it_read_and_not_what_a_later_step_made_of_it() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo from-a > x', writes: [x] }\n  \
         - { id: b, run: 'LOG; cat x > b', reads: [x], writes: [b] }\n  \
         - { id: c, run: 'LOG; echo from-c > x', writes: [x] }\n  \
         - { id: g, gate: 'ok?' }\n",
    );
    let run = at_gate(&bench);
    fs::remove_file(bench.path("b")).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["a", "b", "c"]), ["rerun"; 3], "{plan:#}");
    let said = bench.exits("plan", 0);
    assert!(said.out.contains("b, which runs again, reads x as this step left it"), "{said:?}");
    bench.exits("resume --no-input", 11);
    assert_eq!((bench.text("b"), bench.text("x")), ("from-a\n".into(), "from-c\n".into()));
}

#[test]
fn h2_the_same_in_the_turns_of_a_loop() {
    let bench = Bench::new(
        "  - id: l\n    repeat: { max: 2 }\n    steps:\n      \
         - { id: w, run: 'LOG; echo {{ l }} > s', writes: [s] }\n      \
         - { id: r, run: 'LOG; cat s > v-{{ l }}', reads: [s], writes: ['v-{{ l }}'] }\n  \
         - { id: g, gate: 'ok?' }\n",
    );
    let _ = at_gate(&bench);
    fs::remove_file(bench.path("v-1")).unwrap();
    bench.exits("resume --no-input", 11);
    let texts = ["v-1", "v-2", "s"].map(|it| bench.text(it));
    assert_eq!(texts, ["1\n", "2\n", "2\n"]);
}
