//! Where a run re-enters: one project for each row of each table.

use onward_core::{
    address::Address,
    plan::Status,
    state::Phase,
    told::{StepTold, Told},
};
use onward_dialects::rules::sdlc::gate::announced;

use crate::builder::{LOOP, project, story_text};

#[test]
fn a_story_re_enters_by_its_status() {
    for (status, expected) in [
        ("Draft", "sdc:validate 2 validate"),
        ("Ready", "sdc:implement 3 implement"),
        ("In Progress", "sdc:implement 3 implement"),
        ("Ready for Review", "sdc:qa-gate 4 qa-gate"),
        ("Done", "complete -"),
        ("Blocked", "sdc:implement 3 implement"),
    ] {
        let phase = expected.split(' ').nth(1).unwrap().replace('-', "4");
        let told = project().story("4.2", status).state(&phase);
        assert_eq!(told.line(), expected, "{status}");
        let alone = project().story("4.2", status);
        assert_eq!(alone.line(), expected, "{status}, without a state");
    }
    let imported = project().story("4.2", "Ready for Review").imported();
    assert_eq!(imported.phase("implement"), Phase::Done);
    let summary = project().story("4.2", "InProgress").standing().point.summary;
    assert!(summary.ends_with("first open task: Task 3"), "{summary}");
}

#[test]
fn a_story_that_is_not_there_yet_is_created_and_one_that_is_gone_blocks() {
    assert_eq!(project().state("1").line(), "sdc:create 1 create");
    let gone = project().state("3");
    assert_eq!(gone.line(), "sdc:implement 3 implement");
    let finding = &gone.findings()[0];
    assert_eq!(finding.code, "missing-artifact");
    assert_eq!(finding.severity(), onward_core::finding::Severity::Blocking);
}

#[test]
fn the_gate_of_a_story_counts_when_the_story_was_reviewed() {
    let gate = |status: &str, verdict: &str| {
        let text = format!("storyId: \"4.2\"\nverdict: {verdict}\nscore: 8\n");
        project().story("4.2", status).file("docs/qa/gates/4.2-login.yml", text).state("4")
    };
    for verdict in ["PASS", "CONCERNS", "WAIVED"] {
        assert_eq!(gate("Ready for Review", verdict).line(), "complete -", "{verdict}");
        assert!(gate("Ready for Review", verdict).codes().contains(&"status-disagrees".into()));
    }
    assert_eq!(gate("Ready for Review", "FAIL").line(), "sdc:implement 3 rework");
    assert_eq!(gate("Done", "FAIL").line(), "sdc:implement 3 rework");
    assert_eq!(gate("In Progress", "PASS").line(), "sdc:implement 3 implement", "an older cycle");
    let upstream = "schema: 1\nstory: '4.2'\ngate: PASS\nquality_score: 90\n";
    let upstream = project().story("4.2", "Review").file("docs/qa/gates/4.2-x.yml", upstream);
    assert_eq!(upstream.line(), "complete -");
}

/// A verdict that closes the story is announced first, and a kill may come before it is given.
#[test]
fn a_gate_that_is_about_to_be_given_keeps_the_verdict_that_the_rework_rests_on() {
    let closing = |sent_back: bool| {
        let text = announced("4.2", sent_back, "PASS");
        project().story("4.2", "Done").file("docs/qa/gates/4.2-gate.yml", text).state("4")
    };
    let done = |told: &dyn Told, step: &str| match told.step(&Address::from_text(step)) {
        StepTold::Done(done) => Some(done.result),
        StepTold::PassedOver(_) | StepTold::Unproved(_) | StepTold::Undone | StepTold::Silent => {
            None
        }
    };
    assert_eq!(closing(false).line(), "sdc:qa-gate 4 qa-gate");
    assert_eq!(closing(true).line(), "sdc:qa-gate 4 rework");
    let (first, behind_rework) = (closing(false).told(), closing(true).told());
    for step in ["qa-gate", "gated"] {
        assert_eq!(done(&*first, step), None, "{step}");
        assert!(done(&*behind_rework, step).is_some(), "{step}");
    }
    assert_eq!(done(&*behind_rework, "qa-gate").unwrap()["verdict"], "FAIL");
}

