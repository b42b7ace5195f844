//! What a plan says about the run as a whole: its age, its status, its name.

use super::*;

#[test]
fn age_is_told_in_bands_and_a_moment_to_come_is_corruption() {
    for (seconds, band) in [
        (0, AgeBand::Fresh),
        (3_599, AgeBand::Fresh),
        (3_600, AgeBand::Recent),
        (86_399, AgeBand::Recent),
        (86_400, AgeBand::Moderate),
        (604_800, AgeBand::Moderate),
        (604_801, AgeBand::Stale),
    ] {
        assert_eq!(AgeBand::of_seconds(seconds), band, "{seconds}");
    }
    let (bench, mut world) = with_b("S");
    let codes = |world: &Survey| {
        let plan = plan_of(&bench, world);
        let codes: Vec<String> = plan.findings.iter().map(|it| it.code.clone()).collect();
        (codes, plan.can_resume, plan.run.age_seconds)
    };
    let last = bench.run.state.last_at;
    world.now = last.plus_ms(8 * 86_400 * 1000);
    assert_eq!(codes(&world), (vec!["stale-age".to_owned()], true, 8 * 86_400));
    world.now = last.plus_ms(7 * 86_400 * 1000);
    assert_eq!(codes(&world).0, Vec::<String>::new());
    world.now = Timestamp::from_micros(last.as_micros() - 301_000_000);
    assert_eq!(codes(&world), (vec!["clock-in-future".to_owned()], false, 0));
    world.now = Timestamp::from_micros(last.as_micros() - 300_000_000);
    assert_eq!(codes(&world).0, Vec::<String>::new());
    // A run that is over does not get stale.
    let done = Bench::new("steps: [{ id: a, run: x }]").tell("a!");
    let mut old = survey(&done);
    old.now = done.now.plus_ms(30 * 86_400 * 1000);
    assert_eq!(plan_of(&done, &old).findings, []);
}

#[test]
fn the_status_of_a_run_follows_its_journal_and_its_driver() {
    let paused = |cause| {
        let mut bench = Bench::new(CHAIN);
        bench.record(Event::RunPaused { cause, until: None });
        Status::of(&bench.run.state, false)
    };
    assert_eq!(paused(PauseCause::Gate), Status::Interrupted, "no gate is open any more");
    let asking = Bench::new("steps: [{ id: ok, gate: 'Go?' }]").tell("");
    assert_eq!(Status::of(&asking.run.state, false), Status::Waiting);
    assert_eq!(paused(PauseCause::Limit), Status::Parked);
    assert_eq!(paused(PauseCause::Budget), Status::OverBudget);
    assert_eq!(paused(PauseCause::Interrupted), Status::Interrupted);
    assert_eq!(paused(PauseCause::Asked), Status::Interrupted);
    let begun = Bench::new(CHAIN).tell("");
    assert_eq!(Status::of(&begun.run.state, false), Status::Interrupted);
    assert_eq!(Status::of(&begun.run.state, true), Status::Running);
    assert_eq!(Status::of(&State::default(), false), Status::Fresh);
    assert_eq!(Status::of(&State::default(), true), Status::Running);
    let done = Bench::new("steps: [{ id: a, run: x }]").tell("a!");
    assert_eq!(Status::of(&done.run.state, true), Status::Completed);
    let mut over = Bench::new(CHAIN);
    over.record(Event::RunEnded { status: EndStatus::Cancelled, why: None });
    assert_eq!(Status::of(&over.run.state, false), Status::Cancelled);
    for status in [
        Status::Fresh,
        Status::Running,
        Status::Interrupted,
        Status::Waiting,
        Status::Parked,
        Status::OverBudget,
        Status::Failed,
        Status::Cancelled,
        Status::Completed,
    ] {
        assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
    }
    for verdict in [
        Verdict::Keep,
        Verdict::Verify,
        Verdict::Adopt,
        Verdict::Reattach,
        Verdict::Continue,
        Verdict::Rerun,
        Verdict::Run,
        Verdict::Ask,
        Verdict::Skip,
    ] {
        assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
    }
}

#[test]
fn what_a_run_is_called_and_when_it_was_last_heard_of_is_told() {
    let (bench, world) = with_b("S");
    let info = plan_of(&bench, &world).run;
    assert_eq!((info.id.as_str(), info.workflow.as_str()), ("test-20261115-aaaa", "test"));
    assert_eq!((info.dialect.as_str(), info.dir.as_str()), ("onward", "dir"));
    assert_eq!(info.last_event.kind, "attempt.started");
    assert_eq!(info.started_at, bench.run.state.opened_at.to_string());
    assert_eq!((info.resume_count, info.age_band), (0, AgeBand::Fresh));
}

#[test]
fn a_plan_of_a_parked_run_says_until_when_and_what_comes_then() {
    let (bench, survey) = with_b("S");
    let plan = plan_of(&bench, &survey).parked(Timestamp::from_micros(0));
    assert_eq!(plan.recovery_point.code, "parked");
    let said = "parked at a limit until 1970-01-01T00:00:00";
    let summary = &plan.recovery_point.summary;
    assert!(summary.starts_with(said) && summary.ends_with("continues at b"), "{summary}");
}
