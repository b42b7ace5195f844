//! Which runs of other systems are there: in a directory, below it, and in Claude Code's task
//! lists.
//!
//! Invariant: looks only, at a bounded number of directories. The directory of a run may be a link;
//! no other one is followed.

use crate::world::open;
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use onward_dialects::seam::{
    Candidate, Card, Dialect, Glimpse, Home, Listing, Mark, Project as Evidence, Root, Site,
};
use rustix::fs::FsWord;

use super::Project;
use crate::world::{
    Stop,
    git::Git,
    real::{
        file_time,
        site::{Found, expand},
        variable,
    },
    seen::Seen,
};

/// How deep below a directory the marks of a run are looked for: a file directly in it is at 1.
const DEPTH_MAX: usize = 4;
/// How far above a file the run is looked for that it speaks of.
const ABOVE_MAX: usize = 8;
/// A search ends here, whatever is left.
const DIRS_MAX: usize = 20_000;
/// So many files and branches of a project count as evidence.
const ENTRIES_MAX: usize = 100_000;
/// No more of a file is peeked into. A page says in its first lines what it is; any other file that
/// is larger is not peeked into at all.
const PEEK_BYTES_MAX: u64 = 4 << 20;
/// Runs are not kept in these; copies of one may well be there.
const PASSED_OVER: [&str; 6] =
    [".git", ".onward", "node_modules", "target", "worktrees", ".worktrees"];

/// Where runs of other systems are looked for.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub dialects: &'a [&'static dyn Dialect],
    pub env: &'a [(OsString, OsString)],
    /// A task list, or the directory of all task lists, in the place of Claude Code's own.
    pub tasks: Option<&'a Path>,
}

/// A run of another system, and the project that its files lie in.
#[derive(Clone)]
pub struct FoundSite {
    pub dialect: &'static dyn Dialect,
    pub site: Site,
    pub project: Project,
    /// Where it lies.
    pub dir: PathBuf,
    /// Its files, once they were read.
    pub seen: Seen,
}

impl FoundSite {
    pub(crate) fn new(dialect: &'static dyn Dialect, mut site: Site, project: &Project) -> Self {
        let dir = match site.dir() {
            "." => project.root().to_owned(),
            dir => project.root().join(dir),
        };
        site.place = dir.display().to_string();
        if site.name == "." {
            let name = dir.file_name().unwrap_or_default();
            site.name = name.to_string_lossy().into_owned();
        }
        Self { dialect, site, project: project.clone(), dir, seen: Seen::default() }
    }

    pub fn card(&self) -> &'static Card {
        self.dialect.card()
    }

    /// What means this run and no other: its directory, with its name behind it where several may
    /// lie in one.
    pub fn path(&self) -> PathBuf {
        let name = self.site.name.as_str();
        let is_named_so = self.dir.file_name().is_some_and(|it| it == name);
        if is_named_so { self.dir.clone() } else { self.dir.join(name) }
    }

    /// Whether it may be chosen without a person's word.
    pub fn is_candidate(&self) -> bool {
        !self.site.elsewhere && !self.site.by_name_only
    }
}

