//! The JSON Schema of a workflow file, for editors.
//!
//! Written by hand beside the parser: it says what a schema can say of the language. What it
//! cannot say (names, order, templates) `onward check` does.

use serde_json::{Map, Value, json};

use super::{keys, parse::ADAPTERS, permissions::Permissions};
use crate::evidence::Cause;

/// What the schema calls itself.
pub const WORKFLOW_SCHEMA_ID: &str = "urn:onward:schema:workflow:1";

pub fn workflow_schema() -> Value {
    let mut root = object(
        "A workflow: declared steps that onward runs, journals and resumes.",
        vec![
            ("onward", with(json!({"const": 1}), "Version of the language.")),
            (
                "name",
                with(
                    json!({"type": "string", "pattern": "^[a-z0-9_][a-z0-9._-]{0,63}$"}),
                    "Name of the workflow; run ids begin with it. Default: the file's name.",
                ),
            ),
            ("description", text("What the workflow is for. A label.")),
            ("inputs", map_of(input(), "What a person gives at the start: `--input name=value`.")),
            ("agents", map_of(agent(), "Agent programs and how they are set up, by name.")),
            ("defaults", defaults()),
            ("limits", limits()),
            (
                "steps",
                steps("The steps. Each needs the one before it, unless `needs` says otherwise."),
            ),
        ],
        &["onward", "steps"],
    );
    let fields = root.as_object_mut().expect("an object was built");
    fields.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    fields.insert("$id".into(), json!(WORKFLOW_SCHEMA_ID));
    fields.insert("title".into(), json!("onward workflow"));
    fields.insert("$defs".into(), json!({ "step": step() }));
    root
}

fn with(mut schema: Value, description: &str) -> Value {
    let fields = schema.as_object_mut().expect("schemas here are objects");
    fields.insert("description".into(), json!(description));
    schema
}

/// Any scalar is read as text.
fn text(description: &str) -> Value {
    with(json!({"type": ["string", "number", "boolean"]}), description)
}

fn texts(description: &str) -> Value {
    let items = json!({"type": ["string", "number", "boolean"]});
    with(json!({"type": "array", "items": items}), description)
}

const DURATION: &str = "^(\\d+d)?(\\d+h)?(\\d+m)?(\\d+s)?(\\d+ms)?$";

fn duration(description: &str) -> Value {
    with(json!({"type": "string", "minLength": 1, "pattern": DURATION}), description)
}

fn duration_or_template(description: &str) -> Value {
    let pattern = format!("{DURATION}|\\{{[{{%#]");
    with(json!({"type": "string", "minLength": 1, "pattern": pattern}), description)
}

fn whole(least: u32, description: &str) -> Value {
    with(json!({"type": "integer", "minimum": least}), description)
}

fn flag(description: &str) -> Value {
    with(json!({"type": "boolean"}), description)
}

fn map_of(values: Value, description: &str) -> Value {
    let mut schema = json!({"type": "object"});
    schema["additionalProperties"] = values;
    with(schema, description)
}

fn object(description: &str, properties: Vec<(&str, Value)>, required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut schema = json!({"type": "object", "additionalProperties": false});
    schema["properties"] = Value::Object(properties);
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    with(schema, description)
}

fn input() -> Value {
    let types = ["string", "number", "integer", "boolean", "list", "object"];
    object(
        "One input. Required unless it has a default.",
        vec![
            ("type", with(json!({"enum": types}), "The type its value must have.")),
            ("default", with(json!({}), "Its value when none is given; of the declared type.")),
            ("description", text("What it is for. A label.")),
        ],
        &["type"],
    )
}

fn agent() -> Value {
    let program = with(
        json!({"type": "string", "examples": ADAPTERS}),
        "The agent program, or a name from the configuration.",
    );
    object(
        "An agent program and how it is set up.",
        vec![
            ("use", program),
            ("model", text("The model, in the program's own words.")),
            ("system", text("File with the system prompt, relative to this file.")),
            ("permissions", permissions()),
            ("allow", texts(ALLOW)),
        ],
        &[],
    )
}

