//! What a person changes between an interruption and the resume, and what killed agents left.

use std::{fs, path::Path, time::Duration};

use onward_engine::care::harness::until;
use serde_json::Value;

use crate::{
    bench::kill_all,
    yard::{STORY, TEXT, Yard},
};

const RESUME: &str = "resume --yes --no-input";
/// The person takes the story as it is. That the killed agent may have written in it, too, is a
/// question of its own.
const TAKEN: &str = "resume --yes --no-input --accept scope-changed --accept dirty-tree";

/// A run that is killed while the agent of this step waits, after it has done `half`.
fn killed_in(step: &str, half: &str, run: &str) -> Yard {
    killed(step, half, run, |agent| agent)
}

/// The same with other agents, of which that one has done nothing yet.
pub(crate) fn killed_after(step: &str, run: &str, agents: fn(String) -> String) -> Yard {
    killed(step, "true", run, agents)
}

fn killed(step: &str, half: &str, run: &str, agents: fn(String) -> String) -> Yard {
    let yard = Yard::with(|agent| {
        let agent = agents(agent);
        let waits = format!(
            "case \"$ONWARD_STEP\" in {step}) [ -e .git/calm ] || {{ {half}; : > .git/now; cat \
             .git/wait; }} ;; esac\n"
        );
        let at = agent.rfind("case \"$ONWARD_STEP\" in\n").unwrap();
        format!("{}{waits}{}", &agent[..at], &agent[at..])
    });
    yard.write(STORY, TEXT);
    yard.git(&["add", "."]);
    yard.git(&["commit", "--quiet", "--message=story"]);
    yard.bench.fifo(".git/wait");
    let mut engine = yard.bench.start(run);
    until("the agent", || Ok(yard.bench.path(".git/now").exists().then_some(()))).unwrap();
    // What it has done was done while it is known to have lived.
    let at = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    let (done, beat) = (at(&yard.bench.path(".git/now")), yard.run_dir().join("heartbeat"));
    until("a sign of life", || Ok((at(&beat) > done).then_some(()))).unwrap();
    engine.kill().unwrap();
    kill_all(&yard.run_dir());
    yard.write(".git/calm", "");
    yard
}

/// A person edits the story, a minute later.
fn edit(yard: &Yard, from: &str, to: &str) {
    let text = yard.bench.text(STORY);
    assert!(text.contains(from), "{text}");
    yard.write(STORY, &text.replace(from, to));
    later(yard, STORY);
}

fn severity(plan: &Value, code: &str) -> Value {
    let found = plan["findings"].as_array().unwrap().iter().find(|it| it["code"] == code);
    found.map_or(Value::Null, |it| it["severity"].clone())
}

const SDC: &str = "run sdc --input story=4.2 --no-input";
const GOODBYE: (&str, &str) = ("1. It greets.\n", "1. It greets.\n2. It says goodbye.\n");

/// The developer, the product owner or QA is killed at work, and a person edits the story then:
/// the criterion is the person's.
#[test]
fn a_criterion_that_a_person_adds_is_a_conflict_and_no_agents_fault() {
    for step in
        ["validate*judge", "implement", "heal*inspect", "qa-gate", "rework*fix", "rework*judge"]
    {
        let half = if step == "implement" { "sed -i 's/\\[ \\]/[x]/' \"$story\"" } else { "true" };
        let yard = killed_in(step, half, SDC);
        edit(&yard, GOODBYE.0, GOODBYE.1);
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(severity(&plan, "scope-changed"), "blocking", "{step}: {plan:#}");
        // What our own journal found is counted with what the files tell.
        let words = yard.bench.exits("plan", 0).out;
        let counts = words.lines().find(|it| it.trim().starts_with("Validation: "));
        assert!(counts.is_some_and(|it| it.contains("conflict")), "{step}: {words}");
        let said = yard.bench.exits(RESUME, 16);
        assert!(said.err.contains("acceptance criteria"), "{step}: {said:#?}");
        assert!(!said.err.contains("the dev"), "{step}: {said:#?}");
        yard.bench.exits(TAKEN, 0);
        let text = yard.bench.text(STORY);
        assert!(text.contains(GOODBYE.1) && text.contains("**Status:** Done"), "{step}: {text}");
    }
}

#[test]
fn a_note_that_a_person_adds_is_a_warning_and_stays() {
    let yard = killed_in("qa-gate", "true", SDC);
    edit(&yard, "## Dev Notes\n", "## Dev Notes\n\nAsk Ada.\n\n## Risks\n\nnone\n");
    let plan = yard.bench.exits("plan --json", 0).json();
    assert_eq!(severity(&plan, "artifact-changed"), "warning", "{plan:#}");
    assert_eq!(severity(&plan, "scope-changed"), Value::Null, "{plan:#}");
    yard.bench.exits(&format!("{RESUME} --accept dirty-tree"), 0);
    assert!(yard.bench.text(STORY).contains("## Risks\n\nnone\n"));
}

