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
