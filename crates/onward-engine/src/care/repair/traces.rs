//! What the attempts of a run left behind, apart from the journal: seals, output, commits.
//!
//! Invariant: only what can be of no other run counts. Seals and output lie in the run's own
//! directory, and a commit carries the run's id; a file of the project alone is no trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use onward_core::{address::Address, launch::Seal, mark::Mark, time::Timestamp};

use crate::world::{
    Stop,
    git::{Env, Repo},
    real::disk::io_stop,
    supervisor::{
        Place, boot_id,
        seals::{Line, read_seals},
    },
};

/// Everything that is known of attempts from outside the journal.
#[derive(Debug, Default)]
pub(super) struct Traces {
    pub(super) attempts: BTreeMap<(Address, u32), Trace>,
    /// When the first supervisor of the run came, and the boot of the machine it came in.
    pub(super) first_opened: Option<(Timestamp, String)>,
    /// How many supervisors the run had: it was opened at least as often.
    pub(super) lives: u32,
}

/// What is known of one attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    /// When it was about to be spawned.
    pub(super) spawned_at: Option<Timestamp>,
    /// Which start it was, the last one that had this number.
    pub(super) of: Option<Mark>,
    /// More than one only if they contradict each other.
    pub(super) seals: Vec<Seal>,
    /// It printed something, or left a result.
    pub(super) has_output: bool,
    /// A commit with its trailers.
    pub(super) commit: Option<String>,
}

impl Trace {
    /// How it ended, where all that is known agrees.
    pub(super) fn seal(&self) -> Option<&Seal> {
        match self.seals.as_slice() {
            [one] => Some(one),
            [] | [_, _, ..] => None,
        }
    }

    /// What is known of another start with the same number says nothing about this one.
    fn begin(&mut self, of: Option<Mark>) {
        if self.of != of {
            self.seals.clear();
            self.of = of;
        }
    }

    /// The first moment it was seen.
    pub(super) fn seen_at(&self) -> Option<Timestamp> {
        self.spawned_at.or_else(|| self.seals.first().map(|seal| seal.at))
    }
}

impl Traces {
    pub(super) fn gather(place: &Place, env: &Env) -> Result<Self, Stop> {
        let mut traces = Self::default();
        traces.add_seals(place)?;
        traces.add_output(&place.out_dir())?;
        traces.add_commits(place, env);
        Ok(traces)
    }

    fn add_seals(&mut self, place: &Place) -> Result<(), Stop> {
        let path = place.seals();
        let log = read_seals(&path, None).map_err(io_stop("read", &path))?;
        let boot_id = boot_id().map_err(io_stop("read the boot id of", &place.run_dir))?;
        let mut is_this_boot = false;
        for line in log.lines {
            match line {
                Line::Opened(opened) => {
                    is_this_boot = opened.boot_id == boot_id;
                    self.lives += 1;
                    self.first_opened.get_or_insert((opened.at, opened.boot_id));
                }
                Line::Spawning(it) => {
                    let trace = self.of(it.step, it.attempt);
                    trace.begin(it.of);
                    trace.spawned_at = Some(it.at);
                }
                Line::Exited(seal) => {
                    let trace = self.of(seal.step.clone(), seal.attempt);
                    trace.begin(seal.of.clone());
                    let agrees =
                        |other: &Seal| other.ending == seal.ending && other.check == seal.check;
                    let counts = is_this_boot || seal.outlasts_a_restart();
                    if counts && !trace.seals.iter().any(agrees) {
                        trace.seals.push(seal);
                    }
                }
                Line::Spawned(_)
                | Line::Snapshot(_)
                | Line::OutputLost(_)
                | Line::Grouped(_)
                | Line::Stray(_)
                | Line::Unknown(_) => {}
            }
        }
        Ok(())
    }

    /// `out/<address>.<attempt>.{out,err,result}`: made by the attempt itself, never before it.
    fn add_output(&mut self, dir: &Path) -> Result<(), Stop> {
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(io_stop("list", dir)(error)),
        };
        for entry in entries {
            let name = entry.map_err(io_stop("list", dir))?.file_name();
            if let Some((step, attempt)) = name.to_str().and_then(of_output) {
                self.of(step, attempt).has_output = true;
            }
        }
        Ok(())
    }

    /// No git, or no repository, is no trace.
    fn add_commits(&mut self, place: &Place, env: &Env) {
        let Ok(Some(repo)) = Repo::find(&place.project_dir, env) else { return };
        let commits = repo.commits_of(place.run.as_str()).unwrap_or_default();
        // The newest first: of several commits of one attempt the last one counts.
        for (commit, step, attempt) in commits {
            self.of(step, attempt).commit.get_or_insert(commit);
        }
    }

    fn of(&mut self, step: Address, attempt: u32) -> &mut Trace {
        self.attempts.entry((step, attempt)).or_default()
    }

    /// The numbers of all attempts at a step that left something.
    pub(super) fn numbers(&self, step: &Address) -> BTreeSet<u32> {
        let first = (step.clone(), 0);
        let of_step = self.attempts.range(first..).take_while(|((other, _), _)| other == step);
        of_step.map(|((_, attempt), _)| *attempt).collect()
    }

    pub(super) fn get(&self, step: &Address, attempt: u32) -> Option<&Trace> {
        self.attempts.get(&(step.clone(), attempt))
    }
}

/// From the name of a file in `out/` to the attempt that wrote it; the inverse of
/// [`Address::file_name`], except for names that were cut.
fn of_output(name: &str) -> Option<(Address, u32)> {
    let (rest, ending) = name.rsplit_once('.')?;
    if !matches!(ending, "out" | "err" | "result") {
        return None;
    }
    let (file_name, attempt) = rest.rsplit_once('.')?;
    let attempt = attempt.parse().ok()?;
    let mut text = String::with_capacity(file_name.len());
    let mut rest = file_name;
    while let Some(first) = rest.chars().next() {
        // Only capital letters are written so; every other `%XX` is part of a key.
        let capital =
            rest.strip_prefix('%').and_then(|hex| u8::from_str_radix(hex.get(..2)?, 16).ok());
        let (letter, length) = match (first, capital.filter(u8::is_ascii_uppercase)) {
            (_, Some(letter)) => (char::from(letter), 3),
            ('~', None) => ('/', 1),
            (other, None) => (other, other.len_utf8()),
        };
        text.push(letter);
        rest = &rest[length..];
    }
    let address = Address::from_text(&text);
    (address.file_name() == file_name).then_some((address, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_output_leads_back_to_its_attempt() {
        for text in ["a", "r[2]/s[A]", "x[%C3%A9]/Build-1", "a[v1.2]"] {
            let address = Address::from_text(text);
            let name = format!("{}.12.result", address.file_name());
            assert_eq!(of_output(&name), Some((address, 12)), "{name}");
        }
        let long = Address::from_text(&"x".repeat(300));
        assert_eq!(of_output(&format!("{}.1.out", long.file_name())), None);
        for other in ["plain.brief", "a.1.brief", "a.1.prompt", "a.out", "a.x.out", "%ZZ.1.out"] {
            let found = of_output(other);
            assert!(found.is_none() || other == "%ZZ.1.out", "{other}: {found:?}");
        }
    }
}
