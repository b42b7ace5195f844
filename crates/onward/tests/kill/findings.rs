//! Every finding, in a world that has it and in the nearest one that has not.
//!
//! Invariant: a code that is not in [`world`] does not compile, and one that is said to be covered
//! elsewhere is looked for there.

use std::{fs, path::PathBuf};

use onward_core::{finding::Code, time::Timestamp};
use onward_engine::world::{files::temporary_name, supervisor::Identity};
use serde_json::Value;

use crate::{
    bench::{Bench, id, journal, kill_all, sees, sees_nobody_left, spend},
    kills::kill_supervisor,
    repo::{HALF_DONE, Killed, edit_by_hand, git, killed_half_way, repo},
    sessions::Desk,
};

/// Two steps are done, the third has failed.
const CHAIN: &str = "
  - { id: a, run: 'LOG; echo a > a.txt', writes: [a.txt] }
  - { id: b, run: 'LOG; cat a.txt source > b.txt', reads: [source], writes: [b.txt] }
  - { id: c, run: 'LOG; test -e ok' }
";
const DRAFT: &str = "  - { id: draft, agent: claude, prompt: write, writes: [made.o] }\n\
    \x20 - { id: last, run: 'LOG; test -e ok' }\n";

/// What was found there: each code with its severity.
type Found = Vec<(String, String)>;

enum World {
    Here(Found),
    /// Which test has it: its file, below `crates`, and its name.
    Elsewhere(&'static str, &'static str),
}

fn stopped() -> Bench {
    let bench = Bench::new(CHAIN);
    bench.write("source", "one\n");
    bench.exits("run w.yaml", 10);
    // The supervisor writes its log until it has left.
    sees_nobody_left(&the_run(&bench));
    bench
}

fn the_run(bench: &Bench) -> PathBuf {
    bench.project().runs().unwrap().remove(0).dir
}

/// What `plan --json` says, with these arguments.
fn planned(bench: &Bench, arguments: &str) -> World {
    let plan = bench.exits(format!("plan --json {arguments}").trim_end(), 0).json();
    World::Here(of_plan(&plan))
}

fn of_plan(plan: &Value) -> Found {
    let findings = plan["findings"].as_array().unwrap().iter();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
    findings.map(|it| (text(it, "code"), text(it, "severity"))).collect()
}

/// What a resume stops at; a plan asks no probe and enters nowhere.
fn stops_at(bench: &Bench, arguments: &str, code: Code) -> World {
    let said = bench.onward(arguments);
    let word = code.as_str();
    let found = said.code == 16 && said.err.contains(word);
    let severity = format!("{:?}", code.severity()).to_lowercase();
    World::Here(found.then(|| (word.to_owned(), severity)).into_iter().collect())
}

/// The moment of the run's last event, moved.
fn now(bench: &Bench, later_ms: i64) -> String {
    let plan = bench.plan(&the_run(bench));
    let last: Timestamp = plan["run"]["last_event"]["at"].as_str().unwrap().parse().unwrap();
    format!("--now {}", Timestamp::from_micros(last.as_micros() + later_ms * 1000))
}

/// A run of an agent that changes nothing and a step that fails, in a repository.
fn in_git() -> Bench {
    let bench = repo("echo done > made.o\n", DRAFT);
    git(&bench, "commit -q --allow-empty -m two");
    bench.exits("run w.yaml", 10);
    bench
}

fn resumed(bench: &Bench, times: u32, before: impl Fn(u32)) -> World {
    for time in 1..=times {
        before(time);
        bench.exits("resume", 10);
    }
    planned(bench, "")
}

fn replace_in_journal(bench: &Bench, change: impl Fn(&str) -> String) {
    let path = the_run(bench).join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, change(&text)).unwrap();
}

fn cut_last_line(text: &str) -> String {
    let end = text.trim_end().rfind('\n').unwrap();
    text[..=end].to_owned()
}

