//! Rescues: what was undone, listed and brought back.
//!
//! `rescue/<n>-<address>/` holds `files/<path>` as the attempt left them, and `UNDO.json`, written
//! last; a directory without it never came about.
//!
//! Invariant: a path is brought back only where it is as it was when it was undone; anything else
//! is somebody's, and replaced only when they name it. What is replaced is kept in a rescue of its
//! own first, and every path tells by itself how far a bringing back had got.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use onward_core::{
    digest::Digest,
    event::{Event, FileKind},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    care::{CareError, Opened, RunRef},
    content::{Content, content, put},
    engine::{EngineError, Machine, RunPlace},
    real::{RealWorld, disk::io_stop, wall_clock},
    rescue::{FILES, NOTE, Note, Undone},
    store::{RunLock, Share, TakeOver, TreeLock},
};

/// `onward rescue list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rescues {
    pub schema: String,
    pub run: RunRef,
    /// The oldest first.
    pub rescues: Vec<Rescue>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rescue {
    pub number: u32,
    pub step: String,
    pub attempt: u32,
    pub at: String,
    pub dir: String,
    pub paths: Vec<RescuedPath>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RescuedPath {
    pub path: String,
    pub now: Now,
}

/// What a path is at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Now {
    /// As it was before the attempt: it can be brought back.
    Undone,
    /// As the attempt left it.
    Back,
    /// Somebody changed it since.
    Changed,
}

impl Now {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undone => "undone",
            Self::Back => "back",
            Self::Changed => "changed",
        }
    }
}

/// `onward undo --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BroughtBack {
    pub schema: String,
    pub run: RunRef,
    pub rescue: Rescue,
    /// Paths that were brought back now.
    pub brought: Vec<String>,
    /// The rescue that holds what they replaced.
    pub replaced_in: Option<u32>,
}

/// All rescues of a run.
pub fn list(run_dir: &Path, machine: &Machine) -> Result<Rescues, CareError> {
    let at = RunPlace::of(run_dir, machine)?;
    let root = at.project.root();
    let mut rescues = Vec::new();
    for found in read(run_dir)? {
        rescues.push(found.told(root)?);
    }
    Ok(Rescues { schema: "onward.rescue/1".to_owned(), run: RunRef::of(run_dir), rescues })
}

/// A rescue that is about to be brought back; it holds the run and the tree meanwhile.
#[derive(Debug)]
pub struct BringBack {
    pub rescue: Rescue,
    found: Found,
    at: RunPlace,
    next: u32,
    _locks: (RunLock, TreeLock),
}

impl BringBack {
    pub fn prepare(run_dir: &Path, machine: &Machine, number: u32) -> Result<Self, CareError> {
        let at = RunPlace::of(run_dir, machine)?;
        let now = wall_clock();
        let run = &at.place.run;
        let lock = RunLock::take(run_dir, run, now).map_err(EngineError::from)?;
        let mut tree = TreeLock::take(&at.project, Some(run), Share::Alone, TakeOver::No)
            .map_err(EngineError::from)?;
        tree.sign(run, now).map_err(EngineError::from)?;
        let all = read(run_dir)?;
        let next = all.iter().map(|it| it.number).max().unwrap_or(0) + 1;
        let numbers: Vec<String> = all.iter().map(|it| it.number.to_string()).collect();
        let Some(found) = all.into_iter().find(|it| it.number == number) else {
            let hint = match numbers.as_slice() {
                [] => "it has none".to_owned(),
                [..] => format!("its rescues: {}", numbers.join(", ")),
            };
            let what = format!("run `{run}` has no rescue {number}");
            return Err(CareError::Refused { what, hint });
        };
        let rescue = found.told(at.project.root())?;
        Ok(Self { rescue, found, at, next, _locks: (lock, tree) })
    }

    /// Brings it back; of paths that somebody changed, exactly those in `replace`.
    pub fn adopt(
        self,
        machine: &Machine,
        replace: &BTreeSet<String>,
    ) -> Result<BroughtBack, CareError> {
        let root = self.at.project.root().to_owned();
        let mut wanted = Vec::new();
        let mut foreign = Vec::new();
        for (undone, told) in self.found.note.paths.iter().zip(&self.rescue.paths) {
            match told.now {
                Now::Back => {}
                Now::Undone => wanted.push(undone),
                Now::Changed if replace.contains(&undone.path) => wanted.push(undone),
                Now::Changed => foreign.push(undone.path.clone()),
            }
        }
        if !foreign.is_empty() {
            return Err(CareError::Refused {
                what: format!("changed since, and left alone: {}", foreign.join(", ")),
                hint: "look at them; name those to be replaced with `--replace PATH`".to_owned(),
            });
        }
        let mut bring = Vec::new();
        for undone in wanted {
            bring.push((undone, self.found.left(undone)?, content(&root.join(&undone.path))?));
        }
        let brought: Vec<String> = bring.iter().map(|(undone, ..)| undone.path.clone()).collect();
        let mut replaced_in = None;
        if !bring.is_empty() {
            self.keep_replaced(&bring)?;
            replaced_in = Some(self.next);
            for (undone, left, _) in &bring {
                put(&root.join(&undone.path), left.as_ref())?;
            }
            let opened = Opened::read(&self.at, RealWorld::new(self.at.setup(machine), None))?;
            let (number, next) = (self.found.number, self.next);
            let paths = brought.join(", ");
            let text = format!("rescue {number} was brought back: {paths}; see rescue {next}");
            let step = Some(self.found.note.step.clone());
            opened.append(vec![Event::Note { text, step }])?;
        }
        let run = RunRef::of(&self.at.place.run_dir);
        let rescue = self.found.told(&root)?;
        Ok(BroughtBack { schema: "onward.undo/1".to_owned(), run, rescue, brought, replaced_in })
    }

