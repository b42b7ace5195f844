//! Failures that the run goes on after, and options of a step that are computed.

use serde_json::json;

use super::check;
use crate::{
    evidence::{Cause, Reaction},
    testing::Bench,
};

#[test]
fn a_failure_that_is_tolerated_lets_dependents_go_on_and_tells_them_the_cause() {
    let yaml = "
steps:
  - { id: a, run: x, retry: { max: 1, backoff: 0s }, on_failure: continue }
  - { id: b, run: '{{ steps.a.status }} {{ steps.a.cause }}' }";
    check(
        yaml,
        "a?crash a?timeout b!",
        "start a #1: x
         > a?crash
         start a #2: x
         > a?timeout
         start b #1: failed timeout
         > b!
         end Completed",
    );
    let bench = Bench::new(yaml).tell("a?failed");
    assert!(bench.log.ends_with("start b #1: failed failed\n"), "{}", bench.log);
    // What is not about the work itself never lets the run go on.
    for cause in Cause::ALL.into_iter().filter(|cause| !cause.may_be_tolerated()) {
        let bench = Bench::new(yaml).tell(&format!("a?{}", cause.as_str()));
        let end = match cause.leads_to() {
            Reaction::Park => "pause Limit",
            Reaction::Ask => "pause Person",
            Reaction::Retry | Reaction::Again | Reaction::Fresh | Reaction::Repair => {
                "end Failed: a: bad"
            }
        };
        assert!(bench.log.contains(end), "{cause:?}: {}", bench.log);
    }
    // Neither does a step that cannot even be rendered.
    let yaml = "steps: [{ id: a, run: x, dir: '{{ run.id }}/..', on_failure: continue }]";
    let bench = Bench::new(yaml).tell("");
    assert!(bench.log.contains("leaves the project"), "{}", bench.log);
    assert!(bench.log.contains("end Failed"), "{}", bench.log);
}

#[test]
fn a_tolerated_failure_stays_settled_until_what_it_needs_changes() {
    let yaml = "
steps:
  - { id: a, run: x }
  - { id: b, run: y, on_failure: continue }
  - { id: c, run: z }";
    let bench = Bench::new(yaml).tell("a!1 b?failed c!");
    assert!(bench.log.ends_with("end Completed\n"), "{}", bench.log);
    let bench = Bench::new(yaml).tell("a!1 b?failed aX a!2");
    assert!(bench.log.contains("invalidate b: needs.a\nstart b #2: y"), "{}", bench.log);
    // The same cause again is the same to those that come after it, another one is not.
    let yaml = format!("{yaml}\n  - {{ id: d, run: w }}");
    let bench = Bench::new(&yaml).tell("a!1 b?failed c!9 bX b?failed");
    assert!(!bench.log.contains("start c #2"), "{}", bench.log);
    let bench = Bench::new(&yaml).tell("a!1 b?failed c!9 bX b?crash");
    assert!(bench.log.contains("start c #2"), "{}", bench.log);
}

#[test]
fn where_and_how_long_an_attempt_works_can_be_computed() {
    let yaml = "
inputs: { who: { type: string, default: ann }, limit: { type: string, default: 90s } }
steps:
  - { id: a, run: x, dir: './of/{{ inputs.who }}', timeout: '{{ inputs.limit }}', writes: [out] }";
    let bench = Bench::new(yaml).tell("");
    let start = &bench.starts["a"];
    assert_eq!(start.launch.cwd, "of/ann");
    assert_eq!(start.launch.timeout_ms, Some(90_000));
    assert_eq!(start.writes, ["of/ann/out"]);
    assert_eq!(start.key.definition["dir"].as_str(), "of/ann");
    for (limit, said) in [("soon", "`soon` is not a length of time"), ("0s", "`0s` is not")] {
        let inputs = [("limit".to_owned(), json!(limit))].into();
        let bench = Bench::with_inputs(yaml, inputs).tell("");
        assert!(bench.log.contains(said), "{}", bench.log);
    }
}
