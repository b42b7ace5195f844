//! From the bytes of a workflow file, and of the files it names, to a [`Workflow`].
//!
//! Invariant: what is not refused is whole. A file may have many problems, and all that can be
//! found in one reading are; only with no error among them is there a workflow.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    fields::{self, Fields},
    model::{Agent, PinnedFile, Place, Retry, Workflow},
    names, parallel,
    problem::{Problem, Problems},
    source::{self, Source},
    yaml::{self, Node},
};
use crate::{digest::Digest, evidence::Cause};

/// A larger file is refused unread, unless it begins as a workflow does: then the memory of the
/// machine is the limit, and the caller knows it.
pub const TEXT_BYTES_MAX: usize = 8 << 20;
/// Where a workflow has said that it is one.
pub const HEAD_BYTES: usize = 64 << 10;
/// The version of the language this crate reads.
pub(super) const VERSION: u64 = 1;
/// Each step holds its own copy.
const PINNED_BYTES_MAX: usize = 64 << 20;
/// Workflows within workflows.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Agent programs that need no declaration.
pub const ADAPTERS: [&str; 7] =
    ["claude", "codex", "gemini", "opencode", "qwen", "copilot", "aider"];

/// A workflow that can be run, and all it was made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub workflow: Workflow,
    /// The first file, then each one it includes; paths are relative to the first one's directory.
    pub files: Vec<PinnedFile>,
    pub warnings: Vec<Problem>,
    /// Over all files.
    pub hash: Digest,
}

/// Reads a workflow. `path` names the file for people; `read` gives the bytes of another file, its
/// path relative to the directory of the first.
pub fn load(
    path: &str,
    text: &[u8],
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Loaded, Vec<Problem>> {
    let (directory, name) = path
        .rsplit_once('/')
        .map_or(("", path), |(_, name)| (&path[..path.len() - name.len()], name));
    let text = decode(text).map_err(|fault| vec![fault.problem(path)])?;
    let mut reader = Reader {
        read,
        directory: directory.to_owned(),
        sources: vec![Source::new(name.to_owned(), path.to_owned(), text)],
        problems: Problems::default(),
        including: Vec::new(),
        pinned_bytes: 0,
        steps: 0,
    };
    let workflow = reader.workflow(0);
    reader.finish(workflow)
}

/// Reads a workflow again from the copies a run keeps.
pub fn reload(files: &[PinnedFile]) -> Result<Loaded, Vec<Problem>> {
    let missing = |path: &str| format!("the run keeps no copy of `{path}`");
    let Some(first) = files.first() else {
        return Err(vec![Problem::at_start("", missing("its workflow"), "start a new run")]);
    };
    let texts: BTreeMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
    load(&first.path, first.text.as_bytes(), &mut |path| {
        texts.get(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| missing(path))
    })
}

/// Why bytes are no text.
struct NotText {
    message: String,
    hint: &'static str,
    line: u32,
    column: u32,
}

impl NotText {
    fn problem(self, file: &str) -> Problem {
        let mut problem = Problem::at_start(file, self.message, self.hint);
        problem.at = Place { file: 0, line: self.line, column: self.column };
        problem
    }
}

/// Whether a file says in its first lines that it is a workflow. `head` is its first
/// [`HEAD_BYTES`], or more.
pub fn begins_as_workflow(head: &[u8]) -> bool {
    let head = &head[..head.len().min(HEAD_BYTES)];
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"onward:"))
}

fn decode(bytes: &[u8]) -> Result<String, NotText> {
    if bytes.len() > TEXT_BYTES_MAX && !begins_as_workflow(bytes) {
        let (has, most) = (bytes.len(), TEXT_BYTES_MAX >> 20);
        let message = format!("the file has {has} bytes; a workflow has at most {most} MiB");
        return Err(NotText { message, hint: "is this the right file?", line: 1, column: 1 });
    }
    let valid = std::str::from_utf8(bytes).map_err(|error| error.valid_up_to());
    let nul = bytes.iter().position(|byte| *byte == 0);
    let (message, end) = match (valid, nul) {
        (Ok(text), None) => return Ok(text.to_owned()),
        (Err(end), None) => ("the file is not text: here is a byte that is not UTF-8", end),
        (Err(end), Some(nul)) if end < nul => {
            ("the file is not text: here is a byte that is not UTF-8", end)
        }
        (_, Some(nul)) => ("the file is not text: here is a NUL byte", nul),
    };
    let before = String::from_utf8_lossy(&bytes[..end]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Err(NotText {
        message: message.to_owned(),
        hint: "a workflow is YAML in UTF-8; is this the right file?",
        line: small(line),
        column: small(column),
    })
}

/// Reads one workflow with everything it includes.
pub(super) struct Reader<'r> {
    read: &'r mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    /// Of the first file, with its last `/`; for people.
    directory: String,
    pub(super) sources: Vec<Source>,
    pub(super) problems: Problems,
    /// Workflow files being read, the first one first.
    pub(super) including: Vec<u32>,
    /// Of prompts and schemas, every time they are named.
    pinned_bytes: usize,
    /// Read so far, over all files and every time they are included.
    pub(super) steps: usize,
}

/// What the steps of one file refer to.
pub(super) struct Surroundings {
    pub(super) agents: BTreeMap<String, Agent>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) idle_ms: Option<u64>,
    pub(super) retry: Retry,
    /// A group around the steps has a worktree.
    pub(super) in_worktree: bool,
}

