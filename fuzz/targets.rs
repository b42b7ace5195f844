//! What is fuzzed: everything that reads a file which another program, or a stranger, may have
//! written. A refusal is fine; a panic is not.

use std::{collections::BTreeMap, fs, path::Path};

use onward_core::{
    address::Address,
    time::Timestamp,
    workflow::{
        self,
        model::{Place, Template},
        pattern,
        template::{Context, FileTexts, Quoting, condition, render, script, value},
    },
};
use onward_dialects::{
    File, Files, dialect,
    seam::{Candidate, Glimpse, Listing, Site},
};
use onward_engine::{
    load::journal,
    locate::config::{Config, Flags},
    world::{inbox, supervisor::seals},
};

pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) try_one: fn(&[u8]),
}

pub(crate) const TARGETS: [Target; 11] = [
    Target { name: "journal", try_one: journal },
    Target { name: "seals", try_one: seals },
    Target { name: "workflow", try_one: workflow },
    Target { name: "template", try_one: template },
    Target { name: "config", try_one: config },
    Target { name: "inbox", try_one: inbox },
    Target { name: "agent-memory", try_one: |input| foreign("agent-memory", input) },
    Target { name: "conference", try_one: |input| foreign("conference", input) },
    Target { name: "dotagent", try_one: |input| foreign("dotagent", input) },
    Target { name: "pipeline", try_one: |input| foreign("pipeline", input) },
    Target { name: "sdlc", try_one: |input| foreign("sdlc", input) },
];

impl Target {
    /// Each file of `fuzz/seeds/NAME`, and an empty one.
    pub(crate) fn seeds(&self) -> Vec<Vec<u8>> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(self.name);
        let entries =
            fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut paths: Vec<_> = entries.map(|it| it.unwrap().path()).collect();
        paths.sort();
        let mut seeds: Vec<Vec<u8>> = paths.iter().map(|it| fs::read(it).unwrap()).collect();
        seeds.push(Vec::new());
        seeds
    }
}

fn journal(input: &[u8]) {
    let _ = journal::load(input);
}

fn seals(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exits.jsonl");
    fs::write(&path, input).unwrap();
    let read = seals::read_seals(&path, None).unwrap();
    let _ = read.seals().count();
    let _ = read.kin_since_boot("boot", std::path::Path::new("/"));
}

fn workflow(input: &[u8]) {
    let _ = workflow::load("w.yaml", input, &mut |_| Err("there is none".to_owned()));
}

fn template(input: &[u8]) {
    let source = String::from_utf8_lossy(input).into_owned();
    let _ = pattern::matcher(&source, true);
    let template = Template::new(source, Place::default());
    let names: BTreeMap<String, serde_json::Value> = serde_json::from_str(
        "{\"inputs\": {\"x\": \"it's\", \"list\": [1, \"two\", null], \"map\": {\"k\": 1.5}}, \
         \"steps\": {\"a\": {\"status\": \"done\", \"stdout\": \"line\\nline\\n\"}}}",
    )
    .unwrap();
    let cx = Context { names };
    let files: FileTexts = [("f".to_owned(), Some("a\nb\n".to_owned()))].into();
    for quoting in [Quoting::Plain, Quoting::Shell] {
        let _ = render(&template, &cx, &files, quoting);
    }
    let _ = script(&template, &cx, &files, 1);
    let _ = condition(&template, &cx, &files);
    let _ = value(&template, &cx, &files);
}

fn config(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(".onward")).unwrap();
    fs::write(dir.path().join(".onward/config.toml"), input).unwrap();
    if let Ok(config) = Config::load(dir.path(), &[], &Flags::default()) {
        let _ = config.listed();
    }
}

fn inbox(input: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("inbox")).unwrap();
    fs::write(dir.path().join("inbox/1.json"), input).unwrap();
    let _ = inbox::waiting(dir.path());
}

/// Before each file of an archive stands a line with its path.
const FILE: &str = "=== ";

fn files_of(input: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut path = String::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if let Some(name) = line.strip_prefix(FILE.as_bytes()) {
            String::from_utf8_lossy(name).trim_end().clone_into(&mut path);
            files.entry(path.clone()).or_default();
        } else if let Some(bytes) = files.get_mut(&path) {
            bytes.extend_from_slice(line);
        }
    }
    files
}

fn foreign(name: &str, input: &[u8]) {
    let dialect = dialect(name).unwrap();
    let files = files_of(input);
    let glimpse = |bytes: &Vec<u8>| Glimpse { modified: None, bytes: Some(bytes.clone()) };
    let marks = files.iter().map(|(path, bytes)| (path.clone(), glimpse(bytes))).collect();
    let candidate = Candidate { dir: ".".to_owned(), marks };
    let listing = Listing { candidates: vec![candidate], ..Listing::default() };
    let mut sites = dialect.sites(&listing);
    sites.truncate(3);
    sites.push(Site::at(dialect.card(), "."));
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    for site in sites {
        let mut shown = Files::default();
        for (path, bytes) in &files {
            let file = File { bytes: bytes.clone(), modified: None };
            shown.insert(path.clone(), file);
        }
        let Ok(told) = dialect.read(&site, shown) else { continue };
        let _ = told.standing(now);
        let _ = told.findings(now);
        let _ = told.undo();
        let _ = told.retire(now);
        let _ = told.page("markdown");
        for step in ["round[1]/research[A]/iterate[1]", "synthesis", "plan/draft"] {
            let _ = told.step(&Address::from_text(step));
        }
    }
}
