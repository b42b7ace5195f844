//! An epic: waves of stories, by its state file and its plan.
//!
//! Invariant: which wave is next follows from the stories and the verdicts, never from
//! `current_wave`; a wave that is called completed without a good verdict is not over.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{
    qa::Verdict,
    state,
    status::{Says, Status, words},
    story::{Story, bare, is_same},
};
use crate::kit::json::{Object, Oddities};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Epic {
    pub id: String,
    pub mode: Option<String>,
    pub word: Option<String>,
    /// What `current_wave` says.
    pub pointer: Option<u32>,
    pub waves: BTreeMap<u32, Wave>,
    pub final_verdict: Option<Verdict>,
    /// The wave whose checkpoint waits for an answer.
    pub awaits: bool,
    pub plan_path: Option<String>,
    pub started_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wave {
    pub name: String,
    pub word: Option<String>,
    pub tag: Option<String>,
    /// In the order of the plan, or else of the state.
    pub stories: Vec<Member>,
    pub order: Vec<String>,
    pub verdict: Option<Verdict>,
    /// A person answered its checkpoint.
    pub decision: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub id: String,
    pub says: Says,
    /// The word in the state, where it is no status.
    pub odd: Option<String>,
    /// Stories of the epic that come first.
    pub after: Vec<String>,
    /// Its file as the plan names it.
    pub file: Option<String>,
    /// Not in the state: the plan has it since.
    pub is_new: bool,
    pub branch: Option<String>,
}

const WAVES_MAX: u32 = 1000;

impl Epic {
    /// `None` when the map is no state of an epic.
    pub fn read(map: &Map<String, Value>, path: &str, odd: &Oddities) -> Option<Self> {
        let inner = map.get("epic_state").and_then(Value::as_object)?;
        let it = Object { map: inner, path, odd };
        let mut epic = Self {
            id: ["epicId", "epic_id", "id"].iter().find_map(|key| it.text(key)).unwrap_or_default(),
            mode: it.text("mode"),
            word: it.text("status"),
            pointer: it.count("current_wave"),
            awaits: state::awaits(&Value::Object(inner.clone())),
            // `""` stands for none.
            plan_path: it.text("execution_plan").filter(|path| !path.is_empty()),
            started_at: it.moment_or_day("started_at"),
            updated_at: it.moment_or_day("updated_at"),
            ..Self::default()
        };
        for (name, value) in numbered(inner.get("waves")) {
            let Some(wave) = value.as_object() else { continue };
            let wave = Object { map: wave, path, odd };
            let stories = named(wave.get("stories"));
            let decision = wave.object("checkpoint").and_then(|it| it.text("decision"));
            epic.waves.insert(
                name,
                Wave {
                    name: wave.text("name").unwrap_or_default(),
                    word: wave.text("status"),
                    tag: wave.text("tag"),
                    stories: stories.into_iter().map(|(id, it)| member(&id, it)).collect(),
                    order: Vec::new(),
                    verdict: None,
                    decision,
                },
            );
        }
        let verdicts = inner.get("gate_verdicts").and_then(Value::as_object);
        for (name, value) in verdicts.into_iter().flatten() {
            let verdict = ["status", "verdict"].iter().find_map(|key| value.get(*key)?.as_str());
            let verdict = verdict.or(value.as_str()).and_then(Verdict::of);
            match name.parse().ok().and_then(|it: u32| epic.waves.get_mut(&it)) {
                Some(wave) => wave.verdict = verdict,
                None if name.contains("final") => epic.final_verdict = verdict,
                None => {}
            }
        }
        let last = inner.get("final_gate").and_then(|it| it.get("status")?.as_str());
        epic.final_verdict = epic.final_verdict.or(last.and_then(Verdict::of));
        Some(epic)
    }

    /// Adds what the plan says: order, what comes first, stories that the state does not know yet.
    pub fn planned(&mut self, plan: &Map<String, Value>) {
        let Some(plan) = plan.get("execution").and_then(Value::as_object).or(Some(plan)) else {
            return;
        };
        if self.id.is_empty() {
            let id = ["epicId", "epic_id"].iter().find_map(|key| plan.get(*key)?.as_str());
            id.unwrap_or_default().clone_into(&mut self.id);
        }
        let stories = plan.get("stories").and_then(Value::as_object);
        let base = plan.get("storyBasePath").and_then(Value::as_str).unwrap_or_default();
        for (number, value) in numbered(plan.get("waves")) {
            let Some(told) = value.as_object() else { continue };
            let is_known = self.waves.contains_key(&number);
            let wave = self.waves.entry(number).or_default();
            let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
            if wave.name.is_empty() {
                wave.name = text("name").unwrap_or_default();
            }
            wave.tag = wave.tag.take().or_else(|| text("tag"));
            let ids = ids(told.get("stories"));
            for id in &ids {
                if !wave.stories.iter().any(|it| is_same(&it.id, id)) {
                    let is_new = is_known && !wave.stories.is_empty();
                    wave.stories.push(Member { is_new, ..Member::new(id) });
                }
            }
            let place = |id: &str| ids.iter().position(|it| is_same(it, id)).unwrap_or(usize::MAX);
            wave.stories.sort_by_key(|it| place(&it.id));
            let merge = told.get("merge").and_then(|it| it.get("order"));
            wave.order = self::ids(merge);
        }
        let all = self.waves.values_mut().flat_map(|it| &mut it.stories);
        for member in all {
            let told = stories.into_iter().flatten().find(|(id, _)| is_same(id, &member.id));
            let Some(told) = told.and_then(|(_, it)| it.as_object()) else { continue };
            let after =
                ["dependencies", "depends_on", "dependsOn"].iter().find_map(|it| told.get(*it));
            member.after = ids(after);
            let file = told.get("file").and_then(Value::as_str);
            member.file = file.map(|file| match base {
                "" => file.to_owned(),
                _ if file.starts_with(base) => file.to_owned(),
                _ => format!("{}/{file}", base.trim_end_matches('/')),
            });
        }
    }

    /// Keeps of what comes first only stories of the epic, adds what the stories themselves say
    /// where the plan is silent, and breaks circles.
    pub fn settle(&mut self, stories: &[Story]) {
        let mut before: BTreeSet<String> = BTreeSet::new();
        for wave in self.waves.values_mut() {
            let own: BTreeSet<String> = wave.stories.iter().map(|it| bare(&it.id)).collect();
            for member in &mut wave.stories {
                if member.after.is_empty()
                    && let Some(story) = stories.iter().find(|it| is_same(&it.id, &member.id))
                {
                    member.after.clone_from(&story.after);
                }
                let name = bare(&member.id);
                let is_near = |id: &str| own.contains(id) || before.contains(id);
                member.after.retain(|it| is_near(&bare(it)) && bare(it) != name);
            }
            let within = |it: &Member| -> Vec<String> {
                it.after.iter().filter(|it| own.contains(&bare(it))).map(|it| bare(it)).collect()
            };
            let entries: Vec<(String, Vec<String>)> =
                wave.stories.iter().map(|it| (bare(&it.id), within(it))).collect();
            let borrowed = entries.iter().map(|(id, after)| (id.as_str(), after.as_slice()));
            if crate::kit::order::is_circular(borrowed) {
                for member in &mut wave.stories {
                    member.after.retain(|it| before.contains(&bare(it)));
                }
            }
            before.extend(own);
        }
    }

    pub fn is_over(&self) -> bool {
        let word = self.word.as_deref().map(|it| words(it).concat()).unwrap_or_default();
        matches!(word.as_str(), "completed" | "complete" | "done")
    }

    pub fn is_aborted(&self) -> bool {
        let word = self.word.as_deref().map(|it| words(it).concat()).unwrap_or_default();
        matches!(word.as_str(), "aborted" | "cancelled" | "abort")
    }

    /// The first wave that is not over, and what it lacks.
    pub fn next(&self, story: &dyn Fn(&str) -> Option<Status>) -> Next {
        if self.is_over() {
            return Next::Over;
        }
        for (number, wave) in &self.waves {
            let open = wave.stories.iter().any(|it| !it.is_over(story));
            let is_last = self.waves.keys().next_back() == Some(number);
            let pointed = self.pointer.is_none_or(|it| it == *number);
            match wave.verdict {
                _ if open => return Next::Stories(*number),
                Some(Verdict::Approve) if self.awaits && (pointed || is_last) => {
                    return Next::Checkpoint(*number);
                }
                Some(Verdict::Approve) => {}
                Some(Verdict::Reject | Verdict::Blocked) | None => return Next::Gate(*number),
            }
        }
        match self.final_verdict {
            Some(Verdict::Approve) => Next::Over,
            Some(Verdict::Reject | Verdict::Blocked) | None => Next::FinalGate,
        }
    }

    /// Stories of a wave that could be worked on now, in parallel.
    pub fn runnable(&self, number: u32, story: &dyn Fn(&str) -> Option<Status>) -> Vec<&Member> {
        let all: Vec<&Member> = self.waves.values().flat_map(|it| &it.stories).collect();
        let is_over = |id: &String| {
            all.iter().find(|it| is_same(&it.id, id)).is_none_or(|it| it.is_over(story))
        };
        let wave = self.waves.get(&number);
        let open = wave.into_iter().flat_map(|it| &it.stories).filter(|it| !it.is_over(story));
        open.filter(|it| it.after.iter().all(is_over)).collect()
    }

    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.waves.values().flat_map(|it| &it.stories)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Stories(u32),
    Gate(u32),
    Checkpoint(u32),
    FinalGate,
    Over,
}

impl Member {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            says: Says::Pending,
            odd: None,
            after: Vec::new(),
            file: None,
            is_new: false,
            branch: None,
        }
    }

    /// By the state, or by the story itself.
    pub fn is_over(&self, story: &dyn Fn(&str) -> Option<Status>) -> bool {
        self.says.is_over() || story(&self.id) == Some(Status::Done)
    }
}

