//! What is asked before a resume, and that every way of answering, or of not answering, ends well.

use std::path::PathBuf;

use crate::{
    bench::{Bench, id, journal, watched},
    repo::{HALF_DONE, Killed, edit_by_hand, killed_half_way, repo},
    terminal::Terminal,
};

/// The third step fails until the file `ok` is there.
const CHAIN: &str = "
  - { id: a, run: 'LOG; echo a > a.txt', writes: [a.txt] }
  - { id: b, run: 'LOG; cat a.txt source > b.txt', reads: [source], writes: [b.txt] }
  - { id: c, run: 'LOG; test -e ok' }
";
const MENU: &str = "What now? [RESUME/point/restart/cancel] ";
const MENU_WITH_STEPS: &str = "What now? [RESUME/point/steps/restart/cancel] ";
/// Something blocks: the Return key chooses nothing.
const MENU_THAT_BLOCKS: &str = "What now? [resume/point/steps/restart/cancel] ";

fn stopped() -> (Bench, PathBuf) {
    let bench = Bench::new(CHAIN);
    bench.write("source", "one\n");
    bench.exits("run w.yaml", 10);
    bench.write("ok", "");
    let run = bench.project().runs().unwrap().remove(0).dir;
    (bench, run)
}

fn ran(bench: &Bench) -> String {
    bench.text("ledger.txt").split_whitespace().step_by(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_return_key_resumes_as_planned() {
    let (bench, run) = stopped();
    let mut terminal = Terminal::start(&bench, "resume");
    terminal.shows("2 steps kept, 1 to run again · continues at c, which failed");
    terminal.shows("resume   continue as planned: keep 2, rerun 1");
    terminal.shows(MENU);
    terminal.types("\n");
    terminal.exits(0);
    assert_eq!(ran(&bench), "a b c c");
    bench.is_proved(&run);
}

#[test]
fn what_blocks_is_gone_over_by_the_word_in_full_only() {
    let bench = repo(HALF_DONE, "  - { id: draft, agent: claude, prompt: x, writes: [made.o] }\n");
    let run = killed_half_way(&bench, Killed::All);
    edit_by_hand(&bench, &run, "a.txt");
    let mut terminal = Terminal::start(&bench, "resume");
    terminal.shows("Continuing accepts dirty-tree");
    terminal.shows("Type \"resume\" to continue.");
    for typed in ["\n", "r\n"] {
        terminal.shows(MENU_THAT_BLOCKS);
        terminal.types(typed);
    }
    terminal.shows(MENU_THAT_BLOCKS);
    terminal.types("resume\n");
    terminal.exits(0);
    assert_eq!(bench.text("a.txt"), "by hand\n");
}

#[test]
fn another_point_is_listed_with_what_it_means_and_planned_before_it_is_entered() {
    let (bench, _) = stopped();
    let mut terminal = Terminal::start(&bench, "resume");
    terminal.shows(MENU);
    terminal.types("point\n");
    terminal.shows("1. a  repeats 2 done steps");
    terminal.shows("2. b  repeats 1 done step");
    terminal.shows("3. c  nothing repeated, nothing skipped");
    terminal.shows("Return goes back) ");
    terminal.types("nowhere\n");
    terminal.shows("Return goes back) ");
    terminal.types("\n");
    terminal.shows(MENU);
    terminal.types("2\n");
    terminal.shows("Return goes back) ");
    terminal.types("b\n");
    terminal.shows("rerun     b");
    terminal.shows("enters-earlier: entering at b runs 1 step that is done again");
    terminal.shows(MENU);
    terminal.types("resume\n");
    terminal.exits(0);
    assert_eq!(ran(&bench), "a b c b c");
    assert!(bench.exits("log --json", 0).out.contains("\"from b\""));
}

#[test]
fn a_later_point_names_what_it_passes_over_and_wants_a_second_word() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; false' }\n  - { id: b, run: LOG }\n  - { id: c, run: LOG }\n",
    );
    bench.exits("run w.yaml", 10);
    let mut terminal = Terminal::start(&bench, "resume");
    for (sure, next) in [("\n", MENU), ("yes\n", "skip      a")] {
        terminal.shows(MENU);
        terminal.types("point\n");
        terminal.shows("3. c  skips 2 unfinished steps");
        terminal.types("3\n");
        terminal.shows("That skips 2 unfinished steps before c. Continue there? [NO/yes] ");
        terminal.types(sure);
        if next != MENU {
            terminal.shows(next);
        }
    }
    terminal.shows(MENU);
    terminal.types("resume\n");
    terminal.exits(0);
    assert_eq!(ran(&bench), "a c");
}

