//! The workflows that come with the program, and the prompts and schemas they name.
//!
//! Invariant: text only. A project may put another prompt in the place of ours, see
//! [`replaceable`]; a run pins what it was begun with either way.

use std::{cell::RefCell, collections::BTreeSet};

use onward_core::workflow::permissions::Permissions;

/// Every built-in function that a step can `call`. A test of the engine, which has the functions,
/// says that this is the list of them.
pub const CALLS: &[&str] = &[
    "agent-memory.open",
    "agent-memory.check",
    "agent-memory.approve",
    "agent-memory.lost",
    "agent-memory.whole",
    "agent-memory.claim",
    "agent-memory.record",
    "agent-memory.judge",
    "agent-memory.survey",
    "agent-memory.settle",
    "agent-memory.phase",
    "agent-memory.close",
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
    "pipeline.open",
    "pipeline.tasks",
    "pipeline.begin",
    "pipeline.settle",
    "pipeline.mending",
    "pipeline.mended",
    "pipeline.accept",
    "pipeline.commit",
    "pipeline.deliver",
    "ship.verify",
    "ship.publish",
    "dotagent.open",
    "dotagent.demand",
    "dotagent.approve",
    "dotagent.design",
    "dotagent.merged",
    "dotagent.look",
    "dotagent.plan",
    "dotagent.brief",
    "dotagent.output",
    "dotagent.settle",
    "dotagent.merge",
    "dotagent.verified",
    "dotagent.begin",
    "dotagent.verdict",
    "dotagent.repair",
    "dotagent.mended",
    "dotagent.reflect",
    "sdlc.story",
    "sdlc.spec",
    "sdlc.judged",
    "sdlc.critiqued",
    "sdlc.loop",
    "sdlc.mark",
    "sdlc.status",
    "sdlc.gate",
    "sdlc.finish",
    "sdlc.turn",
    "sdlc.epic",
    "sdlc.wave",
    "sdlc.marks",
    "sdlc.kept",
    "sdlc.merge",
    "sdlc.tag",
    "sdlc.accept",
];

const WORKFLOWS: &[(&str, &str)] = &[
    ("agent-memory", include_str!("../workflows/agent-memory.yaml")),
    ("conference", include_str!("../workflows/conference.yaml")),
    ("dotagent", include_str!("../workflows/dotagent.yaml")),
    ("epic", include_str!("../workflows/epic.yaml")),
    ("pipeline", include_str!("../workflows/pipeline.yaml")),
    ("qa-loop", include_str!("../workflows/qa-loop.yaml")),
    ("sdc", include_str!("../workflows/sdc.yaml")),
    ("ship", include_str!("../workflows/ship.yaml")),
    ("spec", include_str!("../workflows/spec.yaml")),
];

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../workflows/", $path)))),*]
    };
}

const FILES: &[(&str, &str)] = &files![
    "prompts/agent-memory/spec-writer.md",
    "prompts/agent-memory/planner.md",
    "prompts/agent-memory/task-breaker.md",
    "prompts/agent-memory/executor.md",
    "prompts/agent-memory/verifier.md",
    "prompts/agent-memory/cleanup.md",
    "prompts/agent-memory/pr-prep.md",
    "prompts/agent-memory/memory-consolidator.md",
    "schemas/agent-memory/outcome.json",
    "schemas/agent-memory/verdicts.json",
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
    "schemas/dotagent/demand.json",
    "schemas/dotagent/design.json",
    "schemas/dotagent/final_design.json",
    "schemas/dotagent/resolution.json",
    "schemas/dotagent/reflection.json",
    "schemas/dotagent/tasks.json",
    "schemas/dotagent/output.json",
    "schemas/dotagent/verdict.json",
    "schemas/pipeline/intake.json",
    "schemas/pipeline/breakdown.json",
    "schemas/pipeline/describe.json",
    "schemas/pipeline/verdict.json",
    "schemas/pipeline/holds.json",
    "prompts/sdlc/sm.md",
    "prompts/sdlc/po.md",
    "prompts/sdlc/dev.md",
    "prompts/sdlc/qa.md",
    "prompts/sdlc/pm.md",
    "prompts/sdlc/architect.md",
    "prompts/sdlc/analyst.md",
    "schemas/sdlc/approval.json",
    "schemas/sdlc/class.json",
    "schemas/sdlc/critique.json",
    "schemas/sdlc/decision.json",
    "schemas/sdlc/gate.json",
    "schemas/sdlc/go.json",
    "schemas/sdlc/passed.json",
    "schemas/sdlc/verdict.json",
    "schemas/partition.json",
    "schemas/review.json",
];

/// The names of all built-in workflows.
pub fn names() -> impl Iterator<Item = &'static str> {
    WORKFLOWS.iter().map(|(name, _)| *name)
}

/// The roles that agents play in built-in workflows.
pub fn roles() -> BTreeSet<String> {
    let found = RefCell::new(BTreeSet::new());
    for (_, text) in WORKFLOWS.iter().chain(FILES.iter()) {
        cast(text, &|role| {
            found.borrow_mut().insert(role.to_owned());
            Part::default()
        });
    }
    found.into_inner()
}

