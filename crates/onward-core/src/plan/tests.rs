//! What a resume would do, step by step, for worlds written by hand.

mod about;

use super::*;
use crate::{
    digest::Digest,
    event::Revert,
    evidence::{Evidence, Usd},
    finding::Code,
    recovery::{AttemptFacts, Decision, Probed, TABLE, row_for},
    said::Spent,
    survey::{
        Contested, InFlight, OutputSeen, Proof, ReadSeen, outputs_to_check, was_made_by_the_run,
    },
    testing::Bench,
};

pub(super) const CHAIN: &str = "steps: [{ id: a, run: x }, { id: b, run: y }, { id: c, run: z }]";

pub(super) fn at(text: &str) -> Address {
    Address::from_text(text)
}

pub(super) fn survey(bench: &Bench) -> Survey {
    Survey { now: bench.now, ..Survey::default() }
}

fn plan_of(bench: &Bench, survey: &Survey) -> Plan {
    plan(&bench.run, survey, &Choices::default(), "dir").unwrap()
}

/// `a keep, b rerun`
pub(super) fn verdicts(plan: &Plan) -> String {
    let words: Vec<String> =
        plan.steps.iter().map(|it| format!("{} {}", it.step, it.verdict.as_str())).collect();
    words.join(", ")
}

fn why(plan: &Plan, step: &str) -> String {
    let planned = plan.steps.iter().find(|it| it.step == step).unwrap();
    let words: Vec<String> =
        planned.why.iter().map(|why| format!("{}: {}", why.cause, why.detail)).collect();
    words.join("; ")
}

pub(super) fn in_flight(letters: &str) -> InFlight {
    let has = |letter| letters.contains(letter);
    let revert = |path: &str| Revert {
        path: path.into(),
        left: Some(Digest::of(b"left")),
        base: (path == "old").then(|| Digest::of(b"base")),
        rescue: "rescue/1-b".into(),
        step: Some(Address::from_text("b")),
        ..Revert::default()
    };
    InFlight {
        unchecked: None,
        checked: None,
        facts: AttemptFacts {
            announced: true,
            spawned: has('S'),
            sealed: has('x'),
            alive: has('a'),
            proof: has('p'),
            session: has('s'),
            dirty: has('d'),
            contested: has('c'),
        },
        failed: None,
        finished: None,
        emptied: Vec::new(),
        gone: Vec::new(),
        reverts: if has('d') { vec![revert("old"), revert("new")] } else { Vec::new() },
        contested: Contested {
            paths: if has('c') { vec!["notes.md".into()] } else { Vec::new() },
            snapshot_lost: false,
        },
        proof: has('p').then(|| Proof {
            evidence: Evidence { result: Some(Digest::of(b"r")), ..Evidence::default() },
            result: Some(7.into()),
        }),
        probed: None,
        session_lacks: None,
        stays: Vec::new(),
    }
}

/// The chain with `b` in flight, and a world in which its attempt is as the letters say.
pub(super) fn with_b(letters: &str) -> (Bench, Survey) {
    let bench = Bench::new(CHAIN).tell("a!x");
    let mut survey = survey(&bench);
    survey.in_flight.insert(at("b"), in_flight(letters));
    (bench, survey)
}

#[test]
fn a_run_that_is_over_keeps_everything_and_cannot_be_resumed() {
    let bench = Bench::new(CHAIN).tell("a!x b!y c!z");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(verdicts(&plan), "a keep, b keep, c keep");
    assert_eq!(plan.recovery_point.code, "complete");
    assert_eq!(plan.recovery_point.steps, Vec::<String>::new());
    assert!(!plan.can_resume);
    assert_eq!(plan.run.status, Status::Completed);
    assert_eq!(plan.counts, [("keep".to_owned(), 3)].into());
    assert_eq!(plan.schema, "onward.plan/1");
    assert!(why(&plan, "a").starts_with("done: at "));
}

