//! Rescue list and undo: what was undone comes back, and nothing of anybody's is lost on the way.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use onward_core::digest::Digest;
use serde_json::{Value, json as object};

use crate::{
    bench::{Bench, id, journal},
    json,
    repo::{self, HALF_DONE, Killed, killed_half_way},
    texts,
};

/// A completed run with one rescue: `made` was another, `new` was new, `gone` was deleted, and
/// `tool` was made executable.
pub(crate) fn rescued() -> (Bench, PathBuf) {
    let bench = Bench::new("  - { id: one, run: LOG }\n");
    bench.exits("run w.yaml", 0);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let dir = run.join("rescue/1-one");
    fs::create_dir_all(dir.join("files/deep")).unwrap();
    for (path, base, left) in [
        ("made", Some("old"), Some("half")),
        ("deep/new", None, Some("fresh")),
        ("gone", Some("was"), None),
        ("tool", Some("#!"), Some("#!")),
    ] {
        put(&bench.root, path, base);
        put(&dir.join("files"), path, left);
    }
    let digest = |text: &str| Digest::of(text.as_bytes()).to_string();
    let note = object!({
        "schema": "onward.rescue/1", "step": "one", "attempt": 1,
        "at": "2026-11-15T18:20:01.123456Z",
        "paths": [
            {"path": "deep/new", "left": digest("fresh"), "base": null},
            {"path": "gone", "left": null, "base": digest("was")},
            {"path": "made", "left": digest("half"), "base": digest("old")},
            {"path": "tool", "left": digest("#!"), "base": digest("#!"),
                "left_kind": "executable"},
        ],
    });
    fs::write(dir.join("UNDO.json"), note.to_string()).unwrap();
    (bench, run)
}

