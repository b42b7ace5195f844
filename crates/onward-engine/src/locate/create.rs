//! A run comes into being: whole, durable, and under its name, or not at all.

use crate::world::open;
use std::{
    collections::BTreeMap,
    fs::{self},
    io::{self, ErrorKind, Read as _, Write as _},
    path::{Path, PathBuf},
};

use onward_core::{
    event::{Event, Mode, Record, RunOpened},
    id::RunId,
    journal::{FORMAT, encode},
    state::Adopted,
    time::Timestamp,
    workflow::{Loaded, fits, model::InputKind, template::quoted},
};
use serde_json::Value;

use super::{
    Project,
    pinned::{PINNED, WORKFLOW, hash_under},
};
use crate::{
    load::journal::JOURNAL,
    world::{
        Stop,
        real::{
            Redactor,
            disk::{io_stop, make_parents, sync_dir},
        },
        secrets,
    },
};

/// A second copy of the records that a run is made with, for one that loses its journal.
pub const OPENED: &str = "opened.json";

/// What a run begins with.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    pub workflow: &'a Loaded,
    /// Where it was read from.
    pub file: Option<&'a Path>,
    /// As given; defaults are filled in.
    pub inputs: BTreeMap<String, Value>,
    pub mode: Mode,
    pub now: Timestamp,
    pub boot_id: String,
    /// Where it was found, if another system began it.
    pub adopted: Option<Adopted>,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("workflow `{workflow}` has no input `{name}`")]
    NoSuchInput { workflow: String, name: String, known: Vec<String> },
    #[error("{} missing", inputs_are(names))]
    MissingInputs { names: Vec<String> },
    #[error("input `{name}` must be {}", kind_name(*kind))]
    WrongKind { name: String, kind: InputKind },
    #[error("input `{name}` holds the value of ${variable}")]
    Secret { name: String, variable: String },
    #[error("input `{name}` looks like a key or a token")]
    Token { name: String },
    #[error("an event cannot be written: {0}")]
    Unwritable(String),
    #[error(transparent)]
    Stop(#[from] Stop),
}

impl CreateError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchInput { known, .. } if known.is_empty() => Some("it has none".to_owned()),
            Self::NoSuchInput { known, .. } => Some(format!("inputs: {}", known.join(", "))),
            Self::MissingInputs { names } => {
                let it = if names.len() == 1 { "it" } else { "them" };
                let flags = names.iter().map(|name| format!(" --input {name}=VALUE"));
                Some(format!("give {it} with{}", flags.collect::<String>()))
            }
            Self::Secret { variable, .. } => Some(format!(
                "inputs are kept in the journal: let the step read ${variable} itself"
            )),
            Self::Token { .. } => Some(
                "inputs are kept in the journal: put it into the environment, and let the step \
                 read it there"
                    .to_owned(),
            ),
            Self::WrongKind { name, kind } => {
                Some(format!("for example --input {name}={}", quoted(example(*kind))))
            }
            Self::Unwritable(_) | Self::Stop(_) => None,
        }
    }
}

/// `input `a` is`, `inputs `a`, `b` are`.
fn inputs_are(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [one] => format!("input {one} is"),
        several => format!("inputs {} are", several.join(", ")),
    }
}

/// A value as a person types it at a prompt.
pub fn example(kind: InputKind) -> &'static str {
    match kind {
        InputKind::String => "bees",
        InputKind::Number => "2.5",
        InputKind::Integer => "3",
        InputKind::Boolean => "true",
        InputKind::List => r#"["ann", "bob"]"#,
        InputKind::Object => r#"{"name": "ann"}"#,
    }
}

pub fn kind_name(kind: InputKind) -> &'static str {
    match kind {
        InputKind::String => "a string",
        InputKind::Number => "a number",
        InputKind::Integer => "a whole number",
        InputKind::Boolean => "true or false",
        InputKind::List => "a list",
        InputKind::Object => "an object",
    }
}

impl NewRun<'_> {
    /// Whether the inputs are what the workflow declares, and no secret.
    pub fn check(&self, redactor: &Redactor) -> Result<(), CreateError> {
        complete(self, redactor).map(drop)
    }
}

/// An id that is taken is tried again with another ending; a million of a day is enough.
const TRIES_MAX: u32 = 100;