#[test]
fn restart_makes_a_new_run_of_the_same_inputs_and_ends_the_old_one_with_its_files() {
    let bench = Bench::new("");
    let steps = "  - { id: a, run: 'LOG; echo {{ inputs.topic }} > a', writes: [a] }\n\
        \x20 - { id: b, run: 'LOG; test -e ok' }\n";
    bench.workflow("w.yaml", "inputs: { topic: { type: string } }\nsteps:", steps);
    bench.exits("run w.yaml --input topic=winter", 10);
    let old = bench.project().runs().unwrap().remove(0).dir;
    bench.write("ok", "");
    bench.write("a", "by hand\n");
    let mut terminal = Terminal::start(&bench, "resume");
    terminal.shows("restart  start over as a new run; this one is cancelled, files stay");
    terminal.types("restart\n");
    terminal.shows(&format!("run {} was cancelled; its files stay", id(&old)));
    terminal.exits(0);
    assert_eq!(ran(&bench), "a b a b");
    assert_eq!(bench.text("a"), "winter\n");
    let status = |run: &str| bench.exits(&format!("status --json {run}"), 0).json();
    assert_eq!(status(&id(&old))["run"]["status"], "cancelled");
    assert!(journal(&old).contains("started over as a new run"), "{}", journal(&old));
    let runs = bench.project().runs().unwrap();
    assert_eq!(runs.len(), 2);
    let new = runs.into_iter().find(|it| it.dir != old).unwrap();
    assert_eq!(status(new.id.as_str())["run"]["status"], "completed");
    bench.exits("resume", 17);
}

#[test]
fn a_restart_takes_half_done_edits_out_of_the_tree_first() {
    let steps = "  - { id: draft, agent: claude, prompt: write, writes: [made.o] }\n";
    let bench = repo(HALF_DONE, steps);
    let run = killed_half_way(&bench, Killed::All);
    assert_eq!(bench.text("a.txt"), "half\n");
    // The scripted agent is half-way again in its first attempt; that it starts is enough.
    let mut engine = bench.start(&format!("run --again {}", id(&run)));
    crate::bench::sees(&bench.path(".git/half"));
    engine.kill().unwrap();
    let rescued = std::fs::read_to_string(run.join("rescue/1-draft/files/a.txt")).unwrap();
    assert_eq!(rescued, "half\n");
    let ended = watched(&run).records.iter().any(|it| it.event.kind() == "run.ended");
    assert!(ended, "{}", journal(&run));
    for run in bench.project().runs().unwrap() {
        crate::bench::kill_all(&run.dir);
    }
}

#[test]
fn cancel_leaves_everything_as_it_is_unless_the_end_is_wanted() {
    let (bench, run) = stopped();
    let before = journal(&run);
    for (word, code) in [("leave\n", 0), ("cancel\n", 10)] {
        let mut terminal = Terminal::start(&bench, "resume");
        terminal.shows(MENU);
        terminal.types("cancel\n");
        terminal.shows("or cancel the run for good? [LEAVE/cancel] ");
        terminal.types(word);
        let shown = terminal.exits(code);
        if code == 0 {
            let last = format!("nothing was done\nonward resume {}\n", id(&run));
            assert!(shown.ends_with(&last), "{shown}");
            assert_eq!(journal(&run), before);
        }
    }
    assert!(journal(&run).contains("\"status\":\"cancelled\""));
    assert_eq!((ran(&bench).as_str(), bench.text("a.txt").as_str()), ("a b c", "a\n"));
}

