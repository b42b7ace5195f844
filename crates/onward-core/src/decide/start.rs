//! One attempt, rendered: what will be run, under which key.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Command, Decider, Hold, Start};
use crate::{
    digest::Digest,
    graph::NodeId,
    key::KeyParts,
    launch::{AgentCall, Launch, Program},
    scope::Scope,
    state::{Phase, StepState},
    workflow::{
        answer,
        dir::{inside_project, output},
        duration,
        model::{Durability, Kind, Span, Step, Template, Workflow},
        pattern::understood,
        permissions::Permissions,
        template::Quoting,
    },
    worktree::{below, worktree_of},
};

impl Decider<'_> {
    pub(super) fn start(&self, id: NodeId) -> Result<Vec<Command>, Hold> {
        let node = self.run.graph.node(id);
        let step = self.run.defs.step(node.def);
        let entry = self.run.state.step(&node.address);
        let failed = entry.is_some_and(|entry| entry.phase == Phase::Failed);
        // A failed try has passed its `when` already.
        if !failed && let Some(skipped) = self.skipped(id, step)? {
            return Ok(vec![Command::Record(skipped)]);
        }
        if let Some(reopened) = self.outdated_approval(id)? {
            return Ok(vec![Command::Record(reopened)]);
        }
        let attempt = entry.map_or(0, |entry| entry.attempts) + 1;
        let mut start = self.rendered(id, attempt)?;
        if let Some(other) = self.stand_in(id) {
            self.hand_to(&mut start, id, other.name);
        }
        // A session belongs to the agent that began it.
        let begun_by = entry.and_then(|it| it.started.as_deref()).map(|it| &it.agent);
        let same = begun_by == Some(&start.agent);
        start.goes_on = agent_can(step) && same && entry.is_some_and(StepState::may_go_on);
        let undoes = failed || entry.is_some_and(StepState::may_go_on);
        start.revert_previous = undoes && !step.keep;
        Ok(vec![Command::Start(Box::new(start))])
    }

    /// Gives an attempt to another agent. Its key stays: what is asked for is the same.
    pub(super) fn hand_to(&self, start: &mut Start, id: NodeId, name: &str) {
        let Program::Agent(call) = &mut start.launch.program else { return };
        let def = self.run.graph.node(id).def;
        let declared = self.run.defs.workflow_of(def).agents.get(name);
        name.clone_into(&mut call.name);
        self.run.worker_named(def, name).program.clone_into(&mut call.adapter);
        call.model = declared.and_then(|it| it.model.clone());
        if let Some(system) = declared.and_then(|it| it.system.as_ref()) {
            call.system = Some(system.text.clone());
        }
        start.agent = Some(name.to_owned());
    }

    pub(super) fn rendered(&self, id: NodeId, attempt: u32) -> Result<Start, Hold> {
        let node = self.run.graph.node(id);
        let step = self.run.defs.step(node.def);
        let facts = self.facts.of(&node.address);
        let scope = Scope { run: self.run, node: id, facts };
        let workflow = self.run.defs.workflow_of(node.def);
        let mut key = KeyParts::default();
        let (program, agent) = program(&scope, step, workflow, &mut key)?;
        let check = step.check.as_ref().map(|it| scope.text(it, Quoting::Shell)).transpose()?;
        let (program, mut env) = with_variables(&scope, step, program)?;
        let mut define = |name: &str, text: &str| {
            key.definition.insert(name.to_owned(), KeyParts::value(text));
        };
        if let Some(check) = &check {
            define("check", check);
        }
        if let Some(schema) = &step.result {
            define("schema", &schema.text);
        }
        let script = step.check.as_ref().map(|it| scope.script(it, env.len() + 1)).transpose()?;
        let check = script.map(|script| {
            env.extend(script.values);
            script.text
        });
        for (name, template) in &step.env {
            // The name only: a value may be a secret.
            define(&format!("env.{name}"), "set");
            env.insert(name.clone(), scope.text(template, Quoting::Plain)?);
        }
        let effect = step.effect_outside.then(|| self.effect_id(id));
        if let Some(effect) = &effect {
            env.insert("ONWARD_EFFECT_ID".to_owned(), effect.clone());
        }
        let mut writes = scope.texts(&step.writes)?;
        if !writes.is_empty() {
            define("writes", &writes.join(" "));
        }
        for pattern in &writes {
            output(pattern).map_err(|why| Hold::Fails(format!("writes: {why}")))?;
        }
        let worktree = worktree_of(self.run, id)?;
        if let Some(place) = &worktree {
            define("worktree", place.name());
            writes = writes.into_iter().map(|pattern| below(&place.path, pattern)).collect();
        }
        let mut cwd = worktree.map(|place| place.path).unwrap_or_default();
        if let Some(dir) = &step.dir {
            if !cwd.is_empty() {
                return Err(Hold::Fails("dir: the step works in a worktree already".to_owned()));
            }
            let dir = scope.text(dir, Quoting::Plain)?;
            cwd = inside_project(&dir).map_err(|why| Hold::Fails(format!("dir: {why}")))?;
            define("dir", &cwd);
            writes = writes.into_iter().map(|pattern| below(&cwd, pattern)).collect();
        }
        for pattern in &writes {
            understood(pattern).map_err(|why| Hold::Fails(format!("writes: {why}")))?;
        }
        self.add_reads(&scope, step, &cwd, &mut key)?;
        key.needs = self.run.graph.need_digests(id, &self.run.defs);
        let launch = Launch {
            step: node.address.clone(),
            attempt,
            sync_seal: step.durability == Durability::Full || agent.is_some() || effect.is_some(),
            program,
            cwd,
            env,
            check,
            timeout_ms: timeout(&scope, step)?,
            idle_ms: step.idle_ms,
            snapshot: None,
            stop: None,
            of: None,
            outputs: Vec::new(),
        };
        Ok(Start { launch, key, writes, revert_previous: false, goes_on: false, effect, agent })
    }

    /// Declared reads, and files the templates read.
    fn add_reads(
        &self,
        scope: &Scope<'_>,
        step: &Step,
        cwd: &str,
        key: &mut KeyParts,
    ) -> Result<(), Hold> {
        let facts = self.facts.of(&self.run.graph.node(scope.node).address);
        let patterns = scope.texts(&step.reads)?.into_iter();
        let patterns: Vec<String> = patterns.map(|pattern| below(cwd, pattern)).collect();
        for pattern in &patterns {
            understood(pattern).map_err(|why| Hold::Fails(format!("reads: {why}")))?;
        }
        for file in facts.files(&patterns)? {
            key.reads.insert(file.path.clone(), file.hash);
        }
        for (path, text) in &facts.texts {
            if let Some(text) = text {
                key.reads.insert(path.clone(), Digest::of(text.as_bytes()));
            }
        }
        Ok(())
    }

    /// The same for every attempt at this instance, and for no other.
    fn effect_id(&self, id: NodeId) -> String {
        let run = self.run.state.opened.as_ref().map_or("", |opened| opened.run.as_str());
        let address = self.run.graph.node(id).address.as_str();
        format!("{run}-{}", Digest::of(address.as_bytes()))
    }
}