fn retry() -> Value {
    let causes = json!({"type": "array", "items": {"enum": Cause::ALL.map(Cause::as_str)}});
    object(
        "When to try again.",
        vec![
            ("max", whole(0, "Further tries after the first. Default 0.")),
            ("backoff", duration("Time between tries, such as `30s`.")),
            (
                "on",
                with(
                    causes,
                    "Only for these causes. Default: crash, timeout, overloaded, \
                server, network.",
                ),
            ),
        ],
        &[],
    )
}

fn defaults() -> Value {
    object(
        "What steps have that do not say otherwise.",
        vec![
            ("timeout", duration("Wall time of an attempt.")),
            ("idle", duration("Time an attempt may go without output.")),
            ("retry", retry()),
        ],
        &[],
    )
}

fn limits() -> Value {
    let usd = with(json!({"type": "number", "minimum": 0}), "US dollars the run may cost.");
    object(
        "Bounds of a run.",
        vec![
            ("parallel", whole(1, "Attempts at a time. Default 4.")),
            ("usd", usd),
            ("resumes", whole(0, "How often the run may be resumed.")),
        ],
        &[],
    )
}

fn steps(description: &str) -> Value {
    let items = json!({"$ref": "#/$defs/step"});
    with(json!({"type": "array", "minItems": 1, "items": items}), description)
}

/// One object with all keys, and for each kind the keys that do not fit it forbidden.
fn step() -> Value {
    let mut schema = object("One step, of exactly one kind.", step_properties(), &["id"]);
    let kinds = keys::KINDS.map(|kind| {
        let other = |key: &&str| !keys::kinds_with(key).contains(&kind);
        let forbidden: Map<String, Value> = keys::all()
            .into_iter()
            .filter(other)
            .map(|key| (key.to_owned(), Value::Bool(false)))
            .collect();
        json!({"required": [kind], "properties": forbidden})
    });
    schema["oneOf"] = json!(kinds);
    schema["not"] = json!({"required": ["each", "repeat"]});
    schema["dependentRequired"] = json!({
        "agent": ["prompt"], "as": ["each"], "key": ["each"], "after": ["each", "key"],
        "probe": ["effect"],
    });
    schema
}

