//! A whole run in memory, by the rules alone. After each step the files are whole, calling it again
//! changes nothing, and the recovery point is what the decider would start.

use onward_core::told::{Change, Told};
use onward_dialects::{
    File, Files,
    dotagent::DOTAGENT,
    rules::dotagent::{Act, Refused, Scene, phases, plan, tasks},
    seam::Dialect,
};
use serde_json::{Value, json};

use crate::{
    builder::{built, line, now, site, task},
    rows,
    writes::resumed,
};

pub(crate) type Rule = fn(&Scene<'_>) -> Result<Act, Refused>;

/// Every rule with something to say.
pub(crate) const RULES: [Rule; 15] = [
    phases::open,
    |it| phases::demand(it, &json!({"goal": "x"})),
    |it| phases::approve(it, "REQUIREMENTS", &["a".to_owned()]),
    |it| phases::approve(it, "ARCHITECTURE", &[]),
    |it| phases::design(it, "a/b", &json!({"summary": "x"})),
    |it| phases::merged(it, &json!(["odd"])),
    plan::look,
    |it| plan::plan(it, &json!({"tasks": [{"id": "t1"}, {"id": "t1"}, {"id": 7}]})),
    |it| tasks::brief(it, "t1"),
    |it| tasks::output(it, "t1", &Value::Null, "crash"),
    |it| tasks::settle(it, "t1", &json!({"passed": false}), &Value::Null),
    |it| tasks::verified(it, "t1"),
    phases::begin_verification,
    |it| tasks::repair(it, &[]),
    |it| phases::reflection(it, &json!({"what_worked": []})),
];

/// The files after an act; what is moved takes the place of nothing.
pub(crate) fn applied(mut files: Files, act: &Act) -> Files {
    for (from, to) in &act.moves {
        let file = files.remove(from).unwrap();
        assert!(!files.contains(to), "{to} is there already");
        files.insert(to.clone(), file);
    }
    changed(files, &act.changes)
}

pub(crate) fn changed(mut files: Files, changes: &[Change]) -> Files {
    for change in changes {
        let Change::Replace { path, bytes } = change else { panic!("{change:?}") };
        if !path.contains("/.archive/") {
            let text = std::str::from_utf8(bytes).unwrap();
            assert_eq!(text.lines().count(), 1, "{path}: {text}");
            serde_json::from_str::<Value>(text).unwrap();
        }
        files.insert(path.clone(), File { bytes: bytes.clone(), modified: None });
    }
    files
}

fn told(files: &Files) -> Box<dyn Told> {
    DOTAGENT.read(&site(), files.clone()).unwrap()
}

/// Does it, twice, and gives the result and the recovery point.
fn step(files: &mut Files, rule: impl Fn(&Scene<'_>) -> Result<Act, Refused>) -> (Value, String) {
    let at =
        |files: &Files| rule(&Scene { files, at: now(), id: "dotagent-20260411-aaaa" }).unwrap();
    let act = at(files);
    // Cut short behind any change, it can be done again.
    for cut in 0..act.changes.len() {
        let partly = Act { changes: act.changes[..cut].to_vec(), ..act.clone() };
        let partly = applied(files.clone(), &partly);
        let whole = applied(partly.clone(), &at(&partly));
        assert_eq!(whole, applied(files.clone(), &act), "cut behind change {cut}");
    }
    *files = applied(files.clone(), &act);
    let again = at(files);
    assert!(again.changes.is_empty() && again.moves.is_empty(), "done twice: {again:#?}");
    rows::check_agreement(&site(), &*told(files));
    (act.result, line(&told(files).standing(now()).point))
}

/// Cut off behind any file, a resume that finds the final design finds the yes to it.
#[test]
fn a_yes_to_the_design_is_noted_before_the_design_is_final() {
    let asked = built("ARCHITECTURE").demand().approved();
    let files = asked.file("reports/merged_design.json", r#"{"contracts":[]}"#).files();
    let scene = Scene { files: &files, at: now(), id: "dotagent-20260411-aaaa" };
    let act = phases::approve(&scene, "ARCHITECTURE", &[]).unwrap();
    let is_final = |files: &Files| files.contains("memory/reports/final_design.json");
    let mut seen = 0;
    for cut in 0..=act.changes.len() {
        let partly = resumed(&changed(files.clone(), &act.changes[..cut]));
        if is_final(&partly) {
            let state = partly.bytes("memory/state/phase.json").unwrap();
            let state: Value = serde_json::from_slice(state).unwrap();
            let said = state["user_checkpoints"].as_array().unwrap().iter();
            assert!(said.map(|it| &it["phase"]).any(|it| it == "ARCHITECTURE"), "{cut}: {state:#}");
            seen += 1;
        }
    }
    assert!(seen >= 2, "{act:#?}");
}

/// Cut off behind any file, the run is over only when its checkpoint and the archive say so.
#[test]
fn the_reflection_is_the_last_file_of_a_run() {
    let files = built("REFLECTION").tasks(&[task("t1", "verified", 1)]).files();
    let scene = Scene { files: &files, at: now(), id: "dotagent-20260411-aaaa" };
    let act = phases::reflection(&scene, &json!({"what_worked": ["luck"]})).unwrap();
    for cut in 0..act.changes.len() {
        let partly = changed(files.clone(), &act.changes[..cut]);
        let point = told(&partly).standing(now()).point;
        assert_eq!(line(&point), "reflection REFLECTION reflection", "{cut}");
    }
    let whole = changed(files.clone(), &act.changes);
    assert_eq!(told(&whole).standing(now()).point.code, "complete");
}

#[test]
fn each_step_of_a_whole_run_leaves_files_from_which_the_next_one_is_found() {
    let mut files = Files::default();
    let names = ["fast".to_owned(), "safe way".to_owned()];
    let good = json!({"passed": true, "failures": []});
    let bad = json!({"passed": false, "failures": ["the door is open"]});
    let ready = json!({"status": "pre_complete", "summary": "done"});
    let f = &mut files;
    let point = |it: (Value, String)| it.1;
    assert_eq!(point(step(f, phases::open)), "requirements REQUIREMENTS requirements");
    let demand = json!({"goal": "x"});
    assert_eq!(point(step(f, |it| phases::demand(it, &demand))), "approval REQUIREMENTS approve");
    let said = step(f, |it| phases::approve(it, "REQUIREMENTS", &names));
    assert_eq!(point(said), "architects ARCHITECTURE architects");
    let design = json!({"summary": "y"});
    let one = step(f, |it| phases::design(it, "fast", &design));
    assert_eq!(point(one), "architects ARCHITECTURE architects", "one of two");
    let both = step(f, |it| phases::design(it, "safe way", &design));
    assert_eq!(point(both), "roundtable ARCHITECTURE roundtable");
    let merged = json!({"contracts": [{"name": "door", "used_by": ["t1", "t2"]}],
        "execution_plan": {"tasks": [{"id": "t2", "summary": "b", "uses": ["door"]},
            {"id": "t1", "summary": "a", "provides": ["door"]}]}});
    let merged = step(f, |it| phases::merged(it, &merged));
    assert_eq!(point(merged), "roundtable ARCHITECTURE approve-design");
    let said = step(f, |it| phases::approve(it, "ARCHITECTURE", &[]));
    assert_eq!(point(said), "implementation IMPLEMENTATION plan");
    let looked = step(f, plan::look).0;
    let (planned, at) = step(f, |it| plan::plan(it, &looked));
    assert_eq!(at, "implementation IMPLEMENTATION implementation[t1]", "contracts first");
    assert_eq!(planned["tasks"][0]["depends_on"], json!(["t1"]));
    assert!(f.contains("memory/contracts/door.json"));
    let t1 = "implementation IMPLEMENTATION implementation[t1]";
    assert_eq!(point(step(f, |it| tasks::brief(it, "t1"))), t1);
    let blocked = json!({"status": "blocked", "summary": "which door"});
    assert_eq!(point(step(f, |it| tasks::output(it, "t1", &blocked, "done"))), t1);
    let resolution = json!({"contract": "door", "definition": {"spec": "oak"}, "note": "oak"});
    let settled = step(f, |it| tasks::settle(it, "t1", &Value::Null, &resolution));
    assert_eq!(settled, (json!({"over": false}), t1.to_owned()));
    let text = step(f, |it| tasks::brief(it, "t1")).0["text"].as_str().unwrap().to_owned();
    assert!(text.contains("try 2") && text.contains("oak"), "{text}");
    step(f, |it| tasks::output(it, "t1", &ready, "done"));
    assert_eq!(step(f, |it| tasks::settle(it, "t1", &good, &Value::Null)).0, json!({"over": true}));
    assert_eq!(
        point(step(f, |it| tasks::verified(it, "t1"))),
        "implementation IMPLEMENTATION implementation[t2]"
    );
    step(f, |it| tasks::brief(it, "t2"));
    step(f, |it| tasks::output(it, "t2", &Value::Null, "timeout"));
    step(f, |it| tasks::settle(it, "t2", &Value::Null, &Value::Null));
    step(f, |it| tasks::brief(it, "t2"));
    step(f, |it| tasks::output(it, "t2", &ready, "done"));
    step(f, |it| tasks::settle(it, "t2", &bad, &Value::Null));
    let text = step(f, |it| tasks::brief(it, "t2")).0["text"].as_str().unwrap().to_owned();
    assert!(text.contains("try 3") && text.contains("the door is open"), "{text}");
    step(f, |it| tasks::output(it, "t2", &ready, "done"));
    assert_eq!(
        point(step(f, |it| tasks::verified(it, "t2"))),
        "verification VERIFICATION verification"
    );
    let verification = "verification VERIFICATION verification";
    assert_eq!(point(step(f, phases::begin_verification)), verification);
    let repair = "implementation IMPLEMENTATION repair";
    assert_eq!(point(step(f, |it| phases::verdict(it, &bad))), repair);
    let begun = step(f, |it| tasks::repair(it, &[]));
    assert_eq!(begun.1, repair);
    assert!(begun.0["text"].as_str().unwrap().contains("the door is open"));
    assert_eq!(point(step(f, |it| tasks::mended(it, "repair-1", &ready, "done"))), verification);
    assert_eq!(point(step(f, |it| phases::verdict(it, &good))), "reflection REFLECTION reflection");
    let page = json!({"what_worked": ["oak"]});
    assert_eq!(point(step(f, |it| phases::reflection(it, &page))), "complete -");
}

#[test]
fn the_fourth_try_is_a_persons_decision_and_the_report_says_why() {
    let mut files = Files::default();
    let plan = json!({"tasks": [{"id": "t1", "summary": "a"}]});
    step(&mut files, phases::open);
    step(&mut files, |it| plan::plan(it, &plan));
    for classes in [("complexity", "scope_reduction"), ("transient", "simple_retry")] {
        let (class, strategy) = classes;
        let failed = json!({"status": "failed", "summary": "no", "failure_class": class});
        step(&mut files, |it| tasks::brief(it, "t1"));
        step(&mut files, |it| tasks::output(it, "t1", &failed, "done"));
        step(&mut files, |it| tasks::settle(it, "t1", &Value::Null, &Value::Null));
        let told: Value =
            serde_json::from_slice(files.bytes("memory/state/execution.json").unwrap()).unwrap();
        assert_eq!(told["tasks"][0]["retry_strategy"], strategy);
    }
    step(&mut files, |it| tasks::brief(it, "t1"));
    step(&mut files, |it| tasks::output(it, "t1", &Value::Null, "crash"));
    let scene = Scene { files: &files, at: now(), id: "r" };
    let refused = tasks::settle(&scene, "t1", &Value::Null, &Value::Null).unwrap_err();
    let files = changed(files.clone(), &refused.changes);
    let told: Value =
        serde_json::from_slice(files.bytes("memory/state/execution.json").unwrap()).unwrap();
    assert_eq!(told["tasks"][0]["status"], "failed");
    assert_eq!((&told["attempts_made"], told["recovery_attempted"].is_array()), (&3.into(), true));
    let told = self::told(&files);
    assert!(told.findings(now()).iter().any(|it| it.code == "attempts-used-up"));
}

/// Cut off between the verdict and the end of its try, a task begins the next one as it would have.
#[test]
fn a_verdict_whose_try_was_not_ended_is_no_less_heeded() {
    let mut files = Files::default();
    step(&mut files, phases::open);
    step(&mut files, |it| plan::plan(it, &json!({"tasks": [{"id": "t1", "summary": "a"}]})));
    step(&mut files, |it| tasks::brief(it, "t1"));
    let ready = json!({"status": "pre_complete", "summary": "done"});
    step(&mut files, |it| tasks::output(it, "t1", &ready, "done"));
    let bad = json!({"passed": false, "failures": ["the door is open"]});
    let scene = Scene { files: &files, at: now(), id: "dotagent-20260411-aaaa" };
    let act = tasks::settle(&scene, "t1", &bad, &Value::Null).unwrap();
    let ended = |mut files: Files| {
        let text = step(&mut files, |it| tasks::brief(it, "t1")).0["text"].clone();
        (text, files)
    };
    let whole = ended(changed(files.clone(), &act.changes));
    for cut in 1..act.changes.len() {
        assert_eq!(ended(changed(files.clone(), &act.changes[..cut])), whole, "{cut}");
    }
    assert!(whole.0.as_str().unwrap().contains("the door is open"), "{whole:?}");
}
