//! A disk without room.

use std::{fs, process::Command};

use tempfile::TempDir;

use crate::bench::{Bench, id};

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_run_on_a_full_disk_stops_with_a_reason_and_goes_on_when_there_is_room() {
    let dir = TempDir::new().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap().join("small");
    fs::create_dir(&root).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];
    let mounted = Command::new("mount").args(mount).arg(&root).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        #[expect(clippy::print_stderr, reason = "a reader of the test's output must know")]
        {
            eprintln!("not tested: only a user who may mount can make a small disk");
        }
        return;
    }
    let _mounted = Mounted(root.clone());
    let long = "x".repeat(2000);
    let items: Vec<String> = (0..100).map(|number| format!("i{number}")).collect();
    let steps = format!(
        "  - {{ id: many, each: [{}], as: item, run: 'true {long} {{{{ item }}}}' }}\n",
        items.join(", ")
    );
    let bench = Bench::at(dir, root, &steps);
    let filler = bench.path("filler");
    let _ = fs::write(&filler, vec![1; 700 << 10]);
    let said = bench.exits("run w.yaml", 1);
    // The first to write finds out, the engine or the supervisor; either says so.
    assert!(said.err.to_lowercase().contains("no space left"), "{said:?}");
    assert!(said.err.contains("then `onward resume "), "{said:?}");
    fs::remove_file(&filler).unwrap();
    let run = bench.project().runs().unwrap().remove(0).dir;
    bench.exits(&format!("resume {}", id(&run)), 0);
    let journal = crate::bench::journal(&run);
    assert_eq!(journal.matches("\"attempt.finished\"").count(), items.len());
}
