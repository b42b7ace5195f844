//! Runs that are not disturbed, and the people around them.

use onward_core::{address::Address, plan::Status, state::Phase};
use onward_engine::{
    drive::gate::Answer,
    engine::{Decided, EngineError, decide, resume_run},
    locate::{LockError, Project, RunLock},
    resume::ResumeError,
    world::{Request, inbox},
};

use crate::bench::{Bench, attended, picture, state};

fn answer(option: &str) -> Answer {
    Answer {
        step: Address::from_text("ask"),
        option: option.to_owned(),
        comment: None,
        by: "somebody".to_owned(),
        hash: None,
    }
}

#[test]
fn a_run_goes_from_its_file_to_its_end_and_is_then_complete() {
    let bench = Bench::new();
    let run = bench.new_run(
        "  - { id: one, run: echo 1 > one, writes: [one] }\n\
         \x20 - { id: two, run: cat one one > two, reads: [one], writes: [two] }\n",
    );
    assert_eq!(bench.plan(&run).run.status, Status::Fresh);
    let outcome = bench.resume(&run).unwrap();
    assert_eq!((outcome.status, outcome.until), (Status::Completed, None));
    assert_eq!(bench.text("two"), "1\n1\n");
    let journal = std::fs::read(run.join("journal.jsonl")).unwrap();
    assert!(journal.ends_with(b"}\n"), "the room made ahead is given back");
    bench.see_supervisor_leave(&run);
    let before = picture(&run);
    assert_eq!(bench.plan(&run).run.status, Status::Completed);
    let again = bench.resume(&run).unwrap_err();
    assert!(matches!(again, EngineError::Resume(ResumeError::Complete)), "{again:?}");
    let mut after = picture(&run);
    // Holding the lock for a moment is all that a refused resume may leave.
    after.insert(run.join("lock"), before[&run.join("lock")].clone());
    assert!(before == after, "{:?} is not {:?}", after.keys(), before.keys());
    let project = Project::locate(&bench.root).unwrap();
    assert_eq!(project.find("story").unwrap().dir, run);
}

#[test]
fn a_failed_step_ends_the_run_and_a_resume_tries_it_again() {
    let bench = Bench::new();
    let run = bench.new_run(
        "  - { id: one, run: echo 1 >> one }\n\
         \x20 - { id: two, run: test -e allowed }\n",
    );
    assert_eq!(bench.resume(&run).unwrap().status, Status::Failed);
    std::fs::write(bench.path("allowed"), "").unwrap();
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    assert_eq!(bench.text("one"), "1\n", "what was done is not done again");
}

#[test]
fn a_gate_is_answered_in_the_journal_when_nobody_drives() {
    let bench = Bench::new();
    let run = bench.new_run(
        "  - { id: ask, gate: Go on? }\n\
         \x20 - { id: after, run: echo done > after }\n",
    );
    assert_eq!(bench.resume(&run).unwrap().status, Status::Waiting);
    let before = std::fs::read(run.join("journal.jsonl")).unwrap();
    let wrong = decide(&run, &answer("maybe"), &bench.machine).unwrap_err();
    assert_eq!(wrong.hint().unwrap(), "options: approve, reject");
    assert_eq!(std::fs::read(run.join("journal.jsonl")).unwrap(), before);
    assert_eq!(decide(&run, &answer("approve"), &bench.machine).unwrap(), Decided::Journaled);
    assert_eq!(state(&run).phase(&Address::from_text("ask")), Phase::Done);
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    assert_eq!(bench.text("after"), "done\n");
}

