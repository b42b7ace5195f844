//! An epic: waves of stories, by its state file and its plan.
//!
//! Invariant: which wave is next follows from the stories and the verdicts, never from
//! `current_wave`; a wave that is called completed without a good verdict is not over.

use std::collections::{BTreeMap, BTreeSet};

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{
    qa::Verdict,
    state::{self, STARTED},
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
    /// Its number in the files. Waves are counted from one, whatever they are called.
    pub told_as: u32,
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
        let it = Object { map, path, odd }.object("epic_state")?;
        let inner = it.map;
        let mut epic = Self {
            id: ["epicId", "epic_id", "id"].iter().find_map(|key| it.text(key)).unwrap_or_default(),
            mode: it.word("mode", "mode", |word| state::mode(word).map(|_| word.to_owned())),
            word: it.text("status"),
            pointer: it.count("current_wave"),
            awaits: state::awaits(&Value::Object(inner.clone())),
            // `""` stands for none.
            plan_path: it.text("execution_plan").filter(|path| !path.is_empty()),
            started_at: STARTED.iter().find_map(|key| it.moment_or_day(key)),
            updated_at: it.moment_or_day("updated_at"),
            ..Self::default()
        };
        counted(&it, "waves", "waves by their numbers");
        it.count("total_waves");
        for (name, value) in numbered(inner.get("waves")) {
            let Some(wave) = value.as_object() else {
                it.odd::<()>("waves", value, "waves that are objects");
                continue;
            };
            let wave = Object { map: wave, path, odd };
            counted(&wave, "stories", "stories by their ids");
            let stories = named(wave.get("stories"));
            let decision = wave.object("checkpoint").and_then(|it| it.text("decision"));
            epic.waves.insert(
                name,
                Wave {
                    told_as: name,
                    name: wave.text("name").unwrap_or_default(),
                    word: wave.text("status"),
                    tag: wave.text("tag"),
                    stories: stories.into_iter().map(|(id, it)| member(&id, it, &wave)).collect(),
                    order: Vec::new(),
                    verdict: None,
                    decision,
                },
            );
        }
        let verdicts = it.object("gate_verdicts");
        for name in verdicts.into_iter().flat_map(|it| it.map.keys()) {
            let verdict = verdicts.and_then(|it| verdict(&it, name));
            if name.contains("final") {
                epic.final_verdict = verdict;
            } else if let Some(wave) = number_in(name).and_then(|it| epic.waves.get_mut(&it)) {
                wave.verdict = verdict;
            }
        }
        let last = verdict(&it, "final_gate");
        epic.final_verdict = epic.final_verdict.or(last);
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
            wave.told_as = number;
            let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
            if wave.name.is_empty() {
                wave.name = text("name").unwrap_or_default();
            }
            wave.tag = wave.tag.take().or_else(|| text("tag"));
            let ids = ids(told.get("stories"));
            let mut known: BTreeSet<String> = wave.stories.iter().map(|it| bare(&it.id)).collect();
            for id in ids.iter().filter(|it| known.insert(bare(it))) {
                let is_new = is_known && !wave.stories.is_empty();
                wave.stories.push(Member { is_new, ..Member::new(id) });
            }
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            for (place, id) in ids.iter().enumerate() {
                places.entry(bare(id)).or_insert(place);
            }
            let place = |id: &str| places.get(&bare(id)).copied().unwrap_or(usize::MAX);
            wave.stories.sort_by_cached_key(|it| place(&it.id));
            let merge = told.get("merge").and_then(|it| it.get("order"));
            wave.order = self::ids(merge);
        }
        let mut about: BTreeMap<String, &Value> = BTreeMap::new();
        for (id, told) in stories.into_iter().flatten() {
            about.entry(bare(id)).or_insert(told);
        }
        let all = self.waves.values_mut().flat_map(|it| &mut it.stories);
        for member in all {
            let told = about.get(&bare(&member.id)).and_then(|it| it.as_object());
            let Some(told) = told else { continue };
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
        let mut known: BTreeMap<String, &Story> = BTreeMap::new();
        for story in stories {
            known.entry(bare(&story.id)).or_insert(story);
        }
        for wave in self.waves.values_mut() {
            let own: BTreeSet<String> = wave.stories.iter().map(|it| bare(&it.id)).collect();
            for member in &mut wave.stories {
                if member.after.is_empty()
                    && let Some(story) = known.get(&bare(&member.id))
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
        let is_accepted = |it: &Wave| it.verdict == Some(Verdict::Approve);
        let accepted = self.waves.iter().rfind(|it| is_accepted(it.1)).map(|it| *it.0);
        for (number, wave) in &self.waves {
            let open = wave.stories.iter().any(|it| !it.is_over(story));
            let is_last = self.waves.keys().next_back() == Some(number);
            let pointed = self.pointer.or(accepted) == Some(*number);
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
        let mut all: BTreeMap<String, &Member> = BTreeMap::new();
        for member in self.members() {
            all.entry(bare(&member.id)).or_insert(member);
        }
        let is_over = |id: &String| all.get(&bare(id)).is_none_or(|it| it.is_over(story));
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

fn member(id: &str, value: &Value, wave: &Object<'_>) -> Member {
    let told = value.as_object().map(|map| Object { map, ..*wave });
    let word = match value {
        Value::Object(_) => told.and_then(|it| it.text("status")),
        Value::String(word) => Some(word.clone()),
        // A list of ids.
        Value::Number(_) | Value::Null => None,
        Value::Bool(_) | Value::Array(_) => wave.odd("stories", value, "stories with a status"),
    };
    // In a list of ids the entry is the id itself.
    let word = word.filter(|it| it != id);
    let known = word.as_deref().map(Says::of);
    Member {
        says: known.flatten().unwrap_or(Says::Pending),
        odd: word.filter(|it| Says::of(it).is_none()),
        branch: told.and_then(|it| it.text("branch")),
        ..Member::new(id)
    }
}

/// A verdict, by itself or with more about it.
fn verdict(it: &Object<'_>, name: &str) -> Option<Verdict> {
    match it.get(name)? {
        Value::Object(map) => {
            let inner = Object { map, ..*it };
            ["status", "verdict"].iter().find_map(|key| match inner.text(key)?.as_str() {
                // The gate is open: there is no verdict yet.
                "" | "-" | "none" | "n/a" | "pending" | "open" | "in_progress" => None,
                word => Verdict::of(word).or_else(|| inner.unknown(key, word, "verdict")),
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            it.word(name, "verdict", Verdict::of)
        }
    }
}

/// Notes where neither a map nor a list is, or a key that is no number.
fn counted(it: &Object<'_>, key: &str, wanted: &str) {
    match it.get(key) {
        Some(value @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => {
            it.odd::<()>(key, value, wanted);
        }
        Some(Value::Object(map)) if key == "waves" => {
            let has_number = |name: &&String| name.bytes().any(|it| it.is_ascii_digit());
            for name in map.keys().filter(|it| !has_number(it)) {
                it.unknown::<()>(key, name, "number of a wave");
            }
        }
        Some(Value::Null | Value::Object(_) | Value::Array(_)) | None => {}
    }
}

/// The number of a wave in what it is called.
fn number_in(text: &str) -> Option<u32> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|it| (1..=WAVES_MAX).contains(it))
}

/// By which key a wave of this number, or its verdict, is kept; in a list by its place there, from
/// zero. `Err` has the key of a new one.
pub(crate) fn wave_key(waves: Option<&Value>, number: u32) -> Result<String, String> {
    match waves {
        Some(Value::Object(map)) => {
            let own = map.keys().rev().find(|it| number_in(it) == Some(number));
            own.cloned().ok_or_else(|| number.to_string())
        }
        list @ Some(Value::Array(_)) => {
            let all = numbered(list);
            let own = all.iter().rposition(|it| it.0 == number).map(|it| it.to_string());
            own.ok_or_else(|| all.len().to_string())
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Err(number.to_string())
        }
    }
}

/// The same of a story.
pub(crate) fn story_key(stories: Option<&Value>, story: &str) -> Result<String, String> {
    match stories {
        Some(Value::Object(map)) => {
            let own = map.keys().find(|it| *it == story);
            let own = own.or_else(|| map.keys().find(|it| is_same(it, story)));
            own.cloned().ok_or_else(|| story.to_owned())
        }
        Some(Value::Array(list)) => {
            let is_it = |it: &Value| id(it).is_some_and(|it| is_same(&it, story));
            let own = list.iter().position(is_it).map(|it| it.to_string());
            own.ok_or_else(|| list.len().to_string())
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Err(story.to_owned())
        }
    }
}

/// A map from numbers, or a list of objects that have a `wave`.
fn numbered(value: Option<&Value>) -> Vec<(u32, &Value)> {
    let number = number_in;
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
        Some(Value::Array(items)) => items.iter().filter_map(|it| Some((id(it)?, it))).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {
            Vec::new()
        }
    }
}

/// What an entry of a list is about.
fn id(entry: &Value) -> Option<String> {
    let id = match entry {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Object(map) => {
            let id = ["id", "story", "story_id"].iter().find_map(|key| map.get(*key))?;
            id.as_str().map_or_else(|| id.to_string(), str::to_owned)
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => return None,
    };
    Some(id).filter(|it| !it.is_empty())
}

fn ids(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(id).collect(),
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        Some(it @ (Value::String(_) | Value::Number(_))) => id(it).into_iter().collect(),
        Some(Value::Null | Value::Bool(_)) | None => Vec::new(),
    }
}
