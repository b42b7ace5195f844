//! What a run does when nothing disturbs it.

use onward_core::event::Event;

use crate::{
    bench::watched,
    desk::{Desk, RUN},
};

#[test]
fn a_run_leaves_every_artifact_and_its_events_in_the_shape_of_the_system() {
    let desk = Desk::new();
    let asked = desk.bench.exits(&format!("run agent-memory --no-input --input dir={RUN}"), 11);
    assert!(asked.err.contains("Build it like this?"), "{asked:?}");
    assert_eq!(desk.text("constitution.md"), "", "nothing is approved unasked");
    desk.bench.exits("decide approve approve --comment tests-first", 0);
    desk.bench.exits("resume --no-input --yes", 0);
    assert!(desk.text("constitution.md").contains("> tests-first"));
    assert_eq!(
        desk.names(),
        [
            "run-started",
            "phase_transition",
            "task-claimed T001",
            "task-implemented T001",
            "task-claimed T002",
            "task-implemented T002",
            // The first phase of the plan is over: all of it is verified.
            "task-verified T001",
            "task-failed T002",
            "task-claimed T003",
            "task-failed T003",
            "task-claimed Q001",
            "task-implemented Q001",
            "task-claimed T003",
            "task-implemented T003",
            "task-verified T003",
            "task-verified Q001",
            "task-verified T002",
            "phase_transition",
            "phase_transition",
            "run-complete",
        ]
    );
    for event in desk.events() {
        assert_eq!(event["actor"], "onward", "{event}");
        assert!(event["timestamp"].is_string() && event["details"].is_object(), "{event}");
    }
    assert!(desk.text("task-graph.json").contains("\"Q001\""));
    assert!(desk.text("tasks/Q001.md").contains("it is not mended"));
    assert!(desk.text("verifications/T002.md").contains("PASSED"));
    assert_eq!(desk.bench.text("src/T002.txt"), "done\nmended\n");
    for name in ["pr-description.md", "pr-checklist.md", "summary.md"] {
        assert!(!desk.text(name).is_empty(), "{name}");
    }
    let plan = desk.bench.exits(&format!("plan --json {RUN}"), 0).json();
    assert_eq!(plan["run"]["status"], "completed", "{plan:#}");
    desk.bench.exits("resume --no-input --yes", 17);
}

#[test]
fn a_run_without_a_directory_is_named_after_its_request() {
    let desk = Desk::new();
    let mut command = desk.bench.command("run agent-memory --no-input --input");
    let said = command.arg("request=Limit the Rate!").output().unwrap();
    assert_eq!(said.status.code(), Some(11), "{said:?}");
    let runs = std::fs::read_dir(desk.bench.path(".agent-memory/runs")).unwrap();
    let names: Vec<_> = runs.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].contains("-limit-the-rate-"), "{names:?}");
}

#[test]
fn a_task_that_keeps_failing_is_tried_three_times_and_then_a_person_is_asked() {
    let never = |agent: String| agent.replace("if [ -e src/T003.tried ]", "if false");
    let desk = Desk::with(never);
    desk.approved();
    let waits = desk.bench.exits("resume --no-input --yes", 11);
    assert!(waits.err.contains("T003 failed after 3 attempts"), "{waits:?}");
    let claims = || desk.names().iter().filter(|it| *it == "task-claimed T003").count();
    assert_eq!(claims(), 3);
    let plan = desk.bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "blocked", "{plan:#}");
    let status = desk.bench.exits("status --json", 0).json();
    let gate = status["gates"][0]["step"].as_str().unwrap_or_else(|| panic!("{status:#}"));
    desk.bench.exits(&format!("decide {gate} skip"), 0);
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(claims(), 3);
    assert!(desk.names().contains(&"task-completed T003".to_owned()));
}

#[test]
fn an_answer_to_try_a_task_again_is_all_that_a_resume_needs() {
    let never = |agent: String| agent.replace("if [ -e src/T003.tried ]", "if [ -e mended ]");
    let desk = Desk::with(never);
    desk.approved();
    desk.bench.exits("resume --no-input --yes", 11);
    desk.bench.write("mended", "");
    let status = desk.bench.exits("status --json", 0).json();
    let gate = status["gates"][0]["step"].as_str().unwrap_or_else(|| panic!("{status:#}"));
    desk.bench.exits(&format!("decide {gate} retry"), 0);
    desk.bench.exits("resume --no-input", 0);
    assert!(desk.names().contains(&"task-verified T003".to_owned()), "{:?}", desk.names());
}