/// The built-in workflow of this name, as YAML.
pub fn workflow(name: &str) -> Option<&'static str> {
    WORKFLOWS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// How a user wants a role to be played; what is left out stays as the workflow says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub agent: Option<String>,
    pub permissions: Option<Permissions>,
    /// In the words of the agent's program.
    pub allow: Vec<String>,
}

impl Part {
    /// Another agent plays it, and all else stays.
    pub fn of(agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..Self::default() }
    }
}

/// A built-in workflow whose roles are played as `plays` says. A model is one of the program that
/// it was chosen for, and goes with it.
///
/// Invariant: each role stands in a line of its own, as `NAME: { use: AGENT, ... }`; a test holds
/// every built-in workflow to that.
pub fn cast(text: &str, plays: &dyn Fn(&str) -> Part) -> String {
    let mut in_agents = false;
    let lines = text.split_inclusive('\n').map(|line| {
        if !line.starts_with(' ') {
            in_agents = line.trim_end() == "agents:";
        }
        if in_agents { recast(line, plays) } else { None }.unwrap_or_else(|| line.to_owned())
    });
    lines.collect()
}

fn recast(line: &str, plays: &dyn Fn(&str) -> Part) -> Option<String> {
    let (role, declared) = line.trim_end().split_once(": { use: ")?;
    let (used, rest) = declared.strip_suffix(" }")?.split_once(", ")?;
    let Part { agent, permissions, allow } = plays(role.trim());
    let (used, rest) = match agent.filter(|agent| agent != used) {
        Some(agent) => (quoted(&agent), without_model(rest)?),
        None => (used.to_owned(), rest),
    };
    let permissions = permissions.map(|it| format!(", permissions: {}", it.as_str()));
    let allowed: Vec<String> = allow.iter().map(|tool| quoted(tool)).collect();
    let allowed = (!allow.is_empty()).then(|| format!(", allow: [{}]", allowed.join(", ")));
    let more = [permissions, allowed].into_iter().flatten().collect::<String>();
    Some(format!("{role}: {{ use: {used}, {rest}{more} }}\n"))
}

fn without_model(rest: &str) -> Option<&str> {
    match rest.strip_prefix("model: ") {
        Some(rest) => rest.split_once(", ").map(|(_, rest)| rest),
        None => Some(rest),
    }
}

/// As YAML, because it is a person's word.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "''"))
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
    fn every_role_can_be_played_by_another_agent() {
        for name in names() {
            let text = workflow(name).unwrap();
            let mut read = |path: &str| Ok(file(path).unwrap().as_bytes().to_vec());
            let was = load(name, text.as_bytes(), &mut read).unwrap().workflow.agents;
            assert_eq!(cast(text, &|_| Part::default()), text);
            let played = cast(text, &|_| Part::of("co'dex"));
            let now = load(name, played.as_bytes(), &mut read).unwrap().workflow.agents;
            assert!(!now.is_empty() && now.keys().eq(was.keys()), "{name}");
            for (role, agent) in &now {
                assert_eq!((agent.adapter.as_str(), &agent.model), ("co'dex", &None), "{name}");
                assert_eq!(agent.system, was[role].system, "{name}");
            }
            let first = was.keys().next().unwrap();
            let is_first =
                |role: &str| if role == first { Part::of("codex") } else { Part::default() };
            let one = cast(text, &is_first);
            let one = load(name, one.as_bytes(), &mut read).unwrap().workflow.agents;
            assert_eq!(one.values().filter(|it| it.adapter == "codex").count(), 1, "{name}");
        }
    }

    #[test]
    fn every_role_can_have_other_permissions() {
        let allow = vec!["Bash(echo 'it: {x}')".to_owned(), "Read".to_owned()];
        let permissions = Some(Permissions::Full);
        let part = Part { agent: None, permissions, allow: allow.clone() };
        for name in names() {
            let text = workflow(name).unwrap();
            let mut read = |path: &str| Ok(file(path).unwrap().as_bytes().to_vec());
            let was = load(name, text.as_bytes(), &mut read).unwrap().workflow.agents;
            let played = cast(text, &|_| part.clone());
            let now = load(name, played.as_bytes(), &mut read).unwrap().workflow.agents;
            for (role, agent) in &now {
                assert_eq!((agent.permissions, &agent.allow), (permissions, &allow), "{name}");
                let kept = (&was[role].adapter, &was[role].model, &was[role].system);
                assert_eq!((&agent.adapter, &agent.model, &agent.system), kept, "{name}");
            }
        }
    }

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

    /// The directory `.` at the end of a sentence reads as the one above it.
    #[test]
    fn d_no_prompt_ends_a_sentence_with_a_bare_directory() {
        for name in names() {
            let text = workflow(name).unwrap();
            let bare = text.lines().filter(|line| line.contains("dir }}.")).collect::<Vec<_>>();
            assert!(bare.is_empty(), "{name}: {bare:#?}");
        }
    }

    #[test]
    fn a_prompt_can_be_replaced_and_a_schema_cannot() {
        assert_eq!(replaceable("prompts/conference/chair.md"), Some("prompts/conference/chair.md"));
        assert_eq!(replaceable("schemas/review.json"), None);
        assert!(FILES.iter().all(|(_, text)| !text.trim().is_empty()));
    }
}