#[test]
fn a_person_may_edit_the_story_of_a_loop_meanwhile() {
    for step in ["turn*review", "turn*fix"] {
        let yard = killed_in(step, "true", "run qa-loop --input story=4.2 --no-input");
        edit(&yard, GOODBYE.0, GOODBYE.1);
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(severity(&plan, "scope-changed"), "blocking", "{step}: {plan:#}");
        yard.bench.exits(TAKEN, 0);
        assert!(yard.bench.text(STORY).contains(GOODBYE.1), "{step}");
    }
}

/// The call has looked right behind the agent, and no one but the agent was there: it is put back,
/// or a person takes it for their own.
#[test]
fn what_an_agent_changed_beyond_its_own_stays_refused_until_a_person_takes_it() {
    let evil = "echo hello > app.txt; sed -i 's/It greets/It may greet/' \"$story\"";
    let evil_yard = || {
        let yard = Yard::with(|agent| agent.replace("echo hello > app.txt", evil));
        yard.write(STORY, TEXT);
        let said = yard.bench.exits(SDC, 10);
        assert!(said.err.contains("the dev changed what is not its own"), "{said:#?}");
        yard.bench.exits(RESUME, 16);
        yard
    };
    let yard = evil_yard();
    yard.bench.exits(&format!("{RESUME} --accept scope-changed"), 0);
    let yard = evil_yard();
    let text = yard.bench.text(STORY);
    yard.write(STORY, &text.replace("It may greet", "It greets"));
    yard.bench.exits(RESUME, 0);
    assert!(yard.bench.text(STORY).contains("1. It greets.\n"));
}

/// A product owner judges, and writes nothing.
#[test]
fn a_validator_that_edits_the_story_is_found_out() {
    let evil = "sed -i 's/It greets/It may greet/' \"$story\"; say '{\"decision\"";
    let yard = Yard::with(|agent| agent.replace("say '{\"decision\"", evil));
    yard.write(STORY, TEXT);
    let said = yard.bench.exits(SDC, 10);
    assert!(said.err.contains("the po changed what is not its own"), "{said:#?}");
    yard.with_epic();
    let said = yard.bench.exits("run epic --input epic=3 --no-input", 10);
    assert!(said.err.contains("the po changed what is not its own"), "{said:#?}");
}

/// No time tells the two apart: what the role may not write is the person's, and asked about.
#[test]
fn an_edit_right_after_the_kill_is_the_persons_where_the_agent_may_not_write() {
    for (step, half) in [
        ("implement", "sed -i 's/\\[ \\]/[x]/' \"$story\""),
        ("qa-gate", "true"),
        ("validate*judge", "true"),
    ] {
        let yard = killed_in(step, half, SDC);
        let text = yard.bench.text(STORY).replace(GOODBYE.0, GOODBYE.1);
        yard.write(STORY, &text);
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(severity(&plan, "dirty-tree"), "blocking", "{step}: {plan:#}");
        assert_eq!(severity(&plan, "scope-changed"), "blocking", "{step}: {plan:#}");
        assert!(!plan["findings"].to_string().contains("may not change"), "{step}: {plan:#}");
        yard.bench.exits(RESUME, 16);
        assert_eq!(yard.bench.text(STORY), text, "{step}");
        yard.bench.exits(TAKEN, 0);
        assert!(yard.bench.text(STORY).contains(GOODBYE.1), "{step}");
    }
}

/// Agents that are told to change nothing, too.
#[test]
fn what_a_killed_agent_left_half_done_is_undone_whatever_its_role_may_edit() {
    for step in ["validate*judge", "heal*inspect", "qa-gate"] {
        let half = "echo half > junk.txt; sed -i 's/It greets/It gr/' \"$story\"";
        let yard = killed_in(step, half, SDC);
        let plan = yard.bench.exits("plan --json", 0).json();
        let undone = plan["reverts"].to_string();
        assert!(undone.contains("junk.txt") && undone.contains(STORY), "{step}: {plan:#}");
        yard.bench.exits(RESUME, 0);
        assert!(!yard.bench.path("junk.txt").exists(), "{step}");
        assert!(yard.bench.text(STORY).contains("1. It greets.\n"), "{step}");
        let rescues = yard.bench.exits("rescue list --json", 0);
        assert!(rescues.out.contains("junk.txt"), "{step}: {rescues:#?}");
    }
}

