//! Conditions of steps to come: decided where everything that they look at is known, told as open
//! where it is not.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    a_plan::waits_for_seal,
    bench::{Bench, id, sees},
};

/// The verdict of a row and the causes beside it.
fn row<'p>(plan: &'p Value, step: &str) -> (&'p str, Vec<&'p str>) {
    let rows = plan["steps"].as_array().unwrap();
    let row = rows.iter().find(|row| row["step"] == step);
    let row = row.unwrap_or_else(|| panic!("no row for {step}: {plan:#}"));
    let whys = row["why"].as_array().unwrap().iter();
    (row["verdict"].as_str().unwrap(), whys.map(|it| it["cause"].as_str().unwrap()).collect())
}

fn verdicts<'p>(plan: &'p Value, steps: &[&str]) -> Vec<&'p str> {
    steps.iter().map(|step| row(plan, step).0).collect()
}

fn summary(plan: &Value) -> &str {
    plan["recovery_point"]["summary"].as_str().unwrap()
}

const WAITS: &str = "LOG; touch begun; while ! test -e go; do sleep 0.02; done; echo no";

/// The engine is killed while the step `a` waits for the file `go`.
fn killed(bench: &Bench) -> PathBuf {
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    run
}

fn ends(bench: &Bench, run: &Path) {
    bench.write("go", "");
    waits_for_seal(run, "a");
}

fn asked() -> Bench {
    Bench::new(&format!(
        "  - {{ id: a, run: '{WAITS}' }}\n  \
         - {{ id: b, run: 'LOG', when: \"{{{{ steps.a.stdout | trim == 'yes' }}}}\" }}\n  \
         - {{ id: c, run: 'LOG', when: \"{{{{ steps.a.stdout | trim == 'no' }}}}\" }}\n  \
         - {{ id: d, run: 'LOG' }}\n"
    ))
}

#[test]
fn i1_a_when_behind_a_step_that_ended_meanwhile_is_decided_by_its_output() {
    let bench = asked();
    let run = killed(&bench);
    ends(&bench, &run);
    let plan = bench.plan(&run);
    let all = ["a", "b", "c", "d"];
    assert_eq!(verdicts(&plan, &all), ["adopt", "skip", "run", "run"], "{plan:#}");
    assert_eq!(plan["recovery_point"]["steps"], serde_json::json!(["c"]), "{plan:#}");
    bench.exits("resume --no-input", 0);
    let ran: Vec<usize> = all.iter().map(|step| bench.ran(step).len()).collect();
    assert_eq!(ran, [1, 0, 1, 1]);
}

#[test]
fn i1_a_loop_behind_a_step_that_ended_meanwhile_is_through_or_turns() {
    for (until, verdict) in [("no", "no row"), ("yes", "run")] {
        let until_it = format!("until: \"{{{{ steps.a.stdout | trim == '{until}' }}}}\"");
        let bench = Bench::new(&format!(
            "  - id: l\n    repeat: {{ max: 2, {until_it} }}\n    \
                 steps: [ {{ id: a, run: '{WAITS}' }} ]\n  \
             - {{ id: z, run: 'LOG' }}\n"
        ));
        let run = killed(&bench);
        bench.write("go", "");
        waits_for_seal(&run, "l[1]/a");
        let plan = bench.plan(&run);
        let rows = plan["steps"].as_array().unwrap();
        let second = rows.iter().find(|row| row["step"] == "l[2]/a");
        let second = second.map_or("no row", |row| row["verdict"].as_str().unwrap());
        assert_eq!(second, verdict, "{plan:#}");
        bench.exits("resume --no-input --yes", if until == "no" { 0 } else { 10 });
        assert_eq!(bench.ran("l[2]/a").len(), usize::from(until == "yes"));
    }
}

