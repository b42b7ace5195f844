//! The workflows that come with the program, and the prompts and schemas they name.
//!
//! Invariant: text only. A project may put another prompt in the place of ours, see
//! [`replaceable`]; a run pins what it was begun with either way.

/// Every built-in function that a step can `call`. A test of the engine, which has the functions,
/// says that this is the list of them.
pub const CALLS: [&str; 15] = [
    "conference.open",
    "conference.start",
    "conference.begin",
    "conference.brief",
    "conference.score",
    "conference.settle",
    "conference.roll",
    "conference.poster",
    "conference.review",
    "conference.transfer",
    "conference.converge",
    "conference.synthesis",
    "conference.close",
    "ship.verify",
    "ship.publish",
];

const WORKFLOWS: [(&str, &str); 4] = [
    ("conference", include_str!("../workflows/conference.yaml")),
    ("dotagent", include_str!("../workflows/dotagent.yaml")),
    ("pipeline", include_str!("../workflows/pipeline.yaml")),
    ("ship", include_str!("../workflows/ship.yaml")),
];

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../workflows/", $path)))),*]
    };
}

const FILES: [(&str, &str); 30] = files![
    "prompts/conference/chair.md",
    "prompts/conference/researcher.md",
    "prompts/conference/devils-advocate.md",
    "prompts/conference/session-chair.md",
    "prompts/conference/reviewer.md",
    "prompts/conference/synthesizer.md",
    "prompts/dotagent/pm.md",
    "prompts/dotagent/architect.md",
    "prompts/dotagent/roundtable.md",
    "prompts/dotagent/executor.md",
    "prompts/dotagent/implementer.md",
    "prompts/dotagent/resolver.md",
    "prompts/dotagent/verifier.md",
    "prompts/dotagent/qa.md",
    "prompts/dotagent/reflector.md",
    "prompts/pipeline/lead.md",
    "prompts/pipeline/analyst.md",
    "prompts/pipeline/implementer.md",
    "prompts/pipeline/verifier.md",
    "prompts/pipeline/deliverer.md",
    "prompts/ship/writer.md",
    "prompts/ship/reviewer.md",
    "schemas/dotagent/tasks.json",
    "schemas/dotagent/output.json",
    "schemas/dotagent/verdict.json",
    "schemas/pipeline/intake.json",
    "schemas/pipeline/verdict.json",
    "schemas/pipeline/holds.json",
    "schemas/partition.json",
    "schemas/review.json",
];

/// The names of all built-in workflows.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKFLOWS.iter().map(|(name, _)| *name)
}

/// The built-in workflow of this name, as YAML.
pub fn workflow(name: &str) -> Option<&'static str> {
    WORKFLOWS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// A file that a built-in workflow names, by its path from there.
pub fn file(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == path).map(|(_, text)| *text)
}

/// Where a project may have its own version of the file, from `.onward`. Prompts only: a schema is
/// what the built-in functions rely on.
pub fn replaceable(path: &str) -> Option<&str> {
    path.starts_with("prompts/").then_some(path)
}

#[cfg(test)]
mod tests {
    use onward_core::workflow::load;

    use super::*;

    #[test]
    fn every_built_in_workflow_is_a_workflow_without_a_remark() {
        for name in names() {
            let text = workflow(name).unwrap();
            let mut read = |path: &str| -> Result<Vec<u8>, String> {
                file(path).map(|text| text.as_bytes().to_vec()).ok_or("no such file".into())
            };
            let loaded = load(name, text.as_bytes(), &mut read);
            let loaded = loaded.unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
            assert_eq!(loaded.workflow.name, name);
            assert!(loaded.warnings.is_empty(), "{name}: {:#?}", loaded.warnings);
        }
        assert_eq!(workflow("no-such"), None);
    }

    #[test]
    fn a_prompt_can_be_replaced_and_a_schema_cannot() {
        assert_eq!(replaceable("prompts/conference/chair.md"), Some("prompts/conference/chair.md"));
        assert_eq!(replaceable("schemas/review.json"), None);
        assert!(FILES.iter().all(|(_, text)| !text.trim().is_empty()));
    }
}
