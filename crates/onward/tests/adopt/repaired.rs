//! A run that goes on with another system's files loses its journal, and still does.

use std::fs;

use crate::{bench::id, tea::Tea};

/// Killed in the second round, with nothing of it alive.
fn killed() -> Tea {
    let tea = Tea::left(&Tea::finished(), 9);
    tea.killed_at("round[2]/poster/draft", "resume --yes --no-input");
    tea
}

/// Repaired by what is left, it is the same run and ends as if nothing had happened.
#[track_caller]
fn goes_on(tea: &Tea, id: &str, told: &str, source: &str) {
    let shown = tea.json(&format!("repair {id} --json"));
    let rebuilt = shown["rebuilt"].as_array().unwrap();
    let adopted = rebuilt.iter().find(|it| it["kind"] == "run.adopted");
    let adopted = adopted.unwrap_or_else(|| panic!("{told}: {shown:#}"));
    assert_eq!(adopted["source"], source, "{told}");
    tea.exits(&format!("repair {id} --yes"), 0);
    let status = tea.json("status --json");
    assert_eq!(
        (&status["run"]["dialect"], &status["run"]["id"]),
        (&"conference".into(), &id.into())
    );
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole(told);
    assert_eq!(tea.runs().len(), 1, "{told}: the directory has one run");
}

#[test]
fn a_lost_journal_is_rebuilt_as_that_of_an_adopted_run() {
    let tea = killed();
    let [run] = tea.runs().try_into().unwrap();
    fs::remove_file(run.join("journal.jsonl")).unwrap();
    goes_on(&tea, &id(&run), "the journal is gone", "opened");
}

#[test]
fn a_damaged_beginning_does_not_make_it_a_run_of_its_own() {
    for line in [0, 1] {
        let tea = killed();
        let [run] = tea.runs().try_into().unwrap();
        let mut journal = fs::read(run.join("journal.jsonl")).unwrap();
        let first = journal.iter().position(|byte| *byte == b'\n').unwrap();
        journal[line * (first + 1) + 10] ^= 1;
        fs::write(run.join("journal.jsonl"), journal).unwrap();
        let source = if line == 0 { "journal" } else { "opened" };
        goes_on(&tea, &id(&run), &format!("line {line} is damaged"), source);
    }
}

#[test]
fn without_any_copy_the_workflow_and_the_files_tell() {
    let tea = killed();
    let [run] = tea.runs().try_into().unwrap();
    for lost in ["journal.jsonl", "opened.json"] {
        fs::remove_file(run.join(lost)).unwrap();
    }
    let id = id(&run);
    let shown = tea.json(&format!("repair {id} --input dir=talks/tea --json"));
    let adopted = shown["rebuilt"][0].clone();
    assert_eq!((&adopted["kind"], &adopted["source"]), (&"run.adopted".into(), &"workflow".into()));
    assert_eq!(adopted["certainty"], "inferred");
    tea.exits(&format!("repair {id} --input dir=talks/tea --yes"), 0);
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole("no copy");
    assert_eq!(tea.runs().len(), 1);
}
