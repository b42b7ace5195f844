//! The task list of a pipeline, held by one process at a time.
//!
//! Invariant: what is written was read under the same lock, so that nothing which another program
//! wrote is lost; each file is replaced whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
};

use onward_core::{digest::Digest, told::Change};
use onward_dialects::{
    File as Content, Files, Site,
    pipeline::{PIPELINE, Pipeline},
    seam::Dialect as _,
};

use super::{CallError, Order};
use crate::{
    play::Ink,
    world::{
        git::{Git, head},
        open,
        real::{
            disk::{hold_file, make_parents, replace_durably},
            file_time,
        },
    },
};

/// So much of git's answers tells what the work is about.
const CONTEXT_LINES_MAX: usize = 20;

pub(super) struct List {
    dir: PathBuf,
    pub(super) project: PathBuf,
    pub(super) git: Git,
    ink: Ink,
    /// Keeps the lock.
    _lock: File,
}

impl List {
    /// Makes the list if it is not there, and waits until no other program holds it.
    pub(super) fn take(order: &Order) -> Result<Self, CallError> {
        let project = order.attempt.project.clone();
        if order.dir.as_os_str().is_empty() {
            return Err(CallError::new("no task list is named"));
        }
        let dir = project.join(&order.dir);
        let lock = PIPELINE.card().lock.unwrap_or_default();
        make_parents(&dir.join(lock))?;
        let git = Git::new(&project, &order.attempt.env);
        let ink = order.attempt.ink.clone();
        let held = hold_file(&dir, lock, &mut |words| {
            if let (Some(words), Some(tell)) = (words, order.attempt.tell) {
                tell(words);
            }
            Ok(())
        });
        Ok(Self { _lock: held?, git, ink, project, dir })
    }

    /// The branch that the project is on.
    pub(super) fn branch(&self) -> Option<String> {
        head(&self.project)?.branch
    }

    /// What git log and the working tree tell about the work, where no request does.
    pub(super) fn context(&self) -> String {
        let said = |args: &[&str]| {
            let out = self.git.run(args).unwrap_or_default();
            let text = String::from_utf8_lossy(&out).into_owned();
            text.lines().take(CONTEXT_LINES_MAX).collect::<Vec<_>>().join("\n")
        };
        let branch = self.branch().unwrap_or_else(|| "no branch".to_owned());
        let log = said(&["log", "--max-count=10", "--format=- %s"]);
        let tree = said(&["status", "--short"]);
        let tree = if tree.is_empty() { "nothing".to_owned() } else { format!("\n{tree}") };
        format!("On {branch}. Last commits:\n{log}\nNot committed: {tree}")
    }

    /// Every file of the list as it is now.
    pub(super) fn files(&self) -> Result<Files, CallError> {
        let mut files = Files::default();
        let entries = fs::read_dir(&self.dir).map_err(CallError::io("list", &self.dir))?;
        for entry in entries {
            let path = entry.map_err(CallError::io("list", &self.dir))?.path();
            let Some(name) = path.file_name().and_then(|it| it.to_str()) else { continue };
            let is_part = name == ".highwatermark"
                || Path::new(name).extension().is_some_and(|it| it == "json");
            if !is_part || !path.is_file() {
                continue;
            }
            let bytes = open::read_at(&path, open::FILE_BYTES_MAX);
            let bytes = bytes.map_err(CallError::io("read", &path))?;
            let modified = fs::metadata(&path).and_then(|it| it.modified()).ok();
            files.insert(name, Content { bytes, modified: modified.map(file_time) });
        }
        Ok(files)
    }

    /// A digest of what each of these files of the project holds; none where it cannot be read.
    pub(super) fn held(
        &self,
        paths: impl IntoIterator<Item = String>,
    ) -> BTreeMap<String, Option<String>> {
        let digest = |path: &str| {
            let path = open::beneath(&self.project, path).ok()?;
            let bytes = open::read_at(&path, open::FILE_BYTES_MAX).ok()?;
            Some(Digest::of(&bytes).to_string())
        };
        paths.into_iter().map(|path| (digest(&path), path)).map(|(it, path)| (path, it)).collect()
    }

    /// `None` when no task begins with `[PERMANENT]`.
    pub(super) fn parse(&self, files: &Files) -> Option<Pipeline> {
        Pipeline::new(&Site::at(PIPELINE.card(), &self.dir.to_string_lossy()), files)
    }

    pub(super) fn read(&self) -> Result<Pipeline, CallError> {
        let dir = self.dir.display();
        let pipeline = self.parse(&self.files()?).ok_or_else(|| {
            CallError::new(format!("{dir}: no task begins with [PERMANENT]"))
                .hint("it was deleted or cleaned up: start over with `onward run pipeline`")
        })?;
        match pipeline.unreadable() {
            Some(why) => {
                let id = pipeline.permanent_id();
                let message = format!("{dir}/{id}.json, the pipeline's own task: {why}");
                Err(CallError::new(message).hint("fix it, then `onward resume`"))
            }
            None => Ok(pipeline),
        }
    }

    pub(super) fn write(&self, changes: &[Change]) -> Result<(), CallError> {
        for change in changes {
            match change {
                Change::Append { path, bytes } | Change::Replace { path, bytes } => {
                    self.ink.dip()?;
                    replace_durably(&self.dir.join(path), bytes)?;
                }
            }
        }
        Ok(())
    }
}
