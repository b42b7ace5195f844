//! Rescues: what was undone, listed and brought back.
//!
//! Invariant: a path is brought back only where it is as it was when it was undone; anything else
//! is a person's, and replaced only when they name it. What is replaced is kept in a rescue of its
//! own first, and every path tells by itself how far a bringing back had got.

use crate::world::open;
use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStringExt as _,
    path::{Component, Path},
};

use onward_core::{
    digest::Digest,
    event::{Event, FileKind},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    care::{CareError, Opened, RunRef},
    engine::{EngineError, Machine, RunPlace},
    locate::{RunLock, Share, TakeOver, TreeLock},
    revert::{
        self, CutShort,
        links::Links,
        rescue::{self, FILES, NOTE, Note, Undone},
    },
    world::{
        At, Stop, World as _,
        files::put_durably,
        real::{RealWorld, disk::io_stop, wall_clock},
    },
};

/// What a path holds; `None` = nothing.
type Held = Option<(Vec<u8>, FileKind)>;

/// `onward rescue list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rescues {
    pub schema: String,
    pub run: RunRef,
    /// The oldest first.
    pub rescues: Vec<Rescue>,
    /// What stands in the place of a rescue and cannot be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unusable: Vec<Unusable>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unusable {
    pub number: u32,
    pub dir: String,
    pub flaw: Flaw,
    /// In words.
    pub why: String,
}

/// What is wrong with a rescue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// It is no directory, or its note is no plain file, or the system does not give it.
    Unreadable,
    /// Its note was edited, and names a path outside of the project.
    LeadsOutside,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rescue {
    pub number: u32,
    pub step: String,
    pub attempt: u32,
    pub at: String,
    pub dir: String,
    pub paths: Vec<RescuedPath>,
    /// The rescue whose `undo` replaced what this one has; without it, an attempt's work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RescuedPath {
    pub path: String,
    pub now: Now,
    /// A person changed it, and it was saved because a step was to replace it.
    #[serde(skip)]
    pub by_hand: bool,
}

/// What a path is at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Now {
    /// As it was before the attempt: it can be brought back.
    Undone,
    /// As the attempt left it.
    Back,
    /// A person changed it since.
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
    let mut world = RealWorld::new(at.setup(machine), None);
    let (found, unusable) = read(run_dir)?;
    let mut rescues = Vec::new();
    for found in &found {
        rescues.push(told(&mut world, found)?);
    }
    let (schema, run) = ("onward.rescues/1".to_owned(), RunRef::of(run_dir));
    Ok(Rescues { schema, run, rescues, unusable })
}

/// What is wrong with the number of a rescue that the run does not have, and a hint.
pub fn no_such(run: &str, number: u32, known: &[u32]) -> (String, String) {
    let hint = match known {
        [] => "nothing was undone in it".to_owned(),
        known => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            format!("its rescues: {}; see `onward rescue list {run}`", known.join(", "))
        }
    };
    (format!("run `{run}` has no rescue {number}"), hint)
}

