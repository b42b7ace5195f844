//! What nothing proves goes to the rescue first, and an undo that a crash cut short is finished.

use std::fs;

use onward_core::{event::Event, journal::decode_line};

use crate::tea::{Contents, LOG, Tea, contents, first_lines};

/// A round 2 of which only the start is logged, with the files of the whole conference around it.
const CUT: usize = 10;

/// Everything that the resume undid, from the rescues of its only run.
fn rescued(tea: &Tea) -> Contents {
    let [run] = tea.runs().try_into().unwrap();
    let mut all = Contents::new();
    for rescue in fs::read_dir(run.join("rescue")).unwrap().map(Result::unwrap) {
        let files = rescue.path().join("files/talks/tea");
        if files.is_dir() {
            all.extend(contents(&files));
        }
    }
    all
}

#[test]
fn unproved_rows_and_pages_are_in_the_rescue_and_proved_files_are_untouched() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, CUT);
    // The last row of researcher A is not there: it was caught in the middle of an iteration.
    let mut rows = finished["researcher_A_results.tsv"].clone();
    let last = rows[..rows.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    rows.truncate(last + 1);
    rows.extend_from_slice(b"9\t99\t-\t-\treverted\tnobody logged it\te\t2026-01-01T00:00:00Z\n");
    fs::write(tea.dir().join("researcher_A_results.tsv"), &rows).unwrap();
    let mut engine = tea.held_at("round[2]/poster/draft", "resume --yes");
    let now = tea.contents();
    engine.kill().unwrap();
    engine.wait().unwrap();
    let kept = rescued(&tea);
    assert_eq!(kept["researcher_A_results.tsv"], rows);
    for page in ["poster_session_round_2.md", "peer_review_round_2.md", "synthesis.md"] {
        assert_eq!(kept[page], finished[page], "{page}");
        assert!(!now.contains_key(page), "{page}");
    }
    for file in ["conference.md", "poster_session_round_1.md", "peer_review_round_1.md"] {
        assert_eq!(now[file], finished[file], "{file}");
    }
    assert!(!String::from_utf8_lossy(&now["researcher_A_results.tsv"]).contains("nobody logged"));
    tea.let_go();
}

#[test]
fn an_undo_that_a_crash_cut_short_is_finished_by_the_next_resume() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, CUT);
    let before = tea.contents();
    tea.exits("resume --yes --no-input", 0);
    let kept = rescued(&tea);
    // Back to the moment after the announcement: nothing was started, half of it is undone.
    let [run] = tea.runs().try_into().unwrap();
    let journal = tea.journal();
    let lines: Vec<&str> = journal.lines().collect();
    let resumed =
        |line: &&str| matches!(decode_line(line.as_bytes()).unwrap().event, Event::RunResumed(_));
    let end = lines.iter().position(resumed).unwrap();
    fs::write(run.join("journal.jsonl"), lines[..=end].join("\n") + "\n").unwrap();
    for trace in ["exits.jsonl", "supervisor"] {
        let _ = fs::remove_file(run.join(trace));
    }
    fs::remove_dir_all(run.join("out")).unwrap();
    for name in tea.contents().keys() {
        fs::remove_file(tea.dir().join(name)).unwrap();
    }
    for (name, bytes) in &before {
        fs::write(tea.dir().join(name), bytes).unwrap();
    }
    tea.set_log(&first_lines(&finished[LOG], CUT));
    fs::remove_file(tea.dir().join("poster_session_round_2.md")).unwrap();
    let mut engine = tea.held_at("round[2]/poster/draft", "resume --yes");
    let now = tea.contents();
    engine.kill().unwrap();
    engine.wait().unwrap();
    for page in ["poster_session_round_2.md", "peer_review_round_2.md", "synthesis.md"] {
        assert!(!now.contains_key(page), "{page}");
        assert_eq!(rescued(&tea)[page], kept[page], "{page}");
    }
    tea.let_go();
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole("half undone");
}

#[test]
fn a_file_that_a_person_changed_after_the_crash_is_not_lost() {
    let finished = Tea::finished();
    let tea = Tea::left(&finished, CUT);
    let mine = b"# Poster 2\n\nWritten by hand.\n";
    fs::write(tea.dir().join("poster_session_round_2.md"), mine).unwrap();
    tea.exits("resume --yes --no-input", 0);
    assert_eq!(rescued(&tea)["poster_session_round_2.md"], mine);
}
