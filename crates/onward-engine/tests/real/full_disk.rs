//! A disk without room: the engine stops, and with room again the run goes on.

use std::{path::Path, process::Command};

use onward_core::plan::Status;
use onward_engine::{engine::EngineError, world::Stop};

use crate::bench::{Bench, state};

struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_stops_the_engine_and_the_run_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(dir.path()).unwrap().join("small");
    std::fs::create_dir(&root).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=1m", "tmpfs"];
    let mounted = Command::new("mount").args(mount).arg(&root).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        #[expect(clippy::print_stderr, reason = "a reader of the test's output must know")]
        {
            eprintln!("not tested: only a user who may mount can make a small disk");
        }
        return;
    }
    let _mounted = Mounted(&root);
    let bench = Bench::at(&root, dir.path());
    let long = "x".repeat(2000);
    let items: Vec<String> = (0..100).map(|number| format!("i{number}")).collect();
    let run = bench.new_run(&format!(
        "  - {{ id: many, each: [{}], as: item, run: 'true {long} {{{{ item }}}}' }}\n",
        items.join(", ")
    ));
    let filler = bench.path("filler");
    let _ = std::fs::write(&filler, vec![1; 700 << 10]);
    let stopped = bench.resume(&run).unwrap_err();
    // The first to write finds out, and either says so.
    let reason = if let EngineError::Stop(Stop::Io { source, .. }) = &stopped {
        source.to_string()
    } else if let EngineError::Stop(Stop::HandsGaveUp(why)) = &stopped {
        why.clone()
    } else {
        panic!("{stopped:?}")
    };
    assert!(reason.contains("No space left on device"), "{stopped:?}");
    assert!(stopped.hint().is_some_and(|hint| hint.contains("onward resume")), "{stopped:?}");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    let journal = String::from_utf8(std::fs::read(run.join("journal.jsonl")).unwrap()).unwrap();
    assert_eq!(journal.matches("\"attempt.finished\"").count(), items.len());
    assert_eq!(state(&run).steps.len(), items.len());
}
