//! Where runs are, how they are called, and which was active last.

use onward_dialects::{
    agent_memory::AGENT_MEMORY,
    seam::{Candidate, Dialect, Glimpse, Listing, Site},
};

fn sites(dir: &str, marks: &[(&str, Option<&str>, Option<&str>)]) -> Vec<Site> {
    let glimpse = |modified: Option<&str>, text: Option<&str>| Glimpse {
        modified: modified.map(|it| it.parse().unwrap()),
        bytes: text.map(Into::into),
    };
    let mark = |(path, modified, text): &(&str, Option<&str>, Option<&str>)| {
        (format!(".agent-memory/runs/{path}"), glimpse(*modified, *text))
    };
    let candidates =
        vec![Candidate { dir: dir.to_owned(), marks: marks.iter().map(mark).collect() }];
    AGENT_MEMORY.sites(&Listing { candidates, ..Listing::default() })
}

#[test]
fn each_directory_is_a_run_and_the_newest_activity_comes_first() {
    let event = |at: &str| format!("{{\"type\":\"x\",\"timestamp\":\"{at}\"}}\n");
    let (old, new) = (event("2026-03-01T10:00:00Z"), event("2026-03-02T10:00:00Z"));
    let found = sites(
        ".",
        &[
            ("a-run/", None, None),
            ("b-run/events/x/1.jsonl", Some("2026-09-01T00:00:00Z"), Some(&old)),
            ("c-run/prd.md", Some("2026-03-01T12:00:00Z"), None),
            ("d-run/events/x/1.jsonl", Some("2026-01-01T00:00:00Z"), Some(&new)),
            ("d-run/prd.md", Some("2026-10-01T12:00:00Z"), None),
            ("index.yaml", None, None),
            (".tmp/prd.md", None, None),
        ],
    );
    let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["d-run", "c-run", "b-run", "a-run"]);
    assert_eq!(found[0].dir(), ".agent-memory/runs/d-run");
    assert_eq!(found[0].inputs["dir"], ".agent-memory/runs/d-run");
    assert_eq!(sites("apps/web", &[("x/", None, None)])[0].dir(), "apps/web/.agent-memory/runs/x");
}
