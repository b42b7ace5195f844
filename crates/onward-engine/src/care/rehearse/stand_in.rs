//! What the stand-in for an agent or a command does: it leaves what the step declares, and nothing
//! else.
//!
//! Invariant: what it leaves depends on the step alone, not on the attempt or the time, so that a
//! step which is safe to repeat leaves the same the second time.

use crate::world::open;
use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use onward_core::{
    address::Address,
    event::Event,
    graph::Defs,
    journal::Reader,
    recovery::Probed,
    run::Run,
    state::{EffectState, Phase},
    workflow::pattern::is_glob,
};

use super::sample;
use crate::{
    load::journal::{JOURNAL, load},
    locate::{Project, load_pinned},
};

/// What the attempt's environment says about it.
#[derive(Clone, Debug)]
pub struct Role {
    pub step: Address,
    pub attempt: u32,
    /// `<run>/out/<address>.<attempt>.result`
    pub result: PathBuf,
}

/// Plays one attempt.
pub fn act(role: &Role) -> io::Result<()> {
    let bad = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
    let run_dir = role.result.parent().and_then(Path::parent);
    let run_dir = run_dir.ok_or_else(|| bad("the result does not lie in a run"))?;
    let project = Project::of_run(run_dir).ok_or_else(|| bad("the run lies in no project"))?;
    for pattern in writes(run_dir, role)? {
        let name = if is_glob(&pattern) { sample::path(&pattern) } else { pattern };
        let path =
            project.root().join(if name.ends_with('/') { sample::path(&name) } else { name });
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        open::put(&path, text(&path, &role.step).as_bytes(), open::SHARED)?;
    }
    let workflow = load_pinned(run_dir).map_err(io::Error::other)?.workflow;
    let state = load(&open::read_own(run_dir, JOURNAL, open::LOG_BYTES_MAX)?)
        .map_err(io::Error::other)?
        .state;
    let run = Run::new(Arc::new(Defs::new(workflow)), state);
    let id = run.graph.find(&role.step).ok_or_else(|| bad("there is no such step"))?;
    let declared = run.defs.step(run.graph.node(id).def);
    if let Some(schema) = &declared.result {
        let sample = sample::answer(&serde_json::from_str(&schema.text)?).to_string();
        open::put(&role.result, sample.as_bytes(), open::PRIVATE)?;
    }
    if declared.effect_outside {
        fs::create_dir_all(run_dir.join(EFFECTS))?;
        let effect = run_dir.join(EFFECTS).join(role.step.file_name());
        open::put(&effect, b"", open::PRIVATE)?;
    }
    Ok(())
}

/// Something that a reader of such a file can live with: in Markdown, a title and text under it.
fn text(path: &Path, step: &Address) -> String {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => format!("{{\"step\": \"{step}\"}}\n"),
        Some("md") => format!("# {step}\n\nMade up.\n"),
        Some(_) | None => format!("{step}\n"),
    }
}

/// Effects that were played, by the name of their step.
const EFFECTS: &str = "rehearsed-effects";

/// As rendered when the attempt was announced; relative to the project, whatever its directory.
fn writes(run_dir: &Path, role: &Role) -> io::Result<Vec<String>> {
    let bytes = open::read_own(run_dir, JOURNAL, open::LOG_BYTES_MAX)?;
    let mut reader = Reader::new(bytes.as_slice());
    let mut writes = Vec::new();
    while let Some(record) = reader.next_record().map_err(io::Error::other)? {
        if let Event::AttemptStarted(started) = record.event
            && started.step == role.step
            && started.attempt == role.attempt
        {
            writes = started.writes;
        }
    }
    Ok(writes)
}

/// What a probe would say: a played effect happened if it was played to its end.
pub fn probe(run_dir: &Path) -> io::Result<Probed> {
    let state = load(&open::read_own(run_dir, JOURNAL, open::LOG_BYTES_MAX)?)
        .map_err(io::Error::other)?
        .state;
    let unsure = state.steps.iter().filter(|(_, entry)| {
        entry.phase == Phase::Running && entry.effect == EffectState::Intended
    });
    let happened: Vec<bool> =
        unsure.map(|(step, _)| run_dir.join(EFFECTS).join(step.file_name()).exists()).collect();
    Ok(match (happened.contains(&true), happened.contains(&false)) {
        (true, false) => Probed::Happened,
        (false, _) => Probed::Absent,
        // Which of them is asked about is not known here.
        (true, true) => Probed::Unknown,
    })
}
