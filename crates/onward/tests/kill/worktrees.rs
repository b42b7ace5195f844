//! Steps with a worktree of their own: where they work, what they leave on their branch, and what
//! becomes of them when a process is killed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use onward_core::event::Event;
use onward_engine::care::harness::Watch;

use crate::{
    bench::{Bench, Said, id, journal, kill_all, sees, sees_nobody_left},
    repo::{Killed, git, killed_half_way, repo, rescued, tree},
};

/// Adds its name to a tracked file and makes a new one. The step that `.git/hangs` names is half
/// through its first attempt when it stops; it waits there for `.git/go`, if it is to go on.
const AGENT: &str = "\
    echo \"$ONWARD_STEP $ONWARD_ATTEMPT\" >> \"$TOP/ledger.txt\"\n\
    if [ \"$ONWARD_STEP $ONWARD_ATTEMPT\" = \"$(cat \"$TOP/.git/hangs\" 2> /dev/null) 1\" ]; then\n\
      echo half > a.txt; echo half > half.txt; rm -f b.txt\n\
      if [ -e \"$TOP/.git/commits\" ]; then git add -A; git commit -q -m own; fi\n\
      echo $$ > \"$TOP/.git/pid\"; echo > \"$TOP/.git/half\"\n\
      [ -e \"$TOP/.git/go\" ] || exec sleep 1000\n\
      read -r go < \"$TOP/.git/go\"\n\
    fi\n\
    echo \"$ONWARD_STEP\" >> a.txt; cat c.txt untracked.txt > made.txt 2> /dev/null\n\
    cat \"$ONWARD_BRIEF\" > \"$TOP/brief.txt\"\n\
    true\n";

pub(crate) const GROUP: &str = "  - id: draft\n    worktree: true\n    steps:\n\
    \x20     - { id: write, agent: claude, prompt: p, writes: [made.txt], retry: { max: 1 } }\n\
    \x20     - { id: polish, agent: claude, prompt: p, retry: { max: 1 } }\n\
    \x20 - { id: merge, run: 'LOG; git merge -q {{ steps.draft.branch }} && cp {{ \
    steps.draft.path }}/made.txt merged.txt' }\n";

/// A project where all is committed.
pub(crate) fn worktree_bench(steps: &str, hangs: &str) -> Bench {
    let bench = repo("", steps);
    let agent = format!("TOP='{}'\n{AGENT}", bench.root.display());
    fs::write(bench.path("agent.sh"), agent).unwrap();
    fs::write(bench.path(".gitignore"), "ledger.txt\nsaid\nbrief.txt\n").unwrap();
    fs::remove_file(bench.path("untracked.txt")).unwrap();
    git(&bench, "config user.name ann");
    git(&bench, "config user.email ann@example.com");
    git(&bench, "add -A");
    git(&bench, "commit -q -m two");
    fs::write(bench.path(".git/hangs"), hangs).unwrap();
    bench
}

pub(crate) fn path(bench: &Bench, run: &Path, name: &str) -> PathBuf {
    bench.path(".onward/worktrees").join(id(run)).join(name)
}

pub(crate) fn the_run(bench: &Bench) -> PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

fn text(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_default()
}

fn branch(run: &Path, name: &str) -> String {
    format!("onward/{}/{name}", id(run))
}

#[test]
fn steps_of_a_group_share_a_worktree_and_what_they_finish_is_committed() {
    let bench = worktree_bench(GROUP, "");
    let head = git(&bench, "rev-parse HEAD");
    bench.exits("run w.yaml", 0);
    let run = the_run(&bench);
    bench.is_proved(&run);
    let log = git(&bench, &format!("log --reverse --format=%s%n%b {head}..HEAD"));
    let commit = |step: &str| {
        let run = id(&run);
        format!("{step}, attempt 1\nOnward-Run: {run}\nOnward-Step: {step}\nOnward-Attempt: 1\n")
    };
    let expected = format!("{}\n{}", commit("draft/write"), commit("draft/polish"));
    assert_eq!(log, expected.trim_end());
    assert_eq!(bench.text("a.txt"), "a\ndraft/write\ndraft/polish\n", "merged");
    assert_eq!(bench.text("merged.txt"), "uncommitted\n");
    let tip = git(&bench, &format!("rev-parse {}", branch(&run, "draft")));
    assert!(journal(&run).contains(&format!("\"branch_head\":\"{tip}\"")));
    assert_eq!(git(&bench, "status --porcelain"), "?? merged.txt", "no worktree shows up");
}