/// A command that a shell runs gets its values as variables; one that needs no shell has them as
/// arguments already.
fn with_variables(
    scope: &Scope<'_>,
    step: &Step,
    program: Program,
) -> Result<(Program, BTreeMap<String, String>), Hold> {
    match (&program, &step.kind) {
        (Program::Shell(_), Kind::Run { command }) => {
            let script = scope.script(command, 1)?;
            Ok((Program::Shell(script.text), script.values.into_iter().collect()))
        }
        (
            Program::Shell(_) | Program::Argv(_) | Program::Agent(_) | Program::Call { .. },
            Kind::Run { .. }
            | Kind::Agent { .. }
            | Kind::Call { .. }
            | Kind::Gate(_)
            | Kind::Group { .. }
            | Kind::Sub { .. },
        ) => Ok((program, BTreeMap::new())),
    }
}

fn agent_can(step: &Step) -> bool {
    matches!(step.kind, Kind::Agent { .. })
}

/// In milliseconds.
fn timeout(scope: &Scope<'_>, step: &Step) -> Result<Option<u64>, Hold> {
    match &step.timeout {
        None => Ok(None),
        Some(Span::Fixed(ms)) => Ok(Some(*ms)),
        Some(Span::Expression(template)) => {
            let text = scope.text(template, Quoting::Plain)?;
            let ms = duration::parse(&text).filter(|ms| *ms > 0);
            let no = || format!("timeout: `{text}` is not a length of time, such as `30m`");
            ms.map(Some).ok_or_else(|| Hold::Fails(no()))
        }
    }
}

