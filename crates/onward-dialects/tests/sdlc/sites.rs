//! Which runs are there, and in which order.

use onward_dialects::{Files, sdlc::SDLC, seam::Dialect as _};

use serde_json::json;

use crate::builder::{LOOP, Project, STATE, at, now, project, story_text};

fn names(it: &Project) -> Vec<String> {
    it.sites().into_iter().map(|it| it.name).collect()
}

/// Those that may be chosen without a person's word.
fn candidates(it: &Project) -> Vec<String> {
    it.sites().into_iter().filter(|it| !it.by_name_only).map(|it| it.name).collect()
}

#[test]
fn what_is_finished_is_listed_beside_what_is_open_and_is_no_candidate() {
    let waves: &[(&str, &str, &[&str])] = &[("completed", "APPROVE", &["3.1=completed"])];
    let done = project().story("3.1", "Done").epic(1, waves);
    let text = done.files[".aiox/epic-3-state.yaml"].0.replace("active", "completed");
    let done = done.file(".aiox/epic-3-state.yaml", text).story("4.2", "In Progress");
    assert_eq!(names(&done), ["epic-3", "sdc-4.2"]);
    assert_eq!(candidates(&done), ["sdc-4.2"]);
}

#[test]
fn of_two_states_of_one_story_the_newer_one_counts_whatever_they_are_called() {
    let state = |phase: u32, at: &str| {
        format!("workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: {phase}\nupdated_at: {at}\n")
    };
    let (early, late) = ("2026-02-17T09:00:00Z", "2026-02-17T11:00:00Z");
    let path = |name: &str| format!(".nexos/workflow-state/{name}-state.yaml");
    for (newer, older) in [("a", "z"), ("z", "a")] {
        let two = project()
            .story("4.2", "In Progress")
            .file(&path(newer), state(3, late))
            .file(&path(older), state(2, early));
        assert_eq!(names(&two), ["sdc-4.2"]);
        assert_eq!(two.site().inputs["state"], path(newer).as_str());
        assert_eq!(two.codes(), [""; 0]);
    }
}

#[test]
fn six_sources_in_the_order_of_how_much_they_say() {
    let all = project()
        .epic(1, &[("in_progress", "-", &["3.1=in_progress"])])
        .story("3.1", "In Progress")
        .story("2.1", "In Review")
        .qa(3, "REJECT+ REJECT+")
        .story("4.2", "In Progress")
        .state("3")
        .story("5.1", "In Progress")
        .story("6.1", "Ready for Review")
        .file("docs/specs/login/requirements.json", "{}");
    assert_eq!(
        names(&all),
        ["epic-3", "qa-loop-2.1", "sdc-4.2", "sdc-5.1", "sdc-6.1", "spec-login"]
    );
}

#[test]
fn a_story_that_a_more_specific_state_names_is_not_listed_twice() {
    let looped = project().story("2.1", "In Review").qa(1, "");
    assert_eq!(names(&looped), ["qa-loop-2.1"]);
    let state = looped.files["qa/2.1/loop-status.json"].0.clone();
    let text = "workflow: sdc\ncurrent_story: 2.1\ncurrent_phase: 4\n";
    assert_eq!(names(&looped.clone().file(STATE, text)), ["qa-loop-2.1"]);
    let waves: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["2.1=in_progress"])];
    assert_eq!(names(&looped.clone().epic(1, waves)), ["epic-3"]);
    let over: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["2.1=completed", "2.2=pending"])];
    assert_eq!(names(&looped.epic(1, over)), ["epic-3", "qa-loop-2.1"], "{state}");
}

