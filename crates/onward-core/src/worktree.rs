//! Where a step with a worktree of its own works: a directory, and a branch of the same name.
//!
//! Invariant: the name can be one component of a path and of a branch, and different instances have
//! different names, whatever their keys are.

use crate::{
    address::Address,
    digest::Digest,
    facts::StepFacts,
    graph::{NodeId, Role},
    run::Run,
    scope::Scope,
    workflow::{
        model::Worktree,
        template::{Quoting, RenderError},
    },
};

/// The first line of the commit that ends an attempt which was judged to be done.
pub fn subject(step: &Address, attempt: u32) -> String {
    format!("{step}, attempt {attempt}")
}

/// One worktree of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorktreePlace {
    /// Relative to the project: `.onward/worktrees/<run>/<name>`.
    pub path: String,
    /// `onward/<run>/<name>`.
    pub branch: String,
}

/// Below the project.
pub const WORKTREES: &str = ".onward/worktrees";

impl WorktreePlace {
    pub fn new(run: &str, name: &str) -> Self {
        let path = format!("{WORKTREES}/{run}/{name}");
        Self { path, branch: format!("onward/{run}/{name}") }
    }

    /// The worktree that an attempt's directory is; `None` for the project itself.
    pub fn at(cwd: &str) -> Option<Self> {
        let rest = cwd.strip_prefix(WORKTREES)?.strip_prefix('/')?;
        let (run, name) = rest.split_once('/')?;
        Some(Self::new(run, name))
    }

    /// The worktree that a path or pattern lies in, and what it is there.
    pub fn split(path: &str) -> Option<(Self, &str)> {
        let rest = path.strip_prefix(WORKTREES)?.strip_prefix('/')?;
        let (run, rest) = rest.split_once('/')?;
        let (name, rest) = rest.split_once('/')?;
        Some((Self::new(run, name), rest))
    }

    /// The last component.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The worktree that a step instance works in: its own, or the one of the nearest group around it
/// that has one. All turns of a loop share theirs.
pub fn worktree_of(run: &Run, id: NodeId) -> Result<Option<WorktreePlace>, RenderError> {
    let mut next = Some(id);
    while let Some(id) = next {
        let node = run.graph.node(id);
        next = node.parent;
        // The root has no step, and an `each` stands for its items, which were asked before.
        let declared = match node.role {
            Role::Root | Role::Each => None,
            Role::Leaf | Role::Group | Role::Loop | Role::Item | Role::Turn => {
                let has = run.defs.brief(node.def).has_worktree();
                has.then(|| run.defs.step(node.def).worktree.as_ref()).flatten()
            }
        };
        let Some(declared) = declared else { continue };
        if node.role == Role::Turn || is_turn(run, id) {
            continue;
        }
        let name = match declared {
            Worktree::Own => component(node.address.as_str()),
            Worktree::Named(template) => {
                let facts = StepFacts::default();
                let scope = Scope { run, node: id, facts: &facts };
                component(&scope.text(template, Quoting::Plain)?)
            }
        };
        let of = run.state.opened.as_ref().map_or("", |opened| opened.run.as_str());
        return Ok(Some(WorktreePlace::new(of, &name)));
    }
    Ok(None)
}

/// The directory that a step works in, as the project names it; empty = the project's own.
pub fn worktree_path(run: &Run, id: NodeId) -> String {
    worktree_of(run, id).ok().flatten().map(|place| place.path).unwrap_or_default()
}

/// A path, or a pattern, of a tree, as the project names it.
pub fn below(tree: &str, path: String) -> String {
    if tree.is_empty() { path } else { format!("{tree}/{path}") }
}

/// A leaf that is itself one turn of a loop.
fn is_turn(run: &Run, id: NodeId) -> bool {
    let parent = run.graph.node(id).parent.map(|parent| run.graph.node(parent));
    parent.is_some_and(|parent| parent.role == Role::Loop)
}

/// Letters, digits, `-` and `_` stand for themselves; what else there is in an address is a dot.
/// Where more than that had to be replaced, a digest tells the names apart.
pub fn component(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if plain(c) => name.push(c),
            ']' => {}
            _ if name.ends_with('.') => {}
            _ => name.push('.'),
        }
    }
    let is_exact = text.chars().all(|c| plain(c) || "/[]".contains(c));
    let begins_well = !name.starts_with(['.', '-']) && !name.is_empty();
    let ends_well = name.len() <= NAME_BYTES_MAX && !name.ends_with('.') && !name.ends_with(LOCK);
    if is_exact && begins_well && ends_well {
        return name;
    }
    name.truncate(NAME_BYTES_MAX);
    let digest = Digest::of(text.as_bytes()).to_string();
    format!("{}-{}", name.trim_matches(['.', '-']), &digest[..8]).trim_matches('-').to_owned()
}