#[test]
fn the_plan_of_an_epic_has_rows_of_its_later_waves() {
    let yard = Yard::new();
    yard.with_epic();
    let rows = |plan: &Value| -> Vec<String> {
        let steps = plan["steps"].as_array().unwrap().iter();
        steps.map(|it| it["step"].as_str().unwrap().to_owned()).collect()
    };
    let later = ["wave[2]/story[3.3]", "wave[2]/gate", "wave[2]/checkpoint", "final-gate"];
    yard.bench.exits("run epic --input epic=3 --no-input", 11);
    let plan = yard.bench.exits("plan --json", 0).json();
    let all = rows(&plan);
    let at = all.iter().position(|it| it == later[0]).unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(all[at..at + 4], later, "{all:?}");
    let counted: u64 = plan["counts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(usize::try_from(counted).unwrap(), all.len(), "{plan:#}");
    // When the run has come to the wave, its own steps stand there.
    yard.go();
    yard.bench.exits(RESUME, 11);
    let all = rows(&yard.bench.exits("plan --json", 0).json());
    assert!(!all.contains(&later[0].to_owned()), "{all:?}");
    assert!(all.contains(&"wave[2]/story[3.3]/started".to_owned()), "{all:?}");
}

/// Stories of a wave are worked on in worktrees: what the user asks for in the project comes there
/// before the next agent of that story, and through the merge.
#[test]
fn a_criterion_that_a_person_adds_to_a_story_of_a_wave_reaches_its_agents() {
    const OF_WAVE: &str = "docs/stories/3.1.story.md";
    let steps = ["work/validate", "work/implement", "work/heal*inspect", "work/review*judge"];
    let steps = steps.map(|it| format!("wave*story\\[3.1\\]/{it}"));
    for waits in steps.into_iter().chain(["wave*gate*judge".to_owned()]) {
        let (yard, step) = (killed_in_wave(&waits, "true"), &waits);
        let text = yard.bench.text(OF_WAVE).replace(GOODBYE.0, GOODBYE.1);
        // A task beside one that the developer ticks: git alone could not merge the two.
        yard.write(OF_WAVE, &text.replace("- [ ] greet\n", "- [ ] greet\n- [ ] say goodbye\n"));
        later(&yard, OF_WAVE);
        let plan = yard.bench.exits("plan --json", 0).json();
        assert_eq!(severity(&plan, "scope-changed"), "blocking", "{step}: {plan:#}");
        yard.bench.exits(RESUME, 16);
        // What is through is entered again where the user says so.
        let from = if step.contains("gate") { " --from wave[1]/story[3.1]" } else { "" };
        yard.bench.exits(&format!("{TAKEN}{from}"), 11);
        let seen = fs::read_to_string(yard.bench.path(".git/seen")).unwrap_or_default();
        for agent in ["implement", "review[1]/judge"] {
            let at = format!("wave[1]/story[3.1]/work/{agent} saw goodbye\n");
            assert!(seen.contains(&at), "{step}: {seen}");
        }
        let text = yard.bench.text(OF_WAVE);
        assert!(text.contains(GOODBYE.1), "{step}: {text}");
        assert!(text.contains("- [x] greet\n- [x] say goodbye\n"), "{step}: {text}");
        assert!(text.contains("**Status:** Done"), "{step}: {text}");
    }
}

/// The same for an epic of which the agent of one story waits.
fn killed_in_wave(step: &str, half: &str) -> Yard {
    let yard = Yard::with(|agent| {
        let common = "common=$(git rev-parse --path-format=absolute --git-common-dir)\n";
        let waits = format!(
            "case \"$ONWARD_STEP\" in {step}) [ -e \"$common/calm\" ] || {{ {half}; : > \
             \"$common/now\"; cat \"$common/wait\"; }} ;; esac\ngrep -q goodbye \"$story\" && echo \
             \"$ONWARD_STEP saw goodbye\" >> \"$common/seen\"\n"
        );
        let at = agent.rfind("case \"$ONWARD_STEP\" in\n").unwrap();
        format!("{}{common}{waits}{}", &agent[..at], &agent[at..])
    });
    yard.with_epic();
    yard.bench.fifo(".git/wait");
    let mut engine = yard.bench.start("run epic --input epic=3 --no-input");
    until("the agent", || Ok(yard.bench.path(".git/now").exists().then_some(()))).unwrap();
    engine.kill().unwrap();
    kill_all(&yard.run_dir());
    yard.write(".git/calm", "");
    yard
}

/// The file was written a minute after everything else.
fn later(yard: &Yard, path: &str) {
    let file = fs::File::options().write(true).open(yard.bench.path(path)).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now + Duration::from_mins(1)).unwrap();
}

/// Committed or not, with lines that end as on Windows, and with a row in the log: it is merged.
#[test]
fn a_criterion_that_a_person_commits_goes_through_the_merge() {
    const OF_WAVE: &str = "docs/stories/3.1.story.md";
    for is_crlf in [false, true] {
        let yard = killed_in_wave("wave*story\\[3.1\\]/work/heal*inspect", "true");
        let text = yard.bench.text(OF_WAVE).replace(GOODBYE.0, GOODBYE.1);
        let text = format!("{text}| 2026-01-01 | me | one more |\n");
        let text = if is_crlf { text.replace('\n', "\r\n") } else { text };
        yard.write(OF_WAVE, &text);
        later(&yard, OF_WAVE);
        yard.git(&["commit", "--quiet", "--message=more", "--", OF_WAVE]);
        yard.bench.exits(TAKEN, 11);
        let text = yard.bench.text(OF_WAVE);
        for kept in ["2. It says goodbye.", "- [x] greet", "| me | one more |", "**Status:** Done"]
        {
            assert_eq!(text.matches(kept).count(), 1, "{is_crlf} {kept}: {text}");
        }
    }
}
