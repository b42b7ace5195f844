//! What is found wrong: one project for each finding.

use onward_core::{finding::Severity, plan::Status};
use onward_dialects::{Since, sdlc::SDLC, seam::Dialect as _};

use crate::builder::{LOOP, Project, STATE, at, project, story_text};

fn severity(it: &Project, code: &str) -> Severity {
    let all = it.findings();
    let found = all.iter().find(|it| it.code == code);
    found.unwrap_or_else(|| panic!("{code} in {all:#?}")).severity()
}

#[test]
fn the_table_of_discrepancies() {
    let epic = |says: &str, story: &str| {
        let member = format!("3.4={says}");
        project().story("3.4", story).epic(1, &[("in_progress", "-", &[member.as_str()])])
    };
    let none = Vec::<String>::new();
    assert_eq!(epic("in_progress", "In Progress").codes(), none);
    assert_eq!(epic("pending", "Ready").codes(), none, "validated while it was paused");
    assert_eq!(severity(&epic("in_progress", "Done"), "status-disagrees"), Severity::Blocking);
    assert_eq!(severity(&epic("in_review", "Done"), "status-disagrees"), Severity::Blocking);
    assert_eq!(severity(&epic("in_progress", "Draft"), "status-disagrees"), Severity::Warning);
    assert_eq!(epic("pending", "In Progress").codes(), ["pointer-behind-evidence"]);
    assert_eq!(epic("in_progress", "Superseded").codes(), ["unknown-status"]);
    let odd = epic("perhaps", "Ready");
    assert_eq!(odd.codes(), ["odd-value"]);
    let qa = project().story("2.1", "Done").qa(2, "REJECT+");
    assert_eq!(severity(&qa, "status-disagrees"), Severity::Blocking, "QA completed outside");
}

#[test]
fn the_pointer_is_held_against_what_is_done() {
    let story = |status: &str| project().story("4.2", status);
    assert_eq!(story("In Progress").state("3").codes(), [""; 0]);
    assert_eq!(story("In Progress").state("4").codes(), ["phase-ahead-of-evidence"]);
    let behind = story("Ready for Review").state("3");
    assert_eq!(
        behind.codes(),
        ["pointer-behind-evidence"],
        "the story says it, and that is enough"
    );
    assert_eq!(behind.line(), "sdc:qa-gate 4 qa-gate");
    assert_eq!(story("In Progress").state("soon").codes(), ["missing-current-phase"]);
    // As the original's executor leaves it: it has no phase in which a story is created.
    let results = ["1_validation", "2_development", "3_self_healing", "4_quality_gate", "5_push"];
    let results = results.map(|it| format!("  {it}: {{status: completed}}\n")).concat();
    let text = format!(
        "workflowId: development-cycle\ncurrentPhase: 3_self_healing\ncurrentStory: \
         4.2\nlastUpdated: 2026-02-17T11:15:00Z\nphaseResults:\n{results}  6_checkpoint: {{status: \
         completed, decision: GO"
    );
    let ended = story("In Progress").file(STATE, format!("{text}}}\n"));
    assert_eq!(ended.codes(), ["pointer-behind-evidence"], "the results count");
    let asked = story("In Progress").file(STATE, format!("{text}, awaiting_input: true}}\n"));
    assert_eq!(asked.point().code, "sdc:checkpoint");
    let over = story("Done").state("4");
    let text = over.files[STATE].0.clone() + "status: completed\n";
    assert_eq!(over.file(STATE, text).codes(), [""; 0], "both say so");
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=in_progress"]), ("pending", "-", &["3.2=pending"])];
    let ahead = project().story("3.1", "Ready").story("3.2", "Ready").epic(2, waves);
    assert_eq!(ahead.codes(), ["phase-ahead-of-evidence"]);
    let qa = project().story("2.1", "Review").qa(1, "REJECT+ REJECT");
    assert_eq!(qa.codes(), ["pointer-behind-evidence"]);
    assert_eq!(
        project().story("2.1", "Review").qa(4, "REJECT+").codes(),
        ["phase-ahead-of-evidence"]
    );
}

