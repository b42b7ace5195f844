//! A gate at a terminal: what is asked, what there is to look at, and the answer.
//!
//! Invariant: an answer holds for what was shown. The hash of that goes with it, and the
//! driver that takes the answer compares it.

use std::{
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use onward_core::{address::Address, digest::Digest, event::Event, run::Run};
use onward_engine::{
    drive::gate::Answer,
    engine::{self, person::gates_now, view_run},
    locate::Project,
    world::open,
};

use crate::{
    diagnostic::printable,
    diff,
    error::Error,
    next,
    prompt::{Asked, Person},
    seen,
    session::{Session, id_of, open_run},
    style::{DIM, STRONG, columns_of_errors, paragraph, wrap},
};

/// What is open, as it was shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Gate {
    pub(crate) step: Address,
    pub(crate) prompt: String,
    pub(crate) options: Vec<String>,
    pub(crate) shows: Vec<String>,
    pub(crate) hash: Digest,
}

/// The commands that answer the gates that are open now, with the first option of each. A gate
/// behind steps that run again first has nothing to be answered yet.
pub(crate) fn answers(session: &Session, dir: &Path, run: &Run) -> Result<Vec<String>, Error> {
    let open = view_run(dir, &session.machine, session.folded_of(dir))?.0.gates;
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let gates = gates_now(dir, run, &session.machine)?;
    let gates = gates.iter().filter_map(Gate::of);
    let gates = gates.filter(|gate| open.iter().any(|it| it.step == gate.step.as_str()));
    let id = id_of(dir);
    let answer = |gate: Gate| {
        let opened = run.state.step(&gate.step).and_then(|it| it.gate.as_deref());
        next::answer(&id, &gate, opened.map(|it| it.hash))
    };
    Ok(gates.map(answer).collect())
}

/// What came of it.
pub(crate) enum Said {
    Option {
        option: String,
        comment: Option<String>,
    },
    /// Another one answered, or it opened again.
    Withdrawn,
    /// The person left it open.
    Left,
}

impl Gate {
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let Event::GateOpened { step, prompt, options, shows, hash } = event.clone() else {
            return None;
        };
        Some(Self { step, prompt, options, shows, hash })
    }

    /// As much of the hash as tells two apart.
    pub(crate) fn short_hash(&self) -> String {
        self.hash.to_string().chars().take(12).collect()
    }

    /// Asks until there is an answer. `dir` is the run's.
    pub(crate) fn ask(&self, person: &mut Person, dir: &Path, wanted: &dyn Fn() -> bool) -> Said {
        let root = Project::of_run(dir).map_or_else(PathBuf::new, |it| it.root().to_owned());
        let mut comment = None;
        self.show(person, &root);
        loop {
            let question = format!("{}?", self.step);
            match person.ask(&question, &self.options, &['v', 'd', 'c'], wanted) {
                Asked::Said(option) => {
                    seen::keep(dir, &root, self);
                    return Said::Option { option, comment };
                }
                Asked::Withdrawn => return Said::Withdrawn,
                Asked::NoPerson => return Said::Left,
                Asked::ShowAgain => self.show(person, &root),
                Asked::Key('v', _) => self.page(person, &self.files(&root)),
                Asked::Key('d', _) => self.page(person, &self.changes(dir, &root)),
                Asked::Key(_, text) => {
                    person.screen().line(&format!("  comment: {}", printable(&text)));
                    comment = Some(text).filter(|it| !it.is_empty());
                }
            }
        }
    }

    fn show(&self, person: &Person, root: &Path) {
        let screen = person.screen();
        let (step, prompt) = (&self.step, paragraph(&self.prompt, self.step.as_str().len() + 2, 2));
        screen.line(&format!("\n{STRONG}{step}{STRONG:#}: {prompt}"));
        for path in &self.shows {
            let seen = match open::looked(root, path).and_then(|it| it.metadata()) {
                Ok(found) => format!("{} bytes", found.len()),
                Err(_) => "cannot be read".to_owned(),
            };
            screen.line(&format!("  look at {} ({seen})", printable(path)));
        }
        for (index, option) in self.options.iter().enumerate() {
            screen.line(&format!("  {}. {}", index + 1, printable(option)));
        }
        let look = if self.shows.is_empty() { "" } else { "v views it, d shows what changed, " };
        let keys = format!("  {look}c TEXT adds a comment, Ctrl-D leaves it open");
        screen.line(&format!("{DIM}{}{DIM:#}", wrap(&keys, columns_of_errors(), 0, 2)));
    }

    /// Shows a text about the files, in the person's pager.
    fn page(&self, person: &Person, lines: &[String]) {
        if self.shows.is_empty() {
            return person.screen().line("  this gate shows no file");
        }
        if !in_pager(lines.to_vec()) {
            for line in lines {
                person.screen().line(&format!("  {line}"));
            }
        }
    }

    /// What it shows, file by file.
    pub(crate) fn files(&self, root: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        for path in &self.shows {
            if self.shows.len() > 1 {
                lines.push(format!("--- {}", printable(path)));
            }
            match look(root, path) {
                Some(text) if text.is_empty() => lines.push("(empty)".to_owned()),
                Some(text) => lines.extend(text.lines().map(printable)),
                None => lines.push("(cannot be read)".to_owned()),
            }
        }
        lines
    }

    /// What changed since the last answer; where there was none, since the last commit.
    pub(crate) fn changes(&self, dir: &Path, root: &Path) -> Vec<String> {
        let is_answered = seen::last_answer(dir, &self.step).is_some();
        let mut lines = Vec::new();
        for path in &self.shows {
            let answered = seen::before(dir, self, path);
            let since = if answered.is_some() { "the last answer" } else { "the last commit" };
            let before = answered.or_else(|| committed(root, path));
            let name = printable(path);
            let (Some(was), Some(is)) = (before, look(root, path)) else {
                let why = if is_answered { "what it was is not known" } else { "it is new" };
                lines.push(format!("{name}: {why}; v views it"));
                continue;
            };
            let was = String::from_utf8_lossy(&was);
            if *was == is {
                lines.push(format!("{name}: nothing has changed since {since}"));
                continue;
            }
            lines.push(format!("{name}, since {since}:"));
            lines.extend(diff::plain(&was, &is));
        }
        lines
    }
}