fn put(root: &Path, path: &str, text: Option<&str>) {
    if let Some(text) = text {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
}

fn now(rescue: &Value) -> Vec<String> {
    let paths = rescue["paths"].as_array().unwrap().iter();
    let word = |it: &Value, name: &str| it[name].as_str().unwrap().to_owned();
    paths.map(|it| format!("{} {}", word(it, "path"), word(it, "now"))).collect()
}

fn tree(bench: &Bench) -> Vec<String> {
    let text = |path: &str| {
        let full = bench.path(path);
        let mode = fs::metadata(&full).map_or(0, |it| it.permissions().mode() & 0o100);
        let mark = if mode == 0 { "" } else { "*" };
        fs::read_to_string(full).map_or_else(|_| "-".to_owned(), |text| format!("{text}{mark}"))
    };
    ["made", "deep/new", "gone", "tool"].map(text).to_vec()
}

#[test]
fn what_was_undone_comes_back_and_goes_again() {
    let (bench, run) = rescued();
    let shown = json(&bench, "rescues", "rescue list", 0);
    let expected = ["deep/new undone", "gone undone", "made undone", "tool undone"];
    assert_eq!(now(&shown["rescues"][0]), expected);
    let said = bench.exits("undo 1", 16);
    assert!(said.err.contains(&format!("`onward undo {} 1 --yes`", id(&run))), "{said:?}");
    assert_eq!(tree(&bench), ["old", "-", "was", "#!"]);
    let brought = json(&bench, "undo", "undo 1 --yes", 0);
    assert_eq!(tree(&bench), ["half", "fresh", "-", "#!*"]);
    assert_eq!(texts(&brought["brought"]), ["deep/new", "gone", "made", "tool"]);
    assert_eq!(brought["replaced_in"], 2);
    assert!(journal(&run).contains("rescue 1 was brought back"));
    let again = json(&bench, "undo", &format!("undo {} 1 --yes", id(&run)), 0);
    assert_eq!((texts(&again["brought"]).len(), &again["replaced_in"]), (0, &Value::Null));
    bench.exits("undo 2 --yes", 0);
    assert_eq!(tree(&bench), ["old", "-", "was", "#!"]);
    let said = bench.exits("rescue list", 0);
    assert!(said.out.contains("3  what `undo 2` replaced "), "{said:?}");
}

#[test]
fn what_somebody_changed_is_refused_by_name_and_replaced_only_by_name() {
    let (bench, _run) = rescued();
    fs::write(bench.path("made"), "mine").unwrap();
    let said = bench.exits("undo 1 --yes", 16);
    assert!(said.err.contains("changed since, and left alone: made\n"), "{said:?}");
    assert_eq!(tree(&bench), ["mine", "-", "was", "#!"], "all or nothing");
    bench.exits("undo 1 --yes --replace made", 0);
    assert_eq!(tree(&bench), ["half", "fresh", "-", "#!*"]);
    bench.exits("undo 2 --yes", 0);
    assert_eq!(tree(&bench), ["mine", "-", "was", "#!"]);
}

#[test]
fn a_bringing_back_that_was_cut_short_goes_on() {
    let (bench, _run) = rescued();
    // Killed after the first two paths.
    put(&bench.root, "deep/new", Some("fresh"));
    fs::remove_file(bench.path("gone")).unwrap();
    let brought = json(&bench, "undo", "undo 1 --yes", 0);
    assert_eq!(texts(&brought["brought"]), ["made", "tool"]);
    assert_eq!(tree(&bench), ["half", "fresh", "-", "#!*"]);
}

#[test]
fn bad_numbers_and_bad_rescues_are_refused() {
    let (bench, run) = rescued();
    let said = bench.exits("undo 7 --yes", 16);
    assert!(said.err.contains("its rescues: 1"), "{said:?}");
    bench.exits("undo one", 2);
    bench.exits("undo", 2);
    // A rescue that never came about has no note.
    fs::create_dir_all(run.join("rescue/2-one/files")).unwrap();
    fs::write(run.join("rescue/torn-tail-17"), "x").unwrap();
    assert_eq!(json(&bench, "rescues", "rescue list", 0)["rescues"].as_array().unwrap().len(), 1);
    fs::write(run.join("rescue/1-one/files/made"), "forged").unwrap();
    let said = bench.exits("undo 1 --yes", 16);
    assert!(said.err.contains("does not hold made any more"), "{said:?}");
    assert_eq!(tree(&bench), ["old", "-", "was", "#!"]);
    let note = run.join("rescue/1-one/UNDO.json");
    let text = fs::read_to_string(&note).unwrap().replace("deep/new", "../../new");
    fs::write(&note, text).unwrap();
    bench.exits("rescue list", 16);
    bench.exits("undo 1 --yes", 16);
}

/// What cannot be read in the place of a rescue is named, and hides none beside it.
#[test]
fn a_rescue_that_cannot_be_read_hides_no_other() {
    let (bench, run) = rescued();
    fs::write(run.join("rescue/2-two"), "no directory").unwrap();
    fs::create_dir(run.join("rescue/3-three")).unwrap();
    bench.fifo(run.join("rescue/3-three/UNDO.json").to_str().unwrap());
    let said = bench.exits("rescue list", 0);
    assert!(said.out.contains("  1  one, attempt 1, undone "), "{said:?}");
    for number in [2, 3] {
        let line = format!("  {number}  its UNDO.json cannot be read: ");
        assert!(said.out.contains(&line), "{said:?}");
        for command in ["undo", "rescue show"] {
            let yes = if command == "undo" { " --yes" } else { "" };
            let said = bench.exits(&format!("{command} {number}{yes}"), 16);
            let refused = format!("rescue {number} cannot be used: its UNDO.json");
            assert!(said.err.contains(&refused), "{said:?}");
        }
    }
    let list = json(&bench, "rescues", "rescue list", 0);
    let flaws: Vec<&Value> =
        list["unusable"].as_array().unwrap().iter().map(|it| &it["flaw"]).collect();
    assert_eq!(flaws, ["unreadable", "unreadable"]);
    bench.exits("undo 1 --yes", 0);
    assert_eq!(tree(&bench), ["half", "fresh", "-", "#!*"]);
}

#[test]
fn half_done_edits_of_a_killed_agent_come_back_as_it_left_them() {
    let steps = "  - { id: draft, agent: claude, prompt: write, writes: [made.o] }\n";
    let bench = repo::repo(HALF_DONE, steps);
    let run = killed_half_way(&bench, Killed::All);
    let left = repo::tree(&bench);
    bench.exits("resume", 0);
    fs::remove_file(bench.path("brief.txt")).unwrap();
    let undone = repo::tree(&bench);
    assert_ne!(undone, left);
    // The second attempt made it again: that is work too.
    let said = bench.exits("undo 1 --yes", 16);
    assert!(said.err.contains("left alone: made.o\n"), "{said:?}");
    assert_eq!(repo::tree(&bench), undone);
    bench.exits(&format!("undo {} 1 --yes --replace made.o", id(&run)), 0);
    assert_eq!((repo::tree(&bench), bench.text("made.o")), (left, "half\n".to_owned()));
    bench.exits("undo 2 --yes", 0);
    assert_eq!((repo::tree(&bench), bench.text("made.o")), (undone, "done\n".to_owned()));
}