#[test]
fn files_that_are_gone_are_critical_or_not() {
    let gone = project().story("2.1", "Review").qa(1, "").without("docs/stories/2.1.story.md");
    assert_eq!(severity(&gone, "missing-artifact"), Severity::Blocking);
    let text = "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nartifacts:\n  - \
                docs/notes/plan.md\n  - ../outside.md\ntemplates: [templates/x.md]\n";
    let named = project().story("4.2", "InProgress").file(STATE, text);
    assert_eq!(named.codes(), ["missing-artifact", "path-refused", "missing-artifact"]);
    assert_eq!(severity(&named, "missing-artifact"), Severity::Warning);
    let waves: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["3.1=in_progress"])];
    let plan = project().story("3.1", "Ready").epic(1, waves);
    let path = ".aiox/epic-3-state.yaml";
    let text = plan.files[path].0.replace("epicId: 3", "epicId: 3\n  execution_plan: docs/P.yaml");
    assert_eq!(plan.file(path, text).codes(), ["missing-artifact"]);
    let gap = project().file("docs/specs/a/spec.md", "# x\n\ny\n");
    assert_eq!(gap.codes(), ["missing-artifact", "missing-artifact"]);
}

#[test]
fn a_story_that_was_edited_since_is_told_and_its_scope_blocks() {
    let base = project().story("4.2", "InProgress").state("3");
    let logged = story_text("4.2", "InProgress") + "| 2026-02-18 | dev | Dev Notes updated |\n";
    let logged = base.clone().file("docs/stories/4.2.story.md", logged);
    let finding = logged.findings().into_iter().find(|it| it.code == "artifact-changed").unwrap();
    assert!(finding.message.contains("Dev Notes updated"), "{}", finding.message);
    let text = base.files[STATE].0.clone();
    let (page, path) = (story_text("4.2", "InProgress"), "docs/stories/4.2.story.md");
    let later = base.clone().dated(STATE, text.clone(), "2026-02-17T11:15:00Z");
    let later = later.dated(path, page.clone(), "2026-02-17T11:40:00Z");
    assert_eq!(later.codes(), ["artifact-changed"]);
    let copied = base.clone().dated(STATE, text, "2026-02-17T11:50:00Z");
    let copied = copied.dated(path, page.clone(), "2026-02-17T11:50:01Z");
    assert_eq!(copied.codes(), [""; 0], "one copy made both");
    let mut committed = base.clone();
    committed.then.insert(path.into(), page.replace("It works.", "It works fast."));
    assert_eq!(committed.codes(), ["scope-changed"]);
    assert_eq!(severity(&committed, "scope-changed"), Severity::Blocking);
    let mut noted = base.clone();
    noted.then.insert(path.into(), page.replace("## Dev Notes\n\n-", "## Dev Notes\n\nolder"));
    assert!(noted.findings()[0].message.contains("dev notes"), "{:?}", noted.findings());
    let mut same = base;
    same.then.insert(path.into(), page);
    assert_eq!(same.codes(), [""; 0]);
}

/// A file that a story lists, written at this time of the day that the state is of.
fn listed(
    base: Project,
    id: &str,
    commits: &[&str],
    is_dirty: bool,
    hour: Option<&str>,
) -> Project {
    let path = format!("docs/stories/{id}.story.md");
    let text = base.files[&path].0.clone() + "\n## File List\n\n- `src/login.rs` (new)\n";
    let modified = hour.map(|it| at(&format!("2026-02-17T{it}:00Z")));
    let commits = commits.iter().map(|it| (*it).to_owned()).collect();
    let mut told = base.file(&path, text);
    told.since.insert("src/login.rs".into(), Since { commits, is_dirty, modified });
    told
}

/// By a commit or without one, and by who was at work: the rows of its table.
#[test]
fn files_of_a_story_that_other_work_changed_are_told_with_their_severity() {
    let story = |status: &str, phase: &str| project().story("4.2", status).state(phase);
    let (at_work, at_rest) = (story("InProgress", "3"), story("InReview", "4"));
    let code = "external-modification";
    for base in [&at_work, &at_rest] {
        let it = listed(base.clone(), "4.2", &["1a2b3c4 mend the login"], false, Some("11:40"));
        assert_eq!(it.codes(), [code]);
        assert_eq!(severity(&it, code), Severity::Warning);
        let finding = it.findings().remove(0);
        assert!(finding.message.contains("src/login.rs, of story 4.2"), "{}", finding.message);
        assert!(finding.message.contains("1a2b3c4 mend the login"), "{}", finding.message);
        assert_eq!(finding.path.as_deref(), Some("src/login.rs"));
        let kept = listed(base.clone(), "4.2", &["1a2b3c4 saved it"], false, Some("11:10"));
        assert_eq!(kept.codes(), [""; 0], "committed since, and as the run left it");
        let gone = listed(base.clone(), "4.2", &["1a2b3c4 away with it"], false, None);
        assert_eq!(severity(&gone, code), Severity::Warning);
    }
    let dirty = |base: &Project| listed(base.clone(), "4.2", &[], true, Some("11:40"));
    assert_eq!(severity(&dirty(&at_rest), code), Severity::Warning, "no agent of it edits there");
    assert_eq!(severity(&dirty(&at_work), code), Severity::Info, "the agent itself may have");
    assert_eq!(listed(at_rest, "4.2", &[], true, Some("11:14")).codes(), [""; 0]);
    let state = at_work.files[STATE].0.clone();
    let copied = dirty(&at_work.clone().dated(STATE, state, "2026-02-17T11:40:10Z"));
    assert_eq!(copied.codes(), [""; 0], "one copy made both");
    let over = listed(project().story("4.2", "Done").state("3"), "4.2", &["x y"], false, None);
    assert!(!over.codes().contains(&code.to_owned()), "nothing builds on it");
    let qa = listed(project().story("2.1", "Review").qa(2, "REJECT+"), "2.1", &[], true, None);
    assert_eq!(severity(&qa, code), Severity::Warning, "{:?}", qa.findings());
    let waves: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["3.1=in_progress"])];
    let epic = project().story("3.1", "InProgress").epic(1, waves);
    let epic = listed(epic, "3.1", &["1a2b3c4 x"], false, Some("11:40"));
    assert_eq!(severity(&epic, code), Severity::Warning);
}

