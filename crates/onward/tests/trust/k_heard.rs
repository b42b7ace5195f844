//! What is heard, and what is not: the words of agents that end while no engine is there, and a
//! supervisor that does not answer.

use std::{fs, os::unix::net::UnixListener, path::PathBuf};

use onward_engine::care::harness::until;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, LOG, kill_all, sees, signal},
    k_truth::{WAITS, ended_meanwhile, row, verdict},
};

/// A step of an agent that ends while no engine is there, with this as its last words.
fn agent_ended_meanwhile(step: &str, words: &str) -> (Bench, PathBuf) {
    let steps =
        format!("  - {{ id: a, agent: talker, prompt: p{step} }}\n  - {{ id: b, run: LOG }}\n");
    let bench = Bench::new(&steps);
    bench.workflow("w.yaml", "agents: { talker: { use: talker } }\nsteps:", &steps);
    bench.write("s.json", "{ \"type\": \"object\" }");
    bench.write(
        "agent.sh",
        &format!("{WAITS}\necho '{{\"session\":\"s-1\"}}'\n{words}\n").replace("LOG", LOG),
    );
    let config = "[agents.talker]\nadapter = 'lines'\ncommand = ['sh', 'agent.sh', '{prompt}']\n";
    bench.write(".onward/config.toml", config);
    let run = ended_meanwhile(&bench);
    (bench, run)
}

#[test]
fn k1_what_an_agent_said_of_its_end_meanwhile_is_heard_by_the_plan() {
    let badly = "echo '{\"error\":\"failed\",\"detail\":\"no way\"}'";
    for (step, words, detail) in [
        ("", badly, "no way"),
        ("", "exit 3", "exit 3"),
        ("", "true", "never said that it was through"),
        (", writes: [x.md]", badly, "no way"),
    ] {
        let (bench, run) = agent_ended_meanwhile(step, words);
        let plan = bench.plan(&run);
        assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("adopt", "verify"), "{plan:#}");
        assert!(row(&plan, "a").to_string().contains(detail), "{plan:#}");
        assert!(row(&plan, "b").to_string().contains("it waits for a: a failed"), "{plan:#}");
        let summary = plan["recovery_point"]["summary"].as_str().unwrap();
        assert!(summary.contains("a failed while the engine was down"), "{summary}");
        bench.exits("resume --no-input", 10);
        assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![]), "{words}");
    }
}

/// In the session of the one that failed: the plan knows that there is one.
#[test]
fn k1_an_agent_that_gave_no_result_meanwhile_is_planned_to_mend_it() {
    let words = "echo '{\"answer\":\"fine\"}'";
    let (bench, run) = agent_ended_meanwhile(", result: { schema: s.json }", words);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("rerun", "run"), "{plan:#}");
    assert!(row(&plan, "a").to_string().contains("gave no result"), "{plan:#}");
    bench.exits("resume --no-input", 10);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1, 2], vec![]));
}

/// What it spent counts before the resume bills it.
#[test]
fn k3_what_an_agent_spent_meanwhile_is_known_to_the_plan() {
    let words = "echo '{\"spent\":{\"usd\":2}}'; echo '{\"answer\":\"fine\"}'";
    let (bench, run) = agent_ended_meanwhile("", words);
    let text = bench.text("w.yaml").replace("steps:", "limits: { usd: 1 }\nsteps:");
    bench.write("w.yaml", &text);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("adopt", "verify"), "{plan:#}");
    assert!(row(&plan, "b").to_string().contains("run, when the budget is raised"), "{plan:#}");
    bench.exits("resume --no-input", 13);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![]));
}

#[test]
fn k1_an_agent_that_ended_well_meanwhile_is_believed_by_the_plan() {
    for (step, words) in [
        ("", "echo '{\"answer\":\"fine\"}'"),
        (", result: { schema: s.json }", "echo '{\"answer\":\"{\\\"n\\\": 1}\"}'"),
        (", result: { schema: s.json }", "echo '{\"answer\":\"fine\",\"result\":{\"n\":1}}'"),
    ] {
        let (bench, run) = agent_ended_meanwhile(step, words);
        let plan = bench.plan(&run);
        assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("adopt", "run"), "{plan:#}");
        bench.exits("resume --no-input", 0);
        assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![1]), "{words}");
    }
}

#[test]
fn k1_an_agent_that_met_a_limit_meanwhile_is_planned_to_wait() {
    let words = "echo '{\"limit\":{\"provider\":\"p\",\"resets_at\":32503680000}}'; exit 1";
    let (bench, run) = agent_ended_meanwhile("", words);
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("adopt", "verify"), "{plan:#}");
    let summary = plan["recovery_point"]["summary"].as_str().unwrap();
    assert!(summary.contains("a met a limit while the engine was down"), "{summary}");
    assert!(!summary.contains("ends as failed"), "{summary}");
    assert!(
        row(&plan, "a").to_string().contains("tried again when the limit is lifted"),
        "{plan:#}"
    );
    bench.exits("resume --no-input", 12);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![]));
}

#[test]
fn k1_what_a_person_has_to_mend_for_an_agent_is_no_end_of_the_run() {
    let (bench, run) =
        agent_ended_meanwhile("", "echo '{\"error\":\"auth\",\"detail\":\"log in\"}'");
    let plan = bench.plan(&run);
    assert_eq!((verdict(&plan, "a"), verdict(&plan, "b")), ("adopt", "verify"), "{plan:#}");
    let summary = plan["recovery_point"]["summary"].as_str().unwrap();
    assert!(summary.contains("waits for you"), "{summary}");
    let code = bench.onward("resume --no-input").code;
    assert_ne!(code, 10);
    assert_eq!((bench.ran("a"), bench.ran("b")), (vec![1], vec![]));
}

/// What answers nothing and is not stopped either stands in for a supervisor that hangs.
#[test]
fn k6_a_resume_says_what_it_waits_for_and_a_signal_ends_the_wait() {
    for name in ["-INT", "-TERM"] {
        let bench = Bench::new(&format!("  - {{ id: a, run: '{WAITS}' }}\n"));
        let (mut engine, run) = bench.start_run();
        sees(&bench.path("begun"));
        engine.kill().unwrap();
        let path = run.join("supervisor");
        let mut place: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        kill_all(&run);
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let began = stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap();
        place["pid"] = json!(std::process::id());
        place["start_time"] = json!(began.parse::<u64>().unwrap());
        let socket = PathBuf::from(place["socket"].as_str().unwrap());
        fs::remove_file(&socket).unwrap();
        let silent = UnixListener::bind(&socket).unwrap();
        fs::write(&path, place.to_string()).unwrap();
        let mut engine = bench.start("resume --no-input");
        let words = format!("supervisor of the run, process {}", std::process::id());
        until("a word", || Ok(bench.text("said").contains(&words).then_some(()))).unwrap();
        signal(engine.pid(), name);
        assert!(!engine.wait().unwrap().success());
        let said = bench.text("said");
        assert!(said.contains("interrupted") && !said.contains("not answer;"), "{said}");
        drop(silent);
        fs::remove_file(&path).unwrap();
        bench.write("go", "");
        bench.exits("resume --no-input", 0);
    }
}
