//! The trees of a run in git: snapshots of them, and what changed since.
//!
//! Invariant: a comparison writes nothing outside a temporary directory, and is never older than
//! the last thing the engine did to the tree.

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use onward_core::{
    digest::Digest,
    event::GitHead,
    evidence::Stat,
    name,
    survey::CommitSeen,
    worktree::{WorktreePlace, component},
};
use serde::{Deserialize, Serialize};

use super::{
    look::{Looker, content_of},
    said::Said,
    worktrees::Gone,
};
use crate::world::{
    Change, Changes, Content, Snapshot, Stop, Undo, When,
    files::Leads,
    git::{
        self, Chain, Compared, Condition, Difference, Env, GitError, Now, Repo, Rescued, Taken,
        Undoing, index_of,
    },
    supervisor::{Place, is_inside},
};

pub(super) struct Trees {
    pub(super) place: Place,
    env: Env,
    /// By directory; `None` where there is no repository.
    repos: BTreeMap<String, Option<Repo>>,
    /// The trees as they are, until something is done to them.
    now: BTreeMap<String, Now>,
    /// Where the bases that were told of can be read.
    bases: BTreeMap<Digest, PathBuf>,
    /// Keeps those files.
    past: Vec<Now>,
    /// What the branches of worktrees that are gone have.
    pub(super) gone: BTreeMap<String, Gone>,
}

/// What the supervisor is told about the snapshot after an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotArgs {
    pub run: String,
    pub run_dir: PathBuf,
    pub project_dir: PathBuf,
    pub tree: String,
    pub title: String,
    pub writes: Vec<String>,
}

/// Takes the snapshot that the hidden subcommand was asked for. Gives what it is to print.
pub fn snapshot_from_args(args: &str, env: &Env) -> Result<Option<String>, Stop> {
    let args: SnapshotArgs = serde_json::from_str(args).map_err(|error| Stop::Unready {
        what: format!("not what a supervisor asks for: {error}"),
        hint: "this command is onward's own".to_owned(),
    })?;
    let SnapshotArgs { run, run_dir, project_dir, tree, title, writes } = args;
    if !tree.is_empty() && !can_be_asked(&project_dir, &tree) {
        return Ok(None);
    }
    let Some(repo) = Repo::find(&project_dir.join(&tree), env)? else {
        return Ok(None);
    };
    let also = also(&mut Looker::new(project_dir), &tree, &writes)?;
    let chain = Chain::new(repo, &chain_dir(&run_dir), &run, &name_of(&tree));
    Ok(Some(chain.take(&title, &also)?.id))
}

impl Trees {
    pub(super) fn new(place: Place, env: Env) -> Self {
        let (repos, now, bases) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (past, gone) = (Vec::new(), BTreeMap::new());
        Self { place, env, repos, now, bases, past, gone }
    }

    /// A worktree was made, or mended.
    pub(super) fn repos_changed(&mut self, tree: &str) {
        self.repos.remove(tree);
        self.forget();
    }

    /// Something is about to change, or may have.
    pub(super) fn forget(&mut self) {
        self.past.extend(std::mem::take(&mut self.now).into_values());
    }

    /// What was to be undone is.
    pub(super) fn forget_bases(&mut self) {
        self.forget();
        self.past.clear();
        self.bases.clear();
    }

    pub(super) fn snapshot(
        &mut self,
        of: &Snapshot<'_>,
        looker: &mut Looker,
    ) -> Result<Option<Taken>, Stop> {
        let Some(chain) = self.chain(of.tree)? else { return Ok(None) };
        let also = also(looker, of.tree, of.writes)?;
        let mut taken = chain.take(&title(of), &also)?;
        taken.skipped = taken.skipped.iter().map(|path| below(of.tree, path)).collect();
        Ok(Some(taken))
    }

    pub(super) fn args(&self, of: &Snapshot<'_>) -> String {
        let args = SnapshotArgs {
            run: self.place.run.to_string(),
            run_dir: self.place.run_dir.clone(),
            project_dir: self.place.project_dir.clone(),
            tree: of.tree.to_owned(),
            title: title(of),
            writes: of.writes.to_vec(),
        };
        serde_json::to_string(&args).expect("paths of a run are text")
    }

