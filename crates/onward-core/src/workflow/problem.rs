//! What is wrong with a workflow file, and where.
//!
//! Invariant: a problem names its file and place and can be shown without reading anything again.

use super::model::Place;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The workflow cannot be used.
    Error,
    /// It can, but probably does not do what its author meant.
    Warning,
}

impl Severity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The message is a lower-case fragment; the hint, where there is one, says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    pub message: String,
    pub hint: Option<String>,
    /// As a person would name it: the path given to `load`, or one below its directory.
    pub file: String,
    pub at: Place,
    /// The line itself; none when it is too long to be shown.
    pub source_line: Option<String>,
    /// The agent that only a configuration can know.
    pub agent: Option<String>,
}

impl Problem {
    pub(super) fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(hint.into());
    }

    /// For callers that find something wrong before there is a tree, such as a file too large.
    pub fn at_start(file: &str, message: String, hint: &str) -> Self {
        Self {
            severity: Severity::Error,
            message,
            hint: Some(hint.to_owned()),
            file: file.to_owned(),
            at: Place { file: 0, line: 1, column: 1 },
            source_line: None,
            agent: None,
        }
    }
}

/// More than anybody reads; a file of a million typos must not become a million strings.
const PROBLEMS_MAX: usize = 1000;
/// For an error that speaks for itself: where to read on.
pub(super) const READ_ON: &str =
    "`onward schema workflow` has all that can stand here; `onward init` writes an example";
/// Longer lines are not shown.
const LINE_CHARS_MAX: usize = 400;

/// Collects problems while a file is read; file names and lines are added at the end.
#[derive(Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
    /// Takes what comes after [`PROBLEMS_MAX`].
    overflow: Option<Problem>,
}

impl Problems {
    pub(super) fn error(&mut self, at: Place, message: impl Into<String>) -> &mut Problem {
        self.add(Severity::Error, at, message.into())
    }

    pub(super) fn warn(&mut self, at: Place, message: impl Into<String>) -> &mut Problem {
        self.add(Severity::Warning, at, message.into())
    }

    /// An error with a suggestion when one of `known` is close to `given`.
    pub(super) fn unknown<'k>(
        &mut self,
        at: Place,
        message: impl Into<String>,
        given: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> &mut Problem {
        let near = crate::nearest::nearest(given, known);
        let problem = self.error(at, message);
        if let Some(near) = near {
            problem.hint(format!("did you mean `{near}`?"));
        }
        problem
    }

    fn add(&mut self, severity: Severity, at: Place, message: String) -> &mut Problem {
        let (hint, file, source_line, agent) = (None, String::new(), None, None);
        let problem = Problem { severity, message, hint, file, at, source_line, agent };
        if self.found.len() >= PROBLEMS_MAX {
            return self.overflow.insert(problem);
        }
        self.found.push(problem);
        self.found.last_mut().expect("one was just pushed")
    }

    pub(super) fn has_errors(&self) -> bool {
        self.found.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// In the order of the files; `sources` are their shown names and texts.
    pub(super) fn finish(self, sources: &[(&str, &str)]) -> Vec<Problem> {
        let mut found = self.found;
        found.sort_by_key(|problem| problem.at);
        // A file that is included twice has each of its problems once.
        found.dedup();
        let mut file = None;
        let mut lines = Vec::new();
        for problem in &mut found {
            if problem.severity == Severity::Error {
                problem.hint.get_or_insert_with(|| READ_ON.to_owned());
            }
            let Some((shown, text)) = sources.get(problem.at.file as usize) else { continue };
            if file != Some(problem.at.file) {
                file = Some(problem.at.file);
                lines = text.lines().collect();
            }
            (*shown).clone_into(&mut problem.file);
            let index = (problem.at.line as usize).saturating_sub(1);
            let line = lines.get(index).filter(|line| line.chars().count() <= LINE_CHARS_MAX);
            problem.source_line = line.map(|line| (*line).to_owned());
        }
        found
    }
}