/// An answer without a verdict is none; so is one about other tasks.
#[test]
fn a_verifier_that_gives_no_verdict_is_asked_three_times_and_then_a_person_is() {
    for said in ["", "{\\\"task\\\": \\\"T999\\\", \\\"result\\\": \\\"PASSED\\\"}"] {
        let mute = |agent: String| {
            let answer = "echo \"{\\\"verdicts\\\": [$verdicts]}\"";
            assert!(agent.contains(answer));
            let nothing = format!("[ -e heard ] || verdicts=\"{said}\"; {answer}");
            agent.replace(answer, &nothing)
        };
        let desk = Desk::with(mute);
        desk.approved();
        let asked = desk.bench.exits("resume --no-input --yes", 11);
        let why = "T001 is blocked (the verifier was asked three times, and gave no verdict on it)";
        let shown = asked.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(why), "{asked:?}");
        let unjudged = |id: &str| {
            let name = format!("verification-inconclusive {id}");
            desk.names().iter().filter(|it| **it == name).count()
        };
        assert_eq!((unjudged("T001"), unjudged("T002")), (3, 3), "{:?}", desk.names());
        assert!(!desk.path("verifications").exists());
        desk.bench.write("heard", "");
        let status = desk.bench.exits("status --json", 0).json();
        let gate = status["gates"][0]["step"].as_str().unwrap_or_else(|| panic!("{status:#}"));
        desk.bench.exits(&format!("decide {gate} retry"), 0);
        desk.bench.exits("resume --no-input --yes", 0);
        assert_eq!(desk.names().last().unwrap(), "run-complete");
    }
}

#[test]
fn a_plan_is_revised_as_often_as_the_user_says_and_the_last_word_is_the_condition() {
    let desk = Desk::new();
    desk.bench.exits(&format!("run agent-memory --no-input --input dir={RUN}"), 11);
    desk.bench.exits("decide approve revise --comment smaller", 0);
    desk.bench.exits("resume --no-input --yes", 11);
    desk.bench.exits("decide revise[1]/again revise --comment faster", 0);
    desk.bench.exits("resume --no-input --yes", 11);
    assert_eq!(desk.text("constitution.md"), "", "nothing is approved yet");
    let prompts = |step: &str| {
        let dir = desk.run_dir().join("out");
        std::fs::read_to_string(dir.join(format!("{step}.1.prompt"))).unwrap()
    };
    assert!(prompts("revision~plan").contains("smaller"));
    assert!(prompts("revise[1]~plan").contains("faster"));
    desk.bench.exits("decide revise[2]/again approve --comment tests-first", 0);
    desk.bench.exits("resume --no-input --yes", 0);
    let constitution = desk.text("constitution.md");
    assert!(constitution.contains("> tests-first"), "{constitution}");
    assert!(!constitution.contains("smaller"), "{constitution}");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

/// Killed when the first task is claimed; then one contract is gone.
fn loses_a_contract(desk: &Desk) {
    desk.approved();
    let mut engine = desk.leash("resume --no-input --yes");
    assert!(engine.until(|| desk.names().contains(&"task-claimed T001".to_owned())));
    engine.kill();
    std::fs::remove_file(desk.path("tasks/T002.md")).unwrap();
}

/// The user has approved the plan: one contract that got lost is no reason to ask again.
#[test]
fn a_contract_that_got_lost_after_the_approval_is_written_again_before_its_task() {
    let writes = "  */contract)\n    rest=${ONWARD_STEP#*execute\\[}; task=${rest%%\\]*}\n    \
         echo \"# $task again\" > \"$dir/tasks/$task.md\" ;;\n  cleanup)";
    let desk = Desk::with(|agent| agent.replace("  cleanup)", writes));
    loses_a_contract(&desk);
    let plan = desk.bench.exits("plan", 0);
    assert!(plan.out.contains("without another approval"), "{plan:?}");
    let resumed = desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(desk.text("tasks/T002.md"), "# T002 again\n");
    assert_eq!(desk.text("tasks/T001.md"), "# T001: write src/T001.txt\n");
    let begun: Vec<&str> =
        resumed.err.lines().filter(|it| it.contains("start") && it.contains("/contract")).collect();
    assert_eq!(begun.len(), 1, "{resumed:?}");
    assert!(begun[0].ends_with("execute[T002]/contract"), "{begun:?}");
    let asked = watched(&desk.run_dir()).records.into_iter();
    let asked = asked.filter(|it| matches!(it.event, Event::GateOpened { .. }));
    assert_eq!(asked.count(), 1, "the user is not asked again");
    assert_eq!(desk.names().last().unwrap(), "run-complete");
}

#[test]
fn a_contract_that_nothing_writes_again_stops_no_task() {
    let desk = Desk::new();
    loses_a_contract(&desk);
    desk.bench.exits("resume --no-input --yes", 0);
    assert_eq!(desk.names().last().unwrap(), "run-complete");
    assert_eq!(desk.bench.text("src/T002.txt"), "done\nmended\n");
}
