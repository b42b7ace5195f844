//! Where the built-in calls of a real system are made: a directory that holds what the simulated
//! disk holds, and the states that a call goes through from one file to the next.
//!
//! Invariant: a call sees the files of the simulated disk and nothing else. The same call on the
//! same files is made once: its clock is the real one, and a second life is to see the same.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use onward_core::{
    address::Address,
    digest::Digest,
    launch::{Launch, Program},
    worktree::WORKTREES,
};
use onward_engine::play::{Attempt, Ink, call};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    agents,
    system::{ByGit, System, by_git},
};
use crate::{agents::Act, disk::Disk, harness::RUN};

/// By path, as the project names it.
pub(crate) type Held = BTreeMap<String, Vec<u8>>;

/// Paths that change together, and what they hold then.
pub(crate) type Write = Vec<(String, Option<Vec<u8>>)>;

/// What a call does.
#[derive(Debug)]
pub(crate) struct Played {
    /// From one file to the next, in its order.
    pub(crate) writes: Vec<Write>,
    pub(crate) result: Result<Value, String>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) system: System,
    dir: TempDir,
    /// What the directory holds at the moment.
    held: RefCell<Held>,
    known: RefCell<BTreeMap<Digest, Rc<Played>>>,
}

impl Stage {
    pub(crate) fn new(system: System) -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        let (held, known) = (RefCell::default(), RefCell::default());
        Self { system, dir, held, known }
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// A directory outside of the project.
    pub(crate) fn outside(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// How many different calls were made.
    pub(crate) fn calls(&self) -> usize {
        self.known.borrow().len()
    }

    pub(crate) fn acts(&self, launch: &Launch, disk: &Disk) -> Vec<Act> {
        match &launch.program {
            Program::Call { .. } => vec![Act::Call],
            Program::Agent(agent) => agents::acts(self.system, &launch.step, &agent.prompt, disk),
            Program::Argv(_) | Program::Shell(_) => panic!("{} is no step of theirs", launch.step),
        }
    }

    pub(crate) fn play(&self, disk: &Disk, launch: &Launch) -> Rc<Played> {
        let Program::Call { name, with } = &launch.program else { panic!("no call") };
        let mut before = held(disk);
        let work = brought(disk, with);
        let key = key(name, with, &launch.step, &before, &work);
        if let Some(known) = self.known.borrow().get(&key) {
            return Rc::clone(known);
        }
        let mut writes = Vec::new();
        // There is no repository on the stage: what git would bring over is brought by hand.
        let with = match by_git(name) {
            ByGit::Gives(result) => {
                let known = Played { writes: one_by_one(work), result: Ok(result) };
                return self.keep(key, known);
            }
            ByGit::Brings => {
                before.extend(work.clone());
                writes.extend(one_by_one(work));
                let mut with = with.clone();
                with["branch"] = "".into();
                with
            }
            ByGit::Nothing => with.clone(),
        };
        let mut last = before.clone();
        for files in 0.. {
            self.set(&before);
            let result = self.call(name, &with, &launch.step, Ink::for_files(files));
            let now = self.look();
            let is_cut = result.as_ref().is_err_and(|why| why.contains("cut off between"));
            writes.push(differences(&last, &now));
            if !is_cut {
                writes.retain(|it| !it.is_empty());
                return self.keep(key, Played { writes, result });
            }
            last = now;
        }
        panic!("{name} never ends")
    }

    fn keep(&self, key: Digest, played: Played) -> Rc<Played> {
        let played = Rc::new(played);
        self.known.borrow_mut().insert(key, Rc::clone(&played));
        played
    }

    fn call(&self, name: &str, with: &Value, step: &Address, ink: Ink) -> Result<Value, String> {
        let mut with = with.clone();
        // A call is started in the project's directory, and this process is not there.
        if self.system.is_in_project() {
            let dir = with["dir"].as_str().unwrap_or(".").to_owned();
            with["dir"] = self.project().join(dir).to_str().into();
        }
        let env = [("ONWARD_STEP", step.as_str()), ("ONWARD_ATTEMPT", "1")];
        let env = env.into_iter().map(|(name, value)| (name.into(), value.into()));
        let attempt = Attempt {
            run: RUN.to_owned(),
            project: self.project(),
            env: env.collect(),
            ink,
            tell: None,
        };
        let answer = call(name, with, attempt);
        answer.map(|it| it.result).map_err(|error| error.to_string())
    }

    /// The directory holds exactly this.
    fn set(&self, wanted: &Held) {
        let held = &mut *self.held.borrow_mut();
        for (path, bytes) in differences(held, wanted) {
            let full = self.project().join(&path);
            if let Some(bytes) = bytes {
                fs::create_dir_all(full.parent().unwrap()).unwrap();
                fs::write(full, bytes).unwrap();
            } else {
                fs::remove_file(&full).unwrap();
                // Where nothing is left, there is no directory either.
                let mut dirs = full.ancestors().skip(1);
                dirs.find(|it| fs::remove_dir(it).is_err());
            }
        }
        held.clone_from(wanted);
    }

    fn look(&self) -> Held {
        let mut found = Held::new();
        let root = self.project();
        walk(&root, &mut |path, bytes| {
            let name = path.strip_prefix(&root).unwrap();
            found.insert(name.to_str().unwrap().to_owned(), bytes);
        });
        for (path, bytes) in self.system.elsewhere(self) {
            found.insert(path, bytes);
        }
        self.held.borrow_mut().clone_from(&found);
        found
    }
}

/// Every file below a directory that is there.
pub(crate) fn walk(dir: &Path, each: &mut dyn FnMut(&Path, Vec<u8>)) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), each);
        } else {
            each(&entry.path(), fs::read(entry.path()).unwrap());
        }
    }
}

/// The project as a call finds it, and what lies elsewhere.
pub(crate) fn held(disk: &Disk) -> Held {
    let names = disk.names().filter_map(|name| Some((name, name.strip_prefix("project/")?)));
    let names = names.filter(|(_, path)| !path.starts_with(".onward/"));
    names.map(|(name, path)| (path.to_owned(), disk.read(name).unwrap().to_vec())).collect()
}

/// What a task did in its worktree.
fn brought(disk: &Disk, with: &Value) -> Held {
    let Some(branch) = with["branch"].as_str().filter(|it| !it.is_empty()) else {
        return Held::new();
    };
    let place = branch.trim_start_matches("onward/");
    let prefix = format!("project/{WORKTREES}/{place}/src/");
    let names = disk.names().filter(|name| name.starts_with(&prefix));
    let file = |name: &String| {
        let path = format!("src/{}", &name[prefix.len()..]);
        (path, disk.read(name).unwrap().to_vec())
    };
    names.map(file).collect()
}

fn one_by_one(files: Held) -> Vec<Write> {
    files.into_iter().map(|(path, bytes)| vec![(path, Some(bytes))]).collect()
}

fn key(name: &str, with: &Value, step: &Address, held: &Held, work: &Held) -> Digest {
    let asked = json!([name, with, step.as_str()]).to_string();
    let mut parts: Vec<&[u8]> = vec![asked.as_bytes()];
    for (path, bytes) in held.iter().chain(work) {
        parts.extend([path.as_bytes(), bytes.as_slice()]);
    }
    Digest::of_parts(parts)
}

fn differences(old: &Held, new: &Held) -> Write {
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let moved = paths.into_iter().filter(|path| old.get(*path) != new.get(*path));
    moved.map(|path| (path.clone(), new.get(path).cloned())).collect()
}
