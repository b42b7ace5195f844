//! Looking after runs, through the real program: archive, verify, repair, doctor, cost, rehearsal.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod archive;
mod cost;
mod doctor;
mod newcomer;
mod people;
mod rehearse;
mod repair;
mod rescue;
#[expect(dead_code, reason = "the kill tests use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod verify;
mod words;

use onward_engine::world::schema::Schema;
use serde_json::Value;

use bench::Bench;
use support::{bench, repo, terminal};

/// What a command prints with `--json`, held against its published schema.
#[track_caller]
fn json(bench: &Bench, format: &str, arguments: &str, code: i32) -> Value {
    let said = bench.exits(&format!("{arguments} --json"), code);
    let object = said.json();
    let schema = bench.exits(&format!("schema {format}"), 0).json();
    assert_eq!(Schema::compile(&schema).unwrap().check(&object), Ok(()), "{object:#}");
    assert_eq!(object["schema"], format!("onward.{format}/1"));
    object
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}
