//! An agent with a session of its own, killed in the middle of its edits: it goes on in its session
//! and over its edits, or, where that cannot be, starts over in a clean tree.

use std::{fs, path::PathBuf};

use onward_core::event::Event;

use crate::{
    bench::{Bench, journal, kill_all, sees, watched},
    repo::{Killed, edit_by_hand, git, killed_half_way, repo, rescued, tree},
};

const STEPS: &str = "  - id: draft\n    agent: claude\n    prompt: write it\n    writes: [made.o]\n\
    \x20 - { id: last, run: LOG }\n";

/// Keeps a transcript outside the tree, as agents do; the first time it is killed half-way.
const AGENT: &str = "\
    mode=$1 transcript=$2 prompt=$3\n\
    echo \"$mode: $prompt\" >> \"$transcript\"\n\
    case $mode in\n\
    new)\n\
      if [ $ONWARD_ATTEMPT = 1 ]; then echo half > a.txt; rm b.txt; half; fi\n\
      cat \"$ONWARD_BRIEF\" > brief.txt; echo anew >> a.txt; echo anew > made.o;;\n\
    on)\n\
      cat \"$ONWARD_BRIEF\" > brief.txt; echo rest >> a.txt\n\
      if [ -e .git/again ]; then rm .git/again; half; fi\n\
      echo whole > made.o;;\n\
    esac\n";

pub(crate) struct Desk {
    pub(crate) bench: Bench,
    transcripts: PathBuf,
    _outside: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let begins = "command = ['sh', 'agent.sh', 'new', 'PLACE/{session}.log', '{prompt}']";
        Self::with(AGENT, begins)
    }

    /// Its agent chooses the id of a session itself.
    fn telling(agent: &str) -> Self {
        let begins = "command = ['sh', 'agent.sh', 'new', '/dev/null', '{prompt}']";
        Self::with(agent, &format!("adapter = 'lines'\n{begins}"))
    }

    fn with(agent: &str, begins: &str) -> Self {
        let bench = repo(agent, STEPS);
        let outside = tempfile::TempDir::new().unwrap();
        let transcripts = fs::canonicalize(outside.path()).unwrap();
        let goes_on = "continue = ['sh', 'agent.sh', 'on', 'PLACE/{session}.log', '{prompt}']\n\
            transcript = 'PLACE/{session}.log'\n";
        let config = format!("[agents.claude]\n{begins}\n{goes_on}");
        bench.write(".onward/config.toml", &config.replace("PLACE", transcripts.to_str().unwrap()));
        Self { bench, transcripts, _outside: outside }
    }

    /// What each session was told, the modes only.
    fn told(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.transcripts).unwrap().flatten();
        let texts = entries.map(|it| fs::read_to_string(it.path()).unwrap());
        let modes = |text: String| {
            let lines = text.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned()));
            lines.filter(|mode| mode == "new" || mode == "on").collect::<Vec<_>>().join(" ")
        };
        let mut all: Vec<String> = texts.map(modes).collect();
        all.sort_unstable();
        all
    }

    fn lose_transcripts(&self) {
        for entry in fs::read_dir(&self.transcripts).unwrap().flatten() {
            fs::remove_file(entry.path()).unwrap();
        }
    }

    /// Verdict of the step and the words for its reasons.
    #[track_caller]
    fn plans(&self, run: &std::path::Path, verdict: &str, causes: &[&str]) {
        let plan = self.bench.plan(run);
        let step = &plan["steps"][0];
        assert_eq!(step["verdict"], verdict, "{plan:#}");
        let why = step["why"].as_array().unwrap().iter();
        let found: Vec<&str> = why.map(|it| it["cause"].as_str().unwrap()).collect();
        assert_eq!(found, causes, "{plan:#}");
    }
}

#[test]
fn an_agent_killed_in_mid_edit_goes_on_in_its_session_and_over_its_edits() {
    let desk = Desk::new();
    let bench = &desk.bench;
    let run = killed_half_way(bench, Killed::All);
    desk.plans(&run, "continue", &["session-dirty"]);
    assert_eq!(bench.plan(&run)["reverts"].as_array().unwrap().len(), 0);
    bench.exits("resume", 0);
    assert_eq!([bench.text("a.txt"), bench.text("made.o")], ["half\nrest\n", "whole\n"]);
    assert!(!bench.path("b.txt").exists(), "what it had done stays done");
    assert_eq!((bench.ran("draft"), desk.told()), (vec![1, 2], vec!["new on".to_owned()]));
    let brief = bench.text("brief.txt");
    assert!(brief.contains("Its session is continued, and what it changed is still"), "{brief}");
    let told = fs::read_to_string(
        fs::read_dir(&desk.transcripts).unwrap().next().unwrap().unwrap().path(),
    );
    let told = told.unwrap();
    assert!(told.contains("on: You were interrupted") && told.ends_with("write it\n"), "{told}");
    let journal = journal(&run);
    assert!(journal.contains("\"rung\":\"session-dirty\""), "{journal}");
    assert!(journal.contains("\"continues\":true"), "{journal}");
    bench.is_proved(&run);
    // Both attempts are one footprint: what the first changed is the second's as well.
    let finished = watched(&run).records.into_iter().find_map(|it| {
        let Event::AttemptFinished(finished) = it.event else { return None };
        (finished.step.as_str() == "draft").then_some(finished.footprint)
    });
    let footprint = finished.unwrap();
    assert!(footprint.contains(&"b.txt".to_owned()), "{footprint:?}");
}

