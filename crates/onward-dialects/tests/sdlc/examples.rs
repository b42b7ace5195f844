//! The four worked examples of the orchestrator's own manual.

use onward_core::{finding::Severity, plan::AgeBand};

use crate::builder::{STATE, project, story_text};

#[test]
fn example_1_a_clean_resume() {
    let told = project().story("4.2", "In Progress").state("3");
    assert_eq!(told.line(), "sdc:implement 3 implement");
    assert_eq!(told.codes(), [""; 0], "all files are there, the status is consistent");
    let report = told.standing().report;
    assert!(report.contains(&"Interrupted: 45 minutes ago".to_owned()), "{report:#?}");
    assert!(report.contains(&format!("State source: {STATE}")), "{report:#?}");
    let has = |line: &str| report.iter().any(|it| it.contains(line));
    assert!(has("Resume point: ") && has("by @dev"), "{report:#?}");
    assert!(has("Input: docs/stories/4.2.story.md"), "{report:#?}");
    let closing = told.told().closing(&told.findings());
    assert_eq!(closing.as_deref(), Some("Validation: clean"));
}

#[test]
fn example_2_a_story_that_was_modified_in_three_days() {
    let page = story_text("2.1", "In Review") + "| 2026-02-15 | dev | Dev Notes updated |\n";
    let told = project().file("docs/stories/2.1.story.md", page).qa(3, "REJECT+ REJECT+");
    let path = crate::builder::LOOP;
    let text = told.files[path].0.replace("2026-02-17T11:20", "2026-02-14T11:20");
    let told = told.file(path, text);
    assert_eq!(told.line(), "qa-loop:review 3 review[3]");
    let findings = told.findings();
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].severity(), Severity::Warning);
    assert!(findings[0].message.contains("Dev Notes"), "{}", findings[0].message);
    let age = crate::builder::now().ms_since(told.standing().last_event.unwrap().at) / 1000;
    assert_eq!(AgeBand::of_seconds(age), AgeBand::Moderate);
}

#[test]
fn example_3_several_states() {
    let told = project()
        .story("4.2", "In Progress")
        .state("3")
        .story("3.1", "In Review")
        .file(
            "qa/3.1/loop-status.json",
            "{\"storyId\":\"3.1\",\"currentIteration\":4,\
            \"maxIterations\":5,\"updatedAt\":\"2026-02-15T12:00:00Z\",\"history\":[]}",
        )
        .dated("docs/specs/login/requirements.json", "{}", "2026-02-12T12:00:00Z")
        .dated(
            "docs/specs/login/complexity.json",
            "{\"class\":\"SIMPLE\"}",
            "2026-02-12T12:00:00Z",
        );
    let sites = told.sites();
    let names: Vec<&str> = sites.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["qa-loop-3.1", "sdc-4.2", "spec-login"]);
    let newest = sites.iter().max_by_key(|it| it.last_activity).unwrap();
    assert_eq!(newest.name, "sdc-4.2", "autopilot takes the most recently updated");
}

#[test]
fn example_4_two_conflicts_that_block() {
    let told = project().story("3.4", "Done").epic(
        2,
        &[
            ("completed", "approved", &["3.1=completed"]),
            ("in_progress", "-", &["3.4=in_progress", "3.5=pending"]),
        ],
    );
    let path = ".aiox/epic-3-state.yaml";
    let text = told.files[path].0.replace("2026-02-17T10:00", "2026-02-03T10:00");
    let told = told.file(path, text);
    let findings = told.findings();
    let blocking = findings.iter().filter(|it| it.severity() == Severity::Blocking);
    let blocking: Vec<(&str, &str)> =
        blocking.map(|it| (it.code.as_str(), it.step.as_deref().unwrap())).collect();
    assert_eq!(
        blocking,
        [("status-disagrees", "wave[2]/story[3.4]"), ("missing-artifact", "wave[2]/story[3.5]")]
    );
    assert!(findings[0].message.contains("completed outside this workflow"));
    assert!(findings[1].message.contains("no longer exists"));
    assert!(told.codes().contains(&"stale-age".to_owned()));
    let report = told.standing().report;
    let reasons = report.iter().skip_while(|it| *it != "Reasons:").skip(1).take(2);
    let reasons: Vec<&str> = reasons.map(String::as_str).collect();
    assert!(reasons[0].contains("3.4") && reasons[1].contains("3.5"), "{report:#?}");
}
