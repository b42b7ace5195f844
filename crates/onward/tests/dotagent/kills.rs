//! Killed whenever a step has ended, a run comes to the same files; its checkpoint is whole all
//! the time.

use onward_engine::{care::harness::Watch, locate::RunDir};

use crate::{
    bench::{kill_all, watched},
    leash::Leash,
    office::{EXECUTION, Office, PHASE, RESUME, RUN},
};

/// Of so many kills, one ends the supervisor and every agent, too.
const WHOLE: usize = 9;

impl Office {
    fn leash(&self, arguments: &str) -> Leash {
        Leash::start(&mut self.bench.command(arguments))
    }

    /// How many steps are finished; none before there is a run.
    fn finished_steps(&self) -> usize {
        let runs = self.bench.project().runs().unwrap();
        let of = |run: &RunDir| {
            let mut watch = Watch::new(&run.dir);
            watch.look().ok()?;
            Some(watch.finished().len())
        };
        runs.first().and_then(of).unwrap_or(0)
    }

    fn is_implementing(&self) -> bool {
        let is_begun = self.bench.path(PHASE).exists();
        is_begun && self.object(PHASE)["current_phase"] == "IMPLEMENTATION"
    }

    /// Both files can be read, or are not there yet.
    fn is_whole(&self) {
        for file in [PHASE, EXECUTION] {
            if self.bench.path(file).exists() {
                self.object(file);
            }
        }
    }
}

#[test]
fn a_run_that_is_killed_after_every_step_ends_with_the_same_files() {
    let office = Office::new();
    let mut engine = office.leash(RUN);
    let (mut seen, mut kills, mut gates) = (0, 0_usize, 0);
    // A task whose agent died has lost one of its three attempts, and two are used up by the story.
    let mut counted = false;
    loop {
        while engine.until(|| office.finished_steps() > seen) {
            engine.kill();
            kills += 1;
            let implements = office.is_implementing();
            if kills.is_multiple_of(WHOLE) && !(implements && counted) {
                kill_all(&office.run_dir());
                counted |= implements;
            }
            office.is_whole();
            seen = watched(&office.run_dir()).finished().len();
            engine = office.leash(RESUME);
        }
        let said = office.bench.onward("status --json");
        if !said.out.contains("\"waiting\"") {
            break;
        }
        gates += 1;
        office.approves();
        engine = office.leash(RESUME);
    }
    assert_eq!(gates, 2);
    // Between two kills no more can end than is under way at a time.
    assert!(kills * 4 >= seen, "{kills} kills for {seen} steps");
    let (left, wanted) = (office.left(), Office::finished().left());
    for (name, value) in &wanted {
        assert_eq!(left.get(name), Some(value), "{name} after {kills} kills");
    }
    assert_eq!(left.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    let finished = watched(&office.run_dir()).finished();
    let mut steps: Vec<&String> = finished.iter().map(|(step, _)| step).collect();
    steps.sort();
    let count = steps.len();
    steps.dedup();
    assert_eq!(steps.len(), count, "a step was finished twice");
}
