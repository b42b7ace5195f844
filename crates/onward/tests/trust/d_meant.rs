//! Which of several runs is meant where none is named: a command that looks says which one it took,
//! one that changes a run asks.

use std::fs;

use crate::{
    bench::{Bench, id, journal, sees, signal},
    support::repo::git,
};

const FAILS: &str = "  - { id: one, run: LOG }\n  - { id: two, run: 'false' }\n";

/// The ids of the runs, the last active one first.
fn runs(bench: &Bench) -> Vec<String> {
    bench.project().runs().unwrap().iter().map(|it| id(&it.dir)).collect()
}

#[test]
fn d_a_command_that_looks_says_which_of_several_runs_it_took() {
    let bench = Bench::new(FAILS);
    bench.exits("run w.yaml", 10);
    let looks = ["plan", "status", "why two", "log", "log --step one", "verify", "rescue list"];
    for command in looks {
        let said = bench.exits(command, 0).err;
        assert!(!said.contains("several runs"), "{command}: {said}");
    }
    bench.exits("run w.yaml", 10);
    let all = runs(&bench);
    let note = format!("note: several runs can be resumed here; this is {}, and", all[0]);
    for command in looks {
        let said = bench.exits(command, 0);
        assert!(said.err.replace("\n  ", " ").contains(&note), "{command}: {said:?}");
        assert!(said.err.contains("`onward list`"), "{command}: {said:?}");
        for quiet in ["--json", "--quiet"] {
            let said = bench.exits(&format!("{command} {quiet}"), 0).err;
            assert!(!said.contains("several runs"), "{command} {quiet}: {said}");
        }
    }
    for command in ["plan", "status"] {
        let said = bench.exits(&format!("{command} {}", all[1]), 0);
        assert!(said.out.contains(&all[1]) && said.err.is_empty(), "{command}: {said:?}");
    }
    // One that changes a run asks.
    let said = bench.exits("resume --no-input", 16).err;
    assert!(said.contains("several runs can be resumed:\n"), "{said}");
    // A run that is over is no other one.
    bench.exits(&format!("cancel {}", all[1]), 0);
    assert_eq!(bench.exits("plan", 0).err, "");
}

#[test]
fn d_done_and_pause_ask_which_of_several_runs_is_meant() {
    let bench = Bench::new(FAILS);
    bench.exits("run w.yaml", 10);
    bench.exits("run w.yaml", 10);
    let all = runs(&bench);
    let before = all.iter().map(|it| journal(&bench.path(&format!(".onward/runs/{it}"))));
    let before: Vec<String> = before.collect();
    let said = bench.exits("done two", 2).err;
    assert!(said.contains(&format!("`onward done {} two`", all[0])), "{said}");
    assert!(said.contains(&format!("  2. {}  story, failed at two, 1/2 done", all[1])), "{said}");
    let after = all.iter().map(|it| journal(&bench.path(&format!(".onward/runs/{it}"))));
    assert_eq!(after.collect::<Vec<String>>(), before, "nothing was recorded");
    bench.exits(&format!("done {} two", all[1]), 0);
    // The only one that has such a step is meant.
    bench.workflow("other.yaml", "steps:", "  - { id: three, run: 'false' }\n");
    bench.exits("run other.yaml", 10);
    let other = runs(&bench).remove(0);
    bench.exits("run w.yaml", 10);
    assert_eq!(bench.exits("done three --json", 0).json()["run"], other.as_str());
    let waits = "  - { id: one, run: 'echo > begun; while ! [ -e go ]; do sleep 0.05; done' }\n";
    bench.workflow("w.yaml", "limits: { parallel: 2 }\nsteps:", waits);
    let mut first = bench.start("run w.yaml");
    sees(&bench.path("begun"));
    // No run is driven beside it: it is meant, also if another one was active later.
    let driven = runs(&bench).remove(0);
    bench.exits(&format!("cancel {other}"), 0);
    assert_eq!(bench.exits("pause --json", 0).json()["run"], driven.as_str());
    signal(first.pid(), "-KILL");
    bench.write("go", "");
    first.wait().unwrap();
}

