//! What is adopted, told as the steps that are left.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    event::Certainty,
    finding::Finding,
    testing::Bench,
    told::{Change, Deed, Standing, Undo},
};

const ROUNDS: &str = "
steps:
  - { id: open, run: open }
  - { id: ok, gate: 'Start?' }
  - id: round
    repeat: { max: 3, until: '{{ UNTIL }}', on_max: continue }
    steps:
      - id: research
        each: [A, B]
        as: who
        steps:
          - { id: try, run: try }
          - { id: note, call: demo.note, with: { try: '{{ steps.try.result }}' } }
      - { id: poster, run: poster, when: '{{ steps.open.result.many }}' }
      - { id: end, call: demo.end }
  - { id: close, run: close }";

type Proved = BTreeMap<String, Value>;

/// Each step with what it leaves, in the order of the conference.
fn whole(many: bool) -> Vec<(String, Value)> {
    let mut all = vec![
        ("open".to_owned(), json!({"many": many})),
        ("ok".to_owned(), json!({"option": "approve"})),
    ];
    for round in 1..=2 {
        for who in ["A", "B"] {
            for what in ["try", "note"] {
                all.push((format!("round[{round}]/research[{who}]/{what}"), json!({"n": round})));
            }
        }
        if many {
            all.push((format!("round[{round}]/poster"), json!({})));
        }
        all.push((format!("round[{round}]/end"), json!({"over": round == 2})));
    }
    all.push(("close".to_owned(), json!({})));
    all
}

/// A round whose end was passed over is the last one.
const UNTIL: &str = "steps.end.result.over if steps.end.result is defined else true";

fn adopted_from(proved: &Proved) -> Bench {
    let mut bench = Bench::new(&ROUNDS.replace("UNTIL", UNTIL));
    bench.record(Event::RunAdopted {
        dialect: "demo".into(),
        source: "talks".into(),
        files: Vec::new(),
    });
    import(&mut bench, proved);
    bench
}

/// What the files of `demo` say.
struct Demo<'a> {
    proved: &'a Proved,
    passed_over: &'a dyn Fn(&Address) -> Option<String>,
    /// The step that no line records: it only follows.
    inferred: &'a str,
}

impl Told for Demo<'_> {
    fn standing(&self, _now: Timestamp) -> Standing {
        panic!("not asked here")
    }

    fn findings(&self, _now: Timestamp) -> Vec<Finding> {
        Vec::new()
    }

    fn step(&self, at: &Address) -> StepTold {
        let is_inferred = at.as_str() == self.inferred;
        let told = if is_inferred { Done::inferred } else { Done::recorded };
        let done = self.proved.get(at.as_str()).cloned().map(told);
        match (done, (self.passed_over)(at)) {
            (Some(done), _) => StepTold::Done(done),
            (None, Some(why)) => StepTold::PassedOver(why),
            (None, None) if writes(at) => StepTold::Undone,
            (None, None) => StepTold::Silent,
        }
    }

    fn undo(&self) -> Vec<Undo> {
        Vec::new()
    }

    fn write(&self, _deed: &Deed<'_>) -> Vec<Change> {
        Vec::new()
    }
}

fn source<'a>(demo: &'a Demo<'a>) -> Source<'a> {
    Source { dialect: "demo", by: "demo.md", told: demo }
}

fn nothing(_: &Address) -> Option<String> {
    None
}

/// The second round is cut short.
fn second_round(step: &Address) -> Option<String> {
    step.as_str().starts_with("round[2]/").then(|| "time is over".to_owned())
}

fn import(bench: &mut Bench, proved: &Proved) {
    import_with(bench, proved, &nothing);
}

fn import_with(
    bench: &mut Bench,
    proved: &Proved,
    passed_over: &dyn Fn(&Address) -> Option<String>,
) {
    let demo = Demo { proved, passed_over, inferred: "" };
    for _ in 0..1000 {
        let commands = adoptions(&bench.run, &Facts::default(), source(&demo));
        if commands.is_empty() {
            return;
        }
        for command in commands {
            match command {
                Command::Record(event) => bench.record(event),
                Command::Need { .. }
                | Command::Start(_)
                | Command::StopAll
                | Command::WakeAt(_) => panic!("{command:?}"),
            }
        }
    }
    panic!("it adopts for ever");
}

