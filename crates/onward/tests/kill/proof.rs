//! Done is proved, not believed; effects are asked about; secrets stay where they are.

use crate::bench::{Bench, journal, kill_all, sees};

#[test]
fn case_14_exit_code_0_alone_is_not_done() {
    for (step, cause) in [
        ("run: LOG, writes: [nowhere]", "unproved"),
        ("run: LOG, check: 'false'", "unproved"),
        ("run: 'LOG; echo 5 > $ONWARD_RESULT', result: { schema: words.json }", "schema violation"),
    ] {
        let bench = Bench::new("");
        std::fs::write(bench.path("words.json"), "{\"type\": \"string\"}").unwrap();
        let steps = format!("  - {{ id: one, {step} }}\n  - {{ id: two, run: LOG }}\n");
        bench.workflow("w.yaml", "steps:", &steps);
        let said = bench.exits("run w.yaml", 10);
        assert!(said.err.contains(&format!("one: {cause}")), "{step}: {said:?}");
        assert_eq!([bench.ran("one"), bench.ran("two")], [vec![1], vec![]]);
    }
}

/// Killed between the intent and the receipt of an effect that did, or did not, happen.
fn killed_in_an_effect(happens: bool) -> Bench {
    let act = if happens { "echo > sent;" } else { "" };
    let bench = Bench::new(&format!(
        "  - id: send\n    run: 'LOG; [ $ONWARD_ATTEMPT = 2 ] || {{ {act} echo > begun; \
         sleep 1000; }}; echo > sent'\n    effect: outside\n    probe: {{ run: test -e sent }}\n\
         \x20 - {{ id: after, run: LOG }}\n"
    ));
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    assert!(journal(&run).contains("effect.intended"));
    bench.exits("resume", 0);
    let settled = format!("\"happened\":{happens},\"by\":\"probe\"");
    assert!(journal(&run).contains(&settled), "{}", journal(&run));
    assert_eq!(bench.ran("after"), [1]);
    bench
}

#[test]
fn an_effect_that_happened_is_not_made_again() {
    assert_eq!(killed_in_an_effect(true).ran("send"), [1]);
}

#[test]
fn an_effect_that_did_not_happen_is_made() {
    assert_eq!(killed_in_an_effect(false).ran("send"), [1, 2]);
}

#[test]
fn an_effect_that_nobody_can_tell_waits_for_a_person() {
    let bench =
        Bench::new("  - { id: send, run: 'LOG; echo > begun; sleep 1000', effect: outside }\n");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    let said = bench.exits("resume", 16);
    assert!(said.err.contains("effect-unknown"), "{said:?}");
    assert_eq!(bench.ran("send"), [1]);
}

#[test]
fn no_secret_reaches_the_journal() {
    let bench = Bench::new("");
    bench.workflow(
        "w.yaml",
        "inputs: { word: { type: string, default: none } }\nsteps:",
        "  - id: one\n    run: 'LOG; echo $X_TOKEN; echo \"\\\"$X_TOKEN\\\"\" > $ONWARD_RESULT'\n\
         \x20 - id: two\n    \
         run: 'LOG; echo {{ steps.one.stdout }} {{ steps.one.result }} > two'\n",
    );
    let secret = "tok-5f0c9a77d1";
    let mut refused = bench.command("run w.yaml --input");
    let refused = refused.arg(format!("word={secret}")).env("X_TOKEN", secret).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let output = bench.command("run w.yaml").env("X_TOKEN", secret).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let run = bench.project().runs().unwrap().remove(0).dir;
    assert!(!journal(&run).contains(secret), "{}", journal(&run));
    assert!(journal(&run).contains("[redacted:X_TOKEN]"), "{}", journal(&run));
}