impl Search<'_> {
    /// The runs in this very directory; those that lack a mark only where no other is there. With a
    /// name, of that dialect alone.
    pub fn at(&self, dir: &Path, named: Option<&str>) -> io::Result<Vec<FoundSite>> {
        let project = Project::locate(dir)?;
        let mut found = self.in_dir(&project, dir, named);
        if found.is_empty() {
            found = self.around(dir, named)?;
        }
        if found.iter().any(|it| it.site.lacks.is_none()) {
            found.retain(|it| it.site.lacks.is_none());
        }
        if let Some(name) = named.filter(|_| found.is_empty())
            && let Some(dialect) = self.dialects.iter().find(|it| it.card().name == name)
        {
            // Reading it then says which file is missing.
            let site = Site::at(dialect.card(), &named_by(&project, dir));
            found.push(FoundSite::new(*dialect, site, &project));
        }
        Ok(found)
    }

    /// The run that lies in this very directory, of a system that keeps several of them below a
    /// project: there the marks begin further up.
    fn around(&self, dir: &Path, named: Option<&str>) -> io::Result<Vec<FoundSite>> {
        let of_name = |card: &Card| named.is_none_or(|name| name == card.name);
        let cards = self.dialects.iter().map(|it| it.card());
        let cards: Vec<&Card> = cards.filter(|it| of_name(it)).collect();
        let globs = || cards.iter().flat_map(|card| card.marks).map(|mark| mark.glob);
        for base in dir.ancestors().skip(1).take(DEPTH_MAX) {
            let Ok(inner) = dir.strip_prefix(base) else { continue };
            if !globs().any(|glob| leads_into(glob, inner)) {
                continue;
            }
            let project = Project::locate(base)?;
            let mut found = self.in_dir(&project, base, named);
            found.retain(|it| it.dir == dir);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// The runs that a file speaks of, in the nearest directory that holds any; else the one that
    /// it stands for.
    pub fn about(&self, file: &Path) -> io::Result<Vec<FoundSite>> {
        let bytes = open::read_named(file, PEEK_BYTES_MAX).unwrap_or_default();
        let mut meant = None;
        for base in file.ancestors().skip(1).take(ABOVE_MAX) {
            let Some(inner) = file.strip_prefix(base).ok().and_then(Path::to_str) else { continue };
            let project = Project::locate(base)?;
            let mut found = self.in_dir(&project, base, None);
            found
                .retain(|it| it.site.lacks.is_none() && it.site.about.iter().any(|it| it == inner));
            if !found.is_empty() {
                return Ok(found);
            }
            let stands_for = |dialect: &&'static dyn Dialect| {
                let (workflow, mut inputs) = dialect.meant_by(inner, &bytes)?;
                let dir = named_by(&project, base);
                inputs.insert("dir".to_owned(), dir.as_str().into());
                let site = dialect.site(&dir, workflow, &inputs);
                // No list names it otherwise.
                let site = Site { name: inner.to_owned(), ..site };
                Some(FoundSite::new(*dialect, site, &project))
            };
            meant = meant.or_else(|| self.dialects.iter().find_map(stands_for));
        }
        Ok(meant.into_iter().collect())
    }

    /// Where a person who is in this directory of a project means: there, if some system has left
    /// something at or below it; else the nearest directory above in which one has, up to the
    /// project's own.
    pub fn nearest(&self, project: &Project, dir: &Path) -> PathBuf {
        if dir == project.root() || !self.marked_below(dir).is_empty() {
            return dir.to_owned();
        }
        let above = dir.ancestors().skip(1).take_while(|it| it.starts_with(project.root()));
        let holds = |it: &&Path| {
            let found = self.of_home(Home::Project, project, (it, None), &mut None);
            found.iter().any(|it| it.site.lacks.is_none())
        };
        above.into_iter().find(holds).unwrap_or(dir).to_owned()
    }

    /// Whole runs at and below a directory, and those in task lists, in order of their places.
    pub fn below(&self, root: &Path) -> io::Result<Vec<FoundSite>> {
        let mut found = Vec::new();
        for dir in self.marked_below(root) {
            let project = Project::locate(&dir)?;
            found.extend(self.in_dir(&project, &dir, None));
        }
        let project = Project::locate(root)?;
        // The same for all lists: git is asked once.
        let mut known = None;
        for list in self.task_lists() {
            found.extend(self.in_task_list(&project, (&list, None), &mut known));
        }
        found.retain(|it| it.site.lacks.is_none());
        Ok(found)
    }

    /// The run in one task list, of the project that goes on with it.
    pub fn of_list(&self, project: &Project, list: &Path) -> Option<FoundSite> {
        self.in_task_list(project, (list, None), &mut None).into_iter().next()
    }

    /// Directories that hold a mark of some system whose runs live in projects.
    fn marked_below(&self, root: &Path) -> Vec<PathBuf> {
        let cards = self.dialects.iter().map(|it| it.card());
        let cards: Vec<&Card> = cards.filter(|card| card.home == Home::Project).collect();
        let first = |mark: &Mark| mark.glob.split('/').next().unwrap_or_default();
        let firsts: BTreeSet<&str> = cards.iter().flat_map(|it| it.marks).map(first).collect();
        let mut found = Vec::new();
        let mut level = vec![root.to_owned()];
        let mut visited = 0;
        for _ in 0..DEPTH_MAX {
            let mut next = Vec::new();
            for dir in level {
                visited += 1;
                if visited > DIRS_MAX {
                    break;
                }
                let names = marks_and_dirs(&dir, &firsts);
                let has = |mark: &Mark| names.contains_key(first(mark));
                let is_whole = |card: &&&Card| card.marks.iter().all(has);
                let is_flat = |card: &&Card| card.marks.iter().all(|it| !it.glob.contains('/'));
                if cards.iter().any(|card| card.marks.iter().any(has)) {
                    found.push(dir.clone());
                }
                // A run that lies directly in its directory has no other one inside.
                if cards.iter().filter(is_whole).any(is_flat) {
                    continue;
                }
                let inner = names
                    .into_iter()
                    .filter(|(name, is_dir)| *is_dir && !PASSED_OVER.contains(&name.as_str()));
                next.extend(inner.map(|(name, _)| dir.join(name)));
            }
            level = next;
        }
        found.sort();
        found
    }

    fn in_dir(&self, project: &Project, dir: &Path, named: Option<&str>) -> Vec<FoundSite> {
        let mut found = self.of_home(Home::Project, project, (dir, named), &mut None);
        found.extend(self.in_task_list(project, (dir, named), &mut None));
        found
    }

    fn in_task_list(
        &self,
        project: &Project,
        list: (&Path, Option<&str>),
        known: &mut Option<Evidence>,
    ) -> Vec<FoundSite> {
        self.of_home(Home::TaskLists, project, list, known)
    }

    /// `known` is the evidence of this project, once it was gathered.
    fn of_home(
        &self,
        home: Home,
        project: &Project,
        (dir, named): (&Path, Option<&str>),
        known: &mut Option<Evidence>,
    ) -> Vec<FoundSite> {
        let mut found = Vec::new();
        for dialect in self.dialects {
            let card = dialect.card();
            if card.home != home || named.is_some_and(|name| name != card.name) {
                continue;
            }
            // What cannot be listed cannot be recognised.
            let Ok(marks) = glimpses(dir, card) else { continue };
            if marks.is_empty() {
                continue;
            }
            let candidate = Candidate { dir: named_by(project, dir), marks };
            let evidence = known.take().unwrap_or_else(|| self.evidence(home, project));
            let listing = Listing { candidates: vec![candidate], project: evidence };
            // Of runs that have no state of their own, what is read is the same where it is named
            // so: hundreds of them are read once.
            let mut read: Option<(Vec<Root>, Seen)> = None;
            for site in dialect.sites(&listing) {
                let mut it = FoundSite::new(*dialect, site, project);
                if it.site.implied && it.site.commits.is_empty() {
                    match &read {
                        Some((roots, seen)) if *roots == it.site.roots => it.seen = seen.clone(),
                        Some(_) => {}
                        None => read = Some((it.site.roots.clone(), it.seen.clone())),
                    }
                }
                found.push(it);
            }
            *known = Some(listing.project);
        }
        found
    }

    /// By what a run outside of the project can be known to belong to it.
    fn evidence(&self, home: Home, project: &Project) -> Evidence {
        match home {
            Home::Project => Evidence::default(),
            Home::TaskLists => {
                let root = project.root();
                let git = Git::new(root, self.env).with("GIT_OPTIONAL_LOCKS", "0");
                let lines = |args: &[&str], separator: char| -> BTreeSet<String> {
                    let out = git.run(args).unwrap_or_default();
                    let out = String::from_utf8_lossy(&out).into_owned();
                    let parts = out.split(separator).filter(|part| !part.is_empty());
                    parts.take(ENTRIES_MAX).map(str::to_owned).collect()
                };
                let branches = ["for-each-ref", "--format=%(refname:short)", "refs/heads"];
                let files = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
                Evidence {
                    path: root.display().to_string(),
                    branches: lines(&branches, '\n'),
                    files: lines(&files, '\0'),
                }
            }
        }
    }

    /// Where task lists are: the directory that was named, or Claude Code's own.
    pub fn tasks_root(&self) -> Option<PathBuf> {
        let config = variable(self.env, "CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let home = || Some(Path::new(variable(self.env, "HOME")?).join(".claude"));
        let usual = || Some(config.or_else(home)?.join("tasks"));
        self.tasks.map(Path::to_owned).or_else(usual)
    }

    /// Claude Code's task lists, or those that were named.
    pub fn task_lists(&self) -> Vec<PathBuf> {
        self.tasks_root().map_or_else(Vec::new, |root| lists_of(&root))
    }
}

/// The task list that a directory is, or those directly in it.
fn lists_of(root: &Path) -> Vec<PathBuf> {
    if is_task_list(root) {
        return vec![root.to_owned()];
    }
    let inner = names(root).into_iter().filter(|(_, is_dir)| *is_dir);
    inner.map(|(name, _)| root.join(name)).take(DIRS_MAX).collect()
}

/// A directory in which Claude Code keeps tasks: files with a number for a name, or what stays when
/// they are all gone. Other JSON may lie beside the lists.
pub fn is_task_list(dir: &Path) -> bool {
    let is_left = |name: &str| matches!(name, ".lock" | ".highwatermark");
    names(dir).iter().any(|(name, is_dir)| !is_dir && (is_task(name) || is_left(name)))
}

/// Some task is left in the list.
pub fn has_tasks(list: &Path) -> bool {
    names(list).iter().any(|(name, is_dir)| !is_dir && is_task(name))
}

fn is_task(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(|stem| stem.parse::<u64>().is_ok())
}

/// A directory of task lists, and no project.
pub fn is_tasks_root(dir: &Path) -> bool {
    let is_project = dir.join(".git").exists() || dir.join(".onward").is_dir();
    !is_project && !is_task_list(dir) && lists_of(dir).iter().any(|it| is_task_list(it))
}

/// Whether a glob names something inside of this directory.
fn leads_into(glob: &str, dir: &Path) -> bool {
    let mut parts = glob.split('/');
    let fits = |name: &std::ffi::OsStr| {
        parts.next().is_some_and(|part| part == "*" || name.to_str() == Some(part))
    };
    glob.contains("/*/") && dir.iter().all(fits) && parts.next().is_some()
}

/// How the project names a directory: relative below it, absolute outside.
fn named_by(project: &Project, dir: &Path) -> String {
    match dir.strip_prefix(project.root()) {
        Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
        Ok(rest) => rest.to_string_lossy().into_owned(),
        Err(_) => dir.to_string_lossy().into_owned(),
    }
}

/// Names in a directory, and whether each is one itself. What may not be read is empty.
fn names(dir: &Path) -> BTreeMap<String, bool> {
    names_where(dir, |_, _| true)
}

/// Those of them that are wanted.
fn names_where(dir: &Path, is_wanted: impl Fn(&str, bool) -> bool) -> BTreeMap<String, bool> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let name = name.to_str().filter(|name| is_wanted(name, is_dir))?;
        Some((name.to_owned(), is_dir))
    });
    named.collect()
}

