//! The dialect `conference`: researchers in rounds, with posters, reviews and shared knowledge.
//!
//! Read in this order: `state` (the files as one value), `history` (the log, folded), `recovery`
//! (the table), `check` and `revert` (what is wrong, what is undone), `plan`; then `deed` and
//! `write` (what happened next, written as the system would), `facts` and `done` (what the steps of
//! the built-in workflow say, and which are proved). Invariant: pure; text found in the
//! files is data and never an instruction.

pub mod brief;
pub mod chart;
pub mod check;
pub mod config;
pub mod converge;
pub mod deed;
pub mod document;
pub mod done;
pub mod draft;
pub mod event_log;
pub mod facts;
pub mod history;
pub mod keep;
pub mod knowledge;
pub mod plan;
pub mod rebuild;
pub mod recovery;
pub mod reentry;
pub mod resumed;
pub mod revert;
pub mod review;
pub mod rows;
pub mod setup;
pub mod state;
pub mod step;
pub mod steps;
pub mod transfer;
pub mod tsv;
pub mod verdicts;
pub mod words;
pub mod worktree;
pub mod write;

use onward_core::{
    address::Address,
    plan::{Plan, PlannedRevert},
    time::Timestamp,
};

use crate::{Asked, Dialect, Done, Entering, Entry, Files, MissingMark, NoEntry, Undone};

pub use state::{Conference, export, import};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct ConferenceDialect;

pub static CONFERENCE: ConferenceDialect = ConferenceDialect;

impl Dialect for ConferenceDialect {
    fn name(&self) -> &'static str {
        "conference"
    }

    fn marks(&self) -> &'static [&'static str] {
        &[state::DOCUMENT, state::EVENTS]
    }

    fn reads(&self, name: &str) -> bool {
        state::Part::of(name).is_some()
    }

    fn branch_prefix(&self) -> Option<&'static str> {
        Some("conference/")
    }

    fn processes(&self, files: &Files) -> Vec<(u32, &'static str)> {
        let pid = files.bytes(state::LOOP_PID).and_then(state::pid);
        pid.map(|pid| (pid, "autoconference")).into_iter().collect()
    }

    fn plan(&self, files: &Files, asked: &Asked<'_>) -> Result<Plan, MissingMark> {
        plan::plan(files, asked)
    }

    fn workflow(&self) -> &'static str {
        "conference"
    }

    fn leaves_work(&self, step: &Address) -> bool {
        reentry::leaves_work(step)
    }

    fn step_of(&self, files: &Files, revert: &PlannedRevert) -> Option<Address> {
        reentry::whose(&import(files).ok()?, revert)
    }

    fn needs_agents(&self, files: &Files) -> bool {
        let code = import(files).map(|it| recovery::point(&it).code);
        !matches!(code, Ok(recovery::Code::Close | recovery::Code::Complete))
    }

    fn undone(&self, files: &Files) -> Vec<Undone> {
        reentry::undone(files)
    }

    fn grows(&self, name: &str) -> bool {
        name == state::EVENTS
    }

    fn enter(&self, files: &Files, at: &Entering<'_>) -> Result<Option<Entry>, NoEntry> {
        reentry::enter(files, at)
    }

    fn places(&self) -> &'static [&'static str] {
        &reentry::PLACES
    }

    fn witnesses(&self, step: &Address) -> bool {
        reentry::witnesses(step)
    }

    fn came_to_nothing(&self, files: &Files, step: &Address) -> bool {
        // Asked of every step: only for these the files are worth reading.
        let is_proposal = step.as_str().ends_with("/propose");
        is_proposal && import(files).is_ok_and(|it| reentry::came_to_nothing(&it, step))
    }

    fn done(&self, files: &Files, step: &Address) -> Option<Done> {
        done::done(&import(files).ok()?, step)
    }

    fn passed_over(&self, files: &Files, step: &Address) -> Option<String> {
        done::passed_over(&import(files).ok()?, step)
    }

    fn resumed(&self, files: &Files, plan: &Plan, at: Timestamp) -> Vec<(String, Vec<u8>)> {
        import(files).map(|it| resumed::resumed(files, &it, plan, at)).unwrap_or_default()
    }
}
