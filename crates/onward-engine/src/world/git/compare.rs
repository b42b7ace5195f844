//! The tree as it is now, held against snapshots of it.
//!
//! Invariant: nothing is written into the repository, the tree or the run: the index is a copy in a
//! temporary directory that ends with [`Now`], and objects are named without being made.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use onward_core::name;

use super::{
    command::{Git, GitError},
    head::head,
    hidden::{LeftOut, uncover},
    snapshot::{Chain, NAME_ONLY, copy_index, head_in, include, refresh},
};
use crate::world::aside::Aside;

/// One side of a difference: git's mode, and the name of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    pub mode: u32,
    pub object: String,
}

/// A submodule, or a repository inside: not ours to put back.
const GITLINK: u32 = 0o160_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// As bytes: git does not ask that a path be text.
    pub path: Vec<u8>,
    pub base: Option<Side>,
    pub left: Option<Side>,
    /// The branch moved on, and `base` is what it has.
    pub is_of_branch: bool,
    /// What is there now is not what `left` says.
    pub moved: bool,
}

/// What [`Now::changes`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub differences: Vec<Difference>,
    /// What was not committed at the snapshot, and then was replaced by a commit: `base` is what
    /// the snapshot alone has.
    pub overlaid: Vec<Difference>,
}

/// The tree at this moment. It takes about as long as `git status` to find out.
#[derive(Debug)]
pub struct Now {
    chain: Chain,
    /// Its index says what the tree is.
    git: Git,
    head: Option<String>,
    /// Paths that are not in it, as they are too large or cannot be read.
    pub skipped: Vec<String>,
    /// Paths that are in it although git may ignore them.
    included: BTreeSet<String>,
    dir: Aside,
    /// How many exports there were.
    exports: u32,
}

impl Now {
    pub fn look(chain: Chain) -> Result<Self, GitError> {
        let dir =
            Aside::new().map_err(GitError::io("make a directory in", &std::env::temp_dir()))?;
        let (index, objects) = (dir.path().join("index"), dir.path().join("objects"));
        fs::create_dir(&objects).map_err(GitError::io("make", &objects))?;
        let repo = chain.repo();
        let git = repo.aside(&index, &objects);
        let start = |from: &Path| {
            copy_index(from, &index)?;
            if from == repo.index {
                uncover(repo.dir(), &git, LeftOut::Goes)?;
            }
            refresh(repo, &git, &NAME_ONLY)
        };
        let skipped = start(chain.index_to_start_from()).or_else(|_| start(&repo.index))?;
        let head = head(repo.dir()).and_then(|it| it.head);
        Ok(Self { chain, git, head, skipped, included: BTreeSet::new(), dir, exports: 0 })
    }

    /// Makes these part of it even if git ignores them.
    pub fn include(&mut self, also: &[String]) -> Result<(), GitError> {
        let new: Vec<String> =
            also.iter().filter(|path| self.included.insert((*path).clone())).cloned().collect();
        if !new.is_empty() {
            self.skipped.extend(include(self.chain.repo(), &self.git, &NAME_ONLY, &new));
        }
        Ok(())
    }

    /// What differs between the snapshot `base` and the snapshot `after`, or the tree now; `None`
    /// when git no longer has one of them.
    ///
    /// What the branch moved on to since is no work of an attempt: such a path's base is what the
    /// branch has, and one that is as the branch has it does not differ. What was not committed
    /// then comes back all the same where the branch did not move on, but back or aside.
    pub fn changes(&self, base: &str, after: Option<&str>) -> Result<Option<Compared>, GitError> {
        let Some(message) = self.message(base)? else { return Ok(None) };
        let base_head = head_in(&message);
        if let Some(after) = after
            && self.message(after)?.is_none()
        {
            return Ok(None);
        }
        let mut all = match after {
            Some(after) => diff(&self.git, base, after)?,
            None => self.since(base)?,
        };
        let mut moved_head = self.moved_head(base_head.as_deref())?;
        for path in self.dropped(base, base_head.as_deref())?.keys() {
            moved_head.remove(path);
        }
        let since = match after {
            Some(after) => self.since(after)?,
            None => BTreeMap::new(),
        };
        let ignored = self.ignored_then(base, &all)?;
        let uncommitted = match &base_head {
            Some(was) if !moved_head.is_empty() => diff(&self.git, was, base).unwrap_or_default(),
            Some(_) | None => Sides::new(),
        };
        let is_link = |side: &Option<Side>| side.as_ref().is_some_and(|it| it.mode == GITLINK);
        let (mut differences, mut overlaid) = (Vec::new(), Vec::new());
        for (path, (mut base, left)) in std::mem::take(&mut all) {
            if ignored.contains(&path) {
                continue;
            }
            let on_branch = moved_head.get(&path).map(|(_, on_branch)| on_branch);
            if let Some(on_branch) = on_branch {
                let had = std::mem::replace(&mut base, on_branch.clone());
                let is_replaced = uncommitted.contains_key(&path) && had != base;
                if is_replaced && had.is_some() && !is_link(&had) {
                    let (path, left) = (path.clone(), base.clone());
                    let (base, is_of_branch, moved) = (had, false, false);
                    overlaid.push(Difference { path, base, left, is_of_branch, moved });
                }
            }
            let is_of_branch = on_branch.is_some();
            let now = since.get(&path).map(|(_, now)| now);
            // It is back already.
            let is_done = now.unwrap_or(&left) == &base;
            if !is_done && !is_link(&base) && !is_link(&left) {
                let moved = now.is_some();
                differences.push(Difference { path, base, left, is_of_branch, moved });
            }
        }
        Ok(Some(Compared { differences, overlaid }))
    }