#[test]
fn e24_what_was_announced_and_never_began_is_not_said_to_run_again() {
    let lost_before_spawn = |bench: &mut Bench, step| {
        let attempts = bench.run.state.step(&at(step)).map_or(0, |it| it.attempts);
        bench.record(crate::event::lost_before_spawn(&at(step), attempts));
    };
    let mut bench = Bench::new(CHAIN).tell("a!x");
    lost_before_spawn(&mut bench, "b");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(verdicts(&plan), "a keep, b run, c run");
    assert_eq!(why(&plan, "b"), "pending: not started");
    // A try that began and failed is told as that, whatever was announced after it.
    let retry = "steps: [{ id: a, run: x, retry: { max: 1, on: [failed] } }]";
    let mut bench = Bench::new(retry).tell("a?");
    bench.now = bench.now.plus_ms(3_600_000);
    bench.settle();
    lost_before_spawn(&mut bench, "a");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(verdicts(&plan), "a rerun");
    assert_eq!(why(&plan, "a"), "lost: failed: bad");
}

#[test]
fn each_row_of_the_recovery_table_has_its_verdict() {
    for (letters, verdict, lost) in [
        ("", "run", false),
        ("Sx", "adopt", false),
        ("Sa", "reattach", false),
        ("Sp", "adopt", false),
        ("Ss", "continue", true),
        ("Ssd", "continue", true),
        ("Sd", "rerun", true),
        ("S", "rerun", true),
    ] {
        let (bench, survey) = with_b(letters);
        let plan = plan_of(&bench, &survey);
        assert_eq!(verdicts(&plan), format!("a keep, b {verdict}, c run"), "{letters}");
        let row = row_for(in_flight(letters).facts);
        assert_eq!(why(&plan, "b"), format!("{}: {}", row.rung.as_str(), row.why));
        assert!(plan.can_resume);
        assert_eq!(plan.recovery_point.code, "continue");
        // What is only taken in is not where the run goes on.
        let first = if verdict == "adopt" { "c" } else { "b" };
        assert_eq!(plan.recovery_point.steps[0], first);
        assert_eq!(plan.recovery_point.phase.as_deref(), Some(first));
        let made = resumption(&bench.run, &survey, &Choices::default());
        let events = made.events.iter().filter(|it| matches!(it, Event::AttemptLost { .. }));
        assert_eq!(events.count(), usize::from(lost), "{letters}");
        assert_eq!(made.decided(row.decision).collect::<Vec<_>>(), [&at("b")]);
        let other = if row.decision == Decision::Ask { Decision::Start } else { Decision::Ask };
        assert_eq!(made.decided(other).count(), 0);
    }
    assert_eq!(TABLE.len(), 14, "a new row needs its verdict here");
}

#[test]
fn half_done_work_is_undone_and_the_plan_says_what_and_where_to() {
    let (bench, survey) = with_b("Sd");
    let plan = plan_of(&bench, &survey);
    let reverts: Vec<(RevertKind, &str)> =
        plan.reverts.iter().map(|it| (it.kind, it.path.as_str())).collect();
    let kinds = [(RevertKind::RestoreFile, "old"), (RevertKind::RemoveFile, "new")];
    assert_eq!(reverts, kinds);
    assert_eq!(plan.reverts[0].rescue, "rescue/1-b");
    assert_eq!(plan.reverts[0].step.as_deref(), Some("b"));
    let json = serde_json::to_value(&plan.reverts).unwrap();
    assert_eq!(
        (&json[0]["kind"], &json[1]["kind"]),
        (&"restore-file".into(), &"remove-file".into())
    );
    let made = resumption(&bench.run, &survey, &Choices::default());
    let resumed = made.resumed(&bench.run.state, Mode::Preflight, "b".into(), None);
    assert_eq!((resumed.count, resumed.reverts.len()), (1, 2));
    assert_eq!((resumed.mode, resumed.accepted.len()), (Mode::Preflight, 0));
    let Event::AttemptLost { reverted, rescue, attempt, .. } = &made.events[0] else {
        panic!("it is lost");
    };
    assert_eq!(reverted, &["old", "new"]);
    assert_eq!((rescue.as_deref(), *attempt), (Some("rescue/1-b"), 1));
    // Nothing is undone for an attempt that left nothing, or that is taken as it is.
    for letters in ["S", "Sx", "Sa"] {
        let (bench, survey) = with_b(letters);
        assert_eq!(plan_of(&bench, &survey).reverts, []);
    }
}

