//! One run of a built-in workflow, from nothing to its end.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use globset::Glob;
use onward_core::{
    address::Address,
    decide::{Command, Source, Start, adoptions, decide, regressed},
    digest::Digest,
    event::{
        AttemptFinished, AttemptStarted, Event, Mode, RunOpened, RunResumed, lost_before_spawn,
    },
    evidence::{Evidence, FileProof, Outcome, Stat},
    facts::{Facts, Need},
    graph::Defs,
    kept::Kept,
    key::Key,
    launch::Program,
    plan::{Status, next_record},
    recovery::Rung,
    run::Run,
    state::{Phase, State},
    time::Timestamp,
    told::{Change, Deed, Died, StepTold, Told},
    workflow::{load, model::Kind},
};
use onward_dialects::{
    File, Files,
    agent_memory::AGENT_MEMORY,
    builtin,
    dotagent::DOTAGENT,
    seam::{Dialect, Site},
};
use onward_engine::{
    play::{Attempt, call},
    world::real::wall_clock,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{agents::answer, chance::Chance};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    AgentMemory,
    Dotagent,
}

impl System {
    fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::AgentMemory => &AGENT_MEMORY,
            Self::Dotagent => &DOTAGENT,
        }
    }

    /// From the project's directory.
    fn dir(self) -> &'static str {
        match self {
            Self::AgentMemory => ".agent-memory/runs/20260302-0930-law-k3x9",
            Self::Dotagent => ".",
        }
    }
}

/// See the module.
pub(crate) struct Life {
    system: System,
    project: TempDir,
    site: Site,
    run: Run,
    facts: Facts,
    now: Timestamp,
    /// Under way.
    flying: Vec<Start>,
    chance: Chance,
    log: Vec<String>,
    pub(crate) exports: u64,
    pub(crate) crashes: u64,
}

impl Life {
    pub(crate) fn new(system: System, seed: u64) -> Self {
        let name = system.dialect().card().name;
        let site = Site::at(system.dialect().card(), system.dir());
        let text = builtin::workflow(name).unwrap();
        let mut read = |path: &str| -> Result<Vec<u8>, String> {
            builtin::file(path).map(|text| text.as_bytes().to_vec()).ok_or("no such file".into())
        };
        let loaded = load(name, text.as_bytes(), &mut read).unwrap();
        let mut inputs = site.inputs.clone();
        inputs.insert("dir".to_owned(), system.dir().into());
        for (name, input) in &loaded.workflow.inputs {
            if let Some(default) = input.default.clone() {
                inputs.entry(name.clone()).or_insert(default);
            }
        }
        let run = Run::new(Arc::new(Defs::new(loaded.workflow)), State::default());
        let project = TempDir::new().unwrap();
        std::fs::create_dir_all(project.path().join(system.dir())).unwrap();
        let (facts, flying, log) = (Facts::default(), Vec::new(), Vec::new());
        let (now, chance) = (wall_clock(), Chance::new(seed));
        let (exports, crashes) = (0, 0);
        let mut life =
            Self { system, project, site, run, facts, now, flying, chance, log, exports, crashes };
        life.record(Event::RunOpened(Box::new(RunOpened {
            format: 1,
            run: "law-20261115-aaaa".parse().unwrap(),
            workflow: name.into(),
            workflow_hash: Digest::of(b"law"),
            file: None,
            inputs,
            git: None,
            engine: "0".into(),
            boot_id: "boot".into(),
            mode: Mode::Interactive,
        })));
        let (dialect, source) = (name.to_owned(), system.dir().to_owned());
        life.record(Event::RunAdopted { dialect, source, files: Vec::new() });
        life
    }

    /// Goes on until the run is over.
    pub(crate) fn lived(mut self) -> Self {
        for _ in 0..4_000 {
            self.settle();
            if self.run.state.is_ended() {
                let told = self.told().unwrap();
                assert_eq!(told.standing(self.now).status, Status::Completed, "{}", self.story());
                return self;
            }
            if self.chance.one_in(25) {
                self.crash();
            } else if !self.answer_gate() {
                self.end_one();
            }
        }
        panic!("it does not come to an end: {}", self.story());
    }

