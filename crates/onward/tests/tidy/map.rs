//! The code map of ARCHITECTURE.md names every module a reader meets first.

/// Folders whose modules are listed one by one.
const LISTED: [&str; 5] = [
    "crates/onward-core/src/",
    "crates/onward-dialects/src/",
    "crates/onward-engine/src/",
    "crates/onward-engine/src/world/",
    "crates/onward/src/",
];

/// A module that the map leaves out is one that newcomers write a second time.
pub(crate) fn unmapped_modules(paths: &[&str], map: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for folder in LISTED {
        let inside = paths.iter().filter_map(|path| path.strip_prefix(folder));
        let mut names: Vec<&str> =
            inside.map(|it| it.split('/').next().unwrap_or(it).trim_end_matches(".rs")).collect();
        names.dedup();
        let is_told = |name: &&str| {
            let forms = [format!("`{name}`"), format!("`{name}/"), format!("/{name}`")];
            matches!(*name, "lib" | "mod") || forms.iter().any(|form| map.contains(form))
        };
        let left_out = names.into_iter().filter(|name| !is_told(name));
        complaints.extend(left_out.map(|it| format!("ARCHITECTURE.md: name `{it}` of {folder}")));
    }
    complaints
}
