//! Killed at every boundary of its journal, a pipeline ends with the same files.

use std::fs;

use crate::{
    bench::{id, kill_all},
    boundaries::{At, Dies, killed_at_every_boundary},
    kitchen::Kitchen,
};

/// A pipeline whose first review fails, so that some work is done over.
fn mended_once(tier: &str) -> Kitchen {
    let mut kitchen = Kitchen::new(tier);
    kitchen.env.push(("FIRST_REVIEW", "false".to_owned()));
    kitchen
}

#[track_caller]
fn killed(tier: &str, how: (Dies, At), these: fn(&str) -> bool) {
    let kitchen = mended_once(tier);
    let run = "run pipeline --no-input --input request=tea";
    let kills = killed_at_every_boundary(&kitchen, run, how, these);
    let reference = mended_once(tier);
    reference.exits(run, 11);
    reference.approve();
    let (left, wanted) = (kitchen.left(), reference.left());
    for (name, text) in &wanted {
        assert_eq!(left.get(name), Some(text), "{name} after {kills} kills");
    }
    assert!(left.keys().eq(wanted.keys()), "{:?}", left.keys());
}

fn phase(step: &str) -> &str {
    let first = step.split(['[', '/']).next().unwrap_or_default();
    first.strip_prefix("tasks_").unwrap_or(first)
}

/// The phases up to the plan.
fn early(step: &str) -> bool {
    ["intake", "open", "P0", "P1", "P2", "P3"].contains(&phase(step))
}

/// Those that a large pipeline alone has.
fn middle(step: &str) -> bool {
    ["P4", "P5"].contains(&phase(step))
}

fn late(step: &str) -> bool {
    !early(step) && !middle(step)
}

#[test]
fn a_small_pipeline_killed_wherever_it_can_be_ends_with_the_same_files() {
    killed("TRIVIAL", (Dies::Everything, At::Everywhere), |_| true);
}

#[test]
fn a_small_pipeline_whose_engine_is_killed_at_every_boundary_ends_with_the_same_files() {
    killed("TRIVIAL", (Dies::Engine, At::Batches), |_| true);
}

#[test]
fn a_pipeline_of_the_middle_tier_killed_at_every_early_boundary_ends_with_the_same_files() {
    killed("STANDARD", (Dies::Everything, At::Batches), early);
}

#[test]
fn a_pipeline_of_the_middle_tier_killed_at_every_late_boundary_ends_with_the_same_files() {
    killed("STANDARD", (Dies::Everything, At::Batches), |it| !early(it));
}

#[test]
fn a_large_pipeline_killed_at_every_early_boundary_ends_with_the_same_files() {
    killed("COMPLEX", (Dies::Everything, At::Batches), early);
}

#[test]
fn a_large_pipeline_killed_at_every_boundary_between_ends_with_the_same_files() {
    killed("COMPLEX", (Dies::Everything, At::Batches), middle);
}

#[test]
fn a_large_pipeline_killed_at_every_late_boundary_ends_with_the_same_files() {
    killed("COMPLEX", (Dies::Everything, At::Batches), late);
}

/// A pipeline whose every process was killed when its commit had begun.
fn killed_in_its_commit() -> Kitchen {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.exits("approve P8/confirm", 0);
    let mut engine = kitchen.leash("resume --no-input --yes");
    // From then on the supervisor starts it, so that the next attempt is another one.
    let spawns = kitchen.run_dir().join("exits.jsonl");
    let is_begun = || fs::read_to_string(&spawns).unwrap().contains("P8/commit");
    assert!(engine.until(is_begun), "{}", engine.last);
    engine.kill();
    kill_all(&kitchen.run_dir());
    kitchen
}

/// Killed between its commit and its answer, the call is made again, and finds the commit.
#[test]
fn a_commit_whose_call_could_not_say_so_any_more_is_found_by_the_next_attempt() {
    let kitchen = killed_in_its_commit();
    let _ = fs::remove_file(kitchen.bench.path(".git/index.lock"));
    if kitchen.git(&["log", "--format=%s"]).lines().count() == 1 {
        let run = id(&kitchen.run_dir());
        let marks = format!("Onward-Run: {run}\nOnward-Step: P8/commit\nOnward-Attempt: 1\n");
        kitchen.git(&["add", "--all"]);
        kitchen.git(&["commit", "-q", "-m", &format!("tea\n\n{marks}")]);
    }
    for entry in fs::read_dir(kitchen.run_dir().join("out")).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.contains("commit") && name.ends_with(".result") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    kitchen.exits("resume --no-input --yes", 0);
    assert_eq!(kitchen.git(&["log", "--format=%s"]).lines().count(), 2);
}

#[test]
fn a_commit_whose_git_was_killed_with_its_lock_held_is_made_by_the_next_attempt() {
    let kitchen = killed_in_its_commit();
    kitchen.bench.write(".git/index.lock", "");
    kitchen.exits("resume --no-input --yes", 0);
    assert_eq!(kitchen.git(&["log", "--format=%s"]).lines().count(), 2);
}
