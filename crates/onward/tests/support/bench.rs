//! A project in a temporary directory, the program at work in it, and what it leaves.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onward_core::{
    address::Address,
    event::{Event, Record},
    evidence::Usd,
    journal::encode,
    said::Spent,
};
use onward_engine::{
    care::harness::{EngineProcess, Ledger, Watch, first_run, until},
    locate::Project,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use super::program::Said;
use super::program::onward;

/// What each step does first: it writes down that it ran.
pub(crate) const LOG: &str = "echo \"$ONWARD_STEP $ONWARD_ATTEMPT\" >> ledger.txt";

pub(crate) struct Bench {
    _dir: Option<TempDir>,
    pub(crate) root: PathBuf,
}

impl Bench {
    /// A project with the workflow `w.yaml` of these steps, in YAML.
    pub(crate) fn new(steps: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        Self::at(dir, root, steps)
    }

    pub(crate) fn at(dir: TempDir, root: PathBuf, steps: &str) -> Self {
        let bench = Self { _dir: Some(dir), root };
        fs::create_dir_all(bench.path(".onward")).unwrap();
        bench.workflow("w.yaml", "steps:", steps);
        bench
    }

    /// A project that is there already, and that another owner clears away.
    pub(crate) fn at_existing(root: PathBuf) -> Self {
        Self { _dir: None, root }
    }

    /// `head` is what comes before the steps.
    pub(crate) fn workflow(&self, file: &str, head: &str, steps: &str) {
        let text = format!("onward: 1\nname: story\n{head}\n{}", steps.replace("LOG", LOG));
        fs::write(self.path(file), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    pub(crate) fn command(&self, arguments: &str) -> Command {
        onward(&self.root, arguments)
    }

    pub(crate) fn onward(&self, arguments: &str) -> Said {
        Said::of(&self.command(arguments).output().unwrap())
    }

    /// The same, and it must exit with this code.
    #[track_caller]
    pub(crate) fn exits(&self, arguments: &str, code: i32) -> Said {
        let said = self.onward(arguments);
        assert_eq!(said.code, code, "{arguments}: {said:#?}");
        said
    }

    /// An engine of its own, whose words go to the file `said`.
    pub(crate) fn start(&self, arguments: &str) -> EngineProcess {
        let said = fs::File::create(self.path("said")).unwrap();
        let mut command = self.command(arguments);
        EngineProcess::start(command.stdout(Stdio::null()).stderr(said)).unwrap()
    }

    /// Starts `w.yaml` and gives its run as soon as there is one.
    pub(crate) fn start_run(&self) -> (EngineProcess, PathBuf) {
        let mut engine = self.start("run w.yaml");
        let run = first_run(&self.project(), &mut engine).unwrap();
        (engine, run.unwrap_or_else(|| panic!("{}", self.text("said"))))
    }

    /// Starts `w.yaml`, waits for a moment of its journal, and kills the engine there.
    pub(crate) fn run_and_kill(&self, shows: impl FnMut(&Watch) -> bool) -> (PathBuf, Watch) {
        let (mut engine, run) = self.start_run();
        let mut watch = Watch::new(&run);
        assert!(watch.until(&mut engine, shows).unwrap(), "{}", self.text("said"));
        engine.kill().unwrap();
        watch.look().unwrap();
        (run, watch)
    }

    pub(crate) fn project(&self) -> Project {
        Project::locate(&self.root).unwrap()
    }

    /// A copy of all that is here, once nothing moves any more.
    pub(crate) fn copied(&self) -> TempDir {
        self.rests();
        let copy = TempDir::new().unwrap();
        copy_all(&self.root, copy.path());
        copy
    }

    /// Everything as it was when it was copied.
    pub(crate) fn restore(&self, copy: &TempDir) {
        self.rests();
        for entry in fs::read_dir(&self.root).unwrap() {
            let path = entry.unwrap().path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.unwrap();
        }
        copy_all(copy.path(), &self.root);
    }

    /// A supervisor leaves a moment after its engine, and takes a file with it.
    fn rests(&self) {
        for run in self.project().runs().unwrap_or_default() {
            sees_nobody_left(&run.dir);
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::read(&self.path("ledger.txt")).unwrap()
    }

    /// The attempts of a step that really ran.
    pub(crate) fn ran(&self, step: &str) -> Vec<u32> {
        self.ledger().0.remove(step).unwrap_or_default()
    }

    /// The ledger agrees with the journal, and the run is over.
    #[track_caller]
    pub(crate) fn is_proved(&self, run: &Path) {
        let watch = watched(run);
        assert_eq!(self.ledger().against(&watch.finished()), [""; 0]);
        let status = self.onward(&format!("status --json {}", id(run))).json();
        assert_eq!(status["run"]["status"], "completed", "{status:#}");
    }

    pub(crate) fn plan(&self, run: &Path) -> Value {
        self.exits(&format!("plan --json {}", id(run)), 0).json()
    }
}

impl Drop for Bench {
    /// A failing test leaves nothing behind either.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for run in self.project().runs().unwrap_or_default() {
                kill_all(&run.dir);
            }
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(status.success());
}

pub(crate) fn id(run: &Path) -> String {
    run.file_name().unwrap().to_str().unwrap().to_owned()
}

pub(crate) fn watched(run: &Path) -> Watch {
    let mut watch = Watch::new(run);
    watch.look().unwrap();
    watch
}

pub(crate) fn journal(run: &Path) -> String {
    String::from_utf8_lossy(&fs::read(run.join("journal.jsonl")).unwrap()).into_owned()
}

pub(crate) fn codes(plan: &Value) -> Vec<&str> {
    plan["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect()
}

/// Adds to the journal of a killed run what its first attempt at a step cost.
pub(crate) fn spend(run: &Path, step: &str, dollars: f64) {
    let last = watched(run).records.pop().unwrap();
    let (usd, step) = (Usd::from_dollars(dollars).unwrap(), Address::from_text(step));
    let event = Event::AttemptSpent { step, attempt: 1, spent: Spent::of_usd(usd) };
    let mut line = Vec::new();
    encode(&Record { seq: last.seq + 1, event, ..last }, &mut line).unwrap();
    let path = run.join("journal.jsonl");
    // A killed driver leaves room behind the last line.
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
    bytes.truncate(end + 1);
    bytes.extend(line);
    fs::write(path, bytes).unwrap();
}

/// Each process whose environment, or command line, says that it belongs to the run.
pub(crate) fn processes(run: &Path) -> Vec<u32> {
    let tag = format!("ONWARD_RUN={}", id(run));
    let place = run.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse::<u32>().ok()) else {
            continue;
        };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let has = |bytes: &[u8], text: &str| {
            bytes.split(|byte| *byte == 0).any(|word| word == text.as_bytes())
        };
        let is_of_run = until("a process to be a program", || {
            let (environ, cmdline) = (read("environ"), read("cmdline"));
            // For a moment, one that becomes another program has neither.
            let is_becoming = environ.is_empty()
                && cmdline.is_empty()
                && fs::read_link(entry.path().join("exe")).is_ok();
            Ok((!is_becoming).then(|| has(&environ, &tag) || has(&cmdline, place)))
        });
        if pid != std::process::id() && is_of_run.unwrap() {
            found.push(pid);
        }
    }
    found
}

pub(crate) fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).stderr(Stdio::null()).status();
    // Gone in this very moment is as good.
    status.unwrap();
}

