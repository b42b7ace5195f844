//! Which nodes are ready, and what falls and rises when facts change.

use super::{Brief, Defs, Graph};
use crate::{digest::Digest, testing::Bench};

#[track_caller]
fn check(yaml: &str, script: &str, expected: &str) {
    let bench = Bench::new(yaml).tell(script);
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let told: Vec<&str> = bench.log.lines().collect();
    assert_eq!(told, expected, "\n{}", bench.log);
}

const DIAMOND: &str = "
steps:
  - { id: a, run: do a }
  - { id: b, needs: [a], run: do b }
  - { id: c, needs: [a], run: do c }
  - { id: d, needs: [b, c], run: do d }
";

#[test]
fn a_step_waits_for_all_it_needs() {
    check(
        DIAMOND,
        "a! b! c! d!",
        "start a #1: do a
         > a!
         start b #1: do b
         start c #1: do c
         > b!
         > c!
         start d #1: do d
         > d!
         end Completed",
    );
}

#[test]
fn a_step_needs_the_one_before_it_unless_it_says_otherwise() {
    check(
        "steps: [{ id: a, run: do a }, { id: b, run: do b }, { id: c, needs: [], run: do c }]",
        "a!",
        "start a #1: do a
         start c #1: do c
         > a!
         start b #1: do b",
    );
}

#[test]
fn the_limit_of_parallel_attempts_holds() {
    check(
        "limits: { parallel: 2 }
steps:
  - { id: a, needs: [], run: do a }
  - { id: b, needs: [], run: do b }
  - { id: c, needs: [], run: do c }
  - { id: d, needs: [], run: do d }",
        "b! a?",
        "start a #1: do a
         start b #1: do b
         > b!
         start c #1: do c
         > a?
         start d #1: do d",
    );
}

#[test]
fn a_failed_step_blocks_what_needs_it_and_nothing_else() {
    check(
        DIAMOND,
        "a! b? c!",
        "start a #1: do a
         > a!
         start b #1: do b
         start c #1: do c
         > b?
         > c!
         end Failed: b: bad",
    );
}

#[test]
fn a_resume_runs_exactly_what_failed_and_what_waited_for_it() {
    check(
        DIAMOND,
        "a! b? c! R b! d!",
        "start a #1: do a
         > a!
         start b #1: do b
         start c #1: do c
         > b?
         > c!
         end Failed: b: bad
         > R
         start b #2: do b
         > b!
         start d #1: do d
         > d!
         end Completed",
    );
}

#[test]
fn a_fan_out_runs_each_item_and_item_four_alone_is_resumed() {
    let mut yaml = String::from("limits: { parallel: 200 }\nsteps:\n  - id: fan\n    each: [");
    let items: Vec<String> = (0..102).map(|index| format!("i{index}")).collect();
    yaml.push_str(&items.join(", "));
    yaml.push_str("]\n    run: 'do {{ item }}'\n");
    let mut bench = Bench::new(&yaml);
    bench.settle();
    let script: Vec<String> = (0..102)
        .map(|index| format!("fan[i{index}]{}", if index == 4 { "?" } else { "!" }))
        .collect();
    let bench = bench.tell(&script.join(" "));
    assert!(bench.log.ends_with("end Failed: fan[i4]: bad\n"), "{}", bench.log);
    let before = bench.log.len();
    let bench = bench.tell("R");
    assert_eq!(&bench.log[before..], "> R\nstart fan[i4] #2: do i4\n");
}

#[test]
fn items_run_after_the_items_they_name() {
    check(
        "steps:
  - id: tasks
    each: [{ id: one }, { id: two, deps: [one] }, { id: three, deps: [one, two] }, { id: four }]
    key: id
    after: deps
    as: task
    steps: [{ id: do, run: 'do {{ task.id }}' }]",
        "tasks[one]/do! tasks[two]/do!",
        "expand tasks [one two three four]
         start tasks[one]/do #1: do one
         start tasks[four]/do #1: do four
         > tasks[one]/do!
         start tasks[two]/do #1: do two
         > tasks[two]/do!
         start tasks[three]/do #1: do three",
    );
}

#[test]
fn an_empty_fan_out_is_done_at_once() {
    check(
        "steps: [{ id: fan, each: [], run: do it }, { id: end, run: do end }]",
        "end!",
        "expand fan []
         start end #1: do end
         > end!
         end Completed",
    );
}