#[test]
fn the_three_names_of_the_state_directory_are_one_thing() {
    for home in [".nexos", ".aios", ".aiox"] {
        let text = "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\n";
        let told = project().story("4.2", "InProgress");
        let told = told.file(&format!("{home}/workflow-state/x-state.yaml"), text);
        assert_eq!(told.line(), "sdc:implement 3 implement", "{home}");
        assert_eq!(told.site().inputs["state"], format!("{home}/workflow-state/x-state.yaml"));
    }
    let json = "{\"workflowId\":\"x\",\"storyId\":\"4.2\",\"status\":\"in_progress\"}";
    let json = project().story("4.2", "Review").file(".aiox/master-orchestrator/4.2.json", json);
    assert_eq!(json.line(), "sdc:qa-gate 4 qa-gate");
    let session = "session_state:\n  version: 1.2\n  last_updated: 2026-02-17T11:15:00Z\n  \
                   progress:\n    current_story: 4.2\n  workflow:\n    current_phase: implement\n";
    let session = project().story("4.2", "Ready").file("docs/stories/.session-state.yaml", session);
    assert_eq!(session.line(), "sdc:implement 3 implement");
}

/// The original's executor notes the path of the story, relative or not.
#[test]
fn a_state_may_name_its_story_by_the_path_of_its_file() {
    for named in [
        "docs/stories/epic-3/3.2.log-in.story.md",
        "/users/ann/app/docs/stories/epic-3/3.2.log-in.story.md",
        "3.2.log-in.story.md",
    ] {
        let text = format!(
            "workflowId: development-cycle\ncurrentPhase: 2_development\ncurrentStory: \
             {named}\nlastUpdated: 2026-02-17T11:15:00.000Z\nphaseResults:\n  1_validation:\n    \
             status: completed\n"
        );
        let page = story_text("3.2", "In Progress");
        let told = project().file("docs/stories/epic-3/3.2.log-in.story.md", page);
        let told = told.file(".aiox/workflow-state/3.2.log-in-state.yaml", text);
        assert_eq!(names(&told), ["sdc-3.2"], "{named}");
        assert_eq!(told.line(), "sdc:implement 3 implement", "{named}");
        assert_eq!(told.codes(), [""; 0], "{named}");
        let gone = told.without("docs/stories/epic-3/3.2.log-in.story.md");
        assert_eq!(
            (names(&gone), gone.codes()),
            (vec!["sdc-3.2".to_owned()], vec!["missing-artifact".to_owned()])
        );
    }
}

/// Beside the list of the runs there are the directories of specs, with times of their own.
#[test]
fn a_spec_is_as_young_as_its_last_file_and_an_empty_one_as_its_directory() {
    let spec = project().dated("docs/specs/login/", "", "2026-02-17T11:59:00Z");
    assert_eq!(spec.site().last_activity, Some(at("2026-02-17T11:59:00Z")));
    let spec = spec.dated("docs/specs/login/requirements.json", "{}", "2026-02-12T12:00:00Z");
    assert_eq!(spec.site().last_activity, Some(at("2026-02-12T12:00:00Z")));
}

/// So that what a story asked for then can be held against what it asks for now.
#[test]
fn a_story_is_looked_up_as_it_was_when_its_state_was_last_written() {
    let then = |it: &Project| SDLC.moments(&it.site(), &it.files());
    let story = project().story("4.2", "InProgress").story("4.20", "Done");
    let path = |id: &str| format!("docs/stories/{id}.story.md");
    let wanted = vec![(path("4.2"), at("2026-02-17T11:15:00Z"))];
    for key in ["updated_at", "paused_at", "lastUpdated", "last_updated", "interrupted_at"] {
        let text = format!(
            "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\n{key}: 2026-02-17T11:15:00Z\n"
        );
        assert_eq!(then(&story.clone().file(STATE, text)), wanted, "{key}");
    }
    let turn = "{\"story_id\":\"4.2\",\"current_iteration\":1,\"history\":[{\"iteration\":1,\
                \"date\":\"2026-02-17T11:15:00Z\",\"verdict\":\"REJECT\"}]}";
    let turn = story.clone().story("4.2", "InReview").file("qa/loop-status.json", turn);
    assert_eq!(then(&turn), wanted);
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=completed", "3.2=in_progress"])];
    let epic = project().story("3.1", "Done").story("3.2", "InProgress").epic(1, waves);
    assert_eq!(then(&epic), [(path("3.2"), at("2026-02-17T10:00:00Z"))]);
}

