//! For tests: a run driven by the decider alone, its attempts ended by a line of text.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde_json::Value;

use crate::workflow::template::quoted;
use crate::{
    address::Address,
    decide::{Command, Start, decide},
    digest::Digest,
    event::{AttemptFinished, AttemptStarted, Event, Mode, Record, RunOpened},
    evidence::{Cause, Evidence, FileProof, Outcome, Stat},
    facts::{Facts, Need},
    graph::{Defs, Graph},
    kept::Kept,
    key::Key,
    plan::next_record,
    recovery::Rung,
    run::Run,
    state::State,
    time::Timestamp,
    workflow,
};

pub(crate) struct Bench {
    pub(crate) run: Run,
    pub(crate) facts: Facts,
    pub(crate) now: Timestamp,
    /// Files of the project: path and content.
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) log: String,
    /// Everything that was taken in.
    pub(crate) records: Vec<Record>,
    /// The last start of each step.
    pub(crate) starts: BTreeMap<String, Start>,
}

impl Bench {
    pub(crate) fn new(yaml: &str) -> Self {
        Self::with_inputs(yaml, BTreeMap::new())
    }

    pub(crate) fn with_inputs(yaml: &str, inputs: BTreeMap<String, Value>) -> Self {
        let text = format!("onward: 1\nname: test\n{yaml}");
        let mut nothing = |path: &str| Err(format!("{path} is not there"));
        let loaded = workflow::load("test.yaml", text.as_bytes(), &mut nothing)
            .unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
        let run = Run::new(Arc::new(Defs::new(loaded.workflow)), State::default());
        let now = Timestamp::from_micros(1_000_000_000);
        let mut bench = Self {
            run,
            facts: Facts::default(),
            now,
            files: BTreeMap::new(),
            log: String::new(),
            records: Vec::new(),
            starts: BTreeMap::new(),
        };
        bench.record(Event::RunOpened(Box::new(RunOpened {
            format: 1,
            run: "test-20261115-aaaa".parse().unwrap(),
            workflow: "test".into(),
            workflow_hash: Digest::of(b"test"),
            file: None,
            inputs,
            git: None,
            engine: "0".into(),
            boot_id: "boot".into(),
            mode: Mode::Interactive,
        })));
        bench
    }

    /// Takes in an event, and checks the graph that was kept up against one from scratch.
    pub(crate) fn record(&mut self, event: Event) {
        let text = format!("{event:?}");
        let record = next_record(&self.run.state, self.now, event);
        self.records.push(record.clone());
        self.run.after(record).unwrap_or_else(|error| panic!("{error}: {text}\n{}", self.log));
        let fresh = Graph::new(&self.run.defs, &self.run.state);
        assert_eq!(picture(&self.run.graph), picture(&fresh), "after {text}\n{}", self.log);
    }

