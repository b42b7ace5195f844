//! Files that would take the machine are refused with a reason.

use std::{fmt::Write as _, fs};

use crate::bench::Bench;

/// A bound in memory, so that a mistake ends the test and not the machine.
fn check(bench: &Bench, arguments: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_onward");
    let script = format!("ulimit -v 2000000; exec {program} {arguments}");
    let mut command = std::process::Command::new("sh");
    let output = command.arg("-c").arg(script).current_dir(&bench.root).output().unwrap();
    let shown = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&shown).chars().take(2000).collect())
}

#[test]
fn c7_a_workflow_file_that_is_a_bomb_is_refused_with_a_reason() {
    let bench = Bench::new("");
    let aliases = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(20_000));
    let mut keys = String::new();
    for number in 0..100_000 {
        writeln!(keys, "k{number}: 1\nk{number}: 2").unwrap();
    }
    let step = |when: &str| {
        format!("onward: 1\nname: x\nsteps:\n  - {{ id: a, run: ls, when: \"{when}\" }}\n")
    };
    let nots = step(&format!("{{{{ {} true }}}}", "not ".repeat(10_000)));
    let deep = step(&format!("{{{{ {}1{} }}}}", "(".repeat(20_000), ")".repeat(20_000)));
    let nested = format!("onward: 1\nname: x\nsteps: [{}", ": ".repeat(20_000));
    let chained = (1..400).map(|it| format!("a{it}: &a{it} [*a{}]\n", it - 1));
    let chained = format!("a0: &a0 x\n{}", chained.collect::<String>());
    for (text, reason) in [
        (nested, "nested deeper than 100 levels"),
        (chained, "nested deeper than 100 levels"),
        (aliases, "expand to far more"),
        (keys, "is given twice"),
        (nots, "more than 300 operators"),
        (deep, "more than 300 operators"),
    ] {
        bench.write("w.yaml", &text);
        let (code, shown) = check(&bench, "check w.yaml");
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains(reason), "{reason}: {shown}");
    }
}

#[test]
fn c7_a_template_that_grows_fails_its_step_with_a_reason() {
    for hole in [
        "{% set ns = namespace(x='abcdefgh') %}{% for i in range(99) %}\
         {% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
        "{{ 'x' | indent(10000000000, true) }}",
        "{{ '%999999999d' | format(1) }}",
        "{{ [1] | batch(9999999999, 'x') }}",
    ] {
        let bench = Bench::new("");
        let steps = format!("  - id: a\n    gate: |\n      {hole}\n");
        bench.workflow("w.yaml", "steps:", &steps);
        let (code, shown) = check(&bench, "run w.yaml --no-input");
        assert!(matches!(code, Some(1 | 2 | 10)), "{hole}: {code:?} {shown}");
        assert!(shown.contains("MiB"), "{hole}: {shown}");
    }
}

#[test]
fn c7_a_conference_of_eight_thousand_researchers_is_refused_or_planned() {
    let bench = Bench::new("");
    let dir = bench.path("hall");
    fs::create_dir(&dir).unwrap();
    let md = "# Conference\n\n## Goal\nx\n\n## Mode\nmetric\n\n## Success Metric\n- **Metric:** m\n\
        - **Target:** 5\n- **Direction:** minimize\n\n## Researchers\n- **Count:** 8000\n\
        - **Iterations per round:** 2\n- **Max rounds:** 2\n\n## Shared Knowledge\n\n\
        ## Conference Log\n";
    fs::write(dir.join("conference.md"), md).unwrap();
    let at = "2026-05-04T20:00:00Z";
    let mut log = format!(
        "{{\"event\":\"conference.started\",\"timestamp\":\"{at}\",\
         \"payload\":{{\"researchers\":8000}}}}\n\
         {{\"event\":\"round.started\",\"timestamp\":\"{at}\",\"payload\":{{\"round\":1}}}}\n"
    );
    for number in 0..8000 {
        writeln!(
            log,
            "{{\"event\":\"researcher.iteration\",\"timestamp\":\"{at}\",\"payload\":{{\
             \"researcher\":\"R{number}\",\"round\":1,\"iteration\":1,\"metric_value\":1,\
             \"delta\":0,\"status\":\"kept\"}}}}"
        )
        .unwrap();
    }
    fs::write(dir.join("conference_events.jsonl"), log).unwrap();
    let (code, shown) = check(&bench, "plan hall");
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Researchers in the last round"), "{shown}");
}