#[test]
fn what_is_over_is_found_by_its_place_alone() {
    let done = project().story("4.2", "Done");
    assert!(done.site().by_name_only);
    assert_eq!(done.line(), "complete -");
    // Its own state says otherwise: the user is to know.
    let contested = done.state("4");
    assert!(!contested.site().by_name_only);
    assert_eq!(contested.line(), "complete -");
    assert_eq!(contested.codes(), ["status-disagrees"]);
    let other = contested.story("5.1", "In Progress");
    assert_eq!(names(&other), ["sdc-4.2", "sdc-5.1"]);
    assert_eq!(candidates(&other), ["sdc-5.1"]);
    assert_eq!(names(&project()), Vec::<String>::new());
    let empty = "{\"currentSession\":null,\"lastAgent\":null,\"lastWorkflow\":null}";
    assert_eq!(names(&project().file(".aiox/workflow-state/session.json", empty)), [""; 0]);
    let readme = project().file("docs/stories/README.md", "# Stories\n\nStatus: In Progress\n");
    assert_eq!(names(&readme), [""; 0]);
}

#[test]
fn a_loop_whose_number_cannot_be_one_goes_on_and_an_idle_one_hides_no_story() {
    let looped = |number: &str| {
        let head = format!("{{\"storyId\":\"2.1\",\"currentIteration\":{number}");
        let text = format!("{head},\"maxIterations\":5,\"history\":[]}}");
        project().story("2.1", "In Review").file("qa/2.1/loop-status.json", text)
    };
    for number in ["1000000000000000000", "-1", "\"many\""] {
        let lost = looped(number);
        assert_eq!(lost.line(), "qa-loop:review 1 review[1]", "{number}");
        assert_eq!(lost.codes(), ["odd-value"], "{number}");
    }
    assert_eq!(names(&looped("0")), ["sdc-2.1"], "nothing of the loop was begun");
    for text in [
        "{\"storyId\":\"2.1\",\"currentIteration\":0,\"status\":\"in_progress\",\"history\":[]}",
        "{\"story_id\":\"2.1\",\"current_iteration\":0,\"status\":\"active\",\"history\":[]}",
        "{\"storyId\":\"2.1\",\"iteration\":0,\"status\":\"running\",\"history\":[]}",
    ] {
        let begun = project().story("2.1", "In Review").file("qa/2.1/loop-status.json", text);
        assert_eq!(names(&begun), ["qa-loop-2.1"], "it says that it was begun: {text}");
        assert_eq!(begun.line(), "qa-loop:review 1 review[1]", "{text}");
    }
}

#[test]
fn a_plan_that_cannot_be_read_is_named_and_the_state_counts() {
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=completed", "3.2=pending"])];
    let path = "docs/epics/epic-3/EXECUTION.yaml";
    let told = project().epic(1, waves).story("3.1", "Done").story("3.2", "Ready");
    let state = told.files[".aiox/epic-3-state.yaml"].0.clone();
    let state = state.replace("  mode:", &format!("  execution_plan: {path}\n  mode:"));
    let told = told.file(".aiox/epic-3-state.yaml", state).file(path, "x: [");
    assert_eq!(told.line(), "epic:stories 1 wave[1]/story[3.2]");
    let found = told.findings();
    let unread = found.iter().find(|it| it.code == "artifact-unproved").unwrap();
    assert_eq!(unread.path.as_deref(), Some(path));
}

#[test]
fn a_state_that_cannot_be_read_is_as_young_as_its_file() {
    let when = "2026-02-17T11:00:00Z";
    let told = project().dated(".aiox/epic-3-state.yaml", "epic_state: {{{", when);
    let sites = told.story("3.1", "In Progress").sites();
    let epic = sites.iter().find(|it| it.name == "epic-3").unwrap();
    assert_eq!(epic.last_activity, Some(at(when)), "autopilot takes the youngest");
}

