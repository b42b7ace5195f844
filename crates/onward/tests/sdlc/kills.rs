//! Killed at every boundary of its journal, a workflow ends with the same files.

use onward_engine::care::harness::until;

use crate::{
    bench::kill_all,
    boundaries::{At, Dies, Scene as _, killed_at_every_boundary},
    support::leash::Leash,
    yard::{STORY, TEXT, Yard},
};

#[track_caller]
fn killed(prepare: fn(&Yard), run: &str, how: (Dies, At), these: fn(&str) -> bool) {
    let yard = Yard::new();
    prepare(&yard);
    let kills = killed_at_every_boundary(&yard, run, how, these);
    let reference = Yard::new();
    prepare(&reference);
    let mut said = reference.bench.onward(run);
    while said.code == 11 {
        reference.go();
        said = reference.bench.onward("resume --yes --no-input");
    }
    assert_eq!(said.code, 0, "{said:#?}");
    assert_eq!(yard.left(), reference.left(), "after {kills} kills");
}

#[test]
fn a_story_killed_wherever_it_can_be_ends_with_the_same_files() {
    killed(
        |_| {},
        "run sdc --input story=4.2 --no-input",
        (Dies::Everything, At::Everywhere),
        |_| true,
    );
}

/// An agent that is killed in the middle of a file has proved nothing by it: neither to the plan,
/// nor to a resume that follows one which was killed before the undo.
#[test]
fn a_story_that_is_half_written_is_written_again() {
    let half =
        "head -c 20 story.txt > \"$story\"; [ -e .git/calm ] || cat .git/wait; cat story.txt";
    let yard = Yard::with(|agent| agent.replace("cat story.txt", half));
    yard.bench.fifo(".git/wait");
    let mut engine = yard.bench.start("run sdc --input story=4.2 --no-input");
    until("half a story", || Ok((yard.bench.text(STORY).len() == 20).then_some(()))).unwrap();
    engine.kill().unwrap();
    kill_all(&yard.run_dir());
    yard.write(".git/calm", "");
    let is_planned_again = || {
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(plan["recovery_point"]["code"], "sdc:create", "{plan:#}");
        let rows = plan["steps"].as_array().unwrap();
        let row = rows.iter().find(|it| it["step"] == "create").unwrap();
        assert_eq!(row["verdict"], "rerun", "{row:#}");
    };
    is_planned_again();
    let mut engine = Leash::start_taut(&mut yard.command("resume --yes --no-input"));
    let journal = yard.run_dir().join("journal.jsonl");
    let lost = || std::fs::read_to_string(&journal).unwrap().contains("attempt.lost");
    assert!(engine.until(lost), "{}", engine.last);
    engine.kill();
    kill_all(&yard.run_dir());
    assert_eq!(yard.bench.text(STORY).len(), 20, "killed before the undo");
    is_planned_again();
    yard.bench.exits("resume --yes --no-input", 0);
    assert!(yard.bench.text(STORY).contains("**Status:** Done"));
    assert_eq!(yard.bench.text("app.txt"), "hello ada\n");
}

#[test]
fn a_story_whose_engine_is_killed_at_every_boundary_ends_with_the_same_files() {
    killed(|_| {}, "run sdc --input story=4.2 --no-input", (Dies::Engine, At::Batches), |_| true);
}

#[test]
fn a_loop_killed_wherever_it_can_be_ends_with_the_same_files() {
    let prepare = |yard: &Yard| {
        yard.write(STORY, &TEXT.replace("Draft", "Ready for Review"));
        yard.bench.write("app.txt", "hello\n");
    };
    killed(
        prepare,
        "run qa-loop --input story=4.2 --no-input",
        (Dies::Everything, At::Everywhere),
        |_| true,
    );
}

#[test]
fn a_spec_killed_wherever_it_can_be_ends_with_the_same_files() {
    let run = "run spec --input feature=login --input request=x --no-input";
    killed(
        |yard| yard.bench.write("app.txt", "-"),
        run,
        (Dies::Everything, At::Everywhere),
        |_| true,
    );
}

#[track_caller]
fn epic_killed(these: fn(&str) -> bool) {
    let run = "run epic --input epic=3 --no-input";
    killed(Yard::with_epic, run, (Dies::Everything, At::Batches), these);
}

/// The first wave has two stories, which run side by side, and what becomes of both.
#[test]
fn an_epic_killed_at_every_boundary_of_a_story_of_its_first_wave_ends_with_the_same_files() {
    epic_killed(|step| step.starts_with("wave[1]/story[3.1]"));
}

#[test]
fn an_epic_killed_at_every_boundary_of_the_story_beside_it_ends_with_the_same_files() {
    epic_killed(|step| step.starts_with("wave[1]/story[3.2]"));
}

#[test]
fn an_epic_killed_at_every_boundary_behind_the_stories_of_its_first_wave_ends_with_the_same_files()
{
    epic_killed(|step| step.starts_with("wave[1]") && !step.starts_with("wave[1]/story[3."));
}

#[test]
fn an_epic_killed_at_every_boundary_of_its_second_wave_ends_with_the_same_files() {
    epic_killed(|step| step.starts_with("wave[2]"));
}

#[test]
fn an_epic_killed_at_every_other_boundary_ends_with_the_same_files() {
    epic_killed(|step| !step.starts_with("wave[1]") && !step.starts_with("wave[2]"));
}
