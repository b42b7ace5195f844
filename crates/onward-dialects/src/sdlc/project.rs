//! Everything that the files of a project say, read once.
//!
//! Invariant: a file that cannot be read is named with the reason, and costs itself only.

use std::collections::BTreeMap;

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::{
    epic::Epic,
    front,
    qa::{Loop, Verdict},
    spec::Spec,
    state::{State, wrapper},
    story::{Story, bare, id_of, is_same},
};
use crate::{
    Files,
    kit::{
        self,
        json::{Object, Oddities},
    },
};

#[derive(Debug, Default)]
pub struct Project {
    pub stories: Vec<Story>,
    pub epics: Vec<Kept<Epic>>,
    pub loops: Vec<Kept<Loop>>,
    pub states: Vec<Kept<State>>,
    pub specs: Vec<Spec>,
    pub gates: Vec<Gate>,
    pub locks: Vec<Lock>,
    pub plans: BTreeMap<String, Map<String, Value>>,
    /// State files that cannot be read, and why.
    pub broken: Vec<(String, String)>,
    /// The same of plans.
    pub unread_plans: Vec<(String, String)>,
    pub odd: Oddities,
    /// Where each story stands among them, by its bare id.
    places: BTreeMap<String, usize>,
}

/// A state with the file that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<T> {
    pub path: String,
    pub modified: Option<Timestamp>,
    pub told: T,
}

/// The verdict of a QA gate on a story.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub path: String,
    pub story: String,
    pub verdict: Option<Verdict>,
    /// A verdict of ours is about to be given: its story is being brought up to it.
    pub announced: bool,
}

/// A lock of the system's own programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Lock {
    pub path: String,
    pub pid: Option<u32>,
    pub owner: Option<String>,
    pub resource: Option<String>,
    pub created_at: Option<Timestamp>,
    pub ttl_ms: u64,
    pub alive: bool,
}

const TTL_MS: u64 = 300_000;
pub const HOMES: [&str; 3] = [".nexos/", ".aios/", ".aiox/"];

impl Project {
    pub fn of(files: &Files) -> Self {
        let mut all = Self::default();
        for (path, file) in files.iter() {
            match kind(path) {
                Kind::Story => {
                    if let Some(mut story) = Story::read(path, file) {
                        let said = front::dependencies(&story, &all.odd);
                        if story.after.is_empty() {
                            story.after = said;
                        }
                        let place = all.stories.len();
                        all.places.entry(bare(&story.id)).or_insert(place);
                        all.stories.push(story);
                    }
                }
                Kind::State => all.state(path, &file.bytes, file.modified),
                Kind::Loop => match Loop::of(file, path, &all.odd) {
                    Ok(mut told) => {
                        if told.story.is_empty() {
                            told.story = loop_story(path).unwrap_or_default();
                        }
                        if let Some(why) = nameless(&told.map).filter(|_| told.story.is_empty()) {
                            all.broken.push((path.to_owned(), why));
                            continue;
                        }
                        let (path, modified) = (path.to_owned(), file.modified);
                        all.loops.push(Kept { path, modified, told });
                    }
                    Err(why) => all.broken.push((path.to_owned(), why)),
                },
                Kind::Plan => match kit::yaml::object(&file.bytes) {
                    Ok(map) => {
                        all.plans.insert(path.to_owned(), map);
                    }
                    Err(why) => all.unread_plans.push((path.to_owned(), why)),
                },
                Kind::Gate => all.gates.extend(gate(path, &file.bytes, &all.odd)),
                Kind::Lock => all.locks.extend(lock(path, &file.bytes, &all.odd, files)),
                Kind::Other => {}
            }
        }
        let mut folders: Vec<(String, String)> =
            files.iter().filter_map(|(path, _)| Spec::folder_of(path)).collect();
        folders.dedup();
        all.specs = folders.iter().map(|(dir, name)| Spec::read(dir, name, files)).collect();
        for state in all.states.iter_mut().map(|it| &mut it.told) {
            state.story = state.story.take().map(|it| id_of(&it, &all.stories));
        }
        for kept in &mut all.epics {
            complete(&mut kept.told, &all.plans, &all.stories);
        }
        all
    }