const DOCUMENT: &str = "# Conference: Tea\n\n## Goal\nSteep it better.\n\n## Mode\nmetric\n\n\
    ## Success Metric\n- **Metric:** taste\n- **Target:** >= 90\n- **Direction:** maximize\n\n\
    ## Researchers\n- **Count:** 2\n- **Iterations per round:** 3\n- **Max rounds:** 3\n\n\
    ## Shared Knowledge\n\n## Conference Log\n";

/// A project below a directory, with a conference that was interrupted.
pub(crate) fn below(bench: &Bench, project: &str) {
    let line = |event: &str, payload: &str| {
        let at = "2026-05-04T20:00:00Z";
        format!("{{\"event\":\"{event}\",\"timestamp\":\"{at}\",\"payload\":{{{payload}}}}}\n")
    };
    let states = "\"round\":1,\"researcher_states\":[\"A:ready\",\"B:ready\"]";
    let log = line("conference.started", "\"researchers\":2") + &line("round.started", states);
    fs::create_dir_all(bench.path(&format!("{project}/talk"))).unwrap();
    fs::create_dir_all(bench.path(&format!("{project}/.onward"))).unwrap();
    bench.write(&format!("{project}/talk/conference.md"), DOCUMENT);
    bench.write(&format!("{project}/talk/conference_events.jsonl"), &log);
    let agent = "agents.claude.command = [\"sh\", \"-c\", \"exit 1\", \"{prompt}\"]\n";
    bench.write(&format!("{project}/.onward/config.toml"), agent);
    let inside = Bench::at_existing(bench.path(project));
    for command in ["init -q", "add .", "commit -qm begun"] {
        git(&inside, command);
    }
}

/// What a run of ours continues is in the list of the directory above, and is meant there as it was
/// before it was taken up.
#[test]
fn d_runs_that_were_taken_up_are_known_in_the_directory_above_their_projects() {
    let bench = Bench::new("");
    below(&bench, "tea");
    below(&bench, "coffee");
    let dialects = |bench: &Bench| {
        let list = bench.exits("list --json", 0).json();
        let runs = list["runs"].as_array().unwrap().clone();
        runs.iter().map(|it| it["dialect"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(dialects(&bench), ["conference", "conference"]);
    bench.exits("resume tea/talk --yes --no-input", 10);
    assert_eq!(dialects(&bench).len(), 2, "each is listed once, taken up or not");
    let tea = bench.path("tea");
    let run = id(&Bench::at_existing(tea.clone()).project().runs().unwrap().remove(0).dir);
    let list = bench.exits("list", 0).out;
    let row = list.lines().find(|line| line.contains(&run)).unwrap_or_else(|| panic!("{list}"));
    assert!(row.contains("failed") && row.contains("in tea/talk"), "{list}");
    // As a list names it, it can be typed.
    let status = bench.exits(&format!("status {run}"), 0).out;
    assert!(status.contains(&format!("Run:            {run}\n")), "{status}");
    // What is printed about it works here.
    let command = format!("onward --cwd {} resume {run}\n", tea.display());
    assert!(bench.exits("", 0).out.ends_with(&command), "{:?}", bench.exits("", 0));
    let plan = bench.exits("plan", 0);
    assert!(plan.err.contains(&format!("this is {run}")), "{plan:?}");
    assert!(plan.out.ends_with(&command), "{plan:?}");
    let asked = bench.exits("resume --no-input", 16).err;
    assert!(asked.contains(&format!("  1. {run}  conference, failed")), "{asked}");
    assert!(asked.contains("coffee/talk  conference, interrupted"), "{asked}");
    // One after the other, each in its own project.
    let said = bench.exits("resume --all --yes --no-input", 10).err;
    assert!(said.contains(&command), "{said}");
    let coffee = Bench::at_existing(bench.path("coffee"));
    assert_eq!(coffee.project().runs().unwrap().len(), 1, "{said}");
    assert!(said.contains(&format!("onward --cwd {} resume", coffee.root.display())), "{said}");
    assert_eq!(dialects(&bench).len(), 2);
}
