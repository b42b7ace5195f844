//! What a person at a terminal is asked before a conference of another system goes on.

use crate::{tea::Tea, terminal::Terminal};

/// The second round is reviewed; its knowledge transfer is next.
const REVIEWED: usize = 16;
const MENU: &str = "What now? [RESUME/point/cancel] ";
const WHERE: &str = "Continue where? (Return goes back) ";

fn asked(tea: &Tea, arguments: &str) -> Terminal {
    Terminal::of(&tea.command(arguments))
}

#[test]
fn the_return_key_goes_on_where_the_plan_says() {
    let tea = Tea::left(&Tea::finished(), REVIEWED);
    let mut terminal = asked(&tea, "resume");
    terminal.shows("knowledge transfer");
    terminal.shows(MENU);
    terminal.types("\n");
    terminal.exits(0);
    assert_eq!(tea.calls(), ["synthesis/draft"]);
    tea.is_whole("resumed");
}

#[test]
fn whoever_disagrees_names_another_place_and_sees_what_that_means_first() {
    let tea = Tea::left(&Tea::finished(), REVIEWED);
    let before = tea.contents();
    let mut terminal = asked(&tea, "resume");
    terminal.shows(MENU);
    terminal.types("point\n");
    terminal.shows("A place is one of round-start, ");
    terminal.shows(WHERE);
    terminal.types("lunch\n");
    terminal.shows("there is no `lunch` in this run");
    terminal.shows(WHERE);
    terminal.types("close\n");
    terminal.shows("close lies ahead of what is done");
    terminal.shows(WHERE);
    terminal.types("\n");
    terminal.shows(MENU);
    terminal.types("point\n");
    terminal.shows(WHERE);
    terminal.types("peer-review\n");
    terminal.shows("enters-earlier");
    terminal.shows(MENU);
    assert_eq!(tea.contents(), before, "nothing is done until the user says so");
    terminal.types("resume\n");
    terminal.exits(0);
    assert_eq!(tea.calls(), ["round[2]/review/judge", "synthesis/draft"]);
}

#[test]
fn the_rounds_are_ended_by_a_second_word() {
    let tea = Tea::left(&Tea::finished(), 9);
    let mut terminal = asked(&tea, "resume");
    terminal.shows(MENU);
    terminal.types("point\n");
    terminal.shows(WHERE);
    terminal.types("synthesis\n");
    terminal.shows("synthesis lies ahead of what is done");
    terminal.shows("Continue there anyway? [NO/yes] ");
    terminal.types("yes\n");
    terminal.shows(MENU);
    terminal.types("\n");
    terminal.exits(0);
    assert_eq!(tea.calls(), ["synthesis/draft"]);
    assert_eq!((tea.count("round.completed"), tea.count("conference.completed")), (1, 1));
}

#[test]
fn cancelled_or_left_with_a_key_nothing_was_done() {
    let tea = Tea::left(&Tea::finished(), REVIEWED);
    let before = tea.contents();
    for (typed, code) in [("cancel\n", 0), ("\u{3}", 130), ("\u{4}", 16)] {
        let mut terminal = asked(&tea, "resume");
        terminal.shows(MENU);
        terminal.types(typed);
        terminal.exits(code);
        assert_eq!(tea.contents(), before, "{typed:?}");
        assert!(tea.runs().is_empty(), "{typed:?}");
    }
}

#[test]
fn what_was_proved_in_full_wants_the_word_in_full() {
    let tea = Tea::left(&Tea::finished(), REVIEWED);
    let mut terminal = asked(&tea, "resume --mode preflight");
    terminal.shows("What now? [proceed/point/cancel] ");
    terminal.types("\n");
    terminal.shows("What now? [proceed/point/cancel] ");
    terminal.types("proceed\n");
    terminal.exits(0);
    tea.is_whole("proceeded");
}