    fn state(&mut self, path: &str, bytes: &[u8], modified: Option<Timestamp>) {
        let map = match state_map(path, bytes) {
            Ok(map) => map,
            Err(why) => return self.broken.push((path.to_owned(), why)),
        };
        let path = path.to_owned();
        if let Some(mut told) = Epic::read(&map, &path, &self.odd) {
            if told.id.is_empty() {
                told.id = id_of_state(&path).unwrap_or_default();
            }
            self.epics.push(Kept { path, modified, told });
        } else if let Some(told) = State::read(&map, &path, &self.odd) {
            self.states.push(Kept { path, modified, told });
        } else if let Some(why) = nameless(&map) {
            self.broken.push((path, why));
        }
    }

    pub fn story(&self, id: &str) -> Option<&Story> {
        self.places.get(&bare(id)).and_then(|it| self.stories.get(*it))
    }

    pub fn gate(&self, story: &str) -> Option<&Gate> {
        self.gates.iter().rev().find(|it| is_same(&it.story, story))
    }

    /// The epic of this id, by its state or else by a plan.
    pub fn epic(&self, id: &str) -> Option<Epic> {
        let kept = self.epics.iter().find(|it| is_same(&it.told.id, id));
        let planned = || {
            let mut epic = Epic { id: id.to_owned(), ..Epic::default() };
            complete(&mut epic, &self.plans, &self.stories);
            (!epic.waves.is_empty()).then_some(epic)
        };
        kept.map(|it| it.told.clone()).or_else(planned)
    }

    /// The epic that a state file of this path is about, made from everything else there is.
    pub fn rebuilt_epic(&self, path: &str, files: &Files) -> Epic {
        let saved = files.bytes(&format!("{path}.bak")).and_then(|it| kit::yaml::object(it).ok());
        let mut epic = saved.and_then(|it| Epic::read(&it, path, &self.odd)).unwrap_or_default();
        if epic.id.is_empty() {
            epic.id = id_of_state(path).unwrap_or_default();
        }
        // The statuses of the stories count more than an older state.
        epic.pointer = None;
        epic.updated_at = None;
        complete(&mut epic, &self.plans, &self.stories);
        epic
    }
}

/// Why a state cannot be about the story, or the epic, that it names.
fn nameless(map: &Map<String, Value>) -> Option<String> {
    if map.get("epic_state").is_some_and(|it| !it.is_object()) {
        return Some("`epic_state` holds no epic".to_owned());
    }
    let inner = wrapper(map).and_then(|key| map.get(key)?.as_object()).unwrap_or(map);
    let keys = ["current_story", "currentStory", "storyId", "story_id"];
    let is_odd = |value: &Value| match value {
        Value::Bool(_) | Value::Array(_) => true,
        Value::Object(map) => !["id", "name"].iter().any(|key| map.contains_key(*key)),
        // Nothing is worked on.
        Value::Null | Value::Number(_) | Value::String(_) => false,
    };
    let key = keys.iter().find(|key| inner.get(**key).is_some_and(is_odd))?;
    Some(format!("`{key}` names no story"))
}

/// A state file as the map that it is, by its ending.
pub fn state_map(path: &str, bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let is_json = path.to_lowercase().ends_with(".json");
    if is_json { kit::json::object(bytes) } else { kit::yaml::object(bytes) }
}

fn complete(epic: &mut Epic, plans: &BTreeMap<String, Map<String, Value>>, stories: &[Story]) {
    let named = epic.plan_path.as_ref().and_then(|path| plans.get(path));
    let is_own = |map: &&Map<String, Value>| {
        let inner = map.get("execution").and_then(Value::as_object).unwrap_or(map);
        let id = ["epicId", "epic_id"].iter().find_map(|key| inner.get(*key));
        id.is_some_and(|id| is_same(id.as_str().unwrap_or(&id.to_string()), &epic.id))
    };
    if let Some(plan) = named.or_else(|| plans.values().find(is_own)) {
        epic.planned(plan);
    }
    // Waves are counted from one, whatever they are called.
    let is_counted =
        epic.waves.keys().copied().eq(1..=u32::try_from(epic.waves.len()).unwrap_or(0));
    if !is_counted {
        epic.waves = (1..).zip(std::mem::take(&mut epic.waves).into_values()).collect();
        let pointed = |pointer| epic.waves.iter().find(|(_, it)| it.told_as == pointer);
        epic.pointer = epic.pointer.and_then(|it| pointed(it).map(|(number, _)| *number));
    }
    for wave in epic.waves.values_mut() {
        let mut seen = std::collections::BTreeSet::new();
        wave.stories.retain(|it| seen.insert(bare(&it.id)));
    }
    epic.settle(stories);
}

