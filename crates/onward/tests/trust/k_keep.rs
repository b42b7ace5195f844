//! `--keep` of work in flight holds as it does for finished work, whatever becomes of the steps
//! before it and if everything is killed then: an effect that is made twice is the worst of all.

use std::path::PathBuf;

use crate::{
    a_plan::waits_for_seal,
    bench::{Bench, kill_all, sees},
};

/// What becomes of the driver, and of what it started.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The step ends while no driver lives.
    Sealed,
    /// It still runs.
    Alive,
    /// It is killed with its driver and its supervisor; its probe says that it happened.
    Killed,
}

const EFFECT: &str = "effect: outside, probe: { run: test -e sent }, ";

/// A step `e` after `a`, interrupted; then the command of `a` is edited, which comes out otherwise
/// every time, and lets `e` go the second time.
fn interrupted(kind: &str, end: End) -> (Bench, PathBuf) {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; echo $ONWARD_ATTEMPT > a.txt; test $ONWARD_ATTEMPT = 1 || \
         touch go; while test -e slow; do sleep 0.02; done', writes: [a.txt] }}\n  \
         - {{ id: e, {kind}run: 'LOG; touch sent begun; while ! test -e go; do sleep 0.02; \
         done; echo made > e.txt', writes: [e.txt] }}\n  - {{ id: b, run: LOG }}\n"
    ));
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    match end {
        End::Sealed => {
            bench.write("go", "");
            waits_for_seal(&run, "e");
        }
        End::Alive => {}
        End::Killed => kill_all(&run),
    }
    let text = bench.text("w.yaml").replace("> a.txt", ">  a.txt");
    bench.write("w.yaml", &text);
    (bench, run)
}

const CASES: [(&str, End); 5] = [
    (EFFECT, End::Sealed),
    (EFFECT, End::Alive),
    (EFFECT, End::Killed),
    ("", End::Sealed),
    ("", End::Alive),
];

#[test]
fn k8_work_in_flight_that_is_kept_does_not_run_again() {
    for (kind, end) in CASES {
        let (bench, _) = interrupted(kind, end);
        let said = bench.exits("resume --no-input --yes --keep e", 0);
        assert_eq!((bench.ran("a"), bench.ran("e")), (vec![1, 2], vec![1]), "{end:?}: {said:?}");
        assert_eq!(bench.ran("b"), [1], "{kind} {end:?}");
    }
}

/// The next resume is not told once more.
#[test]
fn k8_what_is_kept_stays_so_when_the_engine_is_killed_before_it_is_through() {
    for (kind, end) in CASES {
        let (bench, run) = interrupted(kind, end);
        bench.write("slow", "");
        let mut engine = bench.start("resume --no-input --yes --keep e");
        let mut watch = crate::bench::watched(&run);
        let begun = |watch: &onward_engine::care::harness::Watch| {
            watch.records.iter().any(|it| {
                matches!(&it.event, onward_core::event::Event::AttemptStarted(it)
                    if it.step.as_str() == "a" && it.attempt == 2)
            })
        };
        assert!(watch.until(&mut engine, begun).unwrap(), "{}", bench.text("said"));
        sees(&bench.path("go"));
        engine.kill().unwrap();
        kill_all(&run);
        std::fs::remove_file(bench.path("slow")).unwrap();
        let kept = bench.ran("e");
        bench.exits("resume --no-input --yes", 0);
        assert_eq!((kept, bench.ran("e")), (vec![1], vec![1]), "{kind} {end:?}");
        assert_eq!(bench.ran("b"), [1], "{kind} {end:?}");
    }
}
