//! `--json` of every command, on success and on error, held against what `onward schema` publishes.
//!
//! The commands are those that the parser knows, by their manual pages: one that is new is missing
//! here until it is tried.

use std::{cell::RefCell, collections::BTreeMap, collections::BTreeSet};

use onward_engine::world::schema::Schema;
use serde_json::{Value, json};

use crate::{bench::Bench, support::program::Said};

const STEPS: &str = "  - { id: half, run: 'echo 1 > made; test -e allowed', writes: [made] }\n\
    \x20 - { id: g, gate: Go? }\n\
    \x20 - { id: last, run: 'false' }\n";

/// Too slow for here: each has tests of its own that hold it against its schema.
const ELSEWHERE: [&str; 2] = ["demo", "rehearse"];

/// The program, and the commands that were seen to keep to their schema.
struct Tried {
    bench: Bench,
    schemas: RefCell<BTreeMap<String, Schema>>,
    good: RefCell<BTreeSet<String>>,
}

impl Tried {
    fn new(steps: &str) -> Self {
        let (schemas, good) = (RefCell::default(), RefCell::default());
        Self { bench: Bench::new(steps), schemas, good }
    }

    #[track_caller]
    fn fits(&self, kind: &str, object: &Value) {
        let mut schemas = self.schemas.borrow_mut();
        let schema = schemas.entry(kind.to_owned()).or_insert_with(|| {
            let schema = Schema::compile(&self.bench.exits(&format!("schema {kind}"), 0).json());
            let schema = schema.unwrap();
            assert!(schema.check(&json!({"kind": "no such thing"})).is_err(), "{kind}");
            schema
        });
        assert_eq!(schema.check(object), Ok(()), "{kind}: {object:#}");
        let is_kept = kind == "event" && object.get("schema").is_none();
        assert!(is_kept || object["schema"] == format!("onward.{kind}/1"), "{kind}: {object:#}");
    }

    /// One object, and nothing for people beside it.
    #[track_caller]
    fn one(&self, command: &str, code: i32, kind: &str) -> Value {
        let said = self.bench.exits(&format!("{command} --json"), code);
        let object = alone(command, &said);
        self.fits(kind, &object);
        self.good.borrow_mut().insert(command.to_owned());
        object
    }

    /// Events, and the outcome last.
    #[track_caller]
    fn lines(&self, command: &str, code: i32) {
        let said = self.bench.exits(&format!("{command} --json"), code);
        let lines: Vec<Value> =
            said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (outcome, events) = lines.split_last().unwrap();
        self.fits("outcome", outcome);
        assert_eq!(outcome["exit"], code);
        assert!(!events.is_empty(), "{command}");
        for event in events {
            self.fits("event", event);
        }
        self.good.borrow_mut().insert(command.to_owned());
    }
}

#[track_caller]
fn alone(command: &str, said: &Said) -> Value {
    assert_eq!((said.err.as_str(), said.out.lines().count()), ("", 1), "{command}: {said:?}");
    said.json()
}

/// Every command that a person can type, such as `rescue show`.
fn commands(bench: &Bench) -> Vec<String> {
    bench.exits("man --dir pages", 0);
    let pages = std::fs::read_dir(bench.path("pages")).unwrap();
    let names = pages.map(|it| it.unwrap().file_name().into_string().unwrap());
    let names = names.filter_map(|it| Some(it.strip_suffix(".1")?.strip_prefix("onward-")?.into()));
    // No command has a dash in its name.
    let mut names: Vec<String> = names.map(|it: String| it.replace('-', " ")).collect();
    names.sort();
    assert!(names.len() > 30 && names.contains(&"rescue show".to_owned()), "{names:?}");
    names
}

