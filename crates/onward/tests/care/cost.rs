//! The interruption bill, as `status --cost` tells it.

use crate::{
    bench::{Bench, id, kill_all},
    json,
};

#[test]
fn the_bill_of_a_killed_run_tells_useful_from_repeated_work() {
    let bench = Bench::new(
        "  - { id: one, run: LOG }\n\
         \x20 - { id: two, run: 'LOG; [ $ONWARD_ATTEMPT = 2 ] || sleep 1000' }\n",
    );
    let (run, _) = bench.run_and_kill(|_| !bench.ran("two").is_empty());
    kill_all(&run);
    bench.exits("resume", 0);
    let view = json(&bench, "status", "status --cost", 0);
    let bill = &view["bill"];
    assert_eq!(bill["useful"]["attempts"], 2, "{bill:#}");
    assert_eq!(bill["repeated"]["attempts"], 1, "{bill:#}");
    assert_eq!(bill["reverted"]["attempts"], 0, "{bill:#}");
    assert_eq!(bill["by_cause"]["interrupted"]["attempts"], 1, "{bill:#}");
    assert!(bill["waiting"]["seconds"].as_f64().unwrap() > 0.0, "{bill:#}");
    assert_eq!(json(&bench, "status", "status", 0)["bill"], serde_json::Value::Null);
    let said = bench.exits(&format!("status --cost {}", id(&run)), 0);
    for word in ["Useful", "Repeated", "Reverted", "Waiting", "interrupted", "killed"] {
        assert!(said.out.contains(word), "{said:?}");
    }
}