#[test]
fn what_only_a_person_can_tell_blocks_the_resume_and_names_the_paths() {
    for letters in ["Sdc", "d"] {
        let (bench, survey) = with_b(letters);
        let plan = plan_of(&bench, &survey);
        assert_eq!(verdicts(&plan), "a keep, b ask, c run");
        assert!(!plan.can_resume);
        assert_eq!(plan.needs.len(), 1);
        assert_eq!(plan.findings[0].code, Code::AttemptContested.as_str());
        assert_eq!(plan.findings[0].step.as_deref(), Some("b"));
    }
    let (bench, survey) = with_b("Sdc");
    assert!(plan_of(&bench, &survey).needs[0].contains("notes.md"));
}

#[test]
fn a_contradiction_between_journal_and_world_is_refused() {
    let bench = Bench::new(CHAIN).tell("a!x");
    let mut survey = survey(&bench);
    let facts = AttemptFacts { sealed: true, ..AttemptFacts::default() };
    survey.in_flight.insert(at("b"), InFlight { facts, ..InFlight::default() });
    let plan = plan_of(&bench, &survey);
    assert_eq!(verdicts(&plan), "a keep, b ask, c run");
    assert_eq!(plan.findings[0].code, "journal-damaged");
    assert!(!plan.can_resume);
}

#[test]
fn work_that_proves_itself_is_adopted_with_its_result() {
    let (bench, survey) = with_b("Sp");
    let made = resumption(&bench.run, &survey, &Choices::default());
    let Event::AttemptAdopted(adopted) = &made.events[0] else { panic!("it is adopted") };
    assert_eq!(adopted.result, Some(7.into()));
    assert_eq!(adopted.evidence.result, Some(Digest::of(b"r")));
    assert_eq!(adopted.source, "evidence");
    assert_eq!(made.events.len(), 1);
}

pub(super) const EFFECT: &str = "steps:
  - { id: b, run: y, effect: outside, probe: { run: p, absent: 1 } }
  - { id: c, run: z }";

#[test]
fn whether_an_effect_happened_is_for_its_probe_to_say() {
    let with = |letters: &str, probed: Option<Probed>| {
        let mut bench = Bench::new(EFFECT).tell("");
        let (step, effect) = (at("b"), "e".to_owned());
        bench.record(Event::EffectIntended { step, attempt: 1, effect });
        let mut survey = survey(&bench);
        let seen = InFlight { probed, ..in_flight(letters) };
        survey.in_flight.insert(at("b"), seen);
        (plan_of(&bench, &survey), resumption(&bench.run, &survey, &Choices::default()))
    };
    let (plan, made) = with("S", None);
    assert_eq!(verdicts(&plan), "b verify, c run");
    assert_eq!(made.to_probe, [at("b")]);
    assert!(made.events.is_empty());

    let (plan, made) = with("S", Some(Probed::Happened));
    assert_eq!(verdicts(&plan), "b adopt, c run");
    assert!(matches!(made.events[0], Event::EffectSettled { happened: true, .. }));

    let (plan, made) = with("S", Some(Probed::Absent));
    assert_eq!(verdicts(&plan), "b rerun, c run");
    assert!(matches!(made.events[0], Event::EffectSettled { happened: false, .. }));
    assert!(matches!(made.events[1], Event::AttemptLost { .. }));

    let (plan, made) = with("S", Some(Probed::Unknown));
    assert_eq!(verdicts(&plan), "b ask, c run");
    assert_eq!(plan.findings[0].code, "effect-unknown");
    assert!(!plan.can_resume && made.events.is_empty() && made.needs.len() == 1);

    // Even where its paths were changed since, the probe comes first; where its end is known, not.
    // Another try would replace what was changed: that is asked about before the probe is.
    assert_eq!(verdicts(&with("Sdc", Some(Probed::Happened)).0), "b adopt, c run");
    assert!(with("Sdc", Some(Probed::Happened)).0.can_resume);
    for probed in [None, Some(Probed::Absent), Some(Probed::Unknown)] {
        let plan = with("Sdc", probed).0;
        assert_eq!(plan.findings[0].code, "dirty-tree", "{probed:?}");
        assert!(!plan.can_resume, "{probed:?}");
    }
    assert_eq!(verdicts(&with("Sdc", None).0), "b verify, c run");
    assert_eq!(verdicts(&with("Sdc", Some(Probed::Absent)).0), "b ask, c run");
    assert_eq!(verdicts(&with("Sd", Some(Probed::Happened)).0), "b adopt, c run");
    assert_eq!(verdicts(&with("Sx", None).0), "b adopt, c run");
    assert_eq!(verdicts(&with("Sa", None).0), "b reattach, c run");
    assert_eq!(verdicts(&with("", None).0), "b run, c run");
}

