//! Results held against their JSON Schema; each schema is compiled once.

use std::collections::{BTreeMap, btree_map::Entry};

use onward_core::{digest::Digest, judge::Objection};
use serde_json::Value;

use crate::world::schema::Schema;

#[derive(Debug, Default)]
pub(super) struct Schemas {
    compiled: BTreeMap<Digest, Schema>,
}

impl Schemas {
    /// `Err` says the first thing that is wrong, and where; or what the answer decides.
    pub(super) fn validate(&mut self, schema: &str, result: &Value) -> Result<(), Objection> {
        let schema = match self.compiled.entry(Digest::of(schema.as_bytes())) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(free) => free.insert(compile(schema).map_err(Objection::Violates)?),
        };
        schema.judge(result)
    }
}

fn compile(schema: &str) -> Result<Schema, String> {
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| format!("its schema is not JSON: {error}"))?;
    Schema::compile(&schema).map_err(|error| format!("its schema is not a JSON Schema: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_compiled_once() {
        let mut schemas = Schemas::default();
        let schema = r#"{"type":"integer"}"#;
        assert_eq!(schemas.validate(schema, &json!(1)), Ok(()));
        assert!(schemas.validate(schema, &json!("x")).is_err());
        assert_eq!(schemas.compiled.len(), 1);
    }

    #[test]
    fn a_schema_that_is_none_is_the_schemas_fault() {
        let mut schemas = Schemas::default();
        let why = schemas.validate("{", &json!(1)).unwrap_err().into_words();
        assert!(why.contains("its schema is not JSON"), "{why}");
        let why = schemas.validate(r#"{"type":"nothing"}"#, &json!(1)).unwrap_err().into_words();
        assert!(why.contains("not a JSON Schema"), "{why}");
    }
}
