//! Killed at one event of the native log, in a run of its own for every event there is.

use std::collections::BTreeMap;

use crate::{
    bench::kill_all,
    leash::{Leash, Share},
    tea::{Contents, LOG, Tea},
};

/// What the conference came to: its events and tables without times and in no order, its pages.
fn left(contents: &Contents) -> BTreeMap<String, Vec<String>> {
    let of = |(name, bytes): (&String, &Vec<u8>)| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let mut lines: Vec<String> = match name.as_str() {
            LOG => text.lines().filter_map(payload).collect(),
            name if name.ends_with("_results.tsv") => text.lines().map(without_last_cell).collect(),
            _ => text.lines().map(str::to_owned).collect(),
        };
        // Two researchers write at a time.
        lines.sort_unstable();
        (name.clone(), lines)
    };
    contents.iter().filter(|(name, _)| !name.ends_with("_log.md")).map(of).collect()
}

/// An event without its time; nothing for the line of a resume.
fn payload(line: &str) -> Option<String> {
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    (event["event"] != "conference.resumed")
        .then(|| format!("{} {}", event["event"], event["payload"]))
}

fn without_last_cell(line: &str) -> String {
    line.rsplit_once('\t').map_or("", |(cells, _)| cells).to_owned()
}

/// Everything dies as soon as the log has so many lines; a resume brings it to its end.
#[track_caller]
fn killed_at(event: usize, wanted: &BTreeMap<String, Vec<String>>) {
    let told = format!("killed at event {event}");
    let tea = Tea::new();
    let mut engine = Leash::start(&mut tea.command("run conference --no-input"));
    let log = tea.dir().join(LOG);
    let lines = || std::fs::read(&log).unwrap_or_default().split(|byte| *byte == b'\n').count() - 1;
    assert!(engine.until(|| lines() >= event), "{told}: {}", engine.last);
    engine.kill();
    let [run] = tea.runs().try_into().unwrap();
    kill_all(&run);
    let seen = lines();
    // Two researchers write at a time, and the engine starts nothing more unseen.
    assert!(seen <= event + 1, "{told}, with {seen} lines");
    let said = tea.onward("resume --yes --no-input");
    // The last line may have been followed by the end of the run, with nothing left to resume.
    let is_over = said.code == 17 && seen == wanted[LOG].len();
    assert!(said.code == 0 || is_over, "{told}, with {seen} lines: {said:#?}");
    tea.is_whole(&told);
    let found = left(&tea.contents());
    for (name, lines) in wanted {
        assert_eq!(found.get(name), Some(lines), "{told}: {name}");
    }
    assert!(found.keys().eq(wanted.keys()), "{told}: {:?}", found.keys());
    assert_eq!(tea.runs().len(), 1, "{told}");
}

#[track_caller]
fn killed_at_each(share: Share) {
    let finished = Tea::finished();
    let wanted = left(&finished);
    let events = wanted[LOG].len();
    assert_eq!(events, 18);
    for event in (1..=events).filter(|event| share.takes(*event)) {
        killed_at(event, &wanted);
    }
}

#[test]
fn a_conference_killed_at_any_event_ends_with_the_same_files_odd() {
    killed_at_each(Share::Odd);
}

#[test]
fn a_conference_killed_at_any_event_ends_with_the_same_files_even() {
    killed_at_each(Share::Even);
}