    fn story(&self) -> String {
        let last = self.log.len().saturating_sub(40);
        format!("{:?}\n{}", self.system, self.log[last..].join("\n"))
    }

    fn record(&mut self, event: Event) {
        self.log.push(format!("{event:?}").chars().take(200).collect());
        let record = next_record(&self.run.state, self.now, event);
        let result = self.run.after(record);
        result.unwrap_or_else(|error| panic!("{error}: {}", self.story()));
    }

    /// Lets the decider go on until it has nothing more to say.
    fn settle(&mut self) {
        loop {
            let mut moved = false;
            for command in decide(&self.run, &self.facts, self.now) {
                match command {
                    Command::Record(event) => self.record(event),
                    Command::Need { step, needs } => {
                        for need in needs {
                            self.find_out(&step, need);
                        }
                    }
                    Command::Start(start) => self.start(*start),
                    Command::WakeAt(moment) => self.now = self.now.max(moment),
                    Command::StopAll => continue,
                }
                moved = true;
            }
            if !moved {
                self.facts = Facts::default();
                return;
            }
        }
    }

    fn start(&mut self, start: Start) {
        self.record(Event::AttemptStarted(Box::new(AttemptStarted {
            key: Key::from(&start.key),
            argv: Kept::from(&start.launch.program.argv()),
            agent: start.agent.clone(),
            writes: start.writes.clone(),
            ..AttemptStarted::bare(start.launch.step.clone(), start.launch.attempt)
        })));
        self.flying.push(start);
    }

    fn find_out(&mut self, step: &Address, need: Need) {
        let root = self.project.path().to_path_buf();
        let facts = self.facts.at(step);
        match need {
            Need::Text(path) => {
                let text = std::fs::read_to_string(root.join(&path)).ok();
                facts.texts.insert(path, text);
            }
            Need::Glob(pattern) => {
                let bytes = std::fs::read(root.join(&pattern)).ok();
                let proof = |bytes: Vec<u8>| FileProof {
                    path: pattern.clone(),
                    hash: Digest::of(&bytes),
                    stat: Stat { size: bytes.len() as u64, mtime_ns: 0, inode: 0 },
                };
                facts.globs.insert(pattern.clone(), bytes.map(proof).into_iter().collect());
            }
        }
    }

    /// A person answers; only now and then the run is not to go on as it is.
    fn answer_gate(&mut self) -> bool {
        let Some(id) = self.run.graph.open_gates().next() else { return false };
        let step = self.run.graph.node(id).address.clone();
        let Kind::Gate(gate) = &self.run.defs.step(self.run.graph.node(id).def).kind else {
            panic!("{step} is no gate")
        };
        let options = gate.options.iter().filter(|it| !gate.stop.contains(it) && *it != "abort");
        let options: Vec<String> = options.cloned().collect();
        let is_odd = self.chance.one_in(4);
        let option = options[if is_odd { self.chance.below(options.len()) } else { 0 }].clone();
        let hash = self.run.state.step(&step).unwrap().gate.as_ref().unwrap().hash;
        let by = "ann".to_owned();
        self.record(Event::GateDecided { step, by, option, comment: None, hash, stops: false });
        // The run has waited for it.
        self.resume();
        true
    }

    /// One attempt comes to its end.
    fn end_one(&mut self) {
        assert!(!self.flying.is_empty(), "nothing is under way: {}", self.story());
        let which = self.chance.below(self.flying.len());
        let start = self.flying.remove(which);
        let result = self.act(&start);
        let (step, attempt) = (start.launch.step.clone(), start.launch.attempt);
        let digest = Digest::of(result.to_string().as_bytes());
        self.record(Event::AttemptFinished(Box::new(AttemptFinished {
            step,
            attempt,
            outcome: Outcome::Done,
            ending: None,
            evidence: Evidence { result: Some(digest), ..Evidence::default() },
            result: Some(result),
            stdout: None,
            after: None,
            footprint: Vec::new(),
            tolerated: false,
            head: None,
            ended: None,
            waited: 0,
        })));
        if matches!(start.launch.program, Program::Call { .. }) {
            self.exports += 1;
            self.check_law("an export");
        }
    }

