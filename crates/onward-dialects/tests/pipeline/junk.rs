//! Whatever a list holds, it is read, and the law of the recovery point holds.

use onward_core::time::Timestamp;
use onward_dialects::{
    File, Files, Git,
    pipeline::PIPELINE,
    seam::{Candidate, Dialect, Glimpse, Listing},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    builder::{at, built, now, site},
    rows,
};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "P[0-9]|completed|pending|in_progress|[0-9]{1,2}|execution-code|PASS\\|x"
            .prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "id",
        "subject",
        "status",
        "blockedBy",
        "metadata",
        "phase",
        "skill",
        "files",
        "tier",
        "current_phase",
        "phase_signals",
        "error",
        "commit",
        "branch",
        "resume_count",
        "p0",
        "p6",
    ]);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(String::from), inner, 0..5)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

fn script() -> impl Strategy<Value = String> {
    let word = ("P[0-8]|x", "[+~!-]");
    prop::collection::vec(word, 0..10).prop_map(|words| {
        let word = |(index, (phase, sign)): (usize, &(String, String))| {
            format!("{phase}:{}{sign}", index + 2)
        };
        words.iter().enumerate().map(word).collect::<Vec<String>>().join(" ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn junk_is_read_and_the_recovery_point_agrees(
        tier in "TRIVIAL|STANDARD|COMPLEX|",
        script in script(),
        current in "P[0-8]|",
        blockers in prop::collection::vec((2_u32..12, 1_u32..14), 0..8),
        signals in prop::collection::vec(0_u32..8, 0..4),
        changed in prop::collection::vec((2_u32..12, 20_u32..40), 0..4),
        spoiled in prop::collection::btree_map(2_u32..14, any_json(), 0..3),
        torn in prop::collection::btree_map(2_u32..14, any::<[u8; 20]>(), 0..2),
        mark in "[0-9]{0,2}|x",
        committed in any::<bool>(),
    ) {
        let passed: serde_json::Map<String, Value> =
            signals.iter().map(|it| (format!("p{it}"), json!("PASS|n:1"))).collect();
        let mut list = built(&tier, &script)
            .meta("current_phase", json!(current))
            .meta("phase_signals", Value::Object(passed))
            .own(".highwatermark", &mark);
        if committed && script.len() > 30 {
            list = list.meta("commit_status", json!("committed"));
        }
        for (id, by) in blockers {
            if let Some(task) = list.tasks.get_mut(&id.to_string()) {
                task["blockedBy"].as_array_mut().unwrap().push(json!(by.to_string()));
            }
        }
        for (id, minute) in changed {
            if let Some(task) = list.tasks.get_mut(&id.to_string()) {
                let path = format!("src/{}.ts", id / 2);
                task["metadata"]["files"] = json!([path]);
                list.project.insert(path, at(minute));
            }
        }
        let mut files = list.files();
        for (id, value) in spoiled {
            let bytes = value.to_string().into_bytes();
            files.insert(format!("{id}.json"), File { bytes, modified: Some(at(25)) });
        }
        for (id, bytes) in torn {
            let file = File { bytes: bytes.to_vec(), modified: None };
            files.insert(format!("{id}.json"), file);
        }
        let told = PIPELINE.read(&site(), files).unwrap();
        rows::check_agreement(&site(), &*told);
        for finding in told.findings(now()) {
            prop_assert!(!finding.message.contains('\n'), "{}", finding.message);
        }
        prop_assert!(told.page("l1").is_some());
    }

    #[test]
    fn a_list_cut_anywhere_is_read(cut in any::<prop::sample::Index>(), id in 1_u32..5) {
        let list = built("STANDARD", "P0:2+ P1:3~ P1:4-").blocked("4", &["3"]);
        let mut files = list.files();
        let path = format!("{id}.json");
        let mut file = files.remove(&path).unwrap();
        file.bytes.truncate(cut.index(file.bytes.len()));
        files.insert(path, file);
        // Without its own task there is no pipeline.
        match PIPELINE.read(&site(), files) {
            Ok(told) => {
                rows::check_agreement(&site(), &*told);
            }
            Err(missing) => prop_assert_eq!(missing.dialect, "pipeline"),
        }
    }

    #[test]
    fn junk_is_listed(bytes in prop::collection::vec(any::<u8>(), 0..60), value in any_json()) {
        let glimpse = |bytes: Vec<u8>| Glimpse { modified: None, bytes: Some(bytes) };
        let marks = [
            ("1.json".to_owned(), glimpse(bytes)),
            ("2.json".to_owned(), glimpse(value.to_string().into_bytes())),
        ];
        let candidates = vec![Candidate { dir: "/t/x".into(), marks: marks.into() }];
        let _ = PIPELINE.sites(&Listing { candidates, ..Listing::default() });
        let mut files = Files::default();
        files.git = Some(Git::default());
        let bytes = value.to_string().into_bytes();
        files.insert("1.json", File { bytes, modified: Some(Timestamp::MAX) });
        let _ = PIPELINE.read(&site(), files).map(|it| it.findings(now()));
    }
}
