//! Steps that take too long, try again, or wait for a person.

use crate::bench::{Bench, sees_nobody_left};

#[test]
fn a_time_out_ends_the_grandchildren_too() {
    for limit in ["timeout: 200ms", "idle: 200ms"] {
        let steps = "  - { id: one, run: 'LOG; setsid sleep 1000 & sleep 1000', LIMIT }\n";
        let bench = Bench::new(&steps.replace("LIMIT", limit));
        let said = bench.exits("run w.yaml", 10);
        assert!(said.err.contains("one: timed out"), "{limit}: {said:?}");
        let run = bench.project().runs().unwrap().remove(0).dir;
        sees_nobody_left(&run);
        assert_eq!(bench.ran("one"), [1]);
    }
}

#[test]
fn only_the_causes_that_are_named_are_tried_again() {
    let bench = Bench::new(
        "  - { id: one, run: 'LOG; [ $ONWARD_ATTEMPT = 3 ]', \
             retry: { max: 2, backoff: 20ms, on: [failed] } }\n\
         \x20 - { id: two, run: 'LOG; false', retry: { max: 2, backoff: 20ms, on: [timeout] } }\n",
    );
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("two: exit 1"), "{said:?}");
    assert_eq!([bench.ran("one"), bench.ran("two")], [vec![1, 2, 3], vec![1]]);
}

#[test]
fn an_answer_holds_for_the_content_that_was_seen() {
    let bench = Bench::new(
        "  - { id: one, run: LOG; echo 1 > one, writes: [one] }\n\
         \x20 - { id: ask, gate: Go on?, shows: [one] }\n\
         \x20 - { id: two, run: LOG }\n",
    );
    bench.exits("run w.yaml", 11);
    let hash = bench.exits("status --json", 0).json()["gates"][0]["hash"].clone();
    let hash = hash.as_str().unwrap();
    std::fs::write(bench.path("one"), "somebody's own words\n").unwrap();
    // The gate has not been opened again yet; the answer is for other words all the same.
    for seen in ["approve", &format!("approve --hash {hash}")] {
        let said = bench.exits(seen, 1);
        assert!(said.err.contains("has changed since you looked"), "{said:?}");
    }
    let moved = bench.exits("status --json", 0).json()["gates"][0]["hash"].clone();
    let moved = moved.as_str().unwrap();
    assert_ne!(moved, hash);
    bench.exits("resume", 11);
    assert_eq!(bench.ran("two"), [0_u32; 0]);
    bench.exits(&format!("approve --hash {moved}"), 0);
    std::fs::write(bench.path("one"), "and again\n").unwrap();
    bench.exits("resume", 11);
    assert_eq!(bench.ran("two"), [0_u32; 0], "what was approved has moved once more");
    std::fs::write(bench.path("one"), "somebody's own words\n").unwrap();
    bench.exits(&format!("approve --hash {moved}"), 0);
    bench.exits("resume", 0);
    assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
    assert_eq!(bench.text("one"), "somebody's own words\n");
}

#[test]
fn a_new_file_that_a_finished_step_would_read_makes_it_run_again() {
    let bench = Bench::new(
        "  - { id: one, run: LOG; cat notes/* > all, reads: ['notes/*'], writes: [all] }\n\
         \x20 - { id: ask, gate: Go on? }\n",
    );
    std::fs::create_dir(bench.path("notes")).unwrap();
    std::fs::write(bench.path("notes/a"), "a").unwrap();
    bench.exits("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert_eq!(bench.plan(&run)["steps"][0]["verdict"], "keep");
    std::fs::write(bench.path("notes/b"), "b").unwrap();
    let plan = bench.plan(&run);
    assert_eq!(plan["steps"][0]["verdict"], "rerun", "{plan:#}");
    let why = bench.exits("why --json one", 0).json();
    assert_eq!(why["causes"][0]["part"], "reads.notes/b", "{why:#}");
    bench.exits("resume", 11);
    assert_eq!((bench.ran("one"), bench.text("all")), (vec![1, 2], "ab".to_owned()));
    assert_eq!(bench.plan(&run)["steps"][0]["verdict"], "keep");
}
