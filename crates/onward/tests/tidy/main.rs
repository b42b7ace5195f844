//! House rules that rustfmt and clippy cannot express. A rule that is not here is not a rule.
//!
//! Invariant: every rule in [`RULES`] carries samples that it refuses and one that it accepts, so
//! none can rot into a rule that never complains, or complains of everything.

mod code;
mod map;
mod matches;
mod numbers;
mod rooms;
mod rules;
mod words;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use code::{code_of, forbid};
use map::unmapped_modules;
use numbers::unproved_findings;
use rooms::{ROOMS, rooms_used, round_trip};
use rules::{CRATES, RULES, unmentioned_docs, unused_dependencies};

#[test]
fn the_house_is_tidy() {
    let files = files();
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let count = |end: &str| paths.iter().filter(|path| path.ends_with(end)).count();
    assert!(count(".rs") >= 16, "a check that finds nothing to check is not a check: {paths:?}");
    assert_eq!(count("/Cargo.toml"), CRATES.len(), "every layer has its crate: {paths:?}");
    assert!(count(".md") >= 4, "the entrances are among the files: {paths:?}");

    let mut complaints = Vec::new();
    for (path, text) in &files {
        let found = RULES.iter().flat_map(|rule| (rule.check)(path, text));
        complaints.extend(found.map(|what| format!("{path}: {what}")));
    }
    let is_entrance = |path: &str| path == "README.md" || path == "ARCHITECTURE.md";
    let entrances = files.iter().filter(|(path, _)| is_entrance(path));
    let entrances: String = entrances.map(|(_, text)| text.as_str()).collect();
    complaints.extend(unmentioned_docs(&paths, &entrances));
    complaints.extend(unused_dependencies(&files));
    let map = files.iter().find(|(path, _)| path == "ARCHITECTURE.md");
    complaints.extend(unmapped_modules(&paths, map.map_or("", |(_, text)| text)));
    let testing = files.iter().find(|(path, _)| path == "docs/testing.md");
    complaints.extend(unproved_findings(&files, testing.map_or("", |(_, text)| text)));
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_finding_without_a_row_or_without_its_test_is_found() {
    let files = [("a.rs".to_owned(), "#[test]\nfn a1_held() {}\n".to_owned())];
    let complaints = unproved_findings(&files, "| A1 | `a1_*` |\n| A2 | `a2_gone`, `a1_held` |\n");
    assert!(complaints.contains(&"docs/testing.md: no row for A3".to_owned()), "{complaints:?}");
    assert!(complaints.contains(&"docs/testing.md: A2 has no test `a2_gone`".to_owned()));
    assert!(!complaints.iter().any(|it| it.contains("A1 ")), "{complaints:?}");
}

#[test]
fn every_rule_refuses_and_accepts_its_samples() {
    for rule in RULES {
        for (path, text) in rule.refuses {
            assert!(!(rule.check)(path, text).is_empty(), "accepted in {path}: {text}");
        }
        let (path, text) = rule.accepts;
        assert_eq!((rule.check)(path, text), Vec::<String>::new(), "refused in {path}: {text}");
        assert_eq!((rule.check)("src/picture.txt", "fine"), Vec::<String>::new());
    }
}

#[test]
fn a_complaint_names_the_line_where_the_word_or_its_use_begins() {
    let text = "/* a\n b */ rand::random();\n\nuse std::{\n    fmt,\n    fs,\n};";
    let complaints = forbid(&code_of(text), &["rand::", "std::fs"], "is not pure");
    assert_eq!(complaints, ["line 2: `rand::` is not pure", "line 4: `std::fs` is not pure"]);
}

#[test]
fn a_document_that_nobody_mentions_is_found() {
    let paths = ["docs/a.md", "docs/b.md", "docs/picture.svg", "b.md"];
    let complaints = unmentioned_docs(&paths, "see docs/b.md");
    assert_eq!(complaints, ["docs/a.md: mention it in README.md or ARCHITECTURE.md"]);
}

#[test]
fn a_module_that_the_map_leaves_out_is_found() {
    let core = ["lib.rs", "a.rs", "b/mod.rs", "b/c.rs", "d.rs"];
    let core = core.map(|it| format!("crates/onward-core/src/{it}"));
    let paths: Vec<&str> = core.iter().map(String::as_str).collect();
    let complaints = unmapped_modules(&paths, "| `a`, `b/c` | both |");
    assert_eq!(complaints, ["ARCHITECTURE.md: name `d` of crates/onward-core/src/"]);
}

#[test]
fn a_dependency_that_nobody_uses_is_found() {
    let files = [
        ("Cargo.toml", "[workspace.dependencies]\none-two = '1'\nthree = '1'\nfour = '1'\n"),
        ("crates/a/Cargo.toml", "[dependencies]\none-two.workspace = true\n\nthree = '1'\n"),
        ("crates/a/src/lib.rs", "use one_two::x; fn three_four() {}"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(
        unused_dependencies(&files),
        ["crates/a/Cargo.toml: no code uses `three`", "Cargo.toml: no crate takes `four`"]
    );
}

/// Each room of the engine with each that its code uses.
fn rooms_and_used() -> BTreeSet<(&'static str, &'static str)> {
    let mut edges = BTreeSet::new();
    for (path, text) in files() {
        let inside = path.strip_prefix("crates/onward-engine/src/");
        let room = inside.and_then(|it| it.split_once('/')).map(|(room, _)| room);
        let Some((room, _)) = ROOMS.iter().find(|it| Some(it.0) == room) else { continue };
        edges.extend(rooms_used(&path, &text).into_keys().map(|used| (*room, used)));
    }
    edges
}

#[test]
fn rooms_do_not_need_each_other_round_about() {
    let edges = rooms_and_used();
    assert!(edges.contains(&("drive", "world")), "a check that sees nothing: {edges:?}");
    assert_eq!(round_trip(&edges), None);
    let allowed = |(name, uses): &(&'static str, &'static [&'static str])| {
        uses.iter().map(|used| (*name, *used)).collect::<Vec<_>>()
    };
    assert_eq!(round_trip(&ROOMS.iter().flat_map(allowed).collect()), None, "the table itself");
    let around = [("a", "b"), ("b", "c"), ("x", "a"), ("c", "b")].into();
    assert!(round_trip(&around).is_some_and(|way| way.contains(&"b") && way.contains(&"c")));
}

#[test]
fn a_room_stands_above_all_that_it_may_use() {
    for (number, (room, uses)) in ROOMS.iter().enumerate() {
        let below: Vec<&str> = ROOMS[..number].iter().map(|(name, _)| *name).collect();
        let above: Vec<&&str> = uses.iter().filter(|used| !below.contains(*used)).collect();
        assert!(above.is_empty(), "{room} uses {above:?}, which stand above it");
    }
}

#[test]
fn walking_finds_every_file_that_git_knows() {
    let root = root();
    if let Some(tracked) = tracked(&root) {
        let walked = walked(&root, &root);
        let missed: Vec<_> = tracked.iter().filter(|path| !walked.contains(path)).collect();
        assert!(missed.is_empty(), "{missed:?}");
    }
}

/// Every file of the project that exists, with its text; bytes that are not text are replaced.
fn files() -> Vec<(String, String)> {
    let root = root();
    let paths = tracked(&root).unwrap_or_else(|| walked(&root, &root));
    let read = |path: String| {
        let bytes = fs::read(root.join(&path)).expect("a listed file can be read");
        (path, String::from_utf8_lossy(&bytes).into_owned())
    };
    paths.into_iter().map(read).collect()
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/onward is two below the root").to_owned()
}

/// What git knows, new files included, deleted ones not; `None` where there is no git or no
/// repository, as in an unpacked archive.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(root).args(list).output().ok()?;
    let paths = String::from_utf8(output.stdout).ok()?;
    let exists = |path: &&str| root.join(path).is_file();
    let paths: Vec<_> = paths.split('\0').filter(exists).map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

/// Every file below `dir`, except what building and running leave behind.
fn walked(root: &Path, dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the project can be listed");
    let (dirs, files): (Vec<_>, Vec<_>) =
        entries.map(|entry| entry.expect("an entry").path()).partition(|path| path.is_dir());
    let leftover = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        matches!(&*name, ".git" | "target" | ".onward") || name.starts_with("mutants.out")
    };
    let name = |path: &PathBuf| {
        path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned()
    };
    let below = dirs.iter().filter(|dir| !leftover(dir)).flat_map(|dir| walked(root, dir));
    files.iter().filter(|path| !leftover(path)).map(name).chain(below).collect()
}