    /// What is there now goes to a rescue of its own, so that this can be undone too.
    fn keep_replaced(
        &self,
        bring: &[(&Undone, Option<Content>, Option<Content>)],
    ) -> Result<(), CareError> {
        let step = &self.found.note.step;
        let name = format!("{}-{}", self.next, step.file_name());
        let dir = self.at.place.run_dir.join("rescue").join(name);
        let mut paths = Vec::new();
        for (undone, left, now) in bring {
            if now.is_some() {
                put(&dir.join(FILES).join(&undone.path), now.as_ref())?;
            }
            let of = |it: &Option<Content>| it.as_ref().map(Content::digest);
            let kind = |it: &Option<Content>| it.as_ref().map(|it| it.kind).unwrap_or_default();
            paths.push(Undone {
                path: undone.path.clone(),
                left: of(now),
                base: of(left),
                left_kind: kind(now),
                base_kind: kind(left),
            });
        }
        let note = Note {
            schema: self.found.note.schema.clone(),
            step: step.clone(),
            attempt: self.found.note.attempt,
            at: wall_clock(),
            reference: None,
            commit: None,
            paths,
        };
        let mut text = serde_json::to_vec_pretty(&note).expect("a note is plain data");
        text.push(b'\n');
        let note = Content { bytes: text, kind: FileKind::Plain };
        Ok(put(&dir.join(NOTE), Some(&note))?)
    }
}

/// A rescue as it lies on disk.
#[derive(Debug)]
struct Found {
    number: u32,
    dir: PathBuf,
    note: Note,
}

impl Found {
    fn told(&self, root: &Path) -> Result<Rescue, CareError> {
        let mut paths = Vec::new();
        for undone in &self.note.paths {
            let is = content(&root.join(&undone.path))?.map(|it| (it.digest(), it.kind));
            let was = |digest: Option<Digest>, kind| digest.map(|digest| (digest, kind));
            let now = if is == was(undone.left, undone.left_kind) {
                Now::Back
            } else if is == was(undone.base, undone.base_kind) {
                Now::Undone
            } else {
                Now::Changed
            };
            paths.push(RescuedPath { path: undone.path.clone(), now });
        }
        Ok(Rescue {
            number: self.number,
            step: self.note.step.to_string(),
            attempt: self.note.attempt,
            at: self.note.at.to_string(),
            dir: self.dir.display().to_string(),
            paths,
        })
    }

    /// What the attempt left, from the rescue; it must be what the note says.
    fn left(&self, undone: &Undone) -> Result<Option<Content>, CareError> {
        let Some(digest) = undone.left else { return Ok(None) };
        let found = content(&self.dir.join(FILES).join(&undone.path))?;
        match found.filter(|it| it.digest() == digest) {
            Some(kept) => Ok(Some(Content { kind: undone.left_kind, ..kept })),
            None => Err(CareError::Refused {
                what: format!("rescue {} does not hold {} any more", self.number, undone.path),
                hint: format!("look into {}", self.dir.display()),
            }),
        }
    }
}

/// The oldest first. Torn journal ends, which are kept there too, are none.
fn read(run_dir: &Path) -> Result<Vec<Found>, CareError> {
    let rescue = run_dir.join("rescue");
    let entries = match fs::read_dir(&rescue) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_stop("list", &rescue)(error).into()),
    };
    let mut found = Vec::new();
    for entry in entries {
        let dir = entry.map_err(io_stop("list", &rescue))?.path();
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
        let Some(number) = number else { continue };
        let path = dir.join(NOTE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(io_stop("read", &path)(error).into()),
        };
        let note: Note = serde_json::from_slice(&bytes)
            .map_err(|error| io_stop("understand", &path)(io::Error::other(error)))?;
        if let Some(bad) = note.paths.iter().find(|it| !stays_inside(&it.path)) {
            let what =
                format!("{} names a path outside of the project: {}", path.display(), bad.path);
            return Err(CareError::Refused { what, hint: "somebody has changed it".to_owned() });
        }
        found.push(Found { number, dir, note });
    }
    found.sort_by_key(|found| found.number);
    Ok(found)
}

fn stays_inside(path: &str) -> bool {
    use std::path::Component;
    let parts = Path::new(path).components();
    let mut parts = parts.filter(|part| !matches!(part, Component::CurDir)).peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
