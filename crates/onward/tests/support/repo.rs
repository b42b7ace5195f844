//! A git repository with an agent in it that is half through when it is killed.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use onward_engine::{care::harness::until, revert::rescue};

use super::{
    bench::{Bench, kill_all, sees, signal},
    program,
};

/// What every agent of these tests does first and last. The ledger is ignored by git, so that no
/// undo takes it.
const START: &str = "echo \"$ONWARD_STEP $ONWARD_ATTEMPT\" >> ledger.txt\n\
    half() { echo $$ > .git/pid; echo > .git/half; exec sleep 1000; }\n";

/// Changes a file, deletes one, makes others, makes one executable and one a link; then hangs.
pub(crate) const HALF_DONE: &str = "\
    if [ $ONWARD_ATTEMPT = 1 ]; then\n\
      echo half > a.txt; rm b.txt; mkdir -p new/deep; echo half > new/deep/file\n\
      chmod +x plain.sh; rm run.sh; ln -sf a.txt link; echo half > made.o\n\
      half\n\
    fi\n\
    cat \"$ONWARD_BRIEF\" > brief.txt\n\
    echo done > made.o\n";

/// A project in git, with the workflow `w.yaml` of these steps and the agent `claude`.
pub(crate) fn repo(agent: &str, steps: &str) -> Bench {
    let bench = Bench::new(steps);
    git(&bench, "init -q -b main");
    let files = [
        (".gitignore", "ledger.txt\nsaid\n*.o\n"),
        ("a.txt", "a\n"),
        ("b.txt", "b\n"),
        ("c.txt", "c\n"),
        ("plain.sh", "echo plain\n"),
        ("run.sh", "echo run\n"),
    ];
    for (path, text) in files {
        fs::write(bench.path(path), text).unwrap();
    }
    fs::write(bench.path("agent.sh"), format!("{START}{agent}")).unwrap();
    fs::set_permissions(bench.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("c.txt", bench.path("link")).unwrap();
    let config = "[agents.claude]\ncommand = [\"sh\", \"agent.sh\"]\n";
    fs::write(bench.path(".onward/config.toml"), config).unwrap();
    fs::write(bench.path(".onward/.gitignore"), "*\n").unwrap();
    git(&bench, "add -A");
    git(&bench, "commit -q -m one");
    // What a person has not committed yet is theirs all the same.
    fs::write(bench.path("c.txt"), "uncommitted\n").unwrap();
    fs::write(bench.path("untracked.txt"), "untracked\n").unwrap();
    bench
}

#[track_caller]
pub(crate) fn git(bench: &Bench, arguments: &str) -> String {
    program::git(&bench.root, &arguments.split(' ').collect::<Vec<_>>())
}

/// Every file of the tree, what it holds and what it is; what git ignores is left out.
pub(crate) fn tree(bench: &Bench) -> Vec<String> {
    let listed = git(bench, "ls-files -z --cached --others --exclude-standard");
    let mut tree = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let full = bench.path(path);
        let Ok(found) = fs::symlink_metadata(&full) else { continue };
        let text = if found.is_symlink() {
            format!("-> {}", fs::read_link(&full).unwrap().display())
        } else {
            let mark = if found.permissions().mode() & 0o100 == 0 { "" } else { "x " };
            format!("{mark}{}", fs::read_to_string(&full).unwrap())
        };
        tree.push(format!("{path}: {}", text.trim_end()));
    }
    tree.sort();
    tree.dedup();
    tree
}

/// How the engine, and perhaps all else, came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    /// The engine and the agent; the supervisor lives to write down what became of it.
    WithoutSupervisor,
    All,
}

/// Starts `w.yaml` and kills it when the agent is half through.
pub(crate) fn killed_half_way(bench: &Bench, how: Killed) -> PathBuf {
    let (mut engine, run) = bench.start_run();
    sees(&bench.path(".git/half"));
    engine.kill().unwrap();
    match how {
        Killed::All => kill_all(&run),
        Killed::WithoutSupervisor => {
            signal(bench.text(".git/pid").trim().parse().unwrap(), "-9");
            until("the snapshot after the attempt", || {
                let log = fs::read_to_string(run.join("exits.jsonl")).unwrap();
                Ok(log.contains("{\"kind\":\"snapshot\"").then_some(()))
            })
            .unwrap();
        }
    }
    fs::remove_file(bench.path(".git/half")).unwrap();
    run
}

/// Writes a file as a person would, later than anything that could still be the attempt's.
pub(crate) fn edit_by_hand(bench: &Bench, run: &Path, path: &str) {
    let modified = |path: PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    let last_sign = modified(run.join("heartbeat")).max(modified(bench.path(".git/pid")));
    until("the attempt to be over for two seconds", || {
        fs::write(bench.path(path), "by hand\n").unwrap();
        let after = modified(bench.path(path)).duration_since(last_sign).unwrap_or_default();
        Ok((after.as_millis() > 2_100).then_some(()))
    })
    .unwrap();
}

/// What the rescue of this number has.
pub(crate) fn rescued(run: &Path, number: u32) -> rescue::Rescue {
    let all = rescue::list(run).unwrap().rescues;
    all.into_iter().find(|it| it.number == number).unwrap_or_else(|| panic!("no rescue {number}"))
}