#[test]
fn what_became_stale_is_told_by_phases_and_decided_step_by_step() {
    for (answer, expected) in [("run", "a b c b c"), ("keep", "a b c c")] {
        let (bench, _) = stopped();
        bench.write("source", "two\n");
        let mut terminal = Terminal::start(&bench, "resume");
        terminal.shows("Partly recoverable");
        terminal.shows("stays valid a");
        terminal.shows("runs again  b");
        terminal.shows("continues   c");
        terminal.shows("Suggestion: continue (1 step kept, 1 done step to run again");
        terminal.shows("decide about single steps: 1 question");
        terminal.shows(MENU_WITH_STEPS);
        terminal.types("steps\n");
        terminal.shows("b runs again: source changed");
        terminal.shows("[RUN/keep] ");
        terminal.types(&format!("{answer}\n"));
        if answer == "keep" {
            terminal.shows("source changed; it is kept, as asked");
        }
        terminal.shows("What now? ");
        terminal.types("resume\n");
        terminal.exits(0);
        assert_eq!(ran(&bench), expected);
    }
}

#[test]
fn what_somebody_improved_is_kept_or_made_again_as_the_person_says() {
    for (answer, expected, text) in [("", "a b c b c", "mine\n"), ("run", "a b c a c", "a\n")] {
        let (bench, _) = stopped();
        bench.write("a.txt", "mine\n");
        let mut terminal = Terminal::start(&bench, "resume");
        terminal.shows(MENU_WITH_STEPS);
        terminal.types("steps\n");
        terminal.shows("a is kept: ");
        terminal.shows("[KEEP/run] ");
        terminal.types(&format!("{answer}\n"));
        terminal.shows("What now? ");
        terminal.types("resume\n");
        terminal.exits(0);
        // Made again and come out as before, it leaves what stands on it alone.
        assert_eq!((ran(&bench).as_str(), bench.text("a.txt").as_str()), (expected, text));
    }
}

#[test]
fn half_done_edits_are_undone_or_left_as_the_person_says() {
    let steps = "  - { id: draft, agent: claude, prompt: write, writes: [made.o] }\n";
    for (answer, text) in [("undo", "a\n"), ("leave", "half\n")] {
        let bench = repo(HALF_DONE, steps);
        killed_half_way(&bench, Killed::All);
        let mut terminal = Terminal::start(&bench, "resume");
        terminal.shows(MENU_WITH_STEPS);
        terminal.types("steps\n");
        terminal.shows("draft left half-done work in a.txt, b.txt, link, made.o");
        terminal.shows("[UNDO/leave] ");
        terminal.types(&format!("{answer}\n"));
        terminal.shows("What now? ");
        terminal.types("resume\n");
        terminal.exits(0);
        assert_eq!(bench.text("a.txt"), text);
    }
}

#[test]
fn paths_that_somebody_changed_are_asked_about_by_their_names() {
    let steps = "  - { id: draft, agent: claude, prompt: write, writes: [made.o] }\n";
    let bench = repo(HALF_DONE, steps);
    let run = killed_half_way(&bench, Killed::All);
    edit_by_hand(&bench, &run, "a.txt");
    let mut terminal = Terminal::start(&bench, "resume");
    terminal.shows("Continuing accepts dirty-tree: draft: killed, and the same files");
    terminal.shows(MENU_THAT_BLOCKS);
    terminal.types("steps\n");
    terminal.shows("a.txt");
    terminal.shows("continue  nothing is undone; draft runs again on top");
    terminal.shows("[STOP/continue] ");
    terminal.types("continue\n");
    terminal.shows("rerun     draft");
    // It was settled, and blocks no more.
    terminal.shows("accepted  dirty-tree");
    terminal.shows("What now? ");
    terminal.types("resume\n");
    terminal.exits(0);
    assert_eq!(bench.text("a.txt"), "by hand\n");
    assert!(journal(&run).contains("dirty-tree@draft"));
}

