//! Where one researcher works, and what it stands on.
//!
//! In git it is a worktree; elsewhere a directory below `workspace/`, with a copy of every state
//! that stands. Invariant: what a proposal left is saved before anybody measures it, so that a
//! tree which somebody cleaned up meanwhile changes nothing.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use onward_engine::dialects::conference::Conference;

use super::{
    CallError,
    repo::{Repo, Reset},
    seat::Seat,
    tree::{Tree, names},
};

pub(super) enum Ground {
    Tree(Tree),
    Directory(Directory),
}

/// One iteration, as refs and directories name it.
#[derive(Clone, Copy)]
pub(super) struct Which<'a> {
    pub(super) round: u32,
    pub(super) researcher: &'a str,
    pub(super) iteration: u32,
}

impl Which<'_> {
    fn mark(self) -> String {
        format!("{}/{}/{}", self.round, self.researcher, self.iteration)
    }
}

impl Ground {
    /// Ready to be worked on. The seat is held while it is made.
    pub(super) fn of(
        seat: &Seat,
        conference: &Conference,
        researcher: &str,
    ) -> Result<Self, CallError> {
        if conference.has_worktrees() {
            let tree = Tree::of(&Repo::of(&seat.dir)?, researcher)?;
            tree.ensure()?;
            return Ok(Self::Tree(tree));
        }
        let directory = Directory::of(&seat.dir, conference, researcher);
        directory.ensure()?;
        Ok(Self::Directory(directory))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Tree(tree) => &tree.path,
            Self::Directory(directory) => &directory.live,
        }
    }

    /// Takes in what another system did since the last iteration, and clears up.
    pub(super) fn prepare(&self, which: Which<'_>) -> Result<Vec<String>, CallError> {
        if let Self::Tree(tree) = self {
            tree.follow_branch()?;
        }
        self.rescue(which)
    }

    pub(super) fn restore(&self) -> Result<(), CallError> {
        match self {
            Self::Tree(tree) => tree.restore(),
            Self::Directory(directory) => directory.restore(),
        }
    }

    /// The same, where somebody may have left something: that is kept aside first. Says where.
    pub(super) fn rescue(&self, which: Which<'_>) -> Result<Vec<String>, CallError> {
        let kept = match self {
            Self::Tree(tree) => {
                let to = Reset { base: &tree.standing()?, round: which.round };
                tree.keep_aside(&which.mark(), &to)?
            }
            Self::Directory(directory) => directory.keep_aside(which)?,
        };
        self.restore()?;
        Ok(kept)
    }

    /// The same, for a researcher of whom the round knows nothing yet: it begins with the best
    /// there is, whatever became of its tree since the round was started.
    pub(super) fn begin(&self, which: Which<'_>, best: &str) -> Result<Vec<String>, CallError> {
        match self {
            Self::Tree(tree) => tree.begin(which.round, best),
            Self::Directory(_) => self.rescue(which),
        }
    }

    /// An agent may have done anything to the place. Called while the seat is held.
    pub(super) fn mend(&self) -> Result<(), CallError> {
        match self {
            Self::Tree(tree) => tree.ensure(),
            Self::Directory(directory) => directory.ensure(),
        }
    }

    /// The state that the researcher proposes.
    pub(super) fn save(&self, which: Which<'_>) -> Result<String, CallError> {
        match self {
            Self::Tree(tree) => {
                let mark = which.mark();
                tree.save(&format!("proposal/{mark}"), &format!("proposal {mark}"))
            }
            Self::Directory(directory) => directory.save(which),
        }
    }

    pub(super) fn show(&self, saved: &str) -> Result<(), CallError> {
        match self {
            Self::Tree(tree) => tree.show(saved),
            Self::Directory(directory) => directory.show(saved),
        }
    }

    pub(super) fn keep(
        &self,
        saved: &str,
        which: Which<'_>,
        description: &str,
    ) -> Result<(), CallError> {
        match self {
            Self::Tree(tree) => {
                let Which { round, researcher, iteration } = which;
                let subject = format!(
                    "conference: round {round}, researcher {researcher}, iteration {iteration}: \
                     {description}"
                );
                tree.keep(saved, &subject, &which.mark())
            }
            // Its row makes it stand.
            Self::Directory(directory) => directory.show(saved),
        }
    }
}