/// The three ways in which real stories write it.
#[test]
fn a_file_list_is_read_in_every_form_that_was_seen() {
    let rows =
        ["| File | Action |", "|---|---|", "| `src/a.js` | CREATED |", "| src/b.js | see `make` |"];
    let items = [
        "- [src/c d.js](./c.js)",
        "- [docs/x.md](/Users/ann/docs/x.md)",
        "- **src/e.rs**: new",
        "- `README`, `Makefile.am`",
        "- ../outside.rs",
        "- /etc/passwd",
        "- https://example.com/a.html",
        "- nothing yet, v1.2",
        "- docs/stories/4.2.story.md",
    ];
    let (rows, items) = (rows.join("\n"), items.join("\n"));
    let text = format!("### File List\n\n{rows}\n\n{items}\n\n## QA Results\n\n- `src/not.rs`\n");
    let text = story_text("4.2", "InProgress") + &text;
    let told = project().file("docs/stories/4.2.story.md", text).state("3");
    let watch = SDLC.watch(&told.site(), &told.files()).unwrap();
    assert_eq!(watch.since, at("2026-02-17T11:15:00Z"));
    assert_eq!(watch.paths, ["Makefile.am", "docs/x.md", "src/a.js", "src/b.js", "src/e.rs"]);
    let implied = told.without(STATE);
    assert_eq!(SDLC.watch(&implied.site(), &implied.files()), None, "no moment is known");
}

/// One of the three shapes of a loop tells days alone.
#[test]
fn a_day_is_no_moment_and_the_time_of_the_file_says_when_on_it() {
    let text = "{\"story_id\":\"2.1\",\"current_iteration\":1,\"max_iterations\":5,\"history\":[\
                {\"iteration\":1,\"date\":\"2026-02-17\",\"verdict\":\"REJECT\"}]}";
    let (path, page) = ("docs/stories/2.1.story.md", story_text("2.1", "In Review"));
    let told = |story: &str, written: &str| {
        project().dated(path, &page, story).dated("qa/loop-status.json", text, written)
    };
    let before = told("2026-02-17T09:00:00Z", "2026-02-17T11:00:00Z");
    assert_eq!(before.codes(), [""; 0]);
    assert_eq!(before.standing().last_event.unwrap().at, at("2026-02-17T11:00:00Z"));
    assert_eq!(told("2026-02-17T11:30:00Z", "2026-02-17T11:00:00Z").codes(), ["artifact-changed"]);
    let copied = told("2026-02-16T09:00:00Z", "2026-02-18T11:00:00Z");
    assert_eq!(copied.standing().last_event.unwrap().at, at("2026-02-17T23:59:59.999Z"));
}

#[test]
fn another_workflow_on_the_same_story_blocks() {
    let other = "workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nstarted_at: \
                 2026-02-17T11:40:00Z\nupdated_at: 2026-02-17T11:10:00Z\n";
    let both = project().story("4.2", "InProgress").state("3");
    let both = both.file(".nexos/workflow-state/zz-state.yaml", other);
    assert_eq!(severity(&both, "other-workflow"), Severity::Blocking);
}