#[test]
fn a_directory_for_a_spec_of_which_nothing_is_written_is_gathered() {
    let site = project().file("docs/specs/login/", "").site();
    assert_eq!((site.name.as_str(), site.workflow), ("spec-login", "spec"));
    let told = SDLC.read(&site, Files::default()).unwrap();
    assert_eq!(told.standing(now()).point.code, "spec:gather");
}

#[test]
fn a_story_is_known_by_its_heading_or_its_name() {
    for (path, heading, id) in [
        ("docs/stories/4.2.story.md", "Story 4.2: Log in", "4.2"),
        ("docs/stories/4.2.log-in.md", "Log in", "4.2"),
        ("docs/stories/epic-1/story-act-6-unify.md", "Story ACT-6: Unify", "ACT-6"),
        ("docs/stories/001.5.story.md", "Story 001.5: x", "001.5"),
        ("docs/stories/x/STORY-123.5-fix.md", "STORY-123.5: Fix", "STORY-123.5"),
        ("docs/stories/CODEINTEL-RP-001.md", "CODEINTEL-RP-001: x", "CODEINTEL-RP-001"),
    ] {
        let text = story_text("X", "In Progress").replace("Story X: Log in", heading);
        assert_eq!(project().file(path, text).site().inputs["story"], id, "{path}");
    }
}

#[test]
fn a_status_is_found_wherever_it_stands() {
    for head in [
        "**Status:** In Progress\n",
        "Status: in_progress\n",
        "- **Status**: 🚧 In Progress\n",
        "| Field | Value |\n|---|---|\n| **Status** | In Progress |\n",
        "## Status\n\n**Current:** In Progress\n",
        "## Status\n\nIn Progress\n",
        "### Status: In Progress\n",
        "## **Status:** In Progress\n",
        "> **Status:** In Progress\n> **Epic:** 4\n",
        "| ID | Status | Epic |\n|---|---|---|\n| 4.2 | 🚧 In Progress | 4 |\n",
        "## Status\n\n- [x] Rascunho\n- [x] Em andamento\n- [ ] Concluída\n",
    ] {
        let text = format!("# Story 4.2: x\n\n{head}\n## Story\n\ntext\n");
        let told = project().file("docs/stories/4.2.story.md", text);
        assert_eq!(told.line(), "sdc:implement 3 implement", "{head}");
    }
    let several = "# Story 4.2: x\n\n| ID | Status |\n|---|---|\n| 4.1 | Done |\n| 4.3 | Draft |\n";
    let told = project().file("docs/stories/4.2.story.md", several);
    assert_eq!(told.codes(), ["unknown-status"], "a table of other stories says nothing");
}

/// A person may name what a run is about instead of the run.
#[test]
fn a_run_is_known_by_the_files_that_speak_of_it() {
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=completed", "3.2=in_progress"])];
    let told = project().story("3.1", "Done").story("3.2", "InProgress").epic(1, waves);
    let told = told.story("4.2", "InProgress").state("3").story("2.1", "Review").qa(1, "");
    let told = told.file("docs/specs/login/requirements.json", "{\"a\": 1}");
    let about: Vec<(String, Vec<String>)> =
        told.sites().into_iter().map(|it| (it.name, it.about)).collect();
    let of = |name: &str| about.iter().find(|it| it.0 == name).map(|it| it.1.clone()).unwrap();
    assert_eq!(of("epic-3"), [".aiox/epic-3-state.yaml", "docs/stories/3.2.story.md"]);
    assert_eq!(of("sdc-4.2"), [STATE, "docs/stories/4.2.story.md"]);
    assert_eq!(of("qa-loop-2.1"), [LOOP, "docs/stories/2.1.story.md"]);
    assert_eq!(of("spec-login"), ["docs/specs/login/requirements.json"]);
    let draft = story_text("5.1", "Draft");
    let meant = SDLC.meant_by("docs/stories/5.1.story.md", draft.as_bytes()).unwrap();
    assert_eq!((meant.0, &meant.1["story"]), ("sdc", &json!("5.1")));
    assert_eq!(SDLC.meant_by("docs/notes/5.1.md", draft.as_bytes()), None);
}
