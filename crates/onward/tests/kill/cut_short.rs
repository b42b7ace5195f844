//! A resume that is killed while it undoes: the next user is told what is left to be undone,
//! and is asked about what a person did meanwhile.

use std::{fs, path::PathBuf};

use onward_engine::care::harness::Watch;

use crate::{
    bench::{Bench, codes, id, kill_all, spend, watched},
    repo::{HALF_DONE, Killed, killed_half_way, repo, tree},
};

const STEPS: &str = "  - id: draft\n    agent: claude\n    prompt: write\n    \
    writes: [made.o]\n    retry: { max: 1 }\n";

/// Killed in its edits, and again while a resume undoes them.
fn cut_short() -> (Bench, PathBuf) {
    let agent = "if [ $ONWARD_ATTEMPT = 1 ]; then\n\
        mkdir many; for n in $(seq 500); do echo half > many/$n; done\n\
        half\n\
        fi\n\
        cat \"$ONWARD_BRIEF\" > brief.txt\n\
        echo done > made.o\n";
    let bench = repo(agent, STEPS);
    let run = killed_half_way(&bench, Killed::All);
    let mut watch = Watch::new(&run);
    let mut engine = bench.start(&format!("resume {}", id(&run)));
    let begun = watch.until(&mut engine, |_| left(&bench).len() < 500).unwrap();
    assert!(begun, "{}", bench.text("said"));
    engine.kill().unwrap();
    kill_all(&run);
    assert!(!left(&bench).is_empty(), "it was killed half way");
    (bench, run)
}

fn left(bench: &Bench) -> Vec<String> {
    let entries = fs::read_dir(bench.path("many"));
    let names = entries.into_iter().flatten().flatten().map(|it| it.file_name());
    names.map(|it| format!("many/{}", it.to_str().unwrap())).collect()
}

#[test]
fn the_plan_lists_what_is_still_to_be_undone_and_the_next_attempt_is_told_of_all() {
    let (bench, run) = cut_short();
    let plan = bench.plan(&run);
    assert_eq!(codes(&plan), [""; 0], "{plan:#}");
    let paths = plan["reverts"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap());
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    let mut wanted = left(&bench);
    wanted.sort_unstable();
    assert_eq!(paths, wanted);
    bench.exits("resume", 0);
    assert!(left(&bench).is_empty());
    let brief = bench.text("brief.txt");
    assert!(brief.contains("What it changed was undone:"), "{brief}");
    assert!(brief.contains("- and 450 more"), "{brief}");
}

#[test]
fn what_a_person_edits_meanwhile_is_asked_about_and_stays() {
    let (bench, run) = cut_short();
    let path = left(&bench).pop().unwrap();
    fs::write(bench.path(&path), "by hand\n").unwrap();
    let records = || watched(&run).records.len();
    let (files, count) = (tree(&bench), records());
    let plan = bench.plan(&run);
    assert_eq!((codes(&plan), &plan["can_resume"]), (vec!["dirty-tree"], &false.into()));
    let said = bench.exits("resume", 16);
    assert!(said.err.contains(&path), "{said:?}");
    assert!(tree(&bench) == files && records() == count, "all or ask");
    bench.exits("resume --accept dirty-tree", 0);
    assert_eq!(left(&bench), std::slice::from_ref(&path));
    assert_eq!(bench.text(&path), "by hand\n");
}

#[test]
fn nothing_is_brought_back_before_the_undo_is_over() {
    let (bench, _) = cut_short();
    let before = tree(&bench);
    let said = bench.exits("undo 1 --yes", 16);
    assert!(said.err.contains("cut short") && said.err.contains("onward resume"), "{said:?}");
    assert_eq!(tree(&bench), before);
}

#[test]
fn what_was_brought_back_is_not_undone_again_by_a_resume_that_starts_nothing() {
    let bench = repo(HALF_DONE, STEPS);
    bench.workflow("w.yaml", "limits: { usd: 1 }\nsteps:", STEPS);
    let before = tree(&bench);
    let run = killed_half_way(&bench, Killed::All);
    let half = tree(&bench);
    spend(&run, "draft", 1.5);
    let said = bench.exits("resume", 13);
    assert!(
        said.err.contains("$1.50 spent of $1.00: raise `limits.usd` in w.yaml first"),
        "{said:?}"
    );
    assert_eq!(tree(&bench), before);
    bench.exits("undo 1 --yes", 0);
    assert_eq!(tree(&bench), half);
    bench.exits("resume", 13);
    assert_eq!(tree(&bench), half);
    assert_eq!(bench.plan(&run)["reverts"].as_array().unwrap().len(), 0);
}
