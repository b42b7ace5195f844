//! The dialect `pipeline`: phases P0 to P8, held together by a `[PERMANENT]` task in one of Claude
//! Code's task lists.
//!
//! This page holds the card and the recovery table; `phase` knows phases and tiers, `read` makes
//! one value of a list, `site` finds the lists and says whose they are, `progress` says how far
//! each task and phase is, `check` what is wrong, `told` answers core (`report` in words),
//! `overtaken` what was completed after our own run had accepted it, `write` says what a resume
//! changes. Invariant: pure, and the task files go before the pointer in the `[PERMANENT]` task.

mod check;
mod overtaken;
mod phase;
mod progress;
mod read;
mod report;
mod site;
mod told;
mod write;

use onward_core::{finding::Finding, told::Told};

pub use phase::{Phase, Tier};
pub(crate) use read::{FIXING, MARK, NOTHING, PENDING, PROVED, UNCHANGED, key};
pub use told::Pipeline;
pub(crate) use write::Edit;

use crate::{
    Files,
    kit::{code::Odd, path::shown},
    seam::{Card, Dialect, Home, Listing, Mark, Missing, Site},
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct PipelineDialect;

pub static PIPELINE: PipelineDialect = PipelineDialect;

const HIGHWATERMARK: &str = ".highwatermark";

static CARD: Card = Card {
    name: "pipeline",
    workflows: &["pipeline"],
    entries: &["P0", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"],
    home: Home::TaskLists,
    marks: &[Mark { glob: "*.json", peek: true }],
    reads: &["*.json", HIGHWATERMARK],
    grows: &[],
    agents_declare: true,
    keeps: &[],
    branches: None,
    processes: &[],
    lock: Some(".lock"),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Start,
    RestartPhase,
    ResumeTasks,
    Deliver,
    Complete,
}

impl Code {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::RestartPhase => "restart-phase",
            Self::ResumeTasks => "resume-tasks",
            Self::Deliver => "deliver",
            Self::Complete => "complete",
        }
    }
}

/// What decides. Each is a question about the task files, answered on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of a decision table")]
pub struct Facts {
    /// The `[PERMANENT]` task is completed, or says that the work is committed.
    pub delivered: bool,
    /// There is at least one work task.
    pub work: bool,
    /// Some phase before P8 on the path is not complete.
    pub open: bool,
    /// That phase can go on task by task: the rest of it is proved.
    pub by_task: bool,
}

const Y: Option<bool> = Some(true);
const N: Option<bool> = Some(false);
const X: Option<bool> = None;

/// Exactly one row fits.
#[rustfmt::skip]
const TABLE: [([Option<bool>; 4], Code); 5] = [
    // delivered work open by_task
    ([Y,         X,   X,   X], Code::Complete),
    ([N,         N,   X,   X], Code::Start),
    ([N,         Y,   N,   X], Code::Deliver),
    ([N,         Y,   Y,   N], Code::RestartPhase),
    ([N,         Y,   Y,   Y], Code::ResumeTasks),
];

impl Facts {
    const fn answers(self) -> [bool; 4] {
        [self.delivered, self.work, self.open, self.by_task]
    }
}

pub fn code(facts: Facts) -> Code {
    let fits = |row: &[Option<bool>; 4]| {
        let mut cells = row.iter().zip(facts.answers());
        cells.all(|(cell, answer)| cell.is_none_or(|wanted| wanted == answer))
    };
    let row = TABLE.iter().find(|(row, _)| fits(row));
    row.map_or(Code::Start, |(_, code)| *code)
}

impl Dialect for PipelineDialect {
    fn card(&self) -> &'static Card {
        &CARD
    }

    fn sites(&self, seen: &Listing) -> Vec<Site> {
        site::sites(seen)
    }

    fn read(&self, site: &Site, files: Files) -> Result<Box<dyn Told>, Missing> {
        match Pipeline::new(site, &files) {
            Some(told) => Ok(Box::new(told)),
            None => Err(Missing {
                dialect: CARD.name,
                file: "a task whose subject begins with [PERMANENT]".to_owned(),
                hint: NO_PERMANENT_HINT.to_owned(),
            }),
        }
    }
}

const NO_PERMANENT_HINT: &str = "a new session has a list of its own: name another list with \
     `--tasks`, or make a [PERMANENT] task from git log and the working directory";

/// What is said where no list has a `[PERMANENT]` task of this project. `root` is the directory of
/// all lists; `others` hold one of another project.
pub fn no_permanent_task(root: Option<&str>, lists: &[String], others: &[String]) -> Finding {
    let named = |dirs: &[String]| dirs.iter().map(|it| shown(it)).collect::<Vec<_>>().join(", ");
    let none =
        (!lists.is_empty()).then(|| format!("no task begins with [PERMANENT] in {}", named(lists)));
    let theirs =
        (!others.is_empty()).then(|| format!("another project's pipeline is in {}", named(others)));
    let said: Vec<String> = none.into_iter().chain(theirs).collect();
    let message = match (said.as_slice(), root) {
        ([], None) => "there is no task list".to_owned(),
        ([], Some(root)) => format!("there is no task list in {}", shown(root)),
        (said, _) => said.join("; "),
    };
    Odd::NoPermanentTask.finding(message).with_hint(NO_PERMANENT_HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_facts() -> impl Iterator<Item = Facts> {
        (0_u8..1 << 4).map(|bits| Facts {
            delivered: bits & 1 != 0,
            work: bits & 2 != 0,
            open: bits & 4 != 0,
            by_task: bits & 8 != 0,
        })
    }

    /// The rulings again, as questions instead of rows.
    fn by_questions(facts: Facts) -> Code {
        if facts.delivered {
            return Code::Complete;
        }
        if !facts.work {
            return Code::Start;
        }
        if !facts.open {
            return Code::Deliver;
        }
        if facts.by_task { Code::ResumeTasks } else { Code::RestartPhase }
    }

    #[test]
    fn every_combination_of_facts_fits_one_row_and_gives_what_the_rulings_say() {
        for facts in all_facts() {
            assert_eq!(code(facts), by_questions(facts), "{facts:?}");
            let fits = |row: &[Option<bool>; 4]| {
                row.iter().zip(facts.answers()).all(|(cell, it)| cell.is_none_or(|c| c == it))
            };
            assert_eq!(TABLE.iter().filter(|(row, _)| fits(row)).count(), 1, "{facts:?}");
        }
    }

    #[test]
    fn without_a_permanent_task_the_searched_lists_are_named() {
        let finding = no_permanent_task(None, &["/users/me/.claude/tasks/a".to_owned()], &[]);
        assert_eq!(finding.code, "no-permanent-task");
        assert!(finding.message.contains("/users/me/.claude/tasks/a"));
    }
}
