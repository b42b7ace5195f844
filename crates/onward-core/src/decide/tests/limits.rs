//! What holds a run back from the outside: money, and the limits of providers.

use crate::{address::Address, event::Event, evidence::Usd, said::Spent, testing::Bench};

#[test]
fn money_over_the_limit_lets_what_runs_end_and_starts_nothing() {
    let mut bench = Bench::new(
        "limits: { usd: 1 }
steps: [{ id: a, run: x }, { id: b, run: y }, { id: c, needs: [], run: z }]",
    );
    bench.settle();
    let (step, usd) = (Address::from_text("a"), Usd(1_000_000));
    bench.record(Event::AttemptSpent { step, attempt: 1, spent: Spent::of_usd(usd) });
    let bench = bench.tell("a! c!");
    assert!(bench.log.ends_with("> a!\n> c!\nbudget.hit\npause Budget\n"), "{}", bench.log);
}

#[test]
fn a_limit_parks_the_run_until_it_is_lifted() {
    for agent in [None, Some("claude".to_owned())] {
        let mut bench =
            Bench::new("steps: [{ id: a, run: x }, { id: b, agent: claude, prompt: p }]");
        bench.settle();
        let resets_at = Some(bench.now.plus_ms(60_000));
        let (provider, account) = ("p".into(), None);
        bench.record(Event::LimitHit { provider, agent, account, resets_at });
        let bench = bench.tell("a!");
        assert!(bench.log.ends_with("> a!\npause Limit\nwake in 60s\n"), "{}", bench.log);
    }
}

#[test]
fn a_limit_of_one_agent_holds_back_neither_commands_nor_other_agents() {
    let yaml = "
steps:
  - { id: a, agent: claude, prompt: p }
  - { id: b, needs: [], agent: codex, prompt: p }
  - { id: c, needs: [b], run: x }";
    let mut bench = Bench::new(yaml);
    bench.settle();
    let (provider, agent) = ("anthropic".into(), Some("claude".into()));
    let resets_at = Some(bench.now.plus_ms(60_000));
    bench.record(Event::LimitHit { provider, agent, account: None, resets_at });
    let bench = bench.tell("a?usage_limit b! c!");
    let log = &bench.log;
    assert!(log.contains("start c #1: x\n"), "{log}");
    assert!(!log.contains("start a #2"), "{log}");
    assert!(log.ends_with("> c!\npause Limit\nwake in 60s\n"), "{log}");
}

#[test]
fn a_limit_takes_no_try_and_without_a_moment_waits_for_a_person() {
    let yaml = "steps: [{ id: a, agent: claude, prompt: p, retry: { max: 0 } }]";
    let bench = Bench::new(yaml).tell("a?rate_limited");
    assert!(bench.log.ends_with("> a?rate_limited\npause Limit\n"), "{}", bench.log);
    let entry = &bench.run.state.steps[0];
    assert_eq!((entry.failures, entry.attempts), (0, 1));
}

#[test]
fn a_limit_that_is_lifted_at_this_very_moment_holds_nothing_back() {
    let yaml = "steps: [{ id: a, agent: claude, prompt: p }, { id: b, agent: claude, prompt: p }]";
    let mut bench = Bench::new(yaml);
    bench.settle();
    let resets_at = Some(bench.now);
    let (provider, agent, account) = ("p".into(), None, None);
    bench.record(Event::LimitHit { provider, agent, account, resets_at });
    let bench = bench.tell("a?failed");
    assert!(bench.log.ends_with("> a?failed\nend Failed: a: bad\n"), "{}", bench.log);
}

#[test]
fn a_driver_that_waits_in_place_does_not_let_go_of_the_run() {
    let yaml = "steps: [{ id: a, agent: claude, prompt: p }]";
    let mut bench = Bench::new(yaml);
    bench.facts.waits = true;
    bench.settle();
    let resets_at = Some(bench.now.plus_ms(60_000));
    let (provider, agent, account) = ("p".into(), Some("claude".into()), None);
    bench.record(Event::LimitHit { provider, agent, account, resets_at });
    let bench = bench.tell("a?usage_limit");
    assert!(bench.log.ends_with("> a?usage_limit\nwake in 60s\n"), "{}", bench.log);
}

#[test]
fn without_a_moment_there_is_nothing_to_wait_for() {
    let mut bench = Bench::new("steps: [{ id: a, agent: claude, prompt: p }]");
    bench.facts.waits = true;
    let bench = bench.tell("a?rate_limited");
    assert!(bench.log.ends_with("> a?rate_limited\npause Limit\n"), "{}", bench.log);
}

#[test]
fn another_agent_stands_in_while_a_limit_holds_and_begins_a_session_of_its_own() {
    let mut bench = Bench::new("steps: [{ id: a, agent: claude, prompt: p }]");
    bench.facts.stand_ins = [("claude".to_owned(), "codex".to_owned())].into();
    bench.settle();
    let key = bench.run.state.steps[0].started.clone().unwrap().key.get();
    let resets_at = Some(bench.now.plus_ms(60_000));
    let limit = |agent: &str| Event::LimitHit {
        provider: "p".into(),
        agent: Some(agent.into()),
        account: None,
        resets_at,
    };
    bench.record(limit("claude"));
    let mut bench = bench.tell("a?usage_limit");
    let started = bench.run.state.steps[0].started.clone().unwrap();
    assert_eq!((started.agent.as_deref(), started.attempt), (Some("codex"), 2), "{}", bench.log);
    assert!(!started.continues);
    assert_eq!(started.key.get(), key, "what is asked for is the same");
    // When the other one has met its limit too, the step waits.
    bench.record(limit("codex"));
    let bench = bench.tell("a?usage_limit");
    assert!(bench.log.ends_with("pause Limit\nwake in 60s\n"), "{}", bench.log);
}

#[test]
fn a_deferred_step_waits_and_the_others_go_on() {
    let mut bench =
        Bench::new("steps: [{ id: a, agent: claude, prompt: p }, { id: b, needs: [], run: x }]");
    let until = bench.now.plus_ms(60_000);
    bench.facts.deferred = [(Address::from_text("a"), until)].into();
    let bench = bench.tell("b!");
    assert!(bench.log.contains("start b #1: x\n"), "{}", bench.log);
    assert!(!bench.log.contains("start a"), "{}", bench.log);
    assert!(bench.log.ends_with("> b!\npause Limit\nwake in 60s\n"), "{}", bench.log);
}