#[test]
fn d_every_command_prints_json_that_fits_its_published_schema() {
    let tried = Tried::new(STEPS);
    let bench = &tried.bench;
    tried.one("check w.yaml", 0, "check");
    tried.lines("run w.yaml", 10);
    bench.write("allowed", "");
    tried.lines("resume", 11);
    for (command, kind) in [
        ("", "list"),
        ("list", "list"),
        ("status", "status"),
        ("plan", "plan"),
        ("why half", "why"),
        ("log --step half", "output"),
        ("verify", "verify"),
        ("repair", "repair"),
        ("config", "config"),
        ("config show", "config"),
        ("config path", "path"),
        ("agents --no-probe", "agents"),
        ("doctor", "doctor"),
        ("version", "version"),
        ("--version", "version"),
        ("help", "text"),
        ("help rescue", "text"),
        ("man", "text"),
        ("man --dir pages", "path"),
        ("completions bash", "text"),
        ("init another", "init"),
        ("gc", "gc"),
        ("rescue", "rescues"),
        ("rescue list", "rescues"),
        ("rescue show 1", "rescue"),
        ("rescue diff 1", "rescue"),
        ("undo 1 --yes", "undo"),
    ] {
        tried.one(command, 0, kind);
    }
    for line in bench.exits("log --json", 0).out.lines() {
        tried.fits("event", &serde_json::from_str(line).unwrap());
    }
    assert!(bench.exits("schema plan --json", 0).json()["properties"].is_object());
    tried.lines("attach --no-input", 11);
    tried.one("approve", 0, "decided");
    tried.lines("resume", 10);
    let done = tried.one("done last", 0, "done");
    let id = done["run"].as_str().unwrap();
    assert_eq!(bench.exits("status --json", 0).json()["run"]["id"], id);
    tried.lines("resume", 0);
    tried.one("archive", 0, "archive");
    // Two that wait at the gate.
    tried.lines("run w.yaml", 11);
    tried.one("decide g reject", 0, "decided");
    tried.one("cancel", 0, "asked");
    tried.lines("run w.yaml", 11);
    tried.one("pause", 0, "asked");
    tried.one("reject", 0, "decided");
    let refused = tried.one("watch", 2, "error");
    assert!(refused["hint"].as_str().unwrap().contains("`onward attach --json`"), "{refused:#}");
    let editor = bench.command("config edit --json").env("EDITOR", "true").output().unwrap();
    tried.fits("path", &alone("config edit", &Said::of(&editor)));
    let good = tried.good.borrow();
    let others = ["config edit", "log", "schema"];
    let is_tried = |name: &String| {
        let begins = |it: &String| it == name || it.starts_with(&format!("{name} "));
        good.iter().any(begins) || others.contains(&name.as_str()) || ELSEWHERE.contains(&&**name)
    };
    let missing: Vec<String> = commands(bench).into_iter().filter(|it| !is_tried(it)).collect();
    assert_eq!(missing, [""; 0], "not tried with --json");
}

#[test]
fn d_every_command_tells_errors_and_its_help_in_json() {
    let tried = Tried::new(STEPS);
    for command in commands(&tried.bench) {
        let error = tried.one(&format!("{command} --no-such-option"), 2, "error");
        assert_eq!(error["code"], "usage", "{command}");
        let help = tried.one(&format!("{command} --help"), 0, "text");
        assert!(help["text"].as_str().unwrap().contains("Usage: onward"), "{command}: {help:#}");
    }
    // Where there is no run, and with names that mean nothing.
    for (command, code) in [
        ("status", 17),
        ("plan", 17),
        ("resume", 17),
        ("attach", 17),
        ("log", 17),
        ("why half", 17),
        ("verify", 17),
        ("rescue show 1", 17),
        ("undo 1", 17),
        ("approve", 17),
        ("decide g approve", 17),
        ("done half", 17),
        ("pause", 17),
        ("cancel", 17),
        ("repair", 17),
        ("archive", 2),
        ("run nope.yaml", 1),
        ("check nope.yaml", 1),
        ("rehearse nope.yaml", 1),
        ("man nope", 2),
        ("schema nope", 2),
        ("help nope", 2),
        ("nope", 2),
    ] {
        tried.one(command, code, "error");
    }
    tried.bench.write("bad.yaml", "onward: 1\nsteps: [{ id: a, cmd: x }]\n");
    tried.one("check bad.yaml", 2, "check");
    tried.one("run bad.yaml", 2, "error");
}