enum Kind {
    Story,
    State,
    Loop,
    Plan,
    Gate,
    Lock,
    Other,
}

fn kind(path: &str) -> Kind {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_home = HOMES.iter().any(|home| path.starts_with(home));
    match () {
        // What was given up is kept there.
        () if path.contains("/archive/") => Kind::Other,
        () if is_home && path.contains("/locks/") => Kind::Lock,
        () if [".bak", ".tmp"].iter().any(|it| path.ends_with(it)) => Kind::Other,
        () if is_home || name == ".session-state.yaml" => Kind::State,
        () if name == "loop-status.json" => Kind::Loop,
        () if name.ends_with("EXECUTION.yaml") => Kind::Plan,
        () if path.starts_with("docs/qa/gates/") => Kind::Gate,
        () if path.starts_with("docs/stories/") && !path.contains("/spec/") => Kind::Story,
        () => Kind::Other,
    }
}

/// `qa/2.1/loop-status.json` is about 2.1.
pub fn loop_story(path: &str) -> Option<String> {
    let inner = path.strip_prefix("qa/")?.strip_suffix("/loop-status.json")?;
    (!inner.contains('/')).then(|| inner.to_owned())
}

/// `.aiox/epic-3-state.yaml` is about 3, `.nexos/workflow-state/4.2-state.yaml` about 4.2.
pub fn id_of_state(path: &str) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let stem = name.split("-state.").next().filter(|it| it.len() < name.len());
    let stem = stem.or_else(|| name.rsplit_once('.').map(|it| it.0))?;
    let stem = stem.strip_prefix("epic-").unwrap_or(stem);
    (!stem.is_empty()).then(|| stem.to_owned())
}

/// `docs/qa/gates/4.2-login.yml`.
fn gate(path: &str, bytes: &[u8], odd: &Oddities) -> Option<Gate> {
    let map = kit::yaml::object(bytes).inspect_err(|why| odd.unread(path, why)).ok()?;
    let it = Object { map: &map, path, odd };
    let story = ["storyId", "story_id", "story"].iter().find_map(|key| it.text(key));
    let by_name = || {
        let name = path.rsplit('/').next()?;
        Some(name.split('-').next()?.to_owned())
    };
    let keys = ["verdict", "gate", "status"];
    let verdict = keys.iter().find_map(|key| Some((*key, it.text(key)?)));
    Some(Gate {
        path: path.to_owned(),
        story: story.or_else(by_name)?,
        announced: it.get(crate::rules::sdlc::gate::NEXT).is_some(),
        verdict: verdict.and_then(|(key, word)| {
            Verdict::of(&word).or_else(|| it.unknown(key, &word, "verdict"))
        }),
    })
}

fn lock(path: &str, bytes: &[u8], odd: &Oddities, files: &Files) -> Option<Lock> {
    let map = kit::yaml::object(bytes).or_else(|_| kit::json::object(bytes));
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    let map = map.inspect_err(|why| odd.unread(path, why)).ok()?;
    let it = Object { map: &map, path, odd };
    let pid = it.count("pid");
    let ttl = it.count("ttl_seconds").or_else(|| it.count("ttl"));
    Some(Lock {
        path: path.to_owned(),
        pid,
        owner: it.text("owner"),
        resource: it.text("resource"),
        created_at: it.moment_or_day("created_at").or_else(|| it.moment_or_day("createdAt")),
        ttl_ms: ttl.map_or(TTL_MS, |it| u64::from(it) * 1000),
        alive: pid.is_some_and(|pid| files.alive.contains(&pid)),
    })
}