    /// The paths that are neither as the newest snapshot of the chain has them, nor as the branch
    /// that moved on since has them: what was committed is told as commits.
    pub fn moved(&self) -> Result<Vec<String>, GitError> {
        let Some(tip) = self.chain.tip()? else { return Ok(Vec::new()) };
        let mut since = self.since(&tip.id)?;
        let moved_head = self.moved_head(tip.head.as_deref())?;
        since.retain(|path, (_, now)| {
            moved_head.get(path).is_none_or(|(_, on_branch)| on_branch != now)
        });
        Ok(texts(&since))
    }

    /// What differs between where the branch stood and where it stands.
    fn moved_head(&self, was: Option<&str>) -> Result<Sides, GitError> {
        match (was, &self.head) {
            (Some(was), Some(is)) if was != is => Ok(diff(&self.git, was, is).unwrap_or_default()),
            (None, Some(is)) => diff(&self.git, &self.empty_tree()?, is),
            (Some(_) | None, _) => Ok(Sides::new()),
        }
    }

    /// What was not committed at a snapshot, where the branch stands on nothing that follows from
    /// it: such a move writes the files as they were committed elsewhere.
    fn dropped(&self, base: &str, was: Option<&str>) -> Result<Sides, GitError> {
        let (Some(was), Some(is)) = (was, &self.head) else { return Ok(Sides::new()) };
        if was == is {
            return Ok(Sides::new());
        }
        let follows = self.git.ask(&["merge-base", "--is-ancestor", was, is], &[])?;
        if follows.code == Some(0) {
            return Ok(Sides::new());
        }
        Ok(diff(&self.git, was, base).unwrap_or_default())
    }

    /// Where the branch stands.
    pub fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Paths that git ignored when the snapshot was taken. The snapshot cannot say whether they
    /// were there, so they count as no attempt's work. They show up only when the rules changed.
    fn ignored_then(&self, base: &str, all: &Sides) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let is_new = |(path, (base, _)): &(&Vec<u8>, &(Option<Side>, Option<Side>))| {
            let declared = str::from_utf8(path).is_ok_and(|path| self.included.contains(path));
            base.is_none() && !declared
        };
        let new: Vec<&Vec<u8>> = all.iter().filter(is_new).map(|(path, _)| path).collect();
        if new.is_empty() || !all.keys().any(|path| is_named(path, IGNORES)) {
            return Ok(BTreeSet::new());
        }
        let list = self.all_named(base, IGNORES)?;
        let dir = self.write_out(&self.git, "rules", &list)?;
        let prefix = &self.chain.repo().prefix;
        let named = new.iter().flat_map(|path| [prefix.as_slice(), path, b"\0"].concat());
        let git = self.chain.repo().with_tree(&dir).looking();
        let asked = ["check-ignore", "-z", "--stdin", "--no-index"];
        let answer = git.ask(&asked, &named.collect::<Vec<u8>>())?;
        // One that finds nothing says so by its exit code.
        if !matches!(answer.code, Some(0 | 1)) {
            return Err(super::command::failed(&asked, &answer.said));
        }
        let found = answer.out.split(|byte| *byte == 0);
        Ok(found.filter_map(|path| path.strip_prefix(prefix.as_slice())).map(Vec::from).collect())
    }

    /// Every file of this name in a snapshot, as `update-index --index-info` takes it.
    fn all_named(&self, base: &str, name: &[u8]) -> Result<Vec<u8>, GitError> {
        let tree = self.git.run(&["ls-tree", "-r", "-z", "--full-tree", base])?;
        let mut list = Vec::new();
        for entry in tree.split(|byte| *byte == 0) {
            // `MODE TYPE OBJECT<TAB>PATH`, of which the index wants all but the type.
            let mut words = entry.splitn(3, |byte| *byte == b' ');
            let (Some(mode), Some(_), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let path = rest.splitn(2, |byte| *byte == b'\t').nth(1);
            if path.is_some_and(|path| is_named(path, name)) {
                list.extend([mode, b" ", rest, b"\0"].concat());
            }
        }
        Ok(list)
    }

    /// Writes the bases of these into a directory, as a checkout of the snapshot would have written
    /// them: by its own attributes, whatever became of them since. Gives the directory; what is not
    /// there could not be written.
    pub fn export(&mut self, base: &str, of: &[Difference]) -> Result<PathBuf, GitError> {
        self.exports += 1;
        let mut git = self.git.clone();
        if of.iter().any(|it| is_named(&it.path, ATTRIBUTES)) {
            let list = self.all_named(base, ATTRIBUTES)?;
            let dir = self.write_out(&git, &format!("attributes-{}", self.exports), &list)?;
            git = self.chain.repo().with_tree(&dir).looking();
        }
        let mut list = Vec::new();
        for difference in of {
            let Some(Side { mode, object }) = &difference.base else { continue };
            list.extend_from_slice(format!("{mode:o} {object}\t").as_bytes());
            list.extend_from_slice(&self.chain.repo().prefix);
            list.extend_from_slice(&difference.path);
            list.push(0);
        }
        let dir = self.write_out(&git, &format!("base-{}", self.exports), &list)?;
        let ours = String::from_utf8_lossy(&self.chain.repo().prefix).into_owned();
        Ok(dir.join(ours))
    }

    /// Writes what a list for `--index-info` names into a directory of this name.
    fn write_out(&self, git: &Git, name: &str, list: &[u8]) -> Result<PathBuf, GitError> {
        let dir = self.dir.path().join(name);
        fs::create_dir_all(&dir).map_err(GitError::io("make", &dir))?;
        if list.is_empty() {
            return Ok(dir);
        }
        let index = self.dir.path().join(format!("index-{name}"));
        let git = git.clone().with("GIT_INDEX_FILE", &index);
        git.feed(&["update-index", "-z", "--index-info"], list)?;
        let prefix = format!("--prefix={}/", dir.display());
        git.run(&["checkout-index", "--all", "--force", "--quiet", &prefix])?;
        Ok(dir)
    }

    /// What a snapshot's commit says; `None` when it is lost.
    fn message(&self, snapshot: &str) -> Result<Option<String>, GitError> {
        let answer = self.git.ask(&["cat-file", "commit", snapshot], &[])?;
        let text = String::from_utf8_lossy(&answer.out).into_owned();
        Ok((answer.code == Some(0)).then_some(text))
    }

    /// What differs between a snapshot and the tree now.
    fn since(&self, snapshot: &str) -> Result<Sides, GitError> {
        let mut args = vec!["diff-index", "--cached"];
        args.extend(RAW);
        args.push(snapshot);
        sides(&args, &self.git.run(&args)?)
    }

    fn empty_tree(&self) -> Result<String, GitError> {
        self.git.line(&["hash-object", "-t", "tree", "/dev/null"])
    }
}