fn writes(step: &Address) -> bool {
    step.last_id() == "note" || step.last_id() == "end"
}

fn regress(bench: &Bench, proved: &Proved) -> Vec<String> {
    regress_with(bench, proved, &nothing)
}

fn regress_with(
    bench: &Bench,
    proved: &Proved,
    passed_over: &dyn Fn(&Address) -> Option<String>,
) -> Vec<String> {
    regressed(&bench.run, source(&Demo { proved, passed_over, inferred: "" }))
        .into_keys()
        .map(|it| it.to_string())
        .collect()
}

/// The steps that would start, or ask, next.
fn next(bench: &Bench) -> Vec<String> {
    let graph = &bench.run.graph;
    let ids = graph.ready_control().chain(graph.ready_work());
    ids.map(|id| graph.node(id).address.to_string()).collect()
}

#[test]
fn every_prefix_of_what_was_done_stands_where_it_was_cut() {
    for many in [true, false] {
        let all = whole(many);
        for cut in 0..=all.len() {
            let proved: Proved = all[..cut].iter().cloned().collect();
            let bench = adopted_from(&proved);
            let state = &bench.run.state;
            let done = state.steps.values().filter(|it| it.phase == Phase::Done).count();
            assert_eq!(done, cut, "{proved:?}");
            match all.get(cut) {
                Some((step, _)) => {
                    assert!(next(&bench).contains(step), "{step}: {:?}", next(&bench));
                }
                None => assert!(bench.run.graph.root().is_settled()),
            }
        }
    }
}

#[test]
fn a_gate_is_answered_in_the_name_of_the_file_but_only_a_person_ends_the_run() {
    let mut proved: Proved = whole(true)[..2].iter().cloned().collect();
    let bench = adopted_from(&proved);
    let gate = bench.run.state.step(&Address::from_text("ok")).unwrap();
    assert_eq!(gate.result.as_deref().unwrap()["option"], "approve");
    proved.insert("ok".into(), json!({"option": "reject"}));
    assert_eq!(next(&adopted_from(&proved)), ["ok"]);
    proved.insert("ok".into(), json!({"option": "perhaps"}));
    assert_eq!(next(&adopted_from(&proved)), ["ok"]);
}

#[test]
fn an_open_gate_is_answered_and_what_was_adopted_on_it_has_used_the_answer() {
    let all = whole(true);
    let mut bench = adopted_from(&all[..1].iter().cloned().collect());
    bench.settle();
    assert_eq!(bench.run.graph.open_gates().count(), 1);
    import(&mut bench, &all[..2].iter().cloned().collect());
    assert_eq!(bench.run.graph.open_gates().count(), 0);
    assert_eq!(bench.run.state.unused_answers.len(), 1);
    import(&mut bench, &all[..3].iter().cloned().collect());
    assert!(bench.run.state.unused_answers.is_empty());
}

#[test]
fn a_step_is_adopted_with_its_result_as_the_evidence_and_no_more_certain_than_it_is() {
    let result = json!({"n": 1});
    let proved = ["open", "ok"].map(|step| (step.to_owned(), result.clone())).into();
    let demo = Demo { proved: &proved, passed_over: &nothing, inferred: "ok" };
    let run = Bench::new(&ROUNDS.replace("UNTIL", UNTIL)).run;
    let event = adoption(&run, &Address::from_text("open"), source(&demo));
    let Some(Event::AttemptAdopted(event)) = event else { panic!("{event:?}") };
    assert_eq!((event.step.as_str(), event.source.as_str()), ("open", "demo"));
    assert_eq!(event.evidence.result, Some(Digest::of(result.to_string().as_bytes())));
    assert_eq!(event.result, Some(result.clone()));
    assert_eq!(event.certainty, Certainty::Recorded);
    let inferred = adoption(&run, &Address::from_text("ok"), source(&demo));
    let Some(Event::AttemptAdopted(inferred)) = inferred else { panic!("{inferred:?}") };
    assert_eq!(inferred.certainty, Certainty::Inferred, "no line says so");
    assert_eq!(adoption(&run, &Address::from_text("close"), source(&demo)), None);
}