#[test]
fn a_driver_takes_answers_from_the_inbox_and_nobody_else_may_drive() {
    let bench = Bench::new();
    let run = bench.new_run(
        "  - { id: first, run: echo > started }\n\
         \x20 - { id: ask, gate: Go on? }\n",
    );
    let started = bench.fifo("started");
    let how = attended();
    let (plan, refused, decided, outcome) = std::thread::scope(|scope| {
        let driver = scope.spawn(|| resume_run(&run, &bench.machine, &how, None));
        std::fs::read(&started).unwrap();
        let (plan, refused) = (bench.plan(&run), bench.resume(&run));
        // An answer to a gate that is not open yet would be refused.
        while state(&run).phase(&Address::from_text("ask")) != Phase::Waiting {
            std::thread::yield_now();
        }
        let decided = decide(&run, &answer("approve"), &bench.machine);
        (plan, refused, decided, driver.join().unwrap())
    });
    assert_eq!(plan.run.status, Status::Running);
    assert_eq!(plan.findings[0].code, "still-running");
    let Err(EngineError::Lock(LockError::RunHeld { holder: Some(holder), .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(holder.pid.cast_unsigned(), std::process::id());
    assert_eq!(decided.unwrap(), Decided::Taken);
    assert_eq!(outcome.unwrap().status, Status::Completed);
    assert_eq!(inbox::waiting(&run).unwrap(), []);
}

#[test]
fn an_answer_left_behind_by_a_crash_is_taken_once() {
    let bench = Bench::new();
    let run = bench.new_run("  - { id: ask, gate: Go on? }\n  - { id: two, run: 'true' }\n");
    assert_eq!(bench.resume(&run).unwrap().status, Status::Waiting);
    let id = run.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let now = onward_engine::world::real::wall_clock();
    let lock = RunLock::take(&run, &id, now).unwrap();
    // The driver died before it read them.
    for _ in 0..2 {
        let Answer { step, option, comment, by, hash } = answer("approve");
        let request = Request::Decide { step, option, comment, by, hash };
        inbox::write_request(&run, &request, now).unwrap();
    }
    drop(lock);
    let how = attended();
    let outcome = resume_run(&run, &bench.machine, &how, None).unwrap();
    assert_eq!(outcome.status, Status::Completed);
    let journal = String::from_utf8(std::fs::read(run.join("journal.jsonl")).unwrap()).unwrap();
    assert_eq!(journal.matches("\"gate.decided\"").count(), 1);
}

#[test]
fn no_secret_reaches_the_journal() {
    let mut bench = Bench::new();
    bench.machine.env.push(("SOME_TOKEN".into(), "tok-123456".into()));
    let run = bench.new_run(
        "  - id: one\n\
         \x20   run: 'echo said $SOME_TOKEN; echo [\\\"$SOME_TOKEN\\\"] > $ONWARD_RESULT'\n\
         \x20 - { id: two, run: 'echo {{ steps.one.stdout }} tok-123456 > two' }\n",
    );
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    let journal = String::from_utf8(std::fs::read(run.join("journal.jsonl")).unwrap()).unwrap();
    assert!(!journal.contains("tok-123456"), "{journal}");
    assert!(journal.contains("said [redacted:SOME_TOKEN]"), "{journal}");
}

#[test]
fn an_agent_is_a_command_of_the_configuration() {
    let mut bench = Bench::new();
    let steps = "  - { id: one, agent: claude, prompt: say hello, edits: false }\n";
    let command = ["sh", "-c", "echo \"$1\" > heard; cmp $ONWARD_PROMPT heard.expected", "x"];
    let words = command.iter().map(|it| (*it).to_owned()).chain(["{prompt}".to_owned()]);
    bench.machine.agents.insert("claude".into(), words.collect());
    std::fs::write(bench.path("heard.expected"), "say hello").unwrap();
    let run = bench.new_run(steps);
    assert_eq!(bench.resume(&run).unwrap().status, Status::Completed);
    assert_eq!(bench.text("heard"), "say hello\n");
    let run = bench.new_run(steps);
    bench.machine.agents.clear();
    let error = bench.resume(&run).unwrap_err();
    let EngineError::Resume(ResumeError::Conflicts(found)) = error else { panic!("{error}") };
    assert_eq!(found[0].message, "agent `claude`: the program `claude` is not on the PATH");
    assert!(found[0].hint.as_ref().unwrap().contains("`agents.claude.command = "), "{found:?}");
}