fn step_properties() -> Vec<(&'static str, Value)> {
    let id = json!({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"});
    let needs = texts("Steps of this list that come first. Default: the one before. `[]`: none.");
    let each = json!({"type": ["array", "string"]});
    let worktree = json!({"type": ["boolean", "string"]});
    let anything = || map_of(json!({}), "Values by name; templates.");
    vec![
        ("id", with(id, "Name of the step, unique in its list.")),
        ("description", text("What the step is for. A label.")),
        ("needs", needs),
        ("when", text("Condition; when it does not hold, the step is skipped.")),
        ("each", with(each, "Once for each item: a list, or \"{{ expression }}\" that gives one.")),
        ("as", text("Name of the item in templates. Default `item`.")),
        ("key", text("Field that identifies an item which is an object.")),
        ("after", text("Field that lists the keys of items this one comes after.")),
        ("repeat", repeat()),
        ("run", text("A command for the shell. Values in it are quoted; `| raw` opts out.")),
        ("agent", text("An agent, declared under `agents` or a known program.")),
        ("prompt", text("What the agent is asked to do.")),
        ("gate", text("A question for a person; the run waits for the answer.")),
        ("shows", texts("Files a person should look at first; globs.")),
        ("options", texts("Answers to choose from. Default: approve, reject.")),
        ("stop", texts("Answers that end the run. Default: those of reject, cancel, abort.")),
        ("call", text("A built-in function of a dialect, such as `conference.transfer`.")),
        ("steps", steps("A group: done when its steps are.")),
        ("workflow", text("Another workflow file, relative to this one.")),
        ("with", with(anything(), "Inputs of the other workflow, or arguments of the call.")),
        ("reads", texts("Files the step depends on; globs.")),
        ("writes", texts("Files the step must leave; globs. Without them it is not done.")),
        ("check", text("A command that must succeed for the step to be done.")),
        (
            "result",
            object(
                "JSON the step must leave in $ONWARD_RESULT.",
                vec![("schema", text("File with its JSON Schema, relative to this file."))],
                &["schema"],
            ),
        ),
        ("worktree", with(worktree, "Its own git worktree and branch; true, or a name.")),
        ("dir", text("The directory it works in, below the project. Default: the project's own.")),
        ("effect", with(json!({"const": "outside"}), "It changes something beyond this machine.")),
        (
            "probe",
            object(
                "After a crash: did the effect happen?",
                vec![
                    ("run", text("A command: 0 says yes, `absent` says no, anything else asks.")),
                    (
                        "absent",
                        with(
                            json!({"type": "integer", "minimum": 1, "maximum": 255}),
                            "The exit code that says no. Default 1.",
                        ),
                    ),
                ],
                &["run"],
            ),
        ),
        ("retry", retry()),
        ("on_failure", with(json!({"enum": ["fail", "continue"]}), ON_FAILURE)),
        (
            "timeout",
            duration_or_template("Wall time of an attempt, such as `30m`; or a template for it."),
        ),
        ("idle", duration("Time an attempt may go without output, such as `5m`.")),
        (
            "durability",
            text("`full` brings outputs to the disk before the step is done; `process` does not."),
        ),
        ("edits", flag("It may change files beyond `writes`. Default: true for agents.")),
        ("keep", flag("Keep what a failed attempt left, instead of reverting it.")),
        ("permissions", permissions()),
        ("allow", texts(ALLOW)),
        (
            "env",
            map_of(
                json!({"type": ["string", "number", "boolean"]}),
                "Environment variables; templates.",
            ),
        ),
    ]
}

/// What an agent may do.
fn permissions() -> Value {
    with(
        json!({"enum": Permissions::ALL.map(Permissions::as_str)}),
        "What the agent may do. Default: `edit` where the step may change files, else `read-only`.",
    )
}

const ALLOW: &str = "Tools the agent may use besides, in its program's own words.";

const ON_FAILURE: &str =
    "When it failed and no try is left: the run fails, or continues without it. Default: fail.";

fn repeat() -> Value {
    let max = json!({"type": ["integer", "string"], "minimum": 1});
    object(
        "Turn after turn.",
        vec![
            ("max", with(max, "Turns at most; a number or \"{{ expression }}\".")),
            ("until", text("Ends the loop when it holds after a turn.")),
            (
                "on_max",
                with(
                    json!({"enum": ["fail", "continue"]}),
                    "When `max` is reached. Default: fail with `until`, else continue.",
                ),
            ),
        ],
        &["max"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::{problem::Problems, yaml};

    #[test]
    fn the_schema_knows_exactly_the_keys_of_the_parser() {
        let schema = workflow_schema();
        let known = schema["$defs"]["step"]["properties"].as_object().unwrap();
        let mut all = keys::all();
        all.sort_unstable();
        assert_eq!(known.keys().map(String::as_str).collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_file_with_every_feature_is_valid() {
        let mut problems = Problems::default();
        let text = include_str!("parse/everything.yaml");
        let file = yaml::parse(text, 0, &mut problems).unwrap().value();
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("w.json", workflow_schema()).unwrap();
        let root = compiler.compile("w.json", &mut schemas).unwrap();
        schemas.validate(&file, root).unwrap_or_else(|error| panic!("{error}"));
    }

    #[test]
    fn every_key_has_a_description() {
        fn walk(at: &str, schema: &Value) {
            let Some(fields) = schema.as_object() else { return };
            if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
                for (name, property) in properties.iter().filter(|(_, it)| it.is_object()) {
                    assert!(property["description"].is_string(), "{at}/{name}");
                    walk(&format!("{at}/{name}"), property);
                }
            }
            for (name, inner) in fields {
                walk(&format!("{at}/{name}"), inner);
            }
        }
        walk("", &workflow_schema());
    }
}
