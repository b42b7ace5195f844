//! Where one researcher works, and which state it stands on.
//!
//! In git it is a worktree; elsewhere a directory below `workspace/`. Invariant: a proposal is
//! saved before it is measured, so that nothing which happens to the tree afterwards changes it.

use std::path::Path;

use onward_dialects::conference::Conference;

use super::{CallError, Name, directory::Directory, repo::Reset, seat::Seat, tree::Tree};

pub(super) enum Ground {
    Tree(Tree),
    Directory(Directory),
}

/// One iteration, as refs and directories name it.
#[derive(Clone, Copy)]
pub(super) struct Which<'a> {
    pub(super) round: u32,
    pub(super) researcher: &'a Name,
    pub(super) iteration: u32,
}

impl Which<'_> {
    fn mark(self) -> String {
        format!("{}/{}/{}", self.round, self.researcher, self.iteration)
    }

    /// Where the proposal is kept, below the refs of a conference.
    fn place(self) -> String {
        format!("proposal/{}", self.mark())
    }
}

impl Ground {
    /// Ready to be worked on. The seat is held while it is made.
    pub(super) fn of(
        seat: &Seat,
        conference: &Conference,
        researcher: &Name,
    ) -> Result<Self, CallError> {
        if conference.has_worktrees() {
            let tree = Tree::of(&seat.repo()?, researcher)?;
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
            Self::Directory(directory) => directory.path(),
        }
    }

    /// Takes in what another system did since the last iteration, and clears up. A proposal that
    /// was saved for this iteration before is dropped: a new one follows.
    pub(super) fn prepare(&self, which: Which<'_>) -> Result<Vec<String>, CallError> {
        if let Self::Tree(tree) = self {
            tree.follow_branch()?;
        }
        let kept = self.rescue(which)?;
        match self {
            Self::Tree(tree) => tree.drop_saved(&which.place())?,
            Self::Directory(directory) => directory.drop_saved(which)?,
        }
        Ok(kept)
    }

    pub(super) fn restore(&self) -> Result<(), CallError> {
        match self {
            Self::Tree(tree) => tree.restore(),
            Self::Directory(directory) => directory.restore(),
        }
    }

    /// Restores the ground after it has kept aside what differs. Gives the places where that is.
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

    /// The same for a researcher without an iteration in this round: it begins with the best there
    /// is, whatever happened to its tree since the round was started.
    pub(super) fn begin(&self, which: Which<'_>, best: &str) -> Result<Vec<String>, CallError> {
        match self {
            Self::Tree(tree) => tree.begin(which.round, best),
            Self::Directory(_) => self.rescue(which),
        }
    }

    /// The state that the researcher proposes, saved once: called again, it is the one that was
    /// saved first, as the evaluator may have changed files since.
    pub(super) fn save(&self, which: Which<'_>) -> Result<String, CallError> {
        match self {
            Self::Tree(tree) => {
                let place = which.place();
                match tree.saved(&place)? {
                    Some(saved) => Ok(saved),
                    None => tree.save(&place, &format!("proposal {}", which.mark())),
                }
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
