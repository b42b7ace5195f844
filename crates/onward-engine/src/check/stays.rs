//! What an attempt did, or may have done, that no undo takes back.

use onward_core::survey::CommitSeen;

/// More are counted.
const NAMED_MAX: usize = 3;

/// A line for each kind.
pub(super) fn told(commits: &[CommitSeen], unseen: &[String]) -> Vec<String> {
    let commit = |it: &CommitSeen| {
        let id: String = it.id.chars().take(9).collect();
        format!("{id} {}", it.subject)
    };
    let mut all = Vec::new();
    if !commits.is_empty() {
        let commits: Vec<String> = commits.iter().map(commit).collect();
        all.push(format!("it committed, and that stays: {}", some_of(&commits)));
    }
    if !unseen.is_empty() {
        let paths = some_of(unseen);
        all.push(format!("what it did in {paths} is not known, and stays: no snapshot covers it"));
    }
    all
}

fn some_of(all: &[String]) -> String {
    let named = all.iter().take(NAMED_MAX).cloned();
    let more = all.len().checked_sub(NAMED_MAX).filter(|it| *it > 0);
    let more = more.map(|more| format!("and {more} more"));
    named.chain(more).collect::<Vec<String>>().join(", ")
}
