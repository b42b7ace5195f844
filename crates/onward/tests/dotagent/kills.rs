//! A run that dies at every boundary of its journal comes to the same files; its checkpoint is
//! whole all the time.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
};

use onward_engine::care::harness::EngineProcess;

use crate::{
    bench::{Bench, kill_all, sees, watched},
    office::{EXECUTION, Office, PHASE, RESUME, RUN},
    support::boundaries::{At, Dies, Scene, killed_at_every_boundary},
};

/// An office in which a run dies again and again.
struct Doomed {
    office: Office,
    who: Dies,
}

impl Scene for Doomed {
    fn bench(&self) -> &Bench {
        &self.office.bench
    }

    fn answer(&self) {
        self.office.approves();
    }

    /// A task that dies with its run has lost one of three attempts: the user gives it back, and
    /// goes on. Where the engine dies alone, none is lost.
    fn resume(&self) -> String {
        let office = &self.office;
        if self.who == Dies::Everything && office.bench.path(EXECUTION).exists() {
            let mut execution = office.object(EXECUTION);
            let tasks = execution["tasks"].as_array_mut().into_iter().flatten();
            for task in tasks.filter(|it| it["attempts"].as_u64() > Some(1)) {
                task["attempts"] = 1.into();
            }
            office.put(EXECUTION, &execution);
        }
        RESUME.to_owned()
    }

    /// Both files can be read, or are not there yet.
    fn holds(&self) {
        for file in [PHASE, EXECUTION] {
            if self.office.bench.path(file).exists() {
                self.office.object(file);
            }
        }
    }
}

#[track_caller]
fn dies_at_every_boundary(who: Dies, of: fn(&str) -> bool) {
    let (doomed, reference) = (Doomed { office: Office::new(), who }, Office::finished());
    let kills = killed_at_every_boundary(&doomed, RUN, (who, At::Records), of);
    let office = doomed.office;
    let mut missed = kills.missed(&reference.run_dir());
    // Which of two tasks that run side by side ends first is not the same in both runs.
    missed.retain(|it| !it.starts_with("native.exported"));
    assert!(missed.is_empty(), "{missed:?}");
    assert_eq!(office.left(), reference.left());
    for id in ["task-001", "task-002", "task-003", "repair-1"] {
        let (attempts, wanted) = (&office.task(id)["attempts"], &reference.task(id)["attempts"]);
        assert!(who == Dies::Everything || attempts == wanted, "{id}: {attempts} and {wanted}");
    }
    let mut finished = watched(&office.run_dir()).finished();
    let count = finished.len();
    finished.sort();
    finished.dedup_by(|one, other| one.0 == other.0);
    assert_eq!(finished.len(), count, "a step was finished twice");
}

/// A git that writes half of a file, says so, and comes no further.
const SLOW_GIT: &str = r#"#!/bin/sh
case " $* " in
  *" checkout-index "*count.txt*)
    dir=$2/
    for it in "$@"; do case $it in --prefix=*) dir=${it#--prefix=};; esac; done
    mkdir -p "$dir"; printf 1 > "${dir}count.txt"; : > "MARKER"; sleep 600 ;;
esac
exec REAL "$@"
"#;

/// Found under load: the project had half of a file, which no later merge could tell from a
/// person's own.
#[test]
fn a_merge_that_dies_while_git_writes_a_file_is_finished_at_the_next_resume() {
    let office = Office::new();
    office.bench.exits(RUN, 11);
    office.approves();
    office.bench.exits(RESUME, 11);
    office.approves();
    let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
    let real = path.split(':').map(|it| format!("{it}/git")).find(|it| Path::new(it).exists());
    let (bin, marker) = (office.bench.path(".onward/bin"), office.bench.path(".onward/slow"));
    fs::create_dir_all(&bin).unwrap();
    let slow = SLOW_GIT.replace("REAL", &real.unwrap()).replace("MARKER", marker.to_str().unwrap());
    fs::write(bin.join("git"), slow).unwrap();
    fs::set_permissions(bin.join("git"), Permissions::from_mode(0o755)).unwrap();
    let mut engine = office.bench.command(RESUME);
    engine.env("PATH", format!("{}:{path}", bin.display()));
    let mut engine = EngineProcess::start(engine.stdout(Stdio::null())).unwrap();
    sees(&marker);
    engine.kill().unwrap();
    kill_all(&office.run_dir());
    office.bench.exits(RESUME, 0);
    assert_eq!(office.bench.text("count.txt"), "1\n2\n3\n");
    assert!(!office.ledger().iter().any(|it| it.contains("reconcile")), "{:?}", office.ledger());
}

fn is_of_task(step: &str) -> bool {
    step.starts_with("implementation[")
}

/// From the verification of the whole on.
fn is_late(step: &str) -> bool {
    ["verification", "repair", "reflection"].iter().any(|it| step.starts_with(it))
}

fn is_early(step: &str) -> bool {
    !is_of_task(step) && !is_late(step)
}

/// The longest of them: it is blocked once.
const SECOND: &str = "implementation[task-002]";

fn is_of_second_try(step: &str) -> bool {
    step.strip_prefix(SECOND).is_some_and(|it| it.starts_with("/try[2]"))
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_of_a_task_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, |it| it.starts_with(SECOND));
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_of_its_other_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, |it| is_of_task(it) && !it.starts_with(SECOND));
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_before_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, is_early);
}

#[test]
fn a_run_whose_engine_dies_at_every_boundary_after_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Engine, is_late);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_task_1_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, |it| it.starts_with("implementation[task-001]"));
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_task_2_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, |it| it.starts_with(SECOND) && !is_of_second_try(it));
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_a_second_try_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_of_second_try);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_of_task_3_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, |it| it.starts_with("implementation[task-003]"));
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_before_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_early);
}

#[test]
fn a_run_whose_every_process_dies_at_every_boundary_after_its_tasks_ends_with_the_same_files() {
    dies_at_every_boundary(Dies::Everything, is_late);
}
