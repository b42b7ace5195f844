//! Whatever the files hold, they are read, and the law of the recovery point holds.

use onward_dialects::{File, sdlc::SDLC, seam::Dialect};
use proptest::{prelude::*, sample::Index};

use crate::{
    builder::{LOOP, STATE, now, project, story_text},
    rows,
};

const STATUSES: [&str; 8] =
    ["Draft", "Ready", "In Progress", "Ready for Review", "Done", "Blocked", "?", ""];
const WORDS: [&str; 8] =
    ["pending", "in_progress", "completed", "failed", "blocked", "skipped", "in_review", "x"];

fn junk() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[a-z_0-9:\\[\\]{}\"' .\\n|*#-]{0,120}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn junk_is_read_and_the_recovery_point_agrees(
        statuses in prop::collection::vec(prop::sample::select(STATUSES.to_vec()), 6),
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 4),
        verdicts in prop::collection::vec(
            prop::sample::select(vec!["-", "approved", "rejected"]), 2),
        turns in prop::collection::vec(
            prop::sample::select(vec!["-", "REJECT", "REJECT+", "APPROVE", "BLOCKED"]), 0..6),
        current in 0_u32..7,
        phase in prop::sample::select(vec!["1", "2", "3", "4", "6_checkpoint", "x"]),
        spoiled in prop::collection::btree_map(0_usize..9, junk(), 0..3),
        cuts in prop::collection::vec(any::<(Index, Index)>(), 0..3),
    ) {
        let first = format!("3.1={}", words[0]);
        let second = format!("3.2={}", words[1]);
        let third = format!("3.3={}", words[2]);
        let mut built = project()
            .state(phase)
            .qa(current, &turns.join(" "))
            .epic(current, &[
                ("completed", verdicts[0], &[first.as_str()]),
                ("in_progress", verdicts[1], &[second.as_str(), third.as_str()]),
            ])
            .file("docs/specs/login/requirements.json", "{}")
            .file("docs/specs/login/spec.md", "# x\n\ny\n");
        for (id, status) in ["2.1", "3.1", "3.2", "3.3", "4.2", "9.9"].iter().zip(&statuses) {
            let text = story_text(id, status) + "\n## Dependencies\n\n3.2 3.3\n";
            built = built.file(&format!("docs/stories/{id}.story.md"), text);
        }
        let paths = [STATE, LOOP, ".aiox/epic-3-state.yaml", "docs/stories/2.1.story.md",
            "docs/stories/3.2.story.md", "docs/specs/login/complexity.json",
            "docs/qa/gates/4.2-x.yml", ".aiox/locks/x.lock", "docs/epics/e/EXECUTION.yaml"];
        for (index, bytes) in spoiled {
            built = built.file(paths[index], String::from_utf8_lossy(&bytes).into_owned());
        }
        for (which, at) in cuts {
            let all: Vec<String> = built.files.keys().cloned().collect();
            let entry = built.files.get_mut(&all[which.index(all.len())]).unwrap();
            let mut end = at.index(entry.0.len() + 1);
            while !entry.0.is_char_boundary(end) { end -= 1; }
            entry.0.truncate(end);
        }
        for site in built.sites() {
            let told = SDLC.read(&site, built.files()).unwrap();
            rows::check_agreement(&site, &*told);
            for finding in told.findings(now()) {
                prop_assert!(!finding.message.is_empty());
            }
            let _ = SDLC.site(".", site.workflow, &site.inputs);
        }
    }

    #[test]
    fn any_bytes_in_any_place_are_no_panic(
        files in prop::collection::btree_map(prop::sample::select(vec![
            STATE, LOOP, "docs/stories/4.2.story.md", ".aiox/epic-3-state.yaml",
            ".aiox/epic-3-state.yaml.bak", "docs/specs/a/critique.yml"]), junk(), 0..5),
    ) {
        let mut built = project();
        for (path, bytes) in files {
            built = built.file(path, String::from_utf8_lossy(&bytes).into_owned());
        }
        for site in built.sites() {
            let told = SDLC.read(&site, built.files()).unwrap();
            rows::check_agreement(&site, &*told);
        }
        let mut raw = built.files();
        let file = File { bytes: vec![0xff, 0, 0xfe], modified: None };
        raw.insert("docs/stories/4.2.story.md", file);
        for site in built.sites() {
            let _ = SDLC.read(&site, raw.clone());
        }
    }
}