#[test]
fn a_worktree_begins_with_what_is_not_committed_and_nothing_of_it_lands_in_the_project() {
    let steps = GROUP.replace("git merge -q {{ steps.draft.branch }} && ", "");
    let bench = worktree_bench(&steps, "");
    fs::write(bench.path("c.txt"), "edited\n").unwrap();
    fs::write(bench.path("untracked.txt"), "untracked\n").unwrap();
    git(&bench, "add untracked.txt");
    let (before, status) = (tree(&bench), git(&bench, "status --porcelain"));
    let head = git(&bench, "rev-parse HEAD");
    bench.exits("run w.yaml", 0);
    assert_eq!(bench.text("merged.txt"), "edited\nuntracked\n");
    fs::remove_file(bench.path("merged.txt")).unwrap();
    assert_eq!(tree(&bench), before);
    assert_eq!(git(&bench, "status --porcelain"), status, "the person's index is as it was");
    assert_eq!(git(&bench, "rev-parse HEAD"), head);
    assert_eq!(git(&bench, "rev-parse --abbrev-ref HEAD"), "main");
}

const FAN_OUT: &str = "  - id: draft\n    each: [ann, bob]\n    agent: claude\n    prompt: p\n    \
    worktree: true\n    retry: { max: 1 }\n\
    \x20 - { id: merge, run: 'LOG; git merge -q {{ steps.draft.items.ann.branch }} && git merge -q \
    -X theirs {{ steps.draft.items.bob.branch }}' }\n";

#[test]
fn two_writers_edit_the_same_file_at_once_and_a_step_merges_them() {
    let bench = worktree_bench(FAN_OUT, "");
    bench.exits("run w.yaml", 0);
    let run = the_run(&bench);
    bench.is_proved(&run);
    assert_eq!(text(&path(&bench, &run, "draft.ann"), "a.txt"), "a\ndraft[ann]\n");
    assert_eq!(text(&path(&bench, &run, "draft.bob"), "a.txt"), "a\ndraft[bob]\n");
    assert_eq!(bench.text("a.txt"), "a\ndraft[bob]\n", "merged, theirs before ours");
    let log = git(&bench, "log --format=%B");
    for step in ["draft[ann]", "draft[bob]"] {
        assert!(log.contains(&format!("Onward-Step: {step}")), "{log}");
    }
    assert_eq!(git(&bench, "status --porcelain"), "");
}

#[test]
fn two_runs_whose_edits_have_their_own_worktrees_work_at_the_same_time() {
    let steps = "  - { id: one, agent: claude, prompt: p, worktree: true, retry: { max: 1 } }\n";
    let bench = worktree_bench(steps, "one");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/half"));
    fs::write(bench.path(".git/hangs"), "").unwrap();
    bench.exits("run w.yaml", 0);
    engine.kill().unwrap();
    kill_all(&run);
    bench.exits(&format!("resume {}", id(&run)), 0);
    let branches = git(&bench, "branch --list onward/*");
    assert_eq!(branches.lines().count(), 2, "{branches}");
}

#[test]
fn a_name_is_shared_by_whoever_has_it_and_turns_share_theirs() {
    let bench = worktree_bench(
        "  - { id: one, agent: claude, prompt: p, worktree: both }\n\
         \x20 - id: round\n    repeat: { max: 2 }\n    worktree: both\n    \
         steps: [{ id: two, agent: claude, prompt: p }]\n\
         \x20 - { id: three, run: 'LOG; echo three >> a.txt', worktree: other }\n",
        "",
    );
    bench.exits("run w.yaml", 0);
    let run = the_run(&bench);
    let both = text(&path(&bench, &run, "both"), "a.txt");
    assert_eq!(both, "a\none\nround[1]/two\nround[2]/two\n");
    assert_eq!(text(&path(&bench, &run, "other"), "a.txt"), "a\nthree\n");
    assert_eq!(git(&bench, "status --porcelain"), "");
}

#[test]
fn without_a_repository_nothing_starts_that_wants_a_worktree() {
    let bench = Bench::new("  - { id: one, run: LOG, worktree: true }\n");
    let said = bench.exits("run w.yaml", 2);
    assert!(said.err.contains("`one` has `worktree`"), "{said:?}");
    assert_eq!(bench.text("ledger.txt"), "");
}

#[test]
fn half_done_work_in_a_worktree_is_undone_there_and_is_in_the_rescue() {
    for how in [Killed::WithoutSupervisor, Killed::All] {
        let bench = worktree_bench(GROUP, "draft/polish");
        let before = tree(&bench);
        let run = killed_half_way(&bench, how);
        let draft = path(&bench, &run, "draft");
        assert_eq!(text(&draft, "a.txt"), "half\n");
        assert_eq!(tree(&bench), before);
        bench.exits("resume", 0);
        bench.is_proved(&run);
        assert_eq!([bench.ran("draft/write"), bench.ran("draft/polish")], [vec![1], vec![1, 2]]);
        assert_eq!(bench.text("a.txt"), "a\ndraft/write\ndraft/polish\n", "{how:?}");
        assert!(!bench.path("half.txt").exists() && bench.path("b.txt").exists(), "{how:?}");
        assert!(
            !git(&bench, "log -p --format= -- a.txt half.txt").contains("+half"),
            "it is in no commit"
        );
        let rescue = rescued(&run, 1);
        let names: Vec<&str> = rescue.note.paths.iter().map(|it| it.path.as_str()).collect();
        let prefix = format!(".onward/worktrees/{}/draft", id(&run));
        let expected = ["a.txt", "b.txt", "half.txt"].map(|name| format!("{prefix}/{name}"));
        assert_eq!(names, expected, "{how:?}");
        let kept = text(&rescue.dir.join("files"), &format!("{prefix}/half.txt"));
        assert_eq!(kept, "half\n");
        assert!(bench.text("brief.txt").contains("What it changed was undone"), "{how:?}");
        sees_nobody_left(&run);
    }
}