#[test]
fn a_loop_turns_until_its_condition_holds() {
    check(
        "steps:
  - id: qa
    repeat: { max: 5, until: \"{{ steps.review.result.ok }}\" }
    steps:
      - { id: review, run: 'review {{ qa }}' }
      - { id: fix, when: '{{ not steps.review.result.ok }}', run: fix it }
  - { id: end, run: do end }",
        r#"qa[1]/review!{"ok":false} qa[1]/fix! qa[2]/review!{"ok":true}"#,
        r#"turn qa 1
           start qa[1]/review #1: review 1
           > qa[1]/review!{"ok":false}
           start qa[1]/fix #1: fix it
           > qa[1]/fix!
           turn qa 2
           start qa[2]/review #1: review 2
           > qa[2]/review!{"ok":true}
           skip qa[2]/fix
           end qa after 2: Until
           start end #1: do end"#,
    );
}

#[test]
fn a_loop_without_a_condition_counts_and_one_with_it_may_run_out() {
    check(
        "steps: [{ id: l, repeat: { max: 2 }, run: do it }]",
        "l[1]! l[2]!",
        "turn l 1
         start l[1] #1: do it
         > l[1]!
         turn l 2
         start l[2] #1: do it
         > l[2]!
         end l after 2: Max
         end Completed",
    );
    check(
        "steps: [{ id: l, repeat: { max: 1, until: '{{ 1 > 2 }}' }, run: do it }]",
        "l[1]! R",
        "turn l 1
         start l[1] #1: do it
         > l[1]!
         end l after 1: Exhausted
         end Failed: `l` took 1 turn, as many as it may, and is not through
         > R
         end l after 1: Exhausted
         end Failed: `l` took 1 turn, as many as it may, and is not through",
    );
    check(
        "steps: [{ id: l, repeat: { max: 1, until: '{{ 1 > 2 }}', on_max: continue }, run: x }]",
        "l[1]!",
        "turn l 1
         start l[1] #1: x
         > l[1]!
         end l after 1: Max
         end Completed",
    );
}

#[test]
fn a_group_is_done_when_its_steps_are_and_skipped_as_a_whole() {
    let yaml = "
steps:
  - id: g
    when: '{{ inputs.go }}'
    steps: [{ id: a, run: do a }, { id: b, run: do b }]
  - { id: end, run: do end }
inputs: { go: { type: boolean } }";
    let with =
        |go: bool| Bench::with_inputs(yaml, [("go".to_owned(), go.into())].into()).tell("").log;
    assert_eq!(with(true), "expand g []\nstart g/a #1: do a\n");
    assert_eq!(with(false), "skip g\nstart end #1: do end\n");
}

#[test]
fn equal_output_of_a_step_that_ran_again_cuts_off() {
    check(
        "steps: [{ id: a, run: do a }, { id: b, run: do b }, { id: c, run: do c }]",
        "a!x b!y c!z",
        "start a #1: do a
         > a!x
         start b #1: do b
         > b!y
         start c #1: do c
         > c!z
         end Completed",
    );
    let yaml = "steps: [{ id: a, run: do a }, { id: b, run: do b }, { id: c, run: do c },
        { id: d, run: do d }]";
    check(
        yaml,
        "a!x b!y c!z aX a!x d!",
        "start a #1: do a
         > a!x
         start b #1: do b
         > b!y
         start c #1: do c
         > c!z
         start d #1: do d
         > aX
         start a #2: do a
         > a!x
         > d!
         end Completed",
    );
    check(
        yaml,
        "a!x b!y c!z aX a!other b!y d!",
        "start a #1: do a
         > a!x
         start b #1: do b
         > b!y
         start c #1: do c
         > c!z
         start d #1: do d
         > aX
         start a #2: do a
         > a!other
         invalidate b: needs.a
         start b #2: do b
         > b!y
         > d!
         end Completed",
    );
}

#[test]
fn a_step_that_leaves_no_evidence_counts_as_different_when_it_ran_again() {
    check(
        "steps: [{ id: a, run: do a }, { id: b, run: do b }, { id: c, run: do c }]",
        "a! b!y aX a!",
        "start a #1: do a
         > a!
         start b #1: do b
         > b!y
         start c #1: do c
         > aX
         start a #2: do a
         > a!
         invalidate b: needs.a
         start b #2: do b",
    );
}

#[test]
fn what_stands_downstream_in_groups_and_loops_falls_and_is_compared_too() {
    check(
        "steps:
  - { id: a, run: do a }
  - id: g
    steps: [{ id: x, run: do x }, { id: y, run: do y }]
  - id: l
    repeat: { max: 2 }
    steps: [{ id: z, run: do z }]
  - { id: last, run: do last }",
        "a!1 g/x!2 g/y!3 l[1]/z!4 l[2]/z!5 aX a!1",
        "start a #1: do a
         > a!1
         start g/x #1: do x
         > g/x!2
         start g/y #1: do y
         > g/y!3
         turn l 1
         start l[1]/z #1: do z
         > l[1]/z!4
         turn l 2
         start l[2]/z #1: do z
         > l[2]/z!5
         end l after 2: Max
         start last #1: do last
         > aX
         start a #2: do a
         > a!1",
    );
}

