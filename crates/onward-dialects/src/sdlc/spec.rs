//! The spec pipeline: how far it is, by the files that are there.
//!
//! Invariant: an artifact that is empty or cannot be read is none.

use onward_core::time::Timestamp;
use serde_json::{Map, Value};

use super::status::words;
use crate::{File, Files, kit};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Artifact {
    Requirements,
    Complexity,
    Research,
    Spec,
    Critique,
}

impl Artifact {
    pub const ALL: [Self; 5] =
        [Self::Requirements, Self::Complexity, Self::Research, Self::Spec, Self::Critique];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requirements => "requirements",
            Self::Complexity => "complexity",
            Self::Research => "research",
            Self::Spec => "spec",
            Self::Critique => "critique",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Critique {
    Approved,
    NeedsRevision,
    Blocked,
}

impl Critique {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "APPROVED",
            Self::NeedsRevision => "NEEDS_REVISION",
            Self::Blocked => "BLOCKED",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Its directory, from the project's.
    pub folder: String,
    pub feature: String,
    /// What is there and can be read, with its path.
    pub there: Vec<(Artifact, String)>,
    /// What is there and cannot.
    pub broken: Vec<(String, String)>,
    pub is_simple: bool,
    pub class: Option<String>,
    pub critique: Option<Critique>,
    /// The spec was written again after its critique.
    pub rewritten: bool,
    pub touched: Option<Timestamp>,
}

const ENDINGS: [&str; 4] = [".json", ".yml", ".yaml", ".md"];
/// Files made by one copy differ by less.
pub const TOGETHER_MS: u64 = 60_000;

impl Spec {
    /// Which directory a file belongs to, where it is part of a spec.
    pub fn folder_of(path: &str) -> Option<(String, String)> {
        let (folder, _) = path.rsplit_once('/')?;
        let parts: Vec<&str> = folder.split('/').collect();
        match parts.as_slice() {
            ["docs", "specs", feature] => Some((folder.to_owned(), (*feature).to_owned())),
            ["docs", "stories", .., id, "spec"] => Some((folder.to_owned(), (*id).to_owned())),
            _ => None,
        }
    }

    pub fn read(folder: &str, feature: &str, files: &Files) -> Self {
        let mut spec =
            Self { folder: folder.to_owned(), feature: feature.to_owned(), ..Self::default() };
        let prefix = format!("{folder}/");
        let own = files
            .iter()
            .filter(|(path, _)| path.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/')));
        let mut times = std::collections::BTreeMap::new();
        let mut made = None;
        for (path, file) in own {
            // The directory itself: its time is that of the last file that came or went.
            if path.ends_with('/') {
                made = file.modified;
                continue;
            }
            spec.touched = spec.touched.max(file.modified);
            let name = path[prefix.len()..].to_lowercase();
            let Some(ending) = ENDINGS.iter().find(|it| name.ends_with(**it)) else { continue };
            let stem = &name[..name.len() - ending.len()];
            let Some(kind) = Artifact::ALL.into_iter().find(|it| it.as_str() == stem) else {
                continue;
            };
            match spec.take(kind, file, ending) {
                Ok(()) => {
                    times.insert(kind, file.modified);
                    spec.there.push((kind, path.to_owned()));
                }
                Err(why) => spec.broken.push((path.to_owned(), why)),
            }
        }
        spec.touched = spec.touched.or(made);
        let at = |kind: Artifact| times.get(&kind).copied().flatten();
        if let (Some(written), Some(judged)) = (at(Artifact::Spec), at(Artifact::Critique)) {
            spec.rewritten = written > judged.plus_ms(TOGETHER_MS);
        }
        spec.there.sort();
        spec
    }

    pub fn has(&self, kind: Artifact) -> bool {
        self.there.iter().any(|(it, _)| *it == kind)
    }

    pub fn path(&self, kind: Artifact) -> Option<&str> {
        self.there.iter().find(|(it, _)| *it == kind).map(|(_, path)| path.as_str())
    }

    fn take(&mut self, kind: Artifact, file: &File, ending: &str) -> Result<(), String> {
        let text = std::str::from_utf8(&file.bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        if text.trim().is_empty() {
            return Err("it is empty".to_owned());
        }
        let map: Map<String, Value> = match ending {
            ".json" => kit::json::object(&file.bytes)?,
            ".yml" | ".yaml" => kit::yaml::object(&file.bytes)?,
            _ => kit::markdown::Document::read(&file.bytes)
                .pairs()
                .into_iter()
                .map(|pair| (pair.key.replace(' ', "_"), Value::from(pair.value)))
                .collect(),
        };
        match kind {
            Artifact::Complexity => {
                self.class = class(&map);
                self.is_simple = self.class.as_deref() == Some("SIMPLE");
            }
            Artifact::Critique => self.critique = critique(&map),
            Artifact::Requirements | Artifact::Research | Artifact::Spec => {}
        }
        Ok(())
    }
}

/// SIMPLE up to 8, STANDARD up to 15, COMPLEX above; by the word, or else by the sum.
fn class(map: &Map<String, Value>) -> Option<String> {
    let keys = ["classification", "complexity_class", "class", "result", "level", "complexity"];
    let word = find(map, &keys, 0).and_then(|it| {
        let joined = words(it.as_str()?).concat();
        let known = ["SIMPLE", "STANDARD", "COMPLEX"];
        known.into_iter().find(|name| joined.eq_ignore_ascii_case(name))
    });
    let total = || {
        let total = number(find(map, &["total", "total_score", "score", "sum"], 0)?)?;
        Some(match total {
            _ if total <= 8.0 => "SIMPLE",
            _ if total <= 15.0 => "STANDARD",
            _ => "COMPLEX",
        })
    };
    word.or_else(total).map(str::to_owned)
}

/// Approved from 4.0, to be revised from 3.0, blocked below; by the word, or else by the score.
fn critique(map: &Map<String, Value>) -> Option<Critique> {
    let word = find(map, &["verdict", "decision", "status", "result"], 0);
    let by_word = word.and_then(|it| match words(it.as_str()?).concat().as_str() {
        "approved" | "approve" | "pass" => Some(Critique::Approved),
        "needsrevision" | "revise" | "revision" => Some(Critique::NeedsRevision),
        "blocked" | "rejected" => Some(Critique::Blocked),
        _ => None,
    });
    let by_score = || {
        let score = number(find(map, &["average", "average_score", "score", "overall_score"], 0)?)?;
        Some(match score {
            _ if score >= 4.0 => Critique::Approved,
            _ if score >= 3.0 => Critique::NeedsRevision,
            _ => Critique::Blocked,
        })
    };
    by_word.or_else(by_score)
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// The first of these keys with a plain value, at most two maps deep.
fn find<'a>(map: &'a Map<String, Value>, keys: &[&str], depth: usize) -> Option<&'a Value> {
    let is_plain = |value: &&Value| value.is_string() || value.is_number();
    let here = keys.iter().find_map(|key| map.get(*key).filter(is_plain));
    here.or_else(|| {
        let mut inner = map.values().filter_map(Value::as_object);
        if depth < 2 { inner.find_map(|map| find(map, keys, depth + 1)) } else { None }
    })
}