/// Git keeps names that end so to itself.
const LOCK: &str = ".lock";
/// Longer names are cut.
const NAME_BYTES_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{address::Address, testing::Bench};

    #[test]
    fn names_are_fit_for_paths_and_branches_and_tell_instances_apart() {
        assert_eq!(component("draft"), "draft");
        assert_eq!(component("draft[ann]"), "draft.ann");
        assert_eq!(component("round[2]/research[A]"), "round.2.research.A");
        let odd = [
            "a[x.y]",
            "a[x%20y]",
            "a[..]",
            "",
            "-a",
            "a b",
            "a..b",
            "a/lock",
            "x".repeat(200).as_str(),
        ]
        .map(component);
        for (at, name) in odd.iter().enumerate() {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            assert!(name.chars().all(fits) && !name.contains(".."), "{name}");
            assert!(!name.ends_with(LOCK) && !name.ends_with('.'), "{name}");
            assert!(
                !name.starts_with(['.', '-']) && !name.is_empty() && name.len() < 100,
                "{name}"
            );
            assert!(!odd[at + 1..].contains(name), "{name} is there twice");
        }
        let place = WorktreePlace::new("r-1", "draft.ann");
        assert_eq!(place.path, ".onward/worktrees/r-1/draft.ann");
        assert_eq!(place.branch, "onward/r-1/draft.ann");
        assert_eq!(place.name(), "draft.ann");
        assert_eq!(WorktreePlace::at(&place.path), Some(place));
        let inside = ".onward/worktrees/r-1/draft.ann/docs/*.md";
        let expected = (WorktreePlace::new("r-1", "draft.ann"), "docs/*.md");
        assert_eq!(WorktreePlace::split(inside), Some(expected));
        assert_eq!(WorktreePlace::split("docs/*.md"), None);
        assert_eq!(WorktreePlace::at(""), None);
        assert_eq!(WorktreePlace::at("dir"), None);
    }

    const STEPS: &str = "\
limits: { parallel: 20 }
steps:
  - { id: plain, needs: [], run: x }
  - { id: own, needs: [], run: x, worktree: true }
  - { id: named, needs: [], run: x, worktree: 'tree-{{ run.id }}' }
  - { id: many, needs: [], each: [a, b], run: x, worktree: true }
  - id: group
    needs: []
    worktree: true
    steps: [{ id: one, run: x }, { id: two, run: x, worktree: inner }]
  - { id: round, needs: [], worktree: true, repeat: { max: 2 }, steps: [{ id: turn, run: x }] }
  - { id: again, needs: [], worktree: true, repeat: { max: 2 }, run: x }
";

    #[test]
    fn steps_of_a_group_and_turns_of_a_loop_share_their_worktree_and_items_do_not() {
        let mut bench = Bench::new(STEPS);
        bench.settle();
        let run = &bench.run;
        let name = |step: &str| {
            let id = run.graph.find(&Address::from_text(step)).unwrap();
            let place = worktree_of(run, id).unwrap();
            place.map(|place| place.name().to_owned())
        };
        assert_eq!(name("plain"), None);
        assert_eq!(name("own").as_deref(), Some("own"));
        let of = &run.state.opened.as_ref().unwrap().run;
        assert_eq!(name("named"), Some(format!("tree-{of}")));
        assert_eq!(name("many[a]").as_deref(), Some("many.a"));
        assert_eq!(name("many[b]").as_deref(), Some("many.b"));
        assert_eq!(name("group/one").as_deref(), Some("group"));
        assert_eq!(name("group/two").as_deref(), Some("inner"), "the nearest counts");
        assert_eq!(name("round[1]/turn").as_deref(), Some("round"));
        assert_eq!(name("again[1]").as_deref(), Some("again"));
        let own = &bench.starts["own"];
        assert_eq!(own.launch.cwd, WorktreePlace::new(of.as_str(), "own").path);
        assert_eq!(own.key.definition["worktree"].as_str(), "own");
        assert_eq!(bench.starts["plain"].launch.cwd, "");
    }
}
