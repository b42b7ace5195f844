//! Which keys a step of which kind can have.

/// The keys that decide what a step is; a step has exactly one of them.
pub(super) const KINDS: [&str; 6] = ["run", "agent", "gate", "call", "steps", "workflow"];

/// Keys of every step.
pub(super) const COMMON: [&str; 9] =
    ["id", "description", "needs", "when", "each", "as", "key", "after", "repeat"];

/// What only steps of some kinds can have, and which.
pub(super) const SPECIAL: [(&str, &[&str]); 23] = [
    ("prompt", &["agent"]),
    ("shows", &["gate"]),
    ("options", &["gate"]),
    ("stop", &["gate"]),
    ("with", &["call", "workflow"]),
    ("reads", &["run", "agent", "call"]),
    ("writes", &["run", "agent", "call"]),
    ("check", &["run", "agent", "call"]),
    ("result", &["run", "agent", "call"]),
    ("worktree", &["run", "agent", "steps", "workflow"]),
    ("dir", &["run", "agent"]),
    ("effect", &["run", "agent", "call"]),
    ("probe", &["run", "agent", "call"]),
    ("retry", &["run", "agent", "call"]),
    ("on_failure", &["run", "agent", "call"]),
    ("timeout", &["run", "agent", "call"]),
    ("idle", &["run", "agent"]),
    ("durability", &["run", "agent", "call"]),
    ("edits", &["run", "agent", "call"]),
    ("keep", &["run", "agent", "call"]),
    ("env", &["run", "agent"]),
    ("permissions", &["agent"]),
    ("allow", &["agent"]),
];

/// Every key some step can have.
pub(super) fn all() -> Vec<&'static str> {
    let special = SPECIAL.iter().map(|(key, _)| *key);
    KINDS.into_iter().chain(COMMON).chain(special).collect()
}

/// The kinds that can have `key`; all of them for a common one, none for an unknown one.
pub(super) fn kinds_with(key: &str) -> &'static [&'static str] {
    if COMMON.contains(&key) {
        return &KINDS;
    }
    if let Some(index) = KINDS.iter().position(|kind| *kind == key) {
        return &KINDS[index..=index];
    }
    SPECIAL.iter().find(|(special, _)| *special == key).map_or(&[], |(_, kinds)| kinds)
}
