//! What a person reads before a resume, and what is written when a run is given up or ended.

use onward_core::told::{Change, CleanUp, Deed};
use serde_json::Value;

use crate::builder::{LOOP, Project, STATE, now, project};

fn clean(told: &Project) -> CleanUp {
    told.told().clean_up(now()).unwrap_or_default()
}

fn cancelled(told: &Project) -> Vec<(String, String)> {
    let text = |change: Change| match change {
        Change::Replace { path, bytes } => (path, String::from_utf8(bytes).unwrap()),
        Change::Append { .. } => panic!("{change:?}"),
    };
    told.told().write(&Deed::Cancelled { at: now() }).into_iter().map(text).collect()
}

#[test]
fn a_report_says_whether_all_of_it_a_part_or_nothing_can_go_on() {
    let report = |told: &Project| told.standing().report;
    let whole = report(&project().story("4.2", "In Progress").state("3"));
    assert_eq!(whole[0], "Resume: Story Development Cycle, 4.2");
    assert!(whole.contains(&"Completed:".to_owned()), "{whole:#?}");

    let partly = report(&project().story("4.2", "Draft").state("4"));
    assert_eq!(partly[0], "Partial resume possible: Story Development Cycle, 4.2");
    let at = |text: &str| partly.iter().position(|it| it.contains(text)).expect(text);
    assert!(at("Still valid:") < at("1. Create"), "{partly:#?}");
    assert!(at("To be done again:") < at("2. Validate: "), "{partly:#?}");
    assert!(at("3. Implement: ") < at("Resume point: "), "{partly:#?}");
    assert!(partly.iter().all(|it| !it.contains("4. QA")), "it was not reached: {partly:#?}");

    let gone = report(&project().state("3"));
    assert_eq!(gone[0], "Cannot resume: Story Development Cycle, 4.2");
    let reason = gone.iter().position(|it| it == "Reasons:").unwrap();
    assert!(gone[reason + 1].contains("the story 4.2 is gone"), "{gone:#?}");

    let over = report(&project().story("4.2", "Done").state("4"));
    assert_eq!(over[0], "Complete: Story Development Cycle, 4.2");
    assert!(over.iter().any(|it| it.starts_with("Last active: ")), "{over:#?}");
}

#[test]
fn a_wave_and_an_artifact_are_done_again_too() {
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=in_progress"]), ("pending", "-", &["3.2=pending"])];
    let epic = project().story("3.1", "Ready").story("3.2", "Ready").epic(2, waves);
    let report = epic.standing().report;
    assert_eq!(report[0], "Partial resume possible: Epic Execution, 3");
    assert!(report.iter().any(|it| it.starts_with("  1. Wave W1: ")), "{report:#?}");
    let spec = project()
        .file("docs/specs/login/requirements.json", "{\"a\": 1}")
        .file("docs/specs/login/complexity.json", "{");
    let report = spec.standing().report;
    assert_eq!(report[0], "Partial resume possible: Spec Pipeline, login");
    assert!(report.iter().any(|it| it.starts_with("  2. complexity: ")), "{report:#?}");
}

#[test]
fn what_is_given_up_is_kept_where_no_search_looks_and_its_story_can_begin_again() {
    let told = project().story("4.2", "In Progress").state("3");
    let before = told.files["docs/stories/4.2.story.md"].0.clone();
    let CleanUp { moves, resets } = clean(&told);
    let [(from, to)] = moves.as_slice() else { panic!("{moves:?}") };
    assert_eq!(from, STATE);
    assert_eq!(to, ".nexos/workflow-state/archive/20260217T120000000000Z/run-state.yaml");
    let [reset] = resets.as_slice() else { panic!("{resets:?}") };
    assert_eq!(reset.what, "story 4.2: InProgress -> Ready");
    let Change::Replace { path, bytes } = &reset.change else { panic!("{reset:?}") };
    let text = String::from_utf8(bytes.clone()).unwrap();
    let row = "| 2026-02-17 | onward | Status: Ready, its run was given up |\n";
    assert_eq!(text, before.replace("In Progress", "Ready") + row);
    let state = told.files[STATE].0.clone();
    let after = told.file(path, text).without(STATE).file(to, state);
    assert!(after.sites().iter().all(|it| it.by_name_only), "{:?}", after.sites());
}

#[test]
fn of_a_loop_and_an_epic_the_same_is_kept_and_a_story_that_is_over_stays_as_it_is() {
    let qa = clean(&project().story("2.1", "In Review").qa(2, "REJECT+"));
    assert_eq!(qa.moves[0].0, LOOP);
    assert!(qa.moves[0].1.starts_with("qa/2.1/archive/"), "{qa:?}");
    assert_eq!(qa.resets[0].what, "story 2.1: InReview -> Ready");
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=completed", "3.2=in_progress", "3.3=pending"])];
    let epic = project().story("3.1", "Done").story("3.2", "In Progress");
    let epic = clean(&epic.story("3.3", "Ready").epic(1, waves));
    let what: Vec<&str> = epic.resets.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(what, ["story 3.2: InProgress -> Ready"], "3.1 is over, 3.3 was not begun");
    let spec = project().file("docs/specs/login/requirements.json", "{}");
    assert_eq!(spec.told().clean_up(now()), None, "its artifacts are its state");
    let alone = clean(&project().story("4.2", "In Progress"));
    assert_eq!((alone.moves.len(), alone.resets.len()), (0, 1));
}