    pub(super) fn changes(
        &mut self,
        of: &Snapshot<'_>,
        base: &str,
        after: Option<&str>,
        looker: &mut Looker,
    ) -> Result<Option<Changes>, Stop> {
        // With the directory went whatever was changed in it.
        if !self.place.project_dir.join(of.tree).is_dir() {
            return Ok(Some(Changes::default()));
        }
        let Some(chain) = self.chain(of.tree)? else { return Ok(None) };
        let also = also(looker, of.tree, of.writes)?;
        let now = match self.now.entry(of.tree.to_owned()) {
            Entry::Occupied(now) => now.into_mut(),
            Entry::Vacant(now) => now.insert(Now::look(chain)?),
        };
        now.include(&also)?;
        let Some(compared) = now.changes(base, after)? else { return Ok(None) };
        let Compared { differences: found, overlaid } = compared;
        let under = if overlaid.is_empty() { None } else { Some(now.export(base, &overlaid)?) };
        let exported = now.export(base, &found)?;
        let skipped = now.skipped.iter().map(|path| below(of.tree, path)).collect();
        let head = now.head().unwrap_or_default().to_owned();
        let mut all = Vec::new();
        let said = Said::here(&self.place.project_dir);
        for difference in found {
            let Difference { path, base: old, is_of_branch, moved, .. } = difference;
            let text = name::text(&path);
            if said.is_in(&below(of.tree, &text)) {
                continue;
            }
            let full = exported.join(open::raw(&text));
            let content = if old.is_some() { content_of(&full)? } else { None };
            let is_lost = old.is_some() && content.is_none();
            let base_of: Option<Content> = content.map(|(bytes, kind)| {
                let digest = Digest::of(&bytes);
                self.bases.insert(digest, full);
                (digest, kind)
            });
            let link = git::link_above(&self.place.project_dir.join(of.tree), &path);
            let link = link.map(|it| below(of.tree, &name::text(it.as_os_str().as_bytes())));
            let path = below(of.tree, &text);
            let (seen, changed_ns) = match link {
                // In the place of a directory: what lies behind it is not this.
                Some(link) => (None, looker.look(&link)?.map(|it| it.changed_ns)),
                None => match looker.look(&path)? {
                    Some(seen) => (Some(seen), Some(seen.changed_ns)),
                    None => (None, looker.dir_changed_ns(&path)),
                },
            };
            let left = seen.map(crate::world::Looked::content);
            // What was put back while we looked.
            if left == base_of && !is_lost {
                continue;
            }
            let base_at = if is_of_branch { head.clone() } else { base.to_owned() };
            let moved = moved || is_lost;
            all.push(Change { path, left, base: base_of, base_at, changed_ns, moved });
        }
        all.sort_by(|one, other| one.path.cmp(&other.path));
        let mut lost = Vec::new();
        for (difference, under) in overlaid.iter().zip(under.iter().cycle()) {
            let text = name::text(&difference.path);
            let full = under.join(open::raw(&text));
            if let Some((bytes, kind)) = content_of(&full)? {
                let digest = Digest::of(&bytes);
                self.bases.insert(digest, full);
                lost.push((below(of.tree, &text), (digest, kind)));
            }
        }
        Ok(Some(Changes { all, skipped, overlaid: lost }))
    }

    pub(super) fn footprint(
        &mut self,
        tree: &str,
        base: &str,
        after: &str,
    ) -> Result<Vec<String>, Stop> {
        let Some(chain) = self.chain(tree)? else { return Ok(Vec::new()) };
        let paths = chain.footprint(base, after)?;
        Ok(paths.iter().map(|path| below(tree, path)).collect())
    }

    pub(super) fn base_content(&self, base: Digest) -> Result<Option<Vec<u8>>, Stop> {
        let Some(path) = self.bases.get(&base) else { return Ok(None) };
        Ok(content_of(path)?.map(|(bytes, _)| bytes))
    }

