//! Killed at every event of its journal, a workflow ends with the same files.

use crate::{
    bench::kill_all,
    leash::Leash,
    yard::{STORY, TEXT, Yard},
};

/// As if the machine had stopped: the engine, the supervisor, the call or agent in mid-write.
fn everything(yard: &Yard, engine: &mut Leash) {
    engine.kill();
    kill_all(&yard.run_dir());
}

/// What it started goes on without it.
fn the_engine(_: &Yard, engine: &mut Leash) {
    engine.kill();
}

#[track_caller]
fn killed_at_every_event(prepare: fn(&Yard), run: &str, kill: fn(&Yard, &mut Leash)) {
    let yard = Yard::new();
    prepare(&yard);
    let mut engine = yard.start(run);
    let (mut seen, mut kills) = (0, 0);
    let code = loop {
        if engine.until(|| yard.events().len() > seen) {
            kill(&yard, &mut engine);
            kills += 1;
            seen = yard.events().len();
        } else {
            match engine.exits() {
                Some(11) => yard.go(),
                code => break code,
            }
        }
        engine = yard.start("resume --yes --no-input");
    };
    // The last kill may have come when nothing was left to do.
    assert!(matches!(code, Some(0 | 17)), "{code:?} after {kills} kills: {}", engine.last);
    let reference = Yard::new();
    prepare(&reference);
    let mut said = reference.bench.onward(run);
    while said.code == 11 {
        reference.go();
        said = reference.bench.onward("resume --yes --no-input");
    }
    assert_eq!(said.code, 0, "{said:#?}");
    assert_eq!(yard.left(), reference.left(), "after {kills} kills");
    let finished = yard.events().iter().filter(|it| it.starts_with("attempt.finished")).count();
    // Between two kills no more can end than is under way at a time.
    assert!(kills * 4 >= finished, "{kills} kills for {finished} steps");
}

#[test]
fn a_story_whose_every_process_is_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(|_| {}, "run sdc --input story=4.2 --no-input", everything);
}

#[test]
fn a_story_whose_engine_is_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(|_| {}, "run sdc --input story=4.2 --no-input", the_engine);
}

#[test]
fn a_loop_killed_at_every_event_ends_with_the_same_files() {
    let prepare = |yard: &Yard| {
        yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
        yard.bench.write("app.txt", "hello\n");
    };
    killed_at_every_event(prepare, "run qa-loop --input story=4.2 --no-input", everything);
}

#[test]
fn a_spec_killed_at_every_event_ends_with_the_same_files() {
    let run = "run spec --input feature=login --input request=x --no-input";
    killed_at_every_event(|yard| yard.bench.write("app.txt", "-"), run, everything);
}

#[test]
fn an_epic_killed_at_every_event_ends_with_the_same_files() {
    killed_at_every_event(Yard::with_epic, "run epic --input epic=3 --no-input", everything);
}
