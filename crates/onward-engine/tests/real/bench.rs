//! A project in a temporary directory, and this very binary as engine and supervisor.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
    process::Child,
};

use onward_core::{event::Mode, plan::Plan, policy::Choices, state::State};
use onward_engine::{
    drive::{Ahead, Options},
    engine::{self, EngineError, How, Machine, Outcome},
    load::journal::load,
    locate::{Project, TakeOver, load_workflow},
    world::{
        real::place_from_args,
        seen::Seen,
        supervisor::{
            Hands, HandsConfig, Identity, Place, Stop, SuperviseConfig, Whereabouts,
            orphans::clear_orphans,
            seals::{Line, read_seals},
            supervise,
        },
    },
};

use crate::support::{self, copy_of_us, see_end, start_copy};

/// A real disk: the usual place may be memory (`scripts/test`).
const DISK: &str = "/var/tmp";

pub(crate) struct Bench {
    /// Kept for its end.
    _dir: Option<tempfile::TempDir>,
    pub(crate) root: PathBuf,
    pub(crate) machine: Machine,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in(DISK).unwrap();
        let root = std::fs::canonicalize(dir.path()).unwrap();
        Self { _dir: Some(dir), machine: machine(&root), root }
    }

    pub(crate) fn at(root: &Path, sockets: &Path) -> Self {
        let machine = Machine { socket_dir: sockets.join("s"), ..machine(root) };
        Self { _dir: None, machine, root: root.to_owned() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Makes a run of these steps, in YAML, and returns its directory.
    pub(crate) fn new_run(&self, steps: &str) -> PathBuf {
        let file = self.path("w.yaml");
        std::fs::write(&file, format!("onward: 1\nname: story\nsteps:\n{steps}")).unwrap();
        let loaded = load_workflow(&file).unwrap_or_else(|error| panic!("{error:?}"));
        std::fs::create_dir_all(self.path(".onward")).unwrap();
        let project = Project::locate(&self.root).unwrap();
        let inputs = BTreeMap::new();
        engine::new_run(&project, &loaded, None, inputs, &self.machine, Mode::Autopilot).unwrap()
    }

    pub(crate) fn resume(&self, run: &Path) -> Result<Outcome, EngineError> {
        engine::resume_run(run, &self.machine, &how(), None)
    }

    pub(crate) fn plan(&self, run: &Path) -> Plan {
        engine::plan_run(run, &self.machine, &Choices::default()).unwrap()
    }

    /// An engine of its own, to be killed.
    pub(crate) fn engine_process(&self, run: &Path) -> Child {
        start_copy("drive", &[run, &self.root])
    }

    /// The same, with a driver that announces ahead from the first step on.
    pub(crate) fn eager_process(&self, run: &Path) -> Child {
        start_copy("drive-ahead", &[run, &self.root])
    }

    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        support::fifo(self.path(name))
    }

    pub(crate) fn place(&self, run: &Path) -> Place {
        Place {
            run: run.file_name().unwrap().to_str().unwrap().parse().unwrap(),
            run_dir: run.to_owned(),
            project_dir: self.root.clone(),
            socket_dir: self.machine.socket_dir.clone(),
        }
    }

    pub(crate) fn kill_supervisor(&self, run: &Path) {
        let here = Whereabouts::read(&self.place(run)).unwrap();
        support::kill(here.identity());
    }

    /// Starts a supervisor as an engine does that dies at once.
    pub(crate) fn start_supervisor(&self, run: &Path, epoch: u32) {
        let place = self.place(run);
        let Place { run, run_dir, project_dir, socket_dir } = place.clone();
        let args = [run.to_string().into(), run_dir.into(), project_dir.into(), socket_dir.into()];
        let exec = copy_of_us("supervise").into_iter().chain(args).collect();
        let config = HandsConfig { place, epoch, env: self.machine.env.clone(), exec };
        Hands::connect_or_start(&config).unwrap();
    }

    /// The supervisor of a run that is over leaves by itself, and takes its files with it.
    pub(crate) fn see_supervisor_leave(&self, run: &Path) {
        let seals = read_seals(&self.place(run).seals(), None).unwrap();
        let supervisors = seals.lines.iter().filter_map(|line| match line {
            Line::Opened(it) => Some(Identity { pid: it.pid, start_time: it.start_time }),
            Line::Spawning(_)
            | Line::Spawned(_)
            | Line::Exited(_)
            | Line::Snapshot(_)
            | Line::OutputLost(_)
            | Line::Grouped(_)
            | Line::Stray(_)
            | Line::Unknown(_) => None,
        });
        supervisors.for_each(see_end);
    }
}

impl Drop for Bench {
    /// A failing test leaves nothing behind either.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for run in Project::locate(&self.root).unwrap().runs().unwrap_or_default() {
            if let Some(here) = Whereabouts::read(&self.place(&run.dir)) {
                support::kill(here.identity());
            }
            let place = self.place(&run.dir);
            let seals = read_seals(&place.seals(), None).unwrap_or_default();
            let _ = clear_orphans(&place, &seals, Stop { grace_ms: 0, ..Stop::default() });
        }
    }
}

pub(crate) fn state(run: &Path) -> State {
    load(&std::fs::read(run.join("journal.jsonl")).unwrap()).unwrap().state
}

/// Each file and directory, what it holds, when it was last changed.
type Picture = BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)>;

/// Which paths are not the same in both.
pub(crate) fn changed(before: &Picture, after: &Picture) -> Vec<PathBuf> {
    let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    paths.into_iter().filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// Every file below a directory with its content and times.
pub(crate) fn picture(dir: &Path) -> Picture {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let (path, found) = (entry.path(), entry.metadata().unwrap());
        if found.is_dir() {
            all.insert(path.clone(), (Vec::new(), found.modified().unwrap()));
            all.extend(picture(&path));
        } else if found.is_file() && !is_of_the_supervisor(&path) {
            let bytes = std::fs::read(&path).unwrap();
            all.insert(path, (bytes, found.modified().unwrap()));
        }
    }
    all
}

/// One that lives writes when it likes.
fn is_of_the_supervisor(path: &Path) -> bool {
    path.ends_with("heartbeat") || path.ends_with("exits.jsonl")
}

fn how() -> How {
    How {
        mode: Mode::Autopilot,
        choices: Choices::default(),
        pinned: false,
        options: Options::default(),
        take_over: TakeOver::No,
        seen: Seen::default(),
        folded: None,
    }
}

pub(crate) fn attended() -> How {
    How { options: Options { attended: true, ..Options::default() }, ..how() }
}

/// Announces ahead from the first step on, however slowly they end.
pub(crate) fn eager() -> How {
    let ahead = Ahead { after: 0, ..Ahead::default() };
    How { options: Options { ahead, ..Options::default() }, ..how() }
}

fn machine(root: &Path) -> Machine {
    let path = std::env::var_os("PATH").unwrap();
    Machine {
        env: vec![("PATH".into(), path)],
        supervise: copy_of_us("supervise"),
        socket_dir: root.join("s"),
        ..Machine::default()
    }
}

pub(crate) fn play_role() {
    let Some(role) = support::role() else { return };
    let args: Vec<OsString> = std::env::args_os().collect();
    if role == "supervise" {
        let place = place_from_args(&args[args.len() - 4..]).unwrap();
        supervise(&SuperviseConfig::new(place)).unwrap();
    } else {
        let [run, root] = &args[args.len() - 2..] else { panic!("{args:?}") };
        let how = if role == "drive-ahead" { eager() } else { how() };
        engine::resume_run(run.as_ref(), &machine(root.as_ref()), &how, None).unwrap();
    }
}
