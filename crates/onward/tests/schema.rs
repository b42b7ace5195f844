//! `onward schema`, end to end.

use std::process::{Command, Stdio};

use onward_engine::world::schema::Schema;
use serde_json::{Value, json};

fn onward(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
    command.args(arguments.split(' ')).env_clear();
    command
}

#[test]
fn the_published_schema_accepts_the_example_and_refuses_slips() {
    let output = onward("schema workflow").output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = Schema::compile(&schema).unwrap();
    let step = |step: Value| json!({"onward": 1, "steps": [step]});
    for good in [
        json!({"id": "a", "run": true}),
        json!({"id": "a", "agent": "claude", "prompt": "x", "timeout": "1h30m"}),
        json!({"id": "a", "gate": "x", "shows": ["y"], "stop": []}),
        json!({"id": "a", "call": "a.b", "with": {"x": [1]}}),
        json!({"id": "a", "each": ["x"], "as": "y", "workflow": "b.yaml"}),
        json!({"id": "a", "repeat": {"max": "{{ inputs.n }}"}, "steps": [
            {"id": "b", "run": "x", "effect": "outside", "probe": {"run": "y"}},
        ]}),
    ] {
        let file = step(good);
        assert_eq!(schema.check(&file), Ok(()), "{file}");
    }
    for bad in [
        json!({"id": "a"}),
        json!({"run": "x"}),
        json!({"id": "a", "rnu": "x"}),
        json!({"id": "a", "run": "x", "gate": "y"}),
        json!({"id": "a", "run": "x", "shows": ["y"]}),
        json!({"id": "a", "agent": "claude"}),
        json!({"id": "a", "run": "x", "timeout": "30"}),
        json!({"id": "a", "run": "x", "each": ["b"], "repeat": {"max": 1}}),
        json!({"id": "a", "run": "x", "as": "b"}),
        json!({"id": "a", "steps": [{"id": "b", "rnu": "x"}]}),
        json!({"id": "a", "run": "x", "retry": {"on": ["crashed"]}}),
        json!({"id": "a", "run": "x", "probe": {"run": "y"}}),
    ] {
        let file = step(bad);
        assert!(schema.check(&file).is_err(), "{file}");
    }
    assert!(schema.check(&json!({"onward": 2, "steps": [{"id": "a", "run": "x"}]})).is_err());
    assert!(schema.check(&json!({"onward": 1, "stpes": []})).is_err());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = onward("schema").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
