//! What a crash or a bad disk does to the journal; and what a plan does to it: nothing.

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::SystemTime};

use crate::bench::{Bench, Said, codes, id};

const STEPS: &str = "  - { id: one, run: LOG; echo 1 > one, writes: [one] }\n\
    \x20 - { id: two, run: LOG; echo 2 > two, reads: [one], writes: [two] }\n\
    \x20 - { id: ask, gate: Go on?, shows: [two] }\n\
    \x20 - { id: three, run: LOG }\n";

#[test]
fn case_15_a_journal_cut_inside_its_last_line_is_an_information_and_resumes() {
    let bench = Bench::new(STEPS);
    bench.exits("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let path = run.join("journal.jsonl");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    let plan = bench.plan(&run);
    assert_eq!(codes(&plan), ["torn-tail"]);
    assert_eq!(plan["findings"][0]["severity"], "info");
    assert_eq!(plan["can_resume"], true);
    bench.exits("resume", 11);
    bench.exits("approve", 0);
    bench.exits("resume", 0);
    bench.is_proved(&run);
}

#[test]
fn a_flipped_byte_in_the_middle_is_damage_that_nobody_writes_over() {
    let bench = Bench::new(STEPS);
    bench.exits("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let path = run.join("journal.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let plan = bench.plan(&run);
    assert!(codes(&plan).contains(&"journal-damaged"), "{plan:#}");
    assert_eq!(plan["can_resume"], false);
    let said = bench.exits(&format!("resume {}", id(&run)), 15);
    assert!(said.err.contains("damaged"), "{said:?}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_journal_whose_beginning_is_lost_is_damaged_and_can_be_repaired() {
    for spoil in [|bytes: &mut Vec<u8>| bytes[9] ^= 1, |bytes: &mut Vec<u8>| bytes.clear()] {
        let bench = Bench::new(STEPS);
        bench.exits("run w.yaml", 11);
        let run = bench.project().runs().unwrap().remove(0).dir;
        let path = run.join("journal.jsonl");
        let mut bytes = fs::read(&path).unwrap();
        spoil(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        for command in ["plan", "resume"] {
            let said = bench.exits(&format!("{command} {}", id(&run)), 15);
            assert!(said.err.contains("onward repair"), "{said:?}");
        }
        bench.exits(&format!("repair {} --yes", id(&run)), 0);
        bench.exits(&format!("plan {}", id(&run)), 0);
    }
}

#[test]
fn a_run_that_lost_its_journal_is_named_to_whoever_names_none() {
    let bench = Bench::new(STEPS);
    bench.exits("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    fs::remove_file(run.join("journal.jsonl")).unwrap();
    for command in ["plan", "resume", "status"] {
        let said = bench.exits(command, 15);
        assert!(said.err.contains(&id(&run)) && said.err.contains("onward repair"), "{said:?}");
    }
}

#[test]
fn what_a_failed_step_complained_of_is_among_the_last_words() {
    let bench =
        Bench::new("  - { id: a, run: 'echo first >&2; echo \"no such flour\" >&2; exit 3' }");
    let said = bench.exits("run w.yaml", 10);
    assert!(said.err.contains("a: exit 3\n    no such flour\n"), "{said:?}");
}

#[test]
fn what_is_kept_of_a_long_journal_saves_time_and_changes_nothing() {
    let long = "x".repeat(40_000);
    let step = |id: usize| {
        format!("  - {{ id: s{id}, run: 'echo 1 > o{id} # {long}', writes: [o{id}] }}\n")
    };
    let steps: String = (0..10).map(step).collect();
    let last = step(10);
    let bench = Bench::new(&format!("{steps}  - {{ id: ask, gate: Go on? }}\n{last}"));
    // What is kept is under the seal of a user, who has a home for it.
    let says = |arguments: &str, code: i32| {
        let mut command = bench.command(arguments);
        let said = Said::of(&command.env("XDG_STATE_HOME", bench.path("home")).output().unwrap());
        assert_eq!(said.code, code, "{arguments}: {said:?}");
        said
    };
    says("run w.yaml", 11);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let kept = run.join("checkpoint");
    let good = fs::read(&kept).expect("a long journal is kept when it is left");
    let plan = || says("plan --json --now 2099-01-01T00:00:00Z", 0).json();
    let is_same_without = || {
        let with = plan();
        let held = fs::read(&kept).unwrap();
        fs::remove_file(&kept).unwrap();
        assert_eq!(with, plan());
        assert!(!kept.exists(), "a look writes nothing");
        fs::write(&kept, held).unwrap();
        with
    };
    let before = is_same_without();
    let mut spoilt = good.clone();
    spoilt[good.len() / 2] ^= 1;
    for other in [&good[..good.len() / 2], &spoilt[..], &[][..]] {
        fs::write(&kept, other).unwrap();
        is_same_without();
    }
    fs::write(&kept, &good).unwrap();
    // A resume that adds little leaves it.
    says("resume --no-input", 11);
    assert!(good == fs::read(&kept).unwrap(), "kept again");
    // What comes after it counts.
    says("approve", 0);
    assert_eq!(fs::read(&kept).unwrap(), good);
    assert_ne!(is_same_without(), before);
    // Damage is found where it is.
    let path = run.join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    for at in [whole.len() / 3, whole.len() - 300] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        let told = is_same_without();
        assert!(codes(&told).iter().any(|it| matches!(*it, "journal-damaged" | "torn-tail")));
    }
    fs::write(&path, whole).unwrap();
    says("resume", 0);
    assert_ne!(fs::read(&kept).unwrap(), good);
    assert_eq!(says("status --json", 0).json()["run"]["status"], "completed");
}

type Picture = BTreeMap<String, (Vec<u8>, SystemTime)>;

fn picture(dir: &Path) -> Picture {
    let mut all = Picture::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let (path, found) = (entry.path(), entry.metadata().unwrap());
        let name = path.display().to_string();
        if found.is_dir() {
            all.insert(name, (Vec::new(), found.modified().unwrap()));
            all.extend(picture(&path));
        } else if found.is_file() && entry.file_name() != "heartbeat" {
            all.insert(name, (fs::read(&path).unwrap(), found.modified().unwrap()));
        }
    }
    all
}

#[test]
fn a_plan_changes_nothing_anywhere() {
    let bench = Bench::new(
        "  - { id: one, run: LOG; echo 1 > one, writes: [one] }\n\
         \x20 - { id: two, run: LOG; sleep 1000, edits: true }\n",
    );
    let git = |arguments: &str| {
        let mut command = Command::new("git");
        let who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"];
        command.args(who).args(arguments.split(' ')).current_dir(&bench.root);
        assert!(command.output().unwrap().status.success(), "{arguments}");
    };
    git("init -q");
    git("add w.yaml");
    git("commit -qm first");
    let (run, _) = bench.run_and_kill(|_| !bench.ran("two").is_empty());
    crate::bench::kill_all(&run);
    let before = picture(&bench.root);
    assert!(before.keys().any(|it| it.ends_with(".git/HEAD")), "git is watched too");
    for arguments in ["plan", "plan --json", "why two", "status", "list", "log --json"] {
        bench.exits(arguments, 0);
        let after = picture(&bench.root);
        let same = before == after;
        assert!(same, "{arguments} changed something: {:?}", after.keys());
    }
}
