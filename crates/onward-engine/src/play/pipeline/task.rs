//! One task: begun, its work brought from its worktree into the project, completed.
//!
//! Invariant: a file of the project that is neither as the worktree found it nor as the worktree
//! left it is another person's or program's work, and nothing is written over it.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path},
};

use onward_dialects::rules::pipeline::{self as rules, Begun, Settled};
use serde_json::{Value, json};

use super::{CallError, Order, list::List};
use crate::world::{
    git::START,
    real::disk::{make_parents, replace_durably},
};

/// The task is in progress; one that is completed already is left alone.
pub(super) fn begin(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let begun = rules::begin(&list.read()?, &order.id, &order.attempt.run);
    let Some(Begun { done, turn, changes }) = begun else {
        return Err(CallError::new(format!("there is no task {}", order.id))
            .hint("it was deleted: `onward plan` says what is left"));
    };
    list.write(&changes)?;
    Ok(json!({ "done": done, "turn": turn, "tree": rules::tree(&order.id, turn) }))
}

/// The task is completed, and its work is in the project.
pub(super) fn settle(order: &Order) -> Result<Value, CallError> {
    let list = List::take(order)?;
    let mut files = BTreeSet::new();
    if list.project.join(&order.page).is_file() {
        files.insert(order.page.clone());
    }
    if !order.branch.is_empty() {
        files.extend(bring(&list, &order.branch)?);
    }
    let pipeline = list.read()?;
    let named = rules::files_of(&pipeline, &order.id);
    let is_work = !order.branch.is_empty() && !order.kept;
    let is_bare = is_work && files.is_disjoint(&named);
    let absent = named.iter().find(|it| list.project.join(it).symlink_metadata().is_err());
    if let Some(absent) = absent.filter(|_| is_bare) {
        return Err(unwritten(&list, order, absent)?);
    }
    let held = list.held(named.into_iter().chain(files.iter().cloned()));
    let turn = order.turn.max(1);
    let how = match (order.kept, is_work, files.is_empty()) {
        (true, ..) => Settled::Kept,
        (false, true, true) => Settled::Unchanged { turn },
        (false, true, false) => Settled::Brought { turn },
        (false, false, _) => Settled::Proved,
    };
    list.write(&rules::settle(&pipeline, &order.id, &held, how))?;
    Ok(json!({ "files": files }))
}

/// The agent said that it was done and wrote none of the task's files: the task failed, which the
/// list is told, so that it is done again.
fn unwritten(list: &List, order: &Order, absent: &str) -> Result<CallError, CallError> {
    let id = &order.id;
    let message = format!(
        "task {id} is not done: its agent wrote none of its files, and {absent} is not there"
    );
    list.write(&rules::fail(&list.read()?, id, &format!("{absent} was not written")))?;
    Ok(CallError::new(message).hint("`onward resume` does it again"))
}

/// One path that the branch changed: its object before and after; `None` = it is not there.
struct Changed {
    path: String,
    base: Option<String>,
    left: Option<(String, String)>,
}

/// Copies what a branch has changed into the project. All of it is looked at before anything is
/// written. Gives the paths.
fn bring(list: &List, branch: &str) -> Result<Vec<String>, CallError> {
    let Some((base, head)) = ends(list, branch)? else { return Ok(Vec::new()) };
    let changed = changed(list, &base, &head)?;
    let mut contested = Vec::new();
    let mut todo = Vec::new();
    for it in &changed {
        let now = object_now(list, &it.path)?;
        let left = it.left.as_ref().map(|(_, id)| id.clone());
        if now == left {
            continue;
        }
        if now == it.base { todo.push(it) } else { contested.push(it.path.as_str()) }
    }
    if !contested.is_empty() {
        let paths = contested.join(", ");
        let message = format!("changed in the project while the task was done: {paths}");
        return Err(CallError::new(message).hint(format!(
            "the task's version is on the branch {branch}: settle it there or here"
        )));
    }
    for it in todo {
        let path = list.project.join(&it.path);
        make_parents(&path)?;
        is_below(&list.project, &path)?;
        match &it.left {
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => other.map_err(CallError::io("remove", &path))?,
            },
            Some((mode, id)) => {
                let bytes = list.git.run(&["cat-file", "blob", id])?;
                replace_durably(&path, &bytes)?;
                let is_executable = mode == "100755";
                let bits = if is_executable { 0o755 } else { 0o644 };
                let set = fs::set_permissions(&path, fs::Permissions::from_mode(bits));
                set.map_err(CallError::io("write", &path))?;
            }
        }
    }
    Ok(changed.into_iter().map(|it| it.path).collect())
}

/// Where the worktree began, and where its branch is; `None` when nothing was committed there.
fn ends(list: &List, branch: &str) -> Result<Option<(String, String)>, CallError> {
    let name = format!("refs/heads/{branch}");
    let there = list.git.ask(&["rev-parse", "--verify", "--quiet", &name], &[])?;
    if there.code != Some(0) {
        return Ok(None);
    }
    let head = String::from_utf8_lossy(&there.out).trim().to_owned();
    let since = ["log", "--first-parent", "--format=%H %s", &head, "--not", "HEAD"];
    let out = list.git.run(&since)?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let Some((first, subject)) = text.lines().last().and_then(|line| line.split_once(' ')) else {
        return Ok(None);
    };
    let base = if subject.contains(START) { first.to_owned() } else { format!("{first}^") };
    Ok(Some((base, head)))
}

fn changed(list: &List, base: &str, head: &str) -> Result<Vec<Changed>, CallError> {
    let args = ["diff-tree", "-r", "-z", "--no-renames", "--full-index", base, head];
    let out = list.git.run(&args)?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let mut parts = text.split('\0').filter(|part| !part.is_empty());
    let mut all = Vec::new();
    while let (Some(meta), Some(path)) = (parts.next(), parts.next()) {
        // `:100644 100644 OLD NEW M`
        let words: Vec<&str> = meta.trim_start_matches(':').split(' ').collect();
        let [_, mode, old, new, _] = words.as_slice() else { continue };
        let object = |id: &str| (!id.bytes().all(|it| it == b'0')).then(|| id.to_owned());
        if !is_plain(path) || !matches!(*mode, "100644" | "100755" | "000000") {
            let message =
                format!("{path} is not a plain file, and is not brought into the project");
            return Err(CallError::new(message).hint("bring it over by hand, then `onward resume`"));
        }
        let left = object(new).map(|id| ((*mode).to_owned(), id));
        all.push(Changed { path: path.to_owned(), base: object(old), left });
    }
    Ok(all)
}

/// Below the project, and not of git or onward itself.
fn is_plain(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let is_own = path.starts_with(".git/") || path.starts_with(".onward/");
    !is_own && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// No link on the way leads out of the project.
fn is_below(project: &Path, path: &Path) -> Result<(), CallError> {
    let real = |path: &Path| fs::canonicalize(path).map_err(CallError::io("find", path));
    if real(path.parent().unwrap_or(path))?.starts_with(real(project)?) {
        return Ok(());
    }
    Err(CallError::new(format!("`{}` leads out of the project", path.display())))
}

/// The object that a file of the project would be.
fn object_now(list: &List, path: &str) -> Result<Option<String>, CallError> {
    let full = list.project.join(path);
    if full.symlink_metadata().is_err() {
        return Ok(None);
    }
    Ok(Some(list.git.line(&["hash-object", "--", path])?))
}