#[test]
fn a_spec_re_enters_by_its_artifacts() {
    let base = |names: &[&str]| {
        let mut it = project().file("docs/specs/login/notes.txt", "x");
        for name in names {
            let text = if *name == "spec.md" { "# Spec\n\ntext\n" } else { "{\"a\": 1}" };
            it = it.file(&format!("docs/specs/login/{name}"), text);
        }
        it
    };
    let all = ["requirements.json", "complexity.json", "research.json", "spec.md"];
    for (count, expected) in [
        (0, "spec:gather 1 gather"),
        (1, "spec:assess 2 assess"),
        (2, "spec:research 3 research"),
        (3, "spec:write 4 write"),
        (4, "spec:critique 5 critique"),
    ] {
        assert_eq!(base(&all[..count]).line(), expected);
    }
    let simple = base(&all[..1]);
    let simple = simple.file("docs/specs/login/complexity.json", "{\"classification\":\"SIMPLE\"}");
    assert_eq!(simple.line(), "spec:write 4 write", "research is skipped");
    let scored = base(&all[..1]).file("docs/specs/login/complexity.yml", "total: 8\n");
    assert_eq!(scored.line(), "spec:write 4 write");
    let judged = |text: &str| base(&all).file("docs/specs/login/critique.json", text);
    assert_eq!(judged("{\"verdict\":\"APPROVED\"}").line(), "complete -");
    assert_eq!(judged("{\"average\": 4.0}").line(), "complete -");
    assert_eq!(judged("{\"verdict\":\"NEEDS_REVISION\"}").line(), "spec:write 4 revise");
    let blocked = judged("{\"average\": 2.9}");
    assert_eq!(
        (blocked.line(), blocked.codes()),
        ("spec:write 4 revise".into(), vec!["critique-blocked".to_owned()],)
    );
    let empty = base(&all).file("docs/specs/login/spec.md", "");
    assert_eq!(empty.line(), "spec:write 4 write");
    assert_eq!(empty.codes(), ["artifact-unproved"]);
    let upstream = project().file("docs/stories/7.1/spec/requirements.yml", "a: 1\n");
    assert_eq!(upstream.line(), "spec:assess 2 assess");
    let named = project()
        .file(crate::builder::STATE, "workflow: spec-pipeline\nfeature: login\ncurrent_phase: 1\n");
    assert_eq!(named.line(), "spec:gather 1 gather", "a feature without requirements");
}

#[test]
fn a_loop_re_enters_at_the_current_iteration() {
    for (current, turns, expected) in [
        (1, "", "qa-loop:review 1 review[1]"),
        (3, "REJECT+ REJECT+", "qa-loop:review 3 review[3]"),
        (3, "REJECT+ REJECT+ -", "qa-loop:review 3 review[3]"),
        (3, "REJECT+ REJECT+ REJECT", "qa-loop:fix 3 fix[3]"),
        (3, "REJECT+ REJECT+ REJECT+", "qa-loop:review 4 review[4]"),
        (5, "REJECT+ REJECT+ REJECT+ REJECT+ REJECT+", "qa-loop:escalate 5 escalate"),
        (2, "REJECT+ BLOCKED", "qa-loop:escalate 2 escalate"),
        (2, "REJECT+ APPROVE", "complete -"),
    ] {
        let told = project().story("2.1", "In Review").qa(current, turns);
        assert_eq!(told.line(), expected, "{current}: {turns}");
    }
    let told = project().story("2.1", "In Review").qa(2, "REJECT+ BLOCKED").standing();
    assert_eq!(told.status, Status::Waiting);
    let escalated = project().story("2.1", "Review").file(
        LOOP,
        "{\"storyId\":\"2.1\",\"currentIteration\":2,\"maxIterations\":5,\"status\":\"escalated\",\
         \"escalationReason\":\"fix_failure\",\"history\":[{\"iteration\":1,\"verdict\":\"REJECT\",\
         \"fixedAt\":\"2026-02-17T10:00:00Z\"},{\"iteration\":2,\"verdict\":\"REJECT\"}]}",
    );
    assert_eq!(escalated.line(), "qa-loop:escalate 2 escalate");
}

#[test]
fn the_three_shapes_of_a_loop_are_one() {
    let shape = |text: &str| project().story("2.1", "In Review").file("qa/loop-status.json", text);
    let b = "{\"story_id\":\"2.1\",\"current_iteration\":2,\"max_iterations\":5,\"history\":[\
             {\"iteration\":1,\"date\":\"2026-02-16\",\"verdict\":\"REJECT\"}]}";
    assert_eq!(shape(b).line(), "qa-loop:review 2 review[2]");
    let c = "{\"storyId\":\"2.1\",\"iteration\":2,\"maxIterations\":3,\"status\":\"paused\",\
             \"lastVerdict\":\"REJECT\",\"history\":[]}";
    assert_eq!(shape(c).line(), "qa-loop:fix 2 fix[2]");
    let done = c.replace("REJECT", "APPROVE").replace("paused", "complete");
    assert_eq!(shape(&done).line(), "complete -", "its story is not listed a second time");
    let idle = "{\"storyId\":\"2.1\",\"iteration\":0,\"maxIterations\":5,\"status\":\"idle\",\
                \"lastVerdict\":null,\"history\":[]}";
    let idle = project().file("qa/loop-status.json", idle);
    assert_eq!(idle.line(), "qa-loop:review 1 review[1]");
    assert!(idle.site().by_name_only, "nothing was begun");
}