/// A rescue that is about to be brought back; it holds the run and the tree meanwhile.
#[derive(Debug)]
pub struct BringBack {
    pub rescue: Rescue,
    found: rescue::Rescue,
    at: RunPlace,
    world: RealWorld,
    /// The number of the rescue for what is replaced.
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
        let (all, unusable) = read(run_dir)?;
        let next = next_number(run_dir)?;
        if let Some(it) = unusable.iter().find(|it| it.number == number) {
            return Err(it.refused());
        }
        let numbers: Vec<u32> = all.iter().map(|it| it.number).collect();
        let Some(found) = all.into_iter().find(|it| it.number == number) else {
            let (what, hint) = no_such(run.as_str(), number, &numbers);
            return Err(CareError::Refused { what, hint });
        };
        let Opened { mut world, run: folded, .. } =
            Opened::read(&at, RealWorld::new(at.setup(machine), None))?;
        if !CutShort::look(&mut world, folded.state.pending_reverts())?.rest.is_empty() {
            // It would be brought back, and undone again by the resume that ends the undo.
            let what = format!("a resume of run `{run}` was cut short while it undid");
            return Err(CareError::Refused { what, hint: format!("`onward resume {run}` first") });
        }
        let rescue = told(&mut world, &found)?;
        Ok(Self { rescue, found, at, world, next, _locks: (lock, tree) })
    }

    /// Brings it back; of paths that a person changed, exactly those in `replace`.
    pub fn adopt(mut self, replace: &BTreeSet<String>) -> Result<BroughtBack, CareError> {
        for Undone { path, .. } in &self.found.note.paths {
            if revert::is_in_gone_worktree(&mut self.world, path)? {
                return Err(CareError::Refused {
                    what: format!("the worktree of {path} is gone"),
                    hint: "`git worktree add` makes it again from its branch".to_owned(),
                });
            }
        }
        let mut foreign = Vec::new();
        let mut bring = Vec::new();
        let links = links(&self.found.note);
        for (undone, shown) in self.found.note.paths.iter().zip(&self.rescue.paths) {
            match shown.now {
                Now::Back => {}
                Now::Changed if !replace.contains(&undone.path) => {
                    foreign.push(undone.path.clone());
                }
                Now::Undone | Now::Changed => {
                    let now = held(&mut self.world, &links, &undone.path)?;
                    bring.push((undone.clone(), left(&self.found, undone)?, now));
                }
            }
        }
        if !foreign.is_empty() {
            return Err(CareError::Refused {
                what: format!("changed since, and left alone: {}", foreign.join(", ")),
                hint: "look at them; name those to be replaced with `--replace PATH`".to_owned(),
            });
        }
        self.must_have_room(&bring)?;
        let brought: Vec<String> = bring.iter().map(|(undone, ..)| undone.path.clone()).collect();
        if !bring.is_empty() {
            self.keep_replaced(&bring)?;
            // What goes makes room for what comes back.
            let (gone, back): (Vec<_>, Vec<_>) =
                bring.iter().partition(|(_, left, _)| left.is_none());
            for (undone, left, _) in gone.into_iter().chain(back) {
                put(&mut self.world, At::Project(&undone.path), left)?;
            }
        }
        let replaced_in = (!bring.is_empty()).then_some(self.next);
        let (number, step) = (self.found.number, self.found.note.step.clone());
        let rescue = told(&mut self.world, &self.found)?;
        if let Some(next) = replaced_in {
            let paths = brought.join(", ");
            let text = format!("rescue {number} was brought back: {paths}; see rescue {next}");
            let opened = Opened::read(&self.at, self.world)?;
            opened.append(vec![Event::Note { text, step: Some(step) }])?;
        }
        let run = RunRef::of(&self.at.place.run_dir);
        Ok(BroughtBack { schema: "onward.undo/1".to_owned(), run, rescue, brought, replaced_in })
    }

    /// All or nothing: what stands in the way of one path, and does not go with the others, is seen
    /// before anything is done.
    fn must_have_room(&mut self, bring: &[(Undone, Held, Held)]) -> Result<(), CareError> {
        let goes = |path: &String| {
            bring.iter().any(|(undone, left, _)| left.is_none() && undone.path == *path)
        };
        for (undone, ..) in bring.iter().filter(|(_, left, _)| left.is_some()) {
            let in_the_way = self.world.in_the_way(&undone.path)?;
            if let Some(other) = in_the_way.iter().find(|it| !goes(it)) {
                return Err(CareError::Refused {
                    what: format!("{} cannot come back: {other} is in the way", undone.path),
                    hint: "move it elsewhere, and try again; nothing was changed".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// What is there now goes to a rescue of its own, so that this can be undone too.
    fn keep_replaced(&mut self, bring: &[(Undone, Held, Held)]) -> Result<(), Stop> {
        let step = &self.found.note.step;
        let dir = rescue::name(self.next, step);
        let mut paths = Vec::new();
        for (undone, left, now) in bring {
            if now.is_some() {
                put(&mut self.world, At::Run(&format!("{dir}/{FILES}/{}", undone.path)), now)?;
            }
            let digest = |held: &Held| held.as_ref().map(|(bytes, _)| Digest::of(bytes));
            let kind = |held: &Held| held.as_ref().map(|(_, kind)| *kind).unwrap_or_default();
            paths.push(Undone {
                path: undone.path.clone(),
                left: digest(now),
                base: digest(left),
                left_kind: kind(now),
                base_kind: kind(left),
            });
        }
        let (schema, step) = (self.found.note.schema.clone(), step.clone());
        let (attempt, at) = (self.found.note.attempt, wall_clock());
        let (reference, commit, replaced_by) = (None, None, Some(self.found.number));
        let note = Note { schema, step, attempt, at, reference, commit, replaced_by, paths };
        let mut text = serde_json::to_vec_pretty(&note).expect("a note is plain data");
        text.push(b'\n');
        let name = format!("{dir}/{NOTE}");
        put_durably(&mut self.world, At::Run(&name), &text, FileKind::Plain)
    }
}

/// Makes the path hold this, durably.
fn put(world: &mut RealWorld, at: At<'_>, wanted: &Held) -> Result<(), Stop> {
    if let Some((bytes, kind)) = wanted {
        return put_durably(world, at, bytes, *kind);
    }
    world.remove(at)?;
    world.sync_dir(at)
}

/// A rescue, and what its paths are now.
fn told(world: &mut RealWorld, found: &rescue::Rescue) -> Result<Rescue, CareError> {
    let note = &found.note;
    let mut paths = Vec::new();
    let links = links(note);
    for undone in &note.paths {
        let held = held(world, &links, &undone.path)?;
        let is = held.map(|(bytes, kind)| (Digest::of(&bytes), kind));
        let was = |digest: Option<Digest>, kind| digest.map(|digest| (digest, kind));
        let now = if is == was(undone.left, undone.left_kind) {
            Now::Back
        } else if is == was(undone.base, undone.base_kind) {
            Now::Undone
        } else {
            Now::Changed
        };
        let by_hand = undone.left == undone.base && undone.left_kind == undone.base_kind;
        paths.push(RescuedPath { path: undone.path.clone(), now, by_hand });
    }
    Ok(Rescue {
        number: found.number,
        step: note.step.to_string(),
        attempt: note.attempt,
        at: note.at.to_string(),
        dir: found.dir.display().to_string(),
        paths,
        replaced_by: note.replaced_by,
    })
}

/// The links that come or go with what a rescue has.
fn links(note: &Note) -> Links<'_> {
    Links::among(note.paths.iter().map(|it| {
        let left = it.left.map(|_| it.left_kind);
        (it.path.as_str(), left, it.base.map(|_| it.base_kind))
    }))
}

fn held(world: &mut RealWorld, links: &Links<'_>, path: &str) -> Result<Held, Stop> {
    if links.hide(world, path)? { Ok(None) } else { world.content(path) }
}

/// What the attempt left, from the rescue; it must be what the note says.
fn left(found: &rescue::Rescue, undone: &Undone) -> Result<Held, CareError> {
    let Some(digest) = undone.left else { return Ok(None) };
    let path = found.dir.join(FILES).join(&undone.path);
    let bytes = match undone.left_kind {
        FileKind::Link => fs::read_link(&path).map(|to| to.into_os_string().into_vec()),
        FileKind::Plain | FileKind::Executable => open::read_at(&path, open::LOG_BYTES_MAX),
    };
    match bytes.ok().filter(|bytes| Digest::of(bytes) == digest) {
        Some(bytes) => Ok(Some((bytes, undone.left_kind))),
        None => Err(CareError::Refused {
            what: format!("rescue {} does not hold {} any more", found.number, undone.path),
            hint: format!("look into {}", found.dir.display()),
        }),
    }
}

impl Unusable {
    fn of(number: u32, dir: &Path, flaw: Flaw, why: String) -> Self {
        Self { number, dir: dir.display().to_string(), flaw, why }
    }

    /// Why nothing can be brought back from it.
    pub fn refused(&self) -> CareError {
        let what = format!("rescue {} cannot be used: {}", self.number, self.why);
        CareError::Refused { what, hint: format!("look into {}", self.dir) }
    }
}

/// The oldest first, and what cannot be used.
fn read(run_dir: &Path) -> Result<(Vec<rescue::Rescue>, Vec<Unusable>), CareError> {
    let found = rescue::list(run_dir).map_err(io_stop("read the rescues of", run_dir))?;
    let unreadable = found.unreadable.iter().map(|it| {
        let why = format!("its {NOTE} cannot be read: {}", it.error);
        Unusable::of(it.number, &it.dir, Flaw::Unreadable, why)
    });
    let mut unusable: Vec<Unusable> = unreadable.collect();
    let mut rescues = found.rescues;
    rescues.retain(|it| {
        let bad = it.note.paths.iter().find(|undone| !stays_inside(&undone.path));
        let why = bad.map(|bad| format!("its {NOTE} names {}, outside of the project", bad.path));
        unusable.extend(why.map(|why| Unusable::of(it.number, &it.dir, Flaw::LeadsOutside, why)));
        bad.is_none()
    });
    unusable.sort_by_key(|it| it.number);
    Ok((rescues, unusable))
}

/// One more than any name has, also of a rescue that never came about.
fn next_number(run_dir: &Path) -> Result<u32, CareError> {
    let dir = run_dir.join("rescue");
    let mut last = 0;
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(1),
        Err(error) => return Err(io_stop("list", &dir)(error).into()),
    };
    for entry in entries {
        let name = entry.map_err(io_stop("list", &dir))?.file_name();
        let number = name.to_str().and_then(|name| name.split_once('-')?.0.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    Ok(last + 1)
}

fn stays_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
