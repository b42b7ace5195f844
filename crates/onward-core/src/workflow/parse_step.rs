//! Steps: one mapping each, of exactly one kind.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use super::{
    dir::output,
    fields::{self, Fields},
    graph, keys,
    model::{
        Agent, Durability, Gate, InputKind, Kind, Place, Retry, Span, Step, Template, Workflow,
    },
    parse::{ADAPTERS, Reader, Surroundings},
    parse_head::fits,
    problem::Severity,
    yaml::{Key, Node, Tree, value_name},
};
use crate::{evidence::Cause, id::StepId};

/// Over all files; included ones count every time.
const STEPS_MAX: usize = 200_000;
/// Groups within groups.
const DEPTH_MAX: usize = 30;

impl Reader<'_> {
    /// A list of steps, with their needs resolved. What is given away is dropped step by step: it
    /// is as large as what is made of it.
    pub(super) fn steps(
        &mut self,
        node: Cow<'_, Node>,
        around: &mut Surroundings,
        depth: usize,
    ) -> Vec<Step> {
        let count = fields::list(&node, "steps", &mut self.problems).len();
        if matches!(&node.tree, Tree::List(nodes) if nodes.is_empty()) {
            self.problems
                .error(node.at, "`steps` is empty")
                .hint("such as `steps: [{ id: hello, run: echo hello }]`");
        }
        if depth > DEPTH_MAX {
            let message = format!("groups are nested more than {DEPTH_MAX} deep");
            self.problems.error(node.at, message);
            return Vec::new();
        }
        let mut steps: Vec<Step> = Vec::with_capacity(count);
        let mut needs = Vec::with_capacity(count);
        let mut places: BTreeMap<String, (usize, Place)> = BTreeMap::new();
        for node in fields::items(node) {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                // Said once: the counter goes on.
                if self.steps == STEPS_MAX + 1 {
                    let message = format!("the workflow has more than {STEPS_MAX} steps");
                    self.problems.error(node.at, message).hint("use `each`");
                }
                break;
            }
            let Some((step, fields)) = self.step(&node, around, depth) else { continue };
            let at = fields.get("id").map_or(step.at, |node| node.at);
            let id = step.id.as_str().to_owned();
            if let Some((_, first)) = places.get(&id) {
                let (message, line) = (format!("there are two steps `{id}`"), first.line);
                self.problems.error(at, message).hint(format!("the first is in line {line}"));
                continue;
            }
            places.insert(id, (steps.len(), at));
            needs.push(fields::field(node, "needs"));
            steps.push(step);
        }
        for (index, given) in needs.into_iter().enumerate() {
            steps[index].needs = match given {
                Some(node) => self.needs(&node, &places),
                None => index.checked_sub(1).into_iter().collect(),
            };
        }
        self.refuse_cycle(&steps);
        steps
    }

    fn needs(&mut self, node: &Node, places: &BTreeMap<String, (usize, Place)>) -> Vec<usize> {
        let mut needs = BTreeSet::new();
        for node in fields::list(node, "needs", &mut self.problems) {
            let Some(id) = fields::text(node, "needs", &mut self.problems) else { continue };
            if let Some((index, _)) = places.get(id) {
                needs.insert(*index);
            } else {
                let message = format!("there is no step `{id}` in this list");
                let known = places.keys().map(String::as_str);
                let problem = self.problems.unknown(node.at, message, id, known);
                if problem.hint.is_none() {
                    let some: Vec<&str> = places.keys().take(8).map(String::as_str).collect();
                    problem.hint(format!("there are: {}", some.join(", ")));
                }
            }
        }
        needs.into_iter().collect()
    }

    fn refuse_cycle(&mut self, steps: &[Step]) {
        let needs: Vec<Vec<usize>> = steps.iter().map(|step| step.needs.clone()).collect();
        let Err(cycle) = graph::order(&needs) else { return };
        let Some(first) = cycle.first().map(|index| &steps[*index]) else { return };
        let ids = cycle.iter().map(|index| steps[*index].id.as_str()).chain([first.id.as_str()]);
        let shown = ids.collect::<Vec<_>>().join(" -> ");
        self.problems
            .error(first.at, format!("these steps wait for each other: {shown}"))
            .hint("a -> b reads: a needs b; a step without `needs` needs the one before it");
    }

    fn step<'n>(
        &mut self,
        node: &'n Node,
        around: &mut Surroundings,
        depth: usize,
    ) -> Option<(Step, Fields<'n>)> {
        let fields = Fields::of(node, "a step", &mut self.problems)?;
        let kind = self.kind_key(&fields);
        let id = self.id(&fields)?;
        let problems = &mut self.problems;
        let get = |name: &str| fields.get(name);
        let label = get("description");
        let description =
            label.and_then(|it| fields::text(it, "description", problems)).map(str::to_owned);
        let when = get("when").and_then(|it| fields::template(it, "when", problems));
        let many = self.many(&fields, &id);
        let problems = &mut self.problems;
        let mut list = |name: &str| {
            get(name).map(|it| fields::patterns(it, name, problems)).unwrap_or_default()
        };
        let (reads, writes) = (list("reads"), list("writes"));
        for template in writes.iter().filter(|it| it.is_literal()) {
            if let Err(why) = output(&template.source) {
                problems
                    .error(template.at, format!("`writes`: {why}"))
                    .hint("a step leaves its files in the project; copy them elsewhere in a step");
            }
        }
        let check = get("check").and_then(|it| fields::template(it, "check", problems));
        let result = get("result").and_then(|it| self.result(it));
        let worktree = get("worktree").and_then(|it| self.worktree(it));
        let (effect_outside, probe) = self.effect(&fields);
        let timed = kind.is_some_and(|kind| matches!(kind, "run" | "agent" | "call"));
        let dir = self.dir(&fields, around.in_worktree);
        let timeout = self.timeout(&fields).or(around.timeout_ms.map(Span::Fixed));
        let idle_ms = self.time_limit(&fields, "idle").or(around.idle_ms);
        let retry = get("retry").map(|it| self.retry(it, &around.retry));
        let retry = retry.unwrap_or_else(|| around.retry.clone());
        let on_failure = get("on_failure").map(|it| self.on_failure(it)).unwrap_or_default();
        let never = Retry { max: 0, backoff_ms: 0, on: Cause::RETRIED.into() };
        let problems = &mut self.problems;
        let mut flag = |name: &str| get(name).and_then(|it| fields::flag(it, name, problems));
        let (edits, keep) = (flag("edits"), flag("keep"));
        let durability = get("durability").and_then(|it| self.durability(it));
        let (permissions, allow) = self.permissions(&fields);
        let env = get("env").map(|it| self.env(it)).unwrap_or_default();
        let is_inside = around.in_worktree;
        around.in_worktree |= worktree.is_some();
        let step = Step {
            id,
            at: node.at,
            description,
            kind: match kind {
                Some(kind) => self.kind(kind, &fields, around, depth),
                None => Kind::Run { command: Template::default() },
            },
            needs: Vec::new(),
            many,
            when,
            reads,
            writes,
            check,
            result,
            worktree,
            dir,
            effect_outside,
            probe,
            retry: if timed { retry } else { never },
            on_failure,
            timeout: timeout.filter(|_| timed),
            idle_ms: idle_ms.filter(|_| timed && kind != Some("call")),
            edits: edits.unwrap_or(kind == Some("agent")),
            durability: durability.unwrap_or(if effect_outside || kind == Some("agent") {
                Durability::Full
            } else {
                Durability::Process
            }),
            keep: keep.unwrap_or(false),
            permissions,
            allow,
            env,
        };
        around.in_worktree = is_inside;
        Some((step, fields))
    }

    /// The one key that says what the step is. Also says which keys do not fit it.
    fn kind_key(&mut self, fields: &Fields<'_>) -> Option<&'static str> {
        let mut kinds: Vec<(&'static str, &Key)> = Vec::new();
        let mut unknown = false;
        for (key, _) in fields.pairs {
            if let Some(kind) = keys::KINDS.into_iter().find(|kind| *kind == key.text) {
                kinds.push((kind, key));
            } else if keys::kinds_with(&key.text).is_empty() {
                unknown = true;
                fields::unknown_key(key, "a step", &keys::all(), &mut self.problems);
            }
        }
        let kind = match kinds.as_slice() {
            [] => {
                // A misspelt kind was named already.
                if !unknown {
                    self.problems
                        .error(fields.at, "the step does not say what it is")
                        .hint(format!("give it one of: {}", keys::KINDS.join(", ")));
                }
                return None;
            }
            [(kind, _)] => *kind,
            [(first, _), (second, key), ..] => {
                let message = format!("a step is one thing, and this one has `{first}` already");
                self.problems
                    .error(key.at, message)
                    .hint(format!("make `{second}` a step of its own"));
                return Some(first);
            }
        };
        for (key, _) in fields.pairs {
            let fitting = keys::kinds_with(&key.text);
            if !fitting.is_empty() && !fitting.contains(&kind) {
                let message = format!("`{}` does not fit a `{kind}` step", key.text);
                let hint = format!("it is for steps with: {}", fitting.join(", "));
                self.problems.error(key.at, message).hint(hint);
            }
        }
        Some(kind)
    }

    fn id(&mut self, fields: &Fields<'_>) -> Option<StepId> {
        let Some(node) = fields.get("id") else {
            self.problems.error(fields.at, "the step has no `id`").hint("write `id: some-name`");
            return None;
        };
        let text = fields::text(node, "id", &mut self.problems)?;
        let id = text.parse::<StepId>();
        if let Err(error) = &id {
            self.problems.error(node.at, error.to_string());
        }
        id.ok()
    }

    fn kind(
        &mut self,
        kind: &str,
        fields: &Fields<'_>,
        around: &mut Surroundings,
        depth: usize,
    ) -> Kind {
        let Some((key, node)) = fields.entry(kind) else {
            return Kind::Run { command: Template::default() };
        };
        let problems = &mut self.problems;
        match kind {
            "agent" => {
                let agent = fields::text(node, kind, problems).unwrap_or_default();
                if !agent.is_empty() {
                    self.agent(agent, node.at, around);
                }
                let prompt = fields.get("prompt");
                if prompt.is_none() {
                    self.problems
                        .error(key.at, "an agent step needs a `prompt`")
                        .hint("add `prompt:` with what the agent is to do");
                }
                let problems = &mut self.problems;
                let prompt = prompt.and_then(|it| fields::template(it, "prompt", problems));
                Kind::Agent { agent: agent.to_owned(), prompt: prompt.unwrap_or_default() }
            }
            "gate" => Kind::Gate(self.gate(node, fields)),
            "call" => {
                let name = fields::text(node, kind, problems).unwrap_or_default();
                let word = |part: &str| {
                    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-@".contains(c);
                    !part.is_empty() && part.chars().all(allowed)
                };
                let good = name.contains('.') && name.split('.').all(word);
                if !name.is_empty() && !good {
                    let message = format!("`{name}` is not the name of a built-in function");
                    problems.error(node.at, message).hint("such as `conference.transfer`");
                }
                let with = self.with(fields.get("with"), None, node.at);
                Kind::Call { name: name.to_owned(), with }
            }
            "steps" => Kind::Group { steps: self.steps(Cow::Borrowed(node), around, depth + 1) },
            "workflow" => match self.sub_workflow(node) {
                Some((path, workflow)) => {
                    let with = self.with(fields.get("with"), Some(&workflow), node.at);
                    Kind::Sub { path, with, workflow: Box::new(workflow) }
                }
                None => Kind::Run { command: Template::default() },
            },
            _ => Kind::Run { command: fields::template(node, kind, problems).unwrap_or_default() },
        }
    }

    /// Declared, or a program that needs no declaration.
    fn agent(&mut self, name: &str, at: Place, around: &mut Surroundings) {
        if around.agents.contains_key(name) {
            return;
        }
        if !ADAPTERS.contains(&name) {
            let known = around.agents.keys().map(String::as_str).chain(ADAPTERS);
            let message = format!("there is no agent `{name}`");
            let problem = self.problems.unknown(at, message, name, known);
            // The configuration may name it.
            (problem.severity, problem.agent) = (Severity::Warning, Some(name.to_owned()));
            if problem.hint.is_none() {
                problem.hint(format!(
                    "declare it: `agents: {{ {name}: {{ use: claude }} }}`, or define \
                     [agents.{name}] in the configuration"
                ));
            }
        }
        let agent = Agent { adapter: name.to_owned(), ..Agent::default() };
        around.agents.insert(name.to_owned(), agent);
    }

    fn gate(&mut self, node: &Node, fields: &Fields<'_>) -> Gate {
        let problems = &mut self.problems;
        let prompt = fields::template(node, "gate", problems).unwrap_or_default();
        let shows = fields.get("shows").map(|it| fields::patterns(it, "shows", problems));
        let mut options: Vec<String> = Vec::new();
        match fields.get("options") {
            None => options.extend(["approve".into(), "reject".into()]),
            Some(node) => {
                for node in fields::list(node, "options", problems) {
                    let Some(option) = fields::text(node, "options", problems) else { continue };
                    if options.iter().any(|other| other == option) {
                        problems.error(node.at, format!("`{option}` is offered twice"));
                    }
                    if option.starts_with('-') {
                        let message = format!("`{option}` cannot be typed as an answer");
                        problems.error(node.at, message).hint("begin it with another character");
                    }
                    options.push(option.to_owned());
                }
                if matches!(&node.tree, Tree::List(nodes) if nodes.is_empty()) {
                    problems.error(node.at, "a gate needs at least one option");
                }
            }
        }
        let ends = |option: &&String| ["reject", "cancel", "abort"].contains(&option.as_str());
        let mut stop: Vec<String> = options.iter().filter(ends).cloned().collect();
        if let Some(node) = fields.get("stop") {
            stop.clear();
            for node in fields::list(node, "stop", problems) {
                let Some(option) = fields::text(node, "stop", problems) else { continue };
                if !options.iter().any(|other| other == option) {
                    let message = format!("`{option}` is not an option of this gate");
                    let known = options.iter().map(String::as_str);
                    let problem = problems.unknown(node.at, message, option, known);
                    if problem.hint.is_none() {
                        problem.hint(format!("it offers: {}", options.join(", ")));
                    }
                }
                stop.push(option.to_owned());
            }
        }
        Gate { prompt, shows: shows.unwrap_or_default(), options, stop }
    }

    /// Values for a workflow's inputs, or for a built-in function.
    fn with(
        &mut self,
        node: Option<&Node>,
        workflow: Option<&Workflow>,
        at: Place,
    ) -> BTreeMap<String, Template> {
        let mut with = BTreeMap::new();
        let given = node.and_then(|node| Fields::of(node, "`with`", &mut self.problems));
        for (key, node) in given.map_or(&[][..], |given| given.pairs) {
            let value = fields::value_template(node, &key.text, &mut self.problems);
            let Some((template, literal)) = value else { continue };
            if let Some(workflow) = workflow {
                let name = &key.text;
                match (workflow.inputs.get(name), literal) {
                    (None, _) => {
                        let message = format!("the workflow has no input `{name}`");
                        let known = workflow.inputs.keys().map(String::as_str);
                        self.problems.unknown(key.at, message, name, known);
                    }
                    (Some(input), Some(value)) if !fits(input.kind, &value) => {
                        let (found, wanted) = (value_name(&value), kind_name(input.kind));
                        let message = format!("input `{name}` is {wanted}, found {found}");
                        self.problems.error(node.at, message);
                    }
                    (Some(_), _) => {}
                }
            }
            with.insert(key.text.clone(), template);
        }
        if let Some(workflow) = workflow {
            let required = workflow.inputs.iter().filter(|(_, input)| input.default.is_none());
            for (name, _) in required.filter(|(name, _)| !with.contains_key(*name)) {
                self.problems
                    .error(at, format!("the workflow needs its input `{name}`"))
                    .hint(format!("give it: `with: {{ {name}: … }}`"));
            }
        }
        with
    }
}

fn kind_name(kind: InputKind) -> &'static str {
    match kind {
        InputKind::String => "text",
        InputKind::Number => "a number",
        InputKind::Integer => "a whole number",
        InputKind::Boolean => "true or false",
        InputKind::List => "a list",
        InputKind::Object => "a mapping",
    }
}