#[test]
fn a_story_that_now_waits_for_another_is_told() {
    let text = story_text("3.1", "Ready") + "\n## Dependencies\n\n- 9.9\n";
    let told = project().file("docs/stories/3.1.story.md", text).story("9.9", "Draft");
    let told = told.epic(1, &[("in_progress", "-", &["3.1=in_progress"])]);
    assert_eq!(told.codes(), ["new-dependency"]);
    assert_eq!(told.story("9.9", "Done").codes(), [""; 0]);
    let path = "docs/stories/4.2.story.md";
    let page = story_text("4.2", "InProgress");
    let mut lone = project().story("9.9", "Draft").state("3");
    lone = lone.dated(path, page.clone() + "\n## Dependencies\n\n- 9.9\n", "2026-02-17T11:40:00Z");
    lone.then.insert(path.into(), page);
    assert_eq!(lone.codes(), ["new-dependency", "artifact-changed"]);
    assert_eq!(lone.story("9.9", "Done").codes(), ["artifact-changed"]);
}

#[test]
fn a_live_lock_blocks_and_a_dead_one_is_told() {
    let base = project().story("4.2", "InProgress").state("3");
    let lock = |resource: &str, created: &str, pid: u32| {
        let text = format!(
            "pid: {pid}\nowner: orchestrator\ncreated_at: \"{created}\"\nttl_seconds: 300\n\
             resource: {resource}\n"
        );
        let mut it = base.clone().story("5.1", "Ready").file(".aiox/locks/a.lock", text);
        it.alive = vec![7];
        it
    };
    let live = lock("4.2", "2026-02-17T11:58:00Z", 7);
    assert_eq!(live.codes(), ["still-running"]);
    assert_eq!(live.standing().status, Status::Running);
    assert_eq!(
        lock("4.2", "2026-02-17T11:58:00Z", 8).codes(),
        ["stale-lock"],
        "its process is gone"
    );
    assert_eq!(lock("4.2", "2026-02-17T11:50:00Z", 7).codes(), ["stale-lock"], "too old");
    assert_eq!(lock("5.1", "2026-02-17T11:58:00Z", 7).codes(), [""; 0], "another story's");
    assert_eq!(lock("workflow", "2026-02-17T11:58:00Z", 7).codes(), ["still-running"]);
}

#[test]
fn ages_and_aborts_are_told() {
    let aged = |at: &str| {
        let text =
            format!("workflow: sdc\ncurrent_story: 4.2\ncurrent_phase: 3\nupdated_at: {at}\n");
        project().story("4.2", "InProgress").file(STATE, text)
    };
    assert_eq!(aged("2026-02-10T12:00:00Z").codes(), [""; 0], "seven days are not stale");
    assert_eq!(aged("2026-02-09T12:00:00Z").codes(), ["stale-age"]);
    assert_eq!(aged("2026-03-01T12:00:00Z").codes(), ["clock-in-future"]);
    let aborted = aged("2026-02-17T11:00:00Z\nstatus: aborted");
    assert_eq!(aborted.codes(), ["was-aborted"]);
    let blocked = project().story("4.2", "Blocked").state("3");
    assert_eq!(blocked.codes(), ["story-blocked"]);
}

#[test]
fn a_state_that_cannot_be_read_is_rebuilt_and_asked_about() {
    let story = project().story("4.2", "Ready for Review");
    let broken = story.clone().file(".nexos/workflow-state/4.2-state.yaml", "a: [");
    assert_eq!(broken.line(), "sdc:qa-gate 4 qa-gate");
    assert_eq!(broken.codes(), ["state-rebuilt"]);
    assert!(broken.standing().asks.is_some());
    let lone = story.file(".nexos/workflow-state/epic-x-state.yaml", "\u{0}");
    assert_eq!(lone.sites().len(), 2, "an epic that nothing else knows, and the story");
    let qa = project().story("2.1", "In Review").file(LOOP, "{");
    assert_eq!(qa.line(), "qa-loop:review 1 review[1]");
    let waves: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["3.1=in_progress"])];
    let epic = project().story("3.1", "Ready").epic(1, waves);
    let saved = epic.files[".aiox/epic-3-state.yaml"].0.clone();
    let epic = epic.file(".aiox/epic-3-state.yaml", "epic_state: [");
    let kept = epic.clone().file(".aiox/epic-3-state.yaml.bak", saved);
    assert_eq!(kept.line(), "epic:stories 1 wave[1]/story[3.1]");
    let plan = "execution:\n  epicId: 3\n  waves:\n    1: {stories: [3.1, 3.2]}\n";
    let planned = epic.clone().file("docs/epics/e/EXECUTION.yaml", plan).story("3.2", "Done");
    assert_eq!(planned.line(), "epic:stories 1 wave[1]/story[3.1]");
    assert_eq!(planned.codes(), ["state-rebuilt"], "what cannot be read says nothing else");
    let nothing = epic.without("docs/stories/3.1.story.md");
    assert_eq!(nothing.codes(), ["state-rebuilt", "state-unreadable"]);
}
