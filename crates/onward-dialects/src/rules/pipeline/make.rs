//! New tasks: the `[PERMANENT]` one, and the work of a phase.

use std::collections::BTreeMap;

use onward_core::told::Change;
use serde_json::{Value, json};

use crate::{
    Files,
    kit::edit::Sheet,
    pipeline::{Edit, MARK, Phase, Pipeline, Tier, key},
};

const HIGHWATERMARK: &str = ".highwatermark";

/// What a pipeline begins with.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    pub text: &'a str,
    /// As the user chose it; empty lets the lead's answer count.
    pub tier: &'a str,
    /// What the lead answered: a tier and a title.
    pub intake: &'a Value,
    pub branch: Option<&'a str>,
    /// The directory of the run that begins it.
    pub driver: &'a str,
}

/// The `[PERMANENT]` task of a list that has none.
pub fn open(files: &Files, request: &Request<'_>) -> Vec<Change> {
    let answered = |key: &str| request.intake.get(key).and_then(Value::as_str).unwrap_or_default();
    let tier = Tier::parse(request.tier).or_else(|| Tier::parse(answered("tier")));
    let tier = tier.unwrap_or(Tier::Standard).as_str();
    let first = request.text.lines().next().unwrap_or_default();
    let title = [answered("title"), first, "pipeline"].into_iter().find(|it| !it.trim().is_empty());
    let title: String = title.unwrap_or_default().trim().chars().take(200).collect();
    let id = Ids::of(files).next();
    let mut metadata = json!({});
    let pairs = [
        ("type", json!("permanent")),
        ("tier", json!(tier)),
        ("current_phase", json!("P0")),
        ("commit_status", json!("pending")),
        ("branch", json!(request.branch)),
        ("references", json!([])),
        ("user_directives", json!([])),
        ("phase_signals", json!({})),
        ("resume_count", json!(0)),
        (key::DRIVER, json!(request.driver)),
    ];
    for (key, value) in pairs.into_iter().filter(|(_, value)| !value.is_null()) {
        metadata[key] = value;
    }
    let description: String = format!("Tier {tier}. {}", request.text).chars().take(2000).collect();
    let task = New { id, subject: format!("{MARK} {title}"), description, metadata, after: vec![] };
    vec![task.change(&[], "in_progress")]
}

/// One task to be made.
struct New {
    id: u64,
    subject: String,
    description: String,
    metadata: Value,
    after: Vec<u64>,
}

impl New {
    fn change(&self, blocks: &[u64], status: &str) -> Change {
        let texts = |ids: &[u64]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut sheet = Sheet::new();
        sheet.set(&["id"], &json!(self.id.to_string()));
        sheet.set(&["subject"], &json!(self.subject));
        sheet.set(&["description"], &json!(self.description));
        sheet.set(&["activeForm"], &json!(format!("Working on: {}", self.subject)));
        sheet.set(&["status"], &json!(status));
        sheet.set(&["blocks"], &json!(texts(blocks)));
        sheet.set(&["blockedBy"], &json!(texts(&self.after)));
        for (key, value) in self.metadata.as_object().into_iter().flatten() {
            sheet.set(&["metadata", key], value);
        }
        Change::Replace { path: format!("{}.json", self.id), bytes: sheet.into_bytes() }
    }
}

/// Numbers that no task of the list has or had.
struct Ids(u64);

impl Ids {
    fn of(files: &Files) -> Self {
        let named = files.iter().filter_map(|(path, _)| path.strip_suffix(".json")?.parse().ok());
        let mark = files.bytes(HIGHWATERMARK).and_then(|it| std::str::from_utf8(it).ok());
        let mark: Option<u64> = mark.and_then(|it| it.trim().parse().ok());
        Self(named.chain(mark).max().unwrap_or(0))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.saturating_add(1);
        self.0
    }
}

/// What is planned for a phase: the entries of the lead's list, or what the phase always does.
struct Planned {
    key: String,
    subject: String,
    description: String,
    skill: String,
    files: Value,
    after: Vec<String>,
}

fn planned(phase: Phase, tier: Tier, breakdown: &Value) -> Vec<Planned> {
    let listed = breakdown.get("tasks").and_then(Value::as_array).cloned().unwrap_or_default();
    if phase == Phase::P6 && !listed.is_empty() {
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let entry = |it: &Value| Planned {
            key: text(it, "key"),
            subject: text(it, "subject"),
            description: text(it, "description"),
            skill: it["skill"].as_str().unwrap_or("execution-code").to_owned(),
            files: it.get("files").cloned().unwrap_or_else(|| json!([])),
            after: serde_json::from_value(it["after"].clone()).unwrap_or_default(),
        };
        return listed.iter().map(entry).collect();
    }
    // A small change takes one look before it.
    let count = if tier == Tier::Trivial { 1 } else { usize::MAX };
    let always = |skill: &&str| Planned {
        key: (*skill).to_owned(),
        subject: format!("{}: {}", phase.title(), skill.replace('-', " ")),
        description: String::new(),
        skill: (*skill).to_owned(),
        files: json!([]),
        after: Vec::new(),
    };
    phase.skills().iter().take(count).map(always).collect()
}

/// The tasks of a phase that has none. While they are written, the `[PERMANENT]` task says so: a
/// list that was cut short is finished, and one that another program wrote is left as it is.
pub fn tasks(pipeline: &Pipeline, phase: Phase, breakdown: &Value) -> Vec<Change> {
    let mut pointer = Edit::of(pipeline, pipeline.permanent_id());
    pointer.meta("current_phase", &json!(phase.as_str()));
    if pipeline.listing(phase).is_some() {
        return pointer.change().into_iter().collect();
    }
    let mut changes = Vec::new();
    let mut begun = Edit::of(pipeline, pipeline.permanent_id());
    begun.meta(key::LISTING, &json!(phase.as_str()));
    changes.extend(begun.change());
    let made: BTreeMap<&str, u64> = pipeline.made(phase).collect();
    let planned = planned(phase, pipeline.tier(), breakdown);
    let mut ids = Ids::of(pipeline.files());
    let numbers: BTreeMap<&str, u64> = planned
        .iter()
        .map(|it| {
            (it.key.as_str(), made.get(it.key.as_str()).copied().unwrap_or_else(|| ids.next()))
        })
        .collect();
    for it in planned.iter().filter(|it| !made.contains_key(it.key.as_str())) {
        let Some(id) = numbers.get(it.key.as_str()).copied() else { continue };
        let number = |key: &String| numbers.get(key.as_str()).copied().filter(|it| *it != id);
        let after: Vec<u64> = it.after.iter().filter_map(number).collect();
        let comes_after = |other: &&Planned| other.after.contains(&it.key) && other.key != it.key;
        let blocks = planned.iter().filter(comes_after).filter_map(|it| number(&it.key));
        let blocks: Vec<u64> = blocks.collect();
        let domain = it.skill.split('-').next().unwrap_or_default();
        let metadata = json!({"type": "work", "phase": phase.as_str(), "domain": domain,
            "skill": it.skill, "files": it.files, "parent": pipeline.permanent_id(),
            key::PLAN: it.key});
        let subject = it.subject.clone();
        let new = New { id, subject, description: it.description.clone(), metadata, after };
        changes.push(new.change(&blocks, "pending"));
    }
    if pipeline.files().contains(HIGHWATERMARK) {
        let bytes = ids.0.to_string().into_bytes();
        changes.push(Change::Replace { path: HIGHWATERMARK.to_owned(), bytes });
    }
    // Last: from here on the list is whole.
    pointer.forget(key::LISTING);
    changes.push(pointer.rewritten());
    changes
}
