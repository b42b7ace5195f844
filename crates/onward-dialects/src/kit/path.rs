//! Names and paths that foreign files give, made safe.
//!
//! Invariant: [`component`] is the only way from a foreign name to a part of a path, and
//! [`inside`] the only way from a foreign path to one that is opened.

use std::fmt::Write as _;

use onward_core::{address::encode_key, digest::Digest, finding::Finding};

/// Longer names are cut and told apart by a digest.
const COMPONENT_BYTES_MAX: usize = 100;

/// One component of a path: never empty, never hidden, never `..`, free of separators, spaces and
/// control characters. A plain name stays what it is, and different names stay different.
pub fn component(name: &str) -> String {
    let mut safe = encode_key(name);
    if let Some(first @ (b'.' | b'-')) = safe.bytes().next() {
        safe = format!("%{first:02X}{}", &safe[1..]);
    }
    if safe.len() > COMPONENT_BYTES_MAX {
        safe.truncate(COMPONENT_BYTES_MAX);
        let _ = write!(safe, "-{}", Digest::of(name.as_bytes()));
    }
    if safe.is_empty() { "%".to_owned() } else { safe }
}

/// The path without `./` and doubled separators; `None` when it is absolute, climbs out with `..`,
/// or is no path at all.
pub fn inside(path: &str) -> Option<String> {
    let is_drive = path.as_bytes().get(1) == Some(&b':');
    if path.starts_with(['/', '~']) || is_drive || path.contains(['\0', '\n', '\r', '\\']) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let climbs = parts.contains(&"..");
    (!climbs && !parts.is_empty()).then(|| parts.join("/"))
}

/// A glob that fits this path and no other.
pub fn literal(path: &str) -> String {
    let mut glob = String::with_capacity(path.len());
    for c in path.chars() {
        if "*?[]{}".contains(c) {
            let _ = write!(glob, "[{c}]");
        } else {
            glob.push(c);
        }
    }
    glob
}

/// A path as the project sees it: below `dir`, which is `.` for the project itself.
pub fn below(dir: &str, path: &str) -> String {
    if dir == "." || dir.is_empty() { path.to_owned() } else { format!("{dir}/{path}") }
}

/// Names the files of findings from the project's directory, where a dialect knows them from the
/// run's.
pub fn from_project(findings: &mut [Finding], dir: &str) {
    for finding in findings {
        finding.path = finding.path.take().map(|path| below(dir, &path));
    }
}

/// Foreign text for one line of a report: no control characters, and not endless.
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 120;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(CHARS_MAX).map(plain).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        line.push('…');
    }
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plain_name_stays_and_a_wild_one_is_tamed() {
        for (name, safe) in [
            ("task-001", "task-001"),
            ("a/b", "a%2Fb"),
            ("..", "%2E%2E"),
            (".git", "%2Egit"),
            ("-rf", "%2Drf"),
            ("", "%"),
            ("a b\0", "a%20b%00"),
        ] {
            assert_eq!(component(name), safe);
        }
        let (long, longer) = ("x".repeat(300), "x".repeat(301));
        assert!(component(&long).len() < 200);
        assert_ne!(component(&long), component(&longer));
    }

    #[test]
    fn a_path_stays_inside_or_is_refused() {
        assert_eq!(inside("./src//a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(
            inside("memory/reports/demand.json").as_deref(),
            Some("memory/reports/demand.json")
        );
        for refused in ["/etc/passwd", "../a", "a/../../b", "", ".", "~/x", "C:/x", "a\\b", "a\0"] {
            assert_eq!(inside(refused), None, "{refused:?}");
        }
        assert_eq!(literal("app/[id]/*.ts"), "app/[[]id[]]/[*].ts");
    }

    proptest! {
        #[test]
        fn whatever_the_name_is_the_component_is_one_and_plain(name in any::<String>()) {
            let safe = component(&name);
            prop_assert!(!safe.is_empty() && safe.len() < 200);
            prop_assert!(!safe.contains(['/', '\\', '\0', ' ']) && !safe.starts_with(['.', '-']));
            let _ = (shown(&name), literal(&name));
            if let Some(path) = inside(&name) {
                prop_assert!(!path.starts_with('/') && !path.split('/').any(|it| it == ".."));
            }
        }
    }
}