/// Makes a run and returns its directory.
pub fn create_run(
    project: &Project,
    new: &NewRun<'_>,
    redactor: &Redactor,
) -> Result<(RunId, PathBuf), CreateError> {
    let inputs = complete(new, redactor)?;
    project.prepare()?;
    let runs_dir = project.runs_dir();
    let mut tries = 0;
    loop {
        let id = fresh_id(&new.workflow.workflow.name, new.now)?;
        let dir = runs_dir.join(id.as_str());
        let temporary = runs_dir.join(format!(".new-{id}"));
        let opened = RunOpened {
            format: FORMAT,
            run: id.clone(),
            workflow: new.workflow.workflow.name.clone(),
            // Without a file it is known by the name of its copy alone.
            workflow_hash: match new.file {
                Some(_) => new.workflow.hash,
                None => hash_under(WORKFLOW, &new.workflow.files),
            },
            file: new.file.map(|file| project.relative(file)),
            inputs: inputs.clone(),
            git: crate::world::git::head(project.root()),
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: new.boot_id.clone(),
            mode: new.mode,
        };
        let mut event = Event::RunOpened(Box::new(opened));
        redactor.clean(&mut event);
        let record = Record { seq: 0, at: new.now, epoch: 1, batch: 1, event };
        let mut journal = Vec::new();
        encode(&record, &mut journal).map_err(|it| CreateError::Unwritable(it.to_string()))?;
        if let Some(Adopted { dialect, source, files }) = new.adopted.clone() {
            let event = Event::RunAdopted { dialect, source, files };
            let record = Record { seq: 1, at: new.now, epoch: 1, batch: 1, event };
            encode(&record, &mut journal).map_err(|it| CreateError::Unwritable(it.to_string()))?;
        }
        build(&temporary, new.workflow, &journal)?;
        match fs::rename(&temporary, &dir) {
            Ok(()) => {
                sync_dir(&runs_dir)?;
                return Ok((id, dir));
            }
            Err(error) => {
                fs::remove_dir_all(&temporary).map_err(io_stop("remove", &temporary))?;
                let is_taken =
                    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists);
                tries += 1;
                if !is_taken || tries == TRIES_MAX {
                    return Err(io_stop("rename", &temporary)(error).into());
                }
            }
        }
    }
}

/// Checks the inputs against their declaration and fills in the defaults.
fn complete(new: &NewRun<'_>, redactor: &Redactor) -> Result<BTreeMap<String, Value>, CreateError> {
    let workflow = &new.workflow.workflow;
    for (name, value) in &new.inputs {
        let Some(declared) = workflow.inputs.get(name) else {
            let known = workflow.inputs.keys().cloned().collect();
            let (workflow, name) = (workflow.name.clone(), name.clone());
            return Err(CreateError::NoSuchInput { workflow, name, known });
        };
        if !fits(declared.kind, value) {
            return Err(CreateError::WrongKind { name: name.clone(), kind: declared.kind });
        }
        let name = name.clone();
        match redactor.name_in(value) {
            Some(secrets::TOKEN) => return Err(CreateError::Token { name }),
            Some(variable) => {
                return Err(CreateError::Secret { name, variable: variable.to_owned() });
            }
            None => {}
        }
    }
    let mut inputs = new.inputs.clone();
    let mut names = Vec::new();
    for (name, declared) in
        workflow.inputs.iter().filter(|(name, _)| !new.inputs.contains_key(*name))
    {
        match &declared.default {
            Some(default) => drop(inputs.insert(name.clone(), default.clone())),
            None => names.push(name.clone()),
        }
    }
    if names.is_empty() { Ok(inputs) } else { Err(CreateError::MissingInputs { names }) }
}

/// Everything a run has before its first step; each file and name is durable.
fn build(dir: &Path, workflow: &Loaded, journal: &[u8]) -> Result<(), Stop> {
    let write = |path: &Path, bytes: &[u8]| -> Result<(), Stop> {
        make_parents(path)?;
        let written = open::make_at(path, open::PRIVATE).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(io_stop("write", path))?;
        path.parent().map_or(Ok(()), sync_dir)
    };
    let mut files = workflow.files.iter();
    if let Some(first) = files.next() {
        write(&dir.join(WORKFLOW), first.text.as_bytes())?;
    }
    for file in files {
        write(&dir.join(PINNED).join(&file.path), file.text.as_bytes())?;
    }
    for name in ["inbox", "out"] {
        make_parents(&dir.join(name).join("x"))?;
    }
    write(&dir.join(OPENED), journal)?;
    write(&dir.join(JOURNAL), journal)
}

/// `<workflow>-<yyyymmdd>-<4 base32>`
fn fresh_id(workflow: &str, now: Timestamp) -> Result<RunId, Stop> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let source = Path::new("/dev/urandom");
    let mut random = [0; 4];
    let read: io::Result<()> = fs::File::open(source).and_then(|mut it| it.read_exact(&mut random));
    read.map_err(io_stop("read", source))?;
    let ending: String =
        random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    let date: String = now.to_string()[..10].replace('-', "");
    let name: String = workflow.to_ascii_lowercase();
    let id = format!("{name}-{date}-{ending}").parse();
    id.map_err(|error: onward_core::id::BadRunId| Stop::Unwritable(error.to_string()))
}