    fn act(&mut self, start: &Start) -> Value {
        let step = &start.launch.step;
        let dir = self.project.path().join(self.system.dir());
        match &start.launch.program {
            // There is no repository: every merge is clean.
            Program::Call { name, .. } if name == "dotagent.merge" => {
                json!({"merged": true, "conflicts": []})
            }
            Program::Call { name, with } => {
                let env = [("ONWARD_STEP", step.as_str().to_owned())];
                let env = env.into_iter().map(|(name, value)| (name.into(), value.into()));
                let attempt = Attempt {
                    run: "law-20261115-aaaa".to_owned(),
                    project: self.project.path().to_path_buf(),
                    env: env.collect(),
                    ..Attempt::default()
                };
                // A call is started in the project's directory, and this process is not there.
                let mut with = with.clone();
                if self.system == System::Dotagent {
                    with["dir"] = self.project.path().to_str().into();
                }
                let answer = call(name, with, attempt);
                answer.unwrap_or_else(|error| panic!("{step}: {error}: {}", self.story())).result
            }
            Program::Agent(_) | Program::Argv(_) | Program::Shell(_) => {
                answer(self.system, step, &dir, &mut self.chance)
            }
        }
    }

    /// The machine stops. Of what was under way, some has done its work, and nothing knows; then
    /// the run is resumed.
    fn crash(&mut self) {
        self.crashes += 1;
        for start in std::mem::take(&mut self.flying) {
            let is_call = matches!(start.launch.program, Program::Call { .. });
            if is_call && self.chance.one_in(2) {
                self.act(&start);
            }
            let mut lost = lost_before_spawn(&start.launch.step, start.launch.attempt);
            if let (Event::AttemptLost { rung, .. }, false) = (&mut lost, is_call) {
                *rung = Rung::DiedClean;
            }
            self.record(lost);
        }
        self.resume();
    }

    /// What the files prove is taken in, what they deny counts no more, and they are told that the
    /// run goes on.
    fn resume(&mut self) {
        let Some(told) = self.told() else { return };
        let point = told.standing(self.now).point;
        self.import(&*told);
        let gone = self.gone(&*told);
        assert_eq!(gone, Vec::<Address>::new(), "denied at a resume: {}", self.story());
        self.record(Event::RunResumed(Box::new(RunResumed {
            code: point.code.clone(),
            summary: point.summary.clone(),
            mode: Mode::Interactive,
            count: self.run.state.resumes + 1,
            boot_id: "boot".into(),
            git: None,
            accepted: Vec::new(),
            entered: None,
            last_sign: None,
            reverts: Vec::new(),
        })));
        let (at, alive, lost) = (wall_clock(), self.alive(&*told), self.died(&*told));
        let deed =
            Deed::Resumed { at, point: &point, undone: &[], alive: &alive, died: &lost, by: "" };
        self.write(&told.write(&deed));
        let told = self.told().unwrap();
        self.import(&*told);
        self.check_law("a resume");
    }

    /// Agents' work that is done, and that no call has written down yet; and what is lost without
    /// having cost anything.
    fn alive(&self, told: &dyn Told) -> Vec<Address> {
        let steps = self.run.state.steps.iter();
        let done = steps.filter(|(_, entry)| entry.phase == Phase::Done && !entry.elsewhere);
        let silent = done.filter(|(step, _)| told.step(step) == StepTold::Silent);
        let waited = silent.filter(|(step, _)| self.is_waited_for(step)).map(|it| it.0.clone());
        let lost = self.run.state.steps.iter().filter(|(_, entry)| entry.phase == Phase::Lost);
        let died = self.died(told);
        let free = lost.filter(|(step, _)| !died.iter().any(|it| it.step == **step));
        waited.chain(free.map(|it| it.0.clone())).collect()
    }

    /// Agents that were cut off, and that the files do not count yet.
    fn died(&self, told: &dyn Told) -> Vec<Died> {
        let lost = self.run.state.steps.iter().filter(|(_, entry)| entry.phase == Phase::Lost);
        let lost = lost.filter(|(_, entry)| entry.lost_by.is_some_and(Rung::is_death));
        let died = lost.map(|(step, it)| Died { step: step.clone(), attempt: it.attempts });
        died.filter(|it| !told.counts(it)).collect()
    }

