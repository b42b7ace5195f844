//! What is decided, told as what a watcher would see.

mod ahead;
mod approvals;
mod limits;
mod tolerated;

use serde_json::json;

use super::*;
use crate::{launch::Program, testing::Bench};

#[track_caller]
fn check(yaml: &str, script: &str, expected: &str) {
    let bench = Bench::new(yaml).tell(script);
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let told: Vec<&str> = bench.log.lines().collect();
    assert_eq!(told, expected, "\n{}", bench.log);
}

#[test]
fn a_failure_is_retried_for_its_cause_after_a_backoff_that_doubles() {
    check(
        "steps: [{ id: a, run: x, retry: { max: 2, backoff: 10s } }]",
        "a?crash +9s +1s a?crash +19s +1s a?crash",
        "start a #1: x
         > a?crash
         wake in 10s
         > +9s
         wake in 1s
         > +1s
         start a #2: x
         > a?crash
         wake in 20s
         > +19s
         wake in 1s
         > +1s
         start a #3: x
         > a?crash
         end Failed: a: bad",
    );
}

#[test]
fn a_failure_of_another_cause_is_not_retried() {
    check(
        "steps: [{ id: a, run: x, retry: { max: 2, backoff: 10s } }]",
        "a?failed",
        "start a #1: x
         > a?failed
         end Failed: a: bad",
    );
    check(
        "steps: [{ id: a, run: x, retry: { max: 1, backoff: 0s, on: [failed] } }]",
        "a?failed a?failed",
        "start a #1: x
         > a?failed
         start a #2: x
         > a?failed
         end Failed: a: bad",
    );
}

#[test]
fn a_retry_undoes_what_the_failed_try_left_unless_the_step_keeps_it() {
    let reverts = |keep: &str| {
        let yaml = format!(
            "steps: [{{ id: a, run: x, {keep} retry: {{ max: 1, backoff: 0s, on: [failed] }} }}]"
        );
        let bench = Bench::new(&yaml);
        let first = bench.tell("");
        assert!(!first.starts["a"].revert_previous);
        first.tell("a?failed").starts["a"].revert_previous
    };
    assert!(reverts(""));
    assert!(!reverts("keep: true,"));
}