#[test]
fn an_output_that_is_gone_runs_its_step_again_and_what_follows_is_compared() {
    let bench = Bench::new(CHAIN).tell("a!x b!y");
    let mut survey = survey(&bench);
    survey.in_flight.insert(at("c"), in_flight("Sa"));
    let gone = OutputSeen { path: "a.out".into(), now: None, damage: None };
    survey.outputs.insert(at("a"), vec![gone]);
    let plan = plan_of(&bench, &survey);
    assert_eq!(verdicts(&plan), "a rerun, b verify, c verify");
    let finding = &plan.findings[0];
    assert_eq!(
        (finding.code.as_str(), finding.path.as_deref()),
        ("missing-artifact", Some("a.out"))
    );
    assert_eq!(finding.severity(), Severity::Warning);
    assert!(why(&plan, "a").starts_with("writes.a.out: was "), "{}", why(&plan, "a"));
    assert!(why(&plan, "a").ends_with(", is nothing"));
    assert_eq!(plan.steps[0].why[0].was, Some(Digest::of(b"x").to_string()));
    assert_eq!(why(&plan, "b"), "upstream: kept if the steps before it give the same output");
    assert!(plan.can_resume);
}

#[test]
fn an_output_that_a_person_improved_is_kept_and_its_consumers_run_again() {
    let mut bench = Bench::new(CHAIN).tell("a!x b!y");
    bench.files.insert("a.out".into(), "better".into());
    let mut survey = survey(&bench);
    survey.in_flight.insert(at("c"), in_flight("Sa"));
    let changed =
        OutputSeen { path: "a.out".into(), now: Some(bench.proof("a.out")), damage: None };
    survey.outputs.insert(at("a"), vec![changed]);
    let plan = plan_of(&bench, &survey);
    assert_eq!(verdicts(&plan), "a keep, b rerun, c rerun");
    assert_eq!(plan.findings[0].code, "artifact-changed");
    assert_eq!(why(&plan, "b"), "needs.a: its output changed");
    let because = &plan.steps[1].why[0];
    assert!(because.was.is_some() && because.is.is_some() && because.was != because.is);
    let made = resumption(&bench.run, &survey, &Choices::default());
    let Event::AttemptVerified(verified) = &made.events[0] else { panic!("it is verified") };
    assert_eq!(verified.evidence.as_ref().unwrap().files, [bench.proof("a.out")]);
}

