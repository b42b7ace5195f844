//! Results held against their JSON Schema; each schema is compiled once.

use std::{collections::BTreeMap, fmt::Write as _};

use jsonschema::Validator;
use onward_core::digest::Digest;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Schemas {
    compiled: BTreeMap<Digest, Validator>,
}

impl Schemas {
    /// `Err` says the first thing that is wrong, and where.
    pub(super) fn validate(&mut self, schema: &str, result: &Value) -> Result<(), String> {
        let digest = Digest::of(schema.as_bytes());
        let validator = match self.compiled.entry(digest) {
            std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
            std::collections::btree_map::Entry::Vacant(free) => free.insert(compile(schema)?),
        };
        validator.validate(result).map_err(|error| {
            let mut text = error.to_string();
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "the result itself" } else { &path };
            write!(text, " (at {place})").expect("a string takes all");
            text
        })
    }
}

fn compile(schema: &str) -> Result<Validator, String> {
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| format!("its schema is not JSON: {error}"))?;
    jsonschema::validator_for(&schema)
        .map_err(|error| format!("its schema is not a JSON Schema: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_that_does_not_fit_is_told_where() {
        let mut schemas = Schemas::default();
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        assert_eq!(schemas.validate(schema, &json!({"n": 1})), Ok(()));
        let why = schemas.validate(schema, &json!({"n": "x"})).unwrap_err();
        assert!(why.contains("(at /n)") && why.contains("integer"), "{why}");
        let why = schemas.validate(schema, &json!({})).unwrap_err();
        assert!(why.contains("(at the result itself)"), "{why}");
        assert_eq!(schemas.compiled.len(), 1);
    }

    #[test]
    fn a_schema_that_is_none_is_the_schemas_fault() {
        let mut schemas = Schemas::default();
        assert!(schemas.validate("{", &json!(1)).unwrap_err().contains("its schema is not JSON"));
        let why = schemas.validate(r#"{"type":"nothing"}"#, &json!(1)).unwrap_err();
        assert!(why.contains("not a JSON Schema"), "{why}");
    }
}
