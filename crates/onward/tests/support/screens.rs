//! `docs/screens`: what the program shows, without what is another at each run.

use std::fs;

/// Compares a screen with the one that is kept; `ONWARD_SCREENS=write` keeps it.
#[track_caller]
pub(crate) fn holds(name: &str, width: &str, text: &str) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/screens");
    let file = root.join(format!("{name}-{width}.txt"));
    if std::env::var_os("ONWARD_SCREENS").is_some_and(|it| it == "write") {
        fs::create_dir_all(&root).unwrap();
        fs::write(&file, text).unwrap();
    } else {
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(text, kept, "{}: ONWARD_SCREENS=write keeps it", file.display());
    }
}

/// What differs from run to run is told apart by its shape: ids, times, ages, digests.
pub(crate) fn masked(text: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "-:._".contains(letter);
    let mut all = String::new();
    let mut word = String::new();
    for letter in text.chars().chain(['\0']) {
        if is_word(letter) {
            word.push(letter);
            continue;
        }
        let (bare, colons) = word.split_at(word.trim_end_matches(':').len());
        all.push_str(mask(bare).as_deref().unwrap_or(bare));
        all.push_str(colons);
        word.clear();
        all.extend((letter != '\0').then_some(letter));
    }
    // The longest first: `59 s` ends in `9 s`.
    for seconds in (0..60).rev() {
        all = all.replace(&format!("{seconds} s ago"), "AGE ago");
    }
    all = all.replace("just now", "AGE ago");
    // How long a limit still holds.
    if let Some((before, after)) = all.split_once(" from now") {
        let before = before.rsplit_once(", ").map_or(before, |it| it.0);
        all = format!("{before}, SPAN from now{after}");
    }
    // The column is as wide as its head, whatever the age was.
    while all.contains("AGE ago   ") {
        all = all.replace("AGE ago   ", "AGE ago  ");
    }
    all
}

fn mask(word: &str) -> Option<String> {
    let hex = word.chars().all(|it| it.is_ascii_hexdigit());
    let date = word.strip_prefix("story-").filter(|it| it.len() == 13);
    if let Some((run, _)) = word.rsplit_once('_').filter(|it| it.0.starts_with("story-")) {
        return Some(format!("{}_STAMP", mask(run)?));
    }
    match word.len() {
        _ if date.is_some() => Some("story-ID".to_owned()),
        27 if word.starts_with("20") && word.ends_with('Z') => Some("TIME".to_owned()),
        32 | 12 if hex => Some("DIGEST".to_owned()),
        8 if is_clock(word, 2) => Some("TIME".to_owned()),
        5 if is_clock(word, 1) => Some("TIME".to_owned()),
        // How long something took.
        3 if word.as_bytes()[1] == b'.' => Some("0.0".to_owned()),
        8 if hex => Some("CRC".to_owned()),
        36 if word.matches('-').count() == 4 => Some("BOOT".to_owned()),
        _ => None,
    }
}

fn is_clock(word: &str, colons: usize) -> bool {
    word.matches(':').count() == colons && !word.contains(|it: char| it.is_ascii_alphabetic())
}