#[test]
fn a_file_that_was_read_and_changed_runs_its_reader_again() {
    let bench = Bench::new(CHAIN).tell("a!x");
    let mut survey = survey(&bench);
    survey.in_flight.insert(at("b"), in_flight("S"));
    let (was, now) = (Digest::of(b"old"), Some(Digest::of(b"new")));
    let seen = ReadSeen { path: "in.txt".into(), was: Some(was), now };
    survey.reads.insert(at("a"), vec![seen]);
    let plan = plan_of(&bench, &survey);
    assert_eq!(verdicts(&plan), "a rerun, b rerun, c run");
    assert_eq!(plan.findings[0].code, "artifact-changed");
    assert_eq!(why(&plan, "a"), format!("reads.in.txt: was {was}, is {}", Digest::of(b"new")));
}

#[test]
fn a_complete_run_promises_nothing_that_no_resume_will_do() {
    let bench = Bench::new(CHAIN).tell("a!x b!y c!z");
    let mut survey = survey(&bench);
    let read = ReadSeen { path: "new.txt".into(), was: None, now: Some(Digest::of(b"new")) };
    survey.reads.insert(at("a"), vec![read]);
    survey
        .outputs
        .insert(at("b"), vec![OutputSeen { path: "b.out".into(), now: None, damage: None }]);
    let plan = plan_of(&bench, &survey);
    assert_eq!((plan.run.status, plan.can_resume), (Status::Completed, false));
    assert_eq!(verdicts(&plan), "a keep, b keep, c keep");
    let told: Vec<_> = plan.findings.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(told, ["new.txt is new, and a reads such files", "b.out of b is gone"]);
    let hints = plan.findings.iter().filter_map(|it| it.hint.as_deref());
    assert!(hints.clone().count() == 2 && hints.clone().all(|it| it.contains("complete")));
}

#[test]
fn failed_steps_run_again_and_what_they_left_is_undone_first() {
    let bench = Bench::new(CHAIN).tell("a!x b?");
    let mut survey = survey(&bench);
    let revert = Revert { path: "p".into(), rescue: "rescue/1-b".into(), ..Revert::default() };
    survey.left_by_failed.insert(at("b"), vec![revert]);
    let plan = plan_of(&bench, &survey);
    assert_eq!(verdicts(&plan), "a keep, b rerun, c run");
    assert_eq!(why(&plan, "b"), "failed: failed: bad");
    assert_eq!(plan.reverts.len(), 1);
    assert_eq!(
        (plan.run.status, plan.recovery_point.code.as_str()),
        (Status::Failed, "failed-steps")
    );
    assert_eq!(plan.recovery_point.steps, ["b"]);
    assert_eq!(plan.recovery_point.summary, "1 step kept; continues at b, which failed");
    assert_eq!(resumption(&bench.run, &survey, &Choices::default()).code, "failed-steps");
}

#[test]
fn a_tolerated_failure_is_kept_and_runs_again_only_when_a_person_says_so() {
    let yaml = "steps: [{ id: a, run: x, on_failure: continue }, { id: b, run: y }]";
    let bench = Bench::new(yaml).tell("a?timeout b~");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(verdicts(&plan), "a keep, b run");
    assert_eq!(why(&plan, "a"), "failed: timeout: bad");
    assert_eq!(plan.counts["keep"], 1);
    let seen = crate::view::view(&bench.run, plan.run.clone());
    assert_eq!((seen.steps[0].state.as_str(), seen.counts.done), ("failed", 1));
    assert_eq!(seen.phase.as_deref(), Some("b"));
    let redo = Choices { redo: [at("a")].into(), ..Choices::default() };
    let plan = super::plan(&bench.run, &survey(&bench), &redo, "dir").unwrap();
    assert_eq!(verdicts(&plan), "a rerun, b run");
}