/// The supervisor and all it holds, until nothing is left. None of them sees another die.
pub(crate) fn kill_all(run: &Path) {
    let mut killed = Vec::new();
    until("everything to be killed", || {
        let left = processes(run);
        killed.extend(left.iter().filter_map(|pid| Living::of(*pid)));
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in left.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                // Gone in this very moment is as good.
                let _ = kill_process(pid, signal);
            }
        }
        Ok((left.is_empty() && killed.iter().all(|it| !it.lives())).then_some(()))
    })
    .unwrap();
}

/// A process, by its number and when it began. One that is killed loses its memory first: for a
/// moment it has no environment, and is still not dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Living {
    pid: u32,
    began: String,
}

impl Living {
    /// `None` when it is dead; a zombie is.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let began = fields.nth(18)?.to_owned();
        (!is_dead).then_some(Self { pid, began })
    }

    pub(crate) fn lives(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// Waits for the supervisor to leave; whatever else lives makes this fail.
pub(crate) fn sees_nobody_left(run: &Path) {
    until("the last process of the run to end", || Ok(processes(run).is_empty().then_some(())))
        .unwrap();
}

/// Waits for a file that a step writes.
pub(crate) fn sees(path: &Path) {
    until("a file of a step", || Ok(path.exists().then_some(()))).unwrap();
}