#[test]
fn a_gate_asks_and_the_run_lets_go_when_nothing_else_can_be_done() {
    let yaml = "
steps:
  - { id: a, run: do a }
  - { id: ok, gate: 'Publish {{ steps.a.result.what }}?', shows: [notes.md] }
  - { id: b, run: do b }";
    check(
        yaml,
        r#"a!{"what":"it"}"#,
        r#"start a #1: do a
           > a!{"what":"it"}
           ask ok: Publish it?
           pause Gate"#,
    );
    let mut attended = Bench::new(yaml);
    attended.facts.attended = true;
    let attended = attended.tell(r#"a!{"what":"it"} ok=approve"#);
    assert!(attended.log.ends_with("ask ok: Publish it?\n> ok=approve\nstart b #1: do b\n"));
}

#[test]
fn a_run_whose_steps_are_all_done_ends_whatever_it_has_spent() {
    let mut bench = Bench::new("limits: { usd: 1 }\nsteps: [{ id: a, run: do a }]").tell("");
    bench.run.state.spent = bench.run.defs.limits().usd.unwrap();
    let log = bench.tell("a!").log;
    assert!(log.ends_with("> a!\nend Completed\n"), "{log}");
}

#[test]
fn an_answer_that_ends_the_run_stops_what_runs_first() {
    check(
        "steps:
  - { id: a, run: do a }
  - { id: ok, needs: [], gate: 'Go?', options: [approve, cancel] }",
        "ok=cancel a!",
        "ask ok: Go?
         start a #1: do a
         > ok=cancel
         stop all
         > a!
         end Cancelled: a gate was answered so",
    );
}

#[test]
fn a_gate_that_waits_does_not_keep_other_steps_from_running() {
    check(
        "steps:
  - { id: ok, gate: 'Go?' }
  - { id: a, needs: [], run: do a }",
        "a!",
        "ask ok: Go?
         start a #1: do a
         > a!
         pause Gate",
    );
}

#[test]
fn a_template_that_fails_is_a_failure_of_its_step() {
    let bench = Bench::new(
        "steps:
  - { id: a, run: do a }
  - { id: b, run: 'do {{ steps.a.result.nothing }}' }",
    )
    .tell(r#"a!{"n":1}"#);
    assert!(bench.log.contains("cannot start b\nbecause Failed"), "{}", bench.log);
    assert!(bench.log.contains("end Failed: b: "), "{}", bench.log);
}

#[test]
fn an_each_that_is_no_list_and_items_that_clash_are_failures_with_a_reason() {
    for (items, reason) in [
        (json!({"names": "x"}), "is not a list but text"),
        (json!({"names": {"a": 1}}), "is not a list but an object"),
        (json!({"names": 7}), "is not a list but a number"),
        (json!({"names": true}), "is not a list but true or false"),
        (json!({"names": null}), "is not a list but nothing"),
        (json!({"names": ["x", "x"]}), "two items of `each` have the key `x`"),
        (json!({"names": [""]}), "an item of `each` is empty"),
        (json!({"names": [["x"]]}), "an item of `each` is a list; name it with `key:`"),
    ] {
        let bench = Bench::new(
            "steps:
  - { id: a, run: do a }
  - { id: fan, each: '{{ steps.a.result.names }}', run: do it }",
        )
        .tell(&format!("a!{}", items.to_string().replace(' ', "")));
        assert!(bench.log.contains(reason), "{reason}\n{}", bench.log);
        assert!(bench.log.contains("end Failed: fan: "), "{}", bench.log);
    }
}

#[test]
fn items_with_keys_that_do_not_fit_together_are_failures_with_a_reason() {
    for (items, reason) in [
        (json!([{"id": "a", "deps": ["b"]}]), "item `a` comes after `b`, which is not an item"),
        (json!([{"id": "a", "deps": ["a"]}]), "comes, by way of others, after itself"),
        (
            json!([{"id": "a", "deps": ["b"]}, {"id": "b", "deps": ["a"]}, {"id": "c"}]),
            "comes, by way of others, after itself",
        ),
        (json!([{"name": "a"}]), "an item of `each` has no text in `id`"),
        (json!([{"id": "a", "deps": "b"}]), "`deps` of item `a` is not a list of keys"),
        (json!([{"id": "a", "deps": [true]}]), "`deps` of item `a` is not a list of keys"),
    ] {
        let bench = Bench::new(
            "steps:
  - { id: a, run: do a }
  - { id: fan, each: '{{ steps.a.result.items }}', key: id, after: deps, run: do it }",
        )
        .tell(&format!("a!{}", json!({ "items": items }).to_string().replace(' ', "")));
        assert!(bench.log.contains(reason), "{reason}\n{}", bench.log);
    }
}

#[test]
fn numbers_and_flags_are_keys_too() {
    let bench = Bench::new(
        "steps:
  - { id: a, run: do a }
  - id: fan
    each: '{{ steps.a.result.items }}'
    key: id
    after: deps
    run: do it",
    )
    .tell(r#"a!{"items":[{"id":1},{"id":2,"deps":[1]},{"id":true,"deps":null}]}"#);
    assert!(bench.log.contains("expand fan [1 2 true]"), "{}", bench.log);
    assert!(bench.log.contains("start fan[1] #1"), "{}", bench.log);
    assert!(!bench.log.contains("start fan[2]"), "{}", bench.log);
}

#[test]
fn a_count_of_turns_may_come_from_an_expression_and_must_be_a_number() {
    let yaml = |max: &str| {
        format!(
            "inputs: {{ n: {{ type: integer, default: 1 }} }}
steps: [{{ id: l, repeat: {{ max: '{max}' }}, run: x }}]"
        )
    };
    let inputs = || [("n".to_owned(), json!(1))].into();
    let bench = Bench::with_inputs(&yaml("{{ inputs.n }}"), inputs()).tell("l[1]!");
    assert!(bench.log.ends_with("end l after 1: Max\nend Completed\n"), "{}", bench.log);
    let bench = Bench::with_inputs(&yaml("{{ 1.5 + inputs.n }}"), inputs()).tell("");
    assert!(bench.log.contains("is not a whole number but 2.5"), "{}", bench.log);
}

#[test]
fn a_start_has_the_key_of_what_it_is_made_from() {
    let mut bench = Bench::new(
        "agents: { writer: { use: claude, model: sonnet } }
steps:
  - { id: a, run: do a }
  - id: b
    agent: writer
    prompt: 'Write about {{ steps.a.result.what }} and {{ read_text(\"more.txt\") }}.'
    reads: [docs/*]
    writes: [out.md]
    check: test -s out.md
    env: { TOKEN: secret }",
    );
    bench.files.insert("docs/one".into(), "1".into());
    bench.files.insert("more.txt".into(), "more".into());
    let bench = bench.tell(r#"a!{"what":"it"}"#);
    let start = &bench.starts["b"];
    let key = &start.key;
    assert_eq!(key.definition["prompt"], "Write about it and more.");
    assert_eq!(key.definition["check"], "test -s out.md");
    assert_eq!(key.definition["env.TOKEN"], "set");
    assert_eq!(key.definition["writes"], "out.md");
    assert!(!format!("{key:?}").contains("secret"));
    assert_eq!(key.agent["use"], "claude");
    assert_eq!(key.agent["model"], "sonnet");
    let reads: Vec<&String> = key.reads.keys().collect();
    assert_eq!(reads, ["docs/one", "more.txt"]);
    assert_eq!(key.needs.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(start.writes, ["out.md"]);
    assert_eq!(start.agent.as_deref(), Some("writer"));
    assert_eq!(start.launch.env["TOKEN"], "secret");
    assert_eq!(start.launch.check.as_deref(), Some("test -s out.md"));
    assert!(start.launch.sync_seal);
    assert!(!bench.starts["a"].launch.sync_seal);
}

#[test]
fn values_are_quoted_in_commands_and_not_in_prompts() {
    let bench = Bench::new(
        "steps:
  - { id: a, run: do a }
  - { id: b, run: 'echo {{ steps.a.result.text }}' }
  - { id: c, needs: [a], agent: claude, prompt: 'Say {{ steps.a.result.text }}' }",
    )
    .tell(r#"a!{"text":"$(rm)"}"#);
    assert_eq!(bench.starts["b"].key.definition["run"], "echo '$(rm)'");
    assert_eq!(bench.starts["c"].key.definition["prompt"], "Say $(rm)");
}

#[test]
fn an_effect_has_one_name_for_all_its_attempts() {
    let bench = Bench::new(
        "steps: [{ id: a, run: x, effect: outside, probe: { run: y, absent: 1 },
                   retry: { max: 1, backoff: 0s, on: [failed] } }]",
    )
    .tell("");
    let first = bench.starts["a"].effect.clone().unwrap();
    assert!(first.starts_with("test-20261115-aaaa-"), "{first}");
    assert_eq!(bench.starts["a"].launch.env["ONWARD_EFFECT_ID"], first);
    assert!(bench.starts["a"].launch.sync_seal);
    let bench = bench.tell("a?failed");
    assert_eq!(bench.starts["a"].launch.attempt, 2);
    assert_eq!(bench.starts["a"].effect.as_ref(), Some(&first));
}

#[test]
fn a_stop_that_was_asked_for_starts_nothing_new() {
    let mut bench = Bench::new("steps: [{ id: a, run: x }]");
    bench.facts.draining = true;
    assert_eq!(bench.tell("").log, "");
}

#[test]
fn a_run_that_is_over_or_paused_has_nothing_to_decide() {
    let bench = Bench::new("steps: [{ id: a, run: x }]").tell("a!");
    assert_eq!(decide(&bench.run, &bench.facts, bench.now), []);
    let mut paused = Bench::new("steps: [{ id: a, run: x }]");
    paused.record(Event::RunPaused { cause: PauseCause::Asked, until: None });
    assert_eq!(decide(&paused.run, &paused.facts, paused.now), []);
}

#[test]
fn an_announced_attempt_is_rendered_again_only_while_it_is_the_same() {
    let mut bench = Bench::new("steps: [{ id: a, run: 'x {{ read_text(\"f\") }}' }]");
    bench.files.insert("f".into(), "one".into());
    let mut bench = bench.tell("");
    let step = crate::address::Address::from_text("a");
    assert!(matches!(start_again(&bench.run, &bench.facts, &step), Again::Lacks(_)));
    let mut facts = Facts::default();
    let texts = &mut facts.by_step.entry(step.clone()).or_default().texts;
    texts.insert("f".into(), Some("one".into()));
    let Again::Same(start) = start_again(&bench.run, &facts, &step) else {
        panic!("it is the same")
    };
    assert_eq!(start.launch.attempt, 1);
    bench.facts = facts;
    let texts = &mut bench.facts.by_step.entry(step.clone()).or_default().texts;
    texts.insert("f".into(), Some("two".into()));
    assert!(matches!(start_again(&bench.run, &bench.facts, &step), Again::Different));
    let unknown = crate::address::Address::from_text("b");
    assert!(matches!(start_again(&bench.run, &bench.facts, &unknown), Again::Different));
}

#[test]
fn templates_see_inputs_items_turns_and_steps_from_the_inside_out() {
    let inputs = || [("topic".to_owned(), json!("bees"))].into();
    let bench = Bench::with_inputs(
        "inputs: { topic: { type: string } }
steps:
  - { id: a, run: 'one {{ inputs.topic }} {{ run.id }}' }
  - id: each
    each: [p, q]
    as: who
    steps:
      - { id: in, run: 'inner {{ who }} {{ steps.a.result.n }}' }
      - { id: b, run: '{{ steps.in.status }} {{ who }}' }
  - id: round
    repeat: { max: 2 }
    steps: [{ id: x, run: '{{ round }} {{ steps.each.items.p.b.status }}' }]
  - { id: z, run: '{{ steps.round.turns | length }} {{ steps.round.last.x.result.v }}' }",
        inputs(),
    )
    .tell(
        r#"a!{"n":7} each[p]/in! each[q]/in! each[p]/b! each[q]/b!
           round[1]/x!{"v":1} round[2]/x!{"v":2}"#,
    );
    for line in [
        "start a #1: one bees test-20261115-aaaa",
        "start each[q]/in #1: inner q 7",
        "start each[p]/b #1: 'done' p",
        "start round[2]/x #1: 2 'done'",
        "start z #1: 2 2",
    ] {
        assert!(bench.log.contains(line), "{line}\n{}", bench.log);
    }
}

#[test]
fn only_the_need_that_changed_is_named_when_a_step_is_taken_back() {
    let yaml = "
steps:
  - { id: a, needs: [], run: x }
  - { id: b, needs: [], run: y }
  - { id: c, needs: [a, b], run: z }
  - { id: d, run: w }";
    let bench = Bench::new(yaml).tell("a!one b!two c!three aX a!other");
    assert!(bench.log.contains("\ninvalidate c: needs.a\n"), "{}", bench.log);
}

const FAN: &str = "
steps:
  - { id: list, run: x }
  - { id: fan, each: '{{ steps.list.result.items }}', key: id, run: 'do {{ item.id }}' }
  - { id: last, run: y }";

#[test]
fn items_that_are_listed_again_keep_and_only_new_ones_run() {
    let script = r#"list!{"items":[{"id":"p"},{"id":"q"}]} fan[p]! fan[q]!
        listX list!{"items":[{"id":"q"},{"id":"r"}]} fan[r]!"#;
    let bench = Bench::new(FAN).tell(script);
    let expected = "start list #2: x
> list!{\"items\":[{\"id\":\"q\"},{\"id\":\"r\"}]}
invalidate fan[p]: items.fan
expand fan [q r]
start fan[r] #1: do r
> fan[r]!
";
    assert!(bench.log.ends_with(expected), "{}", bench.log);
}

#[test]
fn an_item_whose_value_changed_runs_again() {
    let script = r#"list!{"items":[{"id":"p","n":1},{"id":"q"}]} fan[p]! fan[q]!
        listX list!{"items":[{"id":"p","n":2},{"id":"q"}]}"#;
    let bench = Bench::new(FAN).tell(script);
    let expected = "invalidate fan[p]: items.fan\nexpand fan [p q]\nstart fan[p] #2: do p\n";
    assert!(bench.log.ends_with(expected), "{}", bench.log);
}

#[test]
fn items_that_look_at_the_step_that_lists_them_follow_it() {
    let yaml = "
steps:
  - { id: list, run: x }
  - { id: fan, each: '{{ steps.list.result.items }}', run: 'do {{ steps.list.result.how }}' }
  - { id: last, run: y }";
    let script = r#"list!{"items":["p"],"how":1} fan[p]! listX list!{"items":["p"],"how":2}"#;
    let bench = Bench::new(yaml).tell(script);
    let expected = "invalidate fan[p]: needs.list\nstart fan[p] #2: do 2\n";
    assert!(bench.log.ends_with(expected), "{}", bench.log);
}

#[test]
fn an_item_that_vanishes_while_it_runs_is_taken_back_when_it_has_ended() {
    let script = r#"list!{"items":[{"id":"p"},{"id":"q"}]} fan[p]!
        listX list!{"items":[{"id":"p"}]}"#;
    let bench = Bench::new(FAN).tell(script);
    assert!(!bench.log.contains("invalidate fan[q]"), "it runs:\n{}", bench.log);
    let bench = bench.tell("fan[q]!");
    let expected = "invalidate fan[q]: items.fan\nexpand fan [p]\nstart last #1: y\n";
    assert!(bench.log.ends_with(expected), "{}", bench.log);
}

#[test]
fn a_loop_whose_condition_does_not_hold_never_turns() {
    check(
        "steps: [{ id: l, when: '{{ 1 > 2 }}', repeat: { max: 2 }, run: x }]",
        "",
        "skip l
         end Completed",
    );
    // Asked once: what comes to hold or not in the middle of a loop does not end it.
    check(
        "steps:
  - { id: l, when: '{{ run.id != \"\" }}', repeat: { max: 2 }, run: x }",
        "l[1]! l[2]!",
        "turn l 1
         start l[1] #1: x
         > l[1]!
         turn l 2
         start l[2] #1: x
         > l[2]!
         end l after 2: Max
         end Completed",
    );
}

#[test]
fn a_call_is_given_the_values_it_asks_for() {
    let yaml = "
steps:
  - { id: a, run: x }
  - { id: b, call: some.thing, with: { of: '{{ steps.a.result.n }}', and: plain } }";
    let bench = Bench::new(yaml).tell(r#"a!{"n":[1,2]}"#);
    let start = &bench.starts["b"];
    let Program::Call { name, with } = &start.launch.program else { panic!("it is a call") };
    assert_eq!((name.as_str(), with), ("some.thing", &json!({ "of": [1, 2], "and": "plain" })));
    assert_eq!(start.key.definition["call"], "some.thing");
    assert_eq!(start.key.definition["with"], with.to_string());
}

#[test]
fn a_template_of_a_step_can_be_looked_at_without_starting_it() {
    let yaml = "
steps:
  - { id: a, run: x }
  - { id: b, run: y, check: 'test {{ steps.a.result.n }} = {{ read_text(\"f\") }}' }
  - { id: c, run: z, check: 'test {{ steps.a.result.n }}' }";
    let bench = Bench::new(yaml).tell(r#"a!{"n":"a;b"}"#);
    let look = |step: &str, quoting| {
        let id = bench.run.graph.find(&crate::address::Address::from_text(step)).unwrap();
        let declared = bench.run.defs.step(bench.run.graph.node(id).def);
        text(&bench.run, id, declared.check.as_ref().unwrap(), quoting)
    };
    assert_eq!(look("c", Quoting::Shell).as_deref(), Some("test 'a;b'"));
    assert_eq!(look("c", Quoting::Plain).as_deref(), Some("test a;b"));
    assert_eq!(look("b", Quoting::Shell), None, "the file has not been read yet");
}