fn program(
    scope: &Scope<'_>,
    step: &Step,
    workflow: &Workflow,
    key: &mut KeyParts,
) -> Result<(Program, Option<String>), Hold> {
    let mut define = |name: &str, text: &str| {
        key.definition.insert(name.to_owned(), KeyParts::value(text));
    };
    match &step.kind {
        Kind::Run { command } => {
            let command = scope.text(command, Quoting::Shell)?;
            define("run", &command);
            Ok((Program::from_shell(&command), None))
        }
        Kind::Agent { agent: name, prompt } => {
            let prompt = scope.text(prompt, Quoting::Plain)?;
            define("prompt", &prompt);
            let declared = workflow.agents.get(name);
            let adapter = declared.map_or(name, |agent| &agent.adapter).clone();
            let model = declared.and_then(|agent| agent.model.clone());
            let system = declared.and_then(|agent| agent.system.as_ref());
            key.agent.insert("use".to_owned(), adapter.clone());
            key.agent.extend(model.clone().map(|model| ("model".to_owned(), model)));
            let text = system.map(|file| KeyParts::value(&file.text));
            key.agent.extend(text.map(|text| ("system".to_owned(), text)));
            let system = system.map(|file| file.text.clone());
            let name = name.clone();
            let (goes_on_in, of) = (None, name.clone());
            let stated = step.permissions.or_else(|| declared.and_then(|it| it.permissions));
            let mut allow = declared.map(|it| it.allow.clone()).unwrap_or_default();
            allow.extend(step.allow.iter().cloned());
            // Only what is stated is part of the definition: a default may become stricter without
            // making finished work stale.
            if let Some(stated) = stated {
                define("permissions", stated.as_str());
            }
            if !allow.is_empty() {
                define("allow", &allow.join(" "));
            }
            let changes = step.edits || !step.writes.is_empty() || step.worktree.is_some();
            let least = if changes { Permissions::Edit } else { Permissions::ReadOnly };
            let permissions = stated.unwrap_or(least);
            let schema = step.result.as_ref().map(|it| answer::asked(&it.text));
            let call = AgentCall {
                name: of,
                adapter,
                model,
                system,
                prompt,
                permissions,
                allow,
                schema,
                repairs: None,
                brief: None,
                goes_on_in,
            };
            Ok((Program::Agent(call), Some(name)))
        }
        Kind::Call { name, with } => {
            let with = values(scope, with)?;
            define("call", name);
            define("with", &with.to_string());
            Ok((Program::Call { name: name.clone(), with }, None))
        }
        Kind::Gate(_) | Kind::Group { .. } | Kind::Sub { .. } => {
            unreachable!("only steps that run are started")
        }
    }
}

fn values(scope: &Scope<'_>, with: &BTreeMap<String, Template>) -> Result<Value, Hold> {
    let mut object = serde_json::Map::new();
    for (name, template) in with {
        object.insert(name.clone(), scope.value(template)?);
    }
    Ok(Value::Object(object))
}
