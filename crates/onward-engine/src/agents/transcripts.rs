//! Whether an agent's own session can be continued.
//!
//! Invariant: doubt counts as no. Only an agent whose configuration says how to continue a session,
//! and where its transcript lies, is ever asked to.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
    time::{Duration, SystemTime},
};

use onward_core::time::Timestamp;

/// How an agent continues a session, by the agent's name.
pub type Continuations = BTreeMap<String, Continuation>;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuation {
    /// The command line, with the same placeholders as the one that begins a session.
    pub command: Vec<String>,
    /// Where the transcript lies: `{session}`, `{session8}` for its beginning, a leading `~/`, `*`
    /// for any one name, and `{dir}` for the directory the agent worked in, with `-` for all but
    /// letters and digits.
    pub transcript: String,
}

/// In an older session, the files that it knows have changed too much.
const YOUNG: Duration = Duration::from_hours(24);

/// A session, and all that decides whether it can be continued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) session: &'a str,
    pub(crate) run: &'a str,
    /// Where the run's directory lies: a copy of the run has the same name. Empty = not known.
    pub(crate) spot: &'a str,
    /// The directory that the agent worked in.
    pub(crate) dir: &'a Path,
    /// The user's home directory.
    pub(crate) home: Option<&'a Path>,
    pub(crate) now: Timestamp,
}

/// What keeps the session from being continued; `None` = nothing. `how` says where its transcript
/// lies.
pub(crate) fn lacks(how: &str, asked: &Asked<'_>) -> Option<String> {
    if !asked.dir.is_dir() {
        return Some(format!("{} is gone", asked.dir.display()));
    }
    let Some(path) = transcript(how, asked) else {
        return Some("its transcript is not there".to_owned());
    };
    let changed = fs::metadata(&path).and_then(|it| it.modified());
    let young = changed.is_ok_and(|changed| is_young(changed, asked.now));
    (!young).then(|| "its transcript is more than a day old".to_owned())
}

fn is_young(changed: SystemTime, now: Timestamp) -> bool {
    let since = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_micros(u64::try_from(now.as_micros()).unwrap_or(0));
    now.saturating_sub(since) <= YOUNG
}

/// The first file that fits the pattern and is not empty.
fn transcript(how: &str, asked: &Asked<'_>) -> Option<PathBuf> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    // The project's root comes joined with an empty path: its last `/` is no part of its name.
    let dir = asked.dir.to_string_lossy();
    let dir: String = dir.trim_end_matches('/').chars().map(plain).collect();
    let short = asked.session.get(..8).unwrap_or(asked.session);
    let pattern = how.replace("{session8}", short).replace("{session}", asked.session);
    let pattern = pattern.replace("{dir}", &dir);
    let root = match pattern.strip_prefix("~/") {
        Some(rest) => asked.home?.join(rest),
        None => asked.dir.join(pattern),
    };
    let mut found = vec![PathBuf::new()];
    for component in root.components() {
        found = match component {
            Component::Normal(name) if name.as_bytes().contains(&b'*') => {
                found.iter().flat_map(|dir| matching(dir, name)).collect()
            }
            Component::Normal(_)
            | Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => found.iter().map(|dir| dir.join(component)).collect(),
        };
    }
    let has_words =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() > 0);
    found.into_iter().find(has_words)
}

/// The entries of `dir` whose names fit a pattern with one `*` or more.
fn matching(dir: &Path, pattern: &OsStr) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let fitting = entries.filter(|it| fits(it.file_name().as_bytes(), pattern.as_bytes()));
    let mut all: Vec<PathBuf> = fitting.map(|it| it.path()).collect();
    all.sort_unstable();
    all
}

fn fits(name: &[u8], pattern: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skipped| fits(&name[skipped..], rest)),
        Some((byte, rest)) => name.first() == Some(byte) && fits(&name[1..], rest),
    }
}

/// Whether a process belongs to the run. The engine ends or waits for what lives of the run itself.
pub(crate) fn is_ours(pid: u32, asked: &Asked<'_>) -> bool {
    if asked.spot.is_empty() {
        return false;
    }
    let tags = [format!("ONWARD_RUN={}", asked.run), format!("ONWARD_SPOT={}", asked.spot)];
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has = |tag: &String| environ.split(|byte| *byte == 0).any(|it| it == tag.as_bytes());
    tags.iter().all(has)
}