#[test]
fn a_run_that_a_person_ends_says_so_in_its_own_state() {
    let story = project().story("4.2", "In Progress").state("3");
    let [(path, text)] = cancelled(&story).try_into().unwrap();
    assert_eq!(path, STATE);
    assert!(text.starts_with(&story.files[STATE].0.replace("11:15:00Z", "")[..40]), "{text}");
    assert!(text.contains("\nstatus: aborted\n") && text.contains("\naborted_at: "), "{text}");
    let ended = story.file(STATE, text);
    assert!(ended.codes().contains(&"run-over".to_owned()), "{:?}", ended.codes());

    let waves: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["3.1=in_progress"])];
    let epic = project().story("3.1", "Ready").epic(1, waves);
    let [(path, text)] = cancelled(&epic).try_into().unwrap();
    assert_eq!(path, ".aiox/epic-3-state.yaml");
    assert!(text.contains("  status: aborted\n"), "{text}");
    assert_eq!(epic.clone().file(&path, text).line(), epic.line(), "it goes on where it was");

    let qa = project().story("2.1", "In Review").qa(2, "REJECT+");
    let [(_, text)] = cancelled(&qa).try_into().unwrap();
    let map: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(map["status"], "stopped", "{text}");
    assert!(map["stoppedAt"].is_string(), "{text}");
    assert_eq!(cancelled(&project().story("4.2", "Done").state("4")), [], "it is complete");
    assert_eq!(cancelled(&project().story("4.2", "In Progress")), [], "it has no state");
}

#[test]
fn a_loop_whose_story_is_being_closed_is_no_conflict() {
    let told = project().story("2.1", "Done").qa(2, "REJECT+");
    assert_eq!(told.codes(), ["status-disagrees"]);
    let text = told.files[LOOP].0.replacen('{', "{\"closingAt\":\"2026-02-17T11:30:00Z\",", 1);
    let closing = told.file(LOOP, text);
    assert_eq!(closing.codes(), [""; 0]);
    assert_eq!(closing.line(), "qa-loop:review 2 review[2]", "its approval is still to be given");
}

/// Each kind of run says what it refers to, and every phase that is left.
#[test]
fn every_workflow_tells_what_it_refers_to_and_what_lies_ahead() {
    let waves: &[(&str, &str, &[&str])] =
        &[("completed", "approved", &["3.1=completed"]), ("in_progress", "-", &["3.4=pending"])];
    let chain = crate::builder::story_text("3.4", "Ready") + "\n## Dependencies\n\n3.1\n";
    let epic = project().story("3.1", "Done").file("docs/stories/3.4.story.md", chain);
    let told = epic.epic(2, waves).told().preflight().unwrap();
    let files: Vec<&str> = told.files.iter().map(|it| it.path.as_str()).collect();
    let stories = ["docs/stories/3.1.story.md", "docs/stories/3.4.story.md"];
    assert_eq!(files, [".aiox/epic-3-state.yaml", stories[0], stories[1]]);
    let statuses: Vec<&str> = told.statuses.iter().map(|it| it.verdict.as_str()).collect();
    assert_eq!(statuses, ["consistent", "validated while paused; fine"]);
    let links: Vec<(&str, &str)> =
        told.dependencies.iter().map(|it| (it.after.as_str(), it.verdict.as_str())).collect();
    assert_eq!(links, [("story 3.1", "done"), ("wave 1", "done")]);
    assert_eq!(
        told.ahead,
        [
            "wave 2: story 3.4, after story 3.1: validate, implement, review",
            "wave 2: Wave Gate by @architect",
            "wave 2: merge 3.4",
            "wave 2: Checkpoint by @master: GO, PAUSE, REVIEW or ABORT",
            "Final Gate by @architect"
        ]
    );
    let qa = project().story("2.1", "In Review").qa(4, "REJECT+ REJECT+ REJECT+ REJECT");
    let told = qa.told().preflight().unwrap();
    let review = "5. Review by @qa, then, if rejected, Fix by @dev";
    assert_eq!(told.ahead, ["4. Fix by @dev", review, "   after iteration 5: Escalate by @master"]);
    let spec = project()
        .file("docs/specs/login/requirements.json", "{\"a\":1}")
        .file("docs/specs/login/complexity.json", "{\"class\":\"SIMPLE\"}");
    let told = spec.told().preflight().unwrap();
    assert_eq!(told.files.len(), 2);
    assert_eq!(told.ahead[..2], ["4. Write Spec by @pm", "5. Critique by @qa"]);
    assert_eq!(told.since, None, "no state tells when");
    let links: Vec<&str> = told.dependencies.iter().map(|it| it.verdict.as_str()).collect();
    assert_eq!(links, ["done", "done", "open"]);
}