#[test]
fn i1_a_when_behind_a_step_that_lives_is_told_as_open() {
    let bench = asked();
    let run = killed(&bench);
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["a", "b", "c", "d"]), ["reattach", "verify", "verify", "run"]);
    assert_eq!(row(&plan, "b").1, ["when"], "{plan:#}");
    assert_eq!(plan["counts"]["verify"], 2, "{plan:#}");
    let page = bench.exits(&format!("plan {}", id(&run)), 0).out;
    assert!(page.contains("2 that may run"), "{page}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!([bench.ran("b").len(), bench.ran("c").len()], [0, 1]);
}

#[test]
fn i1_a_when_of_inputs_alone_is_decided_before_its_turn() {
    let bench = Bench::new("");
    let when = |it: &str| format!("when: \"{{{{ {it} }}}}\"");
    bench.workflow(
        "w.yaml",
        "inputs: { deploy: { type: boolean, default: false } }\nsteps:",
        &format!(
            "  - {{ id: a, run: '{WAITS}' }}\n  - {{ id: b, run: 'LOG', {} }}\n  \
             - {{ id: c, run: 'LOG', {} }}\n  \
             - {{ id: g, {}, steps: [ {{ id: d, run: LOG }} ] }}\n",
            when("inputs.deploy"),
            when("not inputs.deploy"),
            when("inputs.deploy"),
        ),
    );
    let run = killed(&bench);
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["b", "c", "g/d"]), ["skip", "run", "skip"], "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --no-input", 0);
    assert_eq!(["b", "c", "g/d"].map(|step| bench.ran(step).len()), [0, 1, 0]);
}

#[test]
fn i1_the_headline_says_so_when_all_that_is_left_depends_on_a_when() {
    // What an agent said is heard when the resume takes it in.
    let when = "when: \"{{ steps.a.stdout | trim == 'yes' }}\"";
    let bench = Bench::new(&format!(
        "  - {{ id: a, agent: scribe, prompt: p, edits: false }}\n  \
         - {{ id: g, {when}, steps: [ {{ id: b, run: LOG }} ] }}\n"
    ));
    bench.write("agent.sh", &WAITS.replace("LOG", crate::bench::LOG));
    bench.write(".onward/config.toml", "[agents.scribe]\ncommand = [\"sh\", \"agent.sh\"]\n");
    let run = killed(&bench);
    ends(&bench, &run);
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["a", "g/b"]), ["adopt", "verify"], "{plan:#}");
    assert_eq!(summary(&plan), "0 steps kept; g/b runs if its `when` holds", "{plan:#}");
    bench.exits("resume --no-input", 0);
    assert_eq!(bench.ran("g/b").len(), 0);
}

#[test]
fn i6_a_group_that_was_skipped_and_is_opened_now_has_steps_to_run() {
    let when = "when: \"{{ read_text('flag') | trim == 'yes' }}\"";
    let bench = Bench::new(&format!(
        "  - {{ id: g, {when}, steps: [ {{ id: b, run: LOG }}, {{ id: c, run: LOG }} ] }}\n  \
         - {{ id: z, run: 'LOG; test -e go' }}\n"
    ));
    bench.write("flag", "no\n");
    bench.exits("run w.yaml", 10);
    let run = bench.project().last_run().unwrap().dir;
    bench.write("flag", "yes\n");
    bench.write("go", "");
    let plan = bench.plan(&run);
    assert_eq!(verdicts(&plan, &["g/b", "g/c"]), ["run", "run"], "{plan:#}");
    let status = bench.exits(&format!("status --json {}", id(&run)), 0).json();
    let steps = status["steps"].as_array().unwrap();
    let state = |name: &str| {
        let step = steps.iter().find(|it| it["step"] == name);
        step.unwrap_or_else(|| panic!("{status:#}"))["state"].clone()
    };
    assert_eq!([state("g/b"), state("g/c")], ["pending", "pending"], "{status:#}");
    bench.exits("resume --no-input --yes", 0);
    assert_eq!([bench.ran("g/b").len(), bench.ran("g/c").len()], [1, 1]);
}