    /// Lets the decider go on until it has nothing more to say.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let commands = decide(&self.run, &self.facts, self.now);
            let mut moved = false;
            for command in commands {
                moved |= self.execute(command);
            }
            if !moved {
                self.facts.by_step.clear();
                return;
            }
        }
        panic!("the decider never comes to rest:\n{}", self.log);
    }

    fn execute(&mut self, command: Command) -> bool {
        match command {
            Command::Record(event) => {
                self.say(&told(&event));
                self.record(event);
                true
            }
            Command::Start(start) => {
                self.start(*start);
                true
            }
            Command::Need { step, needs } => {
                for need in needs {
                    self.answer(&step, need);
                }
                true
            }
            Command::StopAll => {
                self.say("stop all");
                false
            }
            Command::WakeAt(moment) => {
                let seconds = moment.ms_since(self.now) / 1000;
                self.say(&format!("wake in {seconds}s"));
                false
            }
        }
    }

    fn start(&mut self, start: Start) {
        let step = start.launch.step.clone();
        let mut argv = start.launch.program.argv();
        for (name, value) in &start.launch.env {
            for word in &mut argv {
                *word = word.replace(&format!("\"${name}\""), &quoted(value));
            }
        }
        let text = argv.join(" ");
        let text = text.strip_prefix("/bin/sh -c ").unwrap_or(&text);
        self.say(&format!("start {step} #{}: {text}", start.launch.attempt));
        self.record(Event::AttemptStarted(Box::new(AttemptStarted {
            step: step.clone(),
            attempt: start.launch.attempt,
            key: Key::from(&start.key),
            argv: Kept::from(&argv),
            cwd: String::new(),
            agent: start.agent.clone(),
            session: None,
            continues: false,
            base: None,
            writes: start.writes.clone(),
            saved: BTreeMap::new(),
            kinds: BTreeMap::new(),
            reverts: Vec::new(),
            nonce: None,
        })));
        self.starts.insert(step.to_string(), start);
    }

    fn answer(&mut self, step: &Address, need: Need) {
        let facts = self.facts.by_step.entry(step.clone()).or_default();
        match need {
            Need::Text(path) => {
                let text = self.files.get(&path).cloned();
                facts.texts.insert(path, text);
            }
            Need::Glob(pattern) => {
                let prefix = pattern.trim_end_matches('*').to_owned();
                let exact = prefix == pattern;
                let fits = |path: &&String| {
                    if exact { **path == pattern } else { path.starts_with(&prefix) }
                };
                let found = self.files.keys().filter(fits).map(|path| self.proof(path));
                let found = found.collect();
                self.facts.by_step.entry(step.clone()).or_default().globs.insert(pattern, found);
            }
        }
    }

    pub(crate) fn proof(&self, path: &str) -> FileProof {
        let bytes = self.files[path].as_bytes();
        let size = u64::try_from(bytes.len()).unwrap();
        let stat = Stat { size, mtime_ns: 0, inode: 0 };
        FileProof { path: path.to_owned(), hash: Digest::of(bytes), stat }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.log, "{line}").unwrap();
    }

    /// `a!` ends a well, `a!x` with the output `x`, `a!{"n":1}` with that result; `a?` fails it,
    /// `a?crash` for that cause; `a~` loses it; `aX` invalidates it; `g=yes` answers a gate; `+5s`
    /// lets time pass; `R` resumes. After each the decider goes on.
    pub(crate) fn tell(mut self, script: &str) -> Self {
        self.settle();
        for word in script.split_whitespace() {
            self.word(word);
            self.settle();
        }
        self
    }

    fn word(&mut self, word: &str) {
        self.say(&format!("> {word}"));
        if word == "R" {
            let count = self.run.state.resumes + 1;
            let mut resumed = crate::state::tests::resumed(count);
            if let Event::RunResumed(it) = &mut resumed {
                it.reverts.clear();
            }
            return self.record(resumed);
        }
        if let Some(seconds) = word.strip_prefix('+') {
            let seconds: u64 = seconds.trim_end_matches('s').parse().unwrap();
            self.now = self.now.plus_ms(seconds * 1000);
            return;
        }
        let index = word.find(['!', '?', '~', '=', 'X']).expect("an act");
        let (name, act) = word.split_at(index);
        let step = Address::from_text(name);
        let attempt = self.run.state.step(&step).map_or(0, |entry| entry.attempts);
        let rest = act[1..].to_owned();
        match &act[..1] {
            "!" => self.finish(&step, attempt, Outcome::Done, &rest),
            "?" => {
                let cause = Cause::ALL.into_iter().find(|cause| cause.as_str() == rest);
                let cause = cause.unwrap_or(Cause::Failed);
                let outcome = Outcome::Failed { cause, detail: "bad".into() };
                self.finish(&step, attempt, outcome, "");
            }
            "~" => self.record(Event::AttemptLost {
                step,
                attempt,
                cause: Cause::Interrupted,
                rung: Rung::DiedClean,
                reverted: Vec::new(),
                rescue: None,
            }),
            "X" => self.record(Event::StepInvalidated { step, causes: Vec::new() }),
            "=" => {
                let hash = self.run.state.step(&step).unwrap().gate.as_ref().unwrap().hash;
                let stops = rest == "cancel";
                let (by, option) = ("me".to_owned(), rest);
                self.record(Event::GateDecided { step, by, option, comment: None, hash, stops });
            }
            _ => unreachable!("found above"),
        }
    }

    fn finish(&mut self, step: &Address, attempt: u32, outcome: Outcome, output: &str) {
        let result: Option<Value> = serde_json::from_str(output).ok().filter(Value::is_object);
        let mut evidence = Evidence::default();
        if outcome == Outcome::Done && result.is_none() && !output.is_empty() {
            let path = format!("{step}.out");
            self.files.insert(path.clone(), output.to_owned());
            evidence.files = vec![self.proof(&path)];
        }
        evidence.result = result.as_ref().map(|it| Digest::of(it.to_string().as_bytes()));
        let mut finished = AttemptFinished {
            step: step.clone(),
            attempt,
            outcome,
            ending: None,
            evidence,
            result,
            stdout: Some(format!("stdout of {step}")),
            after: None,
            footprint: Vec::new(),
            tolerated: false,
            head: None,
            ended: None,
            waited: 0,
        };
        finished.tolerated = self.run.tolerates(&finished);
        self.record(Event::AttemptFinished(Box::new(finished)));
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a test shows what it knows to show")]
fn told(event: &Event) -> String {
    match event {
        Event::GroupExpanded { step, items, .. } => {
            let keys: Vec<&str> = items.iter().map(|item| item.key.as_str()).collect();
            format!("expand {step} [{}]", keys.join(" "))
        }
        Event::LoopTurned { step, turn } => format!("turn {step} {turn}"),
        Event::LoopEnded { step, turns, reason } => format!("end {step} after {turns}: {reason:?}"),
        Event::StepSkipped { step, .. } => format!("skip {step}"),
        Event::StepInvalidated { step, causes } => {
            let parts: Vec<&str> = causes.iter().map(|cause| cause.part.as_str()).collect();
            format!("invalidate {step}: {}", parts.join(" "))
        }
        Event::GateOpened { step, prompt, .. } => format!("ask {step}: {prompt}"),
        Event::RunEnded { status, why } => {
            format!(
                "end {status:?}{}",
                why.as_ref().map(|it| format!(": {it}")).unwrap_or_default()
            )
        }
        Event::RunPaused { cause, .. } => format!("pause {cause:?}"),
        Event::AttemptStarted(it) => format!("cannot start {}", it.step),
        Event::AttemptFinished(it) => format!("because {:?}", it.outcome),
        other => other.kind().to_owned(),
    }
}

/// Every node by address with all that can be seen of it; ids differ between two ways of building.
fn picture(graph: &Graph) -> BTreeMap<String, String> {
    let ready: Vec<_> = graph.ready_work().collect();
    let control: Vec<_> = graph.ready_control().collect();
    let gates: Vec<_> = graph.open_gates().collect();
    let mut all = BTreeMap::new();
    for id in graph.in_order() {
        let node = graph.node(id);
        let name = |id: &crate::graph::NodeId| graph.node(*id).address.to_string();
        let needs: Vec<String> = node.needs.iter().map(name).collect();
        let children: Vec<String> = node.children.iter().map(name).collect();
        let sets = [ready.contains(&id), control.contains(&id), gates.contains(&id)];
        let flags = [node.is_settled(), node.is_reachable(), node.is_open()];
        let text = format!(
            "{:?} needs {needs:?} children {children:?} sets {sets:?} flags {flags:?} digest {:?}",
            node.role,
            node.digest()
        );
        all.insert(node.address.to_string(), text);
    }
    all
}