/// A file that a gate shows, as text.
fn look(root: &Path, path: &str) -> Option<String> {
    let bytes = open::looked(root, path).and_then(|it| open::all_of(it, open::FILE_BYTES_MAX));
    Some(String::from_utf8_lossy(&bytes.ok()?).into_owned())
}

/// What the last commit has of a file.
fn committed(root: &Path, path: &str) -> Option<Vec<u8>> {
    let shown = Command::new("git")
        .args(["--no-optional-locks", "show", &format!("HEAD:./{path}")])
        .current_dir(root)
        .stdin(Stdio::null())
        .output();
    shown.ok().filter(|it| it.status.success()).map(|it| it.stdout)
}

/// The same where text cannot stand on the screen itself: without `PAGER` as with `less`.
#[cfg(feature = "watch")]
pub(crate) fn in_any_pager(lines: impl Iterator<Item = String> + Send + 'static) -> bool {
    through(pager().unwrap_or_else(|| "less".into()), lines, None)
}

/// The same for lines that still come: `less` begins at their end, and stays there.
#[cfg(feature = "watch")]
pub(crate) fn follow_in_any_pager(lines: impl Iterator<Item = String> + Send + 'static) -> bool {
    let mut options = std::env::var_os("LESS").unwrap_or_default();
    // It would quit by itself where all of it fits.
    options.push(" -+F +F");
    through(pager().unwrap_or_else(|| "less".into()), lines, Some(options))
}

/// `false` where there is no pager to be had.
pub(crate) fn in_pager(lines: Vec<String>) -> bool {
    pager().is_some_and(|pager| through(pager, lines.into_iter(), None))
}

fn pager() -> Option<OsString> {
    std::env::var_os("PAGER").filter(|it| !it.is_empty())
}

/// What a shell says of a program that is not there.
const NOT_FOUND: i32 = 127;

/// Until the person leaves the pager, however many lines there are still to come.
fn through(
    pager: OsString,
    lines: impl Iterator<Item = String> + Send + 'static,
    less: Option<OsString>,
) -> bool {
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped()).envs(less.map(|it| ("LESS", it)));
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        std::thread::spawn(move || {
            for line in lines {
                // A person who leaves the pager early has seen enough. The last line ends, too: a
                // pager such as `cat` leaves the cursor behind it, where the next question begins
                // by clearing its line.
                if input.write_all(format!("{line}\n").as_bytes()).is_err() {
                    break;
                }
            }
        });
    }
    child.wait().is_ok_and(|it| it.code() != Some(NOT_FOUND))
}

/// Asks every open gate of a run that no engine drives, as long as that is `wanted`; `true` = each
/// has its answer.
pub(crate) fn ask_all(
    session: &Session,
    person: &mut Person,
    dir: &Path,
    wanted: &dyn Fn() -> bool,
) -> Result<bool, Error> {
    let run = open_run(dir)?;
    for gate in gates_now(dir, &run, &session.machine)?.iter().filter_map(Gate::of) {
        match gate.ask(person, dir, wanted) {
            Said::Option { option, comment } => {
                let (step, by, hash) = (gate.step.clone(), session.user(), Some(gate.hash));
                let answer = Answer { step, option, comment, by, hash };
                engine::decide(dir, &answer, &session.machine)?;
            }
            Said::Withdrawn | Said::Left => return Ok(false),
        }
    }
    Ok(true)
}