#[test]
fn an_agent_in_a_worktree_that_outlives_its_engine_is_waited_for_and_committed() {
    let bench = worktree_bench(GROUP, "draft/polish");
    let go = bench.fifo(".git/go");
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/half"));
    engine.kill().unwrap();
    let mut resumed = bench.start("resume");
    let mut watch = Watch::new(&run);
    let is_resumed = |watch: &Watch| {
        watch.records.iter().any(|record| matches!(record.event, Event::RunResumed(_)))
    };
    assert!(watch.until(&mut resumed, is_resumed).unwrap(), "{}", bench.text("said"));
    fs::write(go, "go\n").unwrap();
    assert!(resumed.wait().unwrap().success(), "{}", bench.text("said"));
    bench.is_proved(&run);
    assert_eq!(bench.ran("draft/polish"), [1]);
    assert_eq!(bench.text("a.txt"), "half\ndraft/polish\n");
}

#[test]
fn what_is_committed_before_anybody_recorded_it_is_done() {
    for by_agent in [true, false] {
        let bench = worktree_bench(GROUP, "draft/polish");
        if by_agent {
            fs::write(bench.path(".git/commits"), "").unwrap();
        }
        let run = killed_half_way(&bench, Killed::All);
        if !by_agent {
            // As the engine does it, right before it would have written the end of the attempt.
            let message = format!(
                "draft/polish, attempt 1\n\nOnward-Run: {}\nOnward-Step: draft/polish\n\
                 Onward-Attempt: 1\n",
                id(&run)
            );
            let draft = path(&bench, &run, "draft");
            let commit = |args: &[&str]| {
                let status = Command::new("git").arg("-C").arg(&draft).args(args).status();
                assert!(status.unwrap().success(), "{args:?}");
            };
            commit(&["add", "-A"]);
            commit(&["commit", "-q", "-m", &message]);
        }
        let head = git(&bench, &format!("rev-parse {}", branch(&run, "draft")));
        bench.exits("resume", 0);
        bench.is_proved(&run);
        assert_eq!(bench.ran("draft/polish"), [1], "by agent: {by_agent}");
        assert_eq!(git(&bench, &format!("rev-parse {}", branch(&run, "draft"))), head);
        assert!(journal(&run).contains(&format!("\"branch_head\":\"{head}\"")));
        assert_eq!(bench.text("half.txt"), "half\n", "and merged");
    }
}

/// Kills take turns, so that they meet the making of worktrees, the work, and the commits.
#[test]
fn an_engine_killed_again_and_again_makes_every_worktree_and_every_commit_once() {
    let bench = worktree_bench("", "");
    bench.workflow(
        "w.yaml",
        "limits: { parallel: 3, resumes: 100 }\nsteps:",
        "  - id: many\n    each: [a, b, c, d, e, f]\n    run: LOG; echo \
         {{ item }} >> a.txt\n    worktree: true\n\
         \x20 - { id: last, run: 'true' }\n",
    );
    git(&bench, "commit -q -a -m three");
    let count = |watch: &Watch| watch.records.len();
    let (run, mut watch) = bench.run_and_kill(|it| count(it) > 1);
    for _ in 0..12 {
        let before = count(&watch);
        let mut engine = bench.start(&format!("resume {}", id(&run)));
        if !watch.until(&mut engine, |it| count(it) > before).unwrap() {
            break;
        }
        engine.kill().unwrap();
    }
    let said = bench.onward("resume");
    assert!(said.code == 0 || said.code == 17, "{said:?}");
    for item in ["a", "b", "c", "d", "e", "f"] {
        let dir = path(&bench, &run, &format!("many.{item}"));
        assert_eq!(text(&dir, "a.txt"), format!("a\n{item}\n"), "{}", bench.text("said"));
        let name = branch(&run, &format!("many.{item}"));
        let log = git(&bench, &format!("log --format=%s main..{name}"));
        assert_eq!(log.lines().count(), 1, "{item}: {log}");
    }
    sees_nobody_left(&run);
}

#[test]
fn a_run_is_found_and_taken_up_from_inside_a_worktree() {
    let bench = worktree_bench(GROUP, "draft/polish");
    let run = killed_half_way(&bench, Killed::All);
    let inside = path(&bench, &run, "draft");
    for arguments in ["status --json", "resume"] {
        let output = bench.command(arguments).current_dir(&inside).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{:?}", Said::of(&output));
    }
    bench.is_proved(&run);
    assert!(!inside.join(".onward").exists());
}