#[test]
fn an_epic_re_enters_at_the_first_wave_that_is_not_over() {
    let stories = |it: crate::builder::Project| {
        ["3.1", "3.2", "3.4", "3.5"].iter().fold(it, |it, id| it.story(id, "Ready"))
    };
    let first: (&str, &str, &[&str]) = ("completed", "approved", &["3.1=completed"]);
    for (waves, expected) in [
        (
            vec![first, ("in_progress", "-", &["3.4=in_progress", "3.5=pending"])],
            "epic:stories 2 wave[2]/story[3.4] wave[2]/story[3.5]",
        ),
        (
            vec![first, ("in_progress", "-", &["3.4=completed", "3.5=failed"])],
            "epic:stories 2 wave[2]/story[3.5]",
        ),
        (vec![first, ("gate_review", "-", &["3.4=completed"])], "epic:gate 2 wave[2]/gate"),
        (vec![first, ("in_progress", "-", &["3.4=completed"])], "epic:gate 2 wave[2]/gate"),
        (vec![first, ("completed", "-", &["3.4=skipped"])], "epic:gate 2 wave[2]/gate"),
        (vec![first, ("completed", "rejected", &["3.4=completed"])], "epic:gate 2 wave[2]/gate"),
        (vec![first, ("pending", "-", &["3.4=pending"])], "epic:stories 2 wave[2]/story[3.4]"),
        (vec![first, ("completed", "PASS", &["3.4=completed"])], "epic:final-gate 2 final-gate"),
    ] {
        let told = stories(project()).epic(2, &waves);
        assert_eq!(told.line(), expected);
    }
    let over = project().epic(1, &[first]);
    let text =
        over.files[".aiox/epic-3-state.yaml"].0.replace("status: active", "status: completed");
    let over = over.file(".aiox/epic-3-state.yaml", text);
    assert_eq!(over.line(), "complete -");
    assert!(over.site().by_name_only);
}

#[test]
fn what_comes_first_is_in_the_plan_or_else_in_the_story() {
    let waves: &[(&str, &str, &[&str])] =
        &[("in_progress", "-", &["3.1=in_progress", "3.2=pending", "3.3=pending"])];
    let base = project().story("3.1", "InProgress").story("3.2", "Ready").epic(1, waves);
    let own = story_text("3.3", "Ready") + "\n## Dependencies\n\n- Story 3.2\n";
    let base = base.file("docs/stories/3.3.story.md", own);
    assert_eq!(base.line(), "epic:stories 1 wave[1]/story[3.1] wave[1]/story[3.2]");
    let plan = "execution:\n  epicId: 3\n  stories:\n    3.2: {dependencies: [3.1]}\n    3.3: \
                {dependencies: [3.1]}\n  waves:\n    - wave: 1\n      stories: [3.1, 3.2, 3.3]\n\
                \x20     merge: {order: [3.3, 3.1, 3.2]}\n";
    let planned = base.clone().file("docs/epics/epic-3/EXECUTION.yaml", plan);
    assert_eq!(planned.line(), "epic:stories 1 wave[1]/story[3.1]");
    let as_map = plan.replace("    - wave: 1\n      ", "    1:\n      ");
    assert_eq!(
        base.clone().file("docs/epics/epic-3/EXECUTION.yaml", as_map).line(),
        planned.line()
    );
    let more = plan.replace("[3.1, 3.2, 3.3]", "[3.1, 3.2, 3.3, 3.9]");
    let more = base.file("docs/epics/epic-3/EXECUTION.yaml", more).story("3.9", "Draft");
    assert_eq!(more.line(), "epic:stories 1 wave[1]/story[3.1] wave[1]/story[3.9]");
    assert_eq!(more.codes(), ["new-dependency"]);
}

#[test]
fn an_open_checkpoint_waits() {
    let waves: &[(&str, &str, &[&str])] =
        &[("completed", "approved", &["3.1=completed"]), ("pending", "-", &["3.2=pending"])];
    let base = project().story("3.2", "Ready").epic(1, waves);
    let text = base.files[".aiox/epic-3-state.yaml"].0.clone() + "  awaiting_input: true\n";
    let open = base.file(".aiox/epic-3-state.yaml", text);
    assert_eq!(open.line(), "epic:checkpoint 1 wave[1]/checkpoint");
    assert_eq!(open.standing().status, Status::Waiting);
    let text = "workflowId: development-cycle\ncurrentStory: 4.2\ncurrentPhase: 3_self_healing\n\
                lastUpdated: 2026-02-17T11:15:00Z\nphaseResults:\n  1_validation: {status: \
                completed}\n  2_development: {status: completed}\n  3_self_healing: {status: \
                completed}\n  4_quality_gate: {status: completed}\n  5_push: {status: completed}\n\
                \x20 6_checkpoint: {status: completed, decision: GO, awaiting_input: true}\n";
    let story = project().story("4.2", "Ready for Review");
    let bob = story.clone().file(".aiox/workflow-state/bob-state.yaml", text);
    assert_eq!(bob.line(), "sdc:checkpoint 5 checkpoint");
    assert_eq!(bob.standing().status, Status::Waiting);
    assert!(bob.codes().contains(&"pointer-behind-evidence".to_owned()), "{:?}", bob.codes());
    let undecided = "workflow: sdc\ncurrentStory: 4.2\ncurrentPhase: 6_checkpoint\n";
    let undecided = story.file(".aiox/workflow-state/bob-state.yaml", undecided);
    assert_eq!(undecided.standing().status, Status::Waiting);
}