/// Ground without git.
pub(super) struct Directory {
    live: PathBuf,
    /// A copy of each state, by round and iteration.
    states: PathBuf,
    /// The last one whose row stands.
    standing: String,
    /// What would have been lost, by researcher.
    rescues: PathBuf,
}

const FIRST: &str = "0-0";

impl Directory {
    fn of(dir: &Path, conference: &Conference, researcher: &str) -> Self {
        let workspace = dir.join("workspace");
        let states = workspace.join(".states").join(researcher);
        let rounds = conference.history.rounds.iter().rev();
        let standing = rounds.flat_map(|(round, told)| {
            let trials: Vec<_> = told.trials_of(researcher).collect();
            let stands = trials.into_iter().rev().filter(|(_, trial)| trial.status.stands());
            stands.map(|(iteration, _)| format!("{round}-{iteration}")).collect::<Vec<_>>()
        });
        let mut standing = standing.filter(|name| states.join(name).is_dir());
        let standing = standing.next().unwrap_or_else(|| FIRST.to_owned());
        let live = workspace.join(format!("researcher-{researcher}"));
        Self { live, states, standing, rescues: workspace.join(".rescue") }
    }

    fn ensure(&self) -> Result<(), CallError> {
        let made = fs::create_dir_all(&self.live).and_then(|()| fs::create_dir_all(&self.states));
        made.map_err(CallError::io("make", &self.live))?;
        let first = self.states.join(FIRST);
        if !first.is_dir() {
            replace(&self.live, &first)?;
        }
        Ok(())
    }

    fn restore(&self) -> Result<(), CallError> {
        replace(&self.states.join(&self.standing), &self.live)
    }

    /// What is not as it stands, as a copy of its own. Made again after a kill, it is the same one.
    fn keep_aside(&self, which: Which<'_>) -> Result<Vec<String>, CallError> {
        let standing = self.states.join(&self.standing);
        if is_same(&standing, &self.live).map_err(CallError::io("compare", &self.live))? {
            return Ok(Vec::new());
        }
        let name = format!("{}-{}", which.round, which.iteration);
        let dir = self.rescues.join(which.researcher);
        fs::create_dir_all(&dir).map_err(CallError::io("make", &dir))?;
        for path in names(&dir.join(name)) {
            let is_free = path.symlink_metadata().is_err();
            if is_free {
                replace(&self.live, &path)?;
            }
            if is_free || is_same(&path, &self.live).map_err(CallError::io("compare", &path))? {
                return Ok(vec![path.display().to_string()]);
            }
        }
        Err(CallError::new(format!("`{}` has no name left", dir.display())))
    }

    fn save(&self, which: Which<'_>) -> Result<String, CallError> {
        let name = format!("{}-{}", which.round, which.iteration);
        replace(&self.live, &self.states.join(&name))?;
        Ok(name)
    }

    fn show(&self, saved: &str) -> Result<(), CallError> {
        replace(&self.states.join(saved), &self.live)
    }
}

/// A copy of `from` in the place of `to`. Cut short, it is made again.
fn replace(from: &Path, to: &Path) -> Result<(), CallError> {
    let part = to.with_extension("part");
    let done = || -> io::Result<()> {
        if part.exists() {
            fs::remove_dir_all(&part)?;
        }
        copy(from, &part)?;
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        fs::rename(&part, to)
    };
    done().map_err(CallError::io("copy", from))
}

/// Whether two places hold the same names and contents.
fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let kind = |path: &Path| path.symlink_metadata().map(|it| it.file_type());
    let kinds = kind(one)?;
    if kinds != kind(other)? {
        return Ok(false);
    }
    if kinds.is_symlink() {
        return Ok(fs::read_link(one)? == fs::read_link(other)?);
    }
    if !kinds.is_dir() {
        return Ok(fs::read(one)? == fs::read(other)?);
    }
    let names = |path: &Path| -> io::Result<BTreeSet<OsString>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
    };
    let own = names(one)?;
    if own != names(other)? {
        return Ok(false);
    }
    for name in own {
        if !is_same(&one.join(&name), &other.join(&name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
