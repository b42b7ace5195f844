//! Where pipelines are, and whose they are.
//!
//! A list belongs to another project when something says so and nothing says that it is ours. It
//! is ours when a task has the project's slug, an absolute path below the project, or when the
//! branch of the `[PERMANENT]` task is a branch of the project, and none that many projects have.
//! It is another's when a task has another slug, whatever files it names: many projects have a
//! `src/main.rs`. Without a slug it is another's when a task names a file by an absolute path that
//! lies outside and is no temporary one; then ours when a file of some task is there, unless it is
//! delivered (a name alone does not say whose commit that is), and another's when completed tasks
//! name files and none is there. A list that says nothing either way is shown
//! everywhere, and gone on with only by a person's word: it may well be another project's. Where
//! none of its files would even have a directory, or its `[PERMANENT]` task cannot be read, the
//! person has to name it.

use super::{
    CARD,
    read::{List, Permanent, Task},
};
use crate::{
    kit::{path::literal, status::bare},
    seam::{Candidate, Listing, Project, Root, Site},
};

/// Open ones first, the newest first among them.
pub(super) fn sites(seen: &Listing) -> Vec<Site> {
    let lists = seen.candidates.iter().map(|it| (it, list(it)));
    let mut found: Vec<(&Candidate, List)> =
        lists.filter(|(_, list)| !list.permanents.is_empty()).collect();
    found.sort_by_key(|(it, list)| (list.permanents.last().map(Permanent::rank), it.dir.clone()));
    found.reverse();
    let others: Vec<Root> = found.iter().map(|(it, list)| other(it, list)).collect();
    let sites = found.iter().map(|(it, list)| {
        let mut site = site(it, list, &seen.project);
        site.roots.extend(others.iter().filter(|root| root.dir != it.dir).cloned());
        site
    });
    sites.collect()
}

pub(super) fn list(candidate: &Candidate) -> List {
    let marks = candidate.marks.iter();
    List::of(
        marks.map(|(path, it)| {
            (path.as_str(), it.bytes.as_deref().unwrap_or_default(), it.modified)
        }),
    )
}

fn site(candidate: &Candidate, list: &List, project: &Project) -> Site {
    let mut site = Site::at(&CARD, &candidate.dir);
    let files = list.tasks.iter().flat_map(|task| &task.files);
    let mut reads: Vec<String> = files.map(|path| literal(path)).collect();
    reads.sort_unstable();
    reads.dedup();
    site.roots.push(Root { dir: ".".to_owned(), reads });
    site.last_activity = candidate.last_activity();
    let permanent = list.permanents.last().map(|it| &it.task);
    site.commits = list.tasks.iter().chain(permanent).flat_map(|it| it.commits.clone()).collect();
    let owner = owner(list, project);
    (site.elsewhere, site.unsure) = (owner == Owner::Another, owner == Owner::Unknown);
    site.unplaced = site.unsure && !has_place(list, project);
    site
}

/// The `[PERMANENT]` task of another list, to be named.
fn other(candidate: &Candidate, list: &List) -> Root {
    let chosen = list.permanents.last();
    let reads = chosen.map(|it| literal(&format!("{}.json", it.task.id)));
    Root { dir: candidate.dir.clone(), reads: reads.into_iter().collect() }
}

/// Branches that say nothing about whose a list is.
const COMMON: [&str; 5] = ["main", "master", "develop", "dev", "trunk"];

/// Whose a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Ours,
    Another,
    Unknown,
}

fn owner(list: &List, project: &Project) -> Owner {
    let permanent = list.permanents.last();
    let tasks = || list.tasks.iter().chain(permanent.map(|it| &it.task));
    let is_here = |path: &str| project.files.contains(path);
    let slugs: Vec<bool> = tasks()
        .filter_map(|task| task.slug.as_deref())
        .map(|slug| is_slug(slug, project))
        .collect();
    let branch = permanent.and_then(|it| it.branch.as_deref());
    let has_branch =
        branch.is_some_and(|it| !COMMON.contains(&it) && project.branches.contains(it));
    let is_told = slugs.contains(&true)
        || has_branch
        || tasks().any(|task| names_ours(task, project))
        || project.path.is_empty();
    if is_told {
        return Owner::Ours;
    }
    let is_outside = |path: &String| path.starts_with('/') && !is_temporary(path);
    if slugs.contains(&false) || tasks().any(|task| task.refused.iter().any(is_outside)) {
        return Owner::Another;
    }
    if tasks().any(|task| task.files.iter().any(|it| is_here(it))) {
        let is_over = permanent.is_some_and(Permanent::is_delivered);
        return if is_over { Owner::Unknown } else { Owner::Ours };
    }
    let completed = || list.tasks.iter().filter(|task| task.is_completed());
    let is_gone = !project.files.is_empty() && completed().any(|task| !task.files.is_empty());
    // What would say whose it is can no longer be read: a person who knows names it.
    let is_unread = permanent.is_some_and(|it| it.task.broken.is_some());
    if is_gone || is_unread { Owner::Another } else { Owner::Unknown }
}

/// Agents of every project leave their notes there.
fn is_temporary(path: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/"].iter().any(|it| path.starts_with(it))
}

/// Some file that the tasks name could lie in the project: its directory is there. Where they name
/// none, or the project has none, nothing speaks against it.
fn has_place(list: &List, project: &Project) -> bool {
    let mut named = list.tasks.iter().flat_map(|task| &task.files).peekable();
    let is_dir = |dir: &str| {
        let begin = format!("{dir}/");
        project.files.iter().any(|path| path.starts_with(&begin))
    };
    named.peek().is_none()
        || project.files.is_empty()
        || named.any(|path| path.split_once('/').is_none_or(|(dir, _)| is_dir(dir)))
}

/// By an absolute path below the project.
fn names_ours(task: &Task, project: &Project) -> bool {
    let below = |path: &String| {
        let rest = path.strip_prefix(project.path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    !project.path.is_empty() && task.refused.iter().any(below)
}

/// The directory's name, or its whole path with everything but letters and digits left out.
fn is_slug(slug: &str, project: &Project) -> bool {
    let name = project.path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("");
    let slug = bare(slug);
    project.path.is_empty() || slug == bare(name) || slug == bare(&project.path)
}
