//! The brief: what an attempt should know that its command line does not say.
//!
//! Every attempt gets `ONWARD_BRIEF` and `ONWARD_RESULT`. A step with nothing behind it shares one
//! brief that says so, which keeps ten thousand small commands from making ten thousand files. An
//! agent that starts again after a failure has no memory of it: the brief is part of its prompt.
//!
//! Invariant: the same journal and files give the same brief. It has at most `CHARS_MAX`
//! characters; what does not fit is named as a file with its hash. No secret of the environment is
//! in it.

use std::fmt::Write as _;

use onward_core::{
    digest::Digest,
    event::Revert,
    launch::{Launch, Program},
    run::{Run, Worker},
    state::StepState,
};

use crate::{
    revert::rescue::PATCH,
    world::out_name,
    world::{At, Stop, World},
};

/// More paths are only counted.
const PATHS_MAX: usize = 50;
/// The length of a whole brief, and of its parts.
const CHARS_MAX: usize = 6_000;
const PATHS_CHARS_MAX: usize = 1_200;
const DIFF_CHARS_MAX: usize = 2_000;
const WORDS_CHARS_MAX: usize = 1_200;
/// So much of a file is read for its hash and its last words.
const FILE_BYTES_MAX: usize = 4 << 20;
/// The brief of a first attempt with nothing to tell.
const PLAIN: &str = "out/plain.brief";

/// What an attempt has behind it.
#[derive(Clone, Copy, Debug)]
pub struct Behind<'a> {
    /// What is undone before it.
    pub reverts: &'a [Revert],
    /// It goes on in the session of the one before it.
    pub continues: bool,
}

/// Writes the brief where there is something to say, and names it in the environment. Comes before
/// the launch is resolved.
pub fn attach<W: World>(
    world: &mut W,
    run: &Run,
    launch: &mut Launch,
    behind: &Behind<'_>,
) -> Result<(), Stop> {
    let before = run.state.step(&launch.step).filter(|_| launch.attempt > 1);
    let name = if let Some(before) = before {
        let text = text(world, run, launch, behind, before)?;
        let name = out_name(&launch.step, launch.attempt, "brief");
        world.write(At::Run(&name), text.as_bytes())?;
        if let Program::Agent(call) = &mut launch.program
            && before.failure.is_some()
            && !behind.continues
        {
            call.brief = Some(text);
        }
        name
    } else {
        PLAIN.to_owned()
    };
    let result = out_name(&launch.step, launch.attempt, "result");
    for (variable, name) in [("ONWARD_BRIEF", name), ("ONWARD_RESULT", result)] {
        let path = world.absolute(At::Run(&name));
        launch.env.insert(variable.to_owned(), path);
    }
    Ok(())
}

/// Makes the shared brief, once per run.
pub fn write_plain<W: World>(world: &mut W) -> Result<(), Stop> {
    world.write(At::Run(PLAIN), b"# Brief\n\nThis is the first attempt at this step.\n")
}

