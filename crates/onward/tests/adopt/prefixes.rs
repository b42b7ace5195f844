//! A finished log, cut after every line: each prefix resumes to a complete conference.

use crate::tea::{LOG, Tea};

/// Every third prefix, so that the three tests share the work.
#[track_caller]
fn every_third_prefix(first: usize) {
    let finished = Tea::finished();
    let lines = String::from_utf8_lossy(&finished[LOG]).lines().count();
    assert_eq!(lines, 18);
    for cut in (first..lines).step_by(3) {
        let told = format!("cut after {cut} of {lines} lines");
        let tea = Tea::left(&finished, cut);
        let log = tea.log();
        let code = tea.json("plan --json")["recovery_point"]["code"].clone();
        if code == "close" {
            // It is not logged that these outputs are the final ones.
            assert!(tea.exits("resume --yes --no-input", 16).err.contains("artifact-unproved"));
            assert_eq!((tea.log(), tea.runs().len()), (log, 0), "{told}");
            tea.exits("resume --accept artifact-unproved --no-input", 0);
        } else {
            tea.exits("resume --yes --no-input", 0);
            assert!(tea.log().starts_with(&log), "{told}");
            assert_eq!(tea.events()[cut], "conference.resumed", "{told}");
        }
        tea.is_whole(&told);
        assert_eq!(tea.runs().len(), 1, "{told}");
        tea.exits("resume --no-input", 17);
    }
}

#[test]
fn the_first_of_every_three_prefixes_resumes_to_a_whole_conference() {
    every_third_prefix(1);
}

#[test]
fn the_second_of_every_three_prefixes_resumes_to_a_whole_conference() {
    every_third_prefix(2);
}

#[test]
fn the_last_of_every_three_prefixes_resumes_to_a_whole_conference() {
    every_third_prefix(3);
}

#[test]
fn the_log_alone_is_enough_to_go_on() {
    let finished = Tea::finished();
    let tea = Tea::new();
    tea.set_log(&crate::tea::first_lines(&finished[LOG], 9));
    tea.exits("resume --yes --no-input", 0);
    tea.is_whole("the log alone");
    assert!(tea.calls().iter().all(|step| !step.starts_with("round[1]")), "{:?}", tea.calls());
}
