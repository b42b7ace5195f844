//! What an answer saw, against what its gate would show now.

use super::*;

#[test]
fn an_approval_counts_for_the_content_it_saw_and_only_until_it_is_used() {
    let yaml = "
steps:
  - { id: ok, gate: 'Go?', shows: [notes.md] }
  - { id: b, run: do b }
  - { id: c, run: do c }";
    let mut bench = Bench::new(yaml);
    bench.facts.attended = true;
    bench.files.insert("notes.md".into(), "one".into());
    let mut bench = bench.tell("");
    // A person edits what was shown, and then the answer to the old content comes in.
    bench.files.insert("notes.md".into(), "two".into());
    let mut bench = bench.tell("ok=approve");
    assert!(bench.log.ends_with("> ok=approve\nask ok: Go?\n"), "{}", bench.log);
    bench = bench.tell("ok=approve");
    assert!(bench.log.ends_with("start b #1: do b\n"), "{}", bench.log);
    // Used once, it is never compared again.
    bench.files.insert("notes.md".into(), "three".into());
    let bench = bench.tell("b!");
    assert!(bench.log.ends_with("start c #1: do c\n"), "{}", bench.log);
}

#[test]
fn a_used_approval_is_asked_for_again_when_the_work_before_the_gate_is_done_again() {
    let yaml = "
steps:
  - { id: a, run: do a }
  - { id: ok, gate: 'Go?', shows: [notes.md] }
  - { id: b, run: do b }
  - { id: c, run: do c }";
    let after = |content: &str, script: &str| {
        let mut bench = Bench::new(yaml);
        bench.facts.attended = true;
        bench.files.insert("notes.md".into(), "one".into());
        let mut bench = bench.tell("a! ok=approve");
        bench.files.insert("notes.md".into(), content.into());
        bench.tell(script).log
    };
    // It failed on the strength of the answer; then what the answer saw is written again.
    let log = after("two", "b?failed aX R a!new");
    assert!(log.ends_with("> a!new\nask ok: Go?\n"), "{log}");
    let log = after("two", "b?failed aX R a!new ok=approve");
    assert!(log.ends_with("> ok=approve\nstart b #2: do b\n"), "{log}");
    let log = after("one", "b?failed aX R a!new");
    assert!(log.ends_with("> a!new\nstart b #2: do b\n"), "{log}");
    // Work after the gate may change what the gate showed.
    let log = after("two", "b! bX");
    assert!(log.ends_with("> bX\nstart b #2: do b\n"), "{log}");
}

#[test]
fn an_approval_inside_a_group_binds_what_comes_after_the_group() {
    let yaml = "
steps:
  - id: g
    steps: [{ id: ok, gate: 'Go?', shows: [notes.md] }]
  - { id: b, run: do b }";
    let mut bench = Bench::new(yaml);
    bench.facts.attended = true;
    bench.files.insert("notes.md".into(), "one".into());
    let mut bench = bench.tell("");
    bench.files.insert("notes.md".into(), "two".into());
    let bench = bench.tell("g/ok=approve g/ok=approve");
    assert!(bench.log.ends_with("> g/ok=approve\nstart b #1: do b\n"), "{}", bench.log);
    let gate = &bench.run.state.steps["g/ok"].gate;
    assert!(gate.as_ref().unwrap().consumed);
}

#[test]
fn an_approval_that_no_step_comes_after_is_compared_before_the_run_ends() {
    let after = |yaml: &str, script: &str, content: &str, more: &str| {
        let mut bench = Bench::new(yaml);
        bench.facts.attended = true;
        bench.files.insert("notes.md".into(), "one".into());
        let mut bench = bench.tell(script);
        bench.files.insert("notes.md".into(), content.into());
        bench.tell(more).log
    };
    let last = "\nsteps:\n  - { id: ok, gate: 'Go?', shows: [notes.md] }";
    let log = after(last, "", "two", "ok=approve");
    assert!(log.ends_with("> ok=approve\nask ok: Go?\n"), "{log}");
    let log = after(last, "", "two", "ok=approve ok=approve");
    assert!(log.ends_with("> ok=approve\nend Completed\n"), "{log}");
    // A loop that took another turn has acted on the answer of the turn before.
    let turns = "
steps:
  - id: r
    repeat: { max: 3, until: \"{{ steps.ok.result.option == 'approve' }}\" }
    steps: [{ id: ok, gate: 'Go?', shows: [notes.md] }]";
    let log = after(turns, "r[1]/ok=reject", "two", "r[2]/ok=approve");
    assert!(log.ends_with("> r[2]/ok=approve\nask r[2]/ok: Go?\n"), "{log}");
    let log = after(turns, "r[1]/ok=reject", "two", "r[2]/ok=approve r[2]/ok=approve");
    assert!(log.ends_with("> r[2]/ok=approve\nend r after 2: Until\nend Completed\n"), "{log}");
    // What was asked again is answered otherwise: the loop has not ended because of the yes.
    let log = after(turns, "r[1]/ok=reject", "two", "r[2]/ok=approve r[2]/ok=reject");
    assert!(log.ends_with("> r[2]/ok=reject\nturn r 3\nask r[3]/ok: Go?\n"), "{log}");
}

#[test]
fn an_answered_gate_is_compared_with_what_it_would_show_now() {
    let mut bench = Bench::new(
        "
steps:
  - { id: ok, gate: 'Go?', shows: [notes.md] }
  - { id: b, run: do b }",
    );
    bench.facts.attended = true;
    bench.files.insert("notes.md".into(), "one".into());
    let bench = bench.tell("ok=approve");
    let gate = crate::address::Address::from_text("ok");
    let shown = |content: Option<&str>| {
        let mut bench = Bench::new("steps: [{ id: other, run: x }]");
        bench.files.extend(content.map(|it| ("notes.md".to_owned(), it.to_owned())));
        let found = bench.files.keys().map(|path| bench.proof(path)).collect();
        let mut facts = Facts::default();
        let globs = &mut facts.by_step.entry(gate.clone()).or_default().globs;
        globs.insert("notes.md".to_owned(), found);
        facts
    };
    let looked = |facts: &Facts| gate_content(&bench.run, facts, &gate);
    assert!(matches!(looked(&shown(Some("one"))), Content::Same));
    assert!(matches!(looked(&shown(Some("two"))), Content::Moved));
    assert!(matches!(looked(&shown(None)), Content::Moved));
    assert!(matches!(looked(&Facts::default()), Content::Lacks(_)));
    let step = crate::address::Address::from_text("b");
    assert!(matches!(gate_content(&bench.run, &Facts::default(), &step), Content::Same));
}