/// The program chooses the id, and tells it in the second in which its driver dies.
#[test]
fn a_session_that_was_told_to_no_driver_goes_on_all_the_same() {
    let desk = Desk::telling(&format!("{AGENT}echo '{{\"answer\":\"written\"}}'\n"));
    let bench = &desk.bench;
    let run = killed_half_way(bench, Killed::All);
    desk.plans(&run, "rerun", &["died-dirty"]);
    fs::write(run.join("out/draft.1.out"), "{\"session\":\"told-1\"}\n").unwrap();
    desk.plans(&run, "rerun", &["died-dirty", "session"]);
    fs::write(desk.transcripts.join("told-1.log"), "x\n").unwrap();
    desk.plans(&run, "continue", &["session-dirty"]);
    bench.exits("resume", 0);
    assert_eq!([bench.text("a.txt"), bench.text("made.o")], ["half\nrest\n", "whole\n"]);
    let journal = journal(&run);
    assert!(journal.contains("\"session\":\"told-1\""), "{journal}");
    assert!(journal.contains("\"continues\":true"), "{journal}");
    bench.is_proved(&run);
}

#[test]
fn without_its_transcript_it_begins_anew_in_a_clean_tree_and_is_told_so() {
    let desk = Desk::new();
    let bench = &desk.bench;
    let before = tree(bench);
    let run = killed_half_way(bench, Killed::All);
    desk.lose_transcripts();
    desk.plans(&run, "rerun", &["died-dirty", "session"]);
    bench.exits("resume", 0);
    assert_eq!([bench.text("a.txt"), bench.text("b.txt")], ["a\nanew\n", "b\n"]);
    assert_eq!(desk.told(), ["new"], "another session");
    assert!(bench.text("brief.txt").contains("What it changed was undone:\n- a.txt\n- b.txt\n"));
    let journal = journal(&run);
    let why = "its transcript is not there";
    assert!(journal.contains(why) && journal.contains("\"rung\":\"died-dirty\""), "{journal}");
    assert_eq!(rescued(&run, 1).note.paths.len(), 2);
    bench.is_proved(&run);
    fs::remove_file(bench.path("brief.txt")).unwrap();
    git(bench, "checkout a.txt");
    assert_eq!(tree(bench), before);
}

#[test]
fn a_session_that_is_old_or_was_asked_something_else_is_not_continued() {
    let desk = Desk::new();
    let bench = &desk.bench;
    let run = killed_half_way(bench, Killed::All);
    desk.plans(&run, "continue", &["session-dirty"]);
    let later = bench.exits("plan --json --now 2099-01-01T00:00:00Z", 0).json();
    let why = later["steps"][0]["why"][1]["detail"].as_str().unwrap();
    assert!(why.ends_with("its transcript is more than a day old"), "{why}");
    let text = bench.text("w.yaml");
    bench.write("w.yaml", &text.replace("write it", "write something else"));
    let why = bench.plan(&run)["steps"][0]["why"][1]["detail"].clone();
    assert!(why.as_str().unwrap().ends_with("definition.prompt is another one now"), "{why}");
    bench.write("w.yaml", &text);
    bench.write(".onward/config.toml", "[agents.claude]\ncommand = ['sh', 'agent.sh', 'new']\n");
    let why = bench.plan(&run)["steps"][0]["why"][1]["detail"].clone();
    assert!(why.as_str().unwrap().ends_with("nothing says how to continue it"), "{why}");
}

#[test]
fn what_a_person_edited_since_is_asked_about_whatever_the_session_knows() {
    let desk = Desk::new();
    let run = killed_half_way(&desk.bench, Killed::All);
    edit_by_hand(&desk.bench, &run, "a.txt");
    desk.bench.exits("resume", 16);
    assert_eq!(desk.bench.text("a.txt"), "by hand\n");
}

#[test]
fn a_continued_session_that_is_killed_too_goes_on_again_or_is_undone_whole() {
    for again in [true, false] {
        let desk = Desk::new();
        let bench = &desk.bench;
        let run = killed_half_way(bench, Killed::All);
        bench.write(".git/again", "");
        let mut engine = bench.start("resume");
        sees(&bench.path(".git/half"));
        engine.kill().unwrap();
        kill_all(&run);
        if again {
            desk.plans(&run, "continue", &["session-dirty"]);
            bench.exits("resume", 0);
            assert_eq!(bench.text("a.txt"), "half\nrest\nrest\n");
            assert_eq!(desk.told(), ["new on on"]);
        } else {
            desk.lose_transcripts();
            bench.exits("resume", 0);
            // What the first attempt did is undone with what the second one did.
            assert_eq!([bench.text("a.txt"), bench.text("b.txt")], ["a\nanew\n", "b\n"]);
            assert_eq!(desk.told(), ["new"]);
        }
        bench.is_proved(&run);
    }
}
