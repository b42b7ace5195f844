//! What the original did after the user's answer.

use serde_json::json;

use crate::{
    adopted::{list, write},
    kitchen::Kitchen,
};

const RESUME: &str = "resume --yes --no-input";

#[test]
fn work_that_the_original_completes_after_the_yes_is_asked_about_before_the_delivery() {
    // A file of its own, or more work on what the answer was about.
    for file in ["src/4.txt", "src/3.txt"] {
        let kitchen = Kitchen::new("-");
        let list = list(&kitchen, "TRIVIAL", "P0:2+ P6:3-");
        kitchen.exits(RESUME, 11);
        kitchen.exits("approve P8/confirm", 0);
        kitchen.bench.write(file, "made by the original\n");
        let metadata = json!({"type": "work", "phase": "P6", "parent": "1", "files": [file]});
        write(&list, 4, "do 4", "completed", &metadata);
        let plan = kitchen.exits("plan --json", 0).json();
        assert!(plan["findings"].to_string().contains("approval-outdated"), "{file}: {plan:#}");
        kitchen.exits(RESUME, 11);
        assert_eq!(kitchen.git(&["log", "--format=%s"]), "start", "{file}: nothing is delivered");
        kitchen.approve();
        assert_eq!(kitchen.permanent()["metadata"]["commit_status"], "committed", "{file}");
        let committed = kitchen.git(&["show", "--name-only", "--format=", "HEAD"]);
        assert!(committed.contains(file), "{committed}");
    }
}