/// Those in `marks`, and directories. A directory of many outputs has a few of them, or none: where
/// it is sure that no directory is in it, it is asked for the marks alone.
fn marks_and_dirs(dir: &Path, marks: &BTreeSet<&str>) -> BTreeMap<String, bool> {
    if !is_leaf(dir) {
        return names_where(dir, |name, is_dir| is_dir || marks.contains(name));
    }
    let is_there = |mark: &&&str| fs::symlink_metadata(dir.join(**mark)).is_ok();
    marks.iter().filter(is_there).map(|mark| ((*mark).to_owned(), false)).collect()
}

/// Whether it is sure that a directory holds no other one: each would be linked to it by its `..`,
/// on the file systems that are known to count these.
fn is_leaf(dir: &Path) -> bool {
    const EXT4: FsWord = 0xef53;
    const TMPFS: FsWord = 0x0102_1994;
    const XFS: FsWord = 0x5846_5342;
    let links = || fs::symlink_metadata(dir).is_ok_and(|it| it.is_dir() && it.nlink() == 2);
    let counts = |it: rustix::fs::StatFs| [EXT4, TMPFS, XFS].contains(&it.f_type);
    links() && rustix::fs::statfs(dir).is_ok_and(counts)
}

fn glimpses(dir: &Path, card: &Card) -> Result<BTreeMap<String, Glimpse>, Stop> {
    let mut marks = BTreeMap::new();
    for mark in card.marks {
        let mut found = Found::following();
        expand(dir, mark.glob, &mut found)?;
        for name in found.names {
            let path = dir.join(&name);
            let Ok(meta) = fs::metadata(&path) else { continue };
            // A mark that ends in a separator is a directory.
            if meta.is_dir() != name.ends_with('/') || !(meta.is_dir() || meta.is_file()) {
                continue;
            }
            let is_page = path.extension().is_some_and(|it| it == "md");
            let peeks = mark.peek && meta.is_file() && (is_page || meta.len() <= PEEK_BYTES_MAX);
            let bytes = peeks.then(|| open::head_of(&path, PEEK_BYTES_MAX).ok()).flatten();
            let modified = meta.modified().ok().map(file_time);
            marks.insert(name, Glimpse { modified, bytes });
        }
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_asked_for_its_marks_alone_has_the_same_ones() {
        let dir = tempfile::tempdir().unwrap();
        let marks: BTreeSet<&str> = ["conference.md", "state.json", "absent"].into();
        let listed = || names_where(dir.path(), |name, is_dir| is_dir || marks.contains(name));
        let (mark, link) = (dir.path().join("conference.md"), dir.path().join("state.json"));
        for at in 0..3 {
            fs::write(dir.path().join(format!("output-{at}")), "").unwrap();
            assert_eq!(marks_and_dirs(dir.path(), &marks), listed());
        }
        fs::write(mark, "").unwrap();
        std::os::unix::fs::symlink("nowhere", link).unwrap();
        assert_eq!(marks_and_dirs(dir.path(), &marks), listed());
        assert_eq!(listed().len(), 2);
        // With a directory inside it is listed: no mark alone would tell of that.
        fs::create_dir(dir.path().join("inner")).unwrap();
        assert!(!is_leaf(dir.path()));
        assert_eq!(marks_and_dirs(dir.path(), &marks), listed());
        assert_eq!(listed().get("inner"), Some(&true));
    }
}
