//! An agent that is understood (`adapter = "lines"`): its session, what it spends, its limits and
//! its own word about its end, through the real program.

use onward_core::{
    event::Event,
    evidence::{Cause, Outcome},
    said::Spent,
};
use onward_engine::care::harness::until;

use crate::bench::{Bench, journal, kill_all, watched};

/// Runs the script `agent.sh` of the project.
fn bench(head: &str, script: &str, steps: &str) -> Bench {
    let bench = Bench::new("  - { id: none, run: 'true' }\n");
    bench.workflow("w.yaml", &format!("{head}\nsteps:"), steps);
    bench.write("agent.sh", script);
    let config = "[agents.talker]\nadapter = 'lines'\ncommand = ['sh', 'agent.sh', '{prompt}']\n";
    bench.write(".onward/config.toml", config);
    bench
}

const ONE: &str = "  - { id: a, agent: talker, prompt: p }\n";
const TWO: &str = "  - { id: a, agent: talker, prompt: p }\n\
    \x20 - { id: b, run: 'printf %s {{ steps.a.stdout }} > b.txt; LOG' }\n";
const HEAD: &str = "agents: { talker: { use: talker } }";

fn events(bench: &Bench) -> Vec<Event> {
    let run = bench.project().runs().unwrap().remove(0).dir;
    watched(&run).records.into_iter().map(|it| it.event).collect()
}

fn outcomes(bench: &Bench) -> Vec<Outcome> {
    let finished = events(bench).into_iter().filter_map(|event| {
        let Event::AttemptFinished(it) = event else { return None };
        (it.step.as_str() == "a").then_some(it.outcome)
    });
    finished.collect()
}

fn spent(bench: &Bench) -> Spent {
    let all = events(bench).into_iter().filter_map(|event| {
        let Event::AttemptSpent { spent, .. } = event else { return None };
        Some(spent)
    });
    all.fold(Spent::NOTHING, Spent::plus)
}

#[test]
fn what_an_agent_says_is_journaled_and_its_answer_is_its_output() {
    let script = "echo '{\"session\":\"s-1\"}'; echo thinking\n\
        echo '{\"spent\":{\"input_tokens\":10,\"output_tokens\":2,\"usd\":0.5}}'\n\
        echo '{\"spent\":{\"input_tokens\":1}}'\n\
        printf '{\"answer\":\"forty two\",\"result\":{\"n\":42}}'\n";
    let bench = bench(HEAD, script, TWO);
    bench.exits("run w.yaml", 0);
    assert_eq!(bench.text("b.txt"), "forty two");
    let spent = spent(&bench);
    assert_eq!((spent.input_tokens, spent.output_tokens), (11, 2));
    assert_eq!(spent.usd.unwrap().dollars().to_string(), "0.5");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let journal = journal(&run);
    assert!(journal.contains("\"session\":\"s-1\""), "{journal}");
    assert!(journal.contains("\"result\":{\"n\":42}"), "{journal}");
}

#[test]
fn an_exit_code_of_zero_is_not_enough() {
    for (script, cause, code) in [
        ("echo done", Cause::Crash, 10),
        ("echo '{\"error\":\"auth\",\"detail\":\"no login\"}'", Cause::Auth, 11),
        ("echo '{\"denied\":\"Write\"}'; echo '{\"answer\":\"\"}'", Cause::PermissionDenied, 11),
    ] {
        let bench = bench(HEAD, script, ONE);
        bench.exits("run w.yaml", code);
        let outcomes = outcomes(&bench);
        let [Outcome::Failed { cause: found, .. }] = &outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!(*found, cause, "{script}");
    }
}