    /// There are steps behind it, and none of them has begun.
    fn is_waited_for(&self, step: &Address) -> bool {
        let graph = &self.run.graph;
        let id = graph.find(step).unwrap();
        let Some(parent) = graph.node(id).parent else { return false };
        let behind = graph.node(parent).children.iter().skip_while(|it| **it != id).skip(1);
        let mut phases = behind.map(|it| self.run.state.phase(&graph.node(*it).address)).peekable();
        phases.peek().is_some() && phases.all(|it| it == Phase::Pending)
    }

    fn write(&self, changes: &[Change]) {
        for change in changes {
            let path = self.project.path().join(self.system.dir()).join(change.path());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let bytes = match change {
                Change::Append { bytes, .. } => {
                    [std::fs::read(&path).unwrap_or_default().as_slice(), bytes].concat()
                }
                Change::Replace { bytes, .. } => bytes.clone(),
            };
            std::fs::write(path, bytes).unwrap();
        }
    }

    fn files(&self) -> Files {
        let root = self.project.path().join(self.system.dir());
        let reads = &self.site.roots[0].reads;
        let globs: Vec<_> =
            reads.iter().map(|it| Glob::new(it).unwrap().compile_matcher()).collect();
        let mut files = Files::default();
        let mut rest: Vec<PathBuf> = vec![root.clone()];
        while let Some(dir) = rest.pop() {
            for entry in std::fs::read_dir(&dir).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    rest.push(entry.path());
                    continue;
                }
                let name = entry.path().strip_prefix(&root).unwrap().display().to_string();
                if globs.iter().any(|it| it.is_match(&name)) {
                    let bytes = std::fs::read(entry.path()).unwrap();
                    files.insert(name, File { bytes, modified: None });
                }
            }
        }
        files
    }

    /// Nothing before the first call has written anything.
    fn told(&self) -> Option<Box<dyn Told>> {
        let files = self.files();
        files.iter().next()?;
        self.system.dialect().read(&self.site, files).ok()
    }

    fn source<'a>(&self, told: &'a dyn Told) -> Source<'a> {
        let name = self.system.dialect().card().name;
        Source { dialect: name, by: name, told }
    }

    fn import(&mut self, told: &dyn Told) {
        let mut facts = Facts::default();
        loop {
            let commands = adoptions(&self.run, &facts, self.source(told));
            if commands.is_empty() {
                return;
            }
            for command in commands {
                match command {
                    Command::Record(event) => self.record(event),
                    Command::Need { step, needs } => {
                        std::mem::swap(&mut self.facts, &mut facts);
                        for need in needs {
                            self.find_out(&step, need);
                        }
                        std::mem::swap(&mut self.facts, &mut facts);
                    }
                    Command::Start(_) | Command::StopAll | Command::WakeAt(_) => {}
                }
            }
        }
    }

    /// What the journal says and the files deny.
    fn gone(&self, told: &dyn Told) -> Vec<Address> {
        let gone: BTreeMap<Address, String> = regressed(&self.run, self.source(told));
        let untold = &self.run.state.untold_answers;
        gone.into_keys().filter(|step| !untold.contains(step)).collect()
    }

    /// `project(fold(journal)) = import(files)`: nothing is told that the journal does not have,
    /// and nothing that it has is denied.
    fn check_law(&mut self, after: &str) {
        let Some(told) = self.told() else { return };
        let gone = self.gone(&*told);
        assert_eq!(gone, Vec::<Address>::new(), "denied after {after}: {}", self.story());
        let before = self.log.len();
        let kept = self.run.clone();
        self.import(&*told);
        let mut more: Vec<String> = self.log.drain(before..).collect();
        // These calls look and write nothing: the files are the same before and after them. Told
        // as done they are ahead of the journal; as open, the plan of an adopted run names them.
        let silent = ["/survey\")", "\"restore/look\")", "\"whole\")", "\"swept\")"];
        more.retain(|it| !silent.iter().any(|step| it.contains(step)));
        self.run = kept;
        let more: Vec<&String> = more
            .iter()
            .filter(|it| it.starts_with("AttemptAdopted") || it.starts_with("GateDecided"))
            .collect();
        assert_eq!(more, Vec::<&String>::new(), "told after {after}: {}", self.story());
    }
}
