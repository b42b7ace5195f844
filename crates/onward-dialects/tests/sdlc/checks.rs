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

/// By any spelling of its start, by its last write, or by the time of its file, unless that is the
/// copy's.
#[test]
fn another_workflow_is_found_by_whatever_tells_when_it_began() {
    let base = project().qa(3, "REJECT+ REJECT+ -").story("2.1", "InReview");
    let (text, _) = base.files[LOOP].clone();
    let base = base.dated(LOOP, text, "2026-02-17T11:20:00Z");
    let with = |line: &str, time: &str| {
        let text = format!("workflow: sdc\ncurrent_story: 2.1\ncurrent_phase: 4\n{line}\n");
        base.clone().dated(".nexos/workflow-state/zz-state.yaml", text, time).codes()
    };
    let then = "2026-02-17T11:20:30Z";
    for key in [
        "started_at",
        "startedAt",
        "start_time",
        "startTime",
        "begun_at",
        "created_at",
        "createdAt",
    ] {
        assert_eq!(
            with(&format!("{key}: 2026-02-17T11:40:00Z"), then),
            ["other-workflow"],
            "{key}"
        );
        assert_eq!(with(&format!("{key}: 2026-02-17T11:00:00Z"), "2026-02-17T11:40:00Z"), [""; 0]);
    }
    assert_eq!(with("updated_at: 2026-02-17T11:40:00Z", then), ["other-workflow"]);
    assert_eq!(with("", "2026-02-17T11:40:00Z"), ["other-workflow"]);
    assert_eq!(with("", then), [""; 0], "both are of one copy");
    let state = project().story("4.2", "InProgress").state("3");
    let loop_of = |number: u32| {
        format!("{{\"storyId\": \"4.2\", \"currentIteration\": {number}, \"history\": []}}")
    };
    // A file that no loop was begun with says nothing.
    let idle = state.dated("qa/4.2/loop-status.json", loop_of(0), "2026-02-17T11:40:00Z");
    assert_eq!(idle.codes(), [""; 0]);
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
    assert_eq!(aborted.codes(), ["run-over"]);
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

/// A value that is none of what it should be is told with its field and its file, in every file
/// that is read.
#[test]
fn a_wrong_type_in_any_file_is_told_with_its_field_and_its_file() {
    let told = |it: &crate::builder::Project| -> Vec<(String, String)> {
        let odd = it.findings().into_iter().filter(|it| it.code == "odd-value");
        odd.map(|it| (it.path.unwrap_or_default(), it.message)).collect()
    };
    let state = |more: &str| {
        let base = project().story("4.2", "In Progress").state("3");
        let text = base.files[STATE].0.clone() + more;
        base.file(STATE, text)
    };
    assert_eq!(told(&state("")), []);
    for (more, field) in [
        ("status: [a]\n", "`status` is a list"),
        ("mode: wild\n", "`mode` says `wild`, which is not a mode"),
        ("context: 4\n", "`context` is a number"),
        ("context:\n  last_verdict: great\n", "`last_verdict` says `great`"),
        ("story_status: odd\n", "`story_status` says `odd`"),
        ("phaseResults: 3\n", "`phaseResults` is a number"),
        ("phases_completed: x\n", "`phases_completed` is text"),
        ("artifacts: 7\n", "`artifacts` is a number"),
        ("artifacts: [7]\n", "`artifacts` is a number"),
        ("templates: true\n", "`templates` is true or false"),
        ("started_at: soon\n", "`started_at` is text"),
    ] {
        let found = told(&state(more));
        assert_eq!(found.len(), 1, "{more}: {found:?}");
        assert!(found[0].1.starts_with(field), "{found:?}");
        assert_eq!(found[0].0, STATE);
    }
    let phase = project().story("4.2", "In Progress").state("[3]");
    assert!(told(&phase)[0].1.starts_with("`current_phase` is a list"));
    // A state that names no story is none, and its file is not forgotten.
    let lost = state("").files[STATE].0.replace("current_story: 4.2", "current_story: [4.2]");
    let lost = project().story("4.2", "In Progress").file(STATE, lost);
    assert!(lost.codes().contains(&"state-rebuilt".to_owned()), "{:?}", lost.codes());
    for (entry, field) in [
        (r#""verdict":"MAYBE""#, "`verdict` says `MAYBE`"),
        (r#""verdict":[]"#, "`verdict` is a list"),
        (r#""verdict":"REJECT","fixedAt":7"#, "`fixedAt` is a number"),
        (r#""verdict":"REJECT","fixed":"yes""#, "`fixed` is text"),
    ] {
        let text = format!(
            r#"{{"storyId":"2.1","currentIteration":1,"updatedAt":"2026-02-17T11:20:00Z",
            "history":[{{"iteration":1,{entry}}}]}}"#
        );
        let it = project().story("2.1", "In Review").file(crate::builder::LOOP, text);
        assert!(told(&it)[0].1.starts_with(field), "{entry}: {:?}", told(&it));
    }
    let epic = |from: &str, to: &str| {
        let waves: &[(&str, &str, &[&str])] = &[("in_progress", "-", &["3.4=in_progress"])];
        let base = project().story("3.4", "In Progress").epic(1, waves);
        let path = ".aiox/epic-3-state.yaml";
        let text = base.files[path].0.replace(from, to);
        base.file(path, text)
    };
    assert_eq!(told(&epic("x", "x")), []);
    for (from, to, field) in [
        ("total_waves: 1", "total_waves: [1]", "`total_waves` is a list"),
        ("mode: interactive", "mode: wild", "`mode` says `wild`"),
        ("updated_at: \"2026-02-17T10:00:00Z\"", "updated_at: 7", "`updated_at` is a number"),
        ("status: none", "status: odd", "`status` says `odd`, which is not a verdict"),
        ("name: W1", "name: [W1]", "`name` is a list"),
        ("          status: in_progress", "          status: [x]", "`status` is a list"),
    ] {
        let found = told(&epic(from, to));
        assert!(found.iter().any(|it| it.1.starts_with(field)), "{to}: {found:?}");
    }
    let path = ".aiox/epic-3-state.yaml";
    let empty = project().file(path, "epic_state:\n  epicId: 3\n  waves: 5\n");
    assert!(told(&empty)[0].1.starts_with("`waves` is a number"), "{:?}", told(&empty));
    let summary = empty.standing().point.summary;
    assert_eq!(summary, "Epic Execution for 3: no file names its waves and stories");
    let gate = |text: &str| {
        let base = project().story("4.2", "In Review").state("4");
        base.file("docs/qa/gates/4.2-x.yml", text)
    };
    for (text, field) in [
        ("storyId: 4.2\nverdict: GREAT\n", "`verdict` says `GREAT`"),
        ("storyId: 4.2\nverdict: [x]\n", "`verdict` is a list"),
        (":: [", "it cannot be read"),
    ] {
        let found = told(&gate(text));
        assert!(found[0].1.starts_with(field), "{text}: {found:?}");
        assert_eq!(found[0].0, "docs/qa/gates/4.2-x.yml");
    }
    let lock = state("").file(".aiox/locks/x.lock", ":: [");
    assert!(told(&lock)[0].1.starts_with("it cannot be read"));
    let spec = |complexity: &str| {
        let base = project().file("docs/specs/login/requirements.json", "{\"a\":1}");
        base.file("docs/specs/login/complexity.json", complexity)
    };
    assert!(told(&spec("{\"class\":[]}"))[0].1.contains("no class"));
    assert_eq!(told(&spec("{\"class\":\"COMPLEX\"}")), []);
}

#[test]
fn a_story_of_a_finished_wave_that_is_gone_is_told_and_stops_nothing() {
    let waves: &[(&str, &str, &[&str])] =
        &[("completed", "approved", &["3.1=completed"]), ("in_progress", "-", &["3.2=pending"])];
    let gone = project().story("3.2", "Ready").epic(2, waves);
    assert_eq!(gone.codes(), ["missing-artifact"]);
    assert_eq!(severity(&gone, "missing-artifact"), Severity::Warning);
    let finding = &gone.findings()[0];
    assert_eq!(finding.step.as_deref(), Some("wave[1]/story[3.1]"));
    assert_eq!(finding.path.as_deref(), Some("docs/stories/3.1.story.md"));
}

#[test]
fn values_of_another_type_are_told_wherever_they_stand() {
    let said = |it: &Project| {
        let all = it.findings().into_iter().filter(|it| it.code == "odd-value");
        all.map(|it| it.message).collect::<Vec<String>>()
    };
    let state = |more: &str| {
        let built = project().story("4.2", "In Progress").state("3");
        let text = built.files[STATE].0.clone() + more;
        built.file(STATE, text)
    };
    for (more, key) in [
        ("executor: [dev]\n", "executor"),
        ("qualityGate: {a: 1}\n", "qualityGate"),
        ("attemptCount: many\n", "attemptCount"),
        ("phaseResults: {1_validation: 7}\n", "1_validation"),
        ("phaseResults: {1_validation: {status: [done]}}\n", "status"),
        ("phaseResults: {1_validation: {completedAt: soon}}\n", "completedAt"),
        ("phaseResults: {1_validation: {awaiting_input: 'yes'}}\n", "awaiting_input"),
        ("phaseResults: {9_party: {status: completed}}\n", "phaseResults"),
    ] {
        let odd = said(&state(more));
        let wanted = format!("`{key}` ");
        assert!(matches!(odd.as_slice(), [one] if one.starts_with(&wanted)), "{more}: {odd:?}");
    }
    assert_eq!(
        said(&state("executor: dev\nattemptCount: 2\nphaseResults: {1_validation: ok}\n")),
        [""; 0]
    );
    let turn = |more: &str| {
        let text = format!(
            "{{\"storyId\": \"2.1\", \"currentIteration\": 1, \"history\": [{{\"iteration\": 1, \
             {more}}}]}}"
        );
        said(&project().story("2.1", "Ready for Review").file(LOOP, text))
    };
    for (more, key) in [
        ("\"reviewedAt\": 7", "reviewedAt"),
        ("\"date\": \"soon\"", "date"),
        ("\"issuesFound\": \"four\"", "issuesFound"),
        ("\"duration\": []", "duration"),
        ("\"findings_count\": {\"high\": \"two\"}", "high"),
    ] {
        let odd = turn(more);
        let wanted = format!("`{key}` ");
        assert!(matches!(odd.as_slice(), [one] if one.starts_with(&wanted)), "{more}: {odd:?}");
    }
    assert_eq!(turn("\"issuesFound\": 4, \"duration\": 3600000.5, \"findings_count\": 3"), [""; 0]);
    let front = |text: &str| {
        let story = format!("---\n{text}---\n\n{}", story_text("4.2", "In Progress"));
        project().file("docs/stories/4.2.story.md", story).state("3")
    };
    assert_eq!(said(&front("epic: [4]\n")), ["`epic` is a list, and should be text"]);
    let odd = said(&front("dependencies: {a: 1}\n"));
    assert_eq!(odd, ["`dependencies` is an object, and should be a list"]);
    assert_eq!(said(&front("epic: 4\ndependencies: [4.1]\n")), [""; 0]);
}

#[test]
fn a_state_in_which_no_progress_could_be_noted_blocks_before_anything_runs() {
    let built = project().story("3.1", "Ready");
    let file = |text: &str| built.clone().file(".aiox/epic-3-state.yaml", text);
    let odd =
        file("epic_state:\n  epicId: 3\n  waves:\n    1: &a {stories: {3.1: {}}}\n  more: *a\n");
    assert_eq!(severity(&odd, "state-unreadable"), Severity::Blocking);
    for empty in ["epic_state: []\n", "epic_state:\n", "epic_state: x\n"] {
        assert_eq!(file(empty).site().name, "epic-3", "{empty}");
        assert_eq!(severity(&file(empty), "state-unreadable"), Severity::Blocking, "{empty}");
    }
    let flow = file("epic_state: {epicId: 3, waves: {1: {stories: {3.1: {status: pending}}}}}\n");
    assert_eq!(flow.codes(), [""; 0]);
    assert_eq!(flow.line(), "epic:stories 1 wave[1]/story[3.1]");
}

/// A run of ours is known by what it was given: what its state names is asked for all the same.
#[test]
fn what_a_state_names_is_asked_for_however_its_run_was_found() {
    let built = project().story("4.2", "In Progress").state("3");
    let text =
        built.files[STATE].0.clone() + "artifacts: [docs/prd.md, /etc/passwd]\ntemplate: t.yaml\n";
    let built = built.file(STATE, text);
    let found = built.site();
    let site = SDLC.site(".", found.workflow, &found.inputs);
    assert_eq!(SDLC.more(&site, &built.files()), ["docs/prd.md", "t.yaml"]);
    let plan = "epic_state:\n  epicId: 3\n  execution_plan: plans/three.yaml\n";
    let epic = project().file(".aios/epic-3-state.yaml", plan);
    let inputs = [("epic".to_owned(), "3".into())].into();
    let site = SDLC.site(".", "epic", &inputs);
    assert_eq!(SDLC.more(&site, &epic.files()), ["plans/three.yaml"]);
}

#[test]
fn a_story_that_is_gone_is_settled_by_no_word_and_other_missing_files_are() {
    let gone = project().state("3");
    let [finding] = gone.findings().try_into().unwrap();
    assert_eq!((finding.code.as_str(), finding.can_be_accepted()), ("missing-artifact", false));
    let plan = "epic_state:\n  epicId: 3\n  execution_plan: docs/gone.yaml\n  waves:\n    \
                1:\n      status: in_progress\n      stories:\n        3.1:\n          \
                status: pending\n";
    let epic = project().story("3.1", "Ready").file(".aiox/epic-3-state.yaml", plan);
    let findings = epic.findings();
    let plan = findings.iter().find(|it| it.code == "missing-artifact").unwrap();
    assert!(plan.can_be_accepted(), "{plan:?}");
}

#[test]
fn a_new_dependency_is_told_also_where_no_file_of_it_is_there() {
    let path = "docs/stories/4.2.story.md";
    let before = story_text("4.2", "InProgress");
    let now = before.replace("## Dev Notes", "## Dependencies\n\n- Story 9.9\n\n## Dev Notes");
    let mut changed =
        project().state("3").dated(path, now.clone(), "2026-02-17T11:30:00Z").story("5.1", "Draft");
    changed.then.insert(path.to_owned(), before);
    let told = |it: &Project| {
        let findings = it.findings().into_iter().filter(|it| it.code == "new-dependency");
        findings.map(|it| it.message).collect::<Vec<_>>()
    };
    let [message] = told(&changed).try_into().unwrap();
    assert!(message.contains("9.9") && message.contains("no file"), "{message}");
    let known = changed.clone().dated(path, now.replace("9.9", "5.1"), "2026-02-17T11:30:00Z");
    assert!(told(&known)[0].ends_with("5.1, which is not done"), "{:?}", told(&known));
    let done = known.story("5.1", "Done");
    assert_eq!(told(&done), [""; 0]);
}

/// Whichever story it may be about, it is not passed over.
#[test]
fn a_state_that_names_its_story_by_another_type_is_told() {
    for value in ["[1]", "true", "{foo: 1}"] {
        for status in ["In Progress", "Draft"] {
            for (above, indent) in [("", ""), ("session_state:\n", "  ")] {
                let text = format!(
                    "{above}{indent}workflow: sdc\n{indent}current_story: {value}\n\
                     {indent}current_phase: 3\n"
                );
                let told = project().story("4.2", status).file(STATE, text);
                let codes = told.codes();
                let has = |code: &str| codes.iter().any(|it| it == code);
                assert!(has("state-rebuilt") && has("odd-value"), "{value} {status}: {codes:?}");
            }
        }
    }
}