/// Whether an argument is a session's id, or has it in it; a short one stands in many words.
fn names(word: &[u8], session: &str) -> bool {
    const TELLING_BYTES: usize = 8;
    let session = session.as_bytes();
    let is_telling = session.len() >= TELLING_BYTES;
    word == session || is_telling && word.windows(session.len()).any(|part| part == session)
}

/// A process outside the run whose command line names the session.
pub(crate) fn writer(asked: &Asked<'_>) -> Option<u32> {
    let mut processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.path()))
    });
    processes.find_map(|(pid, dir)| {
        let words = fs::read(dir.join("cmdline")).unwrap_or_default();
        let names_it = words.split(|byte| *byte == 0).any(|word| names(word, asked.session));
        let is_other = pid != std::process::id() && !is_ours(pid, asked);
        (names_it && is_other).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const SESSION: &str = "0f3c1d2e-session-of-a-test";

    struct Home(tempfile::TempDir);

    impl Home {
        fn with(path: &str, text: &str) -> Self {
            let home = Self(tempfile::tempdir().unwrap());
            let path = home.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            home
        }

        fn asks<T>(&self, session: &str, days_later: u64, of: impl FnOnce(&Asked<'_>) -> T) -> T {
            let made = fs::metadata(self.0.path()).and_then(|it| it.modified()).unwrap();
            let since = made.duration_since(SystemTime::UNIX_EPOCH).unwrap();
            let now = Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap());
            let now = now.plus_ms(days_later * 86_400_000);
            // As the world gives it for a step in the project's root.
            let dir = &self.0.path().join("");
            let home = Some(self.0.path());
            of(&Asked { session, run: "r-1", spot: "", dir, home, now })
        }

        fn lacks(&self, transcript: &str, session: &str, days_later: u64) -> Option<String> {
            self.asks(session, days_later, |asked| lacks(transcript, asked))
        }
    }

    #[test]
    fn a_transcript_is_found_below_the_home_directory_and_below_the_tree() {
        let home = Home::with("agent/some-project/8c41-one.jsonl", "{}\n");
        for pattern in ["~/agent/*/{session}.jsonl", "~/ag*t/some-*/*-one.jsonl", "agent/*/8c*"] {
            assert_eq!(home.lacks(pattern, "8c41-one", 0), None, "{pattern}");
        }
    }

    #[test]
    fn the_slug_of_the_project_root_has_no_separator_at_its_end() {
        let root = tempfile::tempdir().unwrap();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let slug: String = root.path().to_str().unwrap().chars().map(plain).collect();
        let home = Home(root);
        let dir = home.0.path().join(".claude/projects").join(slug);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("8c41-one.jsonl"), "{}\n").unwrap();
        assert_eq!(home.lacks("~/.claude/projects/{dir}/{session}.jsonl", "8c41-one", 0), None);
    }

    #[test]
    fn a_short_id_is_named_by_a_whole_argument_alone() {
        let long = "0f3c1d2e-1";
        for (word, session, named) in [
            ("/sbin/init", "s", false),
            ("s", "s", true),
            ("--resume=0f3c1d2e-1", long, true),
            ("0f3c1d2e-1", long, true),
            ("0f3c1d2e", long, false),
            ("", "", true),
        ] {
            assert_eq!(names(word.as_bytes(), session), named, "{word} {session}");
        }
    }

    #[test]
    fn an_empty_session_or_an_old_one_is_not_continued() {
        let gone = Some("its transcript is not there".to_owned());
        let home = Home::with("8c41-one.jsonl", "{}\n");
        assert_eq!(home.lacks("{session}.jsonl", "8c41-two", 0), gone);
        assert_eq!(home.lacks("~/*/{session}.jsonl", "8c41-one", 0), gone);
        assert_eq!(Home::with("8c41-one.jsonl", "").lacks("{session}.jsonl", "8c41-one", 0), gone);
        let old = Some("its transcript is more than a day old".to_owned());
        assert_eq!(home.lacks("{session}.jsonl", "8c41-one", 2), old);
    }

    #[test]
    fn a_process_that_names_a_session_has_it_open() {
        let home = Home::with("t", "{}\n");
        let command = "read line";
        let mut other = Command::new("sh")
            .args(["-c", command, SESSION])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let id = other.id();
        // Between fork and exec its command line is still ours.
        let mut seen = None;
        while seen.is_none() {
            seen = home.asks(SESSION, 0, writer);
            std::thread::yield_now();
        }
        drop(other.stdin.take());
        other.wait().unwrap();
        assert_eq!(seen, Some(id));
        assert_eq!(home.asks(SESSION, 0, writer), None);
    }
}
