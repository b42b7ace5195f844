//! Killed at every event of its journal, a pipeline ends with the same files.

use std::fs;

use crate::{
    bench::{id, kill_all},
    kitchen::Kitchen,
    leash::{Leash, Share},
};

fn undisturbed(tier: &str) -> Kitchen {
    let kitchen = Kitchen::new(tier);
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.approve();
    kitchen
}

/// As if the machine had stopped: the engine, the supervisor, the call or agent in mid-write.
fn everything(kitchen: &Kitchen, engine: &mut Leash) {
    engine.kill();
    kill_all(&kitchen.run_dir());
}

/// What it started goes on without it.
fn the_engine(_: &Kitchen, engine: &mut Leash) {
    engine.kill();
}

#[track_caller]
fn killed_at_every_event(tier: &str, kill: fn(&Kitchen, &mut Leash), share: Share) {
    let kitchen = Kitchen::new(tier);
    let mut engine = kitchen.leash("run pipeline --no-input --input request=tea");
    let (mut seen, mut times, mut kills) = (0, 0, 0);
    // Up to the gate, and from there to the end.
    for gate in [true, false] {
        while engine.until(|| kitchen.events().len() > seen) {
            times += 1;
            let dies = share.takes(times);
            if dies {
                kill(&kitchen, &mut engine);
                kills += 1;
            }
            seen = kitchen.events().len();
            if dies {
                engine = kitchen.leash("resume --no-input --yes");
            }
        }
        if gate {
            assert_eq!(engine.exits(), Some(11), "{}", engine.last);
            kitchen.exits("approve P8/confirm", 0);
            engine = kitchen.leash("resume --no-input --yes");
        }
    }
    let code = engine.exits();
    // The last event may have been followed by the end of the run.
    assert!(code == Some(0) || code == Some(17), "{code:?}: {}", engine.last);
    let (left, wanted) = (kitchen.left(), undisturbed(tier).left());
    for (name, text) in &wanted {
        assert_eq!(left.get(name), Some(text), "{name} after {kills} kills");
    }
    assert!(left.keys().eq(wanted.keys()), "{:?}", left.keys());
    let finished = kitchen.events().iter().filter(|it| it.starts_with("attempt.finished")).count();
    // Between two kills no more can end than is under way at a time.
    assert!(kills * 4 * share.one_of() >= finished, "{kills} kills for {finished} steps");
}

#[test]
fn a_small_pipeline_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event("TRIVIAL", everything, Share::All);
}

#[test]
fn a_pipeline_of_the_middle_tier_killed_at_every_event_ends_with_the_same_files_odd() {
    killed_at_every_event("STANDARD", everything, Share::Odd);
}

#[test]
fn a_pipeline_of_the_middle_tier_killed_at_every_event_ends_with_the_same_files_even() {
    killed_at_every_event("STANDARD", everything, Share::Even);
}

#[test]
fn a_large_pipeline_whose_engine_is_killed_at_every_event_ends_with_the_same_files_odd() {
    killed_at_every_event("COMPLEX", the_engine, Share::Odd);
}

#[test]
fn a_large_pipeline_whose_engine_is_killed_at_every_event_ends_with_the_same_files_even() {
    killed_at_every_event("COMPLEX", the_engine, Share::Even);
}

/// Killed between its commit and its answer, the call is made again, and finds the commit.
#[test]
fn a_commit_whose_call_could_not_say_so_any_more_is_found_by_the_next_attempt() {
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.exits("approve P8/confirm", 0);
    let mut engine = kitchen.leash("resume --no-input --yes");
    let spawns = kitchen.run_dir().join("exits.jsonl");
    let is_begun = || fs::read_to_string(&spawns).unwrap().contains("P8/commit");
    assert!(engine.until(is_begun), "{}", engine.last);
    everything(&kitchen, &mut engine);
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
    let kitchen = Kitchen::new("TRIVIAL");
    kitchen.exits("run pipeline --no-input --input request=tea", 11);
    kitchen.exits("approve P8/confirm", 0);
    let mut engine = kitchen.leash("resume --no-input --yes");
    // From then on the supervisor starts it, so that the next attempt is another one.
    let spawns = kitchen.run_dir().join("exits.jsonl");
    let is_begun = || fs::read_to_string(&spawns).unwrap().contains("P8/commit");
    assert!(engine.until(is_begun), "{}", engine.last);
    everything(&kitchen, &mut engine);
    kitchen.bench.write(".git/index.lock", "");
    kitchen.exits("resume --no-input --yes", 0);
    assert_eq!(kitchen.git(&["log", "--format=%s"]).lines().count(), 2);
}