/// The supervisor's log with another end for a step that the journal has as done.
fn seal_says_otherwise(bench: &Bench) {
    let path = the_run(bench).join("exits.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let line = |line: &str| {
        let is_of_a = line.contains("\"step\":\"a\"") && line.contains("\"code\":0");
        if !is_of_a {
            return format!("{line}\n");
        }
        let body = line.replace("\"code\":0", "\"code\":3");
        let body = &body[..body.find("\"crc\"").unwrap()];
        format!("{body}\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    };
    fs::write(path, text.lines().map(line).collect::<Vec<_>>().concat()).unwrap();
}

/// A step in flight that has cost this much; the limit is a dollar.
fn spent(dollars: f64) -> World {
    let bench = Bench::new("");
    let steps = "  - { id: a, run: 'LOG; sleep 1000' }\n";
    bench.workflow("w.yaml", "limits: { usd: 1 }\nsteps:", steps);
    let (run, _) = bench.run_and_kill(|_| !bench.ran("a").is_empty());
    kill_all(&run);
    spend(&run, "a", dollars);
    planned(&bench, "")
}

/// A session of another tool in this tree, by its registry; ours is a process that surely lives.
fn session_of_another(here: bool) -> World {
    let bench = stopped();
    let home = bench.path("home");
    let us = Identity::of_this_process().unwrap();
    let cwd = if here { bench.root.clone() } else { "/elsewhere".into() };
    let entry = serde_json::json!({"pid": us.pid, "procStart": us.start_time, "cwd": cwd});
    fs::create_dir_all(home.join(".claude/sessions")).unwrap();
    fs::write(home.join(".claude/sessions/1.json"), entry.to_string()).unwrap();
    let output = bench.command("plan --json").env("HOME", home).output().unwrap();
    World::Here(of_plan(&crate::bench::Said::of(&output).json()))
}

/// An agent was killed in its session, and a process that lives has it open, or had.
fn session_open_elsewhere(open: bool) -> World {
    let desk = Desk::new();
    let run = killed_half_way(&desk.bench, Killed::All);
    let journal = journal(&run);
    let session = journal.split_once("\"session\":\"").unwrap().1.split_once('"').unwrap().0;
    let home = tempfile::TempDir::new().unwrap();
    let us = Identity::of_this_process().unwrap();
    let started = us.start_time + u64::from(!open);
    let entry = serde_json::json!({
        "pid": us.pid, "procStart": started, "cwd": "/elsewhere", "sessionId": session,
    });
    fs::create_dir_all(home.path().join(".claude/sessions")).unwrap();
    fs::write(home.path().join(".claude/sessions/1.json"), entry.to_string()).unwrap();
    let output = desk.bench.command("plan --json").env("HOME", home.path()).output().unwrap();
    let plan = crate::bench::Said::of(&output).json();
    // What is open elsewhere is left alone.
    assert_eq!(plan["steps"][0]["verdict"], if open { "rerun" } else { "continue" }, "{plan:#}");
    World::Here(of_plan(&plan))
}

/// Killed in an effect, with or without a probe that can tell.
fn effect(probe: &str) -> World {
    let bench = Bench::new(&format!(
        "  - {{ id: a, run: 'LOG; test -e begun || {{ echo > begun; sleep 1000; }}', \
         effect: outside{probe} }}\n"
    ));
    let (mut engine, run) = bench.start_run();
    sees(&bench.path("begun"));
    engine.kill().unwrap();
    kill_all(&run);
    stops_at(&bench, "resume", Code::EffectUnknown)
}

#[expect(clippy::too_many_lines, reason = "one arm for each code is what makes it complete")]
fn world(code: Code, has: bool) -> World {
    const CHECKS: &str = "onward-dialects/tests/conference/checks.rs";
    const TRUST: &str = "onward/tests/trust/a_plan.rs";
    const TREES: &str = "onward/tests/kill/broken_worktrees.rs";
    const CASE_10: &str =
        "case_10_a_worktree_deleted_pruned_detached_or_in_mid_rebase_has_a_way_on";
    match code {
        Code::MissingArtifact | Code::ArtifactChanged => {
            let bench = stopped();
            // The same content in a new file is the same output.
            bench.write("a.txt", if has { "improved\n" } else { "a\n" });
            if has && code == Code::MissingArtifact {
                fs::remove_file(bench.path("a.txt")).unwrap();
            }
            planned(&bench, "")
        }
        Code::InputChanged => {
            let bench = stopped();
            bench.write("source", if has { "two\n" } else { "one\n" });
            planned(&bench, "")
        }
        Code::ArtifactReplaced => World::Elsewhere(TRUST, "--accept artifact-changed"),
        Code::ItemsChanged => World::Elsewhere(TRUST, "items changed"),
        Code::ArtifactUnproved => World::Elsewhere(CHECKS, "artifact-unproved"),
        Code::UnprovedWorkCounts => {
            World::Elsewhere("onward/tests/adopt/prefixes.rs", "--accept artifact-unproved")
        }
        Code::LeftoverTempFile => {
            let bench = Bench::new(
                "  - { id: a, run: 'LOG; echo half > made; false', writes: [made], \
                 retry: { max: 1, backoff: 1ms, on: [failed] } }\n",
            );
            bench.exits("run w.yaml", 10);
            let name = if has { temporary_name("made") } else { temporary_name("other") };
            bench.write(&name, "ha");
            planned(&bench, "")
        }
        Code::StatusDisagrees => {
            let bench = stopped();
            if has {
                seal_says_otherwise(&bench);
            }
            planned(&bench, "")
        }
        Code::DoneWithUnfinishedDependency => {
            let bench = Bench::new(
                "  - id: g\n    steps:\n      - { id: a, run: 'LOG; false' }\n      \
                 - { id: b, run: LOG }\n      - { id: c, run: LOG }\n",
            );
            bench.exits("run w.yaml", 10);
            // What stands on a step that was tried is only compared again later.
            bench.exits(if has { "done g/c" } else { "done g/b" }, 0);
            planned(&bench, "")
        }
        Code::PhaseAheadOfEvidence => {
            let bench = Bench::new(
                "  - { id: a, run: 'LOG; false' }\n  - { id: b, run: LOG }\n  \
                 - { id: c, run: LOG }\n",
            );
            bench.exits("run w.yaml", 10);
            bench.exits(if has { "done c" } else { "done b" }, 0);
            planned(&bench, "")
        }
        Code::EntersAhead => {
            let bench = Bench::new(
                "  - { id: a, run: 'LOG; false' }\n  - { id: b, run: LOG }\n  \
                 - { id: c, run: LOG }\n",
            );
            bench.exits("run w.yaml", 10);
            stops_at(&bench, if has { "resume --from c" } else { "resume --from a" }, code)
        }
        Code::AllDoneNotDelivered => {
            let bench = Bench::new("  - { id: a, run: LOG }\n");
            bench.exits("run w.yaml", 0);
            if has {
                replace_in_journal(&bench, cut_last_line);
            }
            planned(&bench, "")
        }
        Code::RowsExceedEvents => World::Elsewhere(CHECKS, "rows-exceed-events"),
        Code::RowsMissing => World::Elsewhere(CHECKS, "rows-missing"),
        Code::BrokenLine => World::Elsewhere(CHECKS, "broken-line"),
        Code::BranchMismatch => {
            let bench = in_git();
            git(&bench, if has { "switch -q -c other" } else { "branch other" });
            planned(&bench, "")
        }
        Code::DirtyTree => {
            let bench = in_git();
            bench.write("c.txt", if has { "by hand\n" } else { "uncommitted\n" });
            planned(&bench, "")
        }
        Code::AttemptContested => {
            let bench = repo(HALF_DONE, DRAFT);
            let run = killed_half_way(&bench, Killed::All);
            if has {
                edit_by_hand(&bench, &run, "a.txt");
            }
            planned(&bench, "")
        }
        Code::MissingCommits => {
            let bench = in_git();
            git(&bench, if has { "reset -q --soft HEAD~1" } else { "reset -q --soft HEAD" });
            planned(&bench, "")
        }
        Code::UnexpectedCommits => {
            let bench = in_git();
            if has {
                git(&bench, "commit -q --allow-empty -m three");
            }
            planned(&bench, "")
        }
        Code::WorktreeMissing | Code::WorktreeDetached | Code::WorktreeMidRebase => {
            World::Elsewhere(TREES, CASE_10)
        }
        Code::EntersEarlier => {
            let bench = stopped();
            let later = now(&bench, 2 * 86_400_000);
            let from = if has { "b" } else { "c" };
            stops_at(&bench, &format!("resume --from {from} {later}"), code)
        }
        Code::TurnsUsedUp => {
            let bench = Bench::new(
                "  - id: l\n    repeat: { max: 1, until: \"{{ steps.a.stdout == 'x' }}\" }\n    \
                 steps: [{ id: a, run: LOG }]\n",
            );
            bench.exits("run w.yaml", 10);
            let text = bench.text("w.yaml");
            bench.write("w.yaml", &text.replace("max: 1", if has { "max: 1" } else { "max: 2" }));
            planned(&bench, "")
        }
        Code::StaleAge => {
            let bench = stopped();
            let days = if has { 8 } else { 6 };
            planned(&bench, &now(&bench, days * 86_400_000))
        }
        Code::ClockInFuture => {
            let bench = stopped();
            let minutes = if has { -6 } else { -4 };
            planned(&bench, &now(&bench, minutes * 60_000))
        }
        Code::ResumedRepeatedly => {
            let steps =
                (1..=4).map(|it| format!("  - {{ id: s{it}, run: 'LOG; test -e {it}' }}\n"));
            let bench = Bench::new(&steps.collect::<String>());
            bench.exits("run w.yaml", 10);
            resumed(&bench, if has { 3 } else { 2 }, |time| bench.write(&time.to_string(), ""))
        }
        Code::ResumesInVain => resumed(&stopped(), if has { 3 } else { 2 }, |_| {}),
        Code::BudgetElapsed => spent(if has { 1.0 } else { 0.99 }),
        Code::StillRunning => {
            let bench = Bench::new("  - { id: a, run: 'LOG; sleep 1000' }\n");
            let (mut engine, run) = bench.start_run();
            crate::bench::sees(&bench.path("ledger.txt"));
            if !has {
                engine.kill().unwrap();
            }
            let found = planned(&bench, &id(&run));
            engine.kill().unwrap();
            kill_all(&run);
            found
        }
        Code::OtherSessionLive => session_of_another(has),
        Code::SessionBusy => session_open_elsewhere(has),
        Code::OrphanProcess => {
            let bench = Bench::new("  - { id: a, run: 'LOG; setsid sleep 1000' }\n");
            let (run, _) = bench.run_and_kill(|_| !bench.ran("a").is_empty());
            if has {
                kill_supervisor(&run);
            } else {
                kill_all(&run);
            }
            let found = planned(&bench, "");
            kill_all(&run);
            found
        }
        Code::TornTail => {
            let bench = stopped();
            replace_in_journal(&bench, |text| {
                let half = &text[..text.find('\n').unwrap() / 2];
                if has { format!("{text}{half}") } else { text.to_owned() }
            });
            planned(&bench, "")
        }
        Code::JournalDamaged => {
            let bench = stopped();
            // The same flip in the last line could be a torn write.
            replace_in_journal(&bench, |text| {
                let word = "attempt.started";
                let flip = |text: &str| text.replacen(word, "attempt.startex", 1);
                if has { flip(text) } else { format!("{text}{}", &flip(text)[..9]) }
            });
            planned(&bench, "")
        }
        Code::ArtifactDamaged => {
            let bench = stopped();
            bench.write("a.txt", if has { "" } else { "by hand" });
            planned(&bench, "")
        }
        Code::LostTail => {
            let bench = stopped();
            let cut = |text: &str| match text.find("\"kind\":\"attempt.started\"") {
                Some(at) if has => text[..=text[..at].rfind('\n').unwrap()].to_owned(),
                Some(_) | None => text.to_owned(),
            };
            replace_in_journal(&bench, cut);
            planned(&bench, "")
        }
        Code::SealDamaged => {
            let bench = stopped();
            replace_in_journal(&bench, |text| {
                let at = text.find("\"kind\":\"attempt.finished\"").unwrap();
                text[..=text[..at].rfind('\n').unwrap()].to_owned()
            });
            let log = bench.project().runs().unwrap().remove(0).dir.join("exits.jsonl");
            let text = fs::read_to_string(&log).unwrap();
            fs::write(&log, if has { text.replacen("exited", "exitex", 1) } else { text }).unwrap();
            planned(&bench, "")
        }
        Code::WorkflowChanged => {
            let bench = stopped();
            let text = bench.text("w.yaml");
            let edit = if has { "{ id: a, description: first," } else { "{ id: a," };
            bench.write("w.yaml", &text.replace("{ id: a,", edit));
            planned(&bench, "")
        }
        Code::DefinitionTouchesDone => {
            let bench = stopped();
            let text = bench.text("w.yaml");
            let (was, is) =
                if has { ("echo a >", "echo A >") } else { ("test -e ok", "test -e OK") };
            bench.write("w.yaml", &text.replace(was, is));
            planned(&bench, "")
        }
        Code::ApprovalOutdated => {
            let bench = Bench::new(
                "  - { id: a, run: 'LOG; echo 1 > one', writes: [one] }\n\
                 \x20 - { id: ask, gate: Is it good?, shows: [one] }\n  - { id: b, run: LOG }\n",
            );
            bench.exits("run w.yaml", 11);
            bench.exits("approve", 0);
            bench.write("one", if has { "2\n" } else { "1\n" });
            planned(&bench, "")
        }
        Code::EffectUnknown => effect(if has { "" } else { ", probe: { run: test -e begun }" }),
        Code::AgentNotConfigured => {
            World::Elsewhere("onward/tests/foreign.rs", "warning   prerequisite-missing: agent")
        }
        Code::PrerequisiteMissing => {
            let bench = stopped();
            if !has {
                bench.write(".onward/config.toml", "[agents.amp]\ncommand = ['true']\n");
            }
            bench.write(
                "w.yaml",
                &(bench.text("w.yaml") + "  - { id: z, agent: amp, prompt: x }\n"),
            );
            planned(&bench, "")
        }
    }
}

/// Looks at every third code, so that the table is walked by three tests side by side.
fn walk(share: usize) {
    for code in Code::ALL.into_iter().skip(share).step_by(3) {
        let severity = format!("{:?}", code.severity()).to_lowercase();
        let finding = (code.as_str().to_owned(), severity);
        match (world(code, true), world(code, false)) {
            (World::Here(with), World::Here(without)) => {
                assert!(with.contains(&finding), "{code:?} is not in {with:?}");
                assert!(!without.contains(&finding), "{code:?} is in {without:?}");
            }
            (World::Elsewhere(file, test), _) | (_, World::Elsewhere(file, test)) => {
                let path = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
                let source = fs::read_to_string(PathBuf::from(path).join(file)).unwrap();
                assert!(source.contains(test), "{code:?}: no {test} in {file}");
                assert!(source.contains(code.as_str()), "{code:?} is not looked for in {file}");
            }
        }
    }
}

#[test]
fn the_first_third_of_the_codes_is_found_where_it_is_and_nowhere_else() {
    walk(0);
}

#[test]
fn the_second_third_of_the_codes_is_found_where_it_is_and_nowhere_else() {
    walk(1);
}

#[test]
fn the_last_third_of_the_codes_is_found_where_it_is_and_nowhere_else() {
    walk(2);
}