#[test]
fn preflight_compares_everything_and_wants_its_word_in_full() {
    let bench = Bench::new(
        "  - { id: a, run: 'LOG; echo a > a.txt', writes: [a.txt], check: 'test -e fine' }\n\
         \x20 - { id: b, run: 'LOG; test -e ok', reads: [source] }\n",
    );
    bench.write("fine", "");
    bench.exits("run w.yaml", 10);
    bench.write("ok", "");
    std::fs::remove_file(bench.path("fine")).unwrap();
    let mut terminal = Terminal::start(&bench, "resume --mode preflight");
    terminal.shows("its check does not agree any more");
    terminal.shows("Compared");
    terminal.shows("status-disagrees   the check of a");
    terminal.shows("same               a.txt of a");
    terminal.shows("Risks");
    terminal.shows("continuing accepts 1 finding");
    terminal.shows("[proceed/point/steps/restart/cancel] ");
    for not_yet in ["\n", "p\n", "1\n", "yes\n"] {
        terminal.types(not_yet);
        terminal.shows("What now? [proceed/");
    }
    assert_eq!(ran(&bench), "a b");
    bench.write("fine", "");
    terminal.types("proceed\n");
    terminal.exits(0);
    assert_eq!(ran(&bench), "a b b", "by then the check agreed again");
}

#[test]
fn a_run_keeps_the_mode_it_was_started_in() {
    let bench = Bench::new("  - { id: a, run: 'LOG; test -e ok' }\n");
    bench.exits("run w.yaml --mode autopilot", 10);
    bench.write("ok", "");
    Terminal::start(&bench, "resume").exits(0);
    assert_eq!(ran(&bench), "a a", "nothing stood in the way, so the user was not asked");
}

/// Up to a question: what is typed, and what is then asked.
type Road = &'static [(&'static str, &'static str)];

#[test]
fn whoever_leaves_a_question_leaves_everything_as_it_was() {
    let roads: [Road; 6] = [
        &[("", MENU_WITH_STEPS)],
        &[("", MENU_WITH_STEPS), ("point\n", "Return goes back) ")],
        &[("", MENU_WITH_STEPS), ("point\n", "goes back) "), ("d\n", "there? [NO/yes] ")],
        &[("", MENU_WITH_STEPS), ("steps\n", "[RUN/keep] ")],
        &[("", MENU_WITH_STEPS), ("cancel\n", "[LEAVE/cancel] ")],
        &[("", MENU_WITH_STEPS), ("steps\n", "[RUN/keep] "), ("keep\n", "What now? ")],
    ];
    let bench = Bench::new(&format!("{CHAIN}  - {{ id: d, run: LOG }}\n"));
    bench.write("source", "one\n");
    bench.exits("run w.yaml", 10);
    bench.write("source", "two\n");
    let run = bench.project().runs().unwrap().remove(0).dir;
    let before = journal(&run);
    for road in roads {
        for (left_by, code) in [("\x04", 16), ("\x03", 130)] {
            let mut terminal = Terminal::start(&bench, "resume");
            for (typed, question) in road {
                terminal.types(typed);
                terminal.shows(question);
            }
            terminal.types(left_by);
            let shown = terminal.exits(code);
            let command = format!("onward resume {}", id(&run));
            // What was chosen before the question is part of the command that answers it.
            let keeps = road.iter().any(|(typed, _)| *typed == "keep\n");
            let chosen = if keeps { " --keep b" } else { "" };
            let last = match code {
                16 => format!("then `{command}{chosen} --yes`"),
                _ => format!("nothing was done {command}"),
            };
            // A long line is wrapped between words.
            let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.ends_with(&last), "{road:?}: {shown}");
            assert_eq!(journal(&run), before, "{road:?}");
        }
    }
    assert_eq!(ran(&bench), "a b c");
}

#[test]
fn whoever_leaves_the_choice_among_runs_leaves_them_all() {
    let bench = Bench::new("  - { id: one, run: 'LOG; false' }\n");
    bench.exits("run w.yaml", 10);
    bench.exits("run w.yaml", 10);
    for (left_by, code, last) in
        [("\x04", 16, "or use `--all`\n"), ("\x03", 130, "nothing was done\nonward resume\n")]
    {
        let mut terminal = Terminal::start(&bench, "resume");
        terminal.shows("Which one? [1-2] ");
        terminal.types(left_by);
        let shown = terminal.exits(code);
        assert!(shown.ends_with(last), "{shown}");
    }
    assert_eq!(bench.ran("one"), [1, 1]);
}

