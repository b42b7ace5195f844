//! Whatever the files hold, they are read, and the law of the recovery point holds.

use onward_core::told::Told;
use onward_dialects::{File, dotagent::DOTAGENT, rules::dotagent::Scene, seam::Dialect};
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use crate::{
    builder::{PHASES, built, now, site, task},
    rows, walk, writes,
};

fn junk() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        any_json().prop_map(|it| it.to_string().into_bytes()),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z0-9_./-]{0,12}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "tasks",
        "id",
        "status",
        "output",
        "attempts",
        "phase",
        "current_phase",
        "depends_on",
        "completed_phases",
        "user_checkpoints",
        "workflow_id",
        "last_updated",
        "verdict",
    ]);
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(String::from), inner, 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

const PATHS: [&str; 10] = [
    "memory/state/phase.json",
    "memory/state/execution.json",
    "memory/state/phase.json.tmp",
    "memory/reports/demand.json",
    "memory/reports/final_design.json",
    "memory/reports/designs/a.json",
    "memory/reports/verification.json",
    "memory/reflections/r.json",
    "memory/tasks/t1/output.json",
    "memory/tasks/t1/verification.json",
];

const STATUSES: &str = "pending|running|pre_complete|blocked|failed|verified|x";

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn junk_is_read_and_the_recovery_point_agrees(
        phase in prop::sample::select(PHASES.to_vec()),
        statuses in prop::collection::vec((STATUSES, 0_usize..5), 0..5),
        attempts in 0_u32..5,
        spoiled in prop::collection::btree_map(prop::sample::select(PATHS.to_vec()), junk(), 0..4),
        cuts in prop::collection::vec(any::<(Index, Index)>(), 0..3),
    ) {
        let entry = |(index, (status, after)): (usize, &(String, usize))| {
            let mut entry = task(&format!("t{index}"), status, attempts);
            entry["depends_on"] = json!([format!("t{after}")]);
            entry
        };
        let tasks: Vec<Value> = statuses.iter().enumerate().map(entry).collect();
        let built = built(phase).demand().tasks(&tasks).output("t1", "pre_complete");
        let mut files = built.files();
        for (path, bytes) in spoiled {
            files.insert(path, File { bytes, modified: None });
        }
        for (which, at) in cuts {
            let all: Vec<String> = files.iter().map(|(path, _)| path.to_owned()).collect();
            let path = &all[which.index(all.len())];
            let mut file = files.remove(path).unwrap();
            if !file.bytes.is_empty() {
                file.bytes.truncate(at.index(file.bytes.len()));
            }
            files.insert(path.clone(), file);
        }
        let told = DOTAGENT.read(&site(), files.clone()).unwrap();
        rows::check_agreement(&site(), &*told);
        // A resume writes whole files and re-enters at the same place.
        let after = writes::resumed(&files);
        let again = DOTAGENT.read(&site(), after.clone()).unwrap();
        rows::check_agreement(&site(), &*again);
        let point = |told: &dyn Told| told.standing(now()).point;
        prop_assert_eq!(point(&*again).code, point(&*told).code);
        for rule in walk::RULES {
            let scene = Scene { files: &after, at: now(), id: "run" };
            if let Ok(act) = rule(&scene) {
                walk::applied(after.clone(), &act);
            }
        }
        for finding in told.findings(now()) {
            prop_assert!(!finding.message.is_empty());
        }
    }
}
