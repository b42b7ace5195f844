//! A person edits a file in the moment between the announcement of an undo and the undo.

use onward_core::{finding::Code, plan::Status, policy::Choices};

use crate::{
    crash::Crash,
    harness::{Booted, Case, boot, parse},
    toy::journal,
    world::SimWorld,
};

const TEXT: &str = "
onward: 1
name: moment
steps:
  - { id: a, agent: claude, prompt: append log.txt one; work; append log.txt two; append a.txt a,
      writes: [a.txt] }
  - { id: b, run: write b.txt beta, writes: [b.txt] }
";
const MINE: &str = "a person's";

/// Whether the person came in between.
fn live(fuse: u64) -> bool {
    let workflow = parse(TEXT);
    let mut world = SimWorld::new(fuse);
    world.story = format!("killed at call {fuse}");
    world.fuses = [(fuse, Crash::Processes)].into();
    world.meanwhile.edit = Some(("log.txt", MINE));
    let mut choices = Choices::default();
    let mut asked = false;
    let read = |world: &SimWorld| {
        let bytes = world.disk.read("project/log.txt").unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    for life in 0.. {
        assert!(life < 4, "{}", world.story);
        match boot(&mut world, &workflow, &choices, None) {
            Booted::With(Status::Completed) => break,
            Booted::Dark => {}
            Booted::Refused { findings, .. } => {
                assert!(!asked, "asked once: {findings:#?}");
                asked = true;
                let codes: Vec<&str> = findings.iter().map(|it| it.code.as_str()).collect();
                assert_eq!(codes, [Code::AttemptContested.as_str()], "{findings:#?}");
                assert_eq!(read(&world), MINE, "untouched while it is asked about");
                let known = journal(&world).len();
                let again = boot(&mut world, &workflow, &Choices::default(), None);
                assert!(matches!(again, Booted::Refused { .. }), "the next one asks too");
                assert_eq!(journal(&world).len(), known, "and records nothing");
                choices.accept_all(&findings);
            }
            Booted::With(_) | Booted::InUse => panic!("{}", world.story),
        }
    }
    assert!(!asked || read(&world).starts_with(MINE), "it stays as it is: {}", read(&world));
    asked
}

#[test]
fn what_a_person_changes_between_an_announcement_and_its_undo_is_asked_about() {
    let asked = (0..Case::new(TEXT).calls()).filter(|fuse| live(*fuse)).count();
    assert!(asked > 0, "no kill left anything to undo");
}