#[test]
fn off_a_terminal_the_same_words_are_on_stderr_and_nothing_hangs() {
    let (bench, run) = stopped();
    bench.write("source", "two\n");
    let later = "--now 2099-01-01T00:00:00Z";
    for arguments in [format!("resume {later}"), format!("resume {later} --mode preflight")] {
        let said = bench.exits(&arguments, 16);
        for text in ["Partly recoverable", "stays valid a", "runs again  b", "onward run --again"] {
            assert!(said.err.contains(text), "{text}: {said:?}");
        }
    }
    let said = bench.exits(&format!("resume {later} --json"), 16);
    assert!(!said.err.contains("Partly") && said.out.contains("onward.error/1"), "{said:?}");
    // Damaged: the reasons, and three ways out.
    let damaged = journal(&run).replacen("attempt.started", "attempt.startex", 1);
    std::fs::write(run.join("journal.jsonl"), damaged).unwrap();
    for mut said in [bench.exits("resume", 15).err, Terminal::start(&bench, "resume").exits(15)] {
        said = said.replace(&id(&run), "ID");
        for text in [
            "ID cannot be resumed yet:\n  journal-damaged: line 2",
            "onward repair",
            "start over; all files stay:\n    onward run --again ID",
            "clean up and end it:\n    onward repair ID --yes && onward cancel ID && onward ",
        ] {
            assert!(said.contains(text), "{text}: {said}");
        }
    }
    bench.exits(&format!("cancel {}", id(&run)), 15);
    // The first way out is one: the damaged run stays, and the new one comes to its end.
    let said = bench.exits(&format!("run --again {}", id(&run)), 0);
    assert!(said.err.contains("stays as it is: its journal is damaged"), "{said:?}");
    // And so is the last.
    for command in ["repair ID --yes", "cancel ID", "archive ID"] {
        bench.exits(&command.replace("ID", &id(&run)), 0);
    }
}

#[test]
fn a_run_that_nobody_can_accept_to_go_on_names_its_reasons_and_the_ways_out() {
    let bench = Bench::new("  - { id: a, run: LOG }\n  - { id: b, run: 'LOG; false' }\n");
    bench.exits("run w.yaml", 10);
    let text = bench.text("w.yaml") + "  - { id: z, agent: amp, prompt: x }\n";
    bench.write("w.yaml", &text);
    let run = bench.project().runs().unwrap().remove(0).dir;
    let before = journal(&run);
    for said in [bench.exits("resume --yes", 16).err, Terminal::start(&bench, "resume").exits(16)] {
        let said = said.replace(&id(&run), "ID");
        for text in [
            "ID cannot be resumed yet:\n  prerequisite-missing: agent `amp` has no command\n",
            "put `agents.amp.command = [\"PROGRAM\", \"{prompt}\"]` at the top of \
             .onward/config.toml",
            "stays valid a",
            "onward run --again ID",
            "continue where it stopped:\n    onward resume ID\n",
            "onward resume ID --from a",
            "onward cancel ID && onward archive ID",
        ] {
            assert!(said.contains(text), "{text}: {said}");
        }
    }
    assert_eq!(journal(&run), before);
    // Cleaning up and leaving needs no agent.
    bench.exits(&format!("cancel {}", id(&run)), 0);
}

#[test]
fn a_run_in_flight_is_cancelled_with_its_half_done_work_in_the_rescue() {
    let steps = "  - { id: draft, agent: claude, prompt: write, writes: [made.o] }\n";
    let bench = repo(HALF_DONE, steps);
    let before = crate::repo::tree(&bench);
    let run = killed_half_way(&bench, Killed::All);
    bench.exits(&format!("cancel {}", id(&run)), 0);
    assert_eq!(crate::repo::tree(&bench), before);
    assert!(journal(&run).contains("cancelled by a person"));
    crate::bench::sees_nobody_left(&run);
    bench.exits(&format!("archive {}", id(&run)), 0);
}