/// Files that say what git ignores, and how it writes what it checks out.
const IGNORES: &[u8] = b".gitignore";
const ATTRIBUTES: &[u8] = b".gitattributes";

fn is_named(path: &[u8], name: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(name)
}

type Sides = BTreeMap<Vec<u8>, (Option<Side>, Option<Side>)>;

/// Within our directory, byte for byte as it is.
const RAW: [&str; 6] = ["-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--relative"];

/// Compares two trees, or commits.
pub(super) fn diff(git: &Git, one: &str, other: &str) -> Result<Sides, GitError> {
    let mut args = vec!["diff-tree"];
    args.extend(RAW);
    args.extend([one, other]);
    sides(&args, &git.run(&args)?)
}

fn sides(args: &[&str], out: &[u8]) -> Result<Sides, GitError> {
    let mut fields = out.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut sides = Sides::new();
    while let Some(meta) = fields.next() {
        let unclear = || super::command::unclear(args);
        let path = fields.next().ok_or_else(unclear)?.to_vec();
        let meta = str::from_utf8(meta).map_err(|_| unclear())?;
        let mut words = meta.trim_start_matches(':').split(' ');
        let mut word = || words.next().ok_or_else(unclear);
        let (old_mode, new_mode, old, new) = (word()?, word()?, word()?, word()?);
        let side = |mode: &str, object: &str| -> Result<Option<Side>, GitError> {
            let mode = u32::from_str_radix(mode, 8).map_err(|_| unclear())?;
            Ok((mode != 0).then(|| Side { mode, object: object.to_owned() }))
        };
        sides.insert(path, (side(old_mode, old)?, side(new_mode, new)?));
    }
    Ok(sides)
}

pub(super) fn texts(sides: &Sides) -> Vec<String> {
    sides.keys().map(|path| name::text(path)).collect()
}

impl Chain {
    /// The paths that differ between two snapshots.
    pub fn footprint(&self, base: &str, after: &str) -> Result<Vec<String>, GitError> {
        Ok(texts(&diff(&self.repo().looking(), base, after)?))
    }
}

/// The executable bit and links, as git tells them.
impl Side {
    pub fn is_link(&self) -> bool {
        self.mode == 0o120_000
    }

    pub fn is_executable(&self) -> bool {
        self.mode == 0o100_755
    }
}

/// For tests of the code that looks: nothing of [`Now`] is in the repository.
#[cfg(test)]
impl Now {
    pub(super) fn place(&self) -> &std::path::Path {
        self.dir.path()
    }
}