    pub(super) fn keep_rescue(
        &mut self,
        of: &Snapshot<'_>,
        undo: &Undo<'_>,
        looker: &mut Looker,
    ) -> Result<Option<Rescued>, Stop> {
        let Some(chain) = self.chain(of.tree)? else { return Ok(None) };
        let inside = |path: &'_ str| -> usize { path.len() - strip(of.tree, path).len() };
        let mut paths = BTreeMap::new();
        for revert in undo.reverts {
            // What the snapshots do not cover is kept by its file alone.
            let base_at = undo.bases.get(&revert.path).filter(|it| !it.is_empty());
            if let Some(base_at) = base_at {
                let base = revert.base.is_some().then_some(base_at.as_str());
                paths.insert(&revert.path[inside(&revert.path)..], base);
            }
        }
        let also = also(looker, of.tree, of.writes)?;
        let title = format!("what {}, attempt {}, left", of.step, of.attempt);
        let what = Undoing { title: &title, number: undo.number, paths, also: &also };
        Ok(Some(chain.rescue(&what)?))
    }

    pub(super) fn as_committed(&mut self, paths: &[String]) -> Result<BTreeSet<String>, Stop> {
        let Some(repo) = self.repo("")? else { return Ok(BTreeSet::new()) };
        Ok(repo.as_committed(paths)?)
    }

    /// Branch and head of a tree. A worktree whose directory is gone is known by its branch.
    pub(super) fn head(&mut self, tree: &str) -> Result<Option<GitHead>, Stop> {
        if let Some(place) = WorktreePlace::at(tree) {
            match self.condition(&place)? {
                Condition::Unmade => return Ok(None),
                Condition::Missing { .. } | Condition::Unregistered { .. } => {
                    let head = self.repo("")?.and_then(|repo| repo.branch_head(&place.branch));
                    return Ok(
                        head.map(|head| GitHead { branch: Some(place.branch), head: Some(head) })
                    );
                }
                Condition::Fine | Condition::Elsewhere(_) | Condition::Busy(_) => {}
            }
        }
        Ok(git::head(&self.place.project_dir.join(tree)))
    }

    pub(super) fn commits(
        &mut self,
        tree: &str,
        since: Option<&str>,
        until: &str,
    ) -> Result<Vec<CommitSeen>, Stop> {
        let run = self.place.run.to_string();
        // A worktree that is gone took its own reflog with it; the branch has one too.
        let branch = WorktreePlace::at(tree).map(|place| format!("refs/heads/{}", place.branch));
        let commits = match self.repo(tree)? {
            Some(repo) => repo.commits(since, until, &run, "HEAD")?,
            None => match (self.repo("")?, branch) {
                (Some(repo), Some(branch)) => repo.commits(since, until, &run, &branch)?,
                (Some(_) | None, _) => Vec::new(),
            },
        };
        let seen = |it: git::Commit| CommitSeen { id: it.id, subject: it.subject, by: it.by };
        Ok(commits.into_iter().map(seen).collect())
    }

    /// Against the newest snapshot of the tree.
    pub(super) fn moved(&mut self, tree: &str) -> Result<Vec<String>, Stop> {
        if !index_of(&chain_dir(&self.place.run_dir), &name_of(tree)).exists() {
            return Ok(Vec::new());
        }
        let Some(chain) = self.chain(tree)? else { return Ok(Vec::new()) };
        let now = match self.now.entry(tree.to_owned()) {
            Entry::Occupied(now) => now.into_mut(),
            Entry::Vacant(now) => now.insert(Now::look(chain)?),
        };
        let said = Said::here(&self.place.project_dir);
        let moved = now.moved()?.into_iter().map(|path| below(tree, &path));
        Ok(moved.filter(|path| !said.is_in(path)).collect())
    }

    pub(super) fn chain(&mut self, tree: &str) -> Result<Option<Chain>, Stop> {
        let (run, dir) = (self.place.run.to_string(), chain_dir(&self.place.run_dir));
        let repo = self.repo(tree)?.cloned();
        Ok(repo.map(|repo| Chain::new(repo, &dir, &run, &name_of(tree))))
    }