#[test]
fn a_stale_step_in_a_turn_takes_the_later_turns_with_it() {
    check(
        "steps:
  - id: l
    repeat: { max: 2 }
    steps: [{ id: z, run: do z }]
  - { id: last, run: do last }",
        "l[1]/z!4 l[2]/z!5 l[1]/zX l[1]/z!9 l[2]/z!5",
        "turn l 1
         start l[1]/z #1: do z
         > l[1]/z!4
         turn l 2
         start l[2]/z #1: do z
         > l[2]/z!5
         end l after 2: Max
         start last #1: do last
         > l[1]/zX
         start l[1]/z #2: do z
         > l[1]/z!9
         turn l 2
         invalidate l[2]/z: needs.l[1]
         start l[2]/z #2: do z
         > l[2]/z!5
         end l after 2: Max",
    );
}

#[test]
fn other_items_from_a_step_that_ran_again_keep_the_old_and_run_the_new() {
    check(
        "steps:
  - { id: list, run: list }
  - { id: fan, each: '{{ steps.list.result.names }}', run: 'do {{ item }}' }
  - { id: last, run: do last }",
        r#"list!{"names":["p","q"]} fan[p]!1 fan[q]!2 listX list!{"names":["q","r"]} fan[r]!3"#,
        r#"start list #1: list
           > list!{"names":["p","q"]}
           expand fan [p q]
           start fan[p] #1: do p
           start fan[q] #1: do q
           > fan[p]!1
           > fan[q]!2
           start last #1: do last
           > listX
           start list #2: list
           > list!{"names":["q","r"]}
           invalidate fan[p]: items.fan
           expand fan [q r]
           start fan[r] #1: do r
           > fan[r]!3"#,
    );
}

#[test]
fn a_skip_is_decided_again_when_what_it_was_decided_from_changed() {
    check(
        "steps:
  - { id: a, run: do a }
  - { id: b, when: '{{ steps.a.result.n > 1 }}', run: do b }
  - { id: c, run: do c }",
        r#"a!{"n":1} aX a!{"n":2}"#,
        r#"start a #1: do a
           > a!{"n":1}
           skip b
           start c #1: do c
           > aX
           start a #2: do a
           > a!{"n":2}
           invalidate b: needs.a
           start b #1: do b"#,
    );
}

#[test]
fn a_hundred_layers_with_three_parents_each_are_walked_once() {
    let mut yaml = String::from("limits: { parallel: 1000 }\nsteps:\n");
    for layer in 0..100 {
        for index in 0..3 {
            let needs: Vec<String> = match layer {
                0 => Vec::new(),
                _ => (0..3).map(|parent| format!("s{}-{parent}", layer - 1)).collect(),
            };
            let needs = needs.join(", ");
            let line = format!("  - {{ id: s{layer}-{index}, needs: [{needs}], run: x }}\n");
            yaml.push_str(&line);
        }
    }
    let mut bench = Bench::new(&yaml);
    bench.settle();
    for layer in 0..3 {
        let words: Vec<String> = (0..3).map(|index| format!("s{layer}-{index}!x")).collect();
        bench = bench.tell(&words.join(" "));
    }
    let before = bench.log.len();
    let bench = bench.tell("s0-0X");
    assert_eq!(&bench.log[before..], "> s0-0X\nstart s0-0 #2: x\n");
}

#[test]
fn a_chain_of_many_finished_steps_is_built_without_deep_recursion() {
    use crate::{
        graph::{Defs, Graph},
        state::State,
        workflow,
    };
    let mut yaml = String::from("onward: 1\nname: chain\nsteps:\n");
    for index in 0..20_000 {
        let line = format!("  - {{ id: s{index}, run: x }}\n");
        yaml.push_str(&line);
    }
    let mut nothing = |path: &str| Err(path.to_owned());
    let loaded = workflow::load("chain.yaml", yaml.as_bytes(), &mut nothing).unwrap();
    let defs = Defs::new(loaded.workflow);
    let mut state = State::default();
    for index in 0..20_000 {
        let address = crate::address::Address::from_text(&format!("s{index}"));
        let done = crate::state::StepState {
            phase: crate::state::Phase::Done,
            ..crate::state::StepState::default()
        };
        state.steps.insert(address, done);
    }
    assert!(Graph::new(&defs, &state).root().is_settled());
}

