//! A step that removes the run under its driver.

use std::{fs, process::Command};

use tempfile::TempDir;

use crate::bench::{Bench, id};

#[test]
fn b6_a_run_whose_directory_is_removed_is_saved_beside_the_project_and_goes_on() {
    for remove in ["rm -rf .onward", "git init -q . && git clean -fdxq -e ledger.txt -e w.yaml"] {
        let steps = format!(
            "  - {{ id: a, run: LOG }}\n  - {{ id: b, run: 'LOG; test -e kept || {{ touch kept; \
             {remove} -e kept; }}; true' }}\n  - {{ id: c, run: LOG }}\n"
        );
        let steps = steps.replace("rm -rf .onward -e kept", "rm -rf .onward");
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("my project");
        fs::create_dir(&root).unwrap();
        let bench = Bench::at(dir, root, &steps);
        let said = bench.exits("run w.yaml", 15);
        assert!(said.err.contains("was removed"), "{said:?}");
        assert!(bench.ran("c").is_empty(), "nothing was started behind it: {said:?}");
        // The command that it prints brings the run back.
        let hint = said.err.split('`').find(|it| it.starts_with("mkdir ")).unwrap().to_owned();
        let kept = hint.split(['\'', ' ']).find(|it| it.contains("onward-saved-")).unwrap();
        assert!(
            fs::metadata(kept).unwrap().is_dir() && !kept.starts_with(bench.root.to_str().unwrap())
        );
        let status = Command::new("sh").args(["-c", &hint]).current_dir(&bench.root).status();
        assert!(status.unwrap().success(), "{hint}");
        let run = bench.project().runs().unwrap().remove(0).dir;
        bench.exits(&format!("resume --no-input {}", id(&run)), 0);
        assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1]));
        assert_eq!(bench.ran("c").len(), 1);
    }
}
