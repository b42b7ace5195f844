//! Steps that take too long, try again, or wait for a person.

use crate::bench::{Bench, sees_nobody_left};

#[test]
fn a_time_out_ends_the_grandchildren_too() {
    for limit in ["timeout: 200ms", "idle: 200ms"] {
        let steps = "  - { id: one, run: 'LOG; setsid sleep 1000 & sleep 1000', LIMIT }\n";
        let bench = Bench::new(&steps.replace("LIMIT", limit));
        let said = bench.exits("run w.yaml", 10);
        assert!(said.err.contains("one: timeout"), "{limit}: {said:?}");
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
    assert!(said.err.contains("two: failed"), "{said:?}");
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
    bench.exits(&format!("approve --hash {hash}"), 0);
    bench.exits("resume", 11);
    assert_eq!(bench.ran("two"), [0_u32; 0], "it was approved for other words");
    let said = bench.exits(&format!("approve --hash {hash}"), 1);
    assert!(said.err.contains("has changed since you looked"), "{said:?}");
    let moved = bench.exits("status --json", 0).json()["gates"][0]["hash"].clone();
    assert_ne!(moved, hash);
    bench.exits(&format!("approve --hash {}", moved.as_str().unwrap()), 0);
    bench.exits("resume", 0);
    assert_eq!([bench.ran("one"), bench.ran("two")], [[1], [1]]);
    assert_eq!(bench.text("one"), "somebody's own words\n");
}