#[test]
fn what_is_not_proved_any_more_is_named_and_our_own_work_only_if_it_is_in_the_files() {
    let all = whole(true);
    let proved: Proved = all[..6].iter().cloned().collect();
    let mut bench = adopted_from(&proved);
    assert_eq!(regress(&bench, &proved), Vec::<String>::new());
    let less: Proved = all[..5].iter().cloned().collect();
    assert_eq!(regress(&bench, &less), [all[5].0.as_str()]);
    // A try is in no file of its own; it was learned from them all the same.
    let less: Proved = all[..4].iter().cloned().collect();
    assert_eq!(regress(&bench, &less), [all[5].0.as_str(), all[4].0.as_str()]);
    bench.settle();
    assert_eq!(regress(&bench, &proved), Vec::<String>::new(), "{}", bench.log);
}

#[test]
fn what_has_no_place_any_more_is_skipped_and_comes_back_when_it_has_one() {
    let all = whole(false);
    // Up to the first try of the second round.
    let proved: Proved = all[..8].iter().cloned().collect();
    let mut bench = adopted_from(&all[..7].iter().cloned().collect());
    import_with(&mut bench, &proved, &second_round);
    assert_eq!(next(&bench), ["close"]);
    let phase = |step: &str| bench.run.state.phase(&Address::from_text(step));
    assert_eq!(phase("round[2]/research[A]/try"), Phase::Done);
    let passed = ["research[A]/note", "research[B]/note", "research[B]/try", "end"];
    let passed = passed.map(|it| format!("round[2]/{it}"));
    assert!(passed.iter().all(|step| phase(step) == Phase::Skipped), "{}", bench.log);
    assert_eq!(regress_with(&bench, &proved, &second_round), Vec::<String>::new());
    let mut back = regress(&bench, &proved);
    back.sort_unstable();
    let mut expected = passed.to_vec();
    expected.sort_unstable();
    assert_eq!(back, expected, "a poster that its own `when` skipped stays skipped");
}

proptest! {
    #[test]
    fn nothing_is_adopted_that_is_not_proved_or_not_reached(mask in any::<u32>()) {
        let all = whole(true);
        let is_in = |index: &usize| mask & (1 << index) != 0;
        let proved: Proved =
            (0..all.len()).filter(is_in).map(|index| all[index].clone()).collect();
        let mut bench = adopted_from(&proved);
        for (step, entry) in &bench.run.state.steps {
            prop_assert!(entry.phase != Phase::Done || proved.contains_key(step.as_str()));
            prop_assert!(entry.phase != Phase::Running);
        }
        for step in next(&bench) {
            prop_assert!(!proved.contains_key(&step), "{step} could be adopted");
        }
        let before = bench.run.state.clone();
        import(&mut bench, &proved);
        prop_assert_eq!(before, bench.run.state.clone(), "a second pass finds nothing");
        prop_assert_eq!(regress(&bench, &proved), Vec::<String>::new());
    }

    #[test]
    fn progress_in_two_parts_is_the_same_as_in_one(cut in 0_usize..16) {
        let all = whole(true);
        let proved: Proved = all.iter().cloned().collect();
        let mut twice = adopted_from(&all[..cut.min(all.len())].iter().cloned().collect());
        import(&mut twice, &proved);
        let once = adopted_from(&proved);
        let phases = |bench: &Bench| -> BTreeMap<String, Phase> {
            bench.run.state.steps.iter().map(|(step, it)| (step.to_string(), it.phase)).collect()
        };
        let (twice, once): (BTreeMap<_, _>, BTreeMap<_, _>) = (
            phases(&twice).into_iter().map(|(k, v)| (k, v.as_str())).collect(),
            phases(&once).into_iter().map(|(k, v)| (k, v.as_str())).collect(),
        );
        prop_assert_eq!(twice, once);
    }
}