#[test]
fn lost_stale_and_retried_steps_say_so() {
    let lost = Bench::new(CHAIN).tell("a!x b~");
    // The decider has started it again already; look at the moment before.
    assert_eq!(verdicts(&plan_of(&lost, &with_b("S").1)), "a keep, b rerun, c run");
    let mut stale = Bench::new(CHAIN).tell("a!x b!y");
    stale.facts.draining = true;
    let stale = stale.tell("c? bX");
    let plan = plan_of(&stale, &survey(&stale));
    assert_eq!(verdicts(&plan), "a keep, b rerun, c rerun");
    assert_eq!(why(&plan, "b"), "stale: out of date since the last resume");
    let mut gone = Bench::new(CHAIN).tell("a!x");
    gone.facts.draining = true;
    let gone = gone.tell("b~");
    let plan = plan_of(&gone, &survey(&gone));
    assert_eq!(why(&plan, "b"), "lost: interrupted: died-clean");
    // Given up to be continued, and then the engine died before it was.
    let mut seen = survey(&gone);
    seen.sessions.insert(at("b"));
    assert_eq!(verdicts(&plan_of(&gone, &seen)), "a keep, b continue, c run");
    let revert = Revert { path: "p".into(), rescue: "rescue/1-b".into(), ..Revert::default() };
    let mut seen = survey(&gone);
    seen.left_by_failed.insert(at("b"), vec![revert]);
    let plan = plan_of(&gone, &seen);
    assert_eq!((verdicts(&plan).as_str(), plan.reverts.len()), ("a keep, b rerun, c run", 1));
    let mut again = Bench::new(CHAIN).tell("a!x b?");
    again.facts.draining = true;
    let again = again.tell("R");
    assert_eq!(why(&plan_of(&again, &survey(&again)), "b"), "failed: failed: bad");
}

#[test]
fn a_gate_that_is_open_is_asked_again_and_nothing_before_it_runs_again() {
    let bench = Bench::new("steps: [{ id: a, run: x }, { id: g, gate: 'Go?' }, { id: b, run: y }]")
        .tell("a!x");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(verdicts(&plan), "a keep, g ask, b run");
    assert_eq!((plan.run.status, plan.recovery_point.code.as_str()), (Status::Waiting, "gate"));
    assert_eq!(plan.recovery_point.summary, "1 step kept; g waits for your answer");
    assert_eq!(resumption(&bench.run, &survey(&bench), &Choices::default()).code, "gate");
}

#[test]
fn groups_are_told_by_their_leaves_and_unexpanded_ones_in_one_line() {
    let yaml = "
steps:
  - { id: a, run: x }
  - { id: fan, each: [p, q], run: y }
  - { id: l, repeat: { max: 2 }, steps: [{ id: in, run: z }] }
  - { id: g, steps: [{ id: h, run: z }] }
  - { id: off, when: '{{ 1 > 2 }}', steps: [{ id: i, run: z }] }
  - { id: no, when: '{{ 1 > 2 }}', run: z }";
    let bench = Bench::new(yaml).tell("");
    let mut world = survey(&bench);
    world.in_flight.insert(at("a"), in_flight("Sa"));
    let plan = plan_of(&bench, &world);
    assert_eq!(verdicts(&plan), "a reattach, fan run, l run, g/h run, off/i skip, no skip");
    let bench = bench.tell("a!x fan[p]!1 fan[q]!2 l[1]/in!3 l[2]/in!4 g/h!5");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(
        verdicts(&plan),
        "a keep, fan[p] keep, fan[q] keep, l[1]/in keep, l[2]/in keep, g/h keep, off skip, no skip"
    );
    assert!(why(&plan, "off").starts_with("skipped: at "));
}

#[test]
fn the_round_is_the_turn_of_the_innermost_loop() {
    let yaml = "
steps:
  - id: outer
    repeat: { max: 2 }
    steps: [{ id: inner, repeat: { max: 3 }, run: x }, { id: after, run: y }]";
    let bench = Bench::new(yaml).tell("outer[1]/inner[1]! outer[1]/inner[2]!");
    let mut world = survey(&bench);
    world.in_flight.insert(at("outer[1]/inner[3]"), in_flight("S"));
    let plan = plan_of(&bench, &world);
    let point = &plan.recovery_point;
    assert_eq!((point.phase.as_deref(), point.round), (Some("outer"), Some(3)));
    assert_eq!(point.steps, ["outer[1]/inner[3]"]);
    let flat = with_b("S");
    assert_eq!(plan_of(&flat.0, &flat.1).recovery_point.round, None);
}