fn member(id: &str, value: &Value) -> Member {
    let word = value.get("status").and_then(Value::as_str).or(value.as_str());
    let known = word.map(Says::of);
    Member {
        says: known.flatten().unwrap_or(Says::Pending),
        odd: word.filter(|it| Says::of(it).is_none()).map(str::to_owned),
        branch: value.get("branch").and_then(Value::as_str).map(str::to_owned),
        ..Member::new(id)
    }
}

/// A map from numbers, or a list of objects that have a `wave`.
fn numbered(value: Option<&Value>) -> Vec<(u32, &Value)> {
    let number = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|it| (1..=WAVES_MAX).contains(it))
    };
    match value {
        Some(Value::Object(map)) => {
            map.iter().filter_map(|(key, it)| Some((number(key)?, it))).collect()
        }
        Some(Value::Array(list)) => {
            let of = |(index, it): (usize, &'_ Value)| -> u32 {
                let named = ["wave", "number", "id"].iter().find_map(|key| it.get(*key));
                let named = named.and_then(|it| number(&it.to_string()));
                named.unwrap_or_else(|| u32::try_from(index + 1).unwrap_or(WAVES_MAX))
            };
            list.iter().enumerate().map(|(index, it)| (of((index, it)), it)).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Vec::new()
        }
    }
}

/// A map from ids, or a list of ids or of objects that have one.
fn named(value: Option<&Value>) -> Vec<(String, &Value)> {
    match value {
        Some(Value::Object(map)) => map.iter().map(|(id, it)| (id.clone(), it)).collect(),
        Some(list @ Value::Array(items)) => {
            let ids = ids(Some(list));
            ids.into_iter().zip(items).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Vec::new()
        }
    }
}

fn ids(value: Option<&Value>) -> Vec<String> {
    let of = |it: &Value| match it {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(map) => {
            let id = ["id", "story", "story_id"].iter().find_map(|key| map.get(*key))?;
            Some(id.as_str().map_or_else(|| id.to_string(), str::to_owned))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => None,
    };
    match value {
        Some(Value::Array(list)) => {
            list.iter().filter_map(of).filter(|it| !it.is_empty()).collect()
        }
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        Some(it @ (Value::String(_) | Value::Number(_))) => of(it).into_iter().collect(),
        Some(Value::Null | Value::Bool(_)) | None => Vec::new(),
    }
}
