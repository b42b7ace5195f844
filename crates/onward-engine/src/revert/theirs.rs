//! Files of another system that no attempt of ours left.
//!
//! Invariant: what a step declares is its own all the same. Of every other file here the system's
//! own programs are the writers: it is neither undone with an attempt nor a reason to ask.

use globset::{Glob, GlobSet};

use super::Footprint;

/// None without another system.
#[derive(Clone, Debug, Default)]
pub struct Theirs {
    /// From the project; `.` is the project itself.
    dir: String,
    globs: GlobSet,
}

impl Theirs {
    /// The files below a directory that one of these globs names.
    pub fn below(dir: &str, globs: &[String]) -> Self {
        let globs = globs.iter().filter_map(|it| Glob::new(it).ok());
        let globs = GlobSet::new(globs).unwrap_or_default();
        Self { dir: dir.to_owned(), globs }
    }

    pub fn has(&self, path: &str) -> bool {
        let name = match self.dir.as_str() {
            "." => Some(path),
            dir => path.strip_prefix(dir).and_then(|it| it.strip_prefix('/')),
        };
        name.is_some_and(|it| self.globs.is_match(it))
    }
}

impl Footprint {
    pub(crate) fn leave_to(&mut self, theirs: &Theirs) {
        let Self { changes, declared, .. } = self;
        changes.retain(|it| declared.contains(&it.path) || !theirs.has(&it.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_theirs_by_its_directory_and_name() {
        let theirs = Theirs::below(".memory/run", &["events/**/*.jsonl".into(), "plan.md".into()]);
        for (path, is_theirs) in [
            (".memory/run/events/verifier/1.jsonl", true),
            (".memory/run/plan.md", true),
            (".memory/run/notes.md", false),
            (".memory/run2/plan.md", false),
            ("plan.md", false),
        ] {
            assert_eq!(theirs.has(path), is_theirs, "{path}");
        }
        assert!(Theirs::below(".", &["memory/*.json".into()]).has("memory/a.json"));
        assert!(!Theirs::default().has(""));
    }
}
