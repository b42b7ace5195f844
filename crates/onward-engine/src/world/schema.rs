//! JSON held against a JSON Schema.
//!
//! Invariant: a schema refers to nothing outside itself. It may come from a stranger's checkout, so
//! a `$ref` to a file or to the network is an error and opens nothing.

use std::fmt;

use boon::{CompileError, Compiler, SchemaIndex, UrlLoader, ValidationError};
use onward_core::{
    judge::Objection,
    workflow::answer::{ACCEPTS, refusal},
};
use serde_json::Value;

/// What a schema is called inside the validator; no file has this address.
const NAME: &str = "onward:///schema.json";

/// A schema, ready to be asked often.
pub struct Schema {
    all: boon::Schemas,
    root: SchemaIndex,
    /// Which of the valid answers let the run go on, if not all do.
    accepts: Option<Box<(Schema, Value)>>,
}

impl Schema {
    /// `Err` says why this is not a JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let mut all = boon::Schemas::new();
        let mut compiler = Compiler::new();
        compiler.use_loader(Box::new(Closed));
        compiler.add_resource(NAME, schema.clone()).map_err(|error| in_words(&error))?;
        let root = compiler.compile(NAME, &mut all).map_err(|error| in_words(&error))?;
        let accepts = match schema.get(ACCEPTS) {
            Some(inner) => Some(Box::new((Self::compile(inner)?, inner.clone()))),
            None => None,
        };
        Ok(Self { all, root, accepts })
    }

    /// `Err` also where the answer is valid and says no.
    pub fn judge(&self, value: &Value) -> Result<(), Objection> {
        self.check(value).map_err(Objection::Violates)?;
        match self.accepts.as_deref() {
            Some((accepts, told)) if accepts.check(value).is_err() => {
                Err(Objection::Refuses(refusal(told, value)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// `Err` says the first thing that is wrong, and where.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.all.validate(value, self.root).map_err(|error| first(&error))
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").finish_non_exhaustive()
    }
}

/// Loads nothing.
struct Closed;

impl UrlLoader for Closed {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("a schema cannot refer to {url}: put its definitions under `$defs`").into())
    }
}

fn in_words(error: &CompileError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = match inner.downcast_ref::<ValidationError>() {
            Some(wrong) => first(wrong),
            None => inner.to_string(),
        };
        cause = inner.source();
    }
    text
}

/// Errors come as a tree; the first leaf is the plainest.
fn first(error: &ValidationError) -> String {
    if let Some(cause) = error.causes.first() {
        return first(cause);
    }
    let path = error.instance_location.to_string();
    let place = if path.is_empty() { "the top level" } else { &path };
    format!("{} (at {place})", error.kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schema = json!({"type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "integer"}}});
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.check(&json!({"n": 1})), Ok(()));
        let why = schema.check(&json!({"n": "x"})).unwrap_err();
        assert!(why.contains("(at /n)") && why.contains("integer"), "{why}");
        let why = schema.check(&json!({})).unwrap_err();
        assert!(why.contains("(at the top level)") && why.contains("'n'"), "{why}");
    }

    #[test]
    fn a_schema_that_is_none_says_what_is_wrong_with_it() {
        let why = Schema::compile(&json!({"type": "nothing"})).unwrap_err();
        assert!(why.contains("/type"), "{why}");
    }

    #[test]
    fn a_schema_that_refers_to_a_file_opens_nothing() {
        for url in ["file:///etc/passwd", "https://example.com/a.json", "other.json"] {
            let why = Schema::compile(&json!({"$ref": url})).unwrap_err();
            assert!(why.contains("cannot refer to") && why.contains("$defs"), "{url}: {why}");
        }
        let within = json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}});
        assert!(Schema::compile(&within).unwrap().check(&json!(1)).is_err());
    }
}
