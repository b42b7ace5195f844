//! Killed at every boundary of its journal, a workflow ends with the same files.

use crate::{
    boundaries::{At, Dies, killed_at_every_boundary},
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