#[test]
fn a_fresh_run_begins_at_its_first_step() {
    let bench = Bench::new(CHAIN);
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!(plan.run.status, Status::Fresh);
    assert_eq!(plan.recovery_point.code, "start");
    assert_eq!(plan.recovery_point.summary, "nothing has run yet; starts at a");
    assert_eq!(why(&plan, "a"), "pending: not started");
    assert_eq!(resumption(&bench.run, &survey(&bench), &Choices::default()).code, "start");
}

#[test]
fn what_only_lacks_its_end_says_so() {
    let mut bench = Bench::new("steps: [{ id: a, run: x }]").tell("");
    bench.facts.draining = true;
    let bench = bench.tell("a!x");
    let plan = plan_of(&bench, &survey(&bench));
    assert_eq!((plan.recovery_point.code.as_str(), plan.can_resume), ("settle", true));
}

#[test]
fn what_the_layers_below_found_is_in_the_plan_and_may_block() {
    let (bench, mut world) = with_b("Sa");
    world.driven = true;
    world.findings = vec![Finding::new(Code::StillRunning, "a driver holds it")];
    let plan = plan_of(&bench, &world);
    assert_eq!(plan.findings[0].code, "still-running");
    assert_eq!(plan.run.status, Status::Running);
    assert!(!plan.can_resume);
    world.findings = vec![Finding::new(Code::TornTail, "half a record")];
    assert!(plan_of(&bench, &world).can_resume);
}

#[test]
fn running_again_costs_what_it_cost_before() {
    let mut bench = Bench::new(CHAIN).tell("a!x");
    let (step, usd) = (at("b"), Usd(250_000));
    bench.record(Event::AttemptSpent { step, attempt: 1, spent: Spent::of_usd(usd) });
    let mut world = survey(&bench);
    world.in_flight.insert(at("b"), in_flight("S"));
    let cost = |world: &Survey| plan_of(&bench, world).steps[1].cost_usd;
    assert_eq!(cost(&world), Some(0.25));
    let whole = |world: &Survey| plan_of(&bench, world).cost.rerun_usd.to_string();
    assert_eq!(whole(&world), "0.25");
    world.in_flight.insert(at("b"), in_flight("Sa"));
    assert_eq!(cost(&world), None);
    assert_eq!(whole(&world), "0");
    assert_eq!(plan_of(&bench, &world).steps[0].cost_usd, None);
}

#[test]
fn of_an_output_written_twice_only_the_last_writer_is_asked() {
    use crate::{event::AttemptFinished, evidence::Outcome};
    let mut bench = Bench::new(CHAIN).tell("a!x");
    // `b` leaves the same path as `a`.
    let mut finished = AttemptFinished {
        step: at("b"),
        attempt: 1,
        outcome: Outcome::Done,
        ending: None,
        evidence: Evidence::default(),
        result: None,
        stdout: None,
        after: None,
        footprint: Vec::new(),
        tolerated: false,
        head: None,
        ended: None,
        waited: 0,
    };
    bench.files.insert("a.out".into(), "two".into());
    finished.evidence.files = vec![bench.proof("a.out")];
    bench.now = bench.now.plus_ms(1000);
    bench.record(Event::AttemptFinished(Box::new(finished)));
    let checked: Vec<String> =
        outputs_to_check(&bench.run.state).iter().map(|(step, _)| step.to_string()).collect();
    assert_eq!(checked, ["b"]);
    let made =
        |text: &str| was_made_by_the_run(&bench.run.state, "a.out", Digest::of(text.as_bytes()));
    assert!(made("x") && made("two") && !made("three"));
    assert!(!was_made_by_the_run(&bench.run.state, "b.out", Digest::of(b"two")));
}
