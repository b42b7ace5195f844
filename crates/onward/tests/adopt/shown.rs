//! What a person sees of a conference that another system left, besides its plan.

use crate::{tea::Tea, terminal::Terminal};

/// The second round is reviewed; its knowledge transfer is next.
const REVIEWED: usize = 16;

fn lines<'a>(said: &'a str, word: &str) -> Vec<&'a str> {
    let is = |line: &&str| line.split(' ').nth(1) == Some(word);
    said.lines().filter(is).collect()
}

#[test]
fn many_steps_that_are_taken_over_are_one_line_and_v_names_each() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, REVIEWED);
    let said = tea.exits("resume --yes --no-input", 0).err;
    let told = lines(&said, "adopt");
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].ends_with(" steps  from conference"), "{said}");
    assert_eq!(lines(&said, "turn"), Vec::<&str>::new(), "{said}");
    let tea = Tea::left(&finished, REVIEWED);
    let said = tea.exits("resume --yes --no-input -v", 0).err;
    assert!(lines(&said, "adopt").len() > 20, "{said}");
}

#[test]
fn beside_a_run_that_is_over_no_command_says_that_there_is_none() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, usize::MAX);
    assert!(tea.exits("list", 0).out.contains(" completed "));
    for command in ["log", "attach", "verify", "rescue", "repair", "pause", "undo 1"] {
        let said = tea.exits(command, 17).err;
        assert!(said.contains("no run here is open"), "{command}: {said}");
        assert!(said.contains("see `onward plan "), "{command}: {said}");
    }
    // One that goes on is named by what takes it up.
    let tea = Tea::left(&finished, REVIEWED);
    let said = tea.exits("repair", 1).err;
    assert!(said.contains("no run continues it yet"), "{said}");
}

#[test]
fn a_total_that_grows_is_marked_for_another_systems_run_too() {
    let tea = Tea::left(&Tea::finished(), 5);
    let (list, status) = (tea.exits("list", 0).out, tea.exits("status", 0).out);
    let done = list.lines().nth(1).unwrap().split_whitespace().nth(2).unwrap();
    assert!(done.ends_with('+'), "{list}");
    assert!(status.contains(" done, and more to come\n"), "{status}");
}

#[test]
fn rows_that_are_undone_wrap_between_words() {
    let tea = Tea::left(&Tea::finished(), 5);
    let shown = Terminal::of_sized(&tea.command("plan"), (80, 24)).exits(0);
    assert!(shown.contains("Undone first, and saved"), "{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
