//! Steps that work in another directory, and steps that the run goes on without.

use std::{fs, os::unix::fs::symlink};

use crate::{
    bench::Bench,
    repo::{Killed, git, killed_half_way, repo, rescued},
};

/// Half through its first attempt, it hangs. It works in the worktree `.trees/b`.
fn in_another_worktree() -> Bench {
    let step = "  - { id: b, agent: claude, prompt: p, dir: '.trees/{{ inputs.name }}', \
                retry: { max: 1 } }\n";
    let bench = repo("", step);
    let agent = format!(
        "TOP='{}'\nif [ $ONWARD_ATTEMPT = 1 ]; then\n  echo half > a.txt; echo half > new.txt\n  \
         echo $$ > \"$TOP/.git/pid\"; echo > \"$TOP/.git/half\"; exec sleep 1000\nfi\n\
         cp a.txt seen.txt; ls > \"$TOP/listed.txt\"\n",
        bench.root.display()
    );
    fs::write(bench.path("agent.sh"), &agent).unwrap();
    let config =
        format!("[agents.claude]\ncommand = [\"sh\", \"{}\"]\n", bench.path("agent.sh").display());
    fs::write(bench.path(".onward/config.toml"), config).unwrap();
    let workflow = bench.text("w.yaml");
    let inputs = "inputs: { name: { type: string, default: b } }\nsteps:";
    fs::write(bench.path("w.yaml"), workflow.replacen("steps:", inputs, 1)).unwrap();
    git(&bench, "worktree add -q -b other .trees/b");
    bench
}

#[test]
fn half_done_work_in_another_worktree_is_undone_there_and_nowhere_else() {
    for how in [Killed::All, Killed::WithoutSupervisor] {
        let bench = in_another_worktree();
        let run = killed_half_way(&bench, how);
        bench.exits("resume --yes --no-input", 0);
        assert_eq!(bench.text(".trees/b/seen.txt"), "a\n", "{how:?}");
        assert!(!bench.path(".trees/b/new.txt").exists(), "{how:?}");
        assert!(bench.text("listed.txt").contains("seen.txt"), "{how:?}");
        assert_eq!(bench.text("c.txt"), "uncommitted\n", "the project's own tree is not touched");
        let mut paths: Vec<String> =
            rescued(&run, 1).note.paths.iter().map(|it| it.path.clone()).collect();
        paths.sort();
        assert_eq!(paths, [".trees/b/a.txt", ".trees/b/new.txt"], "{how:?}");
    }
}

#[test]
fn a_directory_that_leads_out_of_the_project_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let bench = Bench::new("  - { id: a, run: touch made, dir: link }\n");
    symlink(elsewhere.path(), bench.path("link")).unwrap();
    let said = bench.exits("run w.yaml --no-input", 10);
    assert!(said.err.contains("leads out of the project"), "{said:?}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    let bench = Bench::new("  - { id: a, run: touch made, dir: missing }\n");
    let said = bench.exits("run w.yaml --no-input", 10);
    assert!(said.err.contains("is missing"), "{said:?}");
}

#[test]
fn a_run_goes_on_without_a_step_whose_failure_it_tolerates_and_a_resume_leaves_it_alone() {
    let steps = "  - { id: a, run: 'echo a >> ledger.txt; exit 3', on_failure: continue }\n  \
        - { id: b, run: 'echo {{ steps.a.status }} {{ steps.a.cause }} >> ledger.txt' }\n  \
        - { id: c, run: 'test -e go', retry: { max: 0 } }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml --no-input", 10);
    assert_eq!(bench.text("ledger.txt"), "a\nfailed failed\n");
    let plan = bench.onward("plan --json").json();
    assert_eq!(plan["steps"][0]["verdict"], "keep", "{plan:#}");
    assert_eq!(plan["steps"][0]["why"][0]["cause"], "failed", "{plan:#}");
    bench.write("go", "");
    bench.exits("resume --yes --no-input", 0);
    assert_eq!(bench.text("ledger.txt"), "a\nfailed failed\n", "neither ran again");
    let status = bench.onward("status --json").json();
    assert_eq!(status["steps"][0]["state"], "failed", "{status:#}");
    assert_eq!(status["counts"]["done"], 3, "{status:#}");
}

#[test]
fn a_person_may_have_a_tolerated_step_tried_again() {
    let steps = "  - { id: a, run: 'test -e go && echo a > a.txt', on_failure: continue }\n  \
        - { id: b, run: 'test -e go' }\n";
    let bench = Bench::new(steps);
    bench.exits("run w.yaml --no-input", 10);
    bench.write("go", "");
    bench.exits("resume --yes --no-input --redo a", 0);
    assert_eq!(bench.text("a.txt"), "a\n");
}