/// A workflow from bytes is the workflow, whether its steps are looked into or not.
#[test]
fn what_was_packed_is_the_same_workflow_and_the_same_graph() {
    let text = "steps:
  - { id: plan, run: plan, writes: [plan], reads: [notes] }
  - id: build
    each: '{{ steps.plan.result }}'
    steps:
      - { id: make, run: 'make {{ item }}', worktree: true }
      - { id: test, run: test, when: 'true', check: 'true', durability: full }
  - { id: ask, gate: 'Go on?' }
  - { id: again, repeat: { max: 2 }, steps: [{ id: turn, agent: claude, prompt: 'Once more' }] }";
    let bench = Bench::new(text);
    let bytes = bench.run.defs.pack();
    let defs = Defs::unpack(bytes.clone()).unwrap();
    assert_eq!(Graph::new(&defs, &bench.run.state), bench.run.graph);
    assert_eq!(defs.workflow(), bench.run.defs.workflow());
    assert_eq!(defs.pack(), bytes, "and so are the bytes again");
    for id in defs.ids() {
        assert_eq!(Brief::of(defs.step(id)), defs.brief(id));
        assert_eq!(defs.step(id), bench.run.defs.step(id));
        assert_eq!(defs.id(id), bench.run.defs.id(id));
        assert_eq!(defs.stdout_is_read(id), bench.run.defs.stdout_is_read(id));
    }
    // Steps that were looked into can be forgotten, where there is something to make them of.
    let unmade = defs.clone().of_text(Digest::of(b"text")).unmade().unwrap();
    assert_eq!(unmade.origin(), Some(Digest::of(b"text")));
    assert_eq!(unmade.pack(), bytes);
    assert_eq!(unmade.workflow(), defs.workflow());
    assert!(bench.run.defs.unmade().is_none());
    for cut in 0..bytes.len() {
        assert!(Defs::unpack(bytes[..cut].to_vec()).is_none(), "cut at {cut}");
        let mut spoilt = bytes.clone();
        spoilt[cut] ^= 0x55;
        let _ = Defs::unpack(spoilt);
    }
}

/// After each record of a run: the graph that is kept with the state is the graph, for this text of
/// the workflow only; and it is forgotten as soon as a record may move a node.
#[test]
fn a_graph_that_was_kept_is_the_graph_until_something_moves() {
    use crate::{run::Run, state::State};
    use std::sync::Arc;
    let text = "steps:
  - { id: a, run: x, writes: [a.txt] }
  - { id: s, run: x, when: '{{ false }}' }
  - { id: m, each: [p, q], steps: [{ id: b, run: y, retry: { max: 2, on: [failed] } }] }
  - { id: l, repeat: { max: 2 }, steps: [{ id: c, run: z }] }
  - { id: g, gate: Go on? }";
    let bench = Bench::new(text).tell("a! m[p]/b? m[q]/b! m[p]/b! l[1]/c! l[2]/c! R");
    let known = |text: &[u8]| {
        let defs = Defs::unpack(bench.run.defs.pack()).unwrap();
        defs.of_text(Digest::of(text))
    };
    let (defs, other) = (known(b"this"), known(b"other"));
    let shared = Arc::new(defs.clone());
    let mut state = State::default();
    let (mut kept_on, mut forgot) = (0, 0);
    for record in &bench.records {
        let packed = state.pack(Some(&defs)).unwrap();
        let mut kept = State::unpack(&packed).unwrap();
        assert_eq!(kept, state);
        assert!(kept.steps.graph().is_some());
        let built = Graph::new(&defs, &state);
        assert_eq!(kept.steps.graph().unwrap().unpack(&defs, &kept.steps), Some(built.clone()));
        assert!(kept.steps.graph().unwrap().unpack(&other, &kept.steps).is_none());
        assert_eq!(Graph::new(&other, &kept), built);
        // What follows is taken in the same way, whether the graph is still there or not.
        kept.after(record.clone()).unwrap();
        state.after(record.clone()).unwrap();
        let moved = State::unpack(&packed).unwrap();
        let mut moved = Run::new(Arc::clone(&shared), moved);
        moved.after(record.clone()).unwrap();
        assert_eq!(moved.graph, Graph::new(&defs, &state), "{record:?}");
        let still = kept.steps.graph().is_some();
        (kept_on, forgot) = (kept_on + u32::from(still), forgot + u32::from(!still));
        assert_eq!(Graph::new(&defs, &kept), Graph::new(&defs, &state), "{record:?}");
    }
    assert!(kept_on > 0 && forgot > 0, "{kept_on} {forgot}");
    let packed = state.pack(Some(&defs)).unwrap();
    for cut in 0..packed.len() {
        assert_eq!(State::unpack(&packed[..cut]), None, "cut at {cut}");
        let mut spoilt = packed.clone();
        spoilt[cut] ^= 0x55;
        if let Some(spoilt) = State::unpack(&spoilt) {
            let graph = spoilt.steps.graph().and_then(|it| it.unpack(&defs, &spoilt.steps));
            // Nothing of it is found not to be there later on.
            let count = graph.as_ref().map_or(0, super::Graph::len);
            if let Some(graph) = &graph {
                (0..count).for_each(|at| _ = graph.nodes.get(at));
            }
            assert!(count < 20 && spoilt.steps.values().count() < 20);
        }
    }
}
