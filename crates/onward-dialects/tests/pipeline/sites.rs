//! Which lists hold a pipeline, and whose they are.

use onward_dialects::{
    Files,
    pipeline::PIPELINE,
    seam::{Candidate, Dialect, Glimpse, Listing, Project, Site},
};
use serde_json::json;

use crate::builder::{Built, at, built};

fn candidate(dir: &str, built: &Built, minute: u32) -> Candidate {
    let files = built.files();
    let glimpse = |bytes: &[u8]| Glimpse { modified: Some(at(minute)), bytes: Some(bytes.into()) };
    let marks = files.iter().map(|(path, file)| (path.to_owned(), glimpse(&file.bytes))).collect();
    Candidate { dir: dir.to_owned(), marks }
}

fn project() -> Project {
    Project {
        path: "/users/me/shop".into(),
        branches: ["main".to_owned(), "feat/rl".to_owned()].into(),
        files: ["src/a.ts".to_owned()].into(),
    }
}

fn sites(lists: &[(&str, &Built, u32)]) -> Vec<Site> {
    let candidates =
        lists.iter().map(|(dir, built, minute)| candidate(dir, built, *minute)).collect();
    PIPELINE.sites(&Listing { candidates, project: project() })
}

fn is_elsewhere(built: &Built) -> bool {
    sites(&[("/t/a", built, 1)])[0].elsewhere
}

#[test]
fn a_list_without_a_permanent_task_is_no_pipeline() {
    let mut plain = built("STANDARD", "P6:2~");
    plain.permanent["subject"] = json!("Send a message");
    assert_eq!(sites(&[("/t/a", &plain, 1)]), []);
    assert_eq!(PIPELINE.sites(&Listing::default()), []);
    let site = Site::at(PIPELINE.card(), "/t/a");
    let missing = PIPELINE.read(&site, plain.files()).err().unwrap();
    assert!(missing.file.contains("[PERMANENT]") && missing.hint.contains("--tasks"));
    assert!(PIPELINE.read(&site, Files::default()).is_err());
}

#[test]
fn the_newest_open_list_comes_first_and_knows_the_others() {
    let open = built("STANDARD", "P6:2~");
    let done = built("STANDARD", "").meta("commit_status", json!("committed"));
    let found = sites(&[("/t/old", &open, 1), ("/t/done", &done, 9), ("/t/new", &open, 5)]);
    let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["new", "old", "done"]);
    let dirs: Vec<&str> = found[0].roots.iter().map(|it| it.dir.as_str()).collect();
    assert_eq!(dirs, ["/t/new", ".", "/t/old", "/t/done"]);
    assert_eq!(found[0].roots[2].reads, ["1.json"]);
    assert_eq!(found[0].last_activity, Some(at(5)));
    assert_eq!(found[0].inputs["dir"], "/t/new");
}

#[test]
fn the_files_of_tasks_are_looked_at_in_the_project_and_nowhere_else() {
    let named = built("STANDARD", "P6:2~ P6:3+");
    let named = named.task_meta("2", "files", json!(["./src/[id].ts", "../../x", "/etc/y"]));
    let named = named.task_meta("3", "commits", json!(["abcdef1", "rm -rf", 7]));
    let site = &sites(&[("/t/a", &named, 1)])[0];
    assert_eq!(site.roots[1].reads, ["src/[[]id[]].ts"]);
    assert_eq!(site.commits, ["abcdef1"]);
}

#[test]
fn a_list_is_another_project_s_when_something_says_so_and_nothing_says_it_is_ours() {
    let plain = built("STANDARD", "P0:2+ P6:3~");
    assert!(!is_elsewhere(&plain), "nothing is said");
    let task = |key: &str, value| plain.clone().task_meta("2", key, value);
    assert!(!is_elsewhere(&task("projectSlug", json!("shop"))));
    assert!(!is_elsewhere(&task("projectSlug", json!("-users-me-shop"))));
    assert!(is_elsewhere(&task("projectSlug", json!("blog"))));
    let named = task("projectSlug", json!("blog"));
    assert!(is_elsewhere(&named.clone().task_meta("3", "files", json!(["src/a.ts"]))));
    assert!(!is_elsewhere(&named.task_meta("3", "files", json!(["/users/me/shop/a.ts"]))));
    assert!(!is_elsewhere(&task("files", json!(["src/a.ts", "src/gone.ts"]))));
    assert!(is_elsewhere(&task("files", json!(["src/gone.ts"]))));
    let planned = plain.clone().task_meta("3", "files", json!(["src/new.ts"]));
    assert!(!is_elsewhere(&planned), "it may still be written");
    assert!(is_elsewhere(&task("files", json!(["/users/me/blog/a.ts"]))));
    assert!(!is_elsewhere(&task("files", json!(["/users/me/shop/a.ts"]))));
    let both = task("files", json!(["/users/me/blog/a.ts", "src/a.ts"]));
    assert!(is_elsewhere(&both), "many projects have a file of that name");
    assert!(!is_elsewhere(&task("files", json!(["/tmp/pipeline/p5.md", "src/a.ts"]))), "a note");
    let branch = |name: &str| task("files", json!(["src/gone.ts"])).meta("branch", json!(name));
    assert!(!is_elsewhere(&branch("feat/rl")));
    assert!(is_elsewhere(&branch("main")), "every project has one");
    assert!(is_elsewhere(&branch("develop")), "many projects have one");
    assert!(!is_elsewhere(&plain.clone().meta("branch", json!("feat/gone"))), "a mismatch");
}