    /// None for a worktree that is gone. Of one that git does not know, it is for looking only.
    pub(super) fn repo(&mut self, tree: &str) -> Result<Option<&Repo>, Stop> {
        let dir = self.place.project_dir.join(tree);
        if let Some(place) = WorktreePlace::at(tree) {
            match self.condition(&place)? {
                Condition::Unmade | Condition::Missing { .. } => {
                    self.repos.remove(tree);
                    return Ok(None);
                }
                Condition::Unregistered { .. } => {
                    let around = self.repo("")?.map(|repo| repo.with_tree(&dir));
                    self.repos.insert(tree.to_owned(), around);
                }
                Condition::Fine | Condition::Elsewhere(_) | Condition::Busy(_) => {}
            }
        }
        let is_own = WorktreePlace::at(tree).is_some();
        if !is_own && !tree.is_empty() && !can_be_asked(&self.place.project_dir, tree) {
            self.repos.remove(tree);
            return Ok(None);
        }
        if !self.repos.contains_key(tree) {
            let found = Repo::find(&dir, &self.env)?;
            self.repos.insert(tree.to_owned(), found);
        }
        Ok(self.repos.get(tree).and_then(Option::as_ref))
    }
}

/// In the run's directory: the indexes of its own, and the lock.
pub(super) fn chain_dir(run_dir: &Path) -> PathBuf {
    run_dir.join("git")
}

/// Whether git can say anything about a directory that a step works in: it is there, it is below
/// the project, and if it is the top of a worktree, that one still has its repository.
fn can_be_asked(project_dir: &Path, tree: &str) -> bool {
    let told = open::text_named(&project_dir.join(tree).join(".git"), open::SMALL_BYTES_MAX);
    let gitdir = told.ok().and_then(|it| Some(it.strip_prefix("gitdir:")?.trim().to_owned()));
    let is_whole = |gitdir: String| project_dir.join(tree).join(gitdir).join("HEAD").is_file();
    is_inside(project_dir, tree) && gitdir.is_none_or(is_whole)
}

/// The tree's name, as one component. No worktree of ours begins with `+`.
fn name_of(tree: &str) -> String {
    match WorktreePlace::at(tree) {
        Some(place) => place.name().to_owned(),
        None if tree.is_empty() => String::new(),
        None => format!("+{}", component(tree)),
    }
}

fn title(of: &Snapshot<'_>) -> String {
    let when = match of.when {
        When::Before => "before",
        When::After => "after",
    };
    format!("{when} {}, attempt {}", of.step, of.attempt)
}

/// The declared outputs that are there, as the tree names them.
fn also(looker: &mut Looker, tree: &str, writes: &[String]) -> Result<Vec<String>, Stop> {
    let mut also = Vec::new();
    for pattern in writes {
        let found = looker.glob(pattern, &[])?;
        for file in found.into_iter().filter(|file| file.stat != Stat::OUTSIDE) {
            // What a step writes through a link is there.
            if let Leads::To(path) = looker.leads(&file.path)
                && is_in(tree, &path)
            {
                also.push(strip(tree, &path).to_owned());
            }
            also.push(strip(tree, &file.path).to_owned());
        }
    }
    Ok(also)
}

/// A path in a tree, as the project names it.
fn below(tree: &str, path: &str) -> String {
    if tree.is_empty() { path.to_owned() } else { format!("{tree}/{path}") }
}

fn is_in(tree: &str, path: &str) -> bool {
    tree.is_empty() || path.strip_prefix(tree).is_some_and(|rest| rest.starts_with('/'))
}

fn strip<'p>(tree: &str, path: &'p str) -> &'p str {
    path.strip_prefix(tree).map_or(path, |rest| rest.trim_start_matches('/'))
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        let hint = error.hint();
        Self::Unready { what: format!("the tree cannot be looked at: {error}"), hint }
    }
}

/// The words of the hidden subcommand, for a supervisor to start.
pub(super) fn command(program: &[OsString], args: String) -> Option<Vec<String>> {
    let words = program.iter().map(|word| word.to_str().map(str::to_owned));
    let words: Option<Vec<String>> = words.collect();
    words.filter(|words| !words.is_empty()).map(|mut words| {
        words.push(args);
        words
    })
}