fn text<W: World>(
    world: &mut W,
    run: &Run,
    launch: &Launch,
    behind: &Behind<'_>,
    before: &StepState,
) -> Result<String, Stop> {
    let mut text = format!("# Brief\n\nStep {}, attempt {}.\n", launch.step, launch.attempt);
    let last = launch.attempt.saturating_sub(1);
    if let Some((cause, detail)) = before.failure.as_deref() {
        let detail = start_of(detail, WORDS_CHARS_MAX);
        let cause = cause.as_str();
        writeln!(text, "\nAttempt {last} did not finish: {cause} ({detail}).")
            .expect("a string takes all");
    }
    if behind.continues {
        text.push_str("\nIts session is continued, and what it changed is still in place.\n");
    }
    // What a resume undid, or what is undone between two tries.
    let resumed = run.state.resumed.as_ref().map_or(&[][..], |resumed| &resumed.reverts);
    let is_of_step = |revert: &&Revert| revert.step.as_ref() == Some(&launch.step);
    let mut undone: Vec<&Revert> = match behind.reverts {
        [] => resumed.iter().filter(is_of_step).collect(),
        reverts => reverts.iter().collect(),
    };
    // What a person made is none of its changes.
    undone.retain(|it| !it.keeps_in_place());
    let mut files = Vec::new();
    if let Some(first) = undone.first() {
        let patch = format!("{}/{PATCH}", first.rescue);
        tell_undone(&mut text, &undone, &world.absolute(At::Run(&first.rescue)));
        if let Some(diff) = File::read(world, patch, "the changes that were undone")? {
            text.push_str("\n## The changes that were undone\n\n");
            text.push_str(&fenced(&start_of(&diff.text, DIFF_CHARS_MAX)));
            files.push(diff);
        }
    }
    if !behind.continues && before.failure.is_some() {
        for (ending, what) in [("out", "all that it printed"), ("err", "its standard error")] {
            let name = out_name(&launch.step, last, ending);
            files.extend(File::read(world, name, what)?);
        }
        let words = last_words(world, run, launch, &files);
        if !words.is_empty() {
            text.push_str("\n## Its last words\n\n");
            text.push_str(&fenced(&words));
        }
    }
    let listed: Vec<String> = files.iter().map(|it| it.line(world)).collect();
    let text = world.cleaned(text);
    // The files are what a cut text still leads to.
    let ending = if listed.is_empty() {
        String::new()
    } else {
        format!("\n## Files\n\n{}\n", listed.join("\n"))
    };
    let room = CHARS_MAX.saturating_sub(ending.chars().count());
    Ok(format!("{}{ending}", start_of(&text, room)))
}

fn tell_undone(text: &mut String, undone: &[&Revert], rescue: &str) {
    text.push_str("\nWhat it changed was undone:\n");
    let (mut named, mut chars) = (0, 0);
    for revert in undone.iter().take(PATHS_MAX) {
        chars += revert.path.chars().count() + 3;
        if chars > PATHS_CHARS_MAX {
            break;
        }
        named += 1;
        writeln!(text, "- {}", revert.path).expect("a string takes all");
    }
    if undone.len() > named {
        writeln!(text, "- and {} more", undone.len() - named).expect("a string takes all");
    }
    writeln!(text, "\nIt is kept in {rescue}, the files as they were in files/.")
        .expect("a string takes all");
}

/// What a person would read of the end of its output.
fn last_words<W: World>(world: &W, run: &Run, launch: &Launch, files: &[File]) -> String {
    let worker = run.graph.find(&launch.step).and_then(|id| run.worker_at(id));
    let adapter = worker.map(|Worker { name, program }| world.adapter(name, program));
    let of = |ending: &str| {
        let name = out_name(&launch.step, launch.attempt.saturating_sub(1), ending);
        files.iter().find(|it| it.name == name).map_or("", |it| it.text.as_str())
    };
    let mut lines: Vec<String> = of("out")
        .lines()
        .flat_map(|line| match &adapter {
            Some(adapter) => adapter.tell(line),
            None => vec![line.to_owned()],
        })
        .collect();
    lines.extend(of("err").lines().map(str::to_owned));
    let all = lines.join("\n");
    let skipped = all.chars().count().saturating_sub(WORDS_CHARS_MAX);
    all.chars().skip(skipped).collect()
}

/// Text that ends a fence ends it here too, so that it is told from the brief by its indent.
fn fenced(text: &str) -> String {
    text.lines().flat_map(|line| ["    ", line, "\n"]).collect()
}

fn start_of(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let start: String = text.chars().take(chars_max.saturating_sub(2)).collect();
    format!("{start}…\n")
}

/// A file that the brief leads to.
struct File {
    name: String,
    what: &'static str,
    text: String,
    hash: Digest,
    bytes: usize,
}

impl File {
    /// `None` where it is missing or empty.
    fn read<W: World>(
        world: &mut W,
        name: String,
        what: &'static str,
    ) -> Result<Option<Self>, Stop> {
        let read = world.read_from(At::Run(&name), 0, FILE_BYTES_MAX)?;
        if read.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&read).into_owned();
        Ok(Some(Self { name, what, text, hash: Digest::of(&read), bytes: read.len() }))
    }

    fn line<W: World>(&self, world: &W) -> String {
        let Self { name, what, hash, bytes, .. } = self;
        let path = world.absolute(At::Run(name));
        let part = if *bytes == FILE_BYTES_MAX { ", of its beginning" } else { "" };
        format!("- {path}: {what} ({bytes} bytes, blake3 {hash}{part})")
    }
}