impl Reader<'_> {
    fn finish(self, workflow: Option<Workflow>) -> Result<Loaded, Vec<Problem>> {
        let failed = self.problems.has_errors();
        let shown: Vec<(&str, &str)> =
            self.sources.iter().map(|it| (it.shown.as_str(), it.text.as_str())).collect();
        let problems = self.problems.finish(&shown);
        let Some(workflow) = workflow.filter(|_| !failed) else { return Err(problems) };
        let pinned = |it: Source| PinnedFile { path: it.path, text: it.text };
        let files: Vec<PinnedFile> = self.sources.into_iter().map(pinned).collect();
        let parts = files.iter().flat_map(|file| [file.path.as_bytes(), file.text.as_bytes()]);
        let hash = Digest::of_parts(parts);
        Ok(Loaded { workflow, files, warnings: problems, hash })
    }

    fn workflow(&mut self, file: u32) -> Option<Workflow> {
        self.including.push(file);
        let node = yaml::parse(&self.sources[file as usize].text, file, &mut self.problems);
        let workflow = node.and_then(|node| self.document(node));
        self.including.pop();
        workflow
    }

    fn document(&mut self, document: Node) -> Option<Workflow> {
        const KEYS: [&str; 8] =
            ["onward", "name", "description", "inputs", "agents", "defaults", "limits", "steps"];
        let untyped = Fields::of(&document, "a workflow", &mut self.problems)?;
        self.version(&untyped)?;
        let fields = Fields::known(&document, "a workflow", &KEYS, &mut self.problems)?;
        if let Some(node) = fields.get("description") {
            fields::text(node, "description", &mut self.problems);
        }
        let name = self.name(&fields);
        let inputs = fields.get("inputs").map(|node| self.inputs(node)).unwrap_or_default();
        let agents = fields.get("agents").map(|node| self.agents(node)).unwrap_or_default();
        let mut around = Surroundings {
            agents,
            timeout_ms: None,
            idle_ms: None,
            retry: Retry { max: 0, backoff_ms: 0, on: Cause::RETRIED.into() },
            in_worktree: false,
        };
        if let Some(node) = fields.get("defaults") {
            self.defaults(node, &mut around);
        }
        let limits = self.limits(fields.get("limits"));
        let at = fields.at;
        let Some(node) = fields::field(Cow::Owned(document), "steps") else {
            self.problems
                .error(at, "a workflow needs `steps`")
                .hint("such as `steps: [{ id: hello, run: echo hello }]`");
            return None;
        };
        let steps = self.steps(node, &mut around, 0);
        let mut workflow = Workflow { name, inputs, agents: around.agents, limits, steps };
        names::check(&mut workflow, &self.sources, &mut self.problems);
        // Within an included workflow this was not its question: the outermost limits count.
        if self.including.len() == 1 && workflow.limits.parallel > 1 {
            parallel::check(&workflow.steps, &mut self.problems);
        }
        Some(workflow)
    }

    /// The text of a file that a node names.
    pub(super) fn pinned(&mut self, node: &Node, name: &str) -> Option<PinnedFile> {
        let file = self.include(node, name)?;
        let source = &self.sources[file as usize];
        self.pinned_bytes += source.text.len();
        if self.pinned_bytes > PINNED_BYTES_MAX {
            let most = PINNED_BYTES_MAX >> 20;
            let message = format!("prompts and schemas of all steps come to more than {most} MiB");
            self.problems.error(node.at, message);
            return None;
        }
        Some(PinnedFile { path: source.path.clone(), text: source.text.clone() })
    }

    /// The workflow in the file that a node names.
    pub(super) fn sub_workflow(&mut self, node: &Node) -> Option<(String, Workflow)> {
        let file = self.include(node, "workflow")?;
        let path = self.sources[file as usize].path.clone();
        if let Some(first) = self.including.iter().position(|including| *including == file) {
            let around = self.including[first..].iter().chain([&file]);
            let paths: Vec<&str> =
                around.map(|file| self.sources[*file as usize].path.as_str()).collect();
            let message = format!("the workflow includes itself: {}", paths.join(" -> "));
            self.problems.error(node.at, message).hint("use `repeat` to do something again");
            return None;
        }
        if self.including.len() >= INCLUDE_DEPTH_MAX {
            let message = format!("workflows are included more than {INCLUDE_DEPTH_MAX} deep");
            self.problems.error(node.at, message);
            return None;
        }
        let workflow = self.workflow(file)?;
        Some((path, workflow))
    }

    fn include(&mut self, node: &Node, name: &str) -> Option<u32> {
        let given = fields::text(node, name, &mut self.problems)?;
        let from = &self.sources[node.at.file as usize].path;
        let path = match source::resolve(from, given) {
            Ok(path) => path,
            Err(hint) => {
                self.problems.error(node.at, format!("`{given}` is out of reach")).hint(hint);
                return None;
            }
        };
        let small = |index: usize| u32::try_from(index).expect("fewer files than steps");
        if let Some(index) = self.sources.iter().position(|source| source.path == path) {
            return Some(small(index));
        }
        let bytes = match (self.read)(&path) {
            Ok(bytes) => bytes,
            Err(why) => {
                self.problems
                    .error(node.at, format!("cannot read `{given}`: {why}"))
                    .hint("paths begin at the directory of the workflow file");
                return None;
            }
        };
        match decode(&bytes) {
            Ok(text) => {
                let shown = format!("{}{path}", self.directory);
                self.sources.push(Source::new(path, shown, text));
                Some(small(self.sources.len() - 1))
            }
            Err(NotText { message, hint, line, .. }) => {
                let message = format!("`{given}`, line {line}: {message}");
                self.problems.error(node.at, message).hint(hint);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
