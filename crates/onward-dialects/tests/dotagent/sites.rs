//! Where runs are, how they are called and what is read of them.

use onward_dialects::{
    Files,
    dotagent::DOTAGENT,
    seam::{Candidate, Dialect, Glimpse, Listing, Site},
};

use crate::builder::{built, task};

fn sites(dir: &str, marks: &[(&str, &str)]) -> Vec<Site> {
    let glimpse = |text: &str| Glimpse { modified: None, bytes: Some(text.into()) };
    let marks = marks.iter().map(|(path, text)| ((*path).to_owned(), glimpse(text))).collect();
    let candidates = vec![Candidate { dir: dir.to_owned(), marks }];
    DOTAGENT.sites(&Listing { candidates, ..Listing::default() })
}

#[test]
fn a_run_is_called_by_its_id_made_safe() {
    let phase = "memory/state/phase.json";
    let named = |text: &str| sites(".", &[(phase, text)])[0].name.clone();
    assert_eq!(named(r#"{"workflow_id":"wf-1"}"#), "wf-1");
    assert_eq!(named(r#"{"workflow_id":"../../etc"}"#), "%2E.%2F..%2Fetc");
    assert_eq!(named("{"), "dotagent");
    assert_eq!(sites("apps/web", &[(phase, "{")])[0].name, "web");
    assert_eq!(sites("apps/web", &[(phase, "{")])[0].dir(), "apps/web");
}

#[test]
fn any_of_the_state_files_is_enough_and_none_is_not() {
    for mark in ["phase.json", "phase.json.tmp", "execution.json"] {
        assert_eq!(sites(".", &[(&format!("memory/state/{mark}"), "{}")]).len(), 1, "{mark}");
    }
    assert_eq!(sites(".", &[("memory/state/other.json", "{}")]).len(), 0);
    let site = Site::at(DOTAGENT.card(), ".");
    let missing = DOTAGENT.read(&site, Files::default()).err().unwrap();
    assert_eq!(missing.file, "memory/state/phase.json");
}

#[test]
fn outputs_that_are_named_are_read_and_those_outside_are_not() {
    let mut out = task("t1", "running", 1);
    out["output"] = "work/[t1]/out.json".into();
    let mut away = task("t2", "running", 1);
    away["output"] = "../secret.json".into();
    let built = built("IMPLEMENTATION").tasks(&[out, away]);
    let text = built.execution.unwrap().to_string();
    let sites = sites(".", &[("memory/state/execution.json", &text)]);
    let reads = &sites[0].roots[0].reads;
    assert!(reads.contains(&"work/[[]t1[]]/out.json".to_owned()), "{reads:?}");
    assert!(reads.iter().all(|it| !it.contains("secret")), "{reads:?}");
}
