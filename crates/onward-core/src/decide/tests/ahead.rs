//! Starts that are announced before there is a slot for them.

use crate::testing::Bench;

#[track_caller]
fn check(ahead: u32, steps: &str, script: &str, expected: &[&str]) {
    let mut bench = Bench::new(&format!("limits: {{ parallel: 1 }}\nsteps:\n{steps}"));
    bench.facts.ahead = ahead;
    let bench = bench.tell(script);
    let told: Vec<&str> = bench.log.lines().collect();
    assert_eq!(told, expected, "\n{}", bench.log);
}

const FIVE: &str = "  - { id: a, needs: [], run: x }
  - { id: b, needs: [], run: x }
  - { id: c, needs: [], run: x }
  - { id: d, needs: [], run: x, edits: true }
  - { id: e, needs: [], run: x }";

#[test]
fn so_many_plain_commands_are_announced_and_nothing_overtakes_what_may_not_wait() {
    check(0, FIVE, "", &["start a #1: x"]);
    check(1, FIVE, "", &["start a #1: x", "start b #1: x"]);
    let three = ["start a #1: x", "start b #1: x", "start c #1: x"];
    check(2, FIVE, "", &three);
    check(9, FIVE, "", &three);
    // What edits gets its slot when all that was announced before it has ended.
    let ended = ["> a!", "> c!", "> b!", "start d #1: x", "start e #1: x"];
    check(9, FIVE, "a! c! b!", &[&three[..], &ended].concat());
}

#[test]
fn what_was_tried_before_or_acts_beyond_this_machine_is_not_announced_ahead() {
    let retried = "  - { id: a, needs: [], run: x, retry: { max: 1, backoff: 0s, on: [failed] } }
  - { id: b, needs: [], run: x }
  - { id: c, needs: [], run: x, effect: outside, probe: { run: y, absent: 1 } }";
    let begun = ["start a #1: x", "start b #1: x", "> a?failed", "> b!", "start a #2: x"];
    check(9, retried, "a?failed b!", &begun);
}

#[test]
fn what_is_looked_at_or_saved_before_a_step_is_so_when_there_is_a_slot_for_it() {
    for declared in [
        "writes: [out]",
        "reads: [in]",
        "dir: sub",
        "when: '{{ read_text(\"in\") == \"y\" }}'",
        "env: { A: '{{ read_text(\"in\") }}' }",
    ] {
        let steps = format!(
            "  - {{ id: a, needs: [], run: x }}
  - {{ id: b, needs: [], run: x, {declared} }}"
        );
        check(9, &steps, "", &["start a #1: x"]);
    }
}
