//! What other work did to the files of a story since the interruption.
//!
//! Invariant: a file counts only if it was written, or taken away, after the run's state was; what
//! was merely committed later is as the run left it.

use onward_core::{finding::Finding, time::Timestamp};

use super::{Code, check::Own, spec::TOGETHER_MS, story::Story, told::SdlcTold};
use crate::{Since, kit::path::shown};

/// So many are named.
const NAMED_MAX: usize = 3;

/// How a file was changed: by a commit, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Committed,
    /// No agent of the run edits files in this phase.
    Written,
    /// The run's own agent does, and may have done it.
    WrittenAtWork,
}

impl How {
    const ALL: [Self; 3] = [Self::Committed, Self::Written, Self::WrittenAtWork];

    const fn code(self) -> Own {
        match self {
            Self::Committed | Self::Written => Own::ExternalModification,
            Self::WrittenAtWork => Own::MaybeExternal,
        }
    }
}

/// Files that the story lists.
pub(super) fn files(
    told: &SdlcTold,
    story: &Story,
    since: Option<Timestamp>,
    all: &mut Vec<Finding>,
) {
    let Some(git) = told.files.git.as_ref().filter(|_| told.code != Code::Complete) else { return };
    let Some(since) = since else { return };
    let state = told.state_path.as_ref().and_then(|path| told.files.file(path)?.modified);
    let listed = story.files.iter().filter_map(|path| Some((path.as_str(), git.since.get(path)?)));
    let changed: Vec<(&str, &Since, How)> = listed
        .filter_map(|(path, it)| Some((path, it, how(told.code, it, since, state)?)))
        .collect();
    for how in How::ALL {
        let some: Vec<(&str, &Since)> =
            changed.iter().filter(|it| it.2 == how).map(|it| (it.0, it.1)).collect();
        all.extend(finding(story, how, &some));
    }
}

fn how(code: Code, it: &Since, since: Timestamp, state: Option<Timestamp>) -> Option<How> {
    let is_later = it.modified.is_none_or(|at| at > since.plus_ms(TOGETHER_MS));
    let is_copied = it
        .modified
        .zip(state)
        .is_some_and(|(one, other)| one.ms_since(other).max(other.ms_since(one)) < TOGETHER_MS);
    match () {
        () if !is_later => None,
        () if !it.commits.is_empty() => Some(How::Committed),
        () if !it.is_dirty || is_copied => None,
        () => Some(written(code)),
    }
}

/// What was written in a phase, by who works there.
const fn written(code: Code) -> How {
    match code {
        Code::Implement | Code::Fix | Code::Stories => How::WrittenAtWork,
        Code::Create
        | Code::Validate
        | Code::QaGate
        | Code::StoryCheckpoint
        | Code::Gather
        | Code::Assess
        | Code::Research
        | Code::Write
        | Code::Critique
        | Code::Review
        | Code::Escalate
        | Code::Gate
        | Code::Checkpoint
        | Code::FinalGate
        | Code::Complete => How::Written,
    }
}

fn finding(story: &Story, how: How, some: &[(&str, &Since)]) -> Option<Finding> {
    let (first, _) = some.first()?;
    let id = shown(&story.id);
    let names = named(some.iter().map(|it| it.0));
    let (are, s) = if some.len() == 1 { ("is", "s") } else { ("are", "") };
    let message = match how {
        How::Committed => {
            let mut commits: Vec<&str> = Vec::new();
            for commit in some.iter().flat_map(|it| &it.1.commits) {
                if !commits.contains(&commit.as_str()) {
                    commits.push(commit);
                }
            }
            let commits = named(commits.into_iter());
            format!("other work changed {names}, of story {id}, since the interruption: {commits}")
        }
        How::Written => format!(
            "{names}, of story {id}, {are} not committed and differ{s} since the interruption: \
             other work changed that"
        ),
        How::WrittenAtWork => format!(
            "{names}, of story {id}, {are} not committed and differ{s} since the state was last \
             written: by the interrupted agent, or by other work"
        ),
    };
    let finding = how.code().finding(message);
    let finding = match how {
        How::Committed | How::Written => {
            finding.with_hint("look at the change; what is done may not fit it any more")
        }
        How::WrittenAtWork => finding,
    };
    Some(if some.len() == 1 { finding.at_path(*first) } else { finding.at_path(&story.path) })
}

fn named<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = all.map(shown).collect();
    let more = all.len().saturating_sub(NAMED_MAX);
    let first = all.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}