#[test]
fn a_limit_parks_the_run_and_burns_nothing_until_it_is_lifted() {
    let script = "echo ran >> ran.txt\n\
        if [ -e lifted ]; then echo '{\"answer\":\"yes\"}'; exit; fi\n\
        echo '{\"limit\":{\"provider\":\"p\",\"account\":\"x\",\"resets_at\":4102444800}}'\n\
        exit 1\n";
    let steps = format!("{ONE}  - {{ id: c, needs: [], run: 'echo c > c.txt' }}\n");
    let bench = bench(HEAD, script, &steps);
    let said = bench.exits("run w.yaml", 12);
    assert!(
        said.err.contains("is parked: ") && said.err.contains("until 1 Jan 2100 00:00"),
        "{said:?}"
    );
    assert_eq!(bench.text("c.txt"), "c\n", "what needs no agent goes on");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let before = journal(&run);
    assert!(before.contains("\"kind\":\"limit.hit\",\"provider\":\"p\",\"agent\":\"talker\""));
    let status = bench.exits("status --json", 0).json();
    assert_eq!(status["run"]["status"], "parked", "{status:#}");
    let plan = bench.exits("plan --json", 0).json();
    assert_eq!(plan["recovery_point"]["code"], "parked", "{plan:#}");
    // Too early: nothing is started, and nothing is written.
    let said = bench.exits("resume --yes", 12);
    assert!(said.err.contains("2100"), "{said:?}");
    assert_eq!((journal(&run), bench.text("ran.txt")), (before, "ran\n".to_owned()));
    // The way out: the workflow says something else now.
    bench.write("lifted", "");
    let text = bench.text("w.yaml").replace("use: talker", "use: other");
    bench.write("w.yaml", &text);
    bench.exits("resume --yes", 0);
    assert_eq!(bench.text("ran.txt"), "ran\nran\n");
}

#[test]
fn a_limit_without_a_moment_waits_for_a_person() {
    let script = "if [ -e lifted ]; then echo '{\"answer\":\"yes\"}'; exit; fi\n\
        echo '{\"error\":\"rate_limited\",\"detail\":\"429\"}'; exit 1\n";
    let bench = bench(HEAD, script, ONE);
    bench.exits("run w.yaml", 12);
    bench.exits("resume --yes", 12);
    bench.write("lifted", "");
    bench.exits("resume --yes", 0);
    assert_eq!(outcomes(&bench).len(), 3);
}

#[test]
fn a_budget_ends_with_what_agents_say_they_spent() {
    let script = "echo '{\"spent\":{\"usd\":0.75}}'; echo '{\"answer\":\"\"}'\n";
    let steps = format!(
        "{ONE}  - {{ id: b, agent: talker, prompt: p }}\n\
        \x20 - {{ id: c, agent: talker, prompt: p }}\n"
    );
    let bench = bench(&format!("{HEAD}\nlimits: {{ usd: 1 }}"), script, &steps);
    let said = bench.exits("run w.yaml", 13);
    assert!(said.err.contains("$1.50 spent"), "{said:?}");
    bench.exits("resume --yes", 13);
    assert_eq!(spent(&bench).usd.unwrap().dollars().to_string(), "1.5");
}

#[test]
fn what_a_killed_agent_spent_is_billed_once() {
    let script = "echo '{\"session\":\"s-'$ONWARD_ATTEMPT'\"}'\n\
        echo '{\"spent\":{\"input_tokens\":5}}'\n\
        if [ $ONWARD_ATTEMPT = 1 ]; then echo half > half; read never < fifo; fi\n\
        echo '{\"spent\":{\"input_tokens\":2}}'; echo '{\"answer\":\"\"}'\n";
    let bench = bench(HEAD, script, ONE);
    bench.fifo("fifo");
    let (run, watch) = bench.run_and_kill(|watch| {
        let mut events = watch.records.iter().map(|it| &it.event);
        events.any(|event| matches!(event, Event::AttemptSpent { .. }))
    });
    let mut sessions = watch.records.iter().map(|it| &it.event);
    assert!(
        sessions.any(|it| matches!(it, Event::AttemptSession { session, .. } if session == "s-1"))
    );
    until("the agent to be half-way", || Ok(bench.path("half").exists().then_some(()))).unwrap();
    kill_all(&run);
    bench.exits("resume --yes", 0);
    assert_eq!(spent(&bench).input_tokens, 5 + 5 + 2, "{}", journal(&run));
}
