//! A run that dies at every boundary of its journal comes to the same files; its checkpoint is
//! whole all the time.

use crate::{
    bench::watched,
    office::{EXECUTION, Office, PHASE, RESUME, RUN},
    support::boundary::{Boundaries, Dies},
};

impl Office {
    /// A task that dies with its run has lost one of three attempts: the user gives it back, and
    /// goes on.
    fn resume(&self) -> String {
        if self.bench.path(EXECUTION).exists() {
            let mut execution = self.object(EXECUTION);
            let tasks = execution["tasks"].as_array_mut().into_iter().flatten();
            for task in tasks.filter(|it| it["attempts"].as_u64() > Some(1)) {
                task["attempts"] = 1.into();
            }
            self.put(EXECUTION, &execution);
        }
        RESUME.to_owned()
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

#[track_caller]
fn dies_at_every_boundary(who: Dies, of: fn(&str) -> bool) {
    let (office, reference) = (Office::new(), Office::finished());
    let resume = || office.resume();
    let mut all = Boundaries::new(&office.bench, who, &resume, of);
    all.all(RUN, || office.approves(), || office.is_whole());
    let mut missed = all.missed(&reference.run_dir());
    // Which of two tasks that run side by side ends first is not the same in both runs.
    missed.retain(|it| !it.starts_with("native.exported"));
    assert!(missed.is_empty(), "{missed:?}");
    assert_eq!(office.left(), reference.left());
    let mut finished = watched(&office.run_dir()).finished();
    let count = finished.len();
    finished.sort();
    finished.dedup_by(|one, other| one.0 == other.0);
    assert_eq!(finished.len(), count, "a step was finished twice");
}

fn is_of_task(boundary: &str) -> bool {
    boundary.contains(" implementation[")
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, |_| true);
}

fn is_of_second_task(boundary: &str) -> bool {
    boundary.contains(" implementation[task-002]")
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_a_task_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_of_second_task);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_its_other_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, |it| is_of_task(it) && !is_of_second_task(it));
}

#[test]
fn a_run_whose_every_process_dies_at_every_other_boundary_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, |it| !is_of_task(it));
}
